//! The view never jumps (T7), and the cost of a frame does not depend on the history.

use std::sync::Arc;

use aside_core::block::Block;
use aside_core::message::{Message, Role};
use aside_core::settings::ThinkingDisplay;
use aside_core::turn::TurnEnd;
use aside_front::{OpenedBlock, Update};
use aside_tui::app::Msg;
use crossterm::event::KeyCode;
use proptest::prelude::*;

use crate::support::{TestTerminal, text_block, thinking};

fn lines(from: usize, to: usize) -> String {
    (from..to).map(|line| format!("line {line}\n")).collect()
}

#[test]
fn t7_the_end_is_followed_only_from_the_end() {
    let mut term = TestTerminal::new(40, 13);
    term.send();
    term.open(0, OpenedBlock::Text);
    term.grow(0, &lines(0, 50));
    assert_eq!(term.transcript().last().unwrap(), "line 49");
    term.grow(0, &lines(50, 60));
    assert_eq!(term.transcript().last().unwrap(), "line 59", "new rows are followed");
    term.wheel(true);
    let held = term.transcript();
    assert!(held.last().unwrap().starts_with("line ") && !held.last().unwrap().contains('↓'), "no text is covered");
    assert!(term.screen().contains("─ ↓ live"), "{}", term.screen());
    term.grow(0, &lines(60, 100));
    term.write(1, "another block");
    assert_eq!(term.transcript(), held, "a scrolled view stays");
    term.wheel(false);
    for _ in 0..20 {
        term.key(KeyCode::PageDown);
    }
    assert_eq!(term.transcript().last().unwrap(), "another block");
    assert!(!term.screen().contains('↓'));
    term.send();
    term.write(2, "and one more");
    assert_eq!(term.transcript().last().unwrap(), "and one more", "back at the end it follows again");
    term.end(TurnEnd::Answered);
    term.wheel(true);
    assert!(term.screen().contains("─ ↓ end"), "nothing is live any more\n{}", term.screen());
}

#[test]
fn t7_folding_thinking_moves_nothing_above_it() {
    let mut term = TestTerminal::new(40, 20);
    term.write(0, &lines(0, 30));
    term.open(1, OpenedBlock::Thinking);
    term.grow(1, &lines(0, 12));
    let before = term.rows();
    let header = before.iter().position(|row| row.contains("Thinking")).unwrap();
    term.close(1, Block::Thinking(thinking(&lines(0, 12), None)));
    let after = term.rows();
    assert!(after[header].contains("Thought"));
    assert_eq!(after[..header], before[..header]);
    term.write(2, "The answer takes the room.");
    let answer = term.rows();
    assert_eq!(answer[..header], before[..header]);
    assert_eq!(answer[header + 2], "The answer takes the room.");
}

#[test]
fn t7_opening_and_folding_keeps_the_header_where_it_is() {
    let mut term = TestTerminal::new(40, 20);
    term.write(0, &lines(0, 10));
    term.think(1, &lines(0, 30), 0);
    term.write(2, &lines(0, 40));
    term.key(KeyCode::PageUp);
    term.key(KeyCode::PageUp);
    let before = term.rows();
    let y = before.iter().position(|row| row.contains("Thought")).unwrap() as u16;
    term.click(0, y);
    let open = term.rows();
    assert!(open[usize::from(y)].starts_with('▼'), "{open:#?}");
    assert_eq!(open[..usize::from(y)], before[..usize::from(y)]);
    term.click(0, y);
    assert_eq!(term.rows(), before, "and back again");
}

#[test]
fn t15_opening_a_block_at_the_end_shows_its_beginning() {
    for ending in ["", "a short answer"] {
        let mut term = TestTerminal::new(40, 20);
        term.write(0, &lines(0, 10));
        term.think(1, &lines(0, 60), 2000);
        if !ending.is_empty() {
            term.write(2, ending);
        }
        term.end(TurnEnd::Answered);
        let before = term.rows();
        let header = before.iter().position(|row| row.contains("Thought")).unwrap();
        term.control('o');
        let open = term.rows();
        assert!(open[header].starts_with("▼ Thought"), "the header stays on its row: {open:#?}");
        assert_eq!(open[..header], before[..header], "nothing above it moved");
        assert_eq!(open[header + 1], "│ line 0", "{open:#?}");
        assert!(term.screen().contains("↓ end"), "{}", term.screen());
        term.control('o');
        assert!(!term.screen().contains("↓ end"), "nothing is below: {}", term.screen());
    }
}

