//! Files that decide what runs next are changed only after a question.

use std::fs;
use std::os::unix::fs::symlink;

use aside_engine::tools::{Mode, Permissions, Permit, Toolbox};
use serde_json::{Value, json};

use crate::support::{Nobody, Scratch, Scripted, ok, rules_of, run};

const NOBODY: &str = "denied: it needs permission and there is nobody to ask; nothing was done";

fn write(path: &str) -> Value {
    json!({"path": path, "content": "changed"})
}

fn edit(path: &str) -> Value {
    json!({"path": path, "old": "before", "new": "changed"})
}

#[tokio::test]
async fn l3_protected_paths_ask_whatever_is_allowed() {
    let scratch = Scratch::new("protected");
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
        scratch.file(path, "before");
    }
    symlink(".git/hooks", scratch.root().join("innocent")).unwrap();
    let rules = [("write", "allow"), ("edit", "allow"), ("write:*", "allow"), ("edit:*", "allow")];
    for mode in [Mode::AllowAll, Mode::Ask, Mode::DenyAll] {
        let work = scratch.work().protecting([scratch.root().join("own")], ["RULES.txt".to_owned()]);
        let tools = Toolbox::standard(&work, Permissions::new(rules_of(&rules), mode));
        for path in paths.into_iter().chain(["innocent/pre-commit", "innocent/new"]) {
            for (tool, arguments) in [("write", write(path)), ("edit", edit(path))] {
                let result = run(&tools, &Nobody, tool, arguments).await;
                let said = result.content.as_str();
                let is_denied = said == NOBODY || said.starts_with("denied: it needs permission, and this run");
                let is_missing = said.contains("does not exist");
                assert!(result.is_error && (is_denied || is_missing), "{tool} {path}: {said}");
            }
        }
        for path in paths {
            assert_eq!(scratch.text(path), "before", "{path} with {mode:?}");
        }
        assert!(!scratch.root().join(".git/hooks/new").exists());
        // The same rules let everything else be written.
        ok(&tools, "write", write("src/a.txt")).await;
        ok(&tools, "write", write(".github/ci.yml")).await;
    }
}

#[tokio::test]
async fn l3_the_question_names_the_protected_path_and_no_answer_to_it_holds_on() {
    let scratch = Scratch::new("protected-asked");
    scratch.file(".git/config", "before");
    symlink(".git/config", scratch.root().join("notes.txt")).unwrap();
    let tools = scratch.tools_under(&[("write", "allow")], Mode::AllowAll);
    let asker = Scripted::new([Permit::Session, Permit::Project, Permit::Once]);
    for content in ["one", "two", "three"] {
        let result = run(&tools, &asker, "write", json!({"path": "notes.txt", "content": content})).await;
        assert!(!result.is_error, "{}", result.content);
        assert_eq!(scratch.text(".git/config"), content);
    }
    let questions = asker.questions();
    assert_eq!(questions.len(), 3);
    for question in questions {
        assert_eq!((question.protected.as_deref(), question.covers), (Some(".git/config"), None));
    }
}

#[tokio::test]
async fn l3_only_a_rule_that_names_the_very_path_lifts_the_protection() {
    let scratch = Scratch::new("protected-lifted");
    scratch.file("AGENTS.md", "before");
    scratch.file("docs/AGENTS.md", "before");
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
        let tools = scratch.tools_under(&[(rule, "allow")], Mode::AllowAll);
        let result = run(&tools, &Nobody, "write", write(path)).await;
        assert_eq!(!result.is_error, lifted, "{rule} {path}: {}", result.content);
    }
    fs::write(scratch.root().join("AGENTS.md"), "before").unwrap();
    let tools = scratch.tools_under(&[("write:AGENTS.md", "allow")], Mode::DenyAll);
    ok(&tools, "edit", edit("AGENTS.md")).await;
    let tools = scratch.tools_under(&[("write:AGENTS.md", "allow"), ("write:AGENTS*", "deny")], Mode::AllowAll);
    assert!(run(&tools, &Nobody, "write", write("AGENTS.md")).await.is_error);
    // Reading needs no word.
    ok(&scratch.tools(Mode::DenyAll), "read", json!({"path": "AGENTS.md"})).await;
}
