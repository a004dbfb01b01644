//! Token counts of a request by category, and of the blocks that are not sent.
//! The categories add up to the count of the whole request.

use super::encode::{Encoded, Encoder, Request};
use crate::block::Block;
use crate::json_text::quote;
use crate::message::{Message, Role};
use crate::rules::EgressAction;
use crate::tokens::count_block;

/// Tokens of one request, by category.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenBreakdown {
    /// The system prompt.
    pub system: u64,
    /// The definitions of the tools.
    pub tools: u64,
    /// What the user wrote.
    pub prompts: u64,
    /// Answers of the model, including tool calls.
    pub answers: u64,
    /// Thinking that is sent back.
    pub thinking: u64,
    /// Results of tool calls.
    pub results: u64,
    /// Parameters and everything around the messages.
    pub rest: u64,
    /// Stored but not sent.
    pub withheld: WithheldTokens,
}

/// Tokens of stored blocks that are not sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WithheldTokens {
    /// How many thinking blocks are not sent.
    pub thinking_blocks: u64,
    /// Their tokens.
    pub thinking: u64,
    /// Other blocks left out: tool calls without a result, items of other
    /// providers.
    pub other: u64,
}

impl TokenBreakdown {
    /// The sum of all categories; equals [`Encoded::tokens`].
    pub fn total(&self) -> u64 {
        let TokenBreakdown { system, tools, prompts, answers, thinking, results, rest, withheld: _ } = self;
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
    /// Breaks down a request encoded by [`Encoder::encode`].
    pub fn token_breakdown(&self, request: &Request<'_>, encoded: &Encoded) -> TokenBreakdown {
        let mut breakdown = TokenBreakdown::default();
        let counter = self.counter();
        let mut system_in_head = 0;
        for (at, message) in request.messages.iter().enumerate() {
            let tokens = encoded.message_tokens.get(at).copied().unwrap_or(0);
            let count = |(block, action): (usize, EgressAction)| {
                let block = message.blocks.get(block)?;
                Some((block, action, count_block(block, counter).tokens()))
            };
            let decided = encoded.decisions.iter().filter(|decision| decision.message == at);
            let decided = decided.filter_map(|decision| Some((decision.block?, decision.action)));
            let counted: Vec<(&Block, EgressAction, u64)> = decided.filter_map(count).collect();
            breakdown.add_withheld(&counted);
            let sent = counted.into_iter().filter(|(_, action, _)| *action != EgressAction::Dropped);
            let sent: Vec<(&Block, u64)> = sent.map(|(block, _, size)| (block, size)).collect();
            if message.role == Role::System && tokens == 0 {
                system_in_head += sent.iter().map(|(_, size)| size).sum::<u64>();
            } else {
                breakdown.share(message, tokens, &sent);
            }
        }
        // Before the messages come the system prompt (if it is not a message),
        // the tools, and the rest.
        let head = encoded.tokens.saturating_sub(breakdown.total());
        let written = request.tools.iter().map(|tool| {
            let (name, about) = (quote(&tool.name), quote(&tool.description));
            let written =
                format!(r#"{{"type":"function","function":{{"name":{name},"description":{about},"parameters":"#);
            counter.count(&(written + &tool.parameters + "}},")).tokens()
        });
        let tools: u64 = written.sum();
        breakdown.system += system_in_head.min(head);
        breakdown.tools = tools.min(head - system_in_head.min(head));
        breakdown.rest = head - system_in_head.min(head) - breakdown.tools;
        breakdown
    }
}

impl TokenBreakdown {
    /// Distributes a message's tokens among its blocks, in proportion to their
    /// size.
    fn share(&mut self, message: &Message, tokens: u64, sent: &[(&Block, u64)]) {
        let whole: u64 = sent.iter().map(|(_, size)| size).sum();
        let mut left = tokens;
        for (block, size) in sent.iter().filter(|_| whole > 0) {
            let part = (tokens * size / whole).min(left);
            *self.part(message.role, Some(block)) += part;
            left -= part;
        }
        // The rounding remainder counts as text of the message's role.
        *self.part(message.role, None) += left;
    }

    fn add_withheld(&mut self, counted: &[(&Block, EgressAction, u64)]) {
        for (block, _, tokens) in counted.iter().filter(|(_, action, _)| *action == EgressAction::Dropped) {
            if let Block::Thinking(_) = block {
                self.withheld.thinking_blocks += 1;
                self.withheld.thinking += tokens;
            } else {
                self.withheld.other += tokens;
            }
        }
    }
}
