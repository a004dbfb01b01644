//! Reads requests as their provider does: an encoded request decodes to the messages it
//! was made from, except for what the decisions left out.

use std::fs;
use std::path::PathBuf;

use aside_core::block::{
    Arguments, Block, CallId, Media, Native, Origin, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ToolCall,
    ToolResult,
};
use aside_core::conversation::ToolSpec;
use aside_core::dialect::{Carrier, Details, Dialect, Rules};
use aside_core::message::{Message, Role};
use aside_core::parameters::ToolChoice;
use aside_core::protocol::Protocol;
use aside_core::rules::EgressAction;
use aside_core::settings::Settings;
use aside_core::wire::{ClientRequest, Encoded, Request, encode, read_request};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use crate::support::dialects;

/// One block of a request, reduced to what every protocol can carry.
#[derive(Debug, Clone, PartialEq)]
enum RequestPiece {
    Thinking { text: String, seals: Vec<String> },
    Text { text: String, seal: Option<String> },
    Call { id: String, name: String, arguments: Value, seal: Option<String> },
    Result { id: String, name: String, content: String, is_error: bool },
    Image { media_type: String, data: String },
    Other,
}

/// The content of one step, before a dialect gives it a form.
#[derive(Debug, Clone)]
struct StepPlan {
    question: Option<String>,
    thought: String,
    answer: String,
    calls: Vec<String>,
    sealed: bool,
}

fn words() -> impl Strategy<Value = String> {
    select(vec!["a", "two words", "é \"quoted\" \\ back", "line\nline", "思考 🙂", "{\"k\":1}", "</b>"])
        .prop_map(str::to_owned)
}

fn plans() -> impl Strategy<Value = Vec<StepPlan>> {
    let plan = (proptest::option::of(words()), words(), words(), prop::collection::vec(words(), 0..3), any::<bool>())
        .prop_map(|(question, thought, answer, calls, sealed)| StepPlan { question, thought, answer, calls, sealed });
    prop::collection::vec(plan, 1..5)
}

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), ..Text::default() })
}

fn seal(kind: SealKind, payload: &str) -> Option<Seal> {
    Some(Seal { kind, payload: payload.to_owned() })
}

/// A thinking block in the form that replies of this dialect have.
fn thinking_block(dialect: &Dialect, rules: &Rules, plan: &StepPlan) -> Block {
    let words = plan.thought.clone();
    let open = ThinkingContent::Open { text: words.clone() };
    let signed = |sealed: bool| match sealed {
        true => ThinkingContent::Sealed {
            text: words.clone(),
            seals: Seals { signature: seal(SealKind::Signature, "c2ln"), encrypted: None },
        },
        false => {
            ThinkingContent::Hidden { seals: Seals { signature: None, encrypted: seal(SealKind::Encrypted, "ZW5j") } }
        }
    };
    let (mut content, mut items, mut native) = (open, Vec::new(), None);
    let mut source = rules.read.text.first().cloned().unwrap_or_default();
    match dialect.protocol {
        Protocol::Anthropic | Protocol::Bedrock => content = signed(plan.sealed),
        Protocol::OpenaiResponses if rules.echo.need_opaque || plan.sealed => {
            let seals = Seals { signature: None, encrypted: seal(SealKind::Encrypted, "ZW5j") };
            content = ThinkingContent::Sealed { text: words.clone(), seals };
            items.push(0..words.len());
        }
        Protocol::OpenaiChat if rules.echo.carrier == Carrier::Details => {
            content = signed(true);
            let (name, member) = match rules.read.details {
                Details::Litellm => ("thinking_blocks", "thinking"),
                _ => ("reasoning_details", "text"),
            };
            source = name.to_owned();
            let json = r#"{"type":"reasoning.text","signature":"c2ln","index":0}"#.to_owned();
            native = Some(Native { json, text_member: Some(member.to_owned()) });
        }
        _ => (),
    }
    Block::Thinking(Thinking { items, native, ..Thinking::new(content, source) })
}

