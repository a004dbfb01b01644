//! What confined commands can do, what they cannot, and that nothing is left.

use std::fs;
use std::time::Duration;

use aside_confine::launch::Barrier;
use aside_confine::{Approval, End, Input, Want, run};

use crate::support::{Scratch, barriers, shell};

#[test]
fn k1_writes_stay_inside_and_work_goes_on() {
    let scratch = Scratch::new("inside");
    let confine = scratch.confine();
    for barrier in barriers(&confine) {
        let (report, said) =
            shell(&confine, &barrier, "echo one > a; mkdir -p b; mv a b/a; cat b/a; echo x >/dev/null; exit 3");
        assert_eq!((report.end, said.as_str()), (End::Exited(3), "one\n"), "{barrier:?}");
        let (report, said) = shell(&confine, &barrier, "echo new > ../outside/file");
        let after = fs::read_to_string(scratch.0.join("outside/file")).unwrap();
        match barrier {
            Barrier::None => assert_eq!((report.end, after.as_str()), (End::Exited(0), "new\n")),
            Barrier::Kernel { .. } | Barrier::Bubblewrap { .. } | Barrier::Seatbelt => {
                assert_ne!(report.end, End::Exited(0), "{barrier:?}: {said}");
                assert_eq!(after, "old\n", "{barrier:?}");
            }
        }
        let (_, said) = shell(&confine, &barrier, "cat ../home/.ssh/id");
        assert_eq!(said.contains("secret"), barrier == Barrier::None, "{barrier:?}: {said}");
    }
}

/// An argument for `sleep` that no other process has.
fn mark(number: usize) -> String {
    format!("85{:07}.{number:03}", std::process::id())
}

fn is_running(mark: &str) -> bool {
    let lines = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(mark))
}

#[test]
fn l4_when_whoever_started_it_is_gone_everything_ends() {
    let scratch = Scratch::new("gone");
    let confine = scratch.confine();
    for (at, barrier) in barriers(&confine).into_iter().enumerate() {
        let mark = mark(at);
        let line = format!("trap '' TERM HUP; (setsid sleep {mark} &); sleep {mark}; sleep {mark}");
        let mut launch = confine.launch("sh", &["-c", &line], Want::Usual, Approval::Standing, Input::Nothing).unwrap();
        launch.barrier = barrier.clone();
        let (mut child, control) = run::start(&mut confine.helper().command(), &launch).unwrap();
        while !is_running(&mark) {
            std::thread::sleep(Duration::from_millis(5));
        }
        // As if this process had been killed.
        drop(control);
        child.wait().unwrap();
        assert!(!is_running(&mark), "{barrier:?}");
    }
}

#[test]
fn l4_a_fork_bomb_ends_with_its_command() {
    let scratch = Scratch::new("forks");
    let confine = scratch.confine();
    for (at, barrier) in barriers(&confine).into_iter().enumerate() {
        let mark = mark(100 + at);
        let line =
            format!("for i in $(seq 60); do (setsid sh -c 'while :; do sleep {mark} & sleep 0.1; done' &); done");
        let (report, _) = shell(&confine, &barrier, &line);
        assert!(report.ended_others && report.left.is_empty(), "{barrier:?}: {report:?}");
        assert!(!is_running(&mark), "{barrier:?}");
    }
}

#[test]
fn a_command_that_cannot_be_started_says_why() {
    let scratch = Scratch::new("unstarted");
    let confine = scratch.confine();
    let launch = |program: &str, barrier: Barrier| {
        let mut launch = confine.launch(program, &[], Want::Usual, Approval::Standing, Input::Nothing).unwrap();
        launch.barrier = barrier;
        run::pass_through(confine.helper().command(), &launch).unwrap().end
    };
    for barrier in [Barrier::None, Barrier::Kernel { abi: 99 }] {
        let end = launch("/no/such/program", barrier);
        assert!(matches!(&end, End::NotStarted(why) if !why.is_empty()), "{end:?}");
    }
    // Nothing runs where its barrier cannot be had.
    let missing = Barrier::Bubblewrap { program: "/no/such/bwrap".into() };
    assert!(matches!(launch("true", missing), End::NotStarted(_)));
}

#[test]
fn a_command_begins_with_every_signal_as_usual() {
    let scratch = Scratch::new("signals");
    let confine = scratch.confine();
    for barrier in barriers(&confine) {
        let (_, said) =
            shell(&confine, &barrier, "grep -E '^Sig(Blk|Ign)' /proc/self/status; kill -TERM $$; echo lived");
        let (masks, lived) = said.split_at(said.find("lived").unwrap_or(said.len()));
        // HUP, INT, QUIT, PIPE, TERM and CHLD; whoever runs the tests may ignore others.
        let mask = |line: &str| u64::from_str_radix(line.split_once('\t').unwrap().1, 16).unwrap();
        assert!(masks.lines().all(|line| mask(line) & 0x15007 == 0), "{barrier:?}: {said}");
        assert_eq!((masks.lines().count(), lived), (2, ""), "{barrier:?}: {said}");
    }
}
