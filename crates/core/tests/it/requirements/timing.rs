//! D18: when thinking began and ended. The caller supplies the time.

use aside_core::block::{Block, Reply, Time};
use aside_core::fold::Fold;
use aside_core::protocol::Protocol;
use aside_core::tags::TagStart;
use aside_core::wire::Decoder;

use super::{ReplyReader, as_json, aws_event, drawn, every, lines, same, sse};

/// Reads frames at the given times; the last time is that of the end.
fn timed(reader: &ReplyReader, frames: &[(u64, Vec<u8>)], end: u64) -> Reply {
    let mut fold = Fold::new();
    let mut decoder = Decoder::new(reader.protocol, &reader.rules);
    // The request was sent at zero; nothing was received yet.
    fold.set_now(Time(0));
    decoder.push(b"", &mut fold);
    for (now, frame) in frames {
        fold.set_now(Time(*now));
        decoder.push(frame, &mut fold);
    }
    fold.set_now(Time(end));
    decoder.finish(&mut fold).unwrap();
    fold.finish()
}

fn spans(reply: &Reply) -> Vec<(u64, u64)> {
    let spans = reply.blocks.iter().filter_map(|block| match block {
        Block::Thinking(thinking) => {
            Some(thinking.span.map_or((u64::MAX, u64::MAX), |span| (span.started.0, span.ended.0)))
        }
        _ => None,
    });
    spans.collect()
}

