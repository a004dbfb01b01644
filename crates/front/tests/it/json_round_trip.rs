use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aside_core::block::{
    Arguments, Block, CallId, Native, Origin, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ThinkingSpan,
    Time, ToolCall, ToolResult, Unmodelled,
};
use aside_core::compaction::CompactionTrigger;
use aside_core::connection_failure::{ConnectionError, ConnectionFailure};
use aside_core::dialect::Repair;
use aside_core::event::{BlockId, Ending, Note, NoteCode, ProseKind, ProviderError, ReplyEnd, Usage};
use aside_core::message::{Message, Role};
use aside_core::permission_question::{Confinement, Network, PermissionQuestion, ProposedChange, Risk};
use aside_core::settings::{Notify, ScreenTheme, ThinkingDisplay};
use aside_core::turn::{Declined, TurnEnd, TurnNotice};
use aside_front::{
    Attachment, Command, CommandOutput, CompletionLists, DecisionRow, DetailedOpening, MessagePart, MouseMode,
    NextRequest, OpenedBlock, OwnCommand, PendingQuestion, PermissionAnswer, ProfileAction, QuestionId, ScreenSettings,
    Sending, SessionCompletion, ShellOutput, Status, SteeringError, TerminalAction, Tier, ToolMode, UndoPart, Update,
    UpdateDetail,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The JSON name of an update. A new variant must be named here, and needs an example below.
fn update_name(update: &Update) -> &'static str {
    match update {
        Update::Sending(_) => "sending",
        Update::Opened { .. } => "opened",
        Update::Item { .. } => "item",
        Update::Grew { .. } => "grew",
        Update::Sealed { .. } => "sealed",
        Update::Refiled { .. } => "refiled",
        Update::ClosedAsStreamed { .. } => "closedAsStreamed",
        Update::Closed { .. } => "closed",
        Update::Emptied { .. } => "emptied",
        Update::Usage(_) => "usage",
        Update::Noted(_) => "noted",
        Update::ReplyEnded(_) => "replyEnded",
        Update::Retrying { .. } => "retrying",
        Update::TurnNotice(_) => "turnNotice",
        Update::ToolStarted(_) => "toolStarted",
        Update::ToolOutput { .. } => "toolOutput",
        Update::ToolEnded(_) => "toolEnded",
        Update::Recorded(_) => "recorded",
        Update::TurnEnded(_) => "turnEnded",
        Update::Detail(_) => "detail",
        Update::QuestionAsked(_) => "questionAsked",
        Update::QuestionWithdrawn(_) => "questionWithdrawn",
        Update::CommandOutput(_) => "commandOutput",
        Update::Compacted { .. } => "compacted",
        Update::Restored(_) => "restored",
        Update::Undone(_) => "undone",
        Update::NotSent { .. } => "notSent",
        Update::NotSteered { .. } => "notSteered",
        Update::TakenBack(_) => "takenBack",
        Update::NotTakenBack(_) => "notTakenBack",
        Update::GoTo { .. } => "goTo",
        Update::Status(_) => "status",
        Update::CompletionLists(_) => "completionLists",
        Update::Models(_) => "models",
        Update::PromptHistory(_) => "promptHistory",
        Update::Ready => "ready",
        Update::Interrupt => "interrupt",
        Update::Quit => "quit",
        Update::Suspend => "suspend",
        Update::SessionStored(_) => "sessionStored",
        Update::MessageStored(_) => "messageStored",
    }
}

const N_UPDATES: usize = 41;

fn command_name(command: &Command) -> &'static str {
    match command {
        Command::Prompt(_) => "prompt",
        Command::PromptWith { .. } => "promptWith",
        Command::Steer(_) => "steer",
        Command::TakeBack(_) => "takeBack",
        Command::RefreshBranch(_) => "refreshBranch",
        Command::Mode(_) => "mode",
        Command::Interrupt => "interrupt",
        Command::AnswerNow => "answerNow",
        Command::Answer { .. } => "answer",
        Command::Set { .. } => "set",
        Command::Unset(_) => "unset",
        Command::Query(_) => "query",
        Command::View(_) => "view",
        Command::Profile(_) => "profile",
        Command::Model(_) => "model",
        Command::Effort(_) => "effort",
        Command::Compact => "compact",
        Command::Fork => "fork",
        Command::Undo => "undo",
        Command::UndoOnly { .. } => "undoOnly",
        Command::Redo => "redo",
        Command::Diff(_) => "diff",
        Command::Retry => "retry",
        Command::Export(_) => "export",
        Command::Own { .. } => "own",
        Command::Shell { .. } => "shell",
        Command::Theme(_) => "theme",
        Command::Mouse(_) => "mouse",
        Command::ListModels => "listModels",
        Command::Other { .. } => "other",
        Command::Terminal(_) => "terminal",
        Command::Quit => "quit",
    }
}

