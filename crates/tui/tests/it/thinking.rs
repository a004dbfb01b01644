//! How thinking looks (T2-T6).

use aside_core::block::{Block, Span, Time};
use aside_core::event::{BlockId, End, Ending, Side};
use aside_core::message::{Message, Role};
use aside_core::settings::Display;
use aside_core::turn::TurnEnd;
use aside_tui::seam::{Command, Opening, Status, Update};
use aside_tui::transcript::THINKING_ONLY;
use crossterm::event::KeyCode;

use crate::support::{Stage, call, hidden, thinking, words};

const LONG: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve";

#[test]
fn t2_the_header_says_what_is_known() {
    let long = "The user wants to know why the build fails on one machine only";
    #[rustfmt::skip]
    let cases: &[(&str, &str, Option<u64>, u16, &str)] = &[
        ("time and words",   long,                     Some(12_000), 80, "▶ Thought for 12s · \"The user wants to know why the build…\" (click to expand)"),
        ("narrow",           long,                     Some(12_000), 40, "▶ Thought for 12s · \"The user wants to…\""),
        ("very narrow",      long,                     Some(12_000), 20, "▶ Thought for 12s"),
        ("no time",          "Hm.",                    None,         40, "▶ Thought · \"Hm.\" (click to expand)"),
        ("short",            "Hm.",                    Some(400),    40, "▶ Thought for 0.4s · \"Hm.\""),
        ("minutes",          "Hm.",                    Some(125_000), 40, "▶ Thought for 2m 5s · \"Hm.\""),
        ("title",            "**Reading it**\n\nI look", Some(2_000), 60, "▶ Thought for 2s · Reading it (click to expand)"),
        ("marks left out",   "## *Plan* first",        None,         40, "▶ Thought · \"Plan first\""),
    ];
    for (name, text, ms, width, expected) in cases {
        let mut stage = Stage::new(*width, 12);
        let span = ms.map(|ms| Span { started: Time(0), ended: Time(ms) });
        stage.open(0, Opening::Thinking);
        stage.close(0, Block::Thinking(thinking(text, span)));
        let header = stage.said()[0].clone();
        let header = if expected.ends_with("expand)") { header } else { header.replace(" (click to expand)", "") };
        assert_eq!(&header, expected, "{name}");
    }
}

#[test]
fn t2_only_the_first_fold_of_a_session_says_how_to_open() {
    let mut stage = Stage::new(80, 12);
    stage.think(0, "First.", 2000);
    stage.think(1, "Second.", 2000);
    assert_eq!(stage.said(), ["▶ Thought for 2s · \"First.\" (click to expand)", "▶ Thought for 2s · \"Second.\""]);
    let other = vec![Block::Thinking(thinking("Other.", None)), words("So.")];
    stage.tell(Update::Restored(vec![Message::new(Role::Assistant, other)]));
    assert_eq!(stage.said()[0], "▶ Thought · \"Other.\" (click to expand)", "another session, another first fold");
}

#[test]
fn t2_while_it_runs_the_header_counts() {
    let mut stage = Stage::new(80, 12);
    stage.send();
    stage.open(0, Opening::Thinking);
    stage.grow(0, "**Reading it**\n\nI look at the code and see what it does.");
    stage.pass(7_300);
    let header = stage.said()[0].clone();
    assert!(header.contains("Thinking · Reading it · 7s · ~"), "{header}");
    assert!(header.ends_with("tokens"), "{header}");
    let before = header.chars().next();
    stage.pass(100);
    assert_ne!(stage.said()[0].chars().next(), before, "the spinner turns");
}

#[test]
fn t3_views_while_it_streams_and_when_it_is_done() {
    // Rows of the thought without its header: while it runs, and after.
    #[rustfmt::skip]
    let cases = [
        (Display::Full,      Some((12, 12))),
        (Display::Live,      Some((8, 0))),
        (Display::Collapsed, Some((0, 0))),
        (Display::Off,       None),
    ];
    for (view, expected) in cases {
        let mut stage = Stage::viewed(60, 40, view);
        stage.open(0, Opening::Thinking);
        stage.grow(0, LONG);
        let running = stage.said();
        stage.close(0, Block::Thinking(thinking(LONG, None)));
        let done = stage.said();
        match expected {
            None => assert_eq!((running.len(), done.len()), (0, 0), "{view}"),
            Some((open, folded)) => {
                assert_eq!((running.len(), done.len()), (open + 1, folded + 1), "{view}");
                assert!(running[0].contains("Thinking") && done[0].contains("Thought"), "{view}");
            }
        }
        if view == Display::Live {
            assert_eq!(running.last().unwrap(), "│ twelve", "the window shows the end");
        }
    }
}

