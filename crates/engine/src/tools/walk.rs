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

/// The most entries of one folder, and the most that wait to be looked at.
const MOST_ENTRIES: usize = 200_000;
const MOST_WAITING: usize = 500_000;
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
    let mut passed = Passed::default();
    match place.from.look(&place.below).map_err(|error| files::about(place, &error))? {
        Opened::File(..) => {
            let _only_one = visit(Path::new(""));
            return Ok(passed);
        }
        Opened::Special => return Err(format!("`{}` is no plain file", place.name)),
        Opened::Folder => (),
    }
    let start = place.from.folder(&place.below).map_err(|error| files::about(place, &error))?;
    let mut waiting = Vec::new();
    let above = Arc::new(Ignored::above(&place.path));
    let top = Level { below: PathBuf::new(), ignored: above };
    enter(place, &start, top, &mut waiting, &mut passed, stop)?;
    while let Some(Waiting { level, name, kind }) = waiting.pop() {
        if stop.is_cancelled() {
            return Err(STOPPED.to_owned());
        }
        let below = level.below.join(name);
        match kind {
            Kind::File => {
                if visit(&below).is_break() {
                    break;
                }
            }
            Kind::Folder => match start.folder(&below) {
                Ok(folder) => {
                    let next = Level { below, ignored: Arc::clone(&level.ignored) };
                    enter(place, &folder, next, &mut waiting, &mut passed, stop)?;
                }
                Err(_) => passed.unread += 1,
            },
            Kind::Link | Kind::Special => (),
        }
    }
    Ok(passed)
}

/// Puts what is in a folder on the stack, the first name on top.
fn enter(
    place: &Place,
    folder: &Dir,
    mut level: Level,
    waiting: &mut Vec<Waiting>,
    passed: &mut Passed,
    stop: &CancellationToken,
) -> Result<(), String> {
    let whole = place.path.join(&level.below);
    match Ignored::of(folder, &whole, &level.ignored) {
        Ok(Some(ignored)) => level.ignored = Arc::new(ignored),
        Ok(None) => (),
        Err(_too_large) => passed.unapplied += 1,
    }
    let mut entries: Vec<Entry> = Vec::new();
    let Ok(all) = folder.entries() else {
        passed.unread += 1;
        return Ok(());
    };
    for entry in all {
        if stop.is_cancelled() {
            return Err(STOPPED.to_owned());
        }
        match entry {
            Ok(entry) if entry.name == ".git" || matches!(entry.kind, Kind::Link | Kind::Special) => (),
            Ok(entry) if level.ignored.covers(&whole.join(&entry.name), entry.kind == Kind::Folder) => (),
            Ok(_) if entries.len() >= MOST_ENTRIES || waiting.len() + entries.len() >= MOST_WAITING => {
                passed.too_many += 1;
            }
            Ok(entry) => entries.push(entry),
            Err(_) => passed.unread += 1,
        }
    }
    entries.sort_unstable_by(|one, other| other.name.cmp(&one.name));
    let level = Arc::new(level);
    let wait = |Entry { name, kind }| Waiting { level: Arc::clone(&level), name, kind };
    waiting.extend(entries.into_iter().map(wait));
    Ok(())
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
