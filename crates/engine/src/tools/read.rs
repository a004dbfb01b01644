//! `read`: the lines of a text file.

use std::io::{BufRead, BufReader, Read as _, Seek};

use aside_core::conversation::Tool as Spec;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::{STOPPED, Stoppable, blocking};
use super::files::{self, SNIFF};
use super::form::Form;
use super::workplace::{Place, Workplace};
use super::{Job, Outcome, Risk, Target, Tool};

const MOST_LINES: usize = 2000;
const MOST_BYTES: usize = 64 * 1024;
const MOST_IN_A_LINE: usize = 4 * 1024;

const FORM: Form = Form {
    name: "read",
    about: "Reads a text file. Lines come numbered; long files in parts, by offset and limit.",
    parameters: r#"{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer","minimum":1,"description":"first line, from 1"},"limit":{"type":"integer","minimum":1,"description":"lines, at most 2000"}},"required":["path"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

pub(crate) struct Read(pub(crate) Workplace);

struct Reading {
    place: Place,
    first: usize,
    limit: usize,
}

impl Tool for Read {
    fn spec(&self) -> Spec {
        FORM.spec()
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn Job>, String> {
        let Arguments { path, offset, limit } = FORM.read(arguments)?;
        let place = self.0.place(&path)?;
        let limit = limit.unwrap_or(MOST_LINES).clamp(1, MOST_LINES);
        Ok(Box::new(Reading { place, first: offset.unwrap_or(1).max(1), limit }))
    }
}

impl Job for Reading {
    fn target(&self) -> Target {
        self.place.target(Risk::Reads)
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            blocking(&cancel, move |stop| {
                let read = self.read(stop);
                if stop.is_cancelled() { Err(STOPPED.to_owned()) } else { read }
            })
            .await
        })
    }
}

impl Reading {
    fn read(&self, stop: &CancellationToken) -> Outcome {
        let (mut file, metadata) = files::open(&self.place)?;
        let size = metadata.len();
        let fail = |error: std::io::Error| files::about(&self.place, &error);
        if let Some(kind) = files::image_type(&self.place.path) {
            return Ok(format!("[{kind}, {size} bytes: an image, not shown here]"));
        }
        let mut beginning = Vec::new();
        file.by_ref().take(SNIFF as u64).read_to_end(&mut beginning).map_err(fail)?;
        if beginning.contains(&0) {
            return Ok(format!("[{size} bytes: a binary file, not shown]"));
        }
        if beginning.is_empty() {
            return Ok("[an empty file]".to_owned());
        }
        file.rewind().map_err(fail)?;
        self.lines(&mut BufReader::new(Stoppable { file, stop }))
    }

    fn lines(&self, file: &mut impl BufRead) -> Outcome {
        let mut shown = String::new();
        let mut odd = false;
        for number in 1.. {
            let line = next_line(file).map_err(|error| files::about(&self.place, &error))?;
            let Some(line) = line else {
                if number <= self.first {
                    return Err(format!("`{}` has only {} lines", self.place.name, number - 1));
                }
                break;
            };
            if number < self.first {
                continue;
            }
            if number >= self.first.saturating_add(self.limit) || shown.len() >= MOST_BYTES {
                shown.push_str(&format!("[the file goes on; read more with offset {number}]\n"));
                break;
            }
            let text = String::from_utf8_lossy(&line.bytes);
            odd |= matches!(text, std::borrow::Cow::Owned(_)) && line.left_out == 0;
            shown.push_str(&format!("{number:>6}\t{text}"));
            if line.left_out > 0 {
                shown.push_str(&format!(" [… {} bytes of this line left out]", line.left_out));
            }
            shown.push('\n');
        }
        if odd {
            shown.push_str("[not all of it is UTF-8: \u{fffd} stands for other bytes]\n");
        }
        Ok(shown)
    }
}

struct Line {
    bytes: Vec<u8>,
    left_out: u64,
}

/// The next line without its end, in bounded memory however long it is.
fn next_line(file: &mut impl BufRead) -> std::io::Result<Option<Line>> {
    let mut line = Line { bytes: Vec::new(), left_out: 0 };
    let mut any = false;
    loop {
        let buffer = file.fill_buf()?;
        if buffer.is_empty() {
            return Ok(any.then_some(line));
        }
        any = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let piece = end.and_then(|end| buffer.get(..end)).unwrap_or(buffer);
        let used = piece.len() + usize::from(end.is_some());
        let room = MOST_IN_A_LINE - line.bytes.len();
        line.bytes.extend(piece.iter().take(room));
        line.left_out += piece.len().saturating_sub(room) as u64;
        file.consume(used);
        if end.is_some() {
            if line.bytes.last() == Some(&b'\r') {
                line.bytes.pop();
            }
            return Ok(Some(line));
        }
    }
}
