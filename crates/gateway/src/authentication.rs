//! Authenticates a request: finds the key of its client, and the tenant.

use std::sync::Arc;

use aside_core::dialect::matches_pattern;
use aside_session::serve_table::ServeKey;
use axum::http::HeaderMap;

use crate::error_response::{ErrorKind, GatewayError};
use crate::ids::hash;
use crate::route::percent_decode;

/// The tenant of a gateway on loopback that has no keys.
pub(crate) const LOCAL_TENANT: &str = "local";

/// Who sends a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) tenant: String,
    /// None if the gateway has no keys.
    pub(crate) key: Option<Arc<ServeKey>>,
}

impl Caller {
    pub(crate) fn may_use(&self, asked: &str, resolved: &str) -> bool {
        let Some(key) = &self.key else { return true };
        let fits = |pattern: &String| matches_pattern(pattern, resolved) || matches_pattern(pattern, asked);
        key.models.is_empty() || key.models.iter().any(fits)
    }

    /// Whether its requests must name a model or be counted.
    pub(crate) fn has_models_or_limits(&self) -> bool {
        self.key.as_ref().is_some_and(|key| !key.models.is_empty() || !key.limits.is_empty())
    }

    pub(crate) fn may_pass_to(&self, provider: &str) -> bool {
        self.key.as_ref().is_none_or(|key| key.pass.iter().any(|known| known == provider))
    }
}

/// Whether the gateway is open to everybody who can reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// No key was ever made, and it listens on loopback.
    Open,
    KeyNeeded,
}

/// Finds the key of a request among the known ones.
pub(crate) fn authenticate(
    headers: &HeaderMap,
    query: &str,
    keys: &[Arc<ServeKey>],
    access: Access,
) -> Result<Caller, GatewayError> {
    if access == Access::Open {
        return Ok(Caller { tenant: LOCAL_TENANT.to_owned(), key: None });
    }
    let refused = |what: &str| GatewayError::new(ErrorKind::Unauthorized, what);
    let given = client_key(headers, query)
        .ok_or_else(|| refused("this gateway needs a key; send it as `Authorization: Bearer` or `x-api-key`"))?;
    let given = hash(&given);
    // Every key is compared, and in constant time, so that the duration reveals nothing.
    let mut found = None;
    for key in keys {
        if is_same(&key.hash, &given) {
            found = Some(key);
        }
    }
    let key = found.ok_or_else(|| refused("this key is not known to the gateway"))?;
    Ok(Caller { tenant: key.tenant.clone(), key: Some(Arc::clone(key)) })
}

fn is_same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    std::hint::black_box(difference) == 0
}

/// The key that a client sent, in any of the usual headers or in the query.
fn client_key(headers: &HeaderMap, query: &str) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let bearer = text("authorization").and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
    });
    let header = bearer.or_else(|| text("x-api-key")).or_else(|| text("x-goog-api-key")).or_else(|| text("api-key"));
    let in_query = || query.split('&').find_map(|pair| pair.strip_prefix("key=")).map(percent_decode);
    header.filter(|key| !key.is_empty()).map(str::to_owned).or_else(in_query)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, secret: &str) -> Arc<ServeKey> {
        Arc::new(ServeKey {
            name: name.to_owned(),
            hash: hash(secret),
            tenant: format!("tenant of {name}"),
            models: vec!["deepseek/*".to_owned()],
            limits: Vec::new(),
            pass: vec!["openai".to_owned()],
        })
    }

    #[test]
    fn g8_a_key_is_taken_from_any_usual_place() {
        let keys = [key("a", "secret-a"), key("b", "secret-b")];
        #[rustfmt::skip]
        let cases = [
            ("bearer",   "authorization",  "Bearer secret-b", "",             Some("tenant of b")),
            ("scheme",   "authorization",  "bearer secret-a", "",             Some("tenant of a")),
            ("x-api",    "x-api-key",      "secret-a",        "",             Some("tenant of a")),
            ("google",   "x-goog-api-key", "secret-a",        "",             Some("tenant of a")),
            ("azure",    "api-key",        "secret-a",        "",             Some("tenant of a")),
            ("query",    "x-other",        "y",               "a=1&key=secret%2Da", Some("tenant of a")),
            ("wrong",    "x-api-key",      "secret-c",        "",             None),
            ("hash",     "x-api-key",      "sha256:00",       "",             None),
            ("none",     "x-other",        "y",               "",             None),
        ];
        for (name, header, value, query, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header, value.parse().expect("a value"));
            let caller = authenticate(&headers, query, &keys, Access::KeyNeeded);
            assert_eq!(caller.ok().map(|caller| caller.tenant).as_deref(), expected, "{name}");
        }
        let closed = authenticate(&HeaderMap::new(), "", &[], Access::KeyNeeded);
        assert!(closed.is_err(), "without any key the gateway stays closed");
        let open = authenticate(&HeaderMap::new(), "", &[], Access::Open).expect("open");
        assert_eq!(open.tenant, LOCAL_TENANT);
    }

    #[test]
    fn g8_a_key_reaches_only_its_models() {
        let caller = Caller { tenant: "t".to_owned(), key: Some(key("a", "s")) };
        assert!(caller.may_use("best", "deepseek/chat"));
        assert!(!caller.may_use("best", "openai/gpt-5"));
        assert!(caller.may_pass_to("openai"));
        assert!(!caller.may_pass_to("deepseek"));
    }
}
