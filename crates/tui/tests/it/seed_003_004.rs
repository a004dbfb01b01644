//! Every rule of seeds 003 and 004 about the display and how the screen reacts, one test each. Where
//! a requirement overrides the seed, the test follows the requirement and the table names it.
//!
//! | seed | rule | overridden by |
//! |---|---|---|
//! | 003.01 | thinking is shown in real time | |
//! | 003.02 | `/thinking`, `:thinking`, `:toggle thinking` | T3: four views |
//! | 003.03 | the new view is announced | T3: `Thinking: …` |
//! | 003.04 | hidden thinking is kept | |
//! | 003.05 | the setting `show_thinking` | S5 |
//! | 003.06 | the preference outlives the session | S3 |
//! | 003.07 | while thinking is hidden the activity is still shown | T3: not in the transcript |
//! | 003.08 | shown while it streams, folded by itself, a click opens | T3: `live` |
//! | 004.01 | running and folded: the title of the current item | |
//! | 004.02 | running and open: its title and its content | |
//! | 004.03 | done and folded: `Thought for X seconds` | T2: `12s` |
//! | 004.04 | done and open: all items as Markdown | |
//! | 004.05 | running and folded are independent, for thinking | T4: always |
//! | 004.06 | and for tools | T4 |
//! | 004.07 | a new item shows nothing of the last | |
//! | 004.08 | thinking ends with its item, not with the reply | |
//! | 004.09 | live and restored look the same, with stored times | P3 |
//! | 004.10 | encrypted thinking is marked as hidden | |
//! | 004.11 | thinking without items is shown as usual | |
//! | 004.12 | a session of every kind of block is restored in order | |

use std::sync::Arc;

use aside_core::block::{Block, ThinkingSpan, Time, ToolResult};
use aside_core::event::{BlockId, Ending, ReplyEnd};
use aside_core::message::{Message, Role};
use aside_core::settings::{Layer, Settings, ThinkingDisplay};
use aside_core::turn::TurnEnd;
use aside_front::{Command, OpenedBlock, Status, Update};
use crossterm::event::KeyCode;
use ratatui::style::Modifier;

use crate::support::{TestTerminal, call, hidden, text_block, thinking};

fn summary(term: &mut TestTerminal, items: &[&str]) {
    term.open(0, OpenedBlock::Thinking);
    for item in items {
        term.update(Update::Item { block: BlockId(0) });
        term.grow(0, item);
    }
}

#[test]
fn seed_003_01_thinking_is_shown_in_real_time() {
    let mut term = TestTerminal::new(60, 20);
    term.open(0, OpenedBlock::Thinking);
    term.grow(0, "one");
    assert_eq!(term.transcript()[1], "│ one");
    term.grow(0, " two");
    assert_eq!(term.transcript()[1], "│ one two");
}

#[test]
fn seed_003_02_a_command_toggles_all_thinking() {
    for line in ["/thinking", ":thinking", ":toggle thinking"] {
        let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Collapsed);
        term.think(0, "First.", 0);
        term.think(1, "Second.", 0);
        term.open(2, OpenedBlock::Thinking);
        term.grow(2, "Third");
        assert_eq!(term.transcript().len(), 3, "{line}");
        term.line(line);
        assert_eq!(term.transcript(), Vec::<String>::new(), "{line}: off");
        term.line(line);
        assert_eq!(term.transcript().len(), 6, "{line}: full, the past and the running one");
    }
}

#[test]
fn seed_003_03_the_new_view_is_announced() {
    let mut term = TestTerminal::new(60, 20);
    for view in ThinkingDisplay::ALL {
        term.line(&format!("/thinking {view}"));
        assert_eq!(term.rows().last().unwrap(), &format!("Thinking: {view}"));
    }
    term.line(":toggle thinking");
    assert_eq!(term.rows().last().unwrap(), "Thinking: full");
}

