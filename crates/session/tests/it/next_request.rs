//! What a session says about its next request.

use aside_front::{Command, NextRequest, Update};
use aside_session::{SessionChoice, SessionHandle, SessionOptions, spawn};

use crate::handle::{options, until_ready};
use crate::support::TestFolders;

/// The next request as of the last status that names it.
fn next_request(updates: &[Update]) -> NextRequest {
    let named = updates.iter().rev().find_map(|update| match update {
        Update::Status(status) => status.next.clone(),
        _ => None,
    });
    named.unwrap()
}

fn after(session: &SessionHandle, command: Command) -> NextRequest {
    session.commands.send(command).unwrap();
    next_request(&until_ready(&session.updates))
}

#[test]
fn c3_a_count_from_before_a_summary_is_not_shown_after_undo_or_resume() {
    let folders = TestFolders::new("count-before-summary");
    let session = spawn(options(&folders)).unwrap();
    let prompt = || Command::Prompt(format!("sim: plain\n{}", "a long message ".repeat(200)));
    let ask = || {
        session.commands.send(prompt()).unwrap();
        until_ready(&session.updates);
    };
    (0..5).for_each(|_| ask());
    let before = after(&session, Command::Undo);
    assert!(before.is_exact, "the provider counted what is left");
    let compacted = after(&session, Command::Compact);
    assert!(!compacted.is_exact && compacted.tokens < before.tokens, "{compacted:?}, {before:?}");
    ask();
    let undone = after(&session, Command::Undo);
    assert!(!undone.is_exact && undone.tokens < before.tokens, "{undone:?}, {before:?}");
    drop(session.commands);
    let id = session.session.join().unwrap();
    let choice = SessionChoice::Named(id.to_string());
    let resumed = spawn(SessionOptions { choice, ..options(&folders) }).unwrap();
    drop(resumed.commands);
    resumed.session.join().unwrap();
    let resumed = next_request(&resumed.updates.iter().collect::<Vec<_>>());
    assert!(!resumed.is_exact && resumed.tokens < before.tokens, "{resumed:?}, {before:?}");
}
