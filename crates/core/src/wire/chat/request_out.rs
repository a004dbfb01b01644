//! Writes a Chat Completions request: parameters first, messages last, so that
//! successive requests share a prefix.

use serde_json::Value;

use crate::block::{Block, Thinking, ThinkingContent, ToolCall};
use crate::dialect::{Carrier, EmptyContent};
use crate::json_text::{ListWriter, NestedObject, quote};
use crate::message::{Message, Role};
use crate::protocol::Protocol;
use crate::rules::{DummySeals, EgressAction, MessagePlan, block_carrier, field_name, result_text};
use crate::wire::media_out::chat_part;
use crate::wire::request_draft::{RequestDraft, arguments_text, push_typed_text, sent_blocks, texts};

pub(in crate::wire) fn write_request(draft: &RequestDraft<'_>) -> String {
    let mut body = draft.begin();
    // A client may add options, but usage is always wanted.
    match draft.parameters.get("stream_options") {
        Some(Value::Object(options)) => {
            let mut options = options.clone();
            options.insert("include_usage".to_owned(), Value::from(true));
            body.push_raw("stream_options", &Value::Object(options).to_string());
        }
        _ => body.push_raw("stream_options", r#"{"include_usage":true}"#),
    }
    draft.push_parameters_except(&mut body, "stream_options");
    draft.push_function_tools(&mut body);
    draft.finish(body, "messages", message)
}

fn message(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan, list: &mut ListWriter<'_>) {
    match message.role {
        Role::System => plain("system", message, plan, list),
        Role::User => plain("user", message, plan, list),
        Role::Assistant => list.object(|out| assistant(draft, message, plan, out)),
        Role::Tool => {
            for (block, _) in sent_blocks(message, plan) {
                if let Block::ToolResult(result) = block {
                    list.object(|out| {
                        out.push_raw("role", "\"tool\"");
                        out.push_text("tool_call_id", draft.call_id(&result.id, plan));
                        out.push_text("content", &result_text(Protocol::OpenaiChat, result));
                    });
                }
            }
        }
    }
}

/// Text as one string, or a list of parts if there are images or documents.
fn plain(role: &str, message: &Message, plan: &MessagePlan, list: &mut ListWriter<'_>) {
    let sent = || sent_blocks(message, plan).map(|(block, _)| block);
    let has_media = sent().any(|block| matches!(block, Block::Media(_)));
    list.object(|out| {
        out.push_text("role", role);
        match has_media {
            true => out.list("content", |parts| sent().for_each(|block| part(block, parts))),
            false => out.push_text_parts("content", texts(&message.blocks)),
        }
    });
}

fn part(block: &Block, parts: &mut ListWriter<'_>) {
    match block {
        Block::Text(text) => parts.object(|out| push_typed_text(out, "text", &text.text)),
        Block::Media(media) => chat_part(media, parts),
        Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Unmodelled(_) => (),
    }
}

fn assistant(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan, out: &mut NestedObject<'_>) {
    out.push_raw("role", "\"assistant\"");
    let has_calls = sent_blocks(message, plan).any(|(block, _)| matches!(block, Block::ToolCall(_)));
    content(draft, message, plan, has_calls, out);
    thinking(draft, message, plan, out);
    if has_calls {
        out.list("tool_calls", |calls| {
            let mut dummy = dummy_seal(draft);
            for (block, _) in sent_blocks(message, plan) {
                if let Block::ToolCall(tool) = block {
                    calls.object(|out| call(draft, tool, plan, dummy.take(), out));
                }
            }
        });
    }
}

/// Some dialects omit the content next to tool calls.
fn content(
    draft: &RequestDraft<'_>,
    message: &Message,
    plan: &MessagePlan,
    has_calls: bool,
    out: &mut NestedObject<'_>,
) {
    let sent = message.blocks.iter().zip(&plan.actions);
    if sent.clone().any(|(block, action)| is_chunk(draft, block, *action)) {
        out.list("content", |chunks| sent.for_each(|(block, action)| chunk(block, *action, chunks)));
        return;
    }
    let parts = sent.flat_map(|(block, action)| match (block, action) {
        (Block::Thinking(thinking), EgressAction::Tags) => tagged(draft, thinking),
        (Block::Text(block), _) => ["", block.text.as_str(), ""],
        _ => [""; 3],
    });
    let is_empty = parts.clone().all(str::is_empty);
    match draft.rules.echo.empty_content {
        _ if !is_empty || !has_calls => out.push_text_parts("content", parts),
        EmptyContent::Null => out.push_raw("content", "null"),
        EmptyContent::Empty => out.push_raw("content", "\"\""),
        EmptyContent::Omit => (),
    }
}

/// Uses the tags it came in, or else the dialect's own.
fn tagged<'a>(draft: &'a RequestDraft<'_>, thinking: &'a Thinking) -> [&'a str; 3] {
    let pairs = &draft.rules.read.tags.pairs;
    let pair = pairs.iter().find(|pair| pair.open.contains(&thinking.source)).or(pairs.first());
    let open = pair.and_then(|pair| pair.open.first()).map_or("<think>", String::as_str);
    let close = pair.and_then(|pair| pair.close.first()).map_or("</think>", String::as_str);
    [open, thinking.text(), close]
}

