//! Errors of the gateway itself, in the format of the client's protocol.

use aside_core::event::ProviderError;
use aside_core::protocol::Protocol;
use aside_core::wire::error_reply;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response};
use serde_json::Value;

pub(crate) type GatewayResponse = Response<Body>;

/// Why the gateway answers a request itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct GatewayError {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    Unauthorized,
    UnknownModel,
    NoProviderKey,
    /// With the seconds until the limit is reset.
    Limit {
        reset: u64,
    },
    TooLarge,
    BadRequest,
    UpstreamUnreachable,
    UpstreamTimeout,
    Draining,
    /// Too many requests are being read at once.
    Busy,
    /// Nothing is served at this path.
    NotFound,
    ForeignHost,
    ForeignOrigin,
}

impl ErrorKind {
    pub(crate) fn status(self) -> u16 {
        match self {
            ErrorKind::BadRequest => 400,
            ErrorKind::Unauthorized => 401,
            ErrorKind::NoProviderKey | ErrorKind::ForeignOrigin => 403,
            ErrorKind::UnknownModel | ErrorKind::NotFound => 404,
            ErrorKind::TooLarge => 413,
            ErrorKind::ForeignHost => 421,
            ErrorKind::Limit { .. } => 429,
            ErrorKind::UpstreamUnreachable => 502,
            ErrorKind::Draining | ErrorKind::Busy => 503,
            ErrorKind::UpstreamTimeout => 504,
        }
    }

    /// The value of the header `aside-error`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ErrorKind::Unauthorized => "unauthorized",
            ErrorKind::UnknownModel => "unknown_model",
            ErrorKind::NoProviderKey => "no_provider_key",
            ErrorKind::Limit { .. } => "limit",
            ErrorKind::TooLarge => "too_large",
            ErrorKind::BadRequest | ErrorKind::NotFound | ErrorKind::ForeignHost | ErrorKind::ForeignOrigin => {
                "bad_request"
            }
            ErrorKind::UpstreamUnreachable => "upstream_unreachable",
            ErrorKind::UpstreamTimeout => "upstream_timeout",
            ErrorKind::Draining | ErrorKind::Busy => "draining",
        }
    }
}

impl GatewayError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> GatewayError {
        GatewayError { kind, message: message.into() }
    }

    pub(crate) fn draining() -> GatewayError {
        GatewayError::new(ErrorKind::Draining, "this gateway is shutting down; try again")
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> GatewayError {
        GatewayError::new(ErrorKind::BadRequest, message)
    }

    /// The response in the format of the client's protocol.
    pub(crate) fn response(&self, protocol: Protocol) -> GatewayResponse {
        let is_openai = matches!(protocol, Protocol::OpenaiChat | Protocol::OpenaiResponses);
        let code = (is_openai && self.kind == ErrorKind::UnknownModel).then(|| "model_not_found".to_owned());
        let status = self.kind.status();
        let error = ProviderError::new(self.message.clone()).with_code(code).with_status(status);
        let mut response = json_response(status, error_reply(protocol, &error));
        set_header(&mut response, "aside-error", self.kind.word());
        match self.kind {
            ErrorKind::Limit { reset } => set_header(&mut response, "retry-after", &reset.max(1).to_string()),
            ErrorKind::Draining | ErrorKind::Busy => set_header(&mut response, "retry-after", "1"),
            ErrorKind::Unauthorized => set_header(&mut response, "www-authenticate", "Bearer"),
            ErrorKind::UnknownModel
            | ErrorKind::NoProviderKey
            | ErrorKind::TooLarge
            | ErrorKind::BadRequest
            | ErrorKind::UpstreamUnreachable
            | ErrorKind::UpstreamTimeout
            | ErrorKind::NotFound
            | ErrorKind::ForeignHost
            | ErrorKind::ForeignOrigin => (),
        }
        response
    }
}

pub(crate) fn json_response(status: u16, body: impl Into<String>) -> GatewayResponse {
    response(status, "application/json", body.into())
}

pub(crate) fn value_response(status: u16, body: &Value) -> GatewayResponse {
    json_response(status, body.to_string())
}

pub(crate) fn text_response(status: u16, body: impl Into<String>) -> GatewayResponse {
    response(status, "text/plain; charset=utf-8", body.into())
}

pub(crate) fn response(status: u16, content_type: &str, body: impl Into<Body>) -> GatewayResponse {
    let mut response = Response::new(body.into());
    *response.status_mut() = status.try_into().unwrap_or(axum::http::StatusCode::BAD_GATEWAY);
    set_header(&mut response, "content-type", content_type);
    response
}

/// Sets a header. A value that is not valid in a header is left out.
pub(crate) fn set_header(response: &mut GatewayResponse, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
}
