//! What a provider wants of the thinking of each message, for programs that get
//! histories without it.

use super::encode::{Request, RequestRules};
use crate::block::Block;
use crate::dialect::{Carrier, Duty};
use crate::history::{TurnStatus, Turns};
use crate::message::{Message, Role};
use crate::rules::{EgressTarget, ThinkingPlan};

/// What a provider wants of the thinking of one assistant message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingDemand {
    /// The provider refuses the request without it.
    Required,
    /// The provider uses it.
    Useful,
    /// It would not be sent.
    Unwanted,
}

/// The demands of a request's target, by the rules of the encoder.
#[derive(Debug)]
pub struct ThinkingDemands<'a> {
    request: Request<'a>,
    rules: RequestRules<'a>,
    status_of: Vec<TurnStatus>,
}

impl std::fmt::Debug for RequestRules<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestRules").field("target", &self.target).finish_non_exhaustive()
    }
}

impl<'a> ThinkingDemands<'a> {
    /// The demands on the messages of a request.
    pub fn of(request: &Request<'a>) -> ThinkingDemands<'a> {
        let status_of = Turns::of(request.messages).status_of;
        ThinkingDemands { request: *request, rules: RequestRules::of(request), status_of }
    }

    /// The demand on a message, which is unwanted unless it is an assistant's.
    pub fn on(&self, message: usize) -> ThinkingDemand {
        let is_reply = self.request.messages.get(message).is_some_and(|message| message.role == Role::Assistant);
        if !is_reply || self.rules.rules.echo.carrier == Carrier::None {
            return ThinkingDemand::Unwanted;
        }
        match self.plan(|plan| plan.duty(self.status(message))) {
            Some(Duty::Must) => ThinkingDemand::Required,
            Some(Duty::Should) => ThinkingDemand::Useful,
            Some(Duty::Ignored | Duty::Forbidden) | None => ThinkingDemand::Unwanted,
        }
    }

    /// Whether the message at this index has thinking to send, if the target
    /// produced it.
    pub fn is_met_by(&self, at: usize, message: &Message) -> bool {
        let is_enough = |block: &Block| match block {
            Block::Thinking(thinking) => !self.has_seal_on_every_reply() || thinking.seals().is_some(),
            Block::Text(text) => text.seal.is_some(),
            Block::ToolCall(call) => call.seal.is_some(),
            Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => false,
        };
        // Most messages that lack thinking have nothing at all, and need no copy.
        if !message.blocks.iter().any(is_enough) {
            return false;
        }
        let own = Message { origin: Some(self.rules.target.clone()), ..message.clone() };
        self.accepts(at, &own)
    }

    /// The provider's replies have a seal, on whichever part. A client that kept only the readable thinking has lost
    /// that.
    fn has_seal_on_every_reply(&self) -> bool {
        self.rules.rules.echo.carrier == Carrier::Part
    }

    /// Whether thinking of this message would be sent at this index. Decided by
    /// its origin.
    pub fn accepts(&self, at: usize, message: &Message) -> bool {
        self.plan(|plan| plan.sends_any(message, self.status(at)))
    }

    /// Whether a message at this index comes from a provider whose thinking may be
    /// sent to the target.
    pub fn is_own(&self, at: usize, message: &Message) -> bool {
        self.plan(|plan| plan.is_own(message, self.status(at)))
    }

    /// The index is in the open tool loop.
    pub fn is_in_open_loop(&self, at: usize) -> bool {
        self.status(at) == TurnStatus::OpenLoop
    }

    fn status(&self, at: usize) -> TurnStatus {
        self.status_of.get(at).copied().unwrap_or(TurnStatus::Past)
    }

    fn plan<T>(&self, decide: impl FnOnce(&ThinkingPlan<'_>) -> T) -> T {
        let RequestRules { rules, preferences, target } = &self.rules;
        let can_read = |matrix: &str, mine: &str, theirs: &str| self.request.dialects.can_read(matrix, mine, theirs);
        let target = EgressTarget {
            protocol: self.request.dialect.protocol,
            origin: target,
            rules,
            can_read: &can_read,
            has_tools: !self.request.tools.is_empty(),
            is_unknown: self.request.dialect.unknown,
        };
        decide(&ThinkingPlan::new(target, preferences))
    }
}
