//! Processes that are killed while they store replies, and others that use the same database meanwhile.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use aside_core::Message;
use aside_memory::{Memory, Outcome, StoreKey, Tenant};

use super::support::*;

const FOLDER: &str = "ASIDE_TEST_KILLED_FOLDER";
const KEY: &str = "ASIDE_TEST_KILLED_KEY";

fn target() -> Target {
    Target::new("deepseek", "deepseek-v4-pro")
}

fn chat(n: u64) -> Vec<Message> {
    vec![
        user(&format!("How deep is berth {n}?")),
        // Large enough that the journal needs several files.
        assistant(vec![open_thinking(&noise(n, 40_000)), call("call_1", "depth", r#"{"berth":4}"#)]),
        result("call_1", "4 m"),
    ]
}

async fn outcome(memory: &Memory, tenant: &Arc<Tenant>, n: u64) -> Outcome {
    target().restore(memory, tenant, &all_without_thinking(&chat(n)), None).await.turns[0].outcome
}

/// The process of the tests below: stores replies until it is killed, and prints the number of each that is durable. Every
/// fifth one is deleted. Does nothing unless it is started by them.
#[tokio::test(flavor = "multi_thread")]
async fn stores_until_it_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = std::mem::ManuallyDrop::new(Folder(folder.into()));
    let key = StoreKey::parse(&std::env::var(KEY).unwrap()).unwrap();
    let memory = open(&folder, &key).await;
    let tenant = memory.tenant("local", NOW).await.unwrap();
    let target = target();
    for n in 1.. {
        let chat = chat(n);
        let restored = target.restore(&memory, &tenant, &chat[..1], None).await;
        let reply = Message { origin: Some(target.origin.clone()), ..chat[1].clone() };
        assert_eq!(memory.begin(&tenant, &restored).finish(reply, NOW).durable().await.as_str(), "ok");
        if n.is_multiple_of(5) {
            let restored = target.restore(&memory, &tenant, &all_without_thinking(&chat), None).await;
            let reply = memory.reply(&tenant, restored.turns[0].reply.unwrap()).await.unwrap().unwrap();
            memory.forget_reply(&tenant, &reply).await.unwrap();
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "durable {n}").unwrap();
        out.flush().unwrap();
    }
}

struct Storing {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Storing {
    fn start(folder: &Folder, key: &StoreKey) -> Storing {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "killed::stores_until_it_is_killed", "--nocapture"]);
        command.env(FOLDER, &folder.0).env(KEY, key.to_text()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Storing { child, lines }
    }

    /// The number of the next reply that is durable.
    fn next(&mut self) -> Option<u64> {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            if let Some(number) = line.trim_end().strip_prefix("durable ") {
                return line.ends_with('\n').then(|| number.parse().unwrap());
            }
            line.clear();
        }
        None
    }

    /// Returns how many replies it has called durable.
    fn kill(mut self) -> u64 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.next()).last().unwrap_or(0)
    }
}

impl Drop for Storing {
    fn drop(&mut self) {
        // It may already have ended.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Whether everything up to this reply is there, apart from what was deleted.
async fn check(memory: &Memory, tenant: &Arc<Tenant>, numbers: impl IntoIterator<Item = u64>, when: &str) {
    for n in numbers {
        let expected = if n.is_multiple_of(5) { Outcome::Unknown } else { Outcome::Restored };
        assert_eq!(outcome(memory, tenant, n).await, expected, "reply {n} {when}");
    }
}

#[tokio::test]
async fn g7_a_process_may_be_killed_at_any_moment_and_loses_nothing_durable() {
    for n_before in [1, 6, 130] {
        let (folder, key) = (Folder::new("killed"), StoreKey::generate());
        let mut storing = Storing::start(&folder, &key);
        let read = (0..n_before).map(|_| storing.next().unwrap()).last().unwrap();
        let n = storing.kill().max(read);
        let memory = open(&folder, &key).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        check(&memory, &tenant, 1..=n, "after a kill").await;
    }
}

#[tokio::test]
async fn g7_a_second_process_sees_what_is_durable_in_the_first() {
    for n_before in [1, 30] {
        let (folder, key) = (Folder::new("two"), StoreKey::generate());
        let mut storing = Storing::start(&folder, &key);
        let read = (0..n_before).map(|_| storing.next().unwrap()).last().unwrap();
        let memory = open(&folder, &key).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        check(&memory, &tenant, 1..=read, "when a second process has started").await;
        for _ in 0..10 {
            let n = storing.next().unwrap();
            check(&memory, &tenant, [n], "while both run").await;
        }
        let n = storing.kill();
        // All others were checked, or are as old as those.
        check(&memory, &tenant, n.saturating_sub(30).max(1)..=n, "after the first was killed").await;
    }
}
