//! The JSON of blocks.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{line, rfc3339};
use crate::block::{
    Arguments, Block, Media, MediaKind, MediaSource, Native, Seal, SealKind, Thinking, ToolCall, ToolResult,
};
use crate::conversation::{item_ranges, native_of};
use crate::extra::Extra;
use crate::json_text::{NestedObject, Raw, compact, object_into};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum BlockView<'a> {
    Thinking(ThinkingBlockView<'a>),
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted: Option<&'a str>,
        #[serde(flatten)]
        native: NativeView,
        #[serde(skip_serializing_if = "Option::is_none")]
        extra: Option<Box<RawValue>>,
    },
    ToolCall {
        id: &'a str,
        name: &'a str,
        arguments: Box<RawValue>,
        /// The arguments are a string that is valid JSON.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        parsed: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted: Option<&'a str>,
        #[serde(flatten)]
        native: NativeView,
        #[serde(skip_serializing_if = "Option::is_none")]
        extra: Option<Box<RawValue>>,
    },
    ToolResult {
        id: &'a str,
        name: &'a str,
        content: ResultContentView<'a>,
        is_error: bool,
    },
    Image(MediaView<'a>),
    Document(MediaView<'a>),
    Unmodelled {
        native: Box<RawValue>,
    },
}

/// A string, or a list if the result holds more than text.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ResultContentView<'a> {
    Text(&'a str),
    Blocks(Vec<BlockView<'a>>),
}

impl<'a> ResultContentView<'a> {
    fn of(result: &'a ToolResult) -> ResultContentView<'a> {
        if result.media.is_empty() {
            return ResultContentView::Text(&result.content);
        }
        let text = Some(result.content.as_str()).filter(|text| !text.is_empty());
        let text = text.map(|text| BlockView::Text {
            text,
            signature: None,
            encrypted: None,
            native: NativeView { native: None, native_text: None },
            extra: None,
        });
        ResultContentView::Blocks(text.into_iter().chain(result.media.iter().map(BlockView::of_media)).collect())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MediaView<'a> {
    media_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

/// The native item, and the member that holds the block's text if a reader
/// would guess wrong.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NativeView {
    #[serde(skip_serializing_if = "Option::is_none")]
    native: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    native_text: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingBlockView<'a> {
    thought: &'a str,
    source_field: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encrypted: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    summary: Vec<ItemView<'a>>,
    /// The item ranges, if a reader would guess wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<[usize; 2]>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_hidden: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    #[serde(flatten)]
    native: NativeView,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct ItemView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    content: &'a str,
}

impl<'a> BlockView<'a> {
    fn of_media(media: &'a Media) -> BlockView<'a> {
        let (data, url, file_id) = match &media.source {
            MediaSource::Data(data) => (Some(data.as_str()), None, None),
            MediaSource::Url(url) => (None, Some(url.as_str()), None),
            MediaSource::FileId(id) => (None, None, Some(id.as_str())),
        };
        let view = MediaView { media_type: &media.media_type, data, url, file_id, name: media.name.as_deref() };
        match media.kind {
            MediaKind::Image => BlockView::Image(view),
            MediaKind::Document => BlockView::Document(view),
        }
    }

    pub(super) fn of(block: &'a Block) -> BlockView<'a> {
        match block {
            Block::Thinking(thinking) => BlockView::Thinking(ThinkingBlockView::of(thinking)),
            Block::Text(text) => BlockView::Text {
                text: &text.text,
                signature: payload_of(SealKind::Signature, text.seal.as_ref()),
                encrypted: payload_of(SealKind::Encrypted, text.seal.as_ref()),
                native: NativeView::of(text.native.as_ref(), &text.text),
                extra: extra(&text.extra),
            },
            Block::ToolCall(call) => BlockView::ToolCall {
                id: call.id.as_str(),
                name: &call.name,
                arguments: arguments(&call.arguments),
                parsed: matches!(&call.arguments, Arguments::Json(json) if json.trim_start().starts_with('"')),
                signature: payload_of(SealKind::Signature, call.seal.as_ref()),
                encrypted: payload_of(SealKind::Encrypted, call.seal.as_ref()),
                native: NativeView::of_call(call),
                extra: extra(&call.extra),
            },
            Block::ToolResult(result) => BlockView::ToolResult {
                id: &result.id,
                name: &result.name,
                content: ResultContentView::of(result),
                is_error: result.is_error,
            },
            Block::Media(media) => BlockView::of_media(media),
            Block::Unmodelled(unmodelled) => {
                BlockView::Unmodelled { native: as_json(&unmodelled.native.with_text("")) }
            }
        }
    }
}

impl<'a> ThinkingBlockView<'a> {
    fn of(thinking: &'a Thinking) -> ThinkingBlockView<'a> {
        let seals = thinking.seals();
        ThinkingBlockView {
            thought: thinking.text(),
            source_field: &thinking.source,
            signature: payload(seals.and_then(|seals| seals.signature.as_ref())),
            encrypted: payload(seals.and_then(|seals| seals.encrypted.as_ref())),
            id: thinking.id.as_deref(),
            summary: thinking.summary().map(|item| ItemView { title: item.title, content: item.content }).collect(),
            items: (item_ranges(thinking.text(), thinking.summary()) != thinking.items)
                .then(|| thinking.items.iter().map(|item| [item.start, item.end]).collect()),
            is_hidden: thinking.is_hidden(),
            started_at: thinking.span.map(|span| rfc3339(span.started)),
            ended_at: thinking.span.map(|span| rfc3339(span.ended)),
            native: NativeView::of(thinking.native.as_ref(), thinking.text()),
            extra: extra(&thinking.extra),
        }
    }
}

fn payload(seal: Option<&Seal>) -> Option<&str> {
    seal.map(|seal| seal.payload.as_str())
}

fn payload_of(kind: SealKind, seal: Option<&Seal>) -> Option<&str> {
    payload(seal.filter(|seal| seal.kind == kind))
}

/// Appends a block like [`super::block`], without the escapes that only printing needs. The kinds of which replies have
/// many are written member by member.
pub(crate) fn write_block(out: &mut String, block: &Block) {
    match BlockView::of(block) {
        BlockView::Thinking(thinking) => object_into(out, |object| write_thinking(object, &thinking)),
        BlockView::Text { text, signature, encrypted, native, extra } => object_into(out, |object| {
            object.push_raw("type", "\"text\"");
            object.push_text("text", text);
            write_common(object, [signature, encrypted], &native, extra.as_deref());
        }),
        BlockView::ToolCall { id, name, arguments, parsed, signature, encrypted, native, extra } => {
            object_into(out, |object| {
                object.push_raw("type", "\"toolCall\"");
                object.push_text("id", id);
                object.push_text("name", name);
                object.push_raw("arguments", arguments.get());
                if parsed {
                    object.push_raw("parsed", "true");
                }
                write_common(object, [signature, encrypted], &native, extra.as_deref());
            });
        }
        view @ (BlockView::ToolResult { .. }
        | BlockView::Image(_)
        | BlockView::Document(_)
        | BlockView::Unmodelled { .. }) => out.push_str(&line(&view)),
    }
}

fn write_thinking(object: &mut NestedObject<'_>, view: &ThinkingBlockView<'_>) {
    object.push_raw("type", "\"thinking\"");
    object.push_text("thought", view.thought);
    object.push_text("sourceField", view.source_field);
    write_seals(object, [view.signature, view.encrypted]);
    push_some(object, "id", view.id);
    if !view.summary.is_empty() {
        object.push_raw("summary", &line(&view.summary));
    }
    if let Some(items) = &view.items {
        object.push_raw("items", &line(items));
    }
    if view.is_hidden {
        object.push_raw("isHidden", "true");
    }
    push_some(object, "startedAt", view.started_at.as_deref());
    push_some(object, "endedAt", view.ended_at.as_deref());
    write_common(object, [None, None], &view.native, view.extra.as_deref());
}

fn write_common(
    object: &mut NestedObject<'_>,
    seals: [Option<&str>; 2],
    native: &NativeView,
    extra: Option<&RawValue>,
) {
    write_seals(object, seals);
    if let Some(native) = &native.native {
        object.push_raw("native", native.get());
    }
    push_some(object, "nativeText", native.native_text.as_deref());
    if let Some(extra) = extra {
        object.push_raw("extra", extra.get());
    }
}

fn write_seals(object: &mut NestedObject<'_>, [signature, encrypted]: [Option<&str>; 2]) {
    push_some(object, "signature", signature);
    push_some(object, "encrypted", encrypted);
}

fn push_some(object: &mut NestedObject<'_>, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        object.push_text(name, text);
    }
}

/// The arguments of a call on one line: the JSON value with its key order, or
/// the malformed text as a string.
pub fn arguments(arguments: &Arguments) -> Box<RawValue> {
    let json = match arguments {
        Arguments::Json(text) => compact(text).into_owned(),
        Arguments::Broken(text) => line(&text),
    };
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

impl NativeView {
    fn of_call(call: &ToolCall) -> NativeView {
        let repeats = call.native.as_ref().is_some_and(Native::has_place_for_text);
        let (Arguments::Json(text) | Arguments::Broken(text)) = &call.arguments;
        NativeView::of(call.native.as_ref(), if repeats { text.as_str() } else { "" })
    }

    fn of(native: Option<&Native>, text: &str) -> NativeView {
        let Some(native) = native else { return NativeView { native: None, native_text: None } };
        let whole = compact(&native.with_text(text)).into_owned();
        let guessed = Raw::of(&whole).ok().and_then(|whole| native_of(whole, non_empty(text)).text_member);
        // Whoever reads it keeps the item as it is, with its text.
        let named = guessed != native.text_member && !native.has_place_for_text();
        let native_text = named.then(|| native.text_member.clone().unwrap_or_default());
        NativeView { native: Some(as_json(&whole)), native_text }
    }
}

/// The members without a neutral form. None if there are none.
pub(super) fn extra(extra: &Extra) -> Option<Box<RawValue>> {
    (!extra.is_empty()).then(|| as_json(&extra.to_json()))
}

fn non_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// JSON on one line. Invalid JSON becomes a string, so that one bad item does
/// not break the file.
fn as_json(json: &str) -> Box<RawValue> {
    let valid = RawValue::from_string(compact(json).into_owned());
    valid.or_else(|_| RawValue::from_string(line(&json))).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
