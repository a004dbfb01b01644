//! Unified diffs of file changes.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};

use super::bounded_output::BoundedOutput;

/// A coarse diff at once is better than a fine one later.
const TIME_LIMIT: Duration = Duration::from_millis(300);
/// If more lines than this differ, they are shown as one replacement.
const MAX_COMPARED: usize = 20_000;
const CONTEXT: usize = 3;
/// The maximum length of a diff for the model.
const MAX_FOR_MODEL: usize = 24 * 1024;

/// A complete unified diff, empty if nothing changes. The time is bounded, and the memory is a small multiple
/// of both texts.
pub fn unified(name: &str, before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let Trimmed { skipped, before, after, same_behind } = trim(before, after);
    // An absolute path has a slash of its own.
    let slash = if name.starts_with('/') { "" } else { "/" };
    let mut text = format!("--- a{slash}{name}\n+++ b{slash}{name}\n");
    let lines = |text: &str| text.split_inclusive('\n').count();
    let (old, new) = (lines(before), lines(after));
    if old.max(new) > MAX_COMPARED {
        let same = same_in_front(before, after);
        text.push_str(&header(&(0..old), &(0..new), skipped));
        push_lines(&mut text, ' ', before.split_inclusive('\n').take(same));
        push_lines(
            &mut text,
            '-',
            before.split_inclusive('\n').skip(same).take(old.saturating_sub(same + same_behind)),
        );
        push_lines(&mut text, '+', after.split_inclusive('\n').skip(same).take(new.saturating_sub(same + same_behind)));
        push_lines(&mut text, ' ', before.split_inclusive('\n').skip(old.saturating_sub(same_behind)));
        return text;
    }
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    for group in group_diff_ops(compare(&old, &new), CONTEXT) {
        hunk(&mut text, &group, &old, &new, skipped);
    }
    text
}

/// The diff for the model, cut in the middle if it is long. The last line then counts all changed lines, which front
/// ends read.
pub(crate) fn for_model(diff: &str) -> String {
    if diff.len() <= MAX_FOR_MODEL {
        return diff.to_owned();
    }
    let mut kept = BoundedOutput::new(MAX_FOR_MODEL);
    kept.push(diff.as_bytes());
    // The first two lines are the name of the file.
    let n_lines = |sign| diff.lines().skip(2).filter(|line| line.starts_with(sign)).count();
    format!("{}\n[in all +{} -{}]", kept.text().trim_end_matches('\n'), n_lines('+'), n_lines('-'))
}

/// Two texts without their common lines at both ends, except for the context lines.
struct Trimmed<'a> {
    /// The number of common lines removed from the start.
    skipped: usize,
    before: &'a str,
    after: &'a str,
    /// The number of common lines that remain at the end.
    same_behind: usize,
}

fn trim<'a>(before: &'a str, after: &'a str) -> Trimmed<'a> {
    let same = before.bytes().zip(after.bytes()).take_while(|(one, other)| one == other).count();
    let same = before.as_bytes().get(..same).unwrap_or_default();
    // Go back from the line with the first difference over the context lines.
    let ends = || same.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let from = ends().nth(CONTEXT).unwrap_or(0);
    let first = ends().next().unwrap_or(0);
    let skipped = same.get(..from).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count();
    let (old, new) = (before.get(first..).unwrap_or(before), after.get(first..).unwrap_or(after));
    let same = old.bytes().rev().zip(new.bytes().rev()).take_while(|(one, other)| one == other).count();
    let tail = old.as_bytes().get(old.len() - same..).unwrap_or_default();
    // The first line of the common tail may be the end of a line that differs.
    let mut ends = tail.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let whole = ends.next().unwrap_or(tail.len());
    let shown = ends.nth(CONTEXT - 1).unwrap_or(tail.len());
    let cut = tail.len() - shown;
    let kept = tail.get(whole..shown).unwrap_or_default();
    let same_behind = kept.split_inclusive(|byte| *byte == b'\n').count();
    Trimmed {
        skipped,
        before: before.get(from..before.len() - cut).unwrap_or(before),
        after: after.get(from..after.len() - cut).unwrap_or(after),
        same_behind,
    }
}

fn same_in_front(before: &str, after: &str) -> usize {
    let both = before.split_inclusive('\n').zip(after.split_inclusive('\n'));
    both.take(CONTEXT).take_while(|(one, other)| one == other).count()
}

fn compare(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    // Numbers are compared faster than long lines.
    let mut numbers = HashMap::new();
    let mut number = |line| {
        let next = numbers.len();
        *numbers.entry(line).or_insert(next)
    };
    let old: Vec<usize> = old.iter().map(|line| number(*line)).collect();
    let new: Vec<usize> = new.iter().map(|line| number(*line)).collect();
    capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(Instant::now() + TIME_LIMIT))
}

