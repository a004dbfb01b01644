//! A store in one SQLite file.
//!
//! One connection writes, under a lock; a few others read at the same time, which
//! the write-ahead log allows. A commit has reached the operating system when it
//! returns, so a killed process loses nothing that was committed. It is not synced
//! to disk every time (`synchronous = NORMAL`): a power cut may lose the last
//! commits but does not corrupt the file.

mod connect;
mod error;
mod file_changes;
mod learned_repairs;
mod long_reply;
mod message_reading;
mod messages;
mod prompt_history;
mod replies;
mod schema;
mod search;
mod sessions;
mod usage;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use aside_core::block::Time;
use aside_core::conversation::Conversation;
use aside_core::interchange::Program;
use aside_core::message::Message;
use aside_core::rules::LearnedRepair;
use aside_core::turn::TurnEnd;
use rusqlite::{Connection, Transaction, TransactionBehavior};

pub(crate) use self::connect::open_foreign;
use self::error::DbError;
use crate::error::{Result, StoreError};
use crate::file_changes::{
    ChangeKept, ContentId, FileChange, FileChangeId, NewFileChange, UndoStep, UndoStepId, UnkeptChange,
};
use crate::journal::EventBatch;
use crate::search::{HitList, SearchQuery};
use crate::session::{
    BranchLength, ImportedSession, LoadedSession, MessageId, MessagePage, NewReply, NewSession, PageQuery, Parent,
    SessionChange, SessionDates, SessionId, SessionInfo, SessionSummary,
};
use crate::store::Store;
use crate::usage::{UsageQuery, UsageRow};
use crate::write_lock::{WriteLock, WriteLocks};

/// The file name in the data folder.
pub const FILE_NAME: &str = "sessions.db";

/// How many unused read connections are kept open.
const MAX_IDLE_READERS: usize = 4;

/// Sessions in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    // Dropped before the writer: only a writer that closes last removes the log,
    // and otherwise the next process has to read all of it.
    readers: ReaderPool,
    writer: WriterConnection,
    locks: WriteLocks,
}

/// Options for opening a store.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreOptions {
    /// The maximum size of the file, in pages of 16 KiB.
    pub max_pages: Option<u32>,
}

#[derive(Debug)]
enum WriterConnection {
    Open(Mutex<Connection>),
    /// The store was opened read-only.
    ReadOnly,
}

#[derive(Debug)]
enum ReaderPool {
    Pool {
        idle: Mutex<Vec<Connection>>,
        mode: connect::ReadMode,
    },
    /// A database in memory has only the writer's connection.
    UseWriter,
}

impl SqliteStore {
    /// Opens or creates the store of a data folder.
    pub fn open(folder: &Path) -> Result<SqliteStore> {
        SqliteStore::open_with(folder, StoreOptions::default())
    }

    pub fn open_with(folder: &Path, options: StoreOptions) -> Result<SqliteStore> {
        let path = folder.join(FILE_NAME);
        let connection = connect::for_writing(folder, &path, options)?;
        let store = SqliteStore {
            path,
            writer: WriterConnection::Open(Mutex::new(connection)),
            readers: ReaderPool::Pool { idle: Mutex::default(), mode: connect::ReadMode::Shared },
            locks: WriteLocks::OnDisk { folder: folder.join("locks") },
        };
        store.close_orphans()?;
        Ok(store)
    }

    /// Opens a store read-only; every change is refused.
    pub fn open_read_only(folder: &Path) -> Result<SqliteStore> {
        let path = folder.join(FILE_NAME);
        let (first, mode) = connect::for_reading_first(&path)?;
        Ok(SqliteStore {
            path,
            writer: WriterConnection::ReadOnly,
            readers: ReaderPool::Pool { idle: Mutex::new(vec![first]), mode },
            locks: WriteLocks::OnDisk { folder: folder.join("locks") },
        })
    }

    /// An id that no session has, for [`NewSession::id`](crate::session::NewSession).
    pub fn unused_id(&self) -> Result<SessionId> {
        self.read(sessions::fresh_id)
    }

