//! `aside ask` with the built-in simulator: output and exit code for every kind of
//! turn.

use std::fs;

use aside_core::dialect::Dialects;
use serde_json::Value;

use crate::support::{RunOutput, TestConfig, aside};

fn ask(arguments: &[&str]) -> RunOutput {
    let all: Vec<&str> = ["ask"].iter().chain(arguments).copied().collect();
    aside(&all, b"", None)
}

#[test]
fn the_first_run_works_on_a_fresh_machine_and_says_who_answers() {
    let run = ask(&["What is this?"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.starts_with("sim/deepseek: no model chosen"), "{}", run.stderr);
    assert!(run.stdout.contains("simulator") && run.stdout.contains("What is this?"), "{}", run.stdout);
    assert!(run.stdout.ends_with('\n'));
}

#[test]
fn t14_every_dialect_answers_and_no_thinking_reaches_standard_output() {
    let dialects = Dialects::builtin().unwrap();
    for dialect in dialects.iter() {
        let model = format!("sim/{}", dialect.id);
        let run = ask(&["-m", &model, "--thinking", "show", "hello"]);
        assert_eq!(run.code, 0, "{model}: {}", run.stderr);
        assert!(run.stdout.contains(&format!("imitating `{}`", dialect.id)), "{model}: {}", run.stdout);
        assert_eq!(run.stdout.lines().count(), 1, "{model}: {}", run.stdout);
        assert!(!run.stdout.contains("think>"), "{model}: {}", run.stdout);
    }
}

#[test]
fn t14_thinking_is_shown_hidden_or_shown_alone() {
    let think = |view: &str| ask(&["-m", "sim/kimi", "--thinking", view, "--no-tools", "hello"]);
    let (show, hide, only) = (think("show"), think("hide"), think("only"));
    assert!(!show.stderr.is_empty() && !show.stdout.is_empty());
    assert_eq!((hide.stderr.as_str(), &hide.stdout), ("", &show.stdout));
    assert_eq!((only.stdout.as_str(), &only.stderr), ("", &show.stderr));
    let default = ask(&["-m", "sim/kimi", "--no-tools", "hello"]);
    assert_eq!(default.stderr, "", "a pipe gets no thinking unless asked");
}

#[test]
fn each_failure_has_its_message_and_exit_code() {
    #[rustfmt::skip]
    let cases = [
        ("sim: reasoning-only",       3, "Model provided reasoning but no response. Try rephrasing your question."),
        ("sim: empty",                1, "the model sent nothing at all"),
        ("sim: cut 300",              1, "was lost"),
        ("sim: status 500 times=1",   0, "trying again"),
        ("sim: status 401",           1, "hint: check the key"),
        ("sim: malformed",            0, "note: frame"),
        ("sim: content-type",         0, ""),
        ("sim: nonsense",             1, "the simulator knows: plain, think"),
    ];
    for (prompt, code, said) in cases {
        let run = ask(&["-m", "sim/deepseek", prompt]);
        assert_eq!(run.code, code, "{prompt}: {}", run.stderr);
        assert!(run.stderr.contains(said), "{prompt}: {}", run.stderr);
    }
}

#[test]
fn wrong_usage_is_reported_with_a_hint() {
    #[rustfmt::skip]
    let cases: [(&[&str], &str, &str); 5] = [
        (&[],                                         "there is nothing to ask",                  "hint: aside ask"),
        (&["-m", "nobody/m", "hi"],                   "`nobody/m` names no provider",             "aside models --all lists"),
        (&["-m", "sim/nobody", "hi"],                 "the simulator knows no dialect `nobody`",  "aside models --rules lists"),
        (&["-m", "deepseek/deepseek-chat", "hi"],     "`deepseek` needs a key",                   "export DEEPSEEK_API_KEY="),
        (&["-m", "sim/kimi", "--set", "x=1", "hi"],   "unknown setting",                          "reasoning.effort"),
    ];
    for (arguments, what, hint) in cases {
        let run = ask(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(what) && run.stderr.contains(hint), "{arguments:?}: {}", run.stderr);
    }
}

#[test]
fn piped_input_is_part_of_the_prompt() {
    let run = aside(&["ask", "-m", "sim/kimi", "sum this up:"], b"one\ntwo\n", None);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run = aside(&["ask", "-m", "sim/kimi"], b"sim: echo\nfrom the pipe", None);
    assert!(run.stdout.contains("from the pipe"), "{}", run.stdout);
}

#[test]
fn json_has_one_typed_event_per_line_and_ends_with_the_answer() {
    let run = ask(&["-m", "sim/openai", "--json", "hello"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let events: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"request"), Some(&"answer")));
    for name in ["opened", "grew", "sealed", "closed", "usage", "ended"] {
        assert!(names.contains(&name), "{name} is missing: {names:?}");
    }
    let times: Vec<u64> = events.iter().map(|event| event["at"].as_u64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let grown: String = events
        .iter()
        .filter(|event| event["event"] == "grew" && event["block"] == 1)
        .map(|event| event["text"].as_str().unwrap())
        .collect();
    assert_eq!(events.last().unwrap()["text"], grown.as_str());
    assert_eq!(events.iter().filter(|event| event["event"] == "request").count(), 1);
}

#[test]
fn a_recording_contains_the_bytes_and_no_key() {
    let config = TestConfig::with(
        "recording",
        "[providers.work]\nprotocol = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1\"\napi_key_cmd = \"echo sk-secret\"\n",
    );
    let file = config.0.join("tape.jsonl");
    let path = file.to_str().unwrap();
    let run = aside(&["ask", "-m", "sim/kimi", "--record", path, "hello"], b"", Some(&config));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines[0]["dialect"].as_str(), lines[0]["protocol"].as_str()), (Some("kimi"), Some("openai-chat")));
    let messages = lines[1]["body"]["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap()["content"], "hello");
    let bytes: String = lines.iter().filter_map(|line| line["text"].as_str()).collect();
    assert!(bytes.contains("data: [DONE]"), "{bytes}");
    // It does not contain the key of the request.
    let other = config.0.join("other.jsonl");
    let run = aside(&["ask", "-m", "work/m", "--record", other.to_str().unwrap(), "hello"], b"", Some(&config));
    assert_eq!(run.code, 1, "nobody listens: {}", run.stderr);
    assert!(!fs::read_to_string(&other).unwrap().contains("sk-secret") && !run.stderr.contains("sk-secret"));
}

#[test]
fn a_recording_is_a_new_private_file_and_follows_no_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let config = TestConfig::new("recording-new");
    let record = |name: &str| {
        let path = config.0.join(name);
        let run = aside(&["ask", "-m", "sim/kimi", "--record", path.to_str().unwrap(), "hello"], b"", Some(&config));
        (run.code, path)
    };
    let (code, path) = record("new.jsonl");
    assert_eq!((code, fs::metadata(&path).unwrap().permissions().mode() & 0o777), (0, 0o600));
    fs::write(config.0.join("precious"), "mine").unwrap();
    symlink("precious", config.0.join("link")).unwrap();
    symlink("nowhere", config.0.join("dangling")).unwrap();
    for name in ["precious", "link", "dangling"] {
        assert_eq!(record(name).0, 2, "{name}");
    }
    assert_eq!(fs::read_to_string(config.0.join("precious")).unwrap(), "mine");
    assert!(!config.0.join("nowhere").exists(), "a link leads nowhere");
}
