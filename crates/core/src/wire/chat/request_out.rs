//! Writes a Chat Completions request: parameters first, messages last, so that
//! successive requests share a prefix.

use crate::block::{Block, Thinking, ToolCall};
use crate::dialect::{Carrier, EmptyContent};
use crate::message::{Message, Role};
use crate::rules::{EgressAction, MessagePlan, field_name};
use crate::wire::json::{ObjectWriter, compact, list_of, quote};
use crate::wire::request_draft::{RequestDraft, arguments_text, join_with_commas, joined_text, sent_blocks};

pub(in crate::wire) fn write_request(draft: &RequestDraft<'_>) -> String {
    let mut body = draft.begin();
    body.push("stream_options", r#"{"include_usage":true}"#);
    draft.push_parameters(&mut body);
    draft.push_function_tools(&mut body);
    draft.finish(body, "messages", message)
}

fn message(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan) -> String {
    match message.role {
        Role::System => plain("system", message),
        Role::User => plain("user", message),
        Role::Assistant => assistant(draft, message, plan),
        Role::Tool => {
            join_with_commas(sent_blocks(message, plan).filter_map(|(block, _)| tool_result(draft, block, plan)))
        }
    }
}

fn tool_result(draft: &RequestDraft<'_>, block: &Block, plan: &MessagePlan) -> Option<String> {
    let Block::ToolResult(result) = block else { return None };
    let mut out = ObjectWriter::default();
    out.push("role", "\"tool\"");
    out.push("tool_call_id", &draft.call_id(&result.id, plan));
    out.push_text("content", &result.content);
    Some(out.finish())
}

/// Text as one string, or a list of parts if there are images.
fn plain(role: &str, message: &Message) -> String {
    let has_image = message.blocks.iter().any(|block| matches!(block, Block::Image(_)));
    let content =
        if has_image { list_of(message.blocks.iter().filter_map(part)) } else { quote(&joined_text(&message.blocks)) };
    let mut out = ObjectWriter::default();
    out.push("role", &quote(role));
    out.push_raw("content", &content);
    out.finish()
}

fn part(block: &Block) -> Option<String> {
    match block {
        Block::Text(text) => Some(format!(r#"{{"type":"text","text":{}}}"#, quote(&text.text))),
        Block::Image(image) => {
            let url = format!("data:{};base64,{}", image.media_type, image.data);
            Some(format!(r#"{{"type":"image_url","image_url":{{"url":{}}}}}"#, quote(&url)))
        }
        Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Unmodelled(_) => None,
    }
}

fn assistant(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan) -> String {
    let mut out = ObjectWriter::default();
    out.push("role", "\"assistant\"");
    let has_calls = sent_blocks(message, plan).any(|(block, _)| matches!(block, Block::ToolCall(_)));
    if let Some(content) = content(draft, message, plan, has_calls) {
        out.push_raw("content", &content);
    }
    thinking(draft, message, plan, &mut out);
    if has_calls {
        out.push_list("tool_calls", calls(draft, message, plan));
    }
    out.finish()
}

/// None if the dialect omits the content next to tool calls.
fn content(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan, has_calls: bool) -> Option<String> {
    let sent = message.blocks.iter().zip(&plan.actions);
    if draft.rules.echo.carrier == Carrier::ContentChunks && sent.clone().any(is_sent_thought) {
        return Some(list_of(sent.filter_map(|(block, action)| chunk(block, *action))));
    }
    let mut text = String::new();
    for (block, action) in sent {
        match (block, action) {
            (Block::Thinking(thinking), EgressAction::Tags) => push_tags(draft, thinking, &mut text),
            (Block::Text(block), _) => text.push_str(&block.text),
            _ => (),
        }
    }
    match draft.rules.echo.empty_content {
        _ if !text.is_empty() || !has_calls => Some(quote(&text)),
        EmptyContent::Null => Some("null".to_owned()),
        EmptyContent::Empty => Some("\"\"".to_owned()),
        EmptyContent::Omit => None,
    }
}

/// Uses the tags it came in, or else the dialect's own.
fn push_tags(draft: &RequestDraft<'_>, thinking: &Thinking, text: &mut String) {
    let pairs = &draft.rules.read.tags.pairs;
    let pair = pairs.iter().find(|pair| pair.open.contains(&thinking.source)).or(pairs.first());
    let open = pair.and_then(|pair| pair.open.first()).map_or("<think>", String::as_str);
    let close = pair.and_then(|pair| pair.close.first()).map_or("</think>", String::as_str);
    text.push_str(open);
    text.push_str(thinking.text());
    text.push_str(close);
}

fn thinking(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan, out: &mut ObjectWriter) {
    let carrier = draft.rules.echo.carrier;
    let (mut entries, mut list) = (Vec::new(), "reasoning_details");
    let (mut text, mut source) = (String::new(), None);
    for (block, action) in sent_blocks(message, plan) {
        let Block::Thinking(thinking) = block else { continue };
        match (&thinking.native, carrier, action) {
            (Some(native), Carrier::Details, EgressAction::Verbatim) => {
                entries.push(native.with_text(thinking.text()));
                // A list goes back under the name it came in; `thinking_blocks`
                // also needs the text in the text field.
                if thinking.source == "thinking_blocks" {
                    list = "thinking_blocks";
                    text.push_str(thinking.text());
                }
            }
            (Some(native), Carrier::FieldsOpaque | Carrier::CallExtra, EgressAction::Verbatim) => {
                out.push_members(&native.json);
            }
            (None, Carrier::FieldsOpaque, EgressAction::Verbatim) | (_, _, EgressAction::Field) => {
                source.get_or_insert(thinking.source.as_str());
                text.push_str(thinking.text());
            }
            _ => (),
        }
    }
    if !entries.is_empty() {
        out.push_list(list, entries);
    }
    if !text.is_empty() {
        out.push_raw(&field_name(draft.rules, draft.preferences, source.or(Some(""))), &quote(&text));
    } else if plan.filler {
        let filler = draft.preferences.filler.as_deref().unwrap_or(&draft.rules.echo.filler);
        let empty = if carrier == Carrier::Details { "[]".to_owned() } else { quote(filler) };
        out.push(&field_name(draft.rules, draft.preferences, None), &empty);
    }
}

fn is_sent_thought((block, action): (&Block, &EgressAction)) -> bool {
    matches!(block, Block::Thinking(_)) && *action != EgressAction::Dropped
}

/// One element of a content array.
fn chunk(block: &Block, action: EgressAction) -> Option<String> {
    match block {
        Block::Thinking(thinking) if action != EgressAction::Dropped => {
            let text = quote(thinking.text());
            let signature = thinking.seals().and_then(|seals| seals.signature.as_ref());
            let signature =
                signature.map_or_else(String::new, |seal| format!(r#","signature":{}"#, quote(&seal.payload)));
            Some(format!(r#"{{"type":"thinking","thinking":[{{"type":"text","text":{text}}}]{signature}}}"#))
        }
        Block::Text(text) if !text.text.is_empty() => part(&Block::Text(text.clone())),
        Block::Unmodelled(unmodelled) if action == EgressAction::Verbatim => Some(unmodelled.native.json.clone()),
        Block::Thinking(_)
        | Block::Text(_)
        | Block::ToolCall(_)
        | Block::ToolResult(_)
        | Block::Image(_)
        | Block::Unmodelled(_) => None,
    }
}

fn calls<'a>(
    draft: &'a RequestDraft<'_>,
    message: &'a Message,
    plan: &'a MessagePlan,
) -> impl Iterator<Item = String> + 'a {
    let tools = sent_blocks(message, plan).filter_map(|(block, _)| match block {
        Block::ToolCall(tool) => Some(tool),
        Block::Text(_) | Block::Thinking(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => None,
    });
    tools.enumerate().map(move |(at, tool)| call(draft, tool, plan, dummy_seal(draft).filter(|_| at == 0)))
}

/// The documented placeholder for a missing seal, as members of the call.
fn dummy_seal(draft: &RequestDraft<'_>) -> Option<String> {
    let path = draft.rules.read.call_extra.first()?;
    let nest = |inner: String, name: &str| format!("{{{}:{inner}}}", quote(name));
    draft.dummy_seal().map(|dummy| path.rsplit('.').fold(quote(dummy), nest))
}

fn call(draft: &RequestDraft<'_>, tool: &ToolCall, plan: &MessagePlan, dummy: Option<String>) -> String {
    let ToolCall { id, name, arguments, native, .. } = tool;
    let mut out = ObjectWriter::default();
    out.push("id", &draft.call_id(id.as_str(), plan));
    out.push("type", "\"function\"");
    let mut function = ObjectWriter::default();
    function.push_text("name", name);
    function.push_text("arguments", arguments_text(arguments));
    out.push_raw("function", &function.finish());
    // Provider-specific members, including seals.
    let own = native.as_ref().filter(|_| plan.seals).map(|native| native.json.clone());
    if let Some(members) = own.or(dummy) {
        out.push_members(&compact(&members));
    }
    out.finish()
}
