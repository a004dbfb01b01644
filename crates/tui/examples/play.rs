//! A scripted session on the real screen, without network: `cargo run -p aside-tui --example play`.
//! Prompts are answered from a script; `long`, `only`, `big` and `flood` play special scenes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a demonstration fails loudly"
)]

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aside_core::block::{
    Arguments, Block, CallId, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ThinkingSpan, Time, ToolCall,
    ToolResult,
};
use aside_core::event::{BlockId, Ending, ReplyEnd, Usage};
use aside_core::message::{Message, Role};
use aside_core::permission_question;
use aside_core::turn::TurnEnd;
use aside_front::{
    Command, CommandOutput, CompletionLists, DecisionRow, OpenedBlock, PendingQuestion, PermissionAnswer, QuestionId,
    Sending, Status, Update,
};
use aside_tui::app::{App, Setup};

const THOUGHT: &str = "The user asks for a fix in the parser. Let me look at how lines are split first.\n\nThe loop in `scan_line` treats a fence inside a list as its own piece. That is wrong: the *indent* matters.\n\n1. find where the fence is opened\n2. compare the indent with that of the item\n3. keep it with its item\n\nA table test would have caught it. I will add one, then change the condition, then run everything again to be sure that nothing else depends on it.";

const ANSWER: &str = "# What was wrong\n\nA fence **inside a list** was cut off from its item. I compared the indent first:\n\n```rust\nlet own = indent == 0;\nlet kind = if own { FenceKind::OwnPiece } else { FenceKind::InProse };\n```\n\n| file | change | lines |\n|---|---|--:|\n| `doc.rs` | indent is looked at | 2 |\n| `tests` | one case more | 9 |\n\n- the tests pass\n- see [the rules](https://spec.commonmark.org/0.31.2/) for why\n\n> A fence of its own begins in the first column.\n\n漢字 and 👩‍💻 and e\u{301} stay whole.";

const DIFF: &str = "edited `src/doc.rs`\n--- a/src/doc.rs\n+++ b/src/doc.rs\n@@ -1,4 +1,4 @@\n fn scan_line() {\n-    let own = true;\n+    let own = indent == 0;\n     settle(own);\n }\n";

fn main() -> std::io::Result<()> {
    let (updates, to_screen) = mpsc::channel();
    let (to_engine, commands) = mpsc::channel();
    let engine = std::thread::spawn(move || Script { updates, commands, asked: 0 }.play());
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
    let setup = Setup {
        theme: aside_tui::detect_theme(),
        status: Status {
            model: "sim/kimi".into(),
            profile: Some("work".into()),
            title: Some("fences in lists".into()),
            limit: Some(200_000),
            ..Status::default()
        },
        lists: CompletionLists {
            models: words(&["sim/kimi", "sim/deepseek"]),
            profiles: words(&["work", "quiet"]),
            files: words(&["src/doc.rs", "src/lib.rs", "README.md"]),
            ..CompletionLists::default()
        },
        sent: Vec::new(),
    };
    aside_tui::run(App::new(setup), to_screen, to_engine)?;
    engine.join().expect("the script ends");
    Ok(())
}

struct Script {
    updates: Sender<Update>,
    commands: Receiver<Command>,
    asked: u64,
}

/// The user stopped the turn or quit.
enum Stop {
    Interrupted,
    Left,
}

impl Script {
    fn play(mut self) {
        self.restore();
        while let Ok(command) = self.commands.recv() {
            let ended = match command {
                Command::Prompt(text) => self.turn(&text),
                Command::Quit => return,
                Command::View(_) => Ok(()),
                other => self.tell(Update::CommandOutput(CommandOutput::Line(format!("{other:?}")))),
            };
            match ended {
                Ok(()) => (),
                Err(Stop::Interrupted) => {
                    if self.tell(Update::TurnEnded(TurnEnd::Interrupted)).is_err() {
                        return;
                    }
                }
                Err(Stop::Left) => return,
            }
        }
    }

