//! Arguments for a tool call, and answers for which the request has a schema: only the
//! required properties, with values that satisfy the JSON schema.

use std::cell::Cell;

use aside_core::conversation::ToolSpec;
use serde_json::{Map, Number, Value};

use crate::tools::words_of;

/// How deep to follow a schema, references included.
const MAX_DEPTH: u32 = 12;

/// How many schemas to visit. References can make a small schema endless.
const MAX_VISITS: u32 = 10_000;

/// The most elements of an array or characters of a string that a schema may demand.
const MAX_LENGTH: u64 = 64;

/// Arguments that satisfy a tool's schema. `nth` makes parallel calls differ.
pub(crate) fn arguments(tool: &ToolSpec, nth: usize) -> String {
    let root: Value = serde_json::from_str(&tool.parameters).unwrap_or_default();
    let reads_files = words_of(&tool.name).iter().any(|word| word == "read");
    let generator = ArgumentGenerator { root: &root, reads_files, nth, visits: Cell::new(0) };
    Value::Object(generator.object(&generator.resolved(&root, MAX_DEPTH), MAX_DEPTH)).to_string()
}

/// A value that satisfies a schema.
pub(crate) fn fitting_value(schema: &Value) -> Value {
    let generator = ArgumentGenerator { root: schema, reads_files: false, nth: 0, visits: Cell::new(0) };
    generator.value("answer", schema, MAX_DEPTH)
}

struct ArgumentGenerator<'a> {
    /// The whole schema, which references point into.
    root: &'a Value,
    reads_files: bool,
    nth: usize,
    /// How many schemas have been visited.
    visits: Cell<u32>,
}

impl ArgumentGenerator<'_> {
    /// The schema itself, without references, with the parts of `allOf` merged into it,
    /// and with the first useful alternative chosen.
    fn resolved(&self, schema: &Value, depth: u32) -> Value {
        let Some(depth) = depth.checked_sub(1) else { return Value::Null };
        self.visits.set(self.visits.get() + 1);
        let Some(own) = schema.as_object().filter(|_| self.visits.get() <= MAX_VISITS) else { return Value::Null };
        let mut merged = own.clone();
        if let Some(target) = own.get("$ref").and_then(Value::as_str).and_then(|path| self.target(path)) {
            merged.remove("$ref");
            merge(&mut merged, &self.resolved(target, depth));
        }
        for part in keyword(schema, "allOf").and_then(Value::as_array).into_iter().flatten() {
            merge(&mut merged, &self.resolved(part, depth));
        }
        for choice in ["anyOf", "oneOf"] {
            let alternatives = keyword(schema, choice).and_then(Value::as_array);
            let mut resolved = alternatives.into_iter().flatten().map(|schema| self.resolved(schema, depth));
            if let Some(first) = resolved.find(|schema| kind_of(schema).as_deref() != Some("null")) {
                merge(&mut merged, &first);
            }
        }
        Value::Object(merged)
    }

    fn target(&self, path: &str) -> Option<&Value> {
        let pointer = path.strip_prefix('#')?;
        if pointer.is_empty() { Some(self.root) } else { self.root.pointer(pointer) }
    }

    fn object(&self, schema: &Value, depth: u32) -> Map<String, Value> {
        let required = schema.get("required").and_then(Value::as_array);
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        let filled = |name: &str| {
            let schema = schema.get("properties").and_then(|properties| properties.get(name));
            self.value(name, schema.unwrap_or(&Value::Null), depth)
        };
        names.map(|name| (name.to_owned(), filled(name))).collect()
    }

    fn value(&self, name: &str, schema: &Value, depth: u32) -> Value {
        let Some(depth) = depth.checked_sub(1) else { return Value::Null };
        let schema = self.resolved(schema, depth);
        let given = ["const", "default"].iter().find_map(|key| schema.get(key).filter(|value| !value.is_null()));
        let listed = || schema.get("enum")?.as_array()?.iter().find(|value| !value.is_null());
        if let Some(value) = given.or_else(listed) {
            return value.clone();
        }
        match kind_of(&schema).as_deref() {
            Some("integer") => number(&schema, true),
            Some("number") => number(&schema, false),
            Some("boolean") => false.into(),
            Some("null") => Value::Null,
            Some("array") => self.array(name, &schema, depth).into(),
            Some("object") => self.object(&schema, depth).into(),
            Some(_) | None => self.text(name, &schema).into(),
        }
    }

    fn array(&self, name: &str, schema: &Value, depth: u32) -> Vec<Value> {
        if let Some(items) = keyword(schema, "prefixItems").and_then(Value::as_array) {
            return items.iter().map(|item| self.value(name, item, depth)).collect();
        }
        let is_command = words_of(name).iter().any(|word| COMMAND.contains(&word.as_str()));
        let least = count(schema, "minItems").unwrap_or(u64::from(is_command)).min(MAX_LENGTH);
        let item = schema.get("items").unwrap_or(&Value::Null);
        (0..least).map(|_| self.value(name, item, depth)).collect()
    }

    fn text(&self, name: &str, schema: &Value) -> String {
        let mut text = match schema.get("format").and_then(Value::as_str) {
            Some("uri" | "url") => "https://example.com/".to_owned(),
            Some("date") => "2025-01-01".to_owned(),
            Some("time") => "12:00:00Z".to_owned(),
            Some("date-time") => "2025-01-01T12:00:00Z".to_owned(),
            Some("email") => "sim@example.com".to_owned(),
            Some("uuid") => "00000000-0000-4000-8000-000000000000".to_owned(),
            Some(_) | None => self.plain_text(name),
        };
        let least = usize::try_from(count(schema, "minLength").unwrap_or(0).min(MAX_LENGTH)).unwrap_or(0);
        let length = text.chars().count();
        text.extend(std::iter::repeat_n('x', least.saturating_sub(length)));
        match count(schema, "maxLength").and_then(|most| usize::try_from(most).ok()) {
            Some(most) => text.chars().take(most).collect(),
            None => text,
        }
    }

    /// A harmless string that still finds something.
    fn plain_text(&self, name: &str) -> String {
        let words = words_of(name);
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
        match () {
            () if has(&["pattern", "glob"]) => "*".to_owned(),
            () if has(&COMMAND) => "ls".to_owned(),
            () if has(&["url", "uri"]) => "https://example.com/".to_owned(),
            () if has(&["file", "filename", "filepath"]) || (has(&["path"]) && self.reads_files) => {
                "README.md".to_owned()
            }
            () if has(&["path", "dir", "directory", "folder", "cwd", "workdir"]) => ".".to_owned(),
            () if self.nth > 0 => format!("simulated {}", self.nth + 1),
            () => "simulated".to_owned(),
        }
    }
}

