//! Measures the CPU time of the store, with the size of the data.
//!
//! `cargo bench -p aside-store --bench store -- 10` uses 10 MB of text. Fails if
//! a limit is exceeded.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "a bench that fails should fail loudly"
)]

mod generate;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aside_core::block::Time;
use aside_core::conversation::Conversation;
use aside_core::event::{BlockId, BlockOpening, Event, Sink};
use aside_store::search::{HitCount, HitKind, HitOrder, SearchQuery, SearchScope};
use aside_store::session::{NewReply, PageQuery, Parent};
use aside_store::{ReplyRecorder, SessionId, SqliteStore, Store};

use crate::generate::{Generator, START, word};

const LIST_BOUND: f64 = 50.0;
const RANKED_BOUND: f64 = 50.0;
const NEWEST_BOUND: f64 = 150.0;

fn main() -> ExitCode {
    let megabytes = std::env::args().skip(1).find_map(|word| word.parse::<usize>().ok()).unwrap_or(10);
    let folder = std::env::temp_dir().join(format!("aside-store-bench-{}", std::process::id()));
    drop(std::fs::remove_dir_all(&folder));
    let mut report = BenchReport::default();
    lists(&folder.join("lists"), &mut report);
    resumes(&folder.join("resume"), &mut report);
    let (store, sessions) = corpus(&folder.join("corpus"), megabytes, &mut report);
    searches(&store, &sessions, megabytes, &mut report);
    appends(Arc::new(store), &sessions, megabytes, &mut report);
    drop(std::fs::remove_dir_all(&folder));
    if report.broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// CPU time of this thread. Wall time on a shared machine includes other processes.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanos)
}

#[derive(Default)]
struct BenchReport {
    broken: usize,
}

impl BenchReport {
    fn line(&mut self, what: &str, data: &str, ms: f64, bound: Option<f64>, note: &str) {
        let is_broken = bound.is_some_and(|bound| ms > bound);
        self.broken += usize::from(is_broken);
        let bound = bound.map_or(String::new(), |bound| format!("{bound:.0}"));
        let verdict = if is_broken { "  BROKEN" } else { "" };
        println!("{what:<44} {data:<30} {ms:>9.2} ms {bound:>5}  {note}{verdict}");
    }

    fn factor(&mut self, what: &str, data: &str, factor: f64, bound: f64) {
        let is_broken = factor > bound;
        self.broken += usize::from(is_broken);
        let verdict = if is_broken { "  BROKEN" } else { "" };
        println!("{what:<44} {data:<30} {factor:>9.2} x  {bound:>5}{verdict}");
    }
}

/// The mean of several runs in milliseconds, and the result of the last one.
fn measure<T>(n_runs: u32, mut work: impl FnMut() -> T) -> (f64, T) {
    let start = cpu();
    let mut result = work();
    for _ in 1..n_runs {
        result = work();
    }
    ((cpu() - start).as_secs_f64() * 1000.0 / f64::from(n_runs), result)
}

fn lists(folder: &Path, report: &mut BenchReport) {
    let store = SqliteStore::open(folder).unwrap();
    let mut generator = Generator::new(1);
    for number in 0..10_000 {
        store.import(&generator.session(number, 1, 300), Some(Time(START))).unwrap();
    }
    let data = "10,000 sessions";
    let (ms, n) = measure(10, || SqliteStore::open(folder).unwrap().sessions(usize::MAX).unwrap().len());
    assert_eq!(n, 10_000);
    report.line("open and list all", data, ms, Some(LIST_BOUND), "");
    let (ms, _) = measure(10, || SqliteStore::open(folder).unwrap().sessions(50).unwrap());
    report.line("open and list the last 50", data, ms, Some(LIST_BOUND), "");
    let id = store.sessions(5000).unwrap().pop().unwrap().id;
    let prefix = &id.as_str()[..6];
    let (ms, found) = measure(10, || store.find(prefix).unwrap());
    assert_eq!(found, id);
    report.line("find by the beginning of an id", data, ms, Some(LIST_BOUND), "");
}

fn resumes(folder: &Path, report: &mut BenchReport) {
    let store = SqliteStore::open(folder).unwrap();
    let mut generator = Generator::new(2);
    // 3,750 exchanges are 10,000 messages; 14 kB of thinking each are 50 MB.
    let conversation = generator.session(1, 3_750, 14_000);
    let id = store.import(&conversation, None).unwrap();
    drop(store);
    let data = format!("{} messages, {} MB", conversation.history.entries().len(), generator.n_bytes >> 20);
    let screen = PageQuery { from: None, limit: 40 };
    let (ms, n) = measure(10, || {
        let store = SqliteStore::open(folder).unwrap();
        store.session(&id).unwrap();
        store.page(&id, screen).unwrap().messages.len()
    });
    assert_eq!(n, 40);
    report.line("open and resume to the first screen", &data, ms, Some(LIST_BOUND), "the last 40 messages");
    let store = SqliteStore::open(folder).unwrap();
    let (ms, loaded) = measure(2, || store.load(&id).unwrap());
    assert_eq!(loaded.conversation.history.entries(), conversation.history.entries());
    report.line("load all of it", &data, ms, None, "");
}

