//! Files of the user that are never half-written, and folders of our own.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

use aside_engine::atomic::{self, Access};

/// Puts the text where the path leads. Whatever fails, what was there before
/// is still there whole.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    // A link into a folder of dotfiles stays a link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    private_folder(folder)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    atomic::write(&folder.join(name), text.as_bytes(), Access::Private)
}

/// A new file that grows; nobody else reads it. What is there already stays as
/// it is, and no link is followed to somewhere else.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    open_private(path, OpenOptions::new().write(true).create_new(true))
}

/// The same, which goes on where it ended.
pub(crate) fn append_private(path: &Path) -> io::Result<File> {
    open_private(path, OpenOptions::new().append(true).create(true))
}

fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}

pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
