//! Assembles output items, keyed by their index in the output. Item ids are not
//! used as keys, because some hosts change them mid-stream.

use super::types::ResponsesItem;
use crate::block::SealKind;
use crate::dialect::FinalFrom;
use crate::event::{BlockId, BlockOpening, Event, RestatedPart, Sink};
use crate::json_text::{
    JsonKind, JsonString, JsonText, Raw, at_path, each_element, each_member, member, range_of, read, string_of, text_of,
};
use crate::wire::implicit_blocks::BlockIds;

#[derive(Debug)]
pub(super) struct OutputItems {
    items: Vec<ItemIn>,
    /// The ids of items whose events have no index, in order.
    unnumbered: Vec<String>,
    pub(super) ids: BlockIds,
    final_from: FinalFrom,
    scratch: String,
    pub(super) called: bool,
    pub(super) refused: bool,
}

#[derive(Debug)]
struct ItemIn {
    index: u64,
    kind: ItemKindIn,
    block: BlockId,
    /// The part that is being received.
    part: Option<(PartKind, u64)>,
    grew: bool,
    open: bool,
    /// A payload sent before the item was done; used only as a fallback.
    early: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemKindIn {
    Reasoning,
    Message,
    Call,
    Unmodelled,
}

/// The two kinds of text in a reasoning item, and the text of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartKind {
    Summary,
    ReasoningText,
    OutputText,
}

impl ItemKindIn {
    fn of(item_type: &JsonString<'_>) -> ItemKindIn {
        match item_type.non_empty() {
            Some("reasoning") => ItemKindIn::Reasoning,
            Some("message") => ItemKindIn::Message,
            Some("function_call" | "custom_tool_call") => ItemKindIn::Call,
            _ => ItemKindIn::Unmodelled,
        }
    }
}

impl OutputItems {
    pub(super) fn new(final_from: FinalFrom) -> OutputItems {
        OutputItems {
            items: Vec::new(),
            unnumbered: Vec::new(),
            ids: BlockIds::default(),
            final_from,
            scratch: String::new(),
            called: false,
            refused: false,
        }
    }

    /// The index of an item in events that have only its id: its place among the
    /// ids. Without an id there is one item.
    pub(super) fn index_by_id(&mut self, item_id: Option<&str>, item: Option<Raw<'_>>) -> u64 {
        let item: Option<ResponsesItem<'_>> = item.map(read);
        let own = item.as_ref().and_then(|item| item.id.non_empty().or(item.call_id.non_empty()));
        let Some(id) = item_id.or(own) else { return 0 };
        let at = self.unnumbered.iter().position(|known| known == id).unwrap_or_else(|| {
            self.unnumbered.push(id.to_owned());
            self.unnumbered.len() - 1
        });
        at as u64
    }

    pub(super) fn knows(&self, index: u64) -> bool {
        self.items.iter().any(|entry| entry.index == index)
    }

    pub(super) fn any_open(&self) -> bool {
        self.items.iter().any(|entry| entry.open)
    }

    pub(super) fn added(&mut self, index: u64, raw: Raw<'_>, sink: &mut dyn Sink) {
        let item: ResponsesItem<'_> = read(raw);
        let at = self.item_for(index, &item, sink);
        if let Some(entry) = self.items.get_mut(at) {
            entry.early = item.encrypted_content.and_then(text_of);
        }
    }

    /// A summary item or a reasoning text part begins.
    pub(super) fn part(&mut self, index: u64, part: (PartKind, u64), sink: &mut dyn Sink) {
        if let Some(entry) = self.items.iter_mut().find(|entry| entry.index == index && entry.open) {
            entry.enter(part, sink);
        }
    }

    pub(super) fn grew(&mut self, index: u64, part: (PartKind, u64), text: Raw<'_>, sink: &mut dyn Sink) {
        let Some(text) = JsonText::of(text).filter(|text| !text.is_empty()) else { return };
        let at = self.open_item_for(index, part.0, sink);
        let Some(entry) = self.items.get_mut(at) else { return };
        entry.enter(part, sink);
        entry.grow(text, &mut self.scratch, sink);
    }

    pub(super) fn arguments_grew(&mut self, index: u64, text: Raw<'_>, sink: &mut dyn Sink) {
        let Some(entry) = self.items.iter_mut().find(|entry| entry.index == index) else { return };
        if let (ItemKindIn::Call, true, Some(text)) = (entry.kind, entry.open, JsonText::of(text)) {
            entry.grow(text, &mut self.scratch, sink);
        }
    }

