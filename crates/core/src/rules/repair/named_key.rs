//! The rule below the catalogue: a message that names a key which the request
//! contains for the sake of thinking, and no other key of the request, leads to
//! the request without that key.

mod demanded_value;
mod named_member;
mod other_keys;

use super::AppliedRepair;
use super::about_effort::names_other_parameter;
use super::mentions::{Mention, contains_phrase, mentions, words};
use crate::dialect::{EFFORT_LEVELS, Repair};
use crate::rules::{KeyRule, RefusedRequest, WrittenKey};
use demanded_value::missing_member;
pub(super) use demanded_value::{demanded_value, missing_value};
use named_member::named_member;
pub(super) use other_keys::names_another_key;

/// The lists of a body that hold messages or items.
const MESSAGE_LISTS: [&str; 3] = ["messages", "input", "contents"];
/// The lists of a message that hold blocks or parts.
const BLOCK_LISTS: [&str; 2] = ["content", "parts"];
/// How a message says that a key must be there.
const DEMANDS: [&str; 12] = [
    "must include",
    "must contain",
    "must have",
    "must be included",
    "must be present",
    "must carry",
    "is required",
    "are required",
    "is mandatory",
    "is missing",
    "field required",
    "without",
];
/// How a message says that it does not know a key, whatever its value.
const UNKNOWN_KEY: [&str; 12] = [
    "extra input",
    "extra field",
    "extra_forbidden",
    "unknown parameter",
    "unknown field",
    "unknown name",
    "unrecognized",
    "unrecognised",
    "unexpected keyword",
    "additional propert",
    "unsupported parameter",
    "does not support parameter",
];
/// How a proxy says that it passes on an invalid request.
const INVALID_REQUEST: [&str; 9] = [
    "400",
    "422",
    "bad request",
    "badrequest",
    "invalid_request",
    "invalid request",
    "invalid_argument",
    "unsupportedparams",
    "unexpected keyword argument",
];
/// What to try, smallest change first. Empty if the rule does not apply.
pub(super) fn repairs_for_named_key(
    status: Option<u16>,
    message: &str,
    refused: &RefusedRequest,
) -> Vec<AppliedRepair> {
    if !is_invalid_request(status, message) {
        return Vec::new();
    }
    let mentions = mentions(message);
    let message_words = words(message);
    if let Some(member) = named_member(&mentions, refused) {
        return member;
    }
    let named = named_keys(message, &mentions, &message_words, refused);
    if named.is_empty() || names_another_key(message, refused) {
        return Vec::new();
    }
    let value = demanded_value(message, refused);
    if !value.is_empty() {
        return value;
    }
    let value = missing_member(message, refused);
    if !value.is_empty() {
        return value;
    }
    if let Some(container) = named_container(&mentions, &named) {
        return vec![
            AppliedRepair { repair: Repair::OmitParameter, details: vec![container] },
            Repair::PlainRequest.into(),
        ];
    }
    let first = |rule: KeyRule| named.iter().copied().find(|key| key.rule == rule);
    // Of two parameters that exclude each other, the less important one goes.
    if let Some(key) = first(KeyRule::Budget) {
        return ladder(Repair::DropBudget, &[], &key.path);
    }
    if let Some(key) = first(KeyRule::Effort) {
        return repairs_for_effort(message, &message_words, key);
    }
    if let Some(key) = first(KeyRule::Off) {
        return repairs_for_off_switch(&mentions, key, refused);
    }
    match named.first() {
        Some(key) if key.rule == KeyRule::Carrier => repairs_for_carrier(message),
        Some(key) if is_unknown_member(message, &mentions, key, refused) => {
            ladder(Repair::OmitParameter, std::slice::from_ref(&key.path), &key.path)
        }
        Some(key) => ladder(Repair::OmitParameter, &[named_part(&mentions, &message_words, key)], &key.path),
        None => Vec::new(),
    }
}

/// A message that lists levels or quotes ours wants another level; others want none.
fn repairs_for_effort(message: &str, message_words: &[String], key: &WrittenKey) -> Vec<AppliedRepair> {
    let listed = super::applied::levels_in(message);
    let lowered = message.to_lowercase();
    let is_unknown = listed.is_empty() && says_unknown_key(&lowered);
    let quotes_value = key.value.as_ref().is_some_and(|value| contains_phrase(message_words, &words(value)));
    match is_unknown || (listed.is_empty() && !quotes_value) {
        true => ladder(Repair::DropEffort, &[], &key.path),
        false => ladder(Repair::NearestEffort, &listed, &key.path),
    }
}

