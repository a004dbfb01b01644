//! A reply while it streams: when its text is saved, and what a crash leaves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aside_core::block::{Origin, SealKind, Time};
use aside_core::event::{
    BlockId, BlockOpening, Ending, Event, ExtraValue, ProseKind, ReplyEnd, RestatedPart, Sink, Usage,
};
use aside_core::fold::Fold;
use aside_core::json_text::JsonText;
use aside_core::message::Message;
use aside_store::session::{NewReply, PageQuery, Parent};
use aside_store::{EventBatch, ReplyRecorder, SessionId, SqliteStore, Store, WriteLock};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{Folder, assistant, at, new_session, text, user};

const BLOCK: BlockId = BlockId(0);

fn start(store: &Arc<SqliteStore>) -> (SessionId, WriteLock, ReplyRecorder) {
    let id = store.create(&new_session()).unwrap();
    let lock = store.lock_session(&id).unwrap();
    store.append(&lock, Parent::Head, &user("q")).unwrap();
    let shared: Arc<dyn Store> = store.clone();
    let origin = Origin::default().with_model("m".to_owned());
    let reply = NewReply { parent: Parent::Head, origin: Some(origin), at: Some(Time(50)) };
    let recorder = ReplyRecorder::begin(shared, &lock, &reply).unwrap();
    (id, lock, recorder)
}

fn last(store: &dyn Store, id: &SessionId) -> Message {
    store.page(id, PageQuery { from: None, limit: 1 }).unwrap().messages.pop().unwrap().message
}

/// Waits for a condition that another thread brings about.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what} was never stored");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn p1_text_is_saved_within_a_second_even_if_nothing_follows() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let (id, _lock, mut recorder) = start(&store);
    recorder.take(Event::Opened { block: BLOCK, opening: BlockOpening::Text });
    recorder.take(Event::Grew { block: BLOCK, text: "half a sen" });
    // The model stalls; another process reads.
    let other = SqliteStore::open(folder.path()).unwrap();
    eventually("the text", || last(&other, &id).blocks == [text("half a sen")]);
}

#[test]
fn p3_a_long_reply_is_journaled_in_small_rows_and_is_complete() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let (id, lock, mut recorder) = start(&store);
    let (long, restated) = ("é123456789".repeat(700_000), "final ".repeat(400_000));
    recorder.take(Event::Opened { block: BLOCK, opening: BlockOpening::Text });
    recorder.take(Event::Grew { block: BLOCK, text: &long });
    recorder.take(Event::Closed { block: BLOCK });
    // The provider restates another block at once, with more text than fits a row.
    recorder.take(Event::Opened { block: BlockId(1), opening: BlockOpening::Text });
    recorder.take(Event::Grew { block: BlockId(1), text: "first " });
    let text_of = JsonText::plain(&restated);
    recorder.take(Event::Restated { block: BlockId(1), part: RestatedPart::Whole, text: text_of });
    recorder.flush().unwrap();
    let db = rusqlite::Connection::open(store.path()).unwrap();
    let longest: i64 = db.query_row("SELECT max(length(events)) FROM journal", [], |row| row.get(0)).unwrap();
    assert!(longest < 2 << 20, "{longest}");
    drop((recorder, lock));
    let _lock = store.lock_session(&id).unwrap();
    let left = last(&*store, &id);
    assert!(left.interrupted && left.blocks == [text(&long), text(&restated)], "the reply is complete");
}

#[test]
fn p6_a_long_block_is_stored_whole_whether_it_compresses_or_not() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let id = store.create(&new_session()).unwrap();
    let lock = store.lock_session(&id).unwrap();
    // Noise does not compress; a repeated word does.
    let mut state = 7_u64;
    let noise: String = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from_u32(0x4e00 + (state >> 40) as u32 % 0x5000).unwrap()
    })
    .take(1_500_000)
    .collect();
    for long in [noise, "again ".repeat(2_000_000)] {
        store.append(&lock, Parent::Head, &user(&long)).unwrap();
        assert!(last(&*store, &id).blocks == [text(&long)]);
        let loaded = store.load(&id).unwrap().conversation;
        assert!(loaded.history.branch().last().unwrap().1.blocks == [text(&long)]);
    }
    assert_eq!(store.integrity_errors().unwrap(), Vec::<String>::new());
}

