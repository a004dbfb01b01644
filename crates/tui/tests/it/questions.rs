//! Questions about tool calls: what a key answers, and what it does not.

use aside_core::block::Block;
use aside_core::permission_question::QuestionKind;
use aside_front::{Command, PendingQuestion, PermissionAnswer, QuestionId, Update};
use crossterm::event::KeyCode;

use crate::support::{self, TestTerminal};

pub(crate) fn question(id: u64, covers: Option<&str>) -> Update {
    Update::QuestionAsked(Box::new(PendingQuestion {
        id: QuestionId(id),
        about: crate::support::question_about(
            "edit",
            "src/a.rs",
            Some("--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-old\n+new\n".into()),
            covers.map(str::to_owned),
        ),
    }))
}

#[test]
fn t9_a_key_that_does_not_answer_a_question_says_why() {
    #[rustfmt::skip]
    let cases = [
        (80, "typed before the question could be read, so it does not count; press it again", "`x` is not one of the answers above"),
        (40, "too early to count; press it again", "`x` is not one of the answers above"),
    ];
    for kind in [QuestionKind::Permission, QuestionKind::Undo] {
        for (width, too_early, no_answer) in cases {
            let mut term = TestTerminal::new(width, 20);
            let Update::QuestionAsked(mut asked) = question(1, None) else { unreachable!() };
            asked.about.kind = kind;
            term.update(Update::QuestionAsked(asked));
            let status = |term: &mut TestTerminal| term.rows().pop().unwrap();
            assert_eq!(status(&mut term), "acme/deep · 0/200k", "{kind:?}");
            term.key(KeyCode::Char('y'));
            assert_eq!((status(&mut term).as_str(), term.sent.len()), (too_early, 0), "{kind:?}");
            term.advance(600);
            term.key(KeyCode::Char('x'));
            assert_eq!(status(&mut term), no_answer, "{kind:?}");
            term.key(KeyCode::Char('y'));
            assert_eq!((status(&mut term).as_str(), term.sent.len()), (too_early, 0), "x may begin a text: {kind:?}");
            term.advance(600);
            term.key(KeyCode::Enter);
            assert_eq!((status(&mut term).as_str(), term.sent.len()), ("←→ selects an answer first", 0), "{kind:?}");
            // As with Caps Lock.
            term.shifted('Y');
            assert_eq!((status(&mut term).as_str(), term.sent.len()), ("acme/deep · 0/200k", 1), "{kind:?}");
        }
    }
}

#[test]
fn a_permission_question_shows_the_change_and_takes_one_key() {
    #[rustfmt::skip]
    let cases: &[(&str, Option<&str>, Option<PermissionAnswer>)] = &[
        ("y", Some("edit:src/*"), Some(PermissionAnswer::Once)),
        ("s", Some("edit:src/*"), Some(PermissionAnswer::Session)),
        ("p", Some("edit:src/*"), Some(PermissionAnswer::Project)),
        ("n", Some("edit:src/*"), Some(PermissionAnswer::No(None))),
        ("s", None,               None),
        ("x", None,               None),
    ];
    for (key, covers, permit) in cases {
        let mut term = TestTerminal::new(60, 20);
        term.update(question(7, *covers));
        let screen = term.screen();
        assert!(screen.contains("edit: src/a.rs") && screen.contains("+new") && screen.contains("-old"), "{screen}");
        assert_eq!(screen.contains("this session"), covers.is_some(), "{screen}");
        term.advance(600);
        term.type_text(key);
        let expected: Vec<Command> =
            permit.iter().map(|permit| Command::Answer { id: QuestionId(7), answer: permit.clone() }).collect();
        assert_eq!(term.sent, expected, "{key}");
    }
}

