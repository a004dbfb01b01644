//! Replies of every dialect, streamed and whole.

use aside_core::block::Block;
use aside_core::event::{Ending, NoteCode};
use aside_sim::{ScriptOptions, Service, Simulator};
use serde_json::{Value, json};

use crate::support::{
    ReplyMode, TestClient, address, answer_text, dialects, edited_body, exchange, get, post, thinking_text,
};

#[test]
fn x1_every_dialect_thinks_and_says_that_it_is_simulated() {
    for dialect in dialects().iter() {
        let mut client = TestClient::new(dialect, "What is 2+2?");
        let reply = client.step();
        let answer = answer_text(&reply);
        let is_hidden = dialect.rules(None).read.hidden;
        assert_eq!(thinking_text(&reply).trim().is_empty(), is_hidden, "{}: {reply:?}", dialect.id);
        assert!(answer.contains("aside simulator") && answer.contains(&dialect.id), "{}: {answer}", dialect.id);
        assert!(answer.contains("What is 2+2?") && !answer.contains("think>"), "{}: {answer}", dialect.id);
        assert_eq!(reply.end.ending, Ending::Stop, "{}", dialect.id);
        // Bedrock's reply has metrics, for which there is no neutral form.
        let notes: Vec<_> = reply.notes.iter().filter(|note| note.code != NoteCode::Kept).collect();
        assert_eq!((&reply.end.error, notes), (&None, Vec::new()), "{}", dialect.id);
        assert!(reply.usage.output.is_some_and(|n| n > 0), "{}: {:?}", dialect.id, reply.usage);
    }
}

#[test]
fn x1_whole_and_streamed_replies_are_the_same() {
    for dialect in dialects().iter() {
        let mut client = TestClient::new(dialect, "Why?");
        let encoded = client.encoded();
        let streamed = client.send(&encoded).decoded(dialect);
        client.mode = ReplyMode::Whole;
        let answer = client.send(&encoded);
        assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"), "{}", dialect.id);
        let whole = answer.decoded(dialect);
        assert_eq!(thinking_text(&whole), thinking_text(&streamed), "{}", dialect.id);
        assert_eq!(answer_text(&whole), answer_text(&streamed), "{}", dialect.id);
        assert_eq!(whole.end, streamed.end, "{}", dialect.id);
        assert_eq!(whole.usage.output, streamed.usage.output, "{}", dialect.id);
    }
}

#[test]
fn x1_a_gemini_stream_without_sse_is_a_list() {
    let dialect = dialects().get("gemini").unwrap();
    let encoded = TestClient::new(dialect, "Why?").encoded();
    let answer = post(address(), encoded.path.trim_end_matches("?alt=sse"), &encoded.body);
    let body: Value = serde_json::from_slice(&answer.bytes()).unwrap();
    assert!(body[0]["candidates"].is_array());
    assert!(!thinking_text(&answer.decoded(dialect)).is_empty());
}

#[test]
fn x2_the_same_seed_gives_the_same_bytes() {
    for dialect in dialects().iter() {
        let ask = |line: &str| {
            let client = TestClient::new(dialect, &format!("Why?\n{line}"));
            client.send(&client.encoded()).bytes()
        };
        assert_eq!(ask("sim: think seed=1"), ask("sim: think seed=1"), "{}", dialect.id);
        assert_ne!(ask("sim: think seed=1"), ask("sim: think seed=2"), "{}", dialect.id);
    }
}

#[test]
fn e5_thinking_that_is_switched_off_stays_off() {
    for id in ["deepseek", "anthropic", "ollama", "openai", "qwen"] {
        let dialect = dialects().get(id).unwrap();
        let client = TestClient::new(dialect, "Why?");
        let aside_core::dialect::Off::Patch(off) = &dialect.rules(Some(id)).ask.off else { panic!("{id}") };
        let encoded = client.encoded();
        let body = edited_body(&encoded.body, |body| {
            for (name, value) in off {
                body[name] = value.clone();
            }
        });
        let reply = post(address(), &encoded.path, &body).decoded(dialect);
        assert_eq!((thinking_text(&reply).as_str(), answer_text(&reply).is_empty()), ("", false), "{id}");
    }
}