#[test]
fn d18_thinking_lasts_from_its_first_text_to_its_end() {
    let chat = |delta: &str| sse([format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#)]);
    let (a, text, details) = (
        chat(r#"{"reasoning_content":"a"}"#),
        chat(r#"{"content":"A"}"#),
        chat(r#"{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}"#),
    );
    let late = chat(r#"{"reasoning_details":[{"type":"reasoning.text","signature":"Sg","index":0}]}"#);
    let call = |arguments: &str| {
        chat(&format!(
            r#"{{"tool_calls":[{{"index":0,"id":"c","function":{{"name":"get","arguments":"{arguments}"}}}}]}}"#
        ))
    };
    let stop = sse([r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#]);
    #[rustfmt::skip]
    let cases: &[(&str, &[(u64, Vec<u8>)], &[(u64, u64)])] = &[
        ("the wait before the first byte does not count", &[(9000, a.clone()), (9400, a.clone()), (9700, text.clone()), (12_000, stop.clone())],           &[(9000, 9700)]),
        ("an empty first delta is no thought yet",        &[(1000, chat(r#"{"role":"assistant","reasoning_content":""}"#)), (5000, a.clone()), (6000, text.clone()), (7000, stop.clone())], &[(5000, 6000)]),
        ("comments while queueing do not count",          &[(1000, b": keep-alive\n\n".to_vec()), (2000, b"\n\n".to_vec()), (5000, a.clone()), (6000, text.clone())], &[(5000, 6000)]),
        ("a call ends it; its arguments do not count",    &[(1000, a.clone()), (2000, call("{")), (8000, call("}")), (9000, stop.clone())],               &[(1000, 2000)]),
        ("two thoughts, an answer between",               &[(1000, a.clone()), (2000, text.clone()), (5000, text.clone()), (6000, a.clone()), (6500, text.clone()), (9000, stop.clone())], &[(1000, 2000), (6000, 6500)]),
        ("a thought, a call, a thought",                  &[(1000, a.clone()), (2000, call("{}")), (7000, a.clone()), (7500, stop.clone())],              &[(1000, 2000), (7000, 7500)]),
        ("the finish word ends it",                       &[(1000, a.clone()), (3000, stop.clone()), (8000, sse(["[DONE]"]))],                           &[(1000, 3000)]),
        ("nothing else ends it: the end does",            &[(1000, a.clone())],                                                                          &[(1000, 10_000)]),
        ("details",                                       &[(1000, details.clone()), (2000, details.clone()), (3000, text.clone()), (9000, stop.clone())], &[(1000, 3000)]),
        ("a late signature changes no time",              &[(1000, details), (3000, text.clone()), (8000, late), (9000, stop.clone())],                  &[(1000, 3000)]),
        ("tags",                                          &[(1000, chat(r#"{"content":"<think>a"}"#)), (2000, chat(r#"{"content":"b</think>"}"#)), (5000, text.clone()), (9000, stop.clone())], &[(1000, 2000)]),
        ("a clock that goes back",                        &[(5000, a), (4000, text), (9000, stop)],                                                      &[(5000, 5000)]),
    ];
    every(cases, |(name, frames, expected)| {
        same(name, spans(&timed(&ReplyReader::chat(), frames, 10_000)), expected.to_vec())
    });
}

#[test]
fn d18_on_every_protocol() {
    let event = |text: &str| sse([text]);
    let line = |text: &str| lines([text]);
    #[rustfmt::skip]
    let cases: Vec<(Protocol, Vec<(u64, Vec<u8>)>, Vec<(u64, u64)>)> = vec![
        (Protocol::Anthropic, vec![
            (4000, event(r#"{"type":"message_start","message":{"content":[]}}"#)),
            (5000, event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#)),
            (6000, event(r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a"}}"#)),
            (7000, event(r#"{"type":"content_block_stop","index":0}"#)),
            (7100, event(r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s","name":"search","input":{}}}"#)),
            (7200, event(r#"{"type":"content_block_stop","index":1}"#)),
            (8800, event(r#"{"type":"ping"}"#)),
            (9000, event(r#"{"type":"content_block_start","index":2,"content_block":{"type":"thinking","thinking":"b"}}"#)),
            (9500, event(r#"{"type":"content_block_stop","index":2}"#)),
            (9900, event(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#))], vec![(5000, 7000), (9000, 9500)]),
        (Protocol::OpenaiResponses, vec![
            (4000, event(r#"{"type":"response.created","response":{"status":"in_progress"}}"#)),
            (5000, event(r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"r","type":"reasoning","summary":[]}}"#)),
            (6000, event(r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"a"}"#)),
            (7000, event(r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"r","type":"reasoning","summary":[{"type":"summary_text","text":"a"}]}}"#)),
            (8000, event(r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"A"}"#)),
            (9000, event(r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#))], vec![(5000, 7000)]),
        (Protocol::Gemini, vec![
            (5000, event(r#"{"candidates":[{"content":{"parts":[{"text":"a","thought":true}]}}]}"#)),
            (7000, event(r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"get"}}]}}]}"#)),
            (9000, event(r#"{"candidates":[{"finishReason":"STOP"}]}"#))], vec![(5000, 7000)]),
        (Protocol::Ollama, vec![
            (5000, line(r#"{"message":{"thinking":"a"},"done":false}"#)), (6000, line(r#"{"message":{"thinking":"b"},"done":false}"#)),
            (7000, line(r#"{"message":{"content":"A"},"done":false}"#)), (9000, line(r#"{"message":{"content":""},"done":true,"done_reason":"stop"}"#))], vec![(5000, 7000)]),
        (Protocol::Bedrock, vec![
            (4000, aws_event("messageStart", "{}")), (5000, aws_event("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"a"}}}"#)),
            (7000, aws_event("contentBlockStop", r#"{"contentBlockIndex":0}"#)), (8000, aws_event("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"text":"A"}}"#)),
            (9000, aws_event("messageStop", r#"{"stopReason":"end_turn"}"#))], vec![(5000, 7000)]),
        (Protocol::Cohere, vec![
            (4000, event(r#"{"type":"message-start"}"#)), (5000, event(r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":"a"}}}}"#)),
            (7000, event(r#"{"type":"content-end","index":0}"#)), (9000, event(r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}"#))], vec![(5000, 7000)]),
    ];
    every(cases, |(protocol, frames, expected)| {
        let reply = timed(&ReplyReader::generic(protocol), &frames, 10_000);
        same(&format!("{protocol}: {}", drawn(&reply)), spans(&reply), expected)
    });
}

#[test]
fn d18_hidden_thinking_has_its_times_too() {
    let frames = [
        (
            2000,
            sse([
                r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"r","type":"reasoning","summary":[]}}"#,
            ]),
        ),
        (
            6000,
            sse([
                r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"r","type":"reasoning","summary":[],"encrypted_content":"E"}}"#,
            ]),
        ),
        (9000, sse([r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#])),
    ];
    let reply = timed(&ReplyReader::generic(Protocol::OpenaiResponses), &frames, 10_000);
    assert_eq!(spans(&reply), [(2000, 6000)]);
}

#[test]
fn d18_preopened_thinking_begins_with_the_text() {
    let reader = ReplyReader::chat().with(|rules| rules.read.tags.start = TagStart::Prefilled);
    let chat = |text: &str| sse([format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#)]);
    let frames = [(3000, chat("a")), (4000, chat("b</think>")), (6000, chat("A"))];
    assert_eq!(spans(&timed(&reader, &frames, 10_000)), [(3000, 4000)]);
}

#[test]
fn d18_times_are_printed_where_they_were_measured_and_nowhere_else() {
    let text = sse([r#"{"choices":[{"index":0,"delta":{"reasoning_content":"a"}}]}"#]);
    let rest = sse([r#"{"choices":[{"index":0,"delta":{"content":"A"},"finish_reason":"stop"}]}"#]);
    // 2026-11-15T09:30:25.250Z and a second and a half later.
    let measured = timed(
        &ReplyReader::chat(),
        &[(1_794_735_025_250, text.clone()), (1_794_735_026_750, rest.clone())],
        1_794_735_030_000,
    );
    let block = as_json(&measured)["blocks"][0].clone();
    assert_eq!(
        (block["startedAt"].as_str(), block["endedAt"].as_str()),
        (Some("2026-11-15T09:30:25.250Z"), Some("2026-11-15T09:30:26.750Z"))
    );
    let from_a_file = as_json(&ReplyReader::chat().reply(&[text, rest].concat()))["blocks"][0].clone();
    assert!(from_a_file.get("startedAt").is_none() && from_a_file.get("endedAt").is_none(), "{from_a_file}");
}