#[test]
fn l3_the_time_of_a_call_starts_when_it_is_allowed() {
    let mut term = TestTerminal::new(70, 20);
    term.send();
    for (block, id, arguments) in [(0, "c1", r#"{"command":"make it"}"#), (1, "c2", r#"{"command":"make more"}"#)] {
        term.call(block, id, "shell", arguments);
        let Block::ToolCall(call) = support::call(id, "shell", arguments) else { unreachable!() };
        term.update(Update::ToolStarted(Box::new(call)));
    }
    let Update::QuestionAsked(mut asked) = question(7, None) else { unreachable!() };
    (asked.about.tool, asked.about.subject, asked.about.preview) =
        ("shell".into(), "make more".into(), Some("make more".into()));
    term.update(Update::QuestionAsked(asked));
    term.advance(60_000);
    term.type_text("y");
    term.advance(2_000);
    term.result("c1", "made", false);
    term.result("c2", "made", false);
    let screen = term.screen();
    assert!(screen.contains("shell make it · 1 line · 1m 2s"), "there was no question about this one:\n{screen}");
    assert!(screen.contains("shell make more · 1 line · 2s"), "{screen}");
}

#[test]
fn arrows_select_an_answer_and_enter_confirms_it() {
    let mut term = TestTerminal::new(60, 20);
    term.update(question(7, Some("edit:src/*")));
    term.advance(600);
    term.key(KeyCode::Right);
    term.key(KeyCode::Down);
    assert!(term.screen().contains("› s this session"), "{}", term.screen());
    term.key(KeyCode::Enter);
    assert_eq!(term.sent, [Command::Answer { id: QuestionId(7), answer: PermissionAnswer::Session }]);
}

#[test]
fn a_question_with_invisible_characters_can_only_be_allowed_once() {
    let mut term = TestTerminal::new(60, 20);
    let Update::QuestionAsked(mut asked) = question(7, Some("shell")) else { unreachable!() };
    asked.about.subject = "git status \u{9d};touch X;: \u{9c}".into();
    asked.about.preview = None;
    term.update(Update::QuestionAsked(asked));
    term.advance(600);
    let screen = term.screen();
    assert!(screen.contains("│!git status <U+009D>;touch X;: <U+009C>"), "{screen}");
    assert!(!screen.contains("this session"), "{screen}");
    term.type_text("sp");
    assert_eq!(term.sent, []);
}

#[test]
fn t16_ctrl_c_at_a_question_denies_and_stops() {
    let mut term = TestTerminal::new(60, 20);
    term.send();
    term.update(question(7, None));
    term.control('c');
    let no = Command::Answer { id: QuestionId(7), answer: PermissionAnswer::No(None) };
    assert_eq!(term.sent, [Command::Interrupt, no]);
}

#[test]
fn l3_esc_at_a_question_stops_the_turn_before_it_denies() {
    let mut term = TestTerminal::new(60, 20);
    term.send();
    term.update(question(7, None));
    term.advance(600);
    term.key(KeyCode::Esc);
    let no = Command::Answer { id: QuestionId(7), answer: PermissionAnswer::No(None) };
    assert_eq!(term.sent, [Command::Interrupt, no], "after a denial alone, the model would get another request");
}

#[test]
fn a_denial_may_carry_a_message_and_keeps_the_draft() {
    let mut term = TestTerminal::new(60, 20);
    term.type_text("my draft");
    term.update(question(7, None));
    term.advance(600);
    term.type_text("w");
    term.advance(400);
    term.type_text("use the other file");
    term.key(KeyCode::Enter);
    let permit = PermissionAnswer::No(Some("use the other file".into()));
    assert_eq!(term.sent, [Command::Answer { id: QuestionId(7), answer: permit }]);
    assert!(term.screen().contains("❯ my draft"), "{}", term.screen());
}

#[test]
fn l3_a_text_that_is_typed_on_while_a_question_waits_is_not_an_answer() {
    #[rustfmt::skip]
    let cases = [
        // draft,  typed at 120 ms a letter, answered
        ("please ", "say why first", 0),
        ("please ", "hey",           0),
        ("",        "hey",           0),
        ("please ", "y",             1),
        ("",        "y",             1),
    ];
    for (draft, typed, answers) in cases {
        let mut term = TestTerminal::new(60, 20);
        term.type_text(draft);
        term.update(question(7, Some("x")));
        term.advance(1_200);
        for letter in typed.chars() {
            term.type_text(&letter.to_string());
            term.advance(120);
        }
        term.advance(300);
        assert_eq!(term.sent.len(), answers, "{draft:?} {typed:?}: {:?}", term.sent);
    }
    // A letter that is held does not outlive its question.
    let mut term = TestTerminal::new(60, 20);
    term.type_text("draft");
    term.update(question(7, None));
    term.advance(600);
    term.type_text("y");
    term.key(KeyCode::Esc);
    let no = Command::Answer { id: QuestionId(7), answer: PermissionAnswer::No(None) };
    assert_eq!(term.sent.last(), Some(&no));
    term.update(question(8, None));
    term.advance(2_000);
    assert_eq!(term.sent.last(), Some(&no));
}

#[test]
fn keys_typed_when_a_question_appears_are_not_an_answer() {
    let mut term = TestTerminal::new(60, 20);
    term.type_text("m");
    term.update(question(7, Some("x")));
    for letter in ["a", "y", "b", "e", "y"] {
        term.advance(120);
        term.type_text(letter);
    }
    assert_eq!(term.sent, [], "typed before it could be read");
    term.advance(600);
    term.key(KeyCode::Enter);
    assert_eq!(term.sent, [], "no answer is selected at first");
    term.type_text("y");
    term.advance(400);
    assert_eq!(term.sent.len(), 1);
    term.update(question(8, Some("x")));
    term.advance(100);
    term.type_text("y");
    assert_eq!(term.sent.len(), 1, "one key is one answer");
}
