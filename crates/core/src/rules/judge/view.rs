//! A request as a provider's checks see it: who says what, with which
//! thinking, whatever the protocol.

use crate::protocol::Protocol;
use crate::wire::json::{Kind, Raw, at_path, each_element, member, text_member, text_of};

/// One message, or one run of items, of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    /// Where it stands, as a path into the body.
    pub(super) path: String,
    pub(super) speaker: Speaker,
    pub(super) thinking: Vec<Thought>,
    pub(super) calls: Vec<Call>,
    /// The thinking field is there, with or without anything in it.
    pub(super) has_field: bool,
    pub(super) begins_with_thinking: bool,
    pub(super) has_empty_content: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
    /// Results of calls only: no turn begins here.
    Tool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thought {
    pub(super) path: String,
    pub(super) text: String,
    /// A signature or an encrypted payload.
    pub(super) seals: Vec<String>,
    /// Nothing follows it.
    pub(super) is_last: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) path: String,
    pub(super) seal: Option<String>,
}

impl Seen {
    fn new(path: String, speaker: Speaker) -> Seen {
        Seen {
            path,
            speaker,
            thinking: Vec::new(),
            calls: Vec::new(),
            has_field: false,
            begins_with_thinking: false,
            has_empty_content: false,
        }
    }
}

/// Every message of a request, in order. `fields` are the names that thinking
/// may stand under beside the content, `call_fields` where a call's seal is.
pub(super) fn view(protocol: Protocol, body: Raw<'_>, fields: &[String], call_fields: &[String]) -> Vec<Seen> {
    match protocol {
        Protocol::OpenaiChat | Protocol::Ollama | Protocol::Cohere => {
            each(body, "messages", |at, message| chat(at, message, fields, call_fields))
        }
        Protocol::Anthropic => each(body, "messages", anthropic),
        Protocol::Bedrock => each(body, "messages", converse),
        Protocol::Gemini => each(body, "contents", gemini),
        Protocol::OpenaiResponses => responses(body),
    }
}

fn each<'a>(body: Raw<'a>, list: &str, read: impl Fn(String, Raw<'a>) -> Option<Seen>) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut at = 0;
    if let Some(messages) = member(body, list) {
        each_element(messages, |message| {
            seen.extend(read(format!("{list}[{at}]"), message));
            at += 1;
        });
    }
    seen
}

fn chat(path: String, message: Raw<'_>, fields: &[String], call_fields: &[String]) -> Option<Seen> {
    let speaker = match text_member(message, "role").as_deref() {
        Some("user") => Speaker::User,
        Some("assistant") => Speaker::Assistant,
        Some("tool") => Speaker::Tool,
        _ => return None,
    };
    let mut seen = Seen::new(path, speaker);
    for field in fields {
        let Some(value) = member(message, field) else { continue };
        seen.has_field = true;
        let at = format!("{}.{field}", seen.path);
        match value.kind() {
            Kind::Text => seen.thinking.push(thought(at, text_of(value), [])),
            Kind::Array => each_element(value, |entry| {
                let seals = [text_member(entry, "signature"), text_member(entry, "data")];
                let text = text_member(entry, "text").or_else(|| text_member(entry, "summary"));
                seen.thinking.push(thought(at.clone(), text, seals));
            }),
            Kind::Null | Kind::Object | Kind::Other => (),
        }
    }
    if let Some(content) = member(message, "content") {
        seen.has_empty_content = content.get() == "\"\"";
        each_element(content, |part| {
            if text_member(part, "type").as_deref() == Some("thinking") {
                let text = text_member(part, "thinking");
                seen.thinking.push(thought(format!("{}.content", seen.path), text, [text_member(part, "signature")]));
            }
        });
    }
    if let Some(calls) = member(message, "tool_calls") {
        each_element(calls, |call| {
            let seal = call_fields.iter().find_map(|path| at_path(call, path).and_then(text_of));
            seen.calls.push(Call { path: format!("{}.tool_calls[{}]", seen.path, seen.calls.len()), seal });
        });
    }
    Some(seen)
}

fn thought<const N: usize>(path: String, text: Option<String>, seals: [Option<String>; N]) -> Thought {
    Thought { path, text: text.unwrap_or_default(), seals: seals.into_iter().flatten().collect(), is_last: false }
}

/// What one block of a content list is.
enum Piece {
    Thought(Thought),
    Call(Option<String>),
    Result,
    Other,
}

