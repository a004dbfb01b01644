//! Usage as text: names of groups, token counts and costs, and the
//! prices that costs are computed from.

use aside_core::block::Origin;
use aside_core::dialect::Dialects;
use aside_core::model_table::{CachedCount, ThinkingCount, UsageCounting};
use aside_store::usage::{BillingRules, Cost, TokenTotal, UsageGroup};

use crate::providers::Providers;
use crate::times;

/// The price of a message's model, and what its token counts include.
pub fn pricing_terms(providers: &Providers<'_>, dialects: &Dialects, origin: &Origin) -> BillingRules {
    let dialect = origin.dialect.as_deref().and_then(|id| dialects.get(id));
    let usual = UsageCounting { thinking: ThinkingCount::InOutput, cached: CachedCount::InInput };
    let counting = dialect
        .map_or(usual, |dialect| UsageCounting::of(dialect.protocol, &dialect.rules(origin.model.as_deref()).usage));
    let name = origin.provider.as_deref().zip(origin.model.as_deref()).map(|(id, model)| format!("{id}/{model}"));
    let price = name.and_then(|name| providers.resolve(&name, None).ok()).and_then(|provider| provider.facts.price);
    BillingRules { price: price.map(|price| price.value), counting }
}

pub fn group_name(group: &UsageGroup) -> String {
    match group {
        UsageGroup::Turn { session, turn } => format!("{session} #{turn}"),
        UsageGroup::Model(model) => model.clone().unwrap_or_else(|| "unknown".to_owned()),
        UsageGroup::Day(day) => {
            let millis = u64::try_from(*day).unwrap_or_default().saturating_mul(86_400_000);
            times::rfc3339(aside_core::block::Time(millis)).split('T').next().unwrap_or_default().to_owned()
        }
        UsageGroup::Session { id, title } => {
            format!("{id} {}", title.as_deref().unwrap_or("")).chars().take(36).collect()
        }
    }
}

pub fn token_count(tokens: TokenTotal) -> String {
    format!("{}{}", if tokens.is_estimate { "~" } else { "" }, tokens.count)
}

/// `$0.0123`, with `over` if some of it is unknown; none if all of it is.
pub fn dollars(cost: Cost) -> Option<String> {
    match cost {
        Cost::Unknown => None,
        Cost::AtLeast(amount) => Some(format!("over ${amount:.4}")),
        Cost::Known(amount) => Some(format!("${amount:.4}")),
    }
}

pub fn cost_text(cost: Cost) -> String {
    match cost {
        Cost::Unknown => String::new(),
        Cost::AtLeast(amount) => format!("over {amount:.4}"),
        Cost::Known(amount) => format!("{amount:.4}"),
    }
}
