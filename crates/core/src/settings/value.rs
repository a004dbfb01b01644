//! The values of settings, and their conversion from text, JSON and TOML.

use std::fmt;

use serde_json::Value as Json;

use super::choices::one_of;

/// The kind of value a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingKind {
    /// `true` or `false`.
    Bool,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number of at least 1.
    Count,
    /// A whole number; 0 means no limit.
    Bytes,
    /// A fraction: above 0, up to 1.
    Fraction,
    /// At least 0.
    Number,
    /// Text without spaces. Not empty.
    Name,
    /// Any text.
    Text,
    /// A list of texts.
    List,
}

/// A valid value. Only [`SettingKind`] creates one.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingValue {
    /// For [`SettingKind::Bool`].
    Bool(bool),
    /// One of the words of its kind.
    Choice(&'static str),
    /// For [`SettingKind::Count`] and [`SettingKind::Bytes`].
    Count(u64),
    /// For [`SettingKind::Number`] and [`SettingKind::Fraction`].
    Number(f64),
    /// For [`SettingKind::Text`] and [`SettingKind::Name`].
    Text(String),
    /// For [`SettingKind::List`].
    List(Vec<String>),
}

/// Config files use signed integers.
const LARGEST_COUNT: u64 = i64::MAX as u64;

impl SettingKind {
    /// The valid values, to follow the word "use".
    pub fn valid(self) -> String {
        match self {
            SettingKind::Bool => "true or false".to_owned(),
            SettingKind::Choice(words) => one_of(words),
            SettingKind::Count => "a whole number of at least 1".to_owned(),
            SettingKind::Bytes => "a whole number of bytes, 0 for no limit".to_owned(),
            SettingKind::Fraction => "a number above 0 and up to 1".to_owned(),
            SettingKind::Number => "a number of at least 0".to_owned(),
            SettingKind::Name => "a name without spaces".to_owned(),
            SettingKind::Text => "any text".to_owned(),
            SettingKind::List => "a list: a,b or [\"a\", \"b\"]".to_owned(),
        }
    }

    /// The possible values for completion, if there are few.
    pub fn choices(self) -> &'static [&'static str] {
        match self {
            SettingKind::Bool => &["true", "false"],
            SettingKind::Choice(words) => words,
            SettingKind::Count
            | SettingKind::Bytes
            | SettingKind::Fraction
            | SettingKind::Number
            | SettingKind::Name
            | SettingKind::Text
            | SettingKind::List => &[],
        }
    }

    /// Parses a value from text.
    pub(super) fn parse(self, text: &str) -> Option<SettingValue> {
        let word = text.trim();
        match self {
            SettingKind::Bool => word.parse().ok().map(SettingValue::Bool),
            SettingKind::Choice(words) => choice(words, word),
            SettingKind::Count => word.parse().ok().and_then(count),
            SettingKind::Bytes => word.parse().ok().and_then(bytes),
            SettingKind::Fraction => word.parse().ok().and_then(fraction),
            SettingKind::Number => word.parse().ok().and_then(number),
            SettingKind::Name => name(word),
            SettingKind::Text => Some(SettingValue::Text(text.to_owned())),
            SettingKind::List if word.starts_with('[') => self.accept(&serde_json::from_str(word).ok()?),
            SettingKind::List => {
                let items = word.split(',').map(str::trim).filter(|item| !item.is_empty());
                Some(SettingValue::List(items.map(str::to_owned).collect()))
            }
        }
    }

    /// Accepts a typed value, from JSON or from TOML as JSON. A string that
    /// looks like a number is rejected.
    pub(super) fn accept(self, given: &Json) -> Option<SettingValue> {
        match self {
            SettingKind::Bool => given.as_bool().map(SettingValue::Bool),
            SettingKind::Choice(words) => given.as_str().and_then(|word| choice(words, word)),
            SettingKind::Count => given.as_u64().and_then(count),
            SettingKind::Bytes => given.as_u64().and_then(bytes),
            SettingKind::Fraction => given.as_f64().and_then(fraction),
            SettingKind::Number => given.as_f64().and_then(number),
            SettingKind::Name => given.as_str().and_then(name),
            SettingKind::Text => given.as_str().map(|text| SettingValue::Text(text.to_owned())),
            SettingKind::List => {
                let items = given.as_array()?.iter().map(|item| item.as_str().map(str::to_owned));
                items.collect::<Option<_>>().map(SettingValue::List)
            }
        }
    }
}

fn choice(words: &'static [&'static str], given: &str) -> Option<SettingValue> {
    words.iter().find(|word| **word == given).map(|word| SettingValue::Choice(word))
}

fn count(given: u64) -> Option<SettingValue> {
    (1..=LARGEST_COUNT).contains(&given).then_some(SettingValue::Count(given))
}

fn bytes(given: u64) -> Option<SettingValue> {
    (given <= LARGEST_COUNT).then_some(SettingValue::Count(given))
}

fn fraction(given: f64) -> Option<SettingValue> {
    (given > 0.0 && given <= 1.0).then_some(SettingValue::Number(given))
}

fn number(given: f64) -> Option<SettingValue> {
    (given.is_finite() && given >= 0.0).then_some(SettingValue::Number(given))
}

fn name(given: &str) -> Option<SettingValue> {
    let is_name = !given.is_empty() && !given.contains(|one: char| one.is_whitespace() || one.is_control());
    is_name.then(|| SettingValue::Text(given.to_owned()))
}

