//! Somebody renames folders and puts links in their place while tools work.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aside_engine::tools::{Mode, Permit};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::support::{Nobody, Scratch, Scripted, run};

/// Everything below a folder, with what stands in it.
fn everything(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(everything(&path)),
            false => found.push((path.display().to_string(), fs::read_to_string(&path).unwrap())),
        }
    }
    found.sort();
    found
}

/// A folder `a` in the root, and one beside the root with the same names and one more.
fn stage(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    for folder in [scratch.root().join("a"), scratch.beside("out")] {
        fs::create_dir_all(folder.join("deep")).unwrap();
    }
    for file in ["file", "deep/file"] {
        fs::write(scratch.root().join("a").join(file), "inside needle\n").unwrap();
        fs::write(scratch.beside("out").join(file), "SECRET needle\n").unwrap();
    }
    fs::write(scratch.beside("out/SECRET"), "SECRET needle\n").unwrap();
    symlink(scratch.beside("out"), scratch.root().join("link")).unwrap();
    scratch
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
        let scratch = stage(&format!("swapped-{nth}"));
        let before = everything(&scratch.beside("out"));
        let asks = ["read", "list", "glob", "grep"].map(|tool| (tool, "ask"));
        let tools = scratch.tools_under(&asks, Mode::Ask);
        let root = scratch.root();
        let asker = Scripted::new([Permit::Once]).meanwhile(move || swap(&root));
        let result = run(&tools, &asker, tool, arguments.clone()).await;
        assert_eq!(asker.questions().len(), 1, "{tool} {arguments}");
        assert!(result.is_error && !result.content.contains("SECRET"), "{tool} {arguments}: {}", result.content);
        assert!(result.content.contains("leads elsewhere since it was looked at"), "{tool}: {}", result.content);
        assert_eq!(everything(&scratch.beside("out")), before, "{tool} {arguments}");
        assert_eq!(fs::read_to_string(scratch.root().join("link/file")).unwrap(), "inside needle\n", "{tool}");
    }
}

#[tokio::test]
async fn l3_the_working_directory_is_the_one_that_was_opened_whatever_stands_in_its_place() {
    for (nth, (tool, arguments)) in calls().into_iter().enumerate() {
        let scratch = stage(&format!("replaced-{nth}"));
        fs::create_dir(scratch.beside("other")).unwrap();
        fs::rename(scratch.beside("out"), scratch.beside("other/a")).unwrap();
        let before = everything(&scratch.beside("other"));
        let asks = ["read", "list", "glob", "grep"].map(|tool| (tool, "ask"));
        let tools = scratch.tools_under(&asks, Mode::Ask);
        let (root, moved, other) = (scratch.root(), scratch.beside("moved"), scratch.beside("other"));
        let asker = Scripted::new([Permit::Once]).meanwhile(move || {
            fs::rename(&root, &moved).unwrap();
            symlink(&other, &root).unwrap();
        });
        let result = run(&tools, &asker, tool, arguments.clone()).await;
        assert!(!result.content.contains("SECRET"), "{tool} {arguments}: {}", result.content);
        assert_eq!(everything(&scratch.beside("other")), before, "{tool} {arguments}");
    }
}

#[tokio::test]
async fn l3_a_racing_rename_cannot_lead_outside() {
    let scratch = stage("racer");
    let before = everything(&scratch.beside("out"));
    let (over, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let racer = std::thread::spawn({
        let (over, swaps, root) = (Arc::clone(&over), Arc::clone(&swaps), scratch.root());
        move || {
            while !over.load(Ordering::Relaxed) {
                swap(&root);
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let tools = scratch.tools(Mode::AllowAll);
    let mut worked = 0;
    // As often as it takes for calls to work in between, and for many to be tried.
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
    assert_eq!(everything(&scratch.beside("out")), before);
}
