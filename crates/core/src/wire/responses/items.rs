//! Output items, keyed by their place in the output. Item ids are not used as
//! keys: some hosts change them in mid-stream.

use super::types::Item;
use crate::block::SealKind;
use crate::dialect::FinalFrom;
use crate::event::{BlockId, Event, Opening, Part, Sink};
use crate::text::JsonText;
use crate::wire::json::{Raw, Word, compact, each_element, member, read, text_of, word_of};
use crate::wire::speech::Ids;

#[derive(Debug)]
pub(super) struct Items {
    slots: Vec<Slot>,
    pub(super) ids: Ids,
    final_from: FinalFrom,
    scratch: String,
    pub(super) called: bool,
    pub(super) refused: bool,
}

#[derive(Debug)]
struct Slot {
    index: u64,
    kind: Kind,
    block: BlockId,
    /// The part that grows now.
    part: Option<(PartKind, u64)>,
    grew: bool,
    open: bool,
    /// A payload from before the item was done; a last resort.
    early: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reasoning,
    Message,
    Call,
    Unmodelled,
}

/// The two kinds of text a reasoning item may hold, and what a message holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartKind {
    Summary,
    ReasoningText,
    OutputText,
}

impl Kind {
    fn of(word: &Word<'_>) -> Kind {
        match word.said() {
            Some("reasoning") => Kind::Reasoning,
            Some("message") => Kind::Message,
            Some("function_call" | "custom_tool_call") => Kind::Call,
            _ => Kind::Unmodelled,
        }
    }
}

impl Items {
    pub(super) fn new(final_from: FinalFrom) -> Items {
        Items {
            slots: Vec::new(),
            ids: Ids::default(),
            final_from,
            scratch: String::new(),
            called: false,
            refused: false,
        }
    }

    pub(super) fn knows(&self, index: u64) -> bool {
        self.slots.iter().any(|slot| slot.index == index)
    }

    pub(super) fn any_open(&self) -> bool {
        self.slots.iter().any(|slot| slot.open)
    }

    pub(super) fn added(&mut self, index: u64, raw: Raw<'_>, sink: &mut dyn Sink) {
        let item: Item<'_> = read(raw);
        let at = self.slot(index, &item, sink);
        if let Some(slot) = self.slots.get_mut(at) {
            slot.early = item.encrypted_content.and_then(text_of);
        }
    }

    /// A summary item or a raw part begins.
    pub(super) fn part(&mut self, index: u64, part: (PartKind, u64), sink: &mut dyn Sink) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.index == index && slot.open) {
            slot.enter(part, sink);
        }
    }

    pub(super) fn grew(&mut self, index: u64, part: (PartKind, u64), text: Raw<'_>, sink: &mut dyn Sink) {
        let Some(text) = JsonText::of(text).filter(|text| !text.is_empty()) else { return };
        let at = self.open_slot(index, part.0, sink);
        let Some(slot) = self.slots.get_mut(at) else { return };
        slot.enter(part, sink);
        slot.grow(text, &mut self.scratch, sink);
    }

    pub(super) fn arguments_grew(&mut self, index: u64, text: Raw<'_>, sink: &mut dyn Sink) {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.index == index) else { return };
        if let (Kind::Call, true, Some(text)) = (slot.kind, slot.open, JsonText::of(text)) {
            slot.grow(text, &mut self.scratch, sink);
        }
    }

    /// The whole arguments; needed only where no delta came.
    pub(super) fn arguments_done(&mut self, index: u64, text: Raw<'_>, sink: &mut dyn Sink) {
        if self.slots.iter().any(|slot| slot.index == index && !slot.grew) {
            self.arguments_grew(index, text, sink);
        }
    }

    /// The item's final word, which wins over its deltas.
    pub(super) fn done(&mut self, index: u64, raw: Raw<'_>, sink: &mut dyn Sink) {
        let item: Item<'_> = read(raw);
        let at = self.slot(index, &item, sink);
        let Some(slot) = self.slots.get_mut(at).filter(|slot| slot.open) else { return };
        let block = slot.block;
        match slot.kind {
            Kind::Reasoning => {
                slot.restate_reasoning(&item, sink);
                if let Some(payload) = item.encrypted_content.and_then(text_of) {
                    sink.take(Event::Sealed { block, kind: SealKind::Encrypted, payload: &payload });
                }
            }
            Kind::Message => self.refused |= slot.restate_message(&item, sink),
            Kind::Call => {
                if let Some(text) = item.arguments.or(item.input).filter(|_| !slot.grew).and_then(JsonText::of) {
                    slot.grow(text, &mut self.scratch, sink);
                }
            }
            Kind::Unmodelled => (),
        }
        sink.take(Event::Kept { block, json: &compact(raw.get()), text_member: None });
        sink.take(Event::Closed { block });
        slot.open = false;
    }

    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        for slot in self.slots.iter_mut().filter(|slot| slot.open) {
            let early = slot.early.take().filter(|_| self.final_from == FinalFrom::Stream);
            if let Some(payload) = early {
                sink.take(Event::Sealed { block: slot.block, kind: SealKind::Encrypted, payload: &payload });
            }
            sink.take(Event::Closed { block: slot.block });
            slot.open = false;
        }
    }

    /// The slot of an item, opened in the order of the output.
    fn slot(&mut self, index: u64, item: &Item<'_>, sink: &mut dyn Sink) -> usize {
        if let Some(at) = self.slots.iter().position(|slot| slot.index == index) {
            return at;
        }
        let kind = Kind::of(&item.kind);
        self.called |= kind == Kind::Call;
        let opening = match kind {
            Kind::Reasoning => Opening::Thinking { source: "reasoning", id: item.id.said() },
            Kind::Message => Opening::Text,
            Kind::Call => {
                let id = item.call_id.said().or(item.id.said());
                Opening::ToolCall { id, name: item.name.said().unwrap_or("") }
            }
            Kind::Unmodelled => Opening::Unmodelled,
        };
        self.open(index, kind, opening, sink)
    }

    /// The slot that text grows in, opened if the host never said it begins.
    fn open_slot(&mut self, index: u64, part: PartKind, sink: &mut dyn Sink) -> usize {
        if let Some(at) = self.slots.iter().rposition(|slot| slot.index == index && slot.open) {
            return at;
        }
        let (kind, opening) = match part {
            PartKind::Summary | PartKind::ReasoningText => {
                (Kind::Reasoning, Opening::Thinking { source: "reasoning", id: None })
            }
            PartKind::OutputText => (Kind::Message, Opening::Text),
        };
        self.open(index, kind, opening, sink)
    }

    fn open(&mut self, index: u64, kind: Kind, opening: Opening<'_>, sink: &mut dyn Sink) -> usize {
        let block = self.ids.next();
        sink.take(Event::Opened { block, opening });
        self.slots.push(Slot { index, kind, block, part: None, grew: false, open: true, early: None });
        self.slots.len() - 1
    }
}

