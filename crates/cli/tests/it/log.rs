//! The log: only where it is asked for, with what happened and without secrets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{Config, Run, run};

const KEY: &str = "sk-this-is-secret";

fn ask(config: &Config, level: &str, prompt: &str) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    command.args(["ask", "-m", "sim/deepseek", prompt]).current_dir(&config.0);
    command.env("ASIDE_STATE_DIR", config.0.join("state")).env("ASIDE_LOG", level).env("WORK_KEY", KEY);
    run(&mut command, b"", Some(config))
}

#[test]
fn the_log_says_what_was_sent_and_how_it_ended() {
    let config = Config::new("log");
    assert_eq!(ask(&config, "info", "sim: tool-loop 1").code, 0);
    let path = config.0.join("state/aside.log");
    let text = fs::read_to_string(&path).unwrap();
    for expected in ["request 1 to", "tool ", "request 2 to", "the turn is answered"] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    assert!(!text.contains(" debug "), "{text}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // It grows, and does not begin anew.
    assert_eq!(ask(&config, "debug", "again").code, 0);
    let more = fs::read_to_string(&path).unwrap();
    assert!(more.starts_with(&text) && more.contains(" debug "), "{more}");
    assert!(!more.contains("again"), "a prompt is in the session, not in the log:\n{more}");
}

#[test]
fn p7_no_key_is_ever_in_the_log() {
    let text = "[providers.work]\nprotocol = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key_env = \"WORK_KEY\"\n";
    let config = Config::with("log-key", text);
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    command.args(["ask", "-m", "work/m", "hello"]).current_dir(&config.0);
    command.env("ASIDE_STATE_DIR", config.0.join("state")).env("ASIDE_LOG", "debug").env("WORK_KEY", KEY);
    assert_eq!(run(&mut command, b"", Some(&config)).code, 1);
    let text = fs::read_to_string(config.0.join("state/aside.log")).unwrap();
    assert!(text.contains("Unreachable") && !text.contains(KEY), "{text}");
}

#[test]
fn nothing_is_logged_unless_asked_for_and_a_wrong_word_is_refused() {
    let config = Config::new("log-off");
    for quiet in ["", "off"] {
        assert_eq!(ask(&config, quiet, "hello").code, 0);
    }
    assert!(!config.0.join("state").exists());
    let refused = ask(&config, "loud", "hello");
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert!(refused.stderr.contains("ASIDE_LOG is `loud`") && refused.stderr.contains("warn, info, debug"));
}
