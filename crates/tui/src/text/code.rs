//! Lines of code as rows. They are laid out without colours; those are added
//! when a row is painted, as soon as the highlighter knows them.

use super::base::Base;
use super::row::{CodeAt, Face, Ink, Mark, Row, Span};
use super::wrap::{Break, Margin, width_of, wrap};

/// Code begins this far in, where there is room.
const CODE_INDENT: &str = "  ";
const ROOM_TO_INDENT: usize = 20;

/// A line of code, as it stands. `at` says where its colours are.
pub(super) fn code_line(
    line: &str,
    base: Base,
    width: usize,
    margin: Margin,
    at: Option<(usize, usize)>,
    out: &mut Vec<Row>,
) {
    let ink = base.ink(Ink::Plain);
    let spans = [Span { ink, face: base.face.without(Face::ITALIC), text: line.to_owned() }];
    let from = out.len();
    wrap(&spans, width, Break::Anywhere, &indented(margin, width), base.code_shade(), out);
    if let Some((block, line)) = at {
        mark(out.get_mut(from..).unwrap_or(&mut []), CodeAt::new(block, line, base.tone()));
    }
}

/// Says of each row of a line where in the line it begins.
pub(crate) fn mark(rows: &mut [Row], at: CodeAt) {
    // A margin that found no room of its own is part of the text.
    if rows.first().is_none_or(|row| row.lead().is_empty() && row.spans.len() > 1) {
        return;
    }
    let mut from = at.first_byte();
    for row in rows {
        row.mark = Some(Mark::Code(at.from(from)));
        from += row.own().iter().map(|span| span.text.len()).sum::<usize>();
    }
}

/// The row above a block of code, where it says its language.
pub(super) fn code_head(info: &str, base: Base, width: usize, margin: Margin, out: &mut Vec<Row>) {
    let spans = [Span::new(Ink::Muted, info)];
    wrap(&spans, width, Break::Words, &indented(margin, width), base.code_shade(), out);
}

fn indented(mut margin: Margin, width: usize) -> Margin {
    let used: usize = margin.rest.iter().map(|span| width_of(&span.text)).sum();
    if width.saturating_sub(used) >= ROOM_TO_INDENT {
        margin.first.push(Span::new(Ink::Muted, CODE_INDENT));
        margin.rest.push(Span::new(Ink::Muted, CODE_INDENT));
    }
    margin
}
