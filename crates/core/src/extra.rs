//! Members of a reply that have no neutral form, such as citations, token
//! probabilities or safety ratings. They are kept under their wire names and
//! never sent back.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::event::ExtraValue;
use crate::json_text::{ObjectWriter, Raw, canonical, each_member, is_empty_value, quote};

/// The members of a message or block that have no neutral form, as JSON, by their
/// wire names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extra {
    members: BTreeMap<String, String>,
}

impl Extra {
    /// Whether there is nothing beyond the neutral form.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The JSON of a member.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.members.get(name).map(String::as_str)
    }

    /// Name and JSON of each member, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members.iter().map(|(name, json)| (name.as_str(), json.as_str()))
    }

    /// All members as one JSON object.
    pub fn to_json(&self) -> String {
        let mut out = ObjectWriter::default();
        for (name, json) in self.iter() {
            out.push(name, json);
        }
        out.finish()
    }

    /// Reads what [`Extra::to_json`] wrote. Any other value is kept under the
    /// name `extra`; text that is not JSON is an error.
    pub fn from_json(json: &str) -> Result<Extra, crate::json_text::NotJson> {
        Raw::of(json).map(Extra::read)
    }

    pub(crate) fn read(value: Raw<'_>) -> Extra {
        let mut extra = Extra::default();
        if value.get().starts_with('{') {
            each_member(value, |name, value| extra.set(name, value.get()));
        } else if !is_empty_value(value) {
            extra.set("extra", value.get());
        }
        extra
    }

    /// Keeps a member; an earlier one of the same name is replaced.
    pub fn set(&mut self, name: &str, json: &str) {
        self.members.insert(name.to_owned(), storable(json).into_owned());
    }
}

/// The value as our files hold it. A value that other JSON readers refuse, because
/// it contains half of a surrogate pair, becomes a string.
fn storable(json: &str) -> Cow<'_, str> {
    let may_be_refused = json.contains("\\ud") || json.contains("\\uD");
    if may_be_refused && serde_json::from_str::<serde_json::Value>(json).is_err() {
        return Cow::Owned(quote(json));
    }
    canonical(json)
}

/// Collects extra members while a reply streams.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExtraBuilder {
    /// The second part of the key is set for a value that was sent as a member of
    /// the named one.
    parts: BTreeMap<(String, Option<String>), String>,
}

impl ExtraBuilder {
    pub(crate) fn take(&mut self, value: ExtraValue<'_>) {
        let ExtraValue { name, member, json, continues } = value;
        let key = (name.to_owned(), member.map(str::to_owned));
        match self.parts.get_mut(&key) {
            Some(before) if continues => append(before, &storable(json)),
            Some(before) => *before = storable(json).into_owned(),
            None => drop(self.parts.insert(key, storable(json).into_owned())),
        }
    }

    pub(crate) fn finish(self) -> Extra {
        let mut extra = Extra::default();
        let mut parts = self.parts.into_iter().peekable();
        while let Some(((name, member), json)) = parts.next() {
            let Some(member) = member else {
                extra.members.insert(name, json);
                continue;
            };
            let mut object = ObjectWriter::default();
            object.push(&member, &json);
            while let Some(((_, Some(member)), json)) = parts.next_if(|((next, _), _)| *next == name) {
                object.push(&member, &json);
            }
            extra.members.insert(name, object.finish());
        }
        extra
    }
}

/// Appends text to a string, and the elements of a list or one value to a list.
/// The cost does not depend on what came before.
fn append(list: &mut String, more: &str) {
    if let Some(text) = more.strip_prefix('"').filter(|_| list.starts_with('"')) {
        list.pop();
        list.push_str(text);
        return;
    }
    let elements = more.strip_prefix('[').and_then(|more| more.strip_suffix(']')).unwrap_or(more);
    if elements.is_empty() {
        return;
    }
    if !list.starts_with('[') {
        list.insert(0, '[');
        list.push(']');
    }
    list.pop();
    if list.len() > 1 {
        list.push(',');
    }
    list.push_str(elements);
    list.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(name: &'a str, member: Option<&'a str>, json: &'a str, continues: bool) -> ExtraValue<'a> {
        ExtraValue { name, member, json, continues }
    }

    #[test]
    fn d20_lists_that_come_in_pieces_are_joined_and_other_values_replaced() {
        let mut builder = ExtraBuilder::default();
        for json in ["[1, 2]", "[]", "[{\"a\": [3]}]"] {
            builder.take(value("annotations", None, json, true));
            builder.take(value("logprobs", Some("content"), json, true));
        }
        builder.take(value("logprobs", Some("refusal"), "[4]", true));
        for json in ["\"UklG\"", "\"Rg==\""] {
            builder.take(value("audio", Some("data"), json, true));
        }
        builder.take(value("service_tier", None, "\"auto\"", false));
        builder.take(value("service_tier", None, "\"default\"", false));
        let extra = builder.finish();
        assert_eq!(
            extra.to_json(),
            r#"{"annotations":[1,2,{"a":[3]}],"audio":{"data":"UklGRg=="},"logprobs":{"content":[1,2,{"a":[3]}],"refusal":[4]},"service_tier":"default"}"#
        );
        assert_eq!(Extra::from_json(&extra.to_json()), Ok(extra));
    }

    #[test]
    fn d20_half_of_a_surrogate_pair_becomes_a_string() {
        let mut builder = ExtraBuilder::default();
        for json in [r#"["a"]"#, r#"["\ud83d"]"#, r#"["\ud83d\ude00"]"#] {
            builder.take(value("annotations", None, json, true));
        }
        assert_eq!(builder.finish().to_json(), r#"{"annotations":["a","[\"\\ud83d\"]","\ud83d\ude00"]}"#);
    }

    #[test]
    fn d20_a_value_that_is_no_object_is_not_lost() {
        assert_eq!(Extra::from_json("[1, 2]").map(|extra| extra.to_json()), Ok(r#"{"extra":[1,2]}"#.to_owned()));
        assert_eq!(Extra::from_json("null"), Ok(Extra::default()));
        assert!(Extra::from_json("{").is_err());
    }
}
