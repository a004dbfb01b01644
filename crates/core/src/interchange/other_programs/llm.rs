//! Imports conversations of the command `llm`: rows of its `logs.db`.
//!
//! Based on the program's public source and on a database that it wrote. Since
//! 0.32 a thread has turns, and each turn points to the last of its messages
//! (`tip_message_hash`). Messages form a tree by `parent_hash`, and their parts
//! are `text`, `reasoning`, `tool_call`, `tool_result` and `attachment`, with the
//! details in `payload`. `provider_metadata` holds what a provider expects back,
//! under the name of a provider. Older versions have one row for each response,
//! with the prompt, the answer and its reasoning as plain text.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::answer_parts::{AnswerPart, ThinkingPart, answer_blocks};
use super::message_log::MessageLog;
use super::{SkippedRecords, dialect_of_answer, image, name_results, origin_of, rows_of};
use crate::block::{Block, Text, Time, ToolResult};
use crate::conversation::ToolSpec;
use crate::dialect::Dialects;
use crate::event::Usage;
use crate::interchange::{ImportError, ImportKind, ImportSource, Imported, Program, TableRows};
use crate::json::parse_rfc3339;
use crate::json_text::{
    ObjectWriter, Raw, at_path, canonical, count_of, each_element, each_member, is_empty_value, member, text_member,
    text_of,
};
use crate::message::{Message, Role};
use crate::protocol::Protocol;

pub(in crate::interchange) fn read_llm_rows(
    tables: &[TableRows],
    dialects: &Dialects,
) -> Result<Imported, ImportError> {
    let by_id = |table: &str| rows_of(tables, table).filter_map(|row| Some((id_of(row)?, row))).collect();
    let mut session = LlmSession {
        dialects,
        tables,
        fragments: by_id("fragments"),
        attachments: by_id("attachments"),
        imported: Imported { source: Some(ImportSource::new(Program::Llm)), ..Imported::default() },
        log: MessageLog::default(),
        skipped: SkippedRecords::default(),
    };
    session.read_tools();
    if let Some(thread) = rows_of(tables, "threads").next() {
        session.read_info(thread);
        session.read_thread();
    } else if let Some(conversation) = rows_of(tables, "conversations").next() {
        session.read_info(conversation);
        let of_responses = ResponseTables::new(tables);
        for response in rows_of(tables, "responses") {
            session.add_response(response, &of_responses);
        }
    }
    session.finish()
}

struct LlmSession<'d, 't> {
    dialects: &'d Dialects,
    tables: &'t [TableRows],
    fragments: BTreeMap<String, Raw<'t>>,
    attachments: BTreeMap<String, Raw<'t>>,
    imported: Imported,
    log: MessageLog,
    skipped: SkippedRecords,
}

/// The id of a row, which is a text or a number.
fn id_of(row: Raw<'_>) -> Option<String> {
    let id = member(row, "id")?;
    text_of(id).or_else(|| count_of(id).map(|id| id.to_string()))
}

/// The rows that belong to each response of an older version, by table.
struct ResponseTables<'t>(BTreeMap<(&'static str, String), Vec<Raw<'t>>>);

