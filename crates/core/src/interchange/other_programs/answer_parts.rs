//! The parts of an answer. Programs store them in different forms; the blocks
//! are made here.

use std::ops::Range;

use super::messages_of;
use crate::block::{
    Arguments, Block, CallId, Native, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ThinkingSpan, ToolCall,
    Unmodelled,
};
use crate::dialect::Dialect;
use crate::json_text::{ObjectWriter, canonical, list_of, quote};
use crate::protocol::Protocol;

/// A part of an answer. Empty strings mean that there is none.
#[derive(Debug)]
pub(super) enum AnswerPart {
    Text {
        text: String,
        signature: Option<String>,
    },
    Thinking(ThinkingPart),
    Call {
        id: String,
        name: String,
        arguments: String,
        signature: Option<String>,
    },
    /// An item of the Responses API, as the provider sent it.
    Item(String),
}

/// Thinking as a program stores it.
#[derive(Debug, Default)]
pub(super) struct ThinkingPart {
    pub(super) text: String,
    /// The ranges of summary items, if the program stores them one by one.
    pub(super) items: Vec<Range<usize>>,
    pub(super) signature: Option<String>,
    pub(super) encrypted: Option<String>,
    /// The id of an item of the Responses API. Several parts may share one.
    pub(super) item: Option<String>,
    /// The field that it was received in, if the program stores that.
    pub(super) source: Option<String>,
    pub(super) span: Option<ThinkingSpan>,
}

/// The blocks of one answer. Where exact replay needs it, they are parsed from a
/// body in the provider's format. `details` are the `reasoning_details` of the
/// whole answer, as JSON.
pub(super) fn answer_blocks(
    dialect: &Dialect,
    model: Option<&str>,
    parts: Vec<AnswerPart>,
    details: Option<&str>,
) -> Vec<Block> {
    // Thinking without an id and a payload is not an item that the provider accepts.
    let is_bare = |part: &AnswerPart| matches!(part, AnswerPart::Thinking(part) if part.item.is_none() && part.encrypted.is_none());
    let body = match (dialect.protocol, details) {
        (Protocol::OpenaiResponses, _) if !parts.iter().any(is_bare) => {
            format!(r#"{{"input":{}}}"#, list_of(items(&parts)))
        }
        (Protocol::OpenaiChat, Some(details)) => chat_body(details, &parts),
        (
            Protocol::OpenaiResponses
            | Protocol::OpenaiChat
            | Protocol::Anthropic
            | Protocol::Gemini
            | Protocol::Ollama
            | Protocol::Bedrock
            | Protocol::Cohere,
            _,
        ) => {
            let source = dialect.rules(model).read.text.first().map_or("thinking", String::as_str);
            return parts.into_iter().filter_map(|part| block(part, source)).collect();
        }
    };
    messages_of(dialect, model, &body).into_iter().flat_map(|message| message.blocks).collect()
}

/// Builds output items. Parts of one thinking item share its id.
fn items(parts: &[AnswerPart]) -> Vec<String> {
    let mut items = Vec::new();
    let mut rest = parts.iter().peekable();
    while let Some(part) = rest.next() {
        let mut out = ObjectWriter::default();
        match part {
            AnswerPart::Item(item) => {
                items.push(item.clone());
                continue;
            }
            AnswerPart::Thinking(thinking) => {
                let mut shared = vec![thinking];
                while let Some(AnswerPart::Thinking(next)) = rest.next_if(|next| {
                    matches!(next, AnswerPart::Thinking(next) if next.item.is_some() && next.item == thinking.item)
                }) {
                    shared.push(next);
                }
                out.push("type", "\"reasoning\"");
                if let Some(id) = &thinking.item {
                    out.push_text("id", id);
                }
                let texts = shared.iter().map(|part| part.text.as_str());
                out.push_list(
                    "summary",
                    texts.map(|text| format!(r#"{{"type":"summary_text","text":{}}}"#, quote(text))),
                );
                if let Some(encrypted) = shared.iter().rev().find_map(|part| part.encrypted.as_ref()) {
                    out.push_text("encrypted_content", encrypted);
                }
            }
            AnswerPart::Call { id, name, arguments, .. } => {
                out.push("type", "\"function_call\"");
                out.push_text("call_id", id);
                out.push_text("name", name);
                out.push_text("arguments", arguments);
            }
            AnswerPart::Text { text, .. } => {
                out.push("type", "\"message\"");
                out.push("role", "\"assistant\"");
                out.push_raw("content", &format!(r#"[{{"type":"output_text","text":{}}}]"#, quote(text)));
            }
        }
        items.push(out.finish());
    }
    items
}

/// Builds a Chat Completions body with the original details.
fn chat_body(details: &str, parts: &[AnswerPart]) -> String {
    let mut text = String::new();
    let mut calls = Vec::new();
    for part in parts {
        match part {
            AnswerPart::Text { text: more, .. } => text.push_str(more),
            AnswerPart::Call { id, name, arguments, .. } => {
                let mut out = ObjectWriter::default();
                out.push_text("id", id);
                out.push("type", "\"function\"");
                out.object("function", |function| {
                    function.push_text("name", name);
                    function.push_text("arguments", arguments);
                });
                calls.push(out.finish());
            }
            // The details contain it.
            AnswerPart::Thinking(_) | AnswerPart::Item(_) => (),
        }
    }
    let mut out = ObjectWriter::default();
    out.push("role", "\"assistant\"");
    out.push_text("content", &text);
    out.push("reasoning_details", details);
    if !calls.is_empty() {
        out.push_list("tool_calls", calls);
    }
    format!(r#"{{"messages":[{}]}}"#, out.finish())
}

fn block(part: AnswerPart, source: &str) -> Option<Block> {
    Some(match part {
        AnswerPart::Text { text, signature } if text.is_empty() && signature.is_none() => return None,
        AnswerPart::Text { text, signature } => {
            Block::Text(Text { text, seal: seal(SealKind::Signature, signature), ..Text::default() })
        }
        AnswerPart::Thinking(thinking) => Block::Thinking(thinking_block(thinking, source)?),
        AnswerPart::Call { id, name, arguments, signature } => Block::ToolCall(ToolCall {
            seal: seal(SealKind::Signature, signature),
            ..ToolCall::new(CallId::from_stored(id), name, Arguments::parse(arguments).canonical())
        }),
        AnswerPart::Item(json) => {
            let json = canonical(&json).into_owned();
            Block::Unmodelled(Unmodelled { native: Native { json, text_member: None } })
        }
    })
}

fn thinking_block(part: ThinkingPart, source: &str) -> Option<Thinking> {
    let ThinkingPart { text, items, signature, encrypted, source: own_source, span, item: _ } = part;
    let seals =
        Seals { signature: seal(SealKind::Signature, signature), encrypted: seal(SealKind::Encrypted, encrypted) };
    let is_redacted = text.is_empty() && seals.encrypted.is_some();
    let is_sealed = seals.signature.is_some() || seals.encrypted.is_some();
    let content = match (text.is_empty(), is_sealed) {
        (true, false) => return None,
        (true, true) => ThinkingContent::Hidden { seals },
        (false, true) => ThinkingContent::Sealed { text, seals },
        (false, false) => ThinkingContent::Open { text },
    };
    let source = own_source.unwrap_or_else(|| if is_redacted { "redacted_thinking" } else { source }.to_owned());
    Some(Thinking { items, span, ..Thinking::new(content, source) })
}

fn seal(kind: SealKind, payload: Option<String>) -> Option<Seal> {
    payload.filter(|payload| !payload.is_empty()).map(|payload| Seal { kind, payload })
}
