//! The token rate of a reply, and token counts as shown.

use aside_core::block::Time;
use aside_front::StreamedTokens;
pub use aside_front::format_count;

/// The token rate: over the last seconds while streaming, over the whole reply afterwards.
#[derive(Debug, Default)]
pub struct TokenRate {
    counter: StreamedTokens,
    began: Option<Time>,
    last: Option<Time>,
    /// Time and token count at the start of the measuring window.
    window_start: Option<(Time, u64)>,
    shown: Option<u64>,
    /// The token count that the provider reported for this reply.
    reported: Option<u64>,
    /// Whether the shown rate uses the reported count.
    exact: bool,
}

const WINDOW_MS: u64 = 3000;
/// A shorter period gives no meaningful rate.
const MIN_MS: u64 = 500;
const PAUSE_MS: u64 = 700;

impl TokenRate {
    pub fn begin(&mut self) {
        *self = TokenRate { shown: self.shown, exact: self.exact, ..TokenRate::default() };
    }

    pub fn push(&mut self, text: &str, now: Option<Time>) {
        self.counter.push(text);
        if let Some(now) = now {
            self.began.get_or_insert(now);
            self.last = Some(now);
        }
    }

    /// Updates the rate as time passes.
    pub fn tick(&mut self, now: Time) {
        let Some(began) = self.began else { return };
        // Waiting for a tool or a permission answer does not lower the rate.
        if self.last.is_some_and(|last| now.0.saturating_sub(last.0) > PAUSE_MS) {
            return;
        }
        let (from, before) = *self.window_start.get_or_insert((began, 0));
        let passed = now.0.saturating_sub(from.0);
        let tokens = self.counter.tokens();
        if passed >= MIN_MS {
            self.shown = Some(tokens.saturating_sub(before) * 1000 / passed);
            self.exact = false;
        }
        if passed > WINDOW_MS {
            self.window_start = Some((now, tokens));
        }
    }

    pub fn end(&mut self) {
        if let (Some(began), Some(last)) = (self.began, self.last) {
            let passed = last.0.saturating_sub(began.0);
            if passed >= MIN_MS {
                self.shown = Some(self.reported.unwrap_or(self.counter.tokens()) * 1000 / passed);
                self.exact = self.reported.is_some();
            }
        }
        self.began = None;
    }

    /// Sets the token count reported by the provider, without hidden thinking.
    pub fn set_reported(&mut self, tokens: u64) {
        self.reported = Some(tokens).filter(|tokens| *tokens > 0);
    }

    /// Tokens per second, if known.
    pub fn per_second(&self) -> Option<u64> {
        self.shown
    }

    /// Whether the rate uses the provider's count rather than an estimate.
    pub fn is_exact(&self) -> bool {
        self.exact
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t11_token_counts_are_short() {
        let cases = [(0, "0"), (999, "999"), (1000, "1k"), (12_345, "12.3k"), (200_000, "200k"), (1_250_000, "1.3M")];
        for (tokens, expected) in cases {
            assert_eq!(format_count(tokens), expected);
        }
    }

    #[test]
    fn t11_a_rate_needs_time_and_the_last_one_stays() {
        let mut rate = TokenRate::default();
        rate.push("some words", Some(Time(0)));
        rate.tick(Time(100));
        assert_eq!(rate.per_second(), None, "too early to say");
        rate.push(&"word ".repeat(100), Some(Time(1000)));
        rate.tick(Time(1000));
        let running = rate.per_second().unwrap();
        assert!((90..=200).contains(&running), "{running}");
        rate.end();
        assert_eq!(rate.per_second(), Some(running));
        assert!(!rate.is_exact(), "nothing was reported");
    }

    #[test]
    fn t11_a_reported_count_is_not_an_estimate() {
        let mut rate = TokenRate::default();
        rate.push("some", Some(Time(0)));
        rate.push(&"word ".repeat(100), Some(Time(2000)));
        rate.set_reported(300);
        rate.end();
        assert_eq!((rate.per_second(), rate.is_exact()), (Some(150), true));
        // The next reply is estimated again while it streams.
        rate.begin();
        rate.push(&"word ".repeat(100), Some(Time(5000)));
        rate.push(&"word ".repeat(100), Some(Time(6000)));
        rate.tick(Time(6000));
        assert!(!rate.is_exact());
    }
}
