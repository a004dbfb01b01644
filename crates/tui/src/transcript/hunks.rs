//! What each line of a text with a diff in it is. A line of code may begin
//! with `++` itself, so inside a hunk only its first sign counts.

/// What a line is to the diff around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// With its number in the file, if a hunk tells it.
    Added(Option<usize>),
    Removed(Option<usize>),
    Kept(usize),
    /// Where a hunk begins.
    Head,
    /// A name of a file, or words that are no part of a change.
    Around,
}

/// The next line's number on a side, and how many lines of it are to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Count {
    next: usize,
    left: usize,
}

impl Count {
    fn step(&mut self) -> usize {
        let number = self.next;
        *self = Count { next: number.saturating_add(1), left: self.left.saturating_sub(1) };
        number
    }

    /// From a range like `1,4`; without a number of lines it is one.
    fn read(range: &str) -> Option<Count> {
        let (next, left) = range.split_once(',').unwrap_or((range, "1"));
        Some(Count { next: next.parse().ok()?, left: left.parse().ok()? })
    }

    fn end(self) -> usize {
        self.next.saturating_add(self.left)
    }
}

/// Walks over the lines of a text, from the first on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Diff {
    /// Before the change, and after it.
    old: Count,
    new: Count,
}

impl Diff {
    pub fn line(&mut self, line: &str) -> Line {
        if self.begin(line) {
            return Line::Head;
        }
        let is_in_hunk = self.old.left > 0 || self.new.left > 0;
        match line.as_bytes().first() {
            Some(b'+') if is_in_hunk => Line::Added(Some(self.new.step())),
            Some(b'-') if is_in_hunk => Line::Removed(Some(self.old.step())),
            Some(b' ') | None if is_in_hunk => {
                self.old.step();
                Line::Kept(self.new.step())
            }
            Some(b'+') if !line.starts_with("+++") => Line::Added(None),
            Some(b'-') if !line.starts_with("---") => Line::Removed(None),
            _ => Line::Around,
        }
    }

    /// `@@ -1,4 +1,5 @@`
    fn begin(&mut self, line: &str) -> bool {
        let mut words = line.split(' ');
        let (Some("@@"), Some(old), Some(new)) = (words.next(), words.next(), words.next()) else { return false };
        let counts = old.strip_prefix('-').and_then(Count::read).zip(new.strip_prefix('+').and_then(Count::read));
        let Some((old, new)) = counts else { return false };
        *self = Diff { old, new };
        true
    }

    /// How wide the numbers of the hunk are that begins here.
    pub fn digits(&self) -> usize {
        self.old.end().max(self.new.end()).to_string().len()
    }
}

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

/// How many lines were added, and how many removed.
pub fn changed(text: &str) -> (usize, usize) {
    let mut diff = Diff::default();
    let (mut added, mut removed) = (0, 0);
    for line in text.lines() {
        match diff.line(line) {
            Line::Added(_) => added += 1,
            Line::Removed(_) => removed += 1,
            Line::Kept(_) | Line::Head | Line::Around => (),
        }
    }
    (added, removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(text: &str) -> String {
        let mut diff = Diff::default();
        let sign = |line: &str| match diff.line(line) {
            Line::Added(_) => '+',
            Line::Removed(_) => '-',
            Line::Kept(_) => ' ',
            Line::Head => '@',
            Line::Around => '.',
        };
        text.lines().map(sign).collect()
    }

    #[test]
    fn a_line_of_code_may_look_like_the_head_of_a_file() {
        let text = "edited\n--- a/x\n+++ b/x\n@@ -1,4 +1,3 @@ fn f\n a\n--- b;\n-c\n+++d;\n e\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n\\ No newline\n+b\n- not in it";
        assert_eq!(signs(text), "...@ --+ ..@-.+-");
        assert_eq!(changed("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-- a\n+++i\n-b\n+c"), (2, 2));
    }

    #[test]
    fn t9_a_head_may_lie_about_its_lines() {
        let most = usize::MAX;
        assert_eq!(signs(&format!("@@ -{most},{most} +{most},1 @@\n-a\n+b\n+c\n d")), "@-++ ");
        assert_eq!(signs("@@ -x,1 +1 @@\n-a"), ".-");
    }
}
