//! The output of a command.

use serde::{Deserialize, Serialize};

/// The output of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "camelCase")]
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
