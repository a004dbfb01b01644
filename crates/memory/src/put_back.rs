//! Puts the thinking of a stored reply into the message that a client sent.

use std::collections::{HashMap, VecDeque};

use aside_core::block::{CallId, Seal, ToolCall};
use aside_core::{Block, Message};

use crate::placeholders::{BlockSource, WithoutPlaceholders, without_seal};
use crate::reply_id::ReplyId;
use crate::stored_reply::{SharedReply, StoredReply};

/// A message with its thinking, and the ids that its calls have now.
pub(crate) struct PutBack {
    pub(crate) message: Message,
    /// The client's id of each call, and the provider's own. Only where they
    /// differ.
    pub(crate) renamed: Vec<(String, String)>,
    /// For each block, whether it was put back.
    pub(crate) restored: Vec<usize>,
}

/// The whole reply as the provider sent it, for a turn with the same visible content.
pub(crate) fn whole_reply(client: &Message, stored: &StoredReply) -> PutBack {
    let theirs = calls_of(&client.blocks).map(|call| call.id.as_str());
    let own = calls_of(&stored.message.blocks).map(|call| call.id.as_str());
    let renamed = theirs.zip(own).filter(|(theirs, own)| theirs != own);
    let renamed = renamed.map(|(theirs, own)| (theirs.to_owned(), own.to_owned())).collect();
    let message = Message {
        blocks: stored.message.blocks.clone(),
        origin: stored.message.origin.clone(),
        interrupted: stored.message.interrupted,
        empty_thinking_field: stored.message.empty_thinking_field.clone(),
        extra: stored.message.extra.clone(),
        ..client.clone()
    };
    let restored = positions_of_thinking(&message.blocks);
    PutBack { message, renamed, restored }
}

/// The client's visible blocks with the reply's thinking around them. For a turn
/// whose text the client changed: thinking keeps its position relative to the
/// calls.
pub(crate) fn around_visible(client: &Message, stored: &StoredReply) -> PutBack {
    let mut thinking = ThinkingByPosition::of(&stored.message.blocks);
    let own: Vec<&ToolCall> = calls_of(&stored.message.blocks).collect();
    let (mut blocks, mut renamed) = (Vec::new(), Vec::new());
    let mut n_calls = 0;
    blocks.extend(thinking.take(0, Position::BeforeText));
    for block in &client.blocks {
        match block {
            Block::Thinking(_) => (),
            Block::ToolCall(call) => {
                blocks.extend(thinking.take(n_calls, Position::AfterText));
                let stored_call = own.get(n_calls).filter(|stored| stored.name == call.name);
                let mut call = call.clone();
                if let Some(stored) = stored_call {
                    if stored.id.as_str() != call.id.as_str() {
                        renamed.push((call.id.as_str().to_owned(), stored.id.as_str().to_owned()));
                    }
                    call.id = stored.id.clone();
                    call.seal = stored.seal.clone();
                }
                blocks.push(Block::ToolCall(call));
                n_calls += 1;
                blocks.extend(thinking.take(n_calls, Position::BeforeText));
            }
            Block::Text(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => {
                blocks.extend(without_seal(block));
            }
        }
    }
    blocks.extend(thinking.rest());
    // All thinking is the reply's, and so are the seals of calls.
    let restored = positions_of_thinking(&blocks);
    let message = Message {
        blocks,
        origin: stored.message.origin.clone(),
        interrupted: stored.message.interrupted,
        ..client.clone()
    };
    PutBack { message, renamed, restored }
}

/// Each reference is replaced by the block that it names. A reference to nothing
/// that we know is removed.
pub(crate) fn in_place(
    client: &Message,
    without: &WithoutPlaceholders<'_>,
    replies: &HashMap<ReplyId, SharedReply>,
) -> PutBack {
    let (mut blocks, mut restored, mut origin) = (Vec::new(), Vec::new(), None);
    for (block, source) in client.blocks.iter().zip(&without.blocks) {
        match source {
            BlockSource::Client => blocks.push(block.clone()),
            BlockSource::Changed(changed) => blocks.extend(changed.as_deref().cloned()),
            BlockSource::Opened(opened, made_by) => {
                origin = origin.or_else(|| Some(made_by.as_ref().clone()));
                restored.push(blocks.len());
                blocks.push(opened.as_ref().clone());
            }
            BlockSource::Reference(reply, index) => {
                let stored = replies.get(reply);
                let original = stored.and_then(|stored| stored.message.blocks.get(usize::from(*index)));
                match original.and_then(|original| with_original(block, original)) {
                    Some(original) => {
                        origin = origin.or_else(|| stored.and_then(|stored| stored.message.origin.clone()));
                        restored.push(blocks.len());
                        blocks.push(original);
                    }
                    None => blocks.extend(without_seal(block)),
                }
            }
        }
    }
    let message = Message { blocks, origin: origin.or_else(|| client.origin.clone()), ..client.clone() };
    PutBack { message, renamed: Vec::new(), restored }
}

/// The stored block in the place of the client's. A seal goes to the client's own
/// text or call. None if they are of different kinds.
fn with_original(client: &Block, stored: &Block) -> Option<Block> {
    match (client, stored) {
        (Block::Thinking(_), Block::Thinking(_)) => Some(stored.clone()),
        (Block::Text(text), Block::Text(original)) => {
            let mut text = text.clone();
            text.seal = Some(original.seal.clone()?);
            text.native = None;
            Some(Block::Text(text))
        }
        (Block::ToolCall(call), Block::ToolCall(original)) => {
            let mut call = call.clone();
            call.seal = Some(original.seal.clone()?);
            call.native = None;
            Some(Block::ToolCall(call))
        }
        _ => None,
    }
}

/// Gives tool results the ids that the provider's calls have.
pub(crate) fn rename_results(message: &Message, renamed: &[(String, String)]) -> Option<Message> {
    let new_ids: HashMap<&str, &str> = renamed.iter().map(|(old, new)| (old.as_str(), new.as_str())).collect();
    let is_concerned = message.blocks.iter().any(|block| match block {
        Block::ToolResult(result) => new_ids.contains_key(result.id.as_str()),
        Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Media(_) | Block::Unmodelled(_) => false,
    });
    if !is_concerned {
        return None;
    }
    let mut message = message.clone();
    for block in &mut message.blocks {
        if let Block::ToolResult(result) = block
            && let Some(id) = new_ids.get(result.id.as_str())
        {
            result.id = (*id).to_owned();
        }
    }
    Some(message)
}

/// The provider's own ids for minted ones, in a message that stays as it is
/// otherwise. It is known who made it, so it is not taken for the target's.
pub(crate) fn with_own_ids(client: &Message, stored: &StoredReply) -> PutBack {
    let mut message = Message { origin: stored.message.origin.clone(), ..client.clone() };
    let mut renamed = Vec::new();
    for block in &mut message.blocks {
        let Block::ToolCall(call) = block else { continue };
        let own = stored.call_ids.iter().find(|(minted, _)| minted == call.id.as_str());
        if let Some((minted, own)) = own {
            renamed.push((minted.clone(), own.clone()));
            call.id = CallId::Given(own.clone());
        }
    }
    PutBack { message, renamed, restored: Vec::new() }
}

/// The tool calls of a message.
pub(crate) fn calls_of(blocks: &[Block]) -> impl Iterator<Item = &ToolCall> {
    blocks.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call),
        Block::Text(_) | Block::Thinking(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => None,
    })
}

