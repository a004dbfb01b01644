//! What a machine can do, as it is found, remembered and limited.

use std::fs;

use aside_confine::{Confine, Found, Helper, Limit, Wish};
use aside_core::question::Tier;
use serde_json::Value;

use crate::support::{Scratch, helper};

#[test]
fn k1_what_was_found_is_remembered_until_something_changes() {
    let scratch = Scratch::new("remembered");
    let state = scratch.0.join("state");
    let fresh = || Confine::new(helper(), Wish::Auto, scratch.places()).remembering(&state);
    let first = fresh().found().clone();
    let file = state.join("confine.json");
    let mut stored: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    // It is read again: a finding that no machine has comes back.
    stored["found"]["missing"] = serde_json::json!(["remembered"]);
    fs::write(&file, stored.to_string()).unwrap();
    assert_eq!(fresh().found().missing, ["remembered"]);
    // Another boot, another program, or a program in place of bubblewrap: not.
    for (path, value) in [("/key/boot", "other"), ("/key/program", "other"), ("/found/bubblewrap", "/tmp/evil")] {
        let mut wrong = stored.clone();
        *wrong.pointer_mut(path).unwrap() = Value::from(value);
        fs::write(&file, wrong.to_string()).unwrap();
        assert_eq!(*fresh().found(), first, "{path}");
    }
    fs::write(&file, "{ half").unwrap();
    assert_eq!(*fresh().found(), first);
}

#[test]
fn k1_a_finding_that_commands_can_write_is_not_believed() {
    let scratch = Scratch::new("forged");
    let state = scratch.root().join("state");
    let fresh = || Confine::new(helper(), Wish::Auto, scratch.places()).remembering(&state);
    let found = fresh().found().clone();
    assert!(!state.join("confine.json").exists());
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("confine.json"), "{}").unwrap();
    assert_eq!(*fresh().found(), found);
}

#[test]
fn k1_a_limit_only_takes_away() {
    let scratch = Scratch::new("limits");
    let best = scratch.confine().best();
    for tier in [Tier::None, Tier::Seatbelt, Tier::Kernel, Tier::Strong] {
        let confine = scratch.confine().limited(Limit { tier, ..Limit::NONE });
        assert!(confine.best() <= tier && confine.best() <= best, "{tier}: {}", confine.best());
        // Whatever is not there has a reason.
        assert_eq!(confine.best() == Tier::Strong, confine.found().missing.is_empty() && best == Tier::Strong);
    }
    let old = scratch.confine().limited(Limit { tier: Tier::Kernel, abi: 1 });
    assert_eq!(old.best(), Tier::None);
}

#[test]
fn k3_a_helper_that_is_none_means_no_tier_and_no_panic() {
    let scratch = Scratch::new("no-helper");
    for program in ["/bin/false", "/bin/cat", "/no/such/program"] {
        let confine = Confine::new(Helper::at(program), Wish::Auto, scratch.places());
        let Found { bubblewrap, landlock, missing, .. } = confine.found().clone();
        assert_eq!((bubblewrap, landlock), (None, None), "{program}");
        assert!(!missing.is_empty(), "{program}");
        assert!(Confine::new(Helper::at(program), Wish::Require, scratch.places()).tier().is_err(), "{program}");
    }
}
