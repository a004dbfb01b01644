//! Paths inside the working directory that other programs take commands from.

use std::path::{Path, PathBuf};

use crate::git;

/// Below the working directory and every folder opened to commands. Start-up
/// files matter where that is somebody's home.
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

/// The protected paths of these folders and of these git folders, there or not.
pub fn paths(folders: &[PathBuf], git_folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for folder in folders {
        all.extend(NAMES.iter().map(|name| folder.join(name)));
        let git = folder.join(".git");
        // A file that leads elsewhere, or that is put where there is none yet.
        if !git.is_dir() {
            all.push(git.clone());
        }
        all.extend(git::protected(&git));
    }
    all.extend(git_folders.iter().flat_map(|folder| git::protected(folder)));
    all.sort();
    all.dedup();
    all
}

/// Each with the deepest of the roots that it lies in, and its name there.
pub(crate) fn below<'a>(path: &'a Path, roots: &'a [PathBuf]) -> Option<(&'a Path, &'a Path)> {
    let holds = roots.iter().filter_map(|root| Some((root.as_path(), path.strip_prefix(root).ok()?)));
    holds.max_by_key(|(root, _)| root.as_os_str().len()).filter(|(_, name)| !name.as_os_str().is_empty())
}
