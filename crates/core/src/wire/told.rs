//! A reply as the events that would have built it.

use crate::block::{Block, CallId, Content, Native, Reply, Seal, Seals, Thinking};
use crate::event::{BlockId, Event, Opening, Sink, Usage};

/// Tells a whole reply. What is known of a block is told before its text, so
/// that a writer can put it where it belongs.
pub fn tell_reply(reply: &Reply, sink: &mut dyn Sink) {
    if let Some(model) = &reply.model {
        sink.take(Event::Started { model });
    }
    if let Some(field) = &reply.seen {
        sink.take(Event::Seen { field });
    }
    // Some protocols begin with their counters.
    if reply.usage != Usage::default() {
        sink.take(Event::Usage(reply.usage));
    }
    let mut block = BlockId(0);
    for told in &reply.blocks {
        if tell_block(told, block, sink) {
            block.0 += 1;
        }
    }
    for note in &reply.notes {
        sink.take(Event::Noted(note));
    }
    sink.take(Event::Ended(&reply.end));
}

/// Whether it was told: results and images are never part of a reply.
fn tell_block(told: &Block, block: BlockId, sink: &mut dyn Sink) -> bool {
    match told {
        Block::Text(text) => {
            sink.take(Event::Opened { block, opening: Opening::Text });
            tell_native(text.native.as_ref(), block, sink);
            tell_text(&text.text, block, sink);
            tell_seal(text.seal.as_ref(), block, sink);
        }
        Block::Thinking(thinking) => tell_thinking(thinking, block, sink),
        Block::ToolCall(call) => {
            let id = match &call.id {
                CallId::Given(id) => Some(id.as_str()),
                CallId::Invented(_) => None,
            };
            sink.take(Event::Opened { block, opening: Opening::ToolCall { id, name: &call.name } });
            tell_native(call.native.as_ref(), block, sink);
            tell_seal(call.seal.as_ref(), block, sink);
            tell_text(super::draft::arguments_text(&call.arguments), block, sink);
        }
        Block::Unmodelled(unmodelled) => {
            sink.take(Event::Opened { block, opening: Opening::Unmodelled });
            tell_native(Some(&unmodelled.native), block, sink);
        }
        Block::ToolResult(_) | Block::Image(_) => return false,
    }
    sink.take(Event::Closed { block });
    true
}

fn tell_thinking(thinking: &Thinking, block: BlockId, sink: &mut dyn Sink) {
    let opening = Opening::Thinking { source: &thinking.source, id: thinking.id.as_deref() };
    sink.take(Event::Opened { block, opening });
    tell_native(thinking.native.as_ref(), block, sink);
    if thinking.items.is_empty() {
        tell_text(thinking.text(), block, sink);
    }
    for (index, range) in (0..).zip(&thinking.items) {
        sink.take(Event::Item { block, index });
        tell_text(thinking.text().get(range.clone()).unwrap_or(""), block, sink);
    }
    match &thinking.content {
        Content::Open { .. } => (),
        Content::Sealed { seals: Seals { signature, encrypted }, .. }
        | Content::Hidden { seals: Seals { signature, encrypted } } => {
            tell_seal(signature.as_ref(), block, sink);
            tell_seal(encrypted.as_ref(), block, sink);
        }
    }
}

fn tell_native(native: Option<&Native>, block: BlockId, sink: &mut dyn Sink) {
    if let Some(Native { json, text_member }) = native {
        sink.take(Event::Kept { block, json, text_member: text_member.as_deref() });
    }
}

fn tell_text(text: &str, block: BlockId, sink: &mut dyn Sink) {
    if !text.is_empty() {
        sink.take(Event::Grew { block, text });
    }
}

fn tell_seal(seal: Option<&Seal>, block: BlockId, sink: &mut dyn Sink) {
    if let Some(Seal { kind, payload }) = seal {
        sink.take(Event::Sealed { block, kind: *kind, payload });
    }
}
