//! The state that all requests share, and the path of a request to its response.

mod follow_store;

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Instant, SystemTime};

use aside_core::block::Time;
use aside_core::protocol::Protocol;
use aside_core::rules::LearnedRepairs;
use aside_engine::Exchange;
use aside_memory::{KeyFile, Memory, ReceiptFilter, RepairCounts, StoreState};
use aside_session::HintedError;
use aside_session::log::{self, LogLevel};
use aside_session::serve_table::{RecordChoice, ServeKey, StoreChoice};
use aside_sim::RunningSimulator;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Request};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::authentication::{self, Caller};
use crate::client::{Client, Clients};
use crate::config::{Config, GatewayOptions, Target, no_keys};
use crate::conversation_recorder::ConversationRecorder;
use crate::error_response::{
    ErrorKind, GatewayError, GatewayResponse, json_response, set_header, text_response, value_response,
};
use crate::host_check::AllowedHosts;
use crate::ids;
use crate::limits::Limits;
use crate::memory_setup::{self, KeySource, OpenedMemory};
use crate::metrics::{Metrics, StoreGauges};
use crate::recall::LossCounts;
use crate::receipt::{LIST_LENGTH, ListedReceipt, Receipt, ReceiptLog, ReceiptModel, Timing, newest_of};
use crate::request_body::{BodyMemory, RequestBody, read_body};
use crate::route::{Route, RouteHints, percent_decode};
use crate::running_replies::RunningReplies;

