//! Requests to real dialects, from a conversation file to the body: forms that providers
//! refuse when they are wrong.

use aside_core::block::Origin;
use aside_core::conversation::Conversation;
use aside_core::message::Message;
use aside_core::rules::{EgressAction, EgressReason};
use aside_core::settings::{Layer, Settings};
use aside_core::wire::{Encoded, Request, encode};
use serde_json::{Value, json};

use crate::support::dialects;

fn build(model: &str, conversation: &str, set: &[(&str, &str)]) -> (Value, Encoded) {
    let (id, model) = model.split_once('/').unwrap();
    let conversation = Conversation::parse(conversation).unwrap();
    let branch = conversation.history.branch();
    let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
    let mut settings = Settings::new();
    for (key, value) in set {
        settings.set(Layer::Session, key, value).unwrap();
    }
    let encoded = encode(
        &Request::new(
            dialects(),
            dialects().get(id).unwrap(),
            model,
            &Origin::default().with_provider(id.to_owned()),
            &settings,
        )
        .with_messages(&messages)
        .with_tools(&conversation.tools),
    );
    (serde_json::from_str(&encoded.body).unwrap(), encoded)
}

fn body(model: &str, conversation: &str) -> Value {
    build(model, conversation, &[]).0
}

const QUESTION: &str = r#"{"role":"user","blocks":[{"type":"text","text":"q"}]}"#;

/// Two parallel calls, with their results in separate messages.
const PARALLEL: &str = r#"{"role":"user","blocks":[{"type":"text","text":"q"}]}
{"role":"assistant","blocks":[{"type":"toolCall","id":"functions.get:0","name":"get","arguments":{"k":1}},{"type":"toolCall","id":"c2","name":"get","arguments":{"k":2}}]}
{"role":"tool","blocks":[{"type":"toolResult","id":"functions.get:0","name":"get","content":"1"}]}
{"role":"tool","blocks":[{"type":"toolResult","id":"c2","name":"get","content":{"two": 2}}]}
{"role":"user","blocks":[{"type":"text","text":"and?"}]}"#;

