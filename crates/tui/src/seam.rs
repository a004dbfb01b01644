//! The interface between a front end and the engine: updates in, commands out.
//!
//! Both are owned values, because they cross a channel between two threads.

use std::time::Duration;

use aside_core::block::{Block, ToolCall, ToolResult};
use aside_core::event::{self, BlockId, Event, Note, NoteCode, ProseKind, ReplyEnd, Usage};
use aside_core::fold::Fold;
use aside_core::message::Message;
use aside_core::permission_question;
pub use aside_core::permission_question::{PermissionAnswer, Tier};
use aside_core::settings::ThinkingDisplay;
use aside_core::turn::{TurnEnd, TurnNotice};

/// From the engine to the front end.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    Sending(Box<Sending>),
    Opened {
        block: BlockId,
        opening: OpenedBlock,
    },
    /// A summary item begins. The deltas that follow belong to it.
    Item {
        block: BlockId,
    },
    Grew {
        block: BlockId,
        text: String,
    },
    Sealed {
        block: BlockId,
    },
    Refiled {
        block: BlockId,
        to: ProseKind,
    },
    /// The final block. It takes precedence over its deltas.
    Closed {
        block: BlockId,
        value: Box<Block>,
    },
    /// The block turned out to be empty.
    Emptied {
        block: BlockId,
    },
    Usage(Usage),
    Noted(Note),
    ReplyEnded(ReplyEnd),
    Retrying {
        after: Duration,
        attempt: u32,
        why: String,
    },
    TurnNotice(TurnNotice),
    ToolStarted(Box<ToolCall>),
    ToolEnded(Box<ToolResult>),
    /// A message was added to the history. Anything already shown live stays.
    Recorded(Box<Message>),
    TurnEnded(TurnEnd),
    QuestionAsked(Box<PendingQuestion>),
    /// The engine no longer waits for the answer to this question.
    QuestionWithdrawn(QuestionId),
    /// The output of a command.
    CommandOutput(CommandOutput),
    /// A history from the store replaces what is shown.
    Restored(Vec<Message>),
    /// The last turn was undone. This was its prompt.
    Undone(String),
    /// A prompt was not sent, and why. The text goes back into the input.
    NotSent {
        text: String,
        what: String,
        hint: Option<String>,
    },
    /// Scroll to this message of the history that was just restored.
    GoTo {
        message: usize,
        part: MessagePart,
    },
    Status(Box<Status>),
    CompletionLists(Box<CompletionLists>),
    /// Prompts of earlier sessions, the newest last.
    PromptHistory(Vec<String>),
    /// A command is finished, including the turn it started.
    Ready,
    /// From a signal: stop the turn.
    Interrupt,
    /// From a signal: stop the turn and quit.
    Quit,
    /// From a signal: suspend until the shell resumes us.
    Suspend,
}

