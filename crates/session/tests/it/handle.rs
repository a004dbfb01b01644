//! Several sessions in one process, each with folders of its own.

use std::fs;
use std::sync::mpsc::Receiver;

use aside_core::block::Block;
use aside_core::message::{Message, Role};
use aside_core::turn::TurnEnd;
use aside_front::{Command, CommandOutput, ProfileAction, Update};
use aside_session::{Saving, SessionChoice, SessionHandle, SessionOptions, spawn};

use crate::support::TestFolders;

pub(crate) fn options(folders: &TestFolders) -> SessionOptions {
    let options = SessionOptions::new(folders.project(), folders.user());
    SessionOptions { model: Some("sim/deepseek".to_owned()), ..options }
}

/// All updates of one command.
pub(crate) fn until_ready(updates: &Receiver<Update>) -> Vec<Update> {
    updates.iter().take_while(|update| *update != Update::Ready).collect()
}

fn recorded(updates: &[Update]) -> Vec<&Message> {
    let recorded = updates.iter().filter_map(|update| match update {
        Update::Recorded(message) => Some(&**message),
        _ => None,
    });
    recorded.collect()
}

fn tool_results(updates: &[Update]) -> String {
    let messages = recorded(updates);
    let blocks = messages.iter().filter(|message| message.role == Role::Tool).flat_map(|message| &message.blocks);
    let results = blocks.filter_map(|block| match block {
        Block::ToolResult(result) => Some(result.content.as_str()),
        _ => None,
    });
    results.collect()
}

#[test]
fn two_sessions_in_one_process_share_nothing() {
    let names = ["moss", "fern"];
    let folders = names.map(|name| TestFolders::new(&format!("two-{name}")));
    for (name, folders) in names.iter().zip(&folders) {
        fs::write(folders.project().join(format!("{name}.txt")), *name).unwrap();
        folders.write_config(&format!(
            "[settings]\n\"reasoning.display\" = \"{}\"\n",
            if *name == "moss" { "full" } else { "off" }
        ));
    }
    let sessions: Vec<SessionHandle> = folders.iter().map(|folders| spawn(options(folders)).unwrap()).collect();
    let views: Vec<String> = sessions.iter().map(|session| session.setup.status.view.to_string()).collect();
    assert_eq!(views, ["full", "off"], "each has its own settings");
    for (session, name) in sessions.iter().zip(names) {
        assert_eq!(session.setup.lists.files, [format!("{name}.txt")], "each has its own folder");
        // Both turns run at the same time.
        session.commands.send(Command::Prompt("sim: tool-loop 1".to_owned())).unwrap();
    }
    for (session, name) in sessions.iter().zip(names) {
        let updates = until_ready(&session.updates);
        assert!(updates.contains(&Update::TurnEnded(TurnEnd::Answered)), "{updates:?}");
        assert!(tool_results(&updates).contains(&format!("{name}.txt")), "tools work in the session's folder");
        session.commands.send(Command::Export(Some("out.md".to_owned()))).unwrap();
        let written = CommandOutput::Line("written to out.md".to_owned());
        assert!(until_ready(&session.updates).contains(&Update::CommandOutput(written)));
    }
    let ids: Vec<_> = sessions
        .into_iter()
        .map(|SessionHandle { commands, session, .. }| {
            drop(commands);
            session.join().unwrap()
        })
        .collect();
    for ((folders, id), name) in folders.iter().zip(&ids).zip(names) {
        let exported = fs::read_to_string(folders.project().join("out.md")).unwrap();
        assert!(exported.contains(name), "files are written into the session's folder");
        // Only its own data folder has the session.
        let choice = SessionChoice::Named(id.to_string());
        let resumed = spawn(SessionOptions { choice, ..options(folders) }).unwrap();
        let said = format!("{:?}", resumed.setup.restored);
        assert!(said.contains(name) && resumed.setup.restored.len() > 2, "{said}");
    }
    let choice = SessionChoice::Named(ids[1].to_string());
    assert!(spawn(SessionOptions { choice, ..options(&folders[0]) }).is_err());
}

#[test]
fn a_session_that_is_not_saved_leaves_no_database() {
    let folders = TestFolders::new("unsaved");
    let session = spawn(SessionOptions { saving: Saving::Off, ..options(&folders) }).unwrap();
    session.commands.send(Command::Prompt("sim: plain".to_owned())).unwrap();
    assert!(until_ready(&session.updates).contains(&Update::TurnEnded(TurnEnd::Answered)));
    let SessionHandle { commands, session, .. } = session;
    drop(commands);
    assert_eq!(session.join(), None);
    assert!(!folders.user().data.unwrap().join("aside.db").exists());
    assert!(fs::read_dir(folders.user().data.unwrap()).is_err(), "the data folder was not even created");
}

