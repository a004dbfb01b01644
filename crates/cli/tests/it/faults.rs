//! A disk that says no: what was kept stays, and what is not kept is said.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Config, Run, run};

/// To root every folder can be written to, so another user asks.
const NOBODY: u32 = 65534;

struct Person {
    config: Config,
    program: PathBuf,
    is_root: bool,
}

impl Person {
    fn new(name: &str) -> Person {
        let config = Config::new(name);
        fs::create_dir(config.0.join("data")).unwrap();
        let is_root = rustix::process::getuid().is_root();
        let mut program = PathBuf::from(env!("CARGO_BIN_EXE_aside"));
        if is_root {
            // Where it was built another user may not look.
            let copy = config.0.join("aside");
            fs::copy(&program, &copy).unwrap();
            program = copy;
            for path in [config.0.clone(), config.0.join("data"), config.0.join("dialects")] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        Person { config, program, is_root }
    }

    fn run(&self, arguments: &[&str], stdin: &[u8]) -> Run {
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

    /// The data folder and its files, for reading alone or as before.
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

impl Drop for Person {
    fn drop(&mut self) {
        self.lock(false);
    }
}

#[test]
fn a_data_folder_that_cannot_be_written_to_is_said_and_loses_nothing() {
    let person = Person::new("faults-read-only");
    let first = person.run(&["ask", "-m", "sim/deepseek", "the first question"], b"");
    assert_eq!(first.code, 0, "{}", first.stderr);
    let before = person.sessions();
    assert!(before.contains("the first question"), "{before}");
    person.lock(true);
    // The answer comes all the same, and what becomes of it is said.
    let asked = person.run(&["ask", "-m", "sim/deepseek", "the second question"], b"");
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    assert!(asked.stdout.contains("the second question"), "{}", asked.stdout);
    assert!(asked.stderr.contains("not saved") && asked.stderr.contains("data"), "{}", asked.stderr);
    let said = person.run(&["--plain", "-m", "sim/deepseek"], b"the third question\n");
    assert_eq!(said.code, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("You wrote: \"the third question\""), "{}", said.stdout);
    assert_eq!(said.stdout.matches("not saved").count(), 1, "{}", said.stdout);
    let doctor = person.run(&["doctor"], b"");
    assert_eq!(doctor.code, 1);
    assert!(doctor.stdout.contains("broken  sessions: "), "{}", doctor.stdout);
    // Who goes on with a session hears what was said in it.
    let resumed = person.run(&["ask", "-c", "-m", "sim/deepseek", "sim: echo"], b"");
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(resumed.stderr.contains("not saved"), "{}", resumed.stderr);
    let shown = person.run(&["sessions", "show"], b"");
    assert!(shown.stdout.contains("the first question"), "{}", shown.stdout);
    assert_eq!(person.sessions(), before, "what was kept can still be read");
    person.lock(false);
    assert_eq!(person.sessions(), before);
    let again = person.run(&["ask", "-c", "-m", "sim/deepseek", "the fourth question"], b"");
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(!again.stderr.contains("not saved"), "{}", again.stderr);
}

/// Somebody was killed there: the file alone is not all there is.
#[test]
fn a_read_only_folder_with_a_journal_is_not_read_without_it() {
    let person = Person::new("faults-journal");
    assert_eq!(person.run(&["ask", "-m", "sim/deepseek", "the first question"], b"").code, 0);
    let journal = person.config.0.join("data/sessions.db-wal");
    fs::write(&journal, b"not taken in yet").unwrap();
    if person.is_root {
        chown(&journal, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    person.lock(true);
    let listed = person.run(&["sessions", "list"], b"");
    assert_eq!((listed.code, listed.stdout.as_str()), (2, ""));
    assert!(listed.stderr.contains("journal") && listed.stderr.contains("ASIDE_DATA_DIR"), "{}", listed.stderr);
    person.lock(false);
    assert!(person.sessions().contains("the first question"));
}

#[test]
fn a_data_folder_that_cannot_be_made_is_said_and_the_answer_comes() {
    let person = Person::new("faults-no-folder");
    person.lock(true);
    let data = person.config.0.join("data/below");
    // The variable is the test's own, so the shell sets it last.
    let mut shell = Command::new("sh");
    shell.args(["-c", "ASIDE_DATA_DIR=\"$1\" exec \"$2\" --plain -m sim/deepseek", "sh"]);
    shell.arg(&data).arg(&person.program).current_dir(&person.config.0);
    if person.is_root {
        shell.uid(NOBODY).gid(NOBODY);
    }
    let said = run(&mut shell, b"hello\n", Some(&person.config));
    assert_eq!(said.code, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("Error: this session is not saved: "), "{}", said.stdout);
    assert!(said.stdout.contains("You wrote: \"hello\""), "{}", said.stdout);
}
