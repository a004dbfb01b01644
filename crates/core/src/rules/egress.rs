//! Decides what of a conversation is sent back to a provider, block by block.
//!
//! First the setting for stripping, then the one for including, then the
//! dialect: who issued the seal, whether the block is in the open tool loop,
//! and which carrier exists for it. Storage is not changed; the same history
//! with other settings gives another plan.

mod message_context;
mod thinking_plan;

use std::collections::{HashMap, HashSet};

use super::EgressReason;
use super::left_out::{LeftOut, LeftOutReason, lost_media, lost_member, no_place, unread_members};
use super::request_preferences::RequestPreferences;
use crate::block::{Block, Origin, Thinking, ToolResult};
use crate::dialect::{Carrier, Dedupe, Removal, Rules};
use crate::history::{TurnStatus, Turns};
use crate::json_text::{Raw, text_member};
use crate::message::{Message, Role};
use crate::protocol::Protocol;
use message_context::{CallPairs, MessageContext};
pub(crate) use thinking_plan::ThinkingPlan;

/// What happens to one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EgressAction {
    /// Sent as received, in its own format.
    Verbatim,
    /// Sent as text in a field next to the content.
    Field,
    /// Sent as text in tags inside the content.
    Tags,
    /// An empty value, because the provider requires one.
    Filler,
    /// Not sent.
    Dropped,
}

impl EgressAction {
    /// The word for it in JSON and in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            EgressAction::Verbatim => "verbatim",
            EgressAction::Field => "field",
            EgressAction::Tags => "tags",
            EgressAction::Filler => "filler",
            EgressAction::Dropped => "dropped",
        }
    }
}

/// What happens to one block of a request, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// The index of its message in the request.
    pub message: usize,
    /// None for a filler, which has no stored block.
    pub block: Option<usize>,
    /// What happens to it.
    pub action: EgressAction,
    /// The field it is written to, if any.
    pub field: Option<String>,
    /// The rule or setting that decided.
    pub reason: EgressReason,
}

/// The decisions about one message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MessagePlan {
    /// One for each block of the message.
    pub actions: Vec<EgressAction>,
    /// The provider requires a field, and there is no thinking for it.
    pub filler: bool,
    /// Produced by this dialect, or a tool result for it. Its own members are
    /// sent along, and ids stay unchanged.
    pub own: bool,
    /// Seals on text and tool calls may be sent back.
    pub seals: bool,
    /// Blocks after which the provider should store the request.
    pub cache_marks: Vec<CacheMark>,
}

/// A block after which the provider should store the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheMark {
    /// Its index in the message.
    pub block: usize,
    /// How long to store it.
    pub ttl: Option<String>,
}

impl MessagePlan {
    /// The mark after a block, if there is one.
    pub(crate) fn mark_after(&self, block: usize) -> Option<&CacheMark> {
        self.cache_marks.iter().find(|mark| mark.block == block)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Egress {
    pub steps: Vec<MessagePlan>,
    pub decisions: Vec<Decision>,
    /// What is not sent, apart from thinking.
    pub left_out: Vec<LeftOut>,
    /// Some past thinking is sent, so the flag that keeps it is set.
    pub sends_past: bool,
    /// The first step of the open tool loop does not start with thinking.
    pub loop_lacks_thinking: bool,
    /// Identities of the items sent so far.
    sent: HashSet<String>,
}

/// Where the request goes, and what may be sent there.
#[derive(Clone, Copy)]
pub(crate) struct EgressTarget<'a> {
    pub protocol: Protocol,
    pub origin: &'a Origin,
    pub rules: &'a Rules,
    /// Whether one model can read another's thinking, according to a matrix.
    pub can_read: &'a dyn Fn(&str, &str, &str) -> bool,
    pub has_tools: bool,
    /// Nothing is known of the provider, so its thinking goes only to the
    /// endpoint that made it.
    pub is_unknown: bool,
}

pub(crate) fn plan_egress(messages: &[&Message], target: EgressTarget<'_>, preferences: &RequestPreferences) -> Egress {
    let turns = Turns::of(messages);
    let last_thinking_turn = last_turn_with_thinking(messages, &turns);
    let call_pairs = CallPairs::of(messages, target.origin);
    let blocks = messages.iter().map(|message| message.blocks.len()).sum();
    let mut egress = Egress {
        steps: Vec::with_capacity(messages.len()),
        decisions: Vec::with_capacity(blocks),
        ..Egress::default()
    };
    let mut loop_has_begun = false;
    for (at, message) in messages.iter().enumerate() {
        for (member, lost) in unread_members(message) {
            egress.left_out.push(LeftOut::new(format!("messages[{at}].{member}"), lost));
        }
        let status = turns.status_of.get(at).copied().unwrap_or(TurnStatus::Past);
        let turn = turns.turn_of.get(at).copied().unwrap_or(0);
        let in_last_thinking_turn = Some(turn) == last_thinking_turn;
        let context = MessageContext { target, preferences, call_pairs: &call_pairs, status, in_last_thinking_turn };
        egress.add_message(at, message, &context);
        if status == TurnStatus::OpenLoop
            && message.role == Role::Assistant
            && !std::mem::replace(&mut loop_has_begun, true)
        {
            egress.loop_lacks_thinking = !egress.begins_with_thinking(message);
        }
    }
    if target.rules.bind.removal == Removal::PrefixOnly {
        egress.close_gaps(messages, target.origin);
    }
    egress
}

impl Egress {
    /// Drops thinking at the end of the current message. Providers refuse an
    /// item that nothing follows.
    fn drop_orphans(&mut self, message: &Message, step: &mut MessagePlan) {
        for (block, action) in message.blocks.iter().zip(&mut step.actions).rev() {
            match (block, *action) {
                (_, EgressAction::Dropped) => (),
                (Block::Text(text), _) if text.text.is_empty() => (),
                (Block::Thinking(_), _) => *action = EgressAction::Dropped,
                _ => break,
            }
        }
        let first = self.decisions.len() - step.actions.len();
        for (decision, action) in self.decisions.iter_mut().skip(first).zip(&step.actions) {
            if decision.action != *action {
                (decision.action, decision.reason) = (*action, EgressReason::NothingFollows);
            }
        }
    }

