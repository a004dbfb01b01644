//! A tool call in all its states.

use aside_core::block::{Block, ToolResult};
use aside_core::turn::TurnEnd;
use aside_front::{OpenedBlock, PendingQuestion, QuestionId, Update};

use super::{StateScene, check_scenes};
use crate::support::{TestTerminal, call, question_about};

pub(super) const DIFF: &str = "edited `src/lib.rs`\n--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,5 +1,5 @@\n fn a() {}\n-let old = compute(1, 2, 3).expect(\"it is small enough to fit\");\n+let new = compute(1, 2);\n ++count;\n--- gone\n+++kept;\n fn b() {}";

fn calls(term: &mut TestTerminal, name: &str, arguments: &str) {
    term.send();
    term.call(0, "c1", name, arguments);
}

fn starts(term: &mut TestTerminal, name: &str, arguments: &str) {
    calls(term, name, arguments);
    let Block::ToolCall(started) = call("c1", name, arguments) else { unreachable!("it is a call") };
    term.update(Update::ToolStarted(Box::new(started)));
}

fn ends(term: &mut TestTerminal, name: &str, arguments: &str, content: &str, is_error: bool) {
    starts(term, name, arguments);
    term.advance(400);
    term.result("c1", content, is_error);
}

fn long() -> String {
    (1..=30).map(|line| format!("{line}: a line of output that says something\n")).collect()
}

const SHELL: &str = r#"{"command":"cargo test"}"#;

const LONG_COMMAND: &str = r#"{"command":"cargo test --workspace --all-targets --no-fail-fast -- --skip slow --skip network --test-threads 1 --nocapture"}"#;
const COMMAND_OF_MANY_LINES: &str = r#"{"command":"for file in *.rs\ndo\n\twc -l \"$file\"\ndone\nfor file in *.toml\ndo\n\twc -l \"$file\"\ndone\necho counted everything \u001b[2J there is"}"#;

