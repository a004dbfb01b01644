//! File changes by tools: reported before they are made, so that they can be undone later.

use std::fmt;
use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::files::{self, ExistingFile, MAX_BYTES};
use super::working_dir::{ResolvedPath, WorkingDir};
use crate::dir::{FileMode, OpenedPath};

/// The permission bits of a file, without its type.
const MODE_BITS: u32 = 0o7777;

/// Is told about every change of a file before `write` or `edit` makes it.
pub trait ChangeObserver: Send + Sync + fmt::Debug {
    fn before_change(&self, change: &FileChange<'_>);

    /// Takes the notices for the user since the last call.
    fn take_notices(&self) -> Vec<String>;
}

/// A change that is about to be made.
#[derive(Debug)]
pub struct FileChange<'a> {
    /// The absolute path, with all links followed.
    pub path: &'a Path,
    /// The path as the user sees it.
    pub name: &'a str,
    pub before: PriorFile<'a>,
    pub after: &'a [u8],
}

/// The file before a change.
#[derive(Debug)]
pub enum PriorFile<'a> {
    Missing,
    File {
        content: std::borrow::Cow<'a, [u8]>,
        mode: u32,
    },
    /// It has more bytes than tools read.
    TooLarge,
}

/// The content and permission bits of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    pub content: Vec<u8>,
    /// None for the default of a new file.
    pub mode: Option<u32>,
}

impl<'a> FileChange<'a> {
    /// The change from what was seen to the new content. None if nothing changes.
    pub(crate) fn new(resolved: &'a ResolvedPath, seen: &'a ExistingFile, after: &'a str) -> Option<FileChange<'a>> {
        let mode = |permissions: &Permissions| permissions.mode() & MODE_BITS;
        let before = match seen {
            ExistingFile::Missing => PriorFile::Missing,
            ExistingFile::Text(text) if text.text == after => return None,
            ExistingFile::Text(text) => {
                PriorFile::File { content: text.text.as_bytes().into(), mode: mode(&text.permissions) }
            }
            ExistingFile::Other { permissions, .. } => match read(resolved) {
                Ok(Some(FileContent { content, .. })) => {
                    PriorFile::File { content: content.into(), mode: mode(permissions) }
                }
                Ok(None) => PriorFile::Missing,
                Err(_) => PriorFile::TooLarge,
            },
        };
        Some(FileChange { path: &resolved.path, name: &resolved.name, before, after: after.as_bytes() })
    }
}

/// Reads and restores files that tools changed. Nothing is read or written through a link.
#[derive(Debug, Clone)]
pub struct FileRestorer(WorkingDir);

impl FileRestorer {
    pub fn new(work: WorkingDir) -> FileRestorer {
        FileRestorer(work)
    }

    /// The path as the user sees it: relative to the working directory if it lies inside.
    pub fn name(&self, path: &str) -> String {
        let path = Path::new(path);
        path.strip_prefix(self.0.root()).unwrap_or(path).display().to_string()
    }

    /// What is at this absolute path now; none if nothing is.
    pub fn read(&self, path: &str) -> Result<Option<FileContent>, String> {
        read(&self.resolve(path)?)
    }

    /// Writes this content, or removes the file.
    pub fn restore(&self, path: &str, content: Option<&FileContent>) -> Result<(), String> {
        let resolved = self.resolve(path)?;
        let fail = |error: std::io::Error| files::describe_error(&resolved, &error);
        let (Some(folder), Some(name)) = (resolved.relative.parent(), resolved.relative.file_name()) else {
            return Err(format!("`{}` is a folder", resolved.name));
        };
        match content {
            Some(FileContent { content, mode }) => {
                let mode = match mode {
                    Some(mode) => FileMode::SameAs(Permissions::from_mode(mode & MODE_BITS)),
                    None => FileMode::Default,
                };
                let folder = resolved.base.make_folders(folder).map_err(fail)?;
                folder.replace(name, content, mode).map_err(fail)
            }
            None => resolved.base.open_folder(folder).and_then(|folder| folder.remove(name)).map_err(fail),
        }
    }

    /// Removes the folder at this absolute path, if it is empty. Returns whether it did.
    pub fn remove_empty_folder(&self, path: &str) -> bool {
        let Ok(ResolvedPath { base, relative, .. }) = self.resolve(path) else { return false };
        let (Some(parent), Some(name)) = (relative.parent(), relative.file_name()) else { return false };
        base.open_folder(parent).and_then(|parent| parent.remove_folder(name)).is_ok()
    }

    fn resolve(&self, path: &str) -> Result<ResolvedPath, String> {
        let resolved = self.0.resolve(path)?;
        match resolved.path == Path::new(path) {
            true => Ok(resolved),
            false => Err(format!("`{}` leads elsewhere now", self.name(path))),
        }
    }
}

fn read(resolved: &ResolvedPath) -> Result<Option<FileContent>, String> {
    let (file, metadata) = match resolved.base.open_at(&resolved.relative) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(files::describe_error(resolved, &error)),
        Ok(OpenedPath::File(file, metadata)) => (file, metadata),
        Ok(OpenedPath::Folder | OpenedPath::Special) => {
            return Err(format!("`{}` is not a regular file any more", resolved.name));
        }
    };
    let mut content = Vec::new();
    let most = MAX_BYTES as u64;
    if metadata.len() <= most {
        file.take(most + 1).read_to_end(&mut content).map_err(|error| files::describe_error(resolved, &error))?;
    }
    if metadata.len().max(content.len() as u64) > most {
        return Err(format!("`{}` has more than {MAX_BYTES} bytes", resolved.name));
    }
    Ok(Some(FileContent { content, mode: Some(metadata.permissions().mode() & MODE_BITS) }))
}
