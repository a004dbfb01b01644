//! Keys, lines and size of the controlling terminal, for permission questions.
//!
//! The terminal modes are restored when a question is answered or dropped.

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

use super::permission_prompt::TOO_EARLY;

/// How often the reading thread checks whether it was cancelled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long to wait for the rest of an escape sequence.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(50);
const DEFAULT_SIZE: (usize, usize) = (80, 24);

pub(super) struct Tty(Arc<OwnedFd>);

impl Tty {
    pub(super) fn open() -> io::Result<Tty> {
        Ok(Tty(Arc::new(File::options().read(true).write(true).open("/dev/tty")?.into())))
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> (usize, usize) {
        match tcgetwinsize(&*self.0) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (usize::from(size.ws_col), usize::from(size.ws_row)),
            Ok(_) | Err(_) => DEFAULT_SIZE,
        }
    }

    /// Reads single keys without echo. Discards earlier input.
    pub(super) fn keys(&self) -> io::Result<KeyReader> {
        let saved_modes = tcgetattr(&*self.0)?;
        let mut modes = saved_modes.clone();
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        tcsetattr(&*self.0, OptionalActions::Flush, &modes)?;
        Ok(KeyReader { reader: TtyReader::new(&self.0), saved_modes, terminal: Arc::clone(&self.0) })
    }

    /// Reads whole lines. Discards earlier input.
    pub(super) fn lines(&self) -> io::Result<LineReader> {
        tcflush(&*self.0, QueueSelector::IFlush)?;
        Ok(LineReader { reader: TtyReader::new(&self.0) })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyPress {
    Letter(char),
    Enter,
    Next,
    Previous,
    /// Ctrl+C, or Esc.
    Interrupt,
    /// End of input.
    End,
    Other,
}

pub(super) struct KeyReader {
    reader: TtyReader,
    saved_modes: Termios,
    terminal: Arc<OwnedFd>,
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        // There is no way to report a failure here.
        let _: rustix::io::Result<()> = tcsetattr(&*self.terminal, OptionalActions::Flush, &self.saved_modes);
    }
}

impl KeyReader {
    /// Discards keys typed too soon after the question appeared. Ctrl+C counts at
    /// any time.
    pub(super) async fn discard_early_keys(&mut self) -> io::Result<()> {
        let mut until = Instant::now() + TOO_EARLY;
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            match tokio::time::timeout(left, self.reader.next()).await {
                Ok(bytes) => {
                    let bytes = bytes?;
                    if is_interrupt(&bytes) {
                        self.reader.put_back(bytes);
                        return Ok(());
                    }
                    // The user is still typing something else: wait again.
                    until = Instant::now() + TOO_EARLY;
                }
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Discards pending input.
    pub(super) fn discard_typed(&mut self) -> io::Result<()> {
        Ok(tcflush(&*self.terminal, QueueSelector::IFlush)?)
    }

    pub(super) async fn next(&mut self) -> io::Result<KeyPress> {
        Ok(key(&self.reader.next().await?))
    }
}

fn is_interrupt(bytes: &[u8]) -> bool {
    matches!(key(bytes), KeyPress::Interrupt | KeyPress::End)
}

/// Decodes one read. Several letters at once are a paste, not an answer.
fn key(bytes: &[u8]) -> KeyPress {
    match bytes {
        [] | [0x04] => KeyPress::End,
        [.., 0x03] | [0x1b] => KeyPress::Interrupt,
        [b'\r' | b'\n'] | [b'\r', b'\n'] => KeyPress::Enter,
        [0x1b, b'[' | b'O', b'A' | b'D'] | [0x1b, b'[', b'Z'] => KeyPress::Previous,
        [0x1b, b'[' | b'O', b'B' | b'C'] | [b'\t'] => KeyPress::Next,
        // Some users press Enter after the letter.
        [letter @ b'a'..=b'z' | letter @ b'A'..=b'Z', b'\r' | b'\n']
        | [letter @ b'a'..=b'z' | letter @ b'A'..=b'Z'] => KeyPress::Letter(char::from(letter.to_ascii_lowercase())),
        _ => KeyPress::Other,
    }
}

pub(super) struct LineReader {
    reader: TtyReader,
}

impl LineReader {
    /// Prompts for a line; none at the end of input.
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

/// Reads on a blocking thread, since not every system can poll a terminal
/// asynchronously. The thread ends soon after the reader is dropped.
struct TtyReader {
    terminal: Arc<OwnedFd>,
    cancelled: Arc<AtomicBool>,
    reading: Option<tokio::task::JoinHandle<io::Result<Vec<u8>>>>,
    put_back: Option<Vec<u8>>,
}

impl Drop for TtyReader {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

impl TtyReader {
    fn new(terminal: &Arc<OwnedFd>) -> TtyReader {
        TtyReader { terminal: Arc::clone(terminal), cancelled: Arc::default(), reading: None, put_back: None }
    }

    fn put_back(&mut self, bytes: Vec<u8>) {
        self.put_back = Some(bytes);
    }

    /// The next bytes; empty at the end of input. Cancel-safe: dropping the future
    /// loses no input.
    async fn next(&mut self) -> io::Result<Vec<u8>> {
        if let Some(bytes) = self.put_back.take() {
            return Ok(bytes);
        }
        let reading = self.reading.get_or_insert_with(|| {
            let (terminal, cancelled) = (Arc::clone(&self.terminal), Arc::clone(&self.cancelled));
            tokio::task::spawn_blocking(move || read(&terminal, &cancelled))
        });
        let read = reading.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        self.reading = None;
        read
    }
}

fn read(terminal: &OwnedFd, cancelled: &AtomicBool) -> io::Result<Vec<u8>> {
    let mut buffer = [0; 1024];
    while !cancelled.load(Ordering::Relaxed) {
        if !is_readable(terminal, POLL_INTERVAL)? {
            continue;
        }
        let mut count = rustix::io::read(terminal, &mut buffer)?;
        // The rest of an escape sequence may arrive a moment later.
        if buffer.get(..count) == Some(b"\x1b") && is_readable(terminal, ESCAPE_TIMEOUT)? {
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
    fn a_single_key_is_an_answer_and_a_paste_is_not() {
        #[rustfmt::skip]
        let cases: &[(&[u8], KeyPress)] = &[
            (b"y",         KeyPress::Letter('y')),
            (b"Y",         KeyPress::Letter('y')),
            (b"y\r",       KeyPress::Letter('y')),
            (b"\r",        KeyPress::Enter),
            (b"\x1b[C",    KeyPress::Next),
            (b"\x1bOD",    KeyPress::Previous),
            (b"\x1b",      KeyPress::Interrupt),
            (b"\x03",      KeyPress::Interrupt),
            (b"yy\x03",    KeyPress::Interrupt),
            (b"",          KeyPress::End),
            (b"please no", KeyPress::Other),
            (b"yes\r",     KeyPress::Other),
            (b"\x1b[200~", KeyPress::Other),
            (b"\xc3\xa9",  KeyPress::Other),
        ];
        for (bytes, expected) in cases {
            assert_eq!(key(bytes), *expected, "{bytes:?}");
        }
    }
}