impl<'t> ResponseTables<'t> {
    fn new(tables: &'t [TableRows]) -> ResponseTables<'t> {
        let mut rows: BTreeMap<(&'static str, String), Vec<Raw<'t>>> = BTreeMap::new();
        for table in ["system_fragments", "prompt_fragments", "prompt_attachments", "tool_calls", "tool_results"] {
            for row in rows_of(tables, table) {
                let response = text_member(row, "response_id").unwrap_or_default();
                rows.entry((table, response)).or_default().push(row);
            }
        }
        ResponseTables(rows)
    }

    fn of(&self, table: &'static str, response: &str) -> impl Iterator<Item = Raw<'t>> {
        self.0.get(&(table, response.to_owned())).into_iter().flatten().copied()
    }
}

/// What a turn says about the answer at its end.
struct AnswerFacts {
    model: Option<String>,
    usage: Usage,
    at: Option<Time>,
}

impl<'t> LlmSession<'_, 't> {
    fn read_info(&mut self, row: Raw<'_>) {
        self.imported.conversation.title = text_member(row, "name").filter(|name| !name.is_empty());
        let session = text_member(row, "id");
        self.imported.source = Some(ImportSource { session, ..ImportSource::new(Program::Llm) });
    }

    fn read_tools(&mut self) {
        let tools = rows_of(self.tables, "tools").map(|tool| {
            let text = |name: &str| text_member(tool, name).unwrap_or_default();
            let schema = text("input_schema");
            let parameters = if Raw::of(&schema).is_ok() { canonical(&schema).into_owned() } else { "{}".to_owned() };
            ToolSpec::new(text("name"), text("description"), parameters)
        });
        self.imported.conversation.tools = tools.collect();
    }

    /// Adds the messages of every turn. Where a turn does not continue the one
    /// before, it is a branch.
    fn read_thread(&mut self) {
        let text = |row: Raw<'t>, name: &str| text_member(row, name);
        let messages: BTreeMap<String, Raw<'t>> =
            rows_of(self.tables, "messages").filter_map(|row| Some((text(row, "hash")?, row))).collect();
        let mut parts: BTreeMap<String, Vec<Raw<'t>>> = BTreeMap::new();
        for part in rows_of(self.tables, "parts") {
            parts.entry(text(part, "message_hash").unwrap_or_default()).or_default().push(part);
        }
        let mut logged: BTreeMap<String, usize> = BTreeMap::new();
        for turn in rows_of(self.tables, "turns") {
            let facts = AnswerFacts::of(turn);
            let parent = |hash: &String| messages.get(hash).and_then(|row| text(*row, "parent_hash"));
            let chain = std::iter::successors(text(turn, "tip_message_hash"), parent);
            // Hashes of a hostile file may form a cycle.
            let mut new: Vec<String> =
                chain.take_while(|hash| !logged.contains_key(hash)).take(messages.len()).collect();
            let before = match new.last() {
                Some(oldest) => parent(oldest),
                None => text(turn, "tip_message_hash"),
            };
            self.log.head = before.and_then(|hash| logged.get(&hash).copied());
            new.reverse();
            for hash in new {
                let Some(row) = messages.get(&hash) else { continue };
                let own = parts.get(&hash).map_or(&[][..], Vec::as_slice);
                self.add_message(*row, own, &facts);
                logged.extend(self.log.head.map(|head| (hash, head)));
            }
        }
    }

    fn add_message(&mut self, row: Raw<'_>, parts: &[Raw<'_>], facts: &AnswerFacts) {
        let parts: Vec<StoredPart> = parts.iter().map(|part| StoredPart::of(*part, &self.fragments)).collect();
        match text_member(row, "role").as_deref() {
            Some("assistant") => {
                let protocol = parts.iter().find_map(StoredPart::protocol);
                let mut answer = Vec::new();
                for part in &parts {
                    match part.answer_part() {
                        Some(part) => answer.push(part),
                        None => self.skipped.count(&format!("`{}`", part.kind)),
                    }
                }
                self.add_answer(answer, protocol, facts);
            }
            Some("tool") => {
                for part in &parts {
                    match part.kind.as_str() {
                        "tool_result" => self.log.append_result(None, facts.at, part.result()),
                        kind => self.skipped.count(&format!("`{kind}`")),
                    }
                }
            }
            Some(role @ ("user" | "system")) => {
                let role = if role == "user" { Role::User } else { Role::System };
                let blocks: Vec<Block> = parts.iter().filter_map(|part| self.user_block(part)).collect();
                self.log.append(None, Message { at: facts.at, ..Message::new(role, blocks) });
            }
            role => self.skipped.count(&format!("a message of role `{}`", role.unwrap_or_default())),
        }
    }

    fn user_block(&mut self, part: &StoredPart) -> Option<Block> {
        match part.kind.as_str() {
            "text" => Some(Block::Text(Text { text: part.text.clone(), ..Text::default() })),
            "attachment" => {
                let id = part.payload().and_then(|payload| at_path(payload, "attachment.id")).and_then(text_of);
                let found = id.and_then(|id| self.attachments.get(&id)).and_then(|row| attached_image(*row));
                if found.is_none() {
                    self.skipped.count("an attachment that is not a stored image");
                }
                found
            }
            kind => {
                self.skipped.count(&format!("`{kind}`"));
                None
            }
        }
    }

    fn add_answer(&mut self, answer: Vec<AnswerPart>, protocol: Option<Protocol>, facts: &AnswerFacts) {
        let model = facts.model.as_deref();
        // Plugins put the provider in front of the model.
        let provider = model.and_then(|model| model.split_once('/')).map(|(provider, _)| provider);
        let Some(dialect) = dialect_of_answer(self.dialects, protocol, provider, model) else { return };
        let message = Message {
            at: facts.at,
            usage: Some(facts.usage).filter(|usage| *usage != Usage::default()),
            origin: Some(origin_of(dialect, model)),
            ..Message::new(Role::Assistant, answer_blocks(dialect, model, answer, None))
        };
        self.log.append(None, message);
    }

    /// A response of an older version, with its prompt before it.
    fn add_response(&mut self, row: Raw<'t>, of_responses: &ResponseTables<'t>) {
        let facts = AnswerFacts::of(row);
        let id = text_member(row, "id").unwrap_or_default();
        let joined = |table: &'static str, name: &str| {
            let fragments = of_responses.of(table, &id).filter_map(|row| text_member(row, "content"));
            let texts: Vec<String> = fragments.chain(text_member(row, name)).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        };
        let message = |role: Role, blocks: Vec<Block>| Message { at: facts.at, ..Message::new(role, blocks) };
        let text_block = |text: String| Block::Text(Text { text, ..Text::default() });
        let system = joined("system_fragments", "system");
        if !system.is_empty() && self.log.head.is_none() {
            self.log.append(None, message(Role::System, vec![text_block(system)]));
        }
        for result in of_responses.of("tool_results", &id) {
            self.log.append_result(None, facts.at, old_result(result));
        }
        let prompt = joined("prompt_fragments", "prompt");
        let mut blocks: Vec<Block> = Vec::new();
        if !prompt.is_empty() {
            blocks.push(text_block(prompt));
        }
        for image in of_responses.of("prompt_attachments", &id).map(attached_image) {
            if image.is_none() {
                self.skipped.count("an attachment that is not a stored image");
            }
            blocks.extend(image);
        }
        if !blocks.is_empty() {
            self.log.append(None, message(Role::User, blocks));
        }
        let text = |name: &str| text_member(row, name).unwrap_or_default();
        let thinking = ThinkingPart { text: text("reasoning"), ..ThinkingPart::default() };
        let mut answer =
            vec![AnswerPart::Thinking(thinking), AnswerPart::Text { text: text("response"), signature: None }];
        answer.extend(of_responses.of("tool_calls", &id).map(old_call));
        self.add_answer(answer, None, &facts);
    }

