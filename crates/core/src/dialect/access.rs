//! How to reach a provider: authentication, headers, and the default model.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::table::{choices, table};

choices!(
    /// The header that carries the key.
    #[derive(Default)]
    Auth {
        /// `authorization: Bearer KEY`
        #[default]
        Bearer = "bearer",
        /// `x-api-key: KEY`
        XApiKey = "x-api-key",
        /// `x-goog-api-key: KEY`
        XGoogApiKey = "x-goog-api-key",
        /// `api-key: KEY`
        ApiKey = "api-key",
    }
);

impl Auth {
    /// From the word used in the files.
    pub(super) fn from_word(word: &str) -> Option<Auth> {
        let all = [Auth::Bearer, Auth::XApiKey, Auth::XGoogApiKey, Auth::ApiKey];
        all.into_iter().find(|auth| auth.as_str() == word)
    }

    /// The header for a key.
    pub fn header(self, key: &str) -> (String, String) {
        match self {
            Auth::Bearer => ("authorization".to_owned(), format!("Bearer {key}")),
            Auth::XApiKey | Auth::XGoogApiKey | Auth::ApiKey => (self.as_str().to_owned(), key.to_owned()),
        }
    }
}

/// How a reply is wanted, which some providers want to know from the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathVerb {
    /// In pieces, as it is generated.
    Stream,
    /// In one piece.
    Whole,
}

/// What a request to a provider needs besides its content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// How the key is sent.
    pub auth: Auth,
    /// Headers sent with every request.
    pub headers: BTreeMap<String, String>,
    /// The path after the base URL, with `{model}`, `{verb}` and the provider's
    /// own variables. None for the path of the protocol.
    pub path: Option<String>,
    /// What stands for `{verb}`, by `stream` and `whole`. Without them it is the
    /// verb of the protocol's own path.
    pub verbs: BTreeMap<String, String>,
    /// The environment variables that may hold each variable of the URL.
    pub vars_env: BTreeMap<String, Vec<String>>,
    /// The base URLs of regions that do not follow the pattern.
    pub region_urls: BTreeMap<String, String>,
    /// Members that every body has.
    pub body: BTreeMap<String, String>,
    /// The model is named by the path alone.
    pub no_model_in_body: bool,
    /// A command that prints the key.
    pub api_key_cmd: Option<String>,
    /// How long a key from a command is valid, such as `50m`.
    pub api_key_ttl: Option<String>,
    /// The model to use if only this provider has a key.
    pub default_model: Option<String>,
    /// Which provider comes first if several have a key. The lowest wins.
    pub order: Option<u32>,
}

impl Access {
    /// The path and query of a request for a model, given those of the protocol.
    pub fn request_path<'p>(&self, protocol_path: &'p str, model: &str, wanted: PathVerb) -> Cow<'p, str> {
        let Some(template) = &self.path else { return Cow::Borrowed(protocol_path) };
        let (own, query) = match protocol_path.split_once('?') {
            Some((own, query)) => (own, Some(query)),
            None => (protocol_path, None),
        };
        let key = match wanted {
            PathVerb::Stream => "stream",
            PathVerb::Whole => "whole",
        };
        let verb = self.verbs.get(key).map(String::as_str);
        let verb = verb.or_else(|| own.rsplit_once(':').map(|(_, verb)| verb)).unwrap_or_default();
        let mut path = template.replace("{model}", model).replace("{verb}", verb);
        if let Some(query) = query {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str(query);
        }
        Cow::Owned(path)
    }

    /// The names in braces that are left in a URL or a path once the model and
    /// the verb are filled in.
    pub fn variables(template: &str) -> impl Iterator<Item = &str> {
        let names = template.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name));
        names.filter(|name| !matches!(*name, "model" | "verb"))
    }

    /// As for a server that takes the protocol's own requests, such as the
    /// simulator.
    #[must_use]
    pub fn at_the_protocols_path(self) -> Access {
        Access { path: None, verbs: BTreeMap::new(), body: BTreeMap::new(), no_model_in_body: false, ..self }
    }
}

table!(AccessTable {
    pub(super) auth: Auth,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) path: String,
    pub(super) verbs: BTreeMap<String, String>,
    pub(super) vars_env: BTreeMap<String, Vec<String>>,
    pub(super) region_urls: BTreeMap<String, String>,
    pub(super) body: BTreeMap<String, String>,
    pub(super) no_model_in_body: bool,
    pub(super) api_key_cmd: String,
    pub(super) api_key_ttl: String,
    pub(super) default_model: String,
    pub(super) order: u32,
});

impl AccessTable {
    /// What other dialects of the protocol inherit. The default model and the
    /// order are not inherited.
    pub(super) fn inherited(&self) -> AccessTable {
        AccessTable { auth: self.auth, headers: self.headers.clone(), ..AccessTable::default() }
    }

    pub(super) fn resolve(self) -> Access {
        Access {
            auth: self.auth.unwrap_or_default(),
            headers: self.headers.unwrap_or_default(),
            path: self.path,
            verbs: self.verbs.unwrap_or_default(),
            vars_env: self.vars_env.unwrap_or_default(),
            region_urls: self.region_urls.unwrap_or_default(),
            body: self.body.unwrap_or_default(),
            no_model_in_body: self.no_model_in_body.unwrap_or_default(),
            api_key_cmd: self.api_key_cmd,
            api_key_ttl: self.api_key_ttl,
            default_model: self.default_model,
            order: self.order,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_template_gets_the_model_and_the_verb() {
        let template = |path: &str, verbs: &[(&str, &str)]| Access {
            path: Some(path.to_owned()),
            verbs: verbs.iter().map(|(name, verb)| ((*name).to_owned(), (*verb).to_owned())).collect(),
            ..Access::default()
        };
        let gemini = "/v1beta/models/m:streamGenerateContent?alt=sse";
        let raw: &[(&str, &str)] = &[("stream", "streamRawPredict"), ("whole", "rawPredict")];
        use PathVerb::{Stream, Whole};
        #[rustfmt::skip]
        let cases = [
            ("none",        Access::default(),                        gemini,         Stream,   gemini),
            ("own verb",    template("/p/{model}:{verb}", &[]),       gemini,         Stream,   "/p/m:streamGenerateContent?alt=sse"),
            ("their verb",  template("/p/{model}:{verb}", raw),       "/v1/messages", Stream,   "/p/m:streamRawPredict"),
            ("whole",       template("/p/{model}:{verb}", raw),       "/v1/messages", Whole,    "/p/m:rawPredict"),
            ("no variable", template("/chat", &[]),                   "/v1/messages", Whole,    "/chat"),
            ("two queries", template("/p/{model}:{verb}?a=1", &[]),   gemini,         Stream,   "/p/m:streamGenerateContent?a=1&alt=sse"),
        ];
        for (name, access, path, delivery, expected) in cases {
            assert_eq!(access.request_path(path, "m", delivery), expected, "{name}");
        }
        let left: Vec<&str> = Access::variables("https://{region}-h/{project}/{model}:{verb}/{").collect();
        assert_eq!(left, ["region", "project"]);
    }
}
