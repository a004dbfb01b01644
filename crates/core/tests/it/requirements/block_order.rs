//! D4 to D6: what counts as empty, the order of blocks, and when thinking ends.

use aside_core::event::{BlockId, BlockOpening, Event};
use aside_core::protocol::Protocol;
use aside_core::tags::TagReach;
use aside_core::wire::Decoder;

use super::{
    ReplyReader, as_json, aws_event, chat, chat_whole, cohere, cohere_whole, converse, converse_whole, drawn,
    events_of_response, every, finish, gemini, gemini_whole, messages, messages_whole, ollama, ollama_whole, parsed,
    response_whole, same, sse,
};

#[test]
fn d4_empty_thinking_is_no_block_and_no_error() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &str)] = &[
        ("absent",                &[r#"{"content":"A"}"#],                                                     r#"{"content":"A"}"#),
        ("null",                  &[r#"{"reasoning_content":null}"#, r#"{"content":"A"}"#],                    r#"{"content":"A","reasoning_content":null}"#),
        ("empty",                 &[r#"{"reasoning_content":""}"#, r#"{"content":"A"}"#],                      r#"{"content":"A","reasoning_content":""}"#),
        ("white space",           &[r#"{"reasoning_content":" "}"#, r#"{"reasoning_content":"\n"}"#, r#"{"content":"A"}"#], r#"{"content":"A","reasoning_content":" \n"}"#),
        ("white space, other field", &[r#"{"reasoning":"\n\n"}"#, r#"{"content":"A"}"#],                       r#"{"content":"A","reasoning":"\n\n"}"#),
        ("empty details",         &[r#"{"reasoning_details":[]}"#, r#"{"content":"A"}"#],                      r#"{"content":"A","reasoning_details":[]}"#),
        ("null details",          &[r#"{"reasoning_details":null}"#, r#"{"content":"A"}"#],                    r#"{"content":"A","reasoning_details":null}"#),
        ("an entry without text", &[r#"{"reasoning_details":[{"type":"reasoning.text","text":"","signature":"","index":0}]}"#, r#"{"content":"A"}"#],
                                  r#"{"content":"A","reasoning_details":[{"type":"reasoning.text","text":"","signature":"","index":0}]}"#),
        ("an entry of white space", &[r#"{"reasoning_details":[{"type":"reasoning.text","text":" \n","index":0}]}"#, r#"{"content":"A"}"#],
                                  r#"{"content":"A","reasoning_details":[{"type":"reasoning.text","text":" \n","index":0}]}"#),
        ("an empty thinking chunk", &[r#"{"content":[{"type":"thinking","thinking":[]}]}"#, r#"{"content":"A"}"#],
                                  r#"{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"A"}]}"#),
        ("empty tags",            &[r#"{"content":"<think></think>"}"#, r#"{"content":"A"}"#],                 r#"{"content":"<think></think>A"}"#),
    ];
    every(cases, |(name, deltas, message)| {
        let reader = ReplyReader::chat();
        reader.check_both(name, &chat(deltas), &chat_whole(message), "text 'A'")?;
        let reply = reader.reply(&chat(deltas));
        same(name, (reply.end.error, reply.notes.len()), (None, 0))
    });
    let blank = chat(&[r#"{"content":"<think>\n\n</think>\n\nA"}"#]);
    ReplyReader::chat().check("blank tags", &blank, "text '⏎⏎A'").unwrap();
}

#[test]
fn d4_empty_thinking_does_not_split_a_text() {
    #[rustfmt::skip]
    let between = [
        ("an empty field",         r#"{"reasoning_content":""}"#),
        ("a blank field",          r#"{"reasoning_content":" "}"#),
        ("an empty list",          r#"{"reasoning_details":[]}"#),
        ("an entry without text",  r#"{"reasoning_details":[{"type":"reasoning.text","text":"","index":0}]}"#),
        ("an empty thinking chunk", r#"{"content":[{"type":"thinking","thinking":[]}]}"#),
    ];
    every(between, |(name, nothing)| {
        let stream = chat(&[r#"{"content":"A"}"#, nothing, r#"{"content":"B"}"#]);
        ReplyReader::chat().check(name, &stream, "text 'AB'")
    });
}

#[test]
fn d4_empty_thinking_is_no_block_on_any_protocol() {
    use Protocol::{Anthropic, Bedrock, Cohere, Gemini, Ollama};
    #[rustfmt::skip]
    let cases: &[(&str, Protocol, Vec<u8>, Vec<u8>)] = &[
        ("empty", Anthropic,
            messages(&[r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#, r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#, r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"A"}}"#]),
            messages_whole(r#"[{"type":"thinking","thinking":"","signature":""},{"type":"text","text":"A"}]"#)),
        ("white space", Anthropic,
            messages(&[r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#, r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" \n"}}"#,
                r#"{"type":"content_block_stop","index":0}"#, r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"A"}}"#]),
            messages_whole(r#"[{"type":"thinking","thinking":" \n"},{"type":"text","text":"A"}]"#)),
        ("empty", Gemini, gemini(&[r#"[{"text":"","thought":true}]"#, r#"[{"text":"A"}]"#]), gemini_whole(r#"[{"text":"","thought":true},{"text":"A"}]"#)),
        ("white space", Gemini, gemini(&[r#"[{"text":"\n","thought":true}]"#, r#"[{"text":"A"}]"#]), gemini_whole(r#"[{"text":"\n","thought":true},{"text":"A"}]"#)),
        ("empty", Ollama, ollama(&[r#"{"content":"","thinking":""}"#, r#"{"content":"A"}"#]), ollama_whole(r#"{"content":"A","thinking":""}"#)),
        ("white space", Ollama, ollama(&[r#"{"content":"","thinking":" "}"#, r#"{"content":"A"}"#]), ollama_whole(r#"{"content":"A","thinking":" "}"#)),
        ("empty", Bedrock,
            converse(&[r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":""}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
                r#"{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"text":"A"}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":1}}"#]),
            converse_whole(r#"[{"reasoningContent":{"reasoningText":{"text":""}}},{"text":"A"}]"#)),
        ("white space", Bedrock,
            converse(&[r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":" \n"}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
                r#"{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"text":"A"}}}"#]),
            converse_whole(r#"[{"reasoningContent":{"reasoningText":{"text":" \n"}}},{"text":"A"}]"#)),
        ("empty", Cohere,
            cohere(&[r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}"#, r#"{"type":"content-end","index":0}"#,
                r#"{"type":"content-start","index":1,"delta":{"message":{"content":{"type":"text","text":""}}}}"#, r#"{"type":"content-delta","index":1,"delta":{"message":{"content":{"text":"A"}}}}"#]),
            cohere_whole(r#"{"content":[{"type":"thinking","thinking":""},{"type":"text","text":"A"}]}"#)),
    ];
    every(cases, |(name, protocol, stream, whole)| {
        ReplyReader::generic(*protocol).check_both(name, stream, whole, "text 'A'")
    });
}

#[test]
fn d4_a_white_space_delta_inside_thinking_is_kept() {
    #[rustfmt::skip]
    let cases = [
        ("field",   r#"{"reasoning_content":"#, "}", "think reasoning_content"),
        ("details", r#"{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"#, "}]}", "think reasoning_details"),
        ("chunks",  r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"#, "}]}]}", "think content.thinking"),
    ];
    every(cases, |(name, before, after, source)| {
        let deltas: Vec<String> = [r#""\n""#, r#""a""#, r#"" ""#, r#""\n\n""#, r#""b""#, r#"" ""#]
            .map(|text| format!("{before}{text}{after}"))
            .into();
        let mut deltas: Vec<&str> = deltas.iter().map(String::as_str).collect();
        deltas.push(r#"{"content":"A"}"#);
        ReplyReader::chat().check(name, &chat(&deltas), &format!("{source} '⏎a ⏎⏎b ' | text 'A'"))
    });
    let stream = ollama(&[r#"{"thinking":"a"}"#, r#"{"thinking":"\n"}"#, r#"{"thinking":"b"}"#, r#"{"content":"A"}"#]);
    ReplyReader::generic(Protocol::Ollama).check("ollama", &stream, "think thinking 'a⏎b' | text 'A'").unwrap();
    let stream = gemini(&[
        r#"[{"text":"a","thought":true}]"#,
        r#"[{"text":" ","thought":true}]"#,
        r#"[{"text":"b","thought":true}]"#,
    ]);
    ReplyReader::generic(Protocol::Gemini).check("gemini", &stream, "think thought 'a b'").unwrap();
}

#[test]
fn d4_a_sealed_block_without_text_is_not_empty() {
    use Protocol::{Anthropic, Bedrock, Gemini, OpenaiChat, OpenaiResponses};
    #[rustfmt::skip]
    let cases: &[(&str, Protocol, Vec<u8>, Vec<u8>, &str)] = &[
        ("signature", Anthropic,
            messages(&[r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Sg"}}"#, r#"{"type":"content_block_stop","index":0}"#]),
            messages_whole(r#"[{"type":"thinking","thinking":"","signature":"Sg"}]"#), "think thinking '' sig=Sg"),
        ("redacted", Anthropic,
            messages(&[r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"Rd"}}"#, r#"{"type":"content_block_stop","index":0}"#]),
            messages_whole(r#"[{"type":"redacted_thinking","data":"Rd"}]"#), "think redacted_thinking '' enc=Rd"),
        ("signature", Bedrock,
            converse(&[r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"Sg"}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":0}}"#]),
            converse_whole(r#"[{"reasoningContent":{"reasoningText":{"text":"","signature":"Sg"}}}]"#), "think reasoningContent '' sig=Sg"),
        ("redacted", Bedrock,
            converse(&[r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"UmQ="}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":0}}"#]),
            converse_whole(r#"[{"reasoningContent":{"redactedContent":"UmQ="}}]"#), "think reasoningContent '' enc=UmQ="),
        ("thought part", Gemini, gemini(&[r#"[{"text":"","thought":true,"thoughtSignature":"Sg"}]"#]), gemini_whole(r#"[{"text":"","thought":true,"thoughtSignature":"Sg"}]"#),
            "think thought '' sig=Sg"),
        ("encrypted item", OpenaiResponses,
            events_of_response(&[r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
                r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}}"#]),
            response_whole(r#"[{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}]"#), "think reasoning '' enc=gAAA id=rs_1"),
        ("detail with a signature", OpenaiChat,
            chat(&[r#"{"reasoning_details":[{"type":"reasoning.text","text":"","signature":"Sg","index":0}]}"#]),
            chat_whole(r#"{"content":null,"reasoning_details":[{"type":"reasoning.text","text":"","signature":"Sg","index":0}]}"#), "think reasoning_details '' sig=Sg"),
        ("thinking chunk with a signature", OpenaiChat,
            chat(&[r#"{"content":[{"type":"thinking","thinking":[],"signature":"Sg"}]}"#]),
            chat_whole(r#"{"content":[{"type":"thinking","thinking":[],"signature":"Sg"}]}"#), "think content.thinking '' sig=Sg"),
    ];
    every(cases, |(name, protocol, stream, whole, expected)| {
        let reader = ReplyReader::generic(*protocol);
        reader.check_both(name, stream, whole, expected)?;
        same(
            &format!("{name} {protocol}: hidden"),
            as_json(&reader.reply(whole))["blocks"][0]["isHidden"].clone(),
            true.into(),
        )
    });
}

#[test]
fn d5_order_is_kept_on_chat() {
    const CALL: &str = r#"{"tool_calls":[{"index":0,"id":"c1","function":{"name":"get","arguments":"{}"}}]}"#;
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &str)] = &[
        ("a thought stands before its call",      &[r#"{"reasoning_content":"a"}"#, CALL],   "think reasoning_content 'a' | call get(c1) {}"),
        ("several thoughts",                      &[r#"{"reasoning_content":"a"}"#, r#"{"content":"A"}"#, r#"{"reasoning_content":"b"}"#, r#"{"content":"B"}"#, r#"{"reasoning_content":"c"}"#, CALL],
            "think reasoning_content 'a' | text 'A' | think reasoning_content 'b' | text 'B' | think reasoning_content 'c' | call get(c1) {}"),
        ("a thought at the end",                  &[r#"{"content":"A"}"#, r#"{"reasoning_content":"a"}"#], "text 'A' | think reasoning_content 'a'"),
        ("text after a call",                     &[CALL, r#"{"content":"A"}"#],             "call get(c1) {} | text 'A'"),
        ("a thought between two calls",           &[CALL, r#"{"reasoning_content":"b"}"#, r#"{"tool_calls":[{"index":1,"id":"c2","function":{"name":"put","arguments":"{}"}}]}"#],
            "call get(c1) {} | think reasoning_content 'b' | call put(c2) {}"),
        ("white space before the first thought is text", &[r#"{"content":"\n"}"#, r#"{"reasoning_content":"a"}"#, r#"{"content":"A"}"#], "text '⏎' | think reasoning_content 'a' | text 'A'"),
        ("white space does not end a thought",    &[r#"{"reasoning_content":"a"}"#, r#"{"content":"\n"}"#, r#"{"reasoning_content":"b"}"#, r#"{"content":"A"}"#], "think reasoning_content 'ab' | text '⏎A'"),
        ("white space before a call is kept",     &[r#"{"reasoning_content":"a"}"#, r#"{"content":"\n\n"}"#, CALL], "think reasoning_content 'a' | text '⏎⏎' | call get(c1) {}"),
        ("details too",                           &[r#"{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}"#, r#"{"content":"A"}"#, r#"{"reasoning_details":[{"type":"reasoning.text","text":"b","index":1}]}"#, CALL],
            "think reasoning_details 'a' | text 'A' | think reasoning_details 'b' | call get(c1) {}"),
    ];
    every(cases, |(name, deltas, expected)| ReplyReader::chat().check(name, &chat(deltas), expected));
    let all = r#"{"tool_calls":[{"index":0,"id":"c1","function":{"name":"get","arguments":"{}"}}],"content":"A","reasoning_content":"a"}"#;
    let expected = "think reasoning_content 'a' | text 'A' | call get(c1) {}";
    ReplyReader::chat().check_both("all in one delta", &chat(&[all]), &chat_whole(all), expected).unwrap();
    let tags = ReplyReader::chat().with(|rules| rules.read.tags.reach = TagReach::Anywhere);
    let stream = chat(&[r#"{"content":"<think>a</think>A<think>b</think>"}"#, CALL]);
    tags.check("tags", &stream, "think <think> 'a' | text 'A' | think <think> 'b' | call get(c1) {}").unwrap();
}

#[test]
fn d5_order_is_kept_on_every_protocol() {
    use Protocol::{Anthropic, Bedrock, Cohere, Gemini, Ollama, OpenaiChat, OpenaiResponses};
    #[rustfmt::skip]
    let cases: &[(Protocol, Vec<u8>, Vec<u8>, &str)] = &[
        (Anthropic,
            messages(&[r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"a","signature":"S0"}}"#, r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"b","signature":"S1"}}"#, r#"{"type":"content_block_stop","index":1}"#,
                r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"A"}}"#, r#"{"type":"content_block_stop","index":2}"#,
                r#"{"type":"content_block_start","index":3,"content_block":{"type":"thinking","thinking":"c","signature":"S2"}}"#, r#"{"type":"content_block_stop","index":3}"#,
                r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"t1","name":"get","input":{}}}"#, r#"{"type":"content_block_stop","index":4}"#]),
            messages_whole(r#"[{"type":"thinking","thinking":"a","signature":"S0"},{"type":"thinking","thinking":"b","signature":"S1"},{"type":"text","text":"A"},{"type":"thinking","thinking":"c","signature":"S2"},{"type":"tool_use","id":"t1","name":"get","input":{}}]"#),
            "think thinking 'a' sig=S0 | think thinking 'b' sig=S1 | text 'A' | think thinking 'c' sig=S2 | call get(t1) {}"),
        (Gemini,
            gemini(&[r#"[{"text":"a","thought":true}]"#, r#"[{"text":"A"}]"#, r#"[{"text":"b","thought":true},{"functionCall":{"id":"f1","name":"get","args":{}}}]"#, r#"[{"text":"B"}]"#]),
            gemini_whole(r#"[{"text":"a","thought":true},{"text":"A"},{"text":"b","thought":true},{"functionCall":{"id":"f1","name":"get","args":{}}},{"text":"B"}]"#),
            "think thought 'a' | text 'A' | think thought 'b' | call get(f1) {} | text 'B'"),
        (Bedrock,
            converse(&[r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"a"}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
                r#"{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"text":"A"}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":1}}"#,
                r#"{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"reasoningContent":{"text":"b"}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":2}}"#,
                r#"{"contentBlockStart":{"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"t1","name":"get"}}}}"#, r#"{"contentBlockStop":{"contentBlockIndex":3}}"#]),
            converse_whole(r#"[{"reasoningContent":{"reasoningText":{"text":"a"}}},{"text":"A"},{"reasoningContent":{"reasoningText":{"text":"b"}}},{"toolUse":{"toolUseId":"t1","name":"get","input":{}}}]"#),
            "think reasoningContent 'a' | text 'A' | think reasoningContent 'b' | call get(t1) {}"),
        (Cohere,
            cohere(&[r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":"a"}}}}"#, r#"{"type":"content-end","index":0}"#,
                r#"{"type":"content-start","index":1,"delta":{"message":{"content":{"type":"text","text":"A"}}}}"#, r#"{"type":"content-end","index":1}"#,
                r#"{"type":"content-start","index":2,"delta":{"message":{"content":{"type":"thinking","thinking":"b"}}}}"#, r#"{"type":"content-end","index":2}"#,
                r#"{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"c1","type":"function","function":{"name":"get","arguments":"{}"}}}}}"#, r#"{"type":"tool-call-end","index":0}"#]),
            cohere_whole(r#"{"content":[{"type":"thinking","thinking":"a"},{"type":"text","text":"A"},{"type":"thinking","thinking":"b"}],"tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{}"}}]}"#),
            "think thinking 'a' | text 'A' | think thinking 'b' | call get(c1) {}"),
        (OpenaiResponses,
            events_of_response(&[r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"r0","type":"reasoning","summary":[{"type":"summary_text","text":"a"}]}}"#,
                r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"A"}]}}"#,
                r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"r2","type":"reasoning","summary":[{"type":"summary_text","text":"b"}]}}"#,
                r#"{"type":"response.output_item.done","output_index":3,"item":{"id":"f1","type":"function_call","call_id":"c1","name":"get","arguments":"{}"}}"#]),
            response_whole(r#"[{"id":"r0","type":"reasoning","summary":[{"type":"summary_text","text":"a"}]},{"type":"message","content":[{"type":"output_text","text":"A"}]},{"id":"r2","type":"reasoning","summary":[{"type":"summary_text","text":"b"}]},{"id":"f1","type":"function_call","call_id":"c1","name":"get","arguments":"{}"}]"#),
            "think reasoning 'a' id=r0 | text 'A' | think reasoning 'b' id=r2 | call get(c1) {}"),
        (OpenaiChat,
            chat(&[r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}"#, r#"{"content":[{"type":"text","text":"A"}]}"#, r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"b"}]}]}"#, r#"{"content":"B"}"#]),
            chat_whole(r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},{"type":"text","text":"A"},{"type":"thinking","thinking":[{"type":"text","text":"b"}]},{"type":"text","text":"B"}]}"#),
            "think content.thinking 'a' | text 'A' | think content.thinking 'b' | text 'B'"),
    ];
    every(cases, |(protocol, stream, whole, expected)| {
        ReplyReader::generic(*protocol).check_both("interleaved", stream, whole, expected)
    });
    let stream = ollama(&[
        r#"{"thinking":"a"}"#,
        r#"{"content":"A"}"#,
        r#"{"thinking":"b"}"#,
        r#"{"tool_calls":[{"function":{"name":"get","arguments":{}}}]}"#,
    ]);
    let expected = "think thinking 'a' | text 'A' | think thinking 'b' | call get(?) {}";
    ReplyReader::generic(Ollama).check("interleaved", &stream, expected).unwrap();
}

/// The frame in which each thinking block ends.
fn ends(reader: &ReplyReader, frames: &[Vec<u8>]) -> Vec<usize> {
    let (mut thinking, mut closed): (Vec<BlockId>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut at = 0;
    let mut decoder = Decoder::new(reader.protocol, &reader.rules);
    let mut take = |event: Event<'_>, at: usize| match event {
        Event::Opened { block, opening: BlockOpening::Thinking { .. } } => thinking.push(block),
        Event::Closed { block } if thinking.contains(&block) => closed.push(at),
        _ => (),
    };
    for frame in frames {
        decoder.push(frame, &mut |event: Event<'_>| take(event, at));
        at += 1;
    }
    decoder.finish(&mut |event: Event<'_>| take(event, at)).unwrap();
    closed
}

#[test]
fn d6_thinking_ends_the_moment_something_else_begins() {
    let reasoning = r#"{"choices":[{"index":0,"delta":{"reasoning_content":"a"}}]}"#;
    let detail =
        r#"{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}}]}"#;
    let chunk = r#"{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}}]}"#;
    let content = r#"{"choices":[{"index":0,"delta":{"content":"A"}}]}"#;
    let call = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"get","arguments":""}}]}}]}"#;
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let tag = |text: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#);
    let (open, half, rest, close) = (tag("<think>a"), tag("b</thi"), tag("nk>"), tag("b</think>"));
    #[rustfmt::skip]
    let cases: &[(&str, &str, &[&str], &[usize])] = &[
        ("field, then text",            "generic",   &[reasoning, reasoning, content, content, stop],   &[2]),
        ("field, then a call",          "generic",   &[reasoning, call, call, stop],                    &[1]),
        ("field, then the finish word", "generic",   &[reasoning, stop, r#"{"choices":[],"usage":{"prompt_tokens":1}}"#], &[1]),
        ("field, and nothing more",     "generic",   &[reasoning, reasoning],                           &[2]),
        ("two thoughts",                "generic",   &[reasoning, content, reasoning, call, stop],      &[1, 3]),
        ("details, then text",          "generic",   &[detail, detail, content, stop],                  &[2]),
        ("details, then a call",        "generic",   &[detail, call, stop],                             &[1]),
        ("details, then finish",        "generic",   &[detail, stop, r#"{"choices":[]}"#],              &[1]),
        ("chunks, then a string",       "mistral",   &[chunk, chunk, content, stop],                    &[2]),
        ("the close tag",               "generic",   &[&open, &close, content, stop],                   &[1]),
        ("the close tag in two halves", "generic",   &[&open, &half, &rest, content, stop],             &[2]),
        ("a tag that stays open",       "generic",   &[&open, content, stop, r#"{"choices":[]}"#],      &[2]),
        ("Responses: the item's end", "openai",
            &[r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"r","type":"reasoning","summary":[]}}"#, r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"a"}"#,
              r#"{"type":"response.reasoning_summary_part.done","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"a"}}"#,
              r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"r","type":"reasoning","summary":[{"type":"summary_text","text":"a"}]}}"#,
              r#"{"type":"response.output_text.delta","output_index":1,"delta":"A"}"#, r#"{"type":"response.completed","response":{"status":"completed"}}"#], &[3]),
        ("Anthropic: the block's stop", "anthropic",
            &[r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#, r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a"}}"#,
              r#"{"type":"content_block_stop","index":0}"#, r#"{"type":"ping"}"#, r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"A"}}"#, r#"{"type":"message_stop"}"#], &[2]),
        ("Gemini: the next part", "gemini",
            &[r#"{"candidates":[{"content":{"parts":[{"text":"a","thought":true}]}}]}"#, r#"{"candidates":[{"content":{"parts":[{"text":"A"}]}}]}"#, r#"{"candidates":[{"finishReason":"STOP"}]}"#], &[1]),
        ("Gemini: a call", "gemini",
            &[r#"{"candidates":[{"content":{"parts":[{"text":"a","thought":true}]}}]}"#, r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"get"}}]}}]}"#, r#"{"candidates":[{"finishReason":"STOP"}]}"#], &[1]),
        ("Cohere: content-end", "cohere",
            &[r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":"a"}}}}"#, r#"{"type":"content-end","index":0}"#, r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}"#], &[1]),
    ];
    every(cases, |(name, dialect, frames, expected)| {
        let frames: Vec<Vec<u8>> = frames.iter().map(|frame| sse([frame])).collect();
        same(name, ends(&ReplyReader::dialect(dialect), &frames), expected.to_vec())
    });
}

#[test]
fn d6_thinking_ends_at_once_on_lines_and_binary_frames_too() {
    let line = |text: &str| format!("{text}\n").into_bytes();
    let thinking = line(r#"{"message":{"thinking":"a"},"done":false}"#);
    let ollama = ReplyReader::generic(Protocol::Ollama);
    let text = line(r#"{"message":{"content":"A"},"done":false}"#);
    let call = line(r#"{"message":{"tool_calls":[{"function":{"name":"get","arguments":{}}}]},"done":false}"#);
    let done = line(r#"{"message":{"content":""},"done":true,"done_reason":"stop"}"#);
    assert_eq!(ends(&ollama, &[thinking.clone(), thinking.clone(), text, done.clone()]), [2], "ollama, text");
    assert_eq!(ends(&ollama, &[thinking.clone(), call, done.clone()]), [1], "ollama, a call");
    assert_eq!(ends(&ollama, &[thinking, done]), [1], "ollama, done");
    let frames = [
        aws_event("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"a"}}}"#),
        aws_event("contentBlockStop", r#"{"contentBlockIndex":0}"#),
        aws_event("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"text":"A"}}"#),
        aws_event("messageStop", r#"{"stopReason":"end_turn"}"#),
    ];
    assert_eq!(ends(&ReplyReader::generic(Protocol::Bedrock), &frames), [1], "bedrock");
}

#[test]
fn d4_a_field_that_was_present_but_empty_is_remembered() {
    #[rustfmt::skip]
    let cases: &[(&str, Protocol, Vec<u8>, Option<&str>)] = &[
        ("empty",            Protocol::OpenaiChat, chat(&[r#"{"reasoning_content":""}"#, r#"{"content":"A"}"#]),           Some("reasoning_content")),
        ("empty, whole",     Protocol::OpenaiChat, chat_whole(r#"{"reasoning":"","content":"A"}"#),                       Some("reasoning")),
        ("an empty list is a value", Protocol::OpenaiChat, chat_whole(r#"{"reasoning_details":[],"content":"A"}"#),       Some("reasoning_details")),
        ("empty",            Protocol::Ollama,     ollama_whole(r#"{"thinking":"","content":"A"}"#),                      Some("thinking")),
        ("null",             Protocol::OpenaiChat, chat(&[r#"{"reasoning_content":null}"#, r#"{"content":"A"}"#]),         None),
        ("absent",           Protocol::OpenaiChat, chat(&[r#"{"content":"A"}"#]),                                         None),
        ("filled later",     Protocol::OpenaiChat, chat(&[r#"{"reasoning_content":""}"#, r#"{"reasoning_content":"a"}"#]), None),
        ("filled elsewhere", Protocol::OpenaiChat, chat(&[r#"{"reasoning":"a","reasoning_details":[]}"#]),                None),
    ];
    every(cases, |(name, protocol, bytes, expected)| {
        let reply = ReplyReader::generic(*protocol).reply(bytes);
        same(name, finish(&reply), Some("stop".to_owned()))?;
        same(
            &format!("{name} {}", drawn(&reply)),
            as_json(&reply)["reasoningSeen"].clone(),
            parsed(&serde_json::to_string(expected).unwrap()),
        )
    });
}
