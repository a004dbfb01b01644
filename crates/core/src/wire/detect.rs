//! Detects the protocol of a response from its first frames.

use crate::frame::{Framed, Framer, Framing};
use crate::json_text::{JsonKind, Raw, each_member, member, text_of};
use crate::protocol::Protocol;

/// The most bytes inspected; far more than any protocol needs.
const MAX_BYTES: usize = 1 << 20;

/// The protocol of the beginning of a response, or none if nothing identifies it.
pub fn detect_protocol(head: &[u8]) -> Option<Protocol> {
    let mut framer = Framer::new(MAX_BYTES * 2);
    let mut found = None;
    let mut by_error = None;
    let mut inspect = |framed: Framed<'_>| {
        let Framed::Frame(frame) = framed else { return };
        let Ok(text) = std::str::from_utf8(frame.data) else { return };
        if !frame.name.is_empty() && is_converse_event(&String::from_utf8_lossy(frame.name)) {
            found = found.or(Some(Protocol::Bedrock));
        }
        if let Ok(value) = Raw::of(text.trim_ascii()) {
            found = found.or_else(|| protocol_of_value(value));
            by_error = by_error.or_else(|| protocol_of_error(value));
        } else if frame.cut {
            found = found.or_else(|| protocol_of_prefix(text));
        }
    };
    framer.push(head.get(..MAX_BYTES.min(head.len())).unwrap_or(head), &mut inspect);
    framer.finish(&mut inspect);
    match framer.framing() {
        Some(Framing::EventStream) => Some(Protocol::Bedrock),
        Some(Framing::Sse | Framing::Values) | None => found.or(by_error),
    }
}

fn is_converse_event(name: &str) -> bool {
    matches!(name, "messageStart" | "contentBlockStart" | "contentBlockDelta" | "contentBlockStop" | "messageStop")
}

fn protocol_of_value(value: Raw<'_>) -> Option<Protocol> {
    let text = |name: &str| member(value, name).and_then(text_of);
    let has = |name: &str| member(value, name).is_some();
    let event = text("type").unwrap_or_default();
    let object = text("object").unwrap_or_default();
    if has("choices") || object.starts_with("chat.completion") {
        return Some(Protocol::OpenaiChat);
    }
    if event.starts_with("response.") || object == "response" {
        return Some(Protocol::OpenaiResponses);
    }
    match event.as_str() {
        "message_start" | "content_block_start" | "content_block_delta" | "message" => {
            return Some(Protocol::Anthropic);
        }
        "message-start" | "content-start" | "content-delta" | "tool-plan-delta" => return Some(Protocol::Cohere),
        // OpenAI Responses and Anthropic both send this; only Anthropic wraps the
        // error.
        "error" if member(value, "error").is_some_and(|error| error.kind() == JsonKind::Object) => {
            return Some(Protocol::Anthropic);
        }
        "error" => return Some(Protocol::OpenaiResponses),
        _ => (),
    }
    if has("candidates") || has("usageMetadata") || has("promptFeedback") {
        return Some(Protocol::Gemini);
    }
    if member(value, "output").is_some_and(|output| member(output, "message").is_some()) || has("stopReason") {
        return Some(Protocol::Bedrock);
    }
    let mut converse = false;
    each_member(value, |name, _| converse |= is_converse_event(name));
    if converse {
        return Some(Protocol::Bedrock);
    }
    let message_is_object = member(value, "message").is_some_and(|message| message.kind() == JsonKind::Object);
    if has("done") || (message_is_object && has("created_at")) {
        return Some(Protocol::Ollama);
    }
    if message_is_object && (has("finish_reason") || has("usage")) {
        return Some(Protocol::Cohere);
    }
    None
}

/// Error bodies look alike, and every decoder reads them.
fn protocol_of_error(value: Raw<'_>) -> Option<Protocol> {
    let error = member(value, "error");
    let status = error.and_then(|error| member(error, "status")).is_some_and(|status| status.kind() == JsonKind::Text);
    match super::error_in::read_error(value) {
        Some(_) if status => Some(Protocol::Gemini),
        Some(_) => Some(Protocol::OpenaiChat),
        None => None,
    }
}

/// For a value that is incomplete: too long, or cut off.
fn protocol_of_prefix(text: &str) -> Option<Protocol> {
    let mut start = text.len().min(4096);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let head = text.get(..start).unwrap_or("");
    #[rustfmt::skip]
    let markers = [
        ("\"choices\"", Protocol::OpenaiChat), ("\"chat.completion", Protocol::OpenaiChat),
        ("\"response.", Protocol::OpenaiResponses), ("\"object\":\"response\"", Protocol::OpenaiResponses),
        ("\"object\": \"response\"", Protocol::OpenaiResponses),
        ("\"candidates\"", Protocol::Gemini), ("\"stop_reason\"", Protocol::Anthropic),
        ("\"type\":\"message", Protocol::Anthropic), ("\"type\": \"message", Protocol::Anthropic), ("\"created_at\"", Protocol::Ollama),
        ("\"stopReason\"", Protocol::Bedrock), ("\"tool_plan\"", Protocol::Cohere),
    ];
    markers.into_iter().find(|(marker, _)| head.contains(marker)).map(|(_, protocol)| protocol)
}
