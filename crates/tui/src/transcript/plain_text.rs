//! Text that is not Markdown: a prompt, a tool result or a notice.

use std::ops::Range;

use aside_core::terminal_text::terminal_safe;

use super::{HintKeys, diff};
use crate::text::highlight_jobs::{CodeBlock, HighlightId, HighlightJob, HighlightResult, Highlights};
use crate::text::{Break, FontStyle, HighlightedRows, Margin, Row, RowBackground, Span, TextRole, width_of, wrap};
use aside_front::diff_lines::has_diff;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainTextKind {
    /// The user's prompt, after a `❯`.
    User,
    Output,
    /// A text that contains a diff.
    Diff,
    Notice(TextRole),
}

/// How much of the text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    All,
    /// The first or last lines, and how many more there are.
    Part,
}

/// Which lines a partial view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartSide {
    First,
    Last,
}

/// Lines shown of a partial text.
const PART_LINES: usize = 16;
/// Lines shown of a prompt, which the user knows.
const PART_LINES_OF_PROMPT: usize = 12;
/// Rows shown of a partial text with long lines: so many of a line, and so many in all.
const MAX_ROWS_OF_A_LINE: usize = 4;
const MAX_PART_ROWS: usize = 40;

#[derive(Debug)]
pub struct PlainText {
    source: String,
    kind: PlainTextKind,
    lines: usize,
    /// Lines shown of a partial view.
    part_lines: usize,
    part_side: PartSide,
    /// How many lines of a diff take no row, at its beginning.
    n_hidden: usize,
    layout: Option<PlainLayout>,
    highlights: Highlights,
}

#[derive(Debug)]
struct PlainLayout {
    width: usize,
    extent: Extent,
    /// Whether another text stands above.
    has_text_above: bool,
    rows: Vec<Row>,
    codes: Vec<CodeBlock>,
}

impl PlainText {
    pub fn new(text: &str, kind: PlainTextKind) -> PlainText {
        let source = terminal_safe(text).into_owned();
        let lines = source.lines().count();
        let part_lines = if kind == PlainTextKind::User { PART_LINES_OF_PROMPT } else { PART_LINES };
        let part_side = PartSide::First;
        let (layout, highlights) = (None, Highlights::default());
        PlainText { source, kind, lines, part_lines, part_side, n_hidden: 0, layout, highlights }
    }

    /// A tool result.
    pub fn output(text: &str) -> PlainText {
        PlainText::new(text, if has_diff(text) { PlainTextKind::Diff } else { PlainTextKind::Output })
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn is_blank(&self) -> bool {
        self.source.trim().is_empty()
    }

    pub fn kind(&self) -> PlainTextKind {
        self.kind
    }

    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Whether a partial view would hide anything.
    pub fn is_long(&self) -> bool {
        // A tool result may be one long line of data; a prompt should take no more than a screen.
        let is_brief = self.kind == PlainTextKind::User || self.part_side == PartSide::Last;
        let bytes_of_a_line = if is_brief { 240 } else { 1000 };
        self.lines > self.part_lines + 1 || self.source.len() > self.part_lines * bytes_of_a_line
    }

    /// Shows this many lines in a partial view.
    pub fn with_part_lines(self, part_lines: usize) -> PlainText {
        PlainText { part_lines, ..self }
    }

    /// Shows the last lines in a partial view. A diff is read from its beginning.
    pub fn with_last_lines(self) -> PlainText {
        let part_side = if self.kind == PlainTextKind::Diff { PartSide::First } else { PartSide::Last };
        PlainText { part_side, ..self }
    }

    /// Leaves out the first lines of a diff, which say nothing new.
    pub fn without_first_lines(self, n_hidden: usize) -> PlainText {
        PlainText { n_hidden, part_lines: self.part_lines + n_hidden, ..self }
    }

    /// How many lines there are, if some were left out of the text.
    pub fn with_total_lines(self, lines: usize) -> PlainText {
        PlainText { lines, ..self }
    }

    pub fn forget_rows(&mut self) {
        self.layout = None;
    }

    pub fn rows(&mut self, width: usize) -> &[Row] {
        self.body(width, Extent::All, HintKeys::default()).rows
    }

    pub fn body(&mut self, width: usize, extent: Extent, keys: HintKeys) -> HighlightedRows<'_> {
        self.body_below(None, width, extent, keys)
    }

