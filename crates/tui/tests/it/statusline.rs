//! The last row: what was sent, how full the window is, how fast it comes, and
//! whether the wish for thinking was heard.

use aside_core::event::Usage;
use aside_core::settings::Display;
use aside_core::turn::TurnEnd;
use aside_tui::seam::{Opening, Sending, Status, Tier, Update};
use ratatui::style::Color;

use crate::support::{Stage, sending};

fn wishing(stage: &mut Stage) {
    stage.line("why?");
    let sending = Sending { wants_thinking: true, ..sending() };
    stage.tell(Update::Sending(Box::new(sending)));
}

fn status(stage: &mut Stage) -> String {
    stage.rows().pop().unwrap()
}

#[test]
fn t11_everything_there_is_to_know_the_most_important_first() {
    #[rustfmt::skip]
    let cases = [
        (40,  "acme/deep · 12.4k/200k · effort high"),
        (80,  "acme/deep · 12.4k/200k · effort high · kernel · 50 tok/s · quiet · Parsing…"),
        (200, "acme/deep · 12.4k/200k · effort high · kernel · 50 tok/s · quiet · Parsing headers"),
    ];
    for (width, expected) in cases {
        let mut stage = Stage::new(width, 10);
        let status_now = Status {
            model: "acme/deep".into(),
            profile: Some("quiet".into()),
            title: Some("Parsing headers".into()),
            limit: Some(200_000),
            effort: None,
            view: Display::Live,
            tier: Some(Tier::Kernel),
        };
        stage.tell(Update::Status(Box::new(status_now)));
        wishing(&mut stage);
        stage.think(0, "Hm.", 100);
        stage.open(1, Opening::Text);
        stage.grow(1, "Because ");
        stage.pass(1900);
        stage.grow(1, "it is so.");
        stage.tell(Update::Usage(Usage { input: Some(12_300), output: Some(100), ..Usage::default() }));
        stage.end(TurnEnd::Answered);
        assert_eq!(status(&mut stage), expected, "{width}");
    }
}

#[test]
fn k1_that_nothing_is_confined_is_said_and_a_choice_is_not() {
    for (tier, expected) in [(Some(Tier::None), "acme/deep · unconfined"), (None, "acme/deep")] {
        let mut stage = Stage::new(80, 10);
        stage.tell(Update::Status(Box::new(Status { model: "acme/deep".into(), tier, ..Status::default() })));
        assert_eq!(status(&mut stage), expected);
    }
}

#[test]
fn t11_an_estimate_says_that_it_is_one() {
    let mut stage = Stage::new(80, 10);
    wishing(&mut stage);
    stage.open(0, Opening::Thinking);
    stage.grow(0, "Some words of a thought. ");
    stage.pass(600);
    stage.grow(0, "Some words of a thought. ");
    stage.pass(10);
    let row = status(&mut stage);
    assert!(row.starts_with("acme/deep · ~12.3k/200k · effort high · ~") && row.ends_with(" tok/s"), "{row}");
}

#[test]
fn c2_what_was_counted_is_shown_until_something_else_is_sent() {
    let mut stage = Stage::new(80, 10);
    wishing(&mut stage);
    stage.tell(Update::Usage(Usage { input: Some(0), output: Some(1), ..Usage::default() }));
    assert!(status(&mut stage).contains("~12.3k/200k"), "some begin with a zero: {}", status(&mut stage));
    stage.tell(Update::Usage(Usage { input: Some(11_000), output: Some(1_000), ..Usage::default() }));
    assert!(status(&mut stage).contains(" 12k/200k"), "{}", status(&mut stage));
    stage.end(TurnEnd::Answered);
    assert!(status(&mut stage).contains(" 12k/200k"), "{}", status(&mut stage));
    wishing(&mut stage);
    assert!(status(&mut stage).contains("~12.3k/200k"), "{}", status(&mut stage));
}

#[test]
fn t11_a_wish_that_was_not_heard_is_tinted_and_said() {
    let usage = |thought: u64| Usage { output: Some(50), reasoning: Some(thought), ..Usage::default() };
    let cases = [("a thought came", false), ("nothing came", true)];
    for (name, is_ignored) in cases {
        let mut stage = Stage::new(80, 12);
        wishing(&mut stage);
        if !is_ignored {
            stage.think(0, "Hm.", 0);
        }
        stage.write(1, "Because.");
        assert!(!status(&mut stage).contains("no thinking"), "{name}: the turn is not over");
        stage.end(TurnEnd::Answered);
        assert_eq!(status(&mut stage).contains("! no thinking came"), is_ignored, "{name}");
        let buffer = stage.buffer();
        let row = buffer.area.height - 1;
        let warned = (0..80).any(|x| buffer[(x, row)].fg == Color::Rgb(226, 182, 92));
        assert_eq!(warned, is_ignored, "{name}");
        // The next question is another one.
        wishing(&mut stage);
        assert!(!status(&mut stage).contains("no thinking"), "{name}");
    }
    // What was thought out of sight was thought.
    let mut stage = Stage::new(80, 12);
    wishing(&mut stage);
    stage.write(1, "Because.");
    stage.tell(Update::Usage(usage(40)));
    stage.end(TurnEnd::Answered);
    assert!(!status(&mut stage).contains("no thinking"), "{}", status(&mut stage));
    // Nobody asked for it.
    let mut stage = Stage::new(80, 12);
    stage.line("why?");
    stage.send();
    stage.write(1, "Because.");
    stage.end(TurnEnd::Answered);
    assert!(!status(&mut stage).contains("no thinking"), "{}", status(&mut stage));
}
