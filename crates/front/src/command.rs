//! From the front end to the session.

use std::path::PathBuf;

use aside_core::permission_question::PermissionAnswer;
use aside_core::settings::{ScreenTheme, ThinkingDisplay};
use aside_core::tool_mode::ToolMode;
use serde::{Deserialize, Serialize};

use crate::question::QuestionId;

/// From the front end to the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Command {
    /// Starts a turn. During a turn, it waits for the turn to end.
    Prompt(String),
    /// A prompt whose attachments the front end names. Its text is literal: an `@` in it attaches nothing.
    PromptWith {
        text: String,
        attachments: Vec<Attachment>,
    },
    /// A message for the running turn, sent to the model after the current step. Without a turn, the same as a prompt.
    Steer(String),
    /// Takes the last message for the running turn back, if it is this one and still waits. The answer is
    /// [`crate::Update::TakenBack`] or [`crate::Update::NotTakenBack`].
    TakeBack(String),
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
    /// What tools may do without a question. Takes effect at once, also during a turn.
    Mode(ToolMode),
    Profile(ProfileAction),
    /// Without a name: list the models.
    Model(Option<String>),
    Effort(Option<String>),
    /// Summarise the older turns.
    Compact,
    Fork,
    /// Undo the last turn; if it changed files, ask whether to restore them too.
    Undo,
    /// Undo a part without a question. With `force`, files that changed since then are restored too.
    UndoOnly {
        part: UndoPart,
        force: bool,
    },
    /// Redo what was undone last.
    Redo,
    /// Show what this session's tools changed, in one file or in all.
    Diff(Option<String>),
    Retry,
    Export(Option<String>),
    /// Sends the text of one of the user's own commands.
    Own {
        /// Without the slash.
        name: String,
        arguments: String,
    },
    /// Runs a command line of the user outside the sandbox.
    Shell {
        command: String,
        output: ShellOutput,
    },
    /// Choose the colours of the screen, for later sessions too. The screen already uses them. Without a
    /// theme: show the current one.
    Theme(Option<ScreenTheme>),
    /// Choose who handles the mouse, for later sessions too.
    Mouse(MouseMode),
    /// Look whether another git branch than this one, which is shown, is checked out by now. If so, the answer is a
    /// status, also during a turn.
    RefreshBranch(Option<String>),
    /// Ask the providers and local servers for their lists of models. They come as [`crate::Update::Models`].
    ListModels,
    /// A command that only the session knows, with its arguments.
    Other {
        name: String,
        rest: String,
    },
    /// Carried out by the owner of the terminal; never reaches the session.
    Terminal(TerminalAction),
    Quit,
}

/// What a front end attaches to a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Attachment {
    /// A file, read when the prompt is sent.
    File { path: PathBuf },
    /// A text with a name, such as a file that is not saved yet.
    Text { name: String, text: String },
    /// An image in Base64.
    Image { media_type: String, data: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "camelCase")]
pub enum TerminalAction {
    /// Copy to the clipboard.
    Copy(String),
    /// Suspend the program until the shell resumes it.
    Suspend,
    Mouse(MouseMode),
    /// Open this text in the user's editor.
    Edit(String),
}

/// The ids of the user's own command lines begin with this; those of a model's calls do not.
pub const USER_CALL_PREFIX: &str = "user!";

/// The same for a command line whose output is the next message, so that a front end need not show it twice.
pub const SENT_CALL_PREFIX: &str = "user!!";

/// Who gets the output of the user's command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShellOutput {
    /// It is only shown.
    User,
    /// It is sent to the model as a message.
    Model,
}

/// What to undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UndoPart {
    /// The files of the last turn that changed any.
    Files,
    /// The last turn of the conversation.
    Talk,
}

/// Whether the program or the terminal handles clicks and the wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MouseMode {
    #[default]
    Captured,
    /// Dragging selects text, as usual in a terminal.
    Released,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "camelCase")]
pub enum ProfileAction {
    List,
    Load(String),
    Save(String),
    Delete(String),
}
