//! The timeline of a reply: events that own their text, with pauses and faults between
//! them.

use std::time::Duration;

use aside_core::block::{Reply, SealKind};
use aside_core::event::{BlockId, BlockOpening, Event, ReplyEnd, Sink, Usage};
use aside_core::fold::Fold;

use crate::generated_text::{GeneratedText, TokenStream};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TimelineStep {
    Opened {
        block: BlockId,
        opening: OwnedOpening,
    },
    Item {
        block: BlockId,
        index: u32,
    },
    /// Text sent one token at a time: `n_tokens` tokens after skipping `skip`.
    Text {
        block: BlockId,
        text: GeneratedText,
        skip: usize,
        n_tokens: usize,
    },
    Sealed {
        block: BlockId,
        kind: SealKind,
        payload: String,
    },
    Kept {
        block: BlockId,
        json: String,
        text_member: Option<&'static str>,
    },
    Closed {
        block: BlockId,
    },
    Usage(Usage),
    Ended(ReplyEnd),
    Pause(Duration),
    /// A malformed frame.
    Malformed,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OwnedOpening {
    Text,
    Thinking { source: String, id: Option<String> },
    ToolCall { id: Option<String>, name: String },
}

impl TimelineStep {
    /// None for steps that are not a single event: text, pauses and faults.
    pub(crate) fn event(&self) -> Option<Event<'_>> {
        Some(match self {
            TimelineStep::Opened { block, opening } => Event::Opened { block: *block, opening: opening.opening() },
            TimelineStep::Item { block, index } => Event::Item { block: *block, index: *index },
            TimelineStep::Sealed { block, kind, payload } => Event::Sealed { block: *block, kind: *kind, payload },
            TimelineStep::Kept { block, json, text_member } => {
                Event::NativeItem { block: *block, json, text_member: *text_member }
            }
            TimelineStep::Closed { block } => Event::Closed { block: *block },
            TimelineStep::Usage(usage) => Event::Usage(*usage),
            TimelineStep::Ended(end) => Event::Ended(end),
            TimelineStep::Text { .. } | TimelineStep::Pause(_) | TimelineStep::Malformed => return None,
        })
    }

    pub(crate) fn n_tokens(&self) -> usize {
        match self {
            TimelineStep::Text { n_tokens, .. } => *n_tokens,
            TimelineStep::Opened { .. }
            | TimelineStep::Item { .. }
            | TimelineStep::Sealed { .. }
            | TimelineStep::Kept { .. }
            | TimelineStep::Closed { .. }
            | TimelineStep::Usage(_)
            | TimelineStep::Ended(_)
            | TimelineStep::Pause(_)
            | TimelineStep::Malformed => 0,
        }
    }

    /// The tokens of a text step; empty for other steps.
    pub(crate) fn tokens(&self) -> TokenStream {
        match self {
            TimelineStep::Text { text, skip, n_tokens, .. } => Box::new(text.tokens().skip(*skip).take(*n_tokens)),
            TimelineStep::Opened { .. }
            | TimelineStep::Item { .. }
            | TimelineStep::Sealed { .. }
            | TimelineStep::Kept { .. }
            | TimelineStep::Closed { .. }
            | TimelineStep::Usage(_)
            | TimelineStep::Ended(_)
            | TimelineStep::Pause(_)
            | TimelineStep::Malformed => Box::new(std::iter::empty()),
        }
    }
}

impl OwnedOpening {
    fn opening(&self) -> BlockOpening<'_> {
        match self {
            OwnedOpening::Text => BlockOpening::Text,
            OwnedOpening::Thinking { source, id } => BlockOpening::Thinking { source, id: id.as_deref() },
            OwnedOpening::ToolCall { id, name } => BlockOpening::ToolCall { id: id.as_deref(), name },
        }
    }
}

/// Folds the timeline into a reply.
pub(crate) fn fold_timeline(timeline: &[TimelineStep]) -> Reply {
    let mut fold = Fold::new();
    for step in timeline {
        if let TimelineStep::Text { block, .. } = step {
            step.tokens().for_each(|token| fold.take(Event::Grew { block: *block, text: &token }));
        } else if let Some(event) = step.event() {
            fold.take(event);
        }
    }
    fold.finish()
}

/// Inserts a step after half of the tokens.
pub(crate) fn insert_midway(timeline: &mut Vec<TimelineStep>, inserted: TimelineStep) {
    let mut before = timeline.iter().map(TimelineStep::n_tokens).sum::<usize>() / 2;
    let middle = timeline.iter().position(|step| {
        let is_here = before < step.n_tokens();
        before = before.saturating_sub(if is_here { 0 } else { step.n_tokens() });
        is_here
    });
    let Some(at) = middle else {
        timeline.insert(0, inserted);
        return;
    };
    if let Some(TimelineStep::Text { block, text, skip, n_tokens }) = timeline.get_mut(at) {
        let rest = TimelineStep::Text {
            block: *block,
            text: text.clone(),
            skip: *skip + before,
            n_tokens: *n_tokens - before,
        };
        *n_tokens = before;
        timeline.insert(at + 1, rest);
    }
    timeline.insert(at + 1, inserted);
}
