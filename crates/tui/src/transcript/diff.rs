//! Lays out a unified diff: line numbers, signs, and code in the colours of its language.

use std::ops::Range;

use crate::text::code::mark_code_rows;
use crate::text::highlight_jobs::CodeBlock;
use crate::text::{Break, CodePosition, FontStyle, Margin, Row, RowBackground, Saturation, Span, TextRole, wrap};
use aside_front::diff_lines::{DiffLine, DiffScanner};

/// Below this width line numbers are left out.
const ROOM_FOR_NUMBERS: usize = 30;
/// Without line numbers a wrapped line needs a deeper indent to be recognised.
const UNNUMBERED_INDENT: usize = 3;

/// The side of a change that a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffSide {
    Old,
    New,
    Both,
}

#[derive(Debug, Default)]
pub(super) struct DiffRows {
    width: usize,
    language: String,
    diff: DiffScanner,
    /// The width of this hunk's line numbers.
    digits: usize,
    rows: Vec<Row>,
    codes: Vec<CodeBlock>,
}

/// The first `n_hidden` lines are read, but take no row.
pub(super) fn lay_out<'a>(
    source: &str,
    lines: impl Iterator<Item = (usize, &'a str)>,
    width: usize,
    n_hidden: usize,
) -> (Vec<Row>, Vec<CodeBlock>) {
    let mut diff = DiffRows { width, ..DiffRows::default() };
    for (index, (at, line)) in lines.enumerate() {
        diff.line(source, at, line);
        if index < n_hidden {
            diff.rows.clear();
        }
    }
    (diff.rows, diff.codes)
}

/// A line of a change that has no line numbers yet.
pub(super) fn added_line(line: &str, width: usize, rows: &mut Vec<Row>) {
    unnumbered_line(line, DiffSide::New, width, rows);
}

pub(super) fn removed_line(line: &str, width: usize, rows: &mut Vec<Row>) {
    unnumbered_line(line, DiffSide::Old, width, rows);
}

fn unnumbered_line(line: &str, side: DiffSide, width: usize, rows: &mut Vec<Row>) {
    let (sign, role, background) = side.style();
    let first = vec![Span::new(role, sign).with_font(FontStyle::BOLD)];
    let margin = Margin { first, rest: vec![Span::new(role, " ".repeat(UNNUMBERED_INDENT))] };
    wrap(&[Span::new(TextRole::Plain, line)], width, Break::Anywhere, &margin, background, rows);
}

impl DiffSide {
    fn style(self) -> (&'static str, TextRole, RowBackground) {
        match self {
            DiffSide::Old => ("-", TextRole::Removed, RowBackground::Removed),
            DiffSide::New => ("+", TextRole::Added, RowBackground::Added),
            DiffSide::Both => (" ", TextRole::Muted, RowBackground::None),
        }
    }
}

impl DiffRows {
    fn line(&mut self, source: &str, at: usize, line: &str) {
        let range = (at + 1).min(at + line.len())..at + line.len();
        match self.diff.line(line) {
            DiffLine::Added(Some(number)) => self.code(source, range, DiffSide::New, number),
            DiffLine::Removed(Some(number)) => self.code(source, range, DiffSide::Old, number),
            DiffLine::Unchanged(number) => self.code(source, range, DiffSide::Both, number),
            DiffLine::HunkHeader => {
                self.digits = self.diff.digits();
                let side = || CodeBlock { language: self.language.clone(), lines: Vec::new() };
                self.codes.extend([side(), side()]);
                self.plain_line(line, TextRole::Accent);
            }
            DiffLine::Added(None) => self.plain_line(line, TextRole::Added),
            DiffLine::Removed(None) => self.plain_line(line, TextRole::Removed),
            DiffLine::Other => {
                if let Some(path) = line.strip_prefix("--- ").or(line.strip_prefix("+++ "))
                    && path != "/dev/null"
                {
                    self.language = language(path);
                }
                self.plain_line(line, if line.starts_with("@@") { TextRole::Accent } else { TextRole::Muted });
            }
        }
    }

    /// File names, hunk headers and text around the diff.
    fn plain_line(&mut self, line: &str, role: TextRole) {
        // A wrapped line must not look like a new one.
        let margin = Margin { first: Vec::new(), rest: vec![Span::new(TextRole::Muted, "  ")] };
        wrap(&[Span::new(role, line)], self.width, Break::Words, &margin, RowBackground::None, &mut self.rows);
    }