    fn restore(&self) {
        let user = Message::new(Role::User, vec![Block::Text(Text { text: "hello".into(), ..Text::default() })]);
        let span = ThinkingSpan { started: Time(0), ended: Time(12_000) };
        let seals =
            Seals { encrypted: Some(Seal { kind: SealKind::Encrypted, payload: "x".repeat(900) }), ..Seals::default() };
        let hidden = Thinking { content: ThinkingContent::Hidden { seals }, ..thinking("", None) };
        let blocks = vec![
            Block::Thinking(thinking("The user says hello. I greet back and ask what to do.", Some(span))),
            Block::Thinking(hidden),
            Block::Text(Text { text: "Hello! What shall we do?".into(), ..Text::default() }),
        ];
        self.tell(Update::Restored(vec![Arc::new(user), Arc::new(Message::new(Role::Assistant, blocks))])).ok();
    }

    fn tell(&self, update: Update) -> Result<(), Stop> {
        self.updates.send(update).map_err(|_| Stop::Left)
    }

    fn wait(&self, ms: u64) -> Result<(), Stop> {
        match self.commands.recv_timeout(Duration::from_millis(ms)) {
            Ok(Command::Interrupt) => Err(Stop::Interrupted),
            Ok(Command::Quit) | Err(RecvTimeoutError::Disconnected) => Err(Stop::Left),
            Ok(_) | Err(RecvTimeoutError::Timeout) => Ok(()),
        }
    }

    fn turn(&mut self, text: &str) -> Result<(), Stop> {
        match text.split_whitespace().next() {
            Some("long") => return self.long(),
            Some("only") => return self.only_thinking(),
            Some("flood") => return self.flood(),
            Some("big") => return self.big(),
            _ => (),
        }
        self.send(1)?;
        self.summary(BlockId(0))?;
        self.thought(BlockId(1), THOUGHT, 20)?;
        self.call(BlockId(2))?;
        self.tell(Update::ReplyEnded(ReplyEnd { ending: Ending::ToolCalls, error: None }))?;
        self.send(2)?;
        self.thought(BlockId(0), "That worked. Now I say so.", 20)?;
        self.text(BlockId(1), ANSWER, 10)?;
        self.tell(Update::Usage(Usage::default().with_input(12_345).with_output(900)))?;
        self.tell(Update::ReplyEnded(ReplyEnd { ending: Ending::Stop, error: None }))?;
        self.tell(Update::TurnEnded(TurnEnd::Answered))
    }

    fn send(&self, step: u32) -> Result<(), Stop> {
        let row = DecisionRow {
            what: "thought of turn 1".into(),
            action: "field".into(),
            why: "its tool loop needs it".into(),
            ..DecisionRow::default()
        };
        let decisions = vec![row];
        let sending = Sending {
            step,
            model: "sim/kimi".into(),
            effort: Some("high".into()),
            tokens: 11_900,
            limit: Some(200_000),
            wants_thinking: false,
            notes: Vec::new(),
            messages: 2,
            decisions,
        };
        self.tell(Update::Sending(Box::new(sending)))?;
        self.wait(600)
    }

    fn summary(&self, block: BlockId) -> Result<(), Stop> {
        self.tell(Update::Opened { block, opening: OpenedBlock::Thinking })?;
        let began = now();
        let items = [
            "**Reading the parser**\n\nI look at how lines are split and where fences begin.",
            "**Planning the fix**\n\nThe indent has to be compared with that of the item.",
        ];
        for item in items {
            self.tell(Update::Item { block })?;
            self.grow(block, item, 40)?;
        }
        let mut value = thinking(&items.join("\n\n"), Some(ThinkingSpan { started: began, ended: now() }));
        value.items = vec![0..items[0].len(), items[0].len() + 2..items.join("\n\n").len()];
        self.tell(Update::Closed { block, value: Box::new(Block::Thinking(value)) })
    }

    fn grow(&self, block: BlockId, text: &str, ms: u64) -> Result<(), Stop> {
        for word in text.split_inclusive([' ', '\n']) {
            self.tell(Update::Grew { block, text: word.into() })?;
            self.wait(ms)?;
        }
        Ok(())
    }

    fn thought(&self, block: BlockId, text: &str, ms: u64) -> Result<(), Stop> {
        self.tell(Update::Opened { block, opening: OpenedBlock::Thinking })?;
        let began = now();
        self.grow(block, text, ms)?;
        let value = thinking(text, Some(ThinkingSpan { started: began, ended: now() }));
        self.tell(Update::Closed { block, value: Box::new(Block::Thinking(value)) })
    }

    fn text(&self, block: BlockId, text: &str, ms: u64) -> Result<(), Stop> {
        self.tell(Update::Opened { block, opening: OpenedBlock::Text })?;
        self.grow(block, text, ms)?;
        let value = Block::Text(Text { text: text.into(), ..Text::default() });
        self.tell(Update::Closed { block, value: Box::new(value) })
    }

