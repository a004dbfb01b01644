//! The rows of a document at one width. Settled rows stay; the pending rest is laid out again for
//! each frame.

use std::ops::Range;

use super::base_style::BaseStyle;
use super::code::{code_head, code_line};
use super::highlight_jobs::CodeBlock;
use super::markdown;
use super::row::{Row, Span};
use super::table::Table;
use super::wrap::{Break, wrap};
use aside_markdown::blocks::{BlockScanner, BlockSink, MarginLevel};

#[derive(Debug)]
pub(super) struct DocLayout {
    scanner: BlockScanner,
    out: LayoutRows,
    /// The length of the text that is laid out.
    source_len: Option<usize>,
}

#[derive(Debug)]
struct LayoutRows {
    width: usize,
    base: BaseStyle,
    rows: Vec<Row>,
    codes: Vec<CodeBlock>,
    table: Option<Table>,
    /// While the pending rest is laid out: the counts before it.
    pending: Option<SettledCounts>,
    /// A table that begins in the pending rest.
    new_table: Option<Table>,
}

#[derive(Debug, Clone, Copy)]
struct SettledCounts {
    rows: usize,
    codes: usize,
    /// In the last code block.
    lines: usize,
}

impl DocLayout {
    pub(super) fn new(width: usize, base: BaseStyle) -> DocLayout {
        let out = LayoutRows {
            width,
            base,
            rows: Vec::new(),
            codes: Vec::new(),
            table: None,
            pending: None,
            new_table: None,
        };
        DocLayout { scanner: BlockScanner::default(), out, source_len: None }
    }

    pub(super) fn fits(&self, width: usize, base: BaseStyle) -> bool {
        self.out.width == width && self.out.base == base
    }

    pub(super) fn grow(&mut self, source: &str) {
        if self.source_len == Some(source.len()) {
            return;
        }
        self.out.drop_pending();
        self.scanner.feed(source, &mut self.out);
        self.out.pending = Some(self.out.settled());
        self.scanner.clone().finish(source, &mut self.out);
        self.out.new_table = None;
        self.source_len = Some(source.len());
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.out.rows
    }

    /// The code blocks, including pending lines.
    pub(super) fn codes(&self) -> &[CodeBlock] {
        &self.out.codes
    }

    /// The number of settled code blocks, and of settled lines in the last one.
    pub(super) fn settled_code(&self) -> (usize, usize) {
        self.out.pending.map_or((0, 0), |settled| (settled.codes, settled.lines))
    }

    #[cfg(test)]
    pub(super) fn settled_rows(&self) -> usize {
        self.out.pending.map_or(0, |settled| settled.rows)
    }
}

impl LayoutRows {
    fn settled(&self) -> SettledCounts {
        let lines = self.codes.last().map_or(0, |code| code.lines.len());
        SettledCounts { rows: self.rows.len(), codes: self.codes.len(), lines }
    }

    fn drop_pending(&mut self) {
        let Some(settled) = self.pending.take() else { return };
        self.rows.truncate(settled.rows);
        self.codes.truncate(settled.codes);
        if let Some(code) = self.codes.last_mut() {
            code.lines.truncate(settled.lines);
        }
    }
}

impl BlockSink for LayoutRows {
    fn gap(&mut self, quotes: usize) {
        self.rows.push(self.base.blank_row(vec![self.base.quote_bar(); quotes], self.width));
    }

    fn prose(&mut self, text: &str, levels: &[MarginLevel]) {
        markdown::render(text, self.base, self.width, self.base.margin(levels), &mut self.rows);
    }

    fn code(&mut self, info: &str) {
        self.codes.push(CodeBlock { language: info.to_owned(), lines: Vec::new() });
    }

    fn code_head(&mut self, info: &str, levels: &[MarginLevel]) {
        code_head(info, self.base, self.width, self.base.margin(levels), &mut self.rows);
    }

    fn code_line(&mut self, line: Range<usize>, source: &str, levels: &[MarginLevel]) {
        let text = source.get(line.clone()).unwrap_or("");
        let block = self.codes.len().saturating_sub(1);
        let Some(code) = self.codes.last_mut() else { return };
        let at = Some((block, code.lines.len()));
        code.lines.push(line);
        code_line(text, self.base, self.width, self.base.margin(levels), at, &mut self.rows);
    }

    fn table(&mut self, head: &str, alignments: &str, levels: &[MarginLevel]) {
        let mut table = Table::aligned(alignments);
        let cells = markdown::cells(head, self.base);
        table.begin(cells, self.width, self.base, self.base.margin(levels), &mut self.rows);
        match self.pending {
            Some(_) => self.new_table = Some(table),
            None => self.table = Some(table),
        }
    }

    fn table_row(&mut self, row: &str) {
        let cells = markdown::cells(row, self.base);
        match (&mut self.new_table, &mut self.table, self.pending) {
            (Some(table), _, _) | (None, Some(table), None) => table.push(cells, &mut self.rows),
            (None, Some(table), Some(_)) => table.lay_out_pending(&cells, &mut self.rows),
            (None, None, _) => (),
        }
    }

    fn table_end(&mut self) {
        match self.pending {
            Some(_) => self.new_table = None,
            None => self.table = None,
        }
    }

    fn marker(&mut self, levels: &[MarginLevel]) {
        let none: [Span; 0] = [];
        wrap(&none, self.width, Break::Words, &self.base.margin(levels), self.base.background, &mut self.rows);
    }
}
