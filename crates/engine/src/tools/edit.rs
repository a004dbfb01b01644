//! `edit`: replaces an exact text in a file.

use std::borrow::Cow;

use aside_core::conversation::ToolSpec;
use aside_core::counted::counted;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::blocking::blocking;
use super::definition::ToolDefinition;
use super::diff;
use super::file_changes::ChangeObserver;
use super::files::{self, ExistingFile, MAX_BYTES, TextFile};
use super::working_dir::{ResolvedPath, WorkingDir};
use super::write::write_if_unchanged;
use super::{CallTarget, PlannedCall, ProposedChange, Risk, Tool, ToolOutcome, ToolOutput};

const DEFINITION: ToolDefinition = ToolDefinition {
    name: "edit",
    description: "Replaces text in a file. `old` must occur in the file exactly once, including whitespace, unless `replace_all` is true.",
    parameters: r#"{"type":"object","properties":{"path":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"},"replace_all":{"type":"boolean"}},"required":["path","old","new"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    old: String,
    new: String,
    replace_all: Option<bool>,
}

/// How many matches an edit replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplaceMode {
    Once,
    All,
}

pub(crate) struct EditTool(pub(crate) WorkingDir);

struct EditCall {
    work: WorkingDir,
    resolved: ResolvedPath,
    old: String,
    new: String,
    mode: ReplaceMode,
    change: Option<PlannedEdit>,
}

/// The change that was shown to the user. The file stays locked until it is written.
struct PlannedEdit {
    before: TextFile,
    after: String,
    count: usize,
    /// The diff for the model.
    diff_for_model: String,
    _lock: OwnedMutexGuard<()>,
}

impl Tool for EditTool {
    fn spec(&self) -> ToolSpec {
        DEFINITION.spec()
    }

    fn notices(&self) -> Vec<String> {
        self.0.change_observer().map(ChangeObserver::take_notices).unwrap_or_default()
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn PlannedCall>, String> {
        let Arguments { path, old, new, replace_all } = DEFINITION.parse_arguments(arguments)?;
        if old.is_empty() {
            return Err("`old` is empty; to create a file, use `write`".to_owned());
        }
        if old == new {
            return Err("`old` and `new` are the same; nothing would change".to_owned());
        }
        for (name, text) in [("old", &old), ("new", &new)] {
            if text.len() > MAX_BYTES {
                return Err(format!("`{name}` has {} bytes; at most {MAX_BYTES} are allowed", text.len()));
            }
        }
        let resolved = self.0.resolve(&path)?;
        let mode = if replace_all == Some(true) { ReplaceMode::All } else { ReplaceMode::Once };
        Ok(Box::new(EditCall { work: self.0.clone(), resolved, old, new, mode, change: None }))
    }
}

impl PlannedCall for EditCall {
    fn target(&self) -> CallTarget {
        self.resolved.target(Risk::Writes)
    }

    fn preview(&mut self) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(async move {
            let lock = self.work.lock(&self.resolved.path).await;
            let (resolved, mode) = (self.resolved.clone(), self.mode);
            let (old, new) = (std::mem::take(&mut self.old), std::mem::take(&mut self.new));
            let stop = CancellationToken::new();
            let change = blocking(&stop, move |_| change(&resolved, &old, &new, mode));
            let (before, after, count, whole) = change.await?;
            self.change =
                Some(PlannedEdit { before, after, count, diff_for_model: diff::for_model(&whole), _lock: lock });
            Ok(Some(whole))
        })
    }

    fn change(&self) -> Option<ProposedChange> {
        let PlannedEdit { before, after, .. } = self.change.as_ref()?;
        let path = self.resolved.path.display().to_string();
        Some(ProposedChange { path, before: Some(before.text.clone()), after: after.clone() })
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            let Some(change) = self.change else { return Err("the file was not previewed first".to_owned()) };
            let (resolved, work) = (self.resolved, self.work);
            blocking(&cancel, move |_| {
                write_if_unchanged(&work, &resolved, &ExistingFile::Text(change.before), &change.after)?;
                let places = counted(change.count as u64, "place");
                Ok(format!("edited `{}` in {places}\n{}", resolved.name, change.diff_for_model))
            })
            .await
            .map(ToolOutput::from)
        })
    }
}

/// Returns the current file, its new content, the number of replacements and the full diff.
fn change(
    resolved: &ResolvedPath,
    old: &str,
    new: &str,
    mode: ReplaceMode,
) -> Result<(TextFile, String, usize, String), String> {
    let before = match files::read_existing(resolved)? {
        ExistingFile::Text(before) => before,
        ExistingFile::Missing => return Err(format!("`{}` does not exist; create it with `write`", resolved.name)),
        ExistingFile::Other { bytes, .. } if bytes > MAX_BYTES as u64 => {
            return Err(format!("`{}` has {bytes} bytes; at most {MAX_BYTES} can be edited", resolved.name));
        }
        ExistingFile::Other { bytes, .. } => {
            return Err(format!("`{}` is not UTF-8 text ({bytes} bytes); it cannot be edited", resolved.name));
        }
    };
    let replaced = replace(&before.text, old, new, mode);
    let (after, count) = replaced.map_err(|why| format!("`{}`: {why}", resolved.name))?;
    let whole = diff::unified(&resolved.name, &before.text, &after);
    Ok((before, after, count, whole))
}

