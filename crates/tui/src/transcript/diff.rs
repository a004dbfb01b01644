//! A unified diff as rows: the number of each line, its sign, and the code
//! with the colours of its language.

use std::ops::Range;

use super::hunks::{Diff, Line};
use crate::text::code::mark;
use crate::text::light::CodeBlock;
use crate::text::{Break, CodeAt, Face, Ink, Margin, Row, Shade, Span, Tone, wrap};

/// Narrower than this the numbers are left out.
const ROOM_FOR_NUMBERS: usize = 30;

/// The side of a change that a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
    Both,
}

#[derive(Debug, Default)]
pub(super) struct DiffRows {
    width: usize,
    language: String,
    diff: Diff,
    /// How wide the numbers of this hunk are.
    digits: usize,
    rows: Vec<Row>,
    codes: Vec<CodeBlock>,
}

pub(super) fn lay<'a>(
    source: &str,
    lines: impl Iterator<Item = (usize, &'a str)>,
    width: usize,
) -> (Vec<Row>, Vec<CodeBlock>) {
    let mut diff = DiffRows { width, ..DiffRows::default() };
    for (at, line) in lines {
        diff.line(source, at, line);
    }
    (diff.rows, diff.codes)
}

impl DiffRows {
    fn line(&mut self, source: &str, at: usize, line: &str) {
        let range = (at + 1).min(at + line.len())..at + line.len();
        match self.diff.line(line) {
            Line::Added(Some(number)) => self.code(source, range, Side::New, number),
            Line::Removed(Some(number)) => self.code(source, range, Side::Old, number),
            Line::Kept(number) => self.code(source, range, Side::Both, number),
            Line::Head => {
                self.digits = self.diff.digits();
                let side = || CodeBlock { language: self.language.clone(), lines: Vec::new() };
                self.codes.extend([side(), side()]);
                self.around(line, Ink::Accent);
            }
            Line::Added(None) => self.around(line, Ink::Added),
            Line::Removed(None) => self.around(line, Ink::Removed),
            Line::Around => {
                if let Some(path) = line.strip_prefix("--- ").or(line.strip_prefix("+++ "))
                    && path != "/dev/null"
                {
                    self.language = language(path);
                }
                self.around(line, if line.starts_with("@@") { Ink::Accent } else { Ink::Muted });
            }
        }
    }

    /// Names of files, heads of hunks, and words around the diff.
    fn around(&mut self, line: &str, ink: Ink) {
        // The rest of a long line must not look like a line of its own.
        let margin = Margin { first: Vec::new(), rest: vec![Span::new(Ink::Muted, "  ")] };
        wrap(&[Span::new(ink, line)], self.width, Break::Words, &margin, Shade::None, &mut self.rows);
    }

    fn code(&mut self, source: &str, range: Range<usize>, side: Side, number: usize) {
        let (sign, ink, shade) = match side {
            Side::Old => ("-", Ink::Removed, Shade::Removed),
            Side::New => ("+", Ink::Added, Shade::Added),
            Side::Both => (" ", Ink::Muted, Shade::None),
        };
        let numbers = if self.width < ROOM_FOR_NUMBERS { 0 } else { self.digits + 1 };
        let number = format!("{number:>width$} ", width = self.digits);
        let first = vec![
            Span::new(Ink::Muted, if numbers > 0 { number } else { String::new() }),
            Span::new(ink, sign).faced(Face::BOLD),
        ];
        // Without numbers the rest of a line stands further in, or it would look like one.
        let rest = if numbers > 0 { numbers + 1 } else { 3 };
        let margin = Margin { first, rest: vec![Span::new(ink, " ".repeat(rest))] };
        let text_ink = if side == Side::Both { Ink::Muted } else { Ink::Plain };
        let text = source.get(range.clone()).unwrap_or("");
        let from = self.rows.len();
        wrap(&[Span::new(text_ink, text)], self.width, Break::Anywhere, &margin, shade, &mut self.rows);
        let at = self.place(range, side);
        if let (Some(at), Some(rows)) = (at, self.rows.get_mut(from..)) {
            mark(rows, at);
        }
    }

    /// Notes the line on its sides, and says where its colours will be. What
    /// stays is read with the new side.
    fn place(&mut self, range: Range<usize>, side: Side) -> Option<CodeAt> {
        let [.., old, new] = self.codes.as_mut_slice() else { return None };
        let tone = if side == Side::Both { Tone::Muted } else { Tone::Full };
        if side != Side::New {
            old.lines.push(range.clone());
        }
        if side != Side::Old {
            new.lines.push(range);
        }
        let (old, new) = (old.lines.len(), new.lines.len());
        let last = self.codes.len().saturating_sub(1);
        let (block, lines) = if side == Side::Old { (last.saturating_sub(1), old) } else { (last, new) };
        Some(CodeAt::new(block, lines.saturating_sub(1), tone))
    }
}

/// The end of a path, or a name like `Makefile`.
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
        let (rows, codes) = lay(DIFF, lines, width);
        let mut out: String = rows.iter().map(|row| format!("|{}\n", row.text())).collect();
        for code in codes {
            let lines: Vec<&str> = code.lines.iter().map(|line| DIFF.get(line.clone()).unwrap()).collect();
            out.push_str(&format!("{}: {lines:?}\n", code.language));
        }
        expect.assert_eq(&out);
    }

    #[test]
    fn a_diff_has_numbers_signs_and_two_sides() {
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
