//! Errors of a store. Each message names the file and what to do about it.

use std::path::{Path, PathBuf};

use crate::session::{MessageId, SessionId};

pub type Result<T, E = StoreError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(
        "{path} was written by a newer aside (its format is {found}, this one supports up to {supported}); nothing was changed, use the newer aside"
    )]
    NewerThanUs { path: PathBuf, found: i64, supported: i64 },
    #[error(
        "{path} is not a session store of aside; nothing was changed, move it away or set ASIDE_DATA_DIR to another folder"
    )]
    NotOurs { path: PathBuf },
    #[error(
        "{path} is damaged ({detail}); nothing was changed, copy it away first, then `sqlite3 {path} .recover` saves what can be read"
    )]
    Damaged { path: PathBuf, detail: String },
    #[error("no space left to write {path}; everything stored before is intact, free some space and continue")]
    Full { path: PathBuf },
    #[error("{path} cannot be written ({detail}); fix its permissions or set ASIDE_DATA_DIR to another folder")]
    ReadOnly { path: PathBuf, detail: String },
    #[error("cannot open {path}: {detail}")]
    CannotOpen { path: PathBuf, detail: String },
    #[error("{path} is busy: another program has been writing to it for too long; try again")]
    Busy { path: PathBuf },
    #[error(
        "session `{session}` is open in another aside (process {owner}); close it there, or read it here without writing"
    )]
    InUse { session: SessionId, owner: String },
    #[error(
        "no session `{word}`: neither an id, nor the beginning of one, nor a title; `aside sessions list` lists them"
    )]
    NoSuchSession { word: String },
    #[error("`{word}` could be {n} sessions: {list}", n = candidates.len(), list = listed(candidates))]
    Ambiguous { word: String, candidates: Vec<SessionCandidate> },
    #[error("session `{session}` has no message {message}")]
    NoSuchMessage { session: SessionId, message: MessageId },
    #[error("message {message} is not a reply that is being recorded")]
    NotRunning { message: MessageId },
    #[error("there is nothing to look for in `{query}`: give at least one word")]
    NothingToFind { query: String },
    #[error("{path}: {detail}")]
    Other { path: PathBuf, detail: String },
}

/// A session that matches an ambiguous search word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCandidate {
    pub id: SessionId,
    pub title: Option<String>,
}

/// As many candidates as fit in a line or two.
const MAX_LISTED: usize = 8;

fn listed(candidates: &[SessionCandidate]) -> String {
    let one = |candidate: &SessionCandidate| match &candidate.title {
        Some(title) => format!("{} \"{title}\"", candidate.id),
        None => candidate.id.to_string(),
    };
    let mut list: Vec<String> = candidates.iter().take(MAX_LISTED).map(one).collect();
    if candidates.len() > MAX_LISTED {
        list.push("…".to_owned());
    }
    list.join(", ")
}

impl StoreError {
    /// Classifies an SQLite error by what the user can do about it.
    pub(crate) fn of_sqlite(error: rusqlite::Error, path: &Path) -> StoreError {
        use rusqlite::ErrorCode as Code;
        let path = path.to_owned();
        let detail = error.to_string();
        match error.sqlite_error_code() {
            Some(Code::DiskFull) => StoreError::Full { path },
            Some(Code::ReadOnly | Code::PermissionDenied) => StoreError::ReadOnly { path, detail },
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => StoreError::Busy { path },
            Some(Code::DatabaseCorrupt) => StoreError::Damaged { path, detail },
            Some(Code::NotADatabase) => StoreError::NotOurs { path },
            Some(Code::CannotOpen) => StoreError::CannotOpen { path, detail },
            _ => StoreError::Other { path, detail },
        }
    }

    pub(crate) fn of_io(error: &std::io::Error, path: &Path) -> StoreError {
        use std::io::ErrorKind;
        let (path, detail, kind) = (path.to_owned(), error.to_string(), error.kind());
        if matches!(kind, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) {
            StoreError::ReadOnly { path, detail }
        } else if matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
            StoreError::Full { path }
        } else {
            StoreError::CannotOpen { path, detail }
        }
    }

    /// Whether the same call may succeed later without a repair of the store.
    pub fn is_transient(&self) -> bool {
        matches!(self, StoreError::Full { .. } | StoreError::Busy { .. })
    }
}