fn thinking(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan, out: &mut NestedObject<'_>) {
    let carrier = draft.rules.echo.carrier;
    let (mut entries, mut list) = (Vec::new(), "reasoning_details");
    let (mut texts, mut source) = (Vec::new(), None);
    for (block, action) in sent_blocks(message, plan) {
        let Block::Thinking(thinking) = block else { continue };
        match (&thinking.native, block_carrier(draft.rules, draft.preferences, thinking), action) {
            (Some(_), Carrier::Details, EgressAction::Verbatim) if is_hidden(block) && replaces_seals(draft) => (),
            (Some(native), Carrier::Details, EgressAction::Verbatim) => {
                entries.push((native, thinking.text()));
                // A list goes back under the name it came in; `thinking_blocks`
                // also needs the text in the text field.
                if thinking.source == "thinking_blocks" {
                    list = "thinking_blocks";
                    texts.push(thinking.text());
                }
            }
            (Some(native), Carrier::FieldsOpaque | Carrier::CallExtra, EgressAction::Verbatim) => {
                out.push_members(&native.json);
            }
            (None, Carrier::FieldsOpaque, EgressAction::Verbatim) | (_, _, EgressAction::Field) => {
                source.get_or_insert(thinking.source.as_str());
                texts.push(thinking.text());
            }
            _ => (),
        }
    }
    let dummy = dummy_detail(draft, message, plan).filter(|_| list == "reasoning_details");
    if !entries.is_empty() || dummy.is_some() {
        out.list(list, |list| {
            entries.iter().for_each(|(native, text)| native.write_with_text(text, list.next()));
            if let Some(dummy) = &dummy {
                list.push_raw(dummy);
            }
        });
    }
    if texts.iter().any(|text| !text.is_empty()) {
        out.push_text_parts(&field_name(draft.rules, draft.preferences, source.or(Some(""))), texts);
    } else if plan.filler && dummy.is_none() {
        let filler = draft.preferences.filler.as_deref().unwrap_or(&draft.rules.echo.filler);
        let empty = if carrier == Carrier::Details { "[]".to_owned() } else { quote(filler) };
        out.push_raw(&field_name(draft.rules, draft.preferences, None), &empty);
    }
}

/// Whether a block makes the content an array.
fn is_chunk(draft: &RequestDraft<'_>, block: &Block, action: EgressAction) -> bool {
    match block {
        Block::Thinking(thinking) if action != EgressAction::Dropped => {
            block_carrier(draft.rules, draft.preferences, thinking) == Carrier::ContentChunks
        }
        Block::Thinking(_)
        | Block::Text(_)
        | Block::ToolCall(_)
        | Block::ToolResult(_)
        | Block::Media(_)
        | Block::Unmodelled(_) => false,
    }
}

