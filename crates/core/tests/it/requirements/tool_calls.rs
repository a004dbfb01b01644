//! D15: tool calls in every form.

use aside_core::block::{Block, CallId, Reply};
use aside_core::protocol::Protocol;
use aside_core::tags::TagStart;

use super::{
    ReplyReader, as_json, chat, chat_whole, cohere, cohere_whole, converse, converse_whole, drawn, events_of_response,
    every, gemini, gemini_whole, messages, messages_whole, notices, ollama, ollama_whole, response_whole, same,
};
use crate::support::decode;

/// One delta with these entries.
fn calls(entries: &[&str]) -> String {
    format!(r#"{{"tool_calls":[{}]}}"#, entries.join(","))
}

#[test]
fn d15_chat_calls_are_distinguished() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&[&str]], &str)] = &[
        ("by index", &[&[r#"{"index":0,"id":"c1","type":"function","function":{"name":"get","arguments":""}}"#], &[r#"{"index":0,"function":{"arguments":"{\"k\""}}"#], &[r#"{"index":0,"function":{"arguments":":1}"}}"#],
                       &[r#"{"index":1,"id":"c2","function":{"name":"put","arguments":""}}"#], &[r#"{"index":1,"function":{"arguments":"{\"k\":2}"}}"#]],
            r#"call get(c1) {"k":1} | call put(c2) {"k":2}"#),
        ("by index, in turns", &[&[r#"{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"k\""}}"#], &[r#"{"index":1,"id":"c2","function":{"name":"put","arguments":"{\"k\""}}"#],
                       &[r#"{"index":0,"function":{"arguments":":1}"}}"#], &[r#"{"index":1,"function":{"arguments":":2}"}}"#]],
            r#"call get(c1) {"k":1} | call put(c2) {"k":2}"#),
        ("both in one delta", &[&[r#"{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"k\":1}"}}"#, r#"{"index":1,"id":"c2","function":{"name":"put","arguments":"{\"k\":2}"}}"#]],
            r#"call get(c1) {"k":1} | call put(c2) {"k":2}"#),
        ("by id at the same index", &[&[r#"{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"k\":1}"}}"#], &[r#"{"index":0,"id":"c2","function":{"name":"get","arguments":"{\"k\""}}"#], &[r#"{"index":0,"id":"c2","function":{"arguments":":2}"}}"#]],
            r#"call get(c1) {"k":1} | call get(c2) {"k":2}"#),
        ("the id and the name on every delta", &[&[r#"{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"k\""}}"#], &[r#"{"index":0,"id":"c1","function":{"name":"get","arguments":":1}"}}"#]],
            r#"call get(c1) {"k":1}"#),
        ("no index, by id", &[&[r#"{"id":"c1","function":{"name":"get","arguments":"{\"k\":1}"}}"#], &[r#"{"id":"c2","function":{"name":"get","arguments":"{\"k\":2}"}}"#]],
            r#"call get(c1) {"k":1} | call get(c2) {"k":2}"#),
        ("no index, in pieces", &[&[r#"{"id":"c1","function":{"name":"get","arguments":"{\"k\""}}"#], &[r#"{"function":{"arguments":":1}"}}"#]],
            r#"call get(c1) {"k":1}"#),
        ("no index and no id, by name", &[&[r#"{"function":{"name":"get","arguments":"{\"k\""}}"#], &[r#"{"function":{"arguments":":1}"}}"#], &[r#"{"function":{"name":"put","arguments":"{}"}}"#]],
            r#"call get(?) {"k":1} | call put(?) {}"#),
        ("no index, both in one delta", &[&[r#"{"id":"c1","function":{"name":"get","arguments":"{\"k\":1}"}}"#, r#"{"id":"c2","function":{"name":"put","arguments":"{\"k\":2}"}}"#]],
            r#"call get(c1) {"k":1} | call put(c2) {"k":2}"#),
        ("an empty id", &[&[r#"{"index":0,"id":"","function":{"name":"get","arguments":"{\"k\""}}"#], &[r#"{"index":0,"id":"","function":{"arguments":":1}"}}"#]],
            r#"call get(?) {"k":1}"#),
        ("the name late", &[&[r#"{"index":0,"id":"c1","function":{"arguments":"{\"k\""}}"#], &[r#"{"index":0,"function":{"name":"get","arguments":":1}"}}"#]],
            r#"call get(c1) {"k":1}"#),
        ("an empty name first", &[&[r#"{"index":0,"id":"c1","function":{"name":"","arguments":""}}"#], &[r#"{"index":0,"function":{"name":"get","arguments":"{\"k\":1}"}}"#]],
            r#"call get(c1) {"k":1}"#),
        ("arguments as an object", &[&[r#"{"index":0,"id":"c1","function":{"name":"get","arguments":{"k":1}}}"#]],  r#"call get(c1) {"k":1}"#),
        ("no arguments",           &[&[r#"{"index":0,"id":"c1","function":{"name":"get"}}"#]],                     "call get(c1) {}"),
        ("empty arguments",        &[&[r#"{"index":0,"id":"c1","function":{"name":"get","arguments":""}}"#]],       "call get(c1) {}"),
        ("null arguments",         &[&[r#"{"index":0,"id":"c1","function":{"name":"get","arguments":null}}"#]],     "call get(c1) {}"),
        ("broken arguments",       &[&[r#"{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"k\": 13"}}"#]], r#"call get(c1) broken '{"k": 13'"#),
        ("a very long opaque id",  &[&[r#"{"index":0,"id":"call_x__thought__QUJD","function":{"name":"get","arguments":"{}"}}"#]], "call get(call_x__thought__QUJD) {}"),
        ("a free-form tool",       &[&[r#"{"index":0,"id":"c1","type":"custom","custom":{"name":"get","input":"{}"}}"#]], "call get(c1) {}"),
        ("an empty `custom` beside it", &[&[r#"{"index":0,"id":"c1","custom":{"name":"","input":""},"function":{"name":"get","arguments":"{\"k\":1}"}}"#]], r#"call get(c1) {"k":1}"#),
    ];
    every(cases, |(name, deltas, expected)| {
        let deltas: Vec<String> = deltas.iter().map(|entries| calls(entries)).collect();
        ReplyReader::chat().check(name, &chat(&deltas.iter().map(String::as_str).collect::<Vec<_>>()), expected)
    });
}

#[test]
fn d15_chat_calls_in_a_whole_body() {
    #[rustfmt::skip]
    let cases = [
        ("two",                  calls(&[r#"{"id":"c1","type":"function","function":{"name":"get","arguments":"{\"k\":1}"}}"#, r#"{"id":"c2","type":"function","function":{"name":"put","arguments":"{}"}}"#]), r#"call get(c1) {"k":1} | call put(c2) {}"#),
        ("without ids",          calls(&[r#"{"function":{"name":"get","arguments":"{\"k\":1}"}}"#, r#"{"function":{"name":"get","arguments":"{\"k\":2}"}}"#]), r#"call get(?) {"k":1} | call get(?) {"k":2}"#),
        ("with empty ids",       calls(&[r#"{"id":"","function":{"name":"get","arguments":"{\"k\":1}"}}"#, r#"{"id":"","function":{"name":"get","arguments":"{\"k\":2}"}}"#]), r#"call get(?) {"k":1} | call get(?) {"k":2}"#),
        ("all with index 0",     calls(&[r#"{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"k\":1}"}}"#, r#"{"index":0,"id":"c2","function":{"name":"get","arguments":"{\"k\":2}"}}"#]), r#"call get(c1) {"k":1} | call get(c2) {"k":2}"#),
        ("objects",              calls(&[r#"{"id":"c1","function":{"name":"get","arguments":{"b":1,"a":2}}}"#]),                       r#"call get(c1) {"b":1,"a":2}"#),
        ("the old function_call", r#"{"content":null,"function_call":{"name":"get","arguments":"{\"k\":1}"}}"#.to_owned(),              r#"call get(?) {"k":1}"#),
        ("an empty one is padding", r#"{"content":"A","function_call":{"name":"","arguments":""},"tool_calls":[]}"#.to_owned(),        "text 'A'"),
        ("null lists",           r#"{"content":"A","function_call":null,"tool_calls":null}"#.to_owned(),                               "text 'A'"),
    ];
    every(cases, |(name, message, expected)| ReplyReader::chat().check(name, &chat_whole(&message), expected));
}

#[test]
fn d15_the_old_function_call_in_pieces() {
    let stream = chat(&[
        r#"{"content":null,"function_call":{"name":"get","arguments":""}}"#,
        r#"{"function_call":{"arguments":"{\"k\""}}"#,
        r#"{"function_call":{"arguments":":1}"}}"#,
    ]);
    ReplyReader::chat().check("function_call", &stream, r#"call get(?) {"k":1}"#).unwrap();
}

#[test]
fn d15_a_seal_on_a_call_stays_on_it() {
    #[rustfmt::skip]
    let cases = [
        ("extra_content",         r#"{"index":0,"id":"c1","function":{"name":"get","arguments":"{}"},"extra_content":{"google":{"thought_signature":"Ts"}}}"#),
        ("beside the function",   r#"{"index":0,"id":"c1","function":{"name":"get","arguments":"{}"},"thought_signature":"Ts"}"#),
    ];
    every(cases, |(name, entry)| {
        let expected = "call get(c1) {} sig=Ts | call put(c2) {}";
        let message = calls(&[entry, r#"{"index":1,"id":"c2","function":{"name":"put","arguments":"{}"}}"#]);
        ReplyReader::chat().check_both(name, &chat(&[&message]), &chat_whole(&message), expected)
    });
}

#[test]
fn d15_calls_on_every_protocol() {
    use Protocol::{Anthropic, Bedrock, Cohere, Gemini, Ollama, OpenaiResponses};
    const F1: &str = r#"{"id":"fc_1","type":"function_call","call_id":"c1","name":"get","arguments":"{\"k\":1}"}"#;
    const F2: &str = r#"{"id":"fc_2","type":"function_call","call_id":"c2","name":"put","arguments":""}"#;
    let added = |index: u32, id: &str, name: &str| {
        format!(
            r#"{{"type":"response.output_item.added","output_index":{index},"item":{{"type":"function_call","call_id":"{id}","name":"{name}","arguments":""}}}}"#
        )
    };
    let done = |index: u32, item: &str| {
        format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#)
    };
    let delta = |index: u32, text: &str| {
        format!(r#"{{"type":"response.function_call_arguments.delta","output_index":{index},"delta":"{text}"}}"#)
    };
    let events = |list: &[String]| events_of_response(&list.iter().map(String::as_str).collect::<Vec<_>>());
    let two = r#"call get(c1) {"k":1} | call put(c2) {}"#;
    #[rustfmt::skip]
    let cases: &[(&str, Protocol, Vec<u8>, Vec<u8>, &str)] = &[
        ("by output_index, in turns", OpenaiResponses,
            events(&[added(0, "c1", "get"), added(1, "c2", "put"), delta(0, r#"{\"k\""#), delta(1, ""), delta(0, ":1}"), done(0, F1), done(1, F2)]), response_whole(&format!("[{F1},{F2}]")), two),
        ("arguments only when done", OpenaiResponses,
            events(&[added(0, "c1", "get"), r#"{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"k\":1}"}"#.into(), done(0, F1), done(1, F2)]), response_whole(&format!("[{F1},{F2}]")), two),
        ("no delta at all", OpenaiResponses, events(&[done(0, F1), done(1, F2)]), response_whole(&format!("[{F1},{F2}]")), two),
        ("broken arguments", OpenaiResponses, events(&[done(0, r#"{"type":"function_call","call_id":"c1","name":"get","arguments":"{\"k\""}"#)]), response_whole(r#"[{"type":"function_call","call_id":"c1","name":"get","arguments":"{\"k\""}]"#), r#"call get(c1) broken '{"k"'"#),
        ("by index, no arguments", Anthropic,
            messages(&[r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"get","input":{}}}"#, r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"k\""}}"#, r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":":1}"}}"#, r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c2","name":"put","input":{}}}"#, r#"{"type":"content_block_stop","index":1}"#]),
            messages_whole(r#"[{"type":"tool_use","id":"c1","name":"get","input":{"k":1}},{"type":"tool_use","id":"c2","name":"put","input":{}}]"#), two),
        ("the input in its start", Anthropic,
            messages(&[r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"get","input":{"k":1}}}"#, r#"{"type":"content_block_stop","index":0}"#]),
            messages_whole(r#"[{"type":"tool_use","id":"c1","name":"get","input":{"k":1}}]"#), r#"call get(c1) {"k":1}"#),
        ("whole parts", Gemini, gemini(&[r#"[{"functionCall":{"id":"c1","name":"get","args":{"k":1}}}]"#, r#"[{"functionCall":{"id":"c2","name":"put"}}]"#]),
            gemini_whole(r#"[{"functionCall":{"id":"c1","name":"get","args":{"k":1}}},{"functionCall":{"id":"c2","name":"put"}}]"#), two),
        ("without ids", Gemini, gemini(&[r#"[{"functionCall":{"name":"get","args":{"k":1}}},{"functionCall":{"name":"get","args":{"k":2}}}]"#]),
            gemini_whole(r#"[{"functionCall":{"name":"get","args":{"k":1}}},{"functionCall":{"name":"get","args":{"k":2}}}]"#), r#"call get(?) {"k":1} | call get(?) {"k":2}"#),
        ("one a line", Ollama, ollama(&[r#"{"tool_calls":[{"function":{"name":"get","arguments":{"k":1}}}]}"#, r#"{"tool_calls":[{"function":{"name":"put","arguments":{}}}]}"#]),
            ollama_whole(r#"{"content":"","tool_calls":[{"function":{"name":"get","arguments":{"k":1}}},{"function":{"name":"put","arguments":{}}}]}"#), r#"call get(?) {"k":1} | call put(?) {}"#),
        ("by block", Bedrock,
            converse(&[r#"{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"c1","name":"get"}}}}"#, r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"k\":1}"}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
                r#"{"contentBlockStart":{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"c2","name":"put"}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":1}}"#]),
            converse_whole(r#"[{"toolUse":{"toolUseId":"c1","name":"get","input":{"k":1}}},{"toolUse":{"toolUseId":"c2","name":"put","input":{}}}]"#), two),
        ("start, delta, end", Cohere,
            cohere(&[r#"{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"c1","function":{"name":"get","arguments":"{\"k\""}}}}}"#, r#"{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":":1}"}}}}}"#, r#"{"type":"tool-call-end","index":0}"#,
                r#"{"type":"tool-call-start","index":1,"delta":{"message":{"tool_calls":{"id":"c2","function":{"name":"put","arguments":""}}}}}"#, r#"{"type":"tool-call-end","index":1}"#]),
            cohere_whole(r#"{"tool_calls":[{"id":"c1","function":{"name":"get","arguments":"{\"k\":1}"}},{"id":"c2","function":{"name":"put","arguments":""}}]}"#), two),
    ];
    every(cases, |(name, protocol, stream, whole, expected)| {
        ReplyReader::generic(*protocol).check_both(name, stream, whole, expected)
    });
}

fn ids(reply: &Reply) -> Vec<String> {
    let calls = reply.blocks.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some(match &call.id {
            CallId::Given(id) => format!("given {id}"),
            CallId::Invented(id) => id.clone(),
        }),
        _ => None,
    });
    calls.collect()
}

#[test]
fn d15_invented_ids_are_stable_and_distinct() {
    #[rustfmt::skip]
    let cases = [
        (Protocol::OpenaiChat, chat(&[r#"{"tool_calls":[{"index":0,"function":{"name":"get","arguments":"{}"}},{"index":1,"function":{"name":"get","arguments":"{}"}}]}"#]),
            chat_whole(r#"{"tool_calls":[{"function":{"name":"get","arguments":"{}"}},{"function":{"name":"get","arguments":"{}"}}]}"#)),
        (Protocol::Gemini, gemini(&[r#"[{"functionCall":{"name":"get"}}]"#, r#"[{"functionCall":{"name":"get"}}]"#]), gemini_whole(r#"[{"functionCall":{"name":"get"}},{"functionCall":{"name":"get"}}]"#)),
        (Protocol::Ollama, ollama(&[r#"{"tool_calls":[{"function":{"name":"get","arguments":{}}}]}"#, r#"{"tool_calls":[{"function":{"name":"get","arguments":{}}}]}"#]),
            ollama_whole(r#"{"tool_calls":[{"function":{"name":"get","arguments":{}}},{"function":{"name":"get","arguments":{}}}]}"#)),
    ];
    every(cases, |(protocol, stream, whole)| {
        let reader = ReplyReader::generic(protocol);
        let first = ids(&reader.reply(&stream));
        let name = format!("{protocol} {first:?}");
        same(&name, (first.len(), first[0].is_empty(), first[0] == first[1]), (2, false, false))?;
        for size in [1, 3, 64] {
            same(&name, ids(&decode(protocol, &reader.rules, &stream, size).0), first.clone())?;
        }
        same(&format!("{name}: a whole body"), ids(&reader.reply(&whole)), first.clone())?;
        let printed = as_json(&reader.reply(&stream))["blocks"][0]["id"].clone();
        same(&format!("{name}: printed"), printed, first[0].clone().into())
    });
}

#[test]
fn d15_tool_tokens_in_thinking_are_reported_and_not_called() {
    const KIMI: &str = "a<|tool_calls_section_begin|><|tool_call_begin|>functions.get:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>b";
    const QWEN: &str = r#"a<tool_call>{"name":"get","arguments":{}}</tool_call>b"#;
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let thinking = |text: &str| messages_whole(&format!(r#"[{{"type":"thinking","thinking":{}}}]"#, quoted(text)));
    let raw = |text: &str| {
        response_whole(&format!(
            r#"[{{"id":"r","type":"reasoning","summary":[],"content":[{{"type":"reasoning_text","text":{}}}]}}]"#,
            quoted(text)
        ))
    };
    let preopened = ReplyReader::chat().with(|rules| rules.read.tags.start = TagStart::Prefilled);
    #[rustfmt::skip]
    let cases = [
        ("Kimi, a field",        ReplyReader::dialect("kimi"),           chat(&[&format!(r#"{{"reasoning_content":{}}}"#, quoted(KIMI))])),
        ("Kimi, whole",          ReplyReader::dialect("kimi"),           chat_whole(&format!(r#"{{"content":"","reasoning_content":{}}}"#, quoted(KIMI)))),
        ("Kimi, unknown host",   ReplyReader::chat(),                    chat(&[&format!(r#"{{"reasoning":{}}}"#, quoted(KIMI))])),
        ("Kimi, details",        ReplyReader::dialect("openrouter"),     chat(&[&format!(r#"{{"reasoning_details":[{{"type":"reasoning.text","text":{},"index":0}}]}}"#, quoted(KIMI))])),
        ("Kimi, tags",           ReplyReader::chat(),                    chat(&[&format!(r#"{{"content":{}}}"#, quoted(&format!("<think>{KIMI}</think>")))])),
        ("Kimi, preopened",      preopened,                         chat(&[&format!(r#"{{"content":{}}}"#, quoted(&format!("{KIMI}</think>")))])),
        ("Kimi, split marker",   ReplyReader::dialect("kimi"),           chat(&[r#"{"reasoning_content":"a<|tool_calls_sec"}"#, r#"{"reasoning_content":"tion_begin|>b"}"#])),
        ("Qwen, a field",        ReplyReader::dialect("qwen"),           chat(&[&format!(r#"{{"reasoning_content":{}}}"#, quoted(QWEN))])),
        ("Qwen, Ollama",         ReplyReader::generic(Protocol::Ollama), ollama(&[&format!(r#"{{"thinking":{}}}"#, quoted(QWEN))])),
        ("Kimi, its Messages",   ReplyReader::dialect("kimi-anthropic"), thinking(KIMI)),
        ("Kimi, vLLM Responses", ReplyReader::dialect("vllm-responses"), raw(KIMI)),
    ];
    every(cases, |(name, reader, bytes)| {
        let reply = reader.reply(&bytes);
        let name = format!("{name}: {}", drawn(&reply));
        same(&name, reply.blocks.iter().any(|block| matches!(block, Block::ToolCall(_))), false)?;
        same(&name, notices(&reply), vec!["tool_markup"])
    });
}

#[test]
fn d15_ordinary_thinking_is_not_reported() {
    let stream = chat(&[
        r#"{"reasoning_content":"a < b, tool_calls, <tool>"}"#,
        r#"{"tool_calls":[{"index":0,"id":"c1","function":{"name":"get","arguments":"{}"}}]}"#,
    ]);
    let reply = ReplyReader::chat().reply(&stream);
    assert_eq!(
        (notices(&reply), drawn(&reply)),
        (Vec::new(), "think reasoning_content 'a < b, tool_calls, <tool>' | call get(c1) {}".to_owned())
    );
}