#[test]
fn seed_003_04_hidden_thinking_is_kept() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    term.think(0, "Kept.", 2000);
    term.write(1, "So.");
    let shown = term.transcript();
    term.line("/thinking off");
    assert_eq!(term.transcript(), ["So."]);
    term.control('r');
    assert!(term.screen().contains("Kept."), "it can still be read");
    term.key(KeyCode::Esc);
    term.line("/thinking full");
    assert_eq!(term.transcript(), shown);
}

#[test]
fn seed_003_05_show_thinking_is_a_setting() {
    let mut settings = Settings::new();
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    term.think(0, "I wonder.", 0);
    for (value, shown) in [("false", false), ("true", true)] {
        term.line(&format!("/set show_thinking={value}"));
        let asked = term.sent.pop();
        let Some(Command::Set { key, value }) = asked else { panic!("{asked:?}") };
        settings.set(Layer::Session, &key, &value).unwrap();
        term.update(Update::Status(Box::new(Status { view: settings.display(), ..Status::default() })));
        assert_eq!(term.screen().contains("I wonder."), shown, "{value}");
    }
}

#[test]
fn seed_003_06_the_preference_outlives_the_session() {
    for view in ThinkingDisplay::ALL {
        let mut term = TestTerminal::new(60, 20);
        term.line(&format!("/thinking {view}"));
        assert_eq!(term.sent, [Command::View(*view)], "the engine stores it");
        // The next screen starts with the stored view.
        let mut next = TestTerminal::with_view(60, 20, *view);
        next.think(0, "I wonder.", 0);
        let seen = (next.screen().contains("I wonder."), next.screen().contains("│ I wonder."));
        assert_eq!(seen, (*view != ThinkingDisplay::Off, *view == ThinkingDisplay::Full), "{view}");
    }
}

#[test]
fn seed_003_07_while_thinking_is_hidden_the_activity_is_still_shown() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Off);
    term.line("why?");
    term.send();
    term.open(0, OpenedBlock::Thinking);
    term.grow(0, "I wonder");
    term.advance(4000);
    let screen = term.screen();
    assert!(screen.contains("⠋ thinking · 4s"), "{screen}");
    assert!(!screen.contains("I wonder"), "and nothing of the thought: {screen}");
}

#[test]
fn seed_003_08_it_is_shown_while_it_streams_and_folds_by_itself() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Live);
    term.open(0, OpenedBlock::Thinking);
    term.grow(0, "I wonder");
    assert_eq!(term.transcript().len(), 2);
    term.close(0, Block::Thinking(thinking("I wonder", None)));
    assert_eq!(term.transcript(), ["▶ Thought · \"I wonder\" (click to expand) · Ctrl+O"]);
    term.click(3, 0);
    assert_eq!(term.transcript()[1], "│ I wonder");
}

#[test]
fn seed_004_01_running_and_folded_shows_the_title_of_the_current_item() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Collapsed);
    summary(&mut term, &["**Reading**\n\nI read it."]);
    let said = term.transcript();
    assert!(said.len() == 1 && said[0].contains("Thinking · Reading"), "{said:?}");
    term.update(Update::Item { block: BlockId(0) });
    term.grow(0, "**Planning**\n\nI pl");
    let said = term.transcript();
    assert!(said.len() == 1 && said[0].contains("Thinking · Planning"), "{said:?}");
}

#[test]
fn seed_004_02_running_and_open_shows_the_title_and_content_of_the_current_item() {
    for view in [ThinkingDisplay::Full, ThinkingDisplay::Live] {
        let mut term = TestTerminal::with_view(60, 20, view);
        summary(&mut term, &["**Reading**\n\nI read it.", "**Planning**\n\nI plan it."]);
        let said = term.transcript();
        assert!(said[0].contains("Thinking · Planning"), "{said:?}");
        assert_eq!(said[1..], ["│ I plan it."], "the title is not shown twice: {view}");
    }
}

