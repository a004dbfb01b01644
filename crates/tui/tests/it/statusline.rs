//! The status line: what was sent, context usage, token rate, and whether requested thinking
//! arrived.

use aside_core::event::Usage;
use aside_core::settings::ThinkingDisplay;
use aside_core::turn::TurnEnd;
use aside_front::{CostSoFar, NextRequest, OpenedBlock, Sending, Status, Tier, ToolMode, Update};
use ratatui::style::Color;

use crate::support::{TestTerminal, sending};

fn request_thinking(term: &mut TestTerminal) {
    term.line("why?");
    let sending = Sending { wants_thinking: true, ..sending() };
    term.update(Update::Sending(Box::new(sending)));
}

fn status(term: &mut TestTerminal) -> String {
    term.rows().pop().unwrap()
}

#[test]
fn t11_the_most_important_parts_come_first() {
    #[rustfmt::skip]
    let cases = [
        (40,  "acme/deep · 12.4k/200k · high · ask"),
        (56,  "acme/deep · 12.4k/200k · effort high · ask · kernel"),
        (80,  "acme/deep · 12.4k/200k · effort high · ask · sandbox kernel · 50 tok/s · quiet"),
        (200, "acme/deep · 12.4k/200k · effort high · ask · sandbox kernel · 50 tok/s · quiet · Parsing headers"),
    ];
    for (width, expected) in cases {
        let mut term = TestTerminal::new(width, 10);
        let status_now = Status {
            model: "acme/deep".into(),
            profile: Some("quiet".into()),
            title: Some("Parsing headers".into()),
            limit: Some(200_000),
            effort: None,
            view: ThinkingDisplay::Live,
            tier: Some(Tier::Kernel),
            mode: Some(ToolMode::Ask),
            cost: None,
            ..Status::default()
        };
        term.update(Update::Status(Box::new(status_now)));
        request_thinking(&mut term);
        term.think(0, "Hm.", 100);
        term.open(1, OpenedBlock::Text);
        term.grow(1, "Because ");
        term.advance(1900);
        term.grow(1, "it is so.");
        term.update(Update::Usage(Usage::default().with_input(12_300).with_output(100)));
        term.end(TurnEnd::Answered);
        assert_eq!(status(&mut term), expected, "{width}");
    }
}

#[test]
fn t23_a_mode_other_than_ask_is_shown_before_the_effort() {
    #[rustfmt::skip]
    let cases = [
        (ToolMode::AcceptEdits, 40, "acme/deep · 12.4k/200k · accept edits"),
        (ToolMode::AcceptEdits, 60, "acme/deep · 12.4k/200k · accept edits · effort high"),
        (ToolMode::ReadOnly,    40, "acme/deep · 12.4k/200k · read only"),
        (ToolMode::Ask,         40, "acme/deep · 12.4k/200k · high · ask"),
    ];
    for (mode, width, expected) in cases {
        let mut term = TestTerminal::new(width, 10);
        let next = NextRequest { effort: Some("high".into()), tokens: 12_400, is_exact: true };
        term.update(Update::Status(Box::new(Status {
            model: "acme/deep".into(),
            limit: Some(200_000),
            effort: Some("high".into()),
            mode: Some(mode),
            next: Some(next),
            ..Status::default()
        })));
        assert_eq!(status(&mut term), expected, "{mode:?} at {width}");
    }
}

#[test]
fn t23_a_mode_other_than_ask_stays_before_the_tokens_the_tier_and_a_long_model_name() {
    #[rustfmt::skip]
    let cases = [
        (ToolMode::AcceptEdits, 60, "openrouter/acme/deep-reasoner-t… · 12.4k/200k · accept edits"),
        (ToolMode::AcceptEdits, 40, "openrouter/… · 12.4k/200k · accept edits"),
        (ToolMode::AcceptEdits, 30, "openrouter/acm… · accept edits"),
        (ToolMode::ReadOnly,    24, "openrouter/… · read only"),
        (ToolMode::Ask,         40, "openrouter/acme/deep-reaso… · 12.4k/200k"),
    ];
    for (mode, width, expected) in cases {
        let mut term = TestTerminal::new(width, 10);
        let next = NextRequest { effort: Some("high".into()), tokens: 12_400, is_exact: true };
        term.update(Update::Status(Box::new(Status {
            model: "openrouter/acme/deep-reasoner-thinking-2026-11-19".into(),
            limit: Some(200_000),
            effort: Some("high".into()),
            mode: Some(mode),
            tier: Some(Tier::Strong),
            next: Some(next),
            ..Status::default()
        })));
        assert_eq!(status(&mut term), expected, "{mode:?} at {width}");
    }
}

