//! The input of a request writer, and helpers that protocols share.

use std::cell::RefCell;

use serde_json::{Map, Value};

use super::call_ids::CallIds;
use super::encode_cache::EncodeCache;
use super::json::{ObjectWriter, list_of, quote};
use crate::block::{Arguments, Block, Thinking};
use crate::conversation::ToolSpec;
use crate::dialect::{Carrier, Foreign, Rules};
use crate::history::EntryId;
use crate::message::{Message, Role};
use crate::rules::{DummySeals, EgressAction, MessagePlan, RequestPreferences};

/// A request before it is written in a protocol's form. Parameters come first and
/// messages last, so that successive requests share a prefix.
pub(super) struct RequestDraft<'a> {
    pub(super) model: &'a str,
    pub(super) messages: &'a [&'a Message],
    pub(super) plans: &'a [MessagePlan],
    pub(super) tools: &'a [ToolSpec],
    pub(super) parameters: &'a Map<String, Value>,
    pub(super) rules: &'a Rules,
    pub(super) preferences: &'a RequestPreferences,
    /// The history entry of each message, where known.
    pub(super) entries: &'a [EntryId],
    pub(super) cache: &'a EncodeCache,
    pub(super) call_ids: CallIds,
    /// Token counts, filled in while the body is written.
    pub(super) tokens: RefCell<BodyTokens>,
}

/// Token counts of a body.
#[derive(Debug, Default)]
pub(super) struct BodyTokens {
    /// Everything but the messages.
    pub(super) head: u64,
    /// One per message, in order.
    pub(super) messages: Vec<u64>,
}

/// A tool, as JSON values.
pub(super) struct ToolJson<'a> {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) parameters: &'a str,
}

impl<'a> RequestDraft<'a> {
    /// Starts a body with the model, for protocols that name it there.
    pub(super) fn begin(&self) -> ObjectWriter {
        let mut body = ObjectWriter::default();
        body.push("model", &quote(self.model));
        body.push("stream", "true");
        body
    }

    /// The list of tools, each written by `write`; none if there are no tools.
    pub(super) fn tools(&self, write: impl Fn(&ToolJson<'_>) -> String) -> Option<String> {
        let to_json = |tool: &'a ToolSpec| ToolJson {
            name: quote(&tool.name),
            description: quote(&tool.description),
            // Some providers refuse an empty schema.
            parameters: if tool.parameters == "{}" { r#"{"type":"object","properties":{}}"# } else { &tool.parameters },
        };
        let tools: Vec<String> = self.tools.iter().map(|tool| write(&to_json(tool))).collect();
        (!tools.is_empty()).then(|| list(&tools))
    }

    /// Adds tools as `{"type":"function","function":{…}}`, which several
    /// protocols use.
    pub(super) fn push_function_tools(&self, body: &mut ObjectWriter) {
        let tools = self.tools(|tool| {
            let ToolJson { name, description, parameters } = tool;
            let function = object([("name", name), ("description", description), ("parameters", parameters)]);
            object([("type", "\"function\""), ("function", &function)])
        });
        if let Some(tools) = tools {
            body.push_raw("tools", &tools);
        }
    }

    /// A call id that this provider accepts; its own ids stay unchanged.
    pub(super) fn call_id(&self, id: &str, plan: &MessagePlan) -> String {
        quote(if plan.own { id } else { self.call_ids.get(id) })
    }

    pub(super) fn push_parameters(&self, body: &mut ObjectWriter) {
        for (name, value) in self.parameters {
            body.push_raw(name, &value.to_string());
        }
    }

    /// The documented placeholder for a missing seal on a call, if the dialect or
    /// a refusal asks for one.
    pub(super) fn dummy_seal(&self) -> Option<&'a str> {
        let echo = &self.rules.echo;
        let by_dialect =
            echo.foreign == Foreign::DummySignature && matches!(echo.carrier, Carrier::Part | Carrier::CallExtra);
        let wanted = match self.preferences.repair_effect.dummy_seals {
            DummySeals::AsTheDialectSays => by_dialect,
            DummySeals::Missing | DummySeals::Everywhere => true,
        };
        Some(echo.dummy.as_str()).filter(|dummy| wanted && !dummy.is_empty())
    }

