//! The folders of a test: config, data, home and project.

use std::fs;
use std::path::{Path, PathBuf};

/// Deleted when the test passes; kept for inspection when it fails.
pub(crate) struct TestFolders {
    root: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) config: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) project: PathBuf,
}

impl TestFolders {
    pub(crate) fn new(name: &str) -> TestFolders {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("terminal").join(name);
        // From an earlier run.
        drop(fs::remove_dir_all(&root));
        let below = |name: &str| {
            let folder = root.join(name);
            fs::create_dir_all(&folder).unwrap();
            folder
        };
        let [home, config, data, project] = ["home", "config", "data", "project"].map(below);
        TestFolders { root, home, config, data, project }
    }

    pub(crate) fn config(self, text: &str) -> TestFolders {
        fs::write(self.config.join("config.toml"), text).unwrap();
        self
    }

    pub(crate) fn file(self, name: &str, text: &str) -> TestFolders {
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

impl Drop for TestFolders {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            drop(fs::remove_dir_all(&self.root));
        }
    }
}
