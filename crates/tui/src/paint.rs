//! Rows into cells.

use aside_core::screen::is_harmless;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::text::cluster::clusters;
use crate::text::wrap::cluster_width;
use crate::text::{Row, Shade, Span};
use crate::theme::Theme;

/// Paints a row at line `y` of the area, over its whole width if it is shaded.
pub fn paint_row(buffer: &mut Buffer, area: Rect, y: u16, row: &Row, gutter: Option<&Span>, theme: &Theme) {
    let y = area.y.saturating_add(y);
    if y >= area.bottom() {
        return;
    }
    if let Some(back) = theme.back(row.shade) {
        buffer.set_style(Rect { y, height: 1, ..area }, ratatui::style::Style::new().bg(back));
    }
    let mut pen = Pen { buffer, x: area.x, y, end: area.right(), theme, shade: row.shade };
    for span in gutter.into_iter().chain(&row.spans) {
        pen.span(span);
    }
}

/// Empties the cells of an area, for something that goes over others.
pub fn clear(buffer: &mut Buffer, area: Rect) {
    for position in area.positions() {
        if let Some(cell) = buffer.cell_mut(position) {
            cell.reset();
        }
    }
}

/// The last gate: whatever got this far, no cell holds what a terminal obeys.
fn harmless(cluster: &str) -> &str {
    match cluster {
        "\t" | "\n" | "\r\n" => " ",
        cluster if cluster.is_ascii() && !cluster.bytes().any(|byte| byte.is_ascii_control()) => cluster,
        cluster if cluster.chars().all(|letter| is_harmless(letter) && !letter.is_control()) => cluster,
        _ => "\u{fffd}",
    }
}

struct Pen<'a> {
    buffer: &'a mut Buffer,
    x: u16,
    y: u16,
    end: u16,
    theme: &'a Theme,
    shade: Shade,
}

impl Pen<'_> {
    fn span(&mut self, span: &Span) {
        let style = self.theme.style(span.ink, span.face, self.shade);
        for (_, cluster) in clusters(&span.text) {
            let cluster = harmless(cluster);
            let width = cluster_width(cluster) as u16;
            if width == 0 {
                self.join(cluster);
                continue;
            }
            if self.x >= self.end {
                return;
            }
            let fits = self.x + width <= self.end;
            let symbol = match cluster {
                // A tab would move everything behind it.
                "\t" => " ",
                cluster if fits => cluster,
                // A wide letter in the last column cannot be drawn there.
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

    /// A mark without a letter of its own goes onto the letter before it.
    fn join(&mut self, mark: &str) {
        let Some(x) = self.x.checked_sub(1) else { return };
        if let Some(cell) = self.buffer.cell_mut((x, self.y)) {
            let joined = format!("{}{mark}", cell.symbol());
            cell.set_symbol(&joined);
        }
    }
}