    /// The system prompt, joined if it has several messages.
    pub(super) fn system(&self) -> Option<String> {
        let texts: Vec<String> = self
            .messages
            .iter()
            .filter(|message| message.role == Role::System)
            .map(|message| joined_text(&message.blocks))
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// Writes the messages as the last member of the body. `write` returns one
    /// message as JSON, several separated by commas, or an empty string.
    pub(super) fn finish(&self, body: ObjectWriter, member: &str, write: WriteMessage) -> String {
        self.finish_merged(body, member, |_| None, write)
    }

    /// As above, for protocols whose roles must alternate. `opening_for` returns
    /// the start of a message (`{"role":"user","content":[`), `write` its
    /// content, and adjacent messages with the same opening are merged.
    pub(super) fn finish_merged(
        &self,
        body: ObjectWriter,
        member: &str,
        opening_for: impl Fn(Role) -> Option<&'static str>,
        write: WriteMessage,
    ) -> String {
        let mut counted = BodyTokens { head: self.cache.head_tokens(body.written()), messages: Vec::new() };
        // Written in place: copying a long body would be most of the work.
        let mut list = body.into_list(member, self.cache.body_size_hint() + 1024);
        let begins = list.len();
        let mut open: Option<&str> = None;
        for (at, (message, plan)) in self.messages.iter().zip(self.plans).enumerate() {
            let entry = self.entries.get(at).copied();
            let (json, tokens) = self.cache.get_or_write(entry, message, plan, || write(self, message, plan));
            counted.messages.push(tokens);
            if json.is_empty() {
                continue;
            }
            match opening_for(message.role) {
                Some(opening) if open == Some(opening) => list.push(','),
                Some(opening) => {
                    close_merged(&mut open, &mut list);
                    list.push_str(opening);
                    open = Some(opening);
                    counted.head += OPENING_TOKENS;
                }
                None if list.len() > begins => list.push(','),
                None => (),
            }
            list.push_str(&json);
        }
        if open.is_some() {
            list.push_str("]}");
        }
        list.push_str("]}");
        self.tokens.replace(counted);
        list
    }
}

/// The tokens of a message's opening, rounded up.
const OPENING_TOKENS: u64 = 8;

/// Writes one message in a protocol's form.
pub(super) type WriteMessage = fn(&RequestDraft<'_>, &Message, &MessagePlan) -> String;

fn close_merged(open: &mut Option<&str>, list: &mut String) {
    if open.take().is_some() {
        list.push_str("]},");
    }
}

/// The blocks of a message, each with its decided action.
pub(super) fn blocks_with_actions<'a>(
    message: &'a Message,
    plan: &'a MessagePlan,
) -> impl Iterator<Item = (&'a Block, EgressAction)> + Clone {
    message.blocks.iter().zip(plan.actions.iter().copied())
}

/// The blocks of a message that are sent.
pub(super) fn sent_blocks<'a>(
    message: &'a Message,
    plan: &'a MessagePlan,
) -> impl Iterator<Item = (&'a Block, EgressAction)> {
    blocks_with_actions(message, plan).filter(|(_, action)| *action != EgressAction::Dropped)
}

/// Joins values with commas, for a message that becomes several list elements.
pub(super) fn join_with_commas(values: impl Iterator<Item = String>) -> String {
    let mut out = String::new();
    for value in values {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(&value);
    }
    out
}

/// The opening of a message in protocols where user and assistant alternate. All
/// tool results go into one user message.
pub(super) fn turn_opening(role: Role) -> Option<&'static str> {
    match role {
        Role::Assistant => Some(r#"{"role":"assistant","content":["#),
        Role::User | Role::Tool | Role::System => Some(r#"{"role":"user","content":["#),
    }
}

pub(super) fn joined_text(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => None,
    });
    texts.collect()
}

/// Arguments as an object. Invalid JSON was never executed, so it is sent back as
/// no arguments.
pub(super) fn arguments_object(arguments: &Arguments) -> &str {
    match arguments {
        Arguments::Json(json) if json.trim_start().starts_with('{') => json,
        Arguments::Json(_) | Arguments::Broken(_) => "{}",
    }
}

/// Arguments as the text that was received.
pub(super) fn arguments_text(arguments: &Arguments) -> &str {
    match arguments {
        Arguments::Json(text) | Arguments::Broken(text) => text,
    }
}

pub(super) fn signature(thinking: &Thinking) -> Option<&str> {
    thinking.seals().and_then(|seals| seals.signature.as_ref()).map(|seal| seal.payload.as_str())
}

pub(super) fn encrypted(thinking: &Thinking) -> Option<&str> {
    thinking.seals().and_then(|seals| seals.encrypted.as_ref()).map(|seal| seal.payload.as_str())
}

/// A list of values that are already JSON.
pub(super) fn list(values: &[String]) -> String {
    list_of(values)
}

/// An object whose member values are already JSON.
pub(super) fn object<const N: usize>(members: [(&str, &str); N]) -> String {
    let mut out = ObjectWriter::default();
    for (name, json) in members {
        out.push_raw(name, json);
    }
    out.finish()
}

/// `{"type":"text","text":…}`, which several protocols use.
pub(super) fn typed_text(kind: &str, text: &str) -> String {
    object([("type", &quote(kind)), ("text", &quote(text))])
}

/// A call id: unchanged for the provider that made it, else limited to characters
/// that every provider accepts. A call and its result get the same id.
pub(super) fn call_id(id: &str, plan: &MessagePlan) -> String {
    if plan.own {
        return quote(id);
    }
    quote(&id.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-', "_"))
}
