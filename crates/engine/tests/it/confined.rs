//! Which commands run without a question, what the question shows, and what happens to protected paths.

use std::fs;
use std::process::Command;

use aside_confine::{ConfineSetting, TierLimit};
use aside_core::permission_question::{Confinement, Network, Tier};
use aside_engine::tools::{PermissionAnswer, PermissionMode, PermissionRules, Permissions, Toolbox};
use serde_json::json;

use crate::support::{Nobody, ScriptedAsker, TestDir, fails, ok, rules_of, run};

const NOBODY: &str = "denied: it needs permission and there is no one to ask; nothing was done";

/// Writes a file, to show whether the command ran.
fn touch(name: &str) -> serde_json::Value {
    json!({ "command": format!("touch {name}") })
}

fn network_rules() -> PermissionRules {
    let mut rules = PermissionRules::new();
    rules.add_with_network("shell:touch *").unwrap();
    rules
}

#[tokio::test]
async fn k2_a_rule_lets_a_command_run_only_where_it_is_confined() {
    let test_dir = TestDir::new("k2-rules");
    for tier in test_dir.tiers() {
        let tools = test_dir.tools_at(tier, &[("shell:touch *", "allow")], PermissionMode::Ask);
        let name = format!("by-rule-{tier}");
        let result = run(&tools, &Nobody, "shell", touch(&name)).await;
        match tier {
            Tier::None => assert_eq!(result.content, NOBODY),
            Tier::Kernel | Tier::Strong | Tier::Seatbelt => assert!(!result.is_error, "{tier}: {}", result.content),
        }
        assert_eq!(test_dir.root().join(&name).exists(), tier != Tier::None, "{tier}");
    }
}

#[tokio::test]
async fn k2_without_confinement_no_answer_is_remembered_and_one_warning_is_shown() {
    let test_dir = TestDir::new("k2-none");
    let tools = test_dir.tools_at(Tier::None, &[], PermissionMode::Ask);
    let asker = ScriptedAsker::new([PermissionAnswer::Session, PermissionAnswer::Session]);
    for _ in 0..2 {
        assert!(!run(&tools, &asker, "shell", touch("x")).await.is_error);
    }
    let questions = asker.questions();
    assert_eq!(questions.len(), 2, "the same command asks again");
    for question in questions {
        assert_eq!(question.covers, None);
        let shown = Confinement { tier: Tier::None, network: Network::On, warnings: vec![] };
        assert_eq!(question.confinement, Some(shown));
    }
    let warnings = asker.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("commands run unconfined"), "{warnings:?}");
}

#[tokio::test]
async fn k2_if_the_user_turned_confinement_off_rules_apply_and_one_warning_is_shown() {
    let test_dir = TestDir::new("k2-off");
    let work = test_dir.work_with(test_dir.confine(ConfineSetting::Off));
    let rules = rules_of(&[("shell:touch *", "allow")]);
    let tools = Toolbox::standard(&work, Permissions::new(rules, PermissionMode::Ask));
    let asker = ScriptedAsker::new([]);
    for name in ["a", "b"] {
        assert!(!run(&tools, &asker, "shell", touch(name)).await.is_error);
    }
    assert!(test_dir.root().join("b").exists() && asker.questions().is_empty());
    assert_eq!(asker.warnings(), ["commands run unconfined: tools.confine is off"]);
}

#[tokio::test]
async fn k2_allow_all_runs_commands_in_every_tier() {
    let test_dir = TestDir::new("k2-yes");
    for tier in test_dir.tiers() {
        let tools = test_dir.tools_at(tier, &[], PermissionMode::AllowAll);
        ok(&tools, "shell", touch(&format!("yes-{tier}"))).await;
        assert!(test_dir.root().join(format!("yes-{tier}")).exists());
    }
}

#[tokio::test]
async fn k1_commands_are_refused_if_the_required_tier_is_missing() {
    let test_dir = TestDir::new("k1-demanded");
    let best = test_dir.confine(ConfineSetting::Auto).best_tier();
    #[rustfmt::skip]
    let cases = [
        (ConfineSetting::Require, Tier::None,   false),
        (ConfineSetting::Strong,  Tier::None,   false),
        (ConfineSetting::Strong,  Tier::Kernel, false),
        (ConfineSetting::Require, best,         best != Tier::None),
        (ConfineSetting::Strong,  best,         best == Tier::Strong),
    ];
    for (at, (setting, tier, runs)) in cases.into_iter().enumerate() {
        let confine = test_dir.confine(setting).with_limit(TierLimit { tier, ..TierLimit::NONE });
        let tools = Toolbox::standard(
            &test_dir.work_with(confine),
            Permissions::new(PermissionRules::new(), PermissionMode::AllowAll),
        );
        let result = run(&tools, &Nobody, "shell", touch(&format!("demanded-{at}"))).await;
        assert_eq!(!result.is_error, runs, "{setting:?} {tier}: {}", result.content);
        assert_eq!(test_dir.root().join(format!("demanded-{at}")).exists(), runs, "{setting:?} {tier}");
        if !runs {
            assert!(result.content.starts_with("not run: tools.confine is"), "{}", result.content);
        }
    }
}

