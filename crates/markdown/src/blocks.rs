//! Splits Markdown into blocks, line by line: the quotes and list items around a line, and where a
//! paragraph, a table or a code block ends. It never looks back, so that the cost of a line does
//! not depend on its position. A sink parses the inside of a paragraph.

use std::ops::Range;

use crate::markers::{self, ListMarker};

/// A longer paragraph or line is settled early: parsing it again and again would cost more than a
/// broken emphasis.
pub const MAX_PENDING: usize = 8 * 1024;

/// One level of the margin before a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarginLevel {
    Quote,
    /// The marker is shown once, then replaced by spaces.
    Item {
        marker: Option<String>,
        width: usize,
        /// The item's number in an ordered list.
        number: Option<u64>,
        /// It is the first item of its list.
        first: bool,
    },
}

/// Receives the blocks.
pub trait BlockSink {
    /// A blank row with this many quote bars.
    fn gap(&mut self, quotes: usize);
    /// A paragraph, a heading or similar.
    fn prose(&mut self, text: &str, levels: &[MarginLevel]);
    /// A code block begins.
    fn code(&mut self, info: &str);
    fn code_head(&mut self, info: &str, levels: &[MarginLevel]);
    fn code_line(&mut self, line: Range<usize>, source: &str, levels: &[MarginLevel]);
    fn table(&mut self, head: &str, alignments: &str, levels: &[MarginLevel]);
    fn table_row(&mut self, row: &str);
    fn table_end(&mut self);
    /// A list item without text.
    fn marker(&mut self, levels: &[MarginLevel]);
}

#[derive(Debug, Clone)]
struct OpenContainer {
    kind: Container,
    /// For items: how many columns a line must be indented to belong to the item.
    needs: usize,
}

#[derive(Debug, Clone)]
enum Container {
    Quote,
    Item {
        /// Not shown yet.
        marker: Option<String>,
        width: usize,
        /// `-`, `*`, `+`, `.` or `)`. A different one begins a new list.
        letter: char,
        number: Option<u64>,
        /// The first item of its list.
        first: bool,
    },
}

#[derive(Debug, Clone, Default)]
enum LeafBlock {
    #[default]
    None,
    Prose(String),
    Fence {
        letter: char,
        length: usize,
        indent: usize,
    },
    /// Counts blank lines, which belong to the block if it continues.
    Indented {
        blanks: usize,
    },
    Table,
}

/// What precedes the next block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Preceding {
    #[default]
    Nothing,
    Block,
    /// A block and a blank line.
    Blank,
    /// The first part of the same block.
    Part,
}

#[derive(Debug, Clone, Default)]
pub struct BlockScanner {
    /// Lines before this byte are processed.
    at: usize,
    /// There is no unprocessed line end before this byte.
    searched: usize,
    open: Vec<OpenContainer>,
    leaf: LeafBlock,
    before: Preceding,
    /// Inside a line that is too long to wait for its end.
    midline: bool,
    /// How many of the open containers enclosed the last block.
    shared: usize,
}

impl BlockScanner {
    /// Processes the complete lines and emits the blocks that they end.
    pub fn feed(&mut self, source: &str, sink: &mut impl BlockSink) {
        loop {
            let from = self.searched.max(self.at);
            let end = source.get(from..).and_then(|rest| rest.find('\n')).map(|at| from + at);
            let length = end.unwrap_or(source.len()).saturating_sub(self.at);
            if length > MAX_PENDING {
                let cut = self.at + cut_point(source.get(self.at..).unwrap_or(""));
                self.take(self.at..cut, source, sink);
                self.settle_part(sink);
                (self.at, self.midline) = (cut, true);
                continue;
            }
            self.searched = source.len();
            let Some(end) = end else { return };
            self.take(self.at..end, source, sink);
            (self.at, self.searched, self.midline) = (end + 1, end + 1, false);
        }
    }

    /// Emits the rest, as if the text ended here.
    pub fn finish(mut self, source: &str, sink: &mut impl BlockSink) {
        let rest = source.get(self.at..).unwrap_or("");
        // Avoids showing half a closing fence as code for a moment.
        let is_fence = matches!(self.leaf, LeafBlock::Fence { letter, .. }
            if rest.trim().chars().all(|one| one == letter));
        if !rest.is_empty() && !is_fence {
            self.take(self.at..source.len(), source, sink);
        }
        self.end_leaf(sink);
        self.close(0, sink);
    }

