//! Answers a client with the reply of a provider that speaks another protocol, or
//! that needs another request than the client's bytes.

use std::convert::Infallible;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use aside_core::block::{Block, Reply, SealKind};
use aside_core::event::{Ending, Event, ProviderError, ReplyEnd};
use aside_core::fold::Fold;
use aside_core::message::{Message, Role};
use aside_core::protocol::Protocol;
use aside_core::rules::{AnswerMode, EgressAction};
use aside_core::wire::{
    ClientRequest, Encoded, Encoder, ReplyHead, StreamWriter, emit_reply, error_reply, read_request, whole_reply,
};
use aside_engine::exchange::{
    ExchangeError, ExchangeOutcome, ExchangeRequest, ExchangeSink, ExchangeUpdate, ProviderRefusal, StopSignals,
};
use aside_engine::http::CallError;
use aside_session::serve_table::ThinkingShape;
use bytes::Bytes;
use serde_json::json;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::error_response::{ErrorKind, GatewayError, GatewayResponse, json_response, response, set_header};
use crate::generate::{Attempted, Call};
use crate::ids::IdSource;
use crate::receipt::{Receipt, Timing};
use crate::relay::{Relay, RelayFraming, relay};
use crate::reply_shape::{ClientShape, DETAILS, ReplyMarks, ReplyShaper};
use crate::route::Delivery;
use crate::same_protocol::{attempt, note_time};
use crate::tool_names::ToolNames;

/// What the client is answered, decided when the reply begins or fails.
enum Verdict {
    /// A reply has begun. Its bytes follow.
    Begun(Box<Receipt>),
    /// The whole reply.
    Whole(String, Box<Receipt>),
    Failed(Box<(GatewayError, Receipt)>),
    Refused(Box<(ProviderRefusal, Receipt)>),
}

/// A client's request in neutral form.
struct TranslatedRequest {
    request: ClientRequest,
    tools: ToolNames,
    shape: ClientShape,
}

