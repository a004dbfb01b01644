//! Rows that wait in a local file while the store is down. The file is bounded,
//! and holds only encrypted bodies.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, params};

use crate::error::StoreError;
use crate::row_bytes::{ReadRow, append_row, read_row};
use crate::store::WriteRow;

/// Rows that are taken out at once.
const BATCH: usize = 64;

/// What deletions may take beyond the limit.
const ROOM_FOR_DELETIONS: u64 = 1 << 20;

/// A bounded queue in a SQLite file. Several processes may use it, so an id is never used twice: a process that removes
/// what it has written must not remove what another one has added.
pub(crate) struct Spill {
    db: Connection,
    max_bytes: u64,
    bytes: u64,
    rows: u64,
}

/// Rows in the order in which they were added, up to this number.
pub(crate) struct SpilledRows {
    pub(crate) rows: Arc<Vec<WriteRow>>,
    /// Rows of another version, or damaged ones. They are removed with the others.
    pub(crate) n_unreadable: u64,
    /// What they take in the file, with the unreadable ones.
    n_rows: u64,
    bytes: u64,
    last: i64,
}

impl Spill {
    /// Opens the file, or creates it. What an earlier process left is still there.
    pub(crate) fn open(path: &Path, max_bytes: u64) -> Result<Spill, StoreError> {
        let fail = |problem: String| StoreError::CannotOpen { location: path.display().to_string(), problem };
        let mut create = std::fs::OpenOptions::new();
        create.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut create, 0o600);
        create.open(path).map_err(|error| fail(error.to_string()))?;
        Spill::prepare(path, max_bytes).map_err(|error| fail(error.to_string()))
    }

    fn prepare(path: &Path, max_bytes: u64) -> rusqlite::Result<Spill> {
        let db = Connection::open(path)?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "NORMAL")?;
        db.execute_batch(
            "CREATE TABLE IF NOT EXISTS waiting (id INTEGER PRIMARY KEY AUTOINCREMENT, row BLOB NOT NULL)",
        )?;
        let mut spill = Spill { db, max_bytes, bytes: 0, rows: 0 };
        spill.recount()?;
        Ok(spill)
    }

    /// Counts again what is in the file. True if another process has changed that.
    pub(crate) fn recount(&mut self) -> rusqlite::Result<bool> {
        let (rows, bytes): (i64, i64) =
            self.db.query_row("SELECT count(*), coalesce(sum(length(row)), 0) FROM waiting", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        let before = (self.rows, self.bytes);
        (self.rows, self.bytes) = (count(rows), count(bytes));
        Ok(before != (self.rows, self.bytes))
    }

    /// How many rows wait.
    pub(crate) fn len(&self) -> u64 {
        self.rows
    }

    /// Adds rows. Returns which of them are in the file; it may be full, or not be writable.
    pub(crate) fn add(&mut self, rows: &[WriteRow]) -> Vec<bool> {
        if rows.is_empty() {
            return Vec::new();
        }
        self.try_add(rows).unwrap_or_else(|_| vec![false; rows.len()])
    }

    fn try_add(&mut self, rows: &[WriteRow]) -> rusqlite::Result<Vec<bool>> {
        let (mut n_added, mut bytes) = (0, 0);
        let transaction = self.db.transaction()?;
        let mut added = Vec::with_capacity(rows.len());
        for row in rows {
            let mut written = Vec::new();
            let written = append_row(&mut written, row).map(|()| written);
            let max_bytes = match row {
                // Its client is told that it is done.
                WriteRow::Forget { .. } => self.max_bytes + ROOM_FOR_DELETIONS,
                WriteRow::Reply { .. } | WriteRow::Touch { .. } | WriteRow::Rejected { .. } | WriteRow::Receipt(_) => {
                    self.max_bytes
                }
            };
            let fits = |row: &Vec<u8>| self.bytes + bytes + row.len() as u64 <= max_bytes;
            let written = written.filter(fits);
            added.push(written.is_some());
            if let Some(written) = written {
                transaction.execute("INSERT INTO waiting (row) VALUES (?1)", [&written])?;
                n_added += 1;
                bytes += written.len() as u64;
            }
        }
        transaction.commit()?;
        self.rows += n_added;
        self.bytes += bytes;
        Ok(added)
    }

    /// Reads all rows.
    pub(crate) fn each(&self, mut read: impl FnMut(WriteRow)) -> rusqlite::Result<()> {
        let mut statement = self.db.prepare("SELECT row FROM waiting ORDER BY id")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            read_whole(row.get_ref(0)?.as_blob()?).into_iter().for_each(&mut read);
        }
        Ok(())
    }

    /// The oldest rows. They stay until [`Spill::remove`].
    pub(crate) fn oldest(&self) -> Result<SpilledRows, StoreError> {
        let down = |error: rusqlite::Error| StoreError::Down(error.to_string());
        let mut statement = self.db.prepare_cached("SELECT id, row FROM waiting ORDER BY id LIMIT ?1").map_err(down)?;
        let found = statement
            .query_map([BATCH as i64], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)))
            .and_then(Iterator::collect::<rusqlite::Result<Vec<(i64, Vec<u8>)>>>)
            .map_err(down)?;
        let last = found.last().map_or(0, |(id, _)| *id);
        let rows: Vec<WriteRow> = found.iter().filter_map(|(_, row)| read_whole(row)).collect();
        let (n_rows, bytes) = (found.len() as u64, found.iter().map(|(_, row)| row.len() as u64).sum());
        Ok(SpilledRows { n_unreadable: n_rows - rows.len() as u64, rows: Arc::new(rows), n_rows, bytes, last })
    }

    /// Removes rows that the store has now.
    pub(crate) fn remove(&mut self, written: &SpilledRows) -> Result<(), StoreError> {
        let down = |error: rusqlite::Error| StoreError::Down(error.to_string());
        self.db.execute("DELETE FROM waiting WHERE id <= ?1", params![written.last]).map_err(down)?;
        self.rows = self.rows.saturating_sub(written.n_rows);
        self.bytes = self.bytes.saturating_sub(written.bytes);
        // Other processes add and remove rows too. Counting takes long while the file is full.
        if self.rows == 0 || written.n_rows < BATCH as u64 {
            self.recount().map_err(down)?;
        }
        Ok(())
    }
}

