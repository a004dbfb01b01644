//! Files that are never half-written: write beside, sync, rename.

use std::io;
use std::path::Path;

pub use crate::dir::Access;
use crate::dir::Dir;

/// Puts the bytes under this path. Whatever fails, what was there before is
/// still there whole. If it is a link, the link is replaced.
pub fn write(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Dir::open(folder)?.replace(name, bytes, access)
}
