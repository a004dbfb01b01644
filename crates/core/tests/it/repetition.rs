//! The repetition guard on texts without loops: all recorded thinking, and all sources
//! and documents of this repo, which repeat themselves more than thinking does.

use std::fs;
use std::path::{Path, PathBuf};

use aside_core::block::Block;
use aside_core::repetition::RepetitionGuard;

use crate::recordings::recordings;
use crate::support::{decode, generic_rules};

#[test]
fn no_recorded_thinking_is_taken_for_a_loop() {
    let Some(recordings) = recordings() else { return };
    let (mut thoughts, mut alarms) = (0, Vec::new());
    for (name, protocol, bytes) in recordings {
        let (reply, _) = decode(protocol, &generic_rules(protocol), &bytes, usize::MAX);
        for block in &reply.blocks {
            let text = match block {
                Block::Thinking(thinking) => thinking.text(),
                Block::Text(text) => &text.text,
                _ => continue,
            };
            thoughts += 1;
            alarms.extend(first_alarm(text).map(|found| format!("{name}: {found}")));
        }
    }
    println!("{thoughts} thoughts and answers");
    assert!(thoughts > 500, "only {thoughts}");
    assert!(alarms.is_empty(), "{}", alarms.join("\n"));
}

#[test]
fn no_file_of_this_repo_is_taken_for_a_loop() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut files, mut alarms) = (0, Vec::new());
    for path in texts(&root) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        files += 1;
        alarms.extend(first_alarm(&text).map(|found| format!("{}: {found}", path.display())));
    }
    assert!(files > 300, "only {files}");
    assert!(alarms.is_empty(), "{} of {files}\n{}", alarms.len(), alarms.join("\n"));
}

/// The first loop it reports at the end of any line.
fn first_alarm(text: &str) -> Option<String> {
    let mut guard = RepetitionGuard::new();
    for line in text.split_inclusive('\n') {
        guard.push(line);
        if let Some(found) = guard.found() {
            return Some(format!("{found:?}"));
        }
    }
    None
}

fn texts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_ours = !["target", ".git", "fixtures", "regressions"].iter().any(|other| name == *other);
        if path.is_dir() && is_ours {
            found.extend(texts(&path));
        } else if path.extension().is_some_and(|ending| ["rs", "md"].iter().any(|known| ending == *known)) {
            found.push(path);
        }
    }
    found
}