    /// The complete arguments, used only if no delta came.
    pub(super) fn arguments_done(&mut self, index: u64, text: Raw<'_>, sink: &mut dyn Sink) {
        if self.items.iter().any(|entry| entry.index == index && !entry.grew) {
            self.arguments_grew(index, text, sink);
        }
    }

    /// The final item, which overrides its deltas.
    pub(super) fn done(&mut self, index: u64, raw: Raw<'_>, sink: &mut dyn Sink) {
        let item: ResponsesItem<'_> = read(raw);
        let at = self.item_for(index, &item, sink);
        let Some(entry) = self.items.get_mut(at).filter(|entry| entry.open) else { return };
        let block = entry.block;
        let long_text = entry.long_text(raw, &item);
        match entry.kind {
            ItemKindIn::Reasoning => {
                entry.restate_reasoning(&item, sink);
                if let Some(payload) = item.encrypted_content.and_then(text_of) {
                    sink.take(Event::Sealed { block, kind: SealKind::Encrypted, payload: &payload });
                }
            }
            ItemKindIn::Message => self.refused |= entry.restate_message(&item, sink),
            ItemKindIn::Call => {
                if let Some(text) = item.arguments.or(item.input).filter(|_| !entry.grew).and_then(JsonText::of) {
                    entry.grow(text, &mut self.scratch, sink);
                }
            }
            ItemKindIn::Unmodelled => (),
        }
        match long_text.and_then(|path| Some((without_value(raw, &path)?, path))) {
            Some((json, path)) => sink.take(Event::NativeItem { block, json: &json, text_member: Some(&path) }),
            None => sink.take(Event::NativeItem { block, json: raw.get(), text_member: None }),
        }
        sink.take(Event::Closed { block });
        entry.open = false;
    }

    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        for entry in self.items.iter_mut().filter(|entry| entry.open) {
            let early = entry.early.take().filter(|_| self.final_from == FinalFrom::Stream);
            if let Some(payload) = early {
                sink.take(Event::Sealed { block: entry.block, kind: SealKind::Encrypted, payload: &payload });
            }
            sink.take(Event::Closed { block: entry.block });
            entry.open = false;
        }
    }

    /// The position of an item, opened if it is new.
    fn item_for(&mut self, index: u64, item: &ResponsesItem<'_>, sink: &mut dyn Sink) -> usize {
        if let Some(at) = self.items.iter().position(|entry| entry.index == index) {
            return at;
        }
        let kind = ItemKindIn::of(&item.kind);
        self.called |= kind == ItemKindIn::Call;
        let opening = match kind {
            ItemKindIn::Reasoning => BlockOpening::Thinking { source: "reasoning", id: item.id.non_empty() },
            ItemKindIn::Message => BlockOpening::Text,
            ItemKindIn::Call => {
                let id = item.call_id.non_empty().or(item.id.non_empty());
                BlockOpening::ToolCall { id, name: item.name.non_empty().unwrap_or("") }
            }
            ItemKindIn::Unmodelled => BlockOpening::Unmodelled,
        };
        self.open(index, kind, opening, sink)
    }

    /// The position of the open item for a text delta, opened if the host never
    /// announced it.
    fn open_item_for(&mut self, index: u64, part: PartKind, sink: &mut dyn Sink) -> usize {
        if let Some(at) = self.items.iter().rposition(|entry| entry.index == index && entry.open) {
            return at;
        }
        let (kind, opening) = match part {
            PartKind::Summary | PartKind::ReasoningText => {
                (ItemKindIn::Reasoning, BlockOpening::Thinking { source: "reasoning", id: None })
            }
            PartKind::OutputText => (ItemKindIn::Message, BlockOpening::Text),
        };
        self.open(index, kind, opening, sink)
    }

    fn open(&mut self, index: u64, kind: ItemKindIn, opening: BlockOpening<'_>, sink: &mut dyn Sink) -> usize {
        let block = self.ids.next();
        sink.take(Event::Opened { block, opening });
        self.items.push(ItemIn { index, kind, block, part: None, grew: false, open: true, early: None });
        self.items.len() - 1
    }
}

/// A text from this length on is kept only once.
const LONG_TEXT: usize = 1 << 18;

