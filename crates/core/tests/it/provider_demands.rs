//! What a provider demands of a request besides its messages: unmet demands are
//! reported, call ids fit, and unknown providers get no special parameters.

use aside_core::block::Origin;
use aside_core::conversation::Conversation;
use aside_core::dialect::{Dialect, DialectSource, Dialects};
use aside_core::message::Message;
use aside_core::rules::{IssuedThinking, judge};
use aside_core::settings::{Layer, Settings};
use aside_core::wire::{Encoded, Request, encode};
use serde_json::{Value, json};

use crate::support::dialects;

const FIELD: &str =
    "id=\"acme\"\nprotocol=\"openai-chat\"\n[echo]\ninclude=true\ncarrier=\"field\"\nfield=\"why\"\nloop=\"must\"\n";

const BLOCK: &str = "id=\"acme\"\nprotocol=\"anthropic\"\n[ask]\non={thinking={type=\"enabled\",budget_tokens=2000}}\nshow={}\neffort.path=\"\"\n";

/// A tool loop that waits for its next step.
fn open_loop(dialect: &str, call: &str) -> String {
    let origin = json!({ "provider": "acme", "dialect": dialect });
    let thought = json!({ "type": "thinking", "thought": "hm", "sourceField": "why" });
    let calls = json!({ "type": "toolCall", "id": call, "name": "f", "arguments": {} });
    let result = json!({ "type": "toolResult", "id": call, "name": "f", "content": "1" });
    let lines = [
        json!({ "role": "user", "blocks": [{ "type": "text", "text": "go" }] }),
        json!({ "role": "assistant", "origin": origin, "blocks": [thought, calls] }),
        json!({ "role": "tool", "blocks": [result] }),
    ];
    lines.map(|line| line.to_string()).join("\n")
}

fn encode_request(dialects: &Dialects, dialect: &Dialect, model: &str, settings: &str, conversation: &str) -> Encoded {
    let conversation = Conversation::parse(conversation).unwrap();
    let branch = conversation.history.branch();
    let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
    let mut values = Settings::new();
    for pair in settings.split_whitespace() {
        let (key, value) = pair.split_once('=').unwrap();
        values.set(Layer::Session, &format!("reasoning.{key}"), value).unwrap();
    }
    let target = Origin::default().with_provider("acme".to_owned());
    encode(&Request::new(dialects, dialect, model, &target, &values).with_messages(&messages))
}

