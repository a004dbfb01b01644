//! Turns a request into a response without a socket or a clock.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aside_core::dialect::{Dialect, Dialects};
use aside_core::json_text::short_members;
use aside_core::protocol::Protocol;
use aside_core::tokens;
use aside_core::wire::read_request;
use serde_json::{Map, Value, json};
use siphasher::sip::SipHasher13;

use crate::held_responses::HeldResponses;
use crate::http_exchange::{HttpRequest, HttpResponse, JSON, status_response};
use crate::issued_thinking::{IssuedThinking, Verdict, VerdictKind};
use crate::model_names::{UnknownModel, resolve};
use crate::receipt::{ReceiptModel, RequestLog, RequestReceipt};
use crate::refusals::RequestCheck;
use crate::reply_plan::{ReplyContext, plan_reply};
use crate::route::{ClientHeaders, Delivery, ModelPage, ResponseAction, Route, path};
use crate::script::{Behaviour, Script, ScriptOptions, last_user_text};
use crate::scripted_request::{IncomingRequest, ScriptedRequest};
use crate::self_description;
use crate::timeline::{TimelineStep, fold_timeline};

/// How many conversations' fault counts to keep.
const MAX_FAULT_COUNTS: usize = 10_000;

/// Longer replies are not remembered.
const MAX_REMEMBERED_TOKENS: usize = 50_000;

/// The longest JSON value considered when looking for the model name or a switch.
pub(crate) const MAX_SWITCH_BYTES: usize = 64 << 10;

/// The simulator, without its transport.
#[derive(Debug)]
pub struct Service {
    dialects: Dialects,
    defaults: ScriptOptions,
    strictness: Strictness,
    observer: Option<Observer>,
    memory: Mutex<ServiceMemory>,
}

/// What the simulator remembers between requests. All of it is bounded.
#[derive(Debug, Default)]
struct ServiceMemory {
    /// How often each conversation has already received its scripted fault.
    fault_counts: HashMap<u64, u32>,
    issued: IssuedThinking,
    responses: HeldResponses,
    log: RequestLog,
    n_requests: u64,
}

/// What the simulator refuses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strictness {
    /// What the provider refuses.
    #[default]
    AsProvider,
    /// Also requests without the thinking of an earlier reply, where the provider accepts
    /// them but the model no longer has the thinking.
    RefuseLosses,
}

