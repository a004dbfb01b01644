//! Writes a conversation as JSON lines: the whole log with every branch.
//! [`Conversation::parse`] reads it back unchanged.

use std::borrow::BorrowMut;
use std::collections::BTreeMap;

use crate::block::{Block, Text, Thinking, ThinkingContent};
use crate::conversation::{Conversation, KNOWN_MEMBERS, ToolSpec, line_name};
use crate::history::{EntryId, History, HistoryEntry};
use crate::json;
use crate::json_text::{ObjectWriter, object_into, quote};
use crate::message::{Message, Role};
use crate::safe_json::escaped;

/// What to do with signatures, encrypted payloads and native items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpaqueData {
    /// Writes them, so that nothing is lost.
    Keep,
    /// Leaves a readable conversation with all text, but no provider accepts
    /// its own thinking back from it.
    LeaveOut,
}

/// Writes one line for the header and one for each message, in log order.
pub fn write_lines(conversation: &Conversation, opaque: OpaqueData) -> String {
    let readable;
    let conversation = match opaque {
        OpaqueData::Keep => conversation,
        OpaqueData::LeaveOut => {
            readable = without_opaque(conversation);
            &readable
        }
    };
    let names = LineNames::of(&conversation.history);
    let mut out = escaped(&header(conversation, &names)).into_owned();
    out.push('\n');
    for (at, entry) in conversation.history.entries().iter().enumerate() {
        out.push_str(&escaped(&line(at, entry, &names)));
        out.push('\n');
    }
    out
}

/// The conversation without opaque data. Hidden thinking is removed entirely;
/// every message keeps its position.
pub fn without_opaque(conversation: &Conversation) -> Conversation {
    let mut history = History::new();
    for entry in conversation.history.entries() {
        let mut message = Message::clone(&entry.message);
        message.blocks = message.blocks.into_iter().filter_map(without_seals).collect();
        history.insert(entry.name.clone(), entry.parent, message);
    }
    // The entries are the same, so the head exists.
    let _exists = history.fork(conversation.history.head());
    Conversation { history, ..conversation.clone() }
}

fn without_seals(block: Block) -> Option<Block> {
    match block {
        // The block only carried its seal.
        Block::Text(text) if text.text.is_empty() && text.seal.is_some() => None,
        Block::Text(text) => Some(Block::Text(Text { text: text.text, extra: text.extra, ..Text::default() })),
        Block::Thinking(thinking) => match thinking.content {
            ThinkingContent::Open { text } | ThinkingContent::Sealed { text, .. } => {
                Some(Block::Thinking(Thinking { content: ThinkingContent::Open { text }, native: None, ..thinking }))
            }
            ThinkingContent::Hidden { .. } => None,
        },
        Block::ToolCall(mut call) => {
            (call.seal, call.native) = (None, None);
            Some(Block::ToolCall(call))
        }
        Block::ToolResult(_) | Block::Media(_) => Some(block),
        Block::Unmodelled(_) => None,
    }
}

/// The name of each line: its own, or a generated one if another line or the
/// head refers to it.
struct LineNames(Vec<Option<String>>);

impl LineNames {
    fn of(history: &History) -> LineNames {
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        let mut names: Vec<Option<String>> = Vec::new();
        for (at, entry) in history.entries().iter().enumerate() {
            // Names are unique; the first line wins. A name that looks
            // generated would refer to another line.
            let own = entry.name.as_deref().filter(|name| !name.is_empty() && !name.starts_with('#'));
            let own = own.filter(|name| *taken.entry(name).or_insert(at) == at);
            names.push(own.map(str::to_owned));
        }
        let last = history.entries().len().checked_sub(1).map(EntryId);
        let head = history.head().filter(|head| Some(*head) != last);
        let parents = history.entries().iter().enumerate().filter_map(|(at, entry)| far_parent(at, entry));
        for EntryId(pointed_at) in parents.flatten().chain(head) {
            if let Some(name) = names.get_mut(pointed_at) {
                name.get_or_insert_with(|| line_name(pointed_at));
            }
        }
        LineNames(names)
    }

    fn get(&self, EntryId(at): EntryId) -> Option<&str> {
        self.0.get(at)?.as_deref()
    }
}

/// The parent of a line, unless it is the previous line.
fn far_parent(at: usize, entry: &HistoryEntry) -> Option<Option<EntryId>> {
    let before = at.checked_sub(1).map(EntryId);
    (entry.parent != before).then_some(entry.parent)
}

