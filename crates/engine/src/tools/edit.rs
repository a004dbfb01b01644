//! `edit`: one exact text in a file becomes another.

use std::borrow::Cow;

use aside_core::conversation::Tool as Spec;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::blocking::blocking;
use super::diff;
use super::files::{self, Document, Found, MOST_BYTES};
use super::form::Form;
use super::workplace::{Place, Workplace};
use super::write::put;
use super::{Job, Outcome, Risk, Target, Tool};

const FORM: Form = Form {
    name: "edit",
    about: "Replaces text in a file. `old` must stand in the file exactly as given, white space included, and exactly once, unless replace_all is true.",
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

/// How often the text may stand in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Once,
    Any,
}

pub(crate) struct Edit(pub(crate) Workplace);

struct Editing {
    work: Workplace,
    place: Place,
    old: String,
    new: String,
    times: Times,
    change: Option<Change>,
}

/// The change as the user saw it. Nobody else of us touches the file meanwhile.
struct Change {
    before: Document,
    after: String,
    count: usize,
    /// The model's copy of the diff.
    shown: String,
    _alone: OwnedMutexGuard<()>,
}

impl Tool for Edit {
    fn spec(&self) -> Spec {
        FORM.spec()
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn Job>, String> {
        let Arguments { path, old, new, replace_all } = FORM.read(arguments)?;
        if old.is_empty() {
            return Err("`old` is empty; to make a new file use `write`".to_owned());
        }
        if old == new {
            return Err("`old` and `new` are the same; nothing would change".to_owned());
        }
        for (name, text) in [("old", &old), ("new", &new)] {
            if text.len() > MOST_BYTES {
                return Err(format!("`{name}` has {} bytes; at most {MOST_BYTES} are possible", text.len()));
            }
        }
        let place = self.0.place(&path)?;
        let times = if replace_all == Some(true) { Times::Any } else { Times::Once };
        Ok(Box::new(Editing { work: self.0.clone(), place, old, new, times, change: None }))
    }
}

impl Job for Editing {
    fn target(&self) -> Target {
        self.place.target(Risk::Writes)
    }

    fn look(&mut self) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(async move {
            let alone = self.work.lock(&self.place.path).await;
            let (place, times) = (self.place.clone(), self.times);
            let (old, new) = (std::mem::take(&mut self.old), std::mem::take(&mut self.new));
            let stop = CancellationToken::new();
            let change = blocking(&stop, move |_| change(&place, &old, &new, times));
            let (before, after, count, whole) = change.await?;
            self.change = Some(Change { before, after, count, shown: diff::for_model(&whole), _alone: alone });
            Ok(Some(whole))
        })
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let Some(change) = self.change else { return Err("nobody looked at the file first".to_owned()) };
            let place = self.place;
            blocking(&cancel, move |_| {
                put(&place, &Found::Text(change.before), &change.after)?;
                let places = if change.count == 1 { "place" } else { "places" };
                Ok(format!("edited `{}` in {} {places}\n{}", place.name, change.count, change.shown))
            })
            .await
        })
    }
}

/// What the file is, what it becomes, in how many places, and the whole diff.
fn change(place: &Place, old: &str, new: &str, times: Times) -> Result<(Document, String, usize, String), String> {
    let before = match files::find(place)? {
        Found::Text(before) => before,
        Found::Nothing => return Err(format!("`{}` does not exist; make it with `write`", place.name)),
        Found::Other { bytes, .. } if bytes > MOST_BYTES as u64 => {
            return Err(format!("`{}` has {bytes} bytes; at most {MOST_BYTES} can be edited", place.name));
        }
        Found::Other { bytes, .. } => {
            return Err(format!("`{}` is no UTF-8 text ({bytes} bytes); it cannot be edited", place.name));
        }
    };
    let replaced = replace(&before.text, old, new, times);
    let (after, count) = replaced.map_err(|why| format!("`{}`: {why}", place.name))?;
    let whole = diff::unified(&place.name, &before.text, &after);
    Ok((before, after, count, whole))
}

