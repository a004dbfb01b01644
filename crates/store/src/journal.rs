//! The journal of a reply in progress, readable after a crash.
//!
//! It holds events, not blocks. Reading it replays the events into core's fold,
//! so an interrupted reply is built by the same code as a live one.

use aside_core::block::{Reply, SealKind, Time};
use aside_core::event::{
    BlockId, BlockOpening, Ending, Event, ExtraValue, ProseKind, ProviderError, ReplyEnd, RestatedPart, Usage,
};
use aside_core::fold::Fold;
use aside_core::json_text::{JsonText, escape_into};
use serde::{Deserialize, Serialize};

/// The maximum text of one event; more text becomes another event.
pub(crate) const MAX_TEXT_BYTES: usize = 8 << 10;

/// The usual maximum size of a row. A single event may be larger.
const ROW_BYTES: usize = 16 << 10;

/// What follows the text of a delta at the end of a row.
const DELTA_END: &str = "\"]}]";

/// How many buffers of written rows are kept for later rows.
const MAX_SPARE_ROWS: usize = 8;

/// Events of a reply as journal rows, with consecutive deltas of one block joined. Text is
/// escaped straight into its row, so it is copied once.
#[derive(Debug, Clone, Default)]
pub struct EventBatch {
    /// Complete rows, each a JSON array of events.
    full: Vec<String>,
    /// The row that grows; a JSON array too, unless it is empty.
    last: String,
    /// The block of the delta that ends the last row; more of its text is inserted there.
    last_delta: Option<u32>,
    n_bytes: usize,
    /// Empty buffers.
    spare: Vec<String>,
}

impl EventBatch {
    /// Adds an event. A delta that continues the previous one costs only a copy
    /// of its text.
    pub fn push(&mut self, event: Event<'_>, now: Option<Time>) {
        if let Event::Grew { block, text } = event {
            self.n_bytes += text.len();
            return self.push_delta(block.0, text);
        }
        let Some(recorded) = JournalEvent::of(event, now) else { return };
        self.n_bytes += recorded.n_bytes();
        // Serializing plain data into memory cannot fail.
        let json = serde_json::to_string(&recorded).unwrap_or_default();
        self.begin_event(json.len());
        self.last.push_str(&json);
        self.last.push(']');
        self.last_delta = None;
    }

    /// Writes the same as `JournalEvent::Grew`.
    fn push_delta(&mut self, block: u32, text: &str) {
        if self.last_delta == Some(block) && self.last.len() + text.len() <= ROW_BYTES {
            self.last.truncate(self.last.len() - DELTA_END.len());
        } else {
            self.begin_event(text.len());
            self.last.push_str(&format!("{{\"grew\":[{block},\""));
            self.last_delta = Some(block);
        }
        escape_into(&mut self.last, text);
        self.last.push_str(DELTA_END);
    }

