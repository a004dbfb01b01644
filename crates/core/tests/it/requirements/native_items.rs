//! D11 to D13: protocols with their own form of thinking.

use aside_core::protocol::Protocol;

use super::{
    ReplyReader, as_json, aws_event, chat, chat_whole, cohere, cohere_whole, converse, converse_whole, drawn, every,
    finish, gemini, gemini_whole, lines, messages, messages_whole, natives, ollama, ollama_whole, parsed, same, sse,
};
use crate::support::{text, thinking_texts};

/// A thinking block of a Messages stream, from its start to its stop.
fn thinking(index: u32, pieces: &[&str], signature: &str) -> String {
    let mut out = vec![format!(
        r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"thinking","thinking":"","signature":""}}}}"#
    )];
    for piece in pieces {
        out.push(format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"thinking_delta","thinking":"{piece}"}}}}"#));
    }
    if !signature.is_empty() {
        out.push(format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"signature_delta","signature":"{signature}"}}}}"#));
    }
    out.push(format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
    out.join("\n\ndata: ")
}

/// A block whose start event holds all of it.
fn whole_block(index: u32, block: &str) -> String {
    format!(
        "{{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{block}}}\n\ndata: {{\"type\":\"content_block_stop\",\"index\":{index}}}"
    )
}

#[test]
fn d11_anthropic_blocks() {
    const PING: &str = r#"{"type":"ping"}"#;
    #[rustfmt::skip]
    let cases: &[(&str, Vec<String>, &str, &str)] = &[
        ("thinking and its signature", vec![thinking(0, &["Look", " up", ""], "Sg")],
            r#"[{"type":"thinking","thinking":"Look up","signature":"Sg"}]"#, "think thinking 'Look up' sig=Sg"),
        ("a signature in the start", vec![whole_block(0, r#"{"type":"thinking","thinking":"Look","signature":"Sg"}"#)],
            r#"[{"type":"thinking","thinking":"Look","signature":"Sg"}]"#, "think thinking 'Look' sig=Sg"),
        ("no signature, as others imitate it", vec![thinking(0, &["Look"], "")],
            r#"[{"type":"thinking","thinking":"Look"}]"#, "think thinking 'Look'"),
        ("redacted_thinking", vec![whole_block(0, r#"{"type":"redacted_thinking","data":"R1"}"#), whole_block(1, r#"{"type":"redacted_thinking","data":"R2"}"#)],
            r#"[{"type":"redacted_thinking","data":"R1"},{"type":"redacted_thinking","data":"R2"}]"#, "think redacted_thinking '' enc=R1 | think redacted_thinking '' enc=R2"),
        ("an empty text with a signature", vec![thinking(0, &[], "Sg"), whole_block(1, r#"{"type":"text","text":"A"}"#)],
            r#"[{"type":"thinking","thinking":"","signature":"Sg"},{"type":"text","text":"A"}]"#, "think thinking '' sig=Sg | text 'A'"),
        ("two thoughts in a row are two units", vec![thinking(0, &["a"], "S0"), thinking(1, &["b"], "S1")],
            r#"[{"type":"thinking","thinking":"a","signature":"S0"},{"type":"thinking","thinking":"b","signature":"S1"}]"#, "think thinking 'a' sig=S0 | think thinking 'b' sig=S1"),
        ("pings anywhere", vec![PING.into(), thinking(0, &["a"], "Sg"), PING.into(), whole_block(1, r#"{"type":"text","text":"A"}"#), PING.into()],
            r#"[{"type":"thinking","thinking":"a","signature":"Sg"},{"type":"text","text":"A"}]"#, "think thinking 'a' sig=Sg | text 'A'"),
        ("white space before a thought", vec![whole_block(0, r#"{"type":"text","text":"\n\n"}"#), thinking(1, &["a"], "Sg")],
            r#"[{"type":"text","text":"\n\n"},{"type":"thinking","thinking":"a","signature":"Sg"}]"#, "text '⏎⏎' | think thinking 'a' sig=Sg"),
        ("interleaved with a tool that the provider runs", vec![thinking(0, &["a"], "S0"), whole_block(1, r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q":"x"}}"#),
                whole_block(2, r#"{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}"#), thinking(3, &["b"], "S1"), whole_block(4, r#"{"type":"text","text":"A"}"#)],
            r#"[{"type":"thinking","thinking":"a","signature":"S0"},{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q":"x"}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]},{"type":"thinking","thinking":"b","signature":"S1"},{"type":"text","text":"A"}]"#,
            r#"think thinking 'a' sig=S0 | unmodelled {"type":"server_tool_use","id":"s1","name":"web_search","input":{"q":"x"}} | unmodelled {"type":"web_search_tool_result","tool_use_id":"s1","content":[]} | think thinking 'b' sig=S1 | text 'A'"#),
        ("a block nobody knows", vec![whole_block(0, r#"{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}}"#), thinking(1, &["a"], "Sg")],
            r#"[{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}},{"type":"thinking","thinking":"a","signature":"Sg"}]"#,
            r#"unmodelled {"type":"fallback","from":{"model":"a"},"to":{"model":"b"}} | think thinking 'a' sig=Sg"#),
        ("no block at all", vec![], "[]", ""),
    ];
    every(cases, |(name, events, content, expected)| {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        ReplyReader::generic(Protocol::Anthropic).check_both(
            name,
            &messages(&events),
            &messages_whole(content),
            expected,
        )
    });
}

#[test]
fn d11_content_that_is_not_modelled_is_sent_back_too() {
    #[rustfmt::skip]
    let cases = [
        ("a caller on a call",       r#"{"type":"tool_use","id":"t1","name":"get","input":{"k":1},"caller":{"type":"code","tool_id":"s1"}}"#, "caller"),
        ("citations on text",        r#"{"type":"text","text":"A","citations":[{"url":"u"}]}"#,                                          "citations"),
        ("a new key on a thought",   r#"{"type":"thinking","thinking":"a","signature":"Sg","x_level":2}"#,                              "x_level"),
    ];
    every(cases, |(name, block, key)| {
        let reader = ReplyReader::generic(Protocol::Anthropic);
        for bytes in [messages(&[&whole_block(0, block)]), messages_whole(&format!("[{block}]"))] {
            let native = natives(&reader.reply(&bytes)).into_iter().next().unwrap_or_default();
            same(name, native[key].clone(), parsed(block)[key].clone())?;
        }
        Ok(())
    });
}

#[test]
fn d11_streams_that_repeat_or_break_off() {
    let reader = ReplyReader::generic(Protocol::Anthropic);
    let start = r#"{"type":"message_start","message":{"model":"m","content":[]}}"#;
    let begun = [
        start,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Look"}}"#,
    ];
    let twice =
        [start, start, &thinking(0, &["a"], "Sg"), r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#]
            .map(str::to_owned);
    reader.check("a proxy starts the message twice", &sse(twice), "think thinking 'a' sig=Sg").unwrap();
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let stream = [sse(begun), format!("event: error\ndata: {error}\n\n").into_bytes()].concat();
    reader.check("an error event keeps what came before", &stream, "think thinking 'Look'").unwrap();
    let failed = reader.reply(&stream).end.error.unwrap();
    assert_eq!((failed.message.as_str(), failed.code.as_deref()), ("Overloaded", Some("overloaded_error")));
    let failed = reader.reply(error.as_bytes()).end.error.unwrap();
    assert_eq!(failed.message, "Overloaded", "a whole body may be an error too");
    let reply = reader.reply(&sse(begun));
    assert_eq!((drawn(&reply).as_str(), finish(&reply)), ("think thinking 'Look'", None), "cut off inside a thought");
}

#[test]
fn d12_gemini_parts_and_their_signatures() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &str, &str)] = &[
        ("thought parts in pieces",       &[r#"[{"text":"Look","thought":true}]"#, r#"[{"text":" up","thought":true}]"#, r#"[{"text":"A"}]"#, r#"[{"text":"B"}]"#],
            r#"[{"text":"Look up","thought":true},{"text":"AB"}]"#, "think thought 'Look up' | text 'AB'"),
        ("a signature on a thought",      &[r#"[{"text":"Look","thought":true,"thoughtSignature":"Sg"}]"#], r#"[{"text":"Look","thought":true,"thoughtSignature":"Sg"}]"#, "think thought 'Look' sig=Sg"),
        ("on a text",                     &[r#"[{"text":"A","thoughtSignature":"Sg"}]"#],                   r#"[{"text":"A","thoughtSignature":"Sg"}]"#,                   "text 'A' sig=Sg"),
        ("on an empty part at the end",   &[r#"[{"text":"A"}]"#, r#"[{"text":"","thoughtSignature":"Sg"}]"#], r#"[{"text":"A"},{"text":"","thoughtSignature":"Sg"}]"#,     "text 'A' | text '' sig=Sg"),
        ("on a part with nothing else",   &[r#"[{"thoughtSignature":"Sg"}]"#],                              r#"[{"thoughtSignature":"Sg"}]"#,                              "text '' sig=Sg"),
        ("on an empty thought",           &[r#"[{"text":"","thought":true,"thoughtSignature":"Sg"}]"#],     r#"[{"text":"","thought":true,"thoughtSignature":"Sg"}]"#,     "think thought '' sig=Sg"),
        ("on the first of two calls",     &[r#"[{"functionCall":{"id":"f1","name":"get","args":{"k":1}},"thoughtSignature":"Sg"},{"functionCall":{"id":"f2","name":"get","args":{"k":2}}}]"#],
            r#"[{"functionCall":{"id":"f1","name":"get","args":{"k":1}},"thoughtSignature":"Sg"},{"functionCall":{"id":"f2","name":"get","args":{"k":2}}}]"#, r#"call get(f1) {"k":1} sig=Sg | call get(f2) {"k":2}"#),
        ("on a call without an id",       &[r#"[{"text":"a","thought":true}]"#, r#"[{"functionCall":{"name":"get","args":{}},"thoughtSignature":"Sg"}]"#],
            r#"[{"text":"a","thought":true},{"functionCall":{"name":"get","args":{}},"thoughtSignature":"Sg"}]"#, "think thought 'a' | call get(?) {} sig=Sg"),
        ("a signed part is not merged with an unsigned one", &[r#"[{"text":"A"}]"#, r#"[{"text":"B","thoughtSignature":"S1"}]"#, r#"[{"text":"C"}]"#],
            r#"[{"text":"A"},{"text":"B","thoughtSignature":"S1"},{"text":"C"}]"#, "text 'A' | text 'B' sig=S1 | text 'C'"),
        ("two signed parts are not merged", &[r#"[{"text":"A","thoughtSignature":"S1"}]"#, r#"[{"text":"B","thoughtSignature":"S2"}]"#],
            r#"[{"text":"A","thoughtSignature":"S1"},{"text":"B","thoughtSignature":"S2"}]"#, "text 'A' sig=S1 | text 'B' sig=S2"),
        ("an empty signature is none",    &[r#"[{"text":"A","thoughtSignature":""}]"#, r#"[{"text":"B"}]"#], r#"[{"text":"AB"}]"#, "text 'AB'"),
    ];
    every(cases, |(name, chunks, parts, expected)| {
        let reader = ReplyReader::generic(Protocol::Gemini);
        reader.check_both(name, &gemini(chunks), &gemini_whole(parts), expected)?;
        let array = gemini(chunks).strip_prefix(b"data: ").unwrap().to_vec();
        let array = format!("[{}]", String::from_utf8(array).unwrap().trim_end().replace("\n\ndata: ", "\n,\r\n"));
        reader.check(&format!("{name}, as one long array"), array.as_bytes(), expected)
    });
}

#[test]
fn d12_parts_that_are_neither_keep_their_signature() {
    #[rustfmt::skip]
    let cases = [
        ("executableCode",      r#"{"executableCode":{"language":"PYTHON","code":"1"},"thoughtSignature":"Sg"}"#),
        ("codeExecutionResult", r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}"#),
        ("toolCall",            r#"{"toolCall":{"toolType":"FILE_SEARCH","id":"a1"},"thoughtSignature":"Sg"}"#),
        ("toolResponse",        r#"{"toolResponse":{"toolType":"FILE_SEARCH","id":"a1"},"thoughtSignature":"Sg"}"#),
        ("an image thought",    r#"{"inlineData":{"mimeType":"image/png","data":"iVBO"},"thought":true,"thoughtSignature":"Sg"}"#),
    ];
    every(cases, |(name, part)| {
        let reader = ReplyReader::generic(Protocol::Gemini);
        let parts = format!(r#"[{{"text":"A"}},{part},{{"text":"B"}}]"#);
        let expected = format!("text 'A' | unmodelled {part} | text 'B'");
        reader.check_both(name, &gemini(&[&parts]), &gemini_whole(&parts), &expected)
    });
}

#[test]
fn d13_ollama_lines() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &str, &str)] = &[
        ("thinking, then content",   &[r#"{"role":"assistant","content":"","thinking":"Look"}"#, r#"{"content":"","thinking":" up"}"#, r#"{"content":"A"}"#], r#"{"role":"assistant","content":"A","thinking":"Look up"}"#, "think thinking 'Look up' | text 'A'"),
        ("both in one line",         &[r#"{"content":"A","thinking":"a"}"#],                     r#"{"content":"A","thinking":"a"}"#, "think thinking 'a' | text 'A'"),
        ("thinking, then a call",    &[r#"{"content":"","thinking":"a"}"#, r#"{"content":"","tool_calls":[{"id":"c1","function":{"index":0,"name":"get","arguments":{"k":1}}}]}"#],
            r#"{"content":"","thinking":"a","tool_calls":[{"id":"c1","function":{"index":0,"name":"get","arguments":{"k":1}}}]}"#, r#"think thinking 'a' | call get(c1) {"k":1}"#),
        ("an old template's tag",    &[r#"{"content":"<think>a</th"}"#, r#"{"content":"ink>A"}"#], r#"{"content":"<think>a</think>A"}"#, "think <think> 'a' | text 'A'"),
    ];
    every(cases, |(name, lines, message, expected)| {
        ReplyReader::generic(Protocol::Ollama).check_both(name, &ollama(lines), &ollama_whole(message), expected)
    });
    let generate = lines([
        r#"{"model":"m","response":"","thinking":"a","done":false}"#,
        r#"{"model":"m","response":"A","done":true,"done_reason":"stop"}"#,
    ]);
    ReplyReader::generic(Protocol::Ollama).check("/api/generate", &generate, "think thinking 'a' | text 'A'").unwrap();
}

#[test]
fn d13_mistral_content_arrays() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &str, &str)] = &[
        ("thinking, then a string",  &[r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Look"}]}]}"#, r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":" up"}]}]}"#, r#"{"content":"A"}"#],
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Look up"}]},{"type":"text","text":"A"}]}"#, "think content.thinking 'Look up' | text 'A'"),
        ("`closed` ends nothing",    &[r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Look"}],"closed":true}]}"#, r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":" up"}],"closed":true}]}"#, r#"{"content":[{"type":"text","text":"A"}]}"#],
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Look up"}],"closed":true},{"type":"text","text":"A"}]}"#, "think content.thinking 'Look up' | text 'A'"),
        ("several texts in one",     &[r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Look"},{"type":"text","text":" up"}]}]}"#],
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Look"},{"type":"text","text":" up"}]}]}"#, "think content.thinking 'Look up'"),
        ("a signature",              &[r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}],"signature":"Sg"}]}"#],
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}],"signature":"Sg"}]}"#, "think content.thinking 'a' sig=Sg"),
        ("then a call",              &[r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}"#, r#"{"content":"","tool_calls":[{"id":"a1B2c3D4e","index":0,"function":{"name":"get","arguments":"{}"}}]}"#],
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}],"tool_calls":[{"id":"a1B2c3D4e","function":{"name":"get","arguments":"{}"}}]}"#, "think content.thinking 'a' | call get(a1B2c3D4e) {}"),
        ("a chunk nobody knows",     &[r#"{"content":[{"type":"reference","reference_ids":[1]}]}"#], r#"{"content":[{"type":"reference","reference_ids":[1]}]}"#, r#"unmodelled {"type":"reference","reference_ids":[1]}"#),
        ("a plain string",           &[r#"{"content":"A"}"#], r#"{"content":"A"}"#, "text 'A'"),
    ];
    every(cases, |(name, deltas, message, expected)| {
        for reader in [ReplyReader::dialect("mistral"), ReplyReader::chat()] {
            reader.check_both(name, &chat(deltas), &chat_whole(message), expected)?;
        }
        Ok(())
    });
}

#[test]
fn d13_references_inside_mistral_thinking_are_not_lost() {
    let chunk =
        r#"{"type":"thinking","thinking":[{"type":"text","text":"a"},{"type":"reference","reference_ids":[7]}]}"#;
    let reply = ReplyReader::dialect("mistral").reply(&chat_whole(&format!(r#"{{"content":[{chunk}]}}"#)));
    assert_eq!(thinking_texts(&reply), ["a"]);
    assert!(
        as_json(&reply).to_string().contains(r#""reference_ids":[7]"#),
        "everything received is stored: {}",
        as_json(&reply)
    );
}

#[test]
fn d13_bedrock_converse() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &str, &str)] = &[
        ("thinking, its signature, text", &[r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Look"}},"p":"abc"}}"#, r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":" up"}}}}"#,
                r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"Sg"}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
                r#"{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"text":"A"}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":1}}"#],
            r#"[{"reasoningContent":{"reasoningText":{"text":"Look up","signature":"Sg"}}},{"text":"A"}]"#, "think reasoningContent 'Look up' sig=Sg | text 'A'"),
        ("redacted blocks", &[r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"UjE="}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
                r#"{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"UjI="}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":1}}"#],
            r#"[{"reasoningContent":{"redactedContent":"UjE="}},{"reasoningContent":{"redactedContent":"UjI="}}]"#, "think reasoningContent '' enc=UjE= | think reasoningContent '' enc=UjI="),
        ("a call", &[r#"{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t1","name":"get"}}}}"#, r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"k\""}}}}"#,
                r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":":1}"}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":0}}"#],
            r#"[{"toolUse":{"toolUseId":"t1","name":"get","input":{"k":1}}}]"#, r#"call get(t1) {"k":1}"#),
        ("an empty text before the thought", &[r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":""}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
                r#"{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"reasoningContent":{"text":"a"}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":1}}"#],
            r#"[{"text":""},{"reasoningContent":{"reasoningText":{"text":"a"}}}]"#, "think reasoningContent 'a'"),
        ("a tool that the provider runs", &[r#"{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t1","name":"code","type":"server_tool_use"}}}}"#,
                r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"k\":1}"}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":0}}"#],
            r#"[{"toolUse":{"toolUseId":"t1","name":"code","type":"server_tool_use","input":{"k":1}}}]"#, r#"unmodelled {"toolUse":{"toolUseId":"t1","name":"code","type":"server_tool_use","input":{"k":1}}}"#),
    ];
    every(cases, |(name, events, content, expected)| {
        let reader = ReplyReader::generic(Protocol::Bedrock);
        // The helper sorts keys, which matters only for verbatim items.
        if expected.starts_with("unmodelled") {
            let blocks = |bytes: &[u8]| as_json(&reader.reply(bytes))["blocks"].clone();
            let wanted =
                serde_json::json!([{"type": "unmodelled", "native": parsed(&expected["unmodelled ".len()..])}]);
            same(&format!("{name}, streamed"), blocks(&converse(events)), wanted.clone())?;
            return same(&format!("{name}, whole"), blocks(&converse_whole(content)), wanted);
        }
        reader.check_both(name, &converse(events), &converse_whole(content), expected)?;
        reader.check(&format!("{name}, events as lines"), &lines(*events), expected)
    });
}

#[test]
fn d13_anthropic_events_inside_bedrock_frames() {
    use base64::Engine as _;
    let frame = |event: &str| {
        let bytes = base64::engine::general_purpose::STANDARD.encode(event);
        aws_event("chunk", &format!(r#"{{"bytes":"{bytes}","p":"abc"}}"#))
    };
    let events = [
        r#"{"type":"message_start","message":{"model":"m","content":[]}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Look"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Sg"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let bytes: Vec<u8> = events.iter().flat_map(|event| frame(event)).collect();
    let reader = ReplyReader::generic(Protocol::Bedrock);
    reader.check("InvokeModel", &bytes, "think thinking 'Look' sig=Sg").unwrap();
    assert_eq!(finish(&reader.reply(&bytes)).as_deref(), Some("stop"));
}

#[test]
fn d13_cohere() {
    const CALL: &str = r#"{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"c1","type":"function","function":{"name":"get","arguments":""}}}}}"#;
    const ARGS: &str = r#"{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"k\":1}"}}}}}"#;
    let begin = |index: u32, kind: &str| {
        format!(
            r#"{{"type":"content-start","index":{index},"delta":{{"message":{{"content":{{"type":"{kind}","{kind}":""}}}}}}}}"#
        )
    };
    let delta = |index: u32, kind: &str, text: &str| {
        format!(
            r#"{{"type":"content-delta","index":{index},"delta":{{"message":{{"content":{{"{kind}":"{text}"}}}}}}}}"#
        )
    };
    let end = |index: u32| format!(r#"{{"type":"content-end","index":{index}}}"#);
    let thought = [begin(0, "thinking"), delta(0, "thinking", "Look "), delta(0, "thinking", "up."), end(0)];
    let answer = [begin(1, "text"), delta(1, "text", "A"), end(1)];
    #[rustfmt::skip]
    let cases = [
        ("thinking, then text", [&thought[..], &answer].concat(), r#"{"content":[{"type":"thinking","thinking":"Look up."},{"type":"text","text":"A"}]}"#, "think thinking 'Look up.' | text 'A'"),
        ("thinking, then a call", [&thought[..], &[CALL.into(), ARGS.into(), r#"{"type":"tool-call-end","index":0}"#.into()]].concat(),
            r#"{"content":[{"type":"thinking","thinking":"Look up."}],"tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{\"k\":1}"}}]}"#, r#"think thinking 'Look up.' | call get(c1) {"k":1}"#),
        ("citations are no text", [&answer[..2], &[r#"{"type":"citation-start","index":0,"delta":{"message":{"citations":{"text":"zzz"}}}}"#.into(), r#"{"type":"citation-end","index":0}"#.into(), end(1)]].concat(),
            r#"{"content":[{"type":"text","text":"A"}]}"#, "text 'A'"),
    ];
    every(cases, |(name, events, message, expected)| {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        ReplyReader::generic(Protocol::Cohere).check_both(name, &cohere(&events), &cohere_whole(message), expected)
    });
    let plan = r#"{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"I will look."}}}"#;
    let whole = r#"{"tool_plan":"I will look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{\"k\":1}"}}]}"#;
    for bytes in [cohere(&[plan, CALL, ARGS]), cohere_whole(whole)] {
        let reply = ReplyReader::generic(Protocol::Cohere).reply(&bytes);
        assert_eq!(
            (thinking_texts(&reply).len(), text(&reply)),
            (0, String::new()),
            "a plan is neither: {}",
            drawn(&reply)
        );
        assert!(as_json(&reply).to_string().contains("I will look."), "and it is kept: {}", drawn(&reply));
    }
}
