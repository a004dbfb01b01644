//! A Markdown table that grows row by row: a grid where there is room, else a list of records. A
//! row that fits the current columns is laid out alone; a wider one lays out the table again, until
//! it has too many rows.

use pulldown_cmark::Alignment;

use super::base_style::BaseStyle;
use super::row::{FontStyle, Row, Span, TextRole};
use super::wrap::{Break, Margin, width_of, wrap};

/// A column is at least as wide as its longest word, up to this limit: one long word must not make
/// a table unreadable.
const MAX_WORD: usize = 30;
const BETWEEN: &str = " │ ";
const BETWEEN_WIDTH: usize = 3;
/// With more rows, column widths are fixed.
const MAX_RELAID_ROWS: usize = 100;

type TableCell = Vec<Span>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum TableFit {
    Grid(Vec<usize>),
    Records,
}

#[derive(Debug)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    /// The head first.
    rows: Vec<Vec<TableCell>>,
    /// Rows below the head, including those no longer stored.
    count: usize,
    /// The preferred width of each column.
    preferred: Vec<usize>,
    /// The minimum width of each column.
    minimum: Vec<usize>,
    fit: TableFit,
    width: usize,
    base: BaseStyle,
    margin: Margin,
    /// The index of its first row.
    from: usize,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Table {
        Table {
            alignments,
            rows: Vec::new(),
            count: 0,
            preferred: Vec::new(),
            minimum: Vec::new(),
            fit: TableFit::Records,
            width: 0,
            base: BaseStyle::TEXT,
            margin: Margin::default(),
            from: 0,
        }
    }

    /// Parses the alignments from the delimiter line.
    pub(super) fn aligned(line: &str) -> Table {
        let alignment = |cell: &str| match (cell.trim().starts_with(':'), cell.trim().ends_with(':')) {
            (true, true) => Alignment::Center,
            (false, true) => Alignment::Right,
            (true, false) => Alignment::Left,
            (false, false) => Alignment::None,
        };
        Table::new(aside_markdown::markers::cells(line).map(alignment).collect())
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn push_cell(&mut self, cell: TableCell) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    pub(super) fn last_row(&mut self) -> Vec<TableCell> {
        self.rows.pop().unwrap_or_default()
    }

    /// Lays out a complete table.
    pub(super) fn lay_out(mut self, width: usize, base: BaseStyle, margin: Margin, out: &mut Vec<Row>) {
        let rows = std::mem::take(&mut self.rows);
        let mut rows = rows.into_iter();
        self.begin(rows.next().unwrap_or_default(), width, base, margin, out);
        rows.for_each(|row| self.push(row, out));
    }

    pub(super) fn begin(
        &mut self,
        head: Vec<TableCell>,
        width: usize,
        base: BaseStyle,
        margin: Margin,
        out: &mut Vec<Row>,
    ) {
        (self.width, self.base, self.margin, self.from) = (width, base, margin, out.len());
        self.widen(&head);
        self.fit = self.fitted();
        self.rows = vec![head];
        self.lay_out_all(out);
    }

    pub(super) fn push(&mut self, row: Vec<TableCell>, out: &mut Vec<Row>) {
        self.count += 1;
        if self.is_frozen() {
            self.rows.truncate(1);
            return self.lay_out_row(&row, self.count, out);
        }
        self.widen(&row);
        let fit = self.fitted();
        let moves = fit != self.fit || self.count == 1;
        self.rows.push(row);
        if moves {
            self.fit = fit;
            out.truncate(self.from);
            self.lay_out_all(out);
        } else if let Some(row) = self.rows.last() {
            self.lay_out_row(row, self.count, out);
        }
    }

    /// Lays out an incomplete row in the current columns.
    pub(super) fn lay_out_pending(&self, row: &[TableCell], out: &mut Vec<Row>) {
        self.lay_out_row(row, self.count + 1, out);
    }

    fn is_frozen(&self) -> bool {
        self.count > MAX_RELAID_ROWS
    }

    fn widen(&mut self, row: &[TableCell]) {
        if self.preferred.len() < row.len() {
            self.preferred.resize(row.len(), 1);
            self.minimum.resize(row.len(), 1);
        }
        for ((preferred, minimum), cell) in self.preferred.iter_mut().zip(&mut self.minimum).zip(row) {
            *preferred = (*preferred).max(cell.iter().map(|span| width_of(&span.text)).sum());
            let words = cell.iter().flat_map(|span| span.text.split_whitespace()).map(width_of);
            *minimum = (*minimum).max(words.max().unwrap_or(0).min(MAX_WORD));
        }
    }

    fn margin_width(&self) -> usize {
        let of = |spans: &[Span]| spans.iter().map(|span| width_of(&span.text)).sum::<usize>();
        of(&self.margin.first).max(of(&self.margin.rest))
    }

    /// The column widths, if every column can be readable.
    fn fitted(&self) -> TableFit {
        let between = self.preferred.len().saturating_sub(1) * BETWEEN_WIDTH;
        let margin = self.margin_width();
        let room = self.width.saturating_sub(between + margin);
        if margin > self.width / 2 {
            return TableFit::Records;
        }
        let most = |(width, minimum): (&usize, &usize)| (*width).min(room.max(*minimum));
        let mut widths: Vec<usize> = self.preferred.iter().zip(&self.minimum).map(most).collect();
        // The widest column shrinks first.
        while widths.iter().sum::<usize>() > room {
            let wider = widths.iter_mut().zip(&self.minimum).filter(|(width, minimum)| **width > **minimum);
            match wider.map(|(width, _)| width).max_by_key(|width| **width) {
                Some(widest) => *widest -= 1,
                None => return TableFit::Records,
            }
        }
        // A wide character needs two columns.
        if widths.iter().zip(&self.preferred).any(|(width, preferred)| *width < 2 && preferred > width) {
            return TableFit::Records;
        }
        TableFit::Grid(widths)
    }

    fn lay_out_all(&self, out: &mut Vec<Row>) {
        let Some((head, rows)) = self.rows.split_first() else { return };
        match &self.fit {
            TableFit::Grid(widths) => {
                let bold: Vec<TableCell> = head.iter().map(|cell| bold(cell)).collect();
                self.grid_rows(&bold, widths, out);
                let line: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                let mut row = self.row(out);
                row.spans.push(Span::new(TextRole::Muted, line.join("─┼─")));
                out.push(row);
            }
            TableFit::Records if rows.is_empty() => {
                for cell in head {
                    self.line(&bold(cell), out);
                }
            }
            TableFit::Records => (),
        }
        for (index, row) in rows.iter().enumerate() {
            self.lay_out_row(row, index + 1, out);
        }
    }

    /// Lays out the row with this number, counted from one.
    fn lay_out_row(&self, row: &[TableCell], number: usize, out: &mut Vec<Row>) {
        match &self.fit {
            TableFit::Grid(widths) => {
                self.grid_rows(row, widths, out);
                // Cells beyond the last column must not be lost.
                for cell in row.iter().skip(widths.len()) {
                    self.line(cell, out);
                }
            }
            TableFit::Records => {
                if number > 1 {
                    out.push(self.base.blank_row(self.margin.rest.clone(), self.width));
                }
                self.record(row, out);
            }
        }
    }

    fn record(&self, row: &[TableCell], out: &mut Vec<Row>) {
        let head = self.rows.first().map_or(&[][..], Vec::as_slice);
        for column in 0..row.len().max(head.len()) {
            let mut spans = head.get(column).map(|name| bold(name)).unwrap_or_default();
            spans.push(Span::new(TextRole::Muted, ": "));
            spans.extend(row.get(column).into_iter().flatten().cloned());
            self.line(&spans, out);
        }
    }

    /// An empty row with its margin.
    fn row(&self, out: &[Row]) -> Row {
        let spans = self.margin_spans(out).clone();
        let lead = spans.len();
        Row::new(spans).with_margin(lead).with_background(self.base.background)
    }

    /// The item marker appears only before the first row.
    fn margin_spans(&self, out: &[Row]) -> &Vec<Span> {
        if out.len() == self.from { &self.margin.first } else { &self.margin.rest }
    }

    fn line(&self, spans: &[Span], out: &mut Vec<Row>) {
        let margin = Margin { first: self.margin_spans(out).clone(), rest: self.margin.rest.clone() };
        wrap(spans, self.width, Break::Words, &margin, self.base.background, out);
    }

    fn grid_rows(&self, row: &[TableCell], widths: &[usize], out: &mut Vec<Row>) {
        let cells: Vec<Vec<Row>> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| {
                let mut lines = Vec::new();
                let cell = row.get(column).map_or(&[][..], Vec::as_slice);
                wrap(cell, *width, Break::Words, &Margin::default(), self.base.background, &mut lines);
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
                spans.push(Span::new(TextRole::Muted, BETWEEN));
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
                Some(width).filter(|width| *width > 0).map(|width| Span::new(base.role, " ".repeat(width)))
            };
            spans.extend(pad(before));
            spans.extend(text);
            spans.extend(pad(after));
        }
    }
}

fn bold(cell: &[Span]) -> TableCell {
    cell.iter().cloned().map(|span| span.with_font(FontStyle::BOLD)).collect()
}
