//! The stored form of a block, and its conversion from and to [`Block`].
//!
//! Core's types may change; these may not. A new form gets a new [`FORMAT`],
//! and the old one stays readable.

use std::borrow::Cow;
use std::ops::Range;

use aside_core::block::{
    Arguments, Block, CallId, Media, MediaKind, MediaSource, Native, Seal, SealKind, Seals, Text, Thinking,
    ThinkingContent, ThinkingSpan, Time, ToolCall, ToolResult, Unmodelled,
};
use aside_core::extra::Extra;
use aside_core::json_text::find_escaped;
use aside_core::json_value::JsonValue;
use serde::{Deserialize, Serialize};

use crate::compression::StoredText;
use crate::search::HitKind;

/// The format of most blocks.
pub(crate) const FORMAT: i64 = 1;
/// The same, with a text in pieces ([`crate::compression`]).
pub(crate) const FORMAT_IN_PIECES: i64 = 2;

/// A shorter repeated text is not worth removing from a native item.
const MIN_CUT_BYTES: usize = 48;

/// A block as a row: its readable text, and everything else as metadata.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredBlock<'a> {
    pub(crate) kind: StoredKind,
    pub(crate) text: Cow<'a, str>,
    pub(crate) metadata: BlockMetadata<'a>,
}

/// The kind of block. The numbers are stored and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredKind {
    Text = 1,
    ThinkingOpen = 2,
    ThinkingSealed = 3,
    ThinkingHidden = 4,
    ToolCall = 5,
    BrokenToolCall = 6,
    ToolResult = 7,
    Image = 8,
    Unmodelled = 9,
    /// Media that is not an image in Base64. The block is kept as its JSON.
    Media = 10,
}

impl StoredKind {
    pub(crate) fn of_number(number: i64) -> Option<StoredKind> {
        Some(match number {
            1 => StoredKind::Text,
            2 => StoredKind::ThinkingOpen,
            3 => StoredKind::ThinkingSealed,
            4 => StoredKind::ThinkingHidden,
            5 => StoredKind::ToolCall,
            6 => StoredKind::BrokenToolCall,
            7 => StoredKind::ToolResult,
            8 => StoredKind::Image,
            9 => StoredKind::Unmodelled,
            10 => StoredKind::Media,
            _ => return None,
        })
    }
}

/// Everything stored next to the text, in the column `facts`. The names are short
/// because every block has one of these.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct BlockMetadata<'a> {
    #[serde(rename = "s", skip_serializing_if = "Option::is_none", borrow)]
    source: Option<Cow<'a, str>>,
    #[serde(rename = "i", skip_serializing_if = "Option::is_none", borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(rename = "n", skip_serializing_if = "Option::is_none", borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(rename = "own", skip_serializing_if = "is_false")]
    invented_id: bool,
    #[serde(rename = "bad", skip_serializing_if = "is_false")]
    is_error: bool,
    #[serde(rename = "it", skip_serializing_if = "Vec::is_empty")]
    items: Vec<(usize, usize)>,
    #[serde(rename = "t", skip_serializing_if = "Option::is_none")]
    span: Option<(u64, u64)>,
    /// The seals of a thinking block, or the one seal of a text or call, in the
    /// member of its kind.
    #[serde(rename = "sig", skip_serializing_if = "Option::is_none", borrow)]
    signature: Option<StoredSeal<'a>>,
    #[serde(rename = "enc", skip_serializing_if = "Option::is_none", borrow)]
    encrypted: Option<StoredSeal<'a>>,
    #[serde(rename = "data", skip_serializing_if = "Option::is_none", borrow)]
    data: Option<Cow<'a, str>>,
    /// The members without a neutral form, as one JSON object.
    #[serde(rename = "ex", skip_serializing_if = "Option::is_none", borrow)]
    extra: Option<Cow<'a, str>>,
    /// The images and documents of a tool result, each as the JSON of a block.
    #[serde(rename = "med", skip_serializing_if = "Vec::is_empty")]
    media: Vec<String>,
    #[serde(rename = "nat", skip_serializing_if = "Option::is_none", borrow)]
    native: Option<StoredNative<'a>>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A seal. Its kind follows from the member that holds it, unless
/// `has_other_kind` is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredSeal<'a> {
    #[serde(rename = "p", borrow)]
    payload: Cow<'a, str>,
    #[serde(rename = "x", default, skip_serializing_if = "is_false")]
    has_other_kind: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredNative<'a> {
    #[serde(rename = "j", borrow)]
    json: Cow<'a, str>,
    #[serde(rename = "m", skip_serializing_if = "Option::is_none", borrow, default)]
    text_member: Option<Cow<'a, str>>,
    /// Values that the block holds already and that were removed, last cut first.
    #[serde(rename = "c", skip_serializing_if = "Vec::is_empty", default)]
    cuts: Vec<NativeCut>,
}

