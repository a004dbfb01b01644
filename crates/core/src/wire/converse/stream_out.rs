//! Writes a Bedrock Converse stream. Only calls have a start event; text and
//! thinking begin with their first delta.

use serde_json::Value;

use crate::block::{Block, Reply, SealKind, Thinking, ToolCall};
use crate::event::{BlockId, BlockOpening, Ending, Event, ProseKind, ProviderError, ReplyEnd, Usage};
use crate::frame::eventstream::MessageKind;
use crate::json_text::{JsonKind, ObjectWriter, Raw, each_member, member, quote};
use crate::wire::request_draft::{arguments_text, encrypted, list, object, signature};
use crate::wire::stream_parts::{CallIdSource, FrameWriter, PerBlock, is_unknown_usage, total_tokens, usage_object};

#[derive(Debug, Default)]
pub(in crate::wire) struct ConverseWriter {
    blocks: PerBlock<ConverseBlockOut>,
    call_ids: CallIdSource,
    n_blocks: u64,
    began: bool,
    usage: Usage,
}

#[derive(Debug)]
struct ConverseBlockOut {
    kind: ConverseKindOut,
    /// Its index in the message, once assigned.
    index: Option<u64>,
    native: String,
    n_items: u32,
    closed: bool,
}

#[derive(Debug)]
enum ConverseKindOut {
    Text,
    Thinking,
    Call { id: String, name: String },
    Unmodelled,
}

