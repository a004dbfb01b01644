//! Markdown that grows. Finished blocks are read and laid out once; only the
//! pending one is read again, and that at most once a frame.

use std::ops::Range;

use aside_core::screen::Neutral;

use super::markdown::{self, Base};
use super::row::Row;

/// A pending block longer than this is settled at a line end: reading it
/// again and again would cost more than a broken emphasis is worth.
const MOST_PENDING: usize = 16 * 1024;

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
    Code { info: String, lines: Vec<Range<usize>> },
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
    rows: Vec<Row>,
    /// Rows of what will not change any more.
    settled: usize,
    /// How many pieces are in them, and how many lines of the last if it is code.
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
    }

    /// Nothing more is coming; room for more is given back.
    pub fn finish(&mut self) {
        self.source.shrink_to_fit();
    }

    /// The rows are made again when they are needed.
    pub fn forget_rows(&mut self) {
        self.laid = None;
    }

    pub fn has_rows(&self) -> bool {
        self.laid.is_some()
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
                if let Some(Piece::Code { lines, .. }) = self.pieces.last_mut() {
                    lines.push(self.scanned..cut);
                }
                (self.scanned, self.pending) = (cut, cut);
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
                    self.pending = range.end + 1;
                }
                self.after_blank = false;
            }
            (Some(Fence { kind: FenceKind::OwnPiece, .. }), _) => {
                if let Some(Piece::Code { lines, .. }) = self.pieces.last_mut() {
                    lines.push(range.clone());
                }
                self.pending = range.end + 1;
            }
            (Some(Fence { kind: FenceKind::InProse, .. }), _) => (),
            (None, Some((letter, length, info))) => {
                // Indented, or behind other text of a list: part of that.
                let own = indent == 0;
                let info = info.to_owned();
                let kind = if own { FenceKind::OwnPiece } else { FenceKind::InProse };
                self.fence = Some(Fence { letter, length, kind });
                if own {
                    self.settle(range.start, false);
                    self.pieces.push(Piece::Code { info, lines: Vec::new() });
                    self.pending = range.end + 1;
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
        self.pending = to;
    }

    /// All rows at this width.
    pub fn rows(&mut self, width: usize, base: Base) -> &[Row] {
        // Text that nobody looks at is not even read.
        self.scan();
        let fits = self.laid.as_ref().is_some_and(|laid| laid.width == width && laid.base == base);
        let mut laid = match self.laid.take() {
            Some(laid) if fits => laid,
            _ => Laid { width, base, rows: Vec::new(), settled: 0, pieces: 0, lines: 0, upto: usize::MAX },
        };
        if laid.upto != self.source.len() {
            self.lay(&mut laid);
        }
        &self.laid.insert(laid).rows
    }

    fn lay(&self, laid: &mut Laid) {
        laid.rows.truncate(laid.settled);
        let from = laid.pieces.saturating_sub(1);
        for (index, piece) in self.pieces.iter().enumerate().skip(from) {
            let is_new = index >= laid.pieces;
            match piece {
                Piece::Prose { range, .. } if is_new => {
                    self.gap(index, laid);
                    let text = self.source.get(range.clone()).unwrap_or("");
                    markdown::render(text, laid.base, laid.width, &mut laid.rows);
                    laid.lines = 0;
                }
                Piece::Prose { .. } => (),
                Piece::Code { info, lines } => {
                    if is_new {
                        self.gap(index, laid);
                        markdown::code_head(info, laid.base, laid.width, &mut laid.rows);
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
        laid.pieces = self.pieces.len();
        laid.settled = laid.rows.len();
        self.lay_pending(laid);
        laid.upto = self.source.len();
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
pub(super) fn fence_of(line: &str) -> Option<(char, usize, &str)> {
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
        doc.scan();
        assert!(doc.source.len() - doc.pending <= MOST_PENDING + 30);
        let rows = shown(&mut doc, 40);
        assert_eq!(rows.len(), 5_000);
        assert!(rows.iter().all(|row| row == "some words on a line"));
        let mut doc = Doc::default();
        for _ in 0..5_000 {
            doc.push("some words on a line ");
            doc.scan();
        }
        assert!(doc.source.len() - doc.pending <= MOST_PENDING + 30);
        for start in ["", "```\n"] {
            let mut doc = Doc::new(start);
            for _ in 0..10_000 {
                doc.push("nospaces");
                doc.scan();
            }
            assert!(doc.source.len() - doc.pending <= MOST_PENDING + 30);
            assert_eq!(shown(&mut doc, 40).concat().replace(' ', ""), "nospaces".repeat(10_000));
        }
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