    fn take(&mut self, range: Range<usize>, source: &str, sink: &mut impl BlockSink) {
        let Some(line) = source.get(range.clone()) else { return };
        if !self.midline {
            return self.line(range.start, line, source, sink);
        }
        match &mut self.leaf {
            LeafBlock::None => self.leaf = LeafBlock::Prose(line.to_owned()),
            LeafBlock::Prose(text) => text.push_str(line),
            LeafBlock::Fence { .. } | LeafBlock::Indented { .. } => self.code_line(range, source, sink),
            LeafBlock::Table => sink.table_row(line),
        }
    }

    fn line(&mut self, start: usize, line: &str, source: &str, sink: &mut impl BlockSink) {
        if let LeafBlock::Fence { letter, length, indent } = self.leaf
            && let Some(at) = self.inside_fence(line, indent)
        {
            let rest = line.get(at..).unwrap_or("");
            match markers::fence(rest.trim()) {
                Some((one, count, "")) if one == letter && count >= length => self.leaf = LeafBlock::None,
                _ => self.code_line(start + at..start + line.len(), source, sink),
            }
            return;
        }
        let (matched, at) = self.matching(line);
        let rest = line.get(at..).unwrap_or("");
        if rest.trim().is_empty() {
            return self.blank(matched, sink);
        }
        let in_prose = matches!(self.leaf, LeafBlock::Prose(_));
        if matched < self.open.len() {
            if in_prose && !self.interrupts(rest, matched) {
                return self.prose_line(rest, sink);
            }
            self.end_leaf(sink);
        }
        let at = at + self.enter(matched, rest, sink);
        self.leaf_line(start + at, line.get(at..).unwrap_or(""), source, sink);
    }

    /// Where the code of a line begins; `None` if an enclosing quote ended.
    fn inside_fence(&self, line: &str, indent: usize) -> Option<usize> {
        let mut at = 0;
        for open in &self.open {
            let rest = line.get(at..).unwrap_or("");
            at += match open.kind {
                Container::Quote => markers::quote_marker(rest)?,
                // Models forget to indent, so only the closing fence ends the code.
                Container::Item { .. } => markers::indent_of(rest, open.needs),
            };
        }
        Some(at + markers::indent_of(line.get(at..).unwrap_or(""), indent))
    }

    /// How many containers continue on this line, and where their markers end.
    fn matching(&self, line: &str) -> (usize, usize) {
        let mut at = 0;
        for (index, open) in self.open.iter().enumerate() {
            let rest = line.get(at..).unwrap_or("");
            let taken = match open.kind {
                Container::Quote => markers::quote_marker(rest),
                Container::Item { .. } if rest.trim().is_empty() => Some(0),
                Container::Item { .. } => {
                    (markers::columns(rest) >= open.needs).then(|| markers::indent_of(rest, open.needs))
                }
            };
            match taken {
                Some(taken) => at += taken,
                None => return (index, at),
            }
        }
        (self.open.len(), at)
    }

    fn blank(&mut self, matched: usize, sink: &mut impl BlockSink) {
        if let LeafBlock::Indented { blanks } = &mut self.leaf {
            *blanks += 1;
            return;
        }
        self.end_leaf(sink);
        // A quote ends at a line without its marker.
        if matched < self.open.len() {
            self.close(matched, sink);
        }
        self.after_blank();
    }

    fn after_blank(&mut self) {
        if self.before != Preceding::Nothing {
            self.before = Preceding::Blank;
        }
    }

    /// Whether a line begins a new block instead of continuing a paragraph.
    fn interrupts(&self, rest: &str, matched: usize) -> bool {
        if markers::columns(rest) > 3 {
            return false;
        }
        let rest = rest.trim_start();
        let sibling = self.open.get(matched).is_some_and(|open| matches!(open.kind, Container::Item { .. }));
        let is_item = match markers::list_marker(rest) {
            Some(marker) => sibling || marker.interrupts(rest),
            None => false,
        };
        is_item
            || rest.starts_with('>')
            || markers::fence(rest).is_some()
            || markers::is_heading(rest)
            || markers::is_rule(rest)
    }

