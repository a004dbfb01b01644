//! `aside serve` as a process, as the README shows it.

use crate::gateway_process::{GatewayProcess, HttpAnswer, wait_for};
use crate::support::{TestConfig, repository};

fn post(gateway: &GatewayProcess, body: &str, key: &str) -> HttpAnswer {
    gateway.send("POST", "/v1/chat/completions", &[("x-api-key", key)], body.as_bytes())
}

/// The first and the second request of the README.
fn readme_requests() -> (String, String) {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let line = |name: &str| {
        let prefix = format!("\n{name}='");
        let rest = readme.split(&prefix).nth(1).unwrap_or_else(|| panic!("the README has no {name}"));
        rest.split("'\n").next().unwrap().to_owned()
    };
    let (tools, question, call) = (line("tools"), line("question"), line("call"));
    let id = call.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    let result = format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"README.md"}}"#);
    let turn = format!(r#"{{"role":"assistant","content":null,"tool_calls":[{call}]}}"#);
    let request = |messages: &str| format!(r#"{{"model":"sim/deepseek","messages":[{messages}],{tools}}}"#);
    (request(&question), request(&format!("{question},{turn},{result}")))
}

#[test]
fn g2_the_commands_of_the_readme_restore_a_lost_thought_also_after_a_kill() {
    // The end of a reply waits for the store, however slow the machine is.
    let config = TestConfig::with("serve-readme", "[serve]\nstore_wait = \"10m\"\n");
    let (first, second) = readme_requests();
    let gateway = GatewayProcess::start(&config);
    let answer = post(&gateway, &first, "any");
    assert!(answer.text().contains("reasoning_content"), "{answer:?}");
    // What was answered is durable.
    gateway.kill();
    let gateway = GatewayProcess::start(&config);
    let answer = post(&gateway, &second, "any");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("aside-repaired"), Some("1 restored, 0 filler, 0 ambiguous"));
    let id = answer.header("aside-request").unwrap();
    let explained = config.stdout(&format!("explain --request {id} --url http://{}", gateway.address));
    assert!(explained.contains("message 1 thinking: restored by L2, echo.loop = must"), "{explained}");
}

#[test]
fn g8_keys_are_printed_once_listed_without_the_key_and_revoked() {
    let config = TestConfig::new("serve-keys");
    let key = config.stdout("serve key new ci --tenant team --models sim/* --limit requests=60/m");
    let key = key.trim_end();
    assert!(key.starts_with("aside-") && key.len() == 49, "{key}");
    assert_eq!(config.stdout("serve key list"), "ci\tteam\tstore\n");
    let gateway = GatewayProcess::start(&config);
    let body = r#"{"model":"sim/kimi","messages":[{"role":"user","content":"hi"}]}"#;
    assert!(post(&gateway, body, "wrong").status == 401);
    assert!(post(&gateway, body, key).status == 200);
    assert_eq!(config.run("serve key revoke ci").code, 0);
    // It stops within two seconds; a slow machine gets more time.
    wait_for("the revocation", || (post(&gateway, body, key).status == 401).then_some(()));
    assert_eq!(config.stdout("serve key list"), "");
    drop(gateway);
    let closed = GatewayProcess::start(&config);
    assert_eq!(post(&closed, body, key).status, 401, "without a key it stays closed");
    assert!(config.refused("serve --listen here").contains("expected ADDRESS:PORT or PORT"));
}
