//! Standard output: a terminal gets text without anything that it would obey, a
//! pipe or a file gets it as it is.

use std::io::{self, IsTerminal, StdoutLock, Write};

use aside_core::screen::Neutral;

/// Standard output for text that others wrote: models, files, arguments.
pub(crate) struct Output<W: Write = StdoutLock<'static>> {
    out: W,
    /// None where nobody obeys what is written.
    neutral: Option<Neutral>,
    /// The beginning of a letter whose rest is to come.
    held: Vec<u8>,
}

pub(crate) fn stdout() -> Output {
    let is_terminal = io::stdout().is_terminal();
    Output::new(io::stdout().lock(), is_terminal)
}

impl<W: Write> Output<W> {
    fn new(out: W, is_terminal: bool) -> Output<W> {
        Output { out, neutral: is_terminal.then(Neutral::new), held: Vec::new() }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(neutral) = &mut self.neutral else { return self.out.write(bytes) };
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let whole = match std::str::from_utf8(&held) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => held.len(),
        };
        let (text, rest) = held.split_at(whole);
        self.held = rest.to_vec();
        self.out.write_all(neutral.take(&String::from_utf8_lossy(text)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(is_terminal: bool, pieces: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut output = Output::new(&mut out, is_terminal);
        for piece in pieces {
            output.write_all(piece).expect("memory takes everything");
        }
        out
    }

    #[test]
    fn a_terminal_gets_no_escapes_and_a_pipe_gets_every_byte() {
        let nasty = "a\u{1b}[31mb\u{9d}0;title\u{9c}c\u{202e}é\n".as_bytes();
        assert_eq!(written(true, &[nasty]), "abcé\n".as_bytes());
        assert_eq!(written(false, &[nasty]), nasty);
        // However it is cut.
        let bytes: Vec<&[u8]> = nasty.chunks(1).collect();
        assert_eq!(written(true, &bytes), "abcé\n".as_bytes());
        assert_eq!(written(true, &[b"a\xff\x1bb"]), "a\u{fffd}".as_bytes());
    }
}
