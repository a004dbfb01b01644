//! Sessions: saved, continued, searched, exported and imported.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

use aside_core::block::Time;
use aside_core::conversation::Conversation;
use aside_store::session::SessionDates;
use aside_store::{SqliteStore, Store};
use serde_json::{Value, json};

use crate::support::{RunOutput, TestConfig, aside, repository, run as run_in, start};

fn run(config: &TestConfig, arguments: &[&str]) -> RunOutput {
    aside(arguments, b"", Some(config))
}

fn ok(config: &TestConfig, arguments: &[&str]) -> String {
    let run = run(config, arguments);
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    run.stdout
}

#[test]
fn p2_a_session_is_saved_and_continued_and_its_thinking_is_sent_back() {
    let config = TestConfig::new("sessions-continue");
    ok(&config, &["ask", "-m", "sim/deepseek", "first question"]);
    ok(&config, &["ask", "-c", "sim: tool-loop 1"]);
    let list = ok(&config, &["sessions", "list"]);
    assert_eq!(list.lines().count(), 1, "{list}");
    assert!(
        list.contains("sim/deepseek") && list.ends_with("first question\n"),
        "the title is the first prompt: {list}"
    );
    let explained = ok(&config, &["explain", "-r", "first question", "-m", "deepseek/deepseek-v4-pro", "--json"]);
    let explained: Value = serde_json::from_str(&explained).unwrap();
    let thoughts: Vec<&Value> =
        explained["decisions"].as_array().unwrap().iter().filter(|row| row["kind"] == "thinking").collect();
    assert_eq!(thoughts.len(), 3, "{explained}");
    let shown = ok(&config, &["sessions", "show"]);
    assert!(shown.contains("> first question") && shown.contains("▶ Thought") && shown.contains("→ list"), "{shown}");
    assert!(ok(&config, &["sessions", "show", "--thinking", "full"]).contains("│ "));
}

#[test]
fn p2_a_setting_of_the_command_line_ends_with_its_run_and_one_of_the_session_stays() {
    let config = TestConfig::new("sessions-run-settings");
    let settings = || {
        let stored = ok(&config, &["sessions", "export", "--format", "jsonl"]);
        serde_json::from_str::<Value>(stored.lines().next().unwrap()).unwrap()["settings"].clone()
    };
    let plain = |arguments: &[&str], typed: &str| {
        let arguments = [&["--plain"], arguments].concat();
        let run = aside(&arguments, typed.as_bytes(), Some(&config));
        assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
        run.stdout
    };
    ok(&config, &["ask", "-m", "sim/openai", "--set", "reasoning.effort=high", "first question"]);
    assert_eq!(settings(), Value::Null, "of `ask`");
    plain(&["-c", "--set", "reasoning.effort=high", "--set", "reasoning.display=full"], "second question\n");
    assert_eq!(settings(), Value::Null, "of the line prompt");
    plain(&["-c", "--set", "reasoning.effort=high"], "/set reasoning.effort=low\n/set context.compactAt=0.5\n");
    assert_eq!(settings(), json!({"reasoning.effort": "low", "context.compactAt": "0.5"}));
    // It is used again, and a flag wins over it for one run.
    assert!(plain(&["-c"], "/set reasoning.effort?\n").contains("low"), "restored");
    assert!(plain(&["-c", "--set", "reasoning.effort=max"], "/set reasoning.effort?\n").contains("max"), "a flag wins");
    assert_eq!(settings(), json!({"reasoning.effort": "low", "context.compactAt": "0.5"}));
}

