//! Code and changes: highlighting that arrives later, diffs that are readable without colour, and
//! output that opens in steps.

use std::path::Path;

use aside_core::settings::ThinkingDisplay;
use aside_core::turn::TurnEnd;
use aside_front::{Command, OpenedBlock, PendingQuestion, QuestionId, Update};
use crossterm::event::KeyCode;
use expect_test::expect_file;

use crate::support::{TestTerminal, themes};

const CODE: &str = "1. so:\n   ```rust\n   // why\n   fn a() -> u8 { \"漢\"; 1 }\n   ```\n";
const DIFF: &str =
    "edited `a.rs`\n--- a/a.rs\n+++ b/a.rs\n@@ -9,3 +9,3 @@\n fn a() {\n-    old(\"x\");\n+    new(1);\n }";

#[test]
fn t8_code_and_changes_in_every_theme() {
    let mut out = String::new();
    for (name, theme) in themes() {
        let mut term = TestTerminal::with_theme(40, 22, theme, ThinkingDisplay::Full);
        term.think(0, "```py\nif x: 1  # no\n```", 2_000);
        term.call(1, "c1", "edit", r#"{"path":"a.rs"}"#);
        term.result("c1", DIFF, false);
        term.write(2, CODE);
        term.highlight_code();
        out.push_str(&format!("== {name}\n{}\n", term.picture()));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens/code.txt").display().to_string();
    expect_file![path].assert_eq(&out);
}

#[test]
fn t17_a_created_file_is_shown_like_a_change() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    let content: String = (1..=9).map(|n| format!("line {n}\\n")).collect();
    term.call(0, "c1", "write", &format!(r#"{{"path":"a.txt","content":"{content}"}}"#));
    term.result("c1", "created `a.txt`, 9 lines", false);
    let rows = term.transcript();
    assert_eq!(rows[0], "▼ ✓ write a.txt · 9 lines");
    assert!(rows.iter().any(|row| row.contains("+ line 1") || row.contains("+line 1")), "{rows:#?}");
    let shown = rows.iter().filter(|row| row.contains("line ") && row.contains('+')).count();
    assert_eq!(shown, 5, "{rows:#?}");
    assert!(rows.iter().any(|row| row.contains("4 more lines")), "{rows:#?}");
    // A tool with the same arguments that did something else.
    term.call(1, "c2", "post", r#"{"path":"a.txt","content":"x"}"#);
    term.result("c2", "sent", false);
    assert!(!term.transcript().iter().any(|row| row.contains("+x") || row.contains("+ x")));
}

#[test]
fn t8_colours_never_change_the_text_and_arrive_while_code_grows() {
    let mut term = TestTerminal::with_view(40, 20, ThinkingDisplay::Full);
    term.open(0, OpenedBlock::Text);
    let mut plain = TestTerminal::with_view(40, 20, ThinkingDisplay::Full);
    plain.open(0, OpenedBlock::Text);
    let text = "- x\n  ```rust\n  /* a\n  b */ let s = \"open\n  漢 e\u{301} 👩‍💻\"; // a comment that is longer than the row is\n  \tfn b() {}\n  ```\nend";
    for letter in text.chars() {
        for term in [&mut term, &mut plain] {
            term.grow(0, &letter.to_string());
        }
        term.highlight_code();
        assert_eq!(term.transcript(), plain.transcript());
    }
    let colours = |term: &mut TestTerminal| {
        let buffer = term.buffer();
        let mut colours: Vec<String> = buffer.content().iter().map(|cell| cell.fg.to_string()).collect();
        colours.sort();
        colours.dedup();
        colours.len()
    };
    assert!(colours(&mut term) > colours(&mut plain) + 2);
}

#[test]
fn t8_only_the_growing_line_is_requested_however_long_the_block() {
    let mut term = TestTerminal::with_view(40, 20, ThinkingDisplay::Full);
    term.open(0, OpenedBlock::Text);
    term.grow(0, "```rust\n");
    for _ in 0..400 {
        term.grow(0, "let x = 1;\n");
    }
    term.highlight_code();
    term.grow(0, "let y");
    term.buffer();
    let jobs = term.app.highlight_jobs();
    let sizes: Vec<(usize, Option<&str>)> = jobs.iter().map(|job| (job.lines.len(), job.growing.as_deref())).collect();
    assert_eq!(sizes, [(0, Some("let y"))]);
    assert!(term.app.highlight_jobs().is_empty(), "it is requested once");
}

#[test]
fn t8_code_without_a_language_and_text_without_code_request_nothing() {
    let mut term = TestTerminal::with_view(40, 20, ThinkingDisplay::Full);
    term.write(0, "words, `code`\n\n```\nplain\n```\n");
    term.think(1, "a thought", 0);
    term.result("c", "output", true);
    term.buffer();
    assert!(term.app.highlight_jobs().is_empty());
}

#[test]
fn t8_a_result_for_a_text_that_is_gone_changes_nothing() {
    let mut term = TestTerminal::with_view(40, 20, ThinkingDisplay::Full);
    term.write(0, "```rust\nfn a() {}\n```\n");
    term.buffer();
    let jobs = term.app.highlight_jobs();
    term.update(Update::Restored(Vec::new()));
    term.write(1, "```rust\n1 + 1\n```\n");
    let before = term.picture();
    term.run_jobs(jobs);
    assert_eq!(term.picture(), before);
}

#[test]
fn t4_long_output_opens_in_two_steps() {
    let mut term = TestTerminal::with_view(60, 60, ThinkingDisplay::Full);
    let output: String = (1..=40).map(|line| format!("line {line}\n")).collect();
    term.call(0, "c", "shell", r#"{"command":"seq 40"}"#);
    term.result("c", &output, false);
    let said = term.transcript();
    assert_eq!((said.len(), said[0].as_str()), (7, "▼ ✓ shell seq 40 · 40 lines"));
    assert_eq!(said[1..3], ["  … 35 more lines above (click to expand) · Tab, then o", "  line 36"]);
    assert_eq!(said[6], "  line 40");
    term.click(5, 1);
    assert_eq!((term.transcript().len(), term.transcript()[40].as_str()), (41, "  line 40"));
    term.key(KeyCode::Tab);
    term.key(KeyCode::Char('o'));
    assert_eq!(term.transcript(), ["▶ ✓ shell seq 40 · 40 lines"]);
    term.key(KeyCode::Char('o'));
    assert_eq!(term.transcript().len(), 7);
}

#[test]
fn a_large_paste_shows_its_first_lines_and_opens_on_a_click_or_a_key() {
    let mut term = TestTerminal::with_view(60, 60, ThinkingDisplay::Full);
    let paste: Vec<String> = (1..=40).map(|line| format!("line {line}")).collect();
    term.line(&paste.join("\n"));
    assert_eq!(term.sent, [Command::Prompt(paste.join("\n"))], "all of it is sent");
    term.write(0, "an answer");
    term.end(TurnEnd::Answered);
    let folded = term.transcript();
    assert_eq!((folded.len(), folded[0].as_str()), (14, "❯ line 1"));
    assert_eq!(folded[11..], ["  line 12", "  … 28 more lines (click to expand) · Tab, then o", "an answer"]);
    let is_open = |term: &mut TestTerminal| {
        let said = term.transcript();
        (said.len(), said[39].as_str()) == (41, "  line 40")
    };
    term.click(5, 12);
    assert!(is_open(&mut term), "a click on it\n{}", term.screen());
    term.click(5, 20);
    assert!(is_open(&mut term), "clicks on its rows do nothing\n{}", term.screen());
    term.click(5, 0);
    assert_eq!(term.transcript(), folded, "a click on its first row");
    term.control('o');
    assert!(is_open(&mut term), "the key for the last block\n{}", term.screen());
    term.key(KeyCode::Tab);
    term.key(KeyCode::Char('o'));
    assert_eq!(term.transcript(), folded, "moving between the blocks");
}

#[test]
fn a_text_slightly_longer_than_the_limit_is_shown_whole() {
    for (lines, shown) in [(1, 1), (13, 13), (14, 13)] {
        let mut term = TestTerminal::with_view(60, 60, ThinkingDisplay::Full);
        term.line(&vec!["a line"; lines].join("\n"));
        assert_eq!(term.transcript().len(), shown, "{lines} lines");
    }
    let mut term = TestTerminal::with_view(60, 60, ThinkingDisplay::Full);
    term.line(&"word ".repeat(600));
    assert_eq!(term.transcript().last().unwrap(), "  … more of this (click to expand) · Tab, then o");
}

#[test]
fn t4_a_long_change_shows_its_first_lines() {
    let mut term = TestTerminal::with_view(60, 60, ThinkingDisplay::Full);
    let lines: String = (1..=30).map(|line| format!("+line {line}\n")).collect();
    term.call(0, "c", "write", r#"{"path":"a.txt"}"#);
    term.result("c", &format!("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,30 @@\n{lines}"), false);
    let said = term.transcript();
    assert_eq!(said[0], "▼ ✓ write a.txt · +30 -0");
    assert_eq!(said[1..3], ["   1 +line 1", "   2 +line 2"]);
    assert_eq!(said.last().unwrap(), "  … 14 more lines (click to expand) · Tab, then o");
}

#[test]
fn a_question_shows_the_change_with_its_colours() {
    let mut term = TestTerminal::with_view(60, 30, ThinkingDisplay::Full);
    term.update(Update::QuestionAsked(Box::new(PendingQuestion {
        id: QuestionId(1),
        about: crate::support::question_about("edit", "a.rs", Some(DIFF.into()), None),
    })));
    assert!(term.rows().iter().any(|row| row == "│ +    new(1);"), "{}", term.screen());
    term.advance(600);
    term.type_text("v");
    let before = term.picture();
    term.highlight_code();
    assert!(term.rows().iter().any(|row| row.ends_with("10 +    new(1);")), "{}", term.screen());
    assert_ne!(term.picture(), before);
}

#[test]
fn t12_a_search_finds_wrapped_text_and_the_outline_leads_to_titles() {
    let mut term = TestTerminal::with_view(24, 10, ThinkingDisplay::Full);
    // The match must not be on the last page, which is always full.
    let (above, below) = ("a\n".repeat(20), "b\n".repeat(10));
    let text = format!("**Reading**\n\n{above}\n\nhere are some words that wrap\n\n## Planning\n\n{below}");
    term.think(0, &text, 0);
    term.line("/reader");
    term.screen();
    term.type_text("/words that");
    term.key(KeyCode::Enter);
    assert_eq!(term.rows()[1..3], ["here are some words that", "wrap"]);
    term.type_text("/that wrap");
    term.key(KeyCode::Enter);
    let rows = term.rows();
    assert_eq!(rows[1], "here are some words that", "{rows:?}");
    assert!(rows[9].starts_with("\"that wrap\" found once"), "{rows:?}");
    term.type_text("o");
    assert_eq!(term.rows()[1..3], ["› Reading", "  Planning"]);
    term.key(KeyCode::Down);
    term.key(KeyCode::Enter);
    assert_eq!(term.rows()[1], "Planning");
}

#[test]
fn t17_an_edit_has_signs_while_it_streams() {
    #[rustfmt::skip]
    let cases: &[(&str, &str, &[&str])] = &[
        ("old text",       r#"{"path":"a.rs","old":"one\ntw"#,                         &["-one", "-tw"]),
        ("new text",       r#"{"path":"a.rs","old":"one\n","new":"two\nthr"#,          &["-one", "+two", "+thr"]),
        ("new text first", r#"{"path":"a.rs","new":"two"#,                             &["+two"]),
        ("a long line",    r#"{"path":"a.rs","new":"0123456789012345678901234567890123456789"#,
                                                            &["+0123456789012345678901234567890123456", "   789"]),
        ("a whole file",   r#"{"path":"a.rs","content":"one\ntwo"#,                    &["one", "two"]),
    ];
    for (name, arguments, expected) in cases {
        let mut term = TestTerminal::new(40, 20);
        term.line("change it");
        term.send();
        term.open(0, OpenedBlock::ToolCall { name: "edit".into() });
        for piece in arguments.as_bytes().chunks(3) {
            term.grow(0, std::str::from_utf8(piece).unwrap());
        }
        let rows = term.transcript();
        let at = rows.iter().position(|row| row.contains("a.rs")).unwrap();
        let shown: Vec<&str> = rows[at + 1..].iter().map(|row| row.strip_prefix("  ").unwrap_or(row)).collect();
        assert_eq!(&shown, expected, "{name}: {rows:#?}");
    }
}