fn conversation(dialect: &Dialect, plans: &[StepPlan]) -> Vec<Message> {
    let rules = dialect.rules(Some("m"));
    let origin = Origin::default().with_dialect(dialect.id.clone());
    let mut messages = vec![Message::new(Role::System, vec![text("Be brief.")])];
    for (at, plan) in plans.iter().enumerate() {
        if let Some(question) = plan.question.as_ref().or((at == 0).then_some(&plan.answer)) {
            let picture = Media::image("image/png".to_owned(), "aW1n".to_owned());
            messages.push(Message::new(Role::User, vec![text(question), Block::Media(picture)]));
        }
        let mut blocks = vec![thinking_block(dialect, rules, plan), text(&plan.answer)];
        let mut results = Vec::new();
        for (nth, words) in plan.calls.iter().enumerate() {
            let (id, name) = (format!("call_{at}_{nth}"), "get".to_owned());
            let on_calls = dialect.protocol == Protocol::Gemini && nth == 0;
            blocks.push(Block::ToolCall(ToolCall {
                seal: seal(SealKind::Signature, "Y2FsbA==").filter(|_| on_calls),
                ..ToolCall::new(
                    CallId::Given(id.clone()),
                    name.clone(),
                    Arguments::Json(serde_json::json!({ "b": words, "a": [nth] }).to_string()),
                )
            }));
            results.push(Block::ToolResult(ToolResult {
                id,
                name,
                content: words.clone(),
                is_error: nth == 1,
                media: Vec::new(),
            }));
        }
        let mut message = Message::new(Role::Assistant, blocks);
        message.origin = Some(origin.clone());
        messages.push(message);
        if !results.is_empty() {
            messages.push(Message::new(Role::Tool, results));
        }
    }
    messages
}

fn send(dialect: &Dialect, messages: &[Message], tools: &[ToolSpec]) -> (Encoded, ClientRequest) {
    let messages: Vec<&Message> = messages.iter().collect();
    let encoded = encode(
        &Request::new(dialects(), dialect, "m", &Origin::default(), &Settings::new())
            .with_messages(&messages)
            .with_tools(tools),
    );
    let incoming = read_request(dialect.protocol, dialect.rules(Some("m")), &encoded.body);
    let incoming = incoming.unwrap_or_else(|error| panic!("{}: {error}\n{}", dialect.id, encoded.body));
    (encoded, incoming)
}

fn pieces(blocks: impl IntoIterator<Item = Block>, dummy: &str) -> Vec<RequestPiece> {
    let payload = |seal: Option<Seal>| seal.map(|seal| seal.payload).filter(|payload| payload != dummy);
    let piece = |block| match block {
        Block::Thinking(thinking) => RequestPiece::Thinking {
            text: thinking.text().to_owned(),
            seals: thinking
                .seals()
                .into_iter()
                .flat_map(|seals| [&seals.signature, &seals.encrypted])
                .filter_map(|seal| seal.as_ref().map(|seal| seal.payload.clone()))
                .collect(),
        },
        Block::Text(text) => RequestPiece::Text { text: text.text, seal: payload(text.seal) },
        Block::ToolCall(call) => {
            let Arguments::Json(json) = &call.arguments else { panic!("{call:?}") };
            let arguments = serde_json::from_str(json).unwrap();
            RequestPiece::Call { id: call.id.as_str().to_owned(), name: call.name, arguments, seal: payload(call.seal) }
        }
        Block::ToolResult(ToolResult { id, name, content, is_error, .. }) => {
            RequestPiece::Result { id, name, content, is_error }
        }
        Block::Media(media) => {
            RequestPiece::Image { data: media.data().unwrap_or_default().to_owned(), media_type: media.media_type }
        }
        Block::Unmodelled(_) => RequestPiece::Other,
    };
    blocks.into_iter().map(piece).collect()
}

