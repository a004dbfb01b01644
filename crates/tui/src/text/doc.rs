//! Markdown that grows. Finished blocks are read and laid out once; only the
//! pending one is read again, and that at most once a frame.

use std::collections::BTreeMap;
use std::ops::Range;

use aside_core::screen::Neutral;

use super::markdown::{self, Base};
use super::row::Row;

/// A pending block longer than this is settled at a line end: reading it
/// again and again would cost more than a broken emphasis is worth.
const MOST_PENDING: usize = 16 * 1024;
/// A section ends at the first border behind so many bytes. It is what is laid
/// out at once, so that a thought of a million lines costs what is in sight.
const SECTION: usize = 8 * 1024;
/// Lines of code in one piece; the next goes on where it ends.
const MOST_LINES: usize = 200;

/// Text with its borders between blocks, and the rows it made at some width.
#[derive(Debug, Default)]
pub struct Doc {
    source: String,
    neutral: Neutral,
    pieces: Vec<Piece>,
    /// Where the pending block begins.
    pending: usize,
    /// Up to here the lines are known.
    scanned: usize,
    /// Up to here there is no line end that is not known.
    searched: usize,
    fence: Option<Fence>,
    after_blank: bool,
    /// The first piece of each section but the first.
    cuts: Vec<usize>,
    /// Where the last section begins.
    cut_at: usize,
    /// The rows of sections that were asked for.
    sections: BTreeMap<usize, Laid>,
    /// All rows, where somebody wants them all.
    laid: Option<Laid>,
}

