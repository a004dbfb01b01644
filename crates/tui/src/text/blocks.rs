//! Markdown taken apart line by line: which quotes and items a line stands
//! in, and where a paragraph, a table or a block of code ends. It never looks
//! back, so a line costs the same wherever it stands. What is inside a
//! paragraph is the business of [`super::markdown`].

use std::ops::Range;

use super::marks::{self, Marker};

/// A paragraph or a line longer than this is settled on the way: reading it
/// again and again would cost more than a broken emphasis is worth.
pub(super) const MOST_PENDING: usize = 8 * 1024;

/// One level of what stands before a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Level {
    Quote,
    /// Its marker is shown once; then it is as wide as that.
    Item {
        marker: Option<String>,
        width: usize,
    },
}

/// Who hears what the lines are.
pub(super) trait Sink {
    /// A blank row, with this many bars of quotes.
    fn gap(&mut self, quotes: usize);
    /// A paragraph, a heading or the like.
    fn prose(&mut self, text: &str, lead: &[Level]);
    /// A block of code begins.
    fn code(&mut self, info: &str);
    fn code_head(&mut self, info: &str, lead: &[Level]);
    fn code_line(&mut self, line: Range<usize>, source: &str, lead: &[Level]);
    fn table(&mut self, head: &str, alignments: &str, lead: &[Level]);
    fn table_row(&mut self, row: &str);
    fn table_end(&mut self);
    /// An item without a word.
    fn marker(&mut self, lead: &[Level]);
}

#[derive(Debug, Clone)]
struct Open {
    kind: Container,
    /// Columns that a line must be indented to belong to it; of items only.
    needs: usize,
}

#[derive(Debug, Clone)]
enum Container {
    Quote,
    Item {
        /// Not shown yet.
        marker: Option<String>,
        width: usize,
        /// `-`, `*`, `+`, `.` or `)`: another one begins another list.
        letter: char,
        number: Option<u64>,
        /// The first of its list.
        first: bool,
    },
}

#[derive(Debug, Clone, Default)]
enum Leaf {
    #[default]
    None,
    Prose(String),
    Fence {
        letter: char,
        length: usize,
        indent: usize,
    },
    /// With blank lines that belong to it if it goes on.
    Indented {
        blanks: usize,
    },
    Table,
}

/// What stands before the next block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Before {
    #[default]
    Nothing,
    Block,
    /// A block and a blank line.
    Blank,
    /// The first part of the same block.
    Part,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Scanner {
    /// Up to here the lines are known.
    at: usize,
    /// Up to here there is no line end that is not known.
    searched: usize,
    open: Vec<Open>,
    leaf: Leaf,
    before: Before,
    /// In the middle of a line that is too long to wait for its end.
    midline: bool,
    /// How many of the open containers the last block stood in.
    shared: usize,
}

impl Scanner {
    /// Takes the lines that are whole. What they end is told.
    pub(super) fn feed(&mut self, source: &str, sink: &mut impl Sink) {
        loop {
            let from = self.searched.max(self.at);
            let end = source.get(from..).and_then(|rest| rest.find('\n')).map(|at| from + at);
            let length = end.unwrap_or(source.len()).saturating_sub(self.at);
            if length > MOST_PENDING {
                let cut = self.at + cut_of(source.get(self.at..).unwrap_or(""));
                self.take(self.at..cut, source, sink);
                self.glue(sink);
                (self.at, self.midline) = (cut, true);
                continue;
            }
            self.searched = source.len();
            let Some(end) = end else { return };
            self.take(self.at..end, source, sink);
            (self.at, self.searched, self.midline) = (end + 1, end + 1, false);
        }
    }

    /// As if nothing more came.
    pub(super) fn finish(mut self, source: &str, sink: &mut impl Sink) {
        let rest = source.get(self.at..).unwrap_or("");
        // Half of a closing fence is not shown as code for a moment.
        let is_fence = matches!(self.leaf, Leaf::Fence { letter, .. }
            if rest.trim().chars().all(|one| one == letter));
        if !rest.is_empty() && !is_fence {
            self.take(self.at..source.len(), source, sink);
        }
        self.end_leaf(sink);
        self.close(0, sink);
    }

