//! A repair with the details that the error message gives.

use crate::dialect::{EFFORT_LEVELS, ErrorRow, Repair};

/// A repair, with details from the error message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedRepair {
    /// What is changed.
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
}