#[test]
fn no_save_saves_nothing() {
    let config = TestConfig::new("sessions-none");
    ok(&config, &["ask", "-m", "sim/kimi", "--no-save", "secret"]);
    assert_eq!(ok(&config, &["sessions", "list"]), "");
    let none = run(&config, &["ask", "-c", "go on"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("there is no session yet"), "{}", none.stderr);
}

#[test]
fn p9_the_last_session_is_the_last_one_of_this_project() {
    let config = TestConfig::new("sessions-folders");
    let project = config.project();
    let other = project.join("other");
    for folder in ["repo/.git", "repo/sub", "other"] {
        fs::create_dir_all(project.join(folder)).unwrap();
    }
    let at = |folder: &Path, arguments: &[&str]| {
        run_in(Command::new(env!("CARGO_BIN_EXE_aside")).args(arguments).current_dir(folder), b"", Some(&config))
    };
    let ask = |folder: &str, question: &str| {
        let asked = at(&project.join(folder), &["ask", "-m", "sim/kimi", question]);
        assert_eq!(asked.code, 0, "{}", asked.stderr);
    };
    ask("repo", "in the repository");
    let none = at(&other, &["ask", "-c", "go on"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("no session began in this folder"), "{}", none.stderr);
    assert!(none.stderr.contains("aside -r ") && none.stderr.contains("in the repository"), "{}", none.stderr);
    // The line prompt begins a new session and says the same.
    let lines = run_in(
        Command::new(env!("CARGO_BIN_EXE_aside")).args(["--plain", "-c", "-m", "sim/kimi"]).current_dir(&other),
        b"in the other folder\n",
        Some(&config),
    );
    let said = format!("{}{}", lines.stdout, lines.stderr);
    assert!(said.contains("no session began in this folder, so this is a new one; aside -r "), "{said}");
    // A subfolder of the same repository is here.
    let continued = at(&project.join("repo/sub"), &["ask", "-c", "and on"]);
    assert_eq!((continued.code, continued.stderr.contains("began in")), (0, false), "{}", continued.stderr);
    let anywhere = at(&other, &["ask", "-c", "--anywhere", "from elsewhere"]);
    assert!(anywhere.stderr.contains("note: this session began in"), "{}", anywhere.stderr);
    let listed = at(&other, &["sessions", "list", "--json"]).stdout;
    let listed: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let column = |name: &str| -> Vec<String> {
        listed.iter().map(|one| one[name].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(column("title"), ["in the other folder", "in the repository"]);
    assert!(column("folder")[0].ends_with("other") && column("folder")[1].ends_with("repo"), "{listed:?}");
    assert_eq!(listed[1]["messages"], 7, "the system prompt and three turns went to the first session");
    let shown = at(&other, &["sessions", "list"]).stdout;
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].ends_with("in the other folder") && lines[1].contains("in the repository  (in "), "{shown}");
}

#[test]
fn p9_an_imported_folder_or_title_cannot_look_like_a_line_of_ours() {
    let config = TestConfig::new("sessions-hostile-names");
    let said = json!({ "type": "user", "uuid": "u1", "sessionId": "s", "cwd": "/tmp/x\nerror: \u{1b}]0;y\u{7}fake",
        "message": { "role": "user", "content": "hello \u{1b}[2J\u{202e}there" } });
    let file = config.0.join("hostile.jsonl");
    fs::write(&file, said.to_string()).unwrap();
    let id = ok(&config, &["sessions", "import", file.to_str().unwrap()]);
    let elsewhere = run(&config, &["ask", "-c", "go on"]);
    let resumed = run(&config, &["ask", "-r", id.trim(), "-m", "sim/kimi", "go on"]);
    assert_eq!((elsewhere.code, resumed.code), (2, 0), "{}", resumed.stderr);
    for shown in [elsewhere.stderr, resumed.stderr, ok(&config, &["sessions", "list"])] {
        assert!(shown.contains("/tmp/x"), "the folder is named: {shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{shown:?}");
        assert!(!shown.lines().any(|line| line.starts_with("error: ") && line.contains("fake")), "{shown}");
    }
}

#[test]
fn p10_a_session_that_is_open_elsewhere_is_not_written_but_copied() {
    let config = TestConfig::new("sessions-open");
    ok(&config, &["ask", "-m", "sim/kimi", "first question"]);
    // A line prompt that waits for input has it open.
    let mut open = start(
        Command::new(env!("CARGO_BIN_EXE_aside")).args(["--plain", "-c"]).current_dir(repository()),
        Some(&config),
    );
    let mut heard = BufReader::new(open.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("first question") {
        line.clear();
        assert_ne!(heard.read_line(&mut line).unwrap(), 0, "it shows the session");
    }
    let refused = run(&config, &["ask", "-c", "second question"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("is open in another aside"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--fork"), "{}", refused.stderr);
    let copied = run(&config, &["ask", "-c", "--fork", "second question"]);
    assert_eq!(copied.code, 0, "{}", copied.stderr);
    assert!(copied.stderr.contains("continuing in a copy: "), "{}", copied.stderr);
    // Reading it needs no copy.
    let read = run(&config, &["ask", "-r", "first question", "--no-save", "only asked"]);
    assert_eq!(read.code, 2, "the copy has the same title: {}", read.stderr);
    drop(open.stdin.take());
    assert!(open.wait().unwrap().success());
    let listed = ok(&config, &["sessions", "list", "--json"]);
    let counts: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["messages"].clone()).collect();
    assert_eq!(counts, [5, 3], "the copy has both turns, the session one");
}

#[test]
fn p4_words_are_found_in_the_right_kind_of_block() {
    let config = TestConfig::new("sessions-search");
    ok(&config, &["ask", "-m", "sim/anthropic", "where is parse_header defined?"]);
    let hits = |arguments: &[&str]| -> Vec<Value> {
        let all: Vec<&str> = ["search", "--json"].iter().chain(arguments).copied().collect();
        ok(&config, &all).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let found = hits(&["parse_header", "--in", "prompt"]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["kind"], "prompt");
    assert!(found[0]["snippet"].as_str().unwrap().contains("parse_header"));
    assert!(!hits(&["模拟"]).is_empty(), "CJK is found");
    assert!(hits(&["parse_header", "--in", "thinking"]).is_empty());
    let wrong = run(&config, &["search", "x", "--in", "nowhere"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("prompt, thinking, answer, tool or all"), "{}", wrong.stderr);
}

#[test]
fn p5_export_import_export_is_byte_identical() {
    let config = TestConfig::new("sessions-export");
    ok(&config, &["ask", "-m", "sim/anthropic", "sim: tool-loop 2"]);
    for (format, name) in [("jsonl", "out.jsonl"), ("markdown", "out.md")] {
        let file = config.0.join(name);
        let path = file.to_str().unwrap();
        ok(&config, &["sessions", "export", "--format", format, "-o", path]);
        let id = ok(&config, &["sessions", "import", path]);
        let again = ok(&config, &["sessions", "export", id.trim(), "--format", format]);
        assert_eq!(again, fs::read_to_string(&file).unwrap(), "{format}");
        ok(&config, &["sessions", "delete", id.trim()]);
    }
    let whole = fs::read_to_string(config.0.join("out.jsonl")).unwrap();
    assert!(whole.contains("\"signature\""), "opaque data is in it");
    assert!(!ok(&config, &["sessions", "export", "--format", "jsonl", "--no-opaque"]).contains("\"signature\""));
    let markdown = fs::read_to_string(config.0.join("out.md")).unwrap();
    assert!(markdown.contains("> [!thinking]-"), "{markdown}");
}

#[test]
fn old_sessions_are_pruned_and_the_database_shrinks() {
    let config = TestConfig::new("sessions-prune");
    let words: String = (0..200_000).map(|word| format!("{word} ")).collect();
    let old = json!({"role": "user", "blocks": [{"type": "text", "text": words}]});
    let old = Conversation::parse(&format!("{{\"aside\":1,\"title\":\"old one\"}}\n{old}\n")).unwrap();
    let long_ago = Time(1_577_934_245_000);
    let store = SqliteStore::open(&config.0.join("data")).unwrap();
    let id = store.import_dated(&old, SessionDates { created: long_ago, changed: long_ago }).unwrap();
    drop(store);
    ok(&config, &["ask", "-m", "sim/kimi", "new one"]);
    let database = || fs::metadata(config.0.join("data/sessions.db")).unwrap().len();
    let before = database();
    let doctor = ok(&config, &["doctor"]);
    assert!(doctor.contains("sessions: 2 in ") && doctor.contains("B\n"), "{doctor}");
    let prune = |arguments: &[&str]| run(&config, &[&["sessions", "prune", "--older-than"], arguments].concat());
    for (word, problem) in [("soon", "is not a time"), ("6m", "months or minutes"), ("2999-01-01", "in the future")] {
        let refused = prune(&[word]);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{word}");
        assert!(refused.stderr.contains(problem), "{word}: {}", refused.stderr);
    }
    let planned = prune(&["30d", "--dry-run"]);
    assert_eq!((planned.code, planned.stdout), (0, format!("would delete {id} old one\n")));
    let pruned = prune(&["30d"]);
    assert_eq!((pruned.code, pruned.stdout), (0, format!("deleted {id} old one\n")), "{}", pruned.stderr);
    assert!(pruned.stderr.contains("deleted 1 session; the database shrank from "), "{}", pruned.stderr);
    assert!(database() < before, "{before}, then {}", database());
    let list = ok(&config, &["sessions", "list"]);
    assert!(list.contains("new one") && !list.contains("old one"), "{list}");
    assert!(prune(&["30d"]).stderr.contains("no session was deleted"));
    assert_eq!(prune(&["0d"]).code, 0);
    assert_eq!(ok(&config, &["sessions", "list"]), "");
}

#[test]
fn c6_usage_is_counted_by_model() {
    let config = TestConfig::new("sessions-usage");
    ok(&config, &["ask", "-m", "sim/kimi", "hello"]);
    let lines = ok(&config, &["usage", "--json"]);
    let line: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(line["replies"], 1);
    assert!(line["thinking"]["count"].as_u64().unwrap() > 0, "{line}");
    assert!(ok(&config, &["usage", "--by", "day"]).lines().count() == 2);
}

#[test]
fn a_replay_prints_the_same_as_the_live_run() {
    let config = TestConfig::new("sessions-replay");
    let tape = config.0.join("tape.jsonl");
    let tape = tape.to_str().unwrap();
    let live =
        run(&config, &["ask", "-m", "sim/gemini", "--no-tools", "--thinking", "show", "--record", tape, "hello"]);
    let again = run(&config, &["replay", tape, "--speed", "0"]);
    assert_eq!((again.code, again.stdout, again.stderr), (0, live.stdout, live.stderr));
    let wrong = run(&config, &["replay", "Cargo.toml"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("aside ask --record FILE"), "{}", wrong.stderr);
}

#[test]
fn p11_only_regular_files_of_a_bounded_size_are_read_as_a_whole() {
    let config = TestConfig::new("sessions-odd-files");
    let path = |name: &str| config.0.join(name).to_str().unwrap().to_owned();
    let (pipe, large, link, text) = (path("pipe"), path("large"), path("link"), path("text"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // It takes no space on the disk.
    std::fs::File::create(&large).unwrap().set_len(20 << 30).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    std::fs::write(&text, [b'x', 0xff]).unwrap();
    let commands: [&[&str]; 4] =
        [&["sessions", "import"], &["replay"], &["encode", "-m", "sim/kimi"], &["judge", "--dialect", "kimi"]];
    #[rustfmt::skip]
    let cases = [
        (pipe.as_str(),  "it is not a regular file\n\nhint: to read a pipe or a device"),
        (large.as_str(), "it is larger than 256 MiB"),
        (link.as_str(),  "it is not a regular file"),
        ("/dev/zero",    "it is not a regular file"),
        ("/",            "it is a folder"),
        (text.as_str(),  "invalid utf-8"),
    ];
    for command in commands {
        for (file, why) in cases {
            let refused = run(&config, &[command, &[file]].concat());
            assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{command:?} {file}");
            assert!(refused.stderr.contains(&format!("cannot read {file}: {why}")), "{file}: {}", refused.stderr);
        }
    }
}

#[test]
fn the_screen_needs_a_terminal_and_suggests_an_alternative() {
    let config = TestConfig::new("sessions-screen");
    let refused = run(&config, &[]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("the screen needs a terminal"), "{}", refused.stderr);
    assert!(refused.stderr.contains("aside ask"), "{}", refused.stderr);
}

#[test]
fn p5_an_import_with_an_invalid_setting_imports_nothing() {
    let config = TestConfig::new("sessions-settings");
    let file = |name: &str, settings: &str| {
        let path = config.0.join(name);
        let header = format!("{{\"aside\":1,\"title\":\"{name}\",\"settings\":{settings}}}");
        fs::write(
            &path,
            format!("{header}\n{{\"role\":\"user\",\"blocks\":[{{\"type\":\"text\",\"text\":\"hi\"}}]}}\n"),
        )
        .unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = file("good", r#"{"reasoning.effort":"low"}"#);
    #[rustfmt::skip]
    let cases = [
        ("an unknown one",   r#"{"reasoning.efort":"low"}"#,       "reasoning.efort"),
        ("a wrong value",    r#"{"reasoning.effort":"enormous"}"#, "enormous"),
        ("confinement",      r#"{"tools.confine":"off"}"#,         "tools.confine"),
        ("a permission",     r#"{"permissions.shell":"allow"}"#,   "permissions.shell"),
    ];
    for (name, settings, named) in cases {
        let bad = file("bad", settings);
        // The valid file is not imported either.
        let refused = run(&config, &["sessions", "import", &good, &bad]);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{name}");
        assert!(refused.stderr.contains(named), "{name}: {}", refused.stderr);
        assert_eq!(ok(&config, &["sessions", "list"]), "", "{name}");
        let encoded = run(&config, &["encode", "-m", "deepseek/deepseek-chat", &bad]);
        assert_eq!((encoded.code, encoded.stdout.as_str()), (2, ""), "{name}");
        assert!(encoded.stderr.contains(named), "{name}: {}", encoded.stderr);
    }
    ok(&config, &["sessions", "import", &good]);
    assert_eq!(ok(&config, &["sessions", "list"]).lines().count(), 1);
}

#[test]
fn s2_a_profile_cannot_change_tools_or_permissions() {
    let config = TestConfig::new("profile-tools");
    fs::create_dir_all(config.0.join("profiles")).unwrap();
    for text in [
        "[tools]\nconfine = \"off\"\n",
        "[permissions]\nshell = \"allow\"\n",
        "[settings]\n\"tools.confine\" = \"off\"\n",
    ] {
        fs::write(config.0.join("profiles/loose.toml"), text).unwrap();
        let refused = run(&config, &["ask", "-m", "sim/kimi", "--profile", "loose", "hi"]);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{text}: {}", refused.stderr);
    }
}
