//! Writes a Gemini stream: one part per delta. A signature must be on the part it
//! belongs to, so the last part is held until the next event.

use serde_json::Value;

use crate::block::{Block, Reply, ToolCall};
use crate::dialect::Rules;
use crate::event::{BlockId, BlockOpening, Ending, Event, ProseKind, ProviderError, ReplyEnd, Usage};
use crate::json_text::{JsonKind, ObjectWriter, Raw, each_member, member, quote, set_value};
use crate::wire::ReplyHead;
use crate::wire::error_out::google_status;
use crate::wire::request_draft::{arguments_text, encrypted, list, object, signature};
use crate::wire::stream_parts::{FrameWriter, PerBlock, is_unknown_usage, usage_object};

#[derive(Debug)]
pub(in crate::wire) struct GeminiWriter {
    rules: Rules,
    /// The end of every chunk.
    tail: String,
    blocks: PerBlock<GeminiBlockOut>,
    /// The text that is held, and its block.
    held: Option<(BlockId, String)>,
    usage: Usage,
}

#[derive(Debug)]
enum GeminiBlockOut {
    Text { n_items: u32 },
    Thinking { n_items: u32 },
    Call(GeminiCallOut),
    Unmodelled { native: String },
}

#[derive(Debug)]
struct GeminiCallOut {
    id: Option<String>,
    name: String,
    arguments: String,
    signature: Option<String>,
    native: Option<String>,
}

impl GeminiWriter {
    pub(in crate::wire) fn new(rules: Rules, head: &ReplyHead<'_>) -> GeminiWriter {
        GeminiWriter { rules, tail: tail(head), blocks: PerBlock::default(), held: None, usage: Usage::default() }
    }

    pub(in crate::wire) fn take(&mut self, event: Event<'_>, out: &mut FrameWriter) {
        match event {
            Event::Grew { block, text } => self.grow(block, text, out),
            Event::Opened { opening, .. } => {
                let state = match opening {
                    BlockOpening::Text => GeminiBlockOut::Text { n_items: 0 },
                    BlockOpening::Thinking { .. } => GeminiBlockOut::Thinking { n_items: 0 },
                    BlockOpening::ToolCall { id, name } => GeminiBlockOut::Call(GeminiCallOut {
                        id: id.filter(|id| !id.is_empty()).map(str::to_owned),
                        name: name.to_owned(),
                        arguments: String::new(),
                        signature: None,
                        native: None,
                    }),
                    BlockOpening::Unmodelled => GeminiBlockOut::Unmodelled { native: String::new() },
                };
                self.blocks.open(state);
            }
            Event::Sealed { block, payload, .. } => self.seal(block, payload, out),
            Event::NativeItem { block, json, .. } => match self.blocks.at(block) {
                Some(GeminiBlockOut::Call(call)) => call.native = Some(json.to_owned()),
                Some(GeminiBlockOut::Unmodelled { native }) => json.clone_into(native),
                Some(GeminiBlockOut::Text { .. } | GeminiBlockOut::Thinking { .. }) | None => (),
            },
            Event::Item { block, .. } => {
                if let Some(GeminiBlockOut::Text { n_items } | GeminiBlockOut::Thinking { n_items }) =
                    self.blocks.at(block)
                {
                    *n_items += 1;
                    if *n_items > 1 {
                        self.grow(block, "\n\n", out);
                    }
                }
            }
            Event::Refiled { block, to } => {
                if let Some(state) = self.blocks.at(block) {
                    *state = match to {
                        ProseKind::Text => GeminiBlockOut::Text { n_items: 0 },
                        ProseKind::Thinking => GeminiBlockOut::Thinking { n_items: 0 },
                    };
                }
            }
            Event::Closed { block } => self.close(block, out),
            Event::Usage(usage) => self.usage = usage,
            Event::Ended(end) => self.end(end, out),
            Event::Started { .. }
            | Event::Identified { .. }
            | Event::Restated { .. }
            | Event::Extra { .. }
            | Event::EmptyThinkingField { .. }
            | Event::Noted(_) => (),
        }
    }

    fn grow(&mut self, block: BlockId, text: &str, out: &mut FrameWriter) {
        if let Some(GeminiBlockOut::Call(call)) = self.blocks.at(block) {
            call.arguments.push_str(text);
            return;
        }
        self.flush(None, out);
        self.held = Some((block, text.to_owned()));
    }

