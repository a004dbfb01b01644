//! Imports stored sessions of other programs. Everything readable is imported;
//! the rest is reported and never stops the import.

mod answer_parts;
mod claude_code;
mod codex;
mod gemini_cli;
mod goose;
mod llm;
mod message_log;
mod opencode;
mod pi;
mod user_text;

use std::collections::BTreeMap;

pub(super) use claude_code::read_claude_code;
pub(super) use codex::read_codex;
pub(super) use gemini_cli::read_gemini_cli;
pub(super) use goose::{read_goose, read_goose_rows};
pub(super) use llm::read_llm_rows;
pub(super) use opencode::{read_opencode, read_opencode_rows};
pub(super) use pi::read_pi;

use crate::block::{Block, Media, Origin, Seals, Text, Thinking, Time};
use crate::conversation::Conversation;
use crate::dialect::{Dialect, Dialects};
use crate::interchange::{ImportSource, Imported, Program, TableRows};
use crate::json_text::{JsonKind, ObjectWriter, Raw, canonical, split_within, text_member};
use crate::message::{Message, Role};
use crate::protocol::Protocol;
use crate::title::title_of_text;
use crate::wire::read_request;

/// The maximum number of broken lines that are reported individually.
const MAX_NOTES: usize = 5;

/// The JSON objects of a file with one object per line, with their line
/// numbers.
fn records<'a>(text: &'a str, notes: &mut Vec<String>) -> Vec<(usize, Raw<'a>)> {
    let lines: Vec<(usize, &str)> =
        text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())).filter(|(_, line)| !line.is_empty()).collect();
    let last = lines.last().map(|(number, _)| *number);
    let mut records = Vec::new();
    let mut n_broken = 0;
    for (number, line) in lines {
        match Raw::of(line) {
            Ok(raw) if raw.kind() == JsonKind::Object => records.push((number, raw)),
            // The program was stopped while writing, or is still writing.
            Err(_) if Some(number) == last => notes.push(format!("line {number}, the last, is cut off")),
            Ok(_) | Err(_) => {
                n_broken += 1;
                if n_broken <= MAX_NOTES {
                    notes.push(format!("line {number} is not a JSON object and was passed over"));
                }
            }
        }
    }
    if n_broken > MAX_NOTES {
        notes.push(format!("{} more lines are not JSON objects", n_broken - MAX_NOTES));
    }
    records
}

/// Counts of skipped records, by kind.
#[derive(Debug, Default)]
struct SkippedRecords(BTreeMap<String, usize>);

impl SkippedRecords {
    fn count(&mut self, kind: &str) {
        *self.0.entry(kind.to_owned()).or_default() += 1;
    }
}

/// The dialect of the provider that made a message: by provider if known, else
/// by model, else the generic one.
fn dialect_of<'d>(
    dialects: &'d Dialects,
    protocol: Protocol,
    provider: Option<&str>,
    model: Option<&str>,
) -> Option<&'d Dialect> {
    let has_protocol = |dialect: &&Dialect| dialect.protocol == protocol;
    let by_provider = provider.and_then(|provider| {
        let is_variant = |dialect: &&Dialect| {
            has_protocol(dialect) && dialect.id.strip_prefix(provider).is_some_and(|rest| rest.starts_with('-'))
        };
        dialects.get(provider).filter(has_protocol).or_else(|| dialects.iter().find(is_variant))
    });
    by_provider.or_else(|| dialects.made_by(protocol, model?)).or_else(|| dialects.generic(protocol))
}

/// The dialect of an answer whose protocol may be unknown.
fn dialect_of_answer<'d>(
    dialects: &'d Dialects,
    protocol: Option<Protocol>,
    provider: Option<&str>,
    model: Option<&str>,
) -> Option<&'d Dialect> {
    if let Some(protocol) = protocol {
        return dialect_of(dialects, protocol, provider, model);
    }
    let known = provider.and_then(|provider| dialects.get(provider));
    // A provider's other dialects have longer names than its main one.
    let made = || {
        let makers = Protocol::ALL.into_iter().filter_map(|protocol| dialects.made_by(protocol, model?));
        makers.min_by_key(|dialect| dialect.id.len())
    };
    known.or_else(made).or_else(|| dialects.generic(Protocol::OpenaiChat))
}

fn origin_of(dialect: &Dialect, model: Option<&str>) -> Origin {
    Origin {
        provider: Some(dialect.id.clone()),
        dialect: Some(dialect.id.clone()),
        model: model.map(str::to_owned),
        ..Origin::default()
    }
}

/// Parses messages as the body of a request. Empty if the body is not valid.
fn messages_of(dialect: &Dialect, model: Option<&str>, body: &str) -> Vec<Message> {
    let rules = dialect.rules(model);
    let mut messages =
        read_request(dialect.protocol, rules, body).map(|incoming| incoming.messages).unwrap_or_default();
    messages.iter_mut().flat_map(|message| &mut message.blocks).for_each(make_canonical);
    messages
}

fn make_canonical(block: &mut Block) {
    let native = match block {
        Block::Text(text) => text.native.as_mut(),
        Block::Thinking(thinking) => thinking.native.as_mut(),
        Block::ToolCall(call) => {
            call.arguments = std::mem::take(&mut call.arguments).canonical();
            call.native.as_mut()
        }
        Block::Unmodelled(unmodelled) => Some(&mut unmodelled.native),
        Block::ToolResult(_) | Block::Media(_) => None,
    };
    if let Some(native) = native {
        native.json = canonical(&native.json).into_owned();
    }
}

