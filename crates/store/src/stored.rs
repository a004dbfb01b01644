//! The stored form of a block, and the way between it and [`Block`].
//!
//! Core's types may change their names and shapes; these may not. A new form
//! gets a new [`FORM`], and the old one stays readable.

use std::borrow::Cow;
use std::ops::Range;

use aside_core::block::{
    Arguments, Block, CallId, Content, Image, Native, Seal, SealKind, Seals, Span, Text, Thinking, Time, ToolCall,
    ToolResult, Unmodelled,
};
use serde::{Deserialize, Serialize};

use crate::search::Kind;

/// The form written today.
pub(crate) const FORM: i64 = 1;

/// What is larger than this is compressed where that pays.
const LARGE: usize = 1024;
/// What is longer than this is written into the file piece by piece.
pub(crate) const LONG: usize = 1 << 20;
/// A repeated text shorter than this is not worth taking out of a native item.
const WORTH_CUTTING: usize = 48;
/// One packed byte stands for at most this many.
const BEST_RATIO: usize = 256;

/// A block as a row: what a person can read, and everything else about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredBlock<'a> {
    pub(crate) shape: Shape,
    pub(crate) text: Cow<'a, str>,
    pub(crate) facts: Facts<'a>,
}

/// Which block it is. The numbers are stored and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Text = 1,
    ThinkingOpen = 2,
    ThinkingSealed = 3,
    ThinkingHidden = 4,
    ToolCall = 5,
    BrokenToolCall = 6,
    ToolResult = 7,
    Image = 8,
    Unmodelled = 9,
}

impl Shape {
    pub(crate) fn of_number(number: i64) -> Option<Shape> {
        Some(match number {
            1 => Shape::Text,
            2 => Shape::ThinkingOpen,
            3 => Shape::ThinkingSealed,
            4 => Shape::ThinkingHidden,
            5 => Shape::ToolCall,
            6 => Shape::BrokenToolCall,
            7 => Shape::ToolResult,
            8 => Shape::Image,
            9 => Shape::Unmodelled,
            _ => return None,
        })
    }
}

/// What is stored beside the text. Short names: there is one of these a block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Facts<'a> {
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
    /// The seals of a thought, or the one of a text or call, which says its kind.
    #[serde(rename = "sig", skip_serializing_if = "Option::is_none", borrow)]
    signature: Option<StoredSeal<'a>>,
    #[serde(rename = "enc", skip_serializing_if = "Option::is_none", borrow)]
    encrypted: Option<StoredSeal<'a>>,
    #[serde(rename = "data", skip_serializing_if = "Option::is_none", borrow)]
    data: Option<Cow<'a, str>>,
    #[serde(rename = "nat", skip_serializing_if = "Option::is_none", borrow)]
    native: Option<StoredNative<'a>>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A seal. Its kind is said only where its place does not say it already.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredSeal<'a> {
    #[serde(rename = "p", borrow)]
    payload: Cow<'a, str>,
    #[serde(rename = "x", default, skip_serializing_if = "is_false")]
    in_others_place: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredNative<'a> {
    #[serde(rename = "j", borrow)]
    json: Cow<'a, str>,
    #[serde(rename = "m", skip_serializing_if = "Option::is_none", borrow, default)]
    text_member: Option<Cow<'a, str>>,
    /// What the block holds already and was taken out, last one first.
    #[serde(rename = "c", skip_serializing_if = "Vec::is_empty", default)]
    cuts: Vec<Cut>,
}

/// A place in a native item, and what belongs there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Cut {
    #[serde(rename = "a")]
    at: usize,
    #[serde(rename = "w")]
    what: Repeated,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Repeated {
    #[serde(rename = "s")]
    Signature,
    #[serde(rename = "e")]
    Encrypted,
    #[serde(rename = "t")]
    Text(usize, usize),
}

/// A row that does not say what a block of its shape must say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a stored block cannot be read: {0}")]
pub(crate) struct Unreadable(pub(crate) String);

