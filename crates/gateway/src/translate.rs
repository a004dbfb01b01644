//! Answers a client with the reply of a provider that speaks another protocol, or
//! that needs another request than the client's bytes.

use std::convert::Infallible;
use std::time::Instant;

use aside_core::block::Reply;
use aside_core::event::{ContextOverflow, Ending, Event, ProviderError, ReplyEnd};
use aside_core::fold::Fold;
use aside_core::protocol::Protocol;
use aside_core::rules::AnswerMode;
use aside_core::wire::{Encoder, ReplyHead, StreamWriter, emit_reply, error_reply, whole_reply};
use aside_engine::exchange::{
    ExchangeError, ExchangeOutcome, ExchangeRequest, ExchangeSink, ExchangeUpdate, ProviderRefusal, StopSignals,
};
use aside_engine::http::CallError;
use aside_memory::ReplyDraft;
use bytes::Bytes;
use serde_json::json;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::error_response::{ErrorKind, GatewayError, GatewayResponse, json_response, response, set_header};
use crate::generate::{Attempted, Call};
use crate::recall::{ReadRequest, StreamMarks};
use crate::receipt::{Receipt, Timing};
use crate::relay::{Relay, RelayFraming, relay};
use crate::reply_shape::ReplyShaper;
use crate::response_state::ResponseRequest;
use crate::route::ReplyDelivery;
use crate::same_protocol::attempt;
use crate::unchanged_bytes::UnchangedBytes;
use crate::watched_reply::note_time;

/// The status in the receipt of a request whose client has disconnected before it got anything; others use it too.
const CLIENT_GONE: u16 = 499;

/// The response for the client, decided when the reply begins or fails.
enum Verdict {
    /// A reply has begun. Its bytes follow.
    Begun(Box<Receipt>),
    /// The whole reply.
    Whole(String, Box<Receipt>),
    Failed(Box<(GatewayError, Receipt)>),
    Refused(Box<(ProviderRefusal, Receipt)>),
}

impl Call {
    pub(crate) async fn translate(self, receipt: Receipt) -> Attempted {
        let Some(read) = self.read.clone() else {
            let error = GatewayError::bad_request("the body is not a request of its protocol");
            return self.final_error(&error, receipt);
        };
        let content_type = match (self.delivery, self.protocol) {
            (ReplyDelivery::Streamed, Protocol::Ollama) => "application/x-ndjson",
            (ReplyDelivery::Streamed, _) => "text/event-stream",
            (ReplyDelivery::Whole | ReplyDelivery::WholeInList | ReplyDelivery::AsAsked, _) => "application/json",
        };
        let (relay, body) = relay(RelayFraming::of(self.protocol, content_type), self.context.config.serve.keep_alive);
        let (tell, told) = oneshot::channel();
        let header = self.repaired_header();
        let call = self.clone();
        self.context.gateway.replies.spawn(async move { call.run_exchange(&read, relay, tell, receipt).await });
        let with_counts = |mut answer: GatewayResponse, receipt: &Receipt| {
            set_header(&mut answer, header, &receipt.counts.to_string());
            answer
        };
        match told.await {
            Ok(Verdict::Begun(receipt)) => {
                let mut answer = response(200, content_type, body);
                set_header(&mut answer, "cache-control", "no-cache");
                Attempted::Answered(with_counts(answer, &receipt))
            }
            Ok(Verdict::Whole(body, receipt)) => Attempted::Answered(with_counts(json_response(200, body), &receipt)),
            Ok(Verdict::Failed(failed)) => self.error(&failed.0, failed.1),
            Ok(Verdict::Refused(refused)) => self.refused_translated(&refused.0, refused.1),
            Err(_) => {
                // The task ended without deciding: the gateway ends, or it panicked.
                let error = match self.context.gateway.replies.cut_off().is_cancelled() {
                    true => GatewayError::draining(),
                    false => GatewayError::new(ErrorKind::UpstreamUnreachable, "the request could not be completed"),
                };
                Attempted::Answered(error.response(self.protocol))
            }
        }
    }

