//! Changing a protected path always needs permission.

use std::fs;
use std::os::unix::fs::symlink;

use aside_engine::tools::{PermissionAnswer, PermissionMode, Permissions, Toolbox};
use serde_json::{Value, json};

use crate::support::{Nobody, ScriptedAsker, TestDir, ok, rules_of, run};

const NOBODY: &str = "denied: it needs permission and there is no one to ask; nothing was done";

fn write(path: &str) -> Value {
    json!({"path": path, "content": "changed"})
}

fn edit(path: &str) -> Value {
    json!({"path": path, "old": "before", "new": "changed"})
}

#[tokio::test]
async fn l3_protected_paths_ask_whatever_is_allowed() {
    let test_dir = TestDir::new("protected");
    let paths = [
        ".git/hooks/pre-commit",
        ".git/config",
        "module/.git",
        "AGENTS.md",
        "docs/agents.md",
        ".bashrc",
        ".envrc",
        ".vscode/tasks.json",
        ".idea/x.xml",
        ".aside/x",
        "own/config.toml",
        "RULES.txt",
    ];
    for path in paths {
        test_dir.file(path, "before");
    }
    symlink(".git/hooks", test_dir.root().join("innocent")).unwrap();
    let rules = [("write", "allow"), ("edit", "allow"), ("write:*", "allow"), ("edit:*", "allow")];
    for mode in [PermissionMode::AllowAll, PermissionMode::Ask, PermissionMode::DenyAll] {
        let work = test_dir.work().with_protected([test_dir.root().join("own")], ["RULES.txt".to_owned()]);
        let tools = Toolbox::standard(&work, Permissions::new(rules_of(&rules), mode));
        for path in paths.into_iter().chain(["innocent/pre-commit", "innocent/new"]) {
            for (tool, arguments) in [("write", write(path)), ("edit", edit(path))] {
                let result = run(&tools, &Nobody, tool, arguments).await;
                let output = result.content.as_str();
                let is_denied = output == NOBODY || output.starts_with("denied: it needs permission, and this run");
                let is_missing = output.contains("does not exist");
                assert!(result.is_error && (is_denied || is_missing), "{tool} {path}: {output}");
            }
        }
        for path in paths {
            assert_eq!(test_dir.text(path), "before", "{path} with {mode:?}");
        }
        assert!(!test_dir.root().join(".git/hooks/new").exists());
        // The same rules allow writing everywhere else.
        ok(&tools, "write", write("src/a.txt")).await;
        ok(&tools, "write", write(".github/ci.yml")).await;
    }
}

#[tokio::test]
async fn l3_the_question_names_the_protected_path_and_its_answer_never_lasts() {
    let test_dir = TestDir::new("protected-asked");
    test_dir.file(".git/config", "before");
    symlink(".git/config", test_dir.root().join("notes.txt")).unwrap();
    let tools = test_dir.tools_with_rules(&[("write", "allow")], PermissionMode::AllowAll);
    let asker = ScriptedAsker::new([PermissionAnswer::Session, PermissionAnswer::Project, PermissionAnswer::Once]);
    for content in ["one", "two", "three"] {
        let result = run(&tools, &asker, "write", json!({"path": "notes.txt", "content": content})).await;
        assert!(!result.is_error, "{}", result.content);
        assert_eq!(test_dir.text(".git/config"), content);
    }
    let questions = asker.questions();
    assert_eq!(questions.len(), 3);
    for question in questions {
        assert_eq!((question.protected.as_deref(), question.covers), (Some(".git/config"), None));
    }
}

#[tokio::test]
async fn l3_only_a_rule_that_names_the_exact_path_lifts_the_protection() {
    let test_dir = TestDir::new("protected-lifted");
    test_dir.file("AGENTS.md", "before");
    test_dir.file("docs/AGENTS.md", "before");
    #[rustfmt::skip]
    let cases = [
        ("write:AGENTS.md",  "AGENTS.md",       true),
        ("write:AGENTS.md",  "docs/AGENTS.md",  false),
        ("write:AGENTS*",    "AGENTS.md",       false),
        ("write:*",          "AGENTS.md",       false),
        ("write",            "AGENTS.md",       false),
        ("*:AGENTS.md",      "AGENTS.md",       false),
        ("edit:AGENTS.md",   "AGENTS.md",       false),
    ];
    for (rule, path, lifted) in cases {
        let tools = test_dir.tools_with_rules(&[(rule, "allow")], PermissionMode::AllowAll);
        let result = run(&tools, &Nobody, "write", write(path)).await;
        assert_eq!(!result.is_error, lifted, "{rule} {path}: {}", result.content);
    }
    fs::write(test_dir.root().join("AGENTS.md"), "before").unwrap();
    let tools = test_dir.tools_with_rules(&[("write:AGENTS.md", "allow")], PermissionMode::DenyAll);
    ok(&tools, "edit", edit("AGENTS.md")).await;
    let tools =
        test_dir.tools_with_rules(&[("write:AGENTS.md", "allow"), ("write:AGENTS*", "deny")], PermissionMode::AllowAll);
    assert!(run(&tools, &Nobody, "write", write("AGENTS.md")).await.is_error);
    // Reading needs no permission.
    ok(&test_dir.tools(PermissionMode::DenyAll), "read", json!({"path": "AGENTS.md"})).await;
}
