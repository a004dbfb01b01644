//! Tool call ids, for providers that accept only some ids. A call and its result
//! get the same id, and no two calls share one.

use std::collections::{HashMap, HashSet};

use crate::block::Block;
use crate::dialect::CallIdShape;
use crate::message::Message;

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

const LENGTH: usize = 9;

/// Replacement ids. A provider gets its own ids back unchanged, so only ids from
/// other providers are looked up here.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    renamed: HashMap<String, String>,
}

impl CallIds {
    pub(super) fn of(shape: CallIdShape, messages: &[&Message]) -> CallIds {
        match shape {
            CallIdShape::Any => CallIds::default(),
            CallIdShape::Nine => CallIds { renamed: nine_character_ids(messages) },
        }
    }

    pub(super) fn get<'a>(&'a self, id: &'a str) -> &'a str {
        self.renamed.get(id).map_or(id, String::as_str)
    }
}

fn nine_character_ids(messages: &[&Message]) -> HashMap<String, String> {
    let blocks = messages.iter().flat_map(|message| &message.blocks);
    let ids = blocks.filter_map(|block| match block {
        Block::ToolCall(call) => Some(call.id.as_str()),
        Block::ToolResult(result) => Some(result.id.as_str()),
        Block::Text(_) | Block::Thinking(_) | Block::Media(_) | Block::Unmodelled(_) => None,
    });
    let ids: Vec<&str> = ids.collect();
    let mut taken: HashSet<String> = ids.iter().filter(|id| fits(id)).map(|id| (*id).to_owned()).collect();
    let mut renamed: HashMap<String, String> = HashMap::new();
    for id in ids.into_iter().filter(|id| !fits(id)) {
        if renamed.contains_key(id) {
            continue;
        }
        // If an id is taken, the next round gives another.
        let mut round = 0;
        let mut name = nine_character_id(id, round);
        while !taken.insert(name.clone()) {
            round += 1;
            name = nine_character_id(id, round);
        }
        renamed.insert(id.to_owned(), name);
    }
    renamed
}

fn fits(id: &str) -> bool {
    id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Letters and digits derived from the id alone, so that every request contains
/// the same id.
fn nine_character_id(id: &str, round: u64) -> String {
    // FNV-1a: small, and identical on every machine and in every release.
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut rest = id.bytes().chain(round.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, mix);
    let mut name = String::with_capacity(LENGTH);
    for _ in 0..LENGTH {
        let at = usize::try_from(rest % 62).unwrap_or(0);
        name.push(LETTERS.get(at).copied().map_or('A', char::from));
        rest /= 62;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Conversation;

    fn conversation(ids: &[&str]) -> Conversation {
        let lines = ids.iter().map(|id| {
            let call = serde_json::json!({"type": "toolCall", "id": id, "name": "f", "arguments": {}});
            let result = serde_json::json!({"type": "toolResult", "id": id, "name": "f", "content": "1"});
            let call = serde_json::json!({"role": "assistant", "blocks": [call]});
            format!("{call}\n{}\n", serde_json::json!({"role": "tool", "blocks": [result]}))
        });
        Conversation::parse(&lines.collect::<String>()).unwrap()
    }

    fn ids_of(shape: CallIdShape, ids: &[&str]) -> Vec<String> {
        let conversation = conversation(ids);
        let branch = conversation.history.branch();
        let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
        let renamed = CallIds::of(shape, &messages);
        ids.iter().map(|id| renamed.get(id).to_owned()).collect()
    }

    #[test]
    fn a_fitting_id_stays_and_others_become_nine_characters_derived_from_it() {
        let long = "toolu_01AbCdEfGhIjKlMnOpQrStUv";
        let ids = ids_of(CallIdShape::Nine, &["abcDEF123", long, "call_1", "", "日本"]);
        assert_eq!(ids[0], "abcDEF123");
        assert!(ids.iter().all(|id| fits(id)), "{ids:?}");
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "no two share one: {ids:?}");
        // Earlier messages do not change an id, so requests share a prefix.
        assert_eq!(ids_of(CallIdShape::Nine, &[long]), [ids[1].as_str()]);
        assert_eq!(ids_of(CallIdShape::Any, &[long, "call_1"]), [long, "call_1"]);
    }

    #[test]
    fn an_id_that_is_taken_is_not_given_again() {
        let first = nine_character_id("call_1", 0);
        let ids = ids_of(CallIdShape::Nine, &["call_1", &first]);
        assert_eq!(ids, [nine_character_id("call_1", 1), first]);
    }
}
