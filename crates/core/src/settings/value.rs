//! What a setting holds, and how text, JSON and TOML become it.

use std::fmt;

use serde_json::Value as Json;

use super::words::one_of;

/// What values a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Choice(&'static [&'static str]),
    /// A whole number of at least 1.
    Count,
    /// A whole number; 0 means no limit.
    Bytes,
    /// A share: above 0, up to 1.
    Fraction,
    /// At least 0.
    Number,
    /// Text without spaces, and not empty.
    Name,
    Text,
    List,
}

/// A value that its kind admits; only [`Kind`] makes one.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Bool(bool),
    Choice(&'static str),
    Count(u64),
    Number(f64),
    Text(String),
    List(Vec<String>),
}

/// Config files hold signed numbers; a count must fit one.
const LARGEST_COUNT: u64 = i64::MAX as u64;

impl Kind {
    /// What is valid, for a sentence that begins with "use".
    pub fn valid(self) -> String {
        match self {
            Kind::Bool => "true or false".to_owned(),
            Kind::Choice(words) => one_of(words),
            Kind::Count => "a whole number of at least 1".to_owned(),
            Kind::Bytes => "a whole number of bytes, 0 for no limit".to_owned(),
            Kind::Fraction => "a number above 0 and up to 1".to_owned(),
            Kind::Number => "a number of at least 0".to_owned(),
            Kind::Name => "a name without spaces".to_owned(),
            Kind::Text => "any text".to_owned(),
            Kind::List => "a list: a,b or [\"a\", \"b\"]".to_owned(),
        }
    }

    /// The values that can be listed, for completion.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Kind::Bool => &["true", "false"],
            Kind::Choice(words) => words,
            Kind::Count | Kind::Bytes | Kind::Fraction | Kind::Number | Kind::Name | Kind::Text | Kind::List => &[],
        }
    }

    /// A value as a person types it.
    pub(super) fn parse(self, text: &str) -> Option<Value> {
        let word = text.trim();
        match self {
            Kind::Bool => word.parse().ok().map(Value::Bool),
            Kind::Choice(words) => choice(words, word),
            Kind::Count => word.parse().ok().and_then(count),
            Kind::Bytes => word.parse().ok().and_then(bytes),
            Kind::Fraction => word.parse().ok().and_then(fraction),
            Kind::Number => word.parse().ok().and_then(number),
            Kind::Name => name(word),
            Kind::Text => Some(Value::Text(text.to_owned())),
            Kind::List if word.starts_with('[') => self.accept(&serde_json::from_str(word).ok()?),
            Kind::List => {
                let items = word.split(',').map(str::trim).filter(|item| !item.is_empty());
                Some(Value::List(items.map(str::to_owned).collect()))
            }
        }
    }

    /// A value that already has a type: from JSON, or TOML as JSON. A string
    /// that looks like a number is not one.
    pub(super) fn accept(self, given: &Json) -> Option<Value> {
        match self {
            Kind::Bool => given.as_bool().map(Value::Bool),
            Kind::Choice(words) => given.as_str().and_then(|word| choice(words, word)),
            Kind::Count => given.as_u64().and_then(count),
            Kind::Bytes => given.as_u64().and_then(bytes),
            Kind::Fraction => given.as_f64().and_then(fraction),
            Kind::Number => given.as_f64().and_then(number),
            Kind::Name => given.as_str().and_then(name),
            Kind::Text => given.as_str().map(|text| Value::Text(text.to_owned())),
            Kind::List => {
                let items = given.as_array()?.iter().map(|item| item.as_str().map(str::to_owned));
                items.collect::<Option<_>>().map(Value::List)
            }
        }
    }
}

fn choice(words: &'static [&'static str], given: &str) -> Option<Value> {
    words.iter().find(|word| **word == given).map(|word| Value::Choice(word))
}

fn count(given: u64) -> Option<Value> {
    (1..=LARGEST_COUNT).contains(&given).then_some(Value::Count(given))
}

fn bytes(given: u64) -> Option<Value> {
    (given <= LARGEST_COUNT).then_some(Value::Count(given))
}

fn fraction(given: f64) -> Option<Value> {
    (given > 0.0 && given <= 1.0).then_some(Value::Number(given))
}

fn number(given: f64) -> Option<Value> {
    (given.is_finite() && given >= 0.0).then_some(Value::Number(given))
}

fn name(given: &str) -> Option<Value> {
    let is_name = !given.is_empty() && !given.contains(|one: char| one.is_whitespace() || one.is_control());
    is_name.then(|| Value::Text(given.to_owned()))
}

