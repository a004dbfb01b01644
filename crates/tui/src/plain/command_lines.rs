//! The output of commands: all lines of the user's own, and the first and last ones of the model's. A command that takes
//! long prints the same lines as a quick one, the first of them while it runs.

use aside_core::block::{Arguments, ToolCall, ToolResult};
use aside_core::counted::counted;
use aside_front::USER_CALL_PREFIX;
use aside_front::command_result::{command_failure, command_lines, result_size, shown_result, without_status};
use aside_front::overwritten_lines::without_overwritten;

use super::{PlainSession, wording};
use crate::text::wrap::ellipsize;
use crate::transcript::tool::runs_command;

/// How many lines are printed from the start of the output of a model's command.
const FIRST_LINES: usize = 3;
/// How many are printed from its end.
const LAST_LINES: usize = 5;
/// How much of a line is printed, in columns.
const LINE_WIDTH: usize = 400;

/// How many lines of a running command were printed, from the first one on.
#[derive(Debug, Default)]
pub(super) struct PrintedLines(usize);

impl PlainSession {
    pub(super) fn tool_started(&mut self, call: &ToolCall) {
        let arguments = match &call.arguments {
            Arguments::Json(text) | Arguments::Broken(text) => text,
        };
        if runs_command(arguments) {
            self.commands.insert(call.id.as_str().to_owned(), PrintedLines::default());
        }
        self.output.line(&wording::call(call));
    }

    /// Prints the complete lines that a running command has written since.
    pub(super) fn live_output(&mut self, call: &str, tail: &str, n_lines: u64) {
        let is_users = call.starts_with(USER_CALL_PREFIX);
        let n_lines = usize::try_from(n_lines).unwrap_or(usize::MAX);
        let shown = without_overwritten(tail);
        let mut lines: Vec<&str> = shown.lines().collect();
        let n_complete = if tail.ends_with('\n') {
            n_lines
        } else {
            lines.pop();
            n_lines.saturating_sub(1)
        };
        let PrintedLines(printed) = self.commands.entry(call.to_owned()).or_default();
        // The number of the first line that the tail has.
        let first = n_complete.saturating_sub(lines.len());
        let from = (*printed).max(first);
        let skipped = from - *printed;
        if !is_users && (skipped > 0 || *printed >= FIRST_LINES) {
            return;
        }
        let until = if is_users { n_complete } else { n_complete.min(FIRST_LINES) };
        *printed = until.max(*printed);
        if skipped > 0 {
            self.not_shown(skipped);
        }
        for line in lines.iter().take(until.saturating_sub(first)).skip(from - first) {
            self.output_line(line);
        }
    }

    pub(super) fn tool_ended(&mut self, result: &ToolResult) {
        let command = self.commands.remove(&result.id);
        if result.id.starts_with(USER_CALL_PREFIX) {
            let PrintedLines(printed) = command.unwrap_or_default();
            without_overwritten(&result.content).lines().skip(printed).for_each(|line| self.output_line(line));
            return;
        }
        let described = result.described();
        let described = shown_result(&described);
        let output = without_status(&described);
        // What aside says about the command.
        let failure = command_failure(described.get(output.len()..).unwrap_or_default());
        let Some(printed) = command.filter(|_| failure.is_some()) else {
            return self.output.line(&wording::result(result));
        };
        let n_lines = command_lines(&described);
        self.first_and_last_lines(output, n_lines, &printed);
        match failure.filter(|_| result.is_error) {
            Some(why) => self.output.line(&wording::failure(result, &why)),
            None => self.output.line(&format!("Tool done: {}", result_size(n_lines, (0, 0)))),
        }
    }

    /// Prints what a command wrote, except for the lines that were printed while it ran.
    fn first_and_last_lines(&mut self, output: &str, n_lines: usize, PrintedLines(printed): &PrintedLines) {
        let lines: Vec<&str> = output.lines().collect();
        let hidden = n_lines.max(lines.len()).saturating_sub(FIRST_LINES + LAST_LINES);
        // A line about a single line takes as much room as the line.
        if hidden <= 1 {
            return lines.iter().skip(*printed).for_each(|line| self.output_line(line));
        }
        lines.iter().take(FIRST_LINES).skip(*printed).for_each(|line| self.output_line(line));
        self.not_shown(hidden);
        let last = lines.len().saturating_sub(LAST_LINES).max(FIRST_LINES);
        lines.iter().skip(last).for_each(|line| self.output_line(line));
    }

    fn not_shown(&mut self, n_lines: usize) {
        self.output.line(&format!("  … {} not shown", counted(n_lines as u64, "line")));
    }

    fn output_line(&mut self, line: &str) {
        self.output.line(&wording::output_line(&ellipsize(line, LINE_WIDTH)));
    }
}
