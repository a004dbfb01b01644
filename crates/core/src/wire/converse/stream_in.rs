//! Bedrock, bytes to events. Events are named by the framing; where they come
//! as plain JSON instead, the only member of the object is the name.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::types::{BlockDelta, BlockEvent};
use crate::block::SealKind;
use crate::dialect::Rules;
use crate::event::{BlockId, End, Ending, Event, Opening, ProviderError, Sink};
use crate::text::JsonText;
use crate::wire::failure::read_failure;
use crate::wire::json::{
    Kind as JsonKind, NotJson, ObjectWriter, Raw, compact, each_element, each_entry, is_void, member, parse,
    text_member, text_of, word_of,
};
use crate::wire::messages::MessagesDecoder;
use crate::wire::speech::{Ids, unmodelled};
use crate::wire::tally::{CounterNames, Tally, ending};
use crate::wire::{Finished, Understood};

const COUNTERS: CounterNames = CounterNames {
    input: &["inputTokens"],
    output: &["outputTokens"],
    reasoning: &[],
    cached: &["cacheReadInputTokens", "cacheReadInputTokenCount"],
};

#[derive(Debug)]
pub(in crate::wire) struct ConverseDecoder {
    rules: Rules,
    ids: Ids,
    open: Vec<Slot>,
    tally: Tally,
    stop_reason: Option<String>,
    stopped: bool,
    error: Option<ProviderError>,
    called: bool,
    scratch: String,
    /// InvokeModel wraps another protocol's events.
    inner: Option<Box<MessagesDecoder>>,
}

#[derive(Debug)]
struct Slot {
    index: u64,
    kind: Kind,
    block: BlockId,
    signature: String,
    redacted: String,
    /// A provider-run tool: its start, its input and its results so far.
    start: String,
    input: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Call,
    Unmodelled,
}

impl ConverseDecoder {
    pub(in crate::wire) fn new(rules: Rules) -> ConverseDecoder {
        ConverseDecoder {
            ids: Ids::default(),
            open: Vec::new(),
            tally: Tally::new(&COUNTERS, rules.usage.clone()),
            stop_reason: None,
            stopped: false,
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
            return self.event(&String::from_utf8_lossy(name), text, sink);
        }
        let body = Raw::of(text)?;
        if let Some(message) = member(body, "output").and_then(|output| member(output, "message")) {
            self.whole(body, message, sink);
            return Ok(Understood::Yes);
        }
        let mut understood = Understood::No;
        each_entry(body, |name, value| {
            if value.kind() == JsonKind::Object && self.event(name, value.get(), sink) == Ok(Understood::Yes) {
                understood = Understood::Yes;
            }
        });
        if understood == Understood::No
            && let Some(error) = read_failure(body)
        {
            self.error = Some(error);
            understood = Understood::Yes;
        }
        Ok(understood)
    }

    pub(in crate::wire) fn finish(&mut self, sink: &mut dyn Sink) -> Finished {
        if let Some(mut inner) = self.inner.take() {
            let Finished(mut end) = inner.finish(sink);
            end.error = self.error.take().or(end.error);
            return Finished(end);
        }
        let open = !self.open.is_empty();
        for slot in std::mem::take(&mut self.open) {
            slot.close(sink);
        }
        let error = self.error.take();
        let ending = match self.stop_reason.take().as_deref().map(ending) {
            Some(Ending::Stop) if self.called => Ending::ToolCalls,
            Some(ending) => ending,
            None if error.is_some() || (self.stopped && !open) => Ending::Unsaid,
            None => Ending::CutOff,
        };
        Finished(End { ending, error })
    }

