//! A front end that prints lines of text, for screen readers, slow connections and pipes. Nothing
//! moves or is overwritten, and every change is announced.
//!
//! No IO: updates and typed lines in, text and commands out. It uses the same [`aside_front`] as
//! the screen.

mod command_lines;
mod input;
mod output;
mod streaming_block;
mod wording;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aside_core::event::BlockId;
use aside_core::message::{Message, Role};
use aside_core::permission_question::QuestionLayout;
use aside_core::settings::ThinkingDisplay;
use aside_core::turn::TurnEnd;

use crate::app::undone_message;
use crate::transcript::{notice_text, turn_end_notice};
use aside_front::wording::{duration, silence};
use aside_front::{
    Command, CommandOutput, OwnCommand, PendingQuestion, QuestionId, Sending, Status, SteeringError, Update,
};
use aside_front::{LONG_SILENCE, SilenceTimer};
use command_lines::PrintedLines;
use output::{LineOutput, OutputSection};
use streaming_block::StreamingBlock;

/// Where the input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputSource {
    /// A terminal, which echoes typed text.
    Terminal,
    /// A file or another program. Lines are printed and read one at a time.
    Pipe,
}

#[derive(Debug)]
pub struct PlainSession {
    output: LineOutput,
    source: InputSource,
    status: Status,
    sending: Option<Sending>,
    blocks: HashMap<BlockId, StreamingBlock>,
    /// Commands that the engine has not finished yet.
    pending_commands: usize,
    turn: PlainTurn,
    queue: VecDeque<String>,
    questions: VecDeque<PendingQuestion>,
    /// The space available for a question.
    layout: QuestionLayout,
    /// The last thinking block, for `/reader`, and whether it was printed in full.
    last_thinking: Option<(String, ThinkingShown)>,
    shown_notes: Vec<String>,
    input: InputState,
    now: Instant,
    /// Whether any turn failed or was interrupted.
    outcome: SessionOutcome,
    /// The running commands, by the ids of their calls.
    commands: HashMap<String, PrintedLines>,
    own_commands: Vec<OwnCommand>,
    silence: SilenceTimer,
    /// The next length of the silence that is worth a line.
    next_silence: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlainTurn {
    Idle,
    Running,
    Stopping,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputState {
    Open,
    /// Ctrl+C was pressed with nothing to stop or to clear; a second one soon after quits.
    QuitWarned {
        at: Instant,
    },
    /// The input has ended.
    Ended,
    /// The engine was asked to quit.
    Quitting,
}

/// How the turns went, for the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionOutcome {
    pub failed: bool,
    pub interrupted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThinkingShown {
    InFull,
    No,
}

impl PlainSession {
    pub fn new(status: Status, source: InputSource) -> PlainSession {
        let mut plain = PlainSession {
            output: LineOutput::default(),
            source,
            status,
            sending: None,
            blocks: HashMap::new(),
            pending_commands: 0,
            turn: PlainTurn::Idle,
            queue: VecDeque::new(),
            questions: VecDeque::new(),
            layout: QuestionLayout::default(),
            last_thinking: None,
            shown_notes: Vec::new(),
            input: InputState::Open,
            now: Instant::now(),
            outcome: SessionOutcome::default(),
            commands: HashMap::new(),
            own_commands: Vec::new(),
            silence: SilenceTimer::default(),
            next_silence: LONG_SILENCE,
        };
        let model = plain.status.model.clone();
        plain.output.line(&format!("Model: {model}"));
        if source == InputSource::Terminal {
            plain.output.line("/help lists the commands. Ctrl+C stops an answer, Ctrl+D leaves.");
        }
        plain
    }

    /// Sets the time of what happens next.
    pub fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

    /// Sets the line width, and how many rows a question may take.
    pub fn set_layout(&mut self, layout: QuestionLayout) {
        self.layout = layout;
    }

    /// The question that waits for an answer.
    pub fn question(&self) -> Option<QuestionId> {
        self.questions.front().map(|question| question.id)
    }

    /// Takes the text to print now, with a prompt if a line is expected.
    pub fn take(&mut self) -> String {
        self.prompt();
        self.output.take()
    }

    /// Takes the text without a prompt, while no line can be read.
    pub fn take_unprompted(&mut self) -> String {
        self.output.take()
    }

    /// Whether the next input line may be read.
    pub fn wants_line(&self) -> bool {
        match (self.input, self.source) {
            (InputState::Ended | InputState::Quitting, _) => false,
            (InputState::Open | InputState::QuitWarned { .. }, InputSource::Terminal) => true,
            (InputState::Open | InputState::QuitWarned { .. }, InputSource::Pipe) => {
                self.is_idle() || !self.questions.is_empty()
            }
        }
    }

    pub fn outcome(&self) -> SessionOutcome {
        self.outcome
    }

    fn is_idle(&self) -> bool {
        self.pending_commands == 0 && self.turn == PlainTurn::Idle && self.queue.is_empty()
    }

    fn prompt(&mut self) {
        if self.source == InputSource::Pipe || !matches!(self.input, InputState::Open | InputState::QuitWarned { .. }) {
            return;
        }
        if !self.questions.is_empty() {
            self.output.prompt("Allow? ");
        } else if self.is_idle() {
            self.output.prompt("You: ");
        }
    }

    /// When `say_silence` has something to say, unless the provider sends something before.
    pub fn silence_due(&self) -> Option<Instant> {
        self.silence.began_at().and_then(|began| began.checked_add(self.next_silence))
    }

    /// Says how long the provider has sent nothing. The pauses between the lines grow, since printed lines stay.
    pub fn say_silence(&mut self) {
        if let Some(lasted) = self.silence.long_silence(self.now).filter(|lasted| *lasted >= self.next_silence) {
            self.next_silence = lasted.saturating_mul(2);
            let stop = match self.source {
                InputSource::Terminal => "; Ctrl+C stops",
                InputSource::Pipe => "",
            };
            self.output.line_in_section(&format!("Note: {}{stop}", silence(lasted)));
        }
    }

    pub fn apply_update(&mut self, update: Update) -> Vec<Command> {
        let began = self.silence.began_at();
        self.silence.on_update(&update, self.now);
        if self.silence.began_at() != began {
            self.next_silence = LONG_SILENCE;
        }
        match update {
            Update::Opened { block, opening } => self.opened(block, &opening),
            Update::Grew { block, text } => self.grew(block, &text),
            Update::Item { block } => self.item(block),
            Update::Refiled { block, to } => self.refiled(block, to),
            Update::ClosedAsStreamed { block, span, sealed_bytes } => {
                self.closed_as_streamed(block, span, sealed_bytes)
            }
            Update::Closed { block, value } => self.closed(block, &value),
            Update::Emptied { block } => drop(self.blocks.remove(&block)),
            Update::Sending(sending) => self.sending(*sending),
            Update::Noted(note) => self.note(&note.message),
            Update::ReplyEnded(_) => self.output.end(),
            Update::Retrying { after, attempt, why } => {
                let wait = duration(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
                self.output.line(&format!("{}; trying again in {wait}, attempt {attempt}", wording::one_line(&why)));
            }
            Update::TurnNotice(written) => self.output.line(&notice_text(&written)),
            Update::ToolStarted(call) => self.tool_started(&call),
            Update::ToolOutput { call, tail, n_lines } => self.live_output(&call, &tail, n_lines),
            Update::ToolEnded(result) => self.tool_ended(&result),
            Update::TurnEnded(end) => self.turn_ended(&end),
            Update::QuestionAsked(question) => return self.question_asked(*question),
            Update::QuestionWithdrawn(id) => self.questions.retain(|question| question.id != id),
            Update::CommandOutput(output) => self.show_output(&output),
            Update::Compacted { summarised, trigger, .. } => {
                self.show_output(&CommandOutput::Line(aside_front::wording::compacted(summarised, trigger)))
            }
            Update::Restored(messages) => self.restored(&messages),
            Update::NotSent { what, hint, .. } => {
                self.turn = PlainTurn::Idle;
                self.outcome.failed = true;
                self.show_output(&CommandOutput::Error { what, hint });
            }
            Update::NotSteered { text, error: None } => self.output.line(&format!("Not sent: {text}")),
            Update::NotSteered { text, error: Some(SteeringError { what, hint }) } => {
                self.output.line(&format!("Not sent: {text}"));
                self.show_output(&CommandOutput::Error { what, hint });
            }
            Update::Undone(question) => {
                self.output.line(&format!("{}; /retry asks it again", undone_message(&question)));
            }
            Update::Status(status) => self.status = *status,
            Update::CompletionLists(lists) => self.own_commands = lists.commands,
            Update::Ready => return self.ready(),
            // A signal says nothing about what was typed; the terminal has cleared it.
            Update::Interrupt => return self.interrupt(""),
            Update::Quit => return self.quit(),
            // Nothing left to print for these.
            Update::Recorded(_) | Update::Usage(_) | Update::Sealed { .. } => (),
            // A line terminal handles keys and suspending itself.
            Update::SessionStored(_)
            | Update::MessageStored(_)
            | Update::Models(_)
            | Update::PromptHistory(_)
            | Update::Suspend => (),
            // A line terminal asks for none.
            Update::Detail(_) => (),
            // A line that was sent cannot be taken back.
            Update::TakenBack(_) | Update::NotTakenBack(_) => (),
            // Printed lines cannot be scrolled to.
            Update::GoTo { .. } => (),
        }
        Vec::new()
    }

    /// The user's own commands.
    pub fn set_own_commands(&mut self, commands: Vec<OwnCommand>) {
        self.own_commands = commands;
    }

    fn sending(&mut self, sending: Sending) {
        self.blocks.clear();
        if self.turn == PlainTurn::Idle {
            self.turn = PlainTurn::Running;
        }
        for note in &sending.notes {
            if !self.shown_notes.contains(note) {
                self.shown_notes.push(note.clone());
                self.note(note);
            }
        }
        self.sending = Some(sending);
    }

    pub(super) fn note(&mut self, text: &str) {
        self.output.line(&format!("Note: {text}"));
    }

    fn turn_ended(&mut self, end: &TurnEnd) {
        self.output.end();
        self.turn = PlainTurn::Idle;
        self.questions.clear();
        self.blocks.clear();
        self.outcome.failed |= match end {
            TurnEnd::Answered | TurnEnd::ThinkingOnly { .. } | TurnEnd::Length | TurnEnd::Interrupted => false,
            TurnEnd::Empty
            | TurnEnd::Declined(_)
            | TurnEnd::CutOff
            | TurnEnd::Oversized { .. }
            | TurnEnd::Failed(_)
            | TurnEnd::Unreachable(_)
            | TurnEnd::OutOfSteps(_)
            | TurnEnd::OutOfMoney { .. } => true,
        };
        // The reply has nothing else, so the thinking is printed after all.
        if let (TurnEnd::ThinkingOnly { .. }, Some((text, ThinkingShown::No))) = (end, &self.last_thinking)
            && self.status.view != ThinkingDisplay::Off
        {
            let text = text.clone();
            self.output.write_section(OutputSection::Thinking, &text);
            self.output.end();
        }
        if *end == TurnEnd::Interrupted {
            self.outcome.interrupted = true;
            self.output.line("Interrupted. What came is kept.");
            for text in std::mem::take(&mut self.queue) {
                self.output.line(&format!("Not sent: {text}"));
            }
        } else if let Some((_, text)) = turn_end_notice(end) {
            self.output.line(&text);
        }
    }

    fn show_output(&mut self, output: &CommandOutput) {
        if let CommandOutput::Line(text) = output {
            // If it is a note of the next request, the request does not say it again.
            self.shown_notes.push(text.clone());
        }
        for line in output.lines() {
            self.output.line(&line);
        }
    }

    /// Prints the session title and the last exchange, not the whole history.
    fn restored(&mut self, messages: &[Arc<Message>]) {
        let count = messages.iter().filter(|message| message.role != Role::System).count();
        let title = self.status.title.as_ref().map(|title| format!(" \"{title}\"")).unwrap_or_default();
        self.output.line(&format!("Session{title}: {count} messages"));
        let begins = messages.iter().rposition(|message| message.begins_turn()).unwrap_or_default();
        let last_turn = messages.get(begins..).unwrap_or_default();
        let prompt = last_turn.first().filter(|message| message.begins_turn());
        let answer = last_turn.iter().rfind(|message| message.role == Role::Assistant);
        for (message, who) in [(prompt, "You said"), (answer, "The answer was")] {
            let text = message.map(|message| wording::text_of(message)).unwrap_or_default();
            if !text.trim().is_empty() {
                self.output.line(&format!("{who}: {}", text.trim()));
            }
        }
        let end = last_turn.last().and_then(|message| message.turn_end());
        if let Some((_, text)) = end.as_ref().and_then(turn_end_notice) {
            self.output.line(&text);
        }
    }

    /// A command is finished; sends the next queued prompt.
    fn ready(&mut self) -> Vec<Command> {
        self.pending_commands = self.pending_commands.saturating_sub(1);
        if self.pending_commands > 0 {
            return Vec::new();
        }
        self.turn = PlainTurn::Idle;
        match (self.queue.pop_front(), self.input) {
            (Some(text), _) => {
                self.output.line(&format!("You: {text}"));
                self.begin_turn(text)
            }
            (None, InputState::Ended) => self.quit(),
            (None, InputState::Open | InputState::QuitWarned { .. } | InputState::Quitting) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
