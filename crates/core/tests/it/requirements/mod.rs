//! requirements.md, section 1, clause by clause. A test is named after its row, and its
//! tables are derived from the documents, never from the decoder.
//!
//! A reply is drawn as one line, with a bar between blocks and `⏎` for a line end:
//!
//! ```text
//! think reasoning_content 'Look up.' sig=S enc=E id=I | text 'A' | call get(c1) {"k":1} | unmodelled {…}
//! ```
//!
//! A call without an id from the provider is drawn as `get(?)`; arguments that do not
//! parse are drawn as `broken '…'`.

mod block_order;
mod broken_connections;
mod chunking;
mod json_contract;
mod kept_members;
mod malformed_frames;
mod malformed_input;
mod native_items;
mod responses_items;
mod scripted_replies;
mod tags;
mod thinking_sources;
mod timing;
mod tool_calls;
mod usage_and_finish;

use std::fmt::Write as _;
use std::sync::OnceLock;

use aside_core::block::{Arguments, Block, CallId, Reply, Seal};
use aside_core::dialect::{Dialects, Rules};
use aside_core::json::{self, JsonLayout};
use aside_core::protocol::Protocol;
use serde_json::Value;

use crate::support::{decode, events};

/// The result of a row: nothing, or what is wrong with it.
type RowResult = Result<(), String>;

/// Chunk sizes that split tags, escapes, letters and line ends.
const SIZES: [usize; 6] = [usize::MAX, 1, 2, 3, 7, 64];

/// Checks every row of a table before the test fails.
#[track_caller]
fn every<T>(rows: impl IntoIterator<Item = T>, check: impl Fn(T) -> RowResult) {
    let wrong: Vec<String> = rows.into_iter().filter_map(|row| check(row).err()).collect();
    assert!(wrong.is_empty(), "{} rows are wrong\n{}", wrong.len(), wrong.join("\n"));
}

fn same<T: PartialEq + std::fmt::Debug>(name: &str, got: T, wanted: T) -> RowResult {
    if got == wanted { Ok(()) } else { Err(format!("{name}\n  got    {got:?}\n  wanted {wanted:?}")) }
}

/// Parsed once: these tests create hundreds of readers.
fn builtin() -> &'static Dialects {
    static BUILTIN: OnceLock<Dialects> = OnceLock::new();
    BUILTIN.get_or_init(|| Dialects::builtin().expect("the built-in dialects are valid"))
}

/// A protocol with the rules of a dialect.
#[derive(Debug, Clone)]
struct ReplyReader {
    protocol: Protocol,
    rules: Rules,
}

impl ReplyReader {
    fn generic(protocol: Protocol) -> ReplyReader {
        let dialect = builtin().generic(protocol).expect("every protocol has a generic dialect");
        ReplyReader { protocol, rules: dialect.rules(None).clone() }
    }

    fn chat() -> ReplyReader {
        ReplyReader::generic(Protocol::OpenaiChat)
    }

    fn dialect(id: &str) -> ReplyReader {
        let dialect = builtin().get(id).unwrap_or_else(|| panic!("no dialect {id}"));
        ReplyReader { protocol: dialect.protocol, rules: dialect.rules(None).clone() }
    }

    fn with(mut self, change: impl FnOnce(&mut Rules)) -> ReplyReader {
        change(&mut self.rules);
        self
    }

    fn reply(&self, bytes: &[u8]) -> Reply {
        decode(self.protocol, &self.rules, bytes, usize::MAX).0
    }

    fn events(&self, bytes: &[u8]) -> Vec<String> {
        events(self.protocol, &self.rules, [bytes])
    }

    /// Checks that the blocks are as drawn, in any chunks.
    fn check(&self, name: &str, bytes: &[u8], expected: &str) -> RowResult {
        for size in SIZES {
            let (reply, _) = decode(self.protocol, &self.rules, bytes, size);
            let pieces = if size == usize::MAX { "whole".to_owned() } else { format!("in pieces of {size}") };
            same(&format!("{name} ({}, {pieces})", self.protocol), drawn(&reply), expected.to_owned())?;
        }
        Ok(())
    }

    /// Checks that a stream and a whole body give the same reply, including native items.
    fn check_both(&self, name: &str, stream: &[u8], whole: &[u8], expected: &str) -> RowResult {
        self.check(&format!("{name}, streamed"), stream, expected)?;
        self.check(&format!("{name}, whole"), whole, expected)?;
        let blocks = |bytes| as_json(&self.reply(bytes))["blocks"].clone();
        same(&format!("{name}: a stream is its whole body"), blocks(stream), blocks(whole))
    }
}