    /// Prepares the last row for another event, or begins a row if it has no room.
    fn begin_event(&mut self, n_bytes: usize) {
        if !self.last.is_empty() && self.last.len() + n_bytes > ROW_BYTES {
            let next = self.spare.pop().unwrap_or_default();
            self.full.push(std::mem::replace(&mut self.last, next));
        }
        match self.last.pop() {
            Some(_closing_bracket) => self.last.push(','),
            None => self.last.push('['),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.full.is_empty() && self.last.is_empty()
    }

    /// The number of text bytes in this batch.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Appends later events.
    pub fn append(&mut self, mut later: EventBatch) {
        if later.is_empty() {
            return;
        }
        let before = std::mem::replace(&mut self.last, later.last);
        self.full.extend((!before.is_empty()).then_some(before));
        self.full.append(&mut later.full);
        (self.last_delta, self.n_bytes) = (later.last_delta, self.n_bytes + later.n_bytes);
    }

    /// Removes all events, which have been written, and keeps their buffers.
    pub(crate) fn clear(&mut self) {
        let rows = self.full.drain(..).chain([std::mem::take(&mut self.last)]);
        let empty = rows.filter(|row| row.capacity() <= ROW_BYTES).map(|mut row| {
            row.clear();
            row
        });
        self.spare.extend(empty);
        self.spare.truncate(MAX_SPARE_ROWS);
        self.last = self.spare.pop().unwrap_or_default();
        (self.last_delta, self.n_bytes) = (None, 0);
    }

    /// The rows of the journal, each of a bounded size, so that a long reply is
    /// never in memory as a whole.
    pub fn rows(&self) -> impl Iterator<Item = &str> {
        let last = (!self.last.is_empty()).then_some(&self.last);
        self.full.iter().chain(last).map(String::as_str)
    }

    /// Rebuilds the reply from the rows of its journal, as far as it was recorded.
    pub fn replay<R: AsRef<str>>(rows: impl IntoIterator<Item = R>) -> Result<Reply, serde_json::Error> {
        let mut fold = Fold::new();
        let mut n_opened = 0;
        // A reply without a recorded end was cut off.
        let cut_off = ReplyEnd { ending: Ending::CutOff, error: None };
        play(&mut fold, Event::Ended(&cut_off));
        for row in rows {
            let events: Vec<JournalEvent> = serde_json::from_str(row.as_ref())?;
            events.iter().for_each(|recorded| recorded.play(&mut fold, &mut n_opened));
        }
        Ok(fold.finish())
    }
}

/// One event in its stored form. The serialized names are on users' disks and
/// never change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum JournalEvent {
    #[serde(rename = "model")]
    Started(String),
    #[serde(rename = "open")]
    Opened { b: u32, o: JournalOpening, at: Option<u64> },
    #[serde(rename = "item")]
    Item(u32, u32),
    #[serde(rename = "grew")]
    Grew(u32, String),
    #[serde(rename = "sig")]
    Signed(u32, String),
    #[serde(rename = "enc")]
    Encrypted(u32, String),
    #[serde(rename = "text")]
    RefiledAsText(u32),
    #[serde(rename = "thinking")]
    RefiledAsThinking(u32),
    #[serde(rename = "id")]
    Identified(u32, String),
    #[serde(rename = "whole")]
    Restated(u32, String),
    #[serde(rename = "part")]
    RestatedItem(u32, u32, String),
    #[serde(rename = "kept")]
    Kept(u32, String, Option<String>),
    #[serde(rename = "close")]
    Closed(u32, Option<u64>),
    #[serde(rename = "seen")]
    Seen(String),
    #[serde(rename = "usage")]
    Usage(Option<u64>, Option<u64>, Option<u64>, Option<u64>),
    /// As above, followed by the tokens written to the cache.
    #[serde(rename = "usage2")]
    UsageWithWrites(Option<u64>, Option<u64>, Option<u64>, Option<u64>, u64),
    #[serde(rename = "extra")]
    Extra {
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        block: Option<u32>,
        #[serde(rename = "n")]
        name: String,
        #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        #[serde(rename = "j")]
        json: String,
        #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
        continues: bool,
    },
    #[serde(rename = "end")]
    Ended { e: StoredEnding, error: Option<(String, Option<String>, Option<u16>)> },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum JournalOpening {
    #[serde(rename = "text")]
    Text,
    #[serde(rename = "thinking")]
    Thinking(String, Option<String>),
    #[serde(rename = "call")]
    ToolCall(Option<String>, String),
    #[serde(rename = "unmodelled")]
    Unmodelled,
}

/// An ending as one word; an unrecognized one is prefixed with `?`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredEnding(pub(crate) String);

impl StoredEnding {
    pub(crate) fn of(ending: &Ending) -> StoredEnding {
        let word = match ending {
            Ending::Stop => "stop",
            Ending::Length => "length",
            Ending::ToolCalls => "tool_calls",
            Ending::ContentFilter => "content_filter",
            Ending::Refusal => "refusal",
            Ending::Pause => "pause",
            Ending::Error => "error",
            Ending::Unsaid => "unsaid",
            Ending::CutOff => "cut_off",
            Ending::Unrecognized(word) => return StoredEnding(format!("?{word}")),
        };
        StoredEnding(word.to_owned())
    }

