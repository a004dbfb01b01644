//! The input in a real terminal: the user's editor, prompts of earlier sessions,
//! key bindings of the config.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::pty::Terminal;
use crate::support::TestConfig;

const SCREEN: [&str; 3] = ["aside", "-m", "sim/deepseek"];

/// The end of `Thought for`: cells that do not change are not drawn again.
const DONE: &str = "ought for";

/// A script used as the editor.
fn editor(config: &TestConfig, script: &str) -> String {
    let path = config.0.join("editor.sh");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn t10_the_editor_has_the_terminal_to_itself_and_the_text_comes_back() {
    let config = TestConfig::new("editor");
    let visual = editor(&config, r#"echo "editing $(cat "$1")"; read -r added; echo "$added" >>"$1""#);
    let mut terminal = Terminal::run(&SCREEN, &config, &[("VISUAL", visual.as_str()), ("EDITOR", "false")]);
    terminal.wait_for("/help");
    terminal.types("first line\u{7}");
    terminal.wait_for("\u{1b}[?1049l");
    terminal.wait_for("editing first line");
    assert!(terminal.is_restored(), "the editor gets a terminal as a shell has it");
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
    let config = TestConfig::new("editor-fails");
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
fn t10_prompts_of_other_sessions_are_recalled_with_the_arrow_key() {
    let config = TestConfig::with("editor-history", "[keys]\nleave = \"f9\"\nstop = []\n");
    for prompt in ["the older prompt", "the newer prompt"] {
        let run = crate::support::aside(&["ask", "-m", "sim/deepseek", prompt], b"", Some(&config));
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
    let mut terminal = Terminal::run(&SCREEN, &config, &[]);
    terminal.wait_for("/help");
    // Replies arrive in order, so the prompt history has arrived before this one.
    terminal.types("/profile list\r");
    terminal.wait_for("there are none yet");
    terminal.types("\u{1b}[A\u{1b}[A\u{1b}[A\r");
    terminal.wait_for(DONE);
    // The config binds F9 to quit; Ctrl+D no longer quits.
    terminal.types("\u{4}\u{1b}[20~");
    assert_eq!(terminal.end().code(), Some(0));
    let kept = config.stdout("sessions list --json");
    assert_eq!(kept.matches("the older prompt").count(), 2, "{kept}");
}

#[test]
fn t1_the_reported_background_decides_the_shades_and_the_report_is_never_typed() {
    for (name, late) in [("in time", false), ("late", true)] {
        let config = TestConfig::new("editor-ground");
        let mut terminal = Terminal::run(&SCREEN, &config, &[("COLORTERM", "truecolor")]);
        const ANSWER: &str = "\u{1b}]11;rgb:ffff/ffff/ffff\u{7}\u{1b}[?1;2c";
        // Sent before the query, so it is in time even on a busy machine.
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
        // A shade darker than a white background, else lighter than a dark one.
        let (light, dark) = ("48;2;228;228;228", "48;2;41;42;45");
        let (expected, other) = if late { (dark, light) } else { (light, dark) };
        assert!(terminal.all().contains(expected) && !terminal.all().contains(other), "{name}: {}", terminal.all());
        let kept = config.stdout("sessions show");
        assert!(kept.contains("words of mine") && !kept.contains("rgb"), "{name}: {kept}");
    }
}
