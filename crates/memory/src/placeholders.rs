//! What a client has in place of thinking: our references, blocks that we encrypted, and
//! the sentinels of other programs.

use std::borrow::Cow;

use aside_core::block::{Seal, Seals};
use aside_core::{Block, Dialects, Message, Origin, Thinking, ThinkingContent};

use crate::reply_id::ReplyId;
use crate::stored_reply::seals_of;
use crate::tenant::Tenant;

/// An assistant message without placeholders, and what they were.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WithoutPlaceholders<'a> {
    pub(crate) message: Cow<'a, Message>,
    /// For each block of the client's message, what takes its place.
    pub(crate) blocks: Vec<BlockSource>,
    /// A value of ours was there, which no provider may see.
    pub(crate) had_ours: bool,
    /// Blocks that were decrypted without a look-up.
    pub(crate) n_opened: usize,
}

/// Where the content of a block comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BlockSource {
    /// From the client.
    Client,
    /// The client has a reference to this block of a reply.
    Reference(ReplyId, u16),
    /// The client's block, without the placeholder. None if nothing is left.
    Changed(Option<Box<Block>>),
    /// The client has the whole block, encrypted by us.
    Opened(Box<Block>, Box<Origin>),
}

impl<'a> WithoutPlaceholders<'a> {
    pub(crate) fn of(tenant: &Tenant, dialects: &Dialects, message: &'a Message) -> WithoutPlaceholders<'a> {
        let reader = PlaceholderReader { tenant, dialects };
        let read: Vec<(BlockSource, Ownership)> = message.blocks.iter().map(|block| reader.block(block)).collect();
        let had_ours = read.iter().any(|(_, ownership)| *ownership != Ownership::Others);
        let n_opened = read.iter().filter(|(_, ownership)| *ownership == Ownership::Opened).count();
        let blocks: Vec<BlockSource> = read.into_iter().map(|(source, _)| source).collect();
        let is_unchanged = blocks.iter().all(|source| *source == BlockSource::Client);
        let message = if is_unchanged {
            Cow::Borrowed(message)
        } else {
            Cow::Owned(Message { blocks: stripped(&message.blocks, &blocks), ..message.clone() })
        };
        WithoutPlaceholders { message, blocks, had_ours, n_opened }
    }

    /// The replies that the client refers to, each once.
    pub(crate) fn replies(&self) -> Vec<ReplyId> {
        let mut replies = Vec::new();
        for source in &self.blocks {
            if let BlockSource::Reference(reply, _) = source
                && !replies.contains(reply)
            {
                replies.push(*reply);
            }
        }
        replies
    }
}

/// Whose value a block had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ownership {
    /// The client's, the provider's or another program's.
    Others,
    /// Ours, or one that looks like ours.
    Ours,
    /// Ours, and decrypted.
    Opened,
}

/// The blocks without their placeholders.
fn stripped(blocks: &[Block], sources: &[BlockSource]) -> Vec<Block> {
    let strip = |(block, source): (&Block, &BlockSource)| match source {
        BlockSource::Client => Some(block.clone()),
        BlockSource::Reference(..) => without_seal(block),
        BlockSource::Changed(changed) => changed.as_deref().cloned(),
        BlockSource::Opened(opened, _) => Some(opened.as_ref().clone()),
    };
    blocks.iter().zip(sources).filter_map(strip).collect()
}

/// A block without its opaque value. None if nothing readable is left.
pub(crate) fn without_seal(block: &Block) -> Option<Block> {
    match block {
        Block::Thinking(thinking) if thinking.text().trim().is_empty() => None,
        Block::Thinking(thinking) => {
            let content = ThinkingContent::Open { text: thinking.text().to_owned() };
            Some(Block::Thinking(Thinking { content, native: None, id: None, ..thinking.clone() }))
        }
        Block::Text(text) => {
            let mut text = text.clone();
            (text.seal, text.native) = (None, None);
            Some(Block::Text(text))
        }
        Block::ToolCall(call) => {
            let mut call = call.clone();
            (call.seal, call.native) = (None, None);
            Some(Block::ToolCall(call))
        }
        Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => Some(block.clone()),
    }
}

struct PlaceholderReader<'a> {
    tenant: &'a Tenant,
    dialects: &'a Dialects,
}

impl PlaceholderReader<'_> {
    fn block(&self, block: &Block) -> (BlockSource, Ownership) {
        match block {
            Block::Thinking(thinking) => self.thinking(block, thinking),
            Block::Text(text) => self.sealed(block, text.seal.as_ref()),
            Block::ToolCall(call) => self.sealed(block, call.seal.as_ref()),
            Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (BlockSource::Client, Ownership::Others),
        }
    }

    fn thinking(&self, block: &Block, thinking: &Thinking) -> (BlockSource, Ownership) {
        let none = Seals::default();
        let seals = thinking.seals().unwrap_or(&none);
        for payload in seals_of(seals) {
            if let Some(read) = self.payload(block, payload) {
                return read;
            }
        }
        // Some clients keep the id of an item and lose the rest.
        if let Some((reply, block)) = thinking.id.as_deref().and_then(|id| self.tenant.read_item_id(id)) {
            return (BlockSource::Reference(reply, block), Ownership::Ours);
        }
        if self.dialects.is_sentinel_text(thinking.text()) {
            return (BlockSource::Changed(None), Ownership::Others);
        }
        (BlockSource::Client, Ownership::Others)
    }

    fn sealed(&self, block: &Block, seal: Option<&Seal>) -> (BlockSource, Ownership) {
        let read = seal.and_then(|seal| self.payload(block, &seal.payload));
        read.unwrap_or((BlockSource::Client, Ownership::Others))
    }

    /// What an opaque value stands for. None if a provider made it.
    fn payload(&self, block: &Block, payload: &str) -> Option<(BlockSource, Ownership)> {
        if let Some((reply, block)) = self.tenant.read_reference(payload) {
            return Some((BlockSource::Reference(reply, block), Ownership::Ours));
        }
        let stripped = || BlockSource::Changed(without_seal(block).map(Box::new));
        if Tenant::looks_like_ours(payload) {
            return Some(match self.tenant.open_block(payload) {
                Some((opened, origin)) => (BlockSource::Opened(Box::new(opened), Box::new(origin)), Ownership::Opened),
                None => (stripped(), Ownership::Ours),
            });
        }
        self.dialects.is_sentinel_seal(payload).then(|| (stripped(), Ownership::Others))
    }
}
