use std::time::Duration;

use aside_core::block::{
    Arguments, Block, CallId, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ThinkingSpan, Time, ToolCall,
    ToolResult,
};
use aside_core::event::{Ending, ProseKind, ProviderError, ReplyEnd};
use expect_test::{Expect, expect};

use super::*;
use aside_front::{OpenedBlock, PermissionAnswer, QuestionId, TerminalAction, USER_CALL_PREFIX};

struct TestSession {
    plain: PlainSession,
    out: String,
    sent: Vec<Command>,
}

impl TestSession {
    fn new(view: ThinkingDisplay, source: InputSource) -> TestSession {
        let status = Status { model: "acme/deep".into(), view, ..Status::default() };
        let mut session =
            TestSession { plain: PlainSession::new(status, source), out: String::new(), sent: Vec::new() };
        session.take();
        session.out.clear();
        session
    }

    fn take(&mut self) {
        self.out += &self.plain.take();
    }

    fn update(&mut self, updates: impl IntoIterator<Item = Update>) {
        for update in updates {
            let commands = self.plain.apply_update(update);
            self.sent.extend(commands);
            self.take();
        }
    }

    fn line(&mut self, text: &str) {
        let commands = self.plain.line(text);
        self.sent.extend(commands);
        self.take();
    }

    /// Checks the output since the last check. It must contain no control characters.
    fn check(&mut self, expected: &Expect) {
        let out = std::mem::take(&mut self.out);
        assert!(!out.chars().any(|c| c.is_control() && c != '\n'), "{out:?}");
        expected.assert_eq(&out);
    }
}

fn open(block: u32, opening: OpenedBlock) -> Update {
    Update::Opened { block: BlockId(block), opening }
}

fn grow(block: u32, text: &str) -> Update {
    Update::Grew { block: BlockId(block), text: text.into() }
}

fn close(block: u32, value: Block) -> Update {
    Update::Closed { block: BlockId(block), value: Box::new(value) }
}

fn thinking(text: &str) -> Block {
    let span = ThinkingSpan { started: Time(1000), ended: Time(13_000) };
    let content = ThinkingContent::Open { text: text.into() };
    Block::Thinking(Thinking { span: Some(span), ..Thinking::new(content, "x") })
}

fn text_block(text: &str) -> Block {
    Block::Text(Text { text: text.into(), ..Text::default() })
}

/// Thinking and an answer, in deltas.
fn reply() -> Vec<Update> {
    vec![
        Update::Sending(Box::default()),
        open(0, OpenedBlock::Thinking),
        grow(0, "Let me co"),
        grow(0, "unt.\nOne, t"),
        grow(0, "wo."),
        close(0, thinking("Let me count.\nOne, two.")),
        open(1, OpenedBlock::Text),
        grow(1, "Tw"),
        grow(1, "o."),
        close(1, text_block("Two.")),
        Update::ReplyEnded(ReplyEnd { ending: Ending::Stop, error: None }),
        Update::TurnEnded(TurnEnd::Answered),
        Update::Ready,
    ]
}

fn question() -> Update {
    Update::QuestionAsked(Box::new(PendingQuestion {
        id: QuestionId(7),
        about: aside_core::permission_question::PermissionQuestion {
            preview: Some("-old\n+new".into()),
            covers: Some("edit src/*".into()),
            ..aside_core::permission_question::PermissionQuestion::new(
                "edit",
                "src/a.rs",
                aside_core::permission_question::Risk::Writes,
            )
        },
    }))
}

