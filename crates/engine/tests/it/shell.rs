//! Commands: what they answer, and that nothing of them is left.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use aside_core::question::Tier;
use aside_engine::tools::{Mode, Permissions, Rules, Toolbox};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Nobody, Scratch, call, fails, ok};

#[tokio::test]
async fn l2_a_command_answers_with_its_output_and_exit_code() {
    let scratch = Scratch::new("shell");
    scratch.file("a.txt", "");
    let shell = |command: &str| json!({ "command": command });
    for tier in scratch.tiers() {
        let tools = scratch.tools_at(tier, &[], Mode::AllowAll);
        assert_eq!(ok(&tools, "shell", shell("ls")).await, "a.txt\n[exit code 0]", "{tier}");
        assert_eq!(ok(&tools, "shell", shell("true")).await, "[exit code 0]", "{tier}");
        let mixed = shell("echo one; echo two >&2; echo three; exit 3");
        assert_eq!(fails(&tools, "shell", mixed).await, "one\ntwo\nthree\n[exit code 3]", "{tier}");
        // bubblewrap answers as a shell does.
        let killed = if tier == Tier::Strong { "[exit code 137]" } else { "[ended by signal 9]" };
        assert_eq!(fails(&tools, "shell", shell("kill -9 $$")).await, killed, "{tier}");
        // Without input nothing waits for it.
        let said = ok(&tools, "shell", shell("cat; printf 'a\\377b'")).await;
        assert_eq!(said, "a\u{fffd}b\n[exit code 0]", "{tier}");
    }
}

#[tokio::test]
async fn l4_huge_output_keeps_its_head_and_tail_and_says_so() {
    let scratch = Scratch::new("huge-output");
    let tools = scratch.tools(Mode::AllowAll);
    let said = ok(&tools, "shell", json!({"command": "echo first; yes | head -c 50000000; echo last"})).await;
    assert!(said.starts_with("first\ny\n") && said.ends_with("y\nlast\n[exit code 0]"));
    assert!(
        said.contains("\n[… 49967243 bytes left out …]\n"),
        "{:?}",
        said.lines().find(|line| line.contains("left"))
    );
    assert!(said.len() < 33 * 1024, "{}", said.len());
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
    let scratch = Scratch::new("hung");
    for tier in scratch.tiers() {
        let tools = scratch.tools_at(tier, &[], Mode::AllowAll);
        let run = async |(at, (name, command)): (usize, (&str, &str))| {
            let mark = mark(at);
            let command = command.replace("MARK", &mark);
            let said = fails(&tools, "shell", json!({"command": command, "timeout": 1})).await;
            assert_eq!(said, "begun\n[ended after 1 seconds, its limit]", "{tier} {name}");
            gone(&mark, name);
        };
        futures_util::future::join_all(cases.into_iter().enumerate().map(run)).await;
    }
}

#[tokio::test]
async fn l4_a_cancelled_command_is_ended_and_tells_what_it_had_said() {
    let scratch = Scratch::new("cancelled");
    let tools = scratch.tools(Mode::AllowAll);
    let mark = mark(100);
    let command = call(
        "shell",
        &json!({"command": format!("echo begun; (sleep {mark}; sleep {mark}) & sleep {mark} & touch begun; wait")}),
    );
    let cancel = CancellationToken::new();
    let stop = async {
        appears(&scratch.root().join("begun")).await;
        cancel.cancel();
    };
    let (result, ()) = futures_util::join!(tools.run(&command, &Nobody, &cancel), stop);
    assert_eq!((result.content.as_str(), result.is_error), ("begun\n[ended by the user]", true));
    gone(&mark, "cancelled");
}

#[tokio::test]
async fn l4_a_command_that_nobody_waits_for_any_more_is_ended() {
    let scratch = Scratch::new("dropped");
    let tools = scratch.tools(Mode::AllowAll);
    let mark = mark(200);
    let command = call("shell", &json!({"command": format!("setsid sleep {mark} & sleep {mark} & touch begun; wait")}));
    let (cancel, begun) = (CancellationToken::new(), scratch.root().join("begun"));
    tokio::select! {
        result = tools.run(&command, &Nobody, &cancel) => panic!("it ended by itself: {result:?}"),
        () = appears(&begun) => (),
    }
    gone(&mark, "dropped");
}

#[tokio::test]
async fn l4_what_a_command_leaves_in_the_background_is_ended_and_said() {
    let scratch = Scratch::new("background");
    #[rustfmt::skip]
    let cases = [
        ("holds the output", "sleep MARK & echo begun"),
        ("holds nothing",    "sleep MARK >/dev/null 2>&1 & echo begun"),
        ("forks twice",      "(setsid sh -c 'sleep MARK; true' >/dev/null 2>&1 &) ; echo begun"),
        ("forgets its mark", "env -i setsid sleep MARK >/dev/null 2>&1 & echo begun"),
    ];
    for tier in scratch.tiers() {
        let tools = scratch.tools_at(tier, &[], Mode::AllowAll);
        for (at, (name, command)) in cases.into_iter().enumerate() {
            let mark = mark(300 + at);
            let command = command.replace("MARK", &mark);
            let said = ok(&tools, "shell", json!({ "command": command })).await;
            let expected = "begun\n[what it left in the background was ended]\n[exit code 0]";
            assert_eq!(said, expected, "{tier} {name}");
            gone(&mark, name);
        }
    }
}

#[tokio::test]
async fn l3_a_command_does_not_see_hidden_variables() {
    let scratch = Scratch::new("variables");
    // Set for every test by cargo.
    let work = scratch.work().hiding(["CARGO_PKG_NAME".to_owned()]);
    let tools = Toolbox::standard(&work, Permissions::new(Rules::new(), Mode::AllowAll));
    let command = "echo \"[$CARGO_PKG_NAME] [$GIT_TERMINAL_PROMPT]\"; test -n \"$CARGO_PKG_VERSION\"";
    assert_eq!(ok(&tools, "shell", json!({ "command": command })).await, "[] [0]\n[exit code 0]");
}

/// An argument for `sleep` that no other process has.
fn mark(number: usize) -> String {
    format!("86{:07}.{number:03}", std::process::id())
}

/// Fails while a process with the mark lives. A killed one needs a moment.
fn gone(mark: &str, name: &str) {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let left = living(mark);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{name}: still running: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn living(mark: &str) -> Vec<String> {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    let lines = processes.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(mark)).collect()
}

async fn appears(path: &std::path::Path) {
    while !path.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn the_look_for_leftovers_sees_a_living_process() {
    let mark = mark(999);
    let mut child = std::process::Command::new("sleep").arg(&mark).stdout(Stdio::null()).spawn().unwrap();
    // Its command line can be read a moment after it is started.
    let deadline = Instant::now() + Duration::from_secs(2);
    while living(&mark).is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    let seen = living(&mark);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(seen, [format!("sleep {mark} ")]);
    gone(&mark, "killed");
}
