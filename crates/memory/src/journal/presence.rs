//! Which processes use a database. Each has a locked file beside it for as long as it runs, with an id that the
//! names of its other files begin with. A mark tells a process that it is not alone.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::random;

/// Between the database's name and the id of a process.
const PREFIX: &str = "-recent-";
/// A process that has no lock yet.
const STARTING: &str = "-starting-";
/// The end of the name of a mark.
const MARK: &str = ".shared";
/// How often to try to start under another name.
const MAX_TRIES: usize = 16;

/// The file of this process.
pub(super) struct Presence {
    database: PathBuf,
    pub(super) id: String,
    /// The mark of this process, which is looked for with each reply.
    mark: PathBuf,
    /// Locked until the end of the process.
    _file: File,
}

/// What there is of a process.
pub(super) struct ProcessFiles {
    pub(super) id: String,
    /// The files with rows, oldest first.
    pub(super) rows: Vec<PathBuf>,
}

impl Presence {
    /// Other processes see the file only when it is locked, so none takes it for that of a process that has ended.
    pub(super) fn create(database: &Path) -> io::Result<Presence> {
        let mut failed = io::Error::other("no free name");
        for _ in 0..MAX_TRIES {
            let id = random::base62(12);
            let starting = with_suffix(database, &format!("{STARTING}{id}"));
            let file = new_file(&starting)?;
            match file.try_lock() {
                Ok(()) => (),
                // Another process is just about to remove it.
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => {
                    let _left = std::fs::remove_file(&starting);
                    return Err(error);
                }
            }
            match std::fs::rename(&starting, process_file(database, &id)) {
                Ok(()) => {
                    let mark = mark_of(database, &id);
                    return Ok(Presence { database: database.to_owned(), id, mark, _file: file });
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    pub(super) fn database(&self) -> &Path {
        &self.database
    }

    pub(super) fn row_file(&self, number: u64) -> PathBuf {
        with_suffix(&process_file(&self.database, &self.id), &format!(".{number}"))
    }

    pub(super) fn has_mark(&self) -> bool {
        self.mark.exists()
    }

    /// Tells the other processes and this one that they are not alone.
    pub(super) fn mark_all(&self) -> io::Result<()> {
        let others = self.others()?;
        for id in others.iter().chain((!others.is_empty()).then_some(&self.id)) {
            OpenOptions::new().append(true).create(true).open(mark_of(&self.database, id))?;
        }
        Ok(())
    }

    /// Removes the own mark if no other process runs. One that starts at this moment is seen before or after that, and
    /// nothing may be appended in between.
    pub(super) fn unmark(&self) -> io::Result<()> {
        if self.others()?.is_empty() {
            remove(&self.mark)?;
            self.mark_all()?;
        }
        Ok(())
    }

    /// The ids of the other processes that run.
    fn others(&self) -> io::Result<Vec<String>> {
        let mut running = Vec::new();
        for process in processes(&self.database)? {
            let Ok(file) = File::open(process_file(&self.database, &process.id)) else { continue };
            // An error does not prove that it has ended.
            if process.id != self.id && file.try_lock_shared().is_err() {
                running.push(process.id);
            }
        }
        Ok(running)
    }

    /// Removes the files of this process, apart from those with rows.
    pub(super) fn remove(&self) {
        let _left = remove_process(&self.database, &self.id);
    }
}

/// The files of all processes, running or not.
pub(super) fn processes(database: &Path) -> io::Result<Vec<ProcessFiles>> {
    let (Some(folder), Some(name)) = (database.parent(), database.file_name()) else { return Ok(Vec::new()) };
    let name = name.to_string_lossy();
    let (prefix, starting) = (format!("{name}{PREFIX}"), format!("{name}{STARTING}"));
    let mut found: Vec<ProcessFiles> = Vec::new();
    let mut others: Vec<(String, Option<u64>, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let file = entry.file_name().to_string_lossy().into_owned();
        if file.starts_with(&starting) {
            remove_if_unlocked(&entry.path());
        }
        let Some(rest) = file.strip_prefix(&prefix) else { continue };
        match rest.split_once('.') {
            None => found.push(ProcessFiles { id: rest.to_owned(), rows: Vec::new() }),
            Some((id, number)) => others.push((id.to_owned(), number.parse().ok(), entry.path())),
        }
    }
    others.sort_unstable();
    for (id, number, path) in others {
        let rows = number.map(|_| path);
        match found.iter_mut().find(|process| process.id == id) {
            Some(process) => process.rows.extend(rows),
            None => found.push(ProcessFiles { id, rows: rows.into_iter().collect() }),
        }
    }
    Ok(found)
}

/// Locks the file of a process that has ended. None if it runs, or if another one does this.
pub(super) fn lock_ended(database: &Path, id: &str) -> Option<File> {
    let mut options = OpenOptions::new();
    // Without its own file, a process has ended too.
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(process_file(database, id)).ok()?;
    file.try_lock().ok().map(|()| file)
}

/// Removes the mark and the file of a process, in this order.
pub(super) fn remove_process(database: &Path, id: &str) -> io::Result<()> {
    remove(&mark_of(database, id))?;
    remove(&process_file(database, id))
}

/// A new file that only its owner can read.
pub(super) fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Removes a file, if there is one.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn remove_if_unlocked(path: &Path) {
    if let Ok(file) = File::open(path)
        && file.try_lock().is_ok()
    {
        let _left = remove(path);
    }
}

fn process_file(database: &Path, id: &str) -> PathBuf {
    with_suffix(database, &format!("{PREFIX}{id}"))
}

fn mark_of(database: &Path, id: &str) -> PathBuf {
    with_suffix(&process_file(database, id), MARK)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.to_owned().into_os_string();
    path.push(suffix);
    PathBuf::from(path)
}