    /// A response that is not kept, or that another provider keeps. With this error, clients send the whole
    /// conversation.
    pub(crate) fn previous_response_not_found(&self, mut receipt: Receipt) -> Attempted {
        receipt.status = 400;
        self.context.gateway.record(&receipt);
        let error = json!({
            "message": "Previous response not found; send the whole conversation.",
            "type": "invalid_request_error",
            "param": "previous_response_id",
            "code": "previous_response_not_found",
        });
        let mut answer = json_response(400, json!({ "error": error }).to_string());
        set_header(&mut answer, "aside-error", "bad_request");
        Attempted::Answered(answer)
    }

    async fn run_exchange(&self, read: &ReadRequest, relay: Relay, tell: oneshot::Sender<Verdict>, receipt: Receipt) {
        let _stream = self.context.gateway.metrics.stream();
        let draft = self.context.draft(Some(read));
        let marks = StreamMarks::new(self.protocol, draft, &self.target);
        let reply_id = marks.reply_id();
        let head = ReplyHead {
            previous: self.response.as_ref().and_then(ResponseRequest::previous),
            is_stored: marks.draft.is_some() && self.response.as_ref().is_some_and(|request| request.is_kept),
            ..ReplyHead::new(&reply_id, &self.asked, self.context.at.0 / 1000)
        };
        let output = match (self.delivery, self.is_same_protocol()) {
            (ReplyDelivery::Streamed, true) => {
                let bytes = Box::new(UnchangedBytes::new(self.protocol, self.target.redactor.stream()));
                ReplyOutput::Unchanged { marks, bytes }
            }
            (ReplyDelivery::Streamed, false) => ReplyOutput::Shaped {
                writer: Box::new(StreamWriter::new(self.protocol, &read.shape.rules, &head)),
                shaper: Box::new(ReplyShaper::new(&read.shape, &read.tools, marks)),
            },
            (ReplyDelivery::Whole | ReplyDelivery::WholeInList | ReplyDelivery::AsAsked, _) => {
                ReplyOutput::Whole { marks }
            }
        };
        let cancel = self.context.gateway.replies.cut_off().child_token();
        let mut sink = TranslatingSink {
            output,
            read,
            relay,
            tell: Some(tell),
            receipt,
            cancel: cancel.clone(),
            sent: Instant::now(),
            first_bytes: None,
            ended: None,
            timing: Timing::default(),
        };
        let exchange = self.context.gateway.exchange(&self.context.config, &self.target);
        let mut encoder = Encoder::new();
        let outcome = {
            let exchange_request = ExchangeRequest {
                endpoint: &self.target.endpoint,
                messages: read.messages(self.context.changes()),
                entries: Vec::new(),
                tools: &read.request.tools,
                settings: &self.settings,
                parameters: &read.request.parameters,
                answer_mode: AnswerMode::Normal,
                repairs: &self.repairs,
            };
            let stop = StopSignals { cancel: &cancel, answer_now: None };
            exchange.run(&exchange_request, &mut encoder, stop, &mut sink).await
        };
        self.learn(&outcome);
        self.end(outcome, sink, &head).await;
    }

    /// Remembers what the endpoint needs.
    fn learn(&self, outcome: &ExchangeOutcome) {
        // The call's own repairs were found by sending the client's bytes.
        let new = self.repairs.iter().chain(&outcome.repairs);
        if outcome.is_accepted() {
            self.context.gateway.learn(&self.target, new.cloned().collect());
        }
    }

