//! Imports sessions of Gemini CLI: `session-….jsonl` below
//! `~/.gemini/tmp/…/chats`, or the JSON object that older versions wrote.
//!
//! Based on the program's public source and on files that it wrote. Lines are
//! metadata (`sessionId`), messages (`id`, `type`, `content`), changes (`$set`,
//! which may replace all messages) and `$rewindTo`. A message may be written
//! again with more members, and the last version counts. An answer
//! (`type: "gemini"`) has text, `thoughts` (`subject` and `description`),
//! `toolCalls` with their results, and `tokens`. Only where the program replaced
//! all messages is the content a list of parts with signatures; then the other
//! members are missing, and an earlier version of the message has them.

use std::collections::{BTreeMap, BTreeSet};

use super::answer_parts::{AnswerPart, ThinkingPart, answer_blocks};
use super::message_log::MessageLog;
use super::{SkippedRecords, dialect_of, image, origin_of, records};
use crate::block::{Block, Text, ToolResult};
use crate::dialect::Dialects;
use crate::event::Usage;
use crate::interchange::{ImportError, ImportKind, ImportSource, Imported, Program};
use crate::json::parse_rfc3339;
use crate::json_text::{
    JsonKind, Raw, at_path, canonical, compact, count_of, each_element, is_empty_value, member, text_member, text_of,
};
use crate::message::{Message, Role};
use crate::protocol::Protocol;

pub(in crate::interchange) fn read_gemini_cli(text: &str, dialects: &Dialects) -> Result<Imported, ImportError> {
    let mut session = GeminiSession::new(dialects);
    match Raw::of(text) {
        // One object in older versions, and in a file with one line.
        Ok(whole) if whole.kind() == JsonKind::Object => session.add_record(whole),
        Ok(_) | Err(_) => {
            let mut notes = Vec::new();
            for (_, line) in records(text, &mut notes) {
                session.add_record(line);
            }
            session.imported.notes = notes;
        }
    }
    session.finish()
}

struct GeminiSession<'t, 'd> {
    dialects: &'d Dialects,
    imported: Imported,
    /// All versions of each message, oldest first.
    versions: BTreeMap<String, Vec<Raw<'t>>>,
    /// The ids of the current messages, in order, and as a set.
    current: Vec<String>,
    is_current: BTreeSet<String>,
    /// Messages that were taken back or replaced, with the one before them.
    dropped: Vec<(Option<String>, Vec<String>)>,
    /// Calls whose result has been seen; it may be stored several times.
    answered: BTreeSet<String>,
    log: MessageLog,
    skipped: SkippedRecords,
}

impl<'t, 'd> GeminiSession<'t, 'd> {
    fn new(dialects: &'d Dialects) -> GeminiSession<'t, 'd> {
        GeminiSession {
            dialects,
            imported: Imported { source: Some(ImportSource::new(Program::GeminiCli)), ..Imported::default() },
            versions: BTreeMap::new(),
            current: Vec::new(),
            is_current: BTreeSet::new(),
            dropped: Vec::new(),
            answered: BTreeSet::new(),
            log: MessageLog::default(),
            skipped: SkippedRecords::default(),
        }
    }

    fn add_record(&mut self, record: Raw<'t>) {
        if let Some(id) = text_member(record, "$rewindTo") {
            let at = self.current.iter().position(|current| *current == id).unwrap_or(0);
            self.keep_until(at);
        } else if let Some(changes) = member(record, "$set") {
            self.read_metadata(changes);
            self.replace_messages(changes);
        } else if member(record, "type").is_some() {
            self.add_message(record);
        } else {
            self.read_metadata(record);
            self.replace_messages(record);
        }
    }

    fn read_metadata(&mut self, metadata: Raw<'_>) {
        let source = self.imported.source.get_or_insert_with(|| ImportSource::new(Program::GeminiCli));
        source.session = text_member(metadata, "sessionId").or(source.session.take());
        source.is_subagent |= text_member(metadata, "kind").as_deref() == Some("subagent");
        let title = text_member(metadata, "summary");
        self.imported.conversation.title = title.or(self.imported.conversation.title.take());
    }

    fn replace_messages(&mut self, list: Raw<'t>) {
        let Some(list) = member(list, "messages") else { return };
        let mut messages = Vec::new();
        each_element(list, |message| messages.push(message));
        let id = |message: &Raw<'_>| text_member(*message, "id").unwrap_or_default();
        let same = self.current.iter().zip(&messages).take_while(|(known, message)| **known == id(message)).count();
        self.keep_until(same);
        for message in messages {
            self.add_message(message);
        }
    }

    /// Drops the messages from a position on.
    fn keep_until(&mut self, at: usize) {
        let dropped = self.current.split_off(at.min(self.current.len()));
        if !dropped.is_empty() {
            for id in &dropped {
                self.is_current.remove(id);
            }
            self.dropped.push((self.current.last().cloned(), dropped));
        }
    }

