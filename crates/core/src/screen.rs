//! Text of models and tools on its way to a terminal (T9): escape sequences,
//! control characters and bidi overrides do not reach it. Storage, pipes and
//! files get the text as it is.

use std::borrow::Cow;

/// Takes out what could move, colour or deceive. It keeps its place between
/// pieces of text, so that a sequence split over two deltas is still one.
#[derive(Debug, Default, Clone)]
pub struct Neutral {
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// Behind ESC.
    Escape,
    /// A control sequence, until its final letter.
    Control,
    /// A string to the terminal (title, clipboard, link), until its end.
    Command,
    /// ESC inside such a string, which may begin its end.
    CommandEscape,
    /// Behind CR, which is half of a line end or one by itself.
    Return,
}

impl Neutral {
    pub fn new() -> Neutral {
        Neutral::default()
    }

    /// The text that may be shown. Text without anything to take out is not copied.
    pub fn take<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        if self.state == State::Text && (is_plain(text) || text.chars().all(is_harmless)) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        for letter in text.chars() {
            self.letter(letter, &mut out);
        }
        Cow::Owned(out)
    }

    fn letter(&mut self, letter: char, out: &mut String) {
        if self.state == State::Return && letter != '\r' {
            // What a terminal would write over is not hidden: it is a line.
            if letter != '\n' {
                out.push('\n');
            }
            self.state = State::Text;
        }
        if self.passes(letter) {
            out.push(letter);
        }
    }

    fn passes(&mut self, letter: char) -> bool {
        let (next, passes) = match (self.state, letter) {
            // A line end always gets through: an unfinished sequence must not
            // swallow the rest of an answer.
            (_, '\n') => (State::Text, true),
            (State::Text | State::Return, '\r') => (State::Return, false),
            (State::Text | State::Return, '\u{1b}') => (State::Escape, false),
            (State::Text | State::Return, '\u{9b}') => (State::Control, false),
            (State::Text | State::Return, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => {
                (State::Command, false)
            }
            (State::Text | State::Return, letter) => (State::Text, is_harmless(letter)),
            (State::Escape, '[') => (State::Control, false),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => (State::Command, false),
            (State::Escape, '\u{1b}') => (State::Escape, false),
            // ESC ( B and the like: one more letter follows.
            (State::Escape, ' '..='/') => (State::Escape, false),
            (State::Escape, '0'..='~') => (State::Text, false),
            (State::Escape, letter) => (State::Text, is_harmless(letter)),
            (State::Control, ' '..='?') => (State::Control, false),
            (State::Control, '@'..='~') => (State::Text, false),
            (State::Control, '\u{1b}') => (State::Escape, false),
            (State::Control, letter) => (State::Text, is_harmless(letter)),
            (State::Command, '\u{7}' | '\u{9c}') => (State::Text, false),
            (State::Command, '\u{1b}') => (State::CommandEscape, false),
            (State::Command, _) => (State::Command, false),
            (State::CommandEscape, '\\') => (State::Text, false),
            (State::CommandEscape, '\u{1b}') => (State::CommandEscape, false),
            // Not its end: the sequence is given up and a new one begins.
            (State::CommandEscape, '[') => (State::Control, false),
            (State::CommandEscape, ']' | 'P' | 'X' | '^' | '_') => (State::Command, false),
            (State::CommandEscape, _) => (State::Text, false),
        };
        self.state = next;
        passes
    }
}

/// All of a text at once.
pub fn neutral(text: &str) -> Cow<'_, str> {
    Neutral::new().take(text)
}

/// The same on one line: a name, a title, a status.
pub fn neutral_line(text: &str) -> String {
    let shown = neutral(text);
    let lines: Vec<&str> = shown.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ⏎ ").replace('\t', " ")
}

/// Nothing but printable ASCII, tabs and line ends: seen without looking at
/// each letter by itself.
fn is_plain(text: &str) -> bool {
    let plain = |byte: &u8| matches!(*byte, b' '..=b'~' | b'\n' | b'\t');
    text.as_bytes().chunks(64).all(|bytes| bytes.iter().fold(true, |all, byte| all & plain(byte)))
}

