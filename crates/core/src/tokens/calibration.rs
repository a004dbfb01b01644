//! Calibrates our token counts with the usage that providers report. Providers
//! add their own prompts to a request and use their own vocabulary, which both
//! affect the reported usage.

use std::collections::BTreeMap;

use crate::event::Usage;
use crate::protocol::Protocol;

/// A reported count below this fraction does not cover the whole request: a
/// part was cached and is reported elsewhere. The letter-based estimate can be
/// three times too high, so this is less than a half.
const MIN_RATIO: f64 = 0.25;
/// Above this factor, the provider counts its own tools as well, which must not
/// be learned.
const MAX_RATIO: f64 = 2.5;
/// The weight of earlier reports when a new one is added.
const DECAY: f64 = 0.75;

/// Identifies what is calibrated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalibrationKey {
    /// The id of the dialect.
    pub dialect: String,
    /// The model as requested.
    pub model: String,
    /// The name of the counter, from [`super::TokenCounter::name`].
    pub counter: String,
}

/// Recent tokens, as counted by us and as reported. Plain values that can be
/// stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountRatio {
    counted: f64,
    reported: f64,
}

impl CountRatio {
    /// Restores two stored sums. None if they are implausible.
    pub fn of(counted: f64, reported: f64) -> Option<CountRatio> {
        let learned = CountRatio { counted, reported };
        let sound = counted.is_finite() && counted > 0.0 && (MIN_RATIO..=MAX_RATIO).contains(&learned.factor());
        sound.then_some(learned)
    }

    /// The weighted sum of our counts.
    pub fn counted(self) -> f64 {
        self.counted
    }

    /// The weighted sum of the provider's counts.
    pub fn reported(self) -> f64 {
        self.reported
    }

    /// Reported tokens per counted token.
    pub fn factor(self) -> f64 {
        self.reported / self.counted
    }
}

/// The calibration for each dialect and model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calibration {
    learned: BTreeMap<CalibrationKey, CountRatio>,
}

impl Calibration {
    /// Nothing is learned yet.
    pub fn new() -> Calibration {
        Calibration::default()
    }

    /// Adds a reported count. Long and recent requests weigh more.
    pub fn learn(&mut self, key: &CalibrationKey, answered: ReportedCount) {
        let Some(reported) = answered.plausible() else { return };
        let before = self.learned.get(key).copied().unwrap_or(CountRatio { counted: 0.0, reported: 0.0 });
        let now = CountRatio {
            counted: before.counted * DECAY + answered.counted as f64,
            reported: before.reported * DECAY + reported,
        };
        self.learned.insert(key.clone(), now);
    }

    /// Restores a stored ratio.
    pub fn restore(&mut self, key: CalibrationKey, learned: CountRatio) {
        self.learned.insert(key, learned);
    }

    /// Everything learned, to be stored.
    pub fn iter(&self) -> impl Iterator<Item = (&CalibrationKey, CountRatio)> {
        self.learned.iter().map(|(key, learned)| (key, *learned))
    }

    /// Reported tokens per counted token. None if nothing is learned.
    pub fn factor(&self, key: &CalibrationKey) -> Option<f64> {
        self.learned.get(key).map(|learned| learned.factor())
    }

    /// Converts our count to the provider's tokens, if a ratio is known.
    pub fn calibrated(&self, key: &CalibrationKey, counted: u64) -> u64 {
        scaled(counted, self.factor(key).unwrap_or(1.0))
    }

    /// The count for the next request, based on the reported count of the last
    /// one. Only the growth since then is estimated.
    pub fn reconciled(&self, key: &CalibrationKey, last: Option<ReportedCount>, counted: u64) -> u64 {
        let Some((last, reported)) = last.and_then(|last| last.plausible().map(|reported| (last, reported))) else {
            return self.calibrated(key, counted);
        };
        match counted.checked_sub(last.counted) {
            Some(growth) => (reported as u64).saturating_add(self.calibrated(key, growth)),
            // The request shrank: scale it with the last ratio.
            None => scaled(counted, reported / last.counted as f64),
        }
    }
}

/// Our count for a request, with the count its provider reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedCount {
    /// Tokens by our counter.
    pub counted: u64,
    /// Input tokens as the provider reported them.
    pub reported: u64,
}

impl ReportedCount {
    /// The reported count, if it is plausible, bounded by what a request of
    /// this size can explain.
    fn plausible(self) -> Option<f64> {
        let (counted, reported) = (self.counted as f64, self.reported as f64);
        (self.counted > 0 && reported >= counted * MIN_RATIO).then(|| reported.min(counted * MAX_RATIO))
    }
}

