//! Every state of everything on the screen, as pictures: in every view and at
//! 40, 80 and 200 columns, and once more with the styles of a dark, a light
//! and a colourless terminal. `UPDATE_EXPECT=1` writes them into
//! `tests/screens/states/`; read them before committing.

mod around;
mod styles;
mod talk;
mod thoughts;
mod tools;

use std::path::Path;

use aside_core::settings::Display;
use aside_tui::theme::Motion;
use aside_tui::transcript::Look;
use expect_test::expect_file;

use crate::support::Stage;

const WIDTHS: [u16; 3] = [40, 80, 200];

/// One state, and how to come to it.
#[derive(Clone, Copy)]
struct Scene {
    name: &'static str,
    play: fn(&mut Stage),
}

fn check(name: &str, picture: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens/states").join(name).display().to_string();
    expect_file![path].assert_eq(picture);
}

/// What stands in the transcript, with the blank rows inside it.
fn transcript(stage: &mut Stage) -> String {
    let rows = stage.rows();
    let input = rows.iter().rposition(|row| row.starts_with('─')).unwrap_or(rows.len());
    rows[..input].join("\n").trim_end().to_owned()
}

/// A file for each width: the scenes below one another, each in every view.
/// Views that look the same share a picture.
fn check_scenes(kind: &str, scenes: &[Scene]) {
    for width in WIDTHS {
        let mut out = String::new();
        for scene in scenes {
            out.push_str(&format!("## {}\n", scene.name));
            let mut pictures: Vec<(Vec<&str>, String)> = Vec::new();
            for view in Display::ALL {
                let mut stage = Stage::viewed(width, 80, *view);
                (scene.play)(&mut stage);
                let picture = transcript(&mut stage);
                match pictures.iter_mut().find(|(_, other)| *other == picture) {
                    Some((views, _)) => views.push(view.as_str()),
                    None => pictures.push((vec![view.as_str()], picture)),
                }
            }
            for (views, picture) in pictures {
                // Most of what is no thought looks the same in all of them.
                if views.len() < Display::ALL.len() {
                    out.push_str(&format!("-- {}\n", views.join(", ")));
                }
                out.push_str(if picture.is_empty() { "(nothing)" } else { &picture });
                out.push_str("\n\n");
            }
        }
        check(&format!("{kind}-{width}.txt"), &out);
    }
}

/// A file for each width with whole screens of a few rows.
fn check_screens(kind: &str, height: u16, scenes: &[Scene]) {
    for width in WIDTHS {
        let mut out = String::new();
        for scene in scenes {
            let mut stage = Stage::new(width, height);
            (scene.play)(&mut stage);
            out.push_str(&format!("## {}\n{}\n\n", scene.name, stage.screen().trim_end()));
        }
        check(&format!("{kind}-{width}.txt"), &out);
    }
}

/// What does not fit is cut where one sees it, and not by the edge of the screen.
#[test]
fn t13_no_header_is_wider_than_the_screen() {
    for scene in [thoughts::SCENES, tools::SCENES].concat() {
        let mut stage = Stage::new(80, 20);
        (scene.play)(&mut stage);
        let transcript = stage.app.transcript();
        for width in (12..64).chain([80, 120]) {
            for view in Display::ALL {
                let look = Look { width, view: *view, ..transcript.look(Motion::Spinner) };
                let headers = transcript.items().iter().filter_map(|item| item.header(&look, true));
                for header in headers {
                    assert!(header.width() <= width, "{} in {view} at {width}: {:?}", scene.name, header.text());
                }
            }
        }
    }
}