impl SettingValue {
    /// The same value as JSON, for files and headers.
    pub fn to_json(&self) -> Json {
        match self {
            SettingValue::Bool(flag) => Json::from(*flag),
            SettingValue::Choice(word) => Json::from(*word),
            SettingValue::Count(count) => Json::from(*count),
            SettingValue::Number(number) => Json::from(*number),
            SettingValue::Text(text) => Json::from(text.as_str()),
            SettingValue::List(items) => Json::from(items.as_slice()),
        }
    }
}

/// As the user would type it.
impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Bool(flag) => write!(f, "{flag}"),
            SettingValue::Choice(word) => f.write_str(word),
            SettingValue::Count(count) => write!(f, "{count}"),
            SettingValue::Number(number) => write!(f, "{number}"),
            SettingValue::Text(text) => f.write_str(text),
            // A comma may be part of an item, so JSON is used, which can quote
            // it.
            SettingValue::List(items) => write!(f, "{}", Json::from(items.as_slice())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CHOICE: SettingKind = SettingKind::Choice(&["one", "two"]);

    #[test]
    fn text_is_parsed_or_rejected_by_kind() {
        let list = |items: &[&str]| Some(SettingValue::List(items.iter().map(|item| (*item).to_owned()).collect()));
        #[rustfmt::skip]
        let cases: &[(SettingKind, &str, Option<SettingValue>)] = &[
            (SettingKind::Bool,     "true",                Some(SettingValue::Bool(true))),
            (SettingKind::Bool,     " false ",             Some(SettingValue::Bool(false))),
            (SettingKind::Bool,     "yes",                 None),
            (SettingKind::Bool,     "True",                None),
            (CHOICE,         "two",                 Some(SettingValue::Choice("two"))),
            (CHOICE,         "Two",                 None),
            (CHOICE,         "",                    None),
            (SettingKind::Count,    "1",                   Some(SettingValue::Count(1))),
            (SettingKind::Count,    "9223372036854775807", Some(SettingValue::Count(i64::MAX as u64))),
            (SettingKind::Count,    "9223372036854775808", None),
            (SettingKind::Count,    "0",                   None),
            (SettingKind::Count,    "-1",                  None),
            (SettingKind::Count,    "1.5",                 None),
            (SettingKind::Bytes,    "0",                   Some(SettingValue::Count(0))),
            (SettingKind::Bytes,    "67108864",            Some(SettingValue::Count(67_108_864))),
            (SettingKind::Bytes,    "9223372036854775808", None),
            (SettingKind::Bytes,    "-1",                  None),
            (SettingKind::Bytes,    "64M",                 None),
            (SettingKind::Fraction, "0.8",                 Some(SettingValue::Number(0.8))),
            (SettingKind::Fraction, "1",                   Some(SettingValue::Number(1.0))),
            (SettingKind::Fraction, "0",                   None),
            (SettingKind::Fraction, "1.01",                None),
            (SettingKind::Fraction, "NaN",                 None),
            (SettingKind::Number,   "0",                   Some(SettingValue::Number(0.0))),
            (SettingKind::Number,   "1.3",                 Some(SettingValue::Number(1.3))),
            (SettingKind::Number,   "-0.1",                None),
            (SettingKind::Number,   "inf",                 None),
            (SettingKind::Name,     "field_name",          Some(SettingValue::Text("field_name".to_owned()))),
            (SettingKind::Name,     "",                    None),
            (SettingKind::Name,     "two words",           None),
            (SettingKind::Text,     " as it is ",          Some(SettingValue::Text(" as it is ".to_owned()))),
            (SettingKind::Text,     "",                    Some(SettingValue::Text(String::new()))),
            (SettingKind::List,     "a.md, b.md",          list(&["a.md", "b.md"])),
            (SettingKind::List,     r#"["a,b.md"]"#,       list(&["a,b.md"])),
            (SettingKind::List,     "",                    list(&[])),
            (SettingKind::List,     "[]",                  list(&[])),
            (SettingKind::List,     "[1]",                 None),
            (SettingKind::List,     "[broken",             None),
        ];
        for (kind, text, expected) in cases {
            let got = kind.parse(text);
            assert_eq!(got, *expected, "{kind:?} {text:?}");
            // Printed values can be read back, from text and from JSON.
            if let Some(value) = got {
                assert_eq!(kind.parse(&value.to_string()), Some(value.clone()), "{kind:?} {text:?}");
                assert_eq!(kind.accept(&value.to_json()), Some(value), "{kind:?} {text:?}");
            }
        }
    }

    #[test]
    fn a_value_of_the_wrong_type_is_rejected() {
        let cases = [
            (SettingKind::Bool, json!("true")),
            (SettingKind::Bool, json!(1)),
            (CHOICE, json!(true)),
            (SettingKind::Count, json!("5")),
            (SettingKind::Count, json!(5.0)),
            (SettingKind::Fraction, json!("0.8")),
            (SettingKind::Number, json!(null)),
            (SettingKind::Text, json!(5)),
            (SettingKind::List, json!("a.md")),
            (SettingKind::List, json!({})),
        ];
        for (kind, given) in cases {
            assert_eq!(kind.accept(&given), None, "{kind:?} {given}");
        }
        assert_eq!(SettingKind::Number.accept(&json!(1)), Some(SettingValue::Number(1.0)));
    }
}
