//! Where the tools work: one folder, and where a path really leads.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use aside_confine::{Confine, Helper, Places, Wish};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::protected::Protected;
use super::{Likeness, Risk, Target};
use crate::dir::Dir;

/// As many as Linux follows.
const MOST_LINKS: usize = 40;
/// As long as Linux takes.
const MOST_PATH: usize = 4096;

/// The working directory of a session.
#[derive(Debug, Clone)]
pub struct Workplace {
    root: PathBuf,
    /// Held open, so that nobody can put another folder in its place.
    folder: Arc<Dir>,
    protected: Arc<Protected>,
    hidden_variables: Vec<String>,
    locks: Arc<Mutex<Locks>>,
    confine: Arc<Confine>,
}

type Locks = HashMap<PathBuf, Weak<AsyncMutex<()>>>;

/// Where a path leads when every link in it is followed.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    /// Below the root if it is inside, whole if it is not.
    pub(crate) name: String,
    pub(crate) side: Side,
    /// The folder it is opened from, and the way from there.
    pub(crate) from: Arc<Dir>,
    pub(crate) below: PathBuf,
    /// Whether a change to it decides what runs next.
    is_protected: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Inside,
    Outside,
}

impl Workplace {
    pub fn open(root: &Path) -> io::Result<Workplace> {
        let root = fs::canonicalize(root)?;
        if !root.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, format!("{} is no folder", root.display())));
        }
        let folder = Arc::new(Dir::open(&root)?);
        let confine = Confine::new(Helper::this_program(), Wish::Auto, Places::here(root.clone()));
        Ok(Workplace {
            root,
            folder,
            protected: Arc::default(),
            hidden_variables: Vec::new(),
            locks: Arc::default(),
            confine: Arc::new(confine),
        })
    }

    /// Commands are confined in this way.
    pub fn confined(mut self, confine: Arc<Confine>) -> Workplace {
        self.confine = confine;
        self
    }

    /// Folders and names of files that are written to only after a question,
    /// beside those that are protected everywhere.
    pub fn protecting(
        mut self,
        folders: impl IntoIterator<Item = PathBuf>,
        names: impl IntoIterator<Item = String>,
    ) -> Workplace {
        let folders = folders.into_iter().map(|folder| match std::path::absolute(&folder) {
            Ok(folder) => follow(&folder).unwrap_or(folder),
            Err(_) => folder,
        });
        self.protected = Arc::new(Protected::new(folders, names));
        self
    }

    /// Environment variables that commands do not get to see, such as keys.
    pub fn hiding(mut self, variables: impl IntoIterator<Item = String>) -> Workplace {
        self.hidden_variables.extend(variables);
        self
    }

    /// With every link followed: what a project is known by.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn confine(&self) -> &Confine {
        &self.confine
    }

    pub(crate) fn hidden_variables(&self) -> &[String] {
        &self.hidden_variables
    }

    pub(crate) fn place(&self, path: &str) -> Result<Place, String> {
        if path.contains('\0') {
            return Err("a path has no NUL in it".to_owned());
        }
        if path.len() > MOST_PATH {
            return Err(format!("the path has {} bytes; at most {MOST_PATH} are possible", path.len()));
        }
        let path = follow(&self.root.join(path))?;
        let inside = path.strip_prefix(&self.root).map(Path::to_owned);
        let is_protected = self.protected.covers(&path, inside.as_deref().unwrap_or(&path));
        let (name, side, from, below) = match inside {
            Ok(below) if below.as_os_str().is_empty() => (".".to_owned(), Side::Inside, self.folder.clone(), below),
            Ok(below) => (below.display().to_string(), Side::Inside, self.folder.clone(), below),
            Err(_) => {
                let top = Dir::open(Path::new("/")).map_err(|error| format!("`/` cannot be opened: {error}"))?;
                let below = path.strip_prefix("/").map(Path::to_owned).unwrap_or_default();
                (path.display().to_string(), Side::Outside, Arc::new(top), below)
            }
        };
        Ok(Place { path, name, side, from, below, is_protected })
    }

    /// One at a time for each file, so that no change undoes another.
    pub(crate) async fn lock(&self, path: &Path) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| lock.strong_count() > 0);
            let known = locks.get(path).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let lock = Arc::new(AsyncMutex::new(()));
                locks.insert(path.to_owned(), Arc::downgrade(&lock));
                lock
            })
        };
        lock.lock_owned().await
    }
}