#[test]
fn t3_the_view_is_changed_by_command_and_key_for_all_thoughts_there_are() {
    let mut stage = Stage::new(60, 30);
    stage.think(0, "First.", 0);
    stage.think(1, "Second.", 0);
    #[rustfmt::skip]
    let steps: &[(&str, Display, bool)] = &[
        ("/thinking full",      Display::Full,      true),
        ("/thinking",           Display::Live,      false),
        (":thinking",           Display::Collapsed, false),
        (":toggle thinking",    Display::Off,       false),
        ("/thinking",           Display::Full,      true),
        ("/thinking collapsed", Display::Collapsed, false),
    ];
    for (line, view, shown) in steps {
        stage.line(line);
        let screen = stage.screen();
        assert!(screen.contains(&format!("Thinking: {view}")), "{line}: {screen}");
        assert_eq!(stage.sent.pop(), Some(Command::View(*view)), "{line}");
        for text in ["│ First.", "│ Second."] {
            assert_eq!(screen.contains(text), *shown, "{line}");
        }
        assert_eq!(screen.contains("Thought"), *view != Display::Off, "{line}");
    }
    stage.control('t');
    assert_eq!(stage.sent.pop(), Some(Command::View(Display::Off)));
}

#[test]
fn t3_what_the_engine_told_before_it_knew_does_not_turn_the_view_back() {
    let mut stage = Stage::new(60, 20);
    stage.think(0, "First.", 0);
    let told = |view| Update::Status(Box::new(Status { view, ..Status::default() }));
    stage.line("/thinking full");
    stage.tell(told(Display::Live));
    assert!(stage.screen().contains("│ First."), "the engine answers a question asked before");
    stage.tell(told(Display::Full));
    stage.tell(told(Display::Collapsed));
    assert!(!stage.screen().contains("│ First."), "and now it has news");
}

#[test]
fn t4_a_block_is_toggled_while_it_runs_and_the_choice_survives_its_end() {
    let mut stage = Stage::new(60, 30);
    stage.open(0, Opening::Thinking);
    stage.grow(0, LONG);
    assert_eq!(stage.said().len(), 9);
    stage.click(3, 0);
    assert_eq!(stage.said().len(), 13, "opened while it runs");
    stage.close(0, Block::Thinking(thinking(LONG, None)));
    assert_eq!(stage.said().len(), 13, "and still open when it is done");
    stage.click(3, 0);
    assert_eq!(stage.said().len(), 1);

    let mut stage = Stage::viewed(60, 30, Display::Full);
    stage.open(0, Opening::Thinking);
    stage.grow(0, LONG);
    stage.rows();
    stage.click(3, 0);
    assert_eq!(stage.said().len(), 1, "folded while it runs");
    stage.close(0, Block::Thinking(thinking(LONG, None)));
    assert_eq!(stage.said().len(), 1, "and still folded when it is done");
}

#[test]
fn t4_a_click_anywhere_on_the_live_window_opens_it() {
    let mut stage = Stage::new(60, 30);
    stage.open(0, Opening::Thinking);
    stage.grow(0, LONG);
    assert_eq!(stage.said().len(), 9);
    stage.click(5, 4);
    assert_eq!(stage.said().len(), 13);
    stage.click(5, 4);
    assert_eq!(stage.said().len(), 13, "an open one is text, to be selected and not to vanish");
}

