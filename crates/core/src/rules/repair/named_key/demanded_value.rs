//! Messages that ask for a value of a key: "`x` must be set to true".

use super::super::AppliedRepair;
use super::super::mentions::{Mention, mentions, words};
use crate::dialect::Repair;
use crate::json_text::{Raw, member};
use crate::rules::{KeyRule, RefusedRequest, WrittenKey};

/// The value that a message asks for: "`x` must be set to true". Empty if it
/// asks for none, or the request does not have that key. Switches, levels and
/// budgets have repairs of their own.
pub(in crate::rules::repair) fn demanded_value(message: &str, refused: &RefusedRequest) -> Vec<AppliedRepair> {
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
pub(in crate::rules::repair) fn missing_value(message: &str, refused: &RefusedRequest) -> Vec<AppliedRepair> {
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
pub(super) fn missing_member(message: &str, refused: &RefusedRequest) -> Vec<AppliedRepair> {
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
