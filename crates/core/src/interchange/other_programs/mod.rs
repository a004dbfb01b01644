//! Imports stored sessions of other programs. Everything readable is imported;
//! the rest is reported and never stops the import.

mod claude_code;
mod codex;
mod opencode;

use std::collections::BTreeMap;

pub(super) use claude_code::read_claude_code;
pub(super) use codex::read_codex;
pub(super) use opencode::read_opencode;

use crate::block::{Block, Origin, Seals, Thinking};
use crate::dialect::{Dialect, Dialects};
use crate::interchange::Imported;
use crate::json_text::{JsonKind, Raw, canonical};
use crate::message::Message;
use crate::protocol::Protocol;
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

    fn add_notes(self, notes: &mut Vec<String>) {
        notes.extend(self.0.into_iter().map(|(kind, count)| format!("passed over: {kind}, {count} times")));
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
