//! How many tokens a request is: counted where it is built, of what is built.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aside_core::block::{
    Arguments, Block, CallId, Content, Image, Origin, Seal, SealKind, Seals, Text, Thinking, ToolCall, ToolResult,
};
use aside_core::conversation::Tool;
use aside_core::dialect::{Dialect, Dialects};
use aside_core::event::Usage;
use aside_core::history::{EntryId, History};
use aside_core::message::{Message, Role};
use aside_core::protocol::Protocol;
use aside_core::settings::{Layer, Settings};
use aside_core::tokens::{Count, Counter};
use aside_core::wire::{Encoded, Encoder, HeldBack, Request, encode};

/// A token a byte, so that a count can be compared with a body.
#[derive(Debug, Default)]
struct Bytes {
    counted: AtomicUsize,
    fails: bool,
}

impl Counter for Bytes {
    fn name(&self) -> &'static str {
        "bytes"
    }

    fn count(&self, text: &str) -> Count {
        self.counted.fetch_add(text.len(), Ordering::Relaxed);
        Count::Exact(text.len() as u64)
    }

    fn warning(&self) -> Option<String> {
        self.fails.then(|| "no vocabulary".to_owned())
    }
}

struct Desk {
    dialects: Dialects,
    settings: Settings,
    tools: Vec<Tool>,
}

impl Desk {
    fn new() -> Desk {
        let mut settings = Settings::new();
        settings.set(Layer::Session, "reasoning.includeInContext", "true").unwrap();
        Desk { dialects: Dialects::builtin().unwrap(), settings, tools: Vec::new() }
    }

    fn send(&self, protocol: Protocol, encoder: &mut Encoder, history: &History) -> Encoded {
        let branch = history.branch();
        let entries: Vec<EntryId> = branch.iter().map(|(entry, _)| *entry).collect();
        let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
        let dialect = self.dialects.generic(protocol).unwrap();
        encoder.encode(&self.request(dialect, &messages), &entries)
    }

