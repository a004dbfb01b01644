//! The working directory of the tools, and the resolution of paths in it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use aside_confine::{Confine, ConfineSetting, Helper, PolicyPaths};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::file_changes::ChangeObserver;
use super::open_files::OpenFiles;
use super::process::WaitingHelper;
use super::protected::ProtectedPaths;
use super::shell::NON_INTERACTIVE_VARIABLES;
use super::{AnswerScope, CallTarget, Risk};
use crate::dir::Dir;

/// The same limit as Linux.
const MAX_LINKS: usize = 40;
/// The same limit as Linux.
const MAX_PATH: usize = 4096;

/// The working directory of a session.
#[derive(Debug, Clone)]
pub struct WorkingDir {
    root: PathBuf,
    /// Held open, so that the folder cannot be swapped for another.
    folder: Arc<Dir>,
    protected: Arc<ProtectedPaths>,
    hidden_variables: Vec<String>,
    locks: Arc<Mutex<Locks>>,
    confine: Arc<Confine>,
    changes: Option<Arc<dyn ChangeObserver>>,
    additional: Vec<AdditionalFolder>,
    open_files: Option<Arc<dyn OpenFiles>>,
    next_helper: Arc<Mutex<Option<WaitingHelper>>>,
}

/// A folder besides the working directory that counts as inside.
#[derive(Debug, Clone)]
struct AdditionalFolder {
    root: PathBuf,
    /// Held open, so that the folder cannot be swapped for another.
    folder: Arc<Dir>,
}

type Locks = HashMap<PathBuf, Weak<AsyncMutex<()>>>;

/// A path with all links followed.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedPath {
    pub(crate) path: PathBuf,
    /// Relative to the root if inside, absolute otherwise.
    pub(crate) name: String,
    pub(crate) scope: PathScope,
    /// The folder to open it from, and the path relative to that folder.
    pub(crate) base: Arc<Dir>,
    pub(crate) relative: PathBuf,
    /// Whether changing it can affect what runs next.
    is_protected: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathScope {
    Inside,
    Outside,
}

/// The folder in which a path is.
enum ContainingFolder {
    WorkingDir,
    /// Paths in it are named absolutely.
    Additional,
}

