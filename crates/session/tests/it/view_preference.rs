//! The view of thinking that the user chose is in the config of the next session.

use std::fs;
use std::time::{Duration, Instant};

use aside_core::settings::ThinkingDisplay;
use aside_front::{Command, Update};
use aside_session::{SessionHandle, spawn};

use crate::handle::{options, until_ready};
use crate::support::TestFolders;

fn config(folders: &TestFolders) -> String {
    fs::read_to_string(folders.user().config.unwrap().join("config.toml")).unwrap()
}

/// Chooses every view once, as Ctrl+T does.
fn choose_all(session: &SessionHandle) {
    for view in ThinkingDisplay::ALL.iter().copied() {
        session.commands.send(Command::View(view)).unwrap();
        let updates = until_ready(&session.updates);
        let takes_effect = |update: &Update| matches!(update, Update::Status(status) if status.view == view);
        assert!(updates.iter().any(takes_effect), "{view}: {updates:?}");
    }
}

#[test]
fn t3_the_view_takes_effect_at_once_and_is_written_once_after_the_last_press() {
    let folders = TestFolders::new("view-quiet");
    let before = config(&folders);
    let session = spawn(options(&folders)).unwrap();
    let began = Instant::now();
    choose_all(&session);
    // On a machine that is too slow for this, the check says nothing.
    let unwritten = config(&folders) == before;
    assert!(unwritten || began.elapsed() > Duration::from_secs(1), "it was written while the user pressed keys");
    let last = ThinkingDisplay::ALL.last().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !config(&folders).contains(&format!("\"reasoning.display\" = \"{last}\"")) {
        assert!(Instant::now() < deadline, "it is not written: {}", config(&folders));
        std::thread::sleep(Duration::from_millis(20));
    }
    // It is written once: a change by somebody else stays.
    let mine = before + "# mine\n";
    fs::write(folders.user().config.unwrap().join("config.toml"), &mine).unwrap();
    let SessionHandle { commands, session, .. } = session;
    drop(commands);
    session.join();
    assert_eq!(config(&folders), mine);
}

#[test]
fn t3_a_session_that_ends_before_the_view_is_written_writes_it() {
    for during_a_turn in [false, true] {
        let folders = TestFolders::new(&format!("view-quit-{during_a_turn}"));
        let session = spawn(options(&folders)).unwrap();
        if during_a_turn {
            session.commands.send(Command::Prompt("sim: think tokens=100000 rate=50".to_owned())).unwrap();
            session.updates.iter().find(|update| matches!(update, Update::Grew { .. })).unwrap();
        }
        session.commands.send(Command::View(ThinkingDisplay::Full)).unwrap();
        session.commands.send(Command::Quit).unwrap();
        session.session.join();
        assert!(config(&folders).contains("\"full\""), "during a turn: {during_a_turn}: {}", config(&folders));
    }
}
