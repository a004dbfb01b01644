//! Commands that the screen carries out itself, and what it shows of others'.

use aside_core::block::Block;
use aside_core::message::{Message, Role};
use aside_tui::commands::COMMANDS;
use aside_tui::seam::{Command, DecisionRow, Said, Sending, Sought, Update};
use crossterm::event::KeyCode;

use crate::support::{Stage, thinking, words};

#[test]
fn sent_shows_the_decisions_of_the_last_request_under_both_names() {
    for name in ["/sent", "/explain"] {
        let mut stage = Stage::new(80, 30);
        stage.line(name);
        assert!(stage.screen().contains("nothing was sent yet"), "{}", stage.screen());
        let row = |what: &str, action: &str, why: &str| DecisionRow {
            what: what.into(),
            action: action.into(),
            why: why.into(),
        };
        let sending = Sending {
            step: 2,
            model: "acme/deep".into(),
            effort: Some("low".into()),
            tokens: 1_234,
            notes: vec!["effort `minimal` is sent as `low`".into()],
            decisions: vec![row("message 2: thinking \"Hm\"", "dropped", "stripped from context")],
            ..Sending::default()
        };
        stage.tell(Update::Sending(Box::new(sending)));
        stage.line(name);
        let screen = stage.screen();
        for expected in [
            "· to acme/deep · step 2 · effort low · ~1.2k tokens",
            "effort `minimal` is sent as `low`",
            "message 2: thinking \"Hm\" │ dropped │ stripped from context",
        ] {
            assert!(screen.contains(expected), "{name}: {expected}\n{screen}");
        }
    }
}

#[test]
fn commands_of_the_engine_are_handed_on_with_what_stood_behind_them() {
    let mut stage = Stage::new(80, 20);
    let lines = ["/context", "/tools off shell", "/permissions forget shell:make all", "/record a.jsonl", "/open 2"];
    for line in lines {
        stage.line(line);
    }
    let other = |line: &str| {
        let (name, rest) = line[1..].split_once(' ').unwrap_or((&line[1..], ""));
        Command::Other { name: name.into(), rest: rest.into() }
    };
    assert_eq!(stage.sent, lines.map(other));
}

#[test]
fn what_stands_in_a_table_is_shown_as_it_is() {
    let mut stage = Stage::new(80, 20);
    let cells = ["shell:rm *a* _b_ `c` | <d> [e](f)", "allow"].map(str::to_owned).to_vec();
    stage.tell(Update::Said(Said::Table { head: vec!["rule".into(), "does".into()], rows: vec![cells] }));
    let screen = stage.screen();
    assert!(screen.contains("shell:rm *a* _b_ `c` | <d> [e](f) │ allow"), "{screen}");
}

#[test]
fn a_page_stands_under_the_command_it_answers() {
    let mut stage = Stage::new(60, 20);
    let table = Said::Table { head: vec!["tool".into()], rows: vec![vec!["read".into()]] };
    for (command, page) in [("/tools", table), ("/search *a* walrus", Said::Markdown("1. a walrus\n".into()))] {
        stage.tell(Update::Said(Said::Titled { command: command.into(), page: Box::new(page) }));
    }
    let expected = ["/tools", "tool", "────", "read", "/search *a* walrus", "1. a walrus"];
    assert_eq!(stage.said().iter().map(|row| row.trim()).collect::<Vec<_>>(), expected);
}

#[test]
fn every_command_of_the_issue_is_there_with_help() {
    let wanted = "help model effort thinking set unset profile context compact sent usage search sessions resume fork \
                  undo retry export copy tools permissions record quit";
    for name in wanted.split_whitespace() {
        let entry = COMMANDS.iter().find(|entry| entry.name == name);
        assert!(entry.is_some_and(|entry| !entry.doc.is_empty()), "/{name}");
    }
}

#[test]
fn what_was_found_is_gone_to_and_a_thought_is_opened() {
    let mut history = Vec::new();
    for n in 0..20 {
        history.push(Message::new(Role::User, vec![words(&format!("question {n}"))]));
        let thought = Block::Thinking(thinking(&format!("deep thought {n}"), None));
        history.push(Message::new(Role::Assistant, vec![thought, words(&format!("answer {n}"))]));
    }
    let mut stage = Stage::new(60, 14);
    stage.tell(Update::Restored(history.clone()));
    assert!(stage.screen().contains("answer 19"));
    stage.tell(Update::GoTo { message: 9, part: Sought::Thought(0) });
    let said = stage.said();
    assert_eq!(said[..3], ["▼ Thought · \"deep thought 4\"", "│ deep thought 4", "answer 4"], "{said:#?}");
    stage.tell(Update::GoTo { message: 10, part: Sought::Said });
    assert_eq!(stage.said()[0], "❯ question 5");
    // Nothing jumps where there is nothing.
    stage.tell(Update::GoTo { message: 99, part: Sought::Said });
    assert_eq!(stage.said()[0], "❯ question 5");
}

#[test]
fn what_is_taken_back_is_named_and_can_be_written_anew() {
    #[rustfmt::skip]
    let cases = [
        ("",           "why is\nit so?", "· taken back: \"why is ⏎ it so?\" · it is back in the input", "why is\nit so?"),
        ("half a word", "why?",          "· taken back: \"why?\" · /retry asks it again",             "half a word"),
    ];
    for (written, question, said, input) in cases {
        let mut stage = Stage::new(80, 12);
        stage.typed(written);
        stage.tell(Update::Restored(Vec::new()));
        stage.tell(Update::TakenBack(question.into()));
        assert_eq!(stage.said(), [said]);
        stage.key(KeyCode::Enter);
        assert_eq!(stage.sent, [Command::Say(input.into())]);
    }
}
