//! How a dialect sends thinking: in which field and with which seal. Derived from the
//! same dialect data that the decoder uses.

use aside_core::dialect::{Carrier, Details, Dialect, ErrorClass, ErrorRow, Rules};
use aside_core::protocol::Protocol;
use aside_core::rules::RequestedThinking;

/// The format of thinking in a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ThinkingFormat {
    /// Text in its own field or block.
    Text { source: String, signing: Signing },
    /// An entry in a structured list.
    ListEntry { list: DetailsList, signed: bool },
    /// Text in one field, a payload in another.
    TextAndPayload { field: String, payload: String },
    /// In tags inside the answer.
    Tagged { open: String, close: String },
    /// An output item with a summary and a payload, or with raw text.
    Item { sealed: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetailsList {
    ReasoningDetails,
    ThinkingBlocks,
}

/// Whether thinking carries its own signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signing {
    Signed,
    Unsigned,
}

/// How one dialect sends a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplyFormat {
    pub(crate) thinking: ThinkingFormat,
    /// Set if the first call of a step is signed; the inner value is the path of the
    /// signature if it is in a field of the call.
    pub(crate) call_seal: Option<Option<String>>,
    /// Whether an answer without calls is signed.
    pub(crate) text_seal: bool,
    /// The dialect's thinking tags, or the usual ones.
    pub(crate) tags: (String, String),
    /// Whether calls have an id.
    pub(crate) call_ids: bool,
    /// Whether each block is an output item with an id.
    pub(crate) output_items: bool,
    /// The source name of hidden thinking, if the dialect has it.
    pub(crate) hidden: Option<&'static str>,
    pub(crate) thinking_text: ThinkingText,
    pub(crate) payloads: Payloads,
}

/// Whether the text of thinking is written. Some providers write it only on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingText {
    Written,
    Omitted,
}

/// Whether encrypted payloads are sent. Some providers send them only on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payloads {
    Sent,
    Omitted,
}

/// What the request asks of the reply's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestedFormat {
    pub(crate) thinking: RequestedThinking,
    pub(crate) payloads: Payloads,
}

impl ReplyFormat {
    pub(crate) fn of(
        dialect: &Dialect,
        rules: &Rules,
        catalogue: &[ErrorRow],
        requested: RequestedFormat,
    ) -> ReplyFormat {
        let is_hidden = requested.thinking == RequestedThinking::Hidden;
        let pair = rules.read.tags.pairs.first();
        let tag = |tags: Option<&Vec<String>>, other: &str| {
            tags.and_then(|tags| tags.first()).map_or_else(|| other.to_owned(), String::clone)
        };
        let tags = (tag(pair.map(|pair| &pair.open), "<think>"), tag(pair.map(|pair| &pair.close), "</think>"));
        let thinking = match dialect.protocol {
            // Unless it is asked to separate it, a server leaves thinking in the text.
            Protocol::OpenaiChat if is_hidden && pair.is_some() => {
                ThinkingFormat::Tagged { open: tags.0.clone(), close: tags.1.clone() }
            }
            Protocol::OpenaiChat => chat_thinking(rules, catalogue, &tags),
            Protocol::OpenaiResponses => ThinkingFormat::Item { sealed: rules.echo.need_opaque },
            Protocol::Anthropic => text("thinking", Signing::Signed),
            Protocol::Bedrock => text("reasoningContent", Signing::Signed),
            Protocol::Gemini => text("thought", Signing::Unsigned),
            Protocol::Cohere => text("thinking", Signing::Unsigned),
            Protocol::Ollama => text(first_field(rules), Signing::Unsigned),
        };
        let hidden = match (&thinking, dialect.protocol) {
            (_, Protocol::Anthropic) => Some("redacted_thinking"),
            (_, Protocol::Bedrock) => Some("reasoningContent"),
            (ThinkingFormat::Item { sealed: true }, _) => Some("reasoning"),
            (ThinkingFormat::ListEntry { list: DetailsList::ReasoningDetails, .. }, _) => Some("reasoning_details"),
            (ThinkingFormat::TextAndPayload { .. }, _) => Some(""),
            (
                ThinkingFormat::Item { sealed: false }
                | ThinkingFormat::Text { .. }
                | ThinkingFormat::ListEntry { .. }
                | ThinkingFormat::Tagged { .. },
                _,
            ) => None,
        };
        let on_calls = match (dialect.protocol, rules.echo.carrier) {
            (Protocol::Gemini, _) => Some(None),
            (_, Carrier::CallExtra) => Some(rules.read.call_extra.first().cloned()),
            _ => None,
        };
        let is_tagged = matches!(thinking, ThinkingFormat::Tagged { .. });
        let thinking_text = if is_hidden && !is_tagged { ThinkingText::Omitted } else { ThinkingText::Written };
        ReplyFormat {
            thinking_text,
            payloads: requested.payloads,
            thinking,
            call_seal: on_calls,
            text_seal: dialect.protocol == Protocol::Gemini,
            tags,
            call_ids: dialect.protocol != Protocol::Ollama,
            output_items: dialect.protocol == Protocol::OpenaiResponses,
            hidden,
        }
    }
}

fn text(source: &str, signing: Signing) -> ThinkingFormat {
    ThinkingFormat::Text { source: source.to_owned(), signing }
}

fn first_field(rules: &Rules) -> &str {
    rules.read.text.first().map_or("reasoning_content", String::as_str)
}

fn chat_thinking(rules: &Rules, catalogue: &[ErrorRow], tags: &(String, String)) -> ThinkingFormat {
    let signed = checks_seals(rules, catalogue);
    match (rules.echo.carrier, rules.read.details, rules.read.opaque.first()) {
        (Carrier::ContentChunks, ..) => text("content.thinking", Signing::Unsigned),
        (Carrier::ContentTags | Carrier::CallExtra, ..) => {
            ThinkingFormat::Tagged { open: tags.0.clone(), close: tags.1.clone() }
        }
        (Carrier::Details, Details::Litellm, _) => {
            ThinkingFormat::ListEntry { list: DetailsList::ThinkingBlocks, signed: true }
        }
        (Carrier::Details, Details::Openrouter | Details::Any, _) => {
            ThinkingFormat::ListEntry { list: DetailsList::ReasoningDetails, signed }
        }
        (Carrier::FieldsOpaque, _, Some(payload)) => {
            ThinkingFormat::TextAndPayload { field: first_field(rules).to_owned(), payload: payload.clone() }
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
        ) => text(first_field(rules), Signing::Unsigned),
    }
}

/// Whether this provider is known to check seals.
pub(crate) fn checks_seals(rules: &Rules, catalogue: &[ErrorRow]) -> bool {
    catalogue_row(rules, catalogue, ErrorClass::Foreign).is_some()
}

/// This provider's catalogue row for a class of errors.
pub(crate) fn catalogue_row<'a>(rules: &Rules, catalogue: &'a [ErrorRow], class: ErrorClass) -> Option<&'a ErrorRow> {
    catalogue.iter().find(|row| row.class == class && rules.errors.contains(&row.id))
}