/// A message whose content is a list of blocks.
fn blocks(
    path: String,
    message: Raw<'_>,
    (list, maker): (&str, &str),
    read: impl Fn(&str, Raw<'_>) -> Piece,
) -> Option<Seen> {
    let made = text_member(message, "role").as_deref() == Some(maker);
    let mut seen = Seen::new(path, if made { Speaker::Assistant } else { Speaker::User });
    let content = member(message, list)?;
    let (mut at, mut n_results) = (0, 0);
    each_element(content, |block| {
        let here = format!("{}.{list}[{at}]", seen.path);
        match read(&here, block) {
            Piece::Thought(thought) => {
                seen.begins_with_thinking |= at == 0;
                seen.thinking.push(thought);
            }
            Piece::Call(seal) => seen.calls.push(Call { path: here, seal }),
            Piece::Result => n_results += 1,
            Piece::Other => (),
        }
        at += 1;
    });
    if !made && n_results > 0 && n_results == at {
        seen.speaker = Speaker::Tool;
    }
    Some(seen)
}

fn anthropic(path: String, message: Raw<'_>) -> Option<Seen> {
    blocks(path, message, ("content", "assistant"), |here, block| {
        let text = |name: &str| text_member(block, name);
        match text("type").as_deref() {
            Some("thinking") => Piece::Thought(thought(here.to_owned(), text("thinking"), [text("signature")])),
            Some("redacted_thinking") => Piece::Thought(thought(here.to_owned(), None, [text("data")])),
            Some("tool_use") => Piece::Call(None),
            Some("tool_result") => Piece::Result,
            _ => Piece::Other,
        }
    })
}

fn converse(path: String, message: Raw<'_>) -> Option<Seen> {
    blocks(path, message, ("content", "assistant"), |here, block| {
        if let Some(inner) = member(block, "reasoningContent") {
            let text = member(inner, "reasoningText");
            let signature = text.and_then(|text| text_member(text, "signature"));
            let words = text.and_then(|text| text_member(text, "text"));
            let seals = [signature, text_member(inner, "redactedContent")];
            return Piece::Thought(thought(here.to_owned(), words, seals));
        }
        match (member(block, "toolUse"), member(block, "toolResult")) {
            (Some(_), _) => Piece::Call(None),
            (None, Some(_)) => Piece::Result,
            (None, None) => Piece::Other,
        }
    })
}

fn gemini(path: String, message: Raw<'_>) -> Option<Seen> {
    blocks(path, message, ("parts", "model"), |here, part| {
        // Both spellings are taken.
        let either = |camel: &str, snake: &str| member(part, camel).or_else(|| member(part, snake));
        let seal = either("thoughtSignature", "thought_signature").and_then(text_of);
        let is_thought = member(part, "thought").is_some_and(|thought| thought.get() == "true");
        if either("functionCall", "function_call").is_some() {
            Piece::Call(seal)
        } else if is_thought || seal.is_some() {
            Piece::Thought(thought(here.to_owned(), text_member(part, "text"), [seal]))
        } else if either("functionResponse", "function_response").is_some() {
            Piece::Result
        } else {
            Piece::Other
        }
    })
}

/// Items in a row that the model made are one message.
fn responses(body: Raw<'_>) -> Vec<Seen> {
    let mut seen: Vec<Seen> = Vec::new();
    let mut at = 0;
    let Some(input) = member(body, "input") else { return seen };
    each_element(input, |item| {
        let here = format!("input[{at}]");
        at += 1;
        let kind = text_member(item, "type").unwrap_or_default();
        let by_user = text_member(item, "role").is_some_and(|role| role != "assistant");
        let speaker = match kind.as_str() {
            "function_call_output" | "custom_tool_call_output" => Speaker::Tool,
            _ if by_user => Speaker::User,
            _ => Speaker::Assistant,
        };
        if seen.last().is_none_or(|last| last.speaker != speaker || speaker == Speaker::User) {
            seen.push(Seen::new(here.clone(), speaker));
        }
        let Some(run) = seen.last_mut() else { return };
        for earlier in &mut run.thinking {
            earlier.is_last = false;
        }
        match kind.as_str() {
            "reasoning" => {
                let mut thought = thought(here, None, [text_member(item, "encrypted_content")]);
                thought.is_last = true;
                run.begins_with_thinking |= run.calls.is_empty() && run.thinking.is_empty();
                run.thinking.push(thought);
            }
            "function_call" | "custom_tool_call" => {
                run.calls.push(Call { path: here, seal: None });
            }
            _ => (),
        }
    });
    seen
}
