//! Writes an OpenAI Responses request: items in order, each reasoning item right
//! before the item it led to.

use crate::block::{Block, Native, Thinking, ToolCall};
use crate::dialect::{EchoRules, Ids, ItemText};
use crate::message::{Message, Role};
use crate::rules::{EgressAction, MessagePlan};
use crate::wire::json::{ObjectWriter, Raw, each_member, member, quote};
use crate::wire::request_draft::{
    RequestDraft, ToolJson, arguments_text, blocks_with_actions, encrypted, join_with_commas, list, object,
    sent_blocks, typed_text,
};

pub(in crate::wire) fn write_request(draft: &RequestDraft<'_>) -> String {
    let mut body = draft.begin();
    draft.push_parameters(&mut body);
    let tools = draft.tools(|tool| {
        let ToolJson { name, description, parameters } = tool;
        let (kind, strict) = ("\"function\"", "false");
        object([
            ("type", kind),
            ("name", name),
            ("description", description),
            ("parameters", parameters),
            ("strict", strict),
        ])
    });
    if let Some(tools) = tools {
        body.push_raw("tools", &tools);
    }
    if let Some(system) = draft.system() {
        body.push_text("instructions", &system);
    }
    draft.finish(body, "input", message)
}

fn message(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan) -> String {
    match message.role {
        // The system prompt is a separate member.
        Role::System => String::new(),
        Role::User => user(message),
        Role::Tool => join_with_commas(sent_blocks(message, plan).filter_map(|(block, _)| result_item(block))),
        Role::Assistant => assistant(draft, message, plan).join(","),
    }
}

fn user(message: &Message) -> String {
    let parts: Vec<String> = message
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(typed_text("input_text", &text.text)),
            Block::Image(image) => {
                let url = quote(&format!("data:{};base64,{}", image.media_type, image.data));
                Some(object([("type", "\"input_image\""), ("image_url", &url)]))
            }
            Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Unmodelled(_) => None,
        })
        .collect();
    object([("type", "\"message\""), ("role", "\"user\""), ("content", &list(&parts))])
}

fn result_item(block: &Block) -> Option<String> {
    let Block::ToolResult(result) = block else { return None };
    let output = quote(&result.content);
    Some(object([("type", "\"function_call_output\""), ("call_id", &quote(&result.id)), ("output", &output)]))
}

fn assistant(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan) -> Vec<String> {
    // An item whose reasoning is not sent back must not carry its server id.
    let thinking_missing = blocks_with_actions(message, plan)
        .any(|(block, action)| matches!(block, Block::Thinking(_)) && action == EgressAction::Dropped);
    let may_have_ids = draft.rules.echo.ids == Ids::Keep && plan.own && !thinking_missing;
    let mut with_ids = may_have_ids && !draft.preferences.repair_effect.ids_need_thinking;
    let mut items: Vec<(bool, String)> = Vec::new();
    let mut last_reasoning = plan.filler.then(|| raw_reasoning_item("", None, draft.rules.echo.item_text));
    items.extend(last_reasoning.clone().map(|item| (true, item)));
    let mut blocks: Vec<(&Block, EgressAction)> = sent_blocks(message, plan).collect();
    if draft.rules.echo.calls_last {
        blocks.sort_by_key(|(block, _)| matches!(block, Block::ToolCall(_)));
    }
    for (at, (block, action)) in blocks.iter().copied().enumerate() {
        match block {
            Block::Thinking(thinking) => {
                with_ids = may_have_ids;
                let follower = blocks.iter().skip(at + 1).find(|(block, _)| becomes_item(block));
                let named = with_ids && follower.is_some_and(|(block, _)| has_id(block));
                // Sealed reasoning needs no id. With an id, it must be followed
                // by the same item as on the server.
                let ids = if named || encrypted(thinking).is_none() { draft.rules.echo.ids } else { Ids::Omit };
                let item = reasoning_item(thinking, ids, &draft.rules.echo);
                last_reasoning = Some(item.clone());
                items.push((true, item));
            }
            Block::Text(text) if text.text.is_empty() => (),
            Block::Text(text) => items.push((false, message_item(text.native.as_ref(), &text.text, plan, with_ids))),
            Block::ToolCall(tool) => {
                let alone = items.last().is_none_or(|(is_reasoning, _)| !is_reasoning);
                if let Some(item) = last_reasoning.clone().filter(|_| draft.rules.echo.repeat_before_each_call && alone)
                {
                    items.push((true, item));
                }
                items.push((false, call_item(tool, plan, with_ids)));
            }
            Block::Unmodelled(unmodelled) if action == EgressAction::Verbatim => {
                let omitted: &[&str] = if with_ids { &[] } else { &["id"] };
                items.push((false, without(&unmodelled.native, omitted)));
            }
            Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => (),
        }
    }
    // A filler must be followed by another item.
    if items.iter().all(|(is_reasoning, _)| *is_reasoning) {
        return Vec::new();
    }
    items.into_iter().map(|(_, item)| item).collect()
}

