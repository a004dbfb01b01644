//! What the screen shows while something runs: tools, retries and silence.

use serde_json::json;

use super::permission_questions::answer;
use super::scripted_provider::{ScriptedProvider, ScriptedStep};
use super::test_folders::TestFolders;
use super::{ENTER, ESC, Terminal};

const MODEL: &[&str] = &["-m", "played/some-model"];

#[test]
fn t17_the_newest_output_of_a_command_is_shown_while_it_runs_and_counted() {
    let command = "for i in 1 2 3 4 5 6 7 8; do echo line $i; done; sleep 600";
    let provider = ScriptedProvider::new(vec![
        vec![ScriptedStep::Call { id: "c1", name: "shell", arguments: json!({"command": command}) }],
        vec![ScriptedStep::Say("Done.")],
    ]);
    let folder = TestFolders::new("live-output").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("run it");
    terminal.see("shell: for i in");
    answer(&mut terminal, "y");
    terminal.see_all(&["… 3 more lines above", "  line 4", "  line 8", "8 lines"]);
    assert!(!terminal.shows("  line 3"), "{}", terminal.picture());
    terminal.keys(ESC);
    terminal.see("! interrupted");
    terminal.idle();
    assert!(terminal.line_with("shell for i in").ends_with(" · stopped"), "{}", terminal.picture());
}

#[test]
fn t17_a_finished_command_shows_a_few_lines_and_how_many_more() {
    let call = |id, command: &str| ScriptedStep::Call { id, name: "shell", arguments: json!({"command": command}) };
    let provider = ScriptedProvider::new(vec![
        vec![call("c1", "seq 1 12")],
        vec![call("c2", "true")],
        vec![ScriptedStep::Say("Done.")],
    ]);
    let config = format!("{}\n[permissions]\n\"shell:*\" = \"allow\"\n", provider.config());
    let folder = TestFolders::new("few-lines").config(&config);
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("run it");
    for _ in 0..2 {
        terminal
            .until("asked or done", |lines| lines.iter().any(|line| line.contains("y once") || line.contains("Done.")));
        if terminal.shows("y once") {
            answer(&mut terminal, "y");
        }
    }
    terminal.see("Done.");
    terminal.idle();
    terminal.see_all(&["seq 1 12 · 12 lines", "… 7 more lines", "true · no output"]);
    assert!(!terminal.shows("exit code"), "{}", terminal.picture());
}

#[test]
fn t17_a_file_is_shown_as_code_while_the_model_writes_it() {
    let provider = ScriptedProvider::new(vec![
        vec![
            ScriptedStep::CallPart { id: "c1", name: "write", arguments: r#"{"path":"src/ma"# },
            ScriptedStep::MoreArguments(r#"in.rs","content":"fn main() {\n    println!(\"hel"#),
            ScriptedStep::Hold,
            ScriptedStep::MoreArguments(r#"lo\");\n}\n"}"#),
        ],
        vec![ScriptedStep::Say("Written.")],
    ]);
    let folder = TestFolders::new("streamed-write").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, &[MODEL, &["--mode", "accept-edits"]].concat());
    terminal.enter("write it");
    terminal.see_all(&["write src/main.rs · 2 lines", "fn main() {", "    println!(\"hel"]);
    assert!(!terminal.shows("\\n"), "{}", terminal.picture());
    provider.resume_reply();
    terminal.see("Written.");
    terminal.idle();
    assert!(terminal.line_with("write src/main.rs").contains("3 lines"), "{}", terminal.picture());
    assert_eq!(folder.read("src/main.rs"), "fn main() {\n    println!(\"hello\");\n}\n");
}

#[test]
fn t18_a_retry_counts_down_in_one_line_and_is_gone_with_the_answer() {
    let folder = TestFolders::new("retry");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/deepseek"]);
    terminal.enter("sim: status 503 times=3");
    terminal.see("trying again");
    terminal.see("no model was called");
    terminal.idle();
    assert!(!terminal.shows("trying again"), "{}", terminal.picture());
}

#[test]
fn t18_every_error_of_the_provider_names_the_next_step() {
    for (status, hint) in [(401, "hint: check the key"), (404, "hint: check the model"), (400, "hint: /sent shows")] {
        let folder = TestFolders::new(&format!("error-{status}"));
        let mut terminal = Terminal::ready(&folder, &["-m", "sim/deepseek"]);
        terminal.enter(&format!("sim: status {status} times=9"));
        terminal.see(hint);
    }
}

#[test]
fn t19_a_command_without_a_value_opens_a_list_that_typing_filters() {
    let folder = TestFolders::new("picker");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/deepseek"]);
    terminal.enter("a first question");
    terminal.see("You wrote: \"a first question\"");
    terminal.idle();
    terminal.keys("/model");
    terminal.see("❯ /model");
    terminal.keys(ENTER);
    terminal.see("sim/");
    terminal.keys("sim/kim");
    terminal.see("› sim/kimi");
    terminal.keys(ENTER);
    terminal.see("model: sim/kimi");
    terminal.keys("/resume");
    terminal.see("❯ /resume");
    terminal.keys(ENTER);
    terminal.see("a first question");
    terminal.keys(ENTER);
    terminal.see("You wrote: \"a first question\"");
}
