//! The thread that reads keys. It can be stopped and begun again, so that an
//! editor gets every key that is meant for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

use crossterm::event::{self, Event};

use super::Inbox;
use crate::app::Msg;

/// How often it looks whether it is still wanted, where nothing wakes it.
const LOOK_UP: Duration = Duration::from_millis(500);

pub(super) struct Keys {
    wanted: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Keys {
    pub(super) fn read(sender: Sender<Inbox>) -> Keys {
        let wanted = Arc::new(AtomicBool::new(true));
        let still_wanted = Arc::clone(&wanted);
        Keys { wanted, thread: std::thread::spawn(move || read(&sender, &still_wanted)) }
    }

    /// Keys pressed from now on are for somebody else.
    pub(super) fn stop(self) {
        self.wanted.store(false, Ordering::Relaxed);
        wake();
        self.thread.join().ok();
    }
}

/// A resize is the one signal that whoever waits for keys wakes up from.
fn wake() {
    #[cfg(unix)]
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::WINCH).ok();
}

fn read(sender: &Sender<Inbox>, wanted: &AtomicBool) {
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
