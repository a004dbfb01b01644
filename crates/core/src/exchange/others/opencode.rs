//! Sessions of OpenCode: what `opencode export` prints, or the files that
//! versions before 1.2 kept below `storage/{session,message,part}`.
//!
//! What this rests on, from the program's own public source: a message has a
//! role, times in milliseconds and, if it is an answer, `providerID` and
//! `modelID`; its parts are `text`, `reasoning`, `tool` (with its result in
//! `state`), `file`, `step-start`, `step-finish` and some that only the
//! program needs. What a provider wants back stands in `metadata`, under a name
//! of the library that called it: `signature` and `redactedData`, `itemId` and
//! `reasoningEncryptedContent` (one part for each summary item), and
//! `thoughtSignature`, also on text and tools; `reasoning_details` as they
//! came. Since 1.2 sessions are in an SQLite database, which is not read here;
//! its rows have the same JSON without the ids, which the names of files give.

use std::collections::BTreeMap;

use super::{PassedOver, maker, messages_of, origin_of};
use crate::block::{
    Arguments, Block, CallId, Content, Image, Seal, SealKind, Seals, Span, Text, Thinking, Time, ToolCall, ToolResult,
};
use crate::dialect::{Dialect, Dialects};
use crate::event::{Ending, Usage};
use crate::exchange::{File, ImportError, Imported, Kind};
use crate::message::{Message, Role};
use crate::protocol::Protocol;
use crate::wire::json::{
    Kind as Json, ObjectWriter, Raw, at_path, canonical, count_of, each_element, each_entry, member, quote,
    text_member, text_of,
};

pub(in crate::exchange) fn read_opencode(files: &[File<'_>], dialects: &Dialects) -> Result<Imported, ImportError> {
    let mut shelf = Shelf::default();
    for file in files {
        shelf.take(file);
    }
    let mut reading = Reading { dialects, imported: Imported::default(), passed_over: PassedOver::default() };
    let (session, messages) = shelf.newest_session();
    reading.imported.notes = shelf.notes;
    for message in &messages {
        let mut parts: Vec<&(String, Raw<'_>)> = shelf.parts.get(&message.id).into_iter().flatten().collect();
        parts.sort_by(|(one, _), (other, _)| one.cmp(other));
        let parts: Vec<Raw<'_>> = parts.into_iter().map(|(_, part)| *part).collect();
        reading.message(message, &parts);
    }
    let info = shelf.sessions.iter().find(|(id, _)| *id == session).map(|(_, info)| *info);
    reading.imported.conversation.title = info.and_then(|info| text_member(info, "title"));
    reading.finish()
}

/// The files, sorted by what they hold.
#[derive(Default)]
struct Shelf<'a> {
    sessions: Vec<(String, Raw<'a>)>,
    messages: Vec<Stored<'a>>,
    parts: BTreeMap<String, Vec<(String, Raw<'a>)>>,
    notes: Vec<String>,
}

#[derive(Clone)]
struct Stored<'a> {
    id: String,
    session: String,
    created: u64,
    raw: Raw<'a>,
}

impl<'a> Shelf<'a> {
    fn take(&mut self, file: &File<'a>) {
        let Ok(raw) = Raw::of(file.text) else {
            self.notes.push(format!("{} is not JSON and was passed over", file.name));
            return;
        };
        if let (Some(info), Some(messages)) = (member(raw, "info"), member(raw, "messages")) {
            self.sessions.push((text_member(info, "id").unwrap_or_default(), info));
            each_element(messages, |message| {
                let Some(info) = member(message, "info") else { return };
                let id = self.message(info, "", "");
                if let Some(parts) = member(message, "parts") {
                    each_element(parts, |part| self.part(part, &id, ""));
                }
            });
            return;
        }
        let mut folders = file.name.trim_end_matches(".json").rsplit('/');
        let (stem, folder) = (folders.next().unwrap_or_default(), folders.next().unwrap_or_default());
        match () {
            () if member(raw, "role").is_some() => drop(self.message(raw, stem, folder)),
            () if member(raw, "type").is_some() => self.part(raw, folder, stem),
            () if member(raw, "title").is_some() || member(raw, "directory").is_some() => {
                self.sessions.push((text_member(raw, "id").unwrap_or_else(|| stem.to_owned()), raw));
            }
            () => self.notes.push(format!("{} is no session, message or part", file.name)),
        }
    }

    fn message(&mut self, raw: Raw<'a>, stem: &str, folder: &str) -> String {
        let id = text_member(raw, "id").unwrap_or_else(|| stem.to_owned());
        let session = text_member(raw, "sessionID").unwrap_or_else(|| folder.to_owned());
        let created = at_path(raw, "time.created").and_then(count_of).unwrap_or(0);
        self.messages.push(Stored { id: id.clone(), session, created, raw });
        id
    }

    fn part(&mut self, raw: Raw<'a>, message: &str, stem: &str) {
        let message = text_member(raw, "messageID").unwrap_or_else(|| message.to_owned());
        let id = text_member(raw, "id").unwrap_or_else(|| stem.to_owned());
        self.parts.entry(message).or_default().push((id, raw));
    }

    /// One session is imported: the one in which something was said last.
    fn newest_session(&mut self) -> (String, Vec<Stored<'a>>) {
        let newest = self.messages.iter().max_by_key(|message| message.created);
        let session = newest.map(|message| message.session.clone()).unwrap_or_default();
        let (mut own, others): (Vec<_>, Vec<_>) =
            self.messages.iter().cloned().partition(|message| message.session == session);
        own.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        if !others.is_empty() {
            self.notes.push(format!("{} messages are of other sessions; import them by themselves", others.len()));
        }
        (session, own)
    }
}

struct Reading<'d> {
    dialects: &'d Dialects,
    imported: Imported,
    passed_over: PassedOver,
}

/// One call of the model: what it said, and what its tools gave.
#[derive(Default)]
struct Step<'a> {
    said: Vec<Raw<'a>>,
    usage: Option<Usage>,
    ending: Option<Ending>,
}

