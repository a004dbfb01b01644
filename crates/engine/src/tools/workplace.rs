//! Where the tools work: one folder, and where a path really leads.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use aside_confine::{Confine, Helper, Places, Wish};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::{Likeness, Risk, Target};

/// As many as Linux follows.
const MOST_LINKS: usize = 40;

/// The working directory of a session.
#[derive(Debug, Clone)]
pub struct Workplace {
    root: PathBuf,
    hidden_variables: Vec<String>,
    locks: Arc<Mutex<Locks>>,
    confine: Arc<Confine>,
}

type Locks = HashMap<PathBuf, Weak<AsyncMutex<()>>>;

/// Where a path leads when every link in it is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    /// Below the root if it is inside, whole if it is not.
    pub(crate) name: String,
    pub(crate) side: Side,
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
        let confine = Confine::new(Helper::this_program(), Wish::Auto, Places::here(root.clone()));
        let confine = Arc::new(confine);
        Ok(Workplace { root, hidden_variables: Vec::new(), locks: Arc::default(), confine })
    }

    /// Commands are confined in this way.
    pub fn confined(mut self, confine: Arc<Confine>) -> Workplace {
        self.confine = confine;
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
        let path = follow(&self.root.join(path))?;
        let (name, side) = match path.strip_prefix(&self.root) {
            Ok(below) if below.as_os_str().is_empty() => (".".to_owned(), Side::Inside),
            Ok(below) => (below.display().to_string(), Side::Inside),
            Err(_) => (path.display().to_string(), Side::Outside),
        };
        Ok(Place { path, name, side })
    }

    /// Between the question and the deed somebody may have put a link there.
    pub(crate) fn check_again(&self, place: &Place) -> Result<(), String> {
        match follow(&place.path)? == place.path {
            true => Ok(()),
            false => Err(format!("`{}` leads elsewhere since it was looked at; nothing was done", place.name)),
        }
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
        let risk = match self.side {
            Side::Inside => risk,
            Side::Outside => Risk::Outside,
        };
        Target::new(self.name.clone(), risk, Likeness::Tool)
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
    fn l3_a_link_put_there_after_the_question_is_noticed() {
        let scratch = Scratch::new("swapped");
        let root = scratch.path().join("root");
        fs::create_dir_all(root.join("docs")).unwrap();
        let work = Workplace::open(&root).unwrap();
        let place = work.place("docs/new").unwrap();
        assert_eq!(work.check_again(&place), Ok(()));
        fs::remove_dir(root.join("docs")).unwrap();
        symlink("/tmp", root.join("docs")).unwrap();
        assert!(work.check_again(&place).unwrap_err().contains("leads elsewhere"));
    }
}
