//! A thinking block in all its states.

use std::sync::Arc;

use aside_core::block::{Block, ThinkingSpan, Time};
use aside_core::event::{BlockId, Ending, ProseKind, ReplyEnd};
use aside_core::message::{Message, Role};
use aside_core::turn::TurnEnd;
use aside_front::{OpenedBlock, Update};

use super::{StateScene, check_scenes};
use crate::support::{TestTerminal, hidden, text_block, thinking};

const WORDS: &str = "The user wants to know why the build fails on one machine only.\nI look at the log first.";
const TITLED: &str = "**Reading the log**\n\nThe linker runs out of memory, so I look at what it links.";
pub(super) const ITEMS: [&str; 2] =
    [TITLED, "**Weighing two ways out of it**\n\n- fewer jobs at once\n- a smaller binary"];

fn begin(term: &mut TestTerminal) {
    term.send();
    term.open(0, OpenedBlock::Thinking);
}

fn run(term: &mut TestTerminal, text: &str) {
    begin(term);
    term.grow(0, text);
    term.advance(7_300);
}

fn done(term: &mut TestTerminal, text: &str, ms: Option<u64>) {
    begin(term);
    term.grow(0, text);
    let span = ms.map(|ms| ThinkingSpan { started: Time(1_000), ended: Time(1_000 + ms) });
    term.close(0, Block::Thinking(thinking(text, span)));
}

fn long() -> String {
    (1..=12).map(|line| format!("line {line} of the thought\n")).collect()
}

pub(super) fn summary(term: &mut TestTerminal) {
    begin(term);
    for item in ITEMS {
        term.update(Update::Item { block: BlockId(0) });
        term.grow(0, item);
    }
    term.advance(7_300);
}

pub(super) const SCENES: &[StateScene] = &[
    StateScene { name: "just begun", play: begin },
    StateScene { name: "running, one word", play: |term| run(term, "I") },
    StateScene { name: "running, no title", play: |term| run(term, WORDS) },
    StateScene { name: "running, with a title", play: |term| run(term, TITLED) },
    StateScene { name: "running, more than the window has room for", play: |term| run(term, &long()) },
    StateScene {
        name: "running, opened by the user",
        play: |term| {
            run(term, &long());
            term.control('o');
        },
    },
    StateScene {
        name: "running, folded by the user",
        play: |term| {
            run(term, WORDS);
            while transcript_rows(term) != 1 && term.app.transcript().view().as_str() != "off" {
                term.control('o');
            }
        },
    },
    StateScene { name: "running, a summary in its second item", play: summary },
    StateScene {
        name: "running, a second item without a title yet",
        play: |term| {
            run(term, TITLED);
            term.update(Update::Item { block: BlockId(0) });
            term.grow(0, "**Weigh");
        },
    },
    StateScene { name: "done, quoted words", play: |term| done(term, WORDS, Some(12_000)) },
    StateScene { name: "done, a title", play: |term| done(term, TITLED, Some(12_000)) },
    StateScene { name: "done, a summary", play: |term| done(term, &ITEMS.join("\n\n"), Some(125_000)) },
    StateScene { name: "done, time unknown", play: |term| done(term, WORDS, None) },
    StateScene { name: "done, at once", play: |term| done(term, "Hm.", Some(400)) },
    StateScene {
        name: "done, toggled by the user",
        play: |term| {
            done(term, WORDS, Some(12_000));
            term.control('o');
        },
    },
    StateScene {
        name: "interrupted",
        play: |term| {
            run(term, WORDS);
            term.update(Update::TurnEnded(TurnEnd::Interrupted));
        },
    },
    StateScene {
        name: "cut off by the network",
        play: |term| {
            run(term, TITLED);
            term.update(Update::ReplyEnded(ReplyEnd { ending: Ending::CutOff, error: None }));
            term.update(Update::TurnEnded(TurnEnd::CutOff));
        },
    },
    StateScene {
        name: "interrupted, from the store",
        play: |term| {
            let message = Message::new(Role::Assistant, vec![Block::Thinking(thinking(WORDS, None))]);
            term.update(Update::Restored(vec![Arc::new(Message { interrupted: true, ..message })]));
        },
    },
    StateScene {
        name: "encrypted alone",
        play: |term| {
            begin(term);
            term.close(0, Block::Thinking(hidden()));
            term.write(1, "So.");
        },
    },
    StateScene {
        name: "nothing but thinking",
        play: |term| {
            done(term, WORDS, Some(3_000));
            term.end(TurnEnd::ThinkingOnly { for_length: false });
        },
    },
    StateScene {
        name: "nothing but thinking, at the output limit",
        play: |term| {
            done(term, WORDS, Some(3_000));
            term.end(TurnEnd::ThinkingOnly { for_length: true });
        },
    },
    StateScene {
        name: "empty",
        play: |term| {
            done(term, " \n", None);
            term.write(1, "So.");
        },
    },
    StateScene {
        name: "text that turned out to be one",
        play: |term| {
            term.send();
            term.open(0, OpenedBlock::Text);
            term.grow(0, "I wonder");
            term.update(Update::Refiled { block: BlockId(0), to: ProseKind::Thinking });
            term.grow(0, " why.");
        },
    },
    StateScene {
        name: "several, with an answer and a call between them",
        play: |term| {
            term.send();
            term.think(0, "First I look.", 2_000);
            term.think(1, "And once more.", 1_000);
            term.write(2, "Let me see.");
            term.think(3, "Now the file.", 1_000);
            term.call(4, "c1", "read", r#"{"path":"a.rs"}"#);
            term.result("c1", "one\ntwo", false);
            term.send();
            term.think(0, "That is all.", 4_000);
            term.write(1, "It is so.");
            term.end(TurnEnd::Answered);
        },
    },
    StateScene {
        name: "with Markdown in it",
        play: |term| {
            let text = "## Plan\n\n1. *read* `a.rs`\n2. run\n\n```rust\nfn main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> so it says";
            done(term, text, Some(1_000));
        },
    },
    StateScene {
        name: "in many scripts",
        play: |term| {
            for (block, text) in super::messages::SCRIPTS.iter().enumerate() {
                let block = block as u32;
                term.open(block, OpenedBlock::Thinking);
                term.grow(block, text);
                term.close(block, Block::Thinking(thinking(text, None)));
            }
            term.open(9, OpenedBlock::Thinking);
            term.close(9, text_block("So."));
        },
    },
];

fn transcript_rows(term: &mut TestTerminal) -> usize {
    term.transcript().len()
}

#[test]
fn t1_t6_thinking_in_every_state_view_and_width() {
    check_scenes("thoughts", SCENES);
}
