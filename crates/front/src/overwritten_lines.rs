//! What a terminal would show of lines that a command overwrote, such as those of a progress bar.

use std::borrow::Cow;

use aside_core::terminal_text::terminal_safe;
use unicode_width::UnicodeWidthChar;

const BACKSPACE: char = '\u{8}';
const TAB_COLUMNS: usize = 8;
/// From here on, a tab takes one column: a line of tabs must not take many times its memory.
const MAX_TAB_COLUMN: usize = 4096;
/// A longer line is shown from its last return on: its columns would take many times its memory.
const MAX_LINE_BYTES: usize = 64 << 10;
const GOES_BACK: [char; 2] = ['\r', BACKSPACE];

/// Escape sequences that erase a line, or its rest.
const ERASERS: [&str; 3] = ["\x1b[K", "\x1b[0K", "\x1b[2K"];

/// The text as it stands on a terminal once it is written. A carriage return goes back to the first column and a backspace
/// one column, where the next letters replace the old ones. Before a line feed, a carriage return is a part of the line end.
pub fn without_overwritten(text: &str) -> Cow<'_, str> {
    if !text.contains(GOES_BACK) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let line = line.trim_end_matches('\r');
        if line.len() > MAX_LINE_BYTES {
            out.push_str(line.rsplit('\r').next().unwrap_or(line));
        } else if line.contains(GOES_BACK) {
            let mut shown = ShownLine::default();
            line.split_inclusive(GOES_BACK).for_each(|written| shown.write(written));
            shown.columns.iter().for_each(|column| out.push_str(column.text()));
        } else {
            out.push_str(line);
        }
        out.push_str(end);
    }
    Cow::Owned(out)
}

/// The columns of a line, and where the next letter goes.
#[derive(Default)]
struct ShownLine {
    columns: Vec<Column>,
    at: usize,
}

/// What a column has.
#[derive(Clone)]
enum Column {
    /// A letter with its marks.
    Letter(String),
    /// The second half of a wide letter.
    SecondHalf,
}

impl Column {
    fn text(&self) -> &str {
        match self {
            Column::Letter(text) => text,
            Column::SecondHalf => "",
        }
    }
}

impl ShownLine {
    /// Writes letters, then goes back if they end with that.
    fn write(&mut self, written: &str) {
        for letter in terminal_safe(written.trim_end_matches(GOES_BACK)).chars() {
            self.put(letter);
        }
        if ERASERS.iter().any(|eraser| written.contains(eraser)) {
            self.columns.truncate(self.at);
        }
        if written.ends_with('\r') {
            self.at = 0;
        } else if written.ends_with(BACKSPACE) {
            self.at = self.at.saturating_sub(1);
        }
    }

    fn put(&mut self, letter: char) {
        if letter == '\t' {
            let is_far = self.at >= MAX_TAB_COLUMN;
            self.at = if is_far { self.at + 1 } else { (self.at / TAB_COLUMNS + 1) * TAB_COLUMNS };
            return;
        }
        let width = letter.width().unwrap_or(0);
        if width == 0 {
            // A mark belongs to the letter before it.
            let before = self.columns.get_mut(..self.at).unwrap_or_default().iter_mut().rev();
            let mut letters =
                before.filter_map(|column| if let Column::Letter(text) = column { Some(text) } else { None });
            if let Some(text) = letters.next() {
                text.push(letter);
            }
            return;
        }
        let end = self.at + width;
        if self.columns.len() < end {
            self.columns.resize(end, Column::Letter(" ".to_owned()));
        }
        self.split_wide_letter(self.at);
        self.split_wide_letter(end);
        for (place, column) in self.columns.iter_mut().take(end).skip(self.at).enumerate() {
            *column = if place == 0 { Column::Letter(letter.to_string()) } else { Column::SecondHalf };
        }
        self.at = end;
    }

    /// If a wide letter has columns on both sides of this place, blanks remain of it.
    fn split_wide_letter(&mut self, place: usize) {
        if matches!(self.columns.get(place), Some(Column::SecondHalf)) {
            for column in self.columns.iter_mut().take(place + 1).skip(place.saturating_sub(1)) {
                *column = Column::Letter(" ".to_owned());
            }
        }
    }
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
            ("half a wide letter",  "🎭🎭🎭\rx",                    "x 🎭🎭"),
            ("from the middle",     "日本語\rA漢",                  "A漢 語"),
            ("two narrow letters",  "日本語\rAB",                   "AB本語"),
            ("marks",               "e\u{301}f\rZ",                "Zf"),
            ("a mark first",        "ab\r\u{301}c",                "cb"),
            ("backspaces",          "safe\u{8}\u{8}\u{8}\u{8}EVIL", "EVIL"),
            ("a spinner",           "|\u{8}/\u{8}-\u{8}done\n",     "done\n"),
            ("a tab",               "\tfoo\rbar",                  "bar     foo"),
            ("too far back",        "a\u{8}\u{8}\u{8}b",             "b"),
        ];
        for (name, text, expected) in cases {
            assert_eq!(without_overwritten(text), expected, "{name}");
        }
    }

    #[test]
    fn t17_long_lines_and_tabs_do_not_grow() {
        let tabs = format!("{}x\ry", "\t".repeat(60_000));
        let shown = without_overwritten(&tabs);
        assert!(shown.starts_with('y') && shown.ends_with('x') && shown.len() < 70_000, "{}", shown.len());
        let long = format!("{}\rthe end\n", "x".repeat(MAX_LINE_BYTES));
        assert_eq!(without_overwritten(&long), "the end\n");
    }
}
