//! Changes one part of a request body and keeps all other bytes: the model's
//! name, or the turns of the model that were repaired.

use std::borrow::Cow;
use std::ops::Range;

use crate::json_text::{JsonKind, NotJson, Raw, each_element, each_member, member, quote, range_of, text_member};
use crate::protocol::Protocol;

/// The body with another model. Protocols that name the model in the path have no
/// such member, and a body without it stays as it is.
pub fn with_model<'a>(body: &'a str, model: &str) -> Result<Cow<'a, str>, NotJson> {
    let mut ranges = Vec::new();
    each_member(Raw::of(body)?, |name, value| {
        if name == "model" {
            ranges.extend(range_of(body, value));
        }
    });
    if ranges.is_empty() {
        return Ok(Cow::Borrowed(body));
    }
    let name = quote(model);
    Ok(Cow::Owned(replaced(body, ranges.into_iter().map(|range| (range, name.as_str())))))
}

/// The body of a client, with some turns of the model taken from another encoding
/// of the same conversation. `touched` counts the turns of the model from 0. None
/// if the two do not have the same turns.
pub fn with_turns_of(protocol: Protocol, body: &str, encoded: &str, touched: &[usize]) -> Option<String> {
    let (theirs, ours) = (model_turns(protocol, body)?, model_turns(protocol, encoded)?);
    if theirs.len() != ours.len() {
        return None;
    }
    let mut pairs = Vec::with_capacity(touched.len());
    for (at, (their_turn, our_turn)) in theirs.into_iter().zip(ours).enumerate() {
        if touched.contains(&at) {
            pairs.push((their_turn, encoded.get(our_turn)?));
        }
    }
    Some(replaced(body, pairs.into_iter()))
}

/// Where the turns of the model are in a body. In a list of items, a turn is a run
/// of items.
fn model_turns(protocol: Protocol, body: &str) -> Option<Vec<Range<usize>>> {
    let name = match protocol {
        Protocol::OpenaiResponses => "input",
        Protocol::Gemini => "contents",
        Protocol::OpenaiChat | Protocol::Anthropic | Protocol::Ollama | Protocol::Bedrock | Protocol::Cohere => {
            "messages"
        }
    };
    let list = member(Raw::of(body).ok()?, name).filter(|list| list.kind() == JsonKind::Array);
    let mut turns: Vec<Range<usize>> = Vec::new();
    let mut in_turn = false;
    each_element(list?, |element| {
        let is_of_model = is_of_model(protocol, element);
        if let Some(range) = range_of(body, element).filter(|_| is_of_model) {
            match turns.last_mut() {
                Some(last) if in_turn && protocol == Protocol::OpenaiResponses => last.end = range.end,
                _ => turns.push(range),
            }
        }
        in_turn = is_of_model;
    });
    Some(turns)
}

fn is_of_model(protocol: Protocol, element: Raw<'_>) -> bool {
    let role = text_member(element, "role");
    match protocol {
        Protocol::OpenaiResponses => match text_member(element, "type").as_deref() {
            None | Some("message") => role.as_deref() == Some("assistant"),
            Some(kind) => !matches!(kind, "function_call_output" | "custom_tool_call_output"),
        },
        Protocol::Gemini => role.as_deref() == Some("model"),
        Protocol::OpenaiChat | Protocol::Anthropic | Protocol::Ollama | Protocol::Bedrock | Protocol::Cohere => {
            role.as_deref() == Some("assistant")
        }
    }
}

/// The text with these ranges replaced. They are in order and do not overlap.
fn replaced<'a>(text: &str, pairs: impl Iterator<Item = (Range<usize>, &'a str)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (range, new) in pairs {
        out.push_str(text.get(done..range.start).unwrap_or_default());
        out.push_str(new);
        done = range.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g4_only_the_model_changes() {
        let body = "{ \"a\" : 1e2,\n \"model\" : \"x\\u0041\" , \"model\":\"y\", \"nested\":{\"model\":\"z\"}}";
        let expected = "{ \"a\" : 1e2,\n \"model\" : \"new/1\" , \"model\":\"new/1\", \"nested\":{\"model\":\"z\"}}";
        assert_eq!(with_model(body, "new/1").unwrap(), expected);
        assert_eq!(with_model("{\"contents\": []}", "m").unwrap(), "{\"contents\": []}");
        assert!(with_model("{", "m").is_err());
    }

    #[test]
    fn g4_only_the_touched_turns_change() {
        #[rustfmt::skip]
        let cases = [
            ("chat", Protocol::OpenaiChat,
                r#"{"x": 1.0, "messages": [{"role":"user"}, {"role": "assistant", "n": 1}, {"role":"user"},  {"role":"assistant","n":2}], "y" : 2}"#,
                r#"{"messages":[{"role":"user","q":1},{"role":"assistant","r":1},{"role":"user"},{"role":"assistant","r":2}]}"#,
                Some(r#"{"x": 1.0, "messages": [{"role":"user"}, {"role": "assistant", "n": 1}, {"role":"user"},  {"role":"assistant","r":2}], "y" : 2}"#)),
            ("items", Protocol::OpenaiResponses,
                r#"{"input":[{"role":"user"}, {"type":"function_call","n":1} , {"type":"function_call","n":2},{"type":"function_call_output"},{"type":"message","role":"assistant"}]}"#,
                r#"{"input":[{"type":"reasoning"},{"type":"function_call"},{"type":"function_call_output"},{"type":"reasoning","b":1},{"role":"assistant"}]}"#,
                Some(r#"{"input":[{"role":"user"}, {"type":"function_call","n":1} , {"type":"function_call","n":2},{"type":"function_call_output"},{"type":"reasoning","b":1},{"role":"assistant"}]}"#)),
            ("another number of turns", Protocol::Gemini,
                r#"{"contents":[{"role":"model"},{"role":"user"},{"role":"model"}]}"#, r#"{"contents":[{"role":"model"}]}"#, None),
        ];
        for (name, protocol, body, encoded, expected) in cases {
            assert_eq!(with_turns_of(protocol, body, encoded, &[1]).as_deref(), expected, "{name}");
        }
    }
}
