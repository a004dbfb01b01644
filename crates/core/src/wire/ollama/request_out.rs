//! Writes an Ollama chat request: thinking is a field of the message.

use crate::block::Block;
use crate::message::{Message, Role};
use crate::rules::MessagePlan;
use crate::wire::json::{ObjectWriter, quote};
use crate::wire::request_draft::{RequestDraft, arguments_object, join_with_commas, joined_text, object, sent_blocks};

pub(in crate::wire) fn write_request(draft: &RequestDraft<'_>) -> String {
    let mut body = draft.begin();
    draft.push_parameters(&mut body);
    draft.push_function_tools(&mut body);
    draft.finish(body, "messages", message)
}

fn message(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan) -> String {
    match message.role {
        Role::System => system_or_user("system", message),
        Role::User => system_or_user("user", message),
        Role::Assistant => assistant(draft, message, plan),
        Role::Tool => join_with_commas(sent_blocks(message, plan).filter_map(|(block, _)| result(block))),
    }
}

fn system_or_user(role: &str, message: &Message) -> String {
    let mut out = ObjectWriter::default();
    out.push("role", &quote(role));
    out.push_raw("content", &quote(&joined_text(&message.blocks)));
    let images: Vec<String> = message
        .blocks
        .iter()
        .filter_map(|block| if let Block::Image(image) = block { Some(quote(&image.data)) } else { None })
        .collect();
    if !images.is_empty() {
        out.push_list("images", images);
    }
    out.finish()
}

fn assistant(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan) -> String {
    let mut thinking = String::new();
    let mut calls = Vec::new();
    for (block, _) in sent_blocks(message, plan) {
        match block {
            Block::Thinking(block) => thinking.push_str(block.text()),
            Block::ToolCall(call) => {
                let function = object([("name", &quote(&call.name)), ("arguments", arguments_object(&call.arguments))]);
                calls.push(object([("function", &function)]));
            }
            Block::Text(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => (),
        }
    }
    let mut out = ObjectWriter::default();
    out.push("role", "\"assistant\"");
    out.push_raw("content", &quote(&joined_text(&message.blocks)));
    if !thinking.is_empty() {
        let field = draft.rules.read.text.first().map_or("thinking", String::as_str);
        out.push_raw(field, &quote(&thinking));
    }
    if !calls.is_empty() {
        out.push_list("tool_calls", calls);
    }
    out.finish()
}

fn result(block: &Block) -> Option<String> {
    let Block::ToolResult(result) = block else { return None };
    let mut out = ObjectWriter::default();
    out.push("role", "\"tool\"");
    out.push("tool_name", &quote(&result.name));
    out.push_text("content", &result.content);
    Some(out.finish())
}
