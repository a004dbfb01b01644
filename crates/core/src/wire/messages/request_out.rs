//! Writes an Anthropic Messages request. Thinking goes back byte for byte.

use serde_json::{Map, Value};

use crate::block::{Block, Thinking};
use crate::message::{Message, Role};
use crate::rules::MessagePlan;
use crate::wire::json::{ObjectWriter, quote};
use crate::wire::request_draft::{
    RequestDraft, ToolJson, arguments_object, call_id, encrypted, join_with_commas, object, sent_blocks, signature,
    turn_opening, typed_text,
};

pub(in crate::wire) fn write_request(draft: &RequestDraft<'_>) -> String {
    let mut body = draft.begin();
    draft.push_parameters(&mut body);
    let tools = draft.tools(|tool| {
        let ToolJson { name, description, parameters } = tool;
        object([("name", name), ("description", description), ("input_schema", parameters)])
    });
    if let Some(tools) = tools {
        body.push_raw("tools", &tools);
    }
    if let Some(system) = draft.system() {
        body.push_text("system", &system);
    }
    draft.finish_merged(body, "messages", turn_opening, content)
}

/// The sent blocks of a message, separated by commas; empty if there are none.
fn content(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan) -> String {
    // The system prompt is a separate member.
    if message.role == Role::System {
        return String::new();
    }
    let filler = || object([("type", "\"thinking\""), ("thinking", &quote(&draft.rules.echo.filler))]);
    let blocks = sent_blocks(message, plan).filter_map(|(block, _)| content_block(block, plan));
    join_with_commas(plan.filler.then(filler).into_iter().chain(blocks))
}

/// With a manual thinking budget, an open tool loop must begin with a thinking
/// block; with adaptive thinking it need not.
pub(in crate::wire) fn requires_leading_thinking(parameters: &Map<String, Value>) -> bool {
    let by_hand = |thinking: &Value| thinking.get("type").and_then(Value::as_str) == Some("enabled");
    let below = parameters.get("additionalModelRequestFields").and_then(|fields| fields.get("thinking"));
    let budgeted = |thinking: &&Value| thinking.get("budget_tokens").is_some();
    parameters.get("thinking").or(below).filter(budgeted).is_some_and(by_hand)
}

fn content_block(block: &Block, plan: &MessagePlan) -> Option<String> {
    match block {
        Block::Thinking(thinking) => Some(thinking_block(thinking)),
        Block::Text(text) if text.text.trim().is_empty() => None,
        Block::Text(text) => match text.native.as_ref().filter(|_| plan.own) {
            Some(native) => Some(native.with_text(&text.text)),
            None => Some(typed_text("text", &text.text)),
        },
        Block::ToolCall(call) => {
            let mut out = ObjectWriter::default();
            out.push("type", "\"tool_use\"");
            out.push("id", &call_id(call.id.as_str(), plan));
            out.push("name", &quote(&call.name));
            out.push("input", arguments_object(&call.arguments));
            if let Some(native) = call.native.as_ref().filter(|_| plan.own) {
                out.push_new_members(&native.json);
            }
            Some(out.finish())
        }
        Block::ToolResult(result) => {
            let mut out = ObjectWriter::default();
            out.push("type", "\"tool_result\"");
            out.push("tool_use_id", &call_id(&result.id, plan));
            out.push_text("content", &result.content);
            if result.is_error {
                out.push("is_error", "true");
            }
            Some(out.finish())
        }
        Block::Image(image) => {
            let source = object([
                ("type", "\"base64\""),
                ("media_type", &quote(&image.media_type)),
                ("data", &quote(&image.data)),
            ]);
            Some(object([("type", "\"image\""), ("source", &source)]))
        }
        Block::Unmodelled(unmodelled) => Some(unmodelled.native.json.clone()),
    }
}

fn thinking_block(thinking: &Thinking) -> String {
    if let Some(native) = &thinking.native {
        return native.with_text(thinking.text());
    }
    if let Some(data) = encrypted(thinking) {
        return object([("type", "\"redacted_thinking\""), ("data", &quote(data))]);
    }
    let mut out = ObjectWriter::default();
    out.push("type", "\"thinking\"");
    out.push_raw("thinking", &quote(thinking.text()));
    if let Some(signature) = signature(thinking) {
        out.push("signature", &quote(signature));
    }
    out.finish()
}
