//! What a confined command may touch.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::launch::paths;

/// What holds for one command. Every path is absolute and has its links followed;
/// one that does not exist is passed over when the policy is applied, because it
/// would otherwise fail every command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Folders and files that may be changed.
    #[serde(with = "paths")]
    pub writable: Vec<PathBuf>,
    /// Paths below `writable` that only the person changes.
    #[serde(with = "paths")]
    pub protected: Vec<PathBuf>,
    /// Folders and files whose content is not read. The deeper path counts, so a
    /// writable folder below one of them can be read.
    #[serde(with = "paths")]
    pub unreadable: Vec<PathBuf>,
    pub network: Network,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    #[default]
    Off,
    On,
}

/// Caches of build tools that commands may fill, below the home folder. None of
/// them holds programs that the person starts, or settings with commands in them.
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

/// Variables that name a cache elsewhere.
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

/// What holds keys and tokens, below the home folder.
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

/// Device files that a command may use. A terminal is not one of them.
pub(crate) const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// Everything a policy is made of, so that making one asks nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The working directory.
    pub root: PathBuf,
    pub home: Option<PathBuf>,
    /// Folders for temporary files.
    pub temp: Vec<PathBuf>,
    /// What is named as a cache, beside the usual ones.
    pub caches: Vec<PathBuf>,
    /// Further folders that the person has opened to commands.
    pub directories: Vec<PathBuf>,
    /// aside's own folders, and what `read` rules deny.
    pub unreadable: Vec<PathBuf>,
    /// aside's own files that only the person changes, wherever they lie.
    pub protected: Vec<PathBuf>,
}

impl Places {
    /// Those of this process, with `root` to work in.
    pub fn here(root: PathBuf) -> Places {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let mut temp = vec![std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
        temp.retain(|folder| folder.is_absolute() && folder != Path::new("/"));
        temp.dedup();
        Places {
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
    /// The unreadable paths that can be read all the same, because a folder that
    /// is opened to the command contains them.
    pub fn exposed(&self) -> impl Iterator<Item = &Path> {
        let is_inside = |path: &Path| self.writable.iter().any(|root| path.starts_with(root));
        self.unreadable.iter().map(PathBuf::as_path).filter(move |path| is_inside(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
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
        // Programs, start-up files and settings with commands in them are not.
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
    fn what_lies_in_the_working_directory_is_said_to_be_exposed() {
        let unreadable = vec![PathBuf::from("/home/ann/.ssh"), "/elsewhere".into()];
        let policy = Policy { writable: vec!["/home/ann".into()], unreadable, ..Policy::default() };
        assert_eq!(policy.exposed().collect::<Vec<_>>(), [Path::new("/home/ann/.ssh")]);
    }
}
