//! The files below a folder, without what the project ignores.
//!
//! Every folder is opened from the one where the walk began, never through a
//! link, so a walk stays where it began whatever is renamed meanwhile.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use tokio_util::sync::CancellationToken;

use super::blocking::STOPPED;
use super::files;
use super::ignored::Ignored;
use super::workplace::Place;
use crate::dir::{Dir, Entry, Kind, Opened};

/// How much of a tree is held in memory at a time.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Entries of one folder.
    entries: usize,
    /// Entries that wait to be looked at.
    waiting: usize,
}

const LIMITS: Limits = Limits { entries: 200_000, waiting: 500_000 };
/// The longest pattern; each star of it costs memory and time.
const MOST_PATTERN: usize = 1000;

/// What a walk passed over.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Folders that could not be read.
    pub(crate) unread: usize,
    /// Entries beyond what fits.
    pub(crate) too_many: usize,
    /// Ignore files that are too large to apply.
    pub(crate) unapplied: usize,
}

impl Passed {
    /// A line for each, for the model.
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

/// A folder on the way, shared by what is in it.
struct Level {
    /// From where the walk began.
    below: PathBuf,
    ignored: Arc<Ignored>,
}

struct Waiting {
    level: Arc<Level>,
    name: OsString,
    kind: Kind,
}

/// Calls `visit` with each plain file, in the order of names: by its path below
/// the place where the walk began. A walk of one file has an empty path. Links
/// are not followed. What is hidden is walked, since much of a project is; only
/// the repository itself is not.
pub(crate) fn files(
    place: &Place,
    stop: &CancellationToken,
    visit: &mut dyn FnMut(&Path) -> ControlFlow<()>,
) -> Result<Passed, String> {
    match place.from.look(&place.below).map_err(|error| files::about(place, &error))? {
        Opened::File(..) => {
            let _only_one = visit(Path::new(""));
            Ok(Passed::default())
        }
        Opened::Special => Err(format!("`{}` is no plain file", place.name)),
        Opened::Folder => Walk::new(place, stop, LIMITS).files(visit),
    }
}

struct Walk<'a> {
    place: &'a Place,
    stop: &'a CancellationToken,
    limits: Limits,
    /// What is still to be looked at, the next one last.
    waiting: Vec<Waiting>,
    passed: Passed,
}

impl Walk<'_> {
    fn new<'a>(place: &'a Place, stop: &'a CancellationToken, limits: Limits) -> Walk<'a> {
        Walk { place, stop, limits, waiting: Vec::new(), passed: Passed::default() }
    }

    fn files(mut self, visit: &mut dyn FnMut(&Path) -> ControlFlow<()>) -> Result<Passed, String> {
        let place = self.place;
        let start = place.from.folder(&place.below).map_err(|error| files::about(place, &error))?;
        let above = Arc::new(Ignored::above(&place.path));
        self.enter(&start, Level { below: PathBuf::new(), ignored: above })?;
        while let Some(Waiting { level, name, kind }) = self.waiting.pop() {
            self.check()?;
            let below = level.below.join(name);
            match kind {
                Kind::File => {
                    if visit(&below).is_break() {
                        break;
                    }
                }
                Kind::Folder => match start.folder(&below) {
                    Ok(folder) => self.enter(&folder, Level { below, ignored: Arc::clone(&level.ignored) })?,
                    Err(_) => self.passed.unread += 1,
                },
                Kind::Link | Kind::Special => (),
            }
        }
        Ok(self.passed)
    }

    fn check(&self) -> Result<(), String> {
        if self.stop.is_cancelled() { Err(STOPPED.to_owned()) } else { Ok(()) }
    }

    /// Puts what is in a folder on the stack.
    fn enter(&mut self, folder: &Dir, mut level: Level) -> Result<(), String> {
        let whole = join(&self.place.path, &level.below);
        match Ignored::of(folder, &whole, &level.ignored) {
            Ok(Some(ignored)) => level.ignored = Arc::new(ignored),
            Ok(None) => (),
            Err(_too_large) => self.passed.unapplied += 1,
        }
        let Ok(all) = folder.entries() else {
            self.passed.unread += 1;
            return Ok(());
        };
        let room = self.limits.entries.min(self.limits.waiting.saturating_sub(self.waiting.len()));
        let mut entries: Vec<Entry> = Vec::new();
        for entry in all {
            self.check()?;
            match entry {
                Ok(entry) if entry.name == ".git" || matches!(entry.kind, Kind::Link | Kind::Special) => (),
                Ok(entry) if level.ignored.covers(&whole.join(&entry.name), entry.kind == Kind::Folder) => (),
                Ok(_) if entries.len() >= room => self.passed.too_many += 1,
                Ok(entry) => entries.push(entry),
                Err(_) => self.passed.unread += 1,
            }
        }
        entries.sort_unstable_by(|one, other| other.name.cmp(&one.name));
        let level = Arc::new(level);
        let wait = |Entry { name, kind }| Waiting { level: Arc::clone(&level), name, kind };
        self.waiting.extend(entries.into_iter().map(wait));
        Ok(())
    }
}

