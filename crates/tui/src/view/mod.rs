//! Draws the screen.

mod input;
pub(crate) use input::{MAX_OPTIONS, text_width};
mod permission_prompt;
pub mod reader;
pub mod status;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::{App, InputMode};
use crate::transcript::BottomHint;

/// The position of the terminal's cursor; `None` hides it.
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
    let find_cursor = status::draw(app, status, buffer);
    let above = Rect { height: area.height - 1, ..area };
    let (above, cursor) = match app.mode() {
        InputMode::Permission => (permission_prompt::draw(app, above, buffer), None),
        InputMode::DenyMessage | InputMode::Write | InputMode::Browse | InputMode::Find => {
            input::draw(app, above, buffer)
        }
    };
    let cursor = find_cursor.or(cursor);
    let above = if app.mode() == InputMode::DenyMessage { permission_prompt::draw(app, above, buffer) } else { above };
    app.transcript_area = above;
    let bottom_hint = bottom_hint(app);
    app.transcript.draw(above, buffer, &theme, bottom_hint);
    input::draw_popup(app, above, buffer);
    cursor
}

/// What a user who has scrolled away finds at the end.
fn bottom_hint(app: &App) -> BottomHint {
    if app.is_busy() { BottomHint::Live } else { BottomHint::End }
}
