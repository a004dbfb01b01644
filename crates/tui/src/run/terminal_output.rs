//! Writes whole frames to the terminal, in escape codes that the terminal supports.

use std::io::{self, Stdout, Write, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::theme::ColourDepth;

/// Buffers output until it is flushed.
pub(super) struct TerminalOutput {
    terminal: Stdout,
    depth: ColourDepth,
    frame: Vec<u8>,
    /// A panic hook restored the terminal. Set while stdout is locked, so that no frame follows.
    panicked: Arc<AtomicBool>,
}

impl TerminalOutput {
    pub(super) fn new(depth: ColourDepth, panicked: Arc<AtomicBool>) -> TerminalOutput {
        TerminalOutput { terminal: stdout(), depth, frame: Vec::new(), panicked }
    }
}

impl Write for TerminalOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.depth == ColourDepth::Sixteen {
            self.frame = to_sixteen_colours(&self.frame);
        }
        let mut terminal = self.terminal.lock();
        if self.panicked.load(Ordering::Relaxed) {
            return Err(io::Error::other("a part of aside failed"));
        }
        let written = terminal.write_all(&self.frame);
        self.frame.clear();
        written.and_then(|()| terminal.flush())
    }
}

/// Translates colours to the classic sixteen-colour codes. The library writes them as 256-colour
/// codes, which an old terminal reads as blinking or hidden text.
fn to_sixteen_colours(frame: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(frame.len());
    let mut rest = frame;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\x1b[") {
        let (before, sequence) = rest.split_at(at);
        out.extend_from_slice(before);
        let length = sequence.iter().skip(2).take_while(|byte| matches!(byte, b'0'..=b'9' | b';')).count() + 3;
        let (sequence, after) = sequence.split_at_checked(length).unwrap_or((sequence, b""));
        match sequence {
            [0x1b, b'[', codes @ .., b'm'] if !codes.is_empty() => out.extend(classic_codes(codes)),
            other => out.extend_from_slice(other),
        }
        rest = after;
    }
    out.extend_from_slice(rest);
    out
}

fn classic_codes(codes: &[u8]) -> Vec<u8> {
    let codes = String::from_utf8_lossy(codes);
    let mut numbers = codes.split(';').map(|code| code.parse::<u16>().unwrap_or(0));
    let mut kept: Vec<String> = Vec::new();
    while let Some(number) = numbers.next() {
        match number {
            38 | 48 => {
                // A 5 and the colour number follow.
                let colour = numbers.nth(1).unwrap_or(0);
                let first = if colour < 8 { number - 8 } else { number + 52 - 8 };
                kept.push((first + colour).to_string());
            }
            // The underline colour, which such terminals do not have.
            59 => (),
            other => kept.push(other.to_string()),
        }
    }
    match kept.is_empty() {
        true => Vec::new(),
        false => format!("\x1b[{}m", kept.join(";")).into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t13_sixteen_colours_use_codes_that_every_terminal_knows() {
        #[rustfmt::skip]
        let cases = [
            ("letters",          "\x1b[38;5;3;49mx",        "\x1b[33;49mx"),
            ("bright letters",   "\x1b[38;5;12;49mx",       "\x1b[94;49mx"),
            ("ground",           "\x1b[39;48;5;7mx",        "\x1b[39;47mx"),
            ("both bright",      "\x1b[38;5;15;48;5;8mx",   "\x1b[97;100mx"),
            ("line below",       "a\x1b[59mb",              "ab"),
            ("faces",            "\x1b[1m\x1b[0m\x1b[mx",   "\x1b[1m\x1b[0m\x1b[mx"),
            ("no colours",       "\x1b[2J\x1b[38;5H\x1b[?1049h", "\x1b[2J\x1b[38;5H\x1b[?1049h"),
            ("words",            "漢字 38;5;3m",             "漢字 38;5;3m"),
            ("cut off",          "x\x1b[38;5",              "x\x1b[38;5"),
        ];
        for (name, written, expected) in cases {
            let got = String::from_utf8(to_sixteen_colours(written.as_bytes())).unwrap();
            assert_eq!(got, expected, "{name}");
        }
    }
}
