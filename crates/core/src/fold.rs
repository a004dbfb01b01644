//! Events into blocks: the only place where a stream becomes a reply.

use std::ops::Range;

use crate::block::{
    Arguments, Block, CallId, Content, Native, Reply, Seal, SealKind, Seals, Span, Text, Thinking, Time, ToolCall,
    Unmodelled,
};
use crate::event::{BlockId, Event, Opening, Part, Side, Sink};
use crate::text::JsonText;

/// Text doubles up to here and then grows by an eighth, so that a very long
/// thought does not reserve twice its size.
const DOUBLING_LIMIT: usize = 1 << 20;

/// Builds a [`Reply`] from events. It sees no setting: everything is kept.
#[derive(Debug, Default)]
pub struct Fold {
    slots: Vec<Slot>,
    reply: Reply,
    now: Option<Time>,
    /// How many calls the provider left without an id.
    n_invented: u32,
}

#[derive(Debug, Clone)]
struct Slot {
    role: Role,
    text: String,
    /// Where each summary item begins in `text`, with the provider's index.
    items: Vec<(u32, usize)>,
    /// The item that grows, where it is not the last one.
    earlier_item: Option<u32>,
    signature: Option<String>,
    encrypted: Option<String>,
    native: Option<Native>,
    started: Option<Time>,
    ended: Option<Time>,
    closed: bool,
}

#[derive(Debug, Clone)]
enum Role {
    Text,
    Thinking { source: String, id: Option<String> },
    ToolCall { id: CallId, name: String },
    Unmodelled,
}

impl Fold {
    pub fn new() -> Fold {
        Fold::default()
    }

    /// Says what time it is for the events that follow. Never called when the
    /// bytes come from a file: a time nobody measured is not invented.
    pub fn set_now(&mut self, now: Time) {
        self.now = Some(now);
    }

    /// The block as it stands now; none if it came to nothing.
    pub fn block(&self, block: BlockId) -> Option<Block> {
        self.slots.get(slot_index(block)).and_then(|slot| slot.clone().into_block())
    }

    /// The text of a block as it stands now, or the arguments of a call.
    pub fn text(&self, block: BlockId) -> &str {
        self.slots.get(slot_index(block)).map_or("", |slot| &slot.text)
    }

    pub fn is_closed(&self, block: BlockId) -> bool {
        self.slots.get(slot_index(block)).is_some_and(|slot| slot.closed)
    }

    /// The reply so far is the reply: an interrupted one is as good as its bytes.
    pub fn finish(self) -> Reply {
        let mut reply = self.reply;
        reply.blocks = self.slots.into_iter().filter_map(Slot::into_block).collect();
        reply
    }

    fn opened(&mut self, block: BlockId, opening: Opening<'_>) {
        debug_assert_eq!(slot_index(block), self.slots.len(), "block ids grow by one");
        let role = match opening {
            Opening::Text => Role::Text,
            Opening::Thinking { source, id } => Role::Thinking { source: source.to_owned(), id: id.map(str::to_owned) },
            Opening::ToolCall { id: Some(id), name } if !id.is_empty() => {
                Role::ToolCall { id: CallId::Given(id.to_owned()), name: name.to_owned() }
            }
            Opening::ToolCall { name, .. } => {
                self.n_invented += 1;
                let id = CallId::Invented(format!("{}{}", CallId::INVENTED, self.n_invented));
                Role::ToolCall { id, name: name.to_owned() }
            }
            Opening::Unmodelled => Role::Unmodelled,
        };
        self.slots.push(Slot {
            role,
            text: String::new(),
            items: Vec::new(),
            earlier_item: None,
            signature: None,
            encrypted: None,
            native: None,
            started: self.now,
            ended: None,
            closed: false,
        });
    }
}

impl Sink for Fold {
    fn take(&mut self, event: Event<'_>) {
        match event {
            // The hot one first.
            Event::Grew { block, text } => {
                if let Some(slot) = self.slots.get_mut(slot_index(block)) {
                    slot.grow(text);
                }
            }
            Event::Opened { block, opening } => self.opened(block, opening),
            Event::Started { model } => self.reply.model = Some(model.to_owned()),
            Event::Seen { field } => self.reply.seen = Some(field.to_owned()),
            Event::Usage(usage) => self.reply.usage = usage,
            Event::Noted(note) => self.reply.notes.push(note.clone()),
            Event::Ended(end) => self.reply.end = end.clone(),
            Event::Item { block, .. }
            | Event::Sealed { block, .. }
            | Event::Refiled { block, .. }
            | Event::Identified { block, .. }
            | Event::Restated { block, .. }
            | Event::Kept { block, .. }
            | Event::Closed { block } => {
                if let Some(slot) = self.slots.get_mut(slot_index(block)) {
                    slot.take(event, self.now);
                }
            }
        }
    }
}

impl Slot {
    fn grow(&mut self, text: &str) {
        if let Some(index) = self.earlier_item {
            self.grow_earlier(index, text);
            return;
        }
        let needed = self.text.len() + text.len();
        if needed > self.text.capacity() && needed > DOUBLING_LIMIT {
            self.text.reserve_exact(text.len() + needed / 8);
        }
        self.text.push_str(text);
    }