/// A position in a native item, and the value removed there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct NativeCut {
    #[serde(rename = "a")]
    at: usize,
    #[serde(rename = "w")]
    what: RepeatedValue,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum RepeatedValue {
    #[serde(rename = "s")]
    Signature,
    #[serde(rename = "e")]
    Encrypted,
    #[serde(rename = "t")]
    Text(usize, usize),
}

/// A row that lacks a value that its kind of block needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a stored block cannot be read: {0}")]
pub(crate) struct Unreadable(pub(crate) String);

impl<'a> StoredBlock<'a> {
    pub(crate) fn of(block: &'a Block) -> StoredBlock<'a> {
        match block {
            Block::Text(text) => {
                let (signature, encrypted) = place(text.seal.as_ref());
                StoredBlock {
                    kind: StoredKind::Text,
                    text: Cow::Borrowed(&text.text),
                    metadata: BlockMetadata {
                        signature,
                        encrypted,
                        extra: stored_extra(&text.extra),
                        ..BlockMetadata::default()
                    }
                    .with_native(text.native.as_ref(), &text.text, &[]),
                }
            }
            Block::Thinking(thinking) => StoredBlock::of_thinking(thinking),
            Block::ToolCall(call) => StoredBlock::of_call(call),
            Block::ToolResult(result) => StoredBlock {
                kind: StoredKind::ToolResult,
                text: Cow::Borrowed(&result.content),
                metadata: BlockMetadata {
                    id: some(&result.id),
                    name: some(&result.name),
                    is_error: result.is_error,
                    media: result.media.iter().map(media_json).collect(),
                    ..BlockMetadata::default()
                },
            },
            Block::Media(media) => StoredBlock::of_media(media),
            Block::Unmodelled(unmodelled) => StoredBlock {
                kind: StoredKind::Unmodelled,
                text: Cow::Borrowed(""),
                metadata: BlockMetadata::default().with_native(Some(&unmodelled.native), "", &[]),
            },
        }
    }

    fn of_call(call: &'a ToolCall) -> StoredBlock<'a> {
        let (signature, encrypted) = place(call.seal.as_ref());
        let (kind, text) = match &call.arguments {
            Arguments::Json(text) => (StoredKind::ToolCall, text),
            Arguments::Broken(text) => (StoredKind::BrokenToolCall, text),
        };
        let (id, invented_id) = match &call.id {
            CallId::Given(id) => (id, false),
            CallId::Invented(id) => (id, true),
        };
        let metadata = BlockMetadata {
            id: some(id),
            name: some(&call.name),
            signature,
            encrypted,
            invented_id,
            extra: stored_extra(&call.extra),
            ..BlockMetadata::default()
        };
        let metadata = metadata.with_native(call.native.as_ref(), text, &[]);
        StoredBlock { kind, text: Cow::Borrowed(text), metadata }
    }

    /// It is not text, so it is not searchable.
    fn of_media(media: &'a Media) -> StoredBlock<'a> {
        let (kind, metadata) = match (media.kind, &media.source, &media.name) {
            (MediaKind::Image, MediaSource::Data(data), None) => {
                let (name, data) = (some(&media.media_type), some(data));
                (StoredKind::Image, BlockMetadata { name, data, ..BlockMetadata::default() })
            }
            _ => {
                let data = Some(Cow::Owned(media_json(media)));
                (StoredKind::Media, BlockMetadata { data, ..BlockMetadata::default() })
            }
        };
        StoredBlock { kind, text: Cow::Borrowed(""), metadata }
    }

    fn of_thinking(thinking: &'a Thinking) -> StoredBlock<'a> {
        let (kind, seals) = match &thinking.content {
            ThinkingContent::Open { .. } => (StoredKind::ThinkingOpen, None),
            ThinkingContent::Sealed { seals, .. } => (StoredKind::ThinkingSealed, Some(seals)),
            ThinkingContent::Hidden { seals } => (StoredKind::ThinkingHidden, Some(seals)),
        };
        let seal = |seal: Option<&'a Seal>, usual: SealKind| {
            seal.map(|seal| StoredSeal {
                payload: Cow::Borrowed(seal.payload.as_str()),
                has_other_kind: seal.kind != usual,
            })
        };
        let metadata = BlockMetadata {
            source: some(&thinking.source),
            id: thinking.id.as_deref().map(Cow::Borrowed),
            items: thinking.items.iter().map(|item| (item.start, item.end)).collect(),
            span: thinking.span.map(|span| (span.started.0, span.ended.0)),
            signature: seal(seals.and_then(|seals| seals.signature.as_ref()), SealKind::Signature),
            encrypted: seal(seals.and_then(|seals| seals.encrypted.as_ref()), SealKind::Encrypted),
            extra: stored_extra(&thinking.extra),
            ..BlockMetadata::default()
        };
        StoredBlock {
            kind,
            text: Cow::Borrowed(thinking.text()),
            metadata: metadata.with_native(thinking.native.as_ref(), thinking.text(), &thinking.items),
        }
    }

    pub(crate) fn into_block(self) -> Result<Block, Unreadable> {
        let StoredBlock { kind, text, metadata } = self;
        let native = metadata.native(&text)?;
        let extra = metadata.extra()?;
        let text = text.into_owned();
        Ok(match kind {
            StoredKind::Text => {
                Block::Text(Text { text, seal: single(metadata.signature, metadata.encrypted), native, extra })
            }
            StoredKind::ThinkingOpen => thinking(ThinkingContent::Open { text }, metadata, native, extra)?,
            StoredKind::ThinkingSealed => {
                thinking(ThinkingContent::Sealed { text, seals: metadata.seals() }, metadata, native, extra)?
            }
            StoredKind::ThinkingHidden => {
                thinking(ThinkingContent::Hidden { seals: metadata.seals() }, metadata, native, extra)?
            }
            StoredKind::ToolCall => call(Arguments::Json(text), metadata, native, extra)?,
            StoredKind::BrokenToolCall => call(Arguments::Broken(text), metadata, native, extra)?,
            StoredKind::ToolResult => Block::ToolResult(ToolResult {
                id: needed(metadata.id, "id")?,
                name: needed(metadata.name, "name")?,
                content: text,
                media: metadata.media.iter().map(|json| read_media(json)).collect::<Result<_, _>>()?,
                is_error: metadata.is_error,
            }),
            StoredKind::Image => {
                Block::Media(Media::image(needed(metadata.name, "type")?, needed(metadata.data, "data")?))
            }
            StoredKind::Media => Block::Media(read_media(&needed(metadata.data, "data")?)?),
            StoredKind::Unmodelled => {
                let native = native.ok_or_else(|| Unreadable("an unmodelled block has no item".to_owned()))?;
                Block::Unmodelled(Unmodelled { native })
            }
        })
    }
}

fn needed(value: Option<Cow<'_, str>>, what: &str) -> Result<String, Unreadable> {
    value.map(Cow::into_owned).ok_or_else(|| Unreadable(format!("it has no {what}")))
}

fn thinking(
    content: ThinkingContent,
    metadata: BlockMetadata<'_>,
    native: Option<Native>,
    extra: Extra,
) -> Result<Block, Unreadable> {
    Ok(Block::Thinking(Thinking {
        content,
        source: needed(metadata.source, "source")?,
        id: metadata.id.map(Cow::into_owned),
        items: metadata.items.into_iter().map(|(start, end)| start..end).collect(),
        span: metadata.span.map(|(started, ended)| ThinkingSpan { started: Time(started), ended: Time(ended) }),
        native,
        extra,
    }))
}

fn call(
    arguments: Arguments,
    metadata: BlockMetadata<'_>,
    native: Option<Native>,
    extra: Extra,
) -> Result<Block, Unreadable> {
    let id = needed(metadata.id, "id")?;
    Ok(Block::ToolCall(ToolCall {
        id: if metadata.invented_id { CallId::Invented(id) } else { CallId::Given(id) },
        name: needed(metadata.name, "name")?,
        arguments,
        seal: single(metadata.signature, metadata.encrypted),
        native,
        extra,
    }))
}

fn media_json(media: &Media) -> String {
    aside_core::json::block(&Block::Media(media.clone()))
}

fn read_media(json: &str) -> Result<Media, Unreadable> {
    match Block::from_json(json) {
        Ok(Block::Media(media)) => Ok(media),
        Ok(_) => Err(Unreadable("a stored image or document is another block".to_owned())),
        Err(error) => Err(Unreadable(error)),
    }
}

fn stored_extra(extra: &Extra) -> Option<Cow<'static, str>> {
    (!extra.is_empty()).then(|| Cow::Owned(extra.to_json()))
}

impl<'a> BlockMetadata<'a> {
    fn extra(&self) -> Result<Extra, Unreadable> {
        let json = self.extra.as_deref().unwrap_or("{}");
        Extra::from_json(json).map_err(|error| Unreadable(error.to_string()))
    }

    fn seals(&self) -> Seals {
        let seal = |seal: &Option<StoredSeal<'_>>, usual| seal.clone().map(|seal| seal.into_seal(usual));
        Seals {
            signature: seal(&self.signature, SealKind::Signature),
            encrypted: seal(&self.encrypted, SealKind::Encrypted),
        }
    }

    pub(crate) fn to_stored_text(&self) -> StoredText<'static> {
        // Serializing plain data into memory cannot fail.
        StoredText::owned(serde_json::to_string(self).unwrap_or_default())
    }

    /// The name of the tool, for search.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn with_native(mut self, native: Option<&'a Native>, text: &str, items: &[Range<usize>]) -> BlockMetadata<'a> {
        self.native = native.map(|native| {
            let cut = self.cut(native, text, items);
            cut.unwrap_or(StoredNative {
                json: Cow::Borrowed(&native.json),
                text_member: native.text_member.as_deref().map(Cow::Borrowed),
                cuts: Vec::new(),
            })
        });
        self
    }

