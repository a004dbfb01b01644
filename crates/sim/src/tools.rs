//! Chooses which tool to call and with which arguments: only tools that read, with
//! arguments generated from their schema.

use aside_core::conversation::ToolSpec;
use aside_core::parameters::ToolChoice;
use serde_json::{Map, Value};

/// Names of tools that only read, the preferred ones first.
const READ_ONLY: [&str; 4] = ["list", "ls", "glob", "read"];

/// How deep to follow a schema.
const MAX_DEPTH: u32 = 6;

/// The tool to call; None if the client offers or allows none.
pub(crate) fn choose<'a>(tools: &'a [ToolSpec], choice: &ToolChoice) -> Option<&'a ToolSpec> {
    match choice {
        ToolChoice::Never => None,
        ToolChoice::Named(name) => tools.iter().find(|tool| tool.name == *name),
        ToolChoice::Allowed { names, .. } => tools.iter().find(|tool| names.contains(&tool.name)),
        ToolChoice::Auto | ToolChoice::Required => {
            let reads = |word: &str| tools.iter().find(|tool| has_word(&tool.name, word));
            READ_ONLY.iter().find_map(|word| reads(word)).or(tools.first())
        }
    }
}

/// `list`, `list_files`, `listFiles` and `fs.list` all contain the word `list`.
fn has_word(name: &str, word: &str) -> bool {
    let mut plain = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_uppercase() {
            plain.push(' ');
        }
        plain.extend(letter.to_lowercase());
    }
    plain.split(|c: char| !c.is_alphanumeric()).any(|part| part == word)
}

/// Arguments that satisfy a tool's schema: only the required properties.
pub(crate) fn arguments(tool: &ToolSpec, nth: usize) -> String {
    let schema: Value = serde_json::from_str(&tool.parameters).unwrap_or_default();
    let reads_files = has_word(&tool.name, "read");
    let value = object(&schema, &ArgumentContext { reads_files, nth }, MAX_DEPTH);
    Value::Object(value).to_string()
}

/// The arguments in a canonical form, however the client formatted them.
pub(crate) fn canonical(arguments: &str) -> String {
    serde_json::from_str::<Value>(arguments).map_or_else(|_| arguments.to_owned(), |value| value.to_string())
}

struct ArgumentContext {
    reads_files: bool,
    /// Parallel calls get different arguments.
    nth: usize,
}

fn object(schema: &Value, context: &ArgumentContext, depth: u32) -> Map<String, Value> {
    let names = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = schema.get("properties");
    let filled = |name: &str| {
        let schema = properties.and_then(|properties| properties.get(name)).cloned().unwrap_or_default();
        value(name, &schema, context, depth)
    };
    names.iter().filter_map(Value::as_str).map(|name| (name.to_owned(), filled(name))).collect()
}

fn value(name: &str, schema: &Value, context: &ArgumentContext, depth: u32) -> Value {
    let given = ["const", "default"].iter().find_map(|key| schema.get(key).filter(|value| !value.is_null()));
    let listed = || schema.get("enum").and_then(|values| values.get(0));
    if let Some(value) = given.or_else(listed) {
        return value.clone();
    }
    let either = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema.get(key)?.as_array()?.first());
    if let Some(first) = either.filter(|_| depth > 0) {
        return value(name, first, context, depth - 1);
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        kind => kind.and_then(Value::as_str),
    };
    let least = |key: &str, otherwise: u64| schema.get(key).and_then(Value::as_u64).unwrap_or(otherwise);
    match kind {
        Some("integer" | "number") => least("minimum", 1).into(),
        Some("boolean") => false.into(),
        Some("null") => Value::Null,
        Some("array") => {
            let item = schema.get("items").cloned().unwrap_or_default();
            let n = if depth == 0 { 0 } else { least("minItems", 0).min(8) };
            (0..n).map(|_| value(name, &item, context, depth - 1)).collect::<Vec<_>>().into()
        }
        Some("object") if depth == 0 => Map::new().into(),
        Some("object") => object(schema, context, depth - 1).into(),
        _ => text_argument(name, context).into(),
    }
}

