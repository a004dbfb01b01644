//! Writes an Anthropic Messages stream. A block starts with its first text: only
//! then is it known which kind of thinking it is.

use super::whole_out::{call_start, counts, is_own, stop_reason, unmodelled_start};
use crate::block::SealKind;
use crate::dialect::Rules;
use crate::event::{BlockId, BlockOpening, Ending, Event, ProseKind, ReplyEnd, Usage};
use crate::json_text::{ObjectWriter, Raw, each_element, each_member, member, quote};
use crate::wire::ReplyHead;
use crate::wire::error_out::typed_error_in_stream;
use crate::wire::request_draft::object;
use crate::wire::stream_parts::{CallIdSource, FrameWriter, PerBlock};

#[derive(Debug)]
pub(in crate::wire) struct MessagesWriter {
    rules: Rules,
    id: String,
    model: String,
    blocks: PerBlock<MessagesBlockOut>,
    call_ids: CallIdSource,
    n_blocks: u64,
    began: bool,
    usage: Usage,
}

#[derive(Debug)]
struct MessagesBlockOut {
    kind: MessagesKindOut,
    /// Its index in the message, once started.
    index: Option<u64>,
    native: Option<String>,
    signature: Option<String>,
    encrypted: Option<String>,
    n_items: u32,
    closed: bool,
}

#[derive(Debug)]
enum MessagesKindOut {
    Text,
    Thinking,
    Call { id: String, name: String },
    Unmodelled,
}

impl MessagesWriter {
    pub(in crate::wire) fn new(rules: Rules, head: &ReplyHead<'_>) -> MessagesWriter {
        MessagesWriter {
            rules,
            id: head.id.to_owned(),
            model: head.model.to_owned(),
            blocks: PerBlock::default(),
            call_ids: CallIdSource::default(),
            n_blocks: 0,
            began: false,
            usage: Usage::default(),
        }
    }

    pub(in crate::wire) fn take(&mut self, event: Event<'_>, out: &mut FrameWriter) {
        match event {
            Event::Grew { block, text } => self.grow(block, text, out),
            // `message_start` includes the usage, so it is written later.
            Event::Started { .. }
            | Event::Extra { .. }
            | Event::EmptyThinkingField { .. }
            | Event::Restated { .. }
            | Event::Noted(_) => (),
            Event::Opened { opening, .. } => {
                self.begin(out);
                self.open(opening);
            }
            Event::Closed { block } => self.close(block, out),
            Event::Item { block, .. } => {
                let again = self.blocks.at(block).is_some_and(|state| {
                    state.n_items += 1;
                    state.n_items > 1
                });
                if again {
                    self.grow(block, "\n\n", out);
                }
            }
            Event::Sealed { block, .. }
            | Event::NativeItem { block, .. }
            | Event::Refiled { block, .. }
            | Event::Identified { block, .. } => {
                let late = self.blocks.at(block).is_some_and(|state| {
                    state.apply(event);
                    state.closed
                });
                if late {
                    self.late_seal(block, out);
                }
            }
            Event::Usage(usage) => self.usage = usage,
            Event::Ended(end) => self.end(end, out),
        }
    }

    fn begin(&mut self, out: &mut FrameWriter) {
        if std::mem::replace(&mut self.began, true) {
            return;
        }
        // The usage is required here and repeated at the end.
        let known = Usage { input: self.usage.input.or(Some(0)), output: self.usage.output.or(Some(0)), ..self.usage };
        let message = object([
            ("id", &quote(&self.id)),
            ("type", "\"message\""),
            ("role", "\"assistant\""),
            ("model", &quote(&self.model)),
            ("content", "[]"),
            ("stop_reason", "null"),
            ("stop_sequence", "null"),
            ("usage", &counts(&self.rules, known)),
        ]);
        event("message_start", [("message", &message)], out);
        event("ping", [], out);
    }

