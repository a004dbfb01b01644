//! What the updates of a reply leave out.

use aside_core::block::{Block, Seal};
use aside_core::event::{BlockId, BlockOpening, Event};
use aside_core::fold::Fold;
use aside_core::permission_question::PermissionAnswer;
use serde::{Deserialize, Serialize};

use crate::update::Update;

/// More than the update that it replaces. Only a front end that asks for details gets them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum UpdateDetail {
    /// Replaces [`Update::Opened`].
    Opened {
        #[serde(with = "aside_core::json_value")]
        block: BlockId,
        opening: DetailedOpening,
    },
    /// Replaces [`Update::Item`].
    Item {
        #[serde(with = "aside_core::json_value")]
        block: BlockId,
        /// The provider's number of the item, from 0.
        index: u32,
    },
    /// Replaces [`Update::Sealed`], and the update of a closed block that gets its seal late.
    Sealed {
        #[serde(with = "aside_core::json_value")]
        block: BlockId,
        #[serde(with = "aside_core::json_value")]
        seal: Seal,
        /// The block with its seal, if it was already closed.
        #[serde(with = "aside_core::json_value")]
        value: Option<Box<Block>>,
    },
    /// Replaces [`Update::Closed`], [`Update::ClosedAsStreamed`] and [`Update::Emptied`].
    Closed {
        #[serde(with = "aside_core::json_value")]
        block: BlockId,
        /// None if the block turned out to be empty.
        #[serde(with = "aside_core::json_value")]
        value: Option<Box<Block>>,
    },
    /// A member that has no neutral form was kept.
    Extra {
        /// None if it belongs to the reply as a whole.
        #[serde(with = "aside_core::json_value")]
        block: Option<BlockId>,
        /// Its name on the wire.
        name: String,
    },
    /// Replaces the [`Update::CommandOutput`] about a part of the request that is not sent.
    LeftOut(String),
    /// Replaces [`Update::QuestionWithdrawn`].
    Answered {
        /// The id of the question's tool call.
        call: String,
        permit: PermissionAnswer,
    },
}

/// The kind of a new block, and what the provider said about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DetailedOpening {
    Text,
    Thinking {
        /// The wire field or tag it arrives in.
        source_field: String,
        id: Option<String>,
    },
    ToolCall {
        id: Option<String>,
        name: String,
    },
    Unmodelled,
}

impl Update {
    /// Like [`Update::of`], with all details: an update for every event that has a JSON form.
    pub fn detailed(event: Event<'_>, fold: &Fold) -> Option<Update> {
        let value = |block| fold.block(block).map(Box::new);
        let detail = match event {
            Event::Opened { block, opening } => UpdateDetail::Opened { block, opening: opening.into() },
            Event::Item { block, index } => UpdateDetail::Item { block, index },
            Event::Sealed { block, kind, payload } => {
                let seal = Seal { kind, payload: payload.to_owned() };
                let value = if fold.is_closed(block) { value(block) } else { None };
                UpdateDetail::Sealed { block, seal, value }
            }
            Event::Closed { block } => UpdateDetail::Closed { block, value: value(block) },
            Event::Extra { block, value } => UpdateDetail::Extra { block, name: value.name.to_owned() },
            Event::Grew { block, text } => return Some(Update::Grew { block, text: text.into() }),
            Event::Refiled { block, to } => return Some(Update::Refiled { block, to }),
            Event::Usage(usage) => return Some(Update::Usage(usage)),
            Event::Noted(note) => return Some(Update::Noted(note.clone())),
            Event::Ended(end) => return Some(Update::ReplyEnded(end.clone())),
            Event::Started { .. }
            | Event::Identified { .. }
            | Event::Restated { .. }
            | Event::NativeItem { .. }
            | Event::EmptyThinkingField { .. } => return None,
        };
        Some(Update::Detail(Box::new(detail)))
    }
}

impl From<BlockOpening<'_>> for DetailedOpening {
    fn from(opening: BlockOpening<'_>) -> DetailedOpening {
        match opening {
            BlockOpening::Text => DetailedOpening::Text,
            BlockOpening::Thinking { source, id } => {
                DetailedOpening::Thinking { source_field: source.to_owned(), id: id.map(str::to_owned) }
            }
            BlockOpening::ToolCall { id, name } => {
                DetailedOpening::ToolCall { id: id.map(str::to_owned), name: name.to_owned() }
            }
            BlockOpening::Unmodelled => DetailedOpening::Unmodelled,
        }
    }
}

impl DetailedOpening {
    /// The opening as decoders emit it.
    pub fn as_event(&self) -> BlockOpening<'_> {
        match self {
            DetailedOpening::Text => BlockOpening::Text,
            DetailedOpening::Thinking { source_field, id } => {
                BlockOpening::Thinking { source: source_field, id: id.as_deref() }
            }
            DetailedOpening::ToolCall { id, name } => BlockOpening::ToolCall { id: id.as_deref(), name },
            DetailedOpening::Unmodelled => BlockOpening::Unmodelled,
        }
    }
}
