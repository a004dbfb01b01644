//! The example: a front end of a few lines needs nothing else.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::TestFolders;

/// Runs the example, which `cargo test` builds together with the tests.
fn run(folders: &TestFolders, input: &str) -> String {
    let tests = std::env::current_exe().unwrap();
    let example = tests.parent().and_then(|folder| folder.parent()).unwrap().join("examples/line_front_end");
    let user = folders.user();
    let mut child = Command::new(example)
        .arg("sim/deepseek")
        .current_dir(folders.project())
        .env("ASIDE_CONFIG_DIR", user.config.unwrap())
        .env("ASIDE_DATA_DIR", user.data.unwrap())
        .env("ASIDE_STATE_DIR", user.state.unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn assert_in_order(output: &str, words: &[&str]) {
    let mut rest = output;
    for word in words {
        let (_, behind) = rest.split_once(word).unwrap_or_else(|| panic!("no {word:?} behind the others in {output}"));
        rest = behind;
    }
}

#[test]
fn it_prints_answers_and_runs_commands() {
    let folders = TestFolders::new("line-answers");
    let output = run(&folders, "sim: think seed=1\n/model\n/frobnicate\n/undo\n/title Moss\n/quit\nnot read\n");
    let expected = [
        "model: sim/deepseek\nthinking:\n",
        "\nanswer:\n",
        "\nmodel: sim/deepseek\n",
        "unknown command `/frobnicate`\n",
        "undone: sim: think seed=1\n",
    ];
    assert_in_order(&output, &expected);
    assert!(!output.contains("not read"), "{output}");
}

#[test]
fn it_answers_permission_questions() {
    let folders = TestFolders::new("line-questions");
    folders.write_config("[permissions]\nlist = \"ask\"\n");
    fs::write(folders.project().join("moss.txt"), "green").unwrap();
    let output = run(&folders, "sim: tool-loop 1\ny\nsim: tool-loop 1\nn\n");
    assert_in_order(&output, &["tool: list\n", "allow? y or n\nthinking:", "allow? y or n\nfailed: ", "\nsaved as "]);
}

#[test]
fn an_error_before_the_session_is_reported() {
    let folders = TestFolders::new("line-error");
    folders.write_config("model = 3\n");
    let opened = aside_session::spawn(aside_session::SessionOptions::new(folders.project(), folders.user()));
    let error = opened.map(|handle| handle.setup.status).unwrap_err();
    assert!(error.to_string().ends_with("config.toml:1: model: expected text in quotes"), "{error}");
}
