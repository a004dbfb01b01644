//! Copies protected paths before a command runs, and restores them if it changed them.
//!
//! Landlock cannot exclude a path from a folder that it opened, so paths that a command
//! can write are compared before and after. Everything is accessed through handles to the
//! folders from before the command, one component at a time and without following links:
//! the command may have put a link anywhere, and we are not confined.

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
use crate::protected_paths::containing_root;

/// Each of the first paths has this much to itself, so that a large one cannot keep the others from being copied.
const OWN_BUDGET: CopyBudget = CopyBudget { entries: 256, bytes: 256 * 1024 };
const MAX_OWN_BUDGETS: usize = 200;
/// What larger paths share.
const SHARED_BUDGET: CopyBudget = CopyBudget { entries: 4096, bytes: 32 * 1024 * 1024 };
const MAX_DEPTH: usize = 16;
const MAX_REMOVAL_DEPTH: usize = 128;
/// The most entries to remove from what a command left in place of a protected path.
const MAX_REMOVED: usize = 10_000;
const MAX_MOVED_ASIDE: usize = 10_000;

/// The protected paths before the command.
pub(crate) struct ProtectedCopies {
    copies: Vec<ProtectedCopy>,
    problems: Vec<String>,
}

struct ProtectedCopy {
    /// The writable folder that contains it, opened before the command.
    base: Rc<OwnedFd>,
    name: PathBuf,
    /// The full path, for messages.
    display: String,
    before: EntryCopy,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EntryCopy {
    Absent,
    File {
        content: Vec<u8>,
        mode: Mode,
        stamp: FileStamp,
    },
    Link {
        target: Vec<u8>,
    },
    Folder {
        mode: Mode,
        entries: BTreeMap<OsString, EntryCopy>,
    },
    /// A socket, a device, or a folder that is too deep to copy.
    Other,
}

/// Shows without reading that a file is unchanged. Its owner cannot set the change time.
#[derive(Debug, Clone, Copy)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: i64,
    changed: (i64, i64),
}

impl PartialEq for FileStamp {
    /// A restored file has another stamp, so stamps do not count in comparisons.
    fn eq(&self, _other: &FileStamp) -> bool {
        true
    }
}

impl Eq for FileStamp {}

impl FileStamp {
    #[expect(clippy::unnecessary_cast, reason = "the fields have other types on other systems")]
    fn of(stat: &Stat) -> FileStamp {
        FileStamp {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as i64,
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    fn is_same(self, other: FileStamp) -> bool {
        let key = |stamp: FileStamp| (stamp.device, stamp.inode, stamp.size, stamp.changed);
        key(self) == key(other)
    }
}

/// The remaining entries and bytes to copy.
#[derive(Clone, Copy)]
struct CopyBudget {
    entries: usize,
    bytes: u64,
}

/// What the command did to protected paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ProtectedChanges {
    pub(crate) changed: Vec<String>,
    pub(crate) restored: Vec<String>,
    pub(crate) problems: Vec<String>,
}

impl ProtectedCopies {
    /// Copies every protected path.
    pub(crate) fn new(policy: &Policy) -> ProtectedCopies {
        let mut copies = ProtectedCopies { copies: Vec::new(), problems: Vec::new() };
        let mut shared = SHARED_BUDGET;
        let mut bases: HashMap<&Path, Rc<OwnedFd>> = HashMap::new();
        // A command can create any number of submodules. They must not use up the budgets
        // of the paths that always exist, so short paths come first.
        let mut paths: Vec<&PathBuf> = policy.protected.iter().collect();
        paths.sort_by_key(|path| path.components().count());
        for (number, path) in paths.into_iter().enumerate() {
            let Some((root, name)) = containing_root(path, &policy.writable) else { continue };
            let base = match bases.get(root) {
                Some(base) => Rc::clone(base),
                None => {
                    let Ok(base) = open_folder_at(fs::CWD, root).map(Rc::new) else { continue };
                    bases.insert(root, Rc::clone(&base));
                    base
                }
            };
            let display = path.display().to_string();
            let own = (number < MAX_OWN_BUDGETS).then(|| copy_path(&base, name, None, &mut OWN_BUDGET.clone()));
            let copied = match own {
                Some(Ok(before)) => Ok(before),
                Some(Err(_)) | None => copy_path(&base, name, None, &mut shared),
            };
            match copied {
                Ok(before) => copies.copies.push(ProtectedCopy { base, name: name.to_owned(), display, before }),
                Err(why) => copies.problems.push(format!("{display} is not watched: {why}")),
            }
        }
        copies
    }

