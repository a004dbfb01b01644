use serde_json::Value;

use crate::support::aside;

/// The provider ids of product.md, without the simulator.
const PROVIDERS: [&str; 29] = [
    "openai",
    "openai-chat",
    "azure",
    "anthropic",
    "gemini",
    "gemini-openai",
    "deepseek",
    "kimi",
    "minimax",
    "zai",
    "qwen",
    "openrouter",
    "xai",
    "mistral",
    "cohere",
    "bedrock",
    "groq",
    "cerebras",
    "together",
    "fireworks",
    "copilot",
    "litellm",
    "vllm",
    "sglang",
    "llamacpp",
    "lmstudio",
    "ollama",
    "ollama-openai",
    "generic",
];

#[test]
fn every_provider_is_shown_within_80_columns() {
    let run = aside(&["models"], b"", None);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    for id in PROVIDERS {
        assert!(run.stdout.lines().any(|line| line == id), "{id} is not shown");
    }
    let long: Vec<&str> = run.stdout.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn one_dialect_is_shown_with_its_rules() {
    let run = aside(&["models", "deepseek"], b"", None);
    for line in [
        "  protocol        openai-chat",
        "  url             https://api.deepseek.com",
        "  key             DEEPSEEK_API_KEY",
        "  sent back       in reasoning_content, by default",
        "  in tool loop    must be sent back",
        "  across turns    must be sent back if tools are offered, else ignored",
        "  filler          \"\" in every message without thinking",
        "  off             thinking.type=disabled",
        "  budget          none",
        "  models          deepseek-reasoner*",
        "    across turns  must not be sent back",
    ] {
        assert!(run.stdout.lines().any(|shown| shown == line), "missing {line:?} in\n{}", run.stdout);
    }
    assert!(run.stdout.contains("  effort          reasoning_effort: low, high, max"), "{}", run.stdout);
    assert!(!run.stdout.lines().any(|line| line == "kimi"));
}

#[test]
fn json_is_one_array_with_the_keys_of_the_files() {
    let run = aside(&["models", "--json"], b"", None);
    let all: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    for id in PROVIDERS {
        assert!(all.iter().any(|dialect| dialect["id"] == id), "{id} is not shown");
    }
    let one: Value = serde_json::from_str(&aside(&["models", "--json", "kimi"], b"", None).stdout).unwrap();
    assert_eq!(one.as_array().map(Vec::len), Some(1));
    let kimi = &one[0];
    assert_eq!((&kimi["echo"]["carrier"], &kimi["echo"]["loop"]), (&Value::from("field"), &Value::from("must")));
    assert_eq!(kimi["ask"]["off"]["thinking"]["type"], "disabled");
    assert_eq!(kimi["model"][0]["match"][0], "kimi-k3*");
    assert_eq!(kimi["model"][0]["ask"]["off"], "unsupported");
}

#[test]
fn an_unknown_dialect_is_refused_with_the_known_ones() {
    let run = aside(&["models", "acme"], b"", None);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("unknown dialect `acme`") && run.stderr.contains("deepseek"), "{}", run.stderr);
}
