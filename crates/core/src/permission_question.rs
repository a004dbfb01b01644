//! Permission questions: the question, its answers, and the rendering that
//! every front end shares.
//!
//! The user must see exactly what they approve. So nothing in a question is
//! ever removed: invisible characters and terminal controls are shown as
//! visible tokens, and the lines that contain them are marked.

mod answer_choices;
mod rendering;
mod visible_text;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use answer_choices::{AnswerChoice, AnswerChoices, Selected};
pub use rendering::{BodyRow, QuestionLayout, RenderedQuestion, render, visible_body};
use visible_text::{BodyKind, visible_lines};
pub use visible_text::{escape_unsafe, is_invisible, visible};

/// An action that needs the user's permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionQuestion {
    /// The id of the tool call.
    pub id: String,
    /// The name of the tool.
    pub tool: String,
    /// What the action is about, such as a path or a command.
    pub subject: String,
    /// What could go wrong.
    pub risk: Risk,
    /// The command, the full diff or the arguments, to be reviewed before
    /// answering.
    pub preview: Option<String>,
    /// What a yes for the session or the project would cover, as a key of
    /// `[permissions]`. None if every call must ask again.
    pub covers: Option<String>,
    /// How the started process is confined. None if the action starts no
    /// process.
    pub confinement: Option<Confinement>,
    /// The protected path that the action would change.
    pub protected: Option<String>,
    /// The whole change of a file, for front ends that show diffs themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ProposedChange>,
    /// What the answers mean.
    #[serde(default, skip_serializing_if = "QuestionKind::is_permission")]
    pub kind: QuestionKind,
}

/// What a question is about. It decides the answers and their words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum QuestionKind {
    /// Whether an action is allowed.
    #[default]
    Permission,
    /// Whether `/undo` puts files back, too. A no undoes only the conversation.
    Undo,
    /// Whether the instructions of a folder are sent to the model. A yes is remembered.
    Trust,
}

/// A file before and after an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProposedChange {
    /// The absolute path.
    pub path: String,
    /// The text before. None if there is no such file, or it is not text.
    pub before: Option<String>,
    /// The text afterwards.
    pub after: String,
}

/// The kind of access that an action needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Risk {
    /// Reads inside the working directory.
    Reads,
    /// Changes files inside the working directory.
    Writes,
    /// Starts a process.
    Runs,
    /// Accesses something outside the working directory, which always asks.
    Outside,
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "camelCase")]
pub enum PermissionAnswer {
    /// Yes, for this action only.
    Once,
    /// For all similar actions in this session.
    Session,
    /// For all similar actions in this project, from now on.
    Project,
    /// No, with an optional message to the model.
    No(Option<String>),
    /// No user can be asked, which counts as a no.
    Nobody,
}

impl PermissionAnswer {
    /// As `ask --json` prints it.
    pub fn as_str(&self) -> &'static str {
        match self {
            PermissionAnswer::Once => "once",
            PermissionAnswer::Session => "session",
            PermissionAnswer::Project => "project",
            PermissionAnswer::No(_) => "no",
            PermissionAnswer::Nobody => "nobody",
        }
    }
}

/// How well a process is confined. Later tiers are stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Tier {
    /// Not confined.
    None,
    /// The sandbox of macOS.
    Seatbelt,
    /// Landlock and seccomp.
    Kernel,
    /// bubblewrap, with a separate view of the file system.
    Strong,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::None => "none",
            Tier::Seatbelt => "seatbelt",
            Tier::Kernel => "kernel",
            Tier::Strong => "strong",
        })
    }
}

/// Whether a process may use the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    /// Connections are blocked.
    Off,
    /// Connections are allowed.
    On,
}

/// How one process is confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Confinement {
    /// The mechanism that confines it.
    pub tier: Tier,
    /// Whether it may use the network.
    pub network: Network,
    /// What this tier cannot prevent on this machine, such as `can signal your
    /// processes`.
    pub warnings: Vec<String>,
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let network = match self.network {
            Network::Off => "network off",
            Network::On => "network on",
        };
        write!(f, "{} ({network})", self.tier)?;
        self.warnings.iter().try_for_each(|warning| write!(f, ", {warning}"))
    }
}

impl PermissionQuestion {
    /// Without a preview and without lasting answers.
    pub fn new(tool: impl Into<String>, subject: impl Into<String>, risk: Risk) -> PermissionQuestion {
        let (tool, subject) = (tool.into(), subject.into());
        PermissionQuestion {
            id: String::new(),
            tool,
            subject,
            risk,
            preview: None,
            covers: None,
            confinement: None,
            protected: None,
            change: None,
            kind: QuestionKind::Permission,
        }
    }

    /// The path outside the working directory, if there is one.
    pub fn outside(&self) -> Option<&str> {
        match self.risk {
            Risk::Outside => Some(&self.subject),
            Risk::Reads | Risk::Writes | Risk::Runs => None,
        }
    }

    /// The text shown line by line. A command is its own preview.
    fn body(&self) -> &str {
        self.preview.as_deref().unwrap_or(&self.subject)
    }

    fn content(&self) -> BodyKind {
        match self.risk {
            Risk::Runs => BodyKind::Command,
            Risk::Reads | Risk::Writes | Risk::Outside => BodyKind::File,
        }
    }

    /// Whether it contains characters that had to be made visible. Such a
    /// question is always asked again: it offers no lasting answer.
    pub fn is_marked(&self) -> bool {
        let has_marks = |text: &str, content| visible_lines(text, content).any(|line| line.is_marked);
        has_marks(&self.tool, BodyKind::Command)
            || has_marks(&self.subject, BodyKind::Command)
            || has_marks(self.body(), self.content())
    }

    /// The rule that a lasting answer would remember, if one may be offered.
    pub fn rememberable_scope(&self) -> Option<String> {
        let covers = self.covers.clone()?;
        (!self.is_marked() && !covers.contains(is_invisible)).then_some(covers)
    }
}

impl QuestionKind {
    fn is_permission(&self) -> bool {
        *self == QuestionKind::Permission
    }

    /// What the key does that stops.
    pub fn stop_label(self) -> &'static str {
        match self {
            QuestionKind::Permission | QuestionKind::Trust => "stops",
            QuestionKind::Undo => "undoes nothing",
        }
    }
}

/// How long keys are ignored after a question appears, because the user cannot
/// have read it yet.
pub const IGNORE_KEYS_MS: u64 = 500;

#[cfg(test)]
#[path = "permission_question_tests.rs"]
mod tests;
