//! Files and folders below an open directory.
//!
//! A path is resolved and checked first, and opened later. In between, another process may replace a folder
//! on the path with a symlink. So nothing here follows symlinks or leaves the directory: such a path is an
//! error.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, openat, readlinkat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// A directory, held by its handle and so independent of its name.
#[derive(Debug)]
pub(crate) struct Dir(OwnedFd);

/// What a path refers to.
#[derive(Debug)]
pub(crate) enum OpenedPath {
    /// A regular file, opened for reading.
    File(File, Metadata),
    Folder,
    /// A pipe, socket or device: reading it could block forever.
    Special,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EntryKind {
    File,
    Folder,
    Link,
    Special,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirEntry {
    pub(crate) name: OsString,
    pub(crate) kind: EntryKind,
}

/// The permissions of a new file.
#[derive(Debug, Clone)]
pub enum FileMode {
    /// Only the user may read it.
    Private,
    /// The default of the umask.
    Default,
    /// The same as another file.
    SameAs(Permissions),
}

impl Dir {
    /// Opens a directory, following symlinks: the path is the caller's own.
    pub(crate) fn open(path: &Path) -> io::Result<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Dir(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Opens a folder below this one.
    pub(crate) fn open_folder(&self, path: &Path) -> io::Result<Dir> {
        self.open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY).map(Dir)
    }

    /// Opens a path below. Only regular files are opened: opening a device can have side effects.
    pub(crate) fn open_at(&self, path: &Path) -> io::Result<OpenedPath> {
        path.components().try_for_each(|part| plain_name(part).map(|_| ()))?;
        let Some((parent, name)) = split(path) else { return Ok(OpenedPath::Folder) };
        let parent = self.open_for_traversal(parent)?;
        match kind_of(FileType::from_raw_mode(statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)) {
            EntryKind::File => (),
            EntryKind::Folder => return Ok(OpenedPath::Folder),
            EntryKind::Link => return Err(Errno::LOOP.into()),
            EntryKind::Special => return Ok(OpenedPath::Special),
        }
        // Non-blocking, in case it has been replaced by a pipe since.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(&parent, name, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        Ok(if metadata.is_file() { OpenedPath::File(file, metadata) } else { OpenedPath::Special })
    }

    /// The entries of this directory, unordered. Entries that cannot be read are errors.
    pub(crate) fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<DirEntry>>> {
        let entries = rustix::fs::Dir::read_from(&self.0)?;
        let entry = |entry: rustix::fs::DirEntry| {
            let name = entry.file_name();
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                // Some file systems do not report a type.
                kind = FileType::from_raw_mode(statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
            }
            Ok(DirEntry { name: OsStr::from_bytes(name.to_bytes()).to_owned(), kind: kind_of(kind) })
        };
        let is_real_name = |entry: &rustix::fs::DirEntry| !matches!(entry.file_name().to_bytes(), b"." | b"..");
        Ok(entries.filter_map(move |one| match one {
            Ok(one) => is_real_name(&one).then(|| entry(one)),
            Err(error) => Some(Err(error.into())),
        }))
    }

    /// The target of a symlink, unresolved.
    pub(crate) fn link_target(&self, name: &OsStr) -> io::Result<OsString> {
        Ok(OsStr::from_bytes(readlinkat(&self.0, name, Vec::new())?.to_bytes()).to_owned())
    }

    /// Opens the folder at this path and creates missing folders.
    pub(crate) fn make_folders(&self, path: &Path) -> io::Result<Dir> {
        let mut here = self.open_folder(Path::new(""))?;
        for part in path.components() {
            let name = Path::new(plain_name(part)?);
            here = match here.open_folder(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match mkdirat(&here.0, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => here.open_folder(name)?,
                        Err(error) => return Err(error.into()),
                    }
                }
                opened => opened?,
            };
        }
        Ok(here)
    }

    /// Replaces a file atomically: writes a temporary file, syncs it and renames it. A symlink is replaced,
    /// not followed.
    pub(crate) fn replace(&self, name: &OsStr, bytes: &[u8], mode: FileMode) -> io::Result<()> {
        let temp = temp_name(name);
        // Left by a killed process with the same process id.
        match unlinkat(&self.0, &temp, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => (),
            Err(error) => return Err(error.into()),
        }
        let written = self.create(&temp, bytes, mode);
        let renamed = written.and_then(|()| Ok(renameat(&self.0, &temp, &self.0, name)?));
        if renamed.is_err() {
            // Report the error above, not one from the cleanup.
            let _ = unlinkat(&self.0, &temp, AtFlags::empty());
        }
        renamed?;
        // Without this, a power failure could undo the rename. Some file systems do not support it; the file
        // is complete either way.
        let _ = rustix::fs::fsync(&self.0);
        Ok(())
    }

    /// Removes a file. A symlink is removed, not followed.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes a folder that is empty.
    pub(crate) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    fn create(&self, name: &OsStr, bytes: &[u8], mode: FileMode) -> io::Result<()> {
        let bits = match mode {
            FileMode::Private | FileMode::SameAs(_) => 0o600,
            FileMode::Default => 0o666,
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.0, name, flags, Mode::from_raw_mode(bits))?);
        file.write_all(bytes)?;
        if let FileMode::SameAs(permissions) = mode {
            file.set_permissions(permissions)?;
        }
        file.sync_all()
    }

