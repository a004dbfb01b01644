//! Responses that clients continue, fetch and delete by their id.

use aside_session::serve_table::StoreChoice;
use serde_json::{Value, json};

use super::support::{Answer, Provider, Running, Scripted, Setup};

async fn start(config: &str) -> Running {
    Setup { store: StoreChoice::Sqlite, ..Setup::new(config) }.start().await
}

/// One step of a tool loop by `previous_response_id`.
fn step(model: &str, stream: bool, previous: Option<&str>, input: &Value) -> String {
    let tools = json!([{"type": "function", "name": "list", "description": "lists files",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}]);
    let mut body = json!({"model": model, "input": input, "tools": tools, "stream": stream});
    if let Some(previous) = previous {
        body["previous_response_id"] = json!(previous);
    }
    body.to_string()
}

/// The response in an answer, whole or streamed.
fn response(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    if answer.header("content-type") == Some("application/json") {
        return answer.json();
    }
    let text = answer.text();
    let last =
        text.lines().filter_map(|line| line.strip_prefix("data: ")).rfind(|data| data.contains("response.completed"));
    let event: Value = serde_json::from_str(last.unwrap_or_else(|| panic!("{text}"))).expect("JSON");
    event["response"].clone()
}

fn results(response: &Value) -> Vec<Value> {
    let items = response["output"].as_array().expect("items").iter();
    let calls = items.filter(|item| item["type"] == "function_call");
    calls
        .map(|call| json!({"type": "function_call_output", "call_id": call["call_id"], "output": "README.md"}))
        .collect()
}

#[tokio::test]
async fn g13_a_tool_loop_by_id_works_on_every_kind_of_provider() {
    let running = start("").await;
    for dialect in ["deepseek", "anthropic", "gemini", "bedrock"] {
        for stream in [false, true] {
            let model = format!("sim/{dialect}");
            let question = json!("Look around.\nsim: tool-loop 3");
            let mut last = response(&running.post("/v1/responses", &[], step(&model, stream, None, &question)).await);
            assert_eq!((&last["store"], &last["previous_response_id"]), (&json!(true), &Value::Null), "{dialect}");
            for n in 0..3 {
                let id = last["id"].as_str().expect("an id").to_owned();
                let input = Value::from(results(&last));
                assert_eq!(input.as_array().map(Vec::len), Some(1), "{dialect}, step {n}: {last}");
                let answer = running.post("/v1/responses", &[], step(&model, stream, Some(&id), &input)).await;
                let next = response(&answer);
                assert_eq!(next["previous_response_id"], json!(id), "{dialect}, step {n}");
                let header = answer.header("aside-repaired").expect("a header").to_owned();
                let n_restored: usize = header.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
                assert!(n_restored > n, "{dialect}, step {n}: {header}");
                last = next;
            }
            assert!(results(&last).is_empty(), "{dialect}: the loop has three steps");
        }
    }
}

