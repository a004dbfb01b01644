//! Writes an OpenAI Responses request: items in order, each reasoning item right
//! before the item it led to.

use crate::block::{Block, Native, Thinking, ToolCall};
use crate::dialect::{EchoRules, Ids, ItemText};
use crate::json_text::{ListWriter, NestedObject, Raw, each_member, member, object_into};
use crate::message::{Message, Role};
use crate::rules::{EgressAction, MessagePlan};
use crate::wire::media_out::responses_part;
use crate::wire::request_draft::{
    RequestDraft, ToolLevel, arguments_text, blocks_with_actions, encrypted, push_tool, push_typed_text, sent_blocks,
};

pub(in crate::wire) fn write_request(draft: &RequestDraft<'_>) -> String {
    let mut body = draft.begin();
    draft.push_parameters(&mut body);
    draft.push_tools(&mut body, "tools", |out, tool| {
        out.push_raw("type", "\"function\"");
        push_tool(out, tool, "parameters");
        draft.push_tool_members(out, tool, None, ToolLevel::Inner);
        // Without it, the provider would change the schema.
        if tool.strict.is_none() {
            out.push_raw("strict", "false");
        }
    });
    if let Some(system) = draft.system() {
        body.push_text("instructions", &system);
    }
    draft.finish(body, "input", message)
}

fn message(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan, list: &mut ListWriter<'_>) {
    match message.role {
        // The system prompt is a separate member.
        Role::System if draft.is_prompt(message) => (),
        Role::System => list.object(|out| said("developer", message, plan, out)),
        Role::User => list.object(|out| said("user", message, plan, out)),
        Role::Tool => {
            for (block, _) in sent_blocks(message, plan) {
                if let Block::ToolResult(result) = block {
                    list.object(|out| {
                        out.push_raw("type", "\"function_call_output\"");
                        out.push_text("call_id", &result.id);
                        match result.media.as_slice() {
                            [] => out.push_text("output", &result.content),
                            media => out.list("output", |parts| {
                                if !result.content.is_empty() {
                                    parts.object(|out| push_typed_text(out, "input_text", &result.content));
                                }
                                media.iter().for_each(|media| responses_part(media, parts));
                            }),
                        }
                    });
                }
            }
        }
        Role::Assistant => assistant(draft, message, plan, list),
    }
}

fn said(role: &str, message: &Message, plan: &MessagePlan, out: &mut NestedObject<'_>) {
    out.push_raw("type", "\"message\"");
    out.push_text("role", role);
    out.list("content", |parts| {
        for (block, _) in sent_blocks(message, plan) {
            match block {
                Block::Text(text) => parts.object(|out| push_typed_text(out, "input_text", &text.text)),
                Block::Media(media) => responses_part(media, parts),
                Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Unmodelled(_) => (),
            }
        }
    });
}

