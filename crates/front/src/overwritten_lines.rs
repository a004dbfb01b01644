//! What a terminal would show of lines that a command overwrote, such as those of a progress bar.

use std::borrow::Cow;

use aside_core::terminal_text::terminal_safe;

/// Escape sequences that erase a line, or its rest.
const ERASERS: [&str; 3] = ["\x1b[K", "\x1b[0K", "\x1b[2K"];

/// The text as it stands on a terminal once it is written. A carriage return goes back to the first column, where the
/// next letters replace the old ones. Before a line feed it is a part of the line end.
pub fn without_overwritten(text: &str) -> Cow<'_, str> {
    if !text.contains('\r') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let line = line.trim_end_matches('\r');
        if line.contains('\r') {
            out.extend(remaining_letters(line));
        } else {
            out.push_str(line);
        }
        out.push_str(end);
    }
    Cow::Owned(out)
}

fn remaining_letters(line: &str) -> Vec<char> {
    let mut shown: Vec<char> = Vec::new();
    for written in line.split('\r') {
        let n_letters = terminal_safe(written).chars().enumerate().fold(0, |_, (column, letter)| {
            match shown.get_mut(column) {
                Some(old) => *old = letter,
                None => shown.push(letter),
            }
            column + 1
        });
        if ERASERS.iter().any(|eraser| written.contains(eraser)) {
            shown.truncate(n_letters);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t17_an_overwritten_line_is_what_a_terminal_shows() {
        #[rustfmt::skip]
        let cases = [
            ("nothing overwritten", "one\ntwo",                    "one\ntwo"),
            ("line ends of Windows", "one\r\ntwo\r\n",             "one\ntwo\n"),
            ("two returns",         "one\r\r\ntwo",                "one\ntwo"),
            ("a progress bar",      "  1%\r 50%\r100%\ndone\n",    "100%\ndone\n"),
            ("not finished",        "start\n 1%\r 2%\r",           "start\n 2%"),
            ("a shorter text",      "Downloading\rDone",           "Doneloading"),
            ("erased first",        "Downloading\r\u{1b}[KDone",   "Done"),
            ("erased whole",        "Downloading\r\u{1b}[2KDone\n", "Done\n"),
            ("colours",             "\u{1b}[32mold\u{1b}[0m\r\u{1b}[31mn\u{1b}[0m", "nld"),
            ("empty lines",         "\r\n\r\nend",                 "\n\nend"),
            ("an emoji",            "漢字\r🎭",                     "🎭字"),
        ];
        for (name, text, expected) in cases {
            assert_eq!(without_overwritten(text), expected, "{name}");
        }
    }
}
