//! Prices of models, and what a reply costs.

use crate::dialect::UsageRules;
use crate::event::Usage;
use crate::protocol::Protocol;

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// Of input tokens.
    pub input: f64,
    /// Of output tokens, thinking included.
    pub output: f64,
    /// Of input tokens read from the cache; as other input if unknown.
    pub cache_read: Option<f64>,
    /// Of input tokens written to the cache; as other input if unknown.
    pub cache_write: Option<f64>,
    /// Other prices for large requests, smallest first.
    pub tiers: Vec<PriceTier>,
}

/// The prices of requests with more input than this.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriceTier {
    /// It applies above this many input tokens.
    pub from: u64,
    /// Of input tokens.
    pub input: f64,
    /// Of output tokens.
    pub output: f64,
    /// Of input tokens read from the cache.
    pub cache_read: Option<f64>,
}

/// Whether a provider's output count includes the thinking tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingCount {
    /// It does.
    InOutput,
    /// They are counted beside it.
    SeparateFromOutput,
}

/// Whether a provider's input count includes the tokens that were read from its cache or written to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachedCount {
    /// It does.
    InInput,
    /// They are counted beside it.
    SeparateFromInput,
}

/// What a provider's token counts include.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageCounting {
    /// What the output count includes.
    pub thinking: ThinkingCount,
    /// What the input count includes.
    pub cached: CachedCount,
}

impl UsageCounting {
    /// How a dialect of this protocol with these rules counts.
    pub fn of(protocol: Protocol, rules: &UsageRules) -> UsageCounting {
        let thinking = if rules.included { ThinkingCount::InOutput } else { ThinkingCount::SeparateFromOutput };
        let cached = match protocol {
            Protocol::Anthropic | Protocol::Bedrock => CachedCount::SeparateFromInput,
            Protocol::OpenaiChat
            | Protocol::OpenaiResponses
            | Protocol::Gemini
            | Protocol::Ollama
            | Protocol::Cohere => CachedCount::InInput,
        };
        UsageCounting { thinking, cached }
    }
}

/// A sum of costs, as far as prices are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cost {
    /// No reply had a price.
    Unknown,
    /// A lower bound: some replies had no price or no token counts.
    AtLeast(f64),
    /// Every reply had a price.
    Known(f64),
}

impl Cost {
    /// Adds the cost of a reply; none if it is unknown. A sum begins with `Known(0.0)`.
    #[must_use]
    pub fn plus(self, next: Option<f64>) -> Cost {
        match (self, next) {
            (Cost::Known(sum), Some(next)) => Cost::Known(sum + next),
            (Cost::AtLeast(sum), Some(next)) => Cost::AtLeast(sum + next),
            (Cost::Unknown, Some(next)) => Cost::AtLeast(next),
            (Cost::Known(sum) | Cost::AtLeast(sum), None) if sum > 0.0 => Cost::AtLeast(sum),
            (Cost::Known(_) | Cost::AtLeast(_) | Cost::Unknown, None) => Cost::Unknown,
        }
    }

    /// The amount in US dollars; none if nothing is known.
    pub fn amount(self) -> Option<f64> {
        match self {
            Cost::Unknown => None,
            Cost::AtLeast(amount) | Cost::Known(amount) => Some(amount),
        }
    }

    /// Whether the amount is all of it.
    pub fn is_exact(self) -> bool {
        match self {
            Cost::Known(_) => true,
            Cost::Unknown | Cost::AtLeast(_) => false,
        }
    }
}

/// The tokens of one reply, each in one count only.
struct BilledTokens {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
}

