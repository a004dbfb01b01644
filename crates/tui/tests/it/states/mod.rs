//! Golden frames of every state: in every view at 40, 80, 120 and 200 columns, and again with the
//! styles of a dark, a light, a sixteen-colour and a colourless terminal. `UPDATE_EXPECT=1` writes them into
//! `tests/screens/states/`; read them before committing.

mod chrome;
mod messages;
mod styles;
mod thinking_states;
mod tool_calls;

use std::path::Path;

use aside_core::settings::ThinkingDisplay;
use aside_tui::theme::Motion;
use aside_tui::transcript::{OpenHint, RenderContext};
use expect_test::expect_file;

use crate::support::TestTerminal;

const WIDTHS: [u16; 4] = [40, 80, 120, 200];

/// One state, and how to get there.
#[derive(Clone, Copy)]
struct StateScene {
    name: &'static str,
    play: fn(&mut TestTerminal),
}

fn check(name: &str, picture: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens/states").join(name).display().to_string();
    expect_file![path].assert_eq(picture);
}

/// The text of the transcript, including blank rows.
fn transcript(term: &mut TestTerminal) -> String {
    let rows = term.rows();
    let input = rows.iter().rposition(|row| row.starts_with('─')).unwrap_or(rows.len());
    rows[..input].join("\n").trim_end().to_owned()
}

/// One file per width: the scenes below one another, each in every view. Views that look the same
/// share a picture.
fn check_scenes(kind: &str, scenes: &[StateScene]) {
    for width in WIDTHS {
        let mut out = String::new();
        for scene in scenes {
            out.push_str(&format!("## {}\n", scene.name));
            let mut pictures: Vec<(Vec<&str>, String)> = Vec::new();
            for view in ThinkingDisplay::ALL {
                let mut term = TestTerminal::with_view(width, 80, *view);
                (scene.play)(&mut term);
                let picture = transcript(&mut term);
                match pictures.iter_mut().find(|(_, other)| *other == picture) {
                    Some((views, _)) => views.push(view.as_str()),
                    None => pictures.push((vec![view.as_str()], picture)),
                }
            }
            for (views, picture) in pictures {
                // Most scenes without thinking look the same in every view.
                if views.len() < ThinkingDisplay::ALL.len() {
                    out.push_str(&format!("-- {}\n", views.join(", ")));
                }
                out.push_str(if picture.is_empty() { "(nothing)" } else { &picture });
                out.push_str("\n\n");
            }
        }
        check(&format!("{kind}-{width}.txt"), &out);
    }
}

/// One file per width, with whole screens of a few rows.
fn check_screens(kind: &str, height: u16, scenes: &[StateScene]) {
    for width in WIDTHS {
        let mut out = String::new();
        for scene in scenes {
            let mut term = TestTerminal::new(width, height);
            (scene.play)(&mut term);
            out.push_str(&format!("## {}\n{}\n\n", scene.name, term.screen().trim_end()));
        }
        check(&format!("{kind}-{width}.txt"), &out);
    }
}

/// Text that does not fit is shortened visibly, not cut off by the screen's edge.
#[test]
fn t13_no_header_is_wider_than_the_screen() {
    for scene in [thinking_states::SCENES, tool_calls::SCENES].concat() {
        let mut term = TestTerminal::new(80, 20);
        (scene.play)(&mut term);
        let transcript = term.app.transcript();
        for width in (12..64).chain([80, 120]) {
            for view in ThinkingDisplay::ALL {
                let context = RenderContext { width, view: *view, ..transcript.render_context(Motion::Spinner) };
                let headers =
                    transcript.items().iter().filter_map(|item| item.header(&context, Some(&OpenHint::default())));
                for header in headers {
                    assert!(header.width() <= width, "{} in {view} at {width}: {:?}", scene.name, header.text());
                }
            }
        }
    }
}
