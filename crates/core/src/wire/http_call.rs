//! The HTTP request as one value (URL, headers and body), so that what the user
//! is shown is what is sent.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::encode::Encoded;
use crate::dialect::{Access, PathVerb};
use crate::json_text::{JsonKind, ObjectWriter, Raw, each_member};

/// One HTTP request. The method is always POST.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpCall {
    /// With path and query.
    pub url: String,
    /// Unique names, in lower case.
    pub headers: Vec<(String, String)>,
    /// Shared, because a body may be long and may be sent more than once.
    pub body: Arc<String>,
}

/// The endpoint of a request, and the user's additions to it.
#[derive(Debug, Clone, Copy)]
pub struct Destination<'a> {
    /// The URL before the protocol's path. Its query string goes after that path.
    pub base_url: &'a str,
    /// How the provider is reached.
    pub access: &'a Access,
    /// The API key. None if the endpoint needs none.
    pub key: Option<&'a str>,
    /// The user's headers, which override ours.
    pub headers: &'a [(String, String)],
    /// The user's members, which override ours.
    pub extra_body: &'a Map<String, Value>,
}

/// Builds the HTTP request.
pub fn http_call(encoded: &Encoded, to: &Destination<'_>) -> HttpCall {
    let mut headers = Headers::default();
    headers.set("content-type", "application/json");
    headers.set_access(to);
    for (name, value) in encoded.headers.iter().chain(to.headers) {
        headers.set(name, value);
    }
    let path = to.access.request_path(&encoded.path, &encoded.model, PathVerb::Stream);
    let url = join_url(to.base_url, &path);
    HttpCall { url, headers: headers.0, body: to.finish_body(&encoded.body) }
}

impl Destination<'_> {
    /// The body that is sent: with what this provider wants in every body, and
    /// with the user's members.
    pub fn finish_body(&self, body: &Arc<String>) -> Arc<String> {
        let Access { body: fixed, no_model_in_body, .. } = self.access;
        let body = if *no_model_in_body { without_model(body) } else { Arc::clone(body) };
        if fixed.is_empty() {
            return merge_body(&body, self.extra_body);
        }
        let mut members: Map<String, Value> =
            fixed.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        members.extend(self.extra_body.clone());
        merge_body(&body, &members)
    }
}

/// Anything but an object stays as it is.
fn without_model(body: &Arc<String>) -> Arc<String> {
    let Some(object) = Raw::of(body).ok().filter(|value| value.kind() == JsonKind::Object) else {
        return Arc::clone(body);
    };
    let mut out = ObjectWriter::default();
    each_member(object, |name, value| {
        if name != "model" {
            out.push_raw(name, value.get());
        }
    });
    Arc::new(out.finish())
}

/// The URL and the headers of a GET request to the same endpoint.
pub fn http_get(path: &str, to: &Destination<'_>) -> (String, Vec<(String, String)>) {
    let mut headers = Headers::default();
    headers.set_access(to);
    for (name, value) in to.headers {
        headers.set(name, value);
    }
    (join_url(to.base_url, path), headers.0)
}

/// The path goes before the query string of the base URL.
fn join_url(base_url: &str, path: &str) -> String {
    let (base, query) = base_url.split_once('?').map_or((base_url, None), |(base, query)| (base, Some(query)));
    let mut url = format!("{}{path}", base.trim_end_matches('/'));
    if let Some(query) = query {
        url.push(if path.contains('?') { '&' } else { '?' });
        url.push_str(query);
    }
    url
}

#[derive(Default)]
struct Headers(Vec<(String, String)>);

impl Headers {
    /// The key, and the provider's own headers.
    fn set_access(&mut self, to: &Destination<'_>) {
        if let Some(key) = to.key {
            let (name, value) = to.access.auth.header(key);
            self.set(&name, &value);
        }
        for (name, value) in &to.access.headers {
            self.set(name, value);
        }
    }

    /// A later value replaces an earlier one.
    fn set(&mut self, name: &str, value: &str) {
        let name = name.to_lowercase();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => value.clone_into(known),
            None => self.0.push((name, value.to_owned())),
        }
    }
}

/// Merges `extra` into a body, nested objects included. All other values keep
/// their bytes, and the messages stay last, so that requests share a prefix.
pub fn merge_body(body: &Arc<String>, extra: &Map<String, Value>) -> Arc<String> {
    if extra.is_empty() {
        return Arc::clone(body);
    }
    match Raw::of(body) {
        Ok(object) if object.kind() == JsonKind::Object => Arc::new(merged(object, extra)),
        Ok(_) | Err(_) => Arc::clone(body),
    }
}