    /// A store in memory, for tests.
    pub fn in_memory() -> Result<SqliteStore> {
        Ok(SqliteStore {
            path: PathBuf::from(":memory:"),
            writer: WriterConnection::Open(Mutex::new(connect::in_memory()?)),
            readers: ReaderPool::UseWriter,
            locks: WriteLocks::InMemory { taken: Arc::new(Mutex::new(HashSet::new())) },
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Changes the maximum size of the file.
    pub fn set_max_pages(&self, most: u32) -> Result<()> {
        self.write(|db| Ok(db.pragma_update(None, "max_page_count", most)?))
    }

    /// How much the store takes on disk, with its write-ahead log.
    pub fn n_bytes(&self) -> u64 {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        [self.path.clone(), PathBuf::from(log)]
            .iter()
            .filter_map(|path| std::fs::metadata(path).ok())
            .map(|metadata| metadata.len())
            .sum()
    }

    /// Gives the space of deleted sessions back to the file system, which copies the whole file once. Without
    /// this, new sessions use that space.
    pub fn shrink(&self) -> Result<()> {
        let WriterConnection::Open(connection) = &self.writer else { return self.write(|_| Ok(())) };
        let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        let run = || -> Result<(), DbError> {
            // The copy may be larger than the memory.
            connection.pragma_update(None, "temp_store", "file")?;
            let done = connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);");
            connection.pragma_update(None, "temp_store", "memory")?;
            Ok(done?)
        };
        run().map_err(|error| error.with_path(&self.path))
    }

    /// Checks the whole file; empty if it is sound.
    pub fn integrity_errors(&self) -> Result<Vec<String>> {
        self.read(|connection| {
            let mut statement = connection.prepare("PRAGMA integrity_check")?;
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
            Ok(lines.into_iter().filter(|line| line != "ok").collect())
        })
    }

    /// Records a change of a file before it is made.
    pub fn record_file_change(&self, id: &SessionId, change: &NewFileChange<'_>, most: u64) -> Result<ChangeKept> {
        self.write(|db| file_changes::record(db, id, change, most))
    }

    /// The recorded changes of a session, the oldest first.
    pub fn file_changes(&self, id: &SessionId) -> Result<Vec<FileChange>> {
        self.read(|db| file_changes::changes(db, id))
    }

    /// Records a change of a file that is too large to be kept.
    pub fn record_too_large_change(&self, id: &SessionId, turn: Time, path: &str) -> Result<()> {
        self.write(|db| file_changes::record_too_large(db, id, turn, path))
    }

    /// The changes of a session that cannot be undone, the oldest first.
    pub fn unkept_changes(&self, id: &SessionId) -> Result<Vec<UnkeptChange>> {
        self.read(|db| file_changes::unkept(db, id))
    }

    pub fn file_content(&self, content: ContentId) -> Result<Vec<u8>> {
        self.read(|db| file_changes::content(db, content))
    }

    /// Records what was undone: the head of the conversation before, if it moved, and changes of files.
    pub fn record_undo(&self, id: &SessionId, head: Option<MessageId>, undone: &[FileChangeId]) -> Result<()> {
        self.write(|db| file_changes::record_undo(db, id, head, undone))
    }

    /// What was undone last and can be done again.
    pub fn last_undo(&self, id: &SessionId) -> Result<Option<UndoStep>> {
        self.read(|db| file_changes::last_undo(db, id))
    }

    pub fn record_redo(&self, step: UndoStepId) -> Result<()> {
        self.write(|db| file_changes::record_redo(db, step))
    }

    /// What was undone cannot be done again from here on.
    pub fn forget_undone(&self, id: &SessionId) -> Result<()> {
        // Nearly always there is nothing to forget, and a write would cost a commit.
        if self.last_undo(id)?.is_none() {
            return Ok(());
        }
        self.write(|db| file_changes::forget_undone(db, id))
    }

    /// Runs a write transaction.
    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, DbError>) -> Result<T> {
        let WriterConnection::Open(connection) = &self.writer else {
            let detail = "it was opened read-only".to_owned();
            return Err(StoreError::ReadOnly { path: self.path.clone(), detail });
        };
        // A panic inside rolled its transaction back, so the connection is usable.
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        let run = || -> Result<T, DbError> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = work(&transaction)?;
            transaction.commit()?;
            Ok(result)
        };
        run().map_err(|error| error.with_path(&self.path))
    }

    /// Frees what the writer keeps for later: pages and prepared statements. One small allocation among those of the
    /// index would keep all of their memory from going back to the system.
    fn release_memory(&self) {
        let WriterConnection::Open(connection) = &self.writer else { return };
        let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.flush_prepared_statement_cache();
        // The pages are only a cache, so an error does no harm.
        drop(connection.execute_batch("PRAGMA shrink_memory"));
    }

