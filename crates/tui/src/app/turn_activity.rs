//! What the running turn is doing, and the line above the input that says so.

use std::time::Duration;

use aside_core::block::Time;
use aside_core::terminal_text::terminal_safe_line;

use super::App;
use crate::text::width_of;
use crate::text::wrap::{ellipsize, first_that_fits};
use aside_front::LONG_SILENCE;
use aside_front::wording::{self, duration};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnState {
    Idle,
    Running {
        since: Option<Time>,
    },
    /// The user stopped the turn; the engine has not confirmed it yet.
    Stopping {
        since: Option<Time>,
    },
}

/// Whether thinking was requested and arrived in this turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingRequest {
    None,
    /// Requested, but no thinking has arrived yet.
    Sent,
    Honoured,
    /// The turn ended without thinking.
    Ignored,
}

/// What the turn is doing. Shown even where thinking is hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TurnActivity {
    None,
    /// The request was sent and nothing has arrived yet.
    Waiting,
    Thinking,
    Writing,
    Calling(String),
    Running(String),
    /// Older turns are being summarised.
    Compacting,
    /// The request is sent again at this time.
    Retrying {
        at: Option<Time>,
        attempt: u32,
        why: String,
    },
}

/// A command of the user that takes time. It can be stopped, as a turn can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UserCommand {
    /// A command line, by the id of its call.
    Shell(String),
    Compact,
}

/// What is shown with little room while the model repeats itself.
const ASK: &str = "repeating · Alt+Enter answers";
/// With less room, a retry is shown without its reason.
const REASON_ROOM: usize = 45;

impl App {
    /// The activity, for the line above the input. If space is short, names are shortened and the
    /// stop key stays.
    pub fn activity_line(&self, room: usize) -> Option<String> {
        let (since, how) = match self.turn {
            TurnState::Idle => return None,
            // Esc then belongs to the permission question.
            TurnState::Running { since } if self.permission_prompt.is_waiting() => (since, None),
            TurnState::Running { since } => (since, Some("Esc stops")),
            TurnState::Stopping { since } => (since, Some("stopping")),
        };
        let passed = since.zip(self.now).map(|(since, now)| now.0.saturating_sub(since.0)).filter(|ms| *ms >= 1000);
        let what = match &self.activity {
            _ if self.permission_prompt.is_waiting() => Some("waiting for you".to_owned()),
            TurnActivity::None => None,
            TurnActivity::Waiting if self.model().is_empty() => Some("waiting".to_owned()),
            TurnActivity::Waiting => Some(format!("waiting for {}", terminal_safe_line(self.model()))),
            TurnActivity::Thinking if self.transcript.is_looping() => {
                Some("repeating · Alt+Enter answers now".to_owned())
            }
            TurnActivity::Thinking => Some("thinking".to_owned()),
            TurnActivity::Writing => Some("writing".to_owned()),
            TurnActivity::Calling(name) => Some(format!("calling {}", terminal_safe_line(name))),
            TurnActivity::Running(name) => Some(format!("running {}", terminal_safe_line(name))),
            TurnActivity::Compacting => Some("compacting".to_owned()),
            TurnActivity::Retrying { at, attempt, why } => Some(self.retry_text(*at, *attempt, why)),
        };
        let silence = self.silence();
        let passed = passed.filter(|_| silence.is_none() && !matches!(self.activity, TurnActivity::Retrying { .. }));
        let rest: Vec<String> = silence.into_iter().chain(passed.map(duration)).chain(how.map(str::to_owned)).collect();
        let mut rest = rest.join(" · ");
        let spinner = self.transcript.render_context(self.theme.motion).spinner();
        let room_for = |rest: &str| room.saturating_sub(width_of(spinner) + width_of(rest) + 4);
        // Users know how to stop; the key that asks for an answer is less known.
        let is_looping = self.activity == TurnActivity::Thinking && self.transcript.is_looping();
        if is_looping && what.as_deref().is_some_and(|what| width_of(what) > room_for(&rest)) {
            rest.clear();
        }
        let room = room_for(&rest);
        let what = if is_looping { what.map(|whole| first_that_fits(&[whole, ASK.to_owned()], room)) } else { what };
        // A shortened model name is useless, and so are the first words of a reason.
        let is_plain_wait = self.activity == TurnActivity::Waiting && !self.permission_prompt.is_waiting();
        let is_retry = matches!(self.activity, TurnActivity::Retrying { .. });
        let what = what.map(|what| match what.split_once(',') {
            _ if width_of(&what) > room && is_plain_wait => "waiting".to_owned(),
            Some((wait, _)) if width_of(&what) > room && is_retry && room < REASON_ROOM => wait.to_owned(),
            Some(_) | None => ellipsize(&what, room),
        });
        let parts: Vec<String> = what.into_iter().chain([rest]).filter(|part| !part.is_empty()).collect();
        Some(format!("{spinner} {}", parts.join(" · ")))
    }

    /// The wait counts down; the reason comes last, because it may be long.
    fn retry_text(&self, at: Option<Time>, attempt: u32, why: &str) -> String {
        let left = at.zip(self.now).map_or(0, |(at, now)| at.0.saturating_sub(now.0));
        wording::retrying(Duration::from_millis(left), attempt, why)
    }

    /// How long the provider has sent nothing, once that is long.
    pub(crate) fn silence(&self) -> Option<String> {
        let waits = match &self.activity {
            TurnActivity::Waiting | TurnActivity::Thinking | TurnActivity::Writing | TurnActivity::Calling(_) => true,
            TurnActivity::None
            | TurnActivity::Running(_)
            | TurnActivity::Compacting
            | TurnActivity::Retrying { .. } => false,
        };
        let silent = self.heard_at.zip(self.now).map(|(heard, now)| now.0.saturating_sub(heard.0))?;
        let silent = Duration::from_millis(silent);
        let is_long = waits && silent >= LONG_SILENCE && !self.permission_prompt.is_waiting();
        is_long.then(|| wording::silence(silent))
    }
}
