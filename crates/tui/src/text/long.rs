//! A text of any length, in sections of some kilobytes. Each is laid out when
//! it comes into sight and forgotten when it leaves, so a thought of a million
//! lines costs what is in sight of it.
//!
//! Where a section ends depends on the text alone: not on a width, not on the
//! pieces the text came in, and not on what comes later.

use std::borrow::Cow;

use aside_core::screen::Neutral;

use super::base::Base;
use super::doc::Doc;
use super::light::{Body, Job, Lit, Ticket};
use super::marks;
use super::row::Row;

/// A section ends at the first border between blocks behind so many bytes.
const SECTION: usize = 8 * 1024;
/// Without a border it ends at the end of a line behind so many,
const LINE: usize = 12 * 1024;
/// without that at a space behind so many,
const WORD: usize = 15 * 1024;
/// and at last wherever it is.
const MOST: usize = 16 * 1024;
/// A language has no longer name; what is longer is not said again.
const LONGEST_INFO: usize = 40;

#[derive(Debug)]
pub struct Long {
    /// A text that came as a whole and that nobody has looked at yet.
    whole: Option<String>,
    /// They will not change any more.
    done: Vec<Section>,
    /// It grows.
    last: Section,
    /// The first section whose rows the tail has asked for.
    tail_from: usize,
    neutral: Neutral,
    line: Line,
    /// An open block of code.
    fence: Option<Fence>,
    border: Border,
    /// All rows, where somebody wants them all.
    all: Option<All>,
}

#[derive(Debug)]
struct Fence {
    letter: char,
    length: usize,
    /// What the code says it is.
    info: String,
}

#[derive(Debug, Default)]
struct Section {
    doc: Doc,
    before: Before,
    /// Bytes at its start that nobody wrote: code that goes on is opened again.
    opener: usize,
}

/// What is between a section and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Before {
    #[default]
    Nothing,
    BlankRow,
}

/// The line that is coming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    New,
    /// It began at this byte of the last section.
    Begun(usize),
}

/// Whether a block may begin with the next line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Border {
    No,
    /// If it is not indented: then it belongs to an item.
    Here,
}

#[derive(Debug)]
struct All {
    width: usize,
    base: Base,
    rows: Vec<Row>,
    /// The row each section begins on.
    starts: Vec<usize>,
    /// Sections that will not change any more, and their rows.
    done: usize,
    done_rows: usize,
}

/// What is shown of a section.
#[derive(Debug)]
pub struct Shown<'a> {
    /// A blank row before it.
    pub blank: Option<Row>,
    pub body: Body<'a>,
}

