//! A request as a provider's checks see it: who says what, with which
//! thinking, whatever the protocol.

mod items;
mod lists;

use crate::dialect::{Dialect, Rules};
use crate::protocol::Protocol;
use crate::rules::{Wishes, field_name};
use crate::settings::Settings;
use crate::wire::json::{Kind, Raw, each_element, member, text_member, text_of};

/// One message, or one run of items, of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    /// Where it stands, as a path into the body.
    pub(super) path: String,
    /// Which element of the list of messages or items it is.
    pub(super) at: usize,
    pub(super) speaker: Speaker,
    pub(super) thinking: Vec<Thought>,
    pub(super) calls: Vec<Call>,
    pub(super) results: Vec<Answer>,
    /// What is visible of it.
    pub(super) text: String,
    /// Items with ids of their own, thoughts too.
    pub(super) items: Vec<Item>,
    /// The thinking field is there, with or without anything in it.
    pub(super) has_field: bool,
    pub(super) begins_with_thinking: bool,
    pub(super) has_empty_content: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
    /// Results of calls only: no turn begins here.
    Tool,
}

/// What a seal, or a thought without one, is carried by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    Thought,
    /// A seal on answer text.
    Text,
    /// A seal on a call.
    Call,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thought {
    pub(super) path: String,
    pub(super) carried: Carried,
    pub(super) text: String,
    /// A signature or an encrypted payload.
    pub(super) seals: Vec<String>,
    /// One of the seals is a signature, which stands for the text.
    pub(super) signed: bool,
    pub(super) id: Option<String>,
    /// The call that comes next in this message.
    pub(super) next_call: Option<String>,
    /// Nothing follows it.
    pub(super) is_last: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) path: String,
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) seal: Option<String>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) path: String,
    pub(super) at: usize,
    pub(super) id: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) path: String,
    pub(super) id: String,
    pub(super) kind: String,
}