/// Called with the receipt of each request.
struct Observer(Box<dyn Fn(&RequestReceipt) + Send + Sync>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

impl Service {
    /// `defaults` apply to options that a request does not set.
    pub fn new(dialects: Dialects, defaults: ScriptOptions) -> Service {
        let strictness = Strictness::default();
        Service { dialects, defaults, strictness, observer: None, memory: Mutex::default() }
    }

    #[must_use]
    pub fn with_strictness(self, strictness: Strictness) -> Service {
        Service { strictness, ..self }
    }

    /// Calls `observer` with the receipt of each request, before its answer is sent.
    #[must_use]
    pub fn with_observer(self, observer: impl Fn(&RequestReceipt) + Send + Sync + 'static) -> Service {
        Service { observer: Some(Observer(Box::new(observer))), ..self }
    }

    pub fn respond(&self, http: &HttpRequest<'_>) -> HttpResponse {
        let route = Route::of(http.method, http.path, http.query, ClientHeaders::of(http.headers));
        if let Route::Receipts(id) = &route {
            return self.receipts(id.as_deref());
        }
        let nth = {
            let mut memory = self.memory();
            memory.n_requests += 1;
            memory.n_requests
        };
        let mut receipt = RequestReceipt::new(nth, http.received, http.method, http.path, http.header("user-agent"));
        let mut response = self.route(http, route, &mut receipt);
        receipt.status = response.status;
        response.headers.push(("aside-request".to_owned(), receipt.id.clone()));
        if let Some(observer) = &self.observer {
            (observer.0)(&receipt);
        }
        self.memory().log.add(receipt);
        response
    }

    fn memory(&self) -> MutexGuard<'_, ServiceMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receipts(&self, id: Option<&str>) -> HttpResponse {
        let memory = self.memory();
        let found = match id {
            None => Some(memory.log.list()),
            Some(id) => memory.log.find(id).map(RequestReceipt::to_json),
        };
        found.map_or_else(
            || HttpResponse::refusal(404, "there is no receipt with this id; see GET /aside/requests"),
            |found| HttpResponse::with_body(200, JSON, found.to_string()),
        )
    }

    fn route(&self, http: &HttpRequest<'_>, route: Route, receipt: &mut RequestReceipt) -> HttpResponse {
        match route {
            Route::About => HttpResponse::with_body(200, "text/plain; charset=utf-8", self_description::page()),
            Route::Alive => HttpResponse::with_body(200, JSON, "{}".to_owned()),
            Route::Version => HttpResponse::with_body(200, JSON, self_description::version()),
            Route::Models(page) => HttpResponse::with_body(200, JSON, self_description::models(page, &self.dialects)),
            Route::Model(page, name) => self.model_page(http, page, name),
            Route::Response(action, id) => self.held_response(action, &id),
            Route::WebSocket => {
                let mut response = HttpResponse::refusal(426, "use HTTP; the simulator has no WebSocket");
                response.headers.push(("upgrade".to_owned(), "HTTP/1.1".to_owned()));
                response
            }
            Route::Receipts(id) => self.receipts(id.as_deref()),
            Route::Unknown(protocol) => {
                let message = format!("{} {} is not served here; see GET /", http.method, http.path);
                HttpResponse::error(protocol, 404, message)
            }
            Route::CountTokens { protocol, model } => {
                receipt.protocol = Some(protocol);
                let counted = self.incoming(http, protocol, model, receipt);
                counted.map_or_else(|refusal| *refusal, |request| count_response(protocol, &request.body))
            }
            Route::Generate { protocol, model, delivery } => {
                receipt.protocol = Some(protocol);
                match self.incoming(http, protocol, model, receipt) {
                    Ok(request) => self.generate(http, &request, delivery, receipt),
                    Err(refusal) => *refusal,
                }
            }
        }
    }

    fn model_page(&self, http: &HttpRequest<'_>, page: ModelPage, name: String) -> HttpResponse {
        let protocols: &[Protocol] = match page {
            // Not those that serve any name.
            ModelPage::Openai | ModelPage::Codex => &[
                Protocol::OpenaiChat,
                Protocol::OpenaiResponses,
                Protocol::Anthropic,
                Protocol::Gemini,
                Protocol::Cohere,
            ],
            ModelPage::Anthropic => &[Protocol::Anthropic],
            ModelPage::Gemini => &[Protocol::Gemini],
            ModelPage::Ollama => &[Protocol::Ollama],
            ModelPage::Cohere => &[Protocol::Cohere],
        };
        let in_body = || {
            let body = std::str::from_utf8(http.body).unwrap_or_default();
            let members = short_members(body, &["model", "name"], MAX_SWITCH_BYTES).unwrap_or_default();
            let name = members.get("model").or_else(|| members.get("name")).and_then(Value::as_str);
            name.unwrap_or_default().to_owned()
        };
        let name = if name.is_empty() { in_body() } else { name };
        let resolves = protocols.iter().any(|protocol| resolve(&self.dialects, *protocol, &name).is_ok());
        if resolves || self.dialects.get(&name).is_some() {
            return HttpResponse::with_body(200, JSON, self_description::model(page, &name).to_string());
        }
        let shape = protocols.first().copied().unwrap_or(Protocol::OpenaiChat);
        HttpResponse::no_such_model(shape, &name, &self.model_names())
    }

    fn held_response(&self, action: ResponseAction, id: &str) -> HttpResponse {
        let mut memory = self.memory();
        let found = match action {
            ResponseAction::Fetch => memory.responses.body(id).map(str::to_owned),
            ResponseAction::FetchInput => memory.responses.input_page(id).map(|page| page.to_string()),
            ResponseAction::Delete => {
                let deleted = json!({ "id": id, "object": "response", "deleted": true });
                memory.responses.remove(id).then(|| deleted.to_string())
            }
        };
        found.map_or_else(
            || HttpResponse::error(Protocol::OpenaiResponses, 404, format!("Response with id '{id}' not found.")),
            |body| HttpResponse::with_body(200, JSON, body),
        )
    }

    fn model_names(&self) -> String {
        self.dialects.iter().map(|dialect| dialect.id.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Reads a request and finds the dialect that answers it.
    fn incoming<'a>(
        &'a self,
        http: &HttpRequest<'a>,
        protocol: Protocol,
        model: Option<String>,
        receipt: &mut RequestReceipt,
    ) -> Result<IncomingRequest<'a>, Box<HttpResponse>> {
        let refuse = |status, message: String| Box::new(HttpResponse::error(protocol, status, message));
        let body = std::str::from_utf8(http.body).map_err(|_| refuse(400, "the body is not UTF-8".to_owned()))?;
        let members = short_members(body, &["model", "thread"], MAX_SWITCH_BYTES)
            .map_err(|error| refuse(400, format!("the body is {error}")))?;
        let in_body = || members.get("model")?.as_str().map(str::to_owned);
        let Some(asked) = model.or_else(in_body) else {
            return Err(refuse(400, format!("no model is named; the simulator has: {}", self.model_names())));
        };
        let (dialect, model, suffix) = match resolve(&self.dialects, protocol, &asked) {
            Ok(found) => (found.dialect, found.model.to_owned(), found.suffix.map(str::to_owned)),
            Err(UnknownModel::NoSuchModel) => {
                return Err(Box::new(HttpResponse::no_such_model(protocol, &asked, &self.model_names())));
            }
            Err(UnknownModel::OtherProtocol(Dialect { id, protocol, .. })) => {
                return Err(refuse(400, format!("`{id}` speaks {protocol}: POST {}", path(*protocol))));
            }
        };
        receipt.model = Some(ReceiptModel::new(&asked, &model, &dialect.id));
        if let Some(refusal) = thread_refusal(protocol, members.get("thread")) {
            return Err(Box::new(refusal));
        }
        let body = match protocol {
            Protocol::OpenaiResponses => self.with_previous_response(body)?,
            Protocol::OpenaiChat
            | Protocol::Anthropic
            | Protocol::Gemini
            | Protocol::Ollama
            | Protocol::Bedrock
            | Protocol::Cohere => Cow::Borrowed(body),
        };
        let rules = dialect.rules(Some(&model));
        let incoming = read_request(protocol, rules, &body).map_err(|error| refuse(400, error.to_string()))?;
        Ok(IncomingRequest { asked, dialect, model, suffix, body, incoming })
    }

    /// The body with the conversation that its `previous_response_id` continues.
    fn with_previous_response<'a>(&self, body: &'a str) -> Result<Cow<'a, str>, Box<HttpResponse>> {
        let members = short_members(body, &["previous_response_id"], MAX_SWITCH_BYTES).unwrap_or_default();
        let Some(id) = members.get("previous_response_id").and_then(Value::as_str) else {
            return Ok(Cow::Borrowed(body));
        };
        let request: Map<String, Value> = serde_json::from_str(body).unwrap_or_default();
        let whole = self.memory().responses.with_previous(&request);
        let Some(whole) = whole else {
            let message = format!("Previous response with id '{id}' not found.");
            return Err(Box::new(HttpResponse::previous_response_not_found(message)));
        };
        Ok(Cow::Owned(Value::Object(whole).to_string()))
    }

    fn generate(
        &self,
        http: &HttpRequest<'_>,
        request: &IncomingRequest<'_>,
        delivery: Option<Delivery>,
        receipt: &mut RequestReceipt,
    ) -> HttpResponse {
        let protocol = request.dialect.protocol;
        let script = match Script::for_request(request.suffix.as_deref(), &request.incoming.messages) {
            Ok(script) => Script { options: script.options.or(self.defaults), ..script },
            Err(error) => return HttpResponse::error(protocol, 400, error.to_string()),
        };
        let by_body = if request.incoming.streams == Some(true) { Delivery::Streamed } else { Delivery::Whole };
        let scripted = ScriptedRequest { request, delivery: delivery.unwrap_or(by_body), script };
        let check = RequestCheck {
            dialect: request.dialect,
            rules: scripted.rules(),
            catalogue: self.dialects.catalogue(),
            model: &request.model,
            headers: http.headers,
            body: &request.body,
            incoming: &request.incoming,
        };
        if let Some(fault) = self.scripted_fault(&scripted, &check) {
            return fault;
        }
        receipt.verdicts = self.memory().issued.verdicts(&request.dialect.id, &check.rules.echo, &request.incoming);
        if let Some(refusal) = check.refusal() {
            receipt.verdicts.extend(refusal.verdicts);
            return refusal.response.into();
        }
        if let Some(refusal) = self.strict_refusal(protocol, &receipt.verdicts) {
            return refusal;
        }
        let timeline = plan_reply(&ReplyContext {
            dialect: check.dialect,
            rules: check.rules,
            catalogue: check.catalogue,
            incoming: check.incoming,
            script: &scripted.script,
            account: check.account_hash(),
            requested: scripted.requested_format(),
            input_tokens: tokens::estimate(&request.body),
        });
        self.remember(http, &scripted, &timeline);
        scripted.reply(timeline)
    }

    /// Remembers what a reply contains, unless it is very long.
    fn remember(&self, http: &HttpRequest<'_>, request: &ScriptedRequest<'_>, timeline: &[TimelineStep]) {
        let n_tokens: usize = timeline.iter().map(TimelineStep::n_tokens).sum();
        if n_tokens > MAX_REMEMBERED_TOKENS {
            return;
        }
        let reply = fold_timeline(timeline);
        let mut memory = self.memory();
        memory.issued.remember(&request.request.dialect.id, request.rules(), &reply.blocks);
        if request.request.dialect.protocol == Protocol::OpenaiResponses {
            // As the client sent it, not with what its previous response stands for.
            let sent: Map<String, Value> = serde_json::from_slice(http.body).unwrap_or_default();
            if sent.get("store") != Some(&Value::Bool(false)) {
                let id = request.reply_id();
                memory.responses.hold(&id, &sent, request.whole_body(&id, &reply));
            }
        }
    }

    fn strict_refusal(&self, protocol: Protocol, verdicts: &[Verdict]) -> Option<HttpResponse> {
        let lost = verdicts.iter().find(|verdict| verdict.verdict == VerdictKind::Lost)?;
        let Verdict { path, rule, message, .. } = lost;
        let message = format!("{path}: {message} ({rule}); the provider accepts this, --strict does not");
        (self.strictness == Strictness::RefuseLosses).then(|| HttpResponse::error(protocol, 400, message))
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
        (&request.request.asked, last_user_text(&request.request.incoming.messages)).hash(&mut hasher);
        let mut memory = self.memory();
        // Bounds the map in a long-running server.
        if memory.fault_counts.len() >= MAX_FAULT_COUNTS {
            memory.fault_counts.clear();
        }
        let count = memory.fault_counts.entry(hasher.finish()).or_default();
        *count = count.saturating_add(1);
        *count
    }
}

