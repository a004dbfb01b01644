//! Opens the database file: checks it, then configures the connection.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use super::StoreOptions;
use super::error::DbError;
use super::schema::{self, FileStatus, NEWEST, PAGE_SIZE};
use crate::error::{Result, StoreError};
use crate::files;

/// How long one process waits while another one writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether another process may write to the file while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadMode {
    Shared,
    /// The folder is read-only, so SQLite cannot create its shared-memory file.
    Immutable,
}

pub(super) fn for_writing(folder: &Path, path: &Path, options: StoreOptions) -> Result<Connection> {
    files::private_folder(folder).map_err(|error| StoreError::of_io(&error, folder))?;
    // Created before SQLite does it, so that the file and its side files are private.
    drop(files::private_file(path).map_err(|error| StoreError::of_io(&error, path))?);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> Result<Connection, DbError> {
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let status = check(&connection, path)?;
        if status == FileStatus::Empty {
            connection.pragma_update(None, "page_size", PAGE_SIZE)?;
        }
        write_ahead(&connection)?;
        tune(&connection, WRITER_CACHE)?;
        connection.pragma_update(None, "journal_size_limit", 32 << 20)?;
        if let Some(pages) = options.max_pages {
            connection.pragma_update(None, "max_page_count", pages)?;
        }
        if status != (FileStatus::Ours { version: NEWEST }) {
            schema::migrate(&mut connection)?;
        }
        Ok(connection)
    };
    open().map_err(|error| error.with_path(path))
}

/// Switches to the write-ahead log. That needs exclusive access for a moment, which
/// SQLite's busy timeout does not cover.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let start = Instant::now();
    loop {
        let busy = match connection.pragma_update(None, "journal_mode", "wal") {
            Ok(()) => return Ok(()),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => error,
            Err(error) => return Err(error),
        };
        if start.elapsed() > BUSY_TIMEOUT {
            return Err(busy);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The page cache of a reader, which searches the whole file, in KiB.
const READER_CACHE: i64 = 16 << 10;
/// The page cache of the writer. It keeps what it has written, so that more would only hold the last reply in
/// memory again.
const WRITER_CACHE: i64 = 2 << 10;

fn tune(connection: &Connection, cache_kib: i64) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Checks that the file is ours before anything is written to it.
fn check(connection: &Connection, path: &Path) -> Result<FileStatus, DbError> {
    // In one transaction: a store that another process is just creating would
    // look like a foreign file.
    let moment = connection.unchecked_transaction()?;
    let status = schema::file_status(&moment)?;
    drop(moment);
    match status {
        FileStatus::Foreign => Err(StoreError::NotOurs { path: path.to_owned() }.into()),
        FileStatus::Ours { version } if version > NEWEST => {
            Err(StoreError::NewerThanUs { path: path.to_owned(), found: version, supported: NEWEST }.into())
        }
        FileStatus::Ours { .. } | FileStatus::Empty => Ok(status),
    }
}

pub(super) fn for_reading(path: &Path, mode: ReadMode) -> Result<Connection, DbError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match mode {
        ReadMode::Shared => Connection::open_with_flags(path, flags)?,
        ReadMode::Immutable => Connection::open_with_flags(immutable_uri(path), flags | OpenFlags::SQLITE_OPEN_URI)?,
    };
    connection.busy_timeout(BUSY_TIMEOUT)?;
    tune(&connection, READER_CACHE)?;
    Ok(connection)
}

/// Opens a read-only connection, also in a folder that cannot be written to.
pub(super) fn for_reading_first(path: &Path) -> Result<(Connection, ReadMode)> {
    if let Err(error) = std::fs::File::open(path) {
        return Err(StoreError::of_io(&error, path));
    }
    let attempt = |mode: ReadMode| -> Result<Connection, DbError> {
        let connection = for_reading(path, mode)?;
        match check(&connection, path)? {
            FileStatus::Ours { version: NEWEST } => Ok(connection),
            FileStatus::Ours { .. } | FileStatus::Empty | FileStatus::Foreign => {
                let detail = "a file in an older format must be opened for writing once".to_owned();
                Err(StoreError::ReadOnly { path: path.to_owned(), detail }.into())
            }
        }
    };
    // Which of the two SQLite returns depends on the side files it finds.
    let cannot_be_shared = |error: &rusqlite::Error| {
        use rusqlite::ErrorCode::{CannotOpen, ReadOnly};
        matches!(error.sqlite_error_code(), Some(CannotOpen | ReadOnly))
    };
    match attempt(ReadMode::Shared) {
        Ok(connection) => Ok((connection, ReadMode::Shared)),
        // Opened as immutable, the file would silently lack the changes in the write-ahead log.
        Err(DbError::Sqlite(error)) if cannot_be_shared(&error) && has_write_ahead_log(path) => {
            let detail = "its latest changes are in a write-ahead log that must be merged first".to_owned();
            Err(StoreError::ReadOnly { path: path.to_owned(), detail })
        }
        Err(DbError::Sqlite(error)) if cannot_be_shared(&error) => {
            let connection = attempt(ReadMode::Immutable).map_err(|error| error.with_path(path))?;
            Ok((connection, ReadMode::Immutable))
        }
        Err(error) => Err(error.with_path(path)),
    }
}

/// Opens the database of another program read-only, also in a folder that
/// cannot be written to. The error says what is wrong.
pub(crate) fn open_foreign(path: &Path) -> Result<Connection, String> {
    let attempt = |mode: ReadMode| -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match mode {
            ReadMode::Shared => Connection::open_with_flags(path, flags)?,
            ReadMode::Immutable => {
                Connection::open_with_flags(immutable_uri(path), flags | OpenFlags::SQLITE_OPEN_URI)?
            }
        };
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // Nothing is read before the first query.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    let shared = attempt(ReadMode::Shared);
    let opened = match shared {
        Err(_) if has_write_ahead_log(path) => shared,
        Err(_) => attempt(ReadMode::Immutable),
        Ok(_) => shared,
    };
    opened.map_err(|error| error.to_string())
}

fn has_write_ahead_log(path: &Path) -> bool {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-wal");
    std::fs::metadata(journal).is_ok_and(|journal| journal.len() > 0)
}

fn immutable_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri + "?immutable=1"
}

pub(super) fn in_memory() -> Result<Connection> {
    let open = || -> Result<Connection, DbError> {
        let mut connection = Connection::open_in_memory()?;
        tune(&connection, WRITER_CACHE)?;
        schema::migrate(&mut connection)?;
        Ok(connection)
    };
    open().map_err(|error| error.with_path(Path::new(":memory:")))
}
