//! The rule below the catalogue: a message that names a key which the request
//! contains for the sake of thinking, and no other key of the request, leads to
//! the request without that key.

use std::collections::BTreeSet;

use super::AppliedRepair;
use super::mentions::{Mention, contains_phrase, mentions, words};
use crate::dialect::{EFFORT_LEVELS, Repair};
use crate::json_text::{JsonKind, Raw, each_element, each_member, member, text_member};
use crate::rules::{KeyRule, RefusedRequest, WrittenKey};

/// The lists of a body that hold messages or items.
const MESSAGE_LISTS: [&str; 3] = ["messages", "input", "contents"];
/// The lists of a message that hold blocks or parts.
const BLOCK_LISTS: [&str; 2] = ["content", "parts"];
/// Names that say where a key is, and never what is wrong with it.
const PLACES: [&str; 12] = [
    "model",
    "messages",
    "input",
    "contents",
    "content",
    "parts",
    "role",
    "type",
    "text",
    "body",
    "properties",
    "tool_calls",
];
/// What comes before the keys that a server knows.
const KNOWN_KEYS: [&str; 8] = [
    "expected one of",
    "known properties",
    "known fields",
    "allowed fields",
    "allowed keys",
    "allowed properties",
    "valid fields",
    "valid keys",
];
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
/// Kinds of blocks and items that are thinking.
const THINKING_KINDS: [&str; 4] = ["thinking", "redacted_thinking", "reasoning", "reasoningContent"];
/// Members that a thinking block must have. Leaving one out needs another repair.
const SEALS: [&str; 5] = ["signature", "data", "encrypted_content", "redactedContent", "thoughtSignature"];
/// How many messages and blocks are searched for keys.
const MAX_SEARCHED: usize = 2000;

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
    let named = named_keys(&mentions, &message_words, refused);
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
        let listed = super::applied::levels_in(message);
        let lowered = message.to_lowercase();
        let is_unknown = listed.is_empty() && UNKNOWN_KEY.iter().any(|words| lowered.contains(words));
        let quotes_value = key.value.as_ref().is_some_and(|value| contains_phrase(&message_words, &words(value)));
        return match is_unknown || (listed.is_empty() && !quotes_value) {
            true => ladder(Repair::DropEffort, &[], &key.path),
            false => ladder(Repair::NearestEffort, &listed, &key.path),
        };
    }
    if let Some(key) = first(KeyRule::Off) {
        let omit_off = [Repair::OmitOff, Repair::PlainRequest].map(AppliedRepair::from);
        // A switch may have a part that the provider knows no use for.
        let is_named = |key: &WrittenKey| {
            let leaf = key.path.rsplit('.').next().unwrap_or_default();
            mentions.iter().any(|mention| mention.names.last().is_some_and(|last| words(last) == words(leaf)))
        };
        let has_other_part = refused.written.iter().any(|other| other.rule == KeyRule::Off && !is_named(other));
        let part = AppliedRepair { repair: Repair::OmitParameter, details: vec![key.path.clone()] };
        let omits_part = has_other_part && is_named(key);
        return omits_part.then_some(part).into_iter().chain(omit_off).collect();
    }
    match named.first() {
        Some(key) if key.rule == KeyRule::Carrier => {
            let lowered = message.to_lowercase();
            let repairs = match DEMANDS.iter().any(|demand| lowered.contains(demand)) {
                true => &[Repair::FillCalls, Repair::FillAll, Repair::OffForTurn][..],
                false => &[Repair::StripField, Repair::OffForTurn],
            };
            repairs.iter().map(|repair| (*repair).into()).collect()
        }
        Some(key) => ladder(Repair::OmitParameter, &[named_part(&mentions, &message_words, key)], &key.path),
        None => Vec::new(),
    }
}

