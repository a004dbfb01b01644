//! D20: nothing that a reply carries is lost in silence.

use aside_core::event::{Event, NoteCode};
use aside_core::protocol::Protocol;
use serde_json::{Value, json};

use super::{ReplyReader, as_json, aws_event, every, lines, same, sse};
use crate::support::{decode, generic_rules};

#[test]
fn d20_members_without_a_neutral_form_are_kept_under_their_wire_names() {
    use Protocol::{Anthropic, Bedrock, Cohere, Gemini, Ollama, OpenaiChat, OpenaiResponses};
    #[rustfmt::skip]
    let cases: &[(&str, Protocol, Vec<u8>, Value)] = &[
        ("pieces are joined", OpenaiChat, sse([
            r#"{"id":"1","object":"chat.completion.chunk","created":1,"system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"logprobs":{"content":[{"token":"a"}],"refusal":null}}]}"#,
            r#"{"id":"1","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":"b","annotations":[{"n":1}]},"logprobs":{"content":[{"token":"b"}]}}]}"#,
            r#"{"id":"1","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"annotations":[{"n":2}],"audio":{"id":"x","data":"UklG"}},"logprobs":null}]}"#,
            r#"{"id":"1","system_fingerprint":"fp_2","choices":[{"index":0,"delta":{"audio":{"data":"Rg=="}},"finish_reason":"stop","matched_stop":7}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"cost":0.5}}"#, "[DONE]"]),
            json!({"system_fingerprint":"fp_2","logprobs":{"content":[{"token":"a"},{"token":"b"}]},"annotations":[{"n":1},{"n":2}],"audio":{"id":"x","data":"UklGRg=="},"matched_stop":7,"usage":{"cost":0.5}})),
        ("whole", OpenaiChat, br#"{"id":"1","service_tier":"flex","choices":[{"message":{"content":"a","annotations":[{"n":1}],"refusal":null},"logprobs":{"content":[{"token":"a"}]},"finish_reason":"stop"}]}"#.to_vec(),
            json!({"service_tier":"flex","annotations":[{"n":1}],"logprobs":{"content":[{"token":"a"}]}})),
        ("nothing unknown", OpenaiChat, sse([r#"{"id":"1","object":"o","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":1,"audio_tokens":0}}}"#, "[DONE]"]),
            Value::Null),
        ("the stop sequence", Anthropic, sse([
            r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1,"service_tier":"standard"}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"END","container":{"id":"c"}},"usage":{"output_tokens":2},"context_management":{"applied_edits":[1]}}"#,
            r#"{"type":"message_stop"}"#]),
            json!({"stop_sequence":"END","container":{"id":"c"},"context_management":{"applied_edits":[1]},"usage":{"service_tier":"standard"}})),
        ("whole", Anthropic, br#"{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"a"}],"model":"m","stop_reason":"stop_sequence","stop_sequence":"END","usage":{"input_tokens":1,"output_tokens":1}}"#.to_vec(),
            json!({"stop_sequence":"END"})),
        ("the tier, not the echo of the request", OpenaiResponses, sse([r#"{"type":"response.completed","sequence_number":1,"response":{"id":"r","object":"response","created_at":1,"status":"completed","output":[],"temperature":1.0,"tools":[],"instructions":"x","service_tier":"default","usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3,"cost":1}}}"#]),
            json!({"service_tier":"default","usage":{"cost":1}})),
        ("grounding and safety", Gemini, sse([
            r#"{"responseId":"r","candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"a"}]},"safetyRatings":[{"p":"LOW"}]}],"usageMetadata":{"promptTokenCount":1,"totalTokenCount":2,"trafficType":"ON_DEMAND"}}"#,
            r#"{"candidates":[{"index":0,"content":{"parts":[{"text":"b"}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["q"]},"citationMetadata":{"citationSources":[{"uri":"u"}]}}]}"#]),
            json!({"safetyRatings":[{"p":"LOW"}],"groundingMetadata":{"webSearchQueries":["q"]},"citationMetadata":{"citationSources":[{"uri":"u"}]},"usageMetadata":{"trafficType":"ON_DEMAND"}})),
        ("durations", Ollama, lines([r#"{"model":"m","created_at":"t","message":{"role":"assistant","content":"a"},"done":false}"#, r#"{"model":"m","created_at":"t","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","eval_count":3,"prompt_eval_count":2,"total_duration":9}"#]),
            json!({"total_duration":9})),
        ("latency", Bedrock, [aws_event("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"a"},"p":"ab"}"#), aws_event("contentBlockStop", r#"{"contentBlockIndex":0}"#), aws_event("messageStop", r#"{"stopReason":"end_turn","additionalModelResponseFields":{"stop_sequence":"END"}}"#), aws_event("metadata", r#"{"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2},"metrics":{"latencyMs":5}}"#)].concat(),
            json!({"additionalModelResponseFields":{"stop_sequence":"END"},"metrics":{"latencyMs":5}})),
        ("citations, one by one", Cohere, sse([
            r#"{"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":0,"text":"a"}}}}"#,
            r#"{"type":"citation-start","index":1,"delta":{"message":{"citations":{"start":1,"text":"b"}}}}"#,
            r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}"#]),
            json!({"citations":[{"start":0,"text":"a"},{"start":1,"text":"b"}]})),
        ("citations, all at once", Cohere, br#"{"id":"i","message":{"role":"assistant","content":[{"type":"text","text":"a"}],"citations":[{"start":0}]},"finish_reason":"COMPLETE"}"#.to_vec(),
            json!({"citations":[{"start":0}]})),
    ];
    every(cases, |(name, protocol, bytes, expected)| {
        let name = format!("{name} ({protocol})");
        for size in [1, 9, usize::MAX] {
            let (reply, _) = decode(*protocol, &generic_rules(*protocol), bytes, size);
            same(&name, as_json(&reply)["extra"].clone(), expected.clone())?;
            let noted = reply.notes.iter().filter(|note| note.code == NoteCode::Kept).count();
            same(&format!("{name}: told once"), noted, usize::from(!expected.is_null()))?;
        }
        Ok(())
    });
}

#[test]
fn d20_members_of_a_block_stay_with_the_block() {
    #[rustfmt::skip]
    let cases: &[(&str, Protocol, Vec<u8>, Value)] = &[
        ("a call", Protocol::OpenaiChat, sse([r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}","strict":true},"caller":{"type":"direct"}}]},"finish_reason":"tool_calls"}]}"#, "[DONE]"]),
            json!({"caller":{"type":"direct"},"strict":true})),
        ("a text part", Protocol::Gemini, sse([r#"{"candidates":[{"content":{"parts":[{"text":"a","partMetadata":{"k":1}}]},"finishReason":"STOP"}]}"#]),
            json!({"partMetadata":{"k":1}})),
        ("a citation", Protocol::Bedrock, [aws_event("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"a"}}"#), aws_event("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"citation":{"title":"t"}}}"#), aws_event("contentBlockStop", r#"{"contentBlockIndex":0}"#), aws_event("messageStop", r#"{"stopReason":"end_turn"}"#)].concat(),
            json!({"citation":[{"title":"t"}]})),
        ("an Ollama call", Protocol::Ollama, lines([r#"{"message":{"role":"assistant","content":"","tool_calls":[{"id":"c","function":{"index":0,"name":"f","arguments":{},"note":"n"}}]},"done":true,"done_reason":"stop"}"#]),
            json!({"note":"n"})),
    ];
    every(cases, |(name, protocol, bytes, expected)| {
        let (reply, _) = decode(*protocol, &generic_rules(*protocol), bytes, usize::MAX);
        same(name, as_json(&reply)["blocks"][0]["extra"].clone(), expected.clone())
    });
}

#[test]
fn d20_a_repeated_value_is_one_event() {
    let chunk = r#"{"system_fingerprint":"fp","x_vendor":[1],"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
    let stream = sse(std::iter::repeat_n(chunk, 50));
    let mut n_events = 0;
    let rules = generic_rules(Protocol::OpenaiChat);
    let mut decoder = aside_core::Decoder::new(Protocol::OpenaiChat, &rules);
    let mut count = |event: Event<'_>| n_events += usize::from(matches!(event, Event::Extra { .. }));
    decoder.push(&stream, &mut count);
    decoder.finish(&mut count).unwrap();
    assert_eq!(n_events, 2);
}

#[test]
fn d20_usage_counts_tokens_written_to_the_cache() {
    use Protocol::{Anthropic, Bedrock, OpenaiChat, OpenaiResponses};
    #[rustfmt::skip]
    let cases: &[(&str, Protocol, &str)] = &[
        ("the sum",              Anthropic,       r#"{"type":"message","content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1,"cache_creation_input_tokens":9,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":5}}}"#),
        ("by time to live",      Anthropic,       r#"{"type":"message","content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":5}}}"#),
        ("in the details",       OpenaiChat,      r#"{"choices":[{"message":{"content":"A"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cache_write_tokens":9}}}"#),
        ("Anthropic's name",     OpenaiChat,      r#"{"choices":[{"message":{"content":"A"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"cache_creation_input_tokens":9}}"#),
        ("in the details",       OpenaiResponses, r#"{"object":"response","status":"completed","output":[],"usage":{"input_tokens":50,"input_tokens_details":{"cache_write_tokens":9}}}"#),
        ("next to the read one", Bedrock,         r#"{"output":{"message":{"content":[]}},"stopReason":"end_turn","usage":{"inputTokens":1,"cacheReadInputTokens":2,"cacheWriteInputTokens":9}}"#),
    ];
    every(cases, |(name, protocol, body)| {
        let (reply, _) = decode(*protocol, &generic_rules(*protocol), body.as_bytes(), usize::MAX);
        let name = format!("{name} ({protocol})");
        same(&name, reply.usage.cache_write, Some(9))?;
        same(&name, as_json(&reply)["usage"]["cacheWrite"].clone(), json!(9))?;
        same(&format!("{name}: nothing else"), as_json(&reply)["extra"].clone(), Value::Null)
    });
    let unknown =
        ReplyReader::chat().reply(br#"{"choices":[{"message":{"content":"A"}}],"usage":{"prompt_tokens":1}}"#);
    assert_eq!(as_json(&unknown)["usage"].get("cacheWrite"), None);
}
