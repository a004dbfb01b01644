//! Paths in the working directory that make other programs run commands.

use std::path::{Path, PathBuf};

use crate::git;

/// Files, and folders with everything in them. `*` matches anything at either end of a name. Commands find the names in the
/// working directory and in every folder opened to them, where start-up files matter if that folder is a home folder.
/// `.git` is not here: commands may write to most of it.
pub const NAMES: &[&str] = &[
    // git runs what its settings name.
    ".gitconfig",
    ".gitmodules",
    ".config/git",
    // Instructions for agents, and programs that agents start.
    "AGENTS.md",
    ".aside",
    ".mcp.json",
    ".claude",
    ".cursor",
    // Shells.
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".shrc",
    ".inputrc",
    ".config/fish",
    ".config/nushell",
    ".envrc",
    ".direnvrc",
    ".config/direnv",
    // Programs started at login or by a connection.
    ".ssh",
    ".pam_environment",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".config/autostart",
    ".config/environment.d",
    ".config/systemd",
    "Library/LaunchAgents",
    // Editors.
    ".vscode/extensions.json",
    ".vscode/launch.json",
    ".vscode/mcp.json",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    "*.code-workspace",
    "*.sublime-project",
    ".devcontainer",
    ".devcontainer.json",
    ".idea",
    ".fleet",
    ".zed",
    ".helix",
    ".vim",
    ".vimrc",
    ".vim*",
    ".gvimrc",
    ".exrc",
    ".nexrc",
    ".nvimrc",
    ".nvim.lua",
    ".lvimrc",
    ".config/nvim",
    ".emacs",
    ".emacs.d",
    ".dir-locals.el",
    ".dir-locals*.el",
];

/// The protected paths of these folders and git folders, whether they exist or not.
pub fn all_in(folders: &[PathBuf], git_folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for folder in folders {
        all.extend(NAMES.iter().filter(|name| !name.contains('*')).map(|name| folder.join(name)));
        let git = folder.join(".git");
        // `.git` may be a file that points elsewhere, or may not exist yet.
        if !git.is_dir() {
            all.push(git.clone());
        }
        all.extend(git::protected_paths(&git));
    }
    all.extend(git_folders.iter().flat_map(|folder| git::protected_paths(folder)));
    // What a link leads to is as good as the file itself.
    let around: Vec<PathBuf> = folders.iter().chain(git_folders).cloned().collect();
    let targets: Vec<PathBuf> = all.iter().filter_map(|path| link_target(path, &around)).collect();
    all.extend(targets);
    all.sort();
    all.dedup();
    all
}

/// Where the path leads, if there is a link on the way to it from the folder that contains it.
pub fn link_target(path: &Path, folders: &[PathBuf]) -> Option<PathBuf> {
    let folder = folders.iter().filter(|folder| path.starts_with(folder)).max_by_key(|folder| folder.as_os_str().len());
    let mut reached = folder?.clone();
    for part in path.strip_prefix(&reached).ok()?.components() {
        reached.push(part);
        // Most of these paths do not exist.
        if reached.symlink_metadata().ok()?.is_symlink() {
            return std::fs::canonicalize(path).ok();
        }
    }
    None
}

/// The deepest root that contains the path, and the path relative to it.
pub(crate) fn containing_root<'a>(path: &'a Path, roots: &'a [PathBuf]) -> Option<(&'a Path, &'a Path)> {
    let holds = roots.iter().filter_map(|root| Some((root.as_path(), path.strip_prefix(root).ok()?)));
    holds.max_by_key(|(root, _)| root.as_os_str().len()).filter(|(_, name)| !name.as_os_str().is_empty())
}
