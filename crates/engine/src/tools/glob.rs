//! `glob`: finds files by a path pattern.

use std::ops::ControlFlow;
use std::sync::Arc;

use aside_core::conversation::ToolSpec;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::blocking;
use super::definition::ToolDefinition;
use super::walk::{self, PathPattern, WalkSkips};
use super::working_dir::{ResolvedPath, WorkingDir};
use super::{CallTarget, PlannedCall, Risk, TextOutcome, Tool, ToolEffect, ToolOutcome, ToolOutput};

const MAX_FILES: usize = 500;
const MAX_BYTES: usize = 48 * 1024;

const DEFINITION: ToolDefinition = ToolDefinition {
    name: "glob",
    description: "Finds files by a pattern such as src/**/*.rs. A pattern without a slash matches file names at any depth. Files ignored by .gitignore are skipped.",
    parameters: r#"{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"the folder to look in; without it, the working directory"}},"required":["pattern"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
}

pub(crate) struct GlobTool(pub(crate) WorkingDir);

struct GlobCall {
    resolved: ResolvedPath,
    pattern: Arc<PathPattern>,
}

impl Tool for GlobTool {
    fn spec(&self) -> ToolSpec {
        DEFINITION.spec()
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::Reads
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn PlannedCall>, String> {
        let Arguments { pattern, path } = DEFINITION.parse_arguments(arguments)?;
        let pattern = Arc::new(PathPattern::parse(&pattern)?);
        let resolved = self.0.resolve(path.as_deref().unwrap_or("."))?;
        Ok(Box::new(GlobCall { resolved, pattern }))
    }
}

impl PlannedCall for GlobCall {
    fn target(&self) -> CallTarget {
        self.resolved.target(Risk::Reads)
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            blocking(&cancel, move |stop| find(&self.resolved, &self.pattern, stop)).await.map(ToolOutput::from)
        })
    }
}

fn find(resolved: &ResolvedPath, pattern: &PathPattern, stop: &CancellationToken) -> TextOutcome {
    let (mut found, mut bytes, mut more) = (Vec::new(), 0, 0);
    let skips: WalkSkips = walk::files(resolved, stop, &mut |relative| {
        if pattern.matches(resolved, relative) {
            let name = walk::name(resolved, relative);
            if found.len() < MAX_FILES && bytes + name.len() < MAX_BYTES {
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
    found.extend(skips.notes());
    Ok(found.join("\n"))
}
