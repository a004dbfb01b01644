//! A call in all its states.

use aside_core::block::{Block, ToolResult};
use aside_core::turn::TurnEnd;
use aside_tui::seam::{Opening, Update};

use super::{Scene, check_scenes};
use crate::support::{Stage, call};

pub(super) const DIFF: &str = "edited `src/lib.rs`\n--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,5 +1,5 @@\n fn a() {}\n-let old = compute(1, 2, 3).expect(\"it is small enough to fit\");\n+let new = compute(1, 2);\n ++count;\n--- gone\n+++kept;\n fn b() {}";

fn calls(stage: &mut Stage, name: &str, arguments: &str) {
    stage.send();
    stage.call(0, "c1", name, arguments);
}

fn starts(stage: &mut Stage, name: &str, arguments: &str) {
    calls(stage, name, arguments);
    let Block::ToolCall(started) = call("c1", name, arguments) else { unreachable!("it is a call") };
    stage.tell(Update::ToolStarted(Box::new(started)));
}

fn ends(stage: &mut Stage, name: &str, arguments: &str, content: &str, is_error: bool) {
    starts(stage, name, arguments);
    stage.pass(400);
    stage.result("c1", content, is_error);
}

fn long() -> String {
    (1..=30).map(|line| format!("{line}: a line of output that says something\n")).collect()
}

const SHELL: &str = r#"{"command":"cargo test"}"#;

pub(super) const SCENES: &[Scene] = &[
    Scene {
        name: "announced",
        play: |stage| {
            stage.send();
            stage.open(0, Opening::ToolCall { name: "write".into() });
        },
    },
    Scene {
        name: "arguments growing",
        play: |stage| {
            stage.send();
            stage.open(0, Opening::ToolCall { name: "write".into() });
            stage.grow(0, r#"{"path":"src/lib.rs","content":"fn ma"#);
        },
    },
    Scene {
        name: "arguments growing, open",
        play: |stage| {
            stage.send();
            stage.open(0, Opening::ToolCall { name: "write".into() });
            stage.grow(0, r#"{"path":"src/lib.rs","content":"fn ma"#);
            stage.control('o');
        },
    },
    Scene { name: "waiting", play: |stage| calls(stage, "shell", SHELL) },
    Scene { name: "running", play: |stage| starts(stage, "shell", SHELL) },
    Scene {
        name: "running for a while",
        play: |stage| {
            starts(stage, "shell", SHELL);
            stage.pass(12_300);
        },
    },
    Scene { name: "done", play: |stage| ends(stage, "shell", SHELL, "all passed", false) },
    Scene {
        name: "done after a while",
        play: |stage| {
            starts(stage, "shell", SHELL);
            stage.pass(12_300);
            stage.result("c1", "one\ntwo", false);
        },
    },
    Scene { name: "done, without output", play: |stage| ends(stage, "shell", SHELL, "", false) },
    Scene { name: "failed", play: |stage| ends(stage, "shell", SHELL, "error: one test failed\nfull log below", true) },
    Scene { name: "failed, without output", play: |stage| ends(stage, "shell", SHELL, "", true) },
    Scene {
        name: "done, without output, open",
        play: |stage| {
            ends(stage, "shell", SHELL, "", false);
            stage.control('o');
        },
    },
    Scene {
        name: "denied",
        play: |stage| {
            calls(stage, "shell", r#"{"command":"rm -rf target"}"#);
            stage.result("c1", "denied by the user, who says: not now; nothing was done", true);
        },
    },
    Scene { name: "a change", play: |stage| ends(stage, "edit", r#"{"path":"src/lib.rs"}"#, DIFF, false) },
    Scene {
        name: "a change, folded",
        play: |stage| {
            ends(stage, "edit", r#"{"path":"src/lib.rs"}"#, DIFF, false);
            stage.control('o');
        },
    },
    Scene { name: "long output, folded", play: |stage| ends(stage, "shell", SHELL, &long(), false) },
    Scene {
        name: "long output, open",
        play: |stage| {
            ends(stage, "shell", SHELL, &long(), false);
            stage.control('o');
        },
    },
    Scene {
        name: "not run",
        play: |stage| {
            calls(stage, "shell", SHELL);
            stage.tell(Update::TurnEnded(TurnEnd::Interrupted));
        },
    },
    Scene {
        name: "stopped by the user",
        play: |stage| {
            starts(stage, "shell", SHELL);
            stage.pass(3_000);
            stage.result("c1", "stopped by the user before it ended", true);
            stage.tell(Update::TurnEnded(TurnEnd::Interrupted));
        },
    },
    Scene {
        name: "stopped before it was allowed",
        play: |stage| {
            calls(stage, "shell", SHELL);
            stage.result("c1", "interrupted before it was allowed; nothing was done", true);
            stage.tell(Update::TurnEnded(TurnEnd::Interrupted));
        },
    },
    Scene {
        name: "interrupted while the arguments came",
        play: |stage| {
            stage.send();
            stage.open(0, Opening::ToolCall { name: "write".into() });
            stage.grow(0, r#"{"path":"src"#);
            stage.tell(Update::TurnEnded(TurnEnd::Interrupted));
        },
    },
    Scene { name: "broken arguments", play: |stage| calls(stage, "edit", r#"{"path":"a.rs","#) },
    Scene { name: "no arguments", play: |stage| calls(stage, "list", "{}") },
    Scene {
        name: "other arguments",
        play: |stage| calls(stage, "frost", r#"{"row":1,"deep":{"a":[1,2]},"note":"x y"}"#),
    },
    Scene {
        name: "a command of several lines",
        play: |stage| calls(stage, "shell", r#"{"command":"for f in *.rs\ndo\n\twc -l $f\ndone"}"#),
    },
    Scene {
        name: "a long name and a long subject",
        play: |stage| {
            let name = "mcp__a_server_with_a_long_name__a_tool_with_a_longer_name";
            ends(stage, name, r#"{"path":"a/path/with/many/parts/that/goes/on/and/on/src/lib.rs"}"#, "ok", false);
        },
    },
    Scene {
        name: "a result whose call nobody saw",
        play: |stage| {
            let result = ToolResult { id: "c9".into(), name: "read".into(), content: "one".into(), is_error: false };
            stage.tell(Update::ToolEnded(Box::new(result)));
        },
    },
    Scene {
        name: "several at once",
        play: |stage| {
            stage.send();
            for (block, id) in ["c1", "c2", "c3"].iter().enumerate() {
                stage.call(block as u32, id, "read", &format!(r#"{{"path":"{id}.rs"}}"#));
            }
            stage.result("c2", "two", false);
            stage.result("c3", "no such file", true);
        },
    },
    Scene {
        name: "many scripts",
        play: |stage| {
            stage.send();
            for (block, text) in super::talk::SCRIPTS.iter().enumerate() {
                let id = format!("c{block}");
                let arguments = serde_json::json!({ "command": text }).to_string();
                stage.call(block as u32, &id, "shell", &arguments);
                stage.result(&id, text, true);
            }
        },
    },
];

#[test]
fn t4_a_call_in_every_state_and_width() {
    check_scenes("tools", SCENES);
}
