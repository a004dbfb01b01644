//! Writes a Bedrock Converse request.

use serde_json::Value;

use crate::block::{Block, Thinking};
use crate::json_text::{ListWriter, NestedObject, ObjectWriter};
use crate::message::Message;
use crate::protocol::Protocol;
use crate::rules::{CacheMark, MessagePlan, fits_in_result, result_text};
use crate::wire::cache_points::cache_point;
use crate::wire::media_out::bedrock_block;
use crate::wire::request_draft::{
    RequestDraft, ToolLevel, arguments_object, call_id, encrypted, marked_blocks, push_schema, signature,
    system_reminder, turn_opening,
};

/// The member that holds the tools and the tool choice.
const TOOL_CONFIG: &str = "toolConfig";

pub(in crate::wire) fn write_request(draft: &RequestDraft<'_>) -> String {
    let mut body = ObjectWriter::default();
    draft.push_parameters_except(&mut body, TOOL_CONFIG);
    let tool_config = draft.parameters.get(TOOL_CONFIG).and_then(Value::as_object);
    if draft.has_tools() || tool_config.is_some() {
        body.object(TOOL_CONFIG, |config| {
            for (name, value) in tool_config.into_iter().flatten() {
                config.push_raw(name, &value.to_string());
            }
            draft.push_tools(config, "tools", |out, tool| {
                out.object("toolSpec", |spec| {
                    spec.push_text("name", &tool.name);
                    spec.push_text("description", &tool.description);
                    spec.object("inputSchema", |schema| push_schema(schema, tool, "json"));
                    draft.push_tool_members(spec, tool, Some("toolSpec"), ToolLevel::Inner);
                });
                draft.push_tool_members(out, tool, Some("toolSpec"), ToolLevel::Outer);
            });
        });
    }
    if let Some(parts) = draft.marked_system() {
        body.list("system", |list| {
            for (text, mark) in parts {
                list.object(|part| part.push_text("text", text));
                push_mark(mark, list);
            }
        });
    } else if let Some(system) = draft.system() {
        body.list("system", |list| list.object(|part| part.push_text("text", &system)));
    }
    draft.finish_merged(body, "messages", turn_opening, content)
}

fn content(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan, list: &mut ListWriter<'_>) {
    // The system prompt is a separate member.
    if draft.is_prompt(message) {
        return;
    }
    if let Some(text) = system_reminder(message) {
        list.object(|out| out.push_text("text", &text));
        return push_mark(marked_blocks(message, plan).filter_map(|(_, mark)| mark).last(), list);
    }
    for (block, mark) in marked_blocks(message, plan) {
        match block {
            Block::Text(text) if text.text.trim().is_empty() => (),
            Block::Unmodelled(unmodelled) => list.push_raw(&unmodelled.native.json),
            Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) => {
                list.object(|out| content_block(block, plan, out));
            }
        }
        push_mark(mark, list);
    }
}

/// The point up to which the provider should store the request.
fn push_mark(mark: Option<&CacheMark>, list: &mut ListWriter<'_>) {
    if let Some(mark) = mark {
        list.push_raw(&cache_point(mark.ttl.as_deref()));
    }
}

fn content_block(block: &Block, plan: &MessagePlan, out: &mut NestedObject<'_>) {
    match block {
        Block::Thinking(thinking) => out.object("reasoningContent", |content| push_thinking(thinking, content)),
        Block::Text(text) => out.push_text("text", &text.text),
        Block::ToolCall(call) => out.object("toolUse", |tool| {
            tool.push_text("toolUseId", &call_id(call.id.as_str(), plan));
            tool.push_text("name", &call.name);
            tool.push_raw("input", arguments_object(&call.arguments));
        }),
        Block::ToolResult(result) => out.object("toolResult", |out| {
            out.push_text("toolUseId", &call_id(&result.id, plan));
            out.list("content", |content| {
                let media = || result.media.iter().filter(|media| fits_in_result(Protocol::Bedrock, media));
                let text = result_text(Protocol::Bedrock, result);
                if !text.is_empty() || media().next().is_none() {
                    content.object(|part| part.push_text("text", &text));
                }
                media().for_each(|media| content.object(|part| bedrock_block(media, part)));
            });
            out.push_raw("status", if result.is_error { "\"error\"" } else { "\"success\"" });
        }),
        Block::Media(media) => bedrock_block(media, out),
        Block::Unmodelled(_) => (),
    }
}

fn push_thinking(thinking: &Thinking, content: &mut NestedObject<'_>) {
    if let Some(data) = encrypted(thinking) {
        content.push_text("redactedContent", data);
        return;
    }
    content.object("reasoningText", |text| {
        text.push_text("text", thinking.text());
        if let Some(signature) = signature(thinking) {
            text.push_text("signature", signature);
        }
    });
}
