//! Thinking that clients lose, with the memory on SQLite.

use aside_session::serve_table::StoreChoice;
use serde_json::{Value, json};

use super::support::{Answer, Running, Setup};

async fn start(config: &str) -> Running {
    Setup { store: StoreChoice::Sqlite, ..Setup::new(config) }.start().await
}

/// A tool loop of a Chat client that keeps nothing but text and calls. Returns the answers.
async fn chat_loop(running: &Running, model: &str, steps: usize) -> Vec<Answer> {
    let tools = json!([{"type": "function", "function": {"name": "list", "description": "lists files",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}]);
    let question = format!("Look around.\nsim: tool-loop {steps}");
    let mut messages = vec![json!({"role": "user", "content": question})];
    let mut answers = Vec::new();
    for _ in 0..=steps {
        let body = json!({"model": model, "messages": messages, "tools": tools});
        let answer = running.post("/v1/chat/completions", &[], body.to_string()).await;
        assert_eq!(answer.status, 200, "{model}: {}", answer.text());
        let reply = answer.json();
        let message = &reply["choices"][0]["message"];
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        messages.push(match calls.is_empty() {
            true => json!({"role": "assistant", "content": message["content"]}),
            false => json!({"role": "assistant", "content": message["content"], "tool_calls": calls}),
        });
        for call in &calls {
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "README.md"}));
        }
        answers.push(answer);
        if calls.is_empty() {
            break;
        }
    }
    assert_eq!(answers.len(), steps + 1, "{model}: the loop has its steps");
    answers
}

