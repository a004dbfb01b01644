//! What stands around the transcript: questions, the queue, completions, the
//! reader, the status line.

use aside_core::event::Usage;
use aside_core::settings::Display;
use aside_core::turn::TurnEnd;
use aside_tui::seam::{Opening, Question, QuestionId, Sending, Status, Update};
use crossterm::event::KeyCode;

use super::tools::DIFF;
use super::{Scene, check_screens};
use crate::support::Stage;

pub(super) fn ask(stage: &mut Stage, tool: &str, subject: &str, preview: Option<&str>, covers: Option<&str>) {
    stage.line("fix it");
    stage.send();
    stage.tell(Update::Asked(Box::new(Question {
        id: QuestionId(1),
        about: crate::support::about(tool, subject, preview.map(str::to_owned), covers.map(str::to_owned)),
    })));
    stage.pass(1_000);
}

const QUESTIONS: &[Scene] = &[
    Scene { name: "a change", play: |stage| ask(stage, "edit", "src/lib.rs", Some(DIFF), Some("edit:src/*")) },
    Scene {
        name: "a change too long to show",
        play: |stage| ask(stage, "edit", "src/lib.rs", Some(&DIFF.repeat(4)), Some("edit:src/*")),
    },
    Scene {
        name: "a command",
        play: |stage| ask(stage, "shell", "cargo test", Some("cargo test"), Some("shell:cargo test")),
    },
    Scene {
        name: "a command that is asked about every time",
        play: |stage| ask(stage, "shell", "rm -rf ../target && echo gone", None, None),
    },
    Scene {
        name: "a command too long to show",
        play: |stage| {
            let command = (1..40).map(|line| format!("echo line {line} of a script")).collect::<Vec<_>>().join("\n");
            ask(stage, "shell", &command, Some(&command), None);
        },
    },
    Scene {
        name: "a no with a word",
        play: |stage| {
            ask(stage, "shell", "cargo test", None, Some("shell:cargo test"));
            stage.typed("wnot now");
        },
    },
    Scene {
        name: "a no, before the word",
        play: |stage| {
            ask(stage, "shell", "cargo test", None, Some("shell:cargo test"));
            stage.typed("w");
        },
    },
    Scene {
        name: "many scripts",
        play: |stage| ask(stage, "shell", super::talk::SCRIPTS[0], Some(super::talk::SCRIPTS[4]), None),
    },
];

fn status(stage: &mut Stage, model: &str, profile: &str, title: &str) {
    stage.tell(Update::Status(Box::new(Status {
        model: model.into(),
        profile: Some(profile.into()),
        title: Some(title.into()),
        limit: Some(200_000),
        effort: Some("high".into()),
        view: Display::Live,
        tier: None,
    })));
    let sending = Sending {
        step: 1,
        model: model.into(),
        effort: Some("high".into()),
        tokens: 12_300,
        limit: Some(200_000),
        ..Sending::default()
    };
    stage.tell(Update::Sending(Box::new(sending)));
    stage.open(0, Opening::Text);
    for _ in 0..20 {
        stage.grow(0, "word ");
        stage.pass(100);
    }
}

const LONG_MODEL: &str = "openrouter/somebody/some-model-with-a-long-name-2026-01-31";

