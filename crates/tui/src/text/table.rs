//! A table of Markdown, fitted to a width: as a grid where there is room, as
//! one record after another where there is not.

use pulldown_cmark::Alignment;

use super::markdown::Base;
use super::row::{Face, Ink, Row, Span};
use super::wrap::{Break, Margin, wrap};

/// A column is at least as wide as its longest word, so that no word is cut;
/// but one long word does not make a table unreadable.
const LONGEST_WORD: usize = 12;
const BETWEEN: &str = " │ ";
const BETWEEN_WIDTH: usize = 3;

#[derive(Debug)]
pub(crate) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<Span>>>,
}

impl Table {
    pub(crate) fn new(alignments: Vec<Alignment>) -> Table {
        Table { alignments, rows: Vec::new() }
    }

    pub(crate) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(crate) fn push_cell(&mut self, cell: Vec<Span>) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    pub(crate) fn rows(self, width: usize, base: Base) -> Vec<Row> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let between = columns.saturating_sub(1) * BETWEEN_WIDTH;
        match self.fitted(columns, width.saturating_sub(between)) {
            Some(widths) => self.grid(&widths, base),
            None => self.records(width, base),
        }
    }

    /// How wide each column is, if all of them can be wide enough to read.
    fn fitted(&self, columns: usize, room: usize) -> Option<Vec<usize>> {
        // How wide each one is, and how narrow it can be.
        let mut widths = vec![(1, 1); columns];
        for row in &self.rows {
            for ((width, least), cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.iter().map(|span| super::width_of(&span.text)).sum());
                let words = cell.iter().flat_map(|span| span.text.split_whitespace()).map(super::width_of);
                *least = (*least).max(words.max().unwrap_or(0).min(LONGEST_WORD));
            }
        }
        // The widest gives way first.
        while widths.iter().map(|(width, _)| width).sum::<usize>() > room {
            let (widest, _) =
                widths.iter_mut().filter(|(width, least)| width > least).max_by_key(|(width, _)| *width)?;
            *widest -= 1;
        }
        Some(widths.into_iter().map(|(width, _)| width).collect())
    }

    fn grid(&self, widths: &[usize], base: Base) -> Vec<Row> {
        let mut out = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Row>> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| {
                    let mut lines = Vec::new();
                    let cell = row.get(column).map_or(&[][..], Vec::as_slice);
                    let cell = if index == 0 { bold(cell) } else { cell.to_vec() };
                    wrap(&cell, *width, Break::Words, &Margin::default(), base.shade, &mut lines);
                    lines
                })
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                out.push(self.grid_row(&cells, line, widths, base));
            }
            if index == 0 {
                let line: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                out.push(Row::new(vec![Span::new(Ink::Muted, line.join("─┼─"))]).shaded(base.shade));
            }
        }
        out
    }

    fn grid_row(&self, cells: &[Vec<Row>], line: usize, widths: &[usize], base: Base) -> Row {
        let mut spans = Vec::new();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            if column > 0 {
                spans.push(Span::new(Ink::Muted, BETWEEN));
            }
            let (text, used) = cell.get(line).map_or((Vec::new(), 0), |row| (row.spans.clone(), row.width()));
            let free = width.saturating_sub(used);
            let before = match self.alignments.get(column) {
                Some(Alignment::Right) => free,
                Some(Alignment::Center) => free / 2,
                Some(Alignment::Left | Alignment::None) | None => 0,
            };
            let is_last = column + 1 == cells.len();
            let after = if is_last && before == 0 { 0 } else { free - before };
            spans.push(Span::new(base.ink, " ".repeat(before)));
            spans.extend(text);
            spans.push(Span::new(base.ink, " ".repeat(after)));
        }
        spans.retain(|span| !span.text.is_empty());
        Row::new(spans).shaded(base.shade)
    }

    fn records(&self, width: usize, base: Base) -> Vec<Row> {
        let mut out = Vec::new();
        let Some((head, rows)) = self.rows.split_first() else { return out };
        if rows.is_empty() {
            for cell in head {
                wrap(&bold(cell), width, Break::Words, &Margin::default(), base.shade, &mut out);
            }
        }
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                out.push(Row::default().shaded(base.shade));
            }
            for (column, cell) in row.iter().enumerate() {
                let mut spans = head.get(column).map(|name| bold(name)).unwrap_or_default();
                spans.push(Span::new(Ink::Muted, ": "));
                spans.extend(cell.iter().cloned());
                wrap(&spans, width, Break::Words, &Margin::default(), base.shade, &mut out);
            }
        }
        out
    }
}

fn bold(cell: &[Span]) -> Vec<Span> {
    cell.iter().cloned().map(|span| span.faced(Face::BOLD)).collect()
}
