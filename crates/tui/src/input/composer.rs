//! The input line: the editor with completion and history.
#![expect(clippy::wildcard_enum_match_arm, reason = "crossterm defines many keys; the others do nothing")]

use crossterm::event::{KeyCode, KeyEvent};

use super::completion::{self, CompletionPopup, NO_EFFORT};
use super::editor::{Editor, KeyHandled};
use super::history::PromptHistory;
use aside_front::slash_commands::DEFAULT_EFFORT;
use aside_front::{CompletionLists, Status};
use std::collections::HashSet;

/// The values in use, with which lists of values open.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CurrentValues {
    pub model: String,
    /// The level that is set; without a setting, the one that is sent.
    pub effort: Option<String>,
    /// The level is what the model gets without a setting.
    pub is_default_effort: bool,
    pub theme: String,
    /// The id of the stored session.
    pub session: Option<String>,
}

impl CurrentValues {
    pub fn of(status: &Status) -> CurrentValues {
        // Without a setting, the effort that is sent is the current one.
        let sent = || status.next.as_ref().and_then(|next| next.effort.clone());
        CurrentValues {
            model: status.model.clone(),
            effort: match status.thinking_is_off {
                true => Some(NO_EFFORT.to_owned()),
                false => status.effort.clone().or_else(sent),
            },
            is_default_effort: status.effort.is_none() && !status.thinking_is_off,
            theme: status.screen.theme.to_string(),
            session: status.session.clone(),
        }
    }

