//! Messages as they were written the last time: a request of a long
//! conversation repeats almost all of the one before it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::block::{Block, Image, Seal};
use crate::history::EntryId;
use crate::message::Message;
use crate::rules::Step;
use crate::tokens::{self, Counter, Letters};

/// What was written for each message, while what it depends on stays the same.
#[derive(Debug)]
pub(super) struct Pieces {
    written: RefCell<HashMap<EntryId, Piece>>,
    /// Everything before the messages, and its tokens.
    head: RefCell<(String, u64)>,
    pub(super) counter: Arc<dyn Counter>,
}

impl Default for Pieces {
    fn default() -> Pieces {
        Pieces::counting_with(Arc::new(Letters))
    }
}

#[derive(Debug)]
struct Piece {
    step: Step,
    /// None for a long message: it is written again rather than kept twice.
    json: Option<Arc<String>>,
    tokens: u64,
}

/// Longer messages are not kept as they were written.
const LONGEST_KEPT: usize = 1 << 20;

impl Pieces {
    pub(super) fn counting_with(counter: Arc<dyn Counter>) -> Pieces {
        Pieces { written: RefCell::default(), head: RefCell::default(), counter }
    }

    pub(super) fn forget(&mut self) {
        self.written.borrow_mut().clear();
    }

    /// A message, written now or before, and its tokens.
    pub(super) fn of(
        &self,
        entry: Option<EntryId>,
        message: &Message,
        step: &Step,
        write: impl FnOnce() -> String,
    ) -> (Arc<String>, u64) {
        let mut written = self.written.borrow_mut();
        let known = entry.and_then(|entry| written.get(&entry)).filter(|piece| piece.step == *step);
        if let Some(Piece { json: Some(json), tokens, .. }) = known {
            return (Arc::clone(json), *tokens);
        }
        let tokens = known.map(|piece| piece.tokens);
        let json = Arc::new(write());
        let tokens = tokens.unwrap_or_else(|| tokens_of(&json, message, self.counter.as_ref()));
        if let Some(entry) = entry {
            let kept = (json.len() <= LONGEST_KEPT).then(|| Arc::clone(&json));
            written.insert(entry, Piece { step: step.clone(), json: kept, tokens });
        }
        (json, tokens)
    }

    /// Tokens of what stands before the messages: parameters, tools, and the
    /// system prompt where it has a place of its own.
    pub(super) fn tokens_of_head(&self, json: &str) -> u64 {
        let mut head = self.head.borrow_mut();
        if head.0 != json {
            *head = (json.to_owned(), self.counter.count(json).tokens());
        }
        head.1
    }

    /// About how long a list of everything written will be.
    pub(super) fn size(&self) -> usize {
        let written = self.written.borrow();
        written.values().filter_map(|piece| piece.json.as_ref()).map(|json| json.len() + 1).sum()
    }
}

/// The tokens of a message as it was written. Bytes that are no words are not
/// counted as words: an image in base64 would fill a context that it barely
/// touches, and a sealed thought weighs what its maker said it weighs.
fn tokens_of(json: &str, message: &Message, counter: &dyn Counter) -> u64 {
    let (mut words, mut images, mut sealed) = (Words::All(json), 0, 0);
    for block in &message.blocks {
        if let Block::Image(Image { data, .. }) = block {
            images += words.cut(data).min(1) as u64 * tokens::IMAGE_TOKENS;
        }
        for seal in seals(block) {
            sealed += tokens::sealed_bytes(words.cut(&seal.payload));
        }
    }
    let thinking = message.usage.and_then(|usage| usage.reasoning);
    counter.count(words.as_str()).tokens() + images + sealed.min(thinking.unwrap_or(u64::MAX))
}

fn seals(block: &Block) -> impl Iterator<Item = &Seal> {
    let (first, second) = match block {
        Block::Text(text) => (text.seal.as_ref(), None),
        Block::ToolCall(call) => (call.seal.as_ref(), None),
        Block::Thinking(thinking) => {
            thinking.seals().map_or((None, None), |seals| (seals.signature.as_ref(), seals.encrypted.as_ref()))
        }
        Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => (None, None),
    };
    first.into_iter().chain(second)
}

/// Some JSON, less what was cut out of it.
enum Words<'a> {
    All(&'a str),
    Some(String),
}

impl Words<'_> {
    fn as_str(&self) -> &str {
        match self {
            Words::All(json) => json,
            Words::Some(rest) => rest,
        }
    }

    /// Takes out one payload; how many bytes that were.
    fn cut(&mut self, payload: &str) -> usize {
        // What is short is as well counted as text.
        if payload.len() < 64 {
            return 0;
        }
        let Some((before, after)) = self.as_str().split_once(payload) else { return 0 };
        let rest = [before, after].concat();
        *self = Words::Some(rest);
        payload.len()
    }
}
