//! The thread that reads keys. It can be stopped and begun again, so that an
//! editor gets every key that is meant for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyModifiers};

use super::Inbox;
use crate::app::Msg;

/// How often it looks whether it is still wanted, where nothing wakes it.
const LOOK_UP: Duration = Duration::from_millis(500);

/// How long after the start the terminal may still answer what it was asked.
const ANSWERS_COME: Duration = Duration::from_secs(10);

pub(super) struct Keys {
    wanted: Arc<AtomicBool>,
    /// Ends with the thread.
    reading: Receiver<()>,
}

impl Keys {
    pub(super) fn read(sender: Sender<Inbox>) -> Keys {
        let wanted = Arc::new(AtomicBool::new(true));
        let still_wanted = Arc::clone(&wanted);
        let (ends, reading) = mpsc::channel();
        std::thread::spawn(move || {
            read(&sender, &still_wanted);
            drop::<Sender<()>>(ends);
        });
        Keys { wanted, reading }
    }

    /// Keys pressed from now on are for somebody else.
    pub(super) fn stop(self) {
        self.wanted.store(false, Ordering::Relaxed);
        wake();
        // On a terminal that hung up it never comes back.
        self.reading.recv_timeout(2 * LOOK_UP).ok();
    }
}

/// Says so when the terminal is gone. Whoever reads keys would not notice.
#[cfg(unix)]
pub(super) fn watch_for_the_end(sender: Sender<Inbox>) {
    use rustix::event::{PollFd, PollFlags, poll};

    std::thread::spawn(move || {
        let terminal = std::io::stdin();
        loop {
            let mut ends = [PollFd::new(&terminal, PollFlags::empty())];
            match poll(&mut ends, None) {
                Err(rustix::io::Errno::INTR) => (),
                Ok(_) | Err(_) => {
                    let gone = std::io::Error::other("the terminal is gone");
                    sender.send(Inbox::Broken(gone)).ok();
                    return;
                }
            }
        }
    });
}

#[cfg(not(unix))]
pub(super) fn watch_for_the_end(_sender: Sender<Inbox>) {}

/// A resize is the one signal that whoever waits for keys wakes up from.
fn wake() {
    #[cfg(unix)]
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::WINCH).ok();
}

fn read(sender: &Sender<Inbox>, wanted: &AtomicBool) {
    let mut late = LateAnswer::default();
    let began = Instant::now();
    while wanted.load(Ordering::Relaxed) {
        let read = match event::poll(LOOK_UP) {
            Ok(false) => continue,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        let sent = match read {
            Ok(event) if began.elapsed() < ANSWERS_COME && late.takes(&event) => Ok(()),
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

/// The colour of the ground, told by a terminal that is far away: it comes as
/// keys, the last of which would mean something.
#[derive(Debug, Default, PartialEq, Eq)]
enum LateAnswer {
    #[default]
    NotYet,
    Coming,
    Done,
}

impl LateAnswer {
    /// Whether this is a piece of it, and so no key.
    fn takes(&mut self, event: &Event) -> bool {
        let Event::Key(key) = event else { return false };
        let (takes, next) = match (&self, key.code, key.modifiers) {
            (LateAnswer::NotYet, KeyCode::Char(']'), KeyModifiers::ALT) => (true, LateAnswer::Coming),
            (LateAnswer::Coming, KeyCode::Char('g'), KeyModifiers::CONTROL) => (true, LateAnswer::Done),
            (LateAnswer::Coming, KeyCode::Char('\\'), KeyModifiers::ALT) => (true, LateAnswer::Done),
            (LateAnswer::Coming, KeyCode::Char('0'..='9' | 'a'..='g' | 'r' | ';' | ':' | '/'), KeyModifiers::NONE) => {
                return true;
            }
            (LateAnswer::NotYet, ..) => return false,
            (LateAnswer::Coming | LateAnswer::Done, ..) => (false, LateAnswer::Done),
        };
        *self = next;
        takes
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

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    /// Keys as a terminal would send these bytes.
    fn keys(text: &str) -> Vec<Event> {
        let mut keys = Vec::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            let (letter, modifiers) = match letter {
                '\u{1b}' => (letters.next().unwrap(), KeyModifiers::ALT),
                '\u{7}' => ('g', KeyModifiers::CONTROL),
                letter => (letter, KeyModifiers::NONE),
            };
            keys.push(Event::Key(KeyEvent::new(KeyCode::Char(letter), modifiers)));
        }
        keys
    }

    #[test]
    fn t10_an_answer_of_the_terminal_that_comes_late_is_not_typed() {
        #[rustfmt::skip]
        let cases = [
            ("with a bell",        "\u{1b}]11;rgb:1e1e/1e1e/2e2e\u{7}hi",    "hi"),
            ("with a string end",  "\u{1b}]11;rgb:ff/ff/fe\u{1b}\\hi",      "hi"),
            ("between words",      "a\u{1b}]11;rgb:ff/ff/fe\u{7}b",          "ab"),
            ("cut short",          "\u{1b}]11;rgb:Hello",                    "Hello"),
            ("only once",          "\u{1b}]11;rgb:1/1/1\u{7}\u{1b}]1",       "]1"),
            ("none at all",        "11;rgb",                                 "11;rgb"),
        ];
        for (name, bytes, expected) in cases {
            let mut late = LateAnswer::default();
            let passed = keys(bytes).into_iter().filter(|event| !late.takes(event));
            let letters = passed.filter_map(|event| event.as_key_press_event()?.code.as_char());
            let typed: String = letters.collect();
            assert_eq!(typed, expected, "{name}");
        }
    }
}
