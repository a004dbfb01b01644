//! Runs the binary with a config folder of its own.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) struct RunOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A config file with comments, tables and settings that edits must keep.
pub(crate) const CONFIG: &str = r#"# mine, since 2024
model = "deepseek/deepseek-chat"   # cheap

[providers.work]                       # a provider of my own
protocol = "openai-chat"
headers = { "x-team" = "blue" }

# how I like it
[settings]
# think
"reasoning.effort" = "low"     # hard enough
"reasoning.display" = "full"

[keys]
toggle_thinking = "ctrl+t"
"#;

/// A temporary config folder, deleted when the test is over.
pub(crate) struct TestConfig(pub(crate) PathBuf);

impl TestConfig {
    pub(crate) fn new(name: &str) -> TestConfig {
        let folder = std::env::temp_dir().join(format!("aside-test-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("dialects")).unwrap();
        TestConfig(folder)
    }

    pub(crate) fn with(name: &str, text: &str) -> TestConfig {
        let config = TestConfig::new(name);
        fs::write(config.0.join("config.toml"), text).unwrap();
        config
    }

    /// A working directory. Not the config folder, which tools may not change.
    pub(crate) fn project(&self) -> PathBuf {
        let folder = self.0.with_extension("project");
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap()
    }

    /// Runs a command line, split at spaces.
    pub(crate) fn run(&self, arguments: &str) -> RunOutput {
        aside(&arguments.split(' ').collect::<Vec<_>>(), b"", Some(self))
    }

    /// Standard output of a command that must succeed.
    pub(crate) fn stdout(&self, arguments: &str) -> String {
        let run = self.run(arguments);
        assert_eq!(run.code, 0, "{arguments}: {}", run.stderr);
        run.stdout
    }

    /// Standard error of a command that must fail with exit code 2.
    pub(crate) fn refused(&self, arguments: &str) -> String {
        let run = self.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments}");
        run.stderr
    }

    /// All files in the folder, including temporary ones.
    pub(crate) fn files(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "dialects").collect();
        names.sort();
        names
    }
}

impl Drop for TestConfig {
    fn drop(&mut self) {
        // A process that a test killed may still have a helper that writes its last file.
        let removed = (0..100).any(|_| {
            let removed = fs::remove_dir_all(&self.0).is_ok();
            if !removed {
                std::thread::sleep(Duration::from_millis(50));
            }
            removed
        });
        assert!(removed || std::thread::panicking(), "{} cannot be removed", self.0.display());
        // Most tests have no project folder.
        drop(fs::remove_dir_all(self.0.with_extension("project")));
    }
}

pub(crate) fn aside(arguments: &[&str], stdin: &[u8], config: Option<&TestConfig>) -> RunOutput {
    run(Command::new(env!("CARGO_BIN_EXE_aside")).args(arguments).current_dir(repository()), stdin, config)
}

/// The root of this repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The data folder of runs without their own config folder.
fn shared_data() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("data")
}

/// Runs a command, which may start the binary indirectly.
pub(crate) fn run(command: &mut Command, stdin: &[u8], config: Option<&TestConfig>) -> RunOutput {
    let mut child = start(command, config);
    // The child may close its input without reading it.
    drop(child.stdin.take().unwrap().write_all(stdin));
    let output = child.wait_with_output().unwrap();
    RunOutput {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Starts a command with pipes, which may start the binary indirectly.
pub(crate) fn start(command: &mut Command, config: Option<&TestConfig>) -> Child {
    // Never use the developer's own keys.
    for variable in std::env::vars().map(|(name, _)| name) {
        if variable.ends_with("_API_KEY") || variable.ends_with("_TOKEN") {
            command.env_remove(variable);
        }
    }
    let command = command
        .env("ASIDE_CONFIG_DIR", config.map_or_else(|| "nowhere".into(), |config| config.0.clone()))
        .env("ASIDE_DATA_DIR", config.map_or_else(shared_data, |config| config.0.join("data")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    loop {
        match command.spawn() {
            // Another test forked while this one wrote a copy of the program.
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            spawned => return spawned.unwrap(),
        }
    }
}
