//! Carries out the actions of the turn machine. All front ends use this loop.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use aside_core::block::{Block, Reply, ToolCall, ToolResult};
use aside_core::compaction::CompactionTrigger;
use aside_core::event::{BlockOpening, Event, NoteCode, ProseKind, ProviderError, Sink};
use aside_core::fold::Fold;
use aside_core::history::EntryId;
use aside_core::message::Message;
use aside_core::rules::{self, AnswerMode, AppliedRepair};
use aside_core::tokens::CalibrationKey;
use aside_core::turn::{Action, Input, Turn, TurnEnd};
use aside_core::wire::{Decoder, Encoded, Encoder, NotUnderstood, Request, TokenBreakdown};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use crate::clock::now;
use crate::compaction::CompactionResult;
use crate::http::{CallError, HttpRefusal, HttpReply};
use crate::question_updates::ReportingAsker;
use crate::redact::Redactor;
use crate::retry::{self, Retry};
use crate::session::Session;
use crate::tools::{Asker, RecordedCall};
use crate::update::{Front, Update};

/// How long cancelled tools may take to end by themselves.
const TOOL_GRACE: Duration = Duration::from_secs(2);

/// How much of an unparseable error body is quoted.
const MAX_QUOTED_CHARS: usize = 300;

impl Session {
    /// Sends a message to the model and runs the turn to its end.
    pub async fn turn(
        &mut self,
        message: Message,
        front: &mut dyn Front,
        asker: &dyn Asker,
        cancel: &CancellationToken,
    ) -> TurnEnd {
        if let CompactionResult::Failed(why) = self.compact(CompactionTrigger::Full, front, cancel).await {
            front.on_update(Update::Noted(&format!("older turns could not be summarised: {why}")));
        }
        self.run_steps(message, front, asker, cancel).await
    }

    pub(crate) async fn run_steps(
        &mut self,
        message: Message,
        front: &mut dyn Front,
        asker: &dyn Asker,
        cancel: &CancellationToken,
    ) -> TurnEnd {
        let dialects = Arc::clone(&self.dialects);
        let origin = self.endpoint.origin();
        let repairs = self.repairs.of(&origin).to_vec();
        let mut turn = Turn::new(origin.clone(), dialects.catalogue(), self.max_steps, repairs);
        self.record(message, front);
        self.add_expected_tools(front, cancel).await;
        let mut input = Input::Begin;
        loop {
            let mut next = None;
            for action in turn.handle(input) {
                match action {
                    Action::Record(message) => self.record(*message, front),
                    Action::Notify(notice) => front.on_update(Update::TurnNotice(&notice)),
                    Action::Send { step, repairs, answer_mode } => {
                        let encoded = self.encode_with(answer_mode, &repairs);
                        let outcome = self.send(step, &encoded, front, cancel).await;
                        if let Input::Replied(reply) = &outcome {
                            let protocol = self.endpoint.dialect.protocol;
                            self.calibration.record_reply(
                                self.calibration_key(),
                                encoded.tokens,
                                protocol,
                                &reply.usage,
                            );
                        }
                        next = Some(outcome);
                    }
                    Action::Run(at) => {
                        let calls = self.calls(&at);
                        next = Some(self.run_tools(calls, front, asker, cancel).await);
                    }
                    Action::End(end) => {
                        if !matches!(end, TurnEnd::Failed(_)) {
                            for applied in turn.new_repairs() {
                                self.repairs.learn(&origin, applied.clone());
                            }
                        }
                        self.repairs.end_turn();
                        front.on_update(Update::Ended(&end));
                        front.flush();
                        return end;
                    }
                }
            }
            // The machine always ends, sends or runs tools; if it ever did none of them, the turn would stop
            // here.
            input = next.unwrap_or(Input::Cancelled { partial: None, ran: Vec::new() });
        }
    }

    fn record(&mut self, mut message: Message, front: &mut dyn Front) {
        message.at.get_or_insert_with(now);
        front.on_update(Update::Recorded(&message));
        self.history.append(message);
    }

