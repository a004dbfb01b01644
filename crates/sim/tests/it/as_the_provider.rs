//! The simulator answers what the provider would: thinking and usage on request, held
//! responses, token counts, errors in the format of the path.

use serde_json::{Value, json};

use crate::support::{ReceivedResponse, TestServer, address, exchange, get, post};

fn body(response: &ReceivedResponse) -> Value {
    serde_json::from_slice(&response.bytes()).unwrap_or_else(|error| panic!("{error}: {}", response.text()))
}

fn ask(path: &str, request: &Value) -> Value {
    let response = post(address(), path, &request.to_string());
    assert_eq!(response.status, 200, "{path}: {}", response.text());
    body(&response)
}

fn question(model: &str, more: Value) -> Value {
    let mut request =
        json!({ "model": model, "max_tokens": 4096, "messages": [{ "role": "user", "content": "Why?" }] });
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request
}

#[test]
fn x4_claude_thinks_as_it_is_asked_to() {
    let kinds = |model: &str, more: Value| -> Vec<(String, bool, bool)> {
        let reply = ask("/v1/messages", &question(model, more));
        let blocks = reply["content"].as_array().unwrap().iter();
        let is_set = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        blocks
            .map(|b| (b["type"].as_str().unwrap().to_owned(), is_set(&b["thinking"]), is_set(&b["signature"])))
            .collect()
    };
    let text = || ("text".to_owned(), false, false);
    let thinking = |shown| ("thinking".to_owned(), shown, true);
    assert_eq!(kinds("claude-sonnet-5", json!({})), [thinking(false), text()]);
    assert_eq!(
        kinds("claude-sonnet-5", json!({ "thinking": { "type": "adaptive", "display": "summarized" } })),
        [thinking(true), text()]
    );
    assert_eq!(kinds("claude-sonnet-5", json!({ "thinking": { "type": "disabled" } })), [text()]);
    assert_eq!(kinds("claude-haiku-4-5", json!({})), [text()]);
}

#[test]
fn x4_responses_have_summaries_and_payloads_only_on_request() {
    let item = |more: Value| {
        let mut request = json!({ "model": "gpt-5.6", "input": "Why?" });
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ask("/v1/responses", &request)["output"][0].clone()
    };
    let plain = item(json!({}));
    assert_eq!((&plain["type"], &plain["summary"]), (&json!("reasoning"), &json!([])));
    assert!(plain["encrypted_content"].as_str().is_none(), "{plain}");
    let asked = item(json!({ "reasoning": { "summary": "auto" }, "include": ["reasoning.encrypted_content"] }));
    assert!(asked["summary"][0]["text"].is_string() && asked["encrypted_content"].is_string(), "{asked}");
    assert_eq!(item(json!({ "reasoning": { "effort": "none" } }))["type"], "message");
}

#[test]
fn x4_a_stream_has_usage_if_it_is_asked_for_or_always_sent() {
    let has_usage = |model: &str, more: Value| {
        let request = question(model, more);
        post(address(), "/v1/chat/completions", &request.to_string()).text().contains("\"usage\":{")
    };
    assert!(!has_usage("vllm", json!({ "stream": true })));
    assert!(has_usage("vllm", json!({ "stream": true, "stream_options": { "include_usage": true } })));
    assert!(has_usage("vllm", json!({})));
    assert!(has_usage("deepseek", json!({ "stream": true })));
}

#[test]
fn x4_responses_usage_has_cached_tokens() {
    let reply = ask("/v1/responses", &json!({ "model": "gpt-5.6", "input": "Why?" }));
    assert_eq!(reply["usage"]["input_tokens_details"]["cached_tokens"], 0, "{reply}");
}

