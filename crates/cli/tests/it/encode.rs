//! `encode`, `explain` and `judge` on one conversation.

use serde_json::Value;

use crate::support::aside;

const CONVERSATION: &str = "examples/conversation.jsonl";

fn body(model: &str) -> Value {
    let run = aside(&["encode", "-m", model, CONVERSATION], b"", None);
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn the_body_is_in_each_providers_form() {
    let deepseek = body("deepseek/deepseek-v4-pro");
    assert_eq!(
        deepseek["messages"][2]["reasoning_content"], "",
        "thinking of another provider is not sent; the field is"
    );
    assert_eq!(deepseek["messages"][4]["reasoning_content"], "I need the tide at 18:00 before I can say.");
    let claude = body("anthropic/claude-sonnet-5");
    assert_eq!(claude["messages"][1]["content"][0]["signature"], "c2VhbC1vbmU=");
    assert!(!claude.to_string().contains("I need the tide"));
    let gemini = body("gemini/gemini-3-pro");
    assert!(
        gemini["contents"][3]["parts"][0]["thoughtSignature"].is_string(),
        "a call of another provider gets the dummy signature"
    );
}

#[test]
fn full_prints_url_and_headers_and_never_a_key() {
    let run = aside(&["encode", "--full", "-m", "deepseek/deepseek-v4-pro", CONVERSATION], b"", None);
    let full: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(full["method"], "POST");
    assert!(full["url"].as_str().unwrap().ends_with("/chat/completions"));
    assert_eq!(full["headers"]["authorization"], "Bearer ***");
    assert_eq!(full["body"], body("deepseek/deepseek-v4-pro"));
}

#[test]
fn explain_shows_decisions_and_reasons_as_text_and_json() {
    let run = aside(&["explain", CONVERSATION], b"", None);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("because: made by anthropic, claude-sonnet-5"), "{}", run.stdout);
    assert!(run.stdout.contains("as reasoning_content, because: echo.loop = must"), "{}", run.stdout);
    let json: Value = serde_json::from_str(&aside(&["explain", "--json", CONVERSATION], b"", None).stdout).unwrap();
    let decisions = json["decisions"].as_array().unwrap();
    assert_eq!((json["dialect"].as_str(), decisions.len()), (Some("deepseek"), 9));
    let withheld =
        aside(&["explain", "--json", "--set", "reasoning.includeInContext=false", CONVERSATION], b"", None).stdout;
    let withheld: Value = serde_json::from_str(&withheld).unwrap();
    let why = withheld["decisions"].as_array().unwrap().iter().find(|decision| decision["kind"] == "thinking").unwrap();
    assert_eq!((&why["action"], &why["layer"]), (&Value::from("dropped"), &Value::from("run")));
}

#[test]
fn e17_an_image_that_cannot_be_sent_is_named_with_the_reason() {
    let image = r#"{"role":"user","blocks":[{"type":"text","text":"What is it?"},{"type":"image","mediaType":"image/png","data":"aGk="}]}"#;
    let arguments = ["-m", "cohere/command-a-reasoning-08-2025", "-"];
    let of = |command: &[&str]| aside(&[command, &arguments].concat(), image.as_bytes(), None);
    let why = "the cohere protocol has no images in user messages";
    let json: Value = serde_json::from_str(&of(&["explain", "--json"]).stdout).unwrap();
    assert_eq!(json["leftOut"], serde_json::json!([{ "path": "messages[0].blocks[1]", "why": why }]));
    assert_eq!(json["decisions"][1]["action"], "dropped");
    let text = of(&["explain"]).stdout;
    assert!(text.contains(&format!("not sent: messages[0].blocks[1]: {why}\n")), "{text}");
    let encoded = of(&["encode"]);
    assert!(encoded.stderr.contains(&format!("messages[0].blocks[1] is not sent: {why}")), "{}", encoded.stderr);
    assert_eq!(encoded.code, 0);
}