#[test]
fn t15_opening_thinking_that_streams_does_not_follow_it() {
    let mut term = TestTerminal::new(40, 20);
    term.send();
    term.open(0, OpenedBlock::Thinking);
    term.grow(0, &lines(0, 60));
    let header = term.rows().iter().position(|row| row.contains("Thinking")).unwrap();
    term.control('o');
    let open = term.rows();
    assert!(open[header].contains("Thinking") && open[header + 1] == "│ line 0", "{open:#?}");
    term.grow(0, &lines(60, 90));
    assert_eq!(term.rows()[header + 1], "│ line 0", "new lines do not move it");
}

#[test]
fn t15_a_header_on_the_last_row_moves_up_to_show_the_beginning() {
    let mut term = TestTerminal::new(40, 20);
    term.write(0, &lines(0, 40));
    term.think(1, &lines(0, 60), 2000);
    let last = term.rows().iter().position(|row| row.contains("Thought")).unwrap();
    term.control('o');
    let open = term.rows();
    let header = open.iter().position(|row| row.contains("▼ Thought")).unwrap();
    assert!(header > 0 && header + 2 < last, "it was on the last row, {last}: {open:#?}");
    assert_eq!(open[header + 1], "│ line 0", "{open:#?}");
}

#[test]
fn t15_a_larger_window_has_no_blank_rows_under_hidden_text() {
    let mut term = TestTerminal::new(40, 12);
    term.write(0, &lines(0, 30));
    term.key(KeyCode::PageUp);
    term.size = (40, 40);
    let rows = term.rows();
    assert_eq!(rows[0], "line 0", "there is room for all of it: {rows:#?}");
    assert!(!term.screen().contains("↓ end"), "{}", term.screen());
}

#[test]
fn t7_the_header_of_long_thinking_stays_visible_and_folds_it() {
    let mut term = TestTerminal::with_view(40, 20, ThinkingDisplay::Full);
    term.write(0, "before");
    term.think(1, &lines(0, 60), 2000);
    term.write(2, "after");
    let rows = term.rows();
    assert_eq!(rows[0], "▼ Thought for 2s · \"line 0…\"", "{rows:#?}");
    assert!(rows[1].starts_with("│ line"));
    term.click(0, 0);
    let rows = term.rows();
    assert!(rows[0].starts_with("▶ Thought for 2s"), "the header takes the place of its copy: {rows:#?}");
    assert_eq!(rows[2], "after");
}

#[test]
fn keys_move_from_turn_to_turn() {
    let mut term = TestTerminal::new(40, 12);
    for n in 0..5 {
        term.line(&format!("question {n}"));
        term.send();
        term.write(0, &lines(0, 20));
        term.update(Update::TurnEnded(TurnEnd::Answered));
    }
    term.screen();
    let mut seen = Vec::new();
    for code in [KeyCode::Up, KeyCode::Up, KeyCode::Up, KeyCode::Down] {
        term.msg(Msg::Key(crossterm::event::KeyEvent::new(code, crossterm::event::KeyModifiers::ALT)));
        seen.push(term.rows()[0].clone());
    }
    assert_eq!(seen, ["❯ question 4", "❯ question 3", "❯ question 2", "❯ question 3"]);
}

#[test]
fn t7_a_new_width_keeps_the_position() {
    let mut term = TestTerminal::new(80, 13);
    let text: String = (0..100).map(|n| format!("paragraph {n} has a few words in it\n\n")).collect();
    term.write(0, &text);
    for _ in 0..5 {
        term.key(KeyCode::PageUp);
    }
    let first = |term: &mut TestTerminal| term.transcript()[0].split(' ').nth(1).unwrap().parse::<i32>().unwrap();
    let before = first(&mut term);
    term.size = (25, 13);
    term.msg(Msg::Resize);
    let rows = term.transcript();
    let near = rows.iter().any(|row| {
        let number = row.strip_prefix("paragraph ").and_then(|rest| rest.split(' ').next()?.parse::<i32>().ok());
        number.is_some_and(|number| (number - before).abs() <= 2)
    });
    assert!(near, "{before}: {rows:?}");
}

#[test]
fn t8_only_the_visible_part_is_laid_out() {
    let mut laid = Vec::new();
    for count in [10, 1_000, 20_000] {
        let mut messages = Vec::new();
        for n in 0..count {
            messages.push(Message::new(Role::User, vec![text_block(&format!("question {n}"))]));
            let thought = Block::Thinking(thinking("A thought of some length.", None));
            messages.push(Message::new(Role::Assistant, vec![thought, text_block("An answer.")]));
        }
        let mut term = TestTerminal::new(60, 30);
        term.update(Update::Restored(messages.into_iter().map(Arc::new).collect()));
        term.screen();
        term.key(KeyCode::PageUp);
        term.screen();
        term.screen();
        laid.push(term.app.transcript().laid_out());
    }
    assert_eq!(laid[1], laid[2], "independent of the transcript's length");
    assert!(laid[2] < 40, "{laid:?}");
}

