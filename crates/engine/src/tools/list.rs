//! `list`: what is in a folder.

use std::fs;

use aside_core::conversation::Tool as Spec;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::{STOPPED, blocking};
use super::files;
use super::form::Form;
use super::workplace::{Place, Workplace};
use super::{Job, Outcome, Risk, Target, Tool};

const MOST: usize = 1000;

const FORM: Form = Form {
    name: "list",
    about: "Lists a folder: folders end in /, links show where they lead. For more than one level, use glob.",
    parameters: r#"{"type":"object","properties":{"path":{"type":"string","description":"without it, the working directory"}}}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: Option<String>,
}

pub(crate) struct List(pub(crate) Workplace);

struct Listing {
    work: Workplace,
    place: Place,
}

impl Tool for List {
    fn spec(&self) -> Spec {
        FORM.spec()
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn Job>, String> {
        let Arguments { path } = FORM.read(arguments)?;
        let place = self.0.place(path.as_deref().unwrap_or("."))?;
        Ok(Box::new(Listing { work: self.0.clone(), place }))
    }
}

impl Job for Listing {
    fn target(&self) -> Target {
        self.place.target(Risk::Reads)
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            blocking(&cancel, move |stop| {
                self.work.check_again(&self.place)?;
                list(&self.place, stop)
            })
            .await
        })
    }
}

fn list(place: &Place, stop: &CancellationToken) -> Outcome {
    let fail = |error: std::io::Error| files::about(place, &error);
    let mut names = Vec::new();
    for entry in fs::read_dir(&place.path).map_err(fail)? {
        if stop.is_cancelled() {
            return Err(STOPPED.to_owned());
        }
        names.push(name(&entry.map_err(fail)?));
    }
    if names.is_empty() {
        return Ok("[an empty folder]".to_owned());
    }
    names.sort_unstable();
    let more = names.len().saturating_sub(MOST);
    names.truncate(MOST);
    if more > 0 {
        names.push(format!("[and {more} more]"));
    }
    Ok(names.join("\n"))
}

fn name(entry: &fs::DirEntry) -> String {
    let name = entry.file_name().to_string_lossy().into_owned();
    match entry.file_type() {
        Ok(kind) if kind.is_dir() => format!("{name}/"),
        Ok(kind) if kind.is_symlink() => match fs::read_link(entry.path()) {
            Ok(target) => format!("{name} -> {}", target.display()),
            Err(_) => name,
        },
        Ok(_) | Err(_) => name,
    }
}
