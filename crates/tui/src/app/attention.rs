//! Calls a user who looks elsewhere: a notification when a question waits or a long turn ends, and the title of the
//! window.

use aside_core::block::Time;
use aside_core::settings::Notify;
use aside_core::terminal_text::terminal_safe_line;
use aside_front::Command;

use super::{App, TurnState};
use crate::text::wrap::ellipsize;

/// A shorter turn ends before the user looks elsewhere.
const LONG_TURN_MS: u64 = 10_000;
/// The git branch is asked for at most this often.
const BRANCH_INTERVAL_MS: u64 = 3_000;
/// The longest title, in columns.
const TITLE_WIDTH: usize = 80;

/// How to call the user, and the text of the notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub how: Notify,
    pub text: String,
}

/// What is known about where the user looks.
#[derive(Debug, Default)]
pub(super) struct Attention {
    /// Whether the window has the focus; `None` if the terminal does not say.
    pub(super) has_focus: Option<bool>,
    waiting: Option<Notification>,
    /// A long turn ended, and the user has not been back since.
    has_news: bool,
}

impl App {
    /// A key was pressed, or the window got or lost the focus.
    pub(super) fn seen(&mut self) {
        self.attention.has_news = false;
    }

    pub(super) fn focus_changed(&mut self, has_focus: bool) {
        self.attention.has_focus = Some(has_focus);
        if has_focus {
            self.seen();
        }
    }

    /// Asks for the git branch when the user is there, because it may be another one by now. Outside of a repository, there
    /// is nothing to ask.
    pub(super) fn refresh_branch(&mut self) -> Option<Command> {
        let now = self.now.filter(|_| self.status.branch.is_some())?;
        if self.branch_asked_at.is_some_and(|asked| now.0.saturating_sub(asked.0) < BRANCH_INTERVAL_MS) {
            return None;
        }
        self.branch_asked_at = Some(now);
        Some(Command::RefreshBranch(self.status.branch.clone()))
    }

    pub(super) fn call_for_question(&mut self, tool: &str) {
        self.call(format!("a question waits: {tool}"));
    }

    /// Calls the user at the end of a turn, if it took long.
    pub(super) fn call_for_end(&mut self, since: Option<Time>) {
        let took = since.zip(self.now).map_or(0, |(since, now)| now.0.saturating_sub(since.0));
        if took >= LONG_TURN_MS {
            self.attention.has_news = self.attention.has_focus != Some(true);
            self.call("the turn has ended".to_owned());
        }
    }

    fn call(&mut self, what: String) {
        let how = self.status.screen.notify;
        if how != Notify::Off && self.attention.has_focus != Some(true) {
            let text = format!("{}: {what}", self.window_name());
            self.attention.waiting = Some(Notification { how, text: terminal_safe_line(&text) });
        }
    }

    /// The notification to send now, once.
    pub fn take_notification(&mut self) -> Option<Notification> {
        self.attention.waiting.take()
    }

    /// The title of the window; none if the user wants none.
    pub fn window_title(&self) -> Option<String> {
        if self.status.screen.notify == Notify::Off {
            return None;
        }
        let mark = match self.turn {
            _ if self.permission_prompt.is_waiting() => "? ",
            TurnState::Running { .. } | TurnState::Stopping { .. } => "… ",
            TurnState::Idle if self.attention.has_news => "✓ ",
            TurnState::Idle => "",
        };
        Some(ellipsize(&format!("{mark}{}", self.window_name()), TITLE_WIDTH))
    }

    fn window_name(&self) -> String {
        let name = self.status.title.as_ref().or(self.status.folder.as_ref());
        name.map_or_else(|| "aside".to_owned(), |name| format!("{} · aside", terminal_safe_line(name)))
    }
}
