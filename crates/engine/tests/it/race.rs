//! Folders that are replaced with links while tools run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aside_engine::tools::{PermissionAnswer, PermissionMode};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::support::{Nobody, ScriptedAsker, TestDir, run};

/// All files below a folder, with their content.
fn all_files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(all_files(&path)),
            false => found.push((path.display().to_string(), fs::read_to_string(&path).unwrap())),
        }
    }
    found.sort();
    found
}

/// A folder `a` in the root, and one outside with the same names and one more.
fn folders_to_swap(name: &str) -> TestDir {
    let test_dir = TestDir::new(name);
    for folder in [test_dir.root().join("a"), test_dir.beside("out")] {
        fs::create_dir_all(folder.join("deep")).unwrap();
    }
    for file in ["file", "deep/file"] {
        fs::write(test_dir.root().join("a").join(file), "inside needle\n").unwrap();
        fs::write(test_dir.beside("out").join(file), "SECRET needle\n").unwrap();
    }
    fs::write(test_dir.beside("out/SECRET"), "SECRET needle\n").unwrap();
    symlink(test_dir.beside("out"), test_dir.root().join("link")).unwrap();
    test_dir
}

fn swap(root: &Path) {
    renameat_with(CWD, root.join("a"), CWD, root.join("link"), RenameFlags::EXCHANGE).unwrap();
}

fn calls() -> [(&'static str, Value); 9] {
    [
        ("read", json!({"path": "a/file"})),
        ("read", json!({"path": "a/deep/file"})),
        ("list", json!({"path": "a"})),
        ("glob", json!({"pattern": "**/*", "path": "a"})),
        ("grep", json!({"pattern": "needle", "path": "a"})),
        ("grep", json!({"pattern": "needle", "path": "a/file"})),
        ("write", json!({"path": "a/file", "content": "inside written\n"})),
        ("write", json!({"path": "a/new/folder/file", "content": "inside written\n"})),
        ("edit", json!({"path": "a/file", "old": "inside", "new": "inside edited"})),
    ]
}

#[tokio::test]
async fn l3_a_folder_that_becomes_a_link_after_the_question_leads_nowhere() {
    for (nth, (tool, arguments)) in calls().into_iter().enumerate() {
        let test_dir = folders_to_swap(&format!("swapped-{nth}"));
        let before = all_files(&test_dir.beside("out"));
        let asks = ["read", "list", "glob", "grep"].map(|tool| (tool, "ask"));
        let tools = test_dir.tools_with_rules(&asks, PermissionMode::Ask);
        let root = test_dir.root();
        let asker = ScriptedAsker::new([PermissionAnswer::Once]).meanwhile(move || swap(&root));
        let result = run(&tools, &asker, tool, arguments.clone()).await;
        assert_eq!(asker.questions().len(), 1, "{tool} {arguments}");
        assert!(result.is_error && !result.content.contains("SECRET"), "{tool} {arguments}: {}", result.content);
        assert!(result.content.contains("leads elsewhere since it was checked"), "{tool}: {}", result.content);
        assert_eq!(all_files(&test_dir.beside("out")), before, "{tool} {arguments}");
        assert_eq!(fs::read_to_string(test_dir.root().join("link/file")).unwrap(), "inside needle\n", "{tool}");
    }
}

#[tokio::test]
async fn l3_the_working_directory_stays_the_one_that_was_opened() {
    for (nth, (tool, arguments)) in calls().into_iter().enumerate() {
        let test_dir = folders_to_swap(&format!("replaced-{nth}"));
        fs::create_dir(test_dir.beside("other")).unwrap();
        fs::rename(test_dir.beside("out"), test_dir.beside("other/a")).unwrap();
        let before = all_files(&test_dir.beside("other"));
        let asks = ["read", "list", "glob", "grep"].map(|tool| (tool, "ask"));
        let tools = test_dir.tools_with_rules(&asks, PermissionMode::Ask);
        let (root, moved, other) = (test_dir.root(), test_dir.beside("moved"), test_dir.beside("other"));
        let asker = ScriptedAsker::new([PermissionAnswer::Once]).meanwhile(move || {
            fs::rename(&root, &moved).unwrap();
            symlink(&other, &root).unwrap();
        });
        let result = run(&tools, &asker, tool, arguments.clone()).await;
        assert!(!result.content.contains("SECRET"), "{tool} {arguments}: {}", result.content);
        assert_eq!(all_files(&test_dir.beside("other")), before, "{tool} {arguments}");
    }
}

#[tokio::test]
async fn l3_a_racing_rename_cannot_lead_outside() {
    let test_dir = folders_to_swap("racer");
    let before = all_files(&test_dir.beside("out"));
    let (over, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let racer = std::thread::spawn({
        let (over, swaps, root) = (Arc::clone(&over), Arc::clone(&swaps), test_dir.root());
        move || {
            while !over.load(Ordering::Relaxed) {
                swap(&root);
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let tools = test_dir.tools(PermissionMode::AllowAll);
    let mut worked = 0;
    // Repeat until enough calls have succeeded between the renames.
    for round in 0.. {
        for (tool, arguments) in calls() {
            let result = run(&tools, &Nobody, tool, arguments.clone()).await;
            assert!(!result.content.contains("SECRET"), "{tool} {arguments}: {}", result.content);
            worked += usize::from(!result.is_error);
        }
        if round >= 300 && worked >= 50 {
            break;
        }
    }
    over.store(true, Ordering::Relaxed);
    racer.join().unwrap();
    assert!(swaps.load(Ordering::Relaxed) > 0);
    assert_eq!(all_files(&test_dir.beside("out")), before);
}
