//! The provider and model that requests go to.

use aside_core::block::Origin;
use aside_core::dialect::{Access, Dialect};
use aside_core::rules::RepairKey;
use aside_core::wire::{Destination, Encoded, HttpCall, http_call};

use crate::api_key::{ApiKey, Secret};
use crate::http::InvalidCall;

/// One model of one provider, ready to be called.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The provider's id: a preset's or one of the user's own.
    pub provider: String,
    pub dialect: Dialect,
    /// The model name that the provider uses.
    pub model: String,
    /// Without the protocol's path.
    pub base_url: String,
    /// The base URL that is stored as the origin of seals; `None` if it changes with every run.
    pub origin_url: Option<String>,
    /// How the host authenticates requests, independent of the dialect.
    pub access: Access,
    pub key: Option<ApiKey>,
    /// The user's own headers.
    pub headers: Vec<(String, String)>,
    /// Members that the user adds to the body or replaces in it.
    pub extra_body: serde_json::Map<String, serde_json::Value>,
    /// A fingerprint of the key, which identifies the account.
    pub account: Option<String>,
}

impl Endpoint {
    /// The origin of replies from this endpoint.
    pub fn origin(&self) -> Origin {
        Origin::default()
            .with_provider(self.provider.clone())
            .with_dialect(self.dialect.id.clone())
            .with_model(self.model.clone())
            .with_endpoint(self.origin_url.clone())
            .with_account(self.account.clone())
    }

    /// The key under which repairs are learned.
    pub fn repair_key(&self) -> RepairKey {
        let (dialect, model) = (self.dialect.id.clone(), self.model.clone());
        RepairKey { base_url: without_secrets(&self.base_url), dialect, model }
    }

    /// The key for a request that is about to be sent.
    pub async fn valid_key(&self) -> Result<Option<Secret>, InvalidCall> {
        match &self.key {
            Some(key) => key.valid().await.map(Some).map_err(InvalidCall::NoKey),
            None => Ok(None),
        }
    }

    /// Another key after this one was refused. None if there is no other.
    pub async fn key_after_refusal(&self, refused: Option<&Secret>) -> Result<Option<Secret>, InvalidCall> {
        let (Some(key), Some(refused)) = (&self.key, refused) else { return Ok(None) };
        let renewed = key.renewed_after(refused).await.map_err(InvalidCall::NoKey)?;
        Ok((renewed != *refused).then_some(renewed))
    }

    /// Where requests go, with this key.
    pub fn destination<'a>(&'a self, key: Option<&'a Secret>) -> Destination<'a> {
        Destination {
            base_url: &self.base_url,
            access: &self.access,
            key: key.map(Secret::expose),
            headers: &self.headers,
            extra_body: &self.extra_body,
        }
    }

    /// The request with its URL and headers.
    pub(crate) fn http_call(&self, encoded: &Encoded, key: Option<&Secret>) -> HttpCall {
        http_call(encoded, &self.destination(key))
    }
}

/// A URL without user, password and query, each of which may be or contain a key.
fn without_secrets(url: &str) -> String {
    let (before, _) = url.split_once(['?', '#']).unwrap_or((url, ""));
    let Ok(mut parsed) = reqwest::Url::parse(before) else { return before.to_owned() };
    // Both fail only for a URL that cannot have them.
    let _user = parsed.set_username("");
    let _password = parsed.set_password(None);
    parsed.as_str().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_learned_repair_is_stored_without_keys() {
        #[rustfmt::skip]
        let cases = [
            ("plain",         "https://host/v1",                "https://host/v1"),
            ("slash",         "https://host/v1/",               "https://host/v1"),
            ("query",         "https://host/v1?key=k",          "https://host/v1"),
            ("user",          "https://me:secret@host:8080/v1", "https://host:8080/v1"),
            ("fragment",      "http://host#k",                  "http://host"),
            ("not a URL",     "host/v1?key=k",                  "host/v1"),
        ];
        for (name, url, expected) in cases {
            assert_eq!(without_secrets(url), expected, "{name}");
        }
    }
}
