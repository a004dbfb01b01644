//! How much each key has used in the current calendar window.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aside_core::event::Usage;
use aside_core::model_table::UsageCounting;
use aside_memory::SpendRow;
use aside_session::serve_table::{Limit, LimitKind, LimitWindow, ServeKey};

use crate::config::Target;
use crate::error_response::{ErrorKind, GatewayError};

/// Amounts are stored in millionths, so that rounding of money is negligible.
const PARTS: f64 = 1e6;

/// The longest window; one that began earlier is over.
const LONGEST_WINDOW: u64 = LimitWindow::Day.seconds();

/// The amounts that keys have used, in this process and in the others of the same store.
#[derive(Debug)]
pub(crate) struct Limits {
    /// The name of this process in the store. A process has a new name after a restart, so earlier amounts still count.
    replica: String,
    used: Mutex<UsedAmounts>,
}

#[derive(Debug, Default)]
struct UsedAmounts {
    own: HashMap<Counter, f64>,
    others: HashMap<Counter, f64>,
    /// What has changed since the store was told.
    unsaved: HashSet<Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Counter {
    key: String,
    kind: LimitKind,
    window: LimitWindow,
    /// The number of the window since 1970.
    number: u64,
}

impl Counter {
    fn to_row(&self, replica: &str, amount: f64) -> SpendRow {
        let began = self.number.saturating_mul(self.window.seconds());
        SpendRow {
            key: self.key.clone(),
            kind: format!("{}/{}", self.kind.as_str(), self.window.as_str()),
            window: i64::try_from(began).unwrap_or(i64::MAX),
            replica: replica.to_owned(),
            total: (amount * PARTS).round() as u64,
        }
    }

    /// None if a newer version wrote the row.
    fn of_row(row: &SpendRow) -> Option<Counter> {
        let (kind, window) = row.kind.split_once('/')?;
        let (kind, window) = (LimitKind::parse(kind)?, LimitWindow::parse(window)?);
        let number = u64::try_from(row.window).ok()? / window.seconds();
        Some(Counter { key: row.key.clone(), kind, window, number })
    }
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
    pub(crate) fn new(replica: String) -> Limits {
        Limits { replica, used: Mutex::default() }
    }

    fn used(&self) -> MutexGuard<'_, UsedAmounts> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request, or says which limit is reached.
    pub(crate) fn admit(&self, key: &ServeKey, now: u64) -> Result<(), GatewayError> {
        if key.limits.is_empty() {
            return Ok(());
        }
        let mut used = self.used();
        used.drop_past_windows(now);
        for limit in &key.limits {
            let spent = used.amount(&counter(key, limit, now));
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
            used.add(counter(key, limit, now), 1.0);
        }
        Ok(())
    }

    /// Counts what a reply used.
    pub(crate) fn spend(&self, key: &ServeKey, spent: &Spent, now: u64) {
        let mut used = self.used();
        for limit in &key.limits {
            let amount = spent.amount(limit.kind);
            if amount > 0.0 {
                used.add(counter(key, limit, now), amount);
            }
        }
    }

    /// What the store does not know yet. If the store does not answer, give it back to [`Limits::not_saved`].
    pub(crate) fn to_save(&self) -> Vec<SpendRow> {
        let mut used = self.used();
        let unsaved = std::mem::take(&mut used.unsaved);
        let row = |counter: &Counter| Some(counter.to_row(&self.replica, *used.own.get(counter)?));
        unsaved.iter().filter_map(row).collect()
    }

    pub(crate) fn not_saved(&self, rows: &[SpendRow]) {
        self.used().unsaved.extend(rows.iter().filter_map(Counter::of_row));
    }

    /// When the oldest window that still counts began, in seconds since 1970.
    pub(crate) fn oldest_window(now: u64) -> i64 {
        i64::try_from(now - now % LONGEST_WINDOW).unwrap_or(0)
    }

    /// Adopts the totals of all processes from the store.
    pub(crate) fn set_others(&self, rows: &[SpendRow]) {
        let mut others: HashMap<Counter, f64> = HashMap::new();
        for row in rows.iter().filter(|row| row.replica != self.replica) {
            if let Some(counter) = Counter::of_row(row) {
                *others.entry(counter).or_default() += row.total as f64 / PARTS;
            }
        }
        self.used().others = others;
    }
}

impl UsedAmounts {
    fn amount(&self, counter: &Counter) -> f64 {
        let of = |amounts: &HashMap<Counter, f64>| amounts.get(counter).copied().unwrap_or(0.0);
        of(&self.own) + of(&self.others)
    }

    fn add(&mut self, counter: Counter, amount: f64) {
        *self.own.entry(counter.clone()).or_default() += amount;
        self.unsaved.insert(counter);
    }

    /// They are never needed again.
    fn drop_past_windows(&mut self, now: u64) {
        let is_current = |counter: &Counter| counter.number >= now / counter.window.seconds();
        self.own.retain(|counter, _| is_current(counter));
        self.unsaved.retain(is_current);
    }
}

fn counter(key: &ServeKey, limit: &Limit, now: u64) -> Counter {
    let number = now / limit.window.seconds();
    Counter { key: key.name.clone(), kind: limit.kind, window: limit.window, number }
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
        let limits = Limits::new("r1".to_owned());
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
    #[test]
    fn g11_processes_add_up_what_they_counted() {
        let (ours, theirs) = (Limits::new("r1".to_owned()), Limits::new("r2".to_owned()));
        let key = key(&["requests=3/m", "money=1/day"]);
        for limits in [&ours, &theirs] {
            assert!(limits.admit(&key, 65).is_ok());
        }
        let cost = Spent { usage: Usage::default(), cost: Some(0.25) };
        theirs.spend(&key, &cost, 65);
        let mut rows = ours.to_save();
        rows.extend(theirs.to_save());
        assert!(theirs.to_save().is_empty(), "nothing has changed");
        theirs.not_saved(&rows);
        assert_eq!(theirs.to_save().len(), 2, "its own rows are saved again");
        assert_eq!(rows.len(), 3, "{rows:?}");
        ours.set_others(&rows);
        assert!(ours.admit(&key, 66).is_ok(), "two of three");
        assert!(ours.admit(&key, 67).is_err(), "three of three");
        ours.spend(&key, &Spent { cost: Some(0.75), ..cost }, 65);
        let refused = ours.admit(&key, 121).expect_err("the money is spent");
        assert!(refused.message.contains("1 used"), "{refused}");
        assert!(ours.admit(&key, 86_400).is_ok(), "the next day");
    }
}
