//! Thinking that an unknown endpoint gets back within its own tool loop.

use serde_json::{Value, json};

use crate::scripted_server::{ScriptedServer, ServerScript, answer, stream};
use crate::session_support::{chat, send, session};

/// A form of thinking: its deltas, and the assistant message that carries it back.
fn forms() -> Vec<(&'static str, Vec<Value>, Value)> {
    let signed = json!({"type": "reasoning.text", "index": 0, "text": "hmm", "signature": "c2Vh/bA=="});
    let encrypted = json!({"type": "reasoning.encrypted", "index": 0, "id": "r1", "data": "ZW5j+A=="});
    vec![
        ("reasoning", vec![json!({"reasoning": "hmm"})], json!({"reasoning": "hmm"})),
        ("reasoning_content", vec![json!({"reasoning_content": "hmm"})], json!({"reasoning_content": "hmm"})),
        ("signed details", vec![json!({"reasoning_details": [signed]})], json!({"reasoning_details": [signed]})),
        (
            "encrypted details",
            vec![json!({"reasoning_details": [encrypted]})],
            json!({"reasoning_details": [encrypted]}),
        ),
        ("tags", vec![json!({"content": "<think>hmm</think>"})], json!({"content": "<think>hmm</think>"})),
    ]
}

/// A reply that thinks and calls a tool.
fn call_reply(deltas: &[Value]) -> ServerScript {
    let call = json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function",
        "function": {"name": "nothing", "arguments": "{}"}}]});
    let deltas: Vec<String> = deltas.iter().chain([&call]).map(Value::to_string).collect();
    stream(&chat(&deltas.iter().map(String::as_str).collect::<Vec<_>>(), "tool_calls"))
}

fn plain_reply() -> ServerScript {
    stream(&chat(&[r#"{"content":"Done."}"#], "stop"))
}

/// Whether the first assistant message contains all members of `expected`.
fn carries(request: &Value, expected: &Value) -> bool {
    let message = request["messages"].as_array().unwrap().iter().find(|message| message["role"] == "assistant");
    expected.as_object().unwrap().iter().all(|(name, value)| message.is_some_and(|message| message[name] == *value))
}

#[tokio::test]
async fn e14_an_unknown_endpoint_gets_its_thinking_back_as_it_came_until_the_turn_ends() {
    for (name, deltas, expected) in forms() {
        let server = ScriptedServer::start(vec![call_reply(&deltas), plain_reply()]).await;
        let mut session = session(&server.url, "generic", "m");
        send(&mut session, "q1").await;
        send(&mut session, "q2").await;
        let requests = server.requests();
        assert!(carries(&requests[1], &expected), "{name}: {}", requests[1]);
        assert!(!carries(&requests[2], &expected), "{name}: nothing from before the last user message");
    }
}

#[tokio::test]
async fn e14_a_strict_endpoint_is_not_sent_its_thinking_again() {
    for (name, deltas, expected) in forms().into_iter().filter(|(name, ..)| *name != "tags") {
        let field = expected.as_object().unwrap().keys().next().unwrap();
        let words = format!("Unrecognized request argument supplied: messages[1].{field}");
        let refusal = answer("400 Bad Request", "", &json!({"error": {"message": words}}).to_string());
        let loop_reply = call_reply(&deltas);
        let scripts = vec![loop_reply.clone(), refusal, plain_reply(), loop_reply, plain_reply()];
        let server = ScriptedServer::start(scripts).await;
        let mut session = session(&server.url, "generic", "m");
        let (_, first) = send(&mut session, "q1").await;
        let (_, second) = send(&mut session, "q2").await;
        let n_notices = |lines: &[String]| lines.iter().filter(|line| line.starts_with("notice")).count();
        assert_eq!((n_notices(&first.lines), n_notices(&second.lines)), (1, 0), "{name}: said once");
        let requests = server.requests();
        let carried: Vec<bool> = requests.iter().map(|request| request.to_string().contains(field.as_str())).collect();
        assert_eq!(carried, [false, true, false, false, false], "{name}");
    }
}

#[tokio::test]
async fn e14_the_user_can_forbid_it() {
    for (name, deltas, expected) in forms() {
        let server = ScriptedServer::start(vec![call_reply(&deltas), plain_reply()]).await;
        let mut session = session(&server.url, "generic", "m");
        let layer = aside_core::settings::Layer::Session;
        session.settings.set(layer, "reasoning.includeInContext", "false").unwrap();
        send(&mut session, "q1").await;
        assert!(!carries(&server.requests()[1], &expected), "{name}");
    }
}
