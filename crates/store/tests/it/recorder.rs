//! A reply while it streams: what is safe when, and what a dead one leaves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aside_core::block::{Origin, SealKind, Time};
use aside_core::event::{BlockId, End, Ending, Event, Opening, Part, Side, Sink, Usage};
use aside_core::fold::Fold;
use aside_core::message::Message;
use aside_core::text::JsonText;
use aside_store::session::{NewReply, Parent, Window};
use aside_store::{Batch, Lease, Recorder, SessionId, SqliteStore, Store};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{Folder, assistant, at, new_session, text, user};

const BLOCK: BlockId = BlockId(0);

fn start(store: &Arc<SqliteStore>) -> (SessionId, Lease, Recorder) {
    let id = store.create(&new_session()).unwrap();
    let lease = store.lease(&id).unwrap();
    store.append(&lease, Parent::Head, &user("q")).unwrap();
    let shared: Arc<dyn Store> = store.clone();
    let origin = Origin { model: Some("m".to_owned()), ..Origin::default() };
    let reply = NewReply { parent: Parent::Head, origin: Some(origin), at: Some(Time(50)) };
    let recorder = Recorder::begin(shared, &lease, &reply).unwrap();
    (id, lease, recorder)
}

fn last(store: &dyn Store, id: &SessionId) -> Message {
    store.tail(id, Window { from: None, most: 1 }).unwrap().messages.pop().unwrap().message
}

/// Waits for something that a thread does, with time to spare.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn p1_text_is_safe_within_a_second_though_nothing_follows_it() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let (id, _lease, mut recorder) = start(&store);
    recorder.take(Event::Opened { block: BLOCK, opening: Opening::Text });
    recorder.take(Event::Grew { block: BLOCK, text: "half a sen" });
    // A stalled model sends nothing more; another process looks.
    let other = SqliteStore::open(folder.path()).unwrap();
    eventually("the text", || last(&other, &id).blocks == [text("half a sen")]);
}

#[test]
fn p3_a_long_reply_is_written_in_rows_that_memory_can_hold_and_is_whole() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let (id, lease, mut recorder) = start(&store);
    let (long, last_word) = ("é123456789".repeat(700_000), "final ".repeat(400_000));
    recorder.take(Event::Opened { block: BLOCK, opening: Opening::Text });
    recorder.take(Event::Grew { block: BLOCK, text: &long });
    recorder.take(Event::Closed { block: BLOCK });
    // The provider's last word on another block, at once and longer than a row.
    recorder.take(Event::Opened { block: BlockId(1), opening: Opening::Text });
    recorder.take(Event::Grew { block: BlockId(1), text: "first " });
    let text_of = JsonText::plain(&last_word);
    recorder.take(Event::Restated { block: BlockId(1), part: Part::Whole, text: text_of });
    recorder.flush().unwrap();
    let db = rusqlite::Connection::open(store.path()).unwrap();
    let longest: i64 = db.query_row("SELECT max(length(events)) FROM journal", [], |row| row.get(0)).unwrap();
    assert!(longest < 2 << 20, "{longest}");
    drop((recorder, lease));
    let _lease = store.lease(&id).unwrap();
    let left = last(&*store, &id);
    assert!(left.interrupted && left.blocks == [text(&long), text(&last_word)], "all of it is there");
}

#[test]
fn p6_a_long_block_is_stored_whole_whether_it_packs_well_or_not() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let id = store.create(&new_session()).unwrap();
    let lease = store.lease(&id).unwrap();
    // Digits of a simple generator do not repeat; a word repeated does.
    let mut state = 7_u64;
    let noise: String = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from_u32(0x4e00 + (state >> 40) as u32 % 0x5000).unwrap()
    })
    .take(1_500_000)
    .collect();
    for long in [noise, "again ".repeat(2_000_000)] {
        store.append(&lease, Parent::Head, &user(&long)).unwrap();
        assert!(last(&*store, &id).blocks == [text(&long)]);
        let loaded = store.load(&id).unwrap().conversation;
        assert!(loaded.history.branch().last().unwrap().1.blocks == [text(&long)]);
    }
    assert_eq!(store.damage().unwrap(), Vec::<String>::new());
}

