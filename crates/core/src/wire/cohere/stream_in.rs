//! Decodes Cohere v2 chat. A whole body is read like a stream in which every
//! block is one delta.

use super::types::{CohereDelta, CohereEvent, CohereMessage};
use crate::dialect::Rules;
use crate::event::{BlockId, BlockOpening, Event, ProviderError, Sink};
use crate::json_text::{
    JsonKind, JsonText, NotJson, ObjectWriter, Raw, at_path, each_element, is_empty_value, member, parse, quote,
    text_member, text_of,
};
use crate::wire::end_of_input::EndOfInput;
use crate::wire::error_in::{keep_error, read_bare_error};
use crate::wire::extra_in::{ExtraNames, ExtraReader};
use crate::wire::implicit_blocks::{BlockIds, emit_unmodelled};
use crate::wire::usage_in::{CounterNames, UsageReader, ending_from_reason};
use crate::wire::{Finished, Understood};

const COUNTERS: CounterNames = CounterNames {
    input: &["tokens.input_tokens", "billed_units.input_tokens"],
    output: &["tokens.output_tokens", "billed_units.output_tokens"],
    reasoning: &["tokens.reasoning_tokens"],
    cached: &["cached_tokens"],
    cache_write: &[],
    derived: &[],
    container: Some("usage"),
};

const EXTRA: ExtraNames = ExtraNames { lists: &["citations", "logprobs"], members: &[] };

#[derive(Debug)]
pub(in crate::wire) struct CohereDecoder {
    ids: BlockIds,
    usage_reader: UsageReader,
    extra: ExtraReader,
    content: Option<OpenContent>,
    call: Option<BlockId>,
    /// The tool plan, which is neither text nor thinking.
    plan: String,
    called: bool,
    ended: bool,
    finish_reason: Option<String>,
    error: Option<ProviderError>,
    scratch: String,
}

/// The open content block.
#[derive(Debug)]
struct OpenContent {
    is_thinking: bool,
    /// None until its first text comes.
    block: Option<BlockId>,
}

impl CohereDecoder {
    pub(in crate::wire) fn new(rules: &Rules) -> CohereDecoder {
        CohereDecoder {
            ids: BlockIds::default(),
            usage_reader: UsageReader::new(&COUNTERS, rules.usage.clone()),
            extra: ExtraReader::new(&EXTRA),
            content: None,
            call: None,
            plan: String::new(),
            called: false,
            ended: false,
            finish_reason: None,
            error: None,
            scratch: String::new(),
        }
    }

