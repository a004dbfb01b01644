//! The module agrees with serde on every text.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::*;

fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[ -~\\n\"\\\\é😀]{0,90}".prop_map(Value::from),
    ];
    scalar.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec(("[a-z\"\\n]{0,9}", inner), 0..6).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A value as this module reads it.
fn value_of(raw: Raw<'_>) -> Value {
    match raw.kind() {
        JsonKind::Object => {
            let mut object = Map::new();
            each_member(raw, |name, value| {
                object.insert(name.to_owned(), value_of(value));
            });
            Value::Object(object)
        }
        JsonKind::Array => {
            let mut array = Vec::new();
            each_element(raw, |value| array.push(value_of(value)));
            Value::Array(array)
        }
        JsonKind::Text => JsonText::of(raw).map_or(Value::Null, |text| Value::from(text.to_owned_text())),
        JsonKind::Null | JsonKind::Other => serde_json::from_str(raw.get()).unwrap_or(Value::Null),
    }
}

/// Writes a value with the module's own writer.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => object_into(out, |writer| {
            for (name, value) in object {
                write(value, writer.value(name));
            }
        }),
        Value::Array(array) => {
            out.push('[');
            let mut list = ListWriter::new(out);
            for value in array {
                write(value, list.next());
            }
            out.push(']');
        }
        Value::String(text) => quote_into(out, text),
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn d19_valid_json_is_read_as_serde_reads_it(value in any_value(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let raw = Raw::of(&text).unwrap();
        // Not the value itself: serde rounds some numbers.
        prop_assert_eq!(value_of(raw), serde_json::from_str::<Value>(&text).unwrap());
    }

    #[test]
    fn what_is_written_is_what_serde_writes(value in any_value()) {
        let (mut written, expected) = (String::new(), value.to_string());
        write(&value, &mut written);
        prop_assert_eq!(&written, &expected);
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(compact(&pretty), expected.as_str());
    }

    #[test]
    fn d19_what_serde_rejects_is_not_json(
        value in any_value(),
        changes in vec((any::<Index>(), select(DAMAGE.to_vec())), 1..4),
    ) {
        let mut text: Vec<char> = value.to_string().chars().collect();
        for (place, change) in changes {
            let at = place.index(text.len().max(1));
            match change {
                "" if at < text.len() => { text.remove(at); }
                change => text.splice(at..at, change.chars()).for_each(drop),
            }
        }
        let text: String = text.into_iter().collect();
        prop_assert_eq!(Raw::of(&text).is_ok(), is_json(&text), "{}", text);
    }

    #[test]
    fn d19_any_text_is_judged_as_serde_judges_it(
        words in vec(select(DAMAGE.to_vec()), 0..12),
    ) {
        let text = words.concat();
        prop_assert_eq!(Raw::of(&text).is_ok(), is_json(&text), "{}", text);
    }
}

/// What is inserted into a text; the empty one removes a character.
const DAMAGE: &[&str] = &[
    "", "{", "}", "[", "]", ",", ":", "\"", "\\", "\"a\"", "\"a\":", "1", "-", "0", ".", "e", "E+", "true", "null",
    " ", "\n", "\t", "\\u", "00e9", "\\ud83d", "\\n", "\u{1}", "é", "[[", "]]", "{}", "1.5e-3", "/", "x", "\u{7f}",
];

#[test]
fn d19_nesting_of_any_depth_is_checked() {
    for depth in [1, 63, 64, 65, 127, 128, 129, 1000] {
        let open = "[{\"a\":".repeat(depth);
        let close = "}]".repeat(depth);
        assert!(Raw::of(&format!("{open}1{close}")).is_ok(), "{depth}");
        let wrong = format!("{open}1{}", "]}".repeat(depth));
        assert!(Raw::of(&wrong).is_err(), "{depth}");
        let deep_fault = format!("{open}1 2{close}");
        assert!(Raw::of(&deep_fault).is_err(), "{depth}");
        let outer_fault = format!("[{open}1{close} 2]");
        assert!(Raw::of(&outer_fault).is_err(), "{depth}");
    }
}
