//! A Bedrock Converse request.

use crate::block::{Block, Thinking};
use crate::message::{Message, Role};
use crate::rules::{Action, Step};
use crate::wire::draft::{Draft, ToolWords, arguments_object, decided, encrypted, list, object, signature};
use crate::wire::json::{ObjectWriter, quote};

pub(in crate::wire) fn write(draft: &Draft<'_>) -> String {
    let mut body = ObjectWriter::default();
    draft.push_parameters(&mut body);
    let tools = draft.tools(|tool| {
        let ToolWords { name, description, parameters } = tool;
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
    draft.finish(body, "messages", message)
}

fn message(_: &Draft<'_>, message: &Message, step: &Step) -> String {
    let role = match message.role {
        // It has a place of its own.
        Role::System => return String::new(),
        Role::Assistant => "assistant",
        Role::User | Role::Tool => "user",
    };
    let sent = decided(message, step).filter(|(_, action)| *action != Action::Dropped);
    let blocks: Vec<String> = sent.filter_map(|(block, _)| content(block)).collect();
    if blocks.is_empty() {
        return String::new();
    }
    object([("role", &quote(role)), ("content", &list(&blocks))])
}

fn content(block: &Block) -> Option<String> {
    match block {
        Block::Thinking(thinking) => Some(thought(thinking)),
        Block::Text(text) if text.text.is_empty() => None,
        Block::Text(text) => Some(object([("text", &quote(&text.text))])),
        Block::ToolCall(call) => {
            let tool = object([
                ("toolUseId", &quote(call.id.as_str())),
                ("name", &quote(&call.name)),
                ("input", arguments_object(&call.arguments)),
            ]);
            Some(object([("toolUse", &tool)]))
        }
        Block::ToolResult(result) => {
            let status = if result.is_error { "\"error\"" } else { "\"success\"" };
            let content = list(&[object([("text", &quote(&result.content))])]);
            let result = object([("toolUseId", &quote(&result.id)), ("content", &content), ("status", status)]);
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

fn thought(thinking: &Thinking) -> String {
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
