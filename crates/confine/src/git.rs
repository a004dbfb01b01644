//! Finds a folder's git folders and the paths in them that make git run commands.

use std::fs;
use std::path::{Path, PathBuf};

/// Larger files are ignored: a path that long can only be an attack.
const MAX_BYTES: u64 = 64 * 1024;
/// The most submodules or worktrees to look at.
const MAX_LISTED: usize = 1000;

/// The folders that `git commit` writes to when it runs in `folder`, a path without
/// links: the repository's own and, in a linked worktree or a submodule, the ones it
/// points to.
///
/// A `.git` file belongs to the project, so it may be hostile and point to `~/.ssh`. It
/// is trusted only if the folder it names points back to it.
pub fn folders(folder: &Path) -> Vec<PathBuf> {
    let Some(dot_git) = folder.ancestors().map(|above| above.join(".git")).find(|path| path.exists()) else {
        return Vec::new();
    };
    let Ok(metadata) = fs::symlink_metadata(&dot_git) else { return Vec::new() };
    if metadata.is_dir() {
        return if is_repository(&dot_git) { vec![dot_git] } else { Vec::new() };
    }
    if !metadata.is_file() {
        return Vec::new();
    }
    linked_git_folders(&dot_git).unwrap_or_default()
}

fn linked_git_folders(dot_git: &Path) -> Option<Vec<PathBuf>> {
    let top = dot_git.parent()?;
    let text = read_line(dot_git)?;
    let named = text.strip_prefix("gitdir:")?.trim();
    let own = fs::canonicalize(top.join(named)).ok()?;
    match read_line(&own.join("commondir")) {
        Some(common) => {
            let back = fs::canonicalize(read_line(&own.join("gitdir"))?).ok()?;
            let common = fs::canonicalize(own.join(common)).ok()?;
            let is_ours = back == dot_git && own.starts_with(&common) && is_repository(&common);
            is_ours.then(|| vec![own, common])
        }
        None => {
            let back = fs::canonicalize(own.join(core_worktree(&own.join("config"))?)).ok()?;
            (back == top && is_repository(&own)).then(|| vec![own])
        }
    }
}

fn is_repository(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

/// `core.worktree`, which git writes for submodules.
fn core_worktree(config: &Path) -> Option<String> {
    let text = read_small_file(config)?;
    let value = |line: &str| Some(line.trim().strip_prefix("worktree")?.trim().strip_prefix('=')?.trim().to_owned());
    text.lines().find_map(value)
}

fn read_line(path: &Path) -> Option<String> {
    read_small_file(path).map(|text| text.trim_end_matches('\n').to_owned())
}

fn read_small_file(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    (metadata.is_file() && metadata.len() <= MAX_BYTES).then(|| fs::read_to_string(path).ok()).flatten()
}

/// Paths in a git folder that can make git run commands: hooks, and configuration that
/// names commands.
pub(crate) fn protected_paths(git: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        ["hooks", "config", "config.worktree", "info", "commondir"].iter().map(|name| git.join(name)).collect();
    paths.extend(subfolders(&git.join("worktrees")).into_iter().map(|worktree| worktree.join("config.worktree")));
    add_submodule_paths(&git.join("modules"), &mut paths);
    paths
}

/// A submodule's name may contain slashes, so submodules are at any depth.
fn add_submodule_paths(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in subfolders(folder) {
        if paths.len() >= MAX_LISTED {
            return;
        }
        if entry.join("HEAD").is_file() {
            paths.extend(["hooks", "config", "commondir"].map(|name| entry.join(name)));
            add_submodule_paths(&entry.join("modules"), paths);
        } else {
            add_submodule_paths(&entry, paths);
        }
    }
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let folders = entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).take(MAX_LISTED).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("aside-git-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).unwrap();
        fs::canonicalize(path).unwrap()
    }

    fn git(folder: &Path, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").args(arguments).current_dir(folder);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn k1_the_git_folders_of_repositories_worktrees_and_submodules_are_found() {
        let scratch = scratch("kinds");
        let main = scratch.join("main");
        fs::create_dir_all(main.join("src/deep")).unwrap();
        git(&main, &["init", "-q"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "x"]);
        git(&main, &["worktree", "add", "-q", "../tree"]);
        let other = scratch.join("other");
        fs::create_dir_all(&other).unwrap();
        git(&other, &["init", "-q"]);
        git(&other, &["submodule", "-q", "add", "../main", "sub/module"]);
        let dot = main.join(".git");
        let module = other.join(".git/modules/sub/module");
        assert_eq!(folders(&main), std::slice::from_ref(&dot));
        assert_eq!(folders(&main.join("src/deep")), std::slice::from_ref(&dot));
        assert_eq!(folders(&scratch.join("tree")), [dot.join("worktrees/tree"), dot]);
        assert_eq!(folders(&other.join("sub/module")), std::slice::from_ref(&module));
        let protected = protected_paths(&other.join(".git"));
        assert!(protected.contains(&module.join("hooks")) && protected.contains(&module.join("config")));
        fs::remove_dir_all(scratch).unwrap();
    }

    #[test]
    fn k1_a_git_file_that_points_elsewhere_is_not_trusted() {
        let scratch = scratch("hostile");
        let (project, secret, victim) = (scratch.join("project"), scratch.join("ssh"), scratch.join("victim"));
        for folder in [&project, &secret, &victim] {
            fs::create_dir_all(folder).unwrap();
        }
        git(&victim, &["init", "-q"]);
        for target in [&secret, &victim.join(".git"), &PathBuf::from("/")] {
            fs::write(project.join(".git"), format!("gitdir: {}\n", target.display())).unwrap();
            assert_eq!(folders(&project), Vec::<PathBuf>::new(), "{}", target.display());
        }
        fs::remove_dir_all(scratch).unwrap();
    }
}
