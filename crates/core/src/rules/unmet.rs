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
    let echo = &rules.echo;
    let applies = match echo.turns_if {
        TurnsIf::Always | TurnsIf::Flag => true,
        TurnsIf::Tools => has_tools,
    };
    let (in_loop, in_past) = (echo.loop_duty == Duty::Must, applies && echo.turns_duty == Duty::Must);
    if !asked.thinks || !(in_loop || in_past) {
        return Vec::new();
    }
    let turns = Turns::of(messages);
    let whys = why_thoughts_are_dropped(messages, egress);
    let mut open = Vec::new();
    for (at, ((message, step), why)) in messages.iter().zip(&egress.steps).zip(whys).enumerate() {
        let is_due = match turns.place_of.get(at).copied().unwrap_or(Place::Past) {
            Place::OpenLoop => in_loop,
            Place::Past => in_past,
        };
        if message.role == Role::Assistant && is_due {
            let reason = missing(message, step, rules, wishes, why);
            open.extend(reason.map(|reason| format!("message {at}: {reason}")));
        }
    }
    open
}

/// For each message the first reason why a thought of it is not sent.
fn why_thoughts_are_dropped<'a>(messages: &[&Message], egress: &'a Egress) -> Vec<Option<&'a Why>> {
    let mut whys = vec![None; messages.len()];
    for decision in egress.decisions.iter().filter(|decision| decision.action == Action::Dropped) {
        let message = messages.get(decision.message);
        let block = message.zip(decision.block).and_then(|(message, block)| message.blocks.get(block));
        if let (Some(Block::Thinking(_)), Some(why)) = (block, whys.get_mut(decision.message)) {
            why.get_or_insert(&decision.why);
        }
    }
    whys
}

fn missing(message: &Message, step: &Step, rules: &Rules, wishes: &Wishes, why: Option<&Why>) -> Option<String> {
    let mut blocks = message.blocks.iter().zip(&step.actions);
    let told = blocks.any(|(block, action)| matches!(block, Block::Thinking(_)) && *action != Action::Dropped);
    if told || step.filler {
        return None;
    }
    let echo = &rules.echo;
    let because = || why.map_or_else(String::new, |why| format!(" ({})", why.rule()));
    let wants_filler = match echo.fill_empty {
        FillEmpty::None => false,
        FillEmpty::WithToolCalls => message.has_calls(),
        FillEmpty::All => true,
    };
    match echo.carrier {
        Carrier::Field | Carrier::FieldsOpaque | Carrier::Details | Carrier::ContentTags | Carrier::ContentChunks => {
            if wants_filler && wishes.omits_filler {
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
        Carrier::Block | Carrier::Item if wants_filler && wishes.omits_filler => {
            Some("this provider demands the block, and reasoning.sendEmpty leaves it out".to_owned())
        }
        // Without its id an item needs no thought before it, and blocks are
        // demanded only at the beginning of a loop.
        Carrier::None | Carrier::Block | Carrier::Item => None,
    }
}
