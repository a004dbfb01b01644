//! Writes whole frames to the terminal, in escape codes that the terminal supports.

use std::io::{self, Stdout, Write, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::theme::ColourDepth;

/// Buffers output until it is flushed.
pub(super) struct TerminalOutput {
    terminal: Stdout,
    codes: StyleCodes,
    frame: Vec<u8>,
    /// A panic hook restored the terminal. Set while stdout is locked, so that no frame follows.
    panicked: Arc<AtomicBool>,
}

impl TerminalOutput {
    pub(super) fn new(depth: ColourDepth, panicked: Arc<AtomicBool>) -> TerminalOutput {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let codes = StyleCodes {
            colours: if depth == ColourDepth::Sixteen { ColourCodes::Classic } else { ColourCodes::Extended },
            italics: italics(&variable("TERM"), &variable("STY")),
        };
        TerminalOutput { terminal: stdout(), codes, frame: Vec::new(), panicked }
    }
}

/// The style codes that the terminal understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StyleCodes {
    colours: ColourCodes,
    italics: Italics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColourCodes {
    /// The codes of sixteen colours.
    Classic,
    Extended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Italics {
    Shown,
    /// The code means something else.
    Missing,
}

/// GNU screen, which sets `STY`, reverses text where other terminals write it in italics.
fn italics(term: &str, sty: &str) -> Italics {
    if term.starts_with("screen") && !sty.is_empty() { Italics::Missing } else { Italics::Shown }
}

impl Write for TerminalOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.codes != (StyleCodes { colours: ColourCodes::Extended, italics: Italics::Shown }) {
            self.frame = translated(&self.frame, self.codes);
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

/// Leaves out italics, and translates colours to the classic sixteen-colour codes. The library writes them as 256-colour
/// codes, which an old terminal reads as blinking or hidden text.
fn translated(frame: &[u8], style_codes: StyleCodes) -> Vec<u8> {
    let mut out = Vec::with_capacity(frame.len());
    let mut rest = frame;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\x1b[") {
        let (before, sequence) = rest.split_at(at);
        out.extend_from_slice(before);
        let length = sequence.iter().skip(2).take_while(|byte| matches!(byte, b'0'..=b'9' | b';')).count() + 3;
        let (sequence, after) = sequence.split_at_checked(length).unwrap_or((sequence, b""));
        match sequence {
            [0x1b, b'[', codes @ .., b'm'] if !codes.is_empty() => out.extend(understood(codes, style_codes)),
            other => out.extend_from_slice(other),
        }
        rest = after;
    }
    out.extend_from_slice(rest);
    out
}

fn understood(codes: &[u8], StyleCodes { colours, italics }: StyleCodes) -> Vec<u8> {
    let codes = String::from_utf8_lossy(codes);
    let mut numbers = codes.split(';').map(|code| code.parse::<u16>().unwrap_or(0));
    let mut kept: Vec<String> = Vec::new();
    while let Some(number) = numbers.next() {
        match number {
            // A kind of colour and its numbers follow.
            38 | 48 | 58 if colours == ColourCodes::Extended => {
                kept.push(number.to_string());
                kept.extend(numbers.by_ref().map(|number| number.to_string()));
            }
            38 | 48 => {
                // A 5 and the colour number follow.
                let colour = numbers.nth(1).unwrap_or(0);
                let first = if colour < 8 { number - 8 } else { number + 52 - 8 };
                kept.push((first + colour).to_string());
            }
            // The underline colour, which such terminals do not have.
            59 if colours == ColourCodes::Classic => (),
            3 | 23 if italics == Italics::Missing => (),
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
            let classic = StyleCodes { colours: ColourCodes::Classic, italics: Italics::Shown };
            let got = String::from_utf8(translated(written.as_bytes(), classic)).unwrap();
            assert_eq!(got, expected, "{name}");
        }
    }

    #[test]
    fn t13_gnu_screen_gets_no_italics_because_it_would_reverse_them() {
        assert_eq!(italics("screen", "123.pts-1.host"), Italics::Missing);
        assert_eq!(italics("screen-256color", "123.pts-1.host"), Italics::Missing);
        assert_eq!(italics("screen-256color", ""), Italics::Shown, "tmux");
        assert_eq!(italics("xterm-256color", "123.pts-1.host"), Italics::Shown, "a terminal started from screen");
        #[rustfmt::skip]
        let cases = [
            ("italics",      "\x1b[3mx\x1b[23m",            "x"),
            ("with others",  "\x1b[1;3mx",                  "\x1b[1mx"),
            ("in a colour",  "\x1b[38;5;3;48;5;23mx",       "\x1b[38;5;3;48;5;23mx"),
            ("RGB values",   "\x1b[38;2;3;23;3mx\x1b[58;2;3;23;3mx", "\x1b[38;2;3;23;3mx\x1b[58;2;3;23;3mx"),
        ];
        let codes = StyleCodes { colours: ColourCodes::Extended, italics: Italics::Missing };
        for (name, written, expected) in cases {
            let got = String::from_utf8(translated(written.as_bytes(), codes)).unwrap();
            assert_eq!(got, expected, "{name}");
        }
    }
}
