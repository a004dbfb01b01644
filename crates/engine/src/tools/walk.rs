//! The files below a folder, without what the project ignores.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, Walk, WalkBuilder};

use super::workplace::Place;

/// Links are not followed, so a walk stays where it began. What is hidden is
/// walked, since much of a project is; only the repository itself is not.
pub(crate) fn below(place: &Place) -> Walk {
    WalkBuilder::new(&place.path)
        .hidden(false)
        .follow_links(false)
        // A `.gitignore` says what is generated even before there is a repository.
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_name(Ord::cmp)
        .build()
}

pub(crate) fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

/// A pattern of paths below the folder of a search.
pub(crate) struct Pattern {
    matcher: GlobMatcher,
    /// Without a slash it is about the name, at any depth.
    by_name: bool,
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Pattern, String> {
        let glob = GlobBuilder::new(text.trim_start_matches("./")).literal_separator(true).build();
        let glob = glob.map_err(|error| format!("`{text}` is no pattern of paths: {error}"))?;
        Ok(Pattern { matcher: glob.compile_matcher(), by_name: !text.contains('/') })
    }

    pub(crate) fn matches(&self, base: &Path, path: &Path) -> bool {
        match (self.by_name, path.file_name()) {
            (true, Some(name)) => self.matcher.is_match(name),
            (true, None) => false,
            (false, _) => self.matcher.is_match(path.strip_prefix(base).unwrap_or(path)),
        }
    }
}

/// How a found file is called: as `read` takes it.
pub(crate) fn name(place: &Place, path: &Path) -> String {
    let below = path.strip_prefix(&place.path).unwrap_or(path);
    match place.name.as_str() {
        // A search in one file has nothing below it.
        name if below.as_os_str().is_empty() => name.to_owned(),
        "." => below.display().to_string(),
        name => Path::new(name).join(below).display().to_string(),
    }
}
