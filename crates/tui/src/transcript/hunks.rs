//! What each line of a text with a diff in it is. A line of code may begin
//! with `++` itself, so inside a hunk only its first sign counts.

use crate::text::Ink;

/// Walks over the lines of a text, from the first on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Diff {
    /// Lines of the hunk that are still to come, before and after the change.
    old: usize,
    new: usize,
}

impl Diff {
    pub fn ink(&mut self, line: &str) -> Ink {
        if self.old == 0 && self.new == 0 {
            return self.ink_outside(line);
        }
        match line.as_bytes().first() {
            Some(b'+') => {
                self.new = self.new.saturating_sub(1);
                Ink::Added
            }
            Some(b'-') => {
                self.old = self.old.saturating_sub(1);
                Ink::Removed
            }
            // A word on the line before it: no new line at the end of the file.
            Some(b'\\') => Ink::Muted,
            Some(b'@') if self.begin(line) => Ink::Accent,
            _ => {
                (self.old, self.new) = (self.old.saturating_sub(1), self.new.saturating_sub(1));
                Ink::Muted
            }
        }
    }

    fn ink_outside(&mut self, line: &str) -> Ink {
        if self.begin(line) || line.starts_with("@@") {
            Ink::Accent
        } else if line.starts_with("+++") || line.starts_with("---") {
            Ink::Muted
        } else if line.starts_with('+') {
            Ink::Added
        } else if line.starts_with('-') {
            Ink::Removed
        } else {
            Ink::Muted
        }
    }

    /// `@@ -1,4 +1,5 @@`; without a number of lines it is one.
    fn begin(&mut self, line: &str) -> bool {
        let count = |range: &str| match range.split_once(',') {
            Some((_, lines)) => lines.parse().ok(),
            None => Some(1),
        };
        let mut words = line.split(' ');
        let (Some("@@"), Some(old), Some(new)) = (words.next(), words.next(), words.next()) else { return false };
        let counts = old.strip_prefix('-').and_then(count).zip(new.strip_prefix('+').and_then(count));
        let Some((old, new)) = counts else { return false };
        *self = Diff { old, new };
        true
    }
}

/// How many lines were added, and how many removed.
pub fn changed(text: &str) -> (usize, usize) {
    let mut diff = Diff::default();
    let inks: Vec<Ink> = text.lines().map(|line| diff.ink(line)).collect();
    let count = |wanted: Ink| inks.iter().filter(|ink| **ink == wanted).count();
    (count(Ink::Added), count(Ink::Removed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_code_may_look_like_the_head_of_a_file() {
        let text = "edited\n--- a/x\n+++ b/x\n@@ -1,4 +1,3 @@ fn f\n a\n--- b;\n-c\n+++d;\n e\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n\\ No newline\n+b\n- not in it";
        let mut diff = Diff::default();
        let names = [(Ink::Added, '+'), (Ink::Removed, '-'), (Ink::Accent, '@'), (Ink::Muted, '.')];
        let sign = |ink: Ink| names.iter().find(|(name, _)| *name == ink).unwrap().1;
        let signs: String = text.lines().map(|line| sign(diff.ink(line))).collect();
        assert_eq!(signs, "...@.--+...@-.+-");
        assert_eq!(changed("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-- a\n+++i\n-b\n+c"), (2, 2));
    }
}