impl Seen {
    fn new(path: String, at: usize, speaker: Speaker) -> Seen {
        Seen {
            path,
            at,
            speaker,
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

    fn push_call(&mut self, call: Call) {
        for thought in self.thinking.iter_mut().filter(|thought| thought.next_call.is_none()) {
            thought.next_call = call.id.clone();
        }
        self.calls.push(call);
    }
}

impl Thought {
    /// A thought that says nothing and proves nothing stands in for one.
    pub(super) fn is_filler(&self) -> bool {
        self.seals.is_empty() && self.text.trim().is_empty()
    }
}

/// The seals of a thought, as they stand in an object.
struct Sealed {
    signature: Option<String>,
    encrypted: Option<String>,
}

impl Sealed {
    fn signed(signature: Option<String>) -> Sealed {
        Sealed { signature, encrypted: None }
    }

    fn hidden(encrypted: Option<String>) -> Sealed {
        Sealed { signature: None, encrypted }
    }
}

fn thought(path: String, text: Option<String>, seals: Sealed) -> Thought {
    Thought {
        path,
        carried: Carried::Thought,
        text: text.unwrap_or_default(),
        signed: seals.signature.is_some(),
        seals: seals.signature.into_iter().chain(seals.encrypted).collect(),
        id: None,
        next_call: None,
        is_last: false,
    }
}

/// Where a dialect's messages hold thinking, beside their content.
struct Names {
    /// Every name that thinking may stand under.
    fields: Vec<String>,
    /// Fields that hold nothing but a seal.
    opaque: Vec<String>,
    /// Where a call's seal is.
    call_seals: Vec<String>,
}

impl Names {
    fn of(rules: &Rules) -> Names {
        let mut fields = rules.read.text.clone();
        fields.push(field_name(rules, &Wishes::of(&Settings::new(), &rules.echo), None));
        fields.extend(["reasoning_details".to_owned(), "thinking_blocks".to_owned()]);
        fields.sort();
        fields.dedup();
        Names { fields, opaque: rules.read.opaque.clone(), call_seals: rules.read.call_extra.clone() }
    }
}

/// Every message of a request, in order.
pub(super) fn view(dialect: &Dialect, rules: &Rules, body: Raw<'_>) -> Vec<Seen> {
    match dialect.protocol {
        Protocol::OpenaiChat | Protocol::Ollama | Protocol::Cohere => {
            let names = Names::of(rules);
            each(body, "messages", |path, at, message| chat(path, at, message, &names))
        }
        Protocol::Anthropic => each(body, "messages", lists::anthropic),
        Protocol::Bedrock => each(body, "messages", lists::converse),
        Protocol::Gemini => each(body, "contents", lists::gemini),
        Protocol::OpenaiResponses => items::responses(body, rules.echo.item_text),
    }
}

fn each<'a>(body: Raw<'a>, list: &str, read: impl Fn(String, usize, Raw<'a>) -> Option<Seen>) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut at = 0;
    if let Some(messages) = member(body, list) {
        each_element(messages, |message| {
            seen.extend(read(format!("{list}[{at}]"), at, message));
            at += 1;
        });
    }
    seen
}

fn chat(path: String, at: usize, message: Raw<'_>, names: &Names) -> Option<Seen> {
    let speaker = match text_member(message, "role").as_deref() {
        Some("user") => Speaker::User,
        Some("assistant") => Speaker::Assistant,
        Some("tool") => Speaker::Tool,
        _ => return None,
    };
    let mut seen = Seen::new(path, at, speaker);
    if speaker == Speaker::Tool {
        let id = text_member(message, "tool_call_id");
        seen.results.push(Answer { path: seen.path.clone(), at, id });
        return Some(seen);
    }
    if speaker == Speaker::Assistant {
        beside(message, names, &mut seen);
    }
    if let Some(content) = member(message, "content") {
        seen.has_empty_content = content.get() == "\"\"";
        if content.kind() == Kind::Text {
            seen.text = text_of(content).unwrap_or_default();
        }
        let mut index = 0;
        each_element(content, |part| {
            chunk(part, index, &mut seen);
            index += 1;
        });
    }
    if let Some(calls) = member(message, "tool_calls") {
        each_element(calls, |call| {
            let seal =
                names.call_seals.iter().find_map(|path| crate::wire::json::at_path(call, path).and_then(text_of));
            let name = member(call, "function").and_then(|function| text_member(function, "name"));
            let path = format!("{}.tool_calls[{}]", seen.path, seen.calls.len());
            seen.push_call(Call { path, id: text_member(call, "id"), name: name.unwrap_or_default(), seal });
        });
    }
    Some(seen)
}

/// Fields beside the content. A list of entries says what the text says.
fn beside(message: Raw<'_>, names: &Names, seen: &mut Seen) {
    let (mut texts, mut entries) = (Vec::new(), Vec::new());
    for field in &names.fields {
        let Some(value) = member(message, field) else { continue };
        let path = format!("{}.{field}", seen.path);
        match value.kind() {
            Kind::Text => texts.push(thought(path, text_of(value), Sealed::signed(None))),
            Kind::Array => each_element(value, |entry| {
                let text = |name: &str| text_member(entry, name);
                let seals = Sealed { signature: text("signature"), encrypted: text("data") };
                let words = text("text").or_else(|| text("summary")).or_else(|| text("thinking"));
                let mut unit = thought(format!("{path}[{}]", entries.len()), words, seals);
                unit.id = text("id");
                entries.push(unit);
            }),
            Kind::Null | Kind::Object | Kind::Other => continue,
        }
        seen.has_field = true;
    }
    // Servers that read both names get the same text twice.
    texts.dedup_by(|a, b| a.text == b.text);
    seen.thinking.extend(if entries.is_empty() { texts } else { entries });
    for field in &names.opaque {
        let Some(payload) = text_member(message, field) else { continue };
        seen.has_field = true;
        seen.thinking.push(thought(format!("{}.{field}", seen.path), None, Sealed::hidden(Some(payload))));
    }
}

/// A part of a content list.
fn chunk(part: Raw<'_>, index: usize, seen: &mut Seen) {
    let here = format!("{}.content[{index}]", seen.path);
    match text_member(part, "type").as_deref() {
        Some("thinking") => {
            let inner = member(part, "thinking");
            let text = inner.map(|inner| text_of(inner).unwrap_or_else(|| texts_in(inner)));
            seen.begins_with_thinking |= index == 0;
            seen.thinking.push(thought(here, text, Sealed::signed(text_member(part, "signature"))));
        }
        Some("text") => seen.text.push_str(&text_member(part, "text").unwrap_or_default()),
        _ => (),
    }
}

/// The texts of a list of `{"text":…}`, one behind the other.
fn texts_in(list: Raw<'_>) -> String {
    let mut texts = String::new();
    each_element(list, |part| texts.push_str(&text_member(part, "text").unwrap_or_default()));
    texts
}