/// Draws the reply as one line; see the top of this file.
fn drawn(reply: &Reply) -> String {
    reply.blocks.iter().map(drawn_block).collect::<Vec<_>>().join(" | ")
}

fn drawn_block(block: &Block) -> String {
    let mut out = String::new();
    let seal = |kind: &str, seal: Option<&Seal>, out: &mut String| {
        if let Some(seal) = seal {
            write!(out, " {kind}={}", seal.payload).unwrap();
        }
    };
    match block {
        Block::Thinking(thinking) => {
            write!(out, "think {} '{}'", thinking.source, on_one_line(thinking.text())).unwrap();
            let seals = thinking.seals();
            seal("sig", seals.and_then(|seals| seals.signature.as_ref()), &mut out);
            seal("enc", seals.and_then(|seals| seals.encrypted.as_ref()), &mut out);
            if let Some(id) = &thinking.id {
                write!(out, " id={id}").unwrap();
            }
        }
        Block::Text(text) => {
            write!(out, "text '{}'", on_one_line(&text.text)).unwrap();
            seal("sig", text.seal.as_ref(), &mut out);
        }
        Block::ToolCall(call) => {
            let id = match &call.id {
                CallId::Given(id) => id,
                CallId::Invented(_) => "?",
            };
            write!(out, "call {}({id}) ", call.name).unwrap();
            match &call.arguments {
                Arguments::Json(json) => out.push_str(&on_one_line(json)),
                Arguments::Broken(text) => write!(out, "broken '{}'", on_one_line(text)).unwrap(),
            }
            seal("sig", call.seal.as_ref(), &mut out);
        }
        Block::Unmodelled(unmodelled) => write!(out, "unmodelled {}", unmodelled.native.json).unwrap(),
        Block::ToolResult(_) | Block::Media(_) => panic!("no reply holds a {block:?}"),
    }
    out
}

fn on_one_line(text: &str) -> String {
    text.replace('\n', "⏎")
}

/// The output of `aside decode`.
fn as_json(reply: &Reply) -> Value {
    serde_json::from_str(&json::reply(reply, None, None, JsonLayout::OneLine)).expect("the contract is JSON")
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}"))
}

fn finish(reply: &Reply) -> Option<String> {
    as_json(reply)["finish"].as_str().map(str::to_owned)
}

fn notices(reply: &Reply) -> Vec<&'static str> {
    reply.notes.iter().map(|note| note.code.as_str()).collect()
}

/// The native items of all blocks.
fn natives(reply: &Reply) -> Vec<Value> {
    let blocks = as_json(reply)["blocks"].clone();
    blocks.as_array().unwrap().iter().map(|block| block["native"].clone()).filter(|native| !native.is_null()).collect()
}

fn sse<T: AsRef<str>>(frames: impl IntoIterator<Item = T>) -> Vec<u8> {
    frames.into_iter().flat_map(|frame| format!("data: {}\n\n", frame.as_ref()).into_bytes()).collect()
}

fn lines<T: AsRef<str>>(frames: impl IntoIterator<Item = T>) -> Vec<u8> {
    frames.into_iter().flat_map(|frame| format!("{}\n", frame.as_ref()).into_bytes()).collect()
}

