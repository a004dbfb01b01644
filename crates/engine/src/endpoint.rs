//! Where requests go: a provider, resolved, with everything it wants to hear.

use std::fmt;

use aside_core::block::Origin;
use aside_core::dialect::{Access, Dialect};
use aside_core::wire::{Call, Destination, Encoded, call};

/// One model of one provider, ready to be called.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The provider's id: a preset's or one of the user's own.
    pub provider: String,
    pub dialect: Dialect,
    /// The model as the provider knows it.
    pub model: String,
    /// Up to the path of the protocol.
    pub base_url: String,
    /// The base URL as its seals know it; none where it is another each time.
    pub place: Option<String>,
    /// What opens its door: the host's ways, whatever dialect is spoken behind it.
    pub access: Access,
    pub key: Option<Secret>,
    /// The user's own headers.
    pub headers: Vec<(String, String)>,
    /// Members of the body that the user adds or replaces.
    pub extra_body: serde_json::Map<String, serde_json::Value>,
    /// A short mark of the key, by which its account is known again.
    pub account: Option<String>,
}

/// Goes out with a request and is shown nowhere.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub fn new(secret: String) -> Secret {
        Secret(secret)
    }

    /// The key itself, for whoever must keep it out of what is printed.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Endpoint {
    /// Who makes what comes from here.
    pub fn origin(&self) -> Origin {
        Origin {
            provider: Some(self.provider.clone()),
            dialect: Some(self.dialect.id.clone()),
            model: Some(self.model.clone()),
            endpoint: self.place.clone(),
            account: self.account.clone(),
        }
    }

    /// The request as it goes over the wire.
    pub(crate) fn call(&self, encoded: &Encoded) -> Call {
        let to = Destination {
            base_url: &self.base_url,
            access: &self.access,
            key: self.key.as_ref().map(|Secret(key)| key.as_str()),
            headers: &self.headers,
            extra_body: &self.extra_body,
        };
        call(encoded, &to)
    }
}
