//! Commands that the screen carries out itself, and the output of engine commands.

use std::sync::Arc;

use aside_core::block::{Arguments, Block, CallId, Origin, ToolCall, ToolResult};
use aside_core::compaction::summary_message;
use aside_core::event::ProviderError;
use aside_core::message::{Message, Role};
use aside_core::settings::ScreenTheme;
use aside_core::turn::TurnEnd;
use aside_front::slash_commands::COMMANDS;
use aside_front::{
    Command, CommandOutput, CompletionLists, DecisionRow, MessagePart, NextRequest, ScreenSettings, Sending, Status,
    Update,
};
use crossterm::event::KeyCode;

use crate::support::{TestTerminal, text_block, thinking};

#[test]
fn sent_shows_the_decisions_of_the_last_request_under_both_names() {
    for name in ["/sent", "/explain"] {
        let mut term = TestTerminal::new(80, 30);
        term.line(name);
        assert!(term.screen().contains("nothing has been sent"), "{}", term.screen());
        term.key(KeyCode::Esc);
        let row = |what: &str, action: &str, why: &str| DecisionRow {
            what: what.into(),
            action: action.into(),
            why: why.into(),
            ..DecisionRow::default()
        };
        let sending = Sending {
            step: 2,
            model: "acme/deep".into(),
            effort: Some("low".into()),
            tokens: 1_234,
            notes: vec!["effort `minimal` is sent as `low`".into()],
            decisions: vec![row("message 2: thinking \"Hm\"", "dropped", "stripped from context")],
            ..Sending::default()
        };
        term.update(Update::Sending(Box::new(sending)));
        term.line(name);
        let screen = term.screen();
        for expected in [
            "to acme/deep · step 2 · effort low · ~1.2k tokens",
            "effort `minimal` is sent as `low`",
            "message 2: thinking \"Hm\" │ dropped │ stripped from context",
        ] {
            assert!(screen.contains(expected), "{name}: {expected}\n{screen}");
        }
    }
}

#[test]
fn a_lowered_effort_is_said_once_and_not_in_every_step() {
    let mut term = TestTerminal::new(80, 30);
    let note = "effort `max` is sent as `high`, the next lower level of this model";
    let send = |term: &mut TestTerminal, step: u32, notes: &[&str]| {
        let notes = notes.iter().map(|note| (*note).to_owned()).collect();
        term.update(Update::Sending(Box::new(Sending { step, notes, ..Sending::default() })));
        term.screen().matches(note).count()
    };
    assert_eq!([1, 2, 3].map(|step| send(&mut term, step, &[note])), [1, 1, 1]);
    assert_eq!(send(&mut term, 1, &[]), 1);
    assert_eq!(send(&mut term, 1, &[note]), 2, "it holds again");
    assert_eq!(send(&mut term, 1, &[]), 2);
    term.update(Update::CommandOutput(CommandOutput::Line(note.to_owned())));
    assert_eq!(send(&mut term, 1, &[note]), 3, "the reply to /effort said it");
}

#[test]
fn engine_commands_are_passed_on_with_their_arguments() {
    let mut term = TestTerminal::new(80, 20);
    let lines = ["/context", "/tools off shell", "/permissions forget shell:make all", "/record a.jsonl", "/open 2"];
    for line in lines {
        term.line(line);
    }
    let other = |line: &str| {
        let (name, rest) = line[1..].split_once(' ').unwrap_or((&line[1..], ""));
        Command::Other { name: name.into(), rest: rest.into() }
    };
    assert_eq!(term.sent, lines.map(other));
}

#[test]
fn table_cells_are_shown_literally() {
    let mut term = TestTerminal::new(80, 20);
    let cells = ["shell:rm *a* _b_ `c` | <d> [e](f)", "allow"].map(str::to_owned).to_vec();
    term.update(Update::CommandOutput(CommandOutput::Table {
        head: vec!["rule".into(), "does".into()],
        rows: vec![cells],
    }));
    let screen = term.screen();
    assert!(screen.contains("shell:rm *a* _b_ `c` | <d> [e](f) │ allow"), "{screen}");
}

#[test]
fn a_page_is_headed_by_its_command() {
    let mut term = TestTerminal::new(60, 20);
    let table = CommandOutput::Table { head: vec!["tool".into()], rows: vec![vec!["read".into()]] };
    for (command, page) in [("/tools", table), ("/search *a* walrus", CommandOutput::Markdown("1. a walrus\n".into()))]
    {
        term.update(Update::CommandOutput(CommandOutput::Titled { command: command.into(), page: Box::new(page) }));
    }
    let expected = ["/tools", "tool", "────", "read", "/search *a* walrus", "1. a walrus"];
    assert_eq!(term.transcript().iter().map(|row| row.trim()).collect::<Vec<_>>(), expected);
}

