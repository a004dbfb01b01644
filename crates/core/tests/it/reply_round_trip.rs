//! Writes replies as a provider would and decodes them again: nothing is lost, in any
//! dialect.

use aside_core::block::{Arguments, Block, CallId, Native, Origin, Reply, ThinkingContent};
use aside_core::conversation::Conversation;
use aside_core::dialect::Rules;
use aside_core::event::{Ending, NoteCode};
use aside_core::extra::Extra;
use aside_core::interchange::{OpaqueData, write_lines};
use aside_core::message::Message;
use aside_core::protocol::Protocol;
use aside_core::settings::Settings;
use aside_core::wire::{Decoder, ReplyHead, Request, StreamWriter, emit_reply, encode, whole_reply};
use serde_json::Value;

use crate::fixtures::fixtures;
use crate::recordings::recordings;
use crate::support::{decode, dialects, generic_rules};

fn head(model: Option<&str>) -> ReplyHead<'_> {
    ReplyHead::new("reply-1", model.unwrap_or(""), 1_763_200_000)
}

/// Writes a reply while it is decoded, as a gateway does.
fn rewrite_while_decoding(protocol: Protocol, rules: &Rules, model: Option<&str>, bytes: &[u8]) -> Vec<u8> {
    let mut writer = StreamWriter::new(protocol, rules, &head(model));
    let mut decoder = Decoder::new(protocol, rules);
    decoder.push(bytes, &mut writer);
    assert_eq!(decoder.finish(&mut writer), Ok(()));
    writer.drain()
}

/// Writes a whole reply as a stream.
fn write_stream(protocol: Protocol, rules: &Rules, reply: &Reply) -> Vec<u8> {
    let mut writer = StreamWriter::new(protocol, rules, &head(reply.model.as_deref()));
    emit_reply(reply, &mut writer);
    writer.drain()
}

fn read(protocol: Protocol, rules: &Rules, bytes: &[u8]) -> Reply {
    decode(protocol, rules, bytes, usize::MAX).0
}

/// Replies that change in the round trip, each for a reason: the fixture or recording,
/// the write modes that change it, and why.
#[rustfmt::skip]
const CHANGED: &[(&str, &[WriteMode], &str)] = &[
    // The type of an entry is known only at its end, after its text was written.
    ("openrouter/summary_and_encrypted", &[WriteMode::WhileDecoding], "an entry's type is known only at its end"),
    ("216-", &[WriteMode::WhileDecoding], "as above"),
    ("248-", &[WriteMode::WhileDecoding], "as above"),
    ("256-", &[WriteMode::WhileDecoding], "as above"),
    ("500-", &[WriteMode::WhileDecoding], "as above"),
    ("506-", &[WriteMode::WhileDecoding], "as above"),
    ("227-", &[WriteMode::WhileDecoding], "as above; its payload then follows entries that grew meanwhile"),
    ("241-", &[WriteMode::WhileDecoding], "entries without an index get one"),
    ("032-", &[WriteMode::WhileDecoding], "the caller of a tool is in the start of the call, but is emitted at its end"),
    ("040-", &[WriteMode::WhileDecoding], "as 032"),
    // These differences are not errors of ours.
    ("185-", &WriteMode::ALL, "InvokeModel wraps another protocol; we write Converse"),
    ("459-", &WriteMode::ALL, "thinking beside the output becomes an item, which has an id"),
    ("460-", &WriteMode::ALL, "as 459"),
];

/// How a reply becomes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteMode {
    /// While it is decoded, as a gateway does.
    WhileDecoding,
    /// From the reply, as a stream.
    Stream,
    /// From the reply, as one body.
    OneBody,
}

impl WriteMode {
    const ALL: [WriteMode; 3] = [WriteMode::WhileDecoding, WriteMode::Stream, WriteMode::OneBody];
}