/// Names of properties that hold a shell command.
const COMMAND: [&str; 2] = ["command", "cmd"];

/// A keyword of a schema, in camel or in snake case: Google's SDKs write both.
fn keyword<'a>(schema: &'a Value, camel: &str) -> Option<&'a Value> {
    let snake = || words_of(camel).join("_");
    schema.get(camel).or_else(|| schema.get(snake()))
}

fn count(schema: &Value, name: &str) -> Option<u64> {
    let value = keyword(schema, name)?;
    // Google writes 64-bit numbers as strings.
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The type in lower case. Google writes it in capitals.
fn kind_of(schema: &Value) -> Option<String> {
    let named = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        kind => kind.and_then(Value::as_str),
    };
    let implied = || schema.get("properties").map(|_| "object").or_else(|| schema.get("items").map(|_| "array"));
    named.or_else(implied).map(str::to_lowercase)
}

/// 1, or the nearest number that the schema accepts.
fn number(schema: &Value, whole: bool) -> Value {
    let limit = |name: &str| keyword(schema, name).and_then(Value::as_f64);
    let least = limit("minimum").or_else(|| limit("exclusiveMinimum").map(|limit| limit + 1.0));
    let most = limit("maximum").or_else(|| limit("exclusiveMaximum").map(|limit| limit - 1.0));
    let mut value = 1f64.max(least.unwrap_or(f64::MIN));
    if let Some(step) = limit("multipleOf").filter(|step| *step > 0.0) {
        value = (value / step).ceil() * step;
    }
    let value = value.min(most.unwrap_or(f64::MAX));
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole")]
    let as_whole = || Number::from(value as i64);
    let number = if whole || value.fract() == 0.0 { Some(as_whole()) } else { Number::from_f64(value) };
    number.map_or(Value::Null, Value::Number)
}

