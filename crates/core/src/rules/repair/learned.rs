//! The repairs that worked, by endpoint and model. They are plain values: a
//! caller can store them and give them back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use super::AppliedRepair;
use super::applied::needs_details;
use crate::dialect::Repair;

/// Where a repair is known to be needed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepairKey {
    /// Without keys or passwords, because it may be stored.
    pub base_url: String,
    /// The id of the dialect.
    pub dialect: String,
    /// The model as requested.
    pub model: String,
}

/// One learned repair in the form in which it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LearnedRepair {
    /// As in [`RepairKey::base_url`].
    pub base_url: String,
    /// As in [`RepairKey::dialect`].
    pub dialect: String,
    /// As in [`RepairKey::model`].
    pub model: String,
    /// What is changed.
    #[serde(serialize_with = "repair_word")]
    pub repair: Repair,
    /// As in [`AppliedRepair::details`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

fn repair_word<S: Serializer>(repair: &Repair, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(repair.as_str())
}

/// The repairs that providers accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LearnedRepairs {
    known: BTreeMap<RepairKey, Vec<AppliedRepair>>,
}

impl LearnedRepairs {
    /// Nothing is learned yet.
    pub fn new() -> LearnedRepairs {
        LearnedRepairs::default()
    }

    /// Whether nothing is learned yet.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The repairs for an endpoint and model, in the order in which they were
    /// learned.
    pub fn of(&self, key: &RepairKey) -> &[AppliedRepair] {
        self.known.get(key).map_or(&[], Vec::as_slice)
    }

    /// Remembers a repair. The details of the last message win. A repair that
    /// is meant for one turn is not remembered.
    pub fn learn(&mut self, key: &RepairKey, applied: AppliedRepair) {
        if lasts_for_one_turn(applied.repair) {
            return;
        }
        let repairs = match self.known.get_mut(key) {
            Some(repairs) => repairs,
            None => self.known.entry(key.clone()).or_default(),
        };
        let same = |known: &&mut AppliedRepair| {
            known.repair == applied.repair && (!needs_details(applied.repair) || known.details == applied.details)
        };
        match repairs.iter_mut().find(same) {
            Some(known) => *known = applied,
            None => repairs.push(applied),
        }
    }

