//! When the user is asked, what is remembered, and what never happens.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use aside_core::permission_question::{Confinement, Network, ProposedChange, Tier};
use aside_engine::tools::{
    PermissionAnswer, PermissionMode, PermissionQuestion, PermissionRules, Permissions, ProjectMemory, Risk, Toolbox,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Nobody, ScriptedAsker, SilentAsker, TestDir, call, fails, ok, run};

fn write(path: &str) -> Value {
    json!({"path": path, "content": "x"})
}

#[tokio::test]
async fn l3_a_denied_call_says_so_and_does_nothing() {
    let test_dir = TestDir::new("denied");
    let rules = [("shell:touch *", "deny")];
    #[rustfmt::skip]
    let cases = [
        (PermissionMode::Ask,      ScriptedAsker::new([PermissionAnswer::No(None)]),
            "denied by the user; nothing was done"),
        (PermissionMode::Ask,      ScriptedAsker::new([PermissionAnswer::No(Some("use b.txt".to_owned()))]),
            "denied by the user, who says: use b.txt; nothing was done"),
        (PermissionMode::Ask,      ScriptedAsker::new([PermissionAnswer::Nobody]),
            "denied: it needs permission and there is no one to ask; nothing was done"),
        (PermissionMode::DenyAll,  ScriptedAsker::new([PermissionAnswer::Once]),
            "denied: it needs permission, and this run denies everything that needs permission; nothing was done"),
    ];
    for (mode, asker, expected) in cases {
        let tools = test_dir.tools_with_rules(&rules, mode);
        let result = run(&tools, &asker, "write", write("a.txt")).await;
        assert_eq!((result.content.as_str(), result.is_error), (expected, true));
        assert_eq!((result.id.as_str(), result.name.as_str()), ("c1", "write"));
    }
    let tools = test_dir.tools_with_rules(&rules, PermissionMode::AllowAll);
    let output = fails(&tools, "shell", json!({"command": "true && touch a.txt"})).await;
    assert_eq!(output, "denied by the rule `shell:touch *`; nothing was done");
    assert_eq!(fs::read_dir(test_dir.root()).unwrap().count(), 0);
}

#[tokio::test]
async fn l3_a_question_shows_what_would_happen_and_what_an_answer_covers() {
    let test_dir = TestDir::new("questions");
    fs::write(test_dir.beside("b.txt"), "").unwrap();
    let tools = test_dir.tools(PermissionMode::Ask);
    let asker = ScriptedAsker::new([]);
    run(&tools, &asker, "write", write("a.txt")).await;
    run(&tools, &asker, "shell", json!({"command": " make  test "})).await;
    run(&tools, &asker, "read", json!({"path": "../b.txt"})).await;
    let outside = test_dir.beside("b.txt").display().to_string();
    let question = |tool: &str, subject: &str, risk, preview: Option<&str>, covers: Option<&str>| PermissionQuestion {
        id: "c1".to_owned(),
        preview: preview.map(str::to_owned),
        covers: covers.map(str::to_owned),
        confinement: (tool == "shell").then(|| Confinement {
            tier: Tier::None,
            network: Network::On,
            warnings: vec![],
        }),
        change: (tool == "write").then(|| ProposedChange {
            path: test_dir.root().join("a.txt").display().to_string(),
            before: None,
            after: "x".to_owned(),
        }),
        ..PermissionQuestion::new(tool, subject, risk)
    };
    let diff = "--- a/a.txt\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n";
    let expected = [
        question("write", "a.txt", Risk::Writes, Some(diff), Some("write")),
        question("shell", "make  test", Risk::Runs, Some("make  test"), Some("shell:make  test")),
        question("read", &outside, Risk::Outside, None, None),
    ];
    assert_eq!(asker.questions(), expected);
}