/// The reported input tokens of the whole request. Two protocols report tokens
/// read from or written to the cache separately.
pub fn reported_input(protocol: Protocol, usage: &Usage) -> Option<u64> {
    let cached = match protocol {
        Protocol::Anthropic | Protocol::Bedrock => {
            usage.cached.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0))
        }
        Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Gemini | Protocol::Ollama | Protocol::Cohere => 0,
    };
    usage.input.map(|input| input.saturating_add(cached))
}

/// Rounds up, since estimates should err high.
fn scaled(tokens: u64, factor: f64) -> u64 {
    (tokens as f64 * factor).ceil() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> CalibrationKey {
        CalibrationKey { dialect: "generic".into(), model: "some-model".into(), counter: "letters".into() }
    }

    /// Counted and reported tokens.
    type CountPair = (u64, u64);

    fn after(pairs: &[CountPair]) -> Calibration {
        let mut calibration = Calibration::new();
        for (counted, reported) in pairs {
            calibration.learn(&key(), ReportedCount { counted: *counted, reported: *reported });
        }
        calibration
    }

    #[test]
    fn c4_the_factor_is_reported_over_counted() {
        #[rustfmt::skip]
        let cases: &[(&str, &[CountPair], Option<f64>)] = &[
            ("nothing yet",                 &[],                               None),
            ("one answer",                  &[(1000, 800)],                    Some(0.8)),
            ("the long one weighs more",    &[(100, 200), (10_000, 10_000)],   Some(10_150.0 / 10_075.0)),
            ("the late one weighs more",    &[(1000, 1000), (1000, 2000)],     Some(2750.0 / 1750.0)),
            ("cached parts told elsewhere", &[(1000, 800), (9000, 12)],        Some(0.8)),
            ("somebody else's tools",       &[(1000, 90_000)],                 Some(2.5)),
            ("nothing was counted",         &[(0, 50)],                        None),
        ];
        for (name, pairs, expected) in cases {
            assert_eq!(after(pairs).factor(&key()), *expected, "{name}");
        }
    }

    #[test]
    fn c4_calibration_is_separate_for_each_counter_and_model() {
        let calibration = after(&[(1000, 1500)]);
        let other = CalibrationKey { counter: "o200k_base".into(), ..key() };
        assert_eq!((calibration.calibrated(&key(), 10), calibration.calibrated(&other, 10)), (15, 10));
    }

    #[test]
    fn c2_the_reported_count_is_kept_and_only_the_growth_is_estimated() {
        let calibration = after(&[(1000, 1200)]);
        let last = |counted, reported| Some(ReportedCount { counted, reported });
        #[rustfmt::skip]
        let cases = [
            ("the same request",     last(1000, 1200), 1000, 1200),
            ("a turn more",          last(1000, 1200), 1100, 1320),
            ("something taken out",  last(1000, 1200), 500,  600),
            ("never answered",       None,             1000, 1200),
            ("an implausible one",   last(1000, 3),    1000, 1200),
        ];
        for (name, last, counted, expected) in cases {
            assert_eq!(calibration.reconciled(&key(), last, counted), expected, "{name}");
        }
    }

    #[test]
    fn c2_cached_tokens_count_as_input() {
        let usage = Usage { input: Some(10), cached: Some(90), ..Usage::default() };
        assert_eq!(reported_input(Protocol::Anthropic, &usage), Some(100));
        assert_eq!(reported_input(Protocol::OpenaiChat, &usage), Some(10));
        assert_eq!(reported_input(Protocol::OpenaiChat, &Usage::default()), None);
    }

    #[test]
    fn c4_ratios_can_be_stored_and_restored() {
        let calibration = after(&[(1000, 800), (500, 900)]);
        let mut restored = Calibration::new();
        for (key, learned) in calibration.iter() {
            let learned = CountRatio::of(learned.counted(), learned.reported()).expect("it was valid");
            restored.restore(key.clone(), learned);
        }
        assert_eq!(restored, calibration);
        for (counted, reported) in [(0.0, 1.0), (-1.0, -1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY), (1.0, 9.0)] {
            assert_eq!(CountRatio::of(counted, reported), None, "{counted} {reported}");
        }
    }

    proptest! {
        #[test]
        fn c4_no_report_drives_the_factor_out_of_bounds(pairs in prop::collection::vec((any::<u32>(), any::<u32>()), 1..20)) {
            let pairs: Vec<CountPair> = pairs.into_iter().map(|(counted, reported)| (counted.into(), reported.into())).collect();
            if let Some(factor) = after(&pairs).factor(&key()) {
                prop_assert!((MIN_RATIO - 1e-9..=MAX_RATIO + 1e-9).contains(&factor), "{factor}");
            }
        }
    }
}
