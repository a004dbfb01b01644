//! Reads JSON from providers: borrowed, in order, and tolerant of values of the
//! wrong type.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Map, Value};

use super::string::JsonText;
use super::walker::{FromJson, JsonKind, JsonWalker, NotJson, Raw, each_element, each_member};

/// A string; any other value reads as absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonString<'a>(Option<Cow<'a, str>>);

impl<'a> JsonString<'a> {
    fn of(text: JsonText<'a>) -> JsonString<'a> {
        JsonString(Some(text.as_plain().map_or_else(|| Cow::Owned(text.to_owned_text()), Cow::Borrowed)))
    }

    /// The string, unless it is absent or empty: providers write `""` for null.
    pub(crate) fn non_empty(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        self.0.as_deref() == Some(text)
    }
}

impl<'a> FromJson<'a> for JsonString<'a> {
    fn read(walk: &mut JsonWalker<'a>) -> Result<JsonString<'a>, NotJson> {
        match walk.peek() {
            Some(b'"') => Ok(JsonString::of(walk.string()?)),
            _ => walk.skip().map(|()| JsonString::default()),
        }
    }
}

/// Null reads as absent.
impl<'a> FromJson<'a> for Option<Raw<'a>> {
    fn read(walk: &mut JsonWalker<'a>) -> Result<Option<Raw<'a>>, NotJson> {
        walk.value().map(|value| Some(value).filter(|value| value.kind() != JsonKind::Null))
    }
}

impl<'a> FromJson<'a> for Option<u64> {
    fn read(walk: &mut JsonWalker<'a>) -> Result<Option<u64>, NotJson> {
        walk.value().map(count_of)
    }
}

impl<'a> FromJson<'a> for Option<bool> {
    fn read(walk: &mut JsonWalker<'a>) -> Result<Option<bool>, NotJson> {
        walk.value().map(|value| value.get().parse().ok())
    }
}

/// The element of a list with index 0, and whether there were others.
#[derive(Debug, Default)]
pub(crate) struct FirstChoice<T> {
    pub(crate) element: Option<T>,
    pub(crate) others: bool,
    /// There was a list, even if it was empty.
    pub(crate) present: bool,
}

/// An element that may carry its index.
pub(crate) trait Indexed {
    fn index(&self) -> Option<u64>;
}

impl<'a, T: FromJson<'a> + Indexed> FromJson<'a> for FirstChoice<T> {
    fn read(walk: &mut JsonWalker<'a>) -> Result<FirstChoice<T>, NotJson> {
        let mut out = FirstChoice { element: None, others: false, present: walk.peek() == Some(b'[') };
        walk.array(|walk| {
            let element = T::read(walk)?;
            if element.index().unwrap_or(0) == 0 && out.element.is_none() {
                out.element = Some(element);
            } else {
                out.others = true;
            }
            Ok(())
        })?;
        Ok(out)
    }
}

/// Declares the members of an object that a decoder reads; others are skipped.
macro_rules! members {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $key:literal => $field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Default)]
        pub(super) struct $name<'a> {
            $($(#[$field_meta])* pub(super) $field: $kind,)*
        }

        impl<'a> crate::json_text::FromJson<'a> for $name<'a> {
            fn read(walk: &mut crate::json_text::JsonWalker<'a>) -> Result<$name<'a>, crate::json_text::NotJson> {
                let mut out = $name::default();
                walk.object(|key, walk| {
                    match key {
                        $($key => out.$field = crate::json_text::FromJson::read(walk)?,)*
                        _ => walk.skip()?,
                    }
                    Ok(())
                })?;
                Ok(out)
            }
        }

        /// Any value but an object reads as `None`.
        impl<'a> crate::json_text::FromJson<'a> for Option<$name<'a>> {
            fn read(walk: &mut crate::json_text::JsonWalker<'a>) -> Result<Option<$name<'a>>, crate::json_text::NotJson> {
                let present = walk.peek() == Some(b'{');
                let value: $name<'a> = crate::json_text::FromJson::read(walk)?;
                Ok(present.then_some(value))
            }
        }
    )*};
}
pub(crate) use members;

