//! What a running reply said so far, in a form that outlives its process.
//!
//! The journal holds events, not blocks: whoever finds it plays it into core's
//! fold, so that an interrupted reply is read by the same code as a live one.

use aside_core::block::{Reply, SealKind, Time};
use aside_core::event::{BlockId, End, Ending, Event, Opening, Part, ProviderError, Side, Usage};
use aside_core::fold::Fold;
use aside_core::text::JsonText;
use serde::{Deserialize, Serialize};

/// How long the text of one event becomes; more of it is another event.
pub(crate) const PIECE: usize = 256 << 10;

/// What one row of the journal holds, about.
const ROW: usize = 1 << 20;

/// Events of a reply, growth of one block joined.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    events: Vec<Recorded>,
    n_bytes: usize,
}

impl Batch {
    /// Takes an event in. A delta that continues the one before costs a copy of
    /// its text and nothing else.
    pub fn push(&mut self, event: Event<'_>, now: Option<Time>) {
        if let Event::Grew { block, text } = event
            && let Some(Recorded::Grew(last, before)) = self.events.last_mut()
            && *last == block.0
            && before.len() + text.len() <= PIECE
        {
            self.n_bytes += text.len();
            before.push_str(text);
            return;
        }
        let recorded = Recorded::of(event, now);
        self.n_bytes += recorded.as_ref().map_or(0, Recorded::n_bytes);
        self.events.extend(recorded);
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// How much text waits here.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Puts what came later behind this.
    pub fn append(&mut self, mut later: Batch) {
        self.n_bytes += later.n_bytes;
        self.events.append(&mut later.events);
    }

    /// The events as rows of the journal, one after another, so that a long
    /// reply is never written down in memory as a whole.
    pub fn rows(&self) -> impl Iterator<Item = String> {
        let mut rest = self.events.as_slice();
        std::iter::from_fn(move || {
            let mut n_bytes = 0;
            let full = rest.iter().position(|event| {
                n_bytes += event.n_bytes();
                n_bytes > ROW
            });
            let (row, after) = rest.split_at(full.map_or(rest.len(), |at| at.max(1)));
            rest = after;
            // Plain data into memory does not fail.
            (!row.is_empty()).then(|| serde_json::to_string(row).unwrap_or_default())
        })
    }

    pub fn from_json(json: &str) -> Result<Batch, serde_json::Error> {
        Ok(Batch { events: serde_json::from_str(json)?, n_bytes: 0 })
    }

    /// The reply that all batches together make, as far as it came.
    pub fn replay(batches: impl IntoIterator<Item = Batch>) -> Reply {
        let mut fold = Fold::new();
        let mut n_opened = 0;
        // A reply whose end was never said was cut off.
        let unsaid = End { ending: Ending::CutOff, error: None };
        play(&mut fold, Event::Ended(&unsaid));
        for recorded in batches.into_iter().flat_map(|batch| batch.events) {
            recorded.play(&mut fold, &mut n_opened);
        }
        fold.finish()
    }
}

/// One event as it is stored. The names are stored and never change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Recorded {
    #[serde(rename = "model")]
    Started(String),
    #[serde(rename = "open")]
    Opened { b: u32, o: Opened, at: Option<u64> },
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
    #[serde(rename = "end")]
    Ended { e: StoredEnding, error: Option<(String, Option<String>, Option<u16>)> },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Opened {
    #[serde(rename = "text")]
    Text,
    #[serde(rename = "thinking")]
    Thinking(String, Option<String>),
    #[serde(rename = "call")]
    ToolCall(Option<String>, String),
    #[serde(rename = "unmodelled")]
    Unmodelled,
}

/// An ending as one word; a word of the provider's own begins with `?`.
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

impl Recorded {
    /// How much text it holds.
    fn n_bytes(&self) -> usize {
        match self {
            Recorded::Started(text)
            | Recorded::Grew(_, text)
            | Recorded::Signed(_, text)
            | Recorded::Encrypted(_, text)
            | Recorded::Identified(_, text)
            | Recorded::Restated(_, text)
            | Recorded::RestatedItem(_, _, text)
            | Recorded::Kept(_, text, _)
            | Recorded::Seen(text) => text.len(),
            Recorded::Opened { .. }
            | Recorded::Item(..)
            | Recorded::RefiledAsText(_)
            | Recorded::RefiledAsThinking(_)
            | Recorded::Closed(..)
            | Recorded::Usage(..)
            | Recorded::Ended { .. } => 0,
        }
    }

