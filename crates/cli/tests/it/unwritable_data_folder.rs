//! A data folder that cannot be written: stored sessions stay, and the user is told
//! that nothing is saved.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{RunOutput, TestConfig, run};

/// Root can write to every folder, so the tests run as another user.
const NOBODY: u32 = 65534;

struct TestUser {
    config: TestConfig,
    program: PathBuf,
    is_root: bool,
}

impl TestUser {
    fn new(name: &str) -> TestUser {
        let config = TestConfig::new(name);
        fs::create_dir(config.0.join("data")).unwrap();
        let is_root = rustix::process::getuid().is_root();
        let mut program = PathBuf::from(env!("CARGO_BIN_EXE_aside"));
        if is_root {
            // The other user may not have access to the build folder.
            let copy = config.0.join("aside");
            fs::copy(&program, &copy).unwrap();
            program = copy;
            for path in [config.0.clone(), config.0.join("data"), config.0.join("dialects")] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        TestUser { config, program, is_root }
    }

    fn run(&self, arguments: &[&str], stdin: &[u8]) -> RunOutput {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.config.0).env("HOME", &self.config.0);
        if self.is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        run(&mut command, stdin, Some(&self.config))
    }

    fn sessions(&self) -> String {
        self.run(&["sessions", "list", "--json"], b"").stdout
    }

    /// Makes the data folder and its files read-only, or writable again.
    fn lock(&self, is_locked: bool) {
        let (folder, file) = if is_locked { (0o500, 0o400) } else { (0o700, 0o600) };
        let data = self.config.0.join("data");
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set(&data, 0o700);
        for entry in fs::read_dir(&data).unwrap() {
            let path = entry.unwrap().path();
            set(&path, if path.is_dir() { folder } else { file });
        }
        set(&data, folder);
    }
}

impl Drop for TestUser {
    fn drop(&mut self) {
        self.lock(false);
    }
}

#[test]
fn an_unwritable_data_folder_is_reported_and_loses_nothing() {
    let user = TestUser::new("faults-read-only");
    let first = user.run(&["ask", "-m", "sim/deepseek", "the first question"], b"");
    assert_eq!(first.code, 0, "{}", first.stderr);
    let before = user.sessions();
    assert!(before.contains("the first question"), "{before}");
    user.lock(true);
    // The answer still arrives, with a notice that it is not saved.
    let asked = user.run(&["ask", "-m", "sim/deepseek", "the second question"], b"");
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    assert!(asked.stdout.contains("the second question"), "{}", asked.stdout);
    assert!(asked.stderr.contains("not saved") && asked.stderr.contains("data"), "{}", asked.stderr);
    let said = user.run(&["--plain", "-m", "sim/deepseek"], b"the third question\n");
    assert_eq!(said.code, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("You wrote: \"the third question\""), "{}", said.stdout);
    assert_eq!(said.stdout.matches("not saved").count(), 1, "{}", said.stdout);
    let doctor = user.run(&["doctor"], b"");
    assert_eq!(doctor.code, 1);
    assert!(doctor.stdout.contains("broken  sessions: "), "{}", doctor.stdout);
    // A resumed session still has its history.
    let resumed = user.run(&["ask", "-c", "-m", "sim/deepseek", "the third question"], b"");
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(resumed.stderr.contains("not saved"), "{}", resumed.stderr);
    let shown = user.run(&["sessions", "show"], b"");
    assert!(shown.stdout.contains("the first question"), "{}", shown.stdout);
    assert_eq!(user.sessions(), before, "what was kept can still be read");
    user.lock(false);
    assert_eq!(user.sessions(), before);
    let again = user.run(&["ask", "-c", "-m", "sim/deepseek", "the fourth question"], b"");
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(!again.stderr.contains("not saved"), "{}", again.stderr);
}

/// After a crash, the database file alone is incomplete.
#[test]
fn a_read_only_folder_with_a_journal_is_not_read_without_it() {
    let user = TestUser::new("faults-journal");
    assert_eq!(user.run(&["ask", "-m", "sim/deepseek", "the first question"], b"").code, 0);
    let journal = user.config.0.join("data/sessions.db-wal");
    fs::write(&journal, b"not taken in yet").unwrap();
    if user.is_root {
        chown(&journal, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    user.lock(true);
    let listed = user.run(&["sessions", "list"], b"");
    assert_eq!((listed.code, listed.stdout.as_str()), (2, ""));
    assert!(listed.stderr.contains("journal") && listed.stderr.contains("ASIDE_DATA_DIR"), "{}", listed.stderr);
    user.lock(false);
    assert!(user.sessions().contains("the first question"));
}

#[test]
fn a_data_folder_that_cannot_be_created_is_reported_and_the_answer_arrives() {
    let user = TestUser::new("faults-no-folder");
    user.lock(true);
    let data = user.config.0.join("data/below");
    // `run` sets the variable too, so the shell overrides it last.
    let mut shell = Command::new("sh");
    shell.args(["-c", "ASIDE_DATA_DIR=\"$1\" exec \"$2\" --plain -m sim/deepseek", "sh"]);
    shell.arg(&data).arg(&user.program).current_dir(&user.config.0);
    if user.is_root {
        shell.uid(NOBODY).gid(NOBODY);
    }
    let said = run(&mut shell, b"hello\n", Some(&user.config));
    assert_eq!(said.code, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("Error: this session is not saved: "), "{}", said.stdout);
    assert!(said.stdout.contains("You wrote: \"hello\""), "{}", said.stdout);
}
