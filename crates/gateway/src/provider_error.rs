//! Errors of providers for clients: in plain bytes, without the provider's key.

use aside_engine::http::{HttpRefusal, HttpReply};
use aside_engine::redact::RedactedStream;
use axum::http::HeaderMap;

use crate::error_response::{ErrorKind, GatewayError, GatewayResponse};
use crate::forwarded_headers::reply_headers;
use crate::request_body::decompress;

/// How large a body may become that the provider compressed unasked.
const MAX_PLAIN: usize = 4 << 20;

/// An error whose body is not compressed, so that a key in it can be found.
pub(crate) struct ReadableError {
    headers: HeaderMap,
    /// As received: it may repeat a key.
    pub(crate) refusal: HttpRefusal,
    keys: RedactedStream,
}

/// Whether the bytes of a reply are compressed. Clients' wishes for that are not passed on.
pub(crate) fn is_compressed(reply: &HttpReply) -> bool {
    reply.headers().any(|(name, value)| name == "content-encoding" && !value.eq_ignore_ascii_case(b"identity"))
}

impl ReadableError {
    pub(crate) async fn read(reply: HttpReply, mut keys: RedactedStream) -> Result<ReadableError, GatewayError> {
        let compressed = is_compressed(&reply);
        let mut headers = reply_headers(&reply, &mut keys);
        let mut refusal = reply.into_refusal().await;
        if compressed && !refusal.body.is_empty() {
            let encoding = headers.remove("content-encoding");
            let encoding = encoding.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default();
            refusal.body = decompress(&encoding.to_ascii_lowercase(), &refusal.body, MAX_PLAIN).map_err(|_| {
                let status = refusal.status;
                let what =
                    format!("the provider answered with status {status} and a body that is not valid {encoding}");
                GatewayError::new(ErrorKind::UpstreamUnreachable, what)
            })?;
        }
        Ok(ReadableError { headers, refusal, keys })
    }

    /// The provider's answer with its keys replaced. Without keys, no byte changes.
    pub(crate) fn into_response(mut self) -> GatewayResponse {
        let body = self.keys.whole(self.refusal.body.into());
        let mut answer = GatewayResponse::new(body.into());
        *answer.status_mut() = self.refusal.status.try_into().unwrap_or(axum::http::StatusCode::BAD_GATEWAY);
        answer.headers_mut().extend(self.headers);
        answer
    }
}