impl<'a> StoredBlock<'a> {
    pub(crate) fn of(block: &'a Block) -> StoredBlock<'a> {
        match block {
            Block::Text(text) => {
                let (signature, encrypted) = place(text.seal.as_ref());
                StoredBlock {
                    shape: Shape::Text,
                    text: Cow::Borrowed(&text.text),
                    facts: Facts { signature, encrypted, ..Facts::default() }.with_native(
                        text.native.as_ref(),
                        &text.text,
                        &[],
                    ),
                }
            }
            Block::Thinking(thinking) => StoredBlock::of_thinking(thinking),
            Block::ToolCall(call) => {
                let (signature, encrypted) = place(call.seal.as_ref());
                let (shape, text) = match &call.arguments {
                    Arguments::Json(text) => (Shape::ToolCall, text),
                    Arguments::Broken(text) => (Shape::BrokenToolCall, text),
                };
                let (id, invented_id) = match &call.id {
                    CallId::Given(id) => (id, false),
                    CallId::Invented(id) => (id, true),
                };
                let facts = Facts { id: some(id), name: some(&call.name), invented_id, ..Facts::default() };
                StoredBlock {
                    shape,
                    text: Cow::Borrowed(text),
                    facts: Facts { signature, encrypted, ..facts }.with_native(call.native.as_ref(), text, &[]),
                }
            }
            Block::ToolResult(result) => StoredBlock {
                shape: Shape::ToolResult,
                text: Cow::Borrowed(&result.content),
                facts: Facts {
                    id: some(&result.id),
                    name: some(&result.name),
                    is_error: result.is_error,
                    ..Facts::default()
                },
            },
            // Not text: nobody reads or searches it.
            Block::Image(image) => StoredBlock {
                shape: Shape::Image,
                text: Cow::Borrowed(""),
                facts: Facts { name: some(&image.media_type), data: some(&image.data), ..Facts::default() },
            },
            Block::Unmodelled(unmodelled) => StoredBlock {
                shape: Shape::Unmodelled,
                text: Cow::Borrowed(""),
                facts: Facts::default().with_native(Some(&unmodelled.native), "", &[]),
            },
        }
    }

    fn of_thinking(thinking: &'a Thinking) -> StoredBlock<'a> {
        let none = Seals { signature: None, encrypted: None };
        let (shape, seals) = match &thinking.content {
            Content::Open { .. } => (Shape::ThinkingOpen, &none),
            Content::Sealed { seals, .. } => (Shape::ThinkingSealed, seals),
            Content::Hidden { seals } => (Shape::ThinkingHidden, seals),
        };
        let seal = |seal: Option<&Seal>, usual: SealKind| {
            seal.map(|seal| StoredSeal {
                payload: Cow::Owned(seal.payload.clone()),
                in_others_place: seal.kind != usual,
            })
        };
        let facts = Facts {
            source: some(&thinking.source),
            id: thinking.id.as_deref().map(Cow::Borrowed),
            items: thinking.items.iter().map(|item| (item.start, item.end)).collect(),
            span: thinking.span.map(|span| (span.started.0, span.ended.0)),
            signature: seal(seals.signature.as_ref(), SealKind::Signature),
            encrypted: seal(seals.encrypted.as_ref(), SealKind::Encrypted),
            ..Facts::default()
        };
        StoredBlock {
            shape,
            text: Cow::Borrowed(thinking.text()),
            facts: facts.with_native(thinking.native.as_ref(), thinking.text(), &thinking.items),
        }
    }

    pub(crate) fn into_block(self) -> Result<Block, Unreadable> {
        let StoredBlock { shape, text, facts } = self;
        let native = facts.native(&text)?;
        let text = text.into_owned();
        Ok(match shape {
            Shape::Text => Block::Text(Text { text, seal: single(facts.signature, facts.encrypted), native }),
            Shape::ThinkingOpen => thinking(Content::Open { text }, facts, native)?,
            Shape::ThinkingSealed => thinking(Content::Sealed { text, seals: facts.seals() }, facts, native)?,
            Shape::ThinkingHidden => thinking(Content::Hidden { seals: facts.seals() }, facts, native)?,
            Shape::ToolCall => call(Arguments::Json(text), facts, native)?,
            Shape::BrokenToolCall => call(Arguments::Broken(text), facts, native)?,
            Shape::ToolResult => Block::ToolResult(ToolResult {
                id: needed(facts.id, "id")?,
                name: needed(facts.name, "name")?,
                content: text,
                is_error: facts.is_error,
            }),
            Shape::Image => {
                Block::Image(Image { media_type: needed(facts.name, "type")?, data: needed(facts.data, "data")? })
            }
            Shape::Unmodelled => {
                let native = native.ok_or_else(|| Unreadable("an unmodelled block has no item".to_owned()))?;
                Block::Unmodelled(Unmodelled { native })
            }
        })
    }
}

fn needed(value: Option<Cow<'_, str>>, what: &str) -> Result<String, Unreadable> {
    value.map(Cow::into_owned).ok_or_else(|| Unreadable(format!("it has no {what}")))
}

fn thinking(content: Content, facts: Facts<'_>, native: Option<Native>) -> Result<Block, Unreadable> {
    Ok(Block::Thinking(Thinking {
        content,
        source: needed(facts.source, "source")?,
        id: facts.id.map(Cow::into_owned),
        items: facts.items.into_iter().map(|(start, end)| start..end).collect(),
        span: facts.span.map(|(started, ended)| Span { started: Time(started), ended: Time(ended) }),
        native,
    }))
}

fn call(arguments: Arguments, facts: Facts<'_>, native: Option<Native>) -> Result<Block, Unreadable> {
    let id = needed(facts.id, "id")?;
    Ok(Block::ToolCall(ToolCall {
        id: if facts.invented_id { CallId::Invented(id) } else { CallId::Given(id) },
        name: needed(facts.name, "name")?,
        arguments,
        seal: single(facts.signature, facts.encrypted),
        native,
    }))
}

impl<'a> Facts<'a> {
    fn seals(&self) -> Seals {
        let seal = |seal: &Option<StoredSeal<'_>>, usual| seal.clone().map(|seal| seal.into_seal(usual));
        Seals {
            signature: seal(&self.signature, SealKind::Signature),
            encrypted: seal(&self.encrypted, SealKind::Encrypted),
        }
    }

    pub(crate) fn pack(&self) -> Packed<'static> {
        // Plain data into memory does not fail.
        Packed::of(Cow::Owned(serde_json::to_string(self).unwrap_or_default()))
    }

    /// The name of a tool, for whoever shows a hit in it.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn with_native(mut self, native: Option<&'a Native>, text: &str, items: &[Range<usize>]) -> Facts<'a> {
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

    /// Providers repeat a thought's text and seals inside their own item; here
    /// each is kept once. None where nothing is repeated.
    fn cut(&self, native: &'a Native, text: &str, items: &[Range<usize>]) -> Option<StoredNative<'a>> {
        let mut wanted = vec![Repeated::Encrypted, Repeated::Signature, Repeated::Text(0, text.len())];
        wanted.extend(items.iter().map(|item| Repeated::Text(item.start, item.end)));
        // Most items repeat nothing; a long one is not copied to find that out.
        let mut json = Cow::Borrowed(native.json.as_str());
        let mut cuts = Vec::new();
        for what in wanted {
            let Some(value) = self.repeated(what, text) else { continue };
            if value.len() < WORTH_CUTTING {
                continue;
            }
            if let Some(at) = json.find(&value) {
                // What is left is short where the value is long.
                let (before, after) = (json.get(..at).unwrap_or(""), json.get(at + value.len()..).unwrap_or(""));
                json = Cow::Owned([before, after].concat());
                cuts.push(Cut { at, what });
            }
        }
        if cuts.is_empty() {
            return None;
        }
        // Put back in the opposite order, so that the places still hold.
        cuts.reverse();
        let text_member = native.text_member.as_deref().map(Cow::Borrowed);
        Some(StoredNative { json, text_member, cuts })
    }

    /// A repeated value as it stands inside JSON.
    fn repeated(&self, what: Repeated, text: &str) -> Option<String> {
        let value = match what {
            Repeated::Signature => self.signature.as_ref()?.payload.as_ref(),
            Repeated::Encrypted => self.encrypted.as_ref()?.payload.as_ref(),
            Repeated::Text(start, end) => text.get(start..end)?,
        };
        let mut quoted = serde_json::to_string(value).ok()?;
        // Without its quotes, in place: it may be long.
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

/// A text or the facts in a row: as they are while they are small, packed
/// where that pays. Half a page lies idle behind every long row otherwise.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Packed<'a> {
    Text(Cow<'a, str>),
    Bytes(Vec<u8>),
}

impl<'a> Packed<'a> {
    pub(crate) fn of(text: Cow<'a, str>) -> Packed<'a> {
        if text.len() >= LARGE {
            let packed = lz4_flex::compress_prepend_size(text.as_bytes());
            // What is long is written piece by piece, which works with bytes only.
            if packed.len() < text.len() / 10 * 9 || packed.len() >= LONG {
                return Packed::Bytes(packed);
            }
        }
        Packed::Text(text)
    }

    pub(crate) fn unpack(bytes: &[u8]) -> Result<String, Unreadable> {
        // A damaged length must not be believed: nothing packs better than this.
        let most = bytes.len().saturating_mul(BEST_RATIO);
        let length = bytes.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize);
        if length > most {
            return Err(Unreadable("a packed value has a wrong length".to_owned()));
        }
        let unpacked = lz4_flex::decompress_size_prepended(bytes).map_err(|error| Unreadable(error.to_string()))?;
        String::from_utf8(unpacked).map_err(|error| Unreadable(error.to_string()))
    }
}

pub(crate) fn facts_of(json: &str) -> Result<Facts<'_>, Unreadable> {
    serde_json::from_str(json).map_err(|error| Unreadable(error.to_string()))
}

impl StoredSeal<'_> {
    fn into_seal(self, usual: SealKind) -> Seal {
        let other = match usual {
            SealKind::Signature => SealKind::Encrypted,
            SealKind::Encrypted => SealKind::Signature,
        };
        Seal { kind: if self.in_others_place { other } else { usual }, payload: self.payload.into_owned() }
    }
}

fn some(text: &str) -> Option<Cow<'_, str>> {
    Some(Cow::Borrowed(text))
}

/// The one seal of a text or call, in the place of its kind.
fn place(seal: Option<&Seal>) -> (Option<StoredSeal<'_>>, Option<StoredSeal<'_>>) {
    let Some(Seal { kind, payload }) = seal else { return (None, None) };
    let stored = Some(StoredSeal { payload: Cow::Borrowed(payload), in_others_place: false });
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

/// What search calls a block of this shape, said by this role; none where there
/// is nothing to look for.
pub(crate) fn kind_of(shape: Shape, by_assistant: bool) -> Option<Kind> {
    match shape {
        Shape::Text if by_assistant => Some(Kind::Answer),
        Shape::Text => Some(Kind::Prompt),
        Shape::ThinkingOpen | Shape::ThinkingSealed | Shape::ThinkingHidden => Some(Kind::Thinking),
        Shape::ToolCall | Shape::BrokenToolCall | Shape::ToolResult => Some(Kind::Tool),
        Shape::Image | Shape::Unmodelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thought(text: &str, encrypted: &str, native: &str) -> Block {
        let seal = Seal { kind: SealKind::Encrypted, payload: encrypted.to_owned() };
        Block::Thinking(Thinking {
            content: Content::Sealed { text: text.to_owned(), seals: Seals { signature: None, encrypted: Some(seal) } },
            source: "summary".to_owned(),
            id: Some("rs_1".to_owned()),
            items: std::iter::once(0..text.len()).collect(),
            span: None,
            native: Some(Native { json: native.to_owned(), text_member: None }),
        })
    }

    #[test]
    fn p6_what_a_native_item_repeats_is_stored_once() {
        let text = "**Plan**\n\nLook at the \"parser\" first, then at the lexer, then rest.";
        let encrypted = "gAAAA".repeat(400);
        let quoted = serde_json::to_string(text).unwrap();
        let native = format!(
            r#"{{"type":"reasoning","summary":[{{"type":"summary_text","text":{quoted}}}],"encrypted_content":"{encrypted}"}}"#
        );
        let block = thought(text, &encrypted, &native);
        let stored = StoredBlock::of(&block);
        let kept = stored.facts.native.as_ref().unwrap();
        assert_eq!(
            kept.json,
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":""}],"encrypted_content":""}"#
        );
        let json = serde_json::to_string(&stored.facts).unwrap();
        assert_eq!(json.matches("gAAAAgAAAA").count(), 200, "the seal is there once");
        assert_eq!(stored.clone().into_block().unwrap(), block);
    }

    #[test]
    fn large_facts_are_packed_and_small_ones_stay_readable() {
        let block = thought("short", &"A1b2".repeat(1000), "{}");
        let stored = StoredBlock::of(&block);
        let Packed::Bytes(bytes) = stored.facts.pack() else { panic!("4 kB of seal are packed") };
        assert!(bytes.len() < 400, "{}", bytes.len());
        let json = Packed::unpack(&bytes).unwrap();
        assert_eq!(facts_of(&json).unwrap(), stored.facts);

        let small = StoredBlock { facts: Facts::default(), ..stored };
        assert_eq!(small.facts.pack(), Packed::Text(Cow::Borrowed("{}")));
    }

    #[test]
    fn damaged_rows_are_told_and_never_panic() {
        let cases: &[(&str, Shape, &str)] = &[
            ("no source", Shape::ThinkingOpen, "{}"),
            ("no item", Shape::Unmodelled, "{}"),
            ("cut beyond the end", Shape::Unmodelled, r#"{"nat":{"j":"{}","c":[{"a":9,"w":{"t":[0,0]}}]}}"#),
            ("cut of nothing", Shape::Unmodelled, r#"{"nat":{"j":"{}","c":[{"a":1,"w":"s"}]}}"#),
        ];
        for (name, shape, json) in cases {
            let stored = StoredBlock { shape: *shape, text: Cow::Borrowed(""), facts: facts_of(json).unwrap() };
            assert!(stored.into_block().is_err(), "{name}");
        }
        assert!(Packed::unpack(b"not packed").is_err());
        assert!(Packed::unpack(b"").is_err());
        assert!(Packed::unpack(&[0xFF, 0xFF, 0xFF, 0xFF, 0]).is_err());
        assert!(facts_of("[1]").is_err());
    }
}
