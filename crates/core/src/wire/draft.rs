//! What every request is made of, and the pieces that protocols share.

use std::cell::RefCell;

use serde_json::{Map, Value};

use super::call_ids::CallIds;
use super::json::{ObjectWriter, list_of, quote};
use super::pieces::Pieces;
use crate::block::{Arguments, Block, Thinking};
use crate::conversation::Tool;
use crate::dialect::{Carrier, Foreign, Rules};
use crate::history::EntryId;
use crate::message::{Message, Role};
use crate::rules::{Action, Dummies, Step, Wishes};

/// A request before it has a shape. Parameters are written first and messages
/// last, so that each request begins like the one before it.
pub(super) struct Draft<'a> {
    pub(super) model: &'a str,
    pub(super) messages: &'a [&'a Message],
    pub(super) steps: &'a [Step],
    pub(super) tools: &'a [Tool],
    pub(super) parameters: &'a Map<String, Value>,
    pub(super) rules: &'a Rules,
    pub(super) wishes: &'a Wishes,
    /// Who the messages are, where that is known, and what was written of them.
    pub(super) entries: &'a [EntryId],
    pub(super) pieces: &'a Pieces,
    pub(super) call_ids: CallIds,
    /// Tokens of what was written.
    pub(super) tokens: RefCell<Tokens>,
}

/// Tokens of a body as it is written.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// Everything that is no message.
    pub(super) head: u64,
    /// One for each message, in its order.
    pub(super) messages: Vec<u64>,
}

/// A tool in JSON words.
pub(super) struct ToolWords<'a> {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) parameters: &'a str,
}

impl<'a> Draft<'a> {
    /// A body that begins with the model, for protocols that name it there.
    pub(super) fn begin(&self) -> ObjectWriter {
        let mut body = ObjectWriter::default();
        body.push("model", &quote(self.model));
        body.push("stream", "true");
        body
    }

    /// The tools, each as the protocol writes one; none where there are none.
    pub(super) fn tools(&self, write: impl Fn(&ToolWords<'_>) -> String) -> Option<String> {
        let words = |tool: &'a Tool| ToolWords {
            name: quote(&tool.name),
            description: quote(&tool.description),
            // Some refuse a schema that says nothing.
            parameters: if tool.parameters == "{}" { r#"{"type":"object","properties":{}}"# } else { &tool.parameters },
        };
        let tools: Vec<String> = self.tools.iter().map(|tool| write(&words(tool))).collect();
        (!tools.is_empty()).then(|| list(&tools))
    }

    /// `{"type":"function","function":{…}}`, as several protocols have it.
    pub(super) fn push_function_tools(&self, body: &mut ObjectWriter) {
        let tools = self.tools(|tool| {
            let ToolWords { name, description, parameters } = tool;
            let function = object([("name", name), ("description", description), ("parameters", parameters)]);
            object([("type", "\"function\""), ("function", &function)])
        });
        if let Some(tools) = tools {
            body.push_raw("tools", &tools);
        }
    }

    /// A call id as this provider takes it: its own stay as they are.
    pub(super) fn call_id(&self, id: &str, step: &Step) -> String {
        quote(if step.own { id } else { self.call_ids.get(id) })
    }

    pub(super) fn push_parameters(&self, body: &mut ObjectWriter) {
        for (name, value) in self.parameters {
            body.push_raw(name, &value.to_string());
        }
    }

    /// The documented stand-in for a seal that a call needs, where calls have
    /// seals or a refusal asked for one.
    pub(super) fn dummy_seal(&self) -> Option<&'a str> {
        let echo = &self.rules.echo;
        let by_dialect =
            echo.foreign == Foreign::DummySignature && matches!(echo.carrier, Carrier::Part | Carrier::CallExtra);
        let wanted = match self.wishes.mend.dummies {
            Dummies::AsTheDialectSays => by_dialect,
            Dummies::Missing | Dummies::Everywhere => true,
        };
        Some(echo.dummy.as_str()).filter(|dummy| wanted && !dummy.is_empty())
    }

