//! The input of a request writer, and helpers that protocols share.

use std::borrow::{BorrowMut, Cow};
use std::cell::RefCell;

use serde_json::{Map, Value};

use super::cache_points;
use super::call_ids::CallIds;
use super::encode_cache::EncodeCache;
use super::parameters_out::has_strict_tools;
use crate::block::{Arguments, Block, Thinking};
use crate::conversation::ToolSpec;
use crate::dialect::{Carrier, Foreign, Rules};
use crate::history::EntryId;
use crate::json_text::{ListWriter, NestedObject, ObjectWriter, list_of, object_into};
use crate::message::{Message, Role};
use crate::parameters::{CacheHint, NativeTool};
use crate::protocol::Protocol;
use crate::rules::{CacheMark, DummySeals, EgressAction, MessagePlan, RequestPreferences};

/// A request before it is written in a protocol's form. Parameters come first and
/// messages last, so that successive requests share a prefix.
pub(super) struct RequestDraft<'a> {
    pub(super) protocol: Protocol,
    pub(super) model: &'a str,
    pub(super) messages: &'a [&'a Message],
    pub(super) plans: &'a [MessagePlan],
    pub(super) tools: &'a [ToolSpec],
    /// The cache point after the tools.
    pub(super) cache_after_tools: Option<&'a CacheHint>,
    /// Those of other protocols are not sent.
    pub(super) native_tools: &'a [NativeTool],
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

/// Where a member of a tool belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolLevel {
    /// Next to the name.
    Inner,
    /// Around the object that holds the name.
    Outer,
}

/// Token counts of a body.
#[derive(Debug, Default)]
pub(super) struct BodyTokens {
    /// Everything but the messages.
    pub(super) head: u64,
    /// One per message, in order.
    pub(super) messages: Vec<u64>,
}

impl<'a> RequestDraft<'a> {
    /// Starts a body with the model, for protocols that name it there.
    pub(super) fn begin(&self) -> ObjectWriter {
        let mut body = ObjectWriter::default();
        body.push_text("model", self.model);
        body.push_raw("stream", "true");
        body
    }

    /// Whether there is any tool to send.
    pub(super) fn has_tools(&self) -> bool {
        !self.tools.is_empty() || self.own_native_tools().next().is_some()
    }

