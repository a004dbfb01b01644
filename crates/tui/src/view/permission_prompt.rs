//! Draws a permission question: what the tool would do, and the answers.

use aside_core::permission_question::{
    AnswerChoice, AnswerChoices, BodyRow, QuestionKind, QuestionLayout, RenderedQuestion, Selected,
};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::permission_prompt::QuestionFit;
use crate::app::{App, InputMode};
use crate::paint::paint_row;
use crate::text::wrap::ellipsize;
use crate::text::{FontStyle, Row, Span, TextRole, width_of};

/// Paints the question at the bottom of the area and returns the area above it.
pub(super) fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) -> Rect {
    if !app.permission_prompt.is_waiting() {
        return area;
    }
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mode = app.mode();
    let kind = app.permission_prompt.question().map(|question| question.about.kind).unwrap_or_default();
    let unlimited = rendered(app, width, usize::MAX);
    let (facts, covers) = unlimited.map_or((0, None), |whole| (whole.facts.len(), whole.covers.clone()));
    let answers = match (mode, app.permission_prompt.choices()) {
        (InputMode::DenyMessage, _) => {
            vec![Row::new(vec![Span::new(TextRole::Accent, ellipsize("Enter says no with it, Esc goes back", width))])]
        }
        (InputMode::Permission | InputMode::Browse | InputMode::Find | InputMode::Write, Some(choices)) => {
            answers(choices, covers.as_deref(), width)
        }
        (InputMode::Permission | InputMode::Browse | InputMode::Find | InputMode::Write, None) => Vec::new(),
    };
    // The rule, the head, the facts and the answers are always visible.
    let around = 2 + facts + answers.len();
    let room = (height * 2 / 3).max(around + 1).min(height).saturating_sub(around);
    let rows = match rendered(app, width, room) {
        // Part of the body is hidden. An extra fact row says so.
        Some(rendered) if rendered.hidden > 0 && room > 1 => {
            let rendered = crate::view::permission_prompt::rendered(app, width, room - 1);
            rendered.map(|rendered| question_rows(rendered, kind, answers, width)).unwrap_or_default()
        }
        Some(rendered) => question_rows(rendered, kind, answers, width),
        None => Vec::new(),
    };
    let is_too_small = rows.len() > height && mode != InputMode::DenyMessage;
    let rows = if is_too_small { compact(app, width) } else { rows };
    app.question_drawn(if is_too_small { QuestionFit::TooSmall } else { QuestionFit::Whole });
    paint(app, area, &rows, buffer)
}

fn rendered(app: &mut App, width: usize, rows: usize) -> Option<&RenderedQuestion> {
    app.permission_prompt.rendered(QuestionLayout { width: Some(width), rows: Some(rows), ..QuestionLayout::default() })
}

fn question_rows(rendered: &RenderedQuestion, kind: QuestionKind, answers: Vec<Row>, width: usize) -> Vec<Row> {
    let mut rows = vec![rule(width), head(rendered)];
    let mut role = TextRole::Plain;
    for row in &rendered.body {
        // The rest of a long line keeps the colour of its beginning.
        role = if row.is_continued { role } else { body_role(row, kind) };
        rows.push(body_row(row, role));
    }
    rows.extend(rendered.facts.iter().map(|fact| Row::new(vec![Span::new(TextRole::Warning, fact.as_str())])));
    rows.extend(answers);
    rows
}

fn rule(width: usize) -> Row {
    Row::new(vec![Span::new(TextRole::Warning, "─".repeat(width))])
}

fn head(rendered: &RenderedQuestion) -> Row {
    Row::new(vec![Span::new(TextRole::Warning, rendered.head.as_str()).with_font(FontStyle::BOLD)])
}

/// Diff colours where it looks like a diff. Lines with invisible characters stand out.
fn body_role(row: &BodyRow, kind: QuestionKind) -> TextRole {
    match (row.text.chars().next(), kind) {
        _ if row.is_marked => TextRole::Warning,
        // Instructions may have lists.
        (_, QuestionKind::Trust) => TextRole::Plain,
        (Some('+'), QuestionKind::Permission | QuestionKind::Undo) => TextRole::Added,
        (Some('-'), QuestionKind::Permission | QuestionKind::Undo) => TextRole::Removed,
        (_, QuestionKind::Permission | QuestionKind::Undo) => TextRole::Plain,
    }
}

/// A body row with its gutter.
fn body_row(row: &BodyRow, role: TextRole) -> Row {
    let gutter = if row.is_marked { TextRole::Warning } else { TextRole::Muted };
    let text = row.to_string();
    let text = text.strip_prefix(row.gutter()).unwrap_or(&text).to_owned();
    Row::new(vec![Span::new(gutter, row.gutter()), Span::new(role, text)])
}

fn paint(app: &App, area: Rect, rows: &[Row], buffer: &mut Buffer) -> Rect {
    let height = (rows.len() as u16).min(area.height);
    let above = Rect { height: area.height - height, ..area };
    let own = Rect { y: above.bottom(), height, ..area };
    // If space is short, the answers must stay visible.
    for (y, row) in rows.iter().skip(rows.len() - usize::from(height)).enumerate() {
        paint_row(buffer, own, y as u16, row, None, &app.theme);
    }
    above
}

/// The question on a screen too small for it: its subject and the keys. Allowing it requires
/// reading it with `v` first, and lasts for this call only.
fn compact(app: &mut App, width: usize) -> Vec<Row> {
    if let Some(choices) = app.permission_prompt.choices().filter(|choices| choices.offers_lasting()) {
        choices.remove_lasting();
    }
    let Some(rendered) = rendered(app, width, 0) else { return Vec::new() };
    vec![
        rule(width),
        head(rendered),
        Row::new(vec![Span::new(TextRole::Accent, ellipsize("v to read it, n, Esc", width))]),
    ]
}

fn answers(choices: &AnswerChoices, covers: Option<&str>, width: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut used = width;
    let kind = choices.kind();
    let stop = Span::new(TextRole::Muted, format!("Esc {}", kind.stop_label()));
    let spans = choices.iter().map(|(choice, selected)| answer(choice, kind, selected)).chain([stop]);
    for span in spans {
        let size = width_of(&span.text);
        // Rows break between answers, never inside one.
        match rows.last_mut() {
            Some(row) if used + size + 3 <= width => {
                row.spans.push(Span::new(TextRole::Muted, " · "));
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
        rows.push(Row::new(vec![Span::new(TextRole::Muted, covers)]));
    }
    rows
}

fn answer(choice: AnswerChoice, kind: QuestionKind, selected: Selected) -> Span {
    let text = format!("{} {}", choice.key(), choice.label(kind));
    match selected {
        Selected::Yes => {
            Span::new(TextRole::Accent, format!("› {text}")).with_font(FontStyle::BOLD.with(FontStyle::UNDERLINED))
        }
        Selected::No => Span::new(TextRole::Accent, text),
    }
}
