//! Every rule of seed 000 about the display and how the screen reacts, one test each. Where a
//! requirement overrides the seed, the test follows the requirement and the table names it.
//!
//! | seed | rule | overridden by |
//! |---|---|---|
//! | 000.01 | thinking is shown dimmed as it streams | |
//! | 000.02 | it folds when thinking ends, before the reply does | |
//! | 000.03 | folded: arrow, first words of about 40 columns, how to open | T2 adds the time |
//! | 000.04 | a click opens it: gutter and all of the text | |
//! | 000.05 | a click again folds it | |
//! | 000.06 | the answer is below in normal style | |
//! | 000.07 | several thinking blocks in one reply | |
//! | 000.08 | thinking stays in the scroll-back | |
//! | 000.09 | tags in the content: thinking while it streams, tags never shown | |
//! | 000.10 | only thinking: shown, with a notice, no error | T6: not folded |
//! | 000.11 | a tag that is never closed | |
//! | 000.12 | a closing tag alone is text | |
//! | 000.13 | a tag inside thinking is text | |
//! | 000.14 | fields and tags: the field is thinking, the tags are text | |
//! | 000.15 | empty or blank thinking is not shown | |

use std::sync::LazyLock;

use aside_core::block::Block;
use aside_core::dialect::Dialects;
use aside_core::event::{Event, Sink};
use aside_core::fold::Fold;
use aside_core::settings::ThinkingDisplay;
use aside_core::turn::TurnEnd;
use aside_core::wire::Decoder;
use aside_front::wording::THINKING_ONLY;
use aside_front::{OpenedBlock, Update};
use crossterm::event::KeyCode;
use ratatui::style::{Color, Modifier};
use serde_json::json;

use crate::support::{TestTerminal, thinking};

const LONG: &str = "The lock opens at high water only. So I work out when that is, and how long the way there takes.";

struct UpdateSink {
    fold: Fold,
    updates: Vec<Update>,
}

impl Sink for UpdateSink {
    fn take(&mut self, event: Event<'_>) {
        self.fold.take(event);
        self.updates.extend(Update::of(event, &self.fold));
    }
}

/// Plays chat deltas to a screen and returns the screen after each, and after the end of the reply.
fn play(term: &mut TestTerminal, deltas: &[serde_json::Value]) -> Vec<String> {
    static DIALECTS: LazyLock<Dialects> = LazyLock::new(|| Dialects::builtin().unwrap());
    let dialect = DIALECTS.get("generic").unwrap();
    let mut decoder = Decoder::new(dialect.protocol, dialect.rules(None));
    let mut sink = UpdateSink { fold: Fold::new(), updates: Vec::new() };
    let mut screens = Vec::new();
    term.send();
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let deltas = deltas.iter().map(|delta| json!({"choices": [{"index": 0, "delta": delta}]}));
    for chunk in deltas.chain([end]) {
        decoder.push(format!("data: {chunk}\n\n").as_bytes(), &mut sink);
        for update in sink.updates.drain(..) {
            term.update(update);
        }
        screens.push(term.transcript().join("\n"));
    }
    decoder.push(b"data: [DONE]\n\n", &mut sink);
    decoder.finish(&mut sink).unwrap();
    for update in sink.updates.drain(..) {
        term.update(update);
    }
    screens.push(term.transcript().join("\n"));
    screens
}

fn content(text: &str) -> serde_json::Value {
    json!({ "content": text })
}

#[test]
fn seed_000_01_thinking_is_shown_dimmed_as_it_streams() {
    let mut term = TestTerminal::new(60, 20);
    term.open(0, OpenedBlock::Thinking);
    let mut sofar = String::new();
    for word in ["The ", "lock ", "opens ", "late"] {
        term.grow(0, word);
        sofar.push_str(word);
        assert_eq!(term.transcript()[1], format!("│ {}", sofar.trim_end()));
    }
    term.write(1, "An answer");
    let (thought, _) = term.style_of("opens");
    let (answer, _) = term.style_of("An answer");
    assert_eq!(answer, Color::Reset, "in the terminal's own colour");
    assert_ne!(thought, answer, "muted");
}

