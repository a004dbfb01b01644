//! Which commands run without a question, what a question says of them, and what
//! becomes of protected paths.

use std::fs;
use std::process::Command;

use aside_confine::{Limit, Wish};
use aside_core::question::{Confinement, Network, Tier};
use aside_engine::tools::{Mode, Permissions, Permit, Rules, Toolbox};
use serde_json::json;

use crate::support::{Nobody, Scratch, Scripted, fails, ok, rules_of, run};

const NOBODY: &str = "denied: it needs permission and there is nobody to ask; nothing was done";

/// Writes a file, so that it is seen whether it ran.
fn touch(name: &str) -> serde_json::Value {
    json!({ "command": format!("touch {name}") })
}

fn network_rules() -> Rules {
    let mut rules = Rules::new();
    rules.add_with_network("shell:touch *").unwrap();
    rules
}

#[tokio::test]
async fn k2_a_rule_lets_a_command_run_only_where_it_is_confined() {
    let scratch = Scratch::new("k2-rules");
    for tier in scratch.tiers() {
        let tools = scratch.tools_at(tier, &[("shell:touch *", "allow")], Mode::Ask);
        let name = format!("by-rule-{tier}");
        let result = run(&tools, &Nobody, "shell", touch(&name)).await;
        match tier {
            Tier::None => assert_eq!(result.content, NOBODY),
            Tier::Kernel | Tier::Strong | Tier::Seatbelt => assert!(!result.is_error, "{tier}: {}", result.content),
        }
        assert_eq!(scratch.root().join(&name).exists(), tier != Tier::None, "{tier}");
    }
}

#[tokio::test]
async fn k2_without_confinement_no_answer_is_remembered_and_it_is_said_once() {
    let scratch = Scratch::new("k2-none");
    let tools = scratch.tools_at(Tier::None, &[], Mode::Ask);
    let asker = Scripted::new([Permit::Session, Permit::Session]);
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
    let troubles = asker.troubles();
    assert_eq!(troubles.len(), 1, "{troubles:?}");
    assert!(troubles[0].starts_with("commands run unconfined"), "{troubles:?}");
}

#[tokio::test]
async fn k2_where_the_person_switched_it_off_rules_hold_and_it_is_said_once() {
    let scratch = Scratch::new("k2-off");
    let work = scratch.work_with(scratch.confine(Wish::Off));
    let rules = rules_of(&[("shell:touch *", "allow")]);
    let tools = Toolbox::standard(&work, Permissions::new(rules, Mode::Ask));
    let asker = Scripted::new([]);
    for name in ["a", "b"] {
        assert!(!run(&tools, &asker, "shell", touch(name)).await.is_error);
    }
    assert!(scratch.root().join("b").exists() && asker.questions().is_empty());
    assert_eq!(asker.troubles(), ["commands run unconfined: tools.confine is off"]);
}

#[tokio::test]
async fn k2_yes_is_an_answer_in_every_tier() {
    let scratch = Scratch::new("k2-yes");
    for tier in scratch.tiers() {
        let tools = scratch.tools_at(tier, &[], Mode::AllowAll);
        ok(&tools, "shell", touch(&format!("yes-{tier}"))).await;
        assert!(scratch.root().join(format!("yes-{tier}")).exists());
    }
}

#[tokio::test]
async fn k1_a_tier_that_is_demanded_and_not_there_refuses_commands() {
    let scratch = Scratch::new("k1-demanded");
    let best = scratch.confine(Wish::Auto).best();
    #[rustfmt::skip]
    let cases = [
        (Wish::Require, Tier::None,   false),
        (Wish::Strong,  Tier::None,   false),
        (Wish::Strong,  Tier::Kernel, false),
        (Wish::Require, best,         best != Tier::None),
        (Wish::Strong,  best,         best == Tier::Strong),
    ];
    for (at, (wish, tier, runs)) in cases.into_iter().enumerate() {
        let confine = scratch.confine(wish).limited(Limit { tier, ..Limit::NONE });
        let tools = Toolbox::standard(&scratch.work_with(confine), Permissions::new(Rules::new(), Mode::AllowAll));
        let result = run(&tools, &Nobody, "shell", touch(&format!("demanded-{at}"))).await;
        assert_eq!(!result.is_error, runs, "{wish:?} {tier}: {}", result.content);
        assert_eq!(scratch.root().join(format!("demanded-{at}")).exists(), runs, "{wish:?} {tier}");
        if !runs {
            assert!(result.content.starts_with("not run: tools.confine is"), "{}", result.content);
        }
    }
}

