//! Frames as pictures: every kind of block in every view, at three widths and
//! in every theme. `UPDATE_EXPECT=1` writes them; read them before committing.

use std::path::Path;

use aside_core::block::Block;
use aside_core::event::BlockId;
use aside_core::settings::Display;
use aside_core::turn::TurnEnd;
use aside_tui::seam::{Opening, Update};
use expect_test::expect_file;

use crate::support::{Stage, hidden, themes};

const ANSWER: &str = "## What I found\n\nThe *second* test fails, **not** the first:\n\n```rust\nassert_eq!(cut(\"漢字漢字\", 5), \"漢字…\");\n```\n\n| test | why |\n|---|---|\n| `cut` | a wide letter 👩‍💻 |\n| `wrap` | e\u{301} is one letter |\n\n1. see [the rules](https://example.com/rules)\n2. averyveryverylongwordthatdoesnotfitintofortycolumnsatall\n\n> quoted";
const DIFF: &str = "edited `a.rs`\n--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n fn a() {}\n-old();\n+new();";

/// One turn with every kind of block in it.
fn scene(stage: &mut Stage) {
    stage.line("why does the test fail?\nlook at 漢字 too");
    stage.send();
    stage.think(0, "The user asks about a test. I should run it first, then read what it says.", 12_000);
    stage.open(1, Opening::Thinking);
    stage.close(1, Block::Thinking(hidden()));
    stage.call(2, "c1", "shell", r#"{"command":"cargo test"}"#);
    stage.result("c1", "error: one test failed\nfull log below", true);
    stage.call(3, "c2", "edit", r#"{"path":"a.rs"}"#);
    stage.result("c2", DIFF, false);
    stage.call(4, "c3", "read", r#"{"path":"a.rs"}"#);
    stage.result("c3", "one\ntwo", false);
    stage.write(5, ANSWER);
    stage.end(TurnEnd::Length);
}

fn path(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens").join(name).display().to_string()
}

fn check(name: &str, picture: &str) {
    let path = path(name);
    expect_file![path].assert_eq(picture);
}

#[test]
fn t13_every_block_at_40_80_and_200_columns() {
    for width in [40, 80, 200] {
        let mut stage = Stage::viewed(width, if width == 40 { 54 } else { 46 }, Display::Full);
        scene(&mut stage);
        check(&format!("blocks-{width}.txt"), &(stage.screen() + "\n"));
    }
}

#[test]
fn t3_every_view_while_it_streams_and_when_it_is_done() {
    let mut out = String::new();
    for view in Display::ALL {
        let mut stage = Stage::viewed(60, 40, *view);
        stage.line("go");
        stage.send();
        stage.open(0, Opening::Thinking);
        for item in
            ["**Reading**\n\nI read the file and see ten lines of it.", "**Planning**\n\na\nb\nc\nd\ne\nf\ng\nh\ni"]
        {
            stage.tell(Update::Item { block: BlockId(0) });
            stage.grow(0, item);
        }
        stage.pass(4_000);
        out.push_str(&format!("== {view}, running\n{}\n", stage.said().join("\n")));
        let text = "**Reading**\n\nI read the file and see ten lines of it.\n\n**Planning**\n\na\nb";
        stage.close(0, Block::Thinking(crate::support::thinking(text, None)));
        stage.write(1, "Done.");
        out.push_str(&format!("== {view}, done\n{}\n", stage.said().join("\n")));
    }
    check("views-60.txt", &out);
}

#[test]
fn t1_every_theme() {
    for (name, theme) in themes() {
        let mut stage = Stage::themed(40, 30, theme, Display::Full);
        stage.line("why?");
        stage.send();
        stage.think(0, "Because of **this**, I `think`.", 2_000);
        stage.call(1, "c1", "edit", r#"{"path":"a.rs"}"#);
        stage.result("c1", DIFF, false);
        stage.write(2, "# So\n\nit *is* [so](x) `here`.");
        stage.end(TurnEnd::Empty);
        check(&format!("theme-{name}.txt"), &stage.picture());
    }
}

#[test]
fn what_stands_around_the_transcript() {
    let mut out = String::new();
    for width in [40, 80] {
        let mut stage = Stage::new(width, 16);
        stage.typed("/thinking ");
        out.push_str(&format!("== completion at {width}\n{}\n", stage.screen().trim_start()));
        let mut stage = Stage::new(width, 18);
        stage.line("go");
        stage.send();
        stage.line("and then this");
        stage.typed("one more 漢字");
        out.push_str(&format!("== queue at {width}\n{}\n", stage.screen()));
        stage.tell(Update::Asked(Box::new(aside_tui::seam::Question {
            id: aside_tui::seam::QuestionId(1),
            about: crate::support::about("edit", "a.rs", Some(DIFF.into()), Some("edit:*".into())),
        })));
        out.push_str(&format!("== question at {width}\n{}\n", stage.screen()));
    }
    check("around.txt", &out);
}
