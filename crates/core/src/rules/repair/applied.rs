//! A repair with the details that the error message gives.

use super::mentions::{Mention, mentions, words};
use crate::dialect::{EFFORT_LEVELS, ErrorRow, Repair};

/// A repair, with details from the error message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedRepair {
    /// What is changed.
    pub repair: Repair,
    /// The effort levels that are accepted, the mode that is refused, or the keys
    /// that are changed. Empty if the message names none.
    pub details: Vec<String>,
}

impl From<Repair> for AppliedRepair {
    fn from(repair: Repair) -> AppliedRepair {
        AppliedRepair { repair, details: Vec::new() }
    }
}

impl AppliedRepair {
    /// The repairs for a row, smallest first, with what the message says about
    /// each.
    pub fn ladder(row: &ErrorRow, message: &str) -> Vec<AppliedRepair> {
        let applied = |repair: &Repair| AppliedRepair { repair: *repair, details: details_of(*repair, row, message) };
        let ladder = super::repair_ladder(row.repair).iter().map(applied);
        // A repair that needs details is of no use without them.
        ladder.filter(|applied| !applied.details.is_empty() || !needs_details(applied.repair)).collect()
    }

    /// The next repair for a refusal: the smallest that was not tried yet.
    pub fn next(row: &ErrorRow, message: &str, tried: &[AppliedRepair]) -> Option<AppliedRepair> {
        AppliedRepair::ladder(row, message).into_iter().find(|applied| !applied.was_tried(tried))
    }

    /// Whether it was tried. Repairs that name a key differ by the key.
    pub(crate) fn was_tried(&self, tried: &[AppliedRepair]) -> bool {
        tried
            .iter()
            .any(|known| known.repair == self.repair && (!needs_details(self.repair) || known.details == self.details))
    }
}

/// Whether a repair is about keys that its details name.
pub(super) fn needs_details(repair: Repair) -> bool {
    matches!(
        repair,
        Repair::SetParameter | Repair::OmitParameter | Repair::MoveParameter | Repair::OmitMember | Repair::AddMember
    )
}

fn details_of(repair: Repair, row: &ErrorRow, message: &str) -> Vec<String> {
    match repair {
        Repair::NearestEffort => levels_in(message),
        Repair::SwitchMode => modes_in(message),
        Repair::DropParameters => sampling_in(message),
        Repair::DropBudget => accepted_budget_in(message).into_iter().collect(),
        Repair::OmitParameter if row.repair == Repair::MoveParameter => moved_in(message).into_iter().take(1).collect(),
        Repair::MoveParameter => moved_in(message),
        Repair::SetParameter | Repair::OmitParameter | Repair::OmitMember | Repair::AddMember => row.keys.clone(),
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
        | Repair::FillSpace
        | Repair::StandardBase64
        | Repair::DropHidden
        | Repair::DropUnsealed
        | Repair::DummySignature
        | Repair::DummyEverywhere
        | Repair::DropEffort
        | Repair::OmitEmptyContent
        | Repair::ToolChoiceAuto
        | Repair::OmitIds
        | Repair::OmitOff
        | Repair::PlainRequest
        | Repair::StripField
        | Repair::DropEmptied
        | Repair::ThinkingFirst
        | Repair::DropBesideText
        | Repair::EffortNone
        | Repair::DropToolChoice => Vec::new(),
    }
}

/// Parameters of sampling, which some models refuse.
const SAMPLING: [&str; 11] = [
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "stop",
    "seed",
    "n",
];

/// The sampling parameters that a message names.
pub(super) fn sampling_in(message: &str) -> Vec<String> {
    let found = mentions(message);
    // Hosts write `topP` for `top_p`.
    let is_named =
        |name: &&&str| found.iter().any(|mention| mention.names.last().is_some_and(|last| words(last) == words(name)));
    SAMPLING.iter().filter(is_named).map(|name| (*name).to_owned()).collect()
}

/// A budget that a message accepts: the least, else the most.
fn accepted_budget_in(message: &str) -> Option<String> {
    let number = |mark: &str| {
        let (_, after) = message.split_once(mark)?;
        let digits: String = after.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok()
    };
    let least = BUDGET_MARKS.iter().find_map(|mark| number(mark));
    let most = || number("less than or equal to").or_else(|| number("at most"));
    let below = || number("less than").and_then(|bound| bound.checked_sub(1));
    least.or_else(most).or_else(below).map(|budget| budget.to_string())
}

/// What comes before the least budget.
const BUDGET_MARKS: [&str; 5] = ["greater than or equal to", "at least", "between", ">=", "minimum of"];

/// The old and the new path of a parameter that has moved.
fn moved_in(message: &str) -> Vec<String> {
    let Some((before, after)) = message.split_once("moved to") else { return Vec::new() };
    let path = |mention: Mention<'_>| mention.names.join(".");
    let from = mentions(before).into_iter().rfind(|mention| mention.quoted).map(path);
    let to = mentions(after).into_iter().find(|mention| mention.quoted).map(path);
    match (from, to) {
        (Some(from), Some(to)) => vec![from, to],
        _ => Vec::new(),
    }
}

