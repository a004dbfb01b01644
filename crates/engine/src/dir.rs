//! Files and folders below a directory that is held open.
//!
//! A path is resolved and judged first, and opened later. In between somebody
//! may rename a folder on the way and put a link in its place. So nothing here
//! follows a link, and nothing leaves the directory: such a path is an error.

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

/// What stands at a path.
#[derive(Debug)]
pub(crate) enum Opened {
    /// A plain file, opened for reading.
    File(File, Metadata),
    Folder,
    /// A pipe, a socket or a device: reading one could wait for ever.
    Special,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
    Special,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) kind: Kind,
}

/// Who may read a new file.
#[derive(Debug, Clone)]
pub enum Access {
    /// The user alone.
    Private,
    /// Whatever new files of the user get.
    Usual,
    /// As the file before it.
    Like(Permissions),
}

impl Dir {
    /// Links in this path are followed: it is the caller's own.
    pub(crate) fn open(path: &Path) -> io::Result<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Dir(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// A folder below this one.
    pub(crate) fn folder(&self, path: &Path) -> io::Result<Dir> {
        self.beneath(path, OFlags::RDONLY | OFlags::DIRECTORY).map(Dir)
    }

    /// What stands at a path below. A file is opened only if it is a plain one:
    /// some devices act when they are opened.
    pub(crate) fn look(&self, path: &Path) -> io::Result<Opened> {
        path.components().try_for_each(|part| plain_name(part).map(|_| ()))?;
        let Some((parent, name)) = split(path) else { return Ok(Opened::Folder) };
        let parent = self.folder_to_pass(parent)?;
        match kind_of(FileType::from_raw_mode(statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)) {
            Kind::File => (),
            Kind::Folder => return Ok(Opened::Folder),
            Kind::Link => return Err(Errno::LOOP.into()),
            Kind::Special => return Ok(Opened::Special),
        }
        // Not blocking, in case it has become a pipe since.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(&parent, name, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        Ok(if metadata.is_file() { Opened::File(file, metadata) } else { Opened::Special })
    }

    /// The names in this directory, in no order. What cannot be read is an error
    /// among them.
    pub(crate) fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<Entry>>> {
        let entries = rustix::fs::Dir::read_from(&self.0)?;
        let entry = |entry: rustix::fs::DirEntry| {
            let name = entry.file_name();
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                // Some file systems do not say.
                kind = FileType::from_raw_mode(statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
            }
            Ok(Entry { name: OsStr::from_bytes(name.to_bytes()).to_owned(), kind: kind_of(kind) })
        };
        let is_real = |entry: &rustix::fs::DirEntry| !matches!(entry.file_name().to_bytes(), b"." | b"..");
        Ok(entries.filter_map(move |one| match one {
            Ok(one) => is_real(&one).then(|| entry(one)),
            Err(error) => Some(Err(error.into())),
        }))
    }

    /// Where the link of this name leads, as it is written.
    pub(crate) fn link_target(&self, name: &OsStr) -> io::Result<OsString> {
        Ok(OsStr::from_bytes(readlinkat(&self.0, name, Vec::new())?.to_bytes()).to_owned())
    }

    /// The folder at this path, made with those on the way where they are missing.
    pub(crate) fn make_folders(&self, path: &Path) -> io::Result<Dir> {
        let mut here = self.folder(Path::new(""))?;
        for part in path.components() {
            let name = Path::new(plain_name(part)?);
            here = match here.folder(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match mkdirat(&here.0, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => here.folder(name)?,
                        Err(error) => return Err(error.into()),
                    }
                }
                opened => opened?,
            };
        }
        Ok(here)
    }

    /// Puts a whole file under this name, or changes nothing: the bytes are
    /// written beside it, synced, and renamed. A link of this name is replaced.
    pub(crate) fn replace(&self, name: &OsStr, bytes: &[u8], access: Access) -> io::Result<()> {
        let draft = draft_of(name);
        // Left by a killed process that had our number.
        match unlinkat(&self.0, &draft, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => (),
            Err(error) => return Err(error.into()),
        }
        let written = self.create(&draft, bytes, access);
        let renamed = written.and_then(|()| Ok(renameat(&self.0, &draft, &self.0, name)?));
        if renamed.is_err() {
            // The error that counts is the one above.
            let _ = unlinkat(&self.0, &draft, AtFlags::empty());
        }
        renamed?;
        // The rename itself is lost with the power unless the folder is synced;
        // some file systems cannot, and the file is whole either way.
        let _ = rustix::fs::fsync(&self.0);
        Ok(())
    }

    fn create(&self, name: &OsStr, bytes: &[u8], access: Access) -> io::Result<()> {
        let mode = match access {
            Access::Private | Access::Like(_) => 0o600,
            Access::Usual => 0o666,
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.0, name, flags, Mode::from_raw_mode(mode))?);
        file.write_all(bytes)?;
        if let Access::Like(permissions) = access {
            file.set_permissions(permissions)?;
        }
        file.sync_all()
    }

    /// A folder that is only passed through, which needs no right to list it.
    fn folder_to_pass(&self, path: &Path) -> io::Result<OwnedFd> {
        self.beneath(path, PASS | OFlags::DIRECTORY)
    }

    fn beneath(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        // `..` is resolved before, so one here is a mistake of ours.
        path.components().try_for_each(|part| plain_name(part).map(|_| ()))?;
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            let here = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            match openat2(&self.0, here, flags, Mode::empty(), resolve) {
                // An old kernel, or a sandbox that does not know the call.
                Err(Errno::NOSYS | Errno::PERM) => (),
                opened => return Ok(opened?),
            }
        }
        self.by_steps(path, flags)
    }

    /// The same where the kernel cannot do it in one call.
    fn by_steps(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let Some((parent, name)) = split(path) else {
            return Ok(openat(&self.0, ".", flags, Mode::empty())?);
        };
        let mut here = self.0.try_clone()?;
        for part in parent.components() {
            here = step(&here, plain_name(part)?, PASS | OFlags::DIRECTORY | OFlags::CLOEXEC)?;
        }
        step(&here, name, flags)
    }
}

#[cfg(target_os = "linux")]
const PASS: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PASS: OFlags = OFlags::RDONLY;

fn step(here: &OwnedFd, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    let opened = openat(here.as_fd(), name, flags | OFlags::NOFOLLOW, Mode::empty());
    opened.map_err(|error| {
        // A link is refused as something that is no directory; say what it is.
        let is_link = || {
            statat(here, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
        };
        if error == Errno::NOTDIR && is_link() { Errno::LOOP.into() } else { error.into() }
    })
}

/// The folder and the name in it; none for the directory itself.
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

fn kind_of(kind: FileType) -> Kind {
    match kind {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            Kind::Special
        }
    }
}

/// A name for the file while it is written; long names are cut so that it fits.
fn draft_of(name: &OsStr) -> OsString {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut draft = OsString::from(".");
    draft.push(OsStr::from_bytes(name.as_bytes().get(..200).unwrap_or(name.as_bytes())));
    draft.push(format!(".{}-{count}.tmp", std::process::id()));
    draft
}

/// Whether a path led through a link, or out of the directory.
pub(crate) fn is_elsewhere(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::LOOP | Errno::XDEV))
}

#[cfg(test)]
#[path = "dir_tests.rs"]
mod tests;