impl WorkingDir {
    pub fn open(root: &Path) -> io::Result<WorkingDir> {
        let root = fs::canonicalize(root)?;
        if !root.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, format!("{} is not a folder", root.display())));
        }
        let folder = Arc::new(Dir::open(&root)?);
        let confine =
            Confine::new(Helper::this_program(), ConfineSetting::Auto, PolicyPaths::from_environment(root.clone()));
        Ok(WorkingDir {
            root,
            folder,
            protected: Arc::default(),
            hidden_variables: Vec::new(),
            locks: Arc::default(),
            confine: Arc::new(confine),
            changes: None,
            additional: Vec::new(),
            open_files: None,
            next_helper: Arc::default(),
        })
    }

    /// Adds folders that count as inside. Relative paths still begin in the working directory.
    pub fn with_additional_folders<'f>(
        mut self,
        folders: impl IntoIterator<Item = &'f PathBuf>,
    ) -> io::Result<WorkingDir> {
        for folder in folders {
            let root = fs::canonicalize(folder)?;
            let folder = Arc::new(Dir::open(&root)?);
            self.additional.push(AdditionalFolder { root, folder });
        }
        Ok(self)
    }

    /// Reads files from the editor that has them open.
    pub fn with_open_files(mut self, open_files: Option<Arc<dyn OpenFiles>>) -> WorkingDir {
        self.open_files = open_files;
        self
    }

    pub(crate) fn open_files(&self) -> Option<Arc<dyn OpenFiles>> {
        self.open_files.clone()
    }

    /// Sets how commands are confined.
    pub fn with_confinement(mut self, confine: Arc<Confine>) -> WorkingDir {
        self.confine = confine;
        self
    }

    /// Tells this observer about every change of a file by `write` and `edit`.
    pub fn with_change_observer(mut self, changes: Arc<dyn ChangeObserver>) -> WorkingDir {
        self.changes = Some(changes);
        self
    }

    pub(crate) fn change_observer(&self) -> Option<&dyn ChangeObserver> {
        self.changes.as_deref()
    }

    /// Adds folders and file names that need permission to change, in addition to the built-in ones.
    pub fn with_protected(
        mut self,
        folders: impl IntoIterator<Item = PathBuf>,
        names: impl IntoIterator<Item = String>,
    ) -> WorkingDir {
        let folders = folders.into_iter().map(|folder| match std::path::absolute(&folder) {
            Ok(folder) => resolve_links(&folder).unwrap_or(folder),
            Err(_) => folder,
        });
        self.protected = Arc::new(ProtectedPaths::new(folders, names));
        self
    }

    /// Hides environment variables, such as keys, from commands.
    pub fn with_hidden_variables(mut self, variables: impl IntoIterator<Item = String>) -> WorkingDir {
        self.hidden_variables.extend(variables);
        self
    }

    /// The canonical path, which identifies the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn confine(&self) -> &Confine {
        &self.confine
    }

    /// The helper for a command: one that waits already, or a new one.
    pub(crate) fn take_helper(&self) -> io::Result<WaitingHelper> {
        let waiting = self.next_helper.lock().unwrap_or_else(PoisonError::into_inner).take();
        match waiting.and_then(|mut helper| helper.is_alive().then_some(helper)) {
            Some(helper) => Ok(helper),
            None => WaitingHelper::start(self.helper_command()),
        }
    }

    /// Starts the helper of the next command. If that fails, the next command tries again and reports it.
    pub(crate) fn start_next_helper(&self) {
        let mut next = self.next_helper.lock().unwrap_or_else(PoisonError::into_inner);
        if next.is_none() {
            *next = WaitingHelper::start(self.helper_command()).ok();
        }
    }

    fn helper_command(&self) -> std::process::Command {
        let mut command = self.confine.helper().command();
        command.current_dir(&self.root).envs(NON_INTERACTIVE_VARIABLES);
        for variable in &self.hidden_variables {
            command.env_remove(variable);
        }
        command
    }

    pub(crate) fn resolve(&self, path: &str) -> Result<ResolvedPath, String> {
        if path.contains('\0') {
            return Err("a path has no NUL in it".to_owned());
        }
        if path.len() > MAX_PATH {
            return Err(format!("the path has {} bytes; at most {MAX_PATH} are allowed", path.len()));
        }
        let (path, links) = follow_links(&self.root.join(path))?;
        let below = |root: &Path| path.strip_prefix(root).ok().map(Path::to_owned);
        let in_additional = || {
            self.additional
                .iter()
                .find_map(|one| Some((below(&one.root)?, Arc::clone(&one.folder), ContainingFolder::Additional)))
        };
        let inside =
            below(&self.root).map(|relative| (relative, Arc::clone(&self.folder), ContainingFolder::WorkingDir));
        let inside = inside.or_else(in_additional);
        let named = inside.as_ref().map_or(&path, |(relative, ..)| relative);
        let is_protected = self.protected.covers(&path, named)
            || links.iter().any(|link| self.protected.covers(link, link.strip_prefix(&self.root).unwrap_or(link)))
            || self.protected.links_to(&path, &self.folders());
        let (name, scope, base, relative) = match inside {
            Some((relative, base, ContainingFolder::WorkingDir)) if relative.as_os_str().is_empty() => {
                (".".to_owned(), PathScope::Inside, base, relative)
            }
            Some((relative, base, ContainingFolder::WorkingDir)) => {
                (relative.display().to_string(), PathScope::Inside, base, relative)
            }
            Some((relative, base, ContainingFolder::Additional)) => {
                (path.display().to_string(), PathScope::Inside, base, relative)
            }
            None => {
                let top = Dir::open(Path::new("/")).map_err(|error| format!("`/` cannot be opened: {error}"))?;
                let relative = path.strip_prefix("/").map(Path::to_owned).unwrap_or_default();
                (path.display().to_string(), PathScope::Outside, Arc::new(top), relative)
            }
        };
        Ok(ResolvedPath { path, name, scope, base, relative, is_protected })
    }

    /// The working directory and the additional folders.
    fn folders(&self) -> Vec<PathBuf> {
        std::iter::once(&self.root).chain(self.additional.iter().map(|one| &one.root)).cloned().collect()
    }

    /// Locks a file, so that concurrent changes cannot overwrite each other.
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

