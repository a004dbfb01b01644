//! `list`: what is in a folder.

use std::collections::BinaryHeap;
use std::ffi::OsString;

use aside_core::conversation::Tool as Spec;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::{STOPPED, blocking};
use super::files;
use super::form::Form;
use super::workplace::{Place, Workplace};
use super::{Job, Outcome, Risk, Target, Tool};
use crate::dir::{Dir, Entry, Kind};

const MOST: usize = 1000;
const MOST_BYTES: usize = 48 * 1024;

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
    place: Place,
}

impl Tool for List {
    fn spec(&self) -> Spec {
        FORM.spec()
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn Job>, String> {
        let Arguments { path } = FORM.read(arguments)?;
        let place = self.0.place(path.as_deref().unwrap_or("."))?;
        Ok(Box::new(Listing { place }))
    }
}

impl Job for Listing {
    fn target(&self) -> Target {
        self.place.target(Risk::Reads)
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome> {
        Box::pin(async move { blocking(&cancel, move |stop| list(&self.place, stop)).await })
    }
}

/// Keeps the first names of the folder, however many there are.
fn list(place: &Place, stop: &CancellationToken) -> Outcome {
    let fail = |error: std::io::Error| files::about(place, &error);
    let folder = place.from.folder(&place.below).map_err(fail)?;
    let (mut first, mut more) = (BinaryHeap::new(), 0);
    for entry in folder.entries().map_err(fail)? {
        if stop.is_cancelled() {
            return Err(STOPPED.to_owned());
        }
        let Entry { name, kind } = entry.map_err(fail)?;
        first.push((sorted_as(name, kind), kind));
        if first.len() > MOST {
            first.pop();
            more += 1;
        }
    }
    if first.is_empty() {
        return Ok("[an empty folder]".to_owned());
    }
    let (mut names, mut bytes) = (Vec::new(), 0);
    for (name, kind) in first.into_sorted_vec() {
        let name = shown(&folder, name, kind);
        bytes += name.len() + 1;
        if bytes > MOST_BYTES {
            more += 1;
        } else {
            names.push(name);
        }
    }
    if more > 0 {
        names.push(format!("[and {more} more]"));
    }
    Ok(names.join("\n"))
}

/// A folder stands where its name with the slash does.
fn sorted_as(mut name: OsString, kind: Kind) -> OsString {
    if kind == Kind::Folder {
        name.push("/");
    }
    name
}

fn shown(folder: &Dir, name: OsString, kind: Kind) -> String {
    let text = name.to_string_lossy();
    match kind {
        Kind::Link => match folder.link_target(&name) {
            Ok(target) => format!("{text} -> {}", target.display()),
            Err(_) => text.into_owned(),
        },
        Kind::File | Kind::Folder | Kind::Special => text.into_owned(),
    }
}
