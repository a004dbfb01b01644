//! Finds the members of a delta or message.

use super::calls::seal_path;
use super::details::DetailList;
use crate::block::SealKind;
use crate::dialect::{Details as DetailsRule, ReadRules};
use crate::json_text::{JsonKind, Raw, each_member, is_empty_value};

/// More than the dialect loader allows.
pub(super) const MAX_SOURCES: usize = 8;

/// The relevant members of a delta or message, found in one pass.
#[derive(Default)]
pub(super) struct DeltaMembers<'a> {
    pub(super) content: Option<Raw<'a>>,
    pub(super) texts: [Option<Raw<'a>>; MAX_SOURCES],
    pub(super) details: Option<(DetailList, Raw<'a>)>,
    /// A payload next to the content, with the name of its field.
    pub(super) opaque: Option<(&'a str, Raw<'a>, SealKind)>,
    pub(super) calls: Option<Raw<'a>>,
    pub(super) function_call: Option<Raw<'a>>,
    pub(super) refusal: Option<Raw<'a>>,
    /// There are members that are not understood.
    pub(super) unread: bool,
}

pub(super) fn members<'a>(rules: &'a ReadRules, raw: Raw<'a>) -> DeltaMembers<'a> {
    let mut members = DeltaMembers::default();
    each_member(raw, |key, value| {
        if value.kind() == JsonKind::Null {
            return;
        }
        match key {
            "content" => members.content = Some(value),
            "tool_calls" => members.calls = Some(value),
            "role" => (),
            _ => match rules.text.iter().position(|name| name == key).and_then(|at| members.texts.get_mut(at)) {
                Some(field) => *field = Some(value),
                None => rare_member(rules, key, value, &mut members),
            },
        }
    });
    members
}

fn rare_member<'a>(rules: &'a ReadRules, key: &str, value: Raw<'a>, members: &mut DeltaMembers<'a>) {
    let wants = |rule| rules.details == rule || rules.details == DetailsRule::Any;
    match key {
        "reasoning_details" if wants(DetailsRule::Openrouter) => {
            members.details = Some((DetailList::ReasoningDetails, value))
        }
        "thinking_blocks" if wants(DetailsRule::Litellm) => members.details = Some((DetailList::ThinkingBlocks, value)),
        "function_call" => members.function_call = Some(value),
        "refusal" => members.refusal = Some(value),
        _ if is_empty_value(value) => (),
        _ => {
            // The field name, without the path inside it.
            let field = |name: &'a String| name.get(..key.len()).unwrap_or("");
            if let Some(name) = rules.opaque.iter().find(|name| *name == key) {
                members.opaque = Some((name, value, SealKind::Encrypted));
            } else if let Some(name) =
                rules.call_extra.iter().find(|name| seal_path(std::slice::from_ref(*name), key).is_some())
            {
                members.opaque = Some((field(name), value, SealKind::Signature));
            } else {
                members.unread |= !is_read(rules, key);
            }
        }
    }
}

/// Whether a member of a delta or message is understood.
pub(super) fn is_read(rules: &ReadRules, key: &str) -> bool {
    let known = ["content", "tool_calls", "role", "function_call", "refusal", "reasoning_details", "thinking_blocks"];
    let ignored = ["padding", "p", "obfuscation"];
    known.contains(&key)
        || ignored.contains(&key)
        || rules.text.iter().chain(&rules.opaque).any(|name| name == key)
        || seal_path(&rules.call_extra, key).is_some()
}