/// Whether a block becomes an item that reasoning can lead to.
fn becomes_item(block: &Block) -> bool {
    match block {
        Block::Text(text) => !text.text.is_empty(),
        Block::ToolCall(_) | Block::Unmodelled(_) => true,
        Block::Thinking(_) | Block::ToolResult(_) | Block::Image(_) => false,
    }
}

/// Whether an item came with an id.
fn has_id(block: &Block) -> bool {
    let native = match block {
        Block::Text(text) => text.native.as_ref(),
        Block::ToolCall(call) => call.native.as_ref(),
        Block::Unmodelled(unmodelled) => Some(&unmodelled.native),
        Block::Thinking(_) | Block::ToolResult(_) | Block::Image(_) => None,
    };
    native.and_then(|native| Raw::of(&native.json).ok()).is_some_and(|item| member(item, "id").is_some())
}

fn reasoning_item(thinking: &Thinking, ids: Ids, echo: &EchoRules) -> String {
    if let Some(native) = &thinking.native {
        return without(native, if ids == Ids::Omit { &["id", "status"] } else { &["status"] });
    }
    // If it is readable and not encrypted, the text itself is sent back. A
    // summary is not that text, except where the item has no other item_text for it.
    let is_whole = thinking.items.is_empty() || echo.item_text == ItemText::Encrypted;
    if is_whole && encrypted(thinking).is_none() && !thinking.text().is_empty() {
        return raw_reasoning_item(
            thinking.text(),
            thinking.id.as_deref().filter(|_| ids == Ids::Keep),
            echo.item_text,
        );
    }
    let mut out = ObjectWriter::default();
    out.push("type", "\"reasoning\"");
    if let Some(id) = thinking.id.as_ref().filter(|_| ids == Ids::Keep) {
        out.push("id", &quote(id));
    }
    let summary: Vec<String> = thinking
        .items
        .iter()
        .filter_map(|range| thinking.text().get(range.clone()))
        .map(|text| typed_text("summary_text", text))
        .collect();
    out.push_list("summary", summary);
    if let Some(payload) = encrypted(thinking) {
        out.push("encrypted_content", &quote(payload));
    }
    out.finish()
}

fn raw_reasoning_item(text: &str, id: Option<&str>, item_text: ItemText) -> String {
    let mut out = ObjectWriter::default();
    out.push("type", "\"reasoning\"");
    if let Some(id) = id {
        out.push("id", &quote(id));
    }
    out.push("summary", "[]");
    match item_text {
        ItemText::Content => out.push_raw("content", &list(&[typed_text("reasoning_text", text)])),
        ItemText::Encrypted => out.push_text("encrypted_content", text),
    }
    out.finish()
}

fn message_item(native: Option<&Native>, text: &str, plan: &MessagePlan, with_ids: bool) -> String {
    match native.filter(|_| plan.own) {
        Some(native) if with_ids => native.json.clone(),
        Some(native) => without(native, &["id"]),
        None => {
            let content = list(&[typed_text("output_text", text)]);
            object([("type", "\"message\""), ("role", "\"assistant\""), ("content", &content)])
        }
    }
}

fn call_item(tool: &ToolCall, plan: &MessagePlan, with_ids: bool) -> String {
    match tool.native.as_ref().filter(|_| plan.own) {
        Some(native) if with_ids => native.json.clone(),
        Some(native) => without(native, &["id"]),
        None => object([
            ("type", "\"function_call\""),
            ("call_id", &quote(tool.id.as_str())),
            ("name", &quote(&tool.name)),
            ("arguments", &quote(arguments_text(&tool.arguments))),
        ]),
    }
}

/// The original item without some members.
fn without(native: &Native, names: &[&str]) -> String {
    let mut out = ObjectWriter::default();
    if let Ok(item) = Raw::of(&native.json) {
        each_member(item, |key, value| {
            if !names.contains(&key) {
                out.push(key, value.get());
            }
        });
    }
    out.finish()
}
