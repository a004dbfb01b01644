//! Several gateways on one PostgreSQL database: a conversation may go to any of them,
//! and a database that fails stops no traffic.

use serde_json::{Value, json};

use crate::gateway_process::{
    GatewayProcess, HttpAnswer, THOUGHT, Upstream, follow_up, held_upstream, question, thinking_reply, wait_for,
};
use crate::postgres_server::PostgresServer;
use crate::support::TestConfig;

const CHAT: &str = "/v1/chat/completions";
const STORE_KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// The end of a reply waits for the store, however slow the machine is.
const PATIENT: &str = "[serve]\nstore_wait = \"10m\"\n";
/// The end of a reply does not wait long.
const HASTY: &str = "[serve]\nstore_wait = \"100ms\"\n";

/// A database, and the folders of two replicas.
struct Cluster {
    server: PostgresServer,
    database: String,
    url: String,
    folders: [TestConfig; 2],
}

impl Cluster {
    /// None if PostgreSQL is not installed.
    fn start(name: &str, config: &str) -> Option<Cluster> {
        let Some(server) = PostgresServer::start(name) else {
            println!("PostgreSQL is not installed: nothing to check");
            return None;
        };
        let database = name.replace('-', "_");
        let url = server.new_database(&database);
        let folders = ["a", "b"].map(|replica| TestConfig::with(&format!("{name}-{replica}"), config));
        Some(Cluster { server, database, url, folders })
    }

    fn replica(&self, at: usize) -> GatewayProcess {
        let variables = [("ASIDE_STORE_KEY", STORE_KEY)];
        GatewayProcess::start_with(&self.folders[at], &["--store", &self.url], &variables)
    }

    fn sql(&self, sql: &str) {
        self.server.sql(&self.database, sql);
    }
}

/// The rows of an earlier outage are in the store.
fn wait_until_written(replica: &GatewayProcess) {
    wait_for("the rows of the outage", || {
        let is_written = replica.metric("aside_store_lag_rows").as_deref() == Some("0");
        (is_written && replica.metric("aside_store_up").as_deref() == Some("1")).then_some(())
    });
    assert_eq!(replica.metric("aside_store_lost_rows").as_deref(), Some("0"));
}

/// A client that lost the thought asks a gateway, which puts it back.
fn is_restored_by(replica: &GatewayProcess, upstream: &Upstream, words: &str) {
    let answer = replica.post(CHAT, &follow_up("up/m", words));
    assert_eq!((answer.status, answer.n_restored()), (200, 1), "{}", answer.text());
    let sent = upstream.received().pop().unwrap();
    assert!(sent.contains(&format!("\"reasoning_content\":\"{THOUGHT}\"")), "{sent}");
}

