//! Writes an OpenAI Responses stream. All content is written three times: in
//! deltas, in the finished item, and in the finished response.

use super::item_out::{ItemKindOut, ItemOut, output_text};
use super::whole_out::{ResponseStatus, response, response_status};
use crate::block::{Native, SealKind};
use crate::dialect::Rules;
use crate::event::{BlockId, BlockOpening, Ending, Event, ProseKind, ReplyEnd, Usage};
use crate::json_text::{ObjectWriter, quote};
use crate::wire::ReplyHead;
use crate::wire::request_draft::typed_text;
use crate::wire::stream_parts::{CallIdSource, FrameWriter, PerBlock};

#[derive(Debug)]
pub(in crate::wire) struct ResponsesWriter {
    rules: Rules,
    id: String,
    model: String,
    created: u64,
    previous: Option<String>,
    is_stored: bool,
    items: PerBlock<ItemOut>,
    call_ids: CallIdSource,
    /// The finished items, in output order.
    output: Vec<String>,
    n_events: u64,
    began: bool,
    usage: Usage,
}

impl ResponsesWriter {
    pub(in crate::wire) fn new(rules: Rules, head: &ReplyHead<'_>) -> ResponsesWriter {
        ResponsesWriter {
            rules,
            id: head.id.to_owned(),
            model: head.model.to_owned(),
            created: head.created,
            previous: head.previous.map(str::to_owned),
            is_stored: head.is_stored,
            items: PerBlock::default(),
            call_ids: CallIdSource::default(),
            output: Vec::new(),
            n_events: 0,
            began: false,
            usage: Usage::default(),
        }
    }

    pub(in crate::wire) fn take(&mut self, event: Event<'_>, out: &mut FrameWriter) {
        match event {
            Event::Grew { block, text } => self.with(block, out, |this, item, out| this.grow(item, text, out)),
            Event::Started { .. } => self.begin(out),
            Event::Opened { opening, .. } => {
                self.begin(out);
                let item = self.new_item(opening);
                self.items.open(item);
            }
            Event::Item { block, index } => self.with(block, out, |this, item, out| this.enter(item, index, out)),
            Event::Sealed { block, kind, payload } => self.with(block, out, |this, item, out| {
                // This protocol has no signatures; they are written as encrypted
                // payloads.
                if kind == SealKind::Encrypted || item.encrypted.is_none() {
                    item.encrypted = Some(payload.to_owned());
                }
                if item.closed && item.kind == ItemKindOut::Thinking {
                    this.late_seal(payload, out);
                }
            }),
            Event::Refiled { block, to } => {
                if let Some(item) = self.items.at(block).filter(|item| item.index.is_none()) {
                    item.kind = match to {
                        ProseKind::Text => ItemKindOut::Message,
                        ProseKind::Thinking => ItemKindOut::Thinking,
                    };
                }
            }
            Event::Identified { block, id } => {
                if let Some(item) = self.items.at(block).filter(|item| item.index.is_none()) {
                    item.id = Some(id.to_owned());
                }
            }
            Event::Restated { block, part, text } => {
                if let Some(item) = self.items.at(block) {
                    item.restate(part, text.to_owned_text());
                }
            }
            Event::NativeItem { block, json, text_member } => {
                if let Some(item) = self.items.at(block) {
                    let native = Native { json: json.to_owned(), text_member: text_member.map(str::to_owned) };
                    item.native = Some(native);
                }
            }
            Event::Closed { block } => self.with(block, out, ResponsesWriter::close),
            Event::Usage(usage) => self.usage = usage,
            Event::Ended(end) => self.end(end, out),
            Event::EmptyThinkingField { .. } | Event::Extra { .. } | Event::Noted(_) => (),
        }
    }

    /// Calls `work` with an item and the writer, both mutable.
    fn with(
        &mut self,
        block: BlockId,
        out: &mut FrameWriter,
        work: impl FnOnce(&mut ResponsesWriter, &mut ItemOut, &mut FrameWriter),
    ) {
        let Some(stored) = self.items.at(block) else { return };
        let mut item = std::mem::replace(stored, ItemOut::new(ItemKindOut::Unmodelled, None));
        work(self, &mut item, out);
        if let Some(stored) = self.items.at(block) {
            *stored = item;
        }
    }

