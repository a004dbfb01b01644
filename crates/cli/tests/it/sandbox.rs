//! `aside sandbox`, and confinement in the rest of the program.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::folder_outside::folder_outside;
use crate::support::{RunOutput, TestConfig, run};

/// Runs `aside` in the project with environment variables.
fn aside(config: &TestConfig, arguments: &[&str], variables: &[(&str, &str)]) -> RunOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    command.args(arguments).current_dir(config.project()).envs(variables.iter().copied());
    run(&mut command, b"", Some(config))
}

/// The tiers that this machine supports.
pub(crate) fn tiers(config: &TestConfig) -> Vec<&'static str> {
    let has = |tier: &&str| {
        let said = aside(config, &["sandbox", "--", "true"], &[("ASIDE_CONFINE_MAX", tier)]).stderr;
        said.starts_with(&format!("tier: {tier} ("))
    };
    let tiers: Vec<&str> = ["none", "kernel", "strong"].into_iter().filter(has).collect();
    assert!(tiers.contains(&"none"), "the limit holds everywhere: {tiers:?}");
    tiers
}

#[test]
fn k1_a_command_runs_like_a_tools_command_and_the_tier_is_printed() {
    let config = TestConfig::new("sandbox");
    for tier in tiers(&config) {
        let limit = [("ASIDE_CONFINE_MAX", tier)];
        let inside = aside(&config, &["sandbox", "--", "sh", "-c", "echo said; echo x > made; exit 7"], &limit);
        assert_eq!((inside.code, inside.stdout.as_str()), (7, "said\n"), "{tier}: {}", inside.stderr);
        assert!(config.project().join("made").exists(), "{tier}");
        let folder = folder_outside(env!("CARGO_TARGET_TMPDIR"));
        let outside = folder.join(format!("aside-outside-{}", std::process::id()));
        let line = format!("echo x > {}", outside.display());
        aside(&config, &["sandbox", "--", "sh", "-c", &line], &limit);
        assert_eq!(outside.exists(), tier == "none", "{tier}");
        drop(fs::remove_file(outside));
    }
}

#[test]
fn k4_no_key_reaches_a_confined_command() {
    let config = TestConfig::new("sandbox-keys");
    let line = "env; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'";
    for tier in tiers(&config).into_iter().filter(|tier| *tier != "none") {
        let variables = [("ASIDE_CONFINE_MAX", tier), ("OPENAI_API_KEY", "sk-hunter2-hunter2-hunter2")];
        let ran = aside(&config, &["sandbox", "--", "sh", "-c", line], &variables);
        assert!(ran.stdout.contains("PATH="), "{tier}: {}", ran.stderr);
        assert!(!ran.stdout.contains("sk-hunter2"), "{tier}");
    }
}

#[test]
fn k1_a_required_tier_that_is_missing_is_refused_with_the_reason() {
    let config = TestConfig::with("sandbox-require", "[tools]\nconfine = \"require\"\n");
    let limit = [("ASIDE_CONFINE_MAX", "none")];
    let ran = aside(&config, &["sandbox", "--", "touch", "made"], &limit);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("tools.confine is \"require\""), "{}", ran.stderr);
    assert!(!config.project().join("made").exists());
    let doctor = aside(&config, &["doctor"], &limit);
    assert!(doctor.stdout.contains("broken  confinement: "), "{}", doctor.stdout);
}

#[test]
fn k1_doctor_names_the_tier_and_what_is_missing() {
    let config = TestConfig::new("sandbox-doctor");
    for tier in tiers(&config) {
        let doctor = aside(&config, &["doctor"], &[("ASIDE_CONFINE_MAX", tier)]);
        let line = doctor.stdout.lines().find(|line| line.contains("confinement: ")).unwrap_or_default();
        assert!(line.contains(&format!("confinement: {tier}")), "{tier}: {}", doctor.stdout);
        assert_eq!(line.starts_with("could"), tier != "strong", "{line}");
    }
    let off = TestConfig::with("sandbox-doctor-off", "[tools]\nconfine = \"off\"\n");
    let doctor = aside(&off, &["doctor"], &[]);
    assert!(doctor.stdout.contains("could   confinement: off, by tools.confine"), "{}", doctor.stdout);
}

#[test]
fn errors_in_the_tools_table_are_reported() {
    #[rustfmt::skip]
    let cases = [
        ("confine = \"maybe\"",     "tools.confine: unknown value `maybe`"),
        ("caches = \"~/x\"",        "tools.caches: expected a list of folders"),
        ("directories = [\"x\"]",   "tools.directories: expected a list of folders"),
        ("confined = true",         "tools.confined"),
    ];
    for (line, what) in cases {
        let config = TestConfig::with("sandbox-mistakes", &format!("[tools]\n{line}\n"));
        let ran = aside(&config, &["sandbox", "--", "true"], &[]);
        assert_eq!(ran.code, 2, "{line}");
        assert!(ran.stderr.contains(what), "{line}: {}", ran.stderr);
    }
    // A profile may come from other people, so it cannot set this.
    let config = TestConfig::new("sandbox-profile");
    fs::create_dir_all(config.0.join("profiles")).unwrap();
    fs::write(config.0.join("profiles/given.toml"), "[tools]\nconfine = \"off\"\n").unwrap();
    let ran = aside(&config, &["sandbox", "-p", "given", "--", "true"], &[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("tools"), "{}", ran.stderr);
}

#[test]
fn l4_a_killed_aside_leaves_no_process_of_its_command() {
    let config = TestConfig::new("sandbox-killed");
    for (at, tier) in tiers(&config).into_iter().enumerate() {
        let mark = format!("87{:07}.{at:03}", std::process::id());
        let line = format!("trap '' TERM HUP INT; (setsid sleep {mark} &); sleep {mark}; sleep {mark}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
        command.args(["sandbox", "--", "sh", "-c", &line]).env("ASIDE_CONFINE_MAX", tier);
        command.env("ASIDE_CONFIG_DIR", &config.0).env("ASIDE_STATE_DIR", &config.0).current_dir(config.project());
        let mut aside = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while !sleeps(&mark) {
            std::thread::sleep(Duration::from_millis(5));
        }
        aside.kill().unwrap();
        aside.wait().unwrap();
        // The helper sends SIGTERM first, and SIGKILL half a second later.
        for _ in 0..1000 {
            if !sleeps(&mark) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!sleeps(&mark), "{tier}");
    }
}

fn sleeps(mark: &str) -> bool {
    let lines = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.into_iter().any(|line| line.starts_with(b"sleep\0") && String::from_utf8_lossy(&line).contains(mark))
}
