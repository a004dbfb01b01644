//! Reads the messages and blocks of a conversation from their JSON.

use std::ops::Range;

use crate::block::{
    Arguments, Block, CallId, Media, MediaKind, MediaSource, Native, Origin, Seal, SealKind, Seals, SummaryItem, Text,
    Thinking, ThinkingContent, ThinkingSpan, ToolCall, ToolResult, Unmodelled,
};
use crate::event::{Ending, Usage};
use crate::extra::Extra;
use crate::json_text::{
    JsonKind, JsonText, Raw, canonical, compact, count_of, each_element, each_member, member, quote, text_member,
    text_of,
};
use crate::message::{Message, Role};

/// Members of a message that have their own field.
pub(crate) const KNOWN_MEMBERS: [&str; 12] = [
    "role",
    "blocks",
    "origin",
    "finish",
    "ending",
    "usage",
    "reasoningSeen",
    "interrupted",
    "at",
    "id",
    "parent",
    "extra",
];

/// Parses one message, as in a line of a conversation file.
pub(crate) fn parse_message(json: &str) -> Result<Message, String> {
    read_message(Raw::of(json).map_err(|error| error.to_string())?)
}

/// Parses one block, as in a message.
pub(crate) fn parse_block(json: &str) -> Result<Block, String> {
    read_block(Raw::of(json).map_err(|error| error.to_string())?)
}

pub(crate) fn read_message(raw: Raw<'_>) -> Result<Message, String> {
    let role = match text_member(raw, "role").as_deref() {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        Some(other) => return Err(format!("unknown role `{other}`; use system, user, assistant or tool")),
        None => return Err("a message needs a role: system, user, assistant or tool".to_owned()),
    };
    let mut blocks = Vec::new();
    let mut problem = None;
    if let Some(list) = member(raw, "blocks") {
        each_element(list, |block| match read_block(block) {
            Ok(block) => blocks.push(block),
            Err(error) => problem = problem.take().or(Some(error)),
        });
    }
    if let Some(problem) = problem {
        return Err(problem);
    }
    let mut message = Message::new(role, blocks);
    message.origin = member(raw, "origin").filter(|origin| origin.kind() == JsonKind::Object).map(read_origin);
    message.ending = read_ending(text_member(raw, "finish").as_deref(), text_member(raw, "ending"));
    message.usage = member(raw, "usage").map(read_usage);
    message.empty_thinking_field = text_member(raw, "reasoningSeen");
    message.at = text_member(raw, "at").and_then(|time| crate::json::parse_rfc3339(&time));
    message.interrupted = member(raw, "interrupted").is_some_and(|value| value.get() == "true");
    message.extra = read_extra(raw);
    let model = message.origin.as_ref().and_then(|origin| origin.model.as_deref());
    let repeats_model = |key: &str, value: Raw<'_>| key == "model" && text_of(value).as_deref() == model;
    each_member(raw, |key, value| {
        if !KNOWN_MEMBERS.contains(&key) && value.kind() != JsonKind::Null && !repeats_model(key, value) {
            message.unknown_members.push((key.to_owned(), canonical(value.get()).into_owned()));
        }
    });
    Ok(message)
}

fn read_extra(raw: Raw<'_>) -> Extra {
    member(raw, "extra").map(Extra::read).unwrap_or_default()
}

fn read_block(raw: Raw<'_>) -> Result<Block, String> {
    let text = |name: &str| text_member(raw, name);
    let owned = |name: &str| text(name).unwrap_or_default();
    let seal = || {
        let signature = text("signature").map(|payload| Seal { kind: SealKind::Signature, payload });
        signature.or_else(|| text("encrypted").map(|payload| Seal { kind: SealKind::Encrypted, payload }))
    };
    match text("type").as_deref() {
        Some("text") => {
            let native = read_native(raw, text("text").as_deref());
            Ok(Block::Text(Text { text: owned("text"), seal: seal(), native, extra: read_extra(raw) }))
        }
        Some("thinking") => Ok(Block::Thinking(read_thinking(raw))),
        Some("toolCall") => {
            let arguments = member(raw, "arguments");
            let arguments = match arguments.map(|value| (value.kind(), value)) {
                // A string holds arguments that did not parse, unless `parsed`
                // is set.
                Some((JsonKind::Text, value)) if member(raw, "parsed").is_none() => {
                    Arguments::Broken(text_of(value).unwrap_or_default())
                }
                Some((_, value)) => Arguments::Json(canonical(value.get()).into_owned()),
                None => Arguments::Json("{}".to_owned()),
            };
            Ok(Block::ToolCall(ToolCall {
                id: CallId::from_stored(owned("id")),
                name: owned("name"),
                arguments,
                seal: seal(),
                native: read_native(raw, None),
                extra: read_extra(raw),
            }))
        }
        Some("toolResult") => {
            let (content, media) = read_result_content(member(raw, "content"));
            Ok(Block::ToolResult(ToolResult {
                id: owned("id"),
                name: owned("name"),
                content,
                media,
                is_error: member(raw, "isError").is_some_and(|value| value.get() == "true"),
            }))
        }
        Some("image") => Ok(Block::Media(read_media(raw, MediaKind::Image))),
        Some("document") => Ok(Block::Media(read_media(raw, MediaKind::Document))),
        Some("unmodelled") => {
            let native = member(raw, "native").filter(|native| native.kind() != JsonKind::Null);
            let json = canonical(native.ok_or("an unmodelled block needs its native item")?.get()).into_owned();
            Ok(Block::Unmodelled(Unmodelled { native: Native { json, text_member: None } }))
        }
        Some(other) => Err(format!(
            "unknown block type `{other}`; use thinking, text, toolCall, toolResult, image, document or unmodelled"
        )),
        None => Err("a block needs a type".to_owned()),
    }
}

