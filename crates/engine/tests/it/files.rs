//! Reading, writing and editing files.

use std::fs::{self, Permissions as FilePermissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::{Duration, Instant};

use aside_engine::tools::{PermissionAnswer, PermissionMode};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Nobody, ScriptedAsker, TestDir, call, fails, ok, run};

#[tokio::test]
async fn l2_read_numbers_lines_and_says_where_to_continue() {
    let test_dir = TestDir::new("read");
    test_dir.file("a.txt", "one\ntwo\r\nthree\nfour");
    let tools = test_dir.tools(PermissionMode::DenyAll);
    let whole = "     1\tone\n     2\ttwo\n     3\tthree\n     4\tfour\n";
    assert_eq!(ok(&tools, "read", json!({"path": "a.txt"})).await, whole);
    let part = ok(&tools, "read", json!({"path": "a.txt", "offset": 2, "limit": 2})).await;
    assert_eq!(part, "     2\ttwo\n     3\tthree\n[more lines follow; continue with offset 4]\n");
    assert_eq!(ok(&tools, "read", json!({"path": "a.txt", "offset": 4})).await, "     4\tfour\n");
    assert_eq!(fails(&tools, "read", json!({"path": "a.txt", "offset": 5})).await, "`a.txt` has only 4 lines");
    assert_eq!(fails(&tools, "read", json!({"path": "b.txt"})).await, "`b.txt` does not exist");
    assert_eq!(fails(&tools, "read", json!({"path": "."})).await, "`.` is a folder; use `list`");
}

#[tokio::test]
async fn l2_binary_files_are_described_and_not_dumped() {
    let test_dir = TestDir::new("binary");
    test_dir.file("blob", [b'a', 0, 0xff]);
    test_dir.file("pic.PNG", [0x89, b'P', b'N', b'G']);
    test_dir.file("latin", b"caf\xe9\nplain\n");
    test_dir.file("empty", "");
    let fifo = test_dir.root().join("pipe");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let tools = test_dir.tools(PermissionMode::DenyAll);
    #[rustfmt::skip]
    let cases = [
        ("blob",    "[3 bytes: a binary file, not shown]"),
        ("pic.PNG", "[image/png, 4 bytes: an image, not shown here]"),
        ("latin",   "     1\tcaf\u{fffd}\n     2\tplain\n[not all of it is UTF-8: \u{fffd} stands for other bytes]\n"),
        ("empty",   "[an empty file]"),
    ];
    for (path, expected) in cases {
        assert_eq!(ok(&tools, "read", json!({"path": path})).await, expected, "{path}");
    }
    // Opening it would block until there is a writer.
    assert_eq!(fails(&tools, "read", json!({"path": "pipe"})).await, "`pipe` is not a regular file");
}

#[tokio::test]
async fn l4_a_huge_file_is_read_in_bounded_parts() {
    let test_dir = TestDir::new("huge-file");
    test_dir.file("long-line", "x".repeat(5_000_000));
    test_dir.file("many-lines", "0123456789\n".repeat(500_000));
    test_dir.file("wide-lines", format!("{}\n", "y".repeat(3000)).repeat(500));
    let tools = test_dir.tools(PermissionMode::DenyAll);
    let long = ok(&tools, "read", json!({"path": "long-line"})).await;
    assert!(long.ends_with(" [… 4995904 bytes of this line left out]\n") && long.len() < 5000);
    let many = ok(&tools, "read", json!({"path": "many-lines", "limit": 1_000_000})).await;
    assert!(many.ends_with("[more lines follow; continue with offset 2001]\n"), "at most 2000 lines");
    let wide = ok(&tools, "read", json!({"path": "wide-lines"})).await;
    assert!(wide.len() < 70_000 && wide.contains("[more lines follow; continue with offset 23]"), "{}", wide.len());
}

