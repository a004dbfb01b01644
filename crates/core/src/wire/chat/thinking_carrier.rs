//! Where a Chat Completions dialect puts thinking in a reply: the dialect's
//! reading rules, applied for writing.

use super::details::DetailList;
use super::stream_in::CHUNK_SOURCE;
use crate::dialect::{Carrier, Details as DetailsRule, Rules};
use crate::tags::{TagPair, TagReach, TagStart};

/// The place of one thinking block in a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ThinkingCarrier {
    /// A string next to the content.
    Field(String),
    /// A list of entries next to the content.
    Details(DetailList),
    /// A part of the content array.
    Chunk,
    /// Inside the content, between tags.
    Tags(ThinkingTags),
    /// A payload next to the content, without text.
    Opaque(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::wire) struct ThinkingTags {
    /// Empty if the chat template wrote the tag.
    pub(in crate::wire) open: String,
    pub(in crate::wire) close: String,
    /// A marker after the answer.
    pub(in crate::wire) tail: Option<String>,
}

/// What was written so far, as far as it affects what can follow.
#[derive(Debug, Default)]
pub(in crate::wire) struct ContentState {
    /// Visible answer text was written.
    pub(in crate::wire) content_began: bool,
    /// Thinking was written into the content.
    pub(in crate::wire) tagged: bool,
    /// Thinking was written outside the content: tags are literal from here on.
    pub(in crate::wire) tags_are_literal: bool,
}

/// The field it came in if the dialect has it, else the dialect's default.
pub(super) fn carrier_for(rules: &Rules, source: &str, content_state: &ContentState) -> ThinkingCarrier {
    carrier_by_source(rules, source, content_state).unwrap_or_else(|| default_carrier(rules, content_state))
}

fn carrier_by_source(rules: &Rules, source: &str, content_state: &ContentState) -> Option<ThinkingCarrier> {
    let read = &rules.read;
    if let Some(field) = read.text.iter().find(|field| *field == source) {
        return Some(ThinkingCarrier::Field(field.clone()));
    }
    if let Some(list) = detail_list_named(rules, source) {
        return Some(ThinkingCarrier::Details(list));
    }
    if source == CHUNK_SOURCE && read.content_chunks {
        return Some(ThinkingCarrier::Chunk);
    }
    let is_source = |name: &String| name.split('.').next() == Some(source);
    if read.opaque.iter().chain(&read.call_extra).any(is_source) {
        return Some(ThinkingCarrier::Opaque(source.to_owned()));
    }
    tags_for(rules, source, content_state).map(ThinkingCarrier::Tags)
}

/// The dialect's default: the form in which it takes thinking back.
fn default_carrier(rules: &Rules, content_state: &ContentState) -> ThinkingCarrier {
    let read = &rules.read;
    let first_field = || read.text.first().cloned().unwrap_or_else(|| "reasoning_content".to_owned());
    let first_tag = || read.tags.pairs.first().and_then(|pair| pair.open.first()).map_or("", String::as_str);
    match rules.echo.carrier {
        Carrier::Details => {
            dialect_detail_list(rules).map_or_else(|| ThinkingCarrier::Field(first_field()), ThinkingCarrier::Details)
        }
        Carrier::ContentChunks if read.content_chunks => ThinkingCarrier::Chunk,
        // A seal on the call does not carry the text; such dialects put it in
        // tags.
        Carrier::ContentTags | Carrier::CallExtra => tags_for(rules, first_tag(), content_state)
            .map_or_else(|| ThinkingCarrier::Field(first_field()), ThinkingCarrier::Tags),
        Carrier::Field
        | Carrier::FieldsOpaque
        | Carrier::ContentChunks
        | Carrier::None
        | Carrier::Block
        | Carrier::Item
        | Carrier::Part => ThinkingCarrier::Field(first_field()),
    }
}

/// The detail list of a dialect, if it has one.
pub(super) fn dialect_detail_list(rules: &Rules) -> Option<DetailList> {
    match rules.read.details {
        DetailsRule::None => None,
        DetailsRule::Openrouter | DetailsRule::Any => Some(DetailList::ReasoningDetails),
        DetailsRule::Litellm => Some(DetailList::ThinkingBlocks),
    }
}

fn detail_list_named(rules: &Rules, source: &str) -> Option<DetailList> {
    [DetailList::ReasoningDetails, DetailList::ThinkingBlocks].into_iter().find(|list| {
        let fits = match (list, rules.read.details) {
            (_, DetailsRule::Any)
            | (DetailList::ReasoningDetails, DetailsRule::Openrouter)
            | (DetailList::ThinkingBlocks, DetailsRule::Litellm) => true,
            (_, DetailsRule::None)
            | (DetailList::ReasoningDetails, DetailsRule::Litellm)
            | (DetailList::ThinkingBlocks, DetailsRule::Openrouter) => false,
        };
        fits && list.field() == source
    })
}

/// The tags of a source, if tags are recognised at this point.
pub(in crate::wire) fn tags_for(rules: &Rules, source: &str, content_state: &ContentState) -> Option<ThinkingTags> {
    let tags = &rules.read.tags;
    let leading = !content_state.content_began && !content_state.tagged;
    if content_state.tags_are_literal || !(leading || tags.reach == TagReach::Anywhere) {
        return None;
    }
    // Thinking without an open tag, recognised by its close tag.
    if source == "content" && tags.start == TagStart::Auto && leading {
        let close = tags.pairs.first()?.close.first()?.clone();
        return Some(ThinkingTags { open: String::new(), close, tail: None });
    }
    let (position, pair, close) = tags
        .pairs
        .iter()
        .enumerate()
        .find_map(|(at, pair)| close_tag_for(pair, source).map(|close| (at, pair, close)))?;
    let by_template = tags.start == TagStart::Prefilled && leading;
    // The template opened the first tag family, so only its tag closes it.
    if by_template && position > 0 {
        return None;
    }
    let open = if by_template { String::new() } else { source.to_owned() };
    Some(ThinkingTags { open, close, tail: pair.tail.clone() })
}

/// The close tag that matches an open tag of this family.
fn close_tag_for(pair: &TagPair, open: &str) -> Option<String> {
    let close = pair.close.first()?;
    if pair.open.iter().any(|known| known == open) {
        return Some(close.clone());
    }
    let suffixed = pair.open.iter().filter(|_| pair.suffixed).filter_map(|known| known.strip_suffix('>'));
    let suffix = suffixed.filter_map(|start| open.strip_prefix(start)?.strip_suffix('>')).next()?;
    Some(format!("{}{suffix}>", close.strip_suffix('>')?))
}
