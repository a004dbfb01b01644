//! Prompt caching as a provider sees it: markers or a key in the bytes that are sent, and its counts in what is shown.

use serde_json::Value;

use crate::recording_server::recording_server;
use crate::support::TestConfig;

const ANTHROPIC: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":300,\"cache_creation_input_tokens\":40,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"Hm.\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"c2VhbA==\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"Four.\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

/// A whole reply: what a server answers that does not stream.
const CONVERSE: &str = r#"{"output":{"message":{"role":"assistant","content":[{"text":"Four."}]}},"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":2,"totalTokens":347,"cacheReadInputTokens":300,"cacheWriteInputTokens":40}}"#;

const CHAT: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Four.\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":345,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":300}}}\n\n",
    "data: [DONE]\n\n",
);

const RESPONSES: &str = concat!(
    "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":[]}}\n\n",
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"Four.\"}\n\n",
    "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"Four.\"}]}}\n\n",
    "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":345,\"output_tokens\":2,\"input_tokens_details\":{\"cached_tokens\":300}}}}\n\n",
);

/// How a provider is told what to keep.
enum Caching {
    /// Markers of this name, at most this many.
    Markers(&'static str, usize),
    /// The session's id under this name.
    Key(&'static str),
}

/// The places of all objects with this member, and whether one of them is thinking.
fn marked(value: &Value, name: &str, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            if object.contains_key(name) {
                assert!(!matches!(object.get("type").and_then(Value::as_str), Some("thinking" | "redacted_thinking")));
                found.push(at.to_owned());
            }
            object.iter().for_each(|(member, below)| marked(below, name, &format!("{at}.{member}"), found));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(n, below)| marked(below, name, &format!("{at}[{n}]"), found));
        }
        _ => (),
    }
}

#[test]
fn e16_markers_and_keys_are_in_the_bytes_that_are_sent_and_the_counts_are_shown() {
    #[rustfmt::skip]
    let cases = [
        ("anthropic",   "claude-sonnet-4-5",              ANTHROPIC, Caching::Markers("cache_control", 4), "300 cached, 40 written"),
        ("bedrock",     "us.anthropic.claude-sonnet-4-5", CONVERSE,  Caching::Markers("cachePoint", 4),    "300 cached, 40 written"),
        ("openai-chat", "gpt-5.1",                        CHAT,      Caching::Key("prompt_cache_key"),     "300 cached"),
        ("openai",      "gpt-5.1",                        RESPONSES, Caching::Key("prompt_cache_key"),     "300 cached"),
    ];
    for (dialect, model, reply, caching, stats) in cases {
        let (url, received) = recording_server(move |_| ("200 OK", reply.to_owned()));
        let table = format!("[providers.mine]\ndialect = \"{dialect}\"\nbase_url = \"{url}\"\n");
        let config = TestConfig::with(&format!("caching-{dialect}"), &table);
        let first = config.run(&format!("ask --stats -m mine/{model} first"));
        assert_eq!(first.stdout, "Four.\n", "{dialect}: {}", first.stderr);
        assert!(first.stderr.contains(stats), "{dialect}: {}", first.stderr);
        let second = config.run(&format!("ask --json --stats -c -m mine/{model} second"));
        assert_eq!(second.code, 0, "{dialect}: {}", second.stderr);
        let events: Vec<Value> = second.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let event = |name: &str| events.iter().find(|event| event["event"] == name).unwrap().clone();
        let written = if stats.contains("written") { Value::from(40) } else { Value::Null };
        for name in ["usage", "stats"] {
            assert_eq!(
                (&event(name)["cached"], &event(name)["cacheWrite"]),
                (&Value::from(300), &written),
                "{dialect} {name}"
            );
        }
        let bodies: Vec<Value> = received.lock().unwrap().iter().map(|request| request.body.clone()).collect();
        let [one, two] = bodies.as_slice() else { panic!("{dialect}: {} requests", bodies.len()) };
        match caching {
            Caching::Key(name) => {
                assert!(one[name].as_str().is_some_and(|key| !key.is_empty()), "{dialect}: {one}");
                assert_eq!(one[name], two[name], "{dialect}: one session, one key");
            }
            Caching::Markers(name, most) => {
                let points = |body: &Value| {
                    let mut found = Vec::new();
                    marked(body, name, "", &mut found);
                    found
                };
                let (before, after) = (points(one), points(two));
                assert!(
                    before.len() >= 3 && before.len() <= most && after.len() <= most,
                    "{dialect}: {before:?} {after:?}"
                );
                // The second request reads what the first one wrote, and goes on from there.
                let newest = before.iter().filter(|at| at.starts_with(".messages")).next_back().unwrap();
                assert!(after.contains(newest) && after.last() != Some(newest), "{dialect}: {before:?} {after:?}");
                for place in [".tools", ".toolConfig", ".system"]
                    .iter()
                    .filter(|place| before.iter().any(|at| at.starts_with(**place)))
                {
                    assert!(after.iter().any(|at| at.starts_with(place)), "{dialect}: {after:?}");
                }
            }
        }
        let usage = config.stdout("usage --json");
        assert!(usage.contains("\"cached\":600") || usage.contains("\"cached\": 600"), "{dialect}: {usage}");
    }
}
