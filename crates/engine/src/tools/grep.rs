//! `grep`: searches files, using ripgrep's libraries.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use aside_core::conversation::ToolSpec;
use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::{CancellableFile, STOPPED, blocking};
use super::bounded_output;
use super::definition::ToolDefinition;
use super::files::is_process_secret;
use super::permissions::PermissionRules;
use super::walk::{self, PathPattern, WalkSkips};
use super::working_dir::{PathScope, ResolvedPath, WorkingDir};
use super::{CallTarget, PlannedCall, Risk, TextOutcome, Tool, ToolEffect, ToolOutcome, ToolOutput};
use crate::dir::OpenedPath;

const MAX_MATCHES: usize = 200;
const MAX_BYTES: usize = 48 * 1024;
const MAX_IN_A_LINE: usize = 400;
const MAX_CONTEXT: usize = 20;
/// Files with longer lines are not searched.
const MAX_MEMORY: usize = 32 * 1024 * 1024;
/// The maximum length of a pattern, and the maximum size of its compiled form.
const MAX_PATTERN: usize = 4096;
const MAX_COMPILED: usize = 4 * 1024 * 1024;

const DEFINITION: ToolDefinition = ToolDefinition {
    name: "grep",
    description: "Searches files for a regular expression (Rust syntax), line by line. Binary files and files ignored by .gitignore are skipped.",
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

pub(crate) struct GrepTool {
    pub(crate) work: WorkingDir,
    /// A search does not show files that `read` may not show.
    pub(crate) rules: Arc<PermissionRules>,
}

struct GrepCall {
    rules: Arc<PermissionRules>,
    resolved: ResolvedPath,
    matcher: RegexMatcher,
    only: Option<PathPattern>,
    context: usize,
}

impl Tool for GrepTool {
    fn spec(&self) -> ToolSpec {
        DEFINITION.spec()
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::Reads
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn PlannedCall>, String> {
        let Arguments { pattern, path, glob, ignore_case, context } = DEFINITION.parse_arguments(arguments)?;
        let matcher = matcher(&pattern, ignore_case == Some(true))?;
        let only = glob.as_deref().map(PathPattern::parse).transpose()?;
        let resolved = self.work.resolve(path.as_deref().unwrap_or("."))?;
        let rules = Arc::clone(&self.rules);
        let context = context.unwrap_or(0).min(MAX_CONTEXT);
        Ok(Box::new(GrepCall { rules, resolved, matcher, only, context }))
    }
}

impl PlannedCall for GrepCall {
    fn target(&self) -> CallTarget {
        self.resolved.target(Risk::Reads)
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move { blocking(&cancel, move |stop| self.search(stop)).await.map(ToolOutput::from) })
    }
}

fn matcher(pattern: &str, ignore_case: bool) -> Result<RegexMatcher, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("the pattern has {} bytes; at most {MAX_PATTERN} are allowed", pattern.len()));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(ignore_case).line_terminator(Some(b'\n'));
    builder.size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED);
    builder.build(pattern).map_err(|error| format!("`{pattern}` is not a valid regular expression: {error}"))
}

impl GrepCall {
    fn search(&self, stop: &CancellationToken) -> TextOutcome {
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .binary_detection(BinaryDetection::quit(0))
            .before_context(self.context)
            .after_context(self.context)
            .heap_limit(Some(MAX_MEMORY))
            .build();
        let mut found = GrepOutput::default();
        let skips = walk::files(&self.resolved, stop, &mut |relative| {
            if self.only.as_ref().is_some_and(|only| !only.matches(&self.resolved, relative)) {
                return ControlFlow::Continue(());
            }
            found.file = walk::name(&self.resolved, relative);
            if !self.may_show(&found.file, relative) {
                found.not_permitted += 1;
                return ControlFlow::Continue(());
            }
            // Opened again from the folder that was checked, never through a link.
            let searched = match self.resolved.base.open_at(&walk::join(&self.resolved.relative, relative)) {
                Ok(OpenedPath::File(file, _)) => {
                    searcher.search_reader(&self.matcher, CancellableFile { file, stop }, &mut found)
                }
                Ok(OpenedPath::Folder | OpenedPath::Special) => Err(io::ErrorKind::InvalidInput.into()),
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
        Ok(found.text(skips))
    }

    fn may_show(&self, name: &str, relative: &Path) -> bool {
        let absolute = walk::join(&self.resolved.path, relative);
        let path = absolute.display().to_string();
        match self.resolved.scope {
            PathScope::Inside => self.rules.may_read(DEFINITION.name, name, &path),
            // The user approved the whole search, but deny rules still apply.
            PathScope::Outside => {
                !is_process_secret(&absolute)
                    && self.rules.forbidding_rule(&["read", DEFINITION.name], name, &path).is_none()
            }
        }
    }
}

#[derive(Default)]
struct GrepOutput {
    file: String,
    shown: String,
    matches: usize,
    unread: usize,
    /// Files that may not be read without permission.
    not_permitted: usize,
}

impl GrepOutput {
    fn is_full(&self) -> bool {
        self.matches >= MAX_MATCHES || self.shown.len() >= MAX_BYTES
    }

    fn line(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) {
        let text = bounded_output::truncated_line(bytes, MAX_IN_A_LINE);
        self.shown.push_str(&format!("{}{mark}{}{mark}{text}\n", self.file, number.unwrap_or(0)));
    }

    fn text(mut self, mut skips: WalkSkips) -> String {
        if self.matches == 0 {
            self.shown.push_str("[no match]\n");
        }
        if self.is_full() {
            self.shown.push_str(&format!("[stopped after {} matches; narrow the search]\n", self.matches));
        }
        if self.not_permitted > 0 {
            self.shown.push_str(&format!("[{} files may not be read and were not searched]\n", self.not_permitted));
        }
        skips.unread += self.unread;
        for note in skips.notes() {
            self.shown.push_str(&note);
            self.shown.push('\n');
        }
        self.shown
    }
}

impl Sink for GrepOutput {
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
    use crate::test_dir::TestDir;

    #[test]
    fn l4_a_search_that_is_cancelled_stops() {
        let test_dir = TestDir::new("grep-cancelled");
        fs::write(test_dir.path().join("a"), "needle\n").unwrap();
        let work = WorkingDir::open(test_dir.path()).unwrap();
        let resolved = work.resolve(".").unwrap();
        let matcher = RegexMatcher::new("needle").unwrap();
        let search = GrepCall { rules: Arc::default(), resolved, matcher, only: None, context: 0 };
        let stop = CancellationToken::new();
        assert_eq!(search.search(&stop), Ok("a:1:needle\n".to_owned()));
        stop.cancel();
        assert_eq!(search.search(&stop), Err(STOPPED.to_owned()));
    }
}
