//! Token counts of requests, counted while they are built.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use aside_core::block::{
    Arguments, Block, CallId, Media, Origin, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ToolCall,
    ToolResult,
};
use aside_core::conversation::ToolSpec;
use aside_core::dialect::{Dialect, Dialects};
use aside_core::event::Usage;
use aside_core::history::{EntryId, History};
use aside_core::message::{Message, Role};
use aside_core::protocol::Protocol;
use aside_core::settings::{Layer, Settings};
use aside_core::tokens::{TokenCount, TokenCounter};
use aside_core::wire::{Encoded, Encoder, Request, WithheldTokens, encode};

/// Counts one token per byte, so that a count can be compared with a body.
#[derive(Debug, Default)]
struct ByteCounter {
    counted: AtomicUsize,
    fails: bool,
}

impl TokenCounter for ByteCounter {
    fn name(&self) -> &'static str {
        "bytes"
    }

    fn count(&self, text: &str) -> TokenCount {
        self.counted.fetch_add(text.len(), Ordering::Relaxed);
        TokenCount::Exact(text.len() as u64)
    }

    fn warning(&self) -> Option<String> {
        self.fails.then(|| "no vocabulary".to_owned())
    }
}

struct CountSetup {
    dialects: Dialects,
    settings: Settings,
    tools: Vec<ToolSpec>,
}

impl CountSetup {
    fn new() -> CountSetup {
        let mut settings = Settings::new();
        settings.set(Layer::Session, "reasoning.includeInContext", "true").unwrap();
        CountSetup { dialects: Dialects::builtin().unwrap(), settings, tools: Vec::new() }
    }

    fn send(&self, protocol: Protocol, encoder: &mut Encoder, history: &History) -> Encoded {
        let branch = history.branch();
        let entries: Vec<EntryId> = branch.iter().map(|(entry, _)| *entry).collect();
        let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
        let dialect = self.dialects.generic(protocol).unwrap();
        encoder.encode(&self.request(dialect, &messages), &entries)
    }

