//! Every rule of the seeds 003 and 004 about what is shown and how the
//! screen reacts, one test each. Where a row of the requirements decides
//! otherwise, the test holds to the row and says so.
//!
//! | seed | rule | decided by |
//! |---|---|---|
//! | 003.01 | a thought is shown in real time | |
//! | 003.02 | `/thinking`, `:thinking`, `:toggle thinking` | T3: four views |
//! | 003.03 | what it is now is said | T3: `Thinking: …` |
//! | 003.04 | hidden is not gone | |
//! | 003.05 | the setting `show_thinking` | S5 |
//! | 003.06 | the preference outlives the session | S3 |
//! | 003.07 | while it is hidden one still sees that the model works | T3: not by the thought |
//! | 003.08 | shown while it streams, folded by itself, a click opens | T3: `live` |
//! | 004.01 | running and folded: the title of the current item | |
//! | 004.02 | running and open: its title and its content | |
//! | 004.03 | done and folded: `Thought for X seconds` | T2: `12s` |
//! | 004.04 | done and open: all items as Markdown | |
//! | 004.05 | running and folded are two things, for thoughts | T4: always |
//! | 004.06 | and for tools | T4 |
//! | 004.07 | a new item begins with nothing of the last | |
//! | 004.08 | a thought ends with its item, not with the reply | |
//! | 004.09 | live and restored are one, with the times of the store | P3 |
//! | 004.10 | an encrypted thought is opaque | |
//! | 004.11 | a thought without items is shown as ever | |
//! | 004.12 | a session of every kind of block is restored in order | |

use aside_core::block::{Block, Span, Time, ToolResult};
use aside_core::event::{BlockId, End, Ending};
use aside_core::message::{Message, Role};
use aside_core::settings::{Display, Layer, Settings};
use aside_core::turn::TurnEnd;
use aside_tui::seam::{Command, Opening, Status, Update};
use crossterm::event::KeyCode;
use ratatui::style::Modifier;

use crate::support::{Stage, call, hidden, thinking, words};

fn summary(stage: &mut Stage, items: &[&str]) {
    stage.open(0, Opening::Thinking);
    for item in items {
        stage.tell(Update::Item { block: BlockId(0) });
        stage.grow(0, item);
    }
}

#[test]
fn seed_003_01_a_thought_is_shown_in_real_time() {
    let mut stage = Stage::new(60, 20);
    stage.open(0, Opening::Thinking);
    stage.grow(0, "one");
    assert_eq!(stage.said()[1], "│ one");
    stage.grow(0, " two");
    assert_eq!(stage.said()[1], "│ one two");
}

#[test]
fn seed_003_02_a_command_toggles_all_thoughts() {
    for line in ["/thinking", ":thinking", ":toggle thinking"] {
        let mut stage = Stage::viewed(60, 20, Display::Collapsed);
        stage.think(0, "First.", 0);
        stage.think(1, "Second.", 0);
        stage.open(2, Opening::Thinking);
        stage.grow(2, "Third");
        assert_eq!(stage.said().len(), 3, "{line}");
        stage.line(line);
        assert_eq!(stage.said(), Vec::<String>::new(), "{line}: off");
        stage.line(line);
        assert_eq!(stage.said().len(), 6, "{line}: full, the past and the running one");
    }
}

#[test]
fn seed_003_03_what_it_is_now_is_said() {
    let mut stage = Stage::new(60, 20);
    for view in Display::ALL {
        stage.line(&format!("/thinking {view}"));
        assert_eq!(stage.rows().last().unwrap(), &format!("Thinking: {view}"));
    }
    stage.line(":toggle thinking");
    assert_eq!(stage.rows().last().unwrap(), "Thinking: full");
}

#[test]
fn seed_003_04_hidden_is_not_gone() {
    let mut stage = Stage::viewed(60, 20, Display::Full);
    stage.think(0, "Kept.", 2000);
    stage.write(1, "So.");
    let shown = stage.said();
    stage.line("/thinking off");
    assert_eq!(stage.said(), ["So."]);
    stage.control('r');
    assert!(stage.screen().contains("Kept."), "it can be read all the same");
    stage.key(KeyCode::Esc);
    stage.line("/thinking full");
    assert_eq!(stage.said(), shown);
}

