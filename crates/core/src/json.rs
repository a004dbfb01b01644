//! The public JSON of blocks, replies and events. The JSON names are defined
//! here and nowhere else.

mod block_view;
mod event_line;
mod rfc3339;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::block::{Block, Origin, Reply};
use crate::event::{Ending, Note, ProseKind, ProviderError, Usage};
use crate::message::Message;
use crate::safe_json;
pub(crate) use block_view::write_block;
use block_view::{BlockView, extra};

pub use block_view::arguments;
pub use event_line::{event, write_event, write_event_with_block};
pub(crate) use rfc3339::parse_rfc3339;
pub use rfc3339::rfc3339;

/// How a reply is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonLayout {
    /// Without line breaks.
    OneLine,
    /// For people to read.
    Indented,
}

/// A reply as `aside decode` prints it.
pub fn reply(reply: &Reply, origin: Option<&Origin>, file: Option<&str>, layout: JsonLayout) -> String {
    let view = ReplyView {
        file,
        role: "assistant",
        blocks: reply.blocks.iter().map(BlockView::of).collect(),
        usage: UsageView::of(reply.usage),
        finish: finish(&reply.end.ending),
        model: reply.model.as_deref(),
        origin: origin.map(OriginView::of),
        error: reply.end.error.as_ref().map(ErrorView::of),
        notices: reply.notes.iter().map(NoteView::of).collect(),
        seen: reply.empty_thinking_field.as_deref(),
        extra: extra(&reply.extra),
    };
    match layout {
        JsonLayout::OneLine => line(&view),
        JsonLayout::Indented => match serde_json::to_string_pretty(&view) {
            Ok(json) => match safe_json::escaped(&json) {
                Cow::Borrowed(_) => json,
                Cow::Owned(escaped) => escaped,
            },
            Err(_) => String::new(),
        },
    }
}

/// One block, as in a reply.
pub fn block(block: &Block) -> String {
    line(&BlockView::of(block))
}

/// A message on its own, for a store: what [`crate::json_value::JsonValue`] reads back, without the escapes that only
/// printing needs.
pub fn write_message(out: &mut String, message: &Message) {
    crate::interchange::write_message(out, message);
}

fn line(view: &impl Serialize) -> String {
    safe_json::to_string(view)
}

/// The counters of a message.
pub(crate) fn usage(usage: Usage) -> String {
    line(&UsageView::of(usage))
}

pub(crate) fn origin(origin: &Origin) -> String {
    line(&OriginView::of(origin))
}

/// The neutral finish reason. None if the provider gave none.
pub(crate) fn finish(ending: &Ending) -> Option<&'static str> {
    match ending {
        Ending::Stop => Some("stop"),
        Ending::Length => Some("length"),
        Ending::ToolCalls => Some("tool_calls"),
        Ending::ContentFilter => Some("content_filter"),
        Ending::Refusal => Some("refusal"),
        Ending::Pause => Some("pause"),
        Ending::Error => Some("error"),
        Ending::Unrecognized(_) => Some("other"),
        Ending::Unsaid | Ending::CutOff => None,
    }
}

/// What [`finish`] does not say about an ending.
pub(crate) fn ending_detail(ending: &Ending) -> Option<&str> {
    match ending {
        Ending::Unrecognized(word) if word != "other" => Some(word),
        Ending::Unsaid => Some("unsaid"),
        Ending::CutOff => Some("cut_off"),
        Ending::Unrecognized(_)
        | Ending::Stop
        | Ending::Length
        | Ending::ToolCalls
        | Ending::ContentFilter
        | Ending::Refusal
        | Ending::Pause
        | Ending::Error => None,
    }
}

pub(crate) fn note(note: &Note) -> String {
    line(&NoteView::of(note))
}

pub(crate) fn side(side: ProseKind) -> &'static str {
    match side {
        ProseKind::Text => "text",
        ProseKind::Thinking => "thinking",
    }
}

#[derive(Serialize)]
struct ReplyView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    role: &'static str,
    blocks: Vec<BlockView<'a>>,
    usage: UsageView,
    finish: Option<&'static str>,
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<OriginView<'a>>,
    error: Option<ErrorView<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<NoteView<'a>>,
    #[serde(rename = "reasoningSeen", skip_serializing_if = "Option::is_none")]
    seen: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UsageView {
    input: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
    cached: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write: Option<u64>,
}

#[derive(Serialize)]
struct ErrorView<'a> {
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<&'a str>,
    code: Option<&'a str>,
    status: Option<u16>,
}

#[derive(Serialize)]
struct NoteView<'a> {
    code: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
struct OriginView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dialect: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<&'a str>,
}

impl UsageView {
    fn of(usage: Usage) -> UsageView {
        let Usage { input, output, reasoning, cached, cache_write } = usage;
        UsageView { input, output, reasoning, cached, cache_write }
    }
}

impl<'a> ErrorView<'a> {
    fn of(error: &'a ProviderError) -> ErrorView<'a> {
        let ProviderError { message, words, code, status, overflow: _, lacks_credit: _ } = error;
        ErrorView { message, words: words.as_deref(), code: code.as_deref(), status: *status }
    }
}

impl<'a> NoteView<'a> {
    fn of(note: &'a Note) -> NoteView<'a> {
        NoteView { code: note.code.as_str(), message: &note.message }
    }
}

impl<'a> OriginView<'a> {
    fn of(origin: &'a Origin) -> OriginView<'a> {
        OriginView {
            provider: origin.provider.as_deref(),
            dialect: origin.dialect.as_deref(),
            model: origin.model.as_deref(),
            endpoint: origin.endpoint.as_deref(),
            account: origin.account.as_deref(),
        }
    }
}
