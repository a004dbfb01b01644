//! A text of any length, split into sections of some kilobytes. A section is laid out when it
//! becomes visible and dropped when it is not, so that even a million lines of thinking cost only
//! their visible part.
//!
//! Section ends depend on the text alone: not on the width, the chunking or later text.

use std::borrow::Cow;
use std::ops::Range;

use aside_core::terminal_text::TerminalFilter;

use super::base_style::BaseStyle;
use super::highlight_jobs::{HighlightId, HighlightJob, HighlightResult, HighlightedRows};
use super::markdown_view::MarkdownView;
use super::row::Row;
use super::section::{Section, SectionGap, SectionRows, is_white_space};
use super::shared_text::SharedText;
use aside_markdown::markers;

/// A section ends at the first block border after this many bytes,
const SECTION_TARGET: usize = 8 * 1024;
/// or at the first line end after this many,
const LINE_LIMIT: usize = 12 * 1024;
/// or at the first space after this many,
const WORD_LIMIT: usize = 15 * 1024;
/// or here at the latest.
const HARD_LIMIT: usize = 16 * 1024;
/// Finished sections that have this much text together keep it in one buffer. The system gets a large buffer back when
/// it is freed; many small ones would stay with the program, between others that are still used.
const GATHERED_BYTES: usize = 256 * 1024;
/// The longest info string to repeat when a section continues a code block.
const MAX_INFO: usize = 40;

#[derive(Debug)]
pub struct LazyText {
    /// A complete text that has not been split yet.
    whole: Option<WholeText>,
    /// Finished sections.
    done: Vec<Section>,
    /// How many of them share the buffer of their text, or that of the history.
    n_gathered: usize,
    /// How much text the others have.
    ungathered_bytes: usize,
    /// The section that grows.
    last: Section,
    /// The first section that the tail has laid out.
    tail_from: usize,
    filter: TerminalFilter,
    line: SectionLine,
    /// The open code fence, if any.
    fence: Option<OpenFence>,
    border: BlockBorder,
    /// Whether there is nothing but white space so far. Every draw asks, so it is not read from the text each time.
    is_blank: bool,
    /// All rows, while the reader needs them.
    all: Option<AllRows>,
}

#[derive(Debug)]
enum WholeText {
    Own(String),
    Shared(SharedText),
}

impl WholeText {
    fn as_str(&self) -> &str {
        match self {
            WholeText::Own(text) => text,
            WholeText::Shared(shared) => shared.as_str(),
        }
    }
}

#[derive(Debug)]
struct OpenFence {
    letter: char,
    length: usize,
    /// The info string, usually the language.
    info: String,
}

/// The state of the current line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SectionLine {
    New,
    /// The byte of the last section where the line began.
    Begun(usize),
}

/// Whether a new block may begin with the next line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockBorder {
    No,
    /// Unless that line is indented, and so belongs to an item.
    Here,
}

#[derive(Debug)]
struct AllRows {
    width: usize,
    base: BaseStyle,
    rows: Vec<Row>,
    /// The row where each section begins.
    starts: Vec<usize>,
    /// Finished sections that are included, and their rows.
    done: usize,
    done_rows: usize,
}

impl Default for LazyText {
    fn default() -> LazyText {
        LazyText {
            whole: None,
            done: Vec::new(),
            n_gathered: 0,
            ungathered_bytes: 0,
            last: Section::default(),
            tail_from: 0,
            filter: TerminalFilter::default(),
            line: SectionLine::New,
            fence: None,
            border: BlockBorder::No,
            is_blank: true,
            all: None,
        }
    }
}

impl LazyText {
    pub fn new(text: &str) -> LazyText {
        let mut long = LazyText::default();
        let whole = long.filter.take(text).into_owned();
        long.is_blank = is_white_space(&whole);
        long.whole = Some(WholeText::Own(whole));
        long
    }

    /// A complete text. It is copied only if something has to be removed from it.
    pub fn shared(shared: SharedText) -> LazyText {
        let mut long = LazyText::default();
        let removed = match long.filter.take(shared.as_str()) {
            Cow::Borrowed(_) => None,
            Cow::Owned(safe) => Some(safe),
        };
        let whole = removed.map_or(WholeText::Shared(shared), WholeText::Own);
        long.is_blank = is_white_space(whole.as_str());
        long.whole = Some(whole);
        long
    }

    /// Splits a complete text, once sections are needed.
    fn split_whole(&mut self) {
        match self.whole.take() {
            Some(WholeText::Own(text)) => {
                self.push_safe(&text);
                self.finish();
            }
            Some(WholeText::Shared(shared)) => {
                // One section at a time, so that there is no second copy of the text.
                let mut at = 0;
                for piece in shared.as_str().split_inclusive('\n') {
                    let before = self.done.len();
                    self.push_piece(piece);
                    self.done.iter_mut().skip(before).for_each(|section| at = section.share(&shared, at));
                    (self.n_gathered, self.ungathered_bytes) = (self.done.len(), 0);
                }
                self.last.share(&shared, at);
                self.done.shrink_to_fit();
            }
            None => (),
        }
    }

