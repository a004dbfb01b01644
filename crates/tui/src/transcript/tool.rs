//! A tool call with its result.

mod header;

use std::borrow::Cow;

use aside_core::block::{Arguments, Time, ToolCall, ToolResult};
use aside_core::counted::counted;
use aside_core::permission_question::escape_unsafe;
use aside_core::terminal_text::{terminal_safe, terminal_safe_line};
use serde_json::Value;

use super::diff;
use super::partial_arguments::{LineChange, PartialArguments};
use super::plain_text::{Extent, PlainText, PlainTextKind};
use super::{HintKeys, RenderContext};
use crate::text::highlight_jobs::{HighlightId, HighlightJob, HighlightResult};
use crate::text::{Break, HighlightedRows, Margin, Row, RowBackground, Span, TextRole, wrap};
use aside_front::command_result::{command_lines, shown_result, without_status};
use aside_front::diff_lines::{changed, lines_before_change};
use aside_front::overwritten_lines::without_overwritten;
use aside_front::tool_call::{CallState, PATH_ARGUMENTS, SUBJECT_ARGUMENTS, is_created_file, is_stopped_command};

/// Lines shown of a command that runs or has succeeded, and of a file that was created.
const COMMAND_LINES: usize = 5;

/// A command with more lines, or with more bytes, is not shown whole above a folded output.
const SHORT_SUBJECT: (usize, usize) = (3, 240);

/// How much is shown below the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolShape {
    Header,
    /// The first lines of a long output.
    Part,
    Open,
}

#[derive(Debug)]
pub struct ToolBlock {
    name: String,
    /// What the call is about, on one line.
    subject: String,
    /// The same with its line ends.
    subject_lines: String,
    is_about_a_path: bool,
    arguments: String,
    state: CallState,
    began: Option<Time>,
    duration_ms: Option<u64>,
    output: Option<PlainText>,
    /// The arguments, shown until there is output.
    arguments_text: Option<PlainText>,
    /// How many lines a command wrote, without what we add.
    n_output_lines: Option<usize>,
    /// The user's choice.
    choice: Option<ToolShape>,
    /// Lines added and removed by its change.
    changed: (usize, usize),
    /// What is known of the arguments while they stream.
    partial: Option<Box<PartialArguments>>,
    streamed_rows: Vec<Row>,
    /// The newest output while it runs, and how many lines there are so far.
    live: Option<(PlainText, u64)>,
    /// What the call does, as far as its size and display depend on it.
    purpose: ToolPurpose,
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolPurpose {
    /// Runs a command.
    Command,
    /// Writes a file with this many lines.
    Write {
        n_lines: usize,
    },
    Other,
}

impl ToolBlock {
    pub fn begin(name: &str) -> ToolBlock {
        ToolBlock {
            name: terminal_safe_line(name),
            subject: String::new(),
            subject_lines: String::new(),
            is_about_a_path: false,
            arguments: String::new(),
            state: CallState::Streaming,
            began: None,
            duration_ms: None,
            output: None,
            arguments_text: None,
            n_output_lines: None,
            choice: None,
            changed: (0, 0),
            partial: Some(Box::default()),
            streamed_rows: Vec::new(),
            live: None,
            purpose: ToolPurpose::Other,
        }
    }

    pub fn finished(call: &ToolCall) -> ToolBlock {
        let mut tool = ToolBlock::begin(&call.name);
        tool.close(call);
        tool
    }

    pub fn push(&mut self, text: &str) {
        self.arguments.push_str(text);
        if let Some(partial) = &mut self.partial {
            partial.push(text);
            if self.subject.is_empty()
                && let Some(subject) = &partial.subject
            {
                self.subject = terminal_safe_line(&escape_unsafe(subject));
                self.is_about_a_path = true;
            }
        }
    }

    pub fn close(&mut self, call: &ToolCall) {
        self.name = terminal_safe_line(&call.name);
        let text = match &call.arguments {
            Arguments::Json(text) | Arguments::Broken(text) => text,
        };
        // Escaped, so that no encoding can hide what a call does.
        self.subject_lines = escape_unsafe(&subject(text));
        self.subject = terminal_safe_line(&self.subject_lines);
        self.is_about_a_path = is_about_a_path(text);
        self.arguments = escape_unsafe(text);
        self.purpose = purpose(text);
        (self.partial, self.streamed_rows) = (None, Vec::new());
        if self.state == CallState::Streaming {
            self.state = CallState::Waiting;
        }
    }

