//! The client of one server. Only this file, `bounded_transport`, `http_client`, `listing` and `tool_result` use types of rmcp.

use std::error::Error;
use std::time::Duration;

use aside_engine::tools::ToolOutcome;
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

use crate::bounded_reader::LimitExceeded;
use crate::bounded_transport::BoundedTransport;
use crate::http_client::BoundedHttpClient;
use crate::http_setup;
use crate::listing::{MAX_PAGES, ToolListing, truncate};
use crate::process::ServerProcess;
use crate::server_config::{McpTransport, ServerEnvironment};
use crate::servers::ServerError;
use crate::tool_result;

/// The maximum duration of a call.
const MAX_CALL_TIME: Duration = Duration::from_secs(600);
/// How long a cancellation or a shutdown may take to send.
const NOTIFY_TIMEOUT: Duration = Duration::from_millis(200);
/// How often to check whether the transport has closed.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How much of a server's error message is shown.
const MAX_ERROR_BYTES: usize = 2 * 1024;

/// Why a call has no result.
pub(crate) enum CallFailure {
    Interrupted,
    TimedOut(Duration),
    /// The server exited, with the last line of its standard error.
    Ended(Option<String>),
    /// The server's own error message.
    Refused(String),
    Failed(String),
}

pub(crate) struct Client {
    service: RunningService<RoleClient, ClientConfig>,
    /// `None` for a server with a URL.
    process: Option<ServerProcess>,
    exceeded: LimitExceeded,
}

/// Why connecting failed.
enum ConnectError {
    /// The server answered, but rejected this handshake.
    HandshakeRejected(ServerError),
    Failed(ServerError),
}

impl Client {
    /// Connects with the classic `initialize` handshake, and if the server rejects it, with the handshake of
    /// 2026. Older servers may exit on an unknown first message, so the classic one is tried first.
    pub(crate) async fn connect(
        transport: &McpTransport,
        environment: &ServerEnvironment,
    ) -> Result<Client, ServerError> {
        let newer = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
        match Client::handshake(transport, environment, ClientLifecycleMode::Initialize).await {
            Ok(client) => Ok(client),
            Err(ConnectError::Failed(error)) => Err(error),
            Err(ConnectError::HandshakeRejected(error)) => {
                Client::handshake(transport, environment, newer).await.map_err(|_| error)
            }
        }
    }

