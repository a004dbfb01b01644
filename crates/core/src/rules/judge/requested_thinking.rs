//! What a request asks for: no thinking, hidden thinking, or readable thinking.

use crate::dialect::{AskDefault, AskRules, Off, Patch};
use crate::json_text::{JsonKind, ObjectMembers, Raw, text_of};

/// Whether the model thinks for a request, and whether the client can read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestedThinking {
    /// The model does not think.
    Off,
    /// It thinks, but the reply contains at most seals.
    Hidden,
    /// The reply contains the thinking.
    Shown,
}

/// What a request body asks for, according to a model's rules. `Off` if the
/// body is not JSON.
pub fn requested_thinking(ask: &AskRules, body: &str) -> RequestedThinking {
    match Raw::of(body).map(ObjectMembers::of) {
        Ok(body) if !thinks(ask, &body) => RequestedThinking::Off,
        Ok(body) if ask.show.is_empty() || sets_patch(&body, &ask.show) => RequestedThinking::Shown,
        Ok(_) => RequestedThinking::Hidden,
        Err(_) => RequestedThinking::Off,
    }
}

/// Whether a request enables thinking, as far as it says so.
pub(super) fn thinks(ask: &AskRules, body: &ObjectMembers<'_>) -> bool {
    if let Off::Patch(off) = &ask.off
        && !off.is_empty()
        && contains_patch(body, off)
    {
        return false;
    }
    let level = (!ask.effort.path.is_empty()).then(|| at_either_case(body, &ask.effort.path)).flatten();
    match ask.default {
        AskDefault::Always | AskDefault::On => true,
        AskDefault::Off => level.is_some_and(is_switched_on) || (!ask.on.is_empty() && sets_patch(body, &ask.on)),
    }
}

/// The value at a dotted path. Google accepts names in camel and in snake case, and its SDKs
/// send both.
pub(super) fn at_either_case<'a>(body: &ObjectMembers<'a>, path: &str) -> Option<Raw<'a>> {
    match path.split_once('.') {
        Some((name, rest)) => at_either_case(&ObjectMembers::of(named(body, name)?), rest),
        None => named(body, path),
    }
}

fn named<'a>(object: &ObjectMembers<'a>, name: &str) -> Option<Raw<'a>> {
    object.get(name).or_else(|| {
        let has_capitals = name.contains(|letter: char| letter.is_ascii_uppercase());
        has_capitals.then(|| object.get(&snake_case(name))).flatten()
    })
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// Whether a body contains a patch. Strings must be equal; any number matches a
/// number.
pub(super) fn contains_patch(body: &ObjectMembers<'_>, patch: &Patch) -> bool {
    patch.iter().all(|(name, wanted)| {
        let Some(value) = named(body, name) else { return false };
        match wanted {
            serde_json::Value::Object(inner) => contains_patch(&ObjectMembers::of(value), inner),
            serde_json::Value::String(word) => text_of(value).as_deref() == Some(word),
            serde_json::Value::Bool(flag) => value.get() == flag.to_string(),
            serde_json::Value::Null | serde_json::Value::Number(_) | serde_json::Value::Array(_) => true,
        }
    })
}

/// Whether a body sets everything that a patch sets, to any value that switches
/// it on: a provider has several words for the same switch.
fn sets_patch(body: &ObjectMembers<'_>, patch: &Patch) -> bool {
    patch.iter().all(|(name, wanted)| {
        let Some(value) = named(body, name) else { return false };
        match wanted {
            serde_json::Value::Object(inner) => sets_patch(&ObjectMembers::of(value), inner),
            // The budget may be left to the model.
            serde_json::Value::Number(_) => true,
            serde_json::Value::Bool(false) => value.get() == "false",
            serde_json::Value::Null
            | serde_json::Value::Bool(true)
            | serde_json::Value::String(_)
            | serde_json::Value::Array(_) => is_switched_on(value),
        }
    })
}

/// The words with which providers switch thinking, or showing it, off.
fn is_switched_on(value: Raw<'_>) -> bool {
    const OFF: [&str; 6] = ["\"none\"", "\"disabled\"", "\"omitted\"", "\"hidden\"", "\"off\"", "false"];
    value.kind() != JsonKind::Null && !OFF.contains(&value.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialects;

    #[test]
    fn x4_a_model_thinks_when_the_request_asks_as_its_provider_wants() {
        use RequestedThinking::{Hidden, Off, Shown};
        let dialects = Dialects::builtin().expect("valid");
        #[rustfmt::skip]
        let cases = [
            ("anthropic", "claude-sonnet-5",   r#"{}"#,                                                              Hidden),
            ("anthropic", "claude-sonnet-5",   r#"{"thinking":{"type":"adaptive","display":"summarized"}}"#,         Shown),
            ("anthropic", "claude-sonnet-5",   r#"{"thinking":{"type":"adaptive","display":"omitted"}}"#,            Hidden),
            ("anthropic", "claude-sonnet-5",   r#"{"thinking":{"type":"disabled"}}"#,                                Off),
            ("anthropic", "claude-opus-4-5",   r#"{}"#,                                                              Off),
            ("anthropic", "claude-opus-4-5",   r#"{"thinking":{"type":"enabled","budget_tokens":2048}}"#,            Shown),
            ("anthropic", "claude-opus-4-6",   r#"{"thinking":{"type":"enabled","budget_tokens":2048}}"#,            Hidden),
            ("openai",    "gpt-5.6",           r#"{}"#,                                                              Hidden),
            ("openai",    "gpt-5.6",           r#"{"reasoning":{"summary":"detailed"}}"#,                            Shown),
            ("openai",    "gpt-5.6",           r#"{"reasoning":{"effort":"none"}}"#,                                 Off),
            ("openai",    "gpt-5.2",           r#"{"reasoning":{"effort":"high","summary":"auto"}}"#,                Shown),
            ("openai",    "gpt-5.2",           r#"{}"#,                                                              Off),
            ("openai",    "gpt-4o",            r#"{}"#,                                                              Off),
            ("gemini",    "gemini-3-pro",      r#"{}"#,                                                              Hidden),
            ("gemini",    "gemini-3-pro",      r#"{"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}"#, Shown),
            ("deepseek",  "deepseek-v4-pro",   r#"{"thinking":{"type":"disabled"}}"#,                                Off),
            ("gemini",    "gemini-3-pro",      r#"{"generationConfig":{"thinkingConfig":{"include_thoughts":true}}}"#, Shown),
            ("deepseek",  "deepseek-v4-pro",   "not JSON",                                                           Off),
        ];
        for (id, model, body, expected) in cases {
            let rules = dialects.get(id).expect(id).rules(Some(model));
            assert_eq!(requested_thinking(&rules.ask, body), expected, "{id}, {model}: {body}");
        }
    }
}
