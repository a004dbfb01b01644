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
    terminal.enter("/sessions");
    terminal.until("both sessions, above the status line", |lines| {
        let (_, above) = lines.split_last().unwrap();
        above.iter().filter(|line| line.contains("sim/kimi")).count() == 2
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
