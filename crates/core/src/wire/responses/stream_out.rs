//! OpenAI Responses, events to bytes. Everything is said three times here: in
//! deltas, in the finished item, and in the finished response.

use super::item_out::{ItemOut, Kind, output_text};
use super::whole_out::{Outcome, outcome, response};
use crate::block::SealKind;
use crate::dialect::Rules;
use crate::event::{BlockId, End, Ending, Event, Opening, Side, Usage};
use crate::wire::ReplyHead;
use crate::wire::draft::typed_text;
use crate::wire::json::{ObjectWriter, quote};
use crate::wire::out::{CallNames, Out, Slots};

#[derive(Debug)]
pub(in crate::wire) struct ResponsesWriter {
    rules: Rules,
    id: String,
    model: String,
    created: u64,
    slots: Slots<ItemOut>,
    names: CallNames,
    /// The finished items, in the order of the output.
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
            slots: Slots::default(),
            names: CallNames::default(),
            output: Vec::new(),
            n_events: 0,
            began: false,
            usage: Usage::default(),
        }
    }

    pub(in crate::wire) fn take(&mut self, event: Event<'_>, out: &mut Out) {
        match event {
            Event::Grew { block, text } => self.with(block, out, |this, item, out| this.grow(item, text, out)),
            Event::Started { .. } => self.begin(out),
            Event::Opened { opening, .. } => {
                self.begin(out);
                let item = self.opened(opening);
                self.slots.open(item);
            }
            Event::Item { block, index } => self.with(block, out, |this, item, out| this.enter(item, index, out)),
            Event::Sealed { block, kind, payload } => self.with(block, out, |this, item, out| {
                // A signature has no place of its own; a payload is a payload.
                if kind == SealKind::Encrypted || item.encrypted.is_none() {
                    item.encrypted = Some(payload.to_owned());
                }
                if item.closed && item.kind == Kind::Thinking {
                    this.late_seal(payload, out);
                }
            }),
            Event::Refiled { block, to } => {
                if let Some(item) = self.slots.at(block).filter(|item| item.place.is_none()) {
                    item.kind = match to {
                        Side::Text => Kind::Message,
                        Side::Thinking => Kind::Thinking,
                    };
                }
            }
            Event::Identified { block, id } => {
                if let Some(item) = self.slots.at(block).filter(|item| item.place.is_none()) {
                    item.id = Some(id.to_owned());
                }
            }
            Event::Restated { block, part, text } => {
                if let Some(item) = self.slots.at(block) {
                    item.restate(part, text.to_owned_text());
                }
            }
            Event::Kept { block, json, .. } => {
                if let Some(item) = self.slots.at(block) {
                    item.native = Some(json.to_owned());
                }
            }
            Event::Closed { block } => self.with(block, out, ResponsesWriter::close),
            Event::Usage(usage) => self.usage = usage,
            Event::Ended(end) => self.end(end, out),
            Event::Seen { .. } | Event::Noted(_) => (),
        }
    }

    /// Works on an item of ours and on the rest of us at once.
    fn with(&mut self, block: BlockId, out: &mut Out, work: impl FnOnce(&mut ResponsesWriter, &mut ItemOut, &mut Out)) {
        let Some(place) = self.slots.at(block) else { return };
        let mut item = std::mem::replace(place, ItemOut::new(Kind::Unmodelled, None));
        work(self, &mut item, out);
        if let Some(place) = self.slots.at(block) {
            *place = item;
        }
    }

    fn begin(&mut self, out: &mut Out) {
        if !std::mem::replace(&mut self.began, true) {
            for name in ["response.created", "response.in_progress"] {
                let response = self.response(&Outcome::IN_PROGRESS, &[], Usage::default());
                self.event(name, &[("response", &response)], out);
            }
        }
    }

    fn opened(&mut self, opening: Opening<'_>) -> ItemOut {
        match opening {
            Opening::Text => ItemOut::new(Kind::Message, None),
            Opening::Thinking { id, .. } => ItemOut::new(Kind::Thinking, id),
            Opening::ToolCall { id, name } => {
                ItemOut::new(Kind::Call { call_id: self.names.of(id), name: name.to_owned() }, None)
            }
            Opening::Unmodelled => ItemOut::new(Kind::Unmodelled, None),
        }
    }

    fn enter(&mut self, item: &mut ItemOut, index: u32, out: &mut Out) {
        self.announce(item, out);
        if item.enter(index) {
            let part = typed_text("summary_text", "");
            let at = item.current.to_string();
            self.of_item(
                "response.reasoning_summary_part.added",
                item,
                &[("summary_index", &at), ("part", &part)],
                out,
            );
        }
    }

    fn grow(&mut self, item: &mut ItemOut, text: &str, out: &mut Out) {
        let first = item.text.is_empty();
        self.announce(item, out);
        let delta = quote(text);
        match &item.kind {
            Kind::Message => {
                if first {
                    let members = [("content_index", "0"), ("part", &output_text(""))];
                    self.of_item("response.content_part.added", item, &members, out);
                }
                let members = [("content_index", "0"), ("delta", &delta), ("logprobs", "[]")];
                self.of_item("response.output_text.delta", item, &members, out);
            }
            Kind::Thinking if item.items.is_empty() => {
                if first {
                    let members = [("content_index", "0"), ("part", &typed_text("reasoning_text", ""))];
                    self.of_item("response.content_part.added", item, &members, out);
                }
                self.of_item("response.reasoning_text.delta", item, &[("content_index", "0"), ("delta", &delta)], out);
            }
            Kind::Thinking => {
                let at = item.current.to_string();
                let members = [("summary_index", at.as_str()), ("delta", &delta)];
                self.of_item("response.reasoning_summary_text.delta", item, &members, out);
                if let Some(part) = item.items.get_mut(item.current) {
                    part.text.push_str(text);
                }
                return;
            }
            Kind::Call { .. } => self.of_item(call_event(item, "delta"), item, &[("delta", &delta)], out),
            Kind::Unmodelled => (),
        }
        item.text.push_str(text);
    }

    /// Says that an item begins, once.
    fn announce(&mut self, item: &mut ItemOut, out: &mut Out) {
        if item.place.is_none() {
            let place = self.output.len();
            item.settle(place);
            self.output.push(String::new());
            let place = place.to_string();
            self.event("response.output_item.added", &[("output_index", &place), ("item", &item.announced())], out);
        }
    }

    fn close(&mut self, item: &mut ItemOut, out: &mut Out) {
        item.closed = true;
        let says_nothing = match &item.kind {
            Kind::Message => item.text.is_empty() && item.own_native().is_none(),
            Kind::Thinking | Kind::Call { .. } => false,
            Kind::Unmodelled => item.own_native().is_none(),
        };
        if says_nothing {
            return;
        }
        self.announce(item, out);
        self.last_words(item, out);
        let finished = item.finished();
        let place = item.place.unwrap_or(0);
        self.event("response.output_item.done", &[("output_index", &place.to_string()), ("item", &finished)], out);
        if let Some(slot) = self.output.get_mut(place) {
            *slot = finished;
        }
    }

    /// What every part of an item says when it is over.
    fn last_words(&mut self, item: &ItemOut, out: &mut Out) {
        let text = quote(&item.text);
        match &item.kind {
            Kind::Message if !item.text.is_empty() => {
                let members = [("content_index", "0"), ("text", &text), ("logprobs", "[]")];
                self.of_item("response.output_text.done", item, &members, out);
                let members = [("content_index", "0"), ("part", &output_text(&item.text))];
                self.of_item("response.content_part.done", item, &members, out);
            }
            Kind::Thinking => {
                for (at, part) in item.items.iter().enumerate() {
                    let (at, said) = (at.to_string(), quote(&part.text));
                    let members = [("summary_index", at.as_str()), ("text", &said)];
                    self.of_item("response.reasoning_summary_text.done", item, &members, out);
                    let part = typed_text("summary_text", &part.text);
                    let members = [("summary_index", at.as_str()), ("part", &part)];
                    self.of_item("response.reasoning_summary_part.done", item, &members, out);
                }
                if !item.text.is_empty() {
                    self.of_item("response.reasoning_text.done", item, &[("content_index", "0"), ("text", &text)], out);
                    let members = [("content_index", "0"), ("part", &typed_text("reasoning_text", &item.text))];
                    self.of_item("response.content_part.done", item, &members, out);
                }
            }
            Kind::Call { name, .. } => {
                let all = if item.is_custom { "input" } else { "arguments" };
                let text = if item.text.is_empty() && !item.is_custom { "\"{}\"" } else { &text };
                self.of_item(call_event(item, "done"), item, &[(all, text), ("name", &quote(name))], out);
            }
            Kind::Message | Kind::Unmodelled => (),
        }
    }

    /// A seal for an item that is over: nothing goes back, so it gets one of
    /// its own.
    fn late_seal(&mut self, payload: &str, out: &mut Out) {
        let mut item = ItemOut::new(Kind::Thinking, None);
        item.encrypted = Some(payload.to_owned());
        self.close(&mut item, out);
    }

    fn end(&mut self, end: &End, out: &mut Out) {
        let error = end.error.as_ref();
        let outcome = match (&end.ending, error) {
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
            (ending, error) => outcome(ending, error),
        };
        self.begin(out);
        let items: Vec<String> = self.output.iter().filter(|item| !item.is_empty()).cloned().collect();
        let response = self.response(&outcome, &items, self.usage);
        self.event(outcome.event(), &[("response", &response)], out);
    }

    fn response(&self, outcome: &Outcome, items: &[String], usage: Usage) -> String {
        let head = ReplyHead { id: &self.id, model: &self.model, created: self.created };
        response(&self.rules, &head, outcome, items, usage)
    }

    fn of_item(&mut self, name: &str, item: &ItemOut, members: &[(&str, &str)], out: &mut Out) {
        let (id, place) = (quote(item.id()), item.place.unwrap_or(0).to_string());
        let mut all = vec![("item_id", id.as_str()), ("output_index", &place)];
        all.extend_from_slice(members);
        self.event(name, &all, out);
    }

    fn event(&mut self, name: &str, members: &[(&str, &str)], out: &mut Out) {
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