pub(crate) fn read_media(raw: Raw<'_>, kind: MediaKind) -> Media {
    let text = |name: &str| text_member(raw, name);
    let source = match (text("url"), text("fileId")) {
        (Some(url), _) => MediaSource::Url(url),
        (None, Some(id)) => MediaSource::FileId(id),
        (None, None) => MediaSource::Data(text("data").unwrap_or_default()),
    };
    Media { kind, media_type: text("mediaType").unwrap_or_default(), source, name: text("name") }
}

/// The content of a tool result: a string, or a list of texts and media. Any
/// other value is kept as JSON text.
fn read_result_content(content: Option<Raw<'_>>) -> (String, Vec<Media>) {
    let Some(content) = content else { return (String::new(), Vec::new()) };
    if let Some((text, media)) = read_result_blocks(content) {
        return (text, media);
    }
    (text_of(content).unwrap_or_else(|| compact(content.get()).trim_matches('"').to_owned()), Vec::new())
}

/// None if an element is not one of our blocks.
fn read_result_blocks(content: Raw<'_>) -> Option<(String, Vec<Media>)> {
    let (mut texts, mut media, mut fits) = (Vec::new(), Vec::new(), content.kind() == JsonKind::Array);
    each_element(content, |block| match text_member(block, "type").as_deref() {
        Some("text") => texts.push(text_member(block, "text").unwrap_or_default()),
        Some("image") => media.push(read_media(block, MediaKind::Image)),
        Some("document") => media.push(read_media(block, MediaKind::Document)),
        _ => fits = false,
    });
    (fits && !media.is_empty()).then(|| (texts.join("\n"), media))
}

pub(crate) fn read_thinking(raw: Raw<'_>) -> Thinking {
    let text = text_member(raw, "thought").unwrap_or_default();
    let seal = |name: &str, kind| text_member(raw, name).map(|payload| Seal { kind, payload });
    let seals =
        Seals { signature: seal("signature", SealKind::Signature), encrypted: seal("encrypted", SealKind::Encrypted) };
    let sealed = seals.signature.is_some() || seals.encrypted.is_some();
    let native = read_native(raw, Some(text.as_str()).filter(|text| !text.is_empty()));
    let items = read_items(raw).unwrap_or_else(|| {
        let mut summary = Vec::new();
        if let Some(list) = member(raw, "summary") {
            each_element(list, |item| {
                summary.push((text_member(item, "title"), text_member(item, "content").unwrap_or_default()));
            });
        }
        item_ranges(&text, summary.iter().map(|(title, content)| SummaryItem { title: title.as_deref(), content }))
    });
    let content = match (text.is_empty(), sealed) {
        (true, _) => ThinkingContent::Hidden { seals },
        (false, true) => ThinkingContent::Sealed { text, seals },
        (false, false) => ThinkingContent::Open { text },
    };
    let time = |name: &str| text_member(raw, name).and_then(|time| crate::json::parse_rfc3339(&time));
    let span = time("startedAt").zip(time("endedAt")).map(|(started, ended)| ThinkingSpan { started, ended });
    Thinking {
        content,
        source: text_member(raw, "sourceField").unwrap_or_default(),
        id: text_member(raw, "id"),
        items,
        span,
        native,
        extra: read_extra(raw),
    }
}

/// The item ranges, if the file lists them.
fn read_items(raw: Raw<'_>) -> Option<Vec<Range<usize>>> {
    let mut items = Vec::new();
    each_element(member(raw, "items")?, |pair| {
        let mut ends = Vec::new();
        each_element(pair, |end| ends.extend(count_of(end).and_then(|end| usize::try_from(end).ok())));
        if let [start, end] = *ends {
            items.push(start..end.max(start));
        }
    });
    Some(items)
}