    /// Opens a folder only to look up a path in it, which needs no read permission.
    fn open_for_traversal(&self, path: &Path) -> io::Result<OwnedFd> {
        self.open_beneath(path, TRAVERSE | OFlags::DIRECTORY)
    }

    fn open_beneath(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        // Callers resolve `..` first, so finding one is a bug.
        path.components().try_for_each(|part| plain_name(part).map(|_| ()))?;
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            let here = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            match openat2(&self.0, here, flags, Mode::empty(), resolve) {
                // An old kernel, or a sandbox without this system call.
                Err(Errno::NOSYS | Errno::PERM) => (),
                opened => return Ok(opened?),
            }
        }
        self.open_stepwise(path, flags)
    }

    /// The fallback for kernels without `openat2`.
    fn open_stepwise(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let Some((parent, name)) = split(path) else {
            return Ok(openat(&self.0, ".", flags, Mode::empty())?);
        };
        let mut here = self.0.try_clone()?;
        for part in parent.components() {
            here = open_component(&here, plain_name(part)?, TRAVERSE | OFlags::DIRECTORY | OFlags::CLOEXEC)?;
        }
        open_component(&here, name, flags)
    }
}

#[cfg(target_os = "linux")]
const TRAVERSE: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const TRAVERSE: OFlags = OFlags::RDONLY;

fn open_component(here: &OwnedFd, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    let opened = openat(here.as_fd(), name, flags | OFlags::NOFOLLOW, Mode::empty());
    opened.map_err(|error| {
        // The kernel reports a symlink as "not a directory"; report it as a symlink.
        let is_link = || {
            statat(here, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
        };
        if error == Errno::NOTDIR && is_link() { Errno::LOOP.into() } else { error.into() }
    })
}

/// The parent folder and the file name; `None` for the directory itself.
fn split(path: &Path) -> Option<(&Path, &OsStr)> {
    Some((path.parent()?, path.file_name()?))
}

fn plain_name(part: Component<'_>) -> io::Result<&OsStr> {
    match part {
        Component::Normal(name) => Ok(name),
        Component::CurDir | Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
            Err(Errno::INVAL.into())
        }
    }
}

fn kind_of(kind: FileType) -> EntryKind {
    match kind {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Folder,
        FileType::Symlink => EntryKind::Link,
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            EntryKind::Special
        }
    }
}

/// A name for the temporary file. Long names are cut to fit.
fn temp_name(name: &OsStr) -> OsString {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut temp = OsString::from(".");
    temp.push(OsStr::from_bytes(name.as_bytes().get(..200).unwrap_or(name.as_bytes())));
    temp.push(format!(".{}-{count}.tmp", std::process::id()));
    temp
}

/// Whether a path contained a symlink or left the directory.
pub(crate) fn leads_elsewhere(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::LOOP | Errno::XDEV))
}

#[cfg(test)]
#[path = "dir_tests.rs"]
mod tests;
