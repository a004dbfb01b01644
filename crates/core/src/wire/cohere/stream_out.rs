//! Cohere, events to bytes. Calls come one after another here: one that
//! begins while another is open waits for its turn.

use serde_json::Value;

use crate::block::{Block, Reply};
use crate::dialect::Rules;
use crate::event::{BlockId, End, Ending, Event, Opening, Side, Usage};
use crate::wire::ReplyHead;
use crate::wire::draft::{arguments_text, list, object, typed_text};
use crate::wire::failure_out::error_in_stream;
use crate::wire::json::{ObjectWriter, Raw, quote, text_member};
use crate::wire::out::{CallNames, Out, Slots, counters, is_unknown};

#[derive(Debug)]
pub(in crate::wire) struct CohereWriter {
    rules: Rules,
    id: String,
    slots: Slots<Slot>,
    names: CallNames,
    /// The content block that grows.
    content: Option<BlockId>,
    /// The call that grows, and those that wait.
    call: Option<BlockId>,
    waiting: Vec<BlockId>,
    n_contents: u64,
    n_calls: u64,
    began: bool,
    usage: Usage,
}

#[derive(Debug)]
enum Slot {
    Prose { side: Side, n_items: u32 },
    Call { id: String, name: String, held: String, closed: bool },
    Unmodelled { native: String },
}

impl CohereWriter {
    pub(in crate::wire) fn new(rules: Rules, head: &ReplyHead<'_>) -> CohereWriter {
        CohereWriter {
            rules,
            id: head.id.to_owned(),
            slots: Slots::default(),
            names: CallNames::default(),
            content: None,
            call: None,
            waiting: Vec::new(),
            n_contents: 0,
            n_calls: 0,
            began: false,
            usage: Usage::default(),
        }
    }

    pub(in crate::wire) fn take(&mut self, event: Event<'_>, out: &mut Out) {
        match event {
            Event::Grew { block, text } => self.grow(block, text, out),
            Event::Opened { block, opening } => {
                self.begin(out);
                self.open(block, opening, out);
            }
            Event::Item { block, .. } => {
                if let Some(Slot::Prose { n_items, .. }) = self.slots.at(block) {
                    *n_items += 1;
                    if *n_items > 1 {
                        self.grow(block, "\n\n", out);
                    }
                }
            }
            Event::Refiled { block, to } => {
                if let Some(Slot::Prose { side, .. }) = self.slots.at(block) {
                    *side = to;
                }
            }
            Event::Kept { block, json, .. } => {
                if let Some(Slot::Unmodelled { native }) = self.slots.at(block) {
                    json.clone_into(native);
                }
            }
            Event::Closed { block } => self.close(block, out),
            Event::Usage(usage) => self.usage = usage,
            Event::Ended(end) => self.end(end, out),
            Event::Started { .. }
            | Event::Sealed { .. }
            | Event::Identified { .. }
            | Event::Restated { .. }
            | Event::Seen { .. }
            | Event::Noted(_) => (),
        }
    }

    fn begin(&mut self, out: &mut Out) {
        if std::mem::replace(&mut self.began, true) {
            return;
        }
        let message = r#"{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}"#;
        let members = [("id", quote(&self.id)), ("delta", object([("message", message)]))];
        event("message-start", &members, out);
    }

    fn open(&mut self, block: BlockId, opening: Opening<'_>, out: &mut Out) {
        let slot = match opening {
            Opening::Text => Slot::Prose { side: Side::Text, n_items: 0 },
            Opening::Thinking { .. } => Slot::Prose { side: Side::Thinking, n_items: 0 },
            Opening::ToolCall { id, name } => {
                self.waiting.push(block);
                Slot::Call { id: self.names.of(id), name: name.to_owned(), held: String::new(), closed: false }
            }
            Opening::Unmodelled => Slot::Unmodelled { native: String::new() },
        };
        self.slots.open(slot);
        self.next_call(out);
    }

