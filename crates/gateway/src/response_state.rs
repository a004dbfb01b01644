//! Responses that a client continues, fetches and deletes by their id. Each keeps its
//! own input and names the response before it; the thinking is in the same row.

use std::sync::Arc;

use aside_core::json_text::short_members;
use aside_core::protocol::Protocol;
use aside_core::wire::{http_get, request_path};
use aside_memory::{ReplyDraft, ReplyId, StoredReply, Tenant};
use axum::body::Body;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::authentication::Caller;
use crate::error_response::{ErrorKind, GatewayError, GatewayResponse, json_response, set_header, value_response};
use crate::gateway::RequestContext;
use crate::request_body::RequestBody;
use crate::route::{ResponseAction, percent_decode};
use crate::same_protocol::{no_key, with_query};

/// The longest conversation that can be continued by an id.
const MAX_CHAIN: usize = 10_000;

/// Items of a page of input items: the usual number and the largest.
const PAGE: usize = 20;
const MAX_PAGE: usize = 100;

/// The id of a reply is in its first bytes.
const MAX_HEAD: usize = 64 << 10;
const MAX_ID: usize = 512;

/// What is kept of a response besides its thinking.
#[derive(Debug, Serialize, Deserialize)]
struct KeptResponse {
    /// The id of the response that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    /// The items that the client sent with this request.
    input: Vec<Box<RawValue>>,
    /// The response as the client got it.
    body: Box<RawValue>,
}

impl KeptResponse {
    fn of(reply: &StoredReply) -> Option<KeptResponse> {
        serde_json::from_str(reply.response.as_deref()?).ok()
    }

    fn output(&self) -> Vec<Box<RawValue>> {
        #[derive(Deserialize)]
        struct Output {
            #[serde(default)]
            output: Vec<Box<RawValue>>,
        }
        serde_json::from_str::<Output>(self.body.get()).map(|body| body.output).unwrap_or_default()
    }
}

/// The response that a request continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PreviousResponse {
    /// It begins a conversation, or has all of it.
    None,
    /// One of ours, with this id. Its items are in the request now.
    Ours(String),
    /// One that a provider keeps for this tenant.
    OfProvider,
    /// One that is not kept, or that another tenant got.
    Unknown,
}

/// A request of the Responses API, as far as it concerns kept responses.
#[derive(Debug, Clone)]
pub(crate) struct ResponseRequest {
    /// As the client sent it.
    own: Arc<RequestBody>,
    previous: PreviousResponse,
    /// It names a conversation that the provider keeps.
    has_conversation: bool,
    /// False if the client does not want it to be kept.
    pub(crate) is_kept: bool,
}

impl ResponseRequest {
    /// The id of the response of ours that it continues.
    pub(crate) fn previous(&self) -> Option<&str> {
        match &self.previous {
            PreviousResponse::Ours(id) => Some(id),
            PreviousResponse::None | PreviousResponse::OfProvider | PreviousResponse::Unknown => None,
        }
    }

    /// Whether it continues a response that this target does not have.
    pub(crate) fn lacks_previous(&self, is_same_protocol: bool) -> bool {
        match &self.previous {
            PreviousResponse::None | PreviousResponse::Ours(_) => false,
            PreviousResponse::OfProvider => !is_same_protocol,
            PreviousResponse::Unknown => true,
        }
    }

    /// Whether it names a conversation in the provider's account that this caller may not reach.
    pub(crate) fn has_foreign_conversation(&self, caller: &Caller, provider: &str) -> bool {
        self.has_conversation && !caller.may_pass_to(provider)
    }

    /// Keeps a response with the reply that it was made of.
    pub(crate) fn keep(&self, draft: &mut ReplyDraft, body: &str) {
        let kept = RawValue::from_string(body.to_owned()).ok().map(|body| KeptResponse {
            previous: self.previous().map(str::to_owned),
            input: input_items(&self.own.text),
            body,
        });
        // A response that is not JSON was not made here.
        if let Some(state) = kept.filter(|_| self.is_kept).and_then(|kept| serde_json::to_string(&kept).ok()) {
            draft.keep_response(state);
        }
    }
}

/// The items of a request. A plain text is a user message.
fn input_items(body: &str) -> Vec<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Input<'a> {
        #[serde(borrow)]
        input: Option<&'a RawValue>,
    }
    let Some(input) = serde_json::from_str::<Input<'_>>(body).ok().and_then(|body| body.input) else {
        return Vec::new();
    };
    if let Ok(text) = serde_json::from_str::<String>(input.get()) {
        let content = json!([{ "type": "input_text", "text": text }]);
        let message = json!({ "type": "message", "role": "user", "content": content });
        return to_raw_value(&message).into_iter().collect();
    }
    serde_json::from_str(input.get()).unwrap_or_default()
}