#[test]
fn a_list_longer_than_the_screen_is_shown_from_its_first_entry() {
    let mut term = TestTerminal::new(60, 20);
    term.screen();
    let list = |n: usize| (1..=n).map(|n| format!("{n}. session {n}\n")).collect::<String>();
    let output = |n: usize| {
        let page = Box::new(CommandOutput::Markdown(list(n)));
        Update::CommandOutput(CommandOutput::Titled { command: "/sessions".into(), page })
    };
    term.update(output(5));
    assert!(term.screen().contains("5. session 5"), "{}", term.screen());
    term.update(output(40));
    let screen = term.screen();
    assert!(screen.contains("1. session 1") && !screen.contains("session 40"), "{screen}");
    assert_eq!(term.transcript().first().map(|row| row.trim()), Some("/sessions"), "{screen}");
    assert!(screen.contains("end"), "the way to the end is shown: {screen}");
}

#[test]
fn every_required_command_exists_and_is_documented() {
    let wanted = "help model effort thinking set unset profile context compact sent usage search sessions resume fork \
                  undo retry export copy tools permissions record quit";
    for name in wanted.split_whitespace() {
        let entry = COMMANDS.iter().find(|entry| entry.name == name);
        assert!(entry.is_some_and(|entry| !entry.doc.is_empty()), "/{name}");
    }
}

#[test]
fn a_search_hit_is_scrolled_to_and_its_thinking_opened() {
    let mut history = Vec::new();
    for n in 0..20 {
        history.push(Message::new(Role::User, vec![text_block(&format!("question {n}"))]));
        let thought = Block::Thinking(thinking(&format!("deep thought {n}"), None));
        history.push(Message::new(Role::Assistant, vec![thought, text_block(&format!("answer {n}"))]));
    }
    let mut term = TestTerminal::new(60, 14);
    term.update(Update::Restored(history.clone().into_iter().map(Arc::new).collect()));
    assert!(term.screen().contains("answer 19"));
    term.update(Update::GoTo { message: 9, part: MessagePart::Thinking(0) });
    let said = term.transcript();
    assert_eq!(said[..3], ["▼ Thought · \"deep thought 4\"", "│ deep thought 4", "answer 4"], "{said:#?}");
    term.update(Update::GoTo { message: 10, part: MessagePart::Start });
    assert_eq!(term.transcript()[0], "❯ question 5");
    // An unknown message does not scroll.
    term.update(Update::GoTo { message: 99, part: MessagePart::Start });
    assert_eq!(term.transcript()[0], "❯ question 5");
}

#[test]
fn a_search_hit_is_shown_and_highlighted_until_the_next_command() {
    let long = |word: &str| (1..40).map(|n| format!("line {n}\n\n")).collect::<String>() + word + " at the end";
    let thought = Block::Thinking(thinking(&long("a walrus"), None));
    let history = vec![
        Message::new(Role::User, vec![text_block("a walrus?")]),
        Message::new(Role::Assistant, vec![thought, text_block(&long("the walruses"))]),
    ];
    #[rustfmt::skip]
    let cases = [
        ("in a thought",    "walrus",            MessagePart::Thinking(0), "│ a walrus at the end", "walrus"),
        ("a prefix",        "walr*",             MessagePart::Thinking(0), "│ a walrus at the end", "walr"),
        ("words apart",     "end walruses",      MessagePart::Start,       "the walruses at the end", "walruses"),
        ("another form",    "seal",              MessagePart::Thinking(0), "│ line 1", ""),
    ];
    for (name, words, part, expected, marked) in cases {
        let mut term = TestTerminal::new(60, 14);
        term.update(Update::Restored(history.clone().into_iter().map(Arc::new).collect()));
        term.screen();
        term.line(&format!("/search {words}"));
        term.line("/open 1");
        term.update(Update::GoTo { message: 1, part });
        assert!(term.transcript().iter().any(|row| row == expected), "{name}: {}", term.screen());
        if !marked.is_empty() {
            assert_ne!(term.style_of(marked), term.style_of("at the end"), "{name}: {}", term.screen());
        }
        term.line("/diff");
        assert_eq!(term.style_of("walruses"), term.style_of("at the end"), "{name}: {}", term.screen());
    }
}

