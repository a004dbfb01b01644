//! Property tests: no panic and no lost text, whatever happens at any size.

use std::collections::BTreeMap;

use aside_core::event::{BlockId, ProseKind};
use aside_core::settings::ThinkingDisplay;
use aside_core::turn::TurnEnd;
use aside_front::{OpenedBlock, PendingQuestion, QuestionId, Update};
use aside_tui::app::Msg;
use aside_tui::text::{BaseStyle, MarkdownView, Row};
use aside_tui::transcript::plain_text::PlainText;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;

use crate::support::TestTerminal;

#[derive(Debug, Clone)]
enum ScreenStep {
    Open(u32, u8),
    Grow(u32, String),
    Item(u32),
    Refile(u32, bool),
    End(u8),
    Send,
    Ask,
    Key(u8, bool),
    Click(u16, u16),
    Wheel(bool),
    Resize(u16, u16),
    Line(u8),
    Paste(String),
}

fn step() -> impl Strategy<Value = ScreenStep> {
    let text = "([a-z]{1,9}|[ \n*#`|>-]{1,2}|漢字|👩‍💻|e\u{301}|\u{301}|\u{200b}|\u{1b}\\[31m|\t){0,12}";
    prop_oneof![
        (0u32..4, 0u8..4).prop_map(|(block, kind)| ScreenStep::Open(block, kind)),
        (0u32..4, text).prop_map(|(block, text)| ScreenStep::Grow(block, text)),
        (0u32..4).prop_map(ScreenStep::Item),
        (0u32..4, any::<bool>()).prop_map(|(block, to)| ScreenStep::Refile(block, to)),
        (0u8..4).prop_map(ScreenStep::End),
        Just(ScreenStep::Send),
        Just(ScreenStep::Ask),
        (0u8..24, any::<bool>()).prop_map(|(key, control)| ScreenStep::Key(key, control)),
        (0u16..60, 0u16..30).prop_map(|(x, y)| ScreenStep::Click(x, y)),
        any::<bool>().prop_map(ScreenStep::Wheel),
        (0u16..60, 0u16..30).prop_map(|(width, height)| ScreenStep::Resize(width, height)),
        (0u8..8).prop_map(ScreenStep::Line),
        text.prop_map(ScreenStep::Paste),
    ]
}

fn key(number: u8) -> KeyCode {
    let keys = [
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::BackTab,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Backspace,
        KeyCode::Delete,
    ];
    let letters = ['o', 'r', 't', '/', '@', 'n', 'y', 'w', 'v', ' '];
    let number = usize::from(number);
    keys.get(number).copied().unwrap_or_else(|| KeyCode::Char(letters[(number - keys.len()) % letters.len()]))
}

fn take(term: &mut TestTerminal, step: ScreenStep) {
    match step {
        ScreenStep::Open(block, kind) => {
            let opening = match kind {
                0 => OpenedBlock::Text,
                1 => OpenedBlock::Thinking,
                2 => OpenedBlock::ToolCall { name: "read".into() },
                _ => OpenedBlock::Unmodelled,
            };
            term.open(block, opening);
        }
        ScreenStep::Grow(block, text) => term.grow(block, &text),
        ScreenStep::Item(block) => term.update(Update::Item { block: BlockId(block) }),
        ScreenStep::Refile(block, to) => {
            let to = if to { ProseKind::Text } else { ProseKind::Thinking };
            term.update(Update::Refiled { block: BlockId(block), to });
        }
        ScreenStep::End(kind) => term.update(Update::TurnEnded(match kind {
            0 => TurnEnd::Answered,
            1 => TurnEnd::ThinkingOnly { for_length: true },
            2 => TurnEnd::Interrupted,
            _ => TurnEnd::Empty,
        })),
        ScreenStep::Send => term.send(),
        ScreenStep::Ask => term.update(Update::QuestionAsked(Box::new(PendingQuestion {
            id: QuestionId(1),
            about: crate::support::question_about(
                "shell",
                "ls 漢字",
                Some("--- a\n+++ b\n".repeat(20)),
                Some("shell:ls".into()),
            ),
        }))),
        ScreenStep::Key(number, control) => {
            let modifiers = match (control, number % 3) {
                (true, 0) => KeyModifiers::ALT,
                (true, _) => KeyModifiers::CONTROL,
                (false, _) => KeyModifiers::NONE,
            };
            term.msg(Msg::Key(KeyEvent::new(key(number), modifiers)));
        }
        ScreenStep::Click(x, y) => term.click(x, y),
        ScreenStep::Wheel(up) => term.wheel(up),
        ScreenStep::Resize(width, height) => {
            term.size = (width, height);
            term.msg(Msg::Resize);
        }
        ScreenStep::Line(number) => {
            let lines =
                ["hello 漢字", "/thinking", "/help", "/reader", "/explain", "/theme", "/nothing", ":toggle thinking"];
            term.line(lines[usize::from(number)]);
        }
        ScreenStep::Paste(text) => term.msg(Msg::Paste(text)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn t13_no_sequence_of_events_at_any_size_panics(steps in prop::collection::vec(step(), 0..60), frames in 1usize..4) {
        let mut term = TestTerminal::new(30, 12);
        for (index, step) in steps.into_iter().enumerate() {
            take(&mut term, step);
            term.advance(130);
            if index % frames == 0 {
                term.buffer();
            }
        }
        term.buffer();
    }

}

/// The characters that must survive: everything but spaces, markup and our own markers.
fn content(text: &str) -> Vec<char> {
    let is_mark = |c: char| "•◦▎─│┼…❯".contains(c);
    text.chars()
        .filter(|c| !c.is_whitespace() && !c.is_ascii_punctuation() && !c.is_ascii_digit() && !is_mark(*c))
        .collect()
}

fn counted(letters: Vec<char>) -> BTreeMap<char, usize> {
    let mut counts = BTreeMap::new();
    letters.into_iter().for_each(|letter| *counts.entry(letter).or_default() += 1);
    counts
}

/// Words in many scripts, some very long.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,8}",
        1 => "[a-z]{60,90}",
        2 => Just("漢字かな".to_owned()),
        1 => Just("👩\u{200d}💻".to_owned()),
        1 => Just("❤\u{fe0f}".to_owned()),
        1 => Just("🏳\u{fe0f}\u{200d}🌈".to_owned()),
        1 => Just("e\u{301}o\u{308}\u{323}".to_owned()),
        1 => Just("שלום".to_owned()),
        1 => Just("مرحبا".to_owned()),
        1 => Just("हिन्दी".to_owned()),
    ]
}

