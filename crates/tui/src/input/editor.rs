//! A few lines of text with a cursor. A large paste is one thing in it: it
//! shows as a token, is deleted as one, and unfolds when the text is sent.
#![expect(clippy::wildcard_enum_match_arm, reason = "keys are many and not ours; one we do not know does nothing")]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use crate::text::wrap::cluster_width;
use crate::text::{Ink, Row, Span, width_of};

/// Stands for the first paste; the next ones follow it. Private letters, so
/// no text has them by itself.
const FIRST_TOKEN: u32 = 0xF_0000;
const MOST_TOKENS: usize = 0xFFFD;
const LARGE_LINES: usize = 8;
const LARGE_BYTES: usize = 1000;
/// What was not pasted but written stays open longer.
const FOLDED_LINES: usize = 200;
const FOLDED_BYTES: usize = 20_000;

#[derive(Debug, Default)]
pub struct Editor {
    text: String,
    /// A byte position between two clusters.
    at: usize,
    pastes: Vec<String>,
    /// The column to come back to while moving up and down.
    goal: Option<usize>,
}

/// What became of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Yes,
    /// Not a key of the editor, or one that leads out of it.
    No,
}

impl Editor {
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text with tokens in it.
    pub fn raw(&self) -> &str {
        &self.text
    }

    pub fn cursor(&self) -> usize {
        self.at
    }

    /// The text with every paste in full.
    pub fn expanded(&self) -> String {
        let mut out = String::new();
        for letter in self.text.chars() {
            match self.paste_of(letter) {
                Some(paste) => out.push_str(paste),
                None => out.push(letter),
            }
        }
        out
    }

    /// Hands the text over and is empty again.
    pub fn take(&mut self) -> String {
        let text = self.expanded();
        *self = Editor::default();
        text
    }

    pub fn set(&mut self, text: &str) {
        *self = Editor::default();
        self.insert(text);
    }

    /// As [`Editor::set`]; what is too long to be seen at once is folded, so
    /// that a key does not cost more for it.
    pub fn fill(&mut self, text: &str) {
        *self = Editor::default();
        match text.lines().count() > FOLDED_LINES || text.len() > FOLDED_BYTES {
            true => self.paste(text),
            false => self.insert(text),
        }
    }

    pub fn insert(&mut self, text: &str) {
        let text: String = text.chars().filter(|letter| token_index(*letter).is_none() && *letter != '\r').collect();
        self.text.insert_str(self.at, &text);
        self.at += text.len();
        self.goal = None;
    }

    pub fn before_cursor(&self) -> Option<char> {
        self.head().chars().next_back()
    }

