//! Everything around the transcript: questions, the queue, completions, the reader, the status
//! line.

use std::time::Duration;

use aside_core::event::Usage;
use aside_core::permission_question::{PermissionQuestion, QuestionKind, Risk, Tier};
use aside_core::settings::ThinkingDisplay;
use aside_core::tool_mode::ToolMode;
use aside_core::turn::TurnEnd;
use aside_front::{
    CompletionLists, OpenedBlock, PendingQuestion, QuestionId, Sending, SessionCompletion, Status, Update,
};
use crossterm::event::KeyCode;

use super::tool_calls::DIFF;
use super::{StateScene, check_screens};
use crate::support::TestTerminal;

pub(super) fn ask(term: &mut TestTerminal, tool: &str, subject: &str, preview: Option<&str>, covers: Option<&str>) {
    term.line("fix it");
    term.send();
    term.update(Update::QuestionAsked(Box::new(PendingQuestion {
        id: QuestionId(1),
        about: crate::support::question_about(tool, subject, preview.map(str::to_owned), covers.map(str::to_owned)),
    })));
    term.advance(1_000);
}

fn undo(term: &mut TestTerminal) {
    let files = "src/lib.rs: will be as it was\nnotes/a-file-with-a-long-name.txt: will be removed\n\
                 not covered, so what it changed stays: `cargo fmt`";
    let about = PermissionQuestion {
        preview: Some(files.to_owned()),
        kind: QuestionKind::Undo,
        ..PermissionQuestion::new("undo", "put 2 files back too?", Risk::Writes)
    };
    term.update(Update::QuestionAsked(Box::new(PendingQuestion { id: QuestionId(1), about })));
    term.advance(1_000);
}

const QUESTIONS: &[StateScene] = &[
    StateScene { name: "an undo", play: undo },
    StateScene { name: "a change", play: |term| ask(term, "edit", "src/lib.rs", Some(DIFF), Some("edit:src/*")) },
    StateScene {
        name: "a change too long to show",
        play: |term| ask(term, "edit", "src/lib.rs", Some(&DIFF.repeat(4)), Some("edit:src/*")),
    },
    StateScene {
        name: "a command",
        play: |term| ask(term, "shell", "cargo test", Some("cargo test"), Some("shell:cargo test")),
    },
    StateScene {
        name: "a command that is asked about every time",
        play: |term| ask(term, "shell", "rm -rf ../target && echo gone", None, None),
    },
    StateScene {
        name: "a command too long to show",
        play: |term| {
            let command = (1..40).map(|line| format!("echo line {line} of a script")).collect::<Vec<_>>().join("\n");
            ask(term, "shell", &command, Some(&command), None);
        },
    },
    StateScene {
        name: "a no with a word",
        play: |term| {
            ask(term, "shell", "cargo test", None, Some("shell:cargo test"));
            term.type_text("wnot now");
        },
    },
    StateScene {
        name: "a no, before the word",
        play: |term| {
            ask(term, "shell", "cargo test", None, Some("shell:cargo test"));
            term.type_text("w");
        },
    },
    StateScene {
        name: "many scripts",
        play: |term| ask(term, "shell", super::messages::SCRIPTS[0], Some(super::messages::SCRIPTS[4]), None),
    },
];

fn status(term: &mut TestTerminal, model: &str, profile: &str, title: &str) {
    term.update(Update::Status(Box::new(Status {
        model: model.into(),
        profile: Some(profile.into()),
        title: Some(title.into()),
        limit: Some(200_000),
        effort: Some("high".into()),
        view: ThinkingDisplay::Live,
        tier: None,
        mode: None,
        cost: None,
        ..Status::default()
    })));
    let sending = Sending {
        step: 1,
        model: model.into(),
        effort: Some("high".into()),
        tokens: 12_300,
        limit: Some(200_000),
        ..Sending::default()
    };
    term.update(Update::Sending(Box::new(sending)));
    term.open(0, OpenedBlock::Text);
    for _ in 0..20 {
        term.grow(0, "word ");
        term.advance(100);
    }
}

const LONG_MODEL: &str = "openrouter/somebody/some-model-with-a-long-name-2026-01-31";