#[test]
fn p1_a_block_that_ends_is_saved_at_once() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let (id, _lock, mut recorder) = start(&store);
    recorder.take(Event::Opened { block: BLOCK, opening: BlockOpening::Text });
    recorder.take(Event::Grew { block: BLOCK, text: "whole" });
    recorder.take(Event::Closed { block: BLOCK });
    eventually("the block", || last(&*store, &id).blocks == [text("whole")]);
    recorder.take(Event::Opened { block: BlockId(1), opening: BlockOpening::Text });
    recorder.take(Event::Grew { block: BlockId(1), text: "more" });
    recorder.flush().unwrap();
    assert_eq!(last(&*store, &id).blocks, [text("whole"), text("more")], "flush waits");
}

#[test]
fn p6_deltas_are_joined_and_leave_no_rows_behind() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let (id, _lock, mut recorder) = start(&store);
    recorder.take(Event::Opened { block: BLOCK, opening: BlockOpening::Text });
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
fn p1_a_reply_whose_recorder_is_gone_is_interrupted_and_keeps_everything_received() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let (id, lock, mut recorder) = start(&store);
    recorder.take(Event::Opened { block: BLOCK, opening: BlockOpening::Text });
    recorder.take(Event::Grew { block: BLOCK, text: "as far as" });
    drop(recorder);
    drop(lock);
    drop(store);
    let store = folder.store();
    let message = last(&store, &id);
    assert!(message.interrupted);
    assert_eq!(message.ending, Some(Ending::CutOff));
    assert_eq!(message.blocks, [text("as far as")]);
    assert_eq!(message.origin.and_then(|origin| origin.model).as_deref(), Some("m"));
    assert_eq!(message.at, Some(Time(50)));
    // It can be found, and the session can continue.
    let found = store.search(&aside_store::search::SearchQuery::new("\"as far as\"")).unwrap();
    assert_eq!(found.hits.len(), 1);
    let lock = store.lock_session(&id).unwrap();
    store.append(&lock, Parent::Head, &user("go on")).unwrap();
    assert_eq!(store.branch_lengths(&[&id]).unwrap()[0].n_messages, 3);
}

#[test]
fn p8_a_reply_that_another_process_records_is_left_alone() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let (id, lock, mut recorder) = start(&store);
    // Opening the store closes replies of dead recorders; this one is alive.
    let other = folder.store();
    recorder.take(Event::Opened { block: BLOCK, opening: BlockOpening::Text });
    recorder.take(Event::Grew { block: BLOCK, text: "still here" });
    recorder.flush().unwrap();
    // The recorder holds the lock too.
    drop(lock);
    assert!(matches!(other.lock_session(&id), Err(aside_store::StoreError::InUse { .. })));
    let whole = assistant("m", vec![text("still here.")]);
    recorder.finish(&whole, None).unwrap();
    assert_eq!(last(&other, &id), at(whole, 50));
    drop(recorder);
    drop(other.lock_session(&id).unwrap());
}

/// An event that owns its text.
#[derive(Debug, Clone)]
enum OwnedEvent {
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
    /// Name, member, value, and whether it is a further piece.
    Extra(Option<u32>, String, Option<String>, String, bool),
    Model(String),
    Seen(String),
    End,
}

fn steps() -> impl Strategy<Value = Vec<OwnedEvent>> {
    let block = || 0u32..4;
    let text = || "[a-z \"\\\\é\n]{0,12}";
    let step = prop_oneof![
        2 => (0u8..4).prop_map(OwnedEvent::Open),
        1 => (block(), 0u32..3).prop_map(|(block, index)| OwnedEvent::Item(block, index)),
        6 => (block(), text()).prop_map(|(block, text)| OwnedEvent::Grew(block, text)),
        1 => (block(), any::<bool>(), text()).prop_map(|(block, kind, text)| OwnedEvent::Seal(block, kind, text)),
        1 => (block(), any::<bool>()).prop_map(|(block, side)| OwnedEvent::Refile(block, side)),
        1 => (block(), text()).prop_map(|(block, text)| OwnedEvent::Name(block, text)),
        1 => (block(), proptest::option::of(0u32..3), text()).prop_map(|(block, part, text)| OwnedEvent::Restate(block, part, text)),
        1 => (block(), text()).prop_map(|(block, text)| OwnedEvent::Keep(block, text)),
        2 => block().prop_map(OwnedEvent::Close),
        1 => any::<u64>().prop_map(OwnedEvent::Usage),
        2 => (proptest::option::of(block()), "[ab]", proptest::option::of("[cd]"), text(), any::<bool>()).prop_map(
            |(block, name, member, value, continues)| OwnedEvent::Extra(block, name, member, value, continues)
        ),
        1 => text().prop_map(OwnedEvent::Model),
        1 => text().prop_map(OwnedEvent::Seen),
        1 => Just(OwnedEvent::End),
    ];
    (proptest::collection::vec(step, 0..40), any::<bool>()).prop_map(|(mut steps, with_items)| {
        // A decoder restates a block as a whole or item by item, never both.
        steps.retain(|step| match step {
            OwnedEvent::Item(..) | OwnedEvent::Restate(_, Some(_), _) => with_items,
            OwnedEvent::Restate(_, None, _) => !with_items,
            _ => true,
        });
        steps
    })
}

