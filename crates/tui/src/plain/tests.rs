use std::time::Duration;

use aside_core::block::{Arguments, CallId, Content, Seal, SealKind, Seals, Span, Text, Time, ToolCall, ToolResult};
use aside_core::event::{End, Ending};
use expect_test::{Expect, expect};

use super::*;
use crate::seam::{Permit, QuestionId, TerminalAct};

struct Stage {
    plain: Plain,
    out: String,
    sent: Vec<Command>,
}

impl Stage {
    fn new(view: Display, typist: Typist) -> Stage {
        let status = Status { model: "acme/deep".into(), view, ..Status::default() };
        let mut stage = Stage { plain: Plain::new(status, typist), out: String::new(), sent: Vec::new() };
        stage.take();
        stage.out.clear();
        stage
    }

    fn take(&mut self) {
        self.out += &self.plain.take();
    }

    fn tell(&mut self, updates: impl IntoIterator<Item = Update>) {
        for update in updates {
            let commands = self.plain.hear(update);
            self.sent.extend(commands);
            self.take();
        }
    }

    fn line(&mut self, text: &str) {
        let commands = self.plain.line(text);
        self.sent.extend(commands);
        self.take();
    }

    /// What was written since, with every escape in sight.
    fn check(&mut self, expected: &Expect) {
        let out = std::mem::take(&mut self.out);
        assert!(!out.chars().any(|c| c.is_control() && c != '\n'), "{out:?}");
        expected.assert_eq(&out);
    }
}

fn open(block: u32, opening: Opening) -> Update {
    Update::Opened { block: BlockId(block), opening }
}

fn grow(block: u32, text: &str) -> Update {
    Update::Grew { block: BlockId(block), text: text.into() }
}

fn close(block: u32, value: Block) -> Update {
    Update::Closed { block: BlockId(block), value: Box::new(value) }
}

fn thinking(text: &str) -> Block {
    let span = Span { started: Time(1000), ended: Time(13_000) };
    let content = Content::Open { text: text.into() };
    Block::Thinking(Thinking {
        content,
        source: "x".into(),
        id: None,
        items: Vec::new(),
        span: Some(span),
        native: None,
    })
}

fn words(text: &str) -> Block {
    Block::Text(Text { text: text.into(), ..Text::default() })
}

/// A thought and an answer, in pieces as they come.
fn reply() -> Vec<Update> {
    vec![
        Update::Sending(Box::default()),
        open(0, Opening::Thinking),
        grow(0, "Let me co"),
        grow(0, "unt.\nOne, t"),
        grow(0, "wo."),
        close(0, thinking("Let me count.\nOne, two.")),
        open(1, Opening::Text),
        grow(1, "Tw"),
        grow(1, "o."),
        close(1, words("Two.")),
        Update::ReplyEnded(End { ending: Ending::Stop, error: None }),
        Update::TurnEnded(TurnEnd::Answered),
        Update::Ready,
    ]
}

fn question() -> Update {
    Update::Asked(Box::new(Question {
        id: QuestionId(7),
        about: aside_core::question::Question {
            preview: Some("-old\n+new".into()),
            covers: Some("edit src/*".into()),
            ..aside_core::question::Question::new("edit", "src/a.rs", aside_core::question::Risk::Writes)
        },
    }))
}