    pub(crate) fn ending(&self) -> Ending {
        match self.0.as_str() {
            "stop" => Ending::Stop,
            "length" => Ending::Length,
            "tool_calls" => Ending::ToolCalls,
            "content_filter" => Ending::ContentFilter,
            "refusal" => Ending::Refusal,
            "pause" => Ending::Pause,
            "error" => Ending::Error,
            "unsaid" => Ending::Unsaid,
            "cut_off" => Ending::CutOff,
            other => Ending::Unrecognized(other.strip_prefix('?').unwrap_or(other).to_owned()),
        }
    }
}

impl JournalEvent {
    /// The number of text bytes it holds.
    fn n_bytes(&self) -> usize {
        match self {
            JournalEvent::Started(text)
            | JournalEvent::Grew(_, text)
            | JournalEvent::Signed(_, text)
            | JournalEvent::Encrypted(_, text)
            | JournalEvent::Identified(_, text)
            | JournalEvent::Restated(_, text)
            | JournalEvent::RestatedItem(_, _, text)
            | JournalEvent::Kept(_, text, _)
            | JournalEvent::Seen(text) => text.len(),
            JournalEvent::Extra { name, json, .. } => name.len() + json.len(),
            JournalEvent::Opened { .. }
            | JournalEvent::Item(..)
            | JournalEvent::RefiledAsText(_)
            | JournalEvent::RefiledAsThinking(_)
            | JournalEvent::Closed(..)
            | JournalEvent::Usage(..)
            | JournalEvent::UsageWithWrites(..)
            | JournalEvent::Ended { .. } => 0,
        }
    }

    /// None for notes: they are emitted when they happen and not stored.
    fn of(event: Event<'_>, now: Option<Time>) -> Option<JournalEvent> {
        let at = now.map(|now| now.0);
        Some(match event {
            Event::Started { model } => JournalEvent::Started(model.to_owned()),
            Event::Opened { block, opening } => JournalEvent::Opened { b: block.0, o: JournalOpening::of(opening), at },
            Event::Item { block, index } => JournalEvent::Item(block.0, index),
            Event::Grew { block, text } => JournalEvent::Grew(block.0, text.to_owned()),
            Event::Sealed { block, kind, payload } => match kind {
                SealKind::Signature => JournalEvent::Signed(block.0, payload.to_owned()),
                SealKind::Encrypted => JournalEvent::Encrypted(block.0, payload.to_owned()),
            },
            Event::Refiled { block, to: ProseKind::Text } => JournalEvent::RefiledAsText(block.0),
            Event::Refiled { block, to: ProseKind::Thinking } => JournalEvent::RefiledAsThinking(block.0),
            Event::Identified { block, id } => JournalEvent::Identified(block.0, id.to_owned()),
            Event::Restated { block, part: RestatedPart::Whole, text } => {
                JournalEvent::Restated(block.0, text.to_owned_text())
            }
            Event::Restated { block, part: RestatedPart::Item(index), text } => {
                JournalEvent::RestatedItem(block.0, index, text.to_owned_text())
            }
            Event::NativeItem { block, json, text_member } => {
                JournalEvent::Kept(block.0, json.to_owned(), text_member.map(str::to_owned))
            }
            Event::Closed { block } => JournalEvent::Closed(block.0, at),
            Event::EmptyThinkingField { field } => JournalEvent::Seen(field.to_owned()),
            Event::Usage(Usage { input, output, reasoning, cached, cache_write: None, .. }) => {
                JournalEvent::Usage(input, output, reasoning, cached)
            }
            Event::Usage(Usage { input, output, reasoning, cached, cache_write: Some(written), .. }) => {
                JournalEvent::UsageWithWrites(input, output, reasoning, cached, written)
            }
            Event::Extra { block, value: ExtraValue { name, member, json, continues } } => JournalEvent::Extra {
                block: block.map(|block| block.0),
                name: name.to_owned(),
                member: member.map(str::to_owned),
                json: json.to_owned(),
                continues,
            },
            Event::Ended(ReplyEnd { ending, error }) => JournalEvent::Ended {
                e: StoredEnding::of(ending),
                error: error.clone().map(|ProviderError { message, code, status, .. }| (message, code, status)),
            },
            Event::Noted(_) => return None,
        })
    }