#[test]
fn t13_each_view_of_thinking_works_in_plain_text() {
    let full = expect![[r#"
        Thinking:
        Let me count.
        One, two.
        Thought for 12s
        Answer:
        Two.
        You: "#]];
    let cases = [
        (ThinkingDisplay::Full, &full),
        (ThinkingDisplay::Live, &full),
        (
            ThinkingDisplay::Collapsed,
            &expect![[r#"
                Thought for 12s: "Let me count…"
                Answer:
                Two.
                You: "#]],
        ),
        (
            ThinkingDisplay::Off,
            &expect![[r#"
                Answer:
                Two.
                You: "#]],
        ),
    ];
    for (view, expected) in cases {
        let mut session = TestSession::new(view, InputSource::Terminal);
        session.line("count");
        session.update(reply());
        session.check(expected);
    }
}

#[test]
fn t13_half_a_word_is_not_printed() {
    let mut session = TestSession::new(ThinkingDisplay::Full, InputSource::Terminal);
    session.line("go");
    session.update([Update::Sending(Box::default()), open(0, OpenedBlock::Text), grow(0, "half a wo")]);
    session.check(&expect![[r#"
        Answer:
        half a "#]]);
    session.update([grow(0, "rd, 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字")]);
    session.check(&expect!["word, "]);
}

#[test]
fn t9_model_text_is_not_executed_by_the_terminal() {
    let mut session = TestSession::new(ThinkingDisplay::Full, InputSource::Terminal);
    let evil = "a\u{1b}[2Jb\u{1b}]52;c;ZXZpbA==\u{7}c\u{202e}d\u{9b}31me\rf ";
    session.update([
        Update::Sending(Box::default()),
        open(0, OpenedBlock::Text),
        grow(0, evil),
        close(0, text_block(evil)),
    ]);
    session.update([Update::CommandOutput(CommandOutput::Line(evil.into()))]);
    session.check(&expect![[r#"

        Answer:
        abcde
        f 
        abcde
        f
    "#]]);
}

#[test]
fn t13_tools_and_questions_are_printed_as_lines() {
    let call = ToolCall::new(CallId::Given("c1".into()), "edit", Arguments::parse(r#"{"path":"src/a.rs"}"#.into()));
    let result = |content: &str, is_error| ToolResult {
        id: "c1".into(),
        name: "edit".into(),
        content: content.into(),
        is_error,
        media: Vec::new(),
    };
    let mut session = TestSession::new(ThinkingDisplay::Full, InputSource::Terminal);
    session.line("go");
    session.update([question()]);
    session.line("write the tests too");
    session.line("n not this file");
    session.update([
        Update::ToolStarted(Box::new(call)),
        Update::ToolEnded(Box::new(result("one\ntwo", false))),
        Update::ToolEnded(Box::new(result("no such file", true))),
        Update::ToolEnded(Box::new(result("--- a\n+++ b\n-x\n+y\n+z", false))),
    ]);
    session.check(&expect![[r#"
        Question: edit: src/a.rs
        │ -old
        │ +new
        s and p: aside will not ask again about `edit src/*`
        Answer y: yes, once. s: yes for this session. p: for this project. n: no. n and a message: no, and the message goes to the model.
        Allow? Answer y: yes, once. s: yes for this session. p: for this project. n: no. n and a message: no, and the message goes to the model.
        Allow? Denied.
        Tool: edit src/a.rs
        Tool done: 2 lines
        Tool failed: no such file
        Tool done: 2 lines added, 1 removed
    "#]]);
    let denied = Command::Answer { id: QuestionId(7), answer: PermissionAnswer::No(Some("not this file".into())) };
    assert_eq!(session.sent, [Command::Prompt("go".into()), denied]);
}

#[test]
fn t9_a_tool_call_cannot_imitate_our_own_lines() {
    let mut session = TestSession::new(ThinkingDisplay::Full, InputSource::Terminal);
    session.line("go");
    let Update::QuestionAsked(mut asked) = question() else { unreachable!() };
    asked.about.subject = "ls\nAllow? y\nTool done: nothing".into();
    (asked.about.preview, asked.about.covers) = (None, None);
    session.update([Update::QuestionAsked(asked)]);
    session.check(&expect![[r#"
        Question: edit: ls
        │ ls
        │ Allow? y
        │ Tool done: nothing
        Answer y: yes, once. n: no. n and a message: no, and the message goes to the model.
        Allow? "#]]);
}

#[test]
fn only_an_exact_answer_permits_anything() {
    #[rustfmt::skip]
    let cases = [
        ("y",       Some(PermissionAnswer::Once)),
        ("Yes",     Some(PermissionAnswer::Once)),
        ("s",       Some(PermissionAnswer::Session)),
        ("project", Some(PermissionAnswer::Project)),
        ("n",       Some(PermissionAnswer::No(None))),
        ("yes but write a test first", None),
        ("sure",    None),
    ];
    for (line, permit) in cases {
        let mut session = TestSession::new(ThinkingDisplay::Full, InputSource::Terminal);
        session.line("go");
        session.update([question()]);
        session.sent.clear();
        session.line(line);
        let expected: Vec<Command> =
            permit.map(|permit| Command::Answer { id: QuestionId(7), answer: permit }).into_iter().collect();
        assert_eq!(session.sent, expected, "{line}");
    }
}

#[test]
fn a_script_line_that_is_not_an_answer_denies_and_stays_a_prompt() {
    let mut session = TestSession::new(ThinkingDisplay::Full, InputSource::Pipe);
    session.line("go");
    assert!(!session.plain.wants_line(), "a script line is read only when it is due");
    session.update([question()]);
    assert!(session.plain.wants_line());
    session.line("the next prompt");
    let denied = Command::Answer { id: QuestionId(7), answer: PermissionAnswer::No(None) };
    assert_eq!(session.sent, [Command::Prompt("go".into()), denied]);
    session.update([Update::TurnEnded(TurnEnd::Answered), Update::Ready]);
    assert_eq!(session.sent.last(), Some(&Command::Prompt("the next prompt".into())));
    // Once the input has ended, the next question is denied.
    assert_eq!(session.plain.end_of_input(), []);
    session.update([question()]);
    assert!(matches!(session.sent.last(), Some(Command::Answer { answer: PermissionAnswer::No(None), .. })));
    session.update([Update::TurnEnded(TurnEnd::Answered), Update::Ready]);
    assert_eq!(session.sent.last(), Some(&Command::Quit));
}

#[test]
fn t10_ctrl_c_stops_the_turn_and_twice_at_the_prompt_quits() {
    let mut session = TestSession::new(ThinkingDisplay::Full, InputSource::Terminal);
    session.line("go");
    session.line("and then this");
    session.update([
        Update::Sending(Box::default()),
        open(0, OpenedBlock::Text),
        grow(0, "The answ"),
        Update::Interrupt,
    ]);
    let steered = Command::Steer("and then this".into());
    assert_eq!(session.sent, [Command::Prompt("go".into()), steered, Command::Interrupt]);
    let not_steered = Update::NotSteered { text: "and then this".into(), error: None };
    session.update([Update::TurnEnded(TurnEnd::Interrupted), not_steered, Update::Ready]);
    session.check(&expect![[r#"
        The model gets it after this step, the reply and its tools.
        Answer:
        The answ
        Interrupted. What came is kept.
        Not sent: and then this
        You: "#]]);
    assert_eq!(session.plain.interrupt(""), []);
    session.take();
    assert_eq!(session.plain.interrupt(""), [Command::Quit]);
    assert!(!session.plain.wants_line());
}

#[test]
fn t16_ctrl_c_clears_the_typed_line_first_and_leaves_only_soon_after_it_said_so() {
    let mut session = TestSession::new(ThinkingDisplay::Full, InputSource::Terminal);
    let start = session.plain.now;
    session.take();
    for (seconds, draft, expected) in [
        (0, "a draft", vec![]),
        (1, "", vec![]),
        (5, "", vec![]),
        (6, "x", vec![]),
        (7, "", vec![]),
        (9, "", vec![Command::Quit]),
    ] {
        session.plain.set_now(start + Duration::from_secs(seconds));
        assert_eq!(session.plain.interrupt(draft), expected, "{seconds} s");
        session.take();
    }
    session.check(&expect![[r#"

        The line is cleared.
        You: 
        Once more leaves, as Ctrl+D does.
        You: 
        Once more leaves, as Ctrl+D does.
        You: 
        The line is cleared.
        You: 
        Once more leaves, as Ctrl+D does.
        You: 
    "#]]);
}

#[test]
fn t16_ctrl_c_at_a_question_stops_the_turn_and_does_not_ask_again() {
    let mut session = TestSession::new(ThinkingDisplay::Full, InputSource::Terminal);
    session.line("go");
    session.update([question()]);
    session.out.clear();
    let commands = session.plain.interrupt("");
    session.take();
    assert_eq!(commands, [Command::Interrupt]);
    session.line("y");
    assert!(!session.sent.iter().any(|command| matches!(command, Command::Answer { .. })), "{:?}", session.sent);
    session.update([Update::QuestionWithdrawn(QuestionId(7)), Update::TurnEnded(TurnEnd::Interrupted)]);
    session.check(&expect![[r#"
        Queued. It is sent when the answer is done.
        Interrupted. What came is kept.
        Not sent: y
    "#]]);
}

#[test]
fn t13_a_question_is_as_wide_as_the_terminal() {
    let mut session = TestSession::new(ThinkingDisplay::Full, InputSource::Terminal);
    session.plain.set_layout(QuestionLayout { width: Some(40), ..QuestionLayout::default() });
    session.line("go");
    let Update::QuestionAsked(mut asked) = question() else { unreachable!() };
    asked.about.preview = Some("+".to_owned() + &"x".repeat(50));
    asked.about.subject = "y".repeat(40);
    session.update([Update::QuestionAsked(asked)]);
    let widths: Vec<usize> = session.out.lines().take(4).map(|line| line.chars().count()).collect();
    let expected = [40, 38, 8, 38];
    assert_eq!(widths, expected, "{}", session.out);
}

#[test]
fn t16_ctrl_c_stops_a_command_that_runs_outside_a_turn() {
    let mut session = TestSession::new(ThinkingDisplay::Full, InputSource::Terminal);
    session.line("/compact");
    session.take();
    assert_eq!(session.plain.interrupt("half a line"), [Command::Interrupt]);
    session.update([Update::Ready]);
    session.check(&expect![[r#"

        Not sent: half a line
        You: "#]]);
}

#[test]
fn t6_thinking_without_an_answer_is_printed_even_if_folded() {
    let mut session = TestSession::new(ThinkingDisplay::Collapsed, InputSource::Terminal);
    session.line("go");
    session.update([Update::Sending(Box::default()), open(0, OpenedBlock::Thinking), grow(0, "Only this.")]);
    session.update([close(0, thinking("Only this.")), Update::TurnEnded(TurnEnd::ThinkingOnly { for_length: false })]);
    session.check(&expect![[r#"
        Thought for 12s: "Only this."
        Thinking:
        Only this.
        Model provided reasoning but no response. Try rephrasing your question.
    "#]]);
}

#[test]
fn unprinted_text_is_printed_when_the_block_is_complete() {
    let mut session = TestSession::new(ThinkingDisplay::Collapsed, InputSource::Terminal);
    session.line("go");
    session.update([Update::Sending(Box::default()), open(0, OpenedBlock::Thinking), grow(0, "An ")]);
    // It turned out to be the answer.
    session.update([Update::Refiled { block: BlockId(0), to: ProseKind::Text }, grow(0, "answer.")]);
    session.update([close(0, text_block("An answer."))]);
    // The final text differs from the deltas.
    session.update([open(1, OpenedBlock::Text), grow(1, "Fist. "), close(1, text_block("First."))]);
    session.update([Update::Retrying { after: Duration::from_secs(2), attempt: 2, why: "busy".into() }]);
    session.check(&expect![[r#"
        Answer:
        An answer.Fist. 
        Note: the provider took that back; it is
        Answer:
        First.
        busy; trying again in 2s, attempt 2
    "#]]);
}

#[test]
fn hidden_thinking_is_announced() {
    let seal = Seal { kind: SealKind::Encrypted, payload: "x".into() };
    let Block::Thinking(open_thought) = thinking("") else { unreachable!() };
    let seals = Seals { encrypted: Some(seal), ..Seals::default() };
    let hidden = Thinking { content: ThinkingContent::Hidden { seals }, ..open_thought };
    for view in [ThinkingDisplay::Full, ThinkingDisplay::Collapsed] {
        let mut session = TestSession::new(view, InputSource::Terminal);
        session.line("go");
        session.update([open(0, OpenedBlock::Thinking), close(0, Block::Thinking(hidden.clone()))]);
        session.check(&expect![[r#"
            Thought for 12s: hidden by provider
        "#]]);
    }
}

#[test]
fn commands_share_the_table_and_those_that_need_a_screen_say_so() {
    let mut session = TestSession::new(ThinkingDisplay::Full, InputSource::Terminal);
    for line in ["/thinking", "/theme", "/mouse on", "/copy", "/reader", "/nonsense"] {
        session.line(line);
        session.update([Update::Ready]);
    }
    session.update([Update::CommandOutput(CommandOutput::Table {
        head: vec!["id".into(), "title".into()],
        rows: vec![vec!["a1".into(), "One".into()], vec!["b2".into(), String::new()]],
    })]);
    session.check(&expect![[r#"
        Thinking: live
        You: Not in plain mode: there are no colours.
        You: Not in plain mode: the mouse is the terminal's own.
        You: Not in plain mode: the terminal can copy its text.
        You: There is no thought yet.
        You: Error: unknown command `/nonsense`
        Hint: /help lists all commands
        You: 
        id: a1; title: One
        id: b2
        You: "#]]);
    assert_eq!(session.sent, [Command::View(ThinkingDisplay::Live)]);
    session.line("/help");
    for entry in aside_front::slash_commands::COMMANDS {
        assert!(session.out.contains(&format!("/{}", entry.name)), "{}", entry.name);
    }
    session.line("/editor");
    assert_eq!(session.sent.pop(), Some(Command::Terminal(TerminalAction::Edit(String::new()))));
    assert_eq!(session.plain.write("two\nlines\n"), [Command::Prompt("two\nlines".into())]);
}

#[test]
fn repetitive_thinking_is_reported_once_and_an_answer_can_be_requested() {
    let mut session = TestSession::new(ThinkingDisplay::Off, InputSource::Terminal);
    session.line("why?");
    session.update([open(1, OpenedBlock::Thinking)]);
    session.update((0..200).map(|_| grow(1, "Let me check that again. ")));
    let notes: Vec<&str> =
        session.out.lines().filter(|line| line.starts_with("Note: the thinking repeats the same text")).collect();
    assert_eq!(notes.len(), 1, "{}", session.out);
    session.sent.clear();
    session.line("/answer");
    assert_eq!(session.sent, [Command::AnswerNow]);
}

#[test]
fn t18_a_silent_provider_is_reported_in_lines_that_become_rarer() {
    let mut session = TestSession::new(ThinkingDisplay::Full, InputSource::Terminal);
    let start = session.plain.now;
    let at = |session: &mut TestSession, seconds| {
        session.plain.set_now(start + Duration::from_secs(seconds));
        session.plain.say_silence();
        session.take();
    };
    session.line("go");
    session.update([Update::Sending(Box::default())]);
    at(&mut session, 9);
    assert_eq!(session.plain.silence_due(), Some(start + Duration::from_secs(10)));
    at(&mut session, 10);
    session.update([open(0, OpenedBlock::Text), grow(0, "One, tw")]);
    assert_eq!(session.plain.silence_due(), Some(start + Duration::from_secs(20)), "something came");
    for seconds in [20, 21, 29, 30, 31, 50] {
        at(&mut session, seconds);
    }
    session.update([grow(0, "o, three"), close(0, text_block("One, two, three"))]);
    session.update([Update::ReplyEnded(ReplyEnd { ending: Ending::Stop, error: None })]);
    assert_eq!(session.plain.silence_due(), None);
    at(&mut session, 500);
    session.check(&expect![[r#"
        Note: nothing came for 10s; Ctrl+C stops
        Answer:
        One, 
        Note: nothing came for 10s; Ctrl+C stops
        Note: nothing came for 20s; Ctrl+C stops
        Note: nothing came for 40s; Ctrl+C stops
        two, three
    "#]]);
}

fn live(call: &str, tail: &str, n_lines: u64) -> Update {
    Update::ToolOutput { call: call.into(), tail: tail.into(), n_lines }
}

#[test]
fn t17_a_slow_command_prints_the_same_first_and_last_lines_as_a_quick_one() {
    let numbered = |from: u64, to: u64| (from..=to).map(|number| format!("{number}\n")).collect::<String>();
    let left_out = "\n[… 90 bytes with 40 line ends left out …]\n";
    #[rustfmt::skip]
    let cases: [(&str, String, bool, &[Update], &str); 8] = [
        ("no output",       "[exit code 0]".to_owned(),                            false, &[], "Tool done: no output"),
        ("one line",        "hi\n[exit code 0]".to_owned(),                        false, &[live("c1", "hi\n", 1)], "  hi|Tool done: 1 line"),
        ("half a line",     "hi\nyou\n[exit code 0]".to_owned(),                   false, &[live("c1", "hi\nyo", 2)], "  hi|  you|Tool done: 2 lines"),
        ("one too many",    format!("{}[exit code 0]", numbered(1, 9)),            false, &[live("c1", &numbered(1, 2), 2), live("c1", &numbered(2, 7), 7)],
         "  1|  2|  3|  4|  5|  6|  7|  8|  9|Tool done: 9 lines"),
        ("many lines",      format!("{}[exit code 0]", numbered(1, 40)),           false, &[live("c1", &numbered(1, 20), 20), live("c1", &numbered(15, 35), 35)],
         "  1|  2|  3|  … 32 lines not shown|  36|  37|  38|  39|  40|Tool done: 40 lines"),
        ("fast at first",   format!("{}[exit code 0]", numbered(1, 40)),           false, &[live("c1", &numbered(15, 35), 35)],
         "  1|  2|  3|  … 32 lines not shown|  36|  37|  38|  39|  40|Tool done: 40 lines"),
        ("left out",        format!("{}{left_out}{}[exit code 0]", numbered(1, 4).trim_end(), numbered(46, 50)), false, &[],
         "  1|  2|  3|  … 40 lines not shown|  46|  47|  48|  49|  50|Tool done: 48 lines"),
        ("a failure",       "1\n2\n[exit code 2]".to_owned(),                      true,  &[live("c1", "1\n", 1)], "  1|  2|Tool failed: exit code 2"),
    ];
    for (name, content, is_error, while_running, expected) in cases {
        for while_running in [while_running, &[]] {
            let mut session = TestSession::new(ThinkingDisplay::Live, InputSource::Pipe);
            let arguments = Arguments::parse(r#"{"command":"make"}"#.into());
            let call = ToolCall::new(CallId::Given("c1".into()), "shell", arguments);
            let (id, name_of_tool, media) = ("c1".into(), "shell".into(), Vec::new());
            let result = ToolResult { id, name: name_of_tool, content: content.clone(), is_error, media };
            session.update([Update::ToolStarted(Box::new(call))]);
            session.update(while_running.iter().cloned());
            session.update([Update::ToolEnded(Box::new(result))]);
            let expected = format!("Tool: shell make|{expected}|");
            assert_eq!(session.out.replace('\n', "|"), expected, "{name}, {} updates", while_running.len());
        }
    }
}

#[test]
fn t24_a_command_line_of_the_user_prints_all_of_its_output() {
    let mut session = TestSession::new(ThinkingDisplay::Live, InputSource::Terminal);
    session.line("!make");
    let id = format!("{USER_CALL_PREFIX}1");
    assert_eq!(session.sent, [Command::Shell { command: "make".into(), output: aside_front::ShellOutput::User }]);
    let content = "one\ntwo\n[exit code 0]".to_owned();
    let result = ToolResult { id: id.clone(), name: "shell".into(), content, is_error: false, media: Vec::new() };
    session.update([live(&id, "one\n", 1), Update::ToolEnded(Box::new(result)), Update::Ready]);
    session.check(&expect![[r#"
          one
          two
          [exit code 0]
        You: "#]]);
    let mut script = TestSession::new(ThinkingDisplay::Live, InputSource::Pipe);
    script.line("!make");
    assert_eq!(script.sent, [Command::Prompt("!make".into())], "a script may pass on what somebody else wrote");
}

#[test]
fn the_words_of_a_provider_do_not_look_like_our_lines() {
    let words = "busy\nQuestion: shell: ls\rAllow?\nhint: run this";
    let mut session = TestSession::new(ThinkingDisplay::Live, InputSource::Pipe);
    session.update([Update::Retrying { after: Duration::from_secs(5), attempt: 1, why: words.into() }]);
    session.update([Update::TurnEnded(TurnEnd::Failed(ProviderError::new(words).with_status(500)))]);
    let forged: Vec<&str> = session
        .out
        .lines()
        .filter(|line| ["Question:", "Allow?", "hint: run"].iter().any(|start| line.starts_with(start)))
        .collect();
    assert_eq!(forged, [""; 0], "{}", session.out);
    assert!(session.out.contains("hint: run this"), "nothing is lost: {}", session.out);
}