/// Whether a message in lower case says that a key is unknown.
fn says_unknown_key(lowered: &str) -> bool {
    UNKNOWN_KEY.iter().any(|words| lowered.contains(words))
}

/// Whether a message says that it does not know one member of an object that has others: it is
/// named by its whole path.
fn is_unknown_member(message: &str, mentions: &[Mention<'_>], key: &WrittenKey, refused: &RefusedRequest) -> bool {
    let Some((container, _)) = key.path.rsplit_once('.') else { return false };
    let below = format!("{container}.");
    says_unknown_key(&message.to_lowercase())
        && mentions.iter().any(|mention| mention.quoted && mention.names.join(".") == key.path)
        && refused.written.iter().any(|other| other.path != key.path && other.path.starts_with(&below))
}

/// The switch is left out; first only the part that the message names, if it has other parts.
fn repairs_for_off_switch(mentions: &[Mention<'_>], key: &WrittenKey, refused: &RefusedRequest) -> Vec<AppliedRepair> {
    let omit_off = [Repair::OmitOff, Repair::PlainRequest].map(AppliedRepair::from);
    let is_named = |key: &WrittenKey| {
        let leaf = key.path.rsplit('.').next().unwrap_or_default();
        mentions.iter().any(|mention| mention.names.last().is_some_and(|last| words(last) == words(leaf)))
    };
    let has_other_part = refused.written.iter().any(|other| other.rule == KeyRule::Off && !is_named(other));
    let part = AppliedRepair { repair: Repair::OmitParameter, details: vec![key.path.clone()] };
    let omits_part = has_other_part && is_named(key);
    omits_part.then_some(part).into_iter().chain(omit_off).collect()
}

/// Thinking in a field: the message demands it, or does not accept it.
fn repairs_for_carrier(message: &str) -> Vec<AppliedRepair> {
    let lowered = message.to_lowercase();
    let repairs = match DEMANDS.iter().any(|demand| lowered.contains(demand)) {
        true => &[Repair::FillCalls, Repair::FillAll, Repair::OffForTurn][..],
        false => &[Repair::StripField, Repair::OffForTurn],
    };
    repairs.iter().map(|repair| (*repair).into()).collect()
}

/// The written keys that a message names. A path that leads into the messages is
/// about what they carry, not about a parameter of the same name.
fn named_keys<'k>(
    message: &str,
    mentions: &[Mention<'_>],
    message_words: &[String],
    refused: &'k RefusedRequest,
) -> Vec<&'k WrittenKey> {
    // A level that is listed was not refused, and a parameter says itself what it is.
    let levels = super::applied::levels_in(message);
    let is_refused = |value: &str| !names_other_parameter(message) && !levels.iter().any(|level| level == value);
    let by = |closeness| {
        let is_named = |key: &&WrittenKey| {
            let value = key.value.as_deref().filter(|value| is_refused(value));
            names_key(mentions, message_words, key, value, closeness)
        };
        refused.written.iter().filter(is_named).collect::<Vec<_>>()
    };
    let mut named = by(Closeness::Last);
    if named.is_empty() {
        named = by(Closeness::LastButOne);
    }
    // What is named below an object counts more than the object.
    let is_leaf_named = |key: &&WrittenKey| {
        let leaf = words(key.path.rsplit('.').next().unwrap_or_default());
        key.path.contains('.') && leaf.len() > 1 && contains_phrase(message_words, &leaf)
    };
    if named.iter().any(is_leaf_named) {
        named.retain(is_leaf_named);
    }
    let is_in_messages = |mention: &Mention<'_>| {
        !mention.indices.is_empty() && mention.names.first().is_some_and(|name| MESSAGE_LISTS.contains(name))
    };
    if mentions.iter().any(is_in_messages) && named.iter().any(|key| key.rule == KeyRule::Carrier) {
        named.retain(|key| key.rule == KeyRule::Carrier);
    }
    named
}

/// The object that a message names, if it names none of the members that were
/// written into it.
fn named_container(mentions: &[Mention<'_>], named: &[&WrittenKey]) -> Option<String> {
    let is_parameter = |key: &&&WrittenKey| !matches!(key.rule, KeyRule::Carrier | KeyRule::Off);
    let key = named.iter().find(is_parameter).filter(|key| key.path.contains('.'))?;
    let names: Vec<&str> = key.path.split('.').collect();
    let is_last = |name: &str, mention: &Mention<'_>| {
        mention.marked && mention.names.last().is_some_and(|last| words(last) == words(name))
    };
    let at = names.iter().position(|name| is_own(name) && mentions.iter().any(|mention| is_last(name, mention)))?;
    let container = names.get(..=at)?.join(".");
    let below = format!("{container}.");
    let names_member = named.iter().filter(|key| key.path.starts_with(&below)).any(|key| {
        let leaf = key.path.rsplit('.').next().unwrap_or_default();
        let value = key.value.as_deref().filter(|_| key.rule == KeyRule::Effort);
        let is_mentioned = |mention: &Mention<'_>| {
            let last = mention.names.last().map(|last| words(last));
            last.as_ref().is_some_and(|last| *last == words(leaf) || value.is_some_and(|value| *last == words(value)))
        };
        mentions.iter().any(is_mentioned)
    });
    (at + 1 < names.len() && !names_member).then_some(container)
}

