//! Reading other people's JSON: borrowed, ordered, and not surprised by a
//! number where a string should be.

use std::borrow::Cow;

pub(crate) use super::scan::Raw;
pub(super) use super::scan::{FromWalk, NotJson, Walk};
pub(crate) use super::scan::{Kind, each_element, each_entry};
use crate::safe_json::escaped;
use crate::text::JsonText;

/// A string; any other kind of value is nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Word<'a>(Option<Cow<'a, str>>);

impl Word<'_> {
    /// The word, unless it is absent or empty: providers write `""` for null.
    pub(super) fn said(&self) -> Option<&str> {
        self.0.as_deref().filter(|word| !word.is_empty())
    }

    pub(super) fn is(&self, word: &str) -> bool {
        self.0.as_deref() == Some(word)
    }
}

impl<'a> FromWalk<'a> for Word<'a> {
    fn read(walk: &mut Walk<'a>) -> Result<Word<'a>, NotJson> {
        walk.value().map(word_of)
    }
}

/// Null is nothing.
impl<'a> FromWalk<'a> for Option<Raw<'a>> {
    fn read(walk: &mut Walk<'a>) -> Result<Option<Raw<'a>>, NotJson> {
        walk.value().map(|value| Some(value).filter(|value| value.kind() != Kind::Null))
    }
}

impl<'a> FromWalk<'a> for Option<u64> {
    fn read(walk: &mut Walk<'a>) -> Result<Option<u64>, NotJson> {
        walk.value().map(count_of)
    }
}

impl<'a> FromWalk<'a> for Option<bool> {
    fn read(walk: &mut Walk<'a>) -> Result<Option<bool>, NotJson> {
        walk.value().map(|value| value.get().parse().ok())
    }
}

/// The element of a list that has the index 0, and whether there were others.
#[derive(Debug, Default)]
pub(super) struct Zeroth<T> {
    pub(super) element: Option<T>,
    pub(super) others: bool,
    /// There was a list, whatever it held.
    pub(super) present: bool,
}

/// Something that may say which one of several it is.
pub(super) trait Indexed {
    fn index(&self) -> Option<u64>;
}

impl<'a, T: FromWalk<'a> + Indexed> FromWalk<'a> for Zeroth<T> {
    fn read(walk: &mut Walk<'a>) -> Result<Zeroth<T>, NotJson> {
        let mut out = Zeroth { element: None, others: false, present: walk.peek() == Some(b'[') };
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

/// Declares the members of an object that a codec reads; the rest is passed over.
macro_rules! members {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $key:literal => $field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Default)]
        pub(super) struct $name<'a> {
            $($(#[$field_meta])* pub(super) $field: $kind,)*
        }

        impl<'a> crate::wire::json::FromWalk<'a> for $name<'a> {
            fn read(walk: &mut crate::wire::json::Walk<'a>) -> Result<$name<'a>, crate::wire::json::NotJson> {
                let mut out = $name::default();
                walk.object(|key, walk| {
                    match key {
                        $($key => out.$field = crate::wire::json::FromWalk::read(walk)?,)*
                        _ => walk.skip()?,
                    }
                    Ok(())
                })?;
                Ok(out)
            }
        }

        /// Only an object is one.
        impl<'a> crate::wire::json::FromWalk<'a> for Option<$name<'a>> {
            fn read(walk: &mut crate::wire::json::Walk<'a>) -> Result<Option<$name<'a>>, crate::wire::json::NotJson> {
                let present = walk.peek() == Some(b'{');
                let value: $name<'a> = crate::wire::json::FromWalk::read(walk)?;
                Ok(present.then_some(value))
            }
        }
    )*};
}
pub(super) use members;

/// Reads a text that holds one value.
pub(super) fn parse<'a, T: FromWalk<'a>>(text: &'a str) -> Result<T, NotJson> {
    Walk::over(text, T::read)
}

/// Reads a value that a walk has found.
pub(super) fn read<'a, T: FromWalk<'a>>(value: Raw<'a>) -> T {
    parse(value.get()).unwrap_or_default()
}

