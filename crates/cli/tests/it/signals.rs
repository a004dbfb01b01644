//! Signals, and restoring the terminal in every case.

use rustix::process::{Pid, Signal, kill_process};

use crate::pty::Terminal;
use crate::support::TestConfig;

const SCREEN: [&str; 3] = ["aside", "-m", "sim/deepseek"];
const ENTERED: &str = "\u{1b}[?1049h";
const LEFT: &str = "\u{1b}[?1049l";
/// Thinking that would take minutes.
const LONG: &str = "sim: think tokens=4000 rate=40 seed=3";

/// The screen while the model is thinking.
fn start_thinking(config: &TestConfig) -> Terminal {
    let mut terminal = Terminal::run(&SCREEN, config, &[]);
    terminal.wait_for(ENTERED);
    terminal.types(&format!("{LONG}\r"));
    terminal.wait_for("Thinking");
    // The store has it after at most a second.
    terminal.wait_for("tokens");
    assert!(!terminal.is_restored(), "the screen reads keys as they come");
    terminal
}

/// Asserts that the terminal is restored for a shell: the alternate screen left, the
/// cursor visible, mouse and bracketed paste off, line input with echo.
fn assert_restored(terminal: &Terminal, name: &str) {
    let all = terminal.all();
    let (_, behind) = all.rsplit_once(LEFT).unwrap_or_else(|| panic!("{name}: the screen was not left: {all:?}"));
    let (before, _) = all.rsplit_once(LEFT).unwrap();
    assert!(!behind.contains(ENTERED), "{name}");
    for sequence in ["\u{1b}[?1000l", "\u{1b}[?2004l"] {
        assert!(before.rsplit(ENTERED).next().unwrap().contains(sequence), "{name}: no {sequence:?}");
    }
    assert!(behind.contains("\u{1b}[?25h"), "{name}: no cursor: {behind:?}");
    assert!(terminal.is_restored(), "{name}");
}

#[test]
fn a_signal_that_ends_the_screen_keeps_the_answer_and_restores_the_terminal() {
    for (name, signal, code) in [("term", Signal::TERM, 143), ("hup", Signal::HUP, 129)] {
        let config = TestConfig::new(&format!("signals-{name}"));
        let mut terminal = start_thinking(&config);
        terminal.signal(signal);
        assert_eq!(terminal.end().code(), Some(code), "{name}");
        assert_restored(&terminal, name);
        let kept = config.stdout("sessions show --thinking full");
        assert!(kept.contains(LONG) && kept.contains("interrupted"), "{name}: {kept}");
    }
}

#[test]
fn a_closed_terminal_ends_aside_and_the_answer_is_kept() {
    let config = TestConfig::new("signals-unplug");
    assert_eq!(start_thinking(&config).hang_up().code(), Some(129));
    let kept = config.stdout("sessions show --thinking full");
    assert!(kept.contains(LONG) && kept.contains("interrupted"), "{kept}");
    let mut lines = Terminal::run(&["aside", "--plain", "-m", "sim/deepseek"], &config, &[]);
    lines.wait_for("You: ");
    lines.types(&format!("{LONG}\r"));
    lines.wait_for("Thinking:");
    lines.wait_for(". ");
    assert_eq!(lines.hang_up().code(), Some(129));
    assert_eq!(config.stdout("sessions list").lines().count(), 2);
}

#[test]
fn sigint_stops_the_answer_and_the_screen_stays() {
    let config = TestConfig::new("signals-int");
    let mut terminal = start_thinking(&config);
    terminal.signal(Signal::INT);
    terminal.wait_for("interrupted");
    terminal.types("/quit\r");
    assert_eq!(terminal.end().code(), Some(0));
    assert_restored(&terminal, "int");
}

