//! How thinking is displayed (T2-T6).

use std::sync::Arc;

use aside_core::block::{Block, ThinkingSpan, Time};
use aside_core::event::{BlockId, Ending, ProseKind, ReplyEnd};
use aside_core::message::{Message, Role};
use aside_core::settings::ThinkingDisplay;
use aside_core::turn::TurnEnd;
use aside_front::wording::THINKING_ONLY;
use aside_front::{Command, OpenedBlock, Status, Update};
use crossterm::event::KeyCode;

use crate::support::{TestTerminal, call, hidden, text_block, thinking};

const LONG: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve";

#[test]
fn t2_the_header_shows_what_is_known() {
    let long = "The user wants to know why the build fails on one machine only";
    #[rustfmt::skip]
    let cases: &[(&str, &str, Option<u64>, u16, &str)] = &[
        ("time and words",   long,                     Some(12_000), 80, "▶ Thought for 12s · \"The user wants to know why the…\" (click to expand) · Ctrl+O"),
        ("narrow",           long,                     Some(12_000), 40, "▶ Thought for 12s · \"The user…\" (Ctrl+O)"),
        ("very narrow",      long,                     Some(12_000), 20, "▶ Thought for 12s"),
        ("no time",          "Hm.",                    None,         40, "▶ Thought · \"Hm.\" (click to expand)"),
        ("short",            "Hm.",                    Some(400),    40, "▶ Thought for 0.4s · \"Hm.\" (Ctrl+O)"),
        ("minutes",          "Hm.",                    Some(125_000), 40, "▶ Thought for 2m 5s · \"Hm.\" (Ctrl+O)"),
        ("title",            "**Reading it**\n\nI look", Some(2_000), 60, "▶ Thought for 2s · Reading it (click to expand) · Ctrl+O"),
        ("marks left out",   "## *Plan* first",        None,         40, "▶ Thought · \"Plan first\" (Ctrl+O)"),
    ];
    for (name, text, ms, width, expected) in cases {
        let mut term = TestTerminal::new(*width, 12);
        let span = ms.map(|ms| ThinkingSpan { started: Time(0), ended: Time(ms) });
        term.open(0, OpenedBlock::Thinking);
        term.close(0, Block::Thinking(thinking(text, span)));
        let header = term.transcript()[0].clone();
        assert_eq!(&header, expected, "{name}");
    }
}

#[test]
fn t2_only_the_first_folded_block_shows_how_to_open_it() {
    let mut term = TestTerminal::new(80, 12);
    term.think(0, "First.", 2000);
    term.think(1, "Second.", 2000);
    assert_eq!(
        term.transcript(),
        ["▶ Thought for 2s · \"First.\" (click to expand) · Tab, then o", "▶ Thought for 2s · \"Second.\""]
    );
    let other = vec![Block::Thinking(thinking("Other.", None)), text_block("So.")];
    term.update(Update::Restored(vec![Arc::new(Message::new(Role::Assistant, other))]));
    assert_eq!(
        term.transcript()[0],
        "▶ Thought · \"Other.\" (click to expand) · Ctrl+O",
        "a new session shows the hint again"
    );
}

#[test]
fn t2_a_running_header_shows_time_and_tokens() {
    let mut term = TestTerminal::new(80, 12);
    term.send();
    term.open(0, OpenedBlock::Thinking);
    term.grow(0, "**Reading it**\n\nI look at the code and see what it does.");
    term.advance(7_300);
    let header = term.transcript()[0].clone();
    assert!(header.contains("Thinking · Reading it · 7s · ~"), "{header}");
    assert!(header.ends_with("tokens"), "{header}");
    let before = header.chars().next();
    term.advance(100);
    assert_ne!(term.transcript()[0].chars().next(), before, "the spinner turns");
}

#[test]
fn t3_views_while_it_streams_and_when_it_is_done() {
    // Rows below the header, while running and when done.
    #[rustfmt::skip]
    let cases = [
        (ThinkingDisplay::Full,      Some((12, 12))),
        (ThinkingDisplay::Live,      Some((8, 0))),
        (ThinkingDisplay::Collapsed, Some((0, 0))),
        (ThinkingDisplay::Off,       None),
    ];
    for (view, expected) in cases {
        let mut term = TestTerminal::with_view(60, 40, view);
        term.open(0, OpenedBlock::Thinking);
        term.grow(0, LONG);
        let running = term.transcript();
        term.close(0, Block::Thinking(thinking(LONG, None)));
        let done = term.transcript();
        match expected {
            None => assert_eq!((running.len(), done.len()), (0, 0), "{view}"),
            Some((open, folded)) => {
                assert_eq!((running.len(), done.len()), (open + 1, folded + 1), "{view}");
                assert!(running[0].contains("Thinking") && done[0].contains("Thought"), "{view}");
            }
        }
        if view == ThinkingDisplay::Live {
            assert_eq!(running.last().unwrap(), "│ twelve", "the tail shows the end");
        }
    }
}

