//! Anthropic Messages, events to bytes. A block starts with its first letter:
//! only then it is known which of the two kinds of thinking it is.

use super::whole_out::{call_start, counts, is_own, stop_reason, unmodelled_start};
use crate::block::SealKind;
use crate::dialect::Rules;
use crate::event::{BlockId, End, Ending, Event, Opening, Side, Usage};
use crate::wire::ReplyHead;
use crate::wire::draft::object;
use crate::wire::failure_out::typed_error_in_stream;
use crate::wire::json::{ObjectWriter, Raw, each_element, each_entry, member, quote};
use crate::wire::out::{CallNames, Out, Slots};

#[derive(Debug)]
pub(in crate::wire) struct MessagesWriter {
    rules: Rules,
    id: String,
    model: String,
    slots: Slots<Slot>,
    names: CallNames,
    n_blocks: u64,
    began: bool,
    usage: Usage,
}

#[derive(Debug)]
struct Slot {
    kind: Kind,
    /// Its place in the message, once it has started.
    index: Option<u64>,
    native: Option<String>,
    signature: Option<String>,
    encrypted: Option<String>,
    n_items: u32,
    closed: bool,
}

#[derive(Debug)]
enum Kind {
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
            slots: Slots::default(),
            names: CallNames::default(),
            n_blocks: 0,
            began: false,
            usage: Usage::default(),
        }
    }

    pub(in crate::wire) fn take(&mut self, event: Event<'_>, out: &mut Out) {
        match event {
            Event::Grew { block, text } => self.grow(block, text, out),
            // The start has counters of its own: it waits for them.
            Event::Started { .. } | Event::Seen { .. } | Event::Restated { .. } | Event::Noted(_) => (),
            Event::Opened { opening, .. } => {
                self.begin(out);
                self.open(opening);
            }
            Event::Closed { block } => self.close(block, out),
            Event::Item { block, .. } => {
                let again = self.slots.at(block).is_some_and(|slot| {
                    slot.n_items += 1;
                    slot.n_items > 1
                });
                if again {
                    self.grow(block, "\n\n", out);
                }
            }
            Event::Sealed { block, .. }
            | Event::Kept { block, .. }
            | Event::Refiled { block, .. }
            | Event::Identified { block, .. } => {
                let late = self.slots.at(block).is_some_and(|slot| {
                    slot.learn(event);
                    slot.closed
                });
                if late {
                    self.late_seal(block, out);
                }
            }
            Event::Usage(usage) => self.usage = usage,
            Event::Ended(end) => self.end(end, out),
        }
    }

    fn begin(&mut self, out: &mut Out) {
        if std::mem::replace(&mut self.began, true) {
            return;
        }
        // The counters are required here, and come again at the end.
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

    fn open(&mut self, opening: Opening<'_>) {
        let kind = match opening {
            Opening::Text => Kind::Text,
            Opening::Thinking { .. } => Kind::Thinking,
            Opening::ToolCall { id, name } => Kind::Call { id: self.names.of(id), name: name.to_owned() },
            Opening::Unmodelled => Kind::Unmodelled,
        };
        self.slots.open(Slot {
            kind,
            index: None,
            native: None,
            signature: None,
            encrypted: None,
            n_items: 0,
            closed: false,
        });
    }

    fn grow(&mut self, block: BlockId, text: &str, out: &mut Out) {
        let Some(slot) = self.slots.at(block) else { return };
        let index = slot.start(&mut self.n_blocks, out);
        let text = quote(text);
        match slot.kind {
            Kind::Text => delta(index, [("type", "\"text_delta\""), ("text", &text)], out),
            Kind::Thinking => delta(index, [("type", "\"thinking_delta\""), ("thinking", &text)], out),
            Kind::Call { .. } => delta(index, [("type", "\"input_json_delta\""), ("partial_json", &text)], out),
            Kind::Unmodelled => (),
        }
    }

    fn close(&mut self, block: BlockId, out: &mut Out) {
        let Some(slot) = self.slots.at(block) else { return };
        slot.closed = true;
        match slot.kind {
            Kind::Text if slot.index.is_none() => return,
            Kind::Text => slot.cite(out),
            Kind::Thinking => {
                let redacted = slot.encrypted.take();
                if slot.index.is_some() || slot.signature.is_some() {
                    slot.sign(&mut self.n_blocks, out);
                    stop(slot.index.take(), out);
                }
                // Beside text it is a block of its own.
                if let Some(data) = redacted {
                    redacted_block(&data, &mut self.n_blocks, out);
                }
            }
            Kind::Call { .. } => {
                slot.start(&mut self.n_blocks, out);
            }
            Kind::Unmodelled => {
                let start = slot.native.as_deref().and_then(unmodelled_start);
                slot.index = start.map(|start| start_block(&start, &mut self.n_blocks, out));
            }
        }
        stop(slot.index.take(), out);
    }

    /// A seal for a block that is over: nothing goes back, so it gets one of
    /// its own.
    fn late_seal(&mut self, block: BlockId, out: &mut Out) {
        let Some(slot) = self.slots.at(block) else { return };
        if let (Kind::Thinking, true) = (&slot.kind, slot.signature.is_some()) {
            slot.index = None;
            slot.sign(&mut self.n_blocks, out);
            stop(slot.index.take(), out);
        }
        if let Some(data) = slot.encrypted.take() {
            redacted_block(&data, &mut self.n_blocks, out);
        }
    }

    fn end(&mut self, end: &End, out: &mut Out) {
        if end.ending == Ending::CutOff {
            return;
        }
        if end.error.is_none() || stop_reason(&end.ending).is_some() {
            self.begin(out);
        }
        let word = stop_reason(&end.ending);
        if self.began && (end.error.is_none() || word.is_some()) {
            let reason = word.map_or_else(|| "null".to_owned(), quote);
            let delta = object([("stop_reason", &reason), ("stop_sequence", "null")]);
            event("message_delta", [("delta", &delta), ("usage", &counts(&self.rules, self.usage))], out);
        }
        match &end.error {
            Some(error) => event("error", [("error", &typed_error_in_stream(error))], out),
            None => event("message_stop", [], out),
        }
    }
}

