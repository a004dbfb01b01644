//! What is said: by the user, by the model, and by the program.

use std::time::Duration;

use aside_core::block::{Block, Image};
use aside_core::dialect::Repair;
use aside_core::event::{End, Ending, Note, NoteCode, ProviderError};
use aside_core::message::{Message, Role};
use aside_core::turn::{Declined, Told, TurnEnd};
use aside_tui::seam::{Opening, Said, Sending, Update};

use super::{Scene, check_scenes};
use crate::support::{Stage, words};

/// Letters of two columns, of none, of many code points, from right to left,
/// and a word that has no end.
pub(super) const SCRIPTS: [&str; 5] = [
    "編譯器在鏈接時耗盡了記憶體,所以我先看看它鏈接了什麼。然後再決定是減少並行任務,還是縮小二進制文件。",
    "👩‍💻 the 👨‍👩‍👧‍👦 of 🏳️‍🌈 flags 🇩🇪🇯🇵 and 👍🏽 thumbs, again and again 👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻",
    "Cafe\u{301} and nai\u{308}ve, Ti\u{1ebf}ng Vi\u{1ec7}t, na\u{304}ga\u{304}rjuna, Z\u{351}\u{36b}a\u{300}\u{301}lgo\u{308}\u{304}, हिन्दी और தமிழ்",
    "שלום עולם, זה טקסט מימין לשמאל with left to right in it, ثم العربية أيضا في نفس السطر",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaftsvorsitzendenstellvertreter/and/a/path/that/never/ends/src/lib.rs",
];

const ANSWER: &str = "## What I found\n\nThe *second* test fails, **not** the first:\n\n```rust\nfn cut(text: &str) -> String { text.chars().take(5).collect() } // wide letters count twice\n```\n\n| test | why |\n|---|---|\n| `cut` | a wide letter 👩‍💻 |\n| `wrap` | e\u{301} is one letter |\n\n- one\n  - inner\n- [x] done\n\n1. see [the rules](https://example.com/rules)\n2. ~~never~~ <https://example.com>\n\n> quoted, and long enough that it has to go on in a second row at forty columns\n\n---\n\nThe end.";

fn answer(stage: &mut Stage, text: &str, end: TurnEnd) {
    stage.send();
    stage.write(0, text);
    stage.end(end);
}

fn streaming(stage: &mut Stage, text: &str) {
    stage.send();
    stage.open(0, Opening::Text);
    stage.grow(0, text);
}

pub(super) const USER: &[Scene] = &[
    Scene { name: "one line", play: |stage| stage.line("why does the test fail?") },
    Scene {
        name: "several lines, one of them long",
        play: |stage| {
            stage.line("why does the test fail?\n\n    let x = 1;\nand why does it fail on one machine only, although both have the same compiler and the same lock file?");
        },
    },
    Scene { name: "many scripts", play: |stage| stage.line(&SCRIPTS.join("\n")) },
    Scene { name: "no Markdown", play: |stage| stage.line("**not** bold, # no heading\n- no list") },
    Scene { name: "escapes", play: |stage| stage.line("red \u{1b}[31mtext\u{7}\u{202e} turned") },
    Scene {
        name: "from the store, with an image",
        play: |stage| {
            let image = Image { media_type: "image/png".into(), data: String::new() };
            stage.tell(Update::Restored(vec![Message::new(
                Role::User,
                vec![words("what is this?"), Block::Image(image)],
            )]));
        },
    },
];

pub(super) const ANSWERS: &[Scene] = &[
    Scene { name: "streaming, in mid-word", play: |stage| streaming(stage, "The build fails because the lin") },
    Scene { name: "streaming, marks not closed", play: |stage| streaming(stage, "It is **very im") },
    Scene { name: "streaming, in code", play: |stage| streaming(stage, "So:\n\n```rust\nfn main() {\n    prin") },
    Scene { name: "streaming, in a table", play: |stage| streaming(stage, "| test | why |\n|---|---|\n| cut | wi") },
    Scene { name: "done", play: |stage| answer(stage, ANSWER, TurnEnd::Answered) },
    Scene {
        name: "interrupted",
        play: |stage| {
            streaming(stage, "The build fails because the lin");
            stage.tell(Update::TurnEnded(TurnEnd::Interrupted));
        },
    },
    Scene {
        name: "interrupted, from the store",
        play: |stage| {
            let message = Message::new(Role::Assistant, vec![words("The build fails because the lin")]);
            stage.tell(Update::Restored(vec![Message { interrupted: true, ..message }]));
        },
    },
    Scene { name: "cut at the output limit", play: |stage| answer(stage, "The build", TurnEnd::Length) },
    Scene { name: "blank", play: |stage| answer(stage, " \n", TurnEnd::Answered) },
    Scene { name: "many scripts", play: |stage| answer(stage, &SCRIPTS.join("\n\n"), TurnEnd::Answered) },
    Scene {
        name: "escapes",
        play: |stage| answer(stage, "red \u{1b}[31mtext\u{7} and \u{202e}turned", TurnEnd::Answered),
    },
    Scene {
        name: "a table too wide",
        play: |stage| {
            let wide = "| name | what it does | 編譯器 |\n|:--|:-:|--:|\n| averyveryverylongnamewithoutaspace | it does a thing that takes many words to tell, more than fit | 記憶體 |\n| b | c | d |";
            answer(stage, wide, TurnEnd::Answered);
        },
    },
];