fn hunk(text: &mut String, group: &[DiffOp], old: &[&str], new: &[&str], skipped: usize) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let whole = |first: Range<usize>, last: Range<usize>| first.start..last.end;
    let header =
        header(&whole(first.old_range(), last.old_range()), &whole(first.new_range(), last.new_range()), skipped);
    text.push_str(&header);
    for op in group {
        let (tag, from, to) = op.as_tag_tuple();
        let gone = old.get(from).unwrap_or_default().iter().copied();
        let come = new.get(to).unwrap_or_default().iter().copied();
        match tag {
            DiffTag::Equal => push_lines(text, ' ', gone),
            DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                push_lines(text, '-', gone);
                push_lines(text, '+', come);
            }
        }
    }
}

fn header(old: &Range<usize>, new: &Range<usize>, skipped: usize) -> String {
    let range = |range: &Range<usize>| match (range.start + skipped, range.len()) {
        (start, 1) => format!("{}", start + 1),
        // An empty range is given by the line before it.
        (start, 0) => format!("{start},0"),
        (start, count) => format!("{},{count}", start + 1),
    };
    format!("@@ -{} +{} @@\n", range(old), range(new))
}

fn push_lines<'a>(text: &mut String, mark: char, lines: impl Iterator<Item = &'a str>) {
    for line in lines {
        text.push(mark);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l2_a_diff_shows_what_changes_and_nothing_when_nothing_does() {
        let shown = unified("a.txt", "one\ntwo\nthree\n", "one\n2\nthree\n");
        assert_eq!(shown, "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
        assert_eq!(unified("a.txt", "same\n", "same\n"), "");
        let outside = unified("/tmp/x", "a\n", "b\n");
        assert!(outside.starts_with("--- a/tmp/x\n+++ b/tmp/x\n"), "{outside}");
        let new = unified("n", "", "a");
        assert_eq!(new, "--- a/n\n+++ b/n\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n");
    }

    /// Checks a diff with `git apply`.
    fn patched(name: &str, before: &str, after: &str) {
        use crate::test_dir::TestDir;
        let test_dir = TestDir::new(&format!("diff-{name}"));
        let (file, patch) = (test_dir.path().join("f"), test_dir.path().join("p"));
        std::fs::write(&file, before).unwrap();
        std::fs::write(&patch, unified("f", before, after)).unwrap();
        let mut command = std::process::Command::new("git");
        command.args(["apply", "--whitespace=nowarn", "-p1", "p"]).current_dir(test_dir.path());
        let run = command.env("GIT_CEILING_DIRECTORIES", test_dir.path().parent().unwrap()).output().unwrap();
        assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
        assert!(std::fs::read_to_string(&file).unwrap() == after, "{name}");
    }

    #[test]
    fn l2_a_diff_can_be_applied_whatever_it_changes() {
        let numbered = |count: usize| (0..count).map(|n| format!("line {n}\n")).collect::<String>();
        let long = numbered(100);
        #[rustfmt::skip]
        let cases = [
            ("in-the-middle",   long.clone(),              long.replace("line 50\n", "fifty\n")),
            ("twice",           long.clone(),              long.replace("line 5\n", "").replace("line 90\n", "a\nb\n")),
            ("at-the-start",    long.clone(),              format!("new\n{long}")),
            ("at-the-end",      long.clone(),              format!("{long}new\n")),
            ("no-line-end",     long.clone(),              format!("{long}new")),
            ("line-end-gone",   "a\nb\n".to_owned(),       "a\nb".to_owned()),
            ("same-letters",    "aaa\naa\na\n".to_owned(), "aaa\na\naa\na\n".to_owned()),
            ("in-a-line",       "a\nxbx\nc\n".to_owned(),  "a\nxcx\nc\n".to_owned()),
            ("repeated",        "x\n".repeat(50),          "x\n".repeat(40)),
            ("much",            numbered(60_000),          numbered(60_000).replace("line 3", "drei").replace("7\n", "8\n")),
            ("much-and-less",   numbered(60_000),          format!("{}\nx", numbered(3))),
            ("much-at-once",    format!("a\nb\nc\nd\n{}y\nz\n", "1\n".repeat(50_000)), format!("a\nb\nc\nd\n{}y\nz\n", "2\n".repeat(30_000))),
        ];
        for (name, before, after) in cases {
            patched(name, &before, &after);
        }
    }

    #[test]
    fn l4_only_the_models_copy_of_a_diff_is_cut() {
        let (before, after) = ("old\n".repeat(40_000), "new\n".repeat(40_000));
        let whole = unified("f", &before, &after);
        assert_eq!((whole.matches("-old\n").count(), whole.matches("+new\n").count()), (40_000, 40_000));
        let cut = for_model(&whole);
        assert!(cut.ends_with("\n[in all +40000 -40000]"), "{}", cut.len());
        assert!(cut.len() < MAX_FOR_MODEL + 100 && cut.contains(" left out …]"), "{}", cut.len());
    }
}
