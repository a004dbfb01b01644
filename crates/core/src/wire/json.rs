//! Reads JSON from providers: borrowed, in order, and tolerant of values of the
//! wrong type.

use std::borrow::Cow;

pub(crate) use super::scan::Raw;
pub(super) use super::scan::{FromJson, JsonWalker, NotJson};
pub(crate) use super::scan::{JsonKind, each_element, each_member};
use crate::json_string::JsonText;
use crate::safe_json::escaped;

/// A string; any other value reads as absent.
#[derive(Debug, Clone, Default)]
pub(super) struct JsonString<'a>(Option<Cow<'a, str>>);

impl JsonString<'_> {
    /// The string, unless it is absent or empty: providers write `""` for null.
    pub(super) fn non_empty(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.0.as_deref() == Some(text)
    }
}

impl<'a> FromJson<'a> for JsonString<'a> {
    fn read(walk: &mut JsonWalker<'a>) -> Result<JsonString<'a>, NotJson> {
        walk.value().map(string_of)
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
pub(super) struct FirstChoice<T> {
    pub(super) element: Option<T>,
    pub(super) others: bool,
    /// There was a list, even if it was empty.
    pub(super) present: bool,
}

/// An element that may carry its index.
pub(super) trait Indexed {
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

        impl<'a> crate::wire::json::FromJson<'a> for $name<'a> {
            fn read(walk: &mut crate::wire::json::JsonWalker<'a>) -> Result<$name<'a>, crate::wire::json::NotJson> {
                let mut out = $name::default();
                walk.object(|key, walk| {
                    match key {
                        $($key => out.$field = crate::wire::json::FromJson::read(walk)?,)*
                        _ => walk.skip()?,
                    }
                    Ok(())
                })?;
                Ok(out)
            }
        }

        /// Any value but an object reads as `None`.
        impl<'a> crate::wire::json::FromJson<'a> for Option<$name<'a>> {
            fn read(walk: &mut crate::wire::json::JsonWalker<'a>) -> Result<Option<$name<'a>>, crate::wire::json::NotJson> {
                let present = walk.peek() == Some(b'{');
                let value: $name<'a> = crate::wire::json::FromJson::read(walk)?;
                Ok(present.then_some(value))
            }
        }
    )*};
}
pub(super) use members;

/// Parses a text that holds one value.
pub(super) fn parse<'a, T: FromJson<'a>>(text: &'a str) -> Result<T, NotJson> {
    JsonWalker::over(text, T::read)
}

/// Reads a value that was already scanned.
pub(super) fn read<'a, T: FromJson<'a>>(value: Raw<'a>) -> T {
    parse(value.get()).unwrap_or_default()
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

/// A nested member: `a.b.c`.
pub(crate) fn at_path<'a>(object: Raw<'a>, path: &str) -> Option<Raw<'a>> {
    path.split('.').try_fold(object, member)
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
pub(super) fn string_of(value: Raw<'_>) -> JsonString<'_> {
    let text = JsonText::of(value);
    JsonString(text.map(|text| text.as_plain().map_or_else(|| Cow::Owned(text.to_owned_text()), Cow::Borrowed)))
}

/// Null, `""`, `[]` and `{}` all mean "no value".
pub(super) fn is_empty_value(value: Raw<'_>) -> bool {
    matches!(value.get(), "null" | "\"\"" | "[]" | "{}")
}

/// JSON on one line: removes whitespace between tokens and nothing else.
pub(crate) fn compact(json: &str) -> Cow<'_, str> {
    let mut in_string = false;
    let mut escaped = false;
    let mut keep = |c: char| {
        match (in_string, c) {
            (true, _) if escaped => escaped = false,
            (true, '\\') => escaped = true,
            (_, '"') => in_string = !in_string,
            (false, ' ' | '\n' | '\r' | '\t') => return false,
            _ => (),
        }
        true
    };
    // Most items need no change.
    if json.chars().all(&mut keep) {
        return Cow::Borrowed(json);
    }
    (in_string, escaped) = (false, false);
    let mut keep = |c: &char| {
        match (in_string, c) {
            (true, _) if escaped => escaped = false,
            (true, '\\') => escaped = true,
            (_, '"') => in_string = !in_string,
            (false, ' ' | '\n' | '\r' | '\t') => return false,
            _ => (),
        }
        true
    };
    Cow::Owned(json.chars().filter(|c| keep(c)).collect())
}

/// JSON as our own files hold it: compact, with characters escaped that a
/// terminal should not see. Values read from a file are kept in this form, so
/// that a round trip does not change them.
pub(crate) fn canonical(json: &str) -> Cow<'_, str> {
    match compact(json) {
        Cow::Borrowed(json) => escaped(json),
        Cow::Owned(json) => match escaped(&json) {
            Cow::Owned(json) => Cow::Owned(json),
            Cow::Borrowed(_) => Cow::Owned(json),
        },
    }
}

