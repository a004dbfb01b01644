//! A growing Markdown text. Finished blocks are parsed and laid out once; only the pending block is
//! parsed again, at most once per frame.

use std::ops::Range;

use aside_core::terminal_text::TerminalFilter;

use super::base_style::BaseStyle;
use super::highlight_jobs::{HighlightId, HighlightJob, HighlightResult, HighlightedRows, Highlights};
use super::layout::DocLayout;
use super::row::Row;
use super::shared_text::{SharedText, TextSource};

/// From this length on, a source that is built from sections grows in steps of this many bytes.
const EXACT_FROM: usize = 8 * 1024;
const EXACT_STEP: usize = 1024;

/// A text, its rows at some width, and the highlights of its code.
#[derive(Debug, Default)]
pub struct MarkdownView {
    source: TextSource,
    filter: TerminalFilter,
    /// `None` for most texts, which are not visible.
    layout: Option<Box<DocLayout>>,
    highlights: Highlights,
}

impl MarkdownView {
    pub fn new(text: &str) -> MarkdownView {
        let mut doc = MarkdownView::default();
        doc.push(text);
        doc
    }

    /// The same, with memory to grow in.
    pub(super) fn with_buffer(buffer: String, text: &str) -> MarkdownView {
        let mut doc = MarkdownView { source: TextSource::Own(buffer), ..MarkdownView::default() };
        doc.push(text);
        doc
    }

    /// No more text follows: keeps exactly as much memory as it needs, and returns the rest of it empty.
    pub(super) fn take_buffer(&mut self) -> String {
        let exact = TextSource::Own(self.source.as_str().to_owned());
        match std::mem::replace(&mut self.source, exact) {
            TextSource::Own(mut buffer) => {
                buffer.clear();
                buffer
            }
            TextSource::Shared(..) => String::new(),
        }
    }

    /// The text, safe to display.
    pub fn source(&self) -> &str {
        self.source.as_str()
    }

    pub fn is_blank(&self) -> bool {
        self.source().trim().is_empty()
    }

    /// Costs only as much as the new text.
    pub fn push(&mut self, text: &str) {
        let shown = self.filter.take(text);
        self.source.edit(|source| source.push_str(&shown));
    }

    /// The same for text that is already safe to display.
    pub(super) fn push_safe(&mut self, shown: &str) {
        self.source.edit(|source| {
            let needed = source.len() + shown.len();
            // A section ends soon after this, so doubling would reserve twice its size.
            if needed > source.capacity() && needed > EXACT_FROM {
                source.reserve_exact(shown.len() + EXACT_STEP);
            }
            source.push_str(shown);
        });
    }

    /// No more text follows; frees spare capacity.
    pub fn finish(&mut self) {
        if let TextSource::Own(text) = &mut self.source {
            text.shrink_to_fit();
        }
    }

    /// Refers to the same text elsewhere instead of keeping a copy.
    pub(super) fn share(&mut self, shared: &SharedText, range: Range<usize>) {
        let source = TextSource::Shared(shared.clone(), range);
        debug_assert_eq!(source.as_str(), self.source(), "only equal text is shared");
        self.source = source;
    }

    /// Drops the rows. They are laid out again when needed.
    pub fn forget_rows(&mut self) {
        self.layout = None;
    }

    pub fn has_rows(&self) -> bool {
        self.layout.is_some()
    }

    /// All rows at this width.
    pub fn rows(&mut self, width: usize, base: BaseStyle) -> &[Row] {
        self.body(width, base).rows
    }