impl Slot {
    fn learn(&mut self, event: Event<'_>) {
        match event {
            Event::Sealed { kind: SealKind::Signature, payload, .. } => self.signature = Some(payload.to_owned()),
            Event::Sealed { kind: SealKind::Encrypted, payload, .. } => self.encrypted = Some(payload.to_owned()),
            Event::Kept { json, .. } => self.native = Some(json.to_owned()),
            Event::Refiled { to, .. } if self.index.is_none() => {
                self.kind = match to {
                    Side::Text => Kind::Text,
                    Side::Thinking => Kind::Thinking,
                };
            }
            // What has started as one kind stays it.
            Event::Refiled { .. }
            | Event::Identified { .. }
            | Event::Started { .. }
            | Event::Opened { .. }
            | Event::Item { .. }
            | Event::Grew { .. }
            | Event::Restated { .. }
            | Event::Closed { .. }
            | Event::Seen { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => (),
        }
    }

    /// Its index; its start is written if it was not.
    fn start(&mut self, n_blocks: &mut u64, out: &mut Out) -> u64 {
        if let Some(index) = self.index {
            return index;
        }
        let mut block = match &self.kind {
            Kind::Text => typed("text", &[("text", "\"\"")]),
            Kind::Thinking => typed("thinking", &[("thinking", "\"\""), ("signature", "\"\"")]),
            Kind::Call { id, name } => call_start(id, name),
            Kind::Unmodelled => ObjectWriter::default(),
        };
        // What it has beside, where that is known by now.
        if let Some(native) = self.native.as_deref().filter(|native| is_own(native, self.word())) {
            let known = ["type", "text", "thinking", "signature", "id", "name", "input", "citations"];
            if let Ok(native) = Raw::of(native) {
                each_entry(native, |key, value| {
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

    fn word(&self) -> &'static str {
        match self.kind {
            Kind::Text => "text",
            Kind::Thinking => "thinking",
            Kind::Call { .. } => "tool_use",
            Kind::Unmodelled => "",
        }
    }

    fn sign(&mut self, n_blocks: &mut u64, out: &mut Out) {
        let index = self.start(n_blocks, out);
        if let Some(signature) = self.signature.take() {
            delta(index, [("type", "\"signature_delta\""), ("signature", &quote(&signature))], out);
        }
    }

    /// Citations come as deltas of their own.
    fn cite(&mut self, out: &mut Out) {
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

fn redacted_block(data: &str, n_blocks: &mut u64, out: &mut Out) {
    let block = typed("redacted_thinking", &[("data", &quote(data))]);
    let index = start_block(&block.finish(), n_blocks, out);
    stop(Some(index), out);
}

fn start_block(block: &str, n_blocks: &mut u64, out: &mut Out) -> u64 {
    let index = *n_blocks;
    *n_blocks += 1;
    event("content_block_start", [("index", &index.to_string()), ("content_block", block)], out);
    index
}

fn delta<const N: usize>(index: u64, members: [(&str, &str); N], out: &mut Out) {
    event("content_block_delta", [("index", &index.to_string()), ("delta", &object(members))], out);
}

fn stop(index: Option<u64>, out: &mut Out) {
    if let Some(index) = index {
        event("content_block_stop", [("index", &index.to_string())], out);
    }
}

fn event<const N: usize>(name: &str, members: [(&str, &str); N], out: &mut Out) {
    out.named(name, &typed(name, &members).finish());
}
