//! Talking to one server. What rmcp calls things stays in this file and in
//! `answer`.

use std::error::Error;
use std::time::Duration;

use aside_engine::tools::Outcome;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities, ClientConfig,
    ClientRequest, Implementation, PaginatedRequestParams, ProtocolVersion, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, PeerRequestOptions, RunningService, ServiceError,
    serve_client_with_lifecycle,
};
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::transport::{DynamicTransportError, StreamableHttpClientTransport};
use rmcp::{Peer, RoleClient};
use serde_json::{Map, Value};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::answer;
use crate::http_client::BoundedClient;
use crate::limited::{self, Exceeded, Limited};
use crate::listing::{Listing, MOST_PAGES, beginning};
use crate::process::Process;
use crate::server::{Surroundings, Way};
use crate::servers::Trouble;
use crate::web;

/// How long a call may take in all.
const WHOLE_CALL: Duration = Duration::from_secs(600);
/// How long telling a server to stop, or goodbye, may take.
const TELLING: Duration = Duration::from_millis(200);
/// How often to see whether that is done.
const GLANCE: Duration = Duration::from_millis(5);
/// The most of what a server says when something fails.
const MOST_WORDS: usize = 2 * 1024;

/// Why there is no answer to a call.
pub(crate) enum Unanswered {
    Interrupted,
    Silent(Duration),
    /// The server is gone, with its last words.
    Ended(Option<String>),
    /// In the server's words.
    Refused(String),
    Failed(String),
}

pub(crate) struct Client {
    service: RunningService<RoleClient, ClientConfig>,
    /// None where the server is somebody else's.
    process: Option<Process>,
    exceeded: Exceeded,
}

/// Why there is no connection.
enum Unconnected {
    /// It answers, but not to this greeting.
    OtherGreeting(Trouble),
    Broken(Trouble),
}

impl Client {
    /// Connects with the greeting that every server knew until 2026, and if the
    /// server does not want it, with the newer one. The other way round would
    /// end servers that take a strange first word for an error.
    pub(crate) async fn connect(way: &Way, around: &Surroundings) -> Result<Client, Trouble> {
        let newer = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
        match Client::greet(way, around, ClientLifecycleMode::Initialize).await {
            Ok(client) => Ok(client),
            Err(Unconnected::Broken(trouble)) => Err(trouble),
            Err(Unconnected::OtherGreeting(trouble)) => Client::greet(way, around, newer).await.map_err(|_| trouble),
        }
    }

    async fn greet(way: &Way, around: &Surroundings, greeting: ClientLifecycleMode) -> Result<Client, Unconnected> {
        let broken = |what: String, remedy: &str| Unconnected::Broken(Trouble { what, remedy: remedy.to_owned() });
        match way {
            Way::Command { program, arguments, variables, want } => {
                let started = Process::start(program, arguments, variables, *want, around);
                let (process, stdout, stdin) = started.map_err(|error| {
                    broken(
                        format!("`{program}` cannot be started: {error}"),
                        "check its command, or set enabled = false",
                    )
                })?;
                let exceeded = Exceeded::default();
                let stdout = Limited::new(stdout, limited::MOST_BYTES, exceeded.clone());
                match serve_client_with_lifecycle(who_we_are(), (stdout, stdin), greeting).await {
                    Ok(service) => Ok(Client { service, process: Some(process), exceeded }),
                    Err(error) => Err(match is_about_the_pipe(&error) {
                        true if exceeded.is_so() => died(Some(too_long())),
                        true => died(process.last_words().await),
                        false => failed(&error),
                    }),
                }
            }
            Way::Url { url, headers } => {
                let remedy = "check its url and headers, or set enabled = false";
                let client = web::client(url).map_err(|what| broken(what, remedy))?;
                let headers = web::headers(headers).map_err(|what| broken(what, remedy))?;
                let exceeded = Exceeded::default();
                let client = BoundedClient { client, exceeded: exceeded.clone() };
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(headers);
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let service = serve_client_with_lifecycle(who_we_are(), transport, greeting).await;
                Ok(Client { service: service.map_err(|error| failed(&error))?, process: None, exceeded })
            }
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.service.is_transport_closed() || self.process.as_ref().is_some_and(Process::is_gone)
    }

    pub(crate) async fn tools(&self) -> Result<Listing, Trouble> {
        let mut listing = Listing::default();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let mut page = PaginatedRequestParams::default();
            page.cursor = cursor;
            let listed = match self.service.list_tools(Some(page)).await {
                Ok(listed) => listed,
                Err(error) => return Err(self.not_listed(&error).await),
            };
            listed.tools.into_iter().for_each(|tool| listing.add(tool));
            cursor = listed.next_cursor;
            if cursor.is_none() || listing.is_full() {
                return Ok(listing);
            }
        }
        listing.endless = true;
        Ok(listing)
    }

