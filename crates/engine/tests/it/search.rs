//! The tools `list`, `glob` and `grep`.

use std::fs;
use std::os::unix::fs::symlink;

use aside_engine::tools::PermissionMode;
use serde_json::json;

use crate::support::{TestDir, fails, ok};

/// A small project with ignored files, hidden files and a link to the outside.
fn project(name: &str) -> TestDir {
    let test_dir = TestDir::new(name);
    test_dir.file(".gitignore", "target/\n");
    test_dir.file(".git/config", "needle in the repository\n");
    test_dir.file(".github/ci.yml", "needle: ci\n");
    test_dir.file("src/main.rs", "fn main() {\n    // a Needle\n    needle();\n}\n");
    test_dir.file("src/deep/lib.rs", "pub fn other() {}\n");
    test_dir.file("target/out.rs", "needle, generated\n");
    test_dir.file("blob.bin", b"needle\0needle\n");
    fs::create_dir(test_dir.beside("beside")).unwrap();
    fs::write(test_dir.beside("beside/secret.rs"), "needle outside\n").unwrap();
    symlink("../beside", test_dir.root().join("out")).unwrap();
    test_dir
}

#[tokio::test]
async fn l2_list_shows_folders_and_where_links_lead() {
    let test_dir = project("list");
    fs::create_dir(test_dir.root().join("none")).unwrap();
    let tools = test_dir.tools(PermissionMode::DenyAll);
    let top = ".git/\n.github/\n.gitignore\nblob.bin\nnone/\nout -> ../beside\nsrc/\ntarget/";
    assert_eq!(ok(&tools, "list", json!({})).await, top);
    assert_eq!(ok(&tools, "list", json!({"path": "src"})).await, "deep/\nmain.rs");
    assert_eq!(ok(&tools, "list", json!({"path": "none"})).await, "[an empty folder]");
    assert!(fails(&tools, "list", json!({"path": "src/main.rs"})).await.contains("Not a directory"));
    assert!(fails(&tools, "list", json!({"path": "nowhere"})).await.contains("does not exist"));
}

#[tokio::test]
async fn l2_glob_finds_by_name_or_path_and_stays_inside() {
    let test_dir = project("glob");
    let tools = test_dir.tools(PermissionMode::DenyAll);
    #[rustfmt::skip]
    let cases = [
        (json!({"pattern": "*.rs"}),                        "src/deep/lib.rs\nsrc/main.rs"),
        (json!({"pattern": "src/*.rs"}),                    "src/main.rs"),
        (json!({"pattern": "./src/**/*.rs"}),               "src/deep/lib.rs\nsrc/main.rs"),
        (json!({"pattern": "*.{yml,bin}"}),                 ".github/ci.yml\nblob.bin"),
        (json!({"pattern": "*.rs", "path": "src/deep"}),    "src/deep/lib.rs"),
        (json!({"pattern": "config"}),                      "[no such file]"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(ok(&tools, "glob", arguments.clone()).await, expected, "{arguments}");
    }
    assert!(fails(&tools, "glob", json!({"pattern": "*", "path": "nowhere"})).await.contains("does not exist"));
}

#[tokio::test]
async fn l2_grep_finds_lines_but_not_what_is_ignored_binary_or_outside() {
    let test_dir = project("grep");
    let tools = test_dir.tools(PermissionMode::DenyAll);
    #[rustfmt::skip]
    let cases = [
        (json!({"pattern": "needle"}),                       ".github/ci.yml:1:needle: ci\nsrc/main.rs:3:    needle();\n"),
        (json!({"pattern": "needle", "glob": "*.rs"}),       "src/main.rs:3:    needle();\n"),
        (json!({"pattern": "NEEDLE\\(", "ignore_case": true}), "src/main.rs:3:    needle();\n"),
        (json!({"pattern": "needle", "path": "src/main.rs"}), "src/main.rs:3:    needle();\n"),
        (json!({"pattern": "Needle", "path": "src", "context": 1}),
            "src/main.rs-1-fn main() {\nsrc/main.rs:2:    // a Needle\nsrc/main.rs-3-    needle();\n"),
        (json!({"pattern": "haystack"}),                     "[no match]\n"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(ok(&tools, "grep", arguments.clone()).await, expected, "{arguments}");
    }
    assert!(fails(&tools, "grep", json!({"pattern": "a", "path": "nowhere"})).await.contains("does not exist"));
}

#[tokio::test]
async fn l4_grep_stops_at_many_matches_and_cuts_long_lines() {
    let test_dir = TestDir::new("grep-much");
    test_dir.file("many.txt", "needle\n".repeat(100_000));
    test_dir.file("wide.txt", format!("pin{}\n", "x".repeat(1_000_000)));
    let tools = test_dir.tools(PermissionMode::DenyAll);
    let found = ok(&tools, "grep", json!({"pattern": "needle"})).await;
    assert_eq!(found.lines().count(), 201);
    assert!(found.ends_with("[stopped after 200 matches; narrow the search]\n"));
    let wide = ok(&tools, "grep", json!({"pattern": "pin"})).await;
    assert!(wide.len() < 600 && wide.contains("[… 999603 bytes of this line left out]"), "{wide}");
}

#[tokio::test]
async fn l3_grep_does_not_show_what_read_may_not() {
    let test_dir = project("grep-denied");
    test_dir.file(".env", "needle = secret\n");
    let tools = test_dir.tools_with_rules(&[("read:.env*", "deny"), ("grep:.github/*", "ask")], PermissionMode::Ask);
    let found = ok(&tools, "grep", json!({"pattern": "needle"})).await;
    assert_eq!(found, "src/main.rs:3:    needle();\n[2 files may not be read and were not searched]\n");
}