    fn request<'a>(&'a self, dialect: &'a Dialect, messages: &'a [&'a Message]) -> Request<'a> {
        let CountSetup { dialects, settings, tools } = self;
        static TARGET: LazyLock<Origin> = LazyLock::new(Origin::default);
        Request::new(dialects, dialect, "m", &TARGET, settings).with_messages(messages).with_tools(tools)
    }
}

fn counting() -> (Arc<ByteCounter>, Encoder) {
    let bytes = Arc::new(ByteCounter::default());
    (Arc::clone(&bytes), Encoder::counting_with(bytes))
}

fn text(words: &str) -> Block {
    Block::Text(Text { text: words.to_owned(), ..Text::default() })
}

fn thinking_block(content: ThinkingContent) -> Block {
    let source = "reasoning_content".to_owned();
    Block::Thinking(Thinking::new(content, source))
}

fn open(words: &str) -> Block {
    thinking_block(ThinkingContent::Open { text: words.to_owned() })
}

fn signed(words: &str, payload: &str) -> Block {
    let seal = Seal { kind: SealKind::Signature, payload: payload.to_owned() };
    thinking_block(ThinkingContent::Sealed {
        text: words.to_owned(),
        seals: Seals { signature: Some(seal), encrypted: None },
    })
}

fn answer(protocol: Protocol, setup: &CountSetup, blocks: Vec<Block>) -> Message {
    let dialect = setup.dialects.generic(protocol).unwrap().id.clone();
    let origin = Some(Origin::default().with_dialect(dialect).with_model("m".to_owned()));
    Message { origin, ..Message::new(Role::Assistant, blocks) }
}

fn history(messages: impl IntoIterator<Item = Message>) -> History {
    let mut history = History::new();
    for message in messages {
        history.append(message);
    }
    history
}

#[test]
fn c1_everything_in_the_body_is_in_the_count() {
    let mut setup = CountSetup::new();
    let parameters = format!(r#"{{"type":"object","description":"{}"}}"#, "p".repeat(500));
    setup.tools = vec![ToolSpec::new("get", "d".repeat(500), parameters)];
    setup.settings.set(Layer::Session, "request.maxTokens", "1234").unwrap();
    for protocol in Protocol::ALL {
        let (_, mut encoder) = counting();
        let history = history([
            Message::new(Role::System, vec![text(&"s".repeat(500))]),
            Message::new(Role::User, vec![text("A question.")]),
            answer(protocol, &setup, vec![open("Hm, \"well\"."), text("An answer.")]),
            Message::new(Role::User, vec![text("Another one.")]),
        ]);
        let sent = setup.send(protocol, &mut encoder, &history);
        let uncounted = (sent.body.len() as u64).abs_diff(sent.tokens);
        assert!(uncounted < 100, "{}: {} of\n{}", protocol.as_str(), sent.tokens, sent.body);
        assert_eq!(sent.message_tokens.len(), 4, "{}", protocol.as_str());
    }
}

#[test]
fn c1_what_was_counted_before_is_not_counted_again() {
    let setup = CountSetup::new();
    for protocol in Protocol::ALL {
        let (bytes, mut encoder) = counting();
        let mut history = History::new();
        for _ in 0..50 {
            history.append(Message::new(Role::User, vec![text("A question.")]));
            history.append(answer(protocol, &setup, vec![text(&"An answer. ".repeat(50))]));
        }
        history.append(Message::new(Role::User, vec![text("And now?")]));
        let first = setup.send(protocol, &mut encoder, &history);
        let before = bytes.counted.load(Ordering::Relaxed);
        history.append(answer(protocol, &setup, vec![text("A word.")]));
        history.append(Message::new(Role::User, vec![text("Thanks.")]));
        let second = setup.send(protocol, &mut encoder, &history);
        let growth = bytes.counted.load(Ordering::Relaxed) - before;
        assert!(growth < 200, "{}: {growth} bytes counted again", protocol.as_str());
        assert!(second.tokens > first.tokens);
        let branch = history.branch();
        let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
        let dialect = setup.dialects.generic(protocol).unwrap();
        let anew = counting().1.encode(&setup.request(dialect, &messages), &[]);
        assert_eq!(second, anew, "{}: counted at once or bit by bit", protocol.as_str());
    }
}

#[test]
fn c1_images_and_seals_are_not_counted_as_text() {
    let setup = CountSetup::new();
    let payload = "AbCd".repeat(25_000);
    let image = Block::Media(Media::image("image/png".into(), payload.clone()));
    let sealed = answer(Protocol::Anthropic, &setup, vec![signed("Hm.", &payload), text("So.")]);
    let usage = Some(Usage::default().with_thinking(300));
    #[rustfmt::skip]
    let cases = [
        ("an image",                        Message::new(Role::User, vec![image]), 4_800),
        ("a seal without a thinking count",           sealed.clone(),                        25_000),
        ("a seal with a thinking count",  Message { usage, ..sealed },           300),
    ];
    for (name, message, expected) in cases {
        let history = history([Message::new(Role::User, vec![text("Hi.")]), message, Message::new(Role::User, vec![])]);
        let sent = setup.send(Protocol::Anthropic, &mut counting().1, &history);
        assert!(sent.body.contains(&payload), "{name}: it is sent whole");
        let counted = sent.message_tokens[1];
        assert!((expected..expected + 200).contains(&counted), "{name}: {counted}");
    }
}

#[test]
fn c1_what_is_not_sent_is_not_counted() {
    let mut setup = CountSetup::new();
    let payload = "AbCd".repeat(1_000);
    let history = history([
        Message::new(Role::User, vec![text("Hi.")]),
        answer(Protocol::Anthropic, &setup, vec![signed(&"Hm. ".repeat(1_000), &payload), text("So.")]),
        Message::new(Role::User, vec![text("And?")]),
    ]);
    setup.settings.set(Layer::Session, "reasoning.includeInContext", "false").unwrap();
    let sent = setup.send(Protocol::Anthropic, &mut counting().1, &history);
    assert!(!sent.body.contains("Hm."));
    assert!(sent.message_tokens[1] < 100, "{:?}", sent.message_tokens);
}

#[test]
fn c5_no_thinking_is_too_long_to_be_counted_and_sent() {
    let setup = CountSetup::new();
    let long = "All work and no play. ".repeat(500_000);
    let history = history([
        Message::new(Role::User, vec![text("Hi.")]),
        answer(Protocol::OpenaiChat, &setup, vec![open(&long), text("So.")]),
        Message::new(Role::User, vec![text("And?")]),
    ]);
    let sent = setup.send(Protocol::OpenaiChat, &mut counting().1, &history);
    assert!(sent.body.contains(&long), "11 MB, and every byte of it");
    assert!(sent.message_tokens[1] >= long.len() as u64);
}

#[test]
fn err_002_a_counter_that_fails_is_noted_and_stops_nothing() {
    let setup = CountSetup::new();
    let message = Message::new(Role::User, vec![text("Hi.")]);
    let dialect = setup.dialects.generic(Protocol::OpenaiChat).unwrap();
    let messages = [&message];
    let request = setup.request(dialect, &messages);
    let plain = encode(&request);
    let failing = Arc::new(ByteCounter { fails: true, ..ByteCounter::default() });
    let sent = Encoder::counting_with(failing).encode(&request, &[]);
    assert_eq!((sent.body, sent.notes), (plain.body, vec!["no vocabulary".to_owned()]));
}

#[test]
fn c2_the_parts_of_a_request_add_up_to_its_count() {
    let mut setup = CountSetup::new();
    setup.tools = vec![ToolSpec::new("get", "d".repeat(500), "{}")];
    for include in ["true", "false"] {
        setup.settings.set(Layer::Session, "reasoning.includeInContext", include).unwrap();
        for dialect in setup.dialects.iter() {
            let (_, mut encoder) = counting();
            let origin = Some(Origin::default().with_dialect(dialect.id.clone()).with_model("m".to_owned()));
            let call = ToolCall::new(CallId::Given("c1".into()), "get", Arguments::parse("{}".into()));
            let result = ToolResult {
                id: "c1".into(),
                name: "get".into(),
                content: "r".repeat(700),
                is_error: false,
                media: Vec::new(),
            };
            let said = vec![open(&"t".repeat(300)), text(&"a".repeat(200)), Block::ToolCall(call)];
            let history = history([
                Message::new(Role::System, vec![text(&"s".repeat(400))]),
                Message::new(Role::User, vec![text(&"p".repeat(100))]),
                Message { origin, ..Message::new(Role::Assistant, said) },
                Message::new(Role::Tool, vec![Block::ToolResult(result)]),
            ]);
            let branch = history.branch();
            let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
            let request = setup.request(dialect, &messages);
            let sent = encoder.encode(&request, &[]);
            let breakdown = encoder.token_breakdown(&request, &sent);
            let name = &dialect.id;
            assert_eq!(breakdown.total(), sent.tokens, "{name}: {breakdown:?}");
            let about = |part: u64, size: u64| (size..size * 2 + 200).contains(&part);
            assert!(about(breakdown.system, 400) && about(breakdown.tools, 500), "{name}: {breakdown:?}");
            assert!(about(breakdown.prompts, 100) && about(breakdown.answers, 200), "{name}: {breakdown:?}");
            assert!(about(breakdown.results, 700), "{name}: {breakdown:?}");
            // A thinking block is either sent or withheld.
            let goes = sent.body.contains(&"t".repeat(300));
            assert_eq!(breakdown.thinking > 0, goes, "{name}: {breakdown:?}");
            let held =
                WithheldTokens { thinking_blocks: u64::from(!goes), thinking: if goes { 0 } else { 300 }, other: 0 };
            assert_eq!(breakdown.withheld, held, "{name}");
        }
    }
}
