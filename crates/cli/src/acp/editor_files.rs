//! Files that the editor has open: a tool waits on its thread while the editor is asked.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use aside_acp::{FileTicket, SessionKey};
use aside_engine::tools::OpenFiles;
use tokio_util::sync::CancellationToken;

use super::Event;

/// An editor that takes longer is not waited for; the file on disk counts.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a waiting tool looks whether it was stopped.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Where the text of a file goes.
pub(super) struct FileRequest {
    pub(super) path: PathBuf,
    pub(super) text: Sender<Option<String>>,
}

/// The editor's files, as the tools of one session see them.
#[derive(Debug)]
pub(super) struct EditorFiles {
    pub(super) session: SessionKey,
    /// Tools run on several threads.
    pub(super) events: Mutex<Sender<Event>>,
}

impl OpenFiles for EditorFiles {
    fn text(&self, path: &Path, stop: &CancellationToken) -> Option<String> {
        let (text, answer) = mpsc::channel();
        let request = FileRequest { path: path.to_owned(), text };
        let events = self.events.lock().ok()?.clone();
        events.send(Event::ReadFile(self.session, request)).ok()?;
        let until = Instant::now() + PATIENCE;
        while !stop.is_cancelled() && Instant::now() < until {
            match answer.recv_timeout(CHECK_EVERY) {
                Ok(text) => return text,
                Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        None
    }
}

/// The files that tools wait for.
#[derive(Default)]
pub(super) struct WaitingTools {
    next: u64,
    waiting: HashMap<FileTicket, Sender<Option<String>>>,
}

impl WaitingTools {
    pub(super) fn add(&mut self, text: Sender<Option<String>>) -> FileTicket {
        self.next += 1;
        let ticket = FileTicket(self.next);
        self.waiting.insert(ticket, text);
        ticket
    }

    pub(super) fn answer(&mut self, ticket: FileTicket, text: Option<String>) {
        if let Some(waiting) = self.waiting.remove(&ticket) {
            // The tool may have gone on without it.
            drop(waiting.send(text));
        }
    }
}