#[test]
fn t13_each_view_of_thinking_has_its_meaning_in_words() {
    let full = expect![[r#"
        Thinking:
        Let me count.
        One, two.
        Thought for 12s
        Answer:
        Two.
        You: "#]];
    let cases = [
        (Display::Full, &full),
        (Display::Live, &full),
        (
            Display::Collapsed,
            &expect![[r#"
                Thought for 12s: "Let me count…"
                Answer:
                Two.
                You: "#]],
        ),
        (
            Display::Off,
            &expect![[r#"
                Answer:
                Two.
                You: "#]],
        ),
    ];
    for (view, expected) in cases {
        let mut stage = Stage::new(view, Typist::Person);
        stage.line("count");
        stage.tell(reply());
        stage.check(expected);
    }
}

#[test]
fn t13_half_a_word_is_not_said() {
    let mut stage = Stage::new(Display::Full, Typist::Person);
    stage.line("go");
    stage.tell([Update::Sending(Box::default()), open(0, Opening::Text), grow(0, "half a wo")]);
    stage.check(&expect![[r#"
        Answer:
        half a "#]]);
    stage.tell([grow(0, "rd, 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字")]);
    stage.check(&expect!["word, "]);
}

#[test]
fn t9_what_a_model_says_is_no_command_to_the_terminal() {
    let mut stage = Stage::new(Display::Full, Typist::Person);
    let evil = "a\u{1b}[2Jb\u{1b}]52;c;ZXZpbA==\u{7}c\u{202e}d\u{9b}31me\rf ";
    stage.tell([Update::Sending(Box::default()), open(0, Opening::Text), grow(0, evil), close(0, words(evil))]);
    stage.tell([Update::Said(Said::Line(evil.into()))]);
    stage.check(&expect![[r#"

        Answer:
        abcde
        f 
        abcde
        f
    "#]]);
}

#[test]
fn t13_tools_and_questions_are_asked_and_told_in_lines() {
    let call = ToolCall {
        id: CallId::Given("c1".into()),
        name: "edit".into(),
        arguments: Arguments::parse(r#"{"path":"src/a.rs"}"#.into()),
        seal: None,
        native: None,
    };
    let result = |content: &str, is_error| ToolResult {
        id: "c1".into(),
        name: "edit".into(),
        content: content.into(),
        is_error,
    };
    let mut stage = Stage::new(Display::Full, Typist::Person);
    stage.line("go");
    stage.tell([question()]);
    stage.line("write the tests too");
    stage.line("n not this file");
    stage.tell([
        Update::ToolStarted(Box::new(call)),
        Update::ToolEnded(Box::new(result("one\ntwo", false))),
        Update::ToolEnded(Box::new(result("no such file", true))),
        Update::ToolEnded(Box::new(result("--- a\n+++ b\n-x\n+y\n+z", false))),
    ]);
    stage.check(&expect![[r#"
        Question: edit: src/a.rs
        │ -old
        │ +new
        s and p cover `edit src/*`
        Answer y: yes, once. s: yes for this session. p: for this project. n: no. n and a message: no, and the message goes to the model.
        Allow? Answer y: yes, once. s: yes for this session. p: for this project. n: no. n and a message: no, and the message goes to the model.
        Allow? Denied.
        Tool: edit src/a.rs
        Tool done: 2 lines
        Tool failed: no such file
        Tool done: 2 lines added, 1 removed
    "#]]);
    let denied = Command::Answer { id: QuestionId(7), permit: Permit::No(Some("not this file".into())) };
    assert_eq!(stage.sent, [Command::Say("go".into()), denied]);
}

#[test]
fn t9_what_a_model_wants_to_do_cannot_pass_for_a_line_of_ours() {
    let mut stage = Stage::new(Display::Full, Typist::Person);
    stage.line("go");
    let Update::Asked(mut asked) = question() else { unreachable!() };
    asked.about.subject = "ls\nAllow? y\nTool done: nothing".into();
    (asked.about.preview, asked.about.covers) = (None, None);
    stage.tell([Update::Asked(asked)]);
    stage.check(&expect![[r#"
        Question: edit: ls
        │ ls
        │ Allow? y
        │ Tool done: nothing
        Answer y: yes, once. n: no. n and a message: no, and the message goes to the model.
        Allow? "#]]);
}

#[test]
fn only_a_word_that_is_an_answer_permits_anything() {
    #[rustfmt::skip]
    let cases = [
        ("y",       Some(Permit::Once)),
        ("Yes",     Some(Permit::Once)),
        ("s",       Some(Permit::Session)),
        ("project", Some(Permit::Project)),
        ("n",       Some(Permit::No(None))),
        ("yes but write a test first", None),
        ("sure",    None),
    ];
    for (line, permit) in cases {
        let mut stage = Stage::new(Display::Full, Typist::Person);
        stage.line("go");
        stage.tell([question()]);
        stage.sent.clear();
        stage.line(line);
        let expected: Vec<Command> =
            permit.map(|permit| Command::Answer { id: QuestionId(7), permit }).into_iter().collect();
        assert_eq!(stage.sent, expected, "{line}");
    }
}

#[test]
fn a_line_of_a_script_that_is_no_answer_is_a_no_and_stays_a_prompt() {
    let mut stage = Stage::new(Display::Full, Typist::Pipe);
    stage.line("go");
    assert!(!stage.plain.wants_line(), "a script is read when its line is due");
    stage.tell([question()]);
    assert!(stage.plain.wants_line());
    stage.line("the next prompt");
    let denied = Command::Answer { id: QuestionId(7), permit: Permit::No(None) };
    assert_eq!(stage.sent, [Command::Say("go".into()), denied]);
    stage.tell([Update::TurnEnded(TurnEnd::Answered), Update::Ready]);
    assert_eq!(stage.sent.last(), Some(&Command::Say("the next prompt".into())));
    // The input ends, and so does the next question.
    assert_eq!(stage.plain.end_of_input(), []);
    stage.tell([question()]);
    assert!(matches!(stage.sent.last(), Some(Command::Answer { permit: Permit::No(None), .. })));
    stage.tell([Update::TurnEnded(TurnEnd::Answered), Update::Ready]);
    assert_eq!(stage.sent.last(), Some(&Command::Quit));
}

#[test]
fn t10_ctrl_c_stops_the_turn_and_at_the_prompt_it_leaves_at_the_second_time() {
    let mut stage = Stage::new(Display::Full, Typist::Person);
    stage.line("go");
    stage.line("and then this");
    stage.tell([Update::Sending(Box::default()), open(0, Opening::Text), grow(0, "The answ"), Update::Interrupt]);
    assert_eq!(stage.sent, [Command::Say("go".into()), Command::Interrupt]);
    stage.tell([Update::TurnEnded(TurnEnd::Interrupted), Update::Ready]);
    stage.check(&expect![[r#"
        Queued. It is sent when the answer is done.
        Answer:
        The answ
        Interrupted. What came is kept.
        Not sent: and then this
        You: "#]]);
    assert_eq!(stage.plain.interrupt(), []);
    stage.take();
    assert_eq!(stage.plain.interrupt(), [Command::Quit]);
    assert!(!stage.plain.wants_line());
}

#[test]
fn t6_a_thought_that_is_all_there_is_is_told_although_it_was_folded() {
    let mut stage = Stage::new(Display::Collapsed, Typist::Person);
    stage.line("go");
    stage.tell([Update::Sending(Box::default()), open(0, Opening::Thinking), grow(0, "Only this.")]);
    stage.tell([close(0, thinking("Only this.")), Update::TurnEnded(TurnEnd::ThinkingOnly { for_length: false })]);
    stage.check(&expect![[r#"
        Thought for 12s: "Only this."
        Thinking:
        Only this.
        Model provided reasoning but no response. Try rephrasing your question.
    "#]]);
}

#[test]
fn what_was_not_told_is_told_when_the_block_is_whole() {
    let mut stage = Stage::new(Display::Collapsed, Typist::Person);
    stage.line("go");
    stage.tell([Update::Sending(Box::default()), open(0, Opening::Thinking), grow(0, "An ")]);
    // It was the answer after all.
    stage.tell([Update::Refiled { block: BlockId(0), to: Side::Text }, grow(0, "answer.")]);
    stage.tell([close(0, words("An answer."))]);
    // The provider's last word is another one.
    stage.tell([open(1, Opening::Text), grow(1, "Fist. "), close(1, words("First."))]);
    stage.tell([Update::Retrying { after: Duration::from_secs(2), attempt: 2, why: "busy".into() }]);
    stage.check(&expect![[r#"
        Answer:
        An answer.Fist. 
        Note: the provider took that back; it is
        Answer:
        First.
        busy; trying again in 2s, attempt 2
    "#]]);
}

#[test]
fn a_thought_nobody_can_read_is_told_to_be_one() {
    let seal = Seal { kind: SealKind::Encrypted, payload: "x".into() };
    let Block::Thinking(open_thought) = thinking("") else { unreachable!() };
    let seals = Seals { encrypted: Some(seal), ..Seals::default() };
    let hidden = Thinking { content: Content::Hidden { seals }, ..open_thought };
    for view in [Display::Full, Display::Collapsed] {
        let mut stage = Stage::new(view, Typist::Person);
        stage.line("go");
        stage.tell([open(0, Opening::Thinking), close(0, Block::Thinking(hidden.clone()))]);
        stage.check(&expect![[r#"
            Thought for 12s: hidden by provider
        "#]]);
    }
}

#[test]
fn commands_are_the_same_table_and_what_needs_a_screen_says_so() {
    let mut stage = Stage::new(Display::Full, Typist::Person);
    for line in ["/thinking", "/theme", "/mouse on", "/copy", "/reader", "/nonsense"] {
        stage.line(line);
        stage.tell([Update::Ready]);
    }
    stage.tell([Update::Said(Said::Table {
        head: vec!["id".into(), "title".into()],
        rows: vec![vec!["a1".into(), "One".into()], vec!["b2".into(), String::new()]],
    })]);
    stage.check(&expect![[r#"
        Thinking: live
        You: Not in plain mode: there are no colours.
        You: Not in plain mode: the mouse is the terminal's own.
        You: Not in plain mode: what is said can be copied as it is.
        You: There is no thought yet.
        You: Error: unknown command `/nonsense`
        Hint: /help lists what there is
        You: 
        id: a1; title: One
        id: b2
        You: "#]]);
    assert_eq!(stage.sent, [Command::View(Display::Live)]);
    stage.line("/help");
    for entry in crate::commands::COMMANDS {
        assert!(stage.out.contains(&format!("/{}", entry.name)), "{}", entry.name);
    }
    stage.line("/editor");
    assert_eq!(stage.sent.pop(), Some(Command::Terminal(TerminalAct::Edit(String::new()))));
    assert_eq!(stage.plain.write("two\nlines\n"), [Command::Say("two\nlines".into())]);
}

#[test]
fn a_thought_in_circles_is_said_once_and_the_answer_can_be_asked_for() {
    let mut stage = Stage::new(Display::Off, Typist::Person);
    stage.line("why?");
    stage.tell([open(1, Opening::Thinking)]);
    stage.tell((0..200).map(|_| grow(1, "Let me check that again. ")));
    let notes: Vec<&str> =
        stage.out.lines().filter(|line| line.starts_with("Note: the thought says the same")).collect();
    assert_eq!(notes.len(), 1, "{}", stage.out);
    stage.sent.clear();
    stage.line("/answer");
    assert_eq!(stage.sent, [Command::AnswerNow]);
}