/// An item of the input list.
#[derive(Clone, Copy)]
enum ItemOut<'a> {
    Filler,
    Reasoning(&'a Thinking, Ids),
    Message { native: Option<&'a Native>, text: &'a str, with_id: bool },
    Call(&'a ToolCall, bool),
    Unmodelled(&'a Native, bool),
}

impl ItemOut<'_> {
    fn is_reasoning(self) -> bool {
        match self {
            ItemOut::Filler | ItemOut::Reasoning(..) => true,
            ItemOut::Message { .. } | ItemOut::Call(..) | ItemOut::Unmodelled(..) => false,
        }
    }

    fn write(self, echo: &EchoRules, plan: &MessagePlan, list: &mut ListWriter<'_>) {
        match self {
            ItemOut::Message { native: Some(native), text, with_id } if plan.own => {
                return own_item(native, text, with_id, list);
            }
            ItemOut::Call(ToolCall { native: Some(native), arguments, .. }, with_id) if plan.own => {
                return own_item(native, arguments_text(arguments), with_id, list);
            }
            ItemOut::Filler
            | ItemOut::Reasoning(..)
            | ItemOut::Message { .. }
            | ItemOut::Call(..)
            | ItemOut::Unmodelled(..) => (),
        }
        list.object(|out| match self {
            ItemOut::Filler => raw_reasoning_item("", None, echo.item_text, out),
            ItemOut::Reasoning(thinking, ids) => reasoning_item(thinking, ids, echo, out),
            ItemOut::Message { text, .. } => message_item(text, out),
            ItemOut::Call(tool, _) => call_item(tool, out),
            ItemOut::Unmodelled(native, with_id) => without(native, if with_id { &[] } else { &["id"] }, out),
        });
    }
}

fn assistant(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan, list: &mut ListWriter<'_>) {
    // An item whose reasoning is not sent back must not carry its server id.
    let thinking_missing = blocks_with_actions(message, plan)
        .any(|(block, action)| matches!(block, Block::Thinking(_)) && action == EgressAction::Dropped);
    let may_have_ids = draft.rules.echo.ids == Ids::Keep && plan.own && !thinking_missing;
    let mut with_id = may_have_ids && !draft.preferences.repair_effect.ids_need_thinking;
    let mut items: Vec<ItemOut<'_>> = Vec::new();
    let mut last_reasoning = plan.filler.then_some(ItemOut::Filler);
    items.extend(last_reasoning);
    let mut blocks: Vec<(&Block, EgressAction)> = sent_blocks(message, plan).collect();
    if draft.rules.echo.calls_last {
        blocks.sort_by_key(|(block, _)| matches!(block, Block::ToolCall(_)));
    }
    for (at, (block, action)) in blocks.iter().copied().enumerate() {
        match block {
            Block::Thinking(thinking) => {
                with_id = may_have_ids;
                let follower = blocks.iter().skip(at + 1).find(|(block, _)| becomes_item(block));
                let named = with_id && follower.is_some_and(|(block, _)| has_id(block));
                // Sealed reasoning needs no id. With an id, it must be followed
                // by the same item as on the server.
                let ids = if named || encrypted(thinking).is_none() { draft.rules.echo.ids } else { Ids::Omit };
                let item = ItemOut::Reasoning(thinking, ids);
                last_reasoning = Some(item);
                items.push(item);
            }
            Block::Text(text) if text.text.is_empty() => (),
            Block::Text(text) => {
                items.push(ItemOut::Message { native: text.native.as_ref(), text: &text.text, with_id });
            }
            Block::ToolCall(tool) => {
                let alone = items.last().is_none_or(|item| !item.is_reasoning());
                items.extend(last_reasoning.filter(|_| draft.rules.echo.repeat_before_each_call && alone));
                items.push(ItemOut::Call(tool, with_id));
            }
            Block::Unmodelled(unmodelled) if action == EgressAction::Verbatim => {
                items.push(ItemOut::Unmodelled(&unmodelled.native, with_id));
            }
            Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
        }
    }
    // A filler must be followed by another item.
    if !items.iter().all(|item| item.is_reasoning()) {
        items.iter().for_each(|item| item.write(&draft.rules.echo, plan, list));
    }
}

/// Whether a block becomes an item that reasoning can lead to.
fn becomes_item(block: &Block) -> bool {
    match block {
        Block::Text(text) => !text.text.is_empty(),
        Block::ToolCall(_) | Block::Unmodelled(_) => true,
        Block::Thinking(_) | Block::ToolResult(_) | Block::Media(_) => false,
    }
}

/// Whether an item came with an id.
fn has_id(block: &Block) -> bool {
    let native = match block {
        Block::Text(text) => text.native.as_ref(),
        Block::ToolCall(call) => call.native.as_ref(),
        Block::Unmodelled(unmodelled) => Some(&unmodelled.native),
        Block::Thinking(_) | Block::ToolResult(_) | Block::Media(_) => None,
    };
    native.and_then(|native| Raw::of(&native.json).ok()).is_some_and(|item| member(item, "id").is_some())
}

fn reasoning_item(thinking: &Thinking, ids: Ids, echo: &EchoRules, out: &mut NestedObject<'_>) {
    if let Some(native) = &thinking.native {
        without(native, if ids == Ids::Omit { &["id", "status"] } else { &["status"] }, out);
        return;
    }
    let id = thinking.id.as_deref().filter(|_| ids == Ids::Keep);
    // If it is readable and not encrypted, the text itself is sent back. A
    // summary is not that text, except where the item has no other item_text for it.
    let is_whole = thinking.items.is_empty() || echo.item_text == ItemText::Encrypted;
    if is_whole && encrypted(thinking).is_none() && !thinking.text().is_empty() {
        raw_reasoning_item(thinking.text(), id, echo.item_text, out);
        return;
    }
    out.push_raw("type", "\"reasoning\"");
    if let Some(id) = id {
        out.push_text("id", id);
    }
    out.list("summary", |summary| {
        for text in thinking.items.iter().filter_map(|range| thinking.text().get(range.clone())) {
            summary.object(|part| push_typed_text(part, "summary_text", text));
        }
    });
    if let Some(payload) = encrypted(thinking) {
        out.push_text("encrypted_content", payload);
    }
}

fn raw_reasoning_item(text: &str, id: Option<&str>, item_text: ItemText, out: &mut NestedObject<'_>) {
    out.push_raw("type", "\"reasoning\"");
    if let Some(id) = id {
        out.push_text("id", id);
    }
    out.push_raw("summary", "[]");
    match item_text {
        ItemText::Content => {
            out.list("content", |parts| parts.object(|part| push_typed_text(part, "reasoning_text", text)));
        }
        ItemText::Encrypted => out.push_text("encrypted_content", text),
    }
}

/// The original item of a message or a call.
fn own_item(native: &Native, text: &str, with_id: bool, list: &mut ListWriter<'_>) {
    if with_id {
        native.write_with_text(text, list.next());
        return;
    }
    let mut json = String::new();
    object_into(&mut json, |out| without(native, &["id"], out));
    Native { json, text_member: native.text_member.clone() }.write_with_text(text, list.next());
}

fn message_item(text: &str, out: &mut NestedObject<'_>) {
    out.push_raw("type", "\"message\"");
    out.push_raw("role", "\"assistant\"");
    out.list("content", |parts| parts.object(|part| push_typed_text(part, "output_text", text)));
}

fn call_item(tool: &ToolCall, out: &mut NestedObject<'_>) {
    out.push_raw("type", "\"function_call\"");
    out.push_text("call_id", tool.id.as_str());
    out.push_text("name", &tool.name);
    out.push_text("arguments", arguments_text(&tool.arguments));
}

/// The original item without some members.
fn without(native: &Native, names: &[&str], out: &mut NestedObject<'_>) {
    if let Ok(item) = Raw::of(&native.json) {
        each_member(item, |key, value| {
            if !names.contains(&key) {
                out.push(key, value.get());
            }
        });
    }
}
