//! Folds events into blocks: the only place where a stream becomes a reply.

use std::ops::Range;

use crate::block::{
    Arguments, Block, CallId, Native, Reply, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ThinkingSpan,
    Time, ToolCall, Unmodelled,
};
use crate::event::{BlockId, BlockOpening, Event, ProseKind, RestatedPart, Sink};
use crate::extra::ExtraBuilder;
use crate::json_text::{JsonText, compact};

/// Text capacity doubles up to here and then grows by an eighth, so that very
/// long thinking does not reserve twice its size.
const DOUBLING_LIMIT: usize = 64 << 10;

/// Builds a [`Reply`] from events. It depends on no setting: everything is
/// kept.
#[derive(Debug, Default)]
pub struct Fold {
    builders: Vec<BlockBuilder>,
    reply: Reply,
    extra: ExtraBuilder,
    now: Option<Time>,
    /// The number of calls that the provider sent without an id.
    n_invented: u32,
}

#[derive(Debug, Clone)]
struct BlockBuilder {
    kind: BuilderKind,
    text: String,
    /// Where each summary item begins in `text`, with the provider's index.
    items: Vec<(u32, usize)>,
    /// The item that grows, if it is not the last one.
    earlier_item: Option<u32>,
    signature: Option<String>,
    encrypted: Option<String>,
    native: Option<Native>,
    extra: Option<Box<ExtraBuilder>>,
    started: Option<Time>,
    ended: Option<Time>,
    closed: bool,
    /// The text is more than its deltas in order, each new item after a blank line.
    is_revised: bool,
}

/// What a closed block adds to its deltas, if these add up to its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamedEnd {
    /// When thinking began and ended, if it was measured.
    pub span: Option<ThinkingSpan>,
    /// The length of its signature and encrypted payload.
    pub sealed_bytes: usize,
}

#[derive(Debug, Clone)]
enum BuilderKind {
    Text,
    Thinking { source: String, id: Option<String> },
    ToolCall { id: CallId, name: String },
    Unmodelled,
}

impl Fold {
    /// A fold without events.
    pub fn new() -> Fold {
        Fold::default()
    }

    /// Sets the time for the following events. Not called if the bytes come
    /// from a file, since their timing is unknown.
    pub fn set_now(&mut self, now: Time) {
        self.now = Some(now);
    }

    /// The current state of a block. None if it is empty.
    pub fn block(&self, block: BlockId) -> Option<Block> {
        self.builders.get(index_of(block)).and_then(|builder| builder.clone().into_block())
    }

    /// The current text of a block, or the arguments of a call.
    pub fn text(&self, block: BlockId) -> &str {
        self.builders.get(index_of(block)).map_or("", |builder| &builder.text)
    }

    /// Whether the block is complete.
    pub fn is_closed(&self, block: BlockId) -> bool {
        self.builders.get(index_of(block)).is_some_and(|builder| builder.closed)
    }

    /// What remains to be said about a closed text or thinking block whose text is exactly what its
    /// deltas said, where each item but the first begins after a blank line. None for other blocks, and
    /// for an empty one.
    pub fn streamed_end(&self, block: BlockId) -> Option<StreamedEnd> {
        let builder = self.builders.get(index_of(block))?;
        let is_prose = matches!(builder.kind, BuilderKind::Text | BuilderKind::Thinking { .. });
        if !is_prose || !builder.closed || builder.is_revised || builder.is_empty() {
            return None;
        }
        let sealed_bytes = [&builder.signature, &builder.encrypted].into_iter().flatten().map(String::len).sum();
        Some(StreamedEnd { span: builder.span(), sealed_bytes })
    }

    /// The reply so far. An interrupted reply keeps everything that was
    /// received.
    pub fn finish(self) -> Reply {
        let mut reply = self.reply;
        reply.extra = self.extra.finish();
        reply.blocks = self.builders.into_iter().filter_map(BlockBuilder::into_block).collect();
        reply
    }

