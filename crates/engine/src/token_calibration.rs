//! Corrects our token counts with the counts that the provider reported in this session.

use aside_core::event::Usage;
use aside_core::protocol::Protocol;
use aside_core::tokens::{Calibration, CalibrationKey, ReportedCount, reported_input};

#[derive(Debug, Default)]
pub(crate) struct SessionCalibration {
    calibration: Calibration,
    /// The last request with a reported count.
    last: Option<(CalibrationKey, ReportedCount)>,
}

impl SessionCalibration {
    /// Learns from a reply, if the provider reported its input tokens.
    pub(crate) fn record_reply(&mut self, key: CalibrationKey, counted: u64, protocol: Protocol, usage: &Usage) {
        let Some(reported) = reported_input(protocol, usage) else { return };
        let count = ReportedCount { counted, reported };
        self.calibration.learn(&key, count);
        self.last = Some((key, count));
    }

    /// For another conversation. What was learned about the provider stays.
    pub(crate) fn forget_last_request(&mut self) {
        self.last = None;
    }

    /// The reported count of the last request, if this one continues it.
    pub(crate) fn reported_before(&self, key: &CalibrationKey, counted: u64) -> Option<u64> {
        let (last_key, last) = self.last.as_ref()?;
        (last_key == key && last.counted <= counted).then_some(last.reported)
    }

    /// Corrects our count of a request; `None` if the provider reported no count yet.
    pub(crate) fn calibrated_tokens(&self, key: &CalibrationKey, counted: u64) -> Option<u64> {
        let last = self.last.as_ref().filter(|(last_key, _)| last_key == key).map(|(_, count)| *count);
        let known = last.is_some() || self.calibration.factor(key).is_some();
        known.then(|| self.calibration.reconciled(key, last, counted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(model: &str) -> CalibrationKey {
        CalibrationKey { dialect: "generic".into(), model: model.into(), counter: "letters".into() }
    }

    fn usage(input: u64) -> Usage {
        Usage::default().with_input(input)
    }

    #[test]
    fn c2_the_reported_count_is_used_and_growth_since_then_is_added() {
        let mut calibration = SessionCalibration::default();
        assert_eq!(calibration.calibrated_tokens(&key("a"), 1000), None);
        calibration.record_reply(key("a"), 1000, Protocol::OpenaiChat, &usage(1500));
        assert_eq!(calibration.calibrated_tokens(&key("a"), 1000), Some(1500));
        assert_eq!(calibration.calibrated_tokens(&key("a"), 1200), Some(1800));
        assert_eq!(calibration.calibrated_tokens(&key("b"), 1000), None, "another model counts in its own way");
        assert_eq!(calibration.reported_before(&key("a"), 1200), Some(1500));
        assert_eq!(calibration.reported_before(&key("a"), 900), None, "something was taken out");
        calibration.forget_last_request();
        assert_eq!(calibration.reported_before(&key("a"), 1200), None);
        assert_eq!(calibration.calibrated_tokens(&key("a"), 2000), Some(3000), "what was learned stays");
    }

    #[test]
    fn c2_an_answer_without_a_count_changes_nothing() {
        let mut calibration = SessionCalibration::default();
        calibration.record_reply(key("a"), 1000, Protocol::OpenaiChat, &Usage::default());
        assert_eq!(calibration.calibrated_tokens(&key("a"), 1000), None);
    }
}
