//! Files of the user that are never half-written: write, sync, rename.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Puts the text where the path leads. Whatever fails, what was there before
/// is still there whole.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    // A link into a folder of dotfiles stays a link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    private_folder(folder)?;
    // In the same folder, since a rename is whole only within one file system.
    let draft = draft_beside(&path, folder)?;
    let written = write_new(&draft, text).and_then(|()| fs::rename(&draft, &path));
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
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    name.push(format!(".{}.tmp", std::process::id()));
    let draft = folder.join(name);
    // Left by a killed process that had our number.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(draft),
    }
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// A file of our own that grows; nobody else reads it.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
