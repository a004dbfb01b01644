//! How much each key has used in the current window of the calendar.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aside_core::event::Usage;
use aside_core::model_table::UsageCounting;
use aside_session::serve_table::{Limit, LimitKind, ServeKey};

use crate::config::Target;
use crate::error_response::{ErrorKind, GatewayError};

/// The amounts that keys have used.
#[derive(Debug, Default)]
pub(crate) struct Limits(Mutex<HashMap<Counter, f64>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Counter {
    key: String,
    kind: &'static str,
    /// Its length in seconds, and its number since 1970.
    window: (u64, u64),
}

/// What one request used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) usage: Usage,
    /// In US dollars. None if the price is unknown.
    pub(crate) cost: Option<f64>,
}

impl Spent {
    pub(crate) fn of(usage: Usage, target: &Target) -> Spent {
        let dialect = &target.endpoint.dialect;
        let counting = UsageCounting::of(dialect.protocol, &dialect.rules(Some(&target.endpoint.model)).usage);
        Spent { usage, cost: target.price.as_ref().and_then(|price| price.cost(&usage, counting)) }
    }

    fn amount(&self, kind: LimitKind) -> f64 {
        let count = |tokens: Option<u64>| tokens.map_or(0.0, as_amount);
        match kind {
            // Counted when the request is admitted.
            LimitKind::Requests => 0.0,
            LimitKind::Tokens => count(self.usage.input) + count(self.usage.output),
            LimitKind::Thinking => count(self.usage.reasoning),
            LimitKind::Money => self.cost.unwrap_or(0.0),
        }
    }
}

fn as_amount(tokens: u64) -> f64 {
    u32::try_from(tokens).map_or(f64::from(u32::MAX), f64::from)
}

impl Limits {
    fn counters(&self) -> MutexGuard<'_, HashMap<Counter, f64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request, or says which limit is reached.
    pub(crate) fn admit(&self, key: &ServeKey, now: u64) -> Result<(), GatewayError> {
        if key.limits.is_empty() {
            return Ok(());
        }
        let mut counters = self.counters();
        // Windows of the past are never needed again.
        counters.retain(|counter, _| counter.window.1 >= now / counter.window.0.max(1));
        for limit in &key.limits {
            let spent = counters.get(&counter(key, limit, now)).copied().unwrap_or(0.0);
            if spent >= limit.amount {
                let length = limit.window.seconds();
                let reset = length - now % length;
                let kind = limit.kind.as_str();
                let message = format!(
                    "the limit of {} {kind} per {} of the key `{}` is reached: {} used; it is reset in {reset} s",
                    limit.amount,
                    limit.window.as_str(),
                    key.name,
                    (spent * 1e4).round() / 1e4,
                );
                return Err(GatewayError::new(ErrorKind::Limit { reset }, message));
            }
        }
        for limit in key.limits.iter().filter(|limit| limit.kind == LimitKind::Requests) {
            *counters.entry(counter(key, limit, now)).or_default() += 1.0;
        }
        Ok(())
    }

    /// Counts what a reply used.
    pub(crate) fn spend(&self, key: &ServeKey, spent: &Spent, now: u64) {
        let mut counters = self.counters();
        for limit in &key.limits {
            let amount = spent.amount(limit.kind);
            if amount > 0.0 {
                *counters.entry(counter(key, limit, now)).or_default() += amount;
            }
        }
    }
}

fn counter(key: &ServeKey, limit: &Limit, now: u64) -> Counter {
    let length = limit.window.seconds();
    Counter { key: key.name.clone(), kind: limit.kind.as_str(), window: (length, now / length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(limits: &[&str]) -> ServeKey {
        let limits = limits.iter().map(|text| Limit::parse_pair(text).expect("a limit")).collect();
        ServeKey {
            name: "ci".to_owned(),
            hash: [0; 32],
            tenant: "t".to_owned(),
            models: Vec::new(),
            limits,
            pass: Vec::new(),
        }
    }

    #[test]
    fn g11_requests_and_tokens_are_limited_until_the_window_ends() {
        let limits = Limits::default();
        let requests = key(&["requests=2/m"]);
        assert!(limits.admit(&requests, 60).is_ok());
        assert!(limits.admit(&requests, 61).is_ok());
        let refused = limits.admit(&requests, 70).expect_err("the third");
        assert_eq!(refused.kind, ErrorKind::Limit { reset: 50 });
        assert!(refused.message.contains("2 used"), "{refused}");
        assert!(limits.admit(&requests, 120).is_ok(), "the next minute");

        let tokens = key(&["tokens=100/h", "thinking=50/day"]);
        assert!(limits.admit(&tokens, 10).is_ok());
        let usage = Usage::default().with_input(40).with_output(59).with_thinking(10);
        limits.spend(&tokens, &Spent { usage, cost: None }, 10);
        assert!(limits.admit(&tokens, 20).is_ok(), "99 of 100");
        limits.spend(&tokens, &Spent { usage, cost: None }, 20);
        assert!(limits.admit(&tokens, 30).is_err(), "198 of 100");
        assert!(limits.admit(&tokens, 3600).is_ok(), "the next hour, with 20 of 50 thinking tokens");
    }
}
