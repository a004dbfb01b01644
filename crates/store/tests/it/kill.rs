//! P1: a process that is killed at any moment. The test starts itself again as
//! that process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aside_core::block::{Block, Time};
use aside_core::event::{BlockId, BlockOpening, Event, Sink};
use aside_store::session::{NewReply, PageQuery, Parent};
use aside_store::{ReplyRecorder, SessionId, SqliteStore, Store, StoreError};

use crate::support::{Folder, new_session, user};

const VICTIM: &str = "ASIDE_STORE_TEST_VICTIM";

/// The text of a delta, numbered so that stored deltas can be counted.
fn delta(number: usize) -> String {
    format!("{number} ")
}

/// Records deltas and prints how many the recorder took, until killed.
fn record(folder: &Path) {
    let store = Arc::new(SqliteStore::open(folder).unwrap());
    let id = store.create(&new_session()).unwrap();
    let lock = store.lock_session(&id).unwrap();
    store.append(&lock, Parent::Head, &user("q")).unwrap();
    let shared: Arc<dyn Store> = store;
    let reply = NewReply { parent: Parent::Head, origin: None, at: Some(Time(1)) };
    let mut recorder = ReplyRecorder::begin(shared, &lock, &reply).unwrap();
    println!("session {id}");
    let thinking = BlockOpening::Thinking { source: "t", id: None };
    let mut number = 0;
    for block in 0.. {
        let opening = if block % 2 == 0 { thinking } else { BlockOpening::Text };
        recorder.take(Event::Opened { block: BlockId(block), opening });
        // Takes more than a second, so that text is also saved inside a block.
        for _ in 0..700 {
            recorder.take(Event::Grew { block: BlockId(block), text: &delta(number) });
            number += 1;
            println!("handed {number}");
            std::thread::sleep(Duration::from_millis(2));
        }
        recorder.take(Event::Closed { block: BlockId(block) });
    }
}

/// Not a test of its own: the process that the tests below start.
#[test]
fn victim() {
    if let Some(folder) = std::env::var_os(VICTIM) {
        record(Path::new(&folder));
    }
}

struct Victim {
    child: Child,
    session: SessionId,
    /// How many deltas were recorded, and when the process printed that.
    progress: Vec<(Instant, usize)>,
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
    let (mut session, mut progress, mut until) = (None, Vec::new(), None);
    for line in lines.map_while(Result::ok) {
        // The test harness may have printed the start of the line.
        if let Some((_, id)) = line.split_once("session ") {
            session = Some(SessionId::new(id.trim()));
            until = Some(Instant::now() + delay);
        }
        if let Some(number) = line.strip_prefix("handed ").and_then(|number| number.trim().parse().ok()) {
            progress.push((Instant::now(), number));
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            child.kill().unwrap();
            break;
        }
    }
    child.wait().unwrap();
    Victim { child, session: session.expect("it began"), progress }
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
        assert_eq!(store.integrity_errors().unwrap(), Vec::<String>::new(), "round {round}");
        let page = store.page(&victim.session, PageQuery { from: None, limit: 10 }).unwrap();
        let [prompt, reply] = page.messages.as_slice() else { panic!("round {round}: {page:?}") };
        assert_eq!(prompt.message, user("q"), "round {round}");
        assert!(reply.message.interrupted, "round {round}");

        let text: String = reply.message.blocks.iter().map(block_text).collect();
        let n_kept = text.split_whitespace().count();
        let expected: String = (0..n_kept).map(delta).collect();
        assert_eq!(text, expected, "round {round}: stored text has no gaps");
        let last_second = |(when, _): &&(Instant, usize)| died.duration_since(*when) > Duration::from_secs(1);
        let n_owed = victim.progress.iter().rev().find(last_second).map_or(0, |(_, number)| *number);
        n_owed_in_all += n_owed;
        assert!(n_kept >= n_owed, "round {round}: {n_kept} of {n_owed} that were older than a second");

        // No reply is left running, and the session can continue.
        let lock = store.lock_session(&victim.session).unwrap();
        store.append(&lock, Parent::Head, &user("go on")).unwrap();
    }
    assert!(n_owed_in_all > 0, "no process lived for more than a second");
}

fn block_text(block: &Block) -> String {
    match block {
        Block::Text(text) => text.text.clone(),
        Block::Thinking(thinking) => thinking.text().to_owned(),
        Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => String::new(),
    }
}

#[test]
fn p8_a_session_of_another_process_is_refused_with_its_id_until_it_dies() {
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
    let error = store.lock_session(&id).unwrap_err();
    assert!(matches!(&error, StoreError::InUse { owner, .. } if *owner == child.id().to_string()), "{error}");
    assert!(matches!(store.delete(&id), Err(StoreError::InUse { .. })));
    let page = store.page(&id, PageQuery { from: None, limit: 10 }).unwrap();
    assert_eq!(page.messages.len(), 2, "reading is allowed");
    let other = store.create(&new_session()).unwrap();
    store.append(&store.lock_session(&other).unwrap(), Parent::Head, &user("another one can be written")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    drop(store.lock_session(&id).unwrap());
}
