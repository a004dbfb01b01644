//! Restricts files, connections and signals with Landlock.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use rustix::fs::{FileType, Mode, OFlags};

use crate::SIGNALS_ABI;
use crate::policy::{DEVICES, NetworkPolicy, Policy, SHARED_MEMORY};

/// The ABIs that introduced these restrictions.
pub(crate) const TRUNCATE_ABI: i32 = 3;
const CONNECTIONS_ABI: i32 = 4;
const DEVICE_IOCTL_ABI: i32 = 5;

/// Listing more entries next to a secret would take longer than the command is worth.
/// What is not listed stays unreadable.
const MAX_LISTED: usize = 20_000;

/// Confines this thread and everything it starts: fully, or it returns an error.
pub(crate) fn confine(policy: &Policy, abi: i32) -> Result<(), String> {
    let status = rules(policy, abi).and_then(RulesetCreated::restrict_self);
    match status.map_err(|error| format!("Landlock refuses: {error}"))?.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => {
            Err("Landlock does not hold all that was asked of it".to_owned())
        }
    }
}

fn rules(policy: &Policy, abi_number: i32) -> Result<RulesetCreated, RulesetError> {
    let abi = ABI::from(abi_number);
    let mut ruleset =
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::from_all(abi))?;
    if abi_number >= CONNECTIONS_ABI && policy.network == NetworkPolicy::Off {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    if abi_number >= SIGNALS_ABI {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    let mut created = ruleset.create()?;
    let file = AccessFs::from_file(abi);
    // Any folder may be listed; reading files is a separate right.
    created = allow(created, Path::new("/"), AccessFs::ReadDir.into())?;
    let mut readable = Vec::new();
    let mut closed: Vec<&Path> = policy.unreadable.iter().map(PathBuf::as_path).collect();
    closed.push(Path::new("/dev"));
    readable_around(Path::new("/"), LandlockPathKind::Folder, &closed, &mut readable);
    for (path, kind) in &readable {
        let access = AccessFs::from_read(abi);
        created = allow(created, path, if *kind == LandlockPathKind::Folder { access } else { access & file })?;
    }
    for path in policy.writable.iter().map(PathBuf::as_path).chain([Path::new(SHARED_MEMORY)]) {
        created = allow_without_links(created, path, AccessFs::from_all(abi))?;
    }
    let mut device = AccessFs::ReadFile | AccessFs::WriteFile;
    if abi_number >= TRUNCATE_ABI {
        device |= AccessFs::Truncate;
    }
    if abi_number >= DEVICE_IOCTL_ABI {
        device |= AccessFs::IoctlDev;
    }
    for path in DEVICES {
        created = allow(created, Path::new(path), device)?;
    }
    Ok(created)
}

/// Paths that do not exist, or vanish in the meantime, are skipped.
fn allow(created: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(fd) => created.add_rule(PathBeneath::new(fd, access)),
        Err(_) => Ok(created),
    }
}

/// Makes a folder writable, but not the target of a link in its place: another command
/// may have put the link there.
fn allow_without_links(
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

/// The kind of an entry. Landlock rejects folder rights for anything but folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LandlockPathKind {
    Folder,
    Other,
}

/// The largest subtrees of a folder that contain none of the closed paths.
fn readable_around(
    path: &Path,
    kind: LandlockPathKind,
    closed: &[&Path],
    found: &mut Vec<(PathBuf, LandlockPathKind)>,
) {
    let below: Vec<&Path> = closed.iter().copied().filter(|closed| closed.starts_with(path)).collect();
    if below.is_empty() {
        found.push((path.to_owned(), kind));
        return;
    }
    if below.contains(&path) {
        return;
    }
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.filter_map(Result::ok).take(MAX_LISTED) {
        // Links are skipped; their targets are handled where they are.
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => (),
            Ok(kind) if kind.is_dir() => readable_around(&entry.path(), LandlockPathKind::Folder, &below, found),
            Ok(_) => readable_around(&entry.path(), LandlockPathKind::Other, &below, found),
            Err(_) => (),
        }
    }
}

/// The ABI of this kernel, found by confining a short-lived thread.
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
        readable_around(&top, LandlockPathKind::Folder, &[&top.join("a/secret"), Path::new("/elsewhere")], &mut found);
        found.sort();
        assert_eq!(found, [(top.join("a/open"), LandlockPathKind::Other), (top.join("b"), LandlockPathKind::Folder)]);
        fs::remove_dir_all(top).unwrap();
    }
}
