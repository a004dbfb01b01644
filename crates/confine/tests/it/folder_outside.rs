//! A folder that confined commands may not write to, also if the repository was cloned into a temporary folder.

use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Removed when it is dropped if it lies in the home folder, so that tests leave nothing there.
pub(crate) enum FolderOutside {
    OfCargo(PathBuf),
    InHome(PathBuf),
}

/// `target` (the folder that cargo has for tests), or one in the home folder if that is temporary: commands may
/// write to temporary folders.
pub(crate) fn folder_outside(target: &str) -> FolderOutside {
    let temporary = [std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    if !temporary.iter().any(|folder| Path::new(target).starts_with(folder)) {
        return FolderOutside::OfCargo(target.into());
    }
    let home = std::env::home_dir().expect("a home folder");
    let folder = home.join(format!("aside-tests-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder in the home folder");
    FolderOutside::InHome(folder)
}

impl Deref for FolderOutside {
    type Target = Path;

    fn deref(&self) -> &Path {
        let (FolderOutside::OfCargo(path) | FolderOutside::InHome(path)) = self;
        path
    }
}

impl Drop for FolderOutside {
    fn drop(&mut self) {
        if let FolderOutside::InHome(path) = self {
            // Another test of this process may still have folders in it, and then removes it.
            drop(std::fs::remove_dir(path));
        }
    }
}
