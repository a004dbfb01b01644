//! Whatever happens, at whatever size: no panic, and no word is lost.

use std::collections::BTreeMap;

use aside_core::event::{BlockId, Side};
use aside_core::settings::Display;
use aside_core::turn::TurnEnd;
use aside_tui::app::Msg;
use aside_tui::seam::{Opening, Question, QuestionId, Update};
use aside_tui::text::{Base, Doc, Row};
use aside_tui::transcript::plain::Plain;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;

use crate::support::Stage;

#[derive(Debug, Clone)]
enum Step {
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

fn step() -> impl Strategy<Value = Step> {
    let text = "([a-z]{1,9}|[ \n*#`|>-]{1,2}|漢字|👩‍💻|e\u{301}|\u{301}|\u{200b}|\u{1b}\\[31m|\t){0,12}";
    prop_oneof![
        (0u32..4, 0u8..4).prop_map(|(block, kind)| Step::Open(block, kind)),
        (0u32..4, text).prop_map(|(block, text)| Step::Grow(block, text)),
        (0u32..4).prop_map(Step::Item),
        (0u32..4, any::<bool>()).prop_map(|(block, to)| Step::Refile(block, to)),
        (0u8..4).prop_map(Step::End),
        Just(Step::Send),
        Just(Step::Ask),
        (0u8..24, any::<bool>()).prop_map(|(key, control)| Step::Key(key, control)),
        (0u16..60, 0u16..30).prop_map(|(x, y)| Step::Click(x, y)),
        any::<bool>().prop_map(Step::Wheel),
        (0u16..60, 0u16..30).prop_map(|(width, height)| Step::Resize(width, height)),
        (0u8..8).prop_map(Step::Line),
        text.prop_map(Step::Paste),
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

fn take(stage: &mut Stage, step: Step) {
    match step {
        Step::Open(block, kind) => {
            let opening = match kind {
                0 => Opening::Text,
                1 => Opening::Thinking,
                2 => Opening::ToolCall { name: "read".into() },
                _ => Opening::Unmodelled,
            };
            stage.open(block, opening);
        }
        Step::Grow(block, text) => stage.grow(block, &text),
        Step::Item(block) => stage.tell(Update::Item { block: BlockId(block) }),
        Step::Refile(block, to) => {
            let to = if to { Side::Text } else { Side::Thinking };
            stage.tell(Update::Refiled { block: BlockId(block), to });
        }
        Step::End(kind) => stage.tell(Update::TurnEnded(match kind {
            0 => TurnEnd::Answered,
            1 => TurnEnd::ThinkingOnly { for_length: true },
            2 => TurnEnd::Interrupted,
            _ => TurnEnd::Empty,
        })),
        Step::Send => stage.send(),
        Step::Ask => stage.tell(Update::Asked(Box::new(Question {
            id: QuestionId(1),
            about: crate::support::about(
                "shell",
                "ls 漢字",
                Some("--- a\n+++ b\n".repeat(20)),
                Some("shell:ls".into()),
            ),
        }))),
        Step::Key(number, control) => {
            let modifiers = match (control, number % 3) {
                (true, 0) => KeyModifiers::ALT,
                (true, _) => KeyModifiers::CONTROL,
                (false, _) => KeyModifiers::NONE,
            };
            stage.msg(Msg::Key(KeyEvent::new(key(number), modifiers)));
        }
        Step::Click(x, y) => stage.click(x, y),
        Step::Wheel(up) => stage.wheel(up),
        Step::Resize(width, height) => {
            stage.size = (width, height);
            stage.msg(Msg::Resize);
        }
        Step::Line(number) => {
            let lines =
                ["hello 漢字", "/thinking", "/help", "/reader", "/explain", "/theme", "/nothing", ":toggle thinking"];
            stage.line(lines[usize::from(number)]);
        }
        Step::Paste(text) => stage.msg(Msg::Paste(text)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn t13_no_sequence_of_events_at_any_size_panics(steps in prop::collection::vec(step(), 0..60), frames in 1usize..4) {
        let mut stage = Stage::new(30, 12);
        for (index, step) in steps.into_iter().enumerate() {
            take(&mut stage, step);
            stage.pass(130);
            if index % frames == 0 {
                stage.buffer();
            }
        }
        stage.buffer();
    }

}

/// What may not get lost: everything but spaces, markup and marks of ours.
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

/// Words of many scripts, some very long.
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
    fn t8_no_layout_of_anything_at_any_width_loses_a_letter(text in markdown(), width in 1usize..300) {
        for base in [Base::TEXT, Base::THOUGHT] {
            let rows: String = Doc::new(&text).rows(width, base).iter().map(Row::text).collect();
            if text.contains('|') {
                // Where a table has no room its head stands before each cell.
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
            let rows: String = Plain::output(output).rows(width).iter().map(Row::text).collect();
            prop_assert_eq!(content(&rows), content(output), "{:?}", output);
        }
        for row in Doc::new(&text).rows(width, Base::TEXT) {
            // A wide letter in one column has nowhere to go.
            prop_assert!(row.width() <= width.max(2), "{} at {width}: {:?}", row.width(), row.text());
        }
    }

    #[test]
    fn t8_any_growth_and_any_frames_end_in_the_same_rows(text in markdown(), size in 1usize..30, width in 1usize..120) {
        let letters: Vec<char> = text.chars().collect();
        let mut grown = Doc::default();
        for piece in letters.chunks(size) {
            grown.push(&piece.iter().collect::<String>());
            grown.rows(width, Base::TEXT);
        }
        let mut whole = Doc::new(&text);
        prop_assert_eq!(grown.rows(width, Base::TEXT), whole.rows(width, Base::TEXT), "{:?}", text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// What was said can be read on the screen, letter by letter, at any width.
    #[test]
    fn t13_no_word_is_lost_at_any_width(
        text in "([a-z]{1,30} ?|漢字|é|שלום|👩\u{200d}💻|e\u{301}|\n| ){1,30}",
        width in 1u16..300,
    ) {
        let bare = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
        // One column has no room for a letter of two.
        let text = if width < 8 { text.replace("漢字", "") } else { text };
        let mut stage = Stage::viewed(width, 700, Display::Full);
        stage.write(0, &text);
        let shown: String = stage.said().concat();
        prop_assert_eq!(bare(&shown), bare(&text));
        let mut stage = Stage::viewed(width, 700, Display::Full);
        stage.think(0, &text, 0);
        stage.write(1, "");
        let body: String = stage.said().iter().skip(1).map(String::as_str).collect();
        prop_assert_eq!(bare(&body), bare(&text));
        let mut stage = Stage::viewed(width, 700, Display::Full);
        stage.call(0, "c", "", "");
        stage.result("c", &format!("{text}."), true);
        let output: String = stage.said().iter().skip(1).map(String::as_str).collect();
        prop_assert_eq!(bare(&output), bare(&text));
    }
}
