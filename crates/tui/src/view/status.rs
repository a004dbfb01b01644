//! The status line: model, context usage, effort, rate.

use aside_core::permission_question::Tier;
use aside_core::settings::ThinkingDisplay;
use aside_core::terminal_text::terminal_safe_line;
use aside_core::tool_mode::ToolMode;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Cursor;
use crate::app::permission_prompt::UnusedKey;
use crate::app::{App, FindBar, InputMode, ThinkingRequest};
use crate::input::completion::NO_EFFORT;
use crate::paint::paint_row;
use crate::text::wrap::{ellipsize, first_that_fits};
use crate::text::{Row, Span, TextRole, width_of};
use crate::token_estimate::format_count;
use crate::transcript::item::TranscriptItem;

const SEPARATOR: &str = " · ";

/// Paints the line. Returns the cursor while words to find are typed in it.
pub fn draw(app: &App, area: Rect, buffer: &mut Buffer) -> Cursor {
    if let Some(bar) = app.find.as_ref().filter(|_| app.mode() == InputMode::Find) {
        return draw_find(app, bar, area, buffer);
    }
    let row = Row::new(spans(app, usize::from(area.width)));
    paint_row(buffer, area, 0, &row, None, &app.theme);
    None
}

/// The words to find, as much of them as fits, and what was found.
fn draw_find(app: &App, bar: &FindBar, area: Rect, buffer: &mut Buffer) -> Cursor {
    let width = usize::from(area.width);
    let prompt = bar.prompt();
    let room = width.saturating_sub(width_of(&prompt) + 1);
    let state = format!("  {}", bar.state(room.saturating_sub(2)));
    let shown = if width_of(&prompt) < width { prompt.clone() } else { ellipsize(&prompt, width.saturating_sub(1)) };
    let spans = vec![Span::new(TextRole::Accent, shown.clone()), Span::new(TextRole::Muted, ellipsize(&state, room))];
    paint_row(buffer, area, 0, &Row::new(spans), None, &app.theme);
    Some((area.x + u16::try_from(width_of(&shown)).unwrap_or(0), area.y))
}

/// The parts in order of importance. Parts that do not fit are left out.
fn spans(app: &App, width: usize) -> Vec<Span> {
    if let Some(hint) = hint(app) {
        return vec![Span::new(TextRole::Warning, first_that_fits(&hint, width))];
    }
    if let Some(toast) = app.toast_text() {
        return vec![Span::new(TextRole::Success, ellipsize(toast, width))];
    }
    let figure = |text: String| StatusPart { role: TextRole::Muted, text, kind: StatusPartKind::Figure };
    let context = context(app);
    let effort = effort(app);
    let mut parts: Vec<StatusPart> = Vec::new();
    let mode = app.status.mode.map(mode_part);
    parts.extend(model_part(app, width, [context.as_ref(), effort.as_ref()], mode.as_ref()));
    // Also as text: colour alone is not accessible.
    if app.thinking_request == ThinkingRequest::Ignored {
        parts.push(StatusPart {
            role: TextRole::Warning,
            text: "! no thinking came".to_owned(),
            kind: StatusPartKind::Figure,
        });
    }
    parts.extend(context);
    // A mode that the user must not forget counts more than the effort.
    match app.status.mode {
        Some(ToolMode::AcceptEdits | ToolMode::ReadOnly) => parts.extend(mode.into_iter().chain(effort)),
        Some(ToolMode::Ask) | None => parts.extend(effort.into_iter().chain(mode)),
    }
    parts.extend(app.status.tier.map(tier_part));
    let branch = app.status.branch.as_ref().map(|branch| format!(" ({branch})")).unwrap_or_default();
    parts.extend(app.status.folder.as_ref().map(|folder| StatusPart {
        role: TextRole::Muted,
        text: terminal_safe_line(&format!("{folder}{branch}")),
        kind: StatusPartKind::Name,
    }));
    // Labels give way before any of these parts does.
    remove_labels(&mut parts, width);
    parts.extend(app.status.cost.map(|cost| figure(cost.to_string())));
    let about = if app.rate.is_exact() { "" } else { "~" };
    let rate = app.rate.per_second().filter(|_| app.silence().is_none());
    parts.extend(rate.map(|rate| figure(format!("{about}{rate} tok/s"))));
    let named = [&app.status.profile, &app.status.title];
    let name = |name: &String| StatusPart {
        role: TextRole::Muted,
        text: terminal_safe_line(name),
        kind: StatusPartKind::Name,
    };
    parts.extend(named.into_iter().flatten().map(name));
    fit(parts, width)
}

