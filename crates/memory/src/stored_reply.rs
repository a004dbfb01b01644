//! A stored reply, and its encrypted form in the store.

use std::io::Read as _;
use std::sync::Arc;

use aside_core::block::{Seals, Time};
use aside_core::json::write_message;
use aside_core::{Block, Dialects, Message, ThinkingContent};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use serde::{Deserialize, Serialize};

use crate::keys::{Key, KeyKind};
use crate::reply_id::ReplyId;
use crate::store::ReplyRow;
use crate::tenant::Tenant;

/// The version of the stored form.
const FORMAT: u8 = 1;
/// How the body is compressed. The numbers are stored and never change.
const CODEC_NONE: i16 = 0;
/// Written by older versions: it packs better, but takes longer than everything else that is done for a request.
const CODEC_ZSTD: i16 = 1;
const CODEC_LZ4: i16 = 2;
/// Below this size, compression takes more time than it saves space.
const MIN_PACKED_BYTES: usize = 1024;
/// A larger body is not one of ours.
const MAX_BODY_BYTES: usize = 512 << 20;
/// Milliseconds of a day.
pub(crate) const DAY: u64 = 24 * 60 * 60 * 1000;

/// A remembered reply.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StoredReply {
    /// Its id.
    pub id: ReplyId,
    /// The reply before it in its conversation. None if it was the first, or if
    /// that is not certain.
    pub parent: Option<ReplyId>,
    /// The first reply of its conversation.
    pub conversation: ReplyId,
    /// When it was stored.
    pub created: Time,
    /// When it is deleted unless it is used again.
    pub expires: Time,
    /// Everything that the provider sent, with its origin.
    pub message: Message,
    /// The ids that we minted for its calls, each with the provider's own.
    pub call_ids: Vec<(String, String)>,
    /// What was kept to return the whole response again.
    pub response: Option<String>,
    /// The provider refused its seals.
    pub is_rejected: bool,
    pub(crate) turn: Key,
    pub(crate) chain: Key,
    pub(crate) keys: Vec<(KeyKind, Key)>,
}

/// The JSON inside a body.
#[derive(Deserialize)]
struct Envelope {
    turn: String,
    chain: String,
    keys: Vec<(i64, String)>,
    #[serde(default)]
    call_ids: Vec<(String, String)>,
    #[serde(default)]
    response: Option<String>,
    #[serde(with = "aside_core::json_value")]
    message: Message,
}

/// The same without the message, to be written.
#[derive(Serialize)]
struct EnvelopeOut<'a> {
    v: u8,
    turn: String,
    chain: String,
    keys: Vec<(i64, String)>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    call_ids: &'a [(String, String)],
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a str>,
}

impl EnvelopeOut<'_> {
    /// The message is added as text: serde would check its JSON and copy it.
    fn to_json(&self, message: &Message) -> Vec<u8> {
        // Strings and lists of them: this cannot fail.
        let mut json = serde_json::to_string(self).unwrap_or_default();
        json.pop();
        json.push_str(",\"message\":");
        write_message(&mut json, message);
        json.push('}');
        json.into_bytes()
    }
}

impl StoredReply {
    /// Encrypts it for the store.
    pub(crate) fn to_row(&self, tenant: &Tenant) -> ReplyRow {
        let keys = self.keys.iter().map(|(kind, key)| (*kind as i64, encoded(*key))).collect();
        let envelope = EnvelopeOut {
            v: FORMAT,
            turn: encoded(self.turn),
            chain: encoded(self.chain),
            keys,
            call_ids: &self.call_ids,
            response: self.response.as_deref(),
        };
        let json = envelope.to_json(&self.message);
        let size = json.len();
        let packed = (size >= MIN_PACKED_BYTES).then(|| lz4_flex::block::compress(&json));
        let (codec, body) = match packed.filter(|packed| packed.len() < size) {
            Some(packed) => (CODEC_LZ4, packed),
            None => (CODEC_NONE, json),
        };
        let origin = self.message.origin.clone().unwrap_or_default();
        ReplyRow {
            tenant: tenant.id(),
            reply: self.id,
            conversation: self.conversation,
            parent: self.parent,
            issuer: issuer(&origin),
            dialect: origin.dialect.unwrap_or_default(),
            model: origin.model.unwrap_or_default(),
            is_interrupted: self.message.interrupted,
            created: self.created,
            expires: self.expires,
            codec,
            size,
            body: tenant.seal(&self.id.0, body),
            is_rejected: self.is_rejected,
        }
    }

    /// Decrypts a row. None if it was encrypted with a key that is gone, or is damaged.
    pub(crate) fn of_row(row: ReplyRow, tenant: &Tenant) -> Option<StoredReply> {
        let body = tenant.open(&row.reply.0, row.body)?;
        let json = match row.codec {
            CODEC_NONE => body,
            CODEC_ZSTD => unpacked(&body, row.size)?,
            CODEC_LZ4 if row.size <= MAX_BODY_BYTES => lz4_flex::block::decompress(&body, row.size).ok()?,
            _ => return None,
        };
        let envelope: Envelope = serde_json::from_slice(&json).ok()?;
        let key = |(kind, key): (i64, String)| Some((KeyKind::of_number(kind)?, decoded(&key)?));
        Some(StoredReply {
            id: row.reply,
            parent: row.parent,
            conversation: row.conversation,
            created: row.created,
            expires: row.expires,
            message: envelope.message,
            call_ids: envelope.call_ids,
            response: envelope.response,
            is_rejected: row.is_rejected,
            turn: decoded(&envelope.turn)?,
            chain: decoded(&envelope.chain)?,
            keys: envelope.keys.into_iter().filter_map(key).collect(),
        })
    }