/// The ranges of items that are separated by blank lines.
pub(crate) fn item_ranges<'a>(text: &str, items: impl Iterator<Item = SummaryItem<'a>>) -> Vec<Range<usize>> {
    let mut at = 0;
    let mut ranges = Vec::new();
    for item in items {
        let rest = text.get(at..).unwrap_or("");
        let end = at + item_length(rest, item);
        ranges.push(at..end);
        at = end.saturating_add(2).min(text.len());
    }
    ranges
}

/// The length of an item in the text: its title, if any, and its content.
fn item_length(rest: &str, item: SummaryItem<'_>) -> usize {
    let found = SummaryItem::parse(rest);
    let before = rest.len() - found.content.len();
    let known = match item.title {
        None if rest.starts_with(item.content) => Some(item.content.len()),
        Some(title) if found.title == Some(title) && item.content.is_empty() => {
            // The second pair of asterisks ends it.
            rest.match_indices("**").nth(1).map(|(at, stars)| at + stars.len())
        }
        Some(title) if found.title == Some(title) && found.content.starts_with(item.content) => {
            Some(before + item.content.len())
        }
        Some(_) | None => None,
    };
    // Written by another program: the item ends where its content ends.
    known.unwrap_or_else(|| match rest.find(item.content) {
        Some(at) if !item.content.is_empty() => at + item.content.len(),
        _ => rest.find("\n\n").unwrap_or(rest.len()),
    })
}

/// The native item of a block with this text.
fn read_native(raw: Raw<'_>, text: Option<&str>) -> Option<Native> {
    let native = member(raw, "native").filter(|native| native.kind() == JsonKind::Object)?;
    let named = member(raw, "nativeText").and_then(JsonText::of).map(JsonText::to_owned_text);
    Some(match named {
        Some(name) if name.is_empty() => Native { json: canonical(native.get()).into_owned(), text_member: None },
        Some(name) => without_text(native, text.unwrap_or(""), &|key| key == name),
        None => native_of(native, text),
    })
}

/// Builds a native item. If it contains the block's own text, that member is
/// removed.
pub(crate) fn native_of(native: Raw<'_>, text: Option<&str>) -> Native {
    match text {
        Some(text) => without_text(native, text, &|key| matches!(key, "text" | "summary" | "thinking")),
        None => Native { json: canonical(native.get()).into_owned(), text_member: None },
    }
}

fn without_text(native: Raw<'_>, text: &str, may_hold: &dyn Fn(&str) -> bool) -> Native {
    let whole = canonical(native.get());
    let mut holder = None;
    each_member(native, |key, value| {
        let is_text = || JsonText::of(value).is_some_and(|value| value.to_owned_text() == text);
        if holder.is_none() && may_hold(key) && is_text() {
            holder = Some(key.to_owned());
        }
    });
    let Some(holder) = holder else { return Native { json: whole.into_owned(), text_member: None } };
    // We write this member last, so that everything before it keeps its bytes.
    let last = format!("{}:{}}}", quote(&holder), quote(text));
    let json = match whole.strip_suffix(&last) {
        Some(before) => format!("{}}}", before.strip_suffix(',').unwrap_or(before)),
        None => {
            let mut out = crate::json_text::ObjectWriter::default();
            let mut taken = false;
            each_member(native, |key, value| {
                if taken || key != holder {
                    out.push(key, value.get());
                } else {
                    taken = true;
                }
            });
            out.finish()
        }
    };
    Native { json, text_member: Some(holder) }
}

fn read_origin(raw: Raw<'_>) -> Origin {
    Origin {
        provider: text_member(raw, "provider"),
        dialect: text_member(raw, "dialect"),
        model: text_member(raw, "model"),
        endpoint: text_member(raw, "endpoint"),
        account: text_member(raw, "account"),
    }
}

/// `finish` is one of a few words; `ending` adds detail where they are not
/// enough.
pub(crate) fn read_ending(finish: Option<&str>, ending: Option<String>) -> Option<Ending> {
    Some(match (finish, ending.as_deref()) {
        (None, None) => return None,
        (None, Some("cut_off")) => Ending::CutOff,
        (None, Some(_)) => Ending::Unsaid,
        (Some("other"), _) => Ending::Unrecognized(ending.unwrap_or_else(|| "other".to_owned())),
        (Some("stop"), _) => Ending::Stop,
        (Some("length"), _) => Ending::Length,
        (Some("tool_calls"), _) => Ending::ToolCalls,
        (Some("content_filter"), _) => Ending::ContentFilter,
        (Some("refusal"), _) => Ending::Refusal,
        (Some("pause"), _) => Ending::Pause,
        (Some("error"), _) => Ending::Error,
        (Some(word), _) => Ending::Unrecognized(word.to_owned()),
    })
}

fn read_usage(raw: Raw<'_>) -> Usage {
    let count = |name: &str| member(raw, name).and_then(count_of);
    Usage {
        input: count("input"),
        output: count("output"),
        reasoning: count("reasoning"),
        cached: count("cached"),
        cache_write: count("cacheWrite"),
    }
}
