//! Providers with a path of their own and a key that expires.

use std::process::Command;

use serde_json::{Value, json};

use crate::recording_server::{ReceivedRequests, recording_server};
use crate::support::{RunOutput, TestConfig, repository, run};

const CONVERSATION: &str = "examples/conversation.jsonl";

const ANSWER: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Four.\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

/// Answers 401 unless the key is one of these, else with the answer.
fn server(accepted: &'static [&'static str]) -> (String, ReceivedRequests) {
    const REFUSED: &str = r#"{"error":{"code":401,"message":"Request had invalid authentication credentials.","status":"UNAUTHENTICATED"}}"#;
    recording_server(move |request| match accepted.contains(&request.key.as_str()) {
        true => ("200 OK", ANSWER.to_owned()),
        false => ("401 Unauthorized", REFUSED.to_owned()),
    })
}

fn clean(config: Option<&TestConfig>, arguments: &[&str], env: &[(&str, &str)]) -> RunOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    let path = std::env::var("PATH").unwrap();
    command.env_clear().env("PATH", path).envs(env.iter().copied()).args(arguments).current_dir(repository());
    run(&mut command, b"", config)
}

/// A provider at a URL, whose command prints `token-1`, `token-2` and so on, one more each time.
fn cloud(config: &TestConfig, url: &str, ttl: &str) -> String {
    let count = config.0.join("count");
    let count = count.display();
    format!(
        r#"
[providers.cloud]
dialect = "vertex-anthropic"
base_url = "{url}"
api_key_cmd = "echo x >> {count}; echo token-$(wc -l < {count})"
api_key_ttl = "{ttl}"
[providers.cloud.vars]
project = "my-project"
region = "us-east5"
"#
    )
}

#[test]
fn a_path_template_is_filled_and_a_refused_key_is_obtained_again_once() {
    let (url, received) = server(&["token-2"]);
    let config = TestConfig::new("vertex-renewal");
    std::fs::write(config.0.join("config.toml"), cloud(&config, &url, "50m")).unwrap();
    let ran = clean(
        Some(&config),
        &["ask", "--no-tools", "--no-save", "-m", "cloud/claude-sonnet-4-5@20250929", "2+2?"],
        &[],
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Four.\n"), "{}", ran.stderr);
    let received = received.lock().unwrap().clone();
    let path = "/v1/projects/my-project/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict";
    let lines: Vec<(&str, &str)> = received.iter().map(|one| (one.line.as_str(), one.key.as_str())).collect();
    let line = format!("POST {path} HTTP/1.1");
    assert_eq!(lines, [(line.as_str(), "token-1"), (line.as_str(), "token-2")]);
    let body = &received[1].body;
    assert_eq!((&body["anthropic_version"], &body["model"]), (&json!("vertex-2023-10-16"), &Value::Null));
}

#[test]
fn a_key_that_stays_refused_ends_the_request_after_two() {
    let (url, received) = server(&[]);
    let config = TestConfig::new("vertex-refused");
    std::fs::write(config.0.join("config.toml"), cloud(&config, &url, "50m")).unwrap();
    let ran = clean(Some(&config), &["ask", "--no-tools", "--no-save", "-m", "cloud/claude-sonnet-4-5", "2+2?"], &[]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("invalid authentication credentials"), "{}", ran.stderr);
    assert_eq!(received.lock().unwrap().len(), 2);
}

#[test]
fn the_presets_of_vertex_know_their_urls_and_say_what_is_missing() {
    let both = [("CLOUDSDK_AUTH_ACCESS_TOKEN", "t"), ("GOOGLE_CLOUD_PROJECT", "p")];
    #[rustfmt::skip]
    let cases = [
        ("vertex/gemini-3-pro",                "GOOGLE_CLOUD_LOCATION", "europe-west1", "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse"),
        ("vertex/gemini-3-pro",                "GOOGLE_CLOUD_LOCATION", "global",       "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse"),
        ("vertex-anthropic/claude-sonnet-5",   "CLOUD_ML_REGION",       "eu",           "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/anthropic/models/claude-sonnet-5:streamRawPredict"),
    ];
    for (model, variable, region, url) in cases {
        let env: Vec<(&str, &str)> = both.into_iter().chain([(variable, region)]).collect();
        let ran = clean(None, &["encode", "--full", "-m", model, CONVERSATION], &env);
        let sent: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
        assert_eq!((&sent["url"], &sent["headers"]["authorization"]), (&json!(url), &json!("Bearer ***")), "{model}");
    }
    #[rustfmt::skip]
    let missing = [
        ("vertex/gemini-3-pro",              vec![],        "`vertex` needs a region",            "GOOGLE_CLOUD_LOCATION or GOOGLE_VERTEX_LOCATION, or [providers.vertex.vars] region"),
        ("vertex-anthropic/claude-sonnet-5", vec![("CLOUD_ML_REGION", "eu")], "`vertex-anthropic` needs a project", "ANTHROPIC_VERTEX_PROJECT_ID or GOOGLE_CLOUD_PROJECT"),
    ];
    for (model, env, what, hint) in missing {
        let ran = clean(None, &["encode", "--full", "-m", model, CONVERSATION], &env);
        assert_eq!(ran.code, 2, "{model}");
        assert!(ran.stderr.contains(what) && ran.stderr.contains(hint), "{model}: {}", ran.stderr);
    }
}

#[test]
fn errors_of_path_vars_and_ttl_name_the_key() {
    #[rustfmt::skip]
    let cases = [
        ("path",       "path = \"v1/{model}\"",                 "providers.a.path: `v1/{model}` is not a path",    "/v1/projects"),
        ("brace",      "path = \"/v1/{model\"",                 "is not a path",                                   ""),
        ("ttl",        "api_key_ttl = \"soon\"",                "providers.a.api_key_ttl: `soon` is not a time",   "50m"),
        ("no ttl",     "api_key_ttl = \"0s\"",                  "is not a time",                                   ""),
        ("value",      "vars = { project = \"a/b\" }",          "providers.a.vars.project: expected letters",      ""),
        ("reserved",   "vars = { model = \"x\" }",              "providers.a.vars.model: this name is filled in",  ""),
    ];
    for (name, line, what, hint) in cases {
        let config = TestConfig::with(
            &format!("vertex-{}", name.replace(' ', "-")),
            &format!("[providers.a]\nprotocol = \"openai-chat\"\n{line}\n"),
        );
        let ran = clean(Some(&config), &["encode", "-m", "a/x", CONVERSATION], &[]);
        assert_eq!(ran.code, 2, "{name}: {}", ran.stdout);
        assert!(ran.stderr.contains(what) && ran.stderr.contains(hint), "{name}: {}", ran.stderr);
    }
    let own = "[providers.a]\nprotocol = \"openai-chat\"\nbase_url = \"https://h.example/api\"\npath = \"/{team}/{model}/run\"\n";
    let config = TestConfig::with("vertex-unset", own);
    let ran = clean(Some(&config), &["encode", "--full", "-m", "a/x", CONVERSATION], &[]);
    assert!(
        ran.stderr.contains("`a` needs a team") && ran.stderr.contains("[providers.a.vars] team"),
        "{}",
        ran.stderr
    );
    let config = TestConfig::with("vertex-set", &format!("{own}vars = {{ team = \"blue\" }}\n"));
    let ran = clean(Some(&config), &["encode", "--full", "-m", "a/x", CONVERSATION], &[]);
    let sent: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(sent["url"], "https://h.example/api/blue/x/run");
}
