//! What every store must do.

use std::time::Duration;

use aside_core::block::Time;
use aside_core::dialect::Repair;
use aside_core::rules::LearnedRepair;
use aside_core::{Block, Message};
use aside_memory::{
    ClientKeyRow, Memory, MemoryOptions, Outcome, ReceiptFilter, ReceiptRow, SpendRow, StoreError, StoreKey,
    StoreLocation,
};

use super::postgres_server::PostgresServer;
use super::support::*;

const DAY: u64 = 24 * 60 * 60 * 1000;

/// A place for a memory, which can be opened several times.
struct Place {
    location: StoreLocation,
    key: StoreKey,
    folder: Folder,
}

impl Place {
    fn options(&self) -> MemoryOptions {
        MemoryOptions::new(self.location.clone(), self.key.clone())
            .with_deadline(Duration::from_secs(60))
            .with_retention(Duration::from_millis(10 * DAY))
            .with_spill(self.folder.0.join("spill"), 1 << 20)
    }

    async fn open(&self) -> Memory {
        Memory::open(self.options(), dialects(), NOW).await.unwrap()
    }
}

fn long_chat(thought: &str) -> Vec<Message> {
    vec![
        user("How deep is berth 4?"),
        assistant(vec![open_thinking(thought), call("call_00_x8Bq2LmVf3kZ", "depth", r#"{"berth":4}"#)]),
        result("call_00_x8Bq2LmVf3kZ", "4 m"),
    ]
}

async fn contract(place: &Place) {
    replies_survive(place).await;
    replicas_see_each_other(place).await;
    one_reply_is_deleted(place).await;
    replies_expire_after_their_last_use(place).await;
    tenants_have_a_quota(place).await;
    receipts_belong_to_their_tenant(place).await;
    tables_of_clients(place).await;
    tenants_are_deleted_and_keys_change(place).await;
}

async fn replies_survive(place: &Place) {
    let target = Target::new("deepseek", "deepseek-v4-pro");
    for thought in ["short".to_owned(), noise(1, 1_500_000)] {
        let original = long_chat(&thought);
        let name = format!("survivor {}", thought.len());
        let memory = place.open().await;
        let tenant = memory.tenant(&name, NOW).await.unwrap();
        target.remember(&memory, &tenant, &original, None).await;
        let memory = place.open().await;
        let tenant = memory.tenant(&name, NOW).await.unwrap();
        let messages = target.restored_messages(&memory, &tenant, &all_without_thinking(&original)).await;
        assert_eq!(messages[1].blocks, original[1].blocks, "{} bytes", thought.len());
    }
    // Many replies of one key: more than are read.
    let memory = place.open().await;
    let tenant = memory.tenant("many", NOW).await.unwrap();
    for n in 0..12 {
        target.remember(&memory, &tenant, &long_chat(&format!("thought {n}")), None).await;
    }
    let lost = all_without_thinking(&long_chat(""));
    assert_eq!(target.restore(&memory, &tenant, &lost, None).await.turns[0].outcome, Outcome::Ambiguous);
}

async fn replicas_see_each_other(place: &Place) {
    let target = Target::new("deepseek", "deepseek-v4-pro");
    let replicas = [place.open().await, place.open().await];
    let mut history: Vec<Message> = Vec::new();
    for n in 0..6 {
        let memory = &replicas[n % 2];
        let tenant = memory.tenant("shared", NOW).await.unwrap();
        history.push(user(&format!("question {n}")));
        let lost = all_without_thinking(&history);
        let messages = target.restored_messages(memory, &tenant, &lost).await;
        for (message, original) in messages.iter().zip(&history) {
            assert_eq!(message.blocks, original.blocks, "request {n}");
        }
        let restored = target.restore(memory, &tenant, &lost, None).await;
        let id = format!("call_{n}");
        let reply = assistant(vec![open_thinking(&format!("thought {n}")), call(&id, "ls", "{}")]);
        let reply = Message { origin: Some(target.origin.clone()), ..reply };
        assert_eq!(memory.begin(&tenant, &restored).finish(reply.clone(), NOW).durable().await.as_str(), "ok");
        history.push(reply);
        history.push(result(&id, "a.rs"));
    }
}

async fn one_reply_is_deleted(place: &Place) {
    let target = Target::new("deepseek", "deepseek-v4-pro");
    let (memory, other) = (place.open().await, place.open().await);
    let tenant = memory.tenant("deletes", NOW).await.unwrap();
    target.remember(&memory, &tenant, &long_chat("deep"), None).await;
    let lost = all_without_thinking(&long_chat("deep"));
    let id = target.restore(&memory, &tenant, &lost, None).await.turns[0].reply.unwrap();
    let reply = memory.stored_reply(&tenant, id).await.unwrap().unwrap();
    // Its seals may have been refused before: that has a mark too.
    memory.mark_rejected(&tenant, id).await.unwrap();
    memory.forget_reply(&tenant, &reply).await.unwrap();
    for memory in [&memory, &other] {
        let tenant = memory.tenant("deletes", NOW).await.unwrap();
        assert_eq!(memory.stored_reply(&tenant, id).await.unwrap(), None);
        assert_eq!(target.restore(memory, &tenant, &lost, None).await.turns[0].outcome, Outcome::Unknown);
    }
}

async fn replies_expire_after_their_last_use(place: &Place) {
    let target = Target::new("deepseek", "deepseek-v4-pro");
    let memory = place.open().await;
    let (used, unused) = (memory.tenant("used", NOW).await.unwrap(), memory.tenant("unused", NOW).await.unwrap());
    let original = long_chat("deep");
    let lost = all_without_thinking(&original);
    for tenant in [&used, &unused] {
        target.remember(&memory, tenant, &original, None).await;
    }
    let later = Time(NOW.0 + 6 * DAY);
    let refs: Vec<&Message> = lost.iter().collect();
    let dialect = target.dialects.get(&target.dialect).unwrap();
    let request = aside_core::Request::new(&target.dialects, dialect, &target.model, &target.origin, &target.settings)
        .with_messages(&refs)
        .with_tools(&target.tools);
    let restored = memory.restore(&used, &request, None, later).await;
    assert_eq!(restored.turns[0].outcome, Outcome::Restored);
    memory.flush().await;
    assert!(memory.expire(Time(NOW.0 + 12 * DAY)).await.unwrap() > 0);
    let memory = place.open().await;
    let outcome = async |name: &str| {
        let tenant = memory.tenant(name, NOW).await.unwrap();
        target.restore(&memory, &tenant, &lost, None).await.turns[0].outcome
    };
    assert_eq!((outcome("used").await, outcome("unused").await), (Outcome::Restored, Outcome::Unknown));
}

async fn tenants_have_a_quota(place: &Place) {
    let target = Target::new("deepseek", "deepseek-v4-pro");
    let memory = place.open().await;
    let (large, small) = (memory.tenant("large", NOW).await.unwrap(), memory.tenant("small", NOW).await.unwrap());
    let chat = |n: usize| {
        let id = format!("call_00_x8Bq2LmVf3k{n}");
        vec![
            user(&format!("How deep is berth {n}?")),
            assistant(vec![open_thinking(&noise(1, 10_000)), call(&id, "depth", r#"{"berth":4}"#)]),
            result(&id, "4 m"),
        ]
    };
    for n in 0..5 {
        target.remember(&memory, &large, &chat(n), None).await;
    }
    target.remember(&memory, &small, &chat(0), None).await;
    // The first conversation is used again a few days later, so the second is the oldest.
    let later = Time(NOW.0 + 3 * DAY);
    let lost = all_without_thinking(&chat(0));
    let refs: Vec<&Message> = lost.iter().collect();
    let dialect = target.dialects.get("deepseek").unwrap();
    let settings = aside_core::Settings::new();
    let request = aside_core::Request::new(&target.dialects, dialect, &target.model, &target.origin, &settings)
        .with_messages(&refs)
        .with_tools(&target.tools);
    memory.restore(&large, &request, None, later).await;
    memory.flush().await;
    assert_eq!(memory.trim(1 << 30).await.unwrap(), 0, "nobody has too much");
    assert_eq!(memory.trim(35_000).await.unwrap(), 2);
    let mut kept = Vec::new();
    for n in 0..5 {
        let restored = target.restore(&memory, &large, &all_without_thinking(&chat(n)), None).await;
        kept.push(restored.turns[0].outcome == Outcome::Restored);
    }
    assert_eq!(kept.iter().filter(|kept| **kept).count(), 3, "{kept:?}");
    assert!(kept[0], "it was used last: {kept:?}");
    let restored = target.restore(&memory, &small, &all_without_thinking(&chat(0)), None).await;
    assert_eq!(restored.turns[0].outcome, Outcome::Restored, "another tenant");
}

async fn receipts_belong_to_their_tenant(place: &Place) {
    let memory = place.open().await;
    let (ours, theirs) = (memory.tenant("ours", NOW).await.unwrap(), memory.tenant("theirs", NOW).await.unwrap());
    let receipt = |n: u64| ReceiptRow {
        id: format!("req_{n}"),
        at: Time(NOW.0 + n / 2),
        client: if n.is_multiple_of(2) { "codex".to_owned() } else { "claude-code".to_owned() },
        model: "m".to_owned(),
        status: 200,
        repaired: "1 restored, 0 filler, 0 ambiguous".to_owned(),
        body: format!(r#"{{"id":"req_{n}"}}"#),
    };
    for n in 0..5 {
        memory.put_receipt(&ours, receipt(n));
    }
    memory.flush().await;
    assert_eq!(memory.receipt(&ours, "req_3").await.unwrap(), Some(receipt(3)));
    assert_eq!(memory.receipt(&theirs, "req_3").await.unwrap(), None);
    let ids = async |filter: ReceiptFilter| {
        let rows = memory.receipts(&ours, filter).await.unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    let first = ReceiptFilter { limit: 2, ..ReceiptFilter::default() };
    assert_eq!(ids(first.clone()).await, ["req_4", "req_3"]);
    let next = ReceiptFilter { before: Some((receipt(3).at, "req_3".to_owned())), ..first.clone() };
    assert_eq!(ids(next).await, ["req_2", "req_1"]);
    assert_eq!(ids(ReceiptFilter { client: Some("codex".to_owned()), ..first }).await, ["req_4", "req_2"]);
    assert!(memory.expire(Time(NOW.0 + 9 * DAY)).await.unwrap() > 0);
    assert_eq!(memory.receipt(&ours, "req_3").await.unwrap(), None, "kept for a week");
}

async fn tables_of_clients(place: &Place) {
    let (memory, other) = (place.open().await, place.open().await);
    let before = other.revision().await.unwrap();
    let key = |name: &str, hash: &str| ClientKeyRow {
        name: name.to_owned(),
        hash: hash.to_owned(),
        tenant: "team".to_owned(),
        settings: "{}".to_owned(),
        created: NOW,
    };
    assert!(memory.add_client_key(key("ci", "sha256:1")).await.unwrap());
    assert!(!memory.add_client_key(key("ci", "sha256:2")).await.unwrap(), "the name is taken");
    assert!(memory.add_client_key(key("a", "sha256:3")).await.unwrap());
    assert!(other.revision().await.unwrap() > before);
    assert_eq!(other.client_keys().await.unwrap(), [key("a", "sha256:3"), key("ci", "sha256:1")]);
    let before = other.revision().await.unwrap();
    assert!(memory.revoke_client_key("ci").await.unwrap());
    assert!(!memory.revoke_client_key("ci").await.unwrap());
    assert!(other.revision().await.unwrap() > before);

    let repair = LearnedRepair {
        base_url: "https://api.example".to_owned(),
        dialect: "d".to_owned(),
        model: "m".to_owned(),
        repair: Repair::DropBlock,
        details: Vec::new(),
    };
    for _ in 0..2 {
        memory.learn(std::slice::from_ref(&repair), NOW).await.unwrap();
    }
    assert_eq!(other.learned(NOW).await.unwrap(), [repair]);
    assert_eq!(other.learned(Time(NOW.0 + 8 * DAY)).await.unwrap(), []);
    assert_eq!(memory.forget_learned().await.unwrap(), 1);

    let spend = |replica: &str, window: i64, total: u64| SpendRow {
        key: "ci".to_owned(),
        kind: "tokens".to_owned(),
        window,
        replica: replica.to_owned(),
        total,
    };
    memory.put_spend(vec![spend("r1", 60, 5), spend("r1", 120, 7)]).await.unwrap();
    other.put_spend(vec![spend("r2", 120, 1), spend("r2", 120, 3)]).await.unwrap();
    assert_eq!(memory.spend(100).await.unwrap(), [spend("r1", 120, 7), spend("r2", 120, 3)]);
}

async fn tenants_are_deleted_and_keys_change(place: &Place) {
    let target = Target::new("deepseek", "deepseek-v4-pro");
    let memory = place.open().await;
    let other = place.open().await;
    let (tenant, original) = (memory.tenant("gone", NOW).await.unwrap(), long_chat("deep"));
    let kept = memory.tenant("kept", NOW).await.unwrap();
    for tenant in [&tenant, &kept] {
        target.remember(&memory, tenant, &original, None).await;
    }
    let lost = all_without_thinking(&original);
    let there = other.tenant("gone", NOW).await.unwrap();
    assert_eq!(target.restore(&other, &there, &lost, None).await.turns[0].outcome, Outcome::Restored);
    assert!(memory.forget_tenant("gone").await.unwrap());
    assert!(!memory.forget_tenant("never").await.unwrap());
    other.refresh_tenants().await.unwrap();
    for memory in [&memory, &other] {
        let tenant = memory.tenant("gone", NOW).await.unwrap();
        assert_eq!(target.restore(memory, &tenant, &lost, None).await.turns[0].outcome, Outcome::Unknown);
    }
    let new_key = StoreKey::generate();
    assert!(memory.rotate_store_key(new_key.clone()).await.unwrap() >= 2);
    let refused = Memory::open(place.options(), dialects(), NOW).await;
    assert_eq!(refused.err(), Some(StoreError::WrongKey));
    let options = MemoryOptions::new(place.location.clone(), new_key).with_deadline(Duration::from_secs(60));
    let memory = Memory::open(options, dialects(), NOW).await.unwrap();
    let kept = memory.tenant("kept", NOW).await.unwrap();
    let messages = target.restored_messages(&memory, &kept, &lost).await;
    assert!(matches!(messages[1].blocks[0], Block::Thinking(_)));
}

#[tokio::test]
async fn g7_sqlite_keeps_the_contract() {
    let folder = Folder::new("contract");
    let location = StoreLocation::Sqlite(folder.0.join("gateway.db"));
    contract(&Place { location, key: StoreKey::generate(), folder }).await;
}

#[tokio::test]
async fn g7_postgresql_keeps_the_contract() {
    let Some(server) = PostgresServer::start("contract") else {
        println!("PostgreSQL is not installed: nothing to check");
        return;
    };
    let (folder, url) = (Folder::new("contract"), server.new_database("contract"));
    contract(&Place { location: StoreLocation::Postgres(url), key: StoreKey::generate(), folder }).await;
}

#[tokio::test]
async fn g7_a_stopped_postgresql_stops_no_traffic_and_loses_nothing() {
    let Some(server) = PostgresServer::start("stopped") else {
        println!("PostgreSQL is not installed: nothing to check");
        return;
    };
    let (folder, url) = (Folder::new("stopped"), server.new_database("stopped"));
    let place = Place { location: StoreLocation::Postgres(url), key: StoreKey::generate(), folder };
    let target = Target::new("deepseek", "deepseek-v4-pro");
    let memory = place.open().await;
    let tenant = memory.tenant("local", NOW).await.unwrap();
    let chat = |n: usize| {
        vec![
            user(&format!("How deep is berth {n}?")),
            assistant(vec![open_thinking(&format!("thought {n}")), call("call_1", "depth", "{}")]),
            result("call_1", "4 m"),
        ]
    };
    target.remember(&memory, &tenant, &chat(0), None).await;
    server.stop();
    let restored = target.restore(&memory, &tenant, &all_without_thinking(&chat(0)), None).await;
    assert_eq!((restored.store.as_str(), restored.turns[0].outcome), ("down", Outcome::Unknown));
    let restored = target.restore(&memory, &tenant, &[chat(1)[0].clone()], None).await;
    let reply = Message { origin: Some(target.origin.clone()), ..chat(1)[1].clone() };
    assert_eq!(memory.begin(&tenant, &restored).finish(reply.clone(), NOW).durable().await.as_str(), "down");
    assert_eq!((memory.health().state.as_str(), memory.health().lag_rows), ("down", 1));
    server.start_again();
    wait_until(|| memory.health().lag_rows == 0).await;
    assert_eq!(memory.health().lost_rows, 0);
    for n in 0..2 {
        let messages = target.restored_messages(&memory, &tenant, &all_without_thinking(&chat(n))).await;
        assert_eq!(messages[1].thinking_text(), Some(format!("thought {n}")));
    }
    // Full: every insert fails. Slow: each takes longer than the deadline.
    server.sql("stopped", "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$");
    server.sql("stopped", "CREATE TRIGGER full_disk BEFORE INSERT ON reply FOR EACH ROW EXECUTE FUNCTION full_disk()");
    let restored = target.restore(&memory, &tenant, &[chat(2)[0].clone()], None).await;
    let reply = Message { origin: Some(target.origin.clone()), ..chat(2)[1].clone() };
    assert_eq!(memory.begin(&tenant, &restored).finish(reply.clone(), NOW).durable().await.as_str(), "down");
    server.sql("stopped", "DROP TRIGGER full_disk ON reply");
    wait_until(|| memory.health().lag_rows == 0).await;
    server.sql(
        "stopped",
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END $$",
    );
    server.sql("stopped", "CREATE TRIGGER slow BEFORE INSERT ON reply FOR EACH ROW EXECUTE FUNCTION slow()");
    let hasty = Memory::open(place.options().with_deadline(Duration::from_millis(50)), dialects(), NOW).await;
    // The spill file is in use by the first memory, and may be shared.
    let hasty = hasty.unwrap();
    let tenant = hasty.tenant("local", NOW).await.unwrap();
    let restored = target.restore(&hasty, &tenant, &[chat(3)[0].clone()], None).await;
    let reply = Message { origin: Some(target.origin.clone()), ..chat(3)[1].clone() };
    assert_eq!(hasty.begin(&tenant, &restored).finish(reply.clone(), NOW).durable().await.as_str(), "late");
    hasty.flush().await;
    let messages = target.restored_messages(&memory, &tenant, &all_without_thinking(&chat(3))).await;
    assert_eq!(messages[1].thinking_text().as_deref(), Some("thought 3"), "late, but stored");
}
