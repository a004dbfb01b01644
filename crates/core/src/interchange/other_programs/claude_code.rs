//! Imports sessions of Claude Code: one file per session below
//! `~/.claude/projects`, with one JSON object per line.
//!
//! Based on public descriptions of the files and on programs that read them.
//! Lines of type `user` and `assistant` hold a `message` in the format of the
//! Messages API. `uuid` and `parentUuid` form a tree, which includes lines
//! without a message (`progress`, `attachment`, `system`). One answer is
//! several lines, one content block each, with the same `message.id`; results
//! of parallel calls are children of the line with their call. `isSidechain`
//! marks messages of a subagent. A compaction is a `system` line without a
//! parent (`compact_boundary`), followed by a user line with
//! `isCompactSummary`. `summary` lines give a title to the session that
//! contains `leafUuid`, often another session.

use std::collections::{BTreeMap, BTreeSet};

use super::{SkippedRecords, dialect_of, mark_as_program_text, messages_of, name_results, origin_of, records};
use crate::block::{Block, ToolResult};
use crate::compaction;
use crate::dialect::Dialects;
use crate::event::{Ending, Usage};
use crate::history::EntryId;
use crate::interchange::{ImportError, ImportKind, ImportSource, Imported, Program};
use crate::json::parse_rfc3339;
use crate::json_text::{JsonKind, Raw, compact as on_one_line, count_of, each_element, member, text_member, text_of};
use crate::message::{Message, Role};
use crate::protocol::Protocol;

pub(in crate::interchange) fn read_claude_code(text: &str, dialects: &Dialects) -> Result<Imported, ImportError> {
    let mut notes = Vec::new();
    let lines: Vec<Raw<'_>> = records(text, &mut notes).into_iter().map(|(_, line)| line).collect();
    // The file of a subagent contains nothing else.
    let only_sidechain = lines.iter().filter(|line| is_message(**line)).all(|line| is_true(*line, "isSidechain"));
    let mut session = ClaudeCodeSession::new(dialects);
    session.only_sidechain = only_sidechain;
    for line in lines {
        if is_true(line, "isSidechain") && !only_sidechain {
            session.skipped.count("a subagent's message");
        } else {
            session.add_line(line);
        }
    }
    session.finish(notes)
}

fn is_message(line: Raw<'_>) -> bool {
    matches!(text_member(line, "type").as_deref(), Some("user" | "assistant"))
}

fn is_true(line: Raw<'_>, name: &str) -> bool {
    member(line, name).is_some_and(|value| value.get() == "true")
}

struct ClaudeCodeSession<'d> {
    dialects: &'d Dialects,
    drafts: Vec<MessageDraft>,
    /// The draft of each line in the file. None if it comes before all drafts.
    draft_of_line: BTreeMap<String, Option<usize>>,
    answers: BTreeMap<String, usize>,
    /// The draft with the tool results of each answer.
    results: BTreeMap<usize, usize>,
    titles: Vec<SessionTitle>,
    session: Option<String>,
    folder: Option<String>,
    only_sidechain: bool,
    head: Option<usize>,
    skipped: SkippedRecords,
    images: usize,
}

/// A title, and the line of the session that it belongs to.
struct SessionTitle {
    leaf: Option<String>,
    title: String,
    is_users: bool,
}

/// A message while its lines are collected.
struct MessageDraft {
    name: Option<String>,
    parent: Option<usize>,
    message: Message,
    /// The content blocks of an answer, as JSON.
    content: Vec<String>,
    model: Option<String>,
}