#[test]
fn sigterm_ends_the_line_prompt_and_keeps_the_answer() {
    let config = TestConfig::new("signals-lines");
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

/// Starts the screen as a job of a shell with job control.
fn start_as_job(config: &TestConfig) -> Terminal {
    let mut terminal = Terminal::run(&["bash", "--norc", "--noprofile", "-i"], config, &[("PS1", "ready> ")]);
    terminal.wait_for("ready> ");
    terminal.types("aside -m sim/deepseek\r");
    terminal.wait_for(ENTERED);
    terminal.wait_for("/help");
    terminal
}

/// The shell's only child process.
fn child_of(terminal: &Terminal) -> Pid {
    let id = terminal.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    Pid::from_raw(children.trim().parse().unwrap()).unwrap()
}

#[test]
fn suspending_by_key_or_signal_restores_the_terminal_and_fg_takes_it_again() {
    for name in ["key", "signal"] {
        let config = TestConfig::new(&format!("signals-suspend-{name}"));
        let mut terminal = start_as_job(&config);
        match name {
            "key" => terminal.types("\u{1a}"),
            _ => kill_process(child_of(&terminal), Signal::TSTP).unwrap(),
        }
        terminal.wait_for(LEFT);
        terminal.wait_for("Stopped");
        terminal.wait_for("ready> ");
        terminal.types("fg\r");
        terminal.wait_for(ENTERED);
        // It redraws the whole screen and reads keys.
        terminal.wait_for("/help");
        terminal.types("/quit\r");
        terminal.wait_for(LEFT);
        terminal.wait_for("ready> ");
        terminal.types("exit\r");
        terminal.end();
        assert_restored(&terminal, name);
    }
}

#[test]
fn without_a_parent_shell_it_does_not_suspend() {
    let config = TestConfig::new("signals-no-shell");
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
        let config = TestConfig::new("signals-colours");
        let mut terminal = Terminal::run(&SCREEN, &config, &variables);
        terminal.wait_for("/help");
        terminal.types("sim: think seed=1\r");
        terminal.wait_for("ought for");
        terminal.types("/nonsense\r/quit\r");
        assert_eq!(terminal.end().code(), Some(0), "{name}");
        let all = terminal.all();
        // Colours only, not the codes of italics and default colours.
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

/// Set in the child process that panics.
const FAILS: &str = "ASIDE_TEST_FAILS";

#[test]
fn a_panic_restores_the_terminal_before_its_message_is_printed() {
    if std::env::var_os(FAILS).is_some() {
        return fail();
    }
    let config = TestConfig::new("signals-panic");
    let own = std::env::current_exe().unwrap().display().to_string();
    let name = "signals::a_panic_restores_the_terminal_before_its_message_is_printed";
    let mut terminal = Terminal::run(&[&own, "--exact", name, "--nocapture"], &config, &[(FAILS, "1")]);
    terminal.wait_for(ENTERED);
    terminal.wait_for("/help");
    terminal.types("go\r");
    let before = terminal.wait_for("this part broke");
    assert!(before.contains(LEFT), "{before:?}");
    terminal.end();
    assert_restored(&terminal, "panic");
    let all = terminal.all();
    assert_eq!(all.matches(ENTERED).count(), 1);
    let (_, behind) = all.split_once("this part broke").unwrap();
    assert!(!behind.contains("\u{1b}[?2026h"), "nothing is drawn over the words: {behind:?}");
}

/// A screen whose engine panics on the first command.
fn fail() {
    let (updates, to_screen) = std::sync::mpsc::channel();
    let (to_engine, commands) = std::sync::mpsc::channel();
    let engine = std::thread::spawn(move || {
        let heard = commands.recv();
        // Keeps the channel open until the panic.
        let _updates: std::sync::mpsc::Sender<aside_front::Update> = updates;
        panic!("this part broke: {heard:?}");
    });
    let app = aside_tui::app::App::new(aside_tui::app::Setup::default());
    let shown = aside_tui::run(app, to_screen, to_engine);
    assert!(engine.join().is_err());
    drop(shown);
}