/// A member of an object by its name.
pub(crate) fn member<'a>(object: Raw<'a>, name: &str) -> Option<Raw<'a>> {
    let mut found = None;
    each_entry(object, |key, value| {
        if key == name {
            found = Some(value);
        }
    });
    found
}

/// A member below a member: `a.b.c`.
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

/// A whole number that is not negative; any other value is nothing.
/// Some servers write it as 12.0 or as a string.
pub(crate) fn count_of(value: Raw<'_>) -> Option<u64> {
    let word = value.get().trim_matches('"');
    word.strip_suffix(".0").unwrap_or(word).parse().ok()
}

/// A string; any other kind of value is nothing. Copied only to unescape it.
pub(super) fn word_of(value: Raw<'_>) -> Word<'_> {
    let text = JsonText::of(value);
    Word(text.map(|text| text.as_plain().map_or_else(|| Cow::Owned(text.to_owned_text()), Cow::Borrowed)))
}

/// Null, `""`, `[]` and `{}` all mean that there is nothing.
pub(super) fn is_void(value: Raw<'_>) -> bool {
    matches!(value.get(), "null" | "\"\"" | "[]" | "{}")
}

/// JSON on one line: white space between tokens goes, everything else stays.
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
    // Most items come without a single space too many.
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

/// JSON as our own files hold it: without white space between the values, and
/// with what no terminal should see as escapes. What is read from a file is kept
/// in this form, so that it is the same after it was written and read again.
pub(crate) fn canonical(json: &str) -> Cow<'_, str> {
    match compact(json) {
        Cow::Borrowed(json) => escaped(json),
        Cow::Owned(json) => match escaped(&json) {
            Cow::Owned(json) => Cow::Owned(json),
            Cow::Borrowed(_) => Cow::Owned(json),
        },
    }
}

/// Builds one JSON object, member by member, from values that are JSON already.
#[derive(Debug, Default, Clone)]
pub(crate) struct ObjectWriter(String);

impl ObjectWriter {
    pub(crate) fn push(&mut self, name: &str, json: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&quote(name));
        self.0.push(':');
        self.0.push_str(&compact(json));
    }

    /// A value that is tight already and may be long.
    pub(crate) fn push_raw(&mut self, name: &str, json: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&quote(name));
        self.0.push(':');
        if json.len() > LONG {
            self.0.reserve_exact(json.len() + 1024);
        }
        self.0.push_str(json);
    }

    /// A text, which may be long.
    pub(crate) fn push_text(&mut self, name: &str, text: &str) {
        self.push_raw(name, "");
        quote_into(&mut self.0, text);
    }

    /// A list of values that are tight already and may be long.
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

    /// Every member of an object that is not there yet.
    pub(crate) fn push_new_members(&mut self, object: &str) {
        if let Ok(object) = Raw::of(object) {
            let known = self.clone().finish();
            each_entry(object, |key, value| {
                if Raw::of(&known).is_ok_and(|known| member(known, key).is_none()) {
                    self.push(key, value.get());
                }
            });
        }
    }

    /// Every member of an object.
    pub(crate) fn push_members(&mut self, object: &str) {
        if let Ok(object) = Raw::of(object) {
            each_entry(object, |key, value| self.push(key, value.get()));
        }
    }

    /// What there is so far; not JSON yet.
    pub(crate) fn written(&self) -> &str {
        &self.0
    }

    /// The object up to the first element of its last member, a list of about
    /// that many bytes. Whoever writes the list also closes both.
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

/// What stands behind the backslash for a byte.
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

/// A byte that is written as it is.
const PLAIN: u8 = 0;

/// A text whose room is worth reserving.
const LONG: usize = 1 << 20;

/// The same, behind what is written already: a long text is not copied twice.
pub(crate) fn quote_into(out: &mut String, text: &str) {
    // Growing by doubling would take the room of a long text twice.
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

/// A list of values that are JSON already, each let go of once it is written.
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
        Both { "word" => word: Word<'a>, "count" => count: Option<u64> }
    }

    #[test]
    fn a_wrong_kind_of_value_is_nothing_and_not_an_error() {
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