    /// Records what a block loses, if it does.
    fn note_loss(
        &mut self,
        (message, index): (usize, usize),
        role: Role,
        block: &Block,
        protocol: Protocol,
        (action, reason): (EgressAction, &EgressReason),
    ) {
        if action != EgressAction::Dropped {
            for (member, lost) in lost_media(protocol, block) {
                self.left_out.push(LeftOut::of_block(message, index, &member, lost));
            }
        }
        let (member, lost) = if action == EgressAction::Dropped {
            ("", block_loss(protocol, role, block, reason))
        } else if let Some(lost) = lost_member(protocol, block) {
            lost
        } else {
            return;
        };
        self.left_out.push(LeftOut::of_block(message, index, member, lost));
    }

    /// Drops thinking that was already sent, where duplicates are refused.
    fn drop_duplicate(
        &mut self,
        thinking: &Thinking,
        dedupe: Dedupe,
        decided: (EgressAction, EgressReason),
    ) -> (EgressAction, EgressReason) {
        let key = identity(thinking, dedupe).filter(|_| decided.0 == EgressAction::Verbatim);
        let is_new = key.is_none_or(|key| self.sent.insert(key));
        if is_new { decided } else { (EgressAction::Dropped, EgressReason::Duplicate) }
    }

    /// Thinking must be left out oldest first: if a block of this dialect is
    /// not sent, drop all thinking before it.
    fn close_gaps(&mut self, messages: &[&Message], target: &Origin) {
        let own = |at: usize| {
            let origin = messages.get(at).and_then(|message| message.origin.as_ref());
            origin.is_some_and(|origin| origin.dialect == target.dialect)
        };
        let is_thinking = |decision: &Decision| {
            let block = decision.block.and_then(|block| messages.get(decision.message)?.blocks.get(block));
            matches!(block, Some(Block::Thinking(_)))
        };
        let is_gap = |decision: &Decision| {
            is_thinking(decision) && decision.action == EgressAction::Dropped && own(decision.message)
        };
        let Some(gap) = self.decisions.iter().rposition(is_gap) else { return };
        for decision in self.decisions.iter_mut().take(gap).filter(|decision| is_thinking(decision)) {
            if decision.action == EgressAction::Dropped {
                continue;
            }
            decision.action = EgressAction::Dropped;
            decision.reason = EgressReason::BeforeGap;
            let step = self.steps.get_mut(decision.message);
            if let Some(action) = step.zip(decision.block).and_then(|(step, block)| step.actions.get_mut(block)) {
                *action = EgressAction::Dropped;
            }
        }
    }

    /// Whether the last message is sent with thinking as its first block.
    fn begins_with_thinking(&self, message: &Message) -> bool {
        let actions = self.steps.last().map(|step| step.actions.as_slice()).unwrap_or_default();
        let mut sent = message.blocks.iter().zip(actions).filter(|(_, action)| **action != EgressAction::Dropped);
        sent.next().is_some_and(|(block, _)| matches!(block, Block::Thinking(_)))
    }

    /// What happens to one block, and why. `results` are the earlier ones of the message.
    fn decide_block<'m>(
        &mut self,
        message: &Message,
        block: &'m Block,
        results: &mut HashMap<&'m str, &'m ToolResult>,
        context: &MessageContext<'_>,
    ) -> (EgressAction, EgressReason) {
        match block {
            Block::Thinking(thinking) => {
                let decided = context.decide(message, thinking);
                self.drop_duplicate(thinking, context.target.rules.echo.dedupe, decided)
            }
            Block::Unmodelled(unmodelled) => match context.foreign_origin(message, true) {
                Some(maker) => (EgressAction::Dropped, EgressReason::Foreign { maker: maker.into_owned() }),
                None if context.accepts_unmodelled(message.role, unmodelled) => {
                    (EgressAction::Verbatim, EgressReason::Conversation)
                }
                None => (EgressAction::Dropped, EgressReason::NoPlace),
            },
            Block::ToolCall(call) if !context.call_pairs.results.contains(call.id.as_str()) => {
                (EgressAction::Dropped, EgressReason::Unanswered)
            }
            Block::ToolResult(result) if !context.call_pairs.calls.contains(result.id.as_str()) => {
                (EgressAction::Dropped, EgressReason::Unanswered)
            }
            Block::ToolResult(result) if is_repeated(result, results) => {
                (EgressAction::Dropped, EgressReason::RepeatedResult)
            }
            Block::Text(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) => {
                match no_place(context.target.protocol, message.role, block) {
                    Some(_) => (EgressAction::Dropped, EgressReason::NoPlace),
                    None => (EgressAction::Verbatim, EgressReason::Conversation),
                }
            }
        }
    }

