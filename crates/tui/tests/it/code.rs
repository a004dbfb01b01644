//! Code and what tools changed: colours that come when they are known, signs
//! that need none, and output that opens in steps.

use std::path::Path;

use aside_core::settings::Display;
use aside_core::turn::TurnEnd;
use aside_tui::seam::{Command, Opening, Question, QuestionId, Update};
use crossterm::event::KeyCode;
use expect_test::expect_file;

use crate::support::{Stage, themes};

const CODE: &str = "1. so:\n   ```rust\n   // why\n   fn a() -> u8 { \"漢\"; 1 }\n   ```\n";
const DIFF: &str =
    "edited `a.rs`\n--- a/a.rs\n+++ b/a.rs\n@@ -9,3 +9,3 @@\n fn a() {\n-    old(\"x\");\n+    new(1);\n }";

#[test]
fn t8_code_and_changes_in_every_theme() {
    let mut out = String::new();
    for (name, theme) in themes() {
        let mut stage = Stage::themed(40, 22, theme, Display::Full);
        stage.think(0, "```py\nif x: 1  # no\n```", 2_000);
        stage.call(1, "c1", "edit", r#"{"path":"a.rs"}"#);
        stage.result("c1", DIFF, false);
        stage.write(2, CODE);
        stage.light();
        out.push_str(&format!("== {name}\n{}\n", stage.picture()));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens/code.txt").display().to_string();
    expect_file![path].assert_eq(&out);
}

#[test]
fn t8_colours_never_change_a_letter_and_come_while_code_grows() {
    let mut stage = Stage::viewed(40, 20, Display::Full);
    stage.open(0, Opening::Text);
    let mut plain = Stage::viewed(40, 20, Display::Full);
    plain.open(0, Opening::Text);
    let text = "- x\n  ```rust\n  /* a\n  b */ let s = \"open\n  漢 e\u{301} 👩‍💻\"; // a comment that is longer than the row is\n  \tfn b() {}\n  ```\nend";
    for letter in text.chars() {
        for stage in [&mut stage, &mut plain] {
            stage.grow(0, &letter.to_string());
        }
        stage.light();
        assert_eq!(stage.said(), plain.said());
    }
    let colours = |stage: &mut Stage| {
        let buffer = stage.buffer();
        let mut colours: Vec<String> = buffer.content().iter().map(|cell| cell.fg.to_string()).collect();
        colours.sort();
        colours.dedup();
        colours.len()
    };
    assert!(colours(&mut stage) > colours(&mut plain) + 2);
}

#[test]
fn t8_a_growing_line_is_asked_for_alone_however_long_its_block_is() {
    let mut stage = Stage::viewed(40, 20, Display::Full);
    stage.open(0, Opening::Text);
    stage.grow(0, "```rust\n");
    for _ in 0..400 {
        stage.grow(0, "let x = 1;\n");
    }
    stage.light();
    stage.grow(0, "let y");
    stage.buffer();
    let jobs = stage.app.unlit();
    let sizes: Vec<(usize, Option<&str>)> = jobs.iter().map(|job| (job.lines.len(), job.peek.as_deref())).collect();
    assert_eq!(sizes, [(0, Some("let y"))]);
    assert!(stage.app.unlit().is_empty(), "it is asked once");
}

#[test]
fn t8_code_without_a_language_and_text_without_code_ask_for_nothing() {
    let mut stage = Stage::viewed(40, 20, Display::Full);
    stage.write(0, "words, `code`\n\n```\nplain\n```\n");
    stage.think(1, "a thought", 0);
    stage.result("c", "output", true);
    stage.buffer();
    assert!(stage.app.unlit().is_empty());
}

#[test]
fn t8_an_answer_for_a_text_that_is_gone_changes_nothing() {
    let mut stage = Stage::viewed(40, 20, Display::Full);
    stage.write(0, "```rust\nfn a() {}\n```\n");
    stage.buffer();
    let jobs = stage.app.unlit();
    stage.tell(Update::Restored(Vec::new()));
    stage.write(1, "```rust\n1 + 1\n```\n");
    let before = stage.picture();
    stage.answer(jobs);
    assert_eq!(stage.picture(), before);
}

#[test]
fn t4_long_output_opens_in_two_steps() {
    let mut stage = Stage::viewed(60, 60, Display::Full);
    let output: String = (1..=40).map(|line| format!("line {line}\n")).collect();
    stage.call(0, "c", "shell", r#"{"command":"seq 40"}"#);
    stage.result("c", &output, false);
    assert_eq!(stage.said(), ["▶ ✓ shell seq 40 · 40 lines"]);
    stage.click(0, 0);
    let said = stage.said();
    assert_eq!((said.len(), said[0].as_str()), (18, "▼ ✓ shell seq 40 · 40 lines"));
    assert_eq!(said[16..], ["  line 16", "  … 24 more lines (click to expand)"]);
    stage.click(5, 17);
    assert_eq!((stage.said().len(), stage.said()[40].as_str()), (41, "  line 40"));
    stage.key(KeyCode::Tab);
    stage.key(KeyCode::Char('o'));
    assert_eq!(stage.said(), ["▶ ✓ shell seq 40 · 40 lines"]);
}

#[test]
fn a_large_paste_shows_its_first_lines_and_all_of_them_on_a_click_or_a_key() {
    let mut stage = Stage::viewed(60, 60, Display::Full);
    let paste: Vec<String> = (1..=40).map(|line| format!("line {line}")).collect();
    stage.line(&paste.join("\n"));
    assert_eq!(stage.sent, [Command::Say(paste.join("\n"))], "all of it is sent");
    stage.write(0, "an answer");
    stage.end(TurnEnd::Answered);
    let folded = stage.said();
    assert_eq!((folded.len(), folded[0].as_str()), (14, "❯ line 1"));
    assert_eq!(folded[11..], ["  line 12", "  … 28 more lines (click to expand)", "an answer"]);
    let is_open = |stage: &mut Stage| {
        let said = stage.said();
        (said.len(), said[39].as_str()) == (41, "  line 40")
    };
    stage.click(5, 12);
    assert!(is_open(&mut stage), "a click on it\n{}", stage.screen());
    stage.click(5, 20);
    assert!(is_open(&mut stage), "its rows can be clicked at\n{}", stage.screen());
    stage.click(5, 0);
    assert_eq!(stage.said(), folded, "a click on its first row");
    stage.control('o');
    assert!(is_open(&mut stage), "the key for the last block\n{}", stage.screen());
    stage.key(KeyCode::Tab);
    stage.key(KeyCode::Char('o'));
    assert_eq!(stage.said(), folded, "walking over the blocks");
}

#[test]
fn what_is_not_much_longer_than_its_first_lines_is_shown_whole() {
    for (lines, shown) in [(1, 1), (13, 13), (14, 13)] {
        let mut stage = Stage::viewed(60, 60, Display::Full);
        stage.line(&vec!["a line"; lines].join("\n"));
        assert_eq!(stage.said().len(), shown, "{lines} lines");
    }
    let mut stage = Stage::viewed(60, 60, Display::Full);
    stage.line(&"word ".repeat(600));
    assert_eq!(stage.said().last().unwrap(), "  … more of this (click to expand)");
}

#[test]
fn t4_a_long_change_shows_its_first_lines() {
    let mut stage = Stage::viewed(60, 60, Display::Full);
    let lines: String = (1..=30).map(|line| format!("+line {line}\n")).collect();
    stage.call(0, "c", "write", r#"{"path":"a.txt"}"#);
    stage.result("c", &format!("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,30 @@\n{lines}"), false);
    let said = stage.said();
    assert_eq!(said[0], "▼ ✓ write a.txt · +30 -0");
    assert_eq!(said[4..6], ["   1 +line 1", "   2 +line 2"]);
    assert_eq!(said.last().unwrap(), "  … 17 more lines (click to expand)");
}

#[test]
fn a_question_shows_the_change_with_its_colours() {
    let mut stage = Stage::viewed(60, 30, Display::Full);
    stage.tell(Update::Asked(Box::new(Question {
        id: QuestionId(1),
        about: crate::support::about("edit", "a.rs", Some(DIFF.into()), None),
    })));
    assert!(stage.rows().iter().any(|row| row == "│ +    new(1);"), "{}", stage.screen());
    stage.pass(600);
    stage.typed("v");
    let before = stage.picture();
    stage.light();
    assert!(stage.rows().iter().any(|row| row.ends_with("10 +    new(1);")), "{}", stage.screen());
    assert_ne!(stage.picture(), before);
}

#[test]
fn t12_a_search_finds_what_goes_over_a_row_and_the_outline_leads_to_titles() {
    let mut stage = Stage::viewed(24, 10, Display::Full);
    // The last page is full, so there is more below what is looked for.
    let (above, below) = ("a\n".repeat(20), "b\n".repeat(10));
    let text = format!("**Reading**\n\n{above}\n\nhere are some words that wrap\n\n## Planning\n\n{below}");
    stage.think(0, &text, 0);
    stage.line("/reader");
    stage.screen();
    stage.typed("/words that");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.rows()[1..3], ["here are some words that", "wrap"]);
    stage.typed("/that wrap");
    stage.key(KeyCode::Enter);
    let rows = stage.rows();
    assert_eq!(rows[1], "here are some words that", "{rows:?}");
    assert!(rows[9].starts_with("\"that wrap\" found once"), "{rows:?}");
    stage.typed("o");
    assert_eq!(stage.rows()[1..3], ["› Reading", "  Planning"]);
    stage.key(KeyCode::Down);
    stage.key(KeyCode::Enter);
    assert_eq!(stage.rows()[1], "Planning");
}
