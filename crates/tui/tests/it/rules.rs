//! The rules about what is shown that have an id of their own, one test each.
//!
//! | rule | test |
//! |---|---|
//! | REQ-THINK-007.1 inline, on a shade | `req_think_007_1_…` |
//! | REQ-THINK-007.2 italic | `req_think_007_2_…` |
//! | REQ-THINK-007.3 the shade fits the theme | `req_think_007_3_…`, here and in `src/theme.rs` |
//! | REQ-THINK-007.4 `includeInResponse=false` hides | `req_think_007_4_…` |
//! | BR-003 shown and sent are two things | `br_003_…`; what is sent, in `core/tests/it/seeds.rs` |
//! | EC-005 a profile shows at once | `ec_005_…` |
//!
//! Where the rows T1-T13 of the display are held to:
//!
//! | row | tests |
//! |---|---|
//! | T1 gutter, dim, italic, shade | `req_think_007_1`-`3`, `seed_000_01`, `seed_000_04`, `states/` |
//! | T2 header | `t2_…` in `thinking.rs`, `seed_000_03`, `seed_004_01`, `seed_004_03` |
//! | T3 views | `t3_…` in `thinking.rs`, `seed_003_…` |
//! | T4 running and folded are two things | `t4_…` in `thinking.rs`, `seed_004_05`, `seed_004_06` |
//! | T5 summaries | `t5_…` in `thinking.rs`, `seed_004_01`, `_02`, `_04`, `_07` |
//! | T6 nothing but thinking | `t6_…` in `thinking.rs`, `seed_000_10` |
//! | T7 nothing jumps | `t7_…` in `scrolling.rs` |
//! | T8 Markdown | `t8_…` in `src/text/`, `scrolling.rs` |
//! | T9 no escapes | `t9_…` in `input.rs` |
//! | T10 input | `t10_…` in `input.rs`, `src/input/`, `src/commands.rs` |
//! | T11 status line | `t11_…` in `input.rs`, `src/count.rs` |
//! | T12 reader | `t12_…` in `input.rs` |
//! | T13 any terminal | `t13_…` in `input.rs`, `anything.rs`, `src/theme.rs`, `states/` |

use aside_core::block::Block;
use aside_core::message::{Message, Role};
use aside_core::settings::{Change, Display, Layer, Settings};
use aside_tui::seam::{Command, Opening, Status, Update};
use aside_tui::theme::{Depth, Ground, Theme};
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};

use crate::support::{Stage, hidden, thinking, words};

fn row_of(stage: &mut Stage, text: &str) -> u16 {
    let rows = stage.rows();
    rows.iter().position(|row| row.contains(text)).unwrap_or_else(|| panic!("no {text:?} in {rows:#?}")) as u16
}

/// What the driver tells when a setting changed.
fn show(stage: &mut Stage, settings: &Settings) {
    let status = Status { model: "acme/deep".into(), view: settings.display(), ..Status::default() };
    stage.tell(Update::Status(Box::new(status)));
}

fn is_shaded(buffer: &Buffer, y: u16) -> bool {
    (0..buffer.area.width).all(|x| buffer[(x, y)].bg != Color::Reset)
}