    /// Remembers the reply, then sends its end.
    async fn end(&self, outcome: ExchangeOutcome, mut sink: TranslatingSink<'_>, head: &ReplyHead<'_>) {
        let ExchangeOutcome { result, reply, .. } = outcome;
        sink.receipt.timing = sink.timing;
        sink.note_attempt(match &result {
            Ok(()) => Some(200),
            Err(ExchangeError::Refused(refusal)) => refusal.error.status,
            Err(_) => None,
        });
        match &result {
            Err(ExchangeError::Cancelled) if sink.tell.is_some() => return self.end_cancelled(reply, sink).await,
            Err(error) if sink.tell.is_some() => return self.tell_failure(error, sink),
            Ok(()) | Err(_) => (),
        }
        let mut receipt = sink.receipt.clone();
        receipt.status = 200;
        if !sink.is_stream() {
            let Some(tell) = sink.tell.take() else { return };
            let (read, marks) = (sink.read, sink.output.into_marks());
            let (whole, mut draft) = self.whole(&reply, read, marks, head);
            if let (Ok(()), Some(request), Some(draft)) = (&result, &self.response, &mut draft) {
                request.keep(draft, &whole);
            }
            let whole = if self.delivery == ReplyDelivery::WholeInList { format!("[{whole}]") } else { whole };
            self.finish(reply, receipt.clone(), draft).await;
            // The client may be gone.
            let _gone = tell.send(Verdict::Whole(whole, Box::new(receipt)));
            return;
        }
        // A stream without any content begins at its end.
        sink.begin();
        let end = end_of(sink.ended.take(), &result);
        sink.write_end(&end);
        let unsent = sink.take_unsent();
        let TranslatingSink { output, mut relay, read, .. } = sink;
        // The provider's bytes have no room for an error of ours; the connection breaks as the provider's did.
        let broken = match (&output, &result) {
            (ReplyOutput::Unchanged { .. }, Err(error)) => {
                Some(self.target.redactor.clean(&error.to_string()).into_owned())
            }
            (ReplyOutput::Unchanged { .. }, Ok(())) | (ReplyOutput::Shaped { .. } | ReplyOutput::Whole { .. }, _) => {
                None
            }
        };
        let draft = self.draft_of_stream(output, &reply, read, head, result.is_ok());
        self.finish(reply, receipt, draft).await;
        let _gone = relay.send(Bytes::from(unsent)).await;
        if let Some(why) = broken {
            relay.abort(&why);
        }
    }

    /// The client has disconnected before it got anything, or the gateway ends. What came is remembered all the same.
    async fn end_cancelled(&self, reply: Reply, sink: TranslatingSink<'_>) {
        let status = match self.context.gateway.replies.cut_off().is_cancelled() {
            true => GatewayError::draining().kind.status(),
            false => CLIENT_GONE,
        };
        let receipt = Receipt { status, ..sink.receipt };
        self.finish(reply, receipt, sink.output.into_marks().draft).await;
    }

    fn tell_failure(&self, error: &ExchangeError, mut sink: TranslatingSink<'_>) {
        let Some(tell) = sink.tell.take() else { return };
        let receipt = sink.receipt;
        let verdict = match error {
            ExchangeError::Refused(refusal) => Verdict::Refused(Box::new(((**refusal).clone(), receipt))),
            ExchangeError::Unreachable(unreachable) => {
                let error = self.unreachable(&CallError::Unreachable(unreachable.clone()));
                Verdict::Failed(Box::new((error, receipt)))
            }
            ExchangeError::Cancelled => return,
            ExchangeError::Invalid(_)
            | ExchangeError::Unreadable { .. }
            | ExchangeError::Oversized { .. }
            | ExchangeError::AnswerNow => {
                let error = GatewayError::new(ErrorKind::UpstreamUnreachable, error.to_string());
                Verdict::Failed(Box::new((error, receipt)))
            }
        };
        // The client may be gone.
        let _gone = tell.send(verdict);
    }

    /// A provider's refusal, with the provider's message in the format of the client's protocol.
    fn refused_translated(&self, refusal: &ProviderRefusal, mut receipt: Receipt) -> Attempted {
        let status = refusal.error.status.unwrap_or(502);
        receipt.status = status;
        let overflow = match self.context.config.dialects.is_too_long(&refusal.error.words_and_code()) {
            true => ContextOverflow::Final,
            false => ContextOverflow::None,
        };
        // Without the provider's code: the client knows those of its own protocol.
        let error = ProviderError::new(refusal.error.message.clone())
            .with_status(status)
            .with_overflow(overflow)
            .with_lacks_credit(refusal.error.lacks_credit);
        let mut answer = json_response(status, error_reply(self.protocol, &error));
        if let Some(pause) = refusal.response.as_ref().and_then(|response| response.retry_after) {
            set_header(&mut answer, "retry-after", &pause.as_secs().max(1).to_string());
        }
        set_header(&mut answer, self.repaired_header(), &receipt.counts.to_string());
        if matches!(status, 408 | 429 | 500..) {
            return Attempted::failed(answer, receipt);
        }
        self.context.gateway.record(&receipt);
        Attempted::Answered(answer)
    }