    /// Writes the held text, with its signature if there is one.
    fn flush(&mut self, seal: Option<&str>, out: &mut FrameWriter) {
        let Some((block, text)) = self.held.take() else { return };
        match self.blocks.at(block) {
            Some(GeminiBlockOut::Text { .. }) => self.part(&text_part(&text, ProseKind::Text, seal), out),
            Some(GeminiBlockOut::Thinking { .. }) => self.part(&text_part(&text, ProseKind::Thinking, seal), out),
            Some(GeminiBlockOut::Call(_) | GeminiBlockOut::Unmodelled { .. }) | None => (),
        }
    }

    fn seal(&mut self, block: BlockId, payload: &str, out: &mut FrameWriter) {
        if let Some(GeminiBlockOut::Call(call)) = self.blocks.at(block) {
            call.signature = Some(payload.to_owned());
            return;
        }
        if self.held.as_ref().is_none_or(|(held, _)| *held != block) {
            self.flush(None, out);
            self.held = Some((block, String::new()));
        }
        self.flush(Some(payload), out);
    }

    fn close(&mut self, block: BlockId, out: &mut FrameWriter) {
        self.flush(None, out);
        let part = match self.blocks.at(block) {
            Some(GeminiBlockOut::Call(call)) => {
                let GeminiCallOut { id, name, arguments, signature, native } = call;
                Some(call_part(id.as_deref(), name, arguments, signature.as_deref(), native.as_deref()))
            }
            Some(GeminiBlockOut::Unmodelled { native }) => other_part(native),
            Some(GeminiBlockOut::Text { .. } | GeminiBlockOut::Thinking { .. }) | None => None,
        };
        if let Some(part) = part {
            self.part(&part, out);
        }
    }

