//! The event loop of the screen: the only module that touches a terminal.
//!
//! One thread reads keys, one forwards engine updates, and this one draws: at once after a key,
//! otherwise at most thirty times a second, and never while nothing happens.

mod coalesce;
mod editor;
mod highlight_thread;
mod keys;
mod notification_sequence;
mod terminal_guard;
mod terminal_output;
mod terminal_theme;

use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aside_core::block::Time;

use crate::app::{App, Msg};
use crate::theme::Motion;
use crate::transcript::SPINNER_STEP_MS;
use aside_front::{Command, CommandOutput, TerminalAction, Update};
use coalesce::coalesce;
pub use editor::{edit, is_editor_running, suspend_with_editor};
use highlight_thread::HighlightThread;
use keys::KeyThread;
use terminal_guard::{SuspendOutcome, TerminalGuard};
pub use terminal_guard::{draw_frame, restore_terminal};
pub use terminal_theme::detect_theme;

const FRAME: Duration = Duration::from_millis(33);
/// How long messages are handled before the next frame is considered.
const BATCH_TIME: Duration = Duration::from_millis(8);

enum LoopEvent {
    Msg(Msg),
    /// The engine has hung up.
    EngineGone,
    TerminalError(io::Error),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoopFlow {
    Continue,
    Exit,
}

/// Runs until the user quits or the engine is gone. Always restores the terminal.
pub fn run(app: App, updates: Receiver<Update>, commands: Sender<Command>) -> io::Result<()> {
    let screen = TerminalGuard::open(app.theme().depth, app.mouse())?;
    let (sender, inbox) = mpsc::channel();
    let loop_sender = sender.clone();
    let highlight_thread = HighlightThread::new(sender.clone());
    std::thread::spawn(move || {
        let send = |update| match sender.send(LoopEvent::Msg(Msg::Update(Box::new(update)))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        };
        if coalesce(&updates, send).is_continue() {
            // If no one receives it, the screen is already gone.
            sender.send(LoopEvent::EngineGone).ok();
        }
    });
    let drawn = Instant::now();
    keys::watch_for_hangup(loop_sender.clone());
    let keys = Some(KeyThread::read(loop_sender.clone()));
    let mut screen_loop =
        ScreenLoop { app, screen, commands, keys, loop_sender, highlight_thread, drawn, dirty: true, urgent: true };
    let result = screen_loop.run(&inbox);
    drop(inbox);
    screen_loop.stop_keys();
    result
}

struct ScreenLoop {
    app: App,
    screen: TerminalGuard,
    commands: Sender<Command>,
    /// `None` while another program owns the terminal.
    keys: Option<KeyThread>,
    loop_sender: Sender<LoopEvent>,
    highlight_thread: HighlightThread,
    drawn: Instant,
    /// Something changed since the last frame.
    dirty: bool,
    /// The change came from the user, so draw at once.
    urgent: bool,
}

impl ScreenLoop {
    fn run(&mut self, inbox: &Receiver<LoopEvent>) -> io::Result<()> {
        self.tick();
        loop {
            if self.dirty && (self.urgent || self.drawn.elapsed() >= FRAME) {
                self.tick();
                self.screen.draw(&mut self.app)?;
                self.tick();
                self.app.frame_shown();
                self.screen.set_title(self.app.window_title())?;
                if let Some(notification) = self.app.take_notification() {
                    self.screen.notify(&notification)?;
                }
                (self.drawn, self.dirty, self.urgent) = (Instant::now(), false, false);
                self.app.highlight_jobs().into_iter().for_each(|job| self.highlight_thread.send(job));
            }
            let flow = match self.wait(inbox) {
                Ok(first) => self.handle_batch(first, inbox)?,
                Err(RecvTimeoutError::Timeout) => {
                    self.dirty = true;
                    LoopFlow::Continue
                }
                Err(RecvTimeoutError::Disconnected) => LoopFlow::Exit,
            };
            if flow == LoopFlow::Exit {
                return Ok(());
            }
        }
    }

    /// Blocks for as long as nothing is due.
    fn wait(&self, inbox: &Receiver<LoopEvent>) -> Result<LoopEvent, RecvTimeoutError> {
        let moves = self.app.is_animated() && self.app.theme().motion == Motion::Spinner;
        let due = match (self.dirty, moves || self.app.holds_an_answer()) {
            (true, _) => FRAME,
            (false, true) => Duration::from_millis(SPINNER_STEP_MS),
            (false, false) => return inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        inbox.recv_timeout(due.saturating_sub(self.drawn.elapsed()))
    }

    fn handle_batch(&mut self, first: LoopEvent, inbox: &Receiver<LoopEvent>) -> io::Result<LoopFlow> {
        self.tick();
        let began = Instant::now();
        let mut next = Some(first);
        while let Some(one) = next {
            let flow = match one {
                LoopEvent::Msg(msg) => self.handle(msg)?,
                LoopEvent::EngineGone => LoopFlow::Exit,
                LoopEvent::TerminalError(error) => return Err(error),
            };
            if flow == LoopFlow::Exit || self.urgent || began.elapsed() > BATCH_TIME {
                return Ok(flow);
            }
            next = inbox.try_recv().ok();
        }
        Ok(LoopFlow::Continue)
    }

    fn handle(&mut self, msg: Msg) -> io::Result<LoopFlow> {
        self.dirty = true;
        self.urgent |= match msg {
            Msg::Key(_) | Msg::Mouse(_) | Msg::Paste(_) | Msg::Edited(_) | Msg::Resize => true,
            Msg::Tick(_) | Msg::Update(_) | Msg::Highlighted(_) | Msg::Focus(_) => false,
        };
        for command in self.app.update(msg) {
            if let Command::Terminal(act) = &command {
                self.perform(act)?;
                continue;
            }
            let leaves = command == Command::Quit;
            if self.commands.send(command).is_err() || leaves {
                return Ok(LoopFlow::Exit);
            }
        }
        Ok(LoopFlow::Continue)
    }

    fn perform(&mut self, act: &TerminalAction) -> io::Result<()> {
        let output = match act {
            TerminalAction::Copy(text) => return self.screen.copy(text),
            TerminalAction::Mouse(mode) => return self.screen.mouse(*mode),
            TerminalAction::Suspend => match self.screen.suspend()? {
                SuspendOutcome::Resumed => return Ok(()),
                SuspendOutcome::NoShell => CommandOutput::Line("there is no shell to go back to".to_owned()),
            },
            TerminalAction::Edit(text) => {
                // The editor must get its own keys.
                self.stop_keys();
                let edited = self.screen.lend(|| editor::edit(text))?;
                self.keys = Some(KeyThread::read(self.loop_sender.clone()));
                match edited {
                    Ok(text) => {
                        self.app.update(Msg::Edited(text));
                        return Ok(());
                    }
                    Err(error) => CommandOutput::Error { what: error.to_string(), hint: None },
                }
            }
        };
        self.app.update(Msg::Update(Box::new(Update::CommandOutput(output))));
        Ok(())
    }

    fn stop_keys(&mut self) {
        if let Some(keys) = self.keys.take() {
            keys.stop();
        }
    }

    fn tick(&mut self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        for command in self.app.update(Msg::Tick(Time(u64::try_from(now.as_millis()).unwrap_or(u64::MAX)))) {
            // If the session has ended, the loop is told so.
            drop(self.commands.send(command));
        }
    }
}
