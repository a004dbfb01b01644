//! `/undo`, `/redo` and `/diff` with the files that tools changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::permission_questions::answer;
use super::scripted_provider::{ScriptedProvider, ScriptedStep};
use super::test_folders::TestFolders;
use super::{ESC, Terminal};

const MODEL: &[&str] = &["-m", "played/some-model", "--mode", "accept-edits"];

fn write(id: &'static str, path: &str, content: &str) -> ScriptedStep {
    ScriptedStep::Call { id, name: "write", arguments: json!({"path": path, "content": content}) }
}

/// A session whose only turn changes `notes.sh`, creates `new.txt` and runs a command.
fn changed(name: &str) -> (TestFolders, ScriptedProvider, Terminal) {
    let edit = json!({"path": "notes.sh", "old": "two", "new": "2"});
    let provider = ScriptedProvider::new(vec![
        vec![ScriptedStep::Call { id: "c1", name: "edit", arguments: edit }, write("c2", "new.txt", "new\n")],
        vec![ScriptedStep::Call { id: "c3", name: "shell", arguments: json!({"command": "echo x > by-shell"}) }],
        vec![ScriptedStep::Say("All done.")],
        vec![ScriptedStep::Say("Later.")],
    ]);
    let folder = TestFolders::new(name).config(&provider.config()).file("notes.sh", "one\ntwo\n");
    fs::set_permissions(folder.project.join("notes.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("change it");
    terminal.see("shell: echo x > by-shell");
    answer(&mut terminal, "y");
    terminal.see("All done.");
    terminal.idle();
    assert_eq!(folder.read("notes.sh"), "one\n2\n");
    (folder, provider, terminal)
}

fn mode(folder: &TestFolders) -> u32 {
    fs::metadata(folder.project.join("notes.sh")).unwrap().permissions().mode() & 0o777
}

#[test]
fn t21_undo_lists_the_files_asks_and_restores_bytes_and_modes_also_after_kill_9() {
    for killed in [false, true] {
        let (folder, _provider, mut terminal) = changed(&format!("undo-{killed}"));
        if killed {
            terminal.kill();
            terminal = Terminal::ready(&folder, &["-c", "--mode", "accept-edits"]);
            terminal.see("All done.");
        }
        terminal.enter("/undo");
        terminal.see_all(&["undo: put 2 files back too", "notes.sh: will be as it was", "new.txt: will be removed"]);
        terminal.see("not covered, so what it changed stays: `echo x > by-shell`");
        assert!(folder.has("new.txt"), "nothing is done before the answer");
        answer(&mut terminal, "y");
        terminal.see("undone: \"change it\"");
        assert_eq!((folder.read("notes.sh").as_str(), mode(&folder)), ("one\ntwo\n", 0o750));
        assert!(!folder.has("new.txt") && folder.has("by-shell"));
        terminal.keys("\x03");
        terminal.miss("❯ change it");
        terminal.enter("/redo");
        terminal.see_all(&["notes.sh: changed again", "new.txt: changed again", "All done."]);
        assert_eq!((folder.read("notes.sh").as_str(), mode(&folder)), ("one\n2\n", 0o750));
        assert_eq!(folder.read("new.txt"), "new\n");
    }
}

#[test]
fn t21_no_leaves_the_files_and_esc_undoes_nothing() {
    let (folder, provider, mut terminal) = changed("undo-no");
    terminal.enter("/undo");
    terminal.see("y the files too · n only the conversation · Esc undoes nothing");
    terminal.keys(ESC);
    terminal.see("nothing was undone");
    assert!(terminal.shows("All done."), "{}", terminal.picture());
    terminal.enter("/undo");
    answer(&mut terminal, "n");
    terminal.see("the files stay as they are");
    assert_eq!(folder.read("notes.sh"), "one\n2\n");
    terminal.miss("All done.");
    terminal.keys("\x03");
    terminal.miss("❯ change it");
    fs::write(folder.project.join("notes.sh"), "mine\n").unwrap();
    terminal.enter("/undo files");
    terminal.see_all(&["notes.sh: changed since, so it stays", "new.txt: removed"]);
    assert_eq!(folder.read("notes.sh"), "mine\n");
    terminal.enter("/undo files force");
    terminal.see("notes.sh: back as it was");
    assert_eq!(folder.read("notes.sh"), "one\ntwo\n");
    terminal.enter("go on");
    terminal.see("Later.");
    assert_eq!(provider.bodies().len(), 4);
    terminal.idle();
    terminal.enter("/redo");
    terminal.see("there is nothing to redo");
}

#[test]
fn t21_what_is_typed_before_the_question_could_be_read_does_not_answer_it() {
    let (folder, _provider, mut terminal) = changed("undo-early");
    // In one piece, so that the letter is there before the question.
    terminal.keys("/undo\ry");
    terminal.see("undo: put 2 files back too");
    assert!(folder.has("new.txt") && terminal.shows("y the files too"), "{}", terminal.picture());
    answer(&mut terminal, "y");
    terminal.see("undone: \"change it\"");
}

#[test]
fn t21_diff_shows_what_the_session_changed() {
    let (_folder, _provider, mut terminal) = changed("diff");
    terminal.enter("/diff");
    terminal.see_all(&["changed since this session began", "-two", "+2", "+new"]);
    terminal.enter("/diff other.txt");
    terminal.see("no tool of this session changed `other.txt`");
}

#[test]
fn t21_without_a_file_to_put_back_nothing_is_asked_and_a_forced_undo_can_be_redone() {
    let provider =
        ScriptedProvider::new(vec![vec![write("c1", "notes.txt", "of the model\n")], vec![ScriptedStep::Say("Done.")]]);
    let folder = TestFolders::new("undo-forced").config(&provider.config()).file("notes.txt", "one\n");
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("change it");
    terminal.see("Done.");
    terminal.idle();
    fs::write(folder.project.join("notes.txt"), "mine\n").unwrap();
    terminal.enter("/undo");
    terminal.see_all(&["undone: \"change it\"", "notes.txt: changed since, so it stays (/undo files force"]);
    assert_eq!(folder.read("notes.txt"), "mine\n");
    terminal.keys("\x03");
    terminal.miss("❯ change it");
    terminal.enter("/undo files force");
    terminal.see_all(&["notes.txt: back as it was", "/redo takes this back"]);
    assert_eq!(folder.read("notes.txt"), "one\n");
    terminal.enter("/redo");
    terminal.see("notes.txt: changed again");
    assert_eq!(folder.read("notes.txt"), "mine\n", "what the user had written is not lost");
}