#[test]
fn t3_a_command_or_key_changes_the_view_of_all_thinking() {
    let mut term = TestTerminal::new(60, 30);
    term.think(0, "First.", 0);
    term.think(1, "Second.", 0);
    #[rustfmt::skip]
    let steps: &[(&str, ThinkingDisplay, bool)] = &[
        ("/thinking full",      ThinkingDisplay::Full,      true),
        ("/thinking",           ThinkingDisplay::Live,      false),
        (":thinking",           ThinkingDisplay::Collapsed, false),
        (":toggle thinking",    ThinkingDisplay::Off,       false),
        ("/thinking",           ThinkingDisplay::Full,      true),
        ("/thinking collapsed", ThinkingDisplay::Collapsed, false),
    ];
    for (line, view, shown) in steps {
        term.line(line);
        let screen = term.screen();
        assert!(screen.contains(&format!("Thinking: {view}")), "{line}: {screen}");
        assert_eq!(term.sent.pop(), Some(Command::View(*view)), "{line}");
        for text in ["│ First.", "│ Second."] {
            assert_eq!(screen.contains(text), *shown, "{line}");
        }
        assert_eq!(screen.contains("Thought"), *view != ThinkingDisplay::Off, "{line}");
    }
    term.control('t');
    assert_eq!(term.sent.pop(), Some(Command::View(ThinkingDisplay::Off)));
}

#[test]
fn t3_an_outdated_status_does_not_revert_the_view() {
    let mut term = TestTerminal::new(60, 20);
    term.think(0, "First.", 0);
    let told = |view| Update::Status(Box::new(Status { view, ..Status::default() }));
    term.line("/thinking full");
    term.update(told(ThinkingDisplay::Live));
    assert!(term.screen().contains("│ First."), "an outdated status is ignored");
    term.update(told(ThinkingDisplay::Full));
    term.update(told(ThinkingDisplay::Collapsed));
    assert!(!term.screen().contains("│ First."), "a newer status applies");
}

#[test]
fn t4_a_block_is_toggled_while_it_runs_and_the_choice_survives_its_end() {
    let mut term = TestTerminal::new(60, 30);
    term.open(0, OpenedBlock::Thinking);
    term.grow(0, LONG);
    assert_eq!(term.transcript().len(), 9);
    term.click(3, 0);
    assert_eq!(term.transcript().len(), 13, "opened while it runs");
    term.close(0, Block::Thinking(thinking(LONG, None)));
    assert_eq!(term.transcript().len(), 13, "and still open when it is done");
    term.click(3, 0);
    assert_eq!(term.transcript().len(), 1);

    let mut term = TestTerminal::with_view(60, 30, ThinkingDisplay::Full);
    term.open(0, OpenedBlock::Thinking);
    term.grow(0, LONG);
    term.rows();
    term.click(3, 0);
    assert_eq!(term.transcript().len(), 1, "folded while it runs");
    term.close(0, Block::Thinking(thinking(LONG, None)));
    assert_eq!(term.transcript().len(), 1, "and still folded when it is done");
}

#[test]
fn t4_a_click_anywhere_on_the_live_tail_opens_it() {
    let mut term = TestTerminal::new(60, 30);
    term.open(0, OpenedBlock::Thinking);
    term.grow(0, LONG);
    assert_eq!(term.transcript().len(), 9);
    term.click(5, 4);
    assert_eq!(term.transcript().len(), 13);
    term.click(5, 4);
    assert_eq!(term.transcript().len(), 13, "a click on open text must not fold it");
}

