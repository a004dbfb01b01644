//! The thin loop around the screen: the only place that touches a terminal.
//!
//! One thread reads keys, one passes on what the engine tells, and this one
//! draws: at once for a key, at most thirty times a second otherwise, and not
//! at all while nothing happens.

mod gather;
mod ground;
mod screen;

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aside_core::block::Time;
use crossterm::event::{self, Event};

use crate::app::{App, Msg};
use crate::seam::{Command, Update};
use crate::theme::Motion;
use crate::transcript::SPINNER_STEP_MS;
use gather::pass_on;
pub use ground::theme_of_terminal;
use screen::Screen;
pub use screen::draw_frame;

const FRAME: Duration = Duration::from_millis(33);
/// How often the thread that reads keys looks whether it is still wanted.
const LOOK_UP: Duration = Duration::from_millis(500);
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
    let screen = Screen::open()?;
    let (sender, inbox) = mpsc::channel();
    let wanted = Arc::new(AtomicBool::new(true));
    let keys = read_keys(sender.clone(), Arc::clone(&wanted));
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
    let now = Instant::now();
    let result = Loop { app, screen, commands, drawn: now, dirty: true, urgent: true }.run(&inbox);
    wanted.store(false, Ordering::Relaxed);
    drop(inbox);
    // It looks up twice a second; keys typed from now on are not ours.
    keys.join().ok();
    result
}

fn read_keys(sender: Sender<Inbox>, wanted: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        while wanted.load(Ordering::Relaxed) {
            let read = match event::poll(LOOK_UP) {
                Ok(false) => continue,
                Ok(true) => event::read(),
                Err(error) => Err(error),
            };
            let sent = match read {
                Ok(event) => message(event).map_or(Ok(()), |msg| sender.send(Inbox::Msg(msg))),
                Err(error) => {
                    sender.send(Inbox::Broken(error)).ok();
                    return;
                }
            };
            if sent.is_err() {
                return;
            }
        }
    })
}

fn message(event: Event) -> Option<Msg> {
    match event {
        Event::Key(key) => Some(Msg::Key(key)),
        Event::Mouse(mouse) => Some(Msg::Mouse(mouse)),
        Event::Paste(text) => Some(Msg::Paste(text)),
        Event::Resize(..) => Some(Msg::Resize),
        Event::FocusGained | Event::FocusLost => None,
    }
}

struct Loop {
    app: App,
    screen: Screen,
    commands: Sender<Command>,
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
                (self.drawn, self.dirty, self.urgent) = (Instant::now(), false, false);
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
            Msg::Key(_) | Msg::Mouse(_) | Msg::Paste(_) | Msg::Resize => true,
            Msg::Tick(_) | Msg::Update(_) => false,
        };
        for command in self.app.update(msg) {
            if let Command::Terminal(act) = &command {
                self.screen.carry_out(act)?;
                continue;
            }
            let leaves = command == Command::Quit;
            if self.commands.send(command).is_err() || leaves {
                return Ok(Flow::Leave);
            }
        }
        Ok(Flow::GoOn)
    }

    fn tick(&mut self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.app.update(Msg::Tick(Time(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))));
    }
}