#[tokio::test]
async fn l4_reading_stops_soon_after_it_is_cancelled() {
    let test_dir = TestDir::new("endless-line");
    // A sparse file: it takes no disk space, and reading all of it would take minutes.
    let path = test_dir.file("endless", "x".repeat(10_000));
    fs::File::options().append(true).open(path).unwrap().set_len(1 << 40).unwrap();
    let tools = test_dir.tools(PermissionMode::DenyAll);
    let (cancel, read) = (CancellationToken::new(), call("read", &json!({"path": "endless"})));
    let stop = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    };
    let begun = Instant::now();
    let (result, ()) = futures_util::join!(tools.run(&read, &Nobody, &cancel), stop);
    assert_eq!((result.content.as_str(), result.is_error), ("stopped by the user before it was done", true));
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn l2_write_makes_folders_shows_a_diff_and_keeps_the_mode() {
    let test_dir = TestDir::new("write");
    let script = test_dir.file("run.sh", "echo 1\n");
    fs::set_permissions(&script, FilePermissions::from_mode(0o751)).unwrap();
    symlink("run.sh", test_dir.root().join("link")).unwrap();
    let tools = test_dir.tools(PermissionMode::Ask);
    let asker = ScriptedAsker::new([PermissionAnswer::Once, PermissionAnswer::Once]);
    let result = run(&tools, &asker, "write", json!({"path": "new/deep/a.txt", "content": "hi\n"})).await;
    assert_eq!((result.content.as_str(), result.is_error), ("created `new/deep/a.txt`, 1 line", false));
    assert_eq!(test_dir.text("new/deep/a.txt"), "hi\n");

    let result = run(&tools, &asker, "write", json!({"path": "link", "content": "echo 2\n"})).await;
    let diff = "--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-echo 1\n+echo 2\n";
    assert_eq!(result.content, format!("replaced `run.sh`, 1 line\n{diff}"));
    assert_eq!(asker.questions()[1].preview.as_deref(), Some(diff));
    assert_eq!(asker.questions()[1].subject, "run.sh");
    assert_eq!(test_dir.text("run.sh"), "echo 2\n");
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o751);
    assert!(fs::symlink_metadata(test_dir.root().join("link")).unwrap().is_symlink(), "a link stays one");

    let names: Vec<_> = fs::read_dir(test_dir.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "no draft is left: {names:?}");
}

#[tokio::test]
async fn l2_write_refuses_what_it_cannot_replace() {
    let test_dir = TestDir::new("unwritable");
    let locked = test_dir.file("locked", "keep");
    fs::set_permissions(&locked, FilePermissions::from_mode(0o444)).unwrap();
    test_dir.file("file", "keep");
    let tools = test_dir.tools(PermissionMode::AllowAll);
    #[rustfmt::skip]
    let cases = [
        ("locked",      "`locked` is read-only"),
        (".",           "`.` is a folder; use `list`"),
        ("file/below",  "`file/below`: Not a directory (os error 20)"),
    ];
    for (path, expected) in cases {
        assert_eq!(fails(&tools, "write", json!({"path": path, "content": "x"})).await, expected, "{path}");
    }
    assert_eq!((test_dir.text("locked"), test_dir.text("file")), ("keep".to_owned(), "keep".to_owned()));
}

#[tokio::test]
async fn l2_edit_replaces_one_exact_text_and_shows_the_diff() {
    let test_dir = TestDir::new("edit");
    test_dir.file("a.rs", "let a = 1;\nlet b = 1;\n");
    test_dir.file("latin", b"caf\xe9");
    let tools = test_dir.tools(PermissionMode::AllowAll);
    let diff = "--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n-let a = 1;\n+let a = 2;\n let b = 1;\n";
    let edit = |old: &str, new: &str| json!({"path": "a.rs", "old": old, "new": new});
    assert_eq!(ok(&tools, "edit", edit("a = 1", "a = 2")).await, format!("edited `a.rs` in 1 place\n{diff}"));
    assert!(fails(&tools, "edit", edit("let ", "const ")).await.contains("in the file more than once"));
    assert!(fails(&tools, "edit", edit("a  = 2", "")).await.contains("not in the file"));
    assert!(fails(&tools, "edit", edit("", "x")).await.contains("`old` is empty"));
    assert!(fails(&tools, "edit", edit("x", "x")).await.contains("nothing would change"));
    let all = json!({"path": "a.rs", "old": "let ", "new": "const ", "replace_all": true});
    assert!(ok(&tools, "edit", all).await.starts_with("edited `a.rs` in 2 places"));
    assert_eq!(test_dir.text("a.rs"), "const a = 2;\nconst b = 1;\n");
    let latin = json!({"path": "latin", "old": "caf", "new": "x"});
    assert!(fails(&tools, "edit", latin).await.contains("not UTF-8 text"));
    assert_eq!(fs::read(test_dir.root().join("latin")).unwrap(), b"caf\xe9", "its bytes are as they were");
}

