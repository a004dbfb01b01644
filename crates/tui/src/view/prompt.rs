//! A tool wants to do something: what, and the answers there are.

use aside_core::screen::neutral_line;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::{App, Mode};
use crate::paint::paint_row;
use crate::text::wrap::cut;
use crate::text::{Body, Break, Face, Ink, Margin, Row, Shade, Span, wrap};

/// What would be done stands a little in.
const INDENT: &str = "  ";

/// Paints the question at the bottom of the area; returns what is left above.
pub(super) fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) -> Rect {
    let Some(question) = app.asking.question() else { return area };
    let width = usize::from(area.width);
    let mut rows = vec![Row::new(vec![Span::new(Ink::Warn, "─".repeat(width))])];
    let head = [
        Span::new(Ink::Warn, format!("{} ", neutral_line(&question.tool))).faced(Face::BOLD),
        Span::new(Ink::Plain, neutral_line(&question.subject)),
    ];
    wrap(&head, width, Break::Words, &Margin::default(), Shade::None, &mut rows);
    let answers = match app.mode() {
        Mode::Word => {
            vec![Row::new(vec![Span::new(Ink::Accent, cut("Enter says no with this word, Esc goes back", width))])]
        }
        Mode::Asked | Mode::Browse | Mode::Write => answers(question.covers.as_deref(), width),
    };
    let room = usize::from(area.height * 2 / 3).saturating_sub(rows.len() + answers.len());
    if let Some(preview) = app.asking.preview(width.saturating_sub(INDENT.len())) {
        preview_rows(preview, width, room, &mut rows);
    }
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

fn preview_rows(preview: Body<'_>, width: usize, room: usize, rows: &mut Vec<Row>) {
    let all = preview.rows.len();
    let kept = if all > room { room.saturating_sub(1) } else { all };
    for row in preview.rows.iter().take(kept) {
        let mut row = preview.lit(row).into_owned();
        row.spans.insert(0, Span::new(Ink::Muted, INDENT));
        rows.push(row);
    }
    if all > room && room > 0 {
        let more = format!("{INDENT}… {} more rows, v shows all", all - kept);
        rows.push(Row::new(vec![Span::new(Ink::Muted, cut(&more, width))]));
    }
}

fn answers(covers: Option<&str>, width: usize) -> Vec<Row> {
    let mut line = String::from("y once · ");
    if covers.is_some() {
        line.push_str("s this session · p this project · ");
    }
    line.push_str("n no · w no, with a word · Esc no, and stop");
    let mut rows = Vec::new();
    wrap(&[Span::new(Ink::Accent, line)], width, Break::Words, &Margin::default(), Shade::None, &mut rows);
    if let Some(covers) = covers {
        let text = format!("s and p cover `{}`", neutral_line(covers));
        wrap(&[Span::new(Ink::Muted, text)], width, Break::Words, &Margin::default(), Shade::None, &mut rows);
    }
    rows
}
