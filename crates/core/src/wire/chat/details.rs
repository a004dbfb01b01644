//! Structured thinking next to the content: `reasoning_details` (OpenRouter and
//! compatible servers) and `thinking_blocks` (LiteLLM).
//!
//! Entries are fragments. Entries with the same index and type form one block as
//! long as only thinking comes between them; a signature or an encrypted payload
//! may come later and is still assigned to its block.

use super::delta_mode_in::DeltaModeReader;
use crate::block::SealKind;
use crate::dialect::{AssembleBy, DeltaMode};
use crate::event::{BlockId, BlockOpening, Event, Sink};
use crate::json_text::{
    JsonKind, JsonString, JsonText, ObjectWriter, Raw, count_of, each_member, is_empty_value, quote, string_of,
};
use crate::wire::implicit_blocks::BlockIds;

#[derive(Debug)]
pub(super) struct DetailsReader {
    details: Vec<PartialDetail>,
    assemble_by: AssembleBy,
    delta_mode: DeltaMode,
    scratch: String,
}

/// The array that an entry came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DetailList {
    ReasoningDetails,
    ThinkingBlocks,
}

#[derive(Debug)]
struct PartialDetail {
    list: DetailList,
    index: Option<u64>,
    kind: String,
    block: Option<BlockId>,
    open: bool,
    delta_mode: DeltaModeReader,
    /// Whitespace before the first visible character.
    leading_whitespace: String,
    signature: Option<String>,
    data: String,
    id: Option<String>,
    /// All members but the text, in order of first appearance, each with its last
    /// value that is not null.
    members: Vec<(String, String)>,
    text_member: Option<&'static str>,
    /// There is something that was not emitted yet.
    changed: bool,
    /// It has a member that is worth keeping even without text or seal.
    has_extra_members: bool,
    /// Text that another source already emitted.
    hidden_text: String,
}

/// The members of one entry, borrowed.
struct DetailEntry<'a> {
    raw: Raw<'a>,
    kind: JsonString<'a>,
    index: Option<u64>,
    text: Option<(&'static str, JsonText<'a>)>,
    signature: Option<JsonText<'a>>,
    data: Option<JsonText<'a>>,
    id: JsonString<'a>,
}

/// Members that hold the text or that every entry has.
const COMMON_MEMBERS: [&str; 8] = ["type", "index", "format", "text", "summary", "thinking", "signature", "id"];

impl DetailList {
    pub(super) fn field(self) -> &'static str {
        match self {
            DetailList::ReasoningDetails => "reasoning_details",
            DetailList::ThinkingBlocks => "thinking_blocks",
        }
    }
}

impl DetailsReader {
    pub(super) fn new(assemble_by: AssembleBy, delta_mode: DeltaMode) -> DetailsReader {
        DetailsReader { details: Vec::new(), assemble_by, delta_mode, scratch: String::new() }
    }

    pub(super) fn is_open(&self) -> bool {
        self.details.iter().any(|detail| detail.open)
    }