impl Place {
    pub(crate) fn target(&self, risk: Risk) -> Target {
        let changes = risk == Risk::Writes;
        let risk = match self.side {
            Side::Inside => risk,
            Side::Outside => Risk::Outside,
        };
        let mut target = Target::new(self.name.clone(), risk, Likeness::Tool);
        target.path = Some(self.path.display().to_string());
        target.protected = (changes && self.is_protected).then(|| self.name.clone());
        target
    }
}

/// Follows the links of an absolute path, also where its end does not exist
/// yet. `fs::canonicalize` gives up there, and a link that dangles out of the
/// folder would look like a new file inside.
fn follow(path: &Path) -> Result<PathBuf, String> {
    let parts =
        |path: &Path| -> Vec<OsString> { path.components().rev().map(|part| part.as_os_str().into()).collect() };
    let mut ahead = parts(path);
    let mut reached = PathBuf::new();
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        if part == ".." {
            reached.pop();
            continue;
        }
        if part == "." {
            continue;
        }
        reached.push(part);
        if let Ok(target) = fs::read_link(&reached) {
            links += 1;
            if links > MOST_LINKS {
                return Err(format!("too many links on the way to `{}`", path.display()));
            }
            reached.pop();
            ahead.extend(parts(&target));
        }
    }
    Ok(reached)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn l3_a_path_is_inside_only_if_it_ends_up_there() {
        let scratch = Scratch::new("places");
        let (root, beside) = (scratch.path().join("root"), scratch.path().join("beside"));
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir_all(&beside).unwrap();
        fs::write(root.join("src/a"), "").unwrap();
        symlink("../beside", root.join("out")).unwrap();
        symlink("src", root.join("in")).unwrap();
        symlink(beside.join("not-there"), root.join("dangling")).unwrap();
        symlink("dangling", root.join("twice")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let work = Workplace::open(&root).unwrap();
        let whole = |path: &Path| path.display().to_string();
        #[rustfmt::skip]
        let cases = [
            ("itself",              ".",                       Side::Inside,  ".".to_owned()),
            ("below",               "src/a",                   Side::Inside,  "src/a".to_owned()),
            ("not there yet",       "new/deep/file",           Side::Inside,  "new/deep/file".to_owned()),
            ("up and back",         "src/../src/a",            Side::Inside,  "src/a".to_owned()),
            ("out and back",        "../root/src/a",           Side::Inside,  "src/a".to_owned()),
            ("a link inside",       "in/a",                    Side::Inside,  "src/a".to_owned()),
            ("absolute",            &whole(&work.root().join("src")), Side::Inside, "src".to_owned()),
            ("above",               "../beside",               Side::Outside, whole(&beside)),
            ("above what is new",   "new/../../beside/x",      Side::Outside, whole(&beside.join("x"))),
            ("a name that begins alike", "../root2",           Side::Outside, whole(&scratch.path().join("root2"))),
            ("a link out",          "out/x",                   Side::Outside, whole(&beside.join("x"))),
            ("up behind a link",    "out/../beside",           Side::Outside, whole(&beside)),
            ("a link to nothing",   "dangling",                Side::Outside, whole(&beside.join("not-there"))),
            ("a link to that",      "twice",                   Side::Outside, whole(&beside.join("not-there"))),
        ];
        for (name, path, side, expected) in cases {
            let place = work.place(path).unwrap();
            assert_eq!((place.side, place.name), (side, expected), "{name}");
        }
        assert!(work.place("loop/x").unwrap_err().contains("too many links"));
    }

    #[test]
    fn l3_a_path_that_is_too_long_is_refused_before_it_is_followed() {
        let scratch = Scratch::new("long-path");
        let work = Workplace::open(scratch.path()).unwrap();
        assert!(work.place(&"a/".repeat(1_000_000)).unwrap_err().contains("2000000 bytes"));
    }
}