#[tokio::test]
async fn l1_two_edits_of_one_file_at_once_are_both_kept() {
    let test_dir = TestDir::new("two-edits");
    test_dir.file("a.txt", "one\ntwo\n");
    symlink("a.txt", test_dir.root().join("alias")).unwrap();
    let tools = test_dir.tools(PermissionMode::Ask);
    let asker = ScriptedAsker::new([PermissionAnswer::Once, PermissionAnswer::Once]);
    let (first, second) = futures_util::join!(
        run(&tools, &asker, "edit", json!({"path": "a.txt", "old": "one", "new": "1"})),
        run(&tools, &asker, "edit", json!({"path": "alias", "old": "two", "new": "2"})),
    );
    assert!(!first.is_error && !second.is_error, "{} {}", first.content, second.content);
    assert_eq!(test_dir.text("a.txt"), "1\n2\n");
    let shown = asker.questions()[1].preview.clone().unwrap();
    assert!(shown.contains(" 1\n-two\n+2\n"), "the second is shown what the first left: {shown}");
}

#[tokio::test]
async fn l1_calls_access_a_file_in_the_order_they_were_made() {
    for round in 0..50 {
        let test_dir = TestDir::new(&format!("in-order-{round}"));
        let tools = test_dir.tools(PermissionMode::AllowAll);
        let (write, edit, again) = futures_util::join!(
            run(&tools, &Nobody, "write", json!({"path": "a.txt", "content": "one"})),
            run(&tools, &Nobody, "edit", json!({"path": "a.txt", "old": "one", "new": "two"})),
            run(&tools, &Nobody, "edit", json!({"path": "a.txt", "old": "two", "new": "three"})),
        );
        assert!(!write.is_error && !edit.is_error && !again.is_error, "{write:?} {edit:?} {again:?}");
        assert_eq!(test_dir.text("a.txt"), "three");
    }
}

#[tokio::test]
async fn l2_a_file_that_changes_during_the_question_is_not_overwritten() {
    let test_dir = TestDir::new("changed");
    let path = test_dir.file("a.txt", "one\n");
    let tools = test_dir.tools(PermissionMode::Ask);
    for (tool, arguments) in [
        ("edit", json!({"path": "a.txt", "old": "one", "new": "1"})),
        ("write", json!({"path": "a.txt", "content": "1"})),
    ] {
        fs::write(&path, "one\n").unwrap();
        let path = path.clone();
        let asker = ScriptedAsker::new([PermissionAnswer::Once])
            .meanwhile(move || fs::write(&path, "one by the user\n").unwrap());
        let result = run(&tools, &asker, tool, arguments).await;
        assert!(result.is_error && result.content.contains("changed since it was looked at"), "{}", result.content);
        assert_eq!(test_dir.text("a.txt"), "one by the user\n", "{tool}");
    }
}

#[tokio::test]
async fn l2_invalid_arguments_are_answered_with_the_expected_ones() {
    let test_dir = TestDir::new("arguments");
    let tools = test_dir.tools(PermissionMode::AllowAll);
    #[rustfmt::skip]
    let cases = [
        ("read",  json!({}),                                   "missing field `path`"),
        ("read",  json!({"path": "a", "lines": 3}),            "unknown field `lines`"),
        ("read",  json!({"path": "a", "limit": "many"}),       "expected usize"),
        ("edit",  json!({"path": "a", "old": "x"}),            "missing field `new`"),
        ("shell", json!({"command": 1}),                       "expected a string"),
        ("glob",  json!({"pattern": "[a"}),                    "not a valid path pattern"),
        ("grep",  json!({"pattern": "(a"}),                    "not a valid regular expression"),
        ("shell", json!({"command": " "}),                     "empty"),
        ("read",  json!({"path": "a\u{0}b"}),                  "NUL"),
    ];
    for (tool, arguments, expected) in cases {
        let output = fails(&tools, tool, arguments).await;
        assert!(output.contains(expected), "{tool}: {output}");
    }
    let output = fails(&tools, "read", json!({"file": "a"})).await;
    assert!(output.contains(r#""required":["path"]"#), "{output}");
    let output = fails(&tools, "raed", json!({})).await;
    assert_eq!(output, "there is no tool `raed`; there are: read, list, glob, grep, edit, write, shell");
}

#[test]
fn l2_every_tool_has_a_schema_and_those_that_only_read_come_first() {
    let test_dir = TestDir::new("specs");
    let tools = test_dir.tools(PermissionMode::Ask);
    let names: Vec<&str> = tools.specs().iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["read", "list", "glob", "grep", "edit", "write", "shell"]);
    for spec in tools.specs() {
        let schema: serde_json::Value = serde_json::from_str(&spec.parameters).unwrap();
        let properties = schema["properties"].as_object().unwrap();
        for required in schema["required"].as_array().into_iter().flatten() {
            assert!(properties.contains_key(required.as_str().unwrap()), "{}", spec.name);
        }
    }
}