impl ConverseWriter {
    pub(in crate::wire) fn take(&mut self, event: Event<'_>, out: &mut FrameWriter) {
        match event {
            Event::Grew { block, text } => self.grow(block, text, out),
            Event::Opened { opening, .. } => {
                self.begin(out);
                self.open(opening);
            }
            Event::Sealed { block, kind, payload } => self.seal(block, kind, payload, out),
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
            Event::NativeItem { block, json, .. } => {
                if let Some(state) = self.blocks.at(block) {
                    json.clone_into(&mut state.native);
                }
            }
            Event::Refiled { block, to } => {
                if let Some(state) = self.blocks.at(block).filter(|state| state.index.is_none()) {
                    state.kind = match to {
                        ProseKind::Text => ConverseKindOut::Text,
                        ProseKind::Thinking => ConverseKindOut::Thinking,
                    };
                }
            }
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

    fn begin(&mut self, out: &mut FrameWriter) {
        if !std::mem::replace(&mut self.began, true) {
            event("messageStart", r#"{"role":"assistant"}"#, out);
        }
    }

    fn open(&mut self, opening: BlockOpening<'_>) {
        let kind = match opening {
            BlockOpening::Text => ConverseKindOut::Text,
            BlockOpening::Thinking { .. } => ConverseKindOut::Thinking,
            BlockOpening::ToolCall { id, name } => {
                ConverseKindOut::Call { id: self.call_ids.given_or_new(id), name: name.to_owned() }
            }
            BlockOpening::Unmodelled => ConverseKindOut::Unmodelled,
        };
        self.blocks.open(ConverseBlockOut { kind, index: None, native: String::new(), n_items: 0, closed: false });
    }

    fn grow(&mut self, block: BlockId, text: &str, out: &mut FrameWriter) {
        let Some(state) = self.blocks.at(block) else { return };
        let index = state.start(&mut self.n_blocks, out);
        let text = quote(text);
        match state.kind {
            ConverseKindOut::Text => delta(index, &object([("text", &text)]), out),
            ConverseKindOut::Thinking => delta(index, &thinking([("text", &text)]), out),
            ConverseKindOut::Call { .. } => delta(index, &object([("toolUse", &object([("input", &text)]))]), out),
            ConverseKindOut::Unmodelled => (),
        }
    }

    fn seal(&mut self, block: BlockId, kind: SealKind, payload: &str, out: &mut FrameWriter) {
        let Some(state) = self.blocks.at(block) else { return };
        if !matches!(state.kind, ConverseKindOut::Thinking) {
            return;
        }
        let index = state.start(&mut self.n_blocks, out);
        let member = match kind {
            SealKind::Signature => "signature",
            SealKind::Encrypted => "redactedContent",
        };
        delta(index, &thinking([(member, &quote(payload))]), out);
        // A seal for a closed block goes into a block of its own.
        if state.closed {
            stop(state.index.take(), out);
        }
    }

    fn close(&mut self, block: BlockId, out: &mut FrameWriter) {
        let Some(state) = self.blocks.at(block) else { return };
        state.closed = true;
        match state.kind {
            ConverseKindOut::Text | ConverseKindOut::Thinking => (),
            ConverseKindOut::Call { .. } => {
                state.start(&mut self.n_blocks, out);
            }
            ConverseKindOut::Unmodelled => state.emit_native(&mut self.n_blocks, out),
        }
        stop(state.index.take(), out);
    }

    fn end(&mut self, end: &ReplyEnd, out: &mut FrameWriter) {
        if let Some(reason) = stop_reason(&end.ending) {
            self.begin(out);
            event("messageStop", &object([("stopReason", &quote(reason))]), out);
        } else if end.ending == Ending::Unsaid && end.error.is_none() {
            self.begin(out);
            event("messageStop", "{}", out);
        }
        if !is_unknown_usage(self.usage) {
            let usage = counts(self.usage);
            event("metadata", &object([("usage", &usage), ("metrics", r#"{"latencyMs":0}"#)]), out);
        }
        if let Some(error) = &end.error {
            let name = exception(error);
            out.message(MessageKind::Exception, &name, &object([("message", &quote(&error.message))]));
        }
    }
}

impl ConverseBlockOut {
    /// Returns its index; for a call, the first time, also writes its start.
    fn start(&mut self, n_blocks: &mut u64, out: &mut FrameWriter) -> u64 {
        if let Some(index) = self.index {
            return index;
        }
        let index = *n_blocks;
        *n_blocks += 1;
        self.index = Some(index);
        if let ConverseKindOut::Call { id, name } = &self.kind {
            let call = object([("toolUseId", &quote(id)), ("name", &quote(name))]);
            start(index, &object([("toolUse", &call)]), out);
        }
        index
    }

    /// Writes a provider-run tool: its start, then its input or result.
    fn emit_native(&mut self, n_blocks: &mut u64, out: &mut FrameWriter) {
        let Ok(native) = Raw::of(&self.native) else { return };
        let Some((name, inner)) = tool_block(native) else { return };
        let (mut begin, mut rest) = (ObjectWriter::default(), None);
        each_member(inner, |key, value| match key {
            "input" | "content" => rest = Some(value),
            _ => begin.push(key, value.get()),
        });
        let index = *n_blocks;
        *n_blocks += 1;
        self.index = Some(index);
        start(index, &object([(name, &begin.finish())]), out);
        match (name, rest) {
            ("toolUse", Some(input)) => {
                delta(index, &object([("toolUse", &object([("input", &quote(input.get()))]))]), out);
            }
            (_, Some(content)) => delta(index, &object([("toolResult", content.get())]), out),
            (_, None) => (),
        }
    }
}

/// The tool in a native block, if the block is of this protocol.
fn tool_block(native: Raw<'_>) -> Option<(&'static str, Raw<'_>)> {
    let found = ["toolUse", "toolResult"].into_iter().find_map(|name| Some((name, member(native, name)?)));
    found.filter(|(_, inner)| inner.kind() == JsonKind::Object)
}

/// A whole Converse reply.
pub(in crate::wire) fn whole(reply: &Reply) -> String {
    if let (Some(error), []) = (&reply.end.error, reply.blocks.as_slice()) {
        return object([(&exception(error), &object([("message", &quote(&error.message))]))]);
    }
    let mut content = Vec::new();
    for block in &reply.blocks {
        match block {
            Block::Text(text) => content.push(object([("text", &quote(&text.text))])),
            Block::Thinking(thinking) => content.push(whole_thinking(thinking)),
            Block::ToolCall(call) => content.push(whole_call(call)),
            Block::Unmodelled(unmodelled) => {
                let native = &unmodelled.native.json;
                content.extend(Raw::of(native).ok().and_then(tool_block).map(|_| native.clone()));
            }
            Block::ToolResult(_) | Block::Media(_) => (),
        }
    }
    let message = object([("role", "\"assistant\""), ("content", &list(&content))]);
    let mut body = ObjectWriter::default();
    body.push_raw("output", &object([("message", &message)]));
    if let Some(reason) = stop_reason(&reply.end.ending) {
        body.push_raw("stopReason", &quote(reason));
    }
    body.push_raw("usage", &counts(reply.usage));
    body.push_raw("metrics", r#"{"latencyMs":0}"#);
    body.finish()
}

fn whole_thinking(thinking: &Thinking) -> String {
    let mut inner = ObjectWriter::default();
    let signature = signature(thinking);
    if !thinking.text().is_empty() || signature.is_some() {
        let mut text = ObjectWriter::default();
        text.push_raw("text", &quote(thinking.text()));
        if let Some(signature) = signature {
            text.push_raw("signature", &quote(signature));
        }
        inner.push_raw("reasoningText", &text.finish());
    }
    if let Some(data) = encrypted(thinking) {
        inner.push_raw("redactedContent", &quote(data));
    }
    object([("reasoningContent", &inner.finish())])
}

fn whole_call(call: &ToolCall) -> String {
    let arguments = arguments_text(&call.arguments);
    // Arguments that are not valid JSON can only be written as a string.
    let input = if Raw::of(arguments).is_ok() { arguments.to_owned() } else { quote(arguments) };
    let inner = object([("toolUseId", &quote(call.id.as_str())), ("name", &quote(&call.name)), ("input", &input)]);
    object([("toolUse", &inner)])
}

fn thinking<const N: usize>(members: [(&str, &str); N]) -> String {
    object([("reasoningContent", &object(members))])
}

fn delta(index: u64, delta: &str, out: &mut FrameWriter) {
    event("contentBlockDelta", &object([("contentBlockIndex", &index.to_string()), ("delta", delta)]), out);
}

fn start(index: u64, start: &str, out: &mut FrameWriter) {
    event("contentBlockStart", &object([("contentBlockIndex", &index.to_string()), ("start", start)]), out);
}

fn stop(index: Option<u64>, out: &mut FrameWriter) {
    if let Some(index) = index {
        event("contentBlockStop", &object([("contentBlockIndex", &index.to_string())]), out);
    }
}

fn event(name: &str, json: &str, out: &mut FrameWriter) {
    out.message(MessageKind::Event, name, json);
}

/// Exceptions are identified by names that end in `Exception`.
fn exception(error: &ProviderError) -> String {
    match (&error.code, error.status) {
        (Some(code), _) if code.ends_with("Exception") => code.clone(),
        (_, Some(429)) => "throttlingException".to_owned(),
        (_, Some(503)) => "serviceUnavailableException".to_owned(),
        (_, Some(400..=499)) => "validationException".to_owned(),
        (_, Some(_) | None) => "internalServerException".to_owned(),
    }
}

fn counts(usage: Usage) -> String {
    let counts = [
        ("inputTokens", usage.input),
        ("outputTokens", usage.output),
        ("totalTokens", total_tokens(usage)),
        ("cacheReadInputTokens", usage.cached),
        ("cacheWriteInputTokens", usage.cache_write),
    ];
    Value::Object(usage_object(counts)).to_string()
}

fn stop_reason(ending: &Ending) -> Option<&str> {
    match ending {
        Ending::Stop => Some("end_turn"),
        Ending::Length => Some("max_tokens"),
        Ending::ToolCalls => Some("tool_use"),
        Ending::ContentFilter => Some("content_filtered"),
        Ending::Refusal => Some("refusal"),
        Ending::Pause => Some("pause_turn"),
        Ending::Error => Some("error"),
        Ending::Unrecognized(reason) => Some(reason),
        Ending::Unsaid | Ending::CutOff => None,
    }
}
