//! Files, connections and signals, by Landlock.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use rustix::fs::{FileType, Mode, OFlags};

use crate::SIGNALS;
use crate::policy::{DEVICES, Network, Policy, SHARED_MEMORY};

/// From here on `truncate` is covered.
pub(crate) const TRUNCATE: i32 = 3;
const CONNECTIONS: i32 = 4;
const DEVICE_REQUESTS: i32 = 5;

/// More entries than this in a folder with a secret in it cost more time than a
/// command is worth; then that folder is closed but for what is opened in it.
const MOST_LISTED: usize = 20_000;

/// Confines this thread and whatever it starts. All of it, or an error.
pub(crate) fn confine(policy: &Policy, abi: i32) -> Result<(), String> {
    let status = rules(policy, abi).and_then(RulesetCreated::restrict_self);
    match status.map_err(|error| format!("Landlock refuses: {error}"))?.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => {
            Err("Landlock does not hold all that was asked of it".to_owned())
        }
    }
}

fn rules(policy: &Policy, number: i32) -> Result<RulesetCreated, RulesetError> {
    let abi = ABI::from(number);
    let mut ruleset =
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::from_all(abi))?;
    if number >= CONNECTIONS && policy.network == Network::Off {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    if number >= SIGNALS {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    let mut created = ruleset.create()?;
    let file = AccessFs::from_file(abi);
    // Names may be listed everywhere; what files hold is another matter.
    created = allow(created, Path::new("/"), AccessFs::ReadDir.into())?;
    let mut readable = Vec::new();
    let mut closed: Vec<&Path> = policy.unreadable.iter().map(PathBuf::as_path).collect();
    closed.push(Path::new("/dev"));
    around(Path::new("/"), Kind::Folder, &closed, &mut readable);
    for (path, kind) in &readable {
        let access = AccessFs::from_read(abi);
        created = allow(created, path, if *kind == Kind::Folder { access } else { access & file })?;
    }
    for path in policy.writable.iter().map(PathBuf::as_path).chain([Path::new(SHARED_MEMORY)]) {
        created = allow_exactly(created, path, AccessFs::from_all(abi))?;
    }
    let mut device = AccessFs::ReadFile | AccessFs::WriteFile;
    if number >= TRUNCATE {
        device |= AccessFs::Truncate;
    }
    if number >= DEVICE_REQUESTS {
        device |= AccessFs::IoctlDev;
    }
    for path in DEVICES {
        created = allow(created, Path::new(path), device)?;
    }
    Ok(created)
}

/// What does not exist, or goes away at this moment, is passed over.
fn allow(created: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(fd) => created.add_rule(PathBeneath::new(fd, access)),
        Err(_) => Ok(created),
    }
}

/// Opens a folder to writing, but not what a link in its place leads to: another
/// command may have put one there.
fn allow_exactly(
    created: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(fd) = rustix::fs::open(path, flags, Mode::empty()) else { return Ok(created) };
    let reached = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    let Ok(stat) = rustix::fs::fstat(&fd) else { return Ok(created) };
    if reached.ok().as_deref() != Some(path) {
        return Ok(created);
    }
    let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let access = if is_folder { access } else { access & AccessFs::from_file(ABI::V9) };
    created.add_rule(PathBeneath::new(fd, access))
}

/// Whether a path holds others. Rights of folders are refused for anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Folder,
    Other,
}

/// The largest parts of a folder that have none of the closed paths in them.
fn around(path: &Path, kind: Kind, closed: &[&Path], found: &mut Vec<(PathBuf, Kind)>) {
    let below: Vec<&Path> = closed.iter().copied().filter(|closed| closed.starts_with(path)).collect();
    if below.is_empty() {
        found.push((path.to_owned(), kind));
        return;
    }
    if below.contains(&path) {
        return;
    }
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.filter_map(Result::ok).take(MOST_LISTED) {
        // A link opens nothing: what it leads to is judged where it is.
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => (),
            Ok(kind) if kind.is_dir() => around(&entry.path(), Kind::Folder, &below, found),
            Ok(_) => around(&entry.path(), Kind::Other, &below, found),
            Err(_) => (),
        }
    }
}

/// The ABI of this kernel, learned by confining a thread that ends with it.
pub(crate) fn abi() -> Result<i32, String> {
    let tried = std::thread::spawn(|| {
        let ruleset = Ruleset::default().handle_access(AccessFs::MakeChar)?;
        ruleset.create()?.restrict_self()
    });
    let status = tried.join().map_err(|_| "Landlock could not be tried".to_owned())?;
    match status.map_err(|error| format!("Landlock refuses: {error}"))?.landlock {
        LandlockStatus::NotImplemented => Err("this kernel has no Landlock".to_owned()),
        LandlockStatus::NotEnabled => Err("Landlock is not switched on in this kernel (lsm=landlock,…)".to_owned()),
        LandlockStatus::Available { effective_abi, .. } => Ok(effective_abi as i32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k4_reading_is_open_around_what_is_closed() {
        let top = std::env::temp_dir().join(format!("aside-around-{}", std::process::id()));
        fs::create_dir_all(top.join("a/secret")).unwrap();
        fs::create_dir_all(top.join("b/deep")).unwrap();
        fs::write(top.join("a/open"), "").unwrap();
        std::os::unix::fs::symlink("secret", top.join("a/link")).unwrap();
        let mut found = Vec::new();
        around(&top, Kind::Folder, &[&top.join("a/secret"), Path::new("/elsewhere")], &mut found);
        found.sort();
        assert_eq!(found, [(top.join("a/open"), Kind::Other), (top.join("b"), Kind::Folder)]);
        fs::remove_dir_all(top).unwrap();
    }
}
