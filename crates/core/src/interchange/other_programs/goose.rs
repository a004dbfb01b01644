//! Imports sessions of goose: rows of `sessions.db`, or the JSON lines that
//! older versions wrote (a line about the session, then one line per message).
//!
//! Based on the program's public source and on a database that it wrote. The
//! content of a message is a list of `text`, `image`, `thinking` (with a
//! `signature`), `redactedThinking`, `toolRequest` and `toolResponse` parts, and
//! some that are only shown. The user's messages carry the results of tools.
//! `metadata` says whether the model sees a message (`agentVisible`), whether
//! the user does (`userVisible`), and which model answered.

use super::answer_parts::{AnswerPart, ThinkingPart, answer_blocks};
use super::message_log::MessageLog;
use super::{
    SkippedRecords, dialect_of_answer, image, mark_as_program_text, name_results, origin_of, records, rows_of,
};
use crate::block::{Block, Text, Time, ToolResult};
use crate::dialect::Dialects;
use crate::event::Usage;
use crate::interchange::{ImportError, ImportKind, ImportSource, Imported, Program, TableRows};
use crate::json_text::{
    JsonKind, Raw, at_path, canonical, compact, count_of, each_element, each_member, member, text_member, text_of,
};
use crate::message::{Message, Role};
use crate::protocol::Protocol;

pub(in crate::interchange) fn read_goose(text: &str, dialects: &Dialects) -> Result<Imported, ImportError> {
    let mut session = GooseSession::new(dialects);
    for (_, line) in records(text, &mut session.imported.notes) {
        if member(line, "role").is_some() {
            let id = text_member(line, "id");
            let content = member(line, "content");
            session.add_message(line, id, content, member(line, "metadata"), member(line, "created"));
        } else {
            session.read_info(line, "description");
        }
    }
    session.finish()
}

pub(in crate::interchange) fn read_goose_rows(
    tables: &[TableRows],
    dialects: &Dialects,
) -> Result<Imported, ImportError> {
    let mut session = GooseSession::new(dialects);
    for row in rows_of(tables, "sessions") {
        session.read_info(row, "name");
    }
    for row in rows_of(tables, "messages") {
        let json = |name: &str| text_member(row, name).unwrap_or_default();
        let (content, metadata) = (json("content_json"), json("metadata_json"));
        let raw = |json| Raw::of(json).ok();
        let id = text_member(row, "message_id");
        session.add_message(row, id, raw(&content), raw(&metadata), member(row, "created_timestamp"));
    }
    session.finish()
}

struct GooseSession<'d> {
    dialects: &'d Dialects,
    imported: Imported,
    /// The messages that the model still sees.
    log: MessageLog,
    /// Messages that a compaction replaced.
    replaced: Vec<(Option<String>, Message)>,
    provider: Option<String>,
    model: Option<String>,
    skipped: SkippedRecords,
}

