//! Writes a Cohere v2 chat request: thinking is part of the content, and the tool
//! plan goes back next to the calls.

use crate::block::Block;
use crate::message::{Message, Role};
use crate::rules::{EgressAction, MessagePlan};
use crate::wire::json::{ObjectWriter, Raw, quote, text_member};
use crate::wire::request_draft::{
    RequestDraft, arguments_text, join_with_commas, joined_text, list, object, sent_blocks, typed_text,
};

pub(in crate::wire) fn write_request(draft: &RequestDraft<'_>) -> String {
    let mut body = draft.begin();
    draft.push_parameters(&mut body);
    draft.push_function_tools(&mut body);
    draft.finish(body, "messages", message)
}

fn message(_: &RequestDraft<'_>, message: &Message, plan: &MessagePlan) -> String {
    let plain_message =
        |role: &str| object([("role", &quote(role)), ("content", &quote(&joined_text(&message.blocks)))]);
    match message.role {
        Role::System => plain_message("system"),
        Role::User => plain_message("user"),
        Role::Assistant => assistant(message, plan),
        Role::Tool => join_with_commas(sent_blocks(message, plan).filter_map(|(block, _)| result(block))),
    }
}

fn assistant(message: &Message, plan: &MessagePlan) -> String {
    let (mut content, mut calls, mut tool_plan) = (Vec::new(), Vec::new(), None);
    for (block, action) in sent_blocks(message, plan) {
        match block {
            Block::Thinking(thinking) => {
                content.push(object([("type", "\"thinking\""), ("thinking", &quote(thinking.text()))]));
            }
            Block::Text(text) if !text.text.is_empty() => content.push(typed_text("text", &text.text)),
            Block::ToolCall(call) => {
                let arguments = quote(arguments_text(&call.arguments));
                let function = object([("name", &quote(&call.name)), ("arguments", &arguments)]);
                let id = quote(call.id.as_str());
                calls.push(object([("id", &id), ("type", "\"function\""), ("function", &function)]));
            }
            Block::Unmodelled(unmodelled) if action == EgressAction::Verbatim => {
                tool_plan = tool_plan.or_else(|| text_member(Raw::of(&unmodelled.native.json).ok()?, "tool_plan"));
            }
            Block::Text(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => (),
        }
    }
    // An empty message is not sent.
    if content.is_empty() && calls.is_empty() {
        return String::new();
    }
    let mut out = ObjectWriter::default();
    out.push("role", "\"assistant\"");
    if let Some(tool_plan) = tool_plan {
        out.push_text("tool_plan", &tool_plan);
    }
    if !content.is_empty() {
        out.push_list("content", content);
    }
    if !calls.is_empty() {
        out.push_list("tool_calls", calls);
    }
    out.finish()
}

fn result(block: &Block) -> Option<String> {
    let Block::ToolResult(result) = block else { return None };
    let document = object([("data", &quote(&result.content))]);
    let content = list(&[object([("type", "\"document\""), ("document", &document)])]);
    Some(object([("role", "\"tool\""), ("tool_call_id", &quote(&result.id)), ("content", &content)]))
}