    /// Waits for tools that are still loading. If the turn is cancelled in the meantime, the next turn waits for
    /// them.
    async fn add_expected_tools(&mut self, front: &mut dyn Front, cancel: &CancellationToken) {
        let Some(mut expected) = self.expected_tools.take() else { return };
        front.flush();
        let loaded = tokio::select! {
            biased;
            loaded = with_ticks(front, &mut expected.0) => loaded,
            () = cancel.cancelled() => {
                self.expected_tools = Some(expected);
                return;
            }
        };
        for tool in loaded.tools {
            if let Err(duplicate) = self.tools.add(tool) {
                front.on_update(Update::Noted(&duplicate.to_string()));
            }
        }
        for note in &loaded.notes {
            front.on_update(Update::Noted(&self.redactor.clean(note)));
        }
    }

    /// Encodes the request for the current history.
    pub fn encode(&mut self, repairs: &[AppliedRepair]) -> Encoded {
        self.encode_with(AnswerMode::Normal, repairs)
    }

    /// The same, with a token breakdown that includes what was left out.
    pub fn token_breakdown(&mut self) -> (Encoded, TokenBreakdown) {
        self.with_request(AnswerMode::Normal, &[], |encoder, request, entries| {
            let encoded = encoder.encode(request, entries);
            let breakdown = encoder.token_breakdown(request, &encoded);
            (encoded, breakdown)
        })
    }

    /// The key under which token counts are calibrated.
    pub(crate) fn calibration_key(&self) -> CalibrationKey {
        let (dialect, model) = (self.endpoint.dialect.id.clone(), self.endpoint.model.clone());
        CalibrationKey { dialect, model, counter: self.encoder.counter_name().to_owned() }
    }

    fn encode_with(&mut self, answer_mode: AnswerMode, repairs: &[AppliedRepair]) -> Encoded {
        self.with_request(answer_mode, repairs, Encoder::encode)
    }

