//! A conversation as JSON lines: what `decode` prints, with what was asked and
//! answered around it. Read here; written by [`crate::json`].

use std::collections::BTreeMap;

use crate::block::{
    Arguments, Block, CallId, Content, Image, Native, Origin, Seal, SealKind, Seals, Span, Text, Thinking, ToolCall,
    ToolResult, Unmodelled,
};
use crate::event::{Ending, Usage};
use crate::history::{EntryId, History};
use crate::message::{Message, Role};
use crate::wire::json::{Kind, Raw, compact, count_of, each_element, each_entry, member, text_member, text_of};

/// A whole conversation file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    pub model: Option<String>,
    pub title: Option<String>,
    pub tools: Vec<Tool>,
    /// Settings of the session, as written.
    pub settings: BTreeMap<String, String>,
    pub history: History,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// A JSON schema, as JSON.
    pub parameters: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ConversationError {
    pub line: usize,
    pub problem: String,
}

impl Conversation {
    pub fn parse(text: &str) -> Result<Conversation, ConversationError> {
        let mut conversation = Conversation::default();
        let mut names: BTreeMap<String, EntryId> = BTreeMap::new();
        let mut head = None;
        for (line, value) in values(text) {
            let fail = |problem: String| ConversationError { line, problem };
            let raw = Raw::of(value).map_err(|error| fail(error.to_string()))?;
            if raw.kind() != Kind::Object {
                return Err(fail("expected an object: a header or a message".to_owned()));
            }
            if member(raw, "aside").is_some() {
                head = text_member(raw, "head");
                conversation.read_header(raw);
                continue;
            }
            let message = read_message(raw).map_err(fail)?;
            let parent = match text_member(raw, "parent") {
                Some(name) => {
                    Some(*names.get(&name).ok_or_else(|| fail(format!("parent `{name}` is no earlier line's id")))?)
                }
                None => conversation.history.head(),
            };
            let name = text_member(raw, "id");
            let id = conversation.history.insert(name.clone(), parent, message);
            names.extend(name.map(|name| (name, id)));
        }
        if let Some(name) = head {
            let id = names.get(&name).copied();
            let problem = || ConversationError { line: 1, problem: format!("head `{name}` is no line's id") };
            conversation.history.fork(Some(id.ok_or_else(problem)?)).map_err(|_| problem())?;
        }
        Ok(conversation)
    }

    fn read_header(&mut self, header: Raw<'_>) {
        self.model = text_member(header, "model");
        self.title = text_member(header, "title");
        if let Some(tools) = member(header, "tools") {
            each_element(tools, |tool| {
                self.tools.push(Tool {
                    name: text_member(tool, "name").unwrap_or_default(),
                    description: text_member(tool, "description").unwrap_or_default(),
                    parameters: member(tool, "parameters").map_or("{}".into(), |json| compact(json.get())).into_owned(),
                });
            });
        }
        if let Some(settings) = member(header, "settings") {
            each_entry(settings, |key, value| {
                let value = text_of(value).unwrap_or_else(|| value.get().to_owned());
                self.settings.insert(key.to_owned(), value);
            });
        }
    }
}

/// JSON values one after another with the line each begins on: one a line, or
/// spread over several, as `decode` prints a single one.
fn values(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut start, mut pending) = (0, String::new());
    for (at, line) in text.split_inclusive('\n').enumerate() {
        if pending.trim().is_empty() {
            pending.clear();
            start = at;
        }
        pending.push_str(line);
        // A value ends with its line, or with a bracket at the start of one.
        let may_end = pending.len() == line.len() || line.starts_with('}');
        if may_end && (Raw::of(&pending).is_ok() || !pending.trim_start().starts_with('{')) {
            found.push((start, pending.len()));
            pending.clear();
        }
    }
    if !pending.trim().is_empty() {
        found.push((start, pending.len()));
    }
    let line_starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let value = |(line, length): (usize, usize)| {
        let from = *line_starts.get(line)?;
        text.get(from..from + length).map(|value| (line + 1, value.trim()))
    };
    found.into_iter().filter_map(value).filter(|(_, value)| !value.is_empty()).collect()
}