/// A pattern of paths below the folder of a search.
pub(crate) struct Pattern {
    matcher: GlobSet,
    /// Without a slash it is about the name, at any depth.
    by_name: bool,
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Pattern, String> {
        if text.len() > MOST_PATTERN {
            return Err(format!("the pattern has {} bytes; at most {MOST_PATTERN} are possible", text.len()));
        }
        let failed = |error: globset::Error| format!("`{text}` is no pattern of paths: {error}");
        let glob = GlobBuilder::new(text.trim_start_matches("./")).literal_separator(true).build().map_err(failed)?;
        // One glob alone would panic where its regular expression is too large.
        let matcher = GlobSetBuilder::new().add(glob).build().map_err(failed)?;
        Ok(Pattern { matcher, by_name: !text.contains('/') })
    }

    /// `below` is the path below the folder of the search, empty for itself.
    pub(crate) fn matches(&self, place: &Place, below: &Path) -> bool {
        let named = if below.as_os_str().is_empty() { place.path.as_path() } else { below };
        match (self.by_name, named.file_name()) {
            (true, Some(name)) => self.matcher.is_match(name),
            (true, None) => false,
            (false, _) => self.matcher.is_match(below),
        }
    }
}

/// A path below another; the other itself if there is nothing below.
pub(crate) fn join(path: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { path.to_owned() } else { path.join(below) }
}

/// How a found file is called: as `read` takes it.
pub(crate) fn name(place: &Place, below: &Path) -> String {
    match place.name.as_str() {
        // A search in one file has nothing below it.
        name if below.as_os_str().is_empty() => name.to_owned(),
        "." => below.display().to_string(),
        name => Path::new(name).join(below).display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::scratch::Scratch;
    use crate::tools::Workplace;

    #[test]
    fn l4_a_walk_holds_a_bounded_number_of_entries_and_says_what_it_left_out() {
        let scratch = Scratch::new("walk-bounds");
        for folder in ["a", "b"] {
            fs::create_dir(scratch.path().join(folder)).unwrap();
            for n in 0..10 {
                fs::write(scratch.path().join(folder).join(n.to_string()), "").unwrap();
            }
        }
        let place = Workplace::open(scratch.path()).unwrap().place(".").unwrap();
        #[rustfmt::skip]
        let cases = [
            (Limits { entries: 10, waiting: 100 }, 20, 0),
            (Limits { entries: 4,  waiting: 100 }, 8,  12),
            // While `a` is looked at, `b` waits.
            (Limits { entries: 10, waiting: 6 },   11, 9),
        ];
        for (limits, files, too_many) in cases {
            let (mut found, stop) = (0, CancellationToken::new());
            let walked = Walk::new(&place, &stop, limits).files(&mut |_| {
                found += 1;
                ControlFlow::Continue(())
            });
            assert_eq!((found, walked), (files, Ok(Passed { too_many, ..Passed::default() })), "{limits:?}");
        }
    }
}