    fn open(&mut self, opening: BlockOpening<'_>) {
        let kind = match opening {
            BlockOpening::Text => MessagesKindOut::Text,
            BlockOpening::Thinking { .. } => MessagesKindOut::Thinking,
            BlockOpening::ToolCall { id, name } => {
                MessagesKindOut::Call { id: self.call_ids.given_or_new(id), name: name.to_owned() }
            }
            BlockOpening::Unmodelled => MessagesKindOut::Unmodelled,
        };
        self.blocks.open(MessagesBlockOut {
            kind,
            index: None,
            native: None,
            signature: None,
            encrypted: None,
            n_items: 0,
            closed: false,
        });
    }

    fn grow(&mut self, block: BlockId, text: &str, out: &mut FrameWriter) {
        let Some(state) = self.blocks.at(block) else { return };
        let index = state.start(&mut self.n_blocks, out);
        let text = quote(text);
        match state.kind {
            MessagesKindOut::Text => delta(index, [("type", "\"text_delta\""), ("text", &text)], out),
            MessagesKindOut::Thinking => delta(index, [("type", "\"thinking_delta\""), ("thinking", &text)], out),
            MessagesKindOut::Call { .. } => {
                delta(index, [("type", "\"input_json_delta\""), ("partial_json", &text)], out)
            }
            MessagesKindOut::Unmodelled => (),
        }
    }

    fn close(&mut self, block: BlockId, out: &mut FrameWriter) {
        let Some(state) = self.blocks.at(block) else { return };
        state.closed = true;
        match state.kind {
            MessagesKindOut::Text if state.index.is_none() => return,
            MessagesKindOut::Text => state.cite(out),
            MessagesKindOut::Thinking => {
                let redacted = state.encrypted.take();
                if state.index.is_some() || state.signature.is_some() {
                    state.sign(&mut self.n_blocks, out);
                    stop(state.index.take(), out);
                }
                // Redacted thinking is a separate block.
                if let Some(data) = redacted {
                    redacted_block(&data, &mut self.n_blocks, out);
                }
            }
            MessagesKindOut::Call { .. } => {
                state.start(&mut self.n_blocks, out);
            }
            MessagesKindOut::Unmodelled => {
                let start = state.native.as_deref().and_then(unmodelled_start);
                state.index = start.map(|start| start_block(&start, &mut self.n_blocks, out));
            }
        }
        stop(state.index.take(), out);
    }

    /// A seal for a closed block goes into a block of its own.
    fn late_seal(&mut self, block: BlockId, out: &mut FrameWriter) {
        let Some(state) = self.blocks.at(block) else { return };
        if let (MessagesKindOut::Thinking, true) = (&state.kind, state.signature.is_some()) {
            state.index = None;
            state.sign(&mut self.n_blocks, out);
            stop(state.index.take(), out);
        }
        if let Some(data) = state.encrypted.take() {
            redacted_block(&data, &mut self.n_blocks, out);
        }
    }

    fn end(&mut self, end: &ReplyEnd, out: &mut FrameWriter) {
        if end.ending == Ending::CutOff {
            return;
        }
        if end.error.is_none() || stop_reason(&end.ending).is_some() {
            self.begin(out);
        }
        let stop_reason = stop_reason(&end.ending);
        if self.began && (end.error.is_none() || stop_reason.is_some()) {
            let reason = stop_reason.map_or_else(|| "null".to_owned(), quote);
            let delta = object([("stop_reason", &reason), ("stop_sequence", "null")]);
            event("message_delta", [("delta", &delta), ("usage", &counts(&self.rules, self.usage))], out);
        }
        match &end.error {
            Some(error) => event("error", [("error", &typed_error_in_stream(error))], out),
            None => event("message_stop", [], out),
        }
    }
}

