//! Lays out lines of code without colours. Painting adds the colours once the highlighter has
//! computed them.

use super::base_style::BaseStyle;
use super::row::{CodePosition, FontStyle, Row, RowMark, Span, TextRole};
use super::wrap::{Break, Margin, width_of, wrap};

/// The indent of code, where there is room.
const CODE_INDENT: &str = "  ";
const ROOM_TO_INDENT: usize = 20;

/// Lays out a line of code unchanged. `at` tells where to find its colours.
pub(super) fn code_line(
    line: &str,
    base: BaseStyle,
    width: usize,
    margin: Margin,
    at: Option<(usize, usize)>,
    out: &mut Vec<Row>,
) {
    let role = base.role_for(TextRole::Plain);
    let spans = [Span { role, font: base.font.without(FontStyle::ITALIC), text: line.to_owned() }];
    let from = out.len();
    wrap(&spans, width, Break::Anywhere, &indented(margin, width), base.code_background(), out);
    if let Some((block, line)) = at {
        mark_code_rows(out.get_mut(from..).unwrap_or(&mut []), CodePosition::new(block, line, base.saturation()));
    }
}

/// Records for each row where in the line it begins.
pub(crate) fn mark_code_rows(rows: &mut [Row], at: CodePosition) {
    // A margin that did not fit has become part of the text.
    if rows.first().is_none_or(|row| row.margin().is_empty() && row.spans.len() > 1) {
        return;
    }
    let mut from = at.first_byte();
    for row in rows {
        row.mark = Some(RowMark::Code(at.from(from)));
        from += row.content().iter().map(|span| span.text.len()).sum::<usize>();
    }
}

/// The row above a code block that names its language. A diff needs none: its first lines name a file.
pub(super) fn code_head(info: &str, base: BaseStyle, width: usize, margin: Margin, out: &mut Vec<Row>) {
    if info == "diff" {
        return;
    }
    let spans = [Span::new(TextRole::Muted, info)];
    wrap(&spans, width, Break::Words, &indented(margin, width), base.code_background(), out);
}

fn indented(mut margin: Margin, width: usize) -> Margin {
    let used: usize = margin.rest.iter().map(|span| width_of(&span.text)).sum();
    if width.saturating_sub(used) >= ROOM_TO_INDENT {
        margin.first.push(Span::new(TextRole::Muted, CODE_INDENT));
        margin.rest.push(Span::new(TextRole::Muted, CODE_INDENT));
    }
    margin
}
