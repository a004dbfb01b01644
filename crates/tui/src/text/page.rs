//! The rows of a document at one width. What is settled stays; what comes
//! behind it is laid out anew for each frame.

use std::ops::Range;

use super::base::Base;
use super::blocks::{Level, Scanner, Sink};
use super::code::{code_head, code_line};
use super::light::CodeBlock;
use super::markdown;
use super::row::{Row, Span};
use super::table::Table;
use super::wrap::{Break, wrap};

#[derive(Debug)]
pub(super) struct Page {
    scanner: Scanner,
    sheet: Sheet,
    /// How much text the rows stand for.
    upto: Option<usize>,
}

#[derive(Debug)]
struct Sheet {
    width: usize,
    base: Base,
    rows: Vec<Row>,
    codes: Vec<CodeBlock>,
    table: Option<Table>,
    /// What comes is not whole yet; this is what there was before it.
    pending: Option<Settled>,
    /// A table that begins in what is not whole yet.
    new_table: Option<Table>,
}

#[derive(Debug, Clone, Copy)]
struct Settled {
    rows: usize,
    codes: usize,
    /// Of the last block of code.
    lines: usize,
}

impl Page {
    pub(super) fn new(width: usize, base: Base) -> Page {
        let sheet =
            Sheet { width, base, rows: Vec::new(), codes: Vec::new(), table: None, pending: None, new_table: None };
        Page { scanner: Scanner::default(), sheet, upto: None }
    }

    pub(super) fn fits(&self, width: usize, base: Base) -> bool {
        self.sheet.width == width && self.sheet.base == base
    }

    pub(super) fn grow(&mut self, source: &str) {
        if self.upto == Some(source.len()) {
            return;
        }
        self.sheet.back();
        self.scanner.feed(source, &mut self.sheet);
        self.sheet.pending = Some(self.sheet.settled());
        self.scanner.clone().finish(source, &mut self.sheet);
        self.sheet.new_table = None;
        self.upto = Some(source.len());
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.sheet.rows
    }

    /// The blocks of code, and how many lines of the last one are whole.
    pub(super) fn codes(&self) -> &[CodeBlock] {
        &self.sheet.codes
    }

    /// How many blocks of code there are for good, and lines of the last.
    pub(super) fn settled_code(&self) -> (usize, usize) {
        self.sheet.pending.map_or((0, 0), |settled| (settled.codes, settled.lines))
    }

    #[cfg(test)]
    pub(super) fn settled_rows(&self) -> usize {
        self.sheet.pending.map_or(0, |settled| settled.rows)
    }
}

impl Sheet {
    fn settled(&self) -> Settled {
        let lines = self.codes.last().map_or(0, |code| code.lines.len());
        Settled { rows: self.rows.len(), codes: self.codes.len(), lines }
    }

    fn back(&mut self) {
        let Some(settled) = self.pending.take() else { return };
        self.rows.truncate(settled.rows);
        self.codes.truncate(settled.codes);
        if let Some(code) = self.codes.last_mut() {
            code.lines.truncate(settled.lines);
        }
    }
}

impl Sink for Sheet {
    fn gap(&mut self, quotes: usize) {
        self.rows.push(self.base.blank_row(vec![self.base.bar(); quotes], self.width));
    }

    fn prose(&mut self, text: &str, lead: &[Level]) {
        markdown::render(text, self.base, self.width, self.base.margin(lead), &mut self.rows);
    }

    fn code(&mut self, info: &str) {
        self.codes.push(CodeBlock { language: info.to_owned(), lines: Vec::new() });
    }

    fn code_head(&mut self, info: &str, lead: &[Level]) {
        code_head(info, self.base, self.width, self.base.margin(lead), &mut self.rows);
    }

    fn code_line(&mut self, line: Range<usize>, source: &str, lead: &[Level]) {
        let text = source.get(line.clone()).unwrap_or("");
        let block = self.codes.len().saturating_sub(1);
        let Some(code) = self.codes.last_mut() else { return };
        let at = Some((block, code.lines.len()));
        code.lines.push(line);
        code_line(text, self.base, self.width, self.base.margin(lead), at, &mut self.rows);
    }

    fn table(&mut self, head: &str, alignments: &str, lead: &[Level]) {
        let mut table = Table::aligned(alignments);
        let cells = markdown::cells(head, self.base);
        table.begin(cells, self.width, self.base, self.base.margin(lead), &mut self.rows);
        match self.pending {
            Some(_) => self.new_table = Some(table),
            None => self.table = Some(table),
        }
    }

    fn table_row(&mut self, row: &str) {
        let cells = markdown::cells(row, self.base);
        match (&mut self.new_table, &mut self.table, self.pending) {
            (Some(table), _, _) | (None, Some(table), None) => table.push(cells, &mut self.rows),
            (None, Some(table), Some(_)) => table.peek(&cells, &mut self.rows),
            (None, None, _) => (),
        }
    }

    fn table_end(&mut self) {
        match self.pending {
            Some(_) => self.new_table = None,
            None => self.table = None,
        }
    }

    fn marker(&mut self, lead: &[Level]) {
        let none: [Span; 0] = [];
        wrap(&none, self.width, Break::Words, &self.base.margin(lead), self.base.shade, &mut self.rows);
    }
}
