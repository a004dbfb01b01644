//! A file that says what happened, for whoever looks for a fault afterwards.
//! Nothing is written unless `ASIDE_LOG` asks for it. No key comes near it: it
//! hears what front ends hear.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use aside_core::block::Time;
use aside_core::event::Event;
use aside_core::turn::{Told, TurnEnd};
use aside_engine::Update;

use crate::report::{Report, redacted};
use crate::{atomic, keep, times};

/// How much is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What failed, was retried or repaired.
    Warn,
    /// Requests, tools and how turns end, too.
    Info,
    /// Every event of a stream but its text, and whole decisions.
    Debug,
}

impl Level {
    fn parse(word: &str) -> Option<Level> {
        match word {
            "warn" => Some(Level::Warn),
            "info" | "1" => Some(Level::Info),
            "debug" => Some(Level::Debug),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }
}

struct Log {
    most: Level,
    file: Mutex<File>,
}

static LOG: OnceLock<Log> = OnceLock::new();

fn path() -> Option<PathBuf> {
    Some(crate::user_files::state_folder()?.join("aside.log"))
}

/// Begins the log where `ASIDE_LOG` wants one.
pub(crate) fn begin() -> Result<(), Report> {
    let Some(word) = std::env::var_os("ASIDE_LOG").filter(|word| !word.is_empty() && word != "off") else {
        return Ok(());
    };
    let word = word.to_string_lossy().to_lowercase();
    let most = Level::parse(&word)
        .ok_or_else(|| Report::new(format!("ASIDE_LOG is `{word}`")).hint("use warn, info, debug or off"))?;
    let path = path().ok_or_else(|| {
        Report::new("there is no folder for the log").hint("set HOME, or ASIDE_STATE_DIR to a folder")
    })?;
    let file = open(&path).map_err(|error| {
        Report::new(format!("cannot write the log {}: {error}", path.display()))
            .hint("unset ASIDE_LOG to go on without")
    })?;
    // A second log in one process is the first.
    drop(LOG.set(Log { most, file: Mutex::new(file) }));
    note(Level::Info, || format!("aside {} begins, process {}", env!("CARGO_PKG_VERSION"), std::process::id()));
    Ok(())
}

fn open(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        atomic::private_folder(folder)?;
    }
    atomic::append_private(path)
}

/// One line, made only if somebody wants it.
pub(crate) fn note(level: Level, line: impl FnOnce() -> String) {
    let Some(log) = LOG.get().filter(|log| level <= log.most) else { return };
    let line = written(keep::now(), level, &redacted(&line()));
    let mut file = log.file.lock().unwrap_or_else(PoisonError::into_inner);
    // The log is no reason to stop what it tells of.
    drop(file.write_all(line.as_bytes()));
}

fn written(at: Time, level: Level, line: &str) -> String {
    let line = line.trim_end().replace('\n', "\n    ");
    format!("{} {:<5} {line}\n", times::rfc3339(at), level.word())
}

/// What the engine tells.
pub(crate) fn hear(update: &Update<'_>) {
    if LOG.get().is_none() {
        return;
    }
    match update {
        Update::Sending { step, model, encoded, body } => {
            let effort = encoded.effort.as_deref().unwrap_or("none");
            let sized = format!("{} bytes, ~{} tokens", body.len(), encoded.tokens);
            note(Level::Info, || {
                format!("request {step} to {}: model {model}, effort {effort}, {sized}", encoded.path)
            });
            encoded.unmet.iter().for_each(|unmet| note(Level::Warn, || format!("cannot be met: {unmet}")));
            encoded.notes.iter().for_each(|said| note(Level::Info, || said.clone()));
            encoded.decisions.iter().for_each(|decision| note(Level::Debug, || format!("{decision:?}")));
        }
        Update::Received(bytes) => note(Level::Debug, || format!("{} bytes came", bytes.len())),
        Update::Event { event, .. } => of_stream(event),
        Update::Retrying { after, attempt, why } => {
            note(Level::Warn, || format!("attempt {attempt} again after {after:?}: {why}"));
        }
        Update::Told(told) => note(Level::Warn, || match told {
            Told::Repaired { row, repair, said } => format!("repaired {row} by {}: {said}", repair.as_str()),
            Told::BrokenCall { name } => format!("the arguments of {name} are no JSON; it is not run"),
        }),
        Update::Noted(line) => note(Level::Warn, || (*line).to_owned()),
        Update::ToolStarted(call) => note(Level::Info, || format!("tool {} begins, {}", call.name, call.id.as_str())),
        Update::ToolEnded { call, result } => {
            let how = if result.is_error { "failed" } else { "done" };
            note(Level::Info, || format!("tool {} {how}, {}", call.name, call.id.as_str()));
        }
        Update::Asked(question) => note(Level::Info, || format!("asked about {}, {}", question.tool, question.id)),
        Update::Answered { id, permit } => note(Level::Info, || format!("answered {}, {id}", permit.as_str())),
        Update::Compacted { summarised, .. } => note(Level::Info, || format!("{summarised} messages summed up")),
        Update::Recorded(message) => {
            note(Level::Debug, || format!("recorded: {:?}, {} blocks", message.role, message.blocks.len()));
        }
        Update::Ended(TurnEnd::Answered) => note(Level::Info, || "the turn is answered".to_owned()),
        Update::Ended(end) => note(Level::Warn, || format!("the turn ends: {end:?}")),
    }
}

/// Text stays out: it is in the session already.
fn of_stream(event: &Event<'_>) {
    match event {
        Event::Noted(said) => note(Level::Warn, || format!("{said:?}")),
        Event::Grew { block, text } => note(Level::Debug, || format!("{block:?} grew by {} bytes", text.len())),
        Event::Usage(usage) => note(Level::Info, || format!("{usage:?}")),
        Event::Ended(end) => note(Level::Info, || format!("{end:?}")),
        Event::Opened { block, .. } => note(Level::Debug, || format!("{block:?} opened")),
        Event::Item { block, .. } => note(Level::Debug, || format!("{block:?} next item")),
        Event::Sealed { block, .. } => note(Level::Debug, || format!("{block:?} sealed")),
        Event::Refiled { block, to } => note(Level::Debug, || format!("{block:?} belongs to {to:?}")),
        Event::Restated { block, .. } => note(Level::Debug, || format!("{block:?} restated")),
        Event::Closed { block } => note(Level::Debug, || format!("{block:?} closed")),
        Event::Started { .. } | Event::Identified { .. } | Event::Kept { .. } | Event::Seen { .. } => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_when_and_how_grave_and_stays_one_entry() {
        assert_eq!(written(Time(0), Level::Warn, "one\ntwo\n"), "1970-01-01T00:00:00Z warn  one\n    two\n");
    }

    #[test]
    fn what_is_graver_is_written_too() {
        let words = ["warn", "info", "debug"].map(|word| Level::parse(word).unwrap());
        assert!(words.is_sorted());
        assert_eq!(Level::parse("loud"), None);
    }
}
