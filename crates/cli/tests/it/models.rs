use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{RunOutput, TestConfig, aside, run};

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
    let run = aside(&["models", "--rules"], b"", None);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    for id in PROVIDERS {
        assert!(run.stdout.lines().any(|line| line == id), "{id} is not shown");
    }
    let long: Vec<&str> = run.stdout.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn one_dialect_is_shown_with_its_rules() {
    let run = aside(&["models", "--rules", "deepseek"], b"", None);
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
    let run = aside(&["models", "--rules", "--json"], b"", None);
    let all: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    for id in PROVIDERS {
        assert!(all.iter().any(|dialect| dialect["id"] == id), "{id} is not shown");
    }
    let one: Value = serde_json::from_str(&aside(&["models", "--rules", "--json", "kimi"], b"", None).stdout).unwrap();
    assert_eq!(one.as_array().map(Vec::len), Some(1));
    let kimi = &one[0];
    assert_eq!((&kimi["echo"]["carrier"], &kimi["echo"]["loop"]), (&Value::from("field"), &Value::from("must")));
    assert_eq!(kimi["ask"]["off"]["thinking"]["type"], "disabled");
    assert_eq!(kimi["model"][0]["match"][0], "kimi-k3*");
    assert_eq!(kimi["model"][0]["ask"]["off"], "unsupported");
}

#[test]
fn an_unknown_dialect_is_refused_with_the_known_ones() {
    let run = aside(&["models", "--rules", "acme"], b"", None);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("unknown dialect `acme`") && run.stderr.contains("deepseek"), "{}", run.stderr);
}

/// Runs the binary with only these variables.
fn with_env(config: Option<&TestConfig>, arguments: &[&str], env: &[(&str, &str)]) -> RunOutput {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    command.env_clear().envs(env.iter().copied()).args(arguments).current_dir(root);
    run(&mut command, b"", config)
}

fn ids(run: &RunOutput) -> Vec<String> {
    let list: Vec<Value> = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stdout));
    list.iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn models_are_one_line_each_with_their_sources() {
    let run = with_env(None, &["models", "openai/gpt-5.5"], &[]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let lines: Vec<Vec<&str>> = run.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["MODEL", "WINDOW", "OUTPUT", "PRICE", "IMAGES", "EFFORT", "FROM"]);
    assert_eq!(
        lines[1],
        ["openai/gpt-5.5", "922000", "128000", "5/30", "yes", "low", "medium", "high", "xhigh", "table", "2026-07-02"]
    );
}

#[test]
fn a_filter_needs_all_its_words_and_json_names_every_source() {
    let run = with_env(None, &["models", "--json", "OPENAI", "gpt-5.4"], &[]);
    let list: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    assert!(list.iter().all(|model| model["id"].as_str().unwrap().contains("gpt-5.4")));
    let model = list.iter().find(|model| model["id"] == "openai/gpt-5.4").expect("listed");
    let table = json!({ "from": "table", "date": "2026-07-02" });
    assert_eq!(
        *model,
        json!({
            "id": "openai/gpt-5.4", "provider": "openai", "dialect": "openai", "model": "gpt-5.4",
            "context": 1_050_000, "input": 922_000, "output": 128_000,
            "price": {
                "input": 2.5, "output": 15.0, "cacheRead": 0.25, "cacheWrite": null,
                "tiers": [{ "from": 272_000, "input": 5.0, "output": 22.5, "cacheRead": 0.5 }],
            },
            "images": true, "efforts": ["low", "medium", "high", "xhigh"], "thinks": true, "status": null,
            "sources": {
                "context": table, "input": table, "output": table, "price": table, "images": table,
                "efforts": { "from": "dialect", "date": null }, "thinks": { "from": "dialect", "date": null },
            },
        })
    );
}

#[test]
fn providers_with_a_key_come_first_and_deprecated_models_last() {
    let env = [("DEEPSEEK_API_KEY", "k")];
    let usual = ids(&with_env(None, &["models", "--json"], &env));
    assert!(!usual.is_empty() && usual.iter().all(|id| id.starts_with("deepseek/")), "{usual:?}");
    assert!(!usual.contains(&"deepseek/deepseek-chat".to_owned()), "retired");
    let all = ids(&with_env(None, &["models", "--json", "--all"], &env));
    for id in ["deepseek/deepseek-chat", "deepseek-anthropic/deepseek-v4-pro", "openai/gpt-5", "azure/gpt-5"] {
        assert!(all.contains(&id.to_owned()), "{id}");
    }
    let none = with_env(None, &["models", "deepseekk"], &env);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
    assert!(none.stderr.contains("no model matches; --all lists those of all providers"), "{}", none.stderr);
    assert_eq!(with_env(None, &["models", "--json", "deepseekk"], &env).stdout, "[]\n");
}