impl<'d> Reading<'d> {
    fn message(&mut self, stored: &Stored<'_>, parts: &[Raw<'_>]) {
        let at = Some(Time(stored.created)).filter(|time| time.0 > 0);
        match text_member(stored.raw, "role").as_deref() {
            Some("user") => {
                let blocks = parts.iter().filter_map(|part| self.user_part(*part)).collect();
                self.append(Some(stored.id.clone()), Message { at, ..Message::new(Role::User, blocks) });
            }
            Some("assistant") => self.answer(stored, parts, at),
            role => self.passed_over.count(&format!("a message of role `{}`", role.unwrap_or_default())),
        }
    }

    fn append(&mut self, name: Option<String>, message: Message) {
        let history = &mut self.imported.conversation.history;
        history.insert(name, history.head(), message);
    }

    fn user_part(&mut self, part: Raw<'_>) -> Option<Block> {
        let kind = text_member(part, "type").unwrap_or_default();
        match kind.as_str() {
            "text" if member(part, "ignored").is_some_and(|value| value.get() == "true") => {
                self.passed_over.count("a text that the model was not shown");
                None
            }
            "text" => Some(text_block(part)),
            "file" => {
                let image = image(part);
                if image.is_none() {
                    self.passed_over.count("a `file` that is no image");
                }
                image
            }
            _ => {
                self.passed_over.count(&format!("`{kind}`"));
                None
            }
        }
    }

    fn answer(&mut self, stored: &Stored<'_>, parts: &[Raw<'_>], at: Option<Time>) {
        let model = text_member(stored.raw, "modelID");
        let provider = text_member(stored.raw, "providerID");
        let Some(dialect) = self.dialect(parts, provider.as_deref(), model.as_deref()) else { return };
        let origin = origin_of(dialect, model.as_deref());
        self.imported.conversation.model =
            model.as_ref().map(|model| format!("{}/{model}", dialect.id)).or(self.imported.conversation.model.take());
        let interrupted = member(stored.raw, "error").is_some_and(|error| error.kind() == Json::Object);
        let mut name = Some(stored.id.clone());
        for step in self.steps(parts) {
            let mut message = Message::new(Role::Assistant, said(dialect, model.as_deref(), &step.said));
            (message.at, message.interrupted) = (at, interrupted);
            (message.usage, message.ending) = (step.usage, step.ending);
            message.origin = Some(origin.clone());
            self.append(name.take(), message);
            let results: Vec<Block> = step.said.iter().filter_map(|part| result(*part)).collect();
            if !results.is_empty() {
                self.append(None, Message { at, ..Message::new(Role::Tool, results) });
            }
        }
    }

    fn steps<'a>(&mut self, parts: &[Raw<'a>]) -> Vec<Step<'a>> {
        let mut steps = Vec::new();
        let mut step = Step::default();
        for part in parts {
            let kind = text_member(*part, "type").unwrap_or_default();
            match kind.as_str() {
                "step-start" if !step.said.is_empty() => steps.push(std::mem::take(&mut step)),
                "step-start" => (),
                "step-finish" => {
                    step.usage = member(*part, "tokens").map(usage);
                    step.ending = text_member(*part, "reason").map(|word| ending(&word));
                }
                "text" | "reasoning" | "tool" => step.said.push(*part),
                _ => self.passed_over.count(&format!("`{kind}`")),
            }
        }
        if !step.said.is_empty() {
            steps.push(step);
        }
        steps
    }

    /// What a provider wants back tells how it was spoken to.
    fn dialect(&self, parts: &[Raw<'_>], provider: Option<&str>, model: Option<&str>) -> Option<&'d Dialect> {
        let told = parts.iter().find_map(|part| protocol_of(*part));
        if let Some(protocol) = told {
            return maker(self.dialects, protocol, provider, model);
        }
        let known = provider.and_then(|provider| self.dialects.get(provider));
        let made = || Protocol::ALL.into_iter().find_map(|protocol| self.dialects.made_by(protocol, model?));
        known.or_else(made).or_else(|| self.dialects.generic(Protocol::OpenaiChat))
    }

    fn finish(mut self) -> Result<Imported, ImportError> {
        if self.imported.conversation.history.entries().is_empty() {
            return Err(ImportError::Empty(Kind::OpenCode));
        }
        self.passed_over.tell(&mut self.imported.notes);
        self.imported.notes.push("the system prompt and the tools of the program are not in its files".to_owned());
        Ok(self.imported)
    }
}

/// A member of a part's metadata, whichever library put it there.
fn metadata<'a>(part: Raw<'a>, name: &str) -> Option<Raw<'a>> {
    let mut found = None;
    each_entry(member(part, "metadata")?, |_, inner| {
        found = found.or_else(|| member(inner, name).filter(|value| value.kind() != Json::Null));
    });
    found
}