/// Builds one JSON object, member by member, from values that are already JSON.
#[derive(Debug, Default, Clone)]
pub(crate) struct ObjectWriter(String);

impl ObjectWriter {
    pub(crate) fn push(&mut self, name: &str, json: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&quote(name));
        self.0.push(':');
        self.0.push_str(&compact(json));
    }

    /// Adds a value that is already compact and may be long.
    pub(crate) fn push_raw(&mut self, name: &str, json: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&quote(name));
        self.0.push(':');
        if json.len() > LONG {
            self.0.reserve_exact(json.len() + 1024);
        }
        self.0.push_str(json);
    }

    /// Adds a string, which may be long.
    pub(crate) fn push_text(&mut self, name: &str, text: &str) {
        self.push_raw(name, "");
        quote_into(&mut self.0, text);
    }

    /// Adds a list of values that are already compact and may be long.
    pub(crate) fn push_list(&mut self, name: &str, values: impl IntoIterator<Item = impl AsRef<str>>) {
        self.push_raw(name, "[");
        let begins = self.0.len();
        for value in values {
            if self.0.len() > begins {
                self.0.push(',');
            }
            self.0.push_str(value.as_ref());
        }
        self.0.push(']');
    }

    /// Adds the members of an object that are not present yet.
    pub(crate) fn push_new_members(&mut self, object: &str) {
        if let Ok(object) = Raw::of(object) {
            let known = self.clone().finish();
            each_member(object, |key, value| {
                if Raw::of(&known).is_ok_and(|known| member(known, key).is_none()) {
                    self.push(key, value.get());
                }
            });
        }
    }

    /// Adds all members of an object.
    pub(crate) fn push_members(&mut self, object: &str) {
        if let Ok(object) = Raw::of(object) {
            each_member(object, |key, value| self.push(key, value.get()));
        }
    }

    /// The text so far; not yet valid JSON.
    pub(crate) fn written(&self) -> &str {
        &self.0
    }

    /// Opens a list of about `bytes` bytes as the last member and returns the
    /// text. The caller closes both the list and the object.
    pub(crate) fn into_list(mut self, name: &str, bytes: usize) -> String {
        self.0.reserve(bytes + name.len() + 8);
        self.push_raw(name, "[");
        self.0
    }

    pub(crate) fn finish(mut self) -> String {
        if self.0.is_empty() {
            self.0.push('{');
        }
        self.0.push('}');
        self.0
    }
}

/// Text as a JSON string.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quote_into(&mut out, text);
    out
}

/// The character after the backslash, or `PLAIN`.
fn escape(byte: u8) -> u8 {
    match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x00..0x20 => b'u',
        _ => PLAIN,
    }
}

/// Marks a byte that needs no escape.
const PLAIN: u8 = 0;

/// A length from which memory is reserved in advance.
const LONG: usize = 1 << 20;

/// Appends text as a JSON string, without an intermediate copy.
pub(crate) fn quote_into(out: &mut String, text: &str) {
    // Growth by doubling would need twice the memory of a long text.
    if text.len() > LONG {
        out.reserve_exact(text.len() + text.len() / 16);
    }
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| escape(byte) != PLAIN) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let byte = special.as_bytes().first().copied().unwrap_or_default();
        out.push('\\');
        match escape(byte) {
            b'u' => out.push_str(&format!("u{byte:04x}")),
            letter => out.push(char::from(letter)),
        }
        rest = special.get(1..).unwrap_or("");
    }
    out.push_str(rest);
    out.push('"');
}

/// A list of values that are already JSON; each is dropped once written.
pub(crate) fn list_of(values: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut out = String::from("[");
    for value in values {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(value.as_ref());
    }
    out.push(']');
    out
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
    fn quoted_text_is_what_serde_writes() {
        let all: String = (0..0x100).filter_map(char::from_u32).chain(['\u{2028}', '\u{fffd}', '😀']).collect();
        for text in ["", "plain", "a\"b\\c\nd", &all] {
            assert_eq!(quote(text), serde_json::to_string(text).expect("serializable"));
        }
    }

    #[test]
    fn compact_touches_nothing_inside_strings() {
        assert_eq!(compact("{ \"a b\" : [ 1,\n 2 ] , \"c\\\" \" : \" \" }"), r#"{"a b":[1,2],"c\" ":" "}"#);
        assert!(matches!(compact(r#"{"a":1}"#), Cow::Borrowed(_)));
    }
}