const N_COMMANDS: usize = 32;

fn seal(kind: SealKind) -> Option<Seal> {
    Some(Seal { kind, payload: "bytes+/=\u{2028}".to_owned() })
}

fn native() -> Option<Native> {
    // The order of members and the form of numbers must survive.
    Some(Native { json: r#"{"z":1.50,"a":{"n":12345678901234567890}}"#.to_owned(), text_member: Some("text".into()) })
}

fn blocks() -> Vec<Block> {
    let thinking = |content| {
        Block::Thinking(Thinking { id: Some("rs_1".to_owned()), ..Thinking::new(content, "reasoning_content") })
    };
    let seals = || Seals { signature: seal(SealKind::Signature), encrypted: seal(SealKind::Encrypted) };
    let call = |arguments| {
        let (name, seal) = ("shell".to_owned(), seal(SealKind::Signature));
        Block::ToolCall(ToolCall { seal, ..ToolCall::new(CallId::Given("c1".to_owned()), name, arguments) })
    };
    vec![
        Block::Text(Text {
            text: "an \"answer\"\n".to_owned(),
            seal: seal(SealKind::Signature),
            native: native(),
            extra: Default::default(),
        }),
        thinking(ThinkingContent::Open { text: "let me see".to_owned() }),
        thinking(ThinkingContent::Sealed { text: "let me see".to_owned(), seals: seals() }),
        thinking(ThinkingContent::Hidden { seals: seals() }),
        call(Arguments::Json(r#"{"command":"ls","n":1.0}"#.to_owned())),
        call(Arguments::Broken("{\"command\":".to_owned())),
        Block::ToolResult(result()),
        Block::Unmodelled(Unmodelled { native: Native { json: r#"{"type":"new"}"#.to_owned(), text_member: None } }),
    ]
}

fn result() -> ToolResult {
    ToolResult {
        id: "c1".to_owned(),
        name: "shell".to_owned(),
        content: "\u{1b}[31mred".to_owned(),
        is_error: true,
        media: Vec::new(),
    }
}

fn message() -> Message {
    let origin = Origin::default().with_provider("acme".to_owned());
    Message {
        origin: Some(origin),
        ending: Some(Ending::Unrecognized("novel".to_owned())),
        usage: Some(usage()),
        empty_thinking_field: Some("reasoning".to_owned()),
        interrupted: true,
        at: Some(Time(1_794_735_025_250)),
        unknown_members: vec![("x-note".to_owned(), "[1,2]".to_owned())],
        ..Message::new(Role::Assistant, blocks())
    }
}

fn usage() -> Usage {
    Usage::default().with_input(u64::MAX).with_output(0).with_cached(7)
}

fn error() -> ProviderError {
    ProviderError::new("too many").with_code("rate".to_owned()).with_status(429)
}

fn question() -> PermissionQuestion {
    let confinement = Confinement { tier: Tier::Kernel, network: Network::On, warnings: vec!["can signal".to_owned()] };
    PermissionQuestion {
        id: "c1".to_owned(),
        preview: Some("make".to_owned()),
        covers: Some("shell:make".to_owned()),
        confinement: Some(confinement),
        protected: Some(".git".to_owned()),
        change: Some(ProposedChange { path: "/p/a.txt".to_owned(), before: None, after: "x\n".to_owned() }),
        ..PermissionQuestion::new("shell", "make", Risk::Runs)
    }
}

fn ends() -> Vec<TurnEnd> {
    vec![
        TurnEnd::Answered,
        TurnEnd::ThinkingOnly { for_length: true },
        TurnEnd::Empty,
        TurnEnd::Length,
        TurnEnd::Declined(Declined::ByModel),
        TurnEnd::Declined(Declined::ByFilter),
        TurnEnd::CutOff,
        TurnEnd::Oversized { most: 5 },
        TurnEnd::Failed(error()),
        TurnEnd::Unreachable(ConnectionError::new(ConnectionFailure::UnknownAuthority, "no route")),
        TurnEnd::Interrupted,
        TurnEnd::OutOfSteps(100),
        TurnEnd::OutOfMoney { microdollars: 12_345, most: 12_000 },
    ]
}

fn details() -> impl Iterator<Item = UpdateDetail> {
    let block = BlockId(3);
    let text = |text: &str| text.to_owned();
    let openings = [
        DetailedOpening::Text,
        DetailedOpening::Thinking { source_field: text("reasoning_content"), id: Some(text("rs_1")) },
        DetailedOpening::ToolCall { id: None, name: text("read") },
        DetailedOpening::Unmodelled,
    ];
    let opened = openings.map(|opening| UpdateDetail::Opened { block, opening });
    let sealed = [SealKind::Signature, SealKind::Encrypted].map(|kind| {
        let seal = seal(kind).unwrap_or_else(|| panic!("a seal"));
        UpdateDetail::Sealed { block, seal, value: blocks().into_iter().next().map(Box::new) }
    });
    let closed = blocks().into_iter().map(move |value| UpdateDetail::Closed { block, value: Some(Box::new(value)) });
    let others = [
        UpdateDetail::Item { block, index: 2 },
        UpdateDetail::Closed { block, value: None },
        UpdateDetail::Extra { block: None, name: text("citations") },
        UpdateDetail::Extra { block: Some(block), name: text("index") },
        UpdateDetail::LeftOut(text("an image is not sent")),
        UpdateDetail::Answered { call: text("c1"), permit: PermissionAnswer::No(Some(text("not now"))) },
    ];
    opened.into_iter().chain(sealed).chain(closed).chain(others)
}

fn updates() -> Vec<Update> {
    let block = BlockId(3);
    let text = |text: &str| text.to_owned();
    let decisions = vec![DecisionRow {
        message: 1,
        block: Some(0),
        what: text("message 1"),
        action: text("sent"),
        why: text("kept"),
    }];
    let sending = Sending {
        step: 2,
        model: text("acme/deep"),
        effort: Some(text("high")),
        tokens: 12,
        limit: Some(100),
        wants_thinking: true,
        notes: vec![text("lowered")],
        messages: 4,
        decisions,
    };
    let call = ToolCall::new(CallId::Invented(format!("{}1", CallId::INVENTED)), text("read"), Arguments::default());
    let mut updates = vec![
        Update::Sending(Box::new(sending)),
        Update::Opened { block, opening: OpenedBlock::Text },
        Update::Opened { block, opening: OpenedBlock::Thinking },
        Update::Opened { block, opening: OpenedBlock::ToolCall { name: text("read") } },
        Update::Opened { block, opening: OpenedBlock::Unmodelled },
        Update::Item { block },
        Update::Grew { block, text: "a\u{202e}b\n".into() },
        Update::Sealed { block },
        Update::Refiled { block, to: ProseKind::Thinking },
        Update::Refiled { block, to: ProseKind::Text },
        Update::ClosedAsStreamed { block, span: None, sealed_bytes: 0 },
        Update::ClosedAsStreamed { block, span: Some(span()), sealed_bytes: 90 },
        Update::Emptied { block },
        Update::Usage(usage()),
        Update::ReplyEnded(ReplyEnd { ending: Ending::Error, error: Some(error()) }),
        Update::Retrying { after: Duration::from_millis(1_500), attempt: 2, why: text("busy") },
        Update::TurnNotice(TurnNotice::Repaired { row: text("r1"), repair: Repair::DropField, refusal: text("no") }),
        Update::TurnNotice(TurnNotice::BrokenCall { name: text("read") }),
        Update::ToolStarted(Box::new(call)),
        Update::Compacted { summarised: 9, kept: 2, summary: text("before"), trigger: CompactionTrigger::TooLong },
        Update::ToolOutput { call: text("c1"), tail: text("a\nb"), n_lines: 12 },
        Update::ToolEnded(Box::new(result())),
        Update::Recorded(Arc::new(message())),
        Update::QuestionAsked(Box::new(PendingQuestion { id: QuestionId(4), about: question() })),
        Update::QuestionWithdrawn(QuestionId(4)),
        Update::Restored(vec![Arc::new(message()), Arc::new(Message::answer_now())]),
        Update::Undone(text("again")),
        Update::NotSent { text: text("@x"), what: text("no file"), hint: Some(text("name one")) },
        Update::NotSteered { text: text("@x"), error: None },
        Update::TakenBack(text("only the tests")),
        Update::NotTakenBack(text("only the tests")),
        Update::NotSteered {
            text: text("@x"),
            error: Some(SteeringError { what: text("no file"), hint: Some(text("name one")) }),
        },
        Update::GoTo { message: 4, part: MessagePart::Thinking(1) },
        Update::GoTo { message: 4, part: MessagePart::Start },
        Update::Status(Box::new(Status {
            tier: Some(Tier::Strong),
            mode: Some(ToolMode::ReadOnly),
            view: ThinkingDisplay::Off,
            folder: Some(text("work")),
            branch: Some(text("main")),
            next: Some(NextRequest { effort: Some(text("high")), tokens: 12_000, is_exact: true }),
            screen: ScreenSettings {
                notify: Notify::Osc777,
                prose_width: 80,
                theme: ScreenTheme::Light,
                mouse: MouseMode::Released,
            },
            ..Status::default()
        })),
        Update::CompletionLists(Box::new(CompletionLists {
            sessions: vec![SessionCompletion {
                name: text("k3f9"),
                about: text("parsing"),
                when: text("2026-11-15 09:30"),
                folder: Some(text("/a")),
            }],
            commands: vec![OwnCommand { name: text("review"), about: text("review a file") }],
            ..CompletionLists::default()
        })),
        Update::Models(vec![text("ollama/qwen3:8b")]),
        Update::PromptHistory(vec![text("one"), text("two")]),
        Update::Ready,
        Update::Interrupt,
        Update::Quit,
        Update::Suspend,
        Update::SessionStored(text("k3f9")),
        Update::MessageStored(7),
    ];
    updates.extend(details().map(|detail| Update::Detail(Box::new(detail))));
    updates.extend(blocks().into_iter().map(|value| Update::Closed { block, value: Box::new(value) }));
    updates.extend(NoteCode::ALL.map(|code| Update::Noted(Note::new(code, text("odd")))));
    updates.extend(
        [Ending::Unsaid, Ending::CutOff, Ending::Unrecognized(text("novel"))]
            .map(|ending| Update::ReplyEnded(ReplyEnd { ending, error: None })),
    );
    updates.extend(ends().into_iter().map(Update::TurnEnded));
    let table = CommandOutput::Table { head: vec![text("a")], rows: vec![vec![text("1")]] };
    let outputs = [
        CommandOutput::Line(text("done")),
        CommandOutput::Error { what: text("no"), hint: None },
        CommandOutput::Markdown(text("# page")),
        CommandOutput::Titled { command: text("/usage"), page: Box::new(table) },
    ];
    updates.extend(outputs.map(Update::CommandOutput));
    updates
}

fn commands() -> Vec<Command> {
    let text = |text: &str| text.to_owned();
    let mut commands = vec![
        Command::Prompt(text("what is @src/main.rs?")),
        Command::PromptWith {
            text: text("look"),
            attachments: vec![
                Attachment::File { path: "src/main.rs".into() },
                Attachment::Text { name: text("a.txt"), text: text("unsaved") },
                Attachment::Image { media_type: text("image/png"), data: text("AAAA") },
            ],
        },
        Command::Steer(text("only the tests")),
        Command::TakeBack(text("only the tests")),
        Command::RefreshBranch(Some(text("main"))),
        Command::Mode(ToolMode::AcceptEdits),
        Command::Interrupt,
        Command::AnswerNow,
        Command::Set { key: text("reasoning.effort"), value: text("high") },
        Command::Unset(text("reasoning.effort")),
        Command::Query(None),
        Command::Query(Some(text("reasoning.effort"))),
        Command::Model(None),
        Command::Model(Some(text("acme/deep"))),
        Command::Effort(Some(text("low"))),
        Command::Compact,
        Command::Fork,
        Command::Undo,
        Command::UndoOnly { part: UndoPart::Files, force: true },
        Command::UndoOnly { part: UndoPart::Talk, force: false },
        Command::Redo,
        Command::Diff(None),
        Command::Retry,
        Command::Export(Some(text("out.md"))),
        Command::Own { name: text("review"), arguments: text("a.rs") },
        Command::Shell { command: text("make"), output: ShellOutput::User },
        Command::Shell { command: text("make"), output: ShellOutput::Model },
        Command::Theme(None),
        Command::Theme(Some(ScreenTheme::Dark)),
        Command::Mouse(MouseMode::Released),
        Command::ListModels,
        Command::Other { name: text("search"), rest: text("a walrus") },
        Command::Quit,
    ];
    let answers = [
        PermissionAnswer::Once,
        PermissionAnswer::Session,
        PermissionAnswer::Project,
        PermissionAnswer::No(None),
        PermissionAnswer::No(Some(text("use make instead"))),
        PermissionAnswer::Nobody,
    ];
    commands.extend(answers.map(|answer| Command::Answer { id: QuestionId(4), answer }));
    commands.extend(ThinkingDisplay::ALL.iter().copied().map(Command::View));
    let profiles = [ProfileAction::Load(text("deep")), ProfileAction::Save(text("deep"))];
    commands.extend(profiles.map(Command::Profile));
    commands.extend([ProfileAction::List, ProfileAction::Delete(text("deep"))].map(Command::Profile));
    let actions = [TerminalAction::Copy(text("words")), TerminalAction::Suspend, TerminalAction::Edit(text("draft"))];
    commands.extend(actions.map(Command::Terminal));
    let modes = [MouseMode::Captured, MouseMode::Released];
    commands.extend(modes.map(|mode| Command::Terminal(TerminalAction::Mouse(mode))));
    commands
}

fn check<T>(values: Vec<T>, name: fn(&T) -> &'static str, n_names: usize)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let mut names = BTreeSet::new();
    for value in values {
        let json = serde_json::to_string(&value).unwrap();
        let parsed: T = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
        assert_eq!(parsed, value, "{json}");
        let tree: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(tree["type"], name(&value), "{json}");
        let members: Vec<&str> = tree.as_object().unwrap().keys().map(String::as_str).collect();
        assert!(matches!(members.as_slice(), ["type"] | ["type", "value"]), "{json}");
        names.insert(name(&value));
    }
    assert_eq!(names.len(), n_names, "an example for every variant");
}

#[test]
fn every_update_survives_json() {
    check(updates(), update_name, N_UPDATES);
}

#[test]
fn every_command_survives_json() {
    check(commands(), command_name, N_COMMANDS);
}

fn span() -> ThinkingSpan {
    ThinkingSpan { started: Time(1_000), ended: Time(2_500) }
}

#[test]
fn the_json_has_the_names_that_other_programs_rely_on() {
    let block = BlockId(3);
    let closed = Update::Closed { block, value: Box::new(Block::Text(Text { text: "hi".into(), ..Text::default() })) };
    let answer = PermissionAnswer::No(Some("use make".to_owned()));
    #[rustfmt::skip]
    let cases = [
        (serde_json::to_string(&Update::Grew { block, text: "hi".into() }), r#"{"type":"grew","value":{"block":3,"text":"hi"}}"#),
        (serde_json::to_string(&Update::ClosedAsStreamed { block, span: Some(span()), sealed_bytes: 90 }),
            r#"{"type":"closedAsStreamed","value":{"block":3,"span":{"startedAt":"1970-01-01T00:00:01.000Z","endedAt":"1970-01-01T00:00:02.500Z"},"sealedBytes":90}}"#),
        (serde_json::to_string(&closed), r#"{"type":"closed","value":{"block":3,"value":{"type":"text","text":"hi"}}}"#),
        (serde_json::to_string(&Update::Retrying { after: Duration::from_secs(2), attempt: 1, why: "busy".to_owned() }),
            r#"{"type":"retrying","value":{"afterMs":2000,"attempt":1,"why":"busy"}}"#),
        (serde_json::to_string(&Update::TurnEnded(TurnEnd::ThinkingOnly { for_length: true })),
            r#"{"type":"turnEnded","value":{"type":"thinkingOnly","value":{"forLength":true}}}"#),
        (serde_json::to_string(&Command::Answer { id: QuestionId(4), answer }),
            r#"{"type":"answer","value":{"id":4,"answer":{"type":"no","value":"use make"}}}"#),
        (serde_json::to_string(&Command::Retry), r#"{"type":"retry"}"#),
    ];
    for (json, expected) in cases {
        assert_eq!(json.unwrap(), expected);
    }
}
