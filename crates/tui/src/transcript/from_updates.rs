//! Turns engine updates into transcript items.

use std::sync::Arc;

use aside_core::block::{Block, ThinkingSpan, ToolCall, ToolResult};
use aside_core::event::{BlockId, Ending, ProseKind, ReplyEnd};
use aside_core::message::{Message, Role};
use aside_core::turn::{TurnEnd, TurnNotice};
use aside_front::wording::{self, HintStyle, Severity};

use super::item::TranscriptItem;
use super::thinking::ThinkingBlock;
use super::tool::ToolBlock;
use super::{BlockPosition, Transcript};
use crate::text::{LazyText, SharedText, TextRole};
use aside_front::{OpenedBlock, SENT_CALL_PREFIX, Sending, USER_CALL_PREFIX};

/// Who made a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedCall {
    OfModel,
    OfUser,
}

/// Shown where the user asked for the answer instead of more thinking.
pub(super) const ANSWER_NOW_NOTICE: &str = "asked for the answer now";

impl Transcript {
    /// Shows a prompt before the engine has recorded it.
    pub fn push_prompt(&mut self, text: &str) {
        self.begin_turn();
        self.push(TranscriptItem::user(text));
        self.unrecorded_prompts += 1;
    }

    /// Whether a prompt on the screen is not recorded yet.
    pub(crate) fn awaits_recording(&self) -> bool {
        self.unrecorded_prompts > 0
    }

    /// The last prompt was not sent, so it will not be recorded.
    pub fn not_sent(&mut self) {
        self.unrecorded_prompts = self.unrecorded_prompts.saturating_sub(1);
    }

    pub(super) fn begin_turn(&mut self) {
        self.turn_start = self.items.len();
        self.calls.clear();
    }

    pub fn sending(&mut self, sending: &Sending) {
        // Block ids start over in each reply.
        self.blocks.clear();
        self.reply_start = self.items.len();
        // A note that held for the request before is not repeated in every step.
        let before = std::mem::replace(&mut self.request_notes, sending.notes.clone());
        for note in sending.notes.iter().filter(|note| !before.contains(note)) {
            self.push(TranscriptItem::notice(TextRole::Muted, note));
        }
    }

    pub fn opened(&mut self, block: BlockId, opening: &OpenedBlock) {
        let item = match opening {
            OpenedBlock::Text => TranscriptItem::Text(LazyText::default()),
            OpenedBlock::Thinking => TranscriptItem::Thinking(Box::new(ThinkingBlock::begin(self.now))),
            OpenedBlock::ToolCall { name } => TranscriptItem::Tool(Box::new(ToolBlock::begin(name))),
            // Shown once it is complete.
            OpenedBlock::Unmodelled => return,
        };
        if let (TranscriptItem::Text(_), Some(place)) = (&item, self.preceding_text()) {
            self.blocks.insert(block, place);
            return;
        }
        self.blocks.insert(block, BlockPosition { item: self.items.len(), from: 0 });
        self.push(item);
    }

    /// The end of the text item that the reply has just written, if any.
    pub(super) fn preceding_text(&self) -> Option<BlockPosition> {
        let item = self.items.len().checked_sub(1).filter(|last| *last >= self.reply_start)?;
        match self.items.get(item) {
            Some(TranscriptItem::Text(text)) => Some(BlockPosition { item, from: text.len() }),
            Some(
                TranscriptItem::User(_)
                | TranscriptItem::Thinking(_)
                | TranscriptItem::Tool(_)
                | TranscriptItem::Notice(_)
                | TranscriptItem::Output(_),
            )
            | None => None,
        }
    }

    fn item_of(&mut self, block: BlockId) -> Option<&mut TranscriptItem> {
        let place = *self.blocks.get(&block)?;
        self.items.get_mut(place.item)
    }

    pub fn item(&mut self, block: BlockId) {
        if let Some(TranscriptItem::Thinking(thinking)) = self.item_of(block) {
            thinking.item();
        }
    }

    pub fn grew(&mut self, block: BlockId, text: &str) {
        match self.item_of(block) {
            Some(TranscriptItem::Text(doc)) => doc.push(text),
            Some(TranscriptItem::Thinking(thinking)) => thinking.push(text),
            Some(TranscriptItem::Tool(tool)) => tool.push(text),
            Some(TranscriptItem::User(_) | TranscriptItem::Notice(_) | TranscriptItem::Output(_)) | None => (),
        }
    }

