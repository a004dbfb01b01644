//! What fills a request, and what is held back from it. Everything sent is in
//! one of the parts, so that they add up to the count of the request itself.

use super::encode::{Encoded, Encoder, Request};
use super::json::quote;
use crate::block::Block;
use crate::message::{Message, Role};
use crate::rules::Action;
use crate::tokens::of_block;

/// Tokens of one request, by what they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filling {
    pub system: u64,
    pub tools: u64,
    pub prompts: u64,
    /// What the model said, its calls included.
    pub answers: u64,
    pub thinking: u64,
    pub results: u64,
    /// Parameters and what stands around the messages.
    pub rest: u64,
    /// Stored, and not sent.
    pub held_back: HeldBack,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldBack {
    pub thoughts: u64,
    pub thinking: u64,
    /// Whatever else was left out: calls nobody answered, items of others.
    pub other: u64,
}

impl Filling {
    /// As much as [`Encoded::tokens`].
    pub fn total(&self) -> u64 {
        let Filling { system, tools, prompts, answers, thinking, results, rest, held_back: _ } = self;
        system + tools + prompts + answers + thinking + results + rest
    }

    fn part(&mut self, role: Role, block: Option<&Block>) -> &mut u64 {
        match (role, block) {
            (_, Some(Block::Thinking(_))) => &mut self.thinking,
            (_, Some(Block::ToolResult(_))) | (Role::Tool, _) => &mut self.results,
            (Role::System, _) => &mut self.system,
            (Role::User, _) => &mut self.prompts,
            (Role::Assistant, _) => &mut self.answers,
        }
    }
}

impl Encoder {
    /// Takes apart what [`Encoder::encode`] made of a request.
    pub fn filling(&self, request: &Request<'_>, encoded: &Encoded) -> Filling {
        let mut filling = Filling::default();
        let counter = self.counter();
        let mut in_head = 0;
        for (at, message) in request.messages.iter().enumerate() {
            let tokens = encoded.message_tokens.get(at).copied().unwrap_or(0);
            let weigh = |(block, action): (usize, Action)| {
                let block = message.blocks.get(block)?;
                Some((block, action, of_block(block, counter).tokens()))
            };
            let decided = encoded.decisions.iter().filter(|decision| decision.message == at);
            let decided = decided.filter_map(|decision| Some((decision.block?, decision.action)));
            let weighed: Vec<(&Block, Action, u64)> = decided.filter_map(weigh).collect();
            filling.hold_back(&weighed);
            let sent = weighed.into_iter().filter(|(_, action, _)| *action != Action::Dropped);
            let sent: Vec<(&Block, u64)> = sent.map(|(block, _, weight)| (block, weight)).collect();
            if message.role == Role::System && tokens == 0 {
                in_head += sent.iter().map(|(_, weight)| weight).sum::<u64>();
            } else {
                filling.share(message, tokens, &sent);
            }
        }
        // What stands before the messages: the prompt where it has a place of
        // its own, then the tools, then what is left.
        let head = encoded.tokens.saturating_sub(filling.total());
        let written = request.tools.iter().map(|tool| {
            let (name, about) = (quote(&tool.name), quote(&tool.description));
            let written =
                format!(r#"{{"type":"function","function":{{"name":{name},"description":{about},"parameters":"#);
            counter.count(&(written + &tool.parameters + "}},")).tokens()
        });
        let tools: u64 = written.sum();
        filling.system += in_head.min(head);
        filling.tools = tools.min(head - in_head.min(head));
        filling.rest = head - in_head.min(head) - filling.tools;
        filling
    }
}

impl Filling {
    /// A message is counted as it was written; its blocks share that by their size.
    fn share(&mut self, message: &Message, tokens: u64, sent: &[(&Block, u64)]) {
        let whole: u64 = sent.iter().map(|(_, weight)| weight).sum();
        let mut left = tokens;
        for (block, weight) in sent.iter().filter(|_| whole > 0) {
            let part = (tokens * weight / whole).min(left);
            *self.part(message.role, Some(block)) += part;
            left -= part;
        }
        // What rounding leaves goes with what was said.
        *self.part(message.role, None) += left;
    }

    fn hold_back(&mut self, weighed: &[(&Block, Action, u64)]) {
        for (block, _, tokens) in weighed.iter().filter(|(_, action, _)| *action == Action::Dropped) {
            if let Block::Thinking(_) = block {
                self.held_back.thoughts += 1;
                self.held_back.thinking += tokens;
            } else {
                self.held_back.other += tokens;
            }
        }
    }
}
