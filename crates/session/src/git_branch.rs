//! The branch that is checked out in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use aside_engine::project_files::project_root;

/// A file that names a branch is short.
const MAX_HEAD: u64 = 4096;
/// How much of a commit's id is shown.
const SHORT_ID: usize = 8;

/// The branch of the repository around `folder`, or the first letters of the commit's id; none outside of a
/// repository.
pub(crate) fn branch(folder: &Path) -> Option<String> {
    let git = git_folder(project_root(folder))?;
    let head = read_short(&git.join("HEAD"))?;
    let head = head.trim();
    match head.strip_prefix("ref: ") {
        Some(name) => Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
        None => head.get(..SHORT_ID).map(str::to_owned),
    }
}

/// In a worktree or a submodule, `.git` is a file that names the folder.
fn git_folder(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = read_short(&git)?;
    Some(root.join(text.trim().strip_prefix("gitdir: ")?))
}

fn read_short(path: &Path) -> Option<String> {
    let is_short = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MAX_HEAD);
    is_short.then(|| fs::read_to_string(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t22_the_branch_of_a_folder_is_known() {
        let root = std::env::temp_dir().join(format!("aside-test-branch-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("plain/.git/HEAD", "ref: refs/heads/feature/a\n");
        write("plain/src/deep/a.rs", "");
        write("detached/.git/HEAD", "0123456789abcdef\n");
        write("tree/.git", "gitdir: ../plain/.git/worktrees/tree\n");
        write("plain/.git/worktrees/tree/HEAD", "ref: refs/heads/side\n");
        write("broken/.git/HEAD", "");
        #[rustfmt::skip]
        let cases = [
            ("plain",          Some("feature/a")),
            ("plain/src/deep", Some("feature/a")),
            ("detached",       Some("01234567")),
            ("tree",           Some("side")),
            ("broken",         None),
        ];
        for (folder, expected) in cases {
            assert_eq!(branch(&root.join(folder)).as_deref(), expected, "{folder}");
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