/// Members that have a place of their own.
const KNOWN: [&str; 12] = [
    "role",
    "blocks",
    "origin",
    "finish",
    "usage",
    "reasoningSeen",
    "interrupted",
    "at",
    "id",
    "parent",
    "model",
    "file",
];

fn read_message(raw: Raw<'_>) -> Result<Message, String> {
    let role = match text_member(raw, "role").as_deref() {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        Some(other) => return Err(format!("unknown role `{other}`; use system, user, assistant or tool")),
        None => return Err("a message needs a role: system, user, assistant or tool".to_owned()),
    };
    let mut blocks = Vec::new();
    let mut problem = None;
    if let Some(list) = member(raw, "blocks") {
        each_element(list, |block| match read_block(block) {
            Ok(block) => blocks.push(block),
            Err(error) => problem = problem.take().or(Some(error)),
        });
    }
    if let Some(problem) = problem {
        return Err(problem);
    }
    let mut message = Message::new(role, blocks);
    message.origin = member(raw, "origin").filter(|origin| origin.kind() == Kind::Object).map(read_origin);
    message.ending = member(raw, "finish").and_then(text_of).map(|word| read_ending(&word));
    message.usage = member(raw, "usage").map(read_usage);
    message.seen = text_member(raw, "reasoningSeen");
    message.at = text_member(raw, "at").and_then(|time| crate::json::parse_rfc3339(&time));
    message.interrupted = member(raw, "interrupted").is_some_and(|value| value.get() == "true");
    each_entry(raw, |key, value| {
        if !KNOWN.contains(&key) && value.kind() != Kind::Null {
            message.extra.push((key.to_owned(), compact(value.get()).into_owned()));
        }
    });
    Ok(message)
}

fn read_block(raw: Raw<'_>) -> Result<Block, String> {
    let text = |name: &str| text_member(raw, name);
    let owned = |name: &str| text(name).unwrap_or_default();
    let native = |text_member: Option<&str>| read_native(raw, text_member);
    let seal = |name: &str, kind| text(name).map(|payload| Seal { kind, payload });
    match text("type").as_deref() {
        Some("text") => Ok(Block::Text(Text {
            text: owned("text"),
            seal: seal("signature", SealKind::Signature),
            native: native(Some("text")),
        })),
        Some("thinking") => Ok(Block::Thinking(read_thinking(raw))),
        Some("toolCall") => {
            let arguments = member(raw, "arguments");
            let arguments = match arguments.map(|value| (value.kind(), value)) {
                // A string is what did not parse.
                Some((Kind::Text, value)) => Arguments::Broken(text_of(value).unwrap_or_default()),
                Some((_, value)) => Arguments::Json(compact(value.get()).into_owned()),
                None => Arguments::Json("{}".to_owned()),
            };
            let id = owned("id");
            let invented = id.is_empty() || id.starts_with(CallId::INVENTED);
            Ok(Block::ToolCall(ToolCall {
                id: if invented { CallId::Invented(id) } else { CallId::Given(id) },
                name: owned("name"),
                arguments,
                seal: seal("signature", SealKind::Signature),
                native: native(None),
            }))
        }
        Some("toolResult") => Ok(Block::ToolResult(ToolResult {
            id: owned("id"),
            name: owned("name"),
            content: member(raw, "content").map_or_else(String::new, |value| {
                text_of(value).unwrap_or_else(|| compact(value.get()).trim_matches('"').to_owned())
            }),
            is_error: member(raw, "isError").is_some_and(|value| value.get() == "true"),
        })),
        Some("image") => Ok(Block::Image(Image { media_type: owned("mediaType"), data: owned("data") })),
        Some("unmodelled") => {
            let native = native(None).ok_or("an unmodelled block needs its native item")?;
            Ok(Block::Unmodelled(Unmodelled { native }))
        }
        Some(other) => {
            Err(format!("unknown block type `{other}`; use thinking, text, toolCall, toolResult, image or unmodelled"))
        }
        None => Err("a block needs a type".to_owned()),
    }
}

