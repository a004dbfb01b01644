//! C6: what was used, grouped as it is asked for.

use aside_core::block::{Block, Content, Origin, Span, Thinking, Time};
use aside_core::event::Usage;
use aside_core::message::Message;
use aside_store::ledger::{By, Cost, Counting, Group, LedgerLine, LedgerQuery, Price, Terms};
use aside_store::session::{NewReply, Parent};
use aside_store::{MessageId, SessionId, Store};

use crate::support::{MAKERS, assistant, at, new_session, text, user};

const DAY: u64 = 86_400_000;

fn timed(text: &str, started: u64, ended: u64) -> Block {
    Block::Thinking(Thinking {
        content: Content::Open { text: text.to_owned() },
        source: "x".to_owned(),
        id: None,
        items: Vec::new(),
        span: Some(Span { started: Time(started), ended: Time(ended) }),
        native: None,
    })
}

fn reply(model: &str, usage: [Option<u64>; 4], time: u64) -> Message {
    let [input, output, reasoning, cached] = usage;
    let blocks = vec![timed("thinks for six", time, time + 2500), text("says")];
    Message { usage: Some(Usage { input, output, reasoning, cached }), ..at(assistant(model, blocks), time) }
}

fn terms(origin: &Origin) -> Terms {
    let price = (origin.model.as_deref() == Some("dear")).then_some(Price { input: 2.0, output: 4.0, cached: None });
    Terms { price, counting: Counting::InOutput }
}

/// Two sessions: a turn of two steps by a dear model, and two days of a cheap one.
fn used(store: &dyn Store) -> (SessionId, SessionId, MessageId) {
    let first = store.create(&new_session()).unwrap();
    let lease = store.lease(&first).unwrap();
    let turn = store.append(&lease, Parent::Head, &user("first")).unwrap();
    store.append(&lease, Parent::Head, &reply("dear", [Some(1000), Some(100), Some(60), Some(400)], DAY)).unwrap();
    let step = NewReply { parent: Parent::Head, origin: None, at: Some(Time(DAY + 10)) };
    let step = store.begin(&lease, &step).unwrap();
    let whole = reply("dear", [Some(1200), Some(50), Some(10), None], DAY + 10);
    store.finish(step, &whole, Some(Time(DAY + 4010))).unwrap();

    let second = store.create(&new_session()).unwrap();
    let lease = store.lease(&second).unwrap();
    store.append(&lease, Parent::Head, &user("second")).unwrap();
    store.append(&lease, Parent::Head, &reply("cheap", [None; 4], 2 * DAY)).unwrap();
    store.append(&lease, Parent::Head, &user("third")).unwrap();
    store.append(&lease, Parent::Head, &reply("cheap", [Some(10), Some(20), None, None], 3 * DAY - 1)).unwrap();
    (first, second, turn)
}

/// Group, replies, input, thinking, answer, with `~` where it is a guess.
fn drawn(lines: &[LedgerLine]) -> Vec<(Group, u64, String)> {
    let line = |line: &LedgerLine| {
        let mark = |tokens: aside_store::ledger::Tokens| {
            format!("{}{}", if tokens.is_estimate { "~" } else { "" }, tokens.count)
        };
        let figures = [line.input, line.cached, line.thinking, line.answer].map(mark).join(" ");
        (line.group.clone(), line.n_replies, figures)
    };
    lines.iter().map(line).collect()
}

#[test]
fn c6_use_is_told_by_turn_model_day_and_session() {
    for (name, make) in MAKERS {
        let (_folder, store) = make();
        let (first, second, turn) = used(&*store);
        let ask = |by, minutes_ahead| {
            store.ledger(&LedgerQuery { by, session: None, since: None, terms: &terms, minutes_ahead }).unwrap()
        };
        let dear = (2, "2200 400 70 80".to_owned());
        let model = |name: &str| Group::Model(Some(name.to_owned()));
        let by_model = ask(By::Model, 0);
        assert_eq!(
            drawn(&by_model),
            [(model("cheap"), 2, "~10 0 ~10 ~17".to_owned()), (model("dear"), dear.0, dear.1.clone())],
            "{name}"
        );
        let cost = 2200.0 * 2.0 / 1e6 + 150.0 * 4.0 / 1e6;
        assert!(matches!(by_model[1].cost, Cost::Known(sum) if (sum - cost).abs() < 1e-9), "{name}: {by_model:?}");
        assert_eq!(by_model[0].cost, Cost::Unknown, "{name}: no price");
        assert_eq!((by_model[1].seconds, by_model[1].thinking_seconds), (Some(4.0), Some(5.0)), "{name}");
        assert_eq!(by_model[0].seconds, None, "{name}: nobody measured it");

        let days: Vec<(Group, u64)> = ask(By::Day, 0).into_iter().map(|line| (line.group, line.n_replies)).collect();
        assert_eq!(days, [(Group::Day(1), 2), (Group::Day(2), 2)], "{name}");
        let days: Vec<(Group, u64)> = ask(By::Day, 60).into_iter().map(|line| (line.group, line.n_replies)).collect();
        assert_eq!(days, [(Group::Day(1), 2), (Group::Day(2), 1), (Group::Day(3), 1)], "{name}: an hour ahead");

        let turns = ask(By::Turn, 0);
        assert_eq!(turns.len(), 3, "{name}");
        let of_first = turns.iter().find(|line| line.group == Group::Turn { session: first.clone(), turn });
        assert_eq!(of_first.map(|line| line.n_replies), Some(2), "{name}: both steps are one turn");

        let sessions: Vec<u64> = ask(By::Session, 0).iter().map(|line| line.n_replies).collect();
        assert_eq!(sessions, [2, 2], "{name}");
        let narrow = LedgerQuery {
            by: By::Session,
            session: Some(second.clone()),
            since: Some(Time(2 * DAY + 1)),
            terms: &terms,
            minutes_ahead: 0,
        };
        let lines = store.ledger(&narrow).unwrap();
        let title = Some("second".to_owned());
        assert_eq!(drawn(&lines), [(Group::Session { id: second, title }, 1, "10 0 ~5 ~15".to_owned())], "{name}");
    }
}
