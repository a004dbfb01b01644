//! Where requests go: a provider, resolved, with everything it wants to hear.

use aside_core::block::Origin;
use aside_core::dialect::Dialect;
use aside_core::wire::Encoded;

use crate::http::Call;

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
    /// Everything that goes with each request, the key among it. Never shown.
    pub headers: Vec<(String, String)>,
    /// Members of the body that the user adds or replaces.
    pub extra_body: serde_json::Map<String, serde_json::Value>,
    /// A short hash of the key.
    pub account: Option<String>,
}

impl Endpoint {
    /// Who makes what comes from here.
    pub fn origin(&self) -> Origin {
        Origin {
            provider: Some(self.provider.clone()),
            dialect: Some(self.dialect.id.clone()),
            model: Some(self.model.clone()),
            endpoint: Some(self.base_url.clone()),
            account: self.account.clone(),
        }
    }
}

impl Endpoint {
    /// The request as it goes over the wire.
    pub(crate) fn call(&self, encoded: &Encoded) -> Call {
        let url = format!("{}{}", self.base_url.trim_end_matches('/'), encoded.path);
        let mut headers = encoded.headers.clone();
        // The user's values win: the last of a name counts.
        headers.extend(self.headers.iter().cloned());
        Call { url, headers, body: encoded.body.clone().into() }
    }
}
