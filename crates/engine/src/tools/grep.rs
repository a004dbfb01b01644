//! `grep`: lines that match, with ripgrep's own libraries.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use aside_core::conversation::Tool as Spec;
use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::{STOPPED, Stoppable, blocking};
use super::files::is_of_a_process;
use super::form::Form;
use super::kept;
use super::permissions::Rules;
use super::walk::{self, Passed, Pattern};
use super::workplace::{Place, Side, Workplace};
use super::{Job, Outcome, Risk, Target, Tool};
use crate::dir::Opened;

const MOST_MATCHES: usize = 200;
const MOST_BYTES: usize = 48 * 1024;
const MOST_IN_A_LINE: usize = 400;
const MOST_CONTEXT: usize = 20;
/// A file that is one endless line is not searched.
const MOST_MEMORY: usize = 32 * 1024 * 1024;
/// The longest expression, and the most that it and its states may take once
/// they are compiled.
const MOST_PATTERN: usize = 4096;
const MOST_COMPILED: usize = 4 * 1024 * 1024;

const FORM: Form = Form {
    name: "grep",
    about: "Searches files for a regular expression (Rust syntax), line by line. What .gitignore names and binary files are left out.",
    parameters: r#"{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"a folder or file; without it, the working directory"},"glob":{"type":"string","description":"only files like this, such as *.rs"},"ignore_case":{"type":"boolean"},"context":{"type":"integer","minimum":0,"description":"lines around each match"}},"required":["pattern"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    ignore_case: Option<bool>,
    context: Option<usize>,
}

pub(crate) struct Grep {
    pub(crate) work: Workplace,
    /// What `read` may not show, a search does not show either.
    pub(crate) rules: Arc<Rules>,
}

struct Searching {
    rules: Arc<Rules>,
    place: Place,
    matcher: RegexMatcher,
    only: Option<Pattern>,
    context: usize,
}

impl Tool for Grep {
    fn spec(&self) -> Spec {
        FORM.spec()
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn Job>, String> {
        let Arguments { pattern, path, glob, ignore_case, context } = FORM.read(arguments)?;
        let matcher = matcher(&pattern, ignore_case == Some(true))?;
        let only = glob.as_deref().map(Pattern::parse).transpose()?;
        let place = self.work.place(path.as_deref().unwrap_or("."))?;
        let rules = Arc::clone(&self.rules);
        let context = context.unwrap_or(0).min(MOST_CONTEXT);
        Ok(Box::new(Searching { rules, place, matcher, only, context }))
    }
}

impl Job for Searching {
    fn target(&self) -> Target {
        self.place.target(Risk::Reads)
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome> {
        Box::pin(async move { blocking(&cancel, move |stop| self.search(stop)).await })
    }
}

fn matcher(pattern: &str, ignore_case: bool) -> Result<RegexMatcher, String> {
    if pattern.len() > MOST_PATTERN {
        return Err(format!("the pattern has {} bytes; at most {MOST_PATTERN} are possible", pattern.len()));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(ignore_case).line_terminator(Some(b'\n'));
    builder.size_limit(MOST_COMPILED).dfa_size_limit(MOST_COMPILED);
    builder.build(pattern).map_err(|error| format!("`{pattern}` is no regular expression: {error}"))
}

impl Searching {
    fn search(&self, stop: &CancellationToken) -> Outcome {
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .binary_detection(BinaryDetection::quit(0))
            .before_context(self.context)
            .after_context(self.context)
            .heap_limit(Some(MOST_MEMORY))
            .build();
        let mut found = Found::default();
        let passed = walk::files(&self.place, stop, &mut |below| {
            if self.only.as_ref().is_some_and(|only| !only.matches(&self.place, below)) {
                return ControlFlow::Continue(());
            }
            found.file = walk::name(&self.place, below);
            if !self.may_show(&found.file, below) {
                found.kept_back += 1;
                return ControlFlow::Continue(());
            }
            // Opened anew from the folder that was judged, never through a link.
            let searched = match self.place.from.look(&walk::join(&self.place.below, below)) {
                Ok(Opened::File(file, _)) => {
                    searcher.search_reader(&self.matcher, Stoppable { file, stop }, &mut found)
                }
                Ok(Opened::Folder | Opened::Special) => Err(io::ErrorKind::InvalidInput.into()),
                Err(error) => Err(error),
            };
            if searched.is_err() {
                found.unread += 1;
            }
            if found.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if stop.is_cancelled() {
            return Err(STOPPED.to_owned());
        }
        Ok(found.text(passed))
    }

    fn may_show(&self, name: &str, below: &Path) -> bool {
        let whole = walk::join(&self.place.path, below);
        let path = whole.display().to_string();
        match self.place.side {
            Side::Inside => self.rules.lets_be_read(FORM.name, name, &path),
            // The user was asked about all of it, but a rule that forbids counts.
            Side::Outside => {
                !is_of_a_process(&whole) && self.rules.forbids(&["read", FORM.name], name, &path).is_none()
            }
        }
    }
}

#[derive(Default)]
struct Found {
    file: String,
    shown: String,
    matches: usize,
    unread: usize,
    /// Files that may not be read without asking.
    kept_back: usize,
}

impl Found {
    fn is_full(&self) -> bool {
        self.matches >= MOST_MATCHES || self.shown.len() >= MOST_BYTES
    }

    fn line(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) {
        let text = kept::bytes_of_line(bytes, MOST_IN_A_LINE);
        self.shown.push_str(&format!("{}{mark}{}{mark}{text}\n", self.file, number.unwrap_or(0)));
    }

    fn text(mut self, mut passed: Passed) -> String {
        if self.matches == 0 {
            self.shown.push_str("[no match]\n");
        }
        if self.is_full() {
            self.shown.push_str(&format!("[stopped after {} matches; narrow the search]\n", self.matches));
        }
        if self.kept_back > 0 {
            self.shown.push_str(&format!("[{} files may not be read and were not searched]\n", self.kept_back));
        }
        passed.unread += self.unread;
        for note in passed.notes() {
            self.shown.push_str(&note);
            self.shown.push('\n');
        }
        self.shown
    }
}

impl Sink for Found {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.matches += 1;
        self.line(found.line_number(), ':', found.bytes());
        Ok(!self.is_full())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.line(context.line_number(), '-', context.bytes());
        Ok(!self.is_full())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn l4_a_search_that_is_cancelled_stops() {
        let scratch = Scratch::new("grep-cancelled");
        fs::write(scratch.path().join("a"), "needle\n").unwrap();
        let work = Workplace::open(scratch.path()).unwrap();
        let place = work.place(".").unwrap();
        let matcher = RegexMatcher::new("needle").unwrap();
        let search = Searching { rules: Arc::default(), place, matcher, only: None, context: 0 };
        let stop = CancellationToken::new();
        assert_eq!(search.search(&stop), Ok("a:1:needle\n".to_owned()));
        stop.cancel();
        assert_eq!(search.search(&stop), Err(STOPPED.to_owned()));
    }
}