/// Removes differences that do not matter in any protocol:
/// - the members of a native item may change their order;
/// - a call without an id is sent with the id that we invented;
/// - arguments that are an object may lose white space;
/// - notes about the input bytes do not occur in the output bytes.
pub(crate) fn normalized(mut reply: Reply) -> Reply {
    let sort = |native: &mut Native| {
        if let Ok(value) = serde_json::from_str::<Value>(&native.json) {
            native.json = value.to_string();
        }
    };
    // No writer writes the members without a neutral form.
    reply.extra = Extra::default();
    // Nor what a gateway says in addition to the message of an error.
    if let Some(error) = &mut reply.end.error {
        error.words = None;
    }
    // One protocol requires this counter, so an unknown one is written as 0.
    reply.usage.cache_write = reply.usage.cache_write.filter(|count| *count > 0);
    for block in &mut reply.blocks {
        match block {
            Block::Text(text) => {
                text.extra = Extra::default();
                text.native.iter_mut().for_each(sort);
            }
            Block::Thinking(thinking) => {
                thinking.extra = Extra::default();
                thinking.native.iter_mut().for_each(sort);
            }
            Block::ToolCall(call) => {
                call.extra = Extra::default();
                call.id = CallId::Given(call.id.as_str().to_owned());
                call.native.iter_mut().for_each(sort);
                if let Arguments::Json(json) = &mut call.arguments {
                    *json = serde_json::from_str::<Value>(json).unwrap().to_string();
                }
            }
            Block::Unmodelled(unmodelled) => sort(&mut unmodelled.native),
            Block::ToolResult(_) | Block::Media(_) => (),
        }
    }
    reply.notes.retain(|note| matches!(note.code, NoteCode::CutOff | NoteCode::ToolMarkup));
    reply
}

/// A single message has one field for each kind: the order of thinking, text and calls
/// is lost, and adjacent ones are joined.
pub(crate) fn grouped_by_kind(mut reply: Reply) -> Reply {
    let rank = |block: &Block| match block {
        Block::Thinking(_) => 0,
        Block::Text(_) => 1,
        Block::Unmodelled(_) => 2,
        Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) => 3,
    };
    reply.blocks.sort_by_key(rank);
    let mut joined: Vec<Block> = Vec::new();
    for block in reply.blocks {
        match (joined.last_mut(), &block) {
            (Some(Block::Text(before)), Block::Text(text)) => before.text.push_str(&text.text),
            (Some(Block::Thinking(before)), Block::Thinking(thinking)) if before.source == thinking.source => {
                match (&mut before.content, &thinking.content) {
                    (ThinkingContent::Open { text: before }, ThinkingContent::Open { text }) => before.push_str(text),
                    _ => joined.push(block),
                }
            }
            _ => joined.push(block),
        }
    }
    reply.blocks = joined;
    reply
}

/// A whole body cannot express a cut-off reply, and in few protocols an answer with an
/// error.
fn fits_in_one_body(protocol: Protocol, reply: &Reply) -> bool {
    let has_room = matches!(protocol, Protocol::OpenaiChat | Protocol::OpenaiResponses);
    reply.end.ending != Ending::CutOff && (has_room || reply.end.error.is_none() || reply.blocks.is_empty())
}

/// Every difference between a reply and its round trip.
fn differences(name: &str, protocol: Protocol, rules: &Rules, bytes: &[u8]) -> Vec<String> {
    let reply = read(protocol, rules, bytes);
    let mut out = Vec::new();
    for mode in WriteMode::ALL {
        if CHANGED.iter().any(|(case, ways, _)| name.starts_with(case) && ways.contains(&mode)) {
            continue;
        }
        let written = match mode {
            WriteMode::WhileDecoding => rewrite_while_decoding(protocol, rules, reply.model.as_deref(), bytes),
            WriteMode::Stream => write_stream(protocol, rules, &reply),
            WriteMode::OneBody if fits_in_one_body(protocol, &reply) => {
                whole_reply(protocol, rules, &head(reply.model.as_deref()), &reply).into_bytes()
            }
            WriteMode::OneBody => continue,
        };
        let (mut got, mut wanted) = (normalized(read(protocol, rules, &written)), normalized(reply.clone()));
        let one_message = matches!(protocol, Protocol::OpenaiChat | Protocol::Ollama | Protocol::Cohere);
        if mode == WriteMode::OneBody && one_message {
            (got, wanted) = (grouped_by_kind(got), grouped_by_kind(wanted));
        }
        if got != wanted {
            let text: String = String::from_utf8_lossy(&written).chars().take(4000).collect();
            out.push(format!("{name} {mode:?}\nGOT {got:#?}\nWANTED {wanted:#?}\nWRITTEN {text}"));
        }
    }
    out
}