    /// Removes values from a native item that the block holds already: providers
    /// repeat the text and seals inside their item. None if nothing is repeated.
    fn cut(&self, native: &'a Native, text: &str, items: &[Range<usize>]) -> Option<StoredNative<'a>> {
        let mut wanted = vec![RepeatedValue::Encrypted, RepeatedValue::Signature, RepeatedValue::Text(0, text.len())];
        wanted.extend(items.iter().map(|item| RepeatedValue::Text(item.start, item.end)));
        // Most items repeat nothing; do not copy a long one to find that out.
        let mut json = Cow::Borrowed(native.json.as_str());
        let mut cuts = Vec::new();
        for what in wanted {
            let Some(value) = self.value(what, text) else { continue };
            if let Some(found) = find_escaped(&json, value).filter(|found| found.len() >= MIN_CUT_BYTES) {
                // The copy is short when the removed value is long.
                let (before, after) = (json.get(..found.start).unwrap_or(""), json.get(found.end..).unwrap_or(""));
                let at = found.start;
                json = Cow::Owned([before, after].concat());
                cuts.push(NativeCut { at, what });
            }
        }
        if cuts.is_empty() {
            return None;
        }
        // Values are put back in the opposite order, so that positions match.
        cuts.reverse();
        let text_member = native.text_member.as_deref().map(Cow::Borrowed);
        Some(StoredNative { json, text_member, cuts })
    }

    /// A value that the native item may repeat.
    fn value<'s>(&'s self, what: RepeatedValue, text: &'s str) -> Option<&'s str> {
        match what {
            RepeatedValue::Signature => Some(self.signature.as_ref()?.payload.as_ref()),
            RepeatedValue::Encrypted => Some(self.encrypted.as_ref()?.payload.as_ref()),
            RepeatedValue::Text(start, end) => text.get(start..end),
        }
    }

    /// A repeated value, escaped as inside a JSON string.
    fn repeated(&self, what: RepeatedValue, text: &str) -> Option<String> {
        let mut quoted = serde_json::to_string(self.value(what, text)?).ok()?;
        // Removes the quotes in place: the value may be long.
        quoted.pop();
        quoted.drain(..1);
        Some(quoted)
    }

    fn native(&self, text: &str) -> Result<Option<Native>, Unreadable> {
        let Some(native) = &self.native else { return Ok(None) };
        let mut json = native.json.to_string();
        for cut in &native.cuts {
            let value = self.repeated(cut.what, text).filter(|_| json.is_char_boundary(cut.at));
            let value = value.ok_or_else(|| Unreadable("a native item does not fit its block".to_owned()))?;
            json.insert_str(cut.at, &value);
        }
        Ok(Some(Native { json, text_member: native.text_member.as_deref().map(str::to_owned) }))
    }
}

pub(crate) fn read_metadata(json: &str) -> Result<BlockMetadata<'_>, Unreadable> {
    serde_json::from_str(json).map_err(|error| Unreadable(error.to_string()))
}

