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

#[test]
fn g7_the_key_of_the_store_is_replaced_while_a_gateway_runs() {
    let config = TestConfig::with("serve-rotate", "[serve]\nstore_wait = \"10m\"\n");
    let (first, second) = readme_requests();
    let gateway = GatewayProcess::start(&config);
    assert_eq!(post(&gateway, &first, "any").status, 200);
    let old = config.read("data/gateway.key");
    let rotated = config.run("serve key rotate-store");
    assert_eq!((rotated.code, rotated.stdout.as_str()), (0, ""), "{}", rotated.stderr);
    assert!(rotated.stderr.contains("the memory of 1 tenants is encrypted with a new key"), "{}", rotated.stderr);
    assert_ne!(config.read("data/gateway.key"), old);
    let answer = post(&gateway, &second, "any");
    assert_eq!((answer.status, answer.n_restored()), (200, 1), "the running gateway goes on");
    gateway.kill();
    let gateway = GatewayProcess::start(&config);
    assert_eq!(post(&gateway, &second, "any").n_restored(), 1, "with the new key");
    gateway.kill();
    // A rotation that was interrupted between the store and the file is completed.
    std::fs::rename(config.0.join("data/gateway.key"), config.0.join("data/gateway.key.new")).unwrap();
    std::fs::write(config.0.join("data/gateway.key"), &old).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(config.0.join("data/gateway.key"), private).unwrap();
    let gateway = GatewayProcess::start(&config);
    assert_eq!(post(&gateway, &second, "any").n_restored(), 1, "with the key that waited");
    assert!(!config.0.join("data/gateway.key.new").exists());
}

#[test]
fn g7_a_store_key_in_the_environment_is_changed_to_the_one_that_is_given() {
    let config = TestConfig::new("serve-rotate-env");
    let (old, new) = ("11".repeat(32), "22".repeat(32));
    let run = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_aside"));
        command.args(arguments).envs(variables.iter().copied());
        crate::support::run(&mut command, b"", Some(&config))
    };
    assert_eq!(run(&[("ASIDE_STORE_KEY", &old)], &["serve", "key", "new", "ci"]).code, 0);
    let rotate = ["serve", "key", "rotate-store"];
    let refused = run(&[("ASIDE_STORE_KEY", &old)], &rotate);
    assert!(refused.code == 2 && refused.stderr.contains("ASIDE_STORE_KEY_NEW"), "{}", refused.stderr);
    let rotated = run(&[("ASIDE_STORE_KEY", &old), ("ASIDE_STORE_KEY_NEW", &new)], &rotate);
    assert!(rotated.code == 0 && rotated.stderr.contains("restart every gateway"), "{}", rotated.stderr);
    let list = ["serve", "key", "list"];
    let wrong = run(&[("ASIDE_STORE_KEY", &old)], &list);
    assert!(wrong.code == 2 && wrong.stderr.contains("another key"), "{}", wrong.stderr);
    assert_eq!(run(&[("ASIDE_STORE_KEY", &new)], &list).stdout, "ci\tci\tstore\n");
}

#[test]
fn g11_a_limit_counts_over_processes_and_restarts() {
    let config = TestConfig::new("serve-limits");
    let key = config.stdout("serve key new ci --limit requests=3/day");
    let key = key.trim_end();
    let body = r#"{"model":"sim/kimi","messages":[{"role":"user","content":"hi"}]}"#;
    let gateways = [GatewayProcess::start(&config), GatewayProcess::start(&config)];
    assert_eq!(post(&gateways[0], body, key).status, 200);
    assert_eq!(post(&gateways[1], body, key).status, 200);
    // Both know of both requests after a moment: one more is allowed, by whichever is asked.
    let refused = wait_for("the limit", || {
        let answer = post(&gateways[0], body, key);
        (answer.status == 429).then_some(answer)
    });
    assert_eq!(refused.header("aside-error"), Some("limit"), "{}", refused.text());
    assert!(refused.header("retry-after").is_some(), "{}", refused.text());
    wait_for("the limit in the other process", || (post(&gateways[1], body, key).status == 429).then_some(()));
    for mut gateway in gateways {
        gateway.terminate();
        assert!(gateway.wait().success());
    }
    let gateway = GatewayProcess::start(&config);
    assert_eq!(post(&gateway, body, key).status, 429, "a restart forgives nothing");
}

