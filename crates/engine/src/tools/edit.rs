//! `edit`: one exact text in a file becomes another.

use aside_core::conversation::Tool as Spec;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::blocking::blocking;
use super::diff;
use super::files::{self, Document, Found};
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
            let place = self.place.clone();
            let before = match blocking(&CancellationToken::new(), move |_| files::find(&place)).await? {
                Found::Text(before) => before,
                Found::Nothing => return Err(format!("`{}` does not exist; make it with `write`", self.place.name)),
                Found::Other { bytes, .. } => {
                    return Err(format!("`{}` is no UTF-8 text ({bytes} bytes); it cannot be edited", self.place.name));
                }
            };
            let (after, count) = replace(&before.text, &self.old, &self.new, self.times)
                .map_err(|why| format!("`{}`: {why}", self.place.name))?;
            let shown = diff::unified(&self.place.name, &before.text, &after);
            self.change = Some(Change { before, after, count, shown: shown.clone(), _alone: alone });
            Ok(Some(shown))
        })
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let Some(change) = self.change else { return Err("nobody looked at the file first".to_owned()) };
            let (work, place) = (self.work, self.place);
            blocking(&cancel, move |_| {
                work.check_again(&place)?;
                put(&place, &Found::Text(change.before), &change.after)?;
                let places = if change.count == 1 { "place" } else { "places" };
                Ok(format!("edited `{}` in {} {places}\n{}", place.name, change.count, change.shown))
            })
            .await
        })
    }
}

fn replace(text: &str, old: &str, new: &str, times: Times) -> Result<(String, usize), String> {
    let (old, new) = in_its_lines(text, old, new);
    match (count(text, &old), times) {
        (0, _) => Err("the text to replace is not in the file; it must match exactly, white space included".to_owned()),
        (1, _) => Ok((text.replacen(&old, &new, 1), 1)),
        (_, Times::Any) => Ok((text.replace(&old, &new), text.matches(&old).count())),
        (found, Times::Once) => Err(format!(
            "the text to replace is in the file {found} times; give more of what stands around it, or replace_all"
        )),
    }
}

/// How many places it could mean. Those that overlap are places too: `aa` is
/// twice in `aaa`, and which one is meant nobody knows.
fn count(text: &str, old: &str) -> usize {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let (mut rest, mut count) = (text, 0);
    while let Some(at) = rest.find(old) {
        count += 1;
        rest = rest.get(at + step..).unwrap_or("");
    }
    count
}

/// `read` shows lines without their ends, so a model cannot know that they end
/// in `\r\n`.
fn in_its_lines(text: &str, old: &str, new: &str) -> (String, String) {
    let both = |to: fn(&str) -> String| (to(old), to(new));
    if text.contains("\r\n") && !text.contains(old) && !old.contains('\r') {
        both(|text| text.replace('\n', "\r\n"))
    } else {
        both(str::to_owned)
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
        assert!(refused("a b b b", "b", Times::Once).contains("3 times"));
        assert!(refused("aaa", "aa", Times::Once).contains("2 times"));
        assert!(refused("a", "b", Times::Any).contains("not in the file"));
    }
}