/// What can be chosen from.
fn lists() -> CompletionLists {
    let session = |name: &str, about: &str, folder: Option<&str>| SessionCompletion {
        name: name.into(),
        about: about.into(),
        when: "2026-11-15 09:30".into(),
        folder: folder.map(str::to_owned),
    };
    CompletionLists {
        models: (1..=20).map(|number| format!("acme/deep-{number}")).collect(),
        sessions: vec![
            session("k3f9a2b1c0", "Why the build fails on one machine only", None),
            session("p0q1r2s3t4", "Parsing headers", Some("/home/me/other")),
            session("v5w6x7y8z9", "Why the tests are slow today", Some("/home/me/projects/a-long-folder-name")),
        ],
        ..CompletionLists::default()
    }
}

const LINES: &[StateScene] = &[
    StateScene { name: "at the start", play: |_| () },
    StateScene {
        name: "no limit known",
        play: |term| {
            term.update(Update::Status(Box::new(Status { model: "acme/deep".into(), ..Status::default() })));
        },
    },
    StateScene { name: "all of it", play: |term| status(term, "acme/deep", "work", "why the build fails") },
    StateScene {
        name: "long names",
        play: |term| status(term, LONG_MODEL, "a-profile-with-a-long-name", "why the build fails on one machine only"),
    },
    StateScene {
        name: "nearly full",
        play: |term| {
            status(term, "acme/deep", "work", "why the build fails");
            term.update(Update::Usage(Usage::default().with_input(190_000).with_output(1_234)));
        },
    },
    StateScene {
        name: "another effort than wished",
        play: |term| {
            let effort = Some("max".to_owned());
            term.update(Update::Status(Box::new(Status { model: "acme/deep".into(), effort, ..Status::default() })));
            term.send();
        },
    },
    StateScene {
        name: "waiting",
        play: |term| {
            term.line("go");
            term.send();
            term.advance(2_000);
        },
    },
    StateScene {
        name: "stopping",
        play: |term| {
            term.line("go");
            term.send();
            term.open(0, OpenedBlock::Thinking);
            term.key(KeyCode::Esc);
        },
    },
    StateScene {
        name: "running a tool with a long name",
        play: |term| {
            term.line("go");
            term.send();
            term.open(0, OpenedBlock::ToolCall { name: "mcp__a_server_with_a_long_name__and_a_tool".into() });
            term.advance(65_000);
        },
    },
    StateScene {
        name: "queue",
        play: |term| {
            term.line("go");
            term.send();
            term.line("and do this first");
            term.queue_line("and then this");
            term.queue_line("and this, which is longer than the screen is wide,\nand has two lines");
            term.queue_line("漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字");
            term.type_text("one more 漢字");
        },
    },
    StateScene { name: "completion of commands", play: |term| term.type_text("/") },
    StateScene { name: "completion of a word", play: |term| term.type_text("/thinking ") },
    StateScene { name: "completion of files", play: |term| term.type_text("look at @src") },
    StateScene {
        name: "models to choose from",
        play: |term| {
            term.update(Update::CompletionLists(Box::new(lists())));
            term.type_text("/model ");
        },
    },
    StateScene {
        name: "levels to choose from",
        play: |term| {
            let efforts = ["low", "medium", "high"].map(str::to_owned).to_vec();
            term.update(Update::Status(Box::new(Status { model: "acme/deep".into(), efforts, ..Status::default() })));
            term.type_text("/effort ");
        },
    },
    StateScene {
        name: "sessions to choose from, one of which is shown",
        play: |term| {
            let session = Some("p0q1r2s3t4".into());
            let status = Status { model: "acme/deep".into(), session, ..Status::default() };
            term.update(Update::Status(Box::new(status)));
            term.update(Update::CompletionLists(Box::new(lists())));
            term.type_text("/resume ");
        },
    },
    StateScene { name: "themes to choose from", play: |term| term.type_text("/theme ") },
    StateScene {
        name: "folder, branch, mode and sandbox",
        play: |term| {
            term.update(Update::Status(Box::new(Status {
                model: "acme/deep".into(),
                limit: Some(200_000),
                tier: Some(Tier::Strong),
                mode: Some(ToolMode::AcceptEdits),
                folder: Some("project".into()),
                branch: Some("fix/the-linker".into()),
                title: Some("why the build fails".into()),
                ..Status::default()
            })));
        },
    },
    StateScene {
        name: "words to find",
        play: |term| {
            term.write(0, "The linker is the one to blame.");
            term.control('f');
            term.type_text("the");
        },
    },
    StateScene { name: "a command line of the user's own", play: |term| term.type_text("!cargo test") },
    StateScene { name: "one whose output is sent", play: |term| term.type_text("!!cargo test") },
    StateScene {
        name: "silence",
        play: |term| {
            term.line("go");
            term.send();
            term.open(0, OpenedBlock::Text);
            term.grow(0, "So");
            term.advance(12_000);
        },
    },
    StateScene {
        name: "trying again",
        play: |term| {
            term.line("go");
            term.send();
            let why = "the provider failed (429): too many requests".to_owned();
            term.update(Update::Retrying { after: Duration::from_secs(8), attempt: 1, why });
            term.advance(3_000);
        },
    },
    StateScene { name: "a toast", play: |term| term.line("/thinking full") },
    StateScene {
        name: "another mode",
        play: |term| {
            let mode = Some(ToolMode::Ask);
            term.update(Update::Status(Box::new(Status { model: "acme/deep".into(), mode, ..Status::default() })));
            term.key(KeyCode::BackTab);
        },
    },
    StateScene { name: "compacting", play: |term| term.line("/compact") },
    StateScene { name: "leaving", play: |term| term.control('c') },
    StateScene {
        name: "browsing",
        play: |term| {
            term.think(0, "First.", 2_000);
            term.think(1, "Second.", 2_000);
            term.key(KeyCode::Tab);
        },
    },
    StateScene {
        name: "scrolled away",
        play: |term| {
            term.write(0, &(1..40).map(|line| format!("line {line}\n")).collect::<String>());
            term.rows();
            term.wheel(true);
        },
    },
    StateScene {
        name: "inside a long thought",
        play: |term| {
            term.line("/thinking full");
            term.think(0, &(1..40).map(|line| format!("line {line}\n")).collect::<String>(), 4_000);
            term.rows();
            term.wheel(true);
        },
    },
    StateScene {
        name: "a draft of several lines",
        play: |term| {
            term.type_text("why does the test fail on one machine only, although both have the same");
            term.msg(aside_tui::app::Msg::Paste("\n漢字 too".into()));
        },
    },
    StateScene {
        name: "a large paste",
        play: |term| {
            term.type_text("see ");
            term.msg(aside_tui::app::Msg::Paste("a line\n".repeat(200)));
        },
    },
];