/// One element of a content array.
fn chunk(block: &Block, action: EgressAction, chunks: &mut ListWriter<'_>) {
    match block {
        Block::Thinking(thinking) if action != EgressAction::Dropped => chunks.object(|out| {
            out.push_raw("type", "\"thinking\"");
            out.list("thinking", |parts| parts.object(|part| push_typed_text(part, "text", thinking.text())));
            if let Some(seal) = thinking.seals().and_then(|seals| seals.signature.as_ref()) {
                out.push_text("signature", &seal.payload);
            }
        }),
        Block::Text(text) if !text.text.is_empty() => part(block, chunks),
        Block::Unmodelled(unmodelled) if action == EgressAction::Verbatim => chunks.push_raw(&unmodelled.native.json),
        Block::Thinking(_)
        | Block::Text(_)
        | Block::ToolCall(_)
        | Block::ToolResult(_)
        | Block::Media(_)
        | Block::Unmodelled(_) => (),
    }
}

/// The documented placeholder for a missing seal, as an entry for the first call
/// of a message without sealed entries.
fn dummy_detail(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan) -> Option<String> {
    let entry = &draft.rules.echo.dummy_detail;
    let dummy = draft.dummy_seal().filter(|_| !entry.is_empty())?;
    let mut sent = sent_blocks(message, plan);
    let is_kept =
        |block: &Block, action| is_hidden(block) && action == EgressAction::Verbatim && !replaces_seals(draft);
    if sent_blocks(message, plan).any(|(block, action)| is_kept(block, action)) {
        return None;
    }
    let id = sent.find_map(|(block, _)| match block {
        Block::ToolCall(call) => Some(draft.call_id(call.id.as_str(), plan)),
        Block::Thinking(_) | Block::Text(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => None,
    })?;
    let mut entry = entry.clone();
    entry.insert("id".to_owned(), id.into());
    entry.insert("data".to_owned(), dummy.into());
    Some(serde_json::Value::Object(entry).to_string())
}

/// Whether a block is the kind of entry that the placeholder replaces.
fn is_hidden(block: &Block) -> bool {
    matches!(block, Block::Thinking(Thinking { content: ThinkingContent::Hidden { .. }, .. }))
}

/// Whether the placeholder stands for all entries that have only a seal.
fn replaces_seals(draft: &RequestDraft<'_>) -> bool {
    let is_everywhere = draft.preferences.repair_effect.dummy_seals == DummySeals::Everywhere;
    is_everywhere && !draft.rules.echo.dummy_detail.is_empty()
}

/// The same as members of the call.
fn dummy_seal(draft: &RequestDraft<'_>) -> Option<String> {
    if !draft.rules.echo.dummy_detail.is_empty() {
        return None;
    }
    let path = draft.rules.read.call_extra.first()?;
    let nest = |inner: String, name: &str| format!("{{{}:{inner}}}", quote(name));
    draft.dummy_seal().map(|dummy| path.rsplit('.').fold(quote(dummy), nest))
}

fn call(
    draft: &RequestDraft<'_>,
    tool: &ToolCall,
    plan: &MessagePlan,
    dummy: Option<String>,
    out: &mut NestedObject<'_>,
) {
    let ToolCall { id, name, arguments, native, .. } = tool;
    out.push_text("id", draft.call_id(id.as_str(), plan));
    out.push_raw("type", "\"function\"");
    out.object("function", |function| {
        function.push_text("name", name);
        function.push_text("arguments", arguments_text(arguments));
    });
    // Provider-specific members, including seals.
    let own = native.as_ref().filter(|_| plan.seals).map(|native| native.json.as_str());
    if let Some(members) = own.or(dummy.as_deref()) {
        out.push_members(members);
    }
}
