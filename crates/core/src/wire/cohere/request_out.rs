//! A Cohere v2 chat request: thinking is a part of the content, and the plan
//! goes back beside the calls.

use crate::block::Block;
use crate::message::{Message, Role};
use crate::rules::{Action, Step};
use crate::wire::draft::{Draft, arguments_text, joined, list, object, sent, text_of, typed_text};
use crate::wire::json::{ObjectWriter, Raw, quote, text_member};

pub(in crate::wire) fn write(draft: &Draft<'_>) -> String {
    let mut body = draft.begin();
    draft.push_parameters(&mut body);
    draft.push_function_tools(&mut body);
    draft.finish(body, "messages", message)
}

fn message(_: &Draft<'_>, message: &Message, step: &Step) -> String {
    let spoken = |role: &str| object([("role", &quote(role)), ("content", &quote(&text_of(&message.blocks)))]);
    match message.role {
        Role::System => spoken("system"),
        Role::User => spoken("user"),
        Role::Assistant => assistant(message, step),
        Role::Tool => joined(sent(message, step).filter_map(|(block, _)| result(block))),
    }
}

fn assistant(message: &Message, step: &Step) -> String {
    let (mut content, mut calls, mut plan) = (Vec::new(), Vec::new(), None);
    for (block, action) in sent(message, step) {
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
            Block::Unmodelled(unmodelled) if action == Action::Verbatim => {
                plan = plan.or_else(|| text_member(Raw::of(&unmodelled.native.json).ok()?, "tool_plan"));
            }
            Block::Text(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => (),
        }
    }
    // A message with nothing left to say is none.
    if content.is_empty() && calls.is_empty() {
        return String::new();
    }
    let mut out = ObjectWriter::default();
    out.push("role", "\"assistant\"");
    if let Some(plan) = plan {
        out.push_text("tool_plan", &plan);
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