#[test]
fn k1_missing_confinement_is_shown_but_the_users_choice_is_not() {
    for (tier, expected) in [(Some(Tier::None), "acme/deep · unconfined"), (None, "acme/deep")] {
        let mut term = TestTerminal::new(80, 10);
        term.update(Update::Status(Box::new(Status { model: "acme/deep".into(), tier, ..Status::default() })));
        assert_eq!(status(&mut term), expected);
    }
}

#[test]
fn t11_an_estimate_is_marked() {
    let mut term = TestTerminal::new(80, 10);
    request_thinking(&mut term);
    term.open(0, OpenedBlock::Thinking);
    term.grow(0, "Some words of a thought. ");
    term.advance(600);
    term.grow(0, "Some words of a thought. ");
    term.advance(10);
    let row = status(&mut term);
    assert!(row.starts_with("acme/deep · ~12.3k/200k · effort high · ~") && row.ends_with(" tok/s"), "{row}");
}

#[test]
fn c2_the_reported_count_is_shown_until_the_next_request() {
    let mut term = TestTerminal::new(80, 10);
    request_thinking(&mut term);
    term.update(Update::Usage(Usage::default().with_input(0).with_output(1)));
    assert!(status(&mut term).contains("~12.3k/200k"), "some begin with a zero: {}", status(&mut term));
    term.update(Update::Usage(Usage::default().with_input(11_000).with_output(1_000)));
    assert!(status(&mut term).contains(" 12k/200k"), "{}", status(&mut term));
    term.end(TurnEnd::Answered);
    assert!(status(&mut term).contains(" 12k/200k"), "{}", status(&mut term));
    request_thinking(&mut term);
    assert!(status(&mut term).contains("~12.3k/200k"), "{}", status(&mut term));
}

#[test]
fn t11_ignored_thinking_requests_are_reported_in_colour_and_text() {
    let usage = |thought: u64| Usage::default().with_output(50).with_thinking(thought);
    let cases = [("a thought came", false), ("nothing came", true)];
    for (name, is_ignored) in cases {
        let mut term = TestTerminal::new(80, 12);
        request_thinking(&mut term);
        if !is_ignored {
            term.think(0, "Hm.", 0);
        }
        term.write(1, "Because.");
        assert!(!status(&mut term).contains("no thinking"), "{name}: the turn is not over");
        term.end(TurnEnd::Answered);
        assert_eq!(status(&mut term).contains("! no thinking came"), is_ignored, "{name}");
        let buffer = term.buffer();
        let row = buffer.area.height - 1;
        let warned = (0..80).any(|x| buffer[(x, row)].fg == Color::Rgb(226, 182, 92));
        assert_eq!(warned, is_ignored, "{name}");
        // The next turn starts over.
        request_thinking(&mut term);
        assert!(!status(&mut term).contains("no thinking"), "{name}");
    }
    // Hidden thinking counts as thinking.
    let mut term = TestTerminal::new(80, 12);
    request_thinking(&mut term);
    term.write(1, "Because.");
    term.update(Update::Usage(usage(40)));
    term.end(TurnEnd::Answered);
    assert!(!status(&mut term).contains("no thinking"), "{}", status(&mut term));
    // Thinking was not requested.
    let mut term = TestTerminal::new(80, 12);
    term.line("why?");
    term.send();
    term.write(1, "Because.");
    term.end(TurnEnd::Answered);
    assert!(!status(&mut term).contains("no thinking"), "{}", status(&mut term));
}

