//! Carries out the actions of the turn machine. All front ends use this loop.

use std::sync::Arc;
use std::time::Duration;

use aside_core::block::{Block, ToolCall, ToolResult};
use aside_core::compaction::CompactionTrigger;
use aside_core::connection_failure::{ConnectionError, ConnectionFailure};
use aside_core::event::{ContextOverflow, ProviderError};
use aside_core::history::EntryId;
use aside_core::message::Message;
use aside_core::model_table::UsageCounting;
use aside_core::rules::{self, AnswerMode, AppliedRepair};
use aside_core::tokens::CalibrationKey;
use aside_core::turn::{Action, Input, Turn, TurnEnd};
use aside_core::wire::{Encoded, Encoder, TokenBreakdown};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use crate::clock::now;
use crate::compaction::CompactionResult;
use crate::exchange::{Exchange, ExchangeError, ExchangeOutcome, ExchangeRequest, ProviderRefusal, StopSignals};
use crate::front_sink::{FrontSink, with_ticks};
use crate::retry;
use crate::running_updates::ReportingAsker;
use crate::session::Session;
use crate::tools::{Asker, RecordedCall};
use crate::update::{Front, Update};

/// How long cancelled tools may take to end by themselves.
const TOOL_GRACE: Duration = Duration::from_secs(2);
/// The most tool calls of one reply that run. Every result is kept in memory and sent back.
const MAX_CALLS: usize = 256;

/// What to do when the provider says that the conversation is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooLong {
    /// Summarise the older turns and send the request again, once per turn.
    Compact,
    Report,
}

