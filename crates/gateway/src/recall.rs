//! What the memory knows about a request, and what it remembers of the reply.

use std::collections::VecDeque;
use std::sync::Arc;

use aside_core::block::{Block, CallId, Origin, Reply, SealKind};
use aside_core::event::{BlockId, Event, Sink};
use aside_core::fold::Fold;
use aside_core::json_text::short_members;
use aside_core::message::{Message, Role};
use aside_core::protocol::Protocol;
use aside_core::settings::Settings;
use aside_core::wire::{ClientRequest, read_request};
use aside_memory::{Evidence, Outcome, ReplyDraft, Restored, Tenant};
use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use serde_json::Value;

use crate::config::Target;
use crate::error_response::GatewayError;
use crate::gateway::{RequestContext, now};
use crate::ids;
use crate::receipt::Receipt;
use crate::reply_shape::{ClientShape, ReplyMarks, remove_shown_thinking};
use crate::tool_names::ToolNames;

/// Headers in which clients name their session, the best first.
const SESSION_HEADERS: [&str; 9] = [
    "x-claude-code-session-id",
    "x-session-affinity",
    "x-session-id",
    "session-id",
    "session_id",
    "thread-id",
    "conversation_id",
    "x-openwebui-chat-id",
    "x-grok-conv-id",
];

/// The longest name of a session.
const MAX_SESSION_BYTES: usize = 512;

/// A client's request in neutral form, with what the memory found for it.
#[derive(Debug)]
pub(crate) struct ReadRequest {
    pub(crate) request: ClientRequest,
    pub(crate) tools: ToolNames,
    pub(crate) shape: Arc<ClientShape>,
    /// None if the memory does not answer.
    pub(crate) recalled: Option<Recalled>,
}

#[derive(Debug)]
pub(crate) struct Recalled {
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) restored: Restored,
}

/// Whether a request may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changes {
    Allowed,
    /// `--shadow`
    OnlyReported,
}

impl ReadRequest {
    /// The messages to send.
    pub(crate) fn messages(&self, changes: Changes) -> Vec<&Message> {
        let own: Vec<&Message> = self.request.messages.iter().collect();
        match (&self.recalled, changes) {
            (Some(recalled), Changes::Allowed) => recalled.restored.view(&own),
            (Some(_), Changes::OnlyReported) | (None, _) => own,
        }
    }

    /// The turns of the model with thinking put back, counted from 0. None if other messages change too.
    pub(crate) fn restored_turns(&self) -> Option<Vec<usize>> {
        let Some(recalled) = &self.recalled else { return Some(Vec::new()) };
        let turns = self.turns();
        let position = |(at, _): (usize, &Message)| turns.iter().position(|turn| *turn == at);
        recalled.restored.changed().map(position).collect()
    }

    /// The positions of the model's messages.
    pub(crate) fn turns(&self) -> Vec<usize> {
        let messages = self.request.messages.iter().enumerate();
        messages.filter(|(_, message)| message.role == Role::Assistant).map(|(at, _)| at).collect()
    }
}

impl RequestContext {
    /// Reads a request, and looks up what it lacks.
    pub(crate) async fn recall(
        &self,
        protocol: Protocol,
        target: &Target,
        settings: &Settings,
        body: &str,
    ) -> Result<ReadRequest, GatewayError> {
        let endpoint = &target.endpoint;
        let is_same = target.protocol() == protocol;
        let dialects = &self.config.dialects;
        let shape = self
            .config
            .client_shape(protocol)
            .ok_or_else(|| GatewayError::bad_request("no dialect speaks this protocol"))?;
        let rules = if is_same { endpoint.dialect.rules(Some(&endpoint.model)) } else { &shape.rules };
        let mut request =
            read_request(protocol, rules, body).map_err(|error| GatewayError::bad_request(error.to_string()))?;
        let origin = endpoint.origin();
        let mut tools = ToolNames::default();
        if is_same {
            request = request.with_origin(&origin);
        } else {
            tools = ToolNames::replace(&mut request);
            for message in request.messages.iter_mut().filter(|message| message.role == Role::Assistant) {
                remove_shown_thinking(message);
                remove_native_items(message);
                // A seal that is not ours has another issuer, and so has an item that only the issuer understands.
                let has_unmodelled = message.blocks.iter().any(|block| matches!(block, Block::Unmodelled(_)));
                if !has_unmodelled && !message.thinking().any(|thinking| thinking.seals().is_some()) {
                    message.origin = Some(origin.clone());
                }
            }
        }
        let recalled = match self.tenant().await {
            Some(tenant) => {
                let messages: Vec<&Message> = request.messages.iter().collect();
                let wanted = aside_core::Request::new(dialects, &endpoint.dialect, &endpoint.model, &origin, settings)
                    .with_messages(&messages)
                    .with_tools(&request.tools)
                    .with_parameters(&request.parameters);
                let session = session_of(&self.headers, body);
                let memory = &self.gateway.memory;
                let restored = memory.restore(&tenant, &wanted, session.as_deref(), now()).await;
                Some(Recalled { tenant, restored })
            }
            None => None,
        };
        Ok(ReadRequest { request, tools, shape, recalled })
    }

