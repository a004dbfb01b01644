//! Atomic file writes: write a temporary file, sync, rename.

use std::io;
use std::path::Path;

use crate::dir::Dir;
pub use crate::dir::FileMode;

/// Writes a file atomically: on any failure the previous content stays intact. A symlink is replaced, not
/// followed.
pub fn write(path: &Path, bytes: &[u8], mode: FileMode) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Dir::open(folder)?.replace(name, bytes, mode)
}
