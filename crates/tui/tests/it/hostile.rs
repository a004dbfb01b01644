//! What models and tools write is read, never obeyed (T9): every kind of
//! sequence in every place that shows their text.

use std::path::Path;

use aside_core::block::Block;
use aside_core::event::{BlockId, End, Ending, Note, NoteCode, ProviderError};
use aside_core::message::{Message, Role};
use aside_core::question::{is_invisible, spelled_out, visible};
use aside_core::screen::is_harmless;
use aside_core::settings::Display;
use aside_core::turn::{Told, TurnEnd};
use aside_tui::app::Msg;
use aside_tui::seam::{DecisionRow, Lists, Opening, Question, QuestionId, Said, Sending, Status, Update};
use crossterm::event::KeyCode;

use crate::draws;
use crate::support::{Stage, call, thinking, words};

/// What stands between two words, and what of it may be seen.
#[rustfmt::skip]
const SEQUENCES: &[(&str, &str, &str)] = &[
    ("colour",             "\u{1b}[31;1m",                      ""),
    ("clear and home",     "\u{1b}[2J\u{1b}[1;1H",              ""),
    ("private mode",       "\u{1b}[?1049l",                     ""),
    ("report",             "\u{1b}[6n",                         ""),
    ("title",              "\u{1b}]0;owned\u{7}",               ""),
    ("link",               "\u{1b}]8;;http://evil\u{1b}\\",     ""),
    ("clipboard",          "\u{1b}]52;c;ZXZpbA==\u{7}",         ""),
    ("device string",      "\u{1b}Pq#0;1\u{1b}\\",              ""),
    ("SOS",                "\u{1b}Xsecret\u{1b}\\",             ""),
    ("PM",                 "\u{1b}^secret\u{1b}\\",             ""),
    ("APC",                "\u{1b}_Gsecret\u{1b}\\",            ""),
    ("single shifts",      "\u{1b}N\u{1b}O",                    ""),
    ("reset",              "\u{1b}c",                           ""),
    ("character set",      "\u{1b}(0",                          ""),
    ("C1 CSI",             "\u{9b}2J",                          ""),
    ("C1 OSC",             "\u{9d}0;owned\u{9c}",               ""),
    ("C1 DCS and others",  "\u{90}a\u{9c}\u{98}b\u{9c}\u{9e}c\u{9c}\u{9f}d\u{9c}", ""),
    ("C1 next line",       "\u{85}\u{8d}\u{84}",                ""),
    ("C0",                 "\u{0}\u{7}\u{8}\u{b}\u{c}\u{e}\u{f}\u{7f}", ""),
    ("bidi overrides",     "\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}", ""),
    ("bidi isolates",      "\u{2066}\u{2067}\u{2068}\u{2069}",  ""),
    ("bidi marks",         "\u{200e}\u{200f}\u{61c}",           ""),
    ("tags",               "\u{e0001}\u{e0041}\u{e007f}",       ""),
    ("separators",         "\u{2028}\u{2029}\u{feff}",          ""),
    ("joined emoji",       "👩\u{200d}💻",                       "👩\u{200d}💻"),
    ("variation",          "❤\u{fe0f}",                         "❤\u{fe0f}"),
];

