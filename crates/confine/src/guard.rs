//! Copies of the protected paths, kept while a command runs, and put back if it
//! changed them.
//!
//! Landlock cannot take a path out of a folder that it opened. What a command
//! could write, this looks at before and after. Everything is reached by handles
//! of the folders as they were before, one name at a time and without following
//! links: the command may have put a link anywhere, and we are not confined.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::policy::Policy;
use crate::protected::below;

const MOST_ENTRIES: usize = 4096;
const MOST_BYTES: u64 = 32 * 1024 * 1024;
const DEEPEST: usize = 16;
const DEEPEST_REMOVED: usize = 128;
/// Entries that are removed of what a command left in place of a protected path.
const MOST_REMOVED: usize = 10_000;
const MOST_SET_ASIDE: usize = 10_000;

/// The protected paths as they were.
pub(crate) struct Guard {
    watched: Vec<Watched>,
    troubles: Vec<String>,
}

struct Watched {
    /// The writable folder that holds it, from before the command.
    base: Rc<OwnedFd>,
    name: PathBuf,
    /// As the person knows it.
    shown: String,
    before: Kept,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kept {
    Absent,
    File {
        content: Vec<u8>,
        mode: Mode,
        mark: Mark,
    },
    Link {
        target: Vec<u8>,
    },
    Folder {
        mode: Mode,
        entries: BTreeMap<OsString, Kept>,
    },
    /// A socket, a device, or more than is kept.
    Other,
}

/// By this a file is known to be unchanged without reading it. The time of its
/// last change cannot be set by its owner.
#[derive(Debug, Clone, Copy)]
struct Mark {
    device: u64,
    inode: u64,
    size: i64,
    changed: (i64, i64),
}

impl PartialEq for Mark {
    /// A file that was restored has another one.
    fn eq(&self, _other: &Mark) -> bool {
        true
    }
}

impl Eq for Mark {}

impl Mark {
    #[expect(clippy::unnecessary_cast, reason = "the fields have other types on other systems")]
    fn of(stat: &Stat) -> Mark {
        Mark {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as i64,
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    fn is_same(self, other: Mark) -> bool {
        let key = |mark: Mark| (mark.device, mark.inode, mark.size, mark.changed);
        key(self) == key(other)
    }
}

/// What may still be read.
struct Budget {
    entries: usize,
    bytes: u64,
}

/// What the command did to protected paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    pub(crate) changed: Vec<String>,
    pub(crate) restored: Vec<String>,
    pub(crate) troubles: Vec<String>,
}

impl Guard {
    /// Looks at every protected path.
    pub(crate) fn new(policy: &Policy) -> Guard {
        let mut guard = Guard { watched: Vec::new(), troubles: Vec::new() };
        let mut budget = Budget { entries: MOST_ENTRIES, bytes: MOST_BYTES };
        let mut bases: HashMap<&Path, Rc<OwnedFd>> = HashMap::new();
        // A command can make as many submodules as it likes; they must not take the
        // room of what is always there.
        let mut paths: Vec<&PathBuf> = policy.protected.iter().collect();
        paths.sort_by_key(|path| path.components().count());
        for path in paths {
            let Some((root, name)) = below(path, &policy.writable) else { continue };
            let base = match bases.get(root) {
                Some(base) => Rc::clone(base),
                None => {
                    let Ok(base) = open_folder_at(fs::CWD, root).map(Rc::new) else { continue };
                    bases.insert(root, Rc::clone(&base));
                    base
                }
            };
            let shown = path.display().to_string();
            match look(&base, name, None, &mut budget) {
                Ok(before) => guard.watched.push(Watched { base, name: name.to_owned(), shown, before }),
                Err(why) => guard.troubles.push(format!("{shown} is not watched: {why}")),
            }
        }
        guard
    }

    /// What changed, left as it is.
    pub(crate) fn changes(self) -> Findings {
        let mut findings = Findings { troubles: self.troubles, ..Findings::default() };
        for watched in self.watched {
            if watched.has_changed() {
                findings.changed.push(watched.shown);
            }
        }
        findings
    }