    fn take(&mut self, range: Range<usize>, source: &str, sink: &mut impl Sink) {
        let Some(line) = source.get(range.clone()) else { return };
        if !self.midline {
            return self.line(range.start, line, source, sink);
        }
        match &mut self.leaf {
            Leaf::None => self.leaf = Leaf::Prose(line.to_owned()),
            Leaf::Prose(text) => text.push_str(line),
            Leaf::Fence { .. } | Leaf::Indented { .. } => self.code_line(range, source, sink),
            Leaf::Table => sink.table_row(line),
        }
    }

    fn line(&mut self, start: usize, line: &str, source: &str, sink: &mut impl Sink) {
        if let Leaf::Fence { letter, length, indent } = self.leaf
            && let Some(at) = self.inside_fence(line, indent)
        {
            let rest = line.get(at..).unwrap_or("");
            match marks::fence(rest.trim()) {
                Some((one, count, "")) if one == letter && count >= length => self.leaf = Leaf::None,
                _ => self.code_line(start + at..start + line.len(), source, sink),
            }
            return;
        }
        let (matched, at) = self.matching(line);
        let rest = line.get(at..).unwrap_or("");
        if rest.trim().is_empty() {
            return self.blank(matched, sink);
        }
        let in_prose = matches!(self.leaf, Leaf::Prose(_));
        if matched < self.open.len() {
            if in_prose && !self.interrupts(rest, matched) {
                return self.prose_line(rest, sink);
            }
            self.end_leaf(sink);
        }
        let at = at + self.enter(matched, rest, sink);
        self.leaf_line(start + at, line.get(at..).unwrap_or(""), source, sink);
    }

    /// Where the code of a line begins; nothing if a quote around it ended.
    fn inside_fence(&self, line: &str, indent: usize) -> Option<usize> {
        let mut at = 0;
        for open in &self.open {
            let rest = line.get(at..).unwrap_or("");
            at += match open.kind {
                Container::Quote => marks::quote(rest)?,
                // Models forget to indent; a fence ends with its fence.
                Container::Item { .. } => marks::indent_of(rest, open.needs),
            };
        }
        Some(at + marks::indent_of(line.get(at..).unwrap_or(""), indent))
    }

    /// How many containers go on with this line, and where their marks end.
    fn matching(&self, line: &str) -> (usize, usize) {
        let mut at = 0;
        for (index, open) in self.open.iter().enumerate() {
            let rest = line.get(at..).unwrap_or("");
            let taken = match open.kind {
                Container::Quote => marks::quote(rest),
                Container::Item { .. } if rest.trim().is_empty() => Some(0),
                Container::Item { .. } => {
                    (marks::columns(rest) >= open.needs).then(|| marks::indent_of(rest, open.needs))
                }
            };
            match taken {
                Some(taken) => at += taken,
                None => return (index, at),
            }
        }
        (self.open.len(), at)
    }

    fn blank(&mut self, matched: usize, sink: &mut impl Sink) {
        if let Leaf::Indented { blanks } = &mut self.leaf {
            *blanks += 1;
            return;
        }
        self.end_leaf(sink);
        // A quote ends where its bar is missing.
        if matched < self.open.len() {
            self.close(matched, sink);
        }
        self.after_blank();
    }

    fn after_blank(&mut self) {
        if self.before != Before::Nothing {
            self.before = Before::Blank;
        }
    }