#[test]
fn the_cost_is_shown_once_something_did_cost() {
    let cost = |microdollars, is_exact| Some(CostSoFar { microdollars, is_exact });
    #[rustfmt::skip]
    let cases = [
        ("unknown", None,               "acme/deep"),
        ("exact",   cost(12_345, true), "acme/deep · $0.0123"),
        ("partly",  cost(12_345, false), "acme/deep · over $0.0123"),
    ];
    for (name, cost, expected) in cases {
        let mut term = TestTerminal::new(80, 10);
        term.update(Update::Status(Box::new(Status { model: "acme/deep".into(), cost, ..Status::default() })));
        assert_eq!(status(&mut term), expected, "{name}");
    }
}

#[test]
fn t25_the_rate_is_hidden_while_nothing_comes_and_after_the_model_changed() {
    let mut term = TestTerminal::new(80, 10);
    term.line("why?");
    term.send();
    term.open(0, OpenedBlock::Text);
    for _ in 0..20 {
        term.grow(0, "word ");
        term.advance(100);
    }
    assert!(status(&mut term).contains("tok/s"), "{}", status(&mut term));
    term.advance(10_000);
    assert!(!status(&mut term).contains("tok/s"), "{}", status(&mut term));
    term.grow(0, "word ");
    term.update(Update::Usage(Usage::default().with_input(12_300).with_output(100)));
    term.end(TurnEnd::Answered);
    assert!(status(&mut term).contains("tok/s"), "{}", status(&mut term));
    term.update(Update::Status(Box::new(Status { model: "acme/other".into(), ..Status::default() })));
    assert!(!status(&mut term).contains("tok/s"), "{}", status(&mut term));
}

#[test]
fn t25_the_next_request_is_shown_while_a_command_runs_and_after_a_status_that_says_nothing_new() {
    let status_now = |effort: &str, next: Option<NextRequest>| {
        let status = Status {
            model: "acme/deep".into(),
            limit: Some(200_000),
            effort: Some(effort.into()),
            next,
            ..Status::default()
        };
        Update::Status(Box::new(status))
    };
    let next = |effort: &str| Some(NextRequest { effort: Some(effort.into()), tokens: 900, is_exact: false });
    let mut term = TestTerminal::new(80, 10);
    // The last request had no effort.
    term.line("why?");
    term.update(Update::Sending(Box::new(Sending { effort: None, ..sending() })));
    term.write(0, "Because.");
    term.end(TurnEnd::Answered);
    term.update(status_now("high", next("high")));
    term.line("/compact");
    assert!(status(&mut term).starts_with("acme/deep · ~900/200k · effort high"), "{}", status(&mut term));
    term.update(status_now("high", None));
    assert!(status(&mut term).starts_with("acme/deep · ~900/200k · effort high"), "{}", status(&mut term));
    term.update(Update::Ready);
    assert!(status(&mut term).starts_with("acme/deep · ~900/200k · effort high"), "{}", status(&mut term));
    // From here on the line is about the request that runs.
    term.line("again");
    term.update(Update::Sending(Box::new(Sending { effort: Some("low".into()), ..sending() })));
    assert!(status(&mut term).starts_with("acme/deep · ~12.3k/200k · effort low!"), "{}", status(&mut term));
    term.update(status_now("low", None));
    assert!(status(&mut term).starts_with("acme/deep · ~12.3k/200k · effort low"), "{}", status(&mut term));
}

#[test]
fn t22_labels_give_way_before_the_folder() {
    #[rustfmt::skip]
    let cases = [
        (100, "acme/deep · 12.4k/200k · effort high · ask · sandbox kernel · project (fix/the-linker)"),
        (80,  "acme/deep · 12.4k/200k · effort high · ask · kernel · project (fix/the-linker)"),
        (72,  "acme/deep · 12.4k/200k · high · ask · kernel · project (fix/the-linker)"),
        (60,  "acme/deep · 12.4k/200k · high · ask · kernel · project…"),
    ];
    for (width, expected) in cases {
        let mut term = TestTerminal::new(width, 10);
        let next = NextRequest { effort: Some("high".into()), tokens: 12_400, is_exact: true };
        term.update(Update::Status(Box::new(Status {
            model: "acme/deep".into(),
            limit: Some(200_000),
            effort: Some("high".into()),
            mode: Some(ToolMode::Ask),
            tier: Some(Tier::Kernel),
            folder: Some("project".into()),
            branch: Some("fix/the-linker".into()),
            next: Some(next),
            ..Status::default()
        })));
        assert_eq!(status(&mut term), expected, "{width}");
    }
}
