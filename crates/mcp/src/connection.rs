//! The connection to one server: opened on start, reopened if the server ended, closed with the session.

use std::sync::Arc;
use std::time::Duration;

use aside_engine::tools::ToolOutcome;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::client::{CallFailure, Client};
use crate::listing::ToolListing;
use crate::server_config::{McpTransport, ServerConfig, ServerEnvironment};
use crate::servers::ServerError;

pub(crate) struct Connection {
    pub(crate) server: ServerConfig,
    environment: Arc<ServerEnvironment>,
    state: Mutex<ConnectionState>,
}

enum ConnectionState {
    Idle,
    Open(Arc<Client>),
    Closed,
}

impl Connection {
    pub(crate) fn new(server: ServerConfig, environment: Arc<ServerEnvironment>) -> Connection {
        Connection { server, environment, state: Mutex::new(ConnectionState::Idle) }
    }

    /// Connects and lists the tools.
    pub(crate) async fn open(&self) -> Result<ToolListing, ServerError> {
        let startup_timeout = self.environment.startup_timeout;
        let opened = timeout(startup_timeout, async { self.client().await?.tools().await }).await;
        let opened = opened.unwrap_or_else(|_| Err(self.startup_timed_out(startup_timeout)));
        if opened.is_err() {
            // It will not be used, so it needs no orderly shutdown.
            *self.state.lock().await = ConnectionState::Closed;
        }
        opened
    }

    fn startup_timed_out(&self, startup_timeout: Duration) -> ServerError {
        let what = format!("it did not answer within {} s", startup_timeout.as_secs());
        let remedy = match &self.server.transport {
            McpTransport::Command { program, .. } => {
                format!("if `{program}` downloads something first, run it once by hand; or set enabled = false")
            }
            McpTransport::Url { .. } => "check its url, or set enabled = false".to_owned(),
        };
        ServerError { what, remedy }
    }

    /// The current client. One that has ended is replaced.
    async fn client(&self) -> Result<Arc<Client>, ServerError> {
        let mut state = self.state.lock().await;
        match &*state {
            ConnectionState::Open(client) if !client.has_ended() => return Ok(Arc::clone(client)),
            ConnectionState::Closed => {
                let what = "it is not in use any more".to_owned();
                return Err(ServerError { what, remedy: "start a new session".to_owned() });
            }
            ConnectionState::Open(_) | ConnectionState::Idle => *state = ConnectionState::Idle,
        }
        let client = Arc::new(Client::connect(&self.server.transport, &self.environment).await?);
        *state = ConnectionState::Open(Arc::clone(&client));
        Ok(client)
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> ToolOutcome {
        let startup_timeout = self.environment.startup_timeout;
        let name = &self.server.name;
        let client = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err("interrupted; nothing was done".to_owned()),
            client = timeout(startup_timeout, self.client()) => client.unwrap_or_else(|_| Err(self.startup_timed_out(startup_timeout))),
        };
        let client = client
            .map_err(|error| format!("the MCP server `{name}` cannot be used: {}; nothing was done", error.what))?;
        client.call(tool, arguments, self.environment.call_idle_timeout, cancel).await.unwrap_or_else(|failure| {
            Err(match failure {
                CallFailure::Interrupted => "interrupted; the server was told to stop".to_owned(),
                CallFailure::TimedOut(limit) => {
                    format!("the MCP server `{name}` said nothing for {} s and was told to stop", limit.as_secs())
                }
                CallFailure::Ended(last_stderr_line) => format!(
                    "the MCP server `{name}` ended during the call{}; what it had done is not known. \
                     It is started again at the next call",
                    last_stderr_line.map(|words| format!(" ({words})")).unwrap_or_default()
                ),
                CallFailure::Refused(why) => format!("the MCP server `{name}` says: {why}"),
                CallFailure::Failed(how) => format!("no answer from the MCP server `{name}`: {how}"),
            })
        })
    }

    pub(crate) async fn close(&self) {
        let state = std::mem::replace(&mut *self.state.lock().await, ConnectionState::Closed);
        match state {
            ConnectionState::Open(client) => client.close().await,
            ConnectionState::Idle | ConnectionState::Closed => (),
        }
    }
}
