//! Makes text of models and tools safe for a terminal (T9): removes escape
//! sequences, control characters and bidi overrides. Storage, pipes and files
//! get the original text.

use std::borrow::Cow;

/// Removes everything that could move the cursor, change colours or deceive the
/// user. It keeps its state between pieces of text, so that a sequence split
/// over two deltas is recognised.
#[derive(Debug, Default, Clone)]
pub struct TerminalFilter {
    state: EscapeState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// A control sequence, up to its final character.
    Control,
    /// A command string to the terminal (title, clipboard, link), up to its
    /// end.
    Command,
    /// ESC inside such a string, which may start its terminator.
    CommandEscape,
    /// After CR, which is half of a line end or a line end by itself.
    Return,
}

impl TerminalFilter {
    /// A filter at the start of a text.
    pub fn new() -> TerminalFilter {
        TerminalFilter::default()
    }

    /// The safe text. Text that is already safe is not copied.
    pub fn take<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        if self.state == EscapeState::Text && (is_plain(text) || text.chars().all(is_terminal_safe)) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        for character in text.chars() {
            self.push_char(character, &mut out);
        }
        Cow::Owned(out)
    }

    fn push_char(&mut self, character: char, out: &mut String) {
        if self.state == EscapeState::Return && character != '\r' {
            // Text that a terminal would overwrite becomes a line of its own.
            if character != '\n' {
                out.push('\n');
            }
            self.state = EscapeState::Text;
        }
        if self.passes(character) {
            out.push(character);
        }
    }

    fn passes(&mut self, character: char) -> bool {
        let (next, passes) = match (self.state, character) {
            // Line ends always pass: an unfinished sequence must not swallow
            // the rest of the text.
            (_, '\n') => (EscapeState::Text, true),
            (EscapeState::Text | EscapeState::Return, '\r') => (EscapeState::Return, false),
            (EscapeState::Text | EscapeState::Return, '\u{1b}') => (EscapeState::Escape, false),
            (EscapeState::Text | EscapeState::Return, '\u{9b}') => (EscapeState::Control, false),
            (EscapeState::Text | EscapeState::Return, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => {
                (EscapeState::Command, false)
            }
            (EscapeState::Text | EscapeState::Return, character) => (EscapeState::Text, is_terminal_safe(character)),
            (EscapeState::Escape, '[') => (EscapeState::Control, false),
            (EscapeState::Escape, ']' | 'P' | 'X' | '^' | '_') => (EscapeState::Command, false),
            (EscapeState::Escape, '\u{1b}') => (EscapeState::Escape, false),
            // One more character follows, as in ESC ( B.
            (EscapeState::Escape, ' '..='/') => (EscapeState::Escape, false),
            (EscapeState::Escape, '0'..='~') => (EscapeState::Text, false),
            (EscapeState::Escape, character) => (EscapeState::Text, is_terminal_safe(character)),
            (EscapeState::Control, ' '..='?') => (EscapeState::Control, false),
            (EscapeState::Control, '@'..='~') => (EscapeState::Text, false),
            (EscapeState::Control, '\u{1b}') => (EscapeState::Escape, false),
            (EscapeState::Control, character) => (EscapeState::Text, is_terminal_safe(character)),
            (EscapeState::Command, '\u{7}' | '\u{9c}') => (EscapeState::Text, false),
            (EscapeState::Command, '\u{1b}') => (EscapeState::CommandEscape, false),
            (EscapeState::Command, _) => (EscapeState::Command, false),
            (EscapeState::CommandEscape, '\\') => (EscapeState::Text, false),
            (EscapeState::CommandEscape, '\u{1b}') => (EscapeState::CommandEscape, false),
            // Not the terminator: the string is abandoned, and a new sequence
            // starts.
            (EscapeState::CommandEscape, '[') => (EscapeState::Control, false),
            (EscapeState::CommandEscape, ']' | 'P' | 'X' | '^' | '_') => (EscapeState::Command, false),
            (EscapeState::CommandEscape, _) => (EscapeState::Text, false),
        };
        self.state = next;
        passes
    }
}

/// Makes a whole text safe.
pub fn terminal_safe(text: &str) -> Cow<'_, str> {
    TerminalFilter::new().take(text)
}

/// The same on one line, for a name, a title or a status.
pub fn terminal_safe_line(text: &str) -> String {
    let shown = terminal_safe(text);
    let lines: Vec<&str> = shown.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ⏎ ").replace('\t', " ")
}

/// Whether the text is only printable ASCII, tabs and line ends. Fast, because
/// it does not decode characters.
fn is_plain(text: &str) -> bool {
    let plain = |byte: &u8| matches!(*byte, b' '..=b'~' | b'\n' | b'\t');
    text.as_bytes().chunks(64).all(|bytes| bytes.iter().fold(true, |all, byte| all & plain(byte)))
}

/// Tabs and line ends are safe, other controls are not. Characters that change
/// the writing direction can make a line look different.
pub fn is_terminal_safe(character: char) -> bool {
    match character {
        '\n' | '\t' => true,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        // Directional marks, and deprecated format characters.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{206a}'..='\u{206f}' => false,
        // Interlinear annotations, which terminals do not draw.
        '\u{fff9}'..='\u{fffb}' => false,
        // Line and paragraph separators would break a row of the screen.
        '\u{2028}' | '\u{2029}' | '\u{feff}' => false,
        // Tag characters: invisible, can carry hidden text.
        '\u{e0000}'..='\u{e007f}' => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn t9_escape_sequences_are_removed() {
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
            assert_eq!(terminal_safe(text), shown, "{name}");
        }
    }

    #[test]
    fn t9_a_name_stays_on_its_line() {
        assert_eq!(terminal_safe_line("read\n\u{1b}[2J\r\nall\tof it\n"), "read ⏎ all of it");
    }

    proptest! {
        #[test]
        fn t9_any_split_shows_the_same(text in "[a-c\\[\\];0-9m\u{1b}\u{7}\u{9b}\r\n\u{202e}\\\\]{0,40}", at in 0usize..40) {
            let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let (first, second) = text.split_at(at);
            let mut split = TerminalFilter::new();
            let shown = split.take(first).into_owned() + &split.take(second);
            prop_assert_eq!(&shown, &terminal_safe(&text));
            prop_assert!(shown.chars().all(is_terminal_safe), "{:?}", shown);
        }
    }
}
