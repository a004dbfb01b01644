//! `aside key` with a fake keyring program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{RunOutput, TestConfig, run};

/// A `secret-tool` that stores secrets in files.
const KEYRING: &str = r#"#!/bin/sh
verb=$1; shift
[ "$verb" = store ] && shift 2
file="$(dirname "$0")/secret-$4"
case $verb in
  store) cat > "$file" ;;
  lookup) cat "$file" ;;
  clear) rm "$file" ;;
esac
"#;

fn with_keyring(config: &TestConfig, arguments: &[&str], stdin: &[u8]) -> RunOutput {
    let folder = config.0.join("bin");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("secret-tool");
    if !program.exists() {
        fs::write(&program, KEYRING).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    run(Command::new(env!("CARGO_BIN_EXE_aside")).args(arguments).env("PATH", path), stdin, Some(config))
}

#[test]
fn a_key_goes_into_the_keyring_is_used_and_never_shown() {
    let config = TestConfig::new("key-ring");
    let set = with_keyring(&config, &["key", "set", "deepseek"], b"sk-secret\n");
    assert_eq!(set.code, 0, "{}", set.stderr);
    let list = with_keyring(&config, &["key", "list"], b"");
    assert!(
        list.stdout.lines().any(|line| line.starts_with("deepseek ") && line.ends_with("keyring")),
        "{}",
        list.stdout
    );
    assert!(list.stdout.contains("none; MOONSHOT_API_KEY is not set"), "{}", list.stdout);
    for said in [&set, &list] {
        assert!(!said.stdout.contains("sk-secret") && !said.stderr.contains("sk-secret"));
    }
    let unset = with_keyring(&config, &["key", "unset", "deepseek"], b"");
    assert_eq!(unset.code, 0, "{}", unset.stderr);
    let list = with_keyring(&config, &["key", "list"], b"");
    assert!(list.stdout.contains("none; DEEPSEEK_API_KEY is not set"), "{}", list.stdout);
}

#[test]
fn errors_are_reported_with_their_cause() {
    let config = TestConfig::new("key-wrong");
    #[rustfmt::skip]
    let cases: [(&[&str], &[u8], &str); 3] = [
        (&["key", "set", "nobody"],   b"x", "names no provider"),
        (&["key", "set", "ollama"],   b"x", "takes no key"),
        (&["key", "set", "deepseek"], b"",  "standard input is empty"),
    ];
    for (arguments, stdin, what) in cases {
        let refused = with_keyring(&config, arguments, stdin);
        assert_eq!(refused.code, 2, "{arguments:?}");
        assert!(refused.stderr.contains(what), "{arguments:?}: {}", refused.stderr);
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    let none = run(command.args(["key", "set", "deepseek"]).env("PATH", "/nowhere"), b"sk", Some(&config));
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("there is no keyring on this machine"), "{}", none.stderr);
}
