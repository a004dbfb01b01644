//! Handles keys, the mouse and pastes.
#![expect(clippy::wildcard_enum_match_arm, reason = "crossterm defines many keys; the others do nothing")]

use aside_core::block::Time;
use aside_core::mention::escape_mentions_after;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::copying::copy;
use super::permission_prompt::{Draft, PromptOutcome};
use super::submit::DuringTurn;
use super::{App, InputMode, TurnState};
use crate::bindings::KeyAction;
use crate::input::editor::KeyHandled;
use crate::transcript::item::TranscriptItem;
use crate::transcript::{HitPart, RowHit};
use crate::view::MAX_OPTIONS;
use crate::view::reader::{ReaderOutcome, ReaderView};
use aside_front::slash_commands::LocalCommand;
use aside_front::{Command, TerminalAction};

/// Rows to scroll per wheel step.
const WHEEL: isize = 3;

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Command> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        let action = self.bindings.action(key);
        if action == Some(KeyAction::Suspend) {
            return vec![Command::Terminal(TerminalAction::Suspend)];
        }
        self.seen();
        let is_control_c = action == Some(KeyAction::Clear);
        let stops = is_control_c && (self.permission_prompt.is_waiting() || self.is_running());
        if self.reader.is_some() && !stops {
            return self.reader_key(key);
        }
        if is_control_c && !stops && self.find.is_some() {
            self.close_find();
            return Vec::new();
        }
        if is_control_c {
            return self.control_c();
        }
        self.quit_armed_at = None;
        if self.mode() == InputMode::Write && self.composer.picker_key(key, MAX_OPTIONS - 1) == KeyHandled::Yes {
            return Vec::new();
        }
        if let Some(commands) = self.global_action(action, key) {
            return commands;
        }
        match self.mode() {
            InputMode::Permission | InputMode::DenyMessage => self.permission_key(key),
            InputMode::Browse => self.browse_key(key),
            InputMode::Find => {
                self.find_key(key);
                Vec::new()
            }
            InputMode::Write => self.write_key(key),
        }
    }

    /// Actions for scrolling and viewing, which work in every mode.
    fn global_action(&mut self, action: Option<KeyAction>, key: KeyEvent) -> Option<Vec<Command>> {
        let is_bare = key.modifiers.is_empty() && self.composer.editor.is_empty();
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match (action, key.code) {
            // With text in the input, Alt+Enter inserts a new line instead.
            (_, KeyCode::Enter) if alt && self.can_answer_now() && self.composer.editor.is_empty() => {
                return Some(self.run_local(LocalCommand::AnswerNow));
            }
            (Some(KeyAction::TurnBefore), _) => self.transcript.jump_turn(false),
            (Some(KeyAction::TurnAfter), _) => self.transcript.jump_turn(true),
            (Some(KeyAction::PageUp), _) => self.transcript.scroll(-self.transcript.page()),
            (Some(KeyAction::PageDown), _) => self.transcript.scroll(self.transcript.page()),
            (Some(KeyAction::ToStart), _) => self.transcript.to_start(),
            (Some(KeyAction::ToEnd), _) => self.transcript.follow(),
            (Some(KeyAction::NextMode), _) if self.mode() == InputMode::Write => {
                return Some(self.run_local(LocalCommand::NextMode));
            }
            (Some(KeyAction::ToggleThinking), _) => return Some(self.run_local(LocalCommand::NextView)),
            (Some(KeyAction::Find), _) if matches!(self.mode(), InputMode::Write | InputMode::Browse) => {
                self.open_find("");
            }
            (Some(KeyAction::ReadLast), _) => self.read_last(),
            (Some(KeyAction::FoldLast), _) => {
                let view = self.transcript.view();
                if let Some(last) = self.last_item(|item| item.can_fold() && !item.is_hidden(view)) {
                    self.transcript.toggle(last);
                }
            }
            (None, KeyCode::Home) if is_bare => self.transcript.to_start(),
            (None, KeyCode::End) if is_bare => self.transcript.follow(),
            _ => return None,
        }
        Some(Vec::new())
    }

    fn is_running(&self) -> bool {
        matches!(self.turn, TurnState::Running { .. })
    }

    /// Stops what runs, else clears the input, else quits when pressed twice.
    fn control_c(&mut self) -> Vec<Command> {
        if self.permission_prompt.is_waiting() {
            self.reader = None;
            let outcome = self.permission_prompt.deny_and_stop();
            return self.apply_prompt_outcome(outcome, None);
        }
        if self.is_running() {
            return self.stop();
        }
        // The draft is cleared but kept in the history.
        let draft = self.composer.take();
        if !draft.trim().is_empty() {
            self.composer.remember(&draft);
        }
        if !draft.is_empty() {
            return Vec::new();
        }
        if self.quit_armed_at.is_some() {
            return vec![Command::Quit];
        }
        self.quit_armed_at = self.now.or(Some(aside_core::block::Time(0)));
        Vec::new()
    }

    /// A command replaces the prompt that an undo put back, so that `/redo` is not sent as a part of it. The prompt
    /// stays in the history, and the undo of the input brings it back.
    fn replace_undone_prompt(&mut self, key: KeyEvent) {
        let Some(prompt) = self.undone_prompt.take() else { return };
        let is_slash =
            key.code == KeyCode::Char('/') && !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if is_slash && self.composer.editor.expanded() == prompt {
            self.composer.remember(&prompt);
            self.composer.editor.set("");
        }
    }

    fn write_key(&mut self, key: KeyEvent) -> Vec<Command> {
        self.replace_undone_prompt(key);
        if self.composer.popup_key(key) == KeyHandled::Yes {
            return Vec::new();
        }
        let is_empty = self.composer.editor.is_empty();
        match (self.bindings.action(key), key.code) {
            (Some(KeyAction::Send), _) => {
                let text = self.composer.take();
                return self.submit(&text, DuringTurn::Steer);
            }
            (Some(KeyAction::Queue), _) => {
                let text = self.composer.take();
                return self.submit(&text, DuringTurn::Queue);
            }
            (Some(KeyAction::NewLine), _) => self.composer.editor.insert("\n"),
            (Some(KeyAction::Stop), _) => return self.stop(),
            (Some(KeyAction::Leave), _) if is_empty => return vec![Command::Quit],
            (Some(KeyAction::Editor), _) => {
                return vec![Command::Terminal(TerminalAction::Edit(self.composer.editor.expanded()))];
            }
            (Some(KeyAction::Complete), _) if is_empty => {
                self.browsing = true;
                self.transcript.focus_next(false);
            }
            (Some(KeyAction::Complete), _) => {
                if self.composer.editor.unfold() == KeyHandled::No {
                    self.composer.complete();
                }
            }
            (_, KeyCode::Up) if is_empty && !self.queue.is_empty() => {
                // A queued prompt can still be edited.
                if let Some(text) = self.queue.pop_back() {
                    self.composer.editor.fill(&text);
                }
            }
            (_, KeyCode::Up) if is_empty && self.taking_back => (),
            (_, KeyCode::Up) if is_empty && !self.steering.is_empty() => {
                self.taking_back = true;
                return self.steering.back().cloned().map(Command::TakeBack).into_iter().collect();
            }
            _ => {
                let width = self.input_width();
                self.composer.edit(key, width);
            }
        }
        Vec::new()
    }

    /// Stops the turn. Queued prompts go back into the input.
    pub(super) fn stop(&mut self) -> Vec<Command> {
        match self.turn {
            TurnState::Running { since } => {
                self.turn = TurnState::Stopping { since };
                vec![Command::Interrupt]
            }
            TurnState::Stopping { .. } => Vec::new(),
            TurnState::Idle => {
                self.transcript.follow();
                Vec::new()
            }
        }
    }

    fn browse_key(&mut self, key: KeyEvent) -> Vec<Command> {
        let focus = self.transcript.focus();
        match key.code {
            KeyCode::Up | KeyCode::BackTab | KeyCode::Char('k') => self.transcript.focus_next(false),
            KeyCode::Down | KeyCode::Tab | KeyCode::Char('j') => self.transcript.focus_next(true),
            KeyCode::Enter | KeyCode::Char('o' | ' ') => {
                if let Some(index) = focus {
                    self.transcript.toggle(index);
                }
            }
            KeyCode::Char('r') => {
                if let Some(index) = focus.filter(|index| self.is_thinking(*index)) {
                    self.reader = Some(ReaderView::thinking(index));
                }
            }
            KeyCode::Char('y') => {
                let text = focus.and_then(|index| self.transcript.items().get(index)).map(TranscriptItem::copy_text);
                return text.map(copy).into_iter().collect();
            }
            KeyCode::Esc | KeyCode::Char('q') => self.end_browsing(),
            // Typing a letter switches back to the input.
            KeyCode::Char(_) => {
                self.end_browsing();
                return self.write_key(key);
            }
            _ => (),
        }
        Vec::new()
    }

    pub(super) fn end_browsing(&mut self) {
        self.browsing = false;
        self.transcript.set_focus(None);
    }

    fn is_thinking(&self, index: usize) -> bool {
        matches!(self.transcript.items().get(index), Some(TranscriptItem::Thinking(_)))
    }

    fn permission_key(&mut self, key: KeyEvent) -> Vec<Command> {
        let width = self.input_width();
        let about = self.asked_about();
        let draft = if self.composer.editor.is_empty() { Draft::Empty } else { Draft::Begun };
        let outcome = self.permission_prompt.key(key, self.now, width, draft);
        self.apply_prompt_outcome(outcome, about)
    }

    /// Answers the question with a letter that was held until it was certain that no text follows.
    pub(super) fn settle_answer(&mut self, now: Time) -> Vec<Command> {
        let about = self.asked_about();
        let outcome = self.permission_prompt.settle(now);
        self.apply_prompt_outcome(outcome, about)
    }

    /// The tool and the subject of the current question.
    fn asked_about(&self) -> Option<(String, String)> {
        let question = self.permission_prompt.question()?;
        Some((question.about.tool.clone(), question.about.subject.clone()))
    }

    fn apply_prompt_outcome(&mut self, outcome: PromptOutcome, about: Option<(String, String)>) -> Vec<Command> {
        match outcome {
            PromptOutcome::Pending => Vec::new(),
            PromptOutcome::Answer(command) => {
                if let Some((tool, subject)) = about {
                    self.transcript.tool_answered(&tool, &subject);
                }
                vec![command]
            }
            PromptOutcome::AnswerAndStop(command) => {
                // Stop first: after a denial alone, the model would get another request.
                let mut commands = match self.turn {
                    // A command asked outside a turn; it is given up.
                    TurnState::Idle => vec![Command::Interrupt],
                    TurnState::Running { .. } | TurnState::Stopping { .. } => self.stop(),
                };
                commands.push(command);
                commands
            }
            PromptOutcome::Preview { title, text } => {
                self.reader = Some(ReaderView::preview(&title, &text));
                Vec::new()
            }
        }
    }

    fn input_width(&self) -> usize {
        crate::view::text_width(self.transcript_area.width)
    }

    fn reader_key(&mut self, key: KeyEvent) -> Vec<Command> {
        let Some(reader) = &mut self.reader else { return Vec::new() };
        match reader.key(key, &self.transcript) {
            ReaderOutcome::Stay => Vec::new(),
            ReaderOutcome::Copy(text) => vec![copy(text)],
            ReaderOutcome::Close => {
                self.reader = None;
                Vec::new()
            }
        }
    }

    pub(super) fn mouse_event(&mut self, mouse: MouseEvent) -> Vec<Command> {
        let wheel = match mouse.kind {
            MouseEventKind::ScrollUp => Some(-WHEEL),
            MouseEventKind::ScrollDown => Some(WHEEL),
            MouseEventKind::Down(MouseButton::Left) => None,
            MouseEventKind::Down(_)
            | MouseEventKind::Up(_)
            | MouseEventKind::Drag(_)
            | MouseEventKind::Moved
            | MouseEventKind::ScrollLeft
            | MouseEventKind::ScrollRight => return Vec::new(),
        };
        match (wheel, &mut self.reader) {
            (Some(rows), Some(reader)) => reader.scroll(rows),
            (Some(rows), None) => self.transcript.scroll(rows),
            (None, Some(_)) => (),
            (None, None) => self.click(mouse.column, mouse.row),
        }
        Vec::new()
    }

    fn click(&mut self, x: u16, y: u16) {
        let area = self.transcript_area;
        if self.transcript.has_hint_at(x, y) {
            return self.transcript.follow();
        }
        if !area.contains((x, y).into()) {
            return;
        }
        match self.transcript.hit(usize::from(y - area.y)) {
            Some(RowHit { item, part: HitPart::Header }) => self.transcript.toggle(item),
            // The window shows only a part of the block, so a click anywhere in it opens it.
            Some(RowHit { item, part: HitPart::Body }) if self.transcript.is_partial(item) => {
                self.transcript.toggle(item)
            }
            Some(RowHit { part: HitPart::Body, .. }) | None => (),
        }
    }

    /// Takes the text from the user's editor.
    pub(super) fn edited(&mut self, text: &str) {
        match text.trim().is_empty() {
            true => self.toast("the editor left nothing; the text is as it was".to_owned()),
            false => self.composer.editor.fill(text),
        }
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Command> {
        match self.mode() {
            InputMode::Write => self.paste_prompt(text),
            InputMode::Browse => {
                self.end_browsing();
                self.paste_prompt(text);
            }
            InputMode::Find => self.find_paste(text),
            InputMode::Permission | InputMode::DenyMessage => self.permission_prompt.paste(text),
        }
        Vec::new()
    }

    /// Pasted text mentions no files, because somebody else may have written it.
    fn paste_prompt(&mut self, text: &str) {
        let editor = &mut self.composer.editor;
        editor.paste(&escape_mentions_after(editor.before_cursor(), text));
    }
}
