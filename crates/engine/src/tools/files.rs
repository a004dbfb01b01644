//! What a file is before anything is done with it.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

use super::workplace::{Place, Side};
use crate::dir::{self, Opened};

/// The most that is edited, written or compared in memory.
pub(crate) const MOST_BYTES: usize = 16 * 1024 * 1024;

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

/// Opens a plain file for reading. Anything else could block for ever or never
/// end.
pub(crate) fn open(place: &Place) -> Result<(File, Metadata), String> {
    if holds_secrets(place) {
        return Err(format!("`{}` holds the environment or the memory of a process; it is never read", place.name));
    }
    match place.from.look(&place.below).map_err(|error| about(place, &error))? {
        Opened::File(file, metadata) => Ok((file, metadata)),
        Opened::Folder => Err(format!("`{}` is a folder; use `list`", place.name)),
        Opened::Special => Err(format!("`{}` is no plain file", place.name)),
    }
}

/// The tools run in this process, so its own environment, with the keys of
/// providers, would be readable to them.
fn holds_secrets(place: &Place) -> bool {
    place.side == Side::Outside && is_of_a_process(&place.path)
}

/// `/proc/…/environ` and `/proc/…/mem`, with every link followed.
pub(crate) fn is_of_a_process(path: &Path) -> bool {
    path.starts_with("/proc") && path.file_name().is_some_and(|name| name == "environ" || name == "mem")
}

pub(crate) fn find(place: &Place) -> Result<Found, String> {
    let opened = match place.from.look(&place.below) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        // A part of the way may be a file, or a link by now.
        Err(error) => return Err(about(place, &error)),
        Ok(_) => open(place),
    };
    let (file, metadata) = opened?;
    let (permissions, changed) = (metadata.permissions(), metadata.modified().ok());
    // A rename does not ask the file that it replaces.
    if permissions.readonly() {
        return Err(format!("`{}` is read-only", place.name));
    }
    let mut bytes = Vec::new();
    if metadata.len() <= MOST_BYTES as u64 {
        file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| about(place, &error))?;
    }
    if metadata.len().max(bytes.len() as u64) > MOST_BYTES as u64 {
        return Ok(Found::Other { bytes: metadata.len().max(bytes.len() as u64), changed, permissions });
    }
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
    if dir::is_elsewhere(error) {
        return format!("`{}` leads elsewhere since it was looked at; nothing was done", place.name);
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
