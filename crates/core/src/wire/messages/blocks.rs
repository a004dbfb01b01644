//! Content blocks: told from their start, their deltas and their stop. A whole
//! block is a start that holds everything.

use super::types::Delta;
use crate::block::SealKind;
use crate::event::{BlockId, Event, Opening, Sink};
use crate::text::JsonText;
use crate::wire::json::{ObjectWriter, Raw, each_entry, is_void, member, text_member, text_of};
use crate::wire::speech::Ids;

#[derive(Debug, Default)]
pub(super) struct Blocks {
    open: Vec<Slot>,
    pub(super) ids: Ids,
    scratch: String,
    /// A client tool was called.
    pub(super) called: bool,
}

#[derive(Debug)]
struct Slot {
    index: u64,
    kind: Kind,
    /// None for text until its first letter comes.
    block: Option<BlockId>,
    /// The block as its start said it.
    start: String,
    /// Fragments of a JSON input.
    input: String,
    has_input_delta: bool,
    signature: String,
    citations: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Redacted,
    ToolUse,
    Unmodelled,
}

impl Kind {
    fn of(word: Option<&str>) -> Kind {
        match word {
            Some("text") => Kind::Text,
            Some("thinking") => Kind::Thinking,
            Some("redacted_thinking") => Kind::Redacted,
            Some("tool_use") => Kind::ToolUse,
            _ => Kind::Unmodelled,
        }
    }

    /// The members that the neutral block holds already.
    fn modelled(self) -> &'static [&'static str] {
        match self {
            Kind::Text => &["type", "text"],
            Kind::Thinking => &["type", "thinking", "signature"],
            Kind::Redacted => &["type", "data"],
            Kind::ToolUse => &["type", "id", "name", "input"],
            Kind::Unmodelled => &[],
        }
    }

    fn text_member(self) -> Option<&'static str> {
        match self {
            Kind::Text => Some("text"),
            Kind::Thinking => Some("thinking"),
            Kind::Redacted | Kind::ToolUse | Kind::Unmodelled => None,
        }
    }
}

impl Blocks {
    pub(super) fn start(&mut self, index: u64, start: Raw<'_>, sink: &mut dyn Sink) {
        // A proxy may start a block it has started.
        self.stop(index, sink);
        let kind = Kind::of(text_member(start, "type").as_deref());
        let opening_block = match kind {
            Kind::Text => None,
            Kind::Thinking | Kind::Redacted | Kind::ToolUse | Kind::Unmodelled => Some(self.ids.next()),
        };
        let mut slot = Slot {
            index,
            kind,
            block: opening_block,
            start: String::new(),
            input: String::new(),
            has_input_delta: false,
            signature: String::new(),
            citations: Vec::new(),
        };
        slot.open(start, sink);
        slot.keep_start(start);
        if let Some(text) = slot.kind.text_member().and_then(|name| member(start, name)) {
            slot.grow(text, &mut self.ids, &mut self.scratch, sink);
        }
        self.called |= kind == Kind::ToolUse;
        self.open.push(slot);
    }

    pub(super) fn delta(&mut self, index: u64, delta: &Delta<'_>, sink: &mut dyn Sink) {
        if !self.open.iter().any(|slot| slot.index == index) {
            self.start_unannounced(index, delta, sink);
        }
        let Some(slot) = self.open.iter_mut().rfind(|slot| slot.index == index) else { return };
        if let Some(text) = delta.thinking.or(delta.text) {
            slot.grow(text, &mut self.ids, &mut self.scratch, sink);
        }
        if let Some(json) = delta.partial_json {
            slot.grow_input(json, &mut self.scratch, sink);
        }
        if let Some(signature) = delta.signature.and_then(JsonText::of) {
            signature.pieces(&mut self.scratch, |piece| {
                slot.signature.push_str(piece);
                sink.hold(piece.len());
            });
        }
        if let Some(citation) = delta.citation {
            slot.citations.push(citation.get().to_owned());
            sink.hold(citation.get().len());
        }
    }

    /// A delta whose start was lost says itself what it belongs to.
    fn start_unannounced(&mut self, index: u64, delta: &Delta<'_>, sink: &mut dyn Sink) {
        let start = match delta {
            Delta { thinking: Some(_), .. } | Delta { signature: Some(_), .. } => r#"{"type":"thinking"}"#,
            Delta { partial_json: Some(_), .. } => r#"{"type":"tool_use"}"#,
            Delta { text: Some(_), .. } => r#"{"type":"text"}"#,
            Delta { .. } => return,
        };
        if let Ok(start) = Raw::of(start) {
            self.start(index, start, sink);
        }
    }

