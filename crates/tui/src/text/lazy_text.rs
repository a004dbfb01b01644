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

#[derive(Debug, Default)]
struct Section {
    doc: MarkdownView,
    before: SectionGap,
    /// Length of a repeated fence at the start, which is not part of the text.
    opener: usize,
}

/// What separates a section from the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SectionGap {
    #[default]
    None,
    BlankRow,
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

/// The rows of one section.
#[derive(Debug)]
pub struct SectionRows<'a> {
    /// A blank row before the section.
    pub blank: Option<Row>,
    pub body: HighlightedRows<'a>,
}

impl<'a> SectionRows<'a> {
    pub fn of(body: HighlightedRows<'a>) -> SectionRows<'a> {
        SectionRows { blank: None, body }
    }

    pub fn len(&self) -> usize {
        usize::from(self.blank.is_some()) + self.body.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A row in its colours.
    pub fn row(&self, index: usize) -> Option<Cow<'_, Row>> {
        match (&self.blank, index.checked_sub(1)) {
            (Some(blank), None) => Some(Cow::Borrowed(blank)),
            (Some(_), Some(index)) => self.body.row(index),
            (None, _) => self.body.row(index),
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Cow<'_, Row>> {
        (0..self.len()).filter_map(|index| self.row(index))
    }
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

/// Reads only up to the first other character.
fn is_white_space(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
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

impl Section {
    /// Refers to the text that begins at this byte of a shared one. Returns where it ends there.
    fn share(&mut self, shared: &SharedText, from: usize) -> usize {
        let to = from + self.own_text().len();
        // The repeated fence of a section that continues code is not in the shared text.
        if self.opener == 0 {
            self.doc.share(shared, from..to);
        }
        to
    }

    fn own_text(&self) -> &str {
        self.doc.source().get(self.opener..).unwrap_or("")
    }

    fn rows(&mut self, width: usize, base: BaseStyle) -> SectionRows<'_> {
        let blank = match self.before {
            SectionGap::BlankRow if !is_white_space(self.own_text()) => {
                Some(Row::default().with_background(base.background))
            }
            SectionGap::BlankRow | SectionGap::None => None,
        };
        // The language was already shown where the code began.
        let head = match self.doc.source().get(..self.opener) {
            Some(opener) if !opener.is_empty() => MarkdownView::new(opener).rows(width, base).len(),
            Some(_) | None => 0,
        };
        SectionRows { blank, body: self.doc.body(width, base).skip(head) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text_of(shown: &SectionRows<'_>) -> Vec<String> {
        shown.iter().map(|row| row.text()).collect()
    }

    /// The rows of all sections in sequence.
    fn in_sections(long: &mut LazyText, width: usize) -> Vec<String> {
        (0..long.sections()).flat_map(|section| text_of(&long.section(section, width, BaseStyle::TEXT))).collect()
    }

    /// Blocks with borders between them, and code longer than a section.
    fn blocks() -> String {
        let prose: String = (0..600).map(|at| format!("paragraph {at} with *some* words\n\n")).collect();
        let list: String = (0..300).map(|at| format!("{at}. item with `code`\n\n   and more\n\n")).collect();
        let code: String = (0..900).map(|at| format!("    let a{at} = {at};\n\n")).collect();
        format!("{prose}```rust\n{code}```\nbehind it\n\n{list}{prose}")
    }

    #[test]
    fn t8_sections_show_the_same_rows_as_one_text() {
        let text = blocks();
        for width in [7, 40, 200] {
            let mut long = LazyText::new(&text);
            assert!(long.sections() > 6, "{}", long.sections());
            let mut whole = MarkdownView::new(&text);
            let whole: Vec<String> = whole.rows(width, BaseStyle::TEXT).iter().map(Row::text).collect();
            assert_eq!(in_sections(&mut long, width), whole, "{width}");
            let all: Vec<String> = long.body(width, BaseStyle::TEXT).rows.iter().map(Row::text).collect();
            assert_eq!(all, whole, "{width}");
        }
    }

    #[test]
    fn t8_text_without_block_borders_is_split_without_loss() {
        #[rustfmt::skip]
        let cases = [
            ("lines",          "",            "some words on a line\n"),
            ("one line",       "",            "some words on a line "),
            ("one word",       "",            "nospaces漢"),
            ("code",           "```rust\n",   "let a = 1;\n"),
            ("a line of code", "```\n",       "let a = 1; "),
            ("code of an item", "- x\n  ~~~\n", "  let a = 1;\n"),
        ];
        let bare = |text: &str| text.chars().filter(|one| one.is_alphanumeric()).collect::<String>();
        for (name, start, piece) in cases {
            let text = format!("{start}{}", piece.repeat(5_000));
            let mut long = LazyText::new(&text);
            assert!(long.sections() >= text.len() / HARD_LIMIT, "{name}: {}", long.sections());
            assert_eq!(long.source(), text, "{name}");
            assert!(long.equals(&text) && !long.equals(&format!("{text}x")) && !long.equals("x"), "{name}");
            assert_eq!(bare(&in_sections(&mut long, 40).concat()), bare(&text), "{name}");
        }
    }

    #[test]
    fn finished_sections_keep_their_text_in_few_buffers() {
        let (mut long, line) = (LazyText::default(), "some words on a line of a long text\n");
        (0..40_000).for_each(|_| long.push(line));
        let ends_where = |section: &Section| section.doc.source().as_bytes().as_ptr_range().end;
        let starts_where = |section: &Section| section.doc.source().as_bytes().as_ptr_range().start;
        let is_new_buffer = |pair: &&[Section]| ends_where(&pair[0]) != starts_where(&pair[1]);
        let n_buffers = 1 + long.done.windows(2).filter(is_new_buffer).count();
        assert!(long.done.len() > 80 && n_buffers < 30, "{n_buffers} buffers of {} sections", long.done.len());
        assert_eq!(long.source(), line.repeat(40_000));
    }

    #[test]
    fn t8_whether_a_text_is_blank_follows_from_its_pieces() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str], bool); 6] = [
            ("nothing",            &[],                   true),
            ("lines",              &["\n", "\n\n", "  "], true),
            ("spaces of Unicode",  &["\u{2003}\n", "\t"], true),
            ("text at the start",  &["a", "\n", "\n"],    false),
            ("text at the end",    &["\n", "\n", "a"],    false),
            ("only control codes", &["\u{1b}[1m", "\n"],  true),
        ];
        for (name, pieces, expected) in cases {
            let mut long = LazyText::default();
            pieces.iter().for_each(|piece| long.push(piece));
            assert_eq!(long.is_blank(), expected, "{name}");
            let mut whole = LazyText::new(&pieces.concat());
            assert_eq!(whole.is_blank(), expected, "{name}: complete");
            whole.sections();
            assert_eq!(whole.is_blank(), expected, "{name}: split");
            whole.push("a");
            assert!(!whole.is_blank(), "{name}: more text");
        }
        // If this read the text each time, it would not end within an hour.
        let long = LazyText::new(&"\n".repeat(4_000_000));
        assert!((0..1_000_000).all(|_| std::hint::black_box(&long).is_blank()));
    }

    #[test]
    fn t8_the_tail_lays_out_only_the_end() {
        let mut long = LazyText::new(&blocks());
        let all = in_sections(&mut long, 40);
        long.forget_rows();
        let laid = |long: &LazyText| long.all_sections().filter(|section| section.doc.has_rows()).count();
        for most in [500, 1, 8] {
            let tail: Vec<String> = long.tail(most, 40, BaseStyle::TEXT).iter().map(Row::text).collect();
            assert_eq!(tail, all.get(all.len() - most..).unwrap_or(&[]), "{most}");
        }
        assert!(laid(&long) <= 2, "{}", laid(&long));
        assert_eq!(LazyText::new("one\n\ntwo").tail(8, 40, BaseStyle::TEXT).len(), 3);
    }

    #[test]
    fn t8_code_keeps_its_language_across_sections() {
        let text = format!("```rust\n{}```\n", "let a = 1;\n".repeat(4_000));
        let mut long = LazyText::new(&text);
        let sections = long.sections();
        assert!(sections > 2, "{sections}");
        // On a narrow screen the language takes several rows.
        for width in [2, 40] {
            let said: Vec<String> = in_sections(&mut long, width).into_iter().filter(|row| row.contains('r')).collect();
            assert_eq!(said.len(), 1, "{width}: {said:?}");
        }
        let mut id = HighlightId::default();
        let jobs: Vec<HighlightJob> = std::iter::from_fn(|| long.next_job(&mut id)).collect();
        assert_eq!(jobs.len(), sections);
        assert!(jobs.iter().all(|job| job.language == "rust"));
        let highlighter = crate::highlighter::Highlighter::new();
        for job in jobs {
            assert!(long.apply_highlight(&mut highlighter.highlight(job)));
        }
        let is_highlighted =
            |row: &Row| row.spans.iter().any(|span| matches!(span.role, crate::text::TextRole::Token(..)));
        for section in 0..sections {
            let shown = long.section(section, 40, BaseStyle::TEXT);
            assert!(shown.iter().any(|row| is_highlighted(&row)), "{section}");
        }
        let firsts: Vec<usize> = {
            long.body(40, BaseStyle::TEXT);
            long.all.as_ref().unwrap().starts.clone()
        };
        let all = long.body(40, BaseStyle::TEXT);
        for first in firsts {
            assert!((first..first + 3).filter_map(|index| all.row(index)).any(|row| is_highlighted(&row)), "{first}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// A view at a row of a section stays there while text arrives.
        #[test]
        fn t7_sections_do_not_depend_on_chunking(cuts in prop::collection::vec(0usize..200_000, 0..200)) {
            let endless = "words and 漢字 without an end ".repeat(1_000);
            let text = format!("{}{endless}\n{}\n{}", blocks(), "nospaces漢".repeat(3_000), "line\n".repeat(5_000));
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| char_floor(&text, at)).collect();
            cuts.sort_unstable();
            cuts.push(text.len());
            let (mut long, mut from) = (LazyText::default(), 0);
            for at in cuts {
                long.push(text.get(from..at).unwrap());
                from = at;
            }
            let mut whole = LazyText::new(&text);
            prop_assert!(whole.equals(&text));
            prop_assert_eq!(whole.sections(), long.sections());
            let sections = |long: &LazyText| long.all_sections().map(|one| one.doc.source().len()).collect::<Vec<_>>();
            prop_assert_eq!(sections(&long), sections(&whole));
            prop_assert!(long.equals(&text));
        }
    }
}
