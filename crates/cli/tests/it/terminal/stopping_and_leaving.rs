//! Stopping a turn, killing the program, and quitting it.

use super::emulator::Modes;
use super::scripted_provider::{ScriptedProvider, ScriptedStep};
use super::test_folders::TestFolders;
use super::{CTRL_C, DEFAULT_OPTIONS, ENTER, ESC, Terminal};

/// The thinking text on the screen, without line breaks.
fn thinking_text(terminal: &Terminal) -> String {
    let lines = terminal.lines();
    let rows = lines.iter().filter_map(|line| line.strip_prefix("│ "));
    rows.map(|row| format!("{} ", row.trim())).collect()
}

fn seconds(lines: &[String]) -> u64 {
    let line = lines.iter().find(|line| line.contains("Esc stops"));
    let word = line.and_then(|line| line.split(" · ").find_map(|part| part.strip_suffix('s')?.parse().ok()));
    word.unwrap_or(0)
}

#[test]
fn t10_esc_stops_the_answer_keeps_the_partial_reply_and_the_session_continues() {
    let folder = TestFolders::new("interrupt");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/deepseek", "--set", "reasoning.display=full"]);
    terminal.enter("sim: think tokens=2000 rate=60");
    terminal.until("some of it", |lines| lines.iter().any(|line| line.starts_with("│ ") && line.len() > 40));
    let came = thinking_text(&terminal);
    terminal.keys(ESC);
    terminal.see("! interrupted");
    terminal.idle();
    assert!(terminal.shows("· interrupted"), "the header says so too\n{}", terminal.picture());
    let kept = thinking_text(&terminal);
    assert!(kept.starts_with(came.trim_end()), "{came:?} is not kept in {kept:?}");
    terminal.enter("and now?");
    terminal.see("You wrote: \"and now?\"");
    terminal.idle();
}

#[test]
fn t16_a_command_line_that_waits_is_not_run_by_stopping_the_turn() {
    let provider = ScriptedProvider::new(vec![vec![ScriptedStep::Think("I look."), ScriptedStep::Hold]]);
    let folder = TestFolders::new("waiting-command").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, &["-m", "played/some-model"]);
    terminal.enter("a question");
    terminal.see("Thinking");
    terminal.enter("!touch ran.txt");
    terminal.see("`touch ran.txt` waits for the end of this turn");
    terminal.keys(ESC);
    terminal.see_all(&["! interrupted", "it is back in the input", "❯ !touch ran.txt"]);
    assert!(!folder.has("ran.txt"));
    // It runs if the user still wants that.
    terminal.keys(ENTER);
    terminal.see("▶ ✓ shell touch ran.txt");
    assert!(folder.has("ran.txt"));
}

#[test]
fn a_broken_connection_is_reported_once_and_in_plain_words() {
    let folder = TestFolders::new("broken");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/deepseek"]);
    terminal.enter("sim: cut 300");
    terminal.see("hint: /retry asks again");
    terminal.idle();
    let lines = terminal.lines();
    let said: Vec<&String> =
        lines.iter().filter(|line| ["✗ ", "! ", "· "].iter().any(|mark| line.starts_with(mark))).collect();
    assert_eq!(said.len(), 1, "{}", terminal.picture());
    assert!(said[0].starts_with("✗ the connection to ") && said[0].contains(" was lost before"), "{said:?}");
    assert!(!terminal.shows("error decoding"), "{}", terminal.picture());
}

#[test]
fn p1_after_kill_9_nothing_is_missing_and_the_turn_is_marked_interrupted() {
    let folder = TestFolders::new("killed");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/deepseek", "--set", "reasoning.display=full"]);
    terminal.enter("a first question");
    terminal.see("You wrote: \"a first question\"");
    terminal.idle();
    terminal.enter("sim: think tokens=400 rate=20");
    terminal.until("a sentence", |lines| lines.iter().any(|line| line.starts_with("│ ") && line.len() > 40));
    let came = thinking_text(&terminal);
    // Only the last second may be lost, so older text must be stored.
    let at = seconds(&terminal.lines());
    terminal.until("two more seconds", |lines| seconds(lines) >= at + 2);
    terminal.kill();
    let mut again = Terminal::ready(&folder, &["-c", "--set", "reasoning.display=full"]);
    again.see("! interrupted");
    again.see_all(&["❯ a first question", "You wrote: \"a first question\"", "❯ sim: think tokens=400"]);
    let kept = thinking_text(&again);
    assert!(kept.contains(came.trim_end()), "{came:?} is not kept in {kept:?}");
    again.enter("go on");
    again.see("You wrote: \"go on\"");
}

type LeaveAction = fn(&mut Terminal);

