//! The instructions of a project, such as `AGENTS.md`, and whether the person
//! trusts the folder they come from.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::tools::Kept;

/// The most of one file of instructions.
const MOST_INSTRUCTIONS: usize = 32 * 1024;
/// What is read of a file at all.
const MOST_READ: u64 = 16 * 1024 * 1024;

/// What a project has to say to the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectFiles {
    /// The root of the repository, or the folder itself where there is none.
    pub root: PathBuf,
    pub files: Vec<ProjectFile>,
    /// What is there and is not read, a line each, for the person.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    pub path: PathBuf,
    pub text: String,
}

impl ProjectFiles {
    /// From the root of the repository down to the folder: what is nearer comes
    /// later and so has the last word. Without a repository only the folder
    /// counts. A file that leads out of there is none of the project's.
    pub fn find(folder: &Path, names: &[String]) -> ProjectFiles {
        let whole = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let repository = whole.ancestors().position(|folder| folder.join(".git").exists());
        let mut folders: Vec<&Path> = whole.ancestors().take(repository.unwrap_or(0) + 1).collect();
        folders.reverse();
        let root = folders.first().copied().unwrap_or(&whole).to_owned();
        let mut found = ProjectFiles { root, ..ProjectFiles::default() };
        let mut seen: Vec<PathBuf> = Vec::new();
        for path in folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))) {
            // One that is not there is the usual case.
            let Ok(target) = fs::canonicalize(&path) else { continue };
            if seen.contains(&target) {
                continue;
            }
            let text = match target.starts_with(&found.root) {
                true => text_of(&target),
                false => Err(format!("leads out of the project, to {}; it is not sent", target.display())),
            };
            match text {
                Ok(text) if text.trim().is_empty() => (),
                Ok(text) => found.files.push(ProjectFile { path, text: text.trim().to_owned() }),
                Err(why) => found.notes.push(format!("{}: {why}", path.display())),
            }
            seen.push(target);
        }
        found
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// As part of a system prompt.
    pub fn content(&self) -> String {
        let headed = self.files.iter().map(|file| format!("# {}\n\n{}", file.path.display(), file.text));
        headed.collect::<Vec<_>>().join("\n\n")
    }

    /// Their names below the root.
    pub fn names(&self) -> Vec<String> {
        let below = |file: &ProjectFile| file.path.strip_prefix(&self.root).unwrap_or(&file.path).display().to_string();
        self.files.iter().map(below).collect()
    }
}

/// A text file, cut in the middle if it is long.
fn text_of(path: &Path) -> Result<String, String> {
    let fail = |error: io::Error| error.to_string();
    let metadata = fs::metadata(path).map_err(fail)?;
    if !metadata.is_file() {
        return Err("is no plain file".to_owned());
    }
    if metadata.len() > MOST_READ {
        return Err(format!("has {} bytes; at most {MOST_READ}", metadata.len()));
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(fail)?.take(MOST_READ).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.contains(&0) {
        return Err("is a binary file".to_owned());
    }
    let mut kept = Kept::new(MOST_INSTRUCTIONS);
    kept.push(&bytes);
    Ok(kept.text())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::scratch::Scratch;

    fn words(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn texts(found: &ProjectFiles) -> Vec<&str> {
        found.files.iter().map(|file| file.text.as_str()).collect()
    }

    #[test]
    fn l5_instructions_are_read_from_the_repository_down_to_the_folder() {
        let scratch = Scratch::new("instructions");
        let top = fs::canonicalize(scratch.path()).unwrap();
        let (repository, deep) = (top.join("repo"), top.join("repo/a/b"));
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir(repository.join(".git")).unwrap();
        fs::write(top.join("AGENTS.md"), "above the repository").unwrap();
        fs::write(repository.join("AGENTS.md"), "the repository's\n").unwrap();
        fs::write(repository.join("a/AGENTS.md"), " \n").unwrap();
        fs::write(deep.join("AGENTS.md"), "the folder's\n").unwrap();
        fs::write(deep.join("MORE.md"), [0]).unwrap();
        let found = ProjectFiles::find(&deep, &words(&["AGENTS.md", "MORE.md"]));
        let headed = |path: &Path, text| format!("# {}\n\n{text}", path.join("AGENTS.md").display());
        let expected = format!("{}\n\n{}", headed(&repository, "the repository's"), headed(&deep, "the folder's"));
        assert_eq!(found.content(), expected);
        assert_eq!((found.root.clone(), found.names()), (repository.clone(), words(&["AGENTS.md", "a/b/AGENTS.md"])));
        assert_eq!(found.notes, [format!("{}: is a binary file", deep.join("MORE.md").display())]);

        fs::remove_dir(repository.join(".git")).unwrap();
        let alone = ProjectFiles::find(&deep, &words(&["AGENTS.md"]));
        assert_eq!((texts(&alone), &alone.root), (vec!["the folder's"], &deep));
        assert!(ProjectFiles::find(&top.join("repo/a"), &words(&["AGENTS.md"])).is_empty());
    }

    #[test]
    fn l5_instructions_that_lead_out_of_the_project_are_not_read() {
        let scratch = Scratch::new("leads-out");
        let top = fs::canonicalize(scratch.path()).unwrap();
        fs::create_dir_all(top.join("repo/.git")).unwrap();
        fs::write(top.join("secret"), "hunter2").unwrap();
        symlink(top.join("secret"), top.join("repo/AGENTS.md")).unwrap();
        fs::write(top.join("repo/real.md"), "inside").unwrap();
        symlink("real.md", top.join("repo/LINK.md")).unwrap();
        let names = words(&["AGENTS.md", "../secret", "LINK.md"]);
        let found = ProjectFiles::find(&top.join("repo"), &names);
        assert_eq!(texts(&found), ["inside"]);
        assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
    }

    #[test]
    fn l5_long_instructions_are_cut_and_say_so() {
        let scratch = Scratch::new("long-instructions");
        fs::write(scratch.path().join("AGENTS.md"), "x".repeat(MOST_INSTRUCTIONS + 10)).unwrap();
        let found = ProjectFiles::find(scratch.path(), &words(&["AGENTS.md"])).content();
        assert!(found.contains("[… 10 bytes left out …]"));
        assert!(found.len() < MOST_INSTRUCTIONS + 500);
    }
}
