//! About how many tokens a text has that is still coming. An estimate, and
//! shown as one.

use aside_core::block::Time;
use aside_core::tokens::estimate;

/// Text is counted in pieces of this size, so that counting a delta costs
/// what the delta costs.
const PIECE: usize = 256;

#[derive(Debug, Default)]
pub struct Count {
    tokens: u64,
    rest: String,
}

impl Count {
    pub fn push(&mut self, text: &str) {
        self.rest.push_str(text);
        if self.rest.len() > PIECE {
            self.tokens += estimate(&self.rest);
            self.rest.clear();
        }
    }

    pub fn tokens(&self) -> u64 {
        self.tokens + estimate(&self.rest)
    }
}

/// How fast tokens come: over the last seconds while they do, over the whole
/// reply afterwards.
#[derive(Debug, Default)]
pub struct Rate {
    count: Count,
    began: Option<Time>,
    last: Option<Time>,
    /// The clock and the count some seconds ago.
    mark: Option<(Time, u64)>,
    shown: Option<u64>,
    /// What the provider counted of this reply.
    counted: Option<u64>,
    /// Whose tokens are shown.
    exact: bool,
}

const WINDOW_MS: u64 = 3000;
/// Over less than this a rate says nothing.
const LEAST_MS: u64 = 500;
const PAUSE_MS: u64 = 700;

impl Rate {
    pub fn begin(&mut self) {
        *self = Rate { shown: self.shown, exact: self.exact, ..Rate::default() };
    }

    pub fn push(&mut self, text: &str, now: Option<Time>) {
        self.count.push(text);
        if let Some(now) = now {
            self.began.get_or_insert(now);
            self.last = Some(now);
        }
    }

    /// Called as time goes on.
    pub fn tick(&mut self, now: Time) {
        let Some(began) = self.began else { return };
        // Waiting for a tool or an answer is not writing slowly.
        if self.last.is_some_and(|last| now.0.saturating_sub(last.0) > PAUSE_MS) {
            return;
        }
        let (from, before) = *self.mark.get_or_insert((began, 0));
        let passed = now.0.saturating_sub(from.0);
        let tokens = self.count.tokens();
        if passed >= LEAST_MS {
            self.shown = Some(tokens.saturating_sub(before) * 1000 / passed);
            self.exact = false;
        }
        if passed > WINDOW_MS {
            self.mark = Some((now, tokens));
        }
    }

    pub fn end(&mut self) {
        if let (Some(began), Some(last)) = (self.began, self.last) {
            let passed = last.0.saturating_sub(began.0);
            if passed >= LEAST_MS {
                self.shown = Some(self.counted.unwrap_or(self.count.tokens()) * 1000 / passed);
                self.exact = self.counted.is_some();
            }
        }
        self.began = None;
    }

    /// What the provider says the reply comes to, as far as it was seen coming.
    pub fn counted(&mut self, tokens: u64) {
        self.counted = Some(tokens).filter(|tokens| *tokens > 0);
    }

    /// Tokens a second, if known.
    pub fn per_second(&self) -> Option<u64> {
        self.shown
    }

    /// By the provider's count, not by an estimate.
    pub fn is_exact(&self) -> bool {
        self.exact
    }
}

/// `950`, `12.3k`, `200k`, `1.2M`.
pub fn short(tokens: u64) -> String {
    let tenth = |unit: u64, letter: char| {
        let tenths = (tokens * 10 + unit / 2) / unit;
        match tenths % 10 {
            0 => format!("{}{letter}", tenths / 10),
            part => format!("{}.{part}{letter}", tenths / 10),
        }
    };
    match tokens {
        0..=999 => tokens.to_string(),
        1_000..=999_949 => tenth(1_000, 'k'),
        _ => tenth(1_000_000, 'M'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t11_tokens_are_short() {
        let cases = [(0, "0"), (999, "999"), (1000, "1k"), (12_345, "12.3k"), (200_000, "200k"), (1_250_000, "1.3M")];
        for (tokens, expected) in cases {
            assert_eq!(short(tokens), expected);
        }
    }

    #[test]
    fn t11_no_rate_is_invented_and_the_last_one_stays() {
        let mut rate = Rate::default();
        rate.push("some words", Some(Time(0)));
        rate.tick(Time(100));
        assert_eq!(rate.per_second(), None, "too early to say");
        rate.push(&"word ".repeat(100), Some(Time(1000)));
        rate.tick(Time(1000));
        let running = rate.per_second().unwrap();
        assert!((90..=200).contains(&running), "{running}");
        rate.end();
        assert_eq!(rate.per_second(), Some(running));
        assert!(!rate.is_exact(), "nobody counted");
    }

    #[test]
    fn t11_what_the_provider_counted_is_no_estimate() {
        let mut rate = Rate::default();
        rate.push("some", Some(Time(0)));
        rate.push(&"word ".repeat(100), Some(Time(2000)));
        rate.counted(300);
        rate.end();
        assert_eq!((rate.per_second(), rate.is_exact()), (Some(150), true));
        // The next reply is estimated again while it comes.
        rate.begin();
        rate.push(&"word ".repeat(100), Some(Time(5000)));
        rate.push(&"word ".repeat(100), Some(Time(6000)));
        rate.tick(Time(6000));
        assert!(!rate.is_exact());
    }
}
