//! Files that decide what runs next: hooks, start-up files, editor tasks, the
//! instructions of a project, aside's own folders. A change to one of them is
//! always asked about.

use std::path::{Path, PathBuf};

/// A name stands for a file, or for a folder and everything in it, at any depth.
/// `*` at either end of a name stands for anything; letters of both cases are
/// the same, since they are on many file systems.
const NAMES: &[&str] = &[
    // Repositories: hooks and config are run by git.
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".config/git",
    // Instructions for agents, and what agents run.
    "agents.md",
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
    // What a login or a connection starts.
    ".ssh",
    ".pam_environment",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".config/autostart",
    ".config/environment.d",
    ".config/systemd",
    "library/launchagents",
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
    ".dir-locals*.el",
];

/// What of it this session adds.
#[derive(Debug, Default)]
pub(crate) struct Protected {
    /// With every link followed.
    folders: Vec<PathBuf>,
    names: Vec<String>,
}

impl Protected {
    pub(crate) fn new(
        folders: impl IntoIterator<Item = PathBuf>,
        names: impl IntoIterator<Item = String>,
    ) -> Protected {
        Protected { folders: folders.into_iter().collect(), names: names.into_iter().collect() }
    }

    /// Whether this path is one of them. Both have every link followed; `named`
    /// is what the names are looked for in: the way from the working directory,
    /// since a session may well work in a folder of such a name.
    pub(crate) fn covers(&self, path: &Path, named: &Path) -> bool {
        let parts = folded(named);
        let by_name = NAMES.iter().copied().chain(self.names.iter().map(String::as_str));
        by_name.into_iter().any(|name| occurs(name, &parts))
            || self.folders.iter().any(|folder| folded(path).starts_with(&folded(folder)))
            || is_in_bare_repository(path, named)
    }
}

/// A repository that is not called `.git`: bare ones, and those of worktrees
/// and submodules that are kept apart.
fn is_in_bare_repository(path: &Path, named: &Path) -> bool {
    let depth = named.components().count();
    // With the file that would be written, so that the last piece of one asks.
    path.ancestors().skip(1).take(depth).any(|folder| {
        let has = |name: &str| path.starts_with(folder.join(name)) || folder.join(name).exists();
        has("HEAD") && has("objects") && has("refs")
    })
}

/// Whether the parts of a name follow one another in a path.
fn occurs(name: &str, parts: &[String]) -> bool {
    let name = folded(Path::new(name));
    !name.is_empty()
        && parts.windows(name.len()).any(|window| name.iter().zip(window).all(|(name, part)| is_like(name, part)))
}

fn is_like(name: &str, part: &str) -> bool {
    match name.split_once('*') {
        None => name == part,
        Some((before, behind)) => {
            part.len() >= before.len() + behind.len() && part.starts_with(before) && part.ends_with(behind)
        }
    }
}

/// The parts of a path in lower case, without characters that a file system may
/// ignore in a name.
fn folded(path: &Path) -> Vec<String> {
    let fold = |part: std::path::Component<'_>| {
        let part = part.as_os_str().to_string_lossy();
        let ignored = |c: &char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
        part.chars().filter(|c| !ignored(c)).flat_map(char::to_lowercase).collect()
    };
    path.components().map(fold).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn l3_what_decides_what_runs_next_is_protected_by_its_name() {
        let protected = Protected::new([PathBuf::from("/home/me/.config/aside")], ["docs/RULES.md".to_owned()]);
        #[rustfmt::skip]
        let yes = [
            ".git", ".git/hooks/pre-commit", ".git/config", "sub/.git", "sub/.GIT/config", ".g\u{200c}it/config",
            "AGENTS.md", "deep/agents.md", "docs/rules.md", "x/docs/RULES.md", ".bashrc", "home/.profile", ".zshenv",
            ".config/fish/config.fish", ".envrc", ".vscode/tasks.json", "a/.vscode/settings.json", "my.code-workspace",
            ".idea/workspace.xml", ".zed/tasks.json", ".vimrc", ".vim/plugin/x.vim", ".aside/anything", ".ssh/config",
        ];
        for path in yes {
            assert!(protected.covers(&Path::new("/w").join(path), Path::new(path)), "{path}");
        }
        #[rustfmt::skip]
        let no = [
            "git", ".gitignore", ".github/workflows/ci.yml", "AGENTS.md.txt", "src/agents.rs", "RULES.md", ".vscode/x.txt",
            "vim", "profile", "src/.config/x", "config/aside/config.toml", ".environment", "", "code-workspace",
        ];
        for path in no {
            assert!(!protected.covers(&Path::new("/w").join(path), Path::new(path)), "{path}");
        }
        // aside's own folders, whatever the working directory is.
        for (path, named) in [
            ("/home/me/.config/aside/config.toml", "aside/config.toml"),
            ("/home/me/.config/ASIDE/config.toml", "/home/me/.config/ASIDE/config.toml"),
        ] {
            assert!(protected.covers(Path::new(path), Path::new(named)), "{path}");
        }
        assert!(!protected.covers(Path::new("/home/me/.config/aside2/x"), Path::new("aside2/x")));
    }

    #[test]
    fn l3_a_repository_is_protected_whatever_its_name() {
        let scratch = Scratch::new("bare");
        let root = scratch.path();
        for folder in ["store/objects", "store/refs", "store/hooks", "plain/refs"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("store/HEAD"), "ref: refs/heads/main\n").unwrap();
        let covers = |path: &str| Protected::default().covers(&root.join(path), Path::new(path));
        assert!(covers("store/config") && covers("store/hooks/pre-commit"));
        assert!(!covers("plain/refs/x") && !covers("store"));
        fs::create_dir_all(root.join("plain/objects")).unwrap();
        assert!(covers("plain/HEAD"), "the piece that makes it a repository");
    }
}