/// An item with an empty string in place of the value at this path.
fn without_value(item: Raw<'_>, path: &str) -> Option<String> {
    let range = range_of(item.get(), at_path(item, path.strip_prefix('.')?)?)?;
    Some(format!("{}\"\"{}", item.get().get(..range.start)?, item.get().get(range.end..)?))
}

impl ItemIn {
    fn enter(&mut self, part: (PartKind, u64), sink: &mut dyn Sink) {
        if self.part == Some(part) {
            return;
        }
        let first = self.part.is_none();
        self.part = Some(part);
        let index = u32::try_from(part.1).unwrap_or(u32::MAX);
        match part.0 {
            PartKind::Summary => sink.take(Event::Item { block: self.block, index }),
            // Reasoning text parts are joined with a blank line.
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

    /// The path of a long text that the item repeats. The text is then not kept
    /// twice.
    fn long_text(&self, raw: Raw<'_>, item: &ResponsesItem<'_>) -> Option<String> {
        // Looking for it costs time, and only a long text saves memory.
        if raw.get().len() < LONG_TEXT {
            return None;
        }
        match self.kind {
            ItemKindIn::Message => {
                let (mut texts, mut index) = (Vec::new(), 0);
                each_element(item.content?, |part| {
                    each_member(part, |key, value| {
                        if matches!(key, "text" | "refusal") && value.kind() == JsonKind::Text {
                            texts.push((format!(".content.{index}.{key}"), value.get().len()));
                        }
                    });
                    index += 1;
                });
                let [(path, length)] = texts.as_slice() else { return None };
                (*length >= LONG_TEXT).then(|| path.clone())
            }
            // After deltas, the item may differ from them.
            ItemKindIn::Call if !self.grew => {
                let name = if item.arguments.is_some() { ".arguments" } else { ".input" };
                let text = item.arguments.or(item.input)?;
                (text.kind() == JsonKind::Text && text.get().len() >= LONG_TEXT).then(|| name.to_owned())
            }
            ItemKindIn::Call | ItemKindIn::Reasoning | ItemKindIn::Unmodelled => None,
        }
    }

    /// The final text of one part, which overrides its deltas. Without deltas it
    /// arrives like one, as in a body that is not streamed.
    fn final_text(&mut self, had_deltas: bool, part: RestatedPart, text: JsonText<'_>, sink: &mut dyn Sink) {
        let block = self.block;
        if had_deltas {
            sink.take(Event::Restated { block, part, text });
            return;
        }
        if let RestatedPart::Item(index) = part {
            sink.take(Event::Item { block, index });
        }
        self.grow(text, &mut String::new(), sink);
    }

    fn restate_reasoning(&mut self, item: &ResponsesItem<'_>, sink: &mut dyn Sink) {
        let (mut index, had_deltas) = (0, self.grew);
        if let Some(summary) = item.summary {
            each_element(summary, |part| {
                if let Some(text) = member(part, "text").and_then(JsonText::of) {
                    self.final_text(had_deltas, RestatedPart::Item(index), text, sink);
                }
                index += 1;
            });
        }
        if let Some(content) = item.content.filter(|_| index == 0) {
            self.restate_whole(content, &["reasoning_text", "text"], "\n\n", sink);
        }
    }

    /// Restates a message; returns whether it is a refusal.
    fn restate_message(&mut self, item: &ResponsesItem<'_>, sink: &mut dyn Sink) -> bool {
        let Some(content) = item.content else { return false };
        self.restate_whole(content, &["output_text", "text", "refusal"], "", sink);
        let mut refused = false;
        each_element(content, |part| refused |= member(part, "refusal").is_some());
        refused
    }

    /// Restates the text of all parts, joined if there are several.
    fn restate_whole(&mut self, content: Raw<'_>, kinds: &[&str], joint: &str, sink: &mut dyn Sink) {
        let mut texts = Vec::new();
        each_element(content, |part| {
            let fits = member(part, "type").map(string_of).is_none_or(|kind| kinds.iter().any(|known| kind.is(known)));
            let text = member(part, "text").or_else(|| member(part, "refusal")).and_then(JsonText::of);
            texts.extend(text.filter(|_| fits));
        });
        let had_deltas = self.grew;
        match texts.as_slice() {
            [] => (),
            [text] => self.final_text(had_deltas, RestatedPart::Whole, *text, sink),
            many => {
                let joined = many.iter().map(|text| text.to_owned_text()).collect::<Vec<_>>().join(joint);
                self.final_text(had_deltas, RestatedPart::Whole, JsonText::plain(&joined), sink);
            }
        }
    }
}
