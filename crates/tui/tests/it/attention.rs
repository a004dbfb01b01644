//! The notice about a silent provider, the countdown to a retry, notifications and the title of the window. The clock
//! is the test's own.

use std::time::Duration;

use aside_core::settings::Notify;
use aside_core::turn::TurnEnd;
use aside_front::{Command, NextRequest, OpenedBlock, PendingQuestion, QuestionId, ScreenSettings, Status, Update};
use aside_tui::app::Msg;

use crate::support::{TestTerminal, question_about, sending};

/// The line above the input.
fn rule(term: &mut TestTerminal) -> String {
    term.rows().into_iter().rfind(|row| row.starts_with('─')).unwrap()
}

fn status_line(term: &mut TestTerminal) -> String {
    term.rows().pop().unwrap()
}

#[test]
fn t18_a_silent_provider_is_named_after_ten_seconds_and_not_before() {
    let mut term = TestTerminal::new(80, 12);
    term.line("why?");
    term.send();
    term.open(0, OpenedBlock::Thinking);
    term.grow(0, "Hm");
    #[rustfmt::skip]
    let cases = [
        (9_999,  "thinking · 10s · Esc stops"),
        (1,      "thinking · nothing came for 10s · Esc stops"),
        (50_000, "thinking · nothing came for 1m 0s · Esc stops"),
    ];
    for (ms, expected) in cases {
        term.advance(ms);
        assert!(rule(&mut term).contains(expected), "after {ms}: {}", rule(&mut term));
    }
    term.grow(0, "m.");
    term.advance(1_000);
    assert!(!rule(&mut term).contains("nothing came"), "it was heard again: {}", rule(&mut term));
}

#[test]
fn t18_a_retry_counts_down_in_one_line_that_goes_away() {
    let mut term = TestTerminal::new(80, 12);
    term.line("why?");
    term.send();
    term.update(Update::Retrying { after: Duration::from_millis(2_500), attempt: 2, why: "too busy".into() });
    #[rustfmt::skip]
    let cases = [
        (0,     "trying again in 3s, attempt 2: too busy"),
        (600,   "trying again in 2s, attempt 2: too busy"),
        (1_000, "trying again in 1s, attempt 2: too busy"),
        (1_000, "trying again, attempt 2: too busy"),
    ];
    let before = term.transcript();
    for (ms, expected) in cases {
        term.advance(ms);
        assert!(rule(&mut term).contains(expected), "after {ms}: {}", rule(&mut term));
        assert_eq!(term.transcript(), before, "nothing is left in the transcript");
    }
    term.send();
    assert!(!rule(&mut term).contains("trying again"), "{}", rule(&mut term));
}

fn named(notify: Notify) -> Status {
    let screen = ScreenSettings { notify, ..ScreenSettings::default() };
    Status { folder: Some("work".into()), screen, ..Status::default() }
}

fn turn(term: &mut TestTerminal, ms: u64) {
    term.line("why?");
    term.send();
    term.advance(ms);
    term.end(TurnEnd::Answered);
}

#[test]
fn t22_a_long_turn_notifies_once_and_a_short_one_does_not() {
    #[rustfmt::skip]
    let cases = [
        ("short",             Notify::Bell, None,        9_999,  None),
        ("long",              Notify::Bell, None,        10_000, Some("work · aside: the turn has ended")),
        ("switched off",      Notify::Off,  None,        10_000, None),
        ("the user looks on", Notify::Osc9, Some(true),  10_000, None),
        ("looks elsewhere",   Notify::Osc9, Some(false), 10_000, Some("work · aside: the turn has ended")),
    ];
    for (name, notify, focus, ms, expected) in cases {
        let mut term = TestTerminal::new(80, 12);
        term.update(Update::Status(Box::new(named(notify))));
        focus.into_iter().for_each(|focus| term.msg(Msg::Focus(focus)));
        turn(&mut term, ms);
        let notification = term.app.take_notification();
        assert_eq!(notification.as_ref().map(|one| one.text.as_str()), expected, "{name}");
        assert!(notification.is_none_or(|one| one.how == notify), "{name}");
        assert_eq!(term.app.take_notification(), None, "{name}: only once");
    }
}