    fn add_message(&mut self, at: usize, message: &Message, context: &MessageContext<'_>) {
        let mut step = MessagePlan {
            own: match message.role {
                Role::Tool => !context.answers_foreign_call(message),
                Role::System | Role::User | Role::Assistant => context.foreign_origin(message, false).is_none(),
            },
            seals: context.foreign_origin(message, true).is_none() && context.preferences.seals,
            actions: Vec::with_capacity(message.blocks.len()),
            ..MessagePlan::default()
        };
        let mut results: HashMap<&str, &ToolResult> = HashMap::new();
        for (index, block) in message.blocks.iter().enumerate() {
            let (action, reason) = self.decide_block(message, block, &mut results, context);
            let is_thinking = matches!(block, Block::Thinking(_));
            if !is_thinking {
                self.note_loss((at, index), message.role, block, context.target.protocol, (action, &reason));
            }
            self.sends_past |= is_thinking && action != EgressAction::Dropped && context.status == TurnStatus::Past;
            step.actions.push(action);
            let field = match (block, action) {
                (Block::Thinking(thinking), EgressAction::Field) => Some(context.field_name(Some(&thinking.source))),
                _ => None,
            };
            self.decisions.push(Decision { message: at, block: Some(index), action, field, reason });
        }
        if context.target.protocol == Protocol::OpenaiResponses || context.preferences.repair_effect.drop_orphans {
            self.drop_orphans(message, &mut step);
        }
        let sends_thinking = message
            .blocks
            .iter()
            .zip(&step.actions)
            .any(|(block, action)| matches!(block, Block::Thinking(_)) && *action != EgressAction::Dropped);
        if message.role == Role::Assistant && !sends_thinking && context.needs_filler(message) {
            step.filler = true;
            let in_field =
                matches!(context.target.rules.echo.carrier, Carrier::Field | Carrier::Details | Carrier::FieldsOpaque);
            let (reason, field) = (EgressReason::FieldRequired, in_field.then(|| context.field_name(None)));
            self.decisions.push(Decision { message: at, block: None, action: EgressAction::Filler, field, reason });
        }
        self.steps.push(step);
    }
}

/// Whether an earlier result of this message is the same. Some clients write a result twice when they resume a session,
/// and providers accept one for each call.
fn is_repeated<'a>(result: &'a ToolResult, earlier: &mut HashMap<&'a str, &'a ToolResult>) -> bool {
    let first = *earlier.entry(&result.id).or_insert(result);
    !std::ptr::eq(first, result) && first == result
}

/// Why a block that is not thinking is dropped.
fn block_loss(protocol: Protocol, role: Role, block: &Block, reason: &EgressReason) -> LeftOutReason {
    if let EgressReason::Foreign { maker } = reason {
        return LeftOutReason::OtherProvider { maker: maker.clone() };
    }
    if *reason == EgressReason::Unanswered {
        return LeftOutReason::NotPaired;
    }
    if *reason == EgressReason::RepeatedResult {
        return LeftOutReason::RepeatedResult;
    }
    no_place(protocol, role, block).unwrap_or(LeftOutReason::NoPlace { protocol, kind: "such items", role })
}

/// What identifies duplicates of a thinking item. None if nothing does.
fn identity(thinking: &Thinking, dedupe: Dedupe) -> Option<String> {
    let native_id = || text_member(Raw::of(&thinking.native.as_ref()?.json).ok()?, "id");
    let seals = thinking.seals();
    let seal = seals.and_then(|seals| seals.encrypted.as_ref().or(seals.signature.as_ref()));
    match dedupe {
        Dedupe::None => None,
        // Items with one id and different payloads are different items.
        Dedupe::ById => thinking.id.clone().or_else(native_id).map(|id| match seal {
            Some(seal) => format!("{id} {}", seal.payload),
            None => id,
        }),
        // There, ids of plain text repeat between replies.
        Dedupe::Openrouter => seal.map(|seal| seal.payload.clone()),
    }
}

fn last_turn_with_thinking(messages: &[&Message], turns: &Turns) -> Option<usize> {
    let with_thinking = messages.iter().zip(&turns.turn_of).filter(|(message, _)| message.thinking().next().is_some());
    with_thinking.map(|(_, turn)| *turn).next_back()
}
