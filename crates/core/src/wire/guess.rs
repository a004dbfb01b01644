//! Which protocol some bytes are of, told from their first frames.

use super::json::{Kind, Raw, each_entry, member, text_of};
use crate::frame::{Framed, Framer, Framing};
use crate::protocol::Protocol;

/// Most bytes that are looked at; a protocol shows itself long before.
const LOOK: usize = 1 << 20;

/// The protocol of the head of a response; none if nothing in it is telling.
pub fn guess_protocol(head: &[u8]) -> Option<Protocol> {
    let mut framer = Framer::new(LOOK * 2);
    let mut found = None;
    let mut failure = None;
    let mut look = |framed: Framed<'_>| {
        let Framed::Frame(frame) = framed else { return };
        let Ok(text) = std::str::from_utf8(frame.data) else { return };
        if !frame.name.is_empty() && is_converse_event(&String::from_utf8_lossy(frame.name)) {
            found = found.or(Some(Protocol::Bedrock));
        }
        if let Ok(value) = Raw::of(text.trim_ascii()) {
            found = found.or_else(|| of_value(value));
            failure = failure.or_else(|| of_failure(value));
        } else if frame.cut {
            found = found.or_else(|| of_beginning(text));
        }
    };
    framer.push(head.get(..LOOK.min(head.len())).unwrap_or(head), &mut look);
    framer.finish(&mut look);
    match framer.framing() {
        Some(Framing::EventStream) => Some(Protocol::Bedrock),
        Some(Framing::Sse | Framing::Values) | None => found.or(failure),
    }
}

fn is_converse_event(name: &str) -> bool {
    matches!(name, "messageStart" | "contentBlockStart" | "contentBlockDelta" | "contentBlockStop" | "messageStop")
}

fn of_value(value: Raw<'_>) -> Option<Protocol> {
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
        // Both families fail with this; only Anthropic wraps the error.
        "error" if member(value, "error").is_some_and(|error| error.kind() == Kind::Object) => {
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
    each_entry(value, |name, _| converse |= is_converse_event(name));
    if converse {
        return Some(Protocol::Bedrock);
    }
    let message_is_object = member(value, "message").is_some_and(|message| message.kind() == Kind::Object);
    if has("done") || (message_is_object && has("created_at")) {
        return Some(Protocol::Ollama);
    }
    if message_is_object && (has("finish_reason") || has("usage")) {
        return Some(Protocol::Cohere);
    }
    None
}

/// An error says little about who sent it, and every codec reads it.
fn of_failure(value: Raw<'_>) -> Option<Protocol> {
    let error = member(value, "error");
    let status = error.and_then(|error| member(error, "status")).is_some_and(|status| status.kind() == Kind::Text);
    match super::failure::read_failure(value) {
        Some(_) if status => Some(Protocol::Gemini),
        Some(_) => Some(Protocol::OpenaiChat),
        None => None,
    }
}

/// A value too long to be seen whole, or cut off.
fn of_beginning(text: &str) -> Option<Protocol> {
    let mut start = text.len().min(4096);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let head = text.get(..start).unwrap_or("");
    #[rustfmt::skip]
    let signs = [
        ("\"choices\"", Protocol::OpenaiChat), ("\"chat.completion", Protocol::OpenaiChat),
        ("\"response.", Protocol::OpenaiResponses), ("\"object\":\"response\"", Protocol::OpenaiResponses),
        ("\"object\": \"response\"", Protocol::OpenaiResponses),
        ("\"candidates\"", Protocol::Gemini), ("\"stop_reason\"", Protocol::Anthropic),
        ("\"type\":\"message", Protocol::Anthropic), ("\"type\": \"message", Protocol::Anthropic), ("\"created_at\"", Protocol::Ollama),
        ("\"stopReason\"", Protocol::Bedrock), ("\"tool_plan\"", Protocol::Cohere),
    ];
    signs.into_iter().find(|(sign, _)| head.contains(sign)).map(|(_, protocol)| protocol)
}