    /// Closes the containers that ended and opens those that begin on this line. Returns where the
    /// text after their markers begins.
    fn enter(&mut self, matched: usize, rest: &str, sink: &mut impl BlockSink) -> usize {
        let mut sibling = self.sibling(matched);
        if matched < self.open.len() {
            self.close(matched, sink);
        }
        let mut at = 0;
        loop {
            let here = rest.get(at..).unwrap_or("");
            let indent = markers::columns(here);
            if indent > 3 {
                return at;
            }
            let bare = here.trim_start();
            let in_prose = matches!(self.leaf, LeafBlock::Prose(_));
            if let Some(taken) = markers::quote_marker(here) {
                self.end_leaf(sink);
                self.open.push(OpenContainer { kind: Container::Quote, needs: 0 });
                (at, sibling) = (at + taken, None);
                continue;
            }
            let marker = markers::list_marker(bare).filter(|marker| !in_prose || marker.interrupts(bare));
            let Some(marker) = marker.filter(|_| !markers::is_rule(bare)) else { return at };
            self.end_leaf(sink);
            let (needs, taken) = marker.indent(bare);
            self.item(&marker, indent + needs, sibling.take());
            at += here.len() - bare.len() + taken;
        }
    }

    /// The list of the first item that closes.
    fn sibling(&self, matched: usize) -> Option<(char, Option<u64>)> {
        match self.open.get(matched).map(|open| &open.kind) {
            Some(Container::Item { letter, number, .. }) => Some((*letter, *number)),
            Some(Container::Quote) | None => None,
        }
    }

    fn item(&mut self, marker: &ListMarker, needs: usize, before: Option<(char, Option<u64>)>) {
        let before = before.filter(|(letter, _)| *letter == marker.letter);
        let number = match (marker.number, before) {
            (Some(_), Some((_, Some(before)))) => Some(before.saturating_add(1)),
            (number, _) => number,
        };
        let inner = self.open.iter().any(|open| matches!(open.kind, Container::Item { .. }));
        let text = match number {
            Some(number) => format!("{number}{} ", marker.letter),
            None if inner => "◦ ".to_owned(),
            None => "• ".to_owned(),
        };
        let width = text.chars().count();
        let first = before.is_none();
        let kind = Container::Item { marker: Some(text), width, letter: marker.letter, number, first };
        self.open.push(OpenContainer { kind, needs });
    }

    fn leaf_line(&mut self, start: usize, rest: &str, source: &str, sink: &mut impl BlockSink) {
        let bare = rest.trim();
        let indent = markers::columns(rest);
        if bare.is_empty() {
            return;
        }
        if let LeafBlock::Indented { blanks } = self.leaf {
            if indent > 3 {
                for _ in 0..blanks {
                    self.code_line(start..start, source, sink);
                }
                self.leaf = LeafBlock::Indented { blanks: 0 };
                return self.code_line(start + markers::indent_of(rest, 4)..start + rest.len(), source, sink);
            }
            self.end_leaf(sink);
            if blanks > 0 {
                self.after_blank();
            }
        }
        let fence = markers::fence(bare).filter(|_| indent < 4);
        if let Some((letter, length, info)) = fence {
            self.end_leaf(sink);
            self.begin(sink);
            sink.code(info);
            if !info.is_empty() {
                let levels = self.margin_levels();
                sink.code_head(info, &levels);
            }
            self.leaf = LeafBlock::Fence { letter, length, indent };
            return;
        }
        match &self.leaf {
            LeafBlock::Table if indent < 4 && markers::is_heading(bare) => self.heading(rest, sink),
            LeafBlock::Table => sink.table_row(bare),
            LeafBlock::Prose(_) if indent < 4 && markers::is_heading(bare) => self.heading(rest, sink),
            LeafBlock::Prose(_) => self.prose_line(rest, sink),
            LeafBlock::None if indent > 3 => {
                self.begin(sink);
                sink.code("");
                self.leaf = LeafBlock::Indented { blanks: 0 };
                self.code_line(start + markers::indent_of(rest, 4)..start + rest.len(), source, sink);
            }
            LeafBlock::None if markers::is_heading(bare) => self.heading(rest, sink),
            LeafBlock::None | LeafBlock::Fence { .. } | LeafBlock::Indented { .. } => {
                self.leaf = LeafBlock::Prose(rest.to_owned())
            }
        }
    }

