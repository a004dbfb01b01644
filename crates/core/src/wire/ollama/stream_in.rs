//! Decodes Ollama: one JSON value per line.

use std::sync::Arc;

use super::types::OllamaLine;
use crate::dialect::{ReadRules, Rules};
use crate::event::{BlockOpening, Event, ProviderError, Sink};
use crate::json_text::{
    JsonText, NotJson, Raw, compact_pieces, each_element, each_member, is_empty_value, member, parse, string_of,
    text_of,
};
use crate::wire::end_of_input::EndOfInput;
use crate::wire::error_in::keep_error;
use crate::wire::extra_in::{ExtraNames, ExtraReader};
use crate::wire::implicit_blocks::ImplicitBlocks;
use crate::wire::usage_in::{CounterNames, UsageReader, ending_from_reason};
use crate::wire::{Finished, Understood};

const COUNTERS: CounterNames = CounterNames {
    input: &["prompt_eval_count"],
    output: &["eval_count"],
    reasoning: &[],
    cached: &[],
    cache_write: &[],
    derived: &[],
    container: None,
};

const EXTRA: ExtraNames = ExtraNames { lists: &["logprobs"], members: &[] };

#[derive(Debug)]
pub(in crate::wire) struct OllamaDecoder {
    read: Arc<ReadRules>,
    blocks: ImplicitBlocks,
    usage_reader: UsageReader,
    extra: ExtraReader,
    done: bool,
    done_reason: Option<String>,
    error: Option<ProviderError>,
    called: bool,
    model_known: bool,
    scratch: String,
}

impl OllamaDecoder {
    pub(in crate::wire) fn new(rules: &Rules) -> OllamaDecoder {
        OllamaDecoder {
            blocks: ImplicitBlocks::new(&rules.read),
            usage_reader: UsageReader::new(&COUNTERS, rules.usage.clone()),
            extra: ExtraReader::new(&EXTRA),
            done: false,
            done_reason: None,
            error: None,
            called: false,
            model_known: false,
            scratch: String::new(),
            read: Arc::new(rules.read.clone()),
        }
    }

    pub(in crate::wire) fn frame(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Understood, NotJson> {
        let line: OllamaLine<'_> = parse(text)?;
        if let Some(model) = line.model.non_empty().filter(|_| !self.model_known) {
            self.model_known = true;
            sink.take(Event::Started { model });
        }
        if let Some(message) = line.message {
            self.message(message, sink);
        }
        if let Some(thinking) = line.thinking {
            self.thinking("thinking", thinking, sink);
        }
        if let Some(response) = line.response {
            self.content(response, sink);
        }
        if line.done == Some(true) {
            self.done = true;
            self.blocks.end_reply(sink);
            self.done_reason = line.done_reason.non_empty().map(str::to_owned);
            self.usage_reader.read(Raw::checked(text), &mut self.extra, sink);
        }
        let known = line.message.is_some() || line.response.is_some() || line.done.is_some();
        if line.unread && known {
            OllamaLine::each_unread(Raw::checked(text), |name, value| self.extra.keep(name, value, sink));
        }
        if line.error.is_some() || !known {
            return Ok(keep_error(&mut self.error, Raw::checked(text), known));
        }
        Ok(Understood::Yes)
    }

    /// Whether the protocol's own end of a reply was read.
    pub(in crate::wire) fn is_at_end(&self) -> bool {
        self.done
    }

    pub(in crate::wire) fn finish(&mut self, sink: &mut dyn Sink) -> Finished {
        self.blocks.finish(sink);
        self.extra.finish(sink);
        let end = EndOfInput {
            reason: self.done_reason.take().as_deref().map(ending_from_reason),
            called: self.called,
            is_complete: self.done,
            error: self.error.take(),
        };
        end.finished()
    }

    fn message(&mut self, message: Raw<'_>, sink: &mut dyn Sink) {
        let read = Arc::clone(&self.read);
        let (mut content, mut calls) = (None, None);
        each_member(message, |key, value| match key {
            "content" => content = Some(value),
            "tool_calls" => calls = Some(value),
            "role" => (),
            _ => match read.text.iter().find(|field| *field == key) {
                Some(field) => self.thinking(field, value, sink),
                None => self.extra.keep(key, value, sink),
            },
        });
        if let Some(content) = content {
            self.content(content, sink);
        }
        if let Some(calls) = calls {
            each_element(calls, |call| self.call(call, sink));
        }
    }

    fn thinking(&mut self, field: &str, raw: Raw<'_>, sink: &mut dyn Sink) {
        let Some(text) = JsonText::of(raw) else { return };
        self.blocks.saw_field(field);
        let mut scratch = std::mem::take(&mut self.scratch);
        text.pieces(&mut scratch, |piece| self.blocks.thinking_text(field, piece, sink));
        self.scratch = scratch;
    }

    fn content(&mut self, raw: Raw<'_>, sink: &mut dyn Sink) {
        let Some(text) = JsonText::of(raw) else { return };
        let mut scratch = std::mem::take(&mut self.scratch);
        text.pieces(&mut scratch, |piece| self.blocks.content_text(piece, sink));
        self.scratch = scratch;
    }

    /// Calls are never split, and arguments are an object.
    fn call(&mut self, call: Raw<'_>, sink: &mut dyn Sink) {
        let Some(function) = member(call, "function") else { return };
        self.blocks.interrupt(sink);
        self.called = true;
        let id = member(call, "id").and_then(text_of);
        let name = member(function, "name").map(string_of).unwrap_or_default();
        let block = self.blocks.ids.next();
        let opening = BlockOpening::ToolCall { id: id.as_deref(), name: name.non_empty().unwrap_or("") };
        sink.take(Event::Opened { block, opening });
        if let Some(arguments) = member(function, "arguments").filter(|arguments| !is_empty_value(*arguments)) {
            let grow = |text: &str| sink.take(Event::Grew { block, text });
            match JsonText::of(arguments) {
                Some(text) => text.pieces(&mut self.scratch, grow),
                None => compact_pieces(arguments.get(), &mut self.scratch, grow),
            }
        }
        each_member(call, |name, value| {
            if !matches!(name, "id" | "type" | "function") {
                self.extra.keep_in(Some(block), name, value, sink);
            }
        });
        each_member(function, |name, value| {
            if !matches!(name, "name" | "arguments" | "index") {
                self.extra.keep_in(Some(block), name, value, sink);
            }
        });
        sink.take(Event::Closed { block });
    }
}