/// The status of an invalid request, or of a proxy that reports one.
fn is_invalid_request(status: Option<u16>, message: &str) -> bool {
    match status {
        None | Some(400 | 422) => true,
        Some(429 | 500..=599) => {
            let message = message.to_ascii_lowercase();
            INVALID_REQUEST.iter().any(|mark| message.contains(mark)) || says_unknown_key(&message)
        }
        Some(_) => false,
    }
}

/// A repair, then leaving out the parameter, then all parameters.
fn ladder(repair: Repair, details: &[String], path: &str) -> Vec<AppliedRepair> {
    let omit = |path: &str| AppliedRepair { repair: Repair::OmitParameter, details: vec![path.to_owned()] };
    let mut ladder = vec![AppliedRepair { repair, details: details.to_vec() }];
    ladder.extend((repair != Repair::OmitParameter).then(|| omit(path)));
    ladder.push(Repair::PlainRequest.into());
    ladder
}

/// The path to leave out: the part of the key's path that the message names. A
/// switch is left out as a whole, because its other members need it.
fn named_part(mentions: &[Mention<'_>], message_words: &[String], key: &WrittenKey) -> String {
    let names: Vec<&str> = key.path.split('.').collect();
    let is_switch = matches!(key.rule, KeyRule::On | KeyRule::Off);
    let is_named = |name: &str| {
        let name_words = words(name);
        mentions.iter().any(|mention| mention.names.last().is_some_and(|last| *last == name))
            || (name_words.len() > 1 && contains_phrase(message_words, &name_words))
    };
    match names.last() {
        Some(leaf) if !is_switch && is_named(leaf) => key.path.clone(),
        _ => {
            let depth = names.iter().position(|name| is_named(name)).unwrap_or(names.len().saturating_sub(1));
            let depth = if is_switch { depth.min(names.len().saturating_sub(2)) } else { depth };
            names.iter().take(depth + 1).copied().collect::<Vec<_>>().join(".")
        }
    }
}

/// How near the end of a path a name must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closeness {
    Last,
    /// Validators add names to a path, such as the type that they expected.
    LastButOne,
}

/// Whether a message names a key: as a path, as a marked word, or in words that
/// are enough to recognise it. A refused effort level counts too.
fn names_key(
    mentions: &[Mention<'_>],
    message_words: &[String],
    key: &WrittenKey,
    value: Option<&str>,
    closeness: Closeness,
) -> bool {
    let names: Vec<&str> = key.path.split('.').collect();
    let same = |a: &str, b: &str| words(a) == words(b);
    let is_phrase = |name: &&&str| is_own(name) && words(name).len() > 1;
    if names.iter().filter(is_phrase).any(|name| contains_phrase(message_words, &words(name))) {
        return true;
    }
    if let [.., above, leaf] = names.as_slice() {
        let phrase: Vec<String> = words(above).into_iter().chain(words(leaf)).collect();
        if contains_phrase(message_words, &phrase) {
            return true;
        }
    }
    // An effort level in quotes names its parameter.
    let value = value.filter(|value| key.rule == KeyRule::Effort && EFFORT_LEVELS.contains(value));
    mentions.iter().filter(|mention| mention.marked).any(|mention| match mention.names.as_slice() {
        [only] => {
            value.is_some_and(|value| same(only, value)) || names.iter().any(|name| is_own(name) && same(only, name))
        }
        path => path
            .iter()
            .rev()
            .take(if closeness == Closeness::Last { 1 } else { 2 })
            .any(|part| names.iter().any(|name| is_own(name) && same(part, name))),
    })
}

/// Containers that hold other parameters too are not named on their own.
fn is_own(name: &str) -> bool {
    const SHARED: [&str; 7] = [
        "generationConfig",
        "inferenceConfig",
        "additionalModelRequestFields",
        "options",
        "extra_body",
        "type",
        "text",
    ];
    !SHARED.contains(&name)
}
