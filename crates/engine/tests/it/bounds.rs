//! Calls that could exhaust memory or time, or crash the process.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use aside_engine::tools::{PermissionAnswer, PermissionMode};
use serde_json::json;

use crate::support::{Nobody, ScriptedAsker, TestDir, fails, ok, run};

/// Runs each call and checks that the result has a bounded length.
async fn assert_bounded_results(test_dir: &TestDir, calls: Vec<(&str, serde_json::Value)>) {
    let tools = test_dir.tools(PermissionMode::AllowAll);
    for (tool, arguments) in calls {
        let result = run(&tools, &Nobody, tool, arguments.clone()).await;
        let shown: String = arguments.to_string().chars().take(80).collect();
        assert!(result.content.len() < 200_000, "{tool} {shown}: {} bytes", result.content.len());
        assert!(!result.content.contains("the tool crashed"), "{tool} {shown}: {}", result.content);
    }
}

#[tokio::test]
async fn l4_patterns_of_any_length_are_answered() {
    let test_dir = TestDir::new("patterns");
    test_dir.file("a.txt", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
    test_dir.file(&format!("{}x", "d/".repeat(200)), "");
    let mut calls = Vec::new();
    for text in ["*", "?", "[", "{", "**/", "{a,", "(", "a{1000}", "\\w", "(?:", "a|", "../", "a/"] {
        for count in [2, 100, 900, 100_000] {
            let pattern = text.repeat(count);
            calls.push(("glob", json!({"pattern": pattern})));
            calls.push(("grep", json!({"pattern": pattern})));
            calls.push(("grep", json!({"pattern": "a", "glob": pattern})));
            calls.push(("read", json!({"path": pattern})));
            calls.push(("list", json!({"path": pattern})));
        }
    }
    for pattern in ["(?:(?:a{1000}){1000}){1000}", "(a*)*b", "\\pL{1000}{1000}", "(?i)\\w{500}", "^(((a+)+)+)+$"] {
        calls.push(("grep", json!({"pattern": pattern})));
    }
    assert_bounded_results(&test_dir, calls).await;
    let tools = test_dir.tools(PermissionMode::AllowAll);
    let output = fails(&tools, "glob", json!({"pattern": "*".repeat(100_000)})).await;
    assert_eq!(output, "the pattern has 100000 bytes; at most 1000 are allowed");
    let output = fails(&tools, "grep", json!({"pattern": "(?:(?:a{1000}){1000}){1000}"})).await;
    assert!(output.contains("is not a valid regular expression"), "{output}");
}

#[tokio::test]
async fn l4_no_arguments_break_a_tool() {
    const PIECES: [&str; 34] = [
        "a", "b.txt", "/", "..", ".", "*", "**", "?", "[", "]", "{", "}", ",", "!", "\\", "(", ")", "|", "+", "^", "$",
        "\n", "\r\n", "\t", "\u{0}", "\u{9d}", "\u{202e}", "é", "😀", "\u{fffd}", "a/b", "(?i)", "\\p{", " ",
    ];
    let test_dir = TestDir::new("any-arguments");
    test_dir.file("a/b.txt", "a\r\nb é 😀\n");
    let tools = test_dir.tools(PermissionMode::AllowAll);
    let mut random = fastrand::Rng::with_seed(11);
    let mut text = || (0..random.usize(0..8)).map(|_| random.choice(PIECES).unwrap()).collect::<String>();
    for _ in 0..400 {
        for tool in ["read", "list", "glob", "grep", "edit", "write"] {
            // Paths outside the working directory need permission, which is denied here.
            let mut arguments = json!({"path": text()});
            match tool {
                "glob" => arguments["pattern"] = text().into(),
                "grep" => {
                    arguments["pattern"] = text().into();
                    arguments["glob"] = text().into();
                }
                "edit" => {
                    arguments["old"] = text().into();
                    arguments["new"] = text().into();
                    arguments["replace_all"] = true.into();
                }
                "write" => arguments["content"] = text().into(),
                _ => (),
            }
            let result = run(&tools, &Nobody, tool, arguments.clone()).await;
            assert!(!result.content.contains("the tool crashed"), "{tool} {arguments}: {}", result.content);
        }
    }
}

#[tokio::test]
async fn l4_the_size_of_an_edited_file_is_bounded() {
    let test_dir = TestDir::new("edit-huge");
    let line = "a".repeat(1_000_000);
    test_dir.file("a.txt", &line);
    let tools = test_dir.tools(PermissionMode::AllowAll);
    let huge = json!({"path": "a.txt", "old": "a", "new": "b".repeat(1_000_000), "replace_all": true});
    assert!(fails(&tools, "edit", huge).await.contains("larger than 16777216 bytes"));
    let many = json!({"path": "a.txt", "old": "a".repeat(500_000), "new": "b"});
    assert!(fails(&tools, "edit", many).await.contains("more than once"));
    let content = "x".repeat(17_000_000);
    assert!(fails(&tools, "write", json!({"path": "b.txt", "content": content})).await.contains("17000000 bytes"));
    assert_eq!(test_dir.text("a.txt"), line);
    assert!(!test_dir.root().join("b.txt").exists());
}

#[tokio::test]
async fn l4_the_diff_in_the_question_is_complete_and_the_models_copy_is_cut() {
    let test_dir = TestDir::new("whole-diff");
    // Two files without a common line are the slowest to compare.
    let (before, after): (String, String) = (0..60_000).map(|n| (format!("old {n}\n"), format!("new {n}\n"))).unzip();
    test_dir.file("big.txt", &before);
    let tools = test_dir.tools(PermissionMode::Ask);
    let asker = ScriptedAsker::new([PermissionAnswer::Once, PermissionAnswer::Once]);
    let result = run(&tools, &asker, "write", json!({"path": "big.txt", "content": after})).await;
    assert!(!result.is_error && result.content.len() < 30_000, "{}", result.content.len());
    let preview = asker.questions()[0].preview.clone().unwrap();
    for n in [0, 1, 30_000, 59_999] {
        assert!(preview.contains(&format!("\n-old {n}\n")) && preview.contains(&format!("\n+new {n}\n")), "{n}");
    }
    assert_eq!(preview.lines().count(), 120_003);
    let result = run(&tools, &asker, "edit", json!({"path": "big.txt", "old": after, "new": before})).await;
    assert!(!result.is_error && result.content.len() < 30_000 && result.content.contains(" line ends left out …]"));
    assert_eq!(asker.questions()[1].preview.clone().unwrap().lines().count(), 120_003);
    assert_eq!(test_dir.text("big.txt"), before);
}

#[tokio::test]
async fn l2_what_replaces_a_binary_file_is_shown() {
    let test_dir = TestDir::new("over-binary");
    test_dir.file("blob", [0, 1, 2, 255]);
    let tools = test_dir.tools(PermissionMode::Ask);
    let asker = ScriptedAsker::new([PermissionAnswer::Once]);
    let result = run(&tools, &asker, "write", json!({"path": "blob", "content": "#!/bin/sh\nrm -r x\n"})).await;
    assert!(!result.is_error, "{}", result.content);
    let preview = asker.questions()[0].preview.clone().unwrap();
    assert!(preview.contains("replaces 4 bytes") && preview.contains("\n+rm -r x\n"), "{preview}");
}

#[tokio::test]
async fn l4_special_files_get_an_answer_and_never_block() {
    let test_dir = TestDir::new("odd-files");
    for pipe in ["pipe", "sub/.gitignore", ".ignore"] {
        let path = test_dir.root().join(pipe);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }
    let sparse = test_dir.file("sparse", "");
    fs::File::options().write(true).open(sparse).unwrap().set_len(1 << 30).unwrap();
    test_dir.file(".gitignore", "*".repeat(70_000));
    test_dir.file("sub/a.txt", "needle\n");
    symlink("loop", test_dir.root().join("loop")).unwrap();
    symlink("/dev/zero", test_dir.root().join("zero")).unwrap();
    let mut calls = Vec::new();
    for path in [".", "pipe", "sparse", "sub", "sub/.gitignore", "loop", "zero", "none/x", "sub/a.txt/x", ""] {
        calls.push(("read", json!({"path": path})));
        calls.push(("list", json!({"path": path})));
        calls.push(("glob", json!({"pattern": "**/*", "path": path})));
        calls.push(("grep", json!({"pattern": "needle", "path": path})));
        calls.push(("edit", json!({"path": path, "old": "needle", "new": "pin"})));
    }
    assert_bounded_results(&test_dir, calls).await;
    for path in [".", "pipe", "loop", "zero", "none/../../../x"] {
        fails(&test_dir.tools(PermissionMode::AllowAll), "write", json!({"path": path, "content": "x"})).await;
    }
    let tools = test_dir.tools(PermissionMode::AllowAll);
    let found = ok(&tools, "grep", json!({"pattern": "needle"})).await;
    assert_eq!(found, "sub/a.txt:1:needle\n[1 ignore files are too large and were not applied]\n");
    // A file of one gigabyte is replaced without being read.
    ok(&tools, "write", json!({"path": "sparse", "content": "x"})).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn k4_the_environment_of_this_process_is_not_read_even_with_permission() {
    let test_dir = TestDir::new("environ");
    let tools = test_dir.tools(PermissionMode::Ask);
    let me = std::process::id();
    for path in ["/proc/self/environ".to_owned(), format!("/proc/{me}/environ"), "/proc/thread-self/environ".to_owned()]
    {
        for (tool, arguments) in [("read", json!({"path": path})), ("grep", json!({"pattern": "PATH=", "path": path}))]
        {
            let result = run(&tools, &ScriptedAsker::new([PermissionAnswer::Once]), tool, arguments).await;
            assert!(!result.content.contains("PATH="), "{tool} {path}: {}", result.content);
        }
    }
    // Other files of a process can be read with permission.
    let result =
        run(&tools, &ScriptedAsker::new([PermissionAnswer::Once]), "read", json!({"path": "/proc/self/status"})).await;
    assert!(!result.is_error && result.content.contains("Pid:"), "{}", result.content);
}

#[tokio::test]
async fn l4_a_folder_of_very_many_entries_is_listed_and_searched_in_bounds() {
    let test_dir = TestDir::new("many-entries");
    let folder = test_dir.root().join("many");
    fs::create_dir(&folder).unwrap();
    for n in 0..3000 {
        fs::File::create(folder.join(format!("f{n:06}"))).unwrap();
    }
    let tools = test_dir.tools(PermissionMode::AllowAll);
    let listed = ok(&tools, "list", json!({"path": "many"})).await;
    assert!(listed.starts_with("f000000\nf000001\n") && listed.ends_with("\n[and 2000 more]"), "{}", listed.len());
    let found = ok(&tools, "glob", json!({"pattern": "f*", "path": "many"})).await;
    assert!(found.starts_with("many/f000000\n") && found.contains("[and 2500 more"), "{}", found.len());
}
