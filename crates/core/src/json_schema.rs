//! Checks JSON against a JSON schema. Providers promise answers that fit a schema, and
//! not all of them keep the promise.
//!
//! Keywords that need a regular expression or a calendar (`pattern`, `patternProperties`,
//! `format`) and keywords that we do not know are not checked.

use std::cell::Cell;

use serde_json::{Map, Value};

/// How deep to follow a schema, references included.
const MAX_DEPTH: u32 = 64;

/// How many pairs of a schema and a value to compare. References can make a small schema
/// endless.
const MAX_VISITS: u32 = 1_000_000;

/// Where a value does not fit its schema, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", if path.is_empty() { "the answer" } else { path })]
#[non_exhaustive]
pub struct SchemaMismatch {
    /// A JSON pointer to the value; empty for the whole.
    pub path: String,
    /// What the schema wants and what is there.
    pub why: String,
}

/// Checks a value against a schema. The first mismatch is returned.
pub fn check(schema: &Value, value: &Value) -> Result<(), SchemaMismatch> {
    let checker = SchemaChecker { root: schema, visits: Cell::new(0) };
    checker.check(schema, value, &mut String::new(), MAX_DEPTH)
}

/// Checks a text, which must be JSON, against a schema.
pub fn check_text(schema: &Value, text: &str) -> Result<(), SchemaMismatch> {
    match serde_json::from_str(text.trim()) {
        Ok(value) => check(schema, &value),
        Err(error) => Err(SchemaMismatch { path: String::new(), why: format!("it is not JSON: {error}") }),
    }
}

struct SchemaChecker<'a> {
    /// The whole schema, which references point into.
    root: &'a Value,
    visits: Cell<u32>,
}

type Checked = Result<(), SchemaMismatch>;

impl SchemaChecker<'_> {
    fn check(&self, schema: &Value, value: &Value, path: &mut String, depth: u32) -> Checked {
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => return mismatch(path, "nothing is allowed here"),
            Value::Null | Value::Bool(true) | Value::Number(_) | Value::String(_) | Value::Array(_) => return Ok(()),
        };
        let Some(depth) = depth.checked_sub(1) else { return mismatch(path, "the schema is nested too deep") };
        self.visits.set(self.visits.get() + 1);
        if self.visits.get() > MAX_VISITS {
            return mismatch(path, "the schema is too large to be checked");
        }
        check_kind(schema, value, path)?;
        check_values(schema, value, path)?;
        match value {
            Value::Number(_) => check_number(schema, value, path)?,
            Value::String(text) => check_length(schema, text, path)?,
            Value::Array(items) => self.check_array(schema, items, path, depth)?,
            Value::Object(members) => self.check_object(schema, members, path, depth)?,
            Value::Null | Value::Bool(_) => (),
        }
        self.check_reference(schema, value, path, depth)?;
        self.check_combinations(schema, value, path, depth)
    }

    fn check_reference(&self, schema: &Map<String, Value>, value: &Value, path: &mut String, depth: u32) -> Checked {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return Ok(()) };
        let pointer = reference.strip_prefix('#');
        match pointer.and_then(|pointer| self.root.pointer(pointer)) {
            Some(target) => self.check(target, value, path, depth),
            None => mismatch(path, format!("the schema refers to `{reference}`, which it does not contain")),
        }
    }

    fn check_combinations(&self, schema: &Map<String, Value>, value: &Value, path: &mut String, depth: u32) -> Checked {
        let parts = |name: &str| schema.get(name).and_then(Value::as_array);
        for part in parts("allOf").into_iter().flatten() {
            self.check(part, value, path, depth)?;
        }
        if let Some(parts) = parts("anyOf") {
            self.check_any(parts, value, path, depth)?;
        }
        if let Some(parts) = parts("oneOf") {
            let fitting = parts.iter().filter(|part| self.fits(part, value, path, depth)).count();
            match fitting {
                1 => (),
                0 => self.check_any(parts, value, path, depth)?,
                _ => return mismatch(path, "it fits more than one of the schemas in `oneOf`"),
            }
        }
        if schema.get("not").is_some_and(|not| self.fits(not, value, path, depth)) {
            return mismatch(path, "it fits the schema in `not`");
        }
        if let Some(condition) = schema.get("if") {
            let branch = if self.fits(condition, value, path, depth) { "then" } else { "else" };
            if let Some(branch) = schema.get(branch) {
                self.check(branch, value, path, depth)?;
            }
        }
        Ok(())
    }

    fn fits(&self, schema: &Value, value: &Value, path: &mut String, depth: u32) -> bool {
        self.check(schema, value, path, depth).is_ok()
    }

    /// One of the schemas must fit. With only one, its own mismatch says more.
    fn check_any(&self, parts: &[Value], value: &Value, path: &mut String, depth: u32) -> Checked {
        match parts {
            [only] => self.check(only, value, path, depth),
            parts if parts.iter().any(|part| self.fits(part, value, path, depth)) => Ok(()),
            _ => mismatch(path, format!("{} fits none of the alternatives", described(value))),
        }
    }

    fn check_array(&self, schema: &Map<String, Value>, items: &[Value], path: &mut String, depth: u32) -> Checked {
        check_count(schema, ["minItems", "maxItems"], items.len(), "items", path)?;
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut texts: Vec<String> = items.iter().map(Value::to_string).collect();
            texts.sort_unstable();
            if texts.windows(2).any(|pair| matches!(pair, [one, other] if one == other)) {
                return mismatch(path, "an item occurs twice");
            }
        }
        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let rest = schema.get("items");
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(index).or(rest) {
                self.check_member(schema, item, &index.to_string(), path, depth)?;
            }
        }
        Ok(())
    }

    fn check_object(
        &self,
        schema: &Map<String, Value>,
        members: &Map<String, Value>,
        path: &mut String,
        depth: u32,
    ) -> Checked {
        check_count(schema, ["minProperties", "maxProperties"], members.len(), "members", path)?;
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for name in required {
            if !members.contains_key(name) {
                return mismatch(path, format!("`{name}` is missing"));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        // A name may match a pattern, which is not checked.
        let others = schema.get("additionalProperties").filter(|_| !schema.contains_key("patternProperties"));
        for (name, member) in members {
            match (properties.and_then(|properties| properties.get(name)), others) {
                (Some(schema), _) => self.check_member(schema, member, name, path, depth)?,
                (None, Some(Value::Bool(false))) => {
                    return mismatch(path, format!("`{name}` is not in the schema"));
                }
                (None, Some(schema)) => self.check_member(schema, member, name, path, depth)?,
                (None, None) => (),
            }
        }
        Ok(())
    }

    fn check_member(&self, schema: &Value, value: &Value, name: &str, path: &mut String, depth: u32) -> Checked {
        let length = path.len();
        path.push('/');
        path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        let checked = self.check(schema, value, path, depth);
        path.truncate(length);
        checked
    }
}

fn mismatch(path: &str, why: impl Into<String>) -> Checked {
    Err(SchemaMismatch { path: path.to_owned(), why: why.into() })
}

fn check_kind(schema: &Map<String, Value>, value: &Value, path: &str) -> Checked {
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => return Ok(()),
    };
    let is_whole = |value: &Value| value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0);
    let fits = |kind: &&str| match *kind {
        "integer" => value.is_number() && is_whole(value),
        kind => kind == kind_of(value),
    };
    if kinds.is_empty() || kinds.iter().any(fits) {
        return Ok(());
    }
    mismatch(path, format!("expected {}, found {}", kinds.join(" or "), described(value)))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The kind of a value, and the value itself if it is short.