#[test]
fn every_fixture_survives_a_round_trip() {
    let fixtures = fixtures();
    let failures: Vec<String> = fixtures
        .iter()
        .flat_map(|fixture| differences(&fixture.name, fixture.protocol, &fixture.rules, &fixture.bytes))
        .collect();
    assert!(failures.is_empty(), "{} of {} differ\n{}", failures.len(), fixtures.len(), failures.join("\n\n"));
}

#[test]
fn every_recording_survives_a_round_trip() {
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

/// A long text is not kept a second time inside its Responses item. The item still
/// goes back, is written and is exported with its text in place.
#[test]
fn a_long_text_is_kept_once_and_its_item_goes_back_unchanged() {
    let (protocol, rules) = (Protocol::OpenaiResponses, generic_rules(Protocol::OpenaiResponses));
    let long = format!("{}\n\"end\"", "line ".repeat(55_000));
    let quoted = serde_json::to_string(&long).unwrap();
    let arguments = serde_json::to_string(&format!("{{\"path\":{quoted}}}")).unwrap();
    let message = format!(
        r#"{{"type":"message","id":"m1","role":"assistant","content":[{{"type":"output_text","text":{quoted},"annotations":[]}}]}}"#
    );
    let call =
        format!(r#"{{"type":"function_call","id":"f1","call_id":"c1","name":"read","arguments":{arguments},"x":1}}"#);
    let body = format!(r#"{{"object":"response","status":"completed","output":[{message},{call}]}}"#);
    let reply = read(protocol, &rules, body.as_bytes());
    let [Block::Text(text), Block::ToolCall(tool)] = reply.blocks.as_slice() else { panic!("{:?}", reply.end) };
    let (Arguments::Json(tool_text) | Arguments::Broken(tool_text)) = &tool.arguments;
    let (text_native, tool_native) = (text.native.as_ref().unwrap(), tool.native.as_ref().unwrap());
    assert!(text_native.json.len() + tool_native.json.len() < 500, "the text is kept twice");
    assert_eq!((text_native.with_text(&text.text), tool_native.with_text(tool_text)), (message.clone(), call.clone()));

    // Whole, as a stream, and while it is decoded.
    let whole = whole_reply(protocol, &rules, &head(None), &reply);
    assert!(whole.contains(&message) && whole.contains(&call));
    let while_decoding = rewrite_while_decoding(protocol, &rules, None, body.as_bytes());
    for bytes in [whole.into_bytes(), write_stream(protocol, &rules, &reply), while_decoding] {
        let again = read(protocol, &rules, &bytes);
        let items = natives(&again);
        let ends = items.iter().map(|item| (item.len(), item[..90].to_owned(), item[item.len() - 60..].to_owned()));
        assert!(items == [message.clone(), call.clone()], "{:?}", ends.collect::<Vec<_>>());
    }

    // In the next request, with and without ids.
    let origin = Origin::default().with_provider("p".to_owned()).with_model("m".to_owned());
    let sent = Message::from_reply(reply.clone(), Some(origin.clone()));
    let next = |target: &Origin| {
        encode(
            &Request::new(dialects(), dialects().generic(protocol).unwrap(), "m", target, &Settings::new())
                .with_messages(&[&sent]),
        )
    };
    let own: Value = serde_json::from_str(&next(&origin).body).unwrap();
    let parts = |value: &str| serde_json::from_str::<Value>(value).unwrap();
    for (item, original) in own["input"].as_array().unwrap().iter().zip([&message, &call]) {
        let mut original = parts(original);
        if item.get("id").is_none() {
            original.as_object_mut().unwrap().remove("id");
        }
        assert!(*item == original, "an item changed");
    }

    // Exported and imported: the item keeps its text, and the export stays the same.
    let mut conversation = Conversation::default();
    conversation.history.append(sent);
    let lines = write_lines(&conversation, OpaqueData::Keep);
    let imported = Conversation::parse(&lines).unwrap();
    assert!(write_lines(&imported, OpaqueData::Keep) == lines, "the export changed");
}

/// The native items with their text.
fn natives(reply: &Reply) -> Vec<String> {
    let native = |block: &Block| match block {
        Block::Text(text) => text.native.as_ref().map(|native| native.with_text(&text.text)),
        Block::ToolCall(call) => {
            let (Arguments::Json(text) | Arguments::Broken(text)) = &call.arguments;
            call.native.as_ref().map(|native| native.with_text(text))
        }
        _ => None,
    };
    reply.blocks.iter().filter_map(native).collect()
}
