//! Every rule of the seeds 000, 003 and 004 about what is shown and how the
//! screen reacts, one test each. Where a row of the requirements decides
//! otherwise, the test holds to the row and says so.
//!
//! | seed | rule | decided by |
//! |---|---|---|
//! | 000.01 | a thought is shown dimmed as it comes | |
//! | 000.02 | it folds when the thought ends, before the reply does | |
//! | 000.03 | folded: arrow, first words of about 40 columns, how to open | T2 adds the time |
//! | 000.04 | a click opens it: gutter and all of the text | |
//! | 000.05 | a click again folds it | |
//! | 000.06 | the answer stands below in normal style | |
//! | 000.07 | several thoughts in one reply | |
//! | 000.08 | thoughts stay in the scroll-back | |
//! | 000.09 | tags in the content: a thought while it streams, no tag ever | |
//! | 000.10 | nothing but thinking: shown, with a notice, no error | T6: not folded |
//! | 000.11 | a tag that is never closed | |
//! | 000.12 | a closing tag alone is text | |
//! | 000.13 | a tag inside a thought is text of the thought | |
//! | 000.14 | fields and tags: the field is the thought, the tags are text | |
//! | 000.15 | an empty or blank thought is not shown | |
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
use aside_core::dialect::Dialects;
use aside_core::event::{BlockId, End, Ending, Event, Sink};
use aside_core::fold::Fold;
use aside_core::message::{Message, Role};
use aside_core::settings::{Display, Layer, Settings};
use aside_core::turn::TurnEnd;
use aside_core::wire::Decoder;
use aside_tui::seam::{Command, Opening, Status, Update};
use aside_tui::transcript::THINKING_ONLY;
use crossterm::event::KeyCode;
use ratatui::style::{Color, Modifier};
use serde_json::json;

use crate::support::{Stage, call, hidden, thinking, words};

const LONG: &str = "Let me analyze this step by step. First, I need to understand what the user is asking for.";

struct Heard {
    fold: Fold,
    updates: Vec<Update>,
}

impl Sink for Heard {
    fn take(&mut self, event: Event<'_>) {
        self.fold.take(event);
        self.updates.extend(Update::of(event, &self.fold));
    }
}

/// Plays deltas of a chat stream to a screen. What is on it after each is
/// given back, and the end of the reply last.
fn play(stage: &mut Stage, deltas: &[serde_json::Value]) -> Vec<String> {
    let dialects = Dialects::builtin().unwrap();
    let dialect = dialects.get("generic").unwrap();
    let mut decoder = Decoder::new(dialect.protocol, dialect.rules(None));
    let mut heard = Heard { fold: Fold::new(), updates: Vec::new() };
    let mut screens = Vec::new();
    stage.send();
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let deltas = deltas.iter().map(|delta| json!({"choices": [{"index": 0, "delta": delta}]}));
    for chunk in deltas.chain([end]) {
        decoder.push(format!("data: {chunk}\n\n").as_bytes(), &mut heard);
        for update in heard.updates.drain(..) {
            stage.tell(update);
        }
        screens.push(stage.said().join("\n"));
    }
    decoder.push(b"data: [DONE]\n\n", &mut heard);
    decoder.finish(&mut heard).unwrap();
    for update in heard.updates.drain(..) {
        stage.tell(update);
    }
    screens.push(stage.said().join("\n"));
    screens
}

fn content(text: &str) -> serde_json::Value {
    json!({ "content": text })
}

fn colour(stage: &mut Stage, text: &str) -> (Color, Modifier) {
    let rows = stage.rows();
    let y = rows.iter().position(|row| row.contains(text)).unwrap_or_else(|| panic!("no {text:?} in {rows:#?}"));
    let row = &rows[y];
    let x = row[..row.find(text).unwrap()].chars().count();
    let cell = &stage.buffer()[(x as u16, y as u16)];
    (cell.fg, cell.modifier)
}

fn summary(stage: &mut Stage, items: &[&str]) {
    stage.open(0, Opening::Thinking);
    for item in items {
        stage.tell(Update::Item { block: BlockId(0) });
        stage.grow(0, item);
    }
}

#[test]
fn seed_000_01_a_thought_is_shown_dimmed_as_it_comes() {
    let mut stage = Stage::new(60, 20);
    stage.open(0, Opening::Thinking);
    let mut sofar = String::new();
    for word in ["Let ", "me ", "analyze ", "this"] {
        stage.grow(0, word);
        sofar.push_str(word);
        assert_eq!(stage.said()[1], format!("│ {}", sofar.trim_end()));
    }
    stage.write(1, "An answer");
    let (thought, _) = colour(&mut stage, "analyze");
    let (answer, _) = colour(&mut stage, "An answer");
    assert_eq!(answer, Color::Reset, "in the colour of the terminal");
    assert_ne!(thought, answer, "muted");
}

