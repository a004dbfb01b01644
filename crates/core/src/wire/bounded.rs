//! Bounds what one reply may take in memory. What came before the bound is
//! told as ever; the rest is not, and the caller learns that it can stop.

use std::collections::BTreeMap;

use crate::event::{BlockId, Event, Opening, Part, Sink};
use crate::text::split_within;

/// What a block costs beside its text, about.
const BLOCK: u64 = 256;
/// The same for an item of a summary.
const ITEM: u64 = 64;

/// How much more of a reply is told.
#[derive(Debug)]
pub(super) struct Room {
    /// None without a bound.
    most: Option<u64>,
    left: Option<u64>,
    is_full: bool,
    blocks: Vec<Told>,
    /// How long each summary item is, by its block and its number.
    items: BTreeMap<(BlockId, u32), u64>,
}

/// What was told of one block.
#[derive(Debug, Default)]
struct Told {
    text: u64,
    item: Option<u32>,
}

impl Room {
    /// None for a reply of any size.
    pub(super) fn new(most: Option<u64>) -> Room {
        Room { most, left: most, is_full: false, blocks: Vec::new(), items: BTreeMap::new() }
    }

    pub(super) fn most(&self) -> Option<u64> {
        self.most
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Nothing more is told from here on.
    pub(super) fn fill(&mut self) {
        self.is_full = true;
    }

    pub(super) fn over<'a>(&'a mut self, sink: &'a mut dyn Sink) -> Bounded<'a> {
        Bounded { room: self, sink }
    }

    /// Whether there is room for so much; it is full otherwise.
    fn takes(&mut self, cost: u64) -> bool {
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

    fn told(&mut self, BlockId(block): BlockId) -> Option<&mut Told> {
        self.blocks.get_mut(block as usize)
    }

    fn grew(&mut self, block: BlockId, bytes: u64) {
        let Some(told) = self.told(block) else { return };
        told.text += bytes;
        if let Some(item) = told.item {
            *self.items.entry((block, item)).or_default() += bytes;
        }
    }

    /// A last word costs what it is longer than what it replaces.
    fn restated(&mut self, block: BlockId, part: Part, now: u64) -> bool {
        let Some(whole) = self.told(block).map(|told| told.text) else { return false };
        let before = match part {
            Part::Whole => whole,
            Part::Item(index) => self.items.get(&(block, index)).copied().unwrap_or(0),
        };
        let is_new = matches!(part, Part::Item(index) if !self.items.contains_key(&(block, index)));
        if !self.takes(now.saturating_sub(before) + if is_new { ITEM } else { 0 }) {
            return false;
        }
        if let Part::Item(index) = part {
            self.items.insert((block, index), now);
        }
        if let Some(told) = self.told(block) {
            told.text = (told.text + now).saturating_sub(before);
        }
        true
    }
}

/// Passes on what there is room for.
pub(super) struct Bounded<'a> {
    room: &'a mut Room,
    sink: &'a mut dyn Sink,
}

impl Bounded<'_> {
    /// As much of a text as there is room for.
    fn grow(&mut self, block: BlockId, text: &str) {
        let fits = self.room.left.map_or(text.len(), |left| usize::try_from(left).unwrap_or(usize::MAX));
        let (head, rest) = split_within(text, if self.room.is_full { 0 } else { fits });
        if !head.is_empty() && self.room.takes(head.len() as u64) {
            self.room.grew(block, head.len() as u64);
            self.sink.take(Event::Grew { block, text: head });
        }
        if !rest.is_empty() {
            self.room.fill();
        }
    }
}

impl Sink for Bounded<'_> {
    fn take(&mut self, event: Event<'_>) {
        if self.room.most.is_none() {
            self.sink.take(event);
            return;
        }
        let is_told = match event {
            Event::Grew { block, text } => return self.grow(block, text),
            Event::Opened { opening, .. } => {
                let opened = self.room.takes(BLOCK + opening_bytes(opening));
                if opened {
                    self.room.blocks.push(Told::default());
                }
                opened
            }
            Event::Item { block, index } => {
                let is_told = self.room.takes(ITEM);
                if let Some(told) = self.room.told(block).filter(|_| is_told) {
                    told.item = Some(index);
                }
                is_told
            }
            Event::Restated { block, part, text } => !self.room.is_full && self.room.restated(block, part, text.len()),
            Event::Sealed { payload, .. } => self.room.takes(payload.len() as u64),
            // An item repeats the text of its block; that is not a longer reply.
            Event::Kept { block, json, .. } => {
                let repeated = self.room.told(block).map_or(0, |told| told.text);
                self.room.takes((json.len() as u64).saturating_sub(repeated))
            }
            Event::Identified { id: words, .. } | Event::Started { model: words } | Event::Seen { field: words } => {
                self.room.takes(words.len() as u64)
            }
            Event::Refiled { .. } => !self.room.is_full,
            // What began also ends.
            Event::Closed { block } => self.room.told(block).is_some(),
            Event::Usage(_) | Event::Noted(_) | Event::Ended(_) => true,
        };
        if is_told {
            self.sink.take(event);
        }
    }

    fn hold(&mut self, bytes: usize) {
        if !self.room.is_full {
            self.room.takes(bytes as u64);
        }
    }
}

fn opening_bytes(opening: Opening<'_>) -> u64 {
    let bytes = match opening {
        Opening::Text | Opening::Unmodelled => 0,
        Opening::Thinking { source, id } => source.len() + id.map_or(0, str::len),
        Opening::ToolCall { id, name } => name.len() + id.map_or(0, str::len),
    };
    bytes as u64
}