fn read_thinking(raw: Raw<'_>) -> Thinking {
    let text = text_member(raw, "thought").unwrap_or_default();
    let seal = |name: &str, kind| text_member(raw, name).map(|payload| Seal { kind, payload });
    let seals =
        Seals { signature: seal("signature", SealKind::Signature), encrypted: seal("encrypted", SealKind::Encrypted) };
    let sealed = seals.signature.is_some() || seals.encrypted.is_some();
    let native = read_native(raw, None);
    // Items stand in the text one after another, with a blank line between.
    let mut items = Vec::new();
    if let Some(list) = member(raw, "summary") {
        let mut at = 0;
        each_element(list, |item| {
            let length = summary_length(item, text.get(at..).unwrap_or(""));
            items.push(at..at + length);
            at = (at + length + 2).min(text.len());
        });
    }
    let content = match (text.is_empty(), sealed) {
        (true, _) => Content::Hidden { seals },
        (false, true) => Content::Sealed { text, seals },
        (false, false) => Content::Open { text },
    };
    let time = |name: &str| text_member(raw, name).and_then(|time| crate::json::parse_rfc3339(&time));
    let span = time("startedAt").zip(time("endedAt")).map(|(started, ended)| Span { started, ended });
    Thinking {
        content,
        source: text_member(raw, "sourceField").unwrap_or_default(),
        id: text_member(raw, "id"),
        items,
        span,
        native,
    }
}

/// How much of the text an item takes: up to where its content ends.
fn summary_length(item: Raw<'_>, rest: &str) -> usize {
    let content = text_member(item, "content").unwrap_or_default();
    if content.is_empty() {
        return rest.find("\n\n").unwrap_or(rest.len());
    }
    rest.find(&content).map_or(rest.len(), |at| at + content.len())
}

/// The native item; where it holds the block's own text, that is taken out.
fn read_native(raw: Raw<'_>, own_text: Option<&str>) -> Option<Native> {
    let native = member(raw, "native").filter(|native| native.kind() == Kind::Object)?;
    let thought = own_text.and_then(|name| text_member(raw, name)).or_else(|| text_member(raw, "thought"));
    let mut text_member_name = None;
    let mut out = crate::wire::json::ObjectWriter::default();
    each_entry(native, |key, value| {
        let is_text = thought.is_some() && text_of(value) == thought && matches!(key, "text" | "summary" | "thinking");
        if is_text && text_member_name.is_none() {
            text_member_name = Some(key.to_owned());
        } else {
            out.push(key, value.get());
        }
    });
    Some(Native { json: out.finish(), text_member: text_member_name })
}

fn read_origin(raw: Raw<'_>) -> Origin {
    Origin {
        provider: text_member(raw, "provider"),
        dialect: text_member(raw, "dialect"),
        model: text_member(raw, "model"),
        endpoint: text_member(raw, "endpoint"),
        account: text_member(raw, "account"),
    }
}

fn read_ending(word: &str) -> Ending {
    match word {
        "stop" => Ending::Stop,
        "length" => Ending::Length,
        "tool_calls" => Ending::ToolCalls,
        "content_filter" => Ending::ContentFilter,
        "refusal" => Ending::Refusal,
        "pause" => Ending::Pause,
        "error" => Ending::Error,
        other => Ending::Unrecognized(other.to_owned()),
    }
}

fn read_usage(raw: Raw<'_>) -> Usage {
    let count = |name: &str| member(raw, name).and_then(count_of);
    Usage { input: count("input"), output: count("output"), reasoning: count("reasoning"), cached: count("cached") }
}
