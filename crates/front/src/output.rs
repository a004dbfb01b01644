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

impl CommandOutput {
    /// The output as plain text. A table row becomes one line; each cell is labelled.
    pub fn lines(&self) -> Vec<String> {
        match self {
            CommandOutput::Line(text) | CommandOutput::Markdown(text) => vec![text.clone()],
            CommandOutput::Error { what, hint } => {
                let hint = hint.iter().map(|hint| format!("Hint: {hint}"));
                std::iter::once(format!("Error: {what}")).chain(hint).collect()
            }
            // The typed command is directly above.
            CommandOutput::Titled { page, .. } => page.lines(),
            CommandOutput::Table { head, rows } => rows.iter().map(|row| table_row(head, row)).collect(),
        }
    }
}

fn table_row(head: &[String], row: &[String]) -> String {
    let cells = head.iter().zip(row).filter(|(_, cell)| !cell.trim().is_empty());
    let cells: Vec<String> = cells.map(|(name, cell)| format!("{name}: {}", cell.replace(['\n', '\r'], " "))).collect();
    cells.join("; ")
}
