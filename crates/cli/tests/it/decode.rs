use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{TestConfig, aside};

const STREAM: &str = "fixtures/deepseek/thinking_before_a_tool_call/response.sse";
const FAILED: &str = "fixtures/generic/error_after_some_text/response.sse";

#[test]
fn one_file_is_one_object() {
    let run = aside(&["decode", STREAM], b"", None);
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(reply["blocks"][0]["type"], "thinking");
    assert_eq!(reply["blocks"][1]["type"], "toolCall");
    assert_eq!(reply.get("file"), None);
    assert_eq!(reply.get("origin"), None);
}

#[test]
fn standard_input_reads_like_a_file() {
    let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(STREAM)).unwrap();
    let file = aside(&["decode", STREAM], b"", None);
    for arguments in [&["decode"][..], &["decode", "-"]] {
        assert_eq!(aside(arguments, &bytes, None).stdout, file.stdout);
    }
}

#[test]
fn several_files_are_one_line_each_and_the_worst_exit_code_counts() {
    let run = aside(&["decode", STREAM, "no-such-file", FAILED], b"", None);
    let lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().map(|line| line["file"].as_str().unwrap()).collect::<Vec<_>>(), [STREAM, FAILED]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("cannot open no-such-file"), "{}", run.stderr);
    assert_eq!(aside(&["decode", STREAM, FAILED], b"", None).code, 1);
}

#[test]
fn events_are_one_line_each_and_the_last_one_is_ended() {
    let run = aside(&["decode", "--events", STREAM], b"", None);
    let lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((run.code, &lines.first().unwrap()["event"]), (0, &Value::from("opened")));
    assert_eq!(lines.last().unwrap()["event"], "ended");
    let labelled = aside(&["decode", "--events", STREAM, FAILED], b"", None).stdout;
    assert!(labelled.lines().all(|line| serde_json::from_str::<Value>(line).unwrap()["file"].is_string()));
}

#[test]
fn an_error_of_the_provider_is_exit_code_1_and_keeps_the_partial_reply() {
    let run = aside(&["decode", FAILED], b"", None);
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(run.code, 1);
    assert!(reply["error"]["message"].is_string());
    assert_ne!(reply["blocks"], Value::from(Vec::<Value>::new()));
}

#[test]
fn input_that_is_not_understood_is_exit_code_2_and_says_what_was_expected() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &[u8], &str)] = &[
        ("empty",            &["decode"],                                   b"",               "standard input is empty; expected a response of openai-chat"),
        ("plain text",       &["decode"],                                   b"hello\n",        "is of no protocol aside knows; expected a response of"),
        ("binary",           &["decode"],                                   b"\xff\xfe\x00\x7f", "is of no protocol aside knows"),
        ("wrong protocol",   &["decode", "--protocol", "gemini", STREAM],   b"",               "was not understood as gemini: none of"),
        ("unknown protocol", &["decode", "--protocol", "smtp"],             b"",               "unknown protocol `smtp`; use openai-chat"),
        ("unknown dialect",  &["decode", "--dialect", "acme", STREAM],      b"",               "unknown dialect `acme`"),
        ("both, apart",      &["decode", "--dialect", "kimi", "--protocol", "gemini", STREAM], b"", "dialect `kimi` speaks openai-chat, not gemini"),
        ("too large",        &["decode", "--max-event", "20"],              b"{\"choices\":[{\"delta\":{}}]}", "raise the limit"),
    ];
    for (name, arguments, stdin, expected) in cases {
        let run = aside(arguments, stdin, None);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{name}");
        assert!(run.stderr.contains(expected), "{name}: {}", run.stderr);
    }
}

#[test]
fn a_dialect_is_named_or_detected_from_the_model() {
    for dialect in ["deepseek", "auto"] {
        let reply: Value =
            serde_json::from_str(&aside(&["decode", "--dialect", dialect, STREAM], b"", None).stdout).unwrap();
        assert_eq!(reply["origin"]["dialect"], "deepseek", "{dialect}");
        assert_eq!(reply["origin"]["model"], reply["model"], "{dialect}");
    }
}

#[test]
fn the_users_own_dialects_are_read_and_their_errors_reported() {
    let config = TestConfig::new("dialects");
    let file = config.0.join("dialects/acme.toml");
    fs::write(&file, "id = \"acme\"\nprotocol = \"openai-chat\"\n[read]\ntext = [\"pondering\"]\n").unwrap();
    let body = br#"{"choices":[{"message":{"pondering":"why","content":"so"},"finish_reason":"stop"}]}"#;
    let run = aside(&["decode", "--dialect", "acme"], body, Some(&config));
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["blocks"][0]["sourceField"], "pondering");

    fs::write(&file, "id = \"acme\"\nprotocol = \"openai-chat\"\n[read]\ntxt = []\n").unwrap();
    let run = aside(&["decode"], body, Some(&config));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("acme.toml:4: read.txt: unknown field"), "{}", run.stderr);
}

#[test]
fn help_names_every_command_that_works() {
    let help = aside(&["--help"], b"", None);
    assert_eq!(help.code, 0);
    assert!(help.stdout.contains("decode"));
    assert!(aside(&["decode", "--help"], b"", None).stdout.contains("Exit code: 0 decoded"));
    assert_eq!(aside(&[], b"", None).code, 2);
}
