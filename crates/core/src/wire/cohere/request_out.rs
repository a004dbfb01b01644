//! Writes a Cohere v2 chat request: thinking is part of the content, and the tool
//! plan goes back next to the calls.

use crate::block::Block;
use crate::json_text::{ListWriter, NestedObject, Raw, text_member};
use crate::message::{Message, Role};
use crate::protocol::Protocol;
use crate::rules::{EgressAction, MessagePlan, result_text};
use crate::wire::request_draft::{RequestDraft, arguments_text, push_typed_text, sent_blocks, texts};

pub(in crate::wire) fn write_request(draft: &RequestDraft<'_>) -> String {
    let mut body = draft.begin();
    draft.push_parameters(&mut body);
    draft.push_function_tools(&mut body);
    draft.finish(body, "messages", message)
}

fn message(_: &RequestDraft<'_>, message: &Message, plan: &MessagePlan, list: &mut ListWriter<'_>) {
    let plain_message = |role: &str, list: &mut ListWriter<'_>| {
        list.object(|out| {
            out.push_text("role", role);
            out.push_text_parts("content", texts(&message.blocks));
        });
    };
    match message.role {
        Role::System => plain_message("system", list),
        Role::User => plain_message("user", list),
        Role::Assistant => assistant(message, plan, list),
        Role::Tool => {
            for (block, _) in sent_blocks(message, plan) {
                if let Block::ToolResult(result) = block {
                    list.object(|out| {
                        out.push_raw("role", "\"tool\"");
                        out.push_text("tool_call_id", &result.id);
                        out.list("content", |content| {
                            content.object(|part| {
                                part.push_raw("type", "\"document\"");
                                part.object("document", |document| {
                                    document.push_text("data", &result_text(Protocol::Cohere, result))
                                });
                            });
                        });
                    });
                }
            }
        }
    }
}

fn assistant(message: &Message, plan: &MessagePlan, list: &mut ListWriter<'_>) {
    let sent = || sent_blocks(message, plan);
    let has_content = sent().any(|(block, _)| is_content(block));
    let has_calls = sent().any(|(block, _)| matches!(block, Block::ToolCall(_)));
    // An empty message is not sent.
    if !has_content && !has_calls {
        return;
    }
    list.object(|out| {
        out.push_raw("role", "\"assistant\"");
        let tool_plan = sent().find_map(|(block, action)| match block {
            Block::Unmodelled(unmodelled) if action == EgressAction::Verbatim => {
                text_member(Raw::of(&unmodelled.native.json).ok()?, "tool_plan")
            }
            Block::Text(_)
            | Block::Thinking(_)
            | Block::ToolCall(_)
            | Block::ToolResult(_)
            | Block::Media(_)
            | Block::Unmodelled(_) => None,
        });
        if let Some(tool_plan) = tool_plan {
            out.push_text("tool_plan", &tool_plan);
        }
        if has_content {
            out.list("content", |content| {
                for (block, _) in sent().filter(|(block, _)| is_content(block)) {
                    content.object(|part| content_part(block, part));
                }
            });
        }
        if has_calls {
            out.list("tool_calls", |calls| {
                for (block, _) in sent() {
                    let Block::ToolCall(call) = block else { continue };
                    calls.object(|out| {
                        out.push_text("id", call.id.as_str());
                        out.push_raw("type", "\"function\"");
                        out.object("function", |function| {
                            function.push_text("name", &call.name);
                            function.push_text("arguments", arguments_text(&call.arguments));
                        });
                    });
                }
            });
        }
    });
}

fn is_content(block: &Block) -> bool {
    match block {
        Block::Thinking(_) => true,
        Block::Text(text) => !text.text.is_empty(),
        Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => false,
    }
}

fn content_part(block: &Block, part: &mut NestedObject<'_>) {
    match block {
        Block::Thinking(thinking) => {
            part.push_raw("type", "\"thinking\"");
            part.push_text("thinking", thinking.text());
        }
        Block::Text(text) => push_typed_text(part, "text", &text.text),
        Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
    }
}
