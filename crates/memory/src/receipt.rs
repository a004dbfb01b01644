//! What a receipt says about the thinking of a request.

use std::collections::HashMap;
use std::fmt;

use aside_core::rules::{Decision, EgressAction};
use aside_core::{Block, Encoded, MediaKind, Message};
use serde::Serialize;

use crate::keys::text_digest;
use crate::restore::{Outcome, Restored, RestoredTurn};
use crate::tenant::Tenant;

/// What was done to a request, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RepairCounts {
    /// Thinking blocks that were put back.
    pub restored: u32,
    /// Messages with a filler.
    pub filler: u32,
    /// Turns that several replies fit.
    pub ambiguous: u32,
    /// Thinking blocks of the client that were not sent.
    pub dropped: u32,
    /// Requests that the provider refused, and that were repaired.
    pub refused: u32,
}

impl RepairCounts {
    /// Adds the fillers and the dropped thinking of an encoded request.
    #[must_use]
    pub fn with_encoded(mut self, messages: &[&Message], encoded: &Encoded) -> RepairCounts {
        for decision in &encoded.decisions {
            let block = decision.block.and_then(|block| messages.get(decision.message)?.blocks.get(block));
            match decision.action {
                EgressAction::Filler => self.filler += 1,
                EgressAction::Dropped if matches!(block, Some(Block::Thinking(_))) => self.dropped += 1,
                EgressAction::Dropped | EgressAction::Verbatim | EgressAction::Field | EgressAction::Tags => (),
            }
        }
        self
    }
}

/// The format of the header `aside-repaired`.
impl fmt::Display for RepairCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RepairCounts { restored, filler, ambiguous, dropped, refused } = self;
        // Of nearly every request; three numbers would cost ten times as much.
        if *self == RepairCounts::default() {
            return f.write_str("0 restored, 0 filler, 0 ambiguous");
        }
        write!(f, "{restored} restored, {filler} filler, {ambiguous} ambiguous")?;
        if *dropped > 0 {
            write!(f, ", {dropped} dropped")?;
        }
        if *refused > 0 {
            write!(f, ", {refused} refused")?;
        }
        Ok(())
    }
}

/// A block that was put back, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RestoredBlock {
    pub(crate) at: usize,
    bytes: usize,
    hash: String,
}

impl RestoredBlock {
    /// None if the block has no thinking.
    pub(crate) fn of(tenant: &Tenant, at: usize, block: &Block) -> Option<RestoredBlock> {
        let content = match block {
            Block::Thinking(thinking) => {
                let seals = thinking.seals().into_iter().flat_map(crate::stored_reply::seals_of);
                std::iter::once(thinking.text()).chain(seals).collect::<String>()
            }
            Block::Text(text) => text.seal.as_ref()?.payload.clone(),
            Block::ToolCall(call) => call.seal.as_ref()?.payload.clone(),
            Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => return None,
        };
        let digest = text_digest(tenant, &content).0;
        let hash = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Some(RestoredBlock { at, bytes: content.len(), hash })
    }
}

/// One row of a receipt's `decisions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReceiptDecision {
    /// The index of the message.
    pub message: usize,
    /// The index of the block. None for a filler or a whole turn.
    pub block: Option<usize>,
    /// What the block is.
    pub kind: &'static str,
    /// What happened to it.
    pub action: &'static str,
    /// The field that it was written to.
    #[serde(rename = "as")]
    pub field: Option<String>,
    /// The rule that decided.
    pub rule: String,
    /// How its reply was recognised.
    pub evidence: Option<&'static str>,
    /// The reply that it belongs to.
    pub reply: Option<String>,
    /// The size of what was put back.
    pub bytes: Option<usize>,
    /// A keyed hash of what was put back.
    pub hash: Option<String>,
}

/// The rows of a receipt: thinking, fillers, dropped blocks and ambiguous turns.
/// `messages` are those that were encoded.
pub fn decisions(restored: &Restored, messages: &[&Message], encoded: &Encoded) -> Vec<ReceiptDecision> {
    let turns: HashMap<usize, &RestoredTurn> = restored.turns.iter().map(|turn| (turn.message, turn)).collect();
    let mut rows: Vec<ReceiptDecision> =
        encoded.decisions.iter().filter_map(|decision| row(decision, messages, &turns)).collect();
    let ambiguous = restored.turns.iter().filter(|turn| turn.outcome == Outcome::Ambiguous);
    rows.extend(ambiguous.map(|turn| ReceiptDecision {
        message: turn.message,
        block: None,
        kind: "thinking",
        action: "ambiguous",
        field: None,
        rule: "several remembered replies fit, and their thinking differs".to_owned(),
        evidence: None,
        reply: None,
        bytes: None,
        hash: None,
    }));
    rows.sort_by_key(|row| (row.message, row.block));
    rows
}

fn row(decision: &Decision, messages: &[&Message], turns: &HashMap<usize, &RestoredTurn>) -> Option<ReceiptDecision> {
    let block = decision.block.and_then(|block| messages.get(decision.message)?.blocks.get(block));
    let turn = turns.get(&decision.message).filter(|turn| turn.outcome == Outcome::Restored);
    let put_back = turn.and_then(|turn| turn.restored.iter().find(|restored| Some(restored.at) == decision.block));
    let is_dropped = decision.action == EgressAction::Dropped;
    let is_shown = block.is_none() || is_dropped || put_back.is_some() || matches!(block, Some(Block::Thinking(_)));
    if !is_shown {
        return None;
    }
    let put_back = put_back.filter(|_| !is_dropped);
    Some(ReceiptDecision {
        message: decision.message,
        block: decision.block,
        kind: block.map_or("filler", kind),
        action: if put_back.is_some() { "restored" } else { decision.action.as_str() },
        field: decision.field.clone(),
        rule: decision.reason.rule(),
        evidence: put_back.and(turn).and_then(|turn| turn.evidence).map(crate::evidence::Evidence::as_str),
        reply: put_back.and(turn).and_then(|turn| turn.reply).map(|reply| reply.to_string()),
        bytes: put_back.map(|put_back| put_back.bytes),
        hash: put_back.map(|put_back| put_back.hash.clone()),
    })
}

fn kind(block: &Block) -> &'static str {
    match block {
        Block::Text(_) => "text",
        Block::Thinking(_) => "thinking",
        Block::ToolCall(_) => "toolCall",
        Block::ToolResult(_) => "toolResult",
        Block::Media(media) => match media.kind {
            MediaKind::Image => "image",
            MediaKind::Document => "document",
        },
        Block::Unmodelled(_) => "unmodelled",
    }
}
