//! Imports sessions of OpenCode: the output of `opencode export`, or the files
//! that versions before 1.2 stored below `storage/{session,message,part}`.
//!
//! Based on the program's public source. A message has a role, times in
//! milliseconds and, if it is an answer, `providerID` and `modelID`. Its parts
//! are `text`, `reasoning`, `tool` (with its result in `state`), `file`,
//! `step-start`, `step-finish` and some internal ones. What a provider expects
//! back is in `metadata`, under the name of a client library: `signature` and
//! `redactedData`, `itemId` and `reasoningEncryptedContent` (one part for each
//! summary item), and `thoughtSignature`, also on text and tools;
//! `reasoning_details` as received. Since 1.2 sessions are in an SQLite
//! database, which is not read here; its rows have the same JSON without ids,
//! which are taken from the file names.

use std::collections::BTreeMap;

use super::{SkippedRecords, dialect_of, messages_of, origin_of};
use crate::block::{
    Arguments, Block, CallId, Media, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ThinkingSpan, Time,
    ToolCall, ToolResult,
};
use crate::dialect::{Dialect, Dialects};
use crate::event::{Ending, Usage};
use crate::interchange::{ImportError, ImportFile, ImportKind, Imported};
use crate::json_text::{
    JsonKind, ObjectWriter, Raw, at_path, canonical, count_of, each_element, each_member, member, quote, text_member,
    text_of,
};
use crate::message::{Message, Role};
use crate::protocol::Protocol;

