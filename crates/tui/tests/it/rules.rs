//! Display requirements that have their own id, one test each.
//!
//! | rule | test |
//! |---|---|
//! | REQ-THINK-007.1 inline, on a shade | `req_think_007_1_…` |
//! | REQ-THINK-007.2 italic | `req_think_007_2_…` |
//! | REQ-THINK-007.3 the shade fits the theme | `req_think_007_3_…`, here and in `src/theme.rs` |
//! | REQ-THINK-007.4 `includeInResponse=false` hides | `req_think_007_4_…` |
//! | BR-003 showing and sending are independent | `br_003_…`; what is sent, in `core/tests/it/seeds.rs` |
//! | EC-005 a profile takes effect at once | `ec_005_…` |
//!
//! The tests of the display requirements T1-T13:
//!
//! | requirement | tests |
//! |---|---|
//! | T1 gutter, dim, italic, shade | `req_think_007_1`-`3`, `seed_000_01`, `seed_000_04`, `states/` |
//! | T2 header | `t2_…` in `thinking.rs`, `seed_000_03`, `seed_004_01`, `seed_004_03` |
//! | T3 views | `t3_…` in `thinking.rs`, `seed_003_…` |
//! | T4 running and folded are independent | `t4_…` in `thinking.rs`, `seed_004_05`, `seed_004_06` |
//! | T5 summaries | `t5_…` in `thinking.rs`, `seed_004_01`, `_02`, `_04`, `_07` |
//! | T6 only thinking | `t6_…` in `thinking.rs`, `seed_000_10` |
//! | T7 nothing jumps | `t7_…` in `scrolling.rs` |
//! | T8 Markdown | `t8_…` in `src/text/`, `scrolling.rs` |
//! | T9 no escapes | `t9_…` in `input.rs` |
//! | T10 input | `t10_…` in `input.rs`, `src/input/`, `src/commands.rs` |
//! | T11 status line | `t11_…` in `input.rs`, `src/token_estimate.rs`, `statusline.rs` |
//! | T12 reader | `t12_…` in `input.rs` |
//! | T13 any terminal | `t13_…` in `input.rs`, `properties.rs`, `src/theme.rs`, `states/` |

use std::sync::Arc;

use aside_core::block::Block;
use aside_core::message::{Message, Role};
use aside_core::settings::{Layer, SettingChange, Settings, ThinkingDisplay};
use aside_front::{Command, OpenedBlock, Status, Update};
use aside_tui::theme::{ColourDepth, ColourScheme, Theme};
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};

use crate::support::{TestTerminal, hidden, text_block, thinking};

fn row_of(term: &mut TestTerminal, text: &str) -> u16 {
    let rows = term.rows();
    rows.iter().position(|row| row.contains(text)).unwrap_or_else(|| panic!("no {text:?} in {rows:#?}")) as u16
}

/// The update that the driver sends when a setting changes.
fn show(term: &mut TestTerminal, settings: &Settings) {
    let status = Status { model: "acme/deep".into(), view: settings.display(), ..Status::default() };
    term.update(Update::Status(Box::new(status)));
}

fn is_shaded(buffer: &Buffer, y: u16) -> bool {
    (0..buffer.area.width).all(|x| buffer[(x, y)].bg != Color::Reset)
}