fn protocol_of(part: Raw<'_>) -> Option<Protocol> {
    let has = |name: &str| metadata(part, name).is_some();
    if has("signature") || has("redactedData") {
        let converse = at_path(part, "metadata.bedrock").is_some();
        Some(if converse { Protocol::Bedrock } else { Protocol::Anthropic })
    } else if has("itemId") || has("reasoningEncryptedContent") {
        Some(Protocol::OpenaiResponses)
    } else if has("thoughtSignature") {
        Some(Protocol::Gemini)
    } else {
        has("reasoning_details").then_some(Protocol::OpenaiChat)
    }
}

/// What the model said in one step, as its provider's own answer would read
/// where exact replay needs that.
fn said(dialect: &Dialect, model: Option<&str>, parts: &[Raw<'_>]) -> Vec<Block> {
    let details = parts.iter().find_map(|part| metadata(*part, "reasoning_details"));
    let body = match dialect.protocol {
        Protocol::OpenaiResponses => Some(format!(r#"{{"input":[{}]}}"#, items(parts).join(","))),
        Protocol::OpenaiChat => details.map(|details| chat_message(details, parts)),
        Protocol::Anthropic | Protocol::Gemini | Protocol::Ollama | Protocol::Bedrock | Protocol::Cohere => None,
    };
    match body {
        Some(body) => messages_of(dialect, model, &body).into_iter().flat_map(|message| message.blocks).collect(),
        None => {
            let source = dialect.rules(model).read.text.first().map_or("thinking", String::as_str);
            parts.iter().filter_map(|part| block(*part, source)).collect()
        }
    }
}

/// Output items. The parts of one thought have the id of their item.
fn items(parts: &[Raw<'_>]) -> Vec<String> {
    let mut items = Vec::new();
    let mut rest = parts.iter().copied().peekable();
    while let Some(part) = rest.next() {
        let mut out = ObjectWriter::default();
        match text_member(part, "type").as_deref() {
            Some("reasoning") => {
                let id = metadata(part, "itemId").and_then(text_of);
                let mut thought = vec![part];
                let same = |next: &Raw<'_>| id.is_some() && metadata(*next, "itemId").and_then(text_of) == id;
                while let Some(next) = rest.next_if(|next| is_kind(*next, "reasoning") && same(next)) {
                    thought.push(next);
                }
                out.push("type", "\"reasoning\"");
                if let Some(id) = id {
                    out.push_raw("id", &quote(&id));
                }
                let summary = thought.iter().filter_map(|part| text_member(*part, "text"));
                let summary: Vec<String> =
                    summary.map(|text| format!(r#"{{"type":"summary_text","text":{}}}"#, quote(&text))).collect();
                out.push_raw("summary", &format!("[{}]", summary.join(",")));
                let sealed = thought.iter().rev().find_map(|part| metadata(*part, "reasoningEncryptedContent"));
                if let Some(sealed) = sealed {
                    out.push_raw("encrypted_content", sealed.get());
                }
            }
            Some("tool") => {
                out.push("type", "\"function_call\"");
                out.push_raw("call_id", &quote(&text_member(part, "callID").unwrap_or_default()));
                out.push_raw("name", &quote(&text_member(part, "tool").unwrap_or_default()));
                out.push_raw("arguments", &quote(&input(part)));
            }
            _ => {
                let text = quote(&text_member(part, "text").unwrap_or_default());
                out.push("type", "\"message\"");
                out.push("role", "\"assistant\"");
                out.push_raw("content", &format!(r#"[{{"type":"output_text","text":{text}}}]"#));
            }
        }
        items.push(out.finish());
    }
    items
}

/// A message of Chat Completions with its details as they came.
fn chat_message(details: Raw<'_>, parts: &[Raw<'_>]) -> String {
    let texts = |kind: &str| {
        let parts = parts.iter().filter(|part| is_kind(**part, kind));
        parts.filter_map(|part| text_member(*part, "text")).collect::<Vec<_>>().concat()
    };
    let calls = parts.iter().filter(|part| is_kind(**part, "tool")).map(|part| {
        let mut function = ObjectWriter::default();
        function.push_raw("name", &quote(&text_member(*part, "tool").unwrap_or_default()));
        function.push_raw("arguments", &quote(&input(*part)));
        let mut out = ObjectWriter::default();
        out.push_raw("id", &quote(&text_member(*part, "callID").unwrap_or_default()));
        out.push("type", "\"function\"");
        out.push_raw("function", &function.finish());
        out.finish()
    });
    let calls: Vec<String> = calls.collect();
    let mut out = ObjectWriter::default();
    out.push("role", "\"assistant\"");
    out.push_raw("content", &quote(&texts("text")));
    out.push("reasoning_details", details.get());
    if !calls.is_empty() {
        out.push_raw("tool_calls", &format!("[{}]", calls.join(",")));
    }
    format!(r#"{{"messages":[{}]}}"#, out.finish())
}

fn block(part: Raw<'_>, source: &str) -> Option<Block> {
    match text_member(part, "type").as_deref() {
        Some("reasoning") => thinking(part, source),
        Some("tool") => Some(Block::ToolCall(ToolCall {
            id: CallId::known(text_member(part, "callID").unwrap_or_default()),
            name: text_member(part, "tool").unwrap_or_default(),
            arguments: Arguments::parse(input(part)),
            seal: signature(part, "thoughtSignature"),
            native: None,
        })),
        _ => Some(text_block(part)),
    }
}

fn thinking(part: Raw<'_>, source: &str) -> Option<Block> {
    let text = text_member(part, "text").unwrap_or_default();
    let encrypted = metadata(part, "redactedData").and_then(text_of);
    let seals = Seals {
        signature: signature(part, "signature").or_else(|| signature(part, "thoughtSignature")),
        encrypted: encrypted.map(|payload| Seal { kind: SealKind::Encrypted, payload }),
    };
    let sealed = seals.signature.is_some() || seals.encrypted.is_some();
    let content = match (text.is_empty(), sealed) {
        (true, false) => return None,
        (true, true) => Content::Hidden { seals },
        (false, true) => Content::Sealed { text, seals },
        (false, false) => Content::Open { text },
    };
    let time = |path: &str| at_path(part, path).and_then(count_of).map(Time);
    let span = time("time.start").zip(time("time.end"));
    let span = span.map(|(started, ended)| Span { started, ended: ended.max(started) });
    let redacted = matches!(&content, Content::Hidden { seals } if seals.encrypted.is_some());
    let source = if redacted { "redacted_thinking" } else { source }.to_owned();
    Some(Block::Thinking(Thinking { content, source, id: None, items: Vec::new(), span, native: None }))
}

fn text_block(part: Raw<'_>) -> Block {
    let text = text_member(part, "text").unwrap_or_default();
    Block::Text(Text { text, seal: signature(part, "thoughtSignature"), native: None })
}

fn signature(part: Raw<'_>, name: &str) -> Option<Seal> {
    let payload = metadata(part, name).and_then(text_of)?;
    Some(Seal { kind: SealKind::Signature, payload })
}

fn image(part: Raw<'_>) -> Option<Block> {
    let url = text_member(part, "url")?;
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let is_image = media_type.starts_with("image/");
    is_image.then(|| Block::Image(Image { media_type: media_type.to_owned(), data: data.to_owned() }))
}

fn is_kind(part: Raw<'_>, kind: &str) -> bool {
    text_member(part, "type").as_deref() == Some(kind)
}

fn input(part: Raw<'_>) -> String {
    at_path(part, "state.input").map_or("{}".into(), |input| canonical(input.get())).into_owned()
}

/// What a tool gave; that it never ended is an answer too, as the program
/// itself has it.
fn result(part: Raw<'_>) -> Option<Block> {
    if !is_kind(part, "tool") {
        return None;
    }
    let state = |name: &str| at_path(part, &format!("state.{name}")).and_then(text_of).unwrap_or_default();
    let (content, is_error) = match state("status").as_str() {
        "completed" => (state("output"), false),
        "error" => (state("error"), true),
        _ => ("the tool was interrupted".to_owned(), true),
    };
    let id = text_member(part, "callID").unwrap_or_default();
    let name = text_member(part, "tool").unwrap_or_default();
    Some(Block::ToolResult(ToolResult { id, name, content, is_error }))
}

fn usage(tokens: Raw<'_>) -> Usage {
    let count = |path: &str| at_path(tokens, path).and_then(count_of);
    Usage { input: count("input"), output: count("output"), reasoning: count("reasoning"), cached: count("cache.read") }
}

fn ending(word: &str) -> Ending {
    match word {
        "stop" => Ending::Stop,
        "length" => Ending::Length,
        "tool-calls" => Ending::ToolCalls,
        "content-filter" => Ending::ContentFilter,
        "error" => Ending::Error,
        other => Ending::Unrecognized(other.to_owned()),
    }
}
