//! The keys that a request contains for the sake of thinking, with the rule that
//! wrote each. A refusal that names one of them leads to the request without it.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::egress::{Decision, EgressAction};
use super::reason::EgressReason;
use crate::dialect::{AskRules, Carrier, Off, Patch, RequestPart, Rules};
use crate::json_text::value_at;
use crate::protocol::Protocol;

/// The rule that wrote a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyRule {
    /// `ask.on`, which switches thinking on.
    On,
    /// `ask.off`, which switches thinking off.
    Off,
    /// `ask.effort`, from the setting `reasoning.effort` or from a switch.
    Effort,
    /// `ask.budget`, from the setting `reasoning.maxTokens` or from a switch.
    Budget,
    /// `ask.show`, which makes thinking readable.
    Show,
    /// `ask.extra`, sent along with thinking.
    Extra,
    /// `echo.flag`, which makes the provider read older thinking.
    Flag,
    /// `echo.carrier`: thinking that is sent back.
    Carrier,
}

impl KeyRule {
    /// The key of the dialect file.
    pub fn as_str(self) -> &'static str {
        match self {
            KeyRule::On => "ask.on",
            KeyRule::Off => "ask.off",
            KeyRule::Effort => "ask.effort",
            KeyRule::Budget => "ask.budget",
            KeyRule::Show => "ask.show",
            KeyRule::Extra => "ask.extra",
            KeyRule::Flag => "echo.flag",
            KeyRule::Carrier => "echo.carrier",
        }
    }
}

/// A key of a request body, and the rule that wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenKey {
    /// The dotted path of a parameter, or the name of a member of messages,
    /// blocks or items.
    pub path: String,
    /// Why it is there.
    pub rule: KeyRule,
    /// The value as text, for parameters with a short one.
    pub value: Option<String>,
}

/// What a provider refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedRequest {
    /// JSON.
    pub body: Arc<String>,
    /// The keys that were written for the sake of thinking.
    pub written: Vec<WrittenKey>,
}

impl RefusedRequest {
    /// A body with the keys that were written for the sake of thinking.
    pub fn new(body: Arc<String>, written: Vec<WrittenKey>) -> RefusedRequest {
        RefusedRequest { body, written }
    }

    /// Whether the request contains a part.
    pub(crate) fn has(&self, part: RequestPart) -> bool {
        let wrote = |rule| self.written.iter().any(|key| key.rule == rule);
        match part {
            RequestPart::Off => wrote(KeyRule::Off),
            RequestPart::Effort => wrote(KeyRule::Effort),
            RequestPart::Budget => wrote(KeyRule::Budget),
            RequestPart::Thinking => wrote(KeyRule::Carrier),
            RequestPart::ToolChoice => ["\"tool_choice\":", "\"toolChoice\":", "\"functionCallingConfig\":"]
                .iter()
                .any(|key| self.body.contains(key)),
        }
    }
}

/// The parameters of a request that are about thinking.
pub(crate) fn written_parameters(rules: &Rules, parameters: &Map<String, Value>) -> Vec<WrittenKey> {
    let mut written = Vec::new();
    let AskRules { on, off, show, extra, effort, budget, .. } = &rules.ask;
    for (path, rule) in [(&effort.path, KeyRule::Effort), (&budget.path, KeyRule::Budget)] {
        add(path.clone(), rule, parameters, None, &mut written);
    }
    let off_patch = match off {
        Off::Patch(patch) => Some(patch),
        Off::Unsupported => None,
    };
    // The off switch first: only its values tell it from the on switch.
    let off = off_patch.map(|patch| (patch, KeyRule::Off)).into_iter();
    let patches =
        [(on, KeyRule::On), (show, KeyRule::Show), (extra, KeyRule::Extra), (&rules.echo.flag, KeyRule::Flag)];
    for (patch, rule) in off.chain(patches) {
        each_leaf(patch, "", &mut |path, value| add(path, rule, parameters, Some(value), &mut written));
    }
    written
}

/// Adds a key if the request has it, and with this value if one is given.
fn add(
    path: String,
    rule: KeyRule,
    parameters: &Map<String, Value>,
    expected: Option<&Value>,
    to: &mut Vec<WrittenKey>,
) {
    let Some(value) = (!path.is_empty()).then(|| value_at(parameters, &path)).flatten() else { return };
    if expected.is_some_and(|expected| expected != value) {
        return;
    }
    match to.iter_mut().find(|known| known.path == path) {
        // A level or a budget that switches thinking off.
        Some(known) if rule == KeyRule::Off => known.rule = KeyRule::Off,
        Some(_) => (),
        None => {
            let value = match value {
                Value::String(word) => Some(word.clone()),
                Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => None,
            };
            to.push(WrittenKey { path, rule, value });
        }
    }
}

fn each_leaf<'p>(patch: &'p Patch, above: &str, take: &mut impl FnMut(String, &'p Value)) {
    for (name, value) in patch {
        let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match value.as_object().filter(|below| !below.is_empty()) {
            Some(below) => each_leaf(below, &path, take),
            None => take(path, value),
        }
    }
}

/// The members that carry thinking in this request.
pub(crate) fn written_members(rules: &Rules, protocol: Protocol, decisions: &[Decision]) -> Vec<WrittenKey> {
    let mut written: Vec<WrittenKey> = Vec::new();
    let mut add = |name: &str| {
        // A long conversation names the same few members again and again.
        if !written.iter().any(|known| known.path == name) {
            written.push(WrittenKey { path: name.to_owned(), rule: KeyRule::Carrier, value: None });
        }
    };
    let mut verbatim = false;
    for decision in decisions {
        match (&decision.field, decision.action) {
            (Some(field), EgressAction::Field | EgressAction::Filler) => add(field),
            (None, EgressAction::Filler) => verbatim = true,
            (_, EgressAction::Verbatim) => verbatim |= decision.reason != EgressReason::Conversation,
            (None, EgressAction::Field) | (_, EgressAction::Tags | EgressAction::Dropped) => (),
        }
    }
    if verbatim {
        members(rules, protocol).iter().for_each(|name| add(name));
        if matches!(rules.echo.carrier, Carrier::FieldsOpaque | Carrier::Field) {
            rules.read.opaque.iter().chain(rules.read.text.first()).for_each(|name| add(name));
        }
    }
    // Seals on calls go back without a thinking block.
    if matches!(rules.echo.carrier, Carrier::CallExtra | Carrier::Part) {
        let names = rules.read.call_extra.iter().filter_map(|path| path.rsplit('.').next());
        names.for_each(&mut add);
        members(rules, protocol).iter().for_each(|name| add(name));
    }
    written
}

/// The names under which a protocol carries thinking outside of a plain field.
fn members(rules: &Rules, protocol: Protocol) -> &'static [&'static str] {
    match (protocol, rules.echo.carrier) {
        (Protocol::OpenaiChat, Carrier::ContentChunks) | (Protocol::Cohere, _) => &["thinking", "signature"],
        (Protocol::OpenaiChat, Carrier::CallExtra) => &["extra_content"],
        (Protocol::OpenaiChat, _) => &["reasoning_details", "thinking_blocks"],
        (Protocol::OpenaiResponses, _) => &["reasoning", "encrypted_content", "summary"],
        (Protocol::Anthropic, _) => &["thinking", "redacted_thinking", "signature"],
        (Protocol::Bedrock, _) => &["reasoningContent", "reasoningText", "redactedContent", "signature"],
        (Protocol::Gemini, _) => &["thought", "thoughtSignature"],
        (Protocol::Ollama, _) => &["thinking"],
    }
}
