//! Input and the lines around the transcript (T9-T13).

use std::sync::Arc;

use aside_core::block::{Block, Text};
use aside_core::event::Usage;
use aside_core::message::{Message, Role};
use aside_core::settings::ThinkingDisplay;
use aside_core::turn::TurnEnd;
use aside_front::{
    Command, CommandOutput, DecisionRow, Sending, Status, SteeringError, TerminalAction, ToolMode, Update,
};
use aside_tui::app::Msg;
use aside_tui::bindings::{ACTIONS, Bindings};
use aside_tui::theme::{ColourDepth, Motion, Theme};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::questions::question;
use crate::support::TestTerminal;

fn user_message(text: &str) -> Message {
    Message::new(Role::User, vec![Block::Text(Text { text: text.to_owned(), ..Text::default() })])
}

fn copied(text: &str) -> Command {
    Command::Terminal(TerminalAction::Copy(text.into()))
}

#[test]
fn t9_model_and_tool_text_is_never_executed_by_the_terminal() {
    let evil = "a\u{1b}[2Jb\u{1b}]52;c;ZXZpbA==\u{7}c\u{202e}d\u{9b}31me\rf";
    let mut term = TestTerminal::with_view(60, 40, ThinkingDisplay::Full);
    term.line(evil);
    term.send();
    term.think(0, evil, 0);
    term.write(1, evil);
    term.call(2, "c1", evil, &format!(r#"{{"path":"{evil}"}}"#));
    term.result("c1", evil, true);
    term.update(Update::CommandOutput(CommandOutput::Line(evil.into())));
    let Update::QuestionAsked(mut asked) = question(1, Some(evil)) else { unreachable!() };
    (asked.about.tool, asked.about.subject, asked.about.preview) = (evil.into(), evil.into(), Some(evil.into()));
    term.update(Update::QuestionAsked(asked));
    let status =
        Status { model: evil.into(), title: Some(evil.into()), profile: Some(evil.into()), ..Status::default() };
    term.update(Update::Status(Box::new(Status { view: ThinkingDisplay::Full, ..status })));
    for _ in 0..2 {
        let buffer = term.buffer();
        for cell in buffer.content() {
            let bad = cell.symbol().chars().any(|c| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}'));
            assert!(!bad, "{:?}", cell.symbol());
        }
        assert!(term.screen().contains("abcde"), "the words themselves stay");
        term.control('r');
    }
}

#[test]
fn t20_enter_sends_and_a_prompt_for_after_the_turn_is_queued() {
    let mut term = TestTerminal::new(60, 20);
    term.line("first");
    assert_eq!(term.sent, [Command::Prompt("first".into())]);
    term.queue_line("second");
    term.queue_line("third");
    assert_eq!(term.sent, [Command::Prompt("first".into())]);
    assert!(term.screen().contains("queued: second"), "{}", term.screen());
    term.update(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(term.sent.last(), Some(&Command::Prompt("second".into())));
    term.update(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(term.sent.last(), Some(&Command::Prompt("third".into())));
    assert!(!term.screen().contains("queued"));
}

#[test]
fn t20_a_message_during_a_turn_waits_for_the_step_and_then_stands_in_the_transcript_once() {
    let mut term = TestTerminal::new(60, 20);
    term.line("first");
    term.update(Update::Recorded(Arc::new(user_message("first"))));
    term.line("second");
    assert_eq!(term.sent, [Command::Prompt("first".into()), Command::Steer("second".into())]);
    assert!(term.screen().contains("after this step: second"), "{}", term.screen());
    term.update(Update::Recorded(Arc::new(user_message("second"))));
    let screen = term.screen();
    assert!(!screen.contains("after this step:"), "{screen}");
    assert_eq!(screen.matches("second").count(), 1, "{screen}");
    term.update(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(term.sent.len(), 2, "it is not sent again");
}

#[test]
fn t20_a_message_that_did_not_go_in_is_back_in_the_input() {
    let error = SteeringError { what: "no file `x.rs`".into(), hint: None };
    for error in [None, Some(error)] {
        let mut term = TestTerminal::new(80, 20);
        term.line("first");
        term.line("look at that");
        term.type_text("more");
        term.update(Update::NotSteered { text: "look at that".into(), error: error.clone() });
        let screen = term.screen();
        assert!(screen.contains("❯ look at that") && screen.contains("  more"), "{screen}");
        assert!(!screen.contains("after this step:"), "{screen}");
        assert_eq!(screen.contains("no file `x.rs`"), error.is_some(), "{screen}");
    }
}

#[test]
fn t20_messages_that_did_not_go_in_come_back_in_their_order() {
    let mut term = TestTerminal::new(80, 20);
    for line in ["first", "one", "two", "three"] {
        term.line(line);
    }
    term.type_text("draft");
    for text in ["one", "two", "three"] {
        term.update(Update::NotSteered { text: text.into(), error: None });
    }
    let screen = term.screen();
    let at = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text} is missing: {screen}"));
    assert!(at("❯ one") < at("  two") && at("  two") < at("  three") && at("  three") < at("  draft"), "{screen}");
    assert_eq!(screen.matches("the turn ended before your message went in").count(), 1, "{screen}");
}

#[test]
fn t20_up_takes_a_waiting_message_back_from_the_session_before_it_goes_to_the_history() {
    let mut term = TestTerminal::new(80, 20);
    term.line("first");
    term.line("second");
    term.line("third");
    let sent = term.sent.len();
    term.key(KeyCode::Up);
    term.key(KeyCode::Up);
    assert_eq!(term.sent[sent..], [Command::TakeBack("third".into())], "once, until the session answers");
    assert!(term.screen().contains("after this step: third"), "{}", term.screen());
    term.update(Update::TakenBack("third".into()));
    let screen = term.screen();
    assert!(screen.contains("❯ third") && !screen.contains("after this step: third"), "{screen}");
    assert!(screen.contains("after this step: second"), "{screen}");

    term.control('u');
    term.key(KeyCode::Up);
    assert_eq!(term.sent.last(), Some(&Command::TakeBack("second".into())));
    term.update(Update::Recorded(Arc::new(user_message("first"))));
    term.update(Update::Recorded(Arc::new(user_message("second"))));
    term.update(Update::NotTakenBack("second".into()));
    let screen = term.screen();
    assert!(screen.contains("too late to take it back") && !screen.contains("❯ third"), "{screen}");
    term.key(KeyCode::Up);
    assert!(term.screen().contains("❯ third"), "then the history\n{}", term.screen());
}

#[test]
fn t23_shift_tab_cycles_the_mode_which_is_shown_and_can_be_named() {
    let mut term = TestTerminal::new(80, 10);
    let status = |mode| Status { model: "acme/deep".into(), mode, ..Status::default() };
    term.update(Update::Status(Box::new(status(Some(ToolMode::Ask)))));
    for (mode, shown) in
        [(ToolMode::AcceptEdits, "accept edits"), (ToolMode::ReadOnly, "read only"), (ToolMode::Ask, "ask")]
    {
        term.key(KeyCode::BackTab);
        assert_eq!(term.sent.last(), Some(&Command::Mode(mode)));
        assert!(term.screen().contains("Mode: "), "{}", term.screen());
        term.advance(4000);
        assert_eq!(term.rows().pop().unwrap(), format!("acme/deep · {shown}"));
    }
    term.line("/mode read-only");
    assert_eq!(term.sent.last(), Some(&Command::Mode(ToolMode::ReadOnly)));
    term.line("/mode loud");
    assert!(term.screen().contains("unknown mode `loud`"), "{}", term.screen());
    term.update(Update::Status(Box::new(status(None))));
    let sent = term.sent.len();
    term.key(KeyCode::BackTab);
    assert_eq!(term.sent.len(), sent, "there are no tools");
}

#[test]
fn t7_sending_a_queued_prompt_does_not_scroll() {
    let mut term = TestTerminal::new(60, 14);
    term.line("first");
    term.write(0, &"row\n".repeat(40));
    term.queue_line("second");
    term.screen();
    term.wheel(true);
    let held = term.transcript();
    term.update(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(term.sent.len(), 2);
    // The queued line is gone, so one more row is visible.
    assert_eq!(term.transcript()[..held.len() - 1], held[..held.len() - 1]);
}

#[test]
fn t10_a_queued_prompt_can_be_edited_again() {
    let mut term = TestTerminal::new(60, 20);
    term.line("first");
    term.queue_line("second");
    term.key(KeyCode::Up);
    assert!(term.screen().contains("❯ second") && !term.screen().contains("queued"), "{}", term.screen());
    term.update(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(term.sent, [Command::Prompt("first".into())]);
}

#[test]
fn the_activity_is_shown_in_every_view() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Off);
    let line = |term: &mut TestTerminal| term.rows().into_iter().find(|row| row.starts_with('─')).unwrap();
    term.line("go");
    term.send();
    assert!(line(&mut term).contains("waiting for acme/deep"));
    term.open(0, aside_front::OpenedBlock::Thinking);
    term.advance(3000);
    assert!(line(&mut term).contains("thinking · 3s · Esc stops"));
    term.close(0, aside_core::block::Block::Thinking(crate::support::thinking("So.", None)));
    assert!(line(&mut term).contains("waiting for acme/deep · 3s"), "finished thinking is not running");
    term.open(1, aside_front::OpenedBlock::Text);
    assert!(line(&mut term).contains("writing"));
    term.update(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(line(&mut term), "─".repeat(60));
}

#[test]
fn t10_esc_stops_once_and_returns_the_queue_to_the_input() {
    // A stop may also come too late for the turn.
    for end in [TurnEnd::Interrupted, TurnEnd::Answered] {
        let mut term = TestTerminal::new(60, 20);
        term.line("first");
        term.queue_line("next");
        term.key(KeyCode::Esc);
        term.key(KeyCode::Esc);
        assert_eq!(term.sent, [Command::Prompt("first".into()), Command::Interrupt]);
        term.update(Update::TurnEnded(end.clone()));
        assert_eq!(term.sent.len(), 2, "{end:?}: it must not be sent without the user");
        assert!(term.screen().contains("❯ next"), "{end:?}: {}", term.screen());
    }
}

#[test]
fn t10_completion_history_paste_and_lines() {
    let mut term = TestTerminal::new(60, 20);
    term.type_text("/mod");
    assert!(term.screen().contains("› model"), "{}", term.screen());
    term.key(KeyCode::Tab);
    term.key(KeyCode::Tab);
    term.key(KeyCode::Enter);
    assert_eq!(term.sent.pop(), Some(Command::Model(Some("acme/deep".into()))));
    term.type_text("see @li");
    term.key(KeyCode::Tab);
    term.msg(Msg::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT)));
    term.msg(Msg::Paste("x\n".repeat(50)));
    assert!(term.screen().contains("[pasted 50 lines]"), "{}", term.screen());
    term.key(KeyCode::Enter);
    let said = format!("see @src/lib.rs\n{}", "x\n".repeat(50));
    assert_eq!(term.sent.pop(), Some(Command::Prompt(said.clone())));
    term.update(Update::TurnEnded(TurnEnd::Answered));
    term.key(KeyCode::Up);
    term.key(KeyCode::Enter);
    assert_eq!(term.sent.pop(), Some(Command::Prompt(said)), "the whole text comes back");
}

#[test]
fn t10_enter_on_the_last_choice_submits_the_command() {
    let mut term = TestTerminal::new(60, 20);
    term.type_text("/model acme/d");
    term.key(KeyCode::Enter);
    assert_eq!(term.sent.pop(), Some(Command::Model(Some("acme/deep".into()))));
    // This command needs an argument, and a file mention is not a command.
    term.type_text("/titl");
    term.key(KeyCode::Enter);
    assert!(term.screen().contains("❯ /title"), "{}", term.screen());
    term.key(KeyCode::Esc);
    term.msg(Msg::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    term.type_text("see @li");
    term.key(KeyCode::Enter);
    assert_eq!(term.sent, []);
    assert!(term.screen().contains("❯ see @src/lib.rs"), "{}", term.screen());
}

#[test]
fn t10_an_invalid_command_changes_nothing_and_gives_a_hint() {
    let mut term = TestTerminal::new(100, 20);
    term.line("/thinkin");
    term.line("/set reasoning.display=loud");
    assert_eq!(term.sent, []);
    let screen = term.screen();
    assert!(screen.contains("unknown command `/thinkin`") && screen.contains("hint: /thinking"), "{screen}");
    assert!(screen.contains("full, live, collapsed or off"), "{screen}");
}

#[test]
fn t16_control_c_clears_the_input_and_twice_on_an_empty_line_quits() {
    let mut term = TestTerminal::new(60, 20);
    term.type_text("draft");
    term.control('c');
    assert!(term.sent.is_empty() && !term.screen().contains("once more"), "{}", term.screen());
    term.key(KeyCode::Up);
    assert!(term.screen().contains("❯ draft"), "a draft is not lost");
    term.control('c');
    term.control('c');
    assert!(term.screen().contains("Ctrl+C once more leaves"));
    term.advance(3001);
    assert!(!term.screen().contains("once more"), "the second one came too late");
    term.control('c');
    assert_eq!(term.sent, []);
    term.control('c');
    assert_eq!(term.sent, [Command::Quit]);
}

#[test]
fn t16_control_c_stops_the_turn_before_it_clears_the_input() {
    let mut term = TestTerminal::new(60, 20);
    term.line("go");
    term.send();
    term.type_text("draft");
    term.control('c');
    assert_eq!(term.sent, [Command::Prompt("go".into()), Command::Interrupt]);
    assert!(term.screen().contains("❯ draft"), "{}", term.screen());
    term.update(Update::TurnEnded(TurnEnd::Interrupted));
    term.control('c');
    assert!(!term.screen().contains("❯ draft"), "{}", term.screen());
    term.control('c');
    term.control('c');
    assert_eq!(term.sent.last(), Some(&Command::Quit));
}

#[test]
fn t16_control_c_in_the_reader_stops_the_turn() {
    let mut term = TestTerminal::new(60, 20);
    term.line("go");
    term.send();
    term.think(0, "a thought", 1000);
    term.line("/reader");
    term.control('c');
    assert_eq!(term.sent.last(), Some(&Command::Interrupt));
}

#[test]
fn t11_the_status_line_shows_what_is_sent_and_reported() {
    let mut term = TestTerminal::new(100, 10);
    let status = Status {
        model: "acme/deep".into(),
        profile: Some("work".into()),
        title: Some("a title".into()),
        limit: Some(200_000),
        effort: None,
        view: ThinkingDisplay::Live,
        tier: None,
        mode: None,
        cost: None,
        ..Status::default()
    };
    term.update(Update::Status(Box::new(status)));
    let last = |term: &mut TestTerminal| term.rows().pop().unwrap();
    assert_eq!(last(&mut term), "acme/deep · 0/200k · work · a title");
    term.send();
    assert_eq!(last(&mut term), "acme/deep · ~12.3k/200k · effort high · work · a title");
    term.write(0, &"word ".repeat(100));
    term.advance(1000);
    term.update(Update::Usage(Usage::default().with_input(12_000).with_output(345)));
    term.grow(0, "word");
    term.end(TurnEnd::Answered);
    let line = last(&mut term);
    assert!(line.starts_with("acme/deep · 12.3k/200k · effort high · 345 tok/s"), "{line}");
    assert!(line.ends_with(" tok/s · work · a title"), "{line}");
    term.size.0 = 40;
    assert_eq!(last(&mut term).split(" · ").next(), Some("acme/deep"));
    // The effort of the request is shown, not the setting.
    let sending = Sending { model: "acme/deep".into(), effort: None, ..Sending::default() };
    term.update(Update::Sending(Box::new(sending)));
    assert!(!last(&mut term).contains("effort"));
}

#[test]
fn t11_an_effort_that_differs_from_the_setting_warns() {
    #[rustfmt::skip]
    let cases = [
        ("as wished",  Some("high"), Some("high"), Some("effort high"),            false),
        ("no wish",    Some("high"), None,         Some("effort high"),            false),
        ("lowered",    Some("high"), Some("max"),  Some("effort high!"),           true),
        ("not sent",   None,         Some("max"),  Some("no effort sent"),         true),
        ("neither",    None,         None,         None,                           false),
    ];
    for (name, sent, wish, expected, warns) in cases {
        let mut term = TestTerminal::new(60, 10);
        let effort = wish.map(str::to_owned);
        term.update(Update::Status(Box::new(Status { model: "m".into(), effort, ..Status::default() })));
        let effort = sent.map(str::to_owned);
        term.update(Update::Sending(Box::new(Sending { model: "m".into(), effort, ..Sending::default() })));
        let line = term.rows().pop().unwrap();
        assert_eq!(line.split(" · ").find(|part| part.contains("effort")), expected, "{name}");
        let at = line.chars().position(|letter| letter == 'f').unwrap_or(0) as u16;
        let (buffer, muted) = (term.buffer(), line.chars().position(|letter| letter == '·').unwrap() as u16);
        assert_eq!(expected.is_some() && buffer[(at, 9)].fg != buffer[(muted, 9)].fg, warns, "{name}");
    }
}

#[test]
fn t11_thinking_that_is_off_is_shown_as_the_effort_none() {
    #[rustfmt::skip]
    let cases = [
        ("before a request",    false, None,        "m · effort none"),
        ("nothing is sent",     true,  None,        "m · ~0 · effort none"),
        ("none is sent",        true,  Some("none"), "m · ~0 · effort none"),
        ("a level is sent",     true,  Some("low"), "m · ~0 · effort low!"),
    ];
    for (name, is_sent, effort, expected) in cases {
        let mut term = TestTerminal::new(60, 10);
        let status = Status { model: "m".into(), thinking_is_off: true, ..Status::default() };
        term.update(Update::Status(Box::new(status)));
        if is_sent {
            let effort = effort.map(str::to_owned);
            term.update(Update::Sending(Box::new(Sending { model: "m".into(), effort, ..Sending::default() })));
        }
        assert_eq!(term.rows().pop().as_deref(), Some(expected), "{name}");
    }
}

#[test]
fn the_decisions_about_thinking_can_be_shown() {
    let mut term = TestTerminal::new(80, 20);
    let row = DecisionRow {
        what: "turn 1, thought 1".into(),
        action: "dropped".into(),
        why: "another maker".into(),
        ..DecisionRow::default()
    };
    let sending = Sending { decisions: vec![row], ..Sending::default() };
    term.update(Update::Sending(Box::new(sending)));
    term.update(Update::TurnEnded(TurnEnd::Answered));
    term.line("/explain");
    let rows = term.rows();
    assert_eq!(rows[0], "/sent", "a page, like /help");
    assert!(rows.contains(&"turn 1, thought 1 │ dropped │ another maker".to_owned()), "{rows:?}");
}

#[test]
fn t12_thinking_can_be_read_searched_and_copied() {
    let mut term = TestTerminal::with_view(60, 10, ThinkingDisplay::Off);
    let text: String = (0..50).map(|n| format!("row {n} of it\n")).collect();
    term.think(0, "The first one.", 0);
    term.think(1, &text, 0);
    term.line("/reader");
    let rows = term.rows();
    assert_eq!(rows[..3], ["Thought 2 of 2", "row 0 of it", "row 1 of it"], "it can be opened although it is hidden");
    term.type_text("/ROW 33");
    term.key(KeyCode::Enter);
    assert_eq!(term.rows()[1], "row 33 of it");
    term.type_text("/row 49");
    term.key(KeyCode::Enter);
    assert_eq!(term.rows()[8], "row 49 of it", "the last page is full");
    term.type_text("/ROW 33");
    term.key(KeyCode::Enter);
    term.screen();
    term.type_text("/of it");
    term.key(KeyCode::Enter);
    term.screen();
    term.type_text("n");
    assert_eq!(term.rows()[1], "row 34 of it", "the next hit");
    term.type_text("N");
    assert_eq!(term.rows()[1], "row 33 of it", "and the one before");
    term.type_text("y");
    assert_eq!(term.sent, [copied(&text)]);
    term.key(KeyCode::Left);
    assert_eq!(term.rows()[..2], ["Thought 1 of 2", "The first one."]);
    term.key(KeyCode::Left);
    assert!(term.screen().contains("this is the first thought"));
    term.key(KeyCode::Esc);
    assert!(term.screen().contains("ask something"));
}

#[test]
fn t12_the_answer_is_copied_without_its_thinking() {
    let mut term = TestTerminal::new(60, 20);
    term.think(0, "A thought.", 0);
    term.write(1, "An **answer**.");
    term.line("/copy");
    term.line("/copy thinking");
    assert_eq!(term.sent, [copied("An **answer**."), copied("A thought.")]);
}

#[test]
fn t12_the_last_code_block_is_copied_as_it_was_written() {
    let mut term = TestTerminal::new(60, 20);
    term.line("/copy code");
    assert!(term.screen().contains("there is no code block yet"));
    term.write(0, "First:\n\n```sh\nls\n```\n\n- then\n\n  ```rust\n  fn main() {\n      go();\n  }\n  ```\n\nDone.");
    term.write(1, "No code here.");
    term.line("/copy code");
    assert_eq!(term.sent, [copied("fn main() {\n    go();\n}")]);
}

#[test]
fn t13_without_motion_and_colour_everything_is_still_shown() {
    let theme = Theme { depth: ColourDepth::None, motion: Motion::Still, ..Theme::default() };
    let mut term = TestTerminal::with_theme(60, 16, theme, ThinkingDisplay::Live);
    term.line("why?");
    term.send();
    term.open(0, aside_front::OpenedBlock::Thinking);
    term.grow(0, "I wonder");
    let before = term.screen();
    assert!(before.contains("… Thinking") && before.contains("│ I wonder"), "{before}");
    term.advance(300);
    assert_eq!(term.screen(), before, "no spinner");
    for cell in term.buffer().content() {
        assert_eq!((cell.fg, cell.bg), (ratatui::style::Color::Reset, ratatui::style::Color::Reset));
    }
}

#[test]
fn help_names_every_command_and_key() {
    let help = aside_tui::help::help(&Bindings::default(), &[]);
    for entry in aside_front::slash_commands::COMMANDS {
        assert!(help.contains(&format!("/{}", entry.name)), "{}", entry.name);
    }
    for (key, _) in aside_tui::help::KEYS {
        assert!(help.contains(key), "{key}");
    }
    for entry in ACTIONS {
        assert!(help.contains(entry.name) && help.contains(entry.doc), "{}", entry.name);
    }
    let mut term = TestTerminal::new(80, 80);
    term.line("/help");
    assert!(term.screen().contains("/thinking [full|live|collapsed|off]"), "{}", term.screen());
}

#[test]
fn keys_follow_the_config_and_help_shows_them() {
    let mut bindings = Bindings::default();
    for (name, keys) in [("toggle_thinking", "f6"), ("send", "ctrl+s"), ("new_line", "enter"), ("read_last", "ctrl+t")]
    {
        bindings.bind(name, &[keys]).unwrap();
    }
    let mut term = TestTerminal::new(120, 80);
    term.app.bind(bindings);
    term.type_text("one");
    term.key(KeyCode::Enter);
    term.type_text("two");
    assert_eq!(term.sent, []);
    term.control('s');
    assert_eq!(term.sent, [Command::Prompt("one\ntwo".into())]);
    term.key(KeyCode::F(6));
    assert_eq!(term.sent.last(), Some(&Command::View(ThinkingDisplay::Collapsed)));
    term.control('t');
    assert!(term.screen().contains("there is no thought yet"), "{}", term.screen());
    assert_eq!(term.sent.len(), 2, "the old key no longer works");
    term.msg(Msg::Paste("/help".into()));
    term.control('s');
    let row = term.rows().into_iter().find(|row| row.contains("toggle_thinking")).unwrap();
    assert!(row.contains("F6") && !row.contains("Ctrl+T"), "{row}");
}

#[test]
fn t10_the_input_can_be_edited_in_the_users_editor() {
    let mut term = TestTerminal::new(60, 20);
    term.type_text("a draft");
    term.msg(Msg::Paste("line\n".repeat(20)));
    term.control('g');
    let whole = format!("a draft{}", "line\n".repeat(20));
    assert_eq!(term.sent, [Command::Terminal(TerminalAction::Edit(whole.clone()))]);
    term.msg(Msg::Edited(" \n".into()));
    assert!(term.screen().contains("the editor left nothing"), "{}", term.screen());
    assert!(term.screen().contains("a draft[pasted 20 lines]"), "nothing is lost: {}", term.screen());
    term.msg(Msg::Edited("shorter\nand better".into()));
    term.key(KeyCode::Enter);
    assert_eq!(term.sent.last(), Some(&Command::Prompt("shorter\nand better".into())));
}

#[test]
fn t10_a_paste_of_ten_thousand_lines_is_one_placeholder_and_tab_expands_it() {
    let paste = "fn a_line_of_code() {}\n".repeat(10_000);
    let mut term = TestTerminal::new(60, 20);
    term.msg(Msg::Paste(paste.clone()));
    assert!(term.screen().contains("❯ [pasted 10,000 lines]"), "{}", term.screen());
    term.key(KeyCode::Tab);
    assert!(term.screen().contains("  fn a_line_of_code() {}"), "{}", term.screen());
    term.control('c');
    term.msg(Msg::Paste(paste.clone()));
    term.type_text(" and more");
    term.key(KeyCode::Enter);
    assert_eq!(term.sent, [Command::Prompt(format!("{paste} and more"))]);
    // Recalled from the history, it is folded again.
    term.update(Update::TurnEnded(TurnEnd::Answered));
    term.key(KeyCode::Up);
    assert!(term.screen().contains("❯ [pasted 10,001 lines]"), "{}", term.screen());
}

#[test]
fn t10_prompts_of_earlier_sessions_are_recalled() {
    let mut term = TestTerminal::new(60, 20);
    term.update(Update::PromptHistory(vec!["older".into(), "newer".into()]));
    term.type_text("dra");
    term.screen();
    for expected in ["newer", "older", "older"] {
        term.key(KeyCode::Up);
        assert!(term.screen().contains(&format!("❯ {expected}")), "{expected}: {}", term.screen());
    }
    term.key(KeyCode::Down);
    term.key(KeyCode::Down);
    assert!(term.screen().contains("❯ dra"), "{}", term.screen());
}
