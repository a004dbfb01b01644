//! Stored sessions for an editor: the list, and what can be done with one that is not open.

use std::path::Path;

use aside_acp::ListedSession;
use aside_session::session_recorder::{open_store, open_writable_store, store_error};
use aside_session::stored_session::session_folder;
use aside_session::{HintedError, SessionId, UserFolders, times};
use aside_store::Store;
use aside_store::session::SessionSummary;

/// How many sessions a page has.
const PAGE: usize = 100;

/// A page of sessions, the newest first, and the cursor of the next page.
pub(super) fn list(
    folders: &UserFolders,
    folder: Option<&Path>,
    cursor: Option<&str>,
) -> Result<(Vec<ListedSession>, Option<String>), HintedError> {
    let from = match cursor.map(str::parse::<usize>) {
        None => 0,
        Some(Ok(from)) => from,
        Some(Err(_)) => return Err(HintedError::new("unknown cursor").hint("list without a cursor begins again")),
    };
    let store = open_store(folders)?;
    let sessions = store.sessions(usize::MAX).map_err(|error| store_error(&error))?;
    let here = folder.map(|folder| session_folder(folder).path);
    let is_here = |session: &SessionSummary| match (&here, &session.folder) {
        (None, _) => true,
        (Some(here), Some(folder)) => *here == folder.path,
        (Some(_), None) => false,
    };
    let mut found = sessions.into_iter().filter(is_here).skip(from);
    let page: Vec<ListedSession> = found.by_ref().take(PAGE).map(listed).collect();
    let next = found.next().map(|_| (from + PAGE).to_string());
    Ok((page, next))
}

fn listed(session: SessionSummary) -> ListedSession {
    ListedSession {
        id: session.id.to_string(),
        // An imported session may have no folder, and the protocol wants one.
        folder: session.folder.map_or_else(|| "/".to_owned(), |folder| folder.path),
        title: session.title,
        updated_at: times::rfc3339(session.changed),
    }
}

/// The id for a new session; none if it cannot be stored.
pub(super) fn new_id(folders: &UserFolders) -> Option<SessionId> {
    open_store(folders).ok()?.unused_id().ok()
}

/// The id itself if there is such a session. An editor names sessions by nothing else.
pub(super) fn exact_id(folders: &UserFolders, id: &str) -> Result<String, HintedError> {
    let session = open_store(folders)?.session(&SessionId::new(id)).map_err(|error| store_error(&error))?;
    Ok(session.id.to_string())
}

pub(super) fn delete(folders: &UserFolders, id: &str) -> Result<(), HintedError> {
    let store = open_writable_store(folders)?;
    store.delete(&SessionId::new(id)).map_err(|error| store_error(&error))
}
