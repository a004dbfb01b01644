//! A request with its script, and the response that follows from both.

use std::borrow::Cow;
use std::time::Duration;

use aside_core::block::Reply;
use aside_core::dialect::{AskDefault, Dialect, Rules};
use aside_core::json_text::short_members;
use aside_core::protocol::Protocol;
use aside_core::rules::{RequestedThinking, requested_thinking};
use aside_core::wire::{ClientRequest, ReplyHead, StreamWriter, whole_reply};
use serde_json::Value;

use crate::body_stream::{BodyStream, SendOptions, WholeReply};
use crate::generated_text::SeededRng;
use crate::http_exchange::{HttpResponse, JSON};
use crate::reply_plan::token_delay;
use crate::route::Delivery;
use crate::script::{Behaviour, Script};
use crate::service::MAX_SWITCH_BYTES;
use crate::thinking_format::{Payloads, RequestedFormat};
use crate::timeline::TimelineStep;

/// The creation time of every reply. It is constant so that replies are reproducible.
const CREATED: u64 = 1_750_000_000;

/// A request for a known model.
pub(crate) struct IncomingRequest<'a> {
    /// The model name exactly as the client wrote it.
    pub(crate) asked: String,
    pub(crate) dialect: &'a Dialect,
    /// The model within the dialect.
    pub(crate) model: String,
    /// The script in the model name.
    pub(crate) suffix: Option<String>,
    pub(crate) body: Cow<'a, str>,
    pub(crate) incoming: ClientRequest,
}

/// The same with its script.
pub(crate) struct ScriptedRequest<'a> {
    pub(crate) request: &'a IncomingRequest<'a>,
    pub(crate) delivery: Delivery,
    pub(crate) script: Script,
}

impl ScriptedRequest<'_> {
    pub(crate) fn rules(&self) -> &Rules {
        self.request.dialect.rules(Some(&self.request.model))
    }

    /// What the reply contains, as far as the request decides it. The script overrides the
    /// request.
    pub(crate) fn requested_format(&self) -> RequestedFormat {
        if self.script.behaviour.as_ref().is_some_and(Behaviour::forces_thinking) {
            return RequestedFormat { thinking: RequestedThinking::Shown, payloads: Payloads::Sent };
        }
        let rules = self.rules();
        let mut ask = Cow::Borrowed(&rules.ask);
        if self.request.model == self.request.dialect.id && ask.default == AskDefault::Off {
            // The id stands for a model that thinks by default.
            ask.to_mut().default = AskDefault::On;
        }
        let is_loop = self.script.behaviour == Some(Behaviour::Loop);
        let thinking = match requested_thinking(&ask, &self.request.body) {
            // It is not known how to ask it for thinking.
            _ if self.request.dialect.unknown => RequestedThinking::Shown,
            RequestedThinking::Hidden | RequestedThinking::Shown if is_loop => RequestedThinking::Shown,
            RequestedThinking::Shown if rules.read.hidden => RequestedThinking::Hidden,
            requested @ (RequestedThinking::Off | RequestedThinking::Hidden | RequestedThinking::Shown) => requested,
        };
        RequestedFormat { thinking, payloads: self.requested_payloads() }
    }

    /// OpenAI sends encrypted payloads only on request, but others always.
    fn requested_payloads(&self) -> Payloads {
        let sends_on_request = self.rules().ask.extra.contains_key("include");
        let members = short_members(&self.request.body, &["include"], MAX_SWITCH_BYTES).unwrap_or_default();
        let included = members.get("include").and_then(Value::as_array);
        let is_included = included.is_some_and(|list| list.iter().any(|name| name == "reasoning.encrypted_content"));
        if is_included || !sends_on_request { Payloads::Sent } else { Payloads::Omitted }
    }

    /// Whether a stream ends with the token counts.
    fn counts_tokens(&self) -> bool {
        if self.request.dialect.protocol != Protocol::OpenaiChat || self.delivery != Delivery::Streamed {
            return true;
        }
        let members = short_members(&self.request.body, &["stream_options"], MAX_SWITCH_BYTES).unwrap_or_default();
        let asked = members.get("stream_options").and_then(|options| options.get("include_usage"));
        self.rules().usage.always || asked == Some(&Value::Bool(true))
    }

    /// The id of the reply. The same request gets the same id.
    pub(crate) fn reply_id(&self) -> String {
        let prefix = match self.request.dialect.protocol {
            Protocol::OpenaiResponses => "resp_sim",
            Protocol::Anthropic => "msg_sim",
            Protocol::OpenaiChat => "chatcmpl-sim",
            Protocol::Gemini | Protocol::Ollama | Protocol::Bedrock | Protocol::Cohere => "sim-",
        };
        SeededRng::new(self.script.options.seed.unwrap_or(0), &*self.request.body).id(prefix)
    }

    /// The reply as one body.
    pub(crate) fn whole_body(&self, id: &str, reply: &Reply) -> String {
        let head = ReplyHead::new(id, &self.request.asked, CREATED);
        whole_reply(self.request.dialect.protocol, self.rules(), &head, reply)
    }

    pub(crate) fn reply(&self, mut timeline: Vec<TimelineStep>) -> HttpResponse {
        let (protocol, rules) = (self.request.dialect.protocol, self.rules());
        if !self.counts_tokens() {
            timeline.retain(|step| !matches!(step, TimelineStep::Usage(_)));
        }
        let id = self.reply_id();
        let head = ReplyHead::new(&id, &self.request.asked, CREATED);
        let cut = match self.script.behaviour {
            Some(Behaviour::Cut(bytes)) => Some(bytes),
            _ => None,
        };
        let chunk = self.script.options.chunk.filter(|bytes| *bytes > 0);
        let options = SendOptions { token_delay: token_delay(&self.script), chunk, cut };
        let (mut content_type, body) = match self.delivery {
            Delivery::Streamed => {
                let writer = StreamWriter::new(protocol, rules, &head);
                (writer.content_type(), BodyStream::streamed(protocol, writer, timeline, options))
            }
            Delivery::Whole | Delivery::WholeInList => {
                let (rules, model) = (rules.clone(), self.request.asked.clone());
                let in_list = self.delivery == Delivery::WholeInList;
                let whole = WholeReply { protocol, rules, model, created: CREATED, in_list, timeline, id: id.clone() };
                (JSON, BodyStream::whole(whole, options))
            }
        };
        let mut delay = Duration::ZERO;
        match self.script.behaviour {
            Some(Behaviour::ContentType) => content_type = "text/html; charset=utf-8",
            Some(Behaviour::SlowHeaders(time)) => delay = time,
            _ => (),
        }
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        HttpResponse { status: 200, headers, delay, body }
    }
}
