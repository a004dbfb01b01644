//! Decodes a reply while its bytes are passed on.

use std::time::Instant;

use aside_core::block::Reply;
use aside_core::event::{BlockOpening, Event, ProseKind, Sink};
use aside_core::fold::Fold;
use aside_core::protocol::Protocol;
use aside_core::wire::Decoder;

use crate::gateway::now;
use crate::receipt::Timing;
use crate::response_state::ResponseIdFinder;

/// A reply that is being passed on, and what is learned from it.
pub(crate) struct WatchedReply {
    decoder: Decoder,
    fold: Fold,
    timing: Timing,
    pub(crate) response_id: ResponseIdFinder,
}

impl WatchedReply {
    pub(crate) fn new(decoder: Decoder, protocol: Protocol) -> WatchedReply {
        let response_id = ResponseIdFinder::new(protocol);
        WatchedReply { decoder, fold: Fold::new(), timing: Timing::default(), response_id }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.timing.first_byte.get_or_insert_with(Instant::now);
        self.response_id.push(bytes);
        self.fold.set_now(now());
        self.decoder.push(bytes, &mut TimedSink { fold: &mut self.fold, timing: &mut self.timing });
    }

    /// Whether the provider has said that the reply ends here.
    pub(crate) fn is_at_end(&self) -> bool {
        self.decoder.is_at_end()
    }

    /// Ends a reply whose body was read to its end, or not.
    pub(crate) fn finish(self, is_whole: bool) -> (Reply, Timing) {
        let WatchedReply { decoder, mut fold, mut timing, .. } = self;
        let mut sink = TimedSink { fold: &mut fold, timing: &mut timing };
        // A body that is not understood was passed on anyway; its receipt lacks the usage.
        let _not_understood = if is_whole { decoder.finish(&mut sink) } else { decoder.finish_broken_off(&mut sink) };
        (fold.finish(), timing)
    }
}

/// Notes when thinking and the answer begin.
pub(crate) struct TimedSink<'a> {
    pub(crate) fold: &'a mut Fold,
    pub(crate) timing: &'a mut Timing,
}

impl Sink for TimedSink<'_> {
    fn take(&mut self, event: Event<'_>) {
        note_time(event, self.timing);
        self.fold.take(event);
    }
}

pub(crate) fn note_time(event: Event<'_>, timing: &mut Timing) {
    match event {
        Event::Opened { opening: BlockOpening::Thinking { .. }, .. }
        | Event::Refiled { to: ProseKind::Thinking, .. } => {
            timing.first_thought.get_or_insert_with(Instant::now);
        }
        Event::Opened { opening: BlockOpening::Text | BlockOpening::ToolCall { .. }, .. } => {
            timing.first_answer.get_or_insert_with(Instant::now);
        }
        Event::Opened { opening: BlockOpening::Unmodelled, .. }
        | Event::Refiled { to: ProseKind::Text, .. }
        | Event::Started { .. }
        | Event::Item { .. }
        | Event::Grew { .. }
        | Event::Sealed { .. }
        | Event::Identified { .. }
        | Event::Restated { .. }
        | Event::NativeItem { .. }
        | Event::Closed { .. }
        | Event::Extra { .. }
        | Event::EmptyThinkingField { .. }
        | Event::Usage(_)
        | Event::Noted(_)
        | Event::Ended(_) => (),
    }
}
