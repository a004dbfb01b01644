//! `aside --plain`: the line prompt, over pipes and in a terminal.

use rustix::process::Signal;

use crate::pty::Terminal;
use crate::support::{TestConfig, aside};

/// Sends lines to the line prompt. Its output must be plain text, without errors.
fn talk(config: &TestConfig, lines: &str) -> (i32, String) {
    let run = aside(&["--plain", "-m", "sim/deepseek"], lines.as_bytes(), Some(config));
    assert!(!run.stdout.chars().any(|c| c.is_control() && c != '\n'), "{:?}", run.stdout);
    assert_eq!(run.stderr, "");
    (run.code, run.stdout)
}

#[test]
fn t13_a_line_of_input_is_a_prompt_or_a_command() {
    let config = TestConfig::new("plain-lines");
    let (code, said) =
        talk(&config, "sim: think seed=1\n\n/thinking off\nsim: think seed=1\n/model\n/quit\nnot said\n");
    assert_eq!(code, 0);
    let words = [
        "Model: sim/deepseek\nYou: sim: think seed=1\nThinking:\n",
        "\nAnswer:\n",
        "\nYou: /thinking off\nThinking: off\nYou: sim: think seed=1\nAnswer:\n",
        "\nYou: /model\nmodel: sim/deepseek\nYou: /quit\n",
    ];
    let mut rest = said.as_str();
    for word in words {
        let (_, behind) = rest.split_once(word).unwrap_or_else(|| panic!("no {word:?} in {said:?}"));
        rest = behind;
    }
    assert_eq!(rest, "", "nothing is printed after /quit");
    // The view is saved, as on the screen.
    assert!(config.read("config.toml").contains("\"reasoning.display\" = \"off\""));
}

#[test]
fn t13_a_session_continues_as_plain_text() {
    let config = TestConfig::new("plain-resume");
    talk(&config, "remember the word moss\n");
    let run = aside(&["--plain", "-c", "-m", "sim/deepseek"], b"/undo\n/retry\n", Some(&config));
    let expected = "Session \"remember the word moss\": 2 messages\nYou said: remember the word moss\nThe answer was: ";
    assert!(run.stdout.contains(expected), "{}", run.stdout);
    let undone = "You: /undo\nSession \"remember the word moss\": 0 messages\n\
                  undone: \"remember the word moss\"; /retry asks it again\n";
    assert!(run.stdout.contains(undone), "{}", run.stdout);
    let (_, retried) = run.stdout.split_once("You: /retry\n").unwrap();
    assert!(retried.contains("You wrote: \"remember the word moss\""), "{retried}");
}

/// Undo, compaction and a title change a resumed session on disk even without a
/// new prompt.
#[test]
fn p2_a_resumed_session_is_changed_on_disk_before_a_new_prompt() {
    let config = TestConfig::new("plain-changed");
    let resume_reply = |lines: &str| {
        let run = aside(&["--plain", "-c", "-m", "sim/deepseek"], lines.as_bytes(), Some(&config));
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        run.stdout
    };
    let questions = || {
        let exported = config.stdout("sessions export --format jsonl");
        let said = ["first thing", "second thing", "third thing"];
        said.into_iter().filter(|said| exported.contains(&format!("\"text\":\"{said}\""))).collect::<Vec<_>>()
    };
    talk(&config, "first thing\nsecond thing\n");
    resume_reply("/undo\n/title Moss\n");
    assert!(resume_reply("").contains("Session \"Moss\": 2 messages\nYou said: first thing\n"));
    // A retried prompt is stored once.
    resume_reply("/retry\n");
    assert!(resume_reply("").contains("Session \"Moss\": 2 messages\nYou said: first thing\n"));
    resume_reply("second thing\n/compact\n");
    resume_reply("/compact\nthird thing\n/undo\n");
    assert!(!resume_reply("").contains("0 messages"), "nothing is lost: {}", resume_reply(""));
    assert!(questions().contains(&"second thing"), "{:?}", questions());
}

#[test]
fn a_title_set_before_the_first_prompt_stays() {
    let config = TestConfig::new("plain-title");
    talk(&config, "/title Moss\nhello\n");
    assert!(config.stdout("sessions list").contains("Moss"), "{}", config.stdout("sessions list"));
}

#[test]
fn t13_permission_questions_are_answered_with_lines() {
    let config = TestConfig::with("plain-asks", "[permissions]\nlist = \"ask\"\n");
    let (code, said) = talk(&config, "sim: tool-loop 2\ny\nhello\n");
    assert_eq!(code, 0);
    assert_eq!(said.matches("Question: list: .").count(), 2, "{said}");
    assert!(
        said.contains(
            "Tool: list\nQuestion: list: .\ns and p: aside will not ask again about `list`\nAnswer y: yes, once."
        ),
        "{said}"
    );
    assert!(said.contains("\nYou: y\nTool done: "), "{said}");
    // The line after the second question is not an answer: it stays a prompt.
    assert!(said.contains("You: hello\nDenied.\n"), "{said}");
    assert!(said.trim_end().ends_with("You wrote: \"hello\"."), "{said}");
}

#[test]
fn a_failed_turn_is_reported_and_sets_the_exit_code() {
    let config = TestConfig::new("plain-fails");
    let (code, said) = talk(&config, "sim: status 400\nsim: reasoning-only\n");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("the provider failed (400)"), "{said}");
    assert!(said.contains("Model provided reasoning but no response. Try rephrasing your question."), "{said}");
}