#[test]
fn seed_003_05_show_thinking_is_a_setting() {
    let mut settings = Settings::new();
    let mut stage = Stage::viewed(60, 20, Display::Full);
    stage.think(0, "I wonder.", 0);
    for (value, shown) in [("false", false), ("true", true)] {
        stage.line(&format!("/set show_thinking={value}"));
        let asked = stage.sent.pop();
        let Some(Command::Set { key, value }) = asked else { panic!("{asked:?}") };
        settings.set(Layer::Session, &key, &value).unwrap();
        stage.tell(Update::Status(Box::new(Status { view: settings.display(), ..Status::default() })));
        assert_eq!(stage.screen().contains("I wonder."), shown, "{value}");
    }
}

#[test]
fn seed_003_06_the_preference_outlives_the_session() {
    for view in Display::ALL {
        let mut stage = Stage::new(60, 20);
        stage.line(&format!("/thinking {view}"));
        assert_eq!(stage.sent, [Command::View(*view)], "it is to be kept");
        // What is kept is what the next screen begins with.
        let mut next = Stage::viewed(60, 20, *view);
        next.think(0, "I wonder.", 0);
        let seen = (next.screen().contains("I wonder."), next.screen().contains("│ I wonder."));
        assert_eq!(seen, (*view != Display::Off, *view == Display::Full), "{view}");
    }
}

#[test]
fn seed_003_07_while_it_is_hidden_one_still_sees_that_the_model_works() {
    let mut stage = Stage::viewed(60, 20, Display::Off);
    stage.line("why?");
    stage.send();
    stage.open(0, Opening::Thinking);
    stage.grow(0, "I wonder");
    stage.pass(4000);
    let screen = stage.screen();
    assert!(screen.contains("⠋ thinking · 4s"), "{screen}");
    assert!(!screen.contains("I wonder"), "and nothing of the thought: {screen}");
}

#[test]
fn seed_003_08_it_is_shown_while_it_streams_and_folds_by_itself() {
    let mut stage = Stage::viewed(60, 20, Display::Live);
    stage.open(0, Opening::Thinking);
    stage.grow(0, "I wonder");
    assert_eq!(stage.said().len(), 2);
    stage.close(0, Block::Thinking(thinking("I wonder", None)));
    assert_eq!(stage.said(), ["▶ Thought · \"I wonder\" (click to expand)"]);
    stage.click(3, 0);
    assert_eq!(stage.said()[1], "│ I wonder");
}

#[test]
fn seed_004_01_running_and_folded_shows_the_title_of_the_current_item() {
    let mut stage = Stage::viewed(60, 20, Display::Collapsed);
    summary(&mut stage, &["**Reading**\n\nI read it."]);
    let said = stage.said();
    assert!(said.len() == 1 && said[0].contains("Thinking · Reading"), "{said:?}");
    stage.tell(Update::Item { block: BlockId(0) });
    stage.grow(0, "**Planning**\n\nI pl");
    let said = stage.said();
    assert!(said.len() == 1 && said[0].contains("Thinking · Planning"), "{said:?}");
}

#[test]
fn seed_004_02_running_and_open_shows_the_title_and_content_of_the_current_item() {
    for view in [Display::Full, Display::Live] {
        let mut stage = Stage::viewed(60, 20, view);
        summary(&mut stage, &["**Reading**\n\nI read it.", "**Planning**\n\nI plan it."]);
        let said = stage.said();
        assert!(said[0].contains("Thinking · Planning"), "{said:?}");
        assert_eq!(said[1..], ["│ Planning", "│", "│ I plan it."], "{view}");
    }
}

