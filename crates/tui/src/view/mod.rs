//! The screen around the transcript.

mod find;
mod input;
pub(crate) use input::text_width;
mod prompt;
pub mod reader;
pub mod status;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::{App, Mode};
use crate::transcript::Below;

/// Where the terminal's cursor goes; nowhere while nothing is typed.
pub type Cursor = Option<(u16, u16)>;

/// Paints the whole screen.
pub fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) -> Cursor {
    if area.is_empty() {
        return None;
    }
    if app.reader.is_some() {
        reader::draw(app, area, buffer);
        return None;
    }
    let theme = app.theme;
    let status = Rect { y: area.bottom() - 1, height: 1, ..area };
    status::draw(app, status, buffer);
    let above = Rect { height: area.height - 1, ..area };
    let (above, cursor) = match app.mode() {
        Mode::Asked => (prompt::draw(app, above, buffer), None),
        Mode::Message | Mode::Write | Mode::Browse => input::draw(app, above, buffer),
    };
    let above = if app.mode() == Mode::Message { prompt::draw(app, above, buffer) } else { above };
    app.transcript_area = above;
    let below = if app.is_busy() { Below::Live } else { Below::End };
    app.transcript.draw(above, buffer, &theme, below);
    input::draw_popup(app, above, buffer);
    cursor
}
