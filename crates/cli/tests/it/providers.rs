//! Resolving providers: presets, tables of the config, the simulator.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{RunOutput, TestConfig, aside, run};

const CONVERSATION: &str = "examples/conversation.jsonl";

const OWN: &str = r#"
[providers.work]                       # a provider of your own
protocol = "openai-chat"
base_url = "http://127.0.0.1:9000/v1/"
dialect  = "kimi"
api_key_env = "WORK_KEY"
headers = { "x-team" = "blue", "X-Shift" = "day" }
[providers.work.models."kimi-*"]
extra_body = { top_k = 20, thinking = { keep = "none" }, model = "kimi-mine" }
headers = { "x-shift" = "night", "x-secret-token" = "hush" }
context_limit = 4711
price = { input = 0.6, output = 2.5, cached = 0.15 }
[providers.plain]
protocol = "openai-chat"
base_url = "http://unknown.example/v1"
[providers.shop]
protocol = "openai-chat"
base_url = "https://api.deepseek.com/beta"
[providers.claude]
protocol = "anthropic"
base_url = "https://gateway.example"
api_key_cmd = "echo k"
[providers.deepseek]
base_url = "http://127.0.0.1:1/d"
[providers.mine]
protocol = "openai-chat"
base_url = "https://mine.openai.azure.com/openai/v1"
dialect = "kimi"
api_key_env = "MINE"
[providers.keyless]
dialect = "kimi"
base_url = "https://gateway.example/v1"
[providers.twin]
dialect = "kimi"
[providers.azure]
base_url = "https://me.openai.azure.example/openai/deployments/d?api-version=2026-01-01"
"#;

/// Runs the binary with an empty environment.
fn clean(config: Option<&TestConfig>, arguments: &[&str], env: &[(&str, &str)]) -> RunOutput {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    command.env_clear().envs(env.iter().copied()).args(arguments).current_dir(root);
    run(&mut command, b"", config)
}

