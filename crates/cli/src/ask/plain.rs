//! Prints a turn as text: the answer on standard output, everything else on
//! standard error. Thinking never reaches standard output.

mod activity_line;
mod updates;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Instant;

use aside_core::block::{Arguments, Block, ToolCall, ToolResult};
use aside_core::event::{BlockId, ProseKind};
use aside_core::json_text::split_within;
use aside_core::permission_question::escape_unsafe;
use aside_core::repetition::RepetitionGuard;
use aside_core::terminal_text::TerminalFilter;
use aside_front::command_result::{command_failure, command_lines, result_size};
use aside_front::{OpenedBlock, SilenceTimer};
use aside_session::UpdateSink;

use super::wording;
use activity_line::{Activity, ActivityLine};

/// How much of a call or a result is shown on its line.
const MAX_CALL_CHARS: usize = 100;

/// A rough estimate; counts based on it are shown with `~`.
const BYTES_PER_TOKEN: u64 = 4;

/// Whether thinking and the answer are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ThinkingOutput {
    Show,
    Hide,
    /// Only the thinking, without the answer
    Only,
    /// Not even that there was any, as `reasoning.display=off` says.
    #[value(skip)]
    Off,
}

impl ThinkingOutput {
    /// Whether its text is written.
    fn has_text(self) -> bool {
        match self {
            ThinkingOutput::Show | ThinkingOutput::Only => true,
            ThinkingOutput::Hide | ThinkingOutput::Off => false,
        }
    }
}

/// How to write on the two streams.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "four facts that do not depend on each other")]
pub(crate) struct OutputStyle {
    pub(crate) out_is_terminal: bool,
    pub(crate) err_is_terminal: bool,
    pub(crate) colour: bool,
    pub(crate) thinking: ThinkingOutput,
    /// Hold text back until the reply is over: a tool call or a stray close tag
    /// may still show that it is not the answer.
    pub(crate) buffers_text: bool,
}

/// A block of the current reply.
#[derive(Debug)]
struct ReplyBlock {
    kind: BlockKind,
    /// The text, if it may still have to be printed: it was held back, or it is thinking that may turn out
    /// to be the answer.
    text: String,
    is_closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    Other,
}

/// Whether the last line of a stream is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineState {
    Ended,
    /// Text was written without a newline at its end.
    Open,
}

impl LineState {
    fn after(text: &str) -> LineState {
        if text.ends_with('\n') { LineState::Ended } else { LineState::Open }
    }
}

pub(crate) struct PlainOutput<O: Write, E: Write> {
    out: O,
    err: E,
    style: OutputStyle,
    activity: Activity,
    since: Instant,
    silence: SilenceTimer,
    /// Bytes of the current thinking block, to estimate its tokens.
    thinking_bytes: u64,
    /// Detects repetition in the current thinking block; none once it has warned.
    repetition_guard: Option<RepetitionGuard>,
    /// The blocks of this reply.
    blocks: BTreeMap<u32, ReplyBlock>,
    has_calls: bool,
    /// No answer text of this reply has been written yet.
    at_answer_start: bool,
    out_line: LineState,
    err_line: LineState,
    activity_line: ActivityLine,
    spinner_frame: usize,
    out_filter: TerminalFilter,
    err_filter: TerminalFilter,
    /// The ids of the calls that run commands.
    commands: BTreeSet<String>,
    /// Notes about requests that were printed, so that each is printed once.
    printed_notes: Vec<String>,
    /// Lines to print after the current permission question.
    queued_lines: Option<Vec<String>>,
    /// The first write error. A closed pipe ends the run.
    write_error: Option<std::io::Error>,
}

impl<O: Write, E: Write> PlainOutput<O, E> {
    pub(crate) fn new(out: O, err: E, style: OutputStyle) -> PlainOutput<O, E> {
        PlainOutput {
            out,
            err,
            style,
            activity: Activity::Waiting,
            since: Instant::now(),
            silence: SilenceTimer::default(),
            thinking_bytes: 0,
            repetition_guard: None,
            blocks: BTreeMap::new(),
            has_calls: false,
            at_answer_start: true,
            out_line: LineState::Ended,
            err_line: LineState::Ended,
            activity_line: ActivityLine::Hidden,
            spinner_frame: 0,
            out_filter: TerminalFilter::new(),
            err_filter: TerminalFilter::new(),
            commands: BTreeSet::new(),
            printed_notes: Vec::new(),
            queued_lines: None,
            write_error: None,
        }
    }

