//! Decodes Anthropic Messages.

use super::blocks::ContentBlocks;
use super::types::{AnthropicMessage, MessagesDelta, MessagesEvent};
use crate::dialect::Rules;
use crate::event::{BlockId, Event, ProviderError, Sink};
use crate::json_text::{NotJson, Raw, each_element, member, parse, read};
use crate::wire::broken_off::FinishProgress;
use crate::wire::end_of_input::EndOfInput;
use crate::wire::error_in::keep_error;
use crate::wire::extra_in::{ExtraNames, ExtraReader};
use crate::wire::usage_in::{CounterNames, UsageReader, ending_from_reason};
use crate::wire::{Finished, Understood};

const COUNTERS: CounterNames = CounterNames {
    input: &["input_tokens"],
    output: &["output_tokens"],
    reasoning: &["output_tokens_details.thinking_tokens"],
    cached: &["cache_read_input_tokens"],
    cache_write: &["cache_creation_input_tokens", "cache_creation.*"],
    derived: &[],
    container: Some("usage"),
};

const EXTRA: ExtraNames = ExtraNames { lists: &[], members: &[] };

#[derive(Debug)]
pub(in crate::wire) struct MessagesDecoder {
    blocks: ContentBlocks,
    usage_reader: UsageReader,
    extra: ExtraReader,
    stop_reason: Option<String>,
    error: Option<ProviderError>,
    state: MessageState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageState {
    Waiting,
    Started,
    Stopped,
}

impl MessagesDecoder {
    pub(in crate::wire) fn new(rules: &Rules) -> MessagesDecoder {
        MessagesDecoder {
            blocks: ContentBlocks::default(),
            usage_reader: UsageReader::new(&COUNTERS, rules.usage.clone()),
            extra: ExtraReader::new(&EXTRA),
            stop_reason: None,
            error: None,
            state: MessageState::Waiting,
        }
    }

    pub(in crate::wire) fn frame(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Understood, NotJson> {
        let wire: MessagesEvent<'_> = parse(text)?;
        let index = wire.index.unwrap_or(0);
        match wire.kind.non_empty() {
            Some("content_block_delta") => {
                self.blocks.delta(index, &wire.delta, sink);
                if wire.delta.unread {
                    self.unread_delta(Raw::checked(text), self.blocks.block_at(index), sink);
                }
            }
            Some("content_block_start") => {
                if let Some(start) = wire.content_block {
                    self.blocks.start(index, start, sink);
                }
            }
            Some("content_block_stop") => self.blocks.stop(index, sink),
            Some("message_start") => self.message_start(wire.message, sink),
            Some("message_delta") => {
                if let Some(reason) = wire.delta.stop_reason.non_empty() {
                    self.stop_reason = Some(reason.to_owned());
                }
                self.usage(wire.usage, sink);
                if wire.delta.unread {
                    self.unread_delta(Raw::checked(text), None, sink);
                }
                if wire.unread {
                    MessagesEvent::each_unread(Raw::checked(text), |name, value| self.extra.keep(name, value, sink));
                }
            }
            Some("message_stop") => self.state = MessageState::Stopped,
            Some("message") => self.whole(Raw::checked(text), sink),
            Some("ping") => (),
            // An error, or an unknown event that can be ignored.
            _ => return Ok(keep_error(&mut self.error, Raw::checked(text), false)),
        }
        Ok(Understood::Yes)
    }

    /// Whether the protocol's own end of a reply was read.
    pub(in crate::wire) fn is_at_end(&self) -> bool {
        self.state == MessageState::Stopped
    }

    pub(in crate::wire) fn finish_progress(&self) -> FinishProgress {
        FinishProgress { has_reason: self.stop_reason.is_some(), n_usages: self.usage_reader.n_usages() }
    }

    pub(in crate::wire) fn finish(&mut self, sink: &mut dyn Sink) -> Finished {
        let open = self.blocks.any_open();
        self.blocks.finish(sink);
        self.extra.finish(sink);
        let end = EndOfInput {
            reason: self.stop_reason.take().as_deref().map(ending_from_reason),
            called: self.blocks.called,
            is_complete: self.state == MessageState::Stopped && !open,
            error: self.error.take(),
        };
        end.finished()
    }

    /// Keeps the members of a delta that are not understood.
    fn unread_delta(&mut self, event: Raw<'_>, block: Option<BlockId>, sink: &mut dyn Sink) {
        if let Some(delta) = member(event, "delta") {
            MessagesDelta::each_unread(delta, |name, value| self.extra.keep_in(block, name, value, sink));
        }
    }

    fn message_start(&mut self, raw: Option<Raw<'_>>, sink: &mut dyn Sink) {
        let Some(raw) = raw else { return };
        let message: AnthropicMessage<'_> = read(raw);
        AnthropicMessage::each_unread(raw, |name, value| self.extra.keep(name, value, sink));
        // A proxy may start the message twice.
        if self.state == MessageState::Waiting {
            self.state = MessageState::Started;
            self.model(message.model.non_empty(), sink);
            if let Some(content) = message.content {
                self.content(content, sink);
            }
        }
        self.usage(message.usage, sink);
    }

    fn whole(&mut self, raw: Raw<'_>, sink: &mut dyn Sink) {
        let message: AnthropicMessage<'_> = read(raw);
        AnthropicMessage::each_unread(raw, |name, value| self.extra.keep(name, value, sink));
        self.model(message.model.non_empty(), sink);
        if let Some(content) = message.content {
            self.content(content, sink);
        }
        self.usage(message.usage, sink);
        self.stop_reason = message.stop_reason.non_empty().map(str::to_owned);
        self.state = MessageState::Stopped;
    }

    fn content(&mut self, content: Raw<'_>, sink: &mut dyn Sink) {
        let mut index = 0;
        each_element(content, |block| {
            self.blocks.whole(index, block, sink);
            index += 1;
        });
    }

    fn model(&mut self, model: Option<&str>, sink: &mut dyn Sink) {
        if let Some(model) = model {
            sink.take(Event::Started { model });
        }
    }

    fn usage(&mut self, usage: Option<Raw<'_>>, sink: &mut dyn Sink) {
        if let Some(usage) = usage {
            self.usage_reader.read(usage, &mut self.extra, sink);
        }
    }
}
