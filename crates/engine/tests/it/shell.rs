//! The results of commands, and that no process is left.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use aside_core::permission_question::Tier;
use aside_engine::tools::{PermissionMode, PermissionRules, Permissions, Toolbox};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Nobody, TestDir, call, fails, ok};

#[tokio::test]
async fn l2_a_command_returns_its_output_and_exit_code() {
    let test_dir = TestDir::new("shell");
    test_dir.file("a.txt", "");
    let shell = |command: &str| json!({ "command": command });
    for tier in test_dir.tiers() {
        let tools = test_dir.tools_at(tier, &[], PermissionMode::AllowAll);
        assert_eq!(ok(&tools, "shell", shell("ls")).await, "a.txt\n[exit code 0]", "{tier}");
        assert_eq!(ok(&tools, "shell", shell("true")).await, "[exit code 0]", "{tier}");
        let mixed = shell("echo one; echo two >&2; echo three; exit 3");
        assert_eq!(fails(&tools, "shell", mixed).await, "one\ntwo\nthree\n[exit code 3]", "{tier}");
        // bubblewrap reports signals as a shell does.
        let killed = if tier == Tier::Strong { "[exit code 137]" } else { "[ended by signal 9]" };
        assert_eq!(fails(&tools, "shell", shell("kill -9 $$")).await, killed, "{tier}");
        // Standard input is empty, so `cat` ends at once.
        let output = ok(&tools, "shell", shell("cat; printf 'a\\377b'")).await;
        assert_eq!(output, "a\u{fffd}b\n[exit code 0]", "{tier}");
    }
}

#[tokio::test]
async fn l4_huge_output_keeps_its_head_and_tail_and_says_so() {
    let test_dir = TestDir::new("huge-output");
    let tools = test_dir.tools(PermissionMode::AllowAll);
    let output = ok(&tools, "shell", json!({"command": "echo first; yes | head -c 50000000; echo last"})).await;
    assert!(output.starts_with("first\ny\n") && output.ends_with("y\nlast\n[exit code 0]"));
    assert!(
        output.contains("\n[… 49967243 bytes with 24983621 line ends left out …]\n"),
        "{:?}",
        output.lines().find(|line| line.contains("left"))
    );
    assert!(output.len() < 33 * 1024, "{}", output.len());
}

#[tokio::test]
async fn l4_a_hung_command_is_ended_with_everything_it_started() {
    #[rustfmt::skip]
    let cases = [
        ("plain",         "echo begun; sleep MARK"),
        ("grandchildren", "echo begun; (sh -c 'sleep MARK & sleep MARK; true' & sleep MARK) ; true"),
        ("deaf",          "trap '' TERM; echo begun; sleep MARK; sleep MARK"),
        ("escaped",       "echo begun; setsid sleep MARK"),
        ("orphaned",      "echo begun; (setsid sh -c 'sleep MARK; true' &) ; sleep MARK"),
        ("nested",        "echo begun; export ASIDE_COMMAND=\"$ASIDE_COMMAND,x\"; setsid sleep MARK & sleep MARK"),
        ("daemon",        "echo begun; (setsid sh -c 'trap \"\" TERM HUP; sleep MARK' </dev/null >/dev/null 2>&1 &) & wait; sleep MARK"),
        ("floods",        "echo begun; exec >/dev/null; sleep MARK & yes"),
    ];
    let test_dir = TestDir::new("hung");
    for tier in test_dir.tiers() {
        let tools = test_dir.tools_at(tier, &[], PermissionMode::AllowAll);
        let run = async |(at, (name, command)): (usize, (&str, &str))| {
            let mark = mark(at);
            let command = command.replace("MARK", &mark);
            let output = fails(&tools, "shell", json!({"command": command, "timeout": 1})).await;
            assert_eq!(output, "begun\n[timed out after 1 second]", "{tier} {name}");
            assert_gone(&mark, name);
        };
        futures_util::future::join_all(cases.into_iter().enumerate().map(run)).await;
    }
}

#[tokio::test]
async fn l4_a_cancelled_command_is_ended_and_returns_its_output() {
    let test_dir = TestDir::new("cancelled");
    let tools = test_dir.tools(PermissionMode::AllowAll);
    let mark = mark(100);
    let command = call(
        "shell",
        &json!({"command": format!("echo begun; (sleep {mark}; sleep {mark}) & sleep {mark} & touch begun; wait")}),
    );
    let cancel = CancellationToken::new();
    let stop = async {
        wait_for_file(&test_dir.root().join("begun")).await;
        cancel.cancel();
    };
    let (result, ()) = futures_util::join!(tools.run(&command, &Nobody, &cancel), stop);
    assert_eq!((result.content.as_str(), result.is_error), ("begun\n[ended by the user]", true));
    assert_gone(&mark, "cancelled");
}

