//! One request to one provider: encode, send, repair, decode. The turn loop and the gateway both use it.

mod outcome;
mod refusal;
mod reply_reader;
mod request;
mod sink;

use std::sync::Arc;

use aside_core::block::Reply;
use aside_core::connection_failure::ConnectionError;
use aside_core::dialect::Dialects;
use aside_core::rules::{self, RefusedRequest, RepairLoop};
use aside_core::wire::{Decoder, Encoded, Encoder};

use crate::http::{CallError, Http, HttpRefusal, HttpReply, InvalidCall, PreparedCall};
use crate::redact::Redactor;
use crate::retry::{self, Retry};
pub use outcome::{ExchangeError, ExchangeOutcome, ProviderRefusal};
pub(crate) use refusal::pause_in_body;
pub use refusal::read_refusal;
use reply_reader::ReplyReader;
use request::ReplyPhase;
pub use request::{ExchangeRequest, StopSignals};
pub use sink::{ExchangeSink, ExchangeUpdate};
use sink::{wait_for, wait_for_sink};

/// Everything that exchanges have in common. Any number of them can run at once.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub dialects: Arc<Dialects>,
    pub http: Http,
    /// Removes keys from errors.
    pub redactor: Redactor,
}

impl Exchange {
    /// Sends a request until there is a reply, and reads the reply. The same bytes are sent again after
    /// overload or a failed connection. A refusal about thinking is repaired, unless content has arrived.
    ///
    /// Dropping the future closes the socket. A stop signal does too, and keeps what was received.
    pub async fn run<S: ExchangeSink>(
        &self,
        request: &ExchangeRequest<'_>,
        encoder: &mut Encoder,
        stop: StopSignals<'_>,
        sink: &mut S,
    ) -> ExchangeOutcome {
        let mut repair_loop = RepairLoop::new(&self.dialects, request.repairs);
        loop {
            let encoded = request.encode(&self.dialects, encoder, repair_loop.repairs());
            let (tokens, refusable) = (encoded.tokens, encoded.to_refused());
            let (reply, error) = match self.send(request, encoded, &refusable, &repair_loop, stop, sink).await {
                Ok(http_reply) => {
                    let reader = ReplyReader { http: &self.http, redactor: &self.redactor, request, stop, sink };
                    reader.read(self.decoder(request), http_reply).await
                }
                Err(error) => (Reply::default(), Some(error)),
            };
            if let Some(ExchangeError::Refused(refusal)) = &error
                && let Some(notice) = repair_loop.refused(&refusal.error, &refusable, |repairs| {
                    request.encode(&self.dialects, encoder, repairs).body
                })
            {
                sink.on_update(ExchangeUpdate::Repaired(&notice));
                continue;
            }
            let repairs = repair_loop.tried().to_vec();
            return ExchangeOutcome { result: error.map_or(Ok(()), Err), reply, repairs, tokens };
        }
    }

    /// Sends one body, with retries where they may help, until the headers of a reply arrive.
    async fn send<S: ExchangeSink>(
        &self,
        request: &ExchangeRequest<'_>,
        encoded: Encoded,
        refusable: &RefusedRequest,
        repair_loop: &RepairLoop<'_>,
        stop: StopSignals<'_>,
        sink: &mut S,
    ) -> Result<HttpReply, ExchangeError> {
        let phase = ReplyPhase::default();
        let endpoint = request.endpoint;
        let key = wait_for(endpoint.valid_key(), phase, stop, sink).await?.map_err(|error| self.invalid(error))?;
        let call = endpoint.http_call(&encoded, key.as_ref());
        sink.on_update(ExchangeUpdate::Sending { encoded: &encoded, body: &call.body });
        wait_for_sink(phase, stop, sink).await?;
        let mut call = PreparedCall::new(&call).map_err(|error| self.invalid(error))?;
        let (mut attempt, mut may_renew) = (1, true);
        loop {
            let (retry, error) = match wait_for(self.http.post(&call), phase, stop, sink).await? {
                Ok(http_reply) => return Ok(http_reply),
                Err(CallError::Refused(response)) if response.status == 401 && may_renew => {
                    may_renew = false;
                    let renewed = wait_for(endpoint.key_after_refusal(key.as_ref()), phase, stop, sink).await?;
                    if let Some(key) = renewed.map_err(|error| self.invalid(error))? {
                        let renewed = endpoint.http_call(&encoded, Some(&key));
                        call = PreparedCall::new(&renewed).map_err(|error| self.invalid(error))?;
                        continue;
                    }
                    self.retry_or_fail(CallError::Refused(response), request, refusable, repair_loop, attempt)
                }
                Err(error) => self.retry_or_fail(error, request, refusable, repair_loop, attempt),
            };
            let Retry::After(after) = retry else { return Err(error) };
            sink.on_update(ExchangeUpdate::Retrying { after, attempt, why: &error.to_string() });
            wait_for_sink(phase, stop, sink).await?;
            wait_for(tokio::time::sleep(after), phase, stop, sink).await?;
            attempt += 1;
        }
    }

