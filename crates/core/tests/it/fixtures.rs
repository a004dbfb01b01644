//! Our own fixtures: one folder per exchange, with raw bytes and the expected result.
//! `UPDATE_EXPECT=1` rewrites the goldens; read them before you commit them.

use std::fs;
use std::path::{Path, PathBuf};

use aside_core::block::Reply;
use aside_core::dialect::{Dialects, Rules};
use aside_core::event::{Ending, Event, NoteCode, Sink};
use aside_core::fold::Fold;
use aside_core::json::{self, JsonLayout};
use aside_core::protocol::Protocol;
use aside_core::wire::Decoder;
use expect_test::expect_file;
use serde::Deserialize;

use crate::support::{decode, events};

pub(crate) struct Fixture {
    /// `<dialect>/<case>`
    pub(crate) name: String,
    folder: PathBuf,
    pub(crate) protocol: Protocol,
    pub(crate) rules: Rules,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FixtureInfo {
    protocol: String,
    model: String,
    /// One sentence: why the case exists.
    why: String,
}

/// All fixtures. Fails for a folder without about.toml or without exactly one response.
pub(crate) fn fixtures() -> Vec<Fixture> {
    let dialects = Dialects::builtin().expect("the built-in dialects are valid");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let cases = folders(&root).into_iter().flat_map(|dialect| folders(&dialect));
    let fixtures: Vec<Fixture> = cases.map(|case| Fixture::read(case, &dialects)).collect();
    assert!(!fixtures.is_empty(), "no fixture was found in {}", root.display());
    fixtures
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    let mut folders = children(parent);
    folders.retain(|path| path.is_dir());
    folders
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// The one response of a case, in any framing.
fn response(case: &Path) -> PathBuf {
    const KINDS: [&str; 4] = ["response.sse", "response.json", "response.ndjson", "response.eventstream"];
    let mut found = children(case);
    found.retain(|path| KINDS.contains(&file_name(path).as_str()));
    assert_eq!(found.len(), 1, "{} needs exactly one of {KINDS:?}", case.display());
    found.remove(0)
}

impl FixtureInfo {
    fn read(case: &Path) -> FixtureInfo {
        let path = case.join("about.toml");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        toml_edit::de::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

impl Fixture {
    fn read(case: PathBuf, dialects: &Dialects) -> Fixture {
        let about = FixtureInfo::read(&case);
        let id = file_name(case.parent().unwrap());
        let name = format!("{id}/{}", file_name(&case));
        let dialect = dialects.get(&id).unwrap_or_else(|| panic!("{name}: there is no dialect `{id}`"));
        assert_eq!(about.protocol, dialect.protocol.as_str(), "{name}: the protocol of its dialect");
        assert!(about.why.ends_with('.'), "{name}: `why` is a sentence");
        Fixture {
            name,
            protocol: dialect.protocol,
            rules: dialect.rules(Some(&about.model)).clone(),
            bytes: fs::read(response(&case)).unwrap(),
            folder: case.canonicalize().unwrap(),
        }
    }

    pub(crate) fn reply(&self) -> Reply {
        let (reply, outcome) = decode(self.protocol, &self.rules, &self.bytes, usize::MAX);
        assert_eq!(outcome, Ok(()), "{}", self.name);
        reply
    }

    fn golden(&self, file: &str, actual: &str) {
        expect_file![self.folder.join(file)].assert_eq(actual);
    }
}

/// Events as `aside decode --events` prints them.
#[derive(Default)]
struct EventPrinter {
    fold: Fold,
    lines: String,
}

impl Sink for EventPrinter {
    fn take(&mut self, event: Event<'_>) {
        // A line may quote the block, so the fold takes the event first.
        self.fold.take(event);
        if let Some(line) = json::event(&event, &self.fold) {
            self.lines.push_str(&line);
            self.lines.push('\n');
        }
    }
}

#[test]
fn the_events_are_the_golden_events() {
    for fixture in fixtures() {
        let mut printer = EventPrinter::default();
        let mut decoder = Decoder::new(fixture.protocol, &fixture.rules);
        decoder.push(&fixture.bytes, &mut printer);
        assert_eq!(decoder.finish(&mut printer), Ok(()), "{}", fixture.name);
        fixture.golden("events.txt", &printer.lines);
    }
}

#[test]
fn the_blocks_are_the_golden_blocks() {
    for fixture in fixtures() {
        let blocks = json::reply(&fixture.reply(), None, None, JsonLayout::Indented);
        fixture.golden("blocks.txt", &format!("{blocks}\n"));
    }
}

#[test]
fn d17_any_chunking_of_a_fixture_gives_the_same_events() {
    for Fixture { name, protocol, rules, bytes, .. } in fixtures() {
        let whole = events(protocol, &rules, [bytes.as_slice()]);
        for size in [1, 7, 64] {
            assert_eq!(events(protocol, &rules, bytes.chunks(size)), whole, "{name} in chunks of {size}");
        }
    }
}

#[test]
fn d16_a_fixture_cut_at_any_byte_is_reported_unless_the_reply_is_complete() {
    let fixtures = fixtures();
    // Decoding every prefix takes most of the time of this file.
    std::thread::scope(|scope| {
        for fixture in &fixtures {
            scope.spawn(|| cut_at_every_byte(fixture));
        }
    });
}

fn cut_at_every_byte(fixture: &Fixture) {
    let whole = fixture.reply();
    for end in 0..fixture.bytes.len() {
        let (reply, outcome) = decode(fixture.protocol, &fixture.rules, &fixture.bytes[..end], usize::MAX);
        let said = outcome.is_err() || reply.end.error.is_some() || is_cut_off(&reply);
        // What follows the finish word, such as usage or an end mark, may be missing.
        let complete = reply.end == whole.end && reply.blocks == whole.blocks;
        assert!(said || complete, "{} cut after {end} bytes passes for whole: {reply:#?}", fixture.name);
    }
}

fn is_cut_off(reply: &Reply) -> bool {
    reply.end.ending == Ending::CutOff && reply.notes.iter().any(|note| note.code == NoteCode::CutOff)
}

#[test]
fn every_folder_has_its_goldens() {
    // The run that writes the goldens need not find them.
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        return;
    }
    for fixture in fixtures() {
        for golden in ["events.txt", "blocks.txt"] {
            assert!(fixture.folder.join(golden).is_file(), "{} lacks {golden}", fixture.name);
        }
    }
}

#[test]
fn every_protocol_has_a_fixture() {
    let fixtures = fixtures();
    for protocol in Protocol::ALL {
        assert!(fixtures.iter().any(|fixture| fixture.protocol == protocol), "no fixture speaks {protocol}");
    }
}