type Place = (&'static str, fn(&mut Stage, &str));

/// Every place that shows text of others.
#[rustfmt::skip]
const PLACES: &[Place] = &[
    ("an answer",           |stage, text| stage.write(0, text)),
    ("an answer in pieces", pieces),
    ("code",                |stage, text| stage.write(0, &format!("```rust {text}\n{text}\n```\n"))),
    ("a table",             |stage, text| stage.write(0, &format!("|{text}|b|\n|-|-|\n|{text}|c|\n"))),
    ("a link",              |stage, text| stage.write(0, &format!("[{text}](<{text}> \"{text}\")"))),
    ("a thought",           |stage, text| stage.think(0, text, 2_000)),
    ("a title",             |stage, text| stage.think(0, &format!("**{text}**\n\nbody"), 2_000)),
    ("a folded thought",    folded),
    ("a running title",     running),
    ("a tool's name",       |stage, text| stage.call(0, "c", text, "{}")),
    ("a call coming",       |stage, text| stage.open(0, Opening::ToolCall { name: text.into() })),
    ("a call's subject",    |stage, text| stage.call(0, "c", "shell", &serde_json::json!({ "command": text }).to_string())),
    ("a call's arguments",  arguments),
    ("a broken call",       |stage, text| stage.call(0, "c", "shell", text)),
    ("a result",            |stage, text| { stage.result("c", text, false); stage.control('o'); }),
    ("a failure",           |stage, text| stage.result("c", text, true)),
    ("a result's tool",     result_of),
    ("a diff",              |stage, text| stage.result("c", &format!("--- a/{text}\n+++ b/{text}\n@@ -1 +1 @@\n-{text}\n+{text}"), false)),
    ("a running tool",      started),
    ("a question's tool",   |stage, text| ask(stage, text, "b", None, None)),
    ("a question",          |stage, text| ask(stage, "a", text, None, None)),
    ("a preview",           |stage, text| ask(stage, "a", "b", Some(text), None)),
    ("what a yes covers",   |stage, text| ask(stage, "a", "b", None, Some(text))),
    ("a preview in full",   |stage, text| { ask(stage, text, "b", Some(text), None); stage.pass(1_000); stage.typed("v"); }),
    ("the reader",          |stage, text| { stage.think(0, text, 0); stage.line("/reader"); }),
    ("the outline",         |stage, text| { stage.think(0, &format!("**{text}**\n\nx"), 0); stage.line("/reader"); stage.screen(); stage.typed("o"); }),
    ("a note",              |stage, text| stage.tell(Update::Noted(Note { code: NoteCode::Malformed, message: text.into() }))),
    ("a repair",            |stage, text| stage.tell(Update::Told(Told::BrokenCall { name: text.into() }))),
    ("a failed turn",       failed),
    ("no connection",       |stage, text| stage.end(TurnEnd::Unreachable(text.into()))),
    ("a retry",             |stage, text| stage.tell(Update::Retrying { after: std::time::Duration::from_secs(1), attempt: 1, why: text.into() })),
    ("a note on sending",   |stage, text| stage.tell(Update::Sending(Box::new(Sending { notes: vec![text.into()], ..Sending::default() })))),
    ("the model that answers", |stage, text| stage.tell(Update::Sending(Box::new(Sending { model: text.into(), ..Sending::default() })))),
    ("the effort",          |stage, text| stage.tell(Update::Sending(Box::new(Sending { effort: Some(text.into()), ..Sending::default() })))),
    ("a decision",          decision),
    ("the model",           |stage, text| stage.tell(Update::Status(Box::new(Status { model: text.into(), ..Status::default() })))),
    ("the profile",         |stage, text| stage.tell(Update::Status(Box::new(Status { profile: Some(text.into()), ..Status::default() })))),
    ("the session's title", |stage, text| stage.tell(Update::Status(Box::new(Status { title: Some(text.into()), ..Status::default() })))),
    ("a line of ours",      |stage, text| stage.tell(Update::Said(Said::Line(text.into())))),
    ("an error",            |stage, text| stage.tell(Update::Said(Said::Wrong { what: text.into(), hint: Some(text.into()) }))),
    ("a table of ours",     |stage, text| stage.tell(Update::Said(Said::Table { head: vec![text.into()], rows: vec![vec![text.into()]] }))),
    ("a page of ours",      |stage, text| stage.tell(Update::Said(Said::Markdown(text.into())))),
    ("a history",           history),
    ("what waits",          |stage, text| { stage.send(); stage.msg(Msg::Paste(text.into())); stage.key(KeyCode::Enter); }),
    ("what was said",       |stage, text| { stage.msg(Msg::Paste(text.into())); stage.key(KeyCode::Enter); }),
    ("completions",         completions),
];

fn history(stage: &mut Stage, text: &str) {
    let reply = vec![Block::Thinking(thinking(text, None)), words(text), call("c", text, text)];
    let messages = vec![Message::new(Role::User, vec![words(text)]), Message::new(Role::Assistant, reply)];
    stage.tell(Update::Restored(messages));
}

fn pieces(stage: &mut Stage, text: &str) {
    stage.open(0, Opening::Text);
    for letter in text.chars() {
        stage.grow(0, &letter.to_string());
        stage.buffer();
    }
}

fn folded(stage: &mut Stage, text: &str) {
    stage.line("/thinking collapsed");
    stage.think(0, text, 2_000);
}

fn running(stage: &mut Stage, text: &str) {
    stage.open(0, Opening::Thinking);
    stage.tell(Update::Item { block: BlockId(0) });
    stage.grow(0, &format!("**{text}**\n"));
}

fn arguments(stage: &mut Stage, text: &str) {
    stage.call(0, "c", "shell", &serde_json::json!({ "x": text }).to_string());
    stage.control('o');
}

fn result_of(stage: &mut Stage, text: &str) {
    let result =
        aside_core::block::ToolResult { id: "z".into(), name: text.into(), content: "x".into(), is_error: false };
    stage.tell(Update::ToolEnded(Box::new(result)));
}

fn started(stage: &mut Stage, text: &str) {
    stage.send();
    if let Block::ToolCall(call) = call("c", text, "{}") {
        stage.tell(Update::ToolStarted(Box::new(call)));
    }
}

fn ask(stage: &mut Stage, tool: &str, subject: &str, preview: Option<&str>, covers: Option<&str>) {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    stage.tell(Update::Asked(Box::new(Question {
        id: QuestionId(1),
        about: crate::support::about(tool, subject, owned(preview), owned(covers)),
    })));
}

fn failed(stage: &mut Stage, text: &str) {
    let error = ProviderError { message: text.into(), code: None, status: None };
    stage.tell(Update::ReplyEnded(End { ending: Ending::CutOff, error: Some(error.clone()) }));
    stage.tell(Update::TurnEnded(TurnEnd::Failed(error)));
}

fn decision(stage: &mut Stage, text: &str) {
    let row = DecisionRow { what: text.into(), action: text.into(), why: text.into() };
    stage.tell(Update::Sending(Box::new(Sending { decisions: vec![row], ..Sending::default() })));
    stage.tell(Update::TurnEnded(TurnEnd::Answered));
    stage.line("/explain");
}

fn completions(stage: &mut Stage, text: &str) {
    stage.tell(Update::Lists(Box::new(Lists { models: vec![format!("m{text}")], ..Lists::default() })));
    stage.typed("/model m");
}

/// What a question or a call shows of these bytes, if the place is part of one.
fn asked(place: &str, bytes: &str) -> Option<String> {
    let asked = ["a question's tool", "a question", "a preview", "a preview in full"];
    let calls = ["a call's subject", "a call's arguments", "a broken call"];
    asked.contains(&place).then(|| visible(bytes)).or_else(|| calls.contains(&place).then(|| spelled_out(bytes)))
}

#[test]
fn t9_no_sequence_in_any_place_reaches_the_terminal() {
    for (place, put) in PLACES {
        for (sequence, bytes, shown) in SEQUENCES {
            let mut stage = Stage::viewed(100, 24, Display::Full);
            put(&mut stage, &format!("Left{bytes}Right"));
            let buffer = stage.buffer();
            for cell in buffer.content() {
                let symbol = cell.symbol();
                assert!(
                    symbol.chars().all(|letter| is_harmless(letter) && !letter.is_control()),
                    "{place}, {sequence}: a cell holds {symbol:?}"
                );
                assert_ne!(symbol, "\u{fffd}", "{place}, {sequence}: it is made safe too late");
            }
            let screen = crate::support::text_of(&buffer);
            if let Some(shown) = asked(place, bytes) {
                // What is asked about or called is shown whole, in a form that does nothing.
                assert!(screen.contains(&format!("Left{shown}Right")), "{place}, {sequence}:\n{screen}");
                continue;
            }
            if *place == "what a yes covers" {
                assert_eq!(screen.contains("Left"), !bytes.contains(is_invisible), "{place}, {sequence}:\n{screen}");
                continue;
            }
            assert!(screen.contains(&format!("Left{shown}Right")), "{place}, {sequence}:\n{screen}");
            // Spelled out in JSON it is text like any other, and a history has a call.
            let spelled = screen.contains("\\u00") || *place == "a history";
            for hidden in ["owned", "secret", "evil", "ZXZ"].into_iter().filter(|_| !spelled) {
                assert!(!screen.contains(hidden), "{place}, {sequence}:\n{screen}");
            }
        }
    }
}

#[test]
fn t9_line_ends_and_tabs_in_a_name_stay_on_its_row() {
    // What the user writes himself is not taken out, but it is not obeyed either.
    let own: Place = ("what is written", |stage, text| stage.msg(Msg::Paste(format!("{text}\u{1b}[2J\u{202e}"))));
    for (place, put) in PLACES.iter().chain([&own]) {
        let mut stage = Stage::viewed(120, 40, Display::Full);
        put(&mut stage, "Left\n\t\r\nRight\rEnd");
        for cell in stage.buffer().content() {
            let is_safe = cell.symbol().chars().all(|letter| is_harmless(letter) && !letter.is_control());
            assert!(is_safe, "{place}: {:?}", cell.symbol());
        }
    }
}

/// `fuzz/regressions/screen-<what it broke>`
#[test]
fn t9_findings_of_the_fuzzer_stay_fixed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("screen-") {
            draws::check(&std::fs::read(&path).unwrap());
        }
    }
    for place in 0..8 {
        for width in [0, 1, 2, 7, 40, 255] {
            let text =
                "a\u{1b}[2J **b** ```rs\nfn x() {}\n```\n| a | b |\n|---|---|\n| 漢 | e\u{301} |\n- x\n  > y\u{202e}";
            draws::check(&[&[place, width, 20, 3], text.as_bytes()].concat());
        }
    }
}
