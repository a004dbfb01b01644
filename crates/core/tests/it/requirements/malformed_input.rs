//! D16: any bytes. Readable parts are read, the rest is reported.

use aside_core::block::Reply;
use aside_core::fold::Fold;
use aside_core::protocol::Protocol;
use aside_core::wire::{Decoder, NotUnderstood};

use super::scripted_replies::WireFormat;
use super::{
    ReplyReader, as_json, aws_event, chat, chat_whole, drawn, every, finish, gemini, lines, notices, ollama,
    ollama_whole, same, sse,
};
use crate::support::{decode, text, thinking_texts};

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

fn blocks(reply: &Reply) -> serde_json::Value {
    as_json(reply)["blocks"].clone()
}

#[test]
fn d16_a_malformed_chunk_is_a_notice_and_the_stream_continues() {
    every(WireFormat::ALL, |wire| {
        let (reader, frames) = (wire.reader(), wire.frames(wire.scripts().nth(2).unwrap(), 4));
        let good = reader.reply(&frames.concat());
        for at in 0..frames.len() {
            let mut frames = frames.clone();
            frames.insert(at, wire.broken_frame());
            for size in [usize::MAX, 1, 7] {
                let (reply, _) = decode(reader.protocol, &reader.rules, &frames.concat(), size);
                let name = format!("{wire:?}, broken frame {at}, in pieces of {size}");
                same(&name, (blocks(&reply), finish(&reply)), (blocks(&good), finish(&good)))?;
                same(&name, notices(&reply), vec!["malformed"])?;
            }
        }
        Ok(())
    });
}

#[test]
fn d16_a_block_whose_start_is_malformed_keeps_its_text() {
    every([WireFormat::Responses, WireFormat::Anthropic, WireFormat::Bedrock, WireFormat::Cohere], |wire| {
        let (reader, script) = (wire.reader(), wire.scripts().nth(2).unwrap());
        let mut frames = wire.frames(script, 4);
        let starts = |frame: &Vec<u8>| {
            let text = String::from_utf8_lossy(frame);
            ["content_block_start", "content-start", "output_item.added"].iter().any(|start| text.contains(start))
        };
        for frame in frames.iter_mut().filter(|frame| starts(frame)) {
            *frame = wire.broken_frame();
        }
        let (whole, reply) = (reader.reply(&wire.frames(script, 4).concat()), reader.reply(&frames.concat()));
        same(&format!("{wire:?}"), (thinking_texts(&reply), text(&reply)), (thinking_texts(&whole), text(&whole)))
    });
}