/// A long model name leaves room for a mode that must be seen, the context usage and the effort, as long as enough of
/// the name is left.
fn model_part(
    app: &App,
    width: usize,
    [context, effort]: [Option<&StatusPart>; 2],
    mode: Option<&StatusPart>,
) -> Option<StatusPart> {
    let model = app.model();
    if model.is_empty() {
        return None;
    }
    let part_width = |part: Option<&StatusPart>| part.map_or(0, |part| width_of(SEPARATOR) + width_of(&part.text));
    let beside_mode = width.saturating_sub(part_width(mode.filter(|mode| mode.kind == StatusPartKind::Pinned)));
    let beside_context = beside_mode.saturating_sub(part_width(context));
    let beside_all = beside_context.saturating_sub(part_width(effort));
    let room = match (beside_all >= FULL_NAME, beside_context >= MIN_NAME) {
        (true, _) => beside_all,
        (false, true) => beside_context,
        (false, false) => beside_mode.max(MIN_NAME),
    };
    let text = ellipsize(&terminal_safe_line(model), room);
    Some(StatusPart { role: TextRole::Accent, text, kind: StatusPartKind::Name })
}

fn mode_part(mode: ToolMode) -> StatusPart {
    let (role, text, kind) = match mode {
        ToolMode::Ask => (TextRole::Muted, "ask", StatusPartKind::Figure),
        ToolMode::AcceptEdits => (TextRole::Warning, "accept edits", StatusPartKind::Pinned),
        ToolMode::ReadOnly => (TextRole::Muted, "read only", StatusPartKind::Pinned),
    };
    StatusPart { role, text: text.to_owned(), kind }
}

fn tier_part(tier: Tier) -> StatusPart {
    match tier {
        Tier::None => {
            StatusPart { role: TextRole::Warning, text: "unconfined".to_owned(), kind: StatusPartKind::Figure }
        }
        Tier::Seatbelt | Tier::Kernel | Tier::Strong => StatusPart {
            role: TextRole::Muted,
            text: format!("sandbox {tier}"),
            kind: StatusPartKind::Labelled { short: tier.to_string() },
        },
    }
}

/// A name shortened below this width is left out.
const MIN_NAME: usize = 9;
/// At this width a model name is recognisable.
const FULL_NAME: usize = 24;

struct StatusPart {
    role: TextRole,
    text: String,
    kind: StatusPartKind,
}

#[derive(Clone, PartialEq, Eq)]
enum StatusPartKind {
    /// May be shortened.
    Name,
    /// A shortened number would be wrong, so it is shown whole or not at all.
    Figure,
    /// Shown whole, and the parts before it leave room for it.
    Pinned,
    /// Where it does not fit, it is shown without its label.
    Labelled { short: String },
}

/// Removes labels, the last one first, until all parts fit.
fn remove_labels(parts: &mut [StatusPart], width: usize) {
    let mut used: usize = parts.iter().map(|part| width_of(&part.text) + width_of(SEPARATOR)).sum();
    for part in parts.iter_mut().rev() {
        match &part.kind {
            StatusPartKind::Labelled { short } if used > width + width_of(SEPARATOR) => {
                used -= width_of(&part.text) - width_of(short).min(width_of(&part.text));
                part.text.clone_from(short);
            }
            StatusPartKind::Name
            | StatusPartKind::Figure
            | StatusPartKind::Pinned
            | StatusPartKind::Labelled { .. } => (),
        }
    }
}

fn fit(parts: Vec<StatusPart>, width: usize) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut used = 0;
    let pinned = parts.iter().filter(|part| part.kind == StatusPartKind::Pinned);
    let mut reserved: usize = pinned.map(|part| width_of(SEPARATOR) + width_of(&part.text)).sum();
    for StatusPart { role, text, kind } in parts {
        if kind == StatusPartKind::Pinned {
            reserved -= width_of(SEPARATOR) + width_of(&text);
        }
        let before = if spans.is_empty() { "" } else { SEPARATOR };
        let taken = if spans.is_empty() { 0 } else { used + width_of(before) + reserved };
        let room = width.saturating_sub(taken);
        let fits = |text: &str| width_of(text) <= room;
        let text = match kind {
            StatusPartKind::Figure | StatusPartKind::Pinned | StatusPartKind::Labelled { .. }
                if !fits(&text) && !spans.is_empty() =>
            {
                continue;
            }
            StatusPartKind::Name if !fits(&text) && room < MIN_NAME && !spans.is_empty() => continue,
            StatusPartKind::Name
            | StatusPartKind::Figure
            | StatusPartKind::Pinned
            | StatusPartKind::Labelled { .. } => ellipsize(&text, room),
        };
        used += width_of(before) + width_of(&text);
        spans.push(Span::new(TextRole::Muted, before));
        spans.push(Span::new(role, text));
    }
    spans
}