    fn with_request<T>(
        &mut self,
        answer_mode: AnswerMode,
        repairs: &[AppliedRepair],
        make: impl FnOnce(&mut Encoder, &Request<'_>, &[EntryId]) -> T,
    ) -> T {
        let (mut settings, mut repairs) = (Cow::Borrowed(&self.settings), Cow::Borrowed(repairs));
        if answer_mode == AnswerMode::AnswerNow {
            let rules = self.endpoint.dialect.rules(Some(&self.endpoint.model));
            rules::apply_answer_now(&rules.ask, settings.to_mut(), repairs.to_mut());
        }
        let branch = self.history.branch();
        let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
        let entries: Vec<_> = branch.iter().map(|(id, _)| *id).collect();
        let target = self.endpoint.origin();
        let request = Request {
            dialects: &self.dialects,
            dialect: &self.endpoint.dialect,
            model: &self.endpoint.model,
            target: &target,
            messages: &messages,
            tools: self.tools.specs(),
            settings: &settings,
            repairs: &repairs,
        };
        make(&mut self.encoder, &request, &entries)
    }

    async fn send(&mut self, step: u32, encoded: &Encoded, front: &mut dyn Front, cancel: &CancellationToken) -> Input {
        self.answer_now.reset();
        let call = self.endpoint.http_call(encoded);
        front.on_update(Update::Sending { step, model: &self.endpoint.model, encoded, body: &call.body });
        front.flush();
        let mut attempt = 1;
        loop {
            let reply_stream = tokio::select! {
                () = cancel.cancelled() => return cancelled_input(None),
                () = self.answer_now.requested() => return Input::AnswerNow { partial: None },
                reply_stream = with_ticks(front, self.http.post(&call)) => reply_stream,
            };
            let (retry, why, failure_input) = match reply_stream {
                Ok(reply_stream) => return self.read_reply(reply_stream, front, cancel).await,
                Err(error) => self.retry_or_fail(error, attempt),
            };
            let Retry::After(after) = retry else { return failure_input };
            front.on_update(Update::Retrying { after, attempt, why: &why });
            front.flush();
            tokio::select! {
                () = cancel.cancelled() => return cancelled_input(None),
                () = self.answer_now.requested() => return Input::AnswerNow { partial: None },
                () = with_ticks(front, tokio::time::sleep(after)) => attempt += 1,
            }
        }
    }

    /// Decides whether to retry. Returns the reason too, and the turn input to use if there is no retry.
    fn retry_or_fail(&self, error: CallError, attempt: u32) -> (Retry, String, Input) {
        match error {
            CallError::Refused(refusal) => {
                let error = self.parse_refusal(&refusal);
                let about_thinking = rules::classify(self.dialects.catalogue(), error.status, &error.message).is_some();
                // A refusal that can be repaired would only be refused again.
                let retry = if about_thinking { Retry::Never } else { retry::after_refusal(&refusal, attempt) };
                (retry, format!("{} ({})", error.message, refusal.status), Input::Refused(error))
            }
            CallError::Unreachable { what, is_transient } => {
                let what = self.redactor.clean(&what).into_owned();
                (
                    retry::after_connection_error(is_transient, attempt),
                    what.clone(),
                    failed_input(Reply::default(), what),
                )
            }
            error @ (CallError::BadUrl(_) | CallError::BadHeader(_) | CallError::NoClient(_)) => {
                let what = self.redactor.clean(&error.to_string()).into_owned();
                (Retry::Never, String::new(), failed_input(Reply::default(), what))
            }
        }
    }

    /// Parses a refusal with the same decoder as any reply.
    fn parse_refusal(&self, refusal: &HttpRefusal) -> ProviderError {
        let mut fold = Fold::new();
        let mut decoder = self.decoder();
        decoder.push(&refusal.body, &mut fold);
        let understood = decoder.finish(&mut fold).is_ok();
        let provider_error = fold.finish().end.error.filter(|_| understood);
        let mut error = provider_error.unwrap_or_else(|| {
            let text = String::from_utf8_lossy(&refusal.body);
            let message = match text.trim() {
                "" => "the provider refused and gave no reason".to_owned(),
                text => text.chars().take(MAX_QUOTED_CHARS).collect(),
            };
            ProviderError { message, code: None, status: None }
        });
        error.status = Some(refusal.status);
        self.redactor.error(error)
    }

    fn decoder(&self) -> Decoder {
        let dialect = &self.endpoint.dialect;
        let rules =
            rules::rules_with_tags(&self.dialects, dialect.rules(Some(&self.endpoint.model)), self.settings.tags());
        Decoder::bounded(dialect.protocol, &rules, self.settings.max_reply_bytes())
    }

    async fn read_reply(
        &self,
        mut reply_stream: HttpReply,
        front: &mut dyn Front,
        cancel: &CancellationToken,
    ) -> Input {
        let mut decoder = self.decoder();
        let mut fold = Fold::new();
        let mut phase = ReplyPhase::default();
        let stop = loop {
            let bytes = tokio::select! {
                // Dropping the reply closes the socket, so the provider stops generating.
                () = cancel.cancelled() => break StreamStop::Cancelled,
                () = self.answer_now.requested(), if phase == ReplyPhase::Thinking => break StreamStop::AnswerNow,
                bytes = with_ticks(front, reply_stream.next_bytes(&self.http)) => bytes,
            };
            match bytes {
                Ok(Some(bytes)) => {
                    front.on_update(Update::Received(&bytes));
                    fold.set_now(now());
                    decoder.push(
                        &bytes,
                        &mut EventTee {
                            fold: &mut fold,
                            front,
                            phase: &mut phase,
                            redactor: &self.redactor,
                            stop: None,
                        },
                    );
                    front.flush();
                    if decoder.is_full() {
                        break StreamStop::Oversized;
                    }
                }
                Ok(None) => break StreamStop::Complete,
                Err(error) => break StreamStop::Failed(error.to_string()),
            }
        };
        fold.set_now(now());
        let read = decoder.finish(&mut EventTee {
            fold: &mut fold,
            front,
            phase: &mut phase,
            redactor: &self.redactor,
            stop: Some(&stop),
        });
        front.flush();
        let reply = fold.finish();
        match (stop, read) {
            (StreamStop::Cancelled, _) => cancelled_input(Some(reply)),
            (StreamStop::AnswerNow, _) => Input::AnswerNow { partial: Some(reply) },
            (StreamStop::Failed(failure), _) => failed_input(reply, failure),
            (StreamStop::Oversized | StreamStop::Complete, _)
                if reply.notes.iter().any(|note| note.code == NoteCode::Oversized) =>
            {
                let most = self.settings.max_reply_bytes().unwrap_or_default();
                Input::Oversized { partial: reply, most }
            }
            (StreamStop::Oversized | StreamStop::Complete, Ok(())) => Input::Replied(reply),
            (StreamStop::Oversized | StreamStop::Complete, Err(error)) => {
                failed_input(reply, self.unreadable_reply(&reply_stream, &error))
            }
        }
    }

    fn unreadable_reply(&self, reply_stream: &HttpReply, error: &NotUnderstood) -> String {
        let kind = reply_stream.content_type().unwrap_or("no content type");
        format!("the response from {} is not understood ({kind}): {error}; check its base_url", self.endpoint.base_url)
    }

    /// The tool calls at these block indices of the last recorded message.
    fn calls(&self, at: &[usize]) -> Vec<(&ToolCall, RecordedCall)> {
        let last = self.history.head().and_then(|head| self.history.get(head));
        let call = |at: &usize| match last?.message.blocks.get(*at) {
            Some(Block::ToolCall(call)) => Some((call, RecordedCall { message: Arc::clone(&last?.message), at: *at })),
            _ => None,
        };
        at.iter().filter_map(call).collect()
    }

    async fn run_tools(
        &self,
        calls: Vec<(&ToolCall, RecordedCall)>,
        front: &mut dyn Front,
        asker: &dyn Asker,
        cancel: &CancellationToken,
    ) -> Input {
        for (call, _) in &calls {
            front.on_update(Update::ToolStarted(call));
        }
        front.flush();
        let (reporting_asker, mut updates) = ReportingAsker::new(asker);
        let run =
            async |(call, recorded)| (call, self.tools.run_recorded(call, recorded, &reporting_asker, cancel).await);
        let mut running: FuturesUnordered<_> = calls.into_iter().map(run).collect();
        let mut results: Vec<ToolResult> = Vec::new();
        let mut deadline = None;
        loop {
            let ended = tokio::select! {
                biased;
                Some(update) = updates.recv() => {
                    update.deliver(front);
                    continue;
                }
                ended = with_ticks(front, running.next()) => ended,
                () = cancel.cancelled(), if deadline.is_none() => {
                    deadline = Some(tokio::time::Instant::now() + TOOL_GRACE);
                    continue;
                }
                () = sleep_until_deadline(deadline) => None,
            };
            // Report the answer to a question before the result of its call.
            while let Ok(update) = updates.try_recv() {
                update.deliver(front);
            }
            let Some((call, result)) = ended else { break };
            front.on_update(Update::ToolEnded { call, result: &result });
            front.flush();
            results.push(result);
        }
        if cancel.is_cancelled() {
            Input::Cancelled { partial: None, ran: results }
        } else {
            Input::ToolsFinished(results)
        }
    }
}

/// Runs a future while ticking the front end.
async fn with_ticks<T>(front: &mut dyn Front, work: impl Future<Output = T>) -> T {
    let Some(interval) = front.tick_interval() else { return work.await };
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(interval) => front.tick(),
        }
    }
}

