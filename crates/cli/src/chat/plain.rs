//! The line prompt: lines in, words out, on the same engine as the screen.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use aside_core::question::{Layout, TOO_EARLY_MS};
use aside_tui::plain::{Plain, Troubles, Typist};
use aside_tui::seam::{Command, QuestionId, Status, TerminalAct, Update};
use rustix::termios::{QueueSelector, tcflush};

use crate::Outcome;
use crate::ask::asker::{FEWEST_ROWS, ROWS_AROUND};

enum Heard {
    Line(String),
    EndOfInput,
    Update(Update),
    /// The engine will say nothing any more.
    EngineGone,
}

/// Runs until the user leaves or the input ends, and then until the engine
/// has told all it has to tell.
pub(crate) fn run(
    status: Status,
    restored: Option<Update>,
    updates: Receiver<Update>,
    commands: Sender<Command>,
) -> io::Result<Outcome> {
    let typist = if io::stdin().is_terminal() { Typist::Person } else { Typist::Pipe };
    let (sender, inbox) = mpsc::channel();
    let lines = read_lines(sender.clone());
    std::thread::spawn(move || {
        for update in updates {
            if sender.send(Heard::Update(update)).is_err() {
                return;
            }
        }
        // Nobody to tell means that everybody has left already.
        drop(sender.send(Heard::EngineGone));
    });
    let mut plain = Plain::new(status, typist);
    restored.map(|restored| plain.hear(restored));
    let troubles = Loop { plain, typist, commands, lines, is_reading: false, asked: None }.run(&inbox)?;
    // Somebody at a terminal has seen it; a script has only the code.
    Ok(match (typist, troubles) {
        (Typist::Person, _) => Outcome::Done,
        (Typist::Pipe, Troubles { interrupted: true, .. }) => Outcome::Interrupted,
        (Typist::Pipe, Troubles { failed: true, .. }) => Outcome::ProviderFailed,
        (Typist::Pipe, Troubles { failed: false, .. }) => Outcome::Done,
    })
}

/// One line for each that is asked for: what is not asked for stays where it
/// is, for an editor or for the next question.
fn read_lines(sender: Sender<Heard>) -> Sender<()> {
    let (asks, asked) = mpsc::channel();
    std::thread::spawn(move || {
        for () in asked {
            let mut line = Vec::new();
            let heard = match io::stdin().lock().read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => Heard::EndOfInput,
                Ok(_) => Heard::Line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
            };
            let is_last = matches!(heard, Heard::EndOfInput);
            if sender.send(heard).is_err() || is_last {
                return;
            }
        }
    });
    asks
}

struct Loop {
    plain: Plain,
    typist: Typist,
    commands: Sender<Command>,
    lines: Sender<()>,
    is_reading: bool,
    /// The question that is shown, and since when.
    asked: Option<(QuestionId, Instant)>,
}

const USUAL_HEIGHT: usize = 24;

impl Loop {
    fn run(mut self, inbox: &Receiver<Heard>) -> io::Result<Troubles> {
        loop {
            self.lay_out();
            write(&self.plain.take())?;
            self.note_question();
            if !self.is_reading && self.plain.wants_line() {
                self.is_reading = self.lines.send(()).is_ok();
            }
            let heard = match self.until_answers_count() {
                Some(left) => match inbox.recv_timeout(left) {
                    Ok(heard) => Ok(heard),
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        self.forget_typed();
                        continue;
                    }
                    Err(mpsc::RecvTimeoutError::Disconnected) => Err(mpsc::RecvError),
                },
                None => inbox.recv(),
            };
            let commands = match heard {
                Ok(Heard::Line(line)) => {
                    self.is_reading = false;
                    if self.is_too_early() {
                        self.plain.too_early();
                        continue;
                    }
                    self.plain.line(&line)
                }
                Ok(Heard::EndOfInput) => self.plain.end_of_input(),
                Ok(Heard::Update(update)) => self.plain.hear(update),
                Ok(Heard::EngineGone) | Err(mpsc::RecvError) => break,
            };
            self.carry_out(commands)?;
        }
        write(&self.plain.take())?;
        Ok(self.plain.troubles())
    }

    fn lay_out(&mut self) {
        if self.typist == Typist::Person {
            let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
            let of = |size: u16| Some(usize::from(size)).filter(|size| *size > 0);
            let width = size.and_then(|size| of(size.ws_col));
            let height = size.and_then(|size| of(size.ws_row)).unwrap_or(USUAL_HEIGHT);
            let rows = height.saturating_sub(ROWS_AROUND).max(FEWEST_ROWS);
            self.plain.set_layout(Layout { width, rows: Some(rows) });
        }
    }

    /// What was typed before a question was shown is no answer to it.
    fn note_question(&mut self) {
        let shown = self.plain.question();
        if shown == self.asked.map(|(id, _)| id) {
            return;
        }
        self.asked = shown.map(|id| (id, Instant::now()));
        if self.asked.is_some() {
            self.forget_typed();
        }
    }

    /// How long keys are still typed too early. A line may be begun by then that
    /// is ended later.
    fn until_answers_count(&mut self) -> Option<Duration> {
        let (_, since) = self.asked.filter(|_| self.typist == Typist::Person)?;
        let left = Duration::from_millis(TOO_EARLY_MS).saturating_sub(since.elapsed());
        (!left.is_zero()).then_some(left)
    }

    fn forget_typed(&self) {
        if self.typist == Typist::Person {
            // A terminal that cannot be flushed still has the delay.
            let _: rustix::io::Result<()> = tcflush(io::stdin(), QueueSelector::IFlush);
        }
    }

    fn is_too_early(&mut self) -> bool {
        let Some((_, since)) = &mut self.asked else { return false };
        let is_early = self.typist == Typist::Person && since.elapsed() < Duration::from_millis(TOO_EARLY_MS);
        if is_early {
            *since = Instant::now();
        }
        is_early
    }

    fn carry_out(&mut self, commands: Vec<Command>) -> io::Result<()> {
        for command in commands {
            let Command::Terminal(TerminalAct::Edit(text)) = command else {
                // An engine that is gone has said so, or is about to.
                drop(self.commands.send(command));
                continue;
            };
            write(&self.plain.take_unprompted())?;
            match aside_tui::edit(&text) {
                Ok(text) => {
                    for command in self.plain.write(&text) {
                        drop(self.commands.send(command));
                    }
                }
                Err(error) => self.plain.wrong(&error.to_string()),
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
