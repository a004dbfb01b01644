//! Prompts, answers and notices.

use std::sync::Arc;
use std::time::Duration;

use aside_core::block::{Block, Media};
use aside_core::connection_failure::{ConnectionError, ConnectionFailure};
use aside_core::dialect::Repair;
use aside_core::event::{Ending, Note, NoteCode, ProviderError, ReplyEnd};
use aside_core::message::{Message, Role};
use aside_core::turn::{Declined, TurnEnd, TurnNotice};
use aside_front::{CommandOutput, OpenedBlock, Sending, Update};

use super::{StateScene, check_scenes};
use crate::support::{TestTerminal, text_block};

/// Wide, combining, multi-code-point and right-to-left characters, and an endless word.
pub(super) const SCRIPTS: [&str; 5] = [
    "編譯器在鏈接時耗盡了記憶體,所以我先看看它鏈接了什麼。然後再決定是減少並行任務,還是縮小二進制文件。",
    "👩‍💻 the 👨‍👩‍👧‍👦 of 🏳️‍🌈 flags 🇩🇪🇯🇵 and 👍🏽 thumbs, again and again 👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻",
    "Cafe\u{301} and nai\u{308}ve, Ti\u{1ebf}ng Vi\u{1ec7}t, na\u{304}ga\u{304}rjuna, Z\u{351}\u{36b}a\u{300}\u{301}lgo\u{308}\u{304}, हिन्दी और தமிழ்",
    "שלום עולם, זה טקסט מימין לשמאל with left to right in it, ثم العربية أيضا في نفس السطر",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaftsvorsitzendenstellvertreter/and/a/path/that/never/ends/src/lib.rs",
];

const ANSWER: &str = "## What I found\n\nThe *second* test fails, **not** the first:\n\n```rust\nfn cut(text: &str) -> String { text.chars().take(5).collect() } // wide letters count twice\n```\n\n| test | why |\n|---|---|\n| `cut` | a wide letter 👩‍💻 |\n| `wrap` | e\u{301} is one letter |\n\n- one\n  - inner\n- [x] done\n\n1. see [the rules](https://example.com/rules)\n2. ~~never~~ <https://example.com>\n\n> quoted, and long enough that it has to continue in a second row at forty columns\n\n---\n\nThe end.";

fn answer(term: &mut TestTerminal, text: &str, end: TurnEnd) {
    term.send();
    term.write(0, text);
    term.end(end);
}

fn streaming(term: &mut TestTerminal, text: &str) {
    term.send();
    term.open(0, OpenedBlock::Text);
    term.grow(0, text);
}

pub(super) const USER: &[StateScene] = &[
    StateScene { name: "one line", play: |term| term.line("why does the test fail?") },
    StateScene {
        name: "several lines, one of them long",
        play: |term| {
            term.line("why does the test fail?\n\n    let x = 1;\nand why does it fail on one machine only, although both have the same compiler and the same lock file?");
        },
    },
    StateScene { name: "many scripts", play: |term| term.line(&SCRIPTS.join("\n")) },
    StateScene { name: "no Markdown", play: |term| term.line("**not** bold, # no heading\n- no list") },
    StateScene { name: "escapes", play: |term| term.line("red \u{1b}[31mtext\u{7}\u{202e} turned") },
    StateScene {
        name: "from the store, with an image",
        play: |term| {
            let image = Media::image("image/png".into(), String::new());
            let blocks = vec![text_block("what is this?"), Block::Media(image)];
            term.update(Update::Restored(vec![Arc::new(Message::new(Role::User, blocks))]));
        },
    },
];

pub(super) const ANSWERS: &[StateScene] = &[
    StateScene { name: "streaming, in mid-word", play: |term| streaming(term, "The build fails because the lin") },
    StateScene { name: "streaming, marks not closed", play: |term| streaming(term, "It is **very im") },
    StateScene { name: "streaming, in code", play: |term| streaming(term, "So:\n\n```rust\nfn main() {\n    prin") },
    StateScene { name: "streaming, in a table", play: |term| streaming(term, "| test | why |\n|---|---|\n| cut | wi") },
    StateScene { name: "done", play: |term| answer(term, ANSWER, TurnEnd::Answered) },
    StateScene {
        name: "interrupted",
        play: |term| {
            streaming(term, "The build fails because the lin");
            term.update(Update::TurnEnded(TurnEnd::Interrupted));
        },
    },
    StateScene {
        name: "interrupted, from the store",
        play: |term| {
            let message = Message::new(Role::Assistant, vec![text_block("The build fails because the lin")]);
            term.update(Update::Restored(vec![Arc::new(Message { interrupted: true, ..message })]));
        },
    },
    StateScene { name: "cut at the output limit", play: |term| answer(term, "The build", TurnEnd::Length) },
    StateScene { name: "blank", play: |term| answer(term, " \n", TurnEnd::Answered) },
    StateScene { name: "many scripts", play: |term| answer(term, &SCRIPTS.join("\n\n"), TurnEnd::Answered) },
    StateScene {
        name: "escapes",
        play: |term| answer(term, "red \u{1b}[31mtext\u{7} and \u{202e}turned", TurnEnd::Answered),
    },
    StateScene {
        name: "a table too wide",
        play: |term| {
            let wide = "| name | what it does | 編譯器 |\n|:--|:-:|--:|\n| averyveryverylongnamewithoutaspace | it does a thing that takes many words to tell, more than fit | 記憶體 |\n| b | c | d |";
            answer(term, wide, TurnEnd::Answered);
        },
    },
];

