//! Turns a request into a response without a socket or a clock.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aside_core::dialect::{Dialect, Dialects, Off, Rules};
use aside_core::event::ProviderError;
use aside_core::json_text::short_members;
use aside_core::protocol::Protocol;
use aside_core::tokens;
use aside_core::wire::{ClientRequest, ReplyHead, StreamWriter, error_reply, read_request};
use serde_json::{Value, json};
use siphasher::sip::SipHasher13;

use crate::body_stream::{BodyStream, SendOptions, WholeReply};
use crate::generated_text::SeededRng;
use crate::refusals::{RefusalResponse, RequestCheck, contains};
use crate::reply_plan::{ReplyContext, plan_reply, token_delay};
use crate::route::{Delivery, Route, path};
use crate::script::{Behaviour, Script, ScriptOptions, last_user_text};
use crate::self_description;
use crate::timeline::TimelineStep;

/// The creation time of every reply. It is constant so that replies are reproducible.
const CREATED: u64 = 1_750_000_000;

/// How many conversations' fault counts to keep.
const MAX_FAULT_COUNTS: usize = 10_000;

const JSON: &str = "application/json";

/// The longest JSON value considered when looking for the model name or a thinking
/// switch.
const MAX_SWITCH_BYTES: usize = 64 << 10;

/// An HTTP request as received by the server.
#[derive(Debug, Clone, Copy)]
pub struct HttpRequest<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub query: &'a str,
    /// Names are in lower case.
    pub headers: &'a [(String, String)],
    pub body: &'a [u8],
}

/// The response that the server should send.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// How long to wait before sending anything.
    pub delay: Duration,
    pub body: BodyStream,
}

/// The simulator, without its transport.
#[derive(Debug)]
pub struct Service {
    dialects: Dialects,
    defaults: ScriptOptions,
    /// How often each conversation has already received its scripted fault.
    fault_counts: Mutex<HashMap<u64, u32>>,
}

/// A parsed model name: the dialect, the model within it, and the script suffix.
struct ResolvedModel<'a> {
    dialect: &'a Dialect,
    model: &'a str,
    suffix: Option<&'a str>,
}

impl Service {
    /// `defaults` apply to options that a request does not set.
    pub fn new(dialects: Dialects, defaults: ScriptOptions) -> Service {
        Service { dialects, defaults, fault_counts: Mutex::default() }
    }

    pub fn respond(&self, http: &HttpRequest<'_>) -> HttpResponse {
        let header = |name: &str| http.headers.iter().find(|(known, _)| known == name);
        let route = Route::of(http.method, http.path, http.query, header("anthropic-version").is_some());
        match route {
            Route::About => HttpResponse::with_body(200, "text/plain; charset=utf-8", self_description::page()),
            Route::Version => HttpResponse::with_body(200, JSON, self_description::version()),
            Route::Models(protocol) => {
                HttpResponse::with_body(200, JSON, self_description::models(protocol, &self.dialects))
            }
            Route::Unknown => {
                let message = format!("{} {} is not served here; see GET /", http.method, http.path);
                HttpResponse::refusal(404, &message)
            }
            Route::Generate { protocol, model, delivery } => self.generate(http, protocol, model, delivery),
        }
    }