    /// Runs a read transaction, so that all reads see the same state.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, DbError>) -> Result<T> {
        let run = |connection: &Connection| -> Result<T, DbError> {
            let transaction = connection.unchecked_transaction()?;
            work(&transaction)
        };
        let result = match (&self.readers, &self.writer) {
            (ReaderPool::Pool { idle, mode }, _) => {
                let ready = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let connection = match ready {
                    Some(connection) => connection,
                    None => connect::for_reading(&self.path, *mode).map_err(|error| error.with_path(&self.path))?,
                };
                let result = run(&connection);
                let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() < MAX_IDLE_READERS {
                    idle.push(connection);
                }
                result
            }
            (ReaderPool::UseWriter, WriterConnection::Open(connection)) => {
                run(&connection.lock().unwrap_or_else(PoisonError::into_inner))
            }
            (ReaderPool::UseWriter, WriterConnection::ReadOnly) => Err(DbError::Sqlite(rusqlite::Error::InvalidQuery)),
        };
        result.map_err(|error| error.with_path(&self.path))
    }

    /// Closes replies of crashed recorders as interrupted, in sessions that are not open.
    fn close_orphans(&self) -> Result<()> {
        for session in self.read(replies::sessions_with_running)? {
            match self.lock_session(&session) {
                Ok(_lock) => {}
                // Another process is recording it, or there is no space to close it.
                Err(StoreError::InUse { .. } | StoreError::Full { .. } | StoreError::Busy { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Store for SqliteStore {
    fn create(&self, new: &NewSession) -> Result<SessionId> {
        self.write(|db| sessions::create(db, new).map(|(_, id)| id))
    }

    fn import(&self, conversation: &Conversation, at: Option<Time>) -> Result<SessionId> {
        self.write(|db| messages::import(db, conversation, at))
    }

    fn import_dated(&self, conversation: &Conversation, dates: SessionDates) -> Result<SessionId> {
        self.write(|db| messages::import_dated(db, conversation, dates))
    }

    fn imported_sessions(&self, program: Program) -> Result<BTreeMap<String, ImportedSession>> {
        self.read(|db| sessions::imported(db, program))
    }

    fn sessions(&self, limit: usize) -> Result<Vec<SessionSummary>> {
        self.read(|db| sessions::list(db, limit))
    }

    fn sessions_by_folder(&self, root: &str, limit: usize) -> Result<Vec<SessionSummary>> {
        self.read(|db| sessions::list_by_folder(db, root, limit))
    }

    fn n_sessions(&self) -> Result<u64> {
        self.read(sessions::n_sessions)
    }

    fn branch_lengths(&self, ids: &[&SessionId]) -> Result<Vec<BranchLength>> {
        self.read(|db| ids.iter().map(|id| sessions::branch_length(db, id)).collect())
    }

    fn find(&self, word: &str) -> Result<SessionId> {
        self.read(|db| sessions::find(db, word))
    }

    fn session(&self, id: &SessionId) -> Result<SessionInfo> {
        self.read(|db| sessions::session(db, id))
    }

    fn change(&self, id: &SessionId, change: &SessionChange) -> Result<()> {
        self.write(|db| sessions::change(db, id, change))
    }

    fn delete(&self, id: &SessionId) -> Result<()> {
        self.read(|db| sessions::session_row(db, id))?;
        let _lock = self.locks.take(id)?;
        self.write(|db| sessions::delete(db, id))
    }

    fn lock_session(&self, id: &SessionId) -> Result<WriteLock> {
        self.read(|db| sessions::session_row(db, id))?;
        if matches!(self.writer, WriterConnection::ReadOnly) {
            return self.write(|_| Err(DbError::Sqlite(rusqlite::Error::InvalidQuery)));
        }
        let lock = self.locks.take(id)?;
        // No other process records in this session now, so a running reply is left
        // over from one that ended.
        self.write(|db| replies::close_running(db, id))?;
        Ok(lock)
    }

    fn append(&self, lock: &WriteLock, parent: Parent, message: &Message) -> Result<MessageId> {
        self.write(|db| messages::append(db, lock.session(), parent, message))
    }

    fn set_head(&self, lock: &WriteLock, head: Option<MessageId>) -> Result<()> {
        self.write(|db| messages::set_head(db, lock.session(), head))
    }

    fn end_turn(&self, lock: &WriteLock, end: &TurnEnd) -> Result<()> {
        self.write(|db| messages::end_turn(db, lock.session(), end))
    }

    fn begin(&self, lock: &WriteLock, reply: &NewReply) -> Result<MessageId> {
        self.write(|db| replies::begin(db, lock.session(), reply))
    }

    fn extend(&self, reply: MessageId, batch: &EventBatch) -> Result<()> {
        self.write(|db| batch.rows().try_for_each(|row| replies::extend(db, reply, row)))
    }

    fn finish(&self, reply: MessageId, message: &Message, ended: Option<Time>) -> Result<()> {
        let finish = || self.write(|db| replies::finish(db, reply, message, ended));
        if !long_reply::is_long(message) {
            return finish();
        }
        long_reply::on_short_thread(&|| {
            finish()?;
            self.release_memory();
            Ok(())
        })
    }

    fn page(&self, id: &SessionId, query: PageQuery) -> Result<MessagePage> {
        self.read(|db| message_reading::page(db, id, query))
    }

    fn load(&self, id: &SessionId) -> Result<LoadedSession> {
        self.read(|db| message_reading::load(db, id))
    }

    fn prompts(&self, limit: usize) -> Result<Vec<String>> {
        self.read(|db| prompt_history::prompts(db, limit))
    }

    fn learned_repairs(&self, now: Time) -> Result<Vec<LearnedRepair>> {
        self.read(|db| learned_repairs::learned_repairs(db, now))
    }

    fn learn_repairs(&self, repairs: &[LearnedRepair], now: Time) -> Result<()> {
        self.write(|db| learned_repairs::learn(db, repairs, now))
    }

    fn forget_repairs(&self) -> Result<usize> {
        self.write(learned_repairs::forget)
    }

    fn search(&self, query: &SearchQuery) -> Result<HitList> {
        self.read(|db| search::search(db, query))
    }

    fn usage(&self, query: &UsageQuery<'_>) -> Result<Vec<UsageRow>> {
        self.read(|db| usage::usage(db, query))
    }
}

/// The wall clock, for display only; order never depends on it.
fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Time(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}
