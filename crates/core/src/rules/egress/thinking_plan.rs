//! Decides about the thinking of messages that do not have it yet.

use super::message_context::{CallPairs, MessageContext};
use super::{EgressAction, EgressTarget};
use crate::block::Block;
use crate::dialect::{Carrier, Duty};
use crate::history::TurnStatus;
use crate::message::Message;
use crate::rules::request_preferences::RequestPreferences;

/// Decides about the thinking of single messages, before a request has it.
pub(crate) struct ThinkingPlan<'a> {
    target: EgressTarget<'a>,
    preferences: &'a RequestPreferences,
    call_pairs: CallPairs<'a>,
}

impl<'a> ThinkingPlan<'a> {
    pub(crate) fn new(target: EgressTarget<'a>, preferences: &'a RequestPreferences) -> ThinkingPlan<'a> {
        ThinkingPlan { target, preferences, call_pairs: CallPairs::of(&[], target.origin) }
    }

    fn context(&self, status: TurnStatus) -> MessageContext<'_> {
        // A message that gets its thinking back may become the last one with
        // thinking.
        let in_last_thinking_turn = true;
        let ThinkingPlan { target, preferences, call_pairs } = self;
        MessageContext { target: *target, preferences, call_pairs, status, in_last_thinking_turn }
    }

    /// What the provider says about the thinking of a message of its own. None if
    /// a setting withholds it.
    pub(crate) fn duty(&self, status: TurnStatus) -> Option<Duty> {
        let context = self.context(status);
        context.withheld_reason().is_none().then(|| context.duty().0)
    }

    /// Whether any thinking of a message is sent, be it only a seal on its text or
    /// its first call.
    pub(crate) fn sends_any(&self, message: &Message, status: TurnStatus) -> bool {
        let context = self.context(status);
        let seals = context.withheld_reason().is_none()
            && self.preferences.seals
            && context.foreign_origin(message, true).is_none();
        let mut calls = message.blocks.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            Block::Text(_) | Block::Thinking(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => None,
        });
        let sealed_visible = match calls.next() {
            Some(first) => first.seal.is_some(),
            None => message.blocks.iter().any(|block| matches!(block, Block::Text(text) if text.seal.is_some())),
        };
        let thinking = message.thinking().any(|thinking| context.decide(message, thinking).0 != EgressAction::Dropped);
        match self.target.rules.echo.carrier {
            Carrier::Part | Carrier::CallExtra => (seals && sealed_visible) || (thinking && !message.has_calls()),
            Carrier::None
            | Carrier::Field
            | Carrier::FieldsOpaque
            | Carrier::Details
            | Carrier::Block
            | Carrier::Item
            | Carrier::ContentTags
            | Carrier::ContentChunks => thinking,
        }
    }

    /// Whether a message comes from a provider whose thinking may be sent.
    pub(crate) fn is_own(&self, message: &Message, status: TurnStatus) -> bool {
        self.context(status).foreign_origin(message, true).is_none()
    }
}