/// As [`members`], and remembers in `unread` whether there were other members.
/// Those after `else` are understood and hold nothing to keep.
macro_rules! kept_members {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $key:literal => $field:ident: $kind:ty),* $(,)? } else $($ignored:literal)|*;)*) => {$(
        $(#[$meta])*
        #[derive(Debug, Default)]
        pub(super) struct $name<'a> {
            $($(#[$field_meta])* pub(super) $field: $kind,)*
            pub(super) unread: bool,
        }

        impl $name<'_> {
            const IGNORED: &'static [&'static str] = &[$($ignored),*];

            /// Visits the members that are not understood.
            pub(super) fn each_unread<'v>(object: crate::json_text::Raw<'v>, mut take: impl FnMut(&str, crate::json_text::Raw<'v>)) {
                crate::json_text::each_member(object, |key, value| match key {
                    $($key)|* => (),
                    _ if Self::IGNORED.contains(&key) => (),
                    _ => take(key, value),
                });
            }
        }

        impl<'a> crate::json_text::FromJson<'a> for $name<'a> {
            fn read(walk: &mut crate::json_text::JsonWalker<'a>) -> Result<$name<'a>, crate::json_text::NotJson> {
                let mut out = $name::default();
                walk.object(|key, walk| {
                    match key {
                        $($key => out.$field = crate::json_text::FromJson::read(walk)?,)*
                        _ if Self::IGNORED.contains(&key) => walk.skip()?,
                        _ => {
                            let value = walk.value()?;
                            out.unread |= !crate::json_text::is_empty_value(value);
                        }
                    }
                    Ok(())
                })?;
                Ok(out)
            }
        }
    )*};
}
pub(crate) use kept_members;

/// Parses a text that holds one value.
pub(crate) fn parse<'a, T: FromJson<'a>>(text: &'a str) -> Result<T, NotJson> {
    JsonWalker::over(text, T::read)
}

/// Reads a value that was already checked.
pub(crate) fn read<'a, T: FromJson<'a>>(value: Raw<'a>) -> T {
    T::read(&mut JsonWalker::again(value)).unwrap_or_default()
}

/// A member of an object by its name.
pub(crate) fn member<'a>(object: Raw<'a>, name: &str) -> Option<Raw<'a>> {
    let mut found = None;
    each_member(object, |key, value| {
        if key == name {
            found = Some(value);
        }
    });
    found
}

/// The members of an object, found once: each [`member`] reads the whole object.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectMembers<'a> {
    members: Vec<(Box<str>, Raw<'a>)>,
}

impl<'a> ObjectMembers<'a> {
    /// Empty for any other value.
    pub(crate) fn of(object: Raw<'a>) -> ObjectMembers<'a> {
        let mut members = Vec::new();
        each_member(object, |name, value| members.push((Box::from(name), value)));
        ObjectMembers { members }
    }

    /// The last member with this name.
    pub(crate) fn get(&self, name: &str) -> Option<Raw<'a>> {
        self.members.iter().rev().find(|(own, _)| **own == *name).map(|(_, value)| *value)
    }

    /// A nested member or element: `a.0.c`.
    pub(crate) fn at_path(&self, path: &str) -> Option<Raw<'a>> {
        match path.split_once('.') {
            Some((name, rest)) => at_path(self.get(name)?, rest),
            None => self.get(path),
        }
    }
}

/// Checks an object and parses a few of its members: those with these names, at
/// most `max_bytes` long. Empty for any other value.
pub fn short_members(json: &str, names: &[&str], max_bytes: usize) -> Result<Map<String, Value>, NotJson> {
    let mut found = Map::new();
    each_member(Raw::of(json)?, |name, value| {
        if names.contains(&name)
            && value.get().len() <= max_bytes
            && let Ok(value) = serde_json::from_str(value.get())
        {
            found.insert(name.to_owned(), value);
        }
    });
    Ok(found)
}

/// A nested member or element: `a.0.c`.
pub(crate) fn at_path<'a>(value: Raw<'a>, path: &str) -> Option<Raw<'a>> {
    path.split('.').try_fold(value, |value, step| match value.kind() {
        JsonKind::Array => element(value, step.parse().ok()?),
        JsonKind::Object | JsonKind::Null | JsonKind::Text | JsonKind::Other => member(value, step),
    })
}