    /// Whether a line begins something new instead of going on with a paragraph.
    fn interrupts(&self, rest: &str, matched: usize) -> bool {
        if marks::columns(rest) > 3 {
            return false;
        }
        let rest = rest.trim_start();
        let sibling = self.open.get(matched).is_some_and(|open| matches!(open.kind, Container::Item { .. }));
        let is_item = match marks::marker(rest) {
            Some(marker) => sibling || marker.interrupts(rest),
            None => false,
        };
        is_item
            || rest.starts_with('>')
            || marks::fence(rest).is_some()
            || marks::is_heading(rest)
            || marks::is_rule(rest)
    }

    /// Closes what ended, opens the quotes and items that begin on this line;
    /// returns where the text behind their marks begins.
    fn enter(&mut self, matched: usize, rest: &str, sink: &mut impl Sink) -> usize {
        let mut sibling = self.sibling(matched);
        if matched < self.open.len() {
            self.close(matched, sink);
        }
        let mut at = 0;
        loop {
            let here = rest.get(at..).unwrap_or("");
            let indent = marks::columns(here);
            if indent > 3 {
                return at;
            }
            let bare = here.trim_start();
            let in_prose = matches!(self.leaf, Leaf::Prose(_));
            if let Some(taken) = marks::quote(here) {
                self.end_leaf(sink);
                self.open.push(Open { kind: Container::Quote, needs: 0 });
                (at, sibling) = (at + taken, None);
                continue;
            }
            let marker = marks::marker(bare).filter(|marker| !in_prose || marker.interrupts(bare));
            let Some(marker) = marker.filter(|_| !marks::is_rule(bare)) else { return at };
            self.end_leaf(sink);
            let (needs, taken) = marker.needs(bare);
            self.item(&marker, indent + needs, sibling.take());
            at += here.len() - bare.len() + taken;
        }
    }

    /// The list that the first item to close belongs to.
    fn sibling(&self, matched: usize) -> Option<(char, Option<u64>)> {
        match self.open.get(matched).map(|open| &open.kind) {
            Some(Container::Item { letter, number, .. }) => Some((*letter, *number)),
            Some(Container::Quote) | None => None,
        }
    }

    fn item(&mut self, marker: &Marker, needs: usize, before: Option<(char, Option<u64>)>) {
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
        let width = super::width_of(&text);
        let first = before.is_none();
        let kind = Container::Item { marker: Some(text), width, letter: marker.letter, number, first };
        self.open.push(Open { kind, needs });
    }

    fn leaf_line(&mut self, start: usize, rest: &str, source: &str, sink: &mut impl Sink) {
        let bare = rest.trim();
        let indent = marks::columns(rest);
        if bare.is_empty() {
            return;
        }
        if let Leaf::Indented { blanks } = self.leaf {
            if indent > 3 {
                for _ in 0..blanks {
                    self.code_line(start..start, source, sink);
                }
                self.leaf = Leaf::Indented { blanks: 0 };
                return self.code_line(start + marks::indent_of(rest, 4)..start + rest.len(), source, sink);
            }
            self.end_leaf(sink);
            if blanks > 0 {
                self.after_blank();
            }
        }
        let fence = marks::fence(bare).filter(|_| indent < 4);
        if let Some((letter, length, info)) = fence {
            self.end_leaf(sink);
            self.begin(sink);
            sink.code(info);
            if !info.is_empty() {
                let lead = self.lead();
                sink.code_head(info, &lead);
            }
            self.leaf = Leaf::Fence { letter, length, indent };
            return;
        }
        match &self.leaf {
            Leaf::Table if indent < 4 && marks::is_heading(bare) => self.heading(rest, sink),
            Leaf::Table => sink.table_row(bare),
            Leaf::Prose(_) if indent < 4 && marks::is_heading(bare) => self.heading(rest, sink),
            Leaf::Prose(_) => self.prose_line(rest, sink),
            Leaf::None if indent > 3 => {
                self.begin(sink);
                sink.code("");
                self.leaf = Leaf::Indented { blanks: 0 };
                self.code_line(start + marks::indent_of(rest, 4)..start + rest.len(), source, sink);
            }
            Leaf::None if marks::is_heading(bare) => self.heading(rest, sink),
            Leaf::None | Leaf::Fence { .. } | Leaf::Indented { .. } => self.leaf = Leaf::Prose(rest.to_owned()),
        }
    }