    fn begin(&mut self, out: &mut FrameWriter) {
        if !std::mem::replace(&mut self.began, true) {
            for name in ["response.created", "response.in_progress"] {
                let response = self.response(&ResponseStatus::IN_PROGRESS, &[], Usage::default());
                self.event(name, &[("response", &response)], out);
            }
        }
    }

    fn new_item(&mut self, opening: BlockOpening<'_>) -> ItemOut {
        match opening {
            BlockOpening::Text => ItemOut::new(ItemKindOut::Message, None),
            BlockOpening::Thinking { id, .. } => ItemOut::new(ItemKindOut::Thinking, id),
            BlockOpening::ToolCall { id, name } => {
                ItemOut::new(ItemKindOut::Call { call_id: self.call_ids.given_or_new(id), name: name.to_owned() }, None)
            }
            BlockOpening::Unmodelled => ItemOut::new(ItemKindOut::Unmodelled, None),
        }
    }

    fn enter(&mut self, item: &mut ItemOut, index: u32, out: &mut FrameWriter) {
        self.announce(item, out);
        if item.enter(index) {
            let part = typed_text("summary_text", "");
            let at = item.current.to_string();
            self.item_event(
                "response.reasoning_summary_part.added",
                item,
                &[("summary_index", &at), ("part", &part)],
                out,
            );
        }
    }

    fn grow(&mut self, item: &mut ItemOut, text: &str, out: &mut FrameWriter) {
        let first = item.text.is_empty();
        self.announce(item, out);
        let delta = quote(text);
        match &item.kind {
            ItemKindOut::Message => {
                if first {
                    let members = [("content_index", "0"), ("part", &output_text(""))];
                    self.item_event("response.content_part.added", item, &members, out);
                }
                let members = [("content_index", "0"), ("delta", &delta), ("logprobs", "[]")];
                self.item_event("response.output_text.delta", item, &members, out);
            }
            ItemKindOut::Thinking if item.summary.is_empty() => {
                if first {
                    let members = [("content_index", "0"), ("part", &typed_text("reasoning_text", ""))];
                    self.item_event("response.content_part.added", item, &members, out);
                }
                self.item_event(
                    "response.reasoning_text.delta",
                    item,
                    &[("content_index", "0"), ("delta", &delta)],
                    out,
                );
            }
            ItemKindOut::Thinking => {
                let at = item.current.to_string();
                let members = [("summary_index", at.as_str()), ("delta", &delta)];
                self.item_event("response.reasoning_summary_text.delta", item, &members, out);
                if let Some(part) = item.summary.get_mut(item.current) {
                    part.text.push_str(text);
                }
                return;
            }
            ItemKindOut::Call { .. } => self.item_event(call_event(item, "delta"), item, &[("delta", &delta)], out),
            ItemKindOut::Unmodelled => (),
        }
        item.text.push_str(text);
    }

    /// Announces an item, once.
    fn announce(&mut self, item: &mut ItemOut, out: &mut FrameWriter) {
        if item.index.is_none() {
            let index = self.output.len();
            item.assign_index(index);
            self.output.push(String::new());
            let index = index.to_string();
            self.event("response.output_item.added", &[("output_index", &index), ("item", &item.announced())], out);
        }
    }

    fn close(&mut self, item: &mut ItemOut, out: &mut FrameWriter) {
        item.closed = true;
        let is_empty = match &item.kind {
            ItemKindOut::Message => item.text.is_empty() && item.own_native().is_none(),
            ItemKindOut::Thinking | ItemKindOut::Call { .. } => false,
            ItemKindOut::Unmodelled => item.own_native().is_none(),
        };
        if is_empty {
            return;
        }
        self.announce(item, out);
        self.emit_done_events(item, out);
        let finished = item.finished();
        let index = item.index.unwrap_or(0);
        self.event("response.output_item.done", &[("output_index", &index.to_string()), ("item", &finished)], out);
        if let Some(output) = self.output.get_mut(index) {
            *output = finished;
        }
    }

