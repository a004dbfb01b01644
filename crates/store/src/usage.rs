//! Usage: tokens, seconds and cost, grouped by turn, model, day or session.
//!
//! Token counts are the provider's. Where it reported none, they are estimated
//! from the text and marked as estimates.

use std::collections::BTreeMap;

use aside_core::block::{Origin, Time};
use aside_core::event::Usage;
pub use aside_core::model_table::Cost;
use aside_core::model_table::{Price, ThinkingCount, UsageCounting};

use crate::session::{MessageId, SessionId};

/// A usage query. The caller supplies prices and dialects; the store has neither.
pub struct UsageQuery<'a> {
    pub group_by: GroupBy,
    pub session: Option<SessionId>,
    pub since: Option<Time>,
    /// The billing rules for the origin of a reply.
    pub billing: &'a dyn Fn(&Origin) -> BillingRules,
    /// Minutes that local time is ahead of UTC; decides where days begin.
    pub utc_offset_minutes: i32,
}

/// How rows are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    Turn,
    Model,
    Day,
    Session,
}

/// How a provider bills.
#[derive(Debug, Clone, PartialEq)]
pub struct BillingRules {
    /// None if unknown.
    pub price: Option<Price>,
    pub counting: UsageCounting,
}

/// The group that a row sums up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsageGroup {
    /// The message that began the turn.
    Turn {
        session: SessionId,
        turn: MessageId,
    },
    /// None if the model is unknown.
    Model(Option<String>),
    /// Days since 1970-01-01, in the requested time zone.
    Day(i64),
    Session {
        id: SessionId,
        title: Option<String>,
    },
}

/// A token count that is marked if any part of it is an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenTotal {
    pub count: u64,
    pub is_estimate: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct UsageRow {
    pub group: UsageGroup,
    pub n_replies: u64,
    pub input: TokenTotal,
    pub cached: TokenTotal,
    /// Tokens written to the provider's cache.
    pub cache_write: TokenTotal,
    pub thinking: TokenTotal,
    pub answer: TokenTotal,
    /// From sending the request to the last byte; only for replies that were timed.
    pub seconds: Option<f64>,
    pub thinking_seconds: Option<f64>,
    pub cost: Cost,
}

/// The usage of one stored reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReplyUsage {
    pub(crate) origin: Origin,
    pub(crate) usage: Usage,
    /// Estimates from the text, used where the provider reported no count.
    pub(crate) thinking_guess: u64,
    pub(crate) answer_guess: u64,
    pub(crate) took_ms: Option<u64>,
    pub(crate) thought_ms: Option<u64>,
}

/// Sums up replies by group.
#[derive(Debug, Default)]
pub(crate) struct UsageTotals {
    lines: BTreeMap<UsageGroup, UsageRow>,
}

impl UsageTotals {
    pub(crate) fn add(&mut self, group: UsageGroup, reply: &ReplyUsage, billing: &BillingRules) {
        let line = self.lines.entry(group.clone()).or_insert_with(|| UsageRow {
            group,
            n_replies: 0,
            input: TokenTotal::default(),
            cached: TokenTotal::default(),
            cache_write: TokenTotal::default(),
            thinking: TokenTotal::default(),
            answer: TokenTotal::default(),
            seconds: None,
            thinking_seconds: None,
            cost: Cost::Known(0.0),
        });
        let (thinking, answer) = reply.split(billing.counting.thinking);
        line.n_replies += 1;
        line.input.add(TokenTotal { count: reply.usage.input.unwrap_or(0), is_estimate: reply.usage.input.is_none() });
        line.cached.add(TokenTotal { count: reply.usage.cached.unwrap_or(0), is_estimate: false });
        line.cache_write.add(TokenTotal { count: reply.usage.cache_write.unwrap_or(0), is_estimate: false });
        line.thinking.add(thinking);
        line.answer.add(answer);
        add_seconds(&mut line.seconds, reply.took_ms);
        add_seconds(&mut line.thinking_seconds, reply.thought_ms);
        line.cost = line.cost.plus(reply.cost(billing));
    }

    pub(crate) fn into_lines(self) -> Vec<UsageRow> {
        self.lines.into_values().collect()
    }
}