#[test]
fn seed_000_02_it_folds_when_thinking_ends_and_not_with_the_reply() {
    let mut term = TestTerminal::new(60, 20);
    let screens = play(
        &mut term,
        &[json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "Let me see."}]}), content("So")],
    );
    assert!(screens[0].contains("Thinking") && screens[0].contains("│ Let me see."), "{}", screens[0]);
    assert_eq!(
        screens[1], "▶ Thought · \"Let me see.\" (click to expand) · Ctrl+O\nSo",
        "the reply is still streaming"
    );
}

#[test]
fn seed_000_03_folded_it_shows_its_first_words_and_how_to_open_it() {
    let mut term = TestTerminal::new(100, 20);
    term.open(0, OpenedBlock::Thinking);
    term.close(0, Block::Thinking(thinking(LONG, None)));
    assert_eq!(
        term.transcript(),
        ["▶ Thought · \"The lock opens at high water only. So…\" (click to expand) · Ctrl+O"]
    );
}

#[test]
fn seed_000_04_a_click_opens_it_with_a_gutter() {
    let mut term = TestTerminal::new(60, 20);
    term.open(0, OpenedBlock::Thinking);
    term.close(0, Block::Thinking(thinking(LONG, None)));
    term.rows();
    term.click(8, 0);
    let said = term.transcript();
    assert_eq!(
        said,
        [
            "▼ Thought · \"The lock opens at high water only. So…\"",
            "│ The lock opens at high water only. So I work out when that",
            "│ is, and how long the way there takes."
        ]
    );
    let ((gutter, _), (text, _)) = (term.style_of("│ The"), term.style_of("So I work"));
    assert!(gutter != Color::Reset && gutter != text, "dimmer than the thought: {gutter:?} and {text:?}");
}

#[test]
fn seed_000_05_a_click_again_folds_it() {
    let mut term = TestTerminal::new(60, 20);
    term.think(0, LONG, 2000);
    let folded = term.transcript();
    term.click(8, 0);
    let open = term.transcript();
    assert_eq!((folded.len(), open.len()), (1, 3));
    term.click(8, 0);
    assert_eq!(term.transcript(), folded);
    term.click(8, 0);
    assert_eq!(term.transcript(), open, "any number of times");
}

#[test]
fn seed_000_06_the_answer_is_below_in_normal_style() {
    for view in [ThinkingDisplay::Full, ThinkingDisplay::Live, ThinkingDisplay::Collapsed] {
        let mut term = TestTerminal::with_view(60, 20, view);
        term.think(0, "Let me see.", 2000);
        term.write(1, "It is so.");
        assert_eq!(term.transcript().last().unwrap(), "It is so.");
        assert_eq!(term.style_of("It is so."), (Color::Reset, Modifier::empty()), "{view}");
    }
}

#[test]
fn seed_000_07_a_reply_may_have_several_thinking_blocks() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    term.think(0, "First.", 2000);
    term.think(1, "Second.", 3000);
    term.write(2, "Between.");
    term.think(3, "Third.", 4000);
    let expected = [
        "▼ Thought for 2s · \"First.\"",
        "│ First.",
        "▼ Thought for 3s · \"Second.\"",
        "│ Second.",
        "Between.",
        "▼ Thought for 4s · \"Third.\"",
        "│ Third.",
    ];
    assert_eq!(term.transcript(), expected);
    term.rows();
    let y = term.rows().iter().position(|row| row.contains("for 3s")).unwrap();
    term.click(0, y as u16);
    let one_folded: Vec<&str> = expected.into_iter().filter(|row| *row != "│ Second.").collect();
    let said: Vec<String> = term
        .transcript()
        .iter()
        .map(|row| row.replace('▶', "▼").replace(" (click to expand) · Tab, then o", ""))
        .collect();
    assert_eq!(said, one_folded, "each folds independently");
}

