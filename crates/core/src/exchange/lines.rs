//! A conversation written as JSON lines: the whole log with every branch.
//! [`Conversation::parse`] reads it back as it was.

use std::collections::BTreeMap;

use crate::block::{Block, Content, Text, Thinking};
use crate::conversation::{Conversation, KNOWN, Tool, line_name};
use crate::event::Ending;
use crate::history::{Entry, EntryId, History};
use crate::json;
use crate::message::{Message, Role};
use crate::safe_json::escaped;
use crate::wire::json::{ObjectWriter, quote};

/// What happens to signatures, encrypted payloads and native items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opaque {
    Keep,
    /// For readers: what remains can be read and says all that was said, but
    /// no provider takes its own thinking back from it.
    LeaveOut,
}

/// One line for the header and one for each message, in the order they were said.
pub fn write_lines(conversation: &Conversation, opaque: Opaque) -> String {
    let bare;
    let conversation = match opaque {
        Opaque::Keep => conversation,
        Opaque::LeaveOut => {
            bare = without_opaque(conversation);
            &bare
        }
    };
    let names = Names::of(&conversation.history);
    let mut out = escaped(&header(conversation, &names)).into_owned();
    out.push('\n');
    for (at, entry) in conversation.history.entries().iter().enumerate() {
        out.push_str(&escaped(&line(at, entry, &names)));
        out.push('\n');
    }
    out
}

/// The same conversation without what only its makers can read. Thoughts that
/// nobody else can read go as a whole; every message stays in its place.
pub fn without_opaque(conversation: &Conversation) -> Conversation {
    let mut history = History::new();
    for entry in conversation.history.entries() {
        let mut message = entry.message.clone();
        message.blocks = message.blocks.into_iter().filter_map(bare_block).collect();
        history.insert(entry.name.clone(), entry.parent, message);
    }
    // The same entries are there, so the head is.
    let _there = history.fork(conversation.history.head());
    Conversation { history, ..conversation.clone() }
}

fn bare_block(block: Block) -> Option<Block> {
    match block {
        // It was only there to carry its seal.
        Block::Text(text) if text.text.is_empty() && text.seal.is_some() => None,
        Block::Text(text) => Some(Block::Text(Text { text: text.text, ..Text::default() })),
        Block::Thinking(thinking) => match thinking.content {
            Content::Open { text } | Content::Sealed { text, .. } => {
                Some(Block::Thinking(Thinking { content: Content::Open { text }, native: None, ..thinking }))
            }
            Content::Hidden { .. } => None,
        },
        Block::ToolCall(mut call) => {
            (call.seal, call.native) = (None, None);
            Some(Block::ToolCall(call))
        }
        Block::ToolResult(_) | Block::Image(_) => Some(block),
        Block::Unmodelled(_) => None,
    }
}

/// What each line is called: its own name, or one made for the file where
/// another line or the head points at it.
struct Names(Vec<Option<String>>);

impl Names {
    fn of(history: &History) -> Names {
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        let mut names: Vec<Option<String>> = Vec::new();
        for (at, entry) in history.entries().iter().enumerate() {
            // A name can only be one line's; the first has it. What looks like
            // one made for a file would point at that line.
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
        Names(names)
    }

    fn get(&self, EntryId(at): EntryId) -> Option<&str> {
        self.0.get(at)?.as_deref()
    }
}

/// The parent of a line, unless it is the line before.
fn far_parent(at: usize, entry: &Entry) -> Option<Option<EntryId>> {
    let before = at.checked_sub(1).map(EntryId);
    (entry.parent != before).then_some(entry.parent)
}

fn header(conversation: &Conversation, names: &Names) -> String {
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

fn tool(tool: &Tool) -> String {
    let mut out = ObjectWriter::default();
    out.push_raw("name", &quote(&tool.name));
    out.push_raw("description", &quote(&tool.description));
    out.push("parameters", &tool.parameters);
    out.finish()
}

fn line(at: usize, entry: &Entry, names: &Names) -> String {
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
    write_about(message, &mut out);
    if let Some(usage) = message.usage {
        out.push_raw("usage", &json::usage(usage));
    }
    out.push_list("blocks", message.blocks.iter().map(json::block));
    write_extra(message, &mut out);
    out.finish()
}

/// What is known of a message besides what it says and what it cost.
pub(super) fn write_about(message: &Message, out: &mut ObjectWriter) {
    if let Some(time) = message.at {
        out.push_raw("at", &quote(&json::rfc3339(time)));
    }
    if let Some(origin) = &message.origin {
        out.push_raw("origin", &json::origin(origin));
    }
    if let Some(ending) = &message.ending {
        out.push_raw("finish", &json::finish(ending).map_or_else(|| "null".to_owned(), quote));
        match ending {
            Ending::Unrecognized(word) if word != "other" => out.push_raw("ending", &quote(word)),
            Ending::Unsaid => out.push_raw("ending", "\"unsaid\""),
            Ending::CutOff => out.push_raw("ending", "\"cut_off\""),
            Ending::Unrecognized(_)
            | Ending::Stop
            | Ending::Length
            | Ending::ToolCalls
            | Ending::ContentFilter
            | Ending::Refusal
            | Ending::Pause
            | Ending::Error => (),
        }
    }
    if let Some(seen) = &message.seen {
        out.push_raw("reasoningSeen", &quote(seen));
    }
    if message.interrupted {
        out.push_raw("interrupted", "true");
    }
}

/// Members that somebody else put there.
pub(super) fn write_extra(message: &Message, out: &mut ObjectWriter) {
    for (key, value) in message.extra.iter().filter(|(key, _)| !KNOWN.contains(&key.as_str())) {
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