#[test]
fn g3_recorded_conversations_are_sessions_and_full_receipts_have_the_requests() {
    let settings = "[serve]\nstore_wait = \"10m\"\nrecord = true\nreceipts = \"full\"\n";
    let config = TestConfig::with("serve-record", settings);
    let (first, second) = readme_requests();
    let mut gateway = GatewayProcess::start(&config);
    assert_eq!(post(&gateway, &first, "any").status, 200);
    let answer = post(&gateway, &second, "any");
    assert_eq!((answer.status, answer.n_restored()), (200, 1));
    let private = [("aside-store", "none")];
    let hidden = r#"{"model":"sim/kimi","messages":[{"role":"user","content":"not for the record"}]}"#;
    assert_eq!(gateway.send("POST", "/v1/chat/completions", &private, hidden.as_bytes()).status, 200);
    let receipt = gateway.receipt(&answer);
    assert_eq!(receipt["request"]["client"], second.as_str());
    let sent = receipt["request"]["sent"].as_str().unwrap();
    assert!(sent.contains("reasoning_content") && sent.contains("\"model\":\"deepseek\""), "{sent}");
    let id = answer.header("aside-request").unwrap();
    let explained = config.stdout(&format!("explain --request {id} --url http://{}", gateway.address));
    assert!(explained.contains("provider got: {\"model\":\"deepseek\""), "{explained}");
    gateway.terminate();
    assert!(gateway.wait().success());

    let list = config.stdout("sessions list --json");
    assert_eq!(list.lines().count(), 1, "one conversation: {list}");
    let session: serde_json::Value = serde_json::from_str(&list).unwrap();
    let id = session["id"].as_str().unwrap();
    let shown = config.stdout(&format!("sessions show {id}"));
    assert!(shown.contains("→ list {}") && shown.contains("Thought"), "{shown}");
    let exported = config.stdout(&format!("sessions export {id} --format jsonl"));
    assert_eq!(exported.matches("\"role\":\"assistant\"").count(), 2, "{exported}");
    assert!(exported.contains("\"thinking\"") && exported.contains("README.md"), "{exported}");
    let asked = config.stdout(&format!("ask -r {id} -m sim/deepseek --no-tools Thanks."));
    assert!(!asked.is_empty(), "it can be continued");
}

#[test]
fn g3_what_cannot_be_recorded_is_refused_at_the_start() {
    let hash = "sha256:".to_owned() + &"0".repeat(64);
    let key = |name: &str| format!("[[serve.keys]]\nname = \"{name}\"\nhash = \"{hash}\"\n");
    let several = TestConfig::with("serve-record-keys", &format!("[serve]\nrecord = true\n{}{}", key("a"), key("b")));
    assert!(several.refused("serve --check-config").contains("record = true is for one tenant"));
    let shared =
        TestConfig::with("serve-record-shared", "[serve]\nrecord = true\nstore = \"postgres://x@127.0.0.1:1/x\"\n");
    assert!(shared.refused("serve --check-config").contains("ASIDE_STORE_KEY"));
    let wrong = TestConfig::with("serve-record-wrong", "[serve]\nrecord = 3\n");
    assert!(wrong.refused("serve --check-config").contains("expected true, false or a list of tenants"));
    for (threads, problem) in [("0", "above 0"), ("1000000", "up to 1024"), ("\"all\"", "above 0")] {
        let config = TestConfig::with("serve-threads", &format!("[serve]\nthreads = {threads}\n"));
        let refused = config.refused("serve --check-config");
        assert!(refused.contains("serve.threads: expected a number") && refused.contains(problem), "{refused}");
    }
}

/// Every stream needs two sockets.
#[cfg(target_os = "linux")]
#[test]
fn g6_a_gateway_may_open_as_many_files_as_the_system_allows() {
    let config = TestConfig::new("serve-open-files");
    // The limit of this process is inherited, so a shell lowers it first.
    let gateway = GatewayProcess::start_in_shell(&config, "ulimit -Sn 200; exec \"$0\" \"$@\"");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", gateway.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = line.split_whitespace().filter(|word| word.parse::<u64>().is_ok()).collect();
    assert!(numbers.len() == 2 && numbers[0] == numbers[1], "{line}");
}
