//! Decodes Bedrock Converse. The framing names the events; in plain JSON, the
//! only member of the object is the event name.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::types::{BlockDelta, BlockEvent};
use crate::block::SealKind;
use crate::dialect::Rules;
use crate::event::{BlockId, BlockOpening, Event, ProviderError, Sink};
use crate::json_text::{
    FromJson, JsonKind, JsonText, NotJson, ObjectWriter, Raw, compact_pieces, each_element, each_member,
    is_empty_value, member, parse, read, string_of, text_member, text_of,
};
use crate::wire::broken_off::FinishProgress;
use crate::wire::end_of_input::EndOfInput;
use crate::wire::error_in::read_error;
use crate::wire::error_words::all_words;
use crate::wire::extra_in::{ExtraNames, ExtraReader};
use crate::wire::implicit_blocks::{BlockIds, emit_unmodelled};
use crate::wire::messages::MessagesDecoder;
use crate::wire::usage_in::{CounterNames, UsageReader, ending_from_reason};
use crate::wire::{Finished, Understood};

const COUNTERS: CounterNames = CounterNames {
    input: &["inputTokens"],
    output: &["outputTokens"],
    reasoning: &[],
    cached: &["cacheReadInputTokens", "cacheReadInputTokenCount"],
    cache_write: &["cacheWriteInputTokens", "cacheWriteInputTokenCount"],
    derived: &["totalTokens"],
    container: Some("usage"),
};

const EXTRA: ExtraNames = ExtraNames { lists: &[], members: &[] };

#[derive(Debug)]
pub(in crate::wire) struct ConverseDecoder {
    rules: Rules,
    ids: BlockIds,
    open: Vec<ConverseBlockIn>,
    usage_reader: UsageReader,
    extra: ExtraReader,
    stop_reason: Option<String>,
    stopped: bool,
    /// The metadata came, which is the last event.
    ended: bool,
    error: Option<ProviderError>,
    called: bool,
    scratch: String,
    /// InvokeModel wraps Anthropic's events.
    inner: Option<Box<MessagesDecoder>>,
}

#[derive(Debug)]
struct ConverseBlockIn {
    index: u64,
    kind: ConverseKindIn,
    block: BlockId,
    signature: String,
    redacted: String,
    /// For a provider-run tool: its start, and its input or result so far.
    start: String,
    input: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConverseKindIn {
    Text,
    Thinking,
    Call,
    Unmodelled,
}

/// The JSON of an event, which comes alone or as a member of a larger value.
#[derive(Clone, Copy)]
enum EventBody<'a> {
    Unchecked(&'a str),
    Checked(Raw<'a>),
}

impl<'a> EventBody<'a> {
    fn read<T: FromJson<'a>>(self) -> Result<T, NotJson> {
        match self {
            EventBody::Unchecked(text) => parse(text),
            EventBody::Checked(value) => Ok(read(value)),
        }
    }

    fn raw(self) -> Result<Raw<'a>, NotJson> {
        match self {
            EventBody::Unchecked(text) => Raw::of(text),
            EventBody::Checked(value) => Ok(value),
        }
    }
}

impl ConverseDecoder {
    pub(in crate::wire) fn new(rules: Rules) -> ConverseDecoder {
        ConverseDecoder {
            ids: BlockIds::default(),
            open: Vec::new(),
            usage_reader: UsageReader::new(&COUNTERS, rules.usage.clone()),
            extra: ExtraReader::new(&EXTRA),
            stop_reason: None,
            stopped: false,
            ended: false,
            error: None,
            called: false,
            scratch: String::new(),
            inner: None,
            rules,
        }
    }

