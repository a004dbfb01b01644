//! A tool wants to do something: what, and the answers there are.

use aside_core::screen::neutral;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::{App, Mode};
use crate::paint::paint_row;
use crate::text::wrap::cut;
use crate::text::{Break, Face, Ink, Margin, Row, Shade, Span, width_of, wrap};
use crate::transcript::hunks::Diff;
use crate::transcript::plain::has_diff;

/// Paints the question at the bottom of the area; returns what is left above.
pub(super) fn draw(app: &App, area: Rect, buffer: &mut Buffer) -> Rect {
    let Some(question) = app.asking.question() else { return area };
    let width = usize::from(area.width);
    let subject = question.subject.trim();
    // A command is its own preview; one of several lines is read line by line.
    let preview = question.preview.as_deref().filter(|preview| preview.trim() != subject);
    let (subject, preview) = match preview {
        None if subject.contains('\n') => ("", Some(subject)),
        preview => (subject, preview),
    };
    let mut asked = Vec::new();
    let head = [
        Span::new(Ink::Warn, format!("{} ", neutral(&question.tool))).faced(Face::BOLD),
        Span::new(Ink::Plain, neutral(subject).replace('\n', " ⏎ ")),
    ];
    wrap(&head, width, Break::Words, &Margin::default(), Shade::None, &mut asked);
    asked.extend(preview.into_iter().flat_map(|preview| preview_rows(preview, width)));
    let answers = match app.mode() {
        Mode::Word => {
            vec![Row::new(vec![Span::new(Ink::Accent, cut("Enter says no with it, Esc goes back", width))])]
        }
        Mode::Asked | Mode::Browse | Mode::Write => answers(question.covers.as_deref(), width),
    };
    let room = usize::from(area.height * 2 / 3).saturating_sub(1 + answers.len());
    let mut rows = vec![Row::new(vec![Span::new(Ink::Warn, "─".repeat(width))])];
    rows.extend(fit(asked, width, room.max(1)));
    rows.extend(answers);
    let height = (rows.len() as u16).min(area.height);
    let above = Rect { height: area.height - height, ..area };
    let own = Rect { y: above.bottom(), height, ..area };
    // If there is too little room, the answers are what must be seen.
    for (y, row) in rows.iter().skip(rows.len() - usize::from(height)).enumerate() {
        paint_row(buffer, own, y as u16, row, None, &app.theme);
    }
    above
}

fn preview_rows(preview: &str, width: usize) -> Vec<Row> {
    let preview = neutral(preview);
    let is_diff = has_diff(&preview);
    let mut rows = Vec::new();
    let mut diff = Diff::default();
    // The rest of a long line must not look like a line of its own.
    let indent = |text: &str| vec![Span::new(Ink::Muted, text)];
    let margin = Margin { first: indent("  "), rest: indent("    ") };
    for line in preview.lines() {
        let ink = if is_diff { diff.ink(line) } else { Ink::Code };
        wrap(&[Span::new(ink, line)], width, Break::Words, &margin, Shade::None, &mut rows);
    }
    rows
}

/// Nothing of what is asked is left out in silence.
fn fit(mut rows: Vec<Row>, width: usize, room: usize) -> Vec<Row> {
    if rows.len() > room {
        let kept = room.saturating_sub(1);
        let more = format!("  … {} more rows, v shows all", rows.len() - kept);
        rows.truncate(kept);
        rows.push(Row::new(vec![Span::new(Ink::Muted, cut(&more, width))]));
    }
    rows
}

fn answers(covers: Option<&str>, width: usize) -> Vec<Row> {
    let longer: &[&str] = if covers.is_some() { &["s this session", "p this project"] } else { &[] };
    let all = ["y once"].iter().chain(longer).chain(&["n no", "w no, with a word", "Esc stops"]);
    // A row ends behind an answer, not inside one.
    let mut lines: Vec<String> = Vec::new();
    for answer in all {
        match lines.last_mut() {
            Some(line) if width_of(line) + width_of(answer) + 3 <= width => line.push_str(&format!(" · {answer}")),
            _ => lines.push((*answer).to_owned()),
        }
    }
    let mut rows = Vec::new();
    for line in lines {
        wrap(&[Span::new(Ink::Accent, line)], width, Break::Words, &Margin::default(), Shade::None, &mut rows);
    }
    if let Some(covers) = covers {
        let text = format!("s and p cover `{}`", neutral(covers));
        wrap(&[Span::new(Ink::Muted, text)], width, Break::Words, &Margin::default(), Shade::None, &mut rows);
    }
    rows
}
