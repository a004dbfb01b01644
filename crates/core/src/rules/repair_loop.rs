//! Decides after each refusal of one request whether it is repaired and sent
//! again. The turn and the gateway share it.

use std::sync::Arc;

use super::repair::{Diagnosis, diagnose};
use super::{AppliedRepair, RefusedRequest};
use crate::dialect::{Dialects, Repair};
use crate::event::ProviderError;

/// How often one request is repaired and sent again.
pub(super) const MAX_RESENDS: usize = 4;

/// A repair that the user should know about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairNotice {
    /// The id of the error row.
    pub row: String,
    /// What was changed.
    pub repair: Repair,
    /// The provider's message.
    pub refusal: String,
}

/// The repairs of one request.
#[derive(Debug, Clone)]
pub struct RepairLoop<'a> {
    /// Their error catalogue is read at the first refusal.
    dialects: &'a Dialects,
    /// The repairs known before, then those tried for this request.
    repairs: Vec<AppliedRepair>,
    n_known: usize,
}

impl<'a> RepairLoop<'a> {
    /// Starts with the repairs that this endpoint is known to need.
    pub fn new(dialects: &'a Dialects, known: &[AppliedRepair]) -> RepairLoop<'a> {
        RepairLoop { dialects, repairs: known.to_vec(), n_known: known.len() }
    }

    /// The repairs to encode the request with.
    pub fn repairs(&self) -> &[AppliedRepair] {
        &self.repairs
    }

    /// The repairs that this request needed, in order.
    pub fn tried(&self) -> &[AppliedRepair] {
        self.repairs.get(self.n_known..).unwrap_or_default()
    }

    /// Whether a refusal is about thinking. Sending the same bytes again would
    /// be refused again.
    pub fn is_about_thinking(&self, error: &ProviderError, refused: &RefusedRequest) -> bool {
        self.diagnosis(error, refused).is_some()
    }

    /// Adds the smallest repair that was not tried yet and that changes the
    /// refused request. `encode` returns the body with some repairs. None if
    /// nothing is left to try, or the refusal is about something else. The same
    /// bytes are never sent again: they would be refused again.
    pub fn refused(
        &mut self,
        error: &ProviderError,
        refused: &RefusedRequest,
        mut encode: impl FnMut(&[AppliedRepair]) -> Arc<String>,
    ) -> Option<RepairNotice> {
        if self.tried().len() >= MAX_RESENDS {
            return None;
        }
        let Diagnosis { row, ladder } = self.diagnosis(error, refused)?;
        let mut untried = ladder.into_iter().filter(|applied| !applied.was_tried(&self.repairs));
        let applied = untried.find(|applied| {
            let repairs: Vec<AppliedRepair> = self.repairs.iter().chain([applied]).cloned().collect();
            encode(&repairs) != refused.body
        })?;
        let notice = RepairNotice { row, repair: applied.repair, refusal: error.message.clone() };
        self.repairs.push(applied);
        Some(notice)
    }

    fn diagnosis(&self, error: &ProviderError, refused: &RefusedRequest) -> Option<Diagnosis> {
        diagnose(self.dialects, error, refused)
    }
}

#[cfg(test)]
mod tests {
    use super::super::classify;
    use super::*;

    /// A request that every repair changes.
    fn refuse(repair_loop: &mut RepairLoop<'_>, error: &ProviderError) -> Option<RepairNotice> {
        let body = |repairs: &[AppliedRepair]| Arc::new(format!("{repairs:?}"));
        let refused = RefusedRequest::new(body(repair_loop.repairs()), Vec::new());
        repair_loop.refused(error, &refused, body)
    }

    fn error(message: &str) -> ProviderError {
        ProviderError::new(message).with_status(400)
    }

    /// The message of the row with this id.
    fn refusal(dialects: &Dialects, id: &str) -> ProviderError {
        let row = dialects.catalogue().iter().find(|row| row.id == id).unwrap();
        error(row.texts.first().unwrap())
    }

    fn repairs_of(dialects: &Dialects, known: &[AppliedRepair], refusals: &[ProviderError]) -> Vec<Repair> {
        let mut repair_loop = RepairLoop::new(dialects, known);
        let notices: Vec<RepairNotice> = refusals.iter().map_while(|error| refuse(&mut repair_loop, error)).collect();
        let repairs: Vec<Repair> = notices.iter().map(|notice| notice.repair).collect();
        let tried: Vec<Repair> = repair_loop.tried().iter().map(|applied| applied.repair).collect();
        assert_eq!(tried, repairs, "what was reported was tried");
        repairs
    }

