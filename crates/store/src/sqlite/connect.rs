//! Opening the file: who may, what is checked first, how it is tuned.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use super::Options;
use super::fault::Fault;
use super::schema::{self, NEWEST, PAGE_SIZE, Standing};
use crate::error::{Result, StoreError};
use crate::files;

/// How long one process waits while another one writes.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether anybody may write to the file while it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Shared,
    /// A file in a folder where not even a reader may leave its marks.
    Frozen,
}

pub(super) fn for_writing(folder: &Path, path: &Path, options: Options) -> Result<Connection> {
    files::private_folder(folder).map_err(|error| StoreError::of_io(&error, folder))?;
    // Made before SQLite does, so that it and its companions are private.
    drop(files::private_file(path).map_err(|error| StoreError::of_io(&error, path))?);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> Result<Connection, Fault> {
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        let standing = check(&connection, path)?;
        if standing == Standing::Empty {
            connection.pragma_update(None, "page_size", PAGE_SIZE)?;
        }
        write_ahead(&connection)?;
        tune(&connection)?;
        connection.pragma_update(None, "journal_size_limit", 32 << 20)?;
        if let Some(pages) = options.most_pages {
            connection.pragma_update(None, "max_page_count", pages)?;
        }
        if standing != (Standing::Ours { version: NEWEST }) {
            schema::migrate(&mut connection)?;
        }
        Ok(connection)
    };
    open().map_err(|fault| fault.at(path))
}

/// Going over to the write-ahead log needs the file alone for a moment, and
/// SQLite does not wait for that by itself.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let start = Instant::now();
    loop {
        let busy = match connection.pragma_update(None, "journal_mode", "wal") {
            Ok(()) => return Ok(()),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => error,
            Err(error) => return Err(error),
        };
        if start.elapsed() > PATIENCE {
            return Err(busy);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn tune(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Nothing is written before it is known whose file this is.
fn check(connection: &Connection, path: &Path) -> Result<Standing, Fault> {
    // At one moment: half of what another process is just making looks like
    // somebody else's file.
    let moment = connection.unchecked_transaction()?;
    let standing = schema::standing(&moment)?;
    drop(moment);
    match standing {
        Standing::Foreign => Err(StoreError::NotOurs { path: path.to_owned() }.into()),
        Standing::Ours { version } if version > NEWEST => {
            Err(StoreError::NewerThanUs { path: path.to_owned(), found: version, supported: NEWEST }.into())
        }
        Standing::Ours { .. } | Standing::Empty => Ok(standing),
    }
}

pub(super) fn for_reading(path: &Path, reach: Reach) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match reach {
        Reach::Shared => Connection::open_with_flags(path, flags)?,
        Reach::Frozen => Connection::open_with_flags(frozen(path), flags | OpenFlags::SQLITE_OPEN_URI)?,
    };
    connection.busy_timeout(PATIENCE)?;
    tune(&connection)?;
    Ok(connection)
}

/// A folder that cannot be written may still be read, if nobody writes there.
pub(super) fn for_reading_first(path: &Path) -> Result<(Connection, Reach)> {
    if let Err(error) = std::fs::File::open(path) {
        return Err(StoreError::of_io(&error, path));
    }
    let attempt = |reach: Reach| -> Result<Connection, Fault> {
        let connection = for_reading(path, reach)?;
        match check(&connection, path)? {
            Standing::Ours { version: NEWEST } => Ok(connection),
            Standing::Ours { .. } | Standing::Empty | Standing::Foreign => {
                let detail = "an older form has to be opened for writing once".to_owned();
                Err(StoreError::ReadOnly { path: path.to_owned(), detail }.into())
            }
        }
    };
    // Which of the two it is depends on what it finds beside the file.
    let cannot_be_shared = |error: &rusqlite::Error| {
        use rusqlite::ErrorCode::{CannotOpen, ReadOnly};
        matches!(error.sqlite_error_code(), Some(CannotOpen | ReadOnly))
    };
    match attempt(Reach::Shared) {
        Ok(connection) => Ok((connection, Reach::Shared)),
        // Read as it stands, what is still in the journal would be missing without a word.
        Err(Fault::Sqlite(error)) if cannot_be_shared(&error) && has_journal(path) => {
            let detail = "its latest changes are in a journal that has to be taken in first".to_owned();
            Err(StoreError::ReadOnly { path: path.to_owned(), detail })
        }
        Err(Fault::Sqlite(error)) if cannot_be_shared(&error) => {
            let connection = attempt(Reach::Frozen).map_err(|fault| fault.at(path))?;
            Ok((connection, Reach::Frozen))
        }
        Err(fault) => Err(fault.at(path)),
    }
}

fn has_journal(path: &Path) -> bool {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-wal");
    std::fs::metadata(journal).is_ok_and(|journal| journal.len() > 0)
}

fn frozen(path: &Path) -> String {
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
    let open = || -> Result<Connection, Fault> {
        let mut connection = Connection::open_in_memory()?;
        tune(&connection)?;
        schema::migrate(&mut connection)?;
        Ok(connection)
    };
    open().map_err(|fault| fault.at(Path::new(":memory:")))
}