impl Call {
    pub(crate) async fn translate(self, receipt: Receipt) -> Attempted {
        let translated = match self.read() {
            Ok(translated) => translated,
            Err(error) => return self.final_error(&error, receipt),
        };
        let content_type = match (self.delivery, self.protocol) {
            (Delivery::Streamed, Protocol::Ollama) => "application/x-ndjson",
            (Delivery::Streamed, _) => "text/event-stream",
            (Delivery::Whole | Delivery::WholeInList | Delivery::AsAsked, _) => "application/json",
        };
        let (relay, body) = relay(RelayFraming::of(self.protocol, content_type));
        let (tell, told) = oneshot::channel();
        let header = self.repaired_header();
        let call = self.clone();
        tokio::spawn(async move { call.run_exchange(translated, relay, tell, receipt).await });
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
                // The task has ended without a verdict, which only a panic explains.
                let error = GatewayError::new(ErrorKind::UpstreamUnreachable, "the request could not be completed");
                Attempted::Answered(error.response(self.protocol))
            }
        }
    }

    fn read(&self) -> Result<TranslatedRequest, GatewayError> {
        let dialects = &self.context.config.dialects;
        let endpoint = &self.target.endpoint;
        let is_same = self.target.protocol() == self.protocol;
        let shape = ClientShape::of(dialects, self.protocol, self.thinking_shape());
        let shape = shape.ok_or_else(|| GatewayError::bad_request("no dialect speaks this protocol"))?;
        let rules = if is_same { endpoint.dialect.rules(Some(&endpoint.model)) } else { &shape.rules };
        let mut request = read_request(self.protocol, rules, &self.body.text)
            .map_err(|error| GatewayError::bad_request(error.to_string()))?;
        let origin = endpoint.origin();
        if is_same {
            return Ok(TranslatedRequest { request: request.with_origin(&origin), tools: ToolNames::default(), shape });
        }
        let tools = ToolNames::replace(&mut request);
        for message in request.messages.iter_mut().filter(|message| message.role == Role::Assistant) {
            remove_details(message);
            // A seal that is not ours was made by somebody else.
            if !message.thinking().any(|thinking| thinking.seals().is_some()) {
                message.origin = Some(origin.clone());
            }
        }
        Ok(TranslatedRequest { request, tools, shape })
    }

    fn thinking_shape(&self) -> ThinkingShape {
        self.context.config.serve.thinking
    }

    async fn run_exchange(
        self,
        translated: TranslatedRequest,
        relay: Relay,
        tell: oneshot::Sender<Verdict>,
        receipt: Receipt,
    ) {
        let _stream = self.context.gateway.metrics.stream();
        let TranslatedRequest { request, tools, shape } = &translated;
        let reply_id = self.context.gateway.ids.reply_id(reply_id_prefix(self.protocol));
        let head = ReplyHead { id: &reply_id, model: &self.asked, created: self.context.at.0 / 1000 };
        let cancel = CancellationToken::new();
        let mut sink = TranslatingSink {
            writer: StreamWriter::new(self.protocol, &shape.rules, &head),
            shaper: ReplyShaper::new(shape, tools, PlainMarks::new(&self.context.gateway.ids)),
            relay,
            tell: Some(tell),
            receipt,
            cancel: cancel.clone(),
            streams: self.delivery == Delivery::Streamed,
            keep_alive: self.context.config.serve.keep_alive,
            sent: Instant::now(),
            first_bytes: None,
            unsent: Vec::new(),
            ended: None,
            timing: Timing::default(),
        };
        let exchange = self.context.gateway.exchange(&self.context.config, &self.target);
        let mut encoder = Encoder::new();
        let outcome = {
            let exchange_request = ExchangeRequest {
                endpoint: &self.target.endpoint,
                messages: request.messages.iter().collect(),
                entries: Vec::new(),
                tools: &request.tools,
                settings: &self.settings,
                parameters: &request.parameters,
                answer_mode: AnswerMode::Normal,
                repairs: &self.repairs,
            };
            let stop = StopSignals { cancel: &cancel, answer_now: None };
            exchange.run(&exchange_request, &mut encoder, stop, &mut sink).await
        };
        self.learn(&outcome);
        self.end(outcome, sink, shape, tools, &head).await;
    }

    /// Remembers what the endpoint needs.
    fn learn(&self, outcome: &ExchangeOutcome) {
        if outcome.is_accepted() && !outcome.repairs.is_empty() {
            let mut learned = self.context.gateway.learned.write().unwrap_or_else(PoisonError::into_inner);
            for repair in &outcome.repairs {
                learned.learn(&self.target.endpoint.repair_key(), repair.clone());
            }
        }
    }

    /// Records the reply, then sends its end.
    async fn end(
        &self,
        outcome: ExchangeOutcome,
        mut sink: TranslatingSink<'_>,
        shape: &ClientShape,
        tools: &ToolNames,
        head: &ReplyHead<'_>,
    ) {
        let ExchangeOutcome { result, reply, .. } = outcome;
        sink.receipt.timing = sink.timing;
        sink.note_attempt(match &result {
            Ok(()) => Some(200),
            Err(ExchangeError::Refused(refusal)) => refusal.error.status,
            Err(_) => None,
        });
        if let (Err(error), true) = (&result, sink.tell.is_some()) {
            return self.tell_failure(error, sink);
        }
        let mut receipt = sink.receipt.clone();
        receipt.status = 200;
        match sink.tell.take() {
            Some(tell) if !sink.streams => {
                let whole = self.whole(&reply, shape, tools, head);
                self.finish(reply, receipt.clone());
                // The client may be gone.
                let _gone = tell.send(Verdict::Whole(whole, Box::new(receipt)));
            }
            tell => {
                // A stream without any content begins at its end.
                let _gone = tell.map(|tell| tell.send(Verdict::Begun(Box::new(receipt.clone()))));
                let end = end_of(sink.ended.take(), &result);
                sink.write(Event::Ended(&end));
                self.finish(reply, receipt);
                let _gone = sink.flush().await;
            }
        }
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

    /// A provider's refusal in the words of the provider and the shape of the client.
    fn refused_translated(&self, refusal: &ProviderRefusal, mut receipt: Receipt) -> Attempted {
        let status = refusal.error.status.unwrap_or(502);
        receipt.status = status;
        let error = ProviderError::new(refusal.error.message.clone()).with_status(status);
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

    fn whole(&self, reply: &Reply, shape: &ClientShape, tools: &ToolNames, head: &ReplyHead<'_>) -> String {
        let mut shaper = ReplyShaper::new(shape, tools, PlainMarks::new(&self.context.gateway.ids));
        let mut fold = Fold::new();
        emit_reply(reply, &mut |event: Event<'_>| shaper.take(event, &mut fold));
        let body = whole_reply(self.protocol, &shape.rules, head, &fold.finish());
        if self.delivery == Delivery::WholeInList { format!("[{body}]") } else { body }
    }
}

/// How the reply ends for the client. A connection that broke off is an error, because the client would wait.
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

fn reply_id_prefix(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenaiChat => "chatcmpl-",
        Protocol::OpenaiResponses => "resp_",
        Protocol::Anthropic => "msg_",
        Protocol::Gemini | Protocol::Ollama | Protocol::Bedrock | Protocol::Cohere => "",
    }
}

/// Removes thinking that was shown inside an answer.
fn remove_details(message: &mut Message) {
    for block in &mut message.blocks {
        if let Block::Text(text) = block
            && let Some(rest) = text.text.strip_prefix(DETAILS.0.trim_end())
            && let Some((_, answer)) = rest.split_once(DETAILS.1.trim())
        {
            text.text = answer.trim_start().to_owned();
        }
    }
}

/// Ids without a memory: the provider's, or new ones where it has none.
pub(crate) struct PlainMarks<'a> {
    ids: &'a IdSource,
}