fn explained(model: &str, more: &[&str]) -> Value {
    let arguments = [&["explain", "--json", "-m", model, CONVERSATION], more].concat();
    let run = aside(&arguments, b"", None);
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn c4_blocks_are_counted_exactly_where_the_vocabulary_is_public() {
    let of_text = |explained: &Value| {
        let decisions = explained["decisions"].as_array().unwrap();
        let text = decisions.iter().find(|decision| decision["kind"] == "text").unwrap();
        (text["tokens"].as_u64().unwrap(), text["estimated"].as_bool().unwrap())
    };
    let (exact, estimated) = of_text(&explained("openai/gpt-5.6", &[]));
    let (high, also_estimated) = of_text(&explained("anthropic/claude-sonnet-5", &[]));
    assert_eq!((estimated, also_estimated), (false, true));
    assert!(high > exact && exact > 0, "{high} and {exact}");
}

#[test]
fn c2_explain_shows_the_use_of_the_limit_and_the_thinking_held_back() {
    let first_line = |model: &str, more: &[&str]| {
        let run = aside(&[&["explain", "-m", model, CONVERSATION], more].concat(), b"", None);
        run.stdout.lines().next().unwrap().to_owned()
    };
    let limited = first_line("anthropic/claude-sonnet-5", &["--set", "context.limit=50000"]);
    assert!(
        limited.starts_with("to anthropic, model claude-sonnet-5: ~") && limited.contains("/50k tokens"),
        "{limited}"
    );
    let withheld = ["--set", "reasoning.includeInContext=false"];
    let line = first_line("openai/gpt-5.6", &withheld);
    assert!(line.contains("/922k tokens") && line.ends_with("of thinking held back"), "{line}");
    let all = explained("anthropic/claude-sonnet-5", &withheld);
    let some = explained("anthropic/claude-sonnet-5", &[]);
    assert_eq!(all["limit"], 1_000_000);
    assert!(all["heldBack"].as_u64() > some["heldBack"].as_u64(), "{} and {}", all["heldBack"], some["heldBack"]);
    assert!(all["tokens"].as_u64() < some["tokens"].as_u64(), "what is held back is not counted");
}

#[test]
fn the_judge_accepts_what_encode_builds_and_refuses_what_a_client_forgets() {
    for model in ["deepseek/deepseek-v4-pro", "anthropic/claude-sonnet-5", "gemini/gemini-3-pro", "openai/gpt-5.6"] {
        let built = aside(&["encode", "-m", model, CONVERSATION], b"", None).stdout;
        let dialect = model.split('/').next().unwrap();
        let name = model.split('/').nth(1).unwrap();
        let run = aside(&["judge", "--dialect", dialect, "-m", name, "--after", CONVERSATION], built.as_bytes(), None);
        assert_eq!(run.code, 0, "{model}: {}", run.stdout);
    }
    let mut forgetful = body("deepseek/deepseek-v4-pro");
    for message in forgetful["messages"].as_array_mut().unwrap() {
        message.as_object_mut().unwrap().remove("reasoning_content");
    }
    let run = aside(&["judge", "--dialect", "deepseek"], forgetful.to_string().as_bytes(), None);
    let verdict: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, &verdict["ok"]), (1, &Value::from(false)));
    assert_eq!(verdict["broken"][0]["status"], 400);
    let message = verdict["broken"][0]["body"]["error"]["message"].as_str().unwrap();
    assert_eq!(message, "The `reasoning_content` in the thinking mode must be passed back to the API.");
}

#[test]
fn wrong_usage_is_exit_code_2_with_a_hint() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &[u8], &str)] = &[
        ("no model",        &["encode"],                                             b"{\"role\":\"user\"}", "no model is named"),
        ("no provider",     &["encode", "-m", "gpt"],                                b"",                    "`gpt` names no provider"),
        ("unknown dialect", &["encode", "-m", "x", "--dialect", "nope"],             b"",                    "unknown dialect `nope`"),
        ("bad line",        &["encode", "-m", "kimi/k3"],                            b"hello",               "line 1: not JSON"),
        ("bad setting",     &["explain", "--set", "reasoning.effort=huge", CONVERSATION], b"",               "minimal, low, medium, high, xhigh, max"),
        ("bad body",        &["judge", "--dialect", "kimi"],                         b"{",                   "not JSON"),
        ("no such file",    &["encode", "-m", "kimi/k3", "no-such-file"],            b"",                    "cannot read no-such-file"),
    ];
    for (name, arguments, stdin, expected) in cases {
        let run = aside(arguments, stdin, None);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{name}");
        assert!(run.stderr.contains(expected), "{name}: {}", run.stderr);
    }
}
