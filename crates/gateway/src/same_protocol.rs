//! Passes a request on to a provider that speaks the client's protocol. Bytes change
//! only where the provider would refuse them; the decoder watches the reply.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aside_core::block::Reply;
use aside_core::dialect::PathVerb;
use aside_core::message::Message;
use aside_core::protocol::Protocol;
use aside_core::rules::{self, BrokenRule, IssuedThinking, RepairLoop, judge};
use aside_core::wire::{Decoder, Destination, Encoded, http_get, request_path, with_model, with_turns_of};
use aside_engine::exchange::read_refusal;
use aside_engine::http::{CallError, ForwardedRequest, HttpRefusal, HttpReply, InvalidCall, shared_body};
use aside_engine::redact::RedactedStream;
use aside_engine::{ConnectionFailure, Secret};
use aside_memory::ReplyDraft;
use bytes::Bytes;

use crate::config::Target;
use crate::conversation_recorder::RecordedTurn;
use crate::error_response::{ErrorKind, GatewayError, GatewayResponse, response, set_header};
use crate::forwarded_headers::{forwarded_headers, reply_headers};
use crate::gateway::now;
use crate::generate::{Attempted, Call};
use crate::limits::Spent;
use crate::provider_error::ReadableError;
use crate::recall::{Changes, ReadRequest, remember};
use crate::receipt::{Receipt, UpstreamAttempt, broken_rules};
use crate::relay::{ClientGone, Relay, RelayFraming, relay, terminal_frame};
use crate::route::ReplyDelivery;
use crate::watched_reply::WatchedReply;

/// How long the last frame waits for the end of the body.
const MAX_HOLD: Duration = Duration::from_millis(50);

/// Why a reply is not watched any longer.
enum WatchEnd {
    /// Its body has ended.
    Complete,
    /// The connection to the provider broke, for this reason.
    Broken(String),
    /// The reply has ended, but its body has not.
    BodyOpen,
}

/// The decision about what to send to the provider.
enum Prepared<'a> {
    /// This body.
    Body(Cow<'a, str>),
    /// The request must be encoded again.
    Encode,
    /// The provider would refuse it, and nothing helps.
    Refuse(Box<BrokenRule>),
}

impl Call {
    pub(crate) async fn pass_through(&self, mut receipt: Receipt) -> Attempted {
        let endpoint = &self.target.endpoint;
        let named = match with_model(&self.body.text, &endpoint.model) {
            Ok(named) => named,
            Err(error) => return self.final_error(&GatewayError::bad_request(format!("the body is {error}")), receipt),
        };
        let body = match self.prepare(&named, &mut receipt) {
            Prepared::Body(body) => Arc::new(body.into_owned()),
            Prepared::Encode => return Box::pin(self.clone().translate(receipt)).await,
            Prepared::Refuse(broken) => return self.refuse(&broken, receipt),
        };
        receipt.note_sent(&body);
        let sent = Instant::now();
        let replied = match self.forward_with_key(&body).await {
            Ok(replied) => replied,
            Err(error) => return self.error(&error, receipt),
        };
        match replied {
            Ok(reply) if reply.status() == 200 => {
                receipt.upstream.push(attempt(Some(200), sent, None));
                Attempted::Answered(self.clone().relay_reply(reply, receipt).await)
            }
            Ok(reply) => Box::pin(self.refused(reply, sent, receipt)).await,
            Err(error) => {
                receipt.upstream.push(attempt(None, sent, None));
                self.error(&self.unreachable(&error), receipt)
            }
        }
    }

