//! What a project ignores: `.gitignore` and `.ignore`, read in bounds.
//!
//! These files belong to whoever made the folder. They are read like any other
//! file of the folder: a pipe, a link or a huge one is not.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::dir::{Dir, Opened};

/// Far more than any project has; each line is compiled.
const MOST_BYTES: u64 = 64 * 1024;
const MOST_LINE: usize = 1000;

/// The rules of one folder, before those of the folders above it.
pub(crate) struct Ignored {
    here: Gitignore,
    above: Option<Arc<Ignored>>,
}

/// An ignore file that is too large, or whose patterns are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl Ignored {
    /// What holds before the first folder is entered: the user's own list, the
    /// repository's, and the files of the folders above within the repository.
    pub(crate) fn above(start: &Path) -> Ignored {
        let mut ignored = Ignored { here: Gitignore::global().0, above: None };
        let Some(depth) = start.ancestors().position(|folder| folder.join(".git").exists()) else { return ignored };
        let mut folders: Vec<&Path> = start.ancestors().take(depth + 1).collect();
        folders.reverse();
        // The start is read when it is entered.
        folders.pop();
        let repository = start.ancestors().nth(depth).unwrap_or(start);
        let exclude = Dir::open(&repository.join(".git/info")).ok();
        if let Some(Ok(Some(rules))) = exclude.map(|folder| rules(&folder, repository, &["exclude"])) {
            ignored = Ignored { here: rules, above: Some(Arc::new(ignored)) };
        }
        for folder in folders {
            let Ok(opened) = Dir::open(folder) else { continue };
            // One that cannot be applied hides nothing; that errs on the open side.
            if let Ok(Some(rules)) = rules(&opened, folder, &FILES) {
                ignored = Ignored { here: rules, above: Some(Arc::new(ignored)) };
            }
        }
        ignored
    }

    /// With what the files in this folder say, if there are any.
    pub(crate) fn of(folder: &Dir, path: &Path, above: &Arc<Ignored>) -> Result<Option<Ignored>, TooLarge> {
        let rules = rules(folder, path, &FILES)?;
        Ok(rules.map(|here| Ignored { here, above: Some(Arc::clone(above)) }))
    }

    pub(crate) fn covers(&self, path: &Path, is_folder: bool) -> bool {
        let mut level = Some(self);
        while let Some(Ignored { here, above }) = level {
            match here.matched(path, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => level = above.as_deref(),
            }
        }
        false
    }
}

/// The later has the last word.
const FILES: [&str; 2] = [".gitignore", ".ignore"];

fn rules(folder: &Dir, path: &Path, names: &[&str]) -> Result<Option<Gitignore>, TooLarge> {
    let mut builder = None;
    for name in names {
        let Ok(Opened::File(file, _)) = folder.look(Path::new(name)) else { continue };
        let text = text_of(file)?;
        let builder = builder.get_or_insert_with(|| GitignoreBuilder::new(path));
        for line in text.lines() {
            if line.len() > MOST_LINE {
                return Err(TooLarge);
            }
            // A line that is no pattern hides nothing.
            let _added: Result<_, ignore::Error> = builder.add_line(None, line).map(|_| ());
        }
    }
    builder.map(|builder| builder.build().map_err(|_| TooLarge)).transpose()
}

fn text_of(file: File) -> Result<String, TooLarge> {
    let mut bytes = Vec::new();
    let read: io::Result<usize> = file.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    if read.is_err() || bytes.len() as u64 > MOST_BYTES {
        return Err(TooLarge);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn l2_nearer_rules_have_the_last_word_and_huge_ones_are_not_applied() {
        let scratch = Scratch::new("ignored");
        let root = scratch.path();
        fs::create_dir_all(root.join(".git/info")).unwrap();
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        fs::write(root.join(".git/info/exclude"), "*.tmp\n").unwrap();
        fs::write(root.join(".gitignore"), "*.log\nbuild/\n").unwrap();
        fs::write(root.join("sub/.gitignore"), "!keep.log\n").unwrap();
        let above = Arc::new(Ignored::above(&root.join("sub")));
        let sub = Dir::open(&root.join("sub")).unwrap();
        let ignored = Ignored::of(&sub, &root.join("sub"), &above).unwrap().unwrap();
        #[rustfmt::skip]
        let cases = [
            ("sub/a.log", false, true), ("sub/keep.log", false, false), ("sub/a.tmp", false, true),
            ("sub/build", true, true), ("sub/build", false, false), ("sub/a.rs", false, false),
        ];
        for (path, is_folder, expected) in cases {
            assert_eq!(ignored.covers(&root.join(path), is_folder), expected, "{path}");
        }
        let of = |folder: &Path| Ignored::of(&Dir::open(folder).unwrap(), folder, &above).map(|found| found.is_some());
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