    pub(in crate::wire) fn frame(
        &mut self,
        name: &[u8],
        text: &str,
        sink: &mut dyn Sink,
    ) -> Result<Understood, NotJson> {
        if !name.is_empty() {
            return self.event(&String::from_utf8_lossy(name), EventBody::Unchecked(text), sink);
        }
        let body = Raw::of(text)?;
        if let Some(message) = member(body, "output").and_then(|output| member(output, "message")) {
            self.whole(body, message, sink);
            return Ok(Understood::Yes);
        }
        let (mut understood, mut outcome) = (Understood::No, Ok(()));
        each_member(body, |name, value| {
            if value.kind() == JsonKind::Object {
                match self.event(name, EventBody::Checked(value), sink) {
                    Ok(Understood::Yes) => understood = Understood::Yes,
                    Ok(Understood::No) => (),
                    Err(error) => outcome = Err(error),
                }
            }
        });
        outcome?;
        if understood == Understood::No
            && let Some(error) = read_error(body)
        {
            self.error = Some(error);
            understood = Understood::Yes;
        }
        Ok(understood)
    }

    /// Whether the protocol's own end of a reply was read: the metadata, or the end of Anthropic's events.
    pub(in crate::wire) fn is_at_end(&self) -> bool {
        self.inner.as_ref().map_or(self.ended, |inner| inner.is_at_end())
    }

    pub(in crate::wire) fn finish_progress(&self) -> FinishProgress {
        match &self.inner {
            Some(inner) => inner.finish_progress(),
            None => FinishProgress { has_reason: self.stop_reason.is_some(), n_usages: self.usage_reader.n_usages() },
        }
    }

    pub(in crate::wire) fn finish(&mut self, sink: &mut dyn Sink) -> Finished {
        if let Some(mut inner) = self.inner.take() {
            let Finished(mut end) = inner.finish(sink);
            end.error = self.error.take().or(end.error);
            return Finished(end);
        }
        let open = !self.open.is_empty();
        for block_in in std::mem::take(&mut self.open) {
            block_in.close(sink);
        }
        self.extra.finish(sink);
        let end = EndOfInput {
            reason: self.stop_reason.take().as_deref().map(ending_from_reason),
            called: self.called,
            is_complete: self.stopped && !open,
            error: self.error.take(),
        };
        end.finished()
    }

    fn event(&mut self, name: &str, body: EventBody<'_>, sink: &mut dyn Sink) -> Result<Understood, NotJson> {
        match name {
            "contentBlockDelta" => {
                let event: BlockEvent<'_> = body.read()?;
                let index = event.index.unwrap_or(0);
                self.delta(index, &event.delta, sink);
                if event.delta.unread {
                    self.unread_delta(body.raw()?, index, sink);
                }
            }
            "contentBlockStart" => {
                let event: BlockEvent<'_> = body.read()?;
                if let Some(start) = event.start {
                    self.start(event.index.unwrap_or(0), start, sink);
                }
            }
            "contentBlockStop" => {
                let index = body.read::<BlockEvent<'_>>()?.index.unwrap_or(0);
                if let Some(at) = self.open.iter().position(|block_in| block_in.index == index) {
                    self.open.remove(at).close(sink);
                }
            }
            "messageStart" => body.raw().map(drop)?,
            "messageStop" => {
                let body = body.raw()?;
                self.stop_reason = text_member(body, "stopReason");
                self.stopped = true;
                self.unread_members(body, sink);
            }
            "metadata" => {
                let body = body.raw()?;
                self.ended = self.stopped;
                self.usage(body, sink);
                self.unread_members(body, sink);
            }
            "chunk" => return self.chunk(body.raw()?, sink),
            _ if name.ends_with("Exception") => {
                let body = body.raw()?;
                let message = text_member(body, "message").unwrap_or_else(|| body.get().to_owned());
                self.error =
                    Some(ProviderError::new(message).with_words(all_words(body.get())).with_code(name.to_owned()));
            }
            _ => {
                body.raw()?;
                return Ok(Understood::No);
            }
        }
        Ok(Understood::Yes)
    }

    /// Keeps the members of a delta that are not understood, such as a citation.
    fn unread_delta(&mut self, event: Raw<'_>, index: u64, sink: &mut dyn Sink) {
        let Some(delta) = member(event, "delta") else { return };
        let block = self.open.iter().find(|block_in| block_in.index == index).map(|block_in| block_in.block);
        BlockDelta::each_unread(delta, |name, value| match name {
            // Each delta has one.
            "citation" => self.extra.keep_element(block, name, value, sink),
            _ => self.extra.keep_in(block, name, value, sink),
        });
    }

