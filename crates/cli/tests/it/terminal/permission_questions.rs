//! Permission questions on the screen, and the effect of each answer.

use std::time::Duration;

use serde_json::{Value, json};

use super::scripted_provider::{ScriptedProvider, ScriptedStep};
use super::test_folders::TestFolders;
use super::{CTRL_C, DEFAULT_OPTIONS, ENTER, ESC, Terminal, TerminalOptions};

const MODEL: &[&str] = &["-m", "played/some-model"];

fn shell(id: &'static str, command: &str) -> ScriptedStep {
    ScriptedStep::Call { id, name: "shell", arguments: json!({"command": command}) }
}

/// Answers a question. Keys are ignored right after a question appears, so this
/// waits first, and tries again if that was too short.
pub(super) fn answer(terminal: &mut Terminal, key: &str) {
    let is_asked =
        |lines: &[String]| lines.iter().any(|line| line.contains("y once") || line.contains("y the files too"));
    terminal.until("a question", is_asked);
    for _ in 0..20 {
        let asked = terminal.lines();
        terminal.pump(b"", Duration::from_millis(600));
        terminal.keys(key);
        for _ in 0..5 {
            terminal.pump(b"", Duration::from_millis(200));
            if terminal.lines() != asked && !is_asked(&terminal.lines()) {
                return;
            }
        }
    }
    panic!("the answer is not taken\n{}", terminal.picture());
}

/// The tool result that was sent to the model.
fn result(provider: &ScriptedProvider, id: &str) -> Option<String> {
    let bodies = provider.bodies();
    let messages = bodies.last()?["messages"].as_array()?.clone();
    let result = messages.iter().find(|message| message["tool_call_id"] == id)?;
    result["content"].as_str().map(str::to_owned)
}

#[test]
fn l3_an_answer_for_this_session_ends_with_it() {
    let write =
        |id, path: &str| ScriptedStep::Call { id, name: "write", arguments: json!({"path": path, "content": "new\n"}) };
    let provider = ScriptedProvider::new(vec![
        vec![write("c1", "a.txt")],
        vec![ScriptedStep::Say("First.")],
        vec![write("c2", "b.txt")],
        vec![ScriptedStep::Say("Second.")],
        vec![write("c3", "c.txt")],
    ]);
    let folder = TestFolders::new("session-answer").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("write a");
    answer(&mut terminal, "s");
    terminal.see("First.");
    terminal.idle();
    terminal.enter("write b");
    terminal.see("Second.");
    terminal.idle();
    assert!(folder.has("b.txt"), "the answer covers it");
    terminal.enter("/new");
    terminal.miss("Second.");
    terminal.enter("write c");
    terminal.see_all(&["write: c.txt", "y once"]);
    assert!(!folder.has("c.txt"));
}

#[test]
fn l3_an_edit_is_asked_with_its_diff_and_done_once() {
    let edit: Value = json!({"path": "notes.txt", "old": "two", "new": "2"});
    let provider = ScriptedProvider::new(vec![
        vec![ScriptedStep::Think("I change it."), ScriptedStep::Call { id: "c1", name: "edit", arguments: edit }],
        vec![ScriptedStep::Say("Changed.")],
    ]);
    let folder = TestFolders::new("asked-edit").config(&provider.config()).file("notes.txt", "one\ntwo\nthree\n");
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("change it");
    terminal.see_all(&["edit: notes.txt", "│ -two", "│ +2", "y once", "s this session", "p this project"]);
    assert_eq!(folder.read("notes.txt"), "one\ntwo\nthree\n", "nothing is done before the answer");
    answer(&mut terminal, "y");
    terminal.see("Changed.");
    terminal.idle();
    assert_eq!(folder.read("notes.txt"), "one\n2\nthree\n");
    assert!(terminal.line_with("edit notes.txt").contains("+1 -1"), "{}", terminal.picture());
    assert!(terminal.shows("-two") && terminal.shows("+2"), "a change stays in sight\n{}", terminal.picture());
}

#[test]
fn l3_after_a_yes_for_the_session_or_project_it_does_not_ask_again() {
    for (key, holds_on) in [("y", false), ("s", false), ("p", true)] {
        let turn = |id| [vec![shell(id, "echo ran >> log")], vec![ScriptedStep::Say("Done.")]];
        let provider = ScriptedProvider::new([turn("c1"), turn("c2"), turn("c3")].concat());
        let folder = TestFolders::new(&format!("asked-{key}")).config(&provider.config());
        let mut terminal = Terminal::ready(&folder, MODEL);
        terminal.enter("first");
        terminal.see("shell: echo ran >> log");
        answer(&mut terminal, key);
        terminal.see("Done.");
        terminal.idle();
        terminal.enter("second");
        if key == "y" {
            answer(&mut terminal, "y");
        }
        terminal.until("the second answer", |lines| lines.iter().filter(|line| line.contains("Done.")).count() == 2);
        assert_eq!(folder.read("log"), "ran\nran\n", "{key}");
        terminal.enter("/quit");
        terminal.ended();
        let mut again = Terminal::ready(&folder, MODEL);
        again.enter("third");
        again
            .until("asked or done", |lines| lines.iter().any(|line| line.contains("y once") || line.contains("Done.")));
        assert_eq!(again.shows("Done."), holds_on, "{key}\n{}", again.picture());
    }
}