#[test]
fn req_think_007_1_a_thought_is_inline_on_a_shade() {
    for depth in [Depth::True, Depth::Indexed, Depth::Sixteen] {
        let theme = Theme { depth, ..Theme::default() };
        let mut stage = Stage::themed(60, 30, theme, Display::Full);
        stage.send();
        stage.write(0, "Let me see.");
        stage.think(1, "I wonder\nwhy.", 3000);
        stage.call(2, "c1", "read", r#"{"path":"a.txt"}"#);
        stage.open(3, Opening::Thinking);
        stage.grow(3, "And now");
        let shown =
            ["Let me see.", "▼ Thought for 3s", "│ I wonder", "│ why.", "○ read a.txt", "⠋ Thinking", "│ And now"];
        let rows: Vec<u16> = shown.iter().map(|text| row_of(&mut stage, text)).collect();
        assert!(rows.is_sorted(), "each in its place among the rest: {rows:?}");
        let buffer = stage.buffer();
        let shaded: Vec<u16> = (0..20).filter(|y| is_shaded(&buffer, *y)).collect();
        assert_eq!(shaded, [rows[1], rows[2], rows[3], rows[5], rows[6]], "whole rows, of thoughts alone: {depth:?}");
    }
}

#[test]
fn req_think_007_2_a_thought_is_italic() {
    for depth in [Depth::True, Depth::Indexed, Depth::Sixteen, Depth::None] {
        let theme = Theme { depth, ..Theme::default() };
        let mut stage = Stage::themed(60, 20, theme, Display::Full);
        stage.think(0, "I *wonder* about `this`\n\n- and **that**", 3000);
        stage.write(1, "Answer.");
        let rows = ["│ I wonder about this", "│ • and that"].map(|text| row_of(&mut stage, text));
        let answer = row_of(&mut stage, "Answer.");
        let buffer = stage.buffer();
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
    let mut stage = Stage::themed(40, 12, Theme { ground: Ground::Dark, ..Theme::default() }, Display::Full);
    stage.think(0, "I wonder.", 0);
    let y = row_of(&mut stage, "│ I wonder.");
    let on_dark = brightness(stage.buffer()[(0, y)].bg);
    assert!(16 + 17 + 20 < on_dark && on_dark < 200, "lighter than dark: {on_dark}");
    stage.line("/theme light");
    let on_light = brightness(stage.buffer()[(0, y)].bg);
    assert!(600 < on_light && on_light < 3 * 255, "darker than light, and at once: {on_light}");
    // A terminal that told its background is shaded from that.
    for background in [(40, 44, 52), (253, 246, 227)] {
        let theme = Theme::on(background, Depth::True);
        let mut stage = Stage::themed(40, 12, theme, Display::Full);
        stage.think(0, "I wonder.", 0);
        let told = u32::from(background.0) + u32::from(background.1) + u32::from(background.2);
        let shade = brightness(stage.buffer()[(0, y)].bg);
        assert_eq!(shade > told, theme.ground == Ground::Dark, "{background:?}");
    }
}

#[test]
fn req_think_007_4_include_in_response_false_hides_every_thought() {
    for view in Display::ALL {
        let mut settings = Settings::new();
        settings.show(Layer::Config, *view);
        settings.set(Layer::Session, "reasoning.includeInResponse", "false").unwrap();
        let mut stage = Stage::new(60, 20);
        let restored = vec![Block::Thinking(thinking("From the store.", None)), words("Restored.")];
        stage.tell(Update::Restored(vec![Message::new(Role::Assistant, restored)]));
        stage.send();
        stage.think(0, "I wonder.", 2000);
        stage.open(1, Opening::Thinking);
        stage.close(1, Block::Thinking(hidden()));
        stage.write(2, "Answer.");
        stage.open(3, Opening::Thinking);
        stage.grow(3, "Still going");
        show(&mut stage, &settings);
        assert_eq!(stage.said(), ["Restored.", "Answer."], "done, sealed, running and restored: {view}");
        settings.set(Layer::Session, "reasoning.includeInResponse", "true").unwrap();
        show(&mut stage, &settings);
        assert_eq!(stage.said().len() > 2, *view != Display::Off, "it was kept all the time: {view}");
    }
}

#[test]
fn br_003_what_is_shown_and_what_is_sent_are_two_things() {
    for (shown, sent) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut settings = Settings::new();
        settings.set(Layer::Session, "reasoning.includeInResponse", &shown.to_string()).unwrap();
        settings.set(Layer::Session, "reasoning.includeInContext", &sent.to_string()).unwrap();
        let mut stage = Stage::new(60, 20);
        stage.think(0, "I wonder.", 0);
        show(&mut stage, &settings);
        assert_eq!(stage.screen().contains("I wonder."), shown, "whatever is sent: {sent}");
        assert_eq!(settings.include_in_context(), (sent, Layer::Session), "whatever is shown: {shown}");
    }
    // Looking at it in another way asks for nothing but that.
    let mut settings = Settings::new();
    let mut stage = Stage::new(60, 20);
    stage.think(0, "I wonder.", 0);
    for line in ["/thinking off", "/thinking full", ":thinking", ":toggle thinking"] {
        stage.line(line);
        let asked = stage.sent.pop();
        let Some(Command::View(view)) = asked else { panic!("{line}: {asked:?}") };
        assert_eq!(stage.sent, [], "{line}");
        let before = (settings.include_in_context(), settings.strip());
        settings.show(Layer::Session, view);
        assert_eq!((settings.include_in_context(), settings.strip()), before, "{line}");
    }
}

#[test]
fn ec_005_a_profile_shows_at_once_in_all_that_was_said() {
    let profile = |text: &[&str]| text.iter().map(|one| one.parse().unwrap()).collect::<Vec<Change>>();
    let mut settings = Settings::new();
    settings.show(Layer::Session, Display::Collapsed);
    let mut stage = Stage::new(60, 30);
    stage.line("why?");
    stage.send();
    stage.think(0, "I wonder.", 0);
    stage.write(1, "Answer.");
    stage.send();
    stage.open(0, Opening::Thinking);
    stage.grow(0, "Still going");
    stage.sent.clear();
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
        show(&mut stage, &settings);
        let screen = stage.screen();
        let seen = (screen.contains("│ I wonder."), screen.contains("│ Still going"));
        assert_eq!(seen, (*past, *running), "{values:?}: {screen}");
    }
    assert_eq!(stage.sent, [], "no request, no history told again");
}
