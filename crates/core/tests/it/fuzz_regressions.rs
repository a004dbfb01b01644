//! Replays the seeds and the findings of the fuzzer.

use std::fs;
use std::path::Path;

use crate::fuzz_checks::check;

const TARGETS: [&str; 9] =
    ["framing", "tags", "openai_chat", "openai_responses", "anthropic", "gemini", "ollama", "bedrock", "cohere"];

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
        assert!(TARGETS.contains(&target), "{name} names no target");
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
            for target in TARGETS {
                check(target, &data);
            }
        }
    }
}