/// Waits forever without a deadline.
async fn sleep_until_deadline(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

enum StreamStop {
    Complete,
    Cancelled,
    /// The user asked for the answer while the model was thinking.
    AnswerNow,
    /// The reply exceeded the size limit.
    Oversized,
    Failed(String),
}

fn cancelled_input(partial: Option<Reply>) -> Input {
    Input::Cancelled { partial, ran: Vec::new() }
}

fn failed_input(partial: Reply, failure: String) -> Input {
    Input::ConnectionFailed { partial, failure }
}

/// What the model is currently streaming.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ReplyPhase {
    /// Also before the first block.
    #[default]
    Thinking,
    /// The answer or a tool call.
    Answering,
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
            | Event::EmptyThinkingField { .. }
            | Event::Closed { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => (),
        }
    }
}

/// Passes each event to the fold first, so that the front end sees the updated reply.
struct EventTee<'a> {
    fold: &'a mut Fold,
    front: &'a mut dyn Front,
    phase: &'a mut ReplyPhase,
    /// Providers repeat keys in their errors.
    redactor: &'a Redactor,
    /// Why the stream stopped, once it has.
    stop: Option<&'a StreamStop>,
}

impl Sink for EventTee<'_> {
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

impl EventTee<'_> {
    fn forward(&mut self, event: Event<'_>) {
        self.fold.take(event);
        self.phase.observe(event);
        // The user caused the cut, so do not report it.
        let is_known = matches!(event, Event::Noted(note) if note.code == NoteCode::CutOff);
        if is_known && matches!(self.stop, Some(StreamStop::Cancelled | StreamStop::AnswerNow)) {
            return;
        }
        self.front.on_update(Update::Event { event, fold: self.fold });
    }
}
