//! Classifies the lines of a text that contains a diff. Code may begin with `++` itself, so inside
//! a hunk only the first character counts.

/// The kind of a line in a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffLine {
    /// With its line number, if inside a hunk.
    Added(Option<usize>),
    Removed(Option<usize>),
    Unchanged(usize),
    /// Where a hunk begins.
    HunkHeader,
    /// A file name, or text outside the diff.
    Other,
}

/// The next line number on one side, and how many lines are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct HunkRange {
    next: usize,
    left: usize,
}

impl HunkRange {
    fn step(&mut self) -> usize {
        let number = self.next;
        *self = HunkRange { next: number.saturating_add(1), left: self.left.saturating_sub(1) };
        number
    }

    /// Parses a range like `1,4`; the count defaults to one.
    fn parse(range: &str) -> Option<HunkRange> {
        let (next, left) = range.split_once(',').unwrap_or((range, "1"));
        Some(HunkRange { next: next.parse().ok()?, left: left.parse().ok()? })
    }

    fn end(self) -> usize {
        self.next.saturating_add(self.left)
    }
}

/// Scans the lines of a text in order.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiffScanner {
    /// Before and after the change.
    old: HunkRange,
    new: HunkRange,
}

impl DiffScanner {
    pub fn line(&mut self, line: &str) -> DiffLine {
        if self.begin_hunk(line) {
            return DiffLine::HunkHeader;
        }
        let is_in_hunk = self.old.left > 0 || self.new.left > 0;
        match line.as_bytes().first() {
            Some(b'+') if is_in_hunk => DiffLine::Added(Some(self.new.step())),
            Some(b'-') if is_in_hunk => DiffLine::Removed(Some(self.old.step())),
            Some(b' ') | None if is_in_hunk => {
                self.old.step();
                DiffLine::Unchanged(self.new.step())
            }
            Some(b'+') if !line.starts_with("+++") => DiffLine::Added(None),
            Some(b'-') if !line.starts_with("---") => DiffLine::Removed(None),
            _ => DiffLine::Other,
        }
    }

    /// Parses `@@ -1,4 +1,5 @@`.
    fn begin_hunk(&mut self, line: &str) -> bool {
        let mut words = line.split(' ');
        let (Some("@@"), Some(old), Some(new)) = (words.next(), words.next(), words.next()) else { return false };
        let counts =
            old.strip_prefix('-').and_then(HunkRange::parse).zip(new.strip_prefix('+').and_then(HunkRange::parse));
        let Some((old, new)) = counts else { return false };
        *self = DiffScanner { old, new };
        true
    }

    /// The width of the current hunk's line numbers.
    pub fn digits(&self) -> usize {
        self.old.end().max(self.new.end()).to_string().len()
    }
}

/// Whether a text contains a unified diff.
pub fn has_diff(text: &str) -> bool {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("--- ") && lines.next().is_some_and(|next| next.starts_with("+++ ")) {
            return true;
        }
    }
    false
}

/// How many lines a result begins with that say only which file changed, before the first line of the change: none if they
/// name another file than `path`.
pub fn lines_before_change(text: &str, path: &str) -> usize {
    let is_path = |name: &str| {
        !name.is_empty() && path.strip_suffix(name).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
    };
    let sentence = text.lines().next().filter(|line| line.split('`').nth(1).is_some_and(is_path));
    let n_before = usize::from(sentence.is_some());
    let mut head = text.lines().skip(n_before);
    let mut next = || head.next().unwrap_or_default();
    let names_the_file = matches!(next().strip_prefix("--- "), Some(old) if old == "/dev/null" || old.strip_prefix("a/").is_some_and(is_path))
        && next().strip_prefix("+++ b/").is_some_and(is_path);
    let begins = names_the_file && DiffScanner::default().begin_hunk(next());
    if begins { n_before + 3 } else { 0 }
}

/// The last line of a diff that was cut for the model: `[in all +3 -1]`.
fn counted_before_cutting(text: &str) -> Option<(usize, usize)> {
    let counts = text.lines().next_back()?.strip_prefix("[in all +")?.strip_suffix(']')?;
    let (added, removed) = counts.split_once(" -")?;
    Some((added.parse().ok()?, removed.parse().ok()?))
}