    /// All rows at this width, with the known highlights.
    pub fn body(&mut self, width: usize, base: BaseStyle) -> HighlightedRows<'_> {
        let layout = match self.layout.take() {
            Some(layout) if layout.fits(width, base) => layout,
            Some(_) | None => Box::new(DocLayout::new(width, base)),
        };
        let layout = self.layout.insert(layout);
        layout.grow(self.source.as_str());
        HighlightedRows::new(layout.rows(), &self.highlights)
    }

    /// The next code to highlight in the laid-out part.
    pub fn next_job(&mut self, next: &mut HighlightId) -> Option<HighlightJob> {
        let layout = self.layout.as_ref()?;
        self.highlights.next_job(self.source.as_str(), layout.codes(), layout.settled_code(), next)
    }

    /// Whether the laid-out part contains code.
    pub(super) fn has_code(&self) -> bool {
        self.layout.as_ref().is_some_and(|layout| !layout.codes().is_empty())
    }

    pub(super) fn highlights(&self) -> &Highlights {
        &self.highlights
    }

    /// Applies a result; returns false if it belongs to another text.
    pub fn apply_highlight(&mut self, result: &mut HighlightResult) -> bool {
        self.highlights.apply(result)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;
    use aside_markdown::blocks::MAX_PENDING;

    const SAMPLE: &str = "# Plan\n\nFirst *this*.\n\n```rust\nfn a() {\n\n    b();\n}\n```\nthen\n\n- one\n- two\n\n  more\n\n1. x\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n~~~\n```\n~~~\n\nend";

    fn shown(doc: &mut MarkdownView, width: usize) -> Vec<String> {
        doc.rows(width, BaseStyle::TEXT).iter().map(Row::text).collect()
    }

    #[test]
    fn t8_finished_blocks_are_not_laid_out_again() {
        let settled = |doc: &MarkdownView| doc.layout.as_ref().map(|layout| layout.settled_rows());
        #[rustfmt::skip]
        let cases = [
            ("paragraphs",      "one\n\ntwo\n\nthr",                        1 + 2),
            ("items",           "- one\n- two\n- thr",                       1),
            ("inner items",     "- one\n  - two\n  - thr",                   1),
            ("code",            "```\na\nb\nc",                               2),
            ("code in an item", "- x\n  ```\n  a\n  b\n  c",                 1 + 1 + 2),
            ("code in a quote", "> ```\n> a\n> b",                           1),
            ("a table",         "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4",   3),
            ("a quote",         "> a\n>\n> b",                               1),
        ];
        for (name, text, rows) in cases {
            let mut doc = MarkdownView::new(text);
            doc.rows(40, BaseStyle::TEXT);
            assert_eq!(settled(&doc), Some(rows), "{name}");
        }
    }

    #[test]
    fn t8_code_is_shown_line_by_line_before_its_fence_closes() {
        let mut doc = MarkdownView::new("a\n```py\nx = 1\ny");
        assert_eq!(shown(&mut doc, 30), ["a", "", "  py", "  x = 1", "  y"]);
        doc.push(" = 2\n``");
        assert_eq!(shown(&mut doc, 30), ["a", "", "  py", "  x = 1", "  y = 2"]);
        doc.push("`\nb");
        assert_eq!(shown(&mut doc, 30), ["a", "", "  py", "  x = 1", "  y = 2", "", "b"]);
    }

    #[test]
    fn t8_an_endless_block_is_settled_early() {
        // Start, repeated piece, and the row each piece gives.
        #[rustfmt::skip]
        let cases = [
            ("a paragraph",       "",            "some words on a line\n",    "some words on a line"),
            ("a line",            "",            "some words on a line ",     ""),
            ("a word",            "",            "nospaces",                  ""),
            ("a line of code",    "```\n",        "nospaces",                  ""),
            ("an item's line",    "- ",          "some words on a line ",     ""),
            ("a quote",           "",            "> some words\n",            "▎ some words"),
            ("items",             "",            "- item\n",                  "• item"),
            ("code in an item",   "- x\n  ```\n", "  code\n",                "    code"),
            ("a table",           "|a|b|\n|-|-|\n", "|1|2|\n",               "1 │ 2"),
        ];
        for (name, start, piece, row) in cases {
            let mut doc = MarkdownView::new(start);
            for _ in 0..1_500 {
                doc.push(piece);
            }
            let rows = shown(&mut doc, 40);
            let settled = doc.layout.as_ref().map_or(0, |layout| layout.settled_rows());
            assert!(rows.len() - settled <= MAX_PENDING / 20, "{name}: {settled} of {}", rows.len());
            let bare = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
            let all = bare(&format!("{start}{}", piece.repeat(1_500)));
            assert_eq!(bare(&rows.concat()), all, "{name}");
            if !row.is_empty() {
                assert_eq!(rows.iter().filter(|one| *one == row).count(), 1_500, "{name}");
            }
        }
    }

    fn check(source: &str, width: usize, expect: Expect) {
        let text: String = shown(&mut MarkdownView::new(source), width).iter().map(|row| format!("|{row}\n")).collect();
        expect.assert_eq(&text);
    }

    #[test]
    fn t8_blocks_are_distinguished() {
        check(
            "# Title\nSome *soft* and **hard** words.\nSecond line.\n\n- one\n- two\n  - inner\n\n3. three\n4. four\n\n> quoted\n> more\n\n---\n\n- [x] done\n- [ ] open",
            40,
            expect![[r#"
                |Title
                |
                |Some soft and hard words.
                |Second line.
                |
                |• one
                |• two
                |  ◦ inner
                |
                |3. three
                |4. four
                |
                |▎ quoted
                |▎ more
                |
                |────────────────────────────────────────
                |
                |• [x] done
                |• [ ] open
            "#]],
        );
    }

    #[test]
    fn t8_code_keeps_its_spaces_and_its_language() {
        check(
            "Look:\n\n```rust\nfn main() {\n    let  x = 1;\n}\n```\n\n- item\n\n  ```\n  code\n  ```\n",
            30,
            expect![[r#"
                |Look:
                |
                |  rust
                |  fn main() {
                |      let  x = 1;
                |  }
                |
                |• item
                |
                |    code
            "#]],
        );
    }

    #[test]
    fn t8_links_show_where_they_go() {
        check(
            "See [the book](https://x.example/b) or <https://y.example>, ![a cat](cat.png) and [r][1].\n\n[1]: https://z.example",
            60,
            expect![[r#"
                |See the book <https://x.example/b> or https://y.example,
                |image a cat <cat.png> and [r][1].
                |
                |[1]: https://z.example
            "#]],
        );
    }

    #[test]
    fn t8_tables_fit_the_width() {
        let table = "| Name | What it does | N |\n|---|:---:|--:|\n| ab | reads a file | 1 |\n| cde | `x` | 20 |\n";
        check(
            table,
            40,
            expect![[r#"
                |Name │ What it does │  N
                |─────┼──────────────┼───
                |ab   │ reads a file │  1
                |cde  │      x       │ 20
            "#]],
        );
        check(
            table,
            20,
            expect![[r#"
                |Name │ What it  │  N
                |     │   does   │   
                |─────┼──────────┼───
                |ab   │ reads a  │  1
                |     │   file   │   
                |cde  │    x     │ 20
            "#]],
        );
        check(
            table,
            10,
            expect![[r#"
                |Name: ab
                |What it
                |does:
                |reads a
                |file
                |N: 1
                |
                |Name: cde
                |What it
                |does: x
                |N: 20
            "#]],
        );
    }

    #[test]
    fn t8_loose_lists_have_blank_rows_and_tight_ones_do_not() {
        check(
            "1. one\n\n2. two\n\n   more of two\n3. three",
            30,
            expect![[r#"
                |1. one
                |
                |2. two
                |
                |   more of two
                |3. three
            "#]],
        );
    }

    #[test]
    fn t8_blocks_nest_in_items_and_quotes() {
        check(
            "1. one\n   ```sh\n   a\n\n     b\n   ```\n1. two\n   > quoted\n   > - inner\nlazy\n\n   | a | b |\n   |---|---|\n   | c | d | e |\n-\n- \n  late\n\n> ```\n> x\n> ```\n> y\n>\n> # z\nend",
            40,
            expect![[r#"
                |1. one
                |
                |     sh
                |     a
                |     
                |       b
                |2. two
                |
                |   ▎ quoted
                |   ▎ ◦ inner
                |   ▎   lazy
                |
                |   a │ b │ 
                |   ──┼───┼──
                |   c │ d │ e
                |
                |• 
                |• late
                |
                |▎   x
                |▎
                |▎ y
                |▎
                |▎ z
                |
                |end
            "#]],
        );
    }

    #[test]
    fn t8_bars_and_markers_without_room_become_text_or_disappear() {
        for text in ["> > a\n> >\n> > b", "> > a\n> > ===\n> > b", "> > |a|b|c|\n> > |-|-|-|\n> > |1|2|3|\n> > |4|5|6|"]
        {
            for row in MarkdownView::new(text).rows(1, BaseStyle::TEXT) {
                assert!(row.width() <= 1, "{text:?}: {:?}", row.text());
            }
        }
    }

    #[test]
    fn t8_code_with_missing_indent_stays_in_its_item() {
        check(
            "- a\n  ```\nb\n c\n  ```\n- d\n\n      indented\n\n      more\n\ntext\n\n    code",
            30,
            expect![[r#"
                |• a
                |
                |    b
                |    c
                |• d
                |
                |    indented
                |    
                |    more
                |
                |text
                |
                |  code
            "#]],
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn t8_any_chunking_and_any_frames_give_the_same_rows(
            cuts in prop::collection::vec(0..SAMPLE.len(), 0..12),
            width in 1usize..60,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| SAMPLE.is_char_boundary(*at)).collect();
            cuts.sort_unstable();
            cuts.push(SAMPLE.len());
            let (mut doc, mut from) = (MarkdownView::default(), 0);
            for at in cuts {
                doc.push(SAMPLE.get(from..at).unwrap());
                doc.rows(width, BaseStyle::TEXT);
                from = at;
            }
            prop_assert_eq!(shown(&mut doc, width), shown(&mut MarkdownView::new(SAMPLE), width));
        }

        #[test]
        fn t8_any_growth_at_any_width_keeps_all_words(
            parts in prop::collection::vec("[a-z漢é]{1,5}|[ *_`#>-]{1,3}|\n|\n\n|```\n|~~~\n|  ", 0..60),
            width in 1usize..40,
        ) {
            let bare = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
            let mut doc = MarkdownView::default();
            for part in &parts {
                doc.push(part);
                doc.rows(width, BaseStyle::TEXT);
            }
            prop_assert_eq!(bare(&shown(&mut doc, width).concat()), bare(&parts.concat()));
        }

        /// No letter is lost, whatever the markup around it.
        #[test]
        fn t8_any_markdown_at_any_width_keeps_all_words(
            source in "([a-zé漢 ]{1,6}|[-*_`#>|\\[\\]()~!:\\\\]{1,3}|\n{1,2}|    |1\\. ){0,40}",
            width in 1usize..50,
        ) {
            let bare = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
            let text = shown(&mut MarkdownView::new(&source), width).concat();
            // Links add their address after the text; references move to the end.
            if !source.contains('[') && !source.contains('|') {
                prop_assert_eq!(bare(&text), bare(&source));
            }
        }
    }
}
