//! Where a test lives: config, data, home and project of its own.

use std::fs;
use std::path::{Path, PathBuf};

/// Gone when the test has passed; left to be looked at when it has not.
pub(crate) struct Folder {
    root: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) config: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) project: PathBuf,
}

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("terminal").join(name);
        // Of a run before this one.
        drop(fs::remove_dir_all(&root));
        let below = |name: &str| {
            let folder = root.join(name);
            fs::create_dir_all(&folder).unwrap();
            folder
        };
        let [home, config, data, project] = ["home", "config", "data", "project"].map(below);
        Folder { root, home, config, data, project }
    }

    pub(crate) fn config(self, text: &str) -> Folder {
        fs::write(self.config.join("config.toml"), text).unwrap();
        self
    }

    pub(crate) fn file(self, name: &str, text: &str) -> Folder {
        let path = self.project.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project.join(name)).unwrap()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.project.join(name).exists()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            drop(fs::remove_dir_all(&self.root));
        }
    }
}
