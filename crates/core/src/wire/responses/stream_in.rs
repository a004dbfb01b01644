//! Decodes OpenAI Responses. A whole body is a `response.completed` event whose
//! items are all new.

use super::items::{OutputItems, PartKind};
use super::types::{ResponseObject, ResponsesEvent};
use crate::dialect::Rules;
use crate::event::{BlockOpening, Ending, Event, ProviderError, ReplyEnd, Sink};
use crate::json_text::{JsonText, NotJson, Raw, each_element, is_empty_value, parse, read, text_member};
use crate::wire::error_in::{keep_error, read_error};
use crate::wire::extra_in::{ExtraNames, ExtraReader};
use crate::wire::usage_in::{CounterNames, UsageReader, ending_from_reason};
use crate::wire::{Finished, Understood};

const COUNTERS: CounterNames = CounterNames {
    input: &["input_tokens"],
    output: &["output_tokens"],
    reasoning: &["output_tokens_details.reasoning_tokens"],
    cached: &["input_tokens_details.cached_tokens"],
    cache_write: &["input_tokens_details.cache_write_tokens"],
    derived: &["total_tokens"],
    container: Some("usage"),
};

const EXTRA: ExtraNames = ExtraNames { lists: &[], members: &[] };

#[derive(Debug)]
pub(in crate::wire) struct ResponsesDecoder {
    items: OutputItems,
    usage_reader: UsageReader,
    extra: ExtraReader,
    status: Option<String>,
    reason: Option<String>,
    error: Option<ProviderError>,
    model_known: bool,
    done: bool,
}

impl ResponsesDecoder {
    pub(in crate::wire) fn new(rules: &Rules) -> ResponsesDecoder {
        ResponsesDecoder {
            items: OutputItems::new(rules.read.final_from),
            usage_reader: UsageReader::new(&COUNTERS, rules.usage.clone()),
            extra: ExtraReader::new(&EXTRA),
            status: None,
            reason: None,
            error: None,
            model_known: false,
            done: false,
        }
    }

    pub(in crate::wire) fn done(&mut self) {
        self.done = true;
    }

