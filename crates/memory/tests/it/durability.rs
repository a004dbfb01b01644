//! What a client was told is durable stays so, whatever happens to the store and to the process.

use std::sync::Arc;

use aside_core::Message;
use aside_memory::{Memory, MemoryOptions, PendingWrite, StoreKey, Tenant};

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
    drop(finish(&memory, &tenant, &chat("last", "thought")).await);
}