fn described(value: &Value) -> String {
    const LONGEST: usize = 40;
    let kind = kind_of(value);
    match value {
        Value::Null => "null".to_owned(),
        Value::Array(_) | Value::Object(_) => format!("an {kind}"),
        Value::String(text) if text.len() > LONGEST => format!("a {kind}"),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => format!("the {kind} {value}"),
    }
}

fn check_values(schema: &Map<String, Value>, value: &Value, path: &str) -> Checked {
    if let Some(wanted) = schema.get("const").filter(|wanted| !is_equal(wanted, value)) {
        return mismatch(path, format!("expected {wanted}, found {}", described(value)));
    }
    match schema.get("enum").and_then(Value::as_array) {
        Some(listed) if !listed.iter().any(|wanted| is_equal(wanted, value)) => {
            mismatch(path, format!("{} is none of the values in `enum`", described(value)))
        }
        Some(_) | None => Ok(()),
    }
}

/// 1 and 1.0 are the same number.
fn is_equal(one: &Value, other: &Value) -> bool {
    one == other || (one.is_number() && other.is_number() && one.as_f64() == other.as_f64())
}

fn check_number(schema: &Map<String, Value>, value: &Value, path: &str) -> Checked {
    let Some(number) = value.as_f64() else { return Ok(()) };
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    if let Some(least) = limit("minimum").filter(|least| number < *least) {
        return mismatch(path, format!("{value} is less than {least}"));
    }
    if let Some(most) = limit("maximum").filter(|most| number > *most) {
        return mismatch(path, format!("{value} is more than {most}"));
    }
    if let Some(below) = limit("exclusiveMinimum").filter(|below| number <= *below) {
        return mismatch(path, format!("{value} is not more than {below}"));
    }
    if let Some(above) = limit("exclusiveMaximum").filter(|above| number >= *above) {
        return mismatch(path, format!("{value} is not less than {above}"));
    }
    let is_multiple = |step: f64| {
        let times = number / step;
        (times - times.round()).abs() < 1e-9
    };
    match limit("multipleOf").filter(|step| *step > 0.0) {
        Some(step) if !is_multiple(step) => mismatch(path, format!("{value} is not a multiple of {step}")),
        Some(_) | None => Ok(()),
    }
}

