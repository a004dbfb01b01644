//! For every dialect, history and setting, the judge accepts what the encoder builds.
//! The judge shares no code with the encoder; it reads the body as a provider does.

use aside_core::block::{
    Arguments, Block, CallId, Native, Origin, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ToolCall,
    ToolResult,
};
use aside_core::conversation::ToolSpec;
use aside_core::dialect::{Carrier, Dialect, Dialects, Duty, FillEmpty, ItemText};
use aside_core::message::{Message, Role};
use aside_core::protocol::Protocol;
use aside_core::rules::{EgressAction, IssuedThinking, JudgeVerdict, judge};
use aside_core::settings::{Layer, Settings};
use aside_core::wire::{Encoded, Request, encode};
use serde_json::Value;

pub(crate) const SECRET: &str = "a thought nobody else may see";

/// The content of one step of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum HistoryShape {
    NoThinking,
    ThinkingAndText,
    ThinkingAndCall,
    TwoThoughts,
    EncryptedOnly,
    Foreign,
    Interrupted,
}

pub(crate) const SHAPES: [HistoryShape; 7] = [
    HistoryShape::NoThinking,
    HistoryShape::ThinkingAndText,
    HistoryShape::ThinkingAndCall,
    HistoryShape::TwoThoughts,
    HistoryShape::EncryptedOnly,
    HistoryShape::Foreign,
    HistoryShape::Interrupted,
];

fn origin(dialect: &Dialect, model: &str) -> Origin {
    Origin::default().with_provider(dialect.id.clone()).with_dialect(dialect.id.clone()).with_model(model.to_owned())
}

pub(crate) fn text(words: &str) -> Block {
    Block::Text(Text { text: words.into(), ..Text::default() })
}

fn seal(kind: SealKind, payload: &str) -> Option<Seal> {
    Some(Seal { kind, payload: payload.into() })
}

