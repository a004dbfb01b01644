//! `aside doctor`: checks and their remedies.

use std::process::Command;

use crate::support::{TestConfig, run};

#[test]
fn a_fresh_machine_works_and_gets_suggestions() {
    let config = TestConfig::new("doctor-fresh");
    let found = config.run("doctor");
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(found.stdout.contains("config: none yet"), "{}", found.stdout);
    let keys = "keys: none is set\n        → export one of: AI_GATEWAY_API_KEY, ALIBABA_CODING_PLAN_API_KEY, ANTHROPIC_API_KEY, ";
    assert!(found.stdout.contains(keys), "{}", found.stdout);
}

#[test]
fn keys_are_detected_and_never_shown() {
    let config = TestConfig::new("doctor-keys");
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    let found = run(command.arg("doctor").env("KEEP", "").env("KIMI", ""), b"", Some(&config));
    assert_eq!(found.code, 0);
    let config = TestConfig::with(
        "doctor-own-key",
        "model = \"work/m\"\n[providers.work]\nprotocol = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1\"\napi_key_env = \"WORK\"\n",
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    let found = run(command.arg("doctor").env("WORK", "sk-secret"), b"", Some(&config));
    assert_eq!(found.code, 0, "{}", found.stdout);
    assert!(found.stdout.contains("model: work/m (config.toml names it)"), "{}", found.stdout);
    assert!(!found.stdout.contains("sk-secret"));
    let missing = config.run("doctor");
    assert_eq!(missing.code, 1);
    let remedy = "export WORK=…, or aside key set work";
    assert!(
        missing
            .stdout
            .contains(&format!("broken  model: work/m (config.toml names it) has no key\n        → {remedy}\n")),
        "{}",
        missing.stdout
    );
}

#[test]
fn t18_the_key_variable_of_each_configured_provider_is_named_with_whether_it_is_set() {
    let config = TestConfig::with(
        "doctor-provider-keys",
        r#"model = "sim/deepseek"
[providers.work]
protocol = "openai-chat"
base_url = "http://127.0.0.1:1"
api_key_env = "WORK_KEY"
[providers.deepseek]
base_url = "http://127.0.0.1:1"
[providers.open]
protocol = "openai-chat"
base_url = "http://127.0.0.1:1"
[providers.bare]
protocol = "openai-chat"
[providers.odd]
dialect = "nobody"
base_url = "http://127.0.0.1:1"
"#,
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    let set = run(command.arg("doctor").env("WORK_KEY", "sk-secret"), b"", Some(&config)).stdout;
    assert!(set.contains("ok      key of work: WORK_KEY is set\n"), "{set}");
    let unset = config.run("doctor").stdout;
    assert!(
        unset
            .contains("could   key of work: WORK_KEY is not set\n        → export WORK_KEY=…, or aside key set work\n"),
        "{unset}"
    );
    assert!(unset.contains("could   key of deepseek: DEEPSEEK_API_KEY is not set\n"), "{unset}");
    let open = "ok      key of open: no key is sent; to send one, name its variable in api_key_env\n";
    assert!(unset.contains(open), "{unset}");
    // A provider without usable entries is not left out.
    let odd = unset.lines().position(|line| line.starts_with("broken  provider odd: ")).expect(&unset);
    assert!(unset.lines().nth(odd).is_some_and(|line| line.contains("unknown dialect `nobody`")), "{unset}");
    assert!(unset.lines().nth(odd + 1).is_some_and(|line| line.starts_with("        → ")), "{unset}");
    assert!(unset.contains("broken  provider bare: "), "{unset}");
}

#[test]
fn a_broken_config_is_found() {
    let config = TestConfig::with("doctor-broken", "[settings]\n\"reasoning.effort\" = \"enormous\"\n");
    let found = config.run("doctor");
    assert_eq!(found.code, 1);
    assert!(found.stdout.contains("broken  config: "), "{}", found.stdout);
}

#[test]
fn invalid_key_bindings_are_reported_with_valid_ones() {
    #[rustfmt::skip]
    let cases = [
        ("unknown action", "toggle_thought = \"ctrl+t\"", "keys.toggle_thought: unknown action `toggle_thought`", "the actions are: send, queue, new_line, stop,"),
        ("unknown key",    "editor = \"ctrl+hyper\"",     "keys.editor: unknown key `ctrl+hyper`",                "ctrl+, alt+ or shift+ before a letter or one of: enter, tab,"),
        ("a letter",       "editor = [\"f2\", \"x\"]",    "keys.editor: `x` alone cannot be bound",                   "ctrl+, alt+"),
        ("no key at all",  "editor = 3",                  "keys.editor: expected a key, or a list of them",        "\"ctrl+t\", or [] for none"),
        ("a conflict",     "editor = \"ctrl+r\"",         "keys.editor: Ctrl+R is the key of `read_last` as well", "give `read_last` another key, or [] for none"),
    ];
    for (name, line, what, remedy) in cases {
        let config = TestConfig::with("doctor-bindings", &format!("[keys]\n{line}\n"));
        let found = config.run("doctor");
        assert_eq!(found.code, 1, "{name}: {}", found.stdout);
        assert!(
            found.stdout.contains(&format!("config.toml:2: {what}\n        → {remedy}")),
            "{name}: {}",
            found.stdout
        );
        let asked = config.run("ask hello -m sim/deepseek");
        assert_eq!(asked.code, 2, "{name}");
        assert!(asked.stderr.contains(what), "{name}: {}", asked.stderr);
    }
    let config =
        TestConfig::with("doctor-bound", "[keys]\neditor = \"ctrl+r\"\nread_last = []\nstop = [\"esc\", \"f4\"]\n");
    assert_eq!(config.run("doctor").code, 0);
}
