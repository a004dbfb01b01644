//! Whatever happens, at whatever size: no panic, and no word is lost.

use aside_core::event::{BlockId, Side};
use aside_core::settings::Display;
use aside_core::turn::TurnEnd;
use aside_tui::app::Msg;
use aside_tui::seam::{Opening, Question, QuestionId, Update};
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
            tool: "shell".into(),
            subject: "ls 漢字".into(),
            preview: Some("--- a\n+++ b\n".repeat(20)),
            covers: Some("shell:ls".into()),
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// What was said can be read on the screen, letter by letter, at any width.
    #[test]
    fn t13_no_word_is_lost_at_any_width(
        text in "([a-z]{1,30} ?|漢字|é|\n| ){1,30}",
        width in 1u16..60,
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
