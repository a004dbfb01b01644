//! An Ollama chat request: thinking in a field of the message.

use crate::block::Block;
use crate::message::{Message, Role};
use crate::rules::Step;
use crate::wire::draft::{Draft, arguments_object, joined, object, sent, text_of};
use crate::wire::json::{ObjectWriter, quote};

pub(in crate::wire) fn write(draft: &Draft<'_>) -> String {
    let mut body = draft.begin();
    draft.push_parameters(&mut body);
    draft.push_function_tools(&mut body);
    draft.finish(body, "messages", message)
}

fn message(draft: &Draft<'_>, message: &Message, step: &Step) -> String {
    match message.role {
        Role::System => spoken("system", message),
        Role::User => spoken("user", message),
        Role::Assistant => assistant(draft, message, step),
        Role::Tool => joined(sent(message, step).filter_map(|(block, _)| result(block))),
    }
}

fn spoken(role: &str, message: &Message) -> String {
    let mut out = ObjectWriter::default();
    out.push("role", &quote(role));
    out.push_raw("content", &quote(&text_of(&message.blocks)));
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

fn assistant(draft: &Draft<'_>, message: &Message, step: &Step) -> String {
    let mut thinking = String::new();
    let mut calls = Vec::new();
    for (block, _) in sent(message, step) {
        match block {
            Block::Thinking(thought) => thinking.push_str(thought.text()),
            Block::ToolCall(call) => {
                let function = object([("name", &quote(&call.name)), ("arguments", arguments_object(&call.arguments))]);
                calls.push(object([("function", &function)]));
            }
            Block::Text(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => (),
        }
    }
    let mut out = ObjectWriter::default();
    out.push("role", "\"assistant\"");
    out.push_raw("content", &quote(&text_of(&message.blocks)));
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
