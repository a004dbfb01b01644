//! Messages that name a member of a block or an item by its path.

use super::super::AppliedRepair;
use super::super::mentions::Mention;
use super::{BLOCK_LISTS, MESSAGE_LISTS};
use crate::dialect::Repair;
use crate::json_text::{JsonKind, Raw, each_element, member, text_member};
use crate::rules::RefusedRequest;

/// Kinds of blocks and items that are thinking.
const THINKING_KINDS: [&str; 4] = ["thinking", "redacted_thinking", "reasoning", "reasoningContent"];
/// Members that a thinking block must have. Leaving one out needs another repair.
const SEALS: [&str; 5] = ["signature", "data", "encrypted_content", "redactedContent", "thoughtSignature"];
/// A path to one member of a block or an item: the member is left out of all
/// blocks of that kind. A seal is not left out: its block is.
pub(super) fn named_member(mentions: &[Mention<'_>], refused: &RefusedRequest) -> Option<Vec<AppliedRepair>> {
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
