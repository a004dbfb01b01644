//! Reads a reply as fast as the sink accepts it, and decodes it.

use std::time::Duration;

use aside_core::block::Reply;
use aside_core::connection_failure::ConnectionError;
use aside_core::event::{BlockOpening, Event, NoteCode, ProseKind, Sink};
use aside_core::fold::Fold;
use aside_core::wire::{Decoder, NotUnderstood};
use bytes::Bytes;
use tokio::time::Instant;

use super::outcome::{ExchangeError, ProviderRefusal};
use super::request::{ExchangeRequest, ReplyPhase, StopSignals, StoppedBy};
use super::sink::{ExchangeSink, ExchangeUpdate, wait_for, wait_for_sink};
use crate::clock::now;
use crate::http::{Http, HttpReply};
use crate::redact::Redactor;

/// How long a body may stay open after the end of the reply. Some servers leave it open as long as the connection.
const MAX_OPEN_BODY: Duration = Duration::from_millis(50);

/// Why reading stopped.
enum StreamStop {
    Complete,
    /// The reply reached the size limit.
    Full,
    Signal(StoppedBy),
    Failed(ConnectionError),
}

/// The next bytes of a body, waited for until a moment if the reply has ended. None after the end.
async fn next_bytes(
    http: &Http,
    reply: &mut HttpReply,
    end_of_wait: Option<Instant>,
) -> Result<Option<Bytes>, ConnectionError> {
    match end_of_wait {
        None => reply.next_bytes(http).await,
        Some(end_of_wait) => tokio::time::timeout_at(end_of_wait, reply.next_bytes(http)).await.unwrap_or(Ok(None)),
    }
}

pub(super) struct ReplyReader<'a, S> {
    pub(super) http: &'a Http,
    pub(super) redactor: &'a Redactor,
    pub(super) request: &'a ExchangeRequest<'a>,
    pub(super) stop: StopSignals<'a>,
    pub(super) sink: &'a mut S,
}

impl<S: ExchangeSink> ReplyReader<'_, S> {
    pub(super) async fn read(
        mut self,
        mut decoder: Decoder,
        mut http_reply: HttpReply,
    ) -> (Reply, Option<ExchangeError>) {
        let mut fold = Fold::new();
        let mut phase = ReplyPhase::default();
        let stop = self.read_stream(&mut decoder, &mut http_reply, &mut fold, &mut phase).await;
        let content_type = http_reply.content_type().map(str::to_owned);
        // This closes the socket of an incomplete reply, so the provider stops generating.
        drop(http_reply);
        fold.set_now(now());
        let mut tee = self.tee(&mut fold, &mut phase, Some(&stop));
        let read = match stop {
            StreamStop::Failed(_) => decoder.finish_broken_off(&mut tee),
            StreamStop::Complete | StreamStop::Full | StreamStop::Signal(_) => decoder.finish(&mut tee),
        };
        // A signal only ends the wait: the reply has ended already.
        let _waited = wait_for_sink(phase, self.stop, self.sink).await;
        let reply = fold.finish();
        let error = self.error(stop, read, &reply, content_type.as_deref());
        (reply, error)
    }

    async fn read_stream(
        &mut self,
        decoder: &mut Decoder,
        http_reply: &mut HttpReply,
        fold: &mut Fold,
        phase: &mut ReplyPhase,
    ) -> StreamStop {
        let mut end_of_wait = None;
        loop {
            let next = next_bytes(self.http, http_reply, end_of_wait);
            match wait_for(next, *phase, self.stop, self.sink).await {
                Ok(Ok(Some(bytes))) => {
                    self.sink.on_update(ExchangeUpdate::Received(&bytes));
                    fold.set_now(now());
                    decoder.push(&bytes, &mut self.tee(fold, phase, None));
                    if decoder.is_at_end() && end_of_wait.is_none() {
                        end_of_wait = Some(Instant::now() + MAX_OPEN_BODY);
                        self.sink.on_update(ExchangeUpdate::AtEnd);
                    }
                }
                Ok(Ok(None)) => return StreamStop::Complete,
                Ok(Err(error)) => return StreamStop::Failed(error),
                Err(by) => return StreamStop::Signal(by),
            }
            if let Err(by) = wait_for_sink(*phase, self.stop, self.sink).await {
                return StreamStop::Signal(by);
            }
            if decoder.is_full() {
                return StreamStop::Full;
            }
        }
    }

    fn tee<'b>(
        &'b mut self,
        fold: &'b mut Fold,
        phase: &'b mut ReplyPhase,
        stop: Option<&'b StreamStop>,
    ) -> EventTee<'b, S> {
        EventTee { fold, sink: self.sink, phase, redactor: self.redactor, stop }
    }

    fn error(
        &self,
        stop: StreamStop,
        read: Result<(), NotUnderstood>,
        reply: &Reply,
        content_type: Option<&str>,
    ) -> Option<ExchangeError> {
        match stop {
            StreamStop::Signal(by) => return Some(by.into()),
            // Servers close connections in many ways, for example without TLS's close_notify.
            StreamStop::Failed(_) if reply.end.has_last_frame() => (),
            StreamStop::Failed(error) => return Some(error.into()),
            StreamStop::Full | StreamStop::Complete => (),
        }
        if reply.notes.iter().any(|note| note.code == NoteCode::Oversized) {
            return Some(ExchangeError::Oversized {
                most: self.request.settings.max_reply_bytes().unwrap_or_default(),
            });
        }
        if let Err(error) = read {
            let (base_url, kind) = (&self.request.endpoint.base_url, content_type.unwrap_or("no content type"));
            let what = format!("the response from {base_url} is not understood ({kind}): {error}; check its base_url");
            return Some(ExchangeError::Unreadable { what });
        }
        // Some providers refuse within a stream.
        let error = reply.end.error.clone().filter(|_| reply.blocks.is_empty())?;
        Some(ExchangeError::Refused(Box::new(ProviderRefusal { error, response: None })))
    }
}