impl StoredSeal<'_> {
    fn into_seal(self, usual: SealKind) -> Seal {
        let other = match usual {
            SealKind::Signature => SealKind::Encrypted,
            SealKind::Encrypted => SealKind::Signature,
        };
        Seal { kind: if self.has_other_kind { other } else { usual }, payload: self.payload.into_owned() }
    }
}

fn some(text: &str) -> Option<Cow<'_, str>> {
    Some(Cow::Borrowed(text))
}

/// The one seal of a text or call, in the member of its kind.
fn place(seal: Option<&Seal>) -> (Option<StoredSeal<'_>>, Option<StoredSeal<'_>>) {
    let Some(Seal { kind, payload }) = seal else { return (None, None) };
    let stored = Some(StoredSeal { payload: Cow::Borrowed(payload), has_other_kind: false });
    match kind {
        SealKind::Signature => (stored, None),
        SealKind::Encrypted => (None, stored),
    }
}

fn single(signature: Option<StoredSeal<'_>>, encrypted: Option<StoredSeal<'_>>) -> Option<Seal> {
    signature
        .map(|seal| seal.into_seal(SealKind::Signature))
        .or_else(|| encrypted.map(|seal| seal.into_seal(SealKind::Encrypted)))
}

/// How search classifies a block; none if it has no searchable text.
pub(crate) fn hit_kind(kind: StoredKind, by_assistant: bool) -> Option<HitKind> {
    match kind {
        StoredKind::Text if by_assistant => Some(HitKind::Answer),
        StoredKind::Text => Some(HitKind::Prompt),
        StoredKind::ThinkingOpen | StoredKind::ThinkingSealed | StoredKind::ThinkingHidden => Some(HitKind::Thinking),
        StoredKind::ToolCall | StoredKind::BrokenToolCall | StoredKind::ToolResult => Some(HitKind::Tool),
        StoredKind::Image | StoredKind::Media | StoredKind::Unmodelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thinking_block(text: &str, encrypted: &str, native: &str) -> Block {
        let seal = Seal { kind: SealKind::Encrypted, payload: encrypted.to_owned() };
        Block::Thinking(Thinking {
            id: Some("rs_1".to_owned()),
            items: std::iter::once(0..text.len()).collect(),
            native: Some(Native { json: native.to_owned(), text_member: None }),
            ..Thinking::new(
                ThinkingContent::Sealed {
                    text: text.to_owned(),
                    seals: Seals { signature: None, encrypted: Some(seal) },
                },
                "summary",
            )
        })
    }

    #[test]
    fn p6_a_value_that_a_native_item_repeats_is_stored_once() {
        let text = "**Plan**\n\nLook at the \"parser\" first, then at the lexer, then rest.";
        let encrypted = "gAAAA".repeat(400);
        let quoted = serde_json::to_string(text).unwrap();
        let native = format!(
            r#"{{"type":"reasoning","summary":[{{"type":"summary_text","text":{quoted}}}],"encrypted_content":"{encrypted}"}}"#
        );
        let block = thinking_block(text, &encrypted, &native);
        let stored = StoredBlock::of(&block);
        let kept = stored.metadata.native.as_ref().unwrap();
        assert_eq!(
            kept.json,
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":""}],"encrypted_content":""}"#
        );
        let json = serde_json::to_string(&stored.metadata).unwrap();
        assert_eq!(json.matches("gAAAAgAAAA").count(), 200, "the seal is there once");
        assert_eq!(stored.clone().into_block().unwrap(), block);
    }

    #[test]
    fn large_metadata_is_compressed_and_small_metadata_stays_readable() {
        let block = thinking_block("short", &"A1b2".repeat(1000), "{}");
        let stored = StoredBlock::of(&block);
        let StoredText::Compressed(bytes) = stored.metadata.to_stored_text() else {
            panic!("a seal of 4 kB is compressed")
        };
        assert!(bytes.len() < 400, "{}", bytes.len());
        let json = StoredText::decompress(&bytes).unwrap();
        assert_eq!(read_metadata(&json).unwrap(), stored.metadata);

        let small = StoredBlock { metadata: BlockMetadata::default(), ..stored };
        assert_eq!(small.metadata.to_stored_text(), StoredText::Plain(Cow::Borrowed("{}")));
    }

    #[test]
    fn damaged_rows_are_reported_and_never_panic() {
        let cases: &[(&str, StoredKind, &str)] = &[
            ("no source", StoredKind::ThinkingOpen, "{}"),
            ("no item", StoredKind::Unmodelled, "{}"),
            ("cut beyond the end", StoredKind::Unmodelled, r#"{"nat":{"j":"{}","c":[{"a":9,"w":{"t":[0,0]}}]}}"#),
            ("cut of nothing", StoredKind::Unmodelled, r#"{"nat":{"j":"{}","c":[{"a":1,"w":"s"}]}}"#),
        ];
        for (name, kind, json) in cases {
            let stored = StoredBlock { kind: *kind, text: Cow::Borrowed(""), metadata: read_metadata(json).unwrap() };
            assert!(stored.into_block().is_err(), "{name}");
        }
        assert!(read_metadata("[1]").is_err());
    }
}