impl Value {
    /// The same value as JSON, for files and headers.
    pub fn to_json(&self) -> Json {
        match self {
            Value::Bool(flag) => Json::from(*flag),
            Value::Choice(word) => Json::from(*word),
            Value::Count(count) => Json::from(*count),
            Value::Number(number) => Json::from(*number),
            Value::Text(text) => Json::from(text.as_str()),
            Value::List(items) => Json::from(items.as_slice()),
        }
    }
}

/// As a person would type it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(flag) => write!(f, "{flag}"),
            Value::Choice(word) => f.write_str(word),
            Value::Count(count) => write!(f, "{count}"),
            Value::Number(number) => write!(f, "{number}"),
            Value::Text(text) => f.write_str(text),
            // A comma may be part of a name, so the form that can quote it.
            Value::List(items) => write!(f, "{}", Json::from(items.as_slice())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CHOICE: Kind = Kind::Choice(&["one", "two"]);

    #[test]
    fn what_is_typed_becomes_a_value_or_nothing() {
        let list = |items: &[&str]| Some(Value::List(items.iter().map(|item| (*item).to_owned()).collect()));
        #[rustfmt::skip]
        let cases: &[(Kind, &str, Option<Value>)] = &[
            (Kind::Bool,     "true",                Some(Value::Bool(true))),
            (Kind::Bool,     " false ",             Some(Value::Bool(false))),
            (Kind::Bool,     "yes",                 None),
            (Kind::Bool,     "True",                None),
            (CHOICE,         "two",                 Some(Value::Choice("two"))),
            (CHOICE,         "Two",                 None),
            (CHOICE,         "",                    None),
            (Kind::Count,    "1",                   Some(Value::Count(1))),
            (Kind::Count,    "9223372036854775807", Some(Value::Count(i64::MAX as u64))),
            (Kind::Count,    "9223372036854775808", None),
            (Kind::Count,    "0",                   None),
            (Kind::Count,    "-1",                  None),
            (Kind::Count,    "1.5",                 None),
            (Kind::Bytes,    "0",                   Some(Value::Count(0))),
            (Kind::Bytes,    "67108864",            Some(Value::Count(67_108_864))),
            (Kind::Bytes,    "9223372036854775808", None),
            (Kind::Bytes,    "-1",                  None),
            (Kind::Bytes,    "64M",                 None),
            (Kind::Fraction, "0.8",                 Some(Value::Number(0.8))),
            (Kind::Fraction, "1",                   Some(Value::Number(1.0))),
            (Kind::Fraction, "0",                   None),
            (Kind::Fraction, "1.01",                None),
            (Kind::Fraction, "NaN",                 None),
            (Kind::Number,   "0",                   Some(Value::Number(0.0))),
            (Kind::Number,   "1.3",                 Some(Value::Number(1.3))),
            (Kind::Number,   "-0.1",                None),
            (Kind::Number,   "inf",                 None),
            (Kind::Name,     "field_name",          Some(Value::Text("field_name".to_owned()))),
            (Kind::Name,     "",                    None),
            (Kind::Name,     "two words",           None),
            (Kind::Text,     " as it is ",          Some(Value::Text(" as it is ".to_owned()))),
            (Kind::Text,     "",                    Some(Value::Text(String::new()))),
            (Kind::List,     "a.md, b.md",          list(&["a.md", "b.md"])),
            (Kind::List,     r#"["a,b.md"]"#,       list(&["a,b.md"])),
            (Kind::List,     "",                    list(&[])),
            (Kind::List,     "[]",                  list(&[])),
            (Kind::List,     "[1]",                 None),
            (Kind::List,     "[broken",             None),
        ];
        for (kind, text, expected) in cases {
            let got = kind.parse(text);
            assert_eq!(got, *expected, "{kind:?} {text:?}");
            // What is printed reads back, from text and from JSON.
            if let Some(value) = got {
                assert_eq!(kind.parse(&value.to_string()), Some(value.clone()), "{kind:?} {text:?}");
                assert_eq!(kind.accept(&value.to_json()), Some(value), "{kind:?} {text:?}");
            }
        }
    }

    #[test]
    fn a_typed_value_of_another_type_is_nothing() {
        let cases = [
            (Kind::Bool, json!("true")),
            (Kind::Bool, json!(1)),
            (CHOICE, json!(true)),
            (Kind::Count, json!("5")),
            (Kind::Count, json!(5.0)),
            (Kind::Fraction, json!("0.8")),
            (Kind::Number, json!(null)),
            (Kind::Text, json!(5)),
            (Kind::List, json!("a.md")),
            (Kind::List, json!({})),
        ];
        for (kind, given) in cases {
            assert_eq!(kind.accept(&given), None, "{kind:?} {given}");
        }
        assert_eq!(Kind::Number.accept(&json!(1)), Some(Value::Number(1.0)));
    }
}
