//! One check per fuzz target, shared by the fuzzer and the tests that replay its
//! findings: any bytes, in any chunks, never panic.

use aside_core::conversation::Conversation;
use aside_core::frame::{Framed, Framer};
use aside_core::interchange::{ImportFile, OpaqueData, import, write_lines};
use aside_core::json_text::{find_escaped, short_members};
use aside_core::protocol::Protocol;
use aside_core::rules::{IssuedThinking, NotARequest, judge};
use aside_core::tags::{StrayClose, TagParser, TagPiece, TagReach, TagStart};
use aside_core::wire::{detect_protocol, read_request};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::support::{dialects, events, generic_rules};

/// Runs the check of one target. The first byte decides how the rest is split.
pub(crate) fn check(target: &str, data: &[u8]) {
    let Some((&how, bytes)) = data.split_first() else { return };
    match target {
        "framing" => framing(how, bytes),
        "tags" => tags(how, &String::from_utf8_lossy(bytes)),
        "json" => json(&String::from_utf8_lossy(bytes)),
        "requests" => requests(&String::from_utf8_lossy(bytes)),
        "judge" => judge_body(how, &String::from_utf8_lossy(bytes)),
        "conversation" => conversation(&String::from_utf8_lossy(bytes)),
        "import" => import_file(how, &String::from_utf8_lossy(bytes)),
        protocol => {
            let protocol: Protocol = protocol.replace('_', "-").parse().expect("a target is a protocol");
            codec(protocol, how, bytes);
        }
    }
}

fn codec(protocol: Protocol, how: u8, bytes: &[u8]) {
    let rules = generic_rules(protocol);
    let whole = events(protocol, &rules, [bytes]);
    assert_eq!(events(protocol, &rules, bytes.chunks(chunk_size(how))), whole);
    let _ = detect_protocol(bytes);
}

fn framing(how: u8, bytes: &[u8]) {
    // A low limit, so that inputs reach it.
    let limit = if how & 0x80 == 0 { 1 << 20 } else { 16 };
    let frames = |size: usize| {
        let mut framer = if how & 0x40 == 0 { Framer::new(limit) } else { Framer::of_lines(limit) };
        let mut found = Vec::new();
        let mut take = |framed: Framed<'_>| {
            found.push(match framed {
                Framed::Frame(frame) => (frame.name.to_vec(), frame.data.to_vec(), u8::from(frame.cut)),
                Framed::Oversized { .. } => (Vec::new(), Vec::new(), 2),
                Framed::Corrupt { .. } => (Vec::new(), Vec::new(), 3),
            });
        };
        for chunk in bytes.chunks(size) {
            framer.push(chunk, &mut take);
        }
        framer.finish(&mut take);
        found
    };
    assert_eq!(frames(chunk_size(how)), frames(usize::MAX));
}

fn tags(how: u8, text: &str) {
    let mut rules = generic_rules(Protocol::OpenaiChat).read.tags;
    rules.start = [TagStart::Explicit, TagStart::Prefilled, TagStart::Auto, TagStart::Explicit][usize::from(how & 3)];
    rules.reach = if how & 4 == 0 { TagReach::Leading } else { TagReach::Anywhere };
    rules.stray_close = if how & 8 == 0 { StrayClose::Keep } else { StrayClose::Swallow };
    if how & 16 != 0 {
        rules.close_at = vec!["<tool_call>".to_owned()];
    }
    let pieces = |letters: usize| {
        let mut parser = TagParser::new(rules.clone());
        let mut found: Vec<(u8, String)> = Vec::new();
        let mut take = |piece: TagPiece<'_>| {
            let (kind, text) = match piece {
                TagPiece::Text(text) => (0, text),
                TagPiece::Thinking(text) => (1, text),
                TagPiece::Open { tag } => (2, tag),
                TagPiece::Close => (3, ""),
                TagPiece::Refile(_) => (4, ""),
            };
            match found.last_mut() {
                Some((last, joined)) if *last == kind && kind < 2 => joined.push_str(text),
                _ => found.push((kind, text.to_owned())),
            }
        };
        let mut chunk = String::new();
        for (count, letter) in text.chars().enumerate() {
            chunk.push(letter);
            if (count + 1) % letters == 0 {
                parser.push(&std::mem::take(&mut chunk), &mut take);
            }
        }
        parser.push(&chunk, &mut take);
        parser.finish(&mut take);
        found
    };
    assert_eq!(pieces(chunk_size(how >> 5)), pieces(usize::MAX));
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Our check agrees with serde.
fn json(text: &str) {
    let found = short_members(text, &["text", "a"], 1 << 16);
    assert_eq!(found.is_ok(), is_json(text));
    for (name, value) in found.iter().flatten() {
        let whole: Value = serde_json::from_str(text).unwrap_or_default();
        // Serde refuses a lone surrogate or deep nesting anywhere in the text.
        assert!(whole.is_null() || whole.get(name) == Some(value));
        if let Value::String(inner) = value {
            let quoted = value.to_string();
            let found = find_escaped(&quoted, inner).expect("a string contains its own text");
            assert_eq!(quoted.get(found), quoted.get(1..quoted.len() - 1));
        }
    }
}

/// A request is read only if it is JSON.
fn requests(text: &str) {
    for protocol in Protocol::ALL {
        let read = read_request(protocol, &generic_rules(protocol), text);
        assert!(read.is_err() || is_json(text));
    }
}

fn judge_body(how: u8, text: &str) {
    let all: Vec<_> = dialects().iter().collect();
    let dialect = all[usize::from(how) % all.len()];
    let verdict = judge(dialect, "m", &[], text, IssuedThinking::Unknown);
    match verdict {
        Ok(_) | Err(NotARequest::OtherProtocol { .. } | NotARequest::NoMessages { .. }) => assert!(is_json(text)),
        Err(error) => assert!(!is_json(text), "{error}"),
    }
}

/// What was read can be written, and reads the same again.
fn conversation(text: &str) {
    let Ok(conversation) = Conversation::parse(text) else { return };
    let written = write_lines(&conversation, OpaqueData::Keep);
    let again = Conversation::parse(&written).expect("our own lines can be read");
    assert_eq!(write_lines(&again, OpaqueData::Keep), written);
}

fn import_file(how: u8, text: &str) {
    let name = ["a.jsonl", "a.md", "a.json", "session.jsonl"][usize::from(how & 3)];
    let Ok(imported) = import(&[ImportFile { name, text }], dialects()) else { return };
    conversation(&write_lines(&imported.conversation, OpaqueData::Keep));
}

fn chunk_size(how: u8) -> usize {
    usize::from(how & 0x3f) + 1
}