impl<'d> GooseSession<'d> {
    fn new(dialects: &'d Dialects) -> GooseSession<'d> {
        GooseSession {
            dialects,
            imported: Imported { source: Some(ImportSource::new(Program::Goose)), ..Imported::default() },
            log: MessageLog::default(),
            replaced: Vec::new(),
            provider: None,
            model: None,
            skipped: SkippedRecords::default(),
        }
    }

    fn read_info(&mut self, info: Raw<'_>, title: &str) {
        let text = |name: &str| text_member(info, name).filter(|text| !text.is_empty());
        let named = [title, "description"].iter().find_map(|name| text(name));
        self.imported.conversation.title = named.filter(|title| !is_default(title));
        self.provider = text("provider_name");
        let config = text("model_config_json").unwrap_or_default();
        self.model = Raw::of(&config).ok().and_then(|config| text_member(config, "model_name"));
        self.imported.source = Some(ImportSource {
            session: text("id"),
            folder: text("working_dir"),
            is_subagent: text("session_type").as_deref() == Some("sub_agent"),
            ..ImportSource::new(Program::Goose)
        });
    }

    fn add_message(
        &mut self,
        row: Raw<'_>,
        id: Option<String>,
        content: Option<Raw<'_>>,
        metadata: Option<Raw<'_>>,
        created: Option<Raw<'_>>,
    ) {
        let seconds = created.and_then(count_of);
        let at = seconds.and_then(|seconds| seconds.checked_mul(1000)).map(Time);
        let is_false =
            |name: &str| metadata.and_then(|data| member(data, name)).is_some_and(|flag| flag.get() == "false");
        let mut parts = Vec::new();
        match content {
            Some(content) => each_element(content, |part| parts.push(part)),
            None => self.skipped.count("a message whose content is not JSON"),
        }
        let messages = match text_member(row, "role").as_deref() {
            Some("user") => self.user_messages(&parts, is_false("userVisible"), at),
            Some("assistant") => self.answer(&parts, metadata, at).into_iter().collect(),
            role => {
                self.skipped.count(&format!("a message of role `{}`", role.unwrap_or_default()));
                Vec::new()
            }
        };
        let mut name = id;
        for message in messages {
            if is_false("agentVisible") {
                self.replaced.push((name.take(), message));
            } else {
                self.log.append(name.take(), message);
            }
        }
    }

    /// The results of tools, then what the user said.
    fn user_messages(&mut self, parts: &[Raw<'_>], is_hidden: bool, at: Option<Time>) -> Vec<Message> {
        let (mut results, mut rest) = (Vec::new(), Vec::new());
        for part in parts {
            match text_member(*part, "type").as_deref() {
                Some("toolResponse") => results.push(self.result(*part)),
                Some("text") => {
                    let text = text_member(*part, "text").unwrap_or_default();
                    rest.push(Block::Text(Text { text, ..Text::default() }));
                }
                Some("image") => rest.extend(image(text_member(*part, "mimeType"), text_member(*part, "data"))),
                kind => self.skipped.count(&format!("`{}`", kind.unwrap_or_default())),
            }
        }
        let mut messages = Vec::new();
        if !results.is_empty() {
            messages.push(Message { at, ..Message::new(Role::Tool, results) });
        }
        if !rest.is_empty() {
            let mut message = Message { at, ..Message::new(Role::User, rest) };
            if is_hidden {
                mark_as_program_text(&mut message);
            }
            messages.push(message);
        }
        messages
    }

    fn answer(&mut self, parts: &[Raw<'_>], metadata: Option<Raw<'_>>, at: Option<Time>) -> Option<Message> {
        let of_reply = |path: &str| metadata.and_then(|metadata| at_path(metadata, path));
        let text = |path: &str| of_reply(path).and_then(text_of);
        let provider = text("inference.provider").or_else(|| self.provider.clone());
        let model = ["inference.model", "inference.requestedModel"].iter().find_map(|path| text(path));
        let model = model.or_else(|| self.model.clone());
        let protocol = parts.iter().find_map(|part| protocol_of(*part));
        let dialect = dialect_of_answer(self.dialects, protocol, provider.as_deref(), model.as_deref())?;
        let mut answer = Vec::new();
        for part in parts {
            match answer_part(*part) {
                Some(part) => answer.push(part),
                None => self.skipped.count(&format!("`{}`", text_member(*part, "type").unwrap_or_default())),
            }
        }
        // What the program shows in the model's place is not an answer.
        if answer.is_empty() {
            return None;
        }
        Some(Message {
            at,
            usage: of_reply("usage").map(usage),
            origin: Some(origin_of(dialect, model.as_deref())),
            ..Message::new(Role::Assistant, answer_blocks(dialect, model.as_deref(), answer, None))
        })
    }

    fn result(&mut self, part: Raw<'_>) -> Block {
        let result = member(part, "toolResult");
        let value = result.and_then(|result| member(result, "value"));
        // Older versions stored the list itself.
        let content = value.map(|value| member(value, "content").unwrap_or(value));
        let mut texts: Vec<String> = Vec::new();
        if let Some(content) = content {
            each_element(content, |item| match text_member(item, "type").as_deref() {
                Some("text") => texts.push(text_member(item, "text").unwrap_or_default()),
                Some("image") => {
                    texts.push("[image]".to_owned());
                    self.skipped.count("an image in the result of a tool");
                }
                _ => texts.push(compact(item.get()).into_owned()),
            });
        }
        let error = result.and_then(|result| text_member(result, "error"));
        let failed = value.and_then(|value| member(value, "isError")).is_some_and(|flag| flag.get() == "true");
        let is_error = failed || error.is_some();
        texts.extend(error);
        Block::ToolResult(ToolResult {
            id: text_member(part, "id").unwrap_or_default(),
            name: String::new(),
            content: texts.join("\n"),
            is_error,
            media: Vec::new(),
        })
    }

    fn finish(mut self) -> Result<Imported, ImportError> {
        // What the user sees and the model no longer does is a branch of its own.
        let head = self.log.head.take();
        for (name, message) in self.replaced {
            self.log.append(name, message);
        }
        self.log.head = head.or(self.log.head);
        if !self.log.has_conversation() {
            return Err(ImportError::Empty(ImportKind::Session(Program::Goose)));
        }
        name_results(self.log.messages_mut());
        self.imported.conversation.history = self.log.into_history();
        self.imported.passed_over = self.skipped.0;
        self.imported.notes.push("the system prompt and the tools of the program are not in its files".to_owned());
        Ok(self.imported)
    }
}

/// The program's names for a session until it has a title.
fn is_default(title: &str) -> bool {
    matches!(title, "CLI Session" | "New Chat" | "New session" | "Chat session") || title.starts_with("New session ")
}

fn protocol_of(part: Raw<'_>) -> Option<Protocol> {
    match text_member(part, "type")?.as_str() {
        "redactedThinking" => Some(Protocol::Anthropic),
        "thinking" if text_member(part, "signature").is_some_and(|signature| !signature.is_empty()) => {
            Some(Protocol::Anthropic)
        }
        "toolRequest" | "text" if thought_signature(part).is_some() => Some(Protocol::Gemini),
        _ => None,
    }
}

/// On the part itself, or in one of its maps.
fn thought_signature(part: Raw<'_>) -> Option<String> {
    const NAME: &str = "thoughtSignature";
    let mut found = text_member(part, NAME);
    each_member(part, |_, value| {
        if value.kind() == JsonKind::Object {
            found = found.take().or_else(|| text_member(value, NAME));
        }
    });
    found.filter(|signature| !signature.is_empty())
}

fn answer_part(part: Raw<'_>) -> Option<AnswerPart> {
    let text = |name: &str| text_member(part, name);
    Some(match text("type")?.as_str() {
        "text" => AnswerPart::Text { text: text("text").unwrap_or_default(), signature: thought_signature(part) },
        "thinking" => AnswerPart::Thinking(ThinkingPart {
            text: text("thinking").unwrap_or_default(),
            signature: text("signature"),
            ..ThinkingPart::default()
        }),
        "redactedThinking" => AnswerPart::Thinking(ThinkingPart { encrypted: text("data"), ..ThinkingPart::default() }),
        "toolRequest" | "frontendToolRequest" => {
            let arguments = at_path(part, "toolCall.value.arguments").filter(|value| value.kind() == JsonKind::Object);
            AnswerPart::Call {
                id: text("id")?,
                name: at_path(part, "toolCall.value.name").and_then(text_of).unwrap_or_default(),
                arguments: arguments.map_or("{}".into(), |arguments| canonical(arguments.get())).into_owned(),
                signature: thought_signature(part),
            }
        }
        _ => return None,
    })
}

fn usage(raw: Raw<'_>) -> Usage {
    let count = |name: &str| member(raw, name).and_then(count_of);
    Usage {
        input: count("inputTokens"),
        output: count("outputTokens"),
        reasoning: count("reasoningTokens"),
        cached: count("cacheReadTokens").or_else(|| count("cacheReadInputTokens")),
        cache_write: count("cacheWriteTokens").or_else(|| count("cacheWriteInputTokens")),
    }
}
