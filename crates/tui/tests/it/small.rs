//! Screens with little room.

use aside_tui::seam::{Command, Permit, Question, QuestionId, Update};
use crossterm::event::KeyCode;

use crate::support::Stage;

fn asked(width: u16, height: u16, subject: &str, preview: Option<&str>, covers: Option<&str>) -> Stage {
    let mut stage = Stage::new(width, height);
    stage.tell(Update::Asked(Box::new(Question {
        id: QuestionId(1),
        about: crate::support::about("shell", subject, preview.map(str::to_owned), covers.map(str::to_owned)),
    })));
    stage.pass(1_000);
    stage
}

#[test]
fn t9_a_question_in_the_smallest_terminal_is_answered_once_it_was_read() {
    let line = "─".repeat(20);
    let long = "cargo test --workspace";
    let keys = "v to read it, n, Esc";
    let status = "acme/deep · 0/200k";
    #[rustfmt::skip]
    let cases = [
        (5, long,    None,          None,               vec!["", line.as_str(), "shell: cargo test -…", keys, status]),
        (5, "a.rs",  Some("-a\n+b"), None,              vec!["", line.as_str(), "shell: a.rs", keys, status]),
        // A yes for longer is not offered where nobody sees what it covers.
        (5, "make",  None,          Some("shell:make"), vec!["", line.as_str(), "shell: make", keys, status]),
        (4, "make",  None,          Some("shell:make"), vec![line.as_str(), "shell: make", keys, status]),
    ];
    for (height, subject, preview, covers, expected) in cases {
        let mut stage = asked(20, height, subject, preview, covers);
        assert_eq!(stage.rows(), expected, "{subject}");
        stage.typed("spy");
        assert_eq!(stage.sent, [], "{subject}: nobody has read it");
        stage.typed("v");
        stage.key(KeyCode::Esc);
        stage.pass(1_000);
        stage.key(KeyCode::Char('y'));
        assert_eq!(stage.sent, [Command::Answer { id: QuestionId(1), permit: Permit::Once }]);
    }
}

#[test]
fn t9_where_there_is_room_the_answers_are_words() {
    let mut stage = asked(40, 12, "make", None, Some("shell:make"));
    let screen = stage.screen();
    assert!(screen.contains("y once · s this session · p this project"), "{screen}");
    assert!(screen.contains("s and p cover `shell:make`"), "{screen}");
}

#[test]
fn help_in_forty_columns_is_still_read_in_lines_of_words() {
    let mut stage = Stage::new(40, 24);
    stage.line("/help");
    let rows = stage.rows();
    let at = rows.iter().position(|row| row.starts_with("Enter ")).unwrap();
    let words: Vec<&str> = rows[at..at + 3].iter().filter_map(|row| row.split(" │ ").nth(1)).collect();
    assert_eq!(words, ["send; queued while", "an answer comes", "(send)"], "{rows:#?}");
}