#[tokio::test]
async fn k2_unconfined_is_a_question_of_its_own_whatever_was_allowed() {
    let test_dir = TestDir::new("k2-unconfined");
    let outside = test_dir.beside("made");
    let command = json!({ "command": format!("touch {}", outside.display()), "unconfined": true });
    for tier in test_dir.tiers().into_iter().filter(|tier| *tier != Tier::None) {
        for mode in [PermissionMode::Ask, PermissionMode::AllowAll] {
            let tools = test_dir.tools_at(tier, &[("shell", "allow")], mode);
            assert_eq!(fails(&tools, "shell", command.clone()).await, NOBODY, "{tier} {mode:?}");
            assert!(!outside.exists(), "{tier} {mode:?}");
            let asker = ScriptedAsker::new([PermissionAnswer::Session, PermissionAnswer::No(None)]);
            assert!(!run(&tools, &asker, "shell", command.clone()).await.is_error, "{tier} {mode:?}");
            assert!(outside.exists(), "{tier} {mode:?}");
            assert!(run(&tools, &asker, "shell", command.clone()).await.is_error, "no answer is remembered");
            let question = &asker.questions()[0];
            assert_eq!(question.confinement.as_ref().map(|shown| shown.tier), Some(Tier::None));
            assert_eq!(question.covers, None);
            fs::remove_file(&outside).unwrap();
        }
    }
}

#[tokio::test]
async fn k1_network_is_asked_for_and_a_rule_can_allow_it() {
    let test_dir = TestDir::new("k1-network");
    for tier in test_dir.tiers().into_iter().filter(|tier| *tier != Tier::None) {
        let asker = ScriptedAsker::new([PermissionAnswer::Session, PermissionAnswer::No(None)]);
        let tools = test_dir.tools_at(tier, &[("shell", "allow")], PermissionMode::Ask);
        let call = |name: &str| json!({ "command": format!("touch {name}"), "network": true });
        assert!(!run(&tools, &asker, "shell", call("asked")).await.is_error, "{tier}");
        assert!(run(&tools, &asker, "shell", call("asked")).await.is_error, "{tier}: no answer is remembered");
        let question = &asker.questions()[0];
        assert_eq!(question.confinement.as_ref().map(|shown| shown.network), Some(Network::On), "{tier}");

        // A rule allows network access without a request from the model. If that also opens local sockets,
        // the user is still asked.
        let confine = test_dir.at_most(tier);
        let asks = confine.network_reopens_sockets();
        let tools =
            Toolbox::standard(&test_dir.work_with(confine), Permissions::new(network_rules(), PermissionMode::Ask));
        let name = format!("by-rule-{tier}");
        let result = run(&tools, &Nobody, "shell", touch(&name)).await;
        assert_eq!(
            (result.is_error, test_dir.root().join(&name).exists()),
            (asks, !asks),
            "{tier}: {}",
            result.content
        );
    }
}

#[tokio::test]
async fn k2_a_blocked_command_hints_at_the_sandbox() {
    let test_dir = TestDir::new("k2-refused");
    for tier in test_dir.tiers() {
        let tools = test_dir.tools_at(tier, &[], PermissionMode::AllowAll);
        let output = fails(&tools, "shell", json!({"command": "touch ../beside-the-root && exit 4"})).await;
        let expected = format!("[may be the sandbox: {tier} forbids writing outside the working directory");
        assert_eq!(output.contains(&expected), tier != Tier::None, "{tier}: {output}");
        let made = test_dir.beside("beside-the-root");
        assert_eq!(made.exists(), tier == Tier::None, "{tier}");
        drop(fs::remove_file(made));
        // A failure of the command itself is not blamed on the sandbox.
        let output = fails(&tools, "shell", json!({"command": "echo no such thing; exit 1"})).await;
        assert!(!output.contains("sandbox"), "{output}");
    }
}