/// A running gateway, without its sockets.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) options: GatewayOptions,
    config: RwLock<Arc<Config>>,
    pub(crate) simulator: OnceCell<Arc<RunningSimulator>>,
    pub(crate) receipts: ReceiptLog,
    pub(crate) metrics: Metrics,
    clients: Clients,
    pub(crate) limits: Limits,
    pub(crate) learned: RwLock<LearnedRepairs>,
    pub(crate) memory: Memory,
    /// None if no conversation becomes a session.
    pub(crate) recorder: Option<ConversationRecorder>,
    new_key_file: Option<PathBuf>,
    /// The keys in the store. They are read again when they change.
    stored_keys: RwLock<Vec<Arc<ServeKey>>>,
    /// Whether there was ever a key. Once the last key is revoked, requests without a key are still refused.
    had_keys: AtomicBool,
    draining: AtomicBool,
    pub(crate) replies: RunningReplies,
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
    /// Reads the config, checks it and opens the memory.
    pub async fn open(options: GatewayOptions) -> Result<Gateway, HintedError> {
        let config = Config::load(&options)?;
        let OpenedMemory { memory, key_source } = memory_setup::open(&options, &config).await?;
        let new_key_file = match key_source {
            KeySource::File { path, file: KeyFile::Created } => Some(path),
            KeySource::File { .. } | KeySource::Variable | KeySource::Keyring | KeySource::NotKept => None,
        };
        let recorder = open_recorder(&options, &config).await?;
        let gateway = Gateway {
            options,
            config: RwLock::new(Arc::new(config)),
            simulator: OnceCell::new(),
            receipts: ReceiptLog::default(),
            metrics: Metrics::default(),
            clients: Clients::default(),
            limits: Limits::new(ids::reply_id("replica_")),
            learned: RwLock::default(),
            memory,
            recorder,
            new_key_file,
            stored_keys: RwLock::default(),
            had_keys: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            replies: RunningReplies::default(),
            body_memory: BodyMemory::default(),
        };
        gateway.read_store().await?;
        gateway.share_limits().await;
        let config = gateway.config();
        if !config.serve.listen.ip().is_loopback() && gateway.keys(&config).is_empty() {
            return Err(no_keys(config.serve.listen));
        }
        gateway.check_record(&config)?;
        Ok(gateway)
    }

    /// `record = true` is for one person: it must not mix what several tenants say.
    fn check_record(&self, config: &Config) -> Result<(), HintedError> {
        let tenants: HashSet<String> = self.keys(config).iter().map(|key| key.tenant.clone()).collect();
        match (&config.serve.record, tenants.len()) {
            (RecordChoice::TheOnlyTenant, 2..) => {
                Err(HintedError::new("[serve] record = true is for one tenant, and there are several")
                    .hint("name those to record: record = [\"team-a\"]"))
            }
            (RecordChoice::Nobody | RecordChoice::TheOnlyTenant | RecordChoice::Tenants(_), _) => Ok(()),
        }
    }

    /// The file with the store key, if it was just created. Anyone who has it can read the memory.
    pub fn new_key_file(&self) -> Option<&Path> {
        self.new_key_file.as_deref()
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the config again. If it is invalid, the old one stays in effect. Addresses always stay, and need a
    /// restart.
    pub fn reload(&self) -> Result<(), HintedError> {
        let config = Config::load(&self.options)?;
        self.check_record(&config)?;
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
        let stored = self.stored_keys.read().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<Arc<ServeKey>> =
            config.serve.keys.iter().cloned().map(Arc::new).chain(stored.iter().cloned()).collect();
        if !keys.is_empty() {
            self.had_keys.store(true, Ordering::Relaxed);
        }
        keys
    }

    pub(crate) fn exchange(&self, config: &Config, target: &Target) -> Exchange {
        Exchange {
            dialects: Arc::clone(&config.dialects),
            http: config.http().clone(),
            redactor: target.redactor.clone(),
        }
    }

    /// Answers a request. `local` is the address that the client connected to.
    pub async fn respond(self: &Arc<Gateway>, request: Request<Body>, local: IpAddr) -> GatewayResponse {
        let id = ids::request_id();
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
        let access = if !self.had_keys.load(Ordering::Relaxed) && local.is_loopback() {
            authentication::Access::Open
        } else {
            authentication::Access::KeyNeeded
        };
        let caller = authentication::authenticate(&head.headers, &query, &keys, access)?;
        let context = RequestContext {
            gateway: Arc::clone(self),
            config,
            id: id.to_owned(),
            at: now(),
            began: Instant::now(),
            caller,
            client: self.clients.of(head.headers.get("user-agent").map_or(b"", HeaderValue::as_bytes)),
            method: head.method.as_str().to_owned(),
            query,
            headers: own_headers(&head.headers),
        };
        // It shares the connection's read buffer, which is used again once nothing shares it.
        drop(head);
        context.route(route, body).await
    }

    /// Paths that need no key.
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
            | Route::StoredResponse { .. }
            | Route::Pass { .. }
            | Route::Receipts
            | Route::Receipt(_)
            | Route::Metrics
            | Route::Unknown(_) => None,
        }
    }

    pub(crate) fn store_word(&self) -> &'static str {
        self.memory.health().state.as_str()
    }

    pub(crate) fn metrics_page(&self) -> GatewayResponse {
        let health = self.memory.health();
        let gauges = StoreGauges {
            is_up: health.state == StoreState::Ok,
            lag_rows: health.lag_rows,
            lost_rows: health.lost_rows,
        };
        text_response(200, self.metrics.text(gauges))
    }

    /// Records a finished request.
    pub(crate) fn record(&self, receipt: &Receipt) {
        let dialect = receipt.model.dialect.as_deref().unwrap_or("none");
        self.metrics.request(receipt.client.label, receipt.protocol.as_str(), dialect, receipt.status);
        let labels = [("client", receipt.client.label), ("dialect", dialect)];
        self.metrics.add("aside_filler_total", &labels, u64::from(receipt.counts.filler));
        self.metrics.add("aside_ambiguous_total", &labels, u64::from(receipt.counts.ambiguous));
        for (evidence, count) in &receipt.losses.restored {
            let evidence = evidence.to_string();
            let labels = [("client", receipt.client.label), ("dialect", dialect), ("evidence", evidence.as_str())];
            self.metrics.add("aside_restored_total", &labels, *count);
        }
        for (kind, count) in [("refused", receipt.losses.refused), ("silent", receipt.losses.silent)] {
            let labels = [("client", receipt.client.label), ("dialect", dialect), ("kind", kind)];
            self.metrics.add("aside_lost_total", &labels, count);
        }
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
        let whole = receipt.to_json();
        if let Some(tenant) = &receipt.stored_for {
            self.memory.put_receipt(tenant, receipt.to_row(whole.clone()));
        }
        self.receipts.add(receipt, whole);
    }
}

impl RequestContext {
    async fn route(self, route: Route, body: Body) -> Result<GatewayResponse, GatewayError> {
        if self.gateway.is_draining() {
            return Err(GatewayError::draining());
        }
        // In boxes: a future has room for the largest one in it, and is copied at each step on its way into this one.
        match route {
            Route::Generate { protocol, model, delivery } => {
                Box::pin(self.generate(protocol, model, delivery, body)).await
            }
            Route::CountTokens { protocol, model } => Box::pin(self.count_tokens(protocol, model, body)).await,
            Route::Models(shape) => Ok(Box::pin(self.model_list(shape)).await),
            Route::Model(shape, name) => Box::pin(self.model_page(shape, &name)).await,
            Route::OllamaModel => self.ollama_model(body).await,
            Route::OllamaVersion => Ok(value_response(200, &json!({ "version": "0.12.0" }))),
            Route::StoredResponse { id, action } => Box::pin(self.stored_response(&id, action, body)).await,
            Route::Pass { provider, rest } => Box::pin(self.pass(&provider, &rest, body)).await,
            Route::Receipts => Ok(Box::pin(self.receipt_list()).await),
            Route::Receipt(id) => Box::pin(self.find_receipt(&id)).await,
            Route::Metrics => Ok(self.gateway.metrics_page()),
            Route::Unknown(_) => {
                let message = "nothing is served at this path; /pass/PROVIDER/… reaches everything else of a provider";
                Err(GatewayError::new(ErrorKind::NotFound, message))
            }
            Route::Root | Route::Hello | Route::Alive | Route::Ready | Route::WebSocket => Ok(text_response(200, "")),
        }
    }

