//! A reply as it is going to be told: events that own their words, and the
//! pauses and faults between them.

use std::time::Duration;

use aside_core::block::{Reply, SealKind};
use aside_core::event::{BlockId, End, Event, Opening, Sink, Usage};
use aside_core::fold::Fold;

use crate::words::{TokenStream, Words};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Beat {
    Opened {
        block: BlockId,
        opening: Opened,
    },
    Item {
        block: BlockId,
        index: u32,
    },
    /// Words, one token after another: these many, behind so many others that
    /// are not said here.
    Said {
        block: BlockId,
        words: Words,
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
    Ended(End),
    Pause(Duration),
    /// A frame that nobody can read.
    Garbled,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Opened {
    Text,
    Thinking { source: String, id: Option<String> },
    ToolCall { id: Option<String>, name: String },
}

impl Beat {
    /// None for what is no single event: words, and what happens on the way.
    pub(crate) fn event(&self) -> Option<Event<'_>> {
        Some(match self {
            Beat::Opened { block, opening } => Event::Opened { block: *block, opening: opening.opening() },
            Beat::Item { block, index } => Event::Item { block: *block, index: *index },
            Beat::Sealed { block, kind, payload } => Event::Sealed { block: *block, kind: *kind, payload },
            Beat::Kept { block, json, text_member } => Event::Kept { block: *block, json, text_member: *text_member },
            Beat::Closed { block } => Event::Closed { block: *block },
            Beat::Usage(usage) => Event::Usage(*usage),
            Beat::Ended(end) => Event::Ended(end),
            Beat::Said { .. } | Beat::Pause(_) | Beat::Garbled => return None,
        })
    }

    pub(crate) fn n_tokens(&self) -> usize {
        match self {
            Beat::Said { n_tokens, .. } => *n_tokens,
            Beat::Opened { .. }
            | Beat::Item { .. }
            | Beat::Sealed { .. }
            | Beat::Kept { .. }
            | Beat::Closed { .. }
            | Beat::Usage(_)
            | Beat::Ended(_)
            | Beat::Pause(_)
            | Beat::Garbled => 0,
        }
    }

    /// The tokens that are said here; none for anything but words.
    pub(crate) fn tokens(&self) -> TokenStream {
        match self {
            Beat::Said { words, skip, n_tokens, .. } => Box::new(words.tokens().skip(*skip).take(*n_tokens)),
            Beat::Opened { .. }
            | Beat::Item { .. }
            | Beat::Sealed { .. }
            | Beat::Kept { .. }
            | Beat::Closed { .. }
            | Beat::Usage(_)
            | Beat::Ended(_)
            | Beat::Pause(_)
            | Beat::Garbled => Box::new(std::iter::empty()),
        }
    }
}

impl Opened {
    fn opening(&self) -> Opening<'_> {
        match self {
            Opened::Text => Opening::Text,
            Opened::Thinking { source, id } => Opening::Thinking { source, id: id.as_deref() },
            Opened::ToolCall { id, name } => Opening::ToolCall { id: id.as_deref(), name },
        }
    }
}

/// The reply that the beats tell.
pub(crate) fn folded(beats: &[Beat]) -> Reply {
    let mut fold = Fold::new();
    for beat in beats {
        if let Beat::Said { block, .. } = beat {
            beat.tokens().for_each(|text| fold.take(Event::Grew { block: *block, text: &text }));
        } else if let Some(event) = beat.event() {
            fold.take(event);
        }
    }
    fold.finish()
}

/// Lets something happen in the middle of what is told.
pub(crate) fn midway(beats: &mut Vec<Beat>, happens: Beat) {
    let mut before = beats.iter().map(Beat::n_tokens).sum::<usize>() / 2;
    let middle = beats.iter().position(|beat| {
        let is_here = before < beat.n_tokens();
        before = before.saturating_sub(if is_here { 0 } else { beat.n_tokens() });
        is_here
    });
    let Some(at) = middle else {
        beats.insert(0, happens);
        return;
    };
    if let Some(Beat::Said { block, words, skip, n_tokens }) = beats.get_mut(at) {
        let rest =
            Beat::Said { block: *block, words: words.clone(), skip: *skip + before, n_tokens: *n_tokens - before };
        *n_tokens = before;
        beats.insert(at + 1, rest);
    }
    beats.insert(at + 1, happens);
}
