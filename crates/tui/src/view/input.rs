//! The box one types in, what waits to be sent, and the list of completions.

use aside_core::screen::neutral_line;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Cursor;
use crate::app::{App, Mode};
use crate::paint::{clear, paint_row};
use crate::text::wrap::cut;
use crate::text::{Ink, Row, Shade, Span, width_of};

const MOST_ROWS: usize = 10;
const PROMPT: &str = "❯ ";
const PROMPT_WIDTH: usize = 2;
const MOST_OPTIONS: usize = 8;

/// How wide the text of the editor is on a screen this wide.
pub(crate) fn text_width(width: u16) -> usize {
    usize::from(width).saturating_sub(PROMPT_WIDTH).max(2)
}

/// Paints the box at the bottom of the area; returns what is left above it.
pub(crate) fn draw(app: &App, area: Rect, buffer: &mut Buffer) -> (Rect, Cursor) {
    let editor = app.asking.message().unwrap_or(&app.composer.editor);
    let (rows, (row, column)) = editor.rows(text_width(area.width));
    let queued = app.queue.len();
    let most = usize::from(area.height).saturating_sub(2).clamp(1, MOST_ROWS);
    let shown = rows.len().min(most);
    let height = (shown + queued + 1).min(usize::from(area.height)) as u16;
    let above = Rect { height: area.height - height, ..area };
    let mut inner = Rect { y: above.bottom(), height, ..area };
    let line = rule(app, usize::from(area.width));
    paint_row(buffer, inner, 0, &line, None, &app.theme);
    inner = below(inner, 1);
    for text in &app.queue {
        let text = cut(&neutral_line(text), usize::from(area.width).saturating_sub(10));
        let row = Row::new(vec![Span::new(Ink::Muted, "  queued: "), Span::new(Ink::Muted, text)]);
        paint_row(buffer, inner, 0, &row, None, &app.theme);
        inner = below(inner, 1);
    }
    // The row of the cursor is always in sight.
    let from = (row + 1).saturating_sub(shown);
    for (index, row) in rows.iter().enumerate().skip(from).take(shown) {
        let lead = Span::new(Ink::Accent, if index == 0 { PROMPT } else { "  " });
        let y = (index - from) as u16;
        if editor.is_empty() {
            let hint = Row::new(vec![Span::new(Ink::Muted, cut(placeholder(app), text_width(area.width)))]);
            paint_row(buffer, inner, y, &hint, Some(&lead), &app.theme);
        } else {
            paint_row(buffer, inner, y, row, Some(&lead), &app.theme);
        }
    }
    let x = inner.x + (PROMPT_WIDTH + column).min(usize::from(area.width).saturating_sub(1)) as u16;
    let y = inner.y + (row - from) as u16;
    let typing = app.mode() != Mode::Browse && y < area.bottom();
    (above, typing.then_some((x, y)))
}

fn below(area: Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    Rect { y: area.y + rows, height: area.height - rows, ..area }
}

/// The line above the box says what is going on.
fn rule(app: &App, width: usize) -> Row {
    let room = width.saturating_sub(4);
    let Some(doing) = app.doing(room).filter(|_| width > 12) else {
        return Row::new(vec![Span::new(Ink::Muted, "─".repeat(width))]);
    };
    let text = format!("─ {} ", cut(&doing, room));
    let rest = "─".repeat(width.saturating_sub(width_of(&text)));
    Row::new(vec![Span::new(Ink::Muted, text), Span::new(Ink::Muted, rest)])
}

fn placeholder(app: &App) -> &'static str {
    match (app.mode(), app.is_busy()) {
        (Mode::Message, _) => "a message to the model, then Enter",
        (Mode::Write | Mode::Browse | Mode::Asked, true) => "write ahead; sent after this answer",
        (Mode::Write | Mode::Browse | Mode::Asked, false) => "ask something, /help for more",
    }
}

/// The completions, over the last rows of the transcript.
pub(crate) fn draw_popup(app: &App, area: Rect, buffer: &mut Buffer) {
    let Some(popup) = app.composer.popup.as_ref().filter(|_| app.mode() == Mode::Write) else { return };
    let most = MOST_OPTIONS.min(usize::from(area.height));
    let count = popup.options.len().min(most);
    let from = (popup.picked + 1).saturating_sub(count);
    let widest = popup.options.iter().map(|option| width_of(&neutral_line(&option.text))).max().unwrap_or(0);
    let width = usize::from(area.width);
    for (index, option) in popup.options.iter().enumerate().skip(from).take(count) {
        let picked = index == popup.picked;
        let name = cut(&neutral_line(&option.text), width.saturating_sub(2));
        let pad = " ".repeat(widest.saturating_sub(width_of(&name)) + 2);
        let doc = cut(&neutral_line(&option.doc), width.saturating_sub(widest + 4));
        let mark = if picked { "› " } else { "  " };
        let ink = if picked { Ink::Accent } else { Ink::Plain };
        let row = Row::new(vec![
            Span::new(Ink::Accent, mark),
            Span::new(ink, name),
            Span::new(Ink::Muted, pad),
            Span::new(Ink::Muted, doc),
        ]);
        let y = area.height - count as u16 + (index - from) as u16;
        let line = Rect { y: area.y + y, height: 1, ..area };
        clear(buffer, line);
        paint_row(buffer, line, 0, &row.shaded(if picked { Shade::Picked } else { Shade::User }), None, &app.theme);
    }
}