#[test]
fn t7_thinking_of_many_sections_scrolls_line_by_line() {
    let mut term = TestTerminal::with_view(40, 13, ThinkingDisplay::Full);
    term.write(0, "before");
    term.think(1, &lines(0, 3_000), 2000);
    term.write(2, "after");
    term.screen();
    assert!(term.app.transcript().laid_out() < 6, "{}", term.app.transcript().laid_out());
    let numbers = |rows: Vec<String>| -> Vec<usize> {
        rows.iter().filter_map(|row| row.strip_prefix("│ line ")?.trim().split(' ').next()?.parse().ok()).collect()
    };
    // The sticky header covers the first row.
    let mut seen = Vec::new();
    for turn in 0..1_010 {
        if turn > 0 {
            term.wheel(true);
        }
        let mut rows = numbers(term.transcript());
        assert!(rows.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{rows:?}");
        rows.retain(|row| seen.last().is_none_or(|last| row < last));
        seen.extend(rows.into_iter().rev());
    }
    assert_eq!(seen.first(), Some(&2_999));
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1] + 1), "no line is left out on the way up");
    assert_eq!(seen.last(), Some(&0));
    for _ in 0..1_010 {
        term.wheel(false);
    }
    assert_eq!(term.transcript().last().unwrap(), "after");
}

#[test]
fn moving_between_blocks_scrolls_to_them() {
    let mut term = TestTerminal::new(44, 13);
    for n in 0..20 {
        term.think(n * 2, &format!("Thought number {n}."), 0);
        term.write(n * 2 + 1, &lines(0, 3));
    }
    term.screen();
    term.key(KeyCode::Tab);
    assert!(term.screen().contains("number 19"));
    for _ in 0..10 {
        term.key(KeyCode::Up);
    }
    assert!(term.screen().contains("\"Thought number 9.\""), "{}", term.screen());
    term.type_text("o");
    assert!(term.screen().contains("│ Thought number 9."));
    term.type_text("o");
    assert!(!term.screen().contains("│ Thought number 9."));
    term.key(KeyCode::Esc);
    term.type_text("x");
    assert!(term.screen().contains("❯ x"), "typing returns to the input");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever grows, folds or ends below, a view further up stays the same.
    #[test]
    fn t7_nothing_below_moves_a_scrolled_view(steps in prop::collection::vec(0u8..5, 1..20), up in 1usize..6) {
        let mut term = TestTerminal::with_view(40, 13, ThinkingDisplay::Live);
        term.write(0, &lines(0, 60));
        term.screen();
        for _ in 0..up {
            term.wheel(true);
        }
        let held = term.transcript();
        for (block, step) in (1..).zip(steps) {
            match step {
                0 => term.write(block, &lines(0, 5)),
                1 => term.think(block, &lines(0, 20), 1000),
                2 => term.call(block, &format!("c{block}"), "read", "{}"),
                3 => term.result(&format!("c{}", block - 1), "out\nput", true),
                _ => term.update(Update::TurnEnded(TurnEnd::Answered)),
            }
            term.advance(50);
            prop_assert_eq!(&term.transcript(), &held);
        }
    }
}

#[test]
fn t24_the_keys_for_blocks_are_those_that_work_for_the_selected_one() {
    #[rustfmt::skip]
    let cases = [
        (80, "↑↓ move · o open · y copy · Esc back to the input", "↑↓ move · o open · r read · y copy · Esc back to the input"),
        (40, "↑↓ move · o open · y copy · Esc back",              "↑↓ · o open · r read · y copy · Esc back"),
    ];
    for (width, of_tool, of_thought) in cases {
        let mut term = TestTerminal::new(width, 16);
        term.key(KeyCode::Tab);
        assert!(term.rows().pop().unwrap().contains("Esc back"), "{}", term.screen());
        term.key(KeyCode::Esc);
        term.think(0, "A thought.", 0);
        term.call(1, "c1", "list", "{}");
        term.result("c1", "a.rs", false);
        term.key(KeyCode::Tab);
        assert_eq!(term.rows().pop().unwrap(), of_tool, "{}", term.screen());
        term.key(KeyCode::Up);
        assert_eq!(term.rows().pop().unwrap(), of_thought, "{}", term.screen());
        term.key(KeyCode::Char('o'));
        assert!(term.rows().pop().unwrap().contains("o fold · r read"), "{}", term.screen());
    }
}

#[test]
fn t15_the_hint_at_the_end_names_the_key_where_there_is_room() {
    for (width, expected) in [(80, "─ ↓ end · Ctrl+End"), (40, "─ ↓ end")] {
        let mut term = TestTerminal::new(width, 12);
        term.write(0, &lines(0, 40));
        term.key(KeyCode::PageUp);
        assert!(term.rows().iter().any(|row| row.ends_with(expected)), "{}", term.screen());
    }
}
