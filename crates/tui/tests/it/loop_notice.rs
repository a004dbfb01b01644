//! Thinking that repeats itself: detected, reported, ended, and restored.

use std::sync::Arc;

use aside_core::block::Block;
use aside_core::event::{Ending, ReplyEnd};
use aside_core::message::{Message, Role};
use aside_core::settings::ThinkingDisplay;
use aside_core::turn::TurnEnd;
use aside_front::{Command, OpenedBlock, Update};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::support::{TestTerminal, text_block, thinking};

const AGAIN: &str = "Wait, let me think about that again. ";

fn circling(width: u16, view: ThinkingDisplay) -> TestTerminal {
    let mut term = TestTerminal::with_view(width, 16, view);
    term.line("why?");
    term.sent.clear();
    term.send();
    term.open(0, OpenedBlock::Thinking);
    for _ in 0..20 {
        term.grow(0, AGAIN);
    }
    term
}

fn alt_enter(term: &mut TestTerminal) {
    term.msg(aside_tui::app::Msg::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT)));
}

#[test]
fn the_repetition_and_the_options_are_shown_at_every_width() {
    #[rustfmt::skip]
    let cases = [
        (40,  "! Alt+Enter answers now · Esc stops"),
        (60,  "! 20 times \"Wait, let me think about…\" · Alt+Enter answers"),
        (80,  "! 20 times · for 140 words \"Wait, let me…\" · Alt+Enter answers now · Esc stops"),
        (200, "! 20 times · for 140 words \"Wait, let me think about that again\" · Alt+Enter answers now · Esc stops"),
    ];
    for (width, expected) in cases {
        let mut term = circling(width, ThinkingDisplay::Live);
        let screen = term.screen();
        assert!(screen.contains("Thinking · repeats itself"), "{width}\n{screen}");
        assert!(screen.contains(expected), "{width}\n{screen}");
        assert!(screen.contains("repeating · Alt+Enter answers"), "{width}\n{screen}");
    }
}

#[test]
fn nothing_of_the_notice_is_lost_in_a_narrow_terminal() {
    #[rustfmt::skip]
    let cases: [(u16, &[&str]); 4] = [
        (30, &["! Alt+Enter answers now ·", "  Esc stops", "  20 times · for 140 words", "  \"Wait, let me think about", "  that again\""]),
        (40, &["! Alt+Enter answers now · Esc stops", "  20 times · for 140 words \"Wait, let", "  me think about that again\""]),
        (60, &["! 20 times \"Wait, let me think about…\" · Alt+Enter answers", "  for 140 words · Esc stops"]),
        (80, &["! 20 times · for 140 words \"Wait, let me…\" · Alt+Enter answers now · Esc stops"]),
    ];
    for (width, expected) in cases {
        let mut term = circling(width, ThinkingDisplay::Live);
        let rows = term.transcript();
        let at = rows.iter().position(|row| row.contains("! ")).unwrap();
        let shown: Vec<&str> = rows[at..].iter().map(|row| row.strip_prefix("│ ").unwrap_or(row)).collect();
        assert_eq!(shown, expected, "{width}: {rows:#?}");
    }
    let mut term = circling(40, ThinkingDisplay::Live);
    let screen = term.screen();
    assert!(screen.contains("repeating · Alt+Enter answers ─"), "the line above the input is not cut\n{screen}");
}

#[test]
fn it_is_shown_in_every_view() {
    for view in ThinkingDisplay::ALL {
        let mut term = circling(80, *view);
        let screen = term.screen();
        assert!(screen.contains("repeating · Alt+Enter answers now"), "{view}\n{screen}");
        // Folded, it stays one line.
        let rows = screen.lines().filter(|line| line.contains("20 times")).count();
        assert_eq!(
            rows,
            usize::from(matches!(view, ThinkingDisplay::Full | ThinkingDisplay::Live)),
            "{view}\n{screen}"
        );
    }
}

#[test]
fn thinking_that_makes_progress_gets_no_notice() {
    let mut term = TestTerminal::new(80, 16);
    term.line("why?");
    term.send();
    term.open(0, OpenedBlock::Thinking);
    for n in 0..500 {
        term.grow(0, &format!("Step {n} gives {}, which rules out {}. ", n * 7 % 13, n * 31 % 97));
    }
    let screen = term.screen();
    assert!(!screen.contains("repeats") && !screen.contains("Alt+Enter"), "{screen}");
}

#[test]
fn alt_enter_asks_for_the_answer_once_and_keeps_the_thinking() {
    let mut term = circling(80, ThinkingDisplay::Live);
    alt_enter(&mut term);
    alt_enter(&mut term);
    assert_eq!(term.sent, [Command::AnswerNow]);
    assert!(term.screen().contains("asking for the answer") || term.screen().contains("the model is not thinking"));
    answered(&mut term);
    let screen = term.screen();
    assert!(screen.contains("▶ Thought · stopped in a loop · \"Wait, let me"), "{screen}");
    assert!(screen.contains("· asked for the answer now"), "{screen}");
    assert!(screen.contains("It is four."), "{screen}");
    assert!(!screen.contains("interrupted"), "{screen}");
}

/// The updates that follow.
fn answered(term: &mut TestTerminal) {
    term.close(0, Block::Thinking(thinking(&AGAIN.repeat(20), None)));
    term.update(Update::ReplyEnded(ReplyEnd { ending: Ending::CutOff, error: None }));
    for message in &history()[1..3] {
        term.update(Update::Recorded(Arc::new(message.clone())));
    }
    term.send();
    term.write(0, "It is four.");
    term.end(TurnEnd::Answered);
}

fn history() -> Vec<Message> {
    let thought = Block::Thinking(thinking(&AGAIN.repeat(20), None));
    vec![
        Message::new(Role::User, vec![text_block("why?")]),
        Message { interrupted: true, ..Message::new(Role::Assistant, vec![thought]) },
        Message::answer_now(),
        Message::new(Role::Assistant, vec![text_block("It is four.")]),
    ]
}

#[test]
fn a_restored_session_looks_as_it_did() {
    let mut live = circling(80, ThinkingDisplay::Live);
    answered(&mut live);
    let mut restored = TestTerminal::new(80, 16);
    restored.update(Update::Restored(history().into_iter().map(Arc::new).collect()));
    let transcript = |term: &mut TestTerminal| {
        let screen = term.screen();
        screen.lines().take(10).map(str::trim_end).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(transcript(&mut restored), transcript(&mut live));
}

#[test]
fn alt_enter_in_a_draft_inserts_a_new_line() {
    let mut term = circling(80, ThinkingDisplay::Live);
    term.type_text("and");
    alt_enter(&mut term);
    term.type_text("then");
    assert_eq!(term.sent, []);
    term.key(KeyCode::Enter);
    let screen = term.screen();
    assert!(screen.contains("after this step: and ⏎ then"), "{screen}");
}

#[test]
fn an_answer_that_already_streams_is_not_hurried() {
    let mut term = TestTerminal::new(80, 16);
    term.line("/answer");
    term.line("why?");
    term.send();
    term.open(0, OpenedBlock::Text);
    term.grow(0, "Because");
    term.sent.clear();
    term.line("/answer");
    assert_eq!(term.sent, []);
    assert!(term.screen().contains("the model is not thinking"), "{}", term.screen());
}