    pub(in crate::wire) fn frame(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Understood, NotJson> {
        let wire: ResponsesEvent<'_> = parse(text)?;
        let index = match wire.output_index {
            Some(index) => index,
            None => self.items.index_by_id(wire.item_id.non_empty(), wire.item),
        };
        let summary = (PartKind::Summary, wire.summary_index.unwrap_or(0));
        let content = wire.content_index.unwrap_or(0);
        let Some(kind) = wire.kind.non_empty() else { return Ok(self.untyped(&wire, Raw::checked(text), sink)) };
        match (kind, wire.delta, wire.item, wire.response) {
            ("response.reasoning_summary_text.delta", Some(delta), ..) => self.items.grew(index, summary, delta, sink),
            ("response.reasoning_text.delta", Some(delta), ..) => {
                self.items.grew(index, (PartKind::ReasoningText, content), delta, sink);
            }
            ("response.output_text.delta" | "response.refusal.delta", Some(delta), ..) => {
                self.items.refused |= kind == "response.refusal.delta";
                self.items.grew(index, (PartKind::OutputText, content), delta, sink);
            }
            ("response.reasoning_summary_part.added", ..) => self.items.part(index, summary, sink),
            ("response.function_call_arguments.delta" | "response.custom_tool_call_input.delta", Some(delta), ..) => {
                self.items.arguments_grew(index, delta, sink);
            }
            ("response.function_call_arguments.done" | "response.custom_tool_call_input.done", ..) => {
                if let Some(text) = wire.arguments.or(wire.input) {
                    self.items.arguments_done(index, text, sink);
                }
            }
            ("response.output_item.added", _, Some(item), _) => self.items.added(index, item, sink),
            ("response.output_item.done", _, Some(item), _) => self.items.done(index, item, sink),
            ("response.completed" | "response.incomplete" | "response.failed", _, _, Some(response)) => {
                self.response(response, sink);
                if wire.unread {
                    ResponsesEvent::each_unread(Raw::checked(text), |name, value| self.extra.keep(name, value, sink));
                }
            }
            ("response.created" | "response.in_progress" | "response.queued", _, _, Some(response)) => {
                self.emit_model(&read(response), sink);
            }
            ("error", ..) => return Ok(keep_error(&mut self.error, Raw::checked(text), false)),
            _ if kind.starts_with("response.") || kind == "ping" || kind == "keepalive" => (),
            _ => return Ok(keep_error(&mut self.error, Raw::checked(text), false)),
        }
        Ok(Understood::Yes)
    }

    /// Whether the protocol's own end of a reply was read.
    pub(in crate::wire) fn is_at_end(&self) -> bool {
        self.done
    }

    pub(in crate::wire) fn finish(&mut self, sink: &mut dyn Sink) -> Finished {
        let open = self.items.any_open();
        self.items.finish(sink);
        self.extra.finish(sink);
        let error = self.error.take();
        let ending = match (self.status.take().as_deref(), self.reason.take()) {
            (Some("completed"), _) if self.items.called => Ending::ToolCalls,
            (Some("completed"), _) if self.items.refused => Ending::Refusal,
            (Some("completed"), _) => Ending::Stop,
            (Some("incomplete"), Some(reason)) => ending_from_reason(&reason),
            (Some("failed"), _) => Ending::Error,
            (Some(other), _) => Ending::Unrecognized(other.to_owned()),
            (None, _) if error.is_some() || (self.done && !open) => Ending::Unsaid,
            (None, _) => Ending::CutOff,
        };
        Finished(ReplyEnd { ending, error })
    }

    fn untyped(&mut self, wire: &ResponsesEvent<'_>, body: Raw<'_>, sink: &mut dyn Sink) -> Understood {
        if wire.object.is("response") || wire.output.is_some() {
            self.response(body, sink);
            return Understood::Yes;
        }
        keep_error(&mut self.error, body, false)
    }

    fn emit_model(&mut self, response: &ResponseObject<'_>, sink: &mut dyn Sink) {
        if let Some(model) = response.model.non_empty().filter(|_| !self.model_known) {
            self.model_known = true;
            sink.take(Event::Started { model });
        }
    }

    fn response(&mut self, raw: Raw<'_>, sink: &mut dyn Sink) {
        let response: ResponseObject<'_> = read(raw);
        self.emit_model(&response, sink);
        if let Some(text) = response.reasoning.and_then(JsonText::of).filter(|text| !text.is_empty()) {
            self.top_level_thinking(text, sink);
        }
        if let Some(output) = response.output {
            let mut index = 0;
            each_element(output, |item| {
                if !self.items.knows(index) {
                    self.items.done(index, item, sink);
                }
                index += 1;
            });
        }
        if let Some(usage) = response.usage {
            self.usage_reader.read(usage, &mut self.extra, sink);
        }
        if response.unread {
            ResponseObject::each_unread(raw, |name, value| self.extra.keep(name, value, sink));
        }
        if response.error.is_some_and(|error| !is_empty_value(error)) {
            self.error = read_error(raw);
        }
        self.status = response.status.non_empty().map(str::to_owned);
        self.reason = response.incomplete_details.and_then(|details| text_member(details, "reason"));
        self.done = true;
    }

    /// One server puts thinking in the `reasoning` settings member.
    fn top_level_thinking(&mut self, text: JsonText<'_>, sink: &mut dyn Sink) {
        let block = self.items.ids.next();
        sink.take(Event::Opened { block, opening: BlockOpening::Thinking { source: "reasoning", id: None } });
        text.pieces(&mut String::new(), |text| sink.take(Event::Grew { block, text }));
        sink.take(Event::Closed { block });
    }
}