    /// Text turned out to be thinking, or the other way round.
    pub fn refiled(&mut self, block: BlockId, to: ProseKind) {
        let now = self.now;
        let Some(BlockPosition { item: index, from }) = self.blocks.get(&block).copied() else { return };
        let Some(item) = self.items.get_mut(index) else { return };
        match (&*item, to) {
            (TranscriptItem::Text(doc), ProseKind::Thinking) => {
                // Only this block's part moves; the text before it stays.
                let source = doc.source();
                let (before, own) = source.split_at_checked(from).unwrap_or((&source, ""));
                let (before, own) = (before.to_owned(), own.to_owned());
                let mut thinking = ThinkingBlock::begin(now);
                thinking.push(&own);
                let thinking = TranscriptItem::Thinking(Box::new(thinking));
                if before.is_empty() {
                    *item = thinking;
                } else {
                    *item = TranscriptItem::Text(LazyText::new(&before));
                    self.blocks.insert(block, BlockPosition { item: self.items.len(), from: 0 });
                    self.push(thinking);
                }
            }
            (TranscriptItem::Thinking(thinking), ProseKind::Text) => {
                *item = TranscriptItem::Text(LazyText::new(&thinking.source()))
            }
            (TranscriptItem::Text(_), ProseKind::Text) | (TranscriptItem::Thinking(_), ProseKind::Thinking) => (),
            (
                TranscriptItem::User(_)
                | TranscriptItem::Tool(_)
                | TranscriptItem::Notice(_)
                | TranscriptItem::Output(_),
                _,
            ) => (),
        }
    }

    /// The block is complete, and its text was shown.
    pub fn closed_as_streamed(&mut self, block: BlockId, span: Option<ThinkingSpan>, sealed_bytes: usize) {
        match self.item_of(block) {
            Some(TranscriptItem::Text(doc)) => doc.finish(),
            Some(TranscriptItem::Thinking(thinking)) => thinking.close_as_streamed(span, sealed_bytes),
            Some(
                TranscriptItem::User(_)
                | TranscriptItem::Tool(_)
                | TranscriptItem::Notice(_)
                | TranscriptItem::Output(_),
            )
            | None => (),
        }
    }

    pub fn closed(&mut self, block: BlockId, value: &Block) {
        let Some(BlockPosition { item: index, from }) = self.blocks.get(&block).copied() else {
            self.push_block(value);
            return;
        };
        let calls = &mut self.calls;
        let Some(item) = self.items.get_mut(index) else { return };
        match (&mut *item, value) {
            (TranscriptItem::Text(doc), Block::Text(text))
                if from == 0 && doc.equals(&aside_core::terminal_text::terminal_safe(&text.text)) =>
            {
                doc.finish();
            }
            (TranscriptItem::Text(doc), Block::Text(text)) => {
                let source = doc.source();
                let (before, own) = source.split_at_checked(from).unwrap_or((&source, ""));
                if own != aside_core::terminal_text::terminal_safe(&text.text) {
                    *doc = LazyText::new(&format!("{before}{}", text.text));
                }
                doc.finish();
            }
            (TranscriptItem::Thinking(shown), Block::Thinking(thinking)) => shown.close(thinking),
            (TranscriptItem::Tool(tool), Block::ToolCall(call)) => {
                tool.close(call);
                calls.insert(call.id.as_str().to_owned(), index);
            }
            // The final block is of another kind.
            (_, value) => {
                if let Some(made) = finished_item(value) {
                    *item = made;
                }
            }
        }
    }

    /// An empty block disappears.
    pub fn emptied(&mut self, block: BlockId) {
        let from = self.blocks.get(&block).map_or(0, |place| place.from);
        if let Some(item) = self.item_of(block) {
            let before = match item {
                TranscriptItem::Text(text) => text.source().get(..from).unwrap_or("").to_owned(),
                TranscriptItem::User(_)
                | TranscriptItem::Thinking(_)
                | TranscriptItem::Tool(_)
                | TranscriptItem::Notice(_)
                | TranscriptItem::Output(_) => String::new(),
            };
            *item = TranscriptItem::Text(LazyText::new(&before));
        }
    }

    /// Adds a finished block: from a history, or one that was never opened.
    pub(super) fn push_block(&mut self, block: &Block) {
        if let Block::ToolCall(call) = block {
            self.calls.insert(call.id.as_str().to_owned(), self.items.len());
        }
        if let Block::ToolResult(result) = block {
            self.tool_ended(result);
        } else if let (Block::Text(text), Some(BlockPosition { item, .. })) = (block, self.preceding_text()) {
            if let Some(TranscriptItem::Text(doc)) = self.items.get_mut(item) {
                doc.push(&text.text);
            }
        } else if let Some(item) = finished_item(block) {
            self.push(item);
        }
    }