    fn finish(mut self) -> Result<Imported, ImportError> {
        if !self.log.has_conversation() {
            return Err(ImportError::Empty(ImportKind::Session(Program::Llm)));
        }
        name_results(self.log.messages_mut());
        self.imported.conversation.history = self.log.into_history();
        self.imported.passed_over = self.skipped.0;
        Ok(self.imported)
    }
}

impl AnswerFacts {
    fn of(row: Raw<'_>) -> AnswerFacts {
        let count = |name: &str| member(row, name).and_then(count_of);
        let details = text_member(row, "token_details").unwrap_or_default();
        let detail = |paths: [&str; 2]| {
            let details = Raw::of(&details).ok()?;
            paths.iter().find_map(|path| at_path(details, path).and_then(count_of))
        };
        let usage = Usage {
            input: count("input_tokens"),
            output: count("output_tokens"),
            reasoning: detail(["completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens"]),
            cached: detail(["prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens"]),
            cache_write: detail([
                "prompt_tokens_details.cache_write_tokens",
                "input_tokens_details.cache_write_tokens",
            ]),
        };
        let model = text_member(row, "resolved_model").filter(|model| !model.is_empty());
        let model = model.or_else(|| text_member(row, "model"));
        let time = text_member(row, "datetime_utc");
        let at =
            time.and_then(|time| parse_rfc3339(&format!("{}Z", time.trim_end_matches("+00:00").trim_end_matches('Z'))));
        AnswerFacts { model, usage, at }
    }
}

/// A part of a message. The payload is JSON.
struct StoredPart {
    kind: String,
    text: String,
    payload: String,
}

impl StoredPart {
    fn of(row: Raw<'_>, fragments: &BTreeMap<String, Raw<'_>>) -> StoredPart {
        let payload = text_member(row, "payload").unwrap_or_default();
        let mut part = StoredPart { kind: text_member(row, "type").unwrap_or_default(), text: String::new(), payload };
        part.text = text_member(row, "text").or_else(|| part.text_of_fragments(fragments)).unwrap_or_default();
        part
    }

