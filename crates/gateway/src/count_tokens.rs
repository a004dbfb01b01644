//! The number of tokens of a request: the provider's count, or an estimate.

use aside_core::json_text::short_members;
use aside_core::protocol::Protocol;
use aside_core::wire::{http_get, read_request, with_model};
use aside_engine::http::ForwardedRequest;
use axum::body::Body;
use bytes::Bytes;
use serde_json::json;

use crate::config::Target;
use crate::error_response::{GatewayError, GatewayResponse, json_response, set_header, value_response};
use crate::forwarded_headers::forwarded_headers;
use crate::gateway::RequestContext;
use crate::same_protocol::with_query;

impl RequestContext {
    pub(crate) async fn count_tokens(
        &self,
        protocol: Protocol,
        model: Option<String>,
        body: Body,
    ) -> Result<GatewayResponse, GatewayError> {
        let body = self.read(body).await?;
        let members = short_members(&body.text, &["model"], 1 << 16)
            .map_err(|error| GatewayError::bad_request(format!("the body is {error}")))?;
        let in_body = || members.get("model")?.as_str().map(str::to_owned);
        let asked = model.or_else(in_body).ok_or_else(|| GatewayError::bad_request("no model is named"))?;
        let targets = self.targets(&asked).await?;
        let target = targets.first().ok_or_else(|| GatewayError::bad_request("the model has no target"))?;
        if target.protocol() == protocol
            && let Some(response) = self.provider_count(protocol, target, &body.text).await
        {
            return Ok(response);
        }
        let count = self.estimate(protocol, target, &body.text)?;
        let count = match protocol {
            Protocol::Gemini => json!({ "totalTokens": count }),
            Protocol::OpenaiChat
            | Protocol::OpenaiResponses
            | Protocol::Anthropic
            | Protocol::Ollama
            | Protocol::Bedrock
            | Protocol::Cohere => json!({ "input_tokens": count }),
        };
        let mut response = value_response(200, &count);
        set_header(&mut response, "aside-estimated", "true");
        Ok(response)
    }

    /// None if the provider has no such count.
    async fn provider_count(&self, protocol: Protocol, target: &Target, body: &str) -> Option<GatewayResponse> {
        let endpoint = &target.endpoint;
        // If the provider has a path of its own, the path for counting is unknown.
        if endpoint.access.path.is_some() {
            return None;
        }
        let path = match protocol {
            Protocol::Anthropic => "/v1/messages/count_tokens".to_owned(),
            Protocol::Gemini => format!("/v1beta/models/{}:countTokens", endpoint.model),
            Protocol::OpenaiChat
            | Protocol::OpenaiResponses
            | Protocol::Ollama
            | Protocol::Bedrock
            | Protocol::Cohere => return None,
        };
        let key = endpoint.valid_key().await.ok()?;
        let (url, own) = http_get(&with_query(&path, &self.query), &endpoint.destination(key.as_ref()));
        let mut headers = forwarded_headers(&self.headers);
        headers.retain(|(name, _)| !own.iter().any(|(known, _)| known == name));
        headers.extend(own);
        let body = Bytes::copy_from_slice(with_model(body, &endpoint.model).ok()?.as_bytes());
        let request = ForwardedRequest { method: "POST", url: &url, headers: &headers, body };
        let mut reply = self.config.http().forward(request).await.ok()?;
        if reply.status() != 200 {
            return None;
        }
        let mut answer = Vec::new();
        while let Ok(Some(bytes)) = reply.next_bytes(self.config.http()).await {
            answer.extend_from_slice(&bytes);
            if answer.len() > 1 << 20 {
                return None;
            }
        }
        String::from_utf8(answer).ok().map(|answer| json_response(200, target.redactor.clean(&answer)))
    }

    /// Our own estimate for the encoded request.
    fn estimate(&self, protocol: Protocol, target: &Target, body: &str) -> Result<u64, GatewayError> {
        let endpoint = &target.endpoint;
        let generic = self.config.dialects.generic(protocol);
        let rules = generic.unwrap_or(&endpoint.dialect).rules(None);
        let request =
            read_request(protocol, rules, body).map_err(|error| GatewayError::bad_request(error.to_string()))?;
        let (messages, origin): (Vec<_>, _) = (request.messages.iter().collect(), endpoint.origin());
        let request = aside_core::Request::new(
            &self.config.dialects,
            &endpoint.dialect,
            &endpoint.model,
            &origin,
            &target.settings,
        )
        .with_messages(&messages)
        .with_tools(&request.tools)
        .with_parameters(&request.parameters);
        Ok(aside_core::encode(&request).tokens)
    }
}
