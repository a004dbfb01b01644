//! Finding text, own commands, command lines after `!`, and editing the input.

use super::scripted_provider::{ScriptedProvider, ScriptedStep};
use super::test_folders::TestFolders;
use super::{CTRL_F, DEFAULT_OPTIONS, ENTER, ESC, Terminal, TerminalOptions, UP};

const MODEL: &[&str] = &["-m", "played/some-model"];
const CTRL_W: &str = "\x17";
const CTRL_Y: &str = "\x19";
const CTRL_UNDERSCORE: &str = "\x1f";

fn say(text: &'static str) -> Vec<ScriptedStep> {
    vec![ScriptedStep::Say(text)]
}

#[test]
fn t24_words_are_found_in_folded_thinking_and_in_answers() {
    let filler = "filler line\n\n".repeat(30);
    let long: &'static str = Box::leak(filler.into_boxed_str());
    let provider = ScriptedProvider::new(vec![
        vec![ScriptedStep::Think("First.\n\nThe Walrus is hidden here."), ScriptedStep::Say("One answer.")],
        vec![ScriptedStep::Say(long)],
        say("A second walrus."),
    ]);
    let folder = TestFolders::new("find").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.enter("one");
    terminal.see("One answer.");
    terminal.idle();
    terminal.enter("two");
    terminal.see("filler line");
    terminal.idle();
    terminal.enter("three");
    terminal.see("A second walrus.");
    terminal.idle();
    assert!(!terminal.shows("hidden here"));
    terminal.keys(CTRL_F);
    terminal.see("find: ");
    terminal.keys("walrus");
    terminal.see("2 of 2");
    assert!(terminal.shows("A second walrus."), "{}", terminal.picture());
    terminal.keys(UP);
    terminal.see("1 of 2");
    terminal.see("The Walrus is hidden here.");
    assert!(terminal.shows("▼ Thought"), "{}", terminal.picture());
    let row = terminal.row_of("The Walrus is hidden here.");
    let line = terminal.line_with("The Walrus is hidden here.");
    let column = line.chars().position(|letter| letter == 'W').unwrap();
    let styles = terminal.styles(u16::try_from(row).unwrap());
    assert!(styles[column].underlined && styles[column].bold, "the match is marked");
    assert!(!styles[column - 2].underlined);
    terminal.keys("xyz");
    terminal.see("not found");
    terminal.keys(ESC);
    terminal.miss("find: ");
    terminal.enter("/find second");
    terminal.see("1 of 1");
    terminal.see("A second walrus.");
}

#[test]
fn t24_own_commands_come_from_files_and_are_read_when_they_run() {
    let provider = ScriptedProvider::new(vec![say("Reviewed."), say("Again."), say("Plainly.")]);
    let folder = TestFolders::new("own-commands").config(&provider.config());
    let commands = folder.config.join("commands");
    std::fs::create_dir_all(&commands).unwrap();
    std::fs::write(commands.join("review.md"), "---\ndescription: Review a file\n---\nReview $1 for $2.\n").unwrap();
    std::fs::write(commands.join("help.md"), "mine").unwrap();
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.see("/help is built in");
    terminal.keys("/rev");
    terminal.see("Review a file");
    terminal.keys("\t");
    terminal.keys("main.rs bugs");
    terminal.see("❯ /review main.rs bugs");
    terminal.keys(ENTER);
    terminal.see("Reviewed.");
    terminal.idle();
    assert!(terminal.shows("❯ Review main.rs for bugs."), "{}", terminal.picture());
    std::fs::write(commands.join("review.md"), "Look at $ARGUMENTS").unwrap();
    terminal.enter("/review all of it");
    terminal.see("Again.");
    terminal.idle();
    let asked: Vec<String> = provider.bodies().iter().map(last_message).collect();
    assert_eq!(asked, ["Review main.rs for bugs.", "Look at all of it"]);
    terminal.enter("/reviews");
    terminal.see("unknown command");
}

