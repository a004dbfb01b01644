//! Finds the provider's own words in an error body. Hosts and proxies put them
//! in a message, a parameter, a list, or quote another host's body as a string.

use serde_json::Value;

/// How deeply one error may be quoted inside another.
const MAX_DEPTH: usize = 6;
/// How many errors of a list are read.
const MAX_ERRORS: usize = 8;
/// How many opening braces of a text are tried as the start of a quoted body.
const MAX_BRACES: usize = 8;
/// The longest message that is kept. Some hosts send the whole request back.
const MAX_BYTES: usize = 16 * 1024;

/// What hosts call a message besides `message`.
const OTHER_NAMES: [&str; 7] =
    ["Message", "msg", "error_msg", "error_message", "errorMessage", "status_msg", "description"];

/// Everything that the body of a refusal says about its cause, for people and
/// for finding a repair. Bounded, and never empty.
pub fn error_words(body: &str) -> String {
    let text = body.trim();
    // A refused stream may answer with its first event.
    let event = text.strip_prefix("data:").map(|event| event.lines().next().unwrap_or_default().trim());
    let json: Option<Value> = serde_json::from_str(event.unwrap_or(text)).ok();
    let words = match json {
        Some(Value::String(text)) => unquoted(&text, 0),
        Some(value) => of_value(&value, 0).unwrap_or_else(|| value.to_string()),
        None if text.starts_with('<') => without_markup(text),
        None => unquoted(&bounded(text.to_owned()), 0),
    };
    match bounded(words) {
        words if words.trim().is_empty() => "the provider refused and gave no reason".to_owned(),
        words => words,
    }
}

/// Everything that a value says about its cause, if it is an error.
pub(super) fn words_of(value: &Value) -> Option<String> {
    let words = match value.as_str() {
        Some(text) => unquoted(text, 0),
        None => of_value(value, 0)?,
    };
    Some(bounded(words)).filter(|words| !words.trim().is_empty())
}

/// The same for a body.
pub(super) fn all_words(body: &str) -> Option<String> {
    words_of(&serde_json::from_str(body).ok()?)
}

