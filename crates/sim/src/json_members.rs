//! Extracts a few members of a large JSON object without parsing the rest.

use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The named members whose JSON is at most `max_bytes` long. Empty if the text is not an
/// object.
pub(crate) fn json_members(json: &str, names: &[&str], max_bytes: usize) -> Map<String, Value> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    MemberFilter { names, max_bytes }.deserialize(&mut deserializer).unwrap_or_default()
}

struct MemberFilter<'n> {
    names: &'n [&'n str],
    max_bytes: usize,
}

impl<'de> DeserializeSeed<'de> for MemberFilter<'_> {
    type Value = Map<String, Value>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MemberFilter<'_> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if !self.names.contains(&name.as_str()) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let raw: &RawValue = map.next_value()?;
            if raw.get().len() <= self.max_bytes
                && let Ok(value) = serde_json::from_str(raw.get())
            {
                found.insert(name, value);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_named_short_members_are_parsed() {
        let body = r#"{"model":"m","messages":[{"a":[1,2]}],"thinking":{"type":"x"},"long":"0123456789"}"#;
        let found = json_members(body, &["model", "thinking", "long", "absent"], 11);
        assert_eq!(Value::Object(found), json!({ "model": "m" }));
        let found = json_members(body, &["thinking", "long"], 100);
        assert_eq!(Value::Object(found), json!({ "thinking": { "type": "x" }, "long": "0123456789" }));
        for text in ["", "[1]", "{\"model\":", "7"] {
            assert!(json_members(text, &["model"], 100).is_empty(), "{text}");
        }
    }
}