impl Update {
    /// Translates a decoder event for the front end; `None` if there is nothing to show. The fold
    /// has already processed the event.
    pub fn of(event: Event<'_>, fold: &Fold) -> Option<Update> {
        let whole = |block: BlockId| match fold.block(block) {
            Some(value) => Update::Closed { block, value: Box::new(value) },
            None => Update::Emptied { block },
        };
        match event {
            Event::Opened { block, opening } => Some(Update::Opened { block, opening: opening.into() }),
            Event::Item { block, .. } => Some(Update::Item { block }),
            Event::Grew { block, text } => Some(Update::Grew { block, text: text.to_owned() }),
            Event::Refiled { block, to } => Some(Update::Refiled { block, to }),
            // An event after the block's end changes the finished block.
            Event::Sealed { block, .. } | Event::Restated { block, .. } if fold.is_closed(block) => Some(whole(block)),
            Event::Sealed { block, .. } => Some(Update::Sealed { block }),
            Event::Closed { block } => Some(whole(block)),
            Event::Usage(usage) => Some(Update::Usage(usage)),
            // The end of the turn reports it, with a hint.
            Event::Noted(note) if note.code == NoteCode::CutOff => None,
            Event::Noted(note) => Some(Update::Noted(note.clone())),
            Event::Ended(end) => Some(Update::ReplyEnded(end.clone())),
            Event::Started { .. }
            | Event::Identified { .. }
            | Event::Restated { .. }
            | Event::NativeItem { .. }
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

/// A request that is being sent.
#[derive(Debug, Clone, PartialEq, Default)]
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
    /// What this request does with each stored thinking block.
    pub decisions: Vec<DecisionRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DecisionRow {
    /// A description of the block.
    pub what: String,
    pub action: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenedBlock {
    Text,
    Thinking,
    ToolCall { name: String },
    Unmodelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuestionId(pub u64);

/// A question that needs the user's permission before the engine continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingQuestion {
    pub id: QuestionId,
    pub about: permission_question::PermissionQuestion,
}

/// The part of a message to scroll to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessagePart {
    Start,
    /// The thinking block with this index, counted from 0. It is opened.
    Thinking(usize),
}

/// The output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandOutput {
    Line(String),
    /// An error, and what to do about it.
    Error {
        what: String,
        hint: Option<String>,
    },
    Table {
        head: Vec<String>,
        rows: Vec<Vec<String>>,
    },
    Markdown(String),
    /// A page headed by its command, because it may arrive long after the command was typed.
    Titled {
        command: String,
        page: Box<CommandOutput>,
    },
}

/// What the status line shows. Sent as a whole whenever part of it changes, so that a loaded
/// profile changes the view at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    pub model: String,
    pub profile: Option<String>,
    pub title: Option<String>,
    pub limit: Option<u64>,
    /// The effort setting; the request may use another one.
    pub effort: Option<String>,
    /// Computed from `reasoning.display` and `reasoning.includeInResponse`.
    pub view: ThinkingDisplay,
    /// How strongly commands are confined; `None` if the user switched confinement off.
    pub tier: Option<Tier>,
}

/// Completions that only the engine can list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompletionLists {
    pub models: Vec<String>,
    pub profiles: Vec<String>,
    pub files: Vec<String>,
    pub sessions: Vec<SessionCompletion>,
    /// Tools and their servers.
    pub tools: Vec<String>,
    /// Permissions that can be revoked.
    pub rules: Vec<String>,
}

/// A session id with a description, because ids say little.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionCompletion {
    pub name: String,
    pub about: String,
}

/// From the front end to the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Prompt(String),
    Interrupt,
    /// Stop thinking and answer now.
    AnswerNow,
    Answer {
        id: QuestionId,
        answer: PermissionAnswer,
    },
    Set {
        key: String,
        value: String,
    },
    Unset(String),
    /// Show a setting and the layer that set it; without a key, all settings.
    Query(Option<String>),
    /// Change how thinking is displayed: sets `reasoning.display` and turns
    /// `reasoning.includeInResponse` on. The screen already shows it this way.
    View(ThinkingDisplay),
    Profile(ProfileAction),
    /// Without a name: list the models.
    Model(Option<String>),
    Effort(Option<String>),
    /// Summarise the older turns.
    Compact,
    Fork,
    Undo,
    Retry,
    Export(Option<String>),
    /// A command that only the engine knows, with its arguments.
    Other {
        name: String,
        rest: String,
    },
    /// Carried out by the owner of the terminal; never reaches the engine.
    Terminal(TerminalAction),
    Quit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalAction {
    /// Copy to the clipboard.
    Copy(String),
    /// Suspend until the shell resumes us.
    Suspend,
    Mouse(MouseMode),
    /// Open this text in the user's editor.
    Edit(String),
}

/// Whether the program or the terminal handles clicks and the wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MouseMode {
    Captured,
    /// Dragging selects text, as usual in a terminal.
    Released,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileAction {
    List,
    Load(String),
    Save(String),
    Delete(String),
}