#[test]
fn t24_a_command_line_runs_here_and_reaches_the_model_only_on_request() {
    let provider = ScriptedProvider::new(vec![say("Hello."), say("I see it.")]);
    let folder = TestFolders::new("shell-lines").config(&provider.config()).file("a.txt", "a quokka\n");
    let mut terminal = Terminal::ready(&folder, MODEL);
    terminal.keys("!cat a.txt; echo $((40+2))");
    terminal.see("the model does not see it");
    terminal.keys(ENTER);
    terminal.see("a quokka");
    terminal.see("42");
    terminal.idle();
    terminal.enter("hi");
    terminal.see("Hello.");
    terminal.idle();
    terminal.enter("!!echo for-the-model; exit 3");
    terminal.see("I see it.");
    terminal.idle();
    let bodies = provider.bodies();
    assert!(!bodies[0].to_string().contains("quokka"), "{}", bodies[0]);
    let sent = last_message(&bodies[1]);
    assert!(sent.contains("$ echo for-the-model; exit 3\nfor-the-model\n[exit code 3]"), "{sent}");
    // What is sent is shown once, as the message that it is.
    let shown = terminal.lines().iter().filter(|line| line.trim() == "for-the-model").count();
    assert_eq!(shown, 1, "{}", terminal.picture());
    assert!(terminal.shows("❯ $ echo for-the-model; exit 3"), "{}", terminal.picture());
    // It is stopped like a turn.
    terminal.enter("!echo begun; sleep 600");
    terminal.see("begun");
    terminal.see("Esc stops");
    terminal.keys(ESC);
    terminal.see("ended by the user");
    terminal.idle();
}

#[test]
fn t24_keys_of_providers_do_not_reach_a_command_line() {
    let folder = TestFolders::new("shell-keys");
    let options = TerminalOptions { env: &[("DEEPSEEK_API_KEY", "sk-secret-of-the-user")], ..DEFAULT_OPTIONS };
    let mut terminal = Terminal::start(&folder, &["-m", "sim/deepseek"], options);
    terminal.see("❯ ");
    terminal.enter("!echo \"key: ${DEEPSEEK_API_KEY:-none}\"");
    terminal.see("key: none");
}

#[test]
fn t24_the_input_yanks_undoes_and_wraps_whole_words() {
    let folder = TestFolders::new("input-editing");
    let mut terminal =
        Terminal::start(&folder, &["-m", "sim/kimi"], TerminalOptions { columns: 40, ..DEFAULT_OPTIONS });
    terminal.see("❯ ");
    terminal.keys("a long sentence that must be wrapped between its words");
    terminal.see("between its words");
    let lines = terminal.lines();
    let words: Vec<&str> = lines.iter().rev().skip(1).take(3).rev().map(String::as_str).collect();
    assert_eq!(words[1..], ["❯ a long sentence that must be wrapped", "  between its words"], "{}", terminal.picture());
    terminal.keys(CTRL_W);
    terminal.miss("its words");
    terminal.keys(CTRL_Y);
    terminal.see("between its words");
    terminal.keys(CTRL_UNDERSCORE);
    terminal.miss("its words");
}

#[test]
fn t19_escape_leaves_no_command_in_the_input_and_the_theme_is_chosen_and_kept() {
    let folder = TestFolders::new("pickers");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.enter("/model");
    terminal.see("› ");
    terminal.keys(ESC);
    terminal.miss("› ");
    terminal.see("ask something");
    terminal.enter("/theme");
    terminal.see("› auto");
    terminal.keys("li");
    terminal.see("› light");
    terminal.keys(ENTER);
    terminal.see("theme: light; later sessions too");
    let config = std::fs::read_to_string(folder.config.join("config.toml")).unwrap();
    assert!(config.contains("\"screen.theme\" = \"light\""), "{config}");
    terminal.enter("/mouse off");
    terminal.see("mouse: dragging selects text");
    assert!(!terminal.emulator().modes().mouse);
    terminal.enter("/quit");
    terminal.ended();
    let mut again = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    assert!(!again.emulator().modes().mouse);
    again.enter("/theme");
    again.see("› light");
    again.keys(ESC);
    again.miss("› light");
    again.enter("/mouse on");
    again.see("belong to aside; later sessions too");
    assert!(again.emulator().modes().mouse);
}

#[test]
fn t19_the_list_of_models_has_what_the_provider_lists() {
    let provider = ScriptedProvider::new(Vec::new());
    let folder = TestFolders::new("live-models").config(&provider.config());
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    terminal.enter("/model");
    // It opens at the model in use, so what was listed may be above what is shown.
    terminal.see("› sim/kimi");
    terminal.keys("listed");
    terminal.see("› played/listed-live");
    terminal.keys(ENTER);
    terminal.see("model: played/listed-live");
}

#[test]
fn t19_pages_open_and_close_alike() {
    let folder = TestFolders::new("pages");
    let mut terminal = Terminal::ready(&folder, &["-m", "sim/kimi"]);
    for (command, words) in [("/help", "Keys"), ("/sent", "nothing has been sent"), ("/context", "~"), ("/set", "from")]
    {
        terminal.enter(command);
        terminal.see(words);
        terminal.see("q back");
        terminal.keys("q");
        terminal.see("ask something");
        assert!(!terminal.shows("q back"), "{}", terminal.picture());
    }
}

/// The text of the last message of a request.
fn last_message(body: &serde_json::Value) -> String {
    body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap_or_default().to_owned()
}
