//! A thought in all its states.

use aside_core::block::{Block, Span, Time};
use aside_core::event::{BlockId, End, Ending, Side};
use aside_core::message::{Message, Role};
use aside_core::turn::TurnEnd;
use aside_tui::seam::{Opening, Update};

use super::{Scene, check_scenes};
use crate::support::{Stage, hidden, thinking, words};

const WORDS: &str = "The user wants to know why the build fails on one machine only.\nI look at the log first.";
const TITLED: &str = "**Reading the log**\n\nThe linker runs out of memory, so I look at what it links.";
pub(super) const ITEMS: [&str; 2] =
    [TITLED, "**Weighing two ways out of it**\n\n- fewer jobs at once\n- a smaller binary"];

fn begin(stage: &mut Stage) {
    stage.send();
    stage.open(0, Opening::Thinking);
}

fn run(stage: &mut Stage, text: &str) {
    begin(stage);
    stage.grow(0, text);
    stage.pass(7_300);
}

fn done(stage: &mut Stage, text: &str, ms: Option<u64>) {
    begin(stage);
    stage.grow(0, text);
    let span = ms.map(|ms| Span { started: Time(1_000), ended: Time(1_000 + ms) });
    stage.close(0, Block::Thinking(thinking(text, span)));
}

fn long() -> String {
    (1..=12).map(|line| format!("line {line} of the thought\n")).collect()
}

pub(super) fn summary(stage: &mut Stage) {
    begin(stage);
    for item in ITEMS {
        stage.tell(Update::Item { block: BlockId(0) });
        stage.grow(0, item);
    }
    stage.pass(7_300);
}

pub(super) const SCENES: &[Scene] = &[
    Scene { name: "just begun", play: begin },
    Scene { name: "running, one word", play: |stage| run(stage, "I") },
    Scene { name: "running, no title", play: |stage| run(stage, WORDS) },
    Scene { name: "running, with a title", play: |stage| run(stage, TITLED) },
    Scene { name: "running, more than the window has room for", play: |stage| run(stage, &long()) },
    Scene {
        name: "running, opened by the user",
        play: |stage| {
            run(stage, &long());
            stage.control('o');
        },
    },
    Scene {
        name: "running, folded by the user",
        play: |stage| {
            run(stage, WORDS);
            while transcript_rows(stage) != 1 && stage.app.transcript().view().as_str() != "off" {
                stage.control('o');
            }
        },
    },
    Scene { name: "running, a summary in its second item", play: summary },
    Scene {
        name: "running, a second item without a title yet",
        play: |stage| {
            run(stage, TITLED);
            stage.tell(Update::Item { block: BlockId(0) });
            stage.grow(0, "**Weigh");
        },
    },
    Scene { name: "done, quoted words", play: |stage| done(stage, WORDS, Some(12_000)) },
    Scene { name: "done, a title", play: |stage| done(stage, TITLED, Some(12_000)) },
    Scene { name: "done, a summary", play: |stage| done(stage, &ITEMS.join("\n\n"), Some(125_000)) },
    Scene { name: "done, time unknown", play: |stage| done(stage, WORDS, None) },
    Scene { name: "done, at once", play: |stage| done(stage, "Hm.", Some(400)) },
    Scene {
        name: "done, toggled by the user",
        play: |stage| {
            done(stage, WORDS, Some(12_000));
            stage.control('o');
        },
    },
    Scene {
        name: "interrupted",
        play: |stage| {
            run(stage, WORDS);
            stage.tell(Update::TurnEnded(TurnEnd::Interrupted));
        },
    },
    Scene {
        name: "cut off by the network",
        play: |stage| {
            run(stage, TITLED);
            stage.tell(Update::ReplyEnded(End { ending: Ending::CutOff, error: None }));
            stage.tell(Update::TurnEnded(TurnEnd::CutOff));
        },
    },
    Scene {
        name: "interrupted, from the store",
        play: |stage| {
            let message = Message::new(Role::Assistant, vec![Block::Thinking(thinking(WORDS, None))]);
            stage.tell(Update::Restored(vec![Message { interrupted: true, ..message }]));
        },
    },
    Scene {
        name: "encrypted alone",
        play: |stage| {
            begin(stage);
            stage.close(0, Block::Thinking(hidden()));
            stage.write(1, "So.");
        },
    },
    Scene {
        name: "nothing but thinking",
        play: |stage| {
            done(stage, WORDS, Some(3_000));
            stage.end(TurnEnd::ThinkingOnly { for_length: false });
        },
    },
    Scene {
        name: "nothing but thinking, at the output limit",
        play: |stage| {
            done(stage, WORDS, Some(3_000));
            stage.end(TurnEnd::ThinkingOnly { for_length: true });
        },
    },
    Scene {
        name: "empty",
        play: |stage| {
            done(stage, " \n", None);
            stage.write(1, "So.");
        },
    },
    Scene {
        name: "text that turned out to be one",
        play: |stage| {
            stage.send();
            stage.open(0, Opening::Text);
            stage.grow(0, "I wonder");
            stage.tell(Update::Refiled { block: BlockId(0), to: Side::Thinking });
            stage.grow(0, " why.");
        },
    },
    Scene {
        name: "several, with an answer and a call between them",
        play: |stage| {
            stage.send();
            stage.think(0, "First I look.", 2_000);
            stage.think(1, "And once more.", 1_000);
            stage.write(2, "Let me see.");
            stage.think(3, "Now the file.", 1_000);
            stage.call(4, "c1", "read", r#"{"path":"a.rs"}"#);
            stage.result("c1", "one\ntwo", false);
            stage.send();
            stage.think(0, "That is all.", 4_000);
            stage.write(1, "It is so.");
            stage.end(TurnEnd::Answered);
        },
    },
    Scene {
        name: "with Markdown in it",
        play: |stage| {
            let text = "## Plan\n\n1. *read* `a.rs`\n2. run\n\n```rust\nfn main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> so it says";
            done(stage, text, Some(1_000));
        },
    },
    Scene {
        name: "in many scripts",
        play: |stage| {
            for (block, text) in super::talk::SCRIPTS.iter().enumerate() {
                let block = block as u32;
                stage.open(block, Opening::Thinking);
                stage.grow(block, text);
                stage.close(block, Block::Thinking(thinking(text, None)));
            }
            stage.open(9, Opening::Thinking);
            stage.close(9, words("So."));
        },
    },
];

fn transcript_rows(stage: &mut Stage) -> usize {
    stage.said().len()
}

#[test]
fn t1_t6_a_thought_in_every_state_view_and_width() {
    check_scenes("thoughts", SCENES);
}
