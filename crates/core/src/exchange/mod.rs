//! Conversations that leave and come back: as JSON lines, as Markdown, and
//! from the files of other programs. Text in, text out; nobody here opens a
//! file.

mod lines;
mod markdown;

use std::fmt;

pub use lines::{Opaque, without_opaque, write_lines};
pub use markdown::{ThinkingAs, left_out_of_markdown, read_markdown, write_markdown};

use crate::conversation::{Conversation, ConversationError};

/// What can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Lines,
    Markdown,
    ClaudeCode,
    Codex,
    OpenCode,
}

impl Kind {
    pub const ALL: [Kind; 5] = [Kind::Lines, Kind::Markdown, Kind::ClaudeCode, Kind::Codex, Kind::OpenCode];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Lines => "a conversation as JSON lines",
            Kind::Markdown => "a conversation as Markdown",
            Kind::ClaudeCode => "a session of Claude Code",
            Kind::Codex => "a session of Codex",
            Kind::OpenCode => "a session of OpenCode",
        })
    }
}

/// A conversation from elsewhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Imported {
    pub conversation: Conversation,
    /// What did not come along, and what was guessed.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    #[error("this is nothing that can be imported: {found}")]
    Unknown { found: String },
    #[error("nothing was said in this file; it looks like {0}")]
    Empty(Kind),
    #[error(transparent)]
    Lines(#[from] ConversationError),
}

impl ImportError {
    fn unknown(text: &str) -> ImportError {
        let start: String = text.trim_start().chars().take(60).filter(|c| !c.is_control()).collect();
        let found = if start.is_empty() { "it is empty".to_owned() } else { format!("it begins with `{start}`") };
        ImportError::Unknown { found }
    }
}
