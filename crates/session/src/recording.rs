//! Recordings (`--record`): the requests sent and the bytes received, with their
//! times. Headers are left out, so a recording contains no key.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use aside_core::event::Event;
use aside_engine::redact::RedactedStream;
use aside_engine::{Front, Redactor, Session, Update};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json, value::RawValue};

use crate::error::HintedError;

/// Records all traffic and passes the updates on to another front end.
pub struct RecordingFront<'a> {
    inner: &'a mut dyn Front,
    recording: Option<&'a mut Recording>,
}

pub struct Recording {
    file: BufWriter<File>,
    started: Instant,
    name: String,
    state: RecordingState,
    redactor: Redactor,
    /// Removes keys from received bytes, even if a key spans two chunks.
    received: RedactedStream,
}

/// A failed write ends the recording, not the turn, and is reported once.
#[derive(Debug, PartialEq, Eq)]
enum RecordingState {
    Writing,
    Failed(String),
    Reported,
}

impl Recording {
    /// Creates the file, which messages call `name`. Its first line names the provider and model.
    pub fn create(path: &Path, name: &str, session: &Session) -> Result<Recording, HintedError> {
        let name = name.to_owned();
        let failed = |error: std::io::Error| {
            if error.kind() == ErrorKind::AlreadyExists {
                return HintedError::new(format!("{name} already exists; recordings never overwrite files"))
                    .hint("name another file, or delete that one first");
            }
            HintedError::new(format!("cannot write {name}: {error}"))
        };
        let file = crate::atomic::create_private(path).map_err(failed)?;
        let (redactor, received) = (session.redactor.clone(), session.redactor.stream());
        let (file, started) = (BufWriter::new(file), Instant::now());
        let mut recording = Recording { file, started, name, state: RecordingState::Writing, redactor, received };
        recording.write_line(&header(session).to_string());
        Ok(recording)
    }

    fn write_line(&mut self, line: &str) {
        if self.state == RecordingState::Writing {
            let written = writeln!(self.file, "{line}");
            self.check(written);
        }
    }

    fn write_received(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let at = self.elapsed_ms();
        let line = match std::str::from_utf8(bytes) {
            Ok(text) => json!({ "at": at, "text": text }),
            Err(_) => json!({ "at": at, "base64": STANDARD.encode(bytes) }),
        };
        self.write_line(&line.to_string());
    }

    fn check(&mut self, written: std::io::Result<()>) {
        if let (Err(error), RecordingState::Writing) = (written, &self.state) {
            self.state = RecordingState::Failed(format!("the recording {} stops here: {error}", self.name));
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn elapsed_ms(&self) -> u128 {
        self.started.elapsed().as_millis()
    }
}

impl<'a> RecordingFront<'a> {
    pub fn new(inner: &'a mut dyn Front, recording: Option<&'a mut Recording>) -> RecordingFront<'a> {
        RecordingFront { inner, recording }
    }
}

impl Front for RecordingFront<'_> {
    fn on_update(&mut self, update: Update<'_>) {
        if let Some(recording) = &mut self.recording {
            match &update {
                Update::Received(bytes) => {
                    let bytes = recording.received.push(bytes);
                    recording.write_received(&bytes);
                }
                Update::Sending { step, encoded, body, .. } => {
                    let at = recording.elapsed_ms();
                    // The body must stay byte for byte as it was sent.
                    let body = RawValue::from_string((*body).to_owned()).ok();
                    let body = body.as_deref().map_or("null", RawValue::get);
                    let path = Value::from(encoded.path.as_str());
                    let line = format!("{{\"at\":{at},\"step\":{step},\"path\":{path},\"body\":{body}}}");
                    let line = recording.redactor.clean(&line).into_owned();
                    recording.write_line(&line);
                }
                Update::Event { event: Event::Ended(_), .. } => {
                    let rest = recording.received.finish();
                    recording.write_received(&rest);
                }
                Update::Event { .. }
                | Update::Retrying { .. }
                | Update::TurnNotice(_)
                | Update::Noted(_)
                | Update::LeftOut(_)
                | Update::ToolStarted(_)
                | Update::ToolOutput { .. }
                | Update::ToolEnded { .. }
                | Update::Asked(_)
                | Update::Answered { .. }
                | Update::Recorded(_)
                | Update::Compacted { .. }
                | Update::Ended(_) => (),
            }
        }
        self.inner.on_update(update);
    }

    fn flush(&mut self) {
        if let Some(recording) = &mut self.recording {
            let flushed = recording.file.flush();
            recording.check(flushed);
            if let RecordingState::Failed(what) = &recording.state {
                self.inner.on_update(Update::Noted(what));
                recording.state = RecordingState::Reported;
            }
        }
        self.inner.flush();
    }

    fn tick_interval(&self) -> Option<Duration> {
        self.inner.tick_interval()
    }

    fn tick(&mut self) {
        self.inner.tick();
    }
}

/// The first line of a recording.
fn header(session: &Session) -> Value {
    let endpoint = &session.endpoint;
    json!({
        "recording": 1,
        "provider": endpoint.provider,
        "dialect": endpoint.dialect.id,
        "protocol": endpoint.dialect.protocol.to_string(),
        "model": endpoint.model,
    })
}
