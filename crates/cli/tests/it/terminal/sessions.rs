//! Session commands on the screen.

use super::test_folders::TestFolders;
use super::{CTRL_C, Terminal};

#[test]
fn p4_another_session_is_found_resumed_and_exported() {
    let folder = TestFolders::new("sessions");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.enter("where is the walrus?");
    terminal.see("You wrote: \"where is the walrus?\"");
    terminal.idle();
    terminal.enter("/new");
    terminal.miss("walrus");
    terminal.enter("something else");
    terminal.see("You wrote: \"something else\"");
    terminal.idle();
    terminal.enter("/search walrus");
    terminal.until("where it was found", |lines| {
        lines.iter().any(|line| line.contains("prompt") && line.contains("walrus"))
    });
    terminal.enter("/search walr");
    terminal.see_all(&["nothing was found; only whole words match", "walr*"]);
    terminal.enter("/search walr*");
    terminal.until("the same hits", |lines| lines.iter().filter(|line| line.contains("2 hits, /open")).count() == 2);
    terminal.enter("/sessions");
    terminal.until("both sessions, above the status line", |lines| {
        let (_, above) = lines.split_last().unwrap();
        above.iter().filter(|line| line.contains("sim/kimi")).count() == 2
            && above.iter().filter(|line| line.contains("current ·")).count() == 1
    });
    // Enter completes the matching session and resumes it.
    terminal.enter("/resume where is");
    terminal.see("You wrote: \"where is the walrus?\"");
    terminal.miss("something else");
    assert!(terminal.shows("▶ Thought"), "{}", terminal.picture());
    terminal.enter("and the carpenter?");
    terminal.see("You wrote: \"and the carpenter?\"");
    terminal.idle();
    terminal.enter("/export out.md");
    terminal.see("written to out.md");
    let exported = folder.read("out.md");
    for part in ["where is the walrus?", "> [!thinking]-", "and the carpenter?"] {
        assert!(exported.contains(part), "{part}: {exported}");
    }
    assert!(!exported.contains("something else"), "{exported}");
    terminal.keys(CTRL_C);
    terminal.keys(CTRL_C);
    assert!(terminal.ended().success());
}

#[test]
fn p4_a_search_marks_what_was_undone() {
    let folder = TestFolders::new("undone_hit");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.enter("where is the walrus?");
    terminal.see("You wrote: \"where is the walrus?\"");
    terminal.idle();
    terminal.enter("/undo");
    terminal.see("undone: ");
    terminal.keys(CTRL_C);
    terminal.enter("/search walrus");
    terminal.until("the mark", |lines| lines.iter().any(|line| line.contains("undone or summarised")));
}

#[test]
fn p9_resuming_a_session_of_another_folder_says_where_its_tools_work() {
    let mut folder = TestFolders::new("elsewhere").file(".git/HEAD", "ref: refs/heads/main\n");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.enter("where is the walrus?");
    terminal.see("You wrote: \"where is the walrus?\"");
    terminal.idle();
    terminal.enter("/quit");
    assert!(terminal.ended().success());
    folder.project = folder.config.clone();
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.enter("/resume where is");
    terminal.see("You wrote: \"where is the walrus?\"");
    terminal.see("note: this session began in");
}

#[test]
fn the_screen_says_which_model_was_chosen_and_why() {
    let folder = TestFolders::new("chosen");
    let mut terminal = Terminal::ready(&folder, &[]);
    terminal.until("a reason", |lines| lines.iter().any(|line| line.starts_with("· ") && line.contains("/")));
    let model = terminal.lines().pop().unwrap().split(" · ").next().unwrap().to_owned();
    assert!(terminal.line_with("· ").starts_with(&format!("· {model}: ")), "{}", terminal.picture());
}

#[test]
fn an_undone_prompt_is_in_the_input_and_can_be_sent_again() {
    let folder = TestFolders::new("undone");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.enter("where is the walrus?");
    terminal.see("You wrote: \"where is the walrus?\"");
    terminal.idle();
    terminal.enter("/undo");
    terminal.see("undone: \"where is the walrus?\" · it is back in the input");
    terminal.miss("You wrote:");
    // Clear the prompt from the input to type a command.
    terminal.keys(CTRL_C);
    terminal.miss("❯ where is the walrus?");
    terminal.enter("/retry");
    terminal.see("You wrote: \"where is the walrus?\"");
}