/// The supported levels listed in a message. What comes before the list, or
/// after it as the received value, is the refused level.
pub(super) fn levels_in(message: &str) -> Vec<String> {
    let message = message.to_lowercase();
    let Some(list) = LIST_MARKS.iter().find_map(|mark| message.split_once(mark)).map(|(_, rest)| rest) else {
        return Vec::new();
    };
    let end = LIST_ENDS.iter().filter_map(|mark| list.find(mark)).min().unwrap_or(list.len());
    let list = list.get(..end).unwrap_or_default();
    let words: Vec<&str> = list.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let known = EFFORT_LEVELS.iter().chain(&["none", "default"]);
    known.filter(|level| words.contains(level)).map(|level| (*level).to_owned()).collect()
}

/// What comes before the supported levels, the clearest first.
const LIST_MARKS: [&str; 27] = [
    "supported values",
    "supported types",
    "supported reasoning",
    "supported options",
    "available values",
    "available levels",
    "available options",
    "accepted values",
    "valid options",
    "valid efforts",
    "supported levels",
    "supported settings",
    "supported efforts",
    "valid levels",
    "valid values",
    "allowed values",
    "allowed levels",
    "should be",
    "must be",
    "one of",
    "expected",
    "please use",
    "; use ",
    ". use ",
    "choose",
    "allowed",
    "only",
];
/// What comes after them.
const LIST_ENDS: [&str; 4] = ["received", "but got", "'input'", "\"input\""];

/// The thinking modes that a message refuses: those it names as refused, else
/// those that are not in its list of modes.
pub(super) fn modes_in(message: &str) -> Vec<String> {
    let named = refused_modes_in(message);
    if !named.is_empty() {
        return named;
    }
    let lowered = message.to_lowercase();
    let Some(list) = MODE_LIST_MARKS.iter().find_map(|mark| lowered.split_once(mark)).map(|(_, rest)| rest) else {
        return Vec::new();
    };
    let end = LIST_ENDS.iter().filter_map(|mark| list.find(mark)).min().unwrap_or(list.len());
    let words: Vec<&str> = list.get(..end).unwrap_or_default().split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let n_listed = ["enabled", "disabled", "adaptive", "auto"].iter().filter(|mode| words.contains(mode)).count();
    let is_missing = |mode: &&&str| n_listed > 1 && !words.contains(mode);
    ["enabled", "adaptive"].iter().filter(is_missing).map(|mode| (*mode).to_owned()).collect()
}

/// What comes before the modes that a model has.
const MODE_LIST_MARKS: [&str; 8] =
    ["allowed", "supported", "must be in", "must be one of", "must be", "should be", "expected", "one of"];

fn refused_modes_in(message: &str) -> Vec<String> {
    let refused = |switch: &&&str| {
        message.contains(&format!("type.{switch}\" is not supported"))
            || message.contains(&format!("Input tag '{switch}'"))
            || ["", "'", "\"", "`"].iter().any(|quote| message.contains(&format!("hinking type: {quote}{switch}")))
            || message.contains(&format!("{switch} thinking is not supported"))
            || ["'", "\"", "`"]
                .iter()
                .any(|quote| message.contains(&format!("{quote}{switch}{quote} is not supported")))
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
        let cases: [(&str, &[&str]); 8] = [
            ("Unsupported value: 'xhigh'. Supported values are: 'low', 'medium', and 'high'.", &["low", "medium", "high"]),
            ("output_config.effort: Input should be 'low' or 'max'",                           &["low", "max"]),
            ("think must be a boolean or string (\"high\", \"low\", true, or false)",          &["low", "high"]),
            ("does not support 'reasoning_effort' value 'minimal'",                            &[]),
            ("Input should be following: a number",                                            &[]),
            ("must be one of `none` or `default`",                                             &["none", "default"]),
            ("Invalid enum value. Expected 'low' | 'high', received 'max'",                    &["low", "high"]),
            ("level \"max\" not supported, valid levels: low, xhigh",                          &["low", "xhigh"]),
        ];
        for (message, expected) in cases {
            assert_eq!(levels_in(message), expected, "{message}");
        }
    }

    #[test]
    fn e11_a_message_names_what_to_leave_out_and_where_it_has_moved() {
        let moved = "Unsupported parameter: 'reasoning_effort'. In the new API, this has moved to 'reasoning.effort'.";
        assert_eq!(moved_in(moved), ["reasoning_effort", "reasoning.effort"]);
        assert_eq!(moved_in("the endpoint has moved"), Vec::<String>::new());
        assert_eq!(sampling_in("`temperature` and `top_p` are deprecated"), ["temperature", "top_p"]);
        assert_eq!(sampling_in("a temperate answer"), Vec::<String>::new());
        assert_eq!(
            accepted_budget_in("budget_tokens: Input should be greater than or equal to 1024"),
            Some("1024".into())
        );
        assert_eq!(accepted_budget_in("must be between 128 and 32768"), Some("128".into()));
        assert_eq!(accepted_budget_in("budget_tokens: Input should be less than 4096"), Some("4095".into()));
        assert_eq!(accepted_budget_in("must be greater than `thinking.budget_tokens`"), None);
    }
}