    /// Those that are about an endpoint and not about one conversation, to be
    /// stored.
    pub fn lasting(&self) -> impl Iterator<Item = LearnedRepair> {
        self.iter().filter(|learned| is_about_endpoint(learned.repair))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = LearnedRepair> {
        self.known.iter().flat_map(|(key, repairs)| {
            repairs.iter().map(|applied| LearnedRepair {
                base_url: key.base_url.clone(),
                dialect: key.dialect.clone(),
                model: key.model.clone(),
                repair: applied.repair,
                details: applied.details.clone(),
            })
        })
    }
}

/// What was stored is known again.
impl Extend<LearnedRepair> for LearnedRepairs {
    fn extend<T: IntoIterator<Item = LearnedRepair>>(&mut self, stored: T) {
        for LearnedRepair { base_url, dialect, model, repair, details } in stored {
            self.learn(&RepairKey { base_url, dialect, model }, AppliedRepair { repair, details });
        }
    }
}

impl FromIterator<LearnedRepair> for LearnedRepairs {
    fn from_iter<T: IntoIterator<Item = LearnedRepair>>(stored: T) -> LearnedRepairs {
        let mut learned = LearnedRepairs::new();
        learned.extend(stored);
        learned
    }
}

/// Whether a repair switches thinking off, which the next turn tries again.
fn lasts_for_one_turn(repair: Repair) -> bool {
    matches!(repair, Repair::OffForTurn | Repair::ToolChoiceAuto)
}

/// Whether a repair says something about the endpoint and the model. The others
/// concern the thinking of one conversation; the next one may be fine.
fn is_about_endpoint(repair: Repair) -> bool {
    match repair {
        Repair::DropField
        | Repair::SwitchMode
        | Repair::BindingHeader
        | Repair::FillAll
        | Repair::FillLoop
        | Repair::FillCalls
        | Repair::FillSpace
        | Repair::StandardBase64
        | Repair::NearestEffort
        | Repair::DropEffort
        | Repair::DropBudget
        | Repair::OmitEmptyContent
        | Repair::DropParameters
        | Repair::OmitOff
        | Repair::PlainRequest
        | Repair::SetParameter
        | Repair::OmitParameter
        | Repair::MoveParameter
        | Repair::OmitMember
        | Repair::AddMember
        | Repair::DropBesideText
        | Repair::StripField
        | Repair::EffortNone
        | Repair::DropToolChoice => true,
        Repair::DropBlock
        | Repair::StripForeign
        | Repair::DropOlder
        | Repair::StripTurn
        | Repair::OffForTurn
        | Repair::DropOrphan
        | Repair::DropFollowerIds
        | Repair::StripItems
        | Repair::FullItems
        | Repair::Dedupe
        | Repair::DropHidden
        | Repair::DropUnsealed
        | Repair::DummySignature
        | Repair::DummyEverywhere
        | Repair::ToolChoiceAuto
        | Repair::OmitIds
        | Repair::DropEmptied
        | Repair::ThinkingFirst => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(base_url: &str, model: &str) -> RepairKey {
        RepairKey { base_url: base_url.to_owned(), dialect: "generic".to_owned(), model: model.to_owned() }
    }

    fn learned() -> LearnedRepairs {
        let mut learned = LearnedRepairs::new();
        learned.learn(&key("a", "m"), Repair::FillAll.into());
        learned.learn(&key("a", "m"), Repair::OffForTurn.into());
        learned.learn(&key("a", "m"), Repair::ToolChoiceAuto.into());
        let restricted = |level: &str| AppliedRepair { repair: Repair::NearestEffort, details: vec![level.to_owned()] };
        learned.learn(&key("a", "m"), restricted("high"));
        learned.learn(&key("a", "m"), restricted("low"));
        learned.learn(&key("b", "n"), Repair::Dedupe.into());
        learned
    }

    #[test]
    fn e11_a_repair_is_remembered_for_its_endpoint_and_model_only() {
        let learned = learned();
        let restricted = AppliedRepair { repair: Repair::NearestEffort, details: vec!["low".to_owned()] };
        assert_eq!(learned.of(&key("a", "m")), [Repair::FillAll.into(), restricted], "repairs for a turn end with it");
        assert_eq!(learned.of(&key("b", "n")), [Repair::Dedupe.into()]);
        assert_eq!(learned.of(&key("a", "other")), []);
        assert_eq!(learned.of(&key("b", "m")), []);
    }

    #[test]
    fn e11_learned_repairs_can_be_stored_and_given_back() {
        let learned = learned();
        let stored: Vec<String> = learned.iter().map(|row| serde_json::to_string(&row).unwrap()).collect();
        let expected = [
            r#"{"baseUrl":"a","dialect":"generic","model":"m","repair":"fill_all"}"#,
            r#"{"baseUrl":"a","dialect":"generic","model":"m","repair":"nearest_effort","details":["low"]}"#,
            r#"{"baseUrl":"b","dialect":"generic","model":"n","repair":"dedupe"}"#,
        ];
        assert_eq!(stored, expected);
        let given_back: LearnedRepairs = stored.iter().map(|row| serde_json::from_str(row).unwrap()).collect();
        assert_eq!(given_back, learned);
    }

    #[test]
    fn e11_a_stored_repair_of_a_newer_version_is_an_error() {
        let row = r#"{"baseUrl":"a","dialect":"generic","model":"m","repair":"not_known_here"}"#;
        assert!(serde_json::from_str::<LearnedRepair>(row).is_err());
    }
}