    /// The text of an entry.
    pub(super) fn text_of(entry: Raw<'_>) -> Option<JsonText<'_>> {
        DetailEntry::read(entry).text.map(|(_, text)| text).filter(|text| !text.is_empty())
    }

    /// Whether an entry has a signature or an encrypted payload.
    pub(super) fn is_sealed(entry: Raw<'_>) -> bool {
        let entry = DetailEntry::read(entry);
        entry.signature.is_some() || entry.data.is_some()
    }

    /// Reads one entry. If `show` is false, another source already emitted the
    /// text, so it is kept but not emitted.
    pub(super) fn take(
        &mut self,
        entry: Raw<'_>,
        list: DetailList,
        show: bool,
        ids: &mut BlockIds,
        sink: &mut dyn Sink,
    ) {
        let entry = DetailEntry::read(entry);
        let text = entry.text.map(|(_, text)| text).filter(|text| !text.is_empty());
        let at = self.detail_for(&entry, list, text.is_some());
        let Some(detail) = self.details.get_mut(at) else { return };
        detail.text_member = entry.text.map(|(member, _)| member).or(detail.text_member);
        match text {
            Some(text) if show => detail.grow(text, ids, &mut self.scratch, sink),
            Some(text) => {
                let text = text.to_owned_text();
                sink.buffered(text.len());
                detail.hidden_text.push_str(&text);
            }
            None => (),
        }
        detail.record(&entry);
        sink.buffered(entry.data.map_or(0, |data| usize::try_from(data.len()).unwrap_or(usize::MAX)));
        if detail.changed && detail.block.is_none() && (detail.is_sealed() || detail.has_extra_members) {
            detail.open_block(ids, sink);
        }
        // A closed block gets no later chance to emit this.
        if detail.changed && !detail.open && detail.block.is_some() {
            detail.emit(sink);
        }
    }

    /// Closes all open blocks, because something other than thinking comes next.
    pub(super) fn close_open(&mut self, sink: &mut dyn Sink) {
        for detail in self.details.iter_mut().filter(|detail| detail.open) {
            detail.emit(sink);
            detail.open = false;
            if let Some(block) = detail.block {
                sink.take(Event::Closed { block });
            }
        }
    }

    fn detail_for(&mut self, entry: &DetailEntry<'_>, list: DetailList, has_text: bool) -> usize {
        let last = self.details.len().checked_sub(1);
        let same = |detail: &PartialDetail| detail.list == list && detail.kind == entry.kind();
        let known = match self.assemble_by {
            AssembleBy::DetailIndexType if list == DetailList::ReasoningDetails => {
                self.details.iter().rposition(|detail| same(detail) && detail.index == entry.index)
            }
            AssembleBy::None | AssembleBy::Index | AssembleBy::OutputIndex | AssembleBy::DetailIndexType => {
                last.filter(|at| self.details.get(*at).is_some_and(|detail| same(detail) && !detail.is_sealed()))
            }
        };
        let continues = known.filter(|at| {
            self.details.get(*at).is_some_and(|detail| {
                // Thinking that resumes after answer text is a new block.
                (!has_text || detail.open || detail.block.is_none())
                    // Two complete payloads with different ids are two blocks.
                    && !(entry.id.non_empty().is_some() && detail.id.is_some() && entry.id.non_empty() != detail.id.as_deref())
            })
        });
        continues.unwrap_or_else(|| {
            self.details.push(PartialDetail::new(list, entry, self.delta_mode));
            self.details.len() - 1
        })
    }
}

impl<'a> DetailEntry<'a> {
    fn read(entry: Raw<'a>) -> DetailEntry<'a> {
        let mut out = DetailEntry {
            raw: entry,
            kind: JsonString::default(),
            index: None,
            text: None,
            signature: None,
            data: None,
            id: JsonString::default(),
        };
        let filled = |value| JsonText::of(value).filter(|text| !text.is_empty());
        let text = |name, value| JsonText::of(value).map(|text| (name, text));
        each_member(entry, |key, value| match key {
            "type" => out.kind = string_of(value),
            "index" => out.index = count_of(value),
            "text" => out.text = text("text", value).or(out.text),
            "summary" => out.text = text("summary", value).or(out.text),
            "thinking" => out.text = text("thinking", value).or(out.text),
            "signature" => out.signature = filled(value),
            "data" => out.data = filled(value),
            "id" => out.id = string_of(value),
            _ => (),
        });
        out
    }

    fn kind(&self) -> &str {
        self.kind.non_empty().unwrap_or("")
    }
}

impl PartialDetail {
    fn new(list: DetailList, entry: &DetailEntry<'_>, mode: DeltaMode) -> PartialDetail {
        PartialDetail {
            list,
            index: entry.index,
            kind: entry.kind().to_owned(),
            block: None,
            open: false,
            delta_mode: DeltaModeReader::new(mode),
            leading_whitespace: String::new(),
            signature: None,
            data: String::new(),
            id: None,
            members: Vec::new(),
            has_extra_members: false,
            hidden_text: String::new(),
            text_member: None,
            changed: true,
        }
    }