    fn part(&self, part: &str, out: &mut FrameWriter) {
        let content = object([("parts", &format!("[{part}]")), ("role", "\"model\"")]);
        let candidate = object([("content", &content), ("index", "0")]);
        out.data(&format!(r#"{{"candidates":[{candidate}],{}}}"#, self.tail));
    }

    fn end(&mut self, end: &ReplyEnd, out: &mut FrameWriter) {
        self.flush(None, out);
        let mut last = ObjectWriter::default();
        if let Some(reason) = finish_reason(&end.ending) {
            let content = r#"{"parts":[{"text":""}],"role":"model"}"#;
            let candidate = object([("content", content), ("finishReason", &quote(reason)), ("index", "0")]);
            last.push_raw("candidates", &format!("[{candidate}]"));
        }
        if !is_unknown_usage(self.usage) {
            last.push_raw("usageMetadata", &counts(&self.rules, self.usage));
        }
        if finish_reason(&end.ending).is_some() || !is_unknown_usage(self.usage) {
            last.push_members(&format!("{{{}}}", self.tail));
            out.data(&last.finish());
        }
        if let Some(error) = &end.error {
            out.data(&object([("error", &error_object(error))]));
        }
    }
}

/// A whole reply.
pub(in crate::wire) fn whole(rules: &Rules, head: &ReplyHead<'_>, reply: &Reply) -> String {
    if let (Some(error), []) = (&reply.end.error, reply.blocks.as_slice()) {
        return object([("error", &error_object(error))]);
    }
    let mut parts = Vec::new();
    for block in &reply.blocks {
        match block {
            Block::Text(text) => {
                let seal = text.seal.as_ref().map(|seal| seal.payload.as_str());
                parts.push(text_part(&text.text, ProseKind::Text, seal));
            }
            Block::Thinking(thinking) => {
                let seal = signature(thinking).or(encrypted(thinking));
                parts.push(text_part(thinking.text(), ProseKind::Thinking, seal));
            }
            Block::ToolCall(call) => parts.push(whole_call(call)),
            Block::Unmodelled(unmodelled) => parts.extend(other_part(&unmodelled.native.json)),
            Block::ToolResult(_) | Block::Media(_) => (),
        }
    }
    let mut candidate = ObjectWriter::default();
    candidate.push_raw("content", &object([("parts", &list(&parts)), ("role", "\"model\"")]));
    if let Some(reason) = finish_reason(&reply.end.ending) {
        candidate.push_raw("finishReason", &quote(reason));
    }
    candidate.push_raw("index", "0");
    let mut body = ObjectWriter::default();
    body.push_raw("candidates", &format!("[{}]", candidate.finish()));
    if !is_unknown_usage(reply.usage) {
        body.push_raw("usageMetadata", &counts(rules, reply.usage));
    }
    body.push_members(&format!("{{{}}}", tail(head)));
    body.finish()
}

fn tail(head: &ReplyHead<'_>) -> String {
    format!(r#""modelVersion":{},"responseId":{}"#, quote(head.model), quote(head.id))
}

fn text_part(text: &str, kind: ProseKind, seal: Option<&str>) -> String {
    let mut part = ObjectWriter::default();
    part.push_raw("text", &quote(text));
    match kind {
        ProseKind::Thinking => part.push_raw("thought", "true"),
        ProseKind::Text => (),
    }
    if let Some(seal) = seal {
        part.push_raw("thoughtSignature", &quote(seal));
    }
    part.finish()
}

fn whole_call(call: &ToolCall) -> String {
    let id = match &call.id {
        crate::block::CallId::Given(id) => Some(id.as_str()),
        crate::block::CallId::Invented(_) => None,
    };
    let seal = call.seal.as_ref().map(|seal| seal.payload.as_str());
    let native = call.native.as_ref().map(|native| native.json.as_str());
    call_part(id, &call.name, arguments_text(&call.arguments), seal, native)
}

fn call_part(id: Option<&str>, name: &str, arguments: &str, seal: Option<&str>, native: Option<&str>) -> String {
    let native = native.and_then(|native| Raw::of(native).ok());
    let mut function = ObjectWriter::default();
    if let Some(id) = id {
        function.push_raw("id", &quote(id));
    }
    function.push_raw("name", &quote(name));
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    // Arguments that are not valid JSON can only be written as a string.
    let args = if Raw::of(arguments).is_ok() { arguments.to_owned() } else { quote(arguments) };
    function.push("args", &args);
    if let Some(inner) = native.and_then(|native| member(native, "functionCall")) {
        function.push_members(inner.get());
    }
    let mut part = ObjectWriter::default();
    part.push_raw("functionCall", &function.finish());
    if let Some(seal) = seal {
        part.push_raw("thoughtSignature", &quote(seal));
    }
    // Only members of this protocol: native items of other protocols have a
    // `type`.
    if let Some(native) = native.filter(|native| member(*native, "type").is_none()) {
        each_member(native, |key, value| {
            if key != "functionCall" && !key.contains('_') {
                part.push(key, value.get());
            }
        });
    }
    part.finish()
}

/// A part of an unknown kind, if its names look like this protocol's.
fn other_part(native: &str) -> Option<String> {
    let raw = Raw::of(native).ok()?;
    let mut is_part = false;
    each_member(raw, |key, value| is_part |= value.kind() == JsonKind::Object && !key.contains('_'));
    (is_part && member(raw, "type").is_none()).then(|| native.to_owned())
}

/// In this protocol the code is always a number.
fn error_object(error: &ProviderError) -> String {
    let code = error.status.or_else(|| error.code.as_ref()?.parse().ok()).unwrap_or(500);
    let status = quote(google_status(Some(code)));
    object([("code", &code.to_string()), ("message", &quote(&error.message)), ("status", &status)])
}

fn counts(rules: &Rules, usage: Usage) -> String {
    let path = if rules.usage.path.is_empty() { "thoughtsTokenCount" } else { &rules.usage.path };
    let mut counts = usage_object([
        ("promptTokenCount", usage.input),
        ("candidatesTokenCount", usage.output),
        (path, usage.reasoning),
        ("cachedContentTokenCount", usage.cached),
    ]);
    if let (Some(input), Some(output)) = (usage.input, usage.output) {
        let thinking = usage.reasoning.filter(|_| !rules.usage.included).unwrap_or(0);
        set_value(&mut counts, "totalTokenCount", Value::from(input.saturating_add(output).saturating_add(thinking)));
    }
    Value::Object(counts).to_string()
}

/// Replies with tool calls end with the same reason as others.
fn finish_reason(ending: &Ending) -> Option<&str> {
    match ending {
        Ending::Stop | Ending::ToolCalls | Ending::Pause => Some("STOP"),
        Ending::Length => Some("MAX_TOKENS"),
        Ending::ContentFilter | Ending::Refusal => Some("SAFETY"),
        Ending::Error => Some("OTHER"),
        Ending::Unrecognized(reason) => Some(reason),
        Ending::Unsaid | Ending::CutOff => None,
    }
}
