//! The last row: which model, how hard it thinks, how full the context is.

use aside_core::question::Tier;
use aside_core::screen::neutral_line;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::{App, Mode, Wish};
use crate::count::short;
use crate::paint::paint_row;
use crate::text::wrap::cut;
use crate::text::{Ink, Row, Span, width_of};

const BETWEEN: &str = " · ";

pub fn draw(app: &App, area: Rect, buffer: &mut Buffer) {
    let row = Row::new(spans(app, usize::from(area.width)));
    paint_row(buffer, area, 0, &row, None, &app.theme);
}

/// What is known, the most important first; what does not fit is left out.
fn spans(app: &App, width: usize) -> Vec<Span> {
    if let Some(hint) = hint(app) {
        return vec![Span::new(Ink::Warn, cut(hint, width))];
    }
    if let Some(toast) = app.toasted() {
        return vec![Span::new(Ink::Good, cut(toast, width))];
    }
    let figure = |text: String| Part { ink: Ink::Muted, text, kind: Kind::Figure };
    let context = context(app);
    let effort = effort(app);
    let mut parts: Vec<Part> = Vec::new();
    let model = app.model();
    if !model.is_empty() {
        // A long name leaves room for how full the context is, and for the effort.
        let wide = |parts: &[&Option<Part>]| -> usize {
            parts.iter().filter_map(|part| part.as_ref()).map(|part| width_of(BETWEEN) + width_of(&part.text)).sum()
        };
        let both = width.saturating_sub(wide(&[&context, &effort]));
        let room = if both >= LONG_NAME { both } else { width.saturating_sub(wide(&[&context])).max(LEAST_NAME) };
        parts.push(Part { ink: Ink::Accent, text: cut(&neutral_line(model), room), kind: Kind::Name });
    }
    // In words too: not everybody sees the colour.
    if app.wish == Wish::Ignored {
        parts.push(Part { ink: Ink::Warn, text: "! no thinking came".to_owned(), kind: Kind::Figure });
    }
    parts.extend(context.into_iter().chain(effort));
    parts.extend(app.status.tier.map(|tier| match tier {
        Tier::None => Part { ink: Ink::Warn, text: "unconfined".to_owned(), kind: Kind::Figure },
        Tier::Seatbelt | Tier::Kernel | Tier::Strong => figure(tier.to_string()),
    }));
    let about = if app.rate.is_exact() { "" } else { "~" };
    parts.extend(app.rate.per_second().map(|rate| figure(format!("{about}{rate} tok/s"))));
    let named = [&app.status.profile, &app.status.title];
    let name = |name: &String| Part { ink: Ink::Muted, text: neutral_line(name), kind: Kind::Name };
    parts.extend(named.into_iter().flatten().map(name));
    fit(parts, width)
}

/// So much of a name is worth showing.
const LEAST_NAME: usize = 9;
/// By then one can tell which model it is.
const LONG_NAME: usize = 24;

struct Part {
    ink: Ink,
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// May be cut.
    Name,
    /// Says something else when it is cut, so it is whole or not there.
    Figure,
}

fn fit(parts: Vec<Part>, width: usize) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut used = 0;
    for Part { ink, text, kind } in parts {
        let before = if spans.is_empty() { "" } else { BETWEEN };
        let room = width.saturating_sub(used + width_of(before));
        let fits = width_of(&text) <= room;
        if !fits && (kind == Kind::Figure || room < LEAST_NAME) && !spans.is_empty() {
            continue;
        }
        let text = cut(&text, room);
        used += width_of(before) + width_of(&text);
        spans.push(Span::new(Ink::Muted, before));
        spans.push(Span::new(ink, text));
    }
    spans
}

/// As it was sent, with a warning if that is not what was wished for. A notice
/// of the request says more.
fn effort(app: &App) -> Option<Part> {
    let sent = app.sending.as_ref()?.effort.as_deref();
    let (ink, text) = match (sent, app.status.effort.as_deref()) {
        (None, None) => return None,
        (Some(sent), None) => (Ink::Muted, format!("effort {}", neutral_line(sent))),
        (Some(sent), Some(wish)) if sent == wish => (Ink::Muted, format!("effort {}", neutral_line(sent))),
        (Some(sent), Some(_)) => (Ink::Warn, format!("effort {}!", neutral_line(sent))),
        (None, Some(_)) => (Ink::Warn, "no effort sent".to_owned()),
    };
    Some(Part { ink, text, kind: Kind::Figure })
}

/// `12.3k/200k`: what the provider counted if it said so, else our estimate.
fn context(app: &App) -> Option<Part> {
    let limit = app.sending.as_ref().and_then(|sending| sending.limit).or(app.status.limit);
    let sent = app.sending.as_ref().map(|sending| sending.tokens);
    // Some begin with a zero and count at the end.
    let input = app.usage.input.filter(|input| *input > 0);
    let counted = input.map(|input| input + app.usage.output.unwrap_or(0));
    let used = counted.or(sent);
    let text = match (counted, sent) {
        (Some(counted), _) => short(counted),
        (None, Some(sent)) => format!("~{}", short(sent)),
        (None, None) => limit.map(|_| "0".to_owned())?,
    };
    let (ink, text) = match limit {
        Some(limit) if used.unwrap_or(0) * 10 > limit * 8 => (Ink::Warn, format!("{text}/{}", short(limit))),
        Some(limit) => (Ink::Muted, format!("{text}/{}", short(limit))),
        None => (Ink::Muted, text),
    };
    Some(Part { ink, text, kind: Kind::Figure })
}

fn hint(app: &App) -> Option<&'static str> {
    if app.is_leaving() {
        return Some("Ctrl+C once more leaves");
    }
    match app.mode() {
        Mode::Browse => Some("↑↓ move · o open · r read · y copy · Esc"),
        Mode::Asked | Mode::Message | Mode::Write => None,
    }
}
