//! How long a request really is: our count, set right by what the provider
//! counted so far in this session.

use aside_core::event::Usage;
use aside_core::protocol::Protocol;
use aside_core::tokens::{Answered, Calibration, Who, reported_input};

#[derive(Debug, Default)]
pub(crate) struct Measure {
    calibration: Calibration,
    /// The last request that was answered with a count.
    last: Option<(Who, Answered)>,
}

impl Measure {
    /// A request was answered; the provider may have said how long it was.
    pub(crate) fn answered(&mut self, who: Who, counted: u64, protocol: Protocol, usage: &Usage) {
        let Some(reported) = reported_input(protocol, usage) else { return };
        let answered = Answered { counted, reported };
        self.calibration.learn(&who, answered);
        self.last = Some((who, answered));
    }

    /// Another conversation: what was learned of the provider stays.
    pub(crate) fn forget_the_last(&mut self) {
        self.last = None;
    }

    /// A request of so many tokens by our count; none where nothing was learned.
    pub(crate) fn effective(&self, who: &Who, counted: u64) -> Option<u64> {
        let last = self.last.as_ref().filter(|(whose, _)| whose == who).map(|(_, answered)| *answered);
        let known = last.is_some() || self.calibration.factor(who).is_some();
        known.then(|| self.calibration.reconciled(who, last, counted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(model: &str) -> Who {
        Who { dialect: "generic".into(), model: model.into(), counter: "letters".into() }
    }

    fn usage(input: u64) -> Usage {
        Usage { input: Some(input), ..Usage::default() }
    }

    #[test]
    fn c2_what_was_reported_stands_and_the_growth_since_is_counted() {
        let mut measure = Measure::default();
        assert_eq!(measure.effective(&who("a"), 1000), None);
        measure.answered(who("a"), 1000, Protocol::OpenaiChat, &usage(1500));
        assert_eq!(measure.effective(&who("a"), 1000), Some(1500));
        assert_eq!(measure.effective(&who("a"), 1200), Some(1800));
        assert_eq!(measure.effective(&who("b"), 1000), None, "another model counts in its own way");
        measure.forget_the_last();
        assert_eq!(measure.effective(&who("a"), 2000), Some(3000), "what was learned stays");
    }

    #[test]
    fn c2_an_answer_without_a_count_changes_nothing() {
        let mut measure = Measure::default();
        measure.answered(who("a"), 1000, Protocol::OpenaiChat, &Usage::default());
        assert_eq!(measure.effective(&who("a"), 1000), None);
    }
}