/// The text of an HTML page.
fn without_markup(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let hidden = ["style", "script"].iter().find(|name| tag.starts_with(**name));
        let tag = match hidden.and_then(|name| tag.split_once(&format!("</{name}"))) {
            Some((_, after)) => after,
            None => tag,
        };
        rest = tag.split_once('>').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn of_value(body: &Value, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Value::Array(list) = body {
        return of_list(list, depth);
    }
    // The whole body is the error where a client took it out of its `error`.
    if body.get("error").is_none() && body.get("metadata").is_some_and(|metadata| metadata.get("raw").is_some()) {
        return of_error(body, depth);
    }
    let error = body.get("error").filter(|error| !error.is_null());
    let main = error
        .and_then(|error| of_error(error, depth))
        .or_else(|| body.get("errors").and_then(Value::as_array).and_then(|errors| of_list(errors, depth)))
        .or_else(|| body.get("detail").and_then(|detail| of_text_or_list(detail, depth)))
        .or_else(|| body.get("message").and_then(|message| of_message(message, depth)))
        .or_else(|| OTHER_NAMES.iter().find_map(|name| of_message(body.get(name)?, depth)))
        .or_else(|| body.get("base_resp").and_then(|below| of_value(below, depth + 1)));
    match (main, error) {
        // The parameter may be next to the message.
        (Some(main), None) => Some(with_param(main, body, depth)),
        (Some(main), Some(_)) => Some(main),
        // An error without a readable message is still an error.
        (None, Some(error)) => Some(error.to_string()),
        (None, None) => None,
    }
}

/// The value of `error`: a text, or an object with a message.
fn of_error(error: &Value, depth: usize) -> Option<String> {
    if let Value::String(text) = error {
        return Some(unquoted(text, depth));
    }
    let message = ["message", "msg"].iter().find_map(|name| of_message(error.get(name)?, depth));
    let detail = || error.get("detail").and_then(|detail| of_text_or_list(detail, depth));
    let below = || ["error", "upstream_error"].iter().find_map(|name| of_error(error.get(name)?, depth + 1));
    let message = message.or_else(detail).or_else(below)?;
    // OpenRouter: the body of the provider behind it.
    let raw = error.get("metadata").and_then(|metadata| metadata.get("raw"));
    let raw = raw.and_then(|raw| match raw.as_str() {
        Some(raw) => Some(unquoted(raw, depth)),
        None => of_value(raw, depth + 1),
    });
    let message = match raw.filter(|raw| !raw.trim().is_empty() && !message.contains(raw.as_str())) {
        Some(raw) => format!("{message}: {raw}"),
        None => message,
    };
    Some(with_param(message, error, depth))
}

/// Names the parameter, unless the message does. Some hosts put the whole
/// sentence there.
fn with_param(message: String, error: &Value, depth: usize) -> String {
    let param = error.get("param").and_then(Value::as_str).map(|param| unquoted(param, depth));
    match param.filter(|param| !is_nothing(param) && !message.contains(param.as_str())) {
        Some(param) if param.contains(' ') => format!("{message}: {param}"),
        Some(param) => format!("{message} (parameter `{param}`)"),
        None => message,
    }
}

/// Values that stand for no parameter.
fn is_nothing(param: &str) -> bool {
    matches!(param.trim(), "" | "None" | "null" | "<nil>" | "undefined")
}

fn of_message(message: &Value, depth: usize) -> Option<String> {
    match message {
        Value::String(text) => Some(unquoted(text, depth)),
        // A message of a conversation is not an error.
        Value::Object(object) if object.contains_key("detail") || object.contains_key("error") => {
            of_value(message, depth + 1)
        }
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

fn of_text_or_list(value: &Value, depth: usize) -> Option<String> {
    match value {
        Value::String(text) => Some(unquoted(text, depth)),
        Value::Array(list) => of_list(list, depth),
        Value::Object(_) => of_value(value, depth + 1).or_else(|| of_entry(value, depth)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn of_list(list: &[Value], depth: usize) -> Option<String> {
    let entries = list.iter().take(MAX_ERRORS).filter_map(|entry| of_entry(entry, depth + 1));
    let words: Vec<String> = entries.collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// One entry of a list of errors, with the place it is about.
fn of_entry(entry: &Value, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Value::String(text) = entry {
        return Some(unquoted(text, depth));
    }
    let words = ["msg", "message"].iter().find_map(|name| of_message(entry.get(name)?, depth));
    let words = words.or_else(|| of_value(entry, depth + 1))?;
    let place = ["loc", "path"].iter().find_map(|name| entry.get(name)?.as_array()).map(|place| dotted(place));
    match place.filter(|place| !place.is_empty()) {
        Some(place) => Some(format!("{place}: {words}")),
        None => Some(words),
    }
}

fn dotted(place: &[Value]) -> String {
    let names = place.iter().take(32).map(|name| name.as_str().map_or_else(|| name.to_string(), str::to_owned));
    names.collect::<Vec<_>>().join(".")
}

/// A text with every quoted error body replaced by the words of that body.
fn unquoted(text: &str, depth: usize) -> String {
    if depth >= MAX_DEPTH || !text.contains('{') {
        return text.to_owned();
    }
    let starts = text.match_indices(['{', '[']).take(MAX_BRACES);
    for (at, _) in starts {
        let (before, quoted) = text.split_at(at);
        let mut values = serde_json::Deserializer::from_str(quoted).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else { continue };
        let Some(words) = of_value(&value, depth + 1) else { continue };
        let after = quoted.get(values.byte_offset()..).unwrap_or_default();
        return format!("{before}{words}{after}");
    }
    text.to_owned()
}

fn bounded(mut words: String) -> String {
    if words.len() > MAX_BYTES {
        let end = (0..=MAX_BYTES).rev().find(|end| words.is_char_boundary(*end)).unwrap_or(0);
        words.truncate(end);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e11_the_words_are_found_wherever_hosts_put_them() {
        #[rustfmt::skip]
        let cases = [
            ("message",       r#"{"error":{"message":"m","param":null}}"#,                                "m"),
            ("raw",           r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"m\"}}"}}}"#, "Provider returned error: m"),
            ("raw object",    r#"{"error":{"message":"P","metadata":{"raw":{"message":"m"}}}}"#,          "P: m"),
            ("raw text",      r#"{"error":{"message":"P","metadata":{"raw":"plain m"}}}"#,                "P: plain m"),
            ("param name",    r#"{"error":{"message":"Invalid value","param":"reasoning.effort"}}"#,      "Invalid value (parameter `reasoning.effort`)"),
            ("param named",   r#"{"error":{"message":"Unknown 'reasoning'","param":"reasoning"}}"#,       "Unknown 'reasoning'"),
            ("param words",   r#"{"error":{"message":"Param Incorrect","param":"it must be passed"}}"#,   "Param Incorrect: it must be passed"),
            ("no param",      r#"{"error":{"message":"m","param":"None"}}"#,                              "m"),
            ("quoted body",   r#"{"error":{"message":"{\"error\":{\"message\":\"m\"}}"}}"#,               "m"),
            ("quoted twice",  r#"{"error":{"message":"a - {\"error\":{\"message\":\"b: {\\\"message\\\":\\\"m\\\"}\"}}. c"}}"#, "a - b: m. c"),
            ("not an error",  r#"{"error":{"message":"parameters {\"a\":1} did not match"}}"#,            r#"parameters {"a":1} did not match"#),
            ("detail list",   r#"{"detail":[{"loc":["body","messages",1,"x"],"msg":"m"},{"msg":"n"}]}"#,  "body.messages.1.x: m; n"),
            ("detail object", r#"{"message":{"detail":[{"loc":["body","x"],"msg":"m"}]}}"#,               "body.x: m"),
            ("raw alone",     r#"{"message":"P","code":400,"metadata":{"raw":"{\"message\":\"m\"}"}}"#,          "P: m"),
            ("upstream",      r#"{"error":{"type":"fail","upstream_error":{"error":{"message":"m"}}}}"#,   "m"),
            ("list",          r#"[{"error":{"message":"m"}},{"error":{"message":"n"}}]"#,                 "m; n"),
            ("errors",        r#"{"errors":[{"message":"m"},"n"]}"#,                                      "m; n"),
            ("event",         "data:{\"error\":{\"message\":\"m\"}}\n\ndata: [DONE]\n",                    "m"),
            ("text",          r#"upstream: {"error":{"message":"m"}}"#,                                   "upstream: m"),
            ("page",          "<html><style>a { b }</style><h1>502</h1>Bad <b>Gateway</b></html>",        "502 Bad Gateway"),
            ("nothing",       "",                                                                         "the provider refused and gave no reason"),
        ];
        for (name, body, expected) in cases {
            assert_eq!(error_words(body), expected, "{name}");
        }
    }

    #[test]
    fn an_error_that_quotes_itself_without_end_is_bounded() {
        let mut body = r#"{"error":{"message":"m"}}"#.to_owned();
        for _ in 0..12 {
            body = serde_json::json!({ "error": { "message": body } }).to_string();
        }
        assert!(error_words(&body).len() <= MAX_BYTES);
        let long = serde_json::json!({ "error": { "message": "é".repeat(MAX_BYTES) } });
        assert!(error_words(&long.to_string()).len() <= MAX_BYTES);
        assert!(error_words(&"{[".repeat(MAX_BYTES)).len() <= MAX_BYTES);
    }
}
