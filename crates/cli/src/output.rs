//! Standard output: escapes and control characters are removed for a terminal; a
//! pipe or a file gets every byte.

use std::io::{self, IsTerminal, StdoutLock, Write};

use aside_core::terminal_text::TerminalFilter;

/// Standard output for untrusted text: from models, files and arguments.
pub(crate) struct SafeOutput<W: Write = StdoutLock<'static>> {
    out: W,
    /// None if the output is not a terminal.
    filter: Option<TerminalFilter>,
    /// The first bytes of a character whose rest has not been written yet.
    partial_char: Vec<u8>,
}

pub(crate) fn stdout() -> SafeOutput {
    let is_terminal = io::stdout().is_terminal();
    SafeOutput::new(io::stdout().lock(), is_terminal)
}

impl<W: Write> SafeOutput<W> {
    fn new(out: W, is_terminal: bool) -> SafeOutput<W> {
        SafeOutput { out, filter: is_terminal.then(TerminalFilter::new), partial_char: Vec::new() }
    }
}

impl<W: Write> Write for SafeOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(filter) = &mut self.filter else { return self.out.write(bytes) };
        self.partial_char.extend_from_slice(bytes);
        let partial_char = std::mem::take(&mut self.partial_char);
        let complete = match std::str::from_utf8(&partial_char) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => partial_char.len(),
        };
        let (text, rest) = partial_char.split_at(complete);
        self.partial_char = rest.to_vec();
        self.out.write_all(filter.take(&String::from_utf8_lossy(text)).as_bytes())?;
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
        let mut output = SafeOutput::new(&mut out, is_terminal);
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
        // The chunking does not matter.
        let bytes: Vec<&[u8]> = nasty.chunks(1).collect();
        assert_eq!(written(true, &bytes), "abcé\n".as_bytes());
        assert_eq!(written(true, &[b"a\xff\x1bb"]), "a\u{fffd}".as_bytes());
    }
}