    pub fn start(&mut self, now: Option<Time>) {
        self.state = CallState::Running;
        self.began = now;
    }

    /// The user is asked about it, so it does not run yet.
    pub fn ask(&mut self) {
        self.state = CallState::Asked;
    }

    /// Whether it has begun and not ended.
    pub fn is_begun(&self, name: &str) -> bool {
        matches!(self.state, CallState::Asked | CallState::Running) && self.name == terminal_safe_line(name)
    }

    pub fn is_asked(&self) -> bool {
        self.state == CallState::Asked
    }

    pub fn is_about(&self, about: &str) -> bool {
        escape_unsafe(&subject(&self.arguments)) == escape_unsafe(about)
    }

    pub fn finish(&mut self, result: &ToolResult, now: Option<Time>) {
        if let (Some(began), Some(now)) = (self.began, now) {
            self.duration_ms = Some(now.0.saturating_sub(began.0));
        }
        self.state = CallState::of_result(result.is_error, &result.content);
        self.live = None;
        let described = result.described();
        let described = match self.purpose {
            ToolPurpose::Command => shown_result(&described),
            ToolPurpose::Write { .. } | ToolPurpose::Other => Cow::Borrowed(&*described),
        };
        let shown = match self.purpose {
            ToolPurpose::Command if self.state == CallState::Done => without_status(&described),
            ToolPurpose::Command | ToolPurpose::Write { .. } | ToolPurpose::Other => &described,
        };
        let mut output = PlainText::output(shown);
        if output.kind() == PlainTextKind::Diff {
            self.changed = changed(output.source());
        } else if let Some(text) = self.created_file(shown) {
            output = PlainText::output(&text).with_part_lines(COMMAND_LINES);
        }
        if output.kind() == PlainTextKind::Diff && self.is_about_a_path {
            // The header names the file.
            let n_hidden = lines_before_change(output.source(), &self.subject);
            output = output.without_first_lines(n_hidden);
        }
        if self.purpose == ToolPurpose::Command {
            let n_lines = command_lines(&described);
            self.n_output_lines = Some(n_lines);
            // Lines of ours at the end are shown, but the command did not write them.
            let ours = shown.lines().count() - without_status(shown).lines().count();
            output = output.with_total_lines(n_lines + ours);
            // What a command wrote last matters most, also why it failed.
            output = output.with_last_lines();
            if self.state == CallState::Done {
                output = output.with_part_lines(COMMAND_LINES);
            }
        }
        self.output = Some(output);
    }

    /// The result of a call that created a file, with the file as a diff: its result has none.
    fn created_file(&self, result: &str) -> Option<String> {
        let ToolPurpose::Write { n_lines } = self.purpose else { return None };
        if self.state != CallState::Done || n_lines == 0 || !is_created_file(result) {
            return None;
        }
        let arguments: Value = serde_json::from_str(&self.arguments).ok()?;
        let mut text =
            format!("{}\n--- /dev/null\n+++ b/{}\n@@ -0,0 +1,{n_lines} @@\n", result.trim_end(), self.subject);
        for line in arguments.get("content")?.as_str()?.lines() {
            text.push('+');
            text.push_str(line);
            text.push('\n');
        }
        Some(text)
    }

    /// The turn is over, so calls that have not run never will.
    pub fn settle(&mut self) {
        self.state = self.state.settled();
    }

    pub fn has_output(&self) -> bool {
        self.output.is_some()
    }

    /// The output, unless it is blank.
    fn visible_output(&self) -> Option<&PlainText> {
        self.output.as_ref().filter(|output| !output.is_blank())
    }