    async fn handshake(
        transport: &McpTransport,
        environment: &ServerEnvironment,
        mode: ClientLifecycleMode,
    ) -> Result<Client, ConnectError> {
        let failed = |what: String, remedy: &str| ConnectError::Failed(ServerError { what, remedy: remedy.to_owned() });
        match transport {
            McpTransport::Command { program, arguments, variables, access } => {
                let started = ServerProcess::start(program, arguments, variables, *access, environment);
                let (process, stdout, stdin) = started.map_err(|error| {
                    failed(
                        format!("`{program}` cannot be started: {error}"),
                        "check its command, or set enabled = false",
                    )
                })?;
                let exceeded = LimitExceeded::default();
                let transport = BoundedTransport::new(stdout, stdin, exceeded.clone());
                match serve_client_with_lifecycle(client_info(), transport, mode).await {
                    Ok(service) => Ok(Client { service, process: Some(process), exceeded }),
                    Err(error) => Err(match (is_pipe_error(&error), exceeded.get()) {
                        (true, Some(limit)) => process_ended(Some(limit.to_string())),
                        (true, None) => process_ended(process.last_stderr_line().await),
                        (false, _) => connect_error(&error),
                    }),
                }
            }
            McpTransport::Url { url, headers } => {
                let remedy = "check its url and headers, or set enabled = false";
                let client = http_setup::client(url).map_err(|what| failed(what, remedy))?;
                let headers = http_setup::headers(headers).map_err(|what| failed(what, remedy))?;
                let exceeded = LimitExceeded::default();
                let client = BoundedHttpClient { client, exceeded: exceeded.clone() };
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(headers);
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let service = serve_client_with_lifecycle(client_info(), transport, mode).await;
                Ok(Client { service: service.map_err(|error| connect_error(&error))?, process: None, exceeded })
            }
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.service.is_transport_closed() || self.process.as_ref().is_some_and(ServerProcess::is_gone)
    }

    pub(crate) async fn tools(&self) -> Result<ToolListing, ServerError> {
        let mut listing = ToolListing::default();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let mut page = PaginatedRequestParams::default();
            page.cursor = cursor;
            let listed = match self.service.list_tools(Some(page)).await {
                Ok(listed) => listed,
                Err(error) => return Err(self.listing_error(&error).await),
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

    async fn listing_error(&self, error: &ServiceError) -> ServerError {
        let stderr_line = self.last_stderr_line(error).await;
        let stderr_line = stderr_line.map(|stderr_line| format!(" ({stderr_line})")).unwrap_or_default();
        let what =
            format!("its tools cannot be listed: {}{stderr_line}", truncate(describe_error(error), MAX_ERROR_BYTES));
        ServerError { what, remedy: "look into the server, or set enabled = false".to_owned() }
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        call_idle_timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<ToolOutcome, CallFailure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let startup_timeout = PeerRequestOptions::with_timeout(call_idle_timeout).reset_timeout_on_progress();
        let peer: &Peer<RoleClient> = self.service.peer();
        let sent = peer.send_cancellable_request(request, startup_timeout.with_max_total_timeout(MAX_CALL_TIME)).await;
        let handle = match sent {
            Ok(handle) => handle,
            Err(error) => return Err(self.call_failure(error).await),
        };
        let id = handle.id.clone();
        let response = tokio::select! {
            biased;
            response = handle.await_response() => response,
            () = cancel.cancelled() => {
                let stop = CancelledNotificationParam::new(Some(id), Some("the user stopped it".to_owned()));
                drop(timeout(NOTIFY_TIMEOUT, peer.notify_cancelled(stop)).await);
                return Err(CallFailure::Interrupted);
            }
        };
        match response {
            Ok(ServerResult::CallToolResult(result)) => Ok(tool_result::tool_outcome(&result)),
            Ok(ServerResult::InputRequiredResult(_)) => {
                Err(CallFailure::Failed("it asks for input from the user, which is not supported".into()))
            }
            Ok(_) => Err(CallFailure::Failed("it sent an unexpected response".to_owned())),
            Err(error) => Err(self.call_failure(error).await),
        }
    }

    async fn call_failure(&self, error: ServiceError) -> CallFailure {
        if let ServiceError::Timeout { timeout } = error {
            return CallFailure::TimedOut(timeout);
        }
        if let ServiceError::McpError(error) = error {
            return CallFailure::Refused(truncate(error.message.into_owned(), MAX_ERROR_BYTES));
        }
        let stderr_line = self.last_stderr_line(&error).await;
        match self.has_ended() {
            true => CallFailure::Ended(stderr_line),
            false => {
                CallFailure::Failed(stderr_line.unwrap_or_else(|| truncate(describe_error(&error), MAX_ERROR_BYTES)))
            }
        }
    }

    /// Why the connection ended, as far as it is known.
    async fn last_stderr_line(&self, error: &ServiceError) -> Option<String> {
        let is_over = matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_));
        if let (Some(process), true) = (&self.process, is_over) {
            process.mark_unusable();
        }
        match (self.exceeded.get(), &self.process) {
            _ if !is_over => None,
            (Some(limit), _) => Some(limit.to_string()),
            (None, Some(process)) => process.last_stderr_line().await,
            (None, None) => None,
        }
    }

    /// Closes the connection: the standard input of a process, or the session at a URL. Then waits for the
    /// process to end.
    pub(crate) async fn close(&self) {
        self.service.cancellation_token().cancel();
        let closed = async {
            while !self.service.is_transport_closed() {
                sleep(POLL_INTERVAL).await;
            }
        };
        drop(timeout(NOTIFY_TIMEOUT, closed).await);
        if let Some(process) = &self.process {
            process.end().await;
        }
    }
}

fn client_info() -> ClientConfig {
    let us = Implementation::new("aside", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

/// A dead process causes either a read error or a write error.
fn is_pipe_error(error: &ClientInitializeError) -> bool {
    matches!(error, ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. })
}

/// A dead process would only die again, so the other handshake is not tried.
fn process_ended(last_stderr_line: Option<String>) -> ConnectError {
    let stderr_line = last_stderr_line.map(|stderr_line| format!(": {stderr_line}")).unwrap_or_default();
    let remedy = "run its command by hand to see why, or set enabled = false".to_owned();
    ConnectError::Failed(ServerError { what: format!("it ended before it had answered{stderr_line}"), remedy })
}

fn connect_error(error: &ClientInitializeError) -> ConnectError {
    let server_error =
        |what: String, remedy: &str| ServerError { what, remedy: format!("{remedy}, or set enabled = false") };
    if error.is_authorization_required() {
        let remedy = "give it one with headers = { authorization = \"Bearer …\" }";
        return ConnectError::Failed(server_error("it wants an authorization".to_owned(), remedy));
    }
    let ClientInitializeError::TransportError { error, .. } = error else {
        return ConnectError::HandshakeRejected(not_mcp(&error.to_string()));
    };
    match http_error(error) {
        Some(cause) => ConnectError::Failed(server_error(
            format!("it cannot be reached: {cause}"),
            "check that it runs and its url",
        )),
        None => ConnectError::HandshakeRejected(not_mcp(&error.error.to_string())),
    }
}

fn not_mcp(how: &str) -> ServerError {
    let what = format!("it does not answer as an MCP server does: {}", truncate(how.to_owned(), MAX_ERROR_BYTES));
    ServerError { what, remedy: "check its table, or set enabled = false".to_owned() }
}

/// The connection error of an HTTP transport, if it is one.
fn http_error(error: &DynamicTransportError) -> Option<String> {
    match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => Some(root_cause(error)),
        Some(_) | None => None,
    }
}

fn describe_error(error: &ServiceError) -> String {
    let ServiceError::TransportSend(error) = error else { return root_cause(error) };
    match http_error(error) {
        Some(cause) => format!("it cannot be reached: {cause}"),
        None => error.error.to_string(),
    }
}

/// The innermost error has the details; the outer ones only say that something failed.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
