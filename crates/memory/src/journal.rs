//! Files of replies that are not in the tables yet. Appending to one takes microseconds and survives the end of the
//! process, so a client need not wait for a commit, and replies are committed in large groups.
//!
//! Only the process that wrote a journal sees these replies. So it is used while one process uses the database. A
//! second one first marks both, and then copies what the first has into the tables: an append that did not see the
//! mark is seen by this copy. From then on both commit each reply before its client is told that it is durable.

mod presence;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::row_bytes::{ReadRow, append_row, read_row};
use crate::store::WriteRow;
use presence::Presence;

/// When a file has this many bytes, the next one is begun.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// A larger reply is committed instead: appending it would hold up an async thread.
const MAX_ROW_BYTES: usize = 256 << 10;
/// How often to check whether the other processes have ended.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// Says which file a row was appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JournalNumber(u64);

/// A row that survives the end of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Appended {
    pub(crate) number: JournalNumber,
    /// Another process cannot see the row until it is in the tables.
    pub(crate) is_shared: bool,
}

/// What a journal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournalUse {
    /// Replies are appended.
    Append,
    /// Each reply is committed at once. The others must know of this process all the same.
    OnlyPresence,
}

/// The journal of one process.
pub(crate) struct Journal {
    presence: Presence,
    journal_use: JournalUse,
    /// Whether the mark was there when it was last looked for.
    had_mark: AtomicBool,
    files: Mutex<JournalFiles>,
}

struct JournalFiles {
    current: Option<JournalFile>,
    /// Full files with rows that are not in the tables yet.
    full: Vec<JournalFile>,
    next_number: u64,
    buffer: Vec<u8>,
    /// When other processes were last looked for.
    checked: Instant,
}

struct JournalFile {
    number: u64,
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Rows that are not in the tables yet.
    n_pending: u64,
    /// The file may end with a part of a row. What is appended after that cannot be read.
    is_torn: bool,
}

impl Journal {
    /// Begins a journal. If other processes use the database, all of them are told.
    pub(crate) fn create(database: &Path, journal_use: JournalUse) -> io::Result<Journal> {
        let presence = Presence::create(database)?;
        let marked = presence.mark_all();
        let files = JournalFiles {
            current: None,
            full: Vec::new(),
            next_number: 0,
            buffer: Vec::new(),
            checked: Instant::now(),
        };
        let had_mark = AtomicBool::new(presence.has_mark());
        let journal = Journal { presence, journal_use, had_mark, files: Mutex::new(files) };
        marked.map(|()| journal)
    }

    /// What the journals of the other processes have, whether they run or not.
    pub(crate) fn others(&self) -> io::Result<Vec<OtherJournal>> {
        read_others(self.presence.database(), Some(&self.presence.id), WhichProcesses::All)
    }

    /// The journals of processes that have ended, if it is time to look for them. Then [`Journal::were_checked`] or
    /// [`Journal::check_again`] must follow.
    pub(crate) fn check_ended(&self) -> Option<io::Result<Vec<OtherJournal>>> {
        let is_due = self.was_shared() && self.lock().checked.elapsed() >= CHECK_EVERY;
        is_due.then(|| read_others(self.presence.database(), Some(&self.presence.id), WhichProcesses::Ended))
    }

    /// Removes the mark if this process is alone now.
    pub(crate) fn were_checked(&self) {
        // Nothing is appended meanwhile.
        let mut files = self.lock();
        files.checked = Instant::now();
        // If that fails, the mark stays.
        let _unmarked = self.presence.unmark();
    }

    /// Something that an ended process has left could not be stored. The mark stays, so it is looked for again.
    pub(crate) fn check_again(&self) {
        self.lock().checked = Instant::now();
    }

    /// Whether other processes are known to need each reply at once. Asks the file system only if they did before.
    pub(crate) fn was_shared(&self) -> bool {
        self.had_mark.load(Ordering::Relaxed) && self.is_shared()
    }

    /// Whether other processes need to see each reply at once.
    fn is_shared(&self) -> bool {
        let has_mark = self.presence.has_mark();
        self.had_mark.store(has_mark, Ordering::Relaxed);
        has_mark
    }

    fn lock(&self) -> MutexGuard<'_, JournalFiles> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a row. None if it is too large or cannot be written.
    pub(crate) fn append(&self, row: &WriteRow) -> Option<Appended> {
        if row.weight() > MAX_ROW_BYTES || self.journal_use == JournalUse::OnlyPresence {
            return None;
        }
        let mut files = self.lock();
        files.make_room(&self.presence)?;
        let JournalFiles { current, buffer, .. } = &mut *files;
        let current = current.as_mut()?;
        buffer.clear();
        append_row(buffer, row)?;
        current.append(buffer)?;
        // Afterwards: a process that sets the mark later finds the row in the file. The lock is held, see `were_checked`.
        Some(Appended { number: JournalNumber(current.number), is_shared: self.is_shared() })
    }

    /// Notes that a row is in the tables.
    pub(crate) fn stored(&self, number: JournalNumber) {
        let mut files = self.lock();
        if let Some(current) = files.current.as_mut().filter(|current| current.number == number.0) {
            current.n_pending = current.n_pending.saturating_sub(1);
            return;
        }
        let Some(at) = files.full.iter().position(|file| file.number == number.0) else { return };
        let Some(file) = files.full.get_mut(at) else { return };
        file.n_pending = file.n_pending.saturating_sub(1);
        if file.n_pending == 0 {
            files.full.swap_remove(at).remove();
        }
    }

