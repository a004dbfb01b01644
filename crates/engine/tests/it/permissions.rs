//! Who is asked, what is remembered, and what never happens.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use aside_core::question::{Confinement, Network, Tier};
use aside_engine::tools::{Mode, Permissions, Permit, ProjectMemory, Question, Risk, Rules, Toolbox};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Asleep, Nobody, Scratch, Scripted, call, fails, ok, run};

fn write(path: &str) -> Value {
    json!({"path": path, "content": "x"})
}

#[tokio::test]
async fn l3_a_denied_call_says_so_and_does_nothing() {
    let scratch = Scratch::new("denied");
    let rules = [("shell:touch *", "deny")];
    #[rustfmt::skip]
    let cases = [
        (Mode::Ask,      Scripted::new([Permit::No(None)]),
            "denied by the user; nothing was done"),
        (Mode::Ask,      Scripted::new([Permit::No(Some("use b.txt".to_owned()))]),
            "denied by the user, who says: use b.txt; nothing was done"),
        (Mode::Ask,      Scripted::new([Permit::Nobody]),
            "denied: it needs permission and there is nobody to ask; nothing was done"),
        (Mode::DenyAll,  Scripted::new([Permit::Once]),
            "denied: it needs permission, and this run allows nothing that would have to be asked; nothing was done"),
    ];
    for (mode, asker, expected) in cases {
        let tools = scratch.tools_under(&rules, mode);
        let result = run(&tools, &asker, "write", write("a.txt")).await;
        assert_eq!((result.content.as_str(), result.is_error), (expected, true));
        assert_eq!((result.id.as_str(), result.name.as_str()), ("c1", "write"));
    }
    let tools = scratch.tools_under(&rules, Mode::AllowAll);
    let said = fails(&tools, "shell", json!({"command": "true && touch a.txt"})).await;
    assert_eq!(said, "denied by the rule `shell:touch *`; nothing was done");
    assert_eq!(fs::read_dir(scratch.root()).unwrap().count(), 0);
}

#[tokio::test]
async fn l3_a_question_shows_what_would_be_done_and_what_a_yes_covers() {
    let scratch = Scratch::new("questions");
    fs::write(scratch.beside("b.txt"), "").unwrap();
    let tools = scratch.tools(Mode::Ask);
    let asker = Scripted::new([]);
    run(&tools, &asker, "write", write("a.txt")).await;
    run(&tools, &asker, "shell", json!({"command": " make  test "})).await;
    run(&tools, &asker, "read", json!({"path": "../b.txt"})).await;
    let outside = scratch.beside("b.txt").display().to_string();
    let question = |tool: &str, subject: &str, risk, preview: Option<&str>, covers: Option<&str>| Question {
        id: "c1".to_owned(),
        tool: tool.to_owned(),
        subject: subject.to_owned(),
        risk,
        preview: preview.map(str::to_owned),
        covers: covers.map(str::to_owned),
        confinement: (tool == "shell").then(|| Confinement {
            tier: Tier::None,
            network: Network::On,
            warnings: vec![],
        }),
        protected: None,
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
    let scratch = Scratch::new("outside");
    let secret = scratch.beside("secret.txt");
    fs::write(&secret, "hunter2\n").unwrap();
    fs::create_dir(scratch.beside("dir")).unwrap();
    fs::write(scratch.beside("dir/s.txt"), "hunter2\n").unwrap();
    symlink("../secret.txt", scratch.root().join("link")).unwrap();
    symlink("../dir", scratch.root().join("out")).unwrap();
    symlink("../made-by-a-link", scratch.root().join("dangling")).unwrap();
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
        // Whether a text stands in it is not told either.
        ("edit",  json!({"path": "link", "old": "no such text", "new": "x"})),
    ];
    // Neither a run that allows everything nor a rule changes that.
    let rules = [("read", "allow"), ("read:*secret*", "allow"), ("write", "allow")];
    let tools = scratch.tools_under(&rules, Mode::AllowAll);
    for (tool, arguments) in cases {
        let said = fails(&tools, tool, arguments.clone()).await;
        let expected = "denied: it needs permission and there is nobody to ask; nothing was done";
        assert_eq!(said, expected, "{tool} {arguments}");
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "hunter2\n");
    assert!(!scratch.beside("made-by-a-link").exists() && !scratch.beside("dir/new").exists());

    // A yes for longer is a yes for once here.
    let asker = Scripted::new([Permit::Project, Permit::Session, Permit::Once]);
    for _ in 0..3 {
        let result = run(&tools, &asker, "read", json!({"path": "link"})).await;
        assert_eq!(result.content, "     1\thunter2\n");
    }
    assert_eq!(asker.questions().len(), 3);
}

