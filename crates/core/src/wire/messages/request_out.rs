//! An Anthropic Messages request. Thinking goes back as the block it was,
//! to the byte.

use serde_json::{Map, Value};

use crate::block::{Block, Thinking};
use crate::message::{Message, Role};
use crate::rules::Step;
use crate::wire::draft::{
    Draft, ToolWords, arguments_object, call_id, encrypted, joined, object, sent, signature, turn_taker, typed_text,
};
use crate::wire::json::{ObjectWriter, quote};

pub(in crate::wire) fn write(draft: &Draft<'_>) -> String {
    let mut body = draft.begin();
    draft.push_parameters(&mut body);
    let tools = draft.tools(|tool| {
        let ToolWords { name, description, parameters } = tool;
        object([("name", name), ("description", description), ("input_schema", parameters)])
    });
    if let Some(tools) = tools {
        body.push_raw("tools", &tools);
    }
    if let Some(system) = draft.system() {
        body.push_text("system", &system);
    }
    draft.finish_runs(body, "messages", turn_taker, content)
}

/// The blocks of a message with commas between them; nothing where there is
/// nothing left to say.
fn content(draft: &Draft<'_>, message: &Message, step: &Step) -> String {
    // The system prompt has a place of its own.
    if message.role == Role::System {
        return String::new();
    }
    let filler = || object([("type", "\"thinking\""), ("thinking", &quote(&draft.rules.echo.filler))]);
    let blocks = sent(message, step).filter_map(|(block, _)| content_block(block, step));
    joined(step.filler.then(filler).into_iter().chain(blocks))
}

/// Thinking that is switched on by hand wants an open tool loop to begin with
/// a thought; thinking that adapts does not.
pub(in crate::wire) fn wants_leading_thought(parameters: &Map<String, Value>) -> bool {
    let by_hand = |thinking: &Value| thinking.get("type").and_then(Value::as_str) == Some("enabled");
    let below = parameters.get("additionalModelRequestFields").and_then(|fields| fields.get("thinking"));
    let budgeted = |thinking: &&Value| thinking.get("budget_tokens").is_some();
    parameters.get("thinking").or(below).filter(budgeted).is_some_and(by_hand)
}

fn content_block(block: &Block, step: &Step) -> Option<String> {
    match block {
        Block::Thinking(thinking) => Some(thought(thinking)),
        Block::Text(text) if text.text.trim().is_empty() => None,
        Block::Text(text) => match text.native.as_ref().filter(|_| step.own) {
            Some(native) => Some(native.whole(&text.text)),
            None => Some(typed_text("text", &text.text)),
        },
        Block::ToolCall(call) => {
            let mut out = ObjectWriter::default();
            out.push("type", "\"tool_use\"");
            out.push("id", &call_id(call.id.as_str(), step));
            out.push("name", &quote(&call.name));
            out.push("input", arguments_object(&call.arguments));
            if let Some(native) = call.native.as_ref().filter(|_| step.own) {
                out.push_new_members(&native.json);
            }
            Some(out.finish())
        }
        Block::ToolResult(result) => {
            let mut out = ObjectWriter::default();
            out.push("type", "\"tool_result\"");
            out.push("tool_use_id", &call_id(&result.id, step));
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

fn thought(thinking: &Thinking) -> String {
    if let Some(native) = &thinking.native {
        return native.whole(thinking.text());
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
