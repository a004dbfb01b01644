//! What a confined command may access.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::launch::path_list;

/// The policy for one command. Every path is absolute and without links. A path that does
/// not exist is skipped when the policy is applied, because it would otherwise fail every
/// command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Folders and files that the command may change.
    #[serde(with = "path_list")]
    pub writable: Vec<PathBuf>,
    /// Paths inside `writable` that only the user may change.
    #[serde(with = "path_list")]
    pub protected: Vec<PathBuf>,
    /// Folders and files that the command may not read. The deeper path takes precedence,
    /// so a writable folder inside one of them is readable.
    #[serde(with = "path_list")]
    pub unreadable: Vec<PathBuf>,
    pub network: NetworkPolicy,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkPolicy {
    #[default]
    Off,
    On,
}

/// Build tool caches in the home folder that commands may fill. None of them contains
/// programs that the user runs, or configuration that names commands.
pub const CACHES: [&str; 17] = [
    ".cache",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".cargo/.global-cache",
    ".npm",
    ".local/share/pnpm/store",
    ".yarn/berry/cache",
    ".bun/install/cache",
    ".gradle/caches",
    ".m2/repository",
    ".nuget/packages",
    ".ivy2/cache",
    "go/pkg/mod",
    "Library/Caches",
    "Library/pnpm/store",
];

/// Environment variables that move a cache elsewhere.
const CACHE_VARIABLES: [&str; 10] = [
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
    "XDG_CACHE_HOME",
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "npm_config_cache",
    "YARN_CACHE_FOLDER",
    "GOCACHE",
    "GOMODCACHE",
    "SCCACHE_DIR",
];

/// Paths in the home folder that contain keys and tokens.
const SECRETS: [&str; 16] = [
    ".ssh",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".docker/config.json",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".password-store",
    "Library/Keychains",
];

/// Device files that a command may use. Terminals are not among them.
pub(crate) const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// Everything that determines a policy, so that creating one does not read the
/// environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyPaths {
    /// The working directory.
    pub root: PathBuf,
    pub home: Option<PathBuf>,
    /// Folders for temporary files.
    pub temp: Vec<PathBuf>,
    /// Configured caches, besides the usual ones.
    pub caches: Vec<PathBuf>,
    /// Further folders that the user opened to commands.
    pub directories: Vec<PathBuf>,
    /// aside's own folders, and paths that `read` rules deny.
    pub unreadable: Vec<PathBuf>,
    /// aside's own files that only the user may change, wherever they are.
    pub protected: Vec<PathBuf>,
}

impl PolicyPaths {
    /// The paths of this process, with `root` as the working directory.
    pub fn from_environment(root: PathBuf) -> PolicyPaths {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let mut temp = vec![std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
        temp.retain(|folder| folder.is_absolute() && folder != Path::new("/"));
        temp.dedup();
        PolicyPaths {
            root,
            home: variable("HOME").filter(|home| home != Path::new("/")),
            temp,
            caches: CACHE_VARIABLES.iter().filter_map(|name| variable(name)).collect(),
            directories: Vec::new(),
            unreadable: Vec::new(),
            protected: Vec::new(),
        }
    }

    /// Folders that commands may change, the working directory first.
    pub fn writable(&self) -> Vec<PathBuf> {
        let below_home = self.home.iter().flat_map(|home| CACHES.iter().map(move |cache| home.join(cache)));
        let mut all: Vec<PathBuf> = Vec::new();
        let folders = std::iter::once(&self.root).chain(&self.directories).chain(&self.temp).chain(&self.caches);
        for path in folders.cloned().chain(below_home) {
            // Everything would be writable, and nothing confined.
            if path != Path::new("/") && !all.contains(&path) {
                all.push(path);
            }
        }
        all
    }

    pub fn unreadable(&self) -> Vec<PathBuf> {
        let secrets = self.home.iter().flat_map(|home| SECRETS.iter().map(move |secret| home.join(secret)));
        secrets.chain(self.unreadable.iter().cloned()).collect()
    }
}

impl Policy {
    /// Unreadable paths that the command can read anyway, because they are inside a
    /// folder that is open to it.
    pub(crate) fn exposed(&self) -> impl Iterator<Item = &Path> {
        let is_inside = |path: &Path| self.writable.iter().any(|root| path.starts_with(root));
        self.unreadable.iter().map(PathBuf::as_path).filter(move |path| is_inside(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> PolicyPaths {
        PolicyPaths {
            root: "/home/ann/code/site".into(),
            home: Some("/home/ann".into()),
            temp: vec!["/tmp".into()],
            caches: vec!["/big/target".into(), "/".into()],
            directories: vec!["/home/ann/code/lib".into()],
            unreadable: vec!["/home/ann/.config/aside".into()],
            protected: Vec::new(),
        }
    }

    #[test]
    fn k1_the_working_directory_temp_and_caches_are_writable() {
        let writable = places().writable();
        for path in ["/home/ann/code/site", "/home/ann/code/lib", "/tmp", "/big/target", "/home/ann/.cargo/registry"] {
            assert!(writable.iter().any(|found| found == Path::new(path)), "{path}");
        }
        // Programs, start-up files and configuration that names commands are not
        // writable.
        for path in ["/home/ann/.cargo/bin/x", "/home/ann/.bashrc", "/home/ann/.config/x", "/dev/tty", "/etc/x"] {
            assert!(!writable.iter().any(|root| Path::new(path).starts_with(root)), "{path}");
        }
    }

    #[test]
    fn k4_secrets_and_our_own_folders_are_unreadable() {
        let unreadable = places().unreadable();
        for path in ["/home/ann/.ssh", "/home/ann/.aws", "/home/ann/.config/gh", "/home/ann/.config/aside"] {
            assert!(unreadable.iter().any(|found| found == Path::new(path)), "{path}");
        }
    }

    #[test]
    fn secrets_inside_the_working_directory_are_reported_as_exposed() {
        let unreadable = vec![PathBuf::from("/home/ann/.ssh"), "/elsewhere".into()];
        let policy = Policy { writable: vec!["/home/ann".into()], unreadable, ..Policy::default() };
        assert_eq!(policy.exposed().collect::<Vec<_>>(), [Path::new("/home/ann/.ssh")]);
    }
}