/// The body with other items, and without the id of the response before.
fn with_input(body: &str, input: &[Box<RawValue>]) -> Option<String> {
    let members: Vec<(String, Box<RawValue>)> = members_of(body)?;
    let mut out = String::with_capacity(body.len());
    out.push('{');
    for (name, value) in members.iter().filter(|(name, _)| name != "previous_response_id" && name != "input") {
        out.push_str(&format!("{}:{},", Value::from(name.as_str()), value.get()));
    }
    out.push_str("\"input\":[");
    for (at, item) in input.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(item.get());
    }
    out.push_str("]}");
    Some(out)
}

/// The members of an object, in their order.
fn members_of(body: &str) -> Option<Vec<(String, Box<RawValue>)>> {
    struct Members;
    impl<'de> serde::de::Visitor<'de> for Members {
        type Value = Vec<(String, Box<RawValue>)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }
    serde::Deserializer::deserialize_map(&mut serde_json::Deserializer::from_str(body), Members).ok()
}

/// Whether a request names a conversation that the provider keeps, however it is written.
fn names_conversation(body: &str) -> bool {
    // Most bodies need not be read for this: they have neither the name nor an escaped small letter.
    if !["\"conversation\"", "\\u006", "\\u007"].iter().any(|sign| body.contains(sign)) {
        return false;
    }
    let members = members_of(body).unwrap_or_default();
    members.iter().any(|(name, value)| name == "conversation" && value.get() != "null")
}

impl RequestContext {
    /// Completes a request that continues a response of ours: with all items since the beginning.
    pub(crate) async fn continue_response(
        &self,
        body: Arc<RequestBody>,
    ) -> Result<(Arc<RequestBody>, ResponseRequest), GatewayError> {
        let members = short_members(&body.text, &["previous_response_id", "store"], 1 << 12).unwrap_or_default();
        let is_kept = members.get("store").and_then(Value::as_bool) != Some(false) && !self.wants_no_store();
        let has_conversation = self.caller.key.is_some() && names_conversation(&body.text);
        let own = Arc::clone(&body);
        let mut request = ResponseRequest { own, previous: PreviousResponse::None, has_conversation, is_kept };
        let Some(previous) = members.get("previous_response_id").and_then(Value::as_str) else {
            return Ok((body, request));
        };
        let tenant = self.tenant().await;
        let id = tenant.as_ref().and_then(|tenant| Some((tenant, tenant.read_response_id(previous)?)));
        let kept = match id {
            Some((tenant, id)) => self.conversation(tenant, id).await,
            None => None,
        };
        let Some(kept) = kept else {
            request.previous = self.kept_by_provider(tenant.as_ref(), previous).await;
            return Ok((body, request));
        };
        let mut items: Vec<Box<RawValue>> = Vec::new();
        for response in kept {
            items.extend(response.output().into_iter().rev());
            items.extend(response.input.into_iter().rev());
        }
        items.reverse();
        items.extend(input_items(&body.text));
        let whole = with_input(&body.text, &items).filter(|whole| whole.len() <= self.config.serve.max_body);
        let Some(whole) = whole else {
            return Err(GatewayError::new(ErrorKind::TooLarge, "the conversation of previous_response_id is too long"));
        };
        request.previous = PreviousResponse::Ours(previous.to_owned());
        let whole = RequestBody::new(whole, self.body_memory())?;
        Ok((Arc::new(whole), request))
    }

    /// Whether a provider issued this id to the tenant. All tenants share the provider's account, so the provider
    /// would also continue another tenant's response.
    async fn kept_by_provider(&self, tenant: Option<&Arc<Tenant>>, id: &str) -> PreviousResponse {
        if self.caller.key.is_none() {
            return PreviousResponse::OfProvider;
        }
        let reply = match tenant {
            Some(tenant) => self.gateway.memory.reply_with_response_id(tenant, id).await.ok().flatten(),
            None => None,
        };
        if reply.is_some() { PreviousResponse::OfProvider } else { PreviousResponse::Unknown }
    }

