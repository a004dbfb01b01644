//! Limits the memory one reply may use. Events up to the limit are passed on
//! unchanged; later ones are dropped, and the caller can stop reading.

use std::collections::BTreeMap;

use crate::event::{BlockId, BlockOpening, Event, RestatedPart, Sink};
use crate::json_text::split_within;

/// Approximate cost of a block besides its text.
const BLOCK_OVERHEAD: u64 = 256;
/// Approximate cost of a summary item besides its text.
const ITEM_OVERHEAD: u64 = 64;
/// Approximate cost of a member without a neutral form, besides its name and
/// value.
const EXTRA_OVERHEAD: u64 = 64;

/// The bytes a reply may still use.
#[derive(Debug)]
pub(super) struct ReplyBudget {
    /// None if the reply is not limited.
    max_bytes: Option<u64>,
    left: Option<u64>,
    is_full: bool,
    blocks: Vec<BlockSize>,
    /// Length of each summary item, by block and item index.
    items: BTreeMap<(BlockId, u32), u64>,
}

/// Text passed on for one block so far.
#[derive(Debug, Default)]
struct BlockSize {
    text: u64,
    item: Option<u32>,
}

impl ReplyBudget {
    /// `None` means no limit.
    pub(super) fn new(max_bytes: Option<u64>) -> ReplyBudget {
        ReplyBudget { max_bytes, left: max_bytes, is_full: false, blocks: Vec::new(), items: BTreeMap::new() }
    }

    pub(super) fn max_bytes(&self) -> Option<u64> {
        self.max_bytes
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Drops all further content.
    pub(super) fn set_full(&mut self) {
        self.is_full = true;
    }

    pub(super) fn wrap<'a>(&'a mut self, sink: &'a mut dyn Sink) -> BoundedSink<'a> {
        BoundedSink { budget: self, sink }
    }

    /// Spends `cost` if the budget allows it; otherwise the budget is full.
    fn spend(&mut self, cost: u64) -> bool {
        let Some(left) = &mut self.left else { return true };
        match left.checked_sub(cost) {
            Some(rest) if !self.is_full => {
                *left = rest;
                true
            }
            Some(_) | None => {
                self.is_full = true;
                false
            }
        }
    }

    fn block(&mut self, BlockId(block): BlockId) -> Option<&mut BlockSize> {
        self.blocks.get_mut(block as usize)
    }

    fn count_growth(&mut self, block: BlockId, bytes: u64) {
        let Some(block_size) = self.block(block) else { return };
        block_size.text += bytes;
        if let Some(item) = block_size.item {
            *self.items.entry((block, item)).or_default() += bytes;
        }
    }

    /// A restated text costs only its excess over the text it replaces.
    fn spend_restated(&mut self, block: BlockId, part: RestatedPart, now: u64) -> bool {
        let Some(whole) = self.block(block).map(|block_size| block_size.text) else { return false };
        let before = match part {
            RestatedPart::Whole => whole,
            RestatedPart::Item(index) => self.items.get(&(block, index)).copied().unwrap_or(0),
        };
        let is_new = matches!(part, RestatedPart::Item(index) if !self.items.contains_key(&(block, index)));
        if !self.spend(now.saturating_sub(before) + if is_new { ITEM_OVERHEAD } else { 0 }) {
            return false;
        }
        if let RestatedPart::Item(index) = part {
            self.items.insert((block, index), now);
        }
        if let Some(block_size) = self.block(block) {
            block_size.text = (block_size.text + now).saturating_sub(before);
        }
        true
    }
}

/// Passes events on as long as the budget lasts.
pub(super) struct BoundedSink<'a> {
    budget: &'a mut ReplyBudget,
    sink: &'a mut dyn Sink,
}

impl BoundedSink<'_> {
    /// Passes on as much of the text as fits.
    fn grow(&mut self, block: BlockId, text: &str) {
        let fits = self.budget.left.map_or(text.len(), |left| usize::try_from(left).unwrap_or(usize::MAX));
        let (head, rest) = split_within(text, if self.budget.is_full { 0 } else { fits });
        if !head.is_empty() && self.budget.spend(head.len() as u64) {
            self.budget.count_growth(block, head.len() as u64);
            self.sink.take(Event::Grew { block, text: head });
        }
        if !rest.is_empty() {
            self.budget.set_full();
        }
    }
}

impl Sink for BoundedSink<'_> {
    fn take(&mut self, event: Event<'_>) {
        if self.budget.max_bytes.is_none() {
            self.sink.take(event);
            return;
        }
        let fits = match event {
            Event::Grew { block, text } => return self.grow(block, text),
            Event::Opened { opening, .. } => {
                let opened = self.budget.spend(BLOCK_OVERHEAD + opening_bytes(opening));
                if opened {
                    self.budget.blocks.push(BlockSize::default());
                }
                opened
            }
            Event::Item { block, index } => {
                let fits = self.budget.spend(ITEM_OVERHEAD);
                if let Some(block_size) = self.budget.block(block).filter(|_| fits) {
                    block_size.item = Some(index);
                }
                fits
            }
            Event::Restated { block, part, text } => {
                !self.budget.is_full && self.budget.spend_restated(block, part, text.len())
            }
            Event::Sealed { payload, .. } => self.budget.spend(payload.len() as u64),
            // The native item repeats the text of its block, so that part is
            // free.
            Event::NativeItem { block, json, .. } => {
                let repeated = self.budget.block(block).map_or(0, |block_size| block_size.text);
                self.budget.spend((json.len() as u64).saturating_sub(repeated))
            }
            Event::Identified { id: name, .. }
            | Event::Started { model: name }
            | Event::EmptyThinkingField { field: name } => self.budget.spend(name.len() as u64),
            Event::Extra { value, .. } => {
                let name = value.name.len() + value.member.map_or(0, str::len);
                self.budget.spend(EXTRA_OVERHEAD + (name + value.json.len()) as u64)
            }
            Event::Refiled { .. } => !self.budget.is_full,
            // Every opened block is also closed.
            Event::Closed { block } => self.budget.block(block).is_some(),
            Event::Usage(_) | Event::Noted(_) | Event::Ended(_) => true,
        };
        if fits {
            self.sink.take(event);
        }
    }

    fn buffered(&mut self, bytes: usize) {
        if !self.budget.is_full {
            self.budget.spend(bytes as u64);
        }
    }
}

fn opening_bytes(opening: BlockOpening<'_>) -> u64 {
    let bytes = match opening {
        BlockOpening::Text | BlockOpening::Unmodelled => 0,
        BlockOpening::Thinking { source, id } => source.len() + id.map_or(0, str::len),
        BlockOpening::ToolCall { id, name } => name.len() + id.map_or(0, str::len),
    };
    bytes as u64
}
