//! Keys, the mouse and pastes.
#![expect(clippy::wildcard_enum_match_arm, reason = "keys are many and not ours; one we do not know does nothing")]

use aside_core::mention::literal_behind;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::asking::Answered;
use super::{App, Mode, Turn, copy};
use crate::bindings::Action;
use crate::commands::Local;
use crate::input::editor::Taken;
use crate::seam::{Command, TerminalAct};
use crate::transcript::item::Item;
use crate::transcript::{Hit, Part};
use crate::view::reader::{Outcome, Reader};

/// Rows a turn of the wheel moves.
const WHEEL: isize = 3;

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Command> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        let action = self.bindings.action(key);
        if action == Some(Action::Suspend) {
            return vec![Command::Terminal(TerminalAct::Suspend)];
        }
        let is_control_c = action == Some(Action::Clear);
        if self.reader.is_some() && !(is_control_c && self.asking.is_waiting()) {
            return self.reader_key(key);
        }
        if is_control_c {
            return self.control_c();
        }
        self.leaving = None;
        if let Some(commands) = self.action_of_any_mode(action, key) {
            return commands;
        }
        match self.mode() {
            Mode::Asked | Mode::Message => self.asked_key(key),
            Mode::Browse => self.browse_key(key),
            Mode::Write => self.write_key(key),
        }
    }

    /// Looking around works whatever else is going on.
    fn action_of_any_mode(&mut self, action: Option<Action>, key: KeyEvent) -> Option<Vec<Command>> {
        let is_bare = key.modifiers.is_empty() && self.composer.editor.is_empty();
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match (action, key.code) {
            // Whoever is writing wants a new line instead.
            (_, KeyCode::Enter) if alt && self.can_hurry() && self.composer.editor.is_empty() => {
                return Some(self.local(Local::AnswerNow));
            }
            (Some(Action::TurnBefore), _) => self.transcript.jump_turn(false),
            (Some(Action::TurnAfter), _) => self.transcript.jump_turn(true),
            (Some(Action::PageUp), _) => self.transcript.scroll(-self.transcript.page()),
            (Some(Action::PageDown), _) => self.transcript.scroll(self.transcript.page()),
            (Some(Action::ToStart), _) => self.transcript.to_start(),
            (Some(Action::ToEnd), _) => self.transcript.follow(),
            (Some(Action::ToggleThinking), _) => return Some(self.local(Local::NextView)),
            (Some(Action::ReadLast), _) => self.read_last(),
            (Some(Action::FoldLast), _) => {
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

    fn control_c(&mut self) -> Vec<Command> {
        if self.asking.is_waiting() {
            self.reader = None;
            let answered = self.asking.deny_and_stop();
            return self.answered(answered, None);
        }
        if self.leaving.is_some() {
            return vec![Command::Quit];
        }
        self.leaving = self.now.or(Some(aside_core::block::Time(0)));
        // The draft is gone from the line, but not lost: the arrow brings it back.
        let draft = self.composer.take();
        if !draft.trim().is_empty() {
            self.composer.remember(&draft);
        }
        Vec::new()
    }

    fn write_key(&mut self, key: KeyEvent) -> Vec<Command> {
        if self.composer.popup_key(key) == Taken::Yes {
            return Vec::new();
        }
        let is_empty = self.composer.editor.is_empty();
        match (self.bindings.action(key), key.code) {
            (Some(Action::Send), _) => {
                let text = self.composer.take();
                return self.submit(&text);
            }
            (Some(Action::NewLine), _) => self.composer.editor.insert("\n"),
            (Some(Action::Stop), _) => return self.stop(),
            (Some(Action::Leave), _) if is_empty => return vec![Command::Quit],
            (Some(Action::Editor), _) => {
                return vec![Command::Terminal(TerminalAct::Edit(self.composer.editor.expanded()))];
            }
            (Some(Action::Complete), _) | (_, KeyCode::BackTab) if is_empty => {
                self.browsing = true;
                self.transcript.focus_next(false);
            }
            (Some(Action::Complete), _) => {
                if self.composer.editor.unfold() == Taken::No {
                    self.composer.complete();
                }
            }
            (_, KeyCode::Up) if is_empty && !self.queue.is_empty() => {
                // What waits can still be changed.
                if let Some(text) = self.queue.pop_back() {
                    self.composer.editor.fill(&text);
                }
            }
            _ => {
                let width = self.input_width();
                self.composer.edit(key, width);
            }
        }
        Vec::new()
    }

    /// Stops the turn; what was queued comes back to be edited.
    pub(super) fn stop(&mut self) -> Vec<Command> {
        match self.turn {
            Turn::Running { since } => {
                self.turn = Turn::Stopping { since };
                vec![Command::Interrupt]
            }
            Turn::Stopping { .. } => Vec::new(),
            Turn::Idle => {
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
                if let Some(index) = focus.filter(|index| self.is_thought(*index)) {
                    self.reader = Some(Reader::thought(index));
                }
            }
            KeyCode::Char('y') => {
                let text = focus.and_then(|index| self.transcript.items().get(index)).map(Item::copy_text);
                return text.map(copy).into_iter().collect();
            }
            KeyCode::Esc | KeyCode::Char('q') => self.end_browsing(),
            // Whoever types wants to write.
            KeyCode::Char(_) => {
                self.end_browsing();
                return self.write_key(key);
            }
            _ => (),
        }
        Vec::new()
    }

    fn end_browsing(&mut self) {
        self.browsing = false;
        self.transcript.set_focus(None);
    }

    fn is_thought(&self, index: usize) -> bool {
        matches!(self.transcript.items().get(index), Some(Item::Thought(_)))
    }

    fn asked_key(&mut self, key: KeyEvent) -> Vec<Command> {
        let width = self.input_width();
        let about =
            self.asking.question().map(|question| (question.about.tool.clone(), question.about.subject.clone()));
        let answered = self.asking.key(key, self.now, width);
        self.answered(answered, about)
    }

    fn answered(&mut self, answered: Answered, about: Option<(String, String)>) -> Vec<Command> {
        match answered {
            Answered::NotYet => Vec::new(),
            Answered::With(command) => {
                if let Some((tool, subject)) = about {
                    self.transcript.tool_answered(&tool, &subject);
                }
                vec![command]
            }
            Answered::AndStop(command) => {
                // The other way round the model would be told of the no, and asked.
                let mut commands = self.stop();
                commands.push(command);
                commands
            }
            Answered::Look { title, text } => {
                self.reader = Some(Reader::preview(&title, &text));
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
            Outcome::Stay => Vec::new(),
            Outcome::Copy(text) => vec![copy(text)],
            Outcome::Close => {
                self.reader = None;
                Vec::new()
            }
        }
    }

    pub(super) fn mouse(&mut self, mouse: MouseEvent) -> Vec<Command> {
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
        if !area.contains((x, y).into()) {
            return;
        }
        let is_hint = !self.transcript.is_following() && y + 1 == area.bottom() && x + 9 > area.right();
        if is_hint {
            return self.transcript.follow();
        }
        match self.transcript.hit(usize::from(y - area.y)) {
            Some(Hit { item, part: Part::Header }) => self.transcript.toggle(item),
            // Of a window one sees only the end; a click anywhere on it opens it.
            Some(Hit { item, part: Part::Body }) if self.transcript.is_window(item) => self.transcript.toggle(item),
            Some(Hit { part: Part::Body, .. }) | None => (),
        }
    }

    /// What the user's own editor was left with.
    pub(super) fn edited(&mut self, text: &str) {
        match text.trim().is_empty() {
            true => self.toast("the editor left nothing; the text is as it was".to_owned()),
            false => self.composer.editor.fill(text),
        }
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Command> {
        match self.mode() {
            Mode::Write => self.paste_prompt(text),
            Mode::Browse => {
                self.end_browsing();
                self.paste_prompt(text);
            }
            Mode::Asked | Mode::Message => self.asking.paste(text),
        }
        Vec::new()
    }

    /// What is pasted names no files: whoever wrote it may be somebody else.
    fn paste_prompt(&mut self, text: &str) {
        let editor = &mut self.composer.editor;
        editor.paste(&literal_behind(editor.before_cursor(), text));
    }
}