impl ResolvedPath {
    pub(crate) fn target(&self, risk: Risk) -> CallTarget {
        let changes = risk == Risk::Writes;
        let risk = match self.scope {
            PathScope::Inside => risk,
            PathScope::Outside => Risk::Outside,
        };
        let mut target = CallTarget::new(self.name.clone(), risk, AnswerScope::Tool);
        target.path = Some(self.path.display().to_string());
        target.protected = (changes && self.is_protected).then(|| self.name.clone());
        target
    }
}

/// Follows the links of an absolute path, even if its end does not exist yet. `fs::canonicalize` fails on
/// such a path, and a dangling link to the outside would look like a new file inside.
fn resolve_links(path: &Path) -> Result<PathBuf, String> {
    follow_links(path).map(|(path, _)| path)
}

/// The same, with the paths of all links on the way.
fn follow_links(path: &Path) -> Result<(PathBuf, Vec<PathBuf>), String> {
    let parts =
        |path: &Path| -> Vec<OsString> { path.components().rev().map(|part| part.as_os_str().into()).collect() };
    let mut remaining = parts(path);
    let mut reached = PathBuf::new();
    let mut links = Vec::new();
    while let Some(part) = remaining.pop() {
        if part == ".." {
            reached.pop();
            continue;
        }
        if part == "." {
            continue;
        }
        reached.push(part);
        if let Ok(target) = fs::read_link(&reached) {
            links.push(reached.clone());
            if links.len() > MAX_LINKS {
                return Err(format!("too many links on the way to `{}`", path.display()));
            }
            reached.pop();
            remaining.extend(parts(&target));
        }
    }
    Ok((reached, links))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::test_dir::TestDir;

    #[test]
    fn l3_a_path_is_inside_only_if_it_ends_up_there() {
        let test_dir = TestDir::new("places");
        let (root, beside) = (test_dir.path().join("root"), test_dir.path().join("beside"));
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir_all(&beside).unwrap();
        fs::write(root.join("src/a"), "").unwrap();
        symlink("../beside", root.join("out")).unwrap();
        symlink("src", root.join("in")).unwrap();
        symlink(beside.join("not-there"), root.join("dangling")).unwrap();
        symlink("dangling", root.join("twice")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let work = WorkingDir::open(&root).unwrap();
        let whole = |path: &Path| path.display().to_string();
        #[rustfmt::skip]
        let cases = [
            ("itself",              ".",                       PathScope::Inside,  ".".to_owned()),
            ("below",               "src/a",                   PathScope::Inside,  "src/a".to_owned()),
            ("not there yet",       "new/deep/file",           PathScope::Inside,  "new/deep/file".to_owned()),
            ("up and back",         "src/../src/a",            PathScope::Inside,  "src/a".to_owned()),
            ("out and back",        "../root/src/a",           PathScope::Inside,  "src/a".to_owned()),
            ("a link inside",       "in/a",                    PathScope::Inside,  "src/a".to_owned()),
            ("absolute",            &whole(&work.root().join("src")), PathScope::Inside, "src".to_owned()),
            ("above",               "../beside",               PathScope::Outside, whole(&beside)),
            ("above what is new",   "new/../../beside/x",      PathScope::Outside, whole(&beside.join("x"))),
            ("a name that begins alike", "../root2",           PathScope::Outside, whole(&test_dir.path().join("root2"))),
            ("a link out",          "out/x",                   PathScope::Outside, whole(&beside.join("x"))),
            ("up behind a link",    "out/../beside",           PathScope::Outside, whole(&beside)),
            ("a link to nothing",   "dangling",                PathScope::Outside, whole(&beside.join("not-there"))),
            ("a link to that",      "twice",                   PathScope::Outside, whole(&beside.join("not-there"))),
        ];
        for (name, path, scope, expected) in cases {
            let resolved = work.resolve(path).unwrap();
            assert_eq!((resolved.scope, resolved.name), (scope, expected), "{name}");
        }
        assert!(work.resolve("loop/x").unwrap_err().contains("too many links"));
    }

    #[test]
    fn a1_additional_folders_count_as_inside_and_their_protected_paths_too() {
        let test_dir = TestDir::new("additional");
        let (root, beside) = (test_dir.path().join("root"), test_dir.path().join("beside"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(beside.join(".git")).unwrap();
        fs::write(beside.join("a"), "").unwrap();
        symlink("/etc", beside.join("out")).unwrap();
        let work = WorkingDir::open(&root).unwrap().with_additional_folders([&beside]).unwrap();
        let whole = |path: &str| fs::canonicalize(&beside).unwrap().join(path).display().to_string();
        #[rustfmt::skip]
        let cases = [
            ("absolute",        whole("a"),              PathScope::Inside,  whole("a"),           false),
            ("relative",        "../beside/a".to_owned(), PathScope::Inside, whole("a"),           false),
            ("new",             whole("new/b"),          PathScope::Inside,  whole("new/b"),       false),
            ("protected",       whole(".git/config"),    PathScope::Inside,  whole(".git/config"), true),
            ("a link out",      whole("out/passwd"),     PathScope::Outside, "/etc/passwd".to_owned(), false),
            ("above both",      "../other".to_owned(),   PathScope::Outside, test_dir.path().join("other").display().to_string(), false),
        ];
        for (name, path, scope, expected, is_protected) in cases {
            let resolved = work.resolve(&path).unwrap();
            assert_eq!((resolved.scope, resolved.is_protected), (scope, is_protected), "{name}");
            assert_eq!(resolved.name, expected, "{name}");
        }
        let missing = test_dir.path().join("missing");
        assert!(WorkingDir::open(&root).unwrap().with_additional_folders([&missing]).is_err());
    }

    #[test]
    fn l3_a_protected_name_that_is_a_link_protects_what_it_leads_to() {
        let test_dir = TestDir::new("protected-links");
        let root = test_dir.path();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("githooks")).unwrap();
        fs::create_dir_all(root.join("env")).unwrap();
        fs::write(root.join("CLAUDE.md"), "").unwrap();
        fs::write(root.join("env/dev"), "").unwrap();
        symlink("../githooks", root.join(".git/hooks")).unwrap();
        symlink("CLAUDE.md", root.join("AGENTS.md")).unwrap();
        symlink("env/dev", root.join(".envrc")).unwrap();
        symlink("CLAUDE.md", root.join("notes.md")).unwrap();
        let work = WorkingDir::open(root).unwrap();
        for (path, is_protected) in [
            (".git/hooks/pre-commit", true),
            ("githooks/pre-commit", true),
            ("AGENTS.md", true),
            ("CLAUDE.md", true),
            ("notes.md", true),
            (".envrc", true),
            ("env/dev", true),
            ("env/other", false),
            ("src/a", false),
        ] {
            assert_eq!(work.resolve(path).unwrap().is_protected, is_protected, "{path}");
        }
    }

    #[test]
    fn l3_a_path_that_is_too_long_is_refused_before_it_is_followed() {
        let test_dir = TestDir::new("long-path");
        let work = WorkingDir::open(test_dir.path()).unwrap();
        assert!(work.resolve(&"a/".repeat(1_000_000)).unwrap_err().contains("2000000 bytes"));
    }
}
