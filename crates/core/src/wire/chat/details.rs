//! Structured thinking beside the content: `reasoning_details` of OpenRouter
//! and its followers, `thinking_blocks` of LiteLLM.
//!
//! Entries are fragments. Those with the same index and type are one block as
//! long as nothing but thinking comes between them; a signature or an encrypted
//! payload finds its block however late it comes.

use super::freshness::Freshness;
use crate::block::SealKind;
use crate::dialect::{AssembleBy, DeltaMode};
use crate::event::{BlockId, Event, Opening, Sink};
use crate::text::JsonText;
use crate::wire::json::{Kind, ObjectWriter, Raw, Word, count_of, each_entry, is_void, quote, word_of};
use crate::wire::speech::Ids;

#[derive(Debug)]
pub(super) struct Details {
    slots: Vec<Slot>,
    assemble_by: AssembleBy,
    delta_mode: DeltaMode,
    scratch: String,
}

/// Which of the two arrays an entry came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    ReasoningDetails,
    ThinkingBlocks,
}

#[derive(Debug)]
struct Slot {
    family: Family,
    index: Option<u64>,
    kind: String,
    block: Option<BlockId>,
    open: bool,
    freshness: Freshness,
    /// White space that the thought may begin with.
    held: String,
    signature: Option<String>,
    data: String,
    id: Option<String>,
    /// Every member but the text: the last value that is not null, in the
    /// place of the first.
    members: Vec<(String, String)>,
    text_member: Option<&'static str>,
    /// Something came that the fold does not know yet.
    changed: bool,
    /// A member came that makes it worth keeping without text or seal.
    unusual: bool,
    /// Text that another source has shown already.
    silent: String,
}

/// One entry, taken apart without a copy.
struct Entry<'a> {
    raw: Raw<'a>,
    kind: Word<'a>,
    index: Option<u64>,
    text: Option<(&'static str, JsonText<'a>)>,
    signature: Option<JsonText<'a>>,
    data: Option<JsonText<'a>>,
    id: Word<'a>,
}

/// Members that are text or that every entry has.
const USUAL: [&str; 8] = ["type", "index", "format", "text", "summary", "thinking", "signature", "id"];

impl Family {
    pub(super) fn field(self) -> &'static str {
        match self {
            Family::ReasoningDetails => "reasoning_details",
            Family::ThinkingBlocks => "thinking_blocks",
        }
    }
}

impl Details {
    pub(super) fn new(assemble_by: AssembleBy, delta_mode: DeltaMode) -> Details {
        Details { slots: Vec::new(), assemble_by, delta_mode, scratch: String::new() }
    }

    pub(super) fn is_open(&self) -> bool {
        self.slots.iter().any(|slot| slot.open)
    }

    /// The text that an entry carries; asked before anything is shown.
    pub(super) fn text_of(entry: Raw<'_>) -> Option<JsonText<'_>> {
        Entry::read(entry).text.map(|(_, text)| text).filter(|text| !text.is_empty())
    }

    /// Whether an entry carries a payload.
    pub(super) fn is_sealed(entry: Raw<'_>) -> bool {
        let entry = Entry::read(entry);
        entry.signature.is_some() || entry.data.is_some()
    }

    /// Takes one entry. Its text is kept but not shown where another source
    /// has shown it.
    pub(super) fn take(&mut self, entry: Raw<'_>, family: Family, show: bool, ids: &mut Ids, sink: &mut dyn Sink) {
        let entry = Entry::read(entry);
        let text = entry.text.map(|(_, text)| text).filter(|text| !text.is_empty());
        let at = self.slot_for(&entry, family, text.is_some());
        let Some(slot) = self.slots.get_mut(at) else { return };
        slot.text_member = entry.text.map(|(member, _)| member).or(slot.text_member);
        match text {
            Some(text) if show => slot.grow(text, ids, &mut self.scratch, sink),
            Some(text) => {
                let text = text.to_owned_text();
                sink.hold(text.len());
                slot.silent.push_str(&text);
            }
            None => (),
        }
        slot.learn(&entry);
        sink.hold(entry.data.map_or(0, |data| usize::try_from(data.len()).unwrap_or(usize::MAX)));
        if slot.changed && slot.block.is_none() && (slot.is_sealed() || slot.unusual) {
            slot.open_block(ids, sink);
        }
        // Nothing later will tell the fold about a block that is closed.
        if slot.changed && !slot.open && slot.block.is_some() {
            slot.tell(sink);
        }
    }

    /// Something other than thinking comes: every thought here is over.
    pub(super) fn close_open(&mut self, sink: &mut dyn Sink) {
        for slot in self.slots.iter_mut().filter(|slot| slot.open) {
            slot.tell(sink);
            slot.open = false;
            if let Some(block) = slot.block {
                sink.take(Event::Closed { block });
            }
        }
    }

    fn slot_for(&mut self, entry: &Entry<'_>, family: Family, has_text: bool) -> usize {
        let last = self.slots.len().checked_sub(1);
        let same = |slot: &Slot| slot.family == family && slot.kind == entry.kind();
        let known = match self.assemble_by {
            AssembleBy::DetailIndexType if family == Family::ReasoningDetails => {
                self.slots.iter().rposition(|slot| same(slot) && slot.index == entry.index)
            }
            AssembleBy::None | AssembleBy::Index | AssembleBy::OutputIndex | AssembleBy::DetailIndexType => {
                last.filter(|at| self.slots.get(*at).is_some_and(|slot| same(slot) && !slot.is_sealed()))
            }
        };
        let continues = known.filter(|at| {
            self.slots.get(*at).is_some_and(|slot| {
                // Text that resumes after an answer is a thought of its own.
                (!has_text || slot.open || slot.block.is_none())
                    // Two whole payloads under one key are two units.
                    && !(entry.id.said().is_some() && slot.id.is_some() && entry.id.said() != slot.id.as_deref())
            })
        });
        continues.unwrap_or_else(|| {
            self.slots.push(Slot::new(family, entry, self.delta_mode));
            self.slots.len() - 1
        })
    }
}

impl<'a> Entry<'a> {
    fn read(entry: Raw<'a>) -> Entry<'a> {
        let mut out = Entry {
            raw: entry,
            kind: Word::default(),
            index: None,
            text: None,
            signature: None,
            data: None,
            id: Word::default(),
        };
        let filled = |value| JsonText::of(value).filter(|text| !text.is_empty());
        let text = |name, value| JsonText::of(value).map(|text| (name, text));
        each_entry(entry, |key, value| match key {
            "type" => out.kind = word_of(value),
            "index" => out.index = count_of(value),
            "text" => out.text = text("text", value).or(out.text),
            "summary" => out.text = text("summary", value).or(out.text),
            "thinking" => out.text = text("thinking", value).or(out.text),
            "signature" => out.signature = filled(value),
            "data" => out.data = filled(value),
            "id" => out.id = word_of(value),
            _ => (),
        });
        out
    }

    fn kind(&self) -> &str {
        self.kind.said().unwrap_or("")
    }
}

impl Slot {
    fn new(family: Family, entry: &Entry<'_>, mode: DeltaMode) -> Slot {
        Slot {
            family,
            index: entry.index,
            kind: entry.kind().to_owned(),
            block: None,
            open: false,
            freshness: Freshness::new(mode),
            held: String::new(),
            signature: None,
            data: String::new(),
            id: None,
            members: Vec::new(),
            unusual: false,
            silent: String::new(),
            text_member: None,
            changed: true,
        }
    }

