//! The requests and responses of the simulator, without a socket.

use std::time::Duration;

use aside_core::event::ProviderError;
use aside_core::protocol::Protocol;
use aside_core::wire::error_reply;
use serde_json::json;

use crate::body_stream::BodyStream;
use crate::refusals::RefusalResponse;

pub(crate) const JSON: &str = "application/json";

/// An HTTP request as received by the server.
#[derive(Debug, Clone, Copy)]
pub struct HttpRequest<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub query: &'a str,
    /// Names are in lower case.
    pub headers: &'a [(String, String)],
    pub body: &'a [u8],
    /// When it arrived, in Unix milliseconds.
    pub received: u64,
}

impl HttpRequest<'_> {
    /// The value of a header; empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

/// The response that the server should send.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// How long to wait before sending anything.
    pub delay: Duration,
    pub body: BodyStream,
}

impl HttpResponse {
    pub(crate) fn with_body(status: u16, content_type: &str, body: String) -> HttpResponse {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        HttpResponse { status, headers, delay: Duration::ZERO, body: BodyStream::from_text(body) }
    }

    /// A refusal for a request that belongs to no known protocol.
    pub(crate) fn refusal(status: u16, message: &str) -> HttpResponse {
        let error = json!({ "error": { "message": message, "type": "simulator_error", "code": status } });
        HttpResponse::with_body(status, JSON, error.to_string())
    }

    /// A response without a body.
    pub(crate) fn empty(status: u16) -> HttpResponse {
        HttpResponse { status, headers: Vec::new(), delay: Duration::ZERO, body: BodyStream::from_text(String::new()) }
    }

    pub(crate) fn error(protocol: Protocol, status: u16, message: String) -> HttpResponse {
        HttpResponse::coded_error(protocol, status, None, message)
    }

    pub(crate) fn coded_error(protocol: Protocol, status: u16, code: Option<&str>, message: String) -> HttpResponse {
        let error = ProviderError::new(message).with_code(code.map(str::to_owned)).with_status(status);
        HttpResponse::with_body(status, JSON, error_reply(protocol, &error))
    }

    pub(crate) fn no_such_model(protocol: Protocol, name: &str, known: &str) -> HttpResponse {
        let code = match protocol {
            Protocol::OpenaiChat | Protocol::OpenaiResponses => Some("model_not_found"),
            Protocol::Anthropic | Protocol::Gemini | Protocol::Ollama | Protocol::Bedrock | Protocol::Cohere => None,
        };
        HttpResponse::coded_error(protocol, 404, code, format!("the simulator has no model `{name}`; it has: {known}"))
    }

    pub(crate) fn previous_response_not_found(message: String) -> HttpResponse {
        let error = json!({
            "message": message,
            "type": "invalid_request_error",
            "param": "previous_response_id",
            "code": "previous_response_not_found",
        });
        HttpResponse::with_body(400, JSON, json!({ "error": error }).to_string())
    }
}

impl From<RefusalResponse> for HttpResponse {
    fn from(refusal: RefusalResponse) -> HttpResponse {
        let mut response = HttpResponse::with_body(refusal.status, JSON, refusal.body);
        response.headers.extend(refusal.headers);
        response
    }
}

/// A provider error with this status.
pub(crate) fn status_response(protocol: Protocol, status: u16) -> HttpResponse {
    let (message, code) = match status {
        401 | 403 => ("this key is not accepted (simulated)", "invalid_api_key"),
        429 => ("too many requests, try again later (simulated)", "rate_limit_exceeded"),
        503 | 529 => ("the server is overloaded, try again later (simulated)", "overloaded"),
        500..600 => ("the server had an error (simulated)", "server_error"),
        _ => ("the request was refused (simulated)", "invalid_request_error"),
    };
    let error = ProviderError::new(message).with_code(code.to_owned()).with_status(status);
    let mut response = HttpResponse::with_body(status, JSON, error_reply(protocol, &error));
    if status == 429 {
        response.headers.push(("retry-after".to_owned(), "1".to_owned()));
    }
    response
}
