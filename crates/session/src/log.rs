//! The log file, for finding the cause of a failure. Written only if `ASIDE_LOG` is
//! set. It contains only what front ends receive, so it contains no keys.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use aside_core::block::Time;
use aside_core::event::{Event, NoteCode};
use aside_core::turn::{TurnEnd, TurnNotice};
use aside_engine::Update;

use crate::error::{HintedError, redacted};
use crate::user_files::UserFolders;
use crate::{atomic, session_recorder, times};

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Failures, retries and repairs.
    Warn,
    /// Also requests, tools and the ends of turns.
    Info,
    /// Also every event without its text, and all decisions.
    Debug,
}

impl LogLevel {
    fn parse(word: &str) -> Option<LogLevel> {
        match word {
            "warn" => Some(LogLevel::Warn),
            "info" | "1" => Some(LogLevel::Info),
            "debug" => Some(LogLevel::Debug),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
        }
    }
}

struct Log {
    max_level: LogLevel,
    file: Mutex<File>,
}

static LOG: OnceLock<Log> = OnceLock::new();

/// Opens the log if `ASIDE_LOG` is set.
pub fn init(folders: &UserFolders) -> Result<(), HintedError> {
    let Some(word) = std::env::var_os("ASIDE_LOG").filter(|word| !word.is_empty() && word != "off") else {
        return Ok(());
    };
    let word = word.to_string_lossy().to_lowercase();
    let max_level = LogLevel::parse(&word)
        .ok_or_else(|| HintedError::new(format!("ASIDE_LOG is `{word}`")).hint("use warn, info, debug or off"))?;
    let path = folders.state.as_ref().map(|folder| folder.join("aside.log")).ok_or_else(|| {
        HintedError::new("there is no folder for the log").hint("set HOME, or ASIDE_STATE_DIR to a folder")
    })?;
    let file = open(&path).map_err(|error| {
        HintedError::new(format!("cannot write the log {}: {error}", path.display()))
            .hint("unset ASIDE_LOG to continue without it")
    })?;
    // Already open.
    drop(LOG.set(Log { max_level, file: Mutex::new(file) }));
    write(LogLevel::Info, || format!("aside {} begins, process {}", env!("CARGO_PKG_VERSION"), std::process::id()));
    Ok(())
}

fn open(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        atomic::private_folder(folder)?;
    }
    atomic::append_private(path)
}

/// Writes a line. `line` is called only if the level is enabled.
pub fn write(level: LogLevel, line: impl FnOnce() -> String) {
    let Some(log) = LOG.get().filter(|log| level <= log.max_level) else { return };
    let line = format_line(session_recorder::now(), level, &redacted(&line()));
    let mut file = log.file.lock().unwrap_or_else(PoisonError::into_inner);
    // A log that cannot be written must not stop the program.
    drop(file.write_all(line.as_bytes()));
}

fn format_line(at: Time, level: LogLevel, line: &str) -> String {
    let line = line.trim_end().replace('\n', "\n    ");
    format!("{} {:<5} {line}\n", times::rfc3339(at), level.word())
}