#[test]
fn x4_a_tool_call_comes_whole_where_the_provider_sends_it_whole() {
    let tool = json!({ "type": "function", "function": { "name": "list", "parameters":
        { "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] } } });
    let deltas = |model: &str| -> Vec<Value> {
        let request = question(&format!("{model}:tool-loop 1"), json!({ "stream": true, "tools": [tool] }));
        let stream = post(address(), "/v1/chat/completions", &request.to_string()).text();
        let chunks = stream.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        chunks
            .map(|chunk| chunk["choices"][0]["delta"]["tool_calls"][0]["function"].clone())
            .filter(Value::is_object)
            .collect()
    };
    let whole = deltas("mistral");
    assert_eq!(whole, [json!({ "name": "list", "arguments": "{\"path\":\".\"}" })]);
    assert!(deltas("deepseek").len() > 1);
}

#[test]
fn x4_a_response_is_continued_and_fetched_by_its_id() {
    let server = TestServer::start(aside_sim::ScriptOptions::default());
    let send = |request: Value| post(server.address, "/v1/responses", &request.to_string());
    let tool = json!({ "type": "function", "name": "list", "parameters": {} });
    let first = body(&send(json!({ "model": "gpt-5.6:tool-loop 1", "input": "Look.", "tools": [tool] })));
    let call = first["output"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(call["type"], "function_call", "{first}");
    let result = json!([{ "type": "function_call_output", "call_id": call["call_id"], "output": "a" }]);
    let more = json!({ "model": "gpt-5.6:tool-loop 1", "input": result, "tools": [tool], "previous_response_id": first["id"] });
    let second = body(&send(more.clone()));
    let text = second["output"].as_array().unwrap().last().unwrap()["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("Steps with tools in this turn: 1."), "{text}");

    let id = second["id"].as_str().unwrap();
    assert_eq!(body(&get(server.address, &format!("/v1/responses/{id}")))["id"], id);
    let input = body(&get(server.address, &format!("/v1/responses/{id}/input_items")));
    assert_eq!(input["data"].as_array().unwrap().len(), 2 + first["output"].as_array().unwrap().len(), "{input}");
    let first_id = first["id"].as_str().unwrap();
    let deleted = exchange(server.address, "DELETE", &format!("/v1/responses/{first_id}"), &[], "");
    assert_eq!(body(&deleted)["deleted"], true);
    let refused = send(more);
    assert_eq!((refused.status, &body(&refused)["error"]["code"]), (400, &json!("previous_response_not_found")));
    let unstored = body(&send(json!({ "model": "gpt-5.6", "input": "Look.", "store": false })));
    let unstored = unstored["id"].as_str().unwrap();
    assert_eq!(get(server.address, &format!("/v1/responses/{unstored}")).status, 404);
}

#[test]
fn x4_tokens_are_counted_in_the_format_of_the_path() {
    let contents = json!({ "contents": [{ "parts": [{ "text": "Why?" }] }] });
    let responses = json!({ "model": "gpt-5.6", "input": "Why?" });
    #[rustfmt::skip]
    let cases = [
        ("/v1/messages/count_tokens",                     question("claude-sonnet-5", json!({})), "input_tokens"),
        ("/v1beta/models/gemini-flash-latest:countTokens", contents,                              "totalTokens"),
        ("/v1/responses/input_tokens",                    responses,                              "input_tokens"),
    ];
    for (path, request, member) in cases {
        let count = ask(path, &request);
        assert!(count[member].as_u64().is_some_and(|n| n > 0), "{path}: {count}");
    }
}

#[test]
fn x4_one_model_has_the_format_of_its_path() {
    let json = |path: &str| body(&get(address(), path));
    assert_eq!(json("/v1/models/gpt-5.6")["object"], "model");
    assert_eq!(json("/v1beta/models/gemini-3-pro")["name"], "models/gemini-3-pro");
    let claude = exchange(address(), "GET", "/v1/models/claude-sonnet-5", &[("anthropic-version", "2023-06-01")], "");
    assert_eq!(body(&claude)["type"], "model");
    let cohere = exchange(address(), "GET", "/v1/models", &[("x-fern-sdk-name", "cohere")], "");
    assert_eq!(body(&cohere)["models"][0]["name"], "cohere");
    let shown = post(address(), "/api/show", r#"{"model":"qwen3:8b"}"#);
    assert_eq!(body(&shown)["capabilities"][0], "completion");
    assert_eq!(get(address(), "/v1/models/gpt-9").status, 404);
}

#[test]
fn x4_every_error_is_json_in_the_format_of_its_path() {
    #[rustfmt::skip]
    let cases = [
        ("POST", "/v1/embeddings",               "/error/code",   json!("not_found_error")),
        ("POST", "/v1/messages/batches",         "/error/type",   json!("not_found_error")),
        ("POST", "/v1beta/models/m:embedContent", "/error/status", json!("NOT_FOUND")),
        ("PUT",  "/v1/chat/completions",         "/error/code",   json!("not_found_error")),
        ("GET",  "/aside/requests/none",         "/error/code",   json!(404)),
    ];
    for (method, path, pointer, expected) in cases {
        let response = exchange(address(), method, path, &[], "{}");
        assert_eq!((response.status, response.header("content-type")), (404, "application/json"), "{path}");
        assert_eq!(body(&response).pointer(pointer), Some(&expected), "{path}: {}", response.text());
    }
    let ollama = body(&post(address(), "/api/generate", "{}"));
    assert!(ollama["error"].is_string(), "{ollama}");
    let unknown = post(address(), "/v1/chat/completions", r#"{"model":"gpt-9","messages":[]}"#);
    assert_eq!(body(&unknown)["error"]["code"], "model_not_found");
    let upgrade =
        exchange(address(), "GET", "/v1/responses", &[("connection", "upgrade"), ("upgrade", "websocket")], "");
    assert_eq!(upgrade.status, 426);
}

#[test]
fn x4_threads_are_refused_with_the_code_that_sdks_understand() {
    let code = |thread: Value| {
        let request = question("claude-sonnet-5", json!({ "thread": thread }));
        let response = post(address(), "/v1/messages", &request.to_string());
        (response.status, body(&response)["error"]["details"]["error_code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(code(json!({ "type": "create" })), (400, "thread_unsupported_request".to_owned()));
    assert_eq!(code(json!({ "type": "thread", "id": "t" })), (404, "thread_not_found".to_owned()));
}

#[test]
fn x4_instructions_among_the_messages_are_accepted_by_the_models_that_do() {
    let request = |model: &str| {
        json!({ "model": model, "max_tokens": 4096, "messages": [
            { "role": "user", "content": "Why?" }, { "role": "system", "content": "Be brief." },
        ] })
    };
    assert_eq!(post(address(), "/v1/messages", &request("claude-opus-4-8").to_string()).status, 200);
    let refused = post(address(), "/v1/messages", &request("claude-opus-4-6").to_string());
    assert!(refused.status == 400 && refused.text().contains("Unexpected role"), "{}", refused.text());
}

/// A tool loop on this model; `edit` changes the assistant message before it goes back.
fn loop_of(server: &TestServer, model: &str, edit: impl Fn(&mut Value)) -> ReceivedResponse {
    let tool = json!({ "type": "function", "function": { "name": "list", "parameters": {} } });
    let user = json!({ "role": "user", "content": "Look.\nsim: tool-loop 2" });
    let send = |messages: Value| {
        let request = json!({ "model": model, "tools": [tool], "messages": messages });
        let headers = [("user-agent", "tester/1.2 (x)")];
        exchange(server.address, "POST", "/v1/chat/completions", &headers, &request.to_string())
    };
    let mut answer = body(&send(json!([user])))["choices"][0]["message"].clone();
    edit(&mut answer);
    let result = json!({ "role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "a" });
    send(json!([user, answer, result]))
}

fn forget(answer: &mut Value) {
    answer.as_object_mut().unwrap().retain(|name, _| !name.starts_with("reasoning"));
}

#[test]
fn x5_receipts_say_what_became_of_the_thinking() {
    let server = TestServer::start(aside_sim::ScriptOptions::default());
    let last = || body(&get(server.address, "/aside/requests"))["requests"][0].clone();

    let kept = loop_of(&server, "vllm", |_| ());
    assert_eq!((kept.status, &last()["verdicts"][0]["verdict"]), (200, &json!("kept")), "{}", last());
    assert_eq!(last()["client"], json!({ "name": "tester", "version": "1.2", "protocol": "openai-chat" }));
    assert_eq!(last()["model"], json!({ "asked": "vllm", "resolved": "vllm", "provider": "sim", "dialect": "vllm" }));
    assert_eq!(last()["id"], kept.header("aside-request"));

    let lost = loop_of(&server, "vllm", forget);
    assert_eq!((lost.status, &last()["verdicts"][0]["verdict"]), (200, &json!("lost")), "{}", last());

    let refused = loop_of(&server, "deepseek", forget);
    let verdicts = last()["verdicts"].clone();
    assert_eq!((refused.status, &verdicts[1]["verdict"]), (400, &json!("refused")), "{verdicts}");
    let id = refused.header("aside-request");
    let whole = body(&get(server.address, &format!("/aside/requests/{id}")));
    assert_eq!((&whole["status"], &whole["judge"]["before"][0]["rule"]), (&json!(400), &json!("echo.loop = must")));

    let unneeded = loop_of(&server, "xai", forget);
    assert_eq!((unneeded.status, &last()["verdicts"][0]["verdict"]), (200, &json!("unneeded")), "{}", last());
}

#[test]
fn x5_receipts_say_what_became_of_thinking_in_tags() {
    let server = TestServer::start(aside_sim::ScriptOptions::default());
    let last = || body(&get(server.address, "/aside/requests"))["requests"][0].clone();

    let kept = loop_of(&server, "minimax", |answer| {
        let content = answer["content"].as_str().unwrap_or_default().to_owned();
        assert!(content.starts_with("<think>"), "{answer}");
        // Programs that keep a history as text add lines around it.
        answer["content"] = format!("\n{content}\n\n").into();
    });
    assert_eq!((kept.status, &last()["verdicts"][0]["verdict"]), (200, &json!("kept")), "{}", last());

    let lost = loop_of(&server, "minimax", |answer| answer["content"] = Value::Null);
    assert_eq!((lost.status, &last()["verdicts"][0]["verdict"]), (200, &json!("lost")), "{}", last());
}

#[test]
fn x5_a_strict_simulator_refuses_what_would_be_lost_in_silence() {
    let server = TestServer::strict();
    assert_eq!(loop_of(&server, "vllm", |_| ()).status, 200);
    let refused = loop_of(&server, "vllm", forget);
    let message = body(&refused)["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert_eq!(refused.status, 400);
    assert!(
        message.starts_with("assistant message 1: 1 of 1 pieces of thinking did not come back (echo.loop = should)"),
        "{message}"
    );
    assert_eq!(loop_of(&server, "xai", forget).status, 200);
}
