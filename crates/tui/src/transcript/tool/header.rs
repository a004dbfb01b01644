//! The header line of a tool call: its state, what it is about, and the size of its output.

use aside_core::block::Time;
use aside_core::counted::counted;
use aside_front::command_result::result_size;
use aside_front::tool_call::CallState;

use super::{ToolBlock, ToolPurpose};
use crate::text::wrap::{ellipsize, ellipsize_path};
use crate::text::{Row, Span, TextRole, width_of};
use crate::transcript::RenderContext;
use aside_front::wording::duration;

/// At least this much of a name is shown.
const MIN_NAME: usize = 8;
/// From this width on there is room for the subject and the output size.
const ROOM_FOR_BOTH: usize = 60;
/// The arrow, the mark of the state and the spaces after them.
const MARKS_WIDTH: usize = 4;

/// The texts of a header, shortened to the width.
struct HeaderParts {
    name: String,
    /// None if there is no room for it.
    subject: Option<String>,
    tail: String,
}

impl ToolBlock {
    pub fn header(&self, context: &RenderContext) -> Row {
        let (mark, role) = match self.state {
            CallState::Streaming | CallState::Running => (context.spinner(), TextRole::Accent),
            CallState::Waiting => ("○", TextRole::Muted),
            CallState::Asked => ("?", TextRole::Warning),
            CallState::Done => ("✓", TextRole::Success),
            CallState::Failed => ("✗", TextRole::Error),
            CallState::Denied => ("✗", TextRole::Warning),
            CallState::Stopped | CallState::NotRun => ("○", TextRole::Warning),
        };
        let arrow = if self.is_open() { "▼ " } else { "▶ " };
        let HeaderParts { name, subject, tail } = self.header_parts(context);
        let fits = MARKS_WIDTH + width_of(&name) + width_of(&tail) <= context.width;
        let mut spans = vec![
            Span::new(TextRole::Muted, arrow),
            Span::new(role, mark),
            Span::new(TextRole::Accent, format!(" {name}")),
        ];
        if let Some(subject) = subject.filter(|subject| !subject.is_empty()) {
            spans.push(Span::new(TextRole::Plain, format!(" {subject}")));
        }
        if fits {
            spans.push(Span::new(TextRole::Muted, tail));
        }
        Row::new(spans)
    }

    /// Whether the header does not show the whole command or path.
    pub(super) fn is_subject_cut(&self, context: &RenderContext) -> bool {
        self.header_parts(context).subject.is_none_or(|subject| subject != self.subject)
    }

    fn header_parts(&self, context: &RenderContext) -> HeaderParts {
        let status_text = self.status_text(context.now);
        let widths = MARKS_WIDTH + width_of(&self.name) + 1 + width_of(&self.subject);
        let fits = |tail: &str| widths + width_of(tail) <= context.width;
        let all = self.size_text() + &status_text;
        // The subject is more useful than the output size.
        let gives_way = !fits(&all) && (fits(&status_text) || context.width < ROOM_FOR_BOTH);
        let tail = if gives_way { status_text } else { all };
        let room = context.width.saturating_sub(MARKS_WIDTH + width_of(&tail));
        let name = ellipsize(&self.name, room.max(MIN_NAME));
        let room = room.saturating_sub(width_of(&name) + 1);
        let shorten = if self.is_about_a_path { ellipsize_path } else { ellipsize };
        HeaderParts { name, subject: (room > 3).then(|| shorten(&self.subject, room)), tail }
    }

    /// The size of the output.
    fn size_text(&self) -> String {
        let so_far = match (self.state, &self.partial, &self.live) {
            (CallState::Streaming, Some(partial), _) if !partial.is_empty() => Some(partial.n_lines() as u64),
            (CallState::Running, _, Some((_, n_lines))) => Some(*n_lines),
            _ => None,
        };
        if let Some(n_lines) = so_far {
            return format!(" · {}", counted(n_lines, "line"));
        }
        // The result of a call that failed is a message, unless a command wrote it.
        let is_real_output = match self.state {
            CallState::Done => true,
            CallState::Failed => self.purpose == ToolPurpose::Command,
            CallState::Streaming
            | CallState::Waiting
            | CallState::Asked
            | CallState::Running
            | CallState::Denied
            | CallState::Stopped
            | CallState::NotRun => false,
        };
        let Some(output) = self.output.as_ref().filter(|_| is_real_output) else { return String::new() };
        let n_lines = match self.purpose {
            ToolPurpose::Write { n_lines } => n_lines,
            ToolPurpose::Command | ToolPurpose::Other => self.n_output_lines.unwrap_or(output.lines()),
        };
        format!(" · {}", result_size(n_lines, self.changed))
    }

    /// The status and the duration.
    fn status_text(&self, now: Option<Time>) -> String {
        let (word, ms) = match self.state {
            CallState::NotRun => (" · not run", None),
            CallState::Failed => (" · failed", self.duration_ms),
            CallState::Denied => (" · denied", None),
            CallState::Stopped => (" · stopped", self.duration_ms),
            CallState::Done => ("", self.duration_ms),
            CallState::Running => ("", self.began.zip(now).map(|(began, now)| now.0.saturating_sub(began.0))),
            CallState::Streaming | CallState::Waiting | CallState::Asked => ("", None),
        };
        let ms = ms.filter(|ms| *ms >= 1000);
        format!("{word}{}", ms.map(|ms| format!(" · {}", duration(ms))).unwrap_or_default())
    }
}
