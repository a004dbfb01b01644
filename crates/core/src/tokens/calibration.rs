//! What providers' own counts teach about ours. A provider wraps a request in
//! words of its own and has a vocabulary of its own; both show in the usage it
//! reports.

use std::collections::BTreeMap;

use crate::event::Usage;
use crate::protocol::Protocol;

/// A report of less than this share is no count of the whole request: a part
/// of it was cached and is told elsewhere. Letters count recorded requests up
/// to three times too high, so it is not a half.
const LEAST: f64 = 0.25;
/// What a provider's own tools add is not to be learned as the price of ours.
const MOST: f64 = 2.5;
/// How much of what was known is left when something new is learned.
const KEPT: f64 = 0.75;

/// Whose counts, and what they are compared with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    pub dialect: String,
    pub model: String,
    /// [`super::Counter::name`] of the counter.
    pub counter: String,
}

/// What is known about one of them: recent tokens, as we counted them and as
/// they were reported. Plain values, to be stored and given back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learned {
    counted: f64,
    reported: f64,
}

impl Learned {
    /// From two sums that were stored; none where they cannot be such.
    pub fn of(counted: f64, reported: f64) -> Option<Learned> {
        let learned = Learned { counted, reported };
        let sound = counted.is_finite() && counted > 0.0 && (LEAST..=MOST).contains(&learned.factor());
        sound.then_some(learned)
    }

    pub fn counted(self) -> f64 {
        self.counted
    }

    pub fn reported(self) -> f64 {
        self.reported
    }

    /// Reported tokens for each one counted.
    pub fn factor(self) -> f64 {
        self.reported / self.counted
    }
}

/// What was learned from reported usage, for each dialect and model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calibration {
    learned: BTreeMap<Who, Learned>,
}

impl Calibration {
    pub fn new() -> Calibration {
        Calibration::default()
    }

    /// Takes in one answered request. Long requests and late ones weigh more.
    pub fn learn(&mut self, who: &Who, answered: Answered) {
        let Some(reported) = answered.plausible() else { return };
        let before = self.learned.get(who).copied().unwrap_or(Learned { counted: 0.0, reported: 0.0 });
        let now = Learned {
            counted: before.counted * KEPT + answered.counted as f64,
            reported: before.reported * KEPT + reported,
        };
        self.learned.insert(who.clone(), now);
    }

    /// What a store kept.
    pub fn restore(&mut self, who: Who, learned: Learned) {
        self.learned.insert(who, learned);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Who, Learned)> {
        self.learned.iter().map(|(who, learned)| (who, *learned))
    }

    pub fn factor(&self, who: &Who) -> Option<f64> {
        self.learned.get(who).map(|learned| learned.factor())
    }

    /// A count in the provider's own tokens, as far as they are known.
    pub fn calibrated(&self, who: &Who, counted: u64) -> u64 {
        scaled(counted, self.factor(who).unwrap_or(1.0))
    }

    /// A count of the next request after one that was answered: what was
    /// reported for it stands, and only the growth since is counted.
    pub fn reconciled(&self, who: &Who, last: Option<Answered>, counted: u64) -> u64 {
        let Some((last, reported)) = last.and_then(|last| last.plausible().map(|reported| (last, reported))) else {
            return self.calibrated(who, counted);
        };
        match counted.checked_sub(last.counted) {
            Some(growth) => (reported as u64).saturating_add(self.calibrated(who, growth)),
            // Something was taken out: what is left costs what it did.
            None => scaled(counted, reported / last.counted as f64),
        }
    }
}

/// A request whose answer said what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    pub counted: u64,
    pub reported: u64,
}

impl Answered {
    /// What was reported, where it can be a count of this request; no more of
    /// it than a request of this size explains.
    fn plausible(self) -> Option<f64> {
        let (counted, reported) = (self.counted as f64, self.reported as f64);
        (self.counted > 0 && reported >= counted * LEAST).then(|| reported.min(counted * MOST))
    }
}

/// The tokens of the whole request in a report. Two protocols tell what was
/// read from a cache apart from the rest.
pub fn reported_input(protocol: Protocol, usage: &Usage) -> Option<u64> {
    let cached = match protocol {
        Protocol::Anthropic | Protocol::Bedrock => usage.cached.unwrap_or(0),
        Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Gemini | Protocol::Ollama | Protocol::Cohere => 0,
    };
    usage.input.map(|input| input.saturating_add(cached))
}