fn read_whole(bytes: &[u8]) -> Option<WriteRow> {
    match read_row(bytes)? {
        (ReadRow::Row(row), []) => Some(row),
        (ReadRow::Row(_) | ReadRow::Unknown, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use aside_core::block::Time;

    use super::*;
    use crate::reply_id::ReplyId;
    use crate::tenant::TenantId;

    fn row(at: u64) -> WriteRow {
        WriteRow::Rejected { tenant: TenantId::of("a"), reply: ReplyId([7; 12]), expires: Time(at) }
    }

    #[test]
    fn g7_processes_notice_what_others_add_to_the_file_and_remove_from_it() {
        let folder = std::env::temp_dir().join(format!("aside-spill-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("spill");
        let mut first = Spill::open(&path, 1 << 20).unwrap();
        let mut second = Spill::open(&path, 1 << 20).unwrap();
        let rows: Vec<WriteRow> = (0..100).map(row).collect();
        assert_eq!(first.add(&rows), vec![true; 100]);
        assert_eq!((first.len(), second.len()), (100, 0));
        assert!(second.recount().unwrap() && !second.recount().unwrap());
        let mut left = 100;
        while left > 0 {
            let batch = second.oldest().unwrap();
            assert_eq!(batch.rows[0], rows[100 - left]);
            second.remove(&batch).unwrap();
            left -= batch.rows.len();
            assert_eq!(second.len(), left as u64);
        }
        assert!(first.recount().unwrap());
        assert_eq!((first.len(), first.bytes, second.bytes), (0, 0, 0));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