/// Anthropic's threads are refused with the codes that make its SDKs send the whole
/// conversation instead.
fn thread_refusal(protocol: Protocol, thread: Option<&Value>) -> Option<HttpResponse> {
    let thread = thread.filter(|thread| protocol == Protocol::Anthropic && !thread.is_null())?;
    let is_new = thread.get("type").and_then(Value::as_str) == Some("create");
    let (status, kind, code, message) = if is_new {
        (400, "invalid_request_error", "thread_unsupported_request", "threads are not supported")
    } else {
        (404, "not_found_error", "thread_not_found", "there is no such thread")
    };
    let error = json!({ "type": kind, "message": message, "details": { "error_code": code } });
    let body = json!({ "type": "error", "error": error });
    Some(HttpResponse::with_body(status, JSON, body.to_string()))
}

/// The number of tokens of a request, in the format of its protocol.
fn count_response(protocol: Protocol, body: &str) -> HttpResponse {
    let n_tokens = tokens::estimate(body);
    let count = match protocol {
        Protocol::Gemini => json!({ "totalTokens": n_tokens }),
        Protocol::Bedrock => json!({ "inputTokens": n_tokens }),
        Protocol::OpenaiResponses => json!({ "object": "response.input_tokens", "input_tokens": n_tokens }),
        Protocol::OpenaiChat | Protocol::Anthropic | Protocol::Ollama | Protocol::Cohere => {
            json!({ "input_tokens": n_tokens })
        }
    };
    HttpResponse::with_body(200, JSON, count.to_string())
}
