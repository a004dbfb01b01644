//! Locks a session for writing. On disk this is a file lock of the operating
//! system, which is released when its process ends, even after a crash. So
//! there are no stale locks to detect.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Result, StoreError};
use crate::files;
use crate::session::SessionId;

/// The exclusive right to write to a session. Released when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct WriteLock {
    session: SessionId,
    _held: Arc<HeldLock>,
}

impl WriteLock {
    pub fn session(&self) -> &SessionId {
        &self.session
    }
}

#[derive(Debug)]
enum HeldLock {
    /// Closing the file releases the lock; the path is removed before that.
    OnDisk {
        _file: File,
        path: PathBuf,
    },
    InMemory {
        taken: Arc<Mutex<HashSet<SessionId>>>,
        session: SessionId,
    },
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        match self {
            // A process that opened the file before its removal notices in `lock_file`.
            HeldLock::OnDisk { path, .. } => drop(std::fs::remove_file(path)),
            HeldLock::InMemory { taken, session } => {
                taken.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
            }
        }
    }
}

/// Where write locks are taken.
#[derive(Debug, Clone)]
pub(crate) enum WriteLocks {
    OnDisk { folder: PathBuf },
    InMemory { taken: Arc<Mutex<HashSet<SessionId>>> },
}

impl WriteLocks {
    pub(crate) fn take(&self, session: &SessionId) -> Result<WriteLock> {
        let held = match self {
            WriteLocks::OnDisk { folder } => lock_file(folder, session)?,
            WriteLocks::InMemory { taken } => {
                let fresh = taken.lock().unwrap_or_else(PoisonError::into_inner).insert(session.clone());
                if !fresh {
                    let owner = std::process::id().to_string();
                    return Err(StoreError::InUse { session: session.clone(), owner });
                }
                HeldLock::InMemory { taken: Arc::clone(taken), session: session.clone() }
            }
        };
        Ok(WriteLock { session: session.clone(), _held: Arc::new(held) })
    }
}

fn lock_file(folder: &Path, session: &SessionId) -> Result<HeldLock> {
    files::private_folder(folder).map_err(|error| StoreError::of_io(&error, folder))?;
    let path = folder.join(format!("{session}.lock"));
    let fail = |error: std::io::Error| StoreError::of_io(&error, &path);
    loop {
        let mut file = files::private_file(&path).map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(&mut file, session)),
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
        // The former holder may have removed the file between our two steps.
        // Then this lock is on a file that no other process can open.
        if is_still_there(&file, &path) {
            file.set_len(0).map_err(fail)?;
            file.write_all(std::process::id().to_string().as_bytes()).map_err(fail)?;
            return Ok(HeldLock::OnDisk { _file: file, path });
        }
    }
}

fn in_use(file: &mut File, session: &SessionId) -> StoreError {
    let mut owner = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut owner));
    if read.is_err() || owner.trim().is_empty() {
        owner = "unknown".to_owned();
    }
    StoreError::InUse { session: session.clone(), owner }
}

#[cfg(unix)]
fn is_still_there(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(found)) => ours.ino() == found.ino() && ours.dev() == found.dev(),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// On other systems an open file cannot be removed, so it is the same file.
#[cfg(not(unix))]
fn is_still_there(_file: &File, _path: &Path) -> bool {
    true
}
