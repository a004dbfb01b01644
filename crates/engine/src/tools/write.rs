//! `write`: creates or replaces a whole file.

use std::sync::Arc;

use aside_core::conversation::ToolSpec;
use aside_core::counted::counted;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::blocking::blocking;
use super::definition::ToolDefinition;
use super::diff;
use super::file_changes::{ChangeObserver, FileChange};
use super::files::{self, ExistingFile, MAX_BYTES, TextFile};
use super::permissions::PermissionRules;
use super::working_dir::{ResolvedPath, WorkingDir};
use super::{CallTarget, PlannedCall, ProposedChange, Risk, Tool, ToolOutcome, ToolOutput};
use crate::dir::FileMode;

const DEFINITION: ToolDefinition = ToolDefinition {
    name: "write",
    description: "Writes a whole file. Creates missing parent directories and overwrites an existing file. To change part of a file, use edit.",
    parameters: r#"{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

pub(crate) struct WriteTool {
    pub(crate) work: WorkingDir,
    /// The diff for the model does not show files that `read` may not show.
    pub(crate) rules: Arc<PermissionRules>,
}

struct WriteCall {
    work: WorkingDir,
    rules: Arc<PermissionRules>,
    resolved: ResolvedPath,
    content: Arc<String>,
    seen: Option<PreviewedFile>,
}

/// The file as it was when the user saw the preview. It stays locked until it is written.
struct PreviewedFile {
    found: ExistingFile,
    /// The tool result.
    result: String,
    _lock: OwnedMutexGuard<()>,
}

impl Tool for WriteTool {
    fn spec(&self) -> ToolSpec {
        DEFINITION.spec()
    }

    fn notices(&self) -> Vec<String> {
        self.work.change_observer().map(ChangeObserver::take_notices).unwrap_or_default()
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn PlannedCall>, String> {
        let Arguments { path, content } = DEFINITION.parse_arguments(arguments)?;
        if content.len() > MAX_BYTES {
            return Err(format!("the content has {} bytes; at most {MAX_BYTES} are allowed", content.len()));
        }
        let resolved = self.work.resolve(&path)?;
        let (work, rules) = (self.work.clone(), Arc::clone(&self.rules));
        Ok(Box::new(WriteCall { work, rules, resolved, content: Arc::new(content), seen: None }))
    }
}

impl PlannedCall for WriteCall {
    fn target(&self) -> CallTarget {
        self.resolved.target(Risk::Writes)
    }

    fn preview(&mut self) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(async move {
            let lock = self.work.lock(&self.resolved.path).await;
            let (resolved, content) = (self.resolved.clone(), Arc::clone(&self.content));
            let may_be_read = self.rules.may_read("read", &resolved.name, &resolved.path.display().to_string());
            let stop = CancellationToken::new();
            let looked = blocking(&stop, move |_| {
                let found = files::read_existing(&resolved)?;
                let preview = preview(&resolved, &found, &content);
                let result = result_text(&resolved, &found, &content, &preview, may_be_read);
                Ok((found, result, preview))
            });
            let (found, result, preview) = looked.await?;
            self.seen = Some(PreviewedFile { found, result, _lock: lock });
            Ok(Some(preview))
        })
    }

    fn change(&self) -> Option<ProposedChange> {
        let before = match &self.seen.as_ref()?.found {
            ExistingFile::Text(before) => Some(before.text.clone()),
            ExistingFile::Missing | ExistingFile::Other { .. } => None,
        };
        let path = self.resolved.path.display().to_string();
        Some(ProposedChange { path, before, after: String::clone(&self.content) })
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            let Some(seen) = self.seen else { return Err("the file was not previewed first".to_owned()) };
            let (resolved, content, work) = (self.resolved, self.content, self.work);
            blocking(&cancel, move |_| {
                write_if_unchanged(&work, &resolved, &seen.found, &content)?;
                Ok(seen.result)
            })
            .await
            .map(ToolOutput::from)
        })
    }
}

/// The full diff for the user. If the old file is not text, the new content.
fn preview(resolved: &ResolvedPath, before: &ExistingFile, content: &str) -> String {
    match before {
        ExistingFile::Missing => diff::unified(&resolved.name, "", content),
        ExistingFile::Text(before) => diff::unified(&resolved.name, &before.text, content),
        ExistingFile::Other { bytes, .. } => {
            format!("replaces {bytes} bytes that are not text\n{}", diff::unified(&resolved.name, "", content))
        }
    }
}

/// The tool result. It does not show the content of files that the model may not read.
fn result_text(resolved: &ResolvedPath, before: &ExistingFile, content: &str, diff: &str, may_be_read: bool) -> String {
    let lines = counted(content.lines().count() as u64, "line");
    match before {
        ExistingFile::Missing => format!("created `{}`, {lines}", resolved.name),
        ExistingFile::Text(_) | ExistingFile::Other { .. } if !may_be_read => {
            format!("replaced `{}`, {lines}", resolved.name)
        }
        ExistingFile::Text(before) if before.text == content => format!("`{}` already has this content", resolved.name),
        ExistingFile::Text(_) => format!("replaced `{}`, {lines}\n{}", resolved.name, diff::for_model(diff)),
        ExistingFile::Other { bytes, .. } => {
            format!("replaced `{}`, {lines}; it had {} before", resolved.name, counted(*bytes, "byte"))
        }
    }
}

/// Writes only if the file has not changed since the preview.
pub(crate) fn write_if_unchanged(
    work: &WorkingDir,
    resolved: &ResolvedPath,
    seen: &ExistingFile,
    content: &str,
) -> Result<(), String> {
    let now = files::read_existing(resolved)?;
    let mode = match (seen, now) {
        (ExistingFile::Missing, ExistingFile::Missing) => FileMode::Default,
        (ExistingFile::Text(seen), ExistingFile::Text(TextFile { text, permissions })) if seen.text == text => {
            FileMode::SameAs(permissions)
        }
        (
            ExistingFile::Other { bytes: then, version: seen, .. },
            ExistingFile::Other { bytes, version, permissions },
        ) if (*then, *seen) == (bytes, version) => FileMode::SameAs(permissions),
        (ExistingFile::Missing | ExistingFile::Text(_) | ExistingFile::Other { .. }, _) => {
            return Err(format!(
                "`{}` changed since it was looked at; nothing was written, read it again",
                resolved.name
            ));
        }
    };
    let fail = |error: std::io::Error| files::describe_error(resolved, &error);
    let (Some(folder), Some(name)) = (resolved.relative.parent(), resolved.relative.file_name()) else {
        return Err(format!("`{}` is a folder; use `list`", resolved.name));
    };
    // Before the change, so that it can be undone even if the program is killed in between.
    if let (Some(observer), Some(change)) = (work.change_observer(), FileChange::new(resolved, seen, content)) {
        observer.before_change(&change);
    }
    let folder = resolved.base.make_folders(folder).map_err(fail)?;
    folder.replace(name, content.as_bytes(), mode).map_err(fail)
}
