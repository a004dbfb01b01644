//! What `/undo` and `/redo` say and do.

use std::fs;
use std::fs::File;

use aside_core::tool_mode::ToolMode;
use aside_front::{Command, CommandOutput, UndoPart, Update};
use aside_session::{SessionHandle, SessionOptions, spawn};

use crate::handle::{options, until_ready};
use crate::support::TestFolders;

/// A session that changes files without a question.
fn session(folders: &TestFolders) -> SessionHandle {
    spawn(SessionOptions { tool_mode: Some(ToolMode::AcceptEdits), ..options(folders) }).unwrap()
}

/// What a command said.
fn said(session: &SessionHandle, command: Command) -> String {
    session.commands.send(command).unwrap();
    let lines = until_ready(&session.updates).into_iter().filter_map(|update| match update {
        Update::CommandOutput(CommandOutput::Line(line)) => Some(line),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn write(session: &SessionHandle, name: &str) {
    let prompt = format!(r#"sim: call write {{"path":"{name}","content":"model"}}"#);
    said(session, Command::Prompt(prompt));
}

#[test]
fn t21_undo_names_a_file_that_was_too_large_to_be_kept() {
    for undo in [Command::Undo, Command::UndoOnly { part: UndoPart::Files, force: false }] {
        let folders = TestFolders::new("undo-large");
        File::create(folders.project().join("big.txt")).unwrap().set_len(17 << 20).unwrap();
        let session = session(&folders);
        write(&session, "big.txt");
        assert_eq!(fs::read_to_string(folders.project().join("big.txt")).unwrap(), "model");
        let said = said(&session, undo);
        assert!(said.contains("big.txt: too large to be kept, stays as it is"), "{said}");
        drop(session.commands);
        session.session.join().unwrap();
    }
}

#[test]
fn t21_redo_removes_a_file_again_that_was_gone_before_force() {
    let folders = TestFolders::new("undo-gone");
    let file = folders.project().join("a.txt");
    fs::write(&file, "mine").unwrap();
    let session = session(&folders);
    write(&session, "a.txt");
    fs::remove_file(&file).unwrap();
    let undone = said(&session, Command::UndoOnly { part: UndoPart::Files, force: true });
    assert_eq!(undone, "a.txt: back as it was\n/redo takes this back");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(said(&session, Command::Redo), "a.txt: removed\nredone");
    assert!(!file.exists());
    drop(session.commands);
    session.session.join().unwrap();
}