#[test]
fn seed_004_03_done_and_folded_shows_the_duration() {
    let mut term = TestTerminal::new(60, 20);
    for (block, ms, expected) in [(0, 12_000, "for 12s"), (1, 1_000, "for 1s"), (2, 65_000, "for 1m 5s")] {
        term.think(block, "**Reading**\n\nI read it.", ms);
        let header = term.transcript().pop().unwrap();
        assert!(header.starts_with(&format!("▶ Thought {expected} · Reading")), "{header}");
    }
}

#[test]
fn seed_004_04_done_and_open_shows_all_items_as_markdown() {
    let items = ["**Reading**\n\nI read `it`.", "**Planning**\n\n1. one\n2. two"];
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    summary(&mut term, &items);
    term.close(0, Block::Thinking(thinking(&items.join("\n\n"), None)));
    let rows = ["│ Reading", "│", "│ I read it.", "│", "│ Planning", "│", "│ 1. one", "│ 2. two"];
    assert_eq!(term.transcript()[1..], rows);
    let (_, title) = term.style_of("Planning");
    assert!(title.contains(Modifier::BOLD), "{title:?}");
}

#[test]
fn seed_004_05_running_and_folded_are_independent_for_thinking() {
    for (view, rows) in
        [(ThinkingDisplay::Full, (3, 1)), (ThinkingDisplay::Live, (3, 1)), (ThinkingDisplay::Collapsed, (1, 3))]
    {
        let mut term = TestTerminal::with_view(60, 20, view);
        term.open(0, OpenedBlock::Thinking);
        term.grow(0, "one\ntwo");
        assert_eq!(term.transcript().len(), rows.0, "{view}");
        term.control('o');
        if view == ThinkingDisplay::Live {
            // The first toggle opens the tail, the second folds it.
            term.control('o');
        }
        assert_eq!(term.transcript().len(), rows.1, "{view}: toggled while it runs");
        assert!(term.transcript()[0].contains("Thinking"), "{view}: and it runs on");
        term.close(0, Block::Thinking(thinking("one\ntwo", None)));
        assert_eq!(term.transcript().len(), rows.1, "{view}: the end changes nothing");
        term.control('o');
        assert_eq!(term.transcript().len(), 4 - rows.1, "{view}: toggled when it is done");
    }
}

