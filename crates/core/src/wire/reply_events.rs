//! Replays a complete reply as events.

use crate::block::{Block, CallId, Native, Reply, Seal, Seals, Thinking, ThinkingContent};
use crate::event::{BlockId, BlockOpening, Event, Sink, Usage};

/// Emits the events of a complete reply. A block's native item comes before its
/// text, so that a writer can use it from the start.
pub fn emit_reply(reply: &Reply, sink: &mut dyn Sink) {
    if let Some(model) = &reply.model {
        sink.take(Event::Started { model });
    }
    if let Some(field) = &reply.empty_thinking_field {
        sink.take(Event::EmptyThinkingField { field });
    }
    // Some protocols begin with the usage.
    if reply.usage != Usage::default() {
        sink.take(Event::Usage(reply.usage));
    }
    let mut block = BlockId(0);
    for content in &reply.blocks {
        if emit_block(content, block, sink) {
            block.0 += 1;
        }
    }
    for note in &reply.notes {
        sink.take(Event::Noted(note));
    }
    sink.take(Event::Ended(&reply.end));
}

/// Returns false for results and images, which are never part of a reply.
fn emit_block(content: &Block, block: BlockId, sink: &mut dyn Sink) -> bool {
    match content {
        Block::Text(text) => {
            sink.take(Event::Opened { block, opening: BlockOpening::Text });
            emit_native(text.native.as_ref(), block, sink);
            emit_text(&text.text, block, sink);
            emit_seal(text.seal.as_ref(), block, sink);
        }
        Block::Thinking(thinking) => emit_thinking(thinking, block, sink),
        Block::ToolCall(call) => {
            let id = match &call.id {
                CallId::Given(id) => Some(id.as_str()),
                CallId::Invented(_) => None,
            };
            sink.take(Event::Opened { block, opening: BlockOpening::ToolCall { id, name: &call.name } });
            emit_native(call.native.as_ref(), block, sink);
            emit_seal(call.seal.as_ref(), block, sink);
            emit_text(super::request_draft::arguments_text(&call.arguments), block, sink);
        }
        Block::Unmodelled(unmodelled) => {
            sink.take(Event::Opened { block, opening: BlockOpening::Unmodelled });
            emit_native(Some(&unmodelled.native), block, sink);
        }
        Block::ToolResult(_) | Block::Media(_) => return false,
    }
    sink.take(Event::Closed { block });
    true
}

fn emit_thinking(thinking: &Thinking, block: BlockId, sink: &mut dyn Sink) {
    let opening = BlockOpening::Thinking { source: &thinking.source, id: thinking.id.as_deref() };
    sink.take(Event::Opened { block, opening });
    emit_native(thinking.native.as_ref(), block, sink);
    if thinking.items.is_empty() {
        emit_text(thinking.text(), block, sink);
    }
    for (index, range) in (0..).zip(&thinking.items) {
        sink.take(Event::Item { block, index });
        emit_text(thinking.text().get(range.clone()).unwrap_or(""), block, sink);
    }
    match &thinking.content {
        ThinkingContent::Open { .. } => (),
        ThinkingContent::Sealed { seals: Seals { signature, encrypted }, .. }
        | ThinkingContent::Hidden { seals: Seals { signature, encrypted } } => {
            emit_seal(signature.as_ref(), block, sink);
            emit_seal(encrypted.as_ref(), block, sink);
        }
    }
}

fn emit_native(native: Option<&Native>, block: BlockId, sink: &mut dyn Sink) {
    if let Some(Native { json, text_member }) = native {
        sink.take(Event::NativeItem { block, json, text_member: text_member.as_deref() });
    }
}

fn emit_text(text: &str, block: BlockId, sink: &mut dyn Sink) {
    if !text.is_empty() {
        sink.take(Event::Grew { block, text });
    }
}

fn emit_seal(seal: Option<&Seal>, block: BlockId, sink: &mut dyn Sink) {
    if let Some(Seal { kind, payload }) = seal {
        sink.take(Event::Sealed { block, kind: *kind, payload });
    }
}
