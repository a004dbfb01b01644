//! The flight recorder (`--record`): what was sent and what came, byte for byte
//! and with its time. Headers are left out, so no key is in it.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use aside_core::event::Event;
use aside_engine::redact::RedactedStream;
use aside_engine::{Front, Redactor, Update};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json, value::RawValue};

use crate::report::Report;

/// Writes a recording beside what another front end shows.
pub(crate) struct Recorder<'a> {
    inner: &'a mut dyn Front,
    tape: Option<&'a mut Tape>,
}

pub(crate) struct Tape {
    file: BufWriter<File>,
    began: Instant,
    name: String,
    state: State,
    redactor: Redactor,
    /// What came, without keys, even if one is cut in two.
    came: RedactedStream,
}

/// What cannot be written is said once; the turn goes on.
#[derive(Debug, PartialEq, Eq)]
enum State {
    Sound,
    Broken(String),
    Said,
}

impl Tape {
    /// Begins a recording; `about` says who was asked.
    pub(crate) fn create(path: &Path, about: &Value, redactor: &Redactor) -> Result<Tape, Report> {
        let name = path.display().to_string();
        let failed = |error: std::io::Error| {
            if error.kind() == ErrorKind::AlreadyExists {
                return Report::new(format!("{name} is there already; a recording replaces no file"))
                    .hint("name another file, or delete that one first");
            }
            Report::new(format!("cannot write {name}: {error}"))
        };
        let file = crate::atomic::create_private(path).map_err(failed)?;
        let (redactor, came) = (redactor.clone(), redactor.stream());
        let (file, began) = (BufWriter::new(file), Instant::now());
        let mut tape = Tape { file, began, name, state: State::Sound, redactor, came };
        tape.line(&about.to_string());
        Ok(tape)
    }

    fn line(&mut self, line: &str) {
        if self.state == State::Sound {
            let written = writeln!(self.file, "{line}");
            self.check(written);
        }
    }

    fn received(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let at = self.at();
        let line = match std::str::from_utf8(bytes) {
            Ok(text) => json!({ "at": at, "text": text }),
            Err(_) => json!({ "at": at, "base64": STANDARD.encode(bytes) }),
        };
        self.line(&line.to_string());
    }

    fn check(&mut self, written: std::io::Result<()>) {
        if let (Err(error), State::Sound) = (written, &self.state) {
            self.state = State::Broken(format!("the recording {} stops here: {error}", self.name));
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn at(&self) -> u128 {
        self.began.elapsed().as_millis()
    }
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(inner: &'a mut dyn Front, tape: Option<&'a mut Tape>) -> Recorder<'a> {
        Recorder { inner, tape }
    }
}

impl Front for Recorder<'_> {
    fn hear(&mut self, update: Update<'_>) {
        if let Some(tape) = &mut self.tape {
            match &update {
                Update::Received(bytes) => {
                    let bytes = tape.came.push(bytes);
                    tape.received(&bytes);
                }
                Update::Sending { step, encoded, body, .. } => {
                    let at = tape.at();
                    // The body stays as it is sent, to the byte.
                    let body = RawValue::from_string((*body).to_owned()).ok();
                    let body = body.as_deref().map_or("null", RawValue::get);
                    let path = Value::from(encoded.path.as_str());
                    let line = format!("{{\"at\":{at},\"step\":{step},\"path\":{path},\"body\":{body}}}");
                    let line = tape.redactor.clean(&line).into_owned();
                    tape.line(&line);
                }
                Update::Event { event: Event::Ended(_), .. } => {
                    let rest = tape.came.finish();
                    tape.received(&rest);
                }
                Update::Event { .. }
                | Update::Retrying { .. }
                | Update::Told(_)
                | Update::Noted(_)
                | Update::ToolStarted(_)
                | Update::ToolEnded { .. }
                | Update::Asked(_)
                | Update::Answered { .. }
                | Update::Recorded(_)
                | Update::Compacted { .. }
                | Update::Ended(_) => (),
            }
        }
        self.inner.hear(update);
    }

    fn rest(&mut self) {
        if let Some(tape) = &mut self.tape {
            let flushed = tape.file.flush();
            tape.check(flushed);
            if let State::Broken(what) = &tape.state {
                self.inner.hear(Update::Noted(what));
                tape.state = State::Said;
            }
        }
        self.inner.rest();
    }

    fn beat(&self) -> Option<Duration> {
        self.inner.beat()
    }

    fn tick(&mut self) {
        self.inner.tick();
    }
}