#[test]
fn p4_resume_restores_the_model_and_the_settings_of_the_session_and_says_so() {
    let folder = TestFolders::new("resume-model");
    // /effort replaces the value of the command line, which does not come back.
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/openai", "--set", "reasoning.effort=medium"]);
    terminal.enter("/effort low");
    terminal.see("effort: low");
    terminal.enter("a walrus?");
    terminal.see("You wrote: \"a walrus?\"");
    terminal.idle();
    terminal.enter("/new");
    terminal.miss("walrus");
    terminal.enter("/model sim/kimi");
    terminal.see("model: sim/kimi");
    terminal.enter("/effort high");
    terminal.see("effort: high");
    terminal.enter("/resume a wal");
    terminal.see("You wrote: \"a walrus?\"");
    terminal.see("model: sim/openai, effort: low, as in that session");
    terminal.until("the status", |lines| {
        lines.last().is_some_and(|line| line.starts_with("sim/openai ") && line.contains("effort low"))
    });
    // What is already so is not said.
    terminal.enter("/resume a wal");
    terminal.miss("as in that session");
}

#[test]
fn t19_effort_offers_the_levels_of_the_model_that_is_used_now() {
    let folder = TestFolders::new("levels");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/openai"]);
    terminal.keys("/effort ");
    terminal.see_all(&["› ", "  high"]);
    terminal.keys(CTRL_C);
    terminal.miss("  high");
    terminal.enter("/model sim/cohere");
    terminal.see("model: sim/cohere");
    terminal.keys("/effort ");
    terminal.see_in_input("/effort");
    assert!(!terminal.shows("  high"), "{}", terminal.picture());
    terminal.keys(super::ENTER);
    terminal.see("sim/cohere takes no effort level");
    terminal.enter("/effort high");
    terminal.see("effort: high; sim/cohere takes no effort level, so it is not sent");
    terminal.enter("/model sim/openai");
    terminal.see("model: sim/openai");
    terminal.enter("/effort max");
    let note = "effort `max` is sent as `high`, the next lower level of this model";
    terminal.see(note);
    // The next request has the same note, which is not said again.
    terminal.enter("one more?");
    terminal.see("You wrote: \"one more?\"");
    terminal.idle();
    assert!(terminal.lines().iter().filter(|line| line.contains(note)).count() <= 1, "{}", terminal.picture());
    terminal.enter("/model sim/anthropic");
    terminal.see("effort max");
    terminal.enter("/model sim/openai");
    terminal.until("the note of the new model", |lines| {
        let last = |text: &str| lines.iter().rposition(|line| line.contains(text));
        let model = last("model: sim/openai");
        model > last("model: sim/anthropic") && last(note) > model
    });
}

#[test]
fn a_thought_that_was_undone_can_still_be_read() {
    let folder = TestFolders::new("undone-thought");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.enter("where is the walrus?");
    terminal.see("You wrote: \"where is the walrus?\"");
    terminal.idle();
    terminal.enter("/undo");
    terminal.see("it is back in the input");
    terminal.keys(CTRL_C);
    terminal.miss("❯ where is the walrus?");
    terminal.enter("/search simulator imitating");
    terminal.see("/open NUMBER goes there");
    terminal.enter("/open 1");
    terminal.see_all(&["/open 1", "was undone or summarised", "This is the aside simulator"]);
}

#[test]
fn the_simulator_edits_a_file_on_request_and_undo_puts_it_back() {
    let folder = TestFolders::new("simulated-edit").file("add.py", "print(1)\n");
    let mut terminal = Terminal::ready(&folder, &["--mode", "accept-edits"]);
    terminal.see("`aside doctor` says how");
    terminal.enter(r#"sim: call edit {"path": "add.py", "old": "1", "new": "2"}"#);
    terminal.see("Steps with tools in this turn: 1.");
    terminal.idle();
    assert_eq!(folder.read("add.py"), "print(2)\n");
    terminal.enter("/undo");
    terminal.see("undo: put 1 file back too?");
    super::permission_questions::answer(&mut terminal, "y");
    terminal.see_all(&["undone: ", "· add.py: back as it was"]);
    assert_eq!(folder.read("add.py"), "print(1)\n");
}