    /// Ends open lines and flushes both streams.
    pub(crate) fn finish(mut self) -> std::io::Result<()> {
        self.resume_after_question();
        self.clear_activity_line();
        self.end_lines();
        self.flush();
        match self.write_error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Prints a line on standard error.
    pub(crate) fn print_line(&mut self, line: &str) {
        if let Some(queued) = &mut self.queued_lines {
            queued.push(line.to_owned());
            return;
        }
        self.clear_activity_line();
        self.end_lines();
        self.flush_stdout();
        // A file may be shown on a terminal later.
        let written = writeln!(self.err, "{}", aside_core::terminal_text::terminal_safe(line));
        self.check(written);
    }

    /// Leaves the terminal to the question.
    fn pause_for_question(&mut self) {
        self.clear_activity_line();
        self.end_lines();
        self.queued_lines.get_or_insert_default();
    }

    fn resume_after_question(&mut self) {
        for line in self.queued_lines.take().unwrap_or_default() {
            self.print_line(&line);
        }
    }

    fn check(&mut self, written: std::io::Result<()>) {
        if let Err(error) = written {
            self.write_error.get_or_insert(error);
        }
    }

    fn opened(&mut self, block: BlockId, opening: &OpenedBlock) {
        let kind = match opening {
            OpenedBlock::Text => BlockKind::Text,
            OpenedBlock::Thinking => BlockKind::Thinking,
            OpenedBlock::ToolCall { .. } => {
                self.has_calls = true;
                BlockKind::Other
            }
            OpenedBlock::Unmodelled => BlockKind::Other,
        };
        match kind {
            BlockKind::Thinking => {
                if self.style.thinking != ThinkingOutput::Off {
                    self.set_activity(Activity::Thinking);
                }
                self.repetition_guard = self.style.err_is_terminal.then(RepetitionGuard::new);
            }
            BlockKind::Text => self.set_activity(Activity::Writing),
            BlockKind::Other => (),
        }
        self.blocks.insert(block.0, ReplyBlock { kind, text: String::new(), is_closed: false });
    }

    fn grew(&mut self, block: BlockId, text: &str) {
        let Some(ReplyBlock { kind, text: kept, .. }) = self.blocks.get_mut(&block.0) else { return };
        match kind {
            BlockKind::Text if self.style.buffers_text => kept.push_str(text),
            BlockKind::Text => self.write_answer(text),
            BlockKind::Thinking => {
                kept.push_str(text);
                self.thinking_bytes += text.len() as u64;
                if self.style.thinking.has_text() {
                    self.write_thinking(text);
                }
                self.check_for_repetition(text);
            }
            BlockKind::Other => (),
        }
    }

    /// Each item of a summary but the first begins after a blank line.
    fn item(&mut self, block: BlockId) {
        if let Some(block) = self.blocks.get_mut(&block.0).filter(|block| !block.text.is_empty()) {
            block.text.push_str("\n\n");
        }
    }

    /// Warns once if the thinking repeats itself.
    fn check_for_repetition(&mut self, text: &str) {
        let Some(guard) = &mut self.repetition_guard else { return };
        guard.push(text);
        if let Some(line) = guard.found().map(wording::repetition_note) {
            self.repetition_guard = None;
            self.print_line(&line);
        }
    }

    fn write_answer(&mut self, text: &str) {
        // Drop the empty lines between thinking and answer.
        let text = if self.at_answer_start { text.trim_start_matches(['\n', '\r']) } else { text };
        if self.style.thinking == ThinkingOutput::Only || text.is_empty() {
            return;
        }
        self.at_answer_start = false;
        self.clear_activity_line();
        if self.err_line == LineState::Open && self.style.err_is_terminal {
            let written = self.err.write_all(b"\n");
            self.check(written);
            self.err_line = LineState::Ended;
        }
        // Both streams may go to the same screen: keep their order.
        let written = self.err.flush();
        self.check(written);
        let text = if self.style.out_is_terminal { self.out_filter.take(text) } else { Cow::Borrowed(text) };
        let written = self.out.write_all(text.as_bytes());
        self.out_line = LineState::after(&text);
        self.check(written);
    }

    fn write_thinking(&mut self, text: &str) {
        self.clear_activity_line();
        self.end_out_line();
        self.flush_stdout();
        let text = if self.style.err_is_terminal { self.err_filter.take(text) } else { Cow::Borrowed(text) };
        let written = match self.style.colour {
            true => write!(self.err, "\x1b[2;3m{text}\x1b[0m"),
            false => self.err.write_all(text.as_bytes()),
        };
        self.err_line = LineState::after(&text);
        self.check(written);
    }

    /// The block is complete. `value` takes precedence over what was streamed.
    fn closed(&mut self, block: BlockId, value: Option<Block>) {
        let Some(closed) = self.blocks.get_mut(&block.0) else { return };
        match value {
            Some(Block::Text(value)) => closed.text = value.text,
            Some(Block::Thinking(value)) => value.text().clone_into(&mut closed.text),
            Some(Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_)) | None => (),
        }
        // A late signature closes a block again.
        let is_first = !std::mem::replace(&mut closed.is_closed, true);
        if closed.kind != BlockKind::Thinking || !is_first {
            return;
        }
        if self.style.thinking == ThinkingOutput::Hide
            && self.style.err_is_terminal
            && self.activity == Activity::Thinking
        {
            let line = format!("thought for {}", self.elapsed_text(Instant::now()));
            let line = if self.style.colour { format!("\x1b[2m{line}\x1b[0m") } else { line };
            self.clear_activity_line();
            self.end_lines();
            let written = writeln!(self.err, "{line}");
            self.check(written);
        }
        if self.err_line == LineState::Open {
            self.clear_activity_line();
            let written = self.err.write_all(b"\n");
            self.check(written);
            self.err_line = LineState::Ended;
        }
        self.set_activity(Activity::Waiting);
    }

