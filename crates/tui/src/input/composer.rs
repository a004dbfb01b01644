//! The editor together with what helps to fill it: completions and history.
#![expect(clippy::wildcard_enum_match_arm, reason = "keys are many and not ours; one we do not know does nothing")]

use crossterm::event::{KeyCode, KeyEvent};

use super::complete::{self, Popup};
use super::editor::{Editor, Taken};
use super::history::History;
use crate::seam::Lists;

#[derive(Debug, Default)]
pub struct Composer {
    pub editor: Editor,
    pub popup: Option<Popup>,
    pub lists: Lists,
    history: History,
}

impl Composer {
    pub fn new(lists: Lists, sent: Vec<String>) -> Composer {
        Composer { lists, history: History::new(sent), ..Composer::default() }
    }

    /// Hands over what was written.
    pub fn take(&mut self) -> String {
        self.popup = None;
        self.editor.take()
    }

    /// It was sent, and can be called back.
    pub fn remember(&mut self, text: &str) {
        self.history.push(text);
    }

    /// What was sent in earlier sessions, the newest last.
    pub fn recall_from(&mut self, earlier: Vec<String>) {
        self.history.begin_with(earlier);
    }

    pub fn complete(&mut self) {
        self.popup = complete::popup(self.editor.raw(), self.editor.cursor(), &self.lists);
    }

    pub fn edit(&mut self, key: KeyEvent, width: usize) {
        match (self.editor.key(key, width), key.code) {
            (Taken::Yes, KeyCode::Char(_) | KeyCode::Backspace | KeyCode::Delete) => self.complete(),
            (Taken::Yes, _) => self.popup = None,
            (Taken::No, KeyCode::Up) => {
                let written = self.editor.expanded();
                if let Some(text) = self.history.back(&written) {
                    self.editor.fill(text);
                }
            }
            (Taken::No, KeyCode::Down) => {
                if let Some(text) = self.history.forward() {
                    self.editor.fill(text);
                }
            }
            (Taken::No, _) => (),
        }
    }

    fn is_whole_command(&self) -> bool {
        let text = self.editor.raw();
        text.starts_with(['/', ':']) && !text.ends_with(' ')
    }

    /// Whether the list of completions took the key.
    pub fn popup_key(&mut self, key: KeyEvent) -> Taken {
        let Some(popup) = &mut self.popup else { return Taken::No };
        match key.code {
            KeyCode::Up => popup.move_by(-1),
            KeyCode::Down => popup.move_by(1),
            KeyCode::Esc => self.popup = None,
            KeyCode::Tab | KeyCode::Enter if key.modifiers.is_empty() => {
                if let Some(picked) = popup.picked() {
                    let (from, text) = (popup.from, picked.text.clone());
                    self.editor.complete(from, &text);
                }
                self.complete();
                // Nothing more can be chosen, so Enter means the whole command.
                if key.code == KeyCode::Enter && self.popup.is_none() && self.is_whole_command() {
                    return Taken::No;
                }
            }
            _ => return Taken::No,
        }
        Taken::Yes
    }
}