    fn open_block(&mut self, block: BlockId, opening: BlockOpening<'_>) {
        debug_assert_eq!(index_of(block), self.builders.len(), "block ids grow by one");
        let kind = match opening {
            BlockOpening::Text => BuilderKind::Text,
            BlockOpening::Thinking { source, id } => {
                BuilderKind::Thinking { source: source.to_owned(), id: id.map(str::to_owned) }
            }
            BlockOpening::ToolCall { id: Some(id), name } if !id.is_empty() => {
                BuilderKind::ToolCall { id: CallId::Given(id.to_owned()), name: name.to_owned() }
            }
            BlockOpening::ToolCall { name, .. } => {
                self.n_invented += 1;
                let id = CallId::Invented(format!("{}{}", CallId::INVENTED, self.n_invented));
                BuilderKind::ToolCall { id, name: name.to_owned() }
            }
            BlockOpening::Unmodelled => BuilderKind::Unmodelled,
        };
        self.builders.push(BlockBuilder {
            kind,
            text: String::new(),
            items: Vec::new(),
            earlier_item: None,
            signature: None,
            encrypted: None,
            native: None,
            extra: None,
            started: self.now,
            ended: None,
            closed: false,
            is_revised: false,
        });
    }
}

impl Sink for Fold {
    fn take(&mut self, event: Event<'_>) {
        match event {
            // The most frequent event first.
            Event::Grew { block, text } => {
                if let Some(builder) = self.builders.get_mut(index_of(block)) {
                    builder.grow(text);
                }
            }
            Event::Opened { block, opening } => self.open_block(block, opening),
            Event::Started { model } => self.reply.model = Some(model.to_owned()),
            Event::EmptyThinkingField { field } => self.reply.empty_thinking_field = Some(field.to_owned()),
            Event::Usage(usage) => self.reply.usage = usage,
            Event::Noted(note) => self.reply.notes.push(note.clone()),
            Event::Ended(end) => self.reply.end = end.clone(),
            Event::Extra { block: None, value } => self.extra.take(value),
            Event::Extra { block: Some(block), .. }
            | Event::Item { block, .. }
            | Event::Sealed { block, .. }
            | Event::Refiled { block, .. }
            | Event::Identified { block, .. }
            | Event::Restated { block, .. }
            | Event::NativeItem { block, .. }
            | Event::Closed { block } => {
                if let Some(builder) = self.builders.get_mut(index_of(block)) {
                    builder.take(event, self.now);
                }
            }
        }
    }
}

impl BlockBuilder {
    fn grow(&mut self, text: &str) {
        if let Some(index) = self.earlier_item {
            self.grow_earlier(index, text);
            return;
        }
        self.append(text);
    }