#[test]
fn seed_000_08_thinking_stays_in_the_scroll_back() {
    let mut term = TestTerminal::new(60, 12);
    term.think(0, "An early thought.", 2000);
    for block in 1..6 {
        term.send();
        term.write(block, &"a line\n".repeat(20));
    }
    assert!(!term.screen().contains("An early thought."));
    term.key(KeyCode::Home);
    assert!(term.transcript()[0].contains("An early thought."), "{:?}", term.transcript());
    term.click(0, 0);
    assert_eq!(term.transcript()[1], "│ An early thought.");
}

#[test]
fn seed_000_09_tagged_text_is_thinking_while_it_streams_and_tags_are_never_shown() {
    let mut term = TestTerminal::new(60, 20);
    let pieces = ["<", "thi", "nk>Let", " me see", ".</th", "ink", ">So", " it is."];
    let screens = play(&mut term, &pieces.map(content));
    for (piece, screen) in pieces.iter().zip(&screens) {
        assert!(!screen.contains('<') && !screen.contains("nk>"), "{piece:?}: {screen}");
    }
    assert!(screens[2].contains("Thinking") && screens[2].contains("│ Let"), "{}", screens[2]);
    assert!(screens[3].contains("│ Let me see"), "{}", screens[3]);
    let done = "▶ Thought · \"Let me see.\" (click to expand) · Ctrl+O\nSo it is.";
    assert_eq!(screens.last().unwrap(), done);
}

#[test]
fn seed_000_10_nothing_but_thinking_is_shown_with_a_notice_and_no_error() {
    let mut term = TestTerminal::new(100, 20);
    play(&mut term, &[content("<think>Let me see.</think>")]);
    term.update(Update::TurnEnded(TurnEnd::ThinkingOnly { for_length: false }));
    let notice = "! Model provided reasoning but no response. Try rephrasing your question.";
    assert_eq!(notice, format!("! {THINKING_ONLY}"));
    // The reply contains nothing else, so it is not folded.
    assert_eq!(term.transcript(), ["▼ Thought · \"Let me see.\"", "│ Let me see.", notice]);
}

#[test]
fn seed_000_11_an_unclosed_tag_is_thinking_to_the_end() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    let screens = play(&mut term, &[content("<think>Let me see."), content(" And go on.")]);
    assert_eq!(screens.last().unwrap(), "▼ Thought · \"Let me see. And go on.\"\n│ Let me see. And go on.");
}

#[test]
fn seed_000_12_a_closing_tag_alone_is_text() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    let screens = play(&mut term, &[content("It is `so`"), content("</think> and so.")]);
    assert_eq!(screens.last().unwrap(), "It is so</think> and so.");
}

#[test]
fn seed_000_13_a_tag_inside_thinking_is_text() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    let screens = play(&mut term, &[content("<think>A <think> in a thought.</think>So.")]);
    assert_eq!(screens.last().unwrap(), "▼ Thought · \"A <think> in a thought.\"\n│ A <think> in a thought.\nSo.");
}

#[test]
fn seed_000_14_a_field_is_thinking_and_tags_beside_it_are_text() {
    let mut term = TestTerminal::with_view(60, 20, ThinkingDisplay::Full);
    let detail = json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "By the field."}]});
    let screens = play(&mut term, &[detail, content("<think>By tags.</think>So.")]);
    assert_eq!(screens.last().unwrap(), "▼ Thought · \"By the field.\"\n│ By the field.\n<think>By tags.</think>So.");
}

#[test]
fn seed_000_15_empty_or_blank_thinking_is_not_shown() {
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
    for view in ThinkingDisplay::ALL {
        for (name, delta) in &cases {
            let mut term = TestTerminal::with_view(60, 20, *view);
            let screens = play(&mut term, &[delta.clone(), content("So.")]);
            assert_eq!(screens.last().unwrap(), "So.", "{name} in {view}");
        }
    }
}
