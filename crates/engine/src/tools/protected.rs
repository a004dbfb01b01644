//! Paths that can affect what runs next: hooks, start-up files, editor tasks, instruction files, aside's own
//! folders. Changing one always needs permission.

use std::path::{Path, PathBuf};

use aside_confine::protected_paths;

/// git runs hooks and reads its config from here. [`protected_paths::NAMES`] are protected too, here at any depth and
/// whatever their case, as on many file systems.
const REPOSITORY: &str = ".git";

/// The paths that this session protects in addition to the built-in ones.
#[derive(Debug, Default)]
pub(crate) struct ProtectedPaths {
    /// With links followed.
    folders: Vec<PathBuf>,
    names: Vec<String>,
}

impl ProtectedPaths {
    pub(crate) fn new(
        folders: impl IntoIterator<Item = PathBuf>,
        names: impl IntoIterator<Item = String>,
    ) -> ProtectedPaths {
        ProtectedPaths { folders: folders.into_iter().collect(), names: names.into_iter().collect() }
    }

    /// Whether this path is protected. Both paths must have their links followed. The names are looked up in
    /// `named`, the path relative to the working directory, because the working directory itself may be
    /// inside a folder with such a name.
    pub(crate) fn covers(&self, path: &Path, named: &Path) -> bool {
        let parts = normalized(named);
        let built_in = protected_paths::NAMES.iter().copied().chain([REPOSITORY]);
        let mut by_name = built_in.chain(self.names.iter().map(String::as_str));
        by_name.any(|name| contains_name(name, &parts))
            || self.folders.iter().any(|folder| normalized(path).starts_with(&normalized(folder)))
            || is_in_bare_repository(path, named)
    }

    /// Whether a protected name in one of these folders is a link to this path or to a folder around it.
    pub(crate) fn links_to(&self, path: &Path, folders: &[PathBuf]) -> bool {
        let own = folders.iter().flat_map(|folder| self.names.iter().map(move |name| folder.join(name)));
        let all = protected_paths::all_in(folders, &[]).into_iter().chain(own);
        let mut targets = all.filter_map(|name| protected_paths::link_target(&name, folders));
        targets.any(|target| path.starts_with(target))
    }
}

/// A repository that is not called `.git`: a bare one, or the separate folder of a worktree or submodule.
fn is_in_bare_repository(path: &Path, named: &Path) -> bool {
    let depth = named.components().count();
    // Counts the file to be written as present, so that adding the last missing part asks too.
    path.ancestors().skip(1).take(depth).any(|folder| {
        let has = |name: &str| path.starts_with(folder.join(name)) || folder.join(name).exists();
        has("HEAD") && has("objects") && has("refs")
    })
}

/// Whether the components of a name occur in a row in a path.
fn contains_name(name: &str, parts: &[String]) -> bool {
    let name = normalized(Path::new(name));
    !name.is_empty()
        && parts.windows(name.len()).any(|window| name.iter().zip(window).all(|(name, part)| matches_name(name, part)))
}

fn matches_name(name: &str, part: &str) -> bool {
    match name.split_once('*') {
        None => name == part,
        Some((before, after)) => {
            part.len() >= before.len() + after.len() && part.starts_with(before) && part.ends_with(after)
        }
    }
}

/// The components of a path in lower case, without characters that some file systems ignore.
fn normalized(path: &Path) -> Vec<String> {
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
    use crate::test_dir::TestDir;

    #[test]
    fn l3_paths_that_affect_what_runs_next_are_protected_by_name() {
        let protected = ProtectedPaths::new([PathBuf::from("/home/me/.config/aside")], ["docs/RULES.md".to_owned()]);
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
        // aside's own folders are protected in every working directory.
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
        let test_dir = TestDir::new("bare");
        let root = test_dir.path();
        for folder in ["store/objects", "store/refs", "store/hooks", "plain/refs"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("store/HEAD"), "ref: refs/heads/main\n").unwrap();
        let covers = |path: &str| ProtectedPaths::default().covers(&root.join(path), Path::new(path));
        assert!(covers("store/config") && covers("store/hooks/pre-commit"));
        assert!(!covers("plain/refs/x") && !covers("store"));
        fs::create_dir_all(root.join("plain/objects")).unwrap();
        assert!(covers("plain/HEAD"), "the piece that makes it a repository");
    }
}