/// A harmless string that still finds something.
fn text_argument(name: &str, context: &ArgumentContext) -> String {
    let name = name.to_lowercase();
    let has = |word: &str| name.contains(word);
    let plain = match () {
        () if has("pattern") || has("glob") => "*",
        () if has("file") || (has("path") && context.reads_files) => "README.md",
        () if has("path") || has("dir") || has("folder") => ".",
        () => "simulated",
    };
    match (plain, context.nth) {
        ("simulated", nth) if nth > 0 => format!("simulated {}", nth + 1),
        (plain, _) => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, parameters: &str) -> ToolSpec {
        ToolSpec::new(name.to_owned(), String::new(), parameters.to_owned())
    }

    #[test]
    fn x2_a_tool_that_only_reads_is_called() {
        #[rustfmt::skip]
        let cases: &[(&str, &[&str], ToolChoice, Option<&str>)] = &[
            ("list before read",  &["delete", "read_file", "listFiles"], ToolChoice::Auto,                  Some("listFiles")),
            ("glob before read",  &["ReadFile", "glob"],                 ToolChoice::Required,                   Some("glob")),
            ("not by a syllable", &["playlist", "thread", "read"],       ToolChoice::Auto,                  Some("read")),
            ("else the first",    &["weather", "stocks"],                ToolChoice::Auto,                  Some("weather")),
            ("the one named",     &["list", "weather"],                  ToolChoice::Named("weather".into()), Some("weather")),
            ("none allowed",      &["list"],                             ToolChoice::Never,                 None),
            ("none offered",      &[],                                   ToolChoice::Required,                   None),
        ];
        for (name, offered, choice, called) in cases {
            let tools: Vec<ToolSpec> = offered.iter().map(|name| tool(name, "{}")).collect();
            assert_eq!(choose(&tools, choice).map(|tool| tool.name.as_str()), *called, "{name}");
        }
    }

    #[test]
    fn x2_arguments_fit_the_schema() {
        #[rustfmt::skip]
        let cases = [
            ("nothing required", "list", r#"{"type":"object","properties":{"path":{"type":"string"}}}"#,                     "{}"),
            ("a folder",         "list", r#"{"properties":{"path":{"type":"string"}},"required":["path"]}"#,                 r#"{"path":"."}"#),
            ("a file",           "read", r#"{"properties":{"path":{"type":"string"}},"required":["path"]}"#,                 r#"{"path":"README.md"}"#),
            ("a pattern",        "glob", r#"{"properties":{"pattern":{"type":"string"}},"required":["pattern"]}"#,           r#"{"pattern":"*"}"#),
            ("numbers",          "t",    r#"{"properties":{"n":{"type":"integer","minimum":3},"b":{"type":"boolean"}},"required":["n","b"]}"#, r#"{"b":false,"n":3}"#),
            ("a choice",         "t",    r#"{"properties":{"unit":{"type":"string","enum":["c","f"]}},"required":["unit"]}"#, r#"{"unit":"c"}"#),
            ("or nothing",       "t",    r#"{"properties":{"q":{"type":["null","string"]}},"required":["q"]}"#,              r#"{"q":"simulated"}"#),
            ("one of several",   "t",    r#"{"properties":{"q":{"anyOf":[{"type":"integer"}]}},"required":["q"]}"#,          r#"{"q":1}"#),
            ("nested",           "t",    r#"{"properties":{"o":{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]},"a":{"type":"array","minItems":1,"items":{"type":"string"}}},"required":["o","a"]}"#, r#"{"a":["simulated"],"o":{"k":"simulated"}}"#),
            ("no schema",        "t",    "",                                                                                 "{}"),
        ];
        for (name, called, schema, expected) in cases {
            assert_eq!(arguments(&tool(called, schema), 0), expected, "{name}");
        }
    }
}
