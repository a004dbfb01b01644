//! The arguments of bubblewrap for a policy.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::capabilities::KEPT_NAMES;
use crate::policy::{DEVICES, Network, Policy};

/// What one path becomes in the command's view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum View {
    Writable,
    ReadOnly,
    Hidden,
}

/// What a path is at this moment; the arguments depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Absent,
    File,
    Folder,
}

/// Who runs it. Root needs no user namespace, and could not change files of
/// others in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    Other,
}

/// Everything before `--` and the command. `seccomp` is the number of the open
/// file with the filter.
pub(crate) fn arguments(
    policy: &Policy,
    protected: &[PathBuf],
    user: User,
    seccomp: i32,
    kind: &dyn Fn(&Path) -> Kind,
) -> Vec<OsString> {
    let mut all = Words::default();
    // Not `--die-with-parent`: what is left in the background would be gone before
    // anybody saw it. The helper ends it.
    all.add(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    match user {
        User::Other => all.add(["--unshare-user", "--disable-userns"]),
        User::Root => {
            all.add(["--cap-drop", "ALL"]);
            for name in KEPT_NAMES {
                all.add(["--cap-add", name]);
            }
        }
    }
    if policy.network == Network::Off {
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
            (_, Kind::Absent) => (),
            (View::Writable, Kind::File | Kind::Folder) => all.mount("--bind", &path),
            (View::ReadOnly, Kind::File | Kind::Folder) => all.mount("--ro-bind", &path),
            (View::Hidden, Kind::File) => {
                all.add(["--ro-bind", "/dev/null"]);
                all.add([path]);
            }
            (View::Hidden, Kind::Folder) => {
                all.add(["--perms", "0555", "--tmpfs"]);
                all.add([&path]);
                hidden.push(path);
            }
        }
    }
    // What is bound into a hidden folder needs a place there first.
    for path in hidden {
        all.add(["--remount-ro"]);
        all.add([path]);
    }
    // Root needs no capability to write `/proc/sys`, which decides what the kernel
    // runs; bubblewrap covers only some of it.
    all.add(["--remount-ro", "/proc", "--remount-ro", "/dev"]);
    all.add(["--seccomp".to_owned(), seccomp.to_string()]);
    all.0
}

/// Every path of the policy, those above before those below, so that the deeper
/// path counts. At the same path the strictest comes last.
fn views(policy: &Policy, protected: &[PathBuf]) -> Vec<(PathBuf, View)> {
    let of = |paths: &[PathBuf], view| paths.iter().map(|path| (path.clone(), view)).collect::<Vec<_>>();
    let mut all = of(&policy.writable, View::Writable);
    all.extend(of(protected, View::ReadOnly));
    all.extend(of(&policy.unreadable, View::Hidden));
    all.sort_by_key(|(path, view)| (path.components().count(), *view));
    all
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
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

    fn policy(network: Network) -> Policy {
        Policy {
            writable: vec!["/home/ann/site".into(), "/tmp".into(), "/home/ann/.config/aside/scratch".into()],
            protected: vec!["/home/ann/site/.git/hooks".into(), "/home/ann/site/.envrc".into()],
            unreadable: vec!["/home/ann/.config/aside".into(), "/home/ann/.netrc".into(), "/gone".into()],
            network,
        }
    }

    fn kind(path: &Path) -> Kind {
        match path.to_str() {
            Some("/gone" | "/home/ann/site/.envrc") => Kind::Absent,
            Some("/home/ann/.netrc") => Kind::File,
            Some(_) | None => Kind::Folder,
        }
    }

    fn line(network: Network, user: User) -> String {
        let policy = policy(network);
        let words = arguments(&policy, &policy.protected, user, 7, &kind);
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        words.join(" ").replace(" --", "\n--")
    }

    #[test]
    fn k1_the_deeper_path_counts_and_what_is_missing_is_passed_over() {
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
        assert_eq!(line(Network::Off, User::Other), expected);
    }

    #[test]
    fn k4_root_keeps_seven_capabilities_and_no_user_namespace() {
        let line = line(Network::On, User::Root);
        assert!(line.contains("--cap-drop ALL\n--cap-add CAP_CHOWN\n"), "{line}");
        assert_eq!(line.matches("--cap-add").count(), 7);
        assert!(!line.contains("--unshare-user") && !line.contains("--unshare-net"), "{line}");
    }
}
