//! Finding words in the transcript, and the line for command lines.

use aside_core::block::{Arguments, CallId, ToolCall, ToolResult};
use aside_core::settings::ThinkingDisplay;
use aside_core::turn::TurnEnd;
use aside_front::{Command, CommandOutput, OwnCommand, ShellOutput, TerminalAction, USER_CALL_PREFIX, Update};
use crossterm::event::KeyCode;

use crate::support::TestTerminal;

fn last_row(term: &mut TestTerminal) -> String {
    term.rows().pop().unwrap()
}

#[test]
fn t24_every_kind_of_block_is_searched_and_the_newest_match_comes_first() {
    let mut term = TestTerminal::new(80, 12);
    term.line("needle in a prompt");
    term.send();
    term.think(0, "a needle in thinking", 1_000);
    term.call(1, "c1", "shell", r#"{"command":"grep needle"}"#);
    term.result("c1", &format!("{}needle in output\n", "line\n".repeat(40)), false);
    term.write(2, "the **nee**dle and a `needle` in the answer");
    term.end(TurnEnd::Answered);
    term.update(Update::CommandOutput(CommandOutput::Line("needle in a notice".into())));
    term.screen();
    term.control('f');
    term.type_text("NEEDLE");
    let found = [
        (7, "needle in a notice"),
        (6, "the needle and a needle in the answer"),
        (5, "the needle and a needle in the answer"),
        (4, "needle in output"),
        (3, "grep needle"),
        (2, "a needle in thinking"),
        (1, "needle in a prompt"),
        (7, "needle in a notice"),
    ];
    for (number, text) in found {
        let screen = term.screen();
        assert!(last_row(&mut term).starts_with(&format!("find: NEEDLE  {number} of 7")), "{number}: {screen}");
        assert!(screen.contains(text), "{number}: {text}\n{screen}");
        term.key(KeyCode::Up);
    }
    term.key(KeyCode::Down);
    term.key(KeyCode::Down);
    assert!(last_row(&mut term).contains("1 of 7"), "{}", last_row(&mut term));
    term.key(KeyCode::Esc);
    assert!(!last_row(&mut term).contains("find"), "{}", last_row(&mut term));
}

#[test]
fn t24_hidden_thinking_is_counted_and_a_folded_block_stays_folded_unless_it_is_shown() {
    let mut term = TestTerminal::with_view(80, 12, ThinkingDisplay::Off);
    term.think(0, "a needle in thinking", 1_000);
    term.line("/find needle");
    assert!(last_row(&mut term).contains("not found · also in 1 hidden thought"), "{}", last_row(&mut term));
    let mut term = TestTerminal::new(80, 12);
    term.think(0, "a needle and a pin", 1_000);
    term.think(1, "only a pin", 1_000);
    term.line("/find pin");
    let screen = term.screen();
    assert!(screen.contains("▶ Thought for 1s · \"a needle") && screen.contains("│ only a pin"), "{screen}");
}

#[test]
fn t24_the_find_line_deletes_words_and_all_of_it_as_the_input_does() {
    let mut term = TestTerminal::new(80, 12);
    term.think(0, "a needle and a pin", 1_000);
    term.control('f');
    term.type_text("needle pins");
    assert!(last_row(&mut term).starts_with("find: needle pins  not found · Esc closes"), "{}", last_row(&mut term));
    term.control('w');
    assert!(last_row(&mut term).starts_with("find: needle  1 of 1"), "{}", last_row(&mut term));
    term.control('u');
    assert!(last_row(&mut term).starts_with("find:   type words"), "{}", last_row(&mut term));
}

#[test]
fn the_reader_and_the_selection_begin_with_the_thought_on_the_screen() {
    let scrolled = || {
        let mut term = TestTerminal::new(80, 12);
        for (block, word) in [(0, "first"), (2, "second"), (4, "third")] {
            term.think(block, &format!("the {word} thought"), 1_000);
            term.write(block + 1, &format!("{word} answer\n\n").repeat(20));
        }
        term.screen();
        term
    };
    let cases = [("the match", true), ("what is visible", false)];
    for (name, finds) in cases {
        let go_to_second = |term: &mut TestTerminal| {
            match finds {
                true => {
                    term.control('f');
                    term.type_text("second thought");
                    term.key(KeyCode::Esc);
                }
                false => {
                    while !term.screen().contains("second thought") {
                        term.key(KeyCode::PageUp);
                    }
                }
            }
            term.screen();
        };
        let mut term = scrolled();
        go_to_second(&mut term);
        term.control('r');
        let screen = term.screen();
        assert!(screen.contains("the second thought") && !screen.contains("answer"), "{name}: {screen}");

        let mut term = scrolled();
        go_to_second(&mut term);
        term.key(KeyCode::Tab);
        let screen = term.screen();
        assert!(screen.contains("second thought") && screen.contains("y copy"), "{name}: {screen}");
        term.type_text("y");
        let copied = Command::Terminal(TerminalAction::Copy("the second thought".into()));
        assert_eq!(term.sent.last(), Some(&copied), "{name}: {screen}");
    }
    let mut term = scrolled();
    term.control('r');
    assert!(term.screen().contains("the third thought"), "at the end: {}", term.screen());
}

#[test]
fn t24_a_block_that_only_matched_half_a_word_is_folded_again() {
    let mut term = TestTerminal::new(80, 20);
    term.think(0, "the units", 1_000);
    term.think(1, "an under", 1_000);
    term.control('f');
    term.type_text("un");
    assert!(term.screen().contains("│ an under"), "{}", term.screen());
    term.type_text("it");
    let screen = term.screen();
    assert!(screen.contains("│ the units") && screen.contains("▶ Thought for 1s · \"an under"), "{screen}");
    term.type_text("x");
    let screen = term.screen();
    assert!(screen.contains("not found") && !screen.contains("│ the units"), "{screen}");
    term.key(KeyCode::Backspace);
    term.key(KeyCode::Esc);
    assert!(term.screen().contains("│ the units"), "what was found stays open: {}", term.screen());
}

#[test]
fn t24_a_command_line_looks_like_a_running_tool_and_ends_like_one() {
    let mut term = TestTerminal::new(80, 12);
    term.type_text("!make all");
    assert!(term.screen().contains("runs here, unconfined; the model does not see it"), "{}", term.screen());
    term.key(KeyCode::Enter);
    assert_eq!(term.sent, [Command::Shell { command: "make all".into(), output: ShellOutput::User }]);
    let id = format!("{USER_CALL_PREFIX}1");
    term.update(Update::ToolStarted(Box::new(ToolCall::new(
        CallId::Given(id.clone()),
        "shell",
        Arguments::Json(r#"{"command":"make all"}"#.into()),
    ))));
    term.update(Update::ToolOutput { call: id.clone(), tail: "first\n".into(), n_lines: 1 });
    let screen = term.screen();
    assert!(screen.contains("shell make all") && screen.contains("first") && screen.contains("Esc stops"), "{screen}");
    let content = "first\nsecond\n[exit code 0]".to_owned();
    let result = ToolResult { id, name: "shell".into(), content, is_error: false, media: Vec::new() };
    term.update(Update::ToolEnded(Box::new(result)));
    let screen = term.screen();
    assert!(screen.contains("second") && !screen.contains("Esc stops"), "{screen}");
    term.line("!!make\n!test");
    assert_eq!(term.sent.last(), Some(&Command::Prompt("!!make\n!test".into())), "several lines are a prompt");
}

#[test]
fn t24_own_commands_are_offered_and_explained() {
    let mut term = TestTerminal::new(80, 60);
    let commands = vec![OwnCommand { name: "review".into(), about: "Review *a* file".into() }];
    term.update(Update::CompletionLists(Box::new(aside_front::CompletionLists { commands, ..Default::default() })));
    term.line("/review src/a.rs");
    assert_eq!(term.sent, [Command::Own { name: "review".into(), arguments: "src/a.rs".into() }]);
    term.line("/help");
    term.screen();
    term.type_text("G");
    assert!(term.screen().contains("/review"), "{}", term.screen());
    assert!(term.screen().contains("Review *a* file (yours)"), "{}", term.screen());
}
