//! Finds a stored session, and opens it to be continued.

use std::path::Path;

use aside_core::conversation::Conversation;
use aside_core::terminal_text::terminal_safe_line;
use aside_engine::project_files::project_root;
use aside_store::session::{SessionChange, SessionFolder, SessionSummary};
use aside_store::{MessageId, SessionId, SqliteStore, Store, StoreError, WriteLock};

use crate::error::HintedError;
use crate::session_recorder::{now, store_error};

/// Which session a command continues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SessionChoice {
    #[default]
    New,
    /// The most recently used one of this folder's project.
    Last,
    /// The most recently used one of any folder.
    LastAnywhere,
    /// By id, title, or the beginning of either.
    Named(String),
}

/// Whether a session itself is continued or a copy of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Continuation {
    #[default]
    Itself,
    Copy,
}

/// The session that a choice names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundSession {
    New,
    Stored(SessionId),
    /// This folder's project has none, but there are others.
    NoneHere(NoSessionHere),
}

/// There is no session of this folder's project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSessionHere {
    /// The most recently used session of another folder.
    newest: SessionId,
    title: Option<String>,
    folder: Option<String>,
}

impl NoSessionHere {
    pub fn error(&self) -> HintedError {
        let NoSessionHere { newest, title, folder } = self;
        // They may come from an imported file, and must not look like our own output.
        let line = |name: &Option<String>| name.as_deref().map(terminal_safe_line);
        let title = line(title).map_or_else(String::new, |title| format!(" (\"{title}\")"));
        let folder = line(folder).map_or_else(String::new, |folder| format!(", which began in {folder}"));
        HintedError::new("no session began in this folder")
            .hint(format!("aside -r {newest} continues the newest of the others{title}{folder}"))
    }
}

/// The folder that a session begun here belongs to.
pub fn session_folder(here: &Path) -> SessionFolder {
    let whole = std::fs::canonicalize(here).unwrap_or_else(|_| here.to_owned());
    let text = |path: &Path| path.to_string_lossy().into_owned();
    SessionFolder { path: text(&whole), root: text(project_root(&whole)) }
}

/// Finds the chosen session. `here` is the working directory.
pub fn find_session(store: &SqliteStore, choice: &SessionChoice, here: &Path) -> Result<FoundSession, HintedError> {
    let newest = || store.sessions(1).map(|mut sessions| sessions.pop()).map_err(|error| store_error(&error));
    let none_yet = || HintedError::new("there is no session yet").hint("aside ask begins one");
    match choice {
        SessionChoice::New => Ok(FoundSession::New),
        SessionChoice::Named(word) => store.find(word).map(FoundSession::Stored).map_err(|error| store_error(&error)),
        SessionChoice::LastAnywhere => Ok(FoundSession::Stored(newest()?.ok_or_else(none_yet)?.id)),
        SessionChoice::Last => {
            let root = session_folder(here).root;
            let first = store.sessions_by_folder(&root, 1).map_err(|error| store_error(&error))?.pop();
            if let Some(first) = first.filter(|first| is_below(first, &root)) {
                return Ok(FoundSession::Stored(first.id));
            }
            let SessionSummary { id, title, folder, .. } = newest()?.ok_or_else(none_yet)?;
            let folder = folder.map(|folder| folder.path);
            Ok(FoundSession::NoneHere(NoSessionHere { newest: id, title, folder }))
        }
    }
}

fn is_below(session: &SessionSummary, root: &str) -> bool {
    session.folder.as_ref().is_some_and(|folder| folder.root == root)
}

/// The folder of a session that belongs to another project than `root`.
pub fn other_folder<'a>(session: &'a SessionSummary, root: &str) -> Option<&'a str> {
    session.folder.as_ref().filter(|folder| folder.root != root).map(|folder| folder.path.as_str())
}

/// Whether a stored session can be written.
#[derive(Debug)]
pub enum SessionAccess {
    Locked(WriteLock),
    /// It was opened for reading.
    NotLocked,
    /// It cannot be locked: another process has it open, or the store cannot be
    /// written.
    Refused(StoreError),
}

/// A stored session that is continued.
#[derive(Debug)]
pub struct StoredSession {
    pub id: SessionId,
    /// The stored id of each history entry, in order.
    pub ids: Vec<MessageId>,
    pub access: SessionAccess,
}

impl StoredSession {
    /// Whether another process has it open. It can then be continued only in a copy.
    pub(crate) fn is_open_elsewhere(&self) -> bool {
        matches!(self.access, SessionAccess::Refused(StoreError::InUse { .. }))
    }
}

/// A stored session with its content.
#[derive(Debug)]
pub struct ResumedSession {
    pub stored: StoredSession,
    pub conversation: Conversation,
    pub folder: Option<SessionFolder>,
}

impl ResumedSession {
    /// What to tell the user if the session belongs to another project than `here`.
    pub(crate) fn folder_notice(&self, here: &Path) -> Option<String> {
        let here = session_folder(here);
        let began = self.folder.as_ref().filter(|began| began.root != here.root)?;
        let (began, here) = (terminal_safe_line(&began.path), terminal_safe_line(&here.path));
        Some(format!("note: this session began in {began}; tools now work in {here}"))
    }
}

/// Opens a stored session to continue it.
pub fn resume(store: &SqliteStore, id: SessionId) -> Result<ResumedSession, HintedError> {
    // Locked before it is read, because locking completes what a crash left behind.
    let access = match store.lock_session(&id) {
        Ok(lock) => SessionAccess::Locked(lock),
        Err(error @ StoreError::NoSuchSession { .. }) => return Err(store_error(&error)),
        Err(error) => SessionAccess::Refused(error),
    };
    read_with(store, id, access)
}

/// Opens a stored session for reading.
pub fn read(store: &SqliteStore, id: SessionId) -> Result<ResumedSession, HintedError> {
    read_with(store, id, SessionAccess::NotLocked)
}

fn read_with(store: &SqliteStore, id: SessionId, access: SessionAccess) -> Result<ResumedSession, HintedError> {
    let folder = store.session(&id).map_err(|error| store_error(&error))?.folder;
    let loaded = store.load(&id).map_err(|error| store_error(&error))?;
    let stored = StoredSession { id, ids: loaded.ids, access };
    Ok(ResumedSession { stored, conversation: loaded.conversation, folder })
}

/// Copies a conversation to a new session of this folder, locked for writing.
pub(crate) fn copy_session(
    store: &SqliteStore,
    conversation: &Conversation,
    here: &Path,
) -> Result<StoredSession, StoreError> {
    let id = store.import(conversation, Some(now()))?;
    store.change(&id, &SessionChange::Folder(session_folder(here)))?;
    let lock = store.lock_session(&id)?;
    let ids = store.load(&id)?.ids;
    Ok(StoredSession { id, ids, access: SessionAccess::Locked(lock) })
}