/// The positions of thinking blocks, and of other blocks with a seal.
fn positions_of_thinking(blocks: &[Block]) -> Vec<usize> {
    let seal = |seal: &Option<Seal>| seal.is_some();
    let has_thinking = |block: &Block| match block {
        Block::Thinking(_) => true,
        Block::Text(text) => seal(&text.seal),
        Block::ToolCall(call) => seal(&call.seal),
        Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => false,
    };
    blocks.iter().enumerate().filter(|(_, block)| has_thinking(block)).map(|(at, _)| at).collect()
}

/// Where thinking is between two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Position {
    BeforeText,
    AfterText,
}

/// The thinking blocks of a reply, in order, each with the number of calls before
/// it.
struct ThinkingByPosition {
    blocks: VecDeque<(usize, Position, Block)>,
}

impl ThinkingByPosition {
    fn of(all: &[Block]) -> ThinkingByPosition {
        let (mut n_calls, mut position, mut blocks) = (0, Position::BeforeText, VecDeque::new());
        for block in all {
            match block {
                Block::Thinking(_) => blocks.push_back((n_calls, position, block.clone())),
                Block::ToolCall(_) => (n_calls, position) = (n_calls + 1, Position::BeforeText),
                Block::Text(_) => position = Position::AfterText,
                Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
            }
        }
        ThinkingByPosition { blocks }
    }

    /// Everything up to this position.
    fn take(&mut self, n_calls: usize, position: Position) -> Vec<Block> {
        let is_later = |(calls, at, _): &(usize, Position, Block)| (*calls, *at) > (n_calls, position);
        let end = self.blocks.iter().position(is_later).unwrap_or(self.blocks.len());
        self.blocks.drain(..end).map(|(_, _, block)| block).collect()
    }

    /// What belongs after all of the client's blocks.
    fn rest(self) -> Vec<Block> {
        self.blocks.into_iter().map(|(_, _, block)| block).collect()
    }
}
