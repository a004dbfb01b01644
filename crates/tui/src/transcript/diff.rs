//! A unified diff as rows: the number of each line, its sign, and the code
//! with the colours of its language.

use std::ops::Range;

use crate::text::code::mark;
use crate::text::light::CodeBlock;
use crate::text::{Break, CodeAt, Face, Ink, Margin, Row, Shade, Span, Tone, wrap};

/// Narrower than this the numbers are left out.
const ROOM_FOR_NUMBERS: usize = 30;

/// Whether a text has a unified diff in it.
pub fn has_diff(text: &str) -> bool {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("--- ") && lines.next().is_some_and(|next| next.starts_with("+++ ")) {
            return true;
        }
    }
    false
}

/// How many lines a diff brings and takes away.
pub(super) fn changed(diff: &str) -> (usize, usize) {
    let count =
        |sign: char, head: &str| diff.lines().filter(|line| line.starts_with(sign) && !line.starts_with(head)).count();
    (count('+', "+++"), count('-', "---"))
}

/// The side of a change that a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
    Both,
}

/// The next line's number on a side, and how many lines of it are to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Count {
    next: usize,
    left: usize,
}

#[derive(Debug, Default)]
pub(super) struct DiffRows {
    width: usize,
    language: String,
    old: Count,
    new: Count,
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
        let range = at + 1..at + line.len();
        match line.chars().next() {
            Some('+') if self.new.left > 0 => self.code(source, range, Side::New),
            Some('-') if self.old.left > 0 => self.code(source, range, Side::Old),
            Some(' ') if self.old.left > 0 && self.new.left > 0 => self.code(source, range, Side::Both),
            None if self.old.left > 0 && self.new.left > 0 => self.code(source, at..at, Side::Both),
            _ => self.around(line),
        }
    }

    /// Names of files, heads of hunks, and words around the diff.
    fn around(&mut self, line: &str) {
        let mut ink = Ink::Muted;
        if let Some(path) = line.strip_prefix("--- ").or(line.strip_prefix("+++ ")) {
            if path != "/dev/null" {
                self.language = language(path);
            }
        } else if let Some((old, new)) = hunk(line) {
            ink = Ink::Accent;
            (self.old, self.new) = (old, new);
            self.digits = (old.next + old.left).max(new.next + new.left).to_string().len();
            let side = || CodeBlock { language: self.language.clone(), lines: Vec::new() };
            self.codes.extend([side(), side()]);
        }
        wrap(&[Span::new(ink, line)], self.width, Break::Anywhere, &Margin::default(), Shade::None, &mut self.rows);
    }

    fn code(&mut self, source: &str, range: Range<usize>, side: Side) {
        let (sign, ink, shade, number) = match side {
            Side::Old => ("-", Ink::Removed, Shade::Removed, self.old.next),
            Side::New => ("+", Ink::Added, Shade::Added, self.new.next),
            Side::Both => (" ", Ink::Muted, Shade::None, self.new.next),
        };
        let numbers = if self.width < ROOM_FOR_NUMBERS { 0 } else { self.digits + 1 };
        let number = format!("{number:>width$} ", width = self.digits);
        let first = vec![
            Span::new(Ink::Muted, if numbers > 0 { number } else { String::new() }),
            Span::new(ink, sign).faced(Face::BOLD),
        ];
        let margin = Margin { first, rest: vec![Span::new(ink, " ".repeat(numbers + 1))] };
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
            self.old = Count { next: self.old.next + 1, left: self.old.left.saturating_sub(1) };
        }
        if side != Side::Old {
            new.lines.push(range);
            self.new = Count { next: self.new.next + 1, left: self.new.left.saturating_sub(1) };
        }
        let (old, new) = (old.lines.len(), new.lines.len());
        let last = self.codes.len().saturating_sub(1);
        let (block, lines) = if side == Side::Old { (last.saturating_sub(1), old) } else { (last, new) };
        Some(CodeAt::new(block, lines.saturating_sub(1), tone))
    }
}

/// The lines of both sides, from a head like `@@ -1,2 +1,3 @@`.
fn hunk(line: &str) -> Option<(Count, Count)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let side = |range: &str| {
        let (next, left) = range.split_once(',').unwrap_or((range, "1"));
        Some(Count { next: next.parse().ok()?, left: left.parse().ok()? })
    };
    Some((side(old)?, side(new)?))
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
            |  code");
            |+--- dashes
            | }
            |after
            rs: ["fn a() {}", "old();", "}"]
            rs: ["fn a() {}", "new(\"a long line of code\");", "--- dashes", "}"]
        "#]],
        );
    }
}