fn replace(text: &str, old: &str, new: &str, mode: ReplaceMode) -> Result<(String, usize), String> {
    let (old, new) = match_line_endings(text, old, new);
    let count = match (count_matches(text, &old), mode) {
        (MatchCount::None, _) => {
            return Err(
                "the text to replace is not in the file; it must match exactly, including whitespace".to_owned()
            );
        }
        (MatchCount::Several, ReplaceMode::Once) => {
            let remedy = "include more of the surrounding text, or set replace_all";
            return Err(format!("the text to replace is in the file more than once; {remedy}"));
        }
        (MatchCount::One, _) => 1,
        (MatchCount::Several, ReplaceMode::All) => text.matches(&*old).count(),
    };
    // Check before allocating: a small file can become a huge one.
    let size = new.len().checked_mul(count).and_then(|added| (text.len() - old.len() * count).checked_add(added));
    match size {
        Some(size) if size <= MAX_BYTES => Ok((text.replacen(&*old, &new, count), count)),
        Some(_) | None => Err(format!("the file would become larger than {MAX_BYTES} bytes; nothing was done")),
    }
}

/// As much of the number of matches as the edit needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatchCount {
    None,
    One,
    Several,
}

/// Overlapping matches count: `aa` matches `aaa` twice, and it is unclear which one is meant. Stops at the
/// second match.
fn count_matches(text: &str, old: &str) -> MatchCount {
    let Some(first) = text.find(old) else { return MatchCount::None };
    let step = old.chars().next().map_or(1, char::len_utf8);
    match text.get(first + step..).and_then(|rest| rest.find(old)) {
        Some(_) => MatchCount::Several,
        None => MatchCount::One,
    }
}

/// `read` shows lines without their endings, so the model cannot know that they are `\r\n`.
fn match_line_endings<'a>(text: &str, old: &'a str, new: &'a str) -> (Cow<'a, str>, Cow<'a, str>) {
    if text.contains("\r\n") && !text.contains(old) && !old.contains('\r') {
        (old.replace('\n', "\r\n").into(), new.replace('\n', "\r\n").into())
    } else {
        (old.into(), new.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l2_an_edit_is_exact_and_unique() {
        let ok = |text: &str, count| Ok((text.to_owned(), count));
        #[rustfmt::skip]
        let cases = [
            ("once",              "a b c",      "b",    "x",    ReplaceMode::Once, ok("a x c", 1)),
            ("all",               "a b b",      "b",    "x",    ReplaceMode::All,  ok("a x x", 2)),
            ("all of one",        "a b c",      "b",    "",     ReplaceMode::All,  ok("a  c", 1)),
            ("lines that end as on Windows", "a\r\nb\r\nc\r\n", "a\nb", "x\ny", ReplaceMode::Once, ok("x\r\ny\r\nc\r\n", 1)),
            ("one end given",     "a\r\nb\r\n", "a\r\nb", "x",  ReplaceMode::Once, ok("x\r\n", 1)),
            ("no pattern",        "a.c",        "a.c",  "$0",   ReplaceMode::Once, ok("$0", 1)),
        ];
        for (name, text, old, new, mode, expected) in cases {
            assert_eq!(replace(text, old, new, mode), expected, "{name}");
        }
        let refused = |text, old, mode| replace(text, old, "x", mode).unwrap_err();
        assert!(refused("a  b", "a b", ReplaceMode::Once).contains("not in the file"));
        assert!(refused("a b b b", "b", ReplaceMode::Once).contains("more than once"));
        assert!(refused("aaa", "aa", ReplaceMode::Once).contains("more than once"));
        assert!(refused("a", "b", ReplaceMode::All).contains("not in the file"));
    }
    #[test]
    fn l4_a_change_that_would_be_huge_is_refused_before_it_is_made() {
        let text = "a".repeat(1_000_000);
        let huge = "b".repeat(1_000_000);
        assert!(replace(&text, "a", &huge, ReplaceMode::All).unwrap_err().contains("larger than 16777216 bytes"));
        assert_eq!(
            replace(&text, "a", "bb", ReplaceMode::All).map(|(text, count)| (text.len(), count)),
            Ok((2_000_000, 1_000_000))
        );
    }

    #[test]
    fn l4_counting_matches_takes_bounded_time() {
        // Counting all matches would compare a million bytes at each position.
        let text = "a".repeat(16_000_000);
        let old = "a".repeat(1_000_000);
        assert_eq!(count_matches(&text, &old), MatchCount::Several);
        assert_eq!(count_matches(&text, &"a".repeat(16_000_000)), MatchCount::One);
    }
}