    pub(super) fn stop(&mut self, index: u64, sink: &mut dyn Sink) {
        if let Some(at) = self.open.iter().position(|slot| slot.index == index) {
            self.open.remove(at).close(sink);
        }
    }

    pub(super) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        for slot in std::mem::take(&mut self.open) {
            slot.close(sink);
        }
    }
}

impl Slot {
    fn open(&mut self, start: Raw<'_>, sink: &mut dyn Sink) {
        let Some(block) = self.block else { return };
        let text = |name| text_member(start, name);
        match self.kind {
            Kind::Text => (),
            Kind::Thinking => {
                sink.take(Event::Opened { block, opening: Opening::Thinking { source: "thinking", id: None } });
                self.signature = text("signature").unwrap_or_default();
            }
            Kind::Redacted => {
                sink.take(Event::Opened {
                    block,
                    opening: Opening::Thinking { source: "redacted_thinking", id: None },
                });
                if let Some(payload) = text("data") {
                    sink.take(Event::Sealed { block, kind: SealKind::Encrypted, payload: &payload });
                }
            }
            Kind::ToolUse => {
                let (id, name) = (text("id"), text("name").unwrap_or_default());
                sink.take(Event::Opened { block, opening: Opening::ToolCall { id: id.as_deref(), name: &name } });
            }
            Kind::Unmodelled => sink.take(Event::Opened { block, opening: Opening::Unmodelled }),
        }
    }

    /// The start is kept only where something in it has no place in the model.
    fn keep_start(&mut self, start: Raw<'_>) {
        let modelled = self.kind.modelled();
        let mut extra = self.kind == Kind::Unmodelled;
        each_entry(start, |key, value| extra |= !modelled.contains(&key) && !is_void(value));
        if extra {
            start.get().clone_into(&mut self.start);
        }
        if self.kind == Kind::ToolUse
            && let Some(input) = member(start, "input").filter(|input| !is_void(*input))
        {
            // Complete already, unless deltas follow. Some imitators send text.
            self.input = text_of(input).unwrap_or_else(|| input.get().to_owned());
        }
    }

    fn grow(&mut self, text: Raw<'_>, ids: &mut Ids, scratch: &mut String, sink: &mut dyn Sink) {
        let Some(text) = JsonText::of(text).filter(|text| !text.is_empty()) else { return };
        let block = *self.block.get_or_insert_with(|| {
            let block = ids.next();
            sink.take(Event::Opened { block, opening: Opening::Text });
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
            (Kind::ToolUse, Some(block)) => text.pieces(scratch, |text| sink.take(Event::Grew { block, text })),
            _ => text.pieces(scratch, |text| {
                self.input.push_str(text);
                sink.hold(text.len());
            }),
        }
    }

    fn close(self, sink: &mut dyn Sink) {
        let Some(block) = self.block else { return };
        if self.kind == Kind::ToolUse && !self.has_input_delta && !self.input.is_empty() {
            sink.take(Event::Grew { block, text: &self.input });
        }
        if !self.signature.is_empty() {
            sink.take(Event::Sealed { block, kind: SealKind::Signature, payload: &self.signature });
        }
        if let Some(native) = self.native() {
            sink.take(Event::Kept { block, json: &native, text_member: self.kind.text_member() });
        }
        sink.take(Event::Closed { block });
    }

    /// The block as it would have come whole, without its text.
    fn native(&self) -> Option<String> {
        if self.start.is_empty() && self.citations.is_empty() {
            return None;
        }
        let mut out = ObjectWriter::default();
        if self.start.is_empty() {
            out.push("type", "\"text\"");
        }
        if let Ok(start) = Raw::of(&self.start) {
            each_entry(start, |key, value| match key {
                "citations" if !self.citations.is_empty() => (),
                "input" if self.kind == Kind::ToolUse => (),
                "input" if self.has_input_delta && !self.input.trim().is_empty() => out.push(key, &self.input),
                "signature" if self.kind == Kind::Thinking => (),
                _ if Some(key) == self.kind.text_member() => (),
                _ => out.push(key, value.get()),
            });
        }
        if !self.citations.is_empty() {
            out.push("citations", &format!("[{}]", self.citations.join(",")));
        }
        if self.kind == Kind::Thinking && !self.signature.is_empty() {
            out.push("signature", &crate::wire::json::quote(&self.signature));
        }
        Some(out.finish())
    }
}