fn full(config: &TestConfig, model: &str) -> Value {
    let run = clean(Some(config), &["encode", "--full", "-m", model, CONVERSATION], &[]);
    assert_eq!(run.code, 0, "{model}: {}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

fn explained(config: &TestConfig, model: &str) -> Value {
    let run = clean(Some(config), &["explain", "--json", "-m", model, CONVERSATION], &[]);
    assert_eq!(run.code, 0, "{model}: {}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn a_configured_provider_gets_requests_as_its_table_says() {
    let config = TestConfig::with("own-provider", OWN);
    let sent = full(&config, "work/kimi-k3");
    assert_eq!(sent["url"], "http://127.0.0.1:9000/v1/chat/completions");
    let headers = json!({
        "content-type": "application/json", "authorization": "Bearer ***",
        "x-team": "blue", "x-shift": "night", "x-secret-token": "***",
    });
    assert_eq!(sent["headers"], headers);
    // The user's extra_body is merged over ours.
    assert_eq!((&sent["body"]["top_k"], &sent["body"]["model"]), (&json!(20), &json!("kimi-mine")));
    assert_eq!(sent["body"]["thinking"]["keep"], "none");
    let alone = clean(Some(&config), &["encode", "-m", "work/kimi-k3", CONVERSATION], &[]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&alone).unwrap(), sent["body"], "the body is the same without --full");
    // Another of its models has no extra_body and keeps the provider's header.
    let other = full(&config, "work/moonshot-v1-8k");
    assert_eq!((&other["body"]["top_k"], &other["headers"]["x-shift"]), (&Value::Null, &json!("day")));
}

#[test]
fn a_dialect_is_the_named_one_else_found_by_url_then_by_model_else_generic() {
    let config = TestConfig::with("own-dialect", OWN);
    #[rustfmt::skip]
    let cases = [
        ("work/anything",          "kimi"),
        ("shop/nobody-knows",      "deepseek"),
        ("plain/glm-5",            "zai"),
        ("plain/nobody-knows",     "generic"),
        ("claude/claude-sonnet-5", "anthropic"),
        ("deepseek/deepseek-chat", "deepseek"),
        ("sim/kimi:tool-loop",     "kimi"),
    ];
    for (model, dialect) in cases {
        assert_eq!(explained(&config, model)["dialect"], dialect, "{model}");
    }
    let said = clean(Some(&config), &["explain", "--json", "--dialect", "qwen", "-m", "plain/x", CONVERSATION], &[]);
    assert_eq!(serde_json::from_str::<Value>(&said.stdout).unwrap()["dialect"], "qwen", "{}", said.stderr);
}

#[test]
fn a_table_changes_a_preset_field_by_field_and_no_key_goes_to_another_url() {
    let config = TestConfig::with("preset", OWN);
    let deepseek = full(&config, "deepseek/deepseek-v4-pro");
    assert_eq!(deepseek["url"], "http://127.0.0.1:1/d/chat/completions");
    assert_eq!(deepseek["headers"]["authorization"], "Bearer ***", "the preset's variable still counts");
    let shop = full(&config, "shop/deepseek-v4-pro");
    assert_eq!(shop["headers"], json!({ "content-type": "application/json" }));
    let keyless = full(&config, "keyless/kimi-k3");
    assert_eq!(
        keyless["headers"],
        json!({ "content-type": "application/json" }),
        "the dialect's key is not for this URL"
    );
    let twin = full(&config, "twin/kimi-k3");
    assert_eq!(twin["url"], "https://api.moonshot.ai/v1/chat/completions");
    assert_eq!(twin["headers"]["authorization"], "Bearer ***", "its own URL, so its own key");
    let claude = full(&config, "claude/claude-sonnet-5");
    assert_eq!(claude["url"], "https://gateway.example/v1/messages");
    let headers = json!({ "content-type": "application/json", "x-api-key": "***", "anthropic-version": "2023-06-01" });
    assert_eq!(claude["headers"], headers);
    let azure = full(&config, "azure/gpt-5");
    assert_eq!(azure["headers"]["api-key"], "***");
    let url = "https://me.openai.azure.example/openai/deployments/d/chat/completions?api-version=2026-01-01";
    assert_eq!(azure["url"], url);
    assert_eq!(full(&config, "gemini/gemini-3-pro")["headers"]["x-goog-api-key"], "***");
    // Authentication depends on the host, not on the dialect.
    assert_eq!(full(&config, "mine/kimi-k3")["headers"]["api-key"], "***");
    let other =
        clean(None, &["encode", "--full", "-m", "kimi/kimi-k3", "--dialect", "kimi-anthropic", CONVERSATION], &[]);
    let other: Value = serde_json::from_str(&other.stdout).unwrap();
    assert_eq!(other["url"], "https://api.moonshot.ai/anthropic/v1/messages");
    assert_eq!(other["headers"]["x-api-key"], "***");
}

#[test]
fn e8_seals_of_a_preset_are_not_sent_to_a_configured_provider() {
    let config = TestConfig::with("own-origin", OWN);
    let sealed = |model: &str| {
        let decisions = explained(&config, model)["decisions"].as_array().unwrap().clone();
        let thought = decisions.into_iter().find(|decision| decision["kind"] == "thinking").unwrap();
        thought["action"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (sealed("anthropic/claude-sonnet-5"), sealed("claude/claude-sonnet-5")),
        ("verbatim".into(), "dropped".into())
    );
}

#[test]
fn missing_values_are_reported_only_where_they_are_needed() {
    #[rustfmt::skip]
    let cases = [
        ("azure/gpt-5",         "`azure` has no base URL of its own",  "[providers.azure] base_url"),
        ("bedrock/x",           "`bedrock` needs a region",            "AWS_REGION or AWS_DEFAULT_REGION"),
        ("generic/x",           "`generic` has no base URL",           "[providers.generic]"),
        ("sim/kimi",            "the simulator has no URL",            "leave --full out"),
        ("sim/nobody",          "the simulator knows no dialect `nobody`", "aside models --rules lists the dialects"),
        ("kimi/",               "`kimi/` names no model",              "did you mean kimi/"),
    ];
    for (model, what, hint) in cases {
        let run = clean(None, &["encode", "--full", "-m", model, CONVERSATION], &[]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{model}");
        assert!(run.stderr.contains(what) && run.stderr.contains(hint), "{model}: {}", run.stderr);
    }
    for model in ["azure/gpt-5", "bedrock/x", "sim/kimi"] {
        assert_eq!(clean(None, &["encode", "-m", model, CONVERSATION], &[]).code, 0, "the body needs no URL: {model}");
    }
    let arn = "bedrock/arn:aws:bedrock:eu-west-1:1:inference-profile/eu.x-v1:0";
    let run = clean(None, &["encode", "--full", "-m", arn, CONVERSATION], &[("AWS_DEFAULT_REGION", "eu-west-1")]);
    let sent: Value = serde_json::from_str(&run.stdout).unwrap();
    let url = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/\
               arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Feu.x-v1%3A0/converse-stream";
    assert_eq!(sent["url"], url);
}

#[test]
fn an_error_in_a_table_names_file_line_and_key_and_lists_the_valid_values() {
    #[rustfmt::skip]
    let cases = [
        ("unknown key",     "[providers.a]\nprotocol = \"openai-chat\"\nbase = \"x\"\n",                ":3: providers.a.base: unknown key",                 "protocol, base_url, path, vars, dialect, api_key_env, api_key_cmd, api_key_ttl, headers, models"),
        ("a key",           "[providers.a]\napi_key = \"sk-1\"\n",                                      ":2: providers.a.api_key: unknown key",              "api_key_env"),
        ("no table",        "[providers]\na = 1\n",                                                     ":2: providers.a: expected a table",                 ""),
        ("no table at all", "providers = 1\n",                                                          ":1: providers: expected a table",                   ""),
        ("protocol",        "[providers.a]\nprotocol = \"smtp\"\n",                                     ":2: providers.a.protocol: unknown protocol `smtp`", ""),
        ("url",             "[providers.a]\nbase_url = \"127.0.0.1:9000\"\n",                           ":2: providers.a.base_url: `127.0.0.1:9000` is not a URL", "http://"),
        ("kind",            "[providers.a]\napi_key_env = 3\n",                                         ":2: providers.a.api_key_env: expected text",        ""),
        ("header",          "[providers.a]\nheaders = { \"a b\" = \"c\" }\n",                           ":2: providers.a.headers.a b: expected a header",    ""),
        ("in braces",       "providers.a = { protocol = \"openai-chat\", base = 1 }\n",                 ":1: providers.a.base: unknown key",                 "base_url"),
        ("in a model",      "[providers.a]\n[providers.a.models.\"x-*\"]\nextra = 1\n",                 ":3: providers.a.models.\"x-*\".extra: unknown key", "dialect, extra_body, headers, context_limit, price"),
        ("limit",           "[providers.a.models.x]\ncontext_limit = 0\n",                              ":2: providers.a.models.x.context_limit: expected a number", ""),
        ("price",           "[providers.a.models.x]\nprice = { input = 1 }\n",                          ":2: providers.a.models.x.price: a price needs `output`", ""),
        ("price kind",      "[providers.a.models.x]\nprice = { input = 1, output = \"2\" }\n",          ":2: providers.a.models.x.price.output: expected a price", ""),
        ("price key",       "[providers.a.models.x]\nprice = { input = 1, output = 2, all = 3 }\n",     ":2: providers.a.models.x.price.all: unknown key",   "input, output, cached"),
        ("body",            "[providers.a.models.x]\nextra_body = { at = 2026-01-01 }\n",               ":2: providers.a.models.x.extra_body: expected a table", ""),
        ("the simulator's", "[providers.sim]\nprotocol = \"openai-chat\"\n",                            ":1: providers.sim: this name is the simulator's",   ""),
        ("a slash",         "[providers.\"a/b\"]\nprotocol = \"openai-chat\"\n",                        ":1: providers.\"a/b\": a provider's name",          ""),
        ("no protocol",     "[providers.a]\nbase_url = \"http://x\"\n",                                 ":1: providers.a: it needs a protocol or a dialect", "openai-chat"),
        ("unknown dialect", "[providers.a]\ndialect = \"nope\"\n",                                      ":1: providers.a.dialect: unknown dialect `nope`",   "kimi"),
        ("in a model too",  "[providers.a]\nprotocol = \"anthropic\"\n[providers.a.models.\"*\"]\ndialect = \"nope\"\n", ":1: providers.a.models.\"*\".dialect: unknown dialect `nope`", "kimi"),
        ("two protocols",   "[providers.a]\nprotocol = \"anthropic\"\ndialect = \"kimi\"\n",            ":1: providers.a: dialect `kimi` speaks openai-chat", ""),
    ];
    for (name, text, what, hint) in cases {
        let config = TestConfig::with("mistakes", text);
        let run = clean(Some(&config), &["encode", "-m", "a/x", CONVERSATION], &[]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{name}");
        assert!(run.stderr.contains(&format!("config.toml{what}")), "{name}: {}", run.stderr);
        assert!(run.stderr.contains(hint), "{name}: {}", run.stderr);
    }
}

#[test]
fn e9_an_unknown_endpoint_gets_no_thinking_parameters_and_one_note() {
    let config = TestConfig::with("stranger", "[providers.a]\nprotocol = \"anthropic\"\nbase_url = \"http://x\"\n");
    for model in ["a/nobody-knows", "generic/x"] {
        let run = clean(
            Some(&config),
            &[
                "encode",
                "-m",
                model,
                "--set",
                "reasoning.effort=high",
                "--set",
                "reasoning.maxTokens=2000",
                CONVERSATION,
            ],
            &[],
        );
        let body: Value = serde_json::from_str(&run.stdout).unwrap();
        let parameters: Vec<&String> = body.as_object().unwrap().keys().collect();
        assert!(
            parameters
                .iter()
                .all(|name| !name.contains("thinking") && !name.contains("effort") && *name != "output_config"),
            "{model}: {parameters:?}"
        );
        assert_eq!(run.stderr.matches("note: ").count(), 1, "{}", run.stderr);
        assert!(
            run.stderr.contains(
                "nothing is known of this endpoint: effort `high` is not sent, a thinking budget of 2000 is not sent"
            ),
            "{}",
            run.stderr
        );
        let silent = clean(Some(&config), &["encode", "-m", model, CONVERSATION], &[]);
        assert_eq!(silent.stderr, "", "no setting was ignored, so there is no note");
    }
}

#[test]
fn an_unmet_demand_is_exit_code_1_with_the_body_printed() {
    let omit = ["encode", "-m", "deepseek/deepseek-v4-pro", "--set", "reasoning.sendEmpty=omit", CONVERSATION];
    let run = clean(None, &omit, &[]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(serde_json::from_str::<Value>(&run.stdout).unwrap()["messages"].is_array());
    assert!(
        run.stderr.contains("error: message 2: this provider requires the field, but reasoning.sendEmpty omits it"),
        "{}",
        run.stderr
    );
    let json = clean(None, &["explain", "--json", "-m", omit[2], "--set", omit[4], CONVERSATION], &[]);
    let notices = serde_json::from_str::<Value>(&json.stdout).unwrap()["notices"].to_string();
    assert!(notices.contains("requires the field"), "{notices}");
    // A filler in place of withheld thinking meets the demand.
    let withheld =
        clean(None, &["encode", "-m", omit[2], "--set", "reasoning.includeInContext=false", CONVERSATION], &[]);
    assert_eq!(withheld.code, 0, "{}", withheld.stderr);
    let off = clean(None, &[&omit[..5], &["--set", "reasoning.enabled=false", CONVERSATION]].concat(), &[]);
    assert_eq!(off.code, 0, "without thinking nothing is demanded: {}", off.stderr);
}

#[test]
fn the_models_defaults_are_a_layer_that_config_explain_shows() {
    let config = TestConfig::with("layer", OWN);
    let head = |arguments: &str| config.stdout(arguments).lines().next().unwrap().to_owned();
    #[rustfmt::skip]
    let cases = [
        ("config explain reasoning.includeInContext -m deepseek/deepseek-v4-pro", "reasoning.includeInContext = true   (dialect)"),
        ("config explain reasoning.includeInContext",                             "reasoning.includeInContext = false   (built-in)"),
        ("config explain reasoning.sendEmpty -m kimi/kimi-k3",                    "reasoning.sendEmpty = empty   (dialect)"),
        ("config explain reasoning.fieldName -m kimi/kimi-k3",                    "reasoning.fieldName = reasoning_content   (dialect)"),
        ("config explain context.limit -m work/kimi-k3",                          "context.limit = 4711   (dialect)"),
        ("config explain request.maxTokens -m anthropic/claude-sonnet-5",         "request.maxTokens = 16000   (dialect)"),
        ("config get request.maxTokens -m anthropic/claude-sonnet-5",             "16000"),
        ("config explain context.limit -m work/kimi-k3 --set context.limit=9",    "context.limit = 9   (run)"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(head(arguments), expected, "{arguments}");
    }
    assert!(config.refused("config explain context.limit -m nobody/x").contains("names no provider"));
    // A wrong model in the config is reported, and the settings still work.
    let wrong = TestConfig::with("layer-wrong", "model = \"nobody/x\"\n");
    let run = wrong.run("config get reasoning.display");
    assert_eq!((run.code, run.stdout.as_str()), (0, "live\n"));
    assert!(run.stderr.contains("`nobody/x` names no provider"), "{}", run.stderr);
}

#[test]
fn config_explain_says_which_model_would_run() {
    let run = clean(None, &["config", "explain", "model"], &[("ZAI_API_KEY", "k"), ("GROQ_API_KEY", "k")]);
    assert!(run.stdout.contains("  now: zai/glm-4.6 (ZAI_API_KEY is set)\n"), "{}", run.stdout);
    let run = clean(None, &["config", "explain", "model"], &[]);
    assert!(run.stdout.contains("  now: sim/deepseek ("), "{}", run.stdout);
}

#[test]
fn d7_the_setting_for_tags_reaches_decode() {
    let body =
        br#"{"choices":[{"message":{"role":"assistant","content":"<think>hm</think>yes"},"finish_reason":"stop"}]}"#;
    let blocks = |arguments: &[&str]| {
        let run = aside(&[&["decode"], arguments].concat(), body, None);
        assert_eq!(run.code, 0, "{}", run.stderr);
        serde_json::from_str::<Value>(&run.stdout).unwrap()["blocks"].clone()
    };
    assert_eq!(blocks(&[])[0]["thought"], "hm");
    assert_eq!(blocks(&["--set", "reasoning.tags=off"]), json!([{ "type": "text", "text": "<think>hm</think>yes" }]));
    let config = TestConfig::with("tags", "[settings]\n\"reasoning.tags\" = \"preopened\"\n");
    let body = br#"{"choices":[{"message":{"role":"assistant","content":"hm</think>yes"},"finish_reason":"stop"}]}"#;
    let run = aside(&["decode"], body, Some(&config));
    assert_eq!(serde_json::from_str::<Value>(&run.stdout).unwrap()["blocks"][0]["thought"], "hm", "{}", run.stdout);
}

#[test]
fn the_rules_of_configured_providers_are_listed() {
    let config = TestConfig::with("own-models", OWN);
    let text = clean(Some(&config), &["models", "--rules", "work"], &[]).stdout;
    let expected = "work, by config.toml
  protocol        openai-chat
  url             http://127.0.0.1:9000/v1
  dialect         kimi
  key             WORK_KEY
  models          kimi-*
    also sends    model=kimi-mine, thinking.keep=none, top_k=20
    context       4711 tokens
    price         0.6 in, 2.5 out, per million tokens
";
    assert_eq!(text, expected);
    let json = clean(Some(&config), &["models", "--rules", "--json", "deepseek"], &[]).stdout;
    let list: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&list[0]["id"], &list[1]["provider"]), (&json!("deepseek"), &json!("deepseek")));
    assert_eq!(list[0]["default_model"], "deepseek-v4-pro");
    for arguments in [&["models", "--rules", "--json"][..], &["models", "--all", "--json"]] {
        assert!(!clean(Some(&config), arguments, &[]).stdout.contains("hush"), "a header may be a secret");
    }
}
