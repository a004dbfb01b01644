//! `write`: a whole file, new or in the place of another.

use std::fs;

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
use super::{Job, Outcome, Risk, Target, Tool};
use crate::atomic::{self, Access};

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

pub(crate) struct Write(pub(crate) Workplace);

struct Writing {
    work: Workplace,
    place: Place,
    content: String,
    seen: Option<Seen>,
}

/// What was there when the user was shown the change. Nobody else of us
/// touches the file meanwhile.
struct Seen {
    found: Found,
    _alone: OwnedMutexGuard<()>,
}

impl Tool for Write {
    fn spec(&self) -> Spec {
        FORM.spec()
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn Job>, String> {
        let Arguments { path, content } = FORM.read(arguments)?;
        let place = self.0.place(&path)?;
        Ok(Box::new(Writing { work: self.0.clone(), place, content, seen: None }))
    }
}

impl Job for Writing {
    fn target(&self) -> Target {
        self.place.target(Risk::Writes)
    }

    fn look(&mut self) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(async move {
            let alone = self.work.lock(&self.place.path).await;
            let place = self.place.clone();
            let found = blocking(&CancellationToken::new(), move |_| files::find(&place)).await?;
            let preview = match &found {
                Found::Nothing => diff::unified(&self.place.name, "", &self.content),
                Found::Text(before) => diff::unified(&self.place.name, &before.text, &self.content),
                Found::Other { bytes, .. } => format!("replaces {bytes} bytes that are no text"),
            };
            self.seen = Some(Seen { found, _alone: alone });
            Ok(Some(preview))
        })
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let Some(seen) = self.seen else { return Err("nobody looked at the file first".to_owned()) };
            let (work, place, content) = (self.work, self.place, self.content);
            blocking(&cancel, move |_| {
                work.check_again(&place)?;
                put(&place, &seen.found, &content)?;
                Ok(said(&place, &seen.found, &content))
            })
            .await
        })
    }
}

fn said(place: &Place, before: &Found, content: &str) -> String {
    let lines = content.lines().count();
    match before {
        Found::Nothing => format!("created `{}`, {lines} lines", place.name),
        Found::Text(before) if before.text == content => format!("`{}` was the same already", place.name),
        Found::Text(before) => {
            format!("replaced `{}`, {lines} lines\n{}", place.name, diff::unified(&place.name, &before.text, content))
        }
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
    if let Some(folder) = place.path.parent() {
        fs::create_dir_all(folder).map_err(fail)?;
    }
    atomic::write(&place.path, content.as_bytes(), access).map_err(fail)
}