    fn is_sealed(&self) -> bool {
        self.signature.is_some() || !self.data.is_empty()
    }

    fn grow(&mut self, text: JsonText<'_>, ids: &mut BlockIds, scratch: &mut String, sink: &mut dyn Sink) {
        if self.delta_mode.is_incremental() {
            text.pieces(scratch, |piece| self.grow_piece(piece, ids, sink));
            return;
        }
        let text = text.to_owned_text();
        let mut delta_mode = std::mem::take(&mut self.delta_mode);
        self.grow_piece(delta_mode.new_text(&text), ids, sink);
        self.delta_mode = delta_mode;
    }

    fn grow_piece(&mut self, text: &str, ids: &mut BlockIds, sink: &mut dyn Sink) {
        if let Some(block) = self.block {
            if !text.is_empty() {
                sink.take(Event::Grew { block, text });
            }
        } else if text.trim().is_empty() {
            self.leading_whitespace.push_str(text);
            sink.buffered(text.len());
        } else {
            self.open_block(ids, sink);
            if let Some(block) = self.block {
                sink.take(Event::Grew { block, text });
            }
        }
    }

    fn open_block(&mut self, ids: &mut BlockIds, sink: &mut dyn Sink) {
        let block = ids.next();
        let opening = BlockOpening::Thinking { source: self.list.field(), id: self.id.as_deref() };
        sink.take(Event::Opened { block, opening });
        let leading_whitespace = std::mem::take(&mut self.leading_whitespace);
        if !leading_whitespace.is_empty() {
            sink.take(Event::Grew { block, text: &leading_whitespace });
        }
        self.block = Some(block);
        self.open = true;
    }

    fn record(&mut self, entry: &DetailEntry<'_>) {
        if let Some(signature) = entry.signature {
            self.signature = Some(signature.to_owned_text());
            self.changed = true;
        }
        if let Some(data) = entry.data {
            self.data.push_str(&data.to_owned_text());
            self.changed = true;
        }
        if let (Some(id), None) = (entry.id.non_empty(), &self.id) {
            self.id = Some(id.to_owned());
            self.changed = true;
        }
        let text_member = entry.text.map(|(member, _)| member);
        each_member(entry.raw, |key, value| {
            if Some(key) == text_member {
                return;
            }
            self.has_extra_members |= !COMMON_MEMBERS.contains(&key) && key != "data" && !is_empty_value(value);
            match self.members.iter_mut().find(|(known, _)| known == key) {
                Some((_, known)) if known == value.get() || value.kind() == JsonKind::Null => return,
                Some((_, known)) => value.get().clone_into(known),
                None => self.members.push((key.to_owned(), value.get().to_owned())),
            }
            self.changed = true;
        });
    }

    /// Emits the seals and the entry as known so far.
    fn emit(&mut self, sink: &mut dyn Sink) {
        let Some(block) = self.block else { return };
        if !std::mem::take(&mut self.changed) {
            return;
        }
        let mut native = ObjectWriter::default();
        for (key, value) in &self.members {
            match key.as_str() {
                "data" if !self.data.is_empty() => native.push(key, &quote(&self.data)),
                // Empty text of an earlier fragment.
                _ if Some(key.as_str()) == self.text_member => (),
                _ => native.push(key, value),
            }
        }
        // Text that was not emitted stays in the entry.
        let text_member = self.text_member.filter(|_| self.hidden_text.is_empty());
        if let Some(member) = self.text_member.filter(|_| !self.hidden_text.is_empty()) {
            native.push(member, &quote(&self.hidden_text));
        }
        if let Some(id) = &self.id {
            sink.take(Event::Identified { block, id });
        }
        // The entry comes first: a sink that gets a late seal inspects the whole
        // block.
        sink.take(Event::NativeItem { block, json: &native.finish(), text_member });
        if let Some(payload) = &self.signature {
            sink.take(Event::Sealed { block, kind: SealKind::Signature, payload });
        }
        if !self.data.is_empty() {
            sink.take(Event::Sealed { block, kind: SealKind::Encrypted, payload: &self.data });
        }
    }
}