    /// The tools that this provider runs itself.
    pub(super) fn own_native_tools(&self) -> impl Iterator<Item = &'a NativeTool> {
        let protocol = self.protocol;
        self.native_tools.iter().filter(move |tool| tool.protocol == protocol)
    }

    /// Adds the tools, each written by `write`, as the list `name`; nothing if
    /// there are none.
    pub(super) fn push_tools(
        &self,
        body: &mut ObjectWriter<impl BorrowMut<String>>,
        name: &str,
        write: impl Fn(&mut NestedObject<'_>, &ToolSpec),
    ) {
        if self.has_tools() {
            body.list(name, |list| {
                self.tools.iter().for_each(|tool| list.object(|out| write(out, tool)));
                let cache_point = self.cache_after_tools.map(|hint| hint.ttl.as_deref());
                match (self.protocol, cache_point) {
                    (Protocol::Bedrock, Some(ttl)) => list.push_raw(&cache_points::cache_point(ttl)),
                    (_, Some(ttl)) => list.add_to_last(&cache_points::cache_control(ttl)),
                    (_, None) => (),
                }
                self.own_native_tools().for_each(|tool| list.push_raw(&tool.json));
            });
        }
    }

    /// Adds tools as `{"type":"function","function":{…}}`, which several
    /// protocols use.
    pub(super) fn push_function_tools(&self, body: &mut ObjectWriter) {
        self.push_tools(body, "tools", |out, tool| {
            out.push_raw("type", "\"function\"");
            out.object("function", |function| {
                push_tool(function, tool, "parameters");
                self.push_tool_members(function, tool, Some("function"), ToolLevel::Inner);
            });
            self.push_tool_members(out, tool, Some("function"), ToolLevel::Outer);
        });
    }

    /// Adds the members of a tool that only some protocols have: `strict`, and the
    /// members without a neutral form. `inner` is the object that holds its name, if
    /// that is not the tool itself.
    pub(super) fn push_tool_members(
        &self,
        out: &mut NestedObject<'_>,
        tool: &ToolSpec,
        inner: Option<&str>,
        level: ToolLevel,
    ) {
        if let (ToolLevel::Inner, Some(strict)) = (level, tool.strict.filter(|_| has_strict_tools(self.protocol))) {
            out.push_raw("strict", if strict { "true" } else { "false" });
        }
        let Some(extra) = tool.extra.as_ref().filter(|extra| extra.protocol == self.protocol) else { return };
        for (name, value) in &extra.members {
            match (level, inner == Some(name.as_str()), value) {
                (ToolLevel::Inner, true, Value::Object(members)) => {
                    members.iter().for_each(|(name, value)| out.push_raw(name, &value.to_string()));
                }
                (ToolLevel::Inner, false, value) if inner.is_none() => out.push_raw(name, &value.to_string()),
                (ToolLevel::Outer, false, value) if inner.is_some() => out.push_raw(name, &value.to_string()),
                (ToolLevel::Inner | ToolLevel::Outer, ..) => (),
            }
        }
    }

    /// A call id that this provider accepts; its own ids stay unchanged.
    pub(super) fn call_id<'i>(&'i self, id: &'i str, plan: &MessagePlan) -> &'i str {
        if plan.own { id } else { self.call_ids.get(id) }
    }

    pub(super) fn push_parameters(&self, body: &mut ObjectWriter) {
        self.push_parameters_except(body, "");
    }

    /// As above, without a member that the protocol writes together with others.
    pub(super) fn push_parameters_except(&self, body: &mut ObjectWriter, member: &str) {
        for (name, value) in self.parameters.iter().filter(|(name, _)| *name != member) {
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

    /// The system prompt: the system messages before all others. A later one stays at
    /// its place, because moving it would change the beginning of every request.
    fn prompt(&self) -> impl Iterator<Item = (&'a Message, &'a MessagePlan)> {
        let messages = self.messages.iter().copied().zip(self.plans);
        messages.take_while(|(message, _)| message.role == Role::System)
    }

    /// Whether a message is part of the system prompt.
    pub(super) fn is_prompt(&self, message: &Message) -> bool {
        message.role == Role::System && self.prompt().any(|(known, _)| std::ptr::eq(known, message))
    }

    /// The system prompt, joined if it has several messages.
    pub(super) fn system(&self) -> Option<String> {
        let texts: Vec<String> = self.prompt().map(|(message, _)| texts(&message.blocks).collect()).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// The texts of the system prompt one by one, each with the mark after it; None
    /// if there are no marks.
    pub(super) fn marked_system(&self) -> Option<Vec<(&'a str, Option<&'a CacheMark>)>> {
        // Almost no request has marks, and this one is on the way of every request.
        if self.plans.iter().all(|plan| plan.cache_marks.is_empty()) {
            return None;
        }
        let mut parts = Vec::new();
        for (message, plan) in self.prompt() {
            for (at, block) in message.blocks.iter().enumerate() {
                if let Block::Text(text) = block
                    && !text.text.trim().is_empty()
                {
                    parts.push((text.text.as_str(), plan.mark_after(at)));
                }
            }
        }
        parts.iter().any(|(_, mark)| mark.is_some()).then_some(parts)
    }

    /// Writes the messages as the last member of the body. `write` adds one
    /// element per message, several, or none.
    pub(super) fn finish(&self, body: ObjectWriter, member: &str, write: WriteMessage) -> String {
        self.finish_merged(body, member, |_| None, write)
    }

    /// As above, for protocols whose roles must alternate. `opening_for` returns
    /// the start of a message (`{"role":"user","content":[`), `write` adds its
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
            let before = list.len();
            let opening = opening_for(message.role);
            match opening {
                Some(opening) if open == Some(opening) => list.push(','),
                Some(opening) => {
                    list.push_str(if open.is_some() { "]}," } else { "" });
                    list.push_str(opening);
                }
                None if list.len() > begins => list.push(','),
                None => (),
            }
            let written_at = list.len();
            let entry = self.entries.get(at).copied();
            let tokens = self.cache.get_or_write(entry, message, plan, &mut list, |out| {
                write(self, message, plan, &mut ListWriter::new(out));
            });
            counted.messages.push(tokens);
            if list.len() == written_at {
                list.truncate(before);
            } else if open != opening {
                open = opening;
                counted.head += OPENING_TOKENS;
            }
        }
        if open.is_some() {
            list.push_str("]}");
        }
        list.push_str("]}");
        self.tokens.replace(counted);
        list
    }
}

/// Adds a tool's name, description and schema, the last under its own name.
pub(super) fn push_tool(out: &mut NestedObject<'_>, tool: &ToolSpec, schema: &str) {
    out.push_text("name", &tool.name);
    out.push_text("description", &tool.description);
    push_schema(out, tool, schema);
}

pub(super) fn push_schema(out: &mut NestedObject<'_>, tool: &ToolSpec, name: &str) {
    // Some providers refuse an empty schema.
    let is_empty = tool.parameters == "{}";
    out.push_raw(name, if is_empty { r#"{"type":"object","properties":{}}"# } else { &tool.parameters });
}

/// The tokens of a message's opening, rounded up.
const OPENING_TOKENS: u64 = 8;

/// Writes one message in a protocol's form.
pub(super) type WriteMessage = fn(&RequestDraft<'_>, &Message, &MessagePlan, &mut ListWriter<'_>);

/// The blocks of a message, each with its decided action.
pub(super) fn blocks_with_actions<'a>(
    message: &'a Message,
    plan: &'a MessagePlan,
) -> impl Iterator<Item = (&'a Block, EgressAction)> + Clone {
    message.blocks.iter().zip(plan.actions.iter().copied())
}

/// The blocks of a message that are sent, each with the mark after it.
pub(super) fn marked_blocks<'a>(
    message: &'a Message,
    plan: &'a MessagePlan,
) -> impl Iterator<Item = (&'a Block, Option<&'a CacheMark>)> {
    let blocks = blocks_with_actions(message, plan).enumerate();
    let sent = blocks.filter(|(_, (_, action))| *action != EgressAction::Dropped);
    sent.map(|(at, (block, _))| (block, plan.mark_after(at)))
}

/// The blocks of a message that are sent.
pub(super) fn sent_blocks<'a>(
    message: &'a Message,
    plan: &'a MessagePlan,
) -> impl Iterator<Item = (&'a Block, EgressAction)> {
    blocks_with_actions(message, plan).filter(|(_, action)| *action != EgressAction::Dropped)
}

