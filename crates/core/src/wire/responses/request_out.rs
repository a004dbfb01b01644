//! An OpenAI Responses request: items in their order, each thought right
//! before the item it produced.

use crate::block::{Block, Native, Thinking, ToolCall};
use crate::dialect::{EchoRules, Ids, ItemText};
use crate::message::{Message, Role};
use crate::rules::{Action, Step};
use crate::wire::draft::{
    Draft, ToolWords, arguments_text, decided, encrypted, joined, list, object, sent, typed_text,
};
use crate::wire::json::{ObjectWriter, Raw, each_entry, member, quote};

pub(in crate::wire) fn write(draft: &Draft<'_>) -> String {
    let mut body = draft.begin();
    draft.push_parameters(&mut body);
    let tools = draft.tools(|tool| {
        let ToolWords { name, description, parameters } = tool;
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

fn message(draft: &Draft<'_>, message: &Message, step: &Step) -> String {
    match message.role {
        // It has a place of its own.
        Role::System => String::new(),
        Role::User => user(message),
        Role::Tool => joined(sent(message, step).filter_map(|(block, _)| result(block))),
        Role::Assistant => assistant(draft, message, step).join(","),
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

fn result(block: &Block) -> Option<String> {
    let Block::ToolResult(result) = block else { return None };
    let output = quote(&result.content);
    Some(object([("type", "\"function_call_output\""), ("call_id", &quote(&result.id)), ("output", &output)]))
}

fn assistant(draft: &Draft<'_>, message: &Message, step: &Step) -> Vec<String> {
    // A follower whose thought does not go back may not carry its server id.
    let thought_missing =
        decided(message, step).any(|(block, action)| matches!(block, Block::Thinking(_)) && action == Action::Dropped);
    let may_have_ids = draft.rules.echo.ids == Ids::Keep && step.own && !thought_missing;
    let mut with_ids = may_have_ids && !draft.wishes.mend.ids_need_thought;
    let mut items: Vec<(bool, String)> = Vec::new();
    let mut last_thought = step.filler.then(|| raw_thought("", None, draft.rules.echo.item_text));
    items.extend(last_thought.clone().map(|item| (true, item)));
    let mut blocks: Vec<(&Block, Action)> = sent(message, step).collect();
    if draft.rules.echo.calls_last {
        blocks.sort_by_key(|(block, _)| matches!(block, Block::ToolCall(_)));
    }
    for (at, (block, action)) in blocks.iter().copied().enumerate() {
        match block {
            Block::Thinking(thinking) => {
                with_ids = may_have_ids;
                let follower = blocks.iter().skip(at + 1).find(|(block, _)| is_an_item(block));
                let named = with_ids && follower.is_some_and(|(block, _)| has_id(block));
                // A sealed thought needs no id, and with one it needs the very
                // item that the provider knows to follow it.
                let ids = if named || encrypted(thinking).is_none() { draft.rules.echo.ids } else { Ids::Omit };
                let item = thought(thinking, ids, &draft.rules.echo);
                last_thought = Some(item.clone());
                items.push((true, item));
            }
            Block::Text(text) if text.text.is_empty() => (),
            Block::Text(text) => items.push((false, said(text.native.as_ref(), &text.text, step, with_ids))),
            Block::ToolCall(tool) => {
                let alone = items.last().is_none_or(|(is_thought, _)| !is_thought);
                if let Some(item) = last_thought.clone().filter(|_| draft.rules.echo.repeat_before_each_call && alone) {
                    items.push((true, item));
                }
                items.push((false, call(tool, step, with_ids)));
            }
            Block::Unmodelled(unmodelled) if action == Action::Verbatim => {
                let kept: &[&str] = if with_ids { &[] } else { &["id"] };
                items.push((false, without(&unmodelled.native, kept)));
            }
            Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => (),
        }
    }
    // A filler with nothing to stand before is none.
    if items.iter().all(|(is_thought, _)| *is_thought) {
        return Vec::new();
    }
    items.into_iter().map(|(_, item)| item).collect()
}

/// Whether something is written for a block that a thought may lead to.
fn is_an_item(block: &Block) -> bool {
    match block {
        Block::Text(text) => !text.text.is_empty(),
        Block::ToolCall(_) | Block::Unmodelled(_) => true,
        Block::Thinking(_) | Block::ToolResult(_) | Block::Image(_) => false,
    }
}

/// Whether an item goes back under the id it came with.
fn has_id(block: &Block) -> bool {
    let native = match block {
        Block::Text(text) => text.native.as_ref(),
        Block::ToolCall(call) => call.native.as_ref(),
        Block::Unmodelled(unmodelled) => Some(&unmodelled.native),
        Block::Thinking(_) | Block::ToolResult(_) | Block::Image(_) => None,
    };
    native.and_then(|native| Raw::of(&native.json).ok()).is_some_and(|item| member(item, "id").is_some())
}

fn thought(thinking: &Thinking, ids: Ids, echo: &EchoRules) -> String {
    if let Some(native) = &thinking.native {
        return without(native, if ids == Ids::Omit { &["id", "status"] } else { &["status"] });
    }
    // Readable and not encrypted: the text itself is what goes back. A summary
    // is not that text, except where it is the only place there is.
    let is_whole = thinking.items.is_empty() || echo.item_text == ItemText::Encrypted;
    if is_whole && encrypted(thinking).is_none() && !thinking.text().is_empty() {
        return raw_thought(thinking.text(), thinking.id.as_deref().filter(|_| ids == Ids::Keep), echo.item_text);
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

fn raw_thought(text: &str, id: Option<&str>, place: ItemText) -> String {
    let mut out = ObjectWriter::default();
    out.push("type", "\"reasoning\"");
    if let Some(id) = id {
        out.push("id", &quote(id));
    }
    out.push("summary", "[]");
    match place {
        ItemText::Content => out.push_raw("content", &list(&[typed_text("reasoning_text", text)])),
        ItemText::Encrypted => out.push_text("encrypted_content", text),
    }
    out.finish()
}

fn said(native: Option<&Native>, text: &str, step: &Step, with_ids: bool) -> String {
    match native.filter(|_| step.own) {
        Some(native) if with_ids => native.json.clone(),
        Some(native) => without(native, &["id"]),
        None => {
            let content = list(&[typed_text("output_text", text)]);
            object([("type", "\"message\""), ("role", "\"assistant\""), ("content", &content)])
        }
    }
}

fn call(tool: &ToolCall, step: &Step, with_ids: bool) -> String {
    match tool.native.as_ref().filter(|_| step.own) {
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

/// An item as it came, but for some members.
fn without(native: &Native, names: &[&str]) -> String {
    let mut out = ObjectWriter::default();
    if let Ok(item) = Raw::of(&native.json) {
        each_entry(item, |key, value| {
            if !names.contains(&key) {
                out.push(key, value.get());
            }
        });
    }
    out.finish()
}