    /// Two replies with equal visible content are interchangeable only if this is
    /// equal too.
    pub(crate) fn thinking_digest(&self) -> Vec<u8> {
        let mut context = digest::Context::new(&digest::SHA256);
        let mut piece = |kind: &str, text: &str| {
            context.update(kind.as_bytes());
            context.update(&(text.len() as u64).to_le_bytes());
            context.update(text.as_bytes());
        };
        let mut at_call = 0;
        for block in &self.message.blocks {
            match block {
                Block::Thinking(thinking) => {
                    piece("thinking before call", &at_call.to_string());
                    piece("text", thinking.text());
                    for seal in thinking.seals().into_iter().flat_map(seals_of) {
                        piece("seal", seal);
                    }
                    piece("id", thinking.id.as_deref().unwrap_or(""));
                }
                Block::Text(text) => text.seal.iter().for_each(|seal| piece("seal of text", &seal.payload)),
                Block::ToolCall(call) => {
                    at_call += 1;
                    call.seal.iter().for_each(|seal| piece("seal of call", &seal.payload));
                }
                Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
            }
        }
        context.finish().as_ref().to_vec()
    }

    /// Whether it has thinking, even if only a seal.
    pub(crate) fn has_thinking(&self) -> bool {
        has_thinking(&self.message)
    }

    /// Whether it has opaque data of its issuer.
    pub(crate) fn has_seals(&self) -> bool {
        self.message.blocks.iter().any(|block| match block {
            Block::Thinking(thinking) => thinking.seals().is_some(),
            Block::Text(text) => text.seal.is_some(),
            Block::ToolCall(call) => call.seal.is_some(),
            Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => false,
        })
    }

    /// The memory that it takes, roughly.
    pub(crate) fn weight(&self) -> usize {
        let block = |block: &Block| match block {
            Block::Text(text) => text.text.len(),
            Block::Thinking(thinking) => {
                let seals = thinking.seals().into_iter().flat_map(seals_of).map(str::len).sum::<usize>();
                thinking.text().len() + seals + thinking.native.as_ref().map_or(0, |native| native.json.len())
            }
            Block::ToolCall(call) => {
                let arguments = match &call.arguments {
                    aside_core::Arguments::Json(text) | aside_core::Arguments::Broken(text) => text.len(),
                };
                arguments + call.seal.as_ref().map_or(0, |seal| seal.payload.len())
            }
            Block::Media(media) => media.data().map_or(0, str::len),
            Block::Unmodelled(item) => item.native.json.len(),
            Block::ToolResult(result) => result.content.len(),
        };
        let response = self.response.as_ref().map_or(0, String::len);
        512 + response + self.message.blocks.iter().map(|each| 256 + block(each)).sum::<usize>()
    }
}

/// Whether a message has thinking, even if only a seal.
pub(crate) fn has_thinking(message: &Message) -> bool {
    message.blocks.iter().any(|block| match block {
        Block::Thinking(_) => true,
        Block::Text(text) => text.seal.is_some(),
        Block::ToolCall(call) => call.seal.is_some(),
        Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => false,
    })
}

/// The opaque payloads of a thinking block.
pub(crate) fn seals_of(seals: &Seals) -> impl Iterator<Item = &str> {
    seals.signature.iter().chain(&seals.encrypted).map(|seal| seal.payload.as_str())
}

/// A reply without the placeholders of other programs. Models repeat them.
pub(crate) fn without_sentinels(mut message: Message, dialects: &Dialects) -> Message {
    let is_sentinel = |block: &Block| {
        let Block::Thinking(thinking) = block else { return false };
        match &thinking.content {
            ThinkingContent::Open { text } => dialects.is_sentinel_text(text),
            ThinkingContent::Sealed { seals, .. } | ThinkingContent::Hidden { seals } => {
                seals_of(seals).any(|seal| dialects.is_sentinel_seal(seal))
            }
        }
    };
    message.blocks.retain(|block| !is_sentinel(block));
    for block in &mut message.blocks {
        let seal = match block {
            Block::Text(text) => &mut text.seal,
            Block::ToolCall(call) => &mut call.seal,
            Block::Thinking(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => continue,
        };
        if seal.as_ref().is_some_and(|seal| dialects.is_sentinel_seal(&seal.payload)) {
            *seal = None;
        }
    }
    message
}

/// Who issued a reply's seals, as a hash.
fn issuer(origin: &aside_core::Origin) -> Vec<u8> {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in [&origin.provider, &origin.endpoint, &origin.account] {
        let part = part.as_deref().unwrap_or("");
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part.as_bytes());
    }
    context.finish().as_ref().iter().take(16).copied().collect()
}

fn unpacked(body: &[u8], size: usize) -> Option<Vec<u8>> {
    if size > MAX_BODY_BYTES {
        return None;
    }
    let mut out = Vec::with_capacity(size.min(1 << 20));
    let decoder = ruzstd::decoding::StreamingDecoder::new(body).ok()?;
    decoder.take(size as u64 + 1).read_to_end(&mut out).ok()?;
    (out.len() == size).then_some(out)
}

fn encoded(key: Key) -> String {
    URL_SAFE_NO_PAD.encode(key.0)
}

fn decoded(text: &str) -> Option<Key> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(Key)
}

/// Replies are shared between the cache and its users.
pub(crate) type SharedReply = Arc<StoredReply>;