    fn add_message(&mut self, message: Raw<'t>) {
        let id = text_member(message, "id").unwrap_or_else(|| format!("#{}", self.versions.len()));
        self.versions.entry(id.clone()).or_default().push(message);
        // The position of a known message stays, unless it was dropped.
        if self.is_current.insert(id.clone()) {
            self.current.push(id);
        }
    }

    fn append(&mut self, id: &str) {
        let versions = self.versions.get(id).cloned().unwrap_or_default();
        let Some(last) = versions.last().copied() else { return };
        let time = versions.iter().find_map(|version| text_member(*version, "timestamp"));
        let at = time.and_then(|time| parse_rfc3339(&time));
        match text_member(last, "type").as_deref() {
            Some("user") => {
                let (results, blocks) = self.user_blocks(last);
                for result in results {
                    self.log.append_result(None, at, result);
                }
                if !blocks.is_empty() {
                    self.log.append(Some(id.to_owned()), Message { at, ..Message::new(Role::User, blocks) });
                }
            }
            Some("gemini") => {
                let answer = StoredAnswer { versions: &versions };
                let message = self.answer(&answer);
                self.log.append(Some(id.to_owned()), Message { at, ..message });
                for result in answer.results() {
                    if self.is_first_result(&result) {
                        self.log.append_result(None, at, Block::ToolResult(result));
                    }
                }
            }
            // Words of the program, for the screen.
            kind => self.skipped.count(&format!("`{}`", kind.unwrap_or_default())),
        }
    }

    fn is_first_result(&mut self, result: &ToolResult) -> bool {
        result.id.is_empty() || self.answered.insert(result.id.clone())
    }

    fn user_blocks(&mut self, message: Raw<'_>) -> (Vec<Block>, Vec<Block>) {
        let (mut results, mut blocks) = (Vec::new(), Vec::new());
        let Some(content) = member(message, "content") else { return (results, blocks) };
        let text = |text: String| Block::Text(Text { text, ..Text::default() });
        blocks.extend(text_of(content).map(text));
        each_element(content, |part| {
            if let Some(response) = member(part, "functionResponse") {
                let result = tool_result(response, None);
                if self.is_first_result(&result) {
                    results.push(Block::ToolResult(result));
                }
            } else if let Some(data) = member(part, "inlineData") {
                blocks.extend(image(text_member(data, "mimeType"), text_member(data, "data")));
            } else if let Some(words) = text_member(part, "text") {
                blocks.push(text(words));
            } else {
                self.skipped.count("a part of a message that is not understood");
            }
        });
        (results, blocks)
    }

    fn answer(&mut self, answer: &StoredAnswer<'_>) -> Message {
        let model = answer.member("model").and_then(text_of);
        let Some(dialect) = dialect_of(self.dialects, Protocol::Gemini, None, model.as_deref()) else {
            return Message::new(Role::Assistant, Vec::new());
        };
        let blocks = answer_blocks(dialect, model.as_deref(), answer.parts(), None);
        Message {
            usage: answer.member("tokens").map(usage),
            origin: Some(origin_of(dialect, model.as_deref())),
            ..Message::new(Role::Assistant, blocks)
        }
    }

    fn finish(mut self) -> Result<Imported, ImportError> {
        let mut entry_of: BTreeMap<String, Option<usize>> = BTreeMap::new();
        for id in std::mem::take(&mut self.current) {
            self.append(&id);
            entry_of.insert(id, self.log.head);
        }
        let head = self.log.head;
        // A message that is current again is not a branch of its own.
        for (before, ids) in std::mem::take(&mut self.dropped) {
            self.log.head = before.and_then(|before| entry_of.get(&before).copied()).flatten();
            for id in ids {
                if entry_of.contains_key(&id) {
                    continue;
                }
                self.append(&id);
                entry_of.insert(id, self.log.head);
            }
        }
        self.log.head = head.or(self.log.head);
        if !self.log.has_conversation() {
            return Err(ImportError::Empty(ImportKind::Session(Program::GeminiCli)));
        }
        self.imported.conversation.history = self.log.into_history();
        self.imported.passed_over = self.skipped.0;
        self.imported.notes.push("the system prompt and the tools of the program are not in its file".to_owned());
        Ok(self.imported)
    }
}

/// The versions of one answer.
struct StoredAnswer<'a> {
    versions: &'a [Raw<'a>],
}