impl MessagesBlockOut {
    fn apply(&mut self, event: Event<'_>) {
        match event {
            Event::Sealed { kind: SealKind::Signature, payload, .. } => self.signature = Some(payload.to_owned()),
            Event::Sealed { kind: SealKind::Encrypted, payload, .. } => self.encrypted = Some(payload.to_owned()),
            Event::NativeItem { json, .. } => self.native = Some(json.to_owned()),
            Event::Refiled { to, .. } if self.index.is_none() => {
                self.kind = match to {
                    ProseKind::Text => MessagesKindOut::Text,
                    ProseKind::Thinking => MessagesKindOut::Thinking,
                };
            }
            // A started block keeps its kind.
            Event::Refiled { .. }
            | Event::Identified { .. }
            | Event::Started { .. }
            | Event::Opened { .. }
            | Event::Item { .. }
            | Event::Grew { .. }
            | Event::Restated { .. }
            | Event::Closed { .. }
            | Event::Extra { .. }
            | Event::EmptyThinkingField { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => (),
        }
    }

    /// Returns its index; writes its start if necessary.
    fn start(&mut self, n_blocks: &mut u64, out: &mut FrameWriter) -> u64 {
        if let Some(index) = self.index {
            return index;
        }
        let mut block = match &self.kind {
            MessagesKindOut::Text => typed("text", &[("text", "\"\"")]),
            MessagesKindOut::Thinking => typed("thinking", &[("thinking", "\"\""), ("signature", "\"\"")]),
            MessagesKindOut::Call { id, name } => call_start(id, name),
            MessagesKindOut::Unmodelled => ObjectWriter::default(),
        };
        // Other native members, if already known.
        if let Some(native) = self.native.as_deref().filter(|native| is_own(native, self.kind_name())) {
            let known = ["type", "text", "thinking", "signature", "id", "name", "input", "citations"];
            if let Ok(native) = Raw::of(native) {
                each_member(native, |key, value| {
                    if !known.contains(&key) {
                        block.push(key, value.get());
                    }
                });
            }
        }
        let index = start_block(&block.finish(), n_blocks, out);
        self.index = Some(index);
        index
    }

    fn kind_name(&self) -> &'static str {
        match self.kind {
            MessagesKindOut::Text => "text",
            MessagesKindOut::Thinking => "thinking",
            MessagesKindOut::Call { .. } => "tool_use",
            MessagesKindOut::Unmodelled => "",
        }
    }

    fn sign(&mut self, n_blocks: &mut u64, out: &mut FrameWriter) {
        let index = self.start(n_blocks, out);
        if let Some(signature) = self.signature.take() {
            delta(index, [("type", "\"signature_delta\""), ("signature", &quote(&signature))], out);
        }
    }

    /// Citations are separate deltas.
    fn cite(&mut self, out: &mut FrameWriter) {
        let Some(index) = self.index else { return };
        let native = self.native.as_deref().filter(|native| is_own(native, "text"));
        if let Some(citations) = native.and_then(|native| Raw::of(native).ok()).and_then(|raw| member(raw, "citations"))
        {
            each_element(citations, |citation| {
                delta(index, [("type", "\"citations_delta\""), ("citation", citation.get())], out);
            });
        }
    }
}

fn typed(kind: &str, members: &[(&str, &str)]) -> ObjectWriter {
    let mut block = ObjectWriter::default();
    block.push_raw("type", &quote(kind));
    for (name, json) in members {
        block.push_raw(name, json);
    }
    block
}

fn redacted_block(data: &str, n_blocks: &mut u64, out: &mut FrameWriter) {
    let block = typed("redacted_thinking", &[("data", &quote(data))]);
    let index = start_block(&block.finish(), n_blocks, out);
    stop(Some(index), out);
}

fn start_block(block: &str, n_blocks: &mut u64, out: &mut FrameWriter) -> u64 {
    let index = *n_blocks;
    *n_blocks += 1;
    event("content_block_start", [("index", &index.to_string()), ("content_block", block)], out);
    index
}

fn delta<const N: usize>(index: u64, members: [(&str, &str); N], out: &mut FrameWriter) {
    event("content_block_delta", [("index", &index.to_string()), ("delta", &object(members))], out);
}

fn stop(index: Option<u64>, out: &mut FrameWriter) {
    if let Some(index) = index {
        event("content_block_stop", [("index", &index.to_string())], out);
    }
}

fn event<const N: usize>(name: &str, members: [(&str, &str); N], out: &mut FrameWriter) {
    out.named(name, &typed(name, &members).finish());
}
