//! Caches encoded messages: a request in a long conversation repeats almost all
//! of the previous one.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::block::{Block, Media, Seal};
use crate::history::EntryId;
use crate::message::Message;
use crate::rules::MessagePlan;
use crate::tokens::{self, EstimateCounter, TokenCounter};

/// Encoded messages, valid until one of their inputs changes.
#[derive(Debug)]
pub(super) struct EncodeCache {
    messages: RefCell<HashMap<EntryId, CachedMessage>>,
    /// The body before the messages, and its token count.
    head: RefCell<(String, u64)>,
    pub(super) counter: Arc<dyn TokenCounter>,
}

impl Default for EncodeCache {
    fn default() -> EncodeCache {
        EncodeCache::counting_with(Arc::new(EstimateCounter))
    }
}

#[derive(Debug)]
struct CachedMessage {
    plan: MessagePlan,
    /// None for a long message: encoding it again is cheaper than storing it
    /// twice.
    json: Option<String>,
    tokens: u64,
}

/// Longer messages are not cached.
const MAX_CACHED_BYTES: usize = 1 << 20;

impl EncodeCache {
    pub(super) fn counting_with(counter: Arc<dyn TokenCounter>) -> EncodeCache {
        EncodeCache { messages: RefCell::default(), head: RefCell::default(), counter }
    }

    pub(super) fn clear_messages(&mut self) {
        self.messages.borrow_mut().clear();
    }

    /// Appends a message's JSON, from the cache if possible, and returns its
    /// tokens.
    pub(super) fn get_or_write(
        &self,
        entry: Option<EntryId>,
        message: &Message,
        plan: &MessagePlan,
        out: &mut String,
        write: impl FnOnce(&mut String),
    ) -> u64 {
        let mut messages = self.messages.borrow_mut();
        let known = entry.and_then(|entry| messages.get(&entry)).filter(|cached| cached.plan == *plan);
        if let Some(CachedMessage { json: Some(json), tokens, .. }) = known {
            out.push_str(json);
            return *tokens;
        }
        let tokens = known.map(|cached| cached.tokens);
        let start = out.len();
        write(out);
        let json = out.get(start..).unwrap_or("");
        let tokens = tokens.unwrap_or_else(|| tokens_of(json, message, self.counter.as_ref()));
        if let Some(entry) = entry {
            let cached = (json.len() <= MAX_CACHED_BYTES).then(|| json.to_owned());
            messages.insert(entry, CachedMessage { plan: plan.clone(), json: cached, tokens });
        }
        tokens
    }

    /// Tokens of the body before the messages: parameters, tools, and the system
    /// prompt if it is not a message.
    pub(super) fn head_tokens(&self, json: &str) -> u64 {
        let mut head = self.head.borrow_mut();
        if head.0 != json {
            *head = (json.to_owned(), self.counter.count(json).tokens());
        }
        head.1
    }

    /// The approximate length of the message list.
    pub(super) fn body_size_hint(&self) -> usize {
        let messages = self.messages.borrow();
        messages.values().filter_map(|cached| cached.json.as_ref()).map(|json| json.len() + 1).sum()
    }
}

/// Counts the tokens of an encoded message. Base64 data is not counted as text:
/// an image would seem to fill the context window, and sealed thinking costs what
/// the provider reported for it.
fn tokens_of(json: &str, message: &Message, counter: &dyn TokenCounter) -> u64 {
    let (mut text, mut images, mut sealed) = (CountedText::Whole(json), 0, 0);
    for block in &message.blocks {
        for media in media(block) {
            let length = media.data().map_or(1, |data| text.cut_out(data));
            images += length.min(1) as u64 * tokens::media_tokens(media);
        }
        for seal in seals(block) {
            sealed += tokens::estimate_sealed(text.cut_out(&seal.payload));
        }
    }
    let thinking = message.usage.and_then(|usage| usage.reasoning);
    counter.count(text.as_str()).tokens() + images + sealed.min(thinking.unwrap_or(u64::MAX))
}

/// The block itself, or what a tool result holds.
fn media(block: &Block) -> &[Media] {
    match block {
        Block::Media(media) => std::slice::from_ref(media),
        Block::ToolResult(result) => &result.media,
        Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Unmodelled(_) => &[],
    }
}

fn seals(block: &Block) -> impl Iterator<Item = &Seal> {
    let (first, second) = match block {
        Block::Text(text) => (text.seal.as_ref(), None),
        Block::ToolCall(call) => (call.seal.as_ref(), None),
        Block::Thinking(thinking) => {
            thinking.seals().map_or((None, None), |seals| (seals.signature.as_ref(), seals.encrypted.as_ref()))
        }
        Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (None, None),
    };
    first.into_iter().chain(second)
}

/// JSON text, without the payloads that are not counted as text.
enum CountedText<'a> {
    Whole(&'a str),
    Cut(String),
}

impl CountedText<'_> {
    fn as_str(&self) -> &str {
        match self {
            CountedText::Whole(json) => json,
            CountedText::Cut(rest) => rest,
        }
    }

    /// Removes one payload and returns its length.
    fn cut_out(&mut self, payload: &str) -> usize {
        // Short payloads may as well be counted as text.
        if payload.len() < 64 {
            return 0;
        }
        let Some((before, after)) = self.as_str().split_once(payload) else { return 0 };
        let rest = [before, after].concat();
        *self = CountedText::Cut(rest);
        payload.len()
    }
}