    /// The same below another text, which does not change.
    pub fn body_below(
        &mut self,
        above: Option<&str>,
        width: usize,
        extent: Extent,
        keys: HintKeys,
    ) -> HighlightedRows<'_> {
        let has_text_above = above.is_some();
        let is_same = |layout: &PlainLayout| (layout.width, layout.extent) == (width, extent);
        let layout = match self.layout.take() {
            Some(layout) if is_same(&layout) && layout.has_text_above == has_text_above => layout,
            Some(_) | None => {
                let mut layout = PlainLayout { has_text_above, ..self.lay_out(width, extent, keys) };
                layout.rows.splice(0..0, above.map(|text| rows_above(text, width)).unwrap_or_default());
                layout
            }
        };
        HighlightedRows::new(&self.layout.insert(layout).rows, &self.highlights)
    }

    fn lay_out(&self, width: usize, extent: Extent, keys: HintKeys) -> PlainLayout {
        let kept = self.source.lines().count();
        let shown = match (extent, self.part_side) {
            (Extent::All, _) => 0..usize::MAX,
            (Extent::Part, PartSide::First) => 0..self.part_lines,
            (Extent::Part, PartSide::Last) => kept.saturating_sub(self.part_lines)..usize::MAX,
        };
        let (mut rows, codes) = lay_out_lines(&self.source, self.kind, width, shown, self.n_hidden);
        let max_rows = MAX_PART_ROWS.min(self.part_lines * MAX_ROWS_OF_A_LINE);
        let cut = extent == Extent::Part && rows.len() > max_rows;
        match self.part_side {
            PartSide::First if cut => rows.truncate(max_rows),
            PartSide::Last if cut => drop(rows.drain(..rows.len() - max_rows)),
            PartSide::First | PartSide::Last => (),
        }
        if extent == Extent::Part && (cut || self.lines > self.part_lines) {
            let place = if self.part_side == PartSide::Last { " above" } else { "" };
            let more = match self.lines.saturating_sub(self.part_lines) {
                0 => format!("… more of this{place}"),
                1 => format!("… 1 more line{place}"),
                more => format!("… {more} more lines{place}"),
            };
            let lead = if self.kind == PlainTextKind::User { 2 } else { 0 };
            let hint = keys.to_open(false).fitting_with_key(width.saturating_sub(width_of(&more) + 1 + lead));
            let more = format!("{more} {hint}");
            let (margin, background) = match self.kind {
                PlainTextKind::User => {
                    (Margin { first: vec![Span::new(TextRole::Accent, "  ")], rest: Vec::new() }, RowBackground::User)
                }
                PlainTextKind::Output | PlainTextKind::Diff | PlainTextKind::Notice(_) => {
                    (Margin::default(), RowBackground::None)
                }
            };
            let end = rows.len();
            wrap(&[Span::new(TextRole::Accent, more)], width, Break::Words, &margin, background, &mut rows);
            if self.part_side == PartSide::Last {
                rows.rotate_left(end);
            }
        }
        PlainLayout { width, extent, has_text_above: false, rows, codes }
    }

    /// The next code to highlight in the laid-out part.
    pub fn next_job(&mut self, next: &mut HighlightId) -> Option<HighlightJob> {
        let layout = self.layout.as_ref()?;
        let whole = (layout.codes.len(), layout.codes.last().map_or(0, |code| code.lines.len()));
        self.highlights.next_job(&self.source, &layout.codes, whole, next)
    }

    /// Applies a result; returns false if it belongs to another text.
    pub fn apply_highlight(&mut self, result: &mut HighlightResult) -> bool {
        self.highlights.apply(result)
    }
}