/// How many lines were added and removed.
pub fn changed(text: &str) -> (usize, usize) {
    if let Some(counts) = counted_before_cutting(text) {
        return counts;
    }
    let mut diff = DiffScanner::default();
    let (mut added, mut removed) = (0, 0);
    for line in text.lines() {
        match diff.line(line) {
            DiffLine::Added(_) => added += 1,
            DiffLine::Removed(_) => removed += 1,
            DiffLine::Unchanged(_) | DiffLine::HunkHeader | DiffLine::Other => (),
        }
    }
    (added, removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(text: &str) -> String {
        let mut diff = DiffScanner::default();
        let sign = |line: &str| match diff.line(line) {
            DiffLine::Added(_) => '+',
            DiffLine::Removed(_) => '-',
            DiffLine::Unchanged(_) => ' ',
            DiffLine::HunkHeader => '@',
            DiffLine::Other => '.',
        };
        text.lines().map(sign).collect()
    }

    #[test]
    fn t17_the_lines_before_a_change_are_those_that_name_its_file() {
        #[rustfmt::skip]
        let cases = [
            ("a sentence and a head", "edited `a/b.rs` in 1 place\n--- a/a/b.rs\n+++ b/a/b.rs\n@@ -1 +1 @@\n-x\n+y", "a/b.rs", 4),
            ("an absolute path",      "edited `b.rs`\n--- a/b.rs\n+++ b/b.rs\n@@ -1 +1 @@\n-x\n+y",  "/home/b.rs", 4),
            ("no sentence",           "--- a/b.rs\n+++ b/b.rs\n@@ -1 +1 @@\n-x\n+y",                "./b.rs", 3),
            ("a new file",            "created `b.rs`, 1 line\n--- /dev/null\n+++ b/b.rs\n@@ -0,0 +1,1 @@\n+y", "b.rs", 4),
            ("another file",          "edited `c.rs`\n--- a/c.rs\n+++ b/c.rs\n@@ -1 +1 @@\n-x\n+y", "b.rs", 0),
            ("a part of the name",    "--- a/b.rs\n+++ b/b.rs\n@@ -1 +1 @@\n-x\n+y",                "ab.rs", 0),
            ("another sentence",      "careful!\n--- a/b.rs\n+++ b/b.rs\n@@ -1 +1 @@\n-x\n+y",     "b.rs", 0),
            ("no hunk",               "--- a/b.rs\n+++ b/b.rs\nx",                                  "b.rs", 0),
            ("no diff",               "edited `b.rs`",                                              "b.rs", 0),
            ("nothing",               "",                                                           "", 0),
        ];
        for (name, text, path, expected) in cases {
            assert_eq!(lines_before_change(text, path), expected, "{name}");
        }
    }

    #[test]
    fn a_line_of_code_may_look_like_a_file_header() {
        let text = "edited\n--- a/x\n+++ b/x\n@@ -1,4 +1,3 @@ fn f\n a\n--- b;\n-c\n+++d;\n e\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n\\ No newline\n+b\n- not in it";
        assert_eq!(signs(text), "...@ --+ ..@-.+-");
        assert_eq!(changed("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-- a\n+++i\n-b\n+c"), (2, 2));
    }

    #[test]
    fn a_diff_that_was_cut_says_how_many_lines_changed() {
        let cut =
            "--- a/x\n+++ b/x\n@@ -1,9 +1,99 @@\n-a\n\n[… 9 bytes with 8 line ends left out …]\n+c\n[in all +99 -9]";
        assert_eq!(changed(cut), (99, 9));
    }

    #[test]
    fn t9_a_hunk_header_may_have_wrong_counts() {
        let most = usize::MAX;
        assert_eq!(signs(&format!("@@ -{most},{most} +{most},1 @@\n-a\n+b\n+c\n d")), "@-++ ");
        assert_eq!(signs("@@ -x,1 +1 @@\n-a"), ".-");
    }
}
