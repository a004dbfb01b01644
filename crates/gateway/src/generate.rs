//! One request for a reply: finds the model, tries its targets in order, and sends
//! the request as it is or translated.

use std::sync::Arc;

use aside_core::json_text::short_members;
use aside_core::protocol::Protocol;
use aside_core::rules::AppliedRepair;
use aside_core::settings::Settings;
use aside_session::serve_table::ReceiptContent;
use axum::body::Body;

use crate::config::Target;
use crate::error_response::{GatewayError, GatewayResponse, set_header};
use crate::gateway::RequestContext;
use crate::recall::ReadRequest;
use crate::receipt::{Receipt, RequestTexts};
use crate::request_body::RequestBody;
use crate::response_state::ResponseRequest;
use crate::route::ReplyDelivery;

/// The longest JSON value considered when looking for a switch.
const MAX_SWITCH_BYTES: usize = 64 << 10;

/// A request that is ready to be sent to one target.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) context: Arc<RequestContext>,
    pub(crate) target: Arc<Target>,
    /// The client's.
    pub(crate) protocol: Protocol,
    pub(crate) delivery: ReplyDelivery,
    /// The model's name as the client wrote it.
    pub(crate) asked: Arc<str>,
    pub(crate) body: Arc<RequestBody>,
    pub(crate) settings: Arc<Settings>,
    /// What this endpoint is known to need, or was found to need a moment ago.
    pub(crate) repairs: Vec<AppliedRepair>,
    /// None if the body is not a request of its protocol.
    pub(crate) read: Option<Arc<ReadRequest>>,
    /// None in other protocols.
    pub(crate) response: Option<ResponseRequest>,
}

/// The result of trying one target.
pub(crate) enum Attempted {
    /// The answer for the client, good or bad.
    Answered(GatewayResponse),
    /// The target failed before its first byte; another may do better.
    Failed(Box<FailedAttempt>),
}

pub(crate) struct FailedAttempt {
    pub(crate) response: GatewayResponse,
    pub(crate) receipt: Receipt,
}

impl Attempted {
    pub(crate) fn failed(response: GatewayResponse, receipt: Receipt) -> Attempted {
        Attempted::Failed(Box::new(FailedAttempt { response, receipt }))
    }
}

impl RequestContext {
    pub(crate) async fn generate(
        self,
        protocol: Protocol,
        model: Option<String>,
        delivery: ReplyDelivery,
        body: Body,
    ) -> Result<GatewayResponse, GatewayError> {
        if let Some(key) = &self.caller.key {
            self.gateway.limits.admit(key, self.at.0 / 1000)?;
        }
        let body = Arc::new(self.read(body).await?);
        let members = short_members(&body.text, &["model", "stream"], MAX_SWITCH_BYTES)
            .map_err(|error| GatewayError::bad_request(format!("the body is {error}")))?;
        let in_body = || members.get("model")?.as_str().map(str::to_owned);
        let Some(asked) = model.or_else(in_body) else {
            return Err(GatewayError::bad_request("no model is named; see /v1/models"));
        };
        let delivery = match (delivery, members.get("stream").and_then(serde_json::Value::as_bool)) {
            (ReplyDelivery::AsAsked, Some(true)) => ReplyDelivery::Streamed,
            (ReplyDelivery::AsAsked, None) if protocol == Protocol::Ollama => ReplyDelivery::Streamed,
            (ReplyDelivery::AsAsked, _) => ReplyDelivery::Whole,
            (by_path, _) => by_path,
        };
        let mut receipt = self.receipt(protocol, &asked);
        if self.config.serve.receipts == ReceiptContent::Full {
            receipt.texts = Some(RequestTexts::of_client(&body.text));
        }
        let targets = match self.targets(&asked).await {
            Ok(targets) => targets,
            Err(error) => {
                receipt.status = error.kind.status();
                self.gateway.record(&receipt);
                return Err(error);
            }
        };
        let (body, response) = match protocol {
            Protocol::OpenaiResponses => self.continue_response(body).await.map(|(body, own)| (body, Some(own)))?,
            Protocol::OpenaiChat
            | Protocol::Anthropic
            | Protocol::Gemini
            | Protocol::Ollama
            | Protocol::Bedrock
            | Protocol::Cohere => (body, None),
        };
        let targets = match targets.len() {
            0 | 1 => targets,
            _ => Box::pin(self.pinned_first(targets, protocol, &body.text)).await,
        };
        let context = Arc::new(self);
        let asked: Arc<str> = asked.into();
        let n_targets = targets.len();
        for (at, target) in targets.into_iter().enumerate() {
            let call = Box::pin(Call::new(&context, target, protocol, delivery, &asked, &body)).await?;
            let call = Call { response: response.clone(), ..call };
            receipt.set_target(&call.target);
            if let Some(read) = &call.read {
                receipt.note_recalled(read, context.changes());
            }
            match Box::pin(call.attempt(receipt)).await {
                Attempted::Answered(response) => return Ok(response),
                Attempted::Failed(failed) if at + 1 == n_targets => {
                    context.gateway.record(&failed.receipt);
                    return Ok(failed.response);
                }
                Attempted::Failed(failed) => receipt = failed.receipt,
            }
        }
        Err(GatewayError::bad_request("the model has no target"))
    }
}

