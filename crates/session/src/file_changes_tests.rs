//! Random edits, undo, redo and crashes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use aside_core::block::{Arguments, CallId, ToolCall};
use aside_engine::tools::{NobodyToAsk, PermissionMode, PermissionRules, Permissions, Toolbox, WorkingDir};
use aside_store::Store;
use aside_store::session::NewSession;
use tokio_util::sync::CancellationToken;

use super::*;

/// A folder whose files tools change, and a store in a file beside it.
struct TestProject {
    root: PathBuf,
    store: Arc<SqliteStore>,
    session: SessionId,
    recorder: Arc<ChangeRecorder>,
    turn: u64,
}

/// The content and permission bits of all files.
type Snapshot = BTreeMap<String, (Vec<u8>, u32)>;

impl TestProject {
    fn new(name: &str) -> TestProject {
        let root = std::env::temp_dir().join(format!("aside-changes-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&root));
        fs::create_dir_all(root.join("files/below")).unwrap();
        let root = fs::canonicalize(root).unwrap();
        let store = Arc::new(SqliteStore::open(&root.join("data")).unwrap());
        let session = store.create(&NewSession::default()).unwrap();
        TestProject { root, store, session, recorder: Arc::default(), turn: 0 }
    }

    fn work(&self) -> WorkingDir {
        WorkingDir::open(&self.root.join("files")).unwrap().with_change_observer(Arc::clone(&self.recorder) as Arc<_>)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join("files").join(name)
    }

    fn begin_turn(&mut self) {
        self.turn += 1;
        self.store.forget_undone(&self.session).unwrap();
        self.recorder.begin_turn(&self.store, &self.session, Time(self.turn));
    }

    /// Runs the tool `write` as a turn would.
    fn write(&self, name: &str, content: &str) {
        let permissions = Permissions::new(PermissionRules::new(), PermissionMode::AllowAll);
        let tools = Toolbox::standard(&self.work(), permissions);
        let arguments = serde_json::json!({"path": name, "content": content}).to_string();
        let call = ToolCall::new(CallId::Given("c".to_owned()), "write", Arguments::parse(arguments));
        let runtime = crate::start::runtime().unwrap();
        let result = runtime.block_on(tools.run(&call, &NobodyToAsk, &CancellationToken::new()));
        assert!(!result.is_error, "{}", result.content);
    }

    fn snapshot(&self) -> Snapshot {
        let mut files = Snapshot::new();
        for folder in ["", "below/"] {
            for entry in fs::read_dir(self.path(folder)).unwrap().map(Result::unwrap) {
                let metadata = entry.metadata().unwrap();
                if metadata.is_file() {
                    let name = format!("{folder}{}", entry.file_name().to_string_lossy());
                    let mode = metadata.permissions().mode() & 0o7777;
                    files.insert(name, (fs::read(entry.path()).unwrap(), mode));
                }
            }
        }
        files
    }

    /// Undoes the newest turn that is not undone. With `crash`, the program is killed after one file.
    fn undo(&self, changed_since: ChangedSince, crash: bool) -> Vec<String> {
        let changes = self.store.file_changes(&self.session).unwrap();
        let newest = changes.iter().rev().find(|change| change.undone_by.is_none()).map(|change| change.turn);
        let Some(turn) = newest else { return Vec::new() };
        let restorer = FileRestorer::new(self.work());
        let files = ChangedFiles { store: &self.store, restorer: &restorer };
        let mut plans = files.plan(&changes_since(changes, turn), Direction::Undo).unwrap();
        if crash {
            plans.truncate(1);
        }
        let (done, mut lines) = files.restore(&plans, Direction::Undo, changed_since).unwrap();
        lines.extend(files.remove_created_folders(&plans, &self.recorder));
        if !crash {
            self.store.record_undo(&self.session, None, &done).unwrap();
        }
        lines
    }

    fn redo(&self) -> Option<Vec<String>> {
        let step = self.store.last_undo(&self.session).unwrap()?;
        let changes = self.store.file_changes(&self.session).unwrap();
        let changes: Vec<FileChange> = changes.into_iter().filter(|change| change.undone_by == Some(step.id)).collect();
        let restorer = FileRestorer::new(self.work());
        let files = ChangedFiles { store: &self.store, restorer: &restorer };
        let plans = files.plan(&changes, Direction::Redo).unwrap();
        let (_, lines) = files.restore(&plans, Direction::Redo, ChangedSince::Skip).unwrap();
        self.store.record_redo(step.id).unwrap();
        Some(lines)
    }

    /// Reopens the store, as after a crash.
    fn reopen(&mut self) {
        self.recorder = Arc::default();
        let data = self.root.join("data");
        self.store = Arc::new(SqliteStore::open(&data).unwrap());
        self.recorder.begin_turn(&self.store, &self.session, Time(self.turn));
    }
}

impl Drop for TestProject {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.root));
    }
}

