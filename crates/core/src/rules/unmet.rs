//! What a provider demands and a request cannot give: no thought may be sent,
//! none stands in for it, and thinking cannot be switched off.

use super::{Action, Asked, Egress, Step, Why, Wishes};
use crate::block::Block;
use crate::dialect::{Carrier, Duty, FillEmpty, Foreign, Rules, TurnsIf};
use crate::history::{Place, Turns};
use crate::message::{Message, Role};

/// The demands that stay open, in words; none of them without thinking.
pub(crate) fn unmet(
    messages: &[&Message],
    egress: &Egress,
    rules: &Rules,
    wishes: &Wishes,
    asked: &Asked,
    has_tools: bool,
) -> Vec<String> {
    if !asked.thinks {
        return Vec::new();
    }
    let turns = Turns::of(messages);
    let applies = match rules.echo.turns_if {
        TurnsIf::Always | TurnsIf::Flag => true,
        TurnsIf::Tools => has_tools,
    };
    let is_due = |place: Place| match place {
        Place::OpenLoop => rules.echo.loop_duty == Duty::Must,
        Place::Past => applies && rules.echo.turns_duty == Duty::Must,
    };
    let mut open = Vec::new();
    for (at, (message, step)) in messages.iter().zip(&egress.steps).enumerate() {
        let place = turns.place_of.get(at).copied().unwrap_or(Place::Past);
        if message.role != Role::Assistant || !is_due(place) {
            continue;
        }
        let why = egress.decisions.iter().find(|decision| {
            let block = decision.block.and_then(|block| message.blocks.get(block));
            decision.message == at && decision.action == Action::Dropped && matches!(block, Some(Block::Thinking(_)))
        });
        if let Some(reason) = missing(message, step, rules, wishes, why.map(|decision| &decision.why)) {
            open.push(format!("message {at}: {reason}"));
        }
    }
    open
}

fn missing(message: &Message, step: &Step, rules: &Rules, wishes: &Wishes, why: Option<&Why>) -> Option<String> {
    let mut blocks = message.blocks.iter().zip(&step.actions);
    let told = blocks.any(|(block, action)| matches!(block, Block::Thinking(_)) && *action != Action::Dropped);
    if told || step.filler {
        return None;
    }
    let echo = &rules.echo;
    let because = || why.map_or_else(String::new, |why| format!(" ({})", why.rule()));
    match echo.carrier {
        Carrier::Field | Carrier::FieldsOpaque | Carrier::Details | Carrier::ContentTags | Carrier::ContentChunks => {
            let wants_field = match echo.fill_empty {
                FillEmpty::None => false,
                FillEmpty::WithToolCalls => message.has_calls(),
                FillEmpty::All => true,
            };
            if wants_field && wishes.omits_filler {
                return Some("this provider demands the field, and reasoning.sendEmpty leaves it out".to_owned());
            }
            // Nothing can be demanded of a message that never thought, or not here.
            (step.own && why.is_some())
                .then(|| format!("this provider demands its thinking back, and it is not sent{}", because()))
        }
        Carrier::Part | Carrier::CallExtra => {
            let sealed =
                message.blocks.iter().any(|block| matches!(block, Block::ToolCall(call) if call.seal.is_some()));
            (step.own && sealed && !step.seals && echo.foreign != Foreign::DummySignature)
                .then(|| format!("this provider demands the seal of its call, and it is not sent{}", because()))
        }
        // Without its id an item needs no thought before it, and blocks are
        // demanded only at the beginning of a loop.
        Carrier::None | Carrier::Block | Carrier::Item => None,
    }
}
