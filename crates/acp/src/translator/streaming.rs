//! Sends the blocks of a reply while they grow.

use std::time::Instant;

use aside_core::block::Unmodelled;
use aside_core::event::{BlockId, ProseKind};
use aside_front::OpenedBlock;

use super::{BlockKind, HIDDEN_THOUGHT, SentText, StreamedBlock, Translator, position};
use crate::growth::{ChunkKind, ChunkTarget};
use crate::session_update::{NoticeSeverity, SessionUpdate, ThoughtState, ToolCallFields, ToolKind, ToolStatus};
use crate::tool_calls;

impl Translator {
    pub(super) fn open(&mut self, block: BlockId, opening: &OpenedBlock, out: &mut Vec<SessionUpdate>) {
        if position(block) != self.blocks.len() {
            // A new reply whose request was not announced.
            self.blocks.clear();
        }
        let kind = match opening {
            OpenedBlock::Text => BlockKind::Text,
            OpenedBlock::Thinking => BlockKind::Thinking,
            OpenedBlock::ToolCall { .. } => BlockKind::ToolCall,
            OpenedBlock::Unmodelled => BlockKind::Unmodelled,
        };
        let index = self.blocks.iter().filter(|block| block.index.is_some()).count();
        self.blocks.push(StreamedBlock { kind, index: Some(index), sent: SentText::default(), items: 0 });
        if let OpenedBlock::ToolCall { name } = opening {
            let tool_call_id = self.message_id(index);
            self.begin_call(tool_call_id, name, out);
        }
    }

    pub(super) fn begin_call(&mut self, tool_call_id: String, name: &str, out: &mut Vec<SessionUpdate>) {
        self.last_thought = None;
        out.push(SessionUpdate::ToolCall(ToolCallFields {
            tool_call_id,
            title: Some(name.to_owned()),
            name: Some(name.to_owned()),
            kind: Some(tool_calls::kind(name)),
            status: Some(ToolStatus::Pending),
            ..ToolCallFields::default()
        }));
    }

    /// Each item of a summary but the first begins after a blank line.
    pub(super) fn begin_item(&mut self, block: BlockId, now: Instant, out: &mut Vec<SessionUpdate>) {
        if self.blocks.get(position(block)).is_some_and(|block| block.sent.bytes > 0) {
            self.grow(block, "\n\n", Some(now), out);
            self.growth.flush(out);
        }
        if let Some(block) = self.blocks.get_mut(position(block)) {
            block.items += 1;
        }
    }

    pub(super) fn grow(&mut self, block: BlockId, text: &str, now: Option<Instant>, out: &mut Vec<SessionUpdate>) {
        let Some(streamed) = self.blocks.get_mut(position(block)) else { return };
        let (Some(index), false) = (streamed.index, text.is_empty()) else { return };
        let kind = match streamed.kind {
            BlockKind::Text => ChunkKind::Answer,
            BlockKind::Thinking => ChunkKind::Thought(ThoughtState::Open),
            BlockKind::ToolCall | BlockKind::Unmodelled => return,
        };
        if streamed.sent.was_refiled {
            // It is sent again as a whole.
            return;
        }
        streamed.sent.push(text);
        let item = streamed.items.checked_sub(1);
        let target = ChunkTarget { kind, message_id: self.message_id(index), block: index, item };
        self.write(&target, text, now, out);
    }

    pub(super) fn write(
        &mut self,
        target: &ChunkTarget,
        text: &str,
        now: Option<Instant>,
        out: &mut Vec<SessionUpdate>,
    ) {
        match target.kind {
            ChunkKind::Thought(_) => {
                let before = self.last_thought.replace(target.clone());
                // A client that joins all thoughts would otherwise run two into each other.
                if let Some(before) = before.filter(|before| before.message_id != target.message_id) {
                    self.growth.push(&before, "\n\n", now, out);
                    self.growth.flush(out);
                }
            }
            ChunkKind::User | ChunkKind::Answer => self.last_thought = None,
        }
        self.growth.push(target, text, now, out);
    }

    /// Text turned out to be thinking, or the other way round. What was sent cannot be taken back, so the block is
    /// sent again when it is recorded.
    pub(super) fn refile(&mut self, block: BlockId, to: ProseKind, now: Instant, out: &mut Vec<SessionUpdate>) {
        let Some(index) = self.blocks.get(position(block)).and_then(|block| block.index) else { return };
        let message_id = self.message_id(index);
        let held = self.growth.take_back(&message_id);
        let Some(streamed) = self.blocks.get_mut(position(block)) else { return };
        streamed.kind = match to {
            ProseKind::Text => BlockKind::Text,
            ProseKind::Thinking => BlockKind::Thinking,
        };
        match held {
            Some(held) if held.len() == streamed.sent.bytes => {
                streamed.sent = SentText::default();
                self.grow(block, &held, Some(now), out);
            }
            Some(_) | None if streamed.sent.bytes > 0 => {
                streamed.sent.was_refiled = true;
                let what = match to {
                    ProseKind::Text => "what looked like a thought is the answer; it follows as a whole",
                    ProseKind::Thinking => "what looked like the answer is a thought; it follows as a whole",
                };
                self.notice(NoticeSeverity::Warning, what, None, out);
            }
            Some(_) | None => (),
        }
    }

    /// A thought that ended without text is hidden.
    pub(super) fn close_hidden(&mut self, block: BlockId, out: &mut Vec<SessionUpdate>) {
        let streamed = self.blocks.get(position(block));
        let hidden = streamed.filter(|block| block.kind == BlockKind::Thinking && block.sent.bytes == 0);
        if let Some(index) = hidden.and_then(|block| block.index) {
            self.hidden_thought(index, out);
            if let Some(streamed) = self.blocks.get_mut(position(block)) {
                streamed.sent.push(HIDDEN_THOUGHT);
            }
        }
    }

    /// An item that only the provider understands is shown as a tool call that ended.
    pub(super) fn item(&mut self, tool_call_id: String, item: &Unmodelled, out: &mut Vec<SessionUpdate>) {
        self.growth.flush(out);
        self.last_thought = None;
        out.push(SessionUpdate::ToolCall(ToolCallFields {
            tool_call_id,
            title: Some("item of the provider".to_owned()),
            kind: Some(ToolKind::Other),
            status: Some(ToolStatus::Completed),
            raw_output: serde_json::from_str(&item.native.json).ok(),
            ..ToolCallFields::default()
        }));
    }

    pub(super) fn close_item(&mut self, block: BlockId, item: &Unmodelled, out: &mut Vec<SessionUpdate>) {
        let unsent = self.blocks.get_mut(position(block)).filter(|streamed| streamed.sent.bytes == 0);
        let Some((index, streamed)) = unsent.and_then(|streamed| Some((streamed.index?, streamed))) else { return };
        streamed.sent.push(&item.native.json);
        let id = self.message_id(index);
        self.item(id, item, out);
    }

    pub(super) fn hidden_thought(&mut self, index: usize, out: &mut Vec<SessionUpdate>) {
        let kind = ChunkKind::Thought(ThoughtState::Hidden);
        let target = ChunkTarget { kind, message_id: self.message_id(index), block: index, item: None };
        self.write(&target, HIDDEN_THOUGHT, None, out);
        self.growth.flush(out);
    }
}