/// A small generator: the same numbers on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[test]
fn t21_undo_removes_the_folders_that_a_write_created_unless_something_is_in_them() {
    let mut project = TestProject::new("folders");
    fs::create_dir(project.path("empty")).unwrap();
    project.begin_turn();
    project.write("new/deep/a.txt", "a");
    project.write("new/deep/b.txt", "b");
    project.write("empty/c.txt", "c");
    let files = ["new/deep/a.txt: removed", "new/deep/b.txt: removed", "empty/c.txt: removed"];
    let folders = ["new/deep/: removed", "new/: removed"];
    assert_eq!(project.undo(ChangedSince::Skip, false), [&files[..], &folders[..]].concat());
    assert!(!project.path("new").exists() && project.path("empty").exists(), "the other folder was there before");
    project.redo().unwrap();
    assert!(project.path("new/deep/b.txt").exists());
    fs::write(project.path("new/mine.txt"), "mine").unwrap();
    assert_eq!(project.undo(ChangedSince::Skip, false), [&files[..], &folders[..1]].concat());
    assert!(project.path("new/mine.txt").exists());
}

#[test]
fn t21_random_edits_undo_redo_and_crashes_restore_every_byte_and_mode() {
    let names = ["a.txt", "b.sh", "below/c.txt", "below/d.txt"];
    for seed in 0..12 {
        let mut random = Random(seed);
        let mut project = TestProject::new(&format!("random-{seed}"));
        fs::write(project.path("b.sh"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(project.path("b.sh"), fs::Permissions::from_mode(0o750)).unwrap();
        fs::write(project.path("a.txt"), [0xff, 0x00, 0x80]).unwrap();
        // The state before each turn that is not undone, and the states that redo leads to.
        let mut before: Vec<Snapshot> = Vec::new();
        let mut undone: Vec<Snapshot> = Vec::new();
        for step in 0..30 {
            let context = || format!("seed {seed}, step {step}");
            match random.below(6) {
                0..=2 => {
                    let start = project.snapshot();
                    project.begin_turn();
                    undone.clear();
                    for _ in 0..=random.below(3) {
                        let name = names[random.below(4) as usize];
                        project.write(name, &format!("{name} {}\n", random.below(1000)).repeat(1 + step));
                    }
                    // Killed between the record and the change: the change is recorded but not made.
                    if random.below(4) == 0 {
                        let restorer = FileRestorer::new(project.work());
                        let now = restorer.read(project.path("a.txt").to_str().unwrap()).unwrap();
                        let before = match &now {
                            Some(now) => PriorFile::File { content: (&*now.content).into(), mode: now.mode.unwrap() },
                            None => PriorFile::Missing,
                        };
                        let path = project.path("a.txt");
                        let change = tools::FileChange { path: &path, name: "a.txt", before, after: b"never written" };
                        project.recorder.before_change(&change);
                        project.reopen();
                    }
                    before.push(start);
                }
                3 | 4 => {
                    let now = project.snapshot();
                    if random.below(3) == 0 {
                        project.undo(ChangedSince::Skip, true);
                        project.reopen();
                    }
                    let lines = project.undo(ChangedSince::Skip, false);
                    let Some(expected) = before.pop() else { continue };
                    assert_eq!(project.snapshot(), expected, "{}: {lines:?}", context());
                    undone.push(now);
                }
                _ => {
                    let start = project.snapshot();
                    let is_done = project.redo().is_some();
                    assert_eq!(is_done, !undone.is_empty(), "{}", context());
                    if let Some(expected) = undone.pop() {
                        let mut expected = expected;
                        // A change that was recorded and never made is made by redo.
                        let redone = project.snapshot();
                        if redone.get("a.txt").is_some_and(|(content, _)| content == b"never written") {
                            expected.insert("a.txt".to_owned(), redone["a.txt"].clone());
                        }
                        assert_eq!(redone, expected, "{}", context());
                        before.push(start);
                    }
                }
            }
        }
    }
}

#[test]
fn t21_a_file_that_changed_since_is_skipped_and_named_unless_forced() {
    let mut project = TestProject::new("since");
    fs::write(project.path("a.txt"), "one\n").unwrap();
    project.begin_turn();
    project.write("a.txt", "two\n");
    project.write("new.txt", "new\n");
    fs::write(project.path("a.txt"), "mine\n").unwrap();
    let lines = project.undo(ChangedSince::Skip, true);
    assert_eq!(lines, ["a.txt: changed since, so it stays (/undo files force puts it back anyway)"]);
    let lines = project.undo(ChangedSince::Overwrite, false);
    assert_eq!(lines, ["a.txt: back as it was", "new.txt: removed"]);
    assert_eq!(fs::read(project.path("a.txt")).unwrap(), b"one\n");
    assert!(!project.path("new.txt").exists());
}

#[test]
fn t21_a_redo_that_skips_a_file_does_not_offer_to_undo_it() {
    let mut project = TestProject::new("redo-since");
    fs::write(project.path("a.txt"), "one\n").unwrap();
    project.begin_turn();
    project.write("a.txt", "two\n");
    project.undo(ChangedSince::Skip, false);
    fs::write(project.path("a.txt"), "mine\n").unwrap();
    assert_eq!(project.redo().unwrap(), ["a.txt: changed since, so it stays"]);
}

#[test]
fn t21_a_file_that_is_too_large_to_be_kept_is_named() {
    let mut project = TestProject::new("large");
    fs::File::create(project.path("big.txt")).unwrap().set_len(17 << 20).unwrap();
    project.begin_turn();
    project.write("big.txt", "small\n");
    let unkept = project.store.unkept_changes(&project.session).unwrap();
    assert_eq!(
        unkept.iter().map(|change| (change.turn, change.why)).collect::<Vec<_>>(),
        [(Time(1), WhyUnkept::TooLarge)]
    );
    let lines = unkept_lines(&unkept, &FileRestorer::new(project.work()));
    assert_eq!(lines, ["big.txt: too large to be kept, stays as it is"]);
    assert!(project.store.file_changes(&project.session).unwrap().is_empty());
    // Its next content is small enough.
    project.begin_turn();
    project.write("big.txt", "other\n");
    assert_eq!(project.undo(ChangedSince::Skip, false), ["big.txt: back as it was"]);
}

#[test]
fn t21_nothing_is_restored_through_a_link_that_was_put_there_since() {
    let mut project = TestProject::new("link");
    fs::write(project.path("below/a.txt"), "one\n").unwrap();
    project.begin_turn();
    project.write("below/a.txt", "two\n");
    let elsewhere = project.root.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("a.txt"), "two\n").unwrap();
    fs::remove_dir_all(project.path("below")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, project.path("below")).unwrap();
    let lines = project.undo(ChangedSince::Overwrite, false);
    assert_eq!(lines, ["below/a.txt: stays, because `below/a.txt` leads elsewhere now"]);
    assert_eq!(fs::read(elsewhere.join("a.txt")).unwrap(), b"two\n");
    fs::remove_file(project.path("below")).unwrap();
    fs::create_dir(project.path("below")).unwrap();
}

#[test]
fn t21_the_oldest_changes_go_when_there_is_no_more_room_and_are_named() {
    let mut project = TestProject::new("room");
    project.begin_turn();
    // These bytes cannot be compressed.
    let mut random = Random(7);
    let mut noise = |n: usize| (0..n).map(|_| random.below(256) as u8).collect::<Vec<u8>>();
    let mut record = |path: &str, n: usize| {
        let content = noise(n);
        let after = Some(FileVersion { content: &content, mode: None });
        let change = NewFileChange { turn: Time(1), path, before: None, after };
        project.store.record_file_change(&project.session, &change, 10_000).unwrap()
    };
    assert_eq!(record("/a", 4_000), ChangeKept::Kept { dropped: vec![] });
    assert_eq!(record("/b", 4_000), ChangeKept::Kept { dropped: vec![] });
    assert_eq!(record("/c", 8_000), ChangeKept::Kept { dropped: vec!["/a".to_owned(), "/b".to_owned()] });
    assert_eq!(record("/d", 20_000), ChangeKept::TooLarge);
    let left = project.store.file_changes(&project.session).unwrap();
    assert!(left.len() == 1 && left[0].path == "/c", "{left:?}");
    let unkept = project.store.unkept_changes(&project.session).unwrap();
    let unkept: Vec<_> = unkept.iter().map(|change| (change.path.as_str(), change.why)).collect();
    assert_eq!(unkept, [("/a", WhyUnkept::NoRoom), ("/b", WhyUnkept::NoRoom), ("/d", WhyUnkept::TooLarge)]);
    assert_eq!(
        dropped_notice(&["/p/a".to_owned(), "/p/a".to_owned(), "/q".to_owned()], "/p/"),
        "the oldest changes of a, /q cannot be undone any more; 64 MiB are kept"
    );
}