    /// Puts back what changed.
    pub(crate) fn restore(self) -> Findings {
        let mut findings = Findings { troubles: self.troubles, ..Findings::default() };
        for watched in self.watched {
            if !watched.has_changed() {
                continue;
            }
            let put_back = put_back(&watched.base, &watched.name, &watched.before);
            match put_back {
                Ok(()) if !watched.has_changed() => findings.restored.push(watched.shown),
                Ok(()) => findings.troubles.push(format!("{} was changed and cannot be restored", watched.shown)),
                Err(error) => {
                    findings.troubles.push(format!("{} was changed and cannot be restored: {error}", watched.shown));
                }
            }
        }
        findings
    }
}

impl Watched {
    /// What cannot be looked at any more has changed.
    fn has_changed(&self) -> bool {
        let mut budget = Budget { entries: MOST_ENTRIES, bytes: MOST_BYTES };
        look(&self.base, &self.name, Some(&self.before), &mut budget).map_or(true, |now| now != self.before)
    }
}

fn open_folder_at(at: impl AsFd, name: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(at, name, flags, Mode::empty())
}

/// What stands at a path below the base. A link on the way is no folder.
fn look(base: &OwnedFd, name: &Path, known: Option<&Kept>, budget: &mut Budget) -> Result<Kept, String> {
    // Most are not there. A link on the way that leads to nothing is the same.
    if let Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) = fs::statat(base, name, AtFlags::SYMLINK_NOFOLLOW) {
        return Ok(Kept::Absent);
    }
    let mut parts: Vec<&std::ffi::OsStr> = names(name);
    let Some(last) = parts.pop() else { return Ok(Kept::Other) };
    let mut folder = base.try_clone().map_err(|error| error.to_string())?;
    for part in parts {
        folder = match open_folder_at(&folder, Path::new(part)) {
            Ok(folder) => folder,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Kept::Absent),
            Err(error) => return Err(error.to_string()),
        };
    }
    kept(folder.as_fd(), Path::new(last), known, budget, 0)
}

fn names(path: &Path) -> Vec<&std::ffi::OsStr> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect()
}

fn kept(
    folder: BorrowedFd<'_>,
    name: &Path,
    known: Option<&Kept>,
    budget: &mut Budget,
    depth: usize,
) -> Result<Kept, String> {
    let said = |error: Errno| error.to_string();
    let stat = match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(Kept::Absent),
        Err(error) => return Err(error.to_string()),
    };
    budget.entries = budget.entries.checked_sub(1).ok_or("there are too many files in it")?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let mark = Mark::of(&stat);
            if let Some(Kept::File { content, mark: before, .. }) = known
                && before.is_same(mark)
            {
                return Ok(Kept::File { content: content.clone(), mode, mark });
            }
            Ok(Kept::File { content: content(folder, name, budget)?, mode, mark })
        }
        FileType::Symlink => {
            let target = fs::readlinkat(folder, name, Vec::new()).map_err(said)?;
            Ok(Kept::Link { target: target.into_bytes() })
        }
        FileType::Directory if depth < DEEPEST => {
            let own = open_folder_at(folder, name).map_err(said)?;
            let mut entries = BTreeMap::new();
            for entry in fs::Dir::read_from(&own).map_err(said)? {
                let entry = entry.map_err(said)?;
                let entry = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
                if entry == "." || entry == ".." {
                    continue;
                }
                let before = match known {
                    Some(Kept::Folder { entries, .. }) => entries.get(&entry),
                    Some(Kept::Absent | Kept::File { .. } | Kept::Link { .. } | Kept::Other) | None => None,
                };
                let one = kept(own.as_fd(), Path::new(&entry), before, budget, depth + 1)?;
                entries.insert(entry, one);
            }
            Ok(Kept::Folder { mode, entries })
        }
        FileType::Directory
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Ok(Kept::Other),
    }
}

fn content(folder: BorrowedFd<'_>, name: &Path, budget: &mut Budget) -> Result<Vec<u8>, String> {
    // It may have become a pipe that nobody writes to.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::openat(folder, name, flags, Mode::empty()).map_err(|error| error.to_string())?;
    let mut content = Vec::new();
    let limit = budget.bytes.saturating_add(1);
    let read = std::fs::File::from(file).take(limit).read_to_end(&mut content);
    let read = u64::try_from(read.map_err(|error| error.to_string())?).unwrap_or(u64::MAX);
    budget.bytes = budget.bytes.checked_sub(read).ok_or("it is too large to keep a copy")?;
    Ok(content)
}

/// Makes the path what it was.
fn put_back(base: &OwnedFd, name: &Path, before: &Kept) -> rustix::io::Result<()> {
    let mut parts = names(name);
    let Some(last) = parts.pop() else { return Ok(()) };
    let mut folder = base.try_clone().map_err(|_| Errno::BADF)?;
    for part in parts {
        let part = Path::new(part);
        folder = match open_folder_at(&folder, part) {
            Ok(folder) => folder,
            // Without the folders on the way it is absent, as it was.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if *before == Kept::Absent => return Ok(()),
            Err(Errno::ACCESS) => {
                fs::chmodat(&folder, part, Mode::RWXU, AtFlags::empty())?;
                open_folder_at(&folder, part)?
            }
            Err(Errno::NOENT) => make_folder(&folder, part, Mode::from_raw_mode(0o755))?,
            Err(Errno::NOTDIR | Errno::LOOP) => {
                fs::unlinkat(&folder, part, AtFlags::empty())?;
                make_folder(&folder, part, Mode::from_raw_mode(0o755))?
            }
            Err(error) => return Err(error),
        };
    }
    make(base, folder.as_fd(), Path::new(last), before)
}

