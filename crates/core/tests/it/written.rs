//! What a provider would send, written by us and read again: nothing of a
//! reply is lost on the way, whatever the dialect.

use aside_core::block::{Arguments, Block, CallId, Content, Native, Reply};
use aside_core::dialect::Rules;
use aside_core::event::{Ending, NoteCode};
use aside_core::protocol::Protocol;
use aside_core::wire::{Decoder, ReplyHead, StreamWriter, tell_reply, whole_reply};
use serde_json::Value;

use crate::corpus::recordings;
use crate::fixtures::fixtures;
use crate::support::{decode, generic_rules};

fn head(model: Option<&str>) -> ReplyHead<'_> {
    ReplyHead { id: "reply-1", model: model.unwrap_or(""), created: 1_763_200_000 }
}

/// Written while it is decoded, as a gateway does.
fn passed_on(protocol: Protocol, rules: &Rules, model: Option<&str>, bytes: &[u8]) -> Vec<u8> {
    let mut writer = StreamWriter::new(protocol, rules, &head(model));
    let mut decoder = Decoder::new(protocol, rules);
    decoder.push(bytes, &mut writer);
    assert_eq!(decoder.finish(&mut writer), Ok(()));
    writer.drain()
}

/// Written from a reply that is there as a whole.
fn told(protocol: Protocol, rules: &Rules, reply: &Reply) -> Vec<u8> {
    let mut writer = StreamWriter::new(protocol, rules, &head(reply.model.as_deref()));
    tell_reply(reply, &mut writer);
    writer.drain()
}

fn read(protocol: Protocol, rules: &Rules, bytes: &[u8]) -> Reply {
    decode(protocol, rules, bytes, usize::MAX).0
}

/// Replies that change on the way, all of them for a reason: the fixture or
/// recording, which ways of writing change it, why.
#[rustfmt::skip]
const CHANGED: &[(&str, &[Way], &str)] = &[
    // What an entry is called is known only when it is over; its text went out before.
    ("openrouter/summary_and_encrypted", &[Way::PassedOn], "an entry's type is told when it is over"),
    ("216-", &[Way::PassedOn], "as above"),
    ("248-", &[Way::PassedOn], "as above"),
    ("256-", &[Way::PassedOn], "as above"),
    ("500-", &[Way::PassedOn], "as above"),
    ("506-", &[Way::PassedOn], "as above"),
    ("227-", &[Way::PassedOn], "as above; a payload is told then too, behind the entries that grew meanwhile"),
    ("241-", &[Way::PassedOn], "entries without an index get one"),
    ("032-", &[Way::PassedOn], "who calls a tool stands in the start of the call and is told at its end"),
    ("040-", &[Way::PassedOn], "as 032"),
    // Nothing that is wrong with these is ours.
    ("185-", &Way::ALL, "InvokeModel wraps another protocol; we write Converse"),
    ("459-", &Way::ALL, "thinking beside the output becomes an item, which has an id"),
    ("460-", &Way::ALL, "as 459"),
];

/// How a reply becomes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// While it is decoded, as a gateway does.
    PassedOn,
    /// From the reply, streamed.
    Told,
    /// From the reply, in one body.
    Whole,
}

impl Way {
    const ALL: [Way; 3] = [Way::PassedOn, Way::Told, Way::Whole];
}

/// Differences that make none, whatever the protocol:
/// - the members of a kept item may change their order;
/// - a call that came without an id goes out with the one it got from us;
/// - arguments may lose white space where they are an object;
/// - what a decoder noted about the bytes is not in the bytes it notes next.
pub(crate) fn settled(mut reply: Reply) -> Reply {
    let sort = |native: &mut Native| {
        if let Ok(value) = serde_json::from_str::<Value>(&native.json) {
            native.json = value.to_string();
        }
    };
    for block in &mut reply.blocks {
        match block {
            Block::Text(text) => text.native.iter_mut().for_each(sort),
            Block::Thinking(thinking) => thinking.native.iter_mut().for_each(sort),
            Block::ToolCall(call) => {
                call.id = CallId::Given(call.id.as_str().to_owned());
                call.native.iter_mut().for_each(sort);
                if let Arguments::Json(json) = &mut call.arguments {
                    *json = serde_json::from_str::<Value>(json).unwrap().to_string();
                }
            }
            Block::Unmodelled(unmodelled) => sort(&mut unmodelled.native),
            Block::ToolResult(_) | Block::Image(_) => (),
        }
    }
    reply.notes.retain(|note| matches!(note.code, NoteCode::CutOff | NoteCode::ToolMarkup));
    reply
}

