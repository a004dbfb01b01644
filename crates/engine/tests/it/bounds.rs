//! Calls that would take all memory, all time or the process with them.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use aside_engine::tools::{Mode, Permit};
use serde_json::json;

use crate::support::{Nobody, Scratch, Scripted, fails, ok, run};

/// Runs each and wants an answer of bounded length, whatever it says.
async fn answers(scratch: &Scratch, calls: Vec<(&str, serde_json::Value)>) {
    let tools = scratch.tools(Mode::AllowAll);
    for (tool, arguments) in calls {
        let result = run(&tools, &Nobody, tool, arguments.clone()).await;
        let shown: String = arguments.to_string().chars().take(80).collect();
        assert!(result.content.len() < 200_000, "{tool} {shown}: {} bytes", result.content.len());
        assert!(!result.content.contains("the tool broke"), "{tool} {shown}: {}", result.content);
    }
}

#[tokio::test]
async fn l4_patterns_of_any_length_are_answered() {
    let scratch = Scratch::new("patterns");
    scratch.file("a.txt", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
    scratch.file(&format!("{}x", "d/".repeat(200)), "");
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
    answers(&scratch, calls).await;
    let tools = scratch.tools(Mode::AllowAll);
    let said = fails(&tools, "glob", json!({"pattern": "*".repeat(100_000)})).await;
    assert_eq!(said, "the pattern has 100000 bytes; at most 1000 are possible");
    let said = fails(&tools, "grep", json!({"pattern": "(?:(?:a{1000}){1000}){1000}"})).await;
    assert!(said.contains("is no regular expression"), "{said}");
}

#[tokio::test]
async fn l4_no_arguments_break_a_tool() {
    const PIECES: [&str; 34] = [
        "a", "b.txt", "/", "..", ".", "*", "**", "?", "[", "]", "{", "}", ",", "!", "\\", "(", ")", "|", "+", "^", "$",
        "\n", "\r\n", "\t", "\u{0}", "\u{9d}", "\u{202e}", "é", "😀", "\u{fffd}", "a/b", "(?i)", "\\p{", " ",
    ];
    let scratch = Scratch::new("any-arguments");
    scratch.file("a/b.txt", "a\r\nb é 😀\n");
    let tools = scratch.tools(Mode::AllowAll);
    let mut random = fastrand::Rng::with_seed(11);
    let mut text = || (0..random.usize(0..8)).map(|_| random.choice(PIECES).unwrap()).collect::<String>();
    for _ in 0..400 {
        for tool in ["read", "list", "glob", "grep", "edit", "write"] {
            // Kept inside: what leads outside is asked about, and nobody answers.
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
            assert!(!result.content.contains("the tool broke"), "{tool} {arguments}: {}", result.content);
        }
    }
}

#[tokio::test]
async fn l4_an_edit_cannot_make_a_file_of_any_size() {
    let scratch = Scratch::new("edit-huge");
    let line = "a".repeat(1_000_000);
    scratch.file("a.txt", &line);
    let tools = scratch.tools(Mode::AllowAll);
    let huge = json!({"path": "a.txt", "old": "a", "new": "b".repeat(1_000_000), "replace_all": true});
    assert!(fails(&tools, "edit", huge).await.contains("larger than 16777216 bytes"));
    let many = json!({"path": "a.txt", "old": "a".repeat(500_000), "new": "b"});
    assert!(fails(&tools, "edit", many).await.contains("more than once"));
    let content = "x".repeat(17_000_000);
    assert!(fails(&tools, "write", json!({"path": "b.txt", "content": content})).await.contains("17000000 bytes"));
    assert_eq!(scratch.text("a.txt"), line);
    assert!(!scratch.root().join("b.txt").exists());
}

#[tokio::test]
async fn l4_the_diff_of_the_question_is_whole_and_the_models_copy_is_cut() {
    let scratch = Scratch::new("whole-diff");
    // Two files that have no line in common, which are the slowest to compare.
    let (before, after): (String, String) = (0..60_000).map(|n| (format!("old {n}\n"), format!("new {n}\n"))).unzip();
    scratch.file("big.txt", &before);
    let tools = scratch.tools(Mode::Ask);
    let asker = Scripted::new([Permit::Once, Permit::Once]);
    let result = run(&tools, &asker, "write", json!({"path": "big.txt", "content": after})).await;
    assert!(!result.is_error && result.content.len() < 30_000, "{}", result.content.len());
    let preview = asker.questions()[0].preview.clone().unwrap();
    for n in [0, 1, 30_000, 59_999] {
        assert!(preview.contains(&format!("\n-old {n}\n")) && preview.contains(&format!("\n+new {n}\n")), "{n}");
    }
    assert_eq!(preview.lines().count(), 120_003);
    let result = run(&tools, &asker, "edit", json!({"path": "big.txt", "old": after, "new": before})).await;
    assert!(!result.is_error && result.content.len() < 30_000 && result.content.contains("bytes left out"));
    assert_eq!(asker.questions()[1].preview.clone().unwrap().lines().count(), 120_003);
    assert_eq!(scratch.text("big.txt"), before);
}

#[tokio::test]
async fn l2_what_replaces_a_binary_file_is_shown() {
    let scratch = Scratch::new("over-binary");
    scratch.file("blob", [0, 1, 2, 255]);
    let tools = scratch.tools(Mode::Ask);
    let asker = Scripted::new([Permit::Once]);
    let result = run(&tools, &asker, "write", json!({"path": "blob", "content": "#!/bin/sh\nrm -r x\n"})).await;
    assert!(!result.is_error, "{}", result.content);
    let preview = asker.questions()[0].preview.clone().unwrap();
    assert!(preview.contains("replaces 4 bytes") && preview.contains("\n+rm -r x\n"), "{preview}");
}

#[tokio::test]
async fn l4_odd_files_are_answered_and_never_waited_for() {
    let scratch = Scratch::new("odd-files");
    for pipe in ["pipe", "sub/.gitignore", ".ignore"] {
        let path = scratch.root().join(pipe);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }
    let sparse = scratch.file("sparse", "");
    fs::File::options().write(true).open(sparse).unwrap().set_len(1 << 30).unwrap();
    scratch.file(".gitignore", "*".repeat(70_000));
    scratch.file("sub/a.txt", "needle\n");
    symlink("loop", scratch.root().join("loop")).unwrap();
    symlink("/dev/zero", scratch.root().join("zero")).unwrap();
    let mut calls = Vec::new();
    for path in [".", "pipe", "sparse", "sub", "sub/.gitignore", "loop", "zero", "none/x", "sub/a.txt/x", ""] {
        calls.push(("read", json!({"path": path})));
        calls.push(("list", json!({"path": path})));
        calls.push(("glob", json!({"pattern": "**/*", "path": path})));
        calls.push(("grep", json!({"pattern": "needle", "path": path})));
        calls.push(("edit", json!({"path": path, "old": "needle", "new": "pin"})));
    }
    answers(&scratch, calls).await;
    for path in [".", "pipe", "loop", "zero", "none/../../../x"] {
        fails(&scratch.tools(Mode::AllowAll), "write", json!({"path": path, "content": "x"})).await;
    }
    let tools = scratch.tools(Mode::AllowAll);
    let found = ok(&tools, "grep", json!({"pattern": "needle"})).await;
    assert_eq!(found, "sub/a.txt:1:needle\n[1 ignore files are too large and were not applied]\n");
    // A file of a gigabyte is replaced without being read.
    ok(&tools, "write", json!({"path": "sparse", "content": "x"})).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn k4_the_environment_of_this_process_is_not_read_even_with_a_yes() {
    let scratch = Scratch::new("environ");
    let tools = scratch.tools(Mode::Ask);
    let me = std::process::id();
    for path in ["/proc/self/environ".to_owned(), format!("/proc/{me}/environ"), "/proc/thread-self/environ".to_owned()]
    {
        for (tool, arguments) in [("read", json!({"path": path})), ("grep", json!({"pattern": "PATH=", "path": path}))]
        {
            let result = run(&tools, &Scripted::new([Permit::Once]), tool, arguments).await;
            assert!(!result.content.contains("PATH="), "{tool} {path}: {}", result.content);
        }
    }
    // What else a process says of itself can be read with a yes.
    let result = run(&tools, &Scripted::new([Permit::Once]), "read", json!({"path": "/proc/self/status"})).await;
    assert!(!result.is_error && result.content.contains("Pid:"), "{}", result.content);
}

#[tokio::test]
async fn l4_a_folder_of_very_many_entries_is_listed_and_searched_in_bounds() {
    let scratch = Scratch::new("many-entries");
    let folder = scratch.root().join("many");
    fs::create_dir(&folder).unwrap();
    for n in 0..3000 {
        fs::File::create(folder.join(format!("f{n:06}"))).unwrap();
    }
    let tools = scratch.tools(Mode::AllowAll);
    let listed = ok(&tools, "list", json!({"path": "many"})).await;
    assert!(listed.starts_with("f000000\nf000001\n") && listed.ends_with("\n[and 2000 more]"), "{}", listed.len());
    let found = ok(&tools, "glob", json!({"pattern": "f*", "path": "many"})).await;
    assert!(found.starts_with("many/f000000\n") && found.contains("[and 2500 more"), "{}", found.len());
}
