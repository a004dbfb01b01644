//! P1: a process that is killed at any moment. The test runs itself again as
//! the process that dies.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aside_core::block::{Block, Time};
use aside_core::event::{BlockId, Event, Opening, Sink};
use aside_store::session::{NewReply, Parent, Window};
use aside_store::{Recorder, SessionId, SqliteStore, Store, StoreError};

use crate::support::{Folder, new_session, user};

const VICTIM: &str = "ASIDE_STORE_TEST_VICTIM";

/// What the victim says with its deltas, so that what is there can be counted.
fn delta(number: usize) -> String {
    format!("{number} ")
}

/// Records deltas and tells on stdout how many it has handed in, until killed.
fn record(folder: &Path) {
    let store = Arc::new(SqliteStore::open(folder).unwrap());
    let id = store.create(&new_session()).unwrap();
    let lease = store.lease(&id).unwrap();
    store.append(&lease, Parent::Head, &user("q")).unwrap();
    let shared: Arc<dyn Store> = store;
    let reply = NewReply { parent: Parent::Head, origin: None, at: Some(Time(1)) };
    let mut recorder = Recorder::begin(shared, &lease, &reply).unwrap();
    println!("session {id}");
    let thinking = Opening::Thinking { source: "t", id: None };
    let mut number = 0;
    for block in 0.. {
        let opening = if block % 2 == 0 { thinking } else { Opening::Text };
        recorder.take(Event::Opened { block: BlockId(block), opening });
        // Longer than a second, so that not only the end of a block saves it.
        for _ in 0..700 {
            recorder.take(Event::Grew { block: BlockId(block), text: &delta(number) });
            number += 1;
            println!("handed {number}");
            std::thread::sleep(Duration::from_millis(2));
        }
        recorder.take(Event::Closed { block: BlockId(block) });
    }
}

/// Not a test of its own: the other side of the tests below.
#[test]
fn victim() {
    if let Some(folder) = std::env::var_os(VICTIM) {
        record(Path::new(&folder));
    }
}

struct Victim {
    child: Child,
    session: SessionId,
    /// How many deltas were handed in, and when we heard of it.
    heard: Vec<(Instant, usize)>,
}

/// Starts a process, lets it record for a while, and kills it.
fn kill_after(folder: &Path, delay: Duration) -> Victim {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["kill::victim", "--exact", "--nocapture", "--test-threads=1"])
        .env(VICTIM, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut session, mut heard, mut until) = (None, Vec::new(), None);
    for line in lines.map_while(Result::ok) {
        // The harness may have begun the line.
        if let Some((_, id)) = line.split_once("session ") {
            session = Some(SessionId::new(id.trim()));
            until = Some(Instant::now() + delay);
        }
        if let Some(number) = line.strip_prefix("handed ").and_then(|number| number.trim().parse().ok()) {
            heard.push((Instant::now(), number));
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            child.kill().unwrap();
            break;
        }
    }
    child.wait().unwrap();
    Victim { child, session: session.expect("it began"), heard }
}

#[test]
fn p1_a_killed_process_loses_at_most_the_last_second() {
    let folder = Folder::new();
    let (mut seed, mut n_owed_in_all) = (20_261_115u64, 0);
    for round in 0..10 {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let delay = Duration::from_millis((seed >> 33) % 1800);
        let victim = kill_after(folder.path(), delay);
        let died = Instant::now();
        drop(victim.child);
        let store = folder.store();
        assert_eq!(store.damage().unwrap(), Vec::<String>::new(), "round {round}");
        let tail = store.tail(&victim.session, Window { from: None, most: 10 }).unwrap();
        let [prompt, reply] = tail.messages.as_slice() else { panic!("round {round}: {tail:?}") };
        assert_eq!(prompt.message, user("q"), "round {round}");
        assert!(reply.message.interrupted, "round {round}");

        let text: String = reply.message.blocks.iter().map(said).collect();
        let n_kept = text.split_whitespace().count();
        let expected: String = (0..n_kept).map(delta).collect();
        assert_eq!(text, expected, "round {round}: whatever is there is there without a gap");
        let last_second = |(when, _): &&(Instant, usize)| died.duration_since(*when) > Duration::from_secs(1);
        let n_owed = victim.heard.iter().rev().find(last_second).map_or(0, |(_, number)| *number);
        n_owed_in_all += n_owed;
        assert!(n_kept >= n_owed, "round {round}: {n_kept} of {n_owed} that were older than a second");

        // Nothing of it is left running, and the session goes on.
        let lease = store.lease(&victim.session).unwrap();
        store.append(&lease, Parent::Head, &user("go on")).unwrap();
    }
    assert!(n_owed_in_all > 0, "no process lived for more than a second");
}

fn said(block: &Block) -> String {
    match block {
        Block::Text(text) => text.text.clone(),
        Block::Thinking(thinking) => thinking.text().to_owned(),
        Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => String::new(),
    }
}

#[test]
fn p8_a_session_of_another_process_is_refused_by_name_until_it_dies() {
    let folder = Folder::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["kill::victim", "--exact", "--nocapture", "--test-threads=1"])
        .env(VICTIM, folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let id = lines.find_map(|line| line.split_once("session ").map(|(_, id)| SessionId::new(id.trim()))).unwrap();
    let store = folder.store();
    let error = store.lease(&id).unwrap_err();
    assert!(matches!(&error, StoreError::InUse { owner, .. } if *owner == child.id().to_string()), "{error}");
    assert!(matches!(store.delete(&id), Err(StoreError::InUse { .. })));
    let tail = store.tail(&id, Window { from: None, most: 10 }).unwrap();
    assert_eq!(tail.messages.len(), 2, "but it can be read");
    let other = store.create(&new_session()).unwrap();
    store.append(&store.lease(&other).unwrap(), Parent::Head, &user("another one can be written")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    drop(store.lease(&id).unwrap());
}
