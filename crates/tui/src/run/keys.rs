//! The thread that reads keys. It can be stopped and restarted, so that an external editor gets its
//! own keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyModifiers};

use super::LoopEvent;
use crate::app::Msg;

/// How often the thread checks whether it should stop.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How long after the start the terminal may still answer the background query.
const LATE_REPLY_WINDOW: Duration = Duration::from_secs(10);

pub(super) struct KeyThread {
    wanted: Arc<AtomicBool>,
    /// Disconnects when the thread ends.
    reading: Receiver<()>,
}

impl KeyThread {
    pub(super) fn read(sender: Sender<LoopEvent>) -> KeyThread {
        let wanted = Arc::new(AtomicBool::new(true));
        let still_wanted = Arc::clone(&wanted);
        let (ends, reading) = mpsc::channel();
        std::thread::spawn(move || {
            read(&sender, &still_wanted);
            drop::<Sender<()>>(ends);
        });
        KeyThread { wanted, reading }
    }

    /// Stops reading: later keys belong to another program.
    pub(super) fn stop(self) {
        self.wanted.store(false, Ordering::Relaxed);
        wake();
        // On a terminal that hung up, the thread never returns.
        self.reading.recv_timeout(2 * POLL_INTERVAL).ok();
    }
}

/// Reports when the terminal hangs up. The key reader would not notice.
#[cfg(unix)]
pub(super) fn watch_for_hangup(sender: Sender<LoopEvent>) {
    use rustix::event::{PollFd, PollFlags, poll};

    std::thread::spawn(move || {
        let terminal = std::io::stdin();
        loop {
            let mut ends = [PollFd::new(&terminal, PollFlags::empty())];
            match poll(&mut ends, None) {
                Err(rustix::io::Errno::INTR) => (),
                Ok(_) | Err(_) => {
                    let gone = std::io::Error::other("the terminal is gone");
                    sender.send(LoopEvent::TerminalError(gone)).ok();
                    return;
                }
            }
        }
    });
}

#[cfg(not(unix))]
pub(super) fn watch_for_hangup(_sender: Sender<LoopEvent>) {}

/// SIGWINCH is the one signal that wakes the key reader.
fn wake() {
    #[cfg(unix)]
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::WINCH).ok();
}

fn read(sender: &Sender<LoopEvent>, wanted: &AtomicBool) {
    let mut late = LateColourReply::default();
    let began = Instant::now();
    while wanted.load(Ordering::Relaxed) {
        let read = match event::poll(POLL_INTERVAL) {
            Ok(false) => continue,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        let sent = match read {
            Ok(event) if began.elapsed() < LATE_REPLY_WINDOW && late.consumes(&event) => Ok(()),
            Ok(event) => message(event).map_or(Ok(()), |msg| sender.send(LoopEvent::Msg(msg))),
            Err(error) => {
                sender.send(LoopEvent::TerminalError(error)).ok();
                return;
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

/// The terminal's late answer to the background query. Over a slow connection it arrives as keys,
/// and the last one would trigger an action.
#[derive(Debug, Default, PartialEq, Eq)]
enum LateColourReply {
    #[default]
    NotYet,
    Coming,
    Done,
}

impl LateColourReply {
    /// Whether this event is part of the answer rather than a key.
    fn consumes(&mut self, event: &Event) -> bool {
        let Event::Key(key) = event else { return false };
        let (is_part, next) = match (&self, key.code, key.modifiers) {
            (LateColourReply::NotYet, KeyCode::Char(']'), KeyModifiers::ALT) => (true, LateColourReply::Coming),
            (LateColourReply::Coming, KeyCode::Char('g'), KeyModifiers::CONTROL) => (true, LateColourReply::Done),
            (LateColourReply::Coming, KeyCode::Char('\\'), KeyModifiers::ALT) => (true, LateColourReply::Done),
            (
                LateColourReply::Coming,
                KeyCode::Char('0'..='9' | 'a'..='g' | 'r' | ';' | ':' | '/'),
                KeyModifiers::NONE,
            ) => {
                return true;
            }
            (LateColourReply::NotYet, ..) => return false,
            (LateColourReply::Coming | LateColourReply::Done, ..) => (false, LateColourReply::Done),
        };
        *self = next;
        is_part
    }
}

fn message(event: Event) -> Option<Msg> {
    match event {
        Event::Key(key) => Some(Msg::Key(key)),
        Event::Mouse(mouse) => Some(Msg::Mouse(mouse)),
        Event::Paste(text) => Some(Msg::Paste(text)),
        Event::Resize(..) => Some(Msg::Resize),
        Event::FocusGained => Some(Msg::Focus(true)),
        Event::FocusLost => Some(Msg::Focus(false)),
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    /// The keys that a terminal would send as these bytes.
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
    fn t10_a_late_answer_of_the_terminal_is_not_typed() {
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
            let mut late = LateColourReply::default();
            let passed = keys(bytes).into_iter().filter(|event| !late.consumes(event));
            let letters = passed.filter_map(|event| event.as_key_press_event()?.code.as_char());
            let typed: String = letters.collect();
            assert_eq!(typed, expected, "{name}");
        }
    }
}
