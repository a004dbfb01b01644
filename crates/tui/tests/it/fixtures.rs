//! Recorded exchanges of every protocol on the screen, from bytes to frames, by the path of a real
//! session.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aside_core::dialect::Dialects;
use aside_core::event::{Event, Sink};
use aside_core::fold::Fold;
use aside_core::message::Message;
use aside_core::settings::ThinkingDisplay;
use aside_core::turn::TurnEnd;
use aside_core::wire::Decoder;
use aside_front::Update;
use expect_test::expect_file;

use crate::support::TestTerminal;

struct UpdateSink {
    fold: Fold,
    updates: Vec<Update>,
}

impl Sink for UpdateSink {
    fn take(&mut self, event: Event<'_>) {
        self.fold.take(event);
        self.updates.extend(Update::of(event, &self.fold));
    }
}

struct ScreenFixture {
    name: String,
    updates: Vec<Update>,
    message: Message,
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_dir());
    paths.sort();
    paths
}

fn fixtures() -> Vec<ScreenFixture> {
    let dialects = Dialects::builtin().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let cases = folders(&root).into_iter().flat_map(|dialect| folders(&dialect));
    cases.map(|case| fixture(&case, &dialects)).collect()
}

fn fixture(case: &Path, dialects: &Dialects) -> ScreenFixture {
    let file_name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let id = file_name(case.parent().unwrap());
    let about: toml_edit::DocumentMut = fs::read_to_string(case.join("about.toml")).unwrap().parse().unwrap();
    let response = fs::read_dir(case).unwrap().map(|entry| entry.unwrap().path());
    let mut response = response.filter(|path| file_name(path).starts_with("response."));
    let bytes = fs::read(response.next().unwrap()).unwrap();
    let dialect = dialects.get(&id).unwrap();
    let mut screen = UpdateSink { fold: Fold::new(), updates: Vec::new() };
    let mut decoder = Decoder::new(dialect.protocol, dialect.rules(about["model"].as_str()));
    decoder.push(&bytes, &mut screen);
    decoder.finish(&mut screen).unwrap();
    let message = Message::from_reply(screen.fold.finish(), None);
    ScreenFixture { name: format!("{id}/{}", file_name(case)), updates: screen.updates, message }
}

fn live(fixture: &ScreenFixture, width: u16, view: ThinkingDisplay) -> TestTerminal {
    let mut term = TestTerminal::with_view(width, 80, view);
    term.send();
    for update in &fixture.updates {
        // Drawing in between must not change the last frame.
        term.update(update.clone());
        term.buffer();
    }
    term
}

/// Notices are not stored; everything else is restored.
fn without_notices(rows: Vec<String>) -> Vec<String> {
    let is_notice = |row: &String| row.starts_with("· ") || row.starts_with("! ") || row.starts_with("✗ ");
    rows.into_iter().filter(|row| !is_notice(row) && !row.starts_with("  ")).collect()
}

#[test]
fn every_exchange_looks_the_same_live_and_restored() {
    let fixtures = fixtures();
    assert!(fixtures.len() > 20);
    for fixture in &fixtures {
        for (width, view) in [(40, ThinkingDisplay::Full), (80, ThinkingDisplay::Live), (200, ThinkingDisplay::Full)] {
            let mut restored = TestTerminal::with_view(width, 80, view);
            restored.update(Update::Restored(vec![Arc::new(fixture.message.clone())]));
            let mut live = live(fixture, width, view);
            live.update(Update::TurnEnded(TurnEnd::Answered));
            let (live, restored) = (without_notices(live.transcript()), without_notices(restored.transcript()));
            assert_eq!(live, restored, "{} at {width}", fixture.name);
        }
    }
}

#[test]
fn every_exchange_as_a_golden_frame() {
    let mut out = String::new();
    for fixture in fixtures() {
        let mut term = live(&fixture, 80, ThinkingDisplay::Full);
        out.push_str(&format!("== {}\n{}\n\n", fixture.name, term.transcript().join("\n")));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens/fixtures-80.txt").display().to_string();
    expect_file![path].assert_eq(&out);
}