impl<'a> StoredAnswer<'a> {
    /// A member of the latest version that has it.
    fn member(&self, name: &str) -> Option<Raw<'a>> {
        let mut values = self.versions.iter().rev().filter_map(|version| member(*version, name));
        values.find(|value| !is_empty_value(*value))
    }

    fn calls(&self) -> Vec<Raw<'a>> {
        let mut calls = Vec::new();
        if let Some(list) = self.member("toolCalls") {
            each_element(list, |call| calls.push(call));
        }
        calls
    }

    fn parts(&self) -> Vec<AnswerPart> {
        let content = self.member("content");
        let mut listed = Vec::new();
        if let Some(content) = content {
            each_element(content, |part| listed.push(part));
        }
        let mut parts: Vec<AnswerPart> = Vec::new();
        let thoughts = self.thoughts().or_else(|| thought_parts(&listed));
        parts.extend(thoughts.map(AnswerPart::Thinking));
        if let Some(text) = content.and_then(text_of) {
            parts.push(AnswerPart::Text { text, signature: None });
        }
        let mut called = BTreeSet::new();
        for part in &listed {
            let signature = text_member(*part, "thoughtSignature");
            if let Some(call) = member(*part, "functionCall") {
                called.insert(text_member(call, "id").unwrap_or_default());
                parts.push(call_part(call, signature));
            } else if !is_thought(*part) {
                let text = text_member(*part, "text").unwrap_or_default();
                parts.push(AnswerPart::Text { text, signature });
            }
        }
        // A call without an id cannot be told apart from the others.
        if !called.contains("") {
            let is_new = |call: &Raw<'_>| text_member(*call, "id").is_none_or(|id| !called.contains(&id));
            parts.extend(self.calls().into_iter().filter(is_new).map(|call| call_part(call, None)));
        }
        parts
    }

    /// The thoughts, as the paragraphs that the program took apart.
    fn thoughts(&self) -> Option<ThinkingPart> {
        let mut thinking = ThinkingPart::default();
        each_element(self.member("thoughts")?, |thought| {
            let text = |name: &str| text_member(thought, name).unwrap_or_default();
            let (subject, description) = (text("subject"), text("description"));
            let title = if subject.is_empty() { String::new() } else { format!("**{subject}**\n\n") };
            add_paragraph(&mut thinking, &format!("{title}{description}"), !subject.is_empty());
        });
        Some(thinking)
    }

    fn results(&self) -> Vec<ToolResult> {
        let mut results = Vec::new();
        for call in self.calls() {
            let failed = matches!(text_member(call, "status").as_deref(), Some("error" | "cancelled"));
            let Some(list) = member(call, "result") else { continue };
            each_element(list, |part| {
                let response = member(part, "functionResponse");
                results.extend(response.map(|response| tool_result(response, Some(failed))));
            });
        }
        results
    }
}

/// Adds a thought. Thoughts without a subject are pieces of one paragraph, whose
/// blanks the program removed.
fn add_paragraph(thinking: &mut ThinkingPart, text: &str, is_titled: bool) {
    if !thinking.text.is_empty() {
        thinking.text.push_str(if is_titled { "\n\n" } else { " " });
    }
    let start = thinking.text.len();
    thinking.text.push_str(text);
    match thinking.items.last_mut() {
        Some(last) if !is_titled => last.end = thinking.text.len(),
        _ if is_titled => thinking.items.push(start..thinking.text.len()),
        _ => (),
    }
}

fn is_thought(part: Raw<'_>) -> bool {
    member(part, "thought").is_some_and(|flag| flag.get() == "true")
}

fn thought_parts(parts: &[Raw<'_>]) -> Option<ThinkingPart> {
    let mut thinking = ThinkingPart::default();
    for part in parts.iter().filter(|part| is_thought(**part)) {
        let text = text_member(*part, "text").unwrap_or_default();
        let is_titled = text.starts_with("**");
        add_paragraph(&mut thinking, &text, is_titled);
        thinking.signature = text_member(*part, "thoughtSignature").or(thinking.signature);
    }
    (!thinking.text.is_empty() || thinking.signature.is_some()).then_some(thinking)
}

fn call_part(call: Raw<'_>, signature: Option<String>) -> AnswerPart {
    AnswerPart::Call {
        id: text_member(call, "id").unwrap_or_default(),
        name: text_member(call, "name").unwrap_or_default(),
        arguments: member(call, "args").map_or("{}".into(), |args| canonical(args.get())).into_owned(),
        signature,
    }
}

fn tool_result(response: Raw<'_>, failed: Option<bool>) -> ToolResult {
    let output = at_path(response, "response.output").and_then(text_of);
    let error = at_path(response, "response.error").and_then(text_of);
    let is_error = failed.unwrap_or(error.is_some() && output.is_none());
    let whole = || member(response, "response").map(|whole| compact(whole.get()).into_owned());
    ToolResult {
        id: text_member(response, "id").unwrap_or_default(),
        name: text_member(response, "name").unwrap_or_default(),
        content: output.or(error).or_else(whole).unwrap_or_default(),
        is_error,
        media: Vec::new(),
    }
}

fn usage(tokens: Raw<'_>) -> Usage {
    let count = |name: &str| member(tokens, name).and_then(count_of);
    Usage {
        input: count("input"),
        output: count("output"),
        reasoning: count("thoughts"),
        cached: count("cached"),
        cache_write: None,
    }
}
