//! Writes a whole Anthropic message, and parts that streams share.

use serde_json::Value;

use crate::block::{Block, Native, Reply, Text, Thinking, ToolCall};
use crate::dialect::Rules;
use crate::event::{Ending, Usage};
use crate::json_text::{ObjectWriter, Raw, quote, text_member};
use crate::wire::ReplyHead;
use crate::wire::error_out::typed_error_in_stream;
use crate::wire::request_draft::{arguments_text, encrypted, list, object, signature, typed_text};
use crate::wire::stream_parts::usage_object;

pub(in crate::wire) fn whole(rules: &Rules, head: &ReplyHead<'_>, reply: &Reply) -> String {
    if let (Some(error), []) = (&reply.end.error, reply.blocks.as_slice()) {
        return object([("type", "\"error\""), ("error", &typed_error_in_stream(error))]);
    }
    let mut content = Vec::new();
    for block in &reply.blocks {
        match block {
            Block::Text(text) => content.push(text_block(text)),
            Block::Thinking(thinking) => thinking_blocks(thinking, &mut content),
            Block::ToolCall(call) => content.push(call_block(call)),
            Block::Unmodelled(unmodelled) => content.extend(unmodelled_start(&unmodelled.native.json)),
            Block::ToolResult(_) | Block::Media(_) => (),
        }
    }
    let reason = stop_reason(&reply.end.ending).map_or_else(|| "null".to_owned(), quote);
    object([
        ("id", &quote(head.id)),
        ("type", "\"message\""),
        ("role", "\"assistant\""),
        ("model", &quote(head.model)),
        ("content", &list(&content)),
        ("stop_reason", &reason),
        ("stop_sequence", "null"),
        ("usage", &counts(rules, reply.usage)),
    ])
}

fn text_block(text: &Text) -> String {
    match own(text.native.as_ref(), "text") {
        Some(native) => native.with_text(&text.text),
        None => typed_text("text", &text.text),
    }
}

fn thinking_blocks(thinking: &Thinking, content: &mut Vec<String>) {
    let (signature, redacted) = (signature(thinking), encrypted(thinking));
    if !thinking.text().is_empty() || signature.is_some() {
        let block = match own(thinking.native.as_ref(), "thinking") {
            Some(native) => native.with_text(thinking.text()),
            None => object([
                ("type", "\"thinking\""),
                ("thinking", &quote(thinking.text())),
                ("signature", &quote(signature.unwrap_or(""))),
            ]),
        };
        content.push(block);
    }
    content.extend(redacted.map(|data| object([("type", "\"redacted_thinking\""), ("data", &quote(data))])));
}

fn call_block(call: &ToolCall) -> String {
    let arguments = arguments_text(&call.arguments);
    // Arguments that are not valid JSON are written as a string, as some
    // compatible servers do.
    let input = if Raw::of(arguments).is_ok() { arguments.to_owned() } else { quote(arguments) };
    let mut block = ObjectWriter::default();
    block.push_raw("type", "\"tool_use\"");
    block.push_raw("id", &quote(call.id.as_str()));
    block.push_text("name", &call.name);
    block.push_raw("input", &input);
    if let Some(native) = own(call.native.as_ref(), "tool_use") {
        block.push_new_members(&native.json);
    }
    block.finish()
}

/// The start of a call in a stream.
pub(super) fn call_start(id: &str, name: &str) -> ObjectWriter {
    let mut block = ObjectWriter::default();
    block.push_raw("type", "\"tool_use\"");
    block.push_text("id", id);
    block.push_text("name", name);
    block.push_raw("input", "{}");
    block
}

/// A block of an unknown kind, if it has a `type`.
pub(super) fn unmodelled_start(native: &str) -> Option<String> {
    let raw = Raw::of(native).ok()?;
    text_member(raw, "type").map(|_| native.to_owned())
}

fn own<'n>(native: Option<&'n Native>, kind: &str) -> Option<&'n Native> {
    native.filter(|native| is_own(&native.json, kind))
}

/// Whether a native item is a block of this protocol and kind.
pub(super) fn is_own(native: &str, kind: &str) -> bool {
    Raw::of(native).is_ok_and(|native| text_member(native, "type").as_deref() == Some(kind))
}

pub(super) fn counts(rules: &Rules, usage: Usage) -> String {
    let path = if rules.usage.path.is_empty() { "output_tokens_details.thinking_tokens" } else { &rules.usage.path };
    let counts = [
        ("input_tokens", usage.input),
        ("output_tokens", usage.output),
        ("cache_read_input_tokens", usage.cached),
        ("cache_creation_input_tokens", usage.cache_write),
        (path, usage.reasoning),
    ];
    Value::Object(usage_object(counts)).to_string()
}

/// This protocol reports a content filter as a refusal.
pub(super) fn stop_reason(ending: &Ending) -> Option<&str> {
    match ending {
        Ending::Stop => Some("end_turn"),
        Ending::Length => Some("max_tokens"),
        Ending::ToolCalls => Some("tool_use"),
        Ending::ContentFilter | Ending::Refusal => Some("refusal"),
        Ending::Pause => Some("pause_turn"),
        Ending::Error => Some("error"),
        Ending::Unrecognized(reason) => Some(reason),
        Ending::Unsaid | Ending::CutOff => None,
    }
}
