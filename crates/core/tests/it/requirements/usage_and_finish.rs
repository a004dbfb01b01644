//! D14: usage and finish words, wherever a provider puts them.

use aside_core::event::Usage;
use aside_core::protocol::Protocol;

use super::{ReplyReader, aws_event, drawn, every, finish, lines, same, sse};

type Counters = (Option<u64>, Option<u64>, Option<u64>, Option<u64>);

fn counters(usage: Usage) -> Counters {
    (usage.input, usage.output, usage.reasoning, usage.cached)
}

#[test]
fn d14_chat_usage_wherever_it_is() {
    const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"A"},"finish_reason":null}]"#;
    const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]"#;
    #[rustfmt::skip]
    let cases: &[(&str, Vec<String>, Counters)] = &[
        ("in a chunk of its own", vec![format!("{STOP}}}"), r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":30,"completion_tokens_details":{"reasoning_tokens":22},"prompt_tokens_details":{"cached_tokens":4}}}"#.into()],
            (Some(10), Some(30), Some(22), Some(4))),
        ("on the finish chunk",   vec![format!(r#"{STOP},"usage":{{"prompt_tokens":10,"completion_tokens":30}}}}"#)],                        (Some(10), Some(30), None, None)),
        ("inside the choice",     vec![r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":10,"completion_tokens":30,"cached_tokens":4}}]}"#.into()], (Some(10), Some(30), None, Some(4))),
        ("under x_groq",          vec![format!(r#"{STOP},"x_groq":{{"id":"x","usage":{{"prompt_tokens":10,"completion_tokens":30}}}}}}"#)], (Some(10), Some(30), None, None)),
        ("under x_groq and beside it", vec![format!(r#"{STOP},"x_groq":{{"usage":{{"prompt_tokens":10,"completion_tokens":30}}}}}}"#), r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":30,"completion_tokens_details":{"reasoning_tokens":7}}}"#.into()],
            (Some(10), Some(30), Some(7), None)),
        ("reasoning at the top",  vec![format!(r#"{STOP},"usage":{{"prompt_tokens":10,"completion_tokens":30,"reasoning_tokens":9}}}}"#)],  (Some(10), Some(30), Some(9), None)),
        ("details before the top", vec![format!(r#"{STOP},"usage":{{"reasoning_tokens":9,"completion_tokens_details":{{"reasoning_tokens":7}}}}}}"#)], (None, None, Some(7), None)),
        ("null details, then the top", vec![format!(r#"{STOP},"usage":{{"reasoning_tokens":9,"completion_tokens_details":null}}}}"#)],      (None, None, Some(9), None)),
        ("DeepSeek's cache hits", vec![format!(r#"{STOP},"usage":{{"prompt_tokens":10,"completion_tokens":30,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":2}}}}"#)], (Some(10), Some(30), None, Some(8))),
        ("null until the end",    vec![format!(r#"{TEXT},"usage":null}}"#), format!(r#"{STOP},"usage":{{"prompt_tokens":10,"completion_tokens":30}}}}"#)], (Some(10), Some(30), None, None)),
        ("all so far on every chunk: the last, never the sum", vec![format!(r#"{TEXT},"usage":{{"prompt_tokens":10,"completion_tokens":1}}}}"#), format!(r#"{TEXT},"usage":{{"prompt_tokens":10,"completion_tokens":2}}}}"#), format!(r#"{STOP},"usage":{{"prompt_tokens":10,"completion_tokens":3}}}}"#)],
            (Some(10), Some(3), None, None)),
        ("the last that is not null", vec![format!(r#"{TEXT},"usage":{{"prompt_tokens":10,"completion_tokens":3,"reasoning_tokens":2}}}}"#), format!(r#"{STOP},"usage":{{"prompt_tokens":null,"completion_tokens":5}}}}"#), r#"{"choices":[],"usage":null}"#.into()],
            (Some(10), Some(5), Some(2), None)),
        ("more thinking than output is reported as it is", vec![format!(r#"{STOP},"usage":{{"prompt_tokens":10,"completion_tokens":3,"completion_tokens_details":{{"reasoning_tokens":90}}}}}}"#)], (Some(10), Some(3), Some(90), None)),
        ("missing counts are unknown, not zero", vec![format!("{STOP}}}")],                                                                       (None, None, None, None)),
    ];
    every(cases, |(name, chunks, expected)| {
        let first = format!("{TEXT}}}");
        let stream = sse([&first].into_iter().chain(chunks).map(String::as_str).chain(["[DONE]"]));
        same(name, counters(ReplyReader::chat().reply(&stream).usage), *expected)
    });
}

#[test]
fn d14_usage_on_every_protocol() {
    use Protocol::{Anthropic, Bedrock, Cohere, Gemini, Ollama, OpenaiChat, OpenaiResponses};
    #[rustfmt::skip]
    let cases: &[(&str, Protocol, Vec<u8>, Counters)] = &[
        ("whole", OpenaiChat, br#"{"choices":[{"message":{"content":"A"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":30,"completion_tokens_details":{"reasoning_tokens":22},"prompt_tokens_details":{"cached_tokens":4}}}"#.to_vec(), (Some(10), Some(30), Some(22), Some(4))),
        ("at the end", OpenaiResponses, sse([r#"{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":50,"input_tokens_details":{"cached_tokens":6},"output_tokens":40,"output_tokens_details":{"reasoning_tokens":25}}}}"#]), (Some(50), Some(40), Some(25), Some(6))),
        ("whole", OpenaiResponses, br#"{"object":"response","status":"completed","output":[],"usage":{"input_tokens":50,"output_tokens":40,"output_tokens_details":{"reasoning_tokens":25}}}"#.to_vec(), (Some(50), Some(40), Some(25), None)),
        ("an incomplete answer", OpenaiResponses, sse([r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[],"usage":{"input_tokens":50,"output_tokens":40}}}"#]), (Some(50), Some(40), None, None)),
        ("input first, output last", Anthropic, sse([r#"{"type":"message_start","message":{"content":[],"usage":{"input_tokens":25,"cache_read_input_tokens":5,"output_tokens":1}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":89,"output_tokens_details":{"thinking_tokens":60}}}"#]), (Some(25), Some(89), Some(60), Some(5))),
        ("the last word on input", Anthropic, sse([r#"{"type":"message_start","message":{"content":[],"usage":{"input_tokens":0,"output_tokens":0}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":25,"output_tokens":89,"cache_read_input_tokens":null}}"#]), (Some(25), Some(89), None, None)),
        ("whole", Anthropic, br#"{"type":"message","content":[],"stop_reason":"end_turn","usage":{"input_tokens":25,"output_tokens":89,"output_tokens_details":{"thinking_tokens":60}}}"#.to_vec(), (Some(25), Some(89), Some(60), None)),
        ("on two chunks", Gemini, sse([r#"{"candidates":[{"content":{"parts":[{"text":"a","thought":true}]}}],"usageMetadata":{"promptTokenCount":9,"thoughtsTokenCount":30}}"#,
            r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":12,"thoughtsTokenCount":55,"cachedContentTokenCount":3}}"#]), (Some(9), Some(12), Some(55), Some(3))),
        ("no output", Gemini, br#"{"candidates":[{"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":9,"thoughtsTokenCount":55}}"#.to_vec(), (Some(9), None, Some(55), None)),
        ("on the last line", Ollama, lines([r#"{"message":{"content":"A"},"done":false}"#, r#"{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":30}"#]), (Some(9), Some(30), None, None)),
        ("metadata", Bedrock, [aws_event("messageStop", r#"{"stopReason":"end_turn"}"#), aws_event("metadata", r#"{"usage":{"inputTokens":9,"outputTokens":30,"cacheReadInputTokens":4},"metrics":{}}"#)].concat(), (Some(9), Some(30), None, Some(4))),
        ("the other name of the cache", Bedrock, br#"{"output":{"message":{"content":[]}},"stopReason":"end_turn","usage":{"inputTokens":9,"outputTokens":30,"cacheReadInputTokenCount":4}}"#.to_vec(), (Some(9), Some(30), None, Some(4))),
        ("message-end", Cohere, sse([r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":3,"output_tokens":50},"tokens":{"input_tokens":20,"output_tokens":54,"reasoning_tokens":11},"cached_tokens":16}}}"#]), (Some(20), Some(54), Some(11), Some(16))),
        ("whole, an older answer", Cohere, br#"{"message":{"content":[]},"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":20,"output_tokens":54}}}"#.to_vec(), (Some(20), Some(54), None, None)),
    ];
    every(cases, |(name, protocol, bytes, expected)| {
        same(&format!("{name} ({protocol})"), counters(ReplyReader::generic(*protocol).reply(bytes).usage), *expected)
    });
}

#[test]
fn d14_finish_words_are_normalised() {
    use Protocol::{Anthropic, Bedrock, Cohere, Gemini, Ollama, OpenaiChat};
    #[rustfmt::skip]
    let cases: &[(Protocol, &[(&str, &str)])] = &[
        (OpenaiChat, &[("stop", "stop"), ("eos", "stop"), ("length", "length"), ("tool_calls", "tool_calls"), ("function_call", "tool_calls"), ("content_filter", "content_filter"),
                       ("sensitive", "content_filter"), ("error", "error"), ("some_new_word", "other")]),
        (Anthropic,  &[("end_turn", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"), ("model_context_window_exceeded", "length"), ("tool_use", "tool_calls"), ("pause_turn", "pause"),
                       ("refusal", "refusal"), ("some_new_word", "other")]),
        (Gemini,     &[("STOP", "stop"), ("MAX_TOKENS", "length"), ("SAFETY", "content_filter"), ("RECITATION", "content_filter"), ("BLOCKLIST", "content_filter"), ("PROHIBITED_CONTENT", "content_filter"),
                       ("SPII", "content_filter"), ("IMAGE_SAFETY", "content_filter"), ("OTHER", "other"), ("LANGUAGE", "other")]),
        (Ollama,     &[("stop", "stop"), ("length", "length"), ("some_new_word", "other")]),
        (Bedrock,    &[("end_turn", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"), ("tool_use", "tool_calls"), ("guardrail_intervened", "content_filter"), ("content_filtered", "content_filter")]),
        (Cohere,     &[("COMPLETE", "stop"), ("STOP_SEQUENCE", "stop"), ("MAX_TOKENS", "length"), ("TOOL_CALL", "tool_calls"), ("ERROR", "error")]),
    ];
    let rows = cases.iter().flat_map(|(protocol, words)| words.iter().map(move |pair| (*protocol, *pair)));
    every(rows, |(protocol, (word, expected))| {
        let (stream, whole) = match protocol {
            OpenaiChat => (
                sse([format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"A"}},"finish_reason":"{word}"}}]}}"#)]),
                format!(r#"{{"choices":[{{"message":{{"content":"A"}},"finish_reason":"{word}"}}]}}"#),
            ),
            Anthropic => (
                sse([format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{word}"}}}}"#)]),
                format!(r#"{{"type":"message","content":[],"stop_reason":"{word}"}}"#),
            ),
            Gemini => (
                sse([format!(r#"{{"candidates":[{{"finishReason":"{word}"}}]}}"#)]),
                format!(r#"{{"candidates":[{{"finishReason":"{word}"}}]}}"#),
            ),
            Ollama => (
                lines([
                    r#"{"message":{"content":"A"},"done":false}"#.to_owned(),
                    format!(r#"{{"message":{{"content":""}},"done":true,"done_reason":"{word}"}}"#),
                ]),
                format!(r#"{{"message":{{"content":"A"}},"done":true,"done_reason":"{word}"}}"#),
            ),
            Bedrock => (
                aws_event("messageStop", &format!(r#"{{"stopReason":"{word}"}}"#)),
                format!(r#"{{"output":{{"message":{{"content":[]}}}},"stopReason":"{word}"}}"#),
            ),
            Cohere | Protocol::OpenaiResponses => (
                sse([format!(r#"{{"type":"message-end","delta":{{"finish_reason":"{word}"}}}}"#)]),
                format!(r#"{{"message":{{"content":[]}},"finish_reason":"{word}"}}"#),
            ),
        };
        let reader = ReplyReader::generic(protocol);
        same(&format!("{protocol} {word}, streamed"), finish(&reader.reply(&stream)).as_deref(), Some(expected))?;
        same(&format!("{protocol} {word}, whole"), finish(&reader.reply(whole.as_bytes())).as_deref(), Some(expected))
    });
}

#[test]
fn d14_a_responses_status_is_a_finish_word() {
    #[rustfmt::skip]
    let cases = [
        ("completed",      "completed",  r#""status":"completed","output":[]"#,                                                                            Some("stop")),
        ("with calls",     "completed",  r#""status":"completed","output":[{"type":"function_call","call_id":"c","name":"get","arguments":"{}"}]"#,         Some("tool_calls")),
        ("a server tool is no call of ours", "completed", r#""status":"completed","output":[{"type":"web_search_call","id":"w"}]"#,                         Some("stop")),
        ("too long",       "incomplete", r#""status":"incomplete","output":[],"incomplete_details":{"reason":"max_output_tokens"}"#,                        Some("length")),
        ("filtered",       "incomplete", r#""status":"incomplete","output":[],"incomplete_details":{"reason":"content_filter"}"#,                           Some("content_filter")),
        ("no reason given", "incomplete", r#""status":"incomplete","output":[],"incomplete_details":null"#,                                                 Some("other")),
        ("failed",         "failed",     r#""status":"failed","output":[],"error":{"code":"server_error","message":"m"}"#,                                   Some("error")),
        ("refused",        "completed",  r#""status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"No."}]}]"#,             Some("refusal")),
    ];
    every(cases, |(name, event, members, expected)| {
        let reader = ReplyReader::generic(Protocol::OpenaiResponses);
        let stream = sse([format!(r#"{{"type":"response.{event}","response":{{{members}}}}}"#)]);
        same(&format!("{name}, streamed"), finish(&reader.reply(&stream)).as_deref(), expected)?;
        same(
            &format!("{name}, whole"),
            finish(&reader.reply(format!(r#"{{"object":"response",{members}}}"#).as_bytes())).as_deref(),
            expected,
        )
    });
}

#[test]
fn d14_calls_and_repeated_finish_words() {
    const CALL: &str = r#""delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"get","arguments":"{}"}}]}"#;
    #[rustfmt::skip]
    let cases: &[(&str, &str, &[&str], Option<&str>)] = &[
        ("stop beside calls",          CALL, &["stop"],               Some("tool_calls")),
        ("tool_calls, then stop",      CALL, &["tool_calls", "stop"], Some("tool_calls")),
        ("length stays length",        CALL, &["length"],             Some("length")),
        ("the same word twice",        r#""delta":{"content":"A"}"#, &["stop", "stop"],   Some("stop")),
        ("the last word wins",         r#""delta":{"content":"A"}"#, &["stop", "length"], Some("length")),
        ("the last word wins, stop too", r#""delta":{"content":"A"}"#, &["length", "stop"], Some("stop")),
        ("an empty word is no word",   r#""delta":{"content":"A"}"#, &["", "stop", ""],   Some("stop")),
    ];
    every(cases, |(name, delta, words, expected)| {
        let first = format!(r#"{{"choices":[{{"index":0,{delta},"finish_reason":""}}]}}"#);
        let words =
            words.iter().map(|word| format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{word}"}}]}}"#));
        let reply = ReplyReader::chat().reply(&sse([first].into_iter().chain(words).chain(["[DONE]".to_owned()])));
        same(&format!("{name}: {}", drawn(&reply)), finish(&reply).as_deref(), *expected)
    });
    let gemini = br#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"get"}}]},"finishReason":"STOP"}]}"#;
    assert_eq!(finish(&ReplyReader::generic(Protocol::Gemini).reply(gemini)).as_deref(), Some("tool_calls"), "gemini");
    let ollama =
        br#"{"message":{"tool_calls":[{"function":{"name":"get","arguments":{}}}]},"done":true,"done_reason":"stop"}"#;
    assert_eq!(finish(&ReplyReader::generic(Protocol::Ollama).reply(ollama)).as_deref(), Some("tool_calls"), "ollama");
    let blocked = br#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}"#;
    assert_eq!(
        finish(&ReplyReader::generic(Protocol::Gemini).reply(blocked)).as_deref(),
        Some("content_filter"),
        "blocked"
    );
}

#[test]
fn d14_a_word_that_means_failure_in_a_dialect_is_an_error() {
    #[rustfmt::skip]
    let cases = [
        ("zai",        "network_error"),
        ("zai",        "sensitive"),
        ("zai",        "model_context_window_exceeded"),
        ("deepseek",   "insufficient_system_resource"),
        ("openrouter", "error"),
    ];
    every(cases, |(dialect, word)| {
        let stream =
            sse([format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"A"}},"finish_reason":"{word}"}}]}}"#)]);
        let reply = ReplyReader::dialect(dialect).reply(&stream);
        same(&format!("{dialect} {word}"), reply.end.error.is_some(), true)?;
        same(&format!("{dialect} {word} keeps the text"), drawn(&reply), "text 'A'".to_owned())
    });
}
