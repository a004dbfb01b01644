//! From the session to the front end.

use std::sync::Arc;
use std::time::Duration;

use aside_core::block::{Block, ThinkingSpan, ToolCall, ToolResult};
use aside_core::compaction::CompactionTrigger;
use aside_core::event::{self, BlockId, Event, Note, NoteCode, ProseKind, ReplyEnd, Usage};
use aside_core::fold::Fold;
use aside_core::message::Message;
use aside_core::turn::{TurnEnd, TurnNotice};
use serde::{Deserialize, Serialize};

use crate::delta_text::DeltaText;
use crate::output::CommandOutput;
use crate::question::{PendingQuestion, QuestionId};
use crate::status::{CompletionLists, Status};
use crate::update_detail::UpdateDetail;

/// From the session to the front end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Update {
    Sending(Box<Sending>),
    Opened {
        #[serde(with = "aside_core::json_value")]
        block: BlockId,
        opening: OpenedBlock,
    },
    /// A summary item begins. The deltas that follow belong to it.
    Item {
        #[serde(with = "aside_core::json_value")]
        block: BlockId,
    },
    Grew {
        #[serde(with = "aside_core::json_value")]
        block: BlockId,
        text: DeltaText,
    },
    Sealed {
        #[serde(with = "aside_core::json_value")]
        block: BlockId,
    },
    Refiled {
        #[serde(with = "aside_core::json_value")]
        block: BlockId,
        #[serde(with = "aside_core::json_value")]
        to: ProseKind,
    },
    /// The block is complete, and its text is the same as its deltas, where each item but the first begins
    /// after a blank line. [`Update::Recorded`] has all of it.
    ClosedAsStreamed {
        #[serde(with = "aside_core::json_value")]
        block: BlockId,
        /// When thinking began and ended, if it was measured.
        #[serde(with = "aside_core::json_value")]
        span: Option<ThinkingSpan>,
        /// The length of its signature and encrypted payload.
        sealed_bytes: usize,
    },
    /// The final block, if it contains more than its deltas. It takes precedence over them.
    Closed {
        #[serde(with = "aside_core::json_value")]
        block: BlockId,
        #[serde(with = "aside_core::json_value")]
        value: Box<Block>,
    },
    /// The block turned out to be empty.
    Emptied {
        #[serde(with = "aside_core::json_value")]
        block: BlockId,
    },
    #[serde(with = "aside_core::json_value")]
    Usage(Usage),
    #[serde(with = "aside_core::json_value")]
    Noted(Note),
    #[serde(with = "aside_core::json_value")]
    ReplyEnded(ReplyEnd),
    Retrying {
        #[serde(rename = "afterMs", with = "milliseconds")]
        after: Duration,
        attempt: u32,
        why: String,
    },
    TurnNotice(TurnNotice),
    #[serde(with = "aside_core::json_value")]
    ToolStarted(Box<ToolCall>),
    /// The newest output of a running command. `tail` replaces the one before.
    ToolOutput {
        /// The id of the call.
        call: String,
        /// The last lines; the first of them may be cut.
        tail: String,
        /// How many lines it has written so far.
        n_lines: u64,
    },
    #[serde(with = "aside_core::json_value")]
    ToolEnded(Box<ToolResult>),
    /// A message was added to the history. Anything already shown live stays.
    #[serde(with = "aside_core::json_value")]
    Recorded(Arc<Message>),
    TurnEnded(TurnEnd),
    /// Only for a front end that asked for details.
    Detail(Box<UpdateDetail>),
    /// The store has the session under this id from now on.
    SessionStored(String),
    /// The store has a message under this id: the reply that begins, or the message of the next [`Update::Recorded`].
    MessageStored(i64),
    QuestionAsked(Box<PendingQuestion>),
    /// The session no longer waits for the answer to this question.
    QuestionWithdrawn(QuestionId),
    /// The output of a command.
    CommandOutput(CommandOutput),
    /// Older messages were replaced with a summary. They stay in the store, and on the screen.
    Compacted {
        /// How many messages were replaced.
        summarised: usize,
        /// How many messages follow the summary.
        kept: usize,
        summary: String,
        #[serde(default)]
        trigger: CompactionTrigger,
    },
    /// A history from the store replaces what is shown.
    #[serde(with = "aside_core::json_value")]
    Restored(Vec<Arc<Message>>),
    /// The last turn was undone. This was its prompt.
    Undone(String),
    /// A prompt was not sent, and why. The text goes back into the input.
    NotSent {
        text: String,
        what: String,
        hint: Option<String>,
    },
    /// A message for the running turn was not sent: the turn ended first, or the message names a file that
    /// cannot be attached. The text goes back into the input.
    NotSteered {
        text: String,
        error: Option<SteeringError>,
    },
    /// A message for the running turn was taken back and will not be sent.
    TakenBack(String),
    /// A message for the running turn cannot be taken back: the turn has it already.
    NotTakenBack(String),
    /// Scroll to this message of the history that was just restored.
    GoTo {
        message: usize,
        part: MessagePart,
    },
    Status(Box<Status>),
    CompletionLists(Box<CompletionLists>),
    /// The models that providers and local servers list, as PROVIDER/MODEL.
    Models(Vec<String>),
    /// Prompts of earlier sessions, the newest last.
    PromptHistory(Vec<String>),
    /// A command is finished, including the turn it started.
    Ready,
    /// From a signal: stop the turn.
    Interrupt,
    /// From a signal: stop the turn and quit.
    Quit,
    /// From a signal: suspend the program until the shell resumes it.
    Suspend,
}

