//! A Chat Completions request: the parameters first, the messages last, so
//! that each request begins like the one before it.

use crate::block::{Block, Thinking, ToolCall};
use crate::dialect::{Carrier, EmptyContent};
use crate::message::{Message, Role};
use crate::rules::{Action, Step, field_name};
use crate::wire::draft::{Draft, arguments_text, joined, sent, text_of};
use crate::wire::json::{ObjectWriter, compact, list_of, quote};

pub(in crate::wire) fn write(draft: &Draft<'_>) -> String {
    let mut body = draft.begin();
    body.push("stream_options", r#"{"include_usage":true}"#);
    draft.push_parameters(&mut body);
    draft.push_function_tools(&mut body);
    draft.finish(body, "messages", message)
}

fn message(draft: &Draft<'_>, message: &Message, step: &Step) -> String {
    match message.role {
        Role::System => plain("system", message),
        Role::User => plain("user", message),
        Role::Assistant => assistant(draft, message, step),
        Role::Tool => joined(sent(message, step).filter_map(|(block, _)| tool_result(draft, block, step))),
    }
}

fn tool_result(draft: &Draft<'_>, block: &Block, step: &Step) -> Option<String> {
    let Block::ToolResult(result) = block else { return None };
    let mut out = ObjectWriter::default();
    out.push("role", "\"tool\"");
    out.push("tool_call_id", &draft.call_id(&result.id, step));
    out.push_text("content", &result.content);
    Some(out.finish())
}

/// Text as one string; with images as a list of parts.
fn plain(role: &str, message: &Message) -> String {
    let has_image = message.blocks.iter().any(|block| matches!(block, Block::Image(_)));
    let content =
        if has_image { list_of(message.blocks.iter().filter_map(part)) } else { quote(&text_of(&message.blocks)) };
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

fn assistant(draft: &Draft<'_>, message: &Message, step: &Step) -> String {
    let mut out = ObjectWriter::default();
    out.push("role", "\"assistant\"");
    let has_calls = sent(message, step).any(|(block, _)| matches!(block, Block::ToolCall(_)));
    if let Some(content) = content(draft, message, step, has_calls) {
        out.push_raw("content", &content);
    }
    thinking(draft, message, step, &mut out);
    if has_calls {
        out.push_list("tool_calls", calls(draft, message, step));
    }
    out.finish()
}

/// None where the dialect wants no content at all beside calls.
fn content(draft: &Draft<'_>, message: &Message, step: &Step, has_calls: bool) -> Option<String> {
    let sent = message.blocks.iter().zip(&step.actions);
    if draft.rules.echo.carrier == Carrier::ContentChunks && sent.clone().any(is_sent_thought) {
        return Some(list_of(sent.filter_map(|(block, action)| chunk(block, *action))));
    }
    let mut text = String::new();
    for (block, action) in sent {
        match (block, action) {
            (Block::Thinking(thinking), Action::Tags) => push_tags(draft, thinking, &mut text),
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

/// The tags it came in, or the dialect's own.
fn push_tags(draft: &Draft<'_>, thinking: &Thinking, text: &mut String) {
    let pairs = &draft.rules.read.tags.pairs;
    let pair = pairs.iter().find(|pair| pair.open.contains(&thinking.source)).or(pairs.first());
    let open = pair.and_then(|pair| pair.open.first()).map_or("<think>", String::as_str);
    let close = pair.and_then(|pair| pair.close.first()).map_or("</think>", String::as_str);
    text.push_str(open);
    text.push_str(thinking.text());
    text.push_str(close);
}

fn thinking(draft: &Draft<'_>, message: &Message, step: &Step, out: &mut ObjectWriter) {
    let carrier = draft.rules.echo.carrier;
    let (mut entries, mut list) = (Vec::new(), "reasoning_details");
    let (mut text, mut source) = (String::new(), None);
    for (block, action) in sent(message, step) {
        let Block::Thinking(thinking) = block else { continue };
        match (&thinking.native, carrier, action) {
            (Some(native), Carrier::Details, Action::Verbatim) => {
                entries.push(native.whole(thinking.text()));
                // A list goes back under the name it came in, and one of the
                // two stands beside the text.
                if thinking.source == "thinking_blocks" {
                    list = "thinking_blocks";
                    text.push_str(thinking.text());
                }
            }
            (Some(native), Carrier::FieldsOpaque | Carrier::CallExtra, Action::Verbatim) => {
                out.push_members(&native.json);
            }
            (None, Carrier::FieldsOpaque, Action::Verbatim) | (_, _, Action::Field) => {
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
        out.push_raw(&field_name(draft.rules, draft.wishes, source.or(Some(""))), &quote(&text));
    } else if step.filler {
        let filler = draft.wishes.filler.as_deref().unwrap_or(&draft.rules.echo.filler);
        let empty = if carrier == Carrier::Details { "[]".to_owned() } else { quote(filler) };
        out.push(&field_name(draft.rules, draft.wishes, None), &empty);
    }
}

fn is_sent_thought((block, action): (&Block, &Action)) -> bool {
    matches!(block, Block::Thinking(_)) && *action != Action::Dropped
}

/// One element of a content array.
fn chunk(block: &Block, action: Action) -> Option<String> {
    match block {
        Block::Thinking(thinking) if action != Action::Dropped => {
            let text = quote(thinking.text());
            let signature = thinking.seals().and_then(|seals| seals.signature.as_ref());
            let signature =
                signature.map_or_else(String::new, |seal| format!(r#","signature":{}"#, quote(&seal.payload)));
            Some(format!(r#"{{"type":"thinking","thinking":[{{"type":"text","text":{text}}}]{signature}}}"#))
        }
        Block::Text(text) if !text.text.is_empty() => part(&Block::Text(text.clone())),
        Block::Unmodelled(unmodelled) if action == Action::Verbatim => Some(unmodelled.native.json.clone()),
        Block::Thinking(_)
        | Block::Text(_)
        | Block::ToolCall(_)
        | Block::ToolResult(_)
        | Block::Image(_)
        | Block::Unmodelled(_) => None,
    }
}

fn calls<'a>(draft: &'a Draft<'_>, message: &'a Message, step: &'a Step) -> impl Iterator<Item = String> + 'a {
    let tools = sent(message, step).filter_map(|(block, _)| match block {
        Block::ToolCall(tool) => Some(tool),
        Block::Text(_) | Block::Thinking(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => None,
    });
    tools.enumerate().map(move |(at, tool)| call(draft, tool, step, dummy_seal(draft).filter(|_| at == 0)))
}

/// The documented stand-in for a seal on a call, as members of the call.
fn dummy_seal(draft: &Draft<'_>) -> Option<String> {
    let path = draft.rules.read.call_extra.first()?;
    let nest = |inner: String, name: &str| format!("{{{}:{inner}}}", quote(name));
    draft.dummy_seal().map(|dummy| path.rsplit('.').fold(quote(dummy), nest))
}

fn call(draft: &Draft<'_>, tool: &ToolCall, step: &Step, dummy: Option<String>) -> String {
    let ToolCall { id, name, arguments, native, .. } = tool;
    let mut out = ObjectWriter::default();
    out.push("id", &draft.call_id(id.as_str(), step));
    out.push("type", "\"function\"");
    let mut function = ObjectWriter::default();
    function.push_text("name", name);
    function.push_text("arguments", arguments_text(arguments));
    out.push_raw("function", &function.finish());
    // Members that only their maker knows, seals among them.
    let own = native.as_ref().filter(|_| step.seals).map(|native| native.json.clone());
    if let Some(members) = own.or(dummy) {
        out.push_members(&compact(&members));
    }
    out.finish()
}
