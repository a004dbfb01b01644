//! What a file is before anything is done with it.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

use super::workplace::Place;

/// The most that is edited or compared in memory.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// How much of the beginning tells what a file is.
pub(crate) const SNIFF: usize = 8 * 1024;

/// Text that a change can be made to.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) text: String,
    pub(crate) permissions: Permissions,
}

/// What stands where something is to be written.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    Nothing,
    Text(Document),
    /// Replaced whole or not at all; there is no diff of it.
    Other {
        bytes: u64,
        changed: Option<SystemTime>,
        permissions: Permissions,
    },
}

/// Anything but a plain file could block for ever or never end.
pub(crate) fn plain(place: &Place) -> Result<Metadata, String> {
    let metadata = fs::metadata(&place.path).map_err(|error| about(place, &error))?;
    match (metadata.is_file(), metadata.is_dir()) {
        (true, _) => Ok(metadata),
        (_, true) => Err(format!("`{}` is a folder; use `list`", place.name)),
        (false, false) => Err(format!("`{}` is no plain file", place.name)),
    }
}

pub(crate) fn find(place: &Place) -> Result<Found, String> {
    match fs::symlink_metadata(&place.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        // A part of the way is a file; the write below says so.
        Err(error) => return Err(about(place, &error)),
        Ok(_) => (),
    }
    let metadata = plain(place)?;
    let (permissions, changed) = (metadata.permissions(), metadata.modified().ok());
    // A rename does not ask the file that it replaces.
    if permissions.readonly() {
        return Err(format!("`{}` is read-only", place.name));
    }
    if metadata.len() > MOST_BYTES {
        return Ok(Found::Other { bytes: metadata.len(), changed, permissions });
    }
    let mut bytes = Vec::new();
    let file = File::open(&place.path).map_err(|error| about(place, &error))?;
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(|error| about(place, &error))?;
    let size = bytes.len() as u64;
    Ok(match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Found::Text(Document { text, permissions }),
        Ok(_) | Err(_) => Found::Other { bytes: size, changed, permissions },
    })
}

pub(crate) fn about(place: &Place, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        return format!("`{}` does not exist", place.name);
    }
    format!("`{}`: {error}", place.name)
}

/// By the name; an image without a telling name is a binary file.
pub(crate) fn image_type(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    }
}
