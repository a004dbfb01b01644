//! Helpers of all tests: decode bytes and look at the result.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use aside_core::block::{Block, Reply};
use aside_core::dialect::{Dialects, Rules};
use aside_core::event::{Event, Sink};
use aside_core::fold::Fold;
use aside_core::protocol::Protocol;
use aside_core::wire::{Decoder, NotUnderstood, detect_protocol};

/// Cached: reading all files takes longer than most tests.
static DIALECTS: LazyLock<Dialects> = LazyLock::new(|| Dialects::builtin().expect("the built-in dialects are valid"));

pub(crate) fn dialects() -> &'static Dialects {
    &DIALECTS
}

pub(crate) fn generic_rules(protocol: Protocol) -> Rules {
    DIALECTS.generic(protocol).expect("every protocol has a generic dialect").rules(None).clone()
}

/// Decodes in chunks of a size into a reply.
pub(crate) fn decode(
    protocol: Protocol,
    rules: &Rules,
    bytes: &[u8],
    size: usize,
) -> (Reply, Result<(), NotUnderstood>) {
    let mut fold = Fold::new();
    let mut decoder = Decoder::new(protocol, rules);
    for chunk in bytes.chunks(size.max(1)) {
        decoder.push(chunk, &mut fold);
    }
    let outcome = decoder.finish(&mut fold);
    (fold.finish(), outcome)
}

/// Events as lines, with adjacent deltas of one block joined.
pub(crate) fn events<'a>(protocol: Protocol, rules: &Rules, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut lines = EventLog::default();
    let mut decoder = Decoder::new(protocol, rules);
    for chunk in chunks {
        decoder.push(chunk, &mut lines);
    }
    let outcome = decoder.finish(&mut lines);
    lines.flush();
    if let Err(error) = outcome {
        lines.lines.push(format!("not understood: {error}"));
    }
    lines.lines
}

#[derive(Default)]
struct EventLog {
    lines: Vec<String>,
    growing: Option<(u32, String)>,
}

impl EventLog {
    fn flush(&mut self) {
        if let Some((block, text)) = self.growing.take() {
            self.lines.push(format!("{block} grew {text:?}"));
        }
    }
}

impl Sink for EventLog {
    fn take(&mut self, event: Event<'_>) {
        if let Event::Grew { block, text } = event {
            match &mut self.growing {
                Some((growing, joined)) if *growing == block.0 => joined.push_str(text),
                _ => {
                    self.flush();
                    self.growing = Some((block.0, text.to_owned()));
                }
            }
            return;
        }
        self.flush();
        self.lines.push(match event {
            Event::Restated { block, part, .. } => format!("{} restated {part:?}", block.0),
            other => format!("{other:?}"),
        });
    }
}

pub(crate) fn thinking_texts(reply: &Reply) -> Vec<&str> {
    let thoughts = reply.blocks.iter().filter_map(|block| match block {
        Block::Thinking(thinking) => Some(thinking.text()),
        _ => None,
    });
    thoughts.collect()
}

pub(crate) fn text(reply: &Reply) -> String {
    let texts = reply.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Every response of our own fixtures: path, protocol and bytes.
pub(crate) fn fixture_responses() -> Vec<(String, Protocol, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().unwrap().to_string_lossy().starts_with("response.") {
                let bytes = fs::read(&path).unwrap();
                let protocol = detect_protocol(&bytes).expect("a fixture is of a known protocol");
                found.push((path.display().to_string(), protocol, bytes));
            }
        }
    }
    assert!(found.len() > 20, "only {} fixtures", found.len());
    found
}
