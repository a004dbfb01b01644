//! Imports sessions of pi: one file per session below `~/.pi/agent/sessions`,
//! with one JSON object per line.
//!
//! Based on the program's documentation and on files that it wrote. The first
//! line (`session`) has the id and the working directory. The others are a tree
//! of entries by `id` and `parentId`; a `message` entry holds a message, whose
//! role is `system`, `user`, `assistant`, `toolResult` or one of the program's
//! own. An answer names its `api`. What a provider expects back is in
//! `thinkingSignature`, `textSignature` and `thoughtSignature`, and its form
//! depends on the `api`: a signature, a payload if the part is `redacted`, a
//! whole item of the Responses API, or the name of a field. `compaction` starts
//! a new context: its summary, then the entries since `firstKeptEntryId`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::answer_parts::{AnswerPart, ThinkingPart, answer_blocks};
use super::message_log::MessageLog;
use super::{SkippedRecords, dialect_of_answer, image, mark_as_program_text, origin_of, records, user_message};
use crate::block::{Block, Text, Time, ToolResult};
use crate::compaction::summary_message;
use crate::conversation::ToolSpec;
use crate::dialect::Dialects;
use crate::event::{Ending, Usage};
use crate::interchange::{ImportError, ImportKind, ImportSource, Imported, Program};
use crate::json::parse_rfc3339;
use crate::json_text::{
    JsonKind, Raw, canonical, count_of, each_element, each_member, list_of, member, text_member, text_of,
};
use crate::message::{Message, Role};
use crate::protocol::Protocol;

/// Each compaction repeats messages, so a file cannot have any number of them.
const MAX_COMPACTIONS: usize = 1000;

/// How many tools a session may declare.
const MAX_TOOLS: usize = 1000;

pub(in crate::interchange) fn read_pi(text: &str, dialects: &Dialects) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    let lines = records(text, &mut imported.notes);
    imported.source = Some(ImportSource::new(Program::Pi));
    let mut session = PiSession {
        dialects,
        imported,
        log: MessageLog::default(),
        message_of_entry: BTreeMap::new(),
        n_compactions: 0,
        skipped: SkippedRecords::default(),
    };
    for (_, line) in lines {
        session.add_line(line);
    }
    session.finish()
}

struct PiSession<'d> {
    dialects: &'d Dialects,
    imported: Imported,
    log: MessageLog,
    /// The message that each entry leads to. None if it comes before all
    /// messages.
    message_of_entry: BTreeMap<String, Option<usize>>,
    n_compactions: usize,
    skipped: SkippedRecords,
}

