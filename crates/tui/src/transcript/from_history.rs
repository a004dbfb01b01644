//! Turns a stored history into transcript items. Blocks become the same items as live ones, so that a restored session
//! looks the same.

use std::sync::Arc;

use aside_core::block::Block;
use aside_core::compaction::is_summary;
use aside_core::event::Ending;
use aside_core::message::{Message, Role};
use aside_core::turn::TurnEnd;
use aside_front::CommandOutput;
use aside_front::tool_call::CallState;

use super::from_updates::{ANSWER_NOW_NOTICE, turn_end_notice};
use super::item::TranscriptItem;
use super::thinking::ThinkingBlock;
use super::{ScrollPos, Transcript};
use crate::text::{LazyText, SharedText, TextRole};

impl Transcript {
    /// Replaces the transcript with a history.
    pub fn restore(&mut self, messages: &[Arc<Message>]) {
        self.items.clear();
        self.laid_out.clear();
        self.message_starts.clear();
        self.blocks.clear();
        self.calls.clear();
        self.request_notes.clear();
        (self.opened_by_find, self.found_at) = (None, None);
        (self.top, self.follow, self.focus, self.unrecorded_prompts) = (ScrollPos::default(), true, None, 0);
        self.hint_item = None;
        let nudges: Vec<bool> = messages.iter().map(|message| message.is_answer_now()).collect();
        let mut model_before = None;
        for (at, message) in messages.iter().enumerate() {
            let next = messages.get(at + 1);
            let end = message.turn_end().filter(|_| next.is_none_or(|next| next.begins_turn()));
            // Before the message, so that nothing precedes it where the user goes to it.
            self.push_changed_model(messages.get(at..).unwrap_or_default(), &mut model_before);
            self.message_starts.push(self.items.len());
            match message.role {
                Role::System => (),
                Role::User if message.is_answer_now() => {
                    self.push(TranscriptItem::notice(TextRole::Muted, ANSWER_NOW_NOTICE))
                }
                // The user did not write it.
                Role::User if is_summary(message) => self.push_output(&CommandOutput::Markdown(written_text(message))),
                Role::User => {
                    self.begin_turn();
                    self.push_user(message);
                }
                Role::Assistant => {
                    let shows_end = nudges.get(at + 1) != Some(&true) && end.is_none();
                    self.push_reply(message, shows_end);
                }
                Role::Tool => {
                    message.blocks.iter().for_each(|block| self.push_block(block));
                    if end.is_none() && was_stopped(message) && next.is_none_or(|next| next.begins_turn()) {
                        self.push(TranscriptItem::notice(TextRole::Warning, "interrupted"));
                    }
                }
            }
            if let Some((role, text)) = end.as_ref().and_then(turn_end_notice) {
                self.push(TranscriptItem::notice(role, &text));
            }
        }
        for item in &mut self.items {
            if let TranscriptItem::Tool(tool) = item {
                tool.settle();
            }
        }
        self.turn_start = self.items.len();
    }

    /// Says which model answers from here on, if it is another one. It was chosen before the prompt, so the line stands
    /// above that.
    fn push_changed_model(&mut self, from_here: &[Arc<Message>], before: &mut Option<String>) {
        let Some((first, rest)) = from_here.split_first() else { return };
        let model = match first.role {
            Role::User => rest.iter().take_while(|message| message.role != Role::User).find_map(|one| model_name(one)),
            Role::Assistant => model_name(first),
            Role::System | Role::Tool => None,
        };
        let Some(model) = model.filter(|model| before.as_ref() != Some(model)) else { return };
        let line = format!("model: {model}");
        if before.replace(model).is_some() {
            self.push_output(&CommandOutput::Line(line));
        }
    }

    pub(super) fn push_user(&mut self, message: &Message) {
        self.push(TranscriptItem::user(&written_text(message)));
    }

    /// A reply that was interrupted by answer-now continues in the next message, and does not show how it ended.
    fn push_reply(&mut self, message: &Arc<Message>, shows_end: bool) {
        self.reply_start = self.items.len();
        let only_thinking = !message.blocks.is_empty()
            && message.blocks.iter().all(|block| matches!(block, Block::Thinking(_)))
            && message
                .blocks
                .iter()
                .any(|block| matches!(block, Block::Thinking(one) if !one.text().trim().is_empty()));
        for (at, block) in message.blocks.iter().enumerate() {
            let shared = || LazyText::shared(SharedText::new(message, at));
            match block {
                Block::Thinking(thinking) => {
                    self.push(TranscriptItem::Thinking(Box::new(ThinkingBlock::restored(thinking, shared()))));
                }
                Block::Text(_) if self.preceding_text().is_none() => self.push(TranscriptItem::Text(shared())),
                Block::Text(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => {
                    self.push_block(block)
                }
            }
        }
        if message.interrupted
            && let Some(TranscriptItem::Thinking(thinking)) = self.last_block()
        {
            thinking.interrupt(None);
        }
        if !shows_end {
            return;
        }
        if message.interrupted {
            self.push(TranscriptItem::notice(TextRole::Warning, "interrupted"));
        } else if only_thinking {
            self.keep_last_thinking_open();
            let for_length = message.ending == Some(Ending::Length);
            if let Some((role, text)) = turn_end_notice(&TurnEnd::ThinkingOnly { for_length }) {
                self.push(TranscriptItem::notice(role, &text));
            }
        }
    }
}

/// The model that wrote a message, as the user names it.
fn model_name(message: &Message) -> Option<String> {
    let origin = message.origin.as_ref().filter(|_| message.role == Role::Assistant)?;
    let model = origin.model.as_deref()?;
    Some(match &origin.provider {
        Some(provider) => format!("{provider}/{model}"),
        None => model.to_owned(),
    })
}

/// The text of a prompt, with a line for each attachment.
fn written_text(message: &Message) -> String {
    let parts = message.blocks.iter().map(|block| match block {
        Block::Text(text) => text.text.clone(),
        Block::Media(media) => media.describe(),
        Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Unmodelled(_) => {
            "[something else]".to_owned()
        }
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// Whether the user stopped these calls, and with them the turn.
fn was_stopped(results: &Message) -> bool {
    results.blocks.iter().any(|block| match block {
        Block::ToolResult(result) => {
            let state = CallState::of_result(result.is_error, &result.content);
            matches!(state, CallState::Stopped | CallState::NotRun)
        }
        Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Media(_) | Block::Unmodelled(_) => false,
    })
}