/// Adds the keywords of another schema. Properties and required names are joined.
fn merge(schema: &mut Map<String, Value>, other: &Value) {
    for (name, value) in other.as_object().into_iter().flatten() {
        match (schema.get_mut(name), value) {
            (Some(Value::Object(known)), Value::Object(more)) if name == "properties" => {
                for (name, value) in more {
                    known.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
            (Some(Value::Array(known)), Value::Array(more)) if name == "required" => {
                let missing: Vec<Value> = more.iter().filter(|name| !known.contains(name)).cloned().collect();
                known.extend(missing);
            }
            (Some(_), _) => (),
            (None, value) => {
                schema.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x4_arguments_satisfy_the_schema() {
        #[rustfmt::skip]
        let cases = [
            ("nothing required", "list", r#"{"type":"object","properties":{"path":{"type":"string"}}}"#,                     "{}"),
            ("a folder",         "list", r#"{"properties":{"path":{"type":"string"}},"required":["path"]}"#,                 r#"{"path":"."}"#),
            ("a file",           "read", r#"{"properties":{"path":{"type":"string"}},"required":["path"]}"#,                 r#"{"path":"README.md"}"#),
            ("camel case",       "t",    r#"{"properties":{"filePath":{"type":"string"}},"required":["filePath"]}"#,         r#"{"filePath":"README.md"}"#),
            ("snake case",       "t",    r#"{"properties":{"file_path":{"type":"string"}},"required":["file_path"]}"#,       r#"{"file_path":"README.md"}"#),
            ("a pattern",        "glob", r#"{"properties":{"pattern":{"type":"string"}},"required":["pattern"]}"#,           r#"{"pattern":"*"}"#),
            ("a command",        "t",    r#"{"properties":{"command":{"type":"array","items":{"type":"string"}}},"required":["command"]}"#, r#"{"command":["ls"]}"#),
            ("numbers",          "t",    r#"{"properties":{"n":{"type":"integer","minimum":3},"b":{"type":"boolean"}},"required":["n","b"]}"#, r#"{"b":false,"n":3}"#),
            ("limits",           "t",    r#"{"properties":{"n":{"type":"number","exclusiveMinimum":4,"multipleOf":5},"m":{"type":"integer","maximum":0}},"required":["n","m"]}"#, r#"{"m":0,"n":5}"#),
            ("a choice",         "t",    r#"{"properties":{"unit":{"type":"string","enum":["c","f"]}},"required":["unit"]}"#, r#"{"unit":"c"}"#),
            ("or nothing",       "t",    r#"{"properties":{"q":{"type":["null","string"]}},"required":["q"]}"#,              r#"{"q":"simulated"}"#),
            ("one of several",   "t",    r#"{"properties":{"q":{"anyOf":[{"type":"null"},{"type":"integer"}]}},"required":["q"]}"#, r#"{"q":1}"#),
            ("a reference",      "t",    r##"{"$defs":{"U":{"type":"object","properties":{"k":{"enum":["a"]}},"required":["k"]}},"properties":{"u":{"$ref":"#/$defs/U"}},"required":["u"]}"##, r#"{"u":{"k":"a"}}"#),
            ("references in a circle", "t", r##"{"$defs":{"N":{"$ref":"#/$defs/N"}},"properties":{"n":{"$ref":"#/$defs/N"}},"required":["n"]}"##, r#"{"n":"simulated"}"#),
            ("parts",            "t",    r#"{"allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"boolean"}},"required":["b"]}]}"#, r#"{"a":1,"b":false}"#),
            ("Google's words",   "t",    r#"{"type":"OBJECT","properties":{"a":{"type":"ARRAY","min_items":"1","items":{"any_of":[{"type":"NULL"},{"type":"INTEGER"}]}}},"required":["a"]}"#, r#"{"a":[1]}"#),
            ("lengths",          "t",    r#"{"properties":{"a":{"type":"string","maxLength":3},"b":{"type":"string","minLength":11}},"required":["a","b"]}"#, r#"{"a":"sim","b":"simulatedxx"}"#),
            ("a format",         "t",    r#"{"properties":{"u":{"type":"string","format":"uri"}},"required":["u"]}"#,        r#"{"u":"https://example.com/"}"#),
            ("nested",           "t",    r#"{"properties":{"o":{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]},"a":{"type":"array","minItems":1,"items":{"type":"string"}}},"required":["o","a"]}"#, r#"{"a":["simulated"],"o":{"k":"simulated"}}"#),
            ("no schema",        "t",    "",                                                                                 "{}"),
        ];
        for (name, called, schema, expected) in cases {
            let tool = ToolSpec::new(called, "", schema);
            assert_eq!(arguments(&tool, 0), expected, "{name}");
        }
    }

    #[test]
    fn x4_an_answer_fits_the_schema_of_the_request() {
        #[rustfmt::skip]
        let cases = [
            r#"{"type":"object","properties":{"depth":{"type":"number","minimum":3},"unit":{"enum":["m","ft"]}},"required":["depth","unit"],"additionalProperties":false}"#,
            r#"{"type":"array","minItems":2,"items":{"type":"object","properties":{"n":{"type":"integer","exclusiveMinimum":4}},"required":["n"]}}"#,
            r#"{"type":"string","minLength":30}"#,
            r#"{"anyOf":[{"type":"null"},{"type":"boolean"}]}"#,
            r#"{"const":7}"#,
            r#"{}"#,
            r##"{"$defs":{"P":{"type":"object","properties":{"x":{"type":"number","maximum":-2}},"required":["x"]}},"type":"object","properties":{"p":{"$ref":"#/$defs/P"}},"required":["p"]}"##,
        ];
        for schema in cases {
            let schema: Value = serde_json::from_str(schema).unwrap();
            let value = fitting_value(&schema);
            assert_eq!(aside_core::json_schema::check(&schema, &value), Ok(()), "{schema}: {value}");
        }
    }
}
