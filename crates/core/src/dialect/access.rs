//! How a provider is reached: what opens its door, and which of its models
//! runs when nobody names one.

use std::collections::BTreeMap;

use super::table::{table, words};

words!(
    /// The header that carries the key.
    #[derive(Default)]
    Auth {
        /// `authorization: Bearer KEY`
        #[default]
        Bearer = "bearer",
        XApiKey = "x-api-key",
        XGoogApiKey = "x-goog-api-key",
        ApiKey = "api-key",
    }
);

impl Auth {
    /// The header for a key.
    pub fn header(self, key: &str) -> (String, String) {
        match self {
            Auth::Bearer => ("authorization".to_owned(), format!("Bearer {key}")),
            Auth::XApiKey | Auth::XGoogApiKey | Auth::ApiKey => (self.as_str().to_owned(), key.to_owned()),
        }
    }
}

/// What a request to a provider needs beside its body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    pub auth: Auth,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// Variables that may hold what stands for `{region}` in the base URL.
    pub region_env: Vec<String>,
    /// The model that runs when only this provider's key is there.
    pub default_model: Option<String>,
    /// Whose key counts first when there are several; the lowest.
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

    /// The ways of the protocol: another provider's model and place in the
    /// order are its own.
    pub(super) fn of_the_protocol(&self) -> AccessTable {
        AccessTable { auth: self.auth, headers: self.headers.clone(), ..AccessTable::default() }
    }

    pub(super) fn settle(self) -> Access {
        Access {
            auth: self.auth.unwrap_or_default(),
            headers: self.headers.unwrap_or_default(),
            region_env: self.region_env.unwrap_or_default(),
            default_model: self.default_model,
            order: self.order,
        }
    }
}