#[test]
fn seed_000_02_it_folds_when_the_thought_ends_and_not_with_the_reply() {
    let mut stage = Stage::new(60, 20);
    let screens = play(
        &mut stage,
        &[json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "Let me see."}]}), content("So")],
    );
    assert!(screens[0].contains("Thinking") && screens[0].contains("│ Let me see."), "{}", screens[0]);
    assert_eq!(screens[1], "▶ Thought · \"Let me see.\" (click to expand)\nSo", "the reply still goes on");
}

#[test]
fn seed_000_03_folded_it_shows_its_first_words_and_how_to_open_it() {
    let mut stage = Stage::new(100, 20);
    stage.open(0, Opening::Thinking);
    stage.close(0, Block::Thinking(thinking(LONG, None)));
    assert_eq!(stage.said(), ["▶ Thought · \"Let me analyze this step by step…\" (click to expand)"]);
}

#[test]
fn seed_000_04_a_click_opens_it_with_a_gutter() {
    let mut stage = Stage::new(60, 20);
    stage.open(0, Opening::Thinking);
    stage.close(0, Block::Thinking(thinking(LONG, None)));
    stage.rows();
    stage.click(8, 0);
    let said = stage.said();
    assert_eq!(
        said,
        [
            "▼ Thought · \"Let me analyze this step by step…\"",
            "│ Let me analyze this step by step. First, I need to",
            "│ understand what the user is asking for."
        ]
    );
    let ((gutter, _), (text, _)) =
        (colour(&mut stage, "│ Let"), colour(&mut stage, "analyze this step by step. First"));
    assert!(gutter != Color::Reset && gutter != text, "dimmer than the thought: {gutter:?} and {text:?}");
}

#[test]
fn seed_000_05_a_click_again_folds_it() {
    let mut stage = Stage::new(60, 20);
    stage.think(0, LONG, 2000);
    let folded = stage.said();
    stage.click(8, 0);
    let open = stage.said();
    assert_eq!((folded.len(), open.len()), (1, 3));
    stage.click(8, 0);
    assert_eq!(stage.said(), folded);
    stage.click(8, 0);
    assert_eq!(stage.said(), open, "as often as one likes");
}

#[test]
fn seed_000_06_the_answer_stands_below_in_normal_style() {
    for view in [Display::Full, Display::Live, Display::Collapsed] {
        let mut stage = Stage::viewed(60, 20, view);
        stage.think(0, "Let me see.", 2000);
        stage.write(1, "It is so.");
        assert_eq!(stage.said().last().unwrap(), "It is so.");
        assert_eq!(colour(&mut stage, "It is so."), (Color::Reset, Modifier::empty()), "{view}");
    }
}

#[test]
fn seed_000_07_a_reply_may_have_several_thoughts() {
    let mut stage = Stage::viewed(60, 20, Display::Full);
    stage.think(0, "First.", 2000);
    stage.think(1, "Second.", 3000);
    stage.write(2, "Between.");
    stage.think(3, "Third.", 4000);
    let expected = [
        "▼ Thought for 2s · \"First.\"",
        "│ First.",
        "▼ Thought for 3s · \"Second.\"",
        "│ Second.",
        "Between.",
        "▼ Thought for 4s · \"Third.\"",
        "│ Third.",
    ];
    assert_eq!(stage.said(), expected);
    stage.rows();
    let y = stage.rows().iter().position(|row| row.contains("for 3s")).unwrap();
    stage.click(0, y as u16);
    let one_folded: Vec<&str> = expected.into_iter().filter(|row| *row != "│ Second.").collect();
    let said: Vec<String> =
        stage.said().iter().map(|row| row.replace('▶', "▼").replace(" (click to expand)", "")).collect();
    assert_eq!(said, one_folded, "each is folded by itself");
}

#[test]
fn seed_000_08_thoughts_stay_in_the_scroll_back() {
    let mut stage = Stage::new(60, 12);
    stage.think(0, "An early thought.", 2000);
    for block in 1..6 {
        stage.send();
        stage.write(block, &"a line\n".repeat(20));
    }
    assert!(!stage.screen().contains("An early thought."));
    stage.key(KeyCode::Home);
    assert!(stage.said()[0].contains("An early thought."), "{:?}", stage.said());
    stage.click(0, 0);
    assert_eq!(stage.said()[1], "│ An early thought.");
}