/// Passes each event to the fold first, so that the sink sees the updated reply.
struct EventTee<'a, S> {
    fold: &'a mut Fold,
    sink: &'a mut S,
    phase: &'a mut ReplyPhase,
    /// Providers repeat keys in their errors.
    redactor: &'a Redactor,
    /// Why the stream stopped, once it has.
    stop: Option<&'a StreamStop>,
}

impl<S: ExchangeSink> Sink for EventTee<'_, S> {
    fn take(&mut self, event: Event<'_>) {
        if let Event::Ended(end) = event {
            self.forward(Event::Ended(&self.redactor.end(end)));
        } else if let Event::Noted(note) = event {
            self.forward(Event::Noted(&self.redactor.note(note)));
        } else {
            self.forward(event);
        }
    }
}

impl<S: ExchangeSink> EventTee<'_, S> {
    fn forward(&mut self, event: Event<'_>) {
        self.fold.take(event);
        self.phase.observe(event);
        // The user caused the cut, so do not report it.
        let is_known = matches!(event, Event::Noted(note) if note.code == NoteCode::CutOff);
        if is_known && matches!(self.stop, Some(StreamStop::Signal(_))) {
            return;
        }
        self.sink.on_update(ExchangeUpdate::Event { event, fold: self.fold });
    }
}

impl ReplyPhase {
    fn observe(&mut self, event: Event<'_>) {
        match event {
            Event::Opened { opening: BlockOpening::Thinking { .. }, .. }
            | Event::Refiled { to: ProseKind::Thinking, .. } => {
                *self = ReplyPhase::Thinking;
            }
            Event::Opened { opening: BlockOpening::Text | BlockOpening::ToolCall { .. }, .. }
            | Event::Refiled { to: ProseKind::Text, .. } => *self = ReplyPhase::Answering,
            Event::Opened { opening: BlockOpening::Unmodelled, .. }
            | Event::Started { .. }
            | Event::Identified { .. }
            | Event::Item { .. }
            | Event::Grew { .. }
            | Event::Sealed { .. }
            | Event::Restated { .. }
            | Event::NativeItem { .. }
            | Event::Extra { .. }
            | Event::EmptyThinkingField { .. }
            | Event::Closed { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => (),
        }
    }
}