#[test]
fn req_think_007_1_thinking_is_inline_on_a_shade() {
    // Sixteen colours have no shade that fits.
    for (depth, has_shade) in [(ColourDepth::True, true), (ColourDepth::Indexed, true), (ColourDepth::Sixteen, false)] {
        let theme = Theme { depth, ..Theme::default() };
        let mut term = TestTerminal::with_theme(60, 30, theme, ThinkingDisplay::Full);
        term.send();
        term.write(0, "Let me see.");
        term.think(1, "I wonder\nwhy.", 3000);
        term.call(2, "c1", "read", r#"{"path":"a.txt"}"#);
        term.open(3, OpenedBlock::Thinking);
        term.grow(3, "And now");
        let shown =
            ["Let me see.", "▼ Thought for 3s", "│ I wonder", "│ why.", "○ read a.txt", "⠋ Thinking", "│ And now"];
        let rows: Vec<u16> = shown.iter().map(|text| row_of(&mut term, text)).collect();
        assert!(rows.is_sorted(), "each in its place: {rows:?}");
        let buffer = term.buffer();
        let shaded: Vec<u16> = (0..20).filter(|y| is_shaded(&buffer, *y)).collect();
        let thoughts = [rows[1], rows[2], rows[3], rows[5], rows[6]];
        let expected = if has_shade { &thoughts[..] } else { &[] };
        assert_eq!(shaded, expected, "whole rows, of thoughts alone: {depth:?}");
    }
}

#[test]
fn req_think_007_2_thinking_is_italic() {
    for depth in [ColourDepth::True, ColourDepth::Indexed, ColourDepth::Sixteen, ColourDepth::None] {
        let theme = Theme { depth, ..Theme::default() };
        let mut term = TestTerminal::with_theme(60, 20, theme, ThinkingDisplay::Full);
        term.think(0, "I *wonder* about `this`\n\n- and **that**", 3000);
        term.write(1, "Answer.");
        let rows = ["│ I wonder about this", "│ • and that"].map(|text| row_of(&mut term, text));
        let answer = row_of(&mut term, "Answer.");
        let buffer = term.buffer();
        let is_italic = |x: u16, y: u16| buffer[(x, y)].modifier.contains(Modifier::ITALIC);
        let is_letter = |x: u16, y: u16| buffer[(x, y)].symbol().chars().all(char::is_alphabetic);
        let letters = |y: u16| (0..60).filter(|x| is_letter(*x, y)).collect::<Vec<u16>>();
        for y in rows {
            assert!(letters(y).len() > 5);
            assert!(letters(y).iter().all(|x| is_italic(*x, y)), "every letter: {depth:?}");
        }
        assert!(letters(answer).iter().all(|x| !is_italic(*x, answer)), "no letter of the answer: {depth:?}");
    }
}

#[test]
fn req_think_007_3_the_shade_is_lighter_on_dark_and_darker_on_light() {
    let brightness = |colour: Color| match colour {
        Color::Rgb(r, g, b) => u32::from(r) + u32::from(g) + u32::from(b),
        other => panic!("{other:?}"),
    };
    let mut term = TestTerminal::with_theme(
        40,
        12,
        Theme { scheme: ColourScheme::Dark, ..Theme::default() },
        ThinkingDisplay::Full,
    );
    term.think(0, "I wonder.", 0);
    let y = row_of(&mut term, "│ I wonder.");
    let on_dark = brightness(term.buffer()[(0, y)].bg);
    assert!(16 + 17 + 20 < on_dark && on_dark < 200, "lighter than dark: {on_dark}");
    term.line("/theme light");
    let on_light = brightness(term.buffer()[(0, y)].bg);
    assert!(600 < on_light && on_light < 3 * 255, "darker than light, and at once: {on_light}");
    // If the terminal reports its background, shades derive from it.
    for background in [(40, 44, 52), (253, 246, 227)] {
        let theme = Theme::for_background(background, ColourDepth::True);
        let mut term = TestTerminal::with_theme(40, 12, theme, ThinkingDisplay::Full);
        term.think(0, "I wonder.", 0);
        let told = u32::from(background.0) + u32::from(background.1) + u32::from(background.2);
        let shade = brightness(term.buffer()[(0, y)].bg);
        assert_eq!(shade > told, theme.scheme == ColourScheme::Dark, "{background:?}");
    }
}

#[test]
fn req_think_007_4_include_in_response_false_hides_all_thinking() {
    for view in ThinkingDisplay::ALL {
        let mut settings = Settings::new();
        settings.show(*view);
        settings.set(Layer::Session, "reasoning.includeInResponse", "false").unwrap();
        let mut term = TestTerminal::new(60, 20);
        let restored = vec![Block::Thinking(thinking("From the store.", None)), text_block("Restored.")];
        term.update(Update::Restored(vec![Arc::new(Message::new(Role::Assistant, restored))]));
        term.send();
        term.think(0, "I wonder.", 2000);
        term.open(1, OpenedBlock::Thinking);
        term.close(1, Block::Thinking(hidden()));
        term.write(2, "Answer.");
        term.open(3, OpenedBlock::Thinking);
        term.grow(3, "Still going");
        show(&mut term, &settings);
        assert_eq!(term.transcript(), ["Restored.", "Answer."], "done, sealed, running and restored: {view}");
        settings.set(Layer::Session, "reasoning.includeInResponse", "true").unwrap();
        show(&mut term, &settings);
        assert_eq!(term.transcript().len() > 2, *view != ThinkingDisplay::Off, "it was never dropped: {view}");
    }
}

#[test]
fn br_003_showing_and_sending_are_independent() {
    for (shown, sent) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut settings = Settings::new();
        settings.set(Layer::Session, "reasoning.includeInResponse", &shown.to_string()).unwrap();
        settings.set(Layer::Session, "reasoning.includeInContext", &sent.to_string()).unwrap();
        let mut term = TestTerminal::new(60, 20);
        term.think(0, "I wonder.", 0);
        show(&mut term, &settings);
        assert_eq!(term.screen().contains("I wonder."), shown, "whatever is sent: {sent}");
        assert_eq!(settings.include_in_context(), (sent, Layer::Session), "whatever is shown: {shown}");
    }
    // Changing the view changes nothing that is sent.
    let mut settings = Settings::new();
    let mut term = TestTerminal::new(60, 20);
    term.think(0, "I wonder.", 0);
    for line in ["/thinking off", "/thinking full", ":thinking", ":toggle thinking"] {
        term.line(line);
        let asked = term.sent.pop();
        let Some(Command::View(view)) = asked else { panic!("{line}: {asked:?}") };
        assert_eq!(term.sent, [], "{line}");
        let before = (settings.include_in_context(), settings.strip());
        settings.show(view);
        assert_eq!((settings.include_in_context(), settings.strip()), before, "{line}");
    }
}