/// The effort of the next request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextEffort {
    /// None if none is sent.
    pub level: Option<String>,
    /// Why it is not the one of the settings, in the words of the request's own note.
    pub note: Option<String>,
}

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
        self.run_steps(message, TooLong::Compact, front, asker, cancel).await
    }

    pub(crate) async fn run_steps(
        &mut self,
        message: Message,
        mut too_long: TooLong,
        front: &mut dyn Front,
        asker: &dyn Asker,
        cancel: &CancellationToken,
    ) -> TurnEnd {
        let mut turn = Turn::new(self.endpoint.origin(), self.max_steps);
        let mut repairs = self.learned_repairs.of(&self.endpoint.repair_key()).to_vec();
        self.record(message, front);
        self.add_expected_tools(front, cancel).await;
        let spent_before = self.totals.cost.amount().unwrap_or(0.0);
        let mut input = Input::Begin;
        loop {
            let mut next = None;
            for message in self.steering.take_all() {
                turn.steer(message);
            }
            let actions = turn.handle(input);
            // While tools run, the user can still take them back.
            self.steering.give_back(turn.take_steering());
            for action in actions {
                match action {
                    Action::Record(message) => self.record(*message, front),
                    Action::Notify(notice) => front.on_update(Update::TurnNotice(&notice)),
                    Action::Send { step, answer_mode } => {
                        let mut outcome = self.exchange(step, answer_mode, &repairs, front, cancel).await;
                        repairs.extend(outcome.repairs.iter().cloned());
                        if too_long == TooLong::Compact && self.does_not_fit(&outcome) {
                            too_long = TooLong::Report;
                            match self.shorten(front, cancel).await {
                                CompactionResult::Done(_) => {
                                    let _refused = self.learn_from(outcome);
                                    outcome = self.exchange(step, answer_mode, &repairs, front, cancel).await;
                                    repairs.extend(outcome.repairs.iter().cloned());
                                }
                                CompactionResult::Skipped(_) => (),
                                CompactionResult::Failed(_) => {
                                    if let Err(ExchangeError::Refused(refusal)) = &mut outcome.result {
                                        refusal.error.overflow = ContextOverflow::CompactionFailed;
                                    }
                                }
                            }
                        }
                        next = Some(self.learn_from(outcome));
                        if let Some(end) = self.cost_limit_reached(spent_before) {
                            turn.end_before_next_request(end);
                        }
                    }
                    Action::Run(at) => {
                        let calls = self.calls(&at);
                        next = Some(self.run_tools(calls, front, asker, cancel).await);
                    }
                    Action::End(end) => {
                        self.history.end_turn(&end);
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

    /// Whether the provider refused the conversation because it does not fit.
    fn does_not_fit(&self, outcome: &ExchangeOutcome) -> bool {
        matches!(&outcome.result, Err(ExchangeError::Refused(refusal)) if self.is_too_long(&refusal.error))
    }

    fn is_too_long(&self, error: &ProviderError) -> bool {
        self.dialects.is_too_long(&error.words_and_code())
    }

    /// A refusal, with what a front end needs to tell the user what to do.
    fn refusal(&self, refusal: ProviderRefusal) -> ProviderError {
        let overflow = match refusal.error.overflow {
            ContextOverflow::None if self.is_too_long(&refusal.error) => ContextOverflow::Final,
            known @ (ContextOverflow::None | ContextOverflow::Final | ContextOverflow::CompactionFailed) => known,
        };
        let error = refusal.error.with_overflow(overflow);
        match refusal.response.and_then(|response| response.retry_after) {
            Some(pause) if pause > retry::MAX_REQUESTED_PAUSE => {
                let what = format!("{}; it asks to wait {} s", error.message, pause.as_secs());
                error.with_message(what)
            }
            Some(_) | None => error,
        }
    }

    /// Summarises the older turns, whatever our own count says. The turn that is running stays as it is.
    async fn shorten(&mut self, front: &mut dyn Front, cancel: &CancellationToken) -> CompactionResult {
        // Boxed, because a summary is made by the same steps.
        let result = Box::pin(self.compact(CompactionTrigger::TooLong, front, cancel)).await;
        if let CompactionResult::Failed(why) = &result {
            front.on_update(Update::Noted(&format!("older turns could not be summarised: {why}")));
        }
        result
    }

    fn record(&mut self, mut message: Message, front: &mut dyn Front) {
        message.at.get_or_insert_with(now);
        let message = Arc::new(message);
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
        let dialects = Arc::clone(&self.dialects);
        let (request, encoder) = self.request(AnswerMode::Normal, repairs);
        request.encode(&dialects, encoder, repairs)
    }

    /// The same, with a token breakdown that includes what was left out.
    pub fn token_breakdown(&mut self) -> (Encoded, TokenBreakdown) {
        let dialects = Arc::clone(&self.dialects);
        let (request, encoder) = self.request(AnswerMode::Normal, &[]);
        request.token_breakdown(&dialects, encoder)
    }

    /// The effort of the next request. Costs the same for every length of the history.
    pub fn next_effort(&mut self) -> NextEffort {
        let repairs = self.learned_repairs.of(&self.endpoint.repair_key()).to_vec();
        let dialects = Arc::clone(&self.dialects);
        let (mut request, _) = self.request(AnswerMode::Normal, &repairs);
        (request.messages, request.entries) = (Vec::new(), Vec::new());
        let encoded = request.encode(&dialects, &mut Encoder::default(), &repairs);
        NextEffort { level: encoded.effort, note: encoded.effort_note }
    }

    /// An estimate of the tokens of the next request, corrected by what the provider reported before.
    pub fn next_tokens(&mut self) -> u64 {
        let counted = self.encode(&[]).tokens;
        self.calibration.calibrated_tokens(&self.calibration_key(), counted).unwrap_or(counted)
    }

    /// The key under which token counts are calibrated.
    pub(crate) fn calibration_key(&self) -> CalibrationKey {
        let (dialect, model) = (self.endpoint.dialect.id.clone(), self.endpoint.model.clone());
        CalibrationKey { dialect, model, counter: self.encoder.counter_name().to_owned() }
    }

    pub(crate) fn request<'a>(
        &'a mut self,
        answer_mode: AnswerMode,
        repairs: &'a [AppliedRepair],
    ) -> (ExchangeRequest<'a>, &'a mut Encoder) {
        let (entries, messages): (Vec<EntryId>, Vec<&Message>) = self.history.branch().into_iter().unzip();
        let rules = self.endpoint.dialect.rules(Some(&self.endpoint.model));
        self.request_parameters = self.parameters.clone();
        // The program that uses the engine may set its own cache points.
        if self.parameters.cache_hints.is_empty() {
            self.request_parameters.cache_hints = rules::cache_hints(&rules.ask.cache, &messages, self.tools.specs());
        }
        let request = ExchangeRequest {
            endpoint: &self.endpoint,
            messages,
            entries,
            tools: self.tools.specs(),
            settings: &self.settings,
            parameters: &self.request_parameters,
            answer_mode,
            repairs,
        };
        (request, &mut self.encoder)
    }

    async fn exchange(
        &mut self,
        step: u32,
        answer_mode: AnswerMode,
        repairs: &[AppliedRepair],
        front: &mut dyn Front,
        cancel: &CancellationToken,
    ) -> ExchangeOutcome {
        self.answer_now.reset();
        let (dialects, http, redactor) = (Arc::clone(&self.dialects), self.http.clone(), self.redactor.clone());
        let answer_now = self.answer_now.clone();
        let stop = StopSignals { cancel, answer_now: Some(&answer_now) };
        let mut reported_losses = std::mem::take(&mut self.reported_losses);
        let (request, encoder) = self.request(answer_mode, repairs);
        let reported = &mut reported_losses;
        let mut sink = FrontSink { front, step, model: &request.endpoint.model, reported_losses: reported };
        let outcome = Exchange { dialects, http, redactor }.run(&request, encoder, stop, &mut sink).await;
        self.reported_losses = reported_losses;
        outcome
    }

    /// How the turn ends, if it has reached its cost limit.
    fn cost_limit_reached(&self, spent_before: f64) -> Option<TurnEnd> {
        let spent = self.totals.cost.amount()? - spent_before;
        let most = self.max_cost.filter(|most| spent >= *most)?;
        let microdollars = |dollars: f64| (dollars * 1e6).round() as u64;
        Some(TurnEnd::OutOfMoney { microdollars: microdollars(spent), most: microdollars(most) })
    }

    /// Remembers what an exchange showed about the provider, and returns what it means for the turn.
    fn learn_from(&mut self, outcome: ExchangeOutcome) -> Input {
        if outcome.is_accepted() {
            let key = self.endpoint.repair_key();
            for applied in &outcome.repairs {
                self.learned_repairs.learn(&key, applied.clone());
            }
        }
        let ExchangeOutcome { result, mut reply, tokens, repairs } = outcome;
        self.totals.requests = self.totals.requests.saturating_add(1 + repairs.len() as u64);
        self.totals.repairs = self.totals.repairs.saturating_add(repairs.len() as u64);
        if result.is_ok() || !reply.blocks.is_empty() {
            let dialect = &self.endpoint.dialect;
            let counting = UsageCounting::of(dialect.protocol, &dialect.rules(Some(&self.endpoint.model)).usage);
            self.totals.add_reply(&reply, self.price.as_ref(), counting);
        }
        let Err(error) = result else {
            let protocol = self.endpoint.dialect.protocol;
            self.calibration.record_reply(self.calibration_key(), tokens, protocol, &reply.usage);
            if let Some(error) = &mut reply.end.error {
                error.lacks_credit = self.dialects.lacks_credit(&error.words_and_code());
            }
            return Input::Replied(reply);
        };
        match error {
            ExchangeError::Refused(refusal) => Input::Refused(self.refusal(*refusal)),
            ExchangeError::Oversized { most } => Input::Oversized { partial: reply, most },
            ExchangeError::Cancelled => Input::Cancelled { partial: Some(reply), ran: Vec::new() },
            ExchangeError::AnswerNow => Input::AnswerNow { partial: Some(reply) },
            ExchangeError::Unreachable(failure) => Input::ConnectionFailed { partial: reply, failure },
            ExchangeError::Invalid(invalid) => {
                let failure = ConnectionError::new(ConnectionFailure::InvalidRequest, invalid.to_string());
                Input::ConnectionFailed { partial: reply, failure }
            }
            ExchangeError::Unreadable { what } => {
                let failure = ConnectionError::new(ConnectionFailure::Unreadable, what);
                Input::ConnectionFailed { partial: reply, failure }
            }
        }
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
        let run = async |(number, (call, recorded))| match number < MAX_CALLS {
            true => (call, self.tools.run_recorded(call, recorded, &reporting_asker, cancel).await),
            false => (call, not_run(call)),
        };
        let mut running: FuturesUnordered<_> = calls.into_iter().enumerate().map(run).collect();
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

/// The result of a call beyond the limit. The model can make the call again.
fn not_run(call: &ToolCall) -> ToolResult {
    let content = format!("not run: one reply can make at most {MAX_CALLS} calls; make the rest in the next one");
    ToolResult { id: call.id.as_str().to_owned(), name: call.name.clone(), content, is_error: true, media: Vec::new() }
}

/// Waits forever without a deadline.
async fn sleep_until_deadline(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