fn replace(text: &str, old: &str, new: &str, times: Times) -> Result<(String, usize), String> {
    let (old, new) = in_its_lines(text, old, new);
    let count = match (places(text, &old), times) {
        (Places::None, _) => {
            return Err(
                "the text to replace is not in the file; it must match exactly, white space included".to_owned()
            );
        }
        (Places::Several, Times::Once) => {
            let remedy = "give more of what stands around it, or replace_all";
            return Err(format!("the text to replace is in the file more than once; {remedy}"));
        }
        (Places::One, _) => 1,
        (Places::Several, Times::Any) => text.matches(&*old).count(),
    };
    // Before the memory is taken, since a short file can become a huge one.
    let size = new.len().checked_mul(count).and_then(|added| (text.len() - old.len() * count).checked_add(added));
    match size {
        Some(size) if size <= MOST_BYTES => Ok((text.replacen(&*old, &new, count), count)),
        Some(_) | None => Err(format!("the file would become larger than {MOST_BYTES} bytes; nothing was done")),
    }
}

/// In how many places a text stands, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Places {
    None,
    One,
    Several,
}

/// Those that overlap are places too: `aa` is twice in `aaa`, and which one is
/// meant nobody knows. After the second there is nothing more to learn.
fn places(text: &str, old: &str) -> Places {
    let Some(first) = text.find(old) else { return Places::None };
    let step = old.chars().next().map_or(1, char::len_utf8);
    match text.get(first + step..).and_then(|rest| rest.find(old)) {
        Some(_) => Places::Several,
        None => Places::One,
    }
}

/// `read` shows lines without their ends, so a model cannot know that they end
/// in `\r\n`.
fn in_its_lines<'a>(text: &str, old: &'a str, new: &'a str) -> (Cow<'a, str>, Cow<'a, str>) {
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
            ("once",              "a b c",      "b",    "x",    Times::Once, ok("a x c", 1)),
            ("all",               "a b b",      "b",    "x",    Times::Any,  ok("a x x", 2)),
            ("all of one",        "a b c",      "b",    "",     Times::Any,  ok("a  c", 1)),
            ("lines that end as on Windows", "a\r\nb\r\nc\r\n", "a\nb", "x\ny", Times::Once, ok("x\r\ny\r\nc\r\n", 1)),
            ("one end given",     "a\r\nb\r\n", "a\r\nb", "x",  Times::Once, ok("x\r\n", 1)),
            ("no pattern",        "a.c",        "a.c",  "$0",   Times::Once, ok("$0", 1)),
        ];
        for (name, text, old, new, times, expected) in cases {
            assert_eq!(replace(text, old, new, times), expected, "{name}");
        }
        let refused = |text, old, times| replace(text, old, "x", times).unwrap_err();
        assert!(refused("a  b", "a b", Times::Once).contains("not in the file"));
        assert!(refused("a b b b", "b", Times::Once).contains("more than once"));
        assert!(refused("aaa", "aa", Times::Once).contains("more than once"));
        assert!(refused("a", "b", Times::Any).contains("not in the file"));
    }
    #[test]
    fn l4_a_change_that_would_be_huge_is_refused_before_it_is_made() {
        let text = "a".repeat(1_000_000);
        let huge = "b".repeat(1_000_000);
        assert!(replace(&text, "a", &huge, Times::Any).unwrap_err().contains("larger than 16777216 bytes"));
        assert_eq!(
            replace(&text, "a", "bb", Times::Any).map(|(text, count)| (text.len(), count)),
            Ok((2_000_000, 1_000_000))
        );
    }

    #[test]
    fn l4_counting_places_takes_no_longer_the_more_there_are() {
        // Each place would be compared over a million bytes if all were counted.
        let text = "a".repeat(16_000_000);
        let old = "a".repeat(1_000_000);
        assert_eq!(places(&text, &old), Places::Several);
        assert_eq!(places(&text, &"a".repeat(16_000_000)), Places::One);
    }
}