#[test]
fn t13_every_way_to_quit_restores_the_terminal() {
    let folder = TestFolders::new("leaving");
    let ways: [(&str, LeaveAction); 4] = [
        ("ctrl+c twice", |terminal| {
            terminal.keys(CTRL_C);
            terminal.see("Ctrl+C once more leaves");
            terminal.keys(CTRL_C);
        }),
        ("ctrl+c three times while it answers", |terminal| {
            terminal.enter("sim: slow");
            terminal.see("Thinking");
            terminal.keys(CTRL_C);
            terminal.idle();
            terminal.keys(CTRL_C);
            terminal.see("Ctrl+C once more leaves");
            terminal.keys(CTRL_C);
        }),
        ("/quit", |terminal| terminal.enter("/quit")),
        ("ctrl+d", |terminal| terminal.keys("\x04")),
    ];
    for (name, leave) in ways {
        let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
        let taken =
            Modes { alternate_screen: true, mouse: true, bracketed_paste: true, keyboard_modes: 1, ..Modes::DEFAULT };
        assert_eq!(terminal.emulator().modes(), taken, "{name}");
        leave(&mut terminal);
        assert!(terminal.ended().success(), "{name}");
        assert_eq!(terminal.emulator().modes(), Modes::DEFAULT, "{name}");
        assert!(!terminal.shows("❯"), "{name}: the screen is the shell's\n{}", terminal.picture());
    }
}

#[test]
fn quitting_prints_how_to_resume_unless_the_session_is_empty() {
    let folder = TestFolders::new("resumed");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.enter("/quit");
    assert!(terminal.ended().success());
    assert!(!terminal.shows("aside -r"), "{}", terminal.picture());
    for arguments in [&["-m", "sim/kimi"][..], &["-m", "sim/kimi", "--plain"]] {
        let mut terminal = Terminal::start(&folder, arguments, DEFAULT_OPTIONS);
        terminal.until("a prompt", |lines| lines.iter().any(|line| line.contains("❯ ") || line.contains("You:")));
        terminal.keys("where is the walrus?");
        terminal.see("walrus?");
        terminal.keys(ENTER);
        terminal.see("You wrote: \"where is the walrus?\"");
        terminal.idle();
        terminal.keys("\x04");
        assert!(terminal.ended().success());
        let line = terminal.line_with("continues this session");
        let id = line.strip_prefix("aside -r ").and_then(|line| line.split(' ').next()).unwrap().to_owned();
        let mut again = Terminal::ready(&folder, &["-r", &id]);
        again.see("You wrote: \"where is the walrus?\"");
    }
}

/// CPU ticks that the program has used so far.
#[cfg(target_os = "linux")]
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, behind_name) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = behind_name.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn t13_waiting_for_a_key_uses_no_cpu() {
    let folder = TestFolders::new("idle");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.enter("sim: tool-loop 1 rate=500");
    terminal.see("Steps with tools");
    terminal.idle();
    // Wait until the last turn's background work is done and nothing is drawn.
    let mut quiet = 0;
    while quiet < 5 {
        let before = terminal.lines();
        terminal.pump(b"", std::time::Duration::from_millis(100));
        quiet = if terminal.lines() == before { quiet + 1 } else { 0 };
    }
    let before = ticks(terminal.process());
    // The measured interval.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let used = ticks(terminal.process()) - before;
    assert!(used <= 1, "{used} ticks of 200 while nothing happens");
}

#[test]
fn t16_a_compaction_is_shown_while_it_runs_and_ctrl_c_stops_it() {
    let say = |text| vec![ScriptedStep::Say(text)];
    let held = vec![ScriptedStep::Say("A summary"), ScriptedStep::Hold];
    let provider = ScriptedProvider::new(vec![say("One."), say("Two."), held, say("A summary."), say("Three.")]);
    let folder = TestFolders::new("compacting").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, &["-m", "played/some-model"]);
    for (question, answer) in [("first", "One."), ("second", "Two.")] {
        terminal.enter(question);
        terminal.see(answer);
        terminal.idle();
    }
    terminal.enter("/compact");
    terminal.see("compacting");
    terminal.until("the request", |_| provider.bodies().len() == 3);
    terminal.keys(CTRL_C);
    terminal.see("older turns could not be summarised");
    terminal.idle();
    provider.resume_reply();
    assert!(!terminal.shows("Ctrl+C once more leaves"), "{}", terminal.picture());
    terminal.enter("/compact");
    terminal.see("replaced 2 older messages with a summary");
    terminal.idle();
    assert!(!terminal.shows("compacting"), "{}", terminal.picture());
    terminal.enter("third");
    terminal.see("Three.");
}
