//! A few members of a long JSON object, without building the rest of it.

use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The members of these names that are no longer than so many bytes; nothing
/// where the text is no object.
pub(crate) fn members(json: &str, names: &[&str], longest: usize) -> Map<String, Value> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    Wanted { names, longest }.deserialize(&mut deserializer).unwrap_or_default()
}

struct Wanted<'n> {
    names: &'n [&'n str],
    longest: usize,
}

impl<'de> DeserializeSeed<'de> for Wanted<'_> {
    type Value = Map<String, Value>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Wanted<'_> {
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
            if raw.get().len() <= self.longest
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
    fn only_what_is_wanted_and_short_is_built() {
        let body = r#"{"model":"m","messages":[{"a":[1,2]}],"thinking":{"type":"x"},"long":"0123456789"}"#;
        let found = members(body, &["model", "thinking", "long", "absent"], 11);
        assert_eq!(Value::Object(found), json!({ "model": "m" }));
        let found = members(body, &["thinking", "long"], 100);
        assert_eq!(Value::Object(found), json!({ "thinking": { "type": "x" }, "long": "0123456789" }));
        for text in ["", "[1]", "{\"model\":", "7"] {
            assert!(members(text, &["model"], 100).is_empty(), "{text}");
        }
    }
}