#[test]
fn seed_004_03_done_and_folded_says_for_how_long_it_thought() {
    let mut stage = Stage::new(60, 20);
    for (block, ms, expected) in [(0, 12_000, "for 12s"), (1, 1_000, "for 1s"), (2, 65_000, "for 1m 5s")] {
        stage.think(block, "**Reading**\n\nI read it.", ms);
        let header = stage.said().pop().unwrap();
        assert!(header.starts_with(&format!("▶ Thought {expected} · Reading")), "{header}");
    }
}

#[test]
fn seed_004_04_done_and_open_shows_all_items_as_markdown() {
    let items = ["**Reading**\n\nI read `it`.", "**Planning**\n\n1. one\n2. two"];
    let mut stage = Stage::viewed(60, 20, Display::Full);
    summary(&mut stage, &items);
    stage.close(0, Block::Thinking(thinking(&items.join("\n\n"), None)));
    let rows = ["│ Reading", "│", "│ I read it.", "│", "│ Planning", "│", "│ 1. one", "│ 2. two"];
    assert_eq!(stage.said()[1..], rows);
    let (_, title) = stage.style_of("Planning");
    assert!(title.contains(Modifier::BOLD), "{title:?}");
}

#[test]
fn seed_004_05_running_and_folded_are_two_things_for_thoughts() {
    for (view, rows) in [(Display::Full, (3, 1)), (Display::Live, (3, 1)), (Display::Collapsed, (1, 3))] {
        let mut stage = Stage::viewed(60, 20, view);
        stage.open(0, Opening::Thinking);
        stage.grow(0, "one\ntwo");
        assert_eq!(stage.said().len(), rows.0, "{view}");
        stage.control('o');
        if view == Display::Live {
            // From the window one goes to all of it, and from there to the line.
            stage.control('o');
        }
        assert_eq!(stage.said().len(), rows.1, "{view}: toggled while it runs");
        assert!(stage.said()[0].contains("Thinking"), "{view}: and it runs on");
        stage.close(0, Block::Thinking(thinking("one\ntwo", None)));
        assert_eq!(stage.said().len(), rows.1, "{view}: the end changes nothing");
        stage.control('o');
        assert_eq!(stage.said().len(), 4 - rows.1, "{view}: toggled when it is done");
    }
}

