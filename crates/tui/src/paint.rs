//! Paints rows into terminal cells.

use aside_core::terminal_text::is_terminal_safe;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::text::grapheme::graphemes;
use crate::text::wrap::grapheme_width;
use crate::text::{Row, RowBackground, Span};
use crate::theme::Theme;

/// Paints a row at line `y` of the area. A row with a background fills the whole width.
pub fn paint_row(buffer: &mut Buffer, area: Rect, y: u16, row: &Row, gutter: Option<&Span>, theme: &Theme) {
    let y = area.y.saturating_add(y);
    if y >= area.bottom() {
        return;
    }
    if let Some(back) = theme.background_colour(row.background) {
        buffer.set_style(Rect { y, height: 1, ..area }, ratatui::style::Style::new().bg(back));
    }
    let mut painter = RowPainter { buffer, x: area.x, y, end: area.right(), theme, background: row.background };
    for span in gutter.into_iter().chain(&row.spans) {
        painter.span(span);
    }
}

/// Resets the cells of an area, before an overlay is painted.
pub fn clear(buffer: &mut Buffer, area: Rect) {
    for position in area.positions() {
        if let Some(cell) = buffer.cell_mut(position) {
            cell.reset();
        }
    }
}

/// The last check before painting: no cell may hold anything that a terminal would execute.
fn safe_grapheme(grapheme: &str) -> &str {
    match grapheme {
        "\t" | "\n" | "\r\n" => " ",
        grapheme if grapheme.is_ascii() && !grapheme.bytes().any(|byte| byte.is_ascii_control()) => grapheme,
        grapheme if grapheme.chars().all(|letter| is_terminal_safe(letter) && !letter.is_control()) => grapheme,
        _ => "\u{fffd}",
    }
}

struct RowPainter<'a> {
    buffer: &'a mut Buffer,
    x: u16,
    y: u16,
    end: u16,
    theme: &'a Theme,
    background: RowBackground,
}

impl RowPainter<'_> {
    fn span(&mut self, span: &Span) {
        let style = self.theme.style(span.role, span.font, self.background);
        for (_, grapheme) in graphemes(&span.text) {
            let grapheme = safe_grapheme(grapheme);
            let width = grapheme_width(grapheme) as u16;
            if width == 0 {
                self.combine(grapheme);
                continue;
            }
            if self.x >= self.end {
                return;
            }
            let fits = self.x + width <= self.end;
            let symbol = match grapheme {
                // A tab would shift everything after it.
                "\t" => " ",
                grapheme if fits => grapheme,
                // A wide character does not fit into the last column.
                _ => "·",
            };
            if let Some(cell) = self.buffer.cell_mut((self.x, self.y)) {
                cell.set_symbol(symbol).set_style(style);
            }
            for x in self.x + 1..(self.x + width).min(self.end) {
                if let Some(cell) = self.buffer.cell_mut((x, self.y)) {
                    cell.set_symbol(" ").set_style(style);
                }
            }
            self.x += width;
        }
    }

    /// Appends a zero-width mark to the character before it.
    fn combine(&mut self, mark: &str) {
        let Some(x) = self.x.checked_sub(1) else { return };
        if let Some(cell) = self.buffer.cell_mut((x, self.y)) {
            let joined = format!("{}{mark}", cell.symbol());
            cell.set_symbol(&joined);
        }
    }
}
