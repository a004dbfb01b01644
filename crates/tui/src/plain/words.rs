//! Calls, questions and tables as sentences.

use aside_core::block::{Arguments, Block, ToolCall, ToolResult};
use aside_core::loop_guard::Finding;
use aside_core::message::Message;
use aside_core::question::{Layout, render, spelled_out};

use crate::seam::{Question, Said};
use crate::transcript::hunks::{changed, has_diff};
use crate::transcript::tool::subject;

pub(super) fn call(call: &ToolCall) -> String {
    let arguments = match &call.arguments {
        Arguments::Json(text) | Arguments::Broken(text) => text,
    };
    format!("Tool: {} {}", one_line(&call.name), one_line(&spelled_out(&subject(arguments)))).trim_end().to_owned()
}

/// A thought that goes in circles, and what can be done.
pub(super) fn stuck(found: &Finding) -> String {
    format!("Note: {found}. /answer asks for the answer now, Ctrl+C stops.")
}

/// What a model wrote must not look like a line of ours.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

pub(super) fn result(result: &ToolResult) -> String {
    let text = result.content.trim();
    match (result.is_error, text.lines().count()) {
        (true, _) => format!("Tool failed: {text}"),
        (false, 0) => "Tool done: nothing came back".to_owned(),
        (false, _) if has_diff(text) => {
            let (added, removed) = changed(text);
            format!("Tool done: {added} lines added, {removed} removed")
        }
        (false, 1) => format!("Tool done: {}", one_line(text)),
        (false, lines) => format!("Tool done: {lines} lines"),
    }
}

pub(super) fn question(question: &Question, layout: Layout) -> Vec<String> {
    // The word before it takes room too.
    const ASKED: &str = "Question: ";
    let width = layout.width.map(|width| width.saturating_sub(ASKED.len()));
    let rendered = render(&question.about, Layout { width, ..layout });
    let mut lines: Vec<String> = rendered.lines().collect();
    if let Some(head) = lines.first_mut() {
        head.insert_str(0, ASKED);
    }
    lines.extend(rendered.covers);
    lines.push(answers(question));
    lines
}

pub(super) fn answers(question: &Question) -> String {
    let longer = match question.about.offered_cover() {
        Some(_) => "s: yes for this session. p: for this project. ",
        None => "",
    };
    format!("Answer y: yes, once. {longer}n: no. n and a message: no, and the message goes to the model.")
}

/// A row of a table is a line; each cell says what it is.
pub(super) fn said(answer: &Said) -> Vec<String> {
    match answer {
        Said::Line(text) | Said::Markdown(text) => vec![text.clone()],
        Said::Wrong { what, hint } => {
            let hint = hint.iter().map(|hint| format!("Hint: {hint}"));
            std::iter::once(format!("Error: {what}")).chain(hint).collect()
        }
        // What was typed stands right above it.
        Said::Titled { page, .. } => said(page),
        Said::Table { head, rows } => rows.iter().map(|row| table_row(head, row)).collect(),
    }
}

fn table_row(head: &[String], row: &[String]) -> String {
    let cells = head.iter().zip(row).filter(|(_, cell)| !cell.trim().is_empty());
    let cells: Vec<String> = cells.map(|(name, cell)| format!("{name}: {}", one_line(cell))).collect();
    cells.join("; ")
}

/// The prose of a message, without thinking and tools.
pub(super) fn text_of(message: &Message) -> String {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