fn repository(test_dir: &TestDir) {
    let status = Command::new("git").args(["init", "-q"]).current_dir(test_dir.root()).status().unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn k1_a_protected_path_is_restored_unless_the_user_approved_the_command() {
    let test_dir = TestDir::new("k1-protected");
    repository(&test_dir);
    let config = fs::read_to_string(test_dir.root().join(".git/config")).unwrap();
    let attack =
        json!({ "command": "echo evil > .git/hooks/pre-commit; echo evil >> .git/config; echo evil > .envrc; true" });
    for tier in test_dir.tiers().into_iter().filter(|tier| *tier != Tier::None) {
        let hook = test_dir.root().join(".git/hooks/pre-commit");
        let tools = test_dir.tools_at(tier, &[("shell", "allow")], PermissionMode::Ask);
        let asker = ScriptedAsker::new([]);
        let result = run(&tools, &asker, "shell", attack.clone()).await;
        assert!(
            result.content.contains("restored, because it changed while this command ran"),
            "{tier}: {}",
            result.content
        );
        assert!(!hook.exists() && !test_dir.root().join(".envrc").exists(), "{tier}");
        assert_eq!(fs::read_to_string(test_dir.root().join(".git/config")).unwrap(), config, "{tier}");
        assert!(
            asker.warnings().iter().any(|notices| notices.contains("restored")),
            "{tier}: the user is notified too"
        );

        let tools = test_dir.tools_at(tier, &[], PermissionMode::Ask);
        let asker = ScriptedAsker::new([PermissionAnswer::Once]);
        let result = run(&tools, &asker, "shell", json!({ "command": "echo mine > .git/hooks/pre-commit" })).await;
        assert!(!result.is_error, "{tier}: {}", result.content);
        assert_eq!(fs::read_to_string(&hook).unwrap(), "mine\n", "{tier}");
        assert!(result.content.contains("protected, and changed by this command"), "{tier}: {}", result.content);
        fs::remove_file(&hook).unwrap();
    }
}

#[tokio::test]
async fn k1_commits_work_where_hooks_and_config_are_protected() {
    let test_dir = TestDir::new("k1-commit");
    repository(&test_dir);
    for tier in test_dir.tiers() {
        let tools = test_dir.tools_at(tier, &[("shell", "allow")], PermissionMode::AllowAll);
        let command = "date > f; git add f && git -c user.name=a -c user.email=a@b.c commit -qm x --allow-empty";
        let output = ok(&tools, "shell", json!({ "command": command })).await;
        assert_eq!(output, "[exit code 0]", "{tier}");
    }
}

#[tokio::test]
async fn k4_old_landlock_warns_about_what_it_cannot_enforce() {
    let test_dir = TestDir::new("k4-old");
    for (abi, warns) in [(5, true), (6, false)] {
        let confine = test_dir.confine(ConfineSetting::Auto).with_limit(TierLimit { tier: Tier::Kernel, abi });
        if confine.best_tier() != Tier::Kernel {
            // Without Landlock every command asks, which another test covers.
            assert!(confine.support().landlock.is_none());
            continue;
        }
        let tools = Toolbox::standard(
            &test_dir.work_with(confine),
            Permissions::new(PermissionRules::new(), PermissionMode::Ask),
        );
        let asker = ScriptedAsker::new([PermissionAnswer::Once]);
        assert!(!run(&tools, &asker, "shell", touch("old")).await.is_error);
        let shown = asker.questions()[0].confinement.clone().unwrap().to_string();
        assert_eq!(shown.contains("can signal your processes"), warns, "{abi}: {shown}");
    }
}

#[tokio::test]
async fn l4_a_command_that_kills_its_helper_is_ended_by_its_mark() {
    let test_dir = TestDir::new("l4-helper");
    for tier in test_dir.tiers() {
        let mark = format!("88{:07}.{}", std::process::id(), u8::from(tier == Tier::None));
        let tools = test_dir.tools_at(tier, &[], PermissionMode::AllowAll);
        let command =
            format!("setsid sleep {mark} >/dev/null 2>&1 & kill -9 $PPID; sleep 0.3; touch lived-{tier}; exit 5");
        let output = fails(&tools, "shell", json!({ "command": command })).await;
        let lived = test_dir.root().join(format!("lived-{tier}")).exists();
        // If the command can kill the helper, it does not outlive it.
        assert_eq!(output.contains("supervisor process died"), !lived, "{tier}: {output}");
        let is_out_of_reach = match tier {
            Tier::None => false,
            Tier::Kernel => test_dir.at_most(tier).support().landlock >= Some(6),
            Tier::Seatbelt | Tier::Strong => true,
        };
        assert!(lived || !is_out_of_reach, "{tier}: {output}");
        let lines = fs::read_dir("/proc").unwrap();
        let lines = lines.filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
        assert!(!lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(&mark)), "{tier}");
    }
}