impl ReplyUsage {
    /// Thinking and answer tokens: the provider's counts where there are any.
    fn split(&self, counting: ThinkingCount) -> (TokenTotal, TokenTotal) {
        let guessed = |count: u64| TokenTotal { count, is_estimate: count > 0 };
        let counted = |count: u64| TokenTotal { count, is_estimate: false };
        match (self.usage.output, self.usage.reasoning, counting) {
            (Some(output), Some(thinking), ThinkingCount::InOutput) => {
                (counted(thinking), counted(output.saturating_sub(thinking)))
            }
            (Some(output), Some(thinking), ThinkingCount::SeparateFromOutput) => (counted(thinking), counted(output)),
            // Only the sum is known; the thinking estimate is taken out of it.
            (Some(output), None, _) => {
                let thinking = self.thinking_guess.min(output);
                let is_estimate = thinking > 0;
                (guessed(thinking), TokenTotal { count: output - thinking, is_estimate })
            }
            (None, Some(thinking), _) => (counted(thinking), guessed(self.answer_guess)),
            (None, None, _) => (guessed(self.thinking_guess), guessed(self.answer_guess)),
        }
    }

    /// None if the price or a token count is unknown: cost is never estimated.
    fn cost(&self, billing: &BillingRules) -> Option<f64> {
        billing.price.as_ref()?.cost(&self.usage, billing.counting)
    }
}

impl TokenTotal {
    fn add(&mut self, other: TokenTotal) {
        self.count = self.count.saturating_add(other.count);
        self.is_estimate |= other.is_estimate;
    }
}

fn add_seconds(sum: &mut Option<f64>, ms: Option<u64>) {
    if let Some(ms) = ms {
        *sum = Some(sum.unwrap_or(0.0) + ms as f64 / 1000.0);
    }
}

#[cfg(test)]
mod tests {
    use aside_core::model_table::CachedCount;

    use super::*;

    fn reply(input: Option<u64>, output: Option<u64>, reasoning: Option<u64>, cached: Option<u64>) -> ReplyUsage {
        ReplyUsage {
            origin: Origin::default(),
            usage: Usage::default().with_input(input).with_output(output).with_thinking(reasoning).with_cached(cached),
            thinking_guess: 40,
            answer_guess: 10,
            took_ms: None,
            thought_ms: Some(1500),
        }
    }

    #[test]
    fn c6_thinking_and_answer_are_separate_and_estimates_are_marked() {
        use ThinkingCount::{InOutput, SeparateFromOutput};
        #[rustfmt::skip]
        let cases = [
            ("in output",     reply(Some(9), Some(100), Some(70), None), InOutput,     (70, false), (30, false)),
            ("beside output", reply(Some(9), Some(100), Some(70), None), SeparateFromOutput, (70, false), (100, false)),
            ("not reported",  reply(Some(9), Some(100), None, None),     InOutput,     (40, true),  (60, true)),
            ("estimate too big", reply(Some(9), Some(30), None, None),      InOutput,     (30, true),  (0, true)),
            ("nothing reported", reply(None, None, None, None),             InOutput,     (40, true),  (10, true)),
        ];
        for (name, reply, counting, thinking, answer) in cases {
            let (a, b) = reply.split(counting);
            assert_eq!(((a.count, a.is_estimate), (b.count, b.is_estimate)), (thinking, answer), "{name}");
        }
    }

    #[test]
    fn c6_cost_is_reported_only_as_far_as_it_is_known() {
        let price = Price { input: 1.0, output: 10.0, cache_read: Some(0.1), cache_write: None, tiers: Vec::new() };
        let counting = UsageCounting { thinking: ThinkingCount::InOutput, cached: CachedCount::InInput };
        let billing = BillingRules { price: Some(price), counting };
        let known = reply(Some(1_000_000), Some(100_000), None, Some(500_000));
        let unknown = reply(None, None, None, None);
        #[rustfmt::skip]
        let cases = [
            ("known",        vec![&known],            Cost::Known(0.5 + 0.05 + 1.0)),
            ("unknown",      vec![&unknown],          Cost::Unknown),
            ("known first",  vec![&known, &unknown],  Cost::AtLeast(1.55)),
            ("known second", vec![&unknown, &known],  Cost::AtLeast(1.55)),
        ];
        for (name, replies, expected) in cases {
            let mut totals = UsageTotals::default();
            for reply in replies {
                totals.add(UsageGroup::Model(None), reply, &billing);
            }
            let lines = totals.into_lines();
            assert_eq!(lines[0].cost, expected, "{name}");
        }
    }
}