    /// A block that looked like text was thinking, or the other way round.
    fn refiled(&mut self, block: BlockId, to: ProseKind) {
        let Some(refiled) = self.blocks.get_mut(&block.0) else { return };
        refiled.kind = match to {
            ProseKind::Text => BlockKind::Text,
            ProseKind::Thinking => BlockKind::Thinking,
        };
        match to {
            ProseKind::Text if self.style.buffers_text => (),
            ProseKind::Text => {
                let text = std::mem::take(&mut refiled.text);
                self.write_answer(&text);
            }
            ProseKind::Thinking if self.style.buffers_text && self.style.thinking.has_text() => {
                let text = std::mem::take(&mut refiled.text);
                self.write_thinking(&text);
            }
            ProseKind::Thinking if self.style.buffers_text => (),
            ProseKind::Thinking => self.print_line("note: what is written above was thinking, not the answer"),
        }
    }

    /// At the end of a reply, buffered text is the answer, or words before a call.
    fn reply_ended(&mut self) {
        let blocks = std::mem::take(&mut self.blocks);
        if self.style.buffers_text {
            let blocks = blocks.into_values().filter(|block| block.kind == BlockKind::Text);
            let texts: Vec<String> = blocks.map(|block| block.text).collect();
            if !self.has_calls {
                texts.iter().for_each(|text| self.write_answer(text));
            } else if self.style.thinking != ThinkingOutput::Only && texts.iter().any(|text| !text.trim().is_empty()) {
                self.print_line(texts.concat().trim());
            }
        }
        if self.has_calls {
            self.clear_activity_line();
            self.end_lines();
        }
        self.has_calls = false;
        self.at_answer_start = true;
        self.set_activity(Activity::Waiting);
    }

    fn tool_started(&mut self, call: &ToolCall) {
        let arguments = match &call.arguments {
            Arguments::Json(text) | Arguments::Broken(text) => text,
        };
        if is_command(arguments) {
            self.commands.insert(call.id.as_str().to_owned());
        }
        self.print_line(&format!("→ {} {}", call.name, one_line(&escape_unsafe(arguments))));
        self.set_activity(Activity::RunningTools);
    }

    fn tool_ended(&mut self, result: &ToolResult) {
        let described = result.described();
        let is_command = self.commands.remove(&result.id);
        let line = match result.is_error {
            true => format!("✗ {}: {}", result.name, one_line(&failure_text(&described, is_command))),
            false => format!("✓ {}: {}", result.name, one_line(&success_text(&described, is_command))),
        };
        self.print_line(&line);
    }

    /// Both streams may go to the same screen: flush standard output before
    /// writing to standard error. It is empty while the model thinks, so this is
    /// cheap.
    fn flush_stdout(&mut self) {
        let written = self.out.flush();
        self.check(written);
    }

    fn end_out_line(&mut self) {
        if self.out_line == LineState::Open && self.style.out_is_terminal {
            let written = self.out.write_all(b"\n");
            self.check(written);
            self.out_line = LineState::Ended;
        }
    }

    fn end_lines(&mut self) {
        if self.out_line == LineState::Open {
            let written = self.out.write_all(b"\n");
            self.check(written);
            self.out_line = LineState::Ended;
        }
        if self.err_line == LineState::Open {
            let written = self.err.write_all(b"\n");
            self.check(written);
            self.err_line = LineState::Ended;
        }
    }
}

fn is_command(arguments: &str) -> bool {
    let arguments = serde_json::from_str::<serde_json::Value>(arguments).ok();
    arguments.is_some_and(|arguments| arguments.get("command").is_some_and(serde_json::Value::is_string))
}

fn failure_text(result: &str, is_command: bool) -> Cow<'_, str> {
    let command = if is_command { command_failure(result) } else { None };
    command.map_or_else(|| first_line(result).into(), Cow::Owned)
}

/// A result of one line is shown itself, unless a command wrote it.
fn success_text(result: &str, is_command: bool) -> Cow<'_, str> {
    if is_command {
        return result_size(command_lines(result), (0, 0)).into();
    }
    match result.lines().count() {
        0 | 1 => first_line(result).into(),
        lines => result_size(lines, (0, 0)).into(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing")
}

/// The text on one line, shortened to `MAX_CALL_CHARS`.
fn one_line(text: &str) -> String {
    // Do not scan a long text beyond what a line can show.
    let (text, _) = split_within(text.trim_start(), 16 * MAX_CALL_CHARS);
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CALL_CHARS) {
        Some((at, _)) => line.get(..at).map(|line| format!("{line}…")).unwrap_or_default(),
        None => line,
    }
}

/// A running estimate; the exact count comes with the usage.
fn estimate_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