#[test]
fn p1_a_block_that_ends_is_safe_at_once() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let (id, _lease, mut recorder) = start(&store);
    recorder.take(Event::Opened { block: BLOCK, opening: Opening::Text });
    recorder.take(Event::Grew { block: BLOCK, text: "whole" });
    recorder.take(Event::Closed { block: BLOCK });
    eventually("the block", || last(&*store, &id).blocks == [text("whole")]);
    recorder.take(Event::Opened { block: BlockId(1), opening: Opening::Text });
    recorder.take(Event::Grew { block: BlockId(1), text: "more" });
    recorder.flush().unwrap();
    assert_eq!(last(&*store, &id).blocks, [text("whole"), text("more")], "flush waits");
}

#[test]
fn p6_deltas_are_joined_and_leave_no_rows_behind() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let (id, _lease, mut recorder) = start(&store);
    recorder.take(Event::Opened { block: BLOCK, opening: Opening::Text });
    for _ in 0..20_000 {
        recorder.take(Event::Grew { block: BLOCK, text: "token " });
    }
    recorder.flush().unwrap();
    let db = rusqlite::Connection::open(store.path()).unwrap();
    let rows =
        |table: &str| -> i64 { db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap() };
    assert!(rows("journal") < 200, "{} rows for 20,000 deltas", rows("journal"));
    let whole = assistant("m", vec![text(&"token ".repeat(20_000))]);
    recorder.finish(&whole, Some(Time(60))).unwrap();
    assert_eq!((rows("journal"), rows("block")), (0, 2));
    assert_eq!(last(&*store, &id), at(whole, 50));
}

#[test]
fn p1_a_reply_whose_recorder_is_gone_is_interrupted_and_whole_as_far_as_it_came() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let (id, lease, mut recorder) = start(&store);
    recorder.take(Event::Opened { block: BLOCK, opening: Opening::Text });
    recorder.take(Event::Grew { block: BLOCK, text: "as far as" });
    drop(recorder);
    drop(lease);
    drop(store);
    let store = folder.store();
    let message = last(&store, &id);
    assert!(message.interrupted);
    assert_eq!(message.ending, Some(Ending::CutOff));
    assert_eq!(message.blocks, [text("as far as")]);
    assert_eq!(message.origin.and_then(|origin| origin.model).as_deref(), Some("m"));
    assert_eq!(message.at, Some(Time(50)));
    // It can be found, and the session goes on.
    let found = store.search(&aside_store::search::Query::new("\"as far as\"")).unwrap();
    assert_eq!(found.hits.len(), 1);
    let lease = store.lease(&id).unwrap();
    store.append(&lease, Parent::Head, &user("go on")).unwrap();
    assert_eq!(store.session(&id).unwrap().n_messages, 3);
}

#[test]
fn p8_a_reply_that_another_process_records_is_left_alone() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let (id, lease, mut recorder) = start(&store);
    // Opening the store looks for dead recorders; this one lives.
    let other = folder.store();
    recorder.take(Event::Opened { block: BLOCK, opening: Opening::Text });
    recorder.take(Event::Grew { block: BLOCK, text: "still here" });
    recorder.flush().unwrap();
    // Though we let go of the session, it is not abandoned while we record.
    drop(lease);
    assert!(matches!(other.lease(&id), Err(aside_store::StoreError::InUse { .. })));
    let whole = assistant("m", vec![text("still here.")]);
    recorder.finish(&whole, None).unwrap();
    assert_eq!(last(&other, &id), at(whole, 50));
    drop(recorder);
    drop(other.lease(&id).unwrap());
}

