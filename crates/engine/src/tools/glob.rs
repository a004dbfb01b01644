//! `glob`: files by the pattern of their paths.

use std::sync::Arc;

use aside_core::conversation::Tool as Spec;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::{STOPPED, blocking};
use super::files;
use super::form::Form;
use super::walk::{self, Pattern};
use super::workplace::{Place, Workplace};
use super::{Job, Outcome, Risk, Target, Tool};

const MOST: usize = 500;

const FORM: Form = Form {
    name: "glob",
    about: "Finds files by a pattern such as src/**/*.rs; one without a slash is about names at any depth. What .gitignore names is left out.",
    parameters: r#"{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"the folder to look in; without it, the working directory"}},"required":["pattern"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
}

pub(crate) struct Glob(pub(crate) Workplace);

struct Finding {
    work: Workplace,
    place: Place,
    pattern: Arc<Pattern>,
}

impl Tool for Glob {
    fn spec(&self) -> Spec {
        FORM.spec()
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn Job>, String> {
        let Arguments { pattern, path } = FORM.read(arguments)?;
        let pattern = Arc::new(Pattern::parse(&pattern)?);
        let place = self.0.place(path.as_deref().unwrap_or("."))?;
        Ok(Box::new(Finding { work: self.0.clone(), place, pattern }))
    }
}

impl Job for Finding {
    fn target(&self) -> Target {
        self.place.target(Risk::Reads)
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            blocking(&cancel, move |stop| {
                self.work.check_again(&self.place)?;
                find(&self.place, &self.pattern, stop)
            })
            .await
        })
    }
}

fn find(place: &Place, pattern: &Pattern, stop: &CancellationToken) -> Outcome {
    if !place.path.exists() {
        return Err(files::about(place, &std::io::ErrorKind::NotFound.into()));
    }
    let (mut found, mut more, mut unread) = (Vec::new(), 0, 0);
    for entry in walk::below(place) {
        if stop.is_cancelled() {
            return Err(STOPPED.to_owned());
        }
        match entry {
            Ok(entry) if walk::is_file(&entry) && pattern.matches(&place.path, entry.path()) => {
                if found.len() < MOST {
                    found.push(walk::name(place, entry.path()));
                } else {
                    more += 1;
                }
            }
            Ok(_) => (),
            Err(_) => unread += 1,
        }
    }
    if found.is_empty() {
        found.push("[no such file]".to_owned());
    }
    if more > 0 {
        found.push(format!("[and {more} more; narrow the pattern]"));
    }
    if unread > 0 {
        found.push(format!("[{unread} places could not be read]"));
    }
    Ok(found.join("\n"))
}
