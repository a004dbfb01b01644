//! What the requests of a session used and cost.

use aside_core::block::{Block, Reply};
use aside_core::event::Usage;
use aside_core::model_table::{Cost, Price, UsageCounting};

/// Sums over all requests since the session was opened. A count is none until a provider reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionTotals {
    pub usage: Usage,
    pub cost: Cost,
    /// Requests that were sent, those after a repair included; the same bytes sent again are not counted.
    pub requests: u64,
    pub repairs: u64,
    /// None if nothing was measured.
    pub thinking_ms: Option<u64>,
}

impl Default for SessionTotals {
    fn default() -> SessionTotals {
        SessionTotals { usage: Usage::default(), cost: Cost::Known(0.0), requests: 0, repairs: 0, thinking_ms: None }
    }
}

impl SessionTotals {
    /// Adds a reply, complete or cut off.
    pub(crate) fn add_reply(&mut self, reply: &Reply, price: Option<&Price>, counting: UsageCounting) {
        let add = |sum: &mut Option<u64>, count: Option<u64>| {
            if let Some(count) = count {
                *sum = Some(sum.unwrap_or(0).saturating_add(count));
            }
        };
        let usage = &reply.usage;
        add(&mut self.usage.input, usage.input);
        add(&mut self.usage.output, usage.output);
        add(&mut self.usage.reasoning, usage.reasoning);
        add(&mut self.usage.cached, usage.cached);
        add(&mut self.usage.cache_write, usage.cache_write);
        let spans = reply.blocks.iter().filter_map(|block| match block {
            Block::Thinking(thinking) => thinking.span,
            Block::Text(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => None,
        });
        for span in spans {
            add(&mut self.thinking_ms, Some(span.ended.0.saturating_sub(span.started.0)));
        }
        self.cost = self.cost.plus(price.and_then(|price| price.cost(usage, counting)));
    }
}
