//! `screen ASIDE [RUNS]`: measures the terminal screen in a real terminal of 200x50
//! while 1,000 deltas a second arrive, once in an empty session and once in a session
//! of 200,000 lines of thinking; then its memory after a reply of as many lines. Fails on a
//! missed target.
//!
//! CPU time comes from the scheduler, which counts nanoseconds per thread: of the
//! drawing thread at the end of each frame, of all threads for CPU shares. Every
//! delta and every typed key has a letter of its own; it is visible when that letter
//! first appears in the output.

mod program;
mod run;
mod server;
mod table;
mod watch;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use aside_bench::frames::long_conversation;
use aside_core::block::{Block, Text};
use aside_core::conversation::Conversation;
use aside_core::interchange::{OpaqueData, write_lines};
use aside_core::message::{Message, Role};

use run::{Figures, StartState, measure, memory_after_long_reply};
use watch::LAST_ANSWER;

const LINES: usize = 200_000;
const LINES_A_TURN: usize = 1_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (binary, runs) = match words.as_slice() {
        [binary] => (binary, 3),
        [binary, runs] if runs.parse::<usize>().is_ok() => (binary, runs.parse().unwrap_or(3)),
        _ => {
            eprintln!("usage: screen ASIDE [RUNS]");
            return ExitCode::from(2);
        }
    };
    match all(Path::new(binary), runs) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("no figures: {error}");
            ExitCode::from(2)
        }
    }
}

fn all(binary: &Path, runs: usize) -> io::Result<bool> {
    let binary = fs::canonicalize(binary)?;
    let folder = std::env::temp_dir().join(format!("aside-screen-{}", std::process::id()));
    let result = measured(&binary, runs, &folder);
    let resident = memory_after_long_reply(&binary, LINES, &folder.join("long reply"));
    fs::remove_dir_all(&folder).ok();
    let (empty, full, text) = result?;
    // Both are always printed.
    Ok(table::print(&empty, &full, text) & table::print_resident(resident?))
}

fn measured(binary: &Path, runs: usize, folder: &Path) -> io::Result<(Figures, Figures, usize)> {
    let stored = folder.join("stored");
    fs::create_dir_all(stored.join("config"))?;
    let (text, id) = import(binary, &stored)?;
    let (mut empty, mut full) = (Vec::new(), Vec::new());
    for run in 0..runs.max(1) {
        for (transcript, figures) in [(StartState::Empty, &mut empty), (StartState::Full(&id), &mut full)] {
            let here = folder.join(format!("{run}-{}", figures.len()));
            copy(&stored, &here)?;
            figures.push(measure(binary, transcript, &here)?);
            fs::remove_dir_all(&here)?;
        }
    }
    Ok((Figures::medians(&empty), Figures::medians(&full), text))
}

/// Creates a store with a long session; returns the bytes of its thinking, and its id.
fn import(binary: &Path, folder: &Path) -> io::Result<(usize, String)> {
    let mut conversation = Conversation { title: Some("a long one".to_owned()), ..Conversation::default() };
    let mut text = 0;
    for message in long_conversation(LINES, LINES_A_TURN) {
        text += message.thinking().map(|thought| thought.text().len()).sum::<usize>();
        conversation.history.append(message);
    }
    let last = format!("the last answer {}", char::from_u32(LAST_ANSWER).unwrap_or(' '));
    let last = Block::Text(Text { text: last, seal: None, native: None, extra: Default::default() });
    conversation.history.append(Message::new(Role::Assistant, vec![last]));
    let file = folder.join("long.jsonl");
    fs::write(&file, write_lines(&conversation, OpaqueData::Keep))?;
    let out = Command::new(binary)
        .args(["sessions", "import"])
        .arg(&file)
        .env("ASIDE_CONFIG_DIR", folder.join("config"))
        .env("ASIDE_DATA_DIR", folder.join("data"))
        .output()?;
    fs::remove_file(&file)?;
    let id = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    if !out.status.success() || id.is_empty() {
        return Err(io::Error::other(format!(
            "the session was not imported: {}",
            String::from_utf8_lossy(&out.stderr)
        )));
    }
    Ok((text, id))
}

fn copy(from: &PathBuf, to: &PathBuf) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
