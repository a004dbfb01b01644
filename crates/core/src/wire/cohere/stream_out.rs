//! Writes a Cohere v2 chat stream. Calls are sequential here: a call that begins
//! while another is open has to wait.

use serde_json::Value;

use crate::block::{Block, Reply};
use crate::dialect::Rules;
use crate::event::{BlockId, BlockOpening, Ending, Event, ProseKind, ReplyEnd, Usage};
use crate::json_text::{ObjectWriter, Raw, quote, text_member};
use crate::wire::ReplyHead;
use crate::wire::error_out::error_in_stream;
use crate::wire::request_draft::{arguments_text, list, object, typed_text};
use crate::wire::stream_parts::{CallIdSource, FrameWriter, PerBlock, is_unknown_usage, usage_object};

#[derive(Debug)]
pub(in crate::wire) struct CohereWriter {
    rules: Rules,
    id: String,
    blocks: PerBlock<CohereBlockOut>,
    call_ids: CallIdSource,
    /// The open content block.
    content: Option<BlockId>,
    /// The open call, and those that wait.
    call: Option<BlockId>,
    waiting: Vec<BlockId>,
    n_contents: u64,
    n_calls: u64,
    began: bool,
    usage: Usage,
}

#[derive(Debug)]
enum CohereBlockOut {
    Prose { kind: ProseKind, n_items: u32 },
    Call { id: String, name: String, held: String, closed: bool },
    Unmodelled { native: String },
}

impl CohereWriter {
    pub(in crate::wire) fn new(rules: Rules, head: &ReplyHead<'_>) -> CohereWriter {
        CohereWriter {
            rules,
            id: head.id.to_owned(),
            blocks: PerBlock::default(),
            call_ids: CallIdSource::default(),
            content: None,
            call: None,
            waiting: Vec::new(),
            n_contents: 0,
            n_calls: 0,
            began: false,
            usage: Usage::default(),
        }
    }