/// A conversation, reduced to what this protocol can carry.
fn as_protocol_carries(
    protocol: Protocol,
    rules: &Rules,
    messages: &[(Role, Vec<RequestPiece>)],
) -> Vec<(Role, Vec<RequestPiece>)> {
    let mut out: Vec<(Role, Vec<RequestPiece>)> = Vec::new();
    let turns = matches!(protocol, Protocol::Anthropic | Protocol::Bedrock | Protocol::Gemini);
    let mut n_calls = 0;
    let mut n_results = 0;
    for (role, pieces) in messages {
        let mut pieces: Vec<RequestPiece> = pieces.clone();
        for piece in &mut pieces {
            match piece {
                RequestPiece::Call { id, .. } if protocol == Protocol::Ollama => {
                    n_calls += 1;
                    *id = format!("nth {n_calls}");
                }
                RequestPiece::Result { id, is_error, .. } => {
                    n_results += 1;
                    if protocol == Protocol::Ollama {
                        *id = format!("nth {n_results}");
                    }
                    // The other protocols cannot express it.
                    *is_error &= turns;
                }
                RequestPiece::Image { media_type, .. } if protocol == Protocol::Ollama => {
                    "image/*".clone_into(media_type)
                }
                _ => (),
            }
        }
        // Cohere takes no images.
        pieces.retain(|piece| protocol != Protocol::Cohere || !matches!(piece, RequestPiece::Image { .. }));
        pieces.retain(|piece| match piece {
            RequestPiece::Thinking { text, seals } => !text.is_empty() || !seals.is_empty(),
            RequestPiece::Text { text, seal } => !text.is_empty() || seal.is_some(),
            _ => true,
        });
        if *role == Role::Assistant && matches!(protocol, Protocol::OpenaiChat | Protocol::Ollama | Protocol::Cohere) {
            pieces = as_separate_fields(pieces, rules);
        }
        match out.last_mut() {
            // Consecutive messages of one role become one message.
            Some((last, said)) if last == role => said.extend(pieces),
            _ if pieces.is_empty() => (),
            _ => out.push((*role, pieces)),
        }
    }
    if rules.echo.repeat_before_each_call {
        out = out.into_iter().map(|(role, pieces)| (role, without_repeated_thinking(pieces))).collect();
    }
    out
}

/// Thinking that is repeated before each call counts once.
fn without_repeated_thinking(pieces: Vec<RequestPiece>) -> Vec<RequestPiece> {
    let mut last = None;
    let mut is_new = |piece: &RequestPiece| match piece {
        RequestPiece::Thinking { .. } => last.replace(piece.clone()).as_ref() != Some(piece),
        _ => true,
    };
    pieces.into_iter().filter(|piece| is_new(piece)).collect()
}

/// Thinking, text and calls in separate fields have no order, and one text each.
fn as_separate_fields(pieces: Vec<RequestPiece>, rules: &Rules) -> Vec<RequestPiece> {
    let (mut thought, mut answer, mut rest) = (None, String::new(), Vec::new());
    for piece in pieces {
        match piece {
            RequestPiece::Thinking { text, seals } => {
                let (known, payloads) = thought.get_or_insert((String::new(), Vec::new()));
                known.push_str(&text);
                payloads.extend(seals.into_iter().filter(|_| rules.echo.carrier == Carrier::Details));
            }
            RequestPiece::Text { text, .. } => answer.push_str(&text),
            other => rest.push(other),
        }
    }
    let thought = thought.map(|(text, seals)| RequestPiece::Thinking { text, seals });
    let answer = (!answer.is_empty()).then_some(RequestPiece::Text { text: answer, seal: None });
    thought.into_iter().chain(answer).chain(rest).collect()
}