fn read(term: &mut TestTerminal) {
    term.think(0, "**Reading**\n\nI read it.\n\n- one\n- two", 12_000);
    term.think(1, "Another one.", 2_000);
    term.send();
    term.end(TurnEnd::Answered);
    term.control('r');
    term.key(KeyCode::Left);
    term.screen();
}

const READER: &[StateScene] = &[
    StateScene { name: "a thought", play: read },
    StateScene {
        name: "the last one",
        play: |term| {
            read(term);
            term.key(KeyCode::Right);
            term.key(KeyCode::Right);
        },
    },
    StateScene {
        name: "a word being searched",
        play: |term| {
            read(term);
            term.type_text("/rea");
        },
    },
    StateScene {
        name: "found",
        play: |term| {
            read(term);
            term.type_text("/two");
            term.key(KeyCode::Enter);
        },
    },
    StateScene {
        name: "not found",
        play: |term| {
            read(term);
            term.type_text("/seven");
            term.key(KeyCode::Enter);
        },
    },
    StateScene {
        name: "a running one",
        play: |term| {
            term.send();
            term.open(0, OpenedBlock::Thinking);
            term.grow(0, &(1..40).map(|line| format!("line {line}\n")).collect::<String>());
            term.control('r');
        },
    },
    StateScene {
        name: "an unreadable one",
        play: |term| {
            term.open(0, OpenedBlock::Thinking);
            term.close(0, aside_core::block::Block::Thinking(crate::support::hidden()));
            term.control('r');
        },
    },
    StateScene {
        name: "copied",
        play: |term| {
            read(term);
            term.type_text("y");
        },
    },
    StateScene {
        name: "what a tool would do",
        play: |term| {
            ask(term, "edit", "src/lib.rs", Some(DIFF), None);
            term.type_text("v");
        },
    },
    StateScene { name: "help", play: |term| term.line("/help") },
];

#[test]
fn l3_every_question_at_every_width() {
    check_screens("questions", 18, QUESTIONS);
}

#[test]
fn t11_every_line_around_the_transcript_at_every_width() {
    check_screens("lines", 10, LINES);
}

#[test]
fn t12_the_reader_in_every_state_and_width() {
    check_screens("reader", 12, READER);
}
