//! A file of replies that are not in the tables yet. Appending to it takes microseconds and
//! survives the end of the process, so a client need not wait for a commit, and replies
//! are committed in large groups.
//!
//! Only the process that wrote a journal sees these replies. So it is used while one process
//! uses the database; a second one creates a mark, and from then on both commit at once.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::random;
use crate::store::WriteRow;

/// When a file has this many bytes, the next one is begun.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// A larger reply is committed instead: appending it would hold up an async thread.
const MAX_ROW_BYTES: usize = 256 << 10;
/// The length and the checksum before each row.
const HEADER_BYTES: usize = 8;
/// How often to check whether the other processes have ended.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// Says which file a row was appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JournalNumber(u64);

/// The journal of one process. Files of processes that have ended are read by [`recover`].
pub(crate) struct Journal {
    /// The database's path, which the names of the files begin with.
    database: PathBuf,
    /// The file that exists while several processes use the database.
    mark: PathBuf,
    /// Whether the mark was there when it was last looked for.
    had_mark: AtomicBool,
    files: Mutex<JournalFiles>,
}

struct JournalFiles {
    current: JournalFile,
    /// Full files with rows that are not in the tables yet.
    full: Vec<JournalFile>,
    buffer: Vec<u8>,
    /// When other processes were last looked for.
    checked: Instant,
}

struct JournalFile {
    number: u64,
    path: PathBuf,
    /// Locked, so that other processes do not take it for a file of a process that has ended.
    file: File,
    bytes: u64,
    /// Rows that are not in the tables yet.
    n_pending: u64,
}

impl Journal {
    /// Begins a journal. If other processes use the database, they are told.
    pub(crate) fn create(database: &Path) -> io::Result<Journal> {
        let current = JournalFile::create(database, 0)?;
        let files = JournalFiles { current, full: Vec::new(), buffer: Vec::new(), checked: Instant::now() };
        let mark = with_suffix(database, MARK);
        let had_mark = AtomicBool::new(false);
        let journal = Journal { database: database.to_owned(), mark, had_mark, files: Mutex::new(files) };
        journal.update_mark()?;
        Ok(journal)
    }

    /// Creates the mark if other processes use the database, and removes it if none does.
    fn update_mark(&self) -> io::Result<()> {
        if self.others()?.is_empty() {
            match std::fs::remove_file(&self.mark) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => Ok(()),
            }
        } else {
            OpenOptions::new().append(true).create(true).open(&self.mark).map(drop)
        }
    }

    /// Whether every reply of the other processes is in the tables. Once the mark exists, that stays so.
    pub(crate) fn others_are_stored(&self) -> io::Result<bool> {
        Ok(self.others()?.iter().all(|bytes| *bytes == 0))
    }

    /// The lengths of the journals of other processes that run.
    fn others(&self) -> io::Result<Vec<u64>> {
        let mut lengths = Vec::new();
        for path in journals_of(&self.database)? {
            let Ok(file) = File::open(&path) else { continue };
            if file.try_lock_shared().is_err() && !self.owns(&path) {
                lengths.push(file.metadata()?.len());
            }
        }
        Ok(lengths)
    }

    fn owns(&self, path: &Path) -> bool {
        let files = self.lock();
        files.full.iter().chain([&files.current]).any(|file| file.path == path)
    }

    /// Whether other processes are known to need each reply at once. Asks the file system only if they did before.
    pub(crate) fn was_shared(&self) -> bool {
        self.had_mark.load(Ordering::Relaxed) && self.is_shared()
    }

    /// Whether other processes need to see each reply at once.
    pub(crate) fn is_shared(&self) -> bool {
        let has_mark = self.mark.exists();
        self.had_mark.store(has_mark, Ordering::Relaxed);
        if !has_mark {
            return false;
        }
        let since = self.lock().checked.elapsed();
        if since < CHECK_EVERY {
            return true;
        }
        self.lock().checked = Instant::now();
        // The others may have ended. If that is unknown, they have not.
        self.update_mark().is_err() || self.mark.exists()
    }

    fn lock(&self) -> MutexGuard<'_, JournalFiles> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a row. None if it is too large or cannot be written.
    pub(crate) fn append(&self, row: &WriteRow) -> Option<JournalNumber> {
        if row.weight() > MAX_ROW_BYTES {
            return None;
        }
        let mut files = self.lock();
        if files.current.bytes > MAX_FILE_BYTES {
            let next = JournalFile::create(&self.database, files.current.number + 1).ok()?;
            let full = std::mem::replace(&mut files.current, next);
            if full.n_pending == 0 {
                full.remove();
            } else {
                files.full.push(full);
            }
        }
        let JournalFiles { current, buffer, .. } = &mut *files;
        write_frame(buffer, row)?;
        if current.file.write_all(buffer).is_err() {
            // A part of it may have been written. If that cannot be removed, its checksum gives it away.
            let _still_there = current.file.set_len(current.bytes);
            return None;
        }
        current.bytes += buffer.len() as u64;
        current.n_pending += 1;
        Some(JournalNumber(current.number))
    }

    /// Notes that a row is in the tables.
    pub(crate) fn stored(&self, number: JournalNumber) {
        let mut files = self.lock();
        if files.current.number == number.0 {
            files.current.n_pending = files.current.n_pending.saturating_sub(1);
            return;
        }
        let Some(at) = files.full.iter().position(|file| file.number == number.0) else { return };
        let Some(file) = files.full.get_mut(at) else { return };
        file.n_pending = file.n_pending.saturating_sub(1);
        if file.n_pending == 0 {
            files.full.swap_remove(at).remove();
        }
    }

    /// Whether the file has rows, all of which are in the tables.
    pub(crate) fn can_be_emptied(&self) -> bool {
        let files = self.lock();
        files.current.bytes > 0 && files.current.n_pending == 0
    }

    /// Empties the file if all its rows are in the tables.
    pub(crate) fn empty(&self) {
        let mut files = self.lock();
        let current = &mut files.current;
        if current.n_pending == 0 && current.file.set_len(0).is_ok() {
            current.bytes = 0;
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let files = self.files.get_mut().unwrap_or_else(PoisonError::into_inner);
        if files.current.n_pending == 0 {
            files.current.remove_file();
        }
    }
}

