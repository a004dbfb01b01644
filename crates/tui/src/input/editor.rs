//! A multi-line text editor. A large paste is a single placeholder: it is deleted as one character
//! and expanded when the text is sent.
#![expect(clippy::wildcard_enum_match_arm, reason = "crossterm defines many keys; the others do nothing")]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use crate::text::wrap::grapheme_width;
use crate::text::{Row, Span, TextRole, width_of};

/// The placeholder of the first paste; later ones follow it. Private-use characters, which no
/// ordinary text contains.
const FIRST_PLACEHOLDER: u32 = 0xF_0000;
const MAX_PLACEHOLDERS: usize = 0xFFFD;
const LARGE_LINES: usize = 8;
const LARGE_BYTES: usize = 1000;
/// Text that was typed, not pasted, folds only beyond these sizes.
const FOLD_LINES: usize = 200;
const FOLD_BYTES: usize = 20_000;

#[derive(Debug, Default)]
pub struct Editor {
    text: String,
    /// A byte position between two graphemes.
    at: usize,
    pastes: Vec<String>,
    /// The column to return to while moving up and down.
    goal_column: Option<usize>,
}

/// Whether a key was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHandled {
    Yes,
    /// Not a key of the editor, or a move out of it.
    No,
}

impl Editor {
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text with its placeholders.
    pub fn raw(&self) -> &str {
        &self.text
    }

    pub fn cursor(&self) -> usize {
        self.at
    }

    /// The text with all pastes expanded.
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

    /// Takes the expanded text and clears the editor.
    pub fn take(&mut self) -> String {
        let text = self.expanded();
        *self = Editor::default();
        text
    }

    pub fn set(&mut self, text: &str) {
        *self = Editor::default();
        self.insert(text);
    }

    /// Like [`Editor::set`], but folds a long text, so that keys stay cheap.
    pub fn fill(&mut self, text: &str) {
        *self = Editor::default();
        match text.lines().count() > FOLD_LINES || text.len() > FOLD_BYTES {
            true => self.paste(text),
            false => self.insert(text),
        }
    }

    pub fn insert(&mut self, text: &str) {
        let text: String =
            text.chars().filter(|letter| placeholder_index(*letter).is_none() && *letter != '\r').collect();
        self.text.insert_str(self.at, &text);
        self.at += text.len();
        self.goal_column = None;
    }

    pub fn before_cursor(&self) -> Option<char> {
        self.head().chars().next_back()
    }

