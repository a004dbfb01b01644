//! Imports sessions of Codex: `rollout-….jsonl` below `~/.codex/sessions`.
//!
//! Based on the program's public source. Each line is
//! `{"timestamp","type","payload"}`. `session_meta` has the provider and the
//! base instructions, `turn_context` the model, `response_item` an item of the
//! Responses API as it was sent or received, `event_msg` an event for the
//! screen (`token_count` and `thread_rolled_back` matter here), `compacted` a
//! summary and, in recent versions, the history that replaces everything
//! before. Files from before autumn 2025 contain bare items without an
//! envelope.

use super::{SkippedRecords, dialect_of, messages_of, name_results, origin_of, records};
use crate::block::{Block, Text, Time};
use crate::compaction::summary_message;
use crate::dialect::Dialects;
use crate::event::Usage;
use crate::history::EntryId;
use crate::interchange::{ImportError, ImportKind, ImportSource, Imported, Program};
use crate::json::parse_rfc3339;
use crate::json_text::{
    JsonKind, ObjectWriter, Raw, at_path, compact, count_of, each_element, each_member, member, quote, text_member,
    text_of,
};
use crate::message::{Message, Role};
use crate::protocol::Protocol;

pub(in crate::interchange) fn read_codex(text: &str, dialects: &Dialects) -> Result<Imported, ImportError> {
    let mut notes = Vec::new();
    let mut session = CodexSession::new(dialects);
    for (_, line) in records(text, &mut notes) {
        session.add_line(line);
    }
    session.finish(notes)
}

struct CodexSession<'d> {
    dialects: &'d Dialects,
    imported: Imported,
    /// The log so far: each message with its parent.
    log: Vec<(Option<usize>, Message)>,
    head: Option<usize>,
    /// Where a compacted history starts: after the instructions.
    root: Option<usize>,
    provider: Option<String>,
    model: Option<String>,
    /// Model items that are not yet combined into a message.
    pending_items: Vec<String>,
    pending_at: Option<Time>,
    skipped: SkippedRecords,
}

