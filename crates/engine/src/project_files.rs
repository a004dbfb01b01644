//! The instruction files of a project, such as `AGENTS.md`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::tools::BoundedOutput;

/// The maximum length of one instruction file.
const MAX_INSTRUCTIONS: usize = 32 * 1024;
/// Larger files are not read at all.
const MAX_READ: u64 = 16 * 1024 * 1024;

/// The instruction files that apply to a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectFiles {
    /// The root of the repository, or the folder itself without a repository.
    pub root: PathBuf,
    pub files: Vec<ProjectFile>,
    /// Files that exist but are not used, one line each, for the user.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    pub path: PathBuf,
    pub text: String,
}

impl ProjectFiles {
    /// Finds instruction files from the repository's root down to the folder. Nearer files come later and so
    /// take precedence. Without a repository, only the folder itself is searched. Files outside the project,
    /// reached by a link or `..`, are skipped.
    pub fn find(folder: &Path, names: &[String]) -> ProjectFiles {
        let whole = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let mut found = ProjectFiles { root: project_root(&whole).to_owned(), ..ProjectFiles::default() };
        let mut seen: Vec<PathBuf> = Vec::new();
        for path in ProjectFiles::possible_paths(&whole, names) {
            // Usually a folder has none.
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

    /// Every path that `find` looks at, in its order, whether there is a file or not.
    pub fn possible_paths(folder: &Path, names: &[String]) -> Vec<PathBuf> {
        let whole = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let root = project_root(&whole);
        let mut folders: Vec<&Path> = whole.ancestors().take_while(|folder| folder.starts_with(root)).collect();
        folders.reverse();
        folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The text to put into the system prompt.
    pub fn content(&self) -> String {
        let headed = self.files.iter().map(|file| format!("# {}\n\n{}", file.path.display(), file.text));
        headed.collect::<Vec<_>>().join("\n\n")
    }

    /// Their paths relative to the root.
    pub fn names(&self) -> Vec<String> {
        let below = |file: &ProjectFile| file.path.strip_prefix(&self.root).unwrap_or(&file.path).display().to_string();
        self.files.iter().map(below).collect()
    }
}

/// The root of the repository that a folder lies in; the folder itself without one.
pub fn project_root(folder: &Path) -> &Path {
    folder.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(folder)
}

/// Reads a text file, cut in the middle if it is long.
fn text_of(path: &Path) -> Result<String, String> {
    let fail = |error: io::Error| error.to_string();
    let metadata = fs::metadata(path).map_err(fail)?;
    if !metadata.is_file() {
        return Err("is not a regular file".to_owned());
    }
    if metadata.len() > MAX_READ {
        return Err(format!("has {} bytes; at most {MAX_READ}", metadata.len()));
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(fail)?.take(MAX_READ).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.contains(&0) {
        return Err("is a binary file".to_owned());
    }
    let mut bounded = BoundedOutput::new(MAX_INSTRUCTIONS);
    bounded.push(&bytes);
    Ok(bounded.text())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::test_dir::TestDir;

    fn words(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn texts(found: &ProjectFiles) -> Vec<&str> {
        found.files.iter().map(|file| file.text.as_str()).collect()
    }

    #[test]
    fn l5_instructions_are_read_from_the_repository_down_to_the_folder() {
        let test_dir = TestDir::new("instructions");
        let top = fs::canonicalize(test_dir.path()).unwrap();
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
        let test_dir = TestDir::new("leads-out");
        let top = fs::canonicalize(test_dir.path()).unwrap();
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
        let test_dir = TestDir::new("long-instructions");
        fs::write(test_dir.path().join("AGENTS.md"), "x".repeat(MAX_INSTRUCTIONS + 10)).unwrap();
        let found = ProjectFiles::find(test_dir.path(), &words(&["AGENTS.md"])).content();
        assert!(found.contains("[… 10 bytes left out …]"));
        assert!(found.len() < MAX_INSTRUCTIONS + 500);
    }
}