fn header(conversation: &Conversation, names: &LineNames) -> String {
    let mut out = ObjectWriter::default();
    out.push("aside", "1");
    if let Some(model) = &conversation.model {
        out.push("model", &quote(model));
    }
    if let Some(title) = &conversation.title {
        out.push("title", &quote(title));
    }
    let history = &conversation.history;
    match history.head() {
        Some(head) if head.0 + 1 != history.entries().len() => {
            out.push("head", &names.get(head).map_or_else(|| "null".to_owned(), quote));
        }
        None if !history.entries().is_empty() => out.push("head", "null"),
        Some(_) | None => (),
    }
    if !conversation.tools.is_empty() {
        let tools: Vec<String> = conversation.tools.iter().map(tool).collect();
        out.push_raw("tools", &format!("[{}]", tools.join(",")));
    }
    if !conversation.settings.is_empty() {
        let mut settings = ObjectWriter::default();
        for (key, value) in &conversation.settings {
            settings.push_raw(key, &quote(value));
        }
        out.push_raw("settings", &settings.finish());
    }
    for (key, value) in &conversation.extra {
        out.push(key, value);
    }
    out.finish()
}

fn tool(tool: &ToolSpec) -> String {
    let mut out = ObjectWriter::default();
    out.push_raw("name", &quote(&tool.name));
    out.push_raw("description", &quote(&tool.description));
    out.push("parameters", &tool.parameters);
    out.finish()
}

fn line(at: usize, entry: &HistoryEntry, names: &LineNames) -> String {
    let message = &entry.message;
    let mut out = ObjectWriter::default();
    out.push_raw("role", &quote(role_name(message.role)));
    if let Some(name) = names.get(EntryId(at)) {
        out.push_raw("id", &quote(name));
    }
    if let Some(parent) = far_parent(at, entry) {
        let name = parent.and_then(|parent| names.get(parent));
        out.push_raw("parent", &name.map_or_else(|| "null".to_owned(), quote));
    }
    write_rest(message, &mut out);
    out.finish()
}

/// A message on its own, without its position in the history.
pub(crate) fn message_json(message: &Message) -> String {
    let mut out = ObjectWriter::default();
    out.push_raw("role", &quote(role_name(message.role)));
    write_rest(message, &mut out);
    out.finish()
}

/// The same, written into a buffer, without the escapes that only printing needs.
pub(crate) fn write_message(out: &mut String, message: &Message) {
    object_into(out, |object| {
        object.push_text("role", role_name(message.role));
        write_metadata(message, object);
        if let Some(usage) = message.usage {
            object.push_raw("usage", &json::usage(usage));
        }
        object.list("blocks", |list| message.blocks.iter().for_each(|block| json::write_block(list.next(), block)));
        write_unknown_members(message, object);
    });
}

fn write_rest(message: &Message, out: &mut ObjectWriter) {
    write_metadata(message, out);
    if let Some(usage) = message.usage {
        out.push_raw("usage", &json::usage(usage));
    }
    out.push_list("blocks", message.blocks.iter().map(json::block));
    write_unknown_members(message, out);
}

/// Writes the metadata of a message, except usage.
pub(super) fn write_metadata<B: BorrowMut<String>>(message: &Message, out: &mut ObjectWriter<B>) {
    if let Some(time) = message.at {
        out.push_raw("at", &quote(&json::rfc3339(time)));
    }
    if let Some(origin) = &message.origin {
        out.push_raw("origin", &json::origin(origin));
    }
    if let Some(ending) = &message.ending {
        out.push_raw("finish", &json::finish(ending).map_or_else(|| "null".to_owned(), quote));
        if let Some(detail) = json::ending_detail(ending) {
            out.push_raw("ending", &quote(detail));
        }
    }
    if let Some(seen) = &message.empty_thinking_field {
        out.push_raw("reasoningSeen", &quote(seen));
    }
    if message.interrupted {
        out.push_raw("interrupted", "true");
    }
    if !message.extra.is_empty() {
        out.push_raw("extra", &message.extra.to_json());
    }
}

/// Writes members that other programs added.
pub(super) fn write_unknown_members<B: BorrowMut<String>>(message: &Message, out: &mut ObjectWriter<B>) {
    for (key, value) in message.unknown_members.iter().filter(|(key, _)| !KNOWN_MEMBERS.contains(&key.as_str())) {
        out.push(key, value);
    }
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}
