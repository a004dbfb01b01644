//! Folders of a test's own, deleted when it is over.

use std::fs;
use std::path::PathBuf;

use aside_session::UserFolders;

pub(crate) struct TestFolders(PathBuf);

impl TestFolders {
    /// Commands are not confined: this program is not a sandbox helper.
    pub(crate) fn new(name: &str) -> TestFolders {
        let folders = TestFolders(std::env::temp_dir().join(format!("aside-session-{name}-{}", std::process::id())));
        fs::create_dir_all(folders.project()).unwrap();
        folders.write_config("");
        folders
    }

    pub(crate) fn write_config(&self, text: &str) {
        fs::create_dir_all(self.0.join("config")).unwrap();
        fs::write(self.0.join("config/config.toml"), format!("{text}\n[tools]\nconfine = \"off\"\n")).unwrap();
    }

    /// The working directory.
    pub(crate) fn project(&self) -> PathBuf {
        self.0.join("project")
    }

    pub(crate) fn user(&self) -> UserFolders {
        let folder = |name: &str| Some(self.0.join(name));
        UserFolders { config: folder("config"), data: folder("data"), state: folder("state") }
    }
}

impl Drop for TestFolders {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}
