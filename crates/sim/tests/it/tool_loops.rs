//! Tool loops driven by aside's own encoder and by incorrect clients.

use aside_core::block::Arguments;
use aside_core::dialect::{Dialect, Duty};
use aside_core::event::Ending;
use aside_core::rules::classify;
use serde_json::{Value, json};

use crate::support::{
    ReceivedResponse, ReplyMode, TestClient, address, answer_text, calls, dialects, each_value, edited_body, post,
    thinking_text,
};

#[test]
fn x1_a_loop_that_sends_back_its_replies_is_accepted_everywhere() {
    for dialect in dialects().iter() {
        let mut client = TestClient::new(dialect, "Look around.\nsim: tool-loop 3");
        for step in 0..3 {
            let reply = client.step();
            let calls = calls(&reply);
            let [call] = calls.as_slice() else { panic!("{} step {step}: {reply:?}", dialect.id) };
            assert_eq!((call.name.as_str(), &call.arguments), ("list", &Arguments::Json(r#"{"path":"."}"#.into())));
            assert_eq!(thinking_text(&reply).is_empty(), dialect.rules(None).read.hidden, "{} step {step}", dialect.id);
            assert_eq!(reply.end.ending, Ending::ToolCalls, "{} step {step}", dialect.id);
            client.give_results(&reply);
        }
        let reply = client.step();
        assert!(answer_text(&reply).contains("Steps with tools in this turn: 3."), "{}: {reply:?}", dialect.id);
        // In the next turn the loop is history.
        client.add_user_message("And now?");
        let reply = client.step();
        assert!(answer_text(&reply).contains("And now?"), "{}", dialect.id);
    }
}

#[test]
fn x1_every_model_of_every_dialect_accepts_its_own_replies() {
    let mut n_models = 0;
    for dialect in dialects().iter() {
        for (pattern, _) in dialect.models() {
            let mut client = TestClient::new(dialect, "Look around.\nsim: tool-loop 1");
            client.model = pattern.replace('*', "");
            n_models += 1;
            let reply = client.step();
            client.give_results(&reply);
            client.step();
            client.add_user_message("And now?");
            client.step();
        }
    }
    assert!(n_models > 100, "only {n_models} models");
}

#[test]
fn x1_a_loop_without_streams_is_accepted_too() {
    for dialect in dialects().iter() {
        let mut client = TestClient::new(dialect, "Look around.\nsim: tool-loop 2");
        client.mode = ReplyMode::Whole;
        for step in 0..2 {
            let reply = client.step();
            assert_eq!(calls(&reply).len(), 1, "{} step {step}: {reply:?}", dialect.id);
            client.give_results(&reply);
        }
        assert!(answer_text(&client.step()).contains("Steps with tools in this turn: 2."), "{}", dialect.id);
    }
}

#[test]
fn x2_parallel_calls_get_parallel_results() {
    for dialect in dialects().iter() {
        let mut client = TestClient::new(dialect, "Look around.\nsim: parallel 3");
        let reply = client.step();
        assert_eq!(calls(&reply).len(), 3, "{}: {reply:?}", dialect.id);
        client.give_results(&reply);
        let reply = client.step();
        assert!(answer_text(&reply).contains("aside simulator"), "{}", dialect.id);
    }
}

#[test]
fn x2_without_tools_the_answer_says_so() {
    for dialect in dialects().iter() {
        let mut client = TestClient::new(dialect, "Look around.\nsim: tool-loop 3");
        client.tools.clear();
        let reply = client.step();
        assert!(answer_text(&reply).contains("No tool was offered"), "{}: {reply:?}", dialect.id);
    }
}

/// Removes thinking from a body, like a client that does not support it.
fn without_thinking(dialect: &Dialect, body: &str) -> String {
    let fields = &dialect.rules(Some(&dialect.id)).read.text;
    edited_body(body, |body| {
        each_value(body, &mut |value| match value {
            Value::Object(members) => members.retain(|name, _| {
                !fields.contains(name)
                    && !["reasoning_details", "thinking_blocks", "thoughtSignature", "extra_content"]
                        .contains(&name.as_str())
            }),
            Value::Array(elements) => elements.retain(|element| {
                !["thinking", "redacted_thinking", "reasoning"].iter().any(|kind| element["type"] == *kind)
            }),
            _ => (),
        });
    })
}

#[test]
fn x1_a_client_that_forgets_the_thinking_gets_the_provider_s_own_400() {
    let mut refused = Vec::new();
    for dialect in dialects().iter() {
        let mut client = TestClient::new(dialect, "Look around.\nsim: tool-loop 2");
        let reply = client.step();
        client.give_results(&reply);
        let encoded = client.encoded();
        let answer = post(address(), &encoded.path, &without_thinking(dialect, &encoded.body));
        if answer.status != 200 {
            assert_eq!(answer.status, 400, "{}: {}", dialect.id, answer.text());
            assert_eq!(dialect.rules(Some(&dialect.id)).echo.loop_duty, Duty::Must, "{}", dialect.id);
            let row = classify(dialects().catalogue(), Some(400), &message(&answer));
            assert!(row.is_some(), "{}: {}", dialect.id, answer.text());
            refused.push(dialect.id.as_str());
        }
    }
    #[rustfmt::skip]
    let known = [
        "azure-responses", "bedrock-responses", "codex", "deepseek", "deepseek-anthropic", "deepseek-responses",
        "gemini", "gemini-openai", "kimi", "kimi-anthropic", "kimi-coding", "openai", "openrouter", "vercel",
            "vertex",
    ];
    assert_eq!(refused, known);
}

fn message(answer: &ReceivedResponse) -> String {
    let error: Value = serde_json::from_slice(&answer.bytes()).unwrap();
    error["error"]["message"].as_str().or(error["message"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn x1_deepseek_refuses_in_its_own_words() {
    let dialect = dialects().get("deepseek").unwrap();
    let mut client = TestClient::new(dialect, "Look around.\nsim: tool-loop 2");
    let reply = client.step();
    client.give_results(&reply);
    let answer = post(address(), "/v1/chat/completions", &without_thinking(dialect, &client.encoded().body));
    assert_eq!(message(&answer), "The `reasoning_content` in the thinking mode must be passed back to the API.");
}

#[test]
fn x1_a_changed_seal_is_refused_where_the_provider_checks_seals() {
    let mut refused = Vec::new();
    for dialect in dialects().iter() {
        let mut client = TestClient::new(dialect, "Look around.\nsim: tool-loop 2");
        let reply = client.step();
        client.give_results(&reply);
        let encoded = client.encoded();
        let mut n_changed = 0;
        let body = edited_body(&encoded.body, |body| {
            each_value(body, &mut |value| {
                let is_seal = value.as_str().is_some_and(|text| text.starts_with("c2lt"));
                if is_seal {
                    n_changed += 1;
                    *value = json!(value.as_str().unwrap().replacen("c2lt", "c2lu", 1));
                }
            });
        });
        let answer = post(address(), &encoded.path, &body);
        let rules = dialect.rules(Some(&dialect.id));
        let rows: Vec<_> =
            dialects().catalogue().iter().filter(|row| rules.errors.contains(&row.id)).cloned().collect();
        if answer.status == 200 {
            let looks = rows.iter().any(|row| row.class == aside_core::dialect::ErrorClass::Foreign);
            assert!(n_changed == 0 || !looks, "{} took {n_changed} changed seals", dialect.id);
            continue;
        }
        let row = classify(&rows, Some(answer.status), &message(&answer));
        assert!(row.is_some(), "{}: {}", dialect.id, answer.text());
        refused.push(dialect.id.as_str());
    }
    for id in ["anthropic", "bedrock", "openai", "gemini", "gemini-openai", "openrouter", "copilot", "azure-responses"]
    {
        assert!(refused.contains(&id), "{id} is not among {refused:?}");
    }
}

#[test]
fn x1_changed_text_under_a_signature_is_refused() {
    let dialect = dialects().get("anthropic").unwrap();
    let mut client = TestClient::new(dialect, "Look around.\nsim: tool-loop 2");
    let reply = client.step();
    client.give_results(&reply);
    let body = edited_body(&client.encoded().body, |body| {
        each_value(body, &mut |value| {
            if value["type"] == "thinking" {
                let words = value["thinking"].as_str().map(str::trim_end).unwrap_or_default();
                value["thinking"] = json!(format!("{words} "));
            }
        });
    });
    let answer = post(address(), "/v1/messages", &body);
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(message(&answer).contains("Invalid `signature` in `thinking` block"), "{}", answer.text());
}

#[test]
fn x1_seals_are_bound_to_the_key_where_the_provider_binds_them() {
    let dialect = dialects().get("openai").unwrap();
    let mut client = TestClient::new(dialect, "Look around.\nsim: tool-loop 2");
    let reply = client.step();
    client.give_results(&reply);
    let encoded = client.encoded();
    let with = |key: &str| {
        crate::support::exchange(address(), "POST", &encoded.path, &[("authorization", key)], &encoded.body).status
    };
    assert_eq!((with("Bearer any"), with("Bearer another")), (200, 400));
}

#[test]
fn x1_an_item_without_its_thinking_item_is_refused() {
    let dialect = dialects().get("openai").unwrap();
    let mut client = TestClient::new(dialect, "Look around.\nsim: tool-loop 2");
    let reply = client.step();
    client.give_results(&reply);
    let encoded = client.encoded();
    let without = without_thinking(dialect, &encoded.body);
    let answer = post(address(), &encoded.path, &without);
    assert_eq!(answer.status, 400, "{}", answer.text());
    let found = message(&answer);
    assert!(found.contains("'fc_") && found.contains("without its required 'reasoning' item: 'rs_"), "{found}");
    let without_ids = edited_body(&without, |body| {
        each_value(body, &mut |value| {
            if value["type"] == "function_call" {
                value.as_object_mut().unwrap().remove("id");
            }
        });
    });
    assert_eq!(post(address(), &encoded.path, &without_ids).status, 200);
}

#[test]
fn x1_thinking_bound_to_its_prefix_is_refused_after_a_change() {
    let mut client = TestClient::new(dialects().get("anthropic").unwrap(), "Look around.\nsim: tool-loop 2");
    client.model = "claude-opus-5-5".to_owned();
    let reply = client.step();
    client.give_results(&reply);
    let mut encoded = client.encoded();
    assert!(encoded.body.contains("prefix_mismatch_behavior"), "{}", encoded.body);
    let body = encoded.body.replace("Be brief.", "Be long.");
    encoded.body = body.clone().into();
    assert_eq!(client.send(&encoded).status, 200, "the request asks to drop the thinking");
    encoded.body =
        edited_body(&body, |body| drop(body["thinking"].as_object_mut().unwrap().remove("block_binding"))).into();
    encoded.headers.clear();
    let answer = client.send(&encoded);
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(message(&answer).contains("bound to a different conversation"), "{}", answer.text());
    encoded.body = encoded.body.replace("Be long.", "Be brief.").into();
    assert_eq!(client.send(&encoded).status, 200);
}

#[test]
fn a_forced_tool_is_called() {
    let body = json!({
        "model": "vllm",
        "messages": [{ "role": "user", "content": "q" }],
        "tools": [{ "type": "function", "function": { "name": "weather", "parameters": {} } }, { "type": "function", "function": { "name": "list", "parameters": {} } }],
        "tool_choice": { "type": "function", "function": { "name": "weather" } },
    });
    let reply = post(address(), "/v1/chat/completions", &body.to_string()).decoded(dialects().get("vllm").unwrap());
    assert_eq!(calls(&reply).iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["weather"]);
}