    /// The store has those from before a restart and of other replicas; the newest may not be stored yet.
    async fn receipt_list(&self) -> GatewayResponse {
        let parameter = |name: &str| self.query.split('&').find_map(|pair| pair.strip_prefix(name)).map(percent_decode);
        let tenant = self.tenant().await;
        let mut filter = ReceiptFilter { client: parameter("client="), before: None, limit: LIST_LENGTH };
        if let Some(id) = parameter("before=") {
            let at = match (self.gateway.receipts.time_of(&self.caller.tenant, &id), &tenant) {
                (None, Some(tenant)) => self.gateway.memory.receipt(tenant, &id).await.ok().flatten().map(|row| row.at),
                (known, _) => known,
            };
            // Nothing is older than a receipt that is no longer kept.
            let Some(at) = at else { return value_response(200, &json!({ "requests": [], "next": null })) };
            filter.before = Some((at, id));
        }
        let here = self.gateway.receipts.list(&self.caller.tenant, &filter);
        let stored = match &tenant {
            Some(tenant) => self.gateway.memory.receipts(tenant, filter).await.unwrap_or_default(),
            None => Vec::new(),
        };
        let stored = stored.iter().map(ListedReceipt::of_row).collect();
        let listed = newest_of(here, stored);
        let next = listed.last().filter(|_| listed.len() == LIST_LENGTH).map(|last| last.id.clone());
        let requests: Vec<Value> = listed.into_iter().map(|receipt| receipt.summary).collect();
        value_response(200, &json!({ "requests": requests, "next": next }))
    }

    async fn find_receipt(&self, id: &str) -> Result<GatewayResponse, GatewayError> {
        if let Some(receipt) = self.gateway.receipts.find(&self.caller.tenant, id) {
            return Ok(json_response(200, receipt));
        }
        let stored = match self.tenant().await {
            Some(tenant) => self.gateway.memory.receipt(&tenant, id).await.ok().flatten(),
            None => None,
        };
        let missing = || GatewayError::new(ErrorKind::NotFound, "there is no such receipt; see /aside/requests");
        stored.map(|row| json_response(200, row.body)).ok_or_else(missing)
    }

    /// The bytes of all bodies in memory.
    pub(crate) fn body_memory(&self) -> &BodyMemory {
        &self.gateway.body_memory
    }

    /// The client wants its reply not to be remembered.
    pub(crate) fn wants_no_store(&self) -> bool {
        self.headers.get("aside-store").is_some_and(|value| value.as_bytes() == b"none")
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
            losses: LossCounts::default(),
            stored_for: None,
            usage: None,
            timing: Timing::default(),
            texts: None,
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

/// Opens the sessions if conversations are recorded there.
async fn open_recorder(options: &GatewayOptions, config: &Config) -> Result<Option<ConversationRecorder>, HintedError> {
    if config.serve.record == RecordChoice::Nobody {
        return Ok(None);
    }
    if matches!(config.serve.store, StoreChoice::Postgres(_)) {
        return Err(HintedError::new("[serve] record works with one gateway, and postgres:// is for several")
            .hint("leave out record, or use store = \"sqlite\""));
    }
    let folder = memory_setup::data_folder(options)?.clone();
    let opened = tokio::task::spawn_blocking(move || ConversationRecorder::open(&folder)).await;
    opened.map_err(|error| HintedError::new(error.to_string()))?.map(Some)
}

/// A copy of the headers. Those of the connection would keep its whole read buffer while the reply is sent.
fn own_headers(headers: &HeaderMap) -> HeaderMap {
    let mut own = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        // What was a header value is one.
        if let Ok(mut copy) = HeaderValue::from_bytes(value.as_bytes()) {
            copy.set_sensitive(value.is_sensitive());
            own.append(name.clone(), copy);
        }
    }
    own
}

fn is_web_socket(headers: &HeaderMap) -> bool {
    headers.get("upgrade").is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// The time now. A clock before 1970 counts as 1970.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