    /// None for what no message holds: notes are told when they happen.
    fn of(event: Event<'_>, now: Option<Time>) -> Option<Recorded> {
        let at = now.map(|now| now.0);
        Some(match event {
            Event::Started { model } => Recorded::Started(model.to_owned()),
            Event::Opened { block, opening } => Recorded::Opened { b: block.0, o: Opened::of(opening), at },
            Event::Item { block, index } => Recorded::Item(block.0, index),
            Event::Grew { block, text } => Recorded::Grew(block.0, text.to_owned()),
            Event::Sealed { block, kind, payload } => match kind {
                SealKind::Signature => Recorded::Signed(block.0, payload.to_owned()),
                SealKind::Encrypted => Recorded::Encrypted(block.0, payload.to_owned()),
            },
            Event::Refiled { block, to: Side::Text } => Recorded::RefiledAsText(block.0),
            Event::Refiled { block, to: Side::Thinking } => Recorded::RefiledAsThinking(block.0),
            Event::Identified { block, id } => Recorded::Identified(block.0, id.to_owned()),
            Event::Restated { block, part: Part::Whole, text } => Recorded::Restated(block.0, text.to_owned_text()),
            Event::Restated { block, part: Part::Item(index), text } => {
                Recorded::RestatedItem(block.0, index, text.to_owned_text())
            }
            Event::Kept { block, json, text_member } => {
                Recorded::Kept(block.0, json.to_owned(), text_member.map(str::to_owned))
            }
            Event::Closed { block } => Recorded::Closed(block.0, at),
            Event::Seen { field } => Recorded::Seen(field.to_owned()),
            Event::Usage(Usage { input, output, reasoning, cached }) => {
                Recorded::Usage(input, output, reasoning, cached)
            }
            Event::Ended(End { ending, error }) => Recorded::Ended {
                e: StoredEnding::of(ending),
                error: error.clone().map(|ProviderError { message, code, status }| (message, code, status)),
            },
            Event::Noted(_) => return None,
        })
    }

    fn play(&self, fold: &mut Fold, n_opened: &mut u32) {
        let event = match self {
            Recorded::Started(model) => Event::Started { model },
            Recorded::Opened { b, o, at } => {
                set_now(fold, *at);
                // Blocks are numbered without gaps; anything else is damage.
                if *b != *n_opened {
                    return;
                }
                *n_opened += 1;
                Event::Opened { block: BlockId(*b), opening: o.opening() }
            }
            Recorded::Item(b, index) => Event::Item { block: BlockId(*b), index: *index },
            Recorded::Grew(b, text) => Event::Grew { block: BlockId(*b), text },
            Recorded::Signed(b, payload) => Event::Sealed { block: BlockId(*b), kind: SealKind::Signature, payload },
            Recorded::Encrypted(b, payload) => Event::Sealed { block: BlockId(*b), kind: SealKind::Encrypted, payload },
            Recorded::RefiledAsText(b) => Event::Refiled { block: BlockId(*b), to: Side::Text },
            Recorded::RefiledAsThinking(b) => Event::Refiled { block: BlockId(*b), to: Side::Thinking },
            Recorded::Identified(b, id) => Event::Identified { block: BlockId(*b), id },
            Recorded::Restated(b, text) => {
                Event::Restated { block: BlockId(*b), part: Part::Whole, text: JsonText::plain(text) }
            }
            Recorded::RestatedItem(b, index, text) => {
                Event::Restated { block: BlockId(*b), part: Part::Item(*index), text: JsonText::plain(text) }
            }
            Recorded::Kept(b, json, text_member) => {
                Event::Kept { block: BlockId(*b), json, text_member: text_member.as_deref() }
            }
            Recorded::Closed(b, at) => {
                set_now(fold, *at);
                Event::Closed { block: BlockId(*b) }
            }
            Recorded::Seen(field) => Event::Seen { field },
            Recorded::Usage(input, output, reasoning, cached) => {
                Event::Usage(Usage { input: *input, output: *output, reasoning: *reasoning, cached: *cached })
            }
            Recorded::Ended { e, error } => {
                let error = error.clone().map(|(message, code, status)| ProviderError { message, code, status });
                return play(fold, Event::Ended(&End { ending: e.ending(), error }));
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

impl Opened {
    fn of(opening: Opening<'_>) -> Opened {
        match opening {
            Opening::Text => Opened::Text,
            Opening::Thinking { source, id } => Opened::Thinking(source.to_owned(), id.map(str::to_owned)),
            Opening::ToolCall { id, name } => Opened::ToolCall(id.map(str::to_owned), name.to_owned()),
            Opening::Unmodelled => Opened::Unmodelled,
        }
    }

    fn opening(&self) -> Opening<'_> {
        match self {
            Opened::Text => Opening::Text,
            Opened::Thinking(source, id) => Opening::Thinking { source, id: id.as_deref() },
            Opened::ToolCall(id, name) => Opening::ToolCall { id: id.as_deref(), name },
            Opened::Unmodelled => Opening::Unmodelled,
        }
    }
}