fn markdown() -> impl Strategy<Value = String> {
    let mark = prop::sample::select(vec![
        " ",
        " ",
        " ",
        "\n",
        "\n\n",
        "\n- ",
        "\n  - ",
        "\n1. ",
        "\n   ",
        "\n> ",
        "\n>> ",
        "\n# ",
        "\n\n    ",
        "**",
        "*",
        "`",
        "~~",
        "\n```\n",
        "\n  ```rs\n",
        "\n~~~\n",
        " | ",
        "\n| ",
        "\n|-|-|\n",
        "\t",
        "\n---\n",
        "\n***\n",
        "\n===\n",
    ]);
    prop::collection::vec((word(), mark), 0..40)
        .prop_map(|parts| parts.into_iter().map(|(word, mark)| word + mark).collect::<String>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn t8_no_layout_loses_a_letter_at_any_width(text in markdown(), width in 1usize..300) {
        for base in [BaseStyle::TEXT, BaseStyle::THINKING] {
            let rows: String = MarkdownView::new(&text).rows(width, base).iter().map(Row::text).collect();
            if text.contains('|') {
                // In a narrow table the head is repeated before each cell.
                let (shown, said) = (counted(content(&rows)), counted(content(&text)));
                for (letter, count) in said {
                    prop_assert!(shown.get(&letter).is_some_and(|shown| *shown >= count), "{letter} in {text:?}: {rows:?}");
                }
            } else {
                prop_assert_eq!(content(&rows), content(&text), "{:?}", text);
            }
        }
        let diff = format!("--- a/x\n+++ b/x\n@@ -1,99 +1,99 @@\n+{}", text.replace('\n', "\n-"));
        for output in [&text, &diff] {
            let rows: String = PlainText::output(output).rows(width).iter().map(Row::text).collect();
            prop_assert_eq!(content(&rows), content(output), "{:?}", output);
        }
        for row in MarkdownView::new(&text).rows(width, BaseStyle::TEXT) {
            // A wide character cannot fit into one column.
            prop_assert!(row.width() <= width.max(2), "{} at {width}: {:?}", row.width(), row.text());
        }
    }

    #[test]
    fn t8_any_growth_and_any_frames_end_in_the_same_rows(text in markdown(), size in 1usize..30, width in 1usize..120) {
        let letters: Vec<char> = text.chars().collect();
        let mut grown = MarkdownView::default();
        for piece in letters.chunks(size) {
            grown.push(&piece.iter().collect::<String>());
            grown.rows(width, BaseStyle::TEXT);
        }
        let mut whole = MarkdownView::new(&text);
        prop_assert_eq!(grown.rows(width, BaseStyle::TEXT), whole.rows(width, BaseStyle::TEXT), "{:?}", text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// All text is readable on the screen at any width.
    #[test]
    fn t13_no_word_is_lost_at_any_width(
        text in "([a-z]{1,30} ?|漢字|é|שלום|👩\u{200d}💻|e\u{301}|\n| ){1,30}",
        width in 1u16..300,
    ) {
        let bare = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
        // Wide characters do not fit into one column.
        let text = if width < 8 { text.replace("漢字", "") } else { text };
        let mut term = TestTerminal::with_view(width, 700, ThinkingDisplay::Full);
        term.write(0, &text);
        let shown: String = term.transcript().concat();
        prop_assert_eq!(bare(&shown), bare(&text));
        let mut term = TestTerminal::with_view(width, 700, ThinkingDisplay::Full);
        term.think(0, &text, 0);
        term.write(1, "");
        let body: String = term.transcript().iter().skip(1).map(String::as_str).collect();
        prop_assert_eq!(bare(&body), bare(&text));
        let mut term = TestTerminal::with_view(width, 700, ThinkingDisplay::Full);
        term.call(0, "c", "", "");
        term.result("c", &format!("{text}."), true);
        let output: String = term.transcript().iter().skip(1).map(String::as_str).collect();
        prop_assert_eq!(bare(&output), bare(&text));
    }
}
