//! Finding words in the transcript. The bar at the bottom takes the keys until it is closed.
#![expect(clippy::wildcard_enum_match_arm, reason = "crossterm defines many keys; the others do nothing")]

use aside_core::terminal_text::terminal_safe_line;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use aside_front::{Command, MessagePart};

use super::App;
use crate::bindings::KeyAction;
use crate::input::editor::Editor;
use crate::text::wrap::first_that_fits;
use crate::transcript::find::FoundRows;

#[derive(Debug, Default)]
pub(crate) struct FindBar {
    words: String,
    found: FoundRows,
    /// The match that is shown.
    current: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FindStep {
    Earlier,
    Later,
}

impl FindBar {
    /// The words with a label, as shown before the cursor.
    pub(crate) fn prompt(&self) -> String {
        format!("find: {}", terminal_safe_line(&self.words))
    }

    /// What was found, and the keys, as far as they fit.
    pub(crate) fn state(&self, room: usize) -> String {
        const KEYS: &str = "↑ earlier, ↓ later · Esc closes";
        const SHORT_KEYS: &str = "↑ ↓ · Esc";
        let hidden = match self.found.n_hidden {
            0 => String::new(),
            1 => " · also in 1 hidden thought (Ctrl+T)".to_owned(),
            hidden => format!(" · also in {hidden} hidden thoughts (Ctrl+T)"),
        };
        let (found, keys) = match (self.words.trim().is_empty(), self.current, self.found.rows.len()) {
            (true, _, _) => ("type words".to_owned(), ["Esc closes", "Esc"]),
            (false, Some(current), all) => (format!("{} of {all}", current + 1), [KEYS, SHORT_KEYS]),
            (false, None, _) => ("not found".to_owned(), ["Esc closes", "Esc"]),
        };
        let with_keys = |hidden: &str| keys.map(|keys| format!("{found}{hidden} · {keys}"));
        let texts: Vec<String> = with_keys(&hidden).into_iter().chain(with_keys("")).chain([found.clone()]).collect();
        first_that_fits(&texts, room)
    }
}

/// Whether the input deletes with this key, before the cursor.
fn deletes(key: KeyEvent) -> bool {
    let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
    key.code == KeyCode::Backspace || has_control && matches!(key.code, KeyCode::Char('u' | 'w' | 'h'))
}

impl App {
    /// Opens the bar, with words to find at once.
    pub(super) fn open_find(&mut self, words: &str) {
        self.end_browsing();
        self.find = Some(FindBar { words: words.to_owned(), ..FindBar::default() });
        self.search_again();
    }

    pub(super) fn close_find(&mut self) {
        self.find = None;
        self.transcript.keep_found_open();
        self.transcript.mark_words("");
    }

    pub(super) fn find_key(&mut self, key: KeyEvent) {
        let Some(bar) = &mut self.find else { return };
        let is_find_key = self.bindings.action(key) == Some(KeyAction::Find);
        let has_control = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            _ if is_find_key => self.find_step(FindStep::Earlier),
            KeyCode::Esc => self.close_find(),
            KeyCode::Up | KeyCode::Enter => self.find_step(FindStep::Earlier),
            KeyCode::Down => self.find_step(FindStep::Later),
            _ if deletes(key) => {
                // The cursor is always at the end, as in an editor that was just filled.
                let mut editor = Editor::default();
                editor.set(&bar.words);
                editor.key(key, usize::MAX);
                bar.words = editor.take();
                self.search_again();
            }
            KeyCode::Char(letter) if !has_control => {
                bar.words.push(letter);
                self.search_again();
            }
            _ => (),
        }
    }

    pub(super) fn find_paste(&mut self, text: &str) {
        let Some(bar) = &mut self.find else { return };
        bar.words.push_str(text.lines().next().unwrap_or_default());
        self.search_again();
    }

    /// The newest match comes first: it is nearest to where the user reads.
    fn search_again(&mut self) {
        let Some(bar) = &mut self.find else { return };
        bar.found = self.transcript.find(&bar.words);
        bar.current = bar.found.rows.len().checked_sub(1);
        self.transcript.mark_words(&bar.words);
        self.show_current();
    }

    /// Remembers the words of `/search`, which `/open` then shows in the message.
    pub(super) fn remember_search(&mut self, command: &Command) {
        // What the last hit highlighted has been read.
        self.transcript.mark_words("");
        if let Command::Other { name, rest } = command
            && name == "search"
        {
            self.searched.clone_from(rest);
        }
    }

    /// Scrolls to a message and to the words in it: all of them where they stand together, else the longest one that
    /// it has. The store also finds other forms of a word; then the message is shown from its start.
    pub(super) fn show_search_hit(&mut self, message: usize, part: MessagePart) {
        let Some(items) = self.transcript.go_to(message, part) else { return };
        let phrase = self.searched.replace(['"', '*'], "");
        let mut words: Vec<&str> = phrase.split_whitespace().collect();
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        words.insert(0, phrase.trim());
        words.iter().any(|words| self.transcript.show_first(words, &items));
    }

    fn find_step(&mut self, step: FindStep) {
        let Some(bar) = &mut self.find else { return };
        // The transcript may have grown.
        bar.found = self.transcript.find(&bar.words);
        let last = bar.found.rows.len().checked_sub(1);
        bar.current = match (bar.current.min(last), step) {
            (None, _) => last,
            // After the first match comes the last one again.
            (Some(0), FindStep::Earlier) => last,
            (Some(at), FindStep::Earlier) => Some(at - 1),
            (Some(at), FindStep::Later) if Some(at) == last => Some(0),
            (Some(at), FindStep::Later) => Some(at + 1),
        };
        self.show_current();
    }

    fn show_current(&mut self) {
        let current = self.find.as_ref().and_then(|bar| bar.found.rows.get(bar.current?).copied());
        match current {
            Some(found) => self.transcript.show_found(found),
            None => self.transcript.fold_found(),
        }
    }
}