    /// A heading is whole with its line.
    fn heading(&mut self, line: &str, sink: &mut impl Sink) {
        self.end_leaf(sink);
        self.leaf = Leaf::Prose(line.to_owned());
        self.end_leaf(sink);
    }

    fn prose_line(&mut self, line: &str, sink: &mut impl Sink) {
        let Leaf::Prose(text) = &mut self.leaf else { return };
        let head_at = text.rfind('\n').map_or(0, |at| at + 1);
        if marks::is_head_of_table(text.get(head_at..).unwrap_or(""), line) {
            let head = text.split_off(head_at);
            self.end_leaf(sink);
            self.begin(sink);
            let lead = self.lead();
            sink.table(head.trim(), line.trim(), &lead);
            self.leaf = Leaf::Table;
            return;
        }
        text.push('\n');
        text.push_str(line);
        if text.len() > MOST_PENDING {
            self.glue(sink);
        }
    }

    fn code_line(&mut self, range: Range<usize>, source: &str, sink: &mut impl Sink) {
        let lead = self.lead();
        sink.code_line(range, source, &lead);
    }

    /// What there is of a paragraph is settled, and it goes on.
    fn glue(&mut self, sink: &mut impl Sink) {
        if matches!(self.leaf, Leaf::Prose(_)) {
            self.end_leaf(sink);
            self.before = Before::Part;
        }
    }

    fn end_leaf(&mut self, sink: &mut impl Sink) {
        match std::mem::take(&mut self.leaf) {
            Leaf::Prose(text) if !text.trim().is_empty() => {
                self.begin(sink);
                let lead = self.lead();
                sink.prose(&text, &lead);
            }
            Leaf::Table => sink.table_end(),
            Leaf::Prose(_) | Leaf::None | Leaf::Fence { .. } | Leaf::Indented { .. } => (),
        }
    }

    /// Closes the containers behind the first `kept`.
    fn close(&mut self, kept: usize, sink: &mut impl Sink) {
        while self.open.len() > kept {
            let is_bare = matches!(self.open.last(), Some(Open { kind: Container::Item { marker: Some(_), .. }, .. }));
            if is_bare {
                self.begin(sink);
                let lead = self.lead();
                sink.marker(&lead);
            }
            self.open.pop();
        }
        self.shared = self.shared.min(kept);
    }

    /// A block begins, with a blank row before it where it needs one.
    fn begin(&mut self, sink: &mut impl Sink) {
        let items = self.open.iter().filter(|open| matches!(open.kind, Container::Item { .. })).count();
        let gap = match (self.before, self.open.last().map(|open| &open.kind)) {
            (Before::Nothing | Before::Part, _) => false,
            (Before::Blank, _) => true,
            (Before::Block, Some(Container::Item { marker: Some(_), first, .. })) => *first && items == 1,
            (Before::Block, _) => true,
        };
        if gap {
            let around = self.open.iter().take(self.shared);
            sink.gap(around.filter(|open| matches!(open.kind, Container::Quote)).count());
        }
        self.before = Before::Block;
        self.shared = self.open.len();
    }

    /// What stands before the next row; markers are used up.
    fn lead(&mut self) -> Vec<Level> {
        let level = |open: &mut Open| match &mut open.kind {
            Container::Quote => Level::Quote,
            Container::Item { marker, width, .. } => Level::Item { marker: marker.take(), width: *width },
        };
        self.open.iter_mut().map(level).collect()
    }
}

/// Where a line that is too long is cut: behind its last word that fits.
fn cut_of(line: &str) -> usize {
    let most = (0..=MOST_PENDING).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    let head = line.get(..most).unwrap_or("");
    head.rfind(' ').map_or(most, |at| at + 1).max(1)
}