    async fn not_listed(&self, error: &ServiceError) -> Trouble {
        let words = self.last_words(error).await;
        let words = words.map(|words| format!(" ({words})")).unwrap_or_default();
        let what = format!("its tools cannot be listed: {}{words}", beginning(unsaid(error), MOST_WORDS));
        Trouble { what, remedy: "look into the server, or set enabled = false".to_owned() }
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        silence: Duration,
        cancel: &CancellationToken,
    ) -> Result<Outcome, Unanswered> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let patience = PeerRequestOptions::with_timeout(silence).reset_timeout_on_progress();
        let peer: &Peer<RoleClient> = self.service.peer();
        let sent = peer.send_cancellable_request(request, patience.with_max_total_timeout(WHOLE_CALL)).await;
        let handle = match sent {
            Ok(handle) => handle,
            Err(error) => return Err(self.unanswered(error).await),
        };
        let id = handle.id.clone();
        let answered = tokio::select! {
            biased;
            answered = handle.await_response() => answered,
            () = cancel.cancelled() => {
                let stop = CancelledNotificationParam::new(Some(id), Some("the user stopped it".to_owned()));
                drop(timeout(TELLING, peer.notify_cancelled(stop)).await);
                return Err(Unanswered::Interrupted);
            }
        };
        match answered {
            Ok(ServerResult::CallToolResult(result)) => Ok(answer::outcome(&result)),
            Ok(ServerResult::InputRequiredResult(_)) => Err(Unanswered::Failed(
                "it asks for something only a person can answer, which is not offered here".into(),
            )),
            Ok(_) => Err(Unanswered::Failed("it answered with something that is no answer to a call".to_owned())),
            Err(error) => Err(self.unanswered(error).await),
        }
    }

    async fn unanswered(&self, error: ServiceError) -> Unanswered {
        if let ServiceError::Timeout { timeout } = error {
            return Unanswered::Silent(timeout);
        }
        if let ServiceError::McpError(error) = error {
            return Unanswered::Refused(beginning(error.message.into_owned(), MOST_WORDS));
        }
        let words = self.last_words(&error).await;
        match self.has_ended() {
            true => Unanswered::Ended(words),
            false => Unanswered::Failed(words.unwrap_or_else(|| beginning(unsaid(&error), MOST_WORDS))),
        }
    }

    /// Why the connection is over, as far as the server showed it.
    async fn last_words(&self, error: &ServiceError) -> Option<String> {
        let is_over = matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_));
        if let (Some(process), true) = (&self.process, is_over) {
            process.give_up();
        }
        match &self.process {
            _ if is_over && self.exceeded.is_so() => Some(too_long()),
            Some(process) if is_over => process.last_words().await,
            Some(_) | None => None,
        }
    }

    /// Says goodbye: closes a process's input, or ends the session of a URL.
    /// Then sees the process end.
    pub(crate) async fn close(&self) {
        self.service.cancellation_token().cancel();
        let said = async {
            while !self.service.is_transport_closed() {
                sleep(GLANCE).await;
            }
        };
        drop(timeout(TELLING, said).await);
        if let Some(process) = &self.process {
            process.end().await;
        }
    }
}

fn who_we_are() -> ClientConfig {
    let us = Implementation::new("aside", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

fn too_long() -> String {
    format!("it sent a message of more than {} bytes", limited::MOST_BYTES)
}

/// A process that is gone shows when it is read from or when it is written to,
/// whichever comes first.
fn is_about_the_pipe(error: &ClientInitializeError) -> bool {
    matches!(error, ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. })
}

/// A dead process would only die again, so no other greeting is tried.
fn died(last_words: Option<String>) -> Unconnected {
    let words = last_words.map(|words| format!(": {words}")).unwrap_or_default();
    let remedy = "run its command by hand to see why, or set enabled = false".to_owned();
    Unconnected::Broken(Trouble { what: format!("it ended before it had answered{words}"), remedy })
}

fn failed(error: &ClientInitializeError) -> Unconnected {
    let trouble = |what: String, remedy: &str| Trouble { what, remedy: format!("{remedy}, or set enabled = false") };
    if error.is_authorization_required() {
        let remedy = "give it one with headers = { authorization = \"Bearer …\" }";
        return Unconnected::Broken(trouble("it wants an authorization".to_owned(), remedy));
    }
    let ClientInitializeError::TransportError { error, .. } = error else {
        return Unconnected::OtherGreeting(not_understood(&error.to_string()));
    };
    match way_there(error) {
        Some(broken) => {
            Unconnected::Broken(trouble(format!("it cannot be reached: {broken}"), "check that it runs and its url"))
        }
        None => Unconnected::OtherGreeting(not_understood(&error.error.to_string())),
    }
}

fn not_understood(how: &str) -> Trouble {
    let what = format!("it does not answer as an MCP server does: {}", beginning(how.to_owned(), MOST_WORDS));
    Trouble { what, remedy: "check what stands in its table, or set enabled = false".to_owned() }
}

/// What broke between here and an HTTP server, if that is it.
fn way_there(error: &DynamicTransportError) -> Option<String> {
    match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => Some(story(error)),
        Some(_) | None => None,
    }
}

fn unsaid(error: &ServiceError) -> String {
    let ServiceError::TransportSend(error) = error else { return story(error) };
    match way_there(error) {
        Some(broken) => format!("it cannot be reached: {broken}"),
        None => error.error.to_string(),
    }
}

/// The innermost cause says what happened; the outer ones that something did.
fn story(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