#[test]
fn t10_a_restored_turn_that_was_stopped_at_a_tool_says_so() {
    let result = |content: &str| {
        let result = ToolResult {
            id: "c1".into(),
            name: "shell".into(),
            content: content.into(),
            media: Vec::new(),
            is_error: true,
        };
        Message::new(Role::Tool, vec![Block::ToolResult(result)])
    };
    let call = || {
        let arguments = Arguments::Json(r#"{"command":"sleep 9"}"#.into());
        Message::new(
            Role::Assistant,
            vec![Block::ToolCall(ToolCall::new(CallId::Given("c1".into()), "shell", arguments))],
        )
    };
    let user = |text: &str| Message::new(Role::User, vec![text_block(text)]);
    #[rustfmt::skip]
    let cases = [
        ("stopped",           "begun\n[ended by the user]",                        false, 1),
        ("before its answer", "interrupted before it was allowed; nothing was done", false, 1),
        ("failed",            "[exit code 1]",                                      false, 0),
        ("answered after it", "begun\n[ended by the user]",                        true,  0),
    ];
    for (name, content, is_answered, expected) in cases {
        let answer = is_answered.then(|| Message::new(Role::Assistant, vec![text_block("So.")]));
        let history = [user("first"), call(), result(content)].into_iter().chain(answer).chain([user("second")]);
        let mut term = TestTerminal::new(80, 20);
        term.update(Update::Restored(history.map(Arc::new).collect()));
        let said = term.transcript();
        assert_eq!(said.iter().filter(|line| *line == "! interrupted").count(), expected, "{name}: {said:#?}");
    }
}

#[test]
fn a_restored_summary_is_not_shown_as_a_prompt_of_the_user() {
    let summary = summary_message("They added numbers.").unwrap();
    let prompt = Message::new(Role::User, vec![text_block("3+1?")]);
    let mut term = TestTerminal::new(80, 20);
    term.update(Update::Restored(vec![Arc::new(summary), Arc::new(prompt)]));
    assert_eq!(term.transcript(), ["Summary of the conversation so far:", "They added numbers.", "❯ 3+1?"]);
}

#[test]
fn an_undone_prompt_is_quoted_and_can_be_edited() {
    #[rustfmt::skip]
    let cases = [
        ("",           "why is\nit so?", "· undone: \"why is ⏎ it so?\" · it is back in the input", "why is\nit so?"),
        ("half a word", "why?",          "· undone: \"why?\" · /retry asks it again",             "half a word"),
    ];
    for (written, question, said, input) in cases {
        let mut term = TestTerminal::new(80, 12);
        term.type_text(written);
        term.update(Update::Restored(Vec::new()));
        term.update(Update::Undone(question.into()));
        assert_eq!(term.transcript(), [said]);
        term.key(KeyCode::Enter);
        assert_eq!(term.sent, [Command::Prompt(input.into())]);
    }
}

#[test]
fn a_command_replaces_the_prompt_that_an_undo_put_back_unless_it_was_touched() {
    let undone = || {
        let mut term = TestTerminal::new(80, 12);
        term.update(Update::Restored(Vec::new()));
        term.update(Update::Undone("why?".into()));
        term.screen();
        term
    };
    let mut term = undone();
    term.type_text("/redo");
    term.key(KeyCode::Enter);
    assert_eq!(term.sent, [Command::Redo]);
    term.key(KeyCode::Up);
    term.key(KeyCode::Up);
    assert!(term.screen().contains("❯ why?"), "the history has it: {}", term.screen());

    let mut term = undone();
    term.type_text("/");
    assert!(term.rows().contains(&"❯ /".to_owned()), "{}", term.screen());
    term.control('_');
    term.control('_');
    assert!(term.rows().contains(&"❯ why?".to_owned()), "{}", term.screen());

    let mut term = undone();
    term.type_text(" and/or how");
    term.key(KeyCode::Enter);
    assert_eq!(term.sent, [Command::Prompt("why? and/or how".into())]);
}

#[test]
fn a_restored_session_says_where_another_model_answered() {
    let message = |role, text: &str, model: Option<(&str, &str)>| {
        let origin = model
            .map(|(provider, model)| Origin::default().with_provider(provider.to_owned()).with_model(model.to_owned()));
        let mut message = Message::new(role, vec![text_block(text)]);
        message.origin = origin;
        Arc::new(message)
    };
    let (deep, fast) = (Some(("acme", "deep")), Some(("acme", "fast")));
    let mut term = TestTerminal::new(80, 20);
    term.update(Update::Restored(vec![
        message(Role::User, "one?", None),
        message(Role::Assistant, "One.", deep),
        message(Role::User, "two?", None),
        message(Role::Assistant, "Two.", fast),
        message(Role::User, "three?", None),
        message(Role::Assistant, "Three.", None),
        message(Role::User, "four?", None),
        message(Role::Assistant, "Four.", fast),
    ]));
    let expected = "❯ one?|One.|· model: acme/fast|❯ two?|Two.|❯ three?|Three.|❯ four?|Four.";
    assert_eq!(term.transcript().join("|"), expected);
}

#[test]
fn t18_a_restored_session_shows_how_its_turns_ended() {
    let failed = TurnEnd::Failed(ProviderError::new("bad request").with_status(400));
    let message = |role: Role, text: &str, end: Option<&TurnEnd>| {
        let mut message = Message::new(role, vec![text_block(text)]);
        message.interrupted = end == Some(&TurnEnd::CutOff);
        end.into_iter().for_each(|end| message.set_turn_end(end));
        Arc::new(message)
    };
    let mut term = TestTerminal::new(100, 30);
    term.update(Update::Restored(vec![
        message(Role::User, "one?", Some(&failed)),
        message(Role::User, "two?", Some(&TurnEnd::Interrupted)),
        // It was asked again.
        message(Role::User, "three?", Some(&failed)),
        message(Role::Assistant, "Three", Some(&TurnEnd::CutOff)),
        message(Role::User, "four?", Some(&failed)),
    ]));
    let error = "✗ the provider failed (400): bad request|  hint: /sent shows what was sent; /retry asks again, /undo takes the message back";
    let cut =
        "✗ the answer stops before the provider said that it was done|  hint: what came is kept; /retry asks again";
    let expected = format!("❯ one?|{error}|❯ two?|! interrupted|❯ three?|Three|{cut}|❯ four?|{error}");
    assert_eq!(term.transcript().join("|"), expected);
}

#[test]
fn t19_lists_open_with_the_current_value_selected() {
    let models: Vec<String> = (1..=20).map(|number| format!("acme/deep-{number}")).collect();
    let efforts = ["low", "medium", "high"].map(str::to_owned).to_vec();
    let next = NextRequest { effort: Some("medium".into()), ..NextRequest::default() };
    let screen = ScreenSettings { theme: ScreenTheme::Light, ..ScreenSettings::default() };
    let status = Status { model: "acme/deep-15".into(), efforts, next: Some(next), screen, ..Status::default() };
    let off = Status { thinking_is_off: true, ..status.clone() };
    let set_effort = Status { effort: Some("high".into()), ..status.clone() };
    #[rustfmt::skip]
    let cases = [
        ("a model further down",  &status,     "/model",  "› acme/deep-15  current"),
        ("the effort that is sent", &status,   "/effort", "› medium   default"),
        ("the effort that is set", &set_effort, "/effort", "› high     current"),
        ("thinking that is off",   &off,        "/effort", "› none     current · no thinking"),
        ("the theme",             &status,     "/theme",  "› light  current"),
    ];
    for (name, status, command, expected) in cases {
        // Submitted, and typed.
        for is_typed in [false, true] {
            let mut term = TestTerminal::new(60, 20);
            let lists = CompletionLists { models: models.clone(), ..CompletionLists::default() };
            term.update(Update::CompletionLists(Box::new(lists)));
            term.update(Update::Status(Box::new(status.clone())));
            match is_typed {
                true => term.type_text(&format!("{command} ")),
                false => term.line(command),
            }
            let selected = |term: &mut TestTerminal| term.rows().into_iter().find(|row| row.starts_with('›'));
            assert_eq!(selected(&mut term).as_deref(), Some(expected), "{name}, typed: {is_typed}\n{}", term.screen());
        }
    }
}

#[test]
fn t19_keys_for_pages_and_ends_move_in_the_list_and_a_model_without_a_key_is_marked() {
    let mut term = TestTerminal::new(60, 20);
    let models: Vec<String> = (1..=20).map(|number| format!("acme/deep-{number}")).collect();
    let lists = CompletionLists { models_without_key: models[19..].to_vec(), models, ..CompletionLists::default() };
    term.update(Update::CompletionLists(Box::new(lists)));
    term.line("/model");
    let selected = |term: &mut TestTerminal| term.rows().into_iter().find(|row| row.starts_with('›')).unwrap();
    #[rustfmt::skip]
    let cases = [
        (KeyCode::PageDown, "› acme/deep-8"),
        (KeyCode::PageDown, "› acme/deep-15"),
        (KeyCode::PageUp,   "› acme/deep-8"),
        (KeyCode::End,      "› acme/deep-20  no key"),
        (KeyCode::PageDown, "› acme/deep-20  no key"),
        (KeyCode::Home,     "› acme/deep-1"),
        (KeyCode::PageUp,   "› acme/deep-1"),
    ];
    for (key, expected) in cases {
        term.key(key);
        assert_eq!(selected(&mut term), expected, "{key:?}\n{}", term.screen());
    }
}

#[test]
fn t19_a_long_name_leaves_room_for_what_is_known_of_it() {
    let mut term = TestTerminal::new(40, 20);
    let models = vec!["acme/a-model-with-a-long-name-2026-11-19".to_owned(), "acme/deep".to_owned()];
    let lists = CompletionLists { models_without_key: models[..1].to_vec(), models, ..CompletionLists::default() };
    term.update(Update::CompletionLists(Box::new(lists)));
    term.line("/model");
    let rows: Vec<String> = term.rows().into_iter().filter(|row| row.contains("acme/")).take(2).collect();
    assert_eq!(rows, ["  acme/a-model-with-a-long-na…  no key", "› acme/deep                     current"]);
}

#[test]
fn t19_a_filter_without_a_match_says_so_and_can_be_widened_or_closed() {
    for (width, expected) in
        [(80, "  no match · Backspace widens the search · Esc closes the list"), (40, "  no match · Backspace, Esc")]
    {
        let mut term = TestTerminal::new(width, 20);
        let efforts = ["low", "medium"].map(str::to_owned).to_vec();
        term.update(Update::Status(Box::new(Status { model: "acme/deep".into(), efforts, ..Status::default() })));
        term.line("/effort");
        assert!(term.screen().contains("─ no effort set: the provider chooses"), "{}", term.screen());
        term.type_text("x");
        assert!(term.rows().contains(&expected.to_owned()), "{}", term.screen());
        term.key(KeyCode::Backspace);
        assert!(term.rows().iter().any(|row| row.starts_with("› default  current")), "{}", term.screen());
        term.type_text("x");
        term.key(KeyCode::Esc);
        assert!(!term.screen().contains("no match") && !term.screen().contains("/effort"), "{}", term.screen());
        // What the list lacks can still be sent.
        term.type_text("/model local/new");
        assert!(term.screen().contains("no match"), "{}", term.screen());
        term.key(KeyCode::Enter);
        assert_eq!(term.sent, [Command::Model(Some("local/new".into()))]);
    }
}

#[test]
fn t19_the_selection_stays_when_more_models_are_listed() {
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut term = TestTerminal::new(60, 20);
    let lists = CompletionLists { models: words(&["acme/a", "acme/deep", "acme/z"]), ..CompletionLists::default() };
    term.update(Update::CompletionLists(Box::new(lists)));
    term.line("/model");
    let selected = |term: &mut TestTerminal| term.rows().into_iter().find(|row| row.starts_with('›')).unwrap();
    term.update(Update::Models(words(&["local/one", "local/two"])));
    assert_eq!(selected(&mut term), "› acme/deep  current");
    term.key(KeyCode::Down);
    term.update(Update::Models(words(&["local/one", "local/two", "local/three"])));
    assert_eq!(selected(&mut term), "› acme/z", "the user moved it");
    term.update(Update::Models(words(&["local/one"])));
    assert_eq!(selected(&mut term), "› acme/z", "and it stays there");
}

#[test]
fn t19_a_name_typed_before_its_model_was_listed_is_found_when_it_is() {
    let mut term = TestTerminal::new(60, 20);
    let lists = CompletionLists { models: vec!["acme/deep".into()], ..CompletionLists::default() };
    term.update(Update::CompletionLists(Box::new(lists)));
    term.line("/model");
    term.type_text("one");
    let selected = |term: &mut TestTerminal| term.rows().into_iter().find(|row| row.starts_with('›'));
    assert_eq!(selected(&mut term), None, "nothing matches yet\n{}", term.screen());
    term.update(Update::Models(vec!["local/one".into()]));
    assert_eq!(selected(&mut term).as_deref(), Some("› local/one"), "{}", term.screen());
    // A list that the user closed stays closed.
    term.key(KeyCode::Esc);
    term.update(Update::Models(vec!["local/one".into(), "local/one-more".into()]));
    assert_eq!(selected(&mut term), None, "{}", term.screen());
}
