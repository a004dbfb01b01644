//! Very small screens.

use aside_core::permission_question::{PermissionQuestion, QuestionKind, Risk};
use aside_front::{Command, PendingQuestion, PermissionAnswer, QuestionId, Update};
use crossterm::event::KeyCode;
use ratatui::style::Color;

use crate::support::TestTerminal;

fn asked(width: u16, height: u16, subject: &str, preview: Option<&str>, covers: Option<&str>) -> TestTerminal {
    let mut term = TestTerminal::new(width, height);
    term.update(Update::QuestionAsked(Box::new(PendingQuestion {
        id: QuestionId(1),
        about: crate::support::question_about("shell", subject, preview.map(str::to_owned), covers.map(str::to_owned)),
    })));
    term.advance(1_000);
    term
}

#[test]
fn t9_in_the_smallest_terminal_a_question_must_be_read_before_it_is_allowed() {
    let line = "─".repeat(20);
    let long = "cargo test --workspace";
    let keys = "v to read it, n, Esc";
    let status = "acme/deep · 0/200k";
    #[rustfmt::skip]
    let cases = [
        (5, long,    None,          None,               vec!["", line.as_str(), "shell: cargo test -…", keys, status]),
        (5, "a.rs",  Some("-a\n+b"), None,              vec!["", line.as_str(), "shell: a.rs", keys, status]),
        // A lasting permission is not offered where its scope is not visible.
        (5, "make",  None,          Some("shell:make"), vec!["", line.as_str(), "shell: make", keys, status]),
        (4, "make",  None,          Some("shell:make"), vec![line.as_str(), "shell: make", keys, status]),
    ];
    for (height, subject, preview, covers, expected) in cases {
        let mut term = asked(20, height, subject, preview, covers);
        assert_eq!(term.rows(), expected, "{subject}");
        term.type_text("spy");
        assert_eq!(term.sent, [], "{subject}: nobody has read it");
        term.advance(600);
        term.type_text("v");
        term.key(KeyCode::Esc);
        term.advance(1_000);
        term.key(KeyCode::Char('y'));
        assert_eq!(term.sent, [Command::Answer { id: QuestionId(1), answer: PermissionAnswer::Once }]);
    }
}

#[test]
fn t9_with_enough_room_the_answers_are_spelled_out() {
    let mut term = asked(40, 12, "make", None, Some("shell:make"));
    let screen = term.screen();
    assert!(screen.contains("y once · s this session · p this project"), "{screen}");
    assert!(screen.contains("s, p: always allow `shell:make`"), "{screen}");
}

#[test]
fn help_is_readable_in_forty_columns() {
    let mut term = TestTerminal::new(40, 24);
    term.line("/help");
    let rows = term.rows();
    let at = rows.iter().position(|row| row.starts_with("Enter ")).unwrap();
    let words: Vec<&str> = rows[at..at + 6].iter().filter_map(|row| row.split(" │ ").nth(1)).collect();
    assert_eq!(
        words,
        ["send; during a", "turn, the message", "is sent after the", "current step", "(send)", "send after the",],
        "{rows:#?}"
    );
}

#[test]
fn l5_the_files_of_a_folder_can_be_read_before_it_is_trusted() {
    let mut term = TestTerminal::new(40, 14);
    let rules: String = (1..=20).map(|number| format!("\n- rule {number}")).collect();
    let preview = Some(format!("AGENTS.md\n\n# /a/AGENTS.md\n\n\u{1b}[31mRules{rules}"));
    let about = PermissionQuestion {
        preview,
        kind: QuestionKind::Trust,
        ..PermissionQuestion::new("trust", "/a", Risk::Reads)
    };
    term.update(Update::QuestionAsked(Box::new(PendingQuestion { id: QuestionId(1), about })));
    term.advance(1_000);
    let screen = term.screen();
    assert!(screen.contains("not shown (v shows all)"), "{screen}");
    term.type_text("v");
    let rows = term.rows();
    assert_eq!(rows[..7], ["trust: /a", "AGENTS.md", "", "# /a/AGENTS.md", "", "␛[31mRules", "- rule 1"]);
    term.key(KeyCode::End);
    assert!(term.screen().contains("- rule 20"), "{}", term.screen());
    // A list is not a diff.
    let mut term = TestTerminal::new(40, 20);
    let about = PermissionQuestion {
        preview: Some("- a rule".to_owned()),
        kind: QuestionKind::Trust,
        ..PermissionQuestion::new("trust", "/a", Risk::Reads)
    };
    term.update(Update::QuestionAsked(Box::new(PendingQuestion { id: QuestionId(1), about })));
    assert_eq!(term.style_of("- a rule").0, Color::Reset);
}
