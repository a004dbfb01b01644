//! The last row: which model, how hard it thinks, how full the context is.

use aside_core::screen::neutral_line;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::{App, Mode};
use crate::count::short;
use crate::paint::paint_row;
use crate::text::wrap::cut;
use crate::text::{Ink, Row, Span, width_of};

const BETWEEN: &str = " · ";

pub fn draw(app: &App, area: Rect, buffer: &mut Buffer) {
    let row = Row::new(spans(app, usize::from(area.width)));
    paint_row(buffer, area, 0, &row, None, &app.theme);
}

/// What is known, the most important first; what does not fit is left out
/// from the end.
fn spans(app: &App, width: usize) -> Vec<Span> {
    if let Some(hint) = hint(app) {
        return vec![Span::new(Ink::Warn, cut(hint, width))];
    }
    if let Some(toast) = app.toasted() {
        return vec![Span::new(Ink::Good, cut(toast, width))];
    }
    let mut parts: Vec<(Ink, String)> = Vec::new();
    let model = app.model();
    if !model.is_empty() {
        parts.push((Ink::Accent, neutral_line(model)));
    }
    parts.extend(context(app));
    if let Some(effort) = app.sending.as_ref().and_then(|sending| sending.effort.as_deref()) {
        parts.push((Ink::Muted, format!("effort {}", neutral_line(effort))));
    }
    if let Some(rate) = app.rate.per_second() {
        parts.push((Ink::Muted, format!("~{rate} tok/s")));
    }
    let named = [&app.status.profile, &app.status.title];
    parts.extend(named.into_iter().flatten().map(|name| (Ink::Muted, neutral_line(name))));
    fit(parts, width)
}

fn fit(parts: Vec<(Ink, String)>, width: usize) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut used = 0;
    for (ink, text) in parts {
        let before = if spans.is_empty() { "" } else { BETWEEN };
        let room = width.saturating_sub(used + width_of(before));
        if width_of(&text) > room {
            // A name may be cut, a number may not.
            if room > 8 && !text.contains("tok/s") || spans.is_empty() {
                spans.push(Span::new(Ink::Muted, before));
                spans.push(Span::new(ink, cut(&text, room)));
            }
            break;
        }
        used += width_of(before) + width_of(&text);
        spans.push(Span::new(Ink::Muted, before));
        spans.push(Span::new(ink, text));
    }
    spans
}

/// `12.3k/200k`: what the provider counted if it said so, else our estimate.
fn context(app: &App) -> Option<(Ink, String)> {
    let limit = app.sending.as_ref().and_then(|sending| sending.limit).or(app.status.limit);
    let sent = app.sending.as_ref().map(|sending| sending.tokens);
    let counted = app.usage.input.map(|input| input + app.usage.output.unwrap_or(0));
    let used = counted.or(sent);
    let text = match (counted, sent) {
        (Some(counted), _) => short(counted),
        (None, Some(sent)) => format!("~{}", short(sent)),
        (None, None) => limit.map(|_| "0".to_owned())?,
    };
    Some(match limit {
        Some(limit) if used.unwrap_or(0) * 10 > limit * 8 => (Ink::Warn, format!("{text}/{}", short(limit))),
        Some(limit) => (Ink::Muted, format!("{text}/{}", short(limit))),
        None => (Ink::Muted, text),
    })
}

fn hint(app: &App) -> Option<&'static str> {
    if app.is_leaving() {
        return Some("Ctrl+C once more leaves");
    }
    match app.mode() {
        Mode::Browse => Some("browse: arrows move, o opens, r reads, y copies, Esc ends"),
        Mode::Asked | Mode::Word | Mode::Write => None,
    }
}
