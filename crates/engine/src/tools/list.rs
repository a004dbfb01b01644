//! `list`: shows the entries of a folder.

use std::collections::BinaryHeap;
use std::ffi::OsString;

use aside_core::conversation::ToolSpec;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::{STOPPED, blocking};
use super::definition::ToolDefinition;
use super::files;
use super::working_dir::{ResolvedPath, WorkingDir};
use super::{CallTarget, PlannedCall, Risk, TextOutcome, Tool, ToolEffect, ToolOutcome, ToolOutput};
use crate::dir::{Dir, DirEntry, EntryKind};

const MAX_ENTRIES: usize = 1000;
const MAX_BYTES: usize = 48 * 1024;

const DEFINITION: ToolDefinition = ToolDefinition {
    name: "list",
    description: "Lists a folder: folders end in /, links show where they lead. For more than one level, use glob.",
    parameters: r#"{"type":"object","properties":{"path":{"type":"string","description":"without it, the working directory"}}}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: Option<String>,
}

pub(crate) struct ListTool(pub(crate) WorkingDir);

struct ListCall {
    resolved: ResolvedPath,
}

impl Tool for ListTool {
    fn spec(&self) -> ToolSpec {
        DEFINITION.spec()
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::Reads
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn PlannedCall>, String> {
        let Arguments { path } = DEFINITION.parse_arguments(arguments)?;
        let resolved = self.0.resolve(path.as_deref().unwrap_or("."))?;
        Ok(Box::new(ListCall { resolved }))
    }
}

impl PlannedCall for ListCall {
    fn target(&self) -> CallTarget {
        self.resolved.target(Risk::Reads)
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move { blocking(&cancel, move |stop| list(&self.resolved, stop)).await.map(ToolOutput::from) })
    }
}

/// Shows the first names of the folder, in bounded memory.
fn list(resolved: &ResolvedPath, stop: &CancellationToken) -> TextOutcome {
    let fail = |error: std::io::Error| files::describe_error(resolved, &error);
    let folder = resolved.base.open_folder(&resolved.relative).map_err(fail)?;
    let (mut first, mut more) = (BinaryHeap::new(), 0);
    for entry in folder.entries().map_err(fail)? {
        if stop.is_cancelled() {
            return Err(STOPPED.to_owned());
        }
        let DirEntry { name, kind } = entry.map_err(fail)?;
        first.push((sort_key(name, kind), kind));
        if first.len() > MAX_ENTRIES {
            first.pop();
            more += 1;
        }
    }
    if first.is_empty() {
        return Ok("[an empty folder]".to_owned());
    }
    let (mut names, mut bytes) = (Vec::new(), 0);
    for (name, kind) in first.into_sorted_vec() {
        let name = display_entry(&folder, name, kind);
        bytes += name.len() + 1;
        if bytes > MAX_BYTES {
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

/// Sorts a folder by its name with a trailing slash.
fn sort_key(mut name: OsString, kind: EntryKind) -> OsString {
    if kind == EntryKind::Folder {
        name.push("/");
    }
    name
}

fn display_entry(folder: &Dir, name: OsString, kind: EntryKind) -> String {
    let text = name.to_string_lossy();
    match kind {
        EntryKind::Link => match folder.link_target(&name) {
            Ok(target) => format!("{text} -> {}", target.display()),
            Err(_) => text.into_owned(),
        },
        EntryKind::File | EntryKind::Folder | EntryKind::Special => text.into_owned(),
    }
}