    /// Decides what to send: the client's bytes, unless thinking is put back or the provider would refuse them.
    fn prepare<'a>(&self, body: &'a str, receipt: &mut Receipt) -> Prepared<'a> {
        let endpoint = &self.target.endpoint;
        let judged = |body: &str| judge(&endpoint.dialect, &endpoint.model, &[], body, IssuedThinking::Unknown);
        // If it cannot be read here, the provider decides whether to refuse it.
        let (Some(read), Ok(before)) = (self.read.as_deref(), judged(body)) else {
            return Prepared::Body(Cow::Borrowed(body));
        };
        receipt.judge_before = broken_rules(&before.broken);
        let restored = read.recalled.as_ref().is_some_and(|recalled| recalled.restored.changes_anything());
        if self.context.changes() == Changes::OnlyReported || (before.is_ok() && !restored) {
            return Prepared::Body(Cow::Borrowed(body));
        }
        let encoded = self.encode(read, &self.repairs);
        receipt.note_encoded(read, &encoded);
        if let Some(spliced) = self.splice(body, read, &encoded)
            && judged(&spliced).is_ok_and(|verdict| verdict.is_ok())
        {
            return Prepared::Body(Cow::Owned(spliced));
        }
        match judged(&encoded.body).map(|verdict| verdict.broken) {
            Ok(broken) if !broken.is_empty() => {
                receipt.judge_after = broken_rules(&broken);
                match broken.into_iter().next() {
                    Some(first) => Prepared::Refuse(Box::new(first)),
                    None => Prepared::Encode,
                }
            }
            Ok(_) | Err(_) => Prepared::Encode,
        }
    }

    /// The client's bytes with the turns that must change. None if more than such turns change.
    fn splice(&self, body: &str, read: &ReadRequest, encoded: &Encoded) -> Option<String> {
        let is_filled = |message: &usize| {
            encoded.decisions.iter().any(|made| made.message == *message && made.action == rules::EgressAction::Filler)
        };
        let turns = read.turns();
        let mut touched = read.restored_turns()?;
        touched.extend(turns.iter().enumerate().filter(|(_, message)| is_filled(message)).map(|(turn, _)| turn));
        with_turns_of(self.protocol, body, &encoded.body, &touched)
    }

    /// The request in our own encoding, with the thinking that was put back.
    fn encode(&self, read: &ReadRequest, repairs: &[rules::AppliedRepair]) -> Encoded {
        let endpoint = &self.target.endpoint;
        let origin = endpoint.origin();
        let messages = read.messages(self.context.changes());
        let dialects = &self.context.config.dialects;
        let request = aside_core::Request::new(dialects, &endpoint.dialect, &endpoint.model, &origin, &self.settings)
            .with_messages(&messages)
            .with_tools(&read.request.tools)
            .with_parameters(&read.request.parameters)
            .with_repairs(repairs);
        aside_core::encode(&request)
    }

    /// The provider's own error, without asking the provider.
    pub(crate) fn refuse(&self, broken: &BrokenRule, mut receipt: Receipt) -> Attempted {
        receipt.status = broken.status;
        let mut answer = response(broken.status, "application/json", broken.body.clone());
        set_header(&mut answer, "aside-error", "judge");
        set_header(&mut answer, "aside-rule", &broken.rule);
        set_header(&mut answer, "aside-repaired", &receipt.counts.to_string());
        self.context.gateway.record(&receipt);
        Attempted::Answered(answer)
    }

    /// Sends a body; if the provider refuses the key and it can be renewed, sends it once more with the new key.
    async fn forward_with_key(&self, body: &Arc<String>) -> Result<Result<HttpReply, CallError>, GatewayError> {
        let endpoint = &self.target.endpoint;
        let key = endpoint.valid_key().await.map_err(|error| no_key(&self.target, &error))?;
        let replied = self.forward(body, key.as_ref()).await;
        if !replied.as_ref().is_ok_and(|reply| reply.status() == 401) {
            return Ok(replied);
        }
        let renewed = endpoint.key_after_refusal(key.as_ref()).await.map_err(|error| no_key(&self.target, &error))?;
        match renewed {
            Some(key) => Ok(self.forward(body, Some(&key)).await),
            None => Ok(replied),
        }
    }

    async fn forward(&self, body: &Arc<String>, key: Option<&Secret>) -> Result<HttpReply, CallError> {
        let to = self.target.endpoint.destination(key);
        let (url, headers) = self.destination(&to);
        let bytes = shared_body(&to.finish_body(body));
        let request = ForwardedRequest { method: "POST", url: &url, headers: &headers, body: bytes };
        self.context.config.http().forward(request).await
    }

    /// The URL and the headers: the client's, with the provider's key.
    fn destination(&self, to: &Destination<'_>) -> (String, Vec<(String, String)>) {
        let endpoint = &self.target.endpoint;
        let path = match (self.protocol, self.delivery) {
            (Protocol::Gemini, ReplyDelivery::Whole | ReplyDelivery::AsAsked) => {
                format!("/v1beta/models/{}:generateContent", endpoint.model)
            }
            (Protocol::Gemini, ReplyDelivery::Streamed | ReplyDelivery::WholeInList) => {
                format!("/v1beta/models/{}:streamGenerateContent", endpoint.model)
            }
            (protocol, _) => request_path(protocol, &endpoint.model),
        };
        let verb = match self.delivery {
            ReplyDelivery::Streamed => PathVerb::Stream,
            ReplyDelivery::Whole | ReplyDelivery::WholeInList | ReplyDelivery::AsAsked => PathVerb::Whole,
        };
        let path = endpoint.access.request_path(&path, &endpoint.model, verb);
        let path = with_query(&path, &self.context.query);
        let (url, own) = http_get(&path, to);
        let mut headers = forwarded_headers(&self.context.headers);
        for (name, value) in own {
            let is_default = endpoint.access.headers.contains_key(&name)
                && !endpoint.headers.iter().any(|(known, _)| *known == name);
            match headers.iter_mut().find(|(known, _)| *known == name) {
                // The client's version and betas are part of its request.
                Some(_) if is_default => (),
                Some((_, known)) => *known = value,
                None => headers.push((name, value)),
            }
        }
        (url, headers)
    }

    pub(crate) fn unreachable(&self, error: &CallError) -> GatewayError {
        let what = self.target.redactor.clean(&error.to_string()).into_owned();
        let kind = match error {
            CallError::Unreachable(unreachable) => match unreachable.failure {
                ConnectionFailure::ConnectTimeout
                | ConnectionFailure::IdleTimeout
                | ConnectionFailure::TotalTimeout => ErrorKind::UpstreamTimeout,
                ConnectionFailure::InvalidRequest
                | ConnectionFailure::Dns
                | ConnectionFailure::Refused
                | ConnectionFailure::Proxy
                | ConnectionFailure::UnknownAuthority
                | ConnectionFailure::SelfSigned
                | ConnectionFailure::Tls
                | ConnectionFailure::Closed
                | ConnectionFailure::Unreadable
                | ConnectionFailure::Other => ErrorKind::UpstreamUnreachable,
            },
            CallError::Invalid(_) | CallError::Refused(_) => ErrorKind::UpstreamUnreachable,
        };
        GatewayError::new(kind, what)
    }

    /// A refusal is repaired if that is possible, or else passed on as it is.
    async fn refused(&self, reply: HttpReply, sent: Instant, mut receipt: Receipt) -> Attempted {
        let status = reply.status();
        let error = match ReadableError::read(reply, self.target.redactor.stream()).await {
            Ok(error) => error,
            Err(unreadable) => {
                receipt.upstream.push(attempt(Some(status), sent, None));
                return match may_succeed_elsewhere(status) {
                    true => self.error(&unreadable, receipt),
                    false => self.final_error(&unreadable, receipt),
                };
            }
        };
        if !self.context.gateway.options.shadow
            && let Some((repairs, rule)) = self.repair(&error.refusal)
        {
            receipt.upstream.push(attempt(Some(status), sent, Some(rule)));
            receipt.counts.refused += 1;
            return Call { repairs, ..self.clone() }.translate(receipt).await;
        }
        receipt.upstream.push(attempt(Some(status), sent, None));
        receipt.status = status;
        let mut answer = error.into_response();
        set_header(&mut answer, self.repaired_header(), &receipt.counts.to_string());
        if may_succeed_elsewhere(status) {
            return Attempted::failed(answer, receipt);
        }
        self.context.gateway.record(&receipt);
        Attempted::Answered(answer)
    }

    /// The repairs with which to try again, and the rule that asked for the last one.
    fn repair(&self, refusal: &HttpRefusal) -> Option<(Vec<rules::AppliedRepair>, String)> {
        let read = self.read.as_deref()?;
        let refused = self.encode(read, &self.repairs).to_refused();
        let error = read_refusal(self.decoder(), refusal);
        let mut repair_loop = RepairLoop::new(&self.context.config.dialects, &self.repairs);
        let notice = repair_loop.refused(&error, &refused, |repairs| self.encode(read, repairs).body)?;
        Some((repair_loop.repairs().to_vec(), notice.row))
    }

    pub(crate) fn decoder(&self) -> Decoder {
        let endpoint = &self.target.endpoint;
        let rules = endpoint.dialect.rules(Some(&endpoint.model));
        let rules = rules::rules_with_tags(&self.context.config.dialects, rules, self.settings.tags());
        Decoder::bounded(endpoint.dialect.protocol, &rules, self.settings.max_reply_bytes())
    }

    pub(crate) fn repaired_header(&self) -> &'static str {
        if self.context.gateway.options.shadow { "aside-shadow" } else { "aside-repaired" }
    }

    /// Passes a reply on while it arrives.
    async fn relay_reply(self, mut reply: HttpReply, mut receipt: Receipt) -> GatewayResponse {
        receipt.status = 200;
        let mut keys = self.target.redactor.stream();
        let headers = reply_headers(&reply, &mut keys);
        let framing = RelayFraming::of(self.protocol, reply.content_type().unwrap_or_default());
        let (mut relay, body) = relay(framing, self.context.config.serve.keep_alive);
        let mut answer = GatewayResponse::new(body);
        answer.headers_mut().extend(headers);
        set_header(&mut answer, self.repaired_header(), &receipt.counts.to_string());
        reply.forget_headers();
        // Without a stream nothing is gained by sending the headers alone.
        let begun = (self.delivery != ReplyDelivery::Streamed).then(|| relay.begun());
        self.watch_in_background(reply, relay, keys, receipt);
        if let Some(begun) = begun {
            begun.await;
        }
        answer
    }

    /// A function of its own, so that the request's future has no room for this one.
    fn watch_in_background(self, reply: HttpReply, relay: Relay, keys: RedactedStream, receipt: Receipt) {
        let gateway = Arc::clone(&self.context.gateway);
        gateway.replies.spawn(self.watch(reply, relay, keys, receipt));
    }

    async fn watch(mut self, mut reply: HttpReply, mut relay: Relay, mut keys: RedactedStream, mut receipt: Receipt) {
        let mut draft = self.context.draft(self.read.as_deref());
        self.forget_request();
        let _stream = self.context.gateway.metrics.stream();
        let mut watched = WatchedReply::new(self.decoder(), self.protocol);
        let mut held = None;
        let gateway = Arc::clone(&self.context.gateway);
        let result = tokio::select! {
            biased;
            result = self.watch_bytes(&mut reply, &mut relay, &mut keys, &mut watched, &mut held) => Ok(result),
            () = gateway.replies.cut_off().cancelled() => Err(()),
        };
        let result = match result {
            Ok(result) => result,
            Err(()) if watched.is_at_end() => Ok(WatchEnd::Complete),
            Err(()) => Ok(WatchEnd::Broken("the gateway ends".to_owned())),
        };
        // Dropping it closes the socket of an incomplete reply, so the provider stops generating.
        let rest = matches!(result, Ok(WatchEnd::BodyOpen)).then_some(reply);
        if let (Some(draft), Some(id)) = (&mut draft, watched.response_id.id()) {
            draft.name_response(id);
        }
        let (ended, timing) = watched.finish(matches!(result, Ok(WatchEnd::Complete)));
        receipt.timing = timing;
        // In a box, so that a reply that is being sent does not keep the room for it.
        Box::pin(self.finish(ended, receipt, draft)).await;
        // If the client has disconnected, nothing is left to do.
        let Ok(()) = relay.send(held.unwrap_or_default()).await else { return };
        match (result, rest) {
            (Ok(WatchEnd::Broken(why)), _) => relay.abort(&why),
            (Ok(WatchEnd::BodyOpen), Some(rest)) => tokio::select! {
                _gone = self.relay_rest(rest, &mut relay, &mut keys) => (),
                () = gateway.replies.cut_off().cancelled() => (),
            },
            (Ok(WatchEnd::Complete | WatchEnd::BodyOpen) | Err(ClientGone), _) => (),
        }
    }

    /// Passes on what a provider sends after the end of its reply.
    async fn relay_rest(
        &self,
        mut rest: HttpReply,
        relay: &mut Relay,
        keys: &mut RedactedStream,
    ) -> Result<(), ClientGone> {
        loop {
            match relay.wait_for(rest.next_bytes(self.context.config.http())).await? {
                Ok(Some(bytes)) => relay.send(keys.pass(bytes)).await?,
                // The reply was complete before.
                Ok(None) | Err(_) => return relay.send(keys.finish().into()).await,
            }
        }
    }

    /// Frees what is not needed any more while the reply is sent, which may take long.
    fn forget_request(&mut self) {
        self.body = Arc::default();
        if self.context.gateway.recorder.is_none() {
            self.read = None;
        }
    }

    /// Reads and sends until the end of the reply. The last bytes stay in `held`.
    async fn watch_bytes(
        &self,
        reply: &mut HttpReply,
        relay: &mut Relay,
        keys: &mut RedactedStream,
        watched: &mut WatchedReply,
        held: &mut Option<Bytes>,
    ) -> Result<WatchEnd, ClientGone> {
        let http = self.context.config.http();
        loop {
            let next = match held.is_some() && self.delivery == ReplyDelivery::Streamed {
                false => relay.wait_for(reply.next_bytes(http)).await?,
                true => match tokio::time::timeout(MAX_HOLD, reply.next_bytes(http)).await {
                    Ok(next) => next,
                    // The provider keeps the body open after its last frame. The client gets that frame once the reply is
                    // remembered.
                    Err(_) if watched.is_at_end() => return Ok(WatchEnd::BodyOpen),
                    Err(_) => {
                        relay.send(held.take().unwrap_or_default()).await?;
                        continue;
                    }
                },
            };
            let bytes = match next {
                Ok(Some(bytes)) => bytes,
                ended @ (Ok(None) | Err(_)) => {
                    let rest = keys.finish();
                    if !rest.is_empty() {
                        relay.send(held.replace(rest.into()).unwrap_or_default()).await?;
                    }
                    let is_streamed = self.delivery == ReplyDelivery::Streamed;
                    return Ok(match ended {
                        Ok(_) => WatchEnd::Complete,
                        // The connection broke after the reply.
                        Err(_) if is_streamed && watched.is_at_end() => WatchEnd::Complete,
                        Err(error) => WatchEnd::Broken(self.target.redactor.clean(&error.what).into_owned()),
                    });
                }
            };
            if self.delivery == ReplyDelivery::Streamed && watched.is_at_end() {
                // More than the end of the reply; it must not take the last frame along.
                let last = held.take().unwrap_or_default();
                *held = Some([last, keys.pass(bytes)].concat().into());
                return Ok(WatchEnd::BodyOpen);
            }
            if let Some(before) = held.take() {
                relay.send(before).await?;
            }
            watched.push(&bytes);
            let bytes = keys.pass(bytes);
            let split = match self.delivery {
                // A last frame in two chunks is only known by its second half.
                ReplyDelivery::Streamed => {
                    terminal_frame(self.protocol, &bytes).or_else(|| watched.is_at_end().then_some(0))
                }
                ReplyDelivery::Whole | ReplyDelivery::WholeInList | ReplyDelivery::AsAsked => Some(0),
            };
            match split {
                Some(at) => {
                    relay.send(bytes.slice(..at)).await?;
                    *held = Some(bytes.slice(at..));
                }
                None => relay.send(bytes).await?,
            }
        }
    }

    /// Remembers a reply that has ended, and records its request.
    pub(crate) async fn finish(&self, reply: Reply, mut receipt: Receipt, draft: Option<ReplyDraft>) {
        receipt.usage = Some(reply.usage);
        if let Some(key) = &self.context.caller.key {
            let spent = Spent::of(reply.usage, &self.target);
            self.context.gateway.limits.spend(key, &spent, now().0 / 1000);
        }
        self.record_turn(draft.as_ref(), &reply);
        if let Some(state) = remember(draft, reply, &self.target).await {
            receipt.store = state;
        }
        self.context.gateway.record(&receipt);
    }
}