impl<'a> Shown<'a> {
    pub fn of(body: Body<'a>) -> Shown<'a> {
        Shown { blank: None, body }
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

impl Default for Long {
    fn default() -> Long {
        Long {
            whole: None,
            done: Vec::new(),
            last: Section::default(),
            tail_from: 0,
            neutral: Neutral::default(),
            line: Line::New,
            fence: None,
            border: Border::No,
            all: None,
        }
    }
}

impl Long {
    pub fn new(text: &str) -> Long {
        let mut long = Long::default();
        long.whole = Some(long.neutral.take(text).into_owned());
        long
    }

    /// Without a copy, where there is nothing to take out.
    pub fn owned(text: String) -> Long {
        let mut long = Long::default();
        let other = match long.neutral.take(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(other) => Some(other),
        };
        long.whole = Some(other.unwrap_or(text));
        long
    }

    /// Cuts a text that came as a whole, now that its sections matter.
    fn cut(&mut self) {
        if let Some(whole) = self.whole.take() {
            self.push_shown(&whole);
            self.finish();
        }
    }

    /// The text as it may be shown.
    pub fn source(&self) -> Cow<'_, str> {
        match self.done.as_slice() {
            [] => Cow::Borrowed(self.whole.as_deref().unwrap_or(self.last.written())),
            _ => Cow::Owned(self.all_sections().map(Section::written).collect()),
        }
    }

    /// Its first kilobytes.
    pub fn start(&self) -> &str {
        if let Some(whole) = &self.whole {
            return whole.get(..letter_end(whole, SECTION)).unwrap_or(whole);
        }
        self.done.first().unwrap_or(&self.last).written()
    }

    pub fn len(&self) -> usize {
        self.parts().map(str::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn is_blank(&self) -> bool {
        self.parts().all(|part| part.trim().is_empty())
    }

    /// Whether it says just this.
    pub fn says(&self, text: &str) -> bool {
        let mut rest = text;
        let begins = |part: &str| match rest.strip_prefix(part) {
            Some(behind) => {
                rest = behind;
                true
            }
            None => false,
        };
        self.parts().all(begins) && rest.is_empty()
    }

    /// Costs what the new text costs.
    pub fn push(&mut self, text: &str) {
        self.cut();
        let shown = self.neutral.take(text);
        self.push_shown(&shown);
    }

    fn push_shown(&mut self, shown: &str) {
        for piece in shown.split_inclusive('\n') {
            self.push_piece(piece);
        }
    }

    /// A line, or a part of one.
    fn push_piece(&mut self, piece: &str) {
        if self.line == Line::New {
            self.cut_before(piece);
            self.line = Line::Begun(self.last.doc.source().len());
        }
        let mut piece = piece;
        while let Some((now, rest)) = self.overflow(piece) {
            self.last.doc.push(now);
            self.begin_section(Before::Nothing);
            self.line = Line::Begun(self.last.doc.source().len());
            piece = rest;
        }
        self.last.doc.push(piece);
        if piece.ends_with('\n') {
            self.end_line();
        }
    }

    /// What still goes into this section and what does not, of a line that
    /// does not end.
    fn overflow<'a>(&self, piece: &'a str) -> Option<(&'a str, &'a str)> {
        let length = self.last.written().len();
        let soft = letter_end(piece, WORD.saturating_sub(length));
        let hard = letter_end(piece, MOST.saturating_sub(length));
        let space = piece.get(soft..hard).and_then(|near| near.find(' ')).map(|space| soft + space + 1);
        let cut = space.or((hard < piece.len()).then_some(hard))?;
        piece.split_at_checked(cut)
    }

    /// Where a line begins, a section may.
    fn cut_before(&mut self, piece: &str) {
        let length = self.last.written().len();
        let is_block = self.border == Border::Here && self.fence.is_none() && !piece.starts_with(char::is_whitespace);
        if length > SECTION && is_block {
            self.begin_section(Before::BlankRow);
        } else if length > LINE {
            self.begin_section(Before::Nothing);
        }
    }

    fn begin_section(&mut self, before: Before) {
        let opener = self.fence.as_ref().map(Fence::opener).unwrap_or_default();
        // It is full: room for more is given back.
        self.last.doc.finish();
        let next = Section { doc: Doc::new(&opener), before, opener: opener.len() };
        self.done.push(std::mem::replace(&mut self.last, next));
    }

    fn end_line(&mut self) {
        let Line::Begun(from) = std::mem::replace(&mut self.line, Line::New) else { return };
        let whole = self.last.doc.source().get(from..).unwrap_or("");
        let line = whole.trim();
        self.border = Border::No;
        match (&self.fence, marks::fence(line)) {
            (Some(open), Some((letter, length, ""))) if letter == open.letter && length >= open.length => {
                self.fence = None;
                // Code of an item is not the end of the item.
                if !whole.starts_with(char::is_whitespace) {
                    self.border = Border::Here;
                }
            }
            (Some(_), _) => (),
            (None, Some((letter, length, info))) => {
                let info = if info.len() > LONGEST_INFO { "" } else { info };
                self.fence = Some(Fence { letter, length, info: info.to_owned() });
            }
            (None, None) if line.is_empty() => self.border = Border::Here,
            (None, None) => (),
        }
    }

    fn all_sections(&self) -> impl Iterator<Item = &Section> {
        self.done.iter().chain([&self.last])
    }

    /// All of the text, in however many parts it is held.
    fn parts(&self) -> impl Iterator<Item = &str> {
        self.whole.as_deref().into_iter().chain(self.all_sections().map(Section::written))
    }

    /// Nothing more is coming; room for more is given back.
    pub fn finish(&mut self) {
        self.last.doc.finish();
        self.done.shrink_to_fit();
    }

    pub fn sections(&mut self) -> usize {
        self.cut();
        self.done.len() + 1
    }

    fn section_mut(&mut self, section: usize) -> &mut Section {
        self.done.get_mut(section).unwrap_or(&mut self.last)
    }

    /// What is shown of one section.
    pub fn section(&mut self, section: usize, width: usize, base: Base) -> Shown<'_> {
        self.cut();
        self.section_mut(section).shown(width, base)
    }

    /// The last rows, at most so many. Only what is shown is laid out.
    pub fn tail(&mut self, most: usize, width: usize, base: Base) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut from = self.sections();
        while rows.len() < most && from > 0 {
            from -= 1;
            let missing = most - rows.len();
            rows.extend(self.section(from, width, base).iter().rev().take(missing).map(Cow::into_owned));
        }
        // Further up nothing is shown any more.
        for gone in self.tail_from..from {
            self.forget_section(gone);
        }
        self.tail_from = from;
        rows.reverse();
        rows
    }

    /// All rows at this width. What is done is laid out once.
    pub fn body(&mut self, width: usize, base: Base) -> Body<'_> {
        self.cut();
        let fits = self.all.take().filter(|all| all.width == width && all.base == base);
        let mut all = fits.unwrap_or(All { width, base, rows: Vec::new(), starts: Vec::new(), done: 0, done_rows: 0 });
        all.rows.truncate(all.done_rows);
        all.starts.truncate(all.done);
        for section in self.done.iter_mut().skip(all.done) {
            all.take(section);
            // Code has still to be asked for.
            if !section.doc.has_code() {
                section.doc.forget_rows();
            }
        }
        (all.done, all.done_rows) = (self.done.len(), all.rows.len());
        all.take(&mut self.last);
        let all = self.all.insert(all);
        let sections = self.done.iter().chain([&self.last]);
        let lights = all.starts.iter().copied().zip(sections.map(|section| section.doc.lights())).collect();
        Body::of_sections(&all.rows, lights)
    }