    fn append(&mut self, text: &str) {
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
                if let BuilderKind::Thinking { id, .. } = &mut self.kind {
                    *id = Some(new.to_owned());
                }
            }
            Event::Sealed { kind: SealKind::Signature, payload, .. } => self.signature = Some(payload.to_owned()),
            Event::Sealed { kind: SealKind::Encrypted, payload, .. } => self.encrypted = Some(payload.to_owned()),
            Event::Refiled { to: ProseKind::Text, .. } => self.kind = BuilderKind::Text,
            Event::Refiled { to: ProseKind::Thinking, .. } => {
                self.kind = BuilderKind::Thinking { source: "content".to_owned(), id: None };
            }
            Event::Restated { part, text, .. } => self.restate(part, text),
            Event::NativeItem { json, text_member, .. } => {
                self.native =
                    Some(Native { json: compact(json).into_owned(), text_member: text_member.map(str::to_owned) });
            }
            Event::Extra { value, .. } => self.extra.get_or_insert_default().take(value),
            Event::Closed { .. } => {
                self.closed = true;
                self.ended = now;
                self.text.shrink_to_fit();
            }
            Event::Grew { .. }
            | Event::Opened { .. }
            | Event::Started { .. }
            | Event::EmptyThinkingField { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => (),
        }
    }

    fn grow_earlier(&mut self, index: u32, text: &str) {
        let Some(position) = self.items.iter().position(|(known, _)| *known == index) else { return };
        let Some(Range { start, end }) = self.range_at(position) else { return };
        self.is_revised = true;
        // An empty item has no blank line after it yet.
        let joint = if self.items.get(position + 1).is_some_and(|(_, next)| *next == start) { "\n\n" } else { "" };
        self.text.insert_str(end, joint);
        self.text.insert_str(end, text);
        for (_, later) in self.items.iter_mut().skip(position + 1) {
            *later += text.len() + joint.len();
        }
    }

    fn enter_item(&mut self, index: u32) {
        match self.items.iter().position(|(known, _)| *known == index) {
            // Items may interleave; each keeps its own text.
            Some(position) => {
                self.is_revised = true;
                self.earlier_item = (position + 1 < self.items.len()).then_some(index);
            }
            None => {
                self.earlier_item = None;
                if !self.text.is_empty() {
                    self.text.push_str("\n\n");
                }
                self.items.push((index, self.text.len()));
            }
        }
    }

    /// The final text overrides the deltas but usually equals them. Comparing
    /// first avoids a copy in the usual case.
    fn restate(&mut self, part: RestatedPart, text: JsonText<'_>) {
        let Range { start: from, end: to } = match part {
            RestatedPart::Whole => 0..self.text.len(),
            RestatedPart::Item(index) => match self.item_range(index) {
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
        self.is_revised = true;
        if to == self.text.len() {
            // Usually nothing came before. Only one copy of a long text is made.
            self.text.truncate(from);
            text.pieces(&mut scratch, |piece| self.append(piece));
            if part == RestatedPart::Whole {
                self.items.clear();
            }
            return;
        }
        let text = text.to_owned_text();
        let before = to - from;
        self.text.replace_range(from..to, &text);
        match part {
            // The item boundaries of the new text are unknown.
            RestatedPart::Whole => self.items.clear(),
            RestatedPart::Item(_) => {
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

    /// No text, no payload, no item.
    fn is_empty(&self) -> bool {
        match &self.kind {
            BuilderKind::Text => self.text.is_empty() && self.signature.is_none() && self.extra.is_none(),
            BuilderKind::ToolCall { .. } => false,
            BuilderKind::Unmodelled => self.native.is_none(),
            BuilderKind::Thinking { id, .. } => {
                let is_unsealed = self.signature.is_none() && self.encrypted.is_none();
                let has_more = id.is_some() || self.native.is_some() || self.extra.is_some();
                is_unsealed && !has_more && self.text.trim().is_empty()
            }
        }
    }

    fn span(&self) -> Option<ThinkingSpan> {
        match (self.started, self.ended) {
            (Some(started), Some(ended)) => Some(ThinkingSpan { started, ended: ended.max(started) }),
            _ => None,
        }
    }

    /// None if the block is empty.
    fn into_block(self) -> Option<Block> {
        if self.is_empty() {
            return None;
        }
        let (items, span) = (self.item_ranges(), self.span());
        let seal = |kind, payload: Option<String>| payload.map(|payload| Seal { kind, payload });
        let signature = seal(SealKind::Signature, self.signature);
        let encrypted = seal(SealKind::Encrypted, self.encrypted);
        let extra = self.extra.map(|extra| extra.finish()).unwrap_or_default();
        match self.kind {
            BuilderKind::Text => {
                Some(Block::Text(Text { text: self.text, seal: signature.or(encrypted), native: self.native, extra }))
            }
            BuilderKind::ToolCall { id, name } => Some(Block::ToolCall(ToolCall {
                id,
                name,
                arguments: Arguments::parse(self.text),
                seal: signature.or(encrypted),
                native: self.native,
                extra,
            })),
            BuilderKind::Unmodelled => self.native.map(|native| Block::Unmodelled(Unmodelled { native })),
            BuilderKind::Thinking { source, id } => {
                let unsealed = signature.is_none() && encrypted.is_none();
                let seals = Seals { signature, encrypted };
                // Thinking without text is hidden, even if it has a signature.
                let content = if self.text.is_empty() {
                    ThinkingContent::Hidden { seals }
                } else if unsealed {
                    ThinkingContent::Open { text: self.text }
                } else {
                    ThinkingContent::Sealed { text: self.text, seals }
                };
                Some(Block::Thinking(Thinking { content, source, id, items, span, native: self.native, extra }))
            }
        }
    }
}

fn index_of(block: BlockId) -> usize {
    block.0 as usize
}