    fn grow(&mut self, block: BlockId, text: &str, out: &mut Out) {
        match self.slots.at(block) {
            Some(Slot::Prose { side, .. }) => {
                let side = *side;
                if self.content != Some(block) {
                    self.end_content(out);
                    self.content = Some(block);
                    let start = match side {
                        Side::Text => r#"{"type":"text","text":""}"#,
                        Side::Thinking => r#"{"type":"thinking","thinking":""}"#,
                    };
                    self.content_event("content-start", Some(start), out);
                }
                let name = match side {
                    Side::Text => "text",
                    Side::Thinking => "thinking",
                };
                self.content_event("content-delta", Some(&object([(name, &quote(text))])), out);
            }
            Some(Slot::Call { held, .. }) if self.call != Some(block) => held.push_str(text),
            Some(Slot::Call { .. }) => self.call_delta(text, out),
            Some(Slot::Unmodelled { .. }) | None => (),
        }
    }

    fn content_event(&self, name: &str, content: Option<&str>, out: &mut Out) {
        let mut members = vec![("index", self.n_contents.to_string())];
        members.extend(content.map(|content| ("delta", object([("message", &object([("content", content)]))]))));
        event(name, &members, out);
    }

    fn end_content(&mut self, out: &mut Out) {
        if self.content.take().is_some() {
            self.content_event("content-end", None, out);
            self.n_contents += 1;
        }
    }

    /// Calls that wait get their turn, with everything that came for them.
    fn next_call(&mut self, out: &mut Out) {
        while self.call.is_none() && !self.waiting.is_empty() {
            let block = self.waiting.remove(0);
            let Some(Slot::Call { id, name, held, closed }) = self.slots.at(block) else { continue };
            let function = object([("name", &quote(name)), ("arguments", "\"\"")]);
            let call = object([("id", &quote(id)), ("type", "\"function\""), ("function", &function)]);
            let (held, closed) = (std::mem::take(held), *closed);
            self.end_content(out);
            self.call_event("tool-call-start", Some(&call), out);
            self.call = Some(block);
            if !held.is_empty() {
                self.call_delta(&held, out);
            }
            if closed {
                self.end_call(out);
            }
        }
    }

    fn call_delta(&self, text: &str, out: &mut Out) {
        let function = object([("arguments", &quote(text))]);
        self.call_event("tool-call-delta", Some(&object([("function", &function)])), out);
    }

    fn call_event(&self, name: &str, call: Option<&str>, out: &mut Out) {
        let mut members = vec![("index", self.n_calls.to_string())];
        members.extend(call.map(|call| ("delta", object([("message", &object([("tool_calls", call)]))]))));
        event(name, &members, out);
    }

    fn end_call(&mut self, out: &mut Out) {
        if self.call.take().is_some() {
            self.call_event("tool-call-end", None, out);
            self.n_calls += 1;
        }
    }

    fn close(&mut self, block: BlockId, out: &mut Out) {
        match self.slots.at(block) {
            Some(Slot::Prose { .. }) if self.content == Some(block) => self.end_content(out),
            Some(Slot::Prose { .. }) | None => (),
            Some(Slot::Call { closed, .. }) => {
                *closed = true;
                if self.call == Some(block) {
                    self.end_call(out);
                }
            }
            Some(Slot::Unmodelled { native }) => {
                if let Some(plan) = plan(native) {
                    let message = object([("tool_plan", &quote(&plan))]);
                    event("tool-plan-delta", &[("delta", object([("message", &message)]))], out);
                }
            }
        }
        self.next_call(out);
    }