#[tokio::test]
async fn l3_outside_the_working_directory_always_asks() {
    let test_dir = TestDir::new("outside");
    let secret = test_dir.beside("secret.txt");
    fs::write(&secret, "hunter2\n").unwrap();
    fs::create_dir(test_dir.beside("dir")).unwrap();
    fs::write(test_dir.beside("dir/s.txt"), "hunter2\n").unwrap();
    symlink("../secret.txt", test_dir.root().join("link")).unwrap();
    symlink("../dir", test_dir.root().join("out")).unwrap();
    symlink("../made-by-a-link", test_dir.root().join("dangling")).unwrap();
    let absolute = secret.display().to_string();
    #[rustfmt::skip]
    let cases = [
        ("read",  json!({"path": "../secret.txt"})),
        ("read",  json!({"path": "none/../../secret.txt"})),
        ("read",  json!({"path": absolute})),
        ("read",  json!({"path": "link"})),
        ("read",  json!({"path": "out/s.txt"})),
        ("list",  json!({"path": ".."})),
        ("list",  json!({"path": "out"})),
        ("glob",  json!({"pattern": "*", "path": "out"})),
        ("grep",  json!({"pattern": "hunter", "path": "out"})),
        ("grep",  json!({"pattern": "hunter", "path": "link"})),
        ("write", json!({"path": "link", "content": "x"})),
        ("write", json!({"path": "dangling", "content": "x"})),
        ("write", json!({"path": "out/new/s.txt", "content": "x"})),
        ("edit",  json!({"path": "link", "old": "hunter2", "new": "x"})),
        // The error does not reveal either whether the file contains a text.
        ("edit",  json!({"path": "link", "old": "no such text", "new": "x"})),
    ];
    // Neither `AllowAll` nor a rule changes that.
    let rules = [("read", "allow"), ("read:*secret*", "allow"), ("write", "allow")];
    let tools = test_dir.tools_with_rules(&rules, PermissionMode::AllowAll);
    for (tool, arguments) in cases {
        let output = fails(&tools, tool, arguments.clone()).await;
        let expected = "denied: it needs permission and there is no one to ask; nothing was done";
        assert_eq!(output, expected, "{tool} {arguments}");
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "hunter2\n");
    assert!(!test_dir.beside("made-by-a-link").exists() && !test_dir.beside("dir/new").exists());

    // A lasting answer counts only once here.
    let asker = ScriptedAsker::new([PermissionAnswer::Project, PermissionAnswer::Session, PermissionAnswer::Once]);
    for _ in 0..3 {
        let result = run(&tools, &asker, "read", json!({"path": "link"})).await;
        assert_eq!(result.content, "     1\thunter2\n");
    }
    assert_eq!(asker.questions().len(), 3);
}

#[tokio::test]
async fn l3_allow_all_covers_everything_inside_and_reads_need_no_permission() {
    let test_dir = TestDir::new("yes");
    test_dir.file("a.txt", "hi\n");
    let tools = test_dir.tools(PermissionMode::AllowAll);
    ok(&tools, "write", write("b.txt")).await;
    ok(&tools, "shell", json!({"command": "true"})).await;
    let careful = test_dir.tools(PermissionMode::DenyAll);
    ok(&careful, "read", json!({"path": "a.txt"})).await;
    ok(&careful, "list", json!({})).await;
}

#[tokio::test]
async fn l3_an_answer_for_the_session_covers_similar_calls() {
    let test_dir = TestDir::new("session");
    let tools = test_dir.tools(PermissionMode::Ask);
    let asker = ScriptedAsker::new([PermissionAnswer::Session, PermissionAnswer::Session]);
    let shell = |command: &str| json!({ "command": command });
    assert!(!run(&tools, &asker, "write", write("a")).await.is_error);
    assert!(!run(&tools, &asker, "write", write("b")).await.is_error);
    assert!(!run(&tools, &asker, "shell", shell("echo a > c")).await.is_error);
    assert!(!run(&tools, &asker, "shell", shell("echo a > c")).await.is_error);
    assert_eq!(asker.questions().len(), 2);
    assert!(run(&tools, &asker, "shell", shell("echo a > d")).await.is_error);
    assert!(run(&tools, &asker, "edit", json!({"path": "a", "old": "x", "new": "y"})).await.is_error);
    assert_eq!(asker.questions().len(), 4);
}

