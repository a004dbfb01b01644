//! Writes a Bedrock Converse request.

use crate::block::{Block, Thinking};
use crate::message::{Message, Role};
use crate::rules::MessagePlan;
use crate::wire::json::{ObjectWriter, quote};
use crate::wire::request_draft::{
    RequestDraft, ToolJson, arguments_object, call_id, encrypted, join_with_commas, list, object, sent_blocks,
    signature, turn_opening,
};

pub(in crate::wire) fn write_request(draft: &RequestDraft<'_>) -> String {
    let mut body = ObjectWriter::default();
    draft.push_parameters(&mut body);
    let tools = draft.tools(|tool| {
        let ToolJson { name, description, parameters } = tool;
        let schema = object([("json", parameters)]);
        let spec = object([("name", name), ("description", description), ("inputSchema", &schema)]);
        object([("toolSpec", &spec)])
    });
    if let Some(tools) = tools {
        body.push_raw("toolConfig", &object([("tools", &tools)]));
    }
    if let Some(system) = draft.system() {
        body.push_raw("system", &list(&[object([("text", &quote(&system))])]));
    }
    draft.finish_merged(body, "messages", turn_opening, content)
}

fn content(_: &RequestDraft<'_>, message: &Message, plan: &MessagePlan) -> String {
    // The system prompt is a separate member.
    if message.role == Role::System {
        return String::new();
    }
    join_with_commas(sent_blocks(message, plan).filter_map(|(block, _)| content_block(block, plan)))
}

fn content_block(block: &Block, plan: &MessagePlan) -> Option<String> {
    match block {
        Block::Thinking(thinking) => Some(thinking_block(thinking)),
        Block::Text(text) if text.text.trim().is_empty() => None,
        Block::Text(text) => Some(object([("text", &quote(&text.text))])),
        Block::ToolCall(call) => {
            let tool = object([
                ("toolUseId", &call_id(call.id.as_str(), plan)),
                ("name", &quote(&call.name)),
                ("input", arguments_object(&call.arguments)),
            ]);
            Some(object([("toolUse", &tool)]))
        }
        Block::ToolResult(result) => {
            let status = if result.is_error { "\"error\"" } else { "\"success\"" };
            let content = list(&[object([("text", &quote(&result.content))])]);
            let result = object([("toolUseId", &call_id(&result.id, plan)), ("content", &content), ("status", status)]);
            Some(object([("toolResult", &result)]))
        }
        Block::Image(image) => {
            let format = image.media_type.rsplit('/').next().unwrap_or("png");
            let source = object([("bytes", &quote(&image.data))]);
            Some(object([("image", &object([("format", &quote(format)), ("source", &source)]))]))
        }
        Block::Unmodelled(unmodelled) => Some(unmodelled.native.json.clone()),
    }
}

fn thinking_block(thinking: &Thinking) -> String {
    if let Some(data) = encrypted(thinking) {
        return object([("reasoningContent", &object([("redactedContent", &quote(data))]))]);
    }
    let mut text = ObjectWriter::default();
    text.push_raw("text", &quote(thinking.text()));
    if let Some(signature) = signature(thinking) {
        text.push("signature", &quote(signature));
    }
    object([("reasoningContent", &object([("reasoningText", &text.finish())]))])
}
