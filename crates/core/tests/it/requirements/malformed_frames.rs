//! D19: a frame that is not valid JSON is never half read.

use aside_core::block::Reply;
use aside_core::event::{Event, NoteCode};
use aside_core::protocol::Protocol;
use aside_core::wire::{Decoder, read_request};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde::de::IgnoredAny;

use super::scripted_replies::WireFormat;
use super::{ReplyReader, as_json, every, finish, notices, same};
use crate::support::{decode, generic_rules};

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Everything but the notes.
fn content(reply: &Reply) -> (serde_json::Value, Option<String>, aside_core::event::Usage) {
    (as_json(reply)["blocks"].clone(), finish(reply), reply.usage)
}

/// The ways to damage a frame at every place where they apply: the frame stays in one
/// line, with its brackets balanced.
fn damaged(json: &str) -> Vec<(&'static str, String)> {
    let replaced = |from: &'static str, to: &'static str, name: &'static str| {
        let places: Vec<usize> = json.match_indices(from).map(|(at, _)| at).collect();
        places.into_iter().map(move |at| {
            let (before, after) = json.split_at(at);
            (name, format!("{before}{to}{}", &after[from.len()..]))
        })
    };
    let all = [
        (",\"", "\"", "a missing comma"),
        ("\":", "\"::", "a doubled colon"),
        ("\":", "\"", "a missing colon"),
        (",\"", ",,\"", "a doubled comma"),
        ("}", ",}", "a trailing comma"),
        ("\":\"", "\":\"\t", "a control character"),
        ("\":\"", "\":\"\\x", "an unknown escape"),
        ("\":\"", "\":\"\\u12", "half an escape"),
        ("\":{", "\":x{", "a stray letter"),
        ("]", "1 2]", "two values"),
        ("0", "00", "a leading zero"),
        ("null", "nul", "half a word"),
    ];
    let all = all.into_iter().flat_map(|(from, to, name)| replaced(from, to, name));
    all.filter(|(_, json)| !is_json(json)).collect()
}

#[test]
fn d19_nothing_of_a_malformed_frame_is_used() {
    every(WireFormat::ALL, |wire| {
        let (reader, script) = (wire.reader(), wire.scripts().last().unwrap());
        let frames = wire.frames(script, 1000);
        let good = reader.reply(&frames.concat());
        for (at, (name, json)) in wire.payloads(script, 1000).iter().enumerate() {
            for (damage, json) in damaged(json) {
                let mut frames = frames.clone();
                frames.insert(at, wire.framed(name, &json));
                // The property below tries other chunks.
                let (reply, _) = decode(reader.protocol, &reader.rules, &frames.concat(), usize::MAX);
                let case = format!("{wire:?}, {damage}: {json}");
                same(&case, content(&reply), content(&good))?;
                same(&case, notices(&reply), vec!["malformed"])?;
            }
        }
        Ok(())
    });
}

#[test]
fn d19_nothing_of_a_malformed_body_is_used() {
    every(WireFormat::ALL, |wire| {
        let (reader, script) = (wire.reader(), wire.scripts().last().unwrap());
        let body = String::from_utf8(wire.whole(script)).unwrap();
        let brace = |at: usize| format!("{}}}{}", &body[..at], &body[at..]);
        let extra = body.match_indices('}').map(|(at, _)| ("one brace too many", brace(at)));
        let extra = extra.filter(|(_, json)| !is_json(json));
        for (damage, json) in damaged(&body).into_iter().chain(extra) {
            for size in [usize::MAX, 5] {
                let (reply, outcome) = decode(reader.protocol, &reader.rules, json.as_bytes(), size);
                let case = format!("{wire:?}, {damage} in pieces of {size}: {json}");
                same(&case, (reply.blocks.len(), notices(&reply).contains(&"malformed")), (0, true))?;
                same(&case, outcome.is_err(), true)?;
            }
        }
        Ok(())
    });
}