    /// The draft of a reply that was streamed, with the response that the client may ask for by its id.
    fn draft_of_stream(
        &self,
        output: ReplyOutput<'_>,
        reply: &Reply,
        read: &ReadRequest,
        head: &ReplyHead<'_>,
        is_complete: bool,
    ) -> Option<ReplyDraft> {
        match (output, &self.response) {
            (ReplyOutput::Shaped { shaper, .. }, Some(request)) if is_complete && request.is_kept => {
                let (whole, mut draft) = self.whole(reply, read, shaper.into_marks().again(), head);
                if let Some(draft) = &mut draft {
                    request.keep(draft, &whole);
                }
                draft
            }
            (ReplyOutput::Unchanged { marks, bytes }, _) => {
                let mut draft = marks.draft;
                if let (Some(draft), Some(id)) = (&mut draft, bytes.response_id.id()) {
                    draft.name_response(id);
                }
                draft
            }
            (output, _) => output.into_marks().draft,
        }
    }

    fn whole(
        &self,
        reply: &Reply,
        read: &ReadRequest,
        marks: StreamMarks,
        head: &ReplyHead<'_>,
    ) -> (String, Option<ReplyDraft>) {
        let endpoint = &self.target.endpoint;
        match self.is_same_protocol() {
            true => {
                let rules = endpoint.dialect.rules(Some(&endpoint.model));
                (whole_reply(self.protocol, rules, head, reply), marks.draft)
            }
            false => {
                let mut shaper = ReplyShaper::new(&read.shape, &read.tools, marks);
                let mut fold = Fold::new();
                emit_reply(reply, &mut |event: Event<'_>| shaper.take(event, &mut fold));
                (whole_reply(self.protocol, &read.shape.rules, head, &fold.finish()), shaper.into_marks().draft)
            }
        }
    }
}

/// How the reply ends for the client. A broken connection is an error, because otherwise the client would keep waiting.
fn end_of(ended: Option<ReplyEnd>, result: &Result<(), ExchangeError>) -> ReplyEnd {
    let end = ended.unwrap_or_default();
    match result {
        Ok(()) => end,
        Err(_) if end.error.is_some() => end,
        Err(error) => {
            let error = ProviderError::new(error.to_string()).with_status(502);
            ReplyEnd { ending: Ending::Error, error: Some(error) }
        }
    }
}

/// How the reply gets to the client.
enum ReplyOutput<'a> {
    /// Rewritten in the client's protocol.
    Shaped { writer: Box<StreamWriter>, shaper: Box<ReplyShaper<'a, StreamMarks>> },
    /// The provider's bytes.
    Unchanged { marks: StreamMarks, bytes: Box<UnchangedBytes> },
    /// As one body at the end.
    Whole { marks: StreamMarks },
}

impl<'a> ReplyOutput<'a> {
    fn into_marks(self) -> StreamMarks {
        match self {
            ReplyOutput::Shaped { shaper, .. } => shaper.into_marks(),
            ReplyOutput::Unchanged { marks, .. } | ReplyOutput::Whole { marks } => marks,
        }
    }
}

/// Writes a reply to the client while it arrives.
struct TranslatingSink<'a> {
    output: ReplyOutput<'a>,
    read: &'a ReadRequest,
    relay: Relay,
    /// Present until the client has been answered.
    tell: Option<oneshot::Sender<Verdict>>,
    receipt: Receipt,
    cancel: CancellationToken,
    /// When the last request was sent.
    sent: Instant,
    first_bytes: Option<Instant>,
    ended: Option<ReplyEnd>,
    timing: Timing,
}