/// The member by which our files name the session that they were imported from.
const IMPORTED_FROM: &str = "importedFrom";

/// Marks a message that the program wrote in the user's name.
const PROGRAM_TEXT: &str = "isMeta";

fn mark_as_program_text(message: &mut Message) {
    message.unknown_members.push((PROGRAM_TEXT.to_owned(), "true".to_owned()));
}

/// Completes an import: the model, the title, and where the session comes from.
pub(super) fn finish(imported: &mut Imported, dialects: &Dialects) {
    note_bound_seals(imported, dialects);
    let conversation = &mut imported.conversation;
    let origins = conversation.history.entries().iter().rev().filter_map(|entry| entry.message.origin.as_ref());
    let model = origins.filter_map(|origin| Some((origin.provider.as_deref()?, origin.model.as_deref()?))).next();
    conversation.model = model.map(|(provider, model)| format!("{provider}/{model}"));
    let Some(source) = &imported.source else { return };
    let own = conversation.title.take().and_then(|title| user_text::user_text(&title).and_then(whole_title));
    let title = own.or_else(|| first_prompt(conversation));
    // Without a title, the session would be named after the program's text.
    conversation.title = Some(title.unwrap_or_else(|| format!("session of {}", source.program)));
    add_source(conversation, source);
}

/// A title that the program or its user chose is cut only if it is very long.
fn whole_title(title: &str) -> Option<String> {
    let (title, rest) = split_within(title.lines().next()?, 200);
    if rest.is_empty() { Some(title.trim().to_owned()) } else { title_of_text(title) }
}

/// A title from the first prompt of the user.
fn first_prompt(conversation: &Conversation) -> Option<String> {
    let is_marked = |message: &Message| message.unknown_members.iter().any(|(name, _)| name == PROGRAM_TEXT);
    let prompts = conversation.history.entries().iter().map(|entry| entry.message.as_ref());
    let prompts = prompts.filter(|message| message.begins_turn() && !is_marked(message));
    prompts.flat_map(|message| &message.blocks).find_map(|block| match block {
        Block::Text(text) => title_of_text(user_text::user_text(&text.text)?),
        Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => None,
    })
}

fn add_source(conversation: &mut Conversation, source: &ImportSource) {
    if let Some(session) = &source.session {
        let mut out = ObjectWriter::default();
        out.push_text("program", source.program.name());
        out.push_text("session", session);
        conversation.extra.push((IMPORTED_FROM.to_owned(), out.finish()));
    }
}

/// The program and the session that a stored conversation was imported from.
/// `extra` are the members of its header that have no field of their own.
pub fn imported_from(extra: &[(String, String)]) -> Option<(Program, String)> {
    let (_, json) = extra.iter().find(|(name, _)| name == IMPORTED_FROM)?;
    let source = Raw::of(json).ok()?;
    Some((Program::parse(&text_member(source, "program")?)?, text_member(source, "session")?))
}

/// The rows of one table.
fn rows_of<'t>(tables: &'t [TableRows], name: &str) -> impl Iterator<Item = Raw<'t>> {
    let rows = tables.iter().filter(move |table| table.table == name).flat_map(|table| &table.rows);
    rows.filter_map(|row| Raw::of(row).ok()).filter(|row| row.kind() == JsonKind::Object)
}

fn user_message(text: String, at: Option<Time>) -> Message {
    let text = Text { text, ..Text::default() };
    Message { at, ..Message::new(Role::User, vec![Block::Text(text)]) }
}

fn image(media_type: Option<String>, data: Option<String>) -> Option<Block> {
    Some(Block::Media(Media::image(media_type?, data?)))
}

/// Adds a note if seals are useless under another account.
pub(super) fn note_bound_seals(imported: &mut Imported, dialects: &Dialects) {
    let branch = imported.conversation.history.branch();
    let bound = |message: &Message| {
        let origin = message.origin.as_ref()?;
        let dialect = dialects.get(origin.dialect.as_deref()?)?;
        let sealed = |seals: &Seals| seals.signature.is_some() || seals.encrypted.is_some();
        let any_sealed = message.thinking().filter_map(Thinking::seals).any(sealed);
        (any_sealed && dialect.rules(origin.model.as_deref()).bind.account).then(|| dialect.id.clone())
    };
    if let Some(provider) = branch.iter().find_map(|(_, message)| bound(message)) {
        let note = format!("{provider} reads its sealed thinking only under the account that it was made for");
        imported.notes.push(note);
    }
}

/// Fills in tool names of results, which are found only through the call.
fn name_results<'a>(messages: impl Iterator<Item = &'a mut Message>) {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for block in messages.flat_map(|message| &mut message.blocks) {
        match block {
            Block::ToolCall(call) => drop(names.insert(call.id.as_str().to_owned(), call.name.clone())),
            Block::ToolResult(result) if result.name.is_empty() => {
                result.name = names.get(&result.id).cloned().unwrap_or_default();
            }
            Block::ToolResult(_) | Block::Text(_) | Block::Thinking(_) | Block::Media(_) | Block::Unmodelled(_) => (),
        }
    }
}
