//! A multi-line text editor. A large paste is a single placeholder: it is deleted as one character
//! and expanded when the text is sent.
#![expect(clippy::wildcard_enum_match_arm, reason = "crossterm defines many keys; the others do nothing")]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use super::change_history::{ChangeHistory, ChangeKind};
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
    /// Kept until the text is taken, because undo may bring a placeholder back.
    pastes: Vec<String>,
    /// The column to return to while moving up and down.
    goal_column: Option<usize>,
    changes: ChangeHistory,
    /// What was deleted by words or lines, to be inserted again.
    killed: String,
    /// The last key deleted, so that the next one adds to it.
    is_killing: bool,
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
        *self = Editor { killed: std::mem::take(&mut self.killed), ..Editor::default() };
        text
    }

    pub fn set(&mut self, text: &str) {
        self.clear();
        self.put(text);
    }

    fn clear(&mut self) {
        self.changes.before(ChangeKind::Other, &self.text, self.at);
        self.text.clear();
        (self.at, self.goal_column) = (0, None);
    }

    /// Like [`Editor::set`], but folds a long text, so that keys stay cheap.
    pub fn fill(&mut self, text: &str) {
        self.clear();
        match text.lines().count() > FOLD_LINES || text.len() > FOLD_BYTES {
            true => self.put_pasted(text),
            false => self.put(text),
        }
    }

    pub fn insert(&mut self, text: &str) {
        let kind = match text.chars().count() {
            1 if text.trim().is_empty() => ChangeKind::Space,
            1 => ChangeKind::Letter,
            _ => ChangeKind::Other,
        };
        self.changes.before(kind, &self.text, self.at);
        self.put(text);
    }

    /// Inserts text as part of a change.
    fn put(&mut self, text: &str) {
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
        self.changes.before(ChangeKind::Other, &self.text, self.at);
        self.put_pasted(text);
    }

    fn put_pasted(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let is_large = text.lines().count() > LARGE_LINES || text.len() > LARGE_BYTES;
        if !is_large || self.pastes.len() >= MAX_PLACEHOLDERS {
            return self.put(&text);
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
        self.changes.before(ChangeKind::Other, &self.text, self.at);
        let from = self.at - placeholder.len_utf8();
        self.text.replace_range(from..self.at, "");
        self.at = from;
        self.put(&paste);
        KeyHandled::Yes
    }

    /// Replaces the text between `from` and the cursor.
    pub fn complete(&mut self, from: usize, with: &str) {
        if self.text.is_char_boundary(from) && from <= self.at {
            self.changes.before(ChangeKind::Other, &self.text, self.at);
            self.text.replace_range(from..self.at, "");
            self.at = from;
            self.put(with);
        }
    }

    pub fn key(&mut self, key: KeyEvent, width: usize) -> KeyHandled {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let vertical = matches!(key.code, KeyCode::Up | KeyCode::Down);
        if !vertical {
            self.goal_column = None;
        }
        let was_killing = std::mem::take(&mut self.is_killing);
        match key.code {
            KeyCode::Char('y') if control => self.yank(),
            // Terminals send these as one and the same key.
            KeyCode::Char('_' | '/' | '7' | '-') if control => self.undo(),
            KeyCode::Char('_' | '/') if alt => self.redo(),
            KeyCode::Char('a') if control => self.at = self.line_start(),
            KeyCode::Char('e') if control => self.at = self.line_end(),
            KeyCode::Char('b') if alt => self.at = self.word_before(),
            KeyCode::Char('f') if alt => self.at = self.word_after(),
            KeyCode::Char('b') if control => self.at = self.before(self.at),
            KeyCode::Char('f') if control => self.at = self.after(self.at),
            KeyCode::Char('h') if control => self.remove(self.before(self.at), self.at),
            KeyCode::Char('d') if control && !self.is_empty() => self.remove(self.at, self.after(self.at)),
            KeyCode::Char('w') if control => self.kill(self.word_before(), self.at, was_killing),
            KeyCode::Char('d') if alt => self.kill(self.at, self.word_after(), was_killing),
            KeyCode::Char('u') if control => self.kill(self.line_start(), self.at, was_killing),
            KeyCode::Char('k') if control => self.kill(self.at, self.line_end(), was_killing),
            KeyCode::Char('j') if control => self.insert("\n"),
            KeyCode::Char(letter) if !control && !alt => self.insert(letter.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if alt || control => self.kill(self.word_before(), self.at, was_killing),
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
        if from < to {
            self.changes.before(ChangeKind::Removal, &self.text, self.at);
        }
        self.text.replace_range(from..to, "");
        self.at = from;
    }

    /// Removes text and keeps it for [`Editor::yank`]. Pastes in it are expanded, because they end with the prompt.
    fn kill(&mut self, from: usize, to: usize, was_killing: bool) {
        let removed = self.text.get(from..to).unwrap_or_default();
        let removed =
            removed.chars().map(|letter| self.paste_of(letter).cloned().unwrap_or_else(|| letter.to_string()));
        let removed: String = removed.collect();
        self.killed = match (was_killing, to <= self.at) {
            (false, _) => removed,
            (true, true) => removed + &self.killed,
            (true, false) => std::mem::take(&mut self.killed) + &removed,
        };
        self.is_killing = true;
        self.remove(from, to);
    }

    /// Inserts what was deleted last.
    fn yank(&mut self) {
        let killed = self.killed.clone();
        if !killed.is_empty() {
            self.paste(&killed);
        }
    }

    fn undo(&mut self) {
        if let Some(before) = self.changes.undo(&self.text, self.at) {
            (self.text, self.at) = (before.text, before.at);
        }
    }

    fn redo(&mut self) {
        if let Some(after) = self.changes.redo(&self.text, self.at) {
            (self.text, self.at) = (after.text, after.at);
        }
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
                let role = if cell.kind == CellKind::Placeholder { TextRole::Accent } else { TextRole::Plain };
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
        let mut rows = RowBuilder { width, rows: vec![Vec::new()], column: 0 };
        for (at, cluster) in self.text.grapheme_indices(true) {
            let paste = cluster.chars().next().and_then(|letter| self.paste_of(letter));
            let cell = |text: String, kind| EditorCell { at, column: 0, text, kind };
            match (cluster, paste) {
                ("\n", _) => {
                    rows.push(cell(String::new(), CellKind::Letter));
                    rows.begin_row();
                }
                ("\t", _) => rows.push(cell("    ".to_owned(), CellKind::Space)),
                (" ", _) => rows.push(cell(" ".to_owned(), CellKind::Space)),
                (_, Some(paste)) => rows.push(cell(placeholder_label(paste), CellKind::Placeholder)),
                (cluster, None) => {
                    let (text, kind) = match grapheme_width(cluster) {
                        0 => (String::new(), CellKind::Letter),
                        1 => (cluster.to_owned(), CellKind::Letter),
                        // Between such letters a line may break anywhere.
                        _ => (cluster.to_owned(), CellKind::Wide),
                    };
                    rows.push(cell(text, kind));
                }
            }
        }
        // The cursor after the last character needs its own column.
        rows.push(EditorCell { at: self.text.len(), column: 0, text: String::new(), kind: CellKind::Letter });
        let mut rows = rows.rows;
        let of_cursor = |cells: &Vec<EditorCell>| cells.iter().find(|cell| cell.at == self.at).map(|cell| cell.column);
        let found = rows.iter().enumerate().find_map(|(row, cells)| Some((row, of_cursor(cells)?)));
        let mut cursor = found.unwrap_or((0, 0));
        if cursor.1 >= width {
            rows.push(vec![EditorCell { at: self.text.len(), column: 0, text: String::new(), kind: CellKind::Letter }]);
            cursor = (rows.len() - 1, 0);
        }
        EditorLayout { rows, cursor }
    }
}

/// Breaks lines between words; a word that is wider than a row is broken where the row ends.
struct RowBuilder {
    width: usize,
    rows: Vec<Vec<EditorCell>>,
    column: usize,
}

impl RowBuilder {
    fn begin_row(&mut self) {
        self.rows.push(Vec::new());
        self.column = 0;
    }

    fn push(&mut self, mut cell: EditorCell) {
        let columns = width_of(&cell.text).min(self.width);
        if self.column + columns > self.width {
            self.wrap(cell.kind);
        }
        cell.column = self.column;
        self.column += columns;
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Begins a row, to which the begun word moves.
    fn wrap(&mut self, next: CellKind) {
        let row = self.rows.last_mut();
        let is_inside_word = next == CellKind::Letter;
        let word = row.filter(|_| is_inside_word).and_then(|row| {
            let after_break = row.iter().rposition(|cell| cell.kind != CellKind::Letter)? + 1;
            (after_break < row.len()).then(|| row.split_off(after_break))
        });
        self.begin_row();
        for mut cell in word.unwrap_or_default() {
            cell.column = self.column;
            self.column += width_of(&cell.text);
            if let Some(row) = self.rows.last_mut() {
                row.push(cell);
            }
        }
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
    kind: CellKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellKind {
    /// Part of a word.
    Letter,
    Space,
    Wide,
    Placeholder,
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
    fn t24_deleted_text_is_inserted_again_and_changes_are_undone() {
        #[rustfmt::skip]
        let cases: &[(&str, &[&str], &str)] = &[
            ("yank a word",          &["one two", "ctrl+w", "ctrl+a", "ctrl+y"],            "two‸one "),
            ("yank two words",       &["one two", "ctrl+w", "ctrl+w", "ctrl+y"],            "one two‸"),
            ("forward and back",     &["one two", "alt+b", "ctrl+k", "ctrl+w", "ctrl+y"],   "one two‸"),
            ("a new word begins",    &["one two", "ctrl+w", "left", "ctrl+w", "ctrl+y"],    "one‸ "),
            ("a letter is no kill",  &["ab", "backspace", "ctrl+y"],                        "a‸"),
            ("undo a word",          &["o", "n", "e", " ", "t", "w", "o", "ctrl+_"],        "one ‸"),
            ("undo twice",           &["o", "n", "e", " ", "t", "w", "o", "ctrl+_", "ctrl+_", "ctrl+_"], "‸"),
            ("undo a deletion",      &["one two", "ctrl+u", "ctrl+/"],                      "one two‸"),
            ("redo",                 &["one two", "ctrl+u", "ctrl+_", "alt+/"],             "‸"),
            ("no redo after typing", &["one", "ctrl+u", "ctrl+_", "x", "alt+/"],            "onex‸"),
            ("undo nothing",         &["ctrl+_"],                                           "‸"),
        ];
        for (name, keys, expected) in cases {
            let mut editor = Editor::default();
            press(&mut editor, keys, 40);
            let shown = format!("{}‸{}", editor.head(), editor.tail());
            assert_eq!(&shown, expected, "{name}");
        }
        let mut editor = Editor::default();
        press(&mut editor, &["one two", "ctrl+w"], 40);
        assert_eq!(editor.take(), "one ");
        press(&mut editor, &["ctrl+y"], 40);
        assert_eq!(editor.raw(), "two", "it outlives the prompt");
        let paste = "line\n".repeat(100);
        editor.set("");
        editor.paste(&paste);
        press(&mut editor, &["ctrl+u", "ctrl+_"], 40);
        assert_eq!(editor.expanded(), paste, "undo brings a paste back");
        editor.fill("another");
        press(&mut editor, &["ctrl+_"], 40);
        assert_eq!(editor.expanded(), paste, "what replaced a draft can be undone");
    }

    #[test]
    fn t24_words_wrap_whole() {
        #[rustfmt::skip]
        let cases: &[(&str, &str, usize, &[&str])] = &[
            ("between words",      "one two three",  8, &["one two ", "three"]),
            ("a long word",        "a abcdefghijkl", 5, &["a ", "abcde", "fghij", "kl"]),
            ("at the edge",        "abcd efgh",      4, &["abcd", " ", "efgh"]),
            ("wide letters",       "a漢字漢字",        4, &["a漢", "字漢", "字"]),
            ("a line end",         "ab\ncd ef",      4, &["ab", "cd ", "ef"]),
        ];
        for (name, text, width, expected) in cases {
            let mut editor = Editor::default();
            editor.insert(text);
            let (rows, _) = editor.rows(*width);
            let rows: Vec<String> = rows.iter().map(Row::text).filter(|row| !row.is_empty()).collect();
            assert_eq!(&rows, expected, "{name}");
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
