//! The public JSON of blocks, replies and events. The JSON names are defined
//! here and nowhere else.

use std::borrow::Cow;
use std::io;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::block::{
    Arguments, Block, Media, MediaKind, MediaSource, Native, Origin, Reply, Seal, SealKind, Thinking, Time, ToolCall,
    ToolResult,
};
use crate::conversation::{item_ranges, native_of};
use crate::event::{BlockOpening, Ending, Event, Note, ProseKind, ProviderError, ReplyEnd, Usage};
use crate::extra::Extra;
use crate::fold::Fold;
use crate::json_text::{Raw, compact};
use crate::safe_json;

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

/// An event as one line. None for internal events. The fold must have processed
/// the event before.
pub fn event(event: &Event<'_>, fold: &Fold) -> Option<String> {
    let mut out = Vec::new();
    // Writing into memory does not fail, and what is written is UTF-8.
    let is_written = write_event(event, fold, &mut out).unwrap_or_default();
    is_written.then(|| String::from_utf8(out).unwrap_or_default())
}

/// Writes the same without a line end. Returns false if nothing was written.
pub fn write_event(event: &Event<'_>, fold: &Fold, out: &mut impl io::Write) -> io::Result<bool> {
    let value = if let Event::Closed { block } | Event::Sealed { block, .. } = *event
        && fold.is_closed(block)
    {
        fold.block(block)
    } else {
        None
    };
    write_event_with_block(event, value.as_ref(), out)
}

/// Writes the same for a caller that has no fold. `value` is the block that the event closes, or that
/// was closed before it got its seal.
pub fn write_event_with_block(event: &Event<'_>, value: Option<&Block>, out: &mut impl io::Write) -> io::Result<bool> {
    let view = match *event {
        Event::Opened { block, opening } => EventView::opened(block.0, opening),
        Event::Item { block, index } => EventView::Item { block: block.0, index },
        Event::Grew { block, text } => EventView::Grew { block: block.0, text },
        Event::Sealed { block, kind, payload } => {
            let (signature, encrypted) = match kind {
                SealKind::Signature => (Some(payload), None),
                SealKind::Encrypted => (None, Some(payload)),
            };
            EventView::Sealed { block: block.0, signature, encrypted, value: value.map(BlockView::of) }
        }
        Event::Refiled { block, to } => EventView::Refiled { block: block.0, to: side(to) },
        Event::Closed { block } => EventView::Closed { block: block.0, value: value.map(BlockView::of) },
        Event::Extra { block, value } => EventView::Extra { block: block.map(|block| block.0), name: value.name },
        Event::Usage(usage) => EventView::Usage(UsageView::of(usage)),
        Event::Noted(note) => EventView::Notice(NoteView::of(note)),
        Event::Ended(ReplyEnd { ending, error }) => {
            EventView::Ended { finish: finish(ending), error: error.as_ref().map(ErrorView::of) }
        }
        Event::Started { .. }
        | Event::Identified { .. }
        | Event::Restated { .. }
        | Event::NativeItem { .. }
        | Event::EmptyThinkingField { .. } => return Ok(false),
    };
    safe_json::write(out, &view).map(|()| true)
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
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum BlockView<'a> {
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
enum ResultContentView<'a> {
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
struct MediaView<'a> {
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
struct NativeView {
    #[serde(skip_serializing_if = "Option::is_none")]
    native: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    native_text: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingBlockView<'a> {
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

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum EventView<'a> {
    Opened {
        block: u32,
        r#type: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        source_field: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
    Item {
        block: u32,
        index: u32,
    },
    Grew {
        block: u32,
        text: &'a str,
    },
    Sealed {
        block: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted: Option<&'a str>,
        /// The current state of the block, if it was already closed.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<BlockView<'a>>,
    },
    Refiled {
        block: u32,
        to: &'static str,
    },
    Closed {
        block: u32,
        value: Option<BlockView<'a>>,
    },
    Extra {
        #[serde(skip_serializing_if = "Option::is_none")]
        block: Option<u32>,
        name: &'a str,
    },
    Usage(UsageView),
    Notice(NoteView<'a>),
    Ended {
        finish: Option<&'static str>,
        error: Option<ErrorView<'a>>,
    },
}

impl<'a> EventView<'a> {
    fn opened(block: u32, opening: BlockOpening<'a>) -> EventView<'a> {
        let (r#type, source_field, id, name) = match opening {
            BlockOpening::Text => ("text", None, None, None),
            BlockOpening::Thinking { source, id } => ("thinking", Some(source), id, None),
            BlockOpening::ToolCall { id, name } => ("toolCall", None, id, Some(name)),
            BlockOpening::Unmodelled => ("unmodelled", None, None, None),
        };
        EventView::Opened { block, r#type, source_field, id, name }
    }
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

    fn of(block: &'a Block) -> BlockView<'a> {
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

impl UsageView {
    fn of(usage: Usage) -> UsageView {
        let Usage { input, output, reasoning, cached, cache_write } = usage;
        UsageView { input, output, reasoning, cached, cache_write }
    }
}

impl<'a> ErrorView<'a> {
    fn of(error: &'a ProviderError) -> ErrorView<'a> {
        let ProviderError { message, words, code, status, is_too_long: _ } = error;
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

fn payload(seal: Option<&Seal>) -> Option<&str> {
    seal.map(|seal| seal.payload.as_str())
}

fn payload_of(kind: SealKind, seal: Option<&Seal>) -> Option<&str> {
    payload(seal.filter(|seal| seal.kind == kind))
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
fn extra(extra: &Extra) -> Option<Box<RawValue>> {
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

/// Parses a time in the format below. None for any other format.
pub(crate) fn parse_rfc3339(text: &str) -> Option<Time> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    // Bounds each part, so that nothing below overflows.
    let number = |part: &str, most: u64| part.parse::<u64>().ok().filter(|number| *number <= most);
    let mut date = date.splitn(3, '-').zip([500_000_000, 12, 31]).map(|(part, most)| number(part, most));
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut clock = clock.splitn(3, ':').zip([24, 60, 61]).map(|(part, most)| number(part, most));
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let millis: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    // The inverse of the calculation below, with years that begin in March.
    let shifted_year = year.checked_sub(u64::from(month <= 2))?;
    let year_of_era = shifted_year % 400;
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day.checked_sub(1)?;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (shifted_year / 400 * 146_097 + day_of_era).checked_sub(719_468)?;
    Some(Time(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + millis))
}

/// `2026-11-15T09:30:00.250Z`
pub fn rfc3339(time: Time) -> String {
    let (seconds, millis) = (time.0 / 1000, time.0 % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years. A year that begins in March
    // has its leap day last.
    let z = days + 719_468;
    let day_of_era = z % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = z / 146_097 * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_rfc_3339() {
        #[rustfmt::skip]
        let cases = [
            (0,                 "1970-01-01T00:00:00.000Z"),
            (951_782_400_000,   "2000-02-29T00:00:00.000Z"),
            (1_794_735_025_250, "2026-11-15T09:30:25.250Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ];
        for (time, expected) in cases {
            assert_eq!(rfc3339(Time(time)), expected);
            assert_eq!(parse_rfc3339(expected), Some(Time(time)));
        }
    }
}
