//! Why a block is sent or not.

use crate::dialect::Duty;

/// The rule or setting that decided about a block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EgressReason {
    /// Not thinking: it is part of the conversation.
    Conversation,
    /// What the provider does with thinking of the open tool loop.
    Loop(Duty),
    /// What the provider does with thinking of earlier turns.
    Turns(Duty),
    /// The open tool loop keeps its thinking, even if everything is stripped.
    LoopIsNeverStripped,
    /// The setting `reasoning.stripFromContext` leaves it out.
    Stripped,
    /// The setting `reasoning.includeInContext` is off.
    NotIncluded,
    /// The user asked for it, and the provider allows it.
    Included,
    /// This request switches thinking off, so none is sent.
    ThinkingOff,
    /// Made by another provider, endpoint, account or model.
    Foreign {
        /// Its provider and model, in words.
        maker: String,
    },
    /// The reply was interrupted, so the block is incomplete.
    Interrupted,
    /// A tool call without a result, or a result without a call.
    Unanswered,
    /// The same result of the same call was already sent.
    RepeatedResult,
    /// A later block cannot be read there, and no gaps are allowed.
    BeforeGap,
    /// This provider accepts only sealed thinking.
    NotSealed,
    /// Its seal does not fit this protocol, and there is no text to send.
    NothingReadable,
    /// The provider refuses thinking that nothing follows.
    NothingFollows,
    /// This provider does not accept thinking, or has no place for it.
    NoCarrier,
    /// The protocol cannot represent such a block in a message of its role.
    NoPlace,
    /// The field is required, but there is no thinking for it.
    FieldRequired,
    /// This provider refused it before.
    Refused,
    /// The same item was already sent.
    Duplicate,
}

impl EgressReason {
    /// The rule, in terms of the dialect files.
    pub fn rule(&self) -> String {
        match self {
            EgressReason::Conversation => "the conversation".to_owned(),
            EgressReason::Loop(duty) => format!("echo.loop = {}", word(*duty)),
            EgressReason::Turns(duty) => format!("echo.turns = {}", word(*duty)),
            EgressReason::LoopIsNeverStripped => "the open tool loop is never stripped".to_owned(),
            EgressReason::Stripped => "stripped from context".to_owned(),
            EgressReason::NotIncluded => "not included in context".to_owned(),
            EgressReason::Included => "included in context".to_owned(),
            EgressReason::ThinkingOff => "thinking is switched off".to_owned(),
            EgressReason::Foreign { maker } => format!("made by {maker}"),
            EgressReason::Unanswered => "a call without its result, or a result without its call".to_owned(),
            EgressReason::RepeatedResult => "the same result again".to_owned(),
            EgressReason::BeforeGap => "bind.removal = prefix_only".to_owned(),
            EgressReason::Interrupted => "incomplete".to_owned(),
            EgressReason::NotSealed => "echo.need_opaque = true".to_owned(),
            EgressReason::NothingReadable => "this protocol cannot carry its signature".to_owned(),
            EgressReason::NothingFollows => "a reasoning item must be followed by the item it belongs to".to_owned(),
            EgressReason::NoCarrier => "this provider does not accept thinking".to_owned(),
            EgressReason::NoPlace => "this protocol has no place for it".to_owned(),
            EgressReason::FieldRequired => "echo.fill_empty".to_owned(),
            EgressReason::Refused => "this provider refused it before".to_owned(),
            EgressReason::Duplicate => "echo.dedupe".to_owned(),
        }
    }

    /// The setting that was involved, if any.
    pub fn setting(&self) -> Option<&'static str> {
        match self {
            EgressReason::Stripped | EgressReason::LoopIsNeverStripped => Some("reasoning.stripFromContext"),
            EgressReason::NotIncluded | EgressReason::Included => Some("reasoning.includeInContext"),
            EgressReason::ThinkingOff => Some("reasoning.enabled"),
            EgressReason::FieldRequired => Some("reasoning.sendEmpty"),
            EgressReason::Conversation
            | EgressReason::Loop(_)
            | EgressReason::Turns(_)
            | EgressReason::Foreign { .. }
            | EgressReason::Interrupted
            | EgressReason::Unanswered
            | EgressReason::RepeatedResult
            | EgressReason::BeforeGap
            | EgressReason::NotSealed
            | EgressReason::NothingReadable
            | EgressReason::NothingFollows
            | EgressReason::Refused
            | EgressReason::Duplicate
            | EgressReason::NoPlace
            | EgressReason::NoCarrier => None,
        }
    }
}

fn word(duty: Duty) -> &'static str {
    match duty {
        Duty::Must => "must",
        Duty::Should => "should",
        Duty::Ignored => "ignored",
        Duty::Forbidden => "forbidden",
    }
}
