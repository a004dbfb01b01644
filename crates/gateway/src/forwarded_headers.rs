//! Which headers are passed on, to the provider and to the client.

use aside_engine::http::HttpReply;
use aside_engine::redact::RedactedStream;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;

/// Headers of a request or reply that concern one connection only.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-connection",
];

/// Headers of a client that the provider does not get: its key, and what does not fit the body that is sent.
const NOT_FORWARDED: [&str; 10] = [
    "host",
    "content-length",
    "content-encoding",
    "accept-encoding",
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "api-key",
    "cookie",
    "expect",
];

/// The client's headers that the provider gets, names in lower case.
pub(crate) fn forwarded_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let name = name.as_str();
        let is_ours = name.starts_with("aside-");
        if is_ours || HOP_BY_HOP.contains(&name) || NOT_FORWARDED.contains(&name) {
            continue;
        }
        let Ok(value) = value.to_str() else { continue };
        match out.iter_mut().find(|(known, _)| known == name) {
            // A header may come in several lines.
            Some((_, known)) => {
                known.push_str(", ");
                known.push_str(value);
            }
            None => out.push((name.to_owned(), value.to_owned())),
        }
    }
    out
}

/// The provider's headers that the client gets, with keys replaced.
pub(crate) fn reply_headers(reply: &HttpReply, keys: &mut RedactedStream) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in reply.headers() {
        let is_dropped = HOP_BY_HOP.contains(&name)
            || matches!(name, "content-length" | "set-cookie" | "alt-svc" | "strict-transport-security")
            || name.starts_with("aside-");
        if is_dropped {
            continue;
        }
        let value = HeaderValue::from_maybe_shared(keys.whole(Bytes::copy_from_slice(value)));
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), value) {
            headers.append(name, value);
        }
    }
    headers
}