impl<'d> CodexSession<'d> {
    fn new(dialects: &'d Dialects) -> CodexSession<'d> {
        CodexSession {
            dialects,
            imported: Imported::default(),
            log: Vec::new(),
            head: None,
            root: None,
            provider: None,
            model: None,
            pending_items: Vec::new(),
            pending_at: None,
            skipped: SkippedRecords::default(),
        }
    }

    fn add_line(&mut self, line: Raw<'_>) {
        let at = text_member(line, "timestamp").and_then(|time| parse_rfc3339(&time));
        let kind = text_member(line, "type");
        let Some(payload) = member(line, "payload").filter(|payload| payload.kind() == JsonKind::Object) else {
            // An old file, or a line without content.
            match kind {
                Some(_) => self.add_item(line, at),
                None => self.skipped.count("a line without a type"),
            }
            return;
        };
        match kind.as_deref() {
            Some("session_meta") => self.read_meta(payload),
            Some("turn_context") => {
                self.flush();
                self.model = text_member(payload, "model").or(self.model.take());
            }
            Some("response_item") => self.add_item(payload, at),
            Some("compacted") => self.add_compaction(payload, at),
            Some("event_msg") => self.add_event(payload),
            kind => self.skipped.count(&format!("`{}`", kind.unwrap_or_default())),
        }
    }

    fn read_meta(&mut self, payload: Raw<'_>) {
        // A fork repeats the line of its parent. The first one is its own.
        if self.provider.is_some() || !self.log.is_empty() {
            self.skipped.count("`session_meta` of another session");
            return;
        }
        self.provider = text_member(payload, "model_provider").or(Some(String::new()));
        let subagent = at_path(payload, "source.subagent").is_some();
        self.imported.source = Some(ImportSource {
            session: text_member(payload, "id"),
            folder: text_member(payload, "cwd"),
            is_subagent: subagent || text_member(payload, "thread_source").as_deref() == Some("subagent"),
            ..ImportSource::new(Program::Codex)
        });
        let instructions = at_path(payload, "base_instructions.text").and_then(text_of);
        if let Some(instructions) = instructions {
            let text = Text { text: instructions, ..Text::default() };
            self.append(Message::new(Role::System, vec![Block::Text(text)]));
            self.root = self.head;
        }
    }

    fn append(&mut self, message: Message) {
        self.log.push((self.head, message));
        self.head = Some(self.log.len() - 1);
    }

    /// Handles an item of the user, of a tool or of the model.
    fn add_item(&mut self, item: Raw<'_>, at: Option<Time>) {
        let kind = text_member(item, "type").unwrap_or_default();
        let role = text_member(item, "role");
        match (kind.as_str(), role.as_deref()) {
            // A snapshot of the work tree, and an internal marker.
            ("ghost_snapshot" | "compaction_trigger", _) => self.skipped.count(&format!("`{kind}`")),
            ("message", Some("assistant")) => self.add_model_item(sendable(item), at),
            ("message", Some(_)) | ("function_call_output" | "custom_tool_call_output", _) => {
                self.flush();
                self.add_messages(&sendable(item), at);
            }
            ("message", None) => self.skipped.count("a message without a role"),
            _ => self.add_model_item(sendable(item), at),
        }
    }

    fn add_model_item(&mut self, item: String, at: Option<Time>) {
        self.pending_at = self.pending_at.or(at);
        self.pending_items.push(item);
    }

    /// Combines consecutive model items into one message.
    fn flush(&mut self) {
        if !self.pending_items.is_empty() {
            let items = std::mem::take(&mut self.pending_items).join(",");
            let at = self.pending_at.take();
            self.add_messages(&items, at);
        }
    }

    fn add_messages(&mut self, items: &str, at: Option<Time>) {
        let provider = self.provider.as_deref().filter(|provider| !provider.is_empty());
        let model = self.model.as_deref();
        let Some(dialect) = dialect_of(self.dialects, Protocol::OpenaiResponses, provider, model) else { return };
        let origin = origin_of(dialect, model);
        let read = messages_of(dialect, model, &format!(r#"{{"input":[{items}]}}"#));
        if read.is_empty() {
            self.skipped.count("an item that is not understood");
        }
        for mut message in read {
            message.at = at;
            if message.role == Role::Assistant {
                message.origin = Some(origin.clone());
            }
            // Combine the results of parallel calls into one message.
            let last = self.head.and_then(|head| self.log.get_mut(head)).map(|(_, last)| last);
            match last.filter(|last| last.role == Role::Tool && message.role == Role::Tool) {
                Some(last) => last.blocks.append(&mut message.blocks),
                None => self.append(message),
            }
        }
    }

    /// Starts the history again. The previous messages stay on their own
    /// branch.
    fn add_compaction(&mut self, payload: Raw<'_>, at: Option<Time>) {
        self.flush();
        self.head = self.root;
        let before = self.log.len();
        if let Some(items) = member(payload, "replacement_history") {
            let mut elements = Vec::new();
            each_element(items, |item| elements.push(item));
            for item in elements {
                self.add_item(item, at);
            }
            self.flush();
        }
        if self.log.len() == before {
            let summary = text_member(payload, "message").and_then(|summary| summary_message(&summary));
            match summary {
                Some(summary) => self.append(Message { at, ..summary }),
                None => self.skipped.count("a compaction without a summary"),
            }
        }
    }

    fn add_event(&mut self, payload: Raw<'_>) {
        match text_member(payload, "type").as_deref() {
            Some("token_count") => {
                self.flush();
                let usage = at_path(payload, "info.last_token_usage").map(usage);
                let answer = self.head.and_then(|head| self.answer_before(head));
                if let (Some(usage), Some((_, message))) = (usage, answer.and_then(|at| self.log.get_mut(at))) {
                    message.usage = Some(usage);
                }
            }
            Some("thread_rolled_back") => {
                self.flush();
                let turns = member(payload, "num_turns").and_then(count_of).unwrap_or(0);
                for _ in 0..turns {
                    let Some(user) = self.head.and_then(|head| self.before(head, Role::User)) else { break };
                    self.head = self.log.get(user).and_then(|(parent, _)| *parent);
                }
            }
            Some("thread_name_updated") => {
                let title = text_member(payload, "thread_name").or_else(|| text_member(payload, "name"));
                self.imported.conversation.title = title.or(self.imported.conversation.title.take());
            }
            // Other events repeat what the items contain.
            _ => (),
        }
    }

    /// The nearest answer on the branch, unless a user message comes first.
    fn answer_before(&self, head: usize) -> Option<usize> {
        // Counts follow every step, so this never searches beyond the current
        // turn.
        let at = self.find_before(head, |role| matches!(role, Role::Assistant | Role::User))?;
        self.log.get(at).is_some_and(|(_, message)| message.role == Role::Assistant).then_some(at)
    }

    fn before(&self, head: usize, role: Role) -> Option<usize> {
        self.find_before(head, |found| found == role)
    }

    fn find_before(&self, head: usize, is_it: impl Fn(Role) -> bool) -> Option<usize> {
        let mut next = Some(head);
        while let Some(at) = next {
            let (parent, message) = self.log.get(at)?;
            if is_it(message.role) {
                return Some(at);
            }
            next = *parent;
        }
        None
    }

    fn finish(mut self, mut notes: Vec<String>) -> Result<Imported, ImportError> {
        self.flush();
        if !self.log.iter().any(|(_, message)| message.role != Role::System) {
            return Err(ImportError::Empty(ImportKind::Session(Program::Codex)));
        }
        name_results(self.log.iter_mut().map(|(_, message)| message));
        let conversation = &mut self.imported.conversation;
        for (parent, message) in self.log {
            conversation.history.insert(None, parent.map(EntryId), message);
        }
        // The head is always in the log.
        let _exists = conversation.history.fork(self.head.map(EntryId));
        self.imported.passed_over = self.skipped.0;
        self.imported.source.get_or_insert_with(|| ImportSource::new(Program::Codex));
        notes.push("the tools of the program are not in its file".to_owned());
        self.imported.notes = notes;
        Ok(self.imported)
    }
}

/// Converts an item to the form the provider accepts. Internal members are
/// removed, and the program's own kinds of calls become function calls, so that
/// any provider can pair them with their results.
fn sendable(item: Raw<'_>) -> String {
    let text = |name: &str| text_member(item, name);
    let call = |name: &str, arguments: &str, id: Option<String>| {
        let mut out = ObjectWriter::default();
        out.push("type", "\"function_call\"");
        out.push_raw("call_id", &quote(&id.unwrap_or_default()));
        out.push_raw("name", &quote(name));
        out.push_raw("arguments", &quote(arguments));
        out.finish()
    };
    match text("type").as_deref() {
        Some("custom_tool_call") => {
            let input = format!(r#"{{"input":{}}}"#, quote(&text("input").unwrap_or_default()));
            call(&text("name").unwrap_or_default(), &input, text("call_id"))
        }
        Some("local_shell_call") => {
            let action = member(item, "action").map_or("{}".into(), |action| compact(action.get()));
            call("local_shell", &action, text("call_id").or_else(|| text("id")))
        }
        _ => {
            let mut out = ObjectWriter::default();
            each_member(item, |key, value| {
                if !key.starts_with("internal_") && key != "timestamp" && value.kind() != JsonKind::Null {
                    out.push(key, value.get());
                }
            });
            out.finish()
        }
    }
}

fn usage(raw: Raw<'_>) -> Usage {
    let count = |name: &str| member(raw, name).and_then(count_of);
    Usage {
        input: count("input_tokens"),
        output: count("output_tokens"),
        reasoning: count("reasoning_output_tokens"),
        cached: count("cached_input_tokens"),
        cache_write: None,
    }
}