fn ended(term: &mut TestTerminal, end: TurnEnd) {
    term.send();
    term.end(end);
}

fn output(term: &mut TestTerminal, output: CommandOutput) {
    term.update(Update::CommandOutput(output));
}

pub(super) const NOTICES: &[StateScene] = &[
    StateScene {
        name: "notes of a request",
        play: |term| {
            let notes = vec!["effort max is not known here; high is sent".to_owned(), "no budget is sent".to_owned()];
            term.update(Update::Sending(Box::new(Sending { notes, ..Sending::default() })));
        },
    },
    StateScene {
        name: "a note of the decoder",
        play: |term| {
            term.update(Update::Noted(Note::new(NoteCode::Malformed, "a frame could not be read and is left out")))
        },
    },
    StateScene {
        name: "trying again",
        play: |term| {
            let why = "the provider is overloaded (529)".to_owned();
            term.update(Update::Retrying { after: Duration::from_millis(1500), attempt: 2, why });
        },
    },
    StateScene {
        name: "repaired",
        play: |term| {
            term.update(Update::TurnNotice(TurnNotice::Repaired {
                row: "missing_field".into(),
                repair: Repair::StripForeign,
                refusal: "The `reasoning_content` in the thinking mode must be passed back to the API.\nmore".into(),
            }));
        },
    },
    StateScene {
        name: "a broken call",
        play: |term| term.update(Update::TurnNotice(TurnNotice::BrokenCall { name: "edit".into() })),
    },
    StateScene { name: "nothing came", play: |term| ended(term, TurnEnd::Empty) },
    StateScene { name: "declined by the model", play: |term| ended(term, TurnEnd::Declined(Declined::ByModel)) },
    StateScene { name: "declined by a filter", play: |term| ended(term, TurnEnd::Declined(Declined::ByFilter)) },
    StateScene { name: "cut off", play: |term| ended(term, TurnEnd::CutOff) },
    StateScene { name: "out of steps", play: |term| ended(term, TurnEnd::OutOfSteps(50)) },
    StateScene { name: "out of one step", play: |term| ended(term, TurnEnd::OutOfSteps(1)) },
    StateScene {
        name: "unreachable",
        play: |term| {
            ended(
                term,
                TurnEnd::Unreachable(ConnectionError::new(
                    ConnectionFailure::Other,
                    "cannot reach localhost:8080: connection refused",
                )),
            )
        },
    },
    StateScene {
        name: "failed",
        play: |term| {
            let message = "Rate limit reached for requests per minute.\nVisit the console to raise it.".to_owned();
            ended(term, TurnEnd::Failed(ProviderError::new(message).with_status(429)));
        },
    },
    StateScene { name: "a line", play: |term| output(term, CommandOutput::Line("model: acme/deep".into())) },
    StateScene {
        name: "wrong, with a hint",
        play: |term| {
            let hint = Some("minimal, low, medium, high".to_owned());
            output(term, CommandOutput::Error { what: "unknown effort `loud`".into(), hint });
        },
    },
    StateScene {
        name: "a table",
        play: |term| {
            let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
            let rows = vec![
                row(["reasoning.effort", "high", "session"]),
                row(["reasoning.display", "live", "built-in"]),
                row(["prompt.system", "You are a | careful\nhelper.", "config"]),
            ];
            output(term, CommandOutput::Table { head: row(["setting", "value", "from"]), rows });
        },
    },
    StateScene {
        name: "Markdown",
        play: |term| output(term, CommandOutput::Markdown("**Two** things:\n\n- one\n- two".into())),
    },
    StateScene {
        name: "an end with an error in the stream",
        play: |term| {
            term.send();
            term.write(0, "It beg");
            let error = ProviderError::new("overloaded");
            term.update(Update::ReplyEnded(ReplyEnd { ending: Ending::Stop, error: Some(error.clone()) }));
            term.update(Update::TurnEnded(TurnEnd::Failed(error)));
        },
    },
    StateScene {
        name: "many scripts",
        play: |term| SCRIPTS.iter().for_each(|text| output(term, CommandOutput::Line((*text).to_owned()))),
    },
];

#[test]
fn t13_prompts_at_every_width() {
    check_scenes("user", USER);
}

#[test]
fn t8_an_answer_in_every_state_and_width() {
    check_scenes("answers", ANSWERS);
}

#[test]
fn t13_every_notice_at_every_width() {
    check_scenes("notices", NOTICES);
}