impl PiSession<'_> {
    fn add_line(&mut self, line: Raw<'_>) {
        let kind = text_member(line, "type").unwrap_or_default();
        if kind == "session" {
            let source = self.imported.source.get_or_insert_with(|| ImportSource::new(Program::Pi));
            (source.session, source.folder) = (text_member(line, "id"), text_member(line, "cwd"));
            return;
        }
        let parent = match member(line, "parentId").map(|parent| (parent.kind(), text_of(parent))) {
            Some((JsonKind::Null, _)) => None,
            Some((_, Some(parent))) => self.message_of_entry.get(&parent).copied().unwrap_or(self.log.head),
            // The first version had no tree.
            Some((_, None)) | None => self.log.head,
        };
        let id = text_member(line, "id");
        self.log.head = parent;
        let at = text_member(line, "timestamp").and_then(|time| parse_rfc3339(&time));
        match kind.as_str() {
            "message" => match member(line, "message") {
                Some(message) => self.add_message(message, id.clone(), at),
                None => self.skipped.count("a message without content"),
            },
            "compaction" => self.add_compaction(line, id.as_deref(), at),
            "branch_summary" => {
                let summary = text_member(line, "summary").and_then(|summary| summary_message(&summary));
                match summary {
                    Some(summary) => self.log.append(None, Message { at, ..summary }),
                    None => self.skipped.count("a branch without a summary"),
                }
            }
            "custom_message" => self.add_program_text(line, at),
            "session_info" => {
                let title = text_member(line, "name").filter(|name| !name.is_empty());
                self.imported.conversation.title = title.or(self.imported.conversation.title.take());
            }
            // Every answer names its model.
            "model_change" | "thinking_level_change" => (),
            _ => self.skipped.count(&format!("`{kind}`")),
        }
        self.message_of_entry.extend(id.map(|id| (id, self.log.head)));
    }

    fn add_program_text(&mut self, entry: Raw<'_>, at: Option<Time>) {
        let mut message = Message { at, ..Message::new(Role::User, self.user_blocks(entry)) };
        mark_as_program_text(&mut message);
        self.log.append(None, message);
    }

    fn add_message(&mut self, message: Raw<'_>, name: Option<String>, at: Option<Time>) {
        let at = member(message, "timestamp").and_then(count_of).map(Time).or(at);
        match text_member(message, "role").as_deref() {
            Some("user") => {
                let blocks = self.user_blocks(message);
                self.log.append(name, Message { at, ..Message::new(Role::User, blocks) });
            }
            Some("assistant") => self.add_answer(message, name, at),
            Some("toolResult") => self.add_result(message, name, at),
            Some("system") => self.add_system(message, name, at),
            Some("bashExecution") => {
                let text = |name: &str| text_member(message, name).unwrap_or_default();
                let mut ran = user_message(format!("$ {}\n{}", text("command"), text("output")), at);
                mark_as_program_text(&mut ran);
                self.log.append(name, ran);
            }
            Some("custom" | "hookMessage") => self.add_program_text(message, at),
            role => self.skipped.count(&format!("a message of role `{}`", role.unwrap_or_default())),
        }
    }

    fn user_blocks(&mut self, message: Raw<'_>) -> Vec<Block> {
        let Some(content) = member(message, "content") else { return Vec::new() };
        if let Some(text) = text_of(content) {
            return vec![Block::Text(Text { text, ..Text::default() })];
        }
        let mut blocks = Vec::new();
        each_element(content, |part| match text_member(part, "type").as_deref() {
            Some("text") => {
                let text = text_member(part, "text").unwrap_or_default();
                blocks.push(Block::Text(Text { text, ..Text::default() }));
            }
            Some("image") => blocks.extend(image(text_member(part, "mimeType"), text_member(part, "data"))),
            kind => self.skipped.count(&format!("`{}`", kind.unwrap_or_default())),
        });
        blocks
    }

    fn add_answer(&mut self, message: Raw<'_>, name: Option<String>, at: Option<Time>) {
        let protocol = text_member(message, "api").and_then(|api| protocol_of(&api));
        let (provider, model) = (text_member(message, "provider"), text_member(message, "model"));
        let dialect = dialect_of_answer(self.dialects, protocol, provider.as_deref(), model.as_deref());
        let Some(dialect) = dialect else { return };
        let mut parts = Vec::new();
        let mut details = Vec::new();
        if let Some(content) = member(message, "content") {
            each_element(content, |part| match answer_part(part, dialect.protocol) {
                Some(part) => {
                    details.extend(detail(&part, dialect.protocol));
                    parts.push(part);
                }
                None => self.skipped.count("a part of an answer that is not understood"),
            });
        }
        let details = (!details.is_empty()).then(|| list_of(details));
        let blocks = answer_blocks(dialect, model.as_deref(), parts, details.as_deref());
        let stop = text_member(message, "stopReason").unwrap_or_default();
        let answer = Message {
            at,
            usage: member(message, "usage").map(usage),
            ending: ending(&stop),
            interrupted: matches!(stop.as_str(), "error" | "aborted"),
            origin: Some(origin_of(dialect, model.as_deref())),
            ..Message::new(Role::Assistant, blocks)
        };
        self.log.append(name, answer);
    }

    /// Results of parallel calls become one message.
    fn add_result(&mut self, message: Raw<'_>, name: Option<String>, at: Option<Time>) {
        let mut texts = Vec::new();
        let mut images = 0;
        if let Some(content) = member(message, "content") {
            each_element(content, |part| match text_member(part, "text") {
                Some(text) => texts.push(text),
                None => images += 1,
            });
        }
        for _ in 0..images {
            texts.push("[image]".to_owned());
            self.skipped.count("an image in the result of a tool");
        }
        let result = Block::ToolResult(ToolResult {
            id: call_id(text_member(message, "toolCallId").unwrap_or_default()),
            name: text_member(message, "toolName").unwrap_or_default(),
            content: texts.join("\n"),
            is_error: member(message, "isError").is_some_and(|value| value.get() == "true"),
            media: Vec::new(),
        });
        self.log.append_result(name, at, result);
    }

    /// The first one contains the prompt in sections, and the tools. Later ones
    /// change them.
    fn add_system(&mut self, message: Raw<'_>, name: Option<String>, at: Option<Time>) {
        let mut texts: Vec<String> = text_member(message, "content").into_iter().collect();
        if let Some(sections) = member(message, "sections") {
            each_member(sections, |_, section| texts.extend(text_of(section)));
        }
        texts.retain(|text| !text.is_empty());
        if let Some(added) = member(message, "toolsAdded") {
            each_element(added, |tool| {
                let text = |name: &str| text_member(tool, name).unwrap_or_default();
                let parameters = member(tool, "parameters").map_or("{}".into(), |schema| canonical(schema.get()));
                let tool = ToolSpec::new(text("name"), text("description"), parameters);
                let tools = &mut self.imported.conversation.tools;
                if tools.len() >= MAX_TOOLS {
                    self.skipped.count("a tool too many");
                    return;
                }
                tools.retain(|known| known.name != tool.name);
                tools.push(tool);
            });
        }
        if !texts.is_empty() {
            let text = Text { text: texts.join("\n\n"), ..Text::default() };
            self.log.append(name, Message { at, ..Message::new(Role::System, vec![Block::Text(text)]) });
        }
    }

    /// The summary and the messages that are kept form a branch of their own.
    fn add_compaction(&mut self, entry: Raw<'_>, id: Option<&str>, at: Option<Time>) {
        self.n_compactions += 1;
        let Some(summary) = text_member(entry, "summary").and_then(|summary| summary_message(&summary)) else {
            self.skipped.count("a compaction without a summary");
            return;
        };
        if self.n_compactions > MAX_COMPACTIONS {
            self.skipped.count("a compaction too many");
            return;
        }
        let kept = text_member(entry, "firstKeptEntryId").filter(|kept| Some(kept.as_str()) != id);
        let first = kept.and_then(|kept| self.message_of_entry.get(&kept).copied()).flatten();
        let branch = self.log.branch();
        let is_system = |at: &usize| self.log.get(*at).is_some_and(|message| message.role == Role::System);
        let root = branch.iter().copied().take_while(is_system).last();
        let kept = branch.iter().skip_while(|at| Some(**at) != first).filter(|at| !is_system(at));
        let kept: Vec<Arc<Message>> = kept.filter_map(|at| self.log.get(*at).cloned()).collect();
        self.log.head = root;
        self.log.append(None, Message { at, ..summary });
        for message in kept {
            self.log.append(None, message);
        }
    }

    fn finish(mut self) -> Result<Imported, ImportError> {
        if !self.log.has_conversation() {
            return Err(ImportError::Empty(ImportKind::Session(Program::Pi)));
        }
        self.imported.conversation.history = self.log.into_history();
        self.imported.passed_over = self.skipped.0;
        Ok(self.imported)
    }
}

