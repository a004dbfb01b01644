//! The state that all requests share, and the way of a request to its answer.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Instant, SystemTime};

use aside_core::block::Time;
use aside_core::protocol::Protocol;
use aside_core::rules::LearnedRepairs;
use aside_engine::Exchange;
use aside_session::HintedError;
use aside_session::log::{self, LogLevel};
use aside_session::serve_table::ServeKey;
use aside_sim::RunningSimulator;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Request};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::authentication::{self, Caller};
use crate::client::Client;
use crate::config::{Config, GatewayOptions, Target};
use crate::error_response::{
    ErrorKind, GatewayError, GatewayResponse, json_response, set_header, text_response, value_response,
};
use crate::host_check::AllowedHosts;
use crate::ids::IdSource;
use crate::limits::Limits;
use crate::metrics::{Metrics, StoreGauges};
use crate::receipt::{Receipt, ReceiptLog, ReceiptModel, RepairCounts, Timing};
use crate::request_body::{BodyMemory, RequestBody, read_body};
use crate::route::{Route, RouteHints};

/// Why the gateway does not start.
pub type StartError = HintedError;

/// A running gateway, without its sockets.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) options: GatewayOptions,
    config: RwLock<Arc<Config>>,
    pub(crate) simulator: OnceCell<Arc<RunningSimulator>>,
    pub(crate) receipts: ReceiptLog,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Limits,
    pub(crate) ids: IdSource,
    pub(crate) learned: RwLock<LearnedRepairs>,
    draining: AtomicBool,
    body_memory: BodyMemory,
}

/// A request with everything that is known before its body is read.
#[derive(Debug)]
pub(crate) struct RequestContext {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) config: Arc<Config>,
    pub(crate) id: String,
    pub(crate) at: Time,
    pub(crate) began: Instant,
    pub(crate) caller: Caller,
    pub(crate) client: Client,
    pub(crate) method: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
}

impl Gateway {
    /// Reads the config and checks it.
    pub fn new(options: GatewayOptions) -> Result<Gateway, StartError> {
        let config = Config::load(&options)?;
        Ok(Gateway {
            options,
            config: RwLock::new(Arc::new(config)),
            simulator: OnceCell::new(),
            receipts: ReceiptLog::default(),
            metrics: Metrics::default(),
            limits: Limits::default(),
            ids: IdSource::default(),
            learned: RwLock::default(),
            draining: AtomicBool::new(false),
            body_memory: BodyMemory::default(),
        })
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the config again. A broken one is refused and the old one stays; so do the addresses, which need a
    /// restart.
    pub fn reload(&self) -> Result<(), StartError> {
        let config = Config::load(&self.options)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        Ok(())
    }

    /// From now on, new requests are refused.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    fn keys(&self, config: &Config) -> Vec<Arc<ServeKey>> {
        config.serve.keys.iter().cloned().map(Arc::new).collect()
    }

    pub(crate) fn exchange(&self, config: &Config, target: &Target) -> Exchange {
        Exchange {
            dialects: Arc::clone(&config.dialects),
            http: config.http.clone(),
            redactor: target.redactor.clone(),
        }
    }

    /// Answers a request. `local` is the address that the client connected to.
    pub async fn respond(self: &Arc<Gateway>, request: Request<Body>, local: IpAddr) -> GatewayResponse {
        let id = self.ids.request_id();
        let (head, body) = request.into_parts();
        let query = head.uri.query().unwrap_or("");
        let hints = RouteHints {
            query,
            has_anthropic_version: head.headers.contains_key("anthropic-version"),
            wants_web_socket: is_web_socket(&head.headers),
        };
        let route = Route::of(head.method.as_str(), head.uri.path(), hints);
        let shape = route.error_shape();
        let answer = self.answer(&id, route, head, body, local).await;
        let mut response = answer.unwrap_or_else(|error| {
            if error.kind == ErrorKind::Unauthorized {
                log::write(LogLevel::Warn, || format!("{id} refused: {error}"));
            }
            error.response(shape)
        });
        set_header(&mut response, "aside-request", &id);
        response
    }

