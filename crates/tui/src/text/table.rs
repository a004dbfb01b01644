//! A table of Markdown that grows row by row: as a grid where there is room,
//! as one record after another where there is not. A row that fits into the
//! columns there are is laid out alone; one that needs wider columns moves
//! all of them, until there are too many to move.

use pulldown_cmark::Alignment;

use super::base::Base;
use super::row::{Face, Ink, Row, Span};
use super::wrap::{Break, Margin, width_of, wrap};

/// A column is at least as wide as its longest word, so that no word is cut;
/// but one long word does not make a table unreadable.
const LONGEST_WORD: usize = 12;
const BETWEEN: &str = " │ ";
const BETWEEN_WIDTH: usize = 3;
/// From here on the columns stay as wide as they are.
const MOST_MOVED: usize = 100;

type Cell = Vec<Span>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Fit {
    Grid(Vec<usize>),
    Records,
}

#[derive(Debug)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    /// The head first.
    rows: Vec<Vec<Cell>>,
    /// How many rows are below the head, those that are not kept included.
    count: usize,
    /// How wide each column would like to be.
    natural: Vec<usize>,
    /// How narrow each column can be.
    least: Vec<usize>,
    fit: Fit,
    width: usize,
    base: Base,
    margin: Margin,
    /// Where its rows begin.
    from: usize,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Table {
        Table {
            alignments,
            rows: Vec::new(),
            count: 0,
            natural: Vec::new(),
            least: Vec::new(),
            fit: Fit::Records,
            width: 0,
            base: Base::TEXT,
            margin: Margin::default(),
            from: 0,
        }
    }

    /// The alignments as the line below the head gives them.
    pub(super) fn aligned(line: &str) -> Table {
        let alignment = |cell: &str| match (cell.trim().starts_with(':'), cell.trim().ends_with(':')) {
            (true, true) => Alignment::Center,
            (false, true) => Alignment::Right,
            (true, false) => Alignment::Left,
            (false, false) => Alignment::None,
        };
        Table::new(super::marks::cells(line).map(alignment).collect())
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn push_cell(&mut self, cell: Cell) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    pub(super) fn last_row(&mut self) -> Vec<Cell> {
        self.rows.pop().unwrap_or_default()
    }

    /// All of a table that is whole.
    pub(super) fn lay(mut self, width: usize, base: Base, margin: Margin, out: &mut Vec<Row>) {
        let rows = std::mem::take(&mut self.rows);
        let mut rows = rows.into_iter();
        self.begin(rows.next().unwrap_or_default(), width, base, margin, out);
        rows.for_each(|row| self.push(row, out));
    }

    pub(super) fn begin(&mut self, head: Vec<Cell>, width: usize, base: Base, margin: Margin, out: &mut Vec<Row>) {
        (self.width, self.base, self.margin, self.from) = (width, base, margin, out.len());
        self.widen(&head);
        self.fit = self.fitted();
        self.rows = vec![head];
        self.lay_all(out);
    }

    pub(super) fn push(&mut self, row: Vec<Cell>, out: &mut Vec<Row>) {
        self.count += 1;
        if self.is_frozen() {
            self.rows.truncate(1);
            return self.lay_row(&row, self.count, out);
        }
        self.widen(&row);
        let fit = self.fitted();
        let moves = fit != self.fit || self.count == 1;
        self.rows.push(row);
        if moves {
            self.fit = fit;
            out.truncate(self.from);
            self.lay_all(out);
        } else if let Some(row) = self.rows.last() {
            self.lay_row(row, self.count, out);
        }
    }

    /// A row that is not whole yet, in the columns there are.
    pub(super) fn peek(&self, row: &[Cell], out: &mut Vec<Row>) {
        self.lay_row(row, self.count + 1, out);
    }

    fn is_frozen(&self) -> bool {
        self.count > MOST_MOVED
    }

    fn widen(&mut self, row: &[Cell]) {
        if self.natural.len() < row.len() {
            self.natural.resize(row.len(), 1);
            self.least.resize(row.len(), 1);
        }
        for ((natural, least), cell) in self.natural.iter_mut().zip(&mut self.least).zip(row) {
            *natural = (*natural).max(cell.iter().map(|span| width_of(&span.text)).sum());
            let words = cell.iter().flat_map(|span| span.text.split_whitespace()).map(width_of);
            *least = (*least).max(words.max().unwrap_or(0).min(LONGEST_WORD));
        }
    }

    fn lead_width(&self) -> usize {
        let of = |spans: &[Span]| spans.iter().map(|span| width_of(&span.text)).sum::<usize>();
        of(&self.margin.first).max(of(&self.margin.rest))
    }

    /// How wide each column is, if all of them can be wide enough to read.
    fn fitted(&self) -> Fit {
        let between = self.natural.len().saturating_sub(1) * BETWEEN_WIDTH;
        let lead = self.lead_width();
        let room = self.width.saturating_sub(between + lead);
        if lead > self.width / 2 {
            return Fit::Records;
        }
        let most = |(width, least): (&usize, &usize)| (*width).min(room.max(*least));
        let mut widths: Vec<usize> = self.natural.iter().zip(&self.least).map(most).collect();
        // The widest gives way first.
        while widths.iter().sum::<usize>() > room {
            let wider = widths.iter_mut().zip(&self.least).filter(|(width, least)| **width > **least);
            match wider.map(|(width, _)| width).max_by_key(|width| **width) {
                Some(widest) => *widest -= 1,
                None => return Fit::Records,
            }
        }
        // A wide letter needs two columns.
        if widths.iter().zip(&self.natural).any(|(width, natural)| *width < 2 && natural > width) {
            return Fit::Records;
        }
        Fit::Grid(widths)
    }

    fn lay_all(&self, out: &mut Vec<Row>) {
        let Some((head, rows)) = self.rows.split_first() else { return };
        match &self.fit {
            Fit::Grid(widths) => {
                let bold: Vec<Cell> = head.iter().map(|cell| bold(cell)).collect();
                self.grid_rows(&bold, widths, out);
                let line: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                let mut row = self.row(out);
                row.spans.push(Span::new(Ink::Muted, line.join("─┼─")));
                out.push(row);
            }
            Fit::Records if rows.is_empty() => {
                for cell in head {
                    self.line(&bold(cell), out);
                }
            }
            Fit::Records => (),
        }
        for (index, row) in rows.iter().enumerate() {
            self.lay_row(row, index + 1, out);
        }
    }

    /// The row of this number, counted from one.
    fn lay_row(&self, row: &[Cell], number: usize, out: &mut Vec<Row>) {
        match &self.fit {
            Fit::Grid(widths) => {
                self.grid_rows(row, widths, out);
                // Cells without a column of their own are not left out.
                for cell in row.iter().skip(widths.len()) {
                    self.line(cell, out);
                }
            }
            Fit::Records => {
                if number > 1 {
                    out.push(self.base.blank_row(self.margin.rest.clone(), self.width));
                }
                self.record(row, out);
            }
        }
    }

    fn record(&self, row: &[Cell], out: &mut Vec<Row>) {
        let head = self.rows.first().map_or(&[][..], Vec::as_slice);
        for column in 0..row.len().max(head.len()) {
            let mut spans = head.get(column).map(|name| bold(name)).unwrap_or_default();
            spans.push(Span::new(Ink::Muted, ": "));
            spans.extend(row.get(column).into_iter().flatten().cloned());
            self.line(&spans, out);
        }
    }

    /// An empty row behind the margin.
    fn row(&self, out: &[Row]) -> Row {
        let spans = self.lead(out).clone();
        let lead = spans.len();
        Row::new(spans).led_by(lead).shaded(self.base.shade)
    }

    /// The marker of an item stands before the first row alone.
    fn lead(&self, out: &[Row]) -> &Vec<Span> {
        if out.len() == self.from { &self.margin.first } else { &self.margin.rest }
    }

    fn line(&self, spans: &[Span], out: &mut Vec<Row>) {
        let margin = Margin { first: self.lead(out).clone(), rest: self.margin.rest.clone() };
        wrap(spans, self.width, Break::Words, &margin, self.base.shade, out);
    }

    fn grid_rows(&self, row: &[Cell], widths: &[usize], out: &mut Vec<Row>) {
        let cells: Vec<Vec<Row>> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| {
                let mut lines = Vec::new();
                let cell = row.get(column).map_or(&[][..], Vec::as_slice);
                wrap(cell, *width, Break::Words, &Margin::default(), self.base.shade, &mut lines);
                lines
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let mut row = self.row(out);
            self.grid_row(&cells, line, widths, &mut row.spans);
            out.push(row);
        }
    }

    fn grid_row(&self, cells: &[Vec<Row>], line: usize, widths: &[usize], spans: &mut Vec<Span>) {
        let base = self.base;
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
            let pad = |width: usize| {
                Some(width).filter(|width| *width > 0).map(|width| Span::new(base.ink, " ".repeat(width)))
            };
            spans.extend(pad(before));
            spans.extend(text);
            spans.extend(pad(after));
        }
    }
}

fn bold(cell: &[Span]) -> Cell {
    cell.iter().cloned().map(|span| span.faced(Face::BOLD)).collect()
}
