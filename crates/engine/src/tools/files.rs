//! Opens and checks files before they are read or changed.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::working_dir::{PathScope, ResolvedPath};
use crate::dir::{self, OpenedPath};

/// The largest file that is edited, written or compared in memory.
pub(crate) const MAX_BYTES: usize = 16 * 1024 * 1024;

/// How many bytes are checked to detect a binary file.
pub(crate) const SNIFF_BYTES: usize = 8 * 1024;

/// A text file that can be edited.
#[derive(Debug, Clone)]
pub(crate) struct TextFile {
    pub(crate) text: String,
    pub(crate) permissions: Permissions,
}

/// What exists at a path that is to be written.
#[derive(Debug, Clone)]
pub(crate) enum ExistingFile {
    Missing,
    Text(TextFile),
    /// Not text, or too large. It can only be replaced as a whole, without a diff.
    Other {
        bytes: u64,
        version: FileVersion,
        permissions: Permissions,
    },
}

/// Differs if a file was written or replaced. Its owner can set the time of its last change, but not this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileVersion {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl FileVersion {
    fn of(metadata: &Metadata) -> FileVersion {
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        FileVersion { device: metadata.dev(), inode: metadata.ino(), changed }
    }
}

/// Opens a regular file for reading. Anything else could block forever or never end.
pub(crate) fn open(resolved: &ResolvedPath) -> Result<(File, Metadata), String> {
    if holds_secrets(resolved) {
        return Err(format!("`{}` holds the environment or the memory of a process; it is never read", resolved.name));
    }
    match resolved.base.open_at(&resolved.relative).map_err(|error| describe_error(resolved, &error))? {
        OpenedPath::File(file, metadata) => Ok((file, metadata)),
        OpenedPath::Folder => Err(format!("`{}` is a folder; use `list`", resolved.name)),
        OpenedPath::Special => Err(format!("`{}` is not a regular file", resolved.name)),
    }
}

/// The tools run in this process, so they could read its own environment with the providers' keys.
fn holds_secrets(resolved: &ResolvedPath) -> bool {
    resolved.scope == PathScope::Outside && is_process_secret(&resolved.path)
}

/// `/proc/…/environ` and `/proc/…/mem`. The path must have its links followed.
pub(crate) fn is_process_secret(path: &Path) -> bool {
    path.starts_with("/proc") && path.file_name().is_some_and(|name| name == "environ" || name == "mem")
}

pub(crate) fn read_existing(resolved: &ResolvedPath) -> Result<ExistingFile, String> {
    let opened = match resolved.base.open_at(&resolved.relative) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ExistingFile::Missing),
        // A part of the path may be a file, or may have become a link.
        Err(error) => return Err(describe_error(resolved, &error)),
        Ok(_) => open(resolved),
    };
    let (file, metadata) = opened?;
    let (permissions, version) = (metadata.permissions(), FileVersion::of(&metadata));
    // Replacing a file by a rename does not check its own permissions.
    if permissions.readonly() {
        return Err(format!("`{}` is read-only", resolved.name));
    }
    let mut bytes = Vec::new();
    if metadata.len() <= MAX_BYTES as u64 {
        file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| describe_error(resolved, &error))?;
    }
    if metadata.len().max(bytes.len() as u64) > MAX_BYTES as u64 {
        return Ok(ExistingFile::Other { bytes: metadata.len().max(bytes.len() as u64), version, permissions });
    }
    let size = bytes.len() as u64;
    Ok(match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => ExistingFile::Text(TextFile { text, permissions }),
        Ok(_) | Err(_) => ExistingFile::Other { bytes: size, version, permissions },
    })
}

pub(crate) fn describe_error(resolved: &ResolvedPath, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        return format!("`{}` does not exist", resolved.name);
    }
    if dir::leads_elsewhere(error) {
        return format!("`{}` leads elsewhere since it was checked; nothing was done", resolved.name);
    }
    format!("`{}`: {error}", resolved.name)
}

/// Detects the type by the file extension.
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