impl JournalFile {
    fn create(database: &Path, number: u64) -> io::Result<JournalFile> {
        let path = with_suffix(database, &format!("{SUFFIX}{}", random::base62(12)));
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        file.try_lock()?;
        Ok(JournalFile { number, path, file, bytes: 0, n_pending: 0 })
    }

    fn remove(self) {
        self.remove_file();
    }

    /// If that fails, the next process finds rows that the tables have already.
    fn remove_file(&self) {
        let _left = std::fs::remove_file(&self.path);
    }
}

/// What a process left behind that ended suddenly.
pub(crate) struct LeftBehind {
    path: PathBuf,
    /// Locked, so that only one process writes its rows.
    _file: File,
    pub(crate) rows: Vec<WriteRow>,
}

impl LeftBehind {
    /// Removes the file, once its rows are in the tables.
    pub(crate) fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

/// Finds the journals of processes that have ended.
pub(crate) fn recover(database: &Path) -> io::Result<Vec<LeftBehind>> {
    let mut found = Vec::new();
    for path in journals_of(database)? {
        let mut file = File::open(&path)?;
        if file.try_lock().is_err() {
            continue;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        found.push(LeftBehind { path, _file: file, rows: read_frames(&bytes) });
    }
    Ok(found)
}

/// The journals of all processes.
fn journals_of(database: &Path) -> io::Result<Vec<PathBuf>> {
    let (Some(folder), Some(name)) = (database.parent(), database.file_name()) else { return Ok(Vec::new()) };
    let prefix = format!("{}{SUFFIX}", name.to_string_lossy());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&prefix) && entry.file_type()?.is_file() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Between the name of the database and the random part.
const SUFFIX: &str = "-recent-";
/// The end of the mark's name.
const MARK: &str = "-shared";

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.to_owned().into_os_string();
    path.push(suffix);
    PathBuf::from(path)
}

/// Replaces the buffer's content with a row in the form it has in the file.
fn write_frame(buffer: &mut Vec<u8>, row: &WriteRow) -> Option<()> {
    buffer.clear();
    buffer.extend([0; HEADER_BYTES]);
    serde_json::to_writer(&mut *buffer, row).ok()?;
    let (header, json) = buffer.split_at_mut_checked(HEADER_BYTES)?;
    let (length, checksum) = header.split_at_mut_checked(4)?;
    length.copy_from_slice(&u32::try_from(json.len()).ok()?.to_le_bytes());
    checksum.copy_from_slice(&crc32fast::hash(json).to_le_bytes());
    Some(())
}

/// The rows up to the first that is incomplete: the process ended while it wrote that one.
fn read_frames(mut bytes: &[u8]) -> Vec<WriteRow> {
    let mut rows = Vec::new();
    while let Some((row, rest)) = read_frame(bytes) {
        // A row that cannot be read was written by another version.
        rows.extend(row);
        bytes = rest;
    }
    rows
}

fn read_frame(bytes: &[u8]) -> Option<(Option<WriteRow>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, rest) = rest.split_first_chunk::<4>()?;
    let (json, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let is_whole = crc32fast::hash(json) == u32::from_le_bytes(*checksum);
    is_whole.then(|| (serde_json::from_slice(json).ok(), rest))
}

#[cfg(test)]
mod tests {
    use aside_core::block::Time;

