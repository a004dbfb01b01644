//! Writes an Anthropic Messages request. Thinking goes back byte for byte.

use serde_json::{Map, Value};

use crate::block::{Block, Thinking};
use crate::json_text::{ListWriter, NestedObject};
use crate::message::Message;
use crate::rules::{CacheMark, MessagePlan};
use crate::wire::cache_points::cache_control;
use crate::wire::media_out::messages_block;
use crate::wire::request_draft::{
    RequestDraft, ToolLevel, arguments_object, call_id, encrypted, marked_blocks, push_tool, push_typed_text,
    signature, system_reminder, turn_opening,
};

pub(in crate::wire) fn write_request(draft: &RequestDraft<'_>) -> String {
    let mut body = draft.begin();
    draft.push_parameters(&mut body);
    draft.push_tools(&mut body, "tools", |out, tool| {
        push_tool(out, tool, "input_schema");
        draft.push_tool_members(out, tool, None, ToolLevel::Inner);
    });
    if let Some(parts) = draft.marked_system() {
        body.list("system", |list| {
            for (text, mark) in parts {
                list.object(|out| push_typed_text(out, "text", text));
                add_mark(mark, list);
            }
        });
    } else if let Some(system) = draft.system() {
        body.push_text("system", &system);
    }
    draft.finish_merged(body, "messages", turn_opening, content)
}

/// Adds the sent blocks of a message.
fn content(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan, list: &mut ListWriter<'_>) {
    // The system prompt is a separate member.
    if draft.is_prompt(message) {
        return;
    }
    if let Some(text) = system_reminder(message) {
        list.object(|out| push_typed_text(out, "text", &text));
        return add_mark(marked_blocks(message, plan).filter_map(|(_, mark)| mark).last(), list);
    }
    if plan.filler {
        list.object(|out| {
            out.push_raw("type", "\"thinking\"");
            out.push_text("thinking", &draft.rules.echo.filler);
        });
    }
    for (block, mark) in marked_blocks(message, plan) {
        match block {
            Block::Text(text) if text.text.trim().is_empty() => (),
            Block::Text(text) => match text.native.as_ref().filter(|_| plan.own) {
                Some(native) => native.write_with_text(&text.text, list.next()),
                None => list.object(|out| push_typed_text(out, "text", &text.text)),
            },
            Block::Thinking(thinking) => match &thinking.native {
                Some(native) => native.write_with_text(thinking.text(), list.next()),
                None => list.object(|out| push_thinking(thinking, out)),
            },
            Block::Unmodelled(unmodelled) => list.push_raw(&unmodelled.native.json),
            Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) => {
                list.object(|out| content_block(block, plan, out));
            }
        }
        add_mark(mark, list);
    }
}

/// Marks the last block, up to which the provider should store the request.
fn add_mark(mark: Option<&CacheMark>, list: &mut ListWriter<'_>) {
    if let Some(mark) = mark {
        list.add_to_last(&cache_control(mark.ttl.as_deref()));
    }
}

/// With a manual thinking budget, an open tool loop must begin with a thinking
/// block; with adaptive thinking it need not.
pub(in crate::wire) fn requires_leading_thinking(parameters: &Map<String, Value>) -> bool {
    let by_hand = |thinking: &Value| thinking.get("type").and_then(Value::as_str) == Some("enabled");
    let below = parameters.get("additionalModelRequestFields").and_then(|fields| fields.get("thinking"));
    let budgeted = |thinking: &&Value| thinking.get("budget_tokens").is_some();
    parameters.get("thinking").or(below).filter(budgeted).is_some_and(by_hand)
}

fn content_block(block: &Block, plan: &MessagePlan, out: &mut NestedObject<'_>) {
    match block {
        Block::ToolCall(call) => {
            out.push_raw("type", "\"tool_use\"");
            out.push_text("id", &call_id(call.id.as_str(), plan));
            out.push_text("name", &call.name);
            out.push("input", arguments_object(&call.arguments));
            if let Some(native) = call.native.as_ref().filter(|_| plan.own) {
                out.push_new_members(&native.json);
            }
        }
        Block::ToolResult(result) => {
            out.push_raw("type", "\"tool_result\"");
            out.push_text("tool_use_id", &call_id(&result.id, plan));
            match result.media.as_slice() {
                [] => out.push_text("content", &result.content),
                media => out.list("content", |content| {
                    if !result.content.is_empty() {
                        content.object(|out| push_typed_text(out, "text", &result.content));
                    }
                    media.iter().for_each(|media| content.object(|out| messages_block(media, out)));
                }),
            }
            if result.is_error {
                out.push_raw("is_error", "true");
            }
        }
        Block::Media(media) => messages_block(media, out),
        Block::Text(_) | Block::Thinking(_) | Block::Unmodelled(_) => (),
    }
}

fn push_thinking(thinking: &Thinking, out: &mut NestedObject<'_>) {
    if let Some(data) = encrypted(thinking) {
        out.push_raw("type", "\"redacted_thinking\"");
        out.push_text("data", data);
        return;
    }
    out.push_raw("type", "\"thinking\"");
    out.push_text("thinking", thinking.text());
    if let Some(signature) = signature(thinking) {
        out.push_text("signature", signature);
    }
}