#[tokio::test]
async fn g13_a_response_is_fetched_listed_and_deleted_by_its_own_tenant() {
    let keys = format!(
        "[[serve.keys]]\nname = \"a\"\nhash = \"{}\"\n[[serve.keys]]\nname = \"b\"\nhash = \"{}\"\n",
        aside_gateway::hash_text("key-a"),
        aside_gateway::hash_text("key-b")
    );
    let running = start(&keys).await;
    let (a, b) = ([("x-api-key", "key-a")], [("x-api-key", "key-b")]);
    let first = running.post("/v1/responses", &a, step("sim/deepseek", true, None, &json!("sim: tool-loop 1"))).await;
    let first = response(&first);
    let id = first["id"].as_str().expect("an id").to_owned();
    let input = Value::from(results(&first));
    let second = running.post("/v1/responses", &a, step("sim/deepseek", false, Some(&id), &input)).await;
    let second = response(&second);
    let running = running.restart().await;
    let path = format!("/v1/responses/{id}");
    let fetched = running.send("GET", &path, &a, Vec::new()).await;
    assert_eq!(fetched.json(), first, "what was streamed is what is fetched");
    let items = format!("/v1/responses/{}/input_items", second["id"].as_str().expect("an id"));
    let list = running.send("GET", &format!("{items}?order=asc"), &a, Vec::new()).await.json();
    let kinds: Vec<&str> =
        list["data"].as_array().expect("items").iter().filter_map(|item| item["type"].as_str()).collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&"message"), Some(&"function_call_output")), "{list}");
    assert!(kinds.contains(&"reasoning") && kinds.contains(&"function_call"), "{kinds:?}");
    let page = running.send("GET", &format!("{items}?limit=1"), &a, Vec::new()).await.json();
    assert_eq!((&page["has_more"], page["data"].as_array().map(Vec::len)), (&json!(true), Some(1)), "{page}");
    assert_eq!(page["data"][0]["type"], "function_call_output", "the newest first");

    for (method, path) in [("GET", path.clone()), ("DELETE", path.clone()), ("GET", items.clone())] {
        let foreign = running.send(method, &path, &b, Vec::new()).await;
        assert_eq!(foreign.status, 404, "{method} {path}");
    }
    let stolen = running.post("/v1/responses", &b, step("sim/deepseek", false, Some(&id), &input)).await;
    assert_eq!(stolen.json()["error"]["code"], "previous_response_not_found", "{}", stolen.text());
    let cancelled = running.send("POST", &format!("{path}/cancel"), &a, Vec::new()).await;
    assert_eq!(cancelled.status, 400, "{}", cancelled.text());

    let deleted = running.send("DELETE", &path, &a, Vec::new()).await;
    assert_eq!(deleted.json(), json!({"id": id, "object": "response", "deleted": true}));
    assert_eq!(running.send("GET", &path, &a, Vec::new()).await.status, 404);
    let gone = running.post("/v1/responses", &a, step("sim/deepseek", false, Some(&id), &input)).await;
    assert_eq!(gone.json()["error"]["code"], "previous_response_not_found", "{}", gone.text());
}

#[tokio::test]
async fn g13_a_response_that_the_client_does_not_store_is_not_kept_but_its_thinking_is() {
    let running = start("").await;
    let body = |previous: Option<&str>, input: &Value| {
        let mut body: Value = serde_json::from_str(&step("sim/deepseek", false, previous, input)).expect("JSON");
        body["store"] = json!(false);
        body.to_string()
    };
    let question = json!([{"type": "message", "role": "user", "content": "sim: tool-loop 1"}]);
    let first = response(&running.post("/v1/responses", &[], body(None, &question)).await);
    assert_eq!(first["store"], json!(false));
    let id = first["id"].as_str().expect("an id");
    assert_eq!(running.get(&format!("/v1/responses/{id}")).await.status, 404);
    let refused = running.post("/v1/responses", &[], body(Some(id), &json!(results(&first)))).await;
    assert_eq!(refused.json()["error"]["code"], "previous_response_not_found");
    // The client sends everything again, without the reasoning item.
    let mut input = question.as_array().expect("items").clone();
    input.extend(first["output"].as_array().expect("items").iter().filter(|item| item["type"] != "reasoning").cloned());
    input.extend(results(&first));
    let second = running.post("/v1/responses", &[], body(None, &json!(input))).await;
    assert_eq!(second.header("aside-repaired"), Some("1 restored, 0 filler, 0 ambiguous"), "{}", second.text());
}

