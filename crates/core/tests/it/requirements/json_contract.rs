//! product.md, "aside decode" and "Events": the JSON that other programs rely on. Keys
//! that are null, empty or false may be omitted, so they are not compared.

use aside_core::block::Origin;
use aside_core::event::{Event, Sink};
use aside_core::fold::Fold;
use aside_core::json::{self, JsonLayout};
use aside_core::protocol::Protocol;
use aside_core::tags::TagStart;
use aside_core::wire::Decoder;
use serde_json::{Value, json};

use super::{
    ReplyReader, as_json, chat, chat_whole, converse_whole, events_of_response, every, gemini_whole, messages,
    messages_whole, ollama_whole, parsed, response_whole, same, sse,
};

/// The value without members that may be omitted.
fn pruned(value: Value) -> Value {
    let void = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    };
    match value {
        Value::Object(members) => members
            .into_iter()
            // Content of the provider or the model is compared exactly.
            .map(|(key, value)| if key == "native" || key == "arguments" { (key, value) } else { (key, pruned(value)) })
            .filter(|(key, value)| key == "arguments" || !void(value))
            .collect(),
        Value::Array(list) => list.into_iter().map(pruned).collect(),
        other => other,
    }
}

#[test]
fn one_of_each_block() {
    use Protocol::{Anthropic, Bedrock, Gemini, Ollama, OpenaiChat, OpenaiResponses};
    const ITEM: &str = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"**Plan**\n\nLook up"},{"type":"summary_text","text":"Done."}],"encrypted_content":"gAAA"}"#;
    #[rustfmt::skip]
    let cases: &[(&str, Protocol, Vec<u8>, Value)] = &[
        ("thinking",        OpenaiChat, chat_whole(r#"{"reasoning_content":"Look"}"#),     json!({"type": "thinking", "thought": "Look", "sourceField": "reasoning_content"})),
        ("signed thinking", Anthropic,  messages_whole(r#"[{"type":"thinking","thinking":"Look","signature":"Sg"}]"#), json!({"type": "thinking", "thought": "Look", "sourceField": "thinking", "signature": "Sg"})),
        ("empty and signed", Anthropic, messages_whole(r#"[{"type":"thinking","thinking":"","signature":"Sg"}]"#),     json!({"type": "thinking", "sourceField": "thinking", "signature": "Sg", "isHidden": true})),
        ("redacted thinking", Anthropic, messages_whole(r#"[{"type":"redacted_thinking","data":"Rd"}]"#),              json!({"type": "thinking", "sourceField": "redacted_thinking", "encrypted": "Rd", "isHidden": true})),
        ("redacted, Bedrock", Bedrock,  converse_whole(r#"[{"reasoningContent":{"redactedContent":"UmQ="}}]"#),        json!({"type": "thinking", "sourceField": "reasoningContent", "encrypted": "UmQ=", "isHidden": true})),
        ("a summary",       OpenaiResponses, response_whole(&format!("[{ITEM}]")), json!({"type": "thinking", "thought": "**Plan**\n\nLook up\n\nDone.", "sourceField": "reasoning", "encrypted": "gAAA", "id": "rs_1",
            "summary": [{"title": "Plan", "content": "Look up"}, {"content": "Done."}], "native": parsed(ITEM)})),
        ("an encrypted detail", OpenaiChat, chat_whole(r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"gAAA","id":"rs_1","index":0}]}"#),
            json!({"type": "thinking", "sourceField": "reasoning_details", "encrypted": "gAAA", "id": "rs_1", "isHidden": true, "native": {"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "index": 0}})),
        ("a signed thought", Gemini,    gemini_whole(r#"[{"text":"Look","thought":true,"thoughtSignature":"Sg"}]"#), json!({"type": "thinking", "thought": "Look", "sourceField": "thought", "signature": "Sg"})),
        ("text",            OpenaiChat, chat_whole(r#"{"content":"A\n\"b\""}"#),                                     json!({"type": "text", "text": "A\n\"b\""})),
        ("signed text",     Gemini,     gemini_whole(r#"[{"text":"A","thoughtSignature":"Sg"}]"#),                   json!({"type": "text", "text": "A", "signature": "Sg"})),
        ("an empty signed part", Gemini, gemini_whole(r#"[{"text":"","thoughtSignature":"Sg"}]"#),                   json!({"type": "text", "text": "", "signature": "Sg"})),
        ("a call",          OpenaiChat, chat_whole(r#"{"tool_calls":[{"id":"c1","function":{"name":"get","arguments":"{\"b\": [1, 2], \"a\": null}"}}]}"#), json!({"type": "toolCall", "id": "c1", "name": "get", "arguments": {"b": [1, 2], "a": null}})),
        ("a signed call",   Gemini,     gemini_whole(r#"[{"functionCall":{"id":"c1","name":"get","args":{"k":1}},"thoughtSignature":"Sg"}]"#), json!({"type": "toolCall", "id": "c1", "name": "get", "arguments": {"k": 1}, "signature": "Sg"})),
        ("no arguments",    OpenaiChat, chat_whole(r#"{"tool_calls":[{"id":"c1","function":{"name":"get","arguments":""}}]}"#), json!({"type": "toolCall", "id": "c1", "name": "get", "arguments": {}})),
        ("no arguments, Gemini", Gemini, gemini_whole(r#"[{"functionCall":{"id":"c1","name":"get"}}]"#),             json!({"type": "toolCall", "id": "c1", "name": "get", "arguments": {}})),
        ("broken arguments", OpenaiChat, chat_whole(r#"{"tool_calls":[{"id":"c1","function":{"name":"get","arguments":"{\"k\": 13"}}]}"#), json!({"type": "toolCall", "id": "c1", "name": "get", "arguments": "{\"k\": 13"})),
        ("objects, Ollama", Ollama,     ollama_whole(r#"{"tool_calls":[{"id":"c1","function":{"name":"get","arguments":{"k":1}}}]}"#), json!({"type": "toolCall", "id": "c1", "name": "get", "arguments": {"k": 1}})),
        ("something else",  Anthropic,  messages_whole(r#"[{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q":""}}]"#), json!({"type": "unmodelled", "native": {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": ""}}})),
    ];
    every(cases, |(name, protocol, bytes, expected)| {
        let blocks = as_json(&ReplyReader::generic(*protocol).reply(bytes))["blocks"].clone();
        same(&format!("{name} ({protocol})"), pruned(blocks), json!([pruned(expected.clone())]))
    });
}

#[test]
fn d3_a_detail_with_text_has_its_id_too() {
    let entry = r#"{"type":"reasoning.text","text":"Look","signature":"Sg","id":"r1","format":"f","index":0}"#;
    let expected = json!([{"type": "thinking", "thought": "Look", "sourceField": "reasoning_details", "signature": "Sg", "id": "r1", "native": parsed(entry)}]);
    let message = format!(r#"{{"reasoning_details":[{entry}]}}"#);
    for bytes in [chat(&[&message]), chat_whole(&message)] {
        assert_eq!(pruned(as_json(&ReplyReader::chat().reply(&bytes))["blocks"].clone()), expected);
    }
}

#[test]
fn d15_keys_of_arguments_keep_their_order() {
    let body = chat_whole(
        r#"{"tool_calls":[{"id":"c1","function":{"name":"get","arguments":"{\"z\":1,\"a\":{\"y\":2,\"b\":3}}"}}]}"#,
    );
    let line = json::reply(&ReplyReader::chat().reply(&body), None, None, JsonLayout::OneLine);
    assert!(line.contains(r#""arguments":{"z":1,"a":{"y":2,"b":3}}"#), "{line}");
}

#[test]
fn d11_an_unmodelled_block_keeps_its_position() {
    let content = r#"[{"type":"text","text":"A"},{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"text","text":"B"}]"#;
    let blocks = as_json(&ReplyReader::generic(Protocol::Anthropic).reply(&messages_whole(content)))["blocks"].clone();
    let kinds: Vec<&str> = blocks.as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "unmodelled", "text"]);
    let chunk = chat_whole(
        r#"{"content":[{"type":"text","text":"A"},{"type":"document_url","document_url":"u"},{"type":"text","text":"B"}]}"#,
    );
    let blocks = as_json(&ReplyReader::dialect("mistral").reply(&chunk))["blocks"].clone();
    assert_eq!(
        pruned(blocks[1].clone()),
        json!({"type": "unmodelled", "native": {"type": "document_url", "document_url": "u"}})
    );
}

#[test]
fn the_reply_around_the_blocks() {
    let usage = r#"{"prompt_tokens":5,"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":3},"prompt_tokens_details":{"cached_tokens":2}}"#;
    #[rustfmt::skip]
    let cases = [
        ("a good answer", format!(r#"{{"model":"m-1","choices":[{{"message":{{"content":"A"}},"finish_reason":"stop"}}],"usage":{usage}}}"#).into_bytes(),
            json!({"role": "assistant", "blocks": [{"type": "text", "text": "A"}], "usage": {"input": 5, "output": 9, "reasoning": 3, "cached": 2}, "finish": "stop", "model": "m-1"})),
        ("an error", br#"{"error":{"message":"No key","code":"invalid_api_key","status_code":401}}"#.to_vec(),
            json!({"role": "assistant", "error": {"message": "No key", "code": "invalid_api_key", "status": 401}})),
        ("a field that stayed empty", br#"{"choices":[{"message":{"content":"A","reasoning_content":""},"finish_reason":"stop"}]}"#.to_vec(),
            json!({"role": "assistant", "blocks": [{"type": "text", "text": "A"}], "finish": "stop", "reasoningSeen": "reasoning_content"})),
    ];
    every(cases, |(name, bytes, expected)| same(name, pruned(as_json(&ReplyReader::chat().reply(&bytes))), expected));
    let cut = as_json(&ReplyReader::chat().reply(&sse([r#"{"choices":[{"index":0,"delta":{"content":"A"}}]}"#])));
    assert_eq!((cut["finish"].clone(), cut["notices"][0]["code"].clone()), (Value::Null, "cut_off".into()));
    assert!(cut["notices"][0]["message"].as_str().is_some_and(|message| !message.is_empty()), "{cut}");
}

#[test]
fn origin_file_and_layout() {
    let reply = ReplyReader::chat().reply(&chat_whole(r#"{"content":"A"}"#));
    let origin = Origin::default()
        .with_provider("deepseek".to_owned())
        .with_dialect("deepseek".to_owned())
        .with_model("m".to_owned());
    let line = json::reply(&reply, Some(&origin), Some("a.sse"), JsonLayout::OneLine);
    assert!(!line.contains('\n'), "several files: one compact object a line");
    let value = parsed(&line);
    assert_eq!(pruned(value["origin"].clone()), json!({"provider": "deepseek", "dialect": "deepseek", "model": "m"}));
    assert_eq!(value["file"], "a.sse");
    let alone = parsed(&json::reply(&reply, None, None, JsonLayout::OneLine));
    assert!(alone.get("origin").is_none() && alone.get("file").is_none(), "only when a dialect was given: {alone}");
    let indented = json::reply(&reply, Some(&origin), Some("a.sse"), JsonLayout::Indented);
    assert_eq!(parsed(&indented), value, "the layout changes nothing else");
}

/// The output of `decode --events`, with adjacent deltas joined.
#[derive(Default)]
struct Printer {
    fold: Fold,
    lines: Vec<Value>,
}

impl Sink for Printer {
    fn take(&mut self, event: Event<'_>) {
        self.fold.take(event);
        let Some(line) = json::event(&event, &self.fold) else { return };
        assert!(!line.contains('\n'), "one a line: {line}");
        let mut line = parsed(&line);
        if line["event"] == "grew"
            && let Some(last) =
                self.lines.last_mut().filter(|last| last["event"] == "grew" && last["block"] == line["block"])
        {
            last["text"] = format!("{}{}", last["text"].as_str().unwrap(), line["text"].as_str().unwrap()).into();
            return;
        }
        if line["event"] == "sealed" {
            // There may be more members, but these are required.
            line = json!({"event": "sealed", "block": line["block"]});
        }
        self.lines.push(pruned(line));
    }
}

fn printed(reader: &ReplyReader, bytes: &[u8]) -> Printer {
    let mut printer = Printer::default();
    let mut decoder = Decoder::new(reader.protocol, &reader.rules);
    decoder.push(bytes, &mut printer);
    decoder.finish(&mut printer).unwrap();
    printer
}

fn check_events(reader: &ReplyReader, bytes: &[u8], expected: &[Value]) {
    let got = printed(reader, bytes).lines;
    let got: Vec<String> = got.iter().map(Value::to_string).collect();
    let wanted: Vec<String> = expected.iter().map(|line| pruned(line.clone()).to_string()).collect();
    assert_eq!(got, wanted, "\n{}\nis not\n{}", got.join("\n"), wanted.join("\n"));
}

#[test]
fn d6_the_events_of_thinking_an_answer_and_a_call() {
    let stream = sse([
        r#"{"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"Look "}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"reasoning_content":"up."}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"A"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"k\""}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":5,"completion_tokens":9}}"#,
        "[DONE]",
    ]);
    check_events(
        &ReplyReader::chat(),
        &stream,
        &[
            json!({"event": "opened", "block": 0, "type": "thinking", "sourceField": "reasoning_content"}),
            json!({"event": "grew", "block": 0, "text": "Look up."}),
            json!({"event": "closed", "block": 0, "value": {"type": "thinking", "thought": "Look up.", "sourceField": "reasoning_content"}}),
            json!({"event": "opened", "block": 1, "type": "text"}),
            json!({"event": "grew", "block": 1, "text": "A"}),
            json!({"event": "closed", "block": 1, "value": {"type": "text", "text": "A"}}),
            json!({"event": "opened", "block": 2, "type": "toolCall", "id": "c1", "name": "get"}),
            json!({"event": "grew", "block": 2, "text": "{\"k\":1}"}),
            json!({"event": "usage", "input": 5, "output": 9}),
            json!({"event": "closed", "block": 2, "value": {"type": "toolCall", "id": "c1", "name": "get", "arguments": {"k": 1}}}),
            json!({"event": "ended", "finish": "tool_calls"}),
        ],
    );
}

#[test]
fn d10_the_events_of_a_summary() {
    let item = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"**One**"},{"type":"summary_text","text":"Two"}],"encrypted_content":"E"}"#;
    let part = |index: u32| {
        format!(
            r#"{{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":{index},"part":{{"type":"summary_text","text":""}}}}"#
        )
    };
    let grew = |index: u32, text: &str| {
        format!(
            r#"{{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":{index},"delta":"{text}"}}"#
        )
    };
    let done = format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#);
    let stream = events_of_response(&[
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
        &part(0),
        &grew(0, "**One**"),
        &part(1),
        &grew(1, "Two"),
        &done,
    ]);
    check_events(
        &ReplyReader::generic(Protocol::OpenaiResponses),
        &stream,
        &[
            json!({"event": "opened", "block": 0, "type": "thinking", "sourceField": "reasoning", "id": "rs_1"}),
            json!({"event": "item", "block": 0, "index": 0}),
            json!({"event": "grew", "block": 0, "text": "**One**"}),
            json!({"event": "item", "block": 0, "index": 1}),
            json!({"event": "grew", "block": 0, "text": "Two"}),
            json!({"event": "sealed", "block": 0}),
            json!({"event": "closed", "block": 0, "value": {"type": "thinking", "thought": "**One**\n\nTwo", "sourceField": "reasoning", "encrypted": "E", "id": "rs_1",
                "summary": [{"title": "One"}, {"content": "Two"}], "native": parsed(item)}}),
            json!({"event": "ended", "finish": "stop"}),
        ],
    );
}

#[test]
fn d9_the_event_of_a_refiled_block() {
    let reader = ReplyReader::chat().with(|rules| rules.read.tags.start = TagStart::Prefilled);
    let stream = sse([r#"{"choices":[{"index":0,"delta":{"content":"Just A."}}]}"#, "[DONE]"]);
    let lines = printed(&reader, &stream).lines;
    let place = |wanted: Value| lines.iter().position(|line| *line == wanted);
    let refiled = place(json!({"event": "refiled", "block": 0, "to": "text"}));
    let closed = place(json!({"event": "closed", "block": 0, "value": {"type": "text", "text": "Just A."}}));
    assert!(lines[0]["type"] == "thinking" && refiled.is_some() && refiled < closed, "{lines:?}");
}

#[test]
fn d3_a_seal_may_come_after_its_block_closed() {
    let stream = chat(&[
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}"#,
        r#"{"content":"A"}"#,
        r#"{"reasoning_details":[{"type":"reasoning.text","signature":"Sg","index":0}]}"#,
    ]);
    let printer = printed(&ReplyReader::chat(), &stream);
    let place = |event: &str| printer.lines.iter().position(|line| line["event"] == event && line["block"] == 0);
    assert!(place("closed") < place("sealed") && place("closed").is_some(), "{:?}", printer.lines);
    let blocks = as_json(&printer.fold.finish())["blocks"].clone();
    assert_eq!(blocks[0]["signature"], "Sg", "and the block has it");
}

#[test]
fn d16_the_events_of_a_failure() {
    let stream = sse([
        r#"{"choices":[{"index":0,"delta":{"content":"A"}}]}"#,
        r#"{"choices":["#,
        r#"{"error":{"message":"Over","code":"c","status_code":503}}"#,
    ]);
    let lines = printed(&ReplyReader::chat(), &stream).lines;
    let notice = lines.iter().find(|line| line["event"] == "notice").unwrap();
    assert_eq!((notice["code"].as_str(), notice["message"].is_string()), (Some("malformed"), true));
    assert_eq!(lines.last().unwrap()["event"], "ended");
    assert_eq!(lines.last().unwrap()["error"], json!({"message": "Over", "code": "c", "status": 503}));
}

#[test]
fn every_block_is_opened_and_closed_once_and_numbered_from_zero() {
    use super::scripted_replies::WireFormat;
    every(WireFormat::ALL, |wire| {
        for script in wire.scripts() {
            let printer = printed(&wire.reader(), &wire.frames(script, 3).concat());
            let of = |event: &str| {
                printer.lines.iter().filter(|line| line["event"] == event).cloned().collect::<Vec<Value>>()
            };
            let numbers: Vec<u64> = of("opened").iter().map(|line| line["block"].as_u64().unwrap()).collect();
            same(&format!("{wire:?} {script:?}"), numbers, (0..script.len() as u64).collect())?;
            let mut closed: Vec<(u64, Value)> =
                of("closed").iter().map(|line| (line["block"].as_u64().unwrap(), line["value"].clone())).collect();
            closed.sort_by_key(|(block, _)| *block);
            let values: Vec<Value> = closed.into_iter().map(|(_, value)| value).collect();
            let blocks = pruned(as_json(&printer.fold.finish()))["blocks"].clone();
            same(&format!("{wire:?} {script:?}: closed as decoded"), Value::from(values), blocks)?;
        }
        Ok(())
    });
}

/// If the provider announces thinking before there is any, so do we: hidden thinking is
/// timed from there. If nothing follows, the block is closed without a value and is not
/// in the reply.
#[test]
fn d4_thinking_without_content_has_no_value() {
    #[rustfmt::skip]
    let cases = [
        ("empty thinking", Protocol::Anthropic, messages(&[r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#, r#"{"type":"content_block_stop","index":0}"#])),
        ("blank field",    Protocol::OpenaiChat, chat(&[r#"{"reasoning_content":" \n"}"#])),
        ("blank part",     Protocol::Gemini, gemini_whole(r#"[{"text":" ","thought":true}]"#)),
        ("empty thinking", Protocol::Bedrock, converse_whole(r#"[{"reasoningContent":{"reasoningText":{"text":""}}}]"#)),
        ("empty thinking", Protocol::Cohere, super::cohere_whole(r#"{"content":[{"type":"thinking","thinking":""}]}"#)),
    ];
    every(cases, |(name, protocol, bytes)| {
        let printer = printed(&ReplyReader::generic(protocol), &bytes);
        let of = |event: &str| printer.lines.iter().filter(|line| line["event"] == event).cloned().collect::<Vec<_>>();
        same(&format!("{name} ({protocol}): opened and closed"), of("opened").len(), of("closed").len())?;
        let values: Vec<Value> = of("closed").iter().map(|line| line["value"].clone()).collect();
        same(&format!("{name} ({protocol}): no value"), values.iter().all(Value::is_null), true)?;
        same(&format!("{name} ({protocol}): no block"), printer.fold.finish().blocks.len(), 0)
    });
}