    /// The responses of a conversation, the newest first. None if one is missing, or if the store does not answer.
    async fn conversation(&self, tenant: &Arc<Tenant>, id: ReplyId) -> Option<Vec<KeptResponse>> {
        let mut conversation = Vec::new();
        let mut bytes = 0;
        let mut next = Some((id, self.gateway.memory.stored_reply(tenant, id).await.ok()??));
        while let Some((_, reply)) = next {
            let kept = KeptResponse::of(&reply)?;
            bytes += reply.response.as_ref().map_or(0, String::len);
            if conversation.len() >= MAX_CHAIN || bytes > self.config.serve.max_body.saturating_mul(2) {
                return None;
            }
            next = match &kept.previous {
                Some(previous) => {
                    let id = tenant.read_response_id(previous)?;
                    Some((id, self.gateway.memory.reply(tenant, id).await.ok()??))
                }
                None => None,
            };
            conversation.push(kept);
        }
        Some(conversation)
    }

    /// Fetches, deletes or cancels a response.
    pub(crate) async fn stored_response(
        &self,
        id: &str,
        action: ResponseAction,
        body: Body,
    ) -> Result<GatewayResponse, GatewayError> {
        let missing = || {
            let mut response = json_response(404, not_found(id).to_string());
            set_header(&mut response, "aside-error", "bad_request");
            response
        };
        let Some(tenant) = self.tenant().await else { return Ok(missing()) };
        let memory = &self.gateway.memory;
        let Some(own) = tenant.read_response_id(id) else {
            // Other tenants may use the same provider, so only ids that this tenant got are requested.
            let found = memory.reply_with_response_id(&tenant, id).await.ok().flatten();
            return match found {
                Some(reply) => self.ask_issuer(&reply, id, action, body).await,
                None => Ok(missing()),
            };
        };
        let Some(reply) = memory.stored_reply(&tenant, own).await.ok().flatten() else { return Ok(missing()) };
        let Some(kept) = KeptResponse::of(&reply) else { return Ok(missing()) };
        match action {
            ResponseAction::Fetch => Ok(json_response(200, kept.body.get())),
            ResponseAction::Delete => {
                let deleted = memory.forget_reply(&tenant, &reply).await;
                deleted.map_err(|error| GatewayError::new(ErrorKind::Busy, error.to_string()))?;
                Ok(value_response(200, &json!({ "id": id, "object": "response", "deleted": true })))
            }
            ResponseAction::InputItems => {
                let Some(conversation) = self.conversation(&tenant, own).await else { return Ok(missing()) };
                Ok(value_response(200, &self.input_page(id, conversation)))
            }
            ResponseAction::Cancel => Err(GatewayError::bad_request(
                "Cannot cancel a synchronous response. Only background responses can be.",
            )),
        }
    }

    /// One page of the items that a response was made from.
    fn input_page(&self, id: &str, conversation: Vec<KeptResponse>) -> Value {
        let mut newest_first: Vec<Value> = Vec::new();
        for (at, response) in conversation.into_iter().enumerate() {
            let output = if at > 0 { response.output() } else { Vec::new() };
            let items = output.iter().rev().chain(response.input.iter().rev());
            newest_first.extend(items.filter_map(|item| serde_json::from_str(item.get()).ok()));
        }
        let n_items = newest_first.len();
        let tail: String = id.chars().rev().take(8).collect::<Vec<_>>().into_iter().rev().collect();
        for (at, item) in newest_first.iter_mut().enumerate() {
            if let (Value::Object(item), number) = (item, n_items - at) {
                item.entry("id").or_insert_with(|| json!(format!("item_{tail}_{number}")));
            }
        }
        let parameter = |name: &str| {
            let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.filter(|(known, _)| *known == name).map(|(_, value)| percent_decode(value)).next()
        };
        if parameter("order").as_deref() == Some("asc") {
            newest_first.reverse();
        }
        let id_of = |item: &Value| item.get("id").and_then(Value::as_str).map(str::to_owned);
        let after = parameter("after");
        let start = newest_first.iter().position(|item| after.is_some() && id_of(item) == after).map_or(0, |at| at + 1);
        let limit = parameter("limit").and_then(|limit| limit.parse().ok()).unwrap_or(PAGE).clamp(1, MAX_PAGE);
        let page: Vec<Value> = newest_first.iter().skip(start).take(limit).cloned().collect();
        json!({
            "object": "list",
            "first_id": page.first().and_then(id_of),
            "last_id": page.last().and_then(id_of),
            "has_more": start + page.len() < n_items,
            "data": page,
        })
    }