    /// Shows the newest output of the running call.
    pub fn set_live_output(&mut self, tail: &str, n_lines: u64) {
        if self.state == CallState::Asked {
            self.state = CallState::Running;
        }
        let tail = without_overwritten(tail);
        let lines: Vec<&str> = tail.trim_end().lines().collect();
        // Blank lines at the end may be followed by others, and count only then.
        let n_blank = tail.lines().count().saturating_sub(lines.len());
        let n_lines = n_lines.saturating_sub(n_blank as u64);
        let shown = lines.get(lines.len().saturating_sub(COMMAND_LINES)..).unwrap_or_default();
        let hidden = n_lines.saturating_sub(shown.len() as u64);
        let more = if hidden > 0 { format!("… {} above\n", counted(hidden, "more line")) } else { String::new() };
        self.live = Some((PlainText::new(&format!("{more}{}", shown.join("\n")), PlainTextKind::Output), n_lines));
    }

    /// Whether there is something to see before the call has ended.
    fn shows_progress(&self) -> bool {
        match self.state {
            CallState::Streaming => self.partial.as_ref().is_some_and(|partial| !partial.is_empty()),
            CallState::Running => self.live.is_some(),
            CallState::Waiting
            | CallState::Asked
            | CallState::Done
            | CallState::Failed
            | CallState::Denied
            | CallState::Stopped
            | CallState::NotRun => false,
        }
    }

    fn is_long(&self) -> bool {
        self.visible_output().is_some_and(|output| output.is_long() || self.has_long_subject())
    }

    fn has_long_subject(&self) -> bool {
        let (lines, bytes) = SHORT_SUBJECT;
        self.subject_lines.len() > bytes || self.subject_lines.lines().count() > lines
    }

    fn shape(&self) -> ToolShape {
        let shape = match self.choice {
            Some(shape) => shape,
            // Changes, failures and what commands wrote open by themselves.
            None => {
                let is_bad = matches!(self.state, CallState::Failed | CallState::Denied);
                let is_command = self.purpose == ToolPurpose::Command;
                let is_seen = self.visible_output().is_some_and(|out| {
                    let is_of_command =
                        is_command && (self.state == CallState::Done || is_stopped_command(out.source()));
                    is_bad || is_of_command || out.kind() == PlainTextKind::Diff
                });
                if is_seen || self.shows_progress() { ToolShape::Part } else { ToolShape::Header }
            }
        };
        if shape == ToolShape::Part && !self.is_long() { ToolShape::Open } else { shape }
    }

    pub fn is_open(&self) -> bool {
        self.shape() != ToolShape::Header
    }

    /// Whether only the first lines are shown.
    pub fn is_partial(&self) -> bool {
        self.shape() == ToolShape::Part
    }

    /// A long output opens in two steps: first lines, then everything.
    pub fn toggle(&mut self) {
        self.choice = Some(match self.shape() {
            ToolShape::Header => ToolShape::Part,
            ToolShape::Part => ToolShape::Open,
            ToolShape::Open => ToolShape::Header,
        });
    }

    /// Shows this much of it, and returns what the user had chosen.
    pub(crate) fn set_choice(&mut self, choice: Option<ToolShape>) -> Option<ToolShape> {
        std::mem::replace(&mut self.choice, choice)
    }

    /// The call and its output.
    pub(crate) fn searchable_text(&self) -> String {
        let output = self.output.as_ref().map_or("", PlainText::source);
        format!("{} {} {}\n{output}", self.name, self.subject, self.arguments)
    }

    pub fn copy_text(&self) -> String {
        self.output.as_ref().map_or_else(|| self.arguments.clone(), |output| output.source().to_owned())
    }

    /// The rows below the header, which is as wide as the context says.
    pub fn body(&mut self, width: usize, context: &RenderContext) -> HighlightedRows<'_> {
        let keys = context.keys;
        let shape = self.shape();
        if shape == ToolShape::Header {
            return HighlightedRows::plain(&[]);
        }
        if self.choice != Some(ToolShape::Open) && self.shows_progress() {
            return self.progress_rows(width, keys);
        }
        let above = shape == ToolShape::Open && self.is_subject_cut(context);
        if let Some(output) = self.output.as_mut().filter(|output| !output.is_blank()) {
            let extent = if shape == ToolShape::Part && output.is_long() { Extent::Part } else { Extent::All };
            return output.body_below(above.then_some(self.subject_lines.as_str()), width, extent, keys);
        }
        let stale =
            self.arguments_text.as_ref().is_some_and(|arguments_text| arguments_text.source() != self.arguments);
        if stale {
            self.arguments_text = None;
        }
        let arguments = &self.arguments;
        self.arguments_text.get_or_insert_with(|| PlainText::new(arguments, PlainTextKind::Output)).body(
            width,
            Extent::All,
            keys,
        )
    }