impl Slot {
    fn enter(&mut self, part: (PartKind, u64), sink: &mut dyn Sink) {
        if self.part == Some(part) {
            return;
        }
        let first = self.part.is_none();
        self.part = Some(part);
        let index = u32::try_from(part.1).unwrap_or(u32::MAX);
        match part.0 {
            PartKind::Summary => sink.take(Event::Item { block: self.block, index }),
            // Raw parts are one text with a blank line between them.
            PartKind::ReasoningText if !first && self.grew => {
                sink.take(Event::Grew { block: self.block, text: "\n\n" })
            }
            PartKind::ReasoningText | PartKind::OutputText => (),
        }
    }

    fn grow(&mut self, text: JsonText<'_>, scratch: &mut String, sink: &mut dyn Sink) {
        let block = self.block;
        self.grew |= !text.is_empty();
        text.pieces(scratch, |text| sink.take(Event::Grew { block, text }));
    }

    fn restate_reasoning(&self, item: &Item<'_>, sink: &mut dyn Sink) {
        let mut index = 0;
        if let Some(summary) = item.summary {
            each_element(summary, |part| {
                if let Some(text) = member(part, "text").and_then(JsonText::of) {
                    sink.take(Event::Restated { block: self.block, part: Part::Item(index), text });
                }
                index += 1;
            });
        }
        if let Some(content) = item.content.filter(|_| index == 0) {
            self.restate_whole(content, &["reasoning_text", "text"], "\n\n", sink);
        }
    }

    /// Whether the message is a refusal.
    fn restate_message(&self, item: &Item<'_>, sink: &mut dyn Sink) -> bool {
        let Some(content) = item.content else { return false };
        self.restate_whole(content, &["output_text", "text", "refusal"], "", sink);
        let mut refused = false;
        each_element(content, |part| refused |= member(part, "refusal").is_some());
        refused
    }

    /// One part is restated as it stands; several are joined first.
    fn restate_whole(&self, content: Raw<'_>, kinds: &[&str], joint: &str, sink: &mut dyn Sink) {
        let mut texts = Vec::new();
        each_element(content, |part| {
            let fits = member(part, "type").map(word_of).is_none_or(|kind| kinds.iter().any(|known| kind.is(known)));
            let text = member(part, "text").or_else(|| member(part, "refusal")).and_then(JsonText::of);
            texts.extend(text.filter(|_| fits));
        });
        match texts.as_slice() {
            [] => (),
            [text] => sink.take(Event::Restated { block: self.block, part: Part::Whole, text: *text }),
            many => {
                let joined = many.iter().map(|text| text.to_owned_text()).collect::<Vec<_>>().join(joint);
                sink.take(Event::Restated { block: self.block, part: Part::Whole, text: JsonText::plain(&joined) });
            }
        }
    }
}
