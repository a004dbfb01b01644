//! C6: usage, grouped as requested.

use aside_core::block::{Block, Origin, Thinking, ThinkingContent, ThinkingSpan, Time};
use aside_core::event::Usage;
use aside_core::message::Message;
use aside_core::model_table::{CachedCount, Price, ThinkingCount, UsageCounting};
use aside_store::session::{NewReply, Parent};
use aside_store::usage::{BillingRules, Cost, GroupBy, UsageGroup, UsageQuery, UsageRow};
use aside_store::{MessageId, SessionId, Store};

use crate::support::{MAKERS, assistant, at, new_session, text, user};

const DAY: u64 = 86_400_000;

fn timed(text: &str, started: u64, ended: u64) -> Block {
    Block::Thinking(Thinking {
        span: Some(ThinkingSpan { started: Time(started), ended: Time(ended) }),
        ..Thinking::new(ThinkingContent::Open { text: text.to_owned() }, "x")
    })
}

fn reply(model: &str, usage: [Option<u64>; 4], time: u64) -> Message {
    let [input, output, reasoning, cached] = usage;
    let blocks = vec![timed("thinks for six", time, time + 2500), text("says")];
    Message {
        usage: Some(
            Usage::default().with_input(input).with_output(output).with_thinking(reasoning).with_cached(cached),
        ),
        ..at(assistant(model, blocks), time)
    }
}

fn billing(origin: &Origin) -> BillingRules {
    let price = (origin.model.as_deref() == Some("dear")).then_some(Price {
        input: 2.0,
        output: 4.0,
        cache_read: None,
        cache_write: None,
        tiers: Vec::new(),
    });
    BillingRules { price, counting: UsageCounting { thinking: ThinkingCount::InOutput, cached: CachedCount::InInput } }
}

/// Two sessions: a turn of two steps with an expensive model, and two days with a cheap one.
fn record_usage(store: &dyn Store) -> (SessionId, SessionId, MessageId) {
    let first = store.create(&new_session()).unwrap();
    let lock = store.lock_session(&first).unwrap();
    let turn = store.append(&lock, Parent::Head, &user("first")).unwrap();
    store.append(&lock, Parent::Head, &reply("dear", [Some(1000), Some(100), Some(60), Some(400)], DAY)).unwrap();
    let step = NewReply { parent: Parent::Head, origin: None, at: Some(Time(DAY + 10)) };
    let step = store.begin(&lock, &step).unwrap();
    let whole = reply("dear", [Some(1200), Some(50), Some(10), None], DAY + 10);
    store.finish(step, &whole, Some(Time(DAY + 4010))).unwrap();

    let second = store.create(&new_session()).unwrap();
    let lock = store.lock_session(&second).unwrap();
    store.append(&lock, Parent::Head, &user("second")).unwrap();
    store.append(&lock, Parent::Head, &reply("cheap", [None; 4], 2 * DAY)).unwrap();
    store.append(&lock, Parent::Head, &user("third")).unwrap();
    store.append(&lock, Parent::Head, &reply("cheap", [Some(10), Some(20), None, None], 3 * DAY - 1)).unwrap();
    (first, second, turn)
}

/// Group, replies, and input, cached, thinking and answer tokens, with `~` for estimates.
fn drawn(lines: &[UsageRow]) -> Vec<(UsageGroup, u64, String)> {
    let line = |line: &UsageRow| {
        let mark = |tokens: aside_store::usage::TokenTotal| {
            format!("{}{}", if tokens.is_estimate { "~" } else { "" }, tokens.count)
        };
        let figures = [line.input, line.cached, line.thinking, line.answer].map(mark).join(" ");
        (line.group.clone(), line.n_replies, figures)
    };
    lines.iter().map(line).collect()
}

#[test]
fn c6_usage_is_reported_by_turn_model_day_and_session() {
    for (name, make) in MAKERS {
        let (_folder, store) = make();
        let (first, second, turn) = record_usage(&*store);
        let ask = |group_by, utc_offset_minutes| {
            store
                .usage(&UsageQuery { group_by, session: None, since: None, billing: &billing, utc_offset_minutes })
                .unwrap()
        };
        let dear = (2, "2200 400 70 80".to_owned());
        let model = |name: &str| UsageGroup::Model(Some(name.to_owned()));
        let by_model = ask(GroupBy::Model, 0);
        assert_eq!(
            drawn(&by_model),
            [(model("cheap"), 2, "~10 0 ~10 ~17".to_owned()), (model("dear"), dear.0, dear.1.clone())],
            "{name}"
        );
        let cost = 2200.0 * 2.0 / 1e6 + 150.0 * 4.0 / 1e6;
        assert!(matches!(by_model[1].cost, Cost::Known(sum) if (sum - cost).abs() < 1e-9), "{name}: {by_model:?}");
        assert_eq!(by_model[0].cost, Cost::Unknown, "{name}: no price");
        assert_eq!((by_model[1].seconds, by_model[1].thinking_seconds), (Some(4.0), Some(5.0)), "{name}");
        assert_eq!(by_model[0].seconds, None, "{name}: not timed");

        let days: Vec<(UsageGroup, u64)> =
            ask(GroupBy::Day, 0).into_iter().map(|line| (line.group, line.n_replies)).collect();
        assert_eq!(days, [(UsageGroup::Day(1), 2), (UsageGroup::Day(2), 2)], "{name}");
        let days: Vec<(UsageGroup, u64)> =
            ask(GroupBy::Day, 60).into_iter().map(|line| (line.group, line.n_replies)).collect();
        assert_eq!(
            days,
            [(UsageGroup::Day(1), 2), (UsageGroup::Day(2), 1), (UsageGroup::Day(3), 1)],
            "{name}: an hour ahead"
        );

        let turns = ask(GroupBy::Turn, 0);
        assert_eq!(turns.len(), 3, "{name}");
        let of_first = turns.iter().find(|line| line.group == UsageGroup::Turn { session: first.clone(), turn });
        assert_eq!(of_first.map(|line| line.n_replies), Some(2), "{name}: both steps are one turn");

        let sessions: Vec<u64> = ask(GroupBy::Session, 0).iter().map(|line| line.n_replies).collect();
        assert_eq!(sessions, [2, 2], "{name}");
        let narrow = UsageQuery {
            group_by: GroupBy::Session,
            session: Some(second.clone()),
            since: Some(Time(2 * DAY + 1)),
            billing: &billing,
            utc_offset_minutes: 0,
        };
        let lines = store.usage(&narrow).unwrap();
        let title = Some("second".to_owned());
        assert_eq!(drawn(&lines), [(UsageGroup::Session { id: second, title }, 1, "10 0 ~5 ~15".to_owned())], "{name}");
    }
}