/// Tabs and line ends are text; other controls are not. Letters that turn the
/// direction of writing make a line read differently from what it says.
pub fn is_harmless(letter: char) -> bool {
    match letter {
        '\n' | '\t' => true,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        // Marks that turn the signs beside them, and forms nobody should use.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{206a}'..='\u{206f}' => false,
        // Notes between the lines, which terminals draw in none.
        '\u{fff9}'..='\u{fffb}' => false,
        // Line and paragraph separators would break a row of the screen.
        '\u{2028}' | '\u{2029}' | '\u{feff}' => false,
        // Tags: invisible letters that carry hidden text.
        '\u{e0000}'..='\u{e007f}' => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn t9_nothing_of_a_sequence_reaches_the_terminal() {
        #[rustfmt::skip]
        let cases = [
            ("plain",                 "a\tb\nc é 漢 🎭",               "a\tb\nc é 漢 🎭"),
            ("colour",                "a\u{1b}[31;1mb\u{1b}[0mc",      "abc"),
            ("cursor and clear",      "a\u{1b}[2J\u{1b}[1;1Hb",        "ab"),
            ("title, ended by BEL",   "a\u{1b}]0;owned\u{7}b",         "ab"),
            ("link, ended by ST",     "a\u{1b}]8;;http://x\u{1b}\\b",  "ab"),
            ("clipboard",             "\u{1b}]52;c;ZXZpbA==\u{7}ok",   "ok"),
            ("device string",         "a\u{1b}Pq#0\u{1b}\\b",          "ab"),
            ("C1 control sequence",   "a\u{9b}31mb",                   "ab"),
            ("C1 command",            "a\u{9d}0;t\u{9c}b",             "ab"),
            ("two-letter escapes",    "a\u{1b}cb\u{1b}7c",             "abc"),
            ("character set",         "a\u{1b}(Bb",                    "ab"),
            ("bell, backspace, DEL",  "a\u{7}\u{8}\u{7f}b",            "ab"),
            ("a lone CR",             "10%\r20%\r",                    "10%\n20%"),
            ("CR and LF",             "a\r\nb\r\r\nc",                 "a\nb\nc"),
            ("other strings",         "a\u{1b}X1\u{1b}\\b\u{1b}^2\u{1b}\\c\u{1b}_3\u{1b}\\d", "abcd"),
            ("C1 strings",            "a\u{90}1\u{9c}b\u{98}2\u{9c}c\u{9e}3\u{9c}d\u{9f}4\u{9c}e", "abcde"),
            ("single shifts",         "a\u{1b}Nb\u{1b}Oc\u{8e}d\u{8f}e",  "abcde"),
            ("all of C0 and C1",      "a\u{0}\u{5}\u{e}\u{f}\u{11}\u{80}\u{84}\u{85}\u{8d}\u{9a}b", "ab"),
            ("bidi overrides",        "a\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}b", "ab"),
            ("bidi isolates",         "a\u{2066}\u{2067}\u{2068}\u{2069}b", "ab"),
            ("bidi marks",            "a\u{200e}\u{200f}\u{61c}b",      "ab"),
            ("old format letters",    "a\u{206a}\u{206f}\u{fff9}\u{fffb}b", "ab"),
            ("separators",            "a\u{2028}\u{2029}\u{feff}b",     "ab"),
            ("variations stay",       "❤\u{fe0f} 葛\u{e0100}",          "❤\u{fe0f} 葛\u{e0100}"),
            ("hidden tag letters",    "a\u{e0041}\u{e0042}b",          "ab"),
            ("joiners stay",          "👩\u{200d}💻",                  "👩\u{200d}💻"),
            ("a lone ESC at the end", "a\u{1b}",                       "a"),
            ("an open command ends with its line", "\u{1b}]0;x\nb",    "\nb"),
        ];
        for (name, text, shown) in cases {
            assert_eq!(neutral(text), shown, "{name}");
        }
    }

    #[test]
    fn t9_a_name_stays_on_its_line() {
        assert_eq!(neutral_line("read\n\u{1b}[2J\r\nall\tof it\n"), "read ⏎ all of it");
    }

    proptest! {
        #[test]
        fn t9_any_split_shows_the_same(text in "[a-c\\[\\];0-9m\u{1b}\u{7}\u{9b}\r\n\u{202e}\\\\]{0,40}", at in 0usize..40) {
            let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let (first, second) = text.split_at(at);
            let mut split = Neutral::new();
            let shown = split.take(first).into_owned() + &split.take(second);
            prop_assert_eq!(&shown, &neutral(&text));
            prop_assert!(shown.chars().all(is_harmless), "{:?}", shown);
        }
    }
}