    /// A heading ends with its line.
    fn heading(&mut self, line: &str, sink: &mut impl BlockSink) {
        self.end_leaf(sink);
        self.leaf = LeafBlock::Prose(line.to_owned());
        self.end_leaf(sink);
    }

    fn prose_line(&mut self, line: &str, sink: &mut impl BlockSink) {
        let LeafBlock::Prose(text) = &mut self.leaf else { return };
        let head_at = text.rfind('\n').map_or(0, |at| at + 1);
        if markers::is_table_head(text.get(head_at..).unwrap_or(""), line) {
            let head = text.split_off(head_at);
            self.end_leaf(sink);
            self.begin(sink);
            let levels = self.margin_levels();
            sink.table(head.trim(), line.trim(), &levels);
            self.leaf = LeafBlock::Table;
            return;
        }
        text.push('\n');
        text.push_str(line);
        if text.len() > MAX_PENDING {
            self.settle_part(sink);
        }
    }

    fn code_line(&mut self, range: Range<usize>, source: &str, sink: &mut impl BlockSink) {
        let levels = self.margin_levels();
        sink.code_line(range, source, &levels);
    }

    /// Settles the paragraph so far; the rest follows.
    fn settle_part(&mut self, sink: &mut impl BlockSink) {
        if matches!(self.leaf, LeafBlock::Prose(_)) {
            self.end_leaf(sink);
            self.before = Preceding::Part;
        }
    }

    fn end_leaf(&mut self, sink: &mut impl BlockSink) {
        match std::mem::take(&mut self.leaf) {
            LeafBlock::Prose(text) if !text.trim().is_empty() => {
                self.begin(sink);
                let levels = self.margin_levels();
                sink.prose(&text, &levels);
            }
            LeafBlock::Table => sink.table_end(),
            LeafBlock::Prose(_) | LeafBlock::None | LeafBlock::Fence { .. } | LeafBlock::Indented { .. } => (),
        }
    }

    /// Closes all but the first `kept` containers.
    fn close(&mut self, kept: usize, sink: &mut impl BlockSink) {
        while self.open.len() > kept {
            let is_bare =
                matches!(self.open.last(), Some(OpenContainer { kind: Container::Item { marker: Some(_), .. }, .. }));
            if is_bare {
                self.begin(sink);
                let levels = self.margin_levels();
                sink.marker(&levels);
            }
            self.open.pop();
        }
        self.shared = self.shared.min(kept);
    }

    /// Begins a block, after a blank row where needed.
    fn begin(&mut self, sink: &mut impl BlockSink) {
        let items = self.open.iter().filter(|open| matches!(open.kind, Container::Item { .. })).count();
        let gap = match (self.before, self.open.last().map(|open| &open.kind)) {
            (Preceding::Nothing | Preceding::Part, _) => false,
            (Preceding::Blank, _) => true,
            (Preceding::Block, Some(Container::Item { marker: Some(_), first, .. })) => *first && items == 1,
            (Preceding::Block, _) => true,
        };
        if gap {
            let around = self.open.iter().take(self.shared);
            sink.gap(around.filter(|open| matches!(open.kind, Container::Quote)).count());
        }
        self.before = Preceding::Block;
        self.shared = self.open.len();
    }

    /// The margin of the next row. Each marker is returned once.
    fn margin_levels(&mut self) -> Vec<MarginLevel> {
        let level = |open: &mut OpenContainer| match &mut open.kind {
            Container::Quote => MarginLevel::Quote,
            Container::Item { marker, width, number, first, .. } => {
                MarginLevel::Item { marker: marker.take(), width: *width, number: *number, first: *first }
            }
        };
        self.open.iter_mut().map(level).collect()
    }
}

/// Where an overlong line is cut: after the last word that fits.
fn cut_point(line: &str) -> usize {
    let most = (0..=MAX_PENDING).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    let head = line.get(..most).unwrap_or("");
    head.rfind(' ').map_or(most, |at| at + 1).max(1)
}