#[test]
fn t18_a_resumed_session_says_how_its_last_turn_ended() {
    let config = TestConfig::new("plain-resume-failed");
    talk(&config, "hello\nsim: status 400\n");
    let resumed = aside(&["--plain", "-c", "-m", "sim/deepseek"], b"", Some(&config)).stdout;
    let (_, end) = resumed.split_once("You said: sim: status 400\n").unwrap_or_else(|| panic!("{resumed}"));
    assert!(end.starts_with("the provider failed (400): "), "{resumed}");
    // It is not sent, and the next answer takes its place.
    let retried = aside(&["--plain", "-c", "-m", "sim/deepseek"], b"/undo\nhello again\n", Some(&config));
    assert_eq!(retried.code, 0, "{}", retried.stdout);
    let resumed = aside(&["--plain", "-c", "-m", "sim/deepseek"], b"", Some(&config)).stdout;
    assert!(resumed.contains("You said: hello again\nThe answer was: "), "{resumed}");
    assert!(!resumed.contains("failed"), "{resumed}");
}

#[test]
fn without_a_terminal_the_screen_says_what_to_use_instead() {
    let config = TestConfig::new("plain-hint");
    let run = aside(&["-m", "sim/deepseek"], b"hello\n", Some(&config));
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(
        run.stderr.contains("the screen needs a terminal") && run.stderr.contains("aside --plain"),
        "{}",
        run.stderr
    );
}

#[test]
fn t13_a_dumb_terminal_and_aside_plain_get_lines() {
    for (name, variable) in [("dumb", ("TERM", "dumb")), ("asked", ("ASIDE_PLAIN", "1"))] {
        let config = TestConfig::new(&format!("plain-{name}"));
        let mut terminal = Terminal::run(&["aside", "-m", "sim/deepseek"], &config, &[variable]);
        terminal.wait_for("You: ");
        terminal.types("hello\r");
        terminal.wait_for("Answer:");
        terminal.wait_for("You: ");
        // The end of input.
        terminal.types("\u{4}");
        assert_eq!(terminal.end().code(), Some(0), "{name}");
        assert!(!terminal.all().contains('\u{1b}'), "{name}: {:?}", terminal.all());
    }
}

#[test]
fn t10_ctrl_c_stops_the_answer_and_keeps_the_partial_reply() {
    let config = TestConfig::new("plain-interrupt");
    let program = ["aside", "--plain", "-m", "sim/deepseek"];
    let mut terminal = Terminal::run(&program, &config, &[]);
    terminal.wait_for("You: ");
    terminal.types("sim: think tokens=4000 rate=40 seed=3\r");
    let heard = terminal.wait_for("Thinking:\r\n") + &terminal.wait_for(" ") + &terminal.wait_for(". ");
    terminal.types("\u{3}");
    terminal.wait_for("Interrupted. What came is kept.");
    terminal.wait_for("You: ");
    terminal.signal(Signal::INT);
    terminal.wait_for("Once more leaves");
    terminal.types("/quit\r");
    assert_eq!(terminal.end().code(), Some(0));
    let kept = config.stdout("sessions show --thinking full");
    let first = heard.rsplit("Thinking:\r\n").next().unwrap().split(". ").next().unwrap();
    assert!(kept.contains(first), "{first:?} is not in {kept}");
    assert!(kept.contains("interrupted"), "{kept}");
}

#[test]
fn t16_ctrl_c_clears_the_typed_line_then_says_how_to_leave_then_leaves() {
    let config = TestConfig::new("plain-draft");
    let mut terminal = Terminal::run(&["aside", "--plain", "-m", "sim/deepseek"], &config, &[]);
    terminal.wait_for("You: ");
    terminal.types("hello\r");
    terminal.wait_for("Answer:");
    terminal.wait_for("You: ");
    terminal.types("a draft\u{3}");
    terminal.wait_for("The line is cleared.");
    terminal.wait_for("You: ");
    terminal.types("\u{3}");
    terminal.wait_for("Once more leaves, as Ctrl+D does.");
    terminal.wait_for("You: ");
    terminal.types("\u{3}");
    assert_eq!(terminal.end().code(), Some(0));
    terminal.wait_for("\r\naside -r ");
    assert!(terminal.is_restored());
    assert_eq!(terminal.all().matches("You wrote").count(), 1, "{}", terminal.all());
}

#[test]
fn t13_the_notices_of_the_start_come_before_the_first_prompt() {
    let config = TestConfig::new("plain-start");
    let mut terminal = Terminal::run(&["aside", "--plain"], &config, &[]);
    terminal.wait_for("You: ");
    let start = terminal.all().to_owned();
    let notice = start.find("using the simulator").expect("a notice");
    assert!(notice < start.find("You: ").expect("a prompt"), "{start}");
    assert_eq!(start.matches("You: ").count(), 1, "{start}");
}

#[test]
fn t17_t24_a_command_line_prints_its_output_while_it_runs_and_ctrl_c_ends_it() {
    let config = TestConfig::new("plain-live");
    let mut terminal = Terminal::run(&["aside", "--plain", "-m", "sim/deepseek"], &config, &[]);
    terminal.wait_for("You: ");
    terminal.types("!echo be\"\"gun; while sleep 600; do :; done\r");
    terminal.wait_for("\n  begun");
    terminal.types("\u{3}");
    terminal.wait_for("[ended by the user]");
    terminal.wait_for("You: ");
    terminal.types("/quit\r");
    assert_eq!(terminal.end().code(), Some(0));
}
