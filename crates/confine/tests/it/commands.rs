//! What confined commands can and cannot do, and that no process is left.

use std::fs;
use std::time::Duration;

use aside_confine::launch::Mechanism;
use aside_confine::{Approval, CommandEnd, CommandInput, RequestedAccess, spawn_supervisor};

use crate::support::{SandboxFolders, mechanisms, shell};

#[test]
fn k1_writes_stay_inside_and_normal_work_succeeds() {
    let folders = SandboxFolders::new("inside");
    let confine = folders.confine();
    for mechanism in mechanisms(&confine) {
        let (report, output) =
            shell(&confine, &mechanism, "echo one > a; mkdir -p b; mv a b/a; cat b/a; echo x >/dev/null; exit 3");
        assert_eq!((report.end, output.as_str()), (CommandEnd::Exited(3), "one\n"), "{mechanism:?}");
        let (report, output) = shell(&confine, &mechanism, "echo new > ../outside/file");
        let after = fs::read_to_string(folders.0.join("outside/file")).unwrap();
        match mechanism {
            Mechanism::None => assert_eq!((report.end, after.as_str()), (CommandEnd::Exited(0), "new\n")),
            Mechanism::Kernel { .. } | Mechanism::Bubblewrap { .. } | Mechanism::Seatbelt => {
                assert_ne!(report.end, CommandEnd::Exited(0), "{mechanism:?}: {output}");
                assert_eq!(after, "old\n", "{mechanism:?}");
            }
        }
        let (_, output) = shell(&confine, &mechanism, "cat ../home/.ssh/id");
        assert_eq!(output.contains("secret"), mechanism == Mechanism::None, "{mechanism:?}: {output}");
    }
}

/// An argument for `sleep` that no other process uses.
fn mark(number: usize) -> String {
    format!("85{:07}.{number:03}", std::process::id())
}

fn is_running(mark: &str) -> bool {
    let lines = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(mark))
}

#[test]
fn l4_everything_ends_when_the_parent_is_gone() {
    let folders = SandboxFolders::new("gone");
    let confine = folders.confine();
    for (at, mechanism) in mechanisms(&confine).into_iter().enumerate() {
        let mark = mark(at);
        let line = format!("trap '' TERM HUP; (setsid sleep {mark} &); sleep {mark}; sleep {mark}");
        let mut launch = confine
            .launch("sh", &["-c", &line], RequestedAccess::Standard, Approval::Automatic, CommandInput::Empty)
            .unwrap();
        launch.mechanism = mechanism.clone();
        let (mut child, control) = spawn_supervisor::start(&mut confine.helper().command(), &launch).unwrap();
        while !is_running(&mark) {
            std::thread::sleep(Duration::from_millis(5));
        }
        // As if this process had been killed.
        drop(control);
        child.wait().unwrap();
        assert!(!is_running(&mark), "{mechanism:?}");
    }
}

#[test]
fn l4_a_fork_bomb_ends_with_its_command() {
    let folders = SandboxFolders::new("forks");
    let confine = folders.confine();
    for (at, mechanism) in mechanisms(&confine).into_iter().enumerate() {
        let mark = mark(100 + at);
        let line =
            format!("for i in $(seq 60); do (setsid sh -c 'while :; do sleep {mark} & sleep 0.1; done' &); done");
        let (report, _) = shell(&confine, &mechanism, &line);
        assert!(report.killed_background && report.survivors.is_empty(), "{mechanism:?}: {report:?}");
        assert!(!is_running(&mark), "{mechanism:?}");
    }
}

#[test]
fn a_command_that_cannot_be_started_says_why() {
    let folders = SandboxFolders::new("unstarted");
    let confine = folders.confine();
    let launch = |program: &str, mechanism: Mechanism| {
        let mut launch =
            confine.launch(program, &[], RequestedAccess::Standard, Approval::Automatic, CommandInput::Empty).unwrap();
        launch.mechanism = mechanism;
        spawn_supervisor::run_and_wait(confine.helper().command(), &launch).unwrap().end
    };
    for mechanism in [Mechanism::None, Mechanism::Kernel { abi: 99 }] {
        let end = launch("/no/such/program", mechanism);
        assert!(matches!(&end, CommandEnd::NotStarted(why) if !why.is_empty()), "{end:?}");
    }
    // Nothing runs if the mechanism is unavailable.
    let missing = Mechanism::Bubblewrap { program: "/no/such/bwrap".into() };
    assert!(matches!(launch("true", missing), CommandEnd::NotStarted(_)));
}

#[test]
fn a_command_starts_with_default_signal_handling() {
    let folders = SandboxFolders::new("signals");
    let confine = folders.confine();
    for mechanism in mechanisms(&confine) {
        let (_, output) =
            shell(&confine, &mechanism, "grep -E '^Sig(Blk|Ign)' /proc/self/status; kill -TERM $$; echo lived");
        let (masks, lived) = output.split_at(output.find("lived").unwrap_or(output.len()));
        // HUP, INT, QUIT, PIPE, TERM and CHLD; the test runner may ignore others.
        let mask = |line: &str| u64::from_str_radix(line.split_once('\t').unwrap().1, 16).unwrap();
        assert!(masks.lines().all(|line| mask(line) & 0x15007 == 0), "{mechanism:?}: {output}");
        assert_eq!((masks.lines().count(), lived), (2, ""), "{mechanism:?}: {output}");
    }
}