    fn code(&mut self, source: &str, range: Range<usize>, side: DiffSide, number: usize) {
        let (sign, role, background) = side.style();
        let numbers = if self.width < ROOM_FOR_NUMBERS { 0 } else { self.digits + 1 };
        let number = format!("{number:>width$} ", width = self.digits);
        let first = vec![
            Span::new(TextRole::Muted, if numbers > 0 { number } else { String::new() }),
            Span::new(role, sign).with_font(FontStyle::BOLD),
        ];
        let rest = if numbers > 0 { numbers + 1 } else { UNNUMBERED_INDENT };
        let margin = Margin { first, rest: vec![Span::new(role, " ".repeat(rest))] };
        let text_role = if side == DiffSide::Both { TextRole::Muted } else { TextRole::Plain };
        let text = source.get(range.clone()).unwrap_or("");
        let from = self.rows.len();
        wrap(&[Span::new(text_role, text)], self.width, Break::Anywhere, &margin, background, &mut self.rows);
        let at = self.add_to_sides(range, side);
        if let (Some(at), Some(rows)) = (at, self.rows.get_mut(from..)) {
            mark_code_rows(rows, at);
        }
    }

    /// Adds the line to its sides and returns where its colours will be. Unchanged lines are
    /// highlighted with the new side.
    fn add_to_sides(&mut self, range: Range<usize>, side: DiffSide) -> Option<CodePosition> {
        let [.., old, new] = self.codes.as_mut_slice() else { return None };
        let saturation = if side == DiffSide::Both { Saturation::Muted } else { Saturation::Full };
        if side != DiffSide::New {
            old.lines.push(range.clone());
        }
        if side != DiffSide::Old {
            new.lines.push(range);
        }
        let (old, new) = (old.lines.len(), new.lines.len());
        let last = self.codes.len().saturating_sub(1);
        let (block, lines) = if side == DiffSide::Old { (last.saturating_sub(1), old) } else { (last, new) };
        Some(CodePosition::new(block, lines.saturating_sub(1), saturation))
    }
}

/// The file extension, or a name like `Makefile`.
fn language(path: &str) -> String {
    let path = path.split('\t').next().unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit('.').next().unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const DIFF: &str = "edited `src/a.rs`\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -9,3 +9,4 @@ fn x\n fn a() {}\n-old();\n+new(\"a long line of code\");\n+--- dashes\n }\nafter";

    fn check(width: usize, expect: Expect) {
        let mut at = 0;
        let lines = DIFF.split('\n').map(|line| {
            let from = at;
            at += line.len() + 1;
            (from, line)
        });
        let (rows, codes) = lay_out(DIFF, lines, width, 0);
        let mut out: String = rows.iter().map(|row| format!("|{}\n", row.text())).collect();
        for code in codes {
            let lines: Vec<&str> = code.lines.iter().map(|line| DIFF.get(line.clone()).unwrap()).collect();
            out.push_str(&format!("{}: {lines:?}\n", code.language));
        }
        expect.assert_eq(&out);
    }

    #[test]
    fn a_diff_has_line_numbers_signs_and_two_sides() {
        check(
            60,
            expect![[r#"
            |edited `src/a.rs`
            |--- a/src/a.rs
            |+++ b/src/a.rs
            |@@ -9,3 +9,4 @@ fn x
            | 9  fn a() {}
            |10 -old();
            |10 +new("a long line of code");
            |11 +--- dashes
            |12  }
            |after
            rs: ["fn a() {}", "old();", "}"]
            rs: ["fn a() {}", "new(\"a long line of code\");", "--- dashes", "}"]
        "#]],
        );
        check(
            20,
            expect![[r#"
                |edited `src/a.rs`
                |--- a/src/a.rs
                |+++ b/src/a.rs
                |@@ -9,3 +9,4 @@ fn x
                | fn a() {}
                |-old();
                |+new("a long line of
                |    code");
                |+--- dashes
                | }
                |after
                rs: ["fn a() {}", "old();", "}"]
                rs: ["fn a() {}", "new(\"a long line of code\");", "--- dashes", "}"]
            "#]],
        );
    }
}
