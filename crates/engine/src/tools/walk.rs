//! Walks the files below a folder, without ignored files.
//!
//! Every folder is opened from the start folder, never through a link, so the walk cannot leave it even if
//! folders are renamed in the meantime.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use tokio_util::sync::CancellationToken;

use super::blocking::STOPPED;
use super::files;
use super::gitignore::IgnoreRules;
use super::working_dir::ResolvedPath;
use crate::dir::{Dir, DirEntry, EntryKind, OpenedPath};

/// How many entries are held in memory.
#[derive(Debug, Clone, Copy)]
struct WalkLimits {
    /// Entries of one folder.
    entries: usize,
    /// Entries that are still to be visited.
    waiting: usize,
}

const LIMITS: WalkLimits = WalkLimits { entries: 200_000, waiting: 500_000 };
/// The maximum length of a pattern. Each star costs memory and time.
const MAX_PATTERN: usize = 1000;

/// What a walk left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WalkSkips {
    /// Folders that could not be read.
    pub(crate) unread: usize,
    /// Entries beyond the limits.
    pub(crate) too_many: usize,
    /// Ignore files that are too large to apply.
    pub(crate) unapplied: usize,
}

impl WalkSkips {
    /// One line for each kind, for the model.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.unread > 0 {
            notes.push(format!("[{} places could not be read]", self.unread));
        }
        if self.too_many > 0 {
            notes.push(format!(
                "[{} entries of very large folders were left out; name a smaller folder]",
                self.too_many
            ));
        }
        if self.unapplied > 0 {
            notes.push(format!("[{} ignore files are too large and were not applied]", self.unapplied));
        }
        notes
    }
}

/// A folder of the walk, shared by its entries.
struct WalkFolder {
    /// Relative to the start of the walk.
    relative: PathBuf,
    ignored: Arc<IgnoreRules>,
}

struct PendingEntry {
    level: Arc<WalkFolder>,
    name: OsString,
    kind: EntryKind,
}

/// Calls `visit` with the path of each regular file, relative to the start and sorted by name. If the start
/// is a file, the path is empty. Links are not followed. Hidden files are included, because projects have
/// many of them, but `.git` is not.
pub(crate) fn files(
    resolved: &ResolvedPath,
    stop: &CancellationToken,
    visit: &mut dyn FnMut(&Path) -> ControlFlow<()>,
) -> Result<WalkSkips, String> {
    match resolved.base.open_at(&resolved.relative).map_err(|error| files::describe_error(resolved, &error))? {
        OpenedPath::File(..) => {
            let _only_one = visit(Path::new(""));
            Ok(WalkSkips::default())
        }
        OpenedPath::Special => Err(format!("`{}` is not a regular file", resolved.name)),
        OpenedPath::Folder => FileWalk::new(resolved, stop, LIMITS).files(visit),
    }
}

struct FileWalk<'a> {
    resolved: &'a ResolvedPath,
    stop: &'a CancellationToken,
    limits: WalkLimits,
    /// Entries still to be visited, the next one last.
    waiting: Vec<PendingEntry>,
    skips: WalkSkips,
}

impl FileWalk<'_> {
    fn new<'a>(resolved: &'a ResolvedPath, stop: &'a CancellationToken, limits: WalkLimits) -> FileWalk<'a> {
        FileWalk { resolved, stop, limits, waiting: Vec::new(), skips: WalkSkips::default() }
    }

    fn files(mut self, visit: &mut dyn FnMut(&Path) -> ControlFlow<()>) -> Result<WalkSkips, String> {
        let resolved = self.resolved;
        let start =
            resolved.base.open_folder(&resolved.relative).map_err(|error| files::describe_error(resolved, &error))?;
        let above = Arc::new(IgnoreRules::from_parents(&resolved.path));
        self.enter(&start, WalkFolder { relative: PathBuf::new(), ignored: above })?;
        while let Some(PendingEntry { level, name, kind }) = self.waiting.pop() {
            self.check()?;
            let relative = level.relative.join(name);
            match kind {
                EntryKind::File => {
                    if visit(&relative).is_break() {
                        break;
                    }
                }
                EntryKind::Folder => match start.open_folder(&relative) {
                    Ok(folder) => self.enter(&folder, WalkFolder { relative, ignored: Arc::clone(&level.ignored) })?,
                    Err(_) => self.skips.unread += 1,
                },
                EntryKind::Link | EntryKind::Special => (),
            }
        }
        Ok(self.skips)
    }

    fn check(&self) -> Result<(), String> {
        if self.stop.is_cancelled() { Err(STOPPED.to_owned()) } else { Ok(()) }
    }

    /// Pushes the entries of a folder onto the stack.
    fn enter(&mut self, folder: &Dir, mut level: WalkFolder) -> Result<(), String> {
        let whole = join(&self.resolved.path, &level.relative);
        match IgnoreRules::for_folder(folder, &whole, &level.ignored) {
            Ok(Some(ignored)) => level.ignored = Arc::new(ignored),
            Ok(None) => (),
            Err(_too_large) => self.skips.unapplied += 1,
        }
        let Ok(all) = folder.entries() else {
            self.skips.unread += 1;
            return Ok(());
        };
        let room = self.limits.entries.min(self.limits.waiting.saturating_sub(self.waiting.len()));
        let mut entries: Vec<DirEntry> = Vec::new();
        for entry in all {
            self.check()?;
            match entry {
                Ok(entry) if entry.name == ".git" || matches!(entry.kind, EntryKind::Link | EntryKind::Special) => (),
                Ok(entry) if level.ignored.is_ignored(&whole.join(&entry.name), entry.kind == EntryKind::Folder) => (),
                Ok(_) if entries.len() >= room => self.skips.too_many += 1,
                Ok(entry) => entries.push(entry),
                Err(_) => self.skips.unread += 1,
            }
        }
        entries.sort_unstable_by(|one, other| other.name.cmp(&one.name));
        let level = Arc::new(level);
        let wait = |DirEntry { name, kind }| PendingEntry { level: Arc::clone(&level), name, kind };
        self.waiting.extend(entries.into_iter().map(wait));
        Ok(())
    }
}