    fn event(&mut self, name: &str, text: &str, sink: &mut dyn Sink) -> Result<Understood, NotJson> {
        match name {
            "contentBlockDelta" => {
                let event: BlockEvent<'_> = parse(text)?;
                self.delta(event.index.unwrap_or(0), &event.delta, sink);
            }
            "contentBlockStart" => {
                let event: BlockEvent<'_> = parse(text)?;
                if let Some(start) = event.start {
                    self.start(event.index.unwrap_or(0), start, sink);
                }
            }
            "contentBlockStop" => {
                let index = parse::<BlockEvent<'_>>(text)?.index.unwrap_or(0);
                if let Some(at) = self.open.iter().position(|slot| slot.index == index) {
                    self.open.remove(at).close(sink);
                }
            }
            "messageStart" => (),
            "messageStop" => {
                self.stopped = true;
                self.stop_reason = text_member(Raw::of(text)?, "stopReason");
            }
            "metadata" => self.usage(Raw::of(text)?, sink),
            "chunk" => return self.chunk(Raw::of(text)?, sink),
            _ if name.ends_with("Exception") => {
                let message = text_member(Raw::of(text)?, "message").unwrap_or_else(|| text.to_owned());
                self.error = Some(ProviderError { message, code: Some(name.to_owned()), status: None });
            }
            _ => return Ok(Understood::No),
        }
        Ok(Understood::Yes)
    }

    /// One event of another protocol, in Base64.
    fn chunk(&mut self, body: Raw<'_>, sink: &mut dyn Sink) -> Result<Understood, NotJson> {
        let decoded = text_member(body, "bytes").and_then(|bytes| STANDARD.decode(bytes).ok());
        let json = decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        self.inner.get_or_insert_with(|| Box::new(MessagesDecoder::new(&self.rules))).frame(&json, sink)
    }

    fn usage(&mut self, body: Raw<'_>, sink: &mut dyn Sink) {
        if let Some(usage) = member(body, "usage").and_then(|usage| self.tally.read(usage)) {
            sink.take(Event::Usage(usage));
        }
    }

    fn whole(&mut self, body: Raw<'_>, message: Raw<'_>, sink: &mut dyn Sink) {
        if let Some(content) = member(message, "content") {
            each_element(content, |part| self.whole_block(part, sink));
        }
        self.usage(body, sink);
        self.stop_reason = text_member(body, "stopReason");
        self.stopped = true;
    }

    fn whole_block(&mut self, part: Raw<'_>, sink: &mut dyn Sink) {
        let mut known = false;
        each_entry(part, |key, value| {
            let slot = match key {
                "text" => self.whole_text(value, sink),
                "reasoningContent" => self.whole_thinking(value, sink),
                "toolUse" if !is_server_tool(value) => self.whole_call(value, sink),
                _ => return,
            };
            known = true;
            if let Some(slot) = slot {
                slot.close(sink);
            }
        });
        if !known {
            unmodelled(&mut self.ids, part.get(), sink);
        }
    }

    fn whole_text(&mut self, text: Raw<'_>, sink: &mut dyn Sink) -> Option<Slot> {
        let text = JsonText::of(text).filter(|text| !text.is_empty())?;
        let slot = self.open_slot(0, Kind::Text, Opening::Text, sink);
        text.pieces(&mut self.scratch, |text| sink.take(Event::Grew { block: slot.block, text }));
        Some(slot)
    }

    fn whole_thinking(&mut self, content: Raw<'_>, sink: &mut dyn Sink) -> Option<Slot> {
        let mut slot = self.open_slot(0, Kind::Thinking, THINKING, sink);
        slot.redacted = text_member(content, "redactedContent").unwrap_or_default();
        if let Some(inner) = member(content, "reasoningText") {
            slot.signature = text_member(inner, "signature").unwrap_or_default();
            if let Some(text) = member(inner, "text").and_then(JsonText::of) {
                text.pieces(&mut self.scratch, |text| sink.take(Event::Grew { block: slot.block, text }));
            }
        }
        Some(slot)
    }

    fn whole_call(&mut self, call: Raw<'_>, sink: &mut dyn Sink) -> Option<Slot> {
        let slot = self.open_call(0, call, sink);
        if let Some(input) = member(call, "input").filter(|input| !is_void(*input)) {
            sink.take(Event::Grew { block: slot.block, text: &compact(input.get()) });
        }
        Some(slot)
    }