fn corpus(folder: &Path, megabytes: usize, report: &mut BenchReport) -> (SqliteStore, Vec<SessionId>) {
    let store = SqliteStore::open(folder).unwrap();
    let mut generator = Generator::new(3);
    let mut sessions = Vec::new();
    let (mut spent, start) = (Duration::ZERO, Instant::now());
    while generator.n_bytes < megabytes << 20 {
        let conversation: Conversation = generator.session(sessions.len() as u64, 12, 4000);
        let before = cpu();
        sessions.push(store.import(&conversation, None).unwrap());
        spent += cpu() - before;
    }
    drop(store);
    let store = SqliteStore::open(folder).unwrap();
    let size = std::fs::metadata(store.path()).unwrap().len();
    let raw = generator.n_bytes as f64;
    let index = index_size(store.path());
    let data = format!("{} MB, {} sessions", generator.n_bytes >> 20, sessions.len());
    let per_mb = spent.as_secs_f64() * 1000.0 / (raw / 1048576.0);
    let note = format!("{:.0} s in all", start.elapsed().as_secs_f64());
    report.line("store and index 1 MB of text", &data, per_mb, None, &note);
    report.factor("file without index against text", &data, (size as f64 - index) / raw, 1.1);
    report.factor("file with index against text", &data, size as f64 / raw, 3.0);
    (store, sessions)
}

fn index_size(path: &Path) -> f64 {
    let db = rusqlite::Connection::open(path).unwrap();
    let sql = "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'word%' AND aggregate = 1";
    db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() as f64
}

fn searches(store: &SqliteStore, sessions: &[SessionId], megabytes: usize, report: &mut BenchReport) {
    let all = |text: &str| SearchQuery::new(text);
    let only = |text: &str, kind| SearchQuery { scope: SearchScope::Only(kind), ..SearchQuery::new(text) };
    let middle = sessions[sessions.len() / 2].clone();
    let last_day = START + (sessions.len() as u64).saturating_sub(8) * 86_400_000 / 8;
    let (seldom, often) = (word(20_000), word(300));
    let snake = format!("{}_{}", word(40), word(60));
    let camel = "parseQuirkyHeader";
    #[rustfmt::skip]
    let queries: Vec<(&str, SearchQuery)> = vec![
        ("nothing",                    all("doesnotoccuranywhere")),
        ("rarest word",                all("rarestneedle")),
        ("uncommon word",              all("uncommonneedle")),
        ("seldom word",                all(&seldom)),
        ("often word",                 all(&often)),
        ("two uncommon words",         all(&format!("uncommonneedle {seldom}"))),
        ("rare and common word",       all("the rarestneedle")),
        ("uncommon and common words",  all("the of uncommonneedle")),
        ("rare phrase",                all("\"rarestneedle parseQuirkyHeader\"")),
        ("phrase of common words",     all("\"the of and\"")),
        ("identifier",                 all(camel)),
        ("piece of an identifier",     all("quirky")),
        ("another case",               all("parse_quirky_header")),
        ("frequent identifier",        all(&snake)),
        ("han phrase",                 all("珈琲豆腐")),
        ("one han letter",             all("珈")),
        ("common word",                all("the")),
        ("two common words",           all("the that")),
        ("common word in thinking",    only("the", HitKind::Thinking)),
        ("common word in one session", SearchQuery { session: Some(middle.clone()), ..all("the") }),
        ("rare word of one model",     SearchQuery { model: Some("model-3".to_owned()), ..all("rarestneedle") }),
        ("common word, last day",      SearchQuery { since: Some(Time(last_day)), ..all("the") }),
    ];
    let data = format!("{megabytes} MB");
    for (name, query) in queries {
        let (first, _) = measure(1, || store.search(&query).unwrap());
        let (ms, found) = measure(5, || store.search(&query).unwrap());
        let (count, bound) = match (found.count, found.order) {
            (HitCount::Exactly(n), HitOrder::BestFirst) => (format!("{n} hits, best first"), RANKED_BOUND),
            (HitCount::AtLeast(n), _) => (format!("at least {n} hits, newest first"), NEWEST_BOUND),
            (HitCount::Exactly(n), HitOrder::NewestFirst) => (format!("{n} hits, newest first"), NEWEST_BOUND),
        };
        report.line(&format!("search: {name}"), &data, ms, Some(bound), &format!("first {first:.1} ms, {count}"));
    }
}

/// Appends deltas while another thread searches without a pause.
fn appends(store: Arc<SqliteStore>, sessions: &[SessionId], megabytes: usize, report: &mut BenchReport) {
    let stop = Arc::new(AtomicBool::new(false));
    let searcher = {
        let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                store.search(&SearchQuery::new("the that")).unwrap();
            }
        })
    };
    let lock = store.lock_session(&sessions[0]).unwrap();
    let shared: Arc<dyn Store> = store.clone();
    let reply = NewReply { parent: Parent::Head, origin: None, at: Some(Time(START)) };
    let mut recorder = ReplyRecorder::begin(shared, &lock, &reply).unwrap();
    recorder.take(Event::Opened { block: BlockId(0), opening: BlockOpening::Text });
    let data = format!("{megabytes} MB");
    let (ms, ()) = measure(1, || {
        for _ in 0..100_000 {
            recorder.take(Event::Grew { block: BlockId(0), text: "delta of a " });
        }
    });
    report.line("record 1,000 deltas during a search", &data, ms / 100.0, None, "");
    recorder.flush().unwrap();
    let mut batch = aside_store::EventBatch::default();
    batch.push(Event::Grew { block: BlockId(0), text: &"delta of a ".repeat(200) }, None);
    let mut slowest = Duration::ZERO;
    let (ms, ()) = measure(200, || {
        let start = Instant::now();
        store.extend(recorder.id(), &batch).unwrap();
        slowest = slowest.max(start.elapsed());
    });
    let note = format!("slowest {:.1} ms by the clock", slowest.as_secs_f64() * 1000.0);
    report.line("append one batch of deltas during a search", &data, ms, None, &note);
    stop.store(true, Ordering::Relaxed);
    searcher.join().unwrap();
}
