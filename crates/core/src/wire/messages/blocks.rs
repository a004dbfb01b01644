//! Assembles content blocks from their start, delta and stop events. A whole
//! block is a start that contains everything.

use super::types::MessagesDelta;
use crate::block::SealKind;
use crate::event::{BlockId, BlockOpening, Event, Sink};
use crate::json_text::{JsonText, ObjectWriter, Raw, each_member, is_empty_value, member, text_member};
use crate::wire::implicit_blocks::BlockIds;

#[derive(Debug, Default)]
pub(super) struct ContentBlocks {
    open: Vec<MessagesBlockIn>,
    pub(super) ids: BlockIds,
    scratch: String,
    /// A client tool was called.
    pub(super) called: bool,
}

#[derive(Debug)]
struct MessagesBlockIn {
    index: u64,
    kind: MessagesKindIn,
    /// None for text until its first delta.
    block: Option<BlockId>,
    /// The start event's block, if it must be kept.
    start: String,
    /// The JSON input so far.
    input: String,
    has_input_delta: bool,
    signature: String,
    citations: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessagesKindIn {
    Text,
    Thinking,
    Redacted,
    ToolUse,
    Unmodelled,
}

impl MessagesKindIn {
    fn of(block_type: Option<&str>) -> MessagesKindIn {
        match block_type {
            Some("text") => MessagesKindIn::Text,
            Some("thinking") => MessagesKindIn::Thinking,
            Some("redacted_thinking") => MessagesKindIn::Redacted,
            Some("tool_use") => MessagesKindIn::ToolUse,
            _ => MessagesKindIn::Unmodelled,
        }
    }

    /// The members that the neutral block covers.
    fn modelled(self) -> &'static [&'static str] {
        match self {
            MessagesKindIn::Text => &["type", "text"],
            MessagesKindIn::Thinking => &["type", "thinking", "signature"],
            MessagesKindIn::Redacted => &["type", "data"],
            MessagesKindIn::ToolUse => &["type", "id", "name", "input"],
            MessagesKindIn::Unmodelled => &[],
        }
    }

    fn text_member(self) -> Option<&'static str> {
        match self {
            MessagesKindIn::Text => Some("text"),
            MessagesKindIn::Thinking => Some("thinking"),
            MessagesKindIn::Redacted | MessagesKindIn::ToolUse | MessagesKindIn::Unmodelled => None,
        }
    }
}

impl ContentBlocks {
    pub(super) fn start(&mut self, index: u64, start: Raw<'_>, sink: &mut dyn Sink) {
        let mut block_in = self.open_block(index, start, sink);
        // Already complete, unless deltas follow.
        if block_in.kind == MessagesKindIn::ToolUse {
            block_in.input = input_in(start).map(JsonText::to_owned_text).unwrap_or_default();
        }
        self.open.push(block_in);
    }

    /// A block that contains everything.
    pub(super) fn whole(&mut self, index: u64, whole: Raw<'_>, sink: &mut dyn Sink) {
        let block_in = self.open_block(index, whole, sink);
        if let (MessagesKindIn::ToolUse, Some(block), Some(input)) = (block_in.kind, block_in.block, input_in(whole)) {
            input.pieces(&mut self.scratch, |text| sink.take(Event::Grew { block, text }));
        }
        block_in.close(sink);
    }

    fn open_block(&mut self, index: u64, start: Raw<'_>, sink: &mut dyn Sink) -> MessagesBlockIn {
        // A proxy may start the same block twice.
        self.stop(index, sink);
        let kind = MessagesKindIn::of(text_member(start, "type").as_deref());
        let opening_block = match kind {
            MessagesKindIn::Text => None,
            MessagesKindIn::Thinking
            | MessagesKindIn::Redacted
            | MessagesKindIn::ToolUse
            | MessagesKindIn::Unmodelled => Some(self.ids.next()),
        };
        let mut block_in = MessagesBlockIn {
            index,
            kind,
            block: opening_block,
            start: String::new(),
            input: String::new(),
            has_input_delta: false,
            signature: String::new(),
            citations: Vec::new(),
        };
        block_in.open(start, sink);
        block_in.keep_start(start);
        if let Some(text) = block_in.kind.text_member().and_then(|name| member(start, name)) {
            block_in.grow(text, &mut self.ids, &mut self.scratch, sink);
        }
        self.called |= kind == MessagesKindIn::ToolUse;
        block_in
    }