    /// Keeps the members of a body or an event about the whole message that are
    /// not understood.
    fn unread_members(&mut self, body: Raw<'_>, sink: &mut dyn Sink) {
        each_member(body, |name, value| {
            if !matches!(name, "output" | "usage" | "stopReason" | "p") {
                self.extra.keep(name, value, sink);
            }
        });
    }

    /// One Anthropic event, in Base64.
    fn chunk(&mut self, body: Raw<'_>, sink: &mut dyn Sink) -> Result<Understood, NotJson> {
        let decoded = text_member(body, "bytes").and_then(|bytes| STANDARD.decode(bytes).ok());
        let json = decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        self.inner.get_or_insert_with(|| Box::new(MessagesDecoder::new(&self.rules))).frame(&json, sink)
    }

    fn usage(&mut self, body: Raw<'_>, sink: &mut dyn Sink) {
        if let Some(usage) = member(body, "usage") {
            self.usage_reader.read(usage, &mut self.extra, sink);
        }
    }

    fn whole(&mut self, body: Raw<'_>, message: Raw<'_>, sink: &mut dyn Sink) {
        if let Some(content) = member(message, "content") {
            each_element(content, |part| self.whole_block(part, sink));
        }
        self.usage(body, sink);
        self.unread_members(body, sink);
        self.stop_reason = text_member(body, "stopReason");
        self.stopped = true;
        self.ended = true;
    }

    fn whole_block(&mut self, part: Raw<'_>, sink: &mut dyn Sink) {
        let mut known = false;
        each_member(part, |key, value| {
            let block_in = match key {
                "text" => self.whole_text(value, sink),
                "reasoningContent" => self.whole_thinking(value, sink),
                "toolUse" if !is_server_tool(value) => self.whole_call(value, sink),
                _ => return,
            };
            known = true;
            if let Some(block_in) = block_in {
                block_in.close(sink);
            }
        });
        if !known {
            emit_unmodelled(&mut self.ids, part.get(), sink);
        }
    }

    fn whole_text(&mut self, text: Raw<'_>, sink: &mut dyn Sink) -> Option<ConverseBlockIn> {
        let text = JsonText::of(text).filter(|text| !text.is_empty())?;
        let block_in = self.open_block(0, ConverseKindIn::Text, BlockOpening::Text, sink);
        text.pieces(&mut self.scratch, |text| sink.take(Event::Grew { block: block_in.block, text }));
        Some(block_in)
    }

    fn whole_thinking(&mut self, content: Raw<'_>, sink: &mut dyn Sink) -> Option<ConverseBlockIn> {
        let mut block_in = self.open_block(0, ConverseKindIn::Thinking, THINKING, sink);
        block_in.redacted = text_member(content, "redactedContent").unwrap_or_default();
        if let Some(inner) = member(content, "reasoningText") {
            block_in.signature = text_member(inner, "signature").unwrap_or_default();
            if let Some(text) = member(inner, "text").and_then(JsonText::of) {
                text.pieces(&mut self.scratch, |text| sink.take(Event::Grew { block: block_in.block, text }));
            }
        }
        Some(block_in)
    }

    fn whole_call(&mut self, call: Raw<'_>, sink: &mut dyn Sink) -> Option<ConverseBlockIn> {
        let block_in = self.open_call(0, call, sink);
        if let Some(input) = member(call, "input").filter(|input| !is_empty_value(*input)) {
            let block = block_in.block;
            compact_pieces(input.get(), &mut self.scratch, |text| sink.take(Event::Grew { block, text }));
        }
        Some(block_in)
    }

    fn start(&mut self, index: u64, start: Raw<'_>, sink: &mut dyn Sink) {
        let block_in = match member(start, "toolUse") {
            Some(call) if !is_server_tool(call) => self.open_call(index, call, sink),
            _ => {
                let mut block_in = self.open_block(index, ConverseKindIn::Unmodelled, BlockOpening::Unmodelled, sink);
                start.get().clone_into(&mut block_in.start);
                block_in
            }
        };
        self.open.push(block_in);
    }