    fn take(&mut self, event: Event<'_>, now: Option<Time>) {
        match event {
            Event::Item { index, .. } => self.enter_item(index),
            Event::Identified { id: new, .. } => {
                if let Role::Thinking { id, .. } = &mut self.role {
                    *id = Some(new.to_owned());
                }
            }
            Event::Sealed { kind: SealKind::Signature, payload, .. } => self.signature = Some(payload.to_owned()),
            Event::Sealed { kind: SealKind::Encrypted, payload, .. } => self.encrypted = Some(payload.to_owned()),
            Event::Refiled { to: Side::Text, .. } => self.role = Role::Text,
            Event::Refiled { to: Side::Thinking, .. } => {
                self.role = Role::Thinking { source: "content".to_owned(), id: None };
            }
            Event::Restated { part, text, .. } => self.restate(part, text),
            Event::Kept { json, text_member, .. } => {
                self.native = Some(Native { json: json.to_owned(), text_member: text_member.map(str::to_owned) });
            }
            Event::Closed { .. } => {
                self.closed = true;
                self.ended = now;
                self.text.shrink_to_fit();
            }
            Event::Grew { .. }
            | Event::Opened { .. }
            | Event::Started { .. }
            | Event::Seen { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => (),
        }
    }

    fn grow_earlier(&mut self, index: u32, text: &str) {
        let Some(position) = self.items.iter().position(|(known, _)| *known == index) else { return };
        let Some(Range { start, end }) = self.range_at(position) else { return };
        // An item that was empty has no blank line behind it yet.
        let joint = if self.items.get(position + 1).is_some_and(|(_, next)| *next == start) { "\n\n" } else { "" };
        self.text.insert_str(end, joint);
        self.text.insert_str(end, text);
        for (_, later) in self.items.iter_mut().skip(position + 1) {
            *later += text.len() + joint.len();
        }
    }

    fn enter_item(&mut self, index: u32) {
        match self.items.iter().position(|(known, _)| *known == index) {
            // Items may take turns; each keeps its own text.
            Some(position) => self.earlier_item = (position + 1 < self.items.len()).then_some(index),
            None => {
                self.earlier_item = None;
                if !self.text.is_empty() {
                    self.text.push_str("\n\n");
                }
                self.items.push((index, self.text.len()));
            }
        }
    }

    /// The final word wins over the deltas, but usually equals them: compare
    /// first, so that the usual case copies nothing.
    fn restate(&mut self, part: Part, text: JsonText<'_>) {
        let Range { start: from, end: to } = match part {
            Part::Whole => 0..self.text.len(),
            Part::Item(index) => match self.item_range(index) {
                Some(range) => range,
                None => {
                    self.enter_item(index);
                    self.text.len()..self.text.len()
                }
            },
        };
        let have = self.text.get(from..to).unwrap_or("");
        let (mut scratch, mut rest, mut same) = (String::new(), have, true);
        text.pieces(&mut scratch, |piece| match rest.strip_prefix(piece) {
            Some(after) if same => rest = after,
            _ => same = false,
        });
        if same && rest.is_empty() {
            return;
        }
        let text = text.to_owned_text();
        let before = to - from;
        self.text.replace_range(from..to, &text);
        match part {
            // Where the items of another text begin is not known.
            Part::Whole => self.items.clear(),
            Part::Item(_) => {
                for (_, start) in self.items.iter_mut().filter(|(_, start)| *start > from) {
                    *start = (*start + text.len()).saturating_sub(before);
                }
            }
        }
    }

    fn item_range(&self, index: u32) -> Option<Range<usize>> {
        self.range_at(self.items.iter().position(|(known, _)| *known == index)?)
    }

    fn range_at(&self, position: usize) -> Option<Range<usize>> {
        let (_, start) = self.items.get(position)?;
        let end = match self.items.get(position + 1) {
            // The blank line between two items belongs to neither.
            Some((_, next)) => next.saturating_sub(2),
            None => self.text.len(),
        };
        Some(*start..end.max(*start))
    }

    fn item_ranges(&self) -> Vec<Range<usize>> {
        (0..self.items.len()).filter_map(|position| self.range_at(position)).collect()
    }

    /// None for a block that came to nothing: no text, no payload, no item.
    fn into_block(self) -> Option<Block> {
        let items = self.item_ranges();
        let seal = |kind, payload: Option<String>| payload.map(|payload| Seal { kind, payload });
        let signature = seal(SealKind::Signature, self.signature);
        let encrypted = seal(SealKind::Encrypted, self.encrypted);
        match self.role {
            Role::Text if self.text.is_empty() && signature.is_none() => None,
            Role::Text => {
                Some(Block::Text(Text { text: self.text, seal: signature.or(encrypted), native: self.native }))
            }
            Role::ToolCall { id, name } => Some(Block::ToolCall(ToolCall {
                id,
                name,
                arguments: Arguments::parse(self.text),
                seal: signature.or(encrypted),
                native: self.native,
            })),
            Role::Unmodelled => self.native.map(|native| Block::Unmodelled(Unmodelled { native })),
            Role::Thinking { source, id } => {
                let blank = self.text.trim().is_empty();
                let unsealed = signature.is_none() && encrypted.is_none();
                if blank && unsealed && id.is_none() && self.native.is_none() {
                    return None;
                }
                let seals = Seals { signature, encrypted };
                // A signature may stand on an empty text; everything else that
                // is empty is hidden.
                let content = if self.text.is_empty() {
                    Content::Hidden { seals }
                } else if unsealed {
                    Content::Open { text: self.text }
                } else {
                    Content::Sealed { text: self.text, seals }
                };
                let span = match (self.started, self.ended) {
                    (Some(started), Some(ended)) => Some(Span { started, ended: ended.max(started) }),
                    _ => None,
                };
                Some(Block::Thinking(Thinking { content, source, id, items, span, native: self.native }))
            }
        }
    }
}

fn slot_index(block: BlockId) -> usize {
    block.0 as usize
}