/// Logs an update of the engine.
pub(crate) fn write_update(update: &Update<'_>) {
    if LOG.get().is_none() {
        return;
    }
    match update {
        Update::Sending { step, model, encoded, body } => {
            let effort = encoded.effort.as_deref().unwrap_or("none");
            let sized = format!("{} bytes, ~{} tokens", body.len(), encoded.tokens);
            write(LogLevel::Info, || {
                format!("request {step} to {}: model {model}, effort {effort}, {sized}", encoded.path)
            });
            encoded.unmet.iter().for_each(|unmet| write(LogLevel::Warn, || format!("cannot be met: {unmet}")));
            encoded.notes.iter().for_each(|note| write(LogLevel::Info, || note.clone()));
            encoded.decisions.iter().for_each(|decision| write(LogLevel::Debug, || format!("{decision:?}")));
        }
        Update::Received(bytes) => write(LogLevel::Debug, || format!("received {} bytes", bytes.len())),
        Update::Event { event, .. } => write_event(event),
        Update::Retrying { after, attempt, why } => {
            write(LogLevel::Warn, || format!("attempt {attempt} again after {after:?}: {why}"));
        }
        Update::TurnNotice(notice) => write(LogLevel::Warn, || match notice {
            TurnNotice::Repaired { row, repair, refusal } => {
                format!("repaired {row} by {}: {refusal}", repair.as_str())
            }
            TurnNotice::BrokenCall { name } => format!("the arguments of {name} are not JSON; it is not run"),
        }),
        Update::Noted(line) => write(LogLevel::Warn, || (*line).to_owned()),
        Update::LeftOut(loss) => write(LogLevel::Warn, || loss.to_string()),
        Update::ToolStarted(call) => {
            write(LogLevel::Info, || format!("tool {} begins, {}", call.name, call.id.as_str()))
        }
        // Its result is logged when it ends.
        Update::ToolOutput { .. } => (),
        Update::ToolEnded { call, result } => {
            let how = if result.is_error { "failed" } else { "done" };
            write(LogLevel::Info, || format!("tool {} {how}, {}", call.name, call.id.as_str()));
        }
        Update::Asked(question) => write(LogLevel::Info, || format!("asked about {}, {}", question.tool, question.id)),
        Update::Answered { id, permit } => write(LogLevel::Info, || format!("answered {}, {id}", permit.as_str())),
        Update::Compacted { summarised, .. } => write(LogLevel::Info, || format!("{summarised} messages summarised")),
        Update::Recorded(message) => {
            write(LogLevel::Debug, || format!("recorded: {:?}, {} blocks", message.role, message.blocks.len()));
        }
        Update::Ended(TurnEnd::Answered) => write(LogLevel::Info, || "the turn is answered".to_owned()),
        Update::Ended(end) => write(LogLevel::Warn, || format!("the turn ends: {end:?}")),
    }
}

/// Logs an event without its text, which is in the session already.
fn write_event(event: &Event<'_>) {
    match event {
        Event::Noted(note) if note.code == NoteCode::Kept => write(LogLevel::Info, || format!("{note:?}")),
        Event::Noted(note) => write(LogLevel::Warn, || format!("{note:?}")),
        Event::Grew { block, text } => write(LogLevel::Debug, || format!("{block:?} grew by {} bytes", text.len())),
        Event::Usage(usage) => write(LogLevel::Info, || format!("{usage:?}")),
        Event::Ended(end) => write(LogLevel::Info, || format!("{end:?}")),
        Event::Opened { block, .. } => write(LogLevel::Debug, || format!("{block:?} opened")),
        Event::Item { block, .. } => write(LogLevel::Debug, || format!("{block:?} next item")),
        Event::Sealed { block, .. } => write(LogLevel::Debug, || format!("{block:?} sealed")),
        Event::Refiled { block, to } => write(LogLevel::Debug, || format!("{block:?} belongs to {to:?}")),
        Event::Restated { block, .. } => write(LogLevel::Debug, || format!("{block:?} restated")),
        Event::Closed { block } => write(LogLevel::Debug, || format!("{block:?} closed")),
        Event::Started { .. }
        | Event::Identified { .. }
        | Event::NativeItem { .. }
        | Event::Extra { .. }
        | Event::EmptyThinkingField { .. } => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_time_and_a_level_and_stays_one_entry() {
        assert_eq!(format_line(Time(0), LogLevel::Warn, "one\ntwo\n"), "1970-01-01T00:00:00Z warn  one\n    two\n");
    }

    #[test]
    fn levels_are_ordered_and_unknown_words_are_refused() {
        let words = ["warn", "info", "debug"].map(|word| LogLevel::parse(word).unwrap());
        assert!(words.is_sorted());
        assert_eq!(LogLevel::parse("loud"), None);
    }
}
