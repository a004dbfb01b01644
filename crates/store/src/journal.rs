//! The journal of a reply in progress, readable after a crash.
//!
//! It holds events, not blocks. Reading it replays the events into core's fold,
//! so an interrupted reply is built by the same code as a live one.

use aside_core::block::{Reply, SealKind, Time};
use aside_core::event::{
    BlockId, BlockOpening, Ending, Event, ExtraValue, ProseKind, ProviderError, ReplyEnd, RestatedPart, Usage,
};
use aside_core::fold::Fold;
use aside_core::json_text::JsonText;
use serde::{Deserialize, Serialize};

/// The maximum text of one event; more text becomes another event.
pub(crate) const MAX_TEXT_BYTES: usize = 256 << 10;

/// Text capacity doubles up to here and then grows by an eighth, as in core's fold.
const DOUBLING_LIMIT: usize = 64 << 10;

/// The approximate size of one journal row.
const ROW_BYTES: usize = 1 << 20;

/// Events of a reply, with consecutive deltas of one block joined.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventBatch {
    events: Vec<JournalEvent>,
    n_bytes: usize,
}

impl EventBatch {
    /// Adds an event. A delta that continues the previous one costs only a copy
    /// of its text.
    pub fn push(&mut self, event: Event<'_>, now: Option<Time>) {
        if let Event::Grew { block, text } = event
            && let Some(JournalEvent::Grew(last, before)) = self.events.last_mut()
            && *last == block.0
            && before.len() + text.len() <= MAX_TEXT_BYTES
        {
            self.n_bytes += text.len();
            let needed = before.len() + text.len();
            if needed > before.capacity() && needed > DOUBLING_LIMIT {
                before.reserve_exact(text.len() + needed / 8);
            }
            before.push_str(text);
            return;
        }
        let recorded = JournalEvent::of(event, now);
        self.n_bytes += recorded.as_ref().map_or(0, JournalEvent::n_bytes);
        self.events.extend(recorded);
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The number of text bytes in this batch.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Appends later events.
    pub fn append(&mut self, mut later: EventBatch) {
        self.n_bytes += later.n_bytes;
        self.events.append(&mut later.events);
    }

    /// Serializes the events into journal rows one at a time, so that a long
    /// reply is never in memory as a whole.
    pub fn rows(&self) -> impl Iterator<Item = String> {
        let mut rest = self.events.as_slice();
        std::iter::from_fn(move || {
            let mut n_bytes = 0;
            let full = rest.iter().position(|event| {
                n_bytes += event.n_bytes();
                n_bytes > ROW_BYTES
            });
            let (row, after) = rest.split_at(full.map_or(rest.len(), |at| at.max(1)));
            rest = after;
            (!row.is_empty()).then(|| row_json(row))
        })
    }

    pub fn from_json(json: &str) -> Result<EventBatch, serde_json::Error> {
        Ok(EventBatch { events: serde_json::from_str(json)?, n_bytes: 0 })
    }

    /// Rebuilds the reply from all batches, as far as it was recorded.
    pub fn replay(batches: impl IntoIterator<Item = EventBatch>) -> Reply {
        let mut fold = Fold::new();
        let mut n_opened = 0;
        // A reply without a recorded end was cut off.
        let cut_off = ReplyEnd { ending: Ending::CutOff, error: None };
        play(&mut fold, Event::Ended(&cut_off));
        for recorded in batches.into_iter().flat_map(|batch| batch.events) {
            recorded.play(&mut fold, &mut n_opened);
        }
        fold.finish()
    }
}

fn row_json(row: &[JournalEvent]) -> String {
    let n_bytes: usize = row.iter().map(JournalEvent::n_bytes).sum();
    // Few characters are escaped; doubling would reserve twice the size.
    let mut json = Vec::with_capacity(n_bytes + n_bytes / 16 + 64 * row.len());
    // Serializing plain data into memory cannot fail.
    match serde_json::to_writer(&mut json, row) {
        Ok(()) => String::from_utf8(json).unwrap_or_default(),
        Err(_) => String::new(),
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
            Event::Usage(Usage { input, output, reasoning, cached, cache_write: None }) => {
                JournalEvent::Usage(input, output, reasoning, cached)
            }
            Event::Usage(Usage { input, output, reasoning, cached, cache_write: Some(written) }) => {
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
                error: error.clone().map(|ProviderError { message, code, status }| (message, code, status)),
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
            JournalEvent::Usage(input, output, reasoning, cached) => Event::Usage(Usage {
                input: *input,
                output: *output,
                reasoning: *reasoning,
                cached: *cached,
                cache_write: None,
            }),
            JournalEvent::UsageWithWrites(input, output, reasoning, cached, written) => Event::Usage(Usage {
                input: *input,
                output: *output,
                reasoning: *reasoning,
                cached: *cached,
                cache_write: Some(*written),
            }),
            JournalEvent::Extra { block, name, member, json, continues } => {
                let value = ExtraValue { name, member: member.as_deref(), json, continues: *continues };
                Event::Extra { block: block.map(BlockId), value }
            }
            JournalEvent::Ended { e, error } => {
                let error = error.clone().map(|(message, code, status)| ProviderError { message, code, status });
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
