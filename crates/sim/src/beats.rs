//! A reply as it is going to be told: events that own their words, and the
//! pauses and faults between them.

use std::time::Duration;

use aside_core::block::{Reply, SealKind};
use aside_core::event::{BlockId, End, Event, Opening, Sink, Usage};
use aside_core::fold::Fold;

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
    /// One token.
    Grew {
        block: BlockId,
        text: String,
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
    /// None for what is no event but something that happens on the way.
    pub(crate) fn event(&self) -> Option<Event<'_>> {
        Some(match self {
            Beat::Opened { block, opening } => Event::Opened { block: *block, opening: opening.opening() },
            Beat::Item { block, index } => Event::Item { block: *block, index: *index },
            Beat::Grew { block, text } => Event::Grew { block: *block, text },
            Beat::Sealed { block, kind, payload } => Event::Sealed { block: *block, kind: *kind, payload },
            Beat::Kept { block, json, text_member } => Event::Kept { block: *block, json, text_member: *text_member },
            Beat::Closed { block } => Event::Closed { block: *block },
            Beat::Usage(usage) => Event::Usage(*usage),
            Beat::Ended(end) => Event::Ended(end),
            Beat::Pause(_) | Beat::Garbled => return None,
        })
    }

    pub(crate) fn is_token(&self) -> bool {
        matches!(self, Beat::Grew { .. })
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
    for event in beats.iter().filter_map(Beat::event) {
        fold.take(event);
    }
    fold.finish()
}

/// Lets something happen in the middle of what is told.
pub(crate) fn midway(beats: &mut Vec<Beat>, happens: Beat) {
    let tokens: Vec<usize> = (0..).zip(beats.iter()).filter(|(_, beat)| beat.is_token()).map(|(at, _)| at).collect();
    let at = tokens.get(tokens.len() / 2).copied().unwrap_or(0);
    beats.insert(at, happens);
}