    /// Decides whether the same bytes are sent again. Returns the error to report if they are not.
    fn retry_or_fail(
        &self,
        error: CallError,
        request: &ExchangeRequest<'_>,
        refusable: &RefusedRequest,
        repair_loop: &RepairLoop<'_>,
        attempt: u32,
    ) -> (Retry, ExchangeError) {
        match error {
            CallError::Invalid(error) => (Retry::Never, self.invalid(error)),
            CallError::Unreachable(ConnectionError { failure, what }) => {
                let what = self.redactor.clean(&what).into_owned();
                (retry::after_connection_failure(failure, attempt), ConnectionError::new(failure, what).into())
            }
            CallError::Refused(response) => {
                let refusal = self.parse_refusal(*response, request);
                let retry = match &refusal.response {
                    // No repair and no wait helps an account without credit.
                    _ if refusal.error.lacks_credit => Retry::Never,
                    // A refusal that can be repaired would only be refused again.
                    Some(response) if !repair_loop.is_about_thinking(&refusal.error, refusable) => {
                        retry::after_refusal(response, attempt)
                    }
                    Some(_) | None => Retry::Never,
                };
                (retry, ExchangeError::Refused(Box::new(refusal)))
            }
        }
    }

    fn parse_refusal(&self, response: HttpRefusal, request: &ExchangeRequest<'_>) -> ProviderRefusal {
        let error = read_refusal(self.decoder(request), &response);
        // Some providers use the same words for a rate limit, and then say how long to wait.
        let lacks_credit = response.retry_after.is_none() && self.dialects.lacks_credit(&error.words_and_code());
        let error = error.with_lacks_credit(lacks_credit);
        ProviderRefusal { error: self.redactor.error(error), response: Some(response) }
    }

    /// A URL may contain a key.
    fn invalid(&self, error: InvalidCall) -> ExchangeError {
        let clean = |text: String| self.redactor.clean(&text).into_owned();
        ExchangeError::Invalid(match error {
            InvalidCall::BadUrl(url) => InvalidCall::BadUrl(clean(url)),
            InvalidCall::BadHeader(name) => InvalidCall::BadHeader(clean(name)),
            InvalidCall::NoClient(why) => InvalidCall::NoClient(clean(why)),
            InvalidCall::NoKey(why) => InvalidCall::NoKey(clean(why)),
        })
    }

    fn decoder(&self, request: &ExchangeRequest<'_>) -> Decoder {
        let (dialect, model) = (&request.endpoint.dialect, &request.endpoint.model);
        let rules = rules::rules_with_tags(&self.dialects, dialect.rules(Some(model)), request.settings.tags());
        Decoder::bounded(dialect.protocol, &rules, request.settings.max_reply_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_send_and_sync<T: Send + Sync>() {}

    #[test]
    fn an_exchange_and_what_it_takes_and_returns_are_send_and_sync() {
        is_send_and_sync::<Exchange>();
        is_send_and_sync::<ExchangeRequest<'_>>();
        is_send_and_sync::<ExchangeOutcome>();
        is_send_and_sync::<ExchangeError>();
    }
}
