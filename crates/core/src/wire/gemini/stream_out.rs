//! Gemini, events to bytes: every piece a part. A signature belongs on the
//! part it came on, so the last piece waits until it is known to have none.

use serde_json::Value;

use crate::block::{Block, Reply, ToolCall};
use crate::dialect::Rules;
use crate::event::{BlockId, End, Ending, Event, Opening, ProviderError, Side, Usage};
use crate::wire::ReplyHead;
use crate::wire::draft::{arguments_text, encrypted, list, object, signature};
use crate::wire::failure_out::google_word;
use crate::wire::json::{Kind as JsonKind, ObjectWriter, Raw, each_entry, member, quote};
use crate::wire::out::{Out, Slots, counters, is_unknown, put};

#[derive(Debug)]
pub(in crate::wire) struct GeminiWriter {
    rules: Rules,
    /// What every chunk ends with.
    tail: String,
    slots: Slots<Slot>,
    /// The last piece, and the block it is of.
    held: Option<(BlockId, String)>,
    usage: Usage,
}

#[derive(Debug)]
enum Slot {
    Text { n_items: u32 },
    Thinking { n_items: u32 },
    Call(Call),
    Unmodelled { native: String },
}

#[derive(Debug)]
struct Call {
    id: Option<String>,
    name: String,
    arguments: String,
    signature: Option<String>,
    native: Option<String>,
}

impl GeminiWriter {
    pub(in crate::wire) fn new(rules: Rules, head: &ReplyHead<'_>) -> GeminiWriter {
        GeminiWriter { rules, tail: tail(head), slots: Slots::default(), held: None, usage: Usage::default() }
    }

    pub(in crate::wire) fn take(&mut self, event: Event<'_>, out: &mut Out) {
        match event {
            Event::Grew { block, text } => self.grow(block, text, out),
            Event::Opened { opening, .. } => {
                let slot = match opening {
                    Opening::Text => Slot::Text { n_items: 0 },
                    Opening::Thinking { .. } => Slot::Thinking { n_items: 0 },
                    Opening::ToolCall { id, name } => Slot::Call(Call {
                        id: id.filter(|id| !id.is_empty()).map(str::to_owned),
                        name: name.to_owned(),
                        arguments: String::new(),
                        signature: None,
                        native: None,
                    }),
                    Opening::Unmodelled => Slot::Unmodelled { native: String::new() },
                };
                self.slots.open(slot);
            }
            Event::Sealed { block, payload, .. } => self.seal(block, payload, out),
            Event::Kept { block, json, .. } => match self.slots.at(block) {
                Some(Slot::Call(call)) => call.native = Some(json.to_owned()),
                Some(Slot::Unmodelled { native }) => json.clone_into(native),
                Some(Slot::Text { .. } | Slot::Thinking { .. }) | None => (),
            },
            Event::Item { block, .. } => {
                if let Some(Slot::Text { n_items } | Slot::Thinking { n_items }) = self.slots.at(block) {
                    *n_items += 1;
                    if *n_items > 1 {
                        self.grow(block, "\n\n", out);
                    }
                }
            }
            Event::Refiled { block, to } => {
                if let Some(slot) = self.slots.at(block) {
                    *slot = match to {
                        Side::Text => Slot::Text { n_items: 0 },
                        Side::Thinking => Slot::Thinking { n_items: 0 },
                    };
                }
            }
            Event::Closed { block } => self.close(block, out),
            Event::Usage(usage) => self.usage = usage,
            Event::Ended(end) => self.end(end, out),
            Event::Started { .. }
            | Event::Identified { .. }
            | Event::Restated { .. }
            | Event::Seen { .. }
            | Event::Noted(_) => (),
        }
    }

    fn grow(&mut self, block: BlockId, text: &str, out: &mut Out) {
        if let Some(Slot::Call(call)) = self.slots.at(block) {
            call.arguments.push_str(text);
            return;
        }
        self.flush(None, out);
        self.held = Some((block, text.to_owned()));
    }

    /// Writes the piece that waited, with its signature if one came.
    fn flush(&mut self, seal: Option<&str>, out: &mut Out) {
        let Some((block, text)) = self.held.take() else { return };
        match self.slots.at(block) {
            Some(Slot::Text { .. }) => self.part(&text_part(&text, Side::Text, seal), out),
            Some(Slot::Thinking { .. }) => self.part(&text_part(&text, Side::Thinking, seal), out),
            Some(Slot::Call(_) | Slot::Unmodelled { .. }) | None => (),
        }
    }

    fn seal(&mut self, block: BlockId, payload: &str, out: &mut Out) {
        if let Some(Slot::Call(call)) = self.slots.at(block) {
            call.signature = Some(payload.to_owned());
            return;
        }
        if self.held.as_ref().is_none_or(|(held, _)| *held != block) {
            self.flush(None, out);
            self.held = Some((block, String::new()));
        }
        self.flush(Some(payload), out);
    }

    fn close(&mut self, block: BlockId, out: &mut Out) {
        self.flush(None, out);
        let part = match self.slots.at(block) {
            Some(Slot::Call(call)) => {
                let Call { id, name, arguments, signature, native } = call;
                Some(call_part(id.as_deref(), name, arguments, signature.as_deref(), native.as_deref()))
            }
            Some(Slot::Unmodelled { native }) => other_part(native),
            Some(Slot::Text { .. } | Slot::Thinking { .. }) | None => None,
        };
        if let Some(part) = part {
            self.part(&part, out);
        }
    }

