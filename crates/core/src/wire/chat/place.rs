//! Where a dialect of Chat Completions has its thinking: the reading rules,
//! looked at from the side of whoever writes.

use super::details::Family;
use super::stream_in::CHUNK_SOURCE;
use crate::dialect::{Carrier, Details as DetailsRule, Rules};
use crate::tags::{Pair, Reach, Start};

/// The carrier of one thought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A string beside the content.
    Field(String),
    /// A list of entries beside the content.
    Details(Family),
    /// A part of the content array.
    Chunk,
    /// Inside the content, between tags.
    Tags(Tags),
    /// A payload beside the content, without text.
    Opaque(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::wire) struct Tags {
    /// Empty where the template has written it.
    pub(in crate::wire) open: String,
    pub(in crate::wire) close: String,
    /// What stands behind the answer.
    pub(in crate::wire) tail: Option<String>,
}

/// What was said so far, as far as it matters for what can be said next.
#[derive(Debug, Default)]
pub(in crate::wire) struct Course {
    /// A letter of answer text was written.
    pub(in crate::wire) content_began: bool,
    /// A thought was written into the content.
    pub(in crate::wire) tagged: bool,
    /// A thought was told outside the content: tags are literal from there on.
    pub(in crate::wire) tags_are_literal: bool,
}

/// The field it came in where the dialect has it, else the dialect's own way.
pub(super) fn place(rules: &Rules, source: &str, course: &Course) -> Place {
    named(rules, source, course).unwrap_or_else(|| usual(rules, course))
}

fn named(rules: &Rules, source: &str, course: &Course) -> Option<Place> {
    let read = &rules.read;
    if let Some(field) = read.text.iter().find(|field| *field == source) {
        return Some(Place::Field(field.clone()));
    }
    if let Some(family) = details_family(rules, source) {
        return Some(Place::Details(family));
    }
    if source == CHUNK_SOURCE && read.content_chunks {
        return Some(Place::Chunk);
    }
    let is_beside = |name: &String| name.split('.').next() == Some(source);
    if read.opaque.iter().chain(&read.call_extra).any(is_beside) {
        return Some(Place::Opaque(source.to_owned()));
    }
    tags(rules, source, course).map(Place::Tags)
}

/// The dialect's own way, which is the way it takes thinking back.
fn usual(rules: &Rules, course: &Course) -> Place {
    let read = &rules.read;
    let first_field = || read.text.first().cloned().unwrap_or_else(|| "reasoning_content".to_owned());
    let first_tag = || read.tags.pairs.first().and_then(|pair| pair.open.first()).map_or("", String::as_str);
    match rules.echo.carrier {
        Carrier::Details => family(rules).map_or_else(|| Place::Field(first_field()), Place::Details),
        Carrier::ContentChunks if read.content_chunks => Place::Chunk,
        // A seal on the call says nothing of the text, which such a dialect tags.
        Carrier::ContentTags | Carrier::CallExtra => {
            tags(rules, first_tag(), course).map_or_else(|| Place::Field(first_field()), Place::Tags)
        }
        Carrier::Field
        | Carrier::FieldsOpaque
        | Carrier::ContentChunks
        | Carrier::None
        | Carrier::Block
        | Carrier::Item
        | Carrier::Part => Place::Field(first_field()),
    }
}

/// The list of entries that a dialect has, if it has one.
pub(super) fn family(rules: &Rules) -> Option<Family> {
    match rules.read.details {
        DetailsRule::None => None,
        DetailsRule::Openrouter | DetailsRule::Any => Some(Family::ReasoningDetails),
        DetailsRule::Litellm => Some(Family::ThinkingBlocks),
    }
}

fn details_family(rules: &Rules, source: &str) -> Option<Family> {
    [Family::ReasoningDetails, Family::ThinkingBlocks].into_iter().find(|family| {
        let fits = match (family, rules.read.details) {
            (_, DetailsRule::Any)
            | (Family::ReasoningDetails, DetailsRule::Openrouter)
            | (Family::ThinkingBlocks, DetailsRule::Litellm) => true,
            (_, DetailsRule::None)
            | (Family::ReasoningDetails, DetailsRule::Litellm)
            | (Family::ThinkingBlocks, DetailsRule::Openrouter) => false,
        };
        fits && family.field() == source
    })
}

/// The tags of a source, where a tag counts at this point.
pub(in crate::wire) fn tags(rules: &Rules, source: &str, course: &Course) -> Option<Tags> {
    let tags = &rules.read.tags;
    let leading = !course.content_began && !course.tagged;
    if course.tags_are_literal || !(leading || tags.reach == Reach::Anywhere) {
        return None;
    }
    // A thought without an opener that only its close tag gave away.
    if source == "content" && tags.start == Start::Auto && leading {
        let close = tags.pairs.first()?.close.first()?.clone();
        return Some(Tags { open: String::new(), close, tail: None });
    }
    let (position, pair, close) =
        tags.pairs.iter().enumerate().find_map(|(at, pair)| closer(pair, source).map(|close| (at, pair, close)))?;
    let by_template = tags.start == Start::Prefilled && leading;
    // The template has opened the first family, and its tag closes it.
    if by_template && position > 0 {
        return None;
    }
    let open = if by_template { String::new() } else { source.to_owned() };
    Some(Tags { open, close, tail: pair.tail.clone() })
}

/// The close tag for an open tag of this family.
fn closer(pair: &Pair, open: &str) -> Option<String> {
    let close = pair.close.first()?;
    if pair.open.iter().any(|known| known == open) {
        return Some(close.clone());
    }
    let suffixed = pair.open.iter().filter(|_| pair.suffixed).filter_map(|known| known.strip_suffix('>'));
    let suffix = suffixed.filter_map(|start| open.strip_prefix(start)?.strip_suffix('>')).next()?;
    Some(format!("{}{suffix}>", close.strip_suffix('>')?))
}
