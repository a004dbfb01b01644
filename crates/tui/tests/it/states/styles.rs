//! The same scenes with the styles of a dark, a light, a sixteen-colour and a colourless terminal. Each row ends with
//! its styles and the number of columns they cover; the legend is at the end of the file.

use aside_core::settings::ThinkingDisplay;
use aside_tui::theme::{ColourDepth, ColourScheme, Theme};
use crossterm::event::KeyCode;

use super::{StateScene, check, messages, thinking_states, tool_calls};
use crate::support::{StyleLegend, TestTerminal};

const WIDTH: u16 = 64;

const AROUND: &[StateScene] = &[
    StateScene {
        name: "a question",
        play: |term| {
            super::chrome::ask(
                term,
                "edit",
                "src/lib.rs",
                Some("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b"),
                Some("edit:*"),
            )
        },
    },
    StateScene { name: "completion", play: |term| term.type_text("/thinking ") },
    StateScene {
        name: "browsing, the first of two",
        play: |term| {
            term.think(0, "First.", 2_000);
            term.think(1, "Second.", 2_000);
            term.key(KeyCode::Tab);
            term.key(KeyCode::Up);
        },
    },
    StateScene {
        name: "scrolled away, inside a thought",
        play: |term| {
            term.line("/thinking full");
            term.think(0, &(1..40).map(|line| format!("line {line}\n")).collect::<String>(), 4_000);
            term.rows();
            term.wheel(true);
        },
    },
    StateScene {
        name: "a word found in a folded thought",
        play: |term| {
            term.think(0, "I read it, and read it again.", 2_000);
            term.write(1, "I have read it.");
            term.line("/find read");
            term.key(KeyCode::Up);
        },
    },
    StateScene {
        name: "a word found in the reader",
        play: |term| {
            term.think(0, "**Reading**\n\nI read it, and read it again.", 2_000);
            term.control('r');
            term.type_text("/read");
            term.key(KeyCode::Enter);
        },
    },
];

fn pictures(theme: Theme) -> String {
    let mut styles = StyleLegend::default();
    let mut out = String::new();
    let in_transcript =
        [thinking_states::SCENES, messages::USER, messages::ANSWERS, tool_calls::SCENES, messages::NOTICES].concat();
    for scene in in_transcript {
        let mut term = TestTerminal::with_theme(WIDTH, 60, theme, ThinkingDisplay::Full);
        (scene.play)(&mut term);
        let rows = term.rows();
        let input = rows.iter().rposition(|row| row.starts_with('─')).unwrap();
        let picture = term.styled(&mut styles);
        let transcript = picture.lines().take(input).collect::<Vec<_>>().join("\n");
        out.push_str(&format!("## {}\n{}\n\n", scene.name, transcript.trim_end()));
    }
    for scene in AROUND {
        let mut term = TestTerminal::with_theme(WIDTH, 12, theme, ThinkingDisplay::Live);
        (scene.play)(&mut term);
        out.push_str(&format!("## {}\n{}\n\n", scene.name, term.styled(&mut styles).trim_end()));
    }
    out + &styles.legend()
}

#[test]
fn t1_t13_every_style_on_dark_on_light_with_sixteen_colours_and_without_colour() {
    let on = |scheme, depth| Theme { scheme, depth, ..Theme::default() };
    for (name, theme) in [
        ("dark", on(ColourScheme::Dark, ColourDepth::True)),
        ("light", on(ColourScheme::Light, ColourDepth::True)),
        ("dark-16", on(ColourScheme::Dark, ColourDepth::Sixteen)),
        ("no-colour", on(ColourScheme::Dark, ColourDepth::None)),
    ] {
        check(&format!("styles-{name}.txt"), &pictures(theme));
    }
}