    pub(super) fn delta(&mut self, index: u64, delta: &MessagesDelta<'_>, sink: &mut dyn Sink) {
        if !self.open.iter().any(|block_in| block_in.index == index) {
            self.start_unannounced(index, delta, sink);
        }
        let Some(block_in) = self.open.iter_mut().rfind(|block_in| block_in.index == index) else { return };
        if let Some(text) = delta.thinking.or(delta.text) {
            block_in.grow(text, &mut self.ids, &mut self.scratch, sink);
        }
        if let Some(json) = delta.partial_json {
            block_in.grow_input(json, &mut self.scratch, sink);
        }
        if let Some(signature) = delta.signature.and_then(JsonText::of) {
            signature.pieces(&mut self.scratch, |piece| {
                block_in.signature.push_str(piece);
                sink.buffered(piece.len());
            });
        }
        if let Some(citation) = delta.citation {
            block_in.citations.push(citation.get().to_owned());
            sink.buffered(citation.get().len());
        }
    }

    /// Starts a block from a delta whose start event was lost.
    fn start_unannounced(&mut self, index: u64, delta: &MessagesDelta<'_>, sink: &mut dyn Sink) {
        let start = match delta {
            MessagesDelta { thinking: Some(_), .. } | MessagesDelta { signature: Some(_), .. } => {
                r#"{"type":"thinking"}"#
            }
            MessagesDelta { partial_json: Some(_), .. } => r#"{"type":"tool_use"}"#,
            MessagesDelta { text: Some(_), .. } => r#"{"type":"text"}"#,
            MessagesDelta { .. } => return,
        };
        if let Ok(start) = Raw::of(start) {
            self.start(index, start, sink);
        }
    }

    pub(super) fn stop(&mut self, index: u64, sink: &mut dyn Sink) {
        if let Some(at) = self.open.iter().position(|block_in| block_in.index == index) {
            self.open.remove(at).close(sink);
        }
    }

    /// The block that the open content block with this index became.
    pub(super) fn block_at(&self, index: u64) -> Option<BlockId> {
        self.open.iter().rfind(|block_in| block_in.index == index).and_then(|block_in| block_in.block)
    }

    pub(super) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        for block_in in std::mem::take(&mut self.open) {
            block_in.close(sink);
        }
    }
}

