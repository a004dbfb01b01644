//! Files that are never half-written: write beside, sync, rename.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Who may read the new file.
#[derive(Debug, Clone)]
pub enum Access {
    /// The user alone.
    Private,
    /// Whatever new files of the user get.
    Usual,
    /// As the file before it.
    Like(Permissions),
}

/// Puts the bytes where the path leads. Whatever fails, what was there before
/// is still there whole.
pub fn write(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    // In the same folder, since a rename is whole only within one file system.
    let draft = draft_beside(path, folder)?;
    let written = write_new(&draft, bytes, access).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // The error that counts is the one above.
        drop(fs::remove_file(&draft));
    }
    written?;
    // The rename itself is lost with the power unless the folder is synced;
    // some file systems cannot, and the file is whole either way.
    drop(File::open(folder).and_then(|folder| folder.sync_all()));
    Ok(())
}

fn draft_beside(path: &Path, folder: &Path) -> io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{}-{count}.tmp", std::process::id()));
    let draft = folder.join(name);
    // Left by a killed process that had our number.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(draft),
    }
}

fn write_new(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if matches!(access, Access::Private | Access::Like(_)) {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let mut file: File = options.open(path)?;
    file.write_all(bytes)?;
    if let Access::Like(permissions) = access {
        file.set_permissions(permissions)?;
    }
    file.sync_all()
}