    fn start(&mut self, index: u64, start: Raw<'_>, sink: &mut dyn Sink) {
        let slot = match member(start, "toolUse") {
            Some(call) if !is_server_tool(call) => self.open_call(index, call, sink),
            _ => {
                let mut slot = self.open_slot(index, Kind::Unmodelled, Opening::Unmodelled, sink);
                start.get().clone_into(&mut slot.start);
                slot
            }
        };
        self.open.push(slot);
    }

    fn delta(&mut self, index: u64, delta: &BlockDelta<'_>, sink: &mut dyn Sink) {
        let known = self.open.iter().position(|slot| slot.index == index);
        let at = known.unwrap_or_else(|| {
            // Text and thinking begin without a start.
            let slot = match delta.reasoning_content {
                Some(_) => self.open_slot(index, Kind::Thinking, THINKING, sink),
                None => self.open_slot(index, Kind::Text, Opening::Text, sink),
            };
            self.open.push(slot);
            self.open.len() - 1
        });
        let Some(slot) = self.open.get_mut(at) else { return };
        let block = slot.block;
        if let Some(text) = delta.text.or_else(|| delta.reasoning_content.as_ref()?.text).and_then(JsonText::of) {
            text.pieces(&mut self.scratch, |text| sink.take(Event::Grew { block, text }));
        }
        if let Some(thinking) = &delta.reasoning_content {
            for (held, came) in
                [(&mut slot.signature, thinking.signature), (&mut slot.redacted, thinking.redacted_content)]
            {
                let text = came.and_then(text_of).unwrap_or_default();
                held.push_str(&text);
                sink.hold(text.len());
            }
        }
        if let Some(input) = delta.tool_use.and_then(|call| member(call, "input")).and_then(JsonText::of) {
            match slot.kind {
                Kind::Call => input.pieces(&mut self.scratch, |text| sink.take(Event::Grew { block, text })),
                Kind::Text | Kind::Thinking | Kind::Unmodelled => {
                    input.pieces(&mut self.scratch, |text| {
                        slot.input.push_str(text);
                        sink.hold(text.len());
                    });
                }
            }
        }
        if let Some(result) = delta.tool_result {
            result.get().clone_into(&mut slot.input);
        }
    }

    fn open_call(&mut self, index: u64, call: Raw<'_>, sink: &mut dyn Sink) -> Slot {
        self.called = true;
        let id = text_member(call, "toolUseId");
        let name = member(call, "name").map(word_of).unwrap_or_default();
        let opening = Opening::ToolCall { id: id.as_deref(), name: name.said().unwrap_or("") };
        self.open_slot(index, Kind::Call, opening, sink)
    }

    fn open_slot(&mut self, index: u64, kind: Kind, opening: Opening<'_>, sink: &mut dyn Sink) -> Slot {
        let block = self.ids.next();
        sink.take(Event::Opened { block, opening });
        Slot {
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

const THINKING: Opening<'static> = Opening::Thinking { source: "reasoningContent", id: None };

fn is_server_tool(call: Raw<'_>) -> bool {
    text_member(call, "type").as_deref() == Some("server_tool_use")
}

impl Slot {
    fn close(self, sink: &mut dyn Sink) {
        let block = self.block;
        if !self.signature.is_empty() {
            sink.take(Event::Sealed { block, kind: SealKind::Signature, payload: &self.signature });
        }
        if !self.redacted.is_empty() {
            sink.take(Event::Sealed { block, kind: SealKind::Encrypted, payload: &self.redacted });
        }
        if self.kind == Kind::Unmodelled {
            sink.take(Event::Kept { block, json: &self.native(), text_member: None });
        }
        sink.take(Event::Closed { block });
    }

    /// A provider-run tool as the whole body would have it.
    fn native(&self) -> String {
        let Ok(start) = Raw::of(&self.start) else { return "{}".to_owned() };
        let mut out = ObjectWriter::default();
        each_entry(start, |key, value| {
            let mut inner = ObjectWriter::default();
            each_entry(value, |key, value| inner.push(key, value.get()));
            let input_is_json = Raw::of(&self.input).is_ok();
            if input_is_json {
                inner.push(if key == "toolResult" { "content" } else { "input" }, &self.input);
            }
            out.push(key, &inner.finish());
        });
        out.finish()
    }
}
