//! Whether a message names a key of the request that has nothing to do with thinking.

use std::collections::BTreeSet;

use super::super::mentions::{mentions, words};
use super::{BLOCK_LISTS, MESSAGE_LISTS};
use crate::json_text::{JsonKind, Raw, each_element, each_member};
use crate::rules::RefusedRequest;

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
/// How many messages and blocks are searched for keys.
const MAX_SEARCHED: usize = 2000;

/// Whether a message also names a key of the request that has nothing to do with
/// thinking. The keys that a server lists as known do not count.
pub(in crate::rules::repair) fn names_another_key(message: &str, refused: &RefusedRequest) -> bool {
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
