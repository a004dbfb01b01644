//! A tool wants to do something: what, and the answers there are.

use aside_core::screen::neutral_line;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::{App, Mode};
use crate::paint::paint_row;
use crate::seam::Question;
use crate::text::wrap::cut;
use crate::text::{Body, Break, Face, Ink, Margin, Row, Shade, Span, width_of, wrap};

/// What would be done stands a little in.
const INDENT: &str = "  ";

/// Paints the question at the bottom of the area; returns what is left above.
pub(super) fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) -> Rect {
    let Some(question) = app.asking.question() else { return area };
    let width = usize::from(area.width);
    let (subject, _) = question.parts();
    let mut asked = Vec::new();
    let head = [
        Span::new(Ink::Warn, format!("{} ", neutral_line(&question.tool))).faced(Face::BOLD),
        Span::new(Ink::Plain, neutral_line(subject)),
    ];
    wrap(&head, width, Break::Words, &Margin::default(), Shade::None, &mut asked);
    let answers = match app.mode() {
        Mode::Word => {
            vec![Row::new(vec![Span::new(Ink::Accent, cut("Enter says no with it, Esc goes back", width))])]
        }
        Mode::Asked | Mode::Browse | Mode::Write => answers(question.covers.as_deref(), width),
    };
    // The line above, what is asked and the answers.
    if app.mode() != Mode::Word && 2 + answers.len() > usize::from(area.height) {
        let rows = compact(question, width, usize::from(area.height));
        return paint(app, area, &rows, buffer);
    }
    let room = usize::from(area.height * 2 / 3).saturating_sub(1 + answers.len()).max(1);
    let mut all = asked.len();
    if let Some(preview) = app.asking.preview(width.saturating_sub(INDENT.len())) {
        all += preview.rows.len();
        asked.extend(preview_rows(&preview, room));
    }
    let mut rows = vec![Row::new(vec![Span::new(Ink::Warn, "─".repeat(width))])];
    rows.extend(fit(asked, all, width, room));
    rows.extend(answers);
    paint(app, area, &rows, buffer)
}

fn paint(app: &App, area: Rect, rows: &[Row], buffer: &mut Buffer) -> Rect {
    let height = (rows.len() as u16).min(area.height);
    let above = Rect { height: area.height - height, ..area };
    let own = Rect { y: above.bottom(), height, ..area };
    // If there is too little room, the answers are what must be seen.
    for (y, row) in rows.iter().skip(rows.len() - usize::from(height)).enumerate() {
        paint_row(buffer, own, y as u16, row, None, &app.theme);
    }
    above
}

/// The question where its answers have no room in words: the keys alone, and a
/// row for what a longer yes covers, without which it is not offered.
fn compact(question: &Question, width: usize, height: usize) -> Vec<Row> {
    let (subject, preview) = question.parts();
    let more = if preview.is_some() { " …" } else { "" };
    let tool = cut(&neutral_line(&question.tool), width);
    let subject = format!("{}{more}", neutral_line(subject));
    let subject = cut(subject.trim_start(), width.saturating_sub(width_of(&tool) + 1));
    let covers = question.covers.as_deref().filter(|_| height >= 4);
    let mut rows = vec![
        Row::new(vec![Span::new(Ink::Warn, "─".repeat(width))]),
        Row::new(vec![Span::new(Ink::Warn, format!("{tool} ")).faced(Face::BOLD), Span::new(Ink::Plain, subject)]),
    ];
    if let Some(covers) = covers {
        let text = format!("s, p: {}", neutral_line(covers));
        rows.push(Row::new(vec![Span::new(Ink::Muted, cut(&text, width))]));
    }
    let keys = if covers.is_some() { "y s p n w v Esc" } else { "y n w v Esc" };
    rows.push(Row::new(vec![Span::new(Ink::Accent, cut(keys, width))]));
    rows
}

/// As many as there may be room for.
fn preview_rows(preview: &Body<'_>, room: usize) -> Vec<Row> {
    let indented = |index: usize| {
        let mut row = preview.row(index)?.into_owned();
        row.spans.insert(0, Span::new(Ink::Muted, INDENT));
        Some(row)
    };
    (0..room).map_while(indented).collect()
}

/// Of all that is asked nothing is left out in silence.
fn fit(mut rows: Vec<Row>, all: usize, width: usize, room: usize) -> Vec<Row> {
    if all > room {
        let kept = room.saturating_sub(1);
        let more = format!("{INDENT}… {} more rows, v shows all", all - kept);
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
        let text = format!("s and p cover `{}`", neutral_line(covers));
        wrap(&[Span::new(Ink::Muted, text)], width, Break::Words, &Margin::default(), Shade::None, &mut rows);
    }
    rows
}
