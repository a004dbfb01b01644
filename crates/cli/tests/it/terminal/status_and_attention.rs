//! The status line tells the truth, and the terminal calls a user who looks elsewhere.

use std::time::Duration;

use serde_json::json;

use super::scripted_provider::{ScriptedProvider, ScriptedStep};
use super::test_folders::TestFolders;
use super::{DEFAULT_OPTIONS, Terminal, TerminalOptions};

const MODEL: &[&str] = &["-m", "played/some-model"];

fn status(terminal: &Terminal) -> String {
    terminal.lines().pop().unwrap_or_default()
}

#[test]
fn t25_the_status_is_about_the_next_request_after_every_change() {
    let folder = TestFolders::new("true-status");
    let options = TerminalOptions { columns: 120, ..DEFAULT_OPTIONS };
    let mut terminal = Terminal::start(&folder, &["-m", "sim/openai"], options);
    terminal.see("❯ ");
    terminal.enter("/set reasoning.effort=high");
    terminal.until("the new effort", |lines| lines.last().unwrap().contains("effort high"));
    terminal.enter("sim: think tokens=400");
    terminal.see("imitating");
    terminal.idle();
    let tokens = |terminal: &Terminal| {
        let line = status(terminal);
        let figure =
            line.split(" · ").find(|part| part.contains('/') && !part.starts_with("sim/")).unwrap_or("0/").to_owned();
        figure.split('/').next().unwrap().trim_start_matches('~').to_owned()
    };
    let after_turn = tokens(&terminal);
    terminal.enter("/effort low");
    terminal.until("the changed effort", |lines| lines.last().unwrap().contains("effort low"));
    assert!(!status(&terminal).contains('!'), "{}", terminal.picture());
    terminal.enter("/new");
    terminal.until("an empty conversation", |lines| !lines.iter().any(|line| line.contains("imitating")));
    terminal.until("other tokens", |lines| !lines.last().unwrap().contains(&after_turn));
    terminal.enter("/model sim/kimi");
    terminal.until("the new model", |lines| lines.last().unwrap().starts_with("sim/kimi · "));
}

#[test]
fn t25_a_resumed_session_shows_its_tokens_and_effort_before_the_next_request() {
    let folder = TestFolders::new("resumed-status");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/openai"]);
    terminal.enter("/effort high");
    terminal.see("effort: high");
    terminal.enter("sim: think tokens=400");
    terminal.see("imitating");
    terminal.idle();
    terminal.until("the count", |lines| !lines.last().unwrap().contains('~'));
    // Model, tokens and effort; what follows depends on how much of the title fits.
    let counts = |line: &str| line.split(" · ").take(3).collect::<Vec<_>>().join(" · ");
    let before = counts(&status(&terminal));
    assert!(before.contains("effort high"), "{before}");
    terminal.enter("/quit");
    terminal.ended();
    let mut again = Terminal::ready(&folder, &["-c"]);
    again.until("the same status", |lines| counts(lines.last().unwrap()) == before);
}

#[test]
fn t25_the_effort_stays_in_the_status_of_a_resumed_session_during_undo_diff_and_compact() {
    let write = |id, path| ScriptedStep::Call { id, name: "write", arguments: json!({"path": path, "content": "x\n"}) };
    let provider = ScriptedProvider::new(vec![
        vec![write("c1", "one.txt")],
        vec![ScriptedStep::Say("First.")],
        vec![write("c2", "two.txt")],
        vec![ScriptedStep::Say("Second.")],
        vec![ScriptedStep::Say("A summary"), ScriptedStep::Hold],
    ]);
    let folder = TestFolders::new("effort-stays").config(&provider.config());
    let model: &[&str] = &["-m", "played/some-model", "--mode", "accept-edits"];
    let start = |arguments: &[&str]| {
        let options = TerminalOptions { columns: 120, ..DEFAULT_OPTIONS };
        let mut terminal = Terminal::start(&folder, arguments, options);
        terminal.see("❯ ");
        terminal
    };
    let mut terminal = start(model);
    for (prompt, answer) in [("first", "First."), ("second", "Second.")] {
        terminal.enter(prompt);
        terminal.see(answer);
        terminal.idle();
    }
    terminal.enter("/effort high");
    terminal.until("the effort", |lines| lines.last().unwrap().contains("effort high"));
    terminal.enter("/quit");
    terminal.ended();
    let has_effort = |terminal: &Terminal| assert!(status(terminal).contains("effort high"), "{}", terminal.picture());
    for command in ["/diff", "/undo"] {
        let mut again = start(&["-c", "--mode", "accept-edits"]);
        again.until("the effort", |lines| lines.last().unwrap().contains("effort high"));
        again.enter(command);
        match command {
            "/diff" => again.see("+x"),
            _ => again.see("put 1 file back too"),
        }
        has_effort(&again);
        again.keys("\x1b");
        match command {
            "/diff" => again.until("the diff is closed", |lines| !lines.iter().any(|line| line.contains("q back"))),
            _ => again.see("nothing was undone"),
        }
        has_effort(&again);
        again.kill();
    }
    let mut again = start(&["-c"]);
    again.until("the effort", |lines| lines.last().unwrap().contains("effort high"));
    again.enter("/compact");
    again.until("the request", |_| provider.bodies().len() == 5);
    again.see("compacting");
    has_effort(&again);
    provider.resume_reply();
    again.see("with a summary");
    again.idle();
    again.until("the effort", |lines| lines.last().unwrap().contains("effort high"));
}

