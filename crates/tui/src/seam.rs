//! What the engine tells the screen, and what the screen asks of the engine.
//!
//! Both are owned values: they cross a channel between two threads.

use std::time::Duration;

use aside_core::block::{Block, ToolCall, ToolResult};
use aside_core::event::{self, BlockId, End, Event, Note, NoteCode, Side, Usage};
use aside_core::fold::Fold;
use aside_core::message::Message;
use aside_core::question;
pub use aside_core::question::{Permit, Tier};
use aside_core::settings::Display;
use aside_core::turn::{Told, TurnEnd};

/// Engine to screen.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    Sending(Box<Sending>),
    Opened {
        block: BlockId,
        opening: Opening,
    },
    /// A summary item begins; what grows from here on belongs to it.
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
        to: Side,
    },
    /// The block as it is kept; it wins over its deltas.
    Closed {
        block: BlockId,
        value: Box<Block>,
    },
    /// The block held nothing after all.
    Emptied {
        block: BlockId,
    },
    Usage(Usage),
    Noted(Note),
    ReplyEnded(End),
    Retrying {
        after: Duration,
        attempt: u32,
        why: String,
    },
    Told(Told),
    ToolStarted(Box<ToolCall>),
    ToolEnded(Box<ToolResult>),
    /// Into the history, as it is. What was shown of it live stays.
    Recorded(Box<Message>),
    TurnEnded(TurnEnd),
    Asked(Box<Question>),
    /// The engine no longer waits for the answer to this question.
    Withdrawn(QuestionId),
    /// The answer to a command.
    Said(Said),
    /// A history from the store takes the place of what is shown.
    Restored(Vec<Message>),
    /// The last turn is no longer part of it; this was its question.
    TakenBack(String),
    /// What was said is not sent, and why. The words are the person's again.
    NotSent {
        text: String,
        what: String,
        hint: Option<String>,
    },
    /// Of the history just restored, this message is what the user looked for.
    GoTo {
        message: usize,
        part: Sought,
    },
    Status(Box<Status>),
    Lists(Box<Lists>),
    /// What was sent in earlier sessions, the newest last.
    Earlier(Vec<String>),
    /// A command is carried out with all it led to.
    Ready,
    /// From outside: stop what runs.
    Interrupt,
    /// From outside: stop what runs, and leave.
    Leave,
    /// From outside: back to the shell until it calls us again.
    Suspend,
}

impl Update {
    /// What an event of a decoder means to the screen. The fold has heard the
    /// event already; nothing where there is nothing to show.
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
            // What comes behind the end of a block makes another block of it.
            Event::Sealed { block, .. } | Event::Restated { block, .. } if fold.is_closed(block) => Some(whole(block)),
            Event::Sealed { block, .. } => Some(Update::Sealed { block }),
            Event::Closed { block } => Some(whole(block)),
            Event::Usage(usage) => Some(Update::Usage(usage)),
            // The end of the turn says it, and what to do about it.
            Event::Noted(note) if note.code == NoteCode::CutOff => None,
            Event::Noted(note) => Some(Update::Noted(note.clone())),
            Event::Ended(end) => Some(Update::ReplyEnded(end.clone())),
            Event::Started { .. }
            | Event::Identified { .. }
            | Event::Restated { .. }
            | Event::Kept { .. }
            | Event::Seen { .. } => None,
        }
    }
}

impl From<event::Opening<'_>> for Opening {
    fn from(opening: event::Opening<'_>) -> Opening {
        match opening {
            event::Opening::Text => Opening::Text,
            event::Opening::Thinking { .. } => Opening::Thinking,
            event::Opening::ToolCall { name, .. } => Opening::ToolCall { name: name.to_owned() },
            event::Opening::Unmodelled => Opening::Unmodelled,
        }
    }
}

/// A request goes out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sending {
    pub step: u32,
    pub model: String,
    /// As it is sent, not as it was wished.
    pub effort: Option<String>,
    pub tokens: u64,
    pub limit: Option<u64>,
    /// The user asked for thinking, not only the default.
    pub wants_thinking: bool,
    pub notes: Vec<String>,
    /// What becomes of each stored thought in this request.
    pub decisions: Vec<DecisionRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DecisionRow {
    /// Which block it is about, in words.
    pub what: String,
    pub action: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    Text,
    Thinking,
    ToolCall { name: String },
    Unmodelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuestionId(pub u64);

/// Something that needs the person's permission before it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub id: QuestionId,
    pub about: question::Question,
}

/// What of a message is to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sought {
    Said,
    /// Its thought of this number, counted from 0, which is opened for it.
    Thought(usize),
}

/// What a command answers with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Line(String),
    /// Something is wrong, and what to do about it.
    Wrong {
        what: String,
        hint: Option<String>,
    },
    Table {
        head: Vec<String>,
        rows: Vec<Vec<String>>,
    },
    Markdown(String),
    /// A page under the command it answers: it may come long after.
    Titled {
        command: String,
        page: Box<Said>,
    },
}

/// What the engine knows and the status line shows. Sent whole whenever one
/// of it changes: a profile loaded changes the view at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    pub model: String,
    pub profile: Option<String>,
    pub title: Option<String>,
    pub limit: Option<u64>,
    /// The effort that is wished for; what is sent may be another.
    pub effort: Option<String>,
    /// What the settings make of `reasoning.display` and `reasoning.includeInResponse`.
    pub view: Display,
    /// How well commands are confined; nothing where the person switched that off.
    pub tier: Option<Tier>,
}

/// What can be completed, besides what the program knows by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lists {
    pub models: Vec<String>,
    pub profiles: Vec<String>,
    pub files: Vec<String>,
    pub sessions: Vec<Named>,
    /// Tools and the servers they come from.
    pub tools: Vec<String>,
    /// Permissions that can be taken back.
    pub rules: Vec<String>,
}

/// Something that is known by a name that says little.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Named {
    pub name: String,
    pub about: String,
}

/// Screen to engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Say(String),
    Interrupt,
    /// Stop thinking, and answer with what there is.
    AnswerNow,
    Answer {
        id: QuestionId,
        permit: Permit,
    },
    Set {
        key: String,
        value: String,
    },
    Unset(String),
    /// What a setting is, and who said so; all of them without a key.
    Query(Option<String>),
    /// How thinking looks, from now on: sets `reasoning.display` and turns
    /// `reasoning.includeInResponse` on. The screen shows it already.
    View(Display),
    Profile(ProfileAct),
    /// Without a name: which models there are.
    Model(Option<String>),
    Effort(Option<String>),
    /// Sum up the older turns.
    Compact,
    Fork,
    Undo,
    Retry,
    Export(Option<String>),
    /// A command that only the engine knows, with what stood behind it.
    Other {
        name: String,
        rest: String,
    },
    /// For whoever owns the terminal; the engine does not see it.
    Terminal(TerminalAct),
    Quit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalAct {
    /// To the clipboard.
    Copy(String),
    /// Back to the shell until it calls us again.
    Suspend,
    Mouse(Mouse),
    /// This text, in the user's own editor.
    Edit(String),
}

/// Who gets clicks and the wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mouse {
    Ours,
    /// Dragging selects text, as it does outside.
    Terminals,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileAct {
    List,
    Load(String),
    Save(String),
    Delete(String),
}
