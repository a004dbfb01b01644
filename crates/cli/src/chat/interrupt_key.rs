//! Ctrl+C at the line prompt.
//!
//! By default the terminal throws the typed line away and sends a signal, so the program cannot know whether there was
//! a line to clear. While a line is read, Ctrl+C therefore ends the line instead, and the program gets both.

use std::io::{self, BufRead};
use std::sync::{Mutex, PoisonError};

use rustix::termios::{OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

/// What Ctrl+C sends.
const CTRL_C: u8 = 0x03;

/// The value of a special character that is switched off. `_POSIX_VDISABLE` has no name in rustix.
const DISABLED: u8 = if cfg!(any(target_os = "linux", target_os = "android")) { 0 } else { 0xff };

/// The modes of the terminal before they were changed.
static SAVED: Mutex<Option<Termios>> = Mutex::new(None);

/// Makes Ctrl+C end the line that is being typed. Without a terminal, nothing happens.
pub(super) fn take() {
    let mut saved = SAVED.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(mut modes) = tcgetattr(io::stdin()) else { return };
    if modes.special_codes[SpecialCodeIndex::VINTR] != CTRL_C {
        // Already taken, or the user's terminal has another key for it.
        return;
    }
    saved.get_or_insert_with(|| modes.clone());
    modes.special_codes[SpecialCodeIndex::VINTR] = DISABLED;
    modes.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
    // If it fails, Ctrl+C still sends the signal.
    let _: rustix::io::Result<()> = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
}

/// Gives Ctrl+C back to the terminal.
pub(super) fn release() {
    let mut saved = SAVED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(modes) = saved.take() {
        // There is no way to report a failure here.
        let _: rustix::io::Result<()> = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
    }
}

/// What was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypedLine {
    Line(String),
    /// Ctrl+C, and what was typed before it.
    Interrupted(String),
    EndOfInput,
}

/// Reads up to the end of a line, or from a terminal up to Ctrl+C.
pub(super) fn read_line(input: &mut impl BufRead, is_terminal: bool) -> TypedLine {
    let ends_line = |byte: &u8| *byte == b'\n' || is_terminal && *byte == CTRL_C;
    let mut line = Vec::new();
    loop {
        let bytes = match input.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return TypedLine::EndOfInput,
        };
        let end = bytes.iter().position(ends_line);
        let taken = end.map_or(bytes.len(), |end| end + 1);
        let is_at_end = bytes.is_empty();
        line.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        input.consume(taken);
        if end.is_some() || is_at_end {
            break;
        }
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match line.split_last() {
        None => TypedLine::EndOfInput,
        Some((&CTRL_C, draft)) if is_terminal => TypedLine::Interrupted(text(draft)),
        Some(_) => TypedLine::Line(text(&line).trim_end_matches(['\n', '\r']).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t16_ctrl_c_ends_a_line_of_a_terminal_only() {
        let line = |text: &str| TypedLine::Line(text.to_owned());
        let interrupted = |text: &str| TypedLine::Interrupted(text.to_owned());
        #[rustfmt::skip]
        let cases: &[(&str, &[u8], bool, &[TypedLine])] = &[
            ("lines",                   b"one\r\ntwo\n",   true,  &[line("one"), line("two")]),
            ("a draft",                 b"dra\x03next\n",  true,  &[interrupted("dra"), line("next")]),
            ("an empty line",           b"\x03",           true,  &[interrupted("")]),
            ("the byte in a pipe",      b"dra\x03ft\n",    false, &[line("dra\u{3}ft")]),
            ("the last line of a file", b"one\ntwo",       false, &[line("one"), line("two")]),
        ];
        for (name, typed, is_terminal, expected) in cases {
            // Pieces, as a terminal delivers them.
            let mut input = std::io::BufReader::with_capacity(2, *typed);
            let mut found = Vec::new();
            loop {
                match read_line(&mut input, *is_terminal) {
                    TypedLine::EndOfInput => break,
                    typed @ (TypedLine::Line(_) | TypedLine::Interrupted(_)) => found.push(typed),
                }
            }
            assert_eq!(found, *expected, "{name}");
        }
    }
}