pub(in crate::interchange) fn read_opencode(
    files: &[ImportFile<'_>],
    dialects: &Dialects,
) -> Result<Imported, ImportError> {
    let mut stored = StoredFiles::default();
    for file in files {
        stored.add_file(file);
    }
    let mut import = OpenCodeImport { dialects, imported: Imported::default(), skipped: SkippedRecords::default() };
    let (session, messages) = stored.newest_session();
    import.imported.notes = stored.notes;
    for message in &messages {
        let mut parts: Vec<&(String, Raw<'_>)> = stored.parts.get(&message.id).into_iter().flatten().collect();
        parts.sort_by(|(one, _), (other, _)| one.cmp(other));
        let parts: Vec<Raw<'_>> = parts.into_iter().map(|(_, part)| *part).collect();
        import.add_message(message, &parts);
    }
    let info = stored.sessions.iter().find(|(id, _)| *id == session).map(|(_, info)| *info);
    import.imported.conversation.title = info.and_then(|info| text_member(info, "title"));
    import.finish()
}

/// The files, grouped by content.
#[derive(Default)]
struct StoredFiles<'a> {
    sessions: Vec<(String, Raw<'a>)>,
    messages: Vec<StoredMessage<'a>>,
    parts: BTreeMap<String, Vec<(String, Raw<'a>)>>,
    notes: Vec<String>,
}

#[derive(Clone)]
struct StoredMessage<'a> {
    id: String,
    session: String,
    created: u64,
    raw: Raw<'a>,
}

impl<'a> StoredFiles<'a> {
    fn add_file(&mut self, file: &ImportFile<'a>) {
        let Ok(raw) = Raw::of(file.text) else {
            self.notes.push(format!("{} is not JSON and was passed over", file.name));
            return;
        };
        if let (Some(info), Some(messages)) = (member(raw, "info"), member(raw, "messages")) {
            self.sessions.push((text_member(info, "id").unwrap_or_default(), info));
            each_element(messages, |message| {
                let Some(info) = member(message, "info") else { return };
                let id = self.add_message(info, "", "");
                if let Some(parts) = member(message, "parts") {
                    each_element(parts, |part| self.add_part(part, &id, ""));
                }
            });
            return;
        }
        let mut folders = file.name.trim_end_matches(".json").rsplit('/');
        let (stem, folder) = (folders.next().unwrap_or_default(), folders.next().unwrap_or_default());
        match () {
            () if member(raw, "role").is_some() => drop(self.add_message(raw, stem, folder)),
            () if member(raw, "type").is_some() => self.add_part(raw, folder, stem),
            () if member(raw, "title").is_some() || member(raw, "directory").is_some() => {
                self.sessions.push((text_member(raw, "id").unwrap_or_else(|| stem.to_owned()), raw));
            }
            () => self.notes.push(format!("{} is not a session, message or part", file.name)),
        }
    }

    fn add_message(&mut self, raw: Raw<'a>, stem: &str, folder: &str) -> String {
        let id = text_member(raw, "id").unwrap_or_else(|| stem.to_owned());
        let session = text_member(raw, "sessionID").unwrap_or_else(|| folder.to_owned());
        let created = at_path(raw, "time.created").and_then(count_of).unwrap_or(0);
        self.messages.push(StoredMessage { id: id.clone(), session, created, raw });
        id
    }

    fn add_part(&mut self, raw: Raw<'a>, message: &str, stem: &str) {
        let message = text_member(raw, "messageID").unwrap_or_else(|| message.to_owned());
        let id = text_member(raw, "id").unwrap_or_else(|| stem.to_owned());
        self.parts.entry(message).or_default().push((id, raw));
    }

    /// Only one session is imported: the one with the latest message.
    fn newest_session(&mut self) -> (String, Vec<StoredMessage<'a>>) {
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

struct OpenCodeImport<'d> {
    dialects: &'d Dialects,
    imported: Imported,
    skipped: SkippedRecords,
}

/// One request to the model: its reply and the tool results.
#[derive(Default)]
struct AnswerStep<'a> {
    parts: Vec<Raw<'a>>,
    usage: Option<Usage>,
    ending: Option<Ending>,
}

impl<'d> OpenCodeImport<'d> {
    fn add_message(&mut self, stored: &StoredMessage<'_>, parts: &[Raw<'_>]) {
        let at = Some(Time(stored.created)).filter(|time| time.0 > 0);
        match text_member(stored.raw, "role").as_deref() {
            Some("user") => {
                let blocks = parts.iter().filter_map(|part| self.user_part(*part)).collect();
                self.append(Some(stored.id.clone()), Message { at, ..Message::new(Role::User, blocks) });
            }
            Some("assistant") => self.add_answer(stored, parts, at),
            role => self.skipped.count(&format!("a message of role `{}`", role.unwrap_or_default())),
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
                self.skipped.count("a text that the model was not shown");
                None
            }
            "text" => Some(text_block(part)),
            "file" => {
                let image = image(part);
                if image.is_none() {
                    self.skipped.count("a `file` that is not an image");
                }
                image
            }
            _ => {
                self.skipped.count(&format!("`{kind}`"));
                None
            }
        }
    }

    fn add_answer(&mut self, stored: &StoredMessage<'_>, parts: &[Raw<'_>], at: Option<Time>) {
        let model = text_member(stored.raw, "modelID");
        let provider = text_member(stored.raw, "providerID");
        let Some(dialect) = self.dialect(parts, provider.as_deref(), model.as_deref()) else { return };
        let origin = origin_of(dialect, model.as_deref());
        self.imported.conversation.model =
            model.as_ref().map(|model| format!("{}/{model}", dialect.id)).or(self.imported.conversation.model.take());
        let interrupted = member(stored.raw, "error").is_some_and(|error| error.kind() == JsonKind::Object);
        let mut name = Some(stored.id.clone());
        for step in self.steps(parts) {
            let mut message = Message::new(Role::Assistant, answer_blocks(dialect, model.as_deref(), &step.parts));
            (message.at, message.interrupted) = (at, interrupted);
            (message.usage, message.ending) = (step.usage, step.ending);
            message.origin = Some(origin.clone());
            self.append(name.take(), message);
            let results: Vec<Block> = step.parts.iter().filter_map(|part| result(*part)).collect();
            if !results.is_empty() {
                self.append(None, Message { at, ..Message::new(Role::Tool, results) });
            }
        }
    }

    fn steps<'a>(&mut self, parts: &[Raw<'a>]) -> Vec<AnswerStep<'a>> {
        let mut steps = Vec::new();
        let mut step = AnswerStep::default();
        for part in parts {
            let kind = text_member(*part, "type").unwrap_or_default();
            match kind.as_str() {
                "step-start" if !step.parts.is_empty() => steps.push(std::mem::take(&mut step)),
                "step-start" => (),
                "step-finish" => {
                    step.usage = member(*part, "tokens").map(usage);
                    step.ending = text_member(*part, "reason").map(|word| ending(&word));
                }
                "text" | "reasoning" | "tool" => step.parts.push(*part),
                _ => self.skipped.count(&format!("`{kind}`")),
            }
        }
        if !step.parts.is_empty() {
            steps.push(step);
        }
        steps
    }

    /// Metadata that the provider expects back identifies the protocol.
    fn dialect(&self, parts: &[Raw<'_>], provider: Option<&str>, model: Option<&str>) -> Option<&'d Dialect> {
        let known_protocol = parts.iter().find_map(|part| protocol_of(*part));
        if let Some(protocol) = known_protocol {
            return dialect_of(self.dialects, protocol, provider, model);
        }
        let known = provider.and_then(|provider| self.dialects.get(provider));
        let made = || Protocol::ALL.into_iter().find_map(|protocol| self.dialects.made_by(protocol, model?));
        known.or_else(made).or_else(|| self.dialects.generic(Protocol::OpenaiChat))
    }

    fn finish(mut self) -> Result<Imported, ImportError> {
        if self.imported.conversation.history.entries().is_empty() {
            return Err(ImportError::Empty(ImportKind::OpenCode));
        }
        self.skipped.add_notes(&mut self.imported.notes);
        self.imported.notes.push("the system prompt and the tools of the program are not in its files".to_owned());
        Ok(self.imported)
    }
}

/// A member of a part's metadata, under any library name.
fn metadata<'a>(part: Raw<'a>, name: &str) -> Option<Raw<'a>> {
    let mut found = None;
    each_member(member(part, "metadata")?, |_, inner| {
        found = found.or_else(|| member(inner, name).filter(|value| value.kind() != JsonKind::Null));
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

/// The blocks of one step. Where exact replay needs it, they are parsed from a
/// body in the provider's format.
fn answer_blocks(dialect: &Dialect, model: Option<&str>, parts: &[Raw<'_>]) -> Vec<Block> {
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

/// Builds output items. Parts of one thinking item share its id.
fn items(parts: &[Raw<'_>]) -> Vec<String> {
    let mut items = Vec::new();
    let mut rest = parts.iter().copied().peekable();
    while let Some(part) = rest.next() {
        let mut out = ObjectWriter::default();
        match text_member(part, "type").as_deref() {
            Some("reasoning") => {
                let id = metadata(part, "itemId").and_then(text_of);
                let mut item_parts = vec![part];
                let same = |next: &Raw<'_>| id.is_some() && metadata(*next, "itemId").and_then(text_of) == id;
                while let Some(next) = rest.next_if(|next| is_kind(*next, "reasoning") && same(next)) {
                    item_parts.push(next);
                }
                out.push("type", "\"reasoning\"");
                if let Some(id) = id {
                    out.push_raw("id", &quote(&id));
                }
                let summary = item_parts.iter().filter_map(|part| text_member(*part, "text"));
                let summary: Vec<String> =
                    summary.map(|text| format!(r#"{{"type":"summary_text","text":{}}}"#, quote(&text))).collect();
                out.push_raw("summary", &format!("[{}]", summary.join(",")));
                let sealed = item_parts.iter().rev().find_map(|part| metadata(*part, "reasoningEncryptedContent"));
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

/// Builds a Chat Completions message with the original details.
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
            id: CallId::from_stored(text_member(part, "callID").unwrap_or_default()),
            name: text_member(part, "tool").unwrap_or_default(),
            arguments: Arguments::parse(input(part)),
            seal: signature(part, "thoughtSignature"),
            native: None,
            extra: Default::default(),
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
        (true, true) => ThinkingContent::Hidden { seals },
        (false, true) => ThinkingContent::Sealed { text, seals },
        (false, false) => ThinkingContent::Open { text },
    };
    let time = |path: &str| at_path(part, path).and_then(count_of).map(Time);
    let span = time("time.start").zip(time("time.end"));
    let span = span.map(|(started, ended)| ThinkingSpan { started, ended: ended.max(started) });
    let redacted = matches!(&content, ThinkingContent::Hidden { seals } if seals.encrypted.is_some());
    let source = if redacted { "redacted_thinking" } else { source }.to_owned();
    Some(Block::Thinking(Thinking {
        content,
        source,
        id: None,
        items: Vec::new(),
        span,
        native: None,
        extra: Default::default(),
    }))
}

fn text_block(part: Raw<'_>) -> Block {
    let text = text_member(part, "text").unwrap_or_default();
    Block::Text(Text { text, seal: signature(part, "thoughtSignature"), native: None, extra: Default::default() })
}

fn signature(part: Raw<'_>, name: &str) -> Option<Seal> {
    let payload = metadata(part, name).and_then(text_of)?;
    Some(Seal { kind: SealKind::Signature, payload })
}

fn image(part: Raw<'_>) -> Option<Block> {
    let url = text_member(part, "url")?;
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let is_image = media_type.starts_with("image/");
    is_image.then(|| Block::Media(Media::image(media_type.to_owned(), data.to_owned())))
}

fn is_kind(part: Raw<'_>, kind: &str) -> bool {
    text_member(part, "type").as_deref() == Some(kind)
}

fn input(part: Raw<'_>) -> String {
    at_path(part, "state.input").map_or("{}".into(), |input| canonical(input.get())).into_owned()
}

/// The result of a tool. An unfinished tool counts as interrupted, as in the
/// program itself.
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
    Some(Block::ToolResult(ToolResult { id, name, content, is_error, media: Vec::new() }))
}

fn usage(tokens: Raw<'_>) -> Usage {
    let count = |path: &str| at_path(tokens, path).and_then(count_of);
    Usage {
        input: count("input"),
        output: count("output"),
        reasoning: count("reasoning"),
        cached: count("cache.read"),
        cache_write: count("cache.write"),
    }
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
