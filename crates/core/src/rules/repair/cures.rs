//! What refusals taught, kept for as long as a session lasts.

use std::collections::BTreeMap;

use crate::block::Origin;
use crate::dialect::{EFFORT_LEVELS, ErrorRow, Repair};

/// A repair, and what the provider's words said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cure {
    pub repair: Repair,
    /// The levels of effort that are taken, or the switch that is refused;
    /// empty where the words name none.
    pub words: Vec<String>,
}

impl From<Repair> for Cure {
    fn from(repair: Repair) -> Cure {
        Cure { repair, words: Vec::new() }
    }
}

impl Cure {
    /// The next cure for a refusal: the smallest that was not tried yet.
    pub fn next(row: &ErrorRow, message: &str, tried: &[Cure]) -> Option<Cure> {
        let tried: Vec<Repair> = tried.iter().map(|cure| cure.repair).collect();
        let repair = super::next_repair(row, &tried)?;
        let words = match repair {
            Repair::NearestEffort => levels_in(message),
            Repair::SwitchMode => switches_in(message),
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
        Some(Cure { repair, words })
    }
}

/// The levels that a message says are supported; what stands before that word
/// is what was refused.
fn levels_in(message: &str) -> Vec<String> {
    let message = message.to_lowercase();
    let marks = ["supported values", "should be", "must be", "one of", "allowed"];
    let Some(list) = marks.iter().find_map(|mark| message.split_once(mark)).map(|(_, rest)| rest) else {
        return Vec::new();
    };
    let said: Vec<&str> = list.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    EFFORT_LEVELS.iter().filter(|level| said.contains(level)).map(|level| (*level).to_owned()).collect()
}

/// The switches that a message refuses.
fn switches_in(message: &str) -> Vec<String> {
    let refused = |switch: &&&str| {
        message.contains(&format!("type.{switch}\" is not supported"))
            || message.contains(&format!("{switch} thinking is not supported"))
            || (**switch == "between_tools" && message.contains("between_tools"))
    };
    ["enabled", "disabled", "adaptive", "between_tools"].iter().filter(refused).map(|word| (*word).to_owned()).collect()
}

/// The cures of a session, by endpoint and model.
#[derive(Debug, Clone, Default)]
pub struct Cures {
    known: BTreeMap<Place, Vec<Cure>>,
}

/// Provider, endpoint, dialect and model.
type Place = [Option<String>; 4];

fn place(target: &Origin) -> Place {
    let Origin { provider, endpoint, dialect, model, .. } = target.clone();
    [provider, endpoint, dialect, model]
}

impl Cures {
    pub fn new() -> Cures {
        Cures::default()
    }

    /// What helps there, in the order it was learnt.
    pub fn of(&self, target: &Origin) -> &[Cure] {
        self.known.get(&place(target)).map_or(&[], Vec::as_slice)
    }

    /// Remembers what helped. What the words said last counts.
    pub fn learn(&mut self, target: &Origin, cure: Cure) {
        let cures = self.known.entry(place(target)).or_default();
        match cures.iter_mut().find(|known| known.repair == cure.repair) {
            Some(known) => *known = cure,
            None => cures.push(cure),
        }
    }

    /// A turn has ended: thinking that was off only until then is on again.
    pub fn end_turn(&mut self) {
        for cures in self.known.values_mut() {
            cures.retain(|cure| !matches!(cure.repair, Repair::OffForTurn | Repair::ToolChoiceAuto));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e11_the_levels_a_message_lists_are_those_behind_its_list() {
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
    fn e11_the_cure_is_remembered_for_its_endpoint_and_model_only() {
        let at = |endpoint: &str, model: &str| Origin {
            endpoint: Some(endpoint.to_owned()),
            model: Some(model.to_owned()),
            ..Origin::default()
        };
        let mut cures = Cures::new();
        cures.learn(&at("a", "m"), Repair::FillAll.into());
        cures.learn(&at("a", "m"), Repair::OffForTurn.into());
        cures.learn(&at("a", "m"), Cure { repair: Repair::FillAll, words: vec!["x".to_owned()] });
        let known: Vec<Repair> = cures.of(&at("a", "m")).iter().map(|cure| cure.repair).collect();
        assert_eq!(known, [Repair::FillAll, Repair::OffForTurn]);
        assert_eq!(cures.of(&at("a", "other")), []);
        assert_eq!(cures.of(&at("b", "m")), []);
        cures.end_turn();
        assert_eq!(cures.of(&at("a", "m")).len(), 1, "what holds for a turn ends with it");
    }
}