fn check_length(schema: &Map<String, Value>, text: &str, path: &str) -> Checked {
    let is_limited = ["minLength", "maxLength"].iter().any(|name| schema.contains_key(*name));
    let length = if is_limited { text.chars().count() } else { return Ok(()) };
    check_count(schema, ["minLength", "maxLength"], length, "characters", path)
}

fn check_count(schema: &Map<String, Value>, names: [&str; 2], count: usize, what: &str, path: &str) -> Checked {
    let [least, most] = names.map(|name| schema.get(name).and_then(Value::as_u64));
    let count = count as u64;
    if let Some(least) = least.filter(|least| count < *least) {
        return mismatch(path, format!("it has {count} {what}, fewer than {least}"));
    }
    match most.filter(|most| count > *most) {
        Some(most) => mismatch(path, format!("it has {count} {what}, more than {most}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn e17_a_mismatch_names_its_place_and_its_reason() {
        let depth = json!({"type": "object", "properties": {"depth": {"type": "number", "minimum": 0}},
            "required": ["depth"], "additionalProperties": false});
        let list = json!({"type": "array", "items": {"$ref": "#/$defs/port"}, "minItems": 1, "uniqueItems": true,
            "$defs": {"port": {"type": "string", "enum": ["Bremen", "Hull"]}}});
        let either = json!({"anyOf": [{"type": "null"}, {"type": "integer"}]});
        let one = json!({"oneOf": [{"type": "number"}, {"type": "integer"}]});
        let conditional = json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"maxProperties": 0}});
        let numbers = json!({"exclusiveMinimum": 1, "multipleOf": 0.5, "maximum": 9});
        let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": {"not": {"type": "string"}}});
        #[rustfmt::skip]
        let cases = [
            (&depth,       r#"{"depth": 4.5}"#,             ""),
            (&depth,       r#" {"depth": 4}  "#,            ""),
            (&depth,       "four metres",                   "the answer: it is not JSON: expected ident at line 1 column 2"),
            (&depth,       "4",                             "the answer: expected object, found the number 4"),
            (&depth,       "{}",                            "the answer: `depth` is missing"),
            (&depth,       r#"{"depth": "4"}"#,             r#"/depth: expected number, found the string "4""#),
            (&depth,       r#"{"depth": -1}"#,              "/depth: -1 is less than 0"),
            (&depth,       r#"{"depth": 1, "unit": "m"}"#,  "the answer: `unit` is not in the schema"),
            (&list,        r#"["Hull", "Bremen"]"#,         ""),
            (&list,        r#"["Hull", "Kiel"]"#,           r#"/1: the string "Kiel" is none of the values in `enum`"#),
            (&list,        r#"["Hull", "Hull"]"#,           "the answer: an item occurs twice"),
            (&list,        "[]",                            "the answer: it has 0 items, fewer than 1"),
            (&either,      "null",                          ""),
            (&either,      "1.0",                           ""),
            (&either,      "1.5",                           "the answer: the number 1.5 fits none of the alternatives"),
            (&one,         "1.5",                           ""),
            (&one,         "1",                             "the answer: it fits more than one of the schemas in `oneOf`"),
            (&conditional, r#"{"a": 1, "b": 2}"#,           ""),
            (&conditional, r#"{"a": 1}"#,                   "the answer: `b` is missing"),
            (&conditional, r#"{"c": 1}"#,                   "the answer: it has 1 members, more than 0"),
            (&numbers,     "1.5",                           ""),
            (&numbers,     "1",                             "the answer: 1 is not more than 1"),
            (&numbers,     "1.7",                           "the answer: 1.7 is not a multiple of 0.5"),
            (&tree,        r#"{"next": {"next": {}}}"#,     ""),
            (&tree,        r#"{"next": {"a/b": "x"}}"#,     "/next/a~1b: it fits the schema in `not`"),
        ];
        for (schema, text, expected) in cases {
            let found = check_text(schema, text).map_or_else(|mismatch| mismatch.to_string(), |()| String::new());
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn e17_a_schema_without_end_is_given_up() {
        let endless = json!({"$ref": "#"});
        let found = check(&endless, &json!(1)).expect_err("it refers to itself");
        assert_eq!(found.why, "the schema is nested too deep");
        let wide = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert!(check(&wide, &json!(1)).is_err());
        let missing = json!({"$ref": "other.json"});
        let found = check(&missing, &json!(1)).expect_err("it is not there");
        assert_eq!(found.why, "the schema refers to `other.json`, which it does not contain");
    }
}
