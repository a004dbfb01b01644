//! The store as one SQLite file.
//!
//! One connection writes, under a lock; a few read beside it, which the
//! write-ahead log allows. A commit is in the hands of the operating system
//! when it returns, so a killed process loses nothing that was committed. It
//! is not forced to the disk every time (`synchronous = NORMAL`): a power cut
//! may take the last commits, never the file.

mod connect;
mod fault;
mod ledger;
mod messages;
mod prompts;
mod replies;
mod schema;
mod search;
mod sessions;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use aside_core::block::Time;
use aside_core::conversation::Conversation;
use aside_core::message::Message;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use self::fault::Fault;
use crate::error::{Result, StoreError};
use crate::journal::Batch;
use crate::lease::{Lease, Leases};
use crate::ledger::{LedgerLine, LedgerQuery};
use crate::search::{Found, Query};
use crate::session::{
    Change, Loaded, MessageId, NewReply, NewSession, Parent, Session, SessionId, Summary, Tail, Window,
};
use crate::store::Store;

/// The file in the data folder.
pub const FILE_NAME: &str = "sessions.db";

/// Readers kept open when they are not needed.
const MOST_IDLE_READERS: usize = 4;

/// Sessions in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    // Dropped before the writer: only a writer that closes last can clear the
    // log away, and whoever opens next would have to read all of it.
    readers: Readers,
    writer: Writer,
    leases: Leases,
}

/// How a store is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// An upper bound on the size of the file, in pages of 16 KiB.
    pub most_pages: Option<u32>,
}

#[derive(Debug)]
enum Writer {
    Open(Mutex<Connection>),
    /// The store was opened to be read.
    None,
}

#[derive(Debug)]
enum Readers {
    Pool {
        idle: Mutex<Vec<Connection>>,
        reach: connect::Reach,
    },
    /// In memory there is only the writer's connection.
    Writer,
}

impl SqliteStore {
    /// Opens or creates the store of a data folder.
    pub fn open(folder: &Path) -> Result<SqliteStore> {
        SqliteStore::open_with(folder, Options::default())
    }

    pub fn open_with(folder: &Path, options: Options) -> Result<SqliteStore> {
        let path = folder.join(FILE_NAME);
        let connection = connect::for_writing(folder, &path, options)?;
        let store = SqliteStore {
            path,
            writer: Writer::Open(Mutex::new(connection)),
            readers: Readers::Pool { idle: Mutex::default(), reach: connect::Reach::Shared },
            leases: Leases::OnDisk { folder: folder.join("locks") },
        };
        store.close_orphans()?;
        Ok(store)
    }

    /// Opens a store to look into it; every change is refused.
    pub fn open_read_only(folder: &Path) -> Result<SqliteStore> {
        let path = folder.join(FILE_NAME);
        let (first, reach) = connect::for_reading_first(&path)?;
        Ok(SqliteStore {
            path,
            writer: Writer::None,
            readers: Readers::Pool { idle: Mutex::new(vec![first]), reach },
            leases: Leases::OnDisk { folder: folder.join("locks") },
        })
    }

    /// A store that ends with its value.
    pub fn in_memory() -> Result<SqliteStore> {
        Ok(SqliteStore {
            path: PathBuf::from(":memory:"),
            writer: Writer::Open(Mutex::new(connect::in_memory()?)),
            readers: Readers::Writer,
            leases: Leases::InMemory { taken: Arc::new(Mutex::new(HashSet::new())) },
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Changes the upper bound on the size of the file.
    pub fn set_most_pages(&self, most: u32) -> Result<()> {
        self.write(|db| Ok(db.pragma_update(None, "max_page_count", most)?))
    }

    /// Looks through the whole file for damage; empty when there is none.
    pub fn damage(&self) -> Result<Vec<String>> {
        self.read(|connection| {
            let mut statement = connection.prepare("PRAGMA integrity_check")?;
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
            Ok(lines.into_iter().filter(|line| line != "ok").collect())
        })
    }

    /// One change, whole or not at all.
    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>) -> Result<T> {
        let Writer::Open(connection) = &self.writer else {
            let detail = "it was opened to be read only".to_owned();
            return Err(StoreError::ReadOnly { path: self.path.clone(), detail });
        };
        // A panic inside rolled its transaction back; the connection is good.
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        let run = || -> Result<T, Fault> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = work(&transaction)?;
            transaction.commit()?;
            Ok(result)
        };
        run().map_err(|fault| fault.at(&self.path))
    }

    /// Everything read inside sees the same state of the file.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T> {
        let run = |connection: &Connection| -> Result<T, Fault> {
            let transaction = connection.unchecked_transaction()?;
            work(&transaction)
        };
        let result = match (&self.readers, &self.writer) {
            (Readers::Pool { idle, reach }, _) => {
                let ready = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let connection = match ready {
                    Some(connection) => connection,
                    None => connect::for_reading(&self.path, *reach).map_err(|fault| fault.at(&self.path))?,
                };
                let result = run(&connection);
                let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() < MOST_IDLE_READERS {
                    idle.push(connection);
                }
                result
            }
            (Readers::Writer, Writer::Open(connection)) => {
                run(&connection.lock().unwrap_or_else(PoisonError::into_inner))
            }
            (Readers::Writer, Writer::None) => Err(Fault::Sqlite(rusqlite::Error::InvalidQuery)),
        };
        result.map_err(|fault| fault.at(&self.path))
    }