/// One message has one place for each: the order of thinking, text and calls
/// is not in it, and neighbours are one.
pub(crate) fn regrouped(mut reply: Reply) -> Reply {
    let rank = |block: &Block| match block {
        Block::Thinking(_) => 0,
        Block::Text(_) => 1,
        Block::Unmodelled(_) => 2,
        Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) => 3,
    };
    reply.blocks.sort_by_key(rank);
    let mut joined: Vec<Block> = Vec::new();
    for block in reply.blocks {
        match (joined.last_mut(), &block) {
            (Some(Block::Text(before)), Block::Text(text)) => before.text.push_str(&text.text),
            (Some(Block::Thinking(before)), Block::Thinking(thinking)) if before.source == thinking.source => {
                match (&mut before.content, &thinking.content) {
                    (Content::Open { text: before }, Content::Open { text }) => before.push_str(text),
                    _ => joined.push(block),
                }
            }
            _ => joined.push(block),
        }
    }
    reply.blocks = joined;
    reply
}

/// A body that is whole was not cut off, and few have room for an answer
/// beside an error.
fn fits_in_one_body(protocol: Protocol, reply: &Reply) -> bool {
    let has_room = matches!(protocol, Protocol::OpenaiChat | Protocol::OpenaiResponses);
    reply.end.ending != Ending::CutOff && (has_room || reply.end.error.is_none() || reply.blocks.is_empty())
}

/// What of a reply is another one after it was written and read again.
fn differences(name: &str, protocol: Protocol, rules: &Rules, bytes: &[u8]) -> Vec<String> {
    let reply = read(protocol, rules, bytes);
    let mut out = Vec::new();
    for way in Way::ALL {
        if CHANGED.iter().any(|(case, ways, _)| name.starts_with(case) && ways.contains(&way)) {
            continue;
        }
        let written = match way {
            Way::PassedOn => passed_on(protocol, rules, reply.model.as_deref(), bytes),
            Way::Told => told(protocol, rules, &reply),
            Way::Whole if fits_in_one_body(protocol, &reply) => {
                whole_reply(protocol, rules, &head(reply.model.as_deref()), &reply).into_bytes()
            }
            Way::Whole => continue,
        };
        let (mut got, mut wanted) = (settled(read(protocol, rules, &written)), settled(reply.clone()));
        let one_message = matches!(protocol, Protocol::OpenaiChat | Protocol::Ollama | Protocol::Cohere);
        if way == Way::Whole && one_message {
            (got, wanted) = (regrouped(got), regrouped(wanted));
        }
        if got != wanted {
            let text: String = String::from_utf8_lossy(&written).chars().take(4000).collect();
            out.push(format!("{name} {way:?}\nGOT {got:#?}\nWANTED {wanted:#?}\nWRITTEN {text}"));
        }
    }
    out
}

#[test]
fn every_fixture_written_and_read_again_is_the_same_reply() {
    let fixtures = fixtures();
    let failures: Vec<String> = fixtures
        .iter()
        .flat_map(|fixture| differences(&fixture.name, fixture.protocol, &fixture.rules, &fixture.bytes))
        .collect();
    assert!(failures.is_empty(), "{} of {} differ\n{}", failures.len(), fixtures.len(), failures.join("\n\n"));
}

#[test]
fn every_recording_written_and_read_again_is_the_same_reply() {
    let Some(cases) = recordings() else { return };
    let failures: Vec<String> = cases
        .iter()
        .flat_map(|(name, protocol, bytes)| differences(name, *protocol, &generic_rules(*protocol), bytes))
        .collect();
    assert!(failures.is_empty(), "{} of {} differ\n{}", failures.len(), cases.len(), failures.join("\n\n"));
    for (name, ..) in CHANGED.iter().filter(|(name, ..)| name.ends_with('-')) {
        assert!(cases.iter().any(|case| case.0.starts_with(name)), "no recording {name}");
    }
}