impl Call {
    /// Adds the reply to the session of its conversation, if conversations are recorded.
    fn record_turn(&self, draft: Option<&ReplyDraft>, reply: &Reply) {
        let tenant = &self.context.caller.tenant;
        let (Some(recorder), Some(draft), Some(read)) = (&self.context.gateway.recorder, draft, &self.read) else {
            return;
        };
        if reply.blocks.is_empty() || !self.context.config.serve.record.includes(tenant) {
            return;
        }
        recorder.record(RecordedTurn {
            conversation: draft.conversation().to_string(),
            parent: draft.parent().map(|parent| parent.to_string()),
            reply_id: draft.id().to_string(),
            history: read.messages(Changes::Allowed).into_iter().cloned().collect(),
            reply: Message {
                at: Some(now()),
                ..Message::from_reply(reply.clone(), Some(self.target.endpoint.origin()))
            },
            model: self.target.name(),
            tools: read.request.tools.clone(),
        });
    }
}

/// Whether another target may answer what this one refused with a status.
fn may_succeed_elsewhere(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..)
}

pub(crate) fn attempt(status: Option<u16>, sent: Instant, rule: Option<String>) -> UpstreamAttempt {
    UpstreamAttempt { status, ms: u64::try_from(sent.elapsed().as_millis()).unwrap_or(u64::MAX), rule }
}

/// The provider's key could not be obtained again.
pub(crate) fn no_key(target: &Target, error: &InvalidCall) -> GatewayError {
    GatewayError::new(ErrorKind::NoProviderKey, target.redactor.clean(&error.to_string()).into_owned())
}

/// The path with the client's query, without its key.
pub(crate) fn with_query(path: &str, query: &str) -> String {
    let kept: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("key=")).collect();
    if kept.is_empty() {
        return path.to_owned();
    }
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{path}{separator}{}", kept.join("&"))
}