    /// The tenant's memory. None if the store does not answer.
    pub(crate) async fn tenant(&self) -> Option<Arc<Tenant>> {
        self.gateway.memory.tenant(&self.caller.tenant, now()).await.ok()
    }

    /// A reply to be remembered. None if the client or the store does not want that.
    pub(crate) fn draft(&self, read: Option<&ReadRequest>) -> Option<ReplyDraft> {
        let recalled = read?.recalled.as_ref().filter(|_| !self.wants_no_store())?;
        Some(self.gateway.memory.begin(&recalled.tenant, &recalled.restored))
    }

    pub(crate) fn changes(&self) -> Changes {
        if self.gateway.options.shadow { Changes::OnlyReported } else { Changes::Allowed }
    }
}

/// Removes the items of the client's protocol, which mean nothing to a provider of another one.
fn remove_native_items(message: &mut Message) {
    for block in &mut message.blocks {
        match block {
            Block::Text(text) => text.native = None,
            Block::Thinking(thinking) => thinking.native = None,
            Block::ToolCall(call) => call.native = None,
            Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
        }
    }
}

/// What the client calls its session.
fn session_of(headers: &HeaderMap, body: &str) -> Option<String> {
    let header = |name: &&str| headers.get(*name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let in_body = || {
        // Most bodies have neither, and this is much faster than reading them.
        let bytes = body.as_bytes();
        memmem::find(bytes, b"prompt_cache_key").or_else(|| memmem::find(bytes, b"metadata"))?;
        let members = short_members(body, &["prompt_cache_key", "metadata"], 1 << 14).ok()?;
        let key = members.get("prompt_cache_key").and_then(Value::as_str);
        let metadata = members.get("metadata");
        let member = |name: &str| metadata?.get(name)?.as_str();
        key.or_else(|| member("user_id")).or_else(|| member("session_id")).map(str::to_owned)
    };
    let session = SESSION_HEADERS.iter().find_map(header).or_else(in_body);
    session.filter(|session| !session.is_empty() && session.len() <= MAX_SESSION_BYTES)
}

/// What happened to turns that lack thinking, for metrics.
#[derive(Debug, Clone, Default)]
pub(crate) struct LossCounts {
    /// Turns with thinking put back, by evidence.
    pub(crate) restored: Vec<(Evidence, u64)>,
    /// The provider would have refused the request.
    pub(crate) refused: u64,
    /// The model would have silently lost its thinking.
    pub(crate) silent: u64,
}

impl LossCounts {
    fn of(restored: &Restored, changes: Changes) -> LossCounts {
        let mut counts = LossCounts::default();
        for turn in &restored.turns {
            let is_lost = match turn.outcome {
                Outcome::Restored => {
                    if let Some(evidence) = turn.evidence {
                        match counts.restored.iter_mut().find(|(known, _)| *known == evidence) {
                            Some((_, count)) => *count += 1,
                            None => counts.restored.push((evidence, 1)),
                        }
                    }
                    changes == Changes::OnlyReported
                }
                Outcome::Ambiguous | Outcome::Unknown => true,
                Outcome::Complete | Outcome::NotWanted | Outcome::HadNone | Outcome::Foreign => false,
            };
            match (is_lost, turn.demand) {
                (true, aside_core::ThinkingDemand::Required) => counts.refused += 1,
                (true, aside_core::ThinkingDemand::Useful) => counts.silent += 1,
                _ => (),
            }
        }
        counts
    }
}

impl Receipt {
    /// Notes what the memory found.
    pub(crate) fn note_recalled(&mut self, read: &ReadRequest, changes: Changes) {
        if let Some(recalled) = &read.recalled {
            self.counts = recalled.restored.counts();
            self.losses = LossCounts::of(&recalled.restored, changes);
            self.store = recalled.restored.store.as_str();
            self.stored_for = Some(Arc::clone(&recalled.tenant));
        } else {
            self.store = "down";
        }
    }
}

/// Marks a reply in a translated stream, so that it is recognised when the client sends it back.
#[derive(Debug)]
pub(crate) struct StreamMarks {
    protocol: Protocol,
    pub(crate) draft: Option<ReplyDraft>,
    n_invented: u32,
    /// The ids that calls already have, when a reply is written a second time.
    known_ids: VecDeque<String>,
    carried: Option<CarriedReply>,
}

/// Without a store, the client keeps the thinking itself, in encrypted form.
#[derive(Debug)]
struct CarriedReply {
    fold: Fold,
    origin: Origin,
}

impl StreamMarks {
    pub(crate) fn new(protocol: Protocol, draft: Option<ReplyDraft>, target: &Target) -> StreamMarks {
        let is_carried = draft.as_ref().is_some_and(|draft| !draft.has_store());
        let carried = is_carried.then(|| CarriedReply { fold: Fold::new(), origin: target.endpoint.origin() });
        StreamMarks { protocol, draft, n_invented: 0, known_ids: VecDeque::new(), carried }
    }

    /// The same marks, for writing the same reply a second time.
    pub(crate) fn again(self) -> Self {
        let known_ids = self.draft.iter().flat_map(|draft| draft.minted_ids()).map(str::to_owned).collect();
        StreamMarks { n_invented: 0, known_ids, ..self }
    }

    /// The id of the whole reply.
    pub(crate) fn reply_id(&self) -> String {
        match (&self.draft, self.protocol) {
            (Some(draft), Protocol::OpenaiResponses) => draft.response_id(),
            (_, Protocol::OpenaiResponses) => ids::reply_id("resp_"),
            (_, Protocol::OpenaiChat) => ids::reply_id("chatcmpl-"),
            (_, Protocol::Anthropic) => ids::reply_id("msg_"),
            (_, Protocol::Gemini | Protocol::Ollama | Protocol::Bedrock | Protocol::Cohere) => ids::reply_id(""),
        }
    }
}

impl ReplyMarks for StreamMarks {
    fn call_id(&mut self, given: Option<&str>) -> String {
        if let Some(known) = self.known_ids.pop_front() {
            return known;
        }
        let given = given.filter(|id| !id.is_empty());
        let Some(draft) = &mut self.draft else {
            return given.map_or_else(|| ids::reply_id("call_"), str::to_owned);
        };
        match given {
            Some(given) => draft.mint_call_id(given),
            None => {
                // The same id that the recorded reply gets.
                self.n_invented += 1;
                draft.mint_call_id(&format!("{}{}", CallId::INVENTED, self.n_invented))
            }
        }
    }

    fn watch(&mut self, event: Event<'_>) {
        if let Some(carried) = &mut self.carried {
            carried.fold.take(event);
        }
    }

    fn seal(&mut self, block: u32, has_text: bool) -> Option<(SealKind, String)> {
        let draft = self.draft.as_ref()?;
        if let Some(CarriedReply { fold, origin }) = &self.carried {
            let sealed = draft.seal_block(&fold.block(BlockId(block))?, origin);
            return match self.protocol {
                Protocol::Anthropic if has_text => Some((SealKind::Signature, sealed)),
                Protocol::Anthropic | Protocol::OpenaiResponses => Some((SealKind::Encrypted, sealed)),
                Protocol::Gemini => Some((SealKind::Signature, STANDARD.encode(sealed))),
                Protocol::OpenaiChat | Protocol::Ollama | Protocol::Bedrock | Protocol::Cohere => None,
            };
        }
        let reference = draft.reference(u16::try_from(block).ok()?);
        match self.protocol {
            Protocol::Anthropic if has_text => Some((SealKind::Signature, reference.padded())),
            Protocol::Anthropic | Protocol::OpenaiResponses => Some((SealKind::Encrypted, reference.text())),
            Protocol::Gemini => Some((SealKind::Signature, reference.base64_bytes())),
            Protocol::OpenaiChat | Protocol::Ollama | Protocol::Bedrock | Protocol::Cohere => None,
        }
    }

    fn item_id(&mut self, block: u32) -> Option<String> {
        match &self.draft {
            Some(draft) => Some(draft.reference(u16::try_from(block).ok()?).item_id("rs_")),
            None => Some(ids::reply_id("rs_")),
        }
    }
}

/// Remembers a reply. Returns whether it is durable.
pub(crate) async fn remember(draft: Option<ReplyDraft>, reply: Reply, target: &Target) -> Option<&'static str> {
    let draft = draft?;
    if reply.blocks.is_empty() {
        return None;
    }
    let message = Message::from_reply(reply, Some(target.endpoint.origin()));
    Some(draft.finish(message, now()).durable().await.as_str())
}