fn check(dialect: &Dialect, messages: &[Message]) {
    let rules = dialect.rules(Some("m"));
    let schema = r#"{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}"#;
    let tools = vec![ToolSpec::new("get", "Gets it.", schema)];
    let (encoded, mut incoming) = send(dialect, messages, &tools);
    // Responses says that a tool is not strict; elsewhere that is the default.
    incoming.tools.iter_mut().for_each(|tool| tool.strict = tool.strict.filter(|strict| *strict));
    let is_sent = |at: usize, index: usize| {
        let decision =
            encoded.decisions.iter().find(|decision| decision.message == at && decision.block == Some(index));
        decision.is_none_or(|decision| decision.action != EgressAction::Dropped)
    };
    let dummy = rules.echo.dummy.as_str();
    let meant = messages.iter().enumerate().map(|(at, message)| {
        let sent = message.blocks.iter().enumerate().filter(|(index, _)| is_sent(at, *index));
        (message.role, pieces(sent.map(|(_, block)| block.clone()), dummy))
    });
    let read = incoming.messages.iter().map(|message| (message.role, pieces(message.blocks.clone(), dummy)));
    let (meant, read): (Vec<_>, Vec<_>) = (meant.collect(), read.collect());
    let (meant, read) =
        (as_protocol_carries(dialect.protocol, rules, &meant), as_protocol_carries(dialect.protocol, rules, &read));
    assert_eq!(read, meant, "{}: {}", dialect.id, encoded.body);
    assert_eq!(incoming.tools, tools, "{}", dialect.id);
    let in_path = matches!(dialect.protocol, Protocol::Gemini | Protocol::Bedrock);
    assert_eq!(incoming.model.as_deref(), (!in_path).then_some("m"), "{}", dialect.id);
    assert_eq!(incoming.streams, (!in_path).then_some(true), "{}", dialect.id);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn x1_an_encoded_request_reads_back_as_its_messages(plans in plans()) {
        for dialect in dialects().iter() {
            check(dialect, &conversation(dialect, &plans));
        }
    }
}

