//! The log: written only if enabled, and without secrets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{RunOutput, TestConfig, run};

const KEY: &str = "sk-this-is-secret";

fn ask(config: &TestConfig, level: &str, prompt: &str) -> RunOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    command.args(["ask", "-m", "sim/deepseek", prompt]).current_dir(&config.0);
    command.env("ASIDE_STATE_DIR", config.0.join("state")).env("ASIDE_LOG", level).env("WORK_KEY", KEY);
    run(&mut command, b"", Some(config))
}

#[test]
fn the_log_has_requests_tools_and_the_end_of_the_turn() {
    let config = TestConfig::new("log");
    assert_eq!(ask(&config, "info", "sim: tool-loop 1").code, 0);
    let path = config.0.join("state/aside.log");
    let text = fs::read_to_string(&path).unwrap();
    for expected in ["request 1 to", "tool ", "request 2 to", "the turn is answered"] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    assert!(!text.contains(" debug "), "{text}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // A second run appends.
    assert_eq!(ask(&config, "debug", "again").code, 0);
    let more = fs::read_to_string(&path).unwrap();
    assert!(more.starts_with(&text) && more.contains(" debug "), "{more}");
    assert!(!more.contains("again"), "a prompt is in the session, not in the log:\n{more}");
}

#[test]
fn p7_no_key_is_ever_in_the_log() {
    let text = "[providers.work]\nprotocol = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key_env = \"WORK_KEY\"\n";
    let config = TestConfig::with("log-key", text);
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    command.args(["ask", "-m", "work/m", "hello"]).current_dir(&config.0);
    command.env("ASIDE_STATE_DIR", config.0.join("state")).env("ASIDE_LOG", "debug").env("WORK_KEY", KEY);
    assert_eq!(run(&mut command, b"", Some(&config)).code, 1);
    let text = fs::read_to_string(config.0.join("state/aside.log")).unwrap();
    assert!(text.contains("Unreachable") && !text.contains(KEY), "{text}");
}

#[test]
fn nothing_is_logged_unless_enabled_and_an_unknown_level_is_refused() {
    let config = TestConfig::new("log-off");
    for quiet in ["", "off"] {
        assert_eq!(ask(&config, quiet, "hello").code, 0);
    }
    assert!(!config.0.join("state").exists());
    let refused = ask(&config, "loud", "hello");
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert!(refused.stderr.contains("ASIDE_LOG is `loud`") && refused.stderr.contains("warn, info, debug"));
}