    /// Lists what changed and leaves it.
    pub(crate) fn changes(self) -> ProtectedChanges {
        let mut changes = ProtectedChanges { problems: self.problems, ..ProtectedChanges::default() };
        for copy in self.copies {
            if copy.has_changed() {
                changes.changed.push(copy.display);
            }
        }
        changes
    }

    /// Restores what changed.
    pub(crate) fn restore(self) -> ProtectedChanges {
        let mut changes = ProtectedChanges { problems: self.problems, ..ProtectedChanges::default() };
        for copy in self.copies {
            if !copy.has_changed() {
                continue;
            }
            let restored = restore_path(&copy.base, &copy.name, &copy.before);
            match restored {
                Ok(()) if !copy.has_changed() => changes.restored.push(copy.display),
                Ok(()) => changes.problems.push(format!("{} was changed and cannot be restored", copy.display)),
                Err(error) => {
                    changes.problems.push(format!("{} was changed and cannot be restored: {error}", copy.display));
                }
            }
        }
        changes
    }
}

impl ProtectedCopy {
    /// A path that can no longer be read counts as changed.
    fn has_changed(&self) -> bool {
        let mut budget = SHARED_BUDGET;
        copy_path(&self.base, &self.name, Some(&self.before), &mut budget).map_or(true, |now| now != self.before)
    }
}

fn open_folder_at(at: impl AsFd, name: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(at, name, flags, Mode::empty())
}

/// Copies what is at a path below the base. A link in a parent folder's place does not
/// count as a folder.
fn copy_path(
    base: &OwnedFd,
    name: &Path,
    known: Option<&EntryCopy>,
    budget: &mut CopyBudget,
) -> Result<EntryCopy, String> {
    // Most of them do not exist. A dangling link in the path counts as absent too.
    if let Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) = fs::statat(base, name, AtFlags::SYMLINK_NOFOLLOW) {
        return Ok(EntryCopy::Absent);
    }
    let mut parts: Vec<&std::ffi::OsStr> = names(name);
    let Some(last) = parts.pop() else { return Ok(EntryCopy::Other) };
    let mut folder = base.try_clone().map_err(|error| error.to_string())?;
    for part in parts {
        folder = match open_folder_at(&folder, Path::new(part)) {
            Ok(folder) => folder,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(EntryCopy::Absent),
            Err(error) => return Err(error.to_string()),
        };
    }
    copy_entry(folder.as_fd(), Path::new(last), known, budget, 0)
}

fn names(path: &Path) -> Vec<&std::ffi::OsStr> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect()
}

fn copy_entry(
    folder: BorrowedFd<'_>,
    name: &Path,
    known: Option<&EntryCopy>,
    budget: &mut CopyBudget,
    depth: usize,
) -> Result<EntryCopy, String> {
    let describe = |error: Errno| error.to_string();
    let stat = match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(EntryCopy::Absent),
        Err(error) => return Err(error.to_string()),
    };
    budget.entries = budget.entries.checked_sub(1).ok_or("there are too many files in it")?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let stamp = FileStamp::of(&stat);
            if let Some(EntryCopy::File { content, stamp: before, .. }) = known
                && before.is_same(stamp)
            {
                return Ok(EntryCopy::File { content: content.clone(), mode, stamp });
            }
            Ok(EntryCopy::File { content: read_content(folder, name, stamp.size, budget)?, mode, stamp })
        }
        FileType::Symlink => {
            let target = fs::readlinkat(folder, name, Vec::new()).map_err(describe)?;
            Ok(EntryCopy::Link { target: target.into_bytes() })
        }
        FileType::Directory if depth < MAX_DEPTH => {
            let own = open_folder_at(folder, name).map_err(describe)?;
            let mut entries = BTreeMap::new();
            for entry in fs::Dir::read_from(&own).map_err(describe)? {
                let entry = entry.map_err(describe)?;
                let entry = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
                if entry == "." || entry == ".." {
                    continue;
                }
                let before = match known {
                    Some(EntryCopy::Folder { entries, .. }) => entries.get(&entry),
                    Some(EntryCopy::Absent | EntryCopy::File { .. } | EntryCopy::Link { .. } | EntryCopy::Other)
                    | None => None,
                };
                let one = copy_entry(own.as_fd(), Path::new(&entry), before, budget, depth + 1)?;
                entries.insert(entry, one);
            }
            Ok(EntryCopy::Folder { mode, entries })
        }
        FileType::Directory
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Ok(EntryCopy::Other),
    }
}