#[test]
fn seed_004_06_running_and_folded_are_independent_for_tools() {
    let mut term = TestTerminal::new(60, 20);
    term.open(0, OpenedBlock::ToolCall { name: "read".into() });
    term.grow(0, r#"{"path":"#);
    assert_eq!(term.transcript(), ["▶ ⠋ read"], "folded and streaming");
    term.control('o');
    assert_eq!(term.transcript(), ["▼ ⠋ read", r#"  {"path":"#], "open and streaming");
    term.close(0, call("c1", "read", r#"{"path":"a.txt"}"#));
    assert_eq!(term.transcript()[0], "▼ ○ read a.txt");
    let Block::ToolCall(started) = call("c1", "read", r#"{"path":"a.txt"}"#) else { unreachable!() };
    term.update(Update::ToolStarted(Box::new(started)));
    assert_eq!(term.transcript()[0], "▼ ⠋ read a.txt", "open and running");
    term.control('o');
    assert_eq!(term.transcript(), ["▶ ⠋ read a.txt"], "folded and running");
    term.result("c1", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b", false);
    assert_eq!(
        term.transcript(),
        ["▶ ✓ read a.txt · +1 -1"],
        "the end keeps the choice, although a diff opens by itself"
    );
}

#[test]
fn seed_004_07_a_new_item_shows_nothing_of_the_last() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    summary(&mut term, &["**Reading**\n\nI read it.", "No title here,\nonly words."]);
    let said = term.transcript();
    assert!(!said[0].contains("Reading"), "the title of an item is not that of the next: {said:?}");
    assert_eq!(said[1..], ["│ No title here,", "│ only words."]);
}

#[test]
fn seed_004_08_thinking_ends_with_its_item_and_not_with_the_reply() {
    let mut term = TestTerminal::new(60, 20);
    term.send();
    term.think(0, "**Reading**\n\nI read it.", 3000);
    term.open(1, OpenedBlock::Text);
    term.grow(1, "So");
    term.advance(9000);
    assert!(term.app.is_busy());
    assert_eq!(
        term.transcript(),
        ["▶ Thought for 3s · Reading (click to expand) · Ctrl+O", "So"],
        "its duration stays"
    );
}

#[test]
fn seed_004_09_live_and_restored_look_the_same_with_stored_times() {
    let span = ThinkingSpan { started: Time(5_000), ended: Time(9_000) };
    let blocks = vec![
        Block::Thinking(thinking("**Reading**\n\nI read it.\n\n**Planning**\n\nI plan.", Some(span))),
        text_block("So."),
    ];
    let mut live = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    summary(&mut live, &["**Reading**\n\nI read it.", "**Planning**\n\nI plan."]);
    live.close(0, blocks[0].clone());
    live.write(1, "So.");
    let mut restored = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    restored.update(Update::Restored(vec![Arc::new(Message::new(Role::Assistant, blocks))]));
    assert_eq!(live.transcript()[..2], ["▼ Thought for 4s", "│ Reading"], "the title is not shown twice");
    assert_eq!(live.transcript(), restored.transcript());
    restored.advance(60_000);
    assert_eq!(live.transcript(), restored.transcript(), "the time no longer changes");
}

#[test]
fn seed_004_10_encrypted_thinking_is_marked_as_hidden() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    term.open(0, OpenedBlock::Thinking);
    term.close(0, Block::Thinking(hidden()));
    term.write(1, "So.");
    let said = term.transcript();
    assert_eq!(said[0], "▼ Thought · hidden by provider");
    assert!(said[1].contains("640 sealed bytes") && !said[1].contains("xxx"), "{said:?}");
    assert_eq!(said[2..], ["So."]);
}

#[test]
fn seed_004_11_thinking_without_items_is_shown_as_usual() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    term.open(0, OpenedBlock::Thinking);
    term.grow(0, "I read it.\n\n");
    term.grow(0, "I plan.");
    let running = term.transcript();
    assert_eq!(running[1..], ["│ I read it.", "│", "│ I plan."], "the whole text while it runs");
    term.close(0, Block::Thinking(thinking("I read it.\n\nI plan.", None)));
    let done = term.transcript();
    assert_eq!((done[0].as_str(), &done[1..]), ("▼ Thought · \"I read it…\"", &running[1..]));
}

#[test]
fn seed_004_12_a_session_of_every_kind_of_block_is_restored_in_order() {
    let result = ToolResult {
        id: "c1".into(),
        name: "read".into(),
        content: "one\ntwo".into(),
        is_error: false,
        media: Vec::new(),
    };
    let first = vec![
        Block::Thinking(thinking("**Reading**\n\nI read it.", None)),
        Block::Thinking(hidden()),
        text_block("Let me look."),
        call("c1", "read", r#"{"path":"a.txt"}"#),
    ];
    let messages = vec![
        Message::new(Role::User, vec![text_block("why?")]),
        Message::new(Role::Assistant, first),
        Message::new(Role::Tool, vec![Block::ToolResult(result)]),
        Message::new(Role::Assistant, vec![Block::Thinking(thinking("Plain.", None)), text_block("So.")]),
    ];
    let mut term = TestTerminal::new(60, 20);
    term.update(Update::Restored(messages.into_iter().map(Arc::new).collect()));
    let expected = [
        "❯ why?",
        "▶ Thought · Reading (click to expand) · Tab, then o",
        "▶ Thought · hidden by provider",
        "Let me look.",
        "▶ ✓ read a.txt · 2 lines",
        "▶ Thought · \"Plain.\"",
        "So.",
    ];
    assert_eq!(term.transcript(), expected);
    // The session continues after it.
    term.line("and?");
    term.send();
    term.write(0, "And so.");
    term.update(Update::ReplyEnded(ReplyEnd { ending: Ending::Stop, error: None }));
    term.update(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(term.transcript()[7..], ["❯ and?", "And so."]);
}