#[test]
fn ec_005_a_profile_changes_the_whole_transcript_at_once() {
    let profile = |text: &[&str]| text.iter().map(|one| one.parse().unwrap()).collect::<Vec<SettingChange>>();
    let mut settings = Settings::new();
    settings.set(Layer::Session, "reasoning.display", "collapsed").unwrap();
    let mut term = TestTerminal::new(60, 30);
    term.line("why?");
    term.send();
    term.think(0, "I wonder.", 0);
    term.write(1, "Answer.");
    term.send();
    term.open(0, OpenedBlock::Thinking);
    term.grow(0, "Still going");
    term.sent.clear();
    #[rustfmt::skip]
    let cases: &[(&[&str], bool, bool)] = &[
        (&["reasoning.display=full"],                                       true,  true),
        (&["reasoning.display=off"],                                        false, false),
        (&["reasoning.effort=high"],                                        false, true),
        (&["reasoning.display=full", "reasoning.includeInResponse=false"],  false, false),
        (&["reasoning.display=collapsed"],                                  false, false),
        (&["show_thinking=true"],                                           false, true),
    ];
    for (values, past, running) in cases {
        settings.load_profile(profile(values));
        show(&mut term, &settings);
        let screen = term.screen();
        let seen = (screen.contains("│ I wonder."), screen.contains("│ Still going"));
        assert_eq!(seen, (*past, *running), "{values:?}: {screen}");
    }
    assert_eq!(term.sent, [], "no request is sent and no history replayed");
}
