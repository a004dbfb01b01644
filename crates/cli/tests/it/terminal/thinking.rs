//! Thinking on the screen: folding, views, scrolling, notices.

use vt100::Color;

use super::emulator::{Background, Style};
use super::test_folders::TestFolders;
use super::{CTRL_O, CTRL_T, DEFAULT_OPTIONS, END, HOME, PAGE_UP, Terminal, TerminalOptions};

/// Rows of the `live` window, and one more than that.
const MORE_THAN_A_WINDOW: usize = 9;

/// Longer than any test needs.
const STREAM: &str = "sim: think tokens=6000 rate=150";

fn count(lines: &[String], text: &str) -> usize {
    lines.iter().filter(|line| line.contains(text)).count()
}

fn gutters(lines: &[String]) -> usize {
    lines.iter().filter(|line| line.starts_with("│ ")).count()
}

/// The count in a header like `⠋ Thinking · 3s · ~120 tokens`, or `~1.2k tokens`.
fn tokens(lines: &[String]) -> u64 {
    let header = lines.iter().find(|line| line.contains("Thinking"));
    let word = header.and_then(|line| line.split("· ~").nth(1)).and_then(|rest| rest.split(' ').next()).unwrap_or("");
    let thousands = word.strip_suffix('k').and_then(|number| number.parse::<f64>().ok());
    thousands.map_or_else(|| word.parse().unwrap_or(0), |number| (number * 1000.0) as u64)
}

#[test]
fn t4_thinking_folds_and_unfolds_by_click_and_by_key_while_it_streams_and_after() {
    let folder = TestFolders::new("fold");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.enter(STREAM);
    terminal.until("a window", |lines| gutters(lines) == MORE_THAN_A_WINDOW - 1 && tokens(lines) > 200);
    terminal.click_on("Thinking");
    terminal.until("open by click, while it streams", |lines| gutters(lines) >= MORE_THAN_A_WINDOW);
    terminal.click_on("Thinking");
    terminal.until("folded by click, while it streams", |lines| gutters(lines) == 0 && count(lines, "Thinking") == 1);
    terminal.keys(CTRL_O);
    terminal.until("open by key, while it streams", |lines| gutters(lines) >= MORE_THAN_A_WINDOW);
    terminal.keys(CTRL_O);
    terminal.until("folded by key, while it streams", |lines| gutters(lines) == 0);
    terminal.keys(CTRL_O);
    terminal.until("open", |lines| gutters(lines) >= MORE_THAN_A_WINDOW);
    terminal.keys("\x1b");
    terminal.idle();
    terminal.until("the choice survives the end", |lines| gutters(lines) >= MORE_THAN_A_WINDOW);
    terminal.keys(HOME);
    terminal.see("▼ Thought");
    terminal.click_on("▼ Thought");
    terminal.until("folded by click, afterwards", |lines| count(lines, "▶ Thought") == 1 && gutters(lines) == 0);
    terminal.click_on("▶ Thought");
    terminal.until("open by click, afterwards", |lines| count(lines, "▼ Thought") == 1 && gutters(lines) > 0);
    terminal.keys(CTRL_O);
    terminal.until("folded by key, afterwards", |lines| count(lines, "▶ Thought") == 1 && gutters(lines) == 0);
}

#[test]
fn t2_the_first_fold_of_a_session_says_how_to_open_it_and_no_other_does() {
    let folder = TestFolders::new("hint");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    for question in ["one", "two"] {
        terminal.enter(question);
        terminal.see(&format!("You wrote: \"{question}\""));
        terminal.idle();
    }
    assert_eq!(count(&terminal.lines(), "▶ Thought"), 2, "{}", terminal.picture());
    assert_eq!(count(&terminal.lines(), "(click to expand)"), 1, "{}", terminal.picture());
}

#[test]
fn t3_a_view_holds_for_the_whole_transcript_and_for_the_next_start() {
    let folder = TestFolders::new("views");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.enter("sim: thoughts 2 rate=500");
    terminal.until("two folded thoughts", |lines| count(lines, "▶ Thought") == 2);
    terminal.idle();
    // The order of Ctrl+T, starting from live.
    for (view, folded, open) in [("collapsed", 2, 0), ("off", 0, 0), ("full", 0, 2), ("live", 2, 0)] {
        terminal.keys(CTRL_T);
        terminal.see(&format!("Thinking: {view}"));
        let lines = terminal.lines();
        assert_eq!((count(&lines, "▶ Thought"), count(&lines, "▼ Thought")), (folded, open), "{view}");
        assert_eq!(gutters(&lines) > 0, open > 0, "{view}\n{}", terminal.picture());
    }
    for (command, view) in [(":toggle thinking", "collapsed"), (":thinking", "off"), ("/thinking full", "full")] {
        terminal.enter(command);
        terminal.see(&format!("Thinking: {view}"));
    }
    terminal.until("both open", |lines| count(lines, "▼ Thought") == 2);
    terminal.enter("/quit");
    assert!(terminal.ended().success());
    let mut again = Terminal::ready(&folder, &["-c"]);
    again.until("both open after a restart", |lines| count(lines, "▼ Thought") == 2);
    again.enter("more");
    again.until("a new one too", |lines| lines.iter().rev().take(20).any(|line| line.starts_with("│ ")));
}