#[tokio::test]
async fn l4_a_dropped_command_is_ended() {
    let test_dir = TestDir::new("dropped");
    let tools = test_dir.tools(PermissionMode::AllowAll);
    let mark = mark(200);
    let command = call("shell", &json!({"command": format!("setsid sleep {mark} & sleep {mark} & touch begun; wait")}));
    let (cancel, begun) = (CancellationToken::new(), test_dir.root().join("begun"));
    tokio::select! {
        result = tools.run(&command, &Nobody, &cancel) => panic!("it ended by itself: {result:?}"),
        () = wait_for_file(&begun) => (),
    }
    assert_gone(&mark, "dropped");
}

#[tokio::test]
async fn l4_background_processes_of_a_command_are_ended_and_reported() {
    let test_dir = TestDir::new("background");
    #[rustfmt::skip]
    let cases = [
        ("holds the output", "sleep MARK & echo begun"),
        ("holds nothing",    "sleep MARK >/dev/null 2>&1 & echo begun"),
        ("forks twice",      "(setsid sh -c 'sleep MARK; true' >/dev/null 2>&1 &) ; echo begun"),
        ("forgets its mark", "env -i setsid sleep MARK >/dev/null 2>&1 & echo begun"),
    ];
    for tier in test_dir.tiers() {
        let tools = test_dir.tools_at(tier, &[], PermissionMode::AllowAll);
        for (at, (name, command)) in cases.into_iter().enumerate() {
            let mark = mark(300 + at);
            let command = command.replace("MARK", &mark);
            let output = ok(&tools, "shell", json!({ "command": command })).await;
            let expected = "begun\n[background processes were killed]\n[exit code 0]";
            assert_eq!(output, expected, "{tier} {name}");
            assert_gone(&mark, name);
        }
    }
}

#[tokio::test]
async fn l3_a_command_does_not_see_hidden_variables() {
    let test_dir = TestDir::new("variables");
    // Cargo sets it for every test.
    let work = test_dir.work().with_hidden_variables(["CARGO_PKG_NAME".to_owned()]);
    let tools = Toolbox::standard(&work, Permissions::new(PermissionRules::new(), PermissionMode::AllowAll));
    let command = "echo \"[$CARGO_PKG_NAME] [$GIT_TERMINAL_PROMPT]\"; test -n \"$CARGO_PKG_VERSION\"";
    assert_eq!(ok(&tools, "shell", json!({ "command": command })).await, "[] [0]\n[exit code 0]");
}

/// An argument for `sleep` that no other process has.
fn mark(number: usize) -> String {
    format!("86{:07}.{number:03}", std::process::id())
}

/// Fails if a process with the mark survives. A killed process needs a moment to end.
fn assert_gone(mark: &str, name: &str) {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let left = processes_with_mark(mark);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{name}: still running: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn processes_with_mark(mark: &str) -> Vec<String> {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    let lines = processes.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(mark)).collect()
}

/// The helpers that wait in a folder for their command.
fn helpers_in(folder: &std::path::Path) -> Vec<i32> {
    let folders = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    folders
        .filter(|process| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == folder))
        .filter_map(|process| process.file_name()?.to_str()?.parse().ok())
        .collect()
}

/// The helper that waits, once the one of the last command has ended.
async fn waiting_helper(folder: &std::path::Path) -> i32 {
    let mut waiting = None;
    until("one helper waits", || {
        if let [one] = helpers_in(folder)[..] {
            waiting = Some(one);
        }
        waiting.is_some()
    })
    .await;
    waiting.unwrap()
}

#[tokio::test]
async fn k1_the_next_helper_waits_is_used_and_ends_with_the_session() {
    let test_dir = TestDir::new("next-helper");
    let root = test_dir.root().canonicalize().unwrap();
    let tools = test_dir.tools(PermissionMode::AllowAll);
    assert!(helpers_in(&root).is_empty(), "none is started before the first command");
    let parent = || async {
        let text = ok(&tools, "shell", json!({ "command": "echo $PPID" })).await;
        text.lines().next().unwrap().parse::<i32>().unwrap()
    };
    parent().await;
    for _ in 0..3 {
        let waiting = waiting_helper(&root).await;
        assert_eq!(parent().await, waiting, "the command runs under the helper that waited");
    }
    // Another command may have killed it. The next command must not notice.
    let waiting = waiting_helper(&root).await;
    let pid = rustix::process::Pid::from_raw(waiting).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    until("the helper was killed", || fs::read_link(format!("/proc/{waiting}/cwd")).is_err()).await;
    assert_ne!(parent().await, waiting);
    drop(tools);
    until("no helper is left", || helpers_in(&root).is_empty()).await;
}

async fn wait_for_file(path: &std::path::Path) {
    until("the file is there", || path.exists()).await;
}

/// Waits for a condition; long enough for a busy machine.
async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(40);
    while !condition() {
        assert!(Instant::now() < deadline, "not so after 40 s: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn the_leftover_check_finds_a_running_process() {
    let mark = mark(999);
    let mut child = std::process::Command::new("sleep").arg(&mark).stdout(Stdio::null()).spawn().unwrap();
    // The command line can be read only a moment after the start.
    let deadline = Instant::now() + Duration::from_secs(2);
    while processes_with_mark(&mark).is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    let seen = processes_with_mark(&mark);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(seen, [format!("sleep {mark} ")]);
    assert_gone(&mark, "killed");
}
