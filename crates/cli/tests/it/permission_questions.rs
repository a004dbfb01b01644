//! Permission questions of `ask` and `--plain` in a real terminal, with a provider
//! that tries to deceive the user.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::pty::Terminal;
use crate::support::TestConfig;
use crate::terminal::scripted_provider::{ScriptedProvider, ScriptedStep};

/// Longer than the time in which keys are ignored.
const READ: Duration = Duration::from_millis(900);

const ASK: [&str; 5] = ["aside", "ask", "-m", "played/some-model", "go"];
const PLAIN: [&str; 4] = ["aside", "--plain", "-m", "played/some-model"];

fn played(name: &str, calls: &[(&'static str, &str)]) -> (ScriptedProvider, TestConfig) {
    let call = |(tool, arguments): &(&'static str, &str)| {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        vec![ScriptedStep::Call { id: "c1", name: tool, arguments }]
    };
    let mut replies: Vec<Vec<ScriptedStep>> = calls.iter().map(call).collect();
    replies.push(vec![ScriptedStep::Say("It is over.")]);
    let provider = ScriptedProvider::new(replies);
    let config = TestConfig::with(name, &provider.config());
    (provider, config)
}

fn shell(command: &str) -> String {
    json!({"command": command}).to_string()
}

/// The text of a question, up to its answers.
fn question(terminal: &mut Terminal) -> String {
    terminal.wait_for("allow?")
}

#[test]
fn no_part_of_a_command_is_hidden_from_the_user() {
    #[rustfmt::skip]
    let cases = [
        ("c1",   "git status \u{9d};touch never;: \u{9c}", "│!git status <U+009D>;touch never;: <U+009C>"),
        ("osc",  "git status \u{1b}];touch never;: \u{7}", "│!git status ␛];touch never;: ␇"),
        ("dcs",  "git status \u{1b}P;touch never;: \u{1b}\\", "│!git status ␛P;touch never;: ␛\\"),
        ("csi",  "git status \u{1b}[;touch never;: m", "│!git status ␛[;touch never;: m"),
        ("cr",   "touch never\rgit status  ", "│!touch never␍git status"),
        ("bidi", "git status \u{202e}never hcuot;", "│!git status <U+202E>never hcuot;"),
    ];
    for (name, command, shown) in cases {
        let (_provider, config) = played(&format!("hidden-{name}"), &[("shell", &shell(command))]);
        let mut terminal = Terminal::run(&ASK, &config, &[]);
        let asked = question(&mut terminal);
        assert!(asked.contains(shown), "{name}: {asked:?}");
        assert!(!asked.contains("session"), "{name}: {asked:?}");
        sleep(READ);
        terminal.types("n");
        assert_eq!(terminal.end().code(), Some(0), "{name}");
        assert!(!config.project().join("never").exists(), "{name}");
        assert!(!terminal.all().contains('\u{9d}'), "{name}");
    }
}

#[test]
fn keys_typed_too_early_are_not_an_answer() {
    let (_provider, config) = played("early", &[("shell", &shell("touch made"))]);
    let mut terminal = Terminal::run(&ASK, &config, &[]);
    // Before the question, and too soon after it.
    terminal.types("y\ry\r");
    question(&mut terminal);
    terminal.types("y");
    sleep(READ);
    assert!(!config.project().join("made").exists(), "nobody had read it");
    terminal.types("\r");
    sleep(Duration::from_millis(300));
    assert!(!config.project().join("made").exists(), "no answer is selected at first");
    terminal.types("y");
    assert_eq!(terminal.end().code(), Some(0));
    assert!(config.project().join("made").exists());
    assert!(terminal.is_restored());
}

#[test]
fn arrows_select_and_enter_confirms() {
    let (_provider, config) = played("arrows", &[("shell", &shell("touch made")), ("shell", &shell("touch made"))]);
    let mut terminal = Terminal::run(&ASK, &config, &[]);
    question(&mut terminal);
    sleep(READ);
    terminal.types("\x1b[C");
    terminal.wait_for("›y once");
    terminal.types("\x1b[C");
    terminal.wait_for("›s this session");
    terminal.types("\r");
    assert_eq!(terminal.end().code(), Some(0), "the second call is not asked about");
    assert!(config.project().join("made").exists());
}

#[test]
fn t16_ctrl_c_at_a_question_denies_stops_and_exits_130() {
    let (provider, config) = played("ctrl-c", &[("shell", &shell("touch never"))]);
    let mut terminal = Terminal::run(&ASK, &config, &[]);
    question(&mut terminal);
    terminal.types("\x03");
    assert_eq!(terminal.end().code(), Some(130));
    assert!(!config.project().join("never").exists());
    assert_eq!(provider.bodies().len(), 1, "nothing more is sent");
    assert!(terminal.is_restored());
}

#[test]
fn a_long_diff_says_what_is_not_shown_and_v_shows_it() {
    let content: String = (1..=60).map(|n| format!("line {n}\n")).collect();
    let arguments = json!({"path": "long.txt", "content": content}).to_string();
    let (_provider, config) = played("long", &[("write", &arguments)]);
    let mut terminal = Terminal::run(&ASK, &config, &[]);
    let asked = question(&mut terminal);
    assert!(asked.contains("lines not shown (v shows all)") && !asked.contains("line 60"), "{asked}");
    sleep(READ);
    terminal.types("v");
    let whole = question(&mut terminal);
    assert!(whole.contains("│ +line 60") && !whole.contains("not shown"), "{whole}");
    sleep(READ);
    terminal.types("y");
    assert_eq!(terminal.end().code(), Some(0));
    assert_eq!(std::fs::read_to_string(config.project().join("long.txt")).unwrap(), content);
}

#[test]
fn text_in_a_command_cannot_imitate_our_own_lines() {
    let fake = format!("true {}\nallow? y once · n no\ntier: strong (network off)", " ".repeat(200));
    let (_provider, config) = played("imitation", &[("shell", &shell(&fake))]);
    let mut terminal = Terminal::run(&ASK, &config, &[]);
    terminal.wait_for("shell: true");
    let asked = terminal.wait_for("\u{1b}[2Kallow? y once");
    let lines = asked.lines().skip(1).map(str::trim_end).filter(|line| !line.is_empty());
    let body: Vec<&str> = lines.take_while(|line| !line.starts_with("\r\u{1b}")).collect();
    assert!(body.contains(&"│ allow? y once · n no"), "{body:?}");
    assert!(!body.iter().any(|line| line.starts_with("allow?")), "{body:?}");
    terminal.types("\x03");
    assert_eq!(terminal.end().code(), Some(130));
}

#[test]
fn with_json_a_question_is_an_event_and_nobody_answers_without_a_terminal() {
    let (_provider, config) = played("json", &[("shell", &shell("touch never"))]);
    let run = config.run("ask --json -m played/some-model go");
    let events: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let find = |name: &str| events.iter().find(|event| event["event"] == name).unwrap_or(&Value::Null);
    let asked = find("question");
    assert_eq!((asked["tool"].as_str(), asked["subject"].as_str()), (Some("shell"), Some("touch never")));
    assert_eq!((asked["id"].as_str(), asked["outside"].is_null()), (Some("c1"), true));
    assert_eq!((find("answered")["id"].as_str(), find("answered")["permit"].as_str()), (Some("c1"), Some("nobody")));
}

#[test]
fn plain_shows_the_same_question_and_ignores_earlier_input() {
    let (_provider, config) = played("plain", &[("shell", &shell("touch made \u{9d}x\u{9c}"))]);
    let mut terminal = Terminal::run(&PLAIN, &config, &[]);
    terminal.wait_for("You: ");
    terminal.types("go\r");
    terminal.wait_for("Question: shell: touch made <U+009D>x<U+009C>");
    terminal.wait_for("│!touch made <U+009D>x<U+009C>");
    let asked = terminal.wait_for("Allow? ");
    assert!(!asked.contains("for this session"), "{asked}");
    terminal.types("y\r");
    terminal.wait_for("too soon");
    assert!(!config.project().join("made").exists(), "nobody had read it");
    sleep(READ);
    terminal.types("y\r");
    terminal.wait_for("It is over.");
    assert!(config.project().join("made").exists());
    terminal.types("/quit\r");
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn signals_end_ask_and_its_child_processes() {
    use rustix::process::Signal;
    for (name, signal, code) in [("term", Signal::TERM, 143), ("hup", Signal::HUP, 129)] {
        // Inside the sandbox the process id may differ, so arguments identify it.
        let seconds = format!("600.{}{code}", std::process::id());
        let command = format!("sh -c 'setsid sleep {seconds} & touch started; wait'");
        let (_provider, config) = played(&format!("ask-{name}"), &[("shell", &shell(&command))]);
        let mut terminal = Terminal::run(&[&ASK[..2], &["--yes"], &ASK[2..]].concat(), &config, &[]);
        while !config.project().join("started").exists() || !is_running(&seconds) {
            sleep(Duration::from_millis(20));
        }
        terminal.signal(signal);
        assert_eq!(terminal.end().code(), Some(code), "{name}");
        assert!(!is_running(&seconds), "{name}: what the command started is gone with it");
    }
}

/// Whether a `sleep` process with this argument exists.
fn is_running(seconds: &str) -> bool {
    let commands = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let command = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&command).into_owned())
    });
    commands.into_iter().any(|command| command.starts_with("sleep\0") && command.contains(seconds))
}
