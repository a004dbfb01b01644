//! The view never jumps (T7), and what a frame costs does not depend on what
//! was said before.

use aside_core::block::Block;
use aside_core::message::{Message, Role};
use aside_core::settings::Display;
use aside_core::turn::TurnEnd;
use aside_tui::app::Msg;
use aside_tui::seam::{Opening, Update};
use crossterm::event::KeyCode;
use proptest::prelude::*;

use crate::support::{Stage, thinking, words};

fn lines(from: usize, to: usize) -> String {
    (from..to).map(|line| format!("line {line}\n")).collect()
}

#[test]
fn t7_the_end_is_followed_only_from_the_end() {
    let mut stage = Stage::new(40, 13);
    stage.send();
    stage.open(0, Opening::Text);
    stage.grow(0, &lines(0, 50));
    assert_eq!(stage.said().last().unwrap(), "line 49");
    stage.grow(0, &lines(50, 60));
    assert_eq!(stage.said().last().unwrap(), "line 59", "new rows are followed");
    stage.wheel(true);
    let held = stage.said();
    assert!(held.last().unwrap().ends_with("↓ live"), "{held:?}");
    stage.grow(0, &lines(60, 100));
    stage.write(1, "another block");
    assert_eq!(stage.said(), held, "whoever reads further up is left alone");
    stage.wheel(false);
    for _ in 0..20 {
        stage.key(KeyCode::PageDown);
    }
    assert_eq!(stage.said().last().unwrap(), "another block");
    assert!(!stage.screen().contains('↓'));
    stage.send();
    stage.write(2, "and one more");
    assert_eq!(stage.said().last().unwrap(), "and one more", "back at the end it follows again");
    stage.end(TurnEnd::Answered);
    stage.wheel(true);
    assert!(stage.said().last().unwrap().ends_with("↓ end"), "nothing is live any more\n{}", stage.screen());
}

#[test]
fn t7_a_thought_that_folds_moves_nothing_above_it() {
    let mut stage = Stage::new(40, 20);
    stage.write(0, &lines(0, 30));
    stage.open(1, Opening::Thinking);
    stage.grow(1, &lines(0, 12));
    let before = stage.rows();
    let header = before.iter().position(|row| row.contains("Thinking")).unwrap();
    stage.close(1, Block::Thinking(thinking(&lines(0, 12), None)));
    let after = stage.rows();
    assert!(after[header].contains("Thought"));
    assert_eq!(after[..header], before[..header]);
    stage.write(2, "The answer takes the room.");
    let answer = stage.rows();
    assert_eq!(answer[..header], before[..header]);
    assert_eq!(answer[header + 2], "The answer takes the room.");
}

#[test]
fn t7_opening_and_folding_keeps_the_header_where_it_is() {
    let mut stage = Stage::new(40, 20);
    stage.write(0, &lines(0, 10));
    stage.think(1, &lines(0, 30), 0);
    stage.write(2, &lines(0, 40));
    stage.key(KeyCode::PageUp);
    stage.key(KeyCode::PageUp);
    let before = stage.rows();
    let y = before.iter().position(|row| row.contains("Thought")).unwrap() as u16;
    stage.click(0, y);
    let open = stage.rows();
    assert!(open[usize::from(y)].starts_with('▼'), "{open:#?}");
    assert_eq!(open[..usize::from(y)], before[..usize::from(y)]);
    stage.click(0, y);
    assert_eq!(stage.rows(), before, "and back again");
}

#[test]
fn t7_the_header_of_a_long_thought_stays_in_sight_and_folds_it() {
    let mut stage = Stage::viewed(40, 20, Display::Full);
    stage.write(0, "before");
    stage.think(1, &lines(0, 60), 2000);
    stage.write(2, "after");
    let rows = stage.rows();
    assert_eq!(rows[0], "▼ Thought for 2s · \"line 0…\"", "{rows:#?}");
    assert!(rows[1].starts_with("│ line"));
    stage.click(0, 0);
    let rows = stage.rows();
    assert!(rows[0].starts_with("▶ Thought for 2s"), "the header takes the place of its copy: {rows:#?}");
    assert_eq!(rows[2], "after");
}

#[test]
fn one_can_walk_from_turn_to_turn() {
    let mut stage = Stage::new(40, 12);
    for n in 0..5 {
        stage.line(&format!("question {n}"));
        stage.send();
        stage.write(0, &lines(0, 20));
        stage.tell(Update::TurnEnded(TurnEnd::Answered));
    }
    stage.screen();
    let mut seen = Vec::new();
    for code in [KeyCode::Up, KeyCode::Up, KeyCode::Up, KeyCode::Down] {
        stage.msg(Msg::Key(crossterm::event::KeyEvent::new(code, crossterm::event::KeyModifiers::ALT)));
        seen.push(stage.rows()[0].clone());
    }
    assert_eq!(seen, ["❯ question 4", "❯ question 3", "❯ question 2", "❯ question 3"]);
}