    fn end(&mut self, end: &End, out: &mut Out) {
        let word = finish_reason(&end.ending);
        if end.ending == Ending::CutOff {
            return;
        }
        if end.error.is_some() && !self.began && word.is_none() {
            let error = end.error.as_ref().map(error_in_stream).unwrap_or_default();
            out.data(&object([("error", &error)]));
            return;
        }
        self.begin(out);
        let mut delta = ObjectWriter::default();
        if let Some(word) = word {
            delta.push_raw("finish_reason", &quote(word));
        }
        if let Some(error) = &end.error {
            delta.push_raw("error", &quote(&error.message));
        }
        if !is_unknown(self.usage) {
            delta.push_raw("usage", &counts(&self.rules, self.usage));
        }
        event("message-end", &[("delta", delta.finish())], out);
        out.data("[DONE]");
    }
}

/// What the model means to do, where a kept item is that.
fn plan(native: &str) -> Option<String> {
    text_member(Raw::of(native).ok()?, "tool_plan")
}

/// A whole answer.
pub(in crate::wire) fn whole(rules: &Rules, head: &ReplyHead<'_>, reply: &Reply) -> String {
    if let (Some(error), []) = (&reply.end.error, reply.blocks.as_slice()) {
        return object([("error", &error_in_stream(error))]);
    }
    let (mut content, mut calls, mut said_plan) = (Vec::new(), Vec::new(), None);
    for block in &reply.blocks {
        match block {
            Block::Text(text) => content.push(typed_text("text", &text.text)),
            Block::Thinking(thinking) => {
                content.push(object([("type", "\"thinking\""), ("thinking", &quote(thinking.text()))]));
            }
            Block::ToolCall(call) => {
                let arguments = quote(arguments_text(&call.arguments));
                let function = object([("name", &quote(&call.name)), ("arguments", &arguments)]);
                let id = quote(call.id.as_str());
                calls.push(object([("id", &id), ("type", "\"function\""), ("function", &function)]));
            }
            Block::Unmodelled(unmodelled) => said_plan = plan(&unmodelled.native.json).or(said_plan),
            Block::ToolResult(_) | Block::Image(_) => (),
        }
    }
    let mut message = ObjectWriter::default();
    message.push_raw("role", "\"assistant\"");
    message.push_raw("content", &list(&content));
    if let Some(plan) = said_plan {
        message.push_raw("tool_plan", &quote(&plan));
    }
    if !calls.is_empty() {
        message.push_raw("tool_calls", &list(&calls));
    }
    let mut body = ObjectWriter::default();
    body.push_raw("id", &quote(head.id));
    body.push_raw("message", &message.finish());
    if let Some(word) = finish_reason(&reply.end.ending) {
        body.push_raw("finish_reason", &quote(word));
    }
    body.push_raw("usage", &counts(rules, reply.usage));
    body.finish()
}

fn event(name: &str, members: &[(&str, String)], out: &mut Out) {
    let mut json = ObjectWriter::default();
    json.push_raw("type", &quote(name));
    for (name, value) in members {
        json.push_raw(name, value);
    }
    out.named(name, &json.finish());
}

fn counts(rules: &Rules, usage: Usage) -> String {
    let path = if rules.usage.path.is_empty() { "tokens.reasoning_tokens" } else { &rules.usage.path };
    let counts = [
        ("billed_units.input_tokens", usage.input),
        ("billed_units.output_tokens", usage.output),
        ("tokens.input_tokens", usage.input),
        ("tokens.output_tokens", usage.output),
        (path, usage.reasoning),
        ("cached_tokens", usage.cached),
    ];
    Value::Object(counters(counts)).to_string()
}

fn finish_reason(ending: &Ending) -> Option<&str> {
    match ending {
        Ending::Stop | Ending::Pause => Some("COMPLETE"),
        Ending::Length => Some("MAX_TOKENS"),
        Ending::ToolCalls => Some("TOOL_CALL"),
        Ending::ContentFilter | Ending::Refusal => Some("ERROR_TOXIC"),
        Ending::Error => Some("ERROR"),
        Ending::Unrecognized(word) => Some(word),
        Ending::Unsaid | Ending::CutOff => None,
    }
}
