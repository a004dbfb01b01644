//! Writes an Ollama chat request: thinking is a field of the message.

use crate::block::Block;
use crate::json_text::ListWriter;
use crate::message::{Message, Role};
use crate::protocol::Protocol;
use crate::rules::{MessagePlan, result_text};
use crate::wire::request_draft::{RequestDraft, arguments_object, sent_blocks, texts};

pub(in crate::wire) fn write_request(draft: &RequestDraft<'_>) -> String {
    let mut body = draft.begin();
    draft.push_parameters(&mut body);
    draft.push_function_tools(&mut body);
    draft.finish(body, "messages", message)
}

fn message(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan, list: &mut ListWriter<'_>) {
    match message.role {
        Role::System => system_or_user("system", message, plan, list),
        Role::User => system_or_user("user", message, plan, list),
        Role::Assistant => assistant(draft, message, plan, list),
        Role::Tool => {
            for (block, _) in sent_blocks(message, plan) {
                if let Block::ToolResult(result) = block {
                    list.object(|out| {
                        out.push_raw("role", "\"tool\"");
                        out.push_text("tool_name", &result.name);
                        out.push_text("content", &result_text(Protocol::Ollama, result));
                    });
                }
            }
        }
    }
}

fn system_or_user(role: &str, message: &Message, plan: &MessagePlan, list: &mut ListWriter<'_>) {
    list.object(|out| {
        out.push_text("role", role);
        out.push_text_parts("content", texts(&message.blocks));
        let images = || sent_blocks(message, plan).filter_map(|(block, _)| image_data(block));
        if images().next().is_some() {
            out.list("images", |list| images().for_each(|data| list.push_text(data)));
        }
    });
}

fn image_data(block: &Block) -> Option<&str> {
    match block {
        Block::Media(media) => media.data(),
        Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Unmodelled(_) => None,
    }
}

fn assistant(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan, list: &mut ListWriter<'_>) {
    let sent = || sent_blocks(message, plan);
    let thinking = || {
        sent().filter_map(|(block, _)| if let Block::Thinking(thinking) = block { Some(thinking.text()) } else { None })
    };
    list.object(|out| {
        out.push_raw("role", "\"assistant\"");
        out.push_text_parts("content", texts(&message.blocks));
        if thinking().any(|text| !text.is_empty()) {
            let field = draft.rules.read.text.first().map_or("thinking", String::as_str);
            out.push_text_parts(field, thinking());
        }
        if sent().any(|(block, _)| matches!(block, Block::ToolCall(_))) {
            out.list("tool_calls", |calls| {
                for (block, _) in sent() {
                    let Block::ToolCall(call) = block else { continue };
                    calls.object(|out| {
                        out.object("function", |function| {
                            function.push_text("name", &call.name);
                            function.push_raw("arguments", arguments_object(&call.arguments));
                        });
                    });
                }
            });
        }
    });
}