fn ended(stage: &mut Stage, end: TurnEnd) {
    stage.send();
    stage.end(end);
}

fn said(stage: &mut Stage, said: Said) {
    stage.tell(Update::Said(said));
}

pub(super) const NOTICES: &[Scene] = &[
    Scene {
        name: "notes of a request",
        play: |stage| {
            let notes = vec!["effort max is not known here; high is sent".to_owned(), "no budget is sent".to_owned()];
            stage.tell(Update::Sending(Box::new(Sending { notes, ..Sending::default() })));
        },
    },
    Scene {
        name: "a note of the decoder",
        play: |stage| {
            stage.tell(Update::Noted(Note {
                code: NoteCode::Malformed,
                message: "a frame could not be read and is left out".into(),
            }))
        },
    },
    Scene {
        name: "trying again",
        play: |stage| {
            let why = "the provider is overloaded (529)".to_owned();
            stage.tell(Update::Retrying { after: Duration::from_millis(1500), attempt: 2, why });
        },
    },
    Scene {
        name: "repaired",
        play: |stage| {
            stage.tell(Update::Told(Told::Repaired {
                row: "missing_field".into(),
                repair: Repair::StripForeign,
                said: "The `reasoning_content` in the thinking mode must be passed back to the API.\nmore".into(),
            }));
        },
    },
    Scene { name: "a broken call", play: |stage| stage.tell(Update::Told(Told::BrokenCall { name: "edit".into() })) },
    Scene { name: "nothing came", play: |stage| ended(stage, TurnEnd::Empty) },
    Scene { name: "declined by the model", play: |stage| ended(stage, TurnEnd::Declined(Declined::ByModel)) },
    Scene { name: "declined by a filter", play: |stage| ended(stage, TurnEnd::Declined(Declined::ByFilter)) },
    Scene { name: "cut off", play: |stage| ended(stage, TurnEnd::CutOff) },
    Scene { name: "out of steps", play: |stage| ended(stage, TurnEnd::OutOfSteps(50)) },
    Scene { name: "out of one step", play: |stage| ended(stage, TurnEnd::OutOfSteps(1)) },
    Scene {
        name: "unreachable",
        play: |stage| ended(stage, TurnEnd::Unreachable("cannot reach localhost:8080: connection refused".into())),
    },
    Scene {
        name: "failed",
        play: |stage| {
            let message = "Rate limit reached for requests per minute.\nVisit the console to raise it.".to_owned();
            ended(stage, TurnEnd::Failed(ProviderError { message, status: Some(429), ..ProviderError::default() }));
        },
    },
    Scene { name: "a line", play: |stage| said(stage, Said::Line("model: acme/deep".into())) },
    Scene {
        name: "wrong, with a hint",
        play: |stage| {
            let hint = Some("minimal, low, medium, high".to_owned());
            said(stage, Said::Wrong { what: "unknown effort `loud`".into(), hint });
        },
    },
    Scene {
        name: "a table",
        play: |stage| {
            let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
            let rows = vec![
                row(["reasoning.effort", "high", "session"]),
                row(["reasoning.display", "live", "built-in"]),
                row(["prompt.system", "You are a | careful\nhelper.", "config"]),
            ];
            said(stage, Said::Table { head: row(["setting", "value", "from"]), rows });
        },
    },
    Scene { name: "Markdown", play: |stage| said(stage, Said::Markdown("**Two** things:\n\n- one\n- two".into())) },
    Scene {
        name: "an end with an error in the stream",
        play: |stage| {
            stage.send();
            stage.write(0, "It beg");
            let error = ProviderError { message: "overloaded".into(), ..ProviderError::default() };
            stage.tell(Update::ReplyEnded(End { ending: Ending::Stop, error: Some(error.clone()) }));
            stage.tell(Update::TurnEnded(TurnEnd::Failed(error)));
        },
    },
    Scene {
        name: "many scripts",
        play: |stage| SCRIPTS.iter().for_each(|text| said(stage, Said::Line((*text).to_owned()))),
    },
];

#[test]
fn t13_what_the_user_says_at_every_width() {
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