/// An event that owns its text.
#[derive(Debug, Clone)]
enum Step {
    Open(u8),
    Item(u32, u32),
    Grew(u32, String),
    Seal(u32, bool, String),
    Refile(u32, bool),
    Name(u32, String),
    Restate(u32, Option<u32>, String),
    Keep(u32, String),
    Close(u32),
    Usage(u64),
    Model(String),
    Seen(String),
    End,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let block = || 0u32..4;
    let text = || "[a-z \"\\\\é\n]{0,12}";
    let step = prop_oneof![
        2 => (0u8..4).prop_map(Step::Open),
        1 => (block(), 0u32..3).prop_map(|(block, index)| Step::Item(block, index)),
        6 => (block(), text()).prop_map(|(block, text)| Step::Grew(block, text)),
        1 => (block(), any::<bool>(), text()).prop_map(|(block, kind, text)| Step::Seal(block, kind, text)),
        1 => (block(), any::<bool>()).prop_map(|(block, side)| Step::Refile(block, side)),
        1 => (block(), text()).prop_map(|(block, text)| Step::Name(block, text)),
        1 => (block(), proptest::option::of(0u32..3), text()).prop_map(|(block, part, text)| Step::Restate(block, part, text)),
        1 => (block(), text()).prop_map(|(block, text)| Step::Keep(block, text)),
        2 => block().prop_map(Step::Close),
        1 => any::<u64>().prop_map(Step::Usage),
        1 => text().prop_map(Step::Model),
        1 => text().prop_map(Step::Seen),
        1 => Just(Step::End),
    ];
    (proptest::collection::vec(step, 0..40), any::<bool>()).prop_map(|(mut steps, with_items)| {
        // A decoder restates a block as a whole or item by item, never both.
        steps.retain(|step| match step {
            Step::Item(..) | Step::Restate(_, Some(_), _) => with_items,
            Step::Restate(_, None, _) => !with_items,
            _ => true,
        });
        steps
    })
}

fn say(step: &Step, n_opened: &mut u32, mut take: impl FnMut(Event<'_>)) {
    let block = |block: &u32| BlockId(*block);
    match step {
        Step::Open(kind) => {
            let opening = match kind {
                0 => Opening::Text,
                1 => Opening::Thinking { source: "s", id: Some("i") },
                2 => Opening::ToolCall { id: None, name: "n" },
                _ => Opening::Unmodelled,
            };
            take(Event::Opened { block: BlockId(*n_opened), opening });
            *n_opened += 1;
        }
        Step::Item(at, index) => take(Event::Item { block: block(at), index: *index }),
        Step::Grew(at, text) => take(Event::Grew { block: block(at), text }),
        Step::Seal(at, signed, payload) => {
            let kind = if *signed { SealKind::Signature } else { SealKind::Encrypted };
            take(Event::Sealed { block: block(at), kind, payload });
        }
        Step::Refile(at, to_text) => {
            take(Event::Refiled { block: block(at), to: if *to_text { Side::Text } else { Side::Thinking } });
        }
        Step::Name(at, id) => take(Event::Identified { block: block(at), id }),
        Step::Restate(at, part, text) => {
            let part = part.map_or(Part::Whole, Part::Item);
            take(Event::Restated { block: block(at), part, text: JsonText::plain(text) });
        }
        Step::Keep(at, json) => take(Event::Kept { block: block(at), json, text_member: Some("text") }),
        Step::Close(at) => take(Event::Closed { block: block(at) }),
        Step::Usage(n) => take(Event::Usage(Usage { input: Some(*n), ..Usage::default() })),
        Step::Model(model) => take(Event::Started { model }),
        Step::Seen(field) => take(Event::Seen { field }),
        Step::End => take(Event::Ended(&End { ending: Ending::Stop, error: None })),
    }
}

#[test]
fn p3_a_replayed_journal_is_the_live_reply_however_it_was_cut() {
    let mut runner = TestRunner::new(Config { cases: 500, failure_persistence: None, ..Config::default() });
    let cuts = proptest::collection::vec(any::<bool>(), 40);
    runner
        .run(&(steps(), cuts), |(steps, cuts)| {
            let mut live = Fold::new();
            live.take(Event::Ended(&End { ending: Ending::CutOff, error: None }));
            let (mut batches, mut batch, mut n_opened) = (Vec::new(), Batch::default(), 0);
            for (number, step) in steps.iter().enumerate() {
                let now = Time(number as u64);
                live.set_now(now);
                say(step, &mut n_opened, |event| {
                    live.take(event);
                    batch.push(event, Some(now));
                });
                if cuts[number] {
                    batches.push(std::mem::take(&mut batch));
                }
            }
            batches.push(batch);
            let stored: Vec<String> = batches.iter().flat_map(Batch::rows).collect();
            let read = stored.iter().map(|json| Batch::from_json(json).unwrap());
            prop_assert_eq!(Batch::replay(read), live.finish());
            Ok(())
        })
        .unwrap();
}
