//! Attempts to get out, one row each. `scripts/sandbox` has many more, as other
//! users and on other machines; these need nothing but a shell.

use std::fs;
use std::os::unix::net::UnixListener;

use aside_confine::launch::Barrier;
use aside_confine::{End, Want};

use crate::support::{Scratch, barriers, shell, shell_wanting};

#[test]
fn k3_no_attempt_of_the_table_succeeds_where_it_is_confined() {
    // Attempt, and what is there outside if it succeeded.
    #[rustfmt::skip]
    let rows = [
        ("write",                 "echo x > ../outside/new",                              "outside/new"),
        ("folder",                "mkdir ../outside/new",                                 "outside/new"),
        ("link out",              "ln -s ../outside l; echo x > l/new",                   "outside/new"),
        ("rename out",            "echo x > f; mv f ../outside/new",                      "outside/new"),
        ("link to what is there", "ln ../outside/file f && echo x > f && echo x > ../outside/new", "outside/new"),
        ("the root of itself",    "echo x > /proc/self/root$PWD/../outside/new",          "outside/new"),
        ("home",                  "echo x > ../home/.profile",                            "home/.profile"),
        ("a hook",                "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",  "root/.git/hooks/pre-commit"),
        ("instructions",          "echo x > AGENTS.md",                                   "root/AGENTS.md"),
        ("an editor's tasks",     "mkdir -p .vscode; echo x > .vscode/tasks.json",        "root/.vscode/tasks.json"),
    ];
    let scratch = Scratch::new("escapes");
    let confine = scratch.confine();
    for barrier in barriers(&confine) {
        for (name, line, made) in rows {
            shell(&confine, &barrier, line);
            let made = scratch.0.join(made);
            assert_eq!(made.exists(), barrier == Barrier::None, "{barrier:?}: {name}");
            drop(fs::remove_file(&made).or_else(|_| fs::remove_dir(&made)));
            drop(fs::remove_dir_all(scratch.root()));
            fs::create_dir(scratch.root()).unwrap();
        }
    }
}

#[test]
fn k3_a_link_in_place_of_an_opened_folder_opens_nothing() {
    let scratch = Scratch::new("swapped");
    let confine = scratch.confine();
    for barrier in barriers(&confine).into_iter().filter(|barrier| *barrier != Barrier::None) {
        // What an earlier command could do where the folder lies in a writable one.
        fs::rename(scratch.root(), scratch.0.join("moved")).unwrap();
        std::os::unix::fs::symlink("outside", scratch.root()).unwrap();
        shell(&confine, &barrier, "echo x > new; echo x > ../outside/new");
        assert!(!scratch.0.join("outside/new").exists(), "{barrier:?}");
        fs::remove_file(scratch.root()).unwrap();
        fs::rename(scratch.0.join("moved"), scratch.root()).unwrap();
    }
}

#[test]
fn k1_a_cache_that_became_a_link_opens_nothing() {
    let scratch = Scratch::new("cache-link");
    let mut places = scratch.places();
    places.caches = vec![scratch.root().join("target")];
    let confine = scratch.confine_in(places);
    std::os::unix::fs::symlink("../outside", scratch.root().join("target")).unwrap();
    for barrier in barriers(&confine).into_iter().filter(|barrier| *barrier != Barrier::None) {
        shell(&confine, &barrier, "echo x > target/new; echo x > ../outside/new");
        assert!(!scratch.0.join("outside/new").exists(), "{barrier:?}");
    }
}

#[test]
fn k1_network_and_local_sockets_are_closed_and_can_be_opened() {
    // bash opens connections by a path.
    if !std::path::Path::new("/bin/bash").exists() {
        return assert!(!std::path::Path::new("/usr/bin/bash").exists(), "bash is elsewhere");
    }
    let scratch = Scratch::new("network");
    let confine = scratch.confine();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!("bash -c 'echo x > /dev/tcp/127.0.0.1/{}'", listener.local_addr().unwrap().port());
    let _socket = UnixListener::bind("/tmp/".to_owned() + &format!("aside-it-{}", std::process::id())).unwrap();
    for barrier in barriers(&confine) {
        let (report, said) = shell(&confine, &barrier, &line);
        assert_eq!(report.end == End::Exited(0), barrier == Barrier::None, "{barrier:?}: {said}");
        let (report, said) = shell_wanting(&confine, &barrier, &line, Want::Network);
        assert_eq!(report.end, End::Exited(0), "{barrier:?}: {said}");
    }
    fs::remove_file(format!("/tmp/aside-it-{}", std::process::id())).unwrap();
}

#[test]
fn k4_a_command_has_no_terminal_and_no_file_of_others() {
    let scratch = Scratch::new("files");
    let confine = scratch.confine();
    for barrier in barriers(&confine) {
        let (_, said) = shell(&confine, &barrier, "ls /proc/self/fd | tr '\\n' ' '; cat; tty; echo x > /dev/tty");
        assert!(said.starts_with("0 1 2 3 not a tty\n"), "{barrier:?}: {said}");
        assert!(said.lines().last().is_some_and(|line| line.contains("/dev/tty")), "{barrier:?}: {said}");
    }
}
