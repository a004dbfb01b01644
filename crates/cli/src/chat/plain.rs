//! The line prompt (`--plain`): reads lines, prints text, and uses the same engine
//! as the screen.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use aside_core::permission_question::{IGNORE_KEYS_MS, QuestionLayout};
use aside_front::{Command, OwnCommand, QuestionId, Status, TerminalAction, Update};
use aside_tui::plain::{InputSource, PlainSession, SessionOutcome};
use rustix::termios::{QueueSelector, tcflush};

use super::interrupt_key::{self, TypedLine};
use crate::ExitStatus;
use crate::ask::permission_prompt::{FEWEST_ROWS, ROWS_AROUND};

enum PromptEvent {
    Typed {
        line: TypedLine,
        /// When the terminal delivered it: an answer that arrived too early stays
        /// too early, however late this loop sees it.
        read_at: Instant,
    },
    Update(Update),
    /// The engine has ended.
    EngineGone,
}

/// Runs until the user quits or the input ends, and then until the engine has
/// sent its last update.
pub(crate) fn run(
    status: Status,
    own_commands: Vec<OwnCommand>,
    restored: Option<Update>,
    updates: Receiver<Update>,
    commands: Sender<Command>,
) -> io::Result<ExitStatus> {
    let source = if io::stdin().is_terminal() { InputSource::Terminal } else { InputSource::Pipe };
    let (sender, inbox) = mpsc::channel();
    let lines = read_lines(sender.clone(), source);
    // The notices of the start belong before the first prompt.
    let early: Vec<Update> = updates.try_iter().collect();
    std::thread::spawn(move || {
        for update in updates {
            if sender.send(PromptEvent::Update(update)).is_err() {
                return;
            }
        }
        // The prompt loop may already have ended.
        drop(sender.send(PromptEvent::EngineGone));
    });
    let mut plain = PlainSession::new(status, source);
    plain.set_own_commands(own_commands);
    restored.map(|restored| plain.apply_update(restored));
    let mut prompt_loop = PromptLoop { plain, source, commands, lines, is_reading: false, current_question: None };
    for update in early {
        let commands = prompt_loop.plain.apply_update(update);
        prompt_loop.run_commands(commands)?;
    }
    let troubles = prompt_loop.run(&inbox)?;
    // A user at a terminal has seen the failure; a script needs the exit code.
    Ok(match (source, troubles) {
        (InputSource::Terminal, _) => ExitStatus::Done,
        (InputSource::Pipe, SessionOutcome { interrupted: true, .. }) => ExitStatus::Interrupted,
        (InputSource::Pipe, SessionOutcome { failed: true, .. }) => ExitStatus::ProviderFailed,
        (InputSource::Pipe, SessionOutcome { failed: false, .. }) => ExitStatus::Done,
    })
}

/// Reads a line per request. Unrequested input stays in the terminal, for an
/// editor or the next question.
fn read_lines(sender: Sender<PromptEvent>, source: InputSource) -> Sender<()> {
    let (request_line, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for () in requests {
            let line = interrupt_key::read_line(&mut io::stdin().lock(), source == InputSource::Terminal);
            let is_last = line == TypedLine::EndOfInput;
            if sender.send(PromptEvent::Typed { line, read_at: Instant::now() }).is_err() || is_last {
                return;
            }
        }
    });
    request_line
}

struct PromptLoop {
    plain: PlainSession,
    source: InputSource,
    commands: Sender<Command>,
    lines: Sender<()>,
    is_reading: bool,
    /// The current question, and since when it is shown.
    current_question: Option<(QuestionId, Instant)>,
}

const DEFAULT_HEIGHT: usize = 24;