    fn payload(&self) -> Option<Raw<'_>> {
        Raw::of(&self.payload).ok()
    }

    /// Puts a text together that contains fragments.
    fn text_of_fragments(&self, fragments: &BTreeMap<String, Raw<'_>>) -> Option<String> {
        let mut text = String::new();
        each_element(member(self.payload()?, "text_ref")?, |piece| {
            let id = member(piece, "fragment").and_then(count_of);
            let fragment = id.and_then(|id| fragments.get(&id.to_string()));
            let content = fragment.and_then(|row| text_member(*row, "content"));
            text.extend(text_member(piece, "literal").or(content));
        });
        Some(text)
    }

    /// A member of the metadata, of any provider.
    fn metadata(&self, names: &[&str]) -> Option<Raw<'_>> {
        let mut found = None;
        each_member(member(self.payload()?, "provider_metadata")?, |_, inner| {
            let named = names.iter().find_map(|name| member(inner, name));
            found = found.or(named.filter(|value| !is_empty_value(*value)));
        });
        found
    }

    fn metadata_text(&self, names: &[&str]) -> Option<String> {
        self.metadata(names).and_then(text_of)
    }

    fn protocol(&self) -> Option<Protocol> {
        if self.metadata(&["encrypted_content", "summary"]).is_some() {
            Some(Protocol::OpenaiResponses)
        } else if self.metadata(&["signature", "redacted_thinking", "data"]).is_some() {
            Some(Protocol::Anthropic)
        } else {
            self.metadata(&["thought_signature", "thoughtSignature"]).map(|_| Protocol::Gemini)
        }
    }

    fn answer_part(&self) -> Option<AnswerPart> {
        let signature = || self.metadata_text(&["signature", "thought_signature", "thoughtSignature"]);
        Some(match self.kind.as_str() {
            "text" => AnswerPart::Text { text: self.text.clone(), signature: signature() },
            "reasoning" if self.protocol() == Some(Protocol::OpenaiResponses) => AnswerPart::Item(self.item()),
            "reasoning" => AnswerPart::Thinking(ThinkingPart {
                text: self.text.clone(),
                signature: signature(),
                encrypted: self.metadata_text(&["redacted_thinking", "data"]),
                ..ThinkingPart::default()
            }),
            "tool_call" => AnswerPart::Call {
                id: self.member("tool_call_id").and_then(text_of).unwrap_or_default(),
                name: self.member("name").and_then(text_of).unwrap_or_default(),
                arguments: self.member("arguments").map_or("{}".into(), |json| canonical(json.get())).into_owned(),
                signature: signature(),
            },
            _ => return None,
        })
    }

    fn member(&self, name: &str) -> Option<Raw<'_>> {
        member(self.payload()?, name)
    }

    /// The item of the Responses API, whose members are in the metadata.
    fn item(&self) -> String {
        let mut out = ObjectWriter::default();
        out.push("type", "\"reasoning\"");
        for name in ["id", "summary", "encrypted_content"] {
            match self.metadata(&[name]) {
                Some(value) => out.push(name, value.get()),
                None if name == "summary" => out.push("summary", "[]"),
                None => (),
            }
        }
        out.finish()
    }

    fn result(&self) -> Block {
        let text = |name: &str| self.member(name).and_then(text_of);
        Block::ToolResult(ToolResult {
            id: text("tool_call_id").unwrap_or_default(),
            name: text("name").unwrap_or_default(),
            content: text("output").unwrap_or_default(),
            is_error: text("exception").is_some(),
            media: Vec::new(),
        })
    }
}

fn old_call(row: Raw<'_>) -> AnswerPart {
    let text = |name: &str| text_member(row, name).unwrap_or_default();
    AnswerPart::Call { id: text("tool_call_id"), name: text("name"), arguments: text("arguments"), signature: None }
}

fn old_result(row: Raw<'_>) -> Block {
    let text = |name: &str| text_member(row, name);
    Block::ToolResult(ToolResult {
        id: text("tool_call_id").unwrap_or_default(),
        name: text("name").unwrap_or_default(),
        content: text("output").unwrap_or_default(),
        is_error: text("exception").is_some_and(|exception| !exception.is_empty()),
        media: Vec::new(),
    })
}

/// An image that the database contains. A path or an address is only a name.
fn attached_image(row: Raw<'_>) -> Option<Block> {
    let media_type = text_member(row, "type").filter(|kind| kind.starts_with("image/"));
    let digits = text_member(row, "content").filter(|digits| !digits.is_empty())?;
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    image(media_type, bytes.map(|bytes| STANDARD.encode(bytes)))
}