#[test]
fn d16_every_kind_of_malformed_chunk() {
    #[rustfmt::skip]
    let cases = [
        ("not JSON",             "hello"),
        ("cut off",              r#"{"choices":[{"delta":{"content":"x"#),
        ("one quote too many",   r#"{"choices":[{"delta":{"content":"x""}}]}"#),
        ("a trailing comma",     r#"{"choices":[{"delta":{"content":"x"}},]}"#),
        ("single quotes",        "{'choices':[]}"),
        ("two values",           r#"{"choices":[]}{"choices":[]}"#),
        ("a lone brace",         "{"),
    ];
    every(cases, |(name, frame)| {
        let delta = |text: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#);
        let stream = sse([delta("A").as_str(), frame, &delta("B"), STOP, "[DONE]"]);
        ReplyReader::chat().check(name, &stream, "text 'AB'")?;
        let reply = ReplyReader::chat().reply(&stream);
        same(name, (notices(&reply), finish(&reply)), (vec!["malformed"], Some("stop".to_owned())))
    });
}

#[test]
fn d16_a_malformed_line_does_not_affect_other_lines() {
    #[rustfmt::skip]
    let cases = [
        ("not JSON",                   "hello"),
        ("a string that never closes", r#"{"message":{"content":"lost"#),
        ("an object that never closes", r#"{"message":{"content":"lost"},"done":false"#),
        ("half a key",                 r#"{"mess"#),
        ("a backslash at the end",     r#"{"message":{"content":"lost\\"#),
        ("one brace too many",         r#"{"message":{"content":""}},"done":false}"#),
        ("a lone brace",               "{"),
    ];
    every(cases, |(name, line)| {
        let first = r#"{"message":{"thinking":"a"},"done":false}"#;
        let last = r#"{"message":{"content":"A"},"done":true,"done_reason":"stop"}"#;
        let reader = ReplyReader::generic(Protocol::Ollama);
        let bytes = lines([first, line, last]);
        reader.check(name, &bytes, "think thinking 'a' | text 'A'")?;
        let reply = reader.reply(&bytes);
        same(name, (notices(&reply).contains(&"malformed"), finish(&reply).as_deref()), (true, Some("stop")))
    });
}

#[test]
fn d16_content_as_an_object_is_its_json_text() {
    let body = chat_whole(r#"{"content":{"k":[1,2]}}"#);
    ReplyReader::chat().check("structured output", &body, r#"text '{"k":[1,2]}'"#).unwrap();
}

#[test]
fn d16_values_of_the_wrong_kind_do_no_harm() {
    #[rustfmt::skip]
    let cases = [
        ("choices is text",        r#"{"choices":"none"}"#),
        ("choices is an object",   r#"{"choices":{}}"#),
        ("a choice is a number",   r#"{"choices":[5]}"#),
        ("delta is a list",        r#"{"choices":[{"index":0,"delta":[1]}]}"#),
        ("content is a number",    r#"{"choices":[{"index":0,"delta":{"content":7}}]}"#),
        ("the thinking is a list", r#"{"choices":[{"index":0,"delta":{"reasoning_content":[1,2]}}]}"#),
        ("details are text",       r#"{"choices":[{"index":0,"delta":{"reasoning_details":"x"}}]}"#),
        ("a detail is a number",   r#"{"choices":[{"index":0,"delta":{"reasoning_details":[3]}}]}"#),
        ("calls are text",         r#"{"choices":[{"index":0,"delta":{"tool_calls":"x"}}]}"#),
        ("a call is null",         r#"{"choices":[{"index":0,"delta":{"tool_calls":[null]}}]}"#),
        ("usage is text",          r#"{"choices":[],"usage":"much"}"#),
        ("the model is a number",  r#"{"model":4,"choices":[]}"#),
        ("the finish word is a number", r#"{"choices":[{"index":0,"delta":{},"finish_reason":3}]}"#),
        ("null",                   "null"),
        ("a list",                 "[1,2]"),
        ("a very large index",     r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":18446744073709551615}]}}]}"#),
        ("a negative index",       r#"{"choices":[{"index":-1,"delta":{"content":"x"}}]}"#),
        ("half a surrogate pair",  r#"{"choices":[{"index":0,"delta":{"content":"","x":"\ud83d"}}]}"#),
    ];
    every(cases, |(name, frame)| {
        let first = r#"{"choices":[{"index":0,"delta":{"content":"A"}}]}"#;
        let last = r#"{"choices":[{"index":0,"delta":{"content":"Z"}}]}"#;
        let reply = ReplyReader::chat().reply(&sse([first, frame, last, STOP, "[DONE]"]));
        let got = text(&reply);
        same(&format!("{name}: {}", drawn(&reply)), (got.starts_with('A'), got.ends_with('Z')), (true, true))?;
        same(name, finish(&reply).as_deref(), Some("stop"))
    });
}

#[test]
fn d16_an_error_in_mid_stream_keeps_what_came_before() {
    every(WireFormat::ALL, |wire| {
        let (reader, frames) = (wire.reader(), wire.frames(wire.scripts().nth(2).unwrap(), 4));
        for at in 0..frames.len() - 1 {
            let before = frames[..at].concat();
            let reply = reader.reply(&[before.as_slice(), &wire.error_frame()].concat());
            let name = format!("{wire:?}, error behind frame {at}");
            same(&name, blocks(&reply), blocks(&reader.reply(&before)))?;
            same(&name, reply.end.error.map(|error| error.message), Some("Overloaded".to_owned()))?;
        }
        Ok(())
    });
}

#[test]
fn d16_every_shape_of_an_error() {
    use Protocol::{OpenaiChat, OpenaiResponses};
    const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"A"}}]}"#;
    const ITEM: &str = r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"A"}"#;
    #[rustfmt::skip]
    let cases: &[(&str, Protocol, Vec<u8>)] = &[
        ("no choices",           OpenaiChat, sse([TEXT, r#"{"error":{"message":"Over","code":"c"}}"#])),
        ("empty choices",        OpenaiChat, sse([TEXT, r#"{"id":"x","choices":[],"error":{"code":400,"message":"Over","metadata":{}}}"#])),
        ("beside a finish word", OpenaiChat, sse([TEXT, r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"error":{"code":502,"message":"Over"}}"#, "[DONE]"])),
        ("an error finish word", OpenaiChat, sse([TEXT, r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"Over"}}"#])),
        ("inside the choice",    OpenaiChat, sse([TEXT, r#"{"choices":[{"index":0,"delta":{},"finish_reason":null,"error":{"code":502,"message":"Over"}}]}"#])),
        ("whole, in the choice", OpenaiChat, br#"{"choices":[{"index":0,"message":{"content":"A"},"finish_reason":null,"error":{"code":502,"message":"Over"}}]}"#.to_vec()),
        ("a status beside it",   OpenaiChat, sse([TEXT, r#"{"status_code":400,"error":{"message":"Over","type":"t","code":"c"}}"#])),
        ("a named event",        OpenaiChat, [sse([TEXT]), b"event: error\ndata: {\"error\":{\"message\":\"Over\"}}\n\n".to_vec()].concat()),
        ("before more of the answer", OpenaiChat, sse([r#"{"error":{"message":"Over"}}"#, TEXT, STOP, "[DONE]"])),
        ("behind the finish word", OpenaiChat, sse([TEXT, STOP, r#"{"error":{"message":"Over"}}"#, "[DONE]"])),
        ("flat",                 OpenaiResponses, sse([ITEM, r#"{"type":"error","code":"c","message":"Over","param":null}"#])),
        ("nested, then failed",  OpenaiResponses, sse([ITEM, r#"{"type":"error","error":{"type":"t","code":"c","message":"Over"}}"#, r#"{"type":"response.failed","response":{"status":"failed","output":[],"error":{"code":"c","message":"Over"}}}"#])),
        ("failed",               OpenaiResponses, sse([ITEM, r#"{"type":"response.failed","response":{"status":"failed","output":[],"error":{"code":"c","message":"Over"}}}"#])),
    ];
    every(cases, |(name, protocol, bytes)| {
        let reader = ReplyReader::generic(*protocol);
        reader.check(name, bytes, "text 'A'")?;
        same(name, reader.reply(bytes).end.error.map(|error| error.message), Some("Over".to_owned()))
    });
}

#[test]
fn d16_where_the_stream_ends() {
    const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"A"}}]}"#;
    #[rustfmt::skip]
    let cases = [
        ("complete",                  sse([TEXT, STOP, "[DONE]"]),                       Some("stop"), vec![]),
        ("no [DONE]",                 sse([TEXT, STOP]),                                 Some("stop"), vec![]),
        ("no blank line at the end",  format!("data: {TEXT}\n\ndata: {STOP}").into(),    Some("stop"), vec![]),
        ("[DONE] twice",              sse([TEXT, STOP, "[DONE]", "[DONE]"]),             Some("stop"), vec![]),
        ("no finish word",            sse([TEXT, "[DONE]"]),                             None,         vec![]),
        ("it just stops",             sse([TEXT]),                                       None,         vec!["cut_off"]),
        ("it stops inside a chunk",   format!("data: {TEXT}\n\ndata: {{\"cho").into(),   None,         vec!["cut_off"]),
    ];
    every(cases, |(name, bytes, expected, codes)| {
        ReplyReader::chat().check(name, &bytes, "text 'A'")?;
        let reply = ReplyReader::chat().reply(&bytes);
        same(name, (finish(&reply).as_deref(), notices(&reply)), (expected, codes))
    });
    every(WireFormat::ALL, |wire| {
        let frames = wire.frames(wire.scripts().nth(2).unwrap(), 4);
        let reply = wire.reader().reply(&frames[..3].concat());
        same(&format!("{wire:?} just stops"), (finish(&reply), notices(&reply)), (None, vec!["cut_off"]))
    });
}

#[test]
fn d16_cut_at_any_byte_keeps_what_was_there() {
    every(WireFormat::ALL, |wire| {
        let (reader, bytes) = (wire.reader(), wire.frames(wire.scripts().nth(4).unwrap(), 8).concat());
        let whole = reader.reply(&bytes);
        let full = (thinking_texts(&whole).concat(), text(&whole));
        for at in 0..bytes.len() {
            let (reply, _) = decode(reader.protocol, &reader.rules, &bytes[..at], usize::MAX);
            let name = format!("{wire:?}, cut at {at}: {}", drawn(&reply));
            // Text held back by the tag parser may be text until the tag is known.
            let got = (thinking_texts(&reply).concat(), text(&reply));
            if wire != WireFormat::ChatTags {
                same(&name, (full.0.starts_with(&got.0), full.1.starts_with(&got.1)), (true, true))?;
            }
            let said = finish(&reply);
            same(&name, said.is_some() || at == 0 || notices(&reply) == ["cut_off"], true)?;
            same(&name, said.is_none() || said == finish(&whole), true)?;
        }
        Ok(())
    });
}

#[test]
fn d16_sse_framing_in_every_variant() {
    let plain = String::from_utf8(chat(&[r#"{"reasoning_content":"ä→🔭"}"#, r#"{"content":"A"}"#])).unwrap();
    let expected = "think reasoning_content 'ä→🔭' | text 'A'";
    let split = plain.replace(r#""delta":"#, "\"delta\":\ndata:");
    #[rustfmt::skip]
    let cases = [
        ("LF",                        plain.clone()),
        ("CRLF",                      plain.replace('\n', "\r\n")),
        ("CR",                        plain.replace('\n', "\r")),
        ("all of them",               plain.replacen("\n\n", "\r\r\n", 1).replacen("\n\n", "\r\n\n", 1)),
        ("blank lines first",         format!("\n\n\r\n{plain}")),
        ("comments",                  format!(": PROCESSING\n\n:\n\n{}", plain.replace("data: ", ": keep-alive\n\ndata: "))),
        ("a comment inside an event", plain.replace("data: ", ":x\ndata: ")),
        ("no space behind the colon", plain.replace("data: ", "data:")),
        ("names, ids and retries",    plain.replace("data: ", "event: message\nid: 7\nretry: 10\ndata: ")),
        ("fields nobody knows",       plain.replace("data: ", "x-trace: 1\nnote\ndata: ")),
        ("data in several lines",     split.clone()),
        ("the same with CRLF",        split.replace('\n', "\r\n")),
        ("the same with CR",          split.replace('\n', "\r")),
        ("many blank lines between",  plain.replace("\n\n", "\n\n\n\n")),
    ];
    every(cases, |(name, bytes)| {
        ReplyReader::chat().check(name, bytes.as_bytes(), expected)?;
        let reply = ReplyReader::chat().reply(bytes.as_bytes());
        same(name, (finish(&reply).as_deref(), notices(&reply)), (Some("stop"), vec![]))
    });
}

#[test]
fn d16_framing_of_bodies_lines_and_arrays() {
    use Protocol::{Gemini, Ollama, OpenaiChat};
    let body = String::from_utf8(chat_whole(r#"{"content":"A"}"#)).unwrap();
    let stream = String::from_utf8(ollama(&[r#"{"content":"A"}"#])).unwrap();
    let whole = String::from_utf8(ollama_whole(r#"{"content":"A"}"#)).unwrap();
    let events = String::from_utf8(gemini(&[r#"[{"text":"A"}]"#])).unwrap();
    let array = format!("[{}]", events.trim_end().trim_start_matches("data: ").replace("\n\ndata: ", ",\r\n"));
    #[rustfmt::skip]
    let cases = [
        ("white space before a body",  OpenaiChat, format!("\n\n   {body}")),
        ("lines with CRLF",            Ollama,     stream.replace('\n', "\r\n")),
        ("blank lines between",        Ollama,     stream.replace('\n', "\n\n")),
        ("no end of the last line",    Ollama,     stream.trim_end().to_owned()),
        ("one line",                   Ollama,     whole),
        ("events with CRLF",           Gemini,     events.replace('\n', "\r\n")),
        ("an array",                   Gemini,     array.clone()),
    ];
    every(cases, |(name, protocol, bytes)| {
        let reader = ReplyReader::generic(protocol);
        reader.check(name, bytes.as_bytes(), "text 'A'")?;
        let reply = reader.reply(bytes.as_bytes());
        same(name, (finish(&reply).as_deref(), notices(&reply)), (Some("stop"), vec![]))
    });
}

#[test]
fn d16_a_byte_order_mark_is_skipped() {
    use Protocol::{Anthropic, Gemini, Ollama, OpenaiChat};
    #[rustfmt::skip]
    let cases = [
        ("events",     OpenaiChat, chat(&[r#"{"content":"A"}"#])),
        ("a body",     OpenaiChat, chat_whole(r#"{"content":"A"}"#)),
        ("lines",      Ollama,     ollama(&[r#"{"content":"A"}"#])),
        ("an array",   Gemini,     br#"[{"candidates":[{"content":{"parts":[{"text":"A"}]},"finishReason":"STOP"}]}]"#.to_vec()),
        ("a message",  Anthropic,  br#"{"type":"message","content":[{"type":"text","text":"A"}],"stop_reason":"end_turn"}"#.to_vec()),
    ];
    every(cases, |(name, protocol, bytes)| {
        let reader = ReplyReader::generic(protocol);
        let marked = [b"\xef\xbb\xbf", bytes.as_slice()].concat();
        reader.check(name, &marked, "text 'A'")?;
        same(name, (finish(&reader.reply(&marked)).as_deref(), notices(&reader.reply(&marked))), (Some("stop"), vec![]))
    });
}

#[test]
fn d16_only_choice_0_is_read_and_others_are_reported_once() {
    use Protocol::{Gemini, OpenaiChat};
    let choice = |index: u32, text: &str| {
        format!(r#"{{"index":{index},"delta":{{"content":"{text}"}},"finish_reason":"stop"}}"#)
    };
    let candidate = |index: u32, text: &str| {
        format!(r#"{{"index":{index},"content":{{"parts":[{{"text":"{text}"}}]}},"finishReason":"STOP"}}"#)
    };
    #[rustfmt::skip]
    let cases = [
        ("in one chunk",       OpenaiChat, sse([format!(r#"{{"choices":[{},{}]}}"#, choice(0, "A"), choice(1, "B"))])),
        ("the other first",    OpenaiChat, sse([format!(r#"{{"choices":[{},{}]}}"#, choice(1, "B"), choice(0, "A"))])),
        ("in chunks of their own", OpenaiChat, sse([format!(r#"{{"choices":[{}]}}"#, choice(1, "B")), format!(r#"{{"choices":[{}]}}"#, choice(0, "A")), format!(r#"{{"choices":[{}]}}"#, choice(2, "C"))])),
        ("whole",              OpenaiChat, br#"{"choices":[{"index":0,"message":{"content":"A"},"finish_reason":"stop"},{"index":1,"message":{"content":"B"},"finish_reason":"stop"}]}"#.to_vec()),
        ("in one chunk",       Gemini,     sse([format!(r#"{{"candidates":[{},{}]}}"#, candidate(0, "A"), candidate(1, "B"))])),
        ("the other first",    Gemini,     sse([format!(r#"{{"candidates":[{},{}]}}"#, candidate(1, "B"), candidate(0, "A"))])),
        ("in chunks of their own", Gemini, sse([format!(r#"{{"candidates":[{}]}}"#, candidate(1, "B")), format!(r#"{{"candidates":[{}]}}"#, candidate(0, "A"))])),
    ];
    every(cases, |(name, protocol, bytes)| {
        let reader = ReplyReader::generic(protocol);
        reader.check(name, &bytes, "text 'A'")?;
        let reply = reader.reply(&bytes);
        same(name, (finish(&reply).as_deref(), notices(&reply)), (Some("stop"), vec!["other_choices"]))
    });
}

#[test]
fn d16_invalid_utf8_affects_only_itself() {
    let bad = [
        &sse([r#"{"choices":[{"index":0,"delta":{"content":"A"}}]}"#])[..],
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xff\xfe\"}}]}\n\n",
        &sse([r#"{"choices":[{"index":0,"delta":{"content":"B"}}]}"#, STOP]),
    ]
    .concat();
    let reply = ReplyReader::chat().reply(&bad);
    assert_eq!((text(&reply).as_str(), finish(&reply).as_deref()), ("A\u{fffd}\u{fffd}B", Some("stop")));
    assert_eq!(notices(&reply).len(), 1, "it is reported");
}

#[test]
fn d16_nothing_and_noise() {
    let bytes: Vec<u8> = (0..=255).cycle().take(4000).collect();
    let mut noise = 7_u32;
    let noise: Vec<u8> = (0..4000)
        .map(|_| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            noise.to_be_bytes()[0]
        })
        .collect();
    #[rustfmt::skip]
    let cases: &[(&str, &[u8])] = &[
        ("nothing",           b""),
        ("white space",       b" \n\n \r\n"),
        ("every byte",        &bytes),
        ("noise",             &noise),
        ("zeros",             &[0; 64]),
        ("an image",          b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01"),
        ("a web page",        b"<!DOCTYPE html>\n<html><body>502 Bad Gateway</body></html>\n"),
        ("half a mark",       b"\xef\xbb"),
        ("a brace",           b"{"),
        ("a thousand braces", &[b'{'; 1000]),
        ("deep lists",        &[b'['; 5000]),
        ("a quote",           b"\""),
        ("an event, no data", b"event: message\n\n"),
        ("a length that lies", &[0, 0, 0, 16, 0, 0, 0, 200, 1, 2, 3, 4, 0, 0, 0, 0]),
    ];
    let rows = cases.iter().flat_map(|case| Protocol::ALL.map(|protocol| (case, protocol)));
    every(rows, |((name, bytes), protocol)| {
        let reader = ReplyReader::generic(protocol);
        for size in [usize::MAX, 1, 7] {
            let (reply, outcome) = decode(protocol, &reader.rules, bytes, size);
            let name = format!("{name} ({protocol}, in pieces of {size}): {}", drawn(&reply));
            same(&name, (reply.blocks.len(), finish(&reply)), (0, None))?;
            same(&format!("{name} is not taken for a reply"), outcome.is_err(), true)?;
        }
        Ok(())
    });
}

fn with_limit(reader: &ReplyReader, limit: usize, bytes: &[u8], size: usize) -> (Reply, Result<(), NotUnderstood>) {
    let mut fold = Fold::new();
    let mut decoder = Decoder::with_limit(reader.protocol, &reader.rules, limit);
    for chunk in bytes.chunks(size) {
        decoder.push(chunk, &mut fold);
    }
    let outcome = decoder.finish(&mut fold);
    (fold.finish(), outcome)
}

#[test]
fn d16_an_event_over_the_limit_is_skipped_and_reported() {
    let long = "x".repeat(3000);
    let delta = |text: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#);
    let line = |text: &str| format!(r#"{{"message":{{"content":"{text}"}},"done":false}}"#);
    let block = |text: &str| {
        aws_event("contentBlockDelta", &format!(r#"{{"contentBlockIndex":0,"delta":{{"text":"{text}"}}}}"#))
    };
    #[rustfmt::skip]
    let cases = [
        (Protocol::OpenaiChat, sse([&delta("A"), &delta(&long), &delta("B"), STOP])),
        (Protocol::Ollama,     lines([&line("A"), &line(&long), &line("B"), r#"{"message":{"content":""},"done":true,"done_reason":"stop"}"#])),
        (Protocol::Bedrock,    [block("A"), block(&long), block("B"), aws_event("messageStop", r#"{"stopReason":"end_turn"}"#)].concat()),
    ];
    every(cases, |(protocol, bytes)| {
        let reader = ReplyReader::generic(protocol);
        for size in [usize::MAX, 1, 64, 1000] {
            let (reply, outcome) = with_limit(&reader, 1024, &bytes, size);
            let name = format!("{protocol}, in pieces of {size}");
            same(&name, (text(&reply), finish(&reply)), ("AB".to_owned(), Some("stop".to_owned())))?;
            same(&name, (notices(&reply), outcome.is_ok()), (vec!["oversized"], true))?;
        }
        let roomy = with_limit(&reader, 1 << 20, &bytes, 64).0;
        same(&format!("{protocol}, room enough"), (text(&roomy).len(), notices(&roomy)), (3002, vec![]))
    });
    let body = chat_whole(&format!(r#"{{"content":"{long}"}}"#));
    let (reply, outcome) = with_limit(&ReplyReader::chat(), 1024, &body, 64);
    assert_eq!((reply.blocks.len(), notices(&reply)[0], outcome.is_err()), (0, "oversized", true), "a whole body");
}

/// Quadratic work would take minutes here, not a second.
#[test]
fn d16_large_input_in_small_pieces_is_linear() {
    let text = "word \\n".repeat(60_000);
    let one = chat_whole(&format!(r#"{{"content":"A","reasoning_content":"{text}"}}"#));
    let (reply, _) = decode(Protocol::OpenaiChat, &ReplyReader::chat().rules, &one, 1);
    assert_eq!(thinking_texts(&reply).concat().len(), 6 * 60_000, "one large body, byte by byte");
    let tag = chat(&[&format!(r#"{{"content":"<think>{}</think>A"}}"#, "</thin".repeat(50_000))]);
    let (reply, _) = decode(Protocol::OpenaiChat, &ReplyReader::chat().rules, &tag, 1000);
    assert_eq!(thinking_texts(&reply).concat().len(), 6 * 50_000, "half a tag again and again");
    let many: Vec<String> = (0..60_000)
        .map(|_| r#"{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}"#.to_owned())
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let reply = ReplyReader::chat().reply(&chat(&many));
    assert_eq!((reply.blocks.len(), thinking_texts(&reply).concat().len()), (1, 60_000), "many small fragments");
}