impl PlainMarks<'_> {
    fn new(ids: &IdSource) -> PlainMarks<'_> {
        PlainMarks { ids }
    }
}

impl ReplyMarks for PlainMarks<'_> {
    fn call_id(&mut self, given: Option<&str>) -> String {
        given.filter(|id| !id.is_empty()).map_or_else(|| self.ids.reply_id("call_"), str::to_owned)
    }

    fn seal(&mut self, _block: u32, _has_text: bool) -> Option<(SealKind, String)> {
        None
    }

    fn item_id(&mut self, _block: u32) -> Option<String> {
        Some(self.ids.reply_id("rs_"))
    }
}

/// Writes the events of a reply to the client.
struct TranslatingSink<'a> {
    writer: StreamWriter,
    shaper: ReplyShaper<'a, PlainMarks<'a>>,
    relay: Relay,
    /// Present until the client has been answered.
    tell: Option<oneshot::Sender<Verdict>>,
    receipt: Receipt,
    cancel: CancellationToken,
    streams: bool,
    keep_alive: Duration,
    /// When the last request was sent.
    sent: Instant,
    first_bytes: Option<Instant>,
    /// Bytes that wait for the client.
    unsent: Vec<u8>,
    ended: Option<ReplyEnd>,
    timing: Timing,
}

impl TranslatingSink<'_> {
    fn write(&mut self, event: Event<'_>) {
        if self.streams {
            self.shaper.take(event, &mut self.writer);
            self.unsent.extend(self.writer.drain());
        }
    }

    /// The client is answered; from here on it gets a stream.
    fn begin(&mut self) {
        if !self.streams {
            return;
        }
        if let Some(tell) = self.tell.take() {
            // A client that is gone is noticed when bytes are sent.
            let _gone = tell.send(Verdict::Begun(Box::new(self.receipt.clone())));
        }
    }

    async fn flush(&mut self) -> Result<(), crate::relay::ClientGone> {
        let bytes = Bytes::from(std::mem::take(&mut self.unsent));
        self.relay.send(bytes).await
    }

    fn note_encoded(&mut self, encoded: &Encoded) {
        let fillers = encoded.decisions.iter().filter(|made| made.action == EgressAction::Filler).count();
        self.receipt.counts.filler = u32::try_from(fillers).unwrap_or(u32::MAX);
        self.receipt.set_left_out(&encoded.left_out);
        self.receipt.decisions = encoded
            .decisions
            .iter()
            .filter(|made| made.block.is_none() || made.action == EgressAction::Dropped)
            .take(1000)
            .map(|made| {
                json!({
                    "message": made.message,
                    "block": made.block,
                    "kind": if made.block.is_none() { "filler" } else { "block" },
                    "action": aside_session::decision_action(made.action),
                    "as": made.field,
                    "rule": made.reason.rule(),
                    "evidence": null,
                    "reply": null,
                    "bytes": null,
                    "hash": null,
                })
            })
            .collect();
    }

    fn note_attempt(&mut self, status: Option<u16>) {
        self.receipt.upstream.push(attempt(status, self.sent, None));
    }
}

impl ExchangeSink for TranslatingSink<'_> {
    fn on_update(&mut self, update: ExchangeUpdate<'_>) {
        match update {
            ExchangeUpdate::Sending { encoded, .. } => {
                self.sent = Instant::now();
                self.note_encoded(encoded);
            }
            ExchangeUpdate::Received(_) => {
                self.first_bytes.get_or_insert_with(Instant::now);
                self.timing.first_byte.get_or_insert_with(Instant::now);
            }
            ExchangeUpdate::Event { event: Event::Ended(end), .. } => self.ended = Some(end.clone()),
            ExchangeUpdate::Event { event, .. } => {
                note_time(event, &mut self.timing);
                if matches!(event, Event::Opened { .. }) {
                    self.begin();
                }
                self.write(event);
            }
            ExchangeUpdate::Retrying { .. } => self.note_attempt(None),
            ExchangeUpdate::Repaired(notice) => {
                self.receipt.upstream.push(attempt(None, self.sent, Some(notice.row.clone())));
            }
        }
    }

    async fn ready(&mut self) {
        if self.tell.is_none() && self.streams && self.flush().await.is_err() {
            self.cancel.cancel();
        }
    }

    async fn while_waiting(&mut self) -> Infallible {
        loop {
            let is_answered = self.tell.is_none();
            tokio::select! {
                biased;
                () = self.relay.closed() => {
                    self.cancel.cancel();
                    std::future::pending::<()>().await;
                }
                () = tokio::time::sleep(self.keep_alive) => {
                    // Once bytes have come, the status is known well enough to answer the client.
                    if !is_answered && self.first_bytes.is_some() {
                        self.begin();
                    }
                    if self.tell.is_none() && self.streams && self.relay.sign_of_life().await.is_err() {
                        self.cancel.cancel();
                    }
                }
            }
        }
    }
}
