//! The line on the terminal that says what is being waited for. It is erased before anything is printed.

use std::io::Write;
use std::time::{Duration, Instant};

use aside_core::terminal_text::terminal_safe_line;
use aside_front::wording::{duration, retrying, silence};

use super::{LineState, PlainOutput, estimate_tokens};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// What is being waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Activity {
    Waiting,
    Thinking,
    RunningTools,
    Writing,
    /// The request is sent again at this time.
    Retrying {
        at: Instant,
        attempt: u32,
        why: String,
    },
}

/// Where the activity is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActivityLine {
    Hidden,
    /// On the line of the cursor.
    AtCursor,
    /// Below text whose line is not complete. The cursor stays at the end of the text.
    BelowText,
}

impl<O: Write, E: Write> PlainOutput<O, E> {
    pub(super) fn set_activity(&mut self, activity: Activity) {
        self.activity = activity;
        self.since = Instant::now();
        self.thinking_bytes = 0;
    }

    /// Draws the line while nothing else is printed.
    pub(super) fn draw_activity(&mut self, now: Instant) {
        if self.queued_lines.is_some() {
            return;
        }
        let long_silence = self.silence.long_silence(now);
        let place = match self.text_line() {
            LineState::Ended => ActivityLine::AtCursor,
            // Text that comes shows by itself what happens.
            LineState::Open if long_silence.is_none() => return,
            LineState::Open => ActivityLine::BelowText,
        };
        let Some(what) = self.describe_activity(long_silence, now) else { return };
        self.spinner_frame = (self.spinner_frame + 1) % SPINNER.len();
        let sign = SPINNER.get(self.spinner_frame).copied().unwrap_or("");
        // Without wrapping, the text stays on one line however long it is.
        let text = format!("\r\x1b[2K\x1b[?7l{sign} {what}\x1b[?7h");
        if self.activity_line != place {
            self.clear_activity_line();
        }
        self.flush_stdout();
        let written = match place {
            ActivityLine::Hidden => Ok(()),
            ActivityLine::AtCursor => write!(self.err, "{text}"),
            // A vertical tab scrolls if the cursor is on the last row, and keeps the column.
            ActivityLine::BelowText => write!(self.err, "\x0b\x1b[A\x1b7\x1b[B{text}\x1b8"),
        };
        let written = written.and_then(|()| self.err.flush());
        self.activity_line = place;
        self.check(written);
    }

    fn describe_activity(&self, long_silence: Option<Duration>, now: Instant) -> Option<String> {
        let what = match &self.activity {
            Activity::Retrying { at, attempt, why } if long_silence.is_none() => {
                let left = at.saturating_duration_since(now);
                return Some(retrying(left, *attempt, &terminal_safe_line(why)));
            }
            Activity::Waiting | Activity::Retrying { .. } => "waiting",
            Activity::Thinking => "thinking",
            Activity::RunningTools => "running tools",
            Activity::Writing if self.style.buffers_text || long_silence.is_some() => "answering",
            Activity::Writing => return None,
        };
        Some(match long_silence {
            Some(lasted) => format!("{what} · {}", silence(lasted)),
            None => format!("{what} {}", self.elapsed_text(now)),
        })
    }

    /// Whether the terminal shows text whose line is not complete.
    fn text_line(&self) -> LineState {
        match (self.out_line, self.err_line) {
            (LineState::Open, _) if self.style.out_is_terminal => LineState::Open,
            (_, err_line) => err_line,
        }
    }

    pub(super) fn elapsed_text(&self, now: Instant) -> String {
        let elapsed = now.saturating_duration_since(self.since);
        let elapsed = duration(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
        match (&self.activity, self.thinking_bytes) {
            (Activity::Thinking, bytes) if bytes > 0 => {
                format!("{elapsed} · ~{} tokens", estimate_tokens(bytes))
            }
            _ => elapsed,
        }
    }

    pub(super) fn clear_activity_line(&mut self) {
        let erase: &[u8] = match std::mem::replace(&mut self.activity_line, ActivityLine::Hidden) {
            ActivityLine::Hidden => return,
            ActivityLine::AtCursor => b"\r\x1b[2K",
            ActivityLine::BelowText => b"\x1b7\x1b[B\r\x1b[2K\x1b8",
        };
        let written = self.err.write_all(erase);
        self.check(written);
    }
}