    #[test]
    fn e11_a_refusal_about_thinking_is_repaired() {
        let dialects = Dialects::builtin().unwrap();
        let message = "The `reasoning_content` in the thinking mode must be passed back to the API.";
        let mut repair_loop = RepairLoop::new(&dialects, &[]);
        assert!(repair_loop.is_about_thinking(&error(message), &RefusedRequest::default()));
        let notice = refuse(&mut repair_loop, &error(message)).unwrap();
        assert_eq!(notice.refusal, message);
        assert_eq!(repair_loop.repairs(), [AppliedRepair::from(notice.repair)]);
        assert_eq!(repair_loop.tried(), repair_loop.repairs());
    }

    #[test]
    fn e11_a_refusal_about_something_else_is_not_repaired() {
        let dialects = Dialects::builtin().unwrap();
        let mut repair_loop = RepairLoop::new(&dialects, &[]);
        let error = ProviderError { status: Some(402), ..error("insufficient balance") };
        assert!(!repair_loop.is_about_thinking(&error, &RefusedRequest::default()));
        assert_eq!(refuse(&mut repair_loop, &error), None);
        assert_eq!(repair_loop.repairs(), []);
    }

    #[test]
    fn e11_a_repair_that_changes_nothing_is_not_sent() {
        let dialects = Dialects::builtin().unwrap();
        let mut repair_loop = RepairLoop::new(&dialects, &[]);
        let error = refusal(&dialects, "bad_signature");
        let refused = RefusedRequest::new(Arc::new("same".to_owned()), Vec::new());
        let changed_by = |only: Repair| {
            move |repairs: &[AppliedRepair]| {
                let is_changed = repairs.iter().any(|applied| applied.repair == only);
                Arc::new(if is_changed { "changed" } else { "same" }.to_owned())
            }
        };
        let notice = repair_loop.refused(&error, &refused, changed_by(Repair::StripTurn)).unwrap();
        assert_eq!(notice.repair, Repair::StripTurn);
        assert_eq!(repair_loop.tried(), [AppliedRepair::from(Repair::StripTurn)]);
        let mut repair_loop = RepairLoop::new(&dialects, &[]);
        let unchanged = || changed_by(Repair::FillAll);
        assert_eq!(repair_loop.refused(&error, &refused, unchanged()), None, "the same bytes are not sent again");
        assert_eq!(repair_loop.tried(), []);
    }

    #[test]
    fn e11_the_repairs_are_tried_in_order_and_each_once() {
        let dialects = Dialects::builtin().unwrap();
        for row in dialects.catalogue().iter().filter(|row| row.when.is_none()) {
            let refusals = vec![refusal(&dialects, &row.id); 8];
            let first = classify(dialects.catalogue(), Some(400), &refusals[0].message).unwrap();
            let ladder = AppliedRepair::ladder(first, &refusals[0].message);
            let ladder: Vec<Repair> = ladder.iter().map(|applied| applied.repair).collect();
            assert_eq!(repairs_of(&dialects, &[], &refusals), ladder, "{}", row.id);
            let known: Vec<AppliedRepair> =
                AppliedRepair::ladder(first, &refusals[0].message).into_iter().take(1).collect();
            let rest: Vec<Repair> = ladder.iter().skip(1).copied().collect();
            assert_eq!(repairs_of(&dialects, &known, &refusals), rest, "{}: a known repair was tried", row.id);
        }
    }

    #[test]
    fn e11_a_request_is_repaired_a_few_times_at_most() {
        let dialects = Dialects::builtin().unwrap();
        // Each kind of refusal once: more repairs than a request may need.
        let all: Vec<ProviderError> = dialects.catalogue().iter().map(|row| refusal(&dialects, &row.id)).collect();
        let known: Vec<AppliedRepair> = [Repair::FillAll, Repair::Dedupe].map(AppliedRepair::from).to_vec();
        assert_eq!(repairs_of(&dialects, &known, &all).len(), MAX_RESENDS);
    }
}