/// The opening of a message in protocols where user and assistant alternate. All
/// tool results go into one user message.
pub(super) fn turn_opening(role: Role) -> Option<&'static str> {
    match role {
        Role::Assistant => Some(r#"{"role":"assistant","content":["#),
        Role::User | Role::Tool | Role::System => Some(r#"{"role":"user","content":["#),
    }
}

/// The text of a system message within a conversation, for protocols whose messages are
/// the user's or the model's. The tag tells the model that the user did not write it.
pub(super) fn system_reminder(message: &Message) -> Option<String> {
    let text: String = texts(&message.blocks).collect();
    let is_later = message.role == Role::System && !text.trim().is_empty();
    is_later.then(|| format!("<system-reminder>\n{text}\n</system-reminder>"))
}

/// The texts of a message, which become one.
pub(super) fn texts(blocks: &[Block]) -> impl Iterator<Item = &str> {
    blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => None,
    })
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
pub(super) fn push_typed_text(out: &mut NestedObject<'_>, kind: &str, text: &str) {
    out.push_text("type", kind);
    out.push_text("text", text);
}

/// As above, as a text of its own.
pub(super) fn typed_text(kind: &str, text: &str) -> String {
    let mut out = String::new();
    object_into(&mut out, |object| push_typed_text(object, kind, text));
    out
}

/// A call id: unchanged for the provider that made it, else limited to characters
/// that every provider accepts. A call and its result get the same id.
pub(super) fn call_id<'i>(id: &'i str, plan: &MessagePlan) -> Cow<'i, str> {
    if plan.own {
        return Cow::Borrowed(id);
    }
    Cow::Owned(id.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-', "_"))
}