fn n_restored(answer: &Answer) -> usize {
    let header = answer.header("aside-repaired").expect("a header");
    header.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

#[tokio::test]
async fn g2_thinking_that_a_chat_client_lost_is_restored_on_every_kind_of_provider() {
    let running = start("").await;
    for dialect in ["deepseek", "kimi", "openai", "anthropic", "gemini", "bedrock"] {
        let answers = chat_loop(&running, &format!("sim/{dialect}"), 3).await;
        let last = answers.last().expect("an answer");
        assert!(n_restored(last) >= 3, "{dialect}: {:?}", last.header("aside-repaired"));
        let receipt = running.receipt(last).await;
        // A slow machine may miss the deadline, but the store answers.
        assert!(receipt["store"] == "ok" || receipt["store"] == "late", "{dialect}: {receipt}");
        let restored = receipt["decisions"].as_array().expect("decisions").iter();
        let n_rows = restored.filter(|row| row["action"] == "restored" && row["evidence"].is_string()).count();
        assert!(n_rows >= 3, "{dialect}: {receipt}");
    }
}

#[tokio::test]
async fn g4_a_restored_turn_changes_and_all_other_bytes_stay() {
    let running = start("").await;
    let answers = chat_loop(&running, "sim/deepseek", 1).await;
    let first = answers.first().expect("an answer").json();
    let call = &first["choices"][0]["message"]["tool_calls"][0];
    // The same conversation again, with odd bytes; the simulator refuses it without its thinking.
    let body = format!(
        "{{ \"odd\" : 1e2, \"model\":\"sim/deepseek\",\"messages\":[ {{\"role\":\"user\",\"content\":\"Look around.\\nsim: tool-loop 1\"}},\
         {{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{call}]}},{{\"role\":\"tool\",\"tool_call_id\":{},\"content\":\"README.md\"}}]}}",
        call["id"]
    );
    let answer = running.post("/v1/chat/completions", &[], body).await;
    assert_eq!((answer.status, n_restored(&answer)), (200, 1), "{}", answer.text());
}

#[tokio::test]
async fn g2_a_conversation_continues_after_a_restart_and_never_for_another_tenant() {
    let keys = format!(
        "[[serve.keys]]\nname = \"a\"\nhash = \"{}\"\n[[serve.keys]]\nname = \"b\"\nhash = \"{}\"\n",
        aside_gateway::hash_text("key-a"),
        aside_gateway::hash_text("key-b")
    );
    let running = start(&keys).await;
    let ask = |messages: Value| {
        json!({"model": "sim/deepseek", "messages": messages, "tools": [{"type": "function",
        "function": {"name": "list", "parameters": {"type": "object", "properties": {}}}}]})
        .to_string()
    };
    let user = json!({"role": "user", "content": "Look around.\nsim: tool-loop 2"});
    let first = running.post("/v1/chat/completions", &[("x-api-key", "key-a")], ask(json!([user]))).await;
    let message = first.json()["choices"][0]["message"].clone();
    let calls = message["tool_calls"].clone();
    let lost = json!([user, {"role": "assistant", "content": message["content"], "tool_calls": calls},
        {"role": "tool", "tool_call_id": calls[0]["id"], "content": "x"}]);
    let running = running.restart().await;
    let foreign = running.post("/v1/chat/completions", &[("x-api-key", "key-b")], ask(lost.clone())).await;
    assert_eq!(n_restored(&foreign), 0, "{:?}", foreign.headers);
    let own = running.post("/v1/chat/completions", &[("x-api-key", "key-a")], ask(lost)).await;
    assert_eq!((own.status, n_restored(&own)), (200, 1), "{}", own.text());
}

#[tokio::test]
async fn g5_what_a_translated_stream_contains_is_recognised_when_it_comes_back() {
    let running = start("").await;
    let tool = json!({"name": "list", "description": "lists", "input_schema": {"type": "object", "properties": {}}});
    for dialect in ["deepseek", "openai", "gemini"] {
        let mut messages = vec![json!({"role": "user", "content": "Look around.\nsim: tool-loop 2"})];
        for step in 0..3 {
            let body =
                json!({"model": format!("sim/{dialect}"), "max_tokens": 2000, "messages": messages, "tools": [tool]});
            let answer = running.post("/v1/messages", &[], body.to_string()).await;
            assert_eq!(answer.status, 200, "{dialect}, step {step}: {}", answer.text());
            let content = answer.json()["content"].clone();
            let blocks = content.as_array().cloned().unwrap_or_default();
            let thinking = blocks.iter().find(|block| block["type"] == "thinking");
            if let Some(thinking) = thinking {
                assert!(thinking["signature"].as_str().is_some_and(|seal| seal.len() >= 50), "{dialect}: {thinking}");
            }
            messages.push(json!({"role": "assistant", "content": content}));
            let results: Vec<Value> = blocks
                .iter()
                .filter(|block| block["type"] == "tool_use")
                .map(|block| json!({"type": "tool_result", "tool_use_id": block["id"], "content": "README.md"}))
                .collect();
            if results.is_empty() {
                assert_eq!(step, 2, "{dialect}: the loop has two steps");
                break;
            }
            messages.push(json!({"role": "user", "content": results}));
        }
    }
}

#[tokio::test]
async fn g9_in_shadow_mode_nothing_changes_and_losses_are_counted() {
    let running = Setup { store: StoreChoice::Sqlite, shadow: true, ..Setup::new("") }.start().await;
    let tools =
        json!([{"type": "function", "function": {"name": "list", "parameters": {"type": "object", "properties": {}}}}]);
    let user = json!({"role": "user", "content": "Look around.\nsim: tool-loop 1"});
    let body = json!({"model": "sim/deepseek", "messages": [user], "tools": tools}).to_string();
    let first = running.post("/v1/chat/completions", &[], body).await.json();
    let calls = first["choices"][0]["message"]["tool_calls"].clone();
    let messages = json!([user, {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": calls[0]["id"], "content": "x"}]);
    let body = json!({"model": "sim/deepseek", "messages": messages, "tools": tools}).to_string();
    let refused = running.post("/v1/chat/completions", &[], body).await;
    assert_eq!(refused.status, 400, "the provider's own refusal passes: {}", refused.text());
    assert_eq!(refused.header("aside-shadow"), Some("1 restored, 0 filler, 0 ambiguous"));
    let metrics = running.get("/metrics").await.text();
    let line = "aside_lost_total{client=\"aside\",dialect=\"deepseek\",kind=\"refused\"} 1";
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
}

#[tokio::test]
async fn g2_without_a_store_the_client_carries_its_thinking_sealed() {
    let running = Setup::new("").start().await;
    let tool = json!({"name": "list", "description": "lists", "input_schema": {"type": "object", "properties": {}}});
    for dialect in ["deepseek", "openai", "kimi"] {
        let mut messages = vec![json!({"role": "user", "content": "Look around.\nsim: tool-loop 2"})];
        for step in 0..3 {
            let body = json!({"model": format!("sim/{dialect}"), "max_tokens": 2000, "messages": messages,
                "tools": [tool], "stream": step == 1});
            let answer = running.post("/v1/messages", &[], body.to_string()).await;
            assert_eq!(answer.status, 200, "{dialect}, step {step}: {}", answer.text());
            assert!(n_restored(&answer) >= step, "{dialect}, step {step}: {:?}", answer.header("aside-repaired"));
            let content = if step == 1 { streamed_content(&answer.text()) } else { answer.json()["content"].clone() };
            let blocks = content.as_array().cloned().unwrap_or_default();
            let sealed: Vec<&str> = blocks
                .iter()
                .filter_map(|block| block.get("signature").or_else(|| block.get("data"))?.as_str())
                .collect();
            assert!(!sealed.is_empty() && sealed.iter().all(|seal| seal.starts_with("asb1_")), "{dialect}: {content}");
            let results: Vec<Value> = blocks
                .iter()
                .filter(|block| block["type"] == "tool_use")
                .map(|block| json!({"type": "tool_result", "tool_use_id": block["id"], "content": "README.md"}))
                .collect();
            assert_eq!(results.is_empty(), step == 2, "{dialect}: the loop has two steps");
            messages.push(json!({"role": "assistant", "content": content}));
            messages.push(json!({"role": "user", "content": results}));
        }
    }
}

/// The blocks of a streamed message.
fn streamed_content(text: &str) -> Value {
    let mut blocks: Vec<Value> = Vec::new();
    for event in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(event).expect("JSON");
        let at = event["index"].as_u64().map(|at| usize::try_from(at).expect("small"));
        match (event["type"].as_str(), at) {
            (Some("content_block_start"), Some(_)) => blocks.push(event["content_block"].clone()),
            (Some("content_block_delta"), Some(at)) => {
                let delta = &event["delta"];
                for (name, into) in
                    [("text", "text"), ("thinking", "thinking"), ("signature", "signature"), ("partial_json", "json")]
                {
                    if let Some(more) = delta[name].as_str() {
                        let so_far = blocks[at][into].as_str().unwrap_or("").to_owned();
                        blocks[at][into] = json!(format!("{so_far}{more}"));
                    }
                }
            }
            _ => (),
        }
    }
    for block in blocks.iter_mut().filter(|block| block["type"] == "tool_use") {
        let arguments = block["json"].as_str().unwrap_or("{}").to_owned();
        block["input"] = serde_json::from_str(&arguments).unwrap_or(json!({}));
        block.as_object_mut().expect("an object").remove("json");
    }
    Value::from(blocks)
}