#[test]
fn t3_the_last_view_is_shown_after_a_resume_also_if_the_session_stored_other_settings() {
    let folder = TestFolders::new("view-and-settings");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.enter("/thinking off");
    terminal.see("Thinking: off");
    // Stores the settings of the session.
    terminal.enter("/set context.limit=50000");
    terminal.see("/50k");
    terminal.enter("one");
    terminal.see("You wrote: \"one\"");
    terminal.idle();
    terminal.enter("/thinking live");
    terminal.see("▶ Thought");
    terminal.enter("/quit");
    assert!(terminal.ended().success());
    let mut again = Terminal::ready(&folder, &["-c"]);
    again.see_all(&["▶ Thought", "/50k"]);
}

#[test]
fn t7_the_view_stays_when_scrolled_up_while_it_streams() {
    let folder = TestFolders::new("scroll");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi", "--set", "reasoning.display=full"]);
    terminal.enter(STREAM);
    terminal.until("more than a page", |lines| tokens(lines) > 600);
    assert!(!terminal.shows("↓ live"));
    terminal.keys(PAGE_UP);
    terminal.see("↓ live");
    let text =
        |lines: &[String]| -> Vec<String> { lines.iter().filter(|line| line.starts_with("│ ")).cloned().collect() };
    let (before, count) = (text(&terminal.lines()), tokens(&terminal.lines()));
    assert!(before.len() > 10, "{}", terminal.picture());
    terminal.until("more of it", |lines| tokens(lines) > count + 300);
    assert_eq!(text(&terminal.lines()), before, "the view moved");
    terminal.keys(END);
    terminal.miss("↓ live");
    assert_ne!(text(&terminal.lines()), before, "the end is somewhere else");
    let count = tokens(&terminal.lines());
    let at_end = text(&terminal.lines());
    terminal.until("it is followed again", |lines| tokens(lines) > count + 100 && text(lines) != at_end);
    terminal.wheel_up();
    terminal.see("↓ live");
    let row = terminal.row_of("↓ live");
    terminal.click(row, 77);
    terminal.miss("↓ live");
}

#[test]
fn t6_a_reply_of_only_thinking_stays_open_with_the_exact_notice() {
    const NOTICE: &str = "Model provided reasoning but no response. Try rephrasing your question.";
    let folder = TestFolders::new("only");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.enter("sim: reasoning-only rate=500");
    terminal.until("the notice", |lines| lines.iter().any(|line| line == &format!("! {NOTICE}")));
    terminal.idle();
    let lines = terminal.lines();
    assert_eq!((count(&lines, "▼ Thought"), count(&lines, "✗")), (1, 0), "{}", terminal.picture());
    assert!(gutters(&lines) > 0, "{}", terminal.picture());
    terminal.enter("/quit");
    terminal.ended();
    let mut again = Terminal::ready(&folder, &["-c"]);
    again.see(NOTICE);
    again.see("▼ Thought");
    again.enter("sim: empty");
    again.see("✗ the model sent nothing at all");
}

#[test]
fn t2_thinking_hidden_by_the_provider_is_marked_hidden() {
    let folder = TestFolders::new("hidden");
    for (model, script) in [("sim/openai", "sim: encrypted"), ("sim/anthropic", "sim: redacted")] {
        let mut terminal = Terminal::ready(&folder, &["-m", model]);
        terminal.enter(script);
        terminal.see("hidden by provider");
        terminal.idle();
        let header = terminal.line_with("hidden by provider");
        assert!(header.starts_with("▶ Thought"), "{model}: {header}");
        terminal.click_on("▶ Thought");
        terminal.see(" sealed bytes ");
        assert!(terminal.line_with(" sealed bytes ").starts_with("│ "), "{}", terminal.picture());
    }
}

#[test]
fn t1_the_shade_of_thinking_fits_the_background_that_the_terminal_reports() {
    let folder = TestFolders::new("shade");
    let none: &[_] = &[("NO_COLOR", "1")];
    for (background, env) in [(Background::Dark, &[][..]), (Background::Light, &[]), (Background::Dark, none)] {
        let mut terminal =
            Terminal::start(&folder, &["-m", "sim/kimi"], TerminalOptions { background, env, ..DEFAULT_OPTIONS });
        terminal.see("❯ ");
        terminal.enter("sim: think rate=500");
        terminal.see("▶ Thought");
        terminal.idle();
        terminal.keys(CTRL_O);
        terminal.see("│ ");
        let row = terminal.row_of("│ ") as u16;
        let Style { italic, back, .. } = terminal.styles(row)[4];
        assert!(italic, "{background:?}");
        match (back, background, env.is_empty()) {
            (Color::Rgb(r, g, b), Background::Dark, true) => assert!(r > 16 && g > 17 && b > 20, "{r} {g} {b}"),
            (Color::Rgb(r, g, b), Background::Light, true) => assert!(r < 255 && g < 255 && b < 255, "{r} {g} {b}"),
            (Color::Default, _, false) => {
                for style in (0..DEFAULT_OPTIONS.rows).flat_map(|row| terminal.styles(row)) {
                    assert_eq!((style.ink, style.back), (Color::Default, Color::Default));
                }
            }
            other => panic!("{other:?}"),
        }
    }
}