fn read_content(folder: BorrowedFd<'_>, name: &Path, size: i64, budget: &mut CopyBudget) -> Result<Vec<u8>, String> {
    // It may have become a pipe that would block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::openat(folder, name, flags, Mode::empty()).map_err(|error| error.to_string())?;
    let limit = budget.bytes.saturating_add(1);
    // With room for one byte more, the end is found without growing.
    let expected = u64::try_from(size).unwrap_or_default().saturating_add(1).min(limit);
    let mut content = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    let read = std::fs::File::from(file).take(limit).read_to_end(&mut content);
    let read = u64::try_from(read.map_err(|error| error.to_string())?).unwrap_or(u64::MAX);
    budget.bytes = budget.bytes.checked_sub(read).ok_or("it is too large to keep a copy")?;
    Ok(content)
}

/// Restores one path.
fn restore_path(base: &OwnedFd, name: &Path, before: &EntryCopy) -> rustix::io::Result<()> {
    let mut parts = names(name);
    let Some(last) = parts.pop() else { return Ok(()) };
    let mut folder = base.try_clone().map_err(|_| Errno::BADF)?;
    for part in parts {
        let part = Path::new(part);
        folder = match open_folder_at(&folder, part) {
            Ok(folder) => folder,
            // Without its parent folders it is absent, as before.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if *before == EntryCopy::Absent => return Ok(()),
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
    restore_entry(base, folder.as_fd(), Path::new(last), before)
}

fn make_folder(at: impl AsFd, name: &Path, mode: Mode) -> rustix::io::Result<OwnedFd> {
    fs::mkdirat(at.as_fd(), name, mode)?;
    open_folder_at(at, name)
}

/// Restores one entry, whatever is there now.
fn restore_entry(base: &OwnedFd, folder: BorrowedFd<'_>, name: &Path, before: &EntryCopy) -> rustix::io::Result<()> {
    let now = match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(FileType::from_raw_mode(stat.st_mode)),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error),
    };
    match before {
        EntryCopy::Absent => now.map_or(Ok(()), |_| discard(base, folder, name)),
        EntryCopy::Other => Ok(()),
        EntryCopy::Link { target } => {
            now.map_or(Ok(()), |_| discard(base, folder, name))?;
            fs::symlinkat(target.as_slice(), folder, name)
        }
        EntryCopy::File { content, mode, .. } => {
            now.map_or(Ok(()), |_| discard(base, folder, name))?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = fs::openat(folder, name, flags, Mode::from_raw_mode(0o600))?;
            let mut file = std::fs::File::from(file);
            file.write_all(content).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            fs::fchmod(&file, *mode)
        }
        EntryCopy::Folder { mode, entries } => {
            // Rename the folder first, however much was put into it.
            let aside = now.map(|_| move_aside(base, folder, name)).transpose()?;
            let own = make_folder(folder, name, Mode::RWXU)?;
            for (entry, before) in entries {
                match (before, &aside) {
                    // Entries that were not copied are moved back.
                    (EntryCopy::Other, Some(aside)) => {
                        let at = Path::new(aside).join(entry);
                        let taken = fs::renameat(base, &at, &own, Path::new(entry));
                        taken.or_else(|error| if error == Errno::NOENT { Ok(()) } else { Err(error) })?;
                    }
                    (before, _) => restore_entry(base, own.as_fd(), Path::new(entry), before)?,
                }
            }
            if let Some(aside) = aside {
                remove_best_effort(base, &aside);
            }
            fs::fchmod(&own, *mode)
        }
    }
}

/// Moves an entry away at once, then removes as much of it as is feasible.
fn discard(base: &OwnedFd, folder: BorrowedFd<'_>, name: &Path) -> rustix::io::Result<()> {
    let aside = move_aside(base, folder, name)?;
    remove_best_effort(base, &aside);
    Ok(())
}