/// The effort of the next request, or while a turn runs the one that was sent, with a warning if it differs from the setting. A
/// notice in the transcript explains why.
fn effort(app: &App) -> Option<StatusPart> {
    let is_off = app.status.thinking_is_off;
    let sent = match (&app.status.next, &app.sending) {
        (Some(next), _) => next.effort.as_deref(),
        (None, Some(sending)) => sending.effort.as_deref(),
        (None, None) if is_off => None,
        (None, None) => return None,
    };
    // Without its label, `none` would say nothing.
    if is_off && sent.is_none_or(|sent| sent == NO_EFFORT) {
        let text = format!("effort {NO_EFFORT}");
        return Some(StatusPart { role: TextRole::Muted, text, kind: StatusPartKind::Figure });
    }
    let (role, short) = match (sent, app.status.effort.as_deref()) {
        (None, None) => return None,
        // Thinking is off, but this model always gets a level.
        (Some(sent), None) if is_off => (TextRole::Warning, format!("{}!", terminal_safe_line(sent))),
        (Some(sent), None) => (TextRole::Muted, terminal_safe_line(sent)),
        (Some(sent), Some(setting)) if sent == setting => (TextRole::Muted, terminal_safe_line(sent)),
        (Some(sent), Some(_)) => (TextRole::Warning, format!("{}!", terminal_safe_line(sent))),
        (None, Some(_)) => {
            let text = "no effort sent".to_owned();
            return Some(StatusPart { role: TextRole::Warning, text, kind: StatusPartKind::Figure });
        }
    };
    Some(StatusPart { role, text: format!("effort {short}"), kind: StatusPartKind::Labelled { short } })
}

/// `12.3k/200k`: the provider's count if there is one, else our estimate; of the request that runs, or of the next one.
fn context(app: &App) -> Option<StatusPart> {
    let next = app.status.next.as_ref();
    let limit = match next {
        Some(_) => app.status.limit,
        None => app.sending.as_ref().and_then(|sending| sending.limit).or(app.status.limit),
    };
    // Some providers report 0 at first and the real count at the end.
    let input = app.usage.input.filter(|input| *input > 0);
    let (counted, sent) = match next {
        Some(next) if next.is_exact => (Some(next.tokens), None),
        Some(next) => (None, Some(next.tokens)),
        None => (
            input.map(|input| input + app.usage.output.unwrap_or(0)),
            app.sending.as_ref().map(|sending| sending.tokens),
        ),
    };
    let used = counted.or(sent);
    let text = match (counted, sent) {
        (Some(counted), _) => format_count(counted),
        (None, Some(sent)) => format!("~{}", format_count(sent)),
        (None, None) => limit.map(|_| "0".to_owned())?,
    };
    let (role, text) = match limit {
        Some(limit) if used.unwrap_or(0) * 10 > limit * 8 => {
            (TextRole::Warning, format!("{text}/{}", format_count(limit)))
        }
        Some(limit) => (TextRole::Muted, format!("{text}/{}", format_count(limit))),
        None => (TextRole::Muted, text),
    };
    Some(StatusPart { role, text, kind: StatusPartKind::Figure })
}

/// Why a key did not answer the question, the longest text first.
fn unused_key(why: UnusedKey) -> Vec<String> {
    match why {
        UnusedKey::TooEarly => vec![
            "typed before the question could be read, so it does not count; press it again".to_owned(),
            "too early to count; press it again".to_owned(),
            "too early".to_owned(),
        ],
        UnusedKey::NoAnswer(letter) => {
            let letter = terminal_safe_line(&letter.to_string());
            vec![format!("`{letter}` is not one of the answers above"), format!("`{letter}` does not answer")]
        }
        UnusedKey::PartOfText => vec![
            "typed like a text, so it does not answer; press one key and wait".to_owned(),
            "like a text: press one key".to_owned(),
        ],
        UnusedKey::NothingSelected => {
            vec!["←→ selects an answer first".to_owned(), "←→ selects first".to_owned()]
        }
        UnusedKey::NotRead => {
            vec!["press v to read all of it before you allow it".to_owned(), "v shows all of it first".to_owned()]
        }
    }
}

/// The keys that do something with the selected block, the longest text first.
fn block_keys(selected: Option<&TranscriptItem>, view: ThinkingDisplay) -> Vec<String> {
    let Some(selected) = selected else {
        return vec!["nothing here can be opened · Esc back to the input".to_owned(), "Esc back".to_owned()];
    };
    let fold = if selected.is_open(view) { "o fold" } else { "o open" };
    let read = if matches!(selected, TranscriptItem::Thinking(_)) { " · r read" } else { "" };
    let keys = format!("{fold}{read} · y copy · Esc");
    vec![
        format!("↑↓ move · {keys} back to the input"),
        format!("↑↓ move · {keys} back"),
        format!("↑↓ · {keys} back"),
        format!("{keys} back"),
        keys,
    ]
}

/// The texts to choose from, the longest first.
fn hint(app: &App) -> Option<Vec<String>> {
    if app.is_quit_armed() {
        return Some(vec!["Ctrl+C once more leaves".to_owned()]);
    }
    match app.mode() {
        InputMode::Browse => {
            let selected = app.transcript().focus().and_then(|index| app.transcript().items().get(index));
            Some(block_keys(selected, app.transcript().view()))
        }
        InputMode::Permission => app.permission_prompt.unused_key().map(unused_key),
        InputMode::DenyMessage | InputMode::Find | InputMode::Write => None,
    }
}