    pub fn reply_ended(&mut self, end: &ReplyEnd) {
        let is_broken = end.ending == Ending::CutOff || end.error.is_some();
        self.end_running_thinking(is_broken);
    }

    /// Whether thinking in the running turn repeats itself.
    pub fn is_looping(&self) -> bool {
        let turn = self.items.iter().skip(self.turn_start);
        turn.rev().any(|item| matches!(item, TranscriptItem::Thinking(thinking) if thinking.is_looping()))
    }

    fn end_running_thinking(&mut self, interrupted: bool) {
        let now = self.now;
        for item in self.items.iter_mut().skip(self.turn_start) {
            if let TranscriptItem::Thinking(thinking) = item
                && thinking.is_running()
            {
                if interrupted { thinking.interrupt(now) } else { thinking.end() }
            }
        }
        // Thinking at the end of the reply was cut short, even if its block was closed.
        if interrupted && let Some(TranscriptItem::Thinking(thinking)) = self.last_block() {
            thinking.interrupt(now);
        }
    }

    /// The last item of the turn that is not a notice.
    pub(super) fn last_block(&mut self) -> Option<&mut TranscriptItem> {
        let items = self.items.iter_mut().skip(self.turn_start).rev();
        items.into_iter().find(|item| !matches!(item, TranscriptItem::Notice(_) | TranscriptItem::Output(_)))
    }

    /// A command line of the user's own is in no reply, so it is added.
    pub fn tool_started(&mut self, call: &ToolCall) -> StartedCall {
        let now = self.now;
        let id = call.id.as_str();
        if let Some(TranscriptItem::Tool(tool)) = self.calls.get(id).and_then(|index| self.items.get_mut(*index)) {
            tool.start(now);
            return StartedCall::OfModel;
        }
        if !id.starts_with(USER_CALL_PREFIX) {
            return StartedCall::OfModel;
        }
        let mut tool = ToolBlock::finished(call);
        tool.start(now);
        self.calls.insert(id.to_owned(), self.items.len());
        self.push(TranscriptItem::Tool(Box::new(tool)));
        StartedCall::OfUser
    }

    /// Shows that the user is asked about a call.
    pub fn tool_asked(&mut self, name: &str, subject: &str) {
        if let Some(tool) = self.begun_call(name, subject) {
            tool.ask();
        }
    }

    /// Starts the clock of the call that the question was about: the time the user took to answer does not count.
    pub fn tool_answered(&mut self, name: &str, subject: &str) {
        let now = self.now;
        if let Some(tool) = self.begun_call(name, subject) {
            tool.start(now);
        }
    }

    /// The call that a question is about. Parallel calls may use the same tool, so the subject decides.
    fn begun_call(&mut self, name: &str, subject: &str) -> Option<&mut ToolBlock> {
        let items = self.items.iter_mut().skip(self.turn_start);
        let mut begun: Vec<&mut ToolBlock> = items
            .filter_map(|item| match item {
                TranscriptItem::Tool(tool) if tool.is_begun(name) => Some(&mut **tool),
                TranscriptItem::Tool(_) | TranscriptItem::User(_) | TranscriptItem::Text(_) => None,
                TranscriptItem::Thinking(_) | TranscriptItem::Notice(_) | TranscriptItem::Output(_) => None,
            })
            .collect();
        let matching = begun.iter().position(|tool| tool.is_about(subject)).unwrap_or(0);
        (matching < begun.len()).then(|| begun.swap_remove(matching))
    }

    pub fn tool_output(&mut self, call: &str, tail: &str, n_lines: u64) {
        if let Some(TranscriptItem::Tool(tool)) = self.calls.get(call).and_then(|index| self.items.get_mut(*index)) {
            tool.set_live_output(tail, n_lines);
        }
    }

    pub fn tool_ended(&mut self, result: &ToolResult) {
        let now = self.now;
        match self.calls.get(&result.id).and_then(|index| self.items.get_mut(*index)) {
            Some(TranscriptItem::Tool(tool)) if !tool.has_output() => tool.finish(result, now),
            Some(_) => (),
            // A result without a known call is shown anyway.
            None => {
                let mut tool = ToolBlock::begin(&result.name);
                tool.finish(result, None);
                self.calls.insert(result.id.clone(), self.items.len());
                self.push(TranscriptItem::Tool(Box::new(tool)));
            }
        }
    }