#[test]
fn seed_000_09_tags_are_a_thought_while_they_stream_and_never_shown() {
    let mut stage = Stage::new(60, 20);
    let pieces = ["<", "thi", "nk>Let", " me see", ".</th", "ink", ">So", " it is."];
    let screens = play(&mut stage, &pieces.map(content));
    for (piece, screen) in pieces.iter().zip(&screens) {
        assert!(!screen.contains('<') && !screen.contains("nk>"), "{piece:?}: {screen}");
    }
    assert!(screens[2].contains("Thinking") && screens[2].contains("│ Let"), "{}", screens[2]);
    assert!(screens[3].contains("│ Let me see"), "{}", screens[3]);
    let done = "▶ Thought · \"Let me see.\" (click to expand)\nSo it is.";
    assert_eq!(screens.last().unwrap(), done);
}

#[test]
fn seed_000_10_nothing_but_thinking_is_shown_with_a_notice_and_no_error() {
    let mut stage = Stage::new(100, 20);
    play(&mut stage, &[content("<think>Let me see.</think>")]);
    stage.tell(Update::TurnEnded(TurnEnd::ThinkingOnly { for_length: false }));
    let notice = "! Model provided reasoning but no response. Try rephrasing your question.";
    assert_eq!(notice, format!("! {THINKING_ONLY}"));
    // It is all there is, so it is not folded.
    assert_eq!(stage.said(), ["▼ Thought · \"Let me see.\"", "│ Let me see.", notice]);
}

#[test]
fn seed_000_11_a_tag_that_is_never_closed_is_a_thought_to_the_end() {
    let mut stage = Stage::viewed(60, 20, Display::Full);
    let screens = play(&mut stage, &[content("<think>Let me see."), content(" And go on.")]);
    assert_eq!(screens.last().unwrap(), "▼ Thought · \"Let me see. And go on.\"\n│ Let me see. And go on.");
}

#[test]
fn seed_000_12_a_closing_tag_alone_is_text() {
    let mut stage = Stage::viewed(60, 20, Display::Full);
    let screens = play(&mut stage, &[content("It is `so`"), content("</think> and so.")]);
    assert_eq!(screens.last().unwrap(), "It is so</think> and so.");
}

#[test]
fn seed_000_13_a_tag_inside_a_thought_is_text_of_it() {
    let mut stage = Stage::viewed(60, 20, Display::Full);
    let screens = play(&mut stage, &[content("<think>A <think> in a thought.</think>So.")]);
    assert_eq!(screens.last().unwrap(), "▼ Thought · \"A <think> in a thought.\"\n│ A <think> in a thought.\nSo.");
}

#[test]
fn seed_000_14_a_field_is_the_thought_and_tags_beside_it_are_text() {
    let mut stage = Stage::viewed(60, 20, Display::Full);
    let detail = json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "By the field."}]});
    let screens = play(&mut stage, &[detail, content("<think>By tags.</think>So.")]);
    assert_eq!(screens.last().unwrap(), "▼ Thought · \"By the field.\"\n│ By the field.\n<think>By tags.</think>So.");
}

#[test]
fn seed_000_15_an_empty_or_blank_thought_is_not_shown() {
    let blank = |text: &str| json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": text}]});
    #[rustfmt::skip]
    let cases = [
        ("empty tags",      content("<think></think>")),
        ("blank tags",      content("<think> \n\n </think>")),
        ("no details",      json!({"reasoning_details": []})),
        ("empty detail",    blank("")),
        ("blank detail",    blank(" \n ")),
        ("empty field",     json!({"reasoning_content": ""})),
        ("null field",      json!({"reasoning_content": null})),
    ];
    for view in Display::ALL {
        for (name, delta) in &cases {
            let mut stage = Stage::viewed(60, 20, *view);
            let screens = play(&mut stage, &[delta.clone(), content("So.")]);
            assert_eq!(screens.last().unwrap(), "So.", "{name} in {view}");
        }
    }
}

#[test]
fn seed_003_01_a_thought_is_shown_in_real_time() {
    let mut stage = Stage::new(60, 20);
    let screens =
        play(&mut stage, &[json!({"reasoning_content": "one"}), json!({"reasoning_content": " two"}), content("So.")]);
    assert!(screens[0].ends_with("│ one") && screens[1].ends_with("│ one two"), "{screens:#?}");
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
    let (_, title) = colour(&mut stage, "Planning");
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
