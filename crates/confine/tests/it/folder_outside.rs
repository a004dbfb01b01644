//! A folder that confined commands may not write to, also if the repository was cloned into a temporary folder.

use std::path::{Path, PathBuf};

/// `target` (the folder that cargo has for tests), or one in the home folder if that is temporary: commands may
/// write to temporary folders.
pub(crate) fn folder_outside(target: &str) -> PathBuf {
    let temporary = [std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    if !temporary.iter().any(|folder| Path::new(target).starts_with(folder)) {
        return target.into();
    }
    let folder = std::env::home_dir().expect("a home folder").join("aside-tests");
    std::fs::create_dir_all(&folder).expect("a folder in the home folder");
    folder
}
