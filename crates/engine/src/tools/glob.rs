//! `glob`: files by the pattern of their paths.

use std::ops::ControlFlow;
use std::sync::Arc;

use aside_core::conversation::Tool as Spec;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::blocking;
use super::form::Form;
use super::walk::{self, Passed, Pattern};
use super::workplace::{Place, Workplace};
use super::{Job, Outcome, Risk, Target, Tool};

const MOST: usize = 500;
const MOST_BYTES: usize = 48 * 1024;

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
        Ok(Box::new(Finding { place, pattern }))
    }
}

impl Job for Finding {
    fn target(&self) -> Target {
        self.place.target(Risk::Reads)
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome> {
        Box::pin(async move { blocking(&cancel, move |stop| find(&self.place, &self.pattern, stop)).await })
    }
}

fn find(place: &Place, pattern: &Pattern, stop: &CancellationToken) -> Outcome {
    let (mut found, mut bytes, mut more) = (Vec::new(), 0, 0);
    let passed: Passed = walk::files(place, stop, &mut |below| {
        if pattern.matches(place, below) {
            let name = walk::name(place, below);
            if found.len() < MOST && bytes + name.len() < MOST_BYTES {
                bytes += name.len() + 1;
                found.push(name);
            } else {
                more += 1;
            }
        }
        ControlFlow::Continue(())
    })?;
    if found.is_empty() {
        found.push("[no such file]".to_owned());
    }
    if more > 0 {
        found.push(format!("[and {more} more; narrow the pattern]"));
    }
    found.extend(passed.notes());
    Ok(found.join("\n"))
}
