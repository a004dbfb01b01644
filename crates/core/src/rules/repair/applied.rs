//! The repairs that worked, remembered for a session.

use std::collections::BTreeMap;

use crate::block::Origin;
use crate::dialect::{EFFORT_LEVELS, ErrorRow, Repair};

/// A repair, with details from the error message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedRepair {
    pub repair: Repair,
    /// The effort levels that are accepted, or the mode that is refused. Empty
    /// if the message names none.
    pub details: Vec<String>,
}

impl From<Repair> for AppliedRepair {
    fn from(repair: Repair) -> AppliedRepair {
        AppliedRepair { repair, details: Vec::new() }
    }
}

impl AppliedRepair {
    /// The next repair for a refusal: the smallest that was not tried yet.
    pub fn next(row: &ErrorRow, message: &str, tried: &[AppliedRepair]) -> Option<AppliedRepair> {
        let tried: Vec<Repair> = tried.iter().map(|applied| applied.repair).collect();
        let repair = super::next_repair(row, &tried)?;
        let details = match repair {
            Repair::NearestEffort => levels_in(message),
            Repair::SwitchMode => modes_in(message),
            Repair::DropBlock
            | Repair::StripForeign
            | Repair::DropOlder
            | Repair::StripTurn
            | Repair::DropField
            | Repair::OffForTurn
            | Repair::BindingHeader
            | Repair::DropOrphan
            | Repair::DropFollowerIds
            | Repair::StripItems
            | Repair::FullItems
            | Repair::Dedupe
            | Repair::FillAll
            | Repair::FillLoop
            | Repair::FillCalls
            | Repair::DummySignature
            | Repair::DummyEverywhere
            | Repair::DropEffort
            | Repair::DropBudget
            | Repair::OmitEmptyContent
            | Repair::ToolChoiceAuto
            | Repair::OmitIds
            | Repair::DropParameters => Vec::new(),
        };
        Some(AppliedRepair { repair, details })
    }
}

/// The supported levels listed in a message. What comes before the list is the
/// refused level.
fn levels_in(message: &str) -> Vec<String> {
    let message = message.to_lowercase();
    let marks = ["supported values", "should be", "must be", "one of", "allowed"];
    let Some(list) = marks.iter().find_map(|mark| message.split_once(mark)).map(|(_, rest)| rest) else {
        return Vec::new();
    };
    let words: Vec<&str> = list.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    EFFORT_LEVELS.iter().filter(|level| words.contains(level)).map(|level| (*level).to_owned()).collect()
}

/// The thinking modes that a message refuses.
fn modes_in(message: &str) -> Vec<String> {
    let refused = |switch: &&&str| {
        message.contains(&format!("type.{switch}\" is not supported"))
            || message.contains(&format!("{switch} thinking is not supported"))
            || (**switch == "between_tools" && message.contains("between_tools"))
    };
    ["enabled", "disabled", "adaptive", "between_tools"].iter().filter(refused).map(|word| (*word).to_owned()).collect()
}

/// The repairs of a session, by endpoint and model.
#[derive(Debug, Clone, Default)]
pub struct AppliedRepairs {
    known: BTreeMap<EndpointKey, Vec<AppliedRepair>>,
}

/// Provider, endpoint, dialect and model.
type EndpointKey = [Option<String>; 4];

fn endpoint_key(target: &Origin) -> EndpointKey {
    let Origin { provider, endpoint, dialect, model, .. } = target.clone();
    [provider, endpoint, dialect, model]
}

impl AppliedRepairs {
    pub fn new() -> AppliedRepairs {
        AppliedRepairs::default()
    }

    /// The repairs for an endpoint, in the order they were added.
    pub fn of(&self, target: &Origin) -> &[AppliedRepair] {
        self.known.get(&endpoint_key(target)).map_or(&[], Vec::as_slice)
    }

    /// Remembers a repair. The details of the last message win.
    pub fn learn(&mut self, target: &Origin, applied: AppliedRepair) {
        let repairs = self.known.entry(endpoint_key(target)).or_default();
        match repairs.iter_mut().find(|known| known.repair == applied.repair) {
            Some(known) => *known = applied,
            None => repairs.push(applied),
        }
    }

    /// Ends a turn: thinking that was off for the turn is on again.
    pub fn end_turn(&mut self) {
        for repairs in self.known.values_mut() {
            repairs.retain(|applied| !matches!(applied.repair, Repair::OffForTurn | Repair::ToolChoiceAuto));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e11_only_levels_after_the_list_marker_are_supported() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str]); 5] = [
            ("Unsupported value: 'xhigh'. Supported values are: 'low', 'medium', and 'high'.", &["low", "medium", "high"]),
            ("output_config.effort: Input should be 'low' or 'max'",                           &["low", "max"]),
            ("think must be a boolean or string (\"high\", \"low\", true, or false)",          &["low", "high"]),
            ("does not support 'reasoning_effort' value 'minimal'",                            &[]),
            ("Input should be following: a number",                                            &[]),
        ];
        for (message, expected) in cases {
            assert_eq!(levels_in(message), expected, "{message}");
        }
    }

    #[test]
    fn e11_a_repair_is_remembered_for_its_endpoint_and_model_only() {
        let at = |endpoint: &str, model: &str| Origin {
            endpoint: Some(endpoint.to_owned()),
            model: Some(model.to_owned()),
            ..Origin::default()
        };
        let mut repairs = AppliedRepairs::new();
        repairs.learn(&at("a", "m"), Repair::FillAll.into());
        repairs.learn(&at("a", "m"), Repair::OffForTurn.into());
        repairs.learn(&at("a", "m"), AppliedRepair { repair: Repair::FillAll, details: vec!["x".to_owned()] });
        let known: Vec<Repair> = repairs.of(&at("a", "m")).iter().map(|applied| applied.repair).collect();
        assert_eq!(known, [Repair::FillAll, Repair::OffForTurn]);
        assert_eq!(repairs.of(&at("a", "other")), []);
        assert_eq!(repairs.of(&at("b", "m")), []);
        repairs.end_turn();
        assert_eq!(repairs.of(&at("a", "m")).len(), 1, "repairs for a turn end with it");
    }
}
