//! The system prompt.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The default system prompt of a session with tools.
pub fn built_in(root: &Path, today: &str) -> String {
    format!(
        "You work in the folder {} on the user's computer. Today is {today}.\n\
         You have tools to look at files, change them and run commands; relative paths begin in that folder.\n\
         Look before you change something. Prefer small edits, and verify your work by running a command where possible.\n\
         The user may be asked before a tool runs and may say no: then do not attempt the same thing another way; \
         explain what you wanted to do.\n\
         Answer briefly and say plainly what does not work.",
        root.display()
    )
}

/// What follows the system prompt if further folders are open.
pub fn additional_folders(folders: &[PathBuf]) -> Option<String> {
    let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let line = || format!("These folders are open too; name files in them by absolute paths: {}", names.join(", "));
    (!names.is_empty()).then(line)
}

/// The value of `prompt.system`: text, or `@` and the path of a file.
pub fn system(value: &str, root: &Path) -> io::Result<String> {
    match value.strip_prefix('@') {
        Some(path) => fs::read_to_string(root.join(path)),
        None => Ok(value.to_owned()),
    }
}

/// File names for completing `@` mentions: relative to the root, without ignored files, at most `max` of
/// them.
pub fn names(root: &Path, max: usize) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(root).follow_links(false).build();
    let files = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let names = files.filter_map(|entry| Some(entry.path().strip_prefix(root).ok()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.take(max).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_dir::TestDir;

    #[test]
    fn l5_a_system_prompt_is_text_or_a_file() {
        let test_dir = TestDir::new("system");
        fs::write(test_dir.path().join("p.md"), "be kind").unwrap();
        assert_eq!(system("be brief", test_dir.path()).unwrap(), "be brief");
        assert_eq!(system("@p.md", test_dir.path()).unwrap(), "be kind");
        assert!(system("@none.md", test_dir.path()).is_err());
        assert!(
            built_in(Path::new("/w"), "2026-01-02")
                .contains("the folder /w on the user's computer. Today is 2026-01-02.")
        );
    }
}