/// The written keys that a message names. A path that leads into the messages is
/// about what they carry, not about a parameter of the same name.
fn named_keys<'k>(
    mentions: &[Mention<'_>],
    message_words: &[String],
    refused: &'k RefusedRequest,
) -> Vec<&'k WrittenKey> {
    let by = |closeness| {
        let is_named = move |key: &&WrittenKey| names_key(mentions, message_words, key, closeness);
        refused.written.iter().filter(is_named).collect::<Vec<_>>()
    };
    let mut named = by(Closeness::Last);
    if named.is_empty() {
        named = by(Closeness::LastButOne);
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

/// The value that a message asks for: "`x` must be set to true". Empty if it
/// asks for none, or the request does not have that key. Switches, levels and
/// budgets have repairs of their own.
pub(super) fn demanded_value(message: &str, refused: &RefusedRequest) -> Vec<AppliedRepair> {
    let asked = ["must be set to", "must be", "should be set to"].iter().find_map(|mark| message.split_once(mark));
    let Some((before, after)) = asked else { return Vec::new() };
    let Some(json) = literal(after.trim_start()) else { return Vec::new() };
    let is_noun = |mention: &&Mention<'_>| !matches!(mention.names.as_slice(), ["parameter" | "field" | "value"]);
    let found = mentions(before);
    let Some(subject) = found.iter().rev().find(is_noun).and_then(|mention| mention.names.last()) else {
        return Vec::new();
    };
    let is_subject = |key: &&WrittenKey| {
        matches!(key.rule, KeyRule::Extra | KeyRule::Show | KeyRule::Flag)
            && key.path.rsplit('.').next().is_some_and(|leaf| words(leaf) == words(subject))
    };
    match refused.written.iter().find(is_subject) {
        Some(key) if key.value.as_deref() != Some(json.trim_matches('"')) => {
            vec![AppliedRepair { repair: Repair::SetParameter, details: vec![key.path.clone(), json] }]
        }
        Some(_) | None => Vec::new(),
    }
}

/// The same for a key that the request lacks: "`x` must be "y" when thinking is
/// on". It is added.
pub(super) fn missing_value(message: &str, refused: &RefusedRequest) -> Vec<AppliedRepair> {
    let Some((before, after)) = ["must be set to", "must be"].iter().find_map(|mark| message.split_once(mark)) else {
        return Vec::new();
    };
    let Some(json) = literal(after.trim_start()) else { return Vec::new() };
    let is_name = |name: &&str| name.contains('_') && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let found = mentions(before);
    let named = found.iter().rev().filter_map(|mention| mention.names.last().copied()).find(is_name);
    let Some(name) = named.filter(|name| Raw::of(&refused.body).ok().and_then(|body| member(body, name)).is_none())
    else {
        return Vec::new();
    };
    vec![AppliedRepair { repair: Repair::SetParameter, details: vec![name.to_owned(), json, "new".to_owned()] }]
}

/// The same for a member that one of our objects lacks: "requires `a.b` to be
/// c_d".
fn missing_member(message: &str, refused: &RefusedRequest) -> Vec<AppliedRepair> {
    let Some((before, after)) = message.split_once("requires ").and_then(|(_, rest)| rest.split_once(" to be ")) else {
        return Vec::new();
    };
    let after = after.trim_start();
    let bare = || {
        let word: String = after.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        word.contains('_').then(|| serde_json::Value::from(word).to_string())
    };
    let Some(json) = literal(after).or_else(bare) else { return Vec::new() };
    let found = mentions(before);
    let Some([.., container, name]) = found.last().map(|mention| mention.names.as_slice()) else { return Vec::new() };
    let path = format!("{container}.{name}");
    let is_ours = refused.written.iter().any(|key| key.path.split('.').next() == Some(container));
    let is_there = refused.written.iter().any(|key| key.path == path);
    match is_ours && !is_there {
        true => vec![AppliedRepair { repair: Repair::SetParameter, details: vec![path, json, "new".to_owned()] }],
        false => Vec::new(),
    }
}

/// The JSON value at the start of a text: a quoted word, a number or a boolean.
fn literal(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    let word: String = match quote {
        Some(quote) => text.get(1..)?.split(quote).next()?.to_owned(),
        None => text.chars().take_while(|c| c.is_ascii_alphanumeric()).collect(),
    };
    let is_plain = matches!(word.to_ascii_lowercase().as_str(), "true" | "false")
        || (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()));
    match (is_plain, quote) {
        (true, _) => Some(word.to_ascii_lowercase()),
        (false, Some(_)) if !word.is_empty() && word.len() < 40 => Some(serde_json::Value::from(word).to_string()),
        (false, _) => None,
    }
}

