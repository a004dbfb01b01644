//! The report on the last request: what was sent back, and why.

use aside_core::terminal_text::terminal_safe_line;

use crate::output::CommandOutput;
use crate::update::{DecisionRow, Sending};

/// The decision table of the last request, with its model, effort and size.
pub fn sent_report(sending: Option<&Sending>) -> Vec<CommandOutput> {
    let Some(sending) = sending else {
        let line = "nothing has been sent since this session was opened, or since its last /undo or /redo";
        return vec![CommandOutput::Line(line.to_owned())];
    };
    let Sending { step, model, effort, tokens, notes, decisions, .. } = sending;
    let effort = effort.as_ref().map(|effort| format!(" · effort {effort}")).unwrap_or_default();
    let head = format!("to {} · step {step}{effort} · ~{} tokens", terminal_safe_line(model), format_count(*tokens));
    let lines: Vec<&str> = std::iter::once(head.as_str()).chain(notes.iter().map(String::as_str)).collect();
    let table = match Some(decisions).filter(|rows| !rows.is_empty()) {
        None => CommandOutput::Line("no stored thought was part of it".to_owned()),
        Some(rows) => {
            let row = |row: &DecisionRow| vec![row.what.clone(), row.action.clone(), row.why.clone()];
            let head = ["what", "sent as", "why"].map(str::to_owned).to_vec();
            CommandOutput::Table { head, rows: rows.iter().map(row).collect() }
        }
    };
    vec![CommandOutput::Line(lines.join("\n")), table]
}

/// Formats a count: `950`, `12.3k`, `200k`, `1.2M`.
pub fn format_count(tokens: u64) -> String {
    let tenth = |unit: u64, letter: char| {
        let tenths = (tokens * 10 + unit / 2) / unit;
        match tenths % 10 {
            0 => format!("{}{letter}", tenths / 10),
            part => format!("{}.{part}{letter}", tenths / 10),
        }
    };
    match tokens {
        0..=999 => tokens.to_string(),
        1_000..=999_949 => tenth(1_000, 'k'),
        _ => tenth(1_000_000, 'M'),
    }
}