    pub(in crate::wire) fn frame(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Understood, NotJson> {
        let wire: CohereEvent<'_> = parse(text)?;
        let message = &wire.delta.message;
        match wire.kind.non_empty() {
            Some("content-delta") => self.grow(message.content, sink),
            Some("content-start") => self.start_content(message.content, sink),
            Some("content-end") => self.end_content(sink),
            Some("tool-plan-delta") => {
                if let Some(text) = message.tool_plan.and_then(JsonText::of) {
                    text.pieces(&mut self.scratch, |piece| {
                        self.plan.push_str(piece);
                        sink.buffered(piece.len());
                    });
                }
            }
            Some("tool-call-start") => {
                if let Some(call) = message.tool_calls {
                    self.start_call(call, sink);
                }
            }
            Some("tool-call-delta") => {
                if let Some(call) = message.tool_calls {
                    self.grow_call(call, sink);
                }
            }
            Some("tool-call-end") => self.end_call(sink),
            Some("message-end") => self.end(&wire.delta, sink),
            Some("citation-start") => self.citations(message.citations, sink),
            Some("message-start" | "citation-end") => (),
            _ => return Ok(self.untyped(&wire, Raw::checked(text), sink)),
        }
        if wire.unread || wire.delta.unread || message.unread {
            self.unread_members(Raw::checked(text), sink);
        }
        Ok(Understood::Yes)
    }

    /// Keeps the members of an event that are not understood.
    fn unread_members(&mut self, event: Raw<'_>, sink: &mut dyn Sink) {
        CohereEvent::each_unread(event, |name, value| self.extra.keep(name, value, sink));
        let Some(delta) = member(event, "delta") else { return };
        CohereDelta::each_unread(delta, |name, value| self.extra.keep(name, value, sink));
        if let Some(message) = member(delta, "message") {
            CohereMessage::each_unread(message, |name, value| self.extra.keep(name, value, sink));
        }
    }

    fn citations(&mut self, citations: Option<Raw<'_>>, sink: &mut dyn Sink) {
        match citations {
            Some(one) if one.kind() == JsonKind::Object => self.extra.keep_element(None, "citations", one, sink),
            Some(list) => self.extra.keep("citations", list, sink),
            None => (),
        }
    }

    /// Whether the protocol's own end of a reply was read.
    pub(in crate::wire) fn is_at_end(&self) -> bool {
        self.ended
    }

    pub(in crate::wire) fn finish(&mut self, sink: &mut dyn Sink) -> Finished {
        self.end_content(sink);
        self.end_call(sink);
        self.emit_plan(sink);
        self.extra.finish(sink);
        let end = EndOfInput {
            reason: self.finish_reason.take().as_deref().map(ending_from_reason),
            called: self.called,
            is_complete: self.ended,
            error: self.error.take(),
        };
        end.finished()
    }

    fn untyped(&mut self, wire: &CohereEvent<'_>, body: Raw<'_>, sink: &mut dyn Sink) -> Understood {
        if let Some(message) = wire.message.filter(|message| message.kind() == JsonKind::Object) {
            self.whole(message, sink);
            CohereEvent::each_unread(body, |name, value| self.extra.keep(name, value, sink));
            CohereMessage::each_unread(message, |name, value| self.extra.keep(name, value, sink));
            self.citations(member(message, "citations"), sink);
            self.finish_reason = wire.finish_reason.non_empty().map(str::to_owned);
            self.usage(wire.usage, sink);
            self.ended = true;
            return Understood::Yes;
        }
        keep_error(&mut self.error, body, false)
    }

    fn whole(&mut self, message: Raw<'_>, sink: &mut dyn Sink) {
        if let Some(content) = member(message, "content") {
            each_element(content, |part| match text_member(part, "type").as_deref() {
                Some("thinking" | "text") => {
                    self.start_content(Some(part), sink);
                    self.end_content(sink);
                }
                _ => emit_unmodelled(&mut self.ids, part.get(), sink),
            });
        }
        self.plan = text_member(message, "tool_plan").unwrap_or_default();
        if let Some(calls) = member(message, "tool_calls") {
            each_element(calls, |call| {
                self.start_call(call, sink);
                self.end_call(sink);
            });
        }
    }

    fn start_content(&mut self, content: Option<Raw<'_>>, sink: &mut dyn Sink) {
        self.end_content(sink);
        self.emit_plan(sink);
        let is_thinking = content.and_then(|content| text_member(content, "type")).as_deref() == Some("thinking");
        let block = is_thinking.then(|| self.open_thinking(sink));
        self.content = Some(OpenContent { is_thinking, block });
        self.grow(content, sink);
    }

    fn open_thinking(&mut self, sink: &mut dyn Sink) -> BlockId {
        let block = self.ids.next();
        sink.take(Event::Opened { block, opening: BlockOpening::Thinking { source: "thinking", id: None } });
        block
    }

    fn grow(&mut self, content: Option<Raw<'_>>, sink: &mut dyn Sink) {
        let Some(content) = content else { return };
        // A server may omit the start of a block.
        if self.content.is_none() {
            let is_thinking = member(content, "thinking").is_some();
            let block = is_thinking.then(|| self.open_thinking(sink));
            self.content = Some(OpenContent { is_thinking, block });
        }
        let Some(open) = &mut self.content else { return };
        let name = if open.is_thinking { "thinking" } else { "text" };
        let Some(text) = member(content, name).and_then(JsonText::of).filter(|text| !text.is_empty()) else { return };
        let block = *open.block.get_or_insert_with(|| {
            let block = self.ids.next();
            sink.take(Event::Opened { block, opening: BlockOpening::Text });
            block
        });
        text.pieces(&mut self.scratch, |text| sink.take(Event::Grew { block, text }));
    }

    fn end_content(&mut self, sink: &mut dyn Sink) {
        if let Some(block) = self.content.take().and_then(|content| content.block) {
            sink.take(Event::Closed { block });
        }
    }

    fn start_call(&mut self, call: Raw<'_>, sink: &mut dyn Sink) {
        self.end_content(sink);
        self.end_call(sink);
        self.emit_plan(sink);
        self.called = true;
        let id = text_member(call, "id");
        let name = at_path(call, "function.name").and_then(text_of).unwrap_or_default();
        let block = self.ids.next();
        sink.take(Event::Opened { block, opening: BlockOpening::ToolCall { id: id.as_deref(), name: &name } });
        self.call = Some(block);
        self.grow_call(call, sink);
    }

    fn grow_call(&mut self, call: Raw<'_>, sink: &mut dyn Sink) {
        let (Some(block), Some(arguments)) = (self.call, at_path(call, "function.arguments")) else { return };
        if let Some(text) = JsonText::of(arguments) {
            text.pieces(&mut self.scratch, |text| sink.take(Event::Grew { block, text }));
        }
    }

    fn end_call(&mut self, sink: &mut dyn Sink) {
        if let Some(block) = self.call.take() {
            sink.take(Event::Closed { block });
        }
    }

    /// Emits the plan at its position, before the next block.
    fn emit_plan(&mut self, sink: &mut dyn Sink) {
        let plan = std::mem::take(&mut self.plan);
        if !plan.is_empty() {
            let mut native = ObjectWriter::default();
            native.push("tool_plan", &quote(&plan));
            emit_unmodelled(&mut self.ids, &native.finish(), sink);
        }
    }

    fn end(&mut self, delta: &CohereDelta<'_>, sink: &mut dyn Sink) {
        self.ended = true;
        self.finish_reason = delta.finish_reason.non_empty().map(str::to_owned);
        self.usage(delta.usage, sink);
        if let Some(error) = delta.error.filter(|error| !is_empty_value(*error)) {
            self.error = read_bare_error(error);
        }
    }

    fn usage(&mut self, usage: Option<Raw<'_>>, sink: &mut dyn Sink) {
        if let Some(usage) = usage {
            self.usage_reader.read(usage, &mut self.extra, sink);
        }
    }
}