    /// What is known of a value that this command line could choose.
    pub fn label(&self, line: &str, value: &str) -> Option<&'static str> {
        let is_effort = line.get(1..).is_some_and(|line| line.starts_with("effort "));
        let is_sent_by_default = is_effort && self.is_default_effort && value != DEFAULT_EFFORT;
        let label = if is_sent_by_default { "default" } else { "current" };
        (self.for_line(line)? == value).then_some(label)
    }

    /// The current value of what this command line changes.
    fn for_line(&self, line: &str) -> Option<&str> {
        match line.strip_prefix(['/', ':'])?.split_once(' ')?.0 {
            "model" => Some(&self.model),
            "effort" => Some(self.effort.as_deref().unwrap_or(DEFAULT_EFFORT)),
            "theme" => Some(&self.theme),
            "resume" => self.session.as_deref(),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
pub struct Composer {
    pub editor: Editor,
    pub popup: Option<CompletionPopup>,
    lists: CompletionLists,
    current: CurrentValues,
    /// What providers and local servers listed.
    live_models: Vec<String>,
    /// The popup was opened by a command that lets the user choose.
    is_picker: bool,
    history: PromptHistory,
}

impl Composer {
    pub fn new(lists: CompletionLists, sent: Vec<String>) -> Composer {
        Composer { lists, history: PromptHistory::new(sent), ..Composer::default() }
    }

    pub fn current(&self) -> &CurrentValues {
        &self.current
    }

    pub fn lists(&self) -> &CompletionLists {
        &self.lists
    }

    pub fn set_lists(&mut self, lists: CompletionLists) {
        self.lists = lists;
        self.add_live_models();
    }

    /// The effort levels of the model that is used now.
    pub fn set_efforts(&mut self, efforts: &[String]) {
        if self.lists.efforts != efforts {
            self.lists.efforts = efforts.to_vec();
        }
    }

    pub fn set_current(&mut self, current: CurrentValues) {
        self.current = current;
    }

    /// Adds models that can be used now. They come first, and a list that is open shows them.
    pub fn set_live_models(&mut self, models: Vec<String>) {
        // A list that closed because nothing matched opens again; one that the user closed does not.
        let found = completion::popup(self.editor.raw(), self.editor.cursor(), &self.lists);
        let matched = found.is_some_and(|popup| !popup.options.is_empty());
        let is_wanted = self.popup.is_some() || !matched;
        self.live_models = models;
        self.add_live_models();
        if is_wanted && self.editor.raw().starts_with("/model ") {
            let moved = self.popup.as_ref().filter(|popup| popup.is_moved).and_then(CompletionPopup::selected).cloned();
            self.complete();
            // A selection that the user moved stays on the same model.
            if let (Some(popup), Some(moved)) = (&mut self.popup, moved) {
                popup.is_moved = popup.select(&moved.text);
            }
        }
    }

    fn add_live_models(&mut self) {
        if self.live_models.is_empty() {
            return;
        }
        let live: HashSet<&String> = self.live_models.iter().collect();
        let others: Vec<String> = self.lists.models.iter().filter(|name| !live.contains(name)).cloned().collect();
        self.lists.models = self.live_models.iter().cloned().chain(others).collect();
    }

    /// Takes the text and clears the editor.
    pub fn take(&mut self) -> String {
        self.popup = None;
        self.editor.take()
    }

    /// Adds a sent prompt to the history.
    pub fn remember(&mut self, text: &str) {
        self.history.push(text);
    }

    /// Adds prompts of earlier sessions, the newest last.
    pub fn prepend_history(&mut self, earlier: Vec<String>) {
        self.history.prepend(earlier);
    }

    pub fn complete(&mut self) {
        let was_open = self.popup.is_some();
        self.popup = completion::popup(self.editor.raw(), self.editor.cursor(), &self.lists);
        // Nothing is typed yet that the list could be filtered by.
        if let Some(popup) = self.popup.as_mut().filter(|popup| popup.from == self.editor.cursor())
            && let Some(current) = self.current.for_line(self.editor.raw())
            // It is the one session that need not be opened.
            && self.current.session.as_deref() != Some(current)
        {
            popup.select(current);
        }
        // A list that closed is not the picker any more.
        self.is_picker &= was_open && self.popup.is_some();
    }

    /// Opens the list of values for a command without one. Typing filters it. Returns false if there is
    /// nothing to choose.
    pub fn pick(&mut self, command: &str, is_choice: bool) -> bool {
        if !is_choice {
            return false;
        }
        self.editor.fill(&format!("{} ", command.trim()));
        self.complete();
        self.is_picker = self.popup.is_some();
        if self.popup.is_none() {
            self.editor.take();
        }
        self.popup.is_some()
    }

    pub fn edit(&mut self, key: KeyEvent, width: usize) {
        match (self.editor.key(key, width), key.code) {
            (KeyHandled::Yes, KeyCode::Char(_) | KeyCode::Backspace | KeyCode::Delete) => self.complete(),
            (KeyHandled::Yes, _) => self.popup = None,
            (KeyHandled::No, KeyCode::Up) => {
                let written = self.editor.expanded();
                if let Some(text) = self.history.back(&written) {
                    self.editor.fill(text);
                }
            }
            (KeyHandled::No, KeyCode::Down) => {
                if let Some(text) = self.history.forward() {
                    self.editor.fill(text);
                }
            }
            (KeyHandled::No, _) => (),
        }
    }

    fn is_whole_command(&self) -> bool {
        let text = self.editor.raw();
        text.starts_with(['/', ':']) && !text.ends_with(' ')
    }

    /// Pages and ends of the list of a picker, before these keys scroll the conversation or move the cursor.
    pub fn picker_key(&mut self, key: KeyEvent, page: usize) -> KeyHandled {
        let Some(popup) = self.popup.as_mut().filter(|popup| popup.is_picker && key.modifiers.is_empty()) else {
            return KeyHandled::No;
        };
        let page = isize::try_from(page).unwrap_or(isize::MAX);
        match key.code {
            KeyCode::PageUp => popup.jump_by(-page),
            KeyCode::PageDown => popup.jump_by(page),
            KeyCode::Home => popup.jump_by(isize::MIN),
            KeyCode::End => popup.jump_by(isize::MAX),
            _ => return KeyHandled::No,
        }
        KeyHandled::Yes
    }

    /// Lets the completion popup handle a key first.
    pub fn popup_key(&mut self, key: KeyEvent) -> KeyHandled {
        let Some(popup) = &mut self.popup else { return KeyHandled::No };
        match key.code {
            // Nothing matches: what was typed is sent as it is.
            KeyCode::Enter if popup.options.is_empty() => {
                self.popup = None;
                return KeyHandled::No;
            }
            KeyCode::Up => popup.move_by(-1),
            KeyCode::Down => popup.move_by(1),
            KeyCode::Esc => {
                self.popup = None;
                // The command was sent already; nothing of it is left to edit.
                if std::mem::take(&mut self.is_picker) {
                    self.editor.take();
                }
            }
            KeyCode::Tab | KeyCode::Enter if key.modifiers.is_empty() => {
                if let Some(selected) = popup.selected() {
                    let (from, text) = (popup.from, selected.text.clone());
                    self.editor.complete(from, &text);
                }
                self.complete();
                // Nothing is left to choose, so Enter submits the command.
                if key.code == KeyCode::Enter && self.popup.is_none() && self.is_whole_command() {
                    return KeyHandled::No;
                }
            }
            _ => return KeyHandled::No,
        }
        KeyHandled::Yes
    }
}