#[test]
fn the_output_limit_cuts_a_reply_short() {
    let dialect = dialects().get("vllm").unwrap();
    let body = json!({ "model": "vllm", "max_tokens": 5, "messages": [{ "role": "user", "content": "Why?" }] });
    let reply = post(address(), "/v1/chat/completions", &body.to_string()).decoded(dialect);
    assert_eq!((reply.end.ending.clone(), reply.usage.output), (Ending::Length, Some(5)), "{reply:?}");
    assert!(!matches!(reply.blocks.as_slice(), [.., Block::Text(_)]), "{reply:?}");
}

#[test]
fn x1_model_lists_have_the_format_of_their_path() {
    let json = |path: &str| -> Value { serde_json::from_slice(&get(address(), path).bytes()).unwrap() };
    let ids: Vec<String> =
        json("/v1/models")["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap().to_owned()).collect();
    let known: Vec<String> = dialects().iter().map(|dialect| dialect.id.clone()).collect();
    assert_eq!(ids[..known.len()], known);
    assert!(ids.contains(&"claude-sonnet-5".to_owned()), "{ids:?}");
    assert_eq!(json("/v1beta/models")["models"][0]["name"], "models/gemini");
    assert_eq!(json("/api/tags")["models"][0]["name"], "ollama");
    assert!(json("/api/version")["version"].as_str().unwrap().ends_with("-sim"));
    let claude = exchange(address(), "GET", "/v1/models", &[("anthropic-version", "2023-06-01")], "");
    let claude: Value = serde_json::from_slice(&claude.bytes()).unwrap();
    assert_eq!((&claude["data"][0]["type"], &claude["has_more"]), (&json!("model"), &json!(false)));
}

#[test]
fn it_runs_in_the_background_and_stops_when_dropped() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let service = Service::new(dialects().clone(), ScriptOptions::default());
        let running = Simulator::bind("127.0.0.1:0".parse().unwrap(), service).await.unwrap().spawn();
        let address = running.address();
        let about = tokio::task::spawn_blocking(move || get(address, "/").status).await.unwrap();
        assert_eq!(about, 200);
        drop(running);
        tokio::task::yield_now().await;
        assert!(std::net::TcpStream::connect(address).is_err(), "the port is closed");
    });
}

#[test]
fn the_index_page_describes_the_simulator() {
    let about = get(address(), "/");
    assert_eq!(about.status, 200);
    let text = about.text();
    for piece in ["simulator", "No model is called", "/v1/messages", "/api/chat", "tool-loop N"] {
        assert!(text.contains(piece), "{text}");
    }
    assert_eq!(get(address(), "/nowhere").status, 404);
}

#[test]
fn x1_an_error_for_a_wrong_model_or_path_names_the_right_one() {
    let body = |model: &str| json!({ "model": model, "messages": [{ "role": "user", "content": "q" }] }).to_string();
    #[rustfmt::skip]
    let cases = [
        ("no such model",    "/v1/chat/completions", body("gpt-9"),                404, "the simulator has no model `gpt-9`; it has: anthropic, "),
        ("another protocol", "/v1/chat/completions", body("anthropic"),            400, "`anthropic` speaks anthropic: POST /v1/messages"),
        ("another one",      "/v1/messages",         body("sim/groq"),             400, "`groq` speaks openai-chat: POST /v1/chat/completions"),
        ("no model",         "/v1/chat/completions", "{}".to_owned(),              400, "no model is named; the simulator has: "),
        ("a behaviour",      "/v1/chat/completions", body("deepseek:dance"),       400, "unknown behaviour `dance`; the simulator knows: plain, think, "),
        ("no messages",      "/v1/chat/completions", r#"{"model":"kimi"}"#.into(), 400, "messages: a list is required"),
    ];
    for (name, path, body, status, message) in cases {
        let answer = post(address(), path, &body);
        let error: Value = serde_json::from_slice(&answer.bytes()).unwrap();
        let found = error["error"]["message"].as_str().unwrap();
        assert_eq!(answer.status, status, "{name}: {found}");
        assert!(found.starts_with(message), "{name}: {found}");
    }
}
