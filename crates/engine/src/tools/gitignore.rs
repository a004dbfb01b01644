//! The ignore rules of a project, from `.gitignore` and `.ignore`.
//!
//! These files are untrusted: pipes, links and files that are too large are not read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::dir::{Dir, OpenedPath};

/// Far more than any project needs; each line is compiled.
const MAX_BYTES: u64 = 64 * 1024;
const MAX_LINE: usize = 1000;

/// The rules of one folder, which take precedence over those of its parents.
pub(crate) struct IgnoreRules {
    own: Gitignore,
    parent: Option<Arc<IgnoreRules>>,
}

/// An ignore file or one of its patterns is too large.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl IgnoreRules {
    /// The rules that apply before the walk starts: the user's global list, the repository's, and those of
    /// the parent folders within the repository.
    pub(crate) fn from_parents(start: &Path) -> IgnoreRules {
        let mut ignored = IgnoreRules { own: Gitignore::global().0, parent: None };
        let Some(depth) = start.ancestors().position(|folder| folder.join(".git").exists()) else { return ignored };
        let mut folders: Vec<&Path> = start.ancestors().take(depth + 1).collect();
        folders.reverse();
        // The rules of the start folder are read when the walk enters it.
        folders.pop();
        let repository = start.ancestors().nth(depth).unwrap_or(start);
        let exclude = Dir::open(&repository.join(".git/info")).ok();
        if let Some(Ok(Some(rules))) = exclude.map(|folder| rules(&folder, repository, &["exclude"])) {
            ignored = IgnoreRules { own: rules, parent: Some(Arc::new(ignored)) };
        }
        for folder in folders {
            let Ok(opened) = Dir::open(folder) else { continue };
            // A file that cannot be applied hides nothing: it is better to show too much here.
            if let Ok(Some(rules)) = rules(&opened, folder, &FILES) {
                ignored = IgnoreRules { own: rules, parent: Some(Arc::new(ignored)) };
            }
        }
        ignored
    }

    /// Adds the rules of this folder, if it has any.
    pub(crate) fn for_folder(
        folder: &Dir,
        path: &Path,
        parent: &Arc<IgnoreRules>,
    ) -> Result<Option<IgnoreRules>, TooLarge> {
        let rules = rules(folder, path, &FILES)?;
        Ok(rules.map(|own| IgnoreRules { own, parent: Some(Arc::clone(parent)) }))
    }

    pub(crate) fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        let mut level = Some(self);
        while let Some(IgnoreRules { own, parent }) = level {
            match own.matched(path, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => level = parent.as_deref(),
            }
        }
        false
    }
}

/// Later files take precedence.
const FILES: [&str; 2] = [".gitignore", ".ignore"];

fn rules(folder: &Dir, path: &Path, names: &[&str]) -> Result<Option<Gitignore>, TooLarge> {
    let mut builder = None;
    for name in names {
        let Ok(OpenedPath::File(file, _)) = folder.open_at(Path::new(name)) else { continue };
        let text = text_of(file)?;
        let builder = builder.get_or_insert_with(|| GitignoreBuilder::new(path));
        for line in text.lines() {
            if line.len() > MAX_LINE {
                return Err(TooLarge);
            }
            // An invalid pattern hides nothing.
            let _added: Result<_, ignore::Error> = builder.add_line(None, line).map(|_| ());
        }
    }
    builder.map(|builder| builder.build().map_err(|_| TooLarge)).transpose()
}

fn text_of(file: File) -> Result<String, TooLarge> {
    let mut bytes = Vec::new();
    let read: io::Result<usize> = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    if read.is_err() || bytes.len() as u64 > MAX_BYTES {
        return Err(TooLarge);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::test_dir::TestDir;

    #[test]
    fn l2_nearer_rules_take_precedence_and_huge_files_are_not_applied() {
        let test_dir = TestDir::new("ignored");
        let root = test_dir.path();
        fs::create_dir_all(root.join(".git/info")).unwrap();
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        fs::write(root.join(".git/info/exclude"), "*.tmp\n").unwrap();
        fs::write(root.join(".gitignore"), "*.log\nbuild/\n").unwrap();
        fs::write(root.join("sub/.gitignore"), "!keep.log\n").unwrap();
        let parent = Arc::new(IgnoreRules::from_parents(&root.join("sub")));
        let sub = Dir::open(&root.join("sub")).unwrap();
        let ignored = IgnoreRules::for_folder(&sub, &root.join("sub"), &parent).unwrap().unwrap();
        #[rustfmt::skip]
        let cases = [
            ("sub/a.log", false, true), ("sub/keep.log", false, false), ("sub/a.tmp", false, true),
            ("sub/build", true, true), ("sub/build", false, false), ("sub/a.rs", false, false),
        ];
        for (path, is_folder, expected) in cases {
            assert_eq!(ignored.is_ignored(&root.join(path), is_folder), expected, "{path}");
        }
        let of = |folder: &Path| {
            IgnoreRules::for_folder(&Dir::open(folder).unwrap(), folder, &parent).map(|found| found.is_some())
        };
        let deep = root.join("sub/deep");
        assert_eq!(of(&deep), Ok(false));
        for huge in ["x\n".repeat(100_000), "*".repeat(60_000)] {
            fs::write(deep.join(".gitignore"), huge).unwrap();
            assert_eq!(of(&deep), Err(TooLarge));
        }
        fs::remove_file(deep.join(".gitignore")).unwrap();
        assert!(Command::new("mkfifo").arg(deep.join(".gitignore")).status().unwrap().success());
        assert_eq!(of(&deep), Ok(false), "a pipe is not waited for");
    }
}