const LINES: &[Scene] = &[
    Scene { name: "at the start", play: |_| () },
    Scene {
        name: "no limit known",
        play: |stage| {
            stage.tell(Update::Status(Box::new(Status { model: "acme/deep".into(), ..Status::default() })));
        },
    },
    Scene { name: "all of it", play: |stage| status(stage, "acme/deep", "work", "why the build fails") },
    Scene {
        name: "long names",
        play: |stage| {
            status(stage, LONG_MODEL, "a-profile-with-a-long-name", "why the build fails on one machine only")
        },
    },
    Scene {
        name: "nearly full",
        play: |stage| {
            status(stage, "acme/deep", "work", "why the build fails");
            stage.tell(Update::Usage(Usage { input: Some(190_000), output: Some(1_234), ..Usage::default() }));
        },
    },
    Scene {
        name: "another effort than wished",
        play: |stage| {
            let effort = Some("max".to_owned());
            stage.tell(Update::Status(Box::new(Status { model: "acme/deep".into(), effort, ..Status::default() })));
            stage.send();
        },
    },
    Scene {
        name: "waiting",
        play: |stage| {
            stage.line("go");
            stage.send();
            stage.pass(2_000);
        },
    },
    Scene {
        name: "stopping",
        play: |stage| {
            stage.line("go");
            stage.send();
            stage.open(0, Opening::Thinking);
            stage.key(KeyCode::Esc);
        },
    },
    Scene {
        name: "running a tool with a long name",
        play: |stage| {
            stage.line("go");
            stage.send();
            stage.open(0, Opening::ToolCall { name: "mcp__a_server_with_a_long_name__and_a_tool".into() });
            stage.pass(65_000);
        },
    },
    Scene {
        name: "queue",
        play: |stage| {
            stage.line("go");
            stage.send();
            stage.line("and then this");
            stage.line("and this, which is longer than the screen is wide,\nand has two lines");
            stage.line("漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字");
            stage.typed("one more 漢字");
        },
    },
    Scene { name: "completion of commands", play: |stage| stage.typed("/") },
    Scene { name: "completion of a word", play: |stage| stage.typed("/thinking ") },
    Scene { name: "completion of files", play: |stage| stage.typed("look at @src") },
    Scene { name: "a toast", play: |stage| stage.line("/thinking full") },
    Scene { name: "leaving", play: |stage| stage.control('c') },
    Scene {
        name: "browsing",
        play: |stage| {
            stage.think(0, "First.", 2_000);
            stage.think(1, "Second.", 2_000);
            stage.key(KeyCode::Tab);
        },
    },
    Scene {
        name: "scrolled away",
        play: |stage| {
            stage.write(0, &(1..40).map(|line| format!("line {line}\n")).collect::<String>());
            stage.rows();
            stage.wheel(true);
        },
    },
    Scene {
        name: "inside a long thought",
        play: |stage| {
            stage.line("/thinking full");
            stage.think(0, &(1..40).map(|line| format!("line {line}\n")).collect::<String>(), 4_000);
            stage.rows();
            stage.wheel(true);
        },
    },
    Scene {
        name: "a draft of several lines",
        play: |stage| {
            stage.typed("why does the test fail on one machine only, although both have the same");
            stage.msg(aside_tui::app::Msg::Paste("\n漢字 too".into()));
        },
    },
    Scene {
        name: "a large paste",
        play: |stage| {
            stage.typed("see ");
            stage.msg(aside_tui::app::Msg::Paste("a line\n".repeat(200)));
        },
    },
];

fn read(stage: &mut Stage) {
    stage.think(0, "**Reading**\n\nI read it.\n\n- one\n- two", 12_000);
    stage.think(1, "Another one.", 2_000);
    stage.send();
    stage.end(TurnEnd::Answered);
    stage.control('r');
    stage.key(KeyCode::Left);
    stage.screen();
}

const READER: &[Scene] = &[
    Scene { name: "a thought", play: read },
    Scene {
        name: "the last one",
        play: |stage| {
            read(stage);
            stage.key(KeyCode::Right);
            stage.key(KeyCode::Right);
        },
    },
    Scene {
        name: "a word being searched",
        play: |stage| {
            read(stage);
            stage.typed("/rea");
        },
    },
    Scene {
        name: "found",
        play: |stage| {
            read(stage);
            stage.typed("/two");
            stage.key(KeyCode::Enter);
        },
    },
    Scene {
        name: "not found",
        play: |stage| {
            read(stage);
            stage.typed("/seven");
            stage.key(KeyCode::Enter);
        },
    },
    Scene {
        name: "a running one",
        play: |stage| {
            stage.send();
            stage.open(0, Opening::Thinking);
            stage.grow(0, &(1..40).map(|line| format!("line {line}\n")).collect::<String>());
            stage.control('r');
        },
    },
    Scene {
        name: "an unreadable one",
        play: |stage| {
            stage.open(0, Opening::Thinking);
            stage.close(0, aside_core::block::Block::Thinking(crate::support::hidden()));
            stage.control('r');
        },
    },
    Scene {
        name: "copied",
        play: |stage| {
            read(stage);
            stage.typed("y");
        },
    },
    Scene {
        name: "what a tool would do",
        play: |stage| {
            ask(stage, "edit", "src/lib.rs", Some(DIFF), None);
            stage.typed("v");
        },
    },
    Scene { name: "help", play: |stage| stage.line("/help") },
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