    fn request<'a>(&'a self, dialect: &'a Dialect, messages: &'a [&'a Message]) -> Request<'a> {
        let Desk { dialects, settings, tools } = self;
        static TARGET: Origin = Origin { provider: None, dialect: None, model: None, endpoint: None, account: None };
        Request { dialects, dialect, model: "m", target: &TARGET, messages, tools, settings, repairs: &[] }
    }
}

fn counting() -> (Arc<Bytes>, Encoder) {
    let bytes = Arc::new(Bytes::default());
    (Arc::clone(&bytes), Encoder::counting_with(bytes))
}

fn text(words: &str) -> Block {
    Block::Text(Text { text: words.to_owned(), ..Text::default() })
}

fn thought(content: Content) -> Block {
    let source = "reasoning_content".to_owned();
    Block::Thinking(Thinking { content, source, id: None, items: Vec::new(), span: None, native: None })
}

fn open(words: &str) -> Block {
    thought(Content::Open { text: words.to_owned() })
}

fn signed(words: &str, payload: &str) -> Block {
    let seal = Seal { kind: SealKind::Signature, payload: payload.to_owned() };
    thought(Content::Sealed { text: words.to_owned(), seals: Seals { signature: Some(seal), encrypted: None } })
}

fn answer(protocol: Protocol, desk: &Desk, blocks: Vec<Block>) -> Message {
    let dialect = desk.dialects.generic(protocol).unwrap().id.clone();
    let origin = Some(Origin { dialect: Some(dialect), model: Some("m".to_owned()), ..Origin::default() });
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
    let mut desk = Desk::new();
    let parameters = format!(r#"{{"type":"object","description":"{}"}}"#, "p".repeat(500));
    desk.tools = vec![Tool { name: "get".into(), description: "d".repeat(500), parameters }];
    desk.settings.set(Layer::Session, "request.maxTokens", "1234").unwrap();
    for protocol in Protocol::ALL {
        let (_, mut encoder) = counting();
        let history = history([
            Message::new(Role::System, vec![text(&"s".repeat(500))]),
            Message::new(Role::User, vec![text("A question.")]),
            answer(protocol, &desk, vec![open("Hm, \"well\"."), text("An answer.")]),
            Message::new(Role::User, vec![text("Another one.")]),
        ]);
        let sent = desk.send(protocol, &mut encoder, &history);
        let uncounted = (sent.body.len() as u64).abs_diff(sent.tokens);
        assert!(uncounted < 100, "{}: {} of\n{}", protocol.as_str(), sent.tokens, sent.body);
        assert_eq!(sent.message_tokens.len(), 4, "{}", protocol.as_str());
    }
}

#[test]
fn c1_what_was_counted_before_is_not_counted_again() {
    let desk = Desk::new();
    for protocol in Protocol::ALL {
        let (bytes, mut encoder) = counting();
        let mut history = History::new();
        for _ in 0..50 {
            history.append(Message::new(Role::User, vec![text("A question.")]));
            history.append(answer(protocol, &desk, vec![text(&"An answer. ".repeat(50))]));
        }
        history.append(Message::new(Role::User, vec![text("And now?")]));
        let first = desk.send(protocol, &mut encoder, &history);
        let before = bytes.counted.load(Ordering::Relaxed);
        history.append(answer(protocol, &desk, vec![text("A word.")]));
        history.append(Message::new(Role::User, vec![text("Thanks.")]));
        let second = desk.send(protocol, &mut encoder, &history);
        let growth = bytes.counted.load(Ordering::Relaxed) - before;
        assert!(growth < 200, "{}: {growth} bytes counted again", protocol.as_str());
        assert!(second.tokens > first.tokens);
        let branch = history.branch();
        let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
        let dialect = desk.dialects.generic(protocol).unwrap();
        let anew = counting().1.encode(&desk.request(dialect, &messages), &[]);
        assert_eq!(second, anew, "{}: counted at once or bit by bit", protocol.as_str());
    }
}

#[test]
fn c1_bytes_that_are_no_words_are_not_counted_as_words() {
    let desk = Desk::new();
    let payload = "AbCd".repeat(25_000);
    let image = Block::Image(Image { media_type: "image/png".into(), data: payload.clone() });
    let sealed = answer(Protocol::Anthropic, &desk, vec![signed("Hm.", &payload), text("So.")]);
    let usage = Some(Usage { reasoning: Some(300), ..Usage::default() });
    #[rustfmt::skip]
    let cases = [
        ("an image",                        Message::new(Role::User, vec![image]), 4_800),
        ("a seal nobody weighed",           sealed.clone(),                        25_000),
        ("a seal whose thinking was told",  Message { usage, ..sealed },           300),
    ];
    for (name, message, expected) in cases {
        let history = history([Message::new(Role::User, vec![text("Hi.")]), message, Message::new(Role::User, vec![])]);
        let sent = desk.send(Protocol::Anthropic, &mut counting().1, &history);
        assert!(sent.body.contains(&payload), "{name}: it is sent whole");
        let counted = sent.message_tokens[1];
        assert!((expected..expected + 200).contains(&counted), "{name}: {counted}");
    }
}

#[test]
fn c1_what_is_not_sent_is_not_counted() {
    let mut desk = Desk::new();
    let payload = "AbCd".repeat(1_000);
    let history = history([
        Message::new(Role::User, vec![text("Hi.")]),
        answer(Protocol::Anthropic, &desk, vec![signed(&"Hm. ".repeat(1_000), &payload), text("So.")]),
        Message::new(Role::User, vec![text("And?")]),
    ]);
    desk.settings.set(Layer::Session, "reasoning.includeInContext", "false").unwrap();
    let sent = desk.send(Protocol::Anthropic, &mut counting().1, &history);
    assert!(!sent.body.contains("Hm."));
    assert!(sent.message_tokens[1] < 100, "{:?}", sent.message_tokens);
}

#[test]
fn c5_no_thought_is_too_long_to_be_counted_and_sent() {
    let desk = Desk::new();
    let long = "All work and no play. ".repeat(500_000);
    let history = history([
        Message::new(Role::User, vec![text("Hi.")]),
        answer(Protocol::OpenaiChat, &desk, vec![open(&long), text("So.")]),
        Message::new(Role::User, vec![text("And?")]),
    ]);
    let sent = desk.send(Protocol::OpenaiChat, &mut counting().1, &history);
    assert!(sent.body.contains(&long), "11 MB, and every byte of it");
    assert!(sent.message_tokens[1] >= long.len() as u64);
}

#[test]
fn err_002_a_counter_that_fails_is_noted_and_stops_nothing() {
    let desk = Desk::new();
    let message = Message::new(Role::User, vec![text("Hi.")]);
    let dialect = desk.dialects.generic(Protocol::OpenaiChat).unwrap();
    let messages = [&message];
    let request = desk.request(dialect, &messages);
    let plain = encode(&request);
    let failing = Arc::new(Bytes { fails: true, ..Bytes::default() });
    let sent = Encoder::counting_with(failing).encode(&request, &[]);
    assert_eq!((sent.body, sent.notes), (plain.body, vec!["no vocabulary".to_owned()]));
}

#[test]
fn c2_the_parts_of_a_request_add_up_to_its_count() {
    let mut desk = Desk::new();
    desk.tools = vec![Tool { name: "get".into(), description: "d".repeat(500), parameters: "{}".into() }];
    for include in ["true", "false"] {
        desk.settings.set(Layer::Session, "reasoning.includeInContext", include).unwrap();
        for dialect in desk.dialects.iter() {
            let (_, mut encoder) = counting();
            let origin =
                Some(Origin { dialect: Some(dialect.id.clone()), model: Some("m".into()), ..Origin::default() });
            let call = ToolCall {
                id: CallId::Given("c1".into()),
                name: "get".into(),
                arguments: Arguments::parse("{}".into()),
                seal: None,
                native: None,
            };
            let result = ToolResult { id: "c1".into(), name: "get".into(), content: "r".repeat(700), is_error: false };
            let said = vec![open(&"t".repeat(300)), text(&"a".repeat(200)), Block::ToolCall(call)];
            let history = history([
                Message::new(Role::System, vec![text(&"s".repeat(400))]),
                Message::new(Role::User, vec![text(&"p".repeat(100))]),
                Message { origin, ..Message::new(Role::Assistant, said) },
                Message::new(Role::Tool, vec![Block::ToolResult(result)]),
            ]);
            let branch = history.branch();
            let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
            let request = desk.request(dialect, &messages);
            let sent = encoder.encode(&request, &[]);
            let filling = encoder.filling(&request, &sent);
            let name = &dialect.id;
            assert_eq!(filling.total(), sent.tokens, "{name}: {filling:?}");
            let about = |part: u64, size: u64| (size..size * 2 + 200).contains(&part);
            assert!(about(filling.system, 400) && about(filling.tools, 500), "{name}: {filling:?}");
            assert!(about(filling.prompts, 100) && about(filling.answers, 200), "{name}: {filling:?}");
            assert!(about(filling.results, 700), "{name}: {filling:?}");
            // A thought is in the request, or it is held back.
            let goes = sent.body.contains(&"t".repeat(300));
            assert_eq!(filling.thinking > 0, goes, "{name}: {filling:?}");
            let held = HeldBack { thoughts: u64::from(!goes), thinking: if goes { 0 } else { 300 }, other: 0 };
            assert_eq!(filling.held_back, held, "{name}");
        }
    }
}