#[test]
fn the_users_table_and_config_win_row_by_row() {
    let config = TestConfig::with(
        "own-table",
        "[providers.openai.models.\"gpt-5-mini\"]\ncontext_limit = 1234\nprice = { input = 7, output = 8 }\n",
    );
    let header = "dialect model context input output price_in price_out cache_read cache_write tiers image thinks efforts status";
    let row = ["openai", "gpt-5", "5000", "", "", "1", "2", "", "", "", "no", "", "", ""].join("\t");
    let table = format!("# date 2026-11-01\n{}\n{row}\n", header.replace(' ', "\t"));
    fs::write(config.0.join("models.tsv"), &table).unwrap();
    let run = with_env(Some(&config), &["models", "--json", "openai/gpt-5"], &[]);
    let list: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    let model = |name: &str| list.iter().find(|model| model["model"] == name).expect("listed").clone();
    let own = model("gpt-5");
    assert_eq!((&own["context"], &own["price"]["output"], &own["images"]), (&json!(5000), &json!(2.0), &json!(false)));
    assert_eq!(own["sources"]["context"], json!({ "from": "user", "date": "2026-11-01" }));
    assert_eq!(own["output"], Value::Null, "the user's row replaces the built-in one as a whole");
    let configured = model("gpt-5-mini");
    assert_eq!((&configured["context"], &configured["price"]["input"]), (&json!(1234), &json!(7.0)));
    assert_eq!(configured["sources"]["price"]["from"], "user");
    assert_eq!(model("gpt-5-nano")["sources"]["context"]["from"], "table");

    fs::write(config.0.join("models.tsv"), table.replace("5000", "many")).unwrap();
    let broken = with_env(Some(&config), &["models"], &[]);
    assert_eq!(broken.code, 2);
    assert!(broken.stderr.contains("models.tsv:3: context: `many` is not valid"), "{}", broken.stderr);
}

/// Answers one request with a list of models, and returns the request.
fn serve_list(listener: &TcpListener, list: &Value) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the request ends early");
        request.extend_from_slice(&buffer[..count]);
    }
    let body = list.to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    String::from_utf8(request).unwrap()
}

#[test]
fn a_live_list_is_asked_with_the_key_and_counts_more_than_the_table() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let config = TestConfig::with("live", &format!("[providers.openai]\nbase_url = \"{url}\"\n"));
    let list = json!({"data": [{"id": "gpt-5", "context_window": 77_000}, {"id": "brand-new"}]});
    let server = std::thread::spawn(move || serve_list(&listener, &list));
    let config_path = config.0.clone();
    let output = Command::new(env!("CARGO_BIN_EXE_aside"))
        .env_clear()
        .env("ASIDE_CONFIG_DIR", &config_path)
        .env("OPENAI_API_KEY", "sk-test")
        .args(["models", "--live", "--json", "openai"])
        .output()
        .unwrap();
    let request = server.join().unwrap();
    assert!(request.starts_with("GET /v1/models HTTP/1.1\r\n"), "{request}");
    assert!(request.to_lowercase().contains("authorization: bearer sk-test"), "{request}");
    let list: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let found: Vec<&str> = list.iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(found, ["openai/brand-new", "openai/gpt-5"]);
    assert_eq!((&list[1]["context"], &list[1]["sources"]["context"]["from"]), (&json!(77_000), &json!("live")));
    assert_eq!(list[1]["sources"]["price"]["from"], "table");
}

#[test]
fn a_live_list_that_fails_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let config = TestConfig::with(
        "live-fails",
        &format!("[providers.mine]\nprotocol = \"openai-chat\"\nbase_url = \"{url}\"\n"),
    );
    let server = std::thread::spawn(move || serve_list(&listener, &json!({"error": "no"})));
    let run = with_env(Some(&config), &["models", "--live", "mine"], &[]);
    server.join().unwrap();
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.contains("mine: the answer is not a list of models"), "{}", run.stderr);
}

#[test]
fn a_bare_name_finds_its_provider_and_a_wrong_one_is_answered_with_similar_names() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let config = TestConfig::with("bare", &format!("[providers.openai]\nbase_url = \"{url}\"\n"));
    let run = with_env(Some(&config), &["ask", "--no-save", "--no-tools", "-m", "gpt-5", "hi"], &[]);
    assert!(run.stderr.starts_with("using openai/gpt-5\n"), "{}", run.stderr);
    let wrong = with_env(Some(&config), &["ask", "-m", "claude-sonet-5", "hi"], &[]);
    assert_eq!(wrong.code, 2);
    let hint = wrong.stderr.lines().find(|line| line.contains("did you mean")).expect("a hint");
    assert!(hint.contains("anthropic/claude-sonnet-5") && hint.matches('/').count() <= 3 * 2, "{hint}");
}