/// Rounded up: an estimate errs high.
fn scaled(tokens: u64, factor: f64) -> u64 {
    (tokens as f64 * factor).ceil() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn who() -> Who {
        Who { dialect: "generic".into(), model: "some-model".into(), counter: "letters".into() }
    }

    /// Counted, and reported.
    type Pair = (u64, u64);

    fn after(pairs: &[Pair]) -> Calibration {
        let mut calibration = Calibration::new();
        for (counted, reported) in pairs {
            calibration.learn(&who(), Answered { counted: *counted, reported: *reported });
        }
        calibration
    }

    #[test]
    fn c4_the_factor_is_what_was_reported_of_what_was_counted() {
        #[rustfmt::skip]
        let cases: &[(&str, &[Pair], Option<f64>)] = &[
            ("nothing yet",                 &[],                               None),
            ("one answer",                  &[(1000, 800)],                    Some(0.8)),
            ("the long one weighs more",    &[(100, 200), (10_000, 10_000)],   Some(10_150.0 / 10_075.0)),
            ("the late one weighs more",    &[(1000, 1000), (1000, 2000)],     Some(2750.0 / 1750.0)),
            ("cached parts told elsewhere", &[(1000, 800), (9000, 12)],        Some(0.8)),
            ("somebody else's tools",       &[(1000, 90_000)],                 Some(2.5)),
            ("nothing was counted",         &[(0, 50)],                        None),
        ];
        for (name, pairs, expected) in cases {
            assert_eq!(after(pairs).factor(&who()), *expected, "{name}");
        }
    }

    #[test]
    fn c4_what_is_learned_about_one_counter_or_model_says_nothing_about_another() {
        let calibration = after(&[(1000, 1500)]);
        let other = Who { counter: "o200k_base".into(), ..who() };
        assert_eq!((calibration.calibrated(&who(), 10), calibration.calibrated(&other, 10)), (15, 10));
    }

    #[test]
    fn c2_a_report_stands_and_only_the_growth_is_counted() {
        let calibration = after(&[(1000, 1200)]);
        let last = |counted, reported| Some(Answered { counted, reported });
        #[rustfmt::skip]
        let cases = [
            ("the same request",     last(1000, 1200), 1000, 1200),
            ("a turn more",          last(1000, 1200), 1100, 1320),
            ("something taken out",  last(1000, 1200), 500,  600),
            ("never answered",       None,             1000, 1200),
            ("an implausible one",   last(1000, 3),    1000, 1200),
        ];
        for (name, last, counted, expected) in cases {
            assert_eq!(calibration.reconciled(&who(), last, counted), expected, "{name}");
        }
    }

    #[test]
    fn c2_what_a_cache_gave_belongs_to_the_request() {
        let usage = Usage { input: Some(10), cached: Some(90), ..Usage::default() };
        assert_eq!(reported_input(Protocol::Anthropic, &usage), Some(100));
        assert_eq!(reported_input(Protocol::OpenaiChat, &usage), Some(10));
        assert_eq!(reported_input(Protocol::OpenaiChat, &Usage::default()), None);
    }

    #[test]
    fn c4_what_was_learned_can_be_stored_and_given_back() {
        let calibration = after(&[(1000, 800), (500, 900)]);
        let mut restored = Calibration::new();
        for (who, learned) in calibration.iter() {
            let learned = Learned::of(learned.counted(), learned.reported()).expect("it was valid");
            restored.restore(who.clone(), learned);
        }
        assert_eq!(restored, calibration);
        for (counted, reported) in [(0.0, 1.0), (-1.0, -1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY), (1.0, 9.0)] {
            assert_eq!(Learned::of(counted, reported), None, "{counted} {reported}");
        }
    }

    proptest! {
        #[test]
        fn c4_no_report_drives_the_factor_out_of_bounds(pairs in prop::collection::vec((any::<u32>(), any::<u32>()), 1..20)) {
            let pairs: Vec<Pair> = pairs.into_iter().map(|(counted, reported)| (counted.into(), reported.into())).collect();
            if let Some(factor) = after(&pairs).factor(&who()) {
                prop_assert!((LEAST - 1e-9..=MOST + 1e-9).contains(&factor), "{factor}");
            }
        }
    }
}
