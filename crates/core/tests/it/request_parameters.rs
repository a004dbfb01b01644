//! Parameters: each protocol reads what it writes, and what it does not write is
//! left out with a reason.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use aside_core::block::{Block, Origin, Text};
use aside_core::conversation::ToolSpec;
use aside_core::dialect::Dialect;
use aside_core::message::{Message, Role};
use aside_core::parameters::{
    CacheHint, CachePosition, NativeTool, Parameters, ProtocolMembers, ResponseFormat, ResponseSchema, ServiceTier,
    ThinkingParameters, ToolChoice, Verbosity,
};
use aside_core::protocol::Protocol;
use aside_core::settings::{Effort, Layer, Settings};
use aside_core::wire::{ClientRequest, Encoded, Request, encode, read_request};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::support::dialects;

fn question() -> Message {
    Message::new(Role::User, vec![text("go")])
}

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), ..Text::default() })
}

fn send(dialect: &Dialect, model: &str, parameters: &Parameters, tools: &[ToolSpec], settings: &Settings) -> Encoded {
    let (target, system) = (Origin::default(), Message::new(Role::System, vec![text("Be brief.")]));
    let request = Request::new(dialects(), dialect, model, &target, settings);
    encode(&request.with_messages(&[&system, &question()]).with_tools(tools).with_parameters(parameters))
}

fn read(dialect: &Dialect, model: &str, encoded: &Encoded) -> ClientRequest {
    let read = read_request(dialect.protocol, dialect.rules(Some(model)), &encoded.body);
    read.unwrap_or_else(|error| panic!("{}: {error}\n{}", dialect.id, encoded.body))
}

fn names() -> impl Strategy<Value = String> {
    select(vec!["get", "put", "list"]).prop_map(str::to_owned)
}

fn words() -> impl Strategy<Value = String> {
    select(vec!["a", "é \"q\" \\", "two words", "###\n"]).prop_map(str::to_owned)
}

fn choices() -> impl Strategy<Value = ToolChoice> {
    prop_oneof![
        Just(ToolChoice::Auto),
        Just(ToolChoice::Never),
        Just(ToolChoice::Required),
        names().prop_map(ToolChoice::Named),
        (prop::collection::btree_set(names(), 1..4), any::<bool>())
            .prop_map(|(names, required)| ToolChoice::allowed(names.into_iter().collect(), required)),
    ]
}

fn formats() -> impl Strategy<Value = ResponseFormat> {
    let schema = json!({ "type": "object", "properties": { "é": { "type": "number" } }, "required": ["é"] });
    let schema = (option::of(names()), option::of(words()), option::of(any::<bool>())).prop_map(
        move |(name, description, strict)| {
            let mut format = ResponseSchema::new(schema.clone());
            (format.name, format.description, format.strict) = (name, description, strict);
            ResponseFormat::Schema(format)
        },
    );
    prop_oneof![Just(ResponseFormat::Text), Just(ResponseFormat::Json), schema]
}

/// Members without a neutral form, as clients of the protocol send them.
fn extra_members(protocol: Protocol) -> Value {
    match protocol {
        Protocol::OpenaiChat => json!({ "logit_bias": { "50256": -100 }, "n": 2, "min_p": 5 }),
        Protocol::OpenaiResponses => json!({ "truncation": "auto", "text": { "other": 1 }, "prompt_cache_key": "k" }),
        Protocol::Anthropic => json!({ "container": "c1", "context_management": { "edits": [] } }),
        Protocol::Gemini => json!({ "safetySettings": [{ "a": 1 }], "generationConfig": { "candidateCount": 1 } }),
        Protocol::Ollama => json!({ "keep_alive": "5m", "options": { "num_ctx": 4096 } }),
        Protocol::Bedrock => json!({ "guardrailConfig": { "guardrailIdentifier": "g" } }),
        Protocol::Cohere => json!({ "safety_mode": "OFF", "documents": ["d"] }),
    }
}

