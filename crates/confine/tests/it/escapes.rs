//! Escape attempts, one row each. `scripts/sandbox` has many more, as other users and on
//! other machines; these need only a shell.

use std::fs;
use std::os::unix::net::UnixListener;

use aside_confine::launch::Mechanism;
use aside_confine::{CommandEnd, RequestedAccess};

use crate::support::{SandboxFolders, mechanisms, shell, shell_with_access};

#[test]
fn k3_no_escape_attempt_succeeds_when_confined() {
    // Name, command, and the path that exists if the attempt succeeded.
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
    let folders = SandboxFolders::new("escapes");
    let confine = folders.confine();
    for mechanism in mechanisms(&confine) {
        for (name, line, made) in rows {
            shell(&confine, &mechanism, line);
            let made = folders.0.join(made);
            assert_eq!(made.exists(), mechanism == Mechanism::None, "{mechanism:?}: {name}");
            drop(fs::remove_file(&made).or_else(|_| fs::remove_dir(&made)));
            drop(fs::remove_dir_all(folders.root()));
            fs::create_dir(folders.root()).unwrap();
        }
    }
}

#[test]
fn k3_a_link_in_place_of_an_open_folder_grants_no_access() {
    let folders = SandboxFolders::new("swapped");
    let confine = folders.confine();
    for mechanism in mechanisms(&confine).into_iter().filter(|mechanism| *mechanism != Mechanism::None) {
        // An earlier command could do this if the parent folder is writable.
        fs::rename(folders.root(), folders.0.join("moved")).unwrap();
        std::os::unix::fs::symlink("outside", folders.root()).unwrap();
        shell(&confine, &mechanism, "echo x > new; echo x > ../outside/new");
        assert!(!folders.0.join("outside/new").exists(), "{mechanism:?}");
        fs::remove_file(folders.root()).unwrap();
        fs::rename(folders.0.join("moved"), folders.root()).unwrap();
    }
}

#[test]
fn k1_a_cache_that_became_a_link_grants_no_access() {
    let folders = SandboxFolders::new("cache-link");
    let mut paths = folders.paths();
    paths.caches = vec![folders.root().join("target")];
    let confine = folders.confine_in(paths);
    std::os::unix::fs::symlink("../outside", folders.root().join("target")).unwrap();
    for mechanism in mechanisms(&confine).into_iter().filter(|mechanism| *mechanism != Mechanism::None) {
        shell(&confine, &mechanism, "echo x > target/new; echo x > ../outside/new");
        assert!(!folders.0.join("outside/new").exists(), "{mechanism:?}");
    }
}

#[test]
fn k1_network_and_local_sockets_are_closed_and_can_be_opened() {
    // bash opens connections through a path.
    if !std::path::Path::new("/bin/bash").exists() {
        return assert!(!std::path::Path::new("/usr/bin/bash").exists(), "bash is elsewhere");
    }
    let folders = SandboxFolders::new("network");
    let confine = folders.confine();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!("bash -c 'echo x > /dev/tcp/127.0.0.1/{}'", listener.local_addr().unwrap().port());
    let _socket = UnixListener::bind("/tmp/".to_owned() + &format!("aside-it-{}", std::process::id())).unwrap();
    for mechanism in mechanisms(&confine) {
        let (report, output) = shell(&confine, &mechanism, &line);
        assert_eq!(report.end == CommandEnd::Exited(0), mechanism == Mechanism::None, "{mechanism:?}: {output}");
        let (report, output) = shell_with_access(&confine, &mechanism, &line, RequestedAccess::Network);
        assert_eq!(report.end, CommandEnd::Exited(0), "{mechanism:?}: {output}");
    }
    fs::remove_file(format!("/tmp/aside-it-{}", std::process::id())).unwrap();
}

#[test]
fn k4_a_command_has_no_terminal_and_no_inherited_files() {
    let folders = SandboxFolders::new("files");
    let confine = folders.confine();
    for mechanism in mechanisms(&confine) {
        let (_, output) = shell(&confine, &mechanism, "ls /proc/self/fd | tr '\\n' ' '; cat; tty; echo x > /dev/tty");
        assert!(output.starts_with("0 1 2 3 not a tty\n"), "{mechanism:?}: {output}");
        assert!(output.lines().last().is_some_and(|line| line.contains("/dev/tty")), "{mechanism:?}: {output}");
    }
}
