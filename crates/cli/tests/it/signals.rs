//! What comes from outside: signals, and a terminal that is given back
//! whatever happens.

use rustix::process::{Pid, Signal, kill_process};

use crate::pty::Terminal;
use crate::support::Config;

const SCREEN: [&str; 3] = ["aside", "-m", "sim/deepseek"];
const ENTERED: &str = "\u{1b}[?1049h";
const LEFT: &str = "\u{1b}[?1049l";
/// A thought that would take minutes.
const LONG: &str = "sim: think tokens=4000 rate=40 seed=3";

/// The screen in the middle of a thought.
fn thinking(config: &Config) -> Terminal {
    let mut terminal = Terminal::run(&SCREEN, config, &[]);
    terminal.wait_for(ENTERED);
    terminal.types(&format!("{LONG}\r"));
    terminal.wait_for("Thinking");
    // The store has it after a second at the latest.
    terminal.wait_for("tokens");
    assert!(!terminal.is_as_it_was(), "the screen reads keys as they come");
    terminal
}

/// The terminal is as a shell wants it: the screen left, the cursor in sight,
/// no mouse, no pastes, lines and echo.
fn assert_given_back(terminal: &Terminal, name: &str) {
    let all = terminal.all();
    let (_, behind) = all.rsplit_once(LEFT).unwrap_or_else(|| panic!("{name}: the screen was not left: {all:?}"));
    let (before, _) = all.rsplit_once(LEFT).unwrap();
    assert!(!behind.contains(ENTERED), "{name}");
    for sequence in ["\u{1b}[?1000l", "\u{1b}[?2004l"] {
        assert!(before.rsplit(ENTERED).next().unwrap().contains(sequence), "{name}: no {sequence:?}");
    }
    assert!(behind.contains("\u{1b}[?25h"), "{name}: no cursor: {behind:?}");
    assert!(terminal.is_as_it_was(), "{name}");
}

#[test]
fn a_signal_that_ends_the_screen_keeps_the_answer_and_gives_the_terminal_back() {
    for (name, signal, code) in [("term", Signal::TERM, 143), ("hup", Signal::HUP, 129)] {
        let config = Config::new(&format!("signals-{name}"));
        let mut terminal = thinking(&config);
        terminal.signal(signal);
        assert_eq!(terminal.end().code(), Some(code), "{name}");
        assert_given_back(&terminal, name);
        let kept = config.stdout("sessions show --thinking full");
        assert!(kept.contains(LONG) && kept.contains("interrupted"), "{name}: {kept}");
    }
}

#[test]
fn a_terminal_that_is_gone_ends_what_ran_in_it_and_the_answer_is_kept() {
    let config = Config::new("signals-unplug");
    assert_eq!(thinking(&config).unplug().code(), Some(129));
    let kept = config.stdout("sessions show --thinking full");
    assert!(kept.contains(LONG) && kept.contains("interrupted"), "{kept}");
    let mut lines = Terminal::run(&["aside", "--plain", "-m", "sim/deepseek"], &config, &[]);
    lines.wait_for("You: ");
    lines.types(&format!("{LONG}\r"));
    lines.wait_for("Thinking:");
    lines.wait_for(". ");
    assert_eq!(lines.unplug().code(), Some(129));
    assert_eq!(config.stdout("sessions list").lines().count(), 2);
}

#[test]
fn an_interrupt_from_outside_stops_the_answer_and_the_screen_stays() {
    let config = Config::new("signals-int");
    let mut terminal = thinking(&config);
    terminal.signal(Signal::INT);
    terminal.wait_for("interrupted");
    terminal.types("/quit\r");
    assert_eq!(terminal.end().code(), Some(0));
    assert_given_back(&terminal, "int");
}

#[test]
fn a_line_prompt_that_is_asked_to_end_keeps_the_answer() {
    let config = Config::new("signals-lines");
    let mut terminal = Terminal::run(&["aside", "--plain", "-m", "sim/deepseek"], &config, &[]);
    terminal.wait_for("You: ");
    terminal.types(&format!("{LONG}\r"));
    terminal.wait_for("Thinking:");
    terminal.wait_for(". ");
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.end().code(), Some(143));
    let kept = config.stdout("sessions show --thinking full");
    assert!(kept.contains("interrupted"), "{kept}");
}

/// A shell with job control, and the screen as a job of it.
fn job(config: &Config) -> Terminal {
    let mut terminal = Terminal::run(&["bash", "--norc", "--noprofile", "-i"], config, &[("PS1", "ready> ")]);
    terminal.wait_for("ready> ");
    terminal.types("aside -m sim/deepseek\r");
    terminal.wait_for(ENTERED);
    terminal.wait_for("/help");
    terminal
}

/// The only process the shell has started.
fn child_of(terminal: &Terminal) -> Pid {
    let id = terminal.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    Pid::from_raw(children.trim().parse().unwrap()).unwrap()
}