    fn generate(
        &self,
        http: &HttpRequest<'_>,
        protocol: Protocol,
        model: Option<String>,
        delivery: Option<Delivery>,
    ) -> HttpResponse {
        let refuse = |status, message: String| HttpResponse::error(protocol, status, message);
        let Ok(body) = std::str::from_utf8(http.body) else {
            return refuse(400, "the body is not UTF-8".to_owned());
        };
        let members = match short_members(body, &["model"], MAX_SWITCH_BYTES) {
            Ok(members) => members,
            Err(error) => return refuse(400, format!("the body is {error}")),
        };
        let in_body = || members.get("model")?.as_str().map(str::to_owned);
        let Some(model) = model.or_else(in_body) else {
            return refuse(400, format!("no model is named; the simulator has: {}", self.model_names()));
        };
        let Some(resolved) = self.resolve_model(&model) else {
            return refuse(404, format!("the simulator has no model `{model}`; it has: {}", self.model_names()));
        };
        if resolved.dialect.protocol != protocol {
            let Dialect { id, protocol, .. } = resolved.dialect;
            return refuse(400, format!("`{id}` speaks {protocol}: POST {}", path(*protocol)));
        }
        let rules = resolved.dialect.rules(Some(resolved.model));
        let incoming = match read_request(protocol, rules, body) {
            Ok(incoming) => incoming,
            Err(error) => return refuse(400, error.to_string()),
        };
        match Script::for_request(resolved.suffix, &incoming.messages) {
            Ok(script) => {
                let script = Script { options: script.options.or(self.defaults), ..script };
                let whole = if incoming.streams == Some(true) { Delivery::Streamed } else { Delivery::Whole };
                let request = ScriptedRequest {
                    http,
                    body,
                    resolved,
                    incoming,
                    model: &model,
                    delivery: delivery.unwrap_or(whole),
                    script,
                };
                self.scripted_response(&request)
            }
            Err(error) => refuse(400, error.to_string()),
        }
    }

    /// `[sim/]DIALECT[/MODEL][:BEHAVIOUR]`
    fn resolve_model<'a>(&'a self, name: &'a str) -> Option<ResolvedModel<'a>> {
        let name = name.strip_prefix("sim/").unwrap_or(name);
        let (name, suffix) = name.split_once(':').map_or((name, None), |(name, suffix)| (name, Some(suffix)));
        let (id, model) = name.split_once('/').unwrap_or((name, name));
        Some(ResolvedModel { dialect: self.dialects.get(id)?, model, suffix })
    }

    fn model_names(&self) -> String {
        self.dialects.iter().map(|dialect| dialect.id.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn scripted_response(&self, request: &ScriptedRequest<'_>) -> HttpResponse {
        let check = RequestCheck {
            dialect: request.resolved.dialect,
            rules: request.rules(),
            catalogue: self.dialects.catalogue(),
            model: request.resolved.model,
            headers: request.http.headers,
            body: request.body,
            incoming: &request.incoming,
        };
        if let Some(fault) = self.scripted_fault(request, &check) {
            return fault;
        }
        if let Some(refusal) = check.refusal() {
            return refusal.into();
        }
        let timeline = plan_reply(&ReplyContext {
            dialect: check.dialect,
            rules: check.rules,
            catalogue: check.catalogue,
            incoming: check.incoming,
            script: &request.script,
            account: check.account_hash(),
            thinks: !request.is_thinking_off(),
            input_tokens: tokens::estimate(request.body),
        });
        request.reply(timeline)
    }

    /// The fault that the script asks for, unless it has already happened often enough.
    fn scripted_fault(&self, request: &ScriptedRequest<'_>, check: &RequestCheck<'_>) -> Option<HttpResponse> {
        let (response, default_times): (HttpResponse, Option<u32>) = match &request.script.behaviour {
            Some(Behaviour::Status(status)) => (status_response(check.dialect.protocol, *status), None),
            Some(Behaviour::Refuse(id)) => {
                let Some(row) = check.catalogue.iter().find(|row| row.id == *id) else {
                    let known: Vec<&str> = check.catalogue.iter().map(|row| row.id.as_str()).collect();
                    let message = format!("the catalogue has no row `{id}`; it has: {}", known.join(", "));
                    return Some(HttpResponse::error(check.dialect.protocol, 400, message));
                };
                (check.refusal_from_row(row, &[]).into(), Some(1))
            }
            _ => return None,
        };
        let times = request.script.options.times.or(default_times);
        (times.is_none_or(|times| self.nth_fault(request) <= times)).then_some(response)
    }

    /// Counts this conversation's faults, starting at 1.
    fn nth_fault(&self, request: &ScriptedRequest<'_>) -> u32 {
        let mut hasher = SipHasher13::new();
        (request.model, last_user_text(&request.incoming.messages)).hash(&mut hasher);
        let mut fault_counts = self.fault_counts.lock().unwrap_or_else(PoisonError::into_inner);
        // Bounds the map in a long-running server.
        if fault_counts.len() >= MAX_FAULT_COUNTS {
            fault_counts.clear();
        }
        let count = fault_counts.entry(hasher.finish()).or_default();
        *count = count.saturating_add(1);
        *count
    }
}

/// A request for a known model, with its script.
struct ScriptedRequest<'a> {
    http: &'a HttpRequest<'a>,
    body: &'a str,
    resolved: ResolvedModel<'a>,
    incoming: ClientRequest,
    /// The model name exactly as the client wrote it.
    model: &'a str,
    delivery: Delivery,
    script: Script,
}

impl ScriptedRequest<'_> {
    fn rules(&self) -> &Rules {
        self.resolved.dialect.rules(Some(self.resolved.model))
    }

