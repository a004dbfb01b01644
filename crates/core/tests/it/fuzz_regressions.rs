//! Replays the seeds and the findings of the fuzzer.

use std::fs;
use std::path::Path;

use aside_core::block::Origin;
use aside_core::conversation::Conversation;
use aside_core::interchange::{OpaqueData, ThinkingMarkup, write_lines, write_markdown};
use aside_core::message::Message;
use aside_core::settings::Settings;
use aside_core::wire::{Request, encode};

use crate::fuzz_checks::check;
use crate::support::{decode, dialects, fixture_responses, generic_rules};

const RESPONSE_TARGETS: [&str; 9] =
    ["framing", "tags", "openai_chat", "openai_responses", "anthropic", "gemini", "ollama", "bedrock", "cohere"];
const FILE_TARGETS: [&str; 5] = ["json", "requests", "judge", "conversation", "import"];

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// `fuzz/regressions/<target>-<what it broke>`
#[test]
fn findings_of_the_fuzzer_stay_fixed() {
    for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // The tests of the screen replay these.
        if name == "README.md" || name.starts_with("screen-") {
            continue;
        }
        let target = name.split('-').next().unwrap();
        assert!(RESPONSE_TARGETS.contains(&target) || FILE_TARGETS.contains(&target), "{name} names no target");
        check(target, &fs::read(&path).unwrap());
    }
}

#[test]
fn every_target_holds_on_its_seeds() {
    let responses = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures"));
    let responses: Vec<_> = responses.iter().filter(|path| path.to_string_lossy().contains("response.")).collect();
    assert!(responses.len() > 20, "only {} seeds", responses.len());
    for path in responses {
        let bytes = fs::read(path).unwrap();
        for how in [0, 6, 0xff] {
            let data = [&[how], bytes.as_slice()].concat();
            for target in RESPONSE_TARGETS {
                check(target, &data);
            }
        }
    }
}

/// Requests and conversations, whole, cut off, and with a piece repeated.
#[test]
fn every_target_for_files_holds_on_its_seeds() {
    let mut seeds = Vec::new();
    for (_, protocol, bytes) in fixture_responses() {
        let (reply, _) = decode(protocol, &generic_rules(protocol), &bytes, usize::MAX);
        let message = Message::from_reply(reply, None);
        let encoded = encode(
            &Request::new(dialects(), dialects().generic(protocol).unwrap(), "m", &Origin::default(), &Settings::new())
                .with_messages(&[&message]),
        );
        let mut conversation = Conversation::default();
        conversation.history.append(message);
        seeds.extend([(*encoded.body).clone(), write_lines(&conversation, OpaqueData::Keep)]);
        seeds.push(write_markdown(&conversation, ThinkingMarkup::Details));
    }
    assert!(seeds.len() > 60, "only {} seeds", seeds.len());
    for (how, seed) in (0..=u8::MAX).cycle().zip(&seeds) {
        let (bytes, half) = (seed.as_bytes(), seed.len() / 2);
        for seed in [bytes, &bytes[..half], &[&bytes[..half], &bytes[half / 2..]].concat()] {
            let data = [&[how], seed].concat();
            for target in FILE_TARGETS {
                check(target, &data);
            }
        }
    }
}
