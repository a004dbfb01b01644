//! The thin loop around the screen: the only place that touches a terminal.
//!
//! One thread reads keys, one passes on what the engine tells, and this one
//! draws: at once for a key, at most thirty times a second otherwise, and not
//! at all while nothing happens.

mod editor;
mod gather;
mod ground;
mod keys;
mod lamp;
mod out;
mod screen;

use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aside_core::block::Time;

use crate::app::{App, Msg};
use crate::seam::{Command, Said, TerminalAct, Update};
use crate::theme::Motion;
use crate::transcript::SPINNER_STEP_MS;
pub use editor::{edit, is_lent, stop_with_the_editor};
use gather::pass_on;
pub use ground::theme_of_terminal;
use keys::Keys;
use lamp::Lamp;
use screen::{Screen, Suspended};
pub use screen::{draw_frame, restore};

const FRAME: Duration = Duration::from_millis(33);
/// Messages taken before the screen is looked at again.
const BATCH: Duration = Duration::from_millis(8);

enum Inbox {
    Msg(Msg),
    /// The engine will say nothing any more.
    EngineGone,
    Broken(io::Error),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    GoOn,
    Leave,
}

/// Runs until the user leaves or the engine is gone. The terminal is as it
/// was afterwards, whatever happens.
pub fn run(app: App, updates: Receiver<Update>, commands: Sender<Command>) -> io::Result<()> {
    let screen = Screen::open(app.theme().depth)?;
    let (sender, inbox) = mpsc::channel();
    let to_us = sender.clone();
    let lamp = Lamp::new(sender.clone());
    std::thread::spawn(move || {
        let send = |update| match sender.send(Inbox::Msg(Msg::Update(Box::new(update)))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        };
        if pass_on(&updates, send).is_continue() {
            // Nobody to tell means that the screen is gone already.
            sender.send(Inbox::EngineGone).ok();
        }
    });
    let drawn = Instant::now();
    keys::watch_for_the_end(to_us.clone());
    let keys = Some(Keys::read(to_us.clone()));
    let mut screen_loop = Loop { app, screen, commands, keys, to_us, lamp, drawn, dirty: true, urgent: true };
    let result = screen_loop.run(&inbox);
    drop(inbox);
    screen_loop.stop_keys();
    result
}

struct Loop {
    app: App,
    screen: Screen,
    commands: Sender<Command>,
    /// None while the terminal is somebody else's.
    keys: Option<Keys>,
    to_us: Sender<Inbox>,
    lamp: Lamp,
    drawn: Instant,
    /// Something changed since the last frame.
    dirty: bool,
    /// And it was the user who did it.
    urgent: bool,
}

impl Loop {
    fn run(&mut self, inbox: &Receiver<Inbox>) -> io::Result<()> {
        self.tick();
        loop {
            if self.dirty && (self.urgent || self.drawn.elapsed() >= FRAME) {
                self.tick();
                self.screen.draw(&mut self.app)?;
                self.tick();
                self.app.frame_shown();
                (self.drawn, self.dirty, self.urgent) = (Instant::now(), false, false);
                self.app.unlit().into_iter().for_each(|job| self.lamp.send(job));
            }
            let flow = match self.wait(inbox) {
                Ok(first) => self.take_batch(first, inbox)?,
                Err(RecvTimeoutError::Timeout) => {
                    self.dirty = true;
                    Flow::GoOn
                }
                Err(RecvTimeoutError::Disconnected) => Flow::Leave,
            };
            if flow == Flow::Leave {
                return Ok(());
            }
        }
    }

    /// Sleeps for ever if nothing is due.
    fn wait(&self, inbox: &Receiver<Inbox>) -> Result<Inbox, RecvTimeoutError> {
        let moves = self.app.is_moving() && self.app.theme().motion == Motion::Spinner;
        let due = match (self.dirty, moves) {
            (true, _) => FRAME,
            (false, true) => Duration::from_millis(SPINNER_STEP_MS),
            (false, false) => return inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        inbox.recv_timeout(due.saturating_sub(self.drawn.elapsed()))
    }

    fn take_batch(&mut self, first: Inbox, inbox: &Receiver<Inbox>) -> io::Result<Flow> {
        self.tick();
        let began = Instant::now();
        let mut next = Some(first);
        while let Some(one) = next {
            let flow = match one {
                Inbox::Msg(msg) => self.take(msg)?,
                Inbox::EngineGone => Flow::Leave,
                Inbox::Broken(error) => return Err(error),
            };
            if flow == Flow::Leave || self.urgent || began.elapsed() > BATCH {
                return Ok(flow);
            }
            next = inbox.try_recv().ok();
        }
        Ok(Flow::GoOn)
    }

    fn take(&mut self, msg: Msg) -> io::Result<Flow> {
        self.dirty = true;
        self.urgent |= match msg {
            Msg::Key(_) | Msg::Mouse(_) | Msg::Paste(_) | Msg::Edited(_) | Msg::Resize => true,
            Msg::Tick(_) | Msg::Update(_) | Msg::Lit(_) => false,
        };
        for command in self.app.update(msg) {
            if let Command::Terminal(act) = &command {
                self.carry_out(act)?;
                continue;
            }
            let leaves = command == Command::Quit;
            if self.commands.send(command).is_err() || leaves {
                return Ok(Flow::Leave);
            }
        }
        Ok(Flow::GoOn)
    }

    fn carry_out(&mut self, act: &TerminalAct) -> io::Result<()> {
        let said = match act {
            TerminalAct::Copy(text) => return self.screen.copy(text),
            TerminalAct::Mouse(whose) => return self.screen.mouse(*whose),
            TerminalAct::Suspend => match self.screen.suspend()? {
                Suspended::AndBack => return Ok(()),
                Suspended::NoShell => Said::Line("there is no shell to go back to".to_owned()),
            },
            TerminalAct::Edit(text) => {
                // The editor's keys must not come to us.
                self.stop_keys();
                let edited = self.screen.lend(|| editor::edit(text))?;
                self.keys = Some(Keys::read(self.to_us.clone()));
                match edited {
                    Ok(text) => {
                        self.app.update(Msg::Edited(text));
                        return Ok(());
                    }
                    Err(error) => Said::Wrong { what: error.to_string(), hint: None },
                }
            }
        };
        self.app.update(Msg::Update(Box::new(Update::Said(said))));
        Ok(())
    }

    fn stop_keys(&mut self) {
        if let Some(keys) = self.keys.take() {
            keys.stop();
        }
    }

    fn tick(&mut self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.app.update(Msg::Tick(Time(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))));
    }
}