fn make_folder(at: impl AsFd, name: &Path, mode: Mode) -> rustix::io::Result<OwnedFd> {
    fs::mkdirat(at.as_fd(), name, mode)?;
    open_folder_at(at, name)
}

/// Makes one entry what it was, whatever stands there now.
fn make(base: &OwnedFd, folder: BorrowedFd<'_>, name: &Path, before: &Kept) -> rustix::io::Result<()> {
    let now = match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(FileType::from_raw_mode(stat.st_mode)),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error),
    };
    match before {
        Kept::Absent => now.map_or(Ok(()), |_| discard(base, folder, name)),
        Kept::Other => Ok(()),
        Kept::Link { target } => {
            now.map_or(Ok(()), |_| discard(base, folder, name))?;
            fs::symlinkat(target.as_slice(), folder, name)
        }
        Kept::File { content, mode, .. } => {
            now.map_or(Ok(()), |_| discard(base, folder, name))?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = fs::openat(folder, name, flags, Mode::from_raw_mode(0o600))?;
            let mut file = std::fs::File::from(file);
            file.write_all(content).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            fs::fchmod(&file, *mode)
        }
        Kept::Folder { mode, entries } => {
            // However much was put into it: a folder of another name holds it first.
            let moved = now.map(|_| set_aside(base, folder, name)).transpose()?;
            let own = make_folder(folder, name, Mode::RWXU)?;
            for (entry, before) in entries {
                match (before, &moved) {
                    // What was not copied is taken from where it is.
                    (Kept::Other, Some(moved)) => {
                        let at = Path::new(moved).join(entry);
                        let taken = fs::renameat(base, &at, &own, Path::new(entry));
                        taken.or_else(|error| if error == Errno::NOENT { Ok(()) } else { Err(error) })?;
                    }
                    (before, _) => make(base, own.as_fd(), Path::new(entry), before)?,
                }
            }
            if let Some(moved) = moved {
                remove_what_can_be(base, &moved);
            }
            fs::fchmod(&own, *mode)
        }
    }
}

/// Out of the way at once, and then gone as far as that can be done in time.
fn discard(base: &OwnedFd, folder: BorrowedFd<'_>, name: &Path) -> rustix::io::Result<()> {
    let moved = set_aside(base, folder, name)?;
    remove_what_can_be(base, &moved);
    Ok(())
}