#[test]
fn seed_004_06_running_and_folded_are_two_things_for_tools() {
    let mut stage = Stage::new(60, 20);
    stage.open(0, Opening::ToolCall { name: "read".into() });
    stage.grow(0, r#"{"path":"#);
    assert_eq!(stage.said(), ["▶ ⠋ read"], "folded, and coming");
    stage.control('o');
    assert_eq!(stage.said(), ["▼ ⠋ read", r#"  {"path":"#], "open, and coming");
    stage.close(0, call("c1", "read", r#"{"path":"a.txt"}"#));
    assert_eq!(stage.said()[0], "▼ ○ read a.txt");
    let Block::ToolCall(started) = call("c1", "read", r#"{"path":"a.txt"}"#) else { unreachable!() };
    stage.tell(Update::ToolStarted(Box::new(started)));
    assert_eq!(stage.said()[0], "▼ ⠋ read a.txt", "open, and running");
    stage.control('o');
    assert_eq!(stage.said(), ["▶ ⠋ read a.txt"], "folded, and running");
    stage.result("c1", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b", false);
    assert_eq!(stage.said(), ["▶ ✓ read a.txt · +1 -1"], "the end changes nothing, though a change opens by itself");
}

#[test]
fn seed_004_07_a_new_item_begins_with_nothing_of_the_last() {
    let mut stage = Stage::viewed(60, 20, Display::Full);
    summary(&mut stage, &["**Reading**\n\nI read it.", "No title here,\nonly words."]);
    let said = stage.said();
    assert!(!said[0].contains("Reading"), "the title of an item is not that of the next: {said:?}");
    assert_eq!(said[1..], ["│ No title here,", "│ only words."]);
}

#[test]
fn seed_004_08_a_thought_ends_with_its_item_and_not_with_the_reply() {
    let mut stage = Stage::new(60, 20);
    stage.send();
    stage.think(0, "**Reading**\n\nI read it.", 3000);
    stage.open(1, Opening::Text);
    stage.grow(1, "So");
    stage.pass(9000);
    assert!(stage.app.is_busy());
    assert_eq!(stage.said(), ["▶ Thought for 3s · Reading (click to expand)", "So"], "its time stands still");
}

#[test]
fn seed_004_09_live_and_restored_are_one_and_times_come_from_the_store() {
    let span = Span { started: Time(5_000), ended: Time(9_000) };
    let blocks = vec![
        Block::Thinking(thinking("**Reading**\n\nI read it.\n\n**Planning**\n\nI plan.", Some(span))),
        words("So."),
    ];
    let mut live = Stage::viewed(60, 20, Display::Full);
    summary(&mut live, &["**Reading**\n\nI read it.", "**Planning**\n\nI plan."]);
    live.close(0, blocks[0].clone());
    live.write(1, "So.");
    let mut restored = Stage::viewed(60, 20, Display::Full);
    restored.tell(Update::Restored(vec![Message::new(Role::Assistant, blocks)]));
    assert_eq!(live.said()[0], "▼ Thought for 4s · Reading");
    assert_eq!(live.said(), restored.said());
    restored.pass(60_000);
    assert_eq!(live.said(), restored.said(), "it never ticks again");
}

#[test]
fn seed_004_10_an_encrypted_thought_is_opaque_and_says_so() {
    let mut stage = Stage::viewed(60, 20, Display::Full);
    stage.open(0, Opening::Thinking);
    stage.close(0, Block::Thinking(hidden()));
    stage.write(1, "So.");
    let said = stage.said();
    assert_eq!(said[0], "▼ Thought · hidden by provider");
    assert!(said[1].contains("640 sealed bytes") && !said[1].contains("xxx"), "{said:?}");
    assert_eq!(said[2..], ["So."]);
}

#[test]
fn seed_004_11_a_thought_without_items_is_shown_as_ever() {
    let mut stage = Stage::viewed(60, 20, Display::Full);
    stage.open(0, Opening::Thinking);
    stage.grow(0, "I read it.\n\n");
    stage.grow(0, "I plan.");
    let running = stage.said();
    assert_eq!(running[1..], ["│ I read it.", "│", "│ I plan."], "all of it while it runs");
    stage.close(0, Block::Thinking(thinking("I read it.\n\nI plan.", None)));
    let done = stage.said();
    assert_eq!((done[0].as_str(), &done[1..]), ("▼ Thought · \"I read it…\"", &running[1..]));
}

#[test]
fn seed_004_12_a_session_of_every_kind_of_block_is_restored_in_order() {
    let result = ToolResult { id: "c1".into(), name: "read".into(), content: "one\ntwo".into(), is_error: false };
    let first = vec![
        Block::Thinking(thinking("**Reading**\n\nI read it.", None)),
        Block::Thinking(hidden()),
        words("Let me look."),
        call("c1", "read", r#"{"path":"a.txt"}"#),
    ];
    let messages = vec![
        Message::new(Role::User, vec![words("why?")]),
        Message::new(Role::Assistant, first),
        Message::new(Role::Tool, vec![Block::ToolResult(result)]),
        Message::new(Role::Assistant, vec![Block::Thinking(thinking("Plain.", None)), words("So.")]),
    ];
    let mut stage = Stage::new(60, 20);
    stage.tell(Update::Restored(messages));
    let expected = [
        "❯ why?",
        "▶ Thought · Reading (click to expand)",
        "▶ Thought · hidden by provider",
        "Let me look.",
        "▶ ✓ read a.txt · 2 lines",
        "▶ Thought · \"Plain.\"",
        "So.",
    ];
    assert_eq!(stage.said(), expected);
    // The session goes on behind it.
    stage.line("and?");
    stage.send();
    stage.write(0, "And so.");
    stage.tell(Update::ReplyEnded(End { ending: Ending::Stop, error: None }));
    stage.tell(Update::TurnEnded(TurnEnd::Answered));
    assert_eq!(stage.said()[7..], ["❯ and?", "And so."]);
}