    /// Replies whose recorder died are closed, where nobody has the session open.
    fn close_orphans(&self) -> Result<()> {
        for session in self.read(replies::sessions_with_running)? {
            match self.lease(&session) {
                Ok(_lease) => {}
                // Somebody records it right now, or no longer has room to close it.
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

    fn sessions(&self, most: usize) -> Result<Vec<Summary>> {
        self.read(|db| sessions::list(db, most))
    }

    fn find(&self, word: &str) -> Result<SessionId> {
        self.read(|db| sessions::find(db, word))
    }

    fn session(&self, id: &SessionId) -> Result<Session> {
        self.read(|db| sessions::session(db, id))
    }

    fn change(&self, id: &SessionId, change: &Change) -> Result<()> {
        self.write(|db| sessions::change(db, id, change))
    }

    fn delete(&self, id: &SessionId) -> Result<()> {
        self.read(|db| sessions::row_of(db, id))?;
        let _lease = self.leases.take(id)?;
        self.write(|db| sessions::delete(db, id))
    }

    fn lease(&self, id: &SessionId) -> Result<Lease> {
        self.read(|db| sessions::row_of(db, id))?;
        if matches!(self.writer, Writer::None) {
            return self.write(|_| Err(Fault::Sqlite(rusqlite::Error::InvalidQuery)));
        }
        let lease = self.leases.take(id)?;
        // Nobody else records in this session now, so whatever runs in it is
        // left over from a process that ended.
        self.write(|db| replies::close_running(db, id))?;
        Ok(lease)
    }

    fn append(&self, lease: &Lease, parent: Parent, message: &Message) -> Result<MessageId> {
        self.write(|db| messages::append(db, lease.session(), parent, message))
    }

    fn set_head(&self, lease: &Lease, head: Option<MessageId>) -> Result<()> {
        self.write(|db| messages::set_head(db, lease.session(), head))
    }

    fn begin(&self, lease: &Lease, reply: &NewReply) -> Result<MessageId> {
        self.write(|db| replies::begin(db, lease.session(), reply))
    }

    fn extend(&self, reply: MessageId, batch: &Batch) -> Result<()> {
        self.write(|db| batch.rows().try_for_each(|row| replies::extend(db, reply, &row)))
    }

    fn finish(&self, reply: MessageId, message: &Message, ended: Option<Time>) -> Result<()> {
        self.write(|db| replies::finish(db, reply, message, ended))
    }

    fn tail(&self, id: &SessionId, window: Window) -> Result<Tail> {
        self.read(|db| messages::tail(db, id, window))
    }

    fn load(&self, id: &SessionId) -> Result<Loaded> {
        self.read(|db| messages::load(db, id))
    }

    fn prompts(&self, most: usize) -> Result<Vec<String>> {
        self.read(|db| prompts::prompts(db, most))
    }

    fn search(&self, query: &Query) -> Result<Found> {
        self.read(|db| search::search(db, query))
    }

    fn ledger(&self, query: &LedgerQuery<'_>) -> Result<Vec<LedgerLine>> {
        self.read(|db| ledger::ledger(db, query))
    }
}

/// What the wall clock says, for bookkeeping only; order never depends on it.
fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Time(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}
