//! How a dialect shows its thinking: in which field, with which seal. Taken
//! from the same data that reads it.

use aside_core::dialect::{Carrier, Details, Dialect, ErrorClass, ErrorRow, Rules};
use aside_core::protocol::Protocol;

/// The shape of a thought in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Text in a field or a block of its own.
    Told { source: String, seal: Sealing },
    /// An entry of a structured list.
    Entry { list: Entries, signed: bool },
    /// Text in one field, a payload in another.
    Paired { field: String, payload: String },
    /// Inside the answer.
    Tagged { open: String, close: String },
    /// An item with a summary and a payload, or with its raw text.
    Item { sealed: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entries {
    ReasoningDetails,
    ThinkingBlocks,
}

/// Whether a thought carries its own signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sealing {
    Signed,
    Bare,
}

/// Everything about how one dialect answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manner {
    pub(crate) thought: Shape,
    /// The first call of a step is signed; the path of the seal where it
    /// stands in a field of the call.
    pub(crate) call_seal: Option<Option<String>>,
    /// An answer without calls is signed.
    pub(crate) text_seal: bool,
    /// The tags that this dialect knows, or everybody.
    pub(crate) tags: (String, String),
    /// Calls have an id.
    pub(crate) call_ids: bool,
    /// Everything said is an item with an id of its own.
    pub(crate) items: bool,
    /// What hidden thinking is called, where there is such a thing.
    pub(crate) hidden: Option<&'static str>,
}

impl Manner {
    pub(crate) fn of(dialect: &Dialect, rules: &Rules, catalogue: &[ErrorRow]) -> Manner {
        let pair = rules.read.tags.pairs.first();
        let tag = |tags: Option<&Vec<String>>, other: &str| {
            tags.and_then(|tags| tags.first()).map_or_else(|| other.to_owned(), String::clone)
        };
        let tags = (tag(pair.map(|pair| &pair.open), "<think>"), tag(pair.map(|pair| &pair.close), "</think>"));
        let thought = match dialect.protocol {
            Protocol::OpenaiChat => chat(rules, catalogue, &tags),
            Protocol::OpenaiResponses => Shape::Item { sealed: rules.echo.need_opaque },
            Protocol::Anthropic => told("thinking", Sealing::Signed),
            Protocol::Bedrock => told("reasoningContent", Sealing::Signed),
            Protocol::Gemini => told("thought", Sealing::Bare),
            Protocol::Cohere => told("thinking", Sealing::Bare),
            Protocol::Ollama => told(first_field(rules), Sealing::Bare),
        };
        let hidden = match (&thought, dialect.protocol) {
            (_, Protocol::Anthropic) => Some("redacted_thinking"),
            (_, Protocol::Bedrock) => Some("reasoningContent"),
            (Shape::Item { sealed: true }, _) => Some("reasoning"),
            (Shape::Entry { list: Entries::ReasoningDetails, .. }, _) => Some("reasoning_details"),
            (Shape::Paired { .. }, _) => Some(""),
            (Shape::Item { sealed: false } | Shape::Told { .. } | Shape::Entry { .. } | Shape::Tagged { .. }, _) => {
                None
            }
        };
        let on_calls = match (dialect.protocol, rules.echo.carrier) {
            (Protocol::Gemini, _) => Some(None),
            (_, Carrier::CallExtra) => Some(rules.read.call_extra.first().cloned()),
            _ => None,
        };
        Manner {
            thought,
            call_seal: on_calls,
            text_seal: dialect.protocol == Protocol::Gemini,
            tags,
            call_ids: dialect.protocol != Protocol::Ollama,
            items: dialect.protocol == Protocol::OpenaiResponses,
            hidden,
        }
    }
}

fn told(source: &str, seal: Sealing) -> Shape {
    Shape::Told { source: source.to_owned(), seal }
}

fn first_field(rules: &Rules) -> &str {
    rules.read.text.first().map_or("reasoning_content", String::as_str)
}

fn chat(rules: &Rules, catalogue: &[ErrorRow], tags: &(String, String)) -> Shape {
    let signed = checks_seals(rules, catalogue);
    match (rules.echo.carrier, rules.read.details, rules.read.opaque.first()) {
        (Carrier::ContentChunks, ..) => told("content.thinking", Sealing::Bare),
        (Carrier::ContentTags | Carrier::CallExtra, ..) => {
            Shape::Tagged { open: tags.0.clone(), close: tags.1.clone() }
        }
        (Carrier::Details, Details::Litellm, _) => Shape::Entry { list: Entries::ThinkingBlocks, signed: true },
        (Carrier::Details, Details::Openrouter | Details::Any, _) => {
            Shape::Entry { list: Entries::ReasoningDetails, signed }
        }
        (Carrier::FieldsOpaque, _, Some(payload)) => {
            Shape::Paired { field: first_field(rules).to_owned(), payload: payload.clone() }
        }
        (
            Carrier::None
            | Carrier::Field
            | Carrier::Details
            | Carrier::Block
            | Carrier::Item
            | Carrier::Part
            | Carrier::FieldsOpaque,
            ..,
        ) => told(first_field(rules), Sealing::Bare),
    }
}

/// Whether this provider is known to complain about seals at all.
pub(crate) fn checks_seals(rules: &Rules, catalogue: &[ErrorRow]) -> bool {
    complaint(rules, catalogue, ErrorClass::Foreign).is_some()
}

/// The row with this provider's words for a kind of complaint.
pub(crate) fn complaint<'a>(rules: &Rules, catalogue: &'a [ErrorRow], class: ErrorClass) -> Option<&'a ErrorRow> {
    catalogue.iter().find(|row| row.class == class && rules.errors.contains(&row.id))
}
