//! The terminal that a question is answered on: its keys, its lines, its size.
//!
//! It is given back as it was when the question is answered or nobody waits for
//! the answer any more.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetwinsize, tcsetattr,
};

use super::asker::TOO_EARLY;

/// How often a reader looks whether somebody still waits for it.
const LOOK: Duration = Duration::from_millis(100);
/// How long the rest of an arrow key may take.
const REST_OF_A_KEY: Duration = Duration::from_millis(50);
const USUAL_SIZE: (usize, usize) = (80, 24);

pub(super) struct Terminal(Arc<OwnedFd>);

impl Terminal {
    pub(super) fn open() -> io::Result<Terminal> {
        Ok(Terminal(Arc::new(File::options().read(true).write(true).open("/dev/tty")?.into())))
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> (usize, usize) {
        match tcgetwinsize(&*self.0) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (usize::from(size.ws_col), usize::from(size.ws_row)),
            Ok(_) | Err(_) => USUAL_SIZE,
        }
    }

    /// One key at a time, not shown, from here on. What was typed before is gone.
    pub(super) fn keys(&self) -> io::Result<Keys> {
        let before = tcgetattr(&*self.0)?;
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        tcsetattr(&*self.0, OptionalActions::Flush, &modes)?;
        Ok(Keys { reader: Reader::new(&self.0), before, terminal: Arc::clone(&self.0) })
    }

    /// Whole lines. What was typed before is gone.
    pub(super) fn lines(&self) -> io::Result<Lines> {
        tcflush(&*self.0, QueueSelector::IFlush)?;
        Ok(Lines { reader: Reader::new(&self.0) })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Letter(char),
    Enter,
    Next,
    Previous,
    /// Ctrl+C, or Esc.
    Interrupt,
    /// Nobody is there any more.
    End,
    Other,
}

pub(super) struct Keys {
    reader: Reader,
    before: Termios,
    terminal: Arc<OwnedFd>,
}

impl Drop for Keys {
    fn drop(&mut self) {
        // There is no other terminal to complain to.
        let _: rustix::io::Result<()> = tcsetattr(&*self.terminal, OptionalActions::Flush, &self.before);
    }
}

impl Keys {
    /// The question is on the screen; what comes too soon is not an answer to
    /// it, but Ctrl+C counts at any time.
    pub(super) async fn wait_until_read(&mut self) -> io::Result<()> {
        let mut until = Instant::now() + TOO_EARLY;
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            match tokio::time::timeout(left, self.reader.next()).await {
                Ok(bytes) => {
                    let bytes = bytes?;
                    if is_interrupt(&bytes) {
                        self.reader.put_back(bytes);
                        return Ok(());
                    }
                    // Whoever is in the middle of a word has not read it.
                    until = Instant::now() + TOO_EARLY;
                }
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Throws away what was typed until now.
    pub(super) fn forget(&mut self) -> io::Result<()> {
        Ok(tcflush(&*self.terminal, QueueSelector::IFlush)?)
    }

    pub(super) async fn next(&mut self) -> io::Result<Key> {
        Ok(key(&self.reader.next().await?))
    }
}

fn is_interrupt(bytes: &[u8]) -> bool {
    matches!(key(bytes), Key::Interrupt | Key::End)
}

/// What was typed at one stroke. Several letters at once are a paste, which is
/// no answer.
fn key(bytes: &[u8]) -> Key {
    match bytes {
        [] | [0x04] => Key::End,
        [.., 0x03] | [0x1b] => Key::Interrupt,
        [b'\r' | b'\n'] | [b'\r', b'\n'] => Key::Enter,
        [0x1b, b'[' | b'O', b'A' | b'D'] | [0x1b, b'[', b'Z'] => Key::Previous,
        [0x1b, b'[' | b'O', b'B' | b'C'] | [b'\t'] => Key::Next,
        // Somebody used to lines ends an answer with Enter.
        [letter @ b'a'..=b'z' | letter @ b'A'..=b'Z', b'\r' | b'\n']
        | [letter @ b'a'..=b'z' | letter @ b'A'..=b'Z'] => Key::Letter(char::from(letter.to_ascii_lowercase())),
        _ => Key::Other,
    }
}

pub(super) struct Lines {
    reader: Reader,
}

impl Lines {
    /// The next line, without its end; none when there will be no more.
    pub(super) async fn next(&mut self, prompt: &str) -> io::Result<Option<String>> {
        use std::io::Write;
        let mut err = io::stderr();
        write!(err, "{prompt}")?;
        err.flush()?;
        let bytes = self.reader.next().await?;
        if bytes.is_empty() {
            return Ok(None);
        }
        Ok(Some(String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned()))
    }
}

/// Reads on a thread of its own, since a terminal cannot be waited for
/// otherwise everywhere. The thread ends soon after nobody waits for it.
struct Reader {
    terminal: Arc<OwnedFd>,
    is_gone: Arc<AtomicBool>,
    reading: Option<tokio::task::JoinHandle<io::Result<Vec<u8>>>>,
    put_back: Option<Vec<u8>>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }
}

impl Reader {
    fn new(terminal: &Arc<OwnedFd>) -> Reader {
        Reader { terminal: Arc::clone(terminal), is_gone: Arc::default(), reading: None, put_back: None }
    }