    pub fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let is_large = text.lines().count() > LARGE_LINES || text.len() > LARGE_BYTES;
        if !is_large || self.pastes.len() >= MOST_TOKENS {
            return self.insert(&text);
        }
        let token = u32::try_from(self.pastes.len()).ok().and_then(|index| char::from_u32(FIRST_TOKEN + index));
        if let Some(token) = token {
            self.pastes.push(text);
            self.text.insert(self.at, token);
            self.at += token.len_utf8();
        }
    }

    /// Puts the paste before the cursor into the text, letter by letter.
    pub fn unfold(&mut self) -> Taken {
        let Some(token) = self.head().chars().next_back() else { return Taken::No };
        let Some(paste) = self.paste_of(token).cloned() else { return Taken::No };
        self.remove(self.at - token.len_utf8(), self.at);
        self.insert(&paste);
        Taken::Yes
    }

    /// Replaces what stands between `from` and the cursor.
    pub fn complete(&mut self, from: usize, with: &str) {
        if self.text.is_char_boundary(from) && from <= self.at {
            self.text.replace_range(from..self.at, "");
            self.at = from;
            self.insert(with);
        }
    }

    pub fn key(&mut self, key: KeyEvent, width: usize) -> Taken {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let vertical = matches!(key.code, KeyCode::Up | KeyCode::Down);
        if !vertical {
            self.goal = None;
        }
        match key.code {
            KeyCode::Char('a') if control => self.at = self.line_start(),
            KeyCode::Char('e') if control => self.at = self.line_end(),
            KeyCode::Char('b') if alt => self.at = self.word_before(),
            KeyCode::Char('f') if alt => self.at = self.word_after(),
            KeyCode::Char('b') if control => self.at = self.before(self.at),
            KeyCode::Char('f') if control => self.at = self.after(self.at),
            KeyCode::Char('h') if control => self.remove(self.before(self.at), self.at),
            KeyCode::Char('d') if control && !self.is_empty() => self.remove(self.at, self.after(self.at)),
            KeyCode::Char('w') if control => self.remove(self.word_before(), self.at),
            KeyCode::Char('d') if alt => self.remove(self.at, self.word_after()),
            KeyCode::Char('u') if control => self.remove(self.line_start(), self.at),
            KeyCode::Char('k') if control => self.remove(self.at, self.line_end()),
            KeyCode::Char('j') if control => self.insert("\n"),
            KeyCode::Char(letter) if !control && !alt => self.insert(letter.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if alt || control => self.remove(self.word_before(), self.at),
            KeyCode::Backspace => self.remove(self.before(self.at), self.at),
            KeyCode::Delete => self.remove(self.at, self.after(self.at)),
            KeyCode::Left if control || alt => self.at = self.word_before(),
            KeyCode::Right if control || alt => self.at = self.word_after(),
            KeyCode::Left => self.at = self.before(self.at),
            KeyCode::Right => self.at = self.after(self.at),
            KeyCode::Home => self.at = self.line_start(),
            KeyCode::End => self.at = self.line_end(),
            KeyCode::Up => return self.move_row(-1, width),
            KeyCode::Down => return self.move_row(1, width),
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => self.insert("\n"),
            _ => return Taken::No,
        }
        Taken::Yes
    }

    fn paste_of(&self, letter: char) -> Option<&String> {
        self.pastes.get(token_index(letter)?)
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.at = from;
    }

    fn head(&self) -> &str {
        self.text.get(..self.at).unwrap_or("")
    }

    fn tail(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn before(&self, at: usize) -> usize {
        let head = self.text.get(..at).unwrap_or("");
        head.grapheme_indices(true).next_back().map_or(0, |(from, _)| from)
    }

    fn after(&self, at: usize) -> usize {
        let tail = self.text.get(at..).unwrap_or("");
        at + tail.graphemes(true).next().map_or(0, str::len)
    }

    fn line_start(&self) -> usize {
        self.head().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.at + self.tail().find('\n').unwrap_or(self.tail().len())
    }

    fn word_before(&self) -> usize {
        let words = self.head().unicode_word_indices();
        words.map(|(from, _)| from).rfind(|from| *from < self.at).unwrap_or(0)
    }

    fn word_after(&self) -> usize {
        let mut words = self.tail().unicode_word_indices();
        words.next().map_or(self.text.len(), |(from, word)| self.at + from + word.len())
    }

    /// Up and down by rows of the screen; beyond the first and last it leads out.
    fn move_row(&mut self, by: isize, width: usize) -> Taken {
        let places = self.places(width);
        let (row, column) = places.cursor;
        let goal = *self.goal.get_or_insert(column);
        let Some(row) = row.checked_add_signed(by) else { return Taken::No };
        let Some(cells) = places.rows.get(row) else { return Taken::No };
        self.at = cells.iter().rev().find(|cell| cell.column <= goal).map_or(self.at, |cell| cell.at);
        Taken::Yes
    }

    /// The rows of the text and where the cursor stands.
    pub fn rows(&self, width: usize) -> (Vec<Row>, (usize, usize)) {
        let places = self.places(width);
        let row = |cells: &Vec<Cell>| {
            let mut row = Row::default();
            for cell in cells {
                let ink = if cell.is_token { Ink::Accent } else { Ink::Plain };
                match row.spans.last_mut() {
                    Some(last) if last.ink == ink => last.text.push_str(&cell.text),
                    _ => row.spans.push(Span::new(ink, cell.text.clone())),
                }
            }
            row
        };
        (places.rows.iter().map(row).collect(), places.cursor)
    }

    fn places(&self, width: usize) -> Places {
        let width = width.max(2);
        let mut rows = vec![Vec::new()];
        let mut cursor = (0, 0);
        let mut column = 0;
        let mut put = |rows: &mut Vec<Vec<Cell>>, at: usize, text: String, is_token: bool, is_end: bool| {
            let wide = width_of(&text).min(width);
            if column + wide > width {
                rows.push(Vec::new());
                column = 0;
            }
            if at == self.at {
                cursor = (rows.len() - 1, column);
            }
            if let Some(row) = rows.last_mut() {
                row.push(Cell { at, column, text, is_token });
            }
            column += wide;
            if is_end {
                rows.push(Vec::new());
                column = 0;
            }
        };
        for (at, cluster) in self.text.grapheme_indices(true) {
            let paste = cluster.chars().next().and_then(|letter| self.paste_of(letter));
            match (cluster, paste) {
                ("\n", _) => put(&mut rows, at, String::new(), false, true),
                ("\t", _) => put(&mut rows, at, "    ".to_owned(), false, false),
                (_, Some(paste)) => put(&mut rows, at, token_label(paste), true, false),
                (cluster, None) => {
                    let text = if cluster_width(cluster) == 0 { String::new() } else { cluster.to_owned() };
                    put(&mut rows, at, text, false, false);
                }
            }
        }
        // The cursor behind the last letter needs a column of its own.
        put(&mut rows, self.text.len(), String::new(), false, false);
        if cursor.1 >= width {
            rows.push(vec![Cell { at: self.text.len(), column: 0, text: String::new(), is_token: false }]);
            cursor = (rows.len() - 1, 0);
        }
        Places { rows, cursor }
    }
}

struct Places {
    rows: Vec<Vec<Cell>>,
    cursor: (usize, usize),
}

struct Cell {
    at: usize,
    column: usize,
    text: String,
    is_token: bool,
}

fn token_index(letter: char) -> Option<usize> {
    let index = u32::from(letter).checked_sub(FIRST_TOKEN)? as usize;
    (index < MOST_TOKENS).then_some(index)
}

fn token_label(paste: &str) -> String {
    match paste.lines().count() {
        0 | 1 => format!("[pasted {} letters]", grouped(paste.chars().count())),
        lines => format!("[pasted {} lines]", grouped(lines)),
    }
}

/// `10,000`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys as `left`, `ctrl+w`; anything else is typed.
    fn press(editor: &mut Editor, keys: &[&str], width: usize) {
        for key in keys {
            let (modifiers, name) = match key.rsplit_once('+') {
                Some(("ctrl", name)) => (KeyModifiers::CONTROL, name),
                Some(("alt", name)) => (KeyModifiers::ALT, name),
                _ => (KeyModifiers::NONE, *key),
            };
            let code = match name {
                "left" => KeyCode::Left,
                "right" => KeyCode::Right,
                "up" => KeyCode::Up,
                "down" => KeyCode::Down,
                "home" => KeyCode::Home,
                "end" => KeyCode::End,
                "backspace" => KeyCode::Backspace,
                "delete" => KeyCode::Delete,
                "enter" => KeyCode::Enter,
                name if name.chars().count() == 1 => KeyCode::Char(name.chars().next().unwrap()),
                name => {
                    editor.insert(name);
                    continue;
                }
            };
            editor.key(KeyEvent::new(code, modifiers), width);
        }
    }

    #[test]
    fn t10_keys_edit_the_text() {
        #[rustfmt::skip]
        let cases: &[(&str, &[&str], &str)] = &[
            ("typed",                &["hello", "!"],                              "hello!‸"),
            ("left and insert",      &["ac", "left", "b"],                         "ab‸c"),
            ("backspace a cluster",  &["ae\u{301}", "backspace"],                  "a‸"),
            ("backspace an emoji",   &["a👩‍💻", "backspace"],                         "a‸"),
            ("delete",               &["abc", "home", "delete"],                   "‸bc"),
            ("word back",            &["one two", "alt+b"],                        "one ‸two"),
            ("delete word",          &["one two", "ctrl+w"],                       "one ‸"),
            ("kill line",            &["one two", "home", "ctrl+k"],               "‸"),
            ("newline",              &["ab", "left", "alt+enter"],                 "a\n‸b"),
            ("line start of second", &["ab", "ctrl+j", "cd", "ctrl+a"],            "ab\n‸cd"),
            ("up keeps the column",  &["abcd", "ctrl+j", "xyz", "up"],             "abc‸d\nxyz"),
            ("short line between",   &["abcd", "ctrl+j", "x", "ctrl+j", "efgh", "up", "up"], "abcd‸\nx\nefgh"),
            ("up in a wrapped line", &["abcdefgh", "up"],                          "abcd‸efgh"),
        ];
        for (name, keys, expected) in cases {
            let mut editor = Editor::default();
            press(&mut editor, keys, 4);
            if *name != "up in a wrapped line" {
                editor = Editor::default();
                press(&mut editor, keys, 40);
            }
            let shown = format!("{}‸{}", editor.head(), editor.tail());
            assert_eq!(&shown, expected, "{name}");
        }
    }

    #[test]
    fn t10_a_large_paste_is_one_thing_until_it_is_sent() {
        let mut editor = Editor::default();
        let paste = "line\n".repeat(312);
        editor.insert("look: ");
        editor.paste(&paste);
        editor.insert(" end");
        let (rows, _) = editor.rows(60);
        assert_eq!(rows[0].text(), "look: [pasted 312 lines] end");
        assert_eq!(editor.expanded(), format!("look: {paste} end"));
        press(&mut editor, &["left", "left", "left", "left", "backspace"], 60);
        assert_eq!(editor.take(), "look:  end");
        editor.paste("two\r\nlines");
        assert_eq!(editor.raw(), "two\nlines", "a small one is text");
        editor.set("see ");
        editor.paste(&"line\n".repeat(10_000));
        assert_eq!(editor.rows(60).0[0].text(), "see [pasted 10,000 lines]");
        assert_eq!((editor.unfold(), editor.unfold()), (Taken::Yes, Taken::No));
        assert_eq!(editor.raw(), format!("see {}", "line\n".repeat(10_000)));
    }

    #[test]
    fn the_cursor_is_always_on_the_screen() {
        for width in [1, 2, 3, 5, 40] {
            let mut editor = Editor::default();
            editor.insert("ab 漢字 e\u{301}\n\nlast");
            loop {
                let (rows, (row, column)) = editor.rows(width);
                assert!(row < rows.len() && column < width.max(2), "{width}: {row},{column}");
                if editor.at == 0 {
                    break;
                }
                press(&mut editor, &["left"], width);
            }
        }
    }
}