#[derive(Debug, Clone)]
enum Piece {
    Prose {
        range: Range<usize>,
        /// The next piece goes on from it, so no blank row is between them.
        glued: bool,
    },
    /// A block of code; it grows line by line until its fence closes.
    Code {
        info: String,
        lines: Vec<Range<usize>>,
        /// It goes on from the code before it, so it has no head of its own.
        glued: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    letter: char,
    length: usize,
    /// Inside a list it stays with its item.
    kind: FenceKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FenceKind {
    OwnPiece,
    InProse,
}

#[derive(Debug)]
struct Laid {
    width: usize,
    base: Base,
    /// The pieces it is of; without an end, the pending text too.
    of: (usize, Option<usize>),
    rows: Vec<Row>,
    /// Rows of what will not change any more.
    settled: usize,
    /// The piece behind the last one in them, and how many lines of the last if it is code.
    pieces: usize,
    lines: usize,
    /// How much text the pending rows stand for.
    upto: usize,
}

impl Doc {
    pub fn new(text: &str) -> Doc {
        let mut doc = Doc::default();
        doc.push(text);
        doc
    }

    /// The text as it may be shown.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn is_blank(&self) -> bool {
        self.source.trim().is_empty()
    }

    /// Costs what the new text costs.
    pub fn push(&mut self, text: &str) {
        let shown = self.neutral.take(text);
        self.source.push_str(&shown);
        self.scan();
    }

    /// Nothing more is coming; room for more is given back.
    pub fn finish(&mut self) {
        self.source.shrink_to_fit();
    }

    /// The rows are made again when they are needed.
    pub fn forget_rows(&mut self) {
        self.laid = None;
        self.sections.clear();
    }

    pub fn forget_section(&mut self, section: usize) {
        self.sections.remove(&section);
    }

    /// How many parts it is laid out in. Where they end does not depend on a
    /// width, and text that comes later moves none of them.
    pub fn sections(&self) -> usize {
        self.cuts.len() + 1
    }

    fn scan(&mut self) {
        while let Some(length) = self.source.get(self.searched..).and_then(|rest| rest.find('\n')) {
            let from = self.scanned;
            let end = self.searched + length;
            (self.scanned, self.searched) = (end + 1, end + 1);
            self.scan_line(from..end);
        }
        self.searched = self.source.len();
        self.settle_long_line();
    }

    /// A line that never ends is settled at a word, or anywhere if it has none.
    fn settle_long_line(&mut self) {
        let Some(line) = self.source.get(self.scanned..).filter(|line| line.len() > MOST_PENDING) else { return };
        let cut = self.scanned + line.rfind(' ').map_or(line.len(), |word| word + 1);
        match self.fence {
            None => {
                self.scanned = cut;
                self.settle(cut, true);
            }
            Some(Fence { kind: FenceKind::OwnPiece, .. }) => {
                self.push_code(self.scanned..cut);
                self.scanned = cut;
                self.begin_pending(cut);
            }
            // It belongs to its item, however long it is.
            Some(Fence { kind: FenceKind::InProse, .. }) => (),
        }
    }

    fn scan_line(&mut self, range: Range<usize>) {
        let Some(line) = self.source.get(range.clone()) else { return };
        let indent = line.len() - line.trim_start().len();
        let bare = line.trim();
        let mark = fence_of(bare);
        match (self.fence, mark) {
            (Some(open), Some((letter, length, ""))) if letter == open.letter && length >= open.length => {
                self.fence = None;
                if open.kind == FenceKind::OwnPiece {
                    self.begin_pending(range.end + 1);
                }
                self.after_blank = false;
            }
            (Some(Fence { kind: FenceKind::OwnPiece, .. }), _) => {
                self.push_code(range.clone());
                self.begin_pending(range.end + 1);
            }
            (Some(Fence { kind: FenceKind::InProse, .. }), _) => (),
            (None, Some((letter, length, info))) => {
                // Indented, or behind other text of a list: part of that.
                let own = indent == 0;
                let info = info.to_owned();
                let kind = if own { FenceKind::OwnPiece } else { FenceKind::InProse };
                if own {
                    self.settle(range.start, false);
                }
                self.fence = Some(Fence { letter, length, kind });
                if own {
                    self.pieces.push(Piece::Code { info, lines: Vec::new(), glued: false });
                    self.begin_pending(range.end + 1);
                }
                self.after_blank = false;
            }
            (None, None) if bare.is_empty() => self.after_blank = true,
            (None, None) => {
                if self.after_blank && indent < 2 {
                    self.settle(range.start, false);
                }
                self.after_blank = false;
                if range.end - self.pending > MOST_PENDING {
                    self.settle(range.end + 1, true);
                }
            }
        }
    }

    /// What came before `to` will not change any more.
    fn settle(&mut self, to: usize, glued: bool) {
        let range = self.pending..to;
        if self.source.get(range.clone()).is_some_and(|text| !text.trim().is_empty()) {
            self.pieces.push(Piece::Prose { range, glued });
        }
        self.begin_pending(to);
    }

    fn push_code(&mut self, line: Range<usize>) {
        if let Some(Piece::Code { lines, .. }) = self.pieces.last_mut() {
            lines.push(line);
        }
    }

    /// What comes from here on is pending. Code that is open goes on in the
    /// piece it is in, other text is a new one: there a section may begin.
    fn begin_pending(&mut self, at: usize) {
        self.pending = at;
        let is_open = matches!(self.fence, Some(Fence { kind: FenceKind::OwnPiece, .. }));
        let open = match self.pieces.last() {
            Some(Piece::Code { info, lines, .. }) if is_open => Some((info, lines.len())),
            Some(Piece::Code { .. } | Piece::Prose { .. }) | None => None,
        };
        let next = match open {
            None => None,
            Some((info, MOST_LINES..)) => Some(Piece::Code { info: info.clone(), lines: Vec::new(), glued: true }),
            Some(_) => return,
        };
        if at - self.cut_at > SECTION {
            self.cuts.push(self.pieces.len());
            self.cut_at = at;
        }
        self.pieces.extend(next);
    }

    /// All rows at this width.
    pub fn rows(&mut self, width: usize, base: Base) -> &[Row] {
        let before = self.laid.take();
        let laid = self.lay(before, (0, None), width, base);
        &self.laid.insert(laid).rows
    }

    /// The rows of one section.
    pub fn section(&mut self, section: usize, width: usize, base: Base) -> &[Row] {
        let from = section.checked_sub(1).and_then(|before| self.cuts.get(before)).copied().unwrap_or(0);
        let of = (from, self.cuts.get(section).copied());
        let before = self.sections.remove(&section);
        let laid = self.lay(before, of, width, base);
        &self.sections.entry(section).insert_entry(laid).into_mut().rows
    }

    /// The last rows, about so many: what is laid out does not grow.
    pub fn tail(&mut self, most: usize, width: usize, base: Base) -> Vec<Row> {
        let last = self.sections() - 1;
        let mut rows = Vec::new();
        for section in (0..=last).rev() {
            let missing = most - rows.len();
            let part = self.section(section, width, base);
            let part = part.get(part.len().saturating_sub(missing)..).unwrap_or(part);
            rows.splice(0..0, part.iter().cloned());
            if rows.len() >= most {
                // Further up nothing is shown any more.
                self.sections.retain(|laid, _| *laid >= section);
                break;
            }
        }
        rows
    }

    fn lay(&self, before: Option<Laid>, of: (usize, Option<usize>), width: usize, base: Base) -> Laid {
        let fits = before.filter(|laid| laid.width == width && laid.base == base && laid.of == of);
        let new = || Laid { width, base, of, rows: Vec::new(), settled: 0, pieces: of.0, lines: 0, upto: usize::MAX };
        let mut laid = fits.unwrap_or_else(new);
        let upto = if of.1.is_some() { 0 } else { self.source.len() };
        if laid.upto != upto {
            self.lay_pieces(&mut laid);
            laid.upto = upto;
        }
        laid
    }

    fn lay_pieces(&self, laid: &mut Laid) {
        laid.rows.truncate(laid.settled);
        let end = laid.of.1.unwrap_or(self.pieces.len());
        let from = laid.pieces.saturating_sub(1).max(laid.of.0);
        for (index, piece) in self.pieces.iter().enumerate().take(end).skip(from) {
            let is_new = index >= laid.pieces;
            match piece {
                Piece::Prose { range, .. } if is_new => {
                    self.gap(index, laid);
                    let text = self.source.get(range.clone()).unwrap_or("");
                    markdown::render(text, laid.base, laid.width, &mut laid.rows);
                    laid.lines = 0;
                }
                Piece::Prose { .. } => (),
                Piece::Code { info, lines, glued } => {
                    if is_new && !glued {
                        self.gap(index, laid);
                        markdown::code_head(info, laid.base, laid.width, &mut laid.rows);
                    }
                    if is_new {
                        laid.lines = 0;
                    }
                    for line in lines.iter().skip(laid.lines) {
                        let line = self.source.get(line.clone()).unwrap_or("");
                        markdown::code_line(line, laid.base, laid.width, &mut laid.rows);
                    }
                    laid.lines = lines.len();
                }
            }
        }
        laid.pieces = end;
        laid.settled = laid.rows.len();
        if laid.of.1.is_none() {
            self.lay_pending(laid);
        }
    }

    fn lay_pending(&self, laid: &mut Laid) {
        let text = self.source.get(self.pending..).unwrap_or("");
        match self.fence {
            Some(Fence { kind: FenceKind::OwnPiece, letter, .. }) => {
                // Half of the closing fence is not shown as code for a moment.
                if !text.is_empty() && !text.trim().chars().all(|one| one == letter) {
                    markdown::code_line(text, laid.base, laid.width, &mut laid.rows);
                }
            }
            Some(Fence { kind: FenceKind::InProse, .. }) | None => {
                if !text.trim().is_empty() {
                    self.gap(self.pieces.len(), laid);
                    markdown::render(text, laid.base, laid.width, &mut laid.rows);
                }
            }
        }
    }

    /// The blank row before a piece.
    fn gap(&self, index: usize, laid: &mut Laid) {
        let before = index.checked_sub(1).and_then(|before| self.pieces.get(before));
        match before {
            None | Some(Piece::Prose { glued: true, .. }) => (),
            Some(Piece::Prose { glued: false, .. } | Piece::Code { .. }) => {
                laid.rows.push(Row::default().shaded(laid.base.shade));
            }
        }
    }
}

/// The letter, the length and the rest of a line that may open or close code.
fn fence_of(line: &str) -> Option<(char, usize, &str)> {
    let letter = line.chars().next().filter(|letter| matches!(letter, '`' | '~'))?;
    let length = line.chars().take_while(|one| *one == letter).count();
    let info = line.trim_start_matches(letter).trim();
    // With a backtick behind it, it is code inside a line.
    (length >= 3 && !(letter == '`' && info.contains('`'))).then_some((letter, length, info))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAMPLE: &str = "# Plan\n\nFirst *this*.\n\n```rust\nfn a() {\n\n    b();\n}\n```\nthen\n\n- one\n- two\n\n  more\n\n1. x\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n~~~\n```\n~~~\n\nend";

    fn shown(doc: &mut Doc, width: usize) -> Vec<String> {
        doc.rows(width, Base::TEXT).iter().map(Row::text).collect()
    }

    #[test]
    fn t8_finished_blocks_are_not_laid_out_again() {
        let mut doc = Doc::new("one\n\ntwo\n\nthr");
        doc.rows(20, Base::TEXT);
        let settled = |doc: &Doc| doc.laid.as_ref().map(|laid| (laid.pieces, laid.settled));
        assert_eq!(settled(&doc), Some((1, 1)));
        doc.push("ee\n\nfour");
        doc.rows(20, Base::TEXT);
        assert_eq!(settled(&doc), Some((2, 3)));
        assert_eq!(shown(&mut doc, 20), ["one", "", "two", "", "three", "", "four"]);
    }

    #[test]
    fn t8_code_is_shown_line_by_line_before_its_fence_closes() {
        let mut doc = Doc::new("a\n```py\nx = 1\ny");
        assert_eq!(shown(&mut doc, 30), ["a", "", "  py", "  x = 1", "  y"]);
        doc.push(" = 2\n``");
        assert_eq!(shown(&mut doc, 30), ["a", "", "  py", "  x = 1", "  y = 2"]);
        doc.push("`\nb");
        assert_eq!(shown(&mut doc, 30), ["a", "", "  py", "  x = 1", "  y = 2", "", "b"]);
    }

    #[test]
    fn t8_a_block_that_never_ends_is_settled_on_the_way() {
        let mut doc = Doc::default();
        for _ in 0..5_000 {
            doc.push("some words on a line\n");
        }
        assert!(doc.source.len() - doc.pending <= MOST_PENDING + 30);
        let rows = shown(&mut doc, 40);
        assert_eq!(rows.len(), 5_000);
        assert!(rows.iter().all(|row| row == "some words on a line"));
        let mut doc = Doc::default();
        for _ in 0..5_000 {
            doc.push("some words on a line ");
        }
        assert!(doc.source.len() - doc.pending <= MOST_PENDING + 30);
        for start in ["", "```\n"] {
            let mut doc = Doc::new(start);
            for _ in 0..10_000 {
                doc.push("nospaces");
            }
            assert!(doc.source.len() - doc.pending <= MOST_PENDING + 30);
            assert_eq!(shown(&mut doc, 40).concat().replace(' ', ""), "nospaces".repeat(10_000));
        }
    }

    /// The rows of all sections, one behind the other.
    fn in_sections(doc: &mut Doc, width: usize) -> Vec<String> {
        let count = doc.sections();
        let rows = |section| doc.section(section, width, Base::TEXT).iter().map(Row::text).collect::<Vec<_>>();
        (0..count).flat_map(rows).collect()
    }

    /// Prose with and without blank lines, and code that is longer than a piece.
    fn long_text() -> String {
        let prose: String = (0..600).map(|at| format!("paragraph {at} with *some* words\n\n")).collect();
        let lines: String = (0..900).map(|at| format!("line {at} without a blank one\n")).collect();
        let code: String = (0..900).map(|at| format!("    let a{at} = {at};\n")).collect();
        format!("{prose}{lines}\n```rust\n{code}```\n- {prose}")
    }

    #[test]
    fn t8_sections_are_all_rows_and_no_others() {
        let text = long_text();
        for width in [7, 40, 200] {
            let mut doc = Doc::new(&text);
            assert!(doc.sections() > 8, "{}", doc.sections());
            assert_eq!(in_sections(&mut doc, width), shown(&mut doc, width), "{width}");
        }
    }

    #[test]
    fn t7_a_section_that_is_done_never_changes() {
        let (text, mut doc) = (long_text(), Doc::default());
        let mut before: Vec<Vec<String>> = Vec::new();
        for piece in text.split_inclusive(' ') {
            doc.push(piece);
            if doc.sections() == before.len() + 1 {
                continue;
            }
            let mut rows = |section| doc.section(section, 40, Base::TEXT).iter().map(Row::text).collect::<Vec<_>>();
            let done: Vec<Vec<String>> = (0..=before.len()).map(&mut rows).collect();
            assert_eq!(done.get(..before.len()), Some(before.as_slice()));
            before = done;
        }
        assert!(before.len() > 6, "{}", before.len());
    }

    #[test]
    fn t8_the_tail_lays_out_the_end_alone() {
        let mut doc = Doc::new(&long_text());
        let all = shown(&mut doc, 40);
        doc.forget_rows();
        for most in [1, 8, 500] {
            let tail: Vec<String> = doc.tail(most, 40, Base::TEXT).iter().map(Row::text).collect();
            assert_eq!(tail, all.get(all.len() - most..).unwrap_or(&[]), "{most}");
        }
        doc.tail(8, 40, Base::TEXT);
        assert!(doc.sections.len() <= 2, "{:?}", doc.sections.keys());
        let mut short = Doc::new("one\n\ntwo");
        assert_eq!(short.tail(8, 40, Base::TEXT).len(), 3);
    }

    proptest! {
        #[test]
        fn t8_any_chunking_and_any_frames_give_the_same_rows(
            cuts in prop::collection::vec(0..SAMPLE.len(), 0..12),
            width in 1usize..60,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| SAMPLE.is_char_boundary(*at)).collect();
            cuts.sort_unstable();
            cuts.push(SAMPLE.len());
            let (mut doc, mut from) = (Doc::default(), 0);
            for at in cuts {
                doc.push(SAMPLE.get(from..at).unwrap());
                doc.rows(width, Base::TEXT);
                from = at;
            }
            prop_assert_eq!(shown(&mut doc, width), shown(&mut Doc::new(SAMPLE), width));
        }

        #[test]
        fn t8_any_growth_at_any_width_keeps_its_words(
            parts in prop::collection::vec("[a-z漢é]{1,5}|[ *_`#>-]{1,3}|\n|\n\n|```\n|~~~\n|  ", 0..60),
            width in 1usize..40,
        ) {
            let bare = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
            let mut doc = Doc::default();
            for part in &parts {
                doc.push(part);
                doc.rows(width, Base::TEXT);
            }
            prop_assert_eq!(bare(&shown(&mut doc, width).concat()), bare(&parts.concat()));
        }
    }
}
