//! `read`: shows the lines of a text file.

use std::io::{BufRead, BufReader, Read as _, Seek};
use std::sync::Arc;

use aside_core::conversation::ToolSpec;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::{CancellableFile, STOPPED, blocking};
use super::definition::ToolDefinition;
use super::files::{self, SNIFF_BYTES};
use super::open_files::{OpenFiles, is_saved};
use super::working_dir::{ResolvedPath, WorkingDir};
use super::{CallTarget, PlannedCall, Risk, TextOutcome, Tool, ToolEffect, ToolOutcome, ToolOutput};

const MAX_LINES: usize = 2000;
const MAX_BYTES: usize = 64 * 1024;
const MAX_IN_A_LINE: usize = 4 * 1024;

const DEFINITION: ToolDefinition = ToolDefinition {
    name: "read",
    description: "Reads a text file. Returns numbered lines. Use offset and limit to page through long files.",
    parameters: r#"{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer","minimum":1,"description":"first line, from 1"},"limit":{"type":"integer","minimum":1,"description":"lines, at most 2000"}},"required":["path"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

pub(crate) struct ReadTool(pub(crate) WorkingDir);

struct ReadCall {
    resolved: ResolvedPath,
    open_files: Option<Arc<dyn OpenFiles>>,
    first: usize,
    limit: usize,
}

impl Tool for ReadTool {
    fn spec(&self) -> ToolSpec {
        DEFINITION.spec()
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::Reads
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn PlannedCall>, String> {
        let Arguments { path, offset, limit } = DEFINITION.parse_arguments(arguments)?;
        let resolved = self.0.resolve(&path)?;
        let limit = limit.unwrap_or(MAX_LINES).clamp(1, MAX_LINES);
        let open_files = self.0.open_files();
        Ok(Box::new(ReadCall { resolved, open_files, first: offset.unwrap_or(1).max(1), limit }))
    }
}

impl PlannedCall for ReadCall {
    fn target(&self) -> CallTarget {
        self.resolved.target(Risk::Reads)
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            blocking(&cancel, move |stop| {
                let read = self.read(stop);
                if stop.is_cancelled() { Err(STOPPED.to_owned()) } else { read }
            })
            .await
            .map(ToolOutput::from)
        })
    }
}

impl ReadCall {
    fn read(&self, stop: &CancellationToken) -> TextOutcome {
        let (mut file, metadata) = files::open(&self.resolved)?;
        let size = metadata.len();
        let fail = |error: std::io::Error| files::describe_error(&self.resolved, &error);
        if let Some(kind) = files::image_type(&self.resolved.path) {
            return Ok(format!("[{kind}, {size} bytes: an image, not shown here]"));
        }
        let mut beginning = Vec::new();
        file.by_ref().take(SNIFF_BYTES as u64).read_to_end(&mut beginning).map_err(fail)?;
        if beginning.contains(&0) {
            return Ok(format!("[{size} bytes: a binary file, not shown]"));
        }
        file.rewind().map_err(fail)?;
        if let Some(text) = self.open_files.as_ref().and_then(|files| files.text(&self.resolved.path, stop)) {
            let mut saved = Vec::new();
            // Enough to see a difference; line ends may have two bytes.
            file.take(2 * text.len() as u64 + 2).read_to_end(&mut saved).map_err(fail)?;
            return self.editor_text(&text, &saved);
        }
        if beginning.is_empty() {
            return Ok("[an empty file]".to_owned());
        }
        self.lines(&mut BufReader::new(CancellableFile { file, stop }))
    }

    /// The text that an editor has, with a note if it is not saved.
    fn editor_text(&self, text: &str, saved: &[u8]) -> TextOutcome {
        let mut shown = match text {
            "" => "[an empty file]\n".to_owned(),
            text => self.lines(&mut text.as_bytes())?,
        };
        if !is_saved(text, saved) {
            shown.push_str("[this is the text in the user's editor; it is not saved, and the file on disk differs]\n");
        }
        Ok(shown)
    }

    fn lines(&self, file: &mut impl BufRead) -> TextOutcome {
        let mut shown = String::new();
        let mut has_invalid_utf8 = false;
        for number in 1.. {
            let line = next_line(file).map_err(|error| files::describe_error(&self.resolved, &error))?;
            let Some(line) = line else {
                if number <= self.first {
                    return Err(format!("`{}` has only {} lines", self.resolved.name, number - 1));
                }
                break;
            };
            if number < self.first {
                continue;
            }
            if number >= self.first.saturating_add(self.limit) || shown.len() >= MAX_BYTES {
                shown.push_str(&format!("[more lines follow; continue with offset {number}]\n"));
                break;
            }
            let text = String::from_utf8_lossy(&line.bytes);
            has_invalid_utf8 |= matches!(text, std::borrow::Cow::Owned(_)) && line.left_out == 0;
            shown.push_str(&format!("{number:>6}\t{text}"));
            if line.left_out > 0 {
                shown.push_str(&format!(" [… {} bytes of this line left out]", line.left_out));
            }
            shown.push('\n');
        }
        if has_invalid_utf8 {
            shown.push_str("[not all of it is UTF-8: \u{fffd} stands for other bytes]\n");
        }
        Ok(shown)
    }
}

struct FileLine {
    bytes: Vec<u8>,
    left_out: u64,
}

/// The next line without its ending, in bounded memory.
fn next_line(file: &mut impl BufRead) -> std::io::Result<Option<FileLine>> {
    let mut line = FileLine { bytes: Vec::new(), left_out: 0 };
    let mut has_bytes = false;
    loop {
        let buffer = file.fill_buf()?;
        if buffer.is_empty() {
            return Ok(has_bytes.then_some(line));
        }
        has_bytes = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let chunk = end.and_then(|end| buffer.get(..end)).unwrap_or(buffer);
        let used = chunk.len() + usize::from(end.is_some());
        let room = MAX_IN_A_LINE - line.bytes.len();
        line.bytes.extend(chunk.iter().take(room));
        line.left_out += chunk.len().saturating_sub(room) as u64;
        file.consume(used);
        if end.is_some() {
            if line.bytes.last() == Some(&b'\r') {
                line.bytes.pop();
            }
            return Ok(Some(line));
        }
    }
}