    /// Refers to a recorded text instead of keeping a copy, if it is the same.
    pub fn share(&mut self, shared: &SharedText) {
        if !self.equals(shared.as_str()) {
            return;
        }
        if let Some(whole) = &mut self.whole {
            *whole = WholeText::Shared(shared.clone());
            return;
        }
        let mut at = 0;
        for section in self.done.iter_mut().chain([&mut self.last]) {
            at = section.share(shared, at);
        }
    }

    /// The text, safe to display.
    pub fn source(&self) -> Cow<'_, str> {
        match self.done.as_slice() {
            [] => Cow::Borrowed(self.whole.as_ref().map_or(self.last.own_text(), WholeText::as_str)),
            _ => Cow::Owned(self.all_sections().map(Section::own_text).collect()),
        }
    }

    /// The first kilobytes.
    pub fn start(&self) -> &str {
        if let Some(whole) = self.whole.as_ref().map(WholeText::as_str) {
            return whole.get(..char_floor(whole, SECTION_TARGET)).unwrap_or(whole);
        }
        self.done.first().unwrap_or(&self.last).own_text()
    }

    pub fn len(&self) -> usize {
        self.parts().map(str::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn is_blank(&self) -> bool {
        self.is_blank
    }

    /// Whether the text equals this one.
    pub fn equals(&self, text: &str) -> bool {
        let mut rest = text;
        let begins = |part: &str| match rest.strip_prefix(part) {
            Some(after) => {
                rest = after;
                true
            }
            None => false,
        };
        self.parts().all(begins) && rest.is_empty()
    }

    /// Costs only as much as the new text.
    pub fn push(&mut self, text: &str) {
        let shown = self.filter.take(text);
        self.push_safe(&shown);
    }

    /// The same for text that is already safe to display.
    pub fn push_safe(&mut self, shown: &str) {
        self.split_whole();
        self.is_blank = self.is_blank && is_white_space(shown);
        for piece in shown.split_inclusive('\n') {
            self.push_piece(piece);
        }
    }

    /// Appends a line, or part of one.
    fn push_piece(&mut self, piece: &str) {
        if self.line == SectionLine::New {
            self.split_before(piece);
            self.line = SectionLine::Begun(self.last.doc.source().len());
        }
        let mut piece = piece;
        while let Some((now, rest)) = self.overflow(piece) {
            self.last.doc.push_safe(now);
            self.begin_section(SectionGap::None);
            self.line = SectionLine::Begun(self.last.doc.source().len());
            piece = rest;
        }
        self.last.doc.push_safe(piece);
        if piece.ends_with('\n') {
            self.end_line();
        }
    }

    /// Splits an overlong line into the part for this section and the rest.
    fn overflow<'a>(&self, piece: &'a str) -> Option<(&'a str, &'a str)> {
        let length = self.last.own_text().len();
        let soft = char_floor(piece, WORD_LIMIT.saturating_sub(length));
        let hard = char_floor(piece, HARD_LIMIT.saturating_sub(length));
        let space = piece.get(soft..hard).and_then(|near| near.find(' ')).map(|space| soft + space + 1);
        let cut = space.or((hard < piece.len()).then_some(hard))?;
        piece.split_at_checked(cut)
    }

    /// Begins a section before a line, where appropriate.
    fn split_before(&mut self, piece: &str) {
        let length = self.last.own_text().len();
        let is_block =
            self.border == BlockBorder::Here && self.fence.is_none() && !piece.starts_with(char::is_whitespace);
        if length > SECTION_TARGET && is_block {
            self.begin_section(SectionGap::BlankRow);
        } else if length > LINE_LIMIT {
            self.begin_section(SectionGap::None);
        }
    }

    fn begin_section(&mut self, before: SectionGap) {
        let opener = self.fence.as_ref().map(OpenFence::opener).unwrap_or_default();
        // The section is full; the next one uses its spare memory.
        let doc = MarkdownView::with_buffer(self.last.doc.take_buffer(), &opener);
        let next = Section { doc, before, opener: opener.len() };
        let finished = std::mem::replace(&mut self.last, next);
        self.ungathered_bytes += finished.doc.source().len();
        self.done.push(finished);
        if self.ungathered_bytes >= GATHERED_BYTES {
            self.gather();
        }
    }

    /// Moves the text of finished sections into one buffer.
    fn gather(&mut self) {
        let mut text = String::with_capacity(self.ungathered_bytes);
        let sections = self.done.iter().skip(self.n_gathered);
        let ranges: Vec<Range<usize>> = sections
            .map(|section| {
                let from = text.len();
                text.push_str(section.doc.source());
                from..text.len()
            })
            .collect();
        let shared = SharedText::gathered(text);
        for (section, range) in self.done.iter_mut().skip(self.n_gathered).zip(ranges) {
            section.doc.share(&shared, range);
        }
        (self.n_gathered, self.ungathered_bytes) = (self.done.len(), 0);
    }

    fn end_line(&mut self) {
        let SectionLine::Begun(from) = std::mem::replace(&mut self.line, SectionLine::New) else { return };
        let whole = self.last.doc.source().get(from..).unwrap_or("");
        let line = whole.trim();
        self.border = BlockBorder::No;
        match (&self.fence, markers::fence(line)) {
            (Some(open), Some((letter, length, ""))) if letter == open.letter && length >= open.length => {
                self.fence = None;
                // Code inside an item does not end the item.
                if !whole.starts_with(char::is_whitespace) {
                    self.border = BlockBorder::Here;
                }
            }
            (Some(_), _) => (),
            (None, Some((letter, length, info))) => {
                let info = if info.len() > MAX_INFO { "" } else { info };
                self.fence = Some(OpenFence { letter, length, info: info.to_owned() });
            }
            (None, None) if line.is_empty() => self.border = BlockBorder::Here,
            (None, None) => (),
        }
    }

    fn all_sections(&self) -> impl Iterator<Item = &Section> {
        self.done.iter().chain([&self.last])
    }

    /// The whole text, safe to display, in the parts that hold it.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.whole.as_ref().map(WholeText::as_str).into_iter().chain(self.all_sections().map(Section::own_text))
    }

    /// No more text follows; frees spare capacity.
    pub fn finish(&mut self) {
        self.last.doc.finish();
        self.done.shrink_to_fit();
    }

    pub fn sections(&mut self) -> usize {
        self.split_whole();
        self.done.len() + 1
    }

    fn section_mut(&mut self, section: usize) -> &mut Section {
        self.done.get_mut(section).unwrap_or(&mut self.last)
    }

    /// The rows of one section.
    pub fn section(&mut self, section: usize, width: usize, base: BaseStyle) -> SectionRows<'_> {
        self.split_whole();
        self.section_mut(section).rows(width, base)
    }

    /// The last rows, at most this many. Only the visible sections are laid out.
    pub fn tail(&mut self, most: usize, width: usize, base: BaseStyle) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut from = self.sections();
        while rows.len() < most && from > 0 {
            from -= 1;
            let missing = most - rows.len();
            rows.extend(self.section(from, width, base).iter().rev().take(missing).map(Cow::into_owned));
        }
        // Earlier sections are no longer visible.
        for gone in self.tail_from..from {
            self.forget_section(gone);
        }
        self.tail_from = from;
        rows.reverse();
        rows
    }

    /// All rows at this width. Finished sections are laid out once.
    pub fn body(&mut self, width: usize, base: BaseStyle) -> HighlightedRows<'_> {
        self.split_whole();
        let fits = self.all.take().filter(|all| all.width == width && all.base == base);
        let mut all =
            fits.unwrap_or(AllRows { width, base, rows: Vec::new(), starts: Vec::new(), done: 0, done_rows: 0 });
        all.rows.truncate(all.done_rows);
        all.starts.truncate(all.done);
        for section in self.done.iter_mut().skip(all.done) {
            all.push_section(section);
            // Code must stay laid out until it is highlighted.
            if !section.doc.has_code() {
                section.doc.forget_rows();
            }
        }
        (all.done, all.done_rows) = (self.done.len(), all.rows.len());
        all.push_section(&mut self.last);
        let all = self.all.insert(all);
        let sections = self.done.iter().chain([&self.last]);
        let highlights = all.starts.iter().copied().zip(sections.map(|section| section.doc.highlights())).collect();
        HighlightedRows::from_sections(&all.rows, highlights)
    }

    /// The next code to highlight in the laid-out part.
    pub fn next_job(&mut self, next: &mut HighlightId) -> Option<HighlightJob> {
        self.done.iter_mut().chain([&mut self.last]).find_map(|section| section.doc.next_job(next))
    }

    /// Applies a result; returns false if it belongs to another text.
    pub fn apply_highlight(&mut self, result: &mut HighlightResult) -> bool {
        self.done.iter_mut().chain([&mut self.last]).any(|section| section.doc.apply_highlight(result))
    }

    /// Drops the rows. They are laid out again when needed.
    pub fn forget_rows(&mut self) {
        self.all = None;
        self.done.iter_mut().chain([&mut self.last]).for_each(|section| section.doc.forget_rows());
    }

    pub fn forget_section(&mut self, section: usize) {
        self.section_mut(section).doc.forget_rows();
    }
}

/// The last character boundary at or before this byte.
fn char_floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl AllRows {
    fn push_section(&mut self, section: &mut Section) {
        self.starts.push(self.rows.len());
        let SectionRows { blank, body } = section.rows(self.width, self.base);
        self.rows.extend(blank);
        self.rows.extend_from_slice(body.rows);
    }
}

impl OpenFence {
    fn opener(&self) -> String {
        format!("{}{}\n", self.letter.to_string().repeat(self.length), self.info)
    }
}

#[cfg(test)]
#[path = "lazy_text_tests.rs"]
mod tests;