fn element(array: Raw<'_>, index: usize) -> Option<Raw<'_>> {
    let (mut at, mut found) = (0, None);
    each_element(array, |element| {
        if at == index {
            found = Some(element);
        }
        at += 1;
    });
    found
}

/// Where a value lies in the text that it was read from.
pub(crate) fn range_of(text: &str, value: Raw<'_>) -> Option<Range<usize>> {
    let start = (value.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let range = start..start + value.get().len();
    text.get(range.clone()).map(|_| range)
}

/// A string member that is not empty, unescaped.
pub(crate) fn text_member(object: Raw<'_>, name: &str) -> Option<String> {
    text_of(member(object, name)?)
}

/// A string that is not empty, unescaped.
pub(crate) fn text_of(value: Raw<'_>) -> Option<String> {
    JsonText::of(value).filter(|text| !text.is_empty()).map(JsonText::to_owned_text)
}

/// A non-negative integer; any other value reads as absent. Some servers write it
/// as 12.0 or as a string.
pub(crate) fn count_of(value: Raw<'_>) -> Option<u64> {
    let number = value.get().trim_matches('"');
    number.strip_suffix(".0").unwrap_or(number).parse().ok()
}

/// A string, copied only if it must be unescaped; any other value reads as
/// absent.
pub(crate) fn string_of(value: Raw<'_>) -> JsonString<'_> {
    JsonText::of(value).map(JsonString::of).unwrap_or_default()
}

/// Null, `""`, `[]` and `{}` all mean "no value".
pub(crate) fn is_empty_value(value: Raw<'_>) -> bool {
    matches!(value.get(), "null" | "\"\"" | "[]" | "{}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Raw<'_> {
        Raw::of(json).expect("valid JSON")
    }

    #[test]
    fn members_are_found_by_name_and_by_path() {
        assert_eq!(at_path(raw(r#"{"a":{"b":{"c":3}}}"#), "a.b.c").map(Raw::get), Some("3"));
        assert_eq!(at_path(raw(r#"{"a":[1,{"b":[2,3]}]}"#), "a.1.b.0").map(Raw::get), Some("2"));
        assert_eq!(at_path(raw(r#"{"a":[1]}"#), "a.1"), None);
        let json = r#"{"a":[1, 22]}"#;
        assert_eq!(at_path(raw(json), "a.1").and_then(|value| range_of(json, value)), Some(9..11));
        assert_eq!(text_member(raw(r#"{"a":"x\ny","b":""}"#), "a").as_deref(), Some("x\ny"));
        assert_eq!(text_member(raw(r#"{"a":"x","b":""}"#), "b"), None);
    }

    members! {
        Both { "word" => word: JsonString<'a>, "count" => count: Option<u64> }
    }

    #[test]
    fn a_value_of_the_wrong_type_reads_as_absent() {
        let read = |json: &str| {
            let both: Both<'_> = parse(json).expect("valid JSON");
            (both.word.0.map(Cow::into_owned), both.count)
        };
        assert_eq!(read(r#"{"word":"a","count":1}"#), (Some("a".into()), Some(1)));
        assert_eq!(read(r#"{"word":"a\nb","count":2.0}"#), (Some("a\nb".into()), Some(2)));
        assert_eq!(read(r#"{"word":{"a":[1]},"count":[1]}"#), (None, None));
        assert_eq!(read(r#"{"word":7,"count":-1}"#), (None, None));
        assert_eq!(read(r#"{"word":null,"count":null}"#), (None, None));
        assert_eq!(read("{}"), (None, None));
    }

    #[test]
    fn only_the_named_short_members_are_parsed() {
        let body = r#"{"model":"m","messages":[{"a":[1,2]}],"thinking":{"type":"x"},"long":"0123456789"}"#;
        let found = short_members(body, &["model", "thinking", "long", "absent"], 11).map(Value::Object);
        assert_eq!(found, Ok(serde_json::json!({ "model": "m" })));
        let found = short_members(body, &["thinking", "long"], 100).map(Value::Object);
        assert_eq!(found, Ok(serde_json::json!({ "thinking": { "type": "x" }, "long": "0123456789" })));
        for text in ["[1]", "7", "null"] {
            assert_eq!(short_members(text, &["model"], 100), Ok(Map::new()), "{text}");
        }
        for text in ["", "{\"model\":", "{\"model\":\"m\" \"x\":1}"] {
            assert!(short_members(text, &["model"], 100).is_err(), "{text}");
        }
    }
}
