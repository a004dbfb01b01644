//! Probing what a machine supports, caching the result, and limiting it.

use std::fs;

use aside_confine::{Confine, ConfineSetting, Helper, MachineSupport, TierLimit};
use aside_core::permission_question::Tier;
use serde_json::Value;

use crate::support::{SandboxFolders, helper};

#[test]
fn k1_the_probe_result_is_cached_until_something_changes() {
    let folders = SandboxFolders::new("remembered");
    let state = folders.0.join("state");
    let fresh = || Confine::new(helper(), ConfineSetting::Auto, folders.paths()).with_cache_in(&state);
    let first = fresh().support().clone();
    let file = state.join("confine.json");
    let mut stored: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    // The cache is used: an impossible result comes back.
    stored["found"]["missing"] = serde_json::json!(["remembered"]);
    fs::write(&file, stored.to_string()).unwrap();
    assert_eq!(fresh().support().missing, ["remembered"]);
    // The cache is not used for another boot, another program, or a replaced bubblewrap.
    for (path, value) in [("/key/boot", "other"), ("/key/program", "other"), ("/found/bubblewrap", "/tmp/evil")] {
        let mut wrong = stored.clone();
        *wrong.pointer_mut(path).unwrap() = Value::from(value);
        fs::write(&file, wrong.to_string()).unwrap();
        assert_eq!(*fresh().support(), first, "{path}");
    }
    fs::write(&file, "{ half").unwrap();
    assert_eq!(*fresh().support(), first);
}

#[test]
fn k1_a_cache_that_commands_can_write_is_not_trusted() {
    let folders = SandboxFolders::new("forged");
    let state = folders.root().join("state");
    let fresh = || Confine::new(helper(), ConfineSetting::Auto, folders.paths()).with_cache_in(&state);
    let found = fresh().support().clone();
    assert!(!state.join("confine.json").exists());
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("confine.json"), "{}").unwrap();
    assert_eq!(*fresh().support(), found);
}

#[test]
fn k1_a_limit_only_removes_tiers() {
    let folders = SandboxFolders::new("limits");
    let best = folders.confine().best_tier();
    for tier in [Tier::None, Tier::Seatbelt, Tier::Kernel, Tier::Strong] {
        let confine = folders.confine().with_limit(TierLimit { tier, ..TierLimit::NONE });
        assert!(confine.best_tier() <= tier && confine.best_tier() <= best, "{tier}: {}", confine.best_tier());
        // Every missing tier has a reason.
        assert_eq!(confine.best_tier() == Tier::Strong, confine.support().missing.is_empty() && best == Tier::Strong);
    }
    let old = folders.confine().with_limit(TierLimit { tier: Tier::Kernel, abi: 1 });
    assert_eq!(old.best_tier(), Tier::None);
}

#[test]
fn k3_a_program_that_is_not_a_helper_means_no_tier_and_no_panic() {
    let folders = SandboxFolders::new("no-helper");
    for program in ["/bin/false", "/bin/cat", "/no/such/program"] {
        let confine = Confine::new(Helper::at(program), ConfineSetting::Auto, folders.paths());
        let MachineSupport { bubblewrap, landlock, missing, .. } = confine.support().clone();
        assert_eq!((bubblewrap, landlock), (None, None), "{program}");
        assert!(!missing.is_empty(), "{program}");
        assert!(
            Confine::new(Helper::at(program), ConfineSetting::Require, folders.paths()).tier().is_err(),
            "{program}"
        );
    }
}