#[tokio::test]
async fn g13_ids_of_a_provider_stay_its_own_and_only_the_client_that_got_one_reaches_it() {
    let provider = Provider::start(|received| match received.path.as_str() {
        "/v1/responses" => Scripted {
            content_type: "application/json",
            ..Scripted::stream(r#"{"id":"resp_theirs1","object":"response","status":"completed","output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"hi"}]}]}"#)
        },
        path => Scripted { content_type: "application/json", ..Scripted::stream(format!(r#"{{"path":"{path}"}}"#)) },
    })
    .await;
    let config = format!(
        "[providers.up]\nprotocol = \"openai-responses\"\nbase_url = \"http://{}/v1\"\n\
         [[serve.keys]]\nname = \"a\"\nhash = \"{}\"\n[[serve.keys]]\nname = \"b\"\nhash = \"{}\"\n",
        provider.address,
        aside_gateway::hash_text("key-a"),
        aside_gateway::hash_text("key-b")
    );
    let running = start(&config).await;
    let (a, b) = ([("x-api-key", "key-a")], [("x-api-key", "key-b")]);
    let body = json!({"model": "up/m", "input": "hi"}).to_string();
    let answer = running.post("/v1/responses", &a, body).await;
    assert_eq!(answer.json()["id"], "resp_theirs1", "{}", answer.text());
    for (method, path) in [("GET", "resp_theirs1"), ("DELETE", "resp_theirs1"), ("GET", "resp_theirs1/input_items")] {
        let path = format!("/v1/responses/{path}");
        let own = running.send(method, &path, &a, Vec::new()).await;
        assert_eq!((own.status, own.json()), (200, json!({"path": path})), "{method}");
        let foreign = running.send(method, &path, &b, Vec::new()).await;
        assert_eq!(foreign.status, 404, "{method}: another tenant of the same provider");
    }
    assert_eq!(running.send("GET", "/v1/responses/resp_unknown", &a, Vec::new()).await.status, 404);
    let methods: Vec<String> =
        provider.received().iter().map(|received| received.head.split(' ').next().unwrap_or("").to_owned()).collect();
    assert_eq!(methods, ["POST", "GET", "DELETE", "GET"], "nothing was asked for the other tenant");
}

/// All tenants share the account at the provider, which would continue whatever an id names.
#[tokio::test]
async fn g8_a_tenant_cannot_continue_what_a_provider_keeps_for_another() {
    let provider = Provider::start(|_| Scripted {
        content_type: "application/json",
        ..Scripted::stream(r#"{"id":"resp_theirs1","object":"response","status":"completed","output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"hi"}]}]}"#)
    })
    .await;
    let up =
        format!("[providers.up]\nprotocol = \"openai-responses\"\nbase_url = \"http://{}/v1\"\n", provider.address);
    let key = |name: &str, more: &str| {
        format!(
            "[[serve.keys]]\nname = \"{name}\"\nhash = \"{}\"\n{more}",
            aside_gateway::hash_text(&format!("key-{name}"))
        )
    };
    let keys = format!("{}{}{}", key("a", ""), key("b", ""), key("c", "pass = [\"up\"]\n"));
    let running = start(&format!("{up}{keys}")).await;
    let ask = async |key: &str, more: &Value| {
        let mut body = json!({"model": "up/m", "input": "What did I say?"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        running.post("/v1/responses", &[("x-api-key", key)], body.to_string()).await
    };
    assert_eq!(ask("key-a", &json!({})).await.json()["id"], "resp_theirs1");
    let previous = json!({"previous_response_id": "resp_theirs1"});
    assert_eq!(ask("key-a", &previous).await.status, 200, "its own");
    let n_asked = provider.received().len();
    for settings in [json!({}), json!({"stream": true}), json!({"reasoning": {"effort": "high"}})] {
        let mut more = previous.clone();
        more.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let refused = ask("key-b", &more).await;
        assert_eq!((refused.status, refused.header("aside-error")), (400, Some("bad_request")), "{more}");
        assert_eq!(refused.json()["error"]["code"], "previous_response_not_found", "{more}");
    }
    let long = "x".repeat(10_000);
    for hidden in [
        r#""conversation":"conv_1""#.to_owned(),
        r#""convers\u0061tion":{"id":"conv_1"}"#.to_owned(),
        r#""conversation":"conv_1","conversation":null"#.to_owned(),
        format!(r#""conversation":{{"id":"conv_1","x":"{long}"}}"#),
    ] {
        let body = format!(r#"{{"model":"up/m","input":"hi",{hidden}}}"#);
        let refused = running.post("/v1/responses", &[("x-api-key", "key-b")], body).await;
        assert_eq!((refused.status, refused.header("aside-error")), (400, Some("bad_request")), "{}", refused.text());
    }
    assert_eq!(provider.received().len(), n_asked, "the provider was not asked");
    assert_eq!(ask("key-c", &json!({"conversation": "conv_1"})).await.status, 200, "it may use the account");
    assert_eq!(ask("key-b", &json!({"previous_response_id": null, "conversation": null})).await.status, 200);
}
