//! The input in a real terminal: the user's own editor, prompts of earlier
//! sessions, keys of the config.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::pty::Terminal;
use crate::support::Config;

const SCREEN: [&str; 3] = ["aside", "-m", "sim/deepseek"];

/// The end of `Thought for`: what stands there already is not drawn again.
const DONE: &str = "ought for";

/// An editor that adds a line once a key was pressed, as a person would.
fn editor(config: &Config, script: &str) -> String {
    let path = config.0.join("editor.sh");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn t10_the_editor_has_the_terminal_to_itself_and_the_text_comes_back() {
    let config = Config::new("editor");
    let visual = editor(&config, r#"echo "editing $(cat "$1")"; read -r added; echo "$added" >>"$1""#);
    let mut terminal = Terminal::run(&SCREEN, &config, &[("VISUAL", visual.as_str()), ("EDITOR", "false")]);
    terminal.wait_for("/help");
    terminal.types("first line\u{7}");
    terminal.wait_for("\u{1b}[?1049l");
    terminal.wait_for("editing first line");
    assert!(terminal.is_as_it_was(), "the editor gets a terminal as a shell has it");
    terminal.types("second line\r");
    terminal.wait_for("\u{1b}[?1049h");
    terminal.wait_for("second");
    terminal.types("\r");
    terminal.wait_for(DONE);
    terminal.types("\u{4}");
    assert_eq!(terminal.end().code(), Some(0));
    let kept = config.stdout("sessions show");
    assert!(kept.contains("first line") && kept.contains("second line"), "{kept}");
}

#[test]
fn t10_an_editor_that_fails_says_so_and_the_text_stays() {
    let config = Config::new("editor-fails");
    let mut terminal = Terminal::run(&SCREEN, &config, &[("EDITOR", "false")]);
    terminal.wait_for("/help");
    terminal.types("a draft\u{7}");
    terminal.wait_for("`false` failed");
    terminal.types(" stays\r");
    terminal.wait_for(DONE);
    terminal.types("\u{4}");
    assert_eq!(terminal.end().code(), Some(0));
    assert!(config.stdout("sessions show").contains("a draft stays"));
}

#[test]
fn t10_what_was_sent_in_another_session_is_called_back_with_the_arrow() {
    let config = Config::with("editor-history", "[keys]\nleave = \"f9\"\nstop = []\n");
    for prompt in ["the older prompt", "the newer prompt"] {
        let run = crate::support::aside(&["ask", "-m", "sim/deepseek", prompt], b"", Some(&config));
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
    let mut terminal = Terminal::run(&SCREEN, &config, &[]);
    terminal.wait_for("/help");
    // The engine answers in order, so the prompts are there with the answer.
    terminal.types("/model\r");
    terminal.wait_for("model:");
    terminal.types("\u{1b}[A\u{1b}[A\u{1b}[A\r");
    terminal.wait_for(DONE);
    // F9 leaves, since the config says so; Ctrl+D does no more.
    terminal.types("\u{4}\u{1b}[20~");
    assert_eq!(terminal.end().code(), Some(0));
    let kept = config.stdout("sessions list --json");
    assert_eq!(kept.matches("the older prompt").count(), 2, "{kept}");
}

#[test]
fn t1_the_ground_the_terminal_tells_decides_the_shades_and_its_answer_is_never_typed() {
    for (name, late) in [("in time", false), ("late", true)] {
        let config = Config::new("editor-ground");
        let mut terminal = Terminal::run(&SCREEN, &config, &[("COLORTERM", "truecolor")]);
        const ANSWER: &str = "\u{1b}]11;rgb:ffff/ffff/ffff\u{7}\u{1b}[?1;2c";
        // Before it is asked is in time on the busiest machine.
        if !late {
            terminal.types(ANSWER);
        }
        terminal.wait_for("\u{1b}]11;?");
        terminal.wait_for("/help");
        if late {
            terminal.types(ANSWER);
        }
        terminal.types("words of mine\r");
        terminal.wait_for("ought for");
        terminal.types("\u{4}");
        assert_eq!(terminal.end().code(), Some(0), "{name}");
        // Darker than white where it is white, else lighter than a dark one.
        let (light, dark) = ("48;2;228;228;228", "48;2;41;42;45");
        let (expected, other) = if late { (dark, light) } else { (light, dark) };
        assert!(terminal.all().contains(expected) && !terminal.all().contains(other), "{name}: {}", terminal.all());
        let kept = config.stdout("sessions show");
        assert!(kept.contains("words of mine") && !kept.contains("rgb"), "{name}: {kept}");
    }
}