    pub fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let is_large = text.lines().count() > LARGE_LINES || text.len() > LARGE_BYTES;
        if !is_large || self.pastes.len() >= MAX_PLACEHOLDERS {
            return self.insert(&text);
        }
        let placeholder =
            u32::try_from(self.pastes.len()).ok().and_then(|index| char::from_u32(FIRST_PLACEHOLDER + index));
        if let Some(placeholder) = placeholder {
            self.pastes.push(text);
            self.text.insert(self.at, placeholder);
            self.at += placeholder.len_utf8();
        }
    }

    /// Expands the paste before the cursor.
    pub fn unfold(&mut self) -> KeyHandled {
        let Some(placeholder) = self.head().chars().next_back() else { return KeyHandled::No };
        let Some(paste) = self.paste_of(placeholder).cloned() else { return KeyHandled::No };
        self.remove(self.at - placeholder.len_utf8(), self.at);
        self.insert(&paste);
        KeyHandled::Yes
    }

    /// Replaces the text between `from` and the cursor.
    pub fn complete(&mut self, from: usize, with: &str) {
        if self.text.is_char_boundary(from) && from <= self.at {
            self.text.replace_range(from..self.at, "");
            self.at = from;
            self.insert(with);
        }
    }

    pub fn key(&mut self, key: KeyEvent, width: usize) -> KeyHandled {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let vertical = matches!(key.code, KeyCode::Up | KeyCode::Down);
        if !vertical {
            self.goal_column = None;
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
            _ => return KeyHandled::No,
        }
        KeyHandled::Yes
    }

    fn paste_of(&self, letter: char) -> Option<&String> {
        self.pastes.get(placeholder_index(letter)?)
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

    /// Moves by screen rows. Not handled beyond the first or last row.
    fn move_row(&mut self, by: isize, width: usize) -> KeyHandled {
        let layout = self.layout(width);
        let (row, column) = layout.cursor;
        let goal_column = *self.goal_column.get_or_insert(column);
        let Some(row) = row.checked_add_signed(by) else { return KeyHandled::No };
        let Some(cells) = layout.rows.get(row) else { return KeyHandled::No };
        self.at = cells.iter().rev().find(|cell| cell.column <= goal_column).map_or(self.at, |cell| cell.at);
        KeyHandled::Yes
    }

    /// The rows of the text, and the cursor's row and column.
    pub fn rows(&self, width: usize) -> (Vec<Row>, (usize, usize)) {
        let layout = self.layout(width);
        let row = |cells: &Vec<EditorCell>| {
            let mut row = Row::default();
            for cell in cells {
                let role = if cell.is_placeholder { TextRole::Accent } else { TextRole::Plain };
                match row.spans.last_mut() {
                    Some(last) if last.role == role => last.text.push_str(&cell.text),
                    _ => row.spans.push(Span::new(role, cell.text.clone())),
                }
            }
            row
        };
        (layout.rows.iter().map(row).collect(), layout.cursor)
    }

    fn layout(&self, width: usize) -> EditorLayout {
        let width = width.max(2);
        let mut rows = vec![Vec::new()];
        let mut cursor = (0, 0);
        let mut column = 0;
        let mut put = |rows: &mut Vec<Vec<EditorCell>>, at: usize, text: String, is_placeholder: bool, is_end: bool| {
            let columns = width_of(&text).min(width);
            if column + columns > width {
                rows.push(Vec::new());
                column = 0;
            }
            if at == self.at {
                cursor = (rows.len() - 1, column);
            }
            if let Some(row) = rows.last_mut() {
                row.push(EditorCell { at, column, text, is_placeholder });
            }
            column += columns;
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
                (_, Some(paste)) => put(&mut rows, at, placeholder_label(paste), true, false),
                (cluster, None) => {
                    let text = if grapheme_width(cluster) == 0 { String::new() } else { cluster.to_owned() };
                    put(&mut rows, at, text, false, false);
                }
            }
        }
        // The cursor after the last character needs its own column.
        put(&mut rows, self.text.len(), String::new(), false, false);
        if cursor.1 >= width {
            rows.push(vec![EditorCell { at: self.text.len(), column: 0, text: String::new(), is_placeholder: false }]);
            cursor = (rows.len() - 1, 0);
        }
        EditorLayout { rows, cursor }
    }
}

struct EditorLayout {
    rows: Vec<Vec<EditorCell>>,
    cursor: (usize, usize),
}

struct EditorCell {
    at: usize,
    column: usize,
    text: String,
    is_placeholder: bool,
}

fn placeholder_index(letter: char) -> Option<usize> {
    let index = u32::from(letter).checked_sub(FIRST_PLACEHOLDER)? as usize;
    (index < MAX_PLACEHOLDERS).then_some(index)
}

fn placeholder_label(paste: &str) -> String {
    match paste.lines().count() {
        0 | 1 => format!("[pasted {} characters]", grouped(paste.chars().count())),
        lines => format!("[pasted {} lines]", grouped(lines)),
    }
}

/// Formats a number as `10,000`.
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

    /// Presses keys such as `left` or `ctrl+w`; types anything else.
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
    fn t10_a_large_paste_is_one_placeholder_until_it_is_sent() {
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
        assert_eq!((editor.unfold(), editor.unfold()), (KeyHandled::Yes, KeyHandled::No));
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