    /// Shows a recorded message unless it was already shown live.
    pub fn recorded(&mut self, message: &Arc<Message>) {
        match message.role {
            Role::User if message.is_answer_now() => {
                self.push(TranscriptItem::notice(TextRole::Muted, ANSWER_NOW_NOTICE))
            }
            Role::User if self.unrecorded_prompts > 0 => self.unrecorded_prompts -= 1,
            Role::User => {
                self.remove_sent_command();
                self.begin_turn();
                self.push_user(message);
            }
            Role::Tool => message.blocks.iter().for_each(|block| self.push_block(block)),
            Role::Assistant => self.share_text(message),
            Role::System => (),
        }
    }

    /// Removes a command line of the user's own whose output is the message that follows.
    fn remove_sent_command(&mut self) {
        let last = self.items.len().wrapping_sub(1);
        let sent = self.calls.iter().find(|(id, at)| **at == last && id.starts_with(SENT_CALL_PREFIX));
        if let Some(id) = sent.map(|(id, _)| id.clone()) {
            self.calls.remove(&id);
            self.items.pop();
        }
    }

    /// Refers to the text of a recorded reply instead of keeping a copy.
    fn share_text(&mut self, message: &Arc<Message>) {
        let mut docs = self.items.iter_mut().skip(self.reply_start).filter_map(TranscriptItem::reply_text);
        for (block, _) in message.blocks.iter().enumerate() {
            let shared = SharedText::new(message, block);
            if shared.as_str().is_empty() {
                continue;
            }
            let Some(doc) = docs.next() else { return };
            doc.share(&shared);
        }
    }

    pub fn push_notice(&mut self, notice: &TurnNotice) {
        self.push(TranscriptItem::notice(TextRole::Warning, &notice_text(notice)));
    }

    pub fn turn_ended(&mut self, end: &TurnEnd) {
        let interrupted = match end {
            TurnEnd::Interrupted
            | TurnEnd::CutOff
            | TurnEnd::Oversized { .. }
            | TurnEnd::Failed(_)
            | TurnEnd::Unreachable(_) => true,
            TurnEnd::Answered
            | TurnEnd::ThinkingOnly { .. }
            | TurnEnd::Empty
            | TurnEnd::Length
            | TurnEnd::Declined(_)
            | TurnEnd::OutOfSteps(_)
            | TurnEnd::OutOfMoney { .. } => false,
        };
        self.end_running_thinking(interrupted);
        for item in self.items.iter_mut().skip(self.turn_start) {
            if let TranscriptItem::Tool(tool) = item {
                tool.settle();
            }
        }
        if let TurnEnd::ThinkingOnly { .. } = end {
            self.keep_last_thinking_open();
        }
        if let Some((role, text)) = turn_end_notice(end) {
            self.push(TranscriptItem::notice(role, &text));
        }
    }

    /// The user gets nothing else, so the thinking stays open.
    pub(super) fn keep_last_thinking_open(&mut self) {
        let last = self.items.iter_mut().skip(self.turn_start).rev().find_map(|item| match item {
            TranscriptItem::Thinking(thinking) => Some(thinking),
            TranscriptItem::User(_)
            | TranscriptItem::Text(_)
            | TranscriptItem::Tool(_)
            | TranscriptItem::Notice(_)
            | TranscriptItem::Output(_) => None,
        });
        if let Some(thinking) = last {
            thinking.keep_open_when_done();
        }
    }
}

/// A finished block as an item. A tool result belongs to its call instead.
fn finished_item(block: &Block) -> Option<TranscriptItem> {
    Some(match block {
        Block::Text(text) => TranscriptItem::Text(LazyText::new(&text.text)),
        Block::Thinking(thinking) => {
            let doc = LazyText::new(thinking.text());
            TranscriptItem::Thinking(Box::new(ThinkingBlock::restored(thinking, doc)))
        }
        Block::ToolCall(call) => TranscriptItem::Tool(Box::new(ToolBlock::finished(call))),
        Block::ToolResult(_) => return None,
        Block::Media(media) => TranscriptItem::notice(TextRole::Muted, &media.describe()),
        Block::Unmodelled(_) => {
            TranscriptItem::notice(TextRole::Muted, "the provider sent something aside does not know; it is kept")
        }
    })
}

pub(crate) fn notice_text(notice: &TurnNotice) -> String {
    let text = wording::turn_notice(notice);
    std::iter::once(text.what).chain(text.detail).collect::<Vec<_>>().join("\n")
}

/// The notice for the end of a turn.
pub(crate) fn turn_end_notice(end: &TurnEnd) -> Option<(TextRole, String)> {
    let notice = wording::turn_end(end, HintStyle::SlashCommands)?;
    let role = match notice.severity {
        Severity::Warning => TextRole::Warning,
        Severity::Error => TextRole::Error,
    };
    let hint = notice.hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    Some((role, notice.what + &hint))
}
