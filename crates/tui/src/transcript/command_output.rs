//! Shows the output of commands as transcript items, most of it as Markdown.

use aside_front::CommandOutput;

use super::Transcript;
use super::item::TranscriptItem;
use crate::text::{MarkdownView, TextRole};

impl Transcript {
    pub fn push_output(&mut self, output: &CommandOutput) {
        let item = match output {
            CommandOutput::Line(text) => {
                // If it is a note of the next request, the request does not say it again.
                self.request_notes.push(text.clone());
                TranscriptItem::notice(TextRole::Muted, text)
            }
            CommandOutput::Error { what, hint } => {
                let hint = hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
                TranscriptItem::notice(TextRole::Error, &format!("{what}{hint}"))
            }
            CommandOutput::Markdown(_) | CommandOutput::Table { .. } => {
                TranscriptItem::Output(MarkdownView::new(&output_markdown(output).unwrap_or_default()))
            }
            CommandOutput::Titled { command, page } => {
                let Some(text) = output_markdown(page).filter(|_| is_page(page)) else {
                    return self.push_output(page);
                };
                let title = format!("**{}**", escape_markdown(command.trim()));
                self.push(TranscriptItem::Output(MarkdownView::new(&format!("{title}\n\n{text}"))));
                return self.show_beginning();
            }
        };
        self.push(item);
    }
}

fn is_page(output: &CommandOutput) -> bool {
    matches!(output, CommandOutput::Markdown(_) | CommandOutput::Table { .. })
}

/// Output as Markdown; none for an error.
pub(crate) fn output_markdown(output: &CommandOutput) -> Option<String> {
    match output {
        CommandOutput::Line(text) => Some(text.lines().map(escape_markdown).collect::<Vec<_>>().join("\n\n")),
        CommandOutput::Markdown(text) => Some(text.clone()),
        CommandOutput::Table { head, rows } => Some(markdown_table(head, rows)),
        CommandOutput::Titled { page, .. } => output_markdown(page),
        CommandOutput::Error { .. } => None,
    }
}

/// Table cells are data, so Markdown in them is escaped.
pub(crate) fn escape_markdown(cell: &str) -> String {
    let mut out = String::with_capacity(cell.len());
    // Before escaping: a backslash would break up an escape sequence and make half of it visible.
    for letter in aside_core::terminal_text::terminal_safe(cell).chars() {
        if letter.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(if letter == '\n' { ' ' } else { letter });
    }
    out
}

fn markdown_table(head: &[String], rows: &[Vec<String>]) -> String {
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escape_markdown(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut out = row(head);
    out.push_str(&format!("|{}\n", "---|".repeat(head.len())));
    rows.iter().for_each(|cells| out.push_str(&row(cells)));
    out
}