impl BilledTokens {
    fn of(usage: &Usage, counting: UsageCounting) -> Option<BilledTokens> {
        let (input, output) = (usage.input?, usage.output?);
        let (cached, written) = (usage.cached.unwrap_or(0), usage.cache_write.unwrap_or(0));
        let (input, cache_read, cache_write) = match counting.cached {
            CachedCount::InInput => {
                let cache_read = cached.min(input);
                let cache_write = written.min(input - cache_read);
                (input - cache_read - cache_write, cache_read, cache_write)
            }
            CachedCount::SeparateFromInput => (input, cached, written),
        };
        let separate = match counting.thinking {
            ThinkingCount::InOutput => 0,
            ThinkingCount::SeparateFromOutput => usage.reasoning.unwrap_or(0),
        };
        Some(BilledTokens { input, cache_read, cache_write, output: output.saturating_add(separate) })
    }
}

impl Price {
    /// What a reply cost, in US dollars. None if a token count is unknown: a cost is never estimated.
    pub fn cost(&self, usage: &Usage, counting: UsageCounting) -> Option<f64> {
        let tokens = BilledTokens::of(usage, counting)?;
        let size = tokens.input.saturating_add(tokens.cache_read).saturating_add(tokens.cache_write);
        let tier = self.tiers.iter().rev().find(|tier| size > tier.from);
        let (input, output, cache_read) = match tier {
            Some(tier) => (tier.input, tier.output, tier.cache_read.or(self.cache_read)),
            None => (self.input, self.output, self.cache_read),
        };
        let of = |count: u64, price: f64| count as f64 * price / 1e6;
        Some(
            of(tokens.input, input)
                + of(tokens.cache_read, cache_read.unwrap_or(input))
                // The table has no price of cache writes per tier.
                + of(tokens.cache_write, self.cache_write.unwrap_or(input))
                + of(tokens.output, output),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c6_a_cost_follows_cache_tiers_and_what_the_counts_include() {
        let tier = PriceTier { from: 200_000, input: 2.0, output: 20.0, cache_read: Some(0.2) };
        let price =
            Price { input: 1.0, output: 10.0, cache_read: Some(0.1), cache_write: Some(1.25), tiers: vec![tier] };
        let usage = |input, output, reasoning, cached| Usage {
            input: Some(input),
            output: Some(output),
            reasoning,
            cached,
            cache_write: None,
        };
        let inside = UsageCounting { thinking: ThinkingCount::InOutput, cached: CachedCount::InInput };
        let beside =
            UsageCounting { thinking: ThinkingCount::SeparateFromOutput, cached: CachedCount::SeparateFromInput };
        #[rustfmt::skip]
        let cases = [
            ("plain",             usage(100_000, 1_000, None, None),          inside, 0.1 + 0.01),
            ("cached",            usage(100_000, 0, None, Some(50_000)),      inside, 0.05 + 0.005),
            ("cached beside",     usage(100_000, 0, None, Some(50_000)),      beside, 0.1 + 0.005),
            ("more than all",     usage(100_000, 0, None, Some(200_000)),     inside, 0.01),
            ("at a tier",         usage(200_000, 0, None, None),              inside, 0.2),
            ("above it",          usage(300_000, 1_000, None, Some(100_000)), inside, 0.4 + 0.02 + 0.02),
            ("cache counts too",  usage(150_000, 0, None, Some(100_000)),     beside, 0.3 + 0.02),
            ("written",           Usage { cache_write: Some(40_000), ..usage(100_000, 0, None, Some(50_000)) }, inside, 0.01 + 0.005 + 0.05),
            ("written beside",    Usage { cache_write: Some(40_000), ..usage(100_000, 0, None, None) },         beside, 0.1 + 0.05),
            ("thinking",          usage(0, 1_000, Some(500), None),           inside, 0.01),
            ("thinking beside",   usage(0, 1_000, Some(500), None),           beside, 0.015),
        ];
        for (name, usage, counting, expected) in cases {
            let cost = price.cost(&usage, counting).expect("known");
            assert!((cost - expected).abs() < 1e-9, "{name}: {cost} instead of {expected}");
        }
        assert_eq!(price.cost(&Usage { input: Some(1), ..Usage::default() }, inside), None);
    }
}