#[test]
fn t4_tool_blocks_toggle_at_any_time_too() {
    let mut stage = Stage::new(60, 30);
    stage.call(0, "c1", "read", r#"{"path":"a.txt"}"#);
    assert_eq!(stage.said(), ["▶ ○ read a.txt"]);
    stage.control('o');
    assert_eq!(stage.said(), ["▼ ○ read a.txt", r#"  {"path":"a.txt"}"#], "before it has a result");
    stage.result("c1", "line one\nline two", false);
    assert_eq!(stage.said(), ["▼ ✓ read a.txt · 2 lines", "  line one", "  line two"], "the choice stays");
    stage.control('o');
    assert_eq!(stage.said(), ["▶ ✓ read a.txt · 2 lines"]);
}

#[test]
fn t5_a_summary_shows_its_current_item_and_all_of_them_when_done() {
    let mut stage = Stage::viewed(60, 30, Display::Full);
    stage.open(0, Opening::Thinking);
    let items = ["**Reading**\n\nI read it.", "**Planning**\n\nI plan it."];
    for item in items {
        stage.tell(Update::Item { block: BlockId(0) });
        stage.grow(0, item);
    }
    let running = stage.screen();
    assert!(running.contains("Thinking · Planning"), "{running}");
    assert!(running.contains("│ I plan it.") && !running.contains("I read it."), "{running}");
    stage.close(0, Block::Thinking(thinking(&items.join("\n\n"), None)));
    let done = stage.said();
    assert_eq!(done[0], "▼ Thought · Reading");
    assert_eq!(done[1..], ["│ Reading", "│", "│ I read it.", "│", "│ Planning", "│", "│ I plan it."]);
}

#[test]
fn t6_a_reply_of_nothing_but_thinking_stays_open_and_says_so() {
    for view in [Display::Live, Display::Collapsed, Display::Full] {
        let mut stage = Stage::viewed(100, 20, view);
        stage.send();
        stage.think(0, "I thought.", 1000);
        stage.end(TurnEnd::ThinkingOnly { for_length: false });
        let said = stage.said();
        assert_eq!(said[..2], ["▼ Thought for 1s · \"I thought.\"".to_owned(), "│ I thought.".to_owned()], "{view}");
        assert_eq!(said[2], format!("! {THINKING_ONLY}"), "{view}");
        assert_eq!(said.len(), 3, "no error: {said:?}");
    }
    let mut stage = Stage::new(100, 20);
    stage.send();
    stage.think(0, "I thought.", 1000);
    stage.end(TurnEnd::ThinkingOnly { for_length: true });
    let screen = stage.screen();
    assert!(screen.contains("it stopped at the output limit") && screen.contains("request.maxTokens"), "{screen}");
}

#[test]
fn t6_no_output_at_all_is_an_error_one_can_see() {
    let mut stage = Stage::new(80, 20);
    stage.send();
    stage.end(TurnEnd::Empty);
    assert_eq!(stage.said(), ["✗ the model sent nothing at all", "  hint: /retry, or another /model"]);
}

#[test]
fn a_thought_that_cannot_be_read_says_who_hides_it() {
    let mut stage = Stage::new(60, 20);
    stage.open(0, Opening::Thinking);
    stage.close(0, Block::Thinking(hidden()));
    assert_eq!(stage.said(), ["▶ Thought · hidden by provider (click to expand)"]);
    stage.click(0, 0);
    assert_eq!(stage.said()[1], "│ nothing of it can be read; 640 sealed bytes are kept");
}

#[test]
fn a_thought_without_a_word_is_no_thought() {
    for text in ["", "  \n \n"] {
        let mut stage = Stage::viewed(60, 20, Display::Full);
        stage.open(0, Opening::Thinking);
        stage.close(0, Block::Thinking(thinking(text, None)));
        assert_eq!(stage.said(), Vec::<String>::new());
    }
}

#[test]
fn an_interrupted_thought_says_so_and_keeps_what_came() {
    let mut stage = Stage::new(60, 20);
    stage.send();
    stage.open(0, Opening::Thinking);
    stage.grow(0, "I was just about");
    stage.pass(5_000);
    stage.key(KeyCode::Esc);
    assert_eq!(stage.sent, [Command::Interrupt]);
    stage.tell(Update::TurnEnded(TurnEnd::Interrupted));
    assert_eq!(stage.said(), ["▶ Thought for 5s · interrupted · \"I was just about\"", "! interrupted"]);
}

#[test]
fn text_that_turns_out_to_be_a_thought_moves_over() {
    let mut stage = Stage::viewed(60, 20, Display::Full);
    stage.open(0, Opening::Text);
    stage.grow(0, "I wonder");
    assert_eq!(stage.said(), ["I wonder"]);
    stage.tell(Update::Refiled { block: BlockId(0), to: Side::Thinking });
    stage.grow(0, " why");
    assert_eq!(stage.said()[1], "│ I wonder why");
    stage.tell(Update::Refiled { block: BlockId(0), to: Side::Text });
    assert_eq!(stage.said(), ["I wonder why"]);
}

#[test]
fn a_last_word_wins_over_the_deltas() {
    let mut stage = Stage::viewed(60, 20, Display::Full);
    stage.open(0, Opening::Thinking);
    stage.grow(0, "draft");
    stage.close(0, Block::Thinking(thinking("final", None)));
    stage.open(1, Opening::Text);
    stage.grow(1, "half");
    stage.close(1, words("whole"));
    assert_eq!(stage.said(), ["▼ Thought · \"final\"", "│ final", "whole"]);
}

/// One path: a session looks after a restart as it looked before.
#[test]
fn live_and_restored_look_the_same() {
    let span = |from: u64, ms: u64| Some(Span { started: Time(from), ended: Time(from + ms) });
    let turn = |stage: &mut Stage, live: bool| {
        let thought = "**Reading**\n\nI read `it`.\n\n**Planning**\n\n- a\n- b";
        let reply = vec![
            Block::Thinking(thinking(thought, span(1_000_000, 4_000))),
            Block::Thinking(hidden()),
            words("Let me **look**."),
            call("c1", "read", r#"{"path":"a.txt"}"#),
        ];
        let results = aside_core::block::ToolResult {
            id: "c1".into(),
            name: "read".into(),
            content: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b".into(),
            is_error: false,
        };
        let last = vec![Block::Thinking(thinking("So.", span(1_004_000, 900)))];
        if live {
            stage.line("why?");
            stage.send();
            stage.open(0, Opening::Thinking);
            for piece in thought.split_inclusive('\n') {
                stage.grow(0, piece);
            }
            stage.pass(4_000);
            stage.close(0, reply[0].clone());
            stage.open(1, Opening::Thinking);
            stage.close(1, reply[1].clone());
            stage.open(2, Opening::Text);
            stage.grow(2, "Let me **lo");
            stage.close(2, reply[2].clone());
            stage.close(3, reply[3].clone());
            stage.tell(Update::ReplyEnded(End { ending: Ending::ToolCalls, error: None }));
            stage.tell(Update::ToolEnded(Box::new(results)));
            stage.send();
            stage.open(0, Opening::Thinking);
            stage.grow(0, "So.");
            stage.close(0, last[0].clone());
            stage.end(TurnEnd::ThinkingOnly { for_length: false });
        } else {
            let messages = vec![
                Message::new(Role::User, vec![words("why?")]),
                Message::new(Role::Assistant, reply),
                Message::new(Role::Tool, vec![Block::ToolResult(results)]),
                Message::new(Role::Assistant, last),
            ];
            stage.tell(Update::Restored(messages));
        }
    };
    for view in Display::ALL {
        for width in [20, 40, 80] {
            let (mut live, mut restored) = (Stage::viewed(width, 60, *view), Stage::viewed(width, 60, *view));
            turn(&mut live, true);
            turn(&mut restored, false);
            assert_eq!(live.said(), restored.said(), "{view} at {width}");
        }
    }
}

/// A provider that cites its sources cuts a sentence into many blocks.
#[test]
fn texts_that_follow_each_other_are_one_text() {
    let mut stage = Stage::new(60, 20);
    stage.send();
    stage.write(0, "It is **31 m");
    stage.write(1, " high**");
    stage.open(2, Opening::Text);
    stage.grow(2, "?");
    stage.close(2, words("."));
    assert_eq!(stage.said(), ["It is 31 m high."]);
    stage.send();
    stage.write(0, "Another reply.");
    assert_eq!(stage.said(), ["It is 31 m high.", "Another reply."]);
    stage.open(1, Opening::Text);
    stage.grow(1, "Hm");
    stage.tell(Update::Refiled { block: BlockId(1), to: Side::Thinking });
    stage.close(1, Block::Thinking(thinking("Hm.", None)));
    let said = stage.said();
    assert_eq!(said[1..], ["Another reply.".to_owned(), "▶ Thought · \"Hm.\" (click to expand)".to_owned()]);
}
