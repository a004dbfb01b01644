//! Recognises a request body that belongs to another protocol.

use super::NotARequest;
use crate::dialect::Dialect;
use crate::json_text::{JsonKind, ObjectMembers, Raw, each_element, member, text_member, text_of};
use crate::protocol::Protocol;

/// Fails if the body is clearly a request of another protocol, or has no
/// messages at all.
pub(super) fn check(dialect: &Dialect, body: &ObjectMembers<'_>) -> Result<(), NotARequest> {
    let expected = dialect.protocol;
    let signs = protocols_of(body);
    if signs.contains(&expected) {
        return Ok(());
    }
    if let Some(found) = signs.first() {
        return Err(NotARequest::OtherProtocol { found: *found, expected, dialect: dialect.id.clone() });
    }
    let required = match expected {
        Protocol::OpenaiChat | Protocol::Anthropic | Protocol::Bedrock | Protocol::Ollama | Protocol::Cohere => {
            "messages"
        }
        Protocol::Gemini => "contents",
        // The input may be stored on the server.
        Protocol::OpenaiResponses => return Ok(()),
    };
    if body.get(required).is_some() {
        return Ok(());
    }
    Err(NotARequest::NoMessages { member: required, protocol: expected })
}

/// The protocols that a body has signs of. Empty if it could be any of those
/// with `messages`.
fn protocols_of(body: &ObjectMembers<'_>) -> Vec<Protocol> {
    let has_list = |name: &str| body.get(name).is_some_and(|list| list.kind() == JsonKind::Array);
    let has = |name: &str| body.get(name).is_some();
    let mut found = Vec::new();
    if has_list("contents") {
        found.push(Protocol::Gemini);
    }
    if has("input") && !has("messages") {
        found.push(Protocol::OpenaiResponses);
    }
    if has("toolConfig") && has("messages") || has("inferenceConfig") || has("additionalModelRequestFields") {
        found.push(Protocol::Bedrock);
    }
    if let Some(messages) = body.get("messages") {
        each_element(messages, |message| signs_of_message(message, &mut found));
    }
    if let Some(tools) = body.get("tools") {
        each_element(tools, |tool| {
            if member(tool, "input_schema").is_some() {
                found.push(Protocol::Anthropic);
            }
            if member(tool, "function").is_some() {
                found.extend(CHAT_FAMILY);
            }
        });
    }
    found
}

/// Their requests have the same outline.
const CHAT_FAMILY: [Protocol; 3] = [Protocol::OpenaiChat, Protocol::Ollama, Protocol::Cohere];

fn signs_of_message(message: Raw<'_>, found: &mut Vec<Protocol>) {
    let message = ObjectMembers::of(message);
    let is_tool = message.get("role").and_then(text_of).as_deref() == Some("tool");
    if is_tool || message.get("tool_calls").is_some() {
        found.extend(CHAT_FAMILY);
    }
    let Some(content) = message.get("content") else { return };
    each_element(content, |part| match text_member(part, "type").as_deref() {
        Some("tool_use" | "tool_result" | "redacted_thinking") => found.push(Protocol::Anthropic),
        Some(_) => (),
        None => {
            let of_bedrock = ["text", "toolUse", "toolResult", "reasoningContent"];
            if of_bedrock.iter().any(|name| member(part, name).is_some()) {
                found.push(Protocol::Bedrock);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialects;

    #[test]
    fn x6_a_body_of_another_protocol_is_named() {
        let dialects = Dialects::builtin().expect("valid");
        #[rustfmt::skip]
        let cases = [
            ("deepseek",  r#"{"messages":[{"role":"user","content":"hi"}]}"#,                                          ""),
            ("anthropic", r#"{"messages":[{"role":"user","content":"hi"}]}"#,                                          ""),
            ("deepseek",  r#"{"contents":[{"parts":[{"text":"hi"}]}]}"#,                                               "looks like gemini, but `deepseek` speaks openai-chat"),
            ("openai",    r#"{"messages":[{"role":"tool","tool_call_id":"a","content":"b"}]}"#,                        "looks like openai-chat, but `openai` speaks openai-responses"),
            ("deepseek",  r#"{"input":"hi"}"#,                                                                         "looks like openai-responses, but"),
            ("deepseek",  r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}"#,    "looks like anthropic, but"),
            ("anthropic", r#"{"messages":[{"role":"user","content":[{"text":"hi"}]}]}"#,                               "looks like bedrock, but"),
            ("anthropic", r#"{"messages":[],"tools":[{"type":"function","function":{"name":"t"}}]}"#,                  "looks like openai-chat, but"),
            ("cohere",    r#"{"messages":[],"tools":[{"type":"function","function":{"name":"t"}}]}"#,                  ""),
            ("gemini",    r#"{"model":"x"}"#,                                                                          "the request has no `contents`, which gemini requires"),
            ("openai",    r#"{"previous_response_id":"resp_1"}"#,                                                      ""),
        ];
        for (id, body, message) in cases {
            let dialect = dialects.get(id).expect(id);
            let found =
                check(dialect, &ObjectMembers::of(Raw::of(body).expect("JSON"))).err().map(|error| error.to_string());
            let found = found.unwrap_or_default();
            assert!(
                if message.is_empty() { found.is_empty() } else { found.contains(message) },
                "{id}: {body}: {found}"
            );
        }
    }
}
