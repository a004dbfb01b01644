//! Text from models and tools is shown and never executed (T9): every kind of escape sequence in
//! every place that shows such text.

use std::path::Path;
use std::sync::Arc;

use aside_core::block::Block;
use aside_core::connection_failure::{ConnectionError, ConnectionFailure};
use aside_core::event::{BlockId, Ending, Note, NoteCode, ProviderError, ReplyEnd};
use aside_core::message::{Message, Role};
use aside_core::permission_question::{escape_unsafe, is_invisible, visible};
use aside_core::settings::ThinkingDisplay;
use aside_core::terminal_text::is_terminal_safe;
use aside_core::turn::{TurnEnd, TurnNotice};
use aside_front::{
    CommandOutput, CompletionLists, DecisionRow, OpenedBlock, PendingQuestion, QuestionId, Sending, Status, Update,
};
use aside_tui::app::Msg;
use crossterm::event::KeyCode;

use crate::draws;
use crate::support::{TestTerminal, call, text_block, thinking};

/// A sequence between two words, and what of it is shown.
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

type TextPlace = (&'static str, fn(&mut TestTerminal, &str));

/// Every place that shows text from outside.
#[rustfmt::skip]
const PLACES: &[TextPlace] = &[
    ("an answer",           |term, text| term.write(0, text)),
    ("an answer in pieces", pieces),
    ("code",                |term, text| term.write(0, &format!("```rust {text}\n{text}\n```\n"))),
    ("a table",             |term, text| term.write(0, &format!("|{text}|b|\n|-|-|\n|{text}|c|\n"))),
    ("a link",              |term, text| term.write(0, &format!("[{text}](<{text}> \"{text}\")"))),
    ("a thought",           |term, text| term.think(0, text, 2_000)),
    ("a title",             |term, text| term.think(0, &format!("**{text}**\n\nbody"), 2_000)),
    ("a folded thought",    folded),
    ("a running title",     running),
    ("a tool's name",       |term, text| term.call(0, "c", text, "{}")),
    ("a call coming",       |term, text| term.open(0, OpenedBlock::ToolCall { name: text.into() })),
    ("a call's subject",    |term, text| term.call(0, "c", "shell", &serde_json::json!({ "command": text }).to_string())),
    ("a call's arguments",  arguments),
    ("a broken call",       |term, text| term.call(0, "c", "shell", text)),
    ("a result",            |term, text| { term.result("c", text, false); term.control('o'); }),
    ("a failure",           |term, text| term.result("c", text, true)),
    ("a result's tool",     result_of),
    ("a diff",              |term, text| term.result("c", &format!("--- a/{text}\n+++ b/{text}\n@@ -1 +1 @@\n-{text}\n+{text}"), false)),
    ("a running tool",      started),
    ("a question's tool",   |term, text| ask(term, text, "b", None, None)),
    ("a question",          |term, text| ask(term, "a", text, None, None)),
    ("a preview",           |term, text| ask(term, "a", "b", Some(text), None)),
    ("what a yes covers",   |term, text| ask(term, "a", "b", None, Some(text))),
    ("a preview in full",   |term, text| { ask(term, text, "b", Some(text), None); term.advance(1_000); term.type_text("v"); }),
    ("the reader",          |term, text| { term.think(0, text, 0); term.line("/reader"); }),
    ("the outline",         |term, text| { term.think(0, &format!("**{text}**\n\nx"), 0); term.line("/reader"); term.screen(); term.type_text("o"); }),
    ("a note",              |term, text| term.update(Update::Noted(Note::new(NoteCode::Malformed, text)))),
    ("a repair",            |term, text| term.update(Update::TurnNotice(TurnNotice::BrokenCall { name: text.into() }))),
    ("a failed turn",       failed),
    ("no connection",       |term, text| term.end(TurnEnd::Unreachable(ConnectionError::new(ConnectionFailure::Other, text)))),
    ("a retry",             |term, text| term.update(Update::Retrying { after: std::time::Duration::from_secs(1), attempt: 1, why: text.into() })),
    ("a note on sending",   |term, text| term.update(Update::Sending(Box::new(Sending { notes: vec![text.into()], ..Sending::default() })))),
    ("the model that answers", |term, text| term.update(Update::Sending(Box::new(Sending { model: text.into(), ..Sending::default() })))),
    ("the effort",          |term, text| term.update(Update::Sending(Box::new(Sending { effort: Some(text.into()), ..Sending::default() })))),
    ("a decision",          decision),
    ("the model",           |term, text| term.update(Update::Status(Box::new(Status { model: text.into(), ..Status::default() })))),
    ("the profile",         |term, text| term.update(Update::Status(Box::new(Status { profile: Some(text.into()), ..Status::default() })))),
    ("the session's title", |term, text| term.update(Update::Status(Box::new(Status { title: Some(text.into()), ..Status::default() })))),
    ("a line of ours",      |term, text| term.update(Update::CommandOutput(CommandOutput::Line(text.into())))),
    ("an error",            |term, text| term.update(Update::CommandOutput(CommandOutput::Error { what: text.into(), hint: Some(text.into()) }))),
    ("a table of ours",     |term, text| term.update(Update::CommandOutput(CommandOutput::Table { head: vec![text.into()], rows: vec![vec![text.into()]] }))),
    ("a page of ours",      |term, text| term.update(Update::CommandOutput(CommandOutput::Markdown(text.into())))),
    ("a history",           history),
    ("what waits",          |term, text| { term.send(); term.msg(Msg::Paste(text.into())); term.key(KeyCode::Enter); }),
    ("what was said",       |term, text| { term.msg(Msg::Paste(text.into())); term.key(KeyCode::Enter); }),
    ("completions",         completions),
];

fn history(term: &mut TestTerminal, text: &str) {
    let reply = vec![Block::Thinking(thinking(text, None)), text_block(text), call("c", text, text)];
    let messages = vec![Message::new(Role::User, vec![text_block(text)]), Message::new(Role::Assistant, reply)];
    term.update(Update::Restored(messages.into_iter().map(Arc::new).collect()));
}

fn pieces(term: &mut TestTerminal, text: &str) {
    term.open(0, OpenedBlock::Text);
    for letter in text.chars() {
        term.grow(0, &letter.to_string());
        term.buffer();
    }
}

fn folded(term: &mut TestTerminal, text: &str) {
    term.line("/thinking collapsed");
    term.think(0, text, 2_000);
}

fn running(term: &mut TestTerminal, text: &str) {
    term.open(0, OpenedBlock::Thinking);
    term.update(Update::Item { block: BlockId(0) });
    term.grow(0, &format!("**{text}**\n"));
}

fn arguments(term: &mut TestTerminal, text: &str) {
    term.call(0, "c", "shell", &serde_json::json!({ "x": text }).to_string());
    term.control('o');
}

fn result_of(term: &mut TestTerminal, text: &str) {
    let result = aside_core::block::ToolResult {
        id: "z".into(),
        name: text.into(),
        content: "x".into(),
        is_error: false,
        media: Vec::new(),
    };
    term.update(Update::ToolEnded(Box::new(result)));
}

fn started(term: &mut TestTerminal, text: &str) {
    term.send();
    if let Block::ToolCall(call) = call("c", text, "{}") {
        term.update(Update::ToolStarted(Box::new(call)));
    }
}

fn ask(term: &mut TestTerminal, tool: &str, subject: &str, preview: Option<&str>, covers: Option<&str>) {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    term.update(Update::QuestionAsked(Box::new(PendingQuestion {
        id: QuestionId(1),
        about: crate::support::question_about(tool, subject, owned(preview), owned(covers)),
    })));
}

fn failed(term: &mut TestTerminal, text: &str) {
    let error = ProviderError::new(text);
    term.update(Update::ReplyEnded(ReplyEnd { ending: Ending::CutOff, error: Some(error.clone()) }));
    term.update(Update::TurnEnded(TurnEnd::Failed(error)));
}

fn decision(term: &mut TestTerminal, text: &str) {
    let row = DecisionRow { what: text.into(), action: text.into(), why: text.into(), ..DecisionRow::default() };
    term.update(Update::Sending(Box::new(Sending { decisions: vec![row], ..Sending::default() })));
    term.update(Update::TurnEnded(TurnEnd::Answered));
    term.line("/explain");
}

fn completions(term: &mut TestTerminal, text: &str) {
    term.update(Update::CompletionLists(Box::new(CompletionLists {
        models: vec![format!("m{text}")],
        ..CompletionLists::default()
    })));
    term.type_text("/model m");
}

/// How a question or a call shows these bytes, if the place belongs to one.
fn asked(place: &str, bytes: &str) -> Option<String> {
    let asked = ["a question's tool", "a question", "a preview", "a preview in full"];
    let calls = ["a call's subject", "a call's arguments", "a broken call"];
    asked.contains(&place).then(|| visible(bytes)).or_else(|| calls.contains(&place).then(|| escape_unsafe(bytes)))
}

#[test]
fn t9_no_escape_sequence_reaches_the_terminal() {
    for (place, put) in PLACES {
        for (sequence, bytes, shown) in SEQUENCES {
            let mut term = TestTerminal::with_view(100, 24, ThinkingDisplay::Full);
            put(&mut term, &format!("Left{bytes}Right"));
            let buffer = term.buffer();
            for cell in buffer.content() {
                let symbol = cell.symbol();
                assert!(
                    symbol.chars().all(|letter| is_terminal_safe(letter) && !letter.is_control()),
                    "{place}, {sequence}: a cell holds {symbol:?}"
                );
                assert_ne!(symbol, "\u{fffd}", "{place}, {sequence}: it is made safe too late");
            }
            let screen = crate::support::text_of(&buffer);
            if let Some(shown) = asked(place, bytes) {
                // Questions and calls show everything, in a harmless form.
                assert!(screen.contains(&format!("Left{shown}Right")), "{place}, {sequence}:\n{screen}");
                continue;
            }
            if *place == "what a yes covers" {
                assert_eq!(screen.contains("Left"), !bytes.contains(is_invisible), "{place}, {sequence}:\n{screen}");
                continue;
            }
            assert!(screen.contains(&format!("Left{shown}Right")), "{place}, {sequence}:\n{screen}");
            // Escaped in JSON it is ordinary text, and the history contains a call.
            let spelled = screen.contains("\\u00") || *place == "a history";
            for hidden in ["owned", "secret", "evil", "ZXZ"].into_iter().filter(|_| !spelled) {
                assert!(!screen.contains(hidden), "{place}, {sequence}:\n{screen}");
            }
        }
    }
}

#[test]
fn t9_line_ends_and_tabs_in_a_name_stay_on_its_row() {
    // The user's own text is not filtered, but it is not executed either.
    let own: TextPlace = ("what is written", |term, text| term.msg(Msg::Paste(format!("{text}\u{1b}[2J\u{202e}"))));
    for (place, put) in PLACES.iter().chain([&own]) {
        let mut term = TestTerminal::with_view(120, 40, ThinkingDisplay::Full);
        put(&mut term, "Left\n\t\r\nRight\rEnd");
        for cell in term.buffer().content() {
            let is_safe = cell.symbol().chars().all(|letter| is_terminal_safe(letter) && !letter.is_control());
            assert!(is_safe, "{place}: {:?}", cell.symbol());
        }
    }
}

/// Named `fuzz/regressions/screen-<what it broke>`.
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