    /// The system prompt, however many messages it came in.
    pub(super) fn system(&self) -> Option<String> {
        let texts: Vec<String> = self
            .messages
            .iter()
            .filter(|message| message.role == Role::System)
            .map(|message| text_of(&message.blocks))
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// Writes messages into the body as its last member: `write` gives each as
    /// JSON, several with commas between them, or nothing.
    pub(super) fn finish(&self, body: ObjectWriter, member: &str, write: Write) -> String {
        self.finish_runs(body, member, |_| None, write)
    }

    /// The same for protocols whose speakers take turns: `speaker` gives the
    /// opening of a message (`{"role":"user","content":[`), `write` its content,
    /// and neighbours with one speaker become one message.
    pub(super) fn finish_runs(
        &self,
        body: ObjectWriter,
        member: &str,
        speaker: impl Fn(Role) -> Option<&'static str>,
        write: Write,
    ) -> String {
        let mut counted = Tokens { head: self.pieces.tokens_of_head(body.written()), messages: Vec::new() };
        // Written in place: a body is long, and copying it is most of the work.
        let mut list = body.into_list(member, self.pieces.size() + 1024);
        let begins = list.len();
        let mut open: Option<&str> = None;
        for (at, (message, step)) in self.messages.iter().zip(self.steps).enumerate() {
            let entry = self.entries.get(at).copied();
            let (json, tokens) = self.pieces.of(entry, message, step, || write(self, message, step));
            counted.messages.push(tokens);
            if json.is_empty() {
                continue;
            }
            match speaker(message.role) {
                Some(opening) if open == Some(opening) => list.push(','),
                Some(opening) => {
                    close_run(&mut open, &mut list);
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

/// What the opening of a message is worth, and a little more.
const OPENING_TOKENS: u64 = 8;

/// How a protocol writes one message.
pub(super) type Write = fn(&Draft<'_>, &Message, &Step) -> String;

fn close_run(open: &mut Option<&str>, list: &mut String) {
    if open.take().is_some() {
        list.push_str("]},");
    }
}

/// The blocks of a message with what becomes of each.
pub(super) fn decided<'a>(message: &'a Message, step: &'a Step) -> impl Iterator<Item = (&'a Block, Action)> + Clone {
    message.blocks.iter().zip(step.actions.iter().copied())
}

/// The blocks of a message that go out.
pub(super) fn sent<'a>(message: &'a Message, step: &'a Step) -> impl Iterator<Item = (&'a Block, Action)> {
    decided(message, step).filter(|(_, action)| *action != Action::Dropped)
}

/// Several values of a list, for a message that is several there.
pub(super) fn joined(values: impl Iterator<Item = String>) -> String {
    let mut out = String::new();
    for value in values {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(&value);
    }
    out
}

/// How a run of messages begins where users and assistants take turns. Results
/// are the user's to give, all of them in one message.
pub(super) fn turn_taker(role: Role) -> Option<&'static str> {
    match role {
        Role::Assistant => Some(r#"{"role":"assistant","content":["#),
        Role::User | Role::Tool | Role::System => Some(r#"{"role":"user","content":["#),
    }
}

pub(super) fn text_of(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => None,
    });
    texts.collect()
}

/// Arguments as an object, for protocols that want one. What never became
/// JSON was never executed; it goes back as no arguments.
pub(super) fn arguments_object(arguments: &Arguments) -> &str {
    match arguments {
        Arguments::Json(json) if json.trim_start().starts_with('{') => json,
        Arguments::Json(_) | Arguments::Broken(_) => "{}",
    }
}

/// Arguments as the text they came as.
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

/// A list of values that are JSON already.
pub(super) fn list(values: &[String]) -> String {
    list_of(values)
}

/// An object of members that are JSON already.
pub(super) fn object<const N: usize>(members: [(&str, &str); N]) -> String {
    let mut out = ObjectWriter::default();
    for (name, json) in members {
        out.push_raw(name, json);
    }
    out.finish()
}

/// `{"type":"text","text":…}`, as several protocols have it.
pub(super) fn typed_text(kind: &str, text: &str) -> String {
    object([("type", &quote(kind)), ("text", &quote(text))])
}

/// A call id: as it is where its maker reads it, else in the letters that every
/// provider takes; the same for a call and for its result.
pub(super) fn call_id(id: &str, step: &Step) -> String {
    if step.own {
        return quote(id);
    }
    quote(&id.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-', "_"))
}