/// A thinking block in the form of this protocol's providers.
pub(crate) fn thinking_block(dialect: &Dialect, words: &str, payload: &str) -> Block {
    let encrypted = dialect.protocol == Protocol::OpenaiResponses || words.is_empty();
    let seals = match encrypted {
        true => Seals { encrypted: seal(SealKind::Encrypted, payload), ..Seals::default() },
        false => Seals { signature: seal(SealKind::Signature, payload), ..Seals::default() },
    };
    let item = format!(r#"{{"type":"reasoning","id":"rs_{payload}","summary":[],"encrypted_content":"{payload}"}}"#);
    let entry = format!(r#"{{"type":"reasoning.text","index":0,"signature":"{payload}"}}"#);
    let native = match dialect.protocol {
        Protocol::OpenaiResponses => Some(Native { json: item, text_member: None }),
        Protocol::OpenaiChat if dialect.rules(None).echo.carrier == Carrier::Details => {
            Some(Native { json: entry, text_member: Some("text".into()) })
        }
        _ => None,
    };
    let content = match words.is_empty() {
        true => ThinkingContent::Hidden { seals },
        false => ThinkingContent::Sealed { text: words.into(), seals },
    };
    let source = dialect.rules(None).read.text.first().cloned().unwrap_or_else(|| "thinking".into());
    Block::Thinking(Thinking { native, ..Thinking::new(content, source) })
}

pub(crate) fn call(dialect: &Dialect, id: &str) -> Block {
    let sealed = dialect.protocol == Protocol::Gemini;
    Block::ToolCall(ToolCall {
        seal: if sealed { seal(SealKind::Signature, "on-the-call") } else { None },
        ..ToolCall::new(CallId::Given(id.into()), "get", Arguments::Json(r#"{"k":1}"#.into()))
    })
}

pub(crate) fn step(dialect: &Dialect, model: &str, shape: HistoryShape, n: usize) -> Message {
    let thinking_block = |words: &str| thinking_block(dialect, words, &format!("seal{n}"));
    let second = |words: &str| self::thinking_block(dialect, words, &format!("seal{n}b"));
    let blocks = match shape {
        HistoryShape::NoThinking => vec![text("R"), call(dialect, "c1")],
        HistoryShape::ThinkingAndText => vec![thinking_block(SECRET), text("R")],
        HistoryShape::ThinkingAndCall | HistoryShape::Foreign | HistoryShape::Interrupted => {
            vec![thinking_block(SECRET), call(dialect, "c1")]
        }
        HistoryShape::TwoThoughts => vec![thinking_block(SECRET), text("R"), second(SECRET), call(dialect, "c1")],
        HistoryShape::EncryptedOnly => vec![thinking_block(""), call(dialect, "c1")],
    };
    let foreign = Origin::default().with_provider("else".to_owned()).with_dialect("else".to_owned());
    let origin = if shape == HistoryShape::Foreign { foreign } else { origin(dialect, model) };
    Message {
        origin: Some(origin),
        interrupted: shape == HistoryShape::Interrupted,
        ..Message::new(Role::Assistant, blocks)
    }
}

pub(crate) fn conversation(dialect: &Dialect, model: &str, shape: HistoryShape) -> Vec<Message> {
    let user = |words: &str| Message::new(Role::User, vec![text(words)]);
    let result =
        ToolResult { id: "c1".into(), name: "get".into(), content: "42".into(), is_error: false, media: Vec::new() };
    let result = Message::new(Role::Tool, vec![Block::ToolResult(result)]);
    let mut messages = vec![user("q1"), step(dialect, model, shape, 1)];
    if messages[1].has_calls() {
        messages.extend([result.clone(), step(dialect, model, HistoryShape::ThinkingAndText, 2)]);
    }
    messages.extend([user("q2"), step(dialect, model, shape, 3)]);
    if messages.last().unwrap().has_calls() {
        messages.push(result);
    }
    messages
}

pub(crate) fn tools() -> Vec<ToolSpec> {
    vec![ToolSpec::new("get", "d", r#"{"type":"object"}"#)]
}

pub(crate) fn build(
    dialects: &Dialects,
    dialect: &Dialect,
    model: &str,
    messages: &[Message],
    settings: &Settings,
) -> Encoded {
    let messages: Vec<&Message> = messages.iter().collect();
    let target = Origin::default().with_provider(dialect.id.clone());
    let tools = tools();
    encode(&Request::new(dialects, dialect, model, &target, settings).with_messages(&messages).with_tools(&tools))
}

/// The headers that a client sends, besides those of the encoder.
pub(crate) fn headers(dialect: &Dialect, encoded: &Encoded) -> Vec<(String, String)> {
    let version = ("anthropic-version".to_owned(), "2023-06-01".to_owned());
    let version = (dialect.protocol == Protocol::Anthropic).then_some(version);
    encoded.headers.iter().cloned().chain(version).collect()
}

pub(crate) fn verdict(dialect: &Dialect, model: &str, messages: &[Message], body: &str) -> JudgeVerdict {
    let issued: Vec<&Message> = messages.iter().filter(|message| message.role == Role::Assistant).collect();
    judge(dialect, model, &[], body, IssuedThinking::Messages(&issued)).unwrap()
}

/// A model name for each pattern of a dialect, and one that matches none.
pub(crate) fn models(dialect: &Dialect) -> Vec<String> {
    let mut models: Vec<String> = dialect.models().map(|(pattern, _)| pattern.replace(['*', '?'], "x")).collect();
    models.push("some-model".into());
    models
}

pub(crate) fn settings(include: Option<&str>, strip: &str) -> Settings {
    let mut settings = Settings::new();
    settings.set(Layer::Session, "reasoning.stripFromContext", strip).unwrap();
    if let Some(include) = include {
        settings.set(Layer::Session, "reasoning.includeInContext", include).unwrap();
    }
    settings
}

#[test]
fn the_judge_accepts_what_is_built_for_every_dialect_shape_and_setting() {
    let dialects = Dialects::builtin().unwrap();
    let (mut n_requests, mut failures) = (0, Vec::new());
    for dialect in dialects.iter() {
        for model in models(dialect) {
            for shape in SHAPES {
                let messages = conversation(dialect, &model, shape);
                for include in [None, Some("true"), Some("false")] {
                    for strip in ["none", "allButLast", "all"] {
                        let encoded = build(&dialects, dialect, &model, &messages, &settings(include, strip));
                        let issued: Vec<&Message> =
                            messages.iter().filter(|message| message.role == Role::Assistant).collect();
                        let headers = headers(dialect, &encoded);
                        let verdict =
                            judge(dialect, &model, &headers, &encoded.body, IssuedThinking::Messages(&issued)).unwrap();
                        n_requests += 1;
                        let body: Value = serde_json::from_str(&encoded.body).unwrap();
                        assert!(body.is_object());
                        if !verdict.is_ok() {
                            let name = format!("{} {model} {shape:?} include {include:?} strip {strip}", dialect.id);
                            failures.push(format!("{name}: {:?}", verdict.broken));
                        }
                    }
                }
            }
        }
    }
    println!("{n_requests} requests judged");
    assert!(n_requests > 5000, "only {n_requests} requests");
    let shown: Vec<&String> = failures.iter().take(20).collect();
    assert!(failures.is_empty(), "{} of {n_requests} refused\n{shown:#?}", failures.len());
}

#[test]
fn e8_thinking_never_reaches_another_provider() {
    let dialects = Dialects::builtin().unwrap();
    for dialect in dialects.iter() {
        let messages = conversation(dialect, "some-model", HistoryShape::Foreign);
        let foreign_only: Vec<Message> = messages
            .into_iter()
            .filter(|message| message.origin.as_ref().is_none_or(|origin| origin.dialect.as_deref() == Some("else")))
            .collect();
        let encoded = build(&dialects, dialect, "some-model", &foreign_only, &settings(Some("true"), "none"));
        assert!(!encoded.body.contains(SECRET), "{}: {}", dialect.id, encoded.body);
    }
}

#[test]
fn e13_withheld_thinking_is_not_sent_in_any_dialect() {
    let dialects = Dialects::builtin().unwrap();
    for dialect in dialects.iter() {
        for shape in SHAPES {
            let messages = conversation(dialect, "some-model", shape);
            let encoded = build(&dialects, dialect, "some-model", &messages, &settings(Some("false"), "none"));
            for secret in [SECRET, "seal1", "seal3", "on-the-call"] {
                assert!(!encoded.body.contains(secret), "{} {shape:?}: {secret} in {}", dialect.id, encoded.body);
            }
        }
    }
}

#[test]
fn the_judge_refuses_what_a_provider_refuses() {
    let dialects = Dialects::builtin().unwrap();
    let mut n_demanding = 0;
    for dialect in dialects.iter() {
        let rules = dialect.rules(None);
        let messages = conversation(dialect, "some-model", HistoryShape::ThinkingAndCall);
        let encoded = build(&dialects, dialect, "some-model", &messages, &settings(Some("true"), "none"));
        // A changed seal is refused wherever seals are sent. Where plain text takes the
        // place of the seal, nothing shows that it was one.
        let has_seals = rules.echo.item_text == ItemText::Content;
        if has_seals && encoded.body.contains("seal3") {
            let damaged = encoded.body.replace("seal3", "sea13");
            assert!(
                !verdict(dialect, "some-model", &messages, &damaged).is_ok(),
                "{}: a changed seal passes",
                dialect.id
            );
        }
        let demands_field = rules.echo.loop_duty == Duty::Must
            && rules.echo.fill_empty != FillEmpty::None
            && matches!(rules.echo.carrier, Carrier::Field | Carrier::Details);
        if demands_field {
            n_demanding += 1;
            let mut body: Value = serde_json::from_str(&encoded.body).unwrap();
            for message in body["messages"].as_array_mut().unwrap() {
                let fields = message.as_object_mut().unwrap();
                fields.retain(|name, _| ["role", "content", "tool_calls", "tool_call_id"].contains(&name.as_str()));
            }
            let verdict = verdict(dialect, "some-model", &messages, &body.to_string());
            assert!(!verdict.is_ok(), "{}: a request without its field passes", dialect.id);
            assert_eq!(verdict.broken[0].status, 400);
            assert!(serde_json::from_str::<Value>(&verdict.broken[0].body).unwrap().is_object());
        }
    }
    assert!(n_demanding >= 2, "only {n_demanding} dialects demand a field");
}

#[test]
fn without_the_issued_messages_only_structure_is_judged_and_that_is_reported() {
    let dialects = Dialects::builtin().unwrap();
    let dialect = dialects.get("anthropic").unwrap();
    let messages = conversation(dialect, "some-model", HistoryShape::ThinkingAndCall);
    let body = build(&dialects, dialect, "some-model", &messages, &settings(Some("true"), "none")).body;
    let verdict = judge(dialect, "some-model", &[], &body.replace("seal3", "other"), IssuedThinking::Unknown).unwrap();
    assert!(verdict.is_ok());
    assert_eq!(
        verdict.unverified,
        ["headers: none were given", "signatures: the originals are unknown, so they were not checked"]
    );
    assert!(judge(dialect, "some-model", &[], "{", IssuedThinking::Unknown).is_err());
}

#[test]
fn switching_between_four_providers_and_back_is_accepted_at_every_step() {
    let dialects = Dialects::builtin().unwrap();
    let walk = [
        ("anthropic", "claude-sonnet-5"),
        ("deepseek", "deepseek-v4-pro"),
        ("gemini", "gemini-3-pro"),
        ("openai", "gpt-5.6"),
        ("anthropic", "claude-sonnet-5"),
    ];
    let mut messages = Vec::new();
    for (n, (id, model)) in walk.iter().enumerate() {
        let dialect = dialects.get(id).unwrap();
        messages.push(Message::new(Role::User, vec![text("go on")]));
        let encoded = build(&dialects, dialect, model, &messages, &Settings::new());
        let verdict = verdict(dialect, model, &messages, &encoded.body);
        assert!(verdict.is_ok(), "step {n} to {id}: {:?}\n{}", verdict.broken, encoded.body);
        let returned = encoded.decisions.iter().any(|decision| {
            decision.message == 1 && decision.action == EgressAction::Verbatim && decision.block == Some(0)
        });
        if n > 0 {
            assert_eq!(returned, *id == "anthropic", "step {n}: the first thought goes to its maker only");
        }
        messages.push(step(dialect, model, HistoryShape::ThinkingAndText, n + 1));
    }
}
