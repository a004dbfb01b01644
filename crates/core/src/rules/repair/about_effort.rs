//! Whether the values that a message lists are effort levels. Other parameters have values such as `low`, `none`
//! and `default` too.

use super::applied::levels_in;
use super::mentions::{Mention, contains_phrase, mentions, words};
use super::named_key::names_another_key;
use crate::rules::{KeyRule, RefusedRequest, WrittenKey};

/// Words that say what a level is about.
const SUBJECTS: [&str; 6] = ["effort", "reasoning", "thinking", "think", "level", "levels"];
/// What comes before the parameter that an error names beside its message.
const PARAMETER: &str = "(parameter `";

/// Whether a message lists the levels that the request could have sent.
pub(super) fn lists_levels(message: &str, refused: &RefusedRequest) -> bool {
    let levels = levels_in(message);
    let efforts: Vec<&WrittenKey> = refused.written.iter().filter(|key| key.rule == KeyRule::Effort).collect();
    if levels.is_empty() || efforts.is_empty() {
        return false;
    }
    let (found, message_words) = (mentions(message), words(message));
    let names_effort = efforts.iter().any(|key| {
        let leaf = words(key.path.rsplit('.').next().unwrap_or_default());
        let is_leaf = |mention: &Mention<'_>| mention.names.last().is_some_and(|name| words(name) == leaf);
        (leaf.len() > 1 && contains_phrase(&message_words, &leaf))
            || found.iter().any(|mention| mention.marked && is_leaf(mention))
    });
    if names_effort {
        return true;
    }
    if names_other_parameter(message) || found.iter().any(is_quoted_path) || names_another_key(message, refused) {
        return false;
    }
    // A value that is listed was not refused.
    let is_refused = |value: &String| !levels.contains(value) && contains_phrase(&message_words, &words(value));
    efforts.iter().filter_map(|key| key.value.as_ref()).any(is_refused)
        || SUBJECTS.iter().any(|subject| message_words.iter().any(|word| word == subject))
}

/// Whether an error names a parameter beside its message that is not about effort.
pub(super) fn names_other_parameter(message: &str) -> bool {
    let named = message.split_once(PARAMETER).and_then(|(_, rest)| rest.split('`').next());
    let is_subject = |word: &String| SUBJECTS.iter().any(|subject| word == subject);
    named.is_some_and(|path| !words(path.rsplit('.').next().unwrap_or_default()).iter().any(is_subject))
}

/// A path in quotes leads to a member of the body. Names of models have digits.
fn is_quoted_path(mention: &Mention<'_>) -> bool {
    let is_word = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    mention.quoted && mention.names.len() > 1 && mention.names.iter().all(is_word)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn e11_values_of_other_parameters_are_not_levels() {
        let body = r#"{"reasoning_effort":"high","service_tier":"fast","messages":[]}"#;
        let effort =
            WrittenKey { path: "reasoning_effort".into(), rule: KeyRule::Effort, value: Some("high".to_owned()) };
        let refused = RefusedRequest::new(Arc::new(body.to_owned()), vec![effort]);
        #[rustfmt::skip]
        let cases = [
            ("names the key",     "reasoning_effort must be one of low, medium",                                       true),
            ("names the value",   "level 'high' not supported, valid levels: low, medium",                             true),
            ("only the value",    "'high' is not one of the allowed values: low, medium",                              true),
            ("names the subject", "this model always thinks; supported levels of thinking: low, medium",                true),
            ("a model in quotes", "'high' does not work with 'acme-5.1-code'. Supported values are: 'low'",            true),
            ("no list",           "reasoning_effort is wrong",                                                         false),
            ("a parameter",       "Invalid value: 'any'. Supported values are: 'none', 'auto' (parameter `tool_choice`)", false),
            ("another spelling",  "Invalid value. Supported values are: 'low', 'medium' (parameter `thinking_effort`)",  true),
            ("a neighbour",       "Invalid value. Supported values are: 'none', 'auto' (parameter `reasoning.summary`)", false),
            ("a path",            "'text.verbosity' does not support 'high'. Supported values are: 'medium'",          false),
            ("a listed value",    "Invalid value: 'max'. Supported values are: 'low', 'high', and 'auto'.",            false),
            ("another key",       "service_tier 'fast' is unknown, supported values: 'default', 'high'",               false),
        ];
        for (name, message, expected) in cases {
            assert_eq!(lists_levels(message, &refused), expected, "{name}");
        }
    }
}