fn emit(step: &OwnedEvent, n_opened: &mut u32, mut take: impl FnMut(Event<'_>)) {
    let block = |block: &u32| BlockId(*block);
    match step {
        OwnedEvent::Open(kind) => {
            let opening = match kind {
                0 => BlockOpening::Text,
                1 => BlockOpening::Thinking { source: "s", id: Some("i") },
                2 => BlockOpening::ToolCall { id: None, name: "n" },
                _ => BlockOpening::Unmodelled,
            };
            take(Event::Opened { block: BlockId(*n_opened), opening });
            *n_opened += 1;
        }
        OwnedEvent::Item(at, index) => take(Event::Item { block: block(at), index: *index }),
        OwnedEvent::Grew(at, text) => take(Event::Grew { block: block(at), text }),
        OwnedEvent::Seal(at, signed, payload) => {
            let kind = if *signed { SealKind::Signature } else { SealKind::Encrypted };
            take(Event::Sealed { block: block(at), kind, payload });
        }
        OwnedEvent::Refile(at, to_text) => {
            take(Event::Refiled { block: block(at), to: if *to_text { ProseKind::Text } else { ProseKind::Thinking } });
        }
        OwnedEvent::Name(at, id) => take(Event::Identified { block: block(at), id }),
        OwnedEvent::Restate(at, part, text) => {
            let part = part.map_or(RestatedPart::Whole, RestatedPart::Item);
            take(Event::Restated { block: block(at), part, text: JsonText::plain(text) });
        }
        OwnedEvent::Keep(at, json) => take(Event::NativeItem { block: block(at), json, text_member: Some("text") }),
        OwnedEvent::Close(at) => take(Event::Closed { block: block(at) }),
        OwnedEvent::Usage(n) => {
            let cache_write = n.is_multiple_of(2).then_some(*n);
            take(Event::Usage(Usage::default().with_input(*n).with_cache_write(cache_write)));
        }
        OwnedEvent::Extra(at, name, member, value, continues) => {
            let json = format!("[{}]", serde_json::to_string(value).unwrap());
            let value = ExtraValue { name, member: member.as_deref(), json: &json, continues: *continues };
            take(Event::Extra { block: at.as_ref().map(block), value });
        }
        OwnedEvent::Model(model) => take(Event::Started { model }),
        OwnedEvent::Seen(field) => take(Event::EmptyThinkingField { field }),
        OwnedEvent::End => take(Event::Ended(&ReplyEnd { ending: Ending::Stop, error: None })),
    }
}

#[test]
fn p3_a_replayed_journal_equals_the_live_reply_however_it_was_split() {
    let mut runner = TestRunner::new(Config { cases: 500, failure_persistence: None, ..Config::default() });
    let cuts = proptest::collection::vec(any::<bool>(), 40);
    runner
        .run(&(steps(), cuts), |(steps, cuts)| {
            let mut live = Fold::new();
            live.take(Event::Ended(&ReplyEnd { ending: Ending::CutOff, error: None }));
            let (mut batches, mut batch, mut n_opened) = (Vec::new(), EventBatch::default(), 0);
            for (number, step) in steps.iter().enumerate() {
                let now = Time(number as u64);
                live.set_now(now);
                emit(step, &mut n_opened, |event| {
                    live.take(event);
                    batch.push(event, Some(now));
                });
                if cuts[number] {
                    batches.push(std::mem::take(&mut batch));
                }
            }
            batches.push(batch);
            let rows = batches.iter().flat_map(EventBatch::rows);
            prop_assert_eq!(EventBatch::replay(rows).unwrap(), live.finish());
            Ok(())
        })
        .unwrap();
}
