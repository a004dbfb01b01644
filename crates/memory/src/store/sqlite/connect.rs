//! Opens connections, and creates the tables.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use super::Durability;
use crate::error::StoreError;
use crate::store::SCHEMA;

/// How long a write waits for another process, such as `serve key new`.
const BUSY: Duration = Duration::from_secs(5);

/// The write-ahead log is moved into the database when it has this many pages of 4 KiB.
const CHECKPOINT_PAGES: i64 = 4000;

/// The pages that the writer keeps in memory. The keys of replies are spread over all pages of their tables, so a small
/// cache would read most of them again for each group.
const WRITER_CACHE_KIB: i64 = 16 << 10;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS reply (
  tenant BLOB NOT NULL, reply BLOB NOT NULL, conv BLOB NOT NULL, parent BLOB,
  dialect TEXT NOT NULL, model TEXT NOT NULL, issuer BLOB NOT NULL,
  status INTEGER NOT NULL, created INTEGER NOT NULL, expires INTEGER NOT NULL, day INTEGER NOT NULL,
  codec INTEGER NOT NULL, keyid INTEGER NOT NULL, size INTEGER NOT NULL, parts INTEGER NOT NULL, body BLOB,
  PRIMARY KEY (tenant, reply));
CREATE TABLE IF NOT EXISTS reply_part (
  tenant BLOB NOT NULL, reply BLOB NOT NULL, n INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (tenant, reply, n));
CREATE TABLE IF NOT EXISTS reply_key (
  tenant BLOB NOT NULL, key BLOB NOT NULL, reply BLOB NOT NULL, kind INTEGER NOT NULL, day INTEGER NOT NULL,
  PRIMARY KEY (tenant, key, reply)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS reply_day ON reply (day, tenant);
CREATE INDEX IF NOT EXISTS reply_key_day ON reply_key (day, tenant);
CREATE TABLE IF NOT EXISTS receipt (
  tenant BLOB NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, expires INTEGER NOT NULL, day INTEGER NOT NULL,
  client TEXT NOT NULL, model TEXT NOT NULL, status INTEGER NOT NULL, repaired TEXT NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (tenant, id));
CREATE INDEX IF NOT EXISTS receipt_at ON receipt (tenant, at);
CREATE INDEX IF NOT EXISTS receipt_day ON receipt (day);
CREATE TABLE IF NOT EXISTS tenant (
  tenant BLOB PRIMARY KEY, name TEXT NOT NULL, keyid INTEGER NOT NULL, sealed BLOB NOT NULL, created INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS client_key (
  name TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, settings TEXT NOT NULL, created INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS learned (
  endpoint TEXT NOT NULL, repair TEXT NOT NULL, expires INTEGER NOT NULL, PRIMARY KEY (endpoint, repair));
CREATE TABLE IF NOT EXISTS spend (
  name TEXT NOT NULL, kind TEXT NOT NULL, win INTEGER NOT NULL, replica TEXT NOT NULL, total INTEGER NOT NULL,
  PRIMARY KEY (name, kind, win, replica));
CREATE TABLE IF NOT EXISTS meta (k TEXT PRIMARY KEY, v INTEGER NOT NULL);
INSERT INTO meta (k, v) VALUES ('revision', 1) ON CONFLICT DO NOTHING;
";

pub(super) fn for_writing(path: &Path, durability: Durability) -> rusqlite::Result<Connection> {
    // The database takes the mode of the file that it finds.
    let mut create = std::fs::OpenOptions::new();
    create.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut create, 0o600);
    create.open(path).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = match durability {
        Durability::Process => "NORMAL",
        Durability::Power => "FULL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    // Most pages of a group are written again by the next groups; moving them into the database less often saves that.
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    // A negative number is one of KiB.
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

pub(super) fn for_reading(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Creates the tables, unless a newer version did.
pub(super) fn check_schema(connection: &Connection, fail: &dyn Fn(String) -> StoreError) -> Result<(), StoreError> {
    let problem = |error: rusqlite::Error| fail(error.to_string());
    let has_meta: bool = connection
        .query_row("SELECT count(*) > 0 FROM sqlite_master WHERE name = 'meta'", [], |row| row.get(0))
        .map_err(problem)?;
    if has_meta {
        let found = connection.query_row("SELECT v FROM meta WHERE k = 'schema'", [], |row| row.get(0)).optional();
        if let Some(found) = found.map_err(problem)?.filter(|found| *found > SCHEMA) {
            return Err(StoreError::NewerSchema { found, known: SCHEMA });
        }
    }
    let insert = format!("INSERT INTO meta (k, v) VALUES ('schema', {SCHEMA}) ON CONFLICT DO NOTHING;");
    connection.execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} {insert} COMMIT;")).map_err(problem)
}