fn toolbox_with_memory(test_dir: &TestDir, root: &Path) -> Toolbox {
    let memory = ProjectMemory::open(&test_dir.beside("data/permissions.json"), root).unwrap();
    Toolbox::standard(
        &test_dir.work(),
        Permissions::new(PermissionRules::new(), PermissionMode::Ask).with_memory(memory),
    )
}

#[tokio::test]
async fn l3_an_answer_for_the_project_is_remembered_there_and_nowhere_else() {
    let test_dir = TestDir::new("project");
    let asker = ScriptedAsker::new([PermissionAnswer::Project, PermissionAnswer::Project]);
    let tools = toolbox_with_memory(&test_dir, &test_dir.root());
    assert!(!run(&tools, &asker, "write", write("a")).await.is_error);
    assert!(!run(&tools, &asker, "shell", json!({"command": "touch b"})).await.is_error);

    let file = test_dir.beside("data/permissions.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(test_dir.beside("data")).unwrap().permissions().mode() & 0o777, 0o700);
    let stored: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let root = test_dir.root().display().to_string();
    let expected = json!({"allowed": {root: [{"tool": "write"}, {"tool": "shell", "subject": "touch b"}]}});
    assert_eq!(stored, expected);

    // The same project, by another path and in another session.
    symlink("root", test_dir.beside("alias")).unwrap();
    let later = toolbox_with_memory(&test_dir, &test_dir.beside("alias"));
    ok(&later, "write", write("c")).await;
    ok(&later, "shell", json!({"command": "touch b"})).await;
    fails(&later, "shell", json!({"command": "touch b c"})).await;
    let elsewhere = toolbox_with_memory(&test_dir, &test_dir.beside("data"));
    fails(&elsewhere, "write", write("d")).await;
}

#[tokio::test]
async fn l3_an_unreadable_memory_file_is_reported_and_left_unchanged() {
    let test_dir = TestDir::new("memory");
    let file = test_dir.beside("permissions.json");
    fs::write(&file, "{ half").unwrap();
    let error = ProjectMemory::open(&file, &test_dir.root()).unwrap_err().to_string();
    assert!(error.contains("is not understood, and is left as it is"), "{error}");

    fs::remove_file(&file).unwrap();
    let memory = ProjectMemory::open(&file, &test_dir.root()).unwrap();
    let tools = Toolbox::standard(
        &test_dir.work(),
        Permissions::new(PermissionRules::new(), PermissionMode::Ask).with_memory(memory),
    );
    fs::write(&file, "{ half").unwrap();
    let asker = ScriptedAsker::new([PermissionAnswer::Project]);
    assert!(!run(&tools, &asker, "write", write("a")).await.is_error);
    assert!(asker.warnings()[0].starts_with("allowed for this session only: "), "{:?}", asker.warnings());
    assert_eq!(fs::read_to_string(&file).unwrap(), "{ half");
    ok(&tools, "write", write("b")).await;

    let without = test_dir.tools(PermissionMode::Ask);
    let asker = ScriptedAsker::new([PermissionAnswer::Project]);
    assert!(!run(&without, &asker, "write", write("a")).await.is_error);
    assert_eq!(asker.warnings(), ["allowed for this session only: there is nowhere to store it"]);
}

#[tokio::test]
async fn l3_two_folders_whose_names_are_not_utf8_do_not_share_a_memory() {
    let test_dir = TestDir::new("odd-names");
    let folder = |name: &[u8]| {
        let path = test_dir.beside("odd").join(OsStr::from_bytes(name));
        fs::create_dir_all(&path).unwrap();
        path
    };
    let names: [&[u8]; 4] = [b"a\xff", b"a\xfe", "a\u{fffd}".as_bytes(), b"a"];
    let [first, others @ ..] = names.map(folder);
    // An older version may have stored this for any of them.
    let file = test_dir.beside("data/permissions.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let old = first.display().to_string();
    fs::write(&file, json!({"allowed": {old: [{"tool": "write"}]}}).to_string()).unwrap();
    fails(&toolbox_with_memory(&test_dir, &first), "write", write("a")).await;
    let asker = ScriptedAsker::new([PermissionAnswer::Project]);
    assert!(!run(&toolbox_with_memory(&test_dir, &first), &asker, "write", write("a")).await.is_error);
    ok(&toolbox_with_memory(&test_dir, &first), "write", write("b")).await;
    for other in others {
        fails(&toolbox_with_memory(&test_dir, &other), "write", write("c")).await;
    }
}

#[tokio::test]
async fn l3_a_memory_that_is_a_link_is_neither_read_nor_written_through() {
    let test_dir = TestDir::new("memory-link");
    let (file, other_file) = (test_dir.beside("permissions.json"), test_dir.beside("theirs.json"));
    let root = test_dir.root().display().to_string();
    fs::write(&other_file, json!({"allowed": {root: [{"tool": "shell"}]}}).to_string()).unwrap();
    symlink(&other_file, &file).unwrap();
    let error = ProjectMemory::open(&file, &test_dir.root()).unwrap_err().to_string();
    assert!(error.contains("is a link or not a regular file"), "{error}");
    fs::remove_file(&file).unwrap();
    let memory = ProjectMemory::open(&file, &test_dir.root()).unwrap();
    symlink(&other_file, &file).unwrap();
    let tools = Toolbox::standard(
        &test_dir.work(),
        Permissions::new(PermissionRules::new(), PermissionMode::Ask).with_memory(memory),
    );
    let (before, asker) = (fs::read_to_string(&other_file).unwrap(), ScriptedAsker::new([PermissionAnswer::Project]));
    assert!(!run(&tools, &asker, "write", write("a")).await.is_error);
    assert!(asker.warnings()[0].starts_with("allowed for this session only: "), "{:?}", asker.warnings());
    assert_eq!(fs::read_to_string(&other_file).unwrap(), before);
}

#[tokio::test]
async fn l3_what_may_not_be_read_is_not_shown_by_edit_or_by_the_diff_of_a_write() {
    let test_dir = TestDir::new("unread");
    test_dir.file(".env", "KEY=hunter2\nKEY=hunter2\n");
    symlink(".env", test_dir.root().join("link-to")).unwrap();
    let tools = test_dir.tools_with_rules(&[("read:.env*", "deny"), ("write", "allow")], PermissionMode::AllowAll);
    // The error reveals neither the content, nor whether or how often a text occurs.
    for old in ["KEY=", "no such text", "hunter2\nKEY"] {
        for path in [".env", "link-to"] {
            let output = fails(&tools, "edit", json!({"path": path, "old": old, "new": "x"})).await;
            assert_eq!(output, "denied by the rule `read:.env*`; nothing was done", "{path} {old}");
        }
    }
    for content in ["KEY=hunter2\nKEY=hunter2\n", "KEY=other\nKEY=hunter2\n"] {
        let output = ok(&tools, "write", json!({"path": ".env", "content": content})).await;
        assert_eq!(output, "replaced `.env`, 2 lines");
    }
    // If reading asks, the error reveals nothing before the answer either.
    let asking = test_dir.tools_with_rules(&[("read:.env*", "ask"), ("write", "allow")], PermissionMode::Ask);
    let output = fails(&asking, "edit", json!({"path": ".env", "old": "no such text", "new": "x"})).await;
    assert_eq!(output, "denied: it needs permission and there is no one to ask; nothing was done");
    let asked = test_dir.tools_with_rules(&[("read:.env*", "deny")], PermissionMode::Ask);
    let asker = ScriptedAsker::new([PermissionAnswer::Once]);
    run(&asked, &asker, "write", json!({"path": ".env", "content": "x"})).await;
    assert!(asker.questions()[0].preview.as_deref().unwrap().contains("-KEY=hunter2"), "the user sees it");
    let absolute = test_dir.beside("dir");
    fs::create_dir(&absolute).unwrap();
    fs::write(absolute.join("key"), "hunter2\n").unwrap();
    let rule = format!("read:{}/key", absolute.display());
    let tools = test_dir.tools_with_rules(&[(&rule, "deny")], PermissionMode::Ask);
    let grep = json!({"pattern": "hunter", "path": absolute.display().to_string()});
    let found = run(&tools, &ScriptedAsker::new([PermissionAnswer::Once]), "grep", grep).await.content;
    assert_eq!(found, "[no match]\n[1 files may not be read and were not searched]\n");
}

#[tokio::test]
async fn l3_a_lasting_answer_is_offered_only_where_it_would_apply() {
    let test_dir = TestDir::new("offered");
    let tools = test_dir.tools_with_rules(&[("write:docs/*", "ask")], PermissionMode::Ask);
    #[rustfmt::skip]
    let cases = [
        ("shell", json!({"command": "make"}),             Some("shell:make")),
        ("shell", json!({"command": "make > log"}),       Some("shell:make > log")),
        ("shell", json!({"command": "make $(id)"}),       None),
        ("shell", json!({"command": "make ${A}"}),        None),
        ("shell", json!({"command": "make\u{9d}"}),       None),
        ("write", write("a.txt"),                         Some("write")),
        ("write", write("docs/a.txt"),                    None),
        ("write", write(".envrc"),                        None),
        ("write", write("../a.txt"),                      None),
    ];
    for (tool, arguments, covers) in cases {
        let asker = ScriptedAsker::new([]);
        run(&tools, &asker, tool, arguments.clone()).await;
        assert_eq!(asker.questions()[0].covers.as_deref(), covers, "{tool} {arguments}");
    }
    let asker = ScriptedAsker::new([PermissionAnswer::Session]);
    assert!(!run(&tools, &asker, "shell", json!({"command": "true"})).await.is_error);
    let elsewhere = json!({"command": "cd / && true"});
    assert!(run(&tools, &asker, "shell", elsewhere).await.is_error);
    assert_eq!(asker.questions().len(), 2);
}

#[tokio::test]
async fn l3_questions_come_one_at_a_time_and_an_answer_can_cover_the_next() {
    let test_dir = TestDir::new("one-at-a-time");
    let tools = test_dir.tools(PermissionMode::Ask);
    let asker = ScriptedAsker::new([PermissionAnswer::Once, PermissionAnswer::Session]);
    let (a, b, c) = futures_util::join!(
        run(&tools, &asker, "write", write("a")),
        run(&tools, &asker, "write", write("b")),
        run(&tools, &asker, "write", write("c")),
    );
    assert!(!a.is_error && !b.is_error && !c.is_error, "{a:?} {b:?} {c:?}");
    assert_eq!((asker.questions().len(), asker.max_open()), (2, 1));
}

#[tokio::test]
async fn l3_an_interrupted_question_counts_as_denied() {
    let test_dir = TestDir::new("interrupted");
    let tools = test_dir.tools(PermissionMode::Ask);
    let cancel = CancellationToken::new();
    let stop = async {
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let (asked, waits) = (call("write", &write("a")), call("shell", &json!({"command": "touch b"})));
    let run = async |call| tools.run(call, &SilentAsker, &cancel).await;
    let (first, second, ()) = futures_util::join!(run(&asked), run(&waits), stop);
    for result in [first, second] {
        assert_eq!(result.content, "interrupted before it was allowed; nothing was done");
        assert!(result.is_error);
    }
    assert_eq!(fs::read_dir(test_dir.root()).unwrap().count(), 0);
    // Neither the file nor the question stays locked.
    assert!(!run_again(&tools).await);
}

async fn run_again(tools: &Toolbox) -> bool {
    run(tools, &ScriptedAsker::new([PermissionAnswer::Once]), "write", write("a")).await.is_error
}

#[tokio::test]
async fn l3_nothing_runs_once_the_turn_is_cancelled() {
    let test_dir = TestDir::new("late");
    let tools = test_dir.tools(PermissionMode::AllowAll);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let result = tools.run(&call("write", &write("a")), &Nobody, &cancel).await;
    assert!(result.is_error && !test_dir.root().join("a").exists());
}
