//! Commands that print untrusted text to a terminal: no escapes get through (T9).
#![cfg(unix)]

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::TestConfig;

/// Runs a command on a pty and returns everything it writes.
fn run_on_terminal(config: &TestConfig, arguments: &[&str]) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let end = || Stdio::from(terminal.try_clone().unwrap());
    let mut child = Command::new(env!("CARGO_BIN_EXE_aside"))
        .args(arguments)
        .env("ASIDE_CONFIG_DIR", &config.0)
        .env("ASIDE_DATA_DIR", config.0.join("data"))
        .current_dir(config.project())
        .stdin(Stdio::null())
        .stdout(end())
        .stderr(end())
        .spawn()
        .unwrap();
    drop(terminal);
    let mut bytes = Vec::new();
    // After the last writer closes the pty, reading fails; that is the end.
    drop(File::from(master).read_to_end(&mut bytes));
    child.wait().unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Removes the escapes that aside itself writes (colours, styles, clearing a line),
/// and marks all others.
fn strip_own_escapes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let end = after.find(|letter: char| !letter.is_ascii_digit() && letter != ';').unwrap_or(0);
        let (escape, after) = after.split_at_checked(end + 1).unwrap_or((after, ""));
        let ours = ["0m", "1m", "2m", "3m", "22m", "23m", "2;3m", "2K", "K"].contains(&escape);
        out.push_str(if ours { "" } else { "FOREIGN" });
        rest = after;
    }
    out + rest
}

#[test]
fn t9_escapes_in_untrusted_text_do_not_reach_a_terminal() {
    let config = TestConfig::new("terminal");
    let hostile = "Left\u{1b}[31;1m\u{1b}[2J\u{1b}]0;owned\u{7}\u{1b}]8;;http://evil\u{1b}\\\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}P1$r\u{1b}\\\u{9b}2J\u{9d}0;owned\u{9c}\u{7}\u{8}\u{202e}\u{2066}\u{200f}\u{e0041}Right";
    let ask = ["ask", "-m", "sim/generic:echo", "--thinking", "show", hostile];
    // A title is shortened, and search results contain no control characters, so
    // these show only the beginning.
    #[rustfmt::skip]
    let runs: [(&str, &[&str], &str); 6] = [
        ("ask",           &ask,                                          "LeftRight"),
        ("sessions show", &["sessions", "show", "--thinking", "full"],   "LeftRight"),
        ("sessions list", &["sessions", "list"],                         "Left"),
        ("search",        &["search", "Left"],                           "Left"),
        ("usage",         &["usage", "--by", "session"],                 "replies"),
        ("an error",      &["ask", "-m", hostile, "x"],                  "LeftRight"),
    ];
    for (name, arguments, words) in runs {
        let shown = strip_own_escapes(&run_on_terminal(&config, arguments));
        assert!(shown.contains(words), "{name}: {shown:?}");
        for wrong in ["FOREIGN", "\u{202e}", "\u{2066}", "\u{200f}", "\u{e0041}"] {
            assert!(!shown.contains(wrong), "{name}: {shown:?}");
        }
        for payload in ["owned", "evil", "ZXZ"].into_iter().filter(|_| words == "LeftRight") {
            assert!(!shown.contains(payload), "{name}: {shown:?}");
        }
        let control = shown.chars().find(|letter| letter.is_control() && !matches!(letter, '\r' | '\n'));
        assert_eq!(control, None, "{name}: {shown:?}");
    }
}

#[test]
fn t9_no_command_prints_escapes_to_a_terminal() {
    let config = TestConfig::new("terminal-all");
    let hostile = "Left\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}2J\u{9d}0;owned\u{9c}\u{7f}\u{202e}\u{2066}\u{200b}\u{2028}\u{e0041}Right";
    run_on_terminal(&config, &["ask", "-m", "sim/generic:echo", "--record", "tape", hostile]);
    let tape = config.project().join("tape");
    let response = config.0.join("response.json");
    let body = serde_json::json!({ "choices": [{ "message": { "content": hostile }, "finish_reason": "stop" }] });
    std::fs::write(&response, body.to_string()).unwrap();
    let conversation = config.0.join("conversation.jsonl");
    let line = serde_json::json!({ "role": "user", "blocks": [{ "type": "text", "text": hostile }] });
    std::fs::write(&conversation, line.to_string()).unwrap();
    let (tape, response) = (tape.to_str().unwrap(), response.to_str().unwrap());
    let conversation = conversation.to_str().unwrap();
    let nowhere = format!("nowhere-{hostile}");
    #[rustfmt::skip]
    let runs: [(&str, Vec<&str>); 17] = [
        ("ask --json",        vec!["ask", "--json", "-m", "sim/generic:echo", hostile]),
        ("export markdown",   vec!["sessions", "export"]),
        ("export jsonl",      vec!["sessions", "export", "--format", "jsonl"]),
        ("list --json",       vec!["sessions", "list", "--json"]),
        ("search --json",     vec!["search", "--json", "Left"]),
        ("usage --json",      vec!["usage", "--json", "--by", "session"]),
        ("decode",            vec!["decode", response]),
        ("decode --events",   vec!["decode", "--events", response]),
        ("replay",            vec!["replay", "--speed", "0", tape]),
        ("encode",            vec!["encode", "-m", "deepseek/deepseek-chat", conversation]),
        ("explain",           vec!["explain", "-m", "deepseek/deepseek-chat", conversation]),
        ("explain --json",    vec!["explain", "--json", "-m", "deepseek/deepseek-chat", conversation]),
        ("a missing file",    vec!["decode", &nowhere]),
        ("a missing import",  vec!["sessions", "import", &nowhere]),
        ("an unknown option", vec!["ask", "--colour", hostile]),
        ("a wrong value",     vec!["search", "x", "--in", hostile]),
        ("an unknown word",   vec!["sessions", hostile]),
    ];
    for (name, arguments) in runs {
        let shown = strip_own_escapes(&run_on_terminal(&config, &arguments));
        assert!(!shown.is_empty() && !shown.contains("FOREIGN"), "{name}: {shown:?}");
        let wrong = |letter: &char| letter.is_control() && !matches!(letter, '\r' | '\n');
        let hidden = |letter: &char| matches!(letter, '\u{202e}' | '\u{2066}' | '\u{2028}' | '\u{e0041}');
        assert_eq!(shown.chars().find(|letter| wrong(letter) || hidden(letter)), None, "{name}: {shown:?}");
    }
}

#[test]
fn t9_json_is_escaped_in_a_pipe_too_and_means_the_same() {
    let config = TestConfig::new("pipe-json");
    let hostile = "Left\u{9b}2J\u{7f}\u{202e}\u{200b}\u{2028}Right";
    let run = |arguments: &[&str]| crate::support::aside(arguments, b"", Some(&config)).stdout;
    let events = run(&["ask", "--json", "-m", "sim/generic:echo", hostile]);
    let exported = run(&["sessions", "export", "--format", "jsonl"]);
    for (name, text) in [("events", &events), ("export", &exported), ("list", &run(&["sessions", "list", "--json"]))] {
        let raw =
            text.chars().find(|letter| matches!(letter, '\u{7f}'..='\u{9f}' | '\u{202e}' | '\u{200b}' | '\u{2028}'));
        assert_eq!(raw, None, "{name}");
    }
    let answer: serde_json::Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert!(answer["text"].as_str().unwrap().contains(hostile), "it means the same: {events}");
}
