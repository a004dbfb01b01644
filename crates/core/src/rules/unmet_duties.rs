//! What a provider requires but a request cannot provide: no thinking may be
//! sent, there is no filler, and thinking cannot be switched off.

use super::{Egress, EgressAction, EgressReason, MessagePlan, RequestParams, RequestPreferences};
use crate::block::Block;
use crate::dialect::{Carrier, Duty, FillEmpty, Foreign, Rules, TurnsIf};
use crate::history::{TurnStatus, Turns};
use crate::message::{Message, Role};

/// Describes the duties that a request does not meet. Empty if thinking is off.
pub(crate) fn unmet_duties(
    messages: &[&Message],
    egress: &Egress,
    rules: &Rules,
    preferences: &RequestPreferences,
    params: &RequestParams,
    has_tools: bool,
) -> Vec<String> {
    let echo = &rules.echo;
    let applies = match echo.turns_if {
        TurnsIf::Always | TurnsIf::Flag => true,
        TurnsIf::Tools => has_tools,
    };
    let (in_loop, in_past) = (echo.loop_duty == Duty::Must, applies && echo.turns_duty == Duty::Must);
    if !params.thinks || !(in_loop || in_past) {
        return Vec::new();
    }
    let turns = Turns::of(messages);
    let reasons = drop_reasons(messages, egress);
    let mut open = Vec::new();
    for (at, ((message, step), reason)) in messages.iter().zip(&egress.steps).zip(reasons).enumerate() {
        let is_due = match turns.status_of.get(at).copied().unwrap_or(TurnStatus::Past) {
            TurnStatus::OpenLoop => in_loop,
            TurnStatus::Past => in_past,
        };
        if message.role == Role::Assistant && is_due {
            let reason = missing(message, step, rules, preferences, reason);
            open.extend(reason.map(|reason| format!("message {at}: {reason}")));
        }
    }
    open
}

/// For each message, the first reason why its thinking is not sent.
fn drop_reasons<'a>(messages: &[&Message], egress: &'a Egress) -> Vec<Option<&'a EgressReason>> {
    let mut reasons = vec![None; messages.len()];
    for decision in egress.decisions.iter().filter(|decision| decision.action == EgressAction::Dropped) {
        let message = messages.get(decision.message);
        let block = message.zip(decision.block).and_then(|(message, block)| message.blocks.get(block));
        if let (Some(Block::Thinking(_)), Some(reason)) = (block, reasons.get_mut(decision.message)) {
            reason.get_or_insert(&decision.reason);
        }
    }
    reasons
}

fn missing(
    message: &Message,
    step: &MessagePlan,
    rules: &Rules,
    preferences: &RequestPreferences,
    reason: Option<&EgressReason>,
) -> Option<String> {
    let mut blocks = message.blocks.iter().zip(&step.actions);
    let sends_thinking =
        blocks.any(|(block, action)| matches!(block, Block::Thinking(_)) && *action != EgressAction::Dropped);
    if sends_thinking || step.filler {
        return None;
    }
    let echo = &rules.echo;
    let because = || reason.map_or_else(String::new, |reason| format!(" ({})", reason.rule()));
    let wants_filler = match echo.fill_empty {
        FillEmpty::None => false,
        FillEmpty::WithToolCalls => message.has_calls(),
        FillEmpty::All => true,
    };
    match echo.carrier {
        Carrier::Field | Carrier::FieldsOpaque | Carrier::Details | Carrier::ContentTags | Carrier::ContentChunks => {
            if wants_filler && preferences.omits_filler {
                return Some("this provider requires the field, but reasoning.sendEmpty omits it".to_owned());
            }
            // The message may have had no thinking, or come from another
            // provider.
            (step.own && reason.is_some())
                .then(|| format!("this provider requires its thinking back, but it is not being sent{}", because()))
        }
        Carrier::Part | Carrier::CallExtra => {
            let sealed =
                message.blocks.iter().any(|block| matches!(block, Block::ToolCall(call) if call.seal.is_some()));
            (step.own && sealed && !step.seals && echo.foreign != Foreign::DummySignature).then(|| {
                format!("this provider requires the signature of its call, but it is not being sent{}", because())
            })
        }
        Carrier::Block | Carrier::Item if wants_filler && preferences.omits_filler => {
            Some("this provider requires the block, but reasoning.sendEmpty omits it".to_owned())
        }
        // Without its id an item needs no thinking before it, and blocks are
        // required only at the start of a loop.
        Carrier::None | Carrier::Block | Carrier::Item => None,
    }
}