    /// Empties the file if all its rows are in the tables.
    pub(crate) fn empty(&self) {
        let mut files = self.lock();
        if let Some(current) = files.current.as_mut().filter(|current| current.can_be_emptied()) {
            current.cut(0);
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let files = self.files.get_mut().unwrap_or_else(PoisonError::into_inner);
        let current = files.current.take();
        let is_pending = |file: &JournalFile| file.n_pending > 0;
        let is_over = files.full.is_empty() && !current.as_ref().is_some_and(is_pending);
        if let Some(current) = current.filter(|current| !is_pending(current)) {
            current.remove();
        }
        if is_over {
            self.presence.remove();
        }
    }
}

impl JournalFiles {
    /// Makes sure that there is a file that a row can be appended to.
    fn make_room(&mut self, presence: &Presence) -> Option<()> {
        if let Some(current) = self.current.as_mut().filter(|current| current.is_torn) {
            current.cut(current.bytes);
        }
        if self.current.as_ref().is_some_and(|current| current.bytes <= MAX_FILE_BYTES && !current.is_torn) {
            return Some(());
        }
        let next = JournalFile::create(presence.row_file(self.next_number), self.next_number).ok()?;
        self.next_number += 1;
        match self.current.replace(next) {
            Some(full) if full.n_pending == 0 => full.remove(),
            full => self.full.extend(full),
        }
        Some(())
    }
}

impl JournalFile {
    fn create(path: PathBuf, number: u64) -> io::Result<JournalFile> {
        let file = presence::new_file(&path)?;
        Ok(JournalFile { number, path, file, bytes: 0, n_pending: 0, is_torn: false })
    }

    fn append(&mut self, frame: &[u8]) -> Option<()> {
        if self.file.write_all(frame).is_err() {
            // A part of it may have been written.
            self.is_torn = true;
            self.cut(self.bytes);
            return None;
        }
        self.bytes += frame.len() as u64;
        self.n_pending += 1;
        Some(())
    }

    /// Removes what follows this position. If that fails, the file stays torn.
    fn cut(&mut self, bytes: u64) {
        if self.file.set_len(bytes).is_ok() {
            (self.bytes, self.is_torn) = (bytes, false);
        }
    }

    fn can_be_emptied(&self) -> bool {
        self.bytes > 0 && self.n_pending == 0
    }

    /// If that fails, the next process finds rows that the tables have already.
    fn remove(self) {
        let _left = presence::remove(&self.path);
    }
}

/// The journal of another process.
pub(crate) struct OtherJournal {
    pub(crate) rows: Vec<WriteRow>,
    /// It has rows of another version.
    has_unknown: bool,
    /// None if the process runs.
    ended: Option<EndedProcess>,
}

/// The files of a process that has ended, to be removed.
struct EndedProcess {
    database: PathBuf,
    id: String,
    rows: Vec<PathBuf>,
    /// Locked, so that only one process removes them.
    _lock: File,
}

impl OtherJournal {
    /// Removes the files of a process that has ended, once its rows are in the tables. Rows of another version stay for that.
    pub(crate) fn are_stored(self) -> io::Result<()> {
        let Some(ended) = self.ended.filter(|_| !self.has_unknown) else { return Ok(()) };
        ended.rows.iter().try_for_each(|path| presence::remove(path))?;
        presence::remove_process(&ended.database, &ended.id)
    }
}

/// Whose journals to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WhichProcesses {
    All,
    Ended,
}

/// Reads the journals of processes that have ended, without starting one.
pub(crate) fn recover(database: &Path) -> io::Result<Vec<OtherJournal>> {
    read_others(database, None, WhichProcesses::Ended)
}

fn read_others(database: &Path, own: Option<&str>, which: WhichProcesses) -> io::Result<Vec<OtherJournal>> {
    let mut found = Vec::new();
    for process in presence::processes(database)?.into_iter().filter(|process| own != Some(process.id.as_str())) {
        let lock = presence::lock_ended(database, &process.id);
        if lock.is_none() && which == WhichProcesses::Ended {
            continue;
        }
        let mut journal = OtherJournal { rows: Vec::new(), has_unknown: false, ended: None };
        for path in &process.rows {
            match std::fs::File::open(path) {
                // Whoever removed it has stored its rows.
                Err(error) if error.kind() == io::ErrorKind::NotFound => (),
                Err(error) => return Err(error),
                Ok(mut file) => {
                    let mut bytes = Vec::new();
                    file.read_to_end(&mut bytes)?;
                    read_rows(&bytes, &mut journal);
                }
            }
        }
        let ended =
            |lock| EndedProcess { database: database.to_owned(), id: process.id, rows: process.rows, _lock: lock };
        journal.ended = lock.map(ended);
        found.push(journal);
    }
    Ok(found)
}

/// Reads rows up to the first that is incomplete: the process ended while it wrote that one.
fn read_rows(mut bytes: &[u8], found: &mut OtherJournal) {
    while let Some((row, rest)) = read_row(bytes) {
        match row {
            ReadRow::Row(row) => found.rows.push(row),
            ReadRow::Unknown => found.has_unknown = true,
        }
        bytes = rest;
    }
}
