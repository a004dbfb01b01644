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
//! database, whose rows have the same JSON without ids.

use std::collections::BTreeMap;

use super::answer_parts::{AnswerPart, ThinkingPart, answer_blocks};
use super::{SkippedRecords, dialect_of_answer, origin_of, rows_of};
use crate::block::{Block, Media, Text, ThinkingSpan, Time, ToolResult};
use crate::dialect::Dialects;
use crate::event::{Ending, Usage};
use crate::interchange::{ImportError, ImportFile, ImportKind, ImportSource, Imported, Program, TableRows};
use crate::json_text::{
    JsonKind, Raw, at_path, canonical, count_of, each_element, each_member, member, text_member, text_of,
};
use crate::message::{Message, Role};
use crate::protocol::Protocol;

/// Reads rows as the files that older versions wrote.
pub(in crate::interchange) fn read_opencode_rows(
    tables: &[TableRows],
    dialects: &Dialects,
) -> Result<Imported, ImportError> {
    let mut files: Vec<(String, String)> = Vec::new();
    for row in rows_of(tables, "session") {
        files.push(("session/row.json".to_owned(), row.get().to_owned()));
    }
    for (table, parent) in [("message", "session_id"), ("part", "message_id")] {
        for row in rows_of(tables, table) {
            let id = |name: &str| text_member(row, name).unwrap_or_default();
            files.push((format!("{table}/{}/{}.json", id(parent), id("id")), id("data")));
        }
    }
    let files: Vec<ImportFile<'_>> = files.iter().map(|(name, text)| ImportFile { name, text }).collect();
    read_opencode(&files, dialects)
}

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
    import.imported.conversation.title =
        info.and_then(|info| text_member(info, "title")).filter(|title| !is_default(title));
    let folder = info.and_then(|info| text_member(info, "directory"));
    let is_child = |name: &str| info.is_some_and(|info| text_member(info, name).is_some());
    import.imported.source = Some(ImportSource {
        session: Some(session).filter(|session| !session.is_empty()),
        folder,
        is_subagent: is_child("parentID") || is_child("parent_id"),
        ..ImportSource::new(Program::OpenCode)
    });
    import.finish()
}

/// The program names a session after the time until it has a title.
fn is_default(title: &str) -> bool {
    ["New session - ", "Child session - "].iter().any(|default| title.starts_with(default))
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
        // Metadata that the provider expects back identifies the protocol.
        let protocol = parts.iter().find_map(|part| protocol_of(*part));
        let dialect = dialect_of_answer(self.dialects, protocol, provider.as_deref(), model.as_deref());
        let Some(dialect) = dialect else { return };
        let origin = origin_of(dialect, model.as_deref());
        let interrupted = member(stored.raw, "error").is_some_and(|error| error.kind() == JsonKind::Object);
        let mut name = Some(stored.id.clone());
        for step in self.steps(parts) {
            let details = step.parts.iter().find_map(|part| metadata(*part, "reasoning_details")).map(Raw::get);
            let answer = step.parts.iter().map(|part| answer_part(*part)).collect();
            let blocks = answer_blocks(dialect, model.as_deref(), answer, details);
            let mut message = Message::new(Role::Assistant, blocks);
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

    fn finish(mut self) -> Result<Imported, ImportError> {
        if self.imported.conversation.history.entries().is_empty() {
            return Err(ImportError::Empty(ImportKind::Session(Program::OpenCode)));
        }
        self.imported.passed_over = self.skipped.0;
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

fn answer_part(part: Raw<'_>) -> AnswerPart {
    let text = text_member(part, "text").unwrap_or_default();
    let of_metadata = |name: &str| metadata(part, name).and_then(text_of);
    match text_member(part, "type").as_deref() {
        Some("reasoning") => {
            let time = |path: &str| at_path(part, path).and_then(count_of).map(Time);
            let span = time("time.start").zip(time("time.end"));
            AnswerPart::Thinking(ThinkingPart {
                text,
                signature: of_metadata("signature").or_else(|| of_metadata("thoughtSignature")),
                encrypted: of_metadata("redactedData").or_else(|| of_metadata("reasoningEncryptedContent")),
                item: of_metadata("itemId"),
                span: span.map(|(started, ended)| ThinkingSpan { started, ended: ended.max(started) }),
                ..ThinkingPart::default()
            })
        }
        Some("tool") => AnswerPart::Call {
            id: text_member(part, "callID").unwrap_or_default(),
            name: text_member(part, "tool").unwrap_or_default(),
            arguments: at_path(part, "state.input").map_or("{}".into(), |input| canonical(input.get())).into_owned(),
            signature: of_metadata("thoughtSignature"),
        },
        _ => AnswerPart::Text { text, signature: of_metadata("thoughtSignature") },
    }
}

fn text_block(part: Raw<'_>) -> Block {
    Block::Text(Text { text: text_member(part, "text").unwrap_or_default(), ..Text::default() })
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
