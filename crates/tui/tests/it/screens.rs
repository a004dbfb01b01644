//! Golden frames: every kind of block in every view, at three widths and in every theme.
//! `UPDATE_EXPECT=1` writes them; read them before committing.

use std::path::Path;

use aside_core::block::Block;
use aside_core::event::BlockId;
use aside_core::settings::ThinkingDisplay;
use aside_core::turn::TurnEnd;
use aside_front::{OpenedBlock, Update};
use expect_test::expect_file;

use crate::support::{TestTerminal, hidden, themes};

const ANSWER: &str = "## What I found\n\nThe *second* test fails, **not** the first:\n\n```rust\nassert_eq!(cut(\"漢字漢字\", 5), \"漢字…\");\n```\n\n| test | why |\n|---|---|\n| `cut` | a wide letter 👩‍💻 |\n| `wrap` | e\u{301} is one letter |\n\n1. see [the rules](https://example.com/rules)\n2. averyveryverylongwordthatdoesnotfitintofortycolumnsatall\n\n> quoted";
const DIFF: &str = "edited `a.rs`\n--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n fn a() {}\n-old();\n+new();";

/// One turn with every kind of block.
fn scene(term: &mut TestTerminal) {
    term.line("why does the test fail?\nlook at 漢字 too");
    term.send();
    term.think(0, "The user asks about a test. I should run it first, then read what it says.", 12_000);
    term.open(1, OpenedBlock::Thinking);
    term.close(1, Block::Thinking(hidden()));
    term.call(2, "c1", "shell", r#"{"command":"cargo test"}"#);
    term.result("c1", "error: one test failed\nfull log below", true);
    term.call(3, "c2", "edit", r#"{"path":"a.rs"}"#);
    term.result("c2", DIFF, false);
    term.call(4, "c3", "read", r#"{"path":"a.rs"}"#);
    term.result("c3", "one\ntwo", false);
    term.write(5, ANSWER);
    term.end(TurnEnd::Length);
}

fn path(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens").join(name).display().to_string()
}

fn check(name: &str, picture: &str) {
    let path = path(name);
    expect_file![path].assert_eq(picture);
}

#[test]
fn t13_every_block_at_40_80_120_and_200_columns() {
    for width in [40, 80, 120, 200] {
        let mut term = TestTerminal::with_view(width, if width == 40 { 54 } else { 46 }, ThinkingDisplay::Full);
        scene(&mut term);
        check(&format!("blocks-{width}.txt"), &(term.screen() + "\n"));
    }
}

#[test]
fn t3_every_view_while_it_streams_and_when_it_is_done() {
    let mut out = String::new();
    for view in ThinkingDisplay::ALL {
        let mut term = TestTerminal::with_view(60, 40, *view);
        term.line("go");
        term.send();
        term.open(0, OpenedBlock::Thinking);
        for item in
            ["**Reading**\n\nI read the file and see ten lines of it.", "**Planning**\n\na\nb\nc\nd\ne\nf\ng\nh\ni"]
        {
            term.update(Update::Item { block: BlockId(0) });
            term.grow(0, item);
        }
        term.advance(4_000);
        out.push_str(&format!("== {view}, running\n{}\n", term.transcript().join("\n")));
        let text = "**Reading**\n\nI read the file and see ten lines of it.\n\n**Planning**\n\na\nb";
        term.close(0, Block::Thinking(crate::support::thinking(text, None)));
        term.write(1, "Done.");
        out.push_str(&format!("== {view}, done\n{}\n", term.transcript().join("\n")));
    }
    check("views-60.txt", &out);
}

#[test]
fn t1_every_theme() {
    for (name, theme) in themes() {
        let mut term = TestTerminal::with_theme(40, 30, theme, ThinkingDisplay::Full);
        term.line("why?");
        term.send();
        term.think(0, "Because of **this**, I `think`.", 2_000);
        term.call(1, "c1", "edit", r#"{"path":"a.rs"}"#);
        term.result("c1", DIFF, false);
        term.write(2, "# So\n\nit *is* [so](x) `here`.");
        term.end(TurnEnd::Empty);
        check(&format!("theme-{name}.txt"), &term.picture());
    }
}

#[test]
fn everything_around_the_transcript() {
    let mut out = String::new();
    for width in [40, 80] {
        let mut term = TestTerminal::new(width, 16);
        term.type_text("/thinking ");
        out.push_str(&format!("== completion at {width}\n{}\n", term.screen().trim_start()));
        let mut term = TestTerminal::new(width, 18);
        term.line("go");
        term.send();
        term.line("and do this first");
        term.queue_line("and then this");
        term.type_text("one more 漢字");
        out.push_str(&format!("== queue at {width}\n{}\n", term.screen()));
        term.update(Update::QuestionAsked(Box::new(aside_front::PendingQuestion {
            id: aside_front::QuestionId(1),
            about: crate::support::question_about("edit", "a.rs", Some(DIFF.into()), Some("edit:*".into())),
        })));
        out.push_str(&format!("== question at {width}\n{}\n", term.screen()));
    }
    check("around.txt", &out);
}