#[test]
fn t4_tool_blocks_toggle_at_any_time_too() {
    let mut term = TestTerminal::new(60, 30);
    term.call(0, "c1", "read", r#"{"path":"a.txt"}"#);
    assert_eq!(term.transcript(), ["▶ ○ read a.txt"]);
    term.control('o');
    assert_eq!(term.transcript(), ["▼ ○ read a.txt", r#"  {"path":"a.txt"}"#], "before it has a result");
    term.result("c1", "line one\nline two", false);
    assert_eq!(term.transcript(), ["▼ ✓ read a.txt · 2 lines", "  line one", "  line two"], "the choice stays");
    term.control('o');
    assert_eq!(term.transcript(), ["▶ ✓ read a.txt · 2 lines"]);
}

#[test]
fn t5_a_summary_shows_its_current_item_and_all_of_them_when_done() {
    let mut term = TestTerminal::with_view(60, 30, ThinkingDisplay::Full);
    term.open(0, OpenedBlock::Thinking);
    let items = ["**Reading**\n\nI read it.", "**Planning**\n\nI plan it."];
    for item in items {
        term.update(Update::Item { block: BlockId(0) });
        term.grow(0, item);
    }
    let running = term.screen();
    assert!(running.contains("Thinking · Planning"), "{running}");
    assert!(running.contains("│ I plan it.") && !running.contains("I read it."), "{running}");
    term.close(0, Block::Thinking(thinking(&items.join("\n\n"), None)));
    let done = term.transcript();
    assert_eq!(done[0], "▼ Thought", "the title stands below");
    assert_eq!(done[1..], ["│ Reading", "│", "│ I read it.", "│", "│ Planning", "│", "│ I plan it."]);
}

#[test]
fn t6_a_reply_with_only_thinking_stays_open_with_a_notice() {
    for view in [ThinkingDisplay::Live, ThinkingDisplay::Collapsed, ThinkingDisplay::Full] {
        let mut term = TestTerminal::with_view(100, 20, view);
        term.send();
        term.think(0, "I thought.", 1000);
        term.end(TurnEnd::ThinkingOnly { for_length: false });
        let said = term.transcript();
        assert_eq!(said[..2], ["▼ Thought for 1s · \"I thought.\"".to_owned(), "│ I thought.".to_owned()], "{view}");
        assert_eq!(said[2], format!("! {THINKING_ONLY}"), "{view}");
        assert_eq!(said.len(), 3, "no error: {said:?}");
    }
    let mut term = TestTerminal::new(100, 20);
    term.send();
    term.think(0, "I thought.", 1000);
    term.end(TurnEnd::ThinkingOnly { for_length: true });
    let screen = term.screen();
    assert!(screen.contains("it stopped at the output limit") && screen.contains("request.maxTokens"), "{screen}");
}

#[test]
fn t6_no_output_at_all_is_a_visible_error() {
    let mut term = TestTerminal::new(80, 20);
    term.send();
    term.end(TurnEnd::Empty);
    assert_eq!(term.transcript(), ["✗ the model sent nothing at all", "  hint: /retry, or another /model"]);
}

#[test]
fn unreadable_thinking_is_marked_as_hidden_by_the_provider() {
    let mut term = TestTerminal::new(60, 20);
    term.open(0, OpenedBlock::Thinking);
    term.close(0, Block::Thinking(hidden()));
    assert_eq!(term.transcript(), ["▶ Thought · hidden by provider (click to expand) · Ctrl+O"]);
    term.click(0, 0);
    assert_eq!(term.transcript()[1], "│ cannot be read; 640 sealed bytes are kept");
}

#[test]
fn blank_thinking_is_not_shown() {
    for text in ["", "  \n \n"] {
        let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
        term.open(0, OpenedBlock::Thinking);
        term.close(0, Block::Thinking(thinking(text, None)));
        assert_eq!(term.transcript(), Vec::<String>::new());
    }
}

#[test]
fn interrupted_thinking_is_marked_and_kept() {
    let mut term = TestTerminal::new(60, 20);
    term.send();
    term.open(0, OpenedBlock::Thinking);
    term.grow(0, "I was just about");
    term.advance(5_000);
    term.key(KeyCode::Esc);
    assert_eq!(term.sent, [Command::Interrupt]);
    term.update(Update::TurnEnded(TurnEnd::Interrupted));
    assert_eq!(term.transcript(), ["▶ Thought for 5s · interrupted · \"I was just about\" (Ctrl+O)", "! interrupted"]);
}

#[test]
fn text_that_turns_out_to_be_thinking_moves() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    term.open(0, OpenedBlock::Text);
    term.grow(0, "I wonder");
    assert_eq!(term.transcript(), ["I wonder"]);
    term.update(Update::Refiled { block: BlockId(0), to: ProseKind::Thinking });
    term.grow(0, " why");
    assert_eq!(term.transcript()[1], "│ I wonder why");
    term.update(Update::Refiled { block: BlockId(0), to: ProseKind::Text });
    assert_eq!(term.transcript(), ["I wonder why"]);
}

#[test]
fn the_final_block_wins_over_the_deltas() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    term.open(0, OpenedBlock::Thinking);
    term.grow(0, "draft");
    term.close(0, Block::Thinking(thinking("final", None)));
    term.open(1, OpenedBlock::Text);
    term.grow(1, "half");
    term.close(1, text_block("whole"));
    assert_eq!(term.transcript(), ["▼ Thought · \"final\"", "│ final", "whole"]);
}

/// A restored session looks as it did before.
#[test]
fn live_and_restored_look_the_same() {
    let span = |from: u64, ms: u64| Some(ThinkingSpan { started: Time(from), ended: Time(from + ms) });
    let turn = |term: &mut TestTerminal, live: bool| {
        let thought = "**Reading**\n\nI read `it`.\n\n**Planning**\n\n- a\n- b";
        let reply = vec![
            Block::Thinking(thinking(thought, span(1_000_000, 4_000))),
            Block::Thinking(hidden()),
            text_block("Let me **look**."),
            call("c1", "read", r#"{"path":"a.txt"}"#),
        ];
        let results = aside_core::block::ToolResult {
            id: "c1".into(),
            name: "read".into(),
            content: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b".into(),
            is_error: false,
            media: Vec::new(),
        };
        let last = vec![Block::Thinking(thinking("So.", span(1_004_000, 900)))];
        if live {
            term.line("why?");
            term.send();
            term.open(0, OpenedBlock::Thinking);
            for piece in thought.split_inclusive('\n') {
                term.grow(0, piece);
            }
            term.advance(4_000);
            term.close(0, reply[0].clone());
            term.open(1, OpenedBlock::Thinking);
            term.close(1, reply[1].clone());
            term.open(2, OpenedBlock::Text);
            term.grow(2, "Let me **lo");
            term.close(2, reply[2].clone());
            term.close(3, reply[3].clone());
            term.update(Update::ReplyEnded(ReplyEnd { ending: Ending::ToolCalls, error: None }));
            term.update(Update::ToolEnded(Box::new(results)));
            term.send();
            term.open(0, OpenedBlock::Thinking);
            term.grow(0, "So.");
            term.close(0, last[0].clone());
            term.end(TurnEnd::ThinkingOnly { for_length: false });
        } else {
            let messages = vec![
                Message::new(Role::User, vec![text_block("why?")]),
                Message::new(Role::Assistant, reply),
                Message::new(Role::Tool, vec![Block::ToolResult(results)]),
                Message::new(Role::Assistant, last),
            ];
            term.update(Update::Restored(messages.into_iter().map(Arc::new).collect()));
        }
    };
    for view in ThinkingDisplay::ALL {
        for width in [20, 40, 80] {
            let (mut live, mut restored) =
                (TestTerminal::with_view(width, 60, *view), TestTerminal::with_view(width, 60, *view));
            turn(&mut live, true);
            turn(&mut restored, false);
            assert_eq!(live.transcript(), restored.transcript(), "{view} at {width}");
        }
    }
}

/// A provider that cites sources splits a sentence into many blocks.
#[test]
fn consecutive_text_blocks_are_one_text() {
    let mut term = TestTerminal::new(60, 20);
    term.send();
    term.write(0, "It is **31 m");
    term.write(1, " high**");
    term.open(2, OpenedBlock::Text);
    term.grow(2, "?");
    term.close(2, text_block("."));
    assert_eq!(term.transcript(), ["It is 31 m high."]);
    term.send();
    term.write(0, "Another reply.");
    assert_eq!(term.transcript(), ["It is 31 m high.", "Another reply."]);
    term.open(1, OpenedBlock::Text);
    term.grow(1, "Hm");
    term.update(Update::Refiled { block: BlockId(1), to: ProseKind::Thinking });
    term.close(1, Block::Thinking(thinking("Hm.", None)));
    let said = term.transcript();
    assert_eq!(said[1..], ["Another reply.".to_owned(), "▶ Thought · \"Hm.\" (click to expand) · Ctrl+O".to_owned()]);
}

#[test]
fn t12_the_reader_shows_a_title_once() {
    let mut term = TestTerminal::new(60, 12);
    term.line("why?");
    term.send();
    term.think(0, "**Reading the code**\n\nIt is long.", 2_000);
    term.write(1, "Because.");
    term.end(TurnEnd::Answered);
    term.line("/reader");
    assert_eq!(term.rows()[..4], ["Thought 1 of 1 · 2s", "Reading the code", "", "It is long."]);
    // A title that does not stand right below is shown above.
    term.key(KeyCode::Esc);
    term.line("and?");
    term.send();
    term.think(2, "Hm.\n\n**Reading the code**\n\nIt is long.", 2_000);
    term.end(TurnEnd::Answered);
    term.line("/reader");
    assert_eq!(term.rows()[..2], ["Thought 2 of 2 · 2s · Reading the code", "Hm."]);
}