/// Gives it a name in the base that means nothing to anybody. That takes no longer
/// for a large folder than for a small one.
fn set_aside(base: &OwnedFd, folder: BorrowedFd<'_>, name: &Path) -> rustix::io::Result<OsString> {
    // A folder that may not be written to cannot be moved.
    if FileType::from_raw_mode(fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode) == FileType::Directory {
        let _ = fs::chmodat(folder, name, Mode::RWXU, AtFlags::empty());
    }
    for number in 0..MOST_SET_ASIDE {
        let moved = OsString::from(format!(".removed-by-aside-{}-{number}", std::process::id()));
        match fs::renameat_with(folder, name, base, Path::new(&moved), fs::RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(moved),
            Err(Errno::EXIST) => (),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

/// What stays has a name that says where it comes from.
fn remove_what_can_be(base: &OwnedFd, name: &OsString) {
    let mut left = MOST_REMOVED;
    let _ = remove(base.as_fd(), Path::new(name), 0, &mut left);
}

/// Every level is an open folder and a frame of the stack.
fn remove(folder: BorrowedFd<'_>, name: &Path, depth: usize, left: &mut usize) -> rustix::io::Result<()> {
    *left = left.checked_sub(1).ok_or(Errno::NOSPC)?;
    let stat = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return fs::unlinkat(folder, name, AtFlags::empty());
    }
    if depth >= DEEPEST_REMOVED {
        return Err(Errno::NAMETOOLONG);
    }
    let _ = fs::chmodat(folder, name, Mode::RWXU, AtFlags::empty());
    let own = open_folder_at(folder, name)?;
    // One at a time: there may be more names than fit into memory.
    for entry in fs::Dir::read_from(&own)? {
        let entry = std::ffi::OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
        if entry != "." && entry != ".." {
            remove(own.as_fd(), Path::new(&entry), depth + 1, left)?;
        }
    }
    fs::unlinkat(folder, name, AtFlags::REMOVEDIR)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("aside-guard-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(path.join("root/.git/hooks")).unwrap();
        fs::create_dir_all(path.join("outside")).unwrap();
        let path = fs::canonicalize(path).unwrap();
        fs::write(path.join("root/.git/hooks/pre-commit"), "good").unwrap();
        fs::write(path.join("root/.git/config"), "[core]").unwrap();
        path
    }

    fn policy(scratch: &Path) -> Policy {
        let root = scratch.join("root");
        let protected = crate::protected::paths(std::slice::from_ref(&root), &[]);
        Policy { writable: vec![root], protected, ..Policy::default() }
    }

    #[test]
    fn k1_a_changed_protected_path_is_as_before() {
        type Attack = fn(&Path);
        #[rustfmt::skip]
        let attacks: [(&str, Attack); 12] = [
            ("rewritten",      |root| fs::write(root.join(".git/hooks/pre-commit"), "evil").unwrap()),
            ("new hook",       |root| fs::write(root.join(".git/hooks/post-merge"), "evil").unwrap()),
            ("mode",           |root| fs::set_permissions(root.join(".git/config"), fs::Permissions::from_mode(0o777)).unwrap()),
            ("removed",        |root| fs::remove_dir_all(root.join(".git/hooks")).unwrap()),
            ("made",           |root| fs::write(root.join(".envrc"), "evil").unwrap()),
            ("folder made",    |root| fs::create_dir_all(root.join("AGENTS.md/deep/er")).unwrap()),
            ("nested deeply",  |root| {
                fs::write(root.join(".git/hooks/pre-commit"), "evil").unwrap();
                fs::create_dir_all(root.join(".git/hooks").join("d/".repeat(200))).unwrap();
            }),
            ("many files",     |root| {
                fs::write(root.join(".git/hooks/pre-commit"), "evil").unwrap();
                for number in 0..12_000 {
                    fs::write(root.join(format!(".git/hooks/{number}")), "").unwrap();
                }
            }),
            ("closed",         |root| {
                fs::write(root.join(".git/hooks/pre-commit"), "evil").unwrap();
                fs::set_permissions(root.join(".git/hooks"), fs::Permissions::from_mode(0o111)).unwrap();
                fs::set_permissions(root.join(".git"), fs::Permissions::from_mode(0o0)).unwrap();
            }),
            ("git replaced",   |root| {
                fs::rename(root.join(".git"), root.join("old")).unwrap();
                fs::create_dir_all(root.join(".git/hooks")).unwrap();
                fs::write(root.join(".git/hooks/pre-commit"), "evil").unwrap();
            }),
            ("hooks are a link out", |root| {
                fs::remove_dir_all(root.join(".git/hooks")).unwrap();
                symlink("../../outside", root.join(".git/hooks")).unwrap();
            }),
            ("git is a link out", |root| {
                fs::remove_dir_all(root.join(".git")).unwrap();
                symlink("../outside", root.join(".git")).unwrap();
            }),
        ];
        for (name, attack) in attacks {
            let scratch = scratch("restore");
            let root = scratch.join("root");
            let guard = Guard::new(&policy(&scratch));
            attack(&root);
            let findings = guard.restore();
            assert!(!findings.restored.is_empty() && findings.troubles.is_empty(), "{name}: {findings:?}");
            assert_eq!(fs::read_to_string(root.join(".git/hooks/pre-commit")).unwrap(), "good", "{name}");
            assert_eq!(fs::read_to_string(root.join(".git/config")).unwrap(), "[core]", "{name}");
            assert_eq!(fs::read_dir(root.join(".git/hooks")).unwrap().count(), 1, "{name}");
            assert!(!root.join(".envrc").exists() && !root.join("AGENTS.md").exists(), "{name}");
            // Nothing was written through a link.
            assert_eq!(fs::read_dir(scratch.join("outside")).unwrap().count(), 0, "{name}");
            fs::remove_dir_all(scratch).unwrap();
        }
    }

    #[test]
    fn k1_an_approved_change_stays_and_is_said() {
        let scratch = scratch("keep");
        let guard = Guard::new(&policy(&scratch));
        let config = scratch.join("root/.git/config");
        fs::write(&config, "[core]\nx = y").unwrap();
        assert_eq!(guard.changes().changed, [config.display().to_string()]);
        assert_eq!(fs::read_to_string(&config).unwrap(), "[core]\nx = y");
        fs::remove_dir_all(scratch).unwrap();
    }

    #[test]
    fn what_is_not_touched_is_no_finding() {
        let scratch = scratch("calm");
        let guard = Guard::new(&policy(&scratch));
        fs::write(scratch.join("root/a.txt"), "x").unwrap();
        fs::write(scratch.join("root/.git/index"), "x").unwrap();
        assert_eq!(guard.restore(), Findings::default());
        fs::remove_dir_all(scratch).unwrap();
    }
}