#[test]
fn x1_requests_in_other_spellings_are_read_too() {
    #[rustfmt::skip]
    let cases: &[(&str, &str, &str)] = &[
        ("a plain question",  "openai",    r#"{"input":"q"}"#),
        ("an easy message",   "openai",    r#"{"input":[{"role":"user","content":"q"}]}"#),
        ("a list of parts",   "generic",   r#"{"messages":[{"role":"user","content":[{"type":"text","text":"q"}]}]}"#),
        ("plain content",     "anthropic", r#"{"messages":[{"role":"user","content":"q"}]}"#),
        ("no role",           "gemini",    r#"{"contents":[{"parts":[{"text":"q"}]}]}"#),
        ("spread over lines", "cohere",    "{\n \"messages\": [\n {\"content\": \"q\", \"role\": \"user\"}]}"),
    ];
    for (name, id, body) in cases {
        let dialect = dialects().get(id).unwrap();
        let incoming = read_request(dialect.protocol, dialect.rules(None), body).unwrap();
        assert_eq!(incoming.messages, [Message::new(Role::User, vec![text("q")])], "{name}");
    }
}

#[test]
fn x1_answers_in_other_spellings_are_read_too() {
    #[rustfmt::skip]
    let cases: &[(&str, &str, &str)] = &[
        ("chat parts",       "deepseek",  r#"{"messages":[{"role":"assistant","content":[{"type":"text","text":"a"}]}]}"#),
        ("anthropic text",   "anthropic", r#"{"messages":[{"role":"assistant","content":"a"}]}"#),
        ("cohere text",      "cohere",    r#"{"messages":[{"role":"assistant","content":"a"}]}"#),
        ("responses text",   "openai",    r#"{"input":[{"role":"assistant","content":"a"}]}"#),
        ("a template's tag", "fireworks", r#"{"messages":[{"role":"assistant","content":"a"}]}"#),
    ];
    for (name, id, body) in cases {
        let dialect = dialects().get(id).unwrap();
        let incoming = read_request(dialect.protocol, dialect.rules(None), body).unwrap();
        assert_eq!(
            pieces(incoming.messages[0].blocks.clone(), ""),
            [RequestPiece::Text { text: "a".into(), seal: None }],
            "{name}"
        );
    }
}

#[test]
fn x1_a_forced_tool_is_recognized_in_every_protocol() {
    let named = || ToolChoice::Named("get".to_owned());
    #[rustfmt::skip]
    let cases: &[(&str, &str, ToolChoice)] = &[
        ("generic",   r#"{"messages":[],"tool_choice":"required"}"#,                                            ToolChoice::Required),
        ("generic",   r#"{"messages":[],"tool_choice":{"type":"function","function":{"name":"get"}}}"#,         named()),
        ("generic",   r#"{"messages":[],"tool_choice":"none"}"#,                                                ToolChoice::Never),
        ("openai",    r#"{"input":[],"tool_choice":{"type":"function","name":"get"}}"#,                         named()),
        ("anthropic", r#"{"messages":[],"tool_choice":{"type":"any"}}"#,                                        ToolChoice::Required),
        ("anthropic", r#"{"messages":[],"tool_choice":{"type":"tool","name":"get"}}"#,                          named()),
        ("anthropic", r#"{"messages":[],"tool_choice":{"type":"auto"}}"#,                                       ToolChoice::Auto),
        ("gemini",    r#"{"contents":[],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}"#,               ToolChoice::Required),
        ("bedrock",   r#"{"messages":[],"toolConfig":{"tools":[],"toolChoice":{"tool":{"name":"get"}}}}"#,      named()),
        ("cohere",    r#"{"messages":[],"tool_choice":"REQUIRED"}"#,                                            ToolChoice::Required),
    ];
    for (id, body, choice) in cases {
        let dialect = dialects().get(id).unwrap();
        let incoming = read_request(dialect.protocol, dialect.rules(None), body).unwrap();
        assert_eq!(incoming.parameters.tool_choice, *choice, "{id}: {body}");
    }
}

#[test]
fn x1_an_invalid_request_is_refused_with_its_position_and_reason() {
    #[rustfmt::skip]
    let cases: &[(&str, &str, &str)] = &[
        ("generic",   "no json",                                           "body: not JSON"),
        ("generic",   "[]",                                                "body: not an object"),
        ("generic",   r#"{"messages":"q"}"#,                               "messages: a list is required"),
        ("generic",   r#"{"messages":[{"role":"user"},{"role":"x"}]}"#,    "messages[1].role: unknown role `x`"),
        ("anthropic", r#"{"messages":[{"role":"tool","content":"x"}]}"#,   "messages[0].role: unknown role `tool`"),
        ("openai",    "{}",                                                "input: a list is required"),
        ("gemini",    "{}",                                                "contents: a list is required"),
    ];
    for (id, body, problem) in cases {
        let dialect = dialects().get(id).unwrap();
        let error = read_request(dialect.protocol, dialect.rules(None), body).unwrap_err().to_string();
        assert!(error.starts_with(problem), "{id}: {error}");
    }
}

/// Cases whose clients answer calls that are not in the request: one refers to the
/// provider's store, two count a repeated finish as a second call.
const RESULTS_OF_NOTHING: [&str; 3] = ["078-", "488-", "490-"];

/// Requests of real clients, in the folder that `ASIDE_CORPUS` names.
#[test]
fn x1_requests_of_real_clients_are_read() {
    let Some(folder) = std::env::var_os("ASIDE_CORPUS").map(PathBuf::from) else { return };
    let (mut n_requests, mut n_answers, mut n_results) = (0, 0, 0);
    let mut failures = Vec::new();
    for case in fs::read_dir(folder.join("cases")).unwrap().map(|entry| entry.unwrap().path()) {
        let meta: Value = serde_json::from_slice(&fs::read(case.join("meta.json")).unwrap()).unwrap();
        let Ok(protocol) = meta["protocol"].as_str().unwrap().parse::<Protocol>() else { continue };
        let rules = dialects().generic(protocol).unwrap().rules(None);
        for turn in 1.. {
            let Ok(body) = fs::read_to_string(case.join(format!("turn{turn}.request.json"))) else { break };
            match read_request(protocol, rules, &body) {
                Ok(incoming) => {
                    n_requests += 1;
                    let role = |role| incoming.messages.iter().filter(|message| message.role == role).count();
                    (n_answers, n_results) = (n_answers + role(Role::Assistant), n_results + role(Role::Tool));
                    let unnamed = |block: &Block| matches!(block, Block::ToolResult(result) if result.name.is_empty());
                    let known = RESULTS_OF_NOTHING
                        .iter()
                        .any(|name| case.file_name().unwrap().to_str().unwrap().starts_with(name));
                    if !known && incoming.messages.iter().flat_map(|message| &message.blocks).any(unnamed) {
                        failures.push(format!("{} turn {turn}: a result of no call", case.display()));
                    }
                }
                Err(error) => failures.push(format!("{} turn {turn}: {error}", case.display())),
            }
        }
    }
    println!("{n_requests} recorded requests read, {n_answers} answers and {n_results} runs of results in them");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    assert!(n_requests > 250, "only {n_requests} requests");
}