    fn is_sealed(&self) -> bool {
        self.signature.is_some() || !self.data.is_empty()
    }

    fn grow(&mut self, text: JsonText<'_>, ids: &mut Ids, scratch: &mut String, sink: &mut dyn Sink) {
        if self.freshness.is_plain() {
            text.pieces(scratch, |piece| self.grow_piece(piece, ids, sink));
            return;
        }
        let text = text.to_owned_text();
        let mut freshness = std::mem::take(&mut self.freshness);
        self.grow_piece(freshness.new_part(&text), ids, sink);
        self.freshness = freshness;
    }

    fn grow_piece(&mut self, text: &str, ids: &mut Ids, sink: &mut dyn Sink) {
        if let Some(block) = self.block {
            if !text.is_empty() {
                sink.take(Event::Grew { block, text });
            }
        } else if text.trim().is_empty() {
            self.held.push_str(text);
            sink.hold(text.len());
        } else {
            self.open_block(ids, sink);
            if let Some(block) = self.block {
                sink.take(Event::Grew { block, text });
            }
        }
    }

    fn open_block(&mut self, ids: &mut Ids, sink: &mut dyn Sink) {
        let block = ids.next();
        let opening = Opening::Thinking { source: self.family.field(), id: self.id.as_deref() };
        sink.take(Event::Opened { block, opening });
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            sink.take(Event::Grew { block, text: &held });
        }
        self.block = Some(block);
        self.open = true;
    }

    fn learn(&mut self, entry: &Entry<'_>) {
        if let Some(signature) = entry.signature {
            self.signature = Some(signature.to_owned_text());
            self.changed = true;
        }
        if let Some(data) = entry.data {
            self.data.push_str(&data.to_owned_text());
            self.changed = true;
        }
        if let (Some(id), None) = (entry.id.said(), &self.id) {
            self.id = Some(id.to_owned());
            self.changed = true;
        }
        let text_member = entry.text.map(|(member, _)| member);
        each_entry(entry.raw, |key, value| {
            if Some(key) == text_member {
                return;
            }
            self.unusual |= !USUAL.contains(&key) && key != "data" && !is_void(value);
            match self.members.iter_mut().find(|(known, _)| known == key) {
                Some((_, known)) if known == value.get() || value.kind() == Kind::Null => return,
                Some((_, known)) => value.get().clone_into(known),
                None => self.members.push((key.to_owned(), value.get().to_owned())),
            }
            self.changed = true;
        });
    }

    /// Seals and the entry itself, as far as they are known.
    fn tell(&mut self, sink: &mut dyn Sink) {
        let Some(block) = self.block else { return };
        if !std::mem::take(&mut self.changed) {
            return;
        }
        let mut native = ObjectWriter::default();
        for (key, value) in &self.members {
            match key.as_str() {
                "data" if !self.data.is_empty() => native.push(key, &quote(&self.data)),
                // Padding that an earlier fragment had no text for.
                _ if Some(key.as_str()) == self.text_member => (),
                _ => native.push(key, value),
            }
        }
        // Text that the block does not hold stays in the entry.
        let text_member = self.text_member.filter(|_| self.silent.is_empty());
        if let Some(member) = self.text_member.filter(|_| !self.silent.is_empty()) {
            native.push(member, &quote(&self.silent));
        }
        if let Some(id) = &self.id {
            sink.take(Event::Identified { block, id });
        }
        // The entry first: whoever hears of a late seal looks at the whole block.
        sink.take(Event::Kept { block, json: &native.finish(), text_member });
        if let Some(payload) = &self.signature {
            sink.take(Event::Sealed { block, kind: SealKind::Signature, payload });
        }
        if !self.data.is_empty() {
            sink.take(Event::Sealed { block, kind: SealKind::Encrypted, payload: &self.data });
        }
    }
}