    use super::*;
    use crate::reply_id::ReplyId;
    use crate::tenant::TenantId;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("aside-journal-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn row(at: u64) -> WriteRow {
        WriteRow::Rejected { tenant: TenantId::of("a"), reply: ReplyId([7; 12]), expires: Time(at) }
    }

    fn files(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn g7_rows_of_a_killed_process_are_found_up_to_the_one_it_was_writing() {
        let folder = folder("killed");
        let database = folder.join("gateway.db");
        let journal = Journal::create(&database).unwrap();
        let rows: Vec<WriteRow> = (0..3).map(row).collect();
        rows.iter().for_each(|row| assert!(journal.append(row).is_some()));
        assert!(recover(&database).unwrap().is_empty(), "it belongs to a process that runs");
        let path = journal.lock().current.path.clone();
        drop(journal);
        assert_eq!(recover(&database).unwrap().remove(0).rows, rows);
        let mut bytes = std::fs::read(&path).unwrap();
        for (name, cut) in [("half a row", 20), ("half a header", bytes.len() / 3 * 2 - 5)] {
            std::fs::write(&path, &bytes[..bytes.len() - cut]).unwrap();
            let kept = recover(&database).unwrap().remove(0).rows;
            assert_eq!(kept, rows[..kept.len()], "{name}");
            assert!(kept.len() < 3, "{name}");
        }
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let left = recover(&database).unwrap().remove(0);
        assert_eq!(left.rows, rows[..2], "a damaged row");
        left.remove().unwrap();
        assert_eq!(files(&folder), 0);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn g7_a_second_process_makes_every_reply_visible_at_once() {
        let folder = folder("shared");
        let database = folder.join("gateway.db");
        let first = Journal::create(&database).unwrap();
        let number = first.append(&row(1)).unwrap();
        assert!(!first.is_shared());
        let second = Journal::create(&database).unwrap();
        assert!(first.is_shared() && second.is_shared());
        assert!(!second.others_are_stored().unwrap(), "the first process has a reply that only it knows");
        first.stored(number);
        first.empty();
        assert!(second.others_are_stored().unwrap());
        drop(first);
        second.lock().checked -= CHECK_EVERY;
        assert!(!second.is_shared(), "it is alone again");
        drop(second);
        assert_eq!(files(&folder), 0);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn g7_files_whose_rows_are_stored_are_emptied_or_removed() {
        let folder = folder("stored");
        let journal = Journal::create(&folder.join("gateway.db")).unwrap();
        let first = journal.append(&row(1)).unwrap();
        assert!(!journal.can_be_emptied());
        journal.lock().current.bytes = MAX_FILE_BYTES + 1;
        let second = journal.append(&row(2)).unwrap();
        assert_ne!(first, second, "the first file was full");
        assert_eq!(files(&folder), 2);
        journal.stored(first);
        assert_eq!(files(&folder), 1);
        journal.stored(second);
        assert!(journal.can_be_emptied());
        journal.empty();
        assert!(!journal.can_be_emptied());
        assert_eq!(std::fs::metadata(journal.lock().current.path.clone()).unwrap().len(), 0);
        drop(journal);
        assert_eq!(files(&folder), 0);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