    fn play(&self, fold: &mut Fold, n_opened: &mut u32) {
        let event = match self {
            JournalEvent::Started(model) => Event::Started { model },
            JournalEvent::Opened { b, o, at } => {
                set_now(fold, *at);
                // Blocks are numbered without gaps; anything else is corrupt.
                if *b != *n_opened {
                    return;
                }
                *n_opened += 1;
                Event::Opened { block: BlockId(*b), opening: o.opening() }
            }
            JournalEvent::Item(b, index) => Event::Item { block: BlockId(*b), index: *index },
            JournalEvent::Grew(b, text) => Event::Grew { block: BlockId(*b), text },
            JournalEvent::Signed(b, payload) => {
                Event::Sealed { block: BlockId(*b), kind: SealKind::Signature, payload }
            }
            JournalEvent::Encrypted(b, payload) => {
                Event::Sealed { block: BlockId(*b), kind: SealKind::Encrypted, payload }
            }
            JournalEvent::RefiledAsText(b) => Event::Refiled { block: BlockId(*b), to: ProseKind::Text },
            JournalEvent::RefiledAsThinking(b) => Event::Refiled { block: BlockId(*b), to: ProseKind::Thinking },
            JournalEvent::Identified(b, id) => Event::Identified { block: BlockId(*b), id },
            JournalEvent::Restated(b, text) => {
                Event::Restated { block: BlockId(*b), part: RestatedPart::Whole, text: JsonText::plain(text) }
            }
            JournalEvent::RestatedItem(b, index, text) => {
                Event::Restated { block: BlockId(*b), part: RestatedPart::Item(*index), text: JsonText::plain(text) }
            }
            JournalEvent::Kept(b, json, text_member) => {
                Event::NativeItem { block: BlockId(*b), json, text_member: text_member.as_deref() }
            }
            JournalEvent::Closed(b, at) => {
                set_now(fold, *at);
                Event::Closed { block: BlockId(*b) }
            }
            JournalEvent::Seen(field) => Event::EmptyThinkingField { field },
            JournalEvent::Usage(input, output, reasoning, cached) => Event::Usage(
                Usage::default().with_input(*input).with_output(*output).with_thinking(*reasoning).with_cached(*cached),
            ),
            JournalEvent::UsageWithWrites(input, output, reasoning, cached, written) => Event::Usage(
                Usage::default()
                    .with_input(*input)
                    .with_output(*output)
                    .with_thinking(*reasoning)
                    .with_cached(*cached)
                    .with_cache_write(*written),
            ),
            JournalEvent::Extra { block, name, member, json, continues } => {
                let value = ExtraValue { name, member: member.as_deref(), json, continues: *continues };
                Event::Extra { block: block.map(BlockId), value }
            }
            JournalEvent::Ended { e, error } => {
                let error = error
                    .clone()
                    .map(|(message, code, status)| ProviderError::new(message).with_code(code).with_status(status));
                return play(fold, Event::Ended(&ReplyEnd { ending: e.ending(), error }));
            }
        };
        play(fold, event);
    }
}

fn play(fold: &mut Fold, event: Event<'_>) {
    aside_core::event::Sink::take(fold, event);
}

fn set_now(fold: &mut Fold, at: Option<u64>) {
    if let Some(at) = at {
        fold.set_now(Time(at));
    }
}

impl JournalOpening {
    fn of(opening: BlockOpening<'_>) -> JournalOpening {
        match opening {
            BlockOpening::Text => JournalOpening::Text,
            BlockOpening::Thinking { source, id } => JournalOpening::Thinking(source.to_owned(), id.map(str::to_owned)),
            BlockOpening::ToolCall { id, name } => JournalOpening::ToolCall(id.map(str::to_owned), name.to_owned()),
            BlockOpening::Unmodelled => JournalOpening::Unmodelled,
        }
    }

    fn opening(&self) -> BlockOpening<'_> {
        match self {
            JournalOpening::Text => BlockOpening::Text,
            JournalOpening::Thinking(source, id) => BlockOpening::Thinking { source, id: id.as_deref() },
            JournalOpening::ToolCall(id, name) => BlockOpening::ToolCall { id: id.as_deref(), name },
            JournalOpening::Unmodelled => BlockOpening::Unmodelled,
        }
    }
}
