//! `write`: a whole file, new or in the place of another.

use std::sync::Arc;

use aside_core::conversation::Tool as Spec;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::blocking::blocking;
use super::diff;
use super::files::{self, Document, Found, MOST_BYTES};
use super::form::Form;
use super::permissions::Rules;
use super::workplace::{Place, Workplace};
use super::{Job, Outcome, Risk, Target, Tool};
use crate::dir::Access;

const FORM: Form = Form {
    name: "write",
    about: "Writes a whole file. Folders on the way are made; what was there is replaced. For a change to a part, use edit.",
    parameters: r#"{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

pub(crate) struct Write {
    pub(crate) work: Workplace,
    /// What `read` may not show, a diff does not show to the model either.
    pub(crate) rules: Arc<Rules>,
}

struct Writing {
    work: Workplace,
    rules: Arc<Rules>,
    place: Place,
    content: Arc<String>,
    seen: Option<Seen>,
}

/// What was there when the user was shown the change. Nobody else of us
/// touches the file meanwhile.
struct Seen {
    found: Found,
    /// What the model is told once it is done.
    said: String,
    _alone: OwnedMutexGuard<()>,
}

impl Tool for Write {
    fn spec(&self) -> Spec {
        FORM.spec()
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn Job>, String> {
        let Arguments { path, content } = FORM.read(arguments)?;
        if content.len() > MOST_BYTES {
            return Err(format!("the content has {} bytes; at most {MOST_BYTES} are possible", content.len()));
        }
        let place = self.work.place(&path)?;
        let (work, rules) = (self.work.clone(), Arc::clone(&self.rules));
        Ok(Box::new(Writing { work, rules, place, content: Arc::new(content), seen: None }))
    }
}

impl Job for Writing {
    fn target(&self) -> Target {
        self.place.target(Risk::Writes)
    }

    fn look(&mut self) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(async move {
            let alone = self.work.lock(&self.place.path).await;
            let (place, content) = (self.place.clone(), Arc::clone(&self.content));
            let may_be_read = self.rules.lets_be_read("read", &place.name, &place.path.display().to_string());
            let stop = CancellationToken::new();
            let looked = blocking(&stop, move |_| {
                let found = files::find(&place)?;
                let preview = preview(&place, &found, &content);
                let said = said(&place, &found, &content, &preview, may_be_read);
                Ok((found, said, preview))
            });
            let (found, said, preview) = looked.await?;
            self.seen = Some(Seen { found, said, _alone: alone });
            Ok(Some(preview))
        })
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let Some(seen) = self.seen else { return Err("nobody looked at the file first".to_owned()) };
            let (place, content) = (self.place, self.content);
            blocking(&cancel, move |_| {
                put(&place, &seen.found, &content)?;
                Ok(seen.said)
            })
            .await
        })
    }
}

/// What the user reads before the answer, whole. Of what is no text, the new
/// content is shown.
fn preview(place: &Place, before: &Found, content: &str) -> String {
    match before {
        Found::Nothing => diff::unified(&place.name, "", content),
        Found::Text(before) => diff::unified(&place.name, &before.text, content),
        Found::Other { bytes, .. } => {
            format!("replaces {bytes} bytes that are not text\n{}", diff::unified(&place.name, "", content))
        }
    }
}

/// What the model is told. What it may not read, the answer does not show.
fn said(place: &Place, before: &Found, content: &str, diff: &str, may_be_read: bool) -> String {
    let lines = content.lines().count();
    match before {
        Found::Nothing => format!("created `{}`, {lines} lines", place.name),
        Found::Text(_) | Found::Other { .. } if !may_be_read => format!("replaced `{}`, {lines} lines", place.name),
        Found::Text(before) if before.text == content => format!("`{}` was the same already", place.name),
        Found::Text(_) => format!("replaced `{}`, {lines} lines\n{}", place.name, diff::for_model(diff)),
        Found::Other { bytes, .. } => format!("replaced `{}`, {lines} lines; {bytes} bytes before", place.name),
    }
}

/// Writes if what is there is still what was looked at.
pub(crate) fn put(place: &Place, seen: &Found, content: &str) -> Result<(), String> {
    let now = files::find(place)?;
    let access = match (seen, now) {
        (Found::Nothing, Found::Nothing) => Access::Usual,
        (Found::Text(seen), Found::Text(Document { text, permissions })) if seen.text == text => {
            Access::Like(permissions)
        }
        (Found::Other { bytes: then, changed: at, .. }, Found::Other { bytes, changed, permissions })
            if (*then, *at) == (bytes, changed) =>
        {
            Access::Like(permissions)
        }
        (Found::Nothing | Found::Text(_) | Found::Other { .. }, _) => {
            return Err(format!("`{}` changed since it was looked at; nothing was written, read it again", place.name));
        }
    };
    let fail = |error: std::io::Error| files::about(place, &error);
    let (Some(folder), Some(name)) = (place.below.parent(), place.below.file_name()) else {
        return Err(format!("`{}` is a folder; use `list`", place.name));
    };
    let folder = place.from.make_folders(folder).map_err(fail)?;
    folder.replace(name, content.as_bytes(), access).map_err(fail)
}
