//! What is typed, asked and shown around the transcript (T9-T13).

use aside_core::event::Usage;
use aside_core::settings::Display;
use aside_core::turn::TurnEnd;
use aside_tui::app::Msg;
use aside_tui::seam::{Command, DecisionRow, Permit, Question, QuestionId, Said, Sending, Status, TerminalAct, Update};
use aside_tui::theme::{Depth, Motion, Theme};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::support::Stage;

fn copied(text: &str) -> Command {
    Command::Terminal(TerminalAct::Copy(text.into()))
}

fn question(id: u64, covers: Option<&str>) -> Update {
    Update::Asked(Box::new(Question {
        id: QuestionId(id),
        tool: "edit".into(),
        subject: "src/a.rs".into(),
        preview: Some("--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-old\n+new\n".into()),
        covers: covers.map(str::to_owned),
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
    (asked.tool, asked.subject, asked.preview) = (evil.into(), evil.into(), Some(evil.into()));
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
    stage.open(1, aside_tui::seam::Opening::Text);
    assert!(line(&mut stage).contains("writing"));
    stage.tell(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(line(&mut stage), "─".repeat(60));
}

#[test]
fn t10_esc_stops_once_and_gives_back_what_was_queued() {
    let mut stage = Stage::new(60, 20);
    stage.line("first");
    stage.typed("next");
    stage.key(KeyCode::Enter);
    stage.key(KeyCode::Esc);
    stage.key(KeyCode::Esc);
    assert_eq!(stage.sent, [Command::Say("first".into()), Command::Interrupt]);
    stage.tell(Update::TurnEnded(TurnEnd::Interrupted));
    assert_eq!(stage.sent.len(), 2, "it is not sent behind the user's back");
    assert!(stage.screen().contains("❯ next"), "{}", stage.screen());
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
        assert!(screen.contains("edit src/a.rs") && screen.contains("+new") && screen.contains("-old"), "{screen}");
        assert_eq!(screen.contains("this session"), covers.is_some(), "{screen}");
        stage.pass(600);
        stage.typed(key);
        let expected: Vec<Command> =
            permit.iter().map(|permit| Command::Answer { id: QuestionId(7), permit: permit.clone() }).collect();
        assert_eq!(stage.sent, expected, "{key}");
    }
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
        view: Display::Live,
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
    assert!(line.starts_with("acme/deep · 12.3k/200k · effort high · ~1"), "{line}");
    assert!(line.ends_with(" tok/s · work · a title"), "{line}");
    stage.size.0 = 40;
    assert_eq!(last(&mut stage).split(" · ").next(), Some("acme/deep"));
    // The effort is the one of the request, whatever was wished.
    let sending = Sending { model: "acme/deep".into(), effort: None, ..Sending::default() };
    stage.tell(Update::Sending(Box::new(sending)));
    assert!(!last(&mut stage).contains("effort"));
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
    let help = aside_tui::commands::help();
    for entry in aside_tui::commands::COMMANDS {
        assert!(help.contains(&format!("/{}", entry.name)), "{}", entry.name);
    }
    for (key, _) in aside_tui::commands::KEYS {
        assert!(help.contains(key), "{key}");
    }
    let mut stage = Stage::new(80, 60);
    stage.line("/help");
    assert!(stage.screen().contains("/thinking [full|live|collapsed|off]"), "{}", stage.screen());
}