    async fn answer(
        self: &Arc<Gateway>,
        id: &str,
        route: Route,
        head: Parts,
        body: Body,
        local: IpAddr,
    ) -> Result<GatewayResponse, GatewayError> {
        let config = self.config();
        let authority = head.uri.authority().map(|authority| authority.as_str());
        let allowed = AllowedHosts { origins: &config.serve.origins, hosts: &config.serve.hosts, local };
        allowed.check(&head.headers, authority)?;
        if let Some(response) = self.public_page(&config, &route) {
            return Ok(response);
        }
        let query = head.uri.query().unwrap_or("").to_owned();
        let keys = self.keys(&config);
        let access = if keys.is_empty() && local.is_loopback() {
            authentication::Access::Open
        } else {
            authentication::Access::KeyNeeded
        };
        let caller = authentication::authenticate(&head.headers, &query, &keys, access)?;
        let agent = head.headers.get("user-agent").map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let context = RequestContext {
            gateway: Arc::clone(self),
            config,
            id: id.to_owned(),
            at: now(),
            began: Instant::now(),
            caller,
            client: Client::of(agent.as_deref().unwrap_or_default()),
            method: head.method.as_str().to_owned(),
            query,
            headers: head.headers,
        };
        context.route(route, body).await
    }

    /// Pages that need no key.
    fn public_page(&self, config: &Config, route: &Route) -> Option<GatewayResponse> {
        match route {
            Route::Root => Some(text_response(200, "Ollama is running: aside gateway; see /v1/models\n")),
            Route::Hello => Some(text_response(200, "")),
            Route::Alive => Some(text_response(200, "ok\n")),
            Route::Ready if self.is_draining() => Some(text_response(503, "draining\n")),
            Route::Ready => Some(text_response(200, format!("ready\nstore: {}\n", self.store_word()))),
            Route::Metrics if config.serve.metrics.is_none() && config.serve.listen.ip().is_loopback() => {
                Some(self.metrics_page())
            }
            Route::WebSocket => {
                let error = GatewayError::bad_request("use HTTP; this gateway has no WebSocket");
                let mut response = error.response(Protocol::OpenaiResponses);
                *response.status_mut() = axum::http::StatusCode::UPGRADE_REQUIRED;
                set_header(&mut response, "upgrade", "HTTP/1.1");
                Some(response)
            }
            Route::Generate { .. }
            | Route::CountTokens { .. }
            | Route::Models(_)
            | Route::Model(..)
            | Route::OllamaModel
            | Route::OllamaVersion
            | Route::Response(..)
            | Route::Pass { .. }
            | Route::Receipts
            | Route::Receipt(_)
            | Route::Metrics
            | Route::Unknown(_) => None,
        }
    }

    pub(crate) fn store_word(&self) -> &'static str {
        "none"
    }

    pub(crate) fn metrics_page(&self) -> GatewayResponse {
        text_response(200, self.metrics.text(StoreGauges { is_up: false, lag_rows: 0 }))
    }

    /// Records a finished request.
    pub(crate) fn record(&self, receipt: &Receipt) {
        let dialect = receipt.model.dialect.as_deref().unwrap_or("none");
        self.metrics.request(receipt.client.label, receipt.protocol.as_str(), dialect, receipt.status);
        let labels = [("client", receipt.client.label), ("dialect", dialect)];
        self.metrics.add("aside_filler_total", &labels, u64::from(receipt.counts.filler));
        self.metrics.add("aside_ambiguous_total", &labels, u64::from(receipt.counts.ambiguous));
        for attempt in &receipt.upstream {
            if let Some(rule) = &attempt.rule {
                self.metrics.add("aside_repairs_total", &[("dialect", dialect), ("rule", rule)], 1);
            }
        }
        if let Some(usage) = receipt.usage {
            let first = receipt.timing.first_byte.map(|at| at.duration_since(receipt.began).as_secs_f64());
            self.metrics.reply(dialect, usage, receipt.began.elapsed().as_secs_f64(), first);
        }
        log::write(LogLevel::Info, || receipt.log_line());
        self.receipts.add(receipt);
    }
}

