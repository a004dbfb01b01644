//! What a provider's prompt cache sees over several turns, and where the counts are shown.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::recording_server::{ReceivedRequest, ReceivedRequests, recording_server};
use crate::support::{RunOutput, TestConfig, run};

/// A session of several `ask` runs with one provider.
struct CachedSession {
    config: TestConfig,
    project: PathBuf,
    received: ReceivedRequests,
}

impl CachedSession {
    fn new(name: &str, dialect: &str, reply: fn(usize) -> Value) -> CachedSession {
        let count = std::sync::atomic::AtomicUsize::new(0);
        let (url, received) = recording_server(move |_| {
            let n = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            ("200 OK", reply(n).to_string())
        });
        let text =
            format!("[providers.caching]\ndialect = \"{dialect}\"\nbase_url = \"{url}\"\napi_key_cmd = \"echo k\"\n");
        let config = TestConfig::with(name, &text);
        let project = config.project();
        std::fs::write(project.join("tide.txt"), "twice a day\n").unwrap();
        CachedSession { config, project, received }
    }

    fn aside(&self, arguments: &[&str]) -> RunOutput {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
        let output = run(command.args(arguments).current_dir(&self.project), b"", Some(&self.config));
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
        output
    }

    fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap().clone()
    }
}

/// The prompt of a request as the provider caches it: what comes before the messages, and the messages without the
/// end of their list. Markers are not part of the prompt.
fn prompt(request: &ReceivedRequest, list: &str) -> (String, String) {
    let text = request.text.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    let (before, rest) = text.split_once(&format!("\"{list}\":[")).unwrap();
    let end = rest.rfind(']').unwrap();
    let after = rest.get(end..).unwrap();
    assert!(after == "]}" || !after.contains("\"role\""), "messages come last: {after}");
    (before.to_owned(), rest.get(..end).unwrap().to_owned())
}

/// The places of the markers: the index of the message and of its block, in order.
fn marks(body: &Value) -> Vec<(usize, usize, String)> {
    let mut marks = Vec::new();
    for (m, message) in body["messages"].as_array().unwrap().iter().enumerate() {
        for (b, block) in message["content"].as_array().into_iter().flatten().enumerate() {
            if block.get("cache_control").is_some() {
                marks.push((m, b, block["type"].as_str().unwrap().to_owned()));
            }
        }
    }
    marks
}

/// A reply of Anthropic's API: first a call, then answers. Each reads what the one before wrote.
fn claude_reply(n: usize) -> Value {
    let thinking = json!({"type": "thinking", "thinking": format!("thought {n}"), "signature": format!("sig{n}")});
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "tide.txt"}});
    let answer = json!({"type": "text", "text": format!("answer {n}")});
    let (last, stop) = if n == 0 { (call, "tool_use") } else { (answer, "end_turn") };
    json!({
        "id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [thinking, last], "stop_reason": stop,
        "usage": {"input_tokens": 5, "output_tokens": 7,
            "cache_creation_input_tokens": 1000 + n, "cache_read_input_tokens": 2000 * n},
    })
}

