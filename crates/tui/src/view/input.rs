//! Draws the input box, the queued prompts and the completion popup.

use std::borrow::Cow;

use aside_core::terminal_text::terminal_safe_line;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use aside_front::slash_commands;
use aside_front::{Command, ShellOutput};

use super::Cursor;
use crate::app::{App, InputMode};
use crate::input::completion::Completion;
use crate::paint::{clear, paint_row};
use crate::text::wrap::{ellipsize, first_that_fits};
use crate::text::{FontStyle, Row, RowBackground, Span, TextRole, width_of};

const MAX_ROWS: usize = 10;
const PROMPT: &str = "❯ ";
const PROMPT_WIDTH: usize = 2;
/// How many rows of a list are visible.
pub(crate) const MAX_OPTIONS: usize = 8;

/// The width of the editor's text on a screen of this width.
pub(crate) fn text_width(width: u16) -> usize {
    usize::from(width).saturating_sub(PROMPT_WIDTH).max(2)
}

/// Paints the input box at the bottom of the area and returns the area above it.
pub(crate) fn draw(app: &App, area: Rect, buffer: &mut Buffer) -> (Rect, Cursor) {
    let editor = app.permission_prompt.message().unwrap_or(&app.composer.editor);
    let (rows, (row, column)) = editor.rows(text_width(area.width));
    let queued = app.queue.len() + app.steering.len();
    let most = usize::from(area.height).saturating_sub(2).clamp(1, MAX_ROWS);
    let shown = rows.len().min(most);
    let height = (shown + queued + 1).min(usize::from(area.height)) as u16;
    let above = Rect { height: area.height - height, ..area };
    let mut inner = Rect { y: above.bottom(), height, ..area };
    let line = rule(app, usize::from(area.width));
    paint_row(buffer, inner, 0, &line, None, &app.theme);
    inner = below(inner, 1);
    let steering = app.steering.iter().map(|text| ("  sent after this step: ", text));
    for (label, text) in steering.chain(app.queue.iter().map(|text| ("  queued: ", text))) {
        let text = ellipsize(&terminal_safe_line(text), usize::from(area.width).saturating_sub(width_of(label)));
        let row = Row::new(vec![Span::new(TextRole::Muted, label), Span::new(TextRole::Muted, text)]);
        paint_row(buffer, inner, 0, &row, None, &app.theme);
        inner = below(inner, 1);
    }
    // The cursor's row is always visible.
    let from = (row + 1).saturating_sub(shown);
    for (index, row) in rows.iter().enumerate().skip(from).take(shown) {
        let lead = Span::new(TextRole::Accent, if index == 0 { PROMPT } else { "  " });
        let y = (index - from) as u16;
        if editor.is_empty() {
            let room = text_width(area.width);
            let hint = Row::new(vec![Span::new(TextRole::Muted, ellipsize(&placeholder(app, room), room))]);
            paint_row(buffer, inner, y, &hint, Some(&lead), &app.theme);
        } else {
            paint_row(buffer, inner, y, row, Some(&lead), &app.theme);
        }
    }
    let x = inner.x + (PROMPT_WIDTH + column).min(usize::from(area.width).saturating_sub(1)) as u16;
    let y = inner.y + (row - from) as u16;
    let typing = !matches!(app.mode(), InputMode::Browse | InputMode::Find) && y < area.bottom();
    (above, typing.then_some((x, y)))
}

fn below(area: Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    Rect { y: area.y + rows, height: area.height - rows, ..area }
}

/// The line above the box shows the current activity.
fn rule(app: &App, width: usize) -> Row {
    // A hint at the right end says that there is more below.
    let hint = match app.transcript().is_following() {
        true => 0,
        false => app.transcript().end_hint_width(super::bottom_hint(app), width),
    };
    let room = width.saturating_sub(4 + hint);
    let doing = app.activity_line(room).or_else(|| shell_hint(app, room)).or_else(|| popup_hint(app));
    let Some(doing) = doing.filter(|_| width > 12) else {
        return Row::new(vec![Span::new(TextRole::Muted, "─".repeat(width))]);
    };
    let text = format!("─ {} ", ellipsize(&doing, room));
    let rest = "─".repeat(width.saturating_sub(width_of(&text)));
    Row::new(vec![Span::new(TextRole::Muted, text), Span::new(TextRole::Muted, rest)])
}

/// What Enter does with a command line in the input; who sees the output, if there is no room for all of it.
fn shell_hint(app: &App, room: usize) -> Option<String> {
    let Command::Shell { output, .. } = slash_commands::parse_shell(app.composer.editor.raw())? else { return None };
    let seen = match output {
        ShellOutput::User => "the model does not see it",
        ShellOutput::Model => "the model gets the output",
    };
    let whole = format!("runs here, unconfined; {seen}");
    Some(if width_of(&whole) <= room { whole } else { seen.to_owned() })
}

/// How far the user is in a list that does not fit.
fn popup_hint(app: &App) -> Option<String> {
    let popup = app.composer.popup.as_ref()?;
    if app.composer.editor.raw().get(1..).is_some_and(|line| line.trim_end() == "effort")
        && app.composer.current().effort.is_none()
    {
        return Some("no effort set: the provider chooses".to_owned());
    }
    if popup.options.len() <= MAX_OPTIONS {
        return None;
    }
    Some(format!("{} of {} · type to filter", popup.selected + 1, popup.options.len()))
}