#[test]
fn l3_a_no_can_carry_a_message_to_the_model() {
    let provider =
        ScriptedProvider::new(vec![vec![shell("c1", "touch never")], vec![ScriptedStep::Say("As you wish.")]]);
    let folder = TestFolders::new("asked-word").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("do it");
    terminal.see("touch never");
    answer(&mut terminal, "w");
    terminal.see("Enter says no");
    terminal.keys("use a folder");
    terminal.see("❯ use a folder");
    terminal.keys(ENTER);
    terminal.see("As you wish.");
    terminal.idle();
    let told = result(&provider, "c1").unwrap();
    assert!(told.contains("denied by the user") && told.contains("use a folder"), "{told}");
    assert!(!folder.has("never"));
    assert!(terminal.line_with("shell touch never").contains("✗"), "{}", terminal.picture());
}

#[test]
fn l3_a_command_of_several_lines_is_shown_as_it_is() {
    let command = "for n in 1 2; do\n  echo $n >> log\ndone";
    let provider = ScriptedProvider::new(vec![vec![shell("c1", command)], vec![ScriptedStep::Say("Done.")]]);
    let folder = TestFolders::new("asked-lines").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("do it");
    terminal.see("y once");
    let row = terminal.row_of("│ for n in 1 2; do");
    assert_eq!(terminal.lines()[row..row + 3], ["│ for n in 1 2; do", "│   echo $n >> log", "│ done"]);
    answer(&mut terminal, "y");
    terminal.see("Done.");
    assert_eq!(folder.read("log"), "1\n2\n");
}

#[test]
fn t16_ctrl_c_at_the_question_denies_it_and_stops() {
    let provider =
        ScriptedProvider::new(vec![vec![shell("c1", "touch never")], vec![ScriptedStep::Say("It went on.")]]);
    let folder = TestFolders::new("asked-ctrl-c").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("do it");
    terminal.see("y once");
    terminal.keys(CTRL_C);
    terminal.see("! interrupted");
    terminal.idle();
    assert!(!folder.has("never"));
    assert_eq!(provider.bodies().len(), 1, "the model was not asked again");
}

#[test]
fn t9_hidden_characters_in_a_command_are_shown_and_it_is_never_remembered() {
    let provider = ScriptedProvider::new(vec![
        vec![shell("c1", "git status --short \u{9d};touch never;: \u{9c}")],
        vec![ScriptedStep::Say("As you wish.")],
    ]);
    let folder = TestFolders::new("asked-hidden").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("do it");
    terminal.see("│!git status --short <U+009D>;touch never;: <U+009C>");
    terminal.see("y once");
    assert!(!terminal.shows("this session"), "{}", terminal.picture());
    answer(&mut terminal, "n");
    terminal.see("As you wish.");
    assert!(!folder.has("never"));
}

#[test]
fn l3_esc_at_the_question_denies_it_and_stops() {
    let provider =
        ScriptedProvider::new(vec![vec![shell("c1", "touch never")], vec![ScriptedStep::Say("It went on.")]]);
    let folder = TestFolders::new("asked-esc").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("do it");
    answer(&mut terminal, ESC);
    terminal.see("! interrupted");
    terminal.idle();
    assert!(!folder.has("never"));
    assert_eq!(provider.bodies().len(), 1, "the model was not asked again");
    terminal.enter("what now?");
    terminal.see("It went on.");
    let told = result(&provider, "c1").unwrap();
    assert!(told.contains("denied") || told.contains("interrupted"), "{told}");
}

#[test]
fn l3_on_a_narrow_screen_a_long_question_says_how_much_is_hidden_and_how_to_see_it() {
    let content: String = (1..=60).map(|line| format!("line {line}\n")).collect();
    let write = json!({"path": "notes.txt", "content": content});
    let provider = ScriptedProvider::new(vec![
        vec![ScriptedStep::Call { id: "c1", name: "write", arguments: write }],
        vec![ScriptedStep::Say("Not written.")],
    ]);
    let folder = TestFolders::new("narrow-question").config(&provider.config());
    let mut terminal = Terminal::start(&folder, MODEL, TerminalOptions { columns: 40, ..DEFAULT_OPTIONS });
    terminal.see("❯ ");
    terminal.enter("write it");
    terminal.see("lines not shown (v shows all)");
    assert!(terminal.line_with("? write").contains("notes.txt"), "it does not run yet\n{}", terminal.picture());
    answer(&mut terminal, "n");
    terminal.see("Not written.");
}