#[test]
fn t22_the_status_line_names_folder_and_branch() {
    let folder = TestFolders::new("branch").file(".git/HEAD", "ref: refs/heads/topic\n");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.see("project (topic)");
    terminal.enter("!echo 'ref: refs/heads/other' > .git/HEAD");
    terminal.see("project (other)");
}

#[test]
fn t22_a_question_rings_and_the_title_says_that_it_waits() {
    let call = ScriptedStep::Call { id: "c1", name: "shell", arguments: json!({"command": "echo hi"}) };
    let provider = ScriptedProvider::new(vec![vec![call], vec![ScriptedStep::Say("Done.")]]);
    let folder = TestFolders::new("bell").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.title_is("project · aside");
    assert_eq!(terminal.emulator().bells(), 0);
    terminal.enter("go");
    terminal.see("shell: echo hi");
    terminal.title_is("? go · aside");
    terminal.rings(1);
    super::permission_questions::answer(&mut terminal, "n");
    terminal.see("Done.");
    terminal.idle();
    terminal.title_is("go · aside");
    assert_eq!(terminal.emulator().bells(), 1, "a short turn does not ring");
    terminal.enter("/quit");
    terminal.ended();
    assert_eq!(terminal.emulator().saved_titles(), 0, "the terminal has its title again");
}

#[test]
fn t22_the_end_of_a_long_turn_is_a_notification_unless_the_window_has_the_focus() {
    let long = || vec![ScriptedStep::Pause(Duration::from_millis(10_500)), ScriptedStep::Say("At last.")];
    let provider = ScriptedProvider::new(vec![long(), long()]);
    let config = format!("{}\n[settings]\n\"screen.notify\" = \"osc9\"\n", provider.config());
    let folder = TestFolders::new("long-turn").config(&config);
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("first");
    terminal.see("At last.");
    terminal.idle();
    terminal.title_is("✓ first · aside");
    terminal.notifications_are(&["9;first · aside: the turn has ended"]);
    // The terminal says that the user is back.
    terminal.keys("\x1b[I");
    terminal.title_is("first · aside");
    terminal.enter("second");
    terminal.until("the second answer", |lines| lines.iter().filter(|line| line.contains("At last.")).count() == 2);
    terminal.idle();
    assert_eq!(terminal.emulator().notifications().len(), 1);
}

#[test]
fn t22_notifications_can_be_switched_off() {
    let call = ScriptedStep::Call { id: "c1", name: "shell", arguments: json!({"command": "echo hi"}) };
    let provider = ScriptedProvider::new(vec![vec![call]]);
    let config = format!("{}\n[settings]\n\"screen.notify\" = \"off\"\n", provider.config());
    let folder = TestFolders::new("no-bell").config(&config);
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("go");
    terminal.see("shell: echo hi");
    assert_eq!((terminal.emulator().bells(), terminal.emulator().title()), (0, None));
}

#[test]
fn a_turn_stops_at_its_cost_and_says_how_to_go_on() {
    let list = || vec![ScriptedStep::Call { id: "c1", name: "list", arguments: json!({}) }];
    let provider = ScriptedProvider::new(vec![list(), list(), list()]);
    let price = "[providers.played.models.\"*\"]\nprice = { input = 1000, output = 1000 }\n";
    let folder = TestFolders::new("max-cost").config(&format!("{}{price}", provider.config()));
    // The cost comes after the name of the branch, which may be long.
    let options = TerminalOptions { columns: 200, ..DEFAULT_OPTIONS };
    let mut terminal = Terminal::start(&folder, &[MODEL, &["--max-cost", "3"]].concat(), options);
    terminal.see("❯ ");
    terminal.enter("go");
    terminal.see("stopped after $4.0000; --max-cost is $3");
    terminal.idle();
    assert_eq!(provider.bodies().len(), 2);
    terminal.until("the cost in the status", |lines| lines.last().is_some_and(|line| line.contains("$4.0000")));
}

#[test]
fn t13_prose_is_at_most_100_columns_wide_and_code_may_be_wider() {
    let prose = "word ".repeat(60);
    let code = format!("```\n{}\n```", "x".repeat(150));
    let text: &'static str = Box::leak(format!("{prose}\n\n{code}\n").into_boxed_str());
    let provider = ScriptedProvider::new(vec![vec![ScriptedStep::Say(text)]]);
    let folder = TestFolders::new("wide").config(&provider.config());
    let options = TerminalOptions { columns: 200, ..DEFAULT_OPTIONS };
    let mut terminal = Terminal::start(&folder, MODEL, options);
    terminal.see("❯ ");
    terminal.enter("write");
    terminal.see("xxx");
    terminal.idle();
    let widths = |terminal: &Terminal, word: &str| {
        let lines = terminal.lines();
        lines.iter().filter(|line| line.contains(word)).map(|line| line.chars().count()).max().unwrap()
    };
    assert!((90..=100).contains(&widths(&terminal, "word word")), "{}", terminal.picture());
    assert!(widths(&terminal, "xxx") > 140, "{}", terminal.picture());
    terminal.enter("/set screen.proseWidth=60");
    terminal.until("narrower prose", |lines| {
        let widest = lines.iter().filter(|line| line.contains("word word")).map(|line| line.chars().count()).max();
        widest.is_some_and(|widest| widest <= 60)
    });
}
