//! An accepted request with one fault in it: the judge refuses it, in the words of its
//! provider, and those classify to a repair.

use aside_core::block::{
    Arguments, Block, CallId, Native, Origin, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ToolCall,
    ToolResult,
};
use aside_core::dialect::{Carrier, Dialect, Duty, Fault, Ids};
use aside_core::message::{Message, Role};
use aside_core::protocol::Protocol;
use aside_core::rules::{IssuedThinking, JudgeVerdict, ReplayedSeal, classify, judge};
use serde_json::Value;

use crate::judge_accepts::{build, models, settings, text, verdict};
use crate::support::dialects;

pub(crate) const ENDPOINT: &str = "https://example.org";

pub(crate) fn origin_of(dialect: &Dialect, model: &str) -> Origin {
    Origin::default()
        .with_provider(dialect.id.clone())
        .with_dialect(dialect.id.clone())
        .with_model(model.to_owned())
        .with_endpoint(ENDPOINT.to_owned())
}

/// Thinking block number `n` as its provider makes it.
pub(crate) fn thinking_block(dialect: &Dialect, model: &str, n: usize) -> Block {
    let echo = &dialect.rules(Some(model)).echo;
    let (words, payload) = (format!("words of thought {n}"), format!("seal{n}"));
    let seal = |kind| Some(Seal { kind, payload: payload.clone() });
    let open = ThinkingContent::Open { text: words.clone() };
    let signed = || ThinkingContent::Sealed {
        text: words.clone(),
        seals: Seals { signature: seal(SealKind::Signature), encrypted: None },
    };
    let hidden = || ThinkingContent::Hidden { seals: Seals { signature: None, encrypted: seal(SealKind::Encrypted) } };
    let native = |json: String, member: Option<&str>| Some(Native { json, text_member: member.map(str::to_owned) });
    let (content, native) = match echo.carrier {
        Carrier::Block if echo.need_opaque => (signed(), None),
        Carrier::Details => {
            let json = format!(r#"{{"type":"reasoning.text","index":0,"signature":"{payload}"}}"#);
            (signed(), native(json, Some("text")))
        }
        Carrier::Item if echo.need_opaque => {
            let json = format!(r#"{{"type":"reasoning","id":"rs_{n}","summary":[],"encrypted_content":"{payload}"}}"#);
            (hidden(), native(json, None))
        }
        Carrier::None
        | Carrier::Field
        | Carrier::ContentTags
        | Carrier::ContentChunks
        | Carrier::Block
        | Carrier::Item
        | Carrier::Part
        | Carrier::CallExtra
        | Carrier::FieldsOpaque => (open, None),
    };
    let source = dialect.rules(None).read.text.first().cloned().unwrap_or_else(|| "thinking".into());
    Block::Thinking(Thinking { native, ..Thinking::new(content, source) })
}

pub(crate) fn call(dialect: &Dialect, model: &str, n: usize) -> Block {
    let carrier = dialect.rules(Some(model)).echo.carrier;
    let payload = format!("seal{n}");
    let sealed = matches!(carrier, Carrier::Part | Carrier::CallExtra);
    let json = match dialect.protocol {
        Protocol::OpenaiResponses => Some(format!(
            r#"{{"type":"function_call","id":"fc_{n}","call_id":"c{n}","name":"get","arguments":"{{\"k\":1}}"}}"#
        )),
        Protocol::OpenaiChat if carrier == Carrier::CallExtra => {
            Some(format!(r#"{{"extra_content":{{"google":{{"thought_signature":"{payload}"}}}}}}"#))
        }
        _ => None,
    };
    Block::ToolCall(ToolCall {
        id: CallId::Given(format!("c{n}")),
        name: "get".into(),
        arguments: Arguments::Json(r#"{"k":1}"#.into()),
        seal: sealed.then_some(Seal { kind: SealKind::Signature, payload }),
        native: json.map(|json| Native { json, text_member: None }),
        extra: Default::default(),
    })
}

pub(crate) fn answer_block(dialect: &Dialect, n: usize) -> Block {
    let json = format!(
        r#"{{"type":"message","id":"msg_{n}","role":"assistant","content":[{{"type":"output_text","text":"answer {n}"}}]}}"#
    );
    let native = (dialect.protocol == Protocol::OpenaiResponses).then_some(Native { json, text_member: None });
    Block::Text(Text { text: format!("answer {n}"), seal: None, native, extra: Default::default() })
}

pub(crate) fn assistant_message(dialect: &Dialect, model: &str, blocks: Vec<Block>) -> Message {
    Message { origin: Some(origin_of(dialect, model)), ..Message::new(Role::Assistant, blocks) }
}

pub(crate) fn result(n: usize) -> Message {
    let result = ToolResult {
        id: format!("c{n}"),
        name: "get".into(),
        content: "42".into(),
        is_error: false,
        media: Vec::new(),
    };
    Message::new(Role::Tool, vec![Block::ToolResult(result)])
}

pub(crate) fn user(words: &str) -> Message {
    Message::new(Role::User, vec![text(words)])
}

/// A turn with its answer, then an open tool loop of two steps.
pub(crate) fn conversation(dialect: &Dialect, model: &str) -> Vec<Message> {
    let step = |n, end| assistant_message(dialect, model, vec![thinking_block(dialect, model, n), end]);
    vec![
        user("q1"),
        step(1, answer_block(dialect, 1)),
        user("q2"),
        step(2, call(dialect, model, 2)),
        result(2),
        step(3, call(dialect, model, 3)),
        result(3),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mutation {
    /// The last thinking block, or its seal on a call, is removed.
    Removed,
    /// One letter of the seal changes, or of the text if there is no seal.
    Altered,
    /// The text changes, the seal does not.
    Reworded,
    /// The last two thinking blocks are swapped.
    Moved,
    Duplicated,
}

use Mutation::{Altered, Duplicated, Moved, Removed, Reworded};

fn holds(value: &Value, mark: &str) -> bool {
    value.to_string().contains(mark)
}

/// Removes or duplicates the smallest part that holds the marked thinking.
fn edit(value: &mut Value, mark: &str, mutation: Mutation) -> bool {
    match value {
        Value::Array(list) => {
            let Some(at) = list.iter().position(|element| holds(element, mark)) else { return false };
            let element = &list[at];
            let deeper = ["role", "functionCall", "function", "parts"].iter().any(|name| element.get(name).is_some());
            if deeper {
                return edit(&mut list[at], mark, mutation);
            }
            match mutation {
                Removed => drop(list.remove(at)),
                _ => list.insert(at, list[at].clone()),
            }
            true
        }
        Value::Object(members) => {
            let Some(name) = members.iter().find(|(_, value)| holds(value, mark)).map(|(name, _)| name.clone()) else {
                return false;
            };
            match &mut members[&name] {
                Value::String(words) if mutation == Duplicated => *words = words.repeat(2),
                Value::String(_) => drop(members.remove(&name)),
                inner => return edit(inner, mark, mutation),
            }
            true
        }
        _ => false,
    }
}

fn mutate(body: &str, mutation: Mutation) -> String {
    let swap = |body: String, (a, b): (&str, &str)| body.replace(a, "\u{1}").replace(b, a).replace('\u{1}', b);
    match mutation {
        Altered if body.contains("seal3") => body.replace("seal3", "seaL3"),
        Altered | Reworded => body.replace("words of thought 3", "words of thoughT 3"),
        Moved => {
            let pairs = [("seal2", "seal3"), ("thought 2", "thought 3"), ("rs_2", "rs_3")];
            pairs.into_iter().fold(body.to_owned(), swap)
        }
        Removed | Duplicated => {
            let mut value: Value = serde_json::from_str(body).unwrap();
            let mark = if body.contains("seal3") { "seal3" } else { "thought 3" };
            edit(&mut value, mark, mutation);
            value.to_string()
        }
    }
}

/// Mutations that a provider with this carrier cannot detect.
fn is_invisible(dialect: &Dialect, model: &str, mutation: Mutation) -> bool {
    let echo = &dialect.rules(Some(model)).echo;
    match mutation {
        // Only a signature covers the text.
        Reworded => !(echo.carrier == Carrier::Block && echo.need_opaque),
        // The same item precedes each call there.
        Duplicated => echo.repeat_before_each_call || matches!(echo.carrier, Carrier::Part | Carrier::CallExtra),
        // Without ids nothing shows what belonged together.
        Removed => echo.carrier == Carrier::Item && echo.ids == Ids::Omit,
        Altered | Moved => false,
    }
}

fn check_complaints(dialect: &Dialect, model: &str, name: &str, verdict: &JudgeVerdict) {
    let catalogue = dialects().catalogue();
    for broken in &verdict.broken {
        let row = classify(catalogue, Some(broken.status), &broken.message);
        let row = row.unwrap_or_else(|| panic!("{name}: not classified: {:?}", broken.message));
        let expected = dialect.error_row(model, broken.fault).unwrap();
        assert_eq!(row.id, expected.id, "{name}: {}", broken.message);
        let body: Value = serde_json::from_str(&broken.body).unwrap();
        let places = ["/error/message", "/error", "/message"];
        let words = places.iter().find_map(|place| body.pointer(place)?.as_str());
        assert_eq!(words, Some(broken.message.as_str()), "{name}");
        assert!(!broken.message.contains(['{', '}']), "{name}: a place is left: {}", broken.message);
    }
}

#[test]
fn x1_removed_altered_moved_or_duplicated_thinking_is_refused_in_the_providers_words() {
    let mut n_refused = 0;
    let mut passed = Vec::new();
    for dialect in dialects().iter() {
        for model in models(dialect) {
            let rules = dialect.rules(Some(&model));
            if rules.echo.loop_duty != Duty::Must || rules.echo.carrier == Carrier::None {
                continue;
            }
            let messages = conversation(dialect, &model);
            let encoded = build(dialects(), dialect, &model, &messages, &settings(Some("true"), "none"));
            let accepted = verdict(dialect, &model, &messages, &encoded.body);
            assert!(accepted.is_ok(), "{} {model}: {:?}\n{}", dialect.id, accepted.broken, encoded.body);
            for mutation in [Removed, Altered, Reworded, Moved, Duplicated] {
                let name = format!("{} {model} {mutation:?}", dialect.id);
                let body = mutate(&encoded.body, mutation);
                if body == *encoded.body {
                    assert!(is_invisible(dialect, &model, mutation), "{name}: nothing to mutate in {body}");
                    continue;
                }
                let judged = verdict(dialect, &model, &messages, &body);
                match judged.is_ok() {
                    true if is_invisible(dialect, &model, mutation) => (),
                    true => passed.push(format!("{name}: {body}")),
                    false => n_refused += 1,
                }
                check_complaints(dialect, &model, &name, &judged);
            }
        }
    }
    println!("{n_refused} mutations refused");
    assert!(passed.is_empty(), "{} passed\n{}", passed.len(), passed.join("\n"));
    assert!(n_refused > 300, "only {n_refused}");
}

/// Calls without results and results without calls, in every protocol that checks for
/// them.
#[test]
fn x1_calls_without_results_and_results_without_calls_are_refused() {
    for dialect in dialects().iter().filter(|dialect| dialect.protocol != Protocol::Ollama) {
        let model = "some-model";
        let messages = conversation(dialect, model);
        let encoded = build(dialects(), dialect, model, &messages, &settings(Some("true"), "none"));
        let body: Value = serde_json::from_str(&encoded.body).unwrap();
        let list = ["messages", "input", "contents"].into_iter().find(|name| body.get(name).is_some()).unwrap();
        let mut unanswered = body.clone();
        unanswered[list].as_array_mut().unwrap().pop();
        let next = serde_json::json!({"role": "user", "content": "go on", "parts": [{"text": "go on"}]});
        unanswered[list].as_array_mut().unwrap().push(next);
        let mut uncalled = body.clone();
        let result = uncalled[list].as_array().unwrap().last().unwrap().to_string().replace("c3", "c9");
        let result: Value = serde_json::from_str(&result).unwrap();
        uncalled[list].as_array_mut().unwrap().insert(1, result);
        let cases = [(unanswered, Fault::UnansweredCall), (uncalled, Fault::UncalledResult)];
        for (body, fault) in cases {
            let judged = judge(dialect, model, &[], &body.to_string(), IssuedThinking::Unknown).unwrap();
            let broken = judged.broken.iter().find(|broken| broken.fault == fault);
            let broken = broken.unwrap_or_else(|| panic!("{} {fault:?}: {:?}\n{body}", dialect.id, judged.broken));
            assert_eq!(classify(dialects().catalogue(), Some(400), &broken.message), None, "{}", dialect.id);
            assert!(!broken.message.contains(['{', '}']), "{}: {}", dialect.id, broken.message);
        }
    }
}

#[test]
fn x1_a_call_id_twice_in_one_message_is_refused() {
    for id in ["openai-chat", "anthropic", "bedrock", "openai", "cohere"] {
        let dialect = dialects().get(id).unwrap();
        let twice = vec![call(dialect, "some-model", 2), call(dialect, "some-model", 2)];
        let messages = [user("q"), assistant_message(dialect, "some-model", twice), result(2)];
        let body = build(dialects(), dialect, "some-model", &messages, &settings(None, "none")).body;
        let judged = judge(dialect, "some-model", &[], &body, IssuedThinking::Unknown).unwrap();
        assert!(judged.broken.iter().any(|broken| broken.fault == Fault::CallTwice), "{id}: {:?}", judged.broken);
    }
}

/// The check of a seal gets its text and position.
#[test]
fn x1_a_seal_can_be_checked_without_memory() {
    let dialect = dialects().get("anthropic").unwrap();
    let messages = conversation(dialect, "some-model");
    let body = build(dialects(), dialect, "some-model", &messages, &settings(Some("true"), "none")).body;
    let places = std::cell::RefCell::new(Vec::new());
    let check = |unit: &ReplayedSeal<'_>| {
        let ReplayedSeal { text, seal, message, step, index, next_call, .. } = unit;
        places.borrow_mut().push((format!("{text} {seal}"), *message, *step, *index, next_call.map(str::to_owned)));
        *seal != "seal2"
    };
    let judged = judge(dialect, "some-model", &[], &body, IssuedThinking::Verifiable(&check)).unwrap();
    let expected = [
        ("words of thought 1 seal1".to_owned(), 1, 0, 0, None),
        ("words of thought 2 seal2".to_owned(), 3, 1, 0, Some("c2".to_owned())),
        ("words of thought 3 seal3".to_owned(), 5, 2, 0, Some("c3".to_owned())),
    ];
    assert_eq!(places.into_inner(), expected);
    let broken: Vec<(&str, &str)> =
        judged.broken.iter().map(|broken| (broken.path.as_str(), broken.message.as_str())).collect();
    let message = "messages.3.content.0: Invalid `signature` in `thinking` block";
    assert_eq!(broken, [("messages[3].content[0]", message)]);
}

/// Every seal that a dialect sends is checked.
#[test]
fn x1_no_seal_goes_unchecked_in_any_dialect() {
    let mut n_sealed = 0;
    for dialect in dialects().iter() {
        let messages = conversation(dialect, "some-model");
        let body = build(dialects(), dialect, "some-model", &messages, &settings(Some("true"), "none")).body;
        let judged = |issued: IssuedThinking<'_>| judge(dialect, "some-model", &[], &body, issued).unwrap().broken;
        let asked = std::cell::RefCell::new(Vec::new());
        let trust = |unit: &ReplayedSeal<'_>| {
            asked.borrow_mut().push(unit.seal.to_owned());
            true
        };
        assert_eq!(judged(IssuedThinking::Verifiable(&trust)), judged(IssuedThinking::Unknown), "{}", dialect.id);
        let sent: Vec<String> = (1..=3).map(|n| format!("seal{n}")).filter(|seal| body.contains(seal)).collect();
        assert_eq!(asked.into_inner(), sent, "{}: {body}", dialect.id);
        let broken = judged(IssuedThinking::Verifiable(&|_| false));
        assert_eq!(broken.iter().filter(|broken| broken.fault == Fault::Seal).count(), sent.len(), "{}", dialect.id);
        n_sealed += usize::from(!sent.is_empty());
    }
    assert!(n_sealed > 5, "only {n_sealed} dialects send seals");
}

/// Faults that show in the request alone, one per row.
#[test]
fn x1_each_fault_of_a_request_has_its_error_message() {
    #[rustfmt::skip]
    let cases: &[(&str, &str, Fault, &str, &str)] = &[
        ("anthropic", "claude-sonnet-4-5", Fault::Leading,      r#"{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}"#, "messages.1.content.0: Expected `thinking` or `redacted_thinking`, but found `tool_use`."),
        ("anthropic", "claude-sonnet-4-5", Fault::BudgetLimit,  r#"{"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[]}"#, "`max_tokens` must be greater than `thinking.budget_tokens`."),
        ("anthropic", "claude-sonnet-4-5", Fault::BudgetRange,  r#"{"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":10},"messages":[]}"#, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"),
        ("anthropic", "claude-sonnet-4-5", Fault::ForcedTool,   r#"{"thinking":{"type":"enabled","budget_tokens":2000},"tool_choice":{"type":"any"},"messages":[]}"#, "Thinking may not be enabled when tool_choice forces tool use."),
        ("anthropic", "claude-sonnet-4-5", Fault::Mode,         r#"{"thinking":{"type":"adaptive"},"messages":[]}"#, "\"thinking.type.adaptive\" is not supported for this model."),
        ("anthropic", "claude-opus-5-5",   Fault::Mode,         r#"{"thinking":{"type":"disabled"},"messages":[]}"#, "\"thinking.type.disabled\" is not supported for this model."),
        ("anthropic", "claude-opus-5-5",   Fault::Effort,       r#"{"output_config":{"effort":"huge"},"messages":[]}"#, "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh', and 'max'"),
        ("anthropic", "claude-opus-5-5",   Fault::Parameter,    r#"{"temperature":0.5,"messages":[]}"#, "`temperature` is deprecated for this model."),
        ("anthropic", "claude-sonnet-5",   Fault::WhileOff,     r#"{"thinking":{"type":"disabled"},"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]}]}"#, "messages.1.content.0: When thinking is disabled"),
        ("openai",    "gpt-5",             Fault::Orphan,       r#"{"store":false,"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"role":"user","content":"q"}]}"#, "Item 'rs_1' of type 'reasoning' was provided without its required following item."),
        ("openai",    "gpt-5",             Fault::NotStored,    r#"{"store":false,"input":[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"message","role":"assistant","content":"a"}]}"#, "Item with id 'rs_1' not found."),
        ("openai",    "gpt-5",             Fault::Duplicate,    r#"{"input":[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"reasoning","id":"rs_1","summary":[]},{"type":"message","id":"m","role":"assistant","content":"a"}]}"#, "Duplicate item found with id rs_1."),
        ("openai",    "gpt-5",             Fault::Effort,       r#"{"reasoning":{"effort":"max"},"input":[]}"#, "Unsupported value: 'reasoning.effort' does not support 'max' with this model. Supported values are: 'minimal', 'low', 'medium', and 'high'."),
        ("openai",    "gpt-5",             Fault::Parameter,    r#"{"temperature":0.5,"input":[]}"#, "Unsupported parameter: 'temperature' is not supported with this model."),
        ("openai",    "gpt-5",             Fault::LongId,       r#"{"input":[{"type":"message","id":"m0123456789012345678901234567890123456789012345678901234567890123456789","role":"assistant","content":"a"}]}"#, "Invalid 'input[0].id': string too long."),
        ("deepseek",  "deepseek-v4-pro",   Fault::Missing,      r#"{"tools":[{}],"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"q"}]}"#, "The `reasoning_content` in the thinking mode must be passed back to the API."),
        ("deepseek",  "deepseek-v4-pro",   Fault::ForcedTool,   r#"{"tool_choice":"required","messages":[]}"#, "Thinking mode does not support this tool_choice"),
        ("deepseek",  "deepseek-reasoner", Fault::Missing,      r#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"tool","tool_call_id":"a"}]}"#, "Missing `reasoning_content` field in the assistant message at message index 1"),
        ("deepseek",  "deepseek-reasoner", Fault::Unwanted,     r#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","reasoning_content":"t"},{"role":"user","content":"q"}]}"#, "The reasoning_content is an intermediate result"),
        ("kimi",      "kimi-k3",           Fault::Missing,      r#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"tool","tool_call_id":"a"}]}"#, "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"),
        ("kimi",      "kimi-k3",           Fault::EmptyContent, r#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"text","text":""}],"reasoning_content":"","tool_calls":[{"id":"a"}]},{"role":"tool","tool_call_id":"a"}]}"#, "text content is empty"),
        ("qwen",      "qwen3-30b-a3b",     Fault::ForcedTool,   r#"{"tool_choice":"required","messages":[]}"#, "The tool_choice parameter does not support being set to required or object in thinking mode"),
        ("zai",       "glm-5.3",           Fault::ForcedTool,   r#"{"tool_choice":"required","messages":[]}"#, "Tool choice must be auto"),
        ("xai",       "grok-code-fast-1",  Fault::NoEffort,     r#"{"reasoning_effort":"low","messages":[]}"#, "Model grok-code-fast-1 does not support parameter reasoningEffort."),
        ("gemini",    "gemini-3-pro",      Fault::UnsealedCall, r#"{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"name":"get","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"get","response":{}}}]}]}"#, "Function call is missing a thought_signature in functionCall parts."),
        ("bedrock",   "claude-sonnet-4-5", Fault::Leading,      r#"{"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":2000}},"messages":[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"n","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[]}}]}]}"#, "The model returned the following errors: messages.1.content.0: Expected `thinking`"),
        ("bedrock",   "gpt-oss",           Fault::Unwanted,     r#"{"messages":[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"t"}}},{"text":"a"}]},{"role":"user","content":[{"text":"q"}]}]}"#, "The model returned the following errors: This model doesn't support the reasoningContent field."),
    ];
    for (id, model, fault, body, words) in cases {
        let dialect = dialects().get(id).unwrap();
        let judged = judge(dialect, model, &[], body, IssuedThinking::Unknown).unwrap();
        let found: Vec<(Fault, &str)> =
            judged.broken.iter().map(|broken| (broken.fault, broken.message.as_str())).collect();
        let matching = found.iter().any(|(found, message)| found == fault && message.starts_with(words));
        assert!(matching && found.len() == 1, "{id} {model} {fault:?}: {found:?}");
        check_complaints(dialect, model, id, &judged);
    }
}

#[test]
fn x1_headers_are_judged_where_they_are_given() {
    let dialect = dialects().get("anthropic").unwrap();
    let bound =
        r#"{"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"messages":[]}"#;
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let version = pair("Anthropic-Version", "2023-06-01");
    let beta = pair("anthropic-beta", "other-1,thinking-binding-controls-2026-08-01");
    let said = |headers: &[(String, String)], body: &str| -> Vec<String> {
        let judged = judge(dialect, "claude-opus-5-5", headers, body, IssuedThinking::Unknown).unwrap();
        judged.broken.into_iter().map(|broken| broken.message).collect()
    };
    assert_eq!(said(&[], bound), [""; 0]);
    assert_eq!(said(&[version.clone(), beta.clone()], bound), [""; 0]);
    assert_eq!(said(&[beta], bound), ["anthropic-version: header is required"]);
    assert_eq!(
        said(std::slice::from_ref(&version), bound),
        ["thinking.adaptive.block_binding: Extra inputs are not permitted"]
    );
    assert_eq!(said(&[version], r#"{"messages":[]}"#), [""; 0]);
}

/// Every complaint of every dialect is classified again.
#[test]
fn e11_every_complaint_of_the_judge_is_classified_to_its_own_repair() {
    let places = [
        ("{value}", "temperature"),
        ("{values}", "'low', and 'high'"),
        ("{field}", "reasoning_content"),
        ("{path}", "messages.1.content.0"),
        ("{place}", "input[1]"),
        ("{index}", "1"),
        ("{id}", "rs_1"),
        ("{kind}", "tool_use"),
        ("{other}", "rs_0"),
        ("{least}", "1"),
        ("{most}", "9"),
        ("{name}", "get"),
    ];
    let catalogue = dialects().catalogue();
    let mut n_answers = 0;
    for dialect in dialects().iter() {
        for model in models(dialect) {
            for fault in catalogue.iter().filter_map(|row| row.fault) {
                let row = dialect.error_row(&model, fault).unwrap();
                let says = row.says_at.get(&dialect.id).unwrap_or(&row.says);
                let mut message = places.iter().fold(says.clone(), |text, (place, word)| text.replace(place, word));
                if fault == Fault::Mode {
                    message = message.replace("temperature", "disabled");
                }
                let said = classify(catalogue, Some(row.status[0]), &message);
                assert_eq!(
                    said.map(|row| row.id.as_str()),
                    Some(row.id.as_str()),
                    "{} {fault:?}: {message}",
                    dialect.id
                );
                n_answers += 1;
            }
        }
    }
    assert!(n_answers > 2000, "only {n_answers}");
}

/// Any value in any position gives a verdict and never a panic.
#[test]
fn x1_a_request_with_nonsense_values_is_judged_without_a_panic() {
    fn pointers(value: &Value, here: String, found: &mut Vec<String>) {
        match value {
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(at, value)| pointers(value, format!("{here}/{at}"), found));
            }
            Value::Object(members) => {
                members.iter().for_each(|(name, value)| pointers(value, format!("{here}/{name}"), found));
            }
            _ => (),
        }
        found.push(here);
    }
    let nonsense = [
        Value::Null,
        "".into(),
        "x".into(),
        (-1).into(),
        serde_json::json!([]),
        serde_json::json!([{}]),
        serde_json::json!({}),
    ];
    let mut n_requests = 0;
    for dialect in dialects().iter().filter(|dialect| dialect.generic) {
        let messages = conversation(dialect, "some-model");
        let issued: Vec<&Message> = messages.iter().filter(|message| message.role == Role::Assistant).collect();
        let encoded = build(dialects(), dialect, "some-model", &messages, &settings(Some("true"), "none"));
        let body: Value = serde_json::from_str(&encoded.body).unwrap();
        let mut places = Vec::new();
        pointers(&body, String::new(), &mut places);
        for place in &places {
            for value in &nonsense {
                let mut body = body.clone();
                *body.pointer_mut(place).unwrap() = value.clone();
                // A body without messages cannot be judged; any other can.
                let judged = judge(dialect, "some-model", &[], &body.to_string(), IssuedThinking::Messages(&issued));
                assert!(judged.is_ok() || place.matches('/').count() < 4, "{place}: {judged:?}");
                n_requests += 1;
            }
        }
    }
    assert!(n_requests > 1000, "only {n_requests}");
}

#[test]
fn x6_instructions_among_the_messages_are_refused_by_older_models() {
    let body = r#"{"messages":[{"role":"user","content":"q"},{"role":"system","content":"s"},{"role":"assistant","content":"a"},{"role":"user","content":"q"}]}"#;
    let dialect = dialects().get("anthropic").unwrap();
    let broken = |model: &str| -> Vec<(Fault, String, String)> {
        let verdict = judge(dialect, model, &[], body, IssuedThinking::Unknown).unwrap();
        verdict.broken.into_iter().map(|broken| (broken.fault, broken.path, broken.message)).collect()
    };
    assert_eq!(broken("claude-opus-4-8"), []);
    let [(fault, path, message)] = &broken("claude-opus-4-7")[..] else { panic!("one fault") };
    assert_eq!((*fault, path.as_str()), (Fault::InlineSystem, "messages[1].role"));
    assert!(message.starts_with("messages: Unexpected role \"system\"."), "{message}");
}
