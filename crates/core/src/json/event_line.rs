//! The JSON of events.

use std::io;

use serde::Serialize;

use super::block_view::BlockView;
use super::{ErrorView, NoteView, UsageView, finish, side};
use crate::block::{Block, SealKind};
use crate::event::{BlockOpening, Event, ReplyEnd};
use crate::fold::Fold;
use crate::safe_json;

/// An event as one line. None for internal events. The fold must have processed
/// the event before.
pub fn event(event: &Event<'_>, fold: &Fold) -> Option<String> {
    let mut out = Vec::new();
    // Writing into memory does not fail, and what is written is UTF-8.
    let is_written = write_event(event, fold, &mut out).unwrap_or_default();
    is_written.then(|| String::from_utf8(out).unwrap_or_default())
}

/// Writes the same without a line end. Returns false if nothing was written.
pub fn write_event(event: &Event<'_>, fold: &Fold, out: &mut impl io::Write) -> io::Result<bool> {
    let value = if let Event::Closed { block } | Event::Sealed { block, .. } = *event
        && fold.is_closed(block)
    {
        fold.block(block)
    } else {
        None
    };
    write_event_with_block(event, value.as_ref(), out)
}

/// Writes the same for a caller that has no fold. `value` is the block that the event closes, or that
/// was closed before it got its seal.
pub fn write_event_with_block(event: &Event<'_>, value: Option<&Block>, out: &mut impl io::Write) -> io::Result<bool> {
    let view = match *event {
        Event::Opened { block, opening } => EventView::opened(block.0, opening),
        Event::Item { block, index } => EventView::Item { block: block.0, index },
        Event::Grew { block, text } => EventView::Grew { block: block.0, text },
        Event::Sealed { block, kind, payload } => {
            let (signature, encrypted) = match kind {
                SealKind::Signature => (Some(payload), None),
                SealKind::Encrypted => (None, Some(payload)),
            };
            EventView::Sealed { block: block.0, signature, encrypted, value: value.map(BlockView::of) }
        }
        Event::Refiled { block, to } => EventView::Refiled { block: block.0, to: side(to) },
        Event::Closed { block } => EventView::Closed { block: block.0, value: value.map(BlockView::of) },
        Event::Extra { block, value } => EventView::Extra { block: block.map(|block| block.0), name: value.name },
        Event::Usage(usage) => EventView::Usage(UsageView::of(usage)),
        Event::Noted(note) => EventView::Notice(NoteView::of(note)),
        Event::Ended(ReplyEnd { ending, error }) => {
            EventView::Ended { finish: finish(ending), error: error.as_ref().map(ErrorView::of) }
        }
        Event::Started { .. }
        | Event::Identified { .. }
        | Event::Restated { .. }
        | Event::NativeItem { .. }
        | Event::EmptyThinkingField { .. } => return Ok(false),
    };
    safe_json::write(out, &view).map(|()| true)
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum EventView<'a> {
    Opened {
        block: u32,
        r#type: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        source_field: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
    Item {
        block: u32,
        index: u32,
    },
    Grew {
        block: u32,
        text: &'a str,
    },
    Sealed {
        block: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted: Option<&'a str>,
        /// The current state of the block, if it was already closed.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<BlockView<'a>>,
    },
    Refiled {
        block: u32,
        to: &'static str,
    },
    Closed {
        block: u32,
        value: Option<BlockView<'a>>,
    },
    Extra {
        #[serde(skip_serializing_if = "Option::is_none")]
        block: Option<u32>,
        name: &'a str,
    },
    Usage(UsageView),
    Notice(NoteView<'a>),
    Ended {
        finish: Option<&'static str>,
        error: Option<ErrorView<'a>>,
    },
}

impl<'a> EventView<'a> {
    fn opened(block: u32, opening: BlockOpening<'a>) -> EventView<'a> {
        let (r#type, source_field, id, name) = match opening {
            BlockOpening::Text => ("text", None, None, None),
            BlockOpening::Thinking { source, id } => ("thinking", Some(source), id, None),
            BlockOpening::ToolCall { id, name } => ("toolCall", None, id, Some(name)),
            BlockOpening::Unmodelled => ("unmodelled", None, None, None),
        };
        EventView::Opened { block, r#type, source_field, id, name }
    }
}