pub(super) const SCENES: &[StateScene] = &[
    StateScene {
        name: "announced",
        play: |term| {
            term.send();
            term.open(0, OpenedBlock::ToolCall { name: "write".into() });
        },
    },
    StateScene {
        name: "arguments growing",
        play: |term| {
            term.send();
            term.open(0, OpenedBlock::ToolCall { name: "write".into() });
            term.grow(0, r#"{"path":"src/lib.rs","content":"fn ma"#);
        },
    },
    StateScene {
        name: "arguments growing, open",
        play: |term| {
            term.send();
            term.open(0, OpenedBlock::ToolCall { name: "write".into() });
            term.grow(0, r#"{"path":"src/lib.rs","content":"fn ma"#);
            term.control('o');
        },
    },
    StateScene { name: "waiting", play: |term| calls(term, "shell", SHELL) },
    StateScene { name: "running", play: |term| starts(term, "shell", SHELL) },
    StateScene {
        name: "running for a while",
        play: |term| {
            starts(term, "shell", SHELL);
            term.advance(12_300);
        },
    },
    StateScene {
        name: "running, with its newest lines",
        play: |term| {
            starts(term, "shell", SHELL);
            let tail = (41..=50).map(|line| format!("test number_{line} ... ok\n")).collect();
            term.update(Update::ToolOutput { call: "c1".to_owned(), tail, n_lines: 50 });
            term.advance(2_000);
        },
    },
    StateScene {
        name: "running, with a progress bar and blank lines",
        play: |term| {
            starts(term, "shell", SHELL);
            let tail = "one\r\ntwo\r\n 10%\r 20%\r\u{1b}[K100%\r\n\r\n\n".to_owned();
            term.update(Update::ToolOutput { call: "c1".to_owned(), tail, n_lines: 5 });
            term.advance(2_000);
        },
    },
    StateScene {
        name: "done, with a progress bar and blank lines",
        play: |term| {
            let output = "one\r\ntwo\r\n 10%\r 20%\r\u{1b}[K100%\r\n\r\n\n\n\n[exit code 0]";
            ends(term, "shell", SHELL, output, false);
        },
    },
    StateScene { name: "done", play: |term| ends(term, "shell", SHELL, "all passed", false) },
    StateScene {
        name: "done after a while",
        play: |term| {
            starts(term, "shell", SHELL);
            term.advance(12_300);
            term.result("c1", "one\ntwo", false);
        },
    },
    StateScene { name: "done, without output", play: |term| ends(term, "shell", SHELL, "", false) },
    StateScene {
        name: "failed",
        play: |term| ends(term, "shell", SHELL, "error: one test failed\nfull log below", true),
    },
    StateScene { name: "failed, without output", play: |term| ends(term, "shell", SHELL, "", true) },
    StateScene {
        name: "failed, with a long output",
        play: |term| ends(term, "shell", SHELL, &format!("{}[exit code 1]", long()), true),
    },
    StateScene {
        name: "a change that failed",
        play: |term| {
            ends(term, "edit", r#"{"path":"src/lib.rs"}"#, "`src/lib.rs`: the text to replace is missing", true)
        },
    },
    StateScene {
        name: "asked about",
        play: |term| {
            starts(term, "shell", SHELL);
            let about = question_about("shell", "cargo test", None, None);
            term.update(Update::QuestionAsked(Box::new(PendingQuestion { id: QuestionId(1), about })));
            term.advance(4_000);
        },
    },
    StateScene {
        name: "allowed after a while",
        play: |term| {
            starts(term, "shell", SHELL);
            let about = question_about("shell", "cargo test", None, None);
            term.update(Update::QuestionAsked(Box::new(PendingQuestion { id: QuestionId(1), about })));
            term.advance(4_000);
            term.type_text("y");
            term.advance(2_000);
        },
    },
    StateScene {
        name: "done, without output, open",
        play: |term| {
            ends(term, "shell", SHELL, "", false);
            term.control('o');
        },
    },
    StateScene {
        name: "denied",
        play: |term| {
            calls(term, "shell", r#"{"command":"rm -rf target"}"#);
            term.result("c1", "denied by the user, who says: not now; nothing was done", true);
        },
    },
    StateScene { name: "a change", play: |term| ends(term, "edit", r#"{"path":"src/lib.rs"}"#, DIFF, false) },
    StateScene {
        name: "a change, folded",
        play: |term| {
            ends(term, "edit", r#"{"path":"src/lib.rs"}"#, DIFF, false);
            term.control('o');
        },
    },
    StateScene { name: "long output: its last lines", play: |term| ends(term, "shell", SHELL, &long(), false) },
    StateScene {
        name: "long output, open",
        play: |term| {
            ends(term, "shell", SHELL, &long(), false);
            term.control('o');
        },
    },
    StateScene {
        name: "not run",
        play: |term| {
            calls(term, "shell", SHELL);
            term.update(Update::TurnEnded(TurnEnd::Interrupted));
        },
    },
    StateScene {
        name: "stopped by the user",
        play: |term| {
            starts(term, "shell", SHELL);
            term.advance(3_000);
            term.result("c1", "stopped by the user before it ended", true);
            term.update(Update::TurnEnded(TurnEnd::Interrupted));
        },
    },
    StateScene {
        name: "stopped before it was allowed",
        play: |term| {
            calls(term, "shell", SHELL);
            term.result("c1", "interrupted before it was allowed; nothing was done", true);
            term.update(Update::TurnEnded(TurnEnd::Interrupted));
        },
    },
    StateScene {
        name: "interrupted while the arguments came",
        play: |term| {
            term.send();
            term.open(0, OpenedBlock::ToolCall { name: "write".into() });
            term.grow(0, r#"{"path":"src"#);
            term.update(Update::TurnEnded(TurnEnd::Interrupted));
        },
    },
    StateScene { name: "broken arguments", play: |term| calls(term, "edit", r#"{"path":"a.rs","#) },
    StateScene { name: "no arguments", play: |term| calls(term, "list", "{}") },
    StateScene {
        name: "other arguments",
        play: |term| calls(term, "frost", r#"{"row":1,"deep":{"a":[1,2]},"note":"x y"}"#),
    },
    StateScene {
        name: "a command of several lines",
        play: |term| calls(term, "shell", r#"{"command":"for f in *.rs\ndo\n\twc -l $f\ndone"}"#),
    },
    StateScene {
        name: "a long name and a long subject",
        play: |term| {
            let name = "mcp__a_server_with_a_long_name__a_tool_with_a_longer_name";
            ends(term, name, r#"{"path":"a/path/with/many/parts/that/goes/on/and/on/src/lib.rs"}"#, "ok", false);
        },
    },
    StateScene {
        name: "a command that the header cuts",
        play: |term| ends(term, "shell", LONG_COMMAND, "one\ntwo", false),
    },
    StateScene {
        name: "a command of many lines with an output",
        play: |term| ends(term, "shell", COMMAND_OF_MANY_LINES, "one\ntwo", false),
    },
    StateScene {
        name: "a command of many lines with an output, opened",
        play: |term| {
            ends(term, "shell", COMMAND_OF_MANY_LINES, "one\ntwo", false);
            term.control('o');
        },
    },
    StateScene {
        name: "a result whose call nobody saw",
        play: |term| {
            let result = ToolResult {
                id: "c9".into(),
                name: "read".into(),
                content: "one".into(),
                is_error: false,
                media: Vec::new(),
            };
            term.update(Update::ToolEnded(Box::new(result)));
        },
    },
    StateScene {
        name: "several at once",
        play: |term| {
            term.send();
            for (block, id) in ["c1", "c2", "c3"].iter().enumerate() {
                term.call(block as u32, id, "read", &format!(r#"{{"path":"{id}.rs"}}"#));
            }
            term.result("c2", "two", false);
            term.result("c3", "no such file", true);
        },
    },
    StateScene {
        name: "many scripts",
        play: |term| {
            term.send();
            for (block, text) in super::messages::SCRIPTS.iter().enumerate() {
                let id = format!("c{block}");
                let arguments = serde_json::json!({ "command": text }).to_string();
                term.call(block as u32, &id, "shell", &arguments);
                term.result(&id, text, true);
            }
        },
    },
];

#[test]
fn t4_a_call_in_every_state_and_width() {
    check_scenes("tools", SCENES);
}
