//! How to reach a provider: authentication, headers, and the default model.

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

/// What a request to a provider needs besides its body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// How the key is sent.
    pub auth: Auth,
    /// Headers sent with every request.
    pub headers: BTreeMap<String, String>,
    /// Environment variables that may hold the `{region}` of the base URL.
    pub region_env: Vec<String>,
    /// The model to use if only this provider has a key.
    pub default_model: Option<String>,
    /// Which provider comes first if several have a key. The lowest wins.
    pub order: Option<u32>,
}

table!(AccessTable {
    auth: Auth,
    headers: BTreeMap<String, String>,
    region_env: Vec<String>,
    default_model: String,
    order: u32,
});

impl AccessTable {
    pub(super) fn new(
        auth: Option<Auth>,
        headers: Option<BTreeMap<String, String>>,
        region_env: Option<Vec<String>>,
        default_model: Option<String>,
        order: Option<u32>,
    ) -> AccessTable {
        AccessTable { auth, headers, region_env, default_model, order }
    }

    /// What other dialects of the protocol inherit. The default model and the
    /// order are not inherited.
    pub(super) fn inherited(&self) -> AccessTable {
        AccessTable { auth: self.auth, headers: self.headers.clone(), ..AccessTable::default() }
    }

    pub(super) fn resolve(self) -> Access {
        Access {
            auth: self.auth.unwrap_or_default(),
            headers: self.headers.unwrap_or_default(),
            region_env: self.region_env.unwrap_or_default(),
            default_model: self.default_model,
            order: self.order,
        }
    }
}
