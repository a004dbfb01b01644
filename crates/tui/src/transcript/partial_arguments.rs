//! Reads the arguments of a call while the model writes them: the strings of a JSON object that is not
//! complete yet.

use aside_front::tool_call::PATH_ARGUMENTS;

/// Reads the strings among the top-level members of an object. Each piece costs time proportional to its
/// length.
#[derive(Debug, Default)]
pub(super) struct PartialArguments {
    state: JsonState,
    /// How many objects and arrays are open.
    depth: usize,
    /// The last member name at the top level.
    name: String,
    /// The text of the string that is being read.
    text: String,
    escape: Escape,
    /// What the call acts on, once it is complete.
    pub(super) subject: Option<String>,
    /// The text that a write or an edit puts into a file.
    pub(super) content: String,
    n_line_ends: usize,
    /// The text that an edit replaces.
    pub(super) replaced: String,
    /// The members of an edit were seen.
    is_edit: bool,
}

/// What happens to a line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineChange {
    /// A line of a whole file.
    Written,
    Added,
    Removed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum JsonState {
    /// Before a member name, or between other tokens.
    #[default]
    Outside,
    /// In a string that may be a member name.
    Name,
    /// After a member name and its colon.
    Value,
    /// In a string value of the top level.
    Text,
    /// In a string further below.
    Skipped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Escape {
    #[default]
    None,
    Backslash,
    /// Inside `\uXXXX`: the digits so far.
    Unicode {
        digits: u8,
        value: u32,
        /// The first half of a surrogate pair.
        high: Option<u32>,
    },
    /// After the first half of a surrogate pair, before `\u`.
    High(u32),
    HighBackslash(u32),
}

/// The members with a whole file, and with the new and the old text of an edit.
const WRITTEN: &str = "content";
const ADDED: &str = "new";
const REPLACED: &str = "old";

impl PartialArguments {
    pub(super) fn push(&mut self, piece: &str) {
        for letter in piece.chars() {
            match self.state {
                JsonState::Outside => self.outside(letter),
                JsonState::Value => self.value(letter),
                JsonState::Name | JsonState::Text | JsonState::Skipped => self.inside_string(letter),
            }
        }
    }

    /// Whether no text for a file is known yet.
    pub(super) fn is_empty(&self) -> bool {
        self.content.is_empty() && self.replaced.is_empty()
    }

    /// How many lines of new text there are so far.
    pub(super) fn n_lines(&self) -> usize {
        self.n_line_ends + usize::from(!self.content.is_empty() && !self.content.ends_with('\n'))
    }

    /// The newest lines: of the replaced text, then of the new one.
    pub(super) fn last_lines(&self, most: usize) -> Vec<(LineChange, &str)> {
        let new = if self.is_edit { LineChange::Added } else { LineChange::Written };
        let mut newest = last_lines(&self.content, new, most);
        newest.extend(last_lines(&self.replaced, LineChange::Removed, most));
        newest.truncate(most);
        newest.reverse();
        newest
    }

    fn outside(&mut self, letter: char) {
        match letter {
            '{' | '[' => self.depth += 1,
            '}' | ']' => self.depth = self.depth.saturating_sub(1),
            ':' if self.depth == 1 => self.state = JsonState::Value,
            '"' => {
                self.text.clear();
                self.state = if self.depth == 1 { JsonState::Name } else { JsonState::Skipped };
            }
            _ => (),
        }
    }

    fn value(&mut self, letter: char) {
        match letter {
            '"' => {
                self.text.clear();
                self.state = JsonState::Text;
            }
            letter if letter.is_whitespace() => (),
            letter => {
                self.state = JsonState::Outside;
                self.outside(letter);
            }
        }
    }

    fn inside_string(&mut self, letter: char) {
        match (self.escape, letter) {
            (Escape::None, '"') => self.end_string(),
            (Escape::None, '\\') => self.escape = Escape::Backslash,
            (Escape::None, letter) => self.add(letter),
            (Escape::Backslash, 'u') => self.escape = Escape::Unicode { digits: 0, value: 0, high: None },
            (Escape::Backslash, letter) => {
                self.escape = Escape::None;
                self.add(match letter {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    other => other,
                });
            }
            (Escape::Unicode { digits, value, high }, letter) => self.unicode(digits, value, high, letter),
            (Escape::High(high), '\\') => self.escape = Escape::HighBackslash(high),
            (Escape::HighBackslash(high), 'u') => {
                self.escape = Escape::Unicode { digits: 0, value: 0, high: Some(high) };
            }
            (Escape::High(_), letter) => {
                self.escape = Escape::None;
                self.add(char::REPLACEMENT_CHARACTER);
                self.inside_string(letter);
            }
            (Escape::HighBackslash(_), letter) => {
                self.escape = Escape::Backslash;
                self.add(char::REPLACEMENT_CHARACTER);
                self.inside_string(letter);
            }
        }
    }

    fn unicode(&mut self, digits: u8, value: u32, high: Option<u32>, letter: char) {
        let value = value << 4 | letter.to_digit(16).unwrap_or(0);
        if digits < 3 {
            self.escape = Escape::Unicode { digits: digits + 1, value, high };
            return;
        }
        self.escape = Escape::None;
        match (high, value) {
            (None, 0xD800..=0xDBFF) => self.escape = Escape::High(value),
            (Some(high), 0xDC00..=0xDFFF) => {
                let pair = 0x10000 + ((high - 0xD800) << 10) + (value - 0xDC00);
                self.add(char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            (_, value) => self.add(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }

    fn add(&mut self, letter: char) {
        match self.state {
            JsonState::Text if self.name == WRITTEN || self.name == ADDED => {
                self.n_line_ends += usize::from(letter == '\n');
                self.content.push(letter);
            }
            JsonState::Text if self.name == REPLACED => self.replaced.push(letter),
            JsonState::Name | JsonState::Text => self.text.push(letter),
            JsonState::Outside | JsonState::Value | JsonState::Skipped => (),
        }
    }

    fn end_string(&mut self) {
        match self.state {
            JsonState::Name => {
                self.name = std::mem::take(&mut self.text);
                self.is_edit |= self.name == ADDED || self.name == REPLACED;
            }
            JsonState::Text if PATH_ARGUMENTS.contains(&self.name.as_str()) => {
                self.subject = Some(std::mem::take(&mut self.text))
            }
            JsonState::Text | JsonState::Outside | JsonState::Value | JsonState::Skipped => self.text.clear(),
        }
        self.state = JsonState::Outside;
    }
}

/// The last lines of a text, the last one first.
fn last_lines(text: &str, change: LineChange, most: usize) -> Vec<(LineChange, &str)> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() {
        return Vec::new();
    }
    text.rsplit('\n').take(most).map(|line| (change, line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t17_the_path_and_the_content_are_known_while_the_arguments_stream() {
        let mut arguments = PartialArguments::default();
        arguments.push(r#"{"path":"src/m"#);
        assert_eq!(arguments.subject, None, "a part of a path is not a path");
        arguments.push(r#"ain.rs", "content":"fn main() {\n    pri"#);
        assert_eq!(arguments.subject.as_deref(), Some("src/main.rs"));
        assert_eq!(arguments.content, "fn main() {\n    pri");
    }

    #[test]
    fn t17_any_pieces_give_what_a_json_reader_reads() {
        let text = "a\"b\\c\n\té€😀\u{1}/";
        let json = serde_json::json!({
            "deep": {"path": "no", "list": ["content", {"content": "no"}]},
            "number": 12,
            "path": text,
            "old": "x\ny",
            "content": text,
        });
        for json in [json.to_string(), json.to_string().replace('😀', "\\ud83d\\ude00").replace('é', "\\u00e9")] {
            for size in [1, 2, 3, 7, 1000] {
                let mut arguments = PartialArguments::default();
                let letters: Vec<char> = json.chars().collect();
                letters.chunks(size).for_each(|piece| arguments.push(&piece.iter().collect::<String>()));
                assert_eq!(arguments.subject.as_deref(), Some(text), "{size}");
                assert_eq!((arguments.content.as_str(), arguments.replaced.as_str()), (text, "x\ny"), "{size}");
            }
        }
    }

    #[test]
    fn t17_broken_json_neither_panics_nor_grows_beyond_its_input() {
        for json in [r#"{"path":"\ud83d"}"#, r#"{"content":"\ud83dx\u12"#, "}}]]", r#"{"a":}:"content":"x""#, "\"\\u"] {
            let mut arguments = PartialArguments::default();
            arguments.push(json);
            assert!(arguments.content.len() <= json.len() * 3);
        }
    }
}