    /// Passes the request on to the provider that issued the id.
    async fn ask_issuer(
        &self,
        reply: &StoredReply,
        id: &str,
        action: ResponseAction,
        body: Body,
    ) -> Result<GatewayResponse, GatewayError> {
        let origin = reply.message.origin.clone().unwrap_or_default();
        let name = format!("{}/{}", origin.provider.unwrap_or_default(), origin.model.unwrap_or_default());
        let target = self.config.target(&name, &self.gateway.simulator).await?;
        let endpoint = &target.endpoint;
        let key = endpoint.valid_key().await.map_err(|error| no_key(&target, &error))?;
        let to = endpoint.destination(key.as_ref());
        let end = match action {
            ResponseAction::Fetch | ResponseAction::Delete => "",
            ResponseAction::InputItems => "/input_items",
            ResponseAction::Cancel => "/cancel",
        };
        let path = format!("{}/{id}{end}", request_path(Protocol::OpenaiResponses, &endpoint.model));
        let (url, own) = http_get(&with_query(&path, &self.query), &to);
        self.relay_raw(&target, &url, own, body).await
    }
}

/// The error of the API for an unknown id.
fn not_found(id: &str) -> Value {
    let error = json!({
        "message": format!("Response with id '{id}' not found."),
        "type": "invalid_request_error",
        "param": null,
        "code": null,
    });
    json!({ "error": error })
}

/// Finds the id of a provider's response in the first bytes of the reply.
#[derive(Debug, Default)]
pub(crate) struct ResponseIdFinder {
    head: Vec<u8>,
    found: Option<String>,
    is_done: bool,
}

impl ResponseIdFinder {
    /// Looks for nothing if the protocol has no such ids.
    pub(crate) fn new(protocol: Protocol) -> ResponseIdFinder {
        ResponseIdFinder { is_done: protocol != Protocol::OpenaiResponses, ..ResponseIdFinder::default() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.is_done {
            return;
        }
        self.head.extend_from_slice(bytes.get(..bytes.len().min(MAX_HEAD)).unwrap_or_default());
        self.found = first_id(&self.head);
        self.is_done = self.found.is_some() || self.head.len() >= MAX_HEAD;
        if self.is_done {
            self.head = Vec::new();
        }
    }

    pub(crate) fn id(&self) -> Option<&str> {
        self.found.as_deref()
    }
}

/// The first member `id` of a response: the first event has it, and so has a whole body.
fn first_id(head: &[u8]) -> Option<String> {
    let at = memchr::memmem::find(head, b"\"id\"")?;
    let rest = std::str::from_utf8(head.get(at + 4..)?).unwrap_or_default();
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let (id, _) = rest.strip_prefix('"')?.split_once('"')?;
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    (is_plain && !id.is_empty() && id.len() <= MAX_ID).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g13_the_items_of_a_request_keep_their_bytes() {
        let items = |body: &str| input_items(body).iter().map(|item| item.get().to_owned()).collect::<Vec<_>>();
        assert_eq!(items(r#"{"input":[{"b": 1e400,"a":1.50}, {}]}"#), [r#"{"b": 1e400,"a":1.50}"#, "{}"]);
        let message = r#"{"content":[{"text":"hi","type":"input_text"}],"role":"user","type":"message"}"#;
        assert_eq!(items(r#"{"input":"hi"}"#), [message]);
        for nothing in ["{}", r#"{"input":3}"#, "[", r#"{"input":null}"#] {
            assert_eq!(items(nothing), [""; 0], "{nothing}");
        }
        let own = input_items(r#"{"input":[{"x": 1.0}]}"#);
        let whole = with_input(r#"{"model":"m","input":"x","previous_response_id":"r","top_p":1e-1}"#, &own);
        assert_eq!(whole.as_deref(), Some(r#"{"model":"m","top_p":1e-1,"input":[{"x": 1.0}]}"#));
        assert_eq!(with_input("[]", &own), None);
    }

    #[test]
    fn g13_the_id_of_a_response_is_found_across_pieces() {
        let mut finder = ResponseIdFinder::new(Protocol::OpenaiResponses);
        for piece in [
            "event: response.created\ndata: {\"type\":\"response.created\",\"resp",
            "onse\":{\"i",
            "d\": \"resp_1",
            "23\",\"x\":{\"id\":\"no\"}}}\n\n",
        ] {
            finder.push(piece.as_bytes());
        }
        assert_eq!(finder.id(), Some("resp_123"));
        let mut other = ResponseIdFinder::new(Protocol::OpenaiChat);
        other.push(br#"{"id":"chatcmpl-1"}"#);
        assert_eq!(other.id(), None);
        let mut odd = ResponseIdFinder::new(Protocol::OpenaiResponses);
        odd.push(br#"{"id":"../../admin"}"#);
        assert_eq!(odd.id(), None, "an id becomes a part of a path");
    }
}
