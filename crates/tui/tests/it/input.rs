//! What is typed, asked and shown around the transcript (T9-T13).

use aside_core::block::Block;
use aside_core::event::Usage;
use aside_core::settings::Display;
use aside_core::turn::TurnEnd;
use aside_tui::app::Msg;
use aside_tui::bindings::{ACTIONS, Bindings};
use aside_tui::seam::{Command, DecisionRow, Permit, Question, QuestionId, Said, Sending, Status, TerminalAct, Update};
use aside_tui::theme::{Depth, Motion, Theme};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::support::{self, Stage};

fn copied(text: &str) -> Command {
    Command::Terminal(TerminalAct::Copy(text.into()))
}

fn question(id: u64, covers: Option<&str>) -> Update {
    Update::Asked(Box::new(Question {
        id: QuestionId(id),
        about: crate::support::about(
            "edit",
            "src/a.rs",
            Some("--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-old\n+new\n".into()),
            covers.map(str::to_owned),
        ),
    }))
}

#[test]
fn t9_nothing_a_model_or_tool_says_reaches_the_terminal_as_a_command() {
    let evil = "a\u{1b}[2Jb\u{1b}]52;c;ZXZpbA==\u{7}c\u{202e}d\u{9b}31me\rf";
    let mut stage = Stage::viewed(60, 40, Display::Full);
    stage.line(evil);
    stage.send();
    stage.think(0, evil, 0);
    stage.write(1, evil);
    stage.call(2, "c1", evil, &format!(r#"{{"path":"{evil}"}}"#));
    stage.result("c1", evil, true);
    stage.tell(Update::Said(Said::Line(evil.into())));
    let Update::Asked(mut asked) = question(1, Some(evil)) else { unreachable!() };
    (asked.about.tool, asked.about.subject, asked.about.preview) = (evil.into(), evil.into(), Some(evil.into()));
    stage.tell(Update::Asked(asked));
    let status =
        Status { model: evil.into(), title: Some(evil.into()), profile: Some(evil.into()), ..Status::default() };
    stage.tell(Update::Status(Box::new(Status { view: Display::Full, ..status })));
    for _ in 0..2 {
        let buffer = stage.buffer();
        for cell in buffer.content() {
            let bad = cell.symbol().chars().any(|c| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}'));
            assert!(!bad, "{:?}", cell.symbol());
        }
        assert!(stage.screen().contains("abcde"), "the words themselves stay");
        stage.control('r');
    }
}

#[test]
fn t10_enter_sends_and_what_comes_while_an_answer_streams_waits() {
    let mut stage = Stage::new(60, 20);
    stage.line("first");
    assert_eq!(stage.sent, [Command::Say("first".into())]);
    stage.line("second");
    stage.line("third");
    assert_eq!(stage.sent, [Command::Say("first".into())]);
    assert!(stage.screen().contains("queued: second"), "{}", stage.screen());
    stage.tell(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(stage.sent.last(), Some(&Command::Say("second".into())));
    stage.tell(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(stage.sent.last(), Some(&Command::Say("third".into())));
    assert!(!stage.screen().contains("queued"));
}

#[test]
fn t7_a_queued_line_that_goes_out_does_not_move_a_reader() {
    let mut stage = Stage::new(60, 14);
    stage.line("first");
    stage.write(0, &"row\n".repeat(40));
    stage.line("second");
    stage.screen();
    stage.wheel(true);
    let held = stage.said();
    stage.tell(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(stage.sent.len(), 2);
    // The line of the queue is gone, so one row more is in sight.
    assert_eq!(stage.said()[..held.len() - 1], held[..held.len() - 1]);
}

#[test]
fn t10_what_is_queued_can_be_taken_back() {
    let mut stage = Stage::new(60, 20);
    stage.line("first");
    stage.line("second");
    stage.key(KeyCode::Up);
    assert!(stage.screen().contains("❯ second") && !stage.screen().contains("queued"), "{}", stage.screen());
    stage.tell(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(stage.sent, [Command::Say("first".into())]);
}

#[test]
fn what_the_turn_is_at_shows_in_every_view() {
    let mut stage = Stage::viewed(60, 20, Display::Off);
    let line = |stage: &mut Stage| stage.rows().into_iter().find(|row| row.starts_with('─')).unwrap();
    stage.line("go");
    stage.send();
    assert!(line(&mut stage).contains("waiting for acme/deep"));
    stage.open(0, aside_tui::seam::Opening::Thinking);
    stage.pass(3000);
    assert!(line(&mut stage).contains("thinking · 3s · Esc stops"));
    stage.close(0, aside_core::block::Block::Thinking(crate::support::thinking("So.", None)));
    assert!(line(&mut stage).contains("waiting for acme/deep · 3s"), "a thought that ended is not going on");
    stage.open(1, aside_tui::seam::Opening::Text);
    assert!(line(&mut stage).contains("writing"));
    stage.tell(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(line(&mut stage), "─".repeat(60));
}

#[test]
fn t10_esc_stops_once_and_gives_back_what_was_queued() {
    // A stop may also come too late for the turn.
    for end in [TurnEnd::Interrupted, TurnEnd::Answered] {
        let mut stage = Stage::new(60, 20);
        stage.line("first");
        stage.typed("next");
        stage.key(KeyCode::Enter);
        stage.key(KeyCode::Esc);
        stage.key(KeyCode::Esc);
        assert_eq!(stage.sent, [Command::Say("first".into()), Command::Interrupt]);
        stage.tell(Update::TurnEnded(end.clone()));
        assert_eq!(stage.sent.len(), 2, "{end:?}: it is not sent behind the user's back");
        assert!(stage.screen().contains("❯ next"), "{end:?}: {}", stage.screen());
    }
}

#[test]
fn t10_completion_history_paste_and_lines() {
    let mut stage = Stage::new(60, 20);
    stage.typed("/mod");
    assert!(stage.screen().contains("› model"), "{}", stage.screen());
    stage.key(KeyCode::Tab);
    stage.key(KeyCode::Tab);
    stage.key(KeyCode::Enter);
    assert_eq!(stage.sent.pop(), Some(Command::Model(Some("acme/deep".into()))));
    stage.typed("see @li");
    stage.key(KeyCode::Tab);
    stage.msg(Msg::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT)));
    stage.msg(Msg::Paste("x\n".repeat(50)));
    assert!(stage.screen().contains("[pasted 50 lines]"), "{}", stage.screen());
    stage.key(KeyCode::Enter);
    let said = format!("see @src/lib.rs\n{}", "x\n".repeat(50));
    assert_eq!(stage.sent.pop(), Some(Command::Say(said.clone())));
    stage.key(KeyCode::Up);
    stage.key(KeyCode::Enter);
    stage.tell(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(stage.sent.pop(), Some(Command::Say(said)), "the whole text comes back");
}

#[test]
fn t10_enter_on_the_last_choice_is_the_command_itself() {
    let mut stage = Stage::new(60, 20);
    stage.typed("/model acme/d");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.sent.pop(), Some(Command::Model(Some("acme/deep".into()))));
    // Something must follow, and a mention is no command.
    stage.typed("/titl");
    stage.key(KeyCode::Enter);
    assert!(stage.screen().contains("❯ /title"), "{}", stage.screen());
    stage.key(KeyCode::Esc);
    stage.msg(Msg::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    stage.typed("see @li");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.sent, []);
    assert!(stage.screen().contains("❯ see @src/lib.rs"), "{}", stage.screen());
}

#[test]
fn t10_a_wrong_command_changes_nothing_and_says_what_would_be_right() {
    let mut stage = Stage::new(100, 20);
    stage.line("/thinkin");
    stage.line("/set reasoning.display=loud");
    assert_eq!(stage.sent, []);
    let screen = stage.screen();
    assert!(screen.contains("unknown command `/thinkin`") && screen.contains("hint: /thinking"), "{screen}");
    assert!(screen.contains("full, live, collapsed or off"), "{screen}");
}

#[test]
fn t10_control_c_twice_leaves_and_once_does_not() {
    let mut stage = Stage::new(60, 20);
    stage.typed("draft");
    stage.control('c');
    assert_eq!(stage.sent, []);
    assert!(stage.screen().contains("Ctrl+C once more leaves"));
    stage.pass(3000);
    assert!(!stage.screen().contains("once more"));
    stage.key(KeyCode::Up);
    assert!(stage.screen().contains("❯ draft"), "a draft is not lost");
    stage.control('c');
    stage.control('c');
    assert_eq!(stage.sent, [Command::Quit]);
}

#[test]
fn a_permission_is_asked_with_what_would_be_done_and_answered_by_one_key() {
    #[rustfmt::skip]
    let cases: &[(&str, Option<&str>, Option<Permit>)] = &[
        ("y", Some("edit:src/*"), Some(Permit::Once)),
        ("s", Some("edit:src/*"), Some(Permit::Session)),
        ("p", Some("edit:src/*"), Some(Permit::Project)),
        ("n", Some("edit:src/*"), Some(Permit::No(None))),
        ("s", None,               None),
        ("x", None,               None),
    ];
    for (key, covers, permit) in cases {
        let mut stage = Stage::new(60, 20);
        stage.tell(question(7, *covers));
        let screen = stage.screen();
        assert!(screen.contains("edit: src/a.rs") && screen.contains("+new") && screen.contains("-old"), "{screen}");
        assert_eq!(screen.contains("this session"), covers.is_some(), "{screen}");
        stage.pass(600);
        stage.typed(key);
        let expected: Vec<Command> =
            permit.iter().map(|permit| Command::Answer { id: QuestionId(7), permit: permit.clone() }).collect();
        assert_eq!(stage.sent, expected, "{key}");
    }
}

#[test]
fn l3_the_time_of_a_call_begins_with_the_answer_that_allows_it() {
    let mut stage = Stage::new(70, 20);
    stage.send();
    for (block, id, arguments) in [(0, "c1", r#"{"command":"make it"}"#), (1, "c2", r#"{"command":"make more"}"#)] {
        stage.call(block, id, "shell", arguments);
        let Block::ToolCall(call) = support::call(id, "shell", arguments) else { unreachable!() };
        stage.tell(Update::ToolStarted(Box::new(call)));
    }
    let Update::Asked(mut asked) = question(7, None) else { unreachable!() };
    (asked.about.tool, asked.about.subject, asked.about.preview) =
        ("shell".into(), "make more".into(), Some("make more".into()));
    stage.tell(Update::Asked(asked));
    stage.pass(60_000);
    stage.typed("y");
    stage.pass(2_000);
    stage.result("c1", "made", false);
    stage.result("c2", "made", false);
    let screen = stage.screen();
    assert!(screen.contains("shell make it · 1 line · 1m 2s"), "nobody was asked about this one:\n{screen}");
    assert!(screen.contains("shell make more · 1 line · 2s"), "{screen}");
}

#[test]
fn arrows_select_an_answer_and_enter_confirms_it() {
    let mut stage = Stage::new(60, 20);
    stage.tell(question(7, Some("edit:src/*")));
    stage.pass(600);
    stage.key(KeyCode::Right);
    stage.key(KeyCode::Down);
    assert!(stage.screen().contains("› s this session"), "{}", stage.screen());
    stage.key(KeyCode::Enter);
    assert_eq!(stage.sent, [Command::Answer { id: QuestionId(7), permit: Permit::Session }]);
}

#[test]
fn a_question_with_something_invisible_in_it_is_answered_for_this_once() {
    let mut stage = Stage::new(60, 20);
    let Update::Asked(mut asked) = question(7, Some("shell")) else { unreachable!() };
    asked.about.subject = "git status \u{9d};touch X;: \u{9c}".into();
    asked.about.preview = None;
    stage.tell(Update::Asked(asked));
    stage.pass(600);
    let screen = stage.screen();
    assert!(screen.contains("│!git status <U+009D>;touch X;: <U+009C>"), "{screen}");
    assert!(!screen.contains("this session"), "{screen}");
    stage.typed("sp");
    assert_eq!(stage.sent, []);
}

#[test]
fn t16_ctrl_c_at_a_question_denies_and_stops() {
    let mut stage = Stage::new(60, 20);
    stage.send();
    stage.tell(question(7, None));
    stage.control('c');
    let no = Command::Answer { id: QuestionId(7), permit: Permit::No(None) };
    assert_eq!(stage.sent, [Command::Interrupt, no]);
}

#[test]
fn l3_esc_at_a_question_stops_the_turn_before_it_says_no() {
    let mut stage = Stage::new(60, 20);
    stage.send();
    stage.tell(question(7, None));
    stage.pass(600);
    stage.key(KeyCode::Esc);
    let no = Command::Answer { id: QuestionId(7), permit: Permit::No(None) };
    assert_eq!(stage.sent, [Command::Interrupt, no], "told of the no first, the model would be asked again");
}

#[test]
fn a_no_may_carry_a_word_and_a_draft_is_left_alone() {
    let mut stage = Stage::new(60, 20);
    stage.typed("my draft");
    stage.tell(question(7, None));
    stage.pass(600);
    stage.typed("w");
    stage.typed("use the other file");
    stage.key(KeyCode::Enter);
    let permit = Permit::No(Some("use the other file".into()));
    assert_eq!(stage.sent, [Command::Answer { id: QuestionId(7), permit }]);
    assert!(stage.screen().contains("❯ my draft"), "{}", stage.screen());
}

#[test]
fn what_is_being_typed_when_a_question_comes_is_no_answer() {
    let mut stage = Stage::new(60, 20);
    stage.typed("m");
    stage.tell(question(7, Some("x")));
    for letter in ["a", "y", "b", "e", "y"] {
        stage.pass(120);
        stage.typed(letter);
    }
    assert_eq!(stage.sent, [], "typed before it could be read");
    stage.pass(600);
    stage.key(KeyCode::Enter);
    assert_eq!(stage.sent, [], "no answer is selected at first");
    stage.typed("y");
    assert_eq!(stage.sent.len(), 1);
    stage.tell(question(8, Some("x")));
    stage.pass(100);
    stage.typed("y");
    assert_eq!(stage.sent.len(), 1, "one key is one answer");
}

#[test]
fn t11_the_status_line_says_what_is_sent_and_counted() {
    let mut stage = Stage::new(100, 10);
    let status = Status {
        model: "acme/deep".into(),
        profile: Some("work".into()),
        title: Some("a title".into()),
        limit: Some(200_000),
        effort: None,
        view: Display::Live,
        tier: None,
    };
    stage.tell(Update::Status(Box::new(status)));
    let last = |stage: &mut Stage| stage.rows().pop().unwrap();
    assert_eq!(last(&mut stage), "acme/deep · 0/200k · work · a title");
    stage.send();
    assert_eq!(last(&mut stage), "acme/deep · ~12.3k/200k · effort high · work · a title");
    stage.write(0, &"word ".repeat(100));
    stage.pass(1000);
    stage.tell(Update::Usage(Usage { input: Some(12_000), output: Some(345), ..Usage::default() }));
    stage.grow(0, "word");
    stage.end(TurnEnd::Answered);
    let line = last(&mut stage);
    assert!(line.starts_with("acme/deep · 12.3k/200k · effort high · 345 tok/s"), "{line}");
    assert!(line.ends_with(" tok/s · work · a title"), "{line}");
    stage.size.0 = 40;
    assert_eq!(last(&mut stage).split(" · ").next(), Some("acme/deep"));
    // The effort is the one of the request, whatever was wished.
    let sending = Sending { model: "acme/deep".into(), effort: None, ..Sending::default() };
    stage.tell(Update::Sending(Box::new(sending)));
    assert!(!last(&mut stage).contains("effort"));
}

#[test]
fn t11_an_effort_that_is_not_the_wished_one_warns() {
    #[rustfmt::skip]
    let cases = [
        ("as wished",  Some("high"), Some("high"), Some("effort high"),            false),
        ("no wish",    Some("high"), None,         Some("effort high"),            false),
        ("lowered",    Some("high"), Some("max"),  Some("effort high!"),           true),
        ("not sent",   None,         Some("max"),  Some("no effort sent"),         true),
        ("neither",    None,         None,         None,                           false),
    ];
    for (name, sent, wish, expected, warns) in cases {
        let mut stage = Stage::new(60, 10);
        let effort = wish.map(str::to_owned);
        stage.tell(Update::Status(Box::new(Status { model: "m".into(), effort, ..Status::default() })));
        let effort = sent.map(str::to_owned);
        stage.tell(Update::Sending(Box::new(Sending { model: "m".into(), effort, ..Sending::default() })));
        let line = stage.rows().pop().unwrap();
        assert_eq!(line.split(" · ").find(|part| part.contains("effort")), expected, "{name}");
        let at = line.chars().position(|letter| letter == 'f').unwrap_or(0) as u16;
        let (buffer, muted) = (stage.buffer(), line.chars().position(|letter| letter == '·').unwrap() as u16);
        assert_eq!(expected.is_some() && buffer[(at, 9)].fg != buffer[(muted, 9)].fg, warns, "{name}");
    }
}

#[test]
fn what_became_of_each_thought_can_be_asked() {
    let mut stage = Stage::new(80, 20);
    let row = DecisionRow { what: "turn 1, thought 1".into(), action: "dropped".into(), why: "another maker".into() };
    let sending = Sending { decisions: vec![row], ..Sending::default() };
    stage.tell(Update::Sending(Box::new(sending)));
    stage.tell(Update::TurnEnded(TurnEnd::Answered));
    stage.line("/explain");
    assert_eq!(stage.said().last().unwrap(), "turn 1, thought 1 │ dropped │ another maker");
}

#[test]
fn t12_a_thought_is_read_searched_copied_and_left() {
    let mut stage = Stage::viewed(60, 10, Display::Off);
    let text: String = (0..50).map(|n| format!("row {n} of it\n")).collect();
    stage.think(0, "The first one.", 0);
    stage.think(1, &text, 0);
    stage.line("/reader");
    let rows = stage.rows();
    assert_eq!(rows[..3], ["Thought 2 of 2", "row 0 of it", "row 1 of it"], "openable although hidden");
    stage.typed("/ROW 33");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.rows()[1], "row 33 of it");
    stage.typed("/row 49");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.rows()[8], "row 49 of it", "the last page is full");
    stage.typed("/ROW 33");
    stage.key(KeyCode::Enter);
    stage.screen();
    stage.typed("/of it");
    stage.key(KeyCode::Enter);
    stage.screen();
    stage.typed("n");
    assert_eq!(stage.rows()[1], "row 34 of it", "the next hit");
    stage.typed("N");
    assert_eq!(stage.rows()[1], "row 33 of it", "and the one before");
    stage.typed("y");
    assert_eq!(stage.sent, [copied(&text)]);
    stage.key(KeyCode::Left);
    assert_eq!(stage.rows()[..2], ["Thought 1 of 2", "The first one."]);
    stage.key(KeyCode::Left);
    assert!(stage.screen().contains("this is the first thought"));
    stage.key(KeyCode::Esc);
    assert!(stage.screen().contains("ask something"));
}

#[test]
fn t12_the_answer_is_copied_without_its_thinking() {
    let mut stage = Stage::new(60, 20);
    stage.think(0, "A thought.", 0);
    stage.write(1, "An **answer**.");
    stage.line("/copy");
    stage.line("/copy thinking");
    assert_eq!(stage.sent, [copied("An **answer**."), copied("A thought.")]);
}

#[test]
fn t13_still_and_without_colour_nothing_moves_and_everything_is_there() {
    let theme = Theme { depth: Depth::None, motion: Motion::Still, ..Theme::default() };
    let mut stage = Stage::themed(60, 16, theme, Display::Live);
    stage.line("why?");
    stage.send();
    stage.open(0, aside_tui::seam::Opening::Thinking);
    stage.grow(0, "I wonder");
    let before = stage.screen();
    assert!(before.contains("… Thinking") && before.contains("│ I wonder"), "{before}");
    stage.pass(300);
    assert_eq!(stage.screen(), before, "no spinner");
    for cell in stage.buffer().content() {
        assert_eq!((cell.fg, cell.bg), (ratatui::style::Color::Reset, ratatui::style::Color::Reset));
    }
}

#[test]
fn help_names_every_command_and_key() {
    let help = aside_tui::commands::help(&Bindings::default());
    for entry in aside_tui::commands::COMMANDS {
        assert!(help.contains(&format!("/{}", entry.name)), "{}", entry.name);
    }
    for (key, _) in aside_tui::commands::KEYS {
        assert!(help.contains(key), "{key}");
    }
    for entry in ACTIONS {
        assert!(help.contains(entry.name) && help.contains(entry.doc), "{}", entry.name);
    }
    let mut stage = Stage::new(80, 80);
    stage.line("/help");
    assert!(stage.screen().contains("/thinking [full|live|collapsed|off]"), "{}", stage.screen());
}

#[test]
fn keys_are_what_the_config_says_and_help_shows_them_as_bound() {
    let mut bindings = Bindings::default();
    for (name, keys) in [("toggle_thinking", "f6"), ("send", "ctrl+s"), ("new_line", "enter"), ("read_last", "ctrl+t")]
    {
        bindings.bind(name, &[keys]).unwrap();
    }
    let mut stage = Stage::new(120, 80);
    stage.app.bind(bindings);
    stage.typed("one");
    stage.key(KeyCode::Enter);
    stage.typed("two");
    assert_eq!(stage.sent, []);
    stage.control('s');
    assert_eq!(stage.sent, [Command::Say("one\ntwo".into())]);
    stage.key(KeyCode::F(6));
    assert_eq!(stage.sent.last(), Some(&Command::View(Display::Collapsed)));
    stage.control('t');
    assert!(stage.screen().contains("there is no thought yet"), "{}", stage.screen());
    assert_eq!(stage.sent.len(), 2, "the key it had does it no more");
    stage.msg(Msg::Paste("/help".into()));
    stage.control('s');
    let row = stage.rows().into_iter().find(|row| row.contains("toggle_thinking")).unwrap();
    assert!(row.contains("F6") && !row.contains("Ctrl+T"), "{row}");
}

#[test]
fn t10_the_input_goes_to_the_users_own_editor_and_comes_back() {
    let mut stage = Stage::new(60, 20);
    stage.typed("a draft");
    stage.msg(Msg::Paste("line\n".repeat(20)));
    stage.control('g');
    let whole = format!("a draft{}", "line\n".repeat(20));
    assert_eq!(stage.sent, [Command::Terminal(TerminalAct::Edit(whole.clone()))]);
    stage.msg(Msg::Edited(" \n".into()));
    assert!(stage.screen().contains("the editor left nothing"), "{}", stage.screen());
    assert!(stage.screen().contains("a draft[pasted 20 lines]"), "nothing is lost: {}", stage.screen());
    stage.msg(Msg::Edited("shorter\nand better".into()));
    stage.key(KeyCode::Enter);
    assert_eq!(stage.sent.last(), Some(&Command::Say("shorter\nand better".into())));
}

#[test]
fn t10_a_paste_of_ten_thousand_lines_is_one_token_and_tab_unfolds_it() {
    let paste = "fn a_line_of_code() {}\n".repeat(10_000);
    let mut stage = Stage::new(60, 20);
    stage.msg(Msg::Paste(paste.clone()));
    assert!(stage.screen().contains("❯ [pasted 10,000 lines]"), "{}", stage.screen());
    stage.key(KeyCode::Tab);
    assert!(stage.screen().contains("  fn a_line_of_code() {}"), "{}", stage.screen());
    stage.control('c');
    stage.msg(Msg::Paste(paste.clone()));
    stage.typed(" and more");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.sent, [Command::Say(format!("{paste} and more"))]);
    // Called back, it is folded again.
    stage.tell(Update::TurnEnded(TurnEnd::Answered));
    stage.key(KeyCode::Up);
    assert!(stage.screen().contains("❯ [pasted 10,001 lines]"), "{}", stage.screen());
}

#[test]
fn t10_prompts_of_earlier_sessions_are_called_back() {
    let mut stage = Stage::new(60, 20);
    stage.tell(Update::Earlier(vec!["older".into(), "newer".into()]));
    stage.typed("dra");
    stage.screen();
    for expected in ["newer", "older", "older"] {
        stage.key(KeyCode::Up);
        assert!(stage.screen().contains(&format!("❯ {expected}")), "{expected}: {}", stage.screen());
    }
    stage.key(KeyCode::Down);
    stage.key(KeyCode::Down);
    assert!(stage.screen().contains("❯ dra"), "{}", stage.screen());
}