    pub(in crate::wire) fn take(&mut self, event: Event<'_>, out: &mut FrameWriter) {
        match event {
            Event::Grew { block, text } => self.grow(block, text, out),
            Event::Opened { block, opening } => {
                self.begin(out);
                self.open(block, opening, out);
            }
            Event::Item { block, .. } => {
                if let Some(CohereBlockOut::Prose { n_items, .. }) = self.blocks.at(block) {
                    *n_items += 1;
                    if *n_items > 1 {
                        self.grow(block, "\n\n", out);
                    }
                }
            }
            Event::Refiled { block, to } => {
                if let Some(CohereBlockOut::Prose { kind, .. }) = self.blocks.at(block) {
                    *kind = to;
                }
            }
            Event::NativeItem { block, json, .. } => {
                if let Some(CohereBlockOut::Unmodelled { native }) = self.blocks.at(block) {
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
            | Event::Extra { .. }
            | Event::EmptyThinkingField { .. }
            | Event::Noted(_) => (),
        }
    }

    fn begin(&mut self, out: &mut FrameWriter) {
        if std::mem::replace(&mut self.began, true) {
            return;
        }
        let message = r#"{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}"#;
        let members = [("id", quote(&self.id)), ("delta", object([("message", message)]))];
        event("message-start", &members, out);
    }

    fn open(&mut self, block: BlockId, opening: BlockOpening<'_>, out: &mut FrameWriter) {
        let state = match opening {
            BlockOpening::Text => CohereBlockOut::Prose { kind: ProseKind::Text, n_items: 0 },
            BlockOpening::Thinking { .. } => CohereBlockOut::Prose { kind: ProseKind::Thinking, n_items: 0 },
            BlockOpening::ToolCall { id, name } => {
                self.waiting.push(block);
                CohereBlockOut::Call {
                    id: self.call_ids.given_or_new(id),
                    name: name.to_owned(),
                    held: String::new(),
                    closed: false,
                }
            }
            BlockOpening::Unmodelled => CohereBlockOut::Unmodelled { native: String::new() },
        };
        self.blocks.open(state);
        self.start_next_call(out);
    }

    fn grow(&mut self, block: BlockId, text: &str, out: &mut FrameWriter) {
        match self.blocks.at(block) {
            Some(CohereBlockOut::Prose { kind, .. }) => {
                let kind = *kind;
                if self.content != Some(block) {
                    self.end_content(out);
                    self.content = Some(block);
                    let start = match kind {
                        ProseKind::Text => r#"{"type":"text","text":""}"#,
                        ProseKind::Thinking => r#"{"type":"thinking","thinking":""}"#,
                    };
                    self.content_event("content-start", Some(start), out);
                }
                let name = match kind {
                    ProseKind::Text => "text",
                    ProseKind::Thinking => "thinking",
                };
                self.content_event("content-delta", Some(&object([(name, &quote(text))])), out);
            }
            Some(CohereBlockOut::Call { held, .. }) if self.call != Some(block) => held.push_str(text),
            Some(CohereBlockOut::Call { .. }) => self.call_delta(text, out),
            Some(CohereBlockOut::Unmodelled { .. }) | None => (),
        }
    }

    fn content_event(&self, name: &str, content: Option<&str>, out: &mut FrameWriter) {
        let mut members = vec![("index", self.n_contents.to_string())];
        members.extend(content.map(|content| ("delta", object([("message", &object([("content", content)]))]))));
        event(name, &members, out);
    }

    fn end_content(&mut self, out: &mut FrameWriter) {
        if self.content.take().is_some() {
            self.content_event("content-end", None, out);
            self.n_contents += 1;
        }
    }

    /// Writes waiting calls, with the text collected for them.
    fn start_next_call(&mut self, out: &mut FrameWriter) {
        while self.call.is_none() && !self.waiting.is_empty() {
            let block = self.waiting.remove(0);
            let Some(CohereBlockOut::Call { id, name, held, closed }) = self.blocks.at(block) else { continue };
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

    fn call_delta(&self, text: &str, out: &mut FrameWriter) {
        let function = object([("arguments", &quote(text))]);
        self.call_event("tool-call-delta", Some(&object([("function", &function)])), out);
    }

    fn call_event(&self, name: &str, call: Option<&str>, out: &mut FrameWriter) {
        let mut members = vec![("index", self.n_calls.to_string())];
        members.extend(call.map(|call| ("delta", object([("message", &object([("tool_calls", call)]))]))));
        event(name, &members, out);
    }

    fn end_call(&mut self, out: &mut FrameWriter) {
        if self.call.take().is_some() {
            self.call_event("tool-call-end", None, out);
            self.n_calls += 1;
        }
    }

    fn close(&mut self, block: BlockId, out: &mut FrameWriter) {
        match self.blocks.at(block) {
            Some(CohereBlockOut::Prose { .. }) if self.content == Some(block) => self.end_content(out),
            Some(CohereBlockOut::Prose { .. }) | None => (),
            Some(CohereBlockOut::Call { closed, .. }) => {
                *closed = true;
                if self.call == Some(block) {
                    self.end_call(out);
                }
            }
            Some(CohereBlockOut::Unmodelled { native }) => {
                if let Some(plan) = tool_plan_of(native) {
                    let message = object([("tool_plan", &quote(&plan))]);
                    event("tool-plan-delta", &[("delta", object([("message", &message)]))], out);
                }
            }
        }
        self.start_next_call(out);
    }

    fn end(&mut self, end: &ReplyEnd, out: &mut FrameWriter) {
        let reason = finish_reason(&end.ending);
        if end.ending == Ending::CutOff {
            return;
        }
        if end.error.is_some() && !self.began && reason.is_none() {
            let error = end.error.as_ref().map(error_in_stream).unwrap_or_default();
            out.data(&object([("error", &error)]));
            return;
        }
        self.begin(out);
        let mut delta = ObjectWriter::default();
        if let Some(reason) = reason {
            delta.push_raw("finish_reason", &quote(reason));
        }
        if let Some(error) = &end.error {
            delta.push_raw("error", &quote(&error.message));
        }
        if !is_unknown_usage(self.usage) {
            delta.push_raw("usage", &counts(&self.rules, self.usage));
        }
        event("message-end", &[("delta", delta.finish())], out);
        out.data("[DONE]");
    }
}

/// The tool plan, if a native item holds one.
fn tool_plan_of(native: &str) -> Option<String> {
    text_member(Raw::of(native).ok()?, "tool_plan")
}

/// A whole reply.
pub(in crate::wire) fn whole(rules: &Rules, head: &ReplyHead<'_>, reply: &Reply) -> String {
    if let (Some(error), []) = (&reply.end.error, reply.blocks.as_slice()) {
        return object([("error", &error_in_stream(error))]);
    }
    let (mut content, mut calls, mut tool_plan) = (Vec::new(), Vec::new(), None);
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
            Block::Unmodelled(unmodelled) => tool_plan = tool_plan_of(&unmodelled.native.json).or(tool_plan),
            Block::ToolResult(_) | Block::Media(_) => (),
        }
    }
    let mut message = ObjectWriter::default();
    message.push_raw("role", "\"assistant\"");
    message.push_raw("content", &list(&content));
    if let Some(plan) = tool_plan {
        message.push_raw("tool_plan", &quote(&plan));
    }
    if !calls.is_empty() {
        message.push_raw("tool_calls", &list(&calls));
    }
    let mut body = ObjectWriter::default();
    body.push_raw("id", &quote(head.id));
    body.push_raw("message", &message.finish());
    if let Some(reason) = finish_reason(&reply.end.ending) {
        body.push_raw("finish_reason", &quote(reason));
    }
    body.push_raw("usage", &counts(rules, reply.usage));
    body.finish()
}

fn event(name: &str, members: &[(&str, String)], out: &mut FrameWriter) {
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
    Value::Object(usage_object(counts)).to_string()
}

fn finish_reason(ending: &Ending) -> Option<&str> {
    match ending {
        Ending::Stop | Ending::Pause => Some("COMPLETE"),
        Ending::Length => Some("MAX_TOKENS"),
        Ending::ToolCalls => Some("TOOL_CALL"),
        Ending::ContentFilter | Ending::Refusal => Some("ERROR_TOXIC"),
        Ending::Error => Some("ERROR"),
        Ending::Unrecognized(reason) => Some(reason),
        Ending::Unsaid | Ending::CutOff => None,
    }
}