fn members(protocol: Protocol, value: Value) -> ProtocolMembers {
    let Value::Object(object) = value else { panic!("{value}") };
    ProtocolMembers::new(protocol, object.into_iter().collect())
}

fn protocols() -> impl Strategy<Value = Protocol> {
    select(Protocol::ALL.to_vec())
}

/// The positions in the order in which a request has them.
const POSITIONS: [CachePosition; 4] = [
    CachePosition::System,
    CachePosition::Block { message: 1, block: 0 },
    CachePosition::Block { message: 1, block: 9 },
    CachePosition::Tools,
];

/// One hint per position, in the order of the request.
fn cache_hints(drawn: Vec<(CachePosition, Option<String>)>) -> Vec<CacheHint> {
    let hint = |position: &CachePosition| {
        let (after, ttl) = drawn.iter().find(|(after, _)| after == position)?;
        let mut hint = CacheHint::new(*after);
        hint.ttl.clone_from(ttl);
        Some(hint)
    };
    POSITIONS.iter().filter_map(hint).collect()
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let number = || option::of(select(vec![0.0, 0.25, 1.0, 1.5]));
    let sampling = (number(), number(), option::of(0_u64..100), option::of(any::<i64>()), number(), number());
    let texts = (prop::collection::vec(words(), 0..3), option::of(words()));
    let metadata = prop::collection::btree_map(names(), words(), 0..3);
    let tier = option::of(select(ServiceTier::ALL.to_vec()));
    let verbosity = option::of(select(Verbosity::ALL.to_vec()));
    let effort = option::of(select(Effort::ALL.to_vec()));
    let thinking = (option::of(any::<bool>()), effort, option::of(1024_u64..4000));
    let hints = prop::collection::vec((select(POSITIONS.to_vec()), option::of(Just("1h".to_owned()))), 0..3)
        .prop_map(cache_hints);
    let others = (option::of(protocols()), option::of(protocols()), option::of(20_000_u64..30_000));
    let tools = (choices(), option::of(any::<bool>()), formats());
    (sampling, texts, metadata, tier, verbosity, thinking, others, tools, hints).prop_map(
        |(sampling, (stop, user), metadata, tier, verbosity, thinking, others, tools, hints)| {
            let mut out = Parameters::new();
            let into = &mut out.sampling;
            (into.temperature, into.top_p, into.top_k, into.seed) = (sampling.0, sampling.1, sampling.2, sampling.3);
            (into.presence_penalty, into.frequency_penalty, into.stop) = (sampling.4, sampling.5, stop);
            (out.user, out.metadata, out.service_tier, out.verbosity) = (user, metadata, tier, verbosity);
            (out.thinking.enabled, out.thinking.effort, out.thinking.budget) = thinking;
            out.extra = others.0.map(|protocol| members(protocol, extra_members(protocol)));
            out.native_tools =
                others.1.map(|protocol| NativeTool::new(protocol, r#"{"kind":"search"}"#)).into_iter().collect();
            out.max_output_tokens = others.2;
            out.cache_hints = hints;
            (out.tool_choice, out.parallel_tool_calls, out.response_format) = tools;
            out
        },
    )
}

fn tools() -> impl Strategy<Value = Vec<ToolSpec>> {
    let tool = (option::of(any::<bool>()), option::of(protocols())).prop_map(|(strict, protocol)| {
        let schema = r#"{"type":"object","properties":{"b":{"type":"string"}}}"#;
        let mut tool = ToolSpec::new("get", "Gets it.", schema);
        tool.strict = strict;
        tool.extra = protocol.map(|protocol| members(protocol, json!({ "x_more": { "a": [1] } })));
        tool
    });
    prop::collection::vec(tool, 0..3)
}

/// The request without what was left out.
fn remaining(dialect: &Dialect, parameters: &Parameters, encoded: &Encoded) -> Parameters {
    let lost = |path: &str| encoded.left_out.iter().any(|loss| loss.path == path);
    let mut out = parameters.clone();
    let sampling = &mut out.sampling;
    let forget = |path: &str, forget: &mut dyn FnMut()| {
        if lost(path) {
            forget();
        }
    };
    forget("temperature", &mut || sampling.temperature = None);
    forget("top_p", &mut || sampling.top_p = None);
    forget("top_k", &mut || sampling.top_k = None);
    forget("seed", &mut || sampling.seed = None);
    forget("presence_penalty", &mut || sampling.presence_penalty = None);
    forget("frequency_penalty", &mut || sampling.frequency_penalty = None);
    forget("stop", &mut || sampling.stop.clear());
    forget("verbosity", &mut || out.verbosity = None);
    forget("service_tier", &mut || out.service_tier = None);
    forget("metadata", &mut || out.metadata.clear());
    forget("user", &mut || out.user = None);
    forget("tool_choice", &mut || out.tool_choice = ToolChoice::Auto);
    forget("parallel_tool_calls", &mut || out.parallel_tool_calls = None);
    forget("response_format", &mut || out.response_format = ResponseFormat::Text);
    if let ResponseFormat::Schema(schema) = &mut out.response_format {
        forget("response_format.name", &mut || schema.name = None);
        forget("response_format.description", &mut || schema.description = None);
        forget("response_format.strict", &mut || schema.strict = None);
    }
    forget("thinking.effort", &mut || out.thinking.effort = None);
    forget("thinking.budget", &mut || out.thinking.budget = None);
    let mut at = 0;
    out.cache_hints.retain(|_| {
        at += 1;
        !lost(&format!("cache_hints[{}]", at - 1))
    });
    out.native_tools.retain(|tool| tool.protocol == dialect.protocol);
    let extra = out.extra.take().filter(|extra| extra.protocol == dialect.protocol);
    let kept = |mut extra: ProtocolMembers| {
        extra.members.retain(|name, _| !lost(name));
        extra
    };
    out.extra = extra.map(kept).filter(|extra| !extra.members.is_empty());
    out
}

/// The members of the second that the first does not have.
fn added(before: Option<ProtocolMembers>, after: Option<ProtocolMembers>) -> BTreeMap<String, Value> {
    let before = before.map(|extra| extra.members).unwrap_or_default();
    let mut added = after.map(|extra| extra.members).unwrap_or_default();
    added.retain(|name, value| {
        if let (Some(Value::Object(before)), Value::Object(value)) = (before.get(name), &mut *value) {
            value.retain(|name, _| !before.contains_key(name));
            return !value.is_empty();
        }
        before.get(name) != Some(value)
    });
    added
}

fn check(dialect: &Dialect, parameters: &Parameters, tools: &[ToolSpec]) {
    let settings = Settings::new();
    let encoded = send(dialect, "m", parameters, tools, &settings);
    let mut found = read(dialect, "m", &encoded);
    let case = format!("{}: {:?}\n{}", dialect.id, encoded.left_out, encoded.body);

    // What the encoder writes by itself does not belong to the request.
    let mut bare = Parameters::new();
    (bare.thinking, bare.max_output_tokens) = (parameters.thinking, parameters.max_output_tokens);
    let bare = read(dialect, "m", &send(dialect, "m", &bare, &[], &settings));

    let expected = remaining(dialect, parameters, &encoded);
    let extra = added(bare.parameters.extra, found.parameters.extra.take());
    assert_eq!(extra, expected.extra.clone().map(|extra| extra.members).unwrap_or_default(), "{case}");
    // Thinking depends on the model; notes say where it was changed.
    let thinking = std::mem::take(&mut found.parameters.thinking);
    if encoded.notes.is_empty() {
        if expected.thinking.effort.is_some() {
            assert_eq!(thinking.effort, expected.thinking.effort, "{case}");
        }
        if expected.thinking.budget.is_some() {
            assert_eq!(thinking.budget, expected.thinking.budget, "{case}");
        }
    }
    let limit = found.parameters.max_output_tokens.take();
    if expected.max_output_tokens.is_some() && !encoded.left_out.iter().any(|loss| loss.path == "max_output_tokens") {
        assert_eq!(limit, expected.max_output_tokens, "{case}");
    }
    let mut expected = expected;
    expected.thinking = ThinkingParameters::default();
    (expected.max_output_tokens, expected.extra) = (None, None);
    assert_eq!(found.parameters, expected, "{case}");

    let mut expected_tools = tools.to_vec();
    for (at, tool) in expected_tools.iter_mut().enumerate() {
        let lost = |path: String| encoded.left_out.iter().any(|loss| loss.path == path);
        if lost(format!("tools[{at}].strict")) {
            tool.strict = None;
        }
        if lost(format!("tools[{at}].x_more")) {
            tool.extra = None;
        }
    }
    // Not strict is what every provider does by default, and Responses says so.
    for tool in expected_tools.iter_mut().chain(&mut found.tools) {
        tool.strict = tool.strict.filter(|strict| *strict);
    }
    assert_eq!(found.tools, expected_tools, "{case}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn e17_a_request_reads_back_as_it_was_without_what_was_left_out(parameters in parameters(), tools in tools()) {
        for dialect in dialects().iter() {
            check(dialect, &parameters, &tools);
        }
    }
}

/// Everything that a request may ask for.
fn everything() -> Parameters {
    let mut out = Parameters::new();
    out.sampling.temperature = Some(0.5);
    out.sampling.top_p = Some(0.9);
    out.sampling.top_k = Some(40);
    out.sampling.seed = Some(7);
    out.sampling.presence_penalty = Some(0.25);
    out.sampling.frequency_penalty = Some(0.75);
    out.sampling.stop = vec!["END".to_owned()];
    out.tool_choice = ToolChoice::Named("get".to_owned());
    out.parallel_tool_calls = Some(false);
    out.max_output_tokens = Some(500);
    out.verbosity = Some(Verbosity::Low);
    out.service_tier = Some(ServiceTier::Default);
    out.metadata = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
    out.user = Some("u".to_owned());
    let mut schema = ResponseSchema::new(json!({ "type": "object" }));
    (schema.name, schema.strict) = (Some("s".to_owned()), Some(true));
    out.response_format = ResponseFormat::Schema(schema);
    out
}

/// The members and the losses, written down by hand and not taken from the table
/// that the reader and the writer share.
#[test]
fn e17_each_protocol_has_its_own_names() {
    let none = |protocol: &str| format!("the {protocol} protocol has no such parameter");
    let (named, schema) = (json!({ "type": "function", "function": { "name": "get" } }), json!({ "type": "object" }));
    #[rustfmt::skip]
    let cases: [(Protocol, Value, &[&str]); 7] = [
        (Protocol::OpenaiChat, json!({
            "temperature": 0.5, "top_p": 0.9, "seed": 7, "presence_penalty": 0.25, "frequency_penalty": 0.75, "stop": ["END"],
            "tool_choice": named, "parallel_tool_calls": false, "max_tokens": 500, "verbosity": "low", "service_tier": "default",
            "metadata": { "k": "v" }, "user": "u",
            "response_format": { "type": "json_schema", "json_schema": { "name": "s", "strict": true, "schema": schema } },
        }), &["top_k"]),
        (Protocol::OpenaiResponses, json!({
            "temperature": 0.5, "top_p": 0.9, "tool_choice": { "type": "function", "name": "get" }, "parallel_tool_calls": false,
            "max_output_tokens": 500, "service_tier": "default", "metadata": { "k": "v" }, "user": "u",
            "text": { "verbosity": "low", "format": { "type": "json_schema", "name": "s", "strict": true, "schema": schema } },
        }), &["top_k", "seed", "presence_penalty", "frequency_penalty", "stop"]),
        (Protocol::Anthropic, json!({
            "temperature": 0.5, "top_p": 0.9, "top_k": 40, "stop_sequences": ["END"],
            "tool_choice": { "type": "tool", "name": "get", "disable_parallel_tool_use": true }, "max_tokens": 500,
            "service_tier": "standard_only", "metadata": { "user_id": "u" },
            "output_config": { "format": { "type": "json_schema", "schema": schema } },
        }), &["seed", "presence_penalty", "frequency_penalty", "verbosity", "metadata", "response_format.name", "response_format.strict"]),
        (Protocol::Gemini, json!({
            "generationConfig": {
                "temperature": 0.5, "topP": 0.9, "topK": 40, "seed": 7, "presencePenalty": 0.25, "frequencyPenalty": 0.75,
                "stopSequences": ["END"], "maxOutputTokens": 500, "responseMimeType": "application/json", "responseJsonSchema": schema,
            },
            "toolConfig": { "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["get"] } },
        }), &["verbosity", "metadata", "user", "service_tier", "parallel_tool_calls", "response_format.name", "response_format.strict"]),
        (Protocol::Ollama, json!({
            "options": {
                "temperature": 0.5, "top_p": 0.9, "top_k": 40, "seed": 7, "presence_penalty": 0.25, "frequency_penalty": 0.75,
                "stop": ["END"], "num_predict": 500,
            },
            "format": schema,
        }), &["verbosity", "metadata", "user", "service_tier", "tool_choice", "parallel_tool_calls", "response_format.name", "response_format.strict"]),
        (Protocol::Bedrock, json!({
            "inferenceConfig": { "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"], "maxTokens": 500 },
            "toolConfig": { "toolChoice": { "tool": { "name": "get" } } }, "serviceTier": { "type": "default" },
            "requestMetadata": { "k": "v" },
            "outputConfig": { "textFormat": { "type": "json_schema", "structure": { "jsonSchema": { "name": "s", "schema": "{\"type\":\"object\"}" } } } },
        }), &["top_k", "seed", "presence_penalty", "frequency_penalty", "verbosity", "user", "parallel_tool_calls", "response_format.strict"]),
        (Protocol::Cohere, json!({
            "temperature": 0.5, "p": 0.9, "k": 40, "seed": 7, "presence_penalty": 0.25, "frequency_penalty": 0.75,
            "stop_sequences": ["END"], "max_tokens": 500, "response_format": { "type": "json_object", "json_schema": schema },
        }), &["verbosity", "metadata", "user", "service_tier", "tool_choice", "parallel_tool_calls", "response_format.name", "response_format.strict"]),
    ];
    let tools = [ToolSpec::new("get", "Gets it.", "{}")];
    let mut settings = Settings::new();
    settings.set(Layer::Session, "reasoning.enabled", "false").unwrap();
    for (protocol, expected, lost) in cases {
        // Dialects without rules of their own, as files of a user.
        let path = dialects().generic(protocol).unwrap().rules(None).ask.max_tokens.path.clone();
        let text = format!(
            "id=\"acme\"\nprotocol=\"{protocol}\"\n[ask]\non={{}}\noff={{}}\nshow={{}}\nextra={{}}\nforbid=[]\nforbid_when_on=[]\nforced_tools_ok=true\nmax_tokens.path=\"{path}\"\n"
        );
        let sources = [aside_core::dialect::DialectSource { path: "acme.toml", text: &text }];
        let own = aside_core::dialect::Dialects::with_user_files(&sources).unwrap();
        let (dialect, target, message) = (own.get("acme").unwrap(), Origin::default(), question());
        let request = Request::new(&own, dialect, "m", &target, &settings).with_tools(&tools);
        let everything = everything();
        let encoded = encode(&request.with_messages(&[&message]).with_parameters(&everything));
        let mut body: Value = serde_json::from_str(&encoded.body).unwrap();
        let members = body.as_object_mut().unwrap();
        for member in ["model", "stream", "stream_options", "messages", "input", "contents", "tools"] {
            members.remove(member);
        }
        if let Some(config) = members.get_mut("toolConfig").and_then(Value::as_object_mut) {
            config.remove("tools");
        }
        assert_eq!(body, expected, "{protocol}");
        let losses: Vec<&str> = encoded.left_out.iter().map(|loss| loss.path.as_str()).collect();
        let (mut losses, mut lost) = (losses, lost.to_vec());
        losses.sort_unstable();
        lost.sort_unstable();
        assert_eq!(losses, lost, "{protocol}: {:?}", encoded.left_out);
        let top_k = encoded.left_out.iter().find(|loss| loss.path == "top_k");
        assert!(top_k.is_none_or(|loss| loss.reason.to_string() == none(protocol.as_str())), "{top_k:?}");
    }
}

#[test]
fn e17_a_parameter_wins_over_a_setting_and_the_dialect_over_both() {
    let mut settings = Settings::new();
    settings.set(Layer::Session, "request.temperature", "0.1").unwrap();
    settings.set(Layer::Session, "request.maxTokens", "3000").unwrap();
    let mut parameters = Parameters::new().with_max_output_tokens(2000);
    parameters.sampling.temperature = Some(0.7);
    let body = |id: &str, model: &str, parameters: &Parameters| -> (Value, Vec<String>) {
        let encoded = send(dialects().get(id).unwrap(), model, parameters, &[], &settings);
        let losses = encoded.left_out.iter().map(ToString::to_string).collect();
        (serde_json::from_str(&encoded.body).unwrap(), losses)
    };
    let (by_setting, _) = body("generic", "m", &Parameters::new());
    assert_eq!((&by_setting["temperature"], &by_setting["max_tokens"]), (&json!(0.1), &json!(3000)));
    let (by_parameter, _) = body("generic", "m", &parameters);
    assert_eq!((&by_parameter["temperature"], &by_parameter["max_tokens"]), (&json!(0.7), &json!(2000)));
    let (refused, losses) = body("anthropic", "claude-sonnet-5", &parameters);
    assert_eq!((refused.get("temperature"), &refused["max_tokens"]), (None, &json!(2000)));
    assert_eq!(losses, ["temperature is not sent: this model does not accept it"]);
    let forced = Parameters::new().with_tool_choice(ToolChoice::Required);
    let deepseek = dialects().get("deepseek").unwrap();
    let tools = [ToolSpec::new("get", "", "{}")];
    let encoded = send(deepseek, "deepseek-v4-pro", &forced, &tools, &Settings::new());
    assert!(!encoded.body.contains("tool_choice"), "{}", encoded.body);
    assert_eq!(
        encoded.left_out[0].to_string(),
        "tool_choice is not sent: this model does not accept it while it thinks"
    );
}

#[test]
fn e17_what_a_client_says_about_thinking_is_read_in_neutral_terms() {
    #[rustfmt::skip]
    let cases: &[(&str, &str, ThinkingCase)] = &[
        ("generic",   r#"{"messages":[],"reasoning_effort":"high"}"#,                                         (None,        Some(Effort::High), None)),
        ("generic",   r#"{"messages":[],"reasoning_effort":"none"}"#,                                         (Some(false), None,               None)),
        ("openai",    r#"{"input":[],"reasoning":{"effort":"low"}}"#,                                         (None,        Some(Effort::Low),  None)),
        ("anthropic", r#"{"messages":[],"thinking":{"type":"enabled","budget_tokens":2000}}"#,                (Some(true),  None,               Some(2000))),
        ("anthropic", r#"{"messages":[],"thinking":{"type":"disabled"}}"#,                                    (Some(false), None,               None)),
        ("gemini",    r#"{"contents":[],"generation_config":{"thinking_config":{"thinking_budget":100}}}"#,   (None,        None,               Some(100))),
        ("ollama",    r#"{"messages":[],"think":false}"#,                                                     (Some(false), None,               None)),
    ];
    for (id, body, expected) in cases {
        let dialect = dialects().get(id).unwrap();
        let parameters = read_request(dialect.protocol, dialect.rules(None), body).unwrap().parameters;
        let ThinkingParameters { enabled, effort, budget, .. } = parameters.thinking;
        assert_eq!((enabled, effort, budget), *expected, "{id}: {body}");
        assert_eq!(parameters.extra, None, "{id}: {body}");
    }
}

type ThinkingCase = (Option<bool>, Option<Effort>, Option<u64>);

#[test]
fn e17_a_seal_of_a_client_goes_back_to_the_origin_that_the_caller_knows() {
    let body = r#"{"max_tokens":9,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[
        {"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"a"}]},{"role":"user","content":"r"}]}"#;
    let (dialect, model) = (dialects().get("anthropic").unwrap(), "claude-sonnet-5");
    let origin = Origin::default().with_dialect("anthropic".to_owned()).with_model(model.to_owned());
    let client = read_request(dialect.protocol, dialect.rules(Some(model)), body).unwrap();
    let sent = |client: &ClientRequest| {
        let (messages, settings) = (client.messages.iter().collect::<Vec<_>>(), Settings::new());
        let request = Request::new(dialects(), dialect, model, &origin, &settings);
        encode(&request.with_messages(&messages).with_parameters(&client.parameters)).body
    };
    assert!(!sent(&client).contains("c2ln"), "without an origin nobody may read it");
    assert!(sent(&client.with_origin(&origin)).contains(r#""signature":"c2ln""#));
}

#[test]
fn e17_a_parameter_that_is_too_long_is_refused() {
    let body = format!(r#"{{"messages":[],"documents":["{}"]}}"#, "x".repeat(1 << 20));
    let dialect = dialects().get("cohere").unwrap();
    let error = read_request(dialect.protocol, dialect.rules(None), &body).unwrap_err().to_string();
    assert_eq!(error, "documents: longer than 1048576 bytes");
}

#[test]
fn e17_cache_marks_of_a_client_stay_where_they_are() {
    let body = r#"{"max_tokens":9,"tools":[{"name":"a","description":"","input_schema":{"type":"object"}},
        {"name":"b","description":"","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],
        "system":[{"type":"text","text":"one","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"two"}],
        "messages":[{"role":"user","content":"q"},
        {"role":"assistant","content":[{"type":"text","text":"t","cache_control":{"type":"ephemeral"}},{"type":"tool_use","id":"c","name":"a","input":{}}]},
        {"role":"user","content":[{"type":"text","text":"and"},{"type":"tool_result","tool_use_id":"c","content":"1","cache_control":{"type":"ephemeral"}}]}]}"#;
    let dialect = dialects().get("anthropic").unwrap();
    let client = read_request(dialect.protocol, dialect.rules(None), body).unwrap();
    let block = |message, block| CachePosition::Block { message, block };
    let hints: Vec<(CachePosition, Option<&str>)> =
        client.parameters.cache_hints.iter().map(|hint| (hint.after, hint.ttl.as_deref())).collect();
    let expected = [(block(0, 0), Some("1h")), (block(2, 0), None), (block(3, 0), None), (CachePosition::Tools, None)];
    assert_eq!(hints, expected);
    assert_eq!(client.parameters.extra, None);
    assert!(client.tools.iter().all(|tool| tool.extra.is_none()), "{:?}", client.tools);
    for (id, mark) in
        [("anthropic", r#""cache_control":{"type":"ephemeral""#), ("bedrock", r#"{"cachePoint":{"type":"default""#)]
    {
        let (messages, settings, target) =
            (client.messages.iter().collect::<Vec<_>>(), Settings::new(), Origin::default());
        let request = Request::new(dialects(), dialects().get(id).unwrap(), "m", &target, &settings);
        let encoded =
            encode(&request.with_messages(&messages).with_tools(&client.tools).with_parameters(&client.parameters));
        assert_eq!(encoded.body.matches(mark).count(), 4, "{id}: {}", encoded.body);
        let again = read_request(dialects().get(id).unwrap().protocol, dialect.rules(None), &encoded.body).unwrap();
        let count = again.parameters.cache_hints.len();
        // Bedrock's reader leaves a point in an assistant message where it is.
        assert_eq!(count, if id == "bedrock" { 3 } else { 4 }, "{:?}", again.parameters.cache_hints);
    }
}

/// Requests of real clients, in the folder that `ASIDE_CORPUS` names: sent on in
/// the same protocol, they ask for the same, apart from thinking, which the rules
/// of the dialect decide.
#[test]
fn e17_parameters_of_real_clients_are_sent_on() {
    let Some(folder) = std::env::var_os("ASIDE_CORPUS").map(PathBuf::from) else { return };
    let (mut n_requests, mut n_members, mut failures) = (0, 0, Vec::new());
    for case in fs::read_dir(folder.join("cases")).unwrap().map(|entry| entry.unwrap().path()) {
        let meta: Value = serde_json::from_slice(&fs::read(case.join("meta.json")).unwrap()).unwrap();
        let Ok(protocol) = meta["protocol"].as_str().unwrap().parse::<Protocol>() else { continue };
        for turn in 1.. {
            let Ok(body) = fs::read_to_string(case.join(format!("turn{turn}.request.json"))) else { break };
            let dialect = dialects().generic(protocol).unwrap();
            let mut client = read_request(protocol, dialect.rules(None), &body).unwrap();
            let messages: Vec<&Message> = client.messages.iter().collect();
            let (target, settings) = (Origin::default(), Settings::new());
            let request = Request::new(dialects(), dialect, "m", &target, &settings).with_messages(&messages);
            let encoded = encode(&request.with_tools(&client.tools).with_parameters(&client.parameters));
            let mut again = read(dialect, "m", &encoded);
            let (before, after) = (client.parameters.extra.take(), again.parameters.extra.take());
            let (before, after) = (before.map(|extra| extra.members), after.map(|extra| extra.members));
            let after = Value::from_iter(after.unwrap_or_default());
            for (name, value) in before.unwrap_or_default() {
                n_members += 1;
                let is_left_out = encoded.left_out.iter().any(|loss| loss.path.starts_with(&name));
                if !contains(&after[&name], &value) && !is_left_out {
                    failures.push(format!("{}: {name}: {value} became {}", case.display(), after[&name]));
                }
            }
            n_requests += 1;
            let of_parameters = |path: &str| !path.starts_with("messages[") && !path.starts_with("tools[");
            let losses: Vec<_> = encoded.left_out.iter().filter(|loss| of_parameters(&loss.path)).collect();
            client.parameters.thinking = ThinkingParameters::default();
            again.parameters.thinking = ThinkingParameters::default();
            // Anthropic requires a limit, so the encoder adds one.
            again.parameters.max_output_tokens =
                client.parameters.max_output_tokens.and(again.parameters.max_output_tokens);
            if again.parameters != client.parameters && losses.is_empty() {
                failures.push(format!("{}: {:?} became {:?}", case.display(), client.parameters, again.parameters));
            }
        }
    }
    println!("{n_requests} recorded requests are sent on, with {n_members} members without a neutral form");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    assert!(n_requests > 200 && n_members > 60, "only {n_requests} requests with {n_members} members");
}

/// Equal numbers may be written differently, and the encoder may add members.
fn contains(after: &Value, before: &Value) -> bool {
    match (after, before) {
        (Value::Object(after), Value::Object(before)) => {
            before.iter().all(|(name, value)| after.get(name).is_some_and(|after| contains(after, value)))
        }
        (Value::Number(after), Value::Number(before)) => after.as_f64() == before.as_f64(),
        (after, before) => after == before,
    }
}