#[test]
fn d19_an_element_of_an_array_is_read_whole_or_not_at_all() {
    let reader = ReplyReader::generic(Protocol::Gemini);
    let element =
        |part: &str| format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":[{part}]}},"index":0}}]}}"#);
    let (thinking, last) = (
        element(r#"{"text":"a","thought":true}"#),
        r#"{"candidates":[{"content":{"parts":[{"text":"A"}]},"finishReason":"STOP"}]}"#,
    );
    let good = reader.reply(format!("[{thinking}\n,\r\n{last}]").as_bytes());
    every(damaged(&element(r#"{"text":"lost","thoughtSignature":"s"}"#)), |(damage, json)| {
        let bytes = format!("[{thinking}\n,\r\n{json}\n,\r\n{last}]");
        for size in [usize::MAX, 1, 5] {
            let (reply, _) = decode(reader.protocol, &reader.rules, bytes.as_bytes(), size);
            let case = format!("{damage} in pieces of {size}: {json}");
            same(&case, content(&reply), content(&good))?;
            same(&case, notices(&reply), vec!["malformed"])?;
        }
        Ok(())
    });
}

/// Parts that are only kept, to be sent back as they are.
#[test]
fn d19_kept_parts_are_checked_too() {
    use Protocol::{Anthropic, Bedrock, Gemini, OpenaiChat, OpenaiResponses};
    #[rustfmt::skip]
    let cases = [
        ("a block of an unknown kind", Anthropic,       r#"{"type":"content_block_start","index":0,"content_block":{"type":"new","x":{"y":[1 2]}}}"#),
        ("a citation",                 Anthropic,       r#"{"type":"content_block_delta","index":0,"delta":{"citation":{"a"::1}}}"#),
        ("an item of an unknown kind", OpenaiResponses, r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"new","x":[{"y" 1}]}}"#),
        ("a reasoning detail",         OpenaiChat,      r#"{"choices":[{"delta":{"reasoning_details":[{"type":"new","data":{"a":1 "b":2}}]}}]}"#),
        ("the members of a call",      OpenaiChat,      r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""},"extra_content":{"google":{,}}}]}}]}"#),
        ("a part of an unknown kind",  Gemini,          r#"{"candidates":[{"content":{"parts":[{"executableCode":{"code":"x",}}]}}]}"#),
        ("a body",                     Bedrock,         r#"{"output":{"message":{"content":[{"new":{"a":[1,]}},{"text":"A"}]}},"stopReason":"end_turn"}"#),
        ("an unread member",           OpenaiChat,      r#"{"x":{"y":{"z":01}},"choices":[{"delta":{"content":"A"}}]}"#),
    ];
    every(cases, |(name, protocol, json)| {
        let bytes = if protocol == Bedrock { json.as_bytes().to_vec() } else { super::sse([json]) };
        let reply = ReplyReader::generic(protocol).reply(&bytes);
        same(name, (reply.blocks.len(), notices(&reply)[0]), (0, "malformed"))
    });
}

#[test]
fn d19_the_notice_names_the_frame_and_quotes_at_most_200_bytes() {
    let long = format!(r#"{{"choices":[{{"delta":{{"content":"{}"}}}},]}}"#, "ä".repeat(5000));
    let good = r#"{"choices":[{"delta":{"content":"A"}}]}"#;
    let reply = ReplyReader::chat().reply(&super::sse([good, long.as_str(), good]));
    let note = reply.notes.iter().find(|note| note.code == NoteCode::Malformed).unwrap();
    let quoted = note.message.split_once("): ").unwrap().1;
    assert!(note.message.starts_with("frame 2 was skipped (not JSON at byte 10037): "), "{}", note.message);
    assert!(quoted.trim_end_matches('…').len() <= 200 && long.starts_with(quoted.trim_end_matches('…')), "{quoted}");
}

#[test]
fn d19_a_request_that_is_not_json_is_refused_with_its_position() {
    every(Protocol::ALL, |protocol| {
        let body = r#"{"model":"m" "messages":[]}"#;
        let error = read_request(protocol, &generic_rules(protocol), body).unwrap_err();
        same(&format!("{protocol:?}"), error.to_string(), "body: not JSON at byte 13".to_owned())
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any damage within one line of JSON that serde rejects gives one notice and nothing
    /// else, in any chunks.
    #[test]
    fn d19_any_damage_to_a_frame_gives_a_notice_and_nothing_else(
        wire in select(WireFormat::ALL.to_vec()),
        script in any::<Index>(),
        place in any::<Index>(),
        damage in vec((any::<Index>(), "[{}\\[\\],:\"\\\\x01 .\\-]?"), 1..4),
        size in 1usize..40,
    ) {
        let scripts: Vec<_> = wire.scripts().collect();
        let script = scripts[script.index(scripts.len())];
        let payloads = wire.payloads(script, 6);
        let at = place.index(payloads.len());
        let (name, json) = &payloads[at];
        let mut json: Vec<char> = json.chars().collect();
        for (place, with) in &damage {
            let at = place.index(json.len());
            match with.chars().next() {
                Some(letter) => json.insert(at, letter),
                None => { json.remove(at); }
            }
        }
        let json: String = json.into_iter().collect();
        prop_assume!(!is_json(&json) && !json.trim().is_empty());
        let reader = wire.reader();
        // A valid frame first: the beginning of a body decides its framing.
        let mut frames = wire.frames(script, 6);
        let good = reader.reply(&frames.concat());
        frames.insert(at.max(1), wire.framed(name, &json));
        let bytes = frames.concat();
        for size in [usize::MAX, size] {
            let (reply, _) = decode(reader.protocol, &reader.rules, &bytes, size);
            prop_assert_eq!(content(&reply), content(&good), "{}", &json);
            prop_assert_eq!(notices(&reply), vec!["malformed"], "{}", &json);
        }
    }

    /// A damaged body alone: no event besides the note and the ending.
    #[test]
    fn d19_a_damaged_body_emits_only_notes(
        wire in select(WireFormat::ALL.to_vec()),
        script in any::<Index>(),
        damage in vec((any::<Index>(), "[{}\\[\\],:\"\\\\x01 .\\-]?"), 1..4),
        size in 1usize..40,
    ) {
        let scripts: Vec<_> = wire.scripts().collect();
        let mut json: Vec<char> = String::from_utf8(wire.whole(scripts[script.index(scripts.len())])).unwrap().chars().collect();
        for (place, with) in &damage {
            // The first character decides the framing.
            let at = 1 + place.index(json.len() - 1);
            match with.chars().next() {
                Some(letter) => json.insert(at, letter),
                None => { json.remove(at); }
            }
        }
        let json: String = json.into_iter().collect();
        prop_assume!(!is_json(&json) && !is_cut(&json));
        let reader = wire.reader();
        let mut seen = Vec::new();
        let mut decoder = Decoder::new(reader.protocol, &reader.rules);
        let mut take = |event: Event<'_>| match event {
            Event::Noted(_) | Event::Ended(_) => (),
            other => seen.push(format!("{other:?}")),
        };
        for chunk in json.as_bytes().chunks(size) {
            decoder.push(chunk, &mut take);
        }
        let outcome = decoder.finish(&mut take);
        prop_assert_eq!(seen, Vec::<String>::new(), "{}", &json);
        prop_assert!(outcome.is_err(), "{}", &json);
    }
}

/// Whether a text could be the beginning of a longer valid one. A body that broke off is
/// another case.
fn is_cut(json: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(json).is_err_and(|error| error.is_eof())
}