impl RequestContext {
    /// Moves the target that can continue the open tool loop to the front: only the issuer can read opaque thinking.
    async fn pinned_first(&self, mut targets: Vec<Arc<Target>>, protocol: Protocol, body: &str) -> Vec<Arc<Target>> {
        let Some(first) = targets.first() else { return targets };
        let read = self.recall(protocol, first, &first.settings, body).await.ok();
        let pinned = read.as_ref().and_then(|read| read.recalled.as_ref()?.restored.pinned());
        let is_issuer = |target: &Arc<Target>| {
            pinned.is_some_and(|issuer| issuer.provider.as_deref() == Some(target.endpoint.provider.as_str()))
        };
        if let Some(at) = targets.iter().position(is_issuer) {
            targets.get_mut(..=at).unwrap_or_default().rotate_right(1);
        }
        targets
    }
}

impl Receipt {
    fn set_target(&mut self, target: &Target) {
        self.model.resolved = Some(target.name());
        self.model.provider = Some(target.endpoint.provider.clone());
        self.model.dialect = Some(target.endpoint.dialect.id.clone());
    }
}

impl Call {
    async fn new(
        context: &Arc<RequestContext>,
        target: Arc<Target>,
        protocol: Protocol,
        delivery: ReplyDelivery,
        asked: &Arc<str>,
        body: &Arc<RequestBody>,
    ) -> Result<Call, GatewayError> {
        let settings = context.config.settings_for(&target, &context.wanted_settings())?;
        let is_same = target.protocol() == protocol;
        let read = match context.recall(protocol, &target, &settings, &body.text).await {
            Ok(read) => Some(Arc::new(read)),
            // A provider of the same protocol has the better error message.
            Err(_) if is_same => None,
            Err(error) => return Err(error),
        };
        Ok(Call {
            repairs: context.gateway.learned_repairs(&target),
            read,
            context: Arc::clone(context),
            target,
            protocol,
            delivery,
            asked: Arc::clone(asked),
            body: Arc::clone(body),
            settings,
            response: None,
        })
    }

    /// Sends the client's own bytes if the provider speaks its protocol and nothing needs to change.
    async fn attempt(self, receipt: Receipt) -> Attempted {
        if let Some(request) = &self.response {
            if request.lacks_previous(self.is_same_protocol()) {
                return self.previous_response_not_found(receipt);
            }
            let provider = &self.target.endpoint.provider;
            if self.is_same_protocol() && request.has_foreign_conversation(&self.context.caller, provider) {
                let error = format!(
                    "this key may not use conversations of `{provider}`: they are in an account that all tenants share; add it to the key's `pass`, or send the whole conversation"
                );
                return self.final_error(&GatewayError::bad_request(error), receipt);
            }
        }
        let changes = !self.repairs.is_empty() || !self.context.wanted_settings().is_empty();
        if self.is_same_protocol() && !changes {
            Box::pin(self.pass_through(receipt)).await
        } else {
            Box::pin(self.translate(receipt)).await
        }
    }

    pub(crate) fn is_same_protocol(&self) -> bool {
        self.target.protocol() == self.protocol
    }

    /// An error of the gateway, as the answer to this call.
    pub(crate) fn error(&self, error: &GatewayError, mut receipt: Receipt) -> Attempted {
        receipt.status = error.kind.status();
        let mut response = error.response(self.protocol);
        set_header(&mut response, "aside-repaired", &receipt.counts.to_string());
        Attempted::failed(response, receipt)
    }

    /// The same for an error that every other target would return too.
    pub(crate) fn final_error(&self, error: &GatewayError, receipt: Receipt) -> Attempted {
        match self.error(error, receipt) {
            Attempted::Failed(failed) => {
                self.context.gateway.record(&failed.receipt);
                Attempted::Answered(failed.response)
            }
            answered @ Attempted::Answered(_) => answered,
        }
    }
}
