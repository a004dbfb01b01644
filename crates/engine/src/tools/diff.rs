//! What a change to a file looks like.

use std::time::Duration;

use similar::TextDiff;

use super::kept::Kept;

/// A diff is for looking at; a coarse one now beats a fine one later.
const PATIENCE: Duration = Duration::from_millis(300);
const CONTEXT: usize = 3;
const MOST: usize = 24 * 1024;

/// A unified diff, cut in the middle if it is long. Empty if nothing changes.
pub(crate) fn unified(name: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    let mut unified = diff.unified_diff();
    let text = unified.context_radius(CONTEXT).header(&format!("a/{name}"), &format!("b/{name}")).to_string();
    let mut kept = Kept::new(MOST);
    kept.push(text.as_bytes());
    kept.text()
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn l2_a_diff_shows_what_changes_and_nothing_when_nothing_does() {
        let shown = unified("a.txt", "one\ntwo\nthree\n", "one\n2\nthree\n");
        assert_eq!(shown, "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
        assert_eq!(unified("a.txt", "same\n", "same\n"), "");
        let new = unified("n", "", "a");
        assert_eq!(new, "--- a/n\n+++ b/n\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n");
    }
}