    fn put_back(&mut self, bytes: Vec<u8>) {
        self.put_back = Some(bytes);
    }

    /// What comes next; nothing when the terminal is gone. It can be dropped and
    /// asked for again without losing anything.
    async fn next(&mut self) -> io::Result<Vec<u8>> {
        if let Some(bytes) = self.put_back.take() {
            return Ok(bytes);
        }
        let reading = self.reading.get_or_insert_with(|| {
            let (terminal, is_gone) = (Arc::clone(&self.terminal), Arc::clone(&self.is_gone));
            tokio::task::spawn_blocking(move || read(&terminal, &is_gone))
        });
        let read = reading.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        self.reading = None;
        read
    }
}

fn read(terminal: &OwnedFd, is_gone: &AtomicBool) -> io::Result<Vec<u8>> {
    let mut buffer = [0; 1024];
    while !is_gone.load(Ordering::Relaxed) {
        if !is_readable(terminal, LOOK)? {
            continue;
        }
        let mut count = rustix::io::read(terminal, &mut buffer)?;
        // The rest of an arrow key may come a moment later.
        if buffer.get(..count) == Some(b"\x1b") && is_readable(terminal, REST_OF_A_KEY)? {
            count += rustix::io::read(terminal, buffer.get_mut(1..).unwrap_or_default())?;
        }
        return Ok(buffer.get(..count).unwrap_or_default().to_vec());
    }
    Ok(Vec::new())
}

fn is_readable(terminal: &OwnedFd, within: Duration) -> io::Result<bool> {
    let within = Timespec { tv_sec: 0, tv_nsec: i64::from(within.subsec_nanos()) };
    match poll(&mut [PollFd::new(terminal, PollFlags::IN)], Some(&within)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stroke_is_an_answer_and_a_paste_is_none() {
        #[rustfmt::skip]
        let cases: &[(&[u8], Key)] = &[
            (b"y",         Key::Letter('y')),
            (b"Y",         Key::Letter('y')),
            (b"y\r",       Key::Letter('y')),
            (b"\r",        Key::Enter),
            (b"\x1b[C",    Key::Next),
            (b"\x1bOD",    Key::Previous),
            (b"\x1b",      Key::Interrupt),
            (b"\x03",      Key::Interrupt),
            (b"yy\x03",    Key::Interrupt),
            (b"",          Key::End),
            (b"please no", Key::Other),
            (b"yes\r",     Key::Other),
            (b"\x1b[200~", Key::Other),
            (b"\xc3\xa9",  Key::Other),
        ];
        for (bytes, expected) in cases {
            assert_eq!(key(bytes), *expected, "{bytes:?}");
        }
    }
}