    fn call(&mut self, block: BlockId) -> Result<(), Stop> {
        self.tell(Update::Opened { block, opening: OpenedBlock::ToolCall { name: "edit".into() } })?;
        let arguments = r#"{"path":"src/doc.rs","old":"true","new":"indent == 0"}"#;
        self.grow(block, arguments, 30)?;
        let call = ToolCall::new(CallId::Given("call_1".into()), "edit", Arguments::parse(arguments.into()));
        self.tell(Update::Closed { block, value: Box::new(Block::ToolCall(call.clone())) })?;
        let permit = self.ask()?;
        let (content, is_error) = match permit {
            PermissionAnswer::No(word) => (format!("the user says no: {}", word.unwrap_or_default()), true),
            PermissionAnswer::Nobody => ("there is no one to ask".to_owned(), true),
            PermissionAnswer::Once | PermissionAnswer::Session | PermissionAnswer::Project => {
                self.tell(Update::ToolStarted(Box::new(call)))?;
                self.wait(1200)?;
                (DIFF.to_owned(), false)
            }
        };
        let result = ToolResult { id: "call_1".into(), name: "edit".into(), content, is_error, media: Vec::new() };
        self.tell(Update::ToolEnded(Box::new(result)))
    }

    fn ask(&mut self) -> Result<PermissionAnswer, Stop> {
        self.asked += 1;
        self.tell(Update::QuestionAsked(Box::new(PendingQuestion {
            id: QuestionId(self.asked),
            about: permission_question::PermissionQuestion {
                preview: Some(DIFF.split_once('\n').unwrap().1.into()),
                covers: Some("edit:src/*".into()),
                ..permission_question::PermissionQuestion::new("edit", "src/doc.rs", permission_question::Risk::Writes)
            },
        })))?;
        loop {
            match self.commands.recv() {
                Ok(Command::Answer { answer: permit, .. }) => return Ok(permit),
                Ok(Command::Interrupt) => return Err(Stop::Interrupted),
                Ok(Command::Quit) | Err(_) => return Err(Stop::Left),
                Ok(_) => (),
            }
        }
    }

    fn only_thinking(&self) -> Result<(), Stop> {
        self.send(1)?;
        self.thought(BlockId(0), "I thought about it, and then the words were all used up.", 30)?;
        self.tell(Update::ReplyEnded(ReplyEnd { ending: Ending::Length, error: None }))?;
        self.tell(Update::TurnEnded(TurnEnd::ThinkingOnly { for_length: true }))
    }

    fn long(&self) -> Result<(), Stop> {
        self.send(1)?;
        self.thought(BlockId(0), &format!("{THOUGHT}\n\n").repeat(20), 5)?;
        self.text(BlockId(1), &format!("{ANSWER}\n\n").repeat(5), 5)?;
        self.tell(Update::TurnEnded(TurnEnd::Answered))
    }

    /// Five megabytes of earlier answers.
    fn big(&self) -> Result<(), Stop> {
        let answer = format!("{ANSWER}\n\n").repeat(4);
        let count = 5_000_000 / answer.len();
        let message =
            |role, text: &str| Message::new(role, vec![Block::Text(Text { text: text.into(), ..Text::default() })]);
        let turns = (0..count).flat_map(|_| [message(Role::User, "go on"), message(Role::Assistant, &answer)]);
        self.tell(Update::Restored(turns.map(Arc::new).collect()))?;
        self.tell(Update::TurnEnded(TurnEnd::Answered))
    }

    /// A thousand deltas a second for twenty seconds, half of them thinking.
    fn flood(&self) -> Result<(), Stop> {
        self.send(1)?;
        let words = format!("{THOUGHT}\n\n").repeat(150);
        let text: String = words.split_inclusive(' ').take(10_000).collect();
        self.thought(BlockId(0), &text, 1)?;
        self.text(BlockId(1), &text, 1)?;
        self.tell(Update::TurnEnded(TurnEnd::Answered))
    }
}

fn thinking(text: &str, span: Option<ThinkingSpan>) -> Thinking {
    let content = ThinkingContent::Open { text: text.into() };
    Thinking { span, ..Thinking::new(content, "reasoning_content") }
}

fn now() -> Time {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX))
}