fn merged(object: Raw<'_>, extra: &Map<String, Value>) -> String {
    let mut names = Vec::new();
    each_member(object, |name, _| names.push(name.to_owned()));
    let push_new = |out: &mut ObjectWriter| {
        for (name, value) in extra.iter().filter(|(name, _)| !names.contains(name)) {
            out.push_raw(name, &value.to_string());
        }
    };
    let (mut out, mut left) = (ObjectWriter::default(), names.len());
    each_member(object, |name, value| {
        left -= 1;
        if left == 0 {
            push_new(&mut out);
        }
        match extra.get(name) {
            Some(Value::Object(below)) if value.kind() == JsonKind::Object => out.push_raw(name, &merged(value, below)),
            Some(wanted) => out.push_raw(name, &wanted.to_string()),
            None => out.push_raw(name, value.get()),
        }
    });
    if names.is_empty() {
        push_new(&mut out);
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Auth;
    use serde_json::json;

    fn extra(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn shared(body: &str) -> Arc<String> {
        Arc::new(body.to_owned())
    }

    #[test]
    fn the_users_members_win_and_everything_else_keeps_its_bytes() {
        let body =
            r#"{"model":"m","thinking":{"type":"enabled","keep":1.50},"top_k":1,"messages":[{"a":1e2,"b":"\u00e9"}]}"#;
        #[rustfmt::skip]
        let cases = [
            ("nothing",  json!({}),                                body.to_owned()),
            ("new",      json!({"seed": 7}),                       body.replace(r#","messages""#, r#","seed":7,"messages""#)),
            ("other",    json!({"top_k": 20}),                     body.replace(r#""top_k":1"#, r#""top_k":20"#)),
            ("deep",     json!({"thinking": {"type": "off"}}),     body.replace("enabled", "off")),
            ("deeper",   json!({"thinking": {"more": [1]}}),       body.replace(r#","keep":1.50"#, r#","more":[1],"keep":1.50"#)),
            ("kinds",    json!({"thinking": 3, "model": {"x": 1}}), r#"{"model":{"x":1},"thinking":3,"top_k":1,"messages":[{"a":1e2,"b":"\u00e9"}]}"#.to_owned()),
        ];
        for (name, given, expected) in cases {
            assert_eq!(*merge_body(&shared(body), &extra(given)), expected, "{name}");
        }
        assert_eq!(*merge_body(&shared("not JSON"), &extra(json!({"a": 1}))), "not JSON");
        assert_eq!(*merge_body(&shared("{}"), &extra(json!({"a": 1}))), r#"{"a":1}"#);
    }

    #[test]
    fn a_provider_may_name_the_model_in_its_path_only() {
        let access = Access {
            path: Some("/v1/projects/p/models/{model}:{verb}".to_owned()),
            verbs: [("stream".to_owned(), "streamRawPredict".to_owned())].into(),
            body: [("anthropic_version".to_owned(), "v".to_owned())].into(),
            no_model_in_body: true,
            ..Access::default()
        };
        let encoded = Encoded {
            body: shared(r#"{"model":"m","max_tokens":1e2,"messages":[]}"#),
            path: "/v1/messages".to_owned(),
            model: "m".to_owned(),
            ..Encoded::default()
        };
        let none = Map::new();
        let to = Destination { base_url: "https://h", access: &access, key: None, headers: &[], extra_body: &none };
        let call = http_call(&encoded, &to);
        assert_eq!(call.url, "https://h/v1/projects/p/models/m:streamRawPredict");
        assert_eq!(*call.body, r#"{"max_tokens":1e2,"anthropic_version":"v","messages":[]}"#);
    }

    #[test]
    fn a_call_has_each_header_once_and_the_users_value_wins() {
        let encoded = Encoded {
            body: shared(r#"{"messages":[]}"#),
            path: "/m:go?alt=sse".to_owned(),
            headers: vec![("X-Beta".to_owned(), "ours".to_owned())],
            ..Encoded::default()
        };
        let access = Access {
            auth: Auth::XApiKey,
            headers: [("x-version".to_owned(), "1".to_owned())].into(),
            ..Access::default()
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let to = Destination {
            base_url: "https://host/v1/?api-version=2",
            access: &access,
            key: Some("k"),
            headers: &[pair("x-beta", "mine"), pair("X-Team", "blue")],
            extra_body: &extra(json!({"n": 1})),
        };
        let expected = HttpCall {
            url: "https://host/v1/m:go?alt=sse&api-version=2".to_owned(),
            headers: vec![
                pair("content-type", "application/json"),
                pair("x-api-key", "k"),
                pair("x-version", "1"),
                pair("x-beta", "mine"),
                pair("x-team", "blue"),
            ],
            body: shared(r#"{"n":1,"messages":[]}"#),
        };
        assert_eq!(http_call(&encoded, &to), expected);
        let bare = http_call(&encoded, &Destination { key: None, ..to });
        assert!(!bare.headers.iter().any(|(name, _)| name == "x-api-key"), "no key, no header");
    }
}