#[test]
fn e13_a_demand_is_unmet_when_nothing_is_sent_nor_filled_nor_switched_off() {
    let filled = format!("{FIELD}fill_empty=\"with_tool_calls\"\n");
    let always = format!("{FIELD}[ask]\noff=\"unsupported\"\n");
    let mild = FIELD.replace("must", "should");
    let stuck = format!("{BLOCK}off=\"unsupported\"\n");
    #[rustfmt::skip]
    let cases: &[(&str, &str, &str, &str, Option<&str>)] = &[
        ("sent",                    FIELD,   "",                                     "acme",  None),
        ("withheld, no filler",     FIELD,   "includeInContext=false",               "acme",  Some("message 1: this provider requires its thinking back, but it is not being sent (not included in context)")),
        ("withheld, filled",        &filled, "includeInContext=false",               "acme",  None),
        ("filler left out",         &filled, "includeInContext=false sendEmpty=omit", "acme", Some("message 1: this provider requires the field, but reasoning.sendEmpty omits it")),
        ("foreign, filler left out", &filled, "sendEmpty=omit",                      "other", Some("message 1: this provider requires the field, but reasoning.sendEmpty omits it")),
        ("thinking is off",         FIELD,   "includeInContext=false enabled=false", "acme",  None),
        ("cannot be off",           &always, "includeInContext=false enabled=false", "acme",  Some("message 1: this provider requires its thinking back, but it is not being sent (not included in context)")),
        ("never thought here",      FIELD,   "",                                     "other", None),
        ("no duty",                 &mild,   "includeInContext=false",               "acme",  None),
        ("paused instead",          BLOCK,   "",                                     "other", None),
        ("cannot be paused",        &stuck,  "",                                     "other", Some("the open tool loop must begin with thinking, and none may be sent")),
    ];
    for (name, text, settings, origin, expected) in cases {
        let dialects = Dialects::with_user_files(&[DialectSource { path: "acme.toml", text }]).unwrap();
        let encoded = encode_request(&dialects, dialects.get("acme").unwrap(), "m", settings, &open_loop(origin, "c"));
        assert_eq!(encoded.unmet, expected.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn call_ids_of_another_provider_get_nine_letters_where_required_and_own_ids_stay() {
    let mistral = dialects().get("mistral").unwrap();
    let ids = |origin: &str, call: &str| {
        let encoded = encode_request(dialects(), mistral, "magistral-medium-latest", "", &open_loop(origin, call));
        let body: Value = serde_json::from_str(&encoded.body).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&body["messages"][1]["tool_calls"][0]["id"]), text(&body["messages"][2]["tool_call_id"]))
    };
    let (call, result) = ids("other", "toolu_01AbCdEfGhIjKlMn");
    assert_eq!(call, result);
    assert!(call.len() == 9 && call.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{call}");
    assert_eq!(ids("other", "abcDEF123"), ("abcDEF123".to_owned(), "abcDEF123".to_owned()));
    assert_eq!(ids("mistral", "call_own_1"), ("call_own_1".to_owned(), "call_own_1".to_owned()));
}

#[test]
fn e9_an_unknown_provider_gets_no_special_parameters_in_any_protocol() {
    for known in dialects().iter().filter(|dialect| dialect.generic) {
        let stranger = known.for_unknown_provider();
        let encoded =
            encode_request(dialects(), &stranger, "m", "effort=high maxTokens=3000", &open_loop("other", "c"));
        let body = encoded.body.to_lowercase();
        for word in ["\"thinking", "\"reasoning", "effort", "\"include\"", "\"think\""] {
            assert!(!body.contains(word), "{}: {word} in {body}", known.id);
        }
        assert_eq!((encoded.notes.len(), encoded.headers.len()), (1, 0), "{}: {:?}", known.id, encoded.notes);
    }
}

#[test]
fn a_model_named_by_an_arn_is_one_segment_of_the_path() {
    let bedrock = dialects().get("bedrock").unwrap();
    let arn = "arn:aws:bedrock:us-east-1:1:inference-profile/us.x";
    let encoded = encode_request(dialects(), bedrock, arn, "", &open_loop("other", "c"));
    assert_eq!(encoded.path, "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x/converse-stream");
}

#[test]
fn plain_thinking_is_sent_where_a_responses_server_reads_it() {
    #[rustfmt::skip]
    let cases = [
        ("vllm-responses",   json!({ "type": "reasoning", "summary": [], "content": [{ "type": "reasoning_text", "text": "hm" }] })),
        ("ollama-responses", json!({ "type": "reasoning", "summary": [], "encrypted_content": "hm" })),
    ];
    for (id, expected) in cases {
        let encoded = encode_request(dialects(), dialects().get(id).unwrap(), "m", "", &open_loop(id, "c"));
        let body: Value = serde_json::from_str(&encoded.body).unwrap();
        assert_eq!(body["input"][1], expected, "{id}");
    }
}

#[test]
fn e5_the_switch_that_turns_thinking_off_is_sent_alone() {
    let anthropic = dialects().get("anthropic").unwrap();
    let mut switched = 0;
    for (pattern, _) in anthropic.models() {
        let model = pattern.trim_end_matches('*');
        for effort in ["xhigh", "max", "none"] {
            let settings = format!("enabled=false effort={effort}");
            let encoded = encode_request(dialects(), anthropic, model, &settings, &open_loop("other", "c"));
            let body: Value = serde_json::from_str(&encoded.body).unwrap();
            if let kind @ ("disabled" | "between_tools") = body["thinking"]["type"].as_str().unwrap_or_default() {
                assert_eq!(body["thinking"], json!({ "type": kind }), "{model}");
                assert_eq!(body.get("output_config"), None, "{model}: no effort beside it");
                switched += 1;
            }
        }
    }
    assert!(switched >= 9, "{switched}");
}

#[test]
fn what_the_judge_misses_is_reported_as_unmet() {
    let (mut n_refused, mut n_unmet) = (0, 0);
    for dialect in dialects().iter() {
        let names = dialect.models().map(|(pattern, _)| pattern.replace(['*', '?'], "x"));
        for model in names.chain(["some-model".to_owned()]) {
            for origin in [dialect.id.as_str(), "other"] {
                for settings in
                    ["", "includeInContext=false", "sendEmpty=omit", "includeInContext=false sendEmpty=omit"]
                {
                    let encoded = encode_request(dialects(), dialect, &model, settings, &open_loop(origin, "c"));
                    let verdict = judge(dialect, &model, &[], &encoded.body, IssuedThinking::Unknown).unwrap();
                    let is_demand = |rule: &str| rule.ends_with("= must") || rule.starts_with("a loop begins");
                    let refused = verdict.broken.iter().any(|broken| is_demand(&broken.rule));
                    let unmet = !encoded.unmet.is_empty();
                    assert!(unmet || !refused, "{} {model} {origin} {settings}: {:?}", dialect.id, verdict.broken);
                    n_refused += usize::from(refused);
                    n_unmet += usize::from(unmet);
                    // The default settings can always be met.
                    assert!(!unmet || !settings.is_empty(), "{} {model} {origin}: {:?}", dialect.id, encoded.unmet);
                }
            }
        }
    }
    assert!(n_refused > 20 && n_unmet > n_refused, "{n_refused} {n_unmet}");
}