fn placeholder(app: &App, room: usize) -> Cow<'static, str> {
    match (app.mode(), app.is_busy()) {
        (InputMode::DenyMessage, _) => "a message to the model, then Enter".into(),
        (InputMode::Write | InputMode::Browse | InputMode::Find | InputMode::Permission, true)
            if app.runs_user_command() =>
        {
            "is sent when this is done".into()
        }
        (InputMode::Write | InputMode::Browse | InputMode::Find | InputMode::Permission, true) => {
            let now = app.send_key().map(|key| format!("{key} sends after this step"));
            let later = app.queue_key().map(|key| format!("{key} after the turn"));
            let both = [&now, &later].into_iter().flatten().cloned().collect::<Vec<_>>().join(" · ");
            let texts = [both, now.unwrap_or_default()];
            Cow::from(first_that_fits(&texts, room))
        }
        (InputMode::Write | InputMode::Browse | InputMode::Find | InputMode::Permission, false) => {
            "ask something, /help for more".into()
        }
    }
}

/// From this room on, a session is described with the time of its last use.
const ROOM_FOR_TIMES: usize = 44;

/// What is known of an option, as much as fits. A folder is known by its last part.
fn described(option: &Completion, room: usize) -> String {
    let doc = terminal_safe_line(&option.doc);
    // Sessions often begin with the same words.
    let doc = match terminal_safe_line(&option.when) {
        when if when.is_empty() || room < ROOM_FOR_TIMES => doc,
        when => format!("{when} · {doc}"),
    };
    let Some(folder) = option.folder.as_deref().map(terminal_safe_line) else { return ellipsize(&doc, room) };
    let whole = format!("{doc} · in {folder}");
    if width_of(&whole) <= room {
        return whole;
    }
    let name = folder.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let place = ellipsize(&format!(" · …/{name}"), room / 2);
    format!("{}{place}", ellipsize(&doc, room.saturating_sub(width_of(&place))))
}

/// The room for names that leaves a short description such as `no key` whole.
fn room_for_names(app: &App, options: &[Completion], width: usize) -> usize {
    const SHORT: usize = 8;
    let is_labelled = |option: &Completion| {
        app.composer.current().label(app.composer.editor.raw(), &option.text).is_some() || !option.doc.is_empty()
    };
    if options.iter().any(is_labelled) { width.saturating_sub(SHORT + 4).max(SHORT) } else { width }
}

/// Says that no value matches what was typed, and how to see the others again.
fn draw_no_match(app: &App, area: Rect, buffer: &mut Buffer) {
    let texts =
        ["no match · Backspace widens the search · Esc closes the list", "no match · Backspace, Esc", "no match"]
            .map(|text| format!("  {text}"));
    let text = first_that_fits(&texts, usize::from(area.width));
    let line = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
    clear(buffer, line);
    let row = Row::new(vec![Span::new(TextRole::Muted, text)]).with_background(RowBackground::User);
    paint_row(buffer, line, 0, &row, None, &app.theme);
}

/// The completion popup covers the last rows of the transcript.
pub(crate) fn draw_popup(app: &App, area: Rect, buffer: &mut Buffer) {
    let Some(popup) = app.composer.popup.as_ref().filter(|_| app.mode() == InputMode::Write) else { return };
    let most = MAX_OPTIONS.min(usize::from(area.height));
    if popup.options.is_empty() {
        return draw_no_match(app, area, buffer);
    }
    let count = popup.options.len().min(most);
    let from = (popup.selected + 1).saturating_sub(count);
    let widest = popup.options.iter().map(|option| width_of(&terminal_safe_line(&option.text))).max().unwrap_or(0);
    let width = usize::from(area.width);
    let widest = if popup.is_picker { widest.min(room_for_names(app, &popup.options, width)) } else { widest };
    for (index, option) in popup.options.iter().enumerate().skip(from).take(count) {
        let selected = index == popup.selected;
        let name = ellipsize(&terminal_safe_line(&option.text), widest.min(width.saturating_sub(2)));
        let pad = " ".repeat(widest.saturating_sub(width_of(&name)) + 2);
        let label = app.composer.current().label(app.composer.editor.raw(), &option.text);
        let room = width.saturating_sub(widest + 4);
        let label = label.map(|label| ellipsize(label, room)).unwrap_or_default();
        let separator = if label.is_empty() { "" } else { " · " };
        let doc = described(option, room.saturating_sub(width_of(&label) + width_of(separator)));
        let doc = if doc.is_empty() { doc } else { format!("{separator}{doc}") };
        let mark = if selected { "› " } else { "  " };
        let role = if selected { TextRole::Accent } else { TextRole::Plain };
        let row = Row::new(vec![
            Span::new(TextRole::Accent, mark),
            Span::new(role, name),
            Span::new(TextRole::Muted, pad),
            Span::new(TextRole::Plain, label).with_font(FontStyle::BOLD),
            Span::new(TextRole::Muted, doc),
        ]);
        let y = area.height - count as u16 + (index - from) as u16;
        let line = Rect { y: area.y + y, height: 1, ..area };
        clear(buffer, line);
        paint_row(
            buffer,
            line,
            0,
            &row.with_background(if selected { RowBackground::Selected } else { RowBackground::User }),
            None,
            &app.theme,
        );
    }
}