#[tokio::test]
async fn l3_yes_allows_inside_and_reads_need_no_word() {
    let scratch = Scratch::new("yes");
    scratch.file("a.txt", "hi\n");
    let tools = scratch.tools(Mode::AllowAll);
    ok(&tools, "write", write("b.txt")).await;
    ok(&tools, "shell", json!({"command": "true"})).await;
    let careful = scratch.tools(Mode::DenyAll);
    ok(&careful, "read", json!({"path": "a.txt"})).await;
    ok(&careful, "list", json!({})).await;
}

#[tokio::test]
async fn l3_an_answer_for_the_session_covers_what_is_like_it() {
    let scratch = Scratch::new("session");
    let tools = scratch.tools(Mode::Ask);
    let asker = Scripted::new([Permit::Session, Permit::Session]);
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

fn remembering(scratch: &Scratch, root: &Path) -> Toolbox {
    let memory = ProjectMemory::open(&scratch.beside("data/permissions.json"), root).unwrap();
    Toolbox::standard(&scratch.work(), Permissions::new(Rules::new(), Mode::Ask).remembering(memory))
}

#[tokio::test]
async fn l3_an_answer_for_the_project_is_remembered_there_and_nowhere_else() {
    let scratch = Scratch::new("project");
    let asker = Scripted::new([Permit::Project, Permit::Project]);
    let tools = remembering(&scratch, &scratch.root());
    assert!(!run(&tools, &asker, "write", write("a")).await.is_error);
    assert!(!run(&tools, &asker, "shell", json!({"command": "touch b"})).await.is_error);

    let file = scratch.beside("data/permissions.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(scratch.beside("data")).unwrap().permissions().mode() & 0o777, 0o700);
    let stored: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let root = scratch.root().display().to_string();
    let expected = json!({"allowed": {root: [{"tool": "write"}, {"tool": "shell", "subject": "touch b"}]}});
    assert_eq!(stored, expected);

    // The same project by another path, in another session.
    symlink("root", scratch.beside("alias")).unwrap();
    let later = remembering(&scratch, &scratch.beside("alias"));
    ok(&later, "write", write("c")).await;
    ok(&later, "shell", json!({"command": "touch b"})).await;
    fails(&later, "shell", json!({"command": "touch b c"})).await;
    let elsewhere = remembering(&scratch, &scratch.beside("data"));
    fails(&elsewhere, "write", write("d")).await;
}

#[tokio::test]
async fn l3_a_memory_that_cannot_be_read_or_written_is_said_and_left() {
    let scratch = Scratch::new("memory");
    let file = scratch.beside("permissions.json");
    fs::write(&file, "{ half").unwrap();
    let error = ProjectMemory::open(&file, &scratch.root()).unwrap_err().to_string();
    assert!(error.contains("is not understood, and is left as it is"), "{error}");

    fs::remove_file(&file).unwrap();
    let memory = ProjectMemory::open(&file, &scratch.root()).unwrap();
    let tools = Toolbox::standard(&scratch.work(), Permissions::new(Rules::new(), Mode::Ask).remembering(memory));
    fs::write(&file, "{ half").unwrap();
    let asker = Scripted::new([Permit::Project]);
    assert!(!run(&tools, &asker, "write", write("a")).await.is_error);
    assert!(asker.troubles()[0].starts_with("allowed for this session only: "), "{:?}", asker.troubles());
    assert_eq!(fs::read_to_string(&file).unwrap(), "{ half");
    ok(&tools, "write", write("b")).await;

    let without = scratch.tools(Mode::Ask);
    let asker = Scripted::new([Permit::Project]);
    assert!(!run(&without, &asker, "write", write("a")).await.is_error);
    assert_eq!(asker.troubles(), ["allowed for this session only: there is no place to remember it"]);
}

#[tokio::test]
async fn l3_two_folders_whose_names_are_no_text_do_not_share_a_memory() {
    let scratch = Scratch::new("odd-names");
    let folder = |name: &[u8]| {
        let path = scratch.beside("odd").join(OsStr::from_bytes(name));
        fs::create_dir_all(&path).unwrap();
        path
    };
    let names: [&[u8]; 4] = [b"a\xff", b"a\xfe", "a\u{fffd}".as_bytes(), b"a"];
    let [first, others @ ..] = names.map(folder);
    // What an older version stored for any of them may be another's.
    let file = scratch.beside("data/permissions.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let old = first.display().to_string();
    fs::write(&file, json!({"allowed": {old: [{"tool": "write"}]}}).to_string()).unwrap();
    fails(&remembering(&scratch, &first), "write", write("a")).await;
    let asker = Scripted::new([Permit::Project]);
    assert!(!run(&remembering(&scratch, &first), &asker, "write", write("a")).await.is_error);
    ok(&remembering(&scratch, &first), "write", write("b")).await;
    for other in others {
        fails(&remembering(&scratch, &other), "write", write("c")).await;
    }
}

#[tokio::test]
async fn l3_a_memory_that_is_a_link_is_neither_read_nor_written_through() {
    let scratch = Scratch::new("memory-link");
    let (file, theirs) = (scratch.beside("permissions.json"), scratch.beside("theirs.json"));
    let root = scratch.root().display().to_string();
    fs::write(&theirs, json!({"allowed": {root: [{"tool": "shell"}]}}).to_string()).unwrap();
    symlink(&theirs, &file).unwrap();
    let error = ProjectMemory::open(&file, &scratch.root()).unwrap_err().to_string();
    assert!(error.contains("is a link or no plain file"), "{error}");
    fs::remove_file(&file).unwrap();
    let memory = ProjectMemory::open(&file, &scratch.root()).unwrap();
    symlink(&theirs, &file).unwrap();
    let tools = Toolbox::standard(&scratch.work(), Permissions::new(Rules::new(), Mode::Ask).remembering(memory));
    let (before, asker) = (fs::read_to_string(&theirs).unwrap(), Scripted::new([Permit::Project]));
    assert!(!run(&tools, &asker, "write", write("a")).await.is_error);
    assert!(asker.troubles()[0].starts_with("allowed for this session only: "), "{:?}", asker.troubles());
    assert_eq!(fs::read_to_string(&theirs).unwrap(), before);
}

#[tokio::test]
async fn l3_what_may_not_be_read_is_not_shown_by_edit_or_by_the_diff_of_a_write() {
    let scratch = Scratch::new("unread");
    scratch.file(".env", "KEY=hunter2\nKEY=hunter2\n");
    symlink(".env", scratch.root().join("link-to")).unwrap();
    let tools = scratch.tools_under(&[("read:.env*", "deny"), ("write", "allow")], Mode::AllowAll);
    // Neither what stands there, nor whether or how often something does.
    for old in ["KEY=", "no such text", "hunter2\nKEY"] {
        for path in [".env", "link-to"] {
            let said = fails(&tools, "edit", json!({"path": path, "old": old, "new": "x"})).await;
            assert_eq!(said, "denied by the rule `read:.env*`; nothing was done", "{path} {old}");
        }
    }
    for content in ["KEY=hunter2\nKEY=hunter2\n", "KEY=other\nKEY=hunter2\n"] {
        let said = ok(&tools, "write", json!({"path": ".env", "content": content})).await;
        assert_eq!(said, "replaced `.env`, 2 lines");
    }
    // Where reading asks, nothing of the file is told before the answer either.
    let asking = scratch.tools_under(&[("read:.env*", "ask"), ("write", "allow")], Mode::Ask);
    let said = fails(&asking, "edit", json!({"path": ".env", "old": "no such text", "new": "x"})).await;
    assert_eq!(said, "denied: it needs permission and there is nobody to ask; nothing was done");
    let asked = scratch.tools_under(&[("read:.env*", "deny")], Mode::Ask);
    let asker = Scripted::new([Permit::Once]);
    run(&asked, &asker, "write", json!({"path": ".env", "content": "x"})).await;
    assert!(asker.questions()[0].preview.as_deref().unwrap().contains("-KEY=hunter2"), "the user sees it");
    let absolute = scratch.beside("dir");
    fs::create_dir(&absolute).unwrap();
    fs::write(absolute.join("key"), "hunter2\n").unwrap();
    let rule = format!("read:{}/key", absolute.display());
    let tools = scratch.tools_under(&[(&rule, "deny")], Mode::Ask);
    let grep = json!({"pattern": "hunter", "path": absolute.display().to_string()});
    let found = run(&tools, &Scripted::new([Permit::Once]), "grep", grep).await.content;
    assert_eq!(found, "[no match]\n[1 files may not be read and were not searched]\n");
}

#[tokio::test]
async fn l3_a_yes_for_longer_is_offered_only_where_it_would_hold() {
    let scratch = Scratch::new("offered");
    let tools = scratch.tools_under(&[("write:docs/*", "ask")], Mode::Ask);
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
        let asker = Scripted::new([]);
        run(&tools, &asker, tool, arguments.clone()).await;
        assert_eq!(asker.questions()[0].covers.as_deref(), covers, "{tool} {arguments}");
    }
    let asker = Scripted::new([Permit::Session]);
    assert!(!run(&tools, &asker, "shell", json!({"command": "true"})).await.is_error);
    let elsewhere = json!({"command": "cd / && true"});
    assert!(run(&tools, &asker, "shell", elsewhere).await.is_error);
    assert_eq!(asker.questions().len(), 2);
}

#[tokio::test]
async fn l3_questions_come_one_at_a_time_and_an_answer_can_cover_the_next() {
    let scratch = Scratch::new("one-at-a-time");
    let tools = scratch.tools(Mode::Ask);
    let asker = Scripted::new([Permit::Once, Permit::Session]);
    let (a, b, c) = futures_util::join!(
        run(&tools, &asker, "write", write("a")),
        run(&tools, &asker, "write", write("b")),
        run(&tools, &asker, "write", write("c")),
    );
    assert!(!a.is_error && !b.is_error && !c.is_error, "{a:?} {b:?} {c:?}");
    assert_eq!((asker.questions().len(), asker.most_open()), (2, 1));
}

#[tokio::test]
async fn l3_an_interrupted_question_counts_as_denied() {
    let scratch = Scratch::new("interrupted");
    let tools = scratch.tools(Mode::Ask);
    let cancel = CancellationToken::new();
    let stop = async {
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let (asked, waits) = (call("write", &write("a")), call("shell", &json!({"command": "touch b"})));
    let run = async |call| tools.run(call, &Asleep, &cancel).await;
    let (first, second, ()) = futures_util::join!(run(&asked), run(&waits), stop);
    for result in [first, second] {
        assert_eq!(result.content, "interrupted before it was allowed; nothing was done");
        assert!(result.is_error);
    }
    assert_eq!(fs::read_dir(scratch.root()).unwrap().count(), 0);
    // Neither the file nor the question stays locked.
    assert!(!run_again(&tools).await);
}

async fn run_again(tools: &Toolbox) -> bool {
    run(tools, &Scripted::new([Permit::Once]), "write", write("a")).await.is_error
}

#[tokio::test]
async fn l3_nothing_runs_once_the_turn_is_cancelled() {
    let scratch = Scratch::new("late");
    let tools = scratch.tools(Mode::AllowAll);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let result = tools.run(&call("write", &write("a")), &Nobody, &cancel).await;
    assert!(result.is_error && !scratch.root().join("a").exists());
}