#[test]
fn suspended_by_key_or_by_signal_it_gives_the_terminal_back_and_takes_it_again() {
    for name in ["key", "signal"] {
        let config = Config::new(&format!("signals-suspend-{name}"));
        let mut terminal = job(&config);
        match name {
            "key" => terminal.types("\u{1a}"),
            _ => kill_process(child_of(&terminal), Signal::TSTP).unwrap(),
        }
        terminal.wait_for(LEFT);
        terminal.wait_for("Stopped");
        terminal.wait_for("ready> ");
        terminal.types("fg\r");
        terminal.wait_for(ENTERED);
        // It draws all of it again, and reads keys.
        terminal.wait_for("/help");
        terminal.types("/quit\r");
        terminal.wait_for(LEFT);
        terminal.wait_for("ready> ");
        terminal.types("exit\r");
        terminal.end();
        assert_given_back(&terminal, name);
    }
}

#[test]
fn without_a_shell_to_go_back_to_it_does_not_stop() {
    let config = Config::new("signals-no-shell");
    let mut terminal = Terminal::run(&SCREEN, &config, &[]);
    terminal.wait_for("/help");
    terminal.types("\u{1a}");
    terminal.wait_for("no shell");
    terminal.types("/quit\r");
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn t13_a_terminal_gets_only_the_colours_it_has() {
    #[rustfmt::skip]
    let cases = [
        ("16 colours", [("TERM", "xterm"), ("COLORTERM", "")],              vec!["38;5;", "48;5;", "38;2;", "48;2;"]),
        ("256",        [("TERM", "xterm-256color"), ("COLORTERM", "")],     vec!["38;2;", "48;2;"]),
        ("none",       [("NO_COLOR", "1"), ("COLORTERM", "truecolor")],     vec!["38;", "48;", "[3", "[9"]),
    ];
    for (name, variables, forbidden) in cases {
        let config = Config::new("signals-colours");
        let mut terminal = Terminal::run(&SCREEN, &config, &variables);
        terminal.wait_for("/help");
        terminal.types("sim: think seed=1\r");
        terminal.wait_for("ought for");
        terminal.types("/nonsense\r/quit\r");
        assert_eq!(terminal.end().code(), Some(0), "{name}");
        let all = terminal.all();
        // Colours only: the codes of italics and of no colour are not meant.
        let codes: Vec<&str> = all.split("\u{1b}").filter(|code| code.starts_with('[')).collect();
        let colours = codes.iter().filter_map(|code| code.split_once('m').map(|(head, _)| head));
        let colours: Vec<&str> =
            colours.filter(|head| head.bytes().skip(1).all(|byte| byte.is_ascii_digit() || byte == b';')).collect();
        assert!(colours.len() > 10, "{name}: {colours:?}");
        for head in colours {
            let is_face = matches!(head, "[3" | "[39" | "[49" | "[39;49");
            let found = forbidden.iter().find(|code| head.contains(**code));
            assert!(is_face || found.is_none(), "{name}: {head:?}");
        }
    }
}

/// Set for the process that is to fail.
const FAILS: &str = "ASIDE_TEST_FAILS";

#[test]
fn a_panic_gives_the_terminal_back_before_its_words_are_written() {
    if std::env::var_os(FAILS).is_some() {
        return fail();
    }
    let config = Config::new("signals-panic");
    let own = std::env::current_exe().unwrap().display().to_string();
    let name = "signals::a_panic_gives_the_terminal_back_before_its_words_are_written";
    let mut terminal = Terminal::run(&[&own, "--exact", name, "--nocapture"], &config, &[(FAILS, "1")]);
    terminal.wait_for(ENTERED);
    terminal.wait_for("/help");
    terminal.types("go\r");
    let before = terminal.wait_for("this part broke");
    assert!(before.contains(LEFT), "{before:?}");
    terminal.end();
    assert_given_back(&terminal, "panic");
    let all = terminal.all();
    assert_eq!(all.matches(ENTERED).count(), 1);
    let (_, behind) = all.split_once("this part broke").unwrap();
    assert!(!behind.contains("\u{1b}[?2026h"), "nothing is drawn over the words: {behind:?}");
}

/// A screen whose engine panics when it is asked for something.
fn fail() {
    let (updates, to_screen) = std::sync::mpsc::channel();
    let (to_engine, commands) = std::sync::mpsc::channel();
    let engine = std::thread::spawn(move || {
        let heard = commands.recv();
        // The screen waits for more until this ends.
        let _updates: std::sync::mpsc::Sender<aside_tui::seam::Update> = updates;
        panic!("this part broke: {heard:?}");
    });
    let app = aside_tui::app::App::new(aside_tui::app::Setup::default());
    let shown = aside_tui::run(app, to_screen, to_engine);
    assert!(engine.join().is_err());
    drop(shown);
}
