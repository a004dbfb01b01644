//! Protocols whose messages contain lists of blocks.

use super::{
    JudgedCall, JudgedMessage, JudgedResult, JudgedRole, JudgedThinking, SealCarrier, SealFields, thinking_at,
};
use crate::json_text::{Raw, each_element, member, text_member, text_of};

/// One block of a content list.
enum JudgedBlock {
    Thinking(JudgedThinking),
    Call { id: Option<String>, name: Option<String>, seal: Option<String> },
    Result(Option<String>),
    Text(String),
    Other,
}

/// Reads a message whose content is a list of blocks.
fn blocks(
    (path, at, message): (String, usize, Raw<'_>),
    (list, maker): (&str, &str),
    read: impl Fn(&str, Raw<'_>) -> JudgedBlock,
) -> Option<JudgedMessage> {
    let role = text_member(message, "role");
    // Instructions in the middle of a turn do not end it.
    if role.as_deref() == Some("system") {
        return None;
    }
    let made = role.as_deref() == Some(maker);
    let mut judged = JudgedMessage::new(path, at, if made { JudgedRole::Assistant } else { JudgedRole::User });
    let content = member(message, list)?;
    judged.text = text_of(content).unwrap_or_default();
    let mut index = 0;
    each_element(content, |block| {
        let here = format!("{}.{list}[{index}]", judged.path);
        match read(&here, block) {
            JudgedBlock::Thinking(thinking) => {
                judged.begins_with_thinking |= index == 0 && thinking.carrier == SealCarrier::Thinking;
                if thinking.carrier == SealCarrier::Text {
                    judged.text.push_str(&thinking.text);
                }
                judged.thinking.push(thinking);
            }
            JudgedBlock::Call { id, name, seal } => {
                judged.push_call(JudgedCall { path: here, id, name: name.unwrap_or_default(), seal });
            }
            JudgedBlock::Result(id) => judged.results.push(JudgedResult { path: here, at, id }),
            JudgedBlock::Text(text) => judged.text.push_str(&text),
            JudgedBlock::Other => (),
        }
        index += 1;
    });
    if !made && index > 0 && judged.results.len() == index {
        judged.role = JudgedRole::Tool;
    }
    Some(judged)
}

pub(super) fn anthropic(path: String, at: usize, message: Raw<'_>) -> Option<JudgedMessage> {
    blocks((path, at, message), ("content", "assistant"), |here, block| {
        let text = |name: &str| text_member(block, name);
        match text("type").as_deref() {
            Some("thinking") => JudgedBlock::Thinking(thinking_at(
                here.to_owned(),
                text("thinking"),
                SealFields::signed(text("signature")),
            )),
            Some("redacted_thinking") => {
                JudgedBlock::Thinking(thinking_at(here.to_owned(), None, SealFields::hidden(text("data"))))
            }
            Some("tool_use") => JudgedBlock::Call { id: text("id"), name: text("name"), seal: None },
            Some("tool_result") => JudgedBlock::Result(text("tool_use_id")),
            Some("text") => JudgedBlock::Text(text("text").unwrap_or_default()),
            _ => JudgedBlock::Other,
        }
    })
}

pub(super) fn converse(path: String, at: usize, message: Raw<'_>) -> Option<JudgedMessage> {
    blocks((path, at, message), ("content", "assistant"), |here, block| {
        if let Some(inner) = member(block, "reasoningContent") {
            let text = member(inner, "reasoningText");
            let words = text.and_then(|text| text_member(text, "text"));
            let signature = text.and_then(|text| text_member(text, "signature"));
            let seals = SealFields { signature, encrypted: text_member(inner, "redactedContent") };
            return JudgedBlock::Thinking(thinking_at(here.to_owned(), words, seals));
        }
        // Tools that the provider runs itself need no result from us.
        let served = |tool: Raw<'_>| text_member(tool, "type").is_some_and(|kind| kind != "tool_use");
        match (member(block, "toolUse"), member(block, "toolResult")) {
            (Some(tool), _) if served(tool) => JudgedBlock::Other,
            (None, Some(result)) if served(result) => JudgedBlock::Other,
            (Some(tool), _) => {
                JudgedBlock::Call { id: text_member(tool, "toolUseId"), name: text_member(tool, "name"), seal: None }
            }
            (None, Some(result)) => JudgedBlock::Result(text_member(result, "toolUseId")),
            (None, None) => text_member(block, "text").map_or(JudgedBlock::Other, JudgedBlock::Text),
        }
    })
}

pub(super) fn gemini(path: String, at: usize, message: Raw<'_>) -> Option<JudgedMessage> {
    blocks((path, at, message), ("parts", "model"), |here, part| {
        // Both spellings are accepted.
        let either = |camel: &str, snake: &str| member(part, camel).or_else(|| member(part, snake));
        let seal = either("thoughtSignature", "thought_signature").and_then(text_of);
        let is_thought = member(part, "thought").is_some_and(|thinking| thinking.get() == "true");
        let text = text_member(part, "text");
        if let Some(call) = either("functionCall", "function_call") {
            JudgedBlock::Call { id: text_member(call, "id"), name: text_member(call, "name"), seal }
        } else if let Some(response) = either("functionResponse", "function_response") {
            JudgedBlock::Result(text_member(response, "id"))
        } else if is_thought {
            JudgedBlock::Thinking(thinking_at(here.to_owned(), text, SealFields::signed(seal)))
        } else if seal.is_some() {
            let unit = thinking_at(here.to_owned(), text, SealFields::signed(seal));
            JudgedBlock::Thinking(JudgedThinking { carrier: SealCarrier::Text, ..unit })
        } else {
            text.map_or(JudgedBlock::Other, JudgedBlock::Text)
        }
    })
}