#[tokio::test]
async fn k2_unconfined_is_a_question_of_its_own_whatever_was_allowed() {
    let scratch = Scratch::new("k2-unconfined");
    let outside = scratch.beside("made");
    let command = json!({ "command": format!("touch {}", outside.display()), "unconfined": true });
    for tier in scratch.tiers().into_iter().filter(|tier| *tier != Tier::None) {
        for mode in [Mode::Ask, Mode::AllowAll] {
            let tools = scratch.tools_at(tier, &[("shell", "allow")], mode);
            assert_eq!(fails(&tools, "shell", command.clone()).await, NOBODY, "{tier} {mode:?}");
            assert!(!outside.exists(), "{tier} {mode:?}");
            let asker = Scripted::new([Permit::Session, Permit::No(None)]);
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
    let scratch = Scratch::new("k1-network");
    for tier in scratch.tiers().into_iter().filter(|tier| *tier != Tier::None) {
        let asker = Scripted::new([Permit::Session, Permit::No(None)]);
        let tools = scratch.tools_at(tier, &[("shell", "allow")], Mode::Ask);
        let call = |name: &str| json!({ "command": format!("touch {name}"), "network": true });
        assert!(!run(&tools, &asker, "shell", call("asked")).await.is_error, "{tier}");
        assert!(run(&tools, &asker, "shell", call("asked")).await.is_error, "{tier}: no answer is remembered");
        let question = &asker.questions()[0];
        assert_eq!(question.confinement.as_ref().map(|shown| shown.network), Some(Network::On), "{tier}");

        // A rule opens it without the model's asking. Where that opens local sockets
        // too, it still asks.
        let confine = scratch.at_most(tier);
        let asks = confine.network_reopens_sockets();
        let tools = Toolbox::standard(&scratch.work_with(confine), Permissions::new(network_rules(), Mode::Ask));
        let name = format!("by-rule-{tier}");
        let result = run(&tools, &Nobody, "shell", touch(&name)).await;
        assert_eq!((result.is_error, scratch.root().join(&name).exists()), (asks, !asks), "{tier}: {}", result.content);
    }
}

#[tokio::test]
async fn k2_what_is_refused_says_that_it_may_be_the_sandbox() {
    let scratch = Scratch::new("k2-refused");
    for tier in scratch.tiers() {
        let tools = scratch.tools_at(tier, &[], Mode::AllowAll);
        let said = fails(&tools, "shell", json!({"command": "touch ../beside-the-root && exit 4"})).await;
        let expected = format!("[may be the sandbox: {tier} forbids writing outside the working directory");
        assert_eq!(said.contains(&expected), tier != Tier::None, "{tier}: {said}");
        let made = scratch.beside("beside-the-root");
        assert_eq!(made.exists(), tier == Tier::None, "{tier}");
        drop(fs::remove_file(made));
        // A failure of its own is not blamed on it.
        let said = fails(&tools, "shell", json!({"command": "echo no such thing; exit 1"})).await;
        assert!(!said.contains("sandbox"), "{said}");
    }
}

fn repository(scratch: &Scratch) {
    let status = Command::new("git").args(["init", "-q"]).current_dir(scratch.root()).status().unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn k1_a_protected_path_is_restored_unless_the_person_approved_the_command() {
    let scratch = Scratch::new("k1-protected");
    repository(&scratch);
    let config = fs::read_to_string(scratch.root().join(".git/config")).unwrap();
    let attack =
        json!({ "command": "echo evil > .git/hooks/pre-commit; echo evil >> .git/config; echo evil > .envrc; true" });
    for tier in scratch.tiers().into_iter().filter(|tier| *tier != Tier::None) {
        let hook = scratch.root().join(".git/hooks/pre-commit");
        let tools = scratch.tools_at(tier, &[("shell", "allow")], Mode::Ask);
        let asker = Scripted::new([]);
        let result = run(&tools, &asker, "shell", attack.clone()).await;
        assert!(result.content.contains("restored after this command changed it"), "{tier}: {}", result.content);
        assert!(!hook.exists() && !scratch.root().join(".envrc").exists(), "{tier}");
        assert_eq!(fs::read_to_string(scratch.root().join(".git/config")).unwrap(), config, "{tier}");
        assert!(asker.troubles().iter().any(|told| told.contains("restored")), "{tier}: the person is told too");

        let tools = scratch.tools_at(tier, &[], Mode::Ask);
        let asker = Scripted::new([Permit::Once]);
        let result = run(&tools, &asker, "shell", json!({ "command": "echo mine > .git/hooks/pre-commit" })).await;
        assert!(!result.is_error, "{tier}: {}", result.content);
        assert_eq!(fs::read_to_string(&hook).unwrap(), "mine\n", "{tier}");
        assert!(result.content.contains("protected, and changed by this command"), "{tier}: {}", result.content);
        fs::remove_file(&hook).unwrap();
    }
}

#[tokio::test]
async fn k1_commits_work_where_hooks_and_config_are_protected() {
    let scratch = Scratch::new("k1-commit");
    repository(&scratch);
    for tier in scratch.tiers() {
        let tools = scratch.tools_at(tier, &[("shell", "allow")], Mode::AllowAll);
        let command = "date > f; git add f && git -c user.name=a -c user.email=a@b.c commit -qm x --allow-empty";
        let said = ok(&tools, "shell", json!({ "command": command })).await;
        assert_eq!(said, "[exit code 0]", "{tier}");
    }
}

#[tokio::test]
async fn k4_old_landlock_says_what_it_cannot_hold() {
    let scratch = Scratch::new("k4-old");
    for (abi, warns) in [(5, true), (6, false)] {
        let confine = scratch.confine(Wish::Auto).limited(Limit { tier: Tier::Kernel, abi });
        if confine.best() != Tier::Kernel {
            // Without Landlock everything asks, which another test sees to.
            assert!(confine.found().landlock.is_none());
            continue;
        }
        let tools = Toolbox::standard(&scratch.work_with(confine), Permissions::new(Rules::new(), Mode::Ask));
        let asker = Scripted::new([Permit::Once]);
        assert!(!run(&tools, &asker, "shell", touch("old")).await.is_error);
        let shown = asker.questions()[0].confinement.clone().unwrap().to_string();
        assert_eq!(shown.contains("can signal your processes"), warns, "{abi}: {shown}");
    }
}

#[tokio::test]
async fn l4_a_command_that_kills_its_helper_is_ended_by_its_mark() {
    let scratch = Scratch::new("l4-helper");
    for tier in scratch.tiers() {
        let mark = format!("88{:07}.{}", std::process::id(), u8::from(tier == Tier::None));
        let tools = scratch.tools_at(tier, &[], Mode::AllowAll);
        let command =
            format!("setsid sleep {mark} >/dev/null 2>&1 & kill -9 $PPID; sleep 0.3; touch lived-{tier}; exit 5");
        let said = fails(&tools, "shell", json!({ "command": command })).await;
        let lived = scratch.root().join(format!("lived-{tier}")).exists();
        // Where it can be reached, the command does not outlive it.
        assert_eq!(said.contains("watches over it was killed"), !lived, "{tier}: {said}");
        let is_out_of_reach = match tier {
            Tier::None => false,
            Tier::Kernel => scratch.at_most(tier).found().landlock >= Some(6),
            Tier::Seatbelt | Tier::Strong => true,
        };
        assert!(lived || !is_out_of_reach, "{tier}: {said}");
        let lines = fs::read_dir("/proc").unwrap();
        let lines = lines.filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
        assert!(!lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(&mark)), "{tier}");
    }
}
