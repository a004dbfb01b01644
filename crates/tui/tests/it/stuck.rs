//! Thoughts that go in circles: noticed, said, ended, and known again later.

use aside_core::block::Block;
use aside_core::event::{End, Ending};
use aside_core::message::{Message, Role};
use aside_core::settings::Display;
use aside_core::turn::TurnEnd;
use aside_tui::seam::{Command, Opening, Update};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::support::{Stage, thinking, words};

const AGAIN: &str = "Wait, let me think about that again. ";

fn circling(width: u16, view: Display) -> Stage {
    let mut stage = Stage::viewed(width, 16, view);
    stage.line("why?");
    stage.sent.clear();
    stage.send();
    stage.open(0, Opening::Thinking);
    for _ in 0..20 {
        stage.grow(0, AGAIN);
    }
    stage
}

fn alt_enter(stage: &mut Stage) {
    stage.msg(aside_tui::app::Msg::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT)));
}

#[test]
fn what_repeats_and_what_to_do_is_said_at_every_width() {
    #[rustfmt::skip]
    let cases = [
        (40,  "! Alt+Enter answers now · Esc stops"),
        (60,  "! 20 times \"Wait, let me think about…\" · Alt+Enter answers"),
        (80,  "! 20 times · for 140 words \"Wait, let me…\" · Alt+Enter answers now · Esc stops"),
        (200, "! 20 times · for 140 words \"Wait, let me think about that again\" · Alt+Enter answers now · Esc stops"),
    ];
    for (width, expected) in cases {
        let mut stage = circling(width, Display::Live);
        let screen = stage.screen();
        assert!(screen.contains("Thinking · repeats itself"), "{width}\n{screen}");
        assert!(screen.contains(expected), "{width}\n{screen}");
        assert!(screen.contains("in circles · Alt+Enter answers"), "{width}\n{screen}");
    }
}

#[test]
fn it_is_said_in_every_view() {
    for view in Display::ALL {
        let mut stage = circling(80, *view);
        let screen = stage.screen();
        assert!(screen.contains("in circles · Alt+Enter answers now"), "{view}\n{screen}");
        // Folded it is one line all the same.
        let rows = screen.lines().filter(|line| line.contains("20 times")).count();
        assert_eq!(rows, usize::from(matches!(view, Display::Full | Display::Live)), "{view}\n{screen}");
    }
}

#[test]
fn a_thought_that_gets_on_is_left_alone() {
    let mut stage = Stage::new(80, 16);
    stage.line("why?");
    stage.send();
    stage.open(0, Opening::Thinking);
    for n in 0..500 {
        stage.grow(0, &format!("Step {n} gives {}, which rules out {}. ", n * 7 % 13, n * 31 % 97));
    }
    let screen = stage.screen();
    assert!(!screen.contains("repeats") && !screen.contains("Alt+Enter"), "{screen}");
}

#[test]
fn alt_enter_asks_for_the_answer_once_and_keeps_the_thought() {
    let mut stage = circling(80, Display::Live);
    alt_enter(&mut stage);
    alt_enter(&mut stage);
    assert_eq!(stage.sent, [Command::AnswerNow]);
    assert!(stage.screen().contains("asking for the answer") || stage.screen().contains("nothing is thought"));
    answered(&mut stage);
    let screen = stage.screen();
    assert!(screen.contains("▶ Thought · stopped in a loop · \"Wait, let me"), "{screen}");
    assert!(screen.contains("· asked for the answer now"), "{screen}");
    assert!(screen.contains("It is four."), "{screen}");
    assert!(!screen.contains("interrupted"), "{screen}");
}

/// What the engine tells from there on.
fn answered(stage: &mut Stage) {
    stage.close(0, Block::Thinking(thinking(&AGAIN.repeat(20), None)));
    stage.tell(Update::ReplyEnded(End { ending: Ending::CutOff, error: None }));
    for message in &history()[1..3] {
        stage.tell(Update::Recorded(Box::new(message.clone())));
    }
    stage.send();
    stage.write(0, "It is four.");
    stage.end(TurnEnd::Answered);
}

fn history() -> Vec<Message> {
    let thought = Block::Thinking(thinking(&AGAIN.repeat(20), None));
    vec![
        Message::new(Role::User, vec![words("why?")]),
        Message { interrupted: true, ..Message::new(Role::Assistant, vec![thought]) },
        Message::answer_now(),
        Message::new(Role::Assistant, vec![words("It is four.")]),
    ]
}

#[test]
fn a_restored_session_looks_as_it_did() {
    let mut live = circling(80, Display::Live);
    answered(&mut live);
    let mut restored = Stage::new(80, 16);
    restored.tell(Update::Restored(history()));
    let transcript = |stage: &mut Stage| {
        let screen = stage.screen();
        screen.lines().take(10).map(str::trim_end).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(transcript(&mut restored), transcript(&mut live));
}

#[test]
fn in_a_line_that_is_written_alt_enter_is_a_new_line() {
    let mut stage = circling(80, Display::Live);
    stage.typed("and");
    alt_enter(&mut stage);
    stage.typed("then");
    assert_eq!(stage.sent, []);
    stage.key(KeyCode::Enter);
    let screen = stage.screen();
    assert!(screen.contains("queued: and ⏎ then"), "{screen}");
}

#[test]
fn an_answer_that_comes_is_not_hurried() {
    let mut stage = Stage::new(80, 16);
    stage.line("/answer");
    stage.line("why?");
    stage.send();
    stage.open(0, Opening::Text);
    stage.grow(0, "Because");
    stage.sent.clear();
    stage.line("/answer");
    assert_eq!(stage.sent, []);
    assert!(stage.screen().contains("nothing is thought right now"), "{}", stage.screen());
}