    /// Writes the `done` events of all parts of an item.
    fn emit_done_events(&mut self, item: &ItemOut, out: &mut FrameWriter) {
        let text = quote(&item.text);
        match &item.kind {
            ItemKindOut::Message if !item.text.is_empty() => {
                let members = [("content_index", "0"), ("text", &text), ("logprobs", "[]")];
                self.item_event("response.output_text.done", item, &members, out);
                let members = [("content_index", "0"), ("part", &output_text(&item.text))];
                self.item_event("response.content_part.done", item, &members, out);
            }
            ItemKindOut::Thinking => {
                for (at, part) in item.summary.iter().enumerate() {
                    let (at, text) = (at.to_string(), quote(&part.text));
                    let members = [("summary_index", at.as_str()), ("text", &text)];
                    self.item_event("response.reasoning_summary_text.done", item, &members, out);
                    let part = typed_text("summary_text", &part.text);
                    let members = [("summary_index", at.as_str()), ("part", &part)];
                    self.item_event("response.reasoning_summary_part.done", item, &members, out);
                }
                if !item.text.is_empty() {
                    self.item_event(
                        "response.reasoning_text.done",
                        item,
                        &[("content_index", "0"), ("text", &text)],
                        out,
                    );
                    let members = [("content_index", "0"), ("part", &typed_text("reasoning_text", &item.text))];
                    self.item_event("response.content_part.done", item, &members, out);
                }
            }
            ItemKindOut::Call { name, .. } => {
                let all = if item.is_custom { "input" } else { "arguments" };
                let text = if item.text.is_empty() && !item.is_custom { "\"{}\"" } else { &text };
                self.item_event(call_event(item, "done"), item, &[(all, text), ("name", &quote(name))], out);
            }
            ItemKindOut::Message | ItemKindOut::Unmodelled => (),
        }
    }

    /// A seal for a closed item goes into an item of its own.
    fn late_seal(&mut self, payload: &str, out: &mut FrameWriter) {
        let mut item = ItemOut::new(ItemKindOut::Thinking, None);
        item.encrypted = Some(payload.to_owned());
        self.close(&mut item, out);
    }

    fn end(&mut self, end: &ReplyEnd, out: &mut FrameWriter) {
        let error = end.error.as_ref();
        let status = match (&end.ending, error) {
            (Ending::CutOff, _) => return,
            (Ending::Unsaid, Some(error)) => {
                let code = error.code.as_deref().map_or_else(|| "null".to_owned(), quote);
                let message = quote(&error.message);
                let mut members = vec![("code", code.as_str()), ("message", &message), ("param", "null")];
                let status = error.status.map(|status| status.to_string());
                members.extend(status.as_deref().map(|status| ("status_code", status)));
                self.event("error", &members, out);
                return;
            }
            (Ending::Unsaid, None) => {
                out.data("[DONE]");
                return;
            }
            (ending, error) => response_status(ending, error),
        };
        self.begin(out);
        let items: Vec<String> = self.output.iter().filter(|item| !item.is_empty()).cloned().collect();
        let response = self.response(&status, &items, self.usage);
        self.event(status.event(), &[("response", &response)], out);
    }

    fn response(&self, status: &ResponseStatus, items: &[String], usage: Usage) -> String {
        let head = ReplyHead {
            previous: self.previous.as_deref(),
            is_stored: self.is_stored,
            ..ReplyHead::new(&self.id, &self.model, self.created)
        };
        response(&self.rules, &head, status, items, usage)
    }

    fn item_event(&mut self, name: &str, item: &ItemOut, members: &[(&str, &str)], out: &mut FrameWriter) {
        let (id, index) = (quote(item.id()), item.index.unwrap_or(0).to_string());
        let mut all = vec![("item_id", id.as_str()), ("output_index", &index)];
        all.extend_from_slice(members);
        self.event(name, &all, out);
    }

    fn event(&mut self, name: &str, members: &[(&str, &str)], out: &mut FrameWriter) {
        let mut json = ObjectWriter::default();
        json.push_raw("type", &quote(name));
        json.push_raw("sequence_number", &self.n_events.to_string());
        self.n_events += 1;
        for (name, value) in members {
            json.push_raw(name, value);
        }
        out.named(name, &json.finish());
    }
}

fn call_event(item: &ItemOut, what: &str) -> &'static str {
    match (item.is_custom, what) {
        (false, "delta") => "response.function_call_arguments.delta",
        (false, _) => "response.function_call_arguments.done",
        (true, "delta") => "response.custom_tool_call_input.delta",
        (true, _) => "response.custom_tool_call_input.done",
    }
}
