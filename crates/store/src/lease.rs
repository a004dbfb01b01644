//! The right to write to a session. On disk it is a lock of the operating
//! system, so it ends with its process, however that ends; nobody has to judge
//! whether an owner is still alive.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Result, StoreError};
use crate::files;
use crate::session::SessionId;

/// Held as long as somebody may write to a session: until the last copy goes.
#[derive(Debug, Clone)]
pub struct Lease {
    session: SessionId,
    _held: Arc<Held>,
}

impl Lease {
    pub fn session(&self) -> &SessionId {
        &self.session
    }
}

#[derive(Debug)]
enum Held {
    /// The lock goes with the file; the path goes first.
    OnDisk {
        _file: File,
        path: PathBuf,
    },
    InMemory {
        taken: Arc<Mutex<HashSet<SessionId>>>,
        session: SessionId,
    },
}

impl Drop for Held {
    fn drop(&mut self) {
        match self {
            // Whoever opened the file before it went notices in `take_file`.
            Held::OnDisk { path, .. } => drop(std::fs::remove_file(path)),
            Held::InMemory { taken, session } => {
                taken.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
            }
        }
    }
}

/// Where leases are taken.
#[derive(Debug, Clone)]
pub(crate) enum Leases {
    OnDisk { folder: PathBuf },
    InMemory { taken: Arc<Mutex<HashSet<SessionId>>> },
}

impl Leases {
    pub(crate) fn take(&self, session: &SessionId) -> Result<Lease> {
        let held = match self {
            Leases::OnDisk { folder } => take_file(folder, session)?,
            Leases::InMemory { taken } => {
                let fresh = taken.lock().unwrap_or_else(PoisonError::into_inner).insert(session.clone());
                if !fresh {
                    let owner = std::process::id().to_string();
                    return Err(StoreError::InUse { session: session.clone(), owner });
                }
                Held::InMemory { taken: Arc::clone(taken), session: session.clone() }
            }
        };
        Ok(Lease { session: session.clone(), _held: Arc::new(held) })
    }
}

fn take_file(folder: &Path, session: &SessionId) -> Result<Held> {
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
        // The former holder may have removed the file between our two steps;
        // then this lock is on a file nobody else can find.
        if is_still_there(&file, &path) {
            file.set_len(0).map_err(fail)?;
            file.write_all(std::process::id().to_string().as_bytes()).map_err(fail)?;
            return Ok(Held::OnDisk { _file: file, path });
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

/// Elsewhere an open file cannot be removed, so it is the same one.
#[cfg(not(unix))]
fn is_still_there(_file: &File, _path: &Path) -> bool {
    true
}
