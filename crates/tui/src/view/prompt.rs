//! A tool asks for permission: what it would do, and the answers there are.

use aside_core::question::{BodyRow, Choice, Choices, Layout, Rendered, Selected};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::asking::Readable;
use crate::app::{App, Mode};
use crate::paint::paint_row;
use crate::text::wrap::cut;
use crate::text::{Face, Ink, Row, Span, width_of};

/// Paints the question at the bottom of the area; returns what is left above.
pub(super) fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) -> Rect {
    if !app.asking.is_waiting() {
        return area;
    }
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mode = app.mode();
    let whole_question = rendered(app, width, usize::MAX);
    let (facts, covers) = whole_question.map_or((0, None), |whole| (whole.facts.len(), whole.covers.clone()));
    let answers = match (mode, app.asking.choices()) {
        (Mode::Message, _) => {
            vec![Row::new(vec![Span::new(Ink::Accent, cut("Enter says no with it, Esc goes back", width))])]
        }
        (Mode::Asked | Mode::Browse | Mode::Write, Some(choices)) => answers(choices, covers.as_deref(), width),
        (Mode::Asked | Mode::Browse | Mode::Write, None) => Vec::new(),
    };
    // The line above, the head, the facts and the answers are always seen.
    let around = 2 + facts + answers.len();
    let room = (height * 2 / 3).max(around + 1).min(height).saturating_sub(around);
    let rows = match rendered(app, width, room) {
        // Something does not fit: one more fact says so, and takes a row.
        Some(rendered) if rendered.hidden > 0 && room > 1 => {
            let rendered = crate::view::prompt::rendered(app, width, room - 1);
            rendered.map(|rendered| whole(rendered, answers, width)).unwrap_or_default()
        }
        Some(rendered) => whole(rendered, answers, width),
        None => Vec::new(),
    };
    let is_too_small = rows.len() > height && mode != Mode::Message;
    let rows = if is_too_small { compact(app, width) } else { rows };
    app.question_drawn(if is_too_small { Readable::No } else { Readable::Yes });
    paint(app, area, &rows, buffer)
}

fn rendered(app: &mut App, width: usize, rows: usize) -> Option<&Rendered> {
    app.asking.rendered(Layout { width: Some(width), rows: Some(rows) })
}

fn whole(rendered: &Rendered, answers: Vec<Row>, width: usize) -> Vec<Row> {
    let mut rows = vec![rule(width), head(rendered)];
    rows.extend(rendered.body.iter().map(body_row));
    rows.extend(rendered.facts.iter().map(|fact| Row::new(vec![Span::new(Ink::Warn, fact.as_str())])));
    rows.extend(answers);
    rows
}

fn rule(width: usize) -> Row {
    Row::new(vec![Span::new(Ink::Warn, "─".repeat(width))])
}

fn head(rendered: &Rendered) -> Row {
    Row::new(vec![Span::new(Ink::Warn, rendered.head.as_str()).faced(Face::BOLD)])
}

/// A row in its gutter, in the colours of a diff where it looks like one. A row
/// with something in it that cannot be seen stands out.
fn body_row(row: &BodyRow) -> Row {
    let ink = match row.text.chars().next() {
        _ if row.is_marked => Ink::Warn,
        Some('+') if !row.is_continued => Ink::Added,
        Some('-') if !row.is_continued => Ink::Removed,
        _ => Ink::Plain,
    };
    let gutter = if row.is_marked { Ink::Warn } else { Ink::Muted };
    let text = row.to_string();
    let text = text.strip_prefix(row.gutter()).unwrap_or(&text).to_owned();
    Row::new(vec![Span::new(gutter, row.gutter()), Span::new(ink, text)])
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

/// The question where there is no room for it: what it is about, and the keys. A
/// yes counts only once it was read with `v`, and for this once.
fn compact(app: &mut App, width: usize) -> Vec<Row> {
    if let Some(choices) = app.asking.choices().filter(|choices| choices.offers_lasting()) {
        choices.without_lasting();
    }
    let Some(rendered) = rendered(app, width, 0) else { return Vec::new() };
    vec![rule(width), head(rendered), Row::new(vec![Span::new(Ink::Accent, cut("v to read it, n, Esc", width))])]
}

fn answers(choices: &Choices, covers: Option<&str>, width: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut used = width;
    let stop = Span::new(Ink::Muted, "Esc stops");
    let spans = choices.iter().map(|(choice, selected)| answer(choice, selected)).chain([stop]);
    for span in spans {
        let size = width_of(&span.text);
        // A row ends behind an answer, not inside one.
        match rows.last_mut() {
            Some(row) if used + size + 3 <= width => {
                row.spans.push(Span::new(Ink::Muted, " · "));
                row.spans.push(span);
                used += size + 3;
            }
            _ => {
                rows.push(Row::new(vec![span]));
                used = size;
            }
        }
    }
    if let Some(covers) = covers.filter(|_| choices.offers_lasting()) {
        rows.push(Row::new(vec![Span::new(Ink::Muted, covers)]));
    }
    rows
}

fn answer(choice: Choice, selected: Selected) -> Span {
    let text = format!("{} {}", choice.key(), choice.label());
    match selected {
        Selected::Yes => Span::new(Ink::Accent, format!("› {text}")).faced(Face::BOLD.with(Face::UNDERLINED)),
        Selected::No => Span::new(Ink::Accent, text),
    }
}