/// The values that the program uses for its `api` member.
fn protocol_of(api: &str) -> Option<Protocol> {
    match api {
        "anthropic-messages" => Some(Protocol::Anthropic),
        "bedrock-converse-stream" => Some(Protocol::Bedrock),
        "openai-completions" => Some(Protocol::OpenaiChat),
        _ if api.contains("responses") => Some(Protocol::OpenaiResponses),
        _ if api.starts_with("google-") => Some(Protocol::Gemini),
        _ => None,
    }
}

fn answer_part(part: Raw<'_>, protocol: Protocol) -> Option<AnswerPart> {
    let text = |name: &str| text_member(part, name);
    let signature = |name: &str| text(name).filter(|signature| !signature.is_empty());
    let is_redacted = member(part, "redacted").is_some_and(|value| value.get() == "true");
    Some(match text("type")?.as_str() {
        // An item of the Responses API has an id, not a signature.
        "text" => AnswerPart::Text {
            text: text("text").unwrap_or_default(),
            signature: signature("textSignature").filter(|_| protocol == Protocol::Gemini),
        },
        "thinking" => {
            let seal = signature("thinkingSignature");
            let whole = text("thinking").unwrap_or_default();
            let mut thinking = ThinkingPart { text: whole, ..ThinkingPart::default() };
            match (protocol, seal) {
                (Protocol::OpenaiResponses, Some(item)) if is_object(&item) => return Some(AnswerPart::Item(item)),
                (Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Ollama, Some(field)) => {
                    thinking.source = Some(field).filter(|field| !is_object(field));
                }
                // The text of redacted thinking is the program's.
                (_, Some(payload)) if is_redacted => {
                    thinking = ThinkingPart { encrypted: Some(payload), ..ThinkingPart::default() };
                }
                (_, signature) => thinking.signature = signature,
            }
            AnswerPart::Thinking(thinking)
        }
        "toolCall" => AnswerPart::Call {
            id: call_id(text("id")?),
            name: text("name")?,
            arguments: member(part, "arguments").map_or("{}".into(), |json| canonical(json.get())).into_owned(),
            signature: signature("thoughtSignature"),
        },
        _ => return None,
    })
}

/// With Chat Completions, a call may carry an encrypted entry of the answer's
/// `reasoning_details`.
fn detail(part: &AnswerPart, protocol: Protocol) -> Option<String> {
    match part {
        AnswerPart::Call { signature: Some(json), .. } if protocol == Protocol::OpenaiChat && is_object(json) => {
            Some(json.clone())
        }
        AnswerPart::Call { .. } | AnswerPart::Text { .. } | AnswerPart::Thinking(_) | AnswerPart::Item(_) => None,
    }
}

fn is_object(text: &str) -> bool {
    text.starts_with('{') && Raw::of(text).is_ok()
}

/// With the Responses API, the id of the item follows the id of the call.
fn call_id(id: String) -> String {
    id.split_once('|').map_or(id.as_str(), |(call, _)| call).to_owned()
}

fn usage(raw: Raw<'_>) -> Usage {
    let count = |name: &str| member(raw, name).and_then(count_of);
    Usage {
        input: count("input"),
        output: count("output"),
        reasoning: count("reasoning"),
        cached: count("cacheRead"),
        cache_write: count("cacheWrite"),
    }
}

fn ending(word: &str) -> Option<Ending> {
    Some(match word {
        "stop" => Ending::Stop,
        "length" => Ending::Length,
        "toolUse" => Ending::ToolCalls,
        "error" => Ending::Error,
        "" => return None,
        other => Ending::Unrecognized(other.to_owned()),
    })
}