/// A text above another. It must not look like the first lines of the other.
fn rows_above(text: &str, width: usize) -> Vec<Row> {
    let indent = || vec![Span::new(TextRole::Accent, "│ ")];
    let margin = Margin { first: indent(), rest: indent() };
    let mut rows = Vec::new();
    for line in terminal_safe(text).trim_end().split('\n') {
        wrap(&[Span::new(TextRole::Plain, line)], width, Break::Words, &margin, RowBackground::None, &mut rows);
    }
    rows
}

fn lay_out_lines(
    source: &str,
    kind: PlainTextKind,
    width: usize,
    shown: Range<usize>,
    n_hidden: usize,
) -> (Vec<Row>, Vec<CodeBlock>) {
    let mut out = Vec::new();
    let mut at = 0;
    let lines = source.trim_end_matches('\n').split('\n').map(|line| {
        let from = at;
        at += line.len() + 1;
        (from, line)
    });
    let lines = lines.take(shown.end).skip(shown.start);
    match kind {
        PlainTextKind::User => lines.for_each(|(at, line)| {
            let lead = if at == 0 { "❯ " } else { "  " };
            let margin = Margin {
                first: vec![Span::new(TextRole::Accent, lead).with_font(FontStyle::BOLD)],
                rest: vec![Span::new(TextRole::Accent, "  ")],
            };
            wrap(&[Span::new(TextRole::Plain, line)], width, Break::Words, &margin, RowBackground::User, &mut out);
        }),
        PlainTextKind::Output => lines.for_each(|(_, line)| {
            wrap(
                &[Span::new(TextRole::Muted, line)],
                width,
                Break::Words,
                &Margin::default(),
                RowBackground::None,
                &mut out,
            );
        }),
        PlainTextKind::Diff => return diff::lay_out(source, lines, width, n_hidden),
        PlainTextKind::Notice(role) => lines.for_each(|(at, line)| {
            let lead = if at == 0 { notice_mark(role) } else { "  " };
            let margin = Margin { first: vec![Span::new(role, lead)], rest: vec![Span::new(role, "  ")] };
            let role = if at == 0 { role } else { TextRole::Muted };
            wrap(&[Span::new(role, line)], width, Break::Words, &margin, RowBackground::None, &mut out);
        }),
    }
    (out, Vec::new())
}

/// Distinguishes notices without colour.
fn notice_mark(role: TextRole) -> &'static str {
    match role {
        TextRole::Error => "✗ ",
        TextRole::Warning => "! ",
        TextRole::Success => "✓ ",
        TextRole::Plain
        | TextRole::Muted
        | TextRole::Thinking
        | TextRole::Accent
        | TextRole::Heading
        | TextRole::Code
        | TextRole::Link
        | TextRole::Quote
        | TextRole::Added
        | TextRole::Removed
        | TextRole::SearchMatch
        | TextRole::Token(..) => "· ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t17_a_part_with_long_lines_takes_few_rows_and_ends_with_the_end() {
        let text = format!("first\n{}\nlast", "x".repeat(2_000));
        for width in [40, 80, 200] {
            let mut output = PlainText::output(&text).with_last_lines().with_part_lines(5);
            assert!(output.is_long());
            let body = output.body(width, Extent::Part, HintKeys::default());
            let rows: Vec<String> = body.rows.iter().map(Row::text).collect();
            assert!(rows.len() <= 22, "{width}: {} rows", rows.len());
            assert_eq!(rows.last().map(|row| row.trim()), Some("last"), "{width}");
        }
        assert!(!PlainText::output("one\ntwo\nthree\n").with_last_lines().with_part_lines(5).is_long());
    }
}