/// A well-formed Chat Completions stream of these deltas.
fn chat(deltas: &[&str]) -> Vec<u8> {
    let chunk =
        |delta: &&str| format!(r#"{{"model":"m","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#);
    let end = [r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#, "[DONE]"];
    sse(deltas.iter().map(chunk).chain(end.map(str::to_owned)))
}

fn chat_whole(message: &str) -> Vec<u8> {
    format!(r#"{{"model":"m","choices":[{{"index":0,"message":{message},"finish_reason":"stop"}}]}}"#).into_bytes()
}

/// A well-formed Messages stream of these block events.
fn messages(events: &[&str]) -> Vec<u8> {
    let start =
        r#"{"type":"message_start","message":{"model":"m","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}"#;
    let end = [
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    sse([start].iter().chain(events).chain(&end))
}

fn messages_whole(content: &str) -> Vec<u8> {
    let usage = r#"{"input_tokens":5,"output_tokens":9}"#;
    format!(r#"{{"type":"message","role":"assistant","model":"m","content":{content},"stop_reason":"end_turn","usage":{usage}}}"#)
        .into_bytes()
}

/// A well-formed Responses stream of these events; its last event repeats no item.
fn events_of_response(events: &[&str]) -> Vec<u8> {
    let start = r#"{"type":"response.created","response":{"model":"m","status":"in_progress","output":[]}}"#;
    let end = r#"{"type":"response.completed","response":{"model":"m","status":"completed","output":[]}}"#;
    sse([start].iter().chain(events).chain(&[end]))
}

fn response_whole(output: &str) -> Vec<u8> {
    format!(r#"{{"object":"response","model":"m","status":"completed","output":{output}}}"#).into_bytes()
}

/// A well-formed Gemini stream: one list of parts per chunk.
fn gemini(chunks: &[&str]) -> Vec<u8> {
    let chunk =
        |parts: &&str| format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":{parts}}},"index":0}}]}}"#);
    let end = r#"{"candidates":[{"finishReason":"STOP","index":0}]}"#.to_owned();
    sse(chunks.iter().map(chunk).chain([end]))
}

fn gemini_whole(parts: &str) -> Vec<u8> {
    format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":{parts}}},"finishReason":"STOP","index":0}}]}}"#)
        .into_bytes()
}

/// One message of AWS's binary event stream.
fn aws_event(name: &str, payload: &str) -> Vec<u8> {
    aws_message(&[(":message-type", "event"), (":event-type", name)], payload)
}

fn aws_exception(name: &str, payload: &str) -> Vec<u8> {
    aws_message(&[(":message-type", "exception"), (":exception-type", name)], payload)
}

fn aws_message(named: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut headers = Vec::new();
    for (key, value) in named {
        headers.push(u8::try_from(key.len()).unwrap());
        headers.extend_from_slice(key.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let total = u32::try_from(16 + headers.len() + payload.len()).unwrap();
    let mut out = total.to_be_bytes().to_vec();
    out.extend_from_slice(&u32::try_from(headers.len()).unwrap().to_be_bytes());
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out.extend_from_slice(&headers);
    out.extend_from_slice(payload.as_bytes());
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out
}

/// A well-formed Converse stream of these events, each `{"name":{…}}`.
fn converse(events: &[&str]) -> Vec<u8> {
    let start = r#"{"messageStart":{"role":"assistant"}}"#;
    let end = [
        r#"{"messageStop":{"stopReason":"end_turn"}}"#,
        r#"{"metadata":{"usage":{"inputTokens":5,"outputTokens":9}}}"#,
    ];
    let named = |event: &&str| {
        let event = parsed(event);
        let (name, payload) = event.as_object().unwrap().iter().next().unwrap();
        aws_event(name, &payload.to_string())
    };
    [start].iter().chain(events).chain(&end).flat_map(named).collect()
}

fn converse_whole(content: &str) -> Vec<u8> {
    let usage = r#"{"inputTokens":5,"outputTokens":9}"#;
    format!(r#"{{"output":{{"message":{{"role":"assistant","content":{content}}}}},"stopReason":"end_turn","usage":{usage}}}"#)
        .into_bytes()
}

/// A well-formed Cohere stream of these events.
fn cohere(events: &[&str]) -> Vec<u8> {
    let start = r#"{"type":"message-start","id":"x","delta":{"message":{"role":"assistant","content":[]}}}"#;
    let end = r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":5,"output_tokens":9}}}}"#;
    sse([start].iter().chain(events).chain(&[end, "[DONE]"]))
}

fn cohere_whole(message: &str) -> Vec<u8> {
    let usage = r#"{"tokens":{"input_tokens":5,"output_tokens":9}}"#;
    format!(r#"{{"id":"x","message":{message},"finish_reason":"COMPLETE","usage":{usage}}}"#).into_bytes()
}

/// A well-formed Ollama stream of these messages.
fn ollama(messages: &[&str]) -> Vec<u8> {
    let line = |message: &&str| format!(r#"{{"model":"m","message":{message},"done":false}}"#);
    let end = r#"{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":9}"#;
    lines(messages.iter().map(line).chain([end.to_owned()]))
}

fn ollama_whole(message: &str) -> Vec<u8> {
    format!(
        r#"{{"model":"m","message":{message},"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":9}}"#
    )
    .into_bytes()
}