impl Update {
    /// Translates a decoder event for the front end; `None` if there is nothing to show. The fold
    /// has already processed the event.
    pub fn of(event: Event<'_>, fold: &Fold) -> Option<Update> {
        let closed = |block: BlockId| {
            if let Some(end) = fold.streamed_end(block) {
                return Update::ClosedAsStreamed { block, span: end.span, sealed_bytes: end.sealed_bytes };
            }
            match fold.block(block) {
                Some(value) => Update::Closed { block, value: Box::new(value) },
                None => Update::Emptied { block },
            }
        };
        match event {
            Event::Opened { block, opening } => Some(Update::Opened { block, opening: opening.into() }),
            Event::Item { block, .. } => Some(Update::Item { block }),
            Event::Grew { block, text } => Some(Update::Grew { block, text: text.into() }),
            Event::Refiled { block, to } => Some(Update::Refiled { block, to }),
            // An event after the block's end changes the finished block.
            Event::Sealed { block, .. } | Event::Restated { block, .. } if fold.is_closed(block) => Some(closed(block)),
            Event::Sealed { block, .. } => Some(Update::Sealed { block }),
            Event::Closed { block } => Some(closed(block)),
            Event::Usage(usage) => Some(Update::Usage(usage)),
            // The end of the turn reports it, with a hint.
            Event::Noted(note) if note.code == NoteCode::CutOff => None,
            // Nothing was lost or changed. `decode` and the JSON events show it.
            Event::Noted(note) if note.code == NoteCode::Kept => None,
            Event::Noted(note) => Some(Update::Noted(note.clone())),
            Event::Ended(end) => Some(Update::ReplyEnded(end.clone())),
            Event::Started { .. }
            | Event::Identified { .. }
            | Event::Restated { .. }
            | Event::NativeItem { .. }
            | Event::Extra { .. }
            | Event::EmptyThinkingField { .. } => None,
        }
    }
}

impl From<event::BlockOpening<'_>> for OpenedBlock {
    fn from(opening: event::BlockOpening<'_>) -> OpenedBlock {
        match opening {
            event::BlockOpening::Text => OpenedBlock::Text,
            event::BlockOpening::Thinking { .. } => OpenedBlock::Thinking,
            event::BlockOpening::ToolCall { name, .. } => OpenedBlock::ToolCall { name: name.to_owned() },
            event::BlockOpening::Unmodelled => OpenedBlock::Unmodelled,
        }
    }
}

/// Why a message for the running turn cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteeringError {
    pub what: String,
    pub hint: Option<String>,
}

/// A request that is being sent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sending {
    pub step: u32,
    pub model: String,
    /// The effort in the request, which may differ from the setting.
    pub effort: Option<String>,
    pub tokens: u64,
    pub limit: Option<u64>,
    /// The user asked for thinking explicitly; it is not just the default.
    pub wants_thinking: bool,
    pub notes: Vec<String>,
    /// How many messages the conversation has.
    #[serde(default)]
    pub messages: usize,
    /// What this request does with each stored thinking block.
    pub decisions: Vec<DecisionRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DecisionRow {
    /// The index of the message in the conversation.
    #[serde(default)]
    pub message: usize,
    /// The index of the block in its message; none for a filler.
    #[serde(default)]
    pub block: Option<usize>,
    /// A description of the block.
    pub what: String,
    pub action: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum OpenedBlock {
    Text,
    Thinking,
    ToolCall { name: String },
    Unmodelled,
}

/// The part of a message to scroll to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "camelCase")]
pub enum MessagePart {
    Start,
    /// The thinking block with this index, counted from 0. It is opened.
    Thinking(usize),
}

/// A duration as a number of milliseconds.
mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}
