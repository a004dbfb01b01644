//! Protocols whose messages are lists of blocks.

use super::{Answer, Call, Carried, Sealed, Seen, Speaker, Thought, thought};
use crate::wire::json::{Raw, each_element, member, text_member, text_of};

/// What one block of a content list is.
enum Piece {
    Thought(Thought),
    Call { id: Option<String>, name: Option<String>, seal: Option<String> },
    Result(Option<String>),
    Text(String),
    Other,
}

/// A message whose content is a list of blocks.
fn blocks(
    (path, at, message): (String, usize, Raw<'_>),
    (list, maker): (&str, &str),
    read: impl Fn(&str, Raw<'_>) -> Piece,
) -> Option<Seen> {
    let made = text_member(message, "role").as_deref() == Some(maker);
    let mut seen = Seen::new(path, at, if made { Speaker::Assistant } else { Speaker::User });
    let content = member(message, list)?;
    seen.text = text_of(content).unwrap_or_default();
    let mut index = 0;
    each_element(content, |block| {
        let here = format!("{}.{list}[{index}]", seen.path);
        match read(&here, block) {
            Piece::Thought(thought) => {
                seen.begins_with_thinking |= index == 0 && thought.carried == Carried::Thought;
                if thought.carried == Carried::Text {
                    seen.text.push_str(&thought.text);
                }
                seen.thinking.push(thought);
            }
            Piece::Call { id, name, seal } => {
                seen.push_call(Call { path: here, id, name: name.unwrap_or_default(), seal });
            }
            Piece::Result(id) => seen.results.push(Answer { path: here, at, id }),
            Piece::Text(text) => seen.text.push_str(&text),
            Piece::Other => (),
        }
        index += 1;
    });
    if !made && index > 0 && seen.results.len() == index {
        seen.speaker = Speaker::Tool;
    }
    Some(seen)
}

pub(super) fn anthropic(path: String, at: usize, message: Raw<'_>) -> Option<Seen> {
    blocks((path, at, message), ("content", "assistant"), |here, block| {
        let text = |name: &str| text_member(block, name);
        match text("type").as_deref() {
            Some("thinking") => {
                Piece::Thought(thought(here.to_owned(), text("thinking"), Sealed::signed(text("signature"))))
            }
            Some("redacted_thinking") => Piece::Thought(thought(here.to_owned(), None, Sealed::hidden(text("data")))),
            Some("tool_use") => Piece::Call { id: text("id"), name: text("name"), seal: None },
            Some("tool_result") => Piece::Result(text("tool_use_id")),
            Some("text") => Piece::Text(text("text").unwrap_or_default()),
            _ => Piece::Other,
        }
    })
}

pub(super) fn converse(path: String, at: usize, message: Raw<'_>) -> Option<Seen> {
    blocks((path, at, message), ("content", "assistant"), |here, block| {
        if let Some(inner) = member(block, "reasoningContent") {
            let text = member(inner, "reasoningText");
            let words = text.and_then(|text| text_member(text, "text"));
            let signature = text.and_then(|text| text_member(text, "signature"));
            let seals = Sealed { signature, encrypted: text_member(inner, "redactedContent") };
            return Piece::Thought(thought(here.to_owned(), words, seals));
        }
        // Tools that the provider runs are not ours to answer.
        let served = |tool: Raw<'_>| text_member(tool, "type").is_some_and(|kind| kind != "tool_use");
        match (member(block, "toolUse"), member(block, "toolResult")) {
            (Some(tool), _) if served(tool) => Piece::Other,
            (None, Some(result)) if served(result) => Piece::Other,
            (Some(tool), _) => {
                Piece::Call { id: text_member(tool, "toolUseId"), name: text_member(tool, "name"), seal: None }
            }
            (None, Some(result)) => Piece::Result(text_member(result, "toolUseId")),
            (None, None) => text_member(block, "text").map_or(Piece::Other, Piece::Text),
        }
    })
}

pub(super) fn gemini(path: String, at: usize, message: Raw<'_>) -> Option<Seen> {
    blocks((path, at, message), ("parts", "model"), |here, part| {
        // Both spellings are taken.
        let either = |camel: &str, snake: &str| member(part, camel).or_else(|| member(part, snake));
        let seal = either("thoughtSignature", "thought_signature").and_then(text_of);
        let is_thought = member(part, "thought").is_some_and(|thought| thought.get() == "true");
        let text = text_member(part, "text");
        if let Some(call) = either("functionCall", "function_call") {
            Piece::Call { id: text_member(call, "id"), name: text_member(call, "name"), seal }
        } else if let Some(response) = either("functionResponse", "function_response") {
            Piece::Result(text_member(response, "id"))
        } else if is_thought {
            Piece::Thought(thought(here.to_owned(), text, Sealed::signed(seal)))
        } else if seal.is_some() {
            let unit = thought(here.to_owned(), text, Sealed::signed(seal));
            Piece::Thought(Thought { carried: Carried::Text, ..unit })
        } else {
            text.map_or(Piece::Other, Piece::Text)
        }
    })
}
