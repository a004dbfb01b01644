//! Builds bubblewrap's arguments for a policy.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::capabilities::KEPT_NAMES;
use crate::policy::{DEVICES, NetworkPolicy, Policy};

/// How a path appears to the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MountView {
    Writable,
    ReadOnly,
    Hidden,
}

/// What is at a path now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathKind {
    Absent,
    File,
    Folder,
}

/// Who runs the command. Root needs no user namespace, and in one could not change other
/// users' files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InvokingUser {
    Root,
    Other,
}

/// All arguments before `--` and the command. `seccomp` is the file descriptor of the
/// filter.
pub(crate) fn arguments(
    policy: &Policy,
    protected: &[PathBuf],
    user: InvokingUser,
    seccomp: i32,
    kind: &dyn Fn(&Path) -> PathKind,
) -> Vec<OsString> {
    let mut all = ArgumentList::default();
    // No `--die-with-parent`: background processes would be gone before the helper could
    // report them. The helper ends them.
    all.add(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    match user {
        InvokingUser::Other => all.add(["--unshare-user", "--disable-userns"]),
        InvokingUser::Root => {
            all.add(["--cap-drop", "ALL"]);
            for name in KEPT_NAMES {
                all.add(["--cap-add", name]);
            }
        }
    }
    if policy.network == NetworkPolicy::Off {
        all.add(["--unshare-net"]);
    }
    all.add(["--ro-bind", "/", "/", "--proc", "/proc", "--tmpfs", "/dev"]);
    for device in DEVICES {
        all.add(["--dev-bind", device, device]);
    }
    all.add(["--perms", "1777", "--tmpfs", "/dev/shm"]);
    for (target, name) in [("", "fd"), ("/0", "stdin"), ("/1", "stdout"), ("/2", "stderr")] {
        all.add(["--symlink".to_owned(), format!("/proc/self/fd{target}"), format!("/dev/{name}")]);
    }
    let mut hidden = Vec::new();
    for (path, view) in views(policy, protected) {
        match (view, kind(&path)) {
            (_, PathKind::Absent) => (),
            (MountView::Writable, PathKind::File | PathKind::Folder) => all.mount("--bind", &path),
            (MountView::ReadOnly, PathKind::File | PathKind::Folder) => all.mount("--ro-bind", &path),
            (MountView::Hidden, PathKind::File) => {
                all.add(["--ro-bind", "/dev/null"]);
                all.add([path]);
            }
            (MountView::Hidden, PathKind::Folder) => {
                all.add(["--perms", "0555", "--tmpfs"]);
                all.add([&path]);
                hidden.push(path);
            }
        }
    }
    // Mount points inside a hidden folder must be created before it becomes read-only.
    for path in hidden {
        all.add(["--remount-ro"]);
        all.add([path]);
    }
    // Root needs no capability to write to `/proc/sys`, which decides what the kernel
    // runs, and bubblewrap covers only part of it.
    all.add(["--remount-ro", "/proc", "--remount-ro", "/dev"]);
    all.add(["--seccomp".to_owned(), seccomp.to_string()]);
    all.0
}

/// All paths of the policy, parents before children, so that the deeper path takes
/// precedence. At the same path the strictest view comes last.
fn views(policy: &Policy, protected: &[PathBuf]) -> Vec<(PathBuf, MountView)> {
    let of = |paths: &[PathBuf], view| paths.iter().map(|path| (path.clone(), view)).collect::<Vec<_>>();
    let mut all = of(&policy.writable, MountView::Writable);
    // What is hidden cannot be changed, and must not become visible.
    let is_hidden = |path: &Path| nesting_depth(path, &policy.unreadable) > nesting_depth(path, &policy.writable);
    let visible: Vec<PathBuf> = protected.iter().filter(|path| !is_hidden(path)).cloned().collect();
    all.extend(of(&visible, MountView::ReadOnly));
    all.extend(of(&policy.unreadable, MountView::Hidden));
    all.sort_by_key(|(path, view)| (path.components().count(), *view));
    all
}

/// The depth of the innermost folder that contains the path.
fn nesting_depth(path: &Path, folders: &[PathBuf]) -> Option<usize> {
    folders.iter().filter(|folder| path.starts_with(folder)).map(|folder| folder.components().count()).max()
}

#[derive(Default)]
struct ArgumentList(Vec<OsString>);

impl ArgumentList {
    fn add(&mut self, words: impl IntoIterator<Item = impl Into<OsString>>) {
        self.0.extend(words.into_iter().map(Into::into));
    }

    fn mount(&mut self, how: &str, path: &Path) {
        self.add([how]);
        self.add([path, path]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(network: NetworkPolicy) -> Policy {
        Policy {
            writable: vec!["/home/ann/site".into(), "/tmp".into(), "/home/ann/.config/aside/scratch".into()],
            protected: vec!["/home/ann/site/.git/hooks".into(), "/home/ann/site/.envrc".into()],
            unreadable: vec!["/home/ann/.config/aside".into(), "/home/ann/.netrc".into(), "/gone".into()],
            network,
        }
    }

    fn kind(path: &Path) -> PathKind {
        match path.to_str() {
            Some("/gone" | "/home/ann/site/.envrc") => PathKind::Absent,
            Some("/home/ann/.netrc") => PathKind::File,
            Some(_) | None => PathKind::Folder,
        }
    }

    fn line(network: NetworkPolicy, user: InvokingUser) -> String {
        let policy = policy(network);
        let words = arguments(&policy, &policy.protected, user, 7, &kind);
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        words.join(" ").replace(" --", "\n--")
    }

    #[test]
    fn k1_the_deeper_path_takes_precedence_and_missing_paths_are_skipped() {
        let expected = "\
--unshare-pid
--unshare-ipc
--unshare-uts
--unshare-cgroup-try
--unshare-user
--disable-userns
--unshare-net
--ro-bind / /
--proc /proc
--tmpfs /dev
--dev-bind /dev/null /dev/null
--dev-bind /dev/zero /dev/zero
--dev-bind /dev/full /dev/full
--dev-bind /dev/random /dev/random
--dev-bind /dev/urandom /dev/urandom
--perms 1777
--tmpfs /dev/shm
--symlink /proc/self/fd /dev/fd
--symlink /proc/self/fd/0 /dev/stdin
--symlink /proc/self/fd/1 /dev/stdout
--symlink /proc/self/fd/2 /dev/stderr
--bind /tmp /tmp
--bind /home/ann/site /home/ann/site
--ro-bind /dev/null /home/ann/.netrc
--perms 0555
--tmpfs /home/ann/.config/aside
--bind /home/ann/.config/aside/scratch /home/ann/.config/aside/scratch
--ro-bind /home/ann/site/.git/hooks /home/ann/site/.git/hooks
--remount-ro /home/ann/.config/aside
--remount-ro /proc
--remount-ro /dev
--seccomp 7";
        assert_eq!(line(NetworkPolicy::Off, InvokingUser::Other), expected);
    }

    #[test]
    fn k4_root_keeps_seven_capabilities_and_no_user_namespace() {
        let line = line(NetworkPolicy::On, InvokingUser::Root);
        assert!(line.contains("--cap-drop ALL\n--cap-add CAP_CHOWN\n"), "{line}");
        assert_eq!(line.matches("--cap-add").count(), 7);
        assert!(!line.contains("--unshare-user") && !line.contains("--unshare-net"), "{line}");
    }
}