    fn delta(&mut self, index: u64, delta: &BlockDelta<'_>, sink: &mut dyn Sink) {
        let known = self.open.iter().position(|block_in| block_in.index == index);
        let at = known.unwrap_or_else(|| {
            // Text and thinking have no start event.
            let block_in = match delta.reasoning_content {
                Some(_) => self.open_block(index, ConverseKindIn::Thinking, THINKING, sink),
                None => self.open_block(index, ConverseKindIn::Text, BlockOpening::Text, sink),
            };
            self.open.push(block_in);
            self.open.len() - 1
        });
        let Some(block_in) = self.open.get_mut(at) else { return };
        let block = block_in.block;
        if let Some(text) = delta.text.or_else(|| delta.reasoning_content.as_ref()?.text).and_then(JsonText::of) {
            text.pieces(&mut self.scratch, |text| sink.take(Event::Grew { block, text }));
        }
        if let Some(thinking) = &delta.reasoning_content {
            for (payload, delta) in
                [(&mut block_in.signature, thinking.signature), (&mut block_in.redacted, thinking.redacted_content)]
            {
                let text = delta.and_then(text_of).unwrap_or_default();
                payload.push_str(&text);
                sink.buffered(text.len());
            }
        }
        if let Some(input) = delta.tool_use.and_then(|call| member(call, "input")).and_then(JsonText::of) {
            match block_in.kind {
                ConverseKindIn::Call => input.pieces(&mut self.scratch, |text| sink.take(Event::Grew { block, text })),
                ConverseKindIn::Text | ConverseKindIn::Thinking | ConverseKindIn::Unmodelled => {
                    input.pieces(&mut self.scratch, |text| {
                        block_in.input.push_str(text);
                        sink.buffered(text.len());
                    });
                }
            }
        }
        if let Some(result) = delta.tool_result {
            result.get().clone_into(&mut block_in.input);
        }
    }

    fn open_call(&mut self, index: u64, call: Raw<'_>, sink: &mut dyn Sink) -> ConverseBlockIn {
        self.called = true;
        let id = text_member(call, "toolUseId");
        let name = member(call, "name").map(string_of).unwrap_or_default();
        let opening = BlockOpening::ToolCall { id: id.as_deref(), name: name.non_empty().unwrap_or("") };
        self.open_block(index, ConverseKindIn::Call, opening, sink)
    }

    fn open_block(
        &mut self,
        index: u64,
        kind: ConverseKindIn,
        opening: BlockOpening<'_>,
        sink: &mut dyn Sink,
    ) -> ConverseBlockIn {
        let block = self.ids.next();
        sink.take(Event::Opened { block, opening });
        ConverseBlockIn {
            index,
            kind,
            block,
            signature: String::new(),
            redacted: String::new(),
            start: String::new(),
            input: String::new(),
        }
    }
}

const THINKING: BlockOpening<'static> = BlockOpening::Thinking { source: "reasoningContent", id: None };

fn is_server_tool(call: Raw<'_>) -> bool {
    text_member(call, "type").as_deref() == Some("server_tool_use")
}

impl ConverseBlockIn {
    fn close(self, sink: &mut dyn Sink) {
        let block = self.block;
        if !self.signature.is_empty() {
            sink.take(Event::Sealed { block, kind: SealKind::Signature, payload: &self.signature });
        }
        if !self.redacted.is_empty() {
            sink.take(Event::Sealed { block, kind: SealKind::Encrypted, payload: &self.redacted });
        }
        if self.kind == ConverseKindIn::Unmodelled {
            sink.take(Event::NativeItem { block, json: &self.native(), text_member: None });
        }
        sink.take(Event::Closed { block });
    }

    /// A provider-run tool, as a whole body contains it.
    fn native(&self) -> String {
        let Ok(start) = Raw::of(&self.start) else { return "{}".to_owned() };
        let mut out = ObjectWriter::default();
        each_member(start, |key, value| {
            let mut inner = ObjectWriter::default();
            each_member(value, |key, value| inner.push(key, value.get()));
            let input_is_json = Raw::of(&self.input).is_ok();
            if input_is_json {
                inner.push(if key == "toolResult" { "content" } else { "input" }, &self.input);
            }
            out.push(key, &inner.finish());
        });
        out.finish()
    }
}