impl<'d> ClaudeCodeSession<'d> {
    fn new(dialects: &'d Dialects) -> ClaudeCodeSession<'d> {
        ClaudeCodeSession {
            dialects,
            drafts: Vec::new(),
            draft_of_line: BTreeMap::new(),
            answers: BTreeMap::new(),
            results: BTreeMap::new(),
            titles: Vec::new(),
            session: None,
            folder: None,
            only_sidechain: false,
            head: None,
            skipped: SkippedRecords::default(),
            images: 0,
        }
    }

    fn add_line(&mut self, line: Raw<'_>) {
        let uuid = text_member(line, "uuid");
        // A resumed session may repeat a line.
        if uuid.as_ref().is_some_and(|uuid| self.draft_of_line.contains_key(uuid)) {
            return;
        }
        let parent = match member(line, "parentUuid").map(|parent| (parent.kind(), text_of(parent))) {
            Some((JsonKind::Null, _)) => None,
            Some((_, Some(parent))) => self.draft_of_line.get(&parent).copied().unwrap_or(self.head),
            Some((_, None)) | None => self.head,
        };
        let draft_at = match text_member(line, "type").as_deref() {
            Some("user") => self.add_user_line(line, uuid.clone(), parent),
            Some("assistant") => self.add_assistant_line(line, uuid.clone(), parent),
            kind => {
                self.add_other_line(line, kind.unwrap_or("a line without a type"));
                parent
            }
        };
        if is_message(line) {
            self.head = draft_at;
            // A copied session begins with lines of the original.
            self.session = text_member(line, "sessionId").or(self.session.take());
            self.folder = self.folder.take().or_else(|| text_member(line, "cwd"));
        }
        self.draft_of_line.extend(uuid.map(|uuid| (uuid, draft_at)));
    }

    fn add_other_line(&mut self, line: Raw<'_>, kind: &str) {
        let title = ["summary", "customTitle", "aiTitle"].iter().find_map(|name| text_member(line, name));
        match title.filter(|_| matches!(kind, "summary" | "custom-title" | "ai-title")) {
            Some(title) => {
                let leaf = text_member(line, "leafUuid");
                self.titles.push(SessionTitle { leaf, title, is_users: kind == "custom-title" });
            }
            None => self.skipped.count(&format!("`{kind}`")),
        }
    }

    fn push_draft(&mut self, name: Option<String>, parent: Option<usize>, message: Message) -> usize {
        self.drafts.push(MessageDraft { name, parent, message, content: Vec::new(), model: None });
        self.drafts.len() - 1
    }

    /// Handles a line of an answer. The first line creates it, the others are
    /// added to it.
    fn add_assistant_line(&mut self, line: Raw<'_>, uuid: Option<String>, parent: Option<usize>) -> Option<usize> {
        let Some(message_json) = member(line, "message") else { return parent };
        let model = text_member(message_json, "model");
        if is_true(line, "isApiErrorMessage") || model.as_deref() == Some("<synthetic>") {
            self.skipped.count("words of the program in the model's place");
            return parent;
        }
        let id = text_member(message_json, "id");
        let known = id.as_ref().and_then(|id| self.answers.get(id)).copied();
        let at = known.unwrap_or_else(|| {
            let mut message = Message::new(Role::Assistant, Vec::new());
            message.at = text_member(line, "timestamp").and_then(|time| parse_rfc3339(&time));
            self.push_draft(uuid, parent, message)
        });
        self.answers.extend(id.map(|id| (id, at)));
        let draft = self.drafts.get_mut(at)?;
        draft.model = draft.model.take().or(model);
        if let Some(content) = member(message_json, "content") {
            match content.kind() {
                JsonKind::Text => draft.add(format!(r#"{{"type":"text","text":{}}}"#, content.get())),
                JsonKind::Array => each_element(content, |block| draft.add(on_one_line(block.get()).into_owned())),
                JsonKind::Null | JsonKind::Object | JsonKind::Other => (),
            }
        }
        // The last line of an answer has the final values.
        draft.message.usage = member(message_json, "usage").map(usage).or(draft.message.usage);
        let ending = text_member(message_json, "stop_reason").map(|word| ending(&word));
        draft.message.ending = ending.or_else(|| draft.message.ending.take());
        Some(at)
    }

    /// Handles user text and tool results.
    fn add_user_line(&mut self, line: Raw<'_>, uuid: Option<String>, parent: Option<usize>) -> Option<usize> {
        let Some(content) = member(line, "message").and_then(|message_json| member(message_json, "content")) else {
            return parent;
        };
        let (mut results, mut rest) = (Vec::new(), Vec::new());
        match content.kind() {
            JsonKind::Text => rest.push(format!(r#"{{"type":"text","text":{}}}"#, content.get())),
            JsonKind::Array => each_element(content, |part| {
                if text_member(part, "type").as_deref() == Some("tool_result") {
                    results.push(part);
                } else {
                    rest.push(part.get().to_owned());
                }
            }),
            JsonKind::Null | JsonKind::Object | JsonKind::Other => (),
        }
        let at = text_member(line, "timestamp").and_then(|time| parse_rfc3339(&time));
        let mut draft_at = parent;
        let mut name = uuid;
        if !results.is_empty() {
            let blocks: Vec<Block> = results.into_iter().map(|part| self.tool_result(part)).collect();
            let taken = if rest.is_empty() { name.take() } else { None };
            draft_at = Some(self.add_results(taken, parent, Message { at, ..Message::new(Role::Tool, blocks) }));
        }
        if !rest.is_empty() {
            let body = format!(r#"{{"messages":[{{"role":"user","content":[{}]}}]}}"#, rest.join(","));
            let dialect = dialect_of(self.dialects, Protocol::Anthropic, None, None);
            let read = dialect.map(|dialect| messages_of(dialect, None, &body)).unwrap_or_default();
            let blocks = read.into_iter().flat_map(|message| message.blocks).collect();
            let mut message = Message { at, ..Message::new(Role::User, blocks) };
            if is_true(line, "isCompactSummary") {
                message.unknown_members.push((compaction::MARK.to_owned(), "true".to_owned()));
            } else if is_true(line, "isMeta") {
                // The program wrote it in the user's name.
                mark_as_program_text(&mut message);
            }
            draft_at = Some(self.push_draft(name, draft_at, message));
        }
        draft_at
    }

    /// Combines all tool results of one answer into one message, whichever line
    /// is their parent.
    fn add_results(&mut self, name: Option<String>, parent: Option<usize>, message: Message) -> usize {
        let is_results = |at: usize| self.drafts.get(at).is_some_and(|draft| draft.message.role == Role::Tool);
        let answer = match parent {
            Some(at) if is_results(at) => self.drafts.get(at).and_then(|draft| draft.parent),
            parent => parent,
        };
        let known = answer.and_then(|answer| self.results.get(&answer)).copied();
        let Some(at) = known else {
            let at = self.push_draft(name, answer, message);
            self.results.extend(answer.map(|answer| (answer, at)));
            return at;
        };
        if let Some(draft) = self.drafts.get_mut(at) {
            let have: BTreeSet<String> = draft.message.blocks.iter().filter_map(result_id).collect();
            let is_new = |block: &Block| result_id(block).is_none_or(|id| !have.contains(&id));
            draft.message.blocks.extend(message.blocks.into_iter().filter(is_new));
        }
        at
    }

    fn tool_result(&mut self, part: Raw<'_>) -> Block {
        let mut texts = Vec::new();
        if let Some(content) = member(part, "content") {
            texts.extend(text_of(content));
            each_element(content, |part| match text_member(part, "type").as_deref() {
                Some("text") => texts.push(text_member(part, "text").unwrap_or_default()),
                Some("image") => {
                    self.images += 1;
                    texts.push("[image]".to_owned());
                }
                _ => texts.push(on_one_line(part.get()).into_owned()),
            });
        }
        Block::ToolResult(ToolResult {
            id: text_member(part, "tool_use_id").unwrap_or_default(),
            name: String::new(),
            content: texts.join("\n"),
            is_error: is_true(part, "is_error"),
            media: Vec::new(),
        })
    }

    fn finish(mut self, mut notes: Vec<String>) -> Result<Imported, ImportError> {
        if self.drafts.is_empty() {
            return Err(ImportError::Empty(ImportKind::Session(Program::ClaudeCode)));
        }
        let mut imported = Imported::default();
        let conversation = &mut imported.conversation;
        for draft in &mut self.drafts {
            if draft.message.role == Role::Assistant {
                draft.read_answer(self.dialects);
            }
        }
        name_results(self.drafts.iter_mut().map(|draft| &mut draft.message));
        // A title belongs to this session if it refers to one of its lines.
        let is_known = |leaf: &String| self.draft_of_line.contains_key(leaf);
        let own = || self.titles.iter().rev().filter(|title| title.leaf.as_ref().is_none_or(is_known));
        let title = own().find(|title| title.is_users).or_else(|| own().next());
        conversation.title = title.map(|title| title.title.clone());
        for draft in self.drafts {
            conversation.history.insert(draft.name, draft.parent.map(EntryId), draft.message);
        }
        // The head is always a draft.
        let _exists = conversation.history.fork(self.head.map(EntryId));
        imported.passed_over = self.skipped.0;
        if self.images > 0 {
            notes.push(format!("{} images in results of tools are only named", self.images));
        }
        notes.push("the system prompt and the tools of the program are not in its file".to_owned());
        imported.notes = notes;
        imported.source = Some(ImportSource {
            session: self.session,
            folder: self.folder,
            is_subagent: self.only_sidechain,
            ..ImportSource::new(Program::ClaudeCode)
        });
        Ok(imported)
    }
}

impl MessageDraft {
    /// Adds a block, unless it is a repetition.
    fn add(&mut self, block: String) {
        if !self.content.contains(&block) {
            self.content.push(block);
        }
    }

    fn read_answer(&mut self, dialects: &Dialects) {
        let model = self.model.as_deref();
        let Some(dialect) = dialect_of(dialects, Protocol::Anthropic, None, model) else { return };
        let content = self.content.join(",");
        let body = format!(r#"{{"messages":[{{"role":"assistant","content":[{content}]}}]}}"#);
        self.message.blocks =
            messages_of(dialect, model, &body).into_iter().flat_map(|message| message.blocks).collect();
        self.message.origin = Some(origin_of(dialect, model));
    }
}

fn result_id(block: &Block) -> Option<String> {
    match block {
        Block::ToolResult(result) => Some(result.id.clone()),
        Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Media(_) | Block::Unmodelled(_) => None,
    }
}

fn usage(raw: Raw<'_>) -> Usage {
    let count = |name: &str| member(raw, name).and_then(count_of);
    Usage {
        input: count("input_tokens"),
        output: count("output_tokens"),
        reasoning: None,
        cached: count("cache_read_input_tokens"),
        cache_write: count("cache_creation_input_tokens"),
    }
}

fn ending(word: &str) -> Ending {
    match word {
        "end_turn" | "stop_sequence" => Ending::Stop,
        "max_tokens" => Ending::Length,
        "tool_use" => Ending::ToolCalls,
        "refusal" => Ending::Refusal,
        "pause_turn" => Ending::Pause,
        other => Ending::Unrecognized(other.to_owned()),
    }
}