#[test]
fn t7_a_new_width_keeps_the_place() {
    let mut stage = Stage::new(80, 13);
    let text: String = (0..100).map(|n| format!("paragraph {n} has a few words in it\n\n")).collect();
    stage.write(0, &text);
    for _ in 0..5 {
        stage.key(KeyCode::PageUp);
    }
    let first = |stage: &mut Stage| stage.said()[0].split(' ').nth(1).unwrap().parse::<i32>().unwrap();
    let before = first(&mut stage);
    stage.size = (25, 13);
    stage.msg(Msg::Resize);
    let rows = stage.said();
    let near = rows.iter().any(|row| {
        let number = row.strip_prefix("paragraph ").and_then(|rest| rest.split(' ').next()?.parse::<i32>().ok());
        number.is_some_and(|number| (number - before).abs() <= 2)
    });
    assert!(near, "{before}: {rows:?}");
}

#[test]
fn t8_only_what_is_in_sight_is_laid_out() {
    let mut laid = Vec::new();
    for count in [10, 1_000, 20_000] {
        let mut messages = Vec::new();
        for n in 0..count {
            messages.push(Message::new(Role::User, vec![words(&format!("question {n}"))]));
            let thought = Block::Thinking(thinking("A thought of some length.", None));
            messages.push(Message::new(Role::Assistant, vec![thought, words("An answer.")]));
        }
        let mut stage = Stage::new(60, 30);
        stage.tell(Update::Restored(messages));
        stage.screen();
        stage.key(KeyCode::PageUp);
        stage.screen();
        stage.screen();
        laid.push(stage.app.transcript().laid_out());
    }
    assert_eq!(laid[1], laid[2], "the same however long the transcript is");
    assert!(laid[2] < 40, "{laid:?}");
}

#[test]
fn t7_a_thought_of_many_sections_is_read_line_by_line() {
    let mut stage = Stage::viewed(40, 13, Display::Full);
    stage.write(0, "before");
    stage.think(1, &lines(0, 3_000), 2000);
    stage.write(2, "after");
    stage.screen();
    assert!(stage.app.transcript().laid_out() < 6, "{}", stage.app.transcript().laid_out());
    let numbers = |rows: Vec<String>| -> Vec<usize> {
        rows.iter().filter_map(|row| row.strip_prefix("│ line ")?.trim().split(' ').next()?.parse().ok()).collect()
    };
    // The first row is behind the header that stays in sight.
    let mut seen = Vec::new();
    for turn in 0..1_010 {
        if turn > 0 {
            stage.wheel(true);
        }
        let mut rows = numbers(stage.said());
        assert!(rows.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{rows:?}");
        rows.retain(|row| seen.last().is_none_or(|last| row < last));
        seen.extend(rows.into_iter().rev());
    }
    assert_eq!(seen.first(), Some(&2_999));
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1] + 1), "no line is left out on the way up");
    assert_eq!(seen.last(), Some(&0));
    for _ in 0..1_010 {
        stage.wheel(false);
    }
    assert_eq!(stage.said().last().unwrap(), "after");
}

#[test]
fn walking_over_blocks_brings_them_into_sight() {
    let mut stage = Stage::new(40, 13);
    for n in 0..20 {
        stage.think(n * 2, &format!("Thought number {n}."), 0);
        stage.write(n * 2 + 1, &lines(0, 3));
    }
    stage.screen();
    stage.key(KeyCode::Tab);
    assert!(stage.screen().contains("number 19"));
    for _ in 0..10 {
        stage.key(KeyCode::Up);
    }
    assert!(stage.screen().contains("\"Thought number 9.\""), "{}", stage.screen());
    stage.typed("o");
    assert!(stage.screen().contains("│ Thought number 9."));
    stage.typed("o");
    assert!(!stage.screen().contains("│ Thought number 9."));
    stage.key(KeyCode::Esc);
    stage.typed("x");
    assert!(stage.screen().contains("❯ x"), "and back to writing");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever grows, folds or ends below, a reader further up sees the same rows.
    #[test]
    fn t7_nothing_below_moves_a_held_view(steps in prop::collection::vec(0u8..5, 1..20), up in 1usize..6) {
        let mut stage = Stage::viewed(40, 13, Display::Live);
        stage.write(0, &lines(0, 60));
        stage.screen();
        for _ in 0..up {
            stage.wheel(true);
        }
        let held = stage.said();
        for (block, step) in (1..).zip(steps) {
            match step {
                0 => stage.write(block, &lines(0, 5)),
                1 => stage.think(block, &lines(0, 20), 1000),
                2 => stage.call(block, &format!("c{block}"), "read", "{}"),
                3 => stage.result(&format!("c{}", block - 1), "out\nput", true),
                _ => stage.tell(Update::TurnEnded(TurnEnd::Answered)),
            }
            stage.pass(50);
            prop_assert_eq!(&stage.said(), &held);
        }
    }
}
