//! Every rule of seed 000 about what is shown and how the
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

use std::sync::LazyLock;

use aside_core::block::Block;
use aside_core::dialect::Dialects;
use aside_core::event::{Event, Sink};
use aside_core::fold::Fold;
use aside_core::settings::Display;
use aside_core::turn::TurnEnd;
use aside_core::wire::Decoder;
use aside_tui::seam::{Opening, Update};
use aside_tui::transcript::THINKING_ONLY;
use crossterm::event::KeyCode;
use ratatui::style::{Color, Modifier};
use serde_json::json;

use crate::support::{Stage, thinking};

const LONG: &str = "The lock opens at high water only. So I work out when that is, and how long the way there takes.";

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
    static DIALECTS: LazyLock<Dialects> = LazyLock::new(|| Dialects::builtin().unwrap());
    let dialect = DIALECTS.get("generic").unwrap();
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

#[test]
fn seed_000_01_a_thought_is_shown_dimmed_as_it_comes() {
    let mut stage = Stage::new(60, 20);
    stage.open(0, Opening::Thinking);
    let mut sofar = String::new();
    for word in ["The ", "lock ", "opens ", "late"] {
        stage.grow(0, word);
        sofar.push_str(word);
        assert_eq!(stage.said()[1], format!("│ {}", sofar.trim_end()));
    }
    stage.write(1, "An answer");
    let (thought, _) = stage.style_of("opens");
    let (answer, _) = stage.style_of("An answer");
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
    assert_eq!(stage.said(), ["▶ Thought · \"The lock opens at high water only. So…\" (click to expand)"]);
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
            "▼ Thought · \"The lock opens at high water only. So…\"",
            "│ The lock opens at high water only. So I work out when that",
            "│ is, and how long the way there takes."
        ]
    );
    let ((gutter, _), (text, _)) = (stage.style_of("│ The"), stage.style_of("So I work"));
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
        assert_eq!(stage.style_of("It is so."), (Color::Reset, Modifier::empty()), "{view}");
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
