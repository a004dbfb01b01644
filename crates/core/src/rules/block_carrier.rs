//! The carrier of one thinking block: the dialect's, unless that would lose a
//! seal or the form in which an unknown endpoint sent it.

use super::RequestPreferences;
use crate::block::Thinking;
use crate::dialect::{Carrier, Details, EchoField, Rules};

/// The lists next to the content that hold structured thinking.
const DETAIL_LISTS: [&str; 2] = ["reasoning_details", "thinking_blocks"];
/// The source of thinking that is a part of the content.
const CONTENT_PART: &str = "content.thinking";

/// Where a block is written.
pub(crate) fn block_carrier(rules: &Rules, preferences: &RequestPreferences, thinking: &Thinking) -> Carrier {
    let source = thinking.source.as_str();
    let is_entry = thinking.native.is_some() && DETAIL_LISTS.contains(&source) && rules.read.details != Details::None;
    let is_sealed = thinking.seals().is_some_and(|seals| seals.signature.is_some() || seals.encrypted.is_some());
    let is_tag = rules.read.tags.pairs.iter().any(|pair| pair.open.iter().any(|open| open == source));
    match rules.echo.carrier {
        // The user named a field.
        Carrier::Field if preferences.field.is_some() && !is_sealed => Carrier::Field,
        Carrier::Field if rules.echo.field == EchoField::AsReceived => match source {
            _ if is_entry => Carrier::Details,
            CONTENT_PART if rules.read.content_chunks => Carrier::ContentChunks,
            _ if thinking.native.is_some() => Carrier::FieldsOpaque,
            _ if is_tag => Carrier::ContentTags,
            _ => Carrier::Field,
        },
        // Only an entry can hold its seal.
        Carrier::Field | Carrier::ContentTags | Carrier::FieldsOpaque if is_entry && is_sealed => Carrier::Details,
        // A seal on a call holds no text.
        Carrier::CallExtra if is_tag && thinking.native.is_none() => Carrier::ContentTags,
        carrier @ (Carrier::None
        | Carrier::Field
        | Carrier::Details
        | Carrier::ContentTags
        | Carrier::ContentChunks
        | Carrier::Block
        | Carrier::Item
        | Carrier::Part
        | Carrier::CallExtra
        | Carrier::FieldsOpaque) => carrier,
    }
}

/// The field that thinking is written to: the user's choice, else the
/// dialect's, else the one it was received in.
pub(crate) fn field_name(rules: &Rules, preferences: &RequestPreferences, source: Option<&str>) -> String {
    if rules.echo.carrier == Carrier::Details && source.is_none() {
        return "reasoning_details".to_owned();
    }
    match (&preferences.field, &rules.echo.field) {
        (Some(name), _) | (None, EchoField::Named(name)) => name.clone(),
        (None, EchoField::Same | EchoField::AsReceived) => {
            // A source that is not a field, such as a tag, equals none of the names.
            let known = rules.read.text.iter().find(|name| Some(name.as_str()) == source).or(rules.read.text.first());
            known.map_or("reasoning_content", String::as_str).to_owned()
        }
    }
}
