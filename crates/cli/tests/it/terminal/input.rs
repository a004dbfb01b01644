//! The input: pastes, queued prompts, model switches, commands.

use std::time::{Duration, Instant};

use super::scripted_provider::{ScriptedProvider, ScriptedStep};
use super::test_folders::TestFolders;
use super::{CTRL_Q, ENTER, Terminal, UP};

#[test]
fn t10_ten_thousand_pasted_lines_are_folded_in_the_input_and_sent_in_full() {
    let provider = ScriptedProvider::new(vec![vec![ScriptedStep::Say("Read.")]]);
    let folder = TestFolders::new("paste").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, &["-m", "played/some-model"]);
    let text: String = (1..=10_000).map(|line| format!("line {line} of a long log\n")).collect();
    terminal.keys("look: ");
    let began = Instant::now();
    terminal.paste(&text.replace('\n', "\r"));
    // With or without a thousands separator.
    let is_folded = |line: &String| line.starts_with("❯ look: [pasted 10") && line.contains("000 lines]");
    terminal.until("one thing", |lines| lines.iter().any(is_folded));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(60), "{took:?} for a paste");
    terminal.keys(" thanks");
    terminal.see("000 lines] thanks");
    terminal.keys(ENTER);
    terminal.see("Read.");
    terminal.idle();
    let bodies = provider.bodies();
    let said = bodies[0]["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    assert_eq!(said.as_str().unwrap(), format!("look: {text} thanks"));
}

#[test]
fn t20_ctrl_q_queues_a_prompt_for_after_the_turn_and_it_can_still_be_changed() {
    let provider = ScriptedProvider::new(vec![
        vec![ScriptedStep::Think("I look."), ScriptedStep::Hold, ScriptedStep::Say("First.")],
        vec![ScriptedStep::Say("Second.")],
    ]);
    let folder = TestFolders::new("queue").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, &["-m", "played/some-model"]);
    terminal.enter("first question");
    terminal.see("Thinking");
    terminal.keys("second question");
    terminal.see("❯ second question");
    terminal.keys(CTRL_Q);
    terminal.see("queued: second question");
    terminal.keys(UP);
    terminal.see("❯ second question");
    terminal.miss("queued:");
    terminal.keys(", please");
    terminal.see("❯ second question, please");
    terminal.keys(CTRL_Q);
    terminal.see("queued: second question, please");
    provider.resume_reply();
    terminal.see("Second.");
    terminal.idle();
    assert!(!terminal.shows("queued:"), "{}", terminal.picture());
    let rows = [terminal.row_of("❯ first question"), terminal.row_of("❯ second question, please")];
    assert!(rows[0] < rows[1], "{}", terminal.picture());
}

#[test]
fn e8_the_model_can_be_switched_in_the_middle_of_a_session() {
    let folder = TestFolders::new("switch");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/anthropic"]);
    terminal.enter("first");
    terminal.see("imitating anthropic");
    terminal.idle();
    terminal.enter("/model sim/deepseek");
    terminal.see("model: sim/deepseek");
    terminal.enter("second");
    terminal.see("imitating deepseek");
    terminal.idle();
    assert!(terminal.lines().last().unwrap().starts_with("sim/deepseek · "), "{}", terminal.picture());
    terminal.enter("/model sim/nothing");
    terminal.see("✗ ");
    terminal.enter("/model sim/anthropic");
    terminal.see("model: sim/anthropic");
    terminal.enter("third");
    terminal.see("You wrote: \"third\"");
    assert!(terminal.shows("imitating anthropic"), "{}", terminal.picture());
}

#[test]
fn t12_thinking_is_read_full_screen_and_copied() {
    let provider = ScriptedProvider::new(vec![vec![
        ScriptedStep::Think("First this.\n\nThen that."),
        ScriptedStep::Say("**Both** of them."),
    ]]);
    let folder = TestFolders::new("reader").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, &["-m", "played/some-model"]);
    terminal.enter("which?");
    terminal.see("Both of them.");
    terminal.idle();
    terminal.enter("/reader");
    terminal.until("the thought alone", |lines| {
        let has = |text: &str| lines.iter().any(|line| line.contains(text));
        has("First this.") && has("Then that.") && !has("Both of them.")
    });
    terminal.keys("y");
    terminal.keys("q");
    terminal.see("Both of them.");
    terminal.enter("/copy");
    terminal.see("answer copied");
    let copied: Vec<String> = terminal.emulator().copied().iter().map(|data| decoded(data)).collect();
    assert_eq!(copied, ["First this.\n\nThen that.", "**Both** of them."]);
}

fn decoded(data: &[u8]) -> String {
    use base64::Engine as _;
    String::from_utf8(base64::engine::general_purpose::STANDARD.decode(data).unwrap()).unwrap()
}