/// A glob for paths relative to the start of a search.
pub(crate) struct PathPattern {
    matcher: GlobSet,
    /// A pattern without a slash matches names at any depth.
    by_name: bool,
}

impl PathPattern {
    pub(crate) fn parse(text: &str) -> Result<PathPattern, String> {
        if text.len() > MAX_PATTERN {
            return Err(format!("the pattern has {} bytes; at most {MAX_PATTERN} are allowed", text.len()));
        }
        let failed = |error: globset::Error| format!("`{text}` is not a valid path pattern: {error}");
        let glob = GlobBuilder::new(text.trim_start_matches("./")).literal_separator(true).build().map_err(failed)?;
        // `Glob::compile_matcher` would panic if the regular expression is too large.
        let matcher = GlobSetBuilder::new().add(glob).build().map_err(failed)?;
        Ok(PathPattern { matcher, by_name: !text.contains('/') })
    }

    /// `relative` is the path relative to the start of the search, empty for the start itself.
    pub(crate) fn matches(&self, resolved: &ResolvedPath, relative: &Path) -> bool {
        let named = if relative.as_os_str().is_empty() { resolved.path.as_path() } else { relative };
        match (self.by_name, named.file_name()) {
            (true, Some(name)) => self.matcher.is_match(name),
            (true, None) => false,
            (false, _) => self.matcher.is_match(relative),
        }
    }
}

/// Joins two paths, without a trailing slash if the second is empty.
pub(crate) fn join(path: &Path, relative: &Path) -> PathBuf {
    if relative.as_os_str().is_empty() { path.to_owned() } else { path.join(relative) }
}

/// The path to show for a file, in the form that `read` accepts.
pub(crate) fn name(resolved: &ResolvedPath, relative: &Path) -> String {
    match resolved.name.as_str() {
        // The search started at a file.
        name if relative.as_os_str().is_empty() => name.to_owned(),
        "." => relative.display().to_string(),
        name => Path::new(name).join(relative).display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::test_dir::TestDir;
    use crate::tools::WorkingDir;

    #[test]
    fn l4_a_walk_holds_a_bounded_number_of_entries_and_says_what_it_left_out() {
        let test_dir = TestDir::new("walk-bounds");
        for folder in ["a", "b"] {
            fs::create_dir(test_dir.path().join(folder)).unwrap();
            for n in 0..10 {
                fs::write(test_dir.path().join(folder).join(n.to_string()), "").unwrap();
            }
        }
        let resolved = WorkingDir::open(test_dir.path()).unwrap().resolve(".").unwrap();
        #[rustfmt::skip]
        let cases = [
            (WalkLimits { entries: 10, waiting: 100 }, 20, 0),
            (WalkLimits { entries: 4,  waiting: 100 }, 8,  12),
            // `b` is pending while `a` is visited.
            (WalkLimits { entries: 10, waiting: 6 },   11, 9),
        ];
        for (limits, files, too_many) in cases {
            let (mut found, stop) = (0, CancellationToken::new());
            let walked = FileWalk::new(&resolved, &stop, limits).files(&mut |_| {
                found += 1;
                ControlFlow::Continue(())
            });
            assert_eq!((found, walked), (files, Ok(WalkSkips { too_many, ..WalkSkips::default() })), "{limits:?}");
        }
    }
}
