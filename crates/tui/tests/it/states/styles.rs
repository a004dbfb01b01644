//! The same scenes with the styles of a dark, a light and a colourless
//! terminal. A row of a picture ends with its styles and how many columns
//! each takes; the legend stands at the end of the file.

use aside_core::settings::Display;
use aside_tui::theme::{Depth, Ground, Theme};
use crossterm::event::KeyCode;

use super::{Scene, check, talk, thoughts, tools};
use crate::support::{Stage, Styles};

const WIDTH: u16 = 64;

const AROUND: &[Scene] = &[
    Scene {
        name: "a question",
        play: |stage| {
            super::around::ask(
                stage,
                "edit",
                "src/lib.rs",
                Some("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b"),
                Some("edit:*"),
            )
        },
    },
    Scene { name: "completion", play: |stage| stage.typed("/thinking ") },
    Scene {
        name: "browsing, the first of two",
        play: |stage| {
            stage.think(0, "First.", 2_000);
            stage.think(1, "Second.", 2_000);
            stage.key(KeyCode::Tab);
            stage.key(KeyCode::Up);
        },
    },
    Scene {
        name: "scrolled away, inside a thought",
        play: |stage| {
            stage.line("/thinking full");
            stage.think(0, &(1..40).map(|line| format!("line {line}\n")).collect::<String>(), 4_000);
            stage.rows();
            stage.wheel(true);
        },
    },
    Scene {
        name: "a word found in the reader",
        play: |stage| {
            stage.think(0, "**Reading**\n\nI read it, and read it again.", 2_000);
            stage.control('r');
            stage.typed("/read");
            stage.key(KeyCode::Enter);
        },
    },
];

fn pictures(theme: Theme) -> String {
    let mut styles = Styles::default();
    let mut out = String::new();
    let in_transcript = [thoughts::SCENES, talk::USER, talk::ANSWERS, tools::SCENES, talk::NOTICES].concat();
    for scene in in_transcript {
        let mut stage = Stage::themed(WIDTH, 60, theme, Display::Full);
        (scene.play)(&mut stage);
        let rows = stage.rows();
        let input = rows.iter().rposition(|row| row.starts_with('─')).unwrap();
        let picture = stage.styled(&mut styles);
        let transcript = picture.lines().take(input).collect::<Vec<_>>().join("\n");
        out.push_str(&format!("## {}\n{}\n\n", scene.name, transcript.trim_end()));
    }
    for scene in AROUND {
        let mut stage = Stage::themed(WIDTH, 12, theme, Display::Live);
        (scene.play)(&mut stage);
        out.push_str(&format!("## {}\n{}\n\n", scene.name, stage.styled(&mut styles).trim_end()));
    }
    out + &styles.legend()
}

#[test]
fn t1_t13_every_style_on_dark_on_light_and_without_colour() {
    let on = |ground, depth| Theme { ground, depth, ..Theme::default() };
    for (name, theme) in [
        ("dark", on(Ground::Dark, Depth::True)),
        ("light", on(Ground::Light, Depth::True)),
        ("no-colour", on(Ground::Dark, Depth::None)),
    ] {
        check(&format!("styles-{name}.txt"), &pictures(theme));
    }
}
