//! Writes errors in the form of each protocol.

use super::request_draft::object;
use crate::event::{ContextOverflow, ProviderError};
use crate::json_text::{ObjectWriter, quote};
use crate::protocol::Protocol;

/// The body of an error response (any status but 200).
pub fn error_reply(protocol: Protocol, error: &ProviderError) -> String {
    let message = quote(&error.message);
    let code = || quote(error.code.as_deref().unwrap_or_else(|| usual_code(protocol, error.status)));
    match protocol {
        Protocol::OpenaiChat | Protocol::OpenaiResponses => {
            let (kind, code) = (code(), quote(openai_code(error, protocol)));
            let inner = object([("message", &message), ("type", &kind), ("param", "null"), ("code", &code)]);
            object([("error", &inner)])
        }
        Protocol::Anthropic => {
            let inner = object([("type", &code()), ("message", &message)]);
            object([("type", "\"error\""), ("error", &inner)])
        }
        Protocol::Gemini => {
            let status = error.status.unwrap_or(500).to_string();
            let status_name = quote(google_status(error.status));
            let inner = object([("code", &status), ("message", &message), ("status", &status_name)]);
            object([("error", &inner)])
        }
        Protocol::Ollama => object([("error", &message)]),
        Protocol::Bedrock | Protocol::Cohere => object([("message", &message)]),
    }
}

/// An error inside a stream, which has no HTTP status. Only known fields are
/// written.
pub(super) fn error_in_stream(error: &ProviderError) -> String {
    let mut inner = ObjectWriter::default();
    inner.push_raw("message", &quote(&error.message));
    let status = error.status.map(|status| status.to_string());
    match &error.code {
        // A code equal to the status is written as a number.
        Some(code) if Some(code) == status.as_ref() => inner.push_raw("code", code),
        Some(code) => {
            inner.push_raw("type", &quote(code));
            inner.push_raw("code", &quote(code));
        }
        None => inner.push_raw("code", "null"),
    }
    if let Some(status) = status.filter(|status| error.code.as_ref() != Some(status)) {
        inner.push_raw("status_code", &status);
    }
    inner.finish()
}

/// As above, for protocols whose errors have a type and no code.
pub(super) fn typed_error_in_stream(error: &ProviderError) -> String {
    let mut inner = ObjectWriter::default();
    if let Some(code) = &error.code {
        inner.push_raw("type", &quote(code));
    }
    inner.push_raw("message", &quote(&error.message));
    if let Some(status) = error.status {
        inner.push_raw("status_code", &status.to_string());
    }
    inner.finish()
}

/// Clients look for two of these codes: to shorten the conversation, or to stop asking.
fn openai_code(error: &ProviderError, protocol: Protocol) -> &str {
    match (&error.code, error.overflow, error.lacks_credit) {
        (Some(code), ..) => code,
        (None, ContextOverflow::None, false) => usual_code(protocol, error.status),
        (None, ContextOverflow::None, true) => "insufficient_quota",
        (None, ..) => "context_length_exceeded",
    }
}

fn usual_code(protocol: Protocol, status: Option<u16>) -> &'static str {
    match (status, protocol) {
        (Some(401), _) => "authentication_error",
        (Some(403), _) => "permission_error",
        (Some(404), _) => "not_found_error",
        (Some(413), _) => "request_too_large",
        (Some(429), Protocol::OpenaiChat | Protocol::OpenaiResponses) => "rate_limit_exceeded",
        (Some(429), _) => "rate_limit_error",
        (Some(529), _) => "overloaded_error",
        (Some(500..), Protocol::OpenaiChat | Protocol::OpenaiResponses)
        | (None, Protocol::OpenaiChat | Protocol::OpenaiResponses) => "server_error",
        (Some(500..) | None, _) => "api_error",
        (Some(_), _) => "invalid_request_error",
    }
}

pub(super) fn google_status(status: Option<u16>) -> &'static str {
    match status {
        Some(401) => "UNAUTHENTICATED",
        Some(403) => "PERMISSION_DENIED",
        Some(404) => "NOT_FOUND",
        Some(429) => "RESOURCE_EXHAUSTED",
        Some(503 | 529) => "UNAVAILABLE",
        Some(504) => "DEADLINE_EXCEEDED",
        Some(500..) | None => "INTERNAL",
        Some(_) => "INVALID_ARGUMENT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_text::Raw;
    use crate::wire::error_in::read_error;

    #[test]
    fn a_refusal_has_the_shape_of_its_protocol() {
        #[rustfmt::skip]
        let cases = [
            (Protocol::OpenaiChat,      r#"{"error":{"message":"a \"b\"","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#),
            (Protocol::OpenaiResponses, r#"{"error":{"message":"a \"b\"","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#),
            (Protocol::Anthropic,       r#"{"type":"error","error":{"type":"invalid_request_error","message":"a \"b\""}}"#),
            (Protocol::Gemini,          r#"{"error":{"code":400,"message":"a \"b\"","status":"INVALID_ARGUMENT"}}"#),
            (Protocol::Ollama,          r#"{"error":"a \"b\""}"#),
            (Protocol::Bedrock,         r#"{"message":"a \"b\""}"#),
            (Protocol::Cohere,          r#"{"message":"a \"b\""}"#),
        ];
        let error = ProviderError::new("a \"b\"").with_status(400);
        for (protocol, body) in cases {
            assert_eq!(error_reply(protocol, &error), body, "{protocol}");
        }
    }

    #[test]
    fn a_conversation_that_is_too_long_and_an_account_without_credit_have_their_own_codes() {
        let too_long = ProviderError::new("m").with_status(400).with_overflow(ContextOverflow::Final);
        let no_credit = ProviderError::new("m").with_status(429).with_lacks_credit(true);
        let code = |error| {
            let read = read_error(Raw::of(&error_reply(Protocol::OpenaiChat, error)).unwrap());
            read.and_then(|read| read.code)
        };
        assert_eq!(code(&too_long).as_deref(), Some("context_length_exceeded"));
        assert_eq!(code(&no_credit).as_deref(), Some("insufficient_quota"));
        let own = no_credit.clone().with_code("slow_down".to_owned());
        assert_eq!(code(&own).as_deref(), Some("slow_down"));
    }

    #[test]
    fn an_error_inside_a_stream_survives_a_round_trip() {
        #[rustfmt::skip]
        let cases = [
            ("nothing but words",   None,              None),
            ("a code",              Some("overloaded"), None),
            ("a code that is text", Some("1214"),      None),
            ("a code and a status", Some("slow_down"), Some(429)),
            ("a code that is the status", Some("503"), Some(503)),
            ("a status",            None,              Some(500)),
        ];
        for (name, code, status) in cases {
            let error = ProviderError::new("m").with_code(code.map(str::to_owned)).with_status(status);
            let body = object([("error", &error_in_stream(&error))]);
            assert_eq!(Raw::of(&body).ok().and_then(read_error), Some(error), "{name}: {body}");
        }
    }
}
