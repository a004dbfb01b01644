//! Paths in the working directory that make other programs run commands.

use std::path::{Path, PathBuf};

use crate::git;

/// Relative to the working directory and to every folder opened to commands. Start-up
/// files matter if that folder is a home folder.
const NAMES: [&str; 35] = [
    ".aside",
    "AGENTS.md",
    ".envrc",
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".vscode/launch.json",
    ".vscode/extensions.json",
    ".devcontainer",
    ".idea/workspace.xml",
    ".idea/runConfigurations",
    ".idea/externalTools",
    ".fleet/run.json",
    ".zed/tasks.json",
    ".zed/settings.json",
    ".helix",
    ".exrc",
    ".vimrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".profile",
    ".login",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".cshrc",
    ".tcshrc",
    ".kshrc",
    ".gitconfig",
    ".config/fish",
];

/// The protected paths of these folders and git folders, whether they exist or not.
pub fn all_in(folders: &[PathBuf], git_folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for folder in folders {
        all.extend(NAMES.iter().map(|name| folder.join(name)));
        let git = folder.join(".git");
        // `.git` may be a file that points elsewhere, or may not exist yet.
        if !git.is_dir() {
            all.push(git.clone());
        }
        all.extend(git::protected_paths(&git));
    }
    all.extend(git_folders.iter().flat_map(|folder| git::protected_paths(folder)));
    all.sort();
    all.dedup();
    all
}

/// The deepest root that contains the path, and the path relative to it.
pub(crate) fn containing_root<'a>(path: &'a Path, roots: &'a [PathBuf]) -> Option<(&'a Path, &'a Path)> {
    let holds = roots.iter().filter_map(|root| Some((root.as_path(), path.strip_prefix(root).ok()?)));
    holds.max_by_key(|(root, _)| root.as_os_str().len()).filter(|(_, name)| !name.as_os_str().is_empty())
}
