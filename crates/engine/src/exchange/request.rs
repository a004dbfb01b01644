//! What an exchange sends, in neutral terms, and the signals that stop it.

use std::borrow::Cow;

use aside_core::conversation::ToolSpec;
use aside_core::dialect::Dialects;
use aside_core::history::EntryId;
use aside_core::message::Message;
use aside_core::parameters::Parameters;
use aside_core::rules::{self, AnswerMode, AppliedRepair};
use aside_core::settings::Settings;
use aside_core::wire::{Encoded, Encoder, Request, TokenBreakdown};
use tokio_util::sync::CancellationToken;

use crate::answer_now::AnswerNowSignal;
use crate::endpoint::Endpoint;

/// A conversation to send. It borrows the messages and never copies them.
#[derive(Debug, Clone)]
pub struct ExchangeRequest<'a> {
    pub endpoint: &'a Endpoint,
    /// The branch to send, oldest first.
    pub messages: Vec<&'a Message>,
    /// Identifies each message for the encoder's cache. Empty if nothing is cached.
    pub entries: Vec<EntryId>,
    pub tools: &'a [ToolSpec],
    /// Includes the limit on the reply's size.
    pub settings: &'a Settings,
    /// What the request asks for. It overrides the settings.
    pub parameters: &'a Parameters,
    pub answer_mode: AnswerMode,
    /// The repairs known so far for this endpoint and model.
    pub repairs: &'a [AppliedRepair],
}

impl ExchangeRequest<'_> {
    /// Encodes the request with these repairs instead of the known ones.
    pub(crate) fn encode(&self, dialects: &Dialects, encoder: &mut Encoder, repairs: &[AppliedRepair]) -> Encoded {
        self.with_wire_request(dialects, repairs, |request| encoder.encode(request, &self.entries))
    }

    /// The same with the known repairs, and a token breakdown that includes what was left out.
    pub(crate) fn token_breakdown(&self, dialects: &Dialects, encoder: &mut Encoder) -> (Encoded, TokenBreakdown) {
        self.with_wire_request(dialects, self.repairs, |request| {
            let encoded = encoder.encode(request, &self.entries);
            let breakdown = encoder.token_breakdown(request, &encoded);
            (encoded, breakdown)
        })
    }

    fn with_wire_request<T>(
        &self,
        dialects: &Dialects,
        repairs: &[AppliedRepair],
        make: impl FnOnce(&Request<'_>) -> T,
    ) -> T {
        let Endpoint { dialect, model, .. } = self.endpoint;
        let (mut settings, mut repairs) = (Cow::Borrowed(self.settings), Cow::Borrowed(repairs));
        if self.answer_mode == AnswerMode::AnswerNow {
            rules::apply_answer_now(&dialect.rules(Some(model)).ask, settings.to_mut(), repairs.to_mut());
        }
        make(
            &Request::new(dialects, dialect, model, &self.endpoint.origin(), &settings)
                .with_messages(&self.messages)
                .with_tools(self.tools)
                .with_parameters(self.parameters)
                .with_repairs(&repairs),
        )
    }
}

/// The signals that stop an exchange at any point.
#[derive(Debug, Clone, Copy)]
pub struct StopSignals<'a> {
    pub cancel: &'a CancellationToken,
    /// Has an effect until the answer begins.
    pub answer_now: Option<&'a AnswerNowSignal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoppedBy {
    Cancel,
    AnswerNow,
}

impl StopSignals<'_> {
    /// Waits for a signal that has an effect in this phase.
    pub(super) async fn received(self, phase: ReplyPhase) -> StoppedBy {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => StoppedBy::Cancel,
            () = self.answer_now_requested(phase) => StoppedBy::AnswerNow,
        }
    }

    async fn answer_now_requested(self, phase: ReplyPhase) {
        match (self.answer_now, phase) {
            (Some(signal), ReplyPhase::Thinking) => signal.requested().await,
            (Some(_), ReplyPhase::Answering) | (None, _) => std::future::pending().await,
        }
    }
}

/// What the model is currently streaming.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ReplyPhase {
    /// Also before the first block.
    #[default]
    Thinking,
    /// The answer or a tool call.
    Answering,
}