#[test]
fn results_of_parallel_calls_share_one_message_where_roles_must_alternate() {
    let claude = body("anthropic/claude-sonnet-5", PARALLEL);
    let roles: Vec<&str> = claude["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let kinds: Vec<&str> =
        claude["messages"][2]["content"].as_array().unwrap().iter().map(|b| b["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
    let gemini = body("gemini/gemini-3-pro", PARALLEL);
    assert_eq!(gemini["contents"].as_array().unwrap().len(), 3);
    assert_eq!(gemini["contents"][2]["parts"].as_array().unwrap().len(), 3);
    let bedrock = body("bedrock/anthropic.claude-sonnet-4-5", PARALLEL);
    assert_eq!(bedrock["messages"].as_array().unwrap().len(), 3);
    // In other protocols every result stays a message of its own.
    assert_eq!(body("kimi/kimi-k3", PARALLEL)["messages"].as_array().unwrap().len(), 5);
}

#[test]
fn call_ids_of_another_provider_use_only_characters_that_all_accept() {
    let claude = body("anthropic/claude-sonnet-5", PARALLEL);
    assert_eq!(claude["messages"][1]["content"][0]["id"], "functions_get_0");
    assert_eq!(claude["messages"][2]["content"][0]["tool_use_id"], "functions_get_0");
    assert_eq!(claude["messages"][2]["content"][1]["content"], r#"{"two":2}"#, "a result that is JSON is kept");
}

#[test]
fn a_call_without_a_result_is_not_sent() {
    let cut = format!(
        "{QUESTION}\n{}\n{QUESTION}",
        r#"{"role":"assistant","interrupted":true,"blocks":[{"type":"text","text":"Let me look."},{"type":"toolCall","id":"c1","name":"get","arguments":{}}]}"#
    );
    for model in [
        "anthropic/claude-sonnet-5",
        "openai/gpt-5.6",
        "deepseek/deepseek-v4-pro",
        "gemini/gemini-3-pro",
        "cohere/command-a",
    ] {
        let (body, encoded) = build(model, &cut, &[]);
        assert!(!encoded.body.contains("c1") && encoded.body.contains("Let me look."), "{model}: {body}");
    }
}

#[test]
fn e13_the_filler_is_where_each_protocol_expects_it() {
    let plain = format!("{QUESTION}\n{}\n{QUESTION}", r#"{"role":"assistant","blocks":[{"type":"text","text":"R"}]}"#);
    let blocks = body("deepseek-anthropic/deepseek-v4-pro", &plain);
    assert_eq!(blocks["messages"][1]["content"][0], json!({"type": "thinking", "thinking": ""}));
    let field = body(
        "deepseek/deepseek-v4-pro",
        &format!(
            r#"{{"aside":1,"tools":[{{"name":"get"}}]}}
{plain}"#
        ),
    );
    assert_eq!(field["messages"][1]["reasoning_content"], "");
}

#[test]
fn e5_a_budget_stays_below_the_output_limit() {
    for set in [
        vec![("reasoning.maxTokens", "20000")],
        vec![("request.maxTokens", "4096")],
        vec![("request.maxTokens", "900")],
    ] {
        let (body, encoded) = build("anthropic/claude-sonnet-4-5", QUESTION, &set);
        let (budget, limit) = (&body["thinking"]["budget_tokens"], &body["max_tokens"]);
        assert!(budget.as_u64().unwrap() < limit.as_u64().unwrap(), "{set:?}: {budget} of {limit}");
        assert!(budget.as_u64().unwrap() >= 1024, "{set:?}: {budget}");
        assert!(!encoded.notes.is_empty(), "{set:?}: it is noted");
    }
}

#[test]
fn e4_storage_is_off_and_encrypted_content_is_requested_with_and_without_thinking() {
    for set in [vec![], vec![("reasoning.enabled", "false")], vec![("reasoning.effort", "none")]] {
        let (body, _) = build("openai/gpt-5.5", QUESTION, &set);
        assert_eq!(
            (&body["store"], &body["include"][0]),
            (&json!(false), &json!("reasoning.encrypted_content")),
            "{set:?}"
        );
    }
    let (body, encoded) =
        build("openai/gpt-5", QUESTION, &[("reasoning.enabled", "false"), ("request.temperature", "0.5")]);
    assert_eq!(body.get("temperature"), None, "it always thinks, and then takes no temperature");
    assert_eq!((encoded.notes.len(), encoded.left_out.len()), (1, 1));
}

#[test]
fn e9_the_user_chooses_the_summary() {
    let summary = |set: &[(&str, &str)]| build("openai/gpt-5.6", QUESTION, set).0["reasoning"]["summary"].clone();
    assert_eq!(summary(&[]), "auto");
    assert_eq!(summary(&[("reasoning.summary", "detailed")]), "detailed");
    assert_eq!(summary(&[("reasoning.summary", "none")]), Value::Null);
}

#[test]
fn sampling_parameters_are_where_each_protocol_expects_them() {
    #[rustfmt::skip]
    let cases = [
        ("gemini/gemini-3-pro",   "/generationConfig/temperature"),
        ("ollama/qwen3",          "/options/temperature"),
        ("cohere/command-a",      "/temperature"),
        ("vllm/some-model",       "/temperature"),
    ];
    for (model, path) in cases {
        let (body, _) = build(model, QUESTION, &[("request.temperature", "0.5")]);
        assert_eq!(body.pointer(path), Some(&json!(0.5)), "{model}: {body}");
    }
}

#[test]
fn structured_thinking_is_sent_back_under_the_name_it_came_in() {
    let said = r#"{"role":"assistant","origin":{"dialect":"litellm"},"blocks":[{"type":"thinking","thought":"R","sourceField":"thinking_blocks","signature":"S","native":{"type":"thinking","signature":"S","thinking":"R"}},{"type":"text","text":"A"}]}"#;
    let body = body("litellm/some-model", &format!("{QUESTION}\n{said}\n{QUESTION}"));
    let message = &body["messages"][1];
    assert_eq!(message["thinking_blocks"], json!([{"type": "thinking", "signature": "S", "thinking": "R"}]));
    assert_eq!((&message["reasoning_content"], message.get("reasoning_details")), (&json!("R"), None));
}

#[test]
fn a_value_over_several_lines_is_read_as_one() {
    let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(QUESTION).unwrap()).unwrap();
    let conversation = Conversation::parse(&format!("{pretty}\n{QUESTION}\n\n{pretty}")).unwrap();
    assert_eq!(conversation.history.branch().len(), 3);
    let error = Conversation::parse(&format!("{pretty}\n{{\"role\":\n")).unwrap_err();
    assert_eq!(error.line, pretty.lines().count() + 1);
}

#[test]
fn e10_a_block_that_is_not_written_is_not_reported_as_sent() {
    let orphan = r#"{"role":"assistant","origin":{"dialect":"openai"},"interrupted":true,"blocks":[{"type":"text","text":"R"},{"type":"thinking","thought":"","sourceField":"reasoning","encrypted":"E1","native":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E1"}}]}"#;
    let (_, encoded) = build("openai/gpt-5.6", &format!("{QUESTION}\n{orphan}\n{QUESTION}"), &[]);
    assert!(!encoded.body.contains("E1"), "an item that nothing follows is refused: {}", encoded.body);
    let decision =
        encoded.decisions.iter().find(|decision| decision.message == 1 && decision.block == Some(1)).unwrap();
    assert_eq!((decision.action, &decision.reason), (EgressAction::Dropped, &EgressReason::NothingFollows));

    let odd = r#"{"role":"assistant","origin":{"dialect":"vllm"},"blocks":[{"type":"unmodelled","native":{"x":"odd-one"}},{"type":"text","text":"R"}]}"#;
    let (_, encoded) = build("vllm/some-model", &format!("{QUESTION}\n{odd}\n{QUESTION}"), &[]);
    assert!(!encoded.body.contains("odd-one"));
    assert_eq!(encoded.decisions[1].action, EgressAction::Dropped);
}
