//! Atomic writes of the user's files, and private files and folders.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

use aside_engine::atomic::{self, FileMode};

/// Replaces the file. On any failure the old content stays intact.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    // Follow a symlink (often into a dotfiles repository) instead of replacing it.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    private_folder(folder)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    atomic::write(&folder.join(name), text.as_bytes(), FileMode::Private)
}

/// Creates a file that only the user can read. Fails if the path exists, even as a
/// dangling symlink.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    open_private(path, OpenOptions::new().write(true).create_new(true))
}

/// Opens a private file for appending, and creates it if needed.
pub(crate) fn append_private(path: &Path) -> io::Result<File> {
    open_private(path, OpenOptions::new().append(true).create(true))
}

fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}

/// Makes a folder that only its owner can read.
pub fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