#[test]
fn e16_each_request_begins_with_the_bytes_of_the_last_one_and_marks_their_end() {
    let session = CachedSession::new("caching-marks", "anthropic", claude_reply);
    let model = "caching/claude-sonnet-4-5";
    session.aside(&["ask", "--yes", "-m", model, "When is high tide?"]);
    session.aside(&["ask", "--yes", "-c", "And low tide?"]);
    session.aside(&["ask", "--yes", "-c", "Thanks."]);
    let received = session.received();
    assert_eq!(received.len(), 4, "a loop of two requests, then two turns");
    for pair in received.windows(2) {
        let [(head, messages), (next_head, next_messages)] = [&pair[0], &pair[1]].map(|one| prompt(one, "messages"));
        assert_eq!(next_head, head, "the parameters, the tools and the system prompt stay");
        assert!(next_messages.starts_with(&messages), "{next_messages}\ndoes not begin with\n{messages}");
    }
    let mut ends = Vec::new();
    for request in &received {
        let body = &request.body;
        let n_marks = request.text.matches("cache_control").count();
        assert!((2..=4).contains(&n_marks), "{n_marks} markers: {body}");
        let last_of = |list: &str| body[list].as_array().and_then(|list| list.last()).cloned().unwrap_or_default();
        assert!(last_of("tools").get("cache_control").is_some(), "after the tools: {body}");
        let marks = marks(body);
        assert!(marks.iter().all(|(.., kind)| kind != "thinking" && kind != "tool_use"), "{marks:?}");
        if let Some(end) = ends.last() {
            assert!(marks.contains(end), "{marks:?} lacks {end:?}, which the last request wrote");
        }
        let messages = body["messages"].as_array().unwrap();
        let end = marks.last().unwrap();
        assert_eq!(end.0, messages.len() - 1, "the end of the request is marked: {marks:?}");
        ends.push(end.clone());
    }
    assert!(received[3].text.contains("sig0"), "the thinking of the first loop is part of the prompt");
}

#[test]
fn e16_tokens_that_were_read_from_the_cache_and_written_to_it_are_shown() {
    let session = CachedSession::new("caching-counts", "anthropic", claude_reply);
    let asked = session.aside(&["ask", "--yes", "--stats", "-m", "caching/claude-sonnet-4-5", "When is high tide?"]);
    assert!(asked.stderr.contains(" 2000 cached, 2001 written, "), "{}", asked.stderr);
    let asked = session.aside(&["ask", "--yes", "--stats", "--json", "-c", "And low tide?"]);
    let stats: Value = asked
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|event| event["event"] == "stats")
        .unwrap();
    assert_eq!((&stats["cached"], &stats["cacheWrite"]), (&json!(4000), &json!(1002)), "{stats}");
    // One JSON object for each model.
    let row: Value = serde_json::from_str(session.aside(&["usage", "--json"]).stdout.trim()).unwrap();
    assert_eq!((&row["cached"]["count"], &row["cacheWrite"]["count"]), (&json!(6000), &json!(3003)), "{row}");
    let table = session.aside(&["usage"]).stdout;
    let columns: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(columns.get(3..5), Some(&["6000", "3003"][..]), "{table}");
}

/// A reply of OpenAI's Responses API.
fn responses_reply(n: usize) -> Value {
    json!({
        "id": format!("resp_{n}"), "object": "response", "status": "completed", "model": "gpt-5.6",
        "output": [
            {"type": "reasoning", "id": format!("rs_{n}"), "summary": [], "encrypted_content": format!("sealed{n}")},
            {"type": "message", "id": format!("msg_{n}"), "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": format!("answer {n}"), "annotations": []}]},
        ],
        "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 64 * n}, "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 109},
    })
}

#[test]
fn e16_the_cache_key_is_the_session_and_the_input_only_grows() {
    let session = CachedSession::new("caching-key", "openai", responses_reply);
    let model = "caching/gpt-5.6";
    session.aside(&["ask", "-m", model, "When is high tide?"]);
    let asked = session.aside(&["ask", "--stats", "-c", "And low tide?"]);
    assert!(asked.stderr.contains(" 64 cached, "), "{}", asked.stderr);
    session.aside(&["ask", "-m", model, "Another session."]);
    let received = session.received();
    let keys: Vec<&str> = received.iter().map(|one| one.body["prompt_cache_key"].as_str().unwrap()).collect();
    assert_eq!(keys[0], keys[1], "a session keeps its key");
    assert_ne!(keys[0], keys[2], "another session has another one");
    let [(_, input), (_, next_input)] = [&received[0], &received[1]].map(|one| prompt(one, "input"));
    assert!(next_input.starts_with(&input), "{next_input}\ndoes not begin with\n{input}");
    assert!(next_input.contains("sealed0"), "{next_input}");
}