impl RequestContext {
    async fn route(self, route: Route, body: Body) -> Result<GatewayResponse, GatewayError> {
        if self.gateway.is_draining() {
            return Err(GatewayError::new(ErrorKind::Draining, "this gateway is shutting down; try again"));
        }
        match route {
            Route::Generate { protocol, model, delivery } => self.generate(protocol, model, delivery, body).await,
            Route::CountTokens { protocol, model } => self.count_tokens(protocol, model, body).await,
            Route::Models(shape) => Ok(self.model_list(shape).await),
            Route::Model(shape, name) => self.model_page(shape, &name).await,
            Route::OllamaModel => self.ollama_model(body).await,
            Route::OllamaVersion => Ok(value_response(200, &json!({ "version": "0.12.0" }))),
            Route::Response(action, id) => self.stored_response(action, &id).await,
            Route::Pass { provider, rest } => self.pass(&provider, &rest, body).await,
            Route::Receipts => {
                let client = self.query.split('&').find_map(|pair| pair.strip_prefix("client="));
                Ok(value_response(200, &self.gateway.receipts.list(&self.caller.tenant, client)))
            }
            Route::Receipt(id) => {
                let found = self.gateway.receipts.find(&self.caller.tenant, &id);
                let missing =
                    || GatewayError::new(ErrorKind::NotFound, "there is no such receipt; see /aside/requests");
                found.map(|receipt| json_response(200, receipt.to_string())).ok_or_else(missing)
            }
            Route::Metrics => Ok(self.gateway.metrics_page()),
            Route::Unknown(_) => {
                let message = "nothing is served at this path; /pass/PROVIDER/… reaches everything else of a provider";
                Err(GatewayError::new(ErrorKind::NotFound, message))
            }
            Route::Root | Route::Hello | Route::Alive | Route::Ready | Route::WebSocket => Ok(text_response(200, "")),
        }
    }

    pub(crate) async fn read(&self, body: Body) -> Result<RequestBody, GatewayError> {
        read_body(body, &self.headers, self.config.serve.max_body, &self.gateway.body_memory).await
    }

    /// The targets of a model's name, those that exist and that the caller may use.
    pub(crate) async fn targets(&self, asked: &str) -> Result<Vec<Arc<Target>>, GatewayError> {
        let names = self.config.names_for(asked);
        let (mut targets, mut problem) = (Vec::new(), None);
        for name in &names {
            match self.config.target(name, &self.gateway.simulator).await {
                Ok(target) if self.caller.may_use(asked, &target.name()) => targets.push(target),
                Ok(_) => {
                    let message = format!("the key may not use the model `{asked}`");
                    problem = problem.or(Some(GatewayError::new(ErrorKind::UnknownModel, message)));
                }
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        match (targets.is_empty(), problem) {
            (true, Some(problem)) => Err(problem),
            (true, None) => Err(GatewayError::new(ErrorKind::UnknownModel, format!("no model is called `{asked}`"))),
            (false, _) => Ok(targets),
        }
    }

    /// A receipt of this request, to be completed.
    pub(crate) fn receipt(&self, protocol: Protocol, asked: &str) -> Receipt {
        Receipt {
            id: self.id.clone(),
            at: self.at,
            began: self.began,
            tenant: self.caller.tenant.clone(),
            client: self.client.clone(),
            protocol,
            model: ReceiptModel { asked: asked.to_owned(), ..ReceiptModel::default() },
            status: 0,
            shadow: self.gateway.options.shadow,
            store: self.gateway.store_word(),
            upstream: Vec::new(),
            decisions: Vec::new(),
            judge_before: Vec::new(),
            judge_after: Vec::new(),
            left_out: Vec::new(),
            counts: RepairCounts::default(),
            usage: None,
            timing: Timing::default(),
        }
    }

    /// What the client sets by the header `aside-set`.
    pub(crate) fn wanted_settings(&self) -> Vec<String> {
        let values = self.headers.get_all("aside-set").iter().filter_map(|value| value.to_str().ok());
        values
            .flat_map(|value| value.split(';'))
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
            .collect()
    }
}

fn is_web_socket(headers: &HeaderMap) -> bool {
    headers.get("upgrade").is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// The time now. A clock before 1970 counts as 1970.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