#[test]
fn the_session_ends_when_its_commands_are_dropped_and_the_updates_end_with_it() {
    let folders = TestFolders::new("ends");
    let SessionHandle { commands, updates, session, .. } = spawn(options(&folders)).unwrap();
    drop(commands);
    assert_eq!(session.join(), None, "nothing was asked");
    let updates: Vec<Update> = updates.iter().collect();
    assert!(updates.iter().all(|update| matches!(update, Update::PromptHistory(_) | Update::Status(_))), "{updates:?}");
}

/// Asks and closes the session. Returns its id and what it said.
fn ask_and_close(handle: SessionHandle, prompt: &str) -> (String, Vec<Update>) {
    handle.commands.send(Command::Prompt(prompt.to_owned())).unwrap();
    let said = until_ready(&handle.updates);
    let SessionHandle { commands, session, .. } = handle;
    drop(commands);
    (session.join().unwrap().to_string(), said)
}

fn lines(updates: &[Update]) -> String {
    let lines = updates.iter().filter_map(|update| match update {
        Update::CommandOutput(CommandOutput::Line(line)) => Some(line.as_str()),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn p10_a_second_window_says_that_the_session_is_open_and_goes_on_in_a_copy() {
    let folders = TestFolders::new("windows");
    let (id, _) = ask_and_close(spawn(options(&folders)).unwrap(), "sim: plain");
    let again = || spawn(SessionOptions { choice: SessionChoice::Named(id.clone()), ..options(&folders) }).unwrap();
    // Nothing was sent in the first window yet: opening counts.
    let (first, second) = (again(), again());
    let (copy, said) = ask_and_close(second, "in the second window");
    assert_ne!(copy, id);
    let said = lines(&said);
    assert!(said.contains("open in another aside") && said.contains("continuing in a copy: "), "{said}");
    let (same, said) = ask_and_close(first, "in the first window");
    assert_eq!(same, id);
    assert!(!lines(&said).contains("copy"), "{said:?}");
    for (id, own, other) in [(&id, "first window", "second window"), (&copy, "second window", "first window")] {
        let choice = SessionChoice::Named(id.clone());
        let handle = spawn(SessionOptions { choice, ..options(&folders) }).unwrap();
        let shown = format!("{:?}", handle.setup.restored);
        assert!(shown.contains("sim: plain") && shown.contains(own) && !shown.contains(other), "{shown}");
    }
}

#[test]
fn p10_resuming_the_session_that_is_shown_does_not_make_it_open_elsewhere() {
    let folders = TestFolders::new("resumed-again");
    let (id, _) = ask_and_close(spawn(options(&folders)).unwrap(), "sim: plain");
    let handle = spawn(SessionOptions { choice: SessionChoice::Named(id.clone()), ..options(&folders) }).unwrap();
    handle.commands.send(Command::Other { name: "resume".to_owned(), rest: id.clone() }).unwrap();
    let said = until_ready(&handle.updates);
    assert!(!lines(&said).contains("another aside"), "{said:?}");
    assert_eq!(ask_and_close(handle, "go on").0, id);
}

fn user_texts(updates: &[Update]) -> Vec<String> {
    let users = recorded(updates).into_iter().filter(|message| message.role == Role::User);
    let texts = users.flat_map(|message| &message.blocks).filter_map(|block| match block {
        Block::Text(text) => Some(text.text.clone()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn t20_every_protocol_accepts_a_message_after_a_step() {
    let folders = TestFolders::new("steered");
    // The simulator judges each request as strictly as its provider.
    for model in ["deepseek", "kimi", "anthropic", "openai", "gemini", "ollama", "bedrock", "mistral"] {
        let options = SessionOptions { model: Some(format!("sim/{model}")), ..options(&folders) };
        let session = spawn(options).unwrap();
        session.commands.send(Command::Prompt("sim: tool-loop 3".to_owned())).unwrap();
        let mut updates = Vec::new();
        for update in session.updates.iter().take_while(|update| *update != Update::Ready) {
            let is_first_tool = matches!(update, Update::ToolStarted(_))
                && !updates.iter().any(|earlier| matches!(earlier, Update::ToolStarted(_)));
            if is_first_tool {
                session.commands.send(Command::Steer("and be brief".to_owned())).unwrap();
            }
            updates.push(update);
        }
        assert!(updates.contains(&Update::TurnEnded(TurnEnd::Answered)), "{model}: {updates:?}");
        assert_eq!(user_texts(&updates), ["sim: tool-loop 3", "and be brief"], "{model}");
    }
}

#[test]
fn t20_the_last_waiting_message_is_taken_back_and_no_other() {
    let folders = TestFolders::new("taken-back");
    let session = spawn(options(&folders)).unwrap();
    let send = |command| session.commands.send(command).unwrap();
    send(Command::Prompt("sim: stall".to_owned()));
    let is_open = |update: &Update| matches!(update, Update::Opened { .. });
    assert!(session.updates.iter().any(|update| is_open(&update)));
    send(Command::Steer("first".to_owned()));
    send(Command::Steer("second".to_owned()));
    for text in ["first", "second", "second"] {
        send(Command::TakeBack(text.to_owned()));
    }
    send(Command::Interrupt);
    let answers: Vec<Update> = until_ready(&session.updates)
        .into_iter()
        .filter(|update| matches!(update, Update::TakenBack(_) | Update::NotTakenBack(_) | Update::NotSteered { .. }))
        .collect();
    let expected = [
        Update::NotTakenBack("first".to_owned()),
        Update::TakenBack("second".to_owned()),
        Update::NotTakenBack("second".to_owned()),
        Update::NotSteered { text: "first".to_owned(), error: None },
    ];
    assert_eq!(answers, expected);
    send(Command::TakeBack("first".to_owned()));
    assert_eq!(session.updates.iter().next(), Some(Update::NotTakenBack("first".to_owned())));
}

#[test]
fn t20_a_message_without_a_turn_is_a_prompt_and_one_that_names_no_file_comes_back() {
    let folders = TestFolders::new("steered-idle");
    let session = spawn(options(&folders)).unwrap();
    session.commands.send(Command::Steer("sim: plain".to_owned())).unwrap();
    let updates = until_ready(&session.updates);
    assert_eq!(user_texts(&updates), ["sim: plain"]);
    session.commands.send(Command::Prompt("sim: slow".to_owned())).unwrap();
    let wrong = "look at @missing/file.rs".to_owned();
    let is_open = |update: &Update| matches!(update, Update::Opened { .. });
    assert!(session.updates.iter().any(|update| is_open(&update)));
    session.commands.send(Command::Steer(wrong.clone())).unwrap();
    let refused = session.updates.iter().find_map(|update| match update {
        Update::NotSteered { text, error } => Some((text, error)),
        _ => None,
    });
    let (text, error) = refused.unwrap();
    assert!(text == wrong && error.is_some_and(|error| error.what.contains("missing/file.rs")));
    session.commands.send(Command::Interrupt).unwrap();
    assert!(until_ready(&session.updates).contains(&Update::TurnEnded(TurnEnd::Interrupted)));
}

#[test]
fn t25_a_branch_that_changed_is_told_and_another_is_not() {
    let folders = TestFolders::new("branch");
    let head = folders.project().join(".git/HEAD");
    let check_out = |branch: &str| fs::write(&head, format!("ref: refs/heads/{branch}\n")).unwrap();
    fs::create_dir_all(folders.project().join(".git")).unwrap();
    check_out("main");
    let session = spawn(options(&folders)).unwrap();
    let ask = |shown: &str| session.commands.send(Command::RefreshBranch(Some(shown.to_owned()))).unwrap();
    // The answers to another command show that there is none to the first.
    let next_branch = || {
        session.commands.send(Command::TakeBack(String::new())).unwrap();
        let updates = session.updates.iter().take_while(|update| !matches!(update, Update::NotTakenBack(_)));
        let branches = updates.filter_map(|update| match update {
            Update::Status(status) => status.branch,
            _ => None,
        });
        branches.last()
    };
    next_branch();
    ask("main");
    assert_eq!(next_branch(), None);
    check_out("side");
    ask("main");
    assert_eq!(next_branch().as_deref(), Some("side"));
    session.commands.send(Command::Prompt("sim: stall".to_owned())).unwrap();
    assert!(session.updates.iter().any(|update| matches!(update, Update::Opened { .. })));
    check_out("third");
    ask("side");
    assert_eq!(next_branch().as_deref(), Some("third"), "during a turn too");
}

#[test]
fn saving_a_profile_names_the_settings_that_it_does_not_hold() {
    let folders = TestFolders::new("profile-note");
    let session = spawn(options(&folders)).unwrap();
    let replies = |command: Command| -> Vec<String> {
        session.commands.send(command).unwrap();
        let lines = until_ready(&session.updates).into_iter().filter_map(|update| match update {
            Update::CommandOutput(CommandOutput::Line(line)) => Some(line),
            _ => None,
        });
        lines.collect()
    };
    let save = || Command::Profile(ProfileAction::Save("work".to_owned()));
    assert_eq!(replies(save()), ["saved as work"]);
    for (key, value) in [("screen.notify", "off"), ("reasoning.effort", "low"), ("reply.maxBytes", "1000000")] {
        replies(Command::Set { key: key.to_owned(), value: value.to_owned() });
    }
    let note = "note: reply.maxBytes, screen.notify: not saved; a profile holds only the model and `reasoning.*`";
    assert_eq!(replies(save()), [format!("saved as work\n{note}")]);
}