/// The status of an invalid request, or of a proxy that reports one.
fn is_invalid_request(status: Option<u16>, message: &str) -> bool {
    match status {
        None | Some(400 | 422) => true,
        Some(429 | 500..=599) => {
            let message = message.to_ascii_lowercase();
            INVALID_REQUEST.iter().any(|mark| message.contains(mark))
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
/// are enough to recognise it.
fn names_key(mentions: &[Mention<'_>], message_words: &[String], key: &WrittenKey, closeness: Closeness) -> bool {
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
    let value = key.value.as_deref().filter(|value| key.rule == KeyRule::Effort && EFFORT_LEVELS.contains(value));
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

/// Whether a message also names a key of the request that has nothing to do with
/// thinking. The keys that a server lists as known do not count.
fn names_another_key(message: &str, refused: &RefusedRequest) -> bool {
    let lowered = message.to_ascii_lowercase();
    let end = KNOWN_KEYS.iter().filter_map(|mark| lowered.find(mark)).min().unwrap_or(message.len());
    let mentions = mentions(message.get(..end).unwrap_or(message));
    let own: BTreeSet<Vec<String>> =
        refused.written.iter().flat_map(|key| key.path.split('.').map(words).collect::<Vec<_>>()).collect();
    let others = other_keys(&refused.body);
    mentions.iter().any(|mention| {
        let is_other = |name: &str| {
            let name_words = words(name);
            let recognised = mention.marked || name_words.len() > 1;
            recognised && !own.contains(&name_words) && others.contains(&name_words)
        };
        let has_own = mention.names.iter().any(|name| own.contains(&words(name)));
        let leads_elsewhere = mention.names.len() > 1 && mention.names.first().is_some_and(|name| is_other(name));
        leads_elsewhere || (!has_own && mention.names.last().is_some_and(|name| is_other(name)))
    })
}

/// The names of a body's members, of its messages and of their blocks.
fn other_keys(body: &str) -> BTreeSet<Vec<String>> {
    let mut keys = BTreeSet::new();
    let mut left = MAX_SEARCHED;
    let Ok(body) = Raw::of(body) else { return keys };
    let mut add = |name: &str| {
        if !PLACES.contains(&name) {
            keys.insert(words(name));
        }
    };
    each_member(body, |name, value| {
        add(name);
        if !MESSAGE_LISTS.contains(&name) || value.kind() != JsonKind::Array {
            return;
        }
        each_element(value, |message| {
            left = left.saturating_sub(1);
            if left == 0 || message.kind() != JsonKind::Object {
                return;
            }
            each_member(message, |name, value| {
                add(name);
                if BLOCK_LISTS.contains(&name) && value.kind() == JsonKind::Array {
                    each_element(value, |block| {
                        if block.kind() == JsonKind::Object {
                            each_member(block, |name, _| add(name));
                        }
                    });
                }
            });
        });
    });
    keys
}

/// A path to one member of a block or an item: the member is left out of all
/// blocks of that kind. A seal is not left out: its block is.
fn named_member(mentions: &[Mention<'_>], refused: &RefusedRequest) -> Option<Vec<AppliedRepair>> {
    let in_messages = |mention: &&Mention<'_>| {
        mention.names.iter().any(|name| MESSAGE_LISTS.contains(name) || BLOCK_LISTS.contains(name))
    };
    if let Some(repairs) = mentions.iter().find_map(|mention| named_seal(mention, refused)) {
        return Some(repairs);
    }
    mentions.iter().filter(in_messages).find_map(|mention| {
        let (leaf, above) = mention.names.split_last()?;
        let by_words =
            above.last().copied().filter(|kind| !MESSAGE_LISTS.contains(kind) && !BLOCK_LISTS.contains(kind));
        let kind = match by_words {
            Some(kind) => kind.to_owned(),
            None => kind_at(mention, &refused.body)?,
        };
        let is_thinking = THINKING_KINDS.contains(&kind.as_str());
        let is_seal = SEALS.contains(leaf);
        if !has_member(&refused.body, &kind, leaf) || *leaf == "type" || *leaf == kind {
            return None;
        }
        match (is_thinking, is_seal) {
            (true, true) => {
                Some([Repair::StripForeign, Repair::StripTurn, Repair::OffForTurn].map(Into::into).to_vec())
            }
            (true, false) | (false, true) => {
                let details = vec![kind, (*leaf).to_owned()];
                let omit = AppliedRepair { repair: Repair::OmitMember, details };
                Some(vec![omit, Repair::StripTurn.into()])
            }
            (false, false) => None,
        }
    })
}

/// The seal of a block as a path that begins with the block, where messages have
/// no seals: "does not support the field `reasoningContent.reasoningText.signature`".
fn named_seal(mention: &Mention<'_>, refused: &RefusedRequest) -> Option<Vec<AppliedRepair>> {
    let [kind, below @ .., leaf] = mention.names.as_slice() else { return None };
    let is_seal = !below.is_empty() && THINKING_KINDS.contains(kind) && SEALS.contains(leaf);
    if !is_seal || !mention.indices.is_empty() || !refused.body.contains(&format!("\"{leaf}\":")) {
        return None;
    }
    let path = mention.names.get(1..)?.join(".");
    let omit = AppliedRepair { repair: Repair::OmitMember, details: vec![(*kind).to_owned(), path] };
    Some(vec![omit, Repair::StripField.into(), Repair::OffForTurn.into()])
}

/// The kind of the item or block at the indices of a path.
fn kind_at(mention: &Mention<'_>, body: &str) -> Option<String> {
    let mut value = Raw::of(body).ok()?;
    let mut indices = mention.indices.iter();
    for name in mention.names.iter().filter(|name| MESSAGE_LISTS.contains(name) || BLOCK_LISTS.contains(name)) {
        value = member(value, name)?;
        let index = *indices.next()?;
        let (mut at, mut found) = (0, None);
        each_element(value, |element| {
            if at == index {
                found = Some(element);
            }
            at += 1;
        });
        value = found?;
    }
    text_member(value, "type")
}

/// Whether a block or an item of this kind has a member.
fn has_member(body: &str, kind: &str, name: &str) -> bool {
    let Ok(body) = Raw::of(body) else { return false };
    let mut found = false;
    let mut check = |object: Raw<'_>| {
        if object.kind() == JsonKind::Object && text_member(object, "type").as_deref() == Some(kind) {
            found |= member(object, name).is_some();
        }
    };
    for list in MESSAGE_LISTS.iter().filter_map(|list| member(body, list)) {
        each_element(list, |message| {
            check(message);
            for blocks in BLOCK_LISTS.iter().filter_map(|blocks| member(message, blocks)) {
                if blocks.kind() == JsonKind::Array {
                    each_element(blocks, &mut check);
                }
            }
        });
    }
    found
}
