//! A protocol-neutral view of a request, as the provider's checks need it.

mod block_lists;
mod item_list;

use std::sync::LazyLock;

use crate::dialect::{Dialect, Rules};
use crate::json_text::{JsonKind, ObjectMembers, Raw, each_element, member, text_member, text_of};
use crate::protocol::Protocol;
use crate::rules::{RequestPreferences, field_name};
use crate::settings::Settings;

/// One message of a request, or one run of items.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JudgedMessage {
    /// Its path in the body.
    pub(super) path: String,
    /// Its index in the list of messages or items.
    pub(super) at: usize,
    pub(super) role: JudgedRole,
    pub(super) thinking: Vec<JudgedThinking>,
    pub(super) calls: Vec<JudgedCall>,
    pub(super) results: Vec<JudgedResult>,
    /// The visible text.
    pub(super) text: String,
    /// Items with their own ids, including thinking.
    pub(super) items: Vec<JudgedItem>,
    /// The thinking field is present, even if it is empty.
    pub(super) has_field: bool,
    pub(super) begins_with_thinking: bool,
    /// The content is a list without any text.
    pub(super) has_empty_content: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JudgedRole {
    User,
    Assistant,
    /// Only results of tool calls. Does not start a turn.
    Tool,
}

/// What a seal, or unsealed thinking, is attached to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SealCarrier {
    /// Thinking of its own.
    Thinking,
    /// A seal on answer text.
    Text,
    /// A seal on a call.
    Call,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct JudgedThinking {
    pub(super) path: String,
    pub(super) carrier: SealCarrier,
    pub(super) text: String,
    /// A signature or an encrypted payload.
    pub(super) seals: Vec<String>,
    /// One of the seals is a signature of the text.
    pub(super) signed: bool,
    pub(super) id: Option<String>,
    /// The next call in this message.
    pub(super) next_call: Option<String>,
    /// Nothing follows it.
    pub(super) is_last: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct JudgedCall {
    pub(super) path: String,
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) seal: Option<String>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JudgedResult {
    pub(super) path: String,
    pub(super) at: usize,
    pub(super) id: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct JudgedItem {
    pub(super) path: String,
    pub(super) id: String,
    pub(super) kind: String,
}

impl JudgedMessage {
    fn new(path: String, at: usize, role: JudgedRole) -> JudgedMessage {
        JudgedMessage {
            path,
            at,
            role,
            thinking: Vec::new(),
            calls: Vec::new(),
            results: Vec::new(),
            text: String::new(),
            items: Vec::new(),
            has_field: false,
            begins_with_thinking: false,
            has_empty_content: false,
        }
    }

    fn push_call(&mut self, call: JudgedCall) {
        for thinking in self.thinking.iter_mut().filter(|thinking| thinking.next_call.is_none()) {
            thinking.next_call = call.id.clone();
        }
        self.calls.push(call);
    }
}

impl JudgedThinking {
    /// Empty thinking without a seal is a filler.
    pub(super) fn is_filler(&self) -> bool {
        self.seals.is_empty() && self.text.trim().is_empty()
    }
}

/// The seals of a thinking object.
struct SealFields {
    signature: Option<String>,
    encrypted: Option<String>,
}

impl SealFields {
    fn signed(signature: Option<String>) -> SealFields {
        SealFields { signature, encrypted: None }
    }

    fn hidden(encrypted: Option<String>) -> SealFields {
        SealFields { signature: None, encrypted }
    }
}

fn thinking_at(path: String, text: Option<String>, seals: SealFields) -> JudgedThinking {
    JudgedThinking {
        path,
        carrier: SealCarrier::Thinking,
        text: text.unwrap_or_default(),
        signed: seals.signature.is_some(),
        seals: seals.signature.into_iter().chain(seals.encrypted).collect(),
        id: None,
        next_call: None,
        is_last: false,
    }
}

/// The fields for thinking in a dialect's messages, besides the content.
struct ThinkingFields {
    /// All names that thinking may have.
    fields: Vec<String>,
    /// Fields that contain only a seal.
    opaque: Vec<String>,
    /// The paths of a call's seal.
    call_seals: Vec<String>,
}

impl ThinkingFields {
    fn of(rules: &Rules) -> ThinkingFields {
        let mut fields = rules.read.text.clone();
        static DEFAULTS: LazyLock<Settings> = LazyLock::new(Settings::new);
        fields.push(field_name(rules, &RequestPreferences::of(&DEFAULTS, &rules.echo), None));
        fields.extend(["reasoning_details".to_owned(), "thinking_blocks".to_owned()]);
        fields.sort();
        fields.dedup();
        ThinkingFields { fields, opaque: rules.read.opaque.clone(), call_seals: rules.read.call_extra.clone() }
    }
}

/// Every message of a request, in order.
pub(super) fn view(dialect: &Dialect, rules: &Rules, body: &ObjectMembers<'_>) -> Vec<JudgedMessage> {
    match dialect.protocol {
        Protocol::OpenaiChat | Protocol::Ollama | Protocol::Cohere => {
            let names = ThinkingFields::of(rules);
            each(body, "messages", |path, at, message| chat(path, at, message, &names))
        }
        Protocol::Anthropic => each(body, "messages", block_lists::anthropic),
        Protocol::Bedrock => each(body, "messages", block_lists::converse),
        Protocol::Gemini => each(body, "contents", block_lists::gemini),
        Protocol::OpenaiResponses => item_list::responses(body, rules.echo.item_text),
    }
}

fn each<'a>(
    body: &ObjectMembers<'a>,
    list: &str,
    read: impl Fn(String, usize, Raw<'a>) -> Option<JudgedMessage>,
) -> Vec<JudgedMessage> {
    let mut judged = Vec::new();
    let mut at = 0;
    if let Some(messages) = body.get(list) {
        each_element(messages, |message| {
            judged.extend(read(format!("{list}[{at}]"), at, message));
            at += 1;
        });
    }
    judged
}

fn chat(path: String, at: usize, message: Raw<'_>, names: &ThinkingFields) -> Option<JudgedMessage> {
    let message = ObjectMembers::of(message);
    let role = match message.get("role").and_then(text_of).as_deref() {
        Some("user") => JudgedRole::User,
        Some("assistant") => JudgedRole::Assistant,
        Some("tool") => JudgedRole::Tool,
        _ => return None,
    };
    let mut judged = JudgedMessage::new(path, at, role);
    if role == JudgedRole::Tool {
        let id = message.get("tool_call_id").and_then(text_of);
        judged.results.push(JudgedResult { path: judged.path.clone(), at, id });
        return Some(judged);
    }
    if role == JudgedRole::Assistant {
        read_fields(&message, names, &mut judged);
    }
    if let Some(content) = message.get("content") {
        judged.has_empty_content = is_list_without_text(content);
        if content.kind() == JsonKind::Text {
            judged.text = text_of(content).unwrap_or_default();
        }
        let mut index = 0;
        each_element(content, |part| {
            read_content_part(part, index, &mut judged);
            index += 1;
        });
    }
    if let Some(calls) = message.get("tool_calls") {
        each_element(calls, |call| {
            let seal = names.call_seals.iter().find_map(|path| crate::json_text::at_path(call, path).and_then(text_of));
            let name = member(call, "function").and_then(|function| text_member(function, "name"));
            let path = format!("{}.tool_calls[{}]", judged.path, judged.calls.len());
            judged.push_call(JudgedCall { path, id: text_member(call, "id"), name: name.unwrap_or_default(), seal });
        });
    }
    Some(judged)
}

/// Reads fields next to the content. A list of entries repeats the text field.
fn read_fields(message: &ObjectMembers<'_>, names: &ThinkingFields, judged: &mut JudgedMessage) {
    let (mut texts, mut entries) = (Vec::new(), Vec::new());
    for field in &names.fields {
        let Some(value) = message.get(field) else { continue };
        let path = format!("{}.{field}", judged.path);
        match value.kind() {
            JsonKind::Text => texts.push(thinking_at(path, text_of(value), SealFields::signed(None))),
            JsonKind::Array => each_element(value, |entry| {
                let text = |name: &str| text_member(entry, name);
                let seals = SealFields { signature: text("signature"), encrypted: text("data") };
                let words = text("text").or_else(|| text("summary")).or_else(|| text("thinking"));
                let mut unit = thinking_at(format!("{path}[{}]", entries.len()), words, seals);
                unit.id = text("id");
                entries.push(unit);
            }),
            JsonKind::Null | JsonKind::Object | JsonKind::Other => continue,
        }
        judged.has_field = true;
    }
    // Requests may send the same text under both names.
    texts.dedup_by(|a, b| a.text == b.text);
    judged.thinking.extend(if entries.is_empty() { texts } else { entries });
    for field in &names.opaque {
        let Some(payload) = message.get(field).and_then(text_of) else { continue };
        judged.has_field = true;
        judged.thinking.push(thinking_at(format!("{}.{field}", judged.path), None, SealFields::hidden(Some(payload))));
    }
}

/// An empty list, or one whose texts are all empty. An empty string is something else.
fn is_list_without_text(content: Raw<'_>) -> bool {
    let mut is_empty = content.kind() == JsonKind::Array;
    each_element(content, |part| {
        is_empty &= text_member(part, "type").as_deref() == Some("text")
            && text_member(part, "text").is_none_or(|text| text.is_empty());
    });
    is_empty
}

/// Reads an element of a content list.
fn read_content_part(part: Raw<'_>, index: usize, judged: &mut JudgedMessage) {
    let here = format!("{}.content[{index}]", judged.path);
    match text_member(part, "type").as_deref() {
        Some("thinking") => {
            let inner = member(part, "thinking");
            let text = inner.map(|inner| text_of(inner).unwrap_or_else(|| texts_in(inner)));
            judged.begins_with_thinking |= index == 0;
            judged.thinking.push(thinking_at(here, text, SealFields::signed(text_member(part, "signature"))));
        }
        Some("text") => judged.text.push_str(&text_member(part, "text").unwrap_or_default()),
        _ => (),
    }
}

/// Concatenates the texts of a list of `{"text":…}`.
fn texts_in(list: Raw<'_>) -> String {
    let mut texts = String::new();
    each_element(list, |part| texts.push_str(&text_member(part, "text").unwrap_or_default()));
    texts
}