impl PromptLoop {
    fn run(mut self, inbox: &Receiver<PromptEvent>) -> io::Result<SessionOutcome> {
        loop {
            self.update_layout();
            self.show()?;
            self.request_line();
            let answer_delay = self.remaining_answer_delay();
            let until_silence = self.plain.silence_due().map(|due| due.saturating_duration_since(Instant::now()));
            let event = match answer_delay.into_iter().chain(until_silence).min() {
                Some(left) => match inbox.recv_timeout(left) {
                    Ok(event) => Ok(event),
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        if answer_delay.is_some() {
                            self.discard_typed();
                        }
                        self.plain.set_now(Instant::now());
                        self.plain.say_silence();
                        continue;
                    }
                    Err(mpsc::RecvTimeoutError::Disconnected) => Err(mpsc::RecvError),
                },
                None => inbox.recv(),
            };
            self.plain.set_now(Instant::now());
            let commands = match event {
                Ok(PromptEvent::Typed { line: TypedLine::Line(text), read_at }) => {
                    self.is_reading = false;
                    if self.is_too_early(read_at) {
                        self.plain.too_early();
                        continue;
                    }
                    self.plain.line(&text)
                }
                Ok(PromptEvent::Typed { line: TypedLine::Interrupted(draft), .. }) => {
                    self.is_reading = false;
                    self.plain.interrupt(&draft)
                }
                Ok(PromptEvent::Typed { line: TypedLine::EndOfInput, .. }) => self.plain.end_of_input(),
                Ok(PromptEvent::Update(update)) => self.plain.apply_update(update),
                Ok(PromptEvent::EngineGone) | Err(mpsc::RecvError) => break,
            };
            self.run_commands(commands)?;
        }
        write(&self.plain.take())?;
        Ok(self.plain.outcome())
    }

    /// Asks for a line unless one is being read. Without a reader, Ctrl+C is the terminal's own.
    fn request_line(&mut self) {
        if !self.plain.wants_line() {
            return interrupt_key::release();
        }
        if !self.is_reading {
            if self.source == InputSource::Terminal {
                interrupt_key::take();
            }
            self.is_reading = self.lines.send(()).is_ok();
        }
    }

    fn update_layout(&mut self) {
        if self.source == InputSource::Terminal {
            let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
            let of = |size: u16| Some(usize::from(size)).filter(|size| *size > 0);
            let width = size.and_then(|size| of(size.ws_col));
            let height = size.and_then(|size| of(size.ws_row)).unwrap_or(DEFAULT_HEIGHT);
            let rows = height.saturating_sub(ROWS_AROUND).max(FEWEST_ROWS);
            self.plain.set_layout(QuestionLayout { width, rows: Some(rows), ..QuestionLayout::default() });
        }
    }

    /// Writes what is new. Input typed before a question is discarded first, so that
    /// nothing typed after it is lost.
    fn show(&mut self) -> io::Result<()> {
        let shown = self.plain.question();
        let is_new = shown != self.current_question.map(|(id, _)| id);
        if is_new && shown.is_some() {
            self.discard_typed();
        }
        write(&self.plain.take())?;
        if is_new {
            self.current_question = shown.map(|id| (id, Instant::now()));
        }
        Ok(())
    }

    /// How long input still counts as typed too early. It is discarded then too,
    /// since an unfinished line could be completed later.
    fn remaining_answer_delay(&mut self) -> Option<Duration> {
        let (_, since) = self.current_question.filter(|_| self.source == InputSource::Terminal)?;
        let left = Duration::from_millis(IGNORE_KEYS_MS).saturating_sub(since.elapsed());
        (!left.is_zero()).then_some(left)
    }

    fn discard_typed(&self) {
        if self.source == InputSource::Terminal {
            // If flushing fails, the delay still protects the question.
            let _: rustix::io::Result<()> = tcflush(io::stdin(), QueueSelector::IFlush);
        }
    }

    fn is_too_early(&mut self, read_at: Instant) -> bool {
        let Some((_, since)) = &mut self.current_question else { return false };
        let is_early = self.source == InputSource::Terminal
            && read_at.saturating_duration_since(*since) < Duration::from_millis(IGNORE_KEYS_MS);
        if is_early {
            *since = Instant::now();
        }
        is_early
    }

    fn run_commands(&mut self, commands: Vec<Command>) -> io::Result<()> {
        for command in commands {
            let Command::Terminal(TerminalAction::Edit(text)) = command else {
                // If the engine is gone, `EngineGone` follows.
                drop(self.commands.send(command));
                continue;
            };
            write(&self.plain.take_unprompted())?;
            interrupt_key::release();
            match aside_tui::edit(&text) {
                Ok(text) => {
                    for command in self.plain.write(&text) {
                        drop(self.commands.send(command));
                    }
                }
                Err(error) => self.plain.error(&error.to_string()),
            }
        }
        Ok(())
    }
}

fn write(text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
