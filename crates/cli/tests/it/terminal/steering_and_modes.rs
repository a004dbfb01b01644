//! Messages during a turn, and what tools may do without a question.

use serde_json::{Value, json};

use super::scripted_provider::{ScriptedProvider, ScriptedStep};
use super::test_folders::TestFolders;
use super::{ESC, SHIFT_TAB, Terminal, UP};

const MODEL: &[&str] = &["-m", "played/some-model"];

fn list(id: &'static str) -> ScriptedStep {
    ScriptedStep::Call { id, name: "list", arguments: json!({"path": "."}) }
}

fn write(id: &'static str, path: &str) -> ScriptedStep {
    ScriptedStep::Call { id, name: "write", arguments: json!({"path": path, "content": "new\n"}) }
}

/// The roles and texts of the messages in a request, without the system prompt.
fn messages(body: &Value) -> Vec<(String, String)> {
    let messages = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] != "system");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    messages.map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

fn tool_names(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn t20_a_message_during_a_tool_loop_goes_in_after_the_step_and_is_stored_once() {
    let provider = ScriptedProvider::new(vec![
        vec![ScriptedStep::Think("I look."), ScriptedStep::Hold, list("c1")],
        vec![ScriptedStep::Say("I follow the new hint.")],
        vec![ScriptedStep::Say("Again.")],
    ]);
    let folder = TestFolders::new("steering").config(&provider.config()).file("a.txt", "a");
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("what is here?");
    terminal.see("Thinking");
    terminal.enter("only the tests");
    terminal.see("after this step: only the tests");
    provider.resume_reply();
    terminal.see("I follow the new hint.");
    terminal.idle();
    assert!(!terminal.shows("after this step:"), "{}", terminal.picture());
    let row = terminal.row_of("❯ only the tests");
    assert!(terminal.row_of("list") < row && row < terminal.row_of("I follow"), "{}", terminal.picture());
    let second = messages(&provider.bodies()[1]);
    let roles: Vec<&str> = second.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"]);
    assert_eq!(second[3].1, "only the tests");
    terminal.enter("/quit");
    terminal.ended();
    let mut again = Terminal::ready(&folder, &["-c"]);
    again.see("I follow the new hint.");
    let shown = again.lines().iter().filter(|line| line.contains("only the tests")).count();
    assert_eq!(shown, 1, "{}", again.picture());
    again.enter("go on");
    again.see("Again.");
    let third = messages(&provider.bodies()[2]);
    assert_eq!(third.iter().filter(|(_, text)| text == "only the tests").count(), 1, "{third:?}");
}

#[test]
fn t20_a_message_during_the_answer_continues_the_turn() {
    let provider = ScriptedProvider::new(vec![
        vec![ScriptedStep::Say("Apples"), ScriptedStep::Hold, ScriptedStep::Say(" and pears.")],
        vec![ScriptedStep::Say("Plums, then.")],
    ]);
    let folder = TestFolders::new("steering-answer").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("which fruit?");
    terminal.see("Apples");
    terminal.enter("no apples");
    terminal.see("after this step: no apples");
    provider.resume_reply();
    terminal.see("Plums, then.");
    terminal.idle();
    let second = messages(&provider.bodies()[1]);
    let expected = [("user", "which fruit?"), ("assistant", "Apples and pears."), ("user", "no apples")];
    assert_eq!(second, expected.map(|(role, text)| (role.to_owned(), text.to_owned())));
}

#[test]
fn t20_a_waiting_message_that_is_taken_back_is_sent_once_as_it_is_then() {
    let provider = ScriptedProvider::new(vec![
        vec![ScriptedStep::Say("Apples"), ScriptedStep::Hold, ScriptedStep::Say(" and pears.")],
        vec![ScriptedStep::Say("Plums, then.")],
    ]);
    let folder = TestFolders::new("steering-taken-back").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("which fruit?");
    terminal.see("Apples");
    terminal.enter("no apples");
    terminal.see("after this step: no apples");
    terminal.keys(UP);
    terminal.see("❯ no apples");
    terminal.enter(", please");
    terminal.see("after this step: no apples, please");
    provider.resume_reply();
    terminal.see("Plums, then.");
    terminal.idle();
    let second = messages(&provider.bodies()[1]);
    let expected = [("user", "which fruit?"), ("assistant", "Apples and pears."), ("user", "no apples, please")];
    assert_eq!(second, expected.map(|(role, text)| (role.to_owned(), text.to_owned())));
}

#[test]
fn t20_a_message_for_a_turn_that_is_stopped_goes_back_into_the_input() {
    let provider = ScriptedProvider::new(vec![vec![ScriptedStep::Say("Apples"), ScriptedStep::Hold]]);
    let folder = TestFolders::new("steering-stopped").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("which fruit?");
    terminal.see("Apples");
    terminal.enter("no apples");
    terminal.see("after this step: no apples");
    terminal.keys(ESC);
    terminal.see("❯ no apples");
    terminal.idle();
    assert_eq!(provider.bodies().len(), 1);
}

#[test]
fn t23_read_only_offers_no_tool_that_changes_anything_and_refuses_calls_of_them() {
    let provider = ScriptedProvider::new(vec![
        vec![write("c1", "a.txt")],
        vec![ScriptedStep::Say("It cannot be written.")],
        vec![ScriptedStep::Say("Now it could.")],
    ]);
    let folder = TestFolders::new("read-only").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, &[MODEL, &["--mode", "read-only"]].concat());
    terminal.see("read only");
    terminal.enter("write a.txt");
    terminal.see("It cannot be written.");
    terminal.idle();
    assert!(!folder.has("a.txt"));
    let bodies = provider.bodies();
    assert_eq!(tool_names(&bodies[0]), ["read", "list", "glob", "grep"]);
    let results = messages(&bodies[1]);
    assert!(results.iter().any(|(role, text)| role == "tool" && text.contains("read-only")), "{results:?}");
    terminal.keys(SHIFT_TAB);
    terminal.see("Mode: ask");
    terminal.enter("and now?");
    terminal.see("Now it could.");
    assert_eq!(tool_names(&provider.bodies()[2]).len(), 7);
}

#[test]
fn t23_accept_edits_writes_in_the_folder_without_a_question_but_asks_about_the_rest() {
    let shell = ScriptedStep::Call { id: "c4", name: "shell", arguments: json!({"command": "echo ran"}) };
    let provider = ScriptedProvider::new(vec![
        vec![write("c1", "a.txt")],
        vec![write("c2", ".git/config")],
        vec![write("c3", "../outside.txt")],
        vec![shell],
        vec![ScriptedStep::Say("Done.")],
    ]);
    let config = format!("{}\n[tools]\nmode = \"accept-edits\"\n", provider.config());
    let folder = TestFolders::new("accept-edits").config(&config).file(".git/HEAD", "x");
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.see("accept edits");
    terminal.enter("write");
    for question in ["write: .git/config", "outside this folder: ", "shell: echo ran"] {
        terminal.see(question);
        assert!(folder.has("a.txt"), "written without a question");
        super::permission_questions::answer(&mut terminal, "n");
    }
    terminal.see("Done.");
    assert!(!folder.has(".git/config") && !folder.has("../outside.txt"));
}
