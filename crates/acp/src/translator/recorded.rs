//! Sends what was not sent while a message streamed: all of it if it comes from the store.

use std::collections::HashMap;

use aside_core::block::{Block, Thinking, ThinkingContent};
use aside_core::json::rfc3339;
use aside_core::message::{Message, Role};
use aside_core::tokens::estimate;

use super::{SentText, StreamedBlock, Translator};
use crate::growth::{ChunkKind, ChunkTarget};
use crate::session_update::{AsideMeta, Chunk, Cost, SessionUpdate, ThoughtState};
use crate::tool_calls;

impl Translator {
    /// Sends what was not sent while the message streamed: all of it if it comes from the store.
    pub(super) fn recorded(&mut self, message: &Message, out: &mut Vec<SessionUpdate>) {
        match message.role {
            Role::Assistant => self.recorded_reply(message, out),
            Role::Tool => {
                for block in &message.blocks {
                    if let Block::ToolResult(result) = block {
                        self.end_call(result, out);
                    }
                }
            }
            Role::User | Role::System => (),
        }
    }

    fn recorded_reply(&mut self, message: &Message, out: &mut Vec<SessionUpdate>) {
        self.growth.flush(out);
        self.calls.clear();
        let mut streamed: HashMap<usize, StreamedBlock> =
            self.blocks.drain(..).filter_map(|block| Some((block.index?, block))).collect();
        for (index, block) in message.blocks.iter().enumerate() {
            let streamed = streamed.remove(&index);
            self.send_missing(index, block, streamed, out);
        }
        self.growth.flush(out);
        for (index, block) in message.blocks.iter().enumerate() {
            match block {
                Block::Thinking(thinking) => self.thought_facts(index, thinking, message, out),
                Block::ToolCall(call) => {
                    let id = self.message_id(index);
                    let fields = tool_calls::with_arguments(id.clone(), call, &self.folder);
                    out.push(SessionUpdate::ToolCallUpdate(fields));
                    self.calls.insert(call.id.as_str().to_owned(), (id, call.clone()));
                }
                Block::Text(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
            }
        }
        self.usage(message, out);
    }

    /// Sends what was not sent of a block.
    fn send_missing(
        &mut self,
        index: usize,
        block: &Block,
        streamed: Option<StreamedBlock>,
        out: &mut Vec<SessionUpdate>,
    ) {
        let target = |kind, message_id| ChunkTarget { kind, message_id, block: index, item: None };
        let message_id = self.message_id(index);
        let sent = streamed.as_ref().map(|block| block.sent.clone()).unwrap_or_default();
        match block {
            Block::Text(text) => {
                let target = target(ChunkKind::Answer, message_id);
                self.send_rest(target, &text.text, &sent, out);
            }
            Block::Thinking(thinking) if thinking.text().is_empty() => {
                if sent.bytes == 0 {
                    self.hidden_thought(index, out);
                }
            }
            Block::Thinking(thinking) if sent.bytes == 0 && !thinking.items.is_empty() => {
                self.send_items(index, thinking, &message_id, out);
            }
            Block::Thinking(thinking) => {
                let target = target(ChunkKind::Thought(ThoughtState::Open), message_id);
                self.send_rest(target, thinking.text(), &sent, out);
            }
            Block::ToolCall(call) => {
                if streamed.is_none() {
                    self.growth.flush(out);
                    self.begin_call(message_id, &call.name, out);
                }
            }
            Block::Media(media) => {
                self.growth.flush(out);
                self.last_thought = None;
                let content = tool_calls::media_content(media);
                out.push(SessionUpdate::AgentMessageChunk(Chunk { content, message_id, meta: None }));
            }
            Block::Unmodelled(item) => {
                if sent.bytes == 0 {
                    self.item(message_id, item, out);
                }
            }
            // Results are in messages of their own.
            Block::ToolResult(_) => (),
        }
    }

    fn send_rest(&mut self, target: ChunkTarget, whole: &str, sent: &SentText, out: &mut Vec<SessionUpdate>) {
        match sent.rest_of(whole) {
            Some("") => (),
            Some(rest) => self.write(&target, rest, None, out),
            None => {
                // The provider corrected itself, or the kind of the block changed. One id never names both versions.
                let message_id = format!("{}:corrected", target.message_id);
                self.write(&ChunkTarget { message_id, ..target }, whole, None, out);
            }
        }
    }

    fn send_items(&mut self, index: usize, thinking: &Thinking, message_id: &str, out: &mut Vec<SessionUpdate>) {
        let (text, mut from) = (thinking.text(), 0);
        let last = thinking.items.len().saturating_sub(1);
        for (item, range) in thinking.items.iter().enumerate() {
            // What stands between two items belongs to the first.
            let to = if item == last {
                text.len()
            } else {
                thinking.items.get(item + 1).map_or(range.end, |next| next.start)
            };
            let kind = ChunkKind::Thought(ThoughtState::Open);
            let target =
                ChunkTarget { kind, message_id: message_id.to_owned(), block: index, item: u32::try_from(item).ok() };
            self.write(&target, text.get(from..to).unwrap_or_default(), None, out);
            from = to;
        }
    }

    /// What is known about a thought only when it is recorded.
    fn thought_facts(&mut self, index: usize, thinking: &Thinking, message: &Message, out: &mut Vec<SessionUpdate>) {
        let state = match &thinking.content {
            ThinkingContent::Hidden { .. } => ThoughtState::Hidden,
            ThinkingContent::Sealed { text, .. } if text.is_empty() => ThoughtState::Hidden,
            ThinkingContent::Sealed { .. } => ThoughtState::Sealed,
            ThinkingContent::Open { .. } => ThoughtState::Open,
        };
        let is_only_one = message.thinking().count() == 1;
        let counted = message.usage.and_then(|usage| usage.reasoning).filter(|_| is_only_one);
        let estimated = (!thinking.text().is_empty()).then(|| estimate(thinking.text()));
        let tokens = counted.or(estimated);
        let meta = AsideMeta {
            message_id: Some(self.message_id(index)),
            block: Some(index),
            state: Some(state),
            source: Some(thinking.source.clone()).filter(|source| !source.is_empty()),
            started_at: thinking.span.map(|span| rfc3339(span.started)),
            ended_at: thinking.span.map(|span| rfc3339(span.ended)),
            tokens,
            estimated: tokens.map(|_| counted.is_none()),
            ..AsideMeta::default()
        };
        out.push(SessionUpdate::SessionInfoUpdate { title: None, meta: meta.meta() });
    }

    fn usage(&mut self, message: &Message, out: &mut Vec<SessionUpdate>) {
        let input = message.usage.and_then(|usage| Some((usage.input?, usage.output.unwrap_or(0))));
        let (Some((input, output)), Some(size)) = (input, self.limit) else { return };
        let cost = self.cost.map(|cost| Cost { amount: cost.microdollars as f64 / 1e6, currency: "USD" });
        out.push(SessionUpdate::UsageUpdate { used: input.saturating_add(output), size, cost });
    }
}
