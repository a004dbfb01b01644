//! What a client was told is durable stays so, whatever happens to the store and to the process.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aside_core::Message;
use aside_memory::{Durability, Memory, MemoryOptions, Outcome, PendingWrite, ReplyId, StoreKey, Tenant};

use super::faulty_store::FaultyStore;
use super::support::*;

/// A memory on a store that can fail.
async fn open_on(store: &Arc<FaultyStore>, options: MemoryOptions) -> Memory {
    Memory::with_store(Some(Arc::clone(store) as _), options, dialects(), NOW).await.unwrap()
}

/// A question, a thought with a call, and its result. Equal visible content unless `question` differs.
fn chat(question: &str, thought: &str) -> Vec<Message> {
    vec![
        user(question),
        assistant(vec![open_thinking(thought), call("call_1", "depth", r#"{"berth":4}"#)]),
        result("call_1", "4 m"),
    ]
}

/// Stores the reply of a chat, and does not wait.
async fn finish(memory: &Memory, tenant: &Arc<Tenant>, chat: &[Message]) -> PendingWrite {
    let target = Target::new("deepseek", "deepseek-v4-pro");
    let restored = target.restore(memory, tenant, &chat[..1], None).await;
    let reply = Message { origin: Some(target.origin.clone()), ..chat[1].clone() };
    memory.begin(tenant, &restored).finish(reply, NOW)
}

/// Runs a part of a test like a process that is killed at its end: all its tasks stop where they are.
fn process<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

/// What happens to the reply of a chat whose client lost the thought.
async fn outcome(memory: &Memory, tenant: &Arc<Tenant>, chat: &[Message]) -> Outcome {
    let target = Target::new("deepseek", "deepseek-v4-pro");
    target.restore(memory, tenant, &all_without_thinking(chat), None).await.turns[0].outcome
}

#[tokio::test]
async fn g7_a_group_is_written_before_it_takes_much_memory() {
    let (folder, key) = (Folder::new("group-bytes"), StoreKey::generate());
    let store = FaultyStore::open(&folder.0.join("gateway.db"));
    let memory = open_on(&store, folder.options(&key)).await;
    let tenant = memory.tenant("local", NOW).await.unwrap();
    let target = Target::new("deepseek", "deepseek-v4-pro");
    let restored = target.restore(&memory, &tenant, &[user("How deep?")], None).await;
    // Nothing is awaited in between, so all of them are in the queue before the writer runs.
    for n in 0..100 {
        let reply = assistant(vec![open_thinking(&noise(n, 200_000)), text("4 m")]);
        let reply = Message { origin: Some(target.origin.clone()), ..reply };
        drop(memory.begin(&tenant, &restored).finish(reply, NOW));
    }
    memory.flush().await;
    let batches = store.batches.lock().unwrap().clone();
    assert_eq!(batches.iter().sum::<usize>(), 100, "{batches:?}");
    // 8 MiB, and the reply that completes them.
    assert!(batches.iter().all(|rows| *rows <= (8 << 20) / 200_000 + 1), "{batches:?}");
}

#[test]
fn g7_a_reply_that_waits_for_the_store_makes_an_equal_one_ambiguous() {
    let (folder, key) = (Folder::new("waiting"), StoreKey::generate());
    let path = folder.0.join("gateway.db");
    // Without a journal and without a cache, so that nothing else knows the reply.
    let options = folder.options(&key).with_durability(Durability::Power).with_cache_bytes(0);
    let (first, second) = (chat("How deep?", "thought 1"), chat("How deep?", "thought 2"));
    process(async {
        let store = FaultyStore::holding(&path);
        let memory = open_on(&store, options.clone()).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        store.gate.add_permits(1);
        assert_eq!(finish(&memory, &tenant, &first).await.durable().await.as_str(), "ok");
        assert_eq!(outcome(&memory, &tenant, &first).await, Outcome::Restored);
        let pending = finish(&memory, &tenant, &second).await;
        assert_eq!(outcome(&memory, &tenant, &first).await, Outcome::Ambiguous, "the second is in the queue");
        store.fail_writes(true);
        store.gate.close();
        assert_eq!(pending.durable().await.as_str(), "down");
        assert_eq!(outcome(&memory, &tenant, &first).await, Outcome::Ambiguous, "it is in the spill file");
    });
    process(async {
        let store = FaultyStore::open(&path);
        store.fail_writes(true);
        let memory = open_on(&store, options.clone()).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        assert_eq!(outcome(&memory, &tenant, &first).await, Outcome::Ambiguous, "also after a restart");
        store.fail_writes(false);
        wait_until(|| memory.health().lag_rows == 0).await;
        assert_eq!(outcome(&memory, &tenant, &first).await, Outcome::Ambiguous, "both are in the tables");
        let lost = chat("Where?", "thought 3");
        store.fail_writes(true);
        assert_eq!(finish(&memory, &tenant, &lost).await.durable().await.as_str(), "down");
        assert_eq!(outcome(&memory, &tenant, &lost).await, Outcome::Ambiguous, "it exists and cannot be read");
    });
}

#[test]
fn g7_a_reply_in_memory_proves_nothing_while_the_tables_cannot_be_read() {
    let (folder, key) = (Folder::new("unreadable"), StoreKey::generate());
    let path = folder.0.join("gateway.db");
    process(async {
        let store = FaultyStore::holding(&path);
        let memory = open_on(&store, folder.options(&key).with_cache_bytes(0)).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        let second = chat("How deep?", "thought 2");
        assert_eq!(finish(&memory, &tenant, &second).await.durable().await.as_str(), "ok");
        assert_eq!(outcome(&memory, &tenant, &second).await, Outcome::Restored);
        store.reads_fail.store(true, Ordering::SeqCst);
        assert_eq!(outcome(&memory, &tenant, &second).await, Outcome::Unknown, "the tables may have an equal one");
    });
}

#[test]
fn g7_a_late_reply_survives_its_process_also_beside_another_one() {
    let (folder, key) = (Folder::new("late"), StoreKey::generate());
    let path = folder.0.join("gateway.db");
    let options = folder.options(&key).with_cache_bytes(0);
    let late = chat("How deep?", "thought");
    process(async {
        let store = FaultyStore::holding(&path);
        let memory = open_on(&store, options.clone().with_deadline(Duration::from_millis(1))).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        let _another = open_on(&FaultyStore::open(&path), options.clone()).await;
        assert_eq!(finish(&memory, &tenant, &late).await.durable().await.as_str(), "late");
    });
    process(async {
        let memory = open_on(&FaultyStore::open(&path), options.clone()).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        assert_eq!(outcome(&memory, &tenant, &late).await, Outcome::Restored);
    });
}

#[test]
fn g7_a_deletion_is_kept_although_replies_beside_it_find_no_room() {
    let (folder, key) = (Folder::new("no-room"), StoreKey::generate());
    let path = folder.0.join("gateway.db");
    let options = folder.options(&key).with_durability(Durability::Power).with_cache_bytes(0);
    let options = options.with_spill(folder.0.join("spill"), 100);
    let (deleted, lost) = (chat("How deep?", "thought"), chat("Where?", "thought 2"));
    process(async {
        let store = FaultyStore::holding(&path);
        let memory = open_on(&store, options.clone()).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        store.gate.add_permits(1);
        let id = stored_ids(&memory, &tenant, std::slice::from_ref(&deleted)).await[0];
        let reply = memory.reply(&tenant, id).await.unwrap().unwrap();
        store.fail_writes(true);
        // Both are in the queue while the group before them waits.
        let first = finish(&memory, &tenant, &lost).await;
        tokio::task::yield_now().await;
        let second = finish(&memory, &tenant, &lost).await;
        let open_the_gate = async {
            tokio::task::yield_now().await;
            store.gate.close();
        };
        let (deletion, ()) = tokio::join!(memory.forget_reply(&tenant, &reply), open_the_gate);
        deletion.unwrap();
        assert_eq!((first.durable().await.as_str(), second.durable().await.as_str()), ("down", "down"));
        assert_eq!((memory.health().lost_rows, memory.health().lag_rows), (2, 1));
    });
}

#[test]
fn g7_a_durable_reply_stays_in_the_journal_while_nothing_else_takes_it() {
    for ends_well in [false, true] {
        let (folder, key) = (Folder::new("kept"), StoreKey::generate());
        let path = folder.0.join("gateway.db");
        let options = folder.options(&key).with_spill(folder.0.join("spill"), 100).with_cache_bytes(0);
        let (durable, other) = (chat("How deep?", "thought"), chat("Where?", "thought 2"));
        process(async {
            let store = FaultyStore::open(&path);
            let memory = open_on(&store, options.clone()).await;
            let tenant = memory.tenant("local", NOW).await.unwrap();
            store.fail_writes(true);
            for (chat, state) in [(&durable, "ok"), (&other, "down")] {
                let pending = finish(&memory, &tenant, chat).await;
                memory.flush().await;
                assert_eq!(pending.durable().await.as_str(), state);
            }
            assert_eq!((memory.health().lost_rows, memory.health().lag_rows), (1, 1), "the spill file is full");
            assert_eq!(outcome(&memory, &tenant, &durable).await, Outcome::Restored);
            assert_eq!(outcome(&memory, &tenant, &other).await, Outcome::Ambiguous, "it was lost");
            if ends_well {
                store.fail_writes(false);
                wait_until(|| memory.health().lag_rows == 0).await;
                assert_eq!(outcome(&memory, &tenant, &durable).await, Outcome::Restored);
            }
        });
        process(async {
            let memory = open_on(&FaultyStore::open(&path), options.clone()).await;
            let tenant = memory.tenant("local", NOW).await.unwrap();
            assert_eq!(outcome(&memory, &tenant, &durable).await, Outcome::Restored, "{ends_well}");
        });
    }
}

#[test]
fn g7_a_deleted_reply_does_not_come_back_from_a_file() {
    let (folder, key) = (Folder::new("deleted"), StoreKey::generate());
    let path = folder.0.join("gateway.db");
    // Without a journal, replies wait in the spill file.
    let options = folder.options(&key).with_durability(Durability::Power).with_cache_bytes(0);
    let deleted: Vec<Vec<Message>> = (0..3).map(|n| chat(&format!("How deep is berth {n}?"), "thought")).collect();
    process(async {
        let store = FaultyStore::open(&path);
        let memory = open_on(&store, options.clone()).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        let ids = stored_ids(&memory, &tenant, &deleted).await;
        store.fail_writes(true);
        let first = memory.reply(&tenant, ids[0]).await.unwrap().unwrap();
        memory.forget_reply(&tenant, &first).await.unwrap();
        assert_eq!(memory.reply(&tenant, ids[0]).await.unwrap(), None, "the deletion is in the spill file");
        assert_eq!(outcome(&memory, &tenant, &deleted[0]).await, Outcome::Unknown);
    });
    process(async {
        let store = FaultyStore::open(&path);
        store.fail_writes(true);
        let memory = open_on(&store, options.clone()).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        assert_eq!(outcome(&memory, &tenant, &deleted[0]).await, Outcome::Unknown, "also after a restart");
        assert_eq!(outcome(&memory, &tenant, &deleted[1]).await, Outcome::Restored);
        store.fail_writes(false);
        wait_until(|| memory.health().lag_rows == 0).await;
        assert_eq!(outcome(&memory, &tenant, &deleted[0]).await, Outcome::Unknown);
    });
    // The store takes a batch, and its answer is lost: the batch waits in the file all the same.
    let late = chat("How deep is berth 9?", "thought");
    let spilled = process(async {
        let store = FaultyStore::open(&path);
        let memory = open_on(&store, options.clone()).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        store.answers_get_lost.store(true, Ordering::SeqCst);
        store.late_writes_fail.store(true, Ordering::SeqCst);
        assert_eq!(finish(&memory, &tenant, &late).await.durable().await.as_str(), "down");
        memory.health().lag_rows
    });
    assert_eq!(spilled, 1);
    process(async {
        // Another gateway finds it in the tables.
        let elsewhere = options.clone().with_spill(folder.0.join("another-spill"), 1 << 20);
        let memory = open_on(&FaultyStore::open(&path), elsewhere).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        let target = Target::new("deepseek", "deepseek-v4-pro");
        let restored = target.restore(&memory, &tenant, &all_without_thinking(&late), None).await;
        assert_eq!(restored.turns[0].outcome, Outcome::Restored);
        let reply = memory.reply(&tenant, restored.turns[0].reply.unwrap()).await.unwrap().unwrap();
        memory.forget_reply(&tenant, &reply).await.unwrap();
        assert_eq!(memory.health().lag_rows, 0, "the deletion is in the tables");
    });
    process(async {
        let memory = open_on(&FaultyStore::open(&path), options.clone()).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        wait_until(|| memory.health().lag_rows == 0).await;
        assert_eq!(outcome(&memory, &tenant, &late).await, Outcome::Unknown);
    });
}

/// Stores the replies of chats, and returns their ids.
async fn stored_ids(memory: &Memory, tenant: &Arc<Tenant>, chats: &[Vec<Message>]) -> Vec<ReplyId> {
    let target = Target::new("deepseek", "deepseek-v4-pro");
    let mut ids = Vec::new();
    for chat in chats {
        assert_eq!(finish(memory, tenant, chat).await.durable().await.as_str(), "ok");
        let restored = target.restore(memory, tenant, &all_without_thinking(chat), None).await;
        ids.push(restored.turns[0].reply.unwrap());
    }
    ids
}