/// Renames an entry into the base under a harmless name. This takes no longer for a large
/// folder than for a small one.
fn move_aside(base: &OwnedFd, folder: BorrowedFd<'_>, name: &Path) -> rustix::io::Result<OsString> {
    // A folder without write permission cannot be moved.
    if FileType::from_raw_mode(fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode) == FileType::Directory {
        let _ = fs::chmodat(folder, name, Mode::RWXU, AtFlags::empty());
    }
    for number in 0..MAX_MOVED_ASIDE {
        let aside = OsString::from(format!(".removed-by-aside-{}-{number}", std::process::id()));
        match fs::renameat_with(folder, name, base, Path::new(&aside), fs::RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(aside),
            Err(Errno::EXIST) => (),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

/// What remains has a name that says where it came from.
fn remove_best_effort(base: &OwnedFd, name: &OsString) {
    let mut left = MAX_REMOVED;
    let _ = remove(base.as_fd(), Path::new(name), 0, &mut left);
}

/// Each level needs an open folder and a stack frame.
fn remove(folder: BorrowedFd<'_>, name: &Path, depth: usize, left: &mut usize) -> rustix::io::Result<()> {
    *left = left.checked_sub(1).ok_or(Errno::NOSPC)?;
    let stat = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return fs::unlinkat(folder, name, AtFlags::empty());
    }
    if depth >= MAX_REMOVAL_DEPTH {
        return Err(Errno::NAMETOOLONG);
    }
    let _ = fs::chmodat(folder, name, Mode::RWXU, AtFlags::empty());
    let own = open_folder_at(folder, name)?;
    // Read entries one at a time, because the names may not fit into memory.
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
        let path = std::env::temp_dir().join(format!("aside-copies-{name}-{}", std::process::id()));
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
        let protected = crate::protected_paths::all_in(std::slice::from_ref(&root), &[]);
        Policy { writable: vec![root], protected, ..Policy::default() }
    }

    #[test]
    fn k1_a_changed_protected_path_is_restored() {
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
            let copies = ProtectedCopies::new(&policy(&scratch));
            attack(&root);
            let changes = copies.restore();
            assert!(!changes.restored.is_empty() && changes.problems.is_empty(), "{name}: {changes:?}");
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
    fn k1_a_large_protected_folder_does_not_keep_the_others_from_being_restored() {
        let scratch = scratch("budget");
        let root = scratch.join("root");
        fs::create_dir_all(root.join(".devcontainer")).unwrap();
        for number in 0..=SHARED_BUDGET.entries {
            fs::write(root.join(format!(".devcontainer/{number}")), "").unwrap();
        }
        let copies = ProtectedCopies::new(&policy(&scratch));
        fs::write(root.join(".git/hooks/pre-commit"), "evil").unwrap();
        fs::write(root.join(".envrc"), "evil").unwrap();
        let changes = copies.restore();
        assert_eq!(changes.restored.len(), 2, "{changes:?}");
        assert_eq!(changes.problems.len(), 1, "the large folder is named: {changes:?}");
        assert_eq!(fs::read_to_string(root.join(".git/hooks/pre-commit")).unwrap(), "good");
        assert!(!root.join(".envrc").exists());
        fs::remove_dir_all(scratch).unwrap();
    }

    #[test]
    fn k1_what_a_protected_link_leads_to_is_restored() {
        let scratch = scratch("links");
        let root = scratch.join("root");
        fs::write(root.join("CLAUDE.md"), "good").unwrap();
        symlink("CLAUDE.md", root.join("AGENTS.md")).unwrap();
        fs::rename(root.join(".git/hooks"), root.join("githooks")).unwrap();
        symlink("../githooks", root.join(".git/hooks")).unwrap();
        let copies = ProtectedCopies::new(&policy(&scratch));
        fs::write(root.join("AGENTS.md"), "evil").unwrap();
        fs::write(root.join(".git/hooks/pre-commit"), "evil").unwrap();
        assert_eq!(copies.restore().restored.len(), 2);
        assert_eq!(fs::read_to_string(root.join("CLAUDE.md")).unwrap(), "good");
        assert_eq!(fs::read_to_string(root.join("githooks/pre-commit")).unwrap(), "good");
        fs::remove_dir_all(scratch).unwrap();
    }

    #[test]
    fn k1_an_approved_change_stays_and_is_reported() {
        let scratch = scratch("keep");
        let copies = ProtectedCopies::new(&policy(&scratch));
        let config = scratch.join("root/.git/config");
        fs::write(&config, "[core]\nx = y").unwrap();
        assert_eq!(copies.changes().changed, [config.display().to_string()]);
        assert_eq!(fs::read_to_string(&config).unwrap(), "[core]\nx = y");
        fs::remove_dir_all(scratch).unwrap();
    }

    #[test]
    fn unchanged_paths_are_not_reported() {
        let scratch = scratch("calm");
        let copies = ProtectedCopies::new(&policy(&scratch));
        fs::write(scratch.join("root/a.txt"), "x").unwrap();
        fs::write(scratch.join("root/.git/index"), "x").unwrap();
        assert_eq!(copies.restore(), ProtectedChanges::default());
        fs::remove_dir_all(scratch).unwrap();
    }
}
