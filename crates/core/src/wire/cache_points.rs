//! Cache points: up to where a provider should store a request. Anthropic marks the
//! block before the point, and Bedrock has an element of its own for it.

use crate::block::Block;
use crate::conversation::ToolSpec;
use crate::json_text::{JsonKind, NestedObject, Raw, member, text_member};
use crate::message::{Message, Role};
use crate::parameters::{CacheHint, CachePosition};
use crate::protocol::Protocol;
use crate::rules::{CacheMark, EgressAction, LeftOut, LeftOutReason, MessagePlan};

use super::client_request::elements;

/// The member that marks a block.
pub(super) const CACHE_CONTROL: &str = "cache_control";

/// Puts the hints into the plans of their messages. Returns the one after the
/// tools, and where all of them are.
pub(super) fn place_hints<'h>(
    hints: &'h [CacheHint],
    protocol: Protocol,
    messages: &[&Message],
    plans: &mut [MessagePlan],
    tools: &[ToolSpec],
    left_out: &mut Vec<LeftOut>,
) -> (Option<&'h CacheHint>, Vec<CachePosition>) {
    let (mut after_tools, mut points) = (None, Vec::new());
    for (at, hint) in hints.iter().enumerate() {
        let placed = match protocol {
            Protocol::Anthropic | Protocol::Bedrock => match hint.after {
                CachePosition::Tools if tools.is_empty() => Err(LeftOutReason::NoTools),
                CachePosition::Tools => {
                    after_tools = Some(hint);
                    Ok(())
                }
                CachePosition::System => place(last_system_block(messages), hint, messages, plans),
                CachePosition::Block { message, block } => place(Some((message, block)), hint, messages, plans),
            },
            Protocol::OpenaiChat
            | Protocol::OpenaiResponses
            | Protocol::Gemini
            | Protocol::Ollama
            | Protocol::Cohere => Err(LeftOutReason::NoParameter { protocol }),
        };
        match placed {
            Ok(()) => points.push(hint.after),
            Err(reason) => left_out.push(LeftOut::new(format!("cache_hints[{at}]"), reason)),
        }
    }
    (after_tools, points)
}

/// Marks a block that is sent and may be marked.
fn place(
    position: Option<(usize, usize)>,
    hint: &CacheHint,
    messages: &[&Message],
    plans: &mut [MessagePlan],
) -> Result<(), LeftOutReason> {
    let Some((message, block)) = position else { return Err(LeftOutReason::NoBlock) };
    let can_be_marked = match messages.get(message).and_then(|message| message.blocks.get(block)) {
        Some(Block::Text(text)) => !text.text.trim().is_empty(),
        Some(Block::Thinking(_)) | None => false,
        Some(Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_)) => true,
    };
    let plan = plans.get_mut(message).filter(|_| can_be_marked);
    let sent = |plan: &&mut MessagePlan| plan.actions.get(block).is_some_and(|action| *action != EgressAction::Dropped);
    let plan = plan.filter(sent).ok_or(LeftOutReason::NoBlock)?;
    plan.cache_marks.push(CacheMark { block, ttl: hint.ttl.clone() });
    Ok(())
}

fn last_system_block(messages: &[&Message]) -> Option<(usize, usize)> {
    let at = messages.iter().take_while(|message| message.role == Role::System).count().checked_sub(1)?;
    let is_text = |block: &Block| matches!(block, Block::Text(text) if !text.text.trim().is_empty());
    Some((at, messages.get(at)?.blocks.iter().rposition(is_text)?))
}

/// `"cache_control":{…}`, to be added to a block.
pub(super) fn cache_control(ttl: Option<&str>) -> String {
    let mut out = String::new();
    crate::json_text::object_into(&mut out, |object| push_kind(object, "ephemeral", ttl));
    format!("\"{CACHE_CONTROL}\":{out}")
}

/// `{"cachePoint":{…}}`, an element of its own.
pub(super) fn cache_point(ttl: Option<&str>) -> String {
    let mut out = String::new();
    crate::json_text::object_into(&mut out, |object| {
        object.object("cachePoint", |point| push_kind(point, "default", ttl));
    });
    out
}

fn push_kind(out: &mut NestedObject<'_>, kind: &str, ttl: Option<&str>) {
    out.push_text("type", kind);
    if let Some(ttl) = ttl {
        out.push_text("ttl", ttl);
    }
}

/// The marked elements of a content list.
pub(super) fn marked_elements(content: Option<Raw<'_>>) -> Vec<CacheMark> {
    let list = content.filter(|content| content.kind() == JsonKind::Array);
    let mark = |(block, element): (usize, Raw<'_>)| {
        Some(CacheMark { block, ttl: text_member(member(element, CACHE_CONTROL)?, "ttl") })
    };
    list.map(elements).unwrap_or_default().into_iter().enumerate().filter_map(mark).collect()
}

/// The elements of a content list without cache points, and the elements that come
/// right before one.
pub(super) fn without_cache_points(content: Option<Raw<'_>>) -> (Vec<Raw<'_>>, Vec<CacheMark>) {
    let list = content.filter(|content| content.kind() == JsonKind::Array);
    let (mut kept, mut marks) = (Vec::new(), Vec::new());
    for element in list.map(elements).unwrap_or_default() {
        match (member(element, "cachePoint"), kept.len().checked_sub(1)) {
            (Some(point), Some(block)) => marks.push(CacheMark { block, ttl: text_member(point, "ttl") }),
            (Some(_), None) | (None, _) => kept.push(element),
        }
    }
    (kept, marks)
}