/// The input of a tool call, if there is one. Some compatible servers send a
/// string.
fn input_in(start: Raw<'_>) -> Option<JsonText<'_>> {
    let input = member(start, "input").filter(|input| !is_empty_value(*input))?;
    Some(JsonText::of(input).unwrap_or(JsonText::plain(input.get())))
}

impl MessagesBlockIn {
    fn open(&mut self, start: Raw<'_>, sink: &mut dyn Sink) {
        let Some(block) = self.block else { return };
        let text = |name| text_member(start, name);
        match self.kind {
            MessagesKindIn::Text => (),
            MessagesKindIn::Thinking => {
                sink.take(Event::Opened { block, opening: BlockOpening::Thinking { source: "thinking", id: None } });
                self.signature = text("signature").unwrap_or_default();
            }
            MessagesKindIn::Redacted => {
                sink.take(Event::Opened {
                    block,
                    opening: BlockOpening::Thinking { source: "redacted_thinking", id: None },
                });
                if let Some(payload) = text("data") {
                    sink.take(Event::Sealed { block, kind: SealKind::Encrypted, payload: &payload });
                }
            }
            MessagesKindIn::ToolUse => {
                let (id, name) = (text("id"), text("name").unwrap_or_default());
                sink.take(Event::Opened { block, opening: BlockOpening::ToolCall { id: id.as_deref(), name: &name } });
            }
            MessagesKindIn::Unmodelled => sink.take(Event::Opened { block, opening: BlockOpening::Unmodelled }),
        }
    }

    /// Keeps the start only if it has members that the block model does not
    /// cover.
    fn keep_start(&mut self, start: Raw<'_>) {
        let modelled = self.kind.modelled();
        let mut extra = self.kind == MessagesKindIn::Unmodelled;
        each_member(start, |key, value| extra |= !modelled.contains(&key) && !is_empty_value(value));
        if extra {
            // The block's own text is not kept twice.
            let is_own = |key: &str| {
                Some(key) == self.kind.text_member() || (key == "input" && self.kind == MessagesKindIn::ToolUse)
            };
            let mut kept = ObjectWriter::default();
            each_member(start, |key, value| {
                if !is_own(key) {
                    kept.push(key, value.get());
                }
            });
            self.start = kept.finish();
        }
    }

    fn grow(&mut self, text: Raw<'_>, ids: &mut BlockIds, scratch: &mut String, sink: &mut dyn Sink) {
        let Some(text) = JsonText::of(text).filter(|text| !text.is_empty()) else { return };
        let block = *self.block.get_or_insert_with(|| {
            let block = ids.next();
            sink.take(Event::Opened { block, opening: BlockOpening::Text });
            block
        });
        text.pieces(scratch, |text| sink.take(Event::Grew { block, text }));
    }

    fn grow_input(&mut self, json: Raw<'_>, scratch: &mut String, sink: &mut dyn Sink) {
        let Some(text) = JsonText::of(json) else { return };
        if !std::mem::replace(&mut self.has_input_delta, true) {
            self.input.clear();
        }
        match (self.kind, self.block) {
            (MessagesKindIn::ToolUse, Some(block)) => {
                text.pieces(scratch, |text| sink.take(Event::Grew { block, text }))
            }
            _ => text.pieces(scratch, |text| {
                self.input.push_str(text);
                sink.buffered(text.len());
            }),
        }
    }

    fn close(self, sink: &mut dyn Sink) {
        let Some(block) = self.block else { return };
        if self.kind == MessagesKindIn::ToolUse && !self.has_input_delta && !self.input.is_empty() {
            sink.take(Event::Grew { block, text: &self.input });
        }
        if !self.signature.is_empty() {
            sink.take(Event::Sealed { block, kind: SealKind::Signature, payload: &self.signature });
        }
        if let Some(native) = self.native() {
            sink.take(Event::NativeItem { block, json: &native, text_member: self.kind.text_member() });
        }
        sink.take(Event::Closed { block });
    }

    /// The block as a whole body would contain it, without its text.
    fn native(&self) -> Option<String> {
        if self.start.is_empty() && self.citations.is_empty() {
            return None;
        }
        let mut out = ObjectWriter::default();
        if self.start.is_empty() {
            out.push("type", "\"text\"");
        }
        if let Ok(start) = Raw::of(&self.start) {
            each_member(start, |key, value| match key {
                "citations" if !self.citations.is_empty() => (),
                "input" if self.has_input_delta && !self.input.trim().is_empty() => out.push(key, &self.input),
                "signature" if self.kind == MessagesKindIn::Thinking => (),
                _ => out.push(key, value.get()),
            });
        }
        if !self.citations.is_empty() {
            out.push("citations", &format!("[{}]", self.citations.join(",")));
        }
        if self.kind == MessagesKindIn::Thinking && !self.signature.is_empty() {
            out.push("signature", &crate::json_text::quote(&self.signature));
        }
        Some(out.finish())
    }
}