    /// Whether the request contains this dialect's patch that disables thinking.
    fn is_thinking_off(&self) -> bool {
        match &self.rules().ask.off {
            Off::Patch(patch) if !patch.is_empty() => {
                let names: Vec<&str> = patch.keys().map(String::as_str).collect();
                let body = short_members(self.body, &names, MAX_SWITCH_BYTES).unwrap_or_default();
                contains(&Value::Object(body), &Value::Object(patch.clone()))
            }
            Off::Patch(_) | Off::Unsupported => false,
        }
    }

    fn reply(&self, timeline: Vec<TimelineStep>) -> HttpResponse {
        let (protocol, rules) = (self.resolved.dialect.protocol, self.rules());
        let id = SeededRng::new(self.script.options.seed.unwrap_or(0), self.body).id("sim-");
        let head = ReplyHead { id: &id, model: self.model, created: CREATED };
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
                let (rules, model, in_list) =
                    (rules.clone(), self.model.to_owned(), self.delivery == Delivery::WholeInList);
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

impl HttpResponse {
    fn with_body(status: u16, content_type: &str, body: String) -> HttpResponse {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        HttpResponse { status, headers, delay: Duration::ZERO, body: BodyStream::from_text(body) }
    }

    /// A refusal for a request that belongs to no known protocol.
    pub(crate) fn refusal(status: u16, message: &str) -> HttpResponse {
        let error = json!({ "error": { "message": message, "type": "simulator_error", "code": status } });
        HttpResponse::with_body(status, JSON, error.to_string())
    }

    /// A response without a body.
    pub(crate) fn empty(status: u16) -> HttpResponse {
        HttpResponse { status, headers: Vec::new(), delay: Duration::ZERO, body: BodyStream::from_text(String::new()) }
    }

    fn error(protocol: Protocol, status: u16, message: String) -> HttpResponse {
        let error = ProviderError { message, code: None, status: Some(status) };
        HttpResponse::with_body(status, JSON, error_reply(protocol, &error))
    }
}

impl From<RefusalResponse> for HttpResponse {
    fn from(refusal: RefusalResponse) -> HttpResponse {
        let mut response = HttpResponse::with_body(refusal.status, JSON, refusal.body);
        response.headers.extend(refusal.headers);
        response
    }
}

/// A provider error with this status.
fn status_response(protocol: Protocol, status: u16) -> HttpResponse {
    let (message, code) = match status {
        401 | 403 => ("this key is not accepted (simulated)", "invalid_api_key"),
        429 => ("too many requests, try again later (simulated)", "rate_limit_exceeded"),
        503 | 529 => ("the server is overloaded, try again later (simulated)", "overloaded"),
        500..600 => ("the server had an error (simulated)", "server_error"),
        _ => ("the request was refused (simulated)", "invalid_request_error"),
    };
    let error = ProviderError { message: message.to_owned(), code: Some(code.to_owned()), status: Some(status) };
    let mut response = HttpResponse::with_body(status, JSON, error_reply(protocol, &error));
    if status == 429 {
        response.headers.push(("retry-after".to_owned(), "1".to_owned()));
    }
    response
}
