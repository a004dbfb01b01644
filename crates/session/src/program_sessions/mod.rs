//! Finds the sessions of other programs and imports them, one at a time.

mod find;
mod locations;
mod read;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use aside_core::block::Time;
use aside_core::conversation::Conversation;
use aside_core::dialect::Dialects;
use aside_core::interchange::{ImportError, Imported, Program, import_rows, import_session};
use aside_core::settings::SettingChange;
use aside_store::session::{ImportedSession, SessionChange, SessionDates};
use aside_store::{SessionId, SqliteStore, Store};

use crate::error::HintedError;
use crate::session_recorder::{now, store_error};
use crate::settings::setting_error;
use crate::stored_session::session_folder;
pub use find::{FoundSessions, ProgramSession};
pub use locations::ProgramFolders;
use read::SessionContent;

/// The maximum size of one session. Its text is in memory while it is imported.
pub const MAX_SESSION_BYTES: usize = 256 << 20;

/// The maximum number of sessions in one run.
const MAX_SESSIONS: usize = 100_000;

/// What happened to one session.
#[derive(Debug)]
pub enum ImportOutcome {
    /// It was stored, or would be in a dry run.
    Imported(Box<ImportedProgramSession>),
    /// It was imported before.
    Known(ImportedSession),
    /// It has no messages, so there is nothing to import.
    Empty,
    /// It belongs to a subagent.
    Subagent,
    Failed(HintedError),
}

/// A session that was imported.
#[derive(Debug)]
pub struct ImportedProgramSession {
    /// The id in our store. None in a dry run.
    pub id: Option<String>,
    pub title: String,
    pub n_messages: usize,
    /// What was left out, and what was guessed.
    pub imported: Imported,
}

/// Imports sessions of one program.
pub struct ProgramImporter<'a> {
    program: Program,
    store: Arc<SqliteStore>,
    dialects: &'a Dialects,
    dry_run: bool,
    /// Sessions that are stored already, by the program's own ids.
    known: BTreeMap<String, ImportedSession>,
}

impl<'a> ProgramImporter<'a> {
    pub fn new(
        program: Program,
        store: Arc<SqliteStore>,
        dialects: &'a Dialects,
        dry_run: bool,
    ) -> Result<ProgramImporter<'a>, HintedError> {
        let known = store.imported_sessions(program).map_err(|error| store_error(&error))?;
        Ok(ProgramImporter { program, store, dialects, dry_run, known })
    }

    /// Imports one session, unless it is known.
    pub fn import(&mut self, session: &ProgramSession) -> ImportOutcome {
        if let Some(known) = session.id().and_then(|id| self.known.get(id)) {
            return ImportOutcome::Known(known.clone());
        }
        match self.read(session) {
            Ok(imported) => self.save(session, imported).unwrap_or_else(ImportOutcome::Failed),
            Err(ReadError::Empty) => ImportOutcome::Empty,
            Err(ReadError::Failed(error)) => ImportOutcome::Failed(error),
        }
    }

    fn read(&self, session: &ProgramSession) -> Result<Imported, ReadError> {
        let imported = match session.content(MAX_SESSION_BYTES).map_err(ReadError::Failed)? {
            SessionContent::Files(files) if files.iter().all(|file| file.text.trim().is_empty()) => {
                return Err(ReadError::Empty);
            }
            SessionContent::Files(files) => {
                let named: Vec<_> = files.iter().map(read::SessionFile::as_import_file).collect();
                import_session(&named, &session.known_source(), self.dialects).map(|mut imported| {
                    let replaced = files.iter().filter(|file| file.is_lossy);
                    let note =
                        |file: &read::SessionFile| format!("{}: bytes that are not UTF-8 were replaced", file.name);
                    imported.notes.extend(replaced.map(note));
                    imported
                })
            }
            SessionContent::Rows(tables) => import_rows(self.program, &tables, self.dialects),
        };
        imported.map_err(|error| {
            let is_empty = matches!(error, ImportError::Empty(_));
            if is_empty { ReadError::Empty } else { ReadError::Failed(import_error(&session.location(), &error)) }
        })
    }

    fn save(&mut self, session: &ProgramSession, imported: Imported) -> Result<ImportOutcome, HintedError> {
        check_settings(&imported.conversation).map_err(|error| error.prefixed(&session.location()))?;
        let source = imported.source.as_ref();
        if source.is_some_and(|source| source.is_subagent) && !session.is_named() {
            return Ok(ImportOutcome::Subagent);
        }
        let own_id = source.and_then(|source| source.session.clone()).or_else(|| session.id().map(str::to_owned));
        if let Some(known) = own_id.as_ref().and_then(|id| self.known.get(id)) {
            return Ok(ImportOutcome::Known(known.clone()));
        }
        let conversation = &imported.conversation;
        let title = conversation.title.clone().unwrap_or_default();
        let n_messages = conversation.history.entries().len();
        let id = if self.dry_run { None } else { Some(store_dated(&self.store, &imported, session.used())?) };
        if let (Some(own_id), Some(id)) = (own_id, &id) {
            self.known.insert(own_id, ImportedSession { id: id.clone(), title: Some(title.clone()) });
        }
        let id = id.map(|id| id.to_string());
        Ok(ImportOutcome::Imported(Box::new(ImportedProgramSession { id, title, n_messages, imported })))
    }
}

fn store_dated(store: &SqliteStore, imported: &Imported, used: Option<Time>) -> Result<SessionId, HintedError> {
    let dates = dates(&imported.conversation, used);
    let id = store.import_dated(&imported.conversation, dates).map_err(|error| store_error(&error))?;
    set_folder(store, &id, imported)?;
    Ok(id)
}

/// Stores an imported conversation as the most recently used session.
pub fn store_imported(store: &SqliteStore, imported: &Imported) -> Result<SessionId, HintedError> {
    let id = store.import(&imported.conversation, Some(now())).map_err(|error| store_error(&error))?;
    set_folder(store, &id, imported)?;
    Ok(id)
}

/// A session of another program belongs to the folder that the program worked in.
fn set_folder(store: &SqliteStore, id: &SessionId, imported: &Imported) -> Result<(), HintedError> {
    let folder = imported.source.as_ref().and_then(|source| source.folder.as_deref()).map(Path::new);
    let Some(folder) = folder.filter(|folder| folder.is_absolute()) else { return Ok(()) };
    let folder = SessionChange::Folder(session_folder(folder));
    store.change(id, &folder).map_err(|error| store_error(&error))
}

enum ReadError {
    Empty,
    Failed(HintedError),
}

/// The times of the first and the last message, else the time of the file.
fn dates(conversation: &Conversation, used: Option<Time>) -> SessionDates {
    let times = || conversation.history.entries().iter().filter_map(|entry| entry.message.at);
    let other = used.unwrap_or_else(now);
    SessionDates { created: times().min().unwrap_or(other), changed: times().max().unwrap_or(other) }
}

/// An imported file is untrusted: it may only contain valid settings. Tools and
/// permissions are not settings.
pub fn check_settings(conversation: &Conversation) -> Result<(), HintedError> {
    let wrong = conversation.settings.iter().find_map(|(key, value)| SettingChange::parse(key, value).err());
    wrong.map_or(Ok(()), |error| Err(setting_error(&error)))
}

/// An error about an imported file, with its name.
pub fn import_error(name: &str, error: &ImportError) -> HintedError {
    let report = HintedError::new(format!("{name}: {error}"));
    match error.hint() {
        Some(hint) => report.hint(hint),
        None => report,
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> HintedError {
    HintedError::new(format!("cannot read {}: {error}", path.display()))
}