    /// Code that has no colours yet, as far as it is laid out.
    pub fn wants(&mut self, next: &mut Ticket) -> Option<Job> {
        self.done.iter_mut().chain([&mut self.last]).find_map(|section| section.doc.wants(next))
    }

    /// Takes an answer; false if it was not for this text.
    pub fn lit(&mut self, lit: &mut Lit) -> bool {
        self.done.iter_mut().chain([&mut self.last]).any(|section| section.doc.lit(lit))
    }

    /// The rows are made again when they are needed.
    pub fn forget_rows(&mut self) {
        self.all = None;
        self.done.iter_mut().chain([&mut self.last]).for_each(|section| section.doc.forget_rows());
    }

    pub fn forget_section(&mut self, section: usize) {
        self.section_mut(section).doc.forget_rows();
    }
}

/// The last end of a letter that is not behind this byte.
fn letter_end(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl All {
    fn take(&mut self, section: &mut Section) {
        self.starts.push(self.rows.len());
        let Shown { blank, body } = section.shown(self.width, self.base);
        self.rows.extend(blank);
        self.rows.extend_from_slice(body.rows);
    }
}

impl Fence {
    fn opener(&self) -> String {
        format!("{}{}\n", self.letter.to_string().repeat(self.length), self.info)
    }
}

impl Section {
    fn written(&self) -> &str {
        self.doc.source().get(self.opener..).unwrap_or("")
    }

    fn shown(&mut self, width: usize, base: Base) -> Shown<'_> {
        let is_blank = self.written().trim().is_empty();
        let blank = match self.before {
            Before::BlankRow if !is_blank => Some(Row::default().shaded(base.shade)),
            Before::BlankRow | Before::Nothing => None,
        };
        // The language was said where the code began.
        let head = match self.doc.source().get(..self.opener) {
            Some(opener) if !opener.is_empty() => Doc::new(opener).rows(width, base).len(),
            Some(_) | None => 0,
        };
        Shown { blank, body: self.doc.body(width, base).behind(head) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text_of(shown: &Shown<'_>) -> Vec<String> {
        shown.iter().map(|row| row.text()).collect()
    }

    /// The rows of all sections, one behind the other.
    fn in_sections(long: &mut Long, width: usize) -> Vec<String> {
        (0..long.sections()).flat_map(|section| text_of(&long.section(section, width, Base::TEXT))).collect()
    }

    /// Blocks with borders between them, code longer than a section included.
    fn blocks() -> String {
        let prose: String = (0..600).map(|at| format!("paragraph {at} with *some* words\n\n")).collect();
        let list: String = (0..300).map(|at| format!("{at}. item with `code`\n\n   and more\n\n")).collect();
        let code: String = (0..900).map(|at| format!("    let a{at} = {at};\n\n")).collect();
        format!("{prose}```rust\n{code}```\nbehind it\n\n{list}{prose}")
    }

    #[test]
    fn t8_sections_show_what_one_text_would() {
        let text = blocks();
        for width in [7, 40, 200] {
            let mut long = Long::new(&text);
            assert!(long.sections() > 6, "{}", long.sections());
            let mut whole = Doc::new(&text);
            let whole: Vec<String> = whole.rows(width, Base::TEXT).iter().map(Row::text).collect();
            assert_eq!(in_sections(&mut long, width), whole, "{width}");
            let all: Vec<String> = long.body(width, Base::TEXT).rows.iter().map(Row::text).collect();
            assert_eq!(all, whole, "{width}");
        }
    }

    #[test]
    fn t8_text_without_borders_is_cut_and_loses_nothing() {
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
            let mut long = Long::new(&text);
            assert!(long.sections() >= text.len() / MOST, "{name}: {}", long.sections());
            assert_eq!(long.source(), text, "{name}");
            assert!(long.says(&text) && !long.says(&format!("{text}x")) && !long.says("x"), "{name}");
            assert_eq!(bare(&in_sections(&mut long, 40).concat()), bare(&text), "{name}");
        }
    }

    #[test]
    fn t8_the_tail_lays_out_the_end_alone() {
        let mut long = Long::new(&blocks());
        let all = in_sections(&mut long, 40);
        long.forget_rows();
        let laid = |long: &Long| long.all_sections().filter(|section| section.doc.has_rows()).count();
        for most in [500, 1, 8] {
            let tail: Vec<String> = long.tail(most, 40, Base::TEXT).iter().map(Row::text).collect();
            assert_eq!(tail, all.get(all.len() - most..).unwrap_or(&[]), "{most}");
        }
        assert!(laid(&long) <= 2, "{}", laid(&long));
        assert_eq!(Long::new("one\n\ntwo").tail(8, 40, Base::TEXT).len(), 3);
    }

    #[test]
    fn t8_code_keeps_its_language_over_sections() {
        let text = format!("```rust\n{}```\n", "let a = 1;\n".repeat(4_000));
        let mut long = Long::new(&text);
        let sections = long.sections();
        assert!(sections > 2, "{sections}");
        // Where it is narrow the name of the language takes rows of its own.
        for width in [2, 40] {
            let said: Vec<String> = in_sections(&mut long, width).into_iter().filter(|row| row.contains('r')).collect();
            assert_eq!(said.len(), 1, "{width}: {said:?}");
        }
        let mut ticket = Ticket::default();
        let jobs: Vec<Job> = std::iter::from_fn(|| long.wants(&mut ticket)).collect();
        assert_eq!(jobs.len(), sections);
        assert!(jobs.iter().all(|job| job.language == "rust"));
        let highlighter = crate::syntax::Highlighter::new();
        for job in jobs {
            assert!(long.lit(&mut highlighter.work(job)));
        }
        let is_lit = |row: &Row| row.spans.iter().any(|span| matches!(span.ink, crate::text::Ink::Token(..)));
        for section in 0..sections {
            let shown = long.section(section, 40, Base::TEXT);
            assert!(shown.iter().any(|row| is_lit(&row)), "{section}");
        }
        let firsts: Vec<usize> = {
            long.body(40, Base::TEXT);
            long.all.as_ref().unwrap().starts.clone()
        };
        let all = long.body(40, Base::TEXT);
        for first in firsts {
            assert!((first..first + 3).filter_map(|index| all.row(index)).any(|row| is_lit(&row)), "{first}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// A view that stands on a row of a section stays there while text comes.
        #[test]
        fn t7_sections_are_the_same_in_whatever_pieces_the_text_comes(cuts in prop::collection::vec(0usize..200_000, 0..200)) {
            let endless = "words and 漢字 without an end ".repeat(1_000);
            let text = format!("{}{endless}\n{}\n{}", blocks(), "nospaces漢".repeat(3_000), "line\n".repeat(5_000));
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| letter_end(&text, at)).collect();
            cuts.sort_unstable();
            cuts.push(text.len());
            let (mut long, mut from) = (Long::default(), 0);
            for at in cuts {
                long.push(text.get(from..at).unwrap());
                from = at;
            }
            let mut whole = Long::new(&text);
            prop_assert!(whole.says(&text));
            prop_assert_eq!(whole.sections(), long.sections());
            let sections = |long: &Long| long.all_sections().map(|one| one.doc.source().len()).collect::<Vec<_>>();
            prop_assert_eq!(sections(&long), sections(&whole));
            prop_assert!(long.says(&text));
        }
    }
}