impl TranslatingSink<'_> {
    fn is_stream(&self) -> bool {
        !matches!(self.output, ReplyOutput::Whole { .. })
    }

    fn write_event(&mut self, event: Event<'_>) {
        if let ReplyOutput::Shaped { writer, shaper } = &mut self.output {
            shaper.take(event, writer.as_mut());
        }
    }

    /// What waits for the client.
    fn take_unsent(&mut self) -> Vec<u8> {
        match &mut self.output {
            ReplyOutput::Shaped { writer, .. } => writer.drain(),
            ReplyOutput::Unchanged { bytes, .. } => bytes.take_unsent(),
            ReplyOutput::Whole { .. } => Vec::new(),
        }
    }

    fn write_end(&mut self, end: &ReplyEnd) {
        if let ReplyOutput::Unchanged { bytes, .. } = &mut self.output {
            bytes.release();
        }
        self.write_event(Event::Ended(end));
    }

    /// The client is answered; from here on it gets a stream.
    fn begin(&mut self) {
        if !self.is_stream() {
            return;
        }
        if let Some(tell) = self.tell.take() {
            // A client that is gone is noticed when bytes are sent.
            let _gone = tell.send(Verdict::Begun(Box::new(self.receipt.clone())));
        }
    }

    async fn flush(&mut self) -> Result<(), crate::relay::ClientGone> {
        let bytes = Bytes::from(self.take_unsent());
        self.relay.send(bytes).await
    }

    fn note_attempt(&mut self, status: Option<u16>) {
        self.receipt.upstream.push(attempt(status, self.sent, None));
    }
}

impl ExchangeSink for TranslatingSink<'_> {
    fn on_update(&mut self, update: ExchangeUpdate<'_>) {
        match update {
            ExchangeUpdate::Sending { encoded, body } => {
                self.sent = Instant::now();
                self.receipt.note_sent(body);
                self.receipt.note_encoded(self.read, encoded);
            }
            ExchangeUpdate::Received(bytes) => {
                self.first_bytes.get_or_insert_with(Instant::now);
                self.timing.first_byte.get_or_insert_with(Instant::now);
                if let ReplyOutput::Unchanged { bytes: unchanged, .. } = &mut self.output {
                    unchanged.add(bytes.clone());
                }
            }
            ExchangeUpdate::AtEnd => {
                if let ReplyOutput::Unchanged { bytes, .. } = &mut self.output {
                    bytes.end_is_read();
                }
            }
            ExchangeUpdate::Event { event: Event::Ended(end), .. } => self.ended = Some(end.clone()),
            ExchangeUpdate::Event { event, .. } => {
                note_time(event, &mut self.timing);
                if matches!(event, Event::Opened { .. }) {
                    self.begin();
                }
                self.write_event(event);
            }
            ExchangeUpdate::Retrying { .. } => self.note_attempt(None),
            ExchangeUpdate::Repaired(notice) => {
                self.receipt.upstream.push(attempt(None, self.sent, Some(notice.row.clone())));
                self.receipt.counts.refused += 1;
                if self.tell.is_some() {
                    // The refusal inside a stream is not part of the answer.
                    drop(self.take_unsent());
                    self.ended = None;
                    if let ReplyOutput::Unchanged { bytes, .. } = &mut self.output {
                        bytes.start_over();
                    }
                }
            }
        }
    }

    async fn ready(&mut self) {
        if self.tell.is_none() && self.is_stream() && self.flush().await.is_err() {
            self.cancel.cancel();
        }
    }

    async fn while_waiting(&mut self) -> Infallible {
        loop {
            let is_gone = self.relay.silence().await.is_err();
            // Once bytes have come, the status is known well enough to answer the client.
            if !is_gone && self.tell.is_some() && self.first_bytes.is_some() {
                self.begin();
            }
            let is_answered = self.tell.is_none() && self.is_stream();
            if is_gone || (is_answered && self.relay.sign_of_life().await.is_err()) {
                self.cancel.cancel();
                // The cancellation ends the exchange.
                std::future::pending::<()>().await;
            }
        }
    }
}