#[test]
fn t22_the_title_follows_the_turn() {
    let mut term = TestTerminal::new(80, 12);
    let title = |term: &TestTerminal| term.app.window_title().unwrap_or_default();
    term.update(Update::Status(Box::new(named(Notify::Bell))));
    assert_eq!(title(&term), "work · aside");
    term.line("why?");
    term.send();
    assert_eq!(title(&term), "… work · aside");
    let about = question_about("shell", "make", None, None);
    term.update(Update::QuestionAsked(Box::new(PendingQuestion { id: QuestionId(1), about })));
    assert_eq!(title(&term), "? work · aside");
    assert_eq!(term.app.take_notification().unwrap().text, "work · aside: a question waits: shell");
    term.update(Update::QuestionWithdrawn(QuestionId(1)));
    term.advance(20_000);
    term.end(TurnEnd::Answered);
    assert_eq!(title(&term), "✓ work · aside");
    term.type_text("a");
    assert_eq!(title(&term), "work · aside", "the user is back");
    let evil = Status { title: Some("a\u{1b}]0;b\u{7}\nc".into()), ..named(Notify::Bell) };
    term.update(Update::Status(Box::new(evil)));
    assert!(!title(&term).chars().any(char::is_control), "{:?}", title(&term));
    term.update(Update::Status(Box::new(named(Notify::Off))));
    assert_eq!(term.app.window_title(), None);
}

#[test]
fn t25_between_turns_the_status_is_about_the_next_request() {
    let next = |effort: Option<&str>, tokens, is_exact| {
        Some(NextRequest { effort: effort.map(str::to_owned), tokens, is_exact })
    };
    let status = |setting: Option<&str>, next| {
        let effort = setting.map(str::to_owned);
        let limit = Some(200_000);
        Update::Status(Box::new(Status { model: "acme/deep".into(), limit, effort, next, ..Status::default() }))
    };
    let mut term = TestTerminal::new(80, 12);
    term.update(status(Some("high"), next(Some("high"), 900, false)));
    assert_eq!(status_line(&mut term), "acme/deep · ~900/200k · effort high", "before the first request");
    term.line("why?");
    term.update(Update::Sending(Box::new(aside_front::Sending { effort: Some("high".into()), ..sending() })));
    term.end(TurnEnd::Answered);
    let after_turn = status_line(&mut term);
    assert!(after_turn.contains("effort high"), "what was sent, until the session says more: {after_turn}");
    term.update(status(Some("low"), next(Some("low"), 12_000, true)));
    assert_eq!(status_line(&mut term), "acme/deep · 12k/200k · effort low", "after /effort");
    term.update(status(Some("low"), next(None, 300, false)));
    assert_eq!(status_line(&mut term), "acme/deep · ~300/200k · no effort sent", "after /compact");
    term.update(Update::Restored(Vec::new()));
    assert_eq!(status_line(&mut term), "acme/deep · 0/200k", "after /new, until the session says more");
}

#[test]
fn t25_the_git_branch_is_asked_for_when_the_user_is_there_and_not_often() {
    let mut term = TestTerminal::new(80, 12);
    let on = |branch: Option<&str>| {
        Update::Status(Box::new(Status { branch: branch.map(str::to_owned), ..Status::default() }))
    };
    let asked = |branch: &str| Command::RefreshBranch(Some(branch.to_owned()));
    term.advance(10);
    term.type_text("a");
    assert_eq!(term.sent, [], "there is no repository");
    term.update(on(Some("main")));
    term.type_text("bc");
    assert_eq!(term.sent, [asked("main")], "not for every key");
    term.advance(3_000);
    term.msg(Msg::Focus(false));
    assert_eq!(term.sent.len(), 1);
    term.update(on(Some("side")));
    term.msg(Msg::Focus(true));
    term.msg(Msg::Focus(true));
    assert_eq!(term.sent, [asked("main"), asked("side")]);
    term.advance(60_000);
    assert_eq!(term.sent.len(), 2, "not while the user is elsewhere");
}