    fn part(&self, part: &str, out: &mut Out) {
        let content = object([("parts", &format!("[{part}]")), ("role", "\"model\"")]);
        let candidate = object([("content", &content), ("index", "0")]);
        out.data(&format!(r#"{{"candidates":[{candidate}],{}}}"#, self.tail));
    }

    fn end(&mut self, end: &End, out: &mut Out) {
        self.flush(None, out);
        let mut last = ObjectWriter::default();
        if let Some(word) = finish_reason(&end.ending) {
            let content = r#"{"parts":[{"text":""}],"role":"model"}"#;
            let candidate = object([("content", content), ("finishReason", &quote(word)), ("index", "0")]);
            last.push_raw("candidates", &format!("[{candidate}]"));
        }
        if !is_unknown(self.usage) {
            last.push_raw("usageMetadata", &counts(&self.rules, self.usage));
        }
        if finish_reason(&end.ending).is_some() || !is_unknown(self.usage) {
            last.push_members(&format!("{{{}}}", self.tail));
            out.data(&last.finish());
        }
        if let Some(error) = &end.error {
            out.data(&object([("error", &failure(error))]));
        }
    }
}

/// A whole answer.
pub(in crate::wire) fn whole(rules: &Rules, head: &ReplyHead<'_>, reply: &Reply) -> String {
    if let (Some(error), []) = (&reply.end.error, reply.blocks.as_slice()) {
        return object([("error", &failure(error))]);
    }
    let mut parts = Vec::new();
    for block in &reply.blocks {
        match block {
            Block::Text(text) => {
                let seal = text.seal.as_ref().map(|seal| seal.payload.as_str());
                parts.push(text_part(&text.text, Side::Text, seal));
            }
            Block::Thinking(thinking) => {
                let seal = signature(thinking).or(encrypted(thinking));
                parts.push(text_part(thinking.text(), Side::Thinking, seal));
            }
            Block::ToolCall(call) => parts.push(whole_call(call)),
            Block::Unmodelled(unmodelled) => parts.extend(other_part(&unmodelled.native.json)),
            Block::ToolResult(_) | Block::Image(_) => (),
        }
    }
    let mut candidate = ObjectWriter::default();
    candidate.push_raw("content", &object([("parts", &list(&parts)), ("role", "\"model\"")]));
    if let Some(word) = finish_reason(&reply.end.ending) {
        candidate.push_raw("finishReason", &quote(word));
    }
    candidate.push_raw("index", "0");
    let mut body = ObjectWriter::default();
    body.push_raw("candidates", &format!("[{}]", candidate.finish()));
    if !is_unknown(reply.usage) {
        body.push_raw("usageMetadata", &counts(rules, reply.usage));
    }
    body.push_members(&format!("{{{}}}", tail(head)));
    body.finish()
}

fn tail(head: &ReplyHead<'_>) -> String {
    format!(r#""modelVersion":{},"responseId":{}"#, quote(head.model), quote(head.id))
}

fn text_part(text: &str, side: Side, seal: Option<&str>) -> String {
    let mut part = ObjectWriter::default();
    part.push_raw("text", &quote(text));
    match side {
        Side::Thinking => part.push_raw("thought", "true"),
        Side::Text => (),
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
    // What never became JSON cannot stand here but as text.
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
    // Only what is a part of this protocol: other protocols say a type.
    if let Some(native) = native.filter(|native| member(*native, "type").is_none()) {
        each_entry(native, |key, value| {
            if key != "functionCall" && !key.contains('_') {
                part.push(key, value.get());
            }
        });
    }
    part.finish()
}

/// A part of a kind that we do not know: an object named like the others here.
fn other_part(native: &str) -> Option<String> {
    let raw = Raw::of(native).ok()?;
    let mut is_part = false;
    each_entry(raw, |key, value| is_part |= value.kind() == JsonKind::Object && !key.contains('_'));
    (is_part && member(raw, "type").is_none()).then(|| native.to_owned())
}

/// The code is a number here, always.
fn failure(error: &ProviderError) -> String {
    let code = error.status.or_else(|| error.code.as_ref()?.parse().ok()).unwrap_or(500);
    let word = quote(google_word(Some(code)));
    object([("code", &code.to_string()), ("message", &quote(&error.message)), ("status", &word)])
}

fn counts(rules: &Rules, usage: Usage) -> String {
    let path = if rules.usage.path.is_empty() { "thoughtsTokenCount" } else { &rules.usage.path };
    let mut counts = counters([
        ("promptTokenCount", usage.input),
        ("candidatesTokenCount", usage.output),
        (path, usage.reasoning),
        ("cachedContentTokenCount", usage.cached),
    ]);
    if let (Some(input), Some(output)) = (usage.input, usage.output) {
        let thoughts = usage.reasoning.filter(|_| !rules.usage.included).unwrap_or(0);
        put(&mut counts, "totalTokenCount", Value::from(input.saturating_add(output).saturating_add(thoughts)));
    }
    Value::Object(counts).to_string()
}

/// A call ends with the same word as an answer.
fn finish_reason(ending: &Ending) -> Option<&str> {
    match ending {
        Ending::Stop | Ending::ToolCalls | Ending::Pause => Some("STOP"),
        Ending::Length => Some("MAX_TOKENS"),
        Ending::ContentFilter | Ending::Refusal => Some("SAFETY"),
        Ending::Error => Some("OTHER"),
        Ending::Unrecognized(word) => Some(word),
        Ending::Unsaid | Ending::CutOff => None,
    }
}