    /// The newest lines of the arguments or of the output.
    fn progress_rows(&mut self, width: usize, keys: HintKeys) -> HighlightedRows<'_> {
        if let (CallState::Running, Some((live, _))) = (self.state, &mut self.live) {
            return live.body(width, Extent::All, keys);
        }
        self.streamed_rows.clear();
        if let Some(partial) = &self.partial {
            for (change, line) in partial.last_lines(COMMAND_LINES) {
                let line = terminal_safe(line);
                match change {
                    LineChange::Written => {
                        let (spans, margin) = ([Span::new(TextRole::Code, line)], Margin::default());
                        wrap(&spans, width, Break::Anywhere, &margin, RowBackground::None, &mut self.streamed_rows);
                    }
                    LineChange::Added => diff::added_line(&line, width, &mut self.streamed_rows),
                    LineChange::Removed => diff::removed_line(&line, width, &mut self.streamed_rows),
                }
            }
        }
        HighlightedRows::plain(&self.streamed_rows)
    }

    pub fn next_job(&mut self, next: &mut HighlightId) -> Option<HighlightJob> {
        self.output.as_mut().and_then(|output| output.next_job(next))
    }

    pub fn apply_highlight(&mut self, result: &mut HighlightResult) -> bool {
        self.output.as_mut().is_some_and(|output| output.apply_highlight(result))
    }

    pub fn forget_rows(&mut self) {
        self.arguments_text = None;
        if let Some(output) = &mut self.output {
            output.forget_rows();
        }
    }
}

/// Whether a call with these arguments runs a command.
pub(crate) fn runs_command(arguments: &str) -> bool {
    purpose(arguments) == ToolPurpose::Command
}

fn purpose(arguments: &str) -> ToolPurpose {
    let Ok(value) = serde_json::from_str::<Value>(arguments) else { return ToolPurpose::Other };
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    match (text("command"), text("path"), text("content")) {
        (Some(_), ..) => ToolPurpose::Command,
        (None, Some(_), Some(content)) => ToolPurpose::Write { n_lines: content.lines().count() },
        (None, ..) => ToolPurpose::Other,
    }
}

/// Whether a call is named by the path that it acts on.
fn is_about_a_path(arguments: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(arguments) else { return false };
    let named = SUBJECT_ARGUMENTS.iter().find(|name| value.get(**name).is_some_and(Value::is_string));
    named.is_some_and(|name| PATH_ARGUMENTS.contains(name))
}

/// What a call is about, from its arguments.
pub(crate) fn subject(arguments: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(arguments) else { return arguments.to_owned() };
    let Some(object) = value.as_object() else { return arguments.to_owned() };
    let named = SUBJECT_ARGUMENTS.iter().find_map(|name| object.get(*name).and_then(Value::as_str));
    match named {
        Some(text) => text.to_owned(),
        None if object.is_empty() => String::new(),
        None => {
            let pairs = object.iter().map(|(key, value)| match value.as_str() {
                Some(text) => format!("{key}={text}"),
                None => format!("{key}={value}"),
            });
            pairs.collect::<Vec<_>>().join(" ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_shows_its_subject() {
        #[rustfmt::skip]
        let cases = [
            ("path",        r#"{"offset":3,"path":"a.rs"}"#,  "a.rs"),
            ("command",     r#"{"command":"ls -l"}"#,         "ls -l"),
            ("none of ours", r#"{"a":1,"b":"x"}"#,            "a=1 b=x"),
            ("nothing",     "{}",                             ""),
            ("broken",      r#"{"a": "#,                      r#"{"a": "#),
        ];
        for (name, arguments, expected) in cases {
            assert_eq!(subject(arguments), expected, "{name}");
        }
    }
}