#[test]
fn g7_two_replicas_that_take_turns_restore_every_thought() {
    let Some(cluster) = Cluster::start("replicas-turns", PATIENT) else { return };
    let replicas = [cluster.replica(0), cluster.replica(1)];
    for dialect in ["deepseek", "anthropic", "gemini"] {
        let tools = json!([{"type": "function", "function": {"name": "list", "description": "lists files",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}]);
        let mut messages = vec![json!({"role": "user", "content": "Look around.\nsim: tool-loop 4"})];
        for step in 0..5 {
            let body = json!({"model": format!("sim/{dialect}"), "messages": messages, "tools": tools}).to_string();
            let answer = replicas[step % 2].post(CHAT, &body);
            assert_eq!(answer.status, 200, "{dialect}, step {step}: {}", answer.text());
            assert!(answer.n_restored() >= step, "{dialect}, step {step}: {:?}", answer.header("aside-repaired"));
            let reply = answer.json();
            let message = &reply["choices"][0]["message"];
            let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
            assert_eq!(calls.is_empty(), step == 4, "{dialect}, step {step}");
            let mut lost = json!({"role": "assistant", "content": message["content"]});
            if !calls.is_empty() {
                lost["tool_calls"] = Value::from(calls.clone());
            }
            messages.push(lost);
            let results = calls.iter().map(|call| json!({"role": "tool", "tool_call_id": call["id"], "content": "a"}));
            messages.extend(results);
            // Either replica has the receipt.
            let id = answer.header("aside-request").unwrap();
            for replica in &replicas {
                wait_for("the receipt", || (replica.get(&format!("/aside/requests/{id}")).status == 200).then_some(()));
            }
        }
    }
    // Either lists the receipts of both.
    let lists = replicas.each_ref().map(|replica| {
        let list = replica.get("/aside/requests").json();
        let ids = list["requests"].as_array().unwrap().iter().map(|receipt| receipt["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<String>>()
    });
    assert_eq!(lists[0].len(), 15);
    assert_eq!(lists[0], lists[1]);
}

#[test]
fn g7_a_database_that_restarts_in_mid_stream_breaks_no_stream_and_loses_no_thought() {
    let upstream = held_upstream();
    let config = format!("{}{PATIENT}", upstream.config("openai-chat", "deepseek"));
    let Some(cluster) = Cluster::start("replicas-restart", &config) else { return };
    let replicas = [cluster.replica(0), cluster.replica(1)];
    let mut stream = replicas[0].open("POST", CHAT, &[], question("up/m", "restarted").as_bytes());
    stream.read_until("call_00_x8Bq2LmVf3kZ");
    cluster.server.stop();
    upstream.release();
    let answer = stream.rest();
    assert!(answer.is_whole && answer.text().ends_with("data: [DONE]\n\n"), "{}", answer.text());
    assert_eq!(replicas[0].receipt(&answer)["store"], "down");
    let ready = replicas[0].get("/readyz");
    assert_eq!((ready.status, ready.text().as_str()), (200, "ready\nstore: down\n"));
    // A request in the outage is answered; its provider is not asked for nothing.
    let other = replicas[1].post(CHAT, &question("sim/kimi", "hi"));
    assert_eq!(other.status, 200, "{}", other.text());
    cluster.server.start_again();
    wait_until_written(&replicas[0]);
    is_restored_by(&replicas[1], &upstream, "restarted");
}

#[test]
fn g7_a_database_that_hangs_keeps_nobody_waiting_and_catches_up() {
    let upstream = held_upstream();
    let config = format!("{}{HASTY}", upstream.config("openai-chat", "deepseek"));
    let Some(cluster) = Cluster::start("replicas-hang", &config) else { return };
    let replicas = [cluster.replica(0), cluster.replica(1)];
    assert_eq!(replicas[0].post(CHAT, &question("sim/kimi", "hi")).status, 200);
    cluster.server.freeze();
    let mut stream = replicas[0].open("POST", CHAT, &[], question("up/m", "hung").as_bytes());
    stream.read_until("call_00_x8Bq2LmVf3kZ");
    upstream.release();
    // All of this is answered although the database still hangs.
    let answer = stream.rest();
    assert!(answer.is_whole && answer.text().ends_with("data: [DONE]\n\n"), "{}", answer.text());
    let store = replicas[0].receipt(&answer)["store"].clone();
    assert!(store == "late" || store == "down", "{store}");
    let lost = replicas[0].post(CHAT, &follow_up("up/m", "something else"));
    assert_ne!(lost.status, 0, "answered, be it with the provider's error");
    cluster.server.thaw();
    wait_until_written(&replicas[0]);
    is_restored_by(&replicas[1], &upstream, "hung");
}

#[test]
fn g7_a_database_that_is_slow_or_full_delays_only_the_write() {
    let upstream = held_upstream();
    let config = format!("{}{HASTY}", upstream.config("openai-chat", "deepseek"));
    let Some(cluster) = Cluster::start("replicas-full", &config) else { return };
    let replicas = [cluster.replica(0), cluster.replica(1)];
    assert_eq!(replicas[0].post(CHAT, &question("sim/kimi", "hi")).status, 200);
    #[rustfmt::skip]
    let cases = [
        ("disk_full", "RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; RETURN NEW;", "down"),
        ("slow_disk", "PERFORM pg_sleep(1); RETURN NEW;", "late"),
    ];
    for (name, work, expected) in cases {
        cluster.sql(&format!("CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {work} END $$"));
        cluster.sql(&format!("CREATE TRIGGER {name} BEFORE INSERT ON reply FOR EACH ROW EXECUTE FUNCTION {name}()"));
        upstream.release();
        let answer = replicas[0].post(CHAT, &question("up/m", name));
        assert!(answer.is_whole && answer.text().ends_with("data: [DONE]\n\n"), "{name}: {}", answer.text());
        let store = replicas[0].receipt(&answer)["store"].clone();
        // A busy machine may miss the deadline before the database says that it is full.
        assert!(store == expected || store == "late", "{name}: {store}");
        cluster.sql(&format!("DROP TRIGGER {name} ON reply"));
        wait_until_written(&replicas[0]);
        is_restored_by(&replicas[1], &upstream, name);
    }
}

#[test]
fn g7_a_rolling_restart_loses_no_stream() {
    let upstream = held_upstream();
    let config = format!("{}{PATIENT}", upstream.config("openai-chat", "deepseek"));
    let Some(cluster) = Cluster::start("replicas-rolling", &config) else { return };
    let mut replicas = [cluster.replica(0), cluster.replica(1)];
    for at in 0..2 {
        let words = format!("rolling {at}");
        let mut stream = replicas[at].open("POST", CHAT, &[], question("up/m", &words).as_bytes());
        stream.read_until("call_00_x8Bq2LmVf3kZ");
        replicas[at].terminate();
        // The other replica serves while this one lets its stream end.
        let other = replicas[1 - at].post(CHAT, &question("sim/kimi", "hi"));
        assert_eq!(other.status, 200, "{}", other.text());
        upstream.release();
        let answer: HttpAnswer = stream.rest();
        assert!(answer.is_whole && answer.text().ends_with("data: [DONE]\n\n"), "{}", answer.text());
        assert!(replicas[at].wait().success());
        replicas[at] = cluster.replica(at);
        is_restored_by(&replicas[at], &upstream, &words);
    }
}

#[test]
fn g7_what_could_not_be_stored_is_stored_by_the_next_process() {
    let upstream = Upstream::start(|_| thinking_reply(false));
    let config = format!("{}{PATIENT}", upstream.config("openai-chat", "deepseek"));
    let Some(cluster) = Cluster::start("replicas-spill", &config) else { return };
    let replica = cluster.replica(0);
    assert_eq!(replica.post(CHAT, &question("sim/kimi", "hi")).status, 200);
    cluster.server.stop();
    let answer = replica.post(CHAT, &question("up/m", "spilled"));
    assert_eq!(replica.receipt(&answer)["store"], "down");
    replica.kill();
    cluster.server.start_again();
    let replica = cluster.replica(0);
    wait_until_written(&replica);
    is_restored_by(&cluster.replica(1), &upstream, "spilled");
}

#[test]
fn g7_a_shared_store_needs_its_key_and_a_database() {
    let config = TestConfig::new("replicas-refused");
    let refused = config.refused("serve --listen 0 --store postgres://someone@127.0.0.1:1/none");
    assert!(refused.contains("ASIDE_STORE_KEY"), "{refused}");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_aside"));
    command.args(["serve", "--listen", "0", "--store", "postgres://someone:secret@127.0.0.1:1/none"]);
    let unreachable = crate::support::run(command.env("ASIDE_STORE_KEY", STORE_KEY), b"", Some(&config));
    assert_eq!(unreachable.code, 2, "{}", unreachable.stderr);
    let expected = "cannot open the memory store postgres://127.0.0.1/none";
    assert!(unreachable.stderr.contains(expected), "{}", unreachable.stderr);
    assert!(!unreachable.stderr.contains("secret"), "{}", unreachable.stderr);
}
